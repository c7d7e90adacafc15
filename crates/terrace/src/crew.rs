//! The workers that apply a batch, and help for one of them who has more to do than the others.

use std::sync::{Mutex, MutexGuard};

use base::parallel::Pool;

use crate::arena::Slots;
use crate::builder::Builder;
use crate::graveyard::Retired;
use crate::list::ListWork;
use crate::overlay::Split;
use crate::pieces::Carry;
use crate::{Result, Value};

/// So many changes of one list, or of one bucket, are shared among workers.
const SHARED_CHANGES: usize = 1 << 16;
/// Parts a worker, so that those who come later find some.
const PARTS_EACH: usize = 4;

/// What a worker keeps from batch to batch.
#[derive(Debug)]
pub(crate) struct Worker<W> {
    pub(crate) slots: Slots,
    pub(crate) retired: Vec<Retired>,
    /// Room for directories that one part of a batch leaves stale.
    pub(crate) stale: Vec<u32>,
    pub(crate) work: ListWork<W>,
    pub(crate) split: Split<W>,
}

impl<W: Value> Default for Worker<W> {
    fn default() -> Self {
        Self {
            slots: Slots::default(),
            retired: Vec::new(),
            stale: Vec::new(),
            work: ListWork::default(),
            split: Split::default(),
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// Who may be asked for help by a worker, who holds what is his own while he waits.
#[derive(Debug)]
pub(crate) struct Crew<'a, W> {
    pub(crate) pool: &'a Pool,
    /// One for each thread of the pool; none is held but while its thread runs a part.
    pub(crate) helpers: &'a [Mutex<Worker<W>>],
}

impl<W: Value> Crew<'_, W> {
    /// In how many parts so many changes are to be cut.
    #[inline(always)]
    pub(crate) fn num_parts(&self, num_changes: usize) -> usize {
        num_parts(self.pool, num_changes)
    }

    /// Maps parts in their order; each has a builder like the caller's, and room.
    ///
    /// # Errors
    /// The first that `body` gave.
    pub(crate) fn share<T: Send, R: Send>(
        &self,
        builder: &Builder<'_>,
        parts: Vec<T>,
        body: impl Fn(&mut Builder<'_>, &mut Carry<W>, T) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let &Builder { arena, stock, group, .. } = builder;
        let on_thread = |thread: usize, part| {
            let mut helper = lock(&self.helpers[thread]);
            let Worker { slots, retired, work, .. } = &mut *helper;
            body(&mut Builder { arena, stock, group, slots, retired }, &mut work.carry, part)
        };
        self.pool.share(parts, on_thread).into_iter().collect()
    }
}

/// In how many parts so many changes are to be cut: one, unless there are enough for more.
#[inline(always)]
pub(crate) fn num_parts(pool: &Pool, num_changes: usize) -> usize {
    if num_changes < SHARED_CHANGES || pool.num_threads() == 1 { 1 } else { PARTS_EACH * pool.num_threads() }
}
