//! Adds changes up.
//!
//! A part takes each (target, weight) some times from a list and puts it there some times; the net of all parts is
//! the sum of that. The changes of a page are sorted to their vertices by counting, and those of a vertex that
//! more than one part changes are sorted by target, as integers that hold all there is to an arc.

use base::VertexId;

use super::{EntryBuffer, PageChanges, VertexChanges};
use crate::table::PAGE_VERTICES;

/// Memory that [`compose`] uses again.
#[derive(Debug, Default)]
pub(crate) struct ComposeScratch {
    /// By vertex, and one more: where its arcs start among all, then where the next of them goes.
    starts: Vec<usize>,
    /// How many arcs a vertex has in the part that changes it, if only one does.
    only: Vec<Only>,
    plain: Vec<PlainArc>,
    keyed: Vec<KeyedArc>,
    full: Vec<FullArc>,
    removed: EntryBuffer,
}

/// The columns that entries have.
#[derive(Clone, Copy, Debug)]
struct Columns {
    weights: bool,
    rows: bool,
}

/// Whether one part or several change a vertex.
#[derive(Clone, Copy, Debug, Default)]
struct Only {
    num_parts: u32,
    num_added: u32,
    num_removed: u32,
}

/// An arc that is added or removed, as an integer: ordered by target, then row or weight, then sign.
trait SignedArc: Copy + Ord + Default {
    /// Whether it has a row or a weight, by which it is ordered.
    const HAS_KEY: bool;
    /// Whether it has a weight beside its row.
    const HAS_BOTH: bool = false;
    fn new(target: VertexId, key: u64, is_removed: bool) -> Self;
    fn target(self) -> VertexId;
    fn key(self) -> u64;
    fn is_removed(self) -> bool;
    /// The same arc, added.
    fn unsigned(self) -> Self;
    fn with_weight(self, _weight: u64) -> Self {
        self
    }
    fn weight(self) -> u64 {
        0
    }
}

type PlainArc = u64;
type KeyedArc = u128;

/// An arc with a row and a weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct FullArc {
    keyed: KeyedArc,
    weight: u64,
}

impl SignedArc for FullArc {
    const HAS_KEY: bool = true;
    const HAS_BOTH: bool = true;

    fn new(target: VertexId, key: u64, is_removed: bool) -> Self {
        Self { keyed: KeyedArc::new(target, key, is_removed), weight: 0 }
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
signed_arc!(KeyedArc, key_bits: 64);

/// The net of `parts`, applied one after the other, instead of what `out` held: nothing in it is both added
/// and removed.
///
/// Cost: a pass over the arcs, and a sort of those of each vertex that several parts change, which for long
/// lists is a merge of the parts; and two passes over 1,024 counters.
pub(crate) fn compose(parts: &[PageChanges], out: &mut PageChanges, scratch: &mut ComposeScratch) {
    out.clear();
    if let [part] = parts {
        out.vertices.extend_from_slice(&part.vertices);
        out.entries.extend(part.entries.all());
        return;
    }
    let columns = Columns {
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
        Columns { weights: true, rows: true } => compose_with!(full),
        Columns { weights: false, rows: false } => compose_with!(plain),
        _ => compose_with!(keyed),
    }
}

fn compose_arcs<A: SignedArc>(
    parts: &[PageChanges],
    columns: Columns,
    out: &mut PageChanges,
    scratch: &mut ComposeScratch,
    arcs: &mut Vec<A>,
) {
    count(parts, scratch);
    gather(parts, &mut scratch.starts, arcs);
    out.entries.targets.reserve(arcs.len());
    let mut start = 0;
    // After the gathering, each start has moved to its end.
    for (local, (&end, only)) in scratch.starts.iter().zip(&scratch.only).enumerate() {
        let list = &mut arcs[start..end];
        start = end;
        if list.is_empty() {
            continue;
        }
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
            if A::HAS_BOTH {
                places.iter_mut().zip(entries.weights).for_each(|(place, &weight)| *place = place.with_weight(weight));
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
fn push_net<A: SignedArc>(
    arcs: &[A],
    columns: Columns,
    out: &mut EntryBuffer,
    removed: &mut EntryBuffer,
) -> (u32, u32) {
    removed.clear();
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
            push_arc(arc, num_added - num_removed, columns, out);
        } else {
            push_arc(arc, num_removed - num_added, columns, removed);
        }
        rest = others;
    }
    let num_added = out.targets.len() - first;
    out.extend(removed.all());
    let num = |len: usize| u32::try_from(len).expect("a page holds fewer arcs than 2^32");
    (num(num_added), num(removed.targets.len()))
}

#[inline(always)]
fn push_arc<A: SignedArc>(arc: A, num_copies: usize, columns: Columns, entries: &mut EntryBuffer) {
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
