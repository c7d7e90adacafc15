//! The buckets of one worker, and their width.

use anden_base::VertexId;
use anden_graph::Distance;

/// Maps distances to buckets.
#[derive(Clone, Copy, Debug)]
pub(super) enum BucketWidth {
    /// A power of two.
    Shift(u32),
    /// Any other integer.
    Divide(u64),
    /// The reciprocal of a floating width.
    Scale(f64),
}

impl BucketWidth {
    /// Buckets of width `delta`; for integer distances, a whole number of at least 1.
    pub(super) fn new(delta: f64, is_integer: bool) -> Self {
        // A conversion from a float saturates, so a huge delta makes one bucket.
        match delta as u64 {
            _ if !is_integer => Self::Scale(1.0 / delta),
            0 => Self::Shift(0),
            whole if whole.is_power_of_two() => Self::Shift(whole.trailing_zeros()),
            whole => Self::Divide(whole),
        }
    }

    /// The bucket of a distance; monotonic in the distance.
    #[inline(always)]
    pub(super) fn bucket<D: Distance>(self, distance: D) -> u64 {
        match self {
            Self::Shift(bits) => distance.to_bits() >> bits,
            Self::Divide(delta) => distance.to_bits() / delta,
            Self::Scale(scale) => (distance.as_f64() * scale) as u64,
        }
    }
}

/// The number of separate buckets. Entries beyond them wait in one list.
const WINDOW: usize = 1024;

/// The buckets of one worker: a window of buckets, and the entries beyond.
#[derive(Debug)]
pub(super) struct DistanceBuckets {
    first: u64,
    near: Vec<Vec<VertexId>>,
    far: Vec<VertexId>,
}

impl DistanceBuckets {
    pub(super) fn new() -> Self {
        Self { first: 0, near: vec![Vec::new(); WINDOW], far: Vec::new() }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, bucket: u64, vertex: VertexId) {
        // The difference would wrap for a bucket before the window. That cannot occur: distances only grow along a
        // path, and the window begins at or before the lowest bucket.
        match self.near.get_mut(bucket.wrapping_sub(self.first) as usize) {
            Some(list) => list.push(vertex),
            None => self.far.push(vertex),
        }
    }

    /// The number of entries.
    ///
    /// Cost: a pass over the window's buckets. A counter in `push` would slow the search down.
    pub(super) fn num_entries(&self) -> usize {
        self.near.iter().map(Vec::len).sum::<usize>() + self.far.len()
    }

    /// The lowest nonempty bucket of the window, from `start` on.
    pub(super) fn lowest(&self, start: u64) -> Option<u64> {
        // No entry enters a bucket before `start`, so these are skipped.
        let skipped = start.saturating_sub(self.first) as usize;
        let found = self.near.iter().skip(skipped).position(|list| !list.is_empty());
        found.map(|place| self.first + (skipped + place) as u64)
    }

    /// Removes and returns the entries of a bucket.
    pub(super) fn take(&mut self, bucket: u64) -> Vec<VertexId> {
        let mut entries = Vec::new();
        self.swap(bucket, &mut entries);
        entries
    }

    /// Swaps `empty` with the entries of a bucket.
    pub(super) fn swap(&mut self, bucket: u64, empty: &mut Vec<VertexId>) {
        if let Some(list) = self.near.get_mut(bucket.wrapping_sub(self.first) as usize) {
            std::mem::swap(list, empty);
        }
    }

    /// The number of entries in a bucket of the window.
    pub(super) fn len_of(&self, bucket: u64) -> usize {
        self.near.get(bucket.wrapping_sub(self.first) as usize).map_or(0, Vec::len)
    }

    /// The lowest bucket beyond the window. `bucket_of` returns the current bucket of an entry, or `None` if it needs
    /// no more work; such entries are dropped.
    pub(super) fn lowest_far(&mut self, bucket_of: impl Fn(VertexId) -> Option<u64>) -> Option<u64> {
        let mut lowest = None;
        self.far.retain(|&v| {
            let bucket = bucket_of(v);
            lowest = match (lowest, bucket) {
                (Some(a), Some(b)) => Some(u64::min(a, b)),
                (a, b) => a.or(b),
            };
            bucket.is_some()
        });
        lowest
    }

    /// Moves the window, whose buckets are all empty, so that it begins at `first`.
    pub(super) fn advance(&mut self, first: u64, bucket_of: impl Fn(VertexId) -> Option<u64>) {
        self.first = first;
        // Taken out, because `push` may put entries back.
        for vertex in std::mem::take(&mut self.far) {
            if let Some(bucket) = bucket_of(vertex) {
                self.push(bucket, vertex);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_cut_distances() {
        let buckets = |delta, is_integer, distances: [u64; 3]| {
            let width = BucketWidth::new(delta, is_integer);
            distances.map(|d| if is_integer { width.bucket(d) } else { width.bucket(d as f64) })
        };
        assert_eq!(buckets(4.0, true, [3, 4, 9]), [0, 1, 2]);
        assert_eq!(buckets(5.0, true, [4, 5, 10]), [0, 1, 2]);
        assert_eq!(buckets(0.25, true, [3, 4, 9]), [3, 4, 9]);
        assert_eq!(buckets(0.5, false, [3, 4, 9]), [6, 8, 18]);
        assert_eq!(buckets(f64::INFINITY, true, [3, 4, u64::MAX - 1])[..2], [0, 0]);
    }

    #[test]
    fn the_window_moves_to_what_waits_beyond() {
        let bucket_of = |v: VertexId| (v != 9).then(|| 10_000 + u64::from(v) * 600);
        let mut buckets = DistanceBuckets::new();
        buckets.push(3, 77);
        for v in [2, 1, 9, 0] {
            buckets.push(10_000 + u64::from(v) * 600, v);
        }
        assert_eq!((buckets.lowest(0), buckets.lowest(3), buckets.lowest(4)), (Some(3), Some(3), None));
        assert_eq!((buckets.len_of(3), buckets.num_entries()), (1, 5));
        assert_eq!(buckets.take(3), [77]);
        assert_eq!(buckets.lowest_far(bucket_of), Some(10_000));
        buckets.advance(10_000, bucket_of);
        assert_eq!(buckets.take(10_000), [0]);
        assert_eq!(buckets.take(10_600), [1]);
        assert_eq!((buckets.lowest(10_000), buckets.lowest_far(bucket_of)), (None, Some(11_200)));
        assert_eq!(buckets.num_entries(), 1);
    }
}
