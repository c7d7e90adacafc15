//! Work that the caller begins alone, and that others help with as they come.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Pool;

/// Of the state of an [`Offer`]: nobody may come any more.
const CLOSED: usize = 1 << (usize::BITS - 1);
/// Who waits for those who are at work looks so often before it yields.
const LOOKS: usize = 64;

thread_local! {
    static IS_AT_WORK: Cell<bool> = const { Cell::new(false) };
}

/// A time in which this thread does such work: it helps nobody else, also while it waits for others in the midst of it
/// ([`Pool::share`]), for its index is taken.
struct AtWork;

impl AtWork {
    /// `None`: it is at work already.
    fn begin() -> Option<Self> {
        // Made only where it is wanted: dropped, it would end the time of who is at work.
        (!IS_AT_WORK.replace(true)).then(|| Self)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        IS_AT_WORK.set(false);
    }
}

type Work<'a> = dyn Fn(usize) + Sync + 'a;

/// Work that is open to helpers, until its caller has done what they left.
struct Offer {
    /// How many are at work, and [`CLOSED`].
    state: AtomicUsize,
    /// There for as long as the offer is open, or anybody is at work.
    work: *const Work<'static>,
    /// What a helper panicked with.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `work` is the only field that is not `Send` and `Sync` by itself. It points to what is `Sync`, and is followed
// only by who has entered.
unsafe impl Send for Offer {}
// SAFETY: as above.
unsafe impl Sync for Offer {}

impl Offer {
    /// Does the work as `worker`, if it is still open.
    fn help(&self, worker: usize) {
        let Some(_at_work) = AtWork::begin() else { return };
        let entered = self
            .state
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, |state| (state < CLOSED).then_some(state + 1));
        if entered.is_err() {
            return;
        }
        // SAFETY: the state counts this helper, so `Closing` keeps `for_each_item_helped`, where the work lies, from ending.
        let work = unsafe { &*self.work };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(worker))) {
            *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
        }
        self.state.fetch_sub(1, Ordering::Release);
    }
}

/// Dropped, also by a panic, it closes an offer and waits until nobody is at work.
struct Closing<'a>(&'a Offer);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_or(CLOSED, Ordering::Relaxed);
        let mut num_looks = 0;
        while self.0.state.load(Ordering::Acquire) != CLOSED {
            num_looks += 1;
            if num_looks < LOOKS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }
}

impl Pool {
    /// Hands each item to the calling thread or to a worker, in the order of the items. The caller begins at once; workers
    /// come as they wake, and nobody waits for one that has not begun. The index of a caller who is no worker is the
    /// number of threads.
    pub fn for_each_item_helped<T: Send>(&self, items: Vec<T>, body: impl Fn(usize, T) + Sync) {
        let num_items = items.len();
        let items = Mutex::new(items.into_iter());
        let work = |worker: usize| loop {
            let item = items.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(item) = item else { break };
            body(worker, item);
        };
        let Some(workers) = self.workers() else { return work(self.num_threads) };
        let own = workers.current_thread_index().unwrap_or(self.num_threads);
        let num_helpers = self.num_threads.min(num_items).saturating_sub(1);
        if num_helpers == 0 {
            return work(own);
        }
        let erased: *const Work<'_> = &work;
        // SAFETY: only the lifetime changes. `Closing` keeps this call from ending while anybody follows the pointer.
        let erased = unsafe { std::mem::transmute::<*const Work<'_>, *const Work<'static>>(erased) };
        let offer = Arc::new(Offer { state: AtomicUsize::new(0), work: erased, panic: Mutex::default() });
        let _at_work = AtWork::begin();
        let closing = Closing(&offer);
        for _ in 0..num_helpers {
            let offer = Arc::clone(&offer);
            workers.spawn(move || offer.help(rayon::current_thread_index().unwrap_or_default()));
        }
        work(own);
        drop(closing);
        let panic = offer.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::AtomicBool;

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
                        done.lock().unwrap().push(item);
                    });
                    let mut done = done.into_inner().unwrap();
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
        let found = Mutex::new(HashSet::new());
        let work = |worker: usize, _: usize| {
            assert!(!busy[worker].swap(true, Ordering::SeqCst));
            found.lock().unwrap().insert(worker);
            std::thread::sleep(std::time::Duration::from_millis(1));
            busy[worker].store(false, Ordering::SeqCst);
        };
        pool.for_each_item_helped((0..60).collect(), work);
        assert!(found.lock().unwrap().contains(&3), "the caller works too");
        pool.enter(|| pool.for_each_item_helped((0..60).collect(), work));
        assert!(found.into_inner().unwrap().len() > 1, "nobody helped");
    }

    #[test]
    fn who_waits_in_the_midst_of_an_item_begins_no_other() {
        // Workers that do not come leave their part to whoever waits.
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
    fn nobody_waits_for_who_has_not_begun() {
        let pool = Pool::new(2).unwrap();
        let (is_free, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            // Both workers are busy until the others are through.
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
            let helped = catch_unwind(AssertUnwindSafe(|| {
                pool.for_each_item_helped((0..40).collect(), |worker, _: usize| {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    // The caller, or a worker.
                    assert!((worker == 2) != (panicking == 2), "on purpose");
                });
            }));
            assert!(helped.is_err());
        }
        pool.for_each_item_helped(vec![1], |_, _| {});
    }
}
