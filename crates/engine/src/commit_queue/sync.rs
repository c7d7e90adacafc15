//! The primitives of the queue; a model checker substitutes its own.

pub(crate) use std::hint::spin_loop as hint;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use std::thread::{Thread, current, park, yield_now};
pub(crate) use std::time::Instant;

pub(crate) use parking_lot::{Mutex, MutexGuard};

use std::sync::OnceLock;

/// Checks of a follower before its first yield: a leader with a core of its own is done soon.
pub(crate) const SPINS: u32 = 32;
/// Checks of a follower, including those, before it parks.
pub(crate) const LOOKS: u32 = 256;
/// A group of this many requests does not wait for more.
pub(crate) const ENOUGH: usize = 16;
/// One in this many leaders of a smaller group yields to waiting callers first.
pub(crate) const TURNS: u32 = 8;

/// The number of cores that the process may use.
pub(crate) fn num_cores() -> u64 {
    static NUM_CORES: OnceLock<u64> = OnceLock::new();
    *NUM_CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64))
}
