//! Other containers for a changing graph: one set a vertex, or one packed memory array for all. None has versions, so a
//! reader would have to wait for the writer.

use std::collections::{BTreeSet, HashSet};

use anden_base::parallel::Pool;

use super::{Batch, Container};
use crate::harness::seconds;

/// A set of the neighbors of a vertex.
pub(super) trait Set: Default + Send {
    fn add(&mut self, target: u32);
    fn cut(&mut self, target: u32);
}

impl Set for BTreeSet<u32> {
    fn add(&mut self, target: u32) {
        self.insert(target);
    }

    fn cut(&mut self, target: u32) {
        self.remove(&target);
    }
}

impl Set for HashSet<u32> {
    fn add(&mut self, target: u32) {
        self.insert(target);
    }

    fn cut(&mut self, target: u32) {
        self.remove(&target);
    }
}

/// The set as a sorted vector.
impl Set for Vec<u32> {
    fn add(&mut self, target: u32) {
        if let Err(place) = self.binary_search(&target) {
            self.insert(place, target);
        }
    }

    fn cut(&mut self, target: u32) {
        if let Ok(place) = self.binary_search(&target) {
            self.remove(place);
        }
    }
}

/// One set a vertex.
pub(super) struct SetEach<S> {
    sets: Vec<S>,
}

impl<S: Set> SetEach<S> {
    pub(super) fn new(num_vertices: usize) -> Self {
        Self { sets: std::iter::repeat_with(S::default).take(num_vertices).collect() }
    }

    /// Applies small batches in input order. For large batches, each worker sorts and applies the part in its range of
    /// vertices.
    fn apply(&mut self, pool: &Pool, batch: Batch<'_>, change: impl Fn(&mut S, u32) + Sync) -> f64 {
        const SMALL: usize = 2000;
        let time = seconds(|| {
            if batch.len() <= SMALL {
                batch.iter().for_each(|&(source, target)| change(&mut self.sets[source as usize], target));
                return;
            }
            let grain = self.sets.len().div_ceil(pool.num_threads());
            pool.for_each_part_mut(&mut self.sets, grain, |start, sets| {
                let own = start as u32..(start + sets.len()) as u32;
                let mut edges: Vec<_> = batch.iter().copied().filter(|edge| own.contains(&edge.0)).collect();
                edges.sort_unstable();
                edges.iter().for_each(|&(source, target)| change(&mut sets[source as usize - start], target));
            });
        });
        time.0
    }
}

impl<S: Set> Container for SetEach<S> {
    fn insert(&mut self, pool: &Pool, batch: Batch<'_>) -> anyhow::Result<f64> {
        Ok(self.apply(pool, batch, S::add))
    }

    fn remove(&mut self, pool: &Pool, batch: Batch<'_>) -> anyhow::Result<f64> {
        Ok(self.apply(pool, batch, S::cut))
    }
}

/// The slots of a leaf of the packed memory array.
const LEAF: usize = 64;

/// A packed memory array of all edges (Bender, Demaine, Farach-Colton 2000), with leaves packed to the left, for one
/// thread.
pub(super) struct PackedArray {
    slots: Vec<u64>,
    counts: Vec<u8>,
    /// The first key of each leaf. An empty leaf repeats the key of the leaf before.
    firsts: Vec<u64>,
}

impl PackedArray {
    pub(super) fn new() -> Self {
        Self { slots: vec![0; LEAF], counts: vec![0], firsts: vec![0] }
    }

    fn leaf_of(&self, key: u64) -> usize {
        self.firsts.partition_point(|&first| first <= key).saturating_sub(1)
    }

    fn leaf(&self, leaf: usize) -> &[u64] {
        &self.slots[leaf * LEAF..leaf * LEAF + usize::from(self.counts[leaf])]
    }

