//! Commits that callers poll: their wakers, and the turn of the thread that serves them.
//!
//! A caller that polls must not block, so it leads no group. It leaves a waker, and a thread of its own waits for the
//! queue in its place. That thread lives as long as there are wakers. It holds the database only while it waits: once
//! it serves no more, the last handle of the database may be dropped and the files opened again.

use std::task::Waker;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::queue::Ticket;

/// The wakers of all callers that poll.
#[derive(Debug, Default)]
pub(crate) struct PolledCommits {
    state: Mutex<PolledState>,
    /// A turn of the thread has ended.
    turn_ended: Condvar,
}

#[derive(Debug, Default)]
struct PolledState {
    waiting: Vec<(Ticket, Waker)>,
    is_served: bool,
    /// The number of turns that have ended.
    num_turns: u64,
}

impl PolledCommits {
    /// Keeps the waker until [`take`](Self::take) hands it out. Returns whether the caller must start the thread.
    pub(crate) fn store(&self, ticket: Ticket, waker: &Waker) -> bool {
        // Foreign code runs when a waker is cloned or dropped, and may ask for this lock.
        let mut waker = waker.clone();
        let mut state = self.state.lock();
        let is_first = !std::mem::replace(&mut state.is_served, true);
        match state.waiting.iter_mut().find(|(other, _)| *other == ticket) {
            // A future may move to another task between two polls.
            Some((_, old)) => {
                std::mem::swap(old, &mut waker);
                drop(state);
            }
            None => state.waiting.push((ticket, waker)),
        }
        is_first
    }

    /// The last ticket with a waker.
    pub(crate) fn last(&self) -> Option<Ticket> {
        self.state.lock().waiting.iter().map(|(ticket, _)| *ticket).max()
    }

    /// Removes the wakers of tickets up to this one, and ends the turn of the thread. The thread holds the database no
    /// more when it calls this.
    pub(crate) fn take(&self, last: Ticket) -> Vec<Waker> {
        let mut state = self.state.lock();
        state.is_served = false;
        state.num_turns += 1;
        self.turn_ended.notify_all();
        state.waiting.extract_if(.., |(ticket, _)| *ticket <= last).map(|(_, waker)| waker).collect()
    }

    /// Takes the next turn, if there are wakers and no other thread serves them.
    pub(crate) fn serve_again(&self) -> bool {
        let mut state = self.state.lock();
        !state.waiting.is_empty() && !std::mem::replace(&mut state.is_served, true)
    }

    /// Removes the waker of this ticket, if it is still here, and then waits until no thread serves it. A thread that
    /// has handed the waker out holds the database no more.
    pub(crate) fn forget(&self, ticket: Ticket) {
        let mut state = self.state.lock();
        let own: Vec<_> = state.waiting.extract_if(.., |(other, _)| *other == ticket).collect();
        if !own.is_empty() {
            self.wait(&mut state);
        }
        // Before the wakers, whose drop runs foreign code.
        drop(state);
    }

    /// Waits until the current turn has ended. Later turns serve callers that hold the database themselves.
    pub(crate) fn wait_for_turn(&self) {
        self.wait(&mut self.state.lock());
    }

    fn wait(&self, state: &mut MutexGuard<'_, PolledState>) {
        let turn = state.num_turns;
        self.turn_ended.wait_while(state, |state| state.is_served && state.num_turns == turn);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread::{JoinHandle, spawn};

    use anden_testkit::wait_until;

    use super::*;

    /// Forgets in another thread, which a failed test leaves behind.
    fn forget(polled: &Arc<PolledCommits>, ticket: Ticket) -> JoinHandle<()> {
        let polled = Arc::clone(polled);
        spawn(move || polled.forget(ticket))
    }

    #[test]
    fn answered_commit_is_forgotten_beside_a_later_turn() {
        let polled = Arc::new(PolledCommits::default());
        assert!(polled.store(1, Waker::noop()));
        assert_eq!(polled.take(1).len(), 1);
        assert!(polled.store(2, Waker::noop()));
        let forgetting = forget(&polled, 1);
        wait_until("the turn of another commit is no reason to wait", || forgetting.is_finished());
        assert_eq!(polled.last(), Some(2));
    }

    #[test]
    fn forgotten_commit_waits_for_its_turn_only() {
        let polled = Arc::new(PolledCommits::default());
        assert!(polled.store(1, Waker::noop()) && !polled.store(2, Waker::noop()));
        let forgetting = forget(&polled, 1);
        wait_until("the waker is removed", || polled.state.lock().waiting.len() == 1);
        assert!(!forgetting.is_finished(), "a thread that serves the commit holds the database");
        assert_eq!(polled.take(1).len(), 0);
        assert!(polled.serve_again(), "another commit waits");
        wait_until("the turn has ended", || forgetting.is_finished());
    }
}
