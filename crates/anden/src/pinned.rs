//! The views of a database that are open, and since when.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The views of a database that are open.
///
/// What a view shows is kept while it is there: files, and versions of what is in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ViewStats {
    /// How many, transactions included; clones of a view do not count.
    pub open: usize,
    /// How long the oldest has been open; zero where there is none.
    pub oldest_age: Duration,
}

/// Since when views are open.
#[derive(Debug, Default)]
pub(crate) struct Pins(Mutex<Seats>);

#[derive(Debug, Default)]
struct Seats {
    /// `None`: free.
    since: Vec<Option<Instant>>,
    free: Vec<usize>,
}

/// One open view; it is no longer when this goes.
#[derive(Debug)]
pub(crate) struct Pin {
    pins: Arc<Pins>,
    seat: usize,
}

impl Pins {
    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a view was opened.
    pub(crate) fn pin(self: &Arc<Self>) -> Pin {
        let now = Instant::now();
        let mut seats = self.seats();
        let seat = match seats.free.pop() {
            Some(seat) => seat,
            None => {
                seats.since.push(None);
                seats.since.len() - 1
            }
        };
        seats.since[seat] = Some(now);
        drop(seats);
        Pin { pins: Arc::clone(self), seat }
    }

    pub(crate) fn stats(&self) -> ViewStats {
        let seats = self.seats();
        let oldest = seats.since.iter().flatten().min();
        ViewStats {
            open: seats.since.len() - seats.free.len(),
            oldest_age: oldest.map_or(Duration::ZERO, Instant::elapsed),
        }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut seats = self.pins.seats();
        seats.since[self.seat] = None;
        seats.free.push(self.seat);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_views_are_counted_and_the_oldest_is_known() {
        let pins = Arc::new(Pins::default());
        assert_eq!(pins.stats(), ViewStats::default());
        let first = pins.pin();
        let age = Duration::from_millis(2);
        std::thread::sleep(age);
        let others: Vec<_> = (0..5).map(|_| pins.pin()).collect();
        assert!(pins.stats().open == 6 && pins.stats().oldest_age >= age);
        drop(first);
        drop(others);
        assert_eq!((pins.stats(), pins.seats().since.len()), (ViewStats::default(), 6));
        let again = pins.pin();
        assert_eq!((pins.stats().open, pins.seats().since.len()), (1, 6));
        drop(again);
    }
}
