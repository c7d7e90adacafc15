//! Parallel loops over a fixed set of workers.
//!
//! Workers claim chunks of the work from a shared counter, so a slow chunk does not delay the rest. A body gets the
//! index of its worker, for scratch space per worker. Loops must not be nested. A body with too much work for one
//! worker [shares](Pool::share) it.

mod helped;
mod in_order;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rayon::prelude::*;

use crate::process::Birthplace;
use crate::{Error, Result};

/// A set of worker threads. A forked child has no workers, so the caller does all work there.
pub struct Pool {
    /// Present until the pool is dropped.
    workers: Option<rayon::ThreadPool>,
    num_threads: usize,
    birthplace: Birthplace,
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.birthplace.is_elsewhere() {
            // A child has no threads to end.
            std::mem::forget(self.workers.take());
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("num_threads", &self.num_threads).finish()
    }
}

impl Pool {
    /// Starts `num_threads` workers; 0 means one for each processor.
    ///
    /// # Errors
    /// The system refuses to start a thread.
    pub fn new(num_threads: usize) -> Result<Self> {
        let workers = rayon::ThreadPoolBuilder::new()
            .num_threads(num_threads)
            .thread_name(|i| format!("anden-{i}"))
            .build()
            .map_err(|e| Error::io("start threads of", "pool".as_ref(), std::io::Error::other(e)))?;
        let num_threads = workers.current_num_threads();
        Ok(Self { workers: Some(workers), num_threads, birthplace: Birthplace::here() })
    }

    /// The workers; `None` in a forked child.
    fn workers(&self) -> Option<&rayon::ThreadPool> {
        self.workers.as_ref().filter(|_| !self.birthplace.is_elsewhere())
    }

    /// Number of workers. Worker indexes are below it.
    pub fn num_threads(&self) -> usize {
        self.num_threads
    }

    /// Calls `body(worker_index, chunk)` for chunks of at most `grain` that cover `range`.
    ///
    /// A range of at most one chunk runs on the calling thread as worker 0. So does any range if the pool has one
    /// worker. In all loops, the caller begins at once, workers join as they wake, and the caller waits only for
    /// workers that have begun.
    pub fn for_each_chunk(&self, range: Range<usize>, grain: usize, body: impl Fn(usize, Range<usize>) + Sync) {
        let grain = grain.max(1);
        if range.len() <= grain || self.num_threads == 1 {
            let mut start = range.start;
            while start < range.end {
                let end = range.end.min(start.saturating_add(grain));
                body(0, start..end);
                start = end;
            }
            return;
        }
        let num_chunks = range.len().div_ceil(grain);
        let next = AtomicUsize::new(0);
        self.on_each_worker(|worker| {
            loop {
                // Relaxed: the counter only hands out chunks. The end of the loop publishes what workers wrote.
                let chunk = next.fetch_add(1, Ordering::Relaxed);
                if chunk >= num_chunks {
                    break;
                }
                let start = range.start + chunk * grain;
                body(worker, start..range.end.min(start + grain));
            }
        });
    }

    /// Maps chunks of at most `grain` to values, in the order of the chunks.
    ///
    /// The chunks depend on `grain` only, so a sum over the result does not depend on the number of threads.
    pub fn map_chunks<R: Send>(
        &self,
        range: Range<usize>,
        grain: usize,
        body: impl Fn(usize, Range<usize>) -> R + Sync,
    ) -> Vec<R> {
        let grain = grain.max(1);
        let results = Mutex::new(Vec::with_capacity(range.len().div_ceil(grain)));
        self.for_each_chunk(range, grain, |worker, chunk| {
            let start = chunk.start;
            let value = body(worker, chunk);
            results.lock().push((start, value));
        });
        let mut results = results.into_inner();
        // Chunks end in any order.
        results.sort_unstable_by_key(|&(start, _)| start);
        results.into_iter().map(|(_, value)| value).collect()
    }

