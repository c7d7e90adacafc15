//! What hears, for one view, what will be read, and makes requests of it.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use base::VertexId;
use base::mapped::Advice;
use lama::{Listener, Side, View};

use super::counters::{Policy, PolicyCounters};
use super::scout::{Request, What};
use super::{Prefetch, Shared};

/// The most lists of a request: scouts start on the first ones soon, and one call of theirs covers many.
pub(super) const REQUEST_LISTS: usize = 256;

/// So few lists are asked for by whoever reads them: to wake a scout would take longer.
const FEW_LISTS: usize = 2;

/// How far ahead of a scan is read, in bytes.
const WINDOW_BYTES: usize = 16 << 20;

/// The bytes of a request of a scan.
const SPAN_BYTES: usize = 2 << 20;

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
    scans: [Mutex<Scan>; 2],
}

/// How far a scan of one side has come, in bytes of its lists.
#[derive(Debug, Default)]
struct Scan {
    /// Everything from where it is up to here was asked for.
    asked: usize,
    /// Everything behind it from `kept` up to here was released.
    released: usize,
}

impl Attached {
    pub fn new(shared: &Arc<Shared>, view: View, policy: Prefetch) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            shared: Arc::clone(shared),
            me: Weak::clone(me),
            view,
            policy,
            epoch: AtomicU64::new(0),
            scans: Default::default(),
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
    fn will_need(&self, side: Side, vertices: &[VertexId]) {
        let policy = match self.policy {
            Prefetch::Auto | Prefetch::Frontier => Policy::Frontier,
            Prefetch::Neighbourhood => Policy::Neighbourhood,
            Prefetch::Sequential | Prefetch::Off => return,
        };
        self.view.advise_lists(Advice::Random);
        self.counters(policy).requested.add(vertices.len() as u64);
        if policy == Policy::Frontier && vertices.len() <= FEW_LISTS {
            return Request::read_now(self, side, vertices);
        }
        for lists in vertices.chunks(REQUEST_LISTS) {
            self.request(side, policy, What::Lists(lists.into()));
        }
    }

    fn will_need_runs(&self, side: Side, runs: &[Range<VertexId>]) {
        if !matches!(self.policy, Prefetch::Auto | Prefetch::Frontier) {
            // Nobody reads ahead of who walks over them, then, but the system.
            return self.view.advise_lists(Advice::Normal);
        }
        self.view.advise_lists(Advice::Random);
        for runs in runs.chunks(REQUEST_LISTS) {
            let what = What::Runs(runs.into());
            self.counters(Policy::Frontier).requested.add(what.num_lists());
            self.request(side, Policy::Frontier, what);
        }
    }

    fn will_scan(&self, side: Side, vertices: Range<VertexId>) {
        if !matches!(self.policy, Prefetch::Auto | Prefetch::Sequential) {
            return;
        }
        // Another worker of the same scan is announcing; it will do for both.
        let Ok(mut scan) = self.scans[side as usize].try_lock() else { return };
        self.view.advise_lists(Advice::Normal);
        self.counters(Policy::Sequential).requested.add(vertices.len() as u64);
        let here = self.view.stored_lists(side, vertices);
        let num_bytes = self.view.stored_targets(side).map_or(0, |targets| targets.len());
        // A scan that begins anew.
        if here.end + 2 * WINDOW_BYTES < scan.asked {
            *scan = Scan { asked: here.start, released: here.start };
        }
        scan.asked = scan.asked.max(here.start);
        let goal = (here.end + WINDOW_BYTES).min(num_bytes);
        while scan.asked < goal {
            let end = (scan.asked + SPAN_BYTES).min(num_bytes);
            self.request(side, Policy::Sequential, What::Bytes(scan.asked..end));
            scan.asked = end;
        }
        let passed = here.start.saturating_sub(WINDOW_BYTES);
        if passed >= scan.released + SPAN_BYTES {
            self.request(side, Policy::Sequential, What::Passed(scan.released..passed));
            scan.released = passed;
        }
    }

    fn forget(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }
}
