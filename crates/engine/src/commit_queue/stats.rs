//! What was committed, and how long it took.
//!
//! Counters are single numbers without order between them. Times are kept by their magnitude, eight steps to a power of
//! two, and of many commits only of one in sixteen: two looks at the clock take as long as a small commit in a large
//! group.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Steps of a power of two.
const STEPS: u64 = 8;
/// Powers of two of nanoseconds: up to an hour.
const POWERS: u64 = 42;
/// After so many commits, only every [`SAMPLE`]th is timed.
const ALWAYS: u64 = 1 << 10;
const SAMPLE: u64 = 16;

/// What was committed since the database was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitStats {
    /// Commits that were answered well.
    pub commits: u64,
    /// Transactions that lost against another.
    pub conflicts: u64,
    /// Commits that were refused for what was in them.
    pub invalid: u64,
    /// Commits that failed for another reason, such as the disk.
    pub failures: u64,
    /// Times that a transaction was tried again.
    pub retries: u64,
    /// Transactions that lost so often that they were let in alone.
    pub admitted_alone: u64,
    /// Groups, each of them one epoch.
    pub groups: u64,
    /// The most commits of a group.
    pub largest_group: u64,
    /// How long commits took, from the request to the answer: half of them at most so long; 0 where there are none. Within
    /// an eighth, as the others.
    pub latency_ns_p50: u64,
    /// The same of 99 in 100.
    pub latency_ns_p99: u64,
    /// The same of 999 in 1,000.
    pub latency_ns_p999: u64,
}

/// What is counted.
#[derive(Debug)]
pub(crate) struct Counters {
    commits: AtomicU64,
    pub(crate) conflicts: AtomicU64,
    pub(crate) invalid: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) admitted_alone: AtomicU64,
    groups: AtomicU64,
    largest_group: AtomicU64,
    latencies: [AtomicU64; (STEPS * POWERS) as usize],
}

impl Default for Counters {
    fn default() -> Self {
        let zero = AtomicU64::default;
        Self {
            commits: zero(),
            conflicts: zero(),
            invalid: zero(),
            failures: zero(),
            retries: zero(),
            admitted_alone: zero(),
            groups: zero(),
            largest_group: zero(),
            latencies: std::array::from_fn(|_| zero()),
        }
    }
}

impl Counters {
    /// Counts one more.
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// A group was committed. Only one does so at a time.
    pub(crate) fn count_group(&self, num_commits: u64) {
        let add =
            |counter: &AtomicU64, number| counter.store(counter.load(Ordering::Relaxed) + number, Ordering::Relaxed);
        add(&self.commits, num_commits);
        add(&self.groups, 1);
        if num_commits > self.largest_group.load(Ordering::Relaxed) {
            self.largest_group.store(num_commits, Ordering::Relaxed);
        }
    }

    /// The time, if this commit is to be timed.
    #[inline]
    pub(crate) fn start(&self, number: u64) -> Option<Instant> {
        (number < ALWAYS || number.is_multiple_of(SAMPLE)).then(Instant::now)
    }

    /// A commit was answered that began at `start`.
    #[inline]
    pub(crate) fn finish(&self, start: Option<Instant>) {
        if let Some(start) = start {
            self.latencies[place(start.elapsed())].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What was counted.
    pub(crate) fn stats(&self) -> CommitStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let latencies: Vec<u64> = self.latencies.iter().map(get).collect();
        CommitStats {
            commits: get(&self.commits),
            conflicts: get(&self.conflicts),
            invalid: get(&self.invalid),
            failures: get(&self.failures),
            retries: get(&self.retries),
            admitted_alone: get(&self.admitted_alone),
            groups: get(&self.groups),
            largest_group: get(&self.largest_group),
            latency_ns_p50: quantile(&latencies, 500),
            latency_ns_p99: quantile(&latencies, 990),
            latency_ns_p999: quantile(&latencies, 999),
        }
    }
}

/// The step that a time falls into.
fn place(time: Duration) -> usize {
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
    let power = u64::from(ns.ilog2());
    // What comes after the highest bit, of which three are kept.
    let step = (ns << 3 >> power) & (STEPS - 1);
    let place = power * STEPS + step;
    place.min(STEPS * POWERS - 1) as usize
}

/// The end of a step, in nanoseconds.
fn end(place: usize) -> u64 {
    let (power, step) = (place as u64 / STEPS, place as u64 % STEPS);
    (1 << power) + ((step + 1) << power >> 3)
}

/// The time that so many in a thousand do not exceed.
fn quantile(counts: &[u64], per_mille: u64) -> u64 {
    let all: u64 = counts.iter().sum();
    let mut left = (all * per_mille).div_ceil(1000);
    for (place, &count) in counts.iter().enumerate() {
        if count >= left && left > 0 {
            return end(place);
        }
        left -= count.min(left);
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_an_eighth() {
        for ns in [1, 2, 7, 8, 9, 100, 999, 1_234_567, 3_600_000_000_000] {
            let end = end(place(Duration::from_nanos(ns)));
            assert!(end >= ns && end <= ns + ns / 8 + 1, "{ns}: {end}");
        }
        let counters = Counters::default();
        assert_eq!(counters.stats(), CommitStats::default());
        for number in 1..=1000_u64 {
            counters.latencies[place(Duration::from_micros(number))].fetch_add(1, Ordering::Relaxed);
        }
        counters.count_group(3);
        counters.count_group(2);
        let stats = counters.stats();
        let is_near = |found: u64, expected: u64| found >= expected && found <= expected + expected / 8;
        assert!(is_near(stats.latency_ns_p50, 500_000), "{stats:?}");
        assert!(is_near(stats.latency_ns_p99, 990_000) && is_near(stats.latency_ns_p999, 999_000), "{stats:?}");
        assert_eq!((stats.commits, stats.groups, stats.largest_group), (5, 2, 3));
    }

    #[test]
    fn many_commits_are_sampled() {
        let counters = Counters::default();
        let timed = |numbers: std::ops::Range<u64>| numbers.filter(|&number| counters.start(number).is_some()).count();
        assert_eq!((timed(0..1024), timed(1024..2048)), (1024, 64));
    }
}
