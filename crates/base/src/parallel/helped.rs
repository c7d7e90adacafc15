//! Work that the caller begins alone, and that workers join as they wake.
//!
//! To wake a sleeping worker takes tens of microseconds, more than a short loop itself. So the caller waits for no
//! worker that has not begun: a parallel loop never takes much longer than the same loop on one thread. And a worker
//! watches for the next loop of the same thread for a while before it sleeps.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Pool;

/// Flag in the state of an [`Offer`]: no helper may enter.
const CLOSED: usize = 1 << (usize::BITS - 1);
/// Number of spins before a caller that waits for helpers yields the processor.
const LOOKS: usize = 64;
/// How long a worker watches for the next loop: longer than the work between most loops of a kernel.
const WATCH: Duration = Duration::from_micros(100);

thread_local! {
    static IS_AT_WORK: Cell<bool> = const { Cell::new(false) };
    static DESK: RefCell<Option<Arc<Desk>>> = const { RefCell::new(None) };
}

/// Marks this thread as busy with an offer. It must not help another one, even while it waits ([`Pool::share`]),
/// because the work may hold locks.
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

/// The place where helpers find the present offer of one thread.
struct Desk {
    /// The pool whose workers were called.
    pool: usize,
    offer: Mutex<Option<Arc<Offer>>>,
    /// Number of offers that were made.
    num_offers: AtomicUsize,
    /// Number of workers that will look for an offer: they were called, or they watch. These need no call.
    num_coming: AtomicUsize,
}

impl Desk {
    /// The desk of this thread, for a pool at this address.
    fn of_this_thread(pool: usize) -> Arc<Self> {
        DESK.with_borrow_mut(|desk| match desk {
            Some(desk) if desk.pool == pool => Arc::clone(desk),
            _ => {
                let new = Self {
                    pool,
                    offer: Mutex::default(),
                    num_offers: AtomicUsize::new(0),
                    num_coming: AtomicUsize::new(0),
                };
                Arc::clone(desk.insert(Arc::new(new)))
            }
        })
    }

    /// Puts an offer on the desk. Returns the number of workers that will look at it.
    fn put(&self, offer: &Arc<Offer>) -> usize {
        *self.offer.lock() = Some(Arc::clone(offer));
        self.num_offers.fetch_add(1, Ordering::SeqCst);
        self.num_coming.load(Ordering::SeqCst)
    }

    /// Runs on a worker that was called: helps with the present offer and with those that follow soon.
    fn attend(&self) {
        loop {
            let num_offers = self.num_offers.load(Ordering::SeqCst);
            self.num_coming.fetch_sub(1, Ordering::SeqCst);
            let offer = self.offer.lock().clone();
            offer.iter().for_each(|offer| offer.help());
            self.num_coming.fetch_add(1, Ordering::SeqCst);
            if !self.watch(num_offers) {
                return;
            }
        }
    }

    /// Waits for more offers than `num_offers`. Returns false if none comes within [`WATCH`], or if the worker did
    /// other work meanwhile. Then the worker no longer counts as coming.
    fn watch(&self, num_offers: usize) -> bool {
        let has_more = || self.num_offers.load(Ordering::SeqCst) != num_offers;
        let started = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if has_more() {
                    return true;
                }
                std::hint::spin_loop();
            }
            // An offer that comes from here on sees that this worker is not coming, or the worker sees the offer.
            self.num_coming.fetch_sub(1, Ordering::SeqCst);
            // Other jobs of the pool come first: they may take long.
            let has_done_others = !has_more() && rayon::yield_now() == Some(rayon::Yield::Executed);
            if !has_more() && (has_done_others || started.elapsed() > WATCH) {
                return false;
            }
            self.num_coming.fetch_add(1, Ordering::SeqCst);
            std::thread::yield_now();
        }
    }
}

type OfferedWork<'a> = dyn Fn() + Sync + 'a;

/// Work that helpers may join until the caller has finished the rest.
struct Offer {
    /// Number of helpers at work, and [`CLOSED`].
    state: AtomicUsize,
    /// Valid while the offer is open or a helper is at work.
    work: *const OfferedWork<'static>,
    /// Panic of a helper.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `work` is the only field that is not `Send` and `Sync` by itself. It points to a `Sync` closure, and only
// helpers that have entered follow it.
unsafe impl Send for Offer {}
// SAFETY: as above.
unsafe impl Sync for Offer {}

impl Offer {
    /// Does the work, if the offer is still open.
    fn help(&self) {
        let Some(_at_work) = AtWork::begin() else { return };
        let entered = self
            .state
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, |state| (state < CLOSED).then_some(state + 1));
        if entered.is_err() {
            return;
        }
        // SAFETY: the state counts this helper, so `Closing` keeps `with_helpers`, whose frame holds the work, from
        // returning.
        let work = unsafe { &*self.work };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
            // The caller raises the panic, as if it had run this part itself.
            *self.panic.lock() = Some(panic);
        }
        // Release: pairs with the load in `Closing`, so that the caller sees all that the helper wrote.
        self.state.fetch_sub(1, Ordering::Release);
    }
}

