//! Indexes of properties: made, dropped and listed.

use base::progress::Progress;
use lama::{IndexInfo, IndexKind};

use crate::{Database, Result};

impl Database {
    /// Makes an index of a property of vertices. When this returns, it survives a power cut; a crash before leaves the
    /// database without it.
    ///
    /// What was committed since the newest snapshot becomes a snapshot first. The index is then collected while others
    /// read and commit. At last commits wait until it has what was committed meanwhile, and is written.
    ///
    /// Cost: reads the property in all snapshots, and writes 8 bytes a value. Memory: 16 bytes a value.
    ///
    /// # Errors
    /// There is no such property, or it has an index; two vertices have the same value and the index is to be unique, and
    /// both are named; the handle cannot write, the memory does not suffice ([`set_memory`](Self::set_memory)), the disk
    /// failed, or the caller wanted it. There is no index then.
    pub fn create_index(&self, property: &str, kind: IndexKind, progress: &dyn Progress) -> Result<()> {
        self.checkpoint_pending()?;
        let index = self.store().draft_index(property, kind, progress)?;
        self.change_indexes(|| Ok(self.store().publish_index(index)?))
    }

    /// Drops the index of a property of vertices. What was committed since the newest snapshot becomes a snapshot first.
    ///
    /// # Errors
    /// There is none; the handle cannot write, or the disk failed.
    pub fn drop_index(&self, property: &str) -> Result<()> {
        self.require_writer()?;
        self.change_indexes(|| Ok(self.store().drop_index(property)?))
    }

    /// The indexes, in the order of their properties.
    pub fn indexes(&self) -> Vec<IndexInfo> {
        self.store().indexes()
    }

    /// Does something while no commit runs and nothing lies over the newest snapshot: what is committed afterwards knows
    /// the indexes that there are then.
    fn change_indexes(&self, body: impl FnOnce() -> Result<()>) -> Result<()> {
        self.live().wait_for_snapshot();
        let alone = self.be_alone()?;
        let turn = self.live().turn_at_snapshot(self.store())?;
        let changed = body();
        // Also where it is not known what the disk holds: a transaction that loses in vain is tried again.
        self.live().count_index_change();
        drop((turn, alone));
        changed
    }
}
