//! The queue of requests, and the choice of the leader.
//!
//! Callers queue requests and get *tickets*, ascending numbers. A caller that waits while no other *leads* becomes the
//! leader. It takes all queued requests, commits them as a group, and answers, until its own request is answered. Then
//! another waiting caller leads. One number answers: the ticket below which all requests are answered. So a group of a
//! hundred costs the leader one write, and moves one cache line.
//!
//! Followers look and yield a few times before they park, because a group takes much less time than waking a thread. If
//! more callers wait than there are cores, they yield at once: a spinning core submits no requests. A new leader yields
//! now and then to waiting callers, but not each time, because a change of threads costs as much as a small group. A
//! caller that finds no other wakes none.
//!
//! After a slow commit, such as a synced one, waiting for a group pays. The callers that were just answered soon come
//! again; without a wait they would miss this group, and two halves would alternate. So a leader may be *patient*: it
//! waits until as many requests are queued as the last group had and left behind, but no longer than the given time.
//!
//! A caller may be *admitted* to lead without a queued request, to commit a large batch, or to be alone while it makes
//! its request. The next lead is reserved for it, so that it waits for one leader at most.
//!
//! This module does not know the content of a request, so a model checker can run all of it.

use std::time::Duration;

use super::sync::{
    AtomicBool, AtomicU64, ENOUGH, Instant, LOOKS, Mutex, MutexGuard, Ordering, SPINS, TURNS, Thread, current, hint,
    num_cores, park, yield_now,
};

/// A place in the order of requests.
pub(crate) type Ticket = u64;

/// The queue of requests, with at most one leader.
#[derive(Debug)]
pub(crate) struct CommitQueue<R> {
    state: Mutex<CommitQueueState<R>>,
    /// All requests with tickets below this are answered.
    answered: AtomicU64,
    /// Copy of `CommitQueueState::is_led` for callers without the lock.
    is_led: AtomicBool,
    /// A leader panicked: the outcome of its group is unknown.
    is_broken: AtomicBool,
    /// Callers that wait for an answer, or have not noticed it yet.
    num_waiting: AtomicU64,
    /// Nanoseconds that a leader waits for the expected callers.
    gather_time: AtomicU64,
}

#[derive(Debug)]
struct CommitQueueState<R> {
    requests: Vec<R>,
    /// The ticket of the next request.
    next: Ticket,
    is_led: bool,
    /// The leader, if it was admitted: it commits its own requests itself.
    admitted: Option<Thread>,
    /// The caller that leads next.
    reserved: Option<Thread>,
    /// Threads to wake when their ticket is answered, or when one of them has to lead.
    parked: Vec<(Ticket, Thread)>,
    /// An empty buffer for requests that the leader gives back.
    spare: Vec<R>,
    /// Size of the next group if all answered callers come again.
    num_expected: usize,
    /// How often a caller was to lead a small group while others waited.
    num_turns: u32,
}

impl<R> CommitQueueState<R> {
    /// Whether the caller that could lead now yields first.
    fn gives_way(&mut self) -> bool {
        if self.is_led || self.requests.len() >= ENOUGH {
            return false;
        }
        self.num_turns = self.num_turns.wrapping_add(1);
        self.num_turns.is_multiple_of(TURNS)
    }
}

/// A leader panicked; the outcome of its requests is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

/// The right to lead; dropping it passes the right on.
#[derive(Debug)]
pub(crate) struct GroupLeader<'a, R> {
    queue: &'a CommitQueue<R>,
    /// Whether the thread had the right before, and keeps it.
    is_nested: bool,
    /// Requests are taken out and not answered yet.
    is_committing: bool,
}

impl<R> Default for CommitQueue<R> {
    fn default() -> Self {
        let state = CommitQueueState {
            requests: Vec::new(),
            next: 0,
            is_led: false,
            admitted: None,
            reserved: None,
            parked: Vec::new(),
            spare: Vec::new(),
            num_expected: 0,
            num_turns: 0,
        };
        Self {
            state: Mutex::new(state),
            answered: AtomicU64::new(0),
            is_led: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
            num_waiting: AtomicU64::new(0),
            gather_time: AtomicU64::new(0),
        }
    }
}

impl<R> CommitQueue<R> {
    /// Appends a request. It is committed once a caller waits for it or for a later one.
    ///
    /// Returns its ticket, and the number of queued requests.
    pub(crate) fn submit(&self, request: R) -> (Ticket, usize) {
        let mut state = self.state.lock();
        state.requests.push(request);
        state.next += 1;
        (state.next - 1, state.requests.len())
    }

