//! What hears, for one view, what will be read, and makes requests of it.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use base::VertexId;
use base::mapped::FileBytes;
use lama::{Listener, Parts, Side, View};

use super::counters::{Policy, PolicyCounters};
use super::scout::{Request, What, stored_weights};
use super::walks::Walks;
use super::worth::Verdict;
use super::{Prefetch, Shared};

/// The most lists of a request: scouts start on the first ones soon, and one call of theirs covers many.
pub(super) const REQUEST_LISTS: usize = 256;

/// So few lists are asked for by whoever reads them: to wake a scout would take longer.
const FEW_LISTS: usize = 2;

/// How far ahead of a scan is read, in bytes, where there is memory; and the least, which hides the time of a disk.
const WINDOW_BYTES: Range<u64> = 2 << 20..16 << 20;

/// The window takes one in so many bytes of what is free.
const WINDOW_SHARE: u64 = 8;

/// What a scan passes in the first bytes of a file stays: one in so many of what is free. All of it would have gone
/// when the next scan comes there, if the last bytes took its memory.
const KEPT_SHARE: u64 = 2;

/// The most bytes of a request of a scan.
const SPAN_BYTES: usize = 2 << 20;

thread_local! {
    /// How often this thread had waited when its step began.
    static NUM_WAITS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Whether scans are slower than the disk: then what the system reads ahead by itself is in time too, and takes less of
/// the processor, which such a scan has use for.
#[derive(Debug, Default)]
struct Pace {
    /// Steps in a row in which a scan waited for nothing.
    num_in_time: AtomicU32,
    /// While it is slow: how often of late it waited in a step, weighted.
    lateness: AtomicU32,
    is_slow: AtomicBool,
}

impl Pace {
    /// A scan is slow after so many steps without waiting,
    const IN_TIME: u32 = 400;
    /// and no more once it waits in far more than one step in so many,
    const RARELY: u32 = 8;
    /// that is, so many times more than that.
    const TOO_OFTEN: u32 = 8;

    fn is_slow(&self) -> bool {
        self.is_slow.load(Ordering::Relaxed)
    }

    fn begin_step(&self) {
        NUM_WAITS.set(base::mapped::num_waits());
    }

    /// The step that this thread began is done. Nothing follows where the system does not say who waits.
    fn end_step(&self) {
        if let (Some(before), Some(now)) = (NUM_WAITS.take(), base::mapped::num_waits()) {
            self.note(now != before);
        }
    }

    /// Numbers that workers change at once are about right.
    fn note(&self, has_waited: bool) {
        if self.is_slow() {
            let before = self.lateness.load(Ordering::Relaxed);
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

/// Whether nobody searches beside a scan. Left to the system, it would read around what searches ask for, too, and be
/// told otherwise again and again.
#[derive(Debug)]
struct Quiet {
    /// Lists that searches had announced by the last step.
    num_searched: AtomicU64,
    /// Steps since then.
    num_steps: AtomicU32,
}

impl Quiet {
    /// It is quiet after so many steps of a scan in which nobody searched, and at first.
    const STEPS: u32 = 64;

    fn new(num_searched: u64) -> Self {
        Self { num_searched: AtomicU64::new(num_searched), num_steps: AtomicU32::new(Self::STEPS) }
    }

    /// Begins a step, by which searches have announced so many lists; whether it is quiet.
    fn step(&self, num_searched: u64) -> bool {
        if self.num_searched.swap(num_searched, Ordering::Relaxed) != num_searched {
            self.num_steps.store(0, Ordering::Relaxed);
        }
        let num_steps = self.num_steps.load(Ordering::Relaxed);
        self.num_steps.store(num_steps.saturating_add(1), Ordering::Relaxed);
        num_steps >= Self::STEPS
    }
}

/// Whether a system that reads so far ahead by itself hides the time of a disk and stays within `room`. Then it does what
/// we would, with less work: what it reads at once it also keeps and gives back at once.
fn suffices(system_window: Option<usize>, room: usize) -> bool {
    system_window.is_some_and(|window| (WINDOW_BYTES.start as usize..=room).contains(&window))
}

/// The listener of one view.
#[derive(Debug)]
pub(super) struct Attached {
    shared: Arc<Shared>,
    me: Weak<Self>,
    /// The same, without a listener.
    view: View,
    policy: Prefetch,
    /// Requests of older epochs are stale.
    epoch: AtomicU64,
    /// Announcements.
    num_heard: AtomicU64,
    walks: [Mutex<Walks>; 2],
    /// What scans pass in the first so many bytes is not released.
    kept_bytes: AtomicUsize,
    pace: Pace,
    quiet: Quiet,
}

impl Attached {
    pub fn new(shared: &Arc<Shared>, view: View, policy: Prefetch) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            shared: Arc::clone(shared),
            me: Weak::clone(me),
            view,
            policy,
            epoch: AtomicU64::new(0),
            num_heard: AtomicU64::new(0),
            walks: Default::default(),
            kept_bytes: AtomicUsize::new(0),
            pace: Pace::default(),
            quiet: Quiet::new(shared.counters.num_searched()),
        })
    }

    pub fn view(&self) -> &View {
        &self.view
    }

    pub fn counters(&self, policy: Policy) -> &PolicyCounters {
        self.shared.counters.of(policy)
    }

    pub fn is_stale(&self, epoch: u64) -> bool {
        self.epoch.load(Ordering::Relaxed) != epoch
    }

    /// How often anything was announced.
    pub fn num_heard(&self) -> u64 {
        self.num_heard.load(Ordering::Relaxed)
    }

    /// Counts an announcement, and says whether to act upon it. The system reads nothing ahead by itself meanwhile,
    /// unless nobody else does.
    fn is_wanted(&self, policy: Policy, parts: Parts, num_lists: u64, is_left_to_system: bool) -> bool {
        self.num_heard.fetch_add(1, Ordering::Relaxed);
        let counters = self.counters(policy);
        counters.requested.add(num_lists);
        let verdict = counters.worth.verdict();
        if verdict == Verdict::Wasteful {
            counters.dropped.add(num_lists);
        }
        self.view.read_exactly(verdict != Verdict::Wasteful && !is_left_to_system);
        if parts == Parts::Weighted && self.view.is_exact(Side::Out) {
            self.view.read_weights_exactly();
        }
        verdict == Verdict::Act
    }

    fn reads_ahead_of_scans(&self) -> bool {
        matches!(self.policy, Prefetch::Auto | Prefetch::Sequential)
    }

    /// How far ahead of a scan is read now: a kernel takes memory after its view was opened.
    fn window_bytes(&self) -> usize {
        let window = self.shared.available() / WINDOW_SHARE;
        window.clamp(WINDOW_BYTES.start, WINDOW_BYTES.end) as usize
    }

    /// The part of so many bytes that targets may take, where these parts of lists are read.
    fn share_of_targets(&self, side: Side, parts: Parts, num_bytes: usize) -> usize {
        let width = stored_weights(self, side, parts).map_or(0, |(_, width)| width);
        num_bytes / (size_of::<VertexId>() + width) * size_of::<VertexId>()
    }

    /// How far the system reads ahead in the lists of a side by itself.
    fn system_window(&self, side: Side) -> Option<usize> {
        self.view.stored_targets(side).and_then(FileBytes::system_window)
    }

    /// Whether reading ahead of a scan is left to the system, unless a user wants it done here.
    fn does_system_suffice(&self, side: Side, parts: Parts) -> bool {
        let room = self.share_of_targets(side, parts, self.window_bytes());
        self.policy == Prefetch::Auto && suffices(self.system_window(side), room)
    }

    /// Whether the system would read further ahead than memory allows, so that pages go before they are read.
    pub fn is_tight(&self, side: Side) -> bool {
        self.system_window(side).is_some_and(|window| window > self.window_bytes())
    }

    /// Whether a scan is slower than the disk, and may be left to the system.
    fn is_slow(&self, side: Side) -> bool {
        self.pace.is_slow() && !self.is_tight(side)
    }

    fn request(&self, side: Side, policy: Policy, what: What) {
        let Some(listener) = self.me.upgrade() else { return };
        let num_lists = what.num_lists();
        let request = Request { listener, side, policy, epoch: self.epoch.load(Ordering::Relaxed), what };
        if self.shared.ring.push(request).is_err() {
            self.counters(policy).dropped.add(num_lists);
        }
    }
}

impl Listener for Attached {
    fn will_need(&self, side: Side, parts: Parts, vertices: &[VertexId]) {
        let policy = match self.policy {
            Prefetch::Auto | Prefetch::Frontier => Policy::Frontier,
            Prefetch::Neighbourhood => Policy::Neighbourhood,
            Prefetch::Sequential | Prefetch::Off => return,
        };
        if !self.is_wanted(policy, parts, vertices.len() as u64, false) {
            return;
        }
        if policy == Policy::Frontier && vertices.len() <= FEW_LISTS {
            return Request::read_now(self, side, parts, vertices);
        }
        for lists in vertices.chunks(REQUEST_LISTS) {
            self.request(side, policy, What::Lists(parts, lists.into()));
        }
    }

    fn will_need_runs(&self, side: Side, parts: Parts, runs: &[Range<VertexId>]) {
        if !matches!(self.policy, Prefetch::Auto | Prefetch::Frontier) {
            // Nobody reads ahead of who walks over them, then, but the system.
            return self.view.read_exactly(false);
        }
        let num_lists = runs.iter().map(|run| run.len() as u64).sum();
        if self.is_wanted(Policy::Frontier, parts, num_lists, false) {
            for runs in runs.chunks(REQUEST_LISTS) {
                self.request(side, Policy::Frontier, What::Runs(parts, runs.into()));
            }
        }
    }

    fn will_walk(&self, side: Side, parts: Parts, vertices: Range<VertexId>) {
        let Some(targets) = self.view.stored_targets(side).filter(|_| self.reads_ahead_of_scans()) else { return };
        let is_quiet = self.quiet.step(self.shared.counters.num_searched());
        let is_left = self.is_slow(side) || is_quiet && self.does_system_suffice(side, parts);
        if !self.is_wanted(Policy::Sequential, parts, vertices.len() as u64, is_left) {
            return;
        }
        let here = self.view.stored_lists(side, vertices);
        self.pace.begin_step();
        if self.is_slow(side) {
            return;
        }
        let window = self.share_of_targets(side, parts, self.window_bytes());
        let mut walks = self.walks[side as usize].lock().unwrap_or_else(PoisonError::into_inner);
        if walks.begins(&here, window) {
            let kept = self.share_of_targets(side, parts, (self.shared.available_now() / KEPT_SHARE) as usize);
            self.kept_bytes.store(kept, Ordering::Relaxed);
        }
        let ahead = walks.go_on(&here, window, targets.len());
        drop(walks);
        if is_left {
            return;
        }
        for start in ahead.clone().step_by(SPAN_BYTES) {
            let span = start..ahead.end.min(start + SPAN_BYTES);
            self.request(side, Policy::Sequential, What::Bytes(parts, span));
        }
        // What nobody has come to yet is asked for now, for the system reads nothing around it by itself.
        Request::read_bytes_now(self, side, Policy::Sequential, parts, &here);
    }

    fn has_walked(&self, side: Side, parts: Parts, vertices: Range<VertexId>) {
        if !self.reads_ahead_of_scans() {
            return;
        }
        self.pace.end_step();
        if !self.view.is_exact(side) && (self.is_slow(side) || !self.does_system_suffice(side, parts)) {
            return;
        }
        let here = self.view.stored_lists(side, vertices);
        let passed = here.start.max(self.kept_bytes.load(Ordering::Relaxed))..here.end;
        if !passed.is_empty() {
            self.request(side, Policy::Sequential, What::Passed(parts, passed));
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
    fn a_system_suffices_that_reads_far_but_not_too_far_ahead() {
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
        let pace = Pace::default();
        let after = |has_waited, times: u32| {
            (0..times).for_each(|_| pace.note(has_waited));
            pace.is_slow()
        };
        let nearly = Pace::IN_TIME - 1;
        assert_eq!([after(false, nearly), after(true, 1), after(false, nearly)], [false; 3]);
        assert!(after(false, 1));
        for _ in 0..100 {
            assert_eq!([after(true, 1), after(false, 2 * Pace::RARELY)], [true; 2]);
        }
        assert_eq!([after(true, Pace::TOO_OFTEN), after(true, 1), after(false, nearly)], [true, false, false]);
    }
}
