//! Sorting parts side by side and handing their lists on in order.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, TryLockError};

use base::VertexId;
use base::parallel::Pool;
use base::progress::Progress;

use super::arcs::Payload;
use super::lists::{ListSink, Lists};
use super::options::Duplicates;
use super::partition::Parts;
use super::sort::ListSorter;
use crate::{Error, Result};

/// Whether the arcs that were taken are wanted again, for the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retain {
    /// Each part begins with what was left of it, sorted.
    Merged,
    /// The parts hold anything.
    Nothing,
}

/// How the entries of lists come to be in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    /// The bits of a neighbour to be sorted by; 0 where input order is the order of neighbours.
    pub(crate) neighbour_bits: u32,
    /// What becomes of parallel edges.
    pub(crate) duplicates: Duplicates,
}

/// Sorts every part and hands the lists to `sink`; returns how much is left of each part.
pub(crate) fn assemble<P: Payload>(
    parts: &mut Parts<P>,
    order: Order,
    retain: Retain,
    sink: &mut dyn ListSink<P>,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<Vec<usize>> {
    let ranges: Vec<_> = (0..parts.len()).map(|part| parts.lists(part)).collect();
    let work: Vec<_> = parts.split().into_iter().zip(&ranges).enumerate().collect();
    let lens = Mutex::new(vec![0; work.len()]);
    let turns = Turnstile::new(sink, 2 * pool.num_threads());
    let sorters: Vec<_> = (0..pool.num_threads()).map(|_| Mutex::new(None)).collect();
    pool.for_each_item(work, |worker, (index, (part, lists))| {
        let _watch = turns.watch();
        if turns.has_failed() || turns.note(progress.check().map_err(Error::from)).is_none() {
            return;
        }
        let mut sorter = sorters[worker].lock().unwrap_or_else(|e| e.into_inner());
        let sorter = sorter.get_or_insert_with(|| ListSorter::new(order.neighbour_bits));
        let mut collected = turns.spare();
        let len = part.len() as u64;
        sorter.sort(&mut [&mut *part], lists.clone(), &mut collected);
        collected.merge(lists.start as VertexId, order.duplicates);
        if retain == Retain::Merged {
            let mut places = part.iter_mut();
            collected.for_each_arc(lists.start as VertexId, |arc| {
                if let Some(place) = places.next() {
                    *place = arc;
                }
            });
            lens.lock().unwrap_or_else(|e| e.into_inner())[index] = collected.len();
        }
        progress.advance(len);
        turns.submit(index, lists.start as VertexId, collected);
    });
    turns.finish()?;
    Ok(lens.into_inner().unwrap_or_else(|e| e.into_inner()))
}

/// Lists come in any order and leave in theirs.
///
/// Whoever finds the sink free hands on what is due, so that one worker writes while others sort. A
/// worker that is far ahead waits for the one behind, which bounds the lists that are held.
pub(crate) struct Turnstile<'a, P: Payload> {
    sink: Mutex<&'a mut dyn ListSink<P>>,
    queue: Mutex<Queue<P>>,
    moved: Condvar,
    most_waiting: usize,
}

struct Queue<P: Payload> {
    /// The index that leaves next.
    next: usize,
    waiting: BTreeMap<usize, (VertexId, Lists<P>)>,
    spare: Vec<Lists<P>>,
    failed: Option<Error>,
    panicked: bool,
}

impl<'a, P: Payload> Turnstile<'a, P> {
    /// Holds at most `most_waiting` lists, and one more a worker.
    pub(crate) fn new(sink: &'a mut dyn ListSink<P>, most_waiting: usize) -> Self {
        let queue = Queue { next: 0, waiting: BTreeMap::new(), spare: Vec::new(), failed: None, panicked: false };
        Self { sink: Mutex::new(sink), queue: Mutex::new(queue), moved: Condvar::new(), most_waiting }
    }

    /// To be held by a worker until its work is submitted: if it panics, nobody waits for it.
    pub(crate) fn watch(&self) -> impl Drop + use<'_, 'a, P> {
        PanicWatch(self)
    }

    fn queue(&self) -> MutexGuard<'_, Queue<P>> {
        self.queue.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Whether there is no use in going on.
    pub(crate) fn has_failed(&self) -> bool {
        let queue = self.queue();
        queue.failed.is_some() || queue.panicked
    }

    /// Keeps the first error; `None` if this is one.
    pub(crate) fn note<T>(&self, result: Result<T>) -> Option<T> {
        result
            .map_err(|error| {
                self.queue().failed.get_or_insert(error);
                self.moved.notify_all();
            })
            .ok()
    }

    /// Lists to be filled, perhaps with room from before.
    pub(crate) fn spare(&self) -> Lists<P> {
        self.queue().spare.pop().unwrap_or_default()
    }

    /// Lists that begin with that of `first`, the `index`th of all.
    pub(crate) fn submit(&self, index: usize, first: VertexId, lists: Lists<P>) {
        let mut queue = self.queue();
        // The worker whose turn it is never waits, so the queue moves on.
        while queue.waiting.len() >= self.most_waiting && index != queue.next {
            if queue.failed.is_some() || queue.panicked {
                return;
            }
            queue = self.moved.wait(queue).unwrap_or_else(|e| e.into_inner());
        }
        queue.waiting.insert(index, (first, lists));
        drop(queue);
        // Looked at again after the sink is let go: who came in between found it taken and left.
        while self.is_due() {
            match self.sink.try_lock() {
                Ok(mut sink) => self.drain(&mut **sink),
                Err(TryLockError::Poisoned(_) | TryLockError::WouldBlock) => return,
            }
        }
    }

    fn is_due(&self) -> bool {
        let queue = self.queue();
        queue.failed.is_none() && queue.waiting.contains_key(&queue.next)
    }

    fn drain(&self, sink: &mut dyn ListSink<P>) {
        loop {
            let mut queue = self.queue();
            let next = queue.next;
            let due = if queue.failed.is_none() { queue.waiting.remove(&next) } else { None };
            let Some((first, lists)) = due else { return };
            drop(queue);
            if self.note(sink.append(first, &lists)).is_none() {
                return;
            }
            let mut queue = self.queue();
            queue.next += 1;
            queue.spare.push(lists);
            self.moved.notify_all();
        }
    }

    /// Hands on what is left.
    pub(crate) fn finish(self) -> Result<()> {
        if let Ok(mut sink) = self.sink.lock() {
            self.drain(&mut **sink);
        }
        let queue = self.queue.into_inner().unwrap_or_else(|e| e.into_inner());
        match queue.failed {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// Lets nobody wait for a worker that panicked.
struct PanicWatch<'a, 'b, P: Payload>(&'a Turnstile<'b, P>);

impl<P: Payload> Drop for PanicWatch<'_, '_, P> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.queue().panicked = true;
            self.0.moved.notify_all();
        }
    }
}
