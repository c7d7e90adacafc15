//! The chain of versions: which are kept, which deltas a reader applies to the base, which a writer composes.
//!
//! An append leaves a version. Each version but the oldest has a delta that leads to it from the version before, and
//! back. The base is the whole graph at one version, the *anchor*. Any other version is the anchor with deltas applied,
//! forward or backward, or with merged deltas, which stand for ranges. A *hidden* version is one that users no longer
//! see. It stays only while the chain needs it.
//!
//! Nothing here touches a file: functions return the next chain, and the deltas to compose for it.

mod cover;
mod plan;

use std::collections::{HashMap, HashSet};

#[cfg(test)]
use crate::changes::ApplyDirection;
use crate::options::{GraphOptions, Retention, SnapshotTag};

pub(crate) use plan::{ChainPlan, Composition};

/// Place of a delta: the number of its file, and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct DeltaRef {
    pub file: u32,
    pub index: u32,
}

/// File numbers from here on stand for deltas that are not written yet.
pub(crate) const FIRST_UNWRITTEN: u32 = u32::MAX - 1;

impl DeltaRef {
    /// The delta that is being appended.
    pub const NEW: Self = Self { file: FIRST_UNWRITTEN, index: 0 };

    /// The result of the composition with this index.
    pub const fn composed(index: u32) -> Self {
        Self { file: FIRST_UNWRITTEN + 1, index }
    }
}

/// A version of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChainVersion {
    /// Number of its snapshot; never given twice.
    pub number: u32,
    /// Whether users see it.
    pub is_kept: bool,
    pub name: Option<String>,
    /// Time of creation by the clock, in seconds since 1970; the only time that retention uses.
    pub unix_time: u64,
    /// Time of the data, in microseconds since 1970.
    pub as_of: Option<i64>,
    /// Epoch of the last commit that it contains.
    pub epoch: u64,
    /// The number of the next row at this epoch.
    pub next_row: u64,
    pub vertex_bound: u64,
    /// Number of live vertices.
    pub num_vertices: u64,
    pub num_edges: u64,
    /// Number of entries of the out-lists.
    pub num_arcs: u64,
    /// Number of edges that the kept version before lacks; for the oldest kept version, all edges.
    pub num_added: u64,
    /// Number of edges that only the kept version before has.
    pub num_removed: u64,
    /// The delta from the version before; `None` for the oldest.
    pub delta: Option<DeltaRef>,
}

impl ChainVersion {
    /// Gives it a name and a time.
    pub fn give(&mut self, tag: SnapshotTag<'_>) {
        (self.name, self.as_of) = (tag.name.map(str::to_owned), tag.as_of);
    }
}

/// A merged delta: stands for all deltas after version `from`, up to version `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MergedDelta {
    pub from: u32,
    pub to: u32,
    pub delta: DeltaRef,
}

/// All versions, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub versions: Vec<ChainVersion>,
    /// The version of the base.
    pub anchor: u32,
    pub merged_deltas: Vec<MergedDelta>,
}

impl Chain {
    /// Checks a chain from a file; returns the first fault.
    pub fn check(&self) -> Result<(), String> {
        let wrong = |what: String| Err(what);
        let Some((first, rest)) = self.versions.split_first() else { return wrong("there is no version".into()) };
        if first.delta.is_some() || first.number == 0 {
            return wrong("the oldest version has a delta or the number 0".into());
        }
        if let Some(version) = rest.iter().find(|version| version.delta.is_none()) {
            return wrong(format!("version {} has no delta", version.number));
        }
        for pair in self.versions.windows(2) {
            // Ids and rows are never given back, so the bounds never shrink.
            let bounds = |version: &ChainVersion| [version.vertex_bound, version.next_row, version.epoch];
            let shrinks = bounds(&pair[0]).iter().zip(bounds(&pair[1])).any(|(before, after)| *before > after);
            if pair[0].number >= pair[1].number || shrinks {
                return wrong(format!("version {} cannot follow version {}", pair[1].number, pair[0].number));
            }
        }
        let too_many = |version: &&ChainVersion| version.num_vertices > version.vertex_bound;
        if let Some(version) = self.versions.iter().find(too_many) {
            return wrong(format!("more vertices live in version {} than there are", version.number));
        }
        if self.index(self.anchor).is_none() {
            return wrong(format!("the base is of version {}, which does not exist", self.anchor));
        }
        // `Store::newest_window` relies on a kept snapshot.
        if self.kept().next().is_none() {
            return wrong("no snapshot is kept".into());
        }
        let mut names = HashSet::new();
        for version in &self.versions {
            if version.name.as_deref().is_some_and(|name| !names.insert(name)) {
                return wrong(format!("two snapshots have the name of snapshot {}", version.number));
            }
        }
        let is_wrong = |merged: &&MergedDelta| {
            merged.from >= merged.to || self.index(merged.from).is_none() || self.index(merged.to).is_none()
        };
        match self.merged_deltas.iter().find(is_wrong) {
            Some(merged) => wrong(format!("a merged delta leads from version {} to {}", merged.from, merged.to)),
            None => Ok(()),
        }
    }