    /// Calls `body(start, part)` for parts of at most `grain` elements that cover `data`.
    pub fn for_each_part_mut<T: Send>(&self, data: &mut [T], grain: usize, body: impl Fn(usize, &mut [T]) + Sync) {
        let grain = grain.max(1);
        if data.len() <= grain || self.num_threads == 1 {
            data.chunks_mut(grain).enumerate().for_each(|(i, part)| body(i * grain, part));
            return;
        }
        let parts = Mutex::new(data.chunks_mut(grain).enumerate());
        self.on_each_worker(|_| {
            loop {
                // The lock ends with this statement, before the body runs.
                let part = parts.lock().next();
                let Some((i, part)) = part else { break };
                body(i * grain, part);
            }
        });
    }

    /// Passes each item to a free worker, in the order of the items.
    pub fn for_each_item<T: Send>(&self, items: Vec<T>, body: impl Fn(usize, T) + Sync) {
        let items = Mutex::new(items.into_iter());
        self.on_each_worker(|worker| {
            loop {
                // As above: no worker holds the lock while its body runs.
                let item = items.lock().next();
                let Some(item) = item else { break };
                body(worker, item);
            }
        });
    }

    /// Maps items with `body(worker_index, item)`, in their order. May be called from the body of a loop: workers
    /// that have finished their part of the loop help.
    ///
    /// `body` must not take a lock that the caller holds: a waiting thread may run `body` for another caller.
    pub fn share<T: Send, R: Send>(&self, items: Vec<T>, body: impl Fn(usize, T) -> R + Sync) -> Vec<R> {
        let Some(workers) = self.workers().filter(|_| self.num_threads > 1) else {
            return items.into_iter().map(|item| body(0, item)).collect();
        };
        let on_worker = |item| body(rayon::current_thread_index().unwrap_or(0), item);
        // One item a job, so that idle workers can take each item.
        workers.install(|| items.into_par_iter().with_max_len(1).map(on_worker).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_the_range_once() {
        for threads in [1, 3] {
            let pool = Pool::new(threads).unwrap();
            let counts: Vec<AtomicUsize> = (0..1000).map(|_| AtomicUsize::new(0)).collect();
            pool.for_each_chunk(3..1000, 7, |worker, chunk| {
                assert!(worker < threads);
                chunk.for_each(|i| {
                    counts[i].fetch_add(1, Ordering::Relaxed);
                });
            });
            assert!(counts.iter().enumerate().all(|(i, c)| c.load(Ordering::Relaxed) == usize::from(i >= 3)));
        }
    }

    #[test]
    fn mapped_chunks_come_in_order() {
        let pool = Pool::new(4).unwrap();
        let starts = pool.map_chunks(0..1001, 10, |_, chunk| chunk.start);
        assert_eq!(starts, (0..1001).step_by(10).collect::<Vec<_>>());
    }

    #[test]
    fn parts_are_written_once() {
        let pool = Pool::new(2).unwrap();
        let mut data = vec![0; 1000];
        pool.for_each_part_mut(&mut data, 9, |start, part| {
            part.iter_mut().enumerate().for_each(|(i, x)| *x += start + i);
        });
        assert!(data.iter().enumerate().all(|(i, &x)| x == i));
        let sum = AtomicUsize::new(0);
        pool.for_each_item(data, |_, x| {
            sum.fetch_add(x, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 999 * 500);
    }

    #[test]
    fn bodies_share_what_is_too_much() {
        for threads in [1, 3] {
            let pool = Pool::new(threads).unwrap();
            let squares = |len: usize| pool.share((0..len).collect(), |worker, i| (worker < threads, i * i));
            let nested = pool.map_chunks(0..40, 1, |_, chunk| squares(100 * chunk.start));
            for (i, found) in nested.iter().enumerate() {
                assert!(found.iter().copied().eq((0..100 * i).map(|i| (true, i * i))));
            }
            assert_eq!(squares(3), [(true, 0), (true, 1), (true, 4)]);
        }
    }
}
