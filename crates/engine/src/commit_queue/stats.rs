//! Counters and latencies of commits.
//!
//! Counters are independent atomic numbers without an order between them. Latencies are kept in histograms of eight
//! steps a power of two, one for each durability. After the first commits only one in sixteen is timed, and counts for
//! sixteen: two reads of the clock take as long as a small commit in a large group.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::log::Durability;

/// Histogram steps in a power of two.
const STEPS: u64 = 8;
/// Powers of two of nanoseconds: up to an hour.
const POWERS: u64 = 42;
/// From this commit on, only every [`SAMPLE`]th is timed.
const ALWAYS: u64 = 1 << 10;
const SAMPLE: u64 = 16;
/// The smallest and the largest bound of a latency histogram, as powers of two of nanoseconds: 1 us and 8.6 s.
const LATENCY_POWERS: std::ops::RangeInclusive<u32> = 10..=33;
/// Bounds of the histogram of group sizes: powers of two up to the largest queue.
const SIZE_BOUNDS: usize = 15;

/// Counters of commits since the database was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
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
    /// Number of commits in each group.
    pub group_sizes: Histogram,
    /// Median time of a commit in nanoseconds, from the request to the answer, to within an eighth. 0 if none was
    /// timed.
    pub latency_ns_p50: u64,
    /// The 99th percentile of the time of a commit, in nanoseconds.
    pub latency_ns_p99: u64,
    /// The 99.9th percentile of the time of a commit, in nanoseconds.
    pub latency_ns_p999: u64,
    /// Times of commits in nanoseconds, by the durability that the caller asked for. After the first 1,024 commits one
    /// in sixteen is timed, and counts for sixteen.
    pub latency_ns: CommitLatencies,
}

/// Times of commits for each durability.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitLatencies {
    /// Commits with [`Durability::Sync`].
    pub sync: Histogram,
    /// Commits with [`Durability::Batched`].
    pub batched: Histogram,
    /// Commits with [`Durability::None`].
    pub none: Histogram,
}

/// A histogram with fixed bounds, as Prometheus has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The largest value of each bucket, ascending. The last bucket, which follows these, has no bound.
    pub bounds: Vec<u64>,
    /// Number of values in each bucket; one more than bounds.
    pub counts: Vec<u64>,
    /// Sum of all values.
    pub sum: u64,
}

/// A running measurement of one commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitTimer {
    begin: Instant,
    /// Index in [`CommitCounters::latencies`].
    durability: usize,
    /// The commits that it stands for.
    weight: u64,
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
    group_sizes: [AtomicU64; SIZE_BOUNDS + 1],
    latencies: [LatencyCounters; 3],
}

/// Times of the commits of one durability.
#[derive(Debug)]
struct LatencyCounters {
    steps: [AtomicU64; (STEPS * POWERS) as usize],
    sum: AtomicU64,
}

impl Default for LatencyCounters {
    fn default() -> Self {
        Self { steps: std::array::from_fn(|_| AtomicU64::default()), sum: AtomicU64::default() }
    }
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
            group_sizes: Default::default(),
            latencies: Default::default(),
        }
    }
}

impl Histogram {
    /// Number of values.
    pub fn num_values(&self) -> u64 {
        self.counts.iter().sum()
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
        add(&self.group_sizes[size_place(num_commits)], 1);
        if num_commits > self.largest_group.load(Ordering::Relaxed) {
            self.largest_group.store(num_commits, Ordering::Relaxed);
        }
    }

    /// Begins to time a commit, if it is to be timed.
    #[inline]
    pub(crate) fn start(&self, number: u64, durability: Durability) -> Option<CommitTimer> {
        // The first commits are all timed, so that short runs have latencies too.
        let weight = match number {
            ..ALWAYS => 1,
            _ if number.is_multiple_of(SAMPLE) => SAMPLE,
            _ => return None,
        };
        let durability = match durability {
            Durability::Sync => 0,
            Durability::Batched(_) => 1,
            Durability::None => 2,
        };
        Some(CommitTimer { begin: Instant::now(), durability, weight })
    }

    /// Records the latency of a commit that succeeded.
    #[inline]
    pub(crate) fn finish(&self, timer: Option<CommitTimer>) {
        if let Some(CommitTimer { begin, durability, weight }) = timer {
            self.latencies[durability].add(begin.elapsed(), weight);
        }
    }

