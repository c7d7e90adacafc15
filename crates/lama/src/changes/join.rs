//! Adds changes up that are all of one kind, without weights: nothing can cancel out.
//!
//! That is what appends leave that only add. It takes a copy from where the changes are stored to where they belong
//! and a sort of plain targets, where [`compose`](super::compose) needs signs and a count of equal ones.

use base::VertexId;

use super::{PageChanges, VertexChanges};
use crate::side::Sense;
use crate::table::PAGE_VERTICES;

/// What changes on a page, without weights, one vertex after the other.
pub(crate) trait UnweightedPart {
    /// The place of a vertex in the page, how many arcs are added to its list, and how many are removed. The same
    /// vertex may come again.
    fn counts(&self) -> impl Iterator<Item = (u16, u32, u32)>;

    /// The arcs of all of them.
    fn targets(&self) -> &[VertexId];
}

/// The sum of `parts` instead of what `out` held; false, and `out` is empty, where some of them add and some remove, so
/// that they have to be composed. `starts` is memory that is used again.
///
/// Cost: two passes over the vertices of the parts, a copy of their arcs, and a sort of those of each vertex.
#[must_use]
pub(crate) fn join<P: UnweightedPart>(parts: &[(P, Sense)], out: &mut PageChanges, starts: &mut Vec<usize>) -> bool {
    out.clear();
    starts.clear();
    starts.resize(PAGE_VERTICES, 0);
    let (mut adds, mut removes) = (false, false);
    for (part, sense) in parts {
        let (mut any_added, mut any_removed) = (0, 0);
        for (local, num_added, num_removed) in part.counts() {
            starts[local as usize] += num_added as usize + num_removed as usize;
            any_added |= num_added;
            any_removed |= num_removed;
        }
        if *sense == Sense::Backward {
            (any_added, any_removed) = (any_removed, any_added);
        }
        adds |= any_added > 0;
        removes |= any_removed > 0;
    }
    if adds && removes {
        return false;
    }
    let mut num_arcs = 0;
    for entry in starts.iter_mut() {
        num_arcs += std::mem::replace(entry, num_arcs);
    }
    out.entries.targets.resize(num_arcs, 0);
    for (part, _) in parts {
        gather(part, starts, &mut out.entries.targets);
    }
    let mut start = 0;
    // After the gathering, each start has moved to its end.
    for (local, &end) in starts.iter().enumerate().filter(|(_, end)| **end > 0) {
        if end == start {
            continue;
        }
        let list = &mut out.entries.targets[start..end];
        let len = u32::try_from(list.len()).expect("a page holds fewer arcs than 2^32");
        list.sort_unstable();
        let (num_added, num_removed) = if removes { (0, len) } else { (len, 0) };
        out.vertices.push(VertexChanges { local: local as u16, num_added, num_removed });
        start = end;
    }
    true
}

/// Copies the arcs of a part to those of their vertices.
fn gather(part: &impl UnweightedPart, starts: &mut [usize], arcs: &mut [VertexId]) {
    let mut rest = part.targets();
    for (local, num_added, num_removed) in part.counts() {
        let (list, others) = rest.split_at(num_added as usize + num_removed as usize);
        rest = others;
        let start = &mut starts[local as usize];
        let places = &mut arcs[*start..*start + list.len()];
        *start += list.len();
        // Most have one or two arcs, for which a call that copies takes longer.
        places.iter_mut().zip(list).for_each(|(place, &target)| *place = target);
    }
}
