//! The epoch of the last change of each read key, approximately.
//!
//! Read keys share stripes by a hash. A stripe may show too young an epoch, never too old a one: validation may find a
//! conflict in vain, but never misses one. Only the holder of the write guard uses the table, so that stripes are plain
//! numbers.

use super::ReadKey;

/// The number of stripes: 8 MB at 8 bytes each, from the first transaction on.
const NUM_STRIPES: usize = 1 << 20;
/// The stripes of one vertex lie side by side, in one cache line.
const ASPECTS: usize = 4;
/// A batch of more updates counts as a change of everything: it would hit most versions.
pub(crate) const HUGE_BATCH: usize = NUM_STRIPES / 4;

/// Epochs of last changes; see the module.
#[derive(Debug, Default)]
pub(crate) struct VersionTable {
    /// Empty before the first transaction begins.
    epochs: Vec<u64>,
    /// The epoch at which everything counts as changed.
    everything: u64,
    vertices: u64,
    edges: u64,
}

impl VersionTable {
    /// Begins to note changes. Everything counts as changed at `epoch`.
    pub(crate) fn begin(&mut self, epoch: u64) {
        if !self.are_kept() {
            // Allocated here, so that a database without transactions does not pay for the table.
            self.epochs = vec![0; NUM_STRIPES];
            self.everything = self.everything.max(epoch);
        }
    }

    /// Whether changes are noted, which is so from the first transaction on.
    pub(crate) fn are_kept(&self) -> bool {
        !self.epochs.is_empty()
    }

    /// Notes a change at `epoch`; epochs never descend from call to call.
    #[inline]
    pub(crate) fn change(&mut self, item: ReadKey, epoch: u64) {
        match item {
            ReadKey::Vertices => self.vertices = epoch,
            ReadKey::Edges => self.edges = epoch,
            item => {
                if let Some(stripe) = self.epochs.get_mut(place(item)) {
                    *stripe = epoch;
                }
            }
        }
    }

    /// Notes that anything may change at `epoch`.
    pub(crate) fn change_everything(&mut self, epoch: u64) {
        self.everything = epoch;
    }

    /// The epoch of the last change of a read key, or a younger one.
    #[inline]
    pub(crate) fn last_change(&self, item: ReadKey) -> u64 {
        let last = match item {
            ReadKey::Vertices => self.vertices,
            ReadKey::Edges => self.edges,
            item => self.epochs.get(place(item)).copied().unwrap_or(self.everything),
        };
        last.max(self.everything)
    }

    /// Takes back the notes of `epoch`, whose commit failed. Otherwise readers of these keys would conflict until
    /// another commit takes the epoch. Cost: a scan of all versions.
    pub(crate) fn take_back(&mut self, epoch: u64) {
        let others = [&mut self.everything, &mut self.vertices, &mut self.edges];
        for stripe in self.epochs.iter_mut().chain(others).filter(|stripe| **stripe == epoch) {
            // The former epoch is lost. `epoch - 1` is not older, so no conflict is missed.
            *stripe = epoch - 1;
        }
    }
}

/// The stripe of a read key.
#[inline]
fn place(item: ReadKey) -> usize {
    let of_vertex = |vertex: u32, aspect: usize| spread(vertex.into(), NUM_STRIPES / ASPECTS) * ASPECTS + aspect;
    match item {
        ReadKey::OutList(vertex) => of_vertex(vertex, 0),
        ReadKey::InList(vertex) => of_vertex(vertex, 1),
        ReadKey::Properties(vertex) => of_vertex(vertex, 2),
        ReadKey::Existence(vertex) => of_vertex(vertex, 3),
        ReadKey::Edge(source, target) => {
            // The constants keep pairs, columns and values apart from small vertex ids.
            spread((u64::from(source) << 32 | u64::from(target)) ^ 0x5bd1_e995_9e37_79b9, NUM_STRIPES)
        }
        ReadKey::Column(place) => spread(u64::from(place) ^ 0xa076_1d64_78bd_642f, NUM_STRIPES),
        ReadKey::Value(place, hash) => {
            spread((u64::from(place) << 32 | u64::from(hash)) ^ 0xe703_7ed1_a0b4_28db, NUM_STRIPES)
        }
        // These two have fields of their own.
        ReadKey::Vertices | ReadKey::Edges => 0,
    }
}

/// A pseudo-random number below `bound`, a power of two: multiplicative hashing, of which the high half is taken.
#[inline]
fn spread(number: u64, bound: usize) -> usize {
    // Bits 32 to 51 of the product depend on no higher bits of the number, so these are folded in first.
    let mixed = (number ^ number >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize & (bound - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_never_forgotten() {
        let mut versions = VersionTable::default();
        versions.change(ReadKey::OutList(3), 4);
        assert!(!versions.are_kept());
        versions.begin(5);
        versions.begin(6);
        assert_eq!(versions.last_change(ReadKey::OutList(3)), 5);
        versions.change(ReadKey::OutList(3), 7);
        versions.change(ReadKey::Edge(3, 4), 8);
        versions.change(ReadKey::Vertices, 9);
        let last = |versions: &VersionTable| {
            [ReadKey::OutList(3), ReadKey::InList(3), ReadKey::Edge(3, 4), ReadKey::Vertices, ReadKey::Edges]
                .map(|item| versions.last_change(item))
        };
        assert_eq!(last(&versions), [7, 5, 8, 9, 5]);
        versions.take_back(9);
        assert_eq!(last(&versions), [7, 5, 8, 8, 5]);
        versions.change_everything(9);
        assert_eq!(last(&versions), [9; 5]);
    }

    #[test]
    fn few_things_share_a_stripe() {
        let mut places: Vec<_> = (0..2_000)
            .flat_map(|v| [ReadKey::OutList(v), ReadKey::InList(v), ReadKey::Properties(v), ReadKey::Existence(v)])
            .chain((0..2_000).map(|v| ReadKey::Edge(v, v * 7 % 2_000)))
            .chain((0..2_000).map(|v| ReadKey::Edge(v, v + 1)))
            .map(place)
            .collect();
        places.sort_unstable();
        let before = places.len();
        places.dedup();
        assert!(places.len() > before - 200, "{} of {before} places differ", places.len());
    }
}
