//! Who commits for whom.
//!
//! Callers put requests into a queue and get *tickets*, numbers in its order. Whoever waits for an answer while nobody
//! *leads* does so: takes all that is in the queue, commits it as a group, answers, and goes on until its own request
//! is answered. Then another who waits leads. Answers are one number, the ticket up to which everything is answered, so
//! that a group of a hundred costs the leader one write and nobody's line of the cache but that one moves.
//!
//! Followers look again and yield a few times before they park: what a group takes is much less than waking a thread
//! does. Where more callers wait than there are cores they yield at once, for a core that only looks is one on which
//! nobody asks for more. Who is to lead while others wait for a core gives way to them now and then, and not each time:
//! to change threads costs as much as a small group does. A caller who finds nobody else wakes nobody.
//!
//! Where a commit takes long, as one that is synced does, a group is worth waiting for: those who were just answered are
//! about to come again, and would else wait for the next group, and half of all callers for each other half. So a leader
//! may be *patient*: it waits until as many requests are there as were in the last group and behind it, but no longer
//! than it was told.
//!
//! Somebody may be *admitted* to lead without a request in the queue, to commit something large, or to be alone while
//! it makes up what it commits. The place of the leader is kept free for it, so that it waits for one leader at most.
//!
//! This module knows nothing of what is committed, so that a model checker can run it whole.

use std::time::Duration;

use super::sync::{
    AtomicBool, AtomicU64, ENOUGH, Instant, LOOKS, Mutex, MutexGuard, Ordering, SPINS, TURNS, Thread, current, hint,
    num_cores, park, yield_now,
};

/// A place in the order of requests.
pub(crate) type Ticket = u64;

/// The queue.
#[derive(Debug)]
pub(crate) struct Queue<R> {
    state: Mutex<State<R>>,
    /// All requests with tickets below this are answered.
    answered: AtomicU64,
    /// As in the state, for those who only look.
    is_led: AtomicBool,
    /// A leader panicked: what it was to answer is unknown.
    is_broken: AtomicBool,
    /// Callers that wait for an answer, or have one and do not know yet.
    num_waiting: AtomicU64,
    /// Nanoseconds that a leader waits for the callers it expects.
    patience: AtomicU64,
}

#[derive(Debug)]
struct State<R> {
    requests: Vec<R>,
    /// Of the next request.
    next: Ticket,
    is_led: bool,
    /// The leader, where it was admitted: what it submits itself it commits itself.
    admitted: Option<Thread>,
    /// Who leads next.
    reserved: Option<Thread>,
    /// Who is to be woken when its ticket is answered, or when somebody has to lead.
    parked: Vec<(Ticket, Thread)>,
    /// Room for requests that the leader gives back.
    spare: Vec<R>,
    /// The requests that the next group has if all who were answered come again.
    num_expected: usize,
    /// How often somebody was to lead a small group while others waited.
    num_turns: u32,
}

impl<R> State<R> {
    /// Whether who is to lead now gives way.
    fn gives_way(&mut self) -> bool {
        if self.is_led || self.requests.len() >= ENOUGH {
            return false;
        }
        self.num_turns = self.num_turns.wrapping_add(1);
        self.num_turns.is_multiple_of(TURNS)
    }
}

/// A leader panicked; nobody knows what became of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

/// The right to lead; dropped, another may.
#[derive(Debug)]
pub(crate) struct Leading<'a, R> {
    queue: &'a Queue<R>,
    /// Whether it was had before, and stays.
    is_nested: bool,
    /// Requests are taken out and not answered yet.
    is_committing: bool,
}

impl<R> Default for Queue<R> {
    fn default() -> Self {
        let state = State {
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
            patience: AtomicU64::new(0),
        }
    }
}

impl<R> Queue<R> {
    /// Appends a request. It is committed once somebody waits for it, or for a later one.
    ///
    /// Returns its ticket, and how many are in the queue now.
    pub(crate) fn submit(&self, request: R) -> (Ticket, usize) {
        let mut state = self.lock();
        state.requests.push(request);
        state.next += 1;
        (state.next - 1, state.requests.len())
    }

    /// From now on a leader waits so long at most for callers who are about to come again; at first not at all.
    pub(crate) fn set_patience(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if self.patience.load(Ordering::Relaxed) != time {
            self.patience.store(time, Ordering::Relaxed);
        }
    }

    /// Whether a request is answered.
    #[inline]
    pub(crate) fn is_answered(&self, ticket: Ticket) -> bool {
        self.answered.load(Ordering::Acquire) > ticket
    }

    /// Waits until a request is answered; commits meanwhile what others submit, if nobody does: `commit(first, requests)`
    /// takes all of these, whose tickets are `first` and the numbers after it.
    ///
    /// # Errors
    /// A leader panicked.
    pub(crate) fn wait(&self, ticket: Ticket, commit: impl FnMut(Ticket, &mut Vec<R>)) -> Result<(), Broken> {
        if self.is_answered(ticket) {
            return Ok(());
        }
        let num_others = self.num_waiting.fetch_add(1, Ordering::Relaxed);
        let waited = self.wait_or_lead(ticket, num_others, commit);
        self.num_waiting.fetch_sub(1, Ordering::Relaxed);
        waited
    }

