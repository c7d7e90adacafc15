//! The chain of versions: what is kept, what a reader applies to the base run, what a writer composes.
//!
//! A version is what one append left. Each but the oldest has a level that leads to it from the version before, and
//! backwards. The base run is a whole graph at one version, the *anchor*; every other version is the anchor with levels
//! applied, forwards or backwards, or with delta runs, which stand for the levels of a range. A version that users do
//! not see any more is *hidden*: it stays only while something needs it.
//!
//! Nothing here touches a file: functions give the next chain and which levels are to be composed for it.

mod cover;
mod plan;

use std::collections::{HashMap, HashSet};

use crate::options::{GraphOptions, Retention};
#[cfg(test)]
use crate::side::Sense;

pub(crate) use plan::{Composition, Plan};

/// Where a level is: a file, by number, and which of the levels in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LevelRef {
    pub file: u32,
    pub index: u32,
}

/// File numbers from here on stand for levels that are not written yet.
pub(crate) const FIRST_UNWRITTEN: u32 = u32::MAX - 1;

impl LevelRef {
    /// The level that is being appended.
    pub const NEW: Self = Self { file: FIRST_UNWRITTEN, index: 0 };

    /// The level that this composition will give.
    pub const fn composed(index: u32) -> Self {
        Self { file: FIRST_UNWRITTEN + 1, index }
    }
}

/// A version of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// Its number as a snapshot; never given twice.
    pub number: u32,
    /// Whether users see it.
    pub is_kept: bool,
    pub name: Option<String>,
    pub unix_time: u64,
    pub vertex_bound: u64,
    /// The vertices that live.
    pub num_vertices: u64,
    pub num_edges: u64,
    /// The entries of the out-lists.
    pub num_arcs: u64,
    /// The edges that it has and the kept version before has not; of the oldest kept, all.
    pub num_added: u64,
    /// The edges that the kept version before has and it has not.
    pub num_removed: u64,
    /// What leads here from the version before; the oldest has none.
    pub level: Option<LevelRef>,
}

/// A level that stands for all levels after one version up to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeltaRun {
    pub from: u32,
    pub to: u32,
    pub level: LevelRef,
}

/// All versions, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub versions: Vec<Version>,
    /// The version of the base run.
    pub anchor: u32,
    pub delta_runs: Vec<DeltaRun>,
}

impl Chain {
    /// What is wrong with a chain that was read.
    pub fn check(&self) -> Result<(), String> {
        let wrong = |what: String| Err(what);
        let Some((first, rest)) = self.versions.split_first() else { return wrong("there is no version".into()) };
        if first.level.is_some() || first.number == 0 {
            return wrong("the oldest version has a level or the number 0".into());
        }
        if let Some(version) = rest.iter().find(|version| version.level.is_none()) {
            return wrong(format!("version {} has no level", version.number));
        }
        for pair in self.versions.windows(2) {
            if pair[0].number >= pair[1].number || pair[0].vertex_bound > pair[1].vertex_bound {
                return wrong(format!("version {} cannot follow version {}", pair[1].number, pair[0].number));
            }
        }
        let too_many = |version: &&Version| version.num_vertices > version.vertex_bound;
        if let Some(version) = self.versions.iter().find(too_many) {
            return wrong(format!("more vertices live in version {} than there are", version.number));
        }
        if self.index(self.anchor).is_none() {
            return wrong(format!("the base run is of version {}, which does not exist", self.anchor));
        }
        if self.kept().next().is_none() {
            return wrong("no snapshot is kept".into());
        }
        let mut names = HashSet::new();
        for version in &self.versions {
            if version.name.as_deref().is_some_and(|name| !names.insert(name)) {
                return wrong(format!("two snapshots have the name of snapshot {}", version.number));
            }
        }
        let is_wrong =
            |run: &&DeltaRun| run.from >= run.to || self.index(run.from).is_none() || self.index(run.to).is_none();
        match self.delta_runs.iter().find(is_wrong) {
            Some(run) => wrong(format!("a delta run leads from version {} to {}", run.from, run.to)),
            None => Ok(()),
        }
    }

    /// What is wrong with the numbers of edges and arcs of versions that were read. They size memory and enter sums, where
    /// a number near 2^64 would wrap.
    pub fn check_counts(&self, options: &GraphOptions) -> Result<(), String> {
        for &Version { number, num_edges, num_arcs, .. } in &self.versions {
            if !options.can_have(num_edges, num_arcs) {
                return Err(format!("version {number}: {num_edges} edges cannot have {num_arcs} arcs"));
            }
        }
        let mut num_before = 0;
        for &Version { number, num_edges, num_added, num_removed, .. } in self.kept() {
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

    /// The place of a version.
    pub fn index(&self, number: u32) -> Option<usize> {
        self.versions.binary_search_by_key(&number, |version| version.number).ok()
    }

    /// A version, kept or not.
    pub fn version(&self, number: u32) -> Option<&Version> {
        self.index(number).map(|index| &self.versions[index])
    }

    /// The versions that users see, oldest first.
    pub fn kept(&self) -> impl DoubleEndedIterator<Item = &Version> {
        self.versions.iter().filter(|version| version.is_kept)
    }

    /// The newest version, kept or not.
    pub fn newest(&self) -> &Version {
        self.versions.last().expect("a chain is never empty")
    }

    /// The kept version before this one.
    pub fn kept_before(&self, number: u32) -> Option<u32> {
        self.kept().rev().map(|version| version.number).find(|&before| before < number)
    }

    /// Every level that something refers to.
    pub fn level_refs(&self) -> impl Iterator<Item = LevelRef> {
        let levels = self.versions.iter().filter_map(|version| version.level);
        levels.chain(self.delta_runs.iter().map(|run| run.level))
    }

    /// Writes down where levels are now.
    pub fn relocate(&mut self, places: &HashMap<LevelRef, LevelRef>) {
        let levels = self.versions.iter_mut().filter_map(|version| version.level.as_mut());
        for level in levels.chain(self.delta_runs.iter_mut().map(|run| &mut run.level)) {
            if let Some(place) = places.get(level) {
                *level = *place;
            }
        }
    }

    /// The snapshots that `retention` gives up at this time (in seconds since 1970): never a named one, never the
    /// newest.
    pub fn given_up(&self, retention: Retention, now: u64) -> Vec<u32> {
        let kept: Vec<&Version> = self.kept().collect();
        let goes = |place: usize, version: &Version| match retention {
            Retention::All => false,
            Retention::Last(num_kept) => kept.len() - place > num_kept as usize,
            Retention::Named => true,
            Retention::Days(days) => version.unix_time.saturating_add(u64::from(days) * 24 * 60 * 60) < now,
        };
        let older = &kept[..kept.len().saturating_sub(1)];
        let going = older.iter().enumerate().filter(|(place, version)| version.name.is_none() && goes(*place, version));
        going.map(|(_, version)| version.number).collect()
    }
}

#[cfg(test)]
mod tests;
