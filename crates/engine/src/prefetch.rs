//! The advisor: who reads ahead of algorithms on graphs that are larger than memory.
//!
//! Algorithms say through the seam which lists they will read ([`graph::WillNeed`]), and a scan shows by itself where
//! it goes. A view with an advisor passes that on: cut into requests of some hundred lists, through a [`ring`] that
//! never makes a reader wait, to [`scout`]s that sleep while there is nothing to do. They find where the lists are, put
//! close ones together, leave out what is in memory, and ask the system for the rest. A request is worth nothing once
//! its reader has gone on, so each carries the epoch of its announcement, and one that is out of date is dropped.
//!
//! While a graph fits in the memory that the process may have, nobody listens, and nothing of this costs anything.
//!
//! # Source
//! The policies *neighbourhood* and *sequential*, and the queue with scouts beside it, are those of "Buffer management
//! for LLAMA". Ours differ: scouts sleep where theirs spun, requests go stale, and *frontier*, which is exact, is new.

mod attached;
mod counters;
mod ring;
mod scout;
mod settings;
mod walks;
mod worth;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::process::Helpers;
use lama::View;

use attached::Attached;
use counters::Counters;
use ring::Ring;
use scout::Request;

pub use counters::{PolicyStats, PrefetchStats};
pub use settings::{Io, Prefetch};

/// Requests that may wait. Each is of at most [`attached::REQUEST_LISTS`] lists: more would be stale when their turn
/// comes.
const RING_REQUESTS: usize = 512;

/// One asks the system for what another is still looking for; more would wait for the same disk.
const NUM_SCOUTS: usize = 2;

/// Lists of fewer bytes are never worth an advisor, and nobody asks how much memory there is.
const SMALL_BYTES: u64 = 1 << 20;

/// Reads ahead for any number of views. Its scouts start when the first view needs them, and end with it.
#[derive(Debug)]
pub struct Advisor {
    shared: Arc<Shared>,
    scouts: Helpers,
    is_started: AtomicBool,
}

/// What views, requests and scouts know of each other.
#[derive(Debug)]
struct Shared {
    ring: Ring<Request>,
    counters: Counters,
    /// What there is to have of memory, whatever the system says; `None`: what it says.
    free_bytes: Option<u64>,
}

impl Shared {
    fn new(num_requests: usize, free_bytes: Option<u64>) -> Self {
        Self { ring: Ring::new(num_requests), counters: Counters::default(), free_bytes }
    }

    /// As [`base::memory::available`].
    fn available(&self) -> u64 {
        self.free_bytes.unwrap_or_else(base::memory::available)
    }

    /// As [`base::memory::available_now`].
    fn available_now(&self) -> u64 {
        self.free_bytes.unwrap_or_else(base::memory::available_now)
    }
}

/// Whether all lists of a view fit in the memory that the process may have, what they have of it now included.
pub(crate) fn fits_in_memory(view: &View, available: impl FnOnce() -> u64) -> bool {
    let num_bytes = view.stored_bytes();
    num_bytes <= SMALL_BYTES || num_bytes <= available()
}

impl Default for Advisor {
    fn default() -> Self {
        Self::of(Shared::new(RING_REQUESTS, None))
    }
}

impl Advisor {
    /// One that takes so many bytes for the memory that is free, whatever the system says: a graph of more is larger than
    /// memory.
    pub fn with_free_memory(num_bytes: u64) -> Self {
        Self::of(Shared::new(RING_REQUESTS, Some(num_bytes)))
    }

    fn of(shared: Shared) -> Self {
        Self { shared: Arc::new(shared), scouts: Helpers::default(), is_started: AtomicBool::new(false) }
    }

    /// The same view, and what is announced through it is read ahead as `policy` says.
    ///
    /// Cost: with [`Prefetch::Auto`], a look at how much memory is free; of a graph that fits there nothing follows.
    pub fn attach(&self, view: &View, policy: Prefetch) -> View {
        // A forked child has no scouts.
        if self.scouts.are_elsewhere() {
            return view.with_listener(None);
        }
        if policy == Prefetch::Off || policy == Prefetch::Auto && fits_in_memory(view, || self.shared.available()) {
            view.read_exactly(false);
            return view.with_listener(None);
        }
        if !self.is_started.swap(true, Ordering::Relaxed) {
            self.start();
        }
        let listener = Attached::new(&self.shared, view.with_listener(None), policy);
        view.with_listener(Some(listener))
    }

    /// What was done so far.
    pub fn stats(&self) -> PrefetchStats {
        self.shared.counters.stats()
    }

    fn start(&self) {
        for number in 0..NUM_SCOUTS {
            let shared = Arc::clone(&self.shared);
            // Without scouts requests are dropped, and everything is read when it is needed.
            let _ = self.scouts.spawn(&format!("anden-ahead-{number}"), move || scout::serve(&shared));
        }
    }
}

impl Drop for Advisor {
    fn drop(&mut self) {
        if self.scouts.are_elsewhere() {
            return;
        }
        self.shared.ring.close();
        // A scout holds no state that it could leave broken.
        self.scouts.join();
    }
}
