//! Pieces that workers make side by side and that are taken in their order.
//!
//! Whoever finds nobody taking takes what is due, so that one worker writes while the others make more. A worker that
//! is far ahead waits for those behind, which bounds the pieces that are held.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, TryLockError};

use super::Pool;

/// Pieces a worker that may wait for earlier ones.
const WAITING_PIECES: usize = 2;

impl Pool {
    /// Makes a piece of each item with `make(worker's state, item, piece)`, and hands the pieces to `take` in the order
    /// of the items. `make` finds a new piece, or one that was taken before, as it was left: what it owns can be used
    /// again.
    ///
    /// Memory: the pieces that workers make, and two more a worker.
    ///
    /// # Errors
    /// The first that `make` or `take` gave. Nothing is taken after it, and what comes before it may be missing.
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
        let turns = Turnstile::new(&mut take, WAITING_PIECES * self.num_threads());
        let items = Mutex::new(items.into_iter().enumerate());
        self.on_each_worker(|_| {
            let _watch = PanicWatch(&turns);
            let mut state = state();
            while !turns.has_ended() {
                // Items are claimed in order, so the worker of the piece that is due never waits.
                let claimed = lock(&items).next();
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

/// Locks what no panic leaves half changed: one ends the whole work.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

type Take<'a, T, E> = dyn FnMut(&mut T) -> Result<(), E> + Send + 'a;

/// Pieces come in any order and leave in theirs.
struct Turnstile<'a, T, E> {
    take: Mutex<&'a mut Take<'a, T, E>>,
    queue: Mutex<Queue<T, E>>,
    moved: Condvar,
    most_waiting: usize,
}

struct Queue<T, E> {
    /// The index that leaves next.
    next: usize,
    waiting: BTreeMap<usize, T>,
    spare: Vec<T>,
    error: Option<E>,
    has_panicked: bool,
}

impl<T, E> Queue<T, E> {
    fn has_ended(&self) -> bool {
        self.error.is_some() || self.has_panicked
    }
}

impl<'a, T: Default, E> Turnstile<'a, T, E> {
    fn new(take: &'a mut Take<'a, T, E>, most_waiting: usize) -> Self {
        let queue = Queue { next: 0, waiting: BTreeMap::new(), spare: Vec::new(), error: None, has_panicked: false };
        Self { take: Mutex::new(take), queue: Mutex::new(queue), moved: Condvar::new(), most_waiting }
    }

    /// Whether there is no use in going on.
    fn has_ended(&self) -> bool {
        lock(&self.queue).has_ended()
    }

    /// Keeps the first error; false if this is one.
    fn note(&self, result: Result<(), E>) -> bool {
        let Err(error) = result else { return true };
        lock(&self.queue).error.get_or_insert(error);
        self.moved.notify_all();
        false
    }

    fn spare(&self) -> T {
        lock(&self.queue).spare.pop().unwrap_or_default()
    }

    /// The `index`th piece is there.
    fn submit(&self, index: usize, piece: T) {
        let mut queue = lock(&self.queue);
        while queue.waiting.len() >= self.most_waiting && index != queue.next {
            if queue.has_ended() {
                return;
            }
            queue = self.moved.wait(queue).unwrap_or_else(|e| e.into_inner());
        }
        queue.waiting.insert(index, piece);
        drop(queue);
        // Looked at again after the taker is let go: who came in between found it busy and left.
        while self.is_due() {
            match self.take.try_lock() {
                Ok(mut take) => self.drain(&mut **take),
                Err(TryLockError::Poisoned(_) | TryLockError::WouldBlock) => return,
            }
        }
    }

    fn is_due(&self) -> bool {
        let queue = lock(&self.queue);
        !queue.has_ended() && queue.waiting.contains_key(&queue.next)
    }

    fn drain(&self, take: &mut Take<'_, T, E>) {
        loop {
            let mut queue = lock(&self.queue);
            let next = queue.next;
            let due = if queue.has_ended() { None } else { queue.waiting.remove(&next) };
            drop(queue);
            let Some(mut piece) = due else { return };
            if !self.note(take(&mut piece)) {
                return;
            }
            let mut queue = lock(&self.queue);
            queue.next += 1;
            queue.spare.push(piece);
            self.moved.notify_all();
        }
    }

    fn finish(self) -> Result<(), E> {
        let queue = self.queue.into_inner().unwrap_or_else(|e| e.into_inner());
        queue.error.map_or(Ok(()), Err)
    }
}

/// Lets nobody wait for a worker that panicked.
struct PanicWatch<'a, 'b, T, E>(&'a Turnstile<'b, T, E>);

impl<T, E> Drop for PanicWatch<'_, '_, T, E> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.queue).has_panicked = true;
            self.0.moved.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Gives the numbers below 100 back as far as they were taken; `fails` says at which one the taker fails.
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
            let slow_start = |number| {
                if number % 10 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                Ok(number)
            };
            assert_eq!(taken(threads, slow_start, None), (Ok(()), (0..100).collect()));
        }
    }

    #[test]
    fn nothing_is_taken_after_an_error() {
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
        struct Piece(Option<()>);
        let make = |(): &mut (), _, piece: &mut Piece| {
            if piece.0.replace(()).is_none() {
                num_made.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, ()>(())
        };
        pool.in_order(0..1000, || (), make, |_| Ok(())).unwrap();
        assert!(num_made.load(Ordering::Relaxed) <= 3 * 4 + 1, "{num_made:?}");
    }

    #[test]
    fn nobody_waits_for_a_worker_that_panicked() {
        for at in [0, 30, 99] {
            let panicking = |number| if number == at { panic!("planted") } else { Ok(number) };
            assert!(catch_unwind(AssertUnwindSafe(|| taken(4, panicking, None))).is_err());
        }
    }
}
