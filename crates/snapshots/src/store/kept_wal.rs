//! How much of the WAL stays for the change feed, although a snapshot has its commits.

use super::Store;
use crate::Result;

impl Store {
    /// Bytes of WAL segments that stay although a snapshot has their commits; initially 0.
    pub fn keep_wal(&self) -> u64 {
        self.state().manifest.keep_wal
    }

    /// Sets [`keep_wal`](Self::keep_wal), durably.
    ///
    /// # Errors
    /// The handle cannot write, or the disk failed.
    pub fn set_keep_wal(&self, num_bytes: u64) -> Result<()> {
        let draft = self.begin()?;
        let mut manifest = draft.state.manifest.clone();
        // Without a change, no manifest is written.
        if manifest.keep_wal == num_bytes {
            return Ok(());
        }
        manifest.keep_wal = num_bytes;
        draft.publish(manifest)?;
        tracing::info!(bytes = num_bytes, "set how much of the WAL is kept");
        Ok(())
    }
}
