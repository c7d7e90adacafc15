//! The same batches through a database: dense ids, out-edges, over a snapshot that holds the graph or over an
//! empty one. As the other containers it is in memory; with a log, it is also measured.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use base::parallel::Pool;
use base::progress::Silent;
use engine::{Database, Durability, Fate, GraphOptions, KeyScheme, LoadOptions};
use graph::formats::{InputPath, write_file};
use graph::generate::Generator;

use super::readers::{Live, Reading};
use super::{Batch, Container};
use crate::harness::seconds;

/// What is measured: out-edges of a directed graph, whose keys are ids.
fn kind() -> GraphOptions {
    GraphOptions { keys: KeyScheme::Dense, in_edges: false, ..GraphOptions::default() }
}

/// A database of which no snapshot is made meanwhile.
pub(super) struct ThroughDatabase {
    database: Arc<Database>,
}

impl ThroughDatabase {
    /// Over an empty snapshot.
    pub(super) fn empty() -> Result<Self> {
        Ok(Self::without_snapshots(Database::in_memory(kind())?))
    }

    /// The same with a log, for which nobody waits as long as there is room for it in memory.
    pub(super) fn logged(scratch: &Path) -> Result<Self> {
        let directory = scratch.join("updates-logged.anden");
        remove(&directory)?;
        let database = Database::create(&directory, kind())?;
        database.set_durability(Durability::None);
        Ok(Self::without_snapshots(database))
    }

    /// Over a snapshot with the edges that `generator` makes.
    pub(super) fn over(generator: &Generator, pool: &Pool, scratch: &Path) -> Result<Self> {
        let text = scratch.join("updates-base.el");
        write_file(&text, |output| generator.write_edge_list(pool, output))?;
        let options = LoadOptions { graph: kind(), ..LoadOptions::default() };
        let database = Database::load_in_memory(&[InputPath::File(text.clone())], &options, pool, &Silent)?.0;
        std::fs::remove_file(text)?;
        Ok(Self::without_snapshots(database))
    }

    fn without_snapshots(database: Database) -> Self {
        database.set_checkpoint_bytes(None);
        Self { database: Arc::new(database) }
    }

    fn apply(&mut self, pool: &Pool, batch: Batch<'_>, fate: Fate) -> Result<f64> {
        let (time, applied) = seconds(|| self.database.apply_edges(batch, fate, pool));
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
        self.apply(pool, batch, Fate::Come)
    }

    fn remove(&mut self, pool: &Pool, batch: Batch<'_>) -> Result<f64> {
        self.apply(pool, batch, Fate::Go)
    }
}

impl Live for ThroughDatabase {
    fn reading(&self) -> Box<dyn Reading> {
        Box::new(Arc::clone(&self.database))
    }
}
