//! The next chain, and what is to be written for it.

use std::collections::HashSet;

use super::{Chain, DeltaRun, LevelRef, Version};

/// So many hidden versions in a row are too many.
pub(super) const CROWD: usize = 8;

/// Levels that become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Composition {
    /// The version that it leads from.
    pub from: u32,
    /// The version that it leads to.
    pub to: u32,
    /// The levels, oldest first; two at least.
    pub parts: Vec<LevelRef>,
}

/// The next chain, and what is to be written for it: its levels [`LevelRef::composed`]`(i)` are `compositions[i]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub chain: Chain,
    pub compositions: Vec<Composition>,
    /// Kept versions whose edges added and removed must be counted again, for the one before is another now.
    pub recounts: Vec<u32>,
}

impl Chain {
    /// Hides these versions; what nothing needs of them goes.
    ///
    /// A hidden version between others goes by composing its level into the next. Versions older than both the anchor
    /// and everything kept go without a trace.
    pub fn without(&self, dropped: &[u32]) -> Plan {
        self.clone().hide(dropped).normalise(self, &HashSet::new())
    }

    /// Adds a version whose level is [`LevelRef::NEW`], and hides others as [`without`](Self::without); but hidden
    /// versions between others stay for a while if composing them now would be too much work, by the bytes of levels.
    pub fn with(&self, version: Version, dropped: &[u32], num_bytes: impl Fn(LevelRef) -> u64) -> Plan {
        debug_assert!(version.level == Some(LevelRef::NEW) && version.number > self.newest().number);
        let mut chain = self.clone();
        chain.versions.push(version);
        let chain = chain.hide(dropped);
        let staying = chain.staying(num_bytes);
        chain.normalise(self, &staying)
    }

    /// Moves the anchor to a version of the chain: a new base run. Delta runs that do not begin there or later are
    /// of no use any more.
    pub fn merged_to(&self, number: u32) -> Plan {
        let mut chain = self.clone();
        chain.anchor = number;
        chain.delta_runs.retain(|run| run.from >= number);
        chain.normalise(self, &HashSet::new())
    }

    /// The range of versions for which a delta run over the newest `num_levels` levels stands: none where they are
    /// fewer than two after the anchor, or there is one already.
    pub fn newest_range(&self, num_levels: u32) -> Option<(u32, u32)> {
        let anchor = self.index(self.anchor)?;
        let last = self.versions.len() - 1;
        let first = last.saturating_sub(num_levels as usize).max(anchor);
        let (from, to) = (self.versions[first].number, self.versions[last].number);
        let is_new = !self.delta_runs.iter().any(|run| (run.from, run.to) == (from, to));
        (last >= first + 2 && is_new).then_some((from, to))
    }

    /// Adds a delta run in place of those that it contains; they stay where readers of the newest version would have
    /// more to look at without them.
    pub fn with_delta_run(&self, run: DeltaRun) -> Self {
        let mut all = self.clone();
        all.delta_runs.push(run);
        let mut chain = all.clone();
        chain.delta_runs.retain(|old| *old == run || old.from < run.from || old.to > run.to);
        let newest = self.newest().number;
        if chain.steps(newest).len() <= all.steps(newest).len() { chain } else { all }
    }

    fn hide(mut self, dropped: &[u32]) -> Self {
        for version in self.versions.iter_mut().filter(|version| dropped.contains(&version.number)) {
            version.is_kept = false;
            version.name = None;
        }
        self
    }

    /// The hidden versions that are not worth while to be composed with the next yet.
    ///
    /// Of hidden versions in a row, the newest become one once they are [`CROWD`] with none that makes up much of
    /// their bytes: so whatever is composed gets into something several times its size, and is written a few times in
    /// all, and those that stay are few.
    fn staying(&self, num_bytes: impl Fn(LevelRef) -> u64) -> HashSet<u32> {
        let is_loose = |version: &Version| !version.is_kept && version.number != self.anchor;
        let mut staying = HashSet::new();
        for row in self.versions.chunk_by(|a, b| is_loose(a) && is_loose(b)) {
            let sizes: Vec<u64> = row.iter().map(|version| version.level.map_or(0, &num_bytes)).collect();
            let is_crowd = |&start: &usize| {
                let (sum, max) = (sizes[start..].iter().sum::<u64>(), sizes[start..].iter().max());
                max.is_none_or(|max| max * (CROWD as u64 / 2) <= sum)
            };
            let crowd = (0..=row.len().saturating_sub(CROWD)).find(is_crowd).filter(|_| row.len() >= CROWD);
            let stays = |place: usize| crowd.is_none_or(|start| place < start || place + 1 == row.len());
            staying
                .extend(row.iter().enumerate().filter(|(place, _)| stays(*place)).map(|(_, version)| version.number));
        }
        staying
    }

    fn normalise(mut self, before: &Self, staying: &HashSet<u32>) -> Plan {
        let oldest_kept = self.kept().next().map_or(self.anchor, |version| version.number);
        let first = self.anchor.min(oldest_kept);
        self.versions.retain(|version| version.number >= first);
        let mut compositions = Vec::new();
        let mut versions: Vec<Version> = Vec::new();
        let mut parts = Vec::new();
        let mut old = self.versions.into_iter().peekable();
        while let Some(mut version) = old.next() {
            parts.extend(version.level.filter(|_| version.number != first));
            let is_needed = version.is_kept || version.number == self.anchor || old.peek().is_none();
            if !is_needed && !staying.contains(&version.number) {
                continue;
            }
            version.level = match parts.len() {
                0 => None,
                1 => parts.pop(),
                _ => {
                    let from = versions.last().map_or(first, |before| before.number);
                    let parts = std::mem::take(&mut parts);
                    compositions.push(Composition { from, to: version.number, parts });
                    Some(LevelRef::composed(compositions.len() as u32 - 1))
                }
            };
            versions.push(version);
        }
        self.versions = versions;
        let numbers: HashSet<u32> = self.versions.iter().map(|version| version.number).collect();
        self.delta_runs.retain(|run| numbers.contains(&run.from) && numbers.contains(&run.to));
        let recounts = self.recounts(before);
        Plan { chain: self, compositions, recounts }
    }

    /// The kept versions that follow another kept version than in `before`; the oldest has added all its edges.
    fn recounts(&mut self, before: &Self) -> Vec<u32> {
        // What a new version changed was counted against the newest version, kept or not.
        let new_counts_stand = before.newest().is_kept;
        let mut recounts = Vec::new();
        let mut previous = None;
        for version in self.versions.iter_mut().filter(|version| version.is_kept) {
            let number = version.number;
            if previous.is_none() {
                (version.num_added, version.num_removed) = (version.num_edges, 0);
            } else {
                let counts_stand = before.index(number).is_some() || new_counts_stand;
                if !counts_stand || before.kept_before(number) != previous {
                    recounts.push(number);
                }
            }
            previous = Some(number);
        }
        recounts
    }
}
