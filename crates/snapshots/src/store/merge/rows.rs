//! Reclaims the rows of edges that no arc names any more.
//!
//! Arcs of the base name rows, and so do arcs that deltas add or remove. A merge reads the whole graph anyway, and
//! marks the rows that it meets. The deltas that stay are read for their rows. Open views keep the files that they
//! have.

use anden_graph::Direction;
use std::sync::Arc;

use anden_base::bitmap::Bitmap;

use crate::Result;
use crate::changes::PageChanges;
use crate::file::FileKind;
use crate::manifest::Manifest;
use crate::property::{EdgeColumns, NewColumns, write_columns};
use crate::store::PublishedState;
use crate::store::draft::Draft;

/// Rows are rewritten once one part in this many can go, so that a reclaimed byte costs few written ones.
const RECLAIMED_SHARE: u64 = 4;

/// The rows that arcs name, as a bit for each position. Rows that are added meanwhile have later positions.
#[derive(Debug)]
pub(super) struct NamedRows {
    columns: Arc<EdgeColumns>,
    bits: Bitmap,
}

impl NamedRows {
    /// No row is marked yet.
    pub fn new(columns: &Arc<EdgeColumns>) -> Self {
        Self { columns: Arc::clone(columns), bits: Bitmap::new(columns.num_rows() as usize) }
    }

    /// Marks rows as named.
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

    /// The marks among the rows of `columns`, which begin with these rows.
    fn among(self, columns: &Arc<EdgeColumns>) -> Self {
        let mut longer = Self::new(columns);
        self.bits.iter_ones().for_each(|place| longer.bits.set(place));
        longer
    }

    /// Marks the rows that deltas between the versions of `manifest` name.
    fn mark_deltas(&mut self, state: &PublishedState, manifest: &Manifest) -> Result<()> {
        let mut changes = PageChanges::default();
        // Older snapshots are read through these deltas, so their rows stay, too.
        for pair in manifest.chain.versions.windows(2) {
            for delta in state.deltas_between(pair[0].number, pair[1].number) {
                for page in delta.pages(Direction::Out)? {
                    delta.read_page(Direction::Out, page as usize, &mut changes)?;
                    self.mark(changes.entries().rows)?;
                }
            }
        }
        Ok(())
    }
}

impl Draft<'_> {
    /// Rewrites the rows, without those that neither `named` (the rows of the base) nor a delta names, if enough can
    /// go. `manifest` then has the new rows.
    ///
    /// Cost: reads the deltas. A rewrite copies all rows, some thousands at a time.
    pub(super) fn reclaim_rows(&mut self, manifest: &mut Manifest, named: NamedRows) -> Result<()> {
        let state = Arc::clone(&self.state);
        let columns = &state.rows;
        let mut named = named.among(columns);
        named.mark_deltas(&state, manifest)?;
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