    /// Sets the time that a leader waits at most for callers that come again; initially zero.
    pub(crate) fn set_gather_time(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        // A store only on change: the cache line stays shared.
        if self.gather_time.load(Ordering::Relaxed) != time {
            self.gather_time.store(time, Ordering::Relaxed);
        }
    }

    /// Whether a request is answered.
    #[inline]
    pub(crate) fn is_answered(&self, ticket: Ticket) -> bool {
        self.answered.load(Ordering::Acquire) > ticket
    }

    /// Whether a leader panicked. Requests that are not answered by then never are.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Acquire)
    }

    /// Waits until a request is answered. If no other caller leads, commits all queued requests meanwhile:
    /// `commit(first, requests)` takes them; their tickets ascend from `first`.
    ///
    /// # Errors
    /// A leader panicked.
    pub(crate) fn wait(&self, ticket: Ticket, commit: impl FnMut(Ticket, &mut Vec<R>)) -> Result<(), Broken> {
        // An answered request costs no write to a shared cache line.
        if self.is_answered(ticket) {
            return Ok(());
        }
        let num_others = self.num_waiting.fetch_add(1, Ordering::Relaxed);
        let waited = self.wait_or_lead(ticket, num_others, commit);
        self.num_waiting.fetch_sub(1, Ordering::Relaxed);
        waited
    }

    /// The loop of `wait`. If others wait, a leader of a small group yields once in some turns, so that answered
    /// callers notice, and perhaps submit more.
    fn wait_or_lead(
        &self,
        ticket: Ticket,
        num_others: u64,
        mut commit: impl FnMut(Ticket, &mut Vec<R>),
    ) -> Result<(), Broken> {
        let mut gives_way = num_others > 0;
        // With more callers than cores, a spinning core would keep a caller from submitting.
        let num_spins = if num_others < num_cores() { SPINS } else { 0 };
        let mut num_looks = 0;
        loop {
            if self.is_answered(ticket) {
                return Ok(());
            }
            if self.is_broken.load(Ordering::Acquire) {
                return Err(Broken);
            }
            // The lock is taken at first, before parking, and while no caller leads. Spinning callers leave it to the
            // leader.
            if num_looks == 0 || num_looks >= LOOKS || !self.is_led.load(Ordering::Relaxed) {
                let mut state = self.state.lock();
                // A caller gives way once at most, so that one of them leads.
                if std::mem::take(&mut gives_way) && state.gives_way() {
                    drop(state);
                    yield_now();
                    continue;
                }
                if let Some(leading) = self.begin(&mut state)? {
                    drop(state);
                    leading.commit_until(ticket, &mut commit);
                    continue;
                }
                // Asked under the lock, under which the leader collects parked threads after its answer. So no wake-up
                // is lost.
                if num_looks >= LOOKS && !self.is_answered(ticket) {
                    self.park(state, ticket);
                    continue;
                }
            }
            num_looks += 1;
            if num_looks < num_spins { hint() } else { yield_now() }
        }
    }

    /// Waits until no caller leads, then leads.
    ///
    /// # Errors
    /// A leader panicked.
    pub(crate) fn admit(&self) -> Result<GroupLeader<'_, R>, Broken> {
        loop {
            if self.is_broken.load(Ordering::Acquire) {
                return Err(Broken);
            }
            let mut state = self.state.lock();
            if let Some(leading) = self.begin(&mut state)? {
                state.admitted = Some(current());
                return Ok(leading);
            }
            // Reserved, so that callers in the queue cannot lead first again and again.
            if state.reserved.is_none() {
                state.reserved = Some(current());
            }
            // No answer wakes this thread, only the end of a lead.
            self.park(state, Ticket::MAX);
        }
    }

    /// Takes the right to lead if it is free and not reserved for another thread, or if the calling thread was
    /// admitted.
    ///
    /// # Errors
    /// A leader panicked.
    fn begin(&self, state: &mut CommitQueueState<R>) -> Result<Option<GroupLeader<'_, R>>, Broken> {
        // Asked under the lock: a leader may have panicked since the caller asked. Otherwise, the next answer would
        // count for the requests of that leader too, and nothing would wake a caller that parks now.
        if self.is_broken() {
            return Err(Broken);
        }
        let is_caller = |thread: &Option<Thread>| thread.as_ref().is_some_and(|thread| thread.id() == current().id());
        if state.is_led {
            // Made only to be returned: a dropped `GroupLeader` gives its right back.
            return Ok(match is_caller(&state.admitted) {
                true => Some(GroupLeader { queue: self, is_nested: true, is_committing: false }),
                false => None,
            });
        }
        if state.reserved.is_some() {
            if !is_caller(&state.reserved) {
                return Ok(None);
            }
            state.reserved = None;
        }
        if !state.parked.is_empty() {
            // The leader must not be woken in place of a caller that waits.
            let this = current().id();
            state.parked.retain(|(_, thread)| thread.id() != this);
        }
        state.is_led = true;
        // Relaxed: this copy only tells when to take the lock, and the lock guards the truth.
        self.is_led.store(true, Ordering::Relaxed);
        Ok(Some(GroupLeader { queue: self, is_nested: false, is_committing: false }))
    }

    /// Whether the calling thread would lead now; the right is given back.
    #[cfg(test)]
    pub(super) fn lead(&self) -> Result<bool, Broken> {
        let begun = self.begin(&mut self.state.lock());
        begun.map(|leader| leader.is_some())
    }

    fn park(&self, mut state: MutexGuard<'_, CommitQueueState<R>>, ticket: Ticket) {
        let this = current();
        // The thread may have been woken while its entry is still in the list.
        state.parked.retain(|(_, thread)| thread.id() != this.id());
        state.parked.push((ticket, this));
        drop(state);
        park();
    }

    /// Removes the parked threads whose tickets are answered.
    fn answered_ones(&self, state: &mut CommitQueueState<R>) -> Vec<Thread> {
        if state.parked.is_empty() {
            return Vec::new();
        }
        let answered = self.answered.load(Ordering::Relaxed);
        state.parked.extract_if(.., |(ticket, _)| *ticket < answered).map(|(_, thread)| thread).collect()
    }
}

