//! The stores that one-edge commits are compared with.

use std::path::Path;

use anyhow::{Result, ensure};
use redb::ReadableDatabase;
use rusqlite::params;

use super::{INSERT, Sqlite, fresh};
use crate::transactions::ground::WeightedEdge;

/// The failure that a commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// A power cut.
    Sync,
    /// A killed process.
    Batched,
    /// Nothing.
    Nothing,
}

/// A store that inserts an edge in a transaction of its own.
pub(crate) trait Store: Sync {
    fn insert(&self, edge: WeightedEdge) -> Result<()>;
}

impl Store for Sqlite {
    fn insert(&self, (source, target, weight): WeightedEdge) -> Result<()> {
        self.connection().prepare_cached(INSERT)?.execute(params![source, target, weight])?;
        Ok(())
    }
}

const EDGES: redb::TableDefinition<'_, (u32, u32), u32> = redb::TableDefinition::new("edges");

struct Redb {
    database: redb::Database,
    durability: redb::Durability,
}

impl Redb {
    fn create(path: &Path, durability: redb::Durability) -> Result<Self> {
        let database = redb::Database::builder().set_cache_size(512 << 20).create(path)?;
        let write = database.begin_write()?;
        write.open_table(EDGES)?;
        write.commit()?;
        ensure!(database.begin_read()?.open_table(EDGES).is_ok(), "redb has no table");
        Ok(Self { database, durability })
    }
}

impl Store for Redb {
    fn insert(&self, (source, target, weight): WeightedEdge) -> Result<()> {
        let mut write = self.database.begin_write()?;
        write.set_durability(self.durability)?;
        write.open_table(EDGES)?.insert((source, target), weight)?;
        write.commit()?;
        Ok(())
    }
}

/// New stores with this promise, and their names.
pub(crate) fn stores(directory: &Path, promise: Promise) -> Result<Vec<(&'static str, Box<dyn Store>)>> {
    let (synchronous, name) = match promise {
        Promise::Sync => ("FULL", "SQLite FULL"),
        Promise::Batched => ("NORMAL", "SQLite NORMAL"),
        Promise::Nothing => ("OFF", "SQLite OFF"),
    };
    let sqlite = Sqlite::create(&fresh(directory, "rival.sqlite")?, synchronous)?;
    let mut stores: Vec<(&'static str, Box<dyn Store>)> = vec![(name, Box::new(sqlite))];
    let durability = match promise {
        Promise::Sync => Some((redb::Durability::Immediate, "redb Immediate")),
        Promise::Batched => None,
        Promise::Nothing => Some((redb::Durability::None, "redb None")),
    };
    if let Some((durability, name)) = durability {
        stores.push((name, Box::new(Redb::create(&fresh(directory, "rival.redb")?, durability)?)));
    }
    Ok(stores)
}
