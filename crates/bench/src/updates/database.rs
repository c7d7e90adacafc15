//! The same batches through a database: dense ids, out-edges, over a snapshot that holds the graph or over an
//! empty one.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use base::parallel::Pool;
use base::progress::Silent;
use engine::{Database, Durability, GraphOptions, KeyScheme, LoadOptions, Missing, Update};
use graph::formats::{InputPath, write_file};
use graph::generate::Generator;

use super::readers::{Live, Reading};
use super::{Batch, Container};
use crate::harness::seconds;

/// What is measured: out-edges of a directed graph, whose keys are ids.
fn kind() -> GraphOptions {
    GraphOptions { keys: KeyScheme::Dense, in_edges: false, ..GraphOptions::default() }
}

/// A database, whose changes stay in memory.
pub(super) struct ThroughDatabase {
    database: Arc<Database>,
}

impl ThroughDatabase {
    /// Over an empty snapshot.
    pub(super) fn empty(scratch: &Path) -> Result<Self> {
        let directory = scratch.join("updates-empty.anden");
        remove(&directory)?;
        Ok(Self::in_memory_only(Database::create(&directory, kind())?))
    }

    /// Over a snapshot with the edges that `generator` makes.
    pub(super) fn over(generator: &Generator, pool: &Pool, scratch: &Path) -> Result<Self> {
        let (text, directory) = (scratch.join("updates-base.el"), scratch.join("updates-base.anden"));
        remove(&directory)?;
        write_file(&text, |output| generator.write_edge_list(pool, output))?;
        let options = LoadOptions { graph: kind(), ..LoadOptions::default() };
        let database = Database::load(&directory, &[InputPath::File(text.clone())], &options, pool, &Silent)?.0;
        std::fs::remove_file(text)?;
        Ok(Self::in_memory_only(database))
    }

    /// No snapshot is made meanwhile, and nobody waits for the log: it is the changes in memory that are measured.
    fn in_memory_only(database: Database) -> Self {
        database.set_checkpoint_bytes(None);
        database.set_durability(Durability::None);
        Self { database: Arc::new(database) }
    }

    fn apply(&mut self, pool: &Pool, updates: &[Update]) -> Result<f64> {
        let (time, applied) = seconds(|| self.database.apply(updates, Missing::Lenient, pool));
        applied?;
        Ok(time)
    }
}

/// What an earlier benchmark left behind.
fn remove(directory: &Path) -> Result<()> {
    match directory.exists() {
        true => Ok(std::fs::remove_dir_all(directory)?),
        false => Ok(()),
    }
}

impl Container for ThroughDatabase {
    fn insert(&mut self, pool: &Pool, batch: Batch<'_>) -> Result<f64> {
        let add = |&(source, target): &(u32, u32)| Update::add_edge(u64::from(source), u64::from(target));
        self.apply(pool, &batch.iter().map(add).collect::<Vec<_>>())
    }

    fn remove(&mut self, pool: &Pool, batch: Batch<'_>) -> Result<f64> {
        let remove = |&(source, target): &(u32, u32)| Update::remove_edge(u64::from(source), u64::from(target));
        self.apply(pool, &batch.iter().map(remove).collect::<Vec<_>>())
    }
}

impl Live for ThroughDatabase {
    fn reading(&self) -> Box<dyn Reading> {
        Box::new(Arc::clone(&self.database))
    }
}
