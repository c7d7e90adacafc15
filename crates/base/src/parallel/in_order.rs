//! Pieces that workers make concurrently and that are taken in their order.
//!
//! A worker that finds no other taking takes all pieces that are due, so one worker writes while the others make
//! more. A worker that is far ahead waits for those behind, which bounds the number of pieces.

use std::collections::BTreeMap;

use parking_lot::{Condvar, Mutex};

use super::Pool;

/// Number of pieces per worker that may wait for earlier ones.
const WAITING_PIECES: usize = 2;

impl Pool {
    /// Makes a piece of each item with `make(worker's state, item, piece)`, and passes the pieces to `take` in the
    /// order of the items. `make` gets a new piece, or a taken one with its old content, so that its memory can be
    /// reused.
    ///
    /// Memory: the pieces that workers make, and two more per worker.
    ///
    /// # Errors
    /// The first error of `make` or `take`. No later piece is taken, and earlier ones may be missing.
    pub fn in_order<I, S, T, E>(
        &self,
        items: impl IntoIterator<Item = I, IntoIter: Send>,
        state: impl Fn() -> S + Sync,
        make: impl Fn(&mut S, I, &mut T) -> Result<(), E> + Sync,
        mut take: impl FnMut(&mut T) -> Result<(), E> + Send,
    ) -> Result<(), E>
    where
        T: Default + Send,
        E: Send,
    {
        let turns = ReorderBuffer::new(&mut take, WAITING_PIECES * self.num_threads());
        let items = Mutex::new(items.into_iter().enumerate());
        self.on_each_worker(|_| {
            let _watch = PanicWatch(&turns);
            let mut state = state();
            while !turns.has_ended() {
                // Items are claimed in order, so the worker of the piece that is due never waits.
                let claimed = items.lock().next();
                let Some((index, item)) = claimed else { break };
                let mut piece = turns.spare();
                if turns.note(make(&mut state, item, &mut piece)) {
                    turns.submit(index, piece);
                }
            }
        });
        turns.finish()
    }
}

type Take<'a, T, E> = dyn FnMut(&mut T) -> Result<(), E> + Send + 'a;

/// Reorders pieces.
struct ReorderBuffer<'a, T, E> {
    take: Mutex<&'a mut Take<'a, T, E>>,
    queue: Mutex<ReorderQueue<T, E>>,
    moved: Condvar,
    most_waiting: usize,
}

struct ReorderQueue<T, E> {
    /// Index of the piece to take next.
    next: usize,
    waiting: BTreeMap<usize, T>,
    spare: Vec<T>,
    error: Option<E>,
    has_panicked: bool,
}

impl<T, E> ReorderQueue<T, E> {
    fn has_ended(&self) -> bool {
        self.error.is_some() || self.has_panicked
    }
}

impl<'a, T: Default, E> ReorderBuffer<'a, T, E> {
    fn new(take: &'a mut Take<'a, T, E>, most_waiting: usize) -> Self {
        let queue =
            ReorderQueue { next: 0, waiting: BTreeMap::new(), spare: Vec::new(), error: None, has_panicked: false };
        Self { take: Mutex::new(take), queue: Mutex::new(queue), moved: Condvar::new(), most_waiting }
    }

    /// Whether further work is useless.
    fn has_ended(&self) -> bool {
        self.queue.lock().has_ended()
    }

    /// Keeps the first error. Returns false for an error.
    fn note(&self, result: Result<(), E>) -> bool {
        let Err(error) = result else { return true };
        self.queue.lock().error.get_or_insert(error);
        self.moved.notify_all();
        false
    }

    fn spare(&self) -> T {
        self.queue.lock().spare.pop().unwrap_or_default()
    }

    /// Submits piece `index`.
    fn submit(&self, index: usize, piece: T) {
        let mut queue = self.queue.lock();
        // The piece that is due is always let in; a full queue of later pieces would otherwise wait for it for ever.
        while queue.waiting.len() >= self.most_waiting && index != queue.next {
            if queue.has_ended() {
                return;
            }
            self.moved.wait(&mut queue);
        }
        queue.waiting.insert(index, piece);
        drop(queue);
        // Checked again after the taker unlocks: another worker may have found it busy meanwhile and left its piece.
        while self.is_due() {
            // A busy taker also takes this piece, so its worker goes on.
            let Some(mut take) = self.take.try_lock() else { return };
            self.drain(&mut **take);
        }
    }

