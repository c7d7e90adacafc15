//! What the queue is made of; a model checker puts its own in this place.

pub(crate) use std::hint::spin_loop as hint;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard};
pub(crate) use std::thread::{Thread, current, park, yield_now};
pub(crate) use std::time::Instant;

use std::sync::OnceLock;

/// Looks of a follower before its first yield: with a core to itself the leader is done soon.
pub(crate) const SPINS: u32 = 32;
/// Looks of a follower, those included, before it parks.
pub(crate) const LOOKS: u32 = 256;
/// A group of so many requests is not kept waiting for more.
pub(crate) const ENOUGH: usize = 16;
/// One of so many who are to lead a smaller one gives way to those who wait.
pub(crate) const TURNS: u32 = 8;

/// The cores that the process has.
pub(crate) fn num_cores() -> u64 {
    static NUM_CORES: OnceLock<u64> = OnceLock::new();
    *NUM_CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64))
}
