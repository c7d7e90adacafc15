//! Adds changes up.
//!
//! A part takes each (target, weight) some times from a list and puts it there some times; the net of all parts is
//! the sum of that. The changes of a page are sorted to their vertices by counting, and those of a vertex that
//! more than one part changes are sorted by target, as integers that hold all there is to an arc.

use base::VertexId;

use super::{PageChanges, VertexChanges};
use crate::table::PAGE_VERTICES;

/// Memory that [`compose`] uses again.
#[derive(Debug, Default)]
pub(crate) struct ComposeScratch {
    /// By vertex, and one more: where its arcs start among all, then where the next of them goes.
    starts: Vec<usize>,
    /// How many arcs a vertex has in the part that changes it, if only one does.
    only: Vec<Only>,
    plain: Vec<u64>,
    weighted: Vec<u128>,
    removed: PageArcs,
}

/// Whether one part or several change a vertex.
#[derive(Clone, Copy, Debug, Default)]
struct Only {
    num_parts: u32,
    num_added: u32,
    num_removed: u32,
}

/// Targets, and weights parallel to them where there are any.
#[derive(Debug, Default)]
struct PageArcs {
    targets: Vec<VertexId>,
    weights: Vec<u64>,
}

/// An arc that is added or removed, as an integer: ordered by target, then weight, then sign.
trait SignedArc: Copy + Ord + Default {
    const HAS_WEIGHT: bool;
    fn new(target: VertexId, weight: u64, is_removed: bool) -> Self;
    fn target(self) -> VertexId;
    fn weight(self) -> u64;
    fn is_removed(self) -> bool;
    /// The same arc, added.
    fn unsigned(self) -> Self;
}

macro_rules! signed_arc {
    ($integer:ty, weight_bits: $weight_bits:literal) => {
        impl SignedArc for $integer {
            const HAS_WEIGHT: bool = $weight_bits > 0;

            #[inline(always)]
            fn new(target: VertexId, weight: u64, is_removed: bool) -> Self {
                let weight = if Self::HAS_WEIGHT { weight } else { 0 };
                Self::from(target) << (1 + $weight_bits) | Self::from(weight) << 1 | Self::from(is_removed)
            }

            #[inline(always)]
            fn target(self) -> VertexId {
                (self >> (1 + $weight_bits)) as VertexId
            }

            #[inline(always)]
            fn weight(self) -> u64 {
                if Self::HAS_WEIGHT { (self >> 1) as u64 } else { 0 }
            }

            #[inline(always)]
            fn is_removed(self) -> bool {
                self & 1 == 1
            }

            #[inline(always)]
            fn unsigned(self) -> Self {
                self & !1
            }
        }
    };
}

signed_arc!(u64, weight_bits: 0);
signed_arc!(u128, weight_bits: 64);

/// The net of `parts`, applied one after the other, instead of what `out` held: nothing in it is both added
/// and removed.
///
/// Cost: a pass over the arcs, and a sort of those of each vertex that several parts change, which for long
/// lists is a merge of the parts; and two passes over 1,024 counters.
pub(crate) fn compose(parts: &[PageChanges], out: &mut PageChanges, scratch: &mut ComposeScratch) {
    out.clear();
    if let [part] = parts {
        out.vertices.extend_from_slice(&part.vertices);
        out.targets.extend_from_slice(&part.targets);
        out.weights.extend_from_slice(&part.weights);
        return;
    }
    if parts.iter().any(|part| !part.weights.is_empty()) {
        let mut arcs = std::mem::take(&mut scratch.weighted);
        compose_arcs(parts, out, scratch, &mut arcs);
        scratch.weighted = arcs;
    } else {
        let mut arcs = std::mem::take(&mut scratch.plain);
        compose_arcs(parts, out, scratch, &mut arcs);
        scratch.plain = arcs;
    }
}

