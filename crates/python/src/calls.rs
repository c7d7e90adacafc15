//! Long calls: without the GIL, and with Ctrl-C.
//!
//! Python runs signal handlers on the main thread only. So a long call of the main thread runs on a second thread, and
//! the main thread looks for signals meanwhile. A handler that raises, as that of Ctrl-C does, cancels this call alone.
//! Work that does not look at the request soon, such as a commit that waits for the disk, is left to itself.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anden::changes::CommitGuard;
use anden::{Database, Error, Progress};
use parking_lot::Mutex;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::error::{Failure, Result, misused, wrong_type};

/// Time between two looks for signals. Ctrl-C is to act within half a second.
const LOOK: Duration = Duration::from_millis(50);
/// Work that was cancelled has this time to end. Then the exception is raised, and the work is left to itself.
const LONGEST_END: Duration = Duration::from_millis(200);
/// Cancelled work removes its unfinished files within this time, unless it waits for an input.
const LONGEST_CLEANUP: Duration = Duration::from_secs(10);
/// Time for which a thread that waits stays awake: calls that follow each other closely need no wake-up.
const AWAKE: Duration = Duration::from_micros(30);
/// An idle thread looks again after this time.
const LONG: Duration = Duration::from_secs(3600);

/// The progress of one call, and the request to cancel it.
#[derive(Debug, Default)]
pub struct Watch {
    is_cancelled: AtomicBool,
    stage: Mutex<Option<(String, Option<u64>)>>,
    done: AtomicU64,
}

impl Progress for Watch {
    fn stage(&self, name: &str, total: Option<u64>) {
        *self.stage.lock() = Some((name.to_owned(), total));
        self.done.store(0, Ordering::Relaxed);
    }