impl<R> GroupLeader<'_, R> {
    /// The queue, once the expected requests have come or the time is over.
    fn gathered(&self) -> MutexGuard<'_, CommitQueueState<R>> {
        let mut state = self.queue.state.lock();
        let gather_time = Duration::from_nanos(self.queue.gather_time.load(Ordering::Relaxed));
        if gather_time.is_zero() || state.requests.len() >= state.num_expected {
            return state;
        }
        let begin = Instant::now();
        while state.requests.len() < state.num_expected && begin.elapsed() < gather_time {
            // Without the lock, so that the expected callers can submit.
            drop(state);
            yield_now();
            state = self.queue.state.lock();
        }
        state
    }

    /// Commits queued requests, and those that come meanwhile, until a request is answered.
    fn commit_until(mut self, ticket: Ticket, commit: &mut impl FnMut(Ticket, &mut Vec<R>)) {
        let queue = self.queue;
        while !queue.is_answered(ticket) {
            let mut state = self.gathered();
            let spare = std::mem::take(&mut state.spare);
            let mut requests = std::mem::replace(&mut state.requests, spare);
            let end = state.next;
            drop(state);
            // A panic from here on leaves the outcome of these requests unknown.
            self.is_committing = true;
            let num_requests = requests.len();
            commit(end - num_requests as u64, &mut requests);
            requests.clear();
            // One release store answers all requests of the group.
            queue.answered.store(end, Ordering::Release);
            self.is_committing = false;
            let mut state = queue.state.lock();
            state.spare = requests;
            // The answered callers may come again, beside those that wait already.
            state.num_expected = num_requests + state.requests.len();
            let answered = queue.answered_ones(&mut state);
            drop(state);
            // Outside the lock: woken threads may need it at once.
            answered.iter().for_each(Thread::unpark);
        }
    }
}

impl<R> Drop for GroupLeader<'_, R> {
    fn drop(&mut self) {
        let queue = self.queue;
        if self.is_committing {
            // The leader panicked: which requests are committed is unknown.
            queue.is_broken.store(true, Ordering::Release);
        }
        let mut state = queue.state.lock();
        // A nested leader leaves the lead to the admission that it belongs to.
        if !self.is_nested {
            state.is_led = false;
            state.admitted = None;
            queue.is_led.store(false, Ordering::Relaxed);
        }
        let mut woken = queue.answered_ones(&mut state);
        // The threads left have queued requests or wait to be admitted: wake one to lead. After a panic, wake all.
        let next = match (queue.is_broken.load(Ordering::Relaxed), state.reserved.clone()) {
            (true, _) => state.parked.len(),
            (false, Some(reserved)) => {
                woken.push(reserved);
                0
            }
            (false, None) => state.parked.len().min(1),
        };
        woken.extend(state.parked.drain(..next).map(|(_, thread)| thread));
        drop(state);
        woken.iter().for_each(Thread::unpark);
    }
}
