//! Chooses the deltas that lead from one version to another.

use super::{Chain, DeltaRef};
use crate::changes::ApplyDirection;

impl Chain {
    /// The fewest deltas and merged deltas that lead from the base to a version, in the order of their application.
    pub fn steps(&self, number: u32) -> Vec<(DeltaRef, ApplyDirection)> {
        let (Some(anchor), Some(target)) = (self.index(self.anchor), self.index(number)) else { return Vec::new() };
        if anchor <= target {
            self.cover(anchor, target).into_iter().map(|delta| (delta, ApplyDirection::Forward)).collect()
        } else {
            // An older version is reached by applying deltas backward, newest first.
            self.cover(target, anchor).into_iter().rev().map(|delta| (delta, ApplyDirection::Backward)).collect()
        }
    }

    /// The deltas of the versions after `after`, up to `last`, oldest first.
    pub fn deltas_between(&self, after: u32, last: u32) -> Vec<DeltaRef> {
        let inside = self.versions.iter().filter(|version| after < version.number && version.number <= last);
        inside.filter_map(|version| version.delta).collect()
    }

    /// The fewest deltas and merged deltas that lead from one index to a later one: a shortest path.
    fn cover(&self, first: usize, last: usize) -> Vec<DeltaRef> {
        // By index: the number of steps from `first`, the last step, and the index where that step starts.
        let mut best: Vec<(u32, Option<(DeltaRef, usize)>)> = vec![(0, None)];
        // By their end, so that one walk over the versions meets each at its end.
        let mut ranges: Vec<(usize, usize, DeltaRef)> = self
            .merged_deltas
            .iter()
            .filter_map(|merged| Some((self.index(merged.to)?, self.index(merged.from)?, merged.delta)))
            .filter(|&(to, from, _)| from >= first && to <= last)
            .collect();
        ranges.sort_unstable();
        let mut ranges = ranges.into_iter().peekable();
        for place in first + 1..=last {
            // Ties go to the deltas of single versions, which are met first.
            let delta = self.versions[place].delta.map(|delta| (delta, place - 1));
            let mut shortest = (best[place - 1 - first].0 + 1, delta);
            while let Some((_, from, delta)) = ranges.next_if(|&(to, ..)| to == place) {
                let num_steps = best[from - first].0 + 1;
                if num_steps < shortest.0 {
                    shortest = (num_steps, Some((delta, from)));
                }
            }
            best.push(shortest);
        }
        let mut steps = Vec::new();
        let mut place = last;
        while let Some((delta, from)) = best[place - first].1 {
            steps.push(delta);
            place = from;
        }
        steps.reverse();
        steps
    }
}
