//! The hook of one view: turns announcements into requests.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use anden_base::VertexId;
use anden_base::mapped::FileBytes;
use anden_snapshots::{Direction, Listener, Parts, SnapshotView};
use parking_lot::Mutex;

use super::counters::{PolicyCounters, PrefetchPolicy};
use super::locator::{PrefetchRequest, PrefetchTarget, stored_weights};
use super::usefulness::Verdict;
use super::walks::Walks;
use super::{Prefetch, PrefetchShared};

/// The most lists of a request: small enough that helpers start soon, large enough that one call covers many lists.
pub(super) const REQUEST_LISTS: usize = 256;

/// Up to this many lists are asked for on the reader's thread: waking a helper would take longer.
const FEW_LISTS: usize = 2;

/// The window ahead of a scan, in bytes. The minimum hides the latency of a disk.
const WINDOW_BYTES: Range<u64> = 2 << 20..16 << 20;

/// The window takes one part in this many of the free memory.
const WINDOW_SHARE: u64 = 8;

/// The first bytes of a file that a scan has passed are kept: one part in this many of the free memory. If all passed
/// bytes were kept, the last ones would evict the first before the next scan.
const KEPT_SHARE: u64 = 2;

/// The most bytes of a request of a scan.
const SPAN_BYTES: usize = 2 << 20;

