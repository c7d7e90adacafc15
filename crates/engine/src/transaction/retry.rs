//! Retrying transactions after conflicts.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use anden_base::parallel::Pool;

use super::{Lost, OptimisticTransaction};
use crate::commit_queue::CommitCounters;
use crate::{Engine, Error, Result};

/// Conflicts in a row after which a transaction runs alone.
const MOST_LOSSES: u32 = 6;
/// The longest pause after the first conflict; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_micros(8);

impl Engine {
    /// Runs `body` in a transaction and commits it. After a conflict, `body` runs again. If `body` returns an error,
    /// nothing is committed.
    ///
    /// After several conflicts the transaction runs alone: no other commit happens until it is done, and queued commits
    /// come after it. So each transaction succeeds in the end. `body` must not wait for a commit of another thread.
    ///
    /// # Errors
    /// Those of `body`, and those of [`OptimisticTransaction::commit`] except conflicts.
    pub fn transact<R, E: From<Error>>(
        &self,
        pool: &Pool,
        mut body: impl FnMut(&mut OptimisticTransaction<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.transact_owned(pool, |mut transaction| Ok((body(&mut transaction)?, transaction)))
    }

    /// As [`transact`](Self::transact), with a body that takes and returns the transaction, for wrappers.
    ///
    /// # Errors
    /// As [`transact`](Self::transact).
    pub fn transact_owned<'db, R, E: From<Error>>(
        &'db self,
        pool: &'db Pool,
        mut body: impl FnMut(OptimisticTransaction<'db>) -> Result<(R, OptimisticTransaction<'db>), E>,
    ) -> Result<R, E> {
        let mut num_losses = 0;
        loop {
            let alone = match num_losses >= MOST_LOSSES {
                false => None,
                true => {
                    CommitCounters::count(&self.commits().counters.admitted_alone);
                    Some(self.be_alone()?)
                }
            };
            let (result, transaction) = body(self.begin(pool)?)?;
            match transaction.try_commit(alone.as_ref()) {
                Ok(_) => return Ok(result),
                Err(Lost::Error(error)) => return Err(error.into()),
                Err(Lost::Conflict(_)) => {}
            }
            // Others commit during the pause.
            drop(alone);
            num_losses += 1;
            CommitCounters::count(&self.commits().counters.retries);
            pause(num_losses);
        }
    }
}

/// Waits for a random time that grows with the conflicts, so that two transactions do not collide again.
fn pause(num_losses: u32) {
    // The commit that caused the conflict is done, so an attempt at once may succeed.
    if num_losses == 1 {
        return std::thread::yield_now();
    }
    let longest = FIRST_PAUSE * (1 << num_losses.min(8));
    // `RandomState::new` seeds each hasher at random.
    let share = RandomState::new().hash_one(num_losses) as f64 / u64::MAX as f64;
    std::thread::sleep(longest.mul_f64(share));
}