    fn insert(&mut self, key: u64) {
        let mut leaf = self.leaf_of(key);
        if usize::from(self.counts[leaf]) == LEAF {
            if self.leaf(leaf).binary_search(&key).is_ok() {
                return;
            }
            self.spread(leaf);
            leaf = self.leaf_of(key);
        }
        let len = usize::from(self.counts[leaf]);
        let start = leaf * LEAF;
        if let Err(place) = self.slots[start..start + len].binary_search(&key) {
            self.slots.copy_within(start + place..start + len, start + place + 1);
            self.slots[start + place] = key;
            self.counts[leaf] += 1;
            self.firsts[leaf] = self.slots[start].min(if leaf == 0 { 0 } else { u64::MAX });
        }
    }

    fn remove(&mut self, key: u64) {
        let leaf = self.leaf_of(key);
        let (start, len) = (leaf * LEAF, usize::from(self.counts[leaf]));
        if let Ok(place) = self.slots[start..start + len].binary_search(&key) {
            self.slots.copy_within(start + place + 1..start + len, start + place);
            self.counts[leaf] -= 1;
        }
    }

    /// Spreads the smallest window around a full leaf whose density is below its upper bound. Doubles the array if none
    /// is.
    fn spread(&mut self, leaf: usize) {
        let num_leaves = self.counts.len();
        let mut window = 2;
        while window <= num_leaves {
            let start = leaf & !(window - 1);
            let count: usize = self.counts[start..start + window].iter().map(|&count| usize::from(count)).sum();
            // The bound falls from all slots of a leaf to four fifths of the whole array.
            let bound = 1.0 - 0.2 * f64::from(window.ilog2()) / f64::from(num_leaves.ilog2());
            if (count as f64) < bound * (window * LEAF) as f64 {
                return self.redistribute(start, window, window);
            }
            window *= 2;
        }
        self.redistribute(0, num_leaves, 2 * num_leaves);
    }

    fn redistribute(&mut self, start: usize, num_old: usize, num_new: usize) {
        let keys: Vec<u64> = (start..start + num_old).flat_map(|leaf| self.leaf(leaf).to_vec()).collect();
        if num_new > num_old {
            self.slots.resize(num_new * LEAF, 0);
            self.counts.resize(num_new, 0);
            self.firsts.resize(num_new, 0);
        }
        for i in 0..num_new {
            let own = &keys[keys.len() * i / num_new..keys.len() * (i + 1) / num_new];
            let leaf = start + i;
            self.slots[leaf * LEAF..leaf * LEAF + own.len()].copy_from_slice(own);
            self.counts[leaf] = own.len() as u8;
            self.firsts[leaf] = match own.first() {
                Some(&first) if leaf > 0 => first,
                _ => self.firsts[leaf.saturating_sub(1)],
            };
        }
    }

    fn apply(&mut self, batch: Batch<'_>, change: impl Fn(&mut Self, u64)) -> f64 {
        let time = seconds(|| {
            let mut keys: Vec<u64> = batch.iter().map(|&(s, t)| u64::from(s) << 32 | u64::from(t)).collect();
            keys.sort_unstable();
            keys.into_iter().for_each(|key| change(self, key));
        });
        time.0
    }
}

impl Container for PackedArray {
    fn insert(&mut self, _: &Pool, batch: Batch<'_>) -> anyhow::Result<f64> {
        Ok(self.apply(batch, Self::insert))
    }

    fn remove(&mut self, _: &Pool, batch: Batch<'_>) -> anyhow::Result<f64> {
        Ok(self.apply(batch, Self::remove))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packed_array_is_a_set() {
        let mut array = PackedArray::new();
        let mut model = BTreeSet::new();
        let mut key = 1_u64;
        for i in 0..30_000 {
            key = key.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let short = key >> 48;
            if i % 3 == 2 {
                array.remove(short);
                model.remove(&short);
            } else {
                array.insert(short);
                model.insert(short);
            }
        }
        let all: Vec<u64> = (0..array.counts.len()).flat_map(|leaf| array.leaf(leaf).to_vec()).collect();
        assert_eq!(all, model.into_iter().collect::<Vec<_>>());
    }
}