    fn advance(&self, amount: u64) {
        self.done.fetch_add(amount, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        // Relaxed: a check that misses the request is followed by another one.
        self.is_cancelled.load(Ordering::Relaxed)
    }
}

/// The Python function that shows the progress of long calls of the main thread.
static REPORTER: Mutex<Option<Py<PyAny>>> = Mutex::new(None);

/// Sets the function that shows the progress of long calls of the main thread; None: none.
///
/// It is called as ``reporter(stage, done, total, seconds)`` about every 50 ms, and with a stage of None at the end of
/// a call that it has seen. ``total`` is None where it is not known.
#[pyfunction]
pub fn set_progress(reporter: Option<Bound<'_, PyAny>>) -> Result<()> {
    if let Some(reporter) = reporter.as_ref().filter(|reporter| !reporter.is_callable()) {
        return Err(wrong_type(format!("set_progress() takes a function or None, not {}", reporter.repr()?)));
    }
    let before = std::mem::replace(&mut *REPORTER.lock(), reporter.map(Bound::unbind));
    // Dropped without the lock, because the drop may run Python code.
    drop(before);
    Ok(())
}

/// Runs a long call without the GIL.
pub fn run<T: Send + 'static, E: Into<Failure> + 'static>(
    py: Python<'_>,
    work: impl FnOnce(Arc<Watch>) -> Result<T, E> + Send + 'static,
) -> Result<T> {
    let watch = Arc::<Watch>::default();
    run_watched(py, &watch, {
        let watch = Arc::clone(&watch);
        move || work(watch)
    })
}

/// Like [`run`], for work on an object that has the watch already.
pub fn run_watched<T: Send + 'static, E: Into<Failure> + 'static>(
    py: Python<'_>,
    watch: &Watch,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T> {
    // An earlier call on the object may have been cancelled.
    watch.is_cancelled.store(false, Ordering::Relaxed);
    run_guarded(py, watch, move |_| work().map_err(Into::into))
}

/// Like [`run`], for work that no request cancels. It gets the guard of [`alone`], if the thread that calls has one.
pub fn run_guarded<T: Send + 'static>(
    py: Python<'_>,
    watch: &Watch,
    work: impl FnOnce(Option<&CommitGuard<'_>>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let work = move |guard: Option<&CommitGuard<'_>>| {
        catch_unwind(AssertUnwindSafe(|| work(guard))).unwrap_or_else(|fault| Err(internal(&*fault).into()))
    };
    // Another thread gets no signals. It has an idle thread only while that one keeps other commits out for it.
    if !is_main_thread(py)? && IDLE.with_borrow(Vec::is_empty) {
        return py.detach(|| work(None));
    }
    let (sender, receiver) = channel();
    // Without a receiver, the call was left to itself, and nothing needs the answer.
    let job: Job = Box::new(move |guard| drop(sender.send(work(guard))));
    match lend_thread() {
        Some(thread) => {
            if let Err(error) = thread.jobs.send(job) {
                // The thread is gone; this one does the work.
                py.detach(move || error.0(None));
            }
            let (outcome, has_ended) = wait(py, watch, receiver);
            match has_ended {
                true => give_back(thread),
                false => leave(thread),
            }
            outcome
        }
        None => {
            py.detach(move || job(None));
            wait(py, watch, receiver).0
        }
    }
}

/// Runs work of a destructor, which can neither raise nor be given up. Ctrl-C takes effect after it.
pub fn run_in_drop(py: Python<'_>, work: impl FnOnce() + Send + 'static) {
    // A destructor may run while an exception passes through.
    let passing = PyErr::take(py);
    let done = run_guarded(py, &Watch::default(), move |_| {
        work();
        Ok(())
    });
    if let Err(Failure::Python(error)) = done {
        raise_later(py, error);
    }
    if let Some(error) = passing {
        error.restore(py);
    }
}

/// Waits for the answer. Signal handlers run meanwhile, and progress is shown. Returns whether the work has ended, too:
/// work that does not end soon after a signal is left to itself. It may wait for a disk, a pipe or another commit.
fn wait<T: Send>(py: Python<'_>, watch: &Watch, mut receiver: Receiver<Result<T>>) -> (Result<T>, bool) {
    let start = Instant::now();
    let mut raised: Option<(PyErr, Instant)> = None;
    let mut is_shown = false;
    let outcome = loop {
        let answer;
        let timeout = if raised.is_some() { LOOK / 10 } else { LOOK };
        (answer, receiver) = py.detach(move || (receive(&receiver, timeout), receiver));
        match answer {
            Ok(outcome) => break Some(outcome),
            Err(RecvTimeoutError::Disconnected) => {
                break Some(Err(internal(&"a thread ended without an answer").into()));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let looked = py.check_signals().and_then(|()| {
            is_shown |= show(py, watch, start)?;
            Ok(())
        });
        if let Err(error) = looked {
            watch.is_cancelled.store(true, Ordering::Relaxed);
            raised.get_or_insert((error, Instant::now()));
        }
        if raised.as_ref().is_some_and(|(_, since)| since.elapsed() > LONGEST_END) {
            break None;
        }
    };
    let is_told = match reporter(py).filter(|_| is_shown) {
        Some(reporter) => reporter.call1(py, (py.None(), 0, py.None(), start.elapsed().as_secs_f64())).map(drop),
        None => Ok(()),
    };
    let has_ended = outcome.is_some();
    let result = match (raised, is_told, outcome) {
        (Some((error, _)), ..) | (None, Err(error), _) => Err(error.into()),
        (None, Ok(()), Some(outcome)) => outcome,
        (None, Ok(()), None) => Err(internal(&"a call was left without a request").into()),
    };
    (result, has_ended)
}

/// Receives an item. A thread that sleeps takes tens of microseconds to wake, so this one stays awake for a moment.
fn receive<T>(receiver: &Receiver<T>, timeout: Duration) -> Result<T, RecvTimeoutError> {
    let start = Instant::now();
    while start.elapsed() < AWAKE {
        match receiver.try_recv() {
            Ok(item) => return Ok(item),
            Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
            // Other threads that have work go first.
            Err(TryRecvError::Empty) => std::thread::yield_now(),
        }
    }
    receiver.recv_timeout(timeout)
}

fn reporter(py: Python<'_>) -> Option<Py<PyAny>> {
    REPORTER.lock().as_ref().map(|reporter| reporter.clone_ref(py))
}

/// Shows the progress. Returns whether a reporter was called.
fn show(py: Python<'_>, watch: &Watch, start: Instant) -> PyResult<bool> {
    let Some(reporter) = reporter(py).filter(|_| IS_MAIN.get() == Some(true)) else { return Ok(false) };
    let Some((stage, total)) = watch.stage.lock().clone() else { return Ok(false) };
    let done = watch.done.load(Ordering::Relaxed);
    reporter.call1(py, (stage, done, total, start.elapsed().as_secs_f64()))?;
    Ok(true)
}

fn internal(fault: &(dyn Any + Send)) -> Error {
    let text = fault.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| fault.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned());
    Error::Internal(format!("a fault of Anden, please report it: {text}").into())
}

/// Work for another thread. It gets the guard that the thread holds.
type Job = Box<dyn FnOnce(Option<&CommitGuard<'_>>) + Send>;

/// Looks for signals once in many items, because loops of C code over an iterator run no handlers.
#[derive(Debug, Default)]
pub struct SignalWatch(AtomicU64);

impl SignalWatch {
    /// Counts an item.
    pub fn count(&self, py: Python<'_>) -> PyResult<()> {
        const AT_ONCE: u64 = 1 << 14;
        // Relaxed: threads that share the iterator need no exact number.
        let is_time = self.0.fetch_add(1, Ordering::Relaxed) % AT_ONCE == AT_ONCE - 1;
        if is_time { py.check_signals() } else { Ok(()) }
    }
}

/// Looks for signals between two batches of a stream. Returns whether a handler raised.
///
/// A library that reads a stream on the main thread runs no handlers, and gets an error in place of a batch. Python
/// raises the exception of Ctrl-C once the library returns.
pub fn is_stream_interrupted() -> bool {
    // Other threads may read while the main thread holds the GIL and waits for them.
    if IS_MAIN.get() != Some(true) {
        return false;
    }
    let look = |py: Python<'_>| match py.check_signals() {
        Ok(()) => false,
        Err(error) => {
            raise_later(py, error);
            true
        }
    };
    Python::try_attach(look).unwrap_or(false)
}

/// Has Python raise an interrupt again once this call has returned. Another exception is printed.
fn raise_later(py: Python<'_>, error: PyErr) {
    let again = || py.import("_thread")?.call_method0("interrupt_main");
    if !error.is_instance_of::<PyKeyboardInterrupt>(py) || again().is_err() {
        error.write_unraisable(py, None);
    }
}

/// A thread that does long calls of the main thread.
struct CallThread {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
    /// The process that has it: a forked child has none of the threads of its parent.
    process: u32,
}

thread_local! {
    /// Idle threads. One is enough, unless a signal handler makes a long call of its own.
    static IDLE: RefCell<Vec<CallThread>> = const { RefCell::new(Vec::new()) };
    static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
    /// Whether this thread is in the body of [`alone`].
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Threads of calls that were left to themselves after a signal, with their process.
static LEFT: Mutex<Vec<(u32, JoinHandle<()>)>> = Mutex::new(Vec::new());

impl CallThread {
    /// `None` if the system refuses.
    fn start(body: impl FnOnce(Receiver<Job>) + Send + 'static) -> Option<Self> {
        let (jobs, work) = channel::<Job>();
        let thread = std::thread::Builder::new().name("anden-calls".to_owned()).spawn(move || body(work)).ok()?;
        Some(Self { jobs, thread, process: std::process::id() })
    }
}

/// Does the jobs of a channel until its sender is gone.
fn serve(work: &Receiver<Job>, guard: Option<&CommitGuard<'_>>) {
    loop {
        match receive(work, LONG) {
            Ok(job) => job(guard),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Takes an idle thread, or starts one; `None` if the system refuses.
fn lend_thread() -> Option<CallThread> {
    let process = std::process::id();
    while let Some(thread) = IDLE.with_borrow_mut(Vec::pop) {
        if thread.process == process {
            return Some(thread);
        }
        // The channel of the parent's thread must not be touched.
        std::mem::forget(thread);
    }
    CallThread::start(|work| serve(&work, None))
}

fn give_back(thread: CallThread) {
    IDLE.with_borrow_mut(|idle| idle.push(thread));
}

/// Leaves a thread with its work. It ends afterwards, because its channel is closed.
fn leave(thread: CallThread) {
    let CallThread { jobs, thread, process } = thread;
    drop(jobs);
    LEFT.lock().push((process, thread));
}

/// Waits for calls that were left to themselves, so that cancelled work can remove its files. For the end of the
/// interpreter; another Ctrl-C ends the wait.
pub fn wait_for_left(py: Python<'_>) -> PyResult<()> {
    let (start, process) = (Instant::now(), std::process::id());
    while start.elapsed() < LONGEST_CLEANUP {
        if !LEFT.lock().iter().any(|(owner, thread)| *owner == process && !thread.is_finished()) {
            break;
        }
        py.detach(|| std::thread::sleep(LOOK / 10));
        py.check_signals()?;
    }
    Ok(())
}

/// Keeps other commits out while `body` runs. All calls of `body` then run on the thread that holds the guard, because
/// the right to commit belongs to a thread.
pub fn alone<T>(py: Python<'_>, database: Arc<Database>, body: impl FnOnce() -> Result<T>) -> Result<T> {
    let (sender, receiver) = channel();
    let held = CallThread::start(move |work| match database.keep_others_out() {
        Ok(guard) => {
            // Without a receiver, the wait for the guard was interrupted, and the channel of jobs is closed.
            drop(sender.send(Ok(())));
            serve(&work, Some(&guard));
        }
        Err(error) => drop(sender.send(Err(error.into()))),
    });
    let thread = held.ok_or_else(|| internal(&"the system has no thread left"))?;
    let id = thread.thread.thread().id();
    wait(py, &Watch::default(), receiver).0?;
    give_back(thread);
    let outer = IS_ALONE.replace(true);
    let outcome = body();
    IS_ALONE.set(outer);
    IDLE.with_borrow_mut(|idle| idle.retain(|idle| idle.thread.thread().id() != id));
    outcome
}

/// Refuses an append in the body of [`alone`]: its workers would wait for the guard for ever.
pub fn require_others() -> Result<()> {
    match IS_ALONE.get() {
        true => Err(misused(
            "cannot append inside transact: after several conflicts the function runs alone, and an append waits for \
             its end; append after transact",
        )),
        false => Ok(()),
    }
}

/// Whether this is Python's main thread.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    if let Some(known) = IS_MAIN.get() {
        return Ok(known);
    }
    let threading = py.import("threading")?;
    let (this, main) = (threading.call_method0("get_ident")?, threading.call_method0("main_thread")?.getattr("ident")?);
    let is_main = this.eq(main)?;
    IS_MAIN.set(Some(is_main));
    Ok(is_main)
}
