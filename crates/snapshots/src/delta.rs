//! Deltas: the changes from one version to a later one.
//!
//! A delta holds the net changes of every list, page by page: the added and the removed arcs. Read backward, it leads
//! from the later version to the earlier one. Most deltas are small, so one file holds one or many. Its sections are
//! those of the deltas one after the other, and a directory gives the share of each.
//!
//! A changed arc takes 4 bytes, and its weight and row. A changed vertex takes 4 bytes, a changed page 16, a delta 104.
//! If vertex properties change, a delta holds their new and old values, column by column.

mod compose;
mod properties;
mod reader;
mod section;
mod stored;
mod writer;

pub(crate) use compose::{compose_deltas, net_deaths, net_properties};
pub(crate) use reader::{Delta, DeltaFile};
pub(crate) use section::Spill;
pub(crate) use stored::{StoredList, StoredPage, StoredPlace};
pub(crate) use writer::DeltaWriter;

use anden_base::VertexId;
use anden_graph::{Direction, Weight, WeightType};
use bytemuck::{Pod, Zeroable};

use crate::changes::{ChangedList, ListEntries, PageChanges};
use crate::file::SectionKind;
use crate::options::GraphOptions;
use crate::table::{PAGE_SHIFT, PAGE_VERTICES};

/// Directory entry: a delta, and its share of each section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct DeltaEntry {
    from: u32,
    to: u32,
    /// Vertex bound of the version `to`.
    vertex_bound: u64,
    directions: [AdjacencyCounts; 2],
    num_died: u64,
    num_returned: u64,
    /// Number of property columns that change.
    num_columns: u64,
}

/// A delta's share of each section of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct AdjacencyCounts {
    num_pages: u64,
    /// Number of vertex entries.
    num_vertices: u64,
    /// Added and removed arcs; together, they are the targets.
    num_added: u64,
    num_removed: u64,
}

/// Index entry of a delta: a page with changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct DeltaPageEntry {
    page: u32,
    /// Index of the page's first entry among the delta's vertex entries.
    vertices_start: u32,
    /// Index of the page's first arc among the delta's targets.
    targets_start: u64,
}

const _: () =
    assert!(size_of::<DeltaEntry>() == 104 && size_of::<AdjacencyCounts>() == 32 && size_of::<DeltaPageEntry>() == 16);

/// Vertex entry: position in the page, and numbers of added and removed arcs. A vertex with larger numbers has several
/// entries, whose numbers add up; all but the last are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct VertexEntry {
    local: u16,
    num_added: u32,
    num_removed: u32,
}

impl VertexEntry {
    /// Largest number in an entry.
    const MAX_COUNT: u32 = (1 << Self::COUNT_BITS) - 1;
    const COUNT_BITS: u32 = 11;

    fn encode(self) -> u32 {
        u32::from(self.local) << (2 * Self::COUNT_BITS) | self.num_added << Self::COUNT_BITS | self.num_removed
    }

    fn decode(bits: u32) -> Self {
        Self {
            local: (bits >> (2 * Self::COUNT_BITS)) as u16,
            num_added: bits >> Self::COUNT_BITS & Self::MAX_COUNT,
            num_removed: bits & Self::MAX_COUNT,
        }
    }

    /// Whether this entry may come right after `last`.
    fn follows(self, last: Self) -> bool {
        // Only a full count may continue in the next entry, so each list has one form.
        let goes_on = |count, last_count| count == 0 || last_count == Self::MAX_COUNT;
        self.local > last.local
            || self.local == last.local
                && goes_on(self.num_added, last.num_added)
                && goes_on(self.num_removed, last.num_removed)
    }
}

const _: () = assert!(PAGE_SHIFT + 2 * VertexEntry::COUNT_BITS == u32::BITS);

/// The sections of one direction.
struct AdjacencySections {
    pages: SectionKind,
    vertices: SectionKind,
    targets: SectionKind,
    weights: SectionKind,
    rows: SectionKind,
}

const DIRECTIONS: [Direction; 2] = [Direction::Out, Direction::In];

fn direction_index(direction: Direction) -> usize {
    match direction {
        Direction::Out => 0,
        Direction::In => 1,
    }
}

fn sections(direction: Direction) -> AdjacencySections {
    match direction {
        Direction::Out => AdjacencySections {
            pages: SectionKind::OutDeltaPages,
            vertices: SectionKind::OutDeltaVertices,
            targets: SectionKind::OutDeltaTargets,
            weights: SectionKind::OutDeltaWeights,
            rows: SectionKind::OutDeltaRows,
        },
        Direction::In => AdjacencySections {
            pages: SectionKind::InDeltaPages,
            vertices: SectionKind::InDeltaVertices,
            targets: SectionKind::InDeltaTargets,
            weights: SectionKind::InDeltaWeights,
            rows: SectionKind::InDeltaRows,
        },
    }
}

