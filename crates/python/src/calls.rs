//! Long calls: without the GIL, and with Ctrl-C.
//!
//! Python runs signal handlers on the main thread only. So a long call of the main thread runs on a second thread, and
//! the main thread looks for signals meanwhile. A handler that raises, as that of Ctrl-C does, cancels this call alone.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anden::{Error, Progress};
use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::error::{Result, wrong_type};

/// Time between two looks for signals. Ctrl-C is to act within half a second.
const LOOK: Duration = Duration::from_millis(50);
/// Cancelled work removes its unfinished files within this time, unless it waits for an input.
const LONGEST_CLEANUP: Duration = Duration::from_secs(10);

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
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(Arc<Watch>) -> anden::Result<T> + Send + 'static,
) -> Result<T> {
    let watch = Arc::<Watch>::default();
    run_watched(py, &watch, {
        let watch = Arc::clone(&watch);
        move || work(watch)
    })
}

/// Like [`run`], for work on an object that has the watch already.
pub fn run_watched<T: Send + 'static>(
    py: Python<'_>,
    watch: &Watch,
    work: impl FnOnce() -> anden::Result<T> + Send + 'static,
) -> Result<T> {
    // An earlier call on the object may have been cancelled.
    watch.is_cancelled.store(false, Ordering::Relaxed);
    let work = move || catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|fault| Err(internal(&*fault)));
    if !is_main_thread(py)? {
        return Ok(py.detach(work)?);
    }
    let (sender, receiver) = channel();
    // The receiver lives until the answer has come, so the send succeeds.
    let job = move || drop(sender.send(work()));
    match lend_thread() {
        Some(thread) => {
            if let Err(error) = thread.jobs.send(Box::new(job)) {
                // The thread is gone; this one does the work.
                py.detach(error.0);
            }
            let (outcome, has_ended) = wait(py, watch, receiver);
            // A thread that is left with its work ends after it.
            has_ended.then(|| give_back(thread));
            outcome
        }
        None => {
            py.detach(job);
            wait(py, watch, receiver).0
        }
    }
}

/// Waits for the answer. Signal handlers run meanwhile, and progress is shown. Returns whether the work has ended, too:
/// cancelled work that reads from a silent pipe is left to itself, because it may never look at the request.
fn wait<T: Send>(py: Python<'_>, watch: &Watch, mut receiver: Receiver<anden::Result<T>>) -> (Result<T>, bool) {
    let start = Instant::now();
    let mut raised: Option<(PyErr, Instant)> = None;
    let mut is_shown = false;
    let outcome = loop {
        let answer;
        (answer, receiver) = py.detach(move || (receiver.recv_timeout(LOOK), receiver));
        match answer {
            Ok(outcome) => break Some(outcome),
            Err(RecvTimeoutError::Disconnected) => break Some(Err(internal(&"a thread ended without an answer"))),
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
        if raised.as_ref().is_some_and(|(_, since)| since.elapsed() > LONGEST_CLEANUP) {
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
        (None, Ok(()), Some(outcome)) => outcome.map_err(Into::into),
        (None, Ok(()), None) => Err(internal(&"a call was left without a request").into()),
    };
    (result, has_ended)
}

fn reporter(py: Python<'_>) -> Option<Py<PyAny>> {
    REPORTER.lock().as_ref().map(|reporter| reporter.clone_ref(py))
}

/// Shows the progress. Returns whether a reporter was called.
fn show(py: Python<'_>, watch: &Watch, start: Instant) -> PyResult<bool> {
    let Some(reporter) = reporter(py) else { return Ok(false) };
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

/// A thread that does long calls of the main thread.
struct CallThread {
    jobs: Sender<Box<dyn FnOnce() + Send>>,
    /// The process that has it: a forked child has none of the threads of its parent.
    process: u32,
}

thread_local! {
    /// Idle threads. One is enough, unless a signal handler makes a long call of its own.
    static IDLE: RefCell<Vec<CallThread>> = const { RefCell::new(Vec::new()) };
    static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
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
    let (jobs, work) = channel::<Box<dyn FnOnce() + Send>>();
    let body = move || work.into_iter().for_each(|job| job());
    std::thread::Builder::new().name("anden-calls".to_owned()).spawn(body).ok()?;
    Some(CallThread { jobs, process })
}

fn give_back(thread: CallThread) {
    IDLE.with_borrow_mut(|idle| idle.push(thread));
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