    /// Where others wait, whoever is to lead a small group gives way once in some turns, so that who has an answer gets to
    /// know it, and perhaps asks for more.
    fn wait_or_lead(
        &self,
        ticket: Ticket,
        num_others: u64,
        mut commit: impl FnMut(Ticket, &mut Vec<R>),
    ) -> Result<(), Broken> {
        let mut gives_way = num_others > 0;
        let num_spins = if num_others < num_cores() { SPINS } else { 0 };
        let mut num_looks = 0;
        loop {
            if self.is_answered(ticket) {
                return Ok(());
            }
            if self.is_broken.load(Ordering::Acquire) {
                return Err(Broken);
            }
            if num_looks == 0 || num_looks >= LOOKS || !self.is_led.load(Ordering::Relaxed) {
                let mut state = self.lock();
                if std::mem::take(&mut gives_way) && state.gives_way() {
                    drop(state);
                    yield_now();
                    continue;
                }
                if let Some(leading) = self.begin(&mut state) {
                    drop(state);
                    leading.commit_until(ticket, &mut commit);
                    continue;
                }
                if num_looks >= LOOKS && !self.is_answered(ticket) {
                    self.park(state, ticket);
                    continue;
                }
            }
            num_looks += 1;
            if num_looks < num_spins { hint() } else { yield_now() }
        }
    }

    /// Waits until nobody leads, and leads.
    ///
    /// # Errors
    /// A leader panicked.
    pub(crate) fn admit(&self) -> Result<Leading<'_, R>, Broken> {
        loop {
            if self.is_broken.load(Ordering::Acquire) {
                return Err(Broken);
            }
            let mut state = self.lock();
            if let Some(leading) = self.begin(&mut state) {
                state.admitted = Some(current());
                return Ok(leading);
            }
            if state.reserved.is_none() {
                state.reserved = Some(current());
            }
            self.park(state, Ticket::MAX);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Leads, if nobody else does or is about to, or who does is the caller.
    fn begin(&self, state: &mut State<R>) -> Option<Leading<'_, R>> {
        let is_caller = |thread: &Option<Thread>| thread.as_ref().is_some_and(|thread| thread.id() == current().id());
        if state.is_led {
            // One that is made gives its right back when it goes, so none is made in vain.
            return match is_caller(&state.admitted) {
                true => Some(Leading { queue: self, is_nested: true, is_committing: false }),
                false => None,
            };
        }
        if state.reserved.is_some() {
            if !is_caller(&state.reserved) {
                return None;
            }
            state.reserved = None;
        }
        if !state.parked.is_empty() {
            // Who leads is not to be woken in place of one who waits.
            let this = current().id();
            state.parked.retain(|(_, thread)| thread.id() != this);
        }
        state.is_led = true;
        self.is_led.store(true, Ordering::Relaxed);
        Some(Leading { queue: self, is_nested: false, is_committing: false })
    }

    fn park(&self, mut state: MutexGuard<'_, State<R>>, ticket: Ticket) {
        let this = current();
        // It may have been woken for another reason than being taken out.
        state.parked.retain(|(_, thread)| thread.id() != this.id());
        state.parked.push((ticket, this));
        drop(state);
        park();
    }

    /// Takes those out who have their answers.
    fn answered_ones(&self, state: &mut State<R>) -> Vec<Thread> {
        if state.parked.is_empty() {
            return Vec::new();
        }
        let answered = self.answered.load(Ordering::Relaxed);
        state.parked.extract_if(.., |(ticket, _)| *ticket < answered).map(|(_, thread)| thread).collect()
    }
}

impl<R> Leading<'_, R> {
    /// The queue, with the requests that are expected or as many as came in time.
    fn gathered(&self) -> MutexGuard<'_, State<R>> {
        let mut state = self.queue.lock();
        let patience = Duration::from_nanos(self.queue.patience.load(Ordering::Relaxed));
        if patience.is_zero() || state.requests.len() >= state.num_expected {
            return state;
        }
        let begin = Instant::now();
        while state.requests.len() < state.num_expected && begin.elapsed() < patience {
            drop(state);
            yield_now();
            state = self.queue.lock();
        }
        state
    }

    /// Commits what is in the queue, and what comes meanwhile, until a request is answered.
    fn commit_until(mut self, ticket: Ticket, commit: &mut impl FnMut(Ticket, &mut Vec<R>)) {
        let queue = self.queue;
        while !queue.is_answered(ticket) {
            let mut state = self.gathered();
            let spare = std::mem::take(&mut state.spare);
            let mut requests = std::mem::replace(&mut state.requests, spare);
            let end = state.next;
            drop(state);
            self.is_committing = true;
            let num_requests = requests.len();
            commit(end - num_requests as u64, &mut requests);
            requests.clear();
            queue.answered.store(end, Ordering::Release);
            self.is_committing = false;
            let mut state = queue.lock();
            state.spare = requests;
            state.num_expected = num_requests + state.requests.len();
            let answered = queue.answered_ones(&mut state);
            drop(state);
            answered.iter().for_each(Thread::unpark);
        }
    }
}

impl<R> Drop for Leading<'_, R> {
    fn drop(&mut self) {
        let queue = self.queue;
        if self.is_committing {
            queue.is_broken.store(true, Ordering::Release);
        }
        let mut state = queue.lock();
        if !self.is_nested {
            state.is_led = false;
            state.admitted = None;
            queue.is_led.store(false, Ordering::Relaxed);
        }
        let mut woken = queue.answered_ones(&mut state);
        // Those who are left have requests in the queue, or wait to be admitted: one of them leads.
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