/// Rules for the changes of a page, checked before writing and at the first read.
#[derive(Clone, Copy, Debug)]
struct ChangeRules {
    vertex_bound: usize,
    multigraph: bool,
    weight_type: Option<WeightType>,
    has_rows: bool,
}

impl ChangeRules {
    fn new(vertex_bound: usize, options: &GraphOptions) -> Self {
        let GraphOptions { multigraph, weight_type, .. } = *options;
        Self { vertex_bound, multigraph, weight_type, has_rows: options.has_rows() }
    }

    /// Checks the changes of a page. Cost: one pass over them.
    ///
    /// # Errors
    /// Description of the fault, with list or target.
    fn check(&self, page: usize, changes: &PageChanges) -> Result<(), String> {
        let ListEntries { targets, weights, rows } = changes.entries();
        for (column, has_column, name) in
            [(weights, self.weight_type.is_some(), "weights"), (rows, self.has_rows, "rows")]
        {
            let expected = if has_column { targets.len() } else { 0 };
            if column.len() != expected {
                return Err(format!("{expected} {name} expected, {} found", column.len()));
            }
        }
        if let Some(&bits) = self.weight_type.and_then(|weight_type| first_bad_weight(weight_type, weights)) {
            return Err(format!("a weight that is no number ({bits:#x})"));
        }
        changes.lists().try_for_each(|list| self.check_list(page, &list))
    }

    fn check_list(&self, page: usize, list: &ChangedList<'_>) -> Result<(), String> {
        let vertex = page * PAGE_VERTICES + list.local as usize;
        if vertex >= self.vertex_bound {
            return Err(format!("a vertex below {} expected, {vertex} found", self.vertex_bound));
        }
        for entries in [list.added, list.removed] {
            if !self.is_ascending(entries) {
                let what = if self.multigraph { "ascend" } else { "ascend strictly" };
                return Err(format!("changes of vertex {vertex} that {what} expected"));
            }
            // The targets ascend, so the last one is the largest.
            if let Some(&last) = entries.targets.last()
                && last as usize >= self.vertex_bound
            {
                return Err(format!("a target below {} expected, {last} found", self.vertex_bound));
            }
        }
        match first_common(list) {
            Some(target) => Err(format!("the edge from {vertex} to {target} is both added and removed")),
            None => Ok(()),
        }
    }

    fn is_ascending(&self, entries: ListEntries<'_>) -> bool {
        let (targets, keys) = (entries.targets, entries.keys());
        if !self.multigraph {
            return targets.windows(2).all(|pair| pair[0] < pair[1]);
        }
        // Parallel arcs ascend by row or weight, so that one walk finds common entries.
        let has_order = |i: usize| keys.is_empty() || keys[i] <= keys[i + 1];
        targets.windows(2).enumerate().all(|(i, pair)| pair[0] < pair[1] || pair[0] == pair[1] && has_order(i))
    }
}

/// The first of these bits that are no weight of the type.
fn first_bad_weight(weight_type: WeightType, weights: &[u64]) -> Option<&u64> {
    let is_wide = |bits: &&u64| **bits > u64::from(u32::MAX);
    match weight_type {
        WeightType::U32 => weights.iter().find(is_wide),
        WeightType::I64 => None,
        WeightType::F32 => weights.iter().find(|bits| is_wide(bits) || !f32::of_bits(**bits).is_number()),
        WeightType::F64 => weights.iter().find(|bits| !f64::of_bits(**bits).is_number()),
    }
}

/// The first target that is added and removed with equal rows, or equal weights. Both parts ascend.
fn first_common(list: &ChangedList<'_>) -> Option<VertexId> {
    let key = |keys: &[u64], i: usize| keys.get(i).copied().unwrap_or(0);
    let (mut a, mut r) = (0, 0);
    while let (Some(&added), Some(&removed)) = (list.added.targets.get(a), list.removed.targets.get(r)) {
        match (added, key(list.added.keys(), a)).cmp(&(removed, key(list.removed.keys(), r))) {
            std::cmp::Ordering::Less => a += 1,
            std::cmp::Ordering::Greater => r += 1,
            std::cmp::Ordering::Equal => return Some(added),
        }
    }
    None
}

/// Checks that vertices that died or returned ascend strictly below the bound.
fn check_vertices(vertices: &[VertexId], vertex_bound: usize) -> Result<(), String> {
    let ascends = vertices.windows(2).all(|pair| pair[0] < pair[1]);
    if !ascends || vertices.last().is_some_and(|&last| last as usize >= vertex_bound) {
        return Err(format!("vertices that ascend strictly below {vertex_bound} expected"));
    }
    Ok(())
}

/// The first vertex in both slices, which ascend.
fn first_in_both(died: &[VertexId], returned: &[VertexId]) -> Option<VertexId> {
    // The shorter one is walked, because each of its vertices takes a search.
    let (short, long) = if died.len() < returned.len() { (died, returned) } else { (returned, died) };
    short.iter().find(|vertex| long.binary_search(vertex).is_ok()).copied()
}

#[cfg(test)]
mod tests;
