//! The changes of a page in their stored form, for readers of a few lists.

use std::ops::Range;

use anden_base::VertexId;

use super::VertexEntry;
use crate::changes::{ArcData, ChangedList, EntryBuffer, ListEntries, UnweightedPart};
use crate::lists::lower_bound;

/// The changes of a page, checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredPage<'a> {
    pub(super) vertices: &'a [u32],
    pub(super) targets: &'a [VertexId],
    pub(super) weights: StoredWeights<'a>,
    /// Parallel to the targets, or empty in a graph without rows.
    pub(super) rows: &'a [u64],
}

/// The bits of weights, in their stored width.
#[derive(Clone, Copy, Debug)]
pub(super) enum StoredWeights<'a> {
    None,
    Narrow(&'a [u32]),
    Wide(&'a [u64]),
}

/// A position among the lists of a page.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StoredPlace {
    /// Index of the next vertex entry.
    vertex: usize,
    /// Start of its targets.
    target: usize,
}

/// Entries that are scanned before a binary search: the next list asked for is often near.
const FEW: usize = 8;

/// Ranges of one list's changes among those of its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredList {
    pub added: Range<usize>,
    pub removed: Range<usize>,
}

impl UnweightedPart for StoredPage<'_> {
    fn counts(&self) -> impl Iterator<Item = (u16, u32, u32)> {
        let entries = self.vertices.iter().map(|&bits| VertexEntry::decode(bits));
        entries.map(|entry| (entry.local, entry.num_added, entry.num_removed))
    }

    fn targets(&self) -> &[VertexId] {
        self.targets
    }
}

impl<'a> StoredPage<'a> {
    /// The changed lists in vertex order, without weights and rows; `None` if the vertices count more targets than
    /// there are.
    pub(super) fn lists(&self) -> impl Iterator<Item = Option<ChangedList<'a>>> {
        let mut rest = self.targets;
        // The entries of a long list stand together.
        let is_same = |a: &u32, b: &u32| VertexEntry::decode(*a).local == VertexEntry::decode(*b).local;
        self.vertices.chunk_by(is_same).map(move |entries| {
            let entries = || entries.iter().map(|&bits| VertexEntry::decode(bits));
            let (added, others) = rest.split_at_checked(entries().map(|entry| entry.num_added as usize).sum())?;
            let (removed, others) = others.split_at_checked(entries().map(|entry| entry.num_removed as usize).sum())?;
            rest = others;
            let local = entries().next()?.local;
            let plain = |targets| ListEntries { targets, ..ListEntries::default() };
            Some(ChangedList { local, added: plain(added), removed: plain(removed) })
        })
    }

    /// The changes of a vertex's list, if there are any. `place` is at or before the vertex, and moves there.
    pub fn list(&self, local: u16, place: &mut StoredPlace) -> Option<StoredList> {
        let entry = |index: usize| self.vertices.get(index).map(|&bits| VertexEntry::decode(bits));
        self.seek(local, place);
        let (mut num_added, mut num_removed) = (0, 0);
        let mut next = place.vertex;
        // A long list has several entries, whose numbers add up.
        while let Some(entry) = entry(next).filter(|entry| entry.local == local) {
            num_added += entry.num_added as usize;
            num_removed += entry.num_removed as usize;
            next += 1;
        }
        let added = place.target..place.target + num_added;
        (next > place.vertex).then(|| StoredList { removed: added.end..added.end + num_removed, added })
    }

    /// Moves to the first entry at or behind a vertex.
    #[inline]
    fn seek(&self, local: u16, place: &mut StoredPlace) {
        let rest = &self.vertices[place.vertex..];
        let is_before = |bits: u32| VertexEntry::decode(bits).local < local;
        // A scan of a few entries finds the next list without the mispredicted branches of a search.
        let mut num_before = rest.iter().take(FEW).take_while(|&&bits| is_before(bits)).count();
        if num_before == FEW {
            num_before += rest[FEW..].partition_point(|&bits| is_before(bits));
        }
        let num_targets = |&bits: &u32| {
            let entry = VertexEntry::decode(bits);
            entry.num_added + entry.num_removed
        };
        // A page has fewer than 2^32 changes. The sum in 32 bits needs no branch.
        place.target += rest[..num_before].iter().map(num_targets).sum::<u32>() as usize;
        place.vertex += num_before;
    }

    /// The entries of a part of a list.
    pub fn arcs(&self, part: Range<usize>) -> EntryBuffer {
        EntryBuffer {
            targets: self.targets[part.clone()].to_vec(),
            weights: match self.weights {
                StoredWeights::None => Vec::new(),
                StoredWeights::Narrow(weights) => weights[part.clone()].iter().map(|&bits| bits.into()).collect(),
                StoredWeights::Wide(weights) => weights[part.clone()].to_vec(),
            },
            rows: self.rows.get(part).unwrap_or_default().to_vec(),
        }
    }

    /// Weights and rows of the entries to `neighbor` in a part of a list. Drops earlier entries from the part, because
    /// callers ask for neighbors in ascending order.
    pub fn data_to(&self, part: &mut Range<usize>, neighbor: VertexId) -> impl Iterator<Item = ArcData> + use<'_> {
        // Earlier entries were dropped, so the search starts at the part.
        part.start = lower_bound(&self.targets[..part.end], part.start, part.start, neighbor);
        let rest = &self.targets[part.clone()];
        let count = rest.iter().take_while(|&&target| target == neighbor).count();
        (part.start..part.start + count).map(|place| ArcData {
            row: self.rows.get(place).copied().unwrap_or(0),
            weight: match self.weights {
                StoredWeights::None => 0,
                StoredWeights::Narrow(weights) => weights[place].into(),
                StoredWeights::Wide(weights) => weights[place],
            },
        })
    }
}
