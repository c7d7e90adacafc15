//! The next chain, and the deltas to write for it.

use std::collections::HashSet;

use super::{Chain, ChainVersion, DeltaRef, MergedDelta};

/// This many hidden versions in a row may be composed.
pub(super) const CROWD: usize = 8;

/// Deltas to compose into one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Composition {
    /// The version that the result leads from.
    pub from: u32,
    /// The version that the result leads to.
    pub to: u32,
    /// The deltas, oldest first; at least two.
    pub parts: Vec<DeltaRef>,
}

/// The next chain, and the deltas to write for it: `compositions[i]` makes the delta [`DeltaRef::composed`]`(i)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChainPlan {
    pub chain: Chain,
    pub compositions: Vec<Composition>,
    /// Kept versions whose added and removed edges must be counted again, because the kept version before changed.
    pub recounts: Vec<u32>,
}

impl Chain {
    /// Hides these versions, and removes what nothing needs.
    ///
    /// A hidden version between others disappears by composing its delta into the next one. Versions older than both
    /// the anchor and every kept version are removed outright.
    pub fn without(&self, dropped: &[u32]) -> ChainPlan {
        self.clone().hide(dropped).normalise(self, &HashSet::new())
    }

    /// Adds a version whose delta is [`DeltaRef::NEW`], and hides others as [`without`](Self::without) does. But hidden
    /// versions between others stay for a while if composing them now would be too much work, by the bytes of deltas.
    pub fn with(&self, version: ChainVersion, dropped: &[u32], num_bytes: impl Fn(DeltaRef) -> u64) -> ChainPlan {
        debug_assert!(version.delta == Some(DeltaRef::NEW) && version.number > self.newest().number);
        let mut chain = self.clone();
        chain.versions.push(version);
        let chain = chain.hide(dropped);
        let staying = chain.staying(num_bytes);
        chain.normalise(self, &staying)
    }

    /// Moves the anchor to a version: a new base. Merged deltas that begin before it are removed.
    pub fn merged_to(&self, number: u32) -> ChainPlan {
        let mut chain = self.clone();
        chain.anchor = number;
        // A merged delta that begins before the anchor leads from no version that readers start at.
        chain.merged_deltas.retain(|merged| merged.from >= number);
        chain.normalise(self, &HashSet::new())
    }

    /// The range of versions for a merged delta over the newest `num_deltas` deltas. `None` if there are fewer than two
    /// after the anchor, or if this merged delta exists.
    pub fn newest_range(&self, num_deltas: u32) -> Option<(u32, u32)> {
        let anchor = self.index(self.anchor)?;
        let last = self.versions.len() - 1;
        let first = last.saturating_sub(num_deltas as usize).max(anchor);
        let (from, to) = (self.versions[first].number, self.versions[last].number);
        let is_new = !self.merged_deltas.iter().any(|merged| (merged.from, merged.to) == (from, to));
        (last >= first + 2 && is_new).then_some((from, to))
    }

    /// Adds a merged delta in place of those that it contains. They stay if readers of the newest version would apply
    /// more deltas without them.
    pub fn with_merged_delta(&self, merged: MergedDelta) -> Self {
        let mut all = self.clone();
        all.merged_deltas.push(merged);
        let mut chain = all.clone();
        // The new merged delta covers those inside, whose files can go.
        chain.merged_deltas.retain(|old| *old == merged || old.from < merged.from || old.to > merged.to);
        let newest = self.newest().number;
        // Fewer merged deltas save files, but must not lengthen the way to the newest version.
        if chain.steps(newest).len() <= all.steps(newest).len() { chain } else { all }
    }

    fn hide(mut self, dropped: &[u32]) -> Self {
        for version in self.versions.iter_mut().filter(|version| dropped.contains(&version.number)) {
            version.is_kept = false;
            // Another snapshot can have the name from now on.
            version.name = None;
        }
        self
    }

    /// The hidden versions that are not worth composing with the next version yet.
    ///
    /// Hidden versions in a row are composed, the newest part of them, once there are [`CROWD`] and none has most of
    /// the bytes. So a delta is always composed into a result several times its size. It is written few times in all,
    /// and few hidden versions stay.
    fn staying(&self, num_bytes: impl Fn(DeltaRef) -> u64) -> HashSet<u32> {
        let is_loose = |version: &ChainVersion| !version.is_kept && version.number != self.anchor;
        let mut staying = HashSet::new();
        for row in self.versions.chunk_by(|a, b| is_loose(a) && is_loose(b)) {
            let sizes: Vec<u64> = row.iter().map(|version| version.delta.map_or(0, &num_bytes)).collect();
            let is_crowd = |&start: &usize| {
                let (sum, max) = (sizes[start..].iter().sum::<u64>(), sizes[start..].iter().max());
                max.is_none_or(|max| max * (CROWD as u64 / 2) <= sum)
            };
            // The earliest start composes the most versions.
            let crowd = (0..=row.len().saturating_sub(CROWD)).find(is_crowd).filter(|_| row.len() >= CROWD);
            // The last of the row stays, and gets the composed delta.
            let stays = |place: usize| crowd.is_none_or(|start| place < start || place + 1 == row.len());
            staying
                .extend(row.iter().enumerate().filter(|(place, _)| stays(*place)).map(|(_, version)| version.number));
        }
        staying
    }

    fn normalise(mut self, before: &Self, staying: &HashSet<u32>) -> ChainPlan {
        let oldest_kept = self.kept().next().map_or(self.anchor, |version| version.number);
        // No kept version is read through versions before this one.
        let first = self.anchor.min(oldest_kept);
        self.versions.retain(|version| version.number >= first);
        let mut compositions = Vec::new();
        let mut versions: Vec<ChainVersion> = Vec::new();
        let mut parts = Vec::new();
        let mut old = self.versions.into_iter().peekable();
        while let Some(mut version) = old.next() {
            // The first version has none before it, so nothing needs its delta.
            parts.extend(version.delta.filter(|_| version.number != first));
            // The newest version stays, because the next delta starts from it.
            let is_needed = version.is_kept || version.number == self.anchor || old.peek().is_none();
            if !is_needed && !staying.contains(&version.number) {
                continue;
            }
            version.delta = match parts.len() {
                0 => None,
                1 => parts.pop(),
                _ => {
                    // The composition starts from the last version that stays.
                    let from = versions.last().map_or(first, |before| before.number);
                    let parts = std::mem::take(&mut parts);
                    compositions.push(Composition { from, to: version.number, parts });
                    Some(DeltaRef::composed(compositions.len() as u32 - 1))
                }
            };
            versions.push(version);
        }
        self.versions = versions;
        let numbers: HashSet<u32> = self.versions.iter().map(|version| version.number).collect();
        // A merged delta is useful only between versions that exist.
        self.merged_deltas.retain(|merged| numbers.contains(&merged.from) && numbers.contains(&merged.to));
        let recounts = self.recounts(before);
        ChainPlan { chain: self, compositions, recounts }
    }

    /// Kept versions whose kept predecessor differs from that in `before`. The oldest kept version has added all its
    /// edges.
    fn recounts(&mut self, before: &Self) -> Vec<u32> {
        // Changes of a new version were counted against the newest version, kept or not.
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
