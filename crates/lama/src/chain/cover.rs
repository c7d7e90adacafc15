//! Which levels lead from one version to another.

use super::{Chain, LevelRef};
use crate::side::Sense;

impl Chain {
    /// What is applied to the base run, one after the other, to get to a version: as few levels and delta runs as
    /// possible.
    pub fn steps(&self, number: u32) -> Vec<(LevelRef, Sense)> {
        let (Some(anchor), Some(target)) = (self.index(self.anchor), self.index(number)) else { return Vec::new() };
        if anchor <= target {
            self.cover(anchor, target).into_iter().map(|level| (level, Sense::Forward)).collect()
        } else {
            self.cover(target, anchor).into_iter().rev().map(|level| (level, Sense::Backward)).collect()
        }
    }

    /// The levels of the versions after `after` up to `last`, oldest first.
    pub fn levels_between(&self, after: u32, last: u32) -> Vec<LevelRef> {
        let inside = self.versions.iter().filter(|version| after < version.number && version.number <= last);
        inside.filter_map(|version| version.level).collect()
    }

    /// The fewest levels and delta runs that lead from one place to a later one.
    fn cover(&self, first: usize, last: usize) -> Vec<LevelRef> {
        // By place: how many steps lead there from `first`, the last of them, and where that one starts.
        let mut best: Vec<(u32, Option<(LevelRef, usize)>)> = vec![(0, None)];
        let mut runs: Vec<(usize, usize, LevelRef)> = self
            .delta_runs
            .iter()
            .filter_map(|run| Some((self.index(run.to)?, self.index(run.from)?, run.level)))
            .filter(|&(to, from, _)| from >= first && to <= last)
            .collect();
        runs.sort_unstable();
        let mut runs = runs.into_iter().peekable();
        for place in first + 1..=last {
            let level = self.versions[place].level.map(|level| (level, place - 1));
            let mut shortest = (best[place - 1 - first].0 + 1, level);
            while let Some((_, from, level)) = runs.next_if(|&(to, ..)| to == place) {
                let num_steps = best[from - first].0 + 1;
                if num_steps < shortest.0 {
                    shortest = (num_steps, Some((level, from)));
                }
            }
            best.push(shortest);
        }
        let mut steps = Vec::new();
        let mut place = last;
        while let Some((level, from)) = best[place - first].1 {
            steps.push(level);
            place = from;
        }
        steps.reverse();
        steps
    }
}
