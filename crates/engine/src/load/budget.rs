//! How the memory budget of a load is divided.

use crate::{Error, Result};

/// The program itself, its stacks and tables, and the buffers of its output files.
const FIXED_BYTES: u64 = 24 << 20;
/// The largest block of text for one worker: with its edges, it stays in a second-level cache.
const MAX_BLOCK_BYTES: usize = 1 << 20;
/// The smallest block: no line is longer.
const MIN_BLOCK_BYTES: usize = 64 << 10;
/// Parsed edges take up to this many times the bytes of their text.
const PARSED_FACTOR: u64 = 4;
/// The least memory for sorting.
const MIN_WORK_BYTES: u64 = 4 << 20;
/// The largest slab of edges.
const MAX_SLAB_BYTES: u64 = 32 << 20;

/// The memory that a load may use, and its shares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadBudget {
    total: u64,
    num_threads: u64,
    /// The most for edges.
    for_sort: u64,
    /// 2 if edges are also kept for later snapshots, which get half of the memory for edges.
    num_shares: u64,
    /// The bytes of text that a worker takes at once.
    pub(crate) block_bytes: usize,
}

impl LoadBudget {
    /// Divides `memory` bytes; `None`: three quarters of the available memory.
    pub(crate) fn new(memory: Option<u64>, for_sort: Option<u64>, num_threads: usize) -> Result<Self> {
        let total = memory.unwrap_or_else(|| anden_base::memory::available().saturating_mul(3) / 4);
        let num_threads = num_threads as u64;
        let block_bytes = block_bytes_of(total, num_threads);
        let budget = Self { total, num_threads, for_sort: for_sort.unwrap_or(u64::MAX), num_shares: 1, block_bytes };
        // Refused at once: the least work would not fit, whatever the input.
        budget.check("reading and sorting", MIN_WORK_BYTES)?;
        Ok(budget)
    }

    /// The budget with half of the memory for edges reserved for later snapshots.
    pub(crate) fn shared(self) -> Result<Self> {
        let shared = Self { num_shares: 2, ..self };
        shared.check("reading and sorting for several snapshots", MIN_WORK_BYTES)?;
        Ok(shared)
    }

    pub(crate) fn too_small(&self, what: &str, needed: u64) -> Error {
        Error::Memory { what: what.to_owned(), needed, budget: self.total }
    }

    /// Refuses `num_bytes` that do not fit beside the program and the current input blocks.
    pub(crate) fn check(&self, what: &str, num_bytes: u64) -> Result<()> {
        let num_bytes = self.num_shares * num_bytes;
        match self.overhead() + num_bytes > self.total {
            true => Err(self.too_small(what, self.total_for(num_bytes))),
            false => Ok(()),
        }
    }

    /// The least budget in which `num_bytes` fit. The input blocks grow with it.
    fn total_for(&self, num_bytes: u64) -> u64 {
        let mut total = self.total;
        loop {
            let block_bytes = block_bytes_of(total, self.num_threads) as u64;
            let needed = FIXED_BYTES + block_bytes * blocks_held(self.num_threads) + num_bytes;
            if needed <= total {
                return total;
            }
            // Blocks take an eighth of what is added, so the steps become short soon.
            total = needed;
        }
    }

    /// The memory beside the program and the input blocks.
    fn room(&self) -> u64 {
        self.total.saturating_sub(self.overhead()) / self.num_shares
    }

    /// Refuses vertex properties of `num_bytes` that leave too little for edges.
    pub(crate) fn check_properties(&self, num_bytes: u64) -> Result<()> {
        self.check("the properties of the vertices, which must be in memory,", MIN_WORK_BYTES + num_bytes)
    }

    fn overhead(&self) -> u64 {
        FIXED_BYTES + self.block_bytes as u64 * blocks_held(self.num_threads)
    }

    /// The memory for edges beside `key_bytes` of keys.
    ///
    /// # Errors
    /// The keys leave too little.
    pub(crate) fn for_edges(&self, key_bytes: u64) -> Result<u64> {
        self.check("the keys of the vertices, which must be in memory,", MIN_WORK_BYTES + key_bytes)?;
        // The check above leaves at least this much room, so the difference cannot wrap.
        Ok(self.for_sort.min(self.room() - key_bytes))
    }

    /// Bytes of a slab of edges.
    pub(crate) fn slab_bytes(&self) -> u64 {
        (self.for_sort.min(self.room()) / (16 * self.num_threads)).min(MAX_SLAB_BYTES)
    }
}

/// The bytes of a block in a budget: text gets an eighth of the free part.
fn block_bytes_of(total: u64, num_threads: u64) -> usize {
    let free = total.saturating_sub(FIXED_BYTES + MIN_WORK_BYTES);
    let share = usize::try_from(free / (8 * blocks_held(num_threads))).unwrap_or(usize::MAX);
    share.clamp(MIN_BLOCK_BYTES, MAX_BLOCK_BYTES)
}

/// Blocks held at once: text, and edges counted in blocks of that size.
fn blocks_held(num_threads: u64) -> u64 {
    1 + num_threads * (1 + PARSED_FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_budget_is_refused_with_what_it_takes() {
        let Err(Error::Memory { needed, budget: 1000, .. }) = LoadBudget::new(Some(1000), None, 2) else { panic!() };
        let budget = LoadBudget::new(Some(needed), None, 2).unwrap();
        assert_eq!(budget.for_edges(0).unwrap(), MIN_WORK_BYTES);
        assert!(budget.for_edges(1).is_err());
        assert!(LoadBudget::new(Some(64 << 20), None, 2).unwrap().for_edges(0).unwrap() > 32 << 20);
        assert!(LoadBudget::new(None, Some(1), 2).is_ok());
        let Err(Error::Memory { needed: for_several, .. }) = budget.shared() else { panic!() };
        assert_eq!(for_several, needed + MIN_WORK_BYTES);
        let shared = LoadBudget::new(Some(for_several), None, 2).unwrap().shared().unwrap();
        assert_eq!(shared.for_edges(0).unwrap(), MIN_WORK_BYTES);
        let Err(Error::Memory { needed, .. }) = shared.check("", MIN_WORK_BYTES + 1) else { panic!() };
        assert_eq!(needed, for_several + 2);
    }

    /// Regression: input blocks grow with the budget, so the stated need did not suffice.
    #[test]
    fn stated_need_suffices_and_is_the_least() {
        for (num_threads, key_bytes) in [(1, 33 << 20), (2, 100 << 20), (4, 200 << 20), (16, 3 << 30)] {
            let with = |total| LoadBudget::new(Some(total), None, num_threads).unwrap().for_edges(key_bytes);
            let Err(Error::Memory { needed, .. }) = with(48 << 20) else { panic!("{num_threads} threads") };
            assert!(with(needed).is_ok() && with(needed - 1).is_err(), "{num_threads} threads, {key_bytes} bytes");
        }
    }
}