/// Closes an offer when dropped, also by a panic, and waits until no helper is at work.
struct Closing<'a>(&'a Offer, &'a Desk);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        // Relaxed: the flag only keeps helpers out. The load below orders their work before the return.
        self.0.state.fetch_or(CLOSED, Ordering::Relaxed);
        *self.1.offer.lock() = None;
        let mut num_looks = 0;
        while self.0.state.load(Ordering::Acquire) != CLOSED {
            num_looks += 1;
            if num_looks < LOOKS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }
}

impl Pool {
    /// Runs `body(worker_index)` once with each index below [`num_threads`](Self::num_threads), on the calling thread
    /// and on workers as they wake. The caller takes each index that no worker has taken, so a body must not wait for
    /// another one.
    pub fn on_each_worker(&self, body: impl Fn(usize) + Sync) {
        let next = AtomicUsize::new(0);
        self.with_helpers(self.num_threads - 1, || {
            loop {
                // Relaxed: the counter only hands out indexes.
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= self.num_threads {
                    break;
                }
                body(index);
            }
        });
    }

    /// Runs `work` on the calling thread, and meanwhile on at most `num_helpers` workers. Waits only for workers that
    /// have begun.
    fn with_helpers(&self, num_helpers: usize, work: impl Fn() + Sync) {
        let Some(workers) = self.workers().filter(|_| num_helpers > 0) else { return work() };
        // Inside the work of another offer this thread has a desk in use.
        let Some(_at_work) = AtWork::begin() else { return work() };
        let erased: *const OfferedWork<'_> = &work;
        // SAFETY: only the lifetime changes. `Closing` keeps this call from returning while a helper follows the
        // pointer.
        let erased = unsafe { std::mem::transmute::<*const OfferedWork<'_>, *const OfferedWork<'static>>(erased) };
        let offer = Arc::new(Offer { state: AtomicUsize::new(0), work: erased, panic: Mutex::default() });
        let desk = Desk::of_this_thread(std::ptr::from_ref(self).addr());
        let closing = Closing(&offer, &desk);
        for _ in desk.put(&offer)..num_helpers {
            desk.num_coming.fetch_add(1, Ordering::SeqCst);
            let desk = Arc::clone(&desk);
            workers.spawn(move || desk.attend());
        }
        work();
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
                    pool.for_each_item((0..num_items).collect(), |worker, item: usize| {
                        assert!(worker < threads);
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
        let busy: Vec<AtomicBool> = (0..3).map(|_| AtomicBool::new(false)).collect();
        let (found, threads) = (Mutex::new(HashSet::new()), Mutex::new(HashSet::new()));
        pool.for_each_item((0..60).collect(), |worker: usize, _: usize| {
            assert!(!busy[worker].swap(true, Ordering::SeqCst));
            found.lock().insert(worker);
            threads.lock().insert(std::thread::current().id());
            wait_until("a worker helps", || found.lock().len() > 1);
            // Gives the others time for items of their own.
            (0..20).for_each(|_| std::thread::yield_now());
            busy[worker].store(false, Ordering::SeqCst);
        });
        assert!(threads.lock().contains(&std::thread::current().id()), "the caller works too");
    }

    #[test]
    fn thread_waiting_within_item_starts_no_other() {
        // A worker that does not come leaves its part to the thread that waits.
        for num_away in [2, 0] {
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
            let scratch: Vec<Mutex<()>> = (0..4).map(|_| Mutex::default()).collect();
            let sum = AtomicUsize::new(0);
            let part_of = |_: usize, part: usize| {
                // The subject: a part that takes a while, so that the thread that shares it waits.
                std::thread::sleep(Duration::from_micros(20));
                part
            };
            let work = |worker: usize, item: usize| {
                let _own = scratch[worker].try_lock().expect("one item at a time");
                let parts = pool.share((0..8).collect(), part_of);
                sum.fetch_add(parts.into_iter().sum::<usize>() + item, Ordering::Relaxed);
            };
            (0..50).for_each(|_| pool.for_each_item((0..8).collect(), work));
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
                pool.workers().unwrap().broadcast(|_| {
                    is_free.store(true, Ordering::SeqCst);
                    while !is_done.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                });
            });
            while !is_free.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            pool.for_each_item(vec![1, 2, 3], |_, _| {});
            is_done.store(true, Ordering::SeqCst);
        });
    }

    #[test]
    fn panics_reach_the_caller() {
        let pool = Pool::new(2).unwrap();
        let caller = std::thread::current().id();
        for caller_panics in [false, true] {
            let have_begun = [AtomicBool::new(false), AtomicBool::new(false)];
            let helped = catch_unwind(AssertUnwindSafe(|| {
                pool.for_each_item((0..40).collect(), |_, _: usize| {
                    let is_caller = std::thread::current().id() == caller;
                    have_begun[usize::from(is_caller)].store(true, Ordering::SeqCst);
                    let all_have = || have_begun.iter().all(|has_begun| has_begun.load(Ordering::SeqCst));
                    wait_until("the caller and a worker begin", all_have);
                    assert!(is_caller != caller_panics, "on purpose");
                });
            }));
            assert!(helped.is_err());
        }
        pool.for_each_item(vec![1], |_, _| {});
    }
}