    /// The values of all counters.
    pub(crate) fn stats(&self) -> CommitStats {
        let all: Vec<u64> = (0..(STEPS * POWERS) as usize)
            .map(|step| self.latencies.iter().map(|latency| get(&latency.steps[step])).sum())
            .collect();
        let [sync, batched, none] = self.latencies.each_ref().map(LatencyCounters::histogram);
        CommitStats {
            commits: get(&self.commits),
            conflicts: get(&self.conflicts),
            invalid: get(&self.invalid),
            failures: get(&self.failures),
            retries: get(&self.retries),
            admitted_alone: get(&self.admitted_alone),
            groups: get(&self.groups),
            largest_group: get(&self.largest_group),
            group_sizes: Histogram {
                bounds: (0..SIZE_BOUNDS).map(|power| 1 << power).collect(),
                counts: self.group_sizes.iter().map(get).collect(),
                sum: get(&self.commits),
            },
            latency_ns_p50: quantile(&all, 500),
            latency_ns_p99: quantile(&all, 990),
            latency_ns_p999: quantile(&all, 999),
            latency_ns: CommitLatencies { sync, batched, none },
        }
    }
}

impl LatencyCounters {
    fn add(&self, time: Duration, weight: u64) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.steps[place(ns)].fetch_add(weight, Ordering::Relaxed);
        self.sum.fetch_add(ns.saturating_mul(weight), Ordering::Relaxed);
    }

    /// The steps, joined into buckets whose bounds are powers of two.
    fn histogram(&self) -> Histogram {
        let bounds: Vec<u64> = LATENCY_POWERS.map(|power| 1 << power).collect();
        let mut counts = vec![0; bounds.len() + 1];
        for (place, count) in self.steps.iter().map(get).enumerate() {
            // A step lies between two powers of two, so it belongs to one bucket as a whole.
            counts[bounds.partition_point(|&bound| bound < end(place))] += count;
        }
        Histogram { bounds, counts, sum: get(&self.sum) }
    }
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// The bucket of a group size: the first whose bound is not below it.
fn size_place(num_commits: u64) -> usize {
    (num_commits.max(1).next_power_of_two().ilog2() as usize).min(SIZE_BOUNDS)
}

/// The histogram step of a time in nanoseconds.
fn place(ns: u64) -> usize {
    // `ilog2` panics at 0.
    let ns = ns.max(1);
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_within_an_eighth() {
        for ns in [1, 2, 7, 8, 9, 100, 999, 1_234_567, 3_600_000_000_000] {
            let end = end(place(ns));
            assert!(end >= ns && end <= ns + ns / 8 + 1, "{ns}: {end}");
        }
        let counters = CommitCounters::default();
        let stats = counters.stats();
        assert_eq!((stats.commits, stats.latency_ns_p50, stats.latency_ns.sync.num_values()), (0, 0, 0));
        for number in 1..=1000_u64 {
            counters.latencies[number as usize % 3].add(Duration::from_micros(number), 1);
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
    fn sampled_commits_count_for_sixteen() {
        let counters = CommitCounters::default();
        let time = |numbers: std::ops::Range<u64>| {
            let timers = numbers.map(|number| counters.start(number, Durability::batched()));
            timers.filter(Option::is_some).inspect(|&timer| counters.finish(timer)).count()
        };
        assert_eq!((time(0..1024), time(1024..2048)), (1024, 64));
        let CommitLatencies { sync, batched, none } = counters.stats().latency_ns;
        assert_eq!([sync, batched, none].map(|histogram| histogram.num_values()), [0, 2048, 0]);
    }

    proptest! {
        #[test]
        fn buckets_are_those_of_the_values(times in prop::collection::vec(1_u64..20_000_000_000, 0..50)) {
            let counters = LatencyCounters::default();
            times.iter().for_each(|&ns| counters.add(Duration::from_nanos(ns), 1));
            let Histogram { bounds, counts, sum } = counters.histogram();
            prop_assert_eq!(sum, times.iter().sum::<u64>());
            for (place, bound) in bounds.iter().enumerate() {
                // A time of exactly a power of two counts with the longer ones.
                let expected = times.iter().filter(|&ns| ns < bound).count() as u64;
                prop_assert_eq!(counts[..=place].iter().sum::<u64>(), expected, "up to {}", bound);
            }
        }

        #[test]
        fn group_sizes_are_within_their_bounds(sizes in prop::collection::vec(1_u64..40_000, 0..50)) {
            let counters = CommitCounters::default();
            sizes.iter().for_each(|&size| counters.count_group(size));
            let Histogram { bounds, counts, sum } = counters.stats().group_sizes;
            prop_assert_eq!((sum, counts.iter().sum::<u64>()), (sizes.iter().sum(), sizes.len() as u64));
            for (place, bound) in bounds.iter().enumerate() {
                let expected = sizes.iter().filter(|&size| size <= bound).count() as u64;
                prop_assert_eq!(counts[..=place].iter().sum::<u64>(), expected, "up to {}", bound);
            }
        }
    }
}