thread_local! {
    /// The thread's count of waits at the start of its step.
    static NUM_WAITS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Whether scans are slower than the disk. Then the system's own read-ahead is in time, too, and leaves more processor
/// time to the scan.
#[derive(Debug, Default)]
struct ScanPace {
    /// Consecutive steps without waiting.
    num_in_time: AtomicU32,
    /// While slow: a weighted count of recent waits.
    lateness: AtomicU32,
    is_slow: AtomicBool,
}

impl ScanPace {
    /// A scan is slow after this many steps without waiting,
    const IN_TIME: u32 = 400;
    /// and no longer once it waits much more often than once in this many steps,
    const RARELY: u32 = 8;
    /// that is, this many times beyond that rate.
    const TOO_OFTEN: u32 = 8;

    fn is_slow(&self) -> bool {
        self.is_slow.load(Ordering::Relaxed)
    }

    fn begin_step(&self) {
        NUM_WAITS.set(anden_base::mapped::num_waits());
    }

    /// Ends the step that this thread began. Does nothing if the system does not report waits.
    fn end_step(&self) {
        // Taken out, so that a step that began elsewhere is not counted.
        if let (Some(before), Some(now)) = (NUM_WAITS.take(), anden_base::mapped::num_waits()) {
            self.note(now != before);
        }
    }

    /// Concurrent updates make the counts approximate, which suffices.
    fn note(&self, has_waited: bool) {
        if self.is_slow() {
            let before = self.lateness.load(Ordering::Relaxed);
            // A wait counts as much as this many steps without one.
            let lateness = if has_waited { before + Self::RARELY } else { before.saturating_sub(1) };
            self.lateness.store(lateness, Ordering::Relaxed);
            if lateness > Self::RARELY * Self::TOO_OFTEN {
                self.num_in_time.store(0, Ordering::Relaxed);
                self.is_slow.store(false, Ordering::Relaxed);
            }
        } else {
            let num_in_time = if has_waited { 0 } else { self.num_in_time.load(Ordering::Relaxed) + 1 };
            self.num_in_time.store(num_in_time, Ordering::Relaxed);
            if num_in_time >= Self::IN_TIME {
                self.lateness.store(0, Ordering::Relaxed);
                self.is_slow.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Whether no search runs beside a scan. If the scan were left to the system, the system would read around the lists of
/// searches, too, and its advice would flip again and again.
#[derive(Debug)]
struct Quiet {
    /// Lists that searches had announced by the last step.
    num_searched: AtomicU64,
    /// Steps since the last change of that number.
    num_steps: AtomicU32,
}

impl Quiet {
    /// It is quiet after this many steps of a scan without a search, and initially.
    const STEPS: u32 = 64;

    fn new(num_searched: u64) -> Self {
        Self { num_searched: AtomicU64::new(num_searched), num_steps: AtomicU32::new(Self::STEPS) }
    }

    /// Begins a step; searches have announced `num_searched` lists until now. Returns whether the step is quiet.
    fn step(&self, num_searched: u64) -> bool {
        if self.num_searched.swap(num_searched, Ordering::Relaxed) != num_searched {
            self.num_steps.store(0, Ordering::Relaxed);
        }
        let num_steps = self.num_steps.load(Ordering::Relaxed);
        self.num_steps.store(num_steps.saturating_add(1), Ordering::Relaxed);
        num_steps >= Self::STEPS
    }
}

/// Whether the system's own read-ahead hides the latency of a disk and stays within `room`. Then it does the
/// prefetcher's job with less work, because it maps and frees pages in larger pieces.
fn suffices(system_window: Option<usize>, room: usize) -> bool {
    system_window.is_some_and(|window| (WINDOW_BYTES.start as usize..=room).contains(&window))
}

/// The hook of one view.
#[derive(Debug)]
pub(super) struct PrefetchHook {
    shared: Arc<PrefetchShared>,
    me: Weak<Self>,
    /// The view without a hook.
    view: SnapshotView,
    policy: Prefetch,
    /// Requests of older epochs are stale.
    epoch: AtomicU64,
    /// Number of announcements.
    num_heard: AtomicU64,
    walks: [Mutex<Walks>; 2],
    /// Passed bytes below this offset are kept.
    kept_bytes: AtomicUsize,
    pace: ScanPace,
    quiet: Quiet,
}

impl PrefetchHook {
    pub fn new(shared: &Arc<PrefetchShared>, view: SnapshotView, policy: Prefetch) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            shared: Arc::clone(shared),
            me: Weak::clone(me),
            view,
            policy,
            epoch: AtomicU64::new(0),
            num_heard: AtomicU64::new(0),
            walks: Default::default(),
            kept_bytes: AtomicUsize::new(0),
            pace: ScanPace::default(),
            quiet: Quiet::new(shared.counters.num_searched()),
        })
    }

    pub fn view(&self) -> &SnapshotView {
        &self.view
    }

    pub fn counters(&self, policy: PrefetchPolicy) -> &PolicyCounters {
        self.shared.counters.of(policy)
    }

    pub fn is_stale(&self, epoch: u64) -> bool {
        // Relaxed: to serve a stale request costs only time.
        self.epoch.load(Ordering::Relaxed) != epoch
    }

    /// The number of announcements.
    pub fn num_heard(&self) -> u64 {
        self.num_heard.load(Ordering::Relaxed)
    }

    /// Counts an announcement, and tells whether to act on it. Turns the system's own read-ahead off, unless it is left
    /// to the system or the policy is wasteful.
    fn is_wanted(&self, policy: PrefetchPolicy, parts: Parts, num_lists: u64, is_left_to_system: bool) -> bool {
        self.num_heard.fetch_add(1, Ordering::Relaxed);
        let counters = self.counters(policy);
        counters.requested.add(num_lists);
        let verdict = counters.usefulness.verdict();
        if verdict == Verdict::Wasteful {
            counters.dropped.add(num_lists);
        }
        self.view.read_exactly(verdict != Verdict::Wasteful && !is_left_to_system);
        if parts == Parts::Weighted && self.view.is_exact(Direction::Out) {
            self.view.read_weights_exactly();
        }
        verdict == Verdict::Act
    }

    fn reads_ahead_of_scans(&self) -> bool {
        matches!(self.policy, Prefetch::Auto | Prefetch::Sequential)
    }

    /// The window ahead of a scan. Computed anew, because a kernel allocates memory after its view was opened.
    fn window_bytes(&self) -> usize {
        let window = self.shared.available() / WINDOW_SHARE;
        window.clamp(WINDOW_BYTES.start, WINDOW_BYTES.end) as usize
    }

    /// The part of `num_bytes` for targets, if these parts of lists are read.
    fn share_of_targets(&self, direction: Direction, parts: Parts, num_bytes: usize) -> usize {
        let width = stored_weights(self, direction, parts).map_or(0, |(_, width)| width);
        num_bytes / (size_of::<VertexId>() + width) * size_of::<VertexId>()
    }

    /// The read-ahead window of the system for the lists of a direction.
    fn system_window(&self, direction: Direction) -> Option<usize> {
        self.view.stored_targets(direction).and_then(FileBytes::system_window)
    }

    /// Whether reading ahead of a scan is left to the system; never with an explicit policy.
    fn does_system_suffice(&self, direction: Direction, parts: Parts) -> bool {
        let room = self.share_of_targets(direction, parts, self.window_bytes());
        self.policy == Prefetch::Auto && suffices(self.system_window(direction), room)
    }

    /// Whether the system would read further ahead than memory allows, so that pages are evicted before they are read.
    pub fn is_tight(&self, direction: Direction) -> bool {
        self.system_window(direction).is_some_and(|window| window > self.window_bytes())
    }

    /// Whether a scan is slower than the disk and may be left to the system.
    fn is_slow(&self, direction: Direction) -> bool {
        self.pace.is_slow() && !self.is_tight(direction)
    }

    fn request(&self, direction: Direction, policy: PrefetchPolicy, what: PrefetchTarget) {
        // Without the view, no reader waits for its lists.
        let Some(hook) = self.me.upgrade() else { return };
        let num_lists = what.num_lists();
        let request = PrefetchRequest { hook, direction, policy, epoch: self.epoch.load(Ordering::Relaxed), what };
        // A full ring drops the request: the reader must never wait for a hint.
        if self.shared.ring.push(request).is_err() {
            self.counters(policy).dropped.add(num_lists);
        }
    }
}

impl Listener for PrefetchHook {
    fn will_need(&self, direction: Direction, parts: Parts, vertices: &[VertexId]) {
        let policy = match self.policy {
            Prefetch::Auto | Prefetch::Frontier => PrefetchPolicy::Frontier,
            Prefetch::Neighborhood => PrefetchPolicy::Neighborhood,
            Prefetch::Sequential | Prefetch::Off => return,
        };
        if !self.is_wanted(policy, parts, vertices.len() as u64, false) {
            return;
        }
        if policy == PrefetchPolicy::Frontier && vertices.len() <= FEW_LISTS {
            return PrefetchRequest::read_now(self, direction, parts, vertices);
        }
        for lists in vertices.chunks(REQUEST_LISTS) {
            self.request(direction, policy, PrefetchTarget::Lists(parts, lists.into()));
        }
    }

    fn will_need_runs(&self, direction: Direction, parts: Parts, runs: &[Range<VertexId>]) {
        if !matches!(self.policy, Prefetch::Auto | Prefetch::Frontier) {
            // With this policy, only the system reads ahead of such a walk.
            return self.view.read_exactly(false);
        }
        let num_lists = runs.iter().map(|run| run.len() as u64).sum();
        if self.is_wanted(PrefetchPolicy::Frontier, parts, num_lists, false) {
            for runs in runs.chunks(REQUEST_LISTS) {
                self.request(direction, PrefetchPolicy::Frontier, PrefetchTarget::Runs(parts, runs.into()));
            }
        }
    }

    fn will_walk(&self, direction: Direction, parts: Parts, vertices: Range<VertexId>) {
        let Some(targets) = self.view.stored_targets(direction).filter(|_| self.reads_ahead_of_scans()) else { return };
        let is_quiet = self.quiet.step(self.shared.counters.num_searched());
        let is_left = self.is_slow(direction) || is_quiet && self.does_system_suffice(direction, parts);
        if !self.is_wanted(PrefetchPolicy::Sequential, parts, vertices.len() as u64, is_left) {
            return;
        }
        let here = self.view.stored_lists(direction, vertices);
        // Slow scans are timed as well, so that one that becomes faster is noticed.
        self.pace.begin_step();
        if self.is_slow(direction) {
            return;
        }
        let window = self.share_of_targets(direction, parts, self.window_bytes());
        let mut walks = self.walks[direction as usize].lock();
        if walks.begins(&here, window) {
            let kept = self.share_of_targets(direction, parts, (self.shared.available_now() / KEPT_SHARE) as usize);
            self.kept_bytes.store(kept, Ordering::Relaxed);
        }
        let ahead = walks.go_on(&here, window, targets.len());
        // Requests need no lock, and other workers of the scan may wait for this one.
        drop(walks);
        if is_left {
            return;
        }
        for start in ahead.clone().step_by(SPAN_BYTES) {
            let span = start..ahead.end.min(start + SPAN_BYTES);
            self.request(direction, PrefetchPolicy::Sequential, PrefetchTarget::Bytes(parts, span));
        }
        // Bytes that no earlier step has announced are asked for now, because the system reads nothing around a fault.
        PrefetchRequest::read_bytes_now(self, direction, PrefetchPolicy::Sequential, parts, &here);
    }

    fn has_walked(&self, direction: Direction, parts: Parts, vertices: Range<VertexId>) {
        if !self.reads_ahead_of_scans() {
            return;
        }
        self.pace.end_step();
        if !self.view.is_exact(direction) && (self.is_slow(direction) || !self.does_system_suffice(direction, parts)) {
            return;
        }
        let here = self.view.stored_lists(direction, vertices);
        // Bytes before the limit are kept, so that the next scan finds its start in memory.
        let passed = here.start.max(self.kept_bytes.load(Ordering::Relaxed))..here.end;
        if !passed.is_empty() {
            self.request(direction, PrefetchPolicy::Sequential, PrefetchTarget::Passed(parts, passed));
        }
    }

    fn forget(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_system_window_suffices_within_free_memory() {
        let answers = |room| [None, Some(128 << 10), Some(8 << 20)].map(|window| suffices(window, room));
        assert_eq!(answers(16 << 20), [false, false, true]);
        assert_eq!(answers(6 << 20), [false; 3], "there is room for less");
    }

    #[test]
    fn it_is_quiet_some_time_after_the_last_search() {
        let quiet = Quiet::new(7);
        assert!(quiet.step(7), "before the first");
        for num_searched in [8, 9] {
            assert!((0..Quiet::STEPS).all(|_| !quiet.step(num_searched)));
        }
        assert!(quiet.step(9) && quiet.step(9));
    }

    #[test]
    fn a_scan_is_slow_while_it_seldom_waits() {
        let pace = ScanPace::default();
        let after = |has_waited, times: u32| {
            (0..times).for_each(|_| pace.note(has_waited));
            pace.is_slow()
        };
        let nearly = ScanPace::IN_TIME - 1;
        assert_eq!([after(false, nearly), after(true, 1), after(false, nearly)], [false; 3]);
        assert!(after(false, 1));
        for _ in 0..100 {
            assert_eq!([after(true, 1), after(false, 2 * ScanPace::RARELY)], [true; 2]);
        }
        assert_eq!([after(true, ScanPace::TOO_OFTEN), after(true, 1), after(false, nearly)], [true, false, false]);
    }
}
