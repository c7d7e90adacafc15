//! The most frequent label, the smallest among equals.

use anden_base::VertexId;
use anden_base::memory::zeroed_huge;

/// Up to this many labels are compared one by one.
const SHORT: usize = 16;

/// The labels of one list, in memory of fixed size.
pub(super) struct Labels {
    values: Vec<u32>,
    /// A hash table: labels and their counts; the count of a free slot is 0.
    keys: Vec<u32>,
    counts: Vec<u32>,
    /// The used slots.
    used: Vec<u32>,
}

impl Labels {
    /// The most labels.
    pub(super) const MAX: usize = 1 << 12;

    /// Bytes of one `Labels`.
    pub(super) const NUM_BYTES: u64 = 6 * 4 * Self::MAX as u64;

    pub(super) fn new() -> Self {
        let slots = 2 * Self::MAX;
        // Reserved in full, as `NUM_BYTES` counts them.
        let list = || Vec::with_capacity(Self::MAX);
        Self { values: list(), keys: vec![0; slots], counts: vec![0; slots], used: list() }
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
    }

    /// Adds the labels of the vertices of a list, if all of them fit.
    #[inline(always)]
    pub(super) fn gather(&mut self, list: &[VertexId], labels: &[u32]) {
        if list.len() <= Self::MAX - self.values.len() {
            self.values.extend(list.iter().map(|&u| labels[u as usize]));
        }
    }

    /// The most frequent label; fastest if `guess` has the majority.
    #[inline(always)]
    pub(super) fn most_frequent(&mut self, guess: u32) -> u32 {
        let num_guessed = num_equal(&self.values, guess);
        // A majority decides without counts of the other labels.
        if 2 * num_guessed > self.values.len() {
            guess
        } else if self.values.len() <= SHORT {
            best(self.values.iter().map(|&label| (label, num_equal(&self.values, label) as u32)))
        } else {
            self.most_frequent_by_table()
        }
    }

    #[inline(never)]
    fn most_frequent_by_table(&mut self) -> u32 {
        // At most half full.
        let bits = self.values.len().next_power_of_two().ilog2() + 1;
        let mask = (1 << bits) - 1;
        let (keys, counts) = (&mut self.keys[..=mask], &mut self.counts[..=mask]);
        for &label in &self.values {
            // Fibonacci hashing: the highest bits of a multiple of the golden ratio.
            let mut slot = (label.wrapping_mul(0x9e37_79b1) >> (u32::BITS - bits)) as usize;
            while counts[slot] != 0 && keys[slot] != label {
                slot = (slot + 1) & mask;
            }
            if counts[slot] == 0 {
                keys[slot] = label;
                self.used.push(slot as u32);
            }
            counts[slot] += 1;
        }
        // Clears the used slots only: most lists use a small part of the table.
        let taken = self.used.drain(..).map(|slot| (keys[slot as usize], std::mem::take(&mut counts[slot as usize])));
        best(taken)
    }
}

fn num_equal(labels: &[u32], label: u32) -> usize {
    labels.iter().filter(|&&other| other == label).count()
}

/// The label with the highest count, the smallest among equals.
#[inline(always)]
fn best(counted: impl Iterator<Item = (u32, u32)>) -> u32 {
    let (mut best, mut most) = (u32::MAX, 0);
    for (label, count) in counted {
        if count > most || count == most && label < best {
            (best, most) = (label, count);
        }
    }
    best
}

/// One counter for every label, for lists of any length.
pub(super) struct Counts {
    counts: Vec<u32>,
    best: u32,
    most: u32,
}

impl Counts {
    /// *Memory*: 4 bytes a label.
    pub(super) fn new(num_labels: usize) -> Self {
        Self { counts: zeroed_huge(num_labels), best: u32::MAX, most: 0 }
    }

    /// Counts the labels of the vertices of a list. Counters saturate.
    pub(super) fn add(&mut self, list: &[VertexId], labels: &[u32]) {
        let (mut best, mut most) = (self.best, self.most);
        for &u in list {
            let label = labels[u as usize];
            let count = &mut self.counts[label as usize];
            *count = count.saturating_add(1);
            // Tracked while counting, because a search for the maximum would read all counters.
            if *count > most || *count == most && label < best {
                (best, most) = (label, *count);
            }
        }
        (self.best, self.most) = (best, most);
    }

    /// The most frequent label.
    pub(super) fn most_frequent(&self) -> u32 {
        self.best
    }

    /// Resets the counters of a list's labels.
    pub(super) fn forget(&mut self, list: &[VertexId], labels: &[u32]) {
        // Resets only the counters of this list: the array has one for every vertex.
        list.iter().for_each(|&u| self.counts[labels[u as usize] as usize] = 0);
        (self.best, self.most) = (u32::MAX, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anden_testkit::Random;

    #[test]
    fn every_way_of_counting_finds_the_same_label() {
        let labels: Vec<u32> = (0..1000).collect();
        let (mut few, mut all) = (Labels::new(), Counts::new(labels.len()));
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let len = 1 + random.below(if seed % 4 == 0 { Labels::MAX as u32 } else { 40 });
            let num_labels = 1 + random.below(1000);
            let list: Vec<u32> = (0..len).map(|_| random.below(num_labels)).collect();
            let mut sorted = list.clone();
            sorted.sort_unstable();
            let runs = sorted.chunk_by(|a, b| a == b);
            let wanted = runs.rev().max_by_key(|run| run.len()).map(|run| run[0]).unwrap();
            for guess in [wanted, list[0], u32::MAX] {
                few.clear();
                let (start, rest) = list.split_at(list.len() / 3);
                few.gather(start, &labels);
                few.gather(rest, &labels);
                assert_eq!(few.most_frequent(guess), wanted, "seed {seed}, guess {guess}");
            }
            assert_eq!(few.most_frequent_by_table(), wanted, "seed {seed}");
            all.add(&list, &labels);
            assert_eq!(all.most_frequent(), wanted, "seed {seed}");
            all.forget(&list, &labels);
            assert!(all.counts.iter().all(|&count| count == 0), "seed {seed}");
        }
    }
}
