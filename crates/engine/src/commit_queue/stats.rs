//! Counters and latencies of commits.
//!
//! Counters are independent atomic numbers without an order between them. Latencies are kept in a histogram of eight
//! steps a power of two. After the first commits only one in sixteen is timed: two reads of the clock take as long as a
//! small commit in a large group.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Histogram steps in a power of two.
const STEPS: u64 = 8;
/// Powers of two of nanoseconds: up to an hour.
const POWERS: u64 = 42;
/// From this commit on, only every [`SAMPLE`]th is timed.
const ALWAYS: u64 = 1 << 10;
const SAMPLE: u64 = 16;

/// Counters of commits since the database was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitStats {
    /// Commits that succeeded.
    pub commits: u64,
    /// Transactions refused because of a conflict.
    pub conflicts: u64,
    /// Commits refused because of their content.
    pub invalid: u64,
    /// Commits that failed for another reason, such as a disk error.
    pub failures: u64,
    /// Retries of transactions.
    pub retries: u64,
    /// Transactions that ran alone after several conflicts.
    pub admitted_alone: u64,
    /// Commit groups; each is one epoch.
    pub groups: u64,
    /// Commits in the largest group.
    pub largest_group: u64,
    /// Median time of a commit in nanoseconds, from the request to the answer, to within an eighth. 0 if none was
    /// timed.
    pub latency_ns_p50: u64,
    /// The 99th percentile of the time of a commit, in nanoseconds.
    pub latency_ns_p99: u64,
    /// The 99.9th percentile of the time of a commit, in nanoseconds.
    pub latency_ns_p999: u64,
}

/// The counters themselves.
#[derive(Debug)]
pub(crate) struct CommitCounters {
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

impl Default for CommitCounters {
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

impl CommitCounters {
    /// Adds one.
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a committed group. Only the leader calls this, so that no atomic addition is needed.
    pub(crate) fn count_group(&self, num_commits: u64) {
        let add =
            |counter: &AtomicU64, number| counter.store(counter.load(Ordering::Relaxed) + number, Ordering::Relaxed);
        add(&self.commits, num_commits);
        add(&self.groups, 1);
        if num_commits > self.largest_group.load(Ordering::Relaxed) {
            self.largest_group.store(num_commits, Ordering::Relaxed);
        }
    }

    /// The start time, if this commit is to be timed.
    #[inline]
    pub(crate) fn start(&self, number: u64) -> Option<Instant> {
        // The first commits are all timed, so that short runs have latencies too.
        (number < ALWAYS || number.is_multiple_of(SAMPLE)).then(Instant::now)
    }

    /// Records the latency of an answered commit.
    #[inline]
    pub(crate) fn finish(&self, start: Option<Instant>) {
        if let Some(start) = start {
            self.latencies[place(start.elapsed())].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The values of all counters.
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

/// The histogram step of a time.
fn place(time: Duration) -> usize {
    // `ilog2` panics at 0.
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
    let power = u64::from(ns.ilog2());
    // Keeps the three bits below the highest one.
    let step = (ns << 3 >> power) & (STEPS - 1);
    let place = power * STEPS + step;
    // Longer times go to the last step.
    place.min(STEPS * POWERS - 1) as usize
}

/// The upper end of a step, in nanoseconds.
fn end(place: usize) -> u64 {
    let (power, step) = (place as u64 / STEPS, place as u64 % STEPS);
    (1 << power) + ((step + 1) << power >> 3)
}

/// The time that `per_mille` of a thousand commits do not exceed.
fn quantile(counts: &[u64], per_mille: u64) -> u64 {
    let all: u64 = counts.iter().sum();
    let mut left = (all * per_mille).div_ceil(1000);
    for (place, &count) in counts.iter().enumerate() {
        // `left` is 0 only if no commit was timed.
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
        let counters = CommitCounters::default();
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
        let counters = CommitCounters::default();
        let timed = |numbers: std::ops::Range<u64>| numbers.filter(|&number| counters.start(number).is_some()).count();
        assert_eq!((timed(0..1024), timed(1024..2048)), (1024, 64));
    }
}
