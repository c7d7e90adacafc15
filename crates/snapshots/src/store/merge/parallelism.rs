//! Chooses how many pages a merge makes at once, by its memory budget.
//!
//! A merge streams: it holds the lists of some pages while they are written, and nothing else of the graph. So its
//! memory follows from the page with the most entries, and from the number of pages that workers hold.

use std::collections::HashMap;

use anden_base::parallel::Pool;
use anden_graph::{Direction, Graph};

use super::super::PublishedState;
use crate::adjacency::STATE_BYTES;
use crate::chain::DeltaRef;
use crate::delta::Delta;
use crate::table::PAGE_VERTICES;
use crate::view::SnapshotView;
use crate::{Error, Result, names};

/// Memory of a merge that does not depend on the graph: the program, and a buffer for each written file.
const FIXED_BYTES: u64 = 24 << 20;

/// Pages for each worker: the one that it makes, and two that wait ([`Pool::in_order`]).
const PAGES_A_WORKER: u64 = 3;

/// Bytes of a file for each byte of its checksums, which stay in memory until the file ends.
const CHECKSUM_SHARE: u64 = 1024;

/// Bytes of an entry while its page is made and written: the target, and room to grow by as much.
const ENTRY_BYTES: u64 = 12;

/// Bytes of an entry's weight, as bits and as written, or of its row, with room to grow.
const DATA_BYTES: u64 = 40;

/// Bytes of a changed arc, in all its copies from the delta to the page.
const CHANGED_ARC_BYTES: u64 = 64;

/// Copies of a property column for each byte of its file: the old one and the new one.
const COLUMN_COPIES: u64 = 3;

/// Bytes of a property value that has no file yet.
const VALUE_BYTES: u64 = 8;

/// Bytes of a rewritten index entry; multiplied by [`COLUMN_COPIES`], that is more than it takes.
const INDEX_ENTRY_BYTES: u64 = 8;

/// Copies of changed values: a map finds them by vertex before they are laid over a column.
const CHANGED_VALUE_COPIES: u64 = 8;

/// Bytes of a page in the page lists of composed deltas.
const PLACE_BYTES: u64 = 32;

/// Copies of a delta's changes outside of lists during composition: the inputs, sorted, and twice the result.
const COMPOSED_COPIES: u64 = 5;

/// How many pages a merge makes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MergeParallelism {
    /// All workers make pages, and some wait to be written.
    ForMany,
    /// One page after the other.
    ForOne,
}

impl MergeParallelism {
    /// The largest scope that fits in `budget`; `None`: the fastest.
    ///
    /// # Errors
    /// [`Error::Memory`]: the largest page alone does not fit.
    pub(super) fn new(state: &PublishedState, view: &SnapshotView, pool: &Pool, budget: Option<u64>) -> Result<Self> {
        let Some(budget) = budget else { return Ok(Self::ForMany) };
        let (largest, held) = (largest_page_bytes(view)?, held_bytes(state, view));
        let needs = |num_pages: u64| held.saturating_add(largest.saturating_mul(num_pages));
        match (needs(PAGES_A_WORKER * pool.num_threads() as u64 + 1), needs(1)) {
            (many, _) if many <= budget => Ok(Self::ForMany),
            (_, one) if one <= budget => Ok(Self::ForOne),
            (_, needed) => Err(Error::Memory { what: "a merge".into(), needed, budget }),
        }
    }
}

/// Refuses if the budget does not hold a merge of these deltas into one, a page of changes at a time.
///
/// # Errors
/// [`Error::Memory`]: the budget does not suffice. A delta is damaged.
pub(super) fn require_for_delta(deltas: &[Delta], budget: Option<u64>) -> Result<()> {
    let Some(budget) = budget else { return Ok(()) };
    let (mut largest, mut num_pages) = (0, 0);
    for direction in [Direction::Out, Direction::In] {
        let mut num_changed: HashMap<u32, u64> = HashMap::new();
        for (page, num_arcs) in
            deltas.iter().map(|delta| delta.page_arcs(direction)).collect::<anden_base::Result<Vec<_>>>()?.concat()
        {
            // The changes of one page are in memory together, over all deltas.
            *num_changed.entry(page).or_default() += num_arcs;
            num_pages += 1;
        }
        largest = num_changed.into_values().max().unwrap_or(0).max(largest);
    }
    let num_bytes: u64 = deltas.iter().map(Delta::num_bytes).sum();
    let unpaged: u64 = deltas.iter().map(Delta::num_unpaged_bytes).sum();
    let needed = FIXED_BYTES
        + num_bytes / CHECKSUM_SHARE
        + PLACE_BYTES * num_pages
        + CHANGED_ARC_BYTES * largest
        + COMPOSED_COPIES * unpaged;
    match budget < needed {
        true => Err(Error::Memory { what: "a merge of the newest snapshots".into(), needed, budget }),
        false => Ok(()),
    }
}

/// Bytes that are held during the whole merge.
fn held_bytes(state: &PublishedState, view: &SnapshotView) -> u64 {
    let manifest = &state.manifest;
    let len_of = |name: &str| manifest.files.iter().filter(|file| file.name == name).map(|file| file.len).sum::<u64>();
    let base_bytes: u64 = manifest.files.iter().filter(|file| names::is_base(&file.name)).map(|file| file.len).sum();
    let delta_bytes: u64 = manifest.chain.delta_refs().map(|place: DeltaRef| state.delta(place).num_bytes()).sum();
    let properties = view.properties().stored();
    let num_rows = view.vertex_bound() as u64;
    let column_bytes = |column: usize, file: Option<u32>| {
        let stored = file.map_or(VALUE_BYTES * num_rows, |number| len_of(&names::column(number)));
        let entries = if manifest.properties[column].index.is_some() { INDEX_ENTRY_BYTES * num_rows } else { 0 };
        stored + CHANGED_VALUE_COPIES * properties.changed_bytes(column as u32) + entries
    };
    // A merge rewrites only the columns that deltas change.
    let changed = manifest.properties.iter().enumerate().filter(|(column, _)| properties.has_changed(*column as u32));
    let columns = changed.map(|(column, record)| column_bytes(column, record.file));
    let num_pages = view.vertex_bound().div_ceil(PAGE_VERTICES) as u64;
    let num_dead = (view.vertex_bound() - view.num_vertices()) as u64;
    FIXED_BYTES
        + (base_bytes + delta_bytes) / CHECKSUM_SHARE
        + STATE_BYTES * num_pages
        + size_of::<u32>() as u64 * num_dead
        // Columns are written one after the other, so the largest one counts.
        + COLUMN_COPIES * columns.max().unwrap_or(0)
}

/// Bytes of the largest page while it is made and written.
fn largest_page_bytes(view: &SnapshotView) -> Result<u64> {
    let num_columns = u64::from(view.options().weight_type.is_some()) + u64::from(view.options().has_rows());
    let entry_bytes = ENTRY_BYTES + DATA_BYTES * num_columns;
    let mut largest = 0;
    for direction in [Direction::Out, Direction::In] {
        let Some(lists) = view.adjacency(direction) else { continue };
        let (stored, changed) = lists.most_entries()?;
        let bytes = stored.iter().zip(&changed).map(|(&stored, &changed)| {
            entry_bytes.saturating_mul(stored + changed).saturating_add(CHANGED_ARC_BYTES.saturating_mul(changed))
        });
        // Directions are written one after the other, so the larger page counts.
        largest = bytes.max().unwrap_or(0).max(largest);
    }
    Ok(largest)
}
