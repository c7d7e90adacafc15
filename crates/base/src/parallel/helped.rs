//! Work that the caller begins alone, and that workers join as they wake.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::Pool;

/// Flag in the state of an [`Offer`]: no helper may enter.
const CLOSED: usize = 1 << (usize::BITS - 1);
/// Number of spins before a caller that waits for helpers yields the processor.
const LOOKS: usize = 64;

thread_local! {
    static IS_AT_WORK: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as busy with an offer. It must not help another one, even while it waits ([`Pool::share`]),
/// because its worker index is in use.
struct AtWork;

impl AtWork {
    /// `None` if this thread is busy already.
    fn begin() -> Option<Self> {
        // Constructed lazily: dropping a second value would clear the mark of the first.
        (!IS_AT_WORK.replace(true)).then(|| Self)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        IS_AT_WORK.set(false);
    }
}

type HelperWork<'a> = dyn Fn(usize) + Sync + 'a;

/// Work that helpers may join until the caller has finished the rest.
struct Offer {
    /// Number of helpers at work, and [`CLOSED`].
    state: AtomicUsize,
    /// Valid while the offer is open or a helper is at work.
    work: *const HelperWork<'static>,
    /// Panic of a helper.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `work` is the only field that is not `Send` and `Sync` by itself. It points to a `Sync` closure, and only
// helpers that have entered follow it.
unsafe impl Send for Offer {}
// SAFETY: as above.
unsafe impl Sync for Offer {}

impl Offer {
    /// Does the work as `worker`, if the offer is still open.
    fn help(&self, worker: usize) {
        let Some(_at_work) = AtWork::begin() else { return };
        let entered = self
            .state
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, |state| (state < CLOSED).then_some(state + 1));
        if entered.is_err() {
            return;
        }
        // SAFETY: the state counts this helper, so `Closing` keeps `for_each_item_helped`, whose frame holds the
        // work, from returning.
        let work = unsafe { &*self.work };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(worker))) {
            // The caller raises the panic, as if it had run this part itself.
            *self.panic.lock() = Some(panic);
        }
        // Release: pairs with the load in `Closing`, so that the caller sees all that the helper wrote.
        self.state.fetch_sub(1, Ordering::Release);
    }
}

/// Closes an offer when dropped, also by a panic, and waits until no helper is at work.
struct Closing<'a>(&'a Offer);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        // Relaxed: the flag only keeps helpers out. The load below orders their work before the return.
        self.0.state.fetch_or(CLOSED, Ordering::Relaxed);
        let mut num_looks = 0;
        while self.0.state.load(Ordering::Acquire) != CLOSED {
            num_looks += 1;
            if num_looks < LOOKS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }
}