fn compose_arcs<A: SignedArc>(
    parts: &[PageChanges],
    out: &mut PageChanges,
    scratch: &mut ComposeScratch,
    arcs: &mut Vec<A>,
) {
    count(parts, scratch);
    gather(parts, &mut scratch.starts, arcs);
    out.targets.reserve(arcs.len());
    let mut start = 0;
    // After the gathering, each start has moved to its end.
    for (local, (&end, only)) in scratch.starts.iter().zip(&scratch.only).enumerate() {
        let list = &mut arcs[start..end];
        start = end;
        if list.is_empty() {
            continue;
        }
        let (num_added, num_removed) = if only.num_parts == 1 {
            list.iter().for_each(|arc| push_arc(*arc, 1, &mut out.targets, &mut out.weights));
            (only.num_added, only.num_removed)
        } else {
            sort(list);
            push_net(list, out, &mut scratch.removed)
        };
        if num_added > 0 || num_removed > 0 {
            out.vertices.push(VertexChanges { local: local as u16, num_added, num_removed });
        }
    }
}

/// Counts the arcs of each vertex, and sums up where they start.
fn count(parts: &[PageChanges], scratch: &mut ComposeScratch) {
    scratch.starts.clear();
    scratch.starts.resize(PAGE_VERTICES, 0);
    scratch.only.clear();
    scratch.only.resize(PAGE_VERTICES, Only::default());
    for vertex in parts.iter().flat_map(|part| &part.vertices) {
        let VertexChanges { local, num_added, num_removed } = *vertex;
        scratch.starts[local as usize] += num_added as usize + num_removed as usize;
        let only = &mut scratch.only[local as usize];
        *only = Only { num_parts: only.num_parts + 1, num_added, num_removed };
    }
    let mut start = 0;
    for entry in &mut scratch.starts {
        start += std::mem::replace(entry, start);
    }
}

/// Lays the arcs of each vertex one after the other, part by part.
fn gather<A: SignedArc>(parts: &[PageChanges], starts: &mut [usize], arcs: &mut Vec<A>) {
    arcs.clear();
    arcs.resize(parts.iter().map(|part| part.targets.len()).sum(), A::default());
    for list in parts.iter().flat_map(PageChanges::lists) {
        let start = &mut starts[list.local as usize];
        for (targets, weights, is_removed) in
            [(list.added, list.added_weights, false), (list.removed, list.removed_weights, true)]
        {
            let places = &mut arcs[*start..*start + targets.len()];
            *start += targets.len();
            if A::HAS_WEIGHT {
                for ((place, &target), &weight) in places.iter_mut().zip(targets).zip(weights) {
                    *place = A::new(target, weight, is_removed);
                }
            } else {
                for (place, &target) in places.iter_mut().zip(targets) {
                    *place = A::new(target, 0, is_removed);
                }
            }
        }
    }
}

/// Sorts arcs that came from few ascending parts.
fn sort<A: SignedArc>(arcs: &mut [A]) {
    // From here on the stable sort, which merges what ascends already, is faster than one that does not care.
    const LONG: usize = 512;
    if arcs.len() < LONG { arcs.sort_unstable() } else { arcs.sort() }
}

/// Appends the net of sorted arcs; gives how many were added and removed.
fn push_net<A: SignedArc>(arcs: &[A], out: &mut PageChanges, removed: &mut PageArcs) -> (u32, u32) {
    removed.targets.clear();
    removed.weights.clear();
    let first = out.targets.len();
    let mut rest = arcs;
    while let Some(&arc) = rest.first() {
        let arc = arc.unsigned();
        // Most arcs are met once.
        let num_equal = rest.iter().take_while(|other| other.unsigned() == arc).count();
        let (equal, others) = rest.split_at(num_equal);
        let num_added = equal.partition_point(|arc| !arc.is_removed());
        let num_removed = num_equal - num_added;
        if num_added > num_removed {
            push_arc(arc, num_added - num_removed, &mut out.targets, &mut out.weights);
        } else {
            push_arc(arc, num_removed - num_added, &mut removed.targets, &mut removed.weights);
        }
        rest = others;
    }
    let num_added = out.targets.len() - first;
    out.targets.extend_from_slice(&removed.targets);
    out.weights.extend_from_slice(&removed.weights);
    let num = |len: usize| u32::try_from(len).expect("a page holds fewer arcs than 2^32");
    (num(num_added), num(removed.targets.len()))
}

#[inline(always)]
fn push_arc<A: SignedArc>(arc: A, num_copies: usize, targets: &mut Vec<VertexId>, weights: &mut Vec<u64>) {
    for _ in 0..num_copies {
        targets.push(arc.target());
        if A::HAS_WEIGHT {
            weights.push(arc.weight());
        }
    }
}
