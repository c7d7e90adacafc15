//! Composes changes.
//!
//! Each part adds a (target, weight) to a list some times and removes it some times; the net is the signed sum over all
//! parts. Counting sorts the changes of a page to their vertices. The arcs of a vertex that several parts change are
//! sorted as integers, which hold target, key and sign.

use anden_base::VertexId;

use super::{EntryBuffer, PageChanges, VertexChanges};
use crate::table::PAGE_VERTICES;

/// Memory that [`compose`] reuses.
#[derive(Debug, Default)]
pub(crate) struct ComposeScratch {
    /// By vertex: the start of its arcs, then the place of its next arc.
    starts: Vec<usize>,
    /// Numbers of arcs of a vertex in the only part that changes it.
    only: Vec<Only>,
    plain: Vec<PlainArc>,
    keyed: Vec<PackedKeyedArc>,
    full: Vec<FullArc>,
    removed: EntryBuffer,
}

/// The columns that entries have.
#[derive(Clone, Copy, Debug)]
struct ComposedColumns {
    weights: bool,
    rows: bool,
}

/// Numbers of a vertex's parts, and of the arcs of the last part.
#[derive(Clone, Copy, Debug, Default)]
struct Only {
    num_parts: u32,
    num_added: u32,
    num_removed: u32,
}

/// An added or removed arc as an integer, ordered by target, then row or weight, then sign.
trait SignedArc: Copy + Ord + Default {
    /// Whether the arc has a row or a weight, by which it is ordered.
    const HAS_KEY: bool;
    /// Whether the arc has a weight beside its row.
    const HAS_BOTH: bool = false;
    fn new(target: VertexId, key: u64, is_removed: bool) -> Self;
    fn target(self) -> VertexId;
    fn key(self) -> u64;
    fn is_removed(self) -> bool;
    /// This arc, added.
    fn unsigned(self) -> Self;
    fn with_weight(self, _weight: u64) -> Self {
        self
    }
    fn weight(self) -> u64 {
        0
    }
}

type PlainArc = u64;
type PackedKeyedArc = u128;

/// An arc with a row and a weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct FullArc {
    keyed: PackedKeyedArc,
    weight: u64,
}

impl SignedArc for FullArc {
    const HAS_KEY: bool = true;
    const HAS_BOTH: bool = true;

    fn new(target: VertexId, key: u64, is_removed: bool) -> Self {
        Self { keyed: PackedKeyedArc::new(target, key, is_removed), weight: 0 }
    }

    fn target(self) -> VertexId {
        self.keyed.target()
    }

    fn key(self) -> u64 {
        self.keyed.key()
    }

    fn is_removed(self) -> bool {
        self.keyed.is_removed()
    }

    fn unsigned(self) -> Self {
        Self { keyed: self.keyed.unsigned(), ..self }
    }

    fn with_weight(self, weight: u64) -> Self {
        Self { weight, ..self }
    }

    fn weight(self) -> u64 {
        self.weight
    }
}

