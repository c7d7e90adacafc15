//! Pieces that are made by several threads and written in order.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};

use base::parallel::Pool;

/// Pieces a thread that may wait for an earlier one.
const WAITING_PIECES: usize = 2;

struct Queue<T, E, F> {
    write: F,
    next: usize,
    waiting: BTreeMap<usize, T>,
    error: Option<E>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere ends the whole work; nothing here is left half changed.
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// Makes the pieces `0..num_pieces` with `make`, each thread with a `state` of its own, and hands them to
/// `write` in order. Few of them wait at a time.
///
/// # Errors
/// The first of a piece, in their order, as far as they were made; nothing is written behind it.
pub(super) fn write_in_order<S, T: Send, E: Send>(
    pool: &Pool,
    num_pieces: usize,
    state: impl Fn() -> S + Sync,
    make: impl Fn(&mut S, usize) -> Result<T, E> + Sync,
    write: impl FnMut(T) -> Result<(), E> + Send,
) -> Result<(), E> {
    let queue = Mutex::new(Queue { write, next: 0, waiting: BTreeMap::new(), error: None });
    let written = Condvar::new();
    let ahead = WAITING_PIECES * pool.num_threads();
    let claimed = Mutex::new(0..num_pieces);
    pool.on_each_worker(|_| {
        let mut state = state();
        // Pieces are claimed in order, so the worker of the next one to be written never waits.
        while let Some(piece) = { lock(&claimed).next() } {
            let made = make(&mut state, piece);
            let mut queue = lock(&queue);
            while piece >= queue.next + ahead && queue.error.is_none() {
                queue = written.wait(queue).unwrap_or_else(|e| e.into_inner());
            }
            if queue.error.is_some() {
                break;
            }
            match made {
                Ok(made) => drop(queue.waiting.insert(piece, made)),
                Err(error) => queue.error = Some(error),
            }
            while queue.error.is_none()
                && let next = queue.next
                && let Some(made) = queue.waiting.remove(&next)
            {
                queue.next += 1;
                queue.error = (queue.write)(made).err();
            }
            written.notify_all();
        }
    });
    let queue = queue.into_inner().unwrap_or_else(|e| e.into_inner());
    queue.error.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_in_order() {
        for threads in [1, 4] {
            let pool = Pool::new(threads).unwrap();
            let mut found = Vec::new();
            let result = write_in_order(
                &pool,
                100,
                || 0,
                |count, piece| {
                    *count += 1;
                    Ok::<_, ()>(piece)
                },
                |piece| {
                    found.push(piece);
                    Ok(())
                },
            );
            assert_eq!((result, found), (Ok(()), (0..100).collect()));
            let mut found = Vec::new();
            let failed = |piece| if piece == 50 { Err(piece) } else { Ok(piece) };
            let write = |piece| {
                found.push(piece);
                Ok(())
            };
            assert_eq!(write_in_order(&pool, 100, || (), |(), piece| failed(piece), write), Err(50));
            assert!(found.len() <= 50 && found.iter().enumerate().all(|(i, &piece)| i == piece));
        }
    }
}
