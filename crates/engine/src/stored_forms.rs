//! Forms that kernels prepare from the base's version, stored beside the base.

use anden_base::progress::Progress;
use anden_graph::StoredFormKey;
use anden_snapshots::{SnapshotView, StoredForms};

use crate::{Engine, Result};

impl Engine {
    /// The number of the base's version.
    pub fn base_version(&self) -> u32 {
        self.store().base_version()
    }

    /// The base's version, if `view` shows it and nothing else.
    ///
    /// # Errors
    /// The handle cannot write. The view has changes over the base, so a form of the base would not serve it.
    pub fn require_base(&self, view: &SnapshotView) -> Result<u32> {
        self.require_writer()?;
        let version = self.base_version();
        match view.version() {
            Some(shown) if shown == version => Ok(version),
            _ => {
                let what = "cannot prepare: the graph has changes over its base, and a prepared form is of the base only; \
                            checkpoint and merge first";
                Err(anden_snapshots::Error::Input(what.into()).into())
            }
        }
    }

    /// The graph at the base's version.
    ///
    /// # Errors
    /// An earlier read found damage.
    pub fn base_view(&self) -> Result<SnapshotView> {
        self.require_here()?;
        Ok(self.store().base_view()?)
    }

    /// The stored forms; `None` if there are none.
    pub fn stored_forms(&self) -> Option<StoredForms> {
        self.store().stored_forms()
    }

    /// Stores a form of the base's version, in place of an older copy of it. Returns the bytes of its file. On return
    /// it survives a power cut. It leaves the database with its base.
    ///
    /// # Errors
    /// A merge replaced the base of `version`; the handle cannot write; the disk failed; or `progress` cancelled it.
    /// The database is unchanged.
    pub fn store_form(
        &self,
        version: u32,
        key: StoredFormKey,
        arrays: &[Vec<&[u8]>],
        progress: &dyn Progress,
    ) -> Result<u64> {
        self.require_writer()?;
        Ok(self.store().store_form(version, key, arrays, progress)?)
    }
}
