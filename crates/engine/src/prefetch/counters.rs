//! Counters of the prefetcher, by policy.

use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};

use super::usefulness::UsefulnessEstimate;

/// Counters of the prefetcher, by policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrefetchStats {
    /// Lists of the neighbors of visited vertices.
    pub neighborhood: PolicyStats,
    /// Bytes ahead of scans.
    pub sequential: PolicyStats,
    /// Lists that were announced exactly.
    pub frontier: PolicyStats,
}

/// Counters of one policy. A piece is a range of a file that one call asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyStats {
    /// Announced lists; for scans, announced vertices.
    pub requested: u64,
    /// Announcements without action: the ring was full, they were stale, or the policy paused.
    pub dropped: u64,
    /// Pieces that the system was asked to read.
    pub issued: u64,
    /// Bytes of these pieces.
    pub bytes: u64,
    /// Pieces that were resident and not asked for.
    pub already_resident: u64,
    /// Sampled pieces that had been read some time later.
    pub useful: u64,
    /// Sampled pieces that had not been read, or were evicted.
    pub wasted: u64,
}

impl PrefetchStats {
    /// The sum of all policies.
    pub fn total(&self) -> PolicyStats {
        self.neighborhood + self.sequential + self.frontier
    }

    /// Whether anything was announced.
    pub fn has_worked(&self) -> bool {
        self.total() != PolicyStats::default()
    }

    /// Each policy with its name.
    pub fn by_policy(&self) -> [(&'static str, PolicyStats); 3] {
        [("neighbourhood", self.neighborhood), ("sequential", self.sequential), ("frontier", self.frontier)]
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
pub(super) struct PrefetchCounters([PolicyCounters; 3]);

/// A policy of prefetching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrefetchPolicy {
    Neighborhood,
    Sequential,
    Frontier,
}

/// The counters of one policy, and its usefulness estimate.
#[derive(Debug, Default)]
pub(super) struct PolicyCounters {
    pub requested: PrefetchCounter,
    pub dropped: PrefetchCounter,
    pub issued: PrefetchCounter,
    pub bytes: PrefetchCounter,
    pub already_resident: PrefetchCounter,
    pub useful: PrefetchCounter,
    pub wasted: PrefetchCounter,
    pub usefulness: UsefulnessEstimate,
}

/// A counter that several threads increment.
#[derive(Debug, Default)]
pub(super) struct PrefetchCounter(AtomicU64);

impl PrefetchCounter {
    pub fn add(&self, number: u64) {
        // Relaxed: no other memory depends on a counter.
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl PrefetchCounters {
    pub fn of(&self, policy: PrefetchPolicy) -> &PolicyCounters {
        &self.0[policy as usize]
    }

    /// Lists that were announced, except by scans.
    pub fn num_searched(&self) -> u64 {
        // Scans do not count: they ask whether a search runs beside them.
        [PrefetchPolicy::Neighborhood, PrefetchPolicy::Frontier]
            .map(|policy| self.of(policy).requested.get())
            .iter()
            .sum()
    }

    pub fn stats(&self) -> PrefetchStats {
        let of = |policy| self.of(policy).stats();
        PrefetchStats {
            neighborhood: of(PrefetchPolicy::Neighborhood),
            sequential: of(PrefetchPolicy::Sequential),
            frontier: of(PrefetchPolicy::Frontier),
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