    /// Checks the counts of edges and arcs in versions from a file. The counts size memory and enter sums, in which a
    /// number near 2^64 would wrap.
    pub fn check_counts(&self, options: &GraphOptions) -> Result<(), String> {
        for &ChainVersion { number, num_edges, num_arcs, .. } in &self.versions {
            if !options.can_have(num_edges, num_arcs) {
                return Err(format!("version {number}: {num_edges} edges cannot have {num_arcs} arcs"));
            }
        }
        let mut num_before = 0;
        for &ChainVersion { number, num_edges, num_added, num_removed, .. } in self.kept() {
            if num_added > num_edges || num_removed > num_before {
                return Err(format!(
                    "version {number}: {num_added} of {num_edges} edges cannot be new, with {num_removed} of \
                     {num_before} removed before"
                ));
            }
            num_before = num_edges;
        }
        Ok(())
    }

    /// Index of a version in the chain.
    pub fn index(&self, number: u32) -> Option<usize> {
        // Numbers ascend, so a search finds the version.
        self.versions.binary_search_by_key(&number, |version| version.number).ok()
    }

    /// A version, kept or not.
    pub fn version(&self, number: u32) -> Option<&ChainVersion> {
        self.index(number).map(|index| &self.versions[index])
    }

    /// The versions that users see, oldest first.
    pub fn kept(&self) -> impl DoubleEndedIterator<Item = &ChainVersion> {
        self.versions.iter().filter(|version| version.is_kept)
    }

    /// The newest version, kept or not.
    pub fn newest(&self) -> &ChainVersion {
        self.versions.last().expect("a chain is never empty")
    }

    /// The kept version before this one.
    pub fn kept_before(&self, number: u32) -> Option<u32> {
        self.kept().rev().map(|version| version.number).find(|&before| before < number)
    }

    /// The versions between which the next net change set after the epoch `since` leads, by number. `None` if no kept
    /// version has this epoch, or if no later one is kept and the newest version is not later.
    pub fn step_after(&self, since: u64) -> Option<(u32, u32)> {
        if !self.kept().any(|version| version.epoch == since) {
            return None;
        }
        let newest = self.newest().number;
        // The newest version counts even if its snapshot was dropped, because the WAL goes on from there.
        let is_end = |version: &&ChainVersion| version.epoch > since && (version.is_kept || version.number == newest);
        let end = self.versions.iter().find(is_end)?.epoch;
        // Versions without a commit between them share an epoch, whose graph is that of the last one.
        let last_of = |epoch| self.versions.iter().rfind(|version| version.epoch == epoch);
        Some((last_of(since)?.number, last_of(end)?.number))
    }

    /// The places of all deltas that the chain refers to.
    pub fn delta_refs(&self) -> impl Iterator<Item = DeltaRef> {
        let deltas = self.versions.iter().filter_map(|version| version.delta);
        // Merged deltas keep their files, too.
        deltas.chain(self.merged_deltas.iter().map(|merged| merged.delta))
    }

    /// Replaces the places of deltas that were written or moved.
    pub fn relocate(&mut self, places: &HashMap<DeltaRef, DeltaRef>) {
        let deltas = self.versions.iter_mut().filter_map(|version| version.delta.as_mut());
        for delta in deltas.chain(self.merged_deltas.iter_mut().map(|merged| &mut merged.delta)) {
            if let Some(place) = places.get(delta) {
                *delta = *place;
            }
        }
    }

    /// The snapshots that `retention` drops at the time `now`, in seconds since 1970. Named snapshots and the newest
    /// one are never dropped.
    pub fn given_up(&self, retention: Retention, now: u64) -> Vec<u32> {
        let kept: Vec<&ChainVersion> = self.kept().collect();
        let goes = |place: usize, version: &ChainVersion| match retention {
            Retention::All => false,
            Retention::Last(num_kept) => kept.len() - place > num_kept as usize,
            Retention::Named => true,
            Retention::Days(days) => version.unix_time.saturating_add(u64::from(days) * 24 * 60 * 60) < now,
        };
        // The newest snapshot is left out, because it is never dropped.
        let older = &kept[..kept.len().saturating_sub(1)];
        let going = older.iter().enumerate().filter(|(place, version)| version.name.is_none() && goes(*place, version));
        going.map(|(_, version)| version.number).collect()
    }
}

#[cfg(test)]
mod tests;