    fn is_due(&self) -> bool {
        let queue = self.queue.lock();
        !queue.has_ended() && queue.waiting.contains_key(&queue.next)
    }

    fn drain(&self, take: &mut Take<'_, T, E>) {
        loop {
            let mut queue = self.queue.lock();
            let next = queue.next;
            let due = if queue.has_ended() { None } else { queue.waiting.remove(&next) };
            // Unlocked while `take` runs, so that other workers can submit.
            drop(queue);
            let Some(mut piece) = due else { return };
            if !self.note(take(&mut piece)) {
                return;
            }
            // Counted only now, so that `is_due` stays false while a piece is taken.
            let mut queue = self.queue.lock();
            queue.next += 1;
            queue.spare.push(piece);
            self.moved.notify_all();
        }
    }

    fn finish(self) -> Result<(), E> {
        let queue = self.queue.into_inner();
        queue.error.map_or(Ok(()), Err)
    }
}

/// Wakes all waiting workers if its worker panics.
struct PanicWatch<'a, 'b, T, E>(&'a ReorderBuffer<'b, T, E>);

impl<T, E> Drop for PanicWatch<'_, '_, T, E> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.queue.lock().has_panicked = true;
            self.0.moved.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use anden_testkit::wait_until;

    use super::*;

    /// Returns the numbers below 100 that were taken. The taker fails at `fails`.
    fn taken(
        threads: usize,
        make: impl Fn(usize) -> Result<usize, usize> + Sync,
        fails: Option<usize>,
    ) -> (Result<(), usize>, Vec<usize>) {
        let pool = Pool::new(threads).unwrap();
        let mut found = Vec::new();
        let fill = |count: &mut usize, number, piece: &mut usize| {
            *count += 1;
            *piece = make(number)?;
            Ok(())
        };
        let result = pool.in_order(
            0..100,
            || 0,
            fill,
            |&mut piece| {
                if fails == Some(piece) {
                    return Err(piece);
                }
                found.push(piece);
                Ok(())
            },
        );
        (result, found)
    }

    #[test]
    fn pieces_come_in_order() {
        for threads in [1, 4] {
            assert_eq!(taken(threads, Ok, None), (Ok(()), (0..100).collect()));
            let are_made: Vec<AtomicBool> = (0..100).map(|_| AtomicBool::new(false)).collect();
            let slow_start = |number: usize| {
                if threads > 1 && number.is_multiple_of(10) {
                    wait_until("the next piece is made first", || are_made[number + 1].load(Ordering::SeqCst));
                }
                are_made[number].store(true, Ordering::SeqCst);
                Ok(number)
            };
            assert_eq!(taken(threads, slow_start, None), (Ok(()), (0..100).collect()));
        }
    }

    #[test]
    fn error_ends_taking_of_items() {
        for threads in [1, 4] {
            let (result, found) = taken(threads, |number| if number == 50 { Err(number) } else { Ok(number) }, None);
            assert_eq!(result, Err(50));
            assert!(found.len() <= 50 && found.iter().enumerate().all(|(i, &piece)| i == piece), "{found:?}");
            let (result, found) = taken(threads, Ok, Some(70));
            assert_eq!((result, found), (Err(70), (0..70).collect()));
        }
    }

    #[test]
    fn few_pieces_are_held() {
        let pool = Pool::new(4).unwrap();
        let num_made = AtomicUsize::new(0);
        #[derive(Default)]
        struct CountedPiece(Option<()>);
        let make = |(): &mut (), _, piece: &mut CountedPiece| {
            if piece.0.replace(()).is_none() {
                num_made.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, ()>(())
        };
        pool.in_order(0..1000, || (), make, |_| Ok(())).unwrap();
        assert!(num_made.load(Ordering::Relaxed) <= 3 * 4 + 1, "{num_made:?}");
    }

    #[test]
    fn panicked_worker_does_not_block_the_others() {
        for at in [0, 30, 99] {
            let panicking = |number| if number == at { panic!("planted") } else { Ok(number) };
            assert!(catch_unwind(AssertUnwindSafe(|| taken(4, panicking, None))).is_err());
        }
    }
}
