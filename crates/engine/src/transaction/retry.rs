//! Trying again.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use base::parallel::Pool;

use super::{Lost, Transaction};
use crate::commit_queue::Counters;
use crate::{Database, Error, Result};

/// A transaction that lost so often in a row is let in alone.
const MOST_LOSSES: u32 = 6;
/// The longest pause after the first loss; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_micros(8);

impl Database {
    /// Runs `body` in a transaction and commits it; where something changed meanwhile that it read, all over again. What
    /// `body` returns an error for has not happened.
    ///
    /// A transaction that loses several times is let in alone: nobody else commits until it is done, and what others
    /// submitted meanwhile comes after it. So each succeeds in the end, however many there are; `body` must not wait for
    /// what another thread commits.
    ///
    /// # Errors
    /// Those of `body`, and of [`Transaction::commit`] but for conflicts.
    pub fn transact<R, E: From<Error>>(
        &self,
        pool: &Pool,
        mut body: impl FnMut(&mut Transaction<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.transact_owned(pool, |mut transaction| Ok((body(&mut transaction)?, transaction)))
    }

    /// The same, with a body that gives the transaction back: for who wraps it.
    ///
    /// # Errors
    /// As [`transact`](Self::transact).
    pub fn transact_owned<'db, R, E: From<Error>>(
        &'db self,
        pool: &'db Pool,
        mut body: impl FnMut(Transaction<'db>) -> Result<(R, Transaction<'db>), E>,
    ) -> Result<R, E> {
        let mut num_losses = 0;
        loop {
            let alone = match num_losses >= MOST_LOSSES {
                false => None,
                true => {
                    Counters::count(&self.commits().counters.admitted_alone);
                    Some(self.be_alone()?)
                }
            };
            let (result, transaction) = body(self.begin(pool)?)?;
            match transaction.try_commit(alone.as_ref()) {
                Ok(_) => return Ok(result),
                Err(Lost::Error(error)) => return Err(error.into()),
                Err(Lost::Conflict(_)) => {}
            }
            drop(alone);
            num_losses += 1;
            Counters::count(&self.commits().counters.retries);
            pause(num_losses);
        }
    }
}

/// Lets others go first, for a random time that grows with the losses: who collided once should not collide again.
fn pause(num_losses: u32) {
    if num_losses == 1 {
        return std::thread::yield_now();
    }
    let longest = FIRST_PAUSE * (1 << num_losses.min(8));
    // Each state of the hasher is seeded at random.
    let share = RandomState::new().hash_one(num_losses) as f64 / u64::MAX as f64;
    std::thread::sleep(longest.mul_f64(share));
}
