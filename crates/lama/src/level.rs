//! Levels: what changed from one version to a later one.
//!
//! A level holds the net changes of every list, page by page: which arcs are added and which are removed.
//! Read backwards, it leads from the later version to the earlier one. Most levels are small, so a file holds one
//! or many of them: its sections are those of the levels one after the other, and a directory says whose is what.
//! A changed arc takes 4 bytes, its weight and its row; a changed vertex 4, a page with changes 16, a level 104. Where
//! properties of vertices change, a level holds their new and their old values, column by column.

mod compose;
mod properties;
mod reader;
mod section;
mod stored;
mod writer;

pub(crate) use compose::{compose_levels, net_deaths, net_properties};
pub(crate) use reader::{Level, LevelFile};
pub(crate) use section::Spill;
pub(crate) use stored::{StoredList, StoredPage, StoredPlace};
pub(crate) use writer::LevelWriter;

use base::VertexId;
use bytemuck::{Pod, Zeroable};
use graph::{Side, Weight, WeightType};

use crate::changes::{ChangedList, Entries, PageChanges};
use crate::file::SectionKind;
use crate::options::GraphOptions;
use crate::table::{PAGE_SHIFT, PAGE_VERTICES};

/// An entry of the directory: a level, and its share of each section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct LevelEntry {
    from: u32,
    to: u32,
    /// Of the version that the level leads to.
    vertex_bound: u64,
    sides: [SideCounts; 2],
    num_died: u64,
    num_returned: u64,
    /// Columns of properties that change.
    num_columns: u64,
}

/// How much of each section of a side belongs to a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct SideCounts {
    num_pages: u64,
    /// Entries of vertices.
    num_vertices: u64,
    /// Together they are the targets.
    num_added: u64,
    num_removed: u64,
}

/// An entry of the index of a level: a page with changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct PageEntry {
    page: u32,
    /// Where the page's entries start among the level's of vertices.
    vertices_start: u32,
    /// Where its arcs start among the level's targets.
    targets_start: u64,
}

const _: () = assert!(size_of::<LevelEntry>() == 104 && size_of::<SideCounts>() == 32 && size_of::<PageEntry>() == 16);

/// An entry of a vertex: its place in the page, and how many arcs were added and removed. Who has more than fit has
/// several entries that add up, all but the last of them full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct VertexEntry {
    local: u16,
    num_added: u32,
    num_removed: u32,
}

impl VertexEntry {
    /// What fits into an entry.
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

    /// Whether this may come right after `last`.
    fn follows(self, last: Self) -> bool {
        let goes_on = |count, last_count| count == 0 || last_count == Self::MAX_COUNT;
        self.local > last.local
            || self.local == last.local
                && goes_on(self.num_added, last.num_added)
                && goes_on(self.num_removed, last.num_removed)
    }
}

const _: () = assert!(PAGE_SHIFT + 2 * VertexEntry::COUNT_BITS == u32::BITS);

/// The sections of a side.
struct SideSections {
    pages: SectionKind,
    vertices: SectionKind,
    targets: SectionKind,
    weights: SectionKind,
    rows: SectionKind,
}

const SIDES: [Side; 2] = [Side::Out, Side::In];

fn side_index(side: Side) -> usize {
    match side {
        Side::Out => 0,
        Side::In => 1,
    }
}

fn sections(side: Side) -> SideSections {
    match side {
        Side::Out => SideSections {
            pages: SectionKind::OutLevelPages,
            vertices: SectionKind::OutLevelVertices,
            targets: SectionKind::OutLevelTargets,
            weights: SectionKind::OutLevelWeights,
            rows: SectionKind::OutLevelRows,
        },
        Side::In => SideSections {
            pages: SectionKind::InLevelPages,
            vertices: SectionKind::InLevelVertices,
            targets: SectionKind::InLevelTargets,
            weights: SectionKind::InLevelWeights,
            rows: SectionKind::InLevelRows,
        },
    }
}

/// What the changes of a page must be, checked before they are written and when they are read.
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

    /// Checks the changes of a page. Cost: a pass over them.
    ///
    /// # Errors
    /// What is wrong, and with which list or target.
    fn check(&self, page: usize, changes: &PageChanges) -> Result<(), String> {
        let Entries { targets, weights, rows } = changes.entries();
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

    fn is_ascending(&self, entries: Entries<'_>) -> bool {
        let (targets, keys) = (entries.targets, entries.keys());
        if !self.multigraph {
            return targets.windows(2).all(|pair| pair[0] < pair[1]);
        }
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

/// The first target that is added and removed with the same row, or the same weight. Both sides ascend.
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

/// Checks vertices that died or returned: they ascend strictly below the bound.
fn check_vertices(vertices: &[VertexId], vertex_bound: usize) -> Result<(), String> {
    let ascends = vertices.windows(2).all(|pair| pair[0] < pair[1]);
    if !ascends || vertices.last().is_some_and(|&last| last as usize >= vertex_bound) {
        return Err(format!("vertices that ascend strictly below {vertex_bound} expected"));
    }
    Ok(())
}

/// The first vertex of both, which ascend.
fn first_in_both(died: &[VertexId], returned: &[VertexId]) -> Option<VertexId> {
    let (short, long) = if died.len() < returned.len() { (died, returned) } else { (returned, died) };
    short.iter().find(|vertex| long.binary_search(vertex).is_ok()).copied()
}

#[cfg(test)]
mod tests;
