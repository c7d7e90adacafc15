//! The prefetcher: reads ahead of kernels and queries on graphs larger than memory.
//!
//! Kernels announce through the seam which lists they will read ([`anden_graph::WillNeed`]); a scan shows its place
//! itself. A view with a prefetcher splits announcements into requests of some hundred lists. Requests go through a
//! [`ring`] that never makes a reader wait, to helper threads ([`locator`]), which park without work. They find the
//! lists, join close ones, leave out resident ones, and ask the system for the rest. A request is useless once its
//! reader has gone on. So each carries the epoch of its announcement, and a stale one is dropped.
//!
//! While a graph fits in the available memory, no hook is attached, and prefetching costs nothing.
//!
//! # Source
//! The policies *neighbourhood* and *sequential*, and the queue with helper threads, are from "Buffer management for
//! LLAMA". The differences: our helpers park where theirs spin, requests go stale, and the exact policy *frontier* is
//! new.

mod counters;
mod hook;
mod locator;
mod ring;
mod settings;
mod usefulness;
mod walks;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anden_base::process::Helpers;
use anden_snapshots::SnapshotView;

use counters::PrefetchCounters;
use hook::PrefetchHook;
use locator::PrefetchRequest;
use ring::Ring;

pub use counters::{PolicyStats, PrefetchStats};
pub use settings::{Io, Prefetch};

/// Requests that may wait, each of at most [`hook::REQUEST_LISTS`] lists: more would be stale before their turn.
const RING_REQUESTS: usize = 512;

/// One helper calls the system while the other locates lists; more would wait for the same disk.
const NUM_HELPERS: usize = 2;

/// Lists of fewer bytes never need prefetching; the available memory is not even asked for.
const SMALL_BYTES: u64 = 1 << 20;

/// The prefetcher, for any number of views. Its helper threads start with the first view that needs them, and end with
/// it.
#[derive(Debug)]
pub struct Prefetcher {
    shared: Arc<PrefetchShared>,
    helpers: Helpers,
    is_started: AtomicBool,
}

/// The state that views, requests and helpers share.
#[derive(Debug)]
struct PrefetchShared {
    ring: Ring<PrefetchRequest>,
    counters: PrefetchCounters,
    /// The memory to assume as available; `None`: ask the system.
    free_bytes: Option<u64>,
}

impl PrefetchShared {
    fn new(num_requests: usize, free_bytes: Option<u64>) -> Self {
        Self { ring: Ring::new(num_requests), counters: PrefetchCounters::default(), free_bytes }
    }

    /// As [`anden_base::memory::available`].
    fn available(&self) -> u64 {
        self.free_bytes.unwrap_or_else(anden_base::memory::available)
    }

    /// As [`anden_base::memory::available_now`].
    fn available_now(&self) -> u64 {
        self.free_bytes.unwrap_or_else(anden_base::memory::available_now)
    }
}

/// Whether all lists of a view fit in the available memory, including the part that they occupy now.
pub(crate) fn fits_in_memory(view: &SnapshotView, available: impl FnOnce() -> u64) -> bool {
    let num_bytes = view.stored_bytes();
    num_bytes <= SMALL_BYTES || num_bytes <= available()
}

impl Default for Prefetcher {
    fn default() -> Self {
        Self::of(PrefetchShared::new(RING_REQUESTS, None))
    }
}

impl Prefetcher {
    /// A prefetcher that assumes this much free memory. A larger graph counts as larger than memory.
    pub fn with_free_memory(num_bytes: u64) -> Self {
        Self::of(PrefetchShared::new(RING_REQUESTS, Some(num_bytes)))
    }

    fn of(shared: PrefetchShared) -> Self {
        Self { shared: Arc::new(shared), helpers: Helpers::default(), is_started: AtomicBool::new(false) }
    }

    /// The view with a hook: announcements through it are prefetched as `policy` says.
    ///
    /// Cost: with [`Prefetch::Auto`], one query for the available memory. A graph that fits gets no hook.
    pub fn attach(&self, view: &SnapshotView, policy: Prefetch) -> SnapshotView {
        // A forked child has no helper threads.
        if self.helpers.are_elsewhere() {
            return view.with_hook(None);
        }
        if policy == Prefetch::Off || policy == Prefetch::Auto && fits_in_memory(view, || self.shared.available()) {
            // An earlier hook may have turned the system's own read-ahead off.
            view.read_exactly(false);
            return view.with_hook(None);
        }
        if !self.is_started.swap(true, Ordering::Relaxed) {
            self.start();
        }
        let hook = PrefetchHook::new(&self.shared, view.with_hook(None), policy);
        view.with_hook(Some(hook))
    }

    /// Counters since the start.
    pub fn stats(&self) -> PrefetchStats {
        self.shared.counters.stats()
    }

    fn start(&self) {
        for number in 0..NUM_HELPERS {
            let shared = Arc::clone(&self.shared);
            // Without helpers requests are dropped, and lists are read on demand.
            let _ = self.helpers.spawn(&format!("anden-ahead-{number}"), move || locator::serve(&shared));
        }
    }
}

impl Drop for Prefetcher {
    fn drop(&mut self) {
        if self.helpers.are_elsewhere() {
            return;
        }
        self.shared.ring.close();
        // A panic of a helper is ignored: helpers hold no state that it could break.
        self.helpers.join();
    }
}
