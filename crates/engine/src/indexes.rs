//! Creates, drops and lists indexes of vertex properties.

use anden_base::progress::Progress;
use anden_snapshots::{IndexInfo, IndexKind};

use crate::{Engine, Result};

impl Engine {
    /// Creates an index of a vertex property. On return it survives a power cut; a crash before leaves the database
    /// without it.
    ///
    /// Earlier commits become a snapshot first. The index is then collected while others read and commit. At the end,
    /// commits wait until the index covers those that came meanwhile, and is written.
    ///
    /// Cost: reads the property in all snapshots, and writes 8 bytes a value. Memory: 16 bytes a value.
    ///
    /// # Errors
    /// There is no such property, or it has an index. The index is to be unique, and two vertices share a value; the
    /// error names both. The handle cannot write; the memory does not suffice ([`set_memory`](Self::set_memory)); the
    /// disk failed; or `progress` cancelled it. Then there is no index.
    pub fn create_index(&self, property: &str, kind: IndexKind, progress: &dyn Progress) -> Result<()> {
        self.checkpoint_pending()?;
        let index = self.store().draft_index(property, kind, progress)?;
        self.change_indexes(|| Ok(self.store().publish_index(index)?))
    }

    /// Drops the index of a vertex property. Earlier commits become a snapshot first.
    ///
    /// # Errors
    /// There is no index; the handle cannot write; the disk failed.
    pub fn drop_index(&self, property: &str) -> Result<()> {
        self.require_writer()?;
        self.change_indexes(|| Ok(self.store().drop_index(property)?))
    }

    /// The indexes, in the order of their properties.
    pub fn indexes(&self) -> Vec<IndexInfo> {
        self.store().indexes()
    }

    /// Runs `body` while no commit runs and nothing lies over the newest snapshot. So all later commits maintain the
    /// new set of indexes.
    fn change_indexes(&self, body: impl FnOnce() -> Result<()>) -> Result<()> {
        // A running checkpoint ends first, so that commits go on beside it.
        self.live().wait_for_snapshot();
        let alone = self.be_alone()?;
        let guard = self.live().write_guard_at_snapshot(self.store())?;
        let changed = body();
        // Counted even if `body` failed and the disk is in an unknown state: a needless conflict is only retried.
        self.live().count_index_change();
        drop((guard, alone));
        changed
    }
}
