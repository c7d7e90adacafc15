//! What the advisor did, by policy.

use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};

use super::worth::Worth;

/// What was read ahead, by policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrefetchStats {
    /// For the neighbours of visited vertices.
    pub neighbourhood: PolicyStats,
    /// Ahead of scans.
    pub sequential: PolicyStats,
    /// What was announced exactly.
    pub frontier: PolicyStats,
}

/// What one policy did. Pieces are parts of files that lie close together, and that one call asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyStats {
    /// Lists that were announced; of a scan, announced vertices.
    pub requested: u64,
    /// Announcements that were not acted upon: nobody had time, or they were stale.
    pub dropped: u64,
    /// Pieces that the system was asked to read.
    pub issued: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Pieces that were in memory, and not asked for.
    pub already_resident: u64,
    /// Of the pieces that were looked at again some time later: those that had been read by then.
    pub useful: u64,
    /// Of the same, those that nobody had read, or that had gone.
    pub wasted: u64,
}

impl PrefetchStats {
    /// All policies together.
    pub fn total(&self) -> PolicyStats {
        self.neighbourhood + self.sequential + self.frontier
    }

    /// Whether anything was announced.
    pub fn has_worked(&self) -> bool {
        self.total() != PolicyStats::default()
    }

    /// Each policy with its name.
    pub fn by_policy(&self) -> [(&'static str, PolicyStats); 3] {
        [("neighbourhood", self.neighbourhood), ("sequential", self.sequential), ("frontier", self.frontier)]
    }
}

impl Add for PolicyStats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            requested: self.requested + other.requested,
            dropped: self.dropped + other.dropped,
            issued: self.issued + other.issued,
            bytes: self.bytes + other.bytes,
            already_resident: self.already_resident + other.already_resident,
            useful: self.useful + other.useful,
            wasted: self.wasted + other.wasted,
        }
    }
}

/// The counters behind [`PrefetchStats`].
#[derive(Debug, Default)]
pub(super) struct Counters([PolicyCounters; 3]);

/// Who reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Neighbourhood,
    Sequential,
    Frontier,
}

/// Those of one policy.
#[derive(Debug, Default)]
pub(super) struct PolicyCounters {
    pub requested: Counter,
    pub dropped: Counter,
    pub issued: Counter,
    pub bytes: Counter,
    pub already_resident: Counter,
    pub useful: Counter,
    pub wasted: Counter,
    pub worth: Worth,
}

/// A number that several threads add to.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub fn of(&self, policy: Policy) -> &PolicyCounters {
        &self.0[policy as usize]
    }

    /// The lists that were announced but by scans.
    pub fn num_searched(&self) -> u64 {
        [Policy::Neighbourhood, Policy::Frontier].map(|policy| self.of(policy).requested.get()).iter().sum()
    }

    pub fn stats(&self) -> PrefetchStats {
        let of = |policy| self.of(policy).stats();
        PrefetchStats {
            neighbourhood: of(Policy::Neighbourhood),
            sequential: of(Policy::Sequential),
            frontier: of(Policy::Frontier),
        }
    }
}

impl PolicyCounters {
    fn stats(&self) -> PolicyStats {
        PolicyStats {
            requested: self.requested.get(),
            dropped: self.dropped.get(),
            issued: self.issued.get(),
            bytes: self.bytes.get(),
            already_resident: self.already_resident.get(),
            useful: self.useful.get(),
            wasted: self.wasted.get(),
        }
    }
}
