//! Reclaims the rows of edges that nothing names any more.
//!
//! Rows are named by the entries of lists: those of the base run, and those that levels add or remove. A merge reads the
//! whole graph anyway, and notes the rows that it meets; the levels that stay are read for theirs. Views that are open
//! keep the files that they have.

use std::sync::Arc;

use base::bitmap::Bitmap;
use graph::Side;

use crate::Result;
use crate::changes::PageChanges;
use crate::file::FileKind;
use crate::manifest::Manifest;
use crate::property::{EdgeColumns, NewColumns, write_columns};
use crate::store::State;
use crate::store::draft::Draft;

/// Rows are written anew once this part of them can go: then each byte that is reclaimed costs a few that are written.
const RECLAIMED_SHARE: u64 = 4;

/// The rows that are named, by their places among all rows. Rows that are added meanwhile come behind these.
#[derive(Debug)]
pub(super) struct NamedRows {
    columns: Arc<EdgeColumns>,
    bits: Bitmap,
}

impl NamedRows {
    /// None yet.
    pub fn new(columns: &Arc<EdgeColumns>) -> Self {
        Self { columns: Arc::clone(columns), bits: Bitmap::new(columns.num_rows() as usize) }
    }

    /// These are named.
    ///
    /// # Errors
    /// The numbers of the rows are damaged.
    pub fn mark(&mut self, rows: &[u64]) -> Result<()> {
        for &row in rows {
            if let Some(place) = self.columns.place(row)? {
                self.bits.set(place as usize);
            }
        }
        Ok(())
    }

    /// The same among the rows of `columns`, which begin with these.
    fn among(self, columns: &Arc<EdgeColumns>) -> Self {
        let mut longer = Self::new(columns);
        self.bits.iter_ones().for_each(|place| longer.bits.set(place));
        longer
    }

    /// Adds what the levels of a chain name, which leads through the versions of `manifest`.
    fn mark_levels(&mut self, state: &State, manifest: &Manifest) -> Result<()> {
        let mut changes = PageChanges::default();
        for pair in manifest.chain.versions.windows(2) {
            for level in state.levels_between(pair[0].number, pair[1].number) {
                for page in level.pages(Side::Out)? {
                    level.read_page(Side::Out, page as usize, &mut changes)?;
                    self.mark(changes.entries().rows)?;
                }
            }
        }
        Ok(())
    }
}

impl Draft<'_> {
    /// Writes the rows anew without those that neither `named` has, the rows of the base run, nor a level names, where
    /// these are many. They are the rows as `manifest` has them from then on.
    ///
    /// Cost: the levels are read. Of many, all rows are copied, some thousands at a time.
    pub(super) fn reclaim_rows(&mut self, manifest: &mut Manifest, named: NamedRows) -> Result<()> {
        let state = Arc::clone(&self.state);
        let columns = &state.rows;
        let mut named = named.among(columns);
        named.mark_levels(&state, manifest)?;
        let (num_rows, num_named) = (columns.num_rows(), named.bits.count_ones() as u64);
        if (num_rows - num_named) * RECLAIMED_SHARE < num_rows || num_rows == num_named {
            return Ok(());
        }
        manifest.rows.clear();
        if num_named == 0 {
            return Ok(());
        }
        let runs = columns.runs_of(&named.bits)?;
        let types = columns.types(&columns.parts, false);
        let file_number = self.next_file();
        let new = NewColumns { file_number, kind: FileKind::Rows, runs: &runs, num_rows: num_named, columns: &types };
        let (storage, path) = (&*self.store.storage, &*self.store.path);
        let file = write_columns(storage, path, manifest.created.id, new, &|place, take| {
            columns.copy_some(&named.bits, types[place].0, take)
        })?;
        self.add(file);
        manifest.rows.push(file_number);
        Ok(())
    }
}