macro_rules! signed_arc {
    ($integer:ty, key_bits: $key_bits:literal) => {
        impl SignedArc for $integer {
            const HAS_KEY: bool = $key_bits > 0;

            #[inline(always)]
            fn new(target: VertexId, key: u64, is_removed: bool) -> Self {
                let key = if Self::HAS_KEY { key } else { 0 };
                // The target on top, then the key, then the sign: integers compare as arcs do.
                Self::from(target) << (1 + $key_bits) | Self::from(key) << 1 | Self::from(is_removed)
            }

            #[inline(always)]
            fn target(self) -> VertexId {
                (self >> (1 + $key_bits)) as VertexId
            }

            #[inline(always)]
            fn key(self) -> u64 {
                if Self::HAS_KEY { (self >> 1) as u64 } else { 0 }
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

signed_arc!(PlainArc, key_bits: 0);
signed_arc!(PackedKeyedArc, key_bits: 64);

/// Fills `out` with the net changes of `parts`; no arc in it is both added and removed.
///
/// Cost: one pass over the arcs, and two over 1,024 counters. The arcs of each vertex that several parts change are
/// sorted; for long lists, the sort merges the parts.
pub(crate) fn compose(parts: &[PageChanges], out: &mut PageChanges, scratch: &mut ComposeScratch) {
    out.clear();
    // The changes of one part are net already.
    if let [part] = parts {
        out.vertices.extend_from_slice(&part.vertices);
        out.entries.extend(part.entries.all());
        return;
    }
    let columns = ComposedColumns {
        weights: parts.iter().any(|part| !part.entries.weights.is_empty()),
        rows: parts.iter().any(|part| !part.entries.rows.is_empty()),
    };
    macro_rules! compose_with {
        ($arcs:ident) => {{
            let mut arcs = std::mem::take(&mut scratch.$arcs);
            compose_arcs(parts, columns, out, scratch, &mut arcs);
            scratch.$arcs = arcs;
        }};
    }
    match columns {
        ComposedColumns { weights: true, rows: true } => compose_with!(full),
        ComposedColumns { weights: false, rows: false } => compose_with!(plain),
        // With one column, its values are the keys.
        _ => compose_with!(keyed),
    }
}

fn compose_arcs<A: SignedArc>(
    parts: &[PageChanges],
    columns: ComposedColumns,
    out: &mut PageChanges,
    scratch: &mut ComposeScratch,
    arcs: &mut Vec<A>,
) {
    count(parts, scratch);
    gather(parts, &mut scratch.starts, arcs);
    out.entries.targets.reserve(arcs.len());
    let mut start = 0;
    // `gather` has moved each start to its end.
    for (local, (&end, only)) in scratch.starts.iter().zip(&scratch.only).enumerate() {
        let list = &mut arcs[start..end];
        start = end;
        if list.is_empty() {
            continue;
        }
        // A vertex in one part only is sorted, and has nothing to cancel out.
        let (num_added, num_removed) = if only.num_parts == 1 {
            list.iter().for_each(|arc| push_arc(*arc, 1, columns, &mut out.entries));
            (only.num_added, only.num_removed)
        } else {
            sort(list);
            push_net(list, columns, &mut out.entries, &mut scratch.removed)
        };
        if num_added > 0 || num_removed > 0 {
            out.vertices.push(VertexChanges { local: local as u16, num_added, num_removed });
        }
    }
}

/// Counts the arcs of each vertex, and sums the counts to starts.
fn count(parts: &[PageChanges], scratch: &mut ComposeScratch) {
    scratch.starts.clear();
    scratch.starts.resize(PAGE_VERTICES, 0);
    scratch.only.clear();
    scratch.only.resize(PAGE_VERTICES, Only::default());
    for vertex in parts.iter().flat_map(|part| &part.vertices) {
        let VertexChanges { local, num_added, num_removed } = *vertex;
        scratch.starts[local as usize] += num_added as usize + num_removed as usize;
        let only = &mut scratch.only[local as usize];
        // The numbers of the last part are used only where it is the only one.
        *only = Only { num_parts: only.num_parts + 1, num_added, num_removed };
    }
    let mut start = 0;
    for entry in &mut scratch.starts {
        start += std::mem::replace(entry, start);
    }
}

/// Copies the arcs of each vertex into one range, part by part.
fn gather<A: SignedArc>(parts: &[PageChanges], starts: &mut [usize], arcs: &mut Vec<A>) {
    arcs.clear();
    arcs.resize(parts.iter().map(|part| part.entries.targets.len()).sum(), A::default());
    for list in parts.iter().flat_map(PageChanges::lists) {
        let start = &mut starts[list.local as usize];
        for (entries, is_removed) in [(list.added, false), (list.removed, true)] {
            let targets = entries.targets;
            let places = &mut arcs[*start..*start + targets.len()];
            *start += targets.len();
            if A::HAS_KEY {
                for ((place, &target), &key) in places.iter_mut().zip(targets).zip(entries.keys()) {
                    *place = A::new(target, key, is_removed);
                }
            } else {
                for (place, &target) in places.iter_mut().zip(targets) {
                    *place = A::new(target, 0, is_removed);
                }
            }
            // The row orders the arc, so the weight is set beside it.
            if A::HAS_BOTH {
                places.iter_mut().zip(entries.weights).for_each(|(place, &weight)| *place = place.with_weight(weight));
            }
        }
    }
}

/// Sorts arcs that came from few ascending parts.
fn sort<A: SignedArc>(arcs: &mut [A]) {
    // From here on the stable sort is faster, because it merges ascending ranges.
    const LONG: usize = 512;
    if arcs.len() < LONG { arcs.sort_unstable() } else { arcs.sort() }
}

/// Appends the net of sorted arcs; returns the numbers of added and removed arcs.
fn push_net<A: SignedArc>(
    arcs: &[A],
    columns: ComposedColumns,
    out: &mut EntryBuffer,
    removed: &mut EntryBuffer,
) -> (u32, u32) {
    removed.clear();
    let first = out.targets.len();
    let mut rest = arcs;
    while let Some(&arc) = rest.first() {
        // Without the sign, so that additions and removals of one arc compare as equal.
        let arc = arc.unsigned();
        // Most arcs appear once.
        let num_equal = rest.iter().take_while(|other| other.unsigned() == arc).count();
        let (equal, others) = rest.split_at(num_equal);
        // The sign is the lowest bit, so additions come before removals.
        let num_added = equal.partition_point(|arc| !arc.is_removed());
        let num_removed = num_equal - num_added;
        if num_added > num_removed {
            push_arc(arc, num_added - num_removed, columns, out);
        } else {
            push_arc(arc, num_removed - num_added, columns, removed);
        }
        rest = others;
    }
    let num_added = out.targets.len() - first;
    // Additions of a list stand before its removals, so removals wait in a buffer.
    out.extend(removed.all());
    let num = |len: usize| u32::try_from(len).expect("a page holds fewer arcs than 2^32");
    (num(num_added), num(removed.targets.len()))
}

#[inline(always)]
fn push_arc<A: SignedArc>(arc: A, num_copies: usize, columns: ComposedColumns, entries: &mut EntryBuffer) {
    for _ in 0..num_copies {
        entries.targets.push(arc.target());
        if A::HAS_BOTH {
            entries.weights.push(arc.weight());
        }
        if A::HAS_KEY {
            if columns.rows { &mut entries.rows } else { &mut entries.weights }.push(arc.key());
        }
    }
}
