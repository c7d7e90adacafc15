//! Composes changes that only add, or only remove, without weights: nothing can cancel out.
//!
//! Appends that only add leave such changes. Joining copies the stored arcs to their vertices, and sorts plain targets.
//! [`compose`](super::compose) needs signs, and counts equal arcs.

use anden_base::VertexId;

use super::{ApplyDirection, PageChanges, VertexChanges};
use crate::table::PAGE_VERTICES;

/// Changes of a page without weights, one vertex after the other.
pub(crate) trait UnweightedPart {
    /// Position of a vertex in the page, and the numbers of arcs that are added to its list and removed from it. A
    /// vertex may appear more than once.
    fn counts(&self) -> impl Iterator<Item = (u16, u32, u32)>;

    /// The arcs of all vertices.
    fn targets(&self) -> &[VertexId];
}

/// Fills `out` with the sum of `parts`. Returns false and an empty `out` if there are both additions and removals,
/// which must be composed. `starts` is reused memory.
///
/// Cost: two passes over the vertices of the parts, a copy of their arcs, and a sort of the arcs of each vertex.
#[must_use]
pub(crate) fn join<P: UnweightedPart>(
    parts: &[(P, ApplyDirection)],
    out: &mut PageChanges,
    starts: &mut Vec<usize>,
) -> bool {
    out.clear();
    starts.clear();
    starts.resize(PAGE_VERTICES, 0);
    let (mut adds, mut removes) = (false, false);
    for (part, sense) in parts {
        let (mut any_added, mut any_removed) = (0, 0);
        for (local, num_added, num_removed) in part.counts() {
            starts[local as usize] += num_added as usize + num_removed as usize;
            // The union of all numbers tells whether any is not zero, without a branch for each vertex.
            any_added |= num_added;
            any_removed |= num_removed;
        }
        // A delta that is read backward removes what it adds.
        if *sense == ApplyDirection::Backward {
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
    // `gather` has moved each start to its end.
    for (local, &end) in starts.iter().enumerate().filter(|(_, end)| **end > 0) {
        if end == start {
            continue;
        }
        let list = &mut out.entries.targets[start..end];
        let len = u32::try_from(list.len()).expect("a page holds fewer arcs than 2^32");
        // Each part ascends, but together they may not.
        list.sort_unstable();
        let (num_added, num_removed) = if removes { (0, len) } else { (len, 0) };
        out.vertices.push(VertexChanges { local: local as u16, num_added, num_removed });
        start = end;
    }
    true
}

/// Copies the arcs of a part behind the earlier arcs of their vertices.
fn gather(part: &impl UnweightedPart, starts: &mut [usize], arcs: &mut [VertexId]) {
    let mut rest = part.targets();
    for (local, num_added, num_removed) in part.counts() {
        let (list, others) = rest.split_at(num_added as usize + num_removed as usize);
        rest = others;
        let start = &mut starts[local as usize];
        let places = &mut arcs[*start..*start + list.len()];
        *start += list.len();
        // Most vertices have one or two arcs, for which a call to `memcpy` takes longer.
        places.iter_mut().zip(list).for_each(|(place, &target)| *place = target);
    }
}
