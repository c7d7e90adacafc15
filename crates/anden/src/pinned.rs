//! Open views of a database, and their ages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

/// Open views of a database.
///
/// An open view keeps its files and memtable versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ViewStats {
    /// Number of open views, transactions included; clones of a view do not count.
    pub open: usize,
    /// Age of the oldest open view; zero without views.
    pub oldest_age: Duration,
}

/// Opening times of all open views.
#[derive(Debug, Default)]
pub(crate) struct Pins(Mutex<PinSlots>);

#[derive(Debug, Default)]
struct PinSlots {
    /// Opening time by slot; `None`: free slot.
    since: Vec<Option<Instant>>,
    free: Vec<usize>,
}

/// One open view. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct Pin {
    pins: Arc<Pins>,
    slot: usize,
}

impl Pins {
    fn slots(&self) -> MutexGuard<'_, PinSlots> {
        self.0.lock()
    }

    /// Registers an open view.
    pub(crate) fn pin(self: &Arc<Self>) -> Pin {
        // Read before the lock, to keep the critical section short.
        let now = Instant::now();
        let mut slots = self.slots();
        // Slots are reused, so the table grows only to the largest number of views open at one time.
        let slot = match slots.free.pop() {
            Some(slot) => slot,
            None => {
                slots.since.push(None);
                slots.since.len() - 1
            }
        };
        slots.since[slot] = Some(now);
        drop(slots);
        Pin { pins: Arc::clone(self), slot }
    }

    pub(crate) fn stats(&self) -> ViewStats {
        let slots = self.slots();
        // A scan suffices: open views are few, and only statistics ask for the oldest.
        let oldest = slots.since.iter().flatten().min();
        ViewStats {
            open: slots.since.len() - slots.free.len(),
            oldest_age: oldest.map_or(Duration::ZERO, Instant::elapsed),
        }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut slots = self.pins.slots();
        slots.since[self.slot] = None;
        slots.free.push(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use anden_testkit::wait_until;

    use super::*;

    #[test]
    fn open_views_are_counted_and_the_oldest_is_known() {
        let pins = Arc::new(Pins::default());
        assert_eq!(pins.stats(), ViewStats::default());
        let first = pins.pin();
        let age = Duration::from_millis(2);
        wait_until("the first view ages", || pins.stats().oldest_age >= age);
        let others: Vec<_> = (0..5).map(|_| pins.pin()).collect();
        assert!(pins.stats().open == 6 && pins.stats().oldest_age >= age);
        drop(first);
        drop(others);
        assert_eq!((pins.stats(), pins.slots().since.len()), (ViewStats::default(), 6));
        let again = pins.pin();
        assert_eq!((pins.stats().open, pins.slots().since.len()), (1, 6));
        drop(again);
    }
}