impl Pool {
    /// Passes each item to the calling thread or to a worker, in the order of the items. The caller begins at once,
    /// workers join as they wake, and the caller waits only for workers that have begun. A caller that is not a
    /// worker has the number of threads as its index.
    pub fn for_each_item_helped<T: Send>(&self, items: Vec<T>, body: impl Fn(usize, T) + Sync) {
        let num_items = items.len();
        let items = Mutex::new(items.into_iter());
        let work = |worker: usize| loop {
            let item = items.lock().next();
            let Some(item) = item else { break };
            body(worker, item);
        };
        let Some(workers) = self.workers() else { return work(self.num_threads) };
        let own = workers.current_thread_index().unwrap_or(self.num_threads);
        // The caller takes one item itself.
        let num_helpers = self.num_threads.min(num_items).saturating_sub(1);
        if num_helpers == 0 {
            return work(own);
        }
        let erased: *const HelperWork<'_> = &work;
        // SAFETY: only the lifetime changes. `Closing` keeps this call from returning while a helper follows the
        // pointer.
        let erased = unsafe { std::mem::transmute::<*const HelperWork<'_>, *const HelperWork<'static>>(erased) };
        let offer = Arc::new(Offer { state: AtomicUsize::new(0), work: erased, panic: Mutex::default() });
        let _at_work = AtWork::begin();
        let closing = Closing(&offer);
        for _ in 0..num_helpers {
            let offer = Arc::clone(&offer);
            workers.spawn(move || offer.help(rayon::current_thread_index().unwrap_or_default()));
        }
        work(own);
        drop(closing);
        let panic = offer.panic.lock().take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::AtomicBool;

    use anden_testkit::wait_until;

    use super::*;

    #[test]
    fn items_are_handed_out_once() {
        for threads in [1, 2, 4] {
            let pool = Pool::new(threads).unwrap();
            for num_items in [0, 1, 2, 3, 50] {
                for _ in 0..200 {
                    let done = Mutex::new(Vec::new());
                    pool.for_each_item_helped((0..num_items).collect(), |worker, item: usize| {
                        assert!(worker <= threads);
                        done.lock().push(item);
                    });
                    let mut done = done.into_inner();
                    done.sort_unstable();
                    assert!(done.into_iter().eq(0..num_items));
                }
            }
        }
    }

    #[test]
    fn no_index_is_used_twice_at_a_time() {
        let pool = Pool::new(3).unwrap();
        let busy: Vec<AtomicBool> = (0..4).map(|_| AtomicBool::new(false)).collect();
        for is_worker in [false, true] {
            let found = Mutex::new(HashSet::new());
            let work = |worker: usize, _: usize| {
                assert!(!busy[worker].swap(true, Ordering::SeqCst));
                found.lock().insert(worker);
                wait_until("a worker helps", || found.lock().len() > 1);
                // Gives the others time for items of their own.
                (0..20).for_each(|_| std::thread::yield_now());
                busy[worker].store(false, Ordering::SeqCst);
            };
            let run = || pool.for_each_item_helped((0..60).collect(), work);
            if is_worker {
                pool.enter(run)
            } else {
                run()
            }
            assert!(is_worker || found.lock().contains(&3), "the caller works too");
        }
    }

    #[test]
    fn thread_waiting_within_item_starts_no_other() {
        // A worker that does not come leaves its part to the thread that waits.
        for (num_away, is_worker) in [(2, false), (0, false), (2, true), (0, true)] {
            let pool = Pool::new(4).unwrap();
            let are_back = Arc::new(AtomicBool::new(false));
            for _ in 0..num_away {
                let are_back = Arc::clone(&are_back);
                pool.workers().unwrap().spawn(move || {
                    while !are_back.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                });
            }
            let scratch: Vec<Mutex<()>> = (0..5).map(|_| Mutex::default()).collect();
            let sum = AtomicUsize::new(0);
            let part_of = |_: usize, part: usize| {
                // The subject: a part that takes a while, so that the thread that shares it waits.
                std::thread::sleep(std::time::Duration::from_micros(20));
                part
            };
            let work = |worker: usize, item: usize| {
                let _own = scratch[worker].try_lock().expect("one item at a time");
                let parts = pool.share((0..8).collect(), part_of);
                sum.fetch_add(parts.into_iter().sum::<usize>() + item, Ordering::Relaxed);
            };
            let run = || (0..50).for_each(|_| pool.for_each_item_helped((0..8).collect(), work));
            if is_worker {
                pool.enter(run)
            } else {
                run()
            }
            assert_eq!(sum.into_inner(), 50 * (8 * 28 + 28));
            are_back.store(true, Ordering::SeqCst);
        }
    }

    #[test]
    fn busy_workers_are_not_waited_for() {
        let pool = Pool::new(2).unwrap();
        let (is_free, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            // Both workers stay busy until the other thread is done.
            scope.spawn(|| {
                pool.on_each_worker(|_| {
                    is_free.store(true, Ordering::SeqCst);
                    while !is_done.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                });
            });
            while !is_free.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            pool.for_each_item_helped(vec![1, 2, 3], |_, _| {});
            is_done.store(true, Ordering::SeqCst);
        });
    }

    #[test]
    fn panics_reach_the_caller() {
        let pool = Pool::new(2).unwrap();
        for panicking in [0, 2] {
            let have_begun = [AtomicBool::new(false), AtomicBool::new(false)];
            let helped = catch_unwind(AssertUnwindSafe(|| {
                pool.for_each_item_helped((0..40).collect(), |worker, _: usize| {
                    have_begun[usize::from(worker == 2)].store(true, Ordering::SeqCst);
                    let all_have = || have_begun.iter().all(|has_begun| has_begun.load(Ordering::SeqCst));
                    wait_until("the caller and a worker begin", all_have);
                    // The caller, or a worker.
                    assert!((worker == 2) != (panicking == 2), "on purpose");
                });
            }));
            assert!(helped.is_err());
        }
        pool.for_each_item_helped(vec![1], |_, _| {});
    }
}
