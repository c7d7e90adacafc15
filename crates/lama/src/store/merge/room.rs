//! How many pages a merge makes at once, by the memory that it may take.
//!
//! A merge streams: the lists of some pages are in memory while they are written, and nothing else of the graph. So
//! what it needs is set by the page with the most entries, and by how many of them workers hold at the same time.

use std::collections::HashMap;

use base::parallel::Pool;
use graph::{Graph, Side};

use super::super::State;
use crate::chain::LevelRef;
use crate::level::Level;
use crate::side::STATE_BYTES;
use crate::table::PAGE_VERTICES;
use crate::view::View;
use crate::{Error, Result, names};

/// What a merge holds whatever it merges: the program, and a buffer for each file that it writes.
const FIXED_BYTES: u64 = 24 << 20;

/// Pages for each worker where all make some: the one that it makes, and two that wait ([`Pool::in_order`]).
const PAGES_A_WORKER: u64 = 3;

/// The bytes of a file for each byte of its checksums, which wait in memory for the end of the file.
const CHECKSUM_SHARE: u64 = 1024;

/// An entry of a page while it is made and written: the target, and room for as many again while the list grows.
const ENTRY_BYTES: u64 = 12;

/// The same of its weight, as bits and as it is written, or of its row.
const DATA_BYTES: u64 = 40;

/// An arc that levels change, in all copies from its level to the page.
const CHANGED_ARC_BYTES: u64 = 64;

/// A column of properties and its new form, for each byte of its file.
const COLUMN_COPIES: u64 = 3;

/// A value of a property that has no file yet.
const VALUE_BYTES: u64 = 8;

/// An entry of an index that is written anew: [`COLUMN_COPIES`] of it are more than it takes.
const INDEX_ENTRY_BYTES: u64 = 8;

/// Changed values are found by vertex before they are laid over a column.
const CHANGED_VALUE_COPIES: u64 = 8;

/// A page of a level in the lists of those that are composed.
const PLACE_BYTES: u64 = 32;

/// Of what a level changes beside lists, while it is composed: all parts, sorted, and what they come to, twice.
const COMPOSED_COPIES: u64 = 5;

/// What is made of the lists at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// All workers make pages, and some wait to be written.
    ForMany,
    /// One page after the other.
    ForOne,
}

impl Room {
    /// As much as fits in `budget`; `None`: as much as is fastest.
    ///
    /// # Errors
    /// [`Error::Memory`]: the largest page alone does not fit.
    pub(super) fn new(state: &State, view: &View, pool: &Pool, budget: Option<u64>) -> Result<Self> {
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

/// Wants what a merge of these levels into one needs, a page of changes at a time.
///
/// # Errors
/// [`Error::Memory`]: it does not fit. A level is damaged.
pub(super) fn require_for_level(levels: &[Level], budget: Option<u64>) -> Result<()> {
    let Some(budget) = budget else { return Ok(()) };
    let (mut largest, mut num_pages) = (0, 0);
    for side in [Side::Out, Side::In] {
        let mut num_changed: HashMap<u32, u64> = HashMap::new();
        for (page, num_arcs) in
            levels.iter().map(|level| level.page_arcs(side)).collect::<base::Result<Vec<_>>>()?.concat()
        {
            *num_changed.entry(page).or_default() += num_arcs;
            num_pages += 1;
        }
        largest = num_changed.into_values().max().unwrap_or(0).max(largest);
    }
    let num_bytes: u64 = levels.iter().map(Level::num_bytes).sum();
    let unpaged: u64 = levels.iter().map(Level::num_unpaged_bytes).sum();
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

/// What is held from the beginning to the end.
fn held_bytes(state: &State, view: &View) -> u64 {
    let manifest = &state.manifest;
    let len_of = |name: &str| manifest.files.iter().filter(|file| file.name == name).map(|file| file.len).sum::<u64>();
    let run_bytes: u64 = manifest.files.iter().filter(|file| names::is_run(&file.name)).map(|file| file.len).sum();
    let level_bytes: u64 = manifest.chain.level_refs().map(|place: LevelRef| state.level(place).num_bytes()).sum();
    let properties = view.properties().stored();
    let num_rows = view.vertex_bound() as u64;
    let column_bytes = |column: usize, file: Option<u32>| {
        let stored = file.map_or(VALUE_BYTES * num_rows, |number| len_of(&names::column(number)));
        let entries = if manifest.properties[column].index.is_some() { INDEX_ENTRY_BYTES * num_rows } else { 0 };
        stored + CHANGED_VALUE_COPIES * properties.changed_bytes(column as u32) + entries
    };
    let changed = manifest.properties.iter().enumerate().filter(|(column, _)| properties.has_changed(*column as u32));
    let columns = changed.map(|(column, record)| column_bytes(column, record.file));
    let num_pages = view.vertex_bound().div_ceil(PAGE_VERTICES) as u64;
    let num_dead = (view.vertex_bound() - view.num_vertices()) as u64;
    FIXED_BYTES
        + (run_bytes + level_bytes) / CHECKSUM_SHARE
        + STATE_BYTES * num_pages
        + size_of::<u32>() as u64 * num_dead
        + COLUMN_COPIES * columns.max().unwrap_or(0)
}

/// What the largest page takes while it is made and written.
fn largest_page_bytes(view: &View) -> Result<u64> {
    let num_columns = u64::from(view.options().weight_type.is_some()) + u64::from(view.options().has_rows());
    let entry_bytes = ENTRY_BYTES + DATA_BYTES * num_columns;
    let mut largest = 0;
    for side in [Side::Out, Side::In] {
        let Some(lists) = view.side(side) else { continue };
        let (stored, changed) = lists.most_entries()?;
        let bytes = stored.iter().zip(&changed).map(|(&stored, &changed)| {
            entry_bytes.saturating_mul(stored + changed).saturating_add(CHANGED_ARC_BYTES.saturating_mul(changed))
        });
        largest = bytes.max().unwrap_or(0).max(largest);
    }
    Ok(largest)
}
