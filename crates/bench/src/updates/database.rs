//! The batches of `updates` through a database: dense ids, out-edges, over a snapshot with the graph or an empty one.
//!
//! The database is in memory, as the other containers are. With a WAL it is measured too.

use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{Durability, Engine, GraphOptions, KeyScheme, LoadOptions, Op};
use anden_formats::{InputPath, generated, write_file};
use anden_graph::generate::Generator;
use anyhow::Result;

use super::readers::{Live, Reading};
use super::{Batch, Container};
use crate::harness::seconds;

/// The kind of graph: directed, out-edges only, keys that are ids.
fn kind() -> GraphOptions {
    GraphOptions { keys: KeyScheme::Dense, in_edges: false, ..GraphOptions::default() }
}

/// A database without automatic checkpoints.
pub(super) struct ThroughDatabase {
    database: Arc<Engine>,
}

impl ThroughDatabase {
    /// A database in memory with an empty snapshot.
    pub(super) fn empty() -> Result<Self> {
        Ok(Self::without_snapshots(Engine::in_memory(kind())?))
    }

    /// An empty database with a WAL. Commits do not wait for it while its buffer has room.
    pub(super) fn logged(scratch: &Path) -> Result<Self> {
        let directory = scratch.join("updates-logged.anden");
        remove(&directory)?;
        let database = Engine::create(&directory, kind())?;
        database.set_durability(Durability::None);
        Ok(Self::without_snapshots(database))
    }

    /// A database in memory with a snapshot of the generator's edges.
    pub(super) fn over(generator: &Generator, pool: &Pool, scratch: &Path) -> Result<Self> {
        let text = scratch.join("updates-base.el");
        write_file(&text, |output| generated::write_edge_list(generator, pool, output))?;
        let options = LoadOptions { graph: kind(), ..LoadOptions::default() };
        let database = Engine::load_in_memory(&[InputPath::File(text.clone())], &options, pool, &Silent)?.0;
        std::fs::remove_file(text)?;
        Ok(Self::without_snapshots(database))
    }

    fn without_snapshots(database: Engine) -> Self {
        database.set_checkpoint_bytes(None);
        Self { database: Arc::new(database) }
    }

    fn apply(&mut self, pool: &Pool, batch: Batch<'_>, op: Op) -> Result<f64> {
        let (time, applied) = seconds(|| self.database.apply_edges(batch, op, pool));
        applied?;
        Ok(time)
    }
}

/// Removes the files of an earlier benchmark.
fn remove(directory: &Path) -> Result<()> {
    match directory.exists() {
        true => Ok(std::fs::remove_dir_all(directory)?),
        false => Ok(()),
    }
}

impl Container for ThroughDatabase {
    fn insert(&mut self, pool: &Pool, batch: Batch<'_>) -> Result<f64> {
        self.apply(pool, batch, Op::Insert)
    }

    fn remove(&mut self, pool: &Pool, batch: Batch<'_>) -> Result<f64> {
        self.apply(pool, batch, Op::Delete)
    }
}

impl Live for ThroughDatabase {
    fn reading(&self) -> Box<dyn Reading> {
        Box::new(Arc::clone(&self.database))
    }
}
