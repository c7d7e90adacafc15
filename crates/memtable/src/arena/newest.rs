//! Tables of the newest page of each number, and of the page before it. Nearly all readers find their pages here,
//! without directories.
//!
//! An entry holds a page and its birth. Versions form a line, so a version has the newest page that is no younger
//! than itself. Entries are written before their version is published, and `before` first. A reader with a pinned
//! version therefore finds its page here, or two younger ones. In the second case the page was replaced twice, and by
//! then the pinned version has directories ([`stale`](crate::stale)).
//!
//! Entries change in place, so they stay in a reader's cache between small batches. Directories would be rewritten at
//! another address each time.
//!
//! This module does not depend on nodes, so a model checker can run all of it.

use std::io;

use anden_base::simd::prefetch;

use super::sync::{Ordering, fence};
use super::{Handle, Zeros};

/// Group of entries that only the writer may use.
const UNKNOWN: u32 = u32::MAX;

/// Tables of pages by number, which take memory where they are written.
#[derive(Debug)]
pub(crate) struct Newest {
    newest: Zeros,
    /// Pages that the newest ones replaced.
    before: Zeros,
}

/// The youngest group whose entries a version may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit(u32);

impl Limit {
    /// For the writer, which may use every page of the version that it makes.
    pub(crate) const NONE: Self = Self(UNKNOWN);

    #[inline(always)]
    pub(crate) fn of(epoch: u64) -> Self {
        // Never `UNKNOWN`: no version may use the entries that are for the writer only.
        Self(epoch.min(u64::from(UNKNOWN - 1)) as u32)
    }

    #[inline(always)]
    fn admits(self, entry: u64) -> Option<Handle> {
        ((entry >> 32) as u32 <= self.0).then_some(entry as Handle)
    }
}

impl Newest {
    /// Bytes of an entry, in both tables.
    pub(super) const ENTRY_BYTES: usize = 2 * size_of::<u64>();

    /// The last group whose version finds all its pages in the tables until two more versions are published.
    pub(crate) const LAST: u64 = UNKNOWN as u64 - 2;

    /// Creates tables without pages. Reserves addresses.
    ///
    /// # Errors
    /// The system does not grant them.
    pub(super) fn of_len(len: usize) -> io::Result<Self> {
        Ok(Self { newest: Zeros::of_len(len)?, before: Zeros::of_len(len)? })
    }

    /// Bound of the page numbers.
    pub(crate) fn len(&self) -> usize {
        self.newest.words().len()
    }

    /// Newest page with this number, if `limit` admits it.
    #[inline(always)]
    pub(crate) fn page(&self, number: usize, limit: Limit) -> Option<Handle> {
        // Relaxed: the pin of a version makes its entries and nodes visible.
        limit.admits(self.newest.words()[number].load(Ordering::Relaxed))
    }

    /// Page that the newest one replaced, if `limit` admits it. Called where the newest page is too young. A pinned
    /// version that is admitted to neither page has directories.
    pub(crate) fn page_before(&self, number: usize, limit: Limit) -> Option<Handle> {
        // Pairs with `set`: reads from here on are no older than the page that the newest one replaced.
        fence(Ordering::Acquire);
        limit.admits(self.before.words()[number].load(Ordering::Acquire))
    }

    /// Prefetches the entry of the newest page.
    #[inline(always)]
    pub(crate) fn prefetch(&self, number: usize) {
        prefetch(self.newest.words(), number);
    }

    /// Prefetches the entry that [`set`](Self::set) writes besides.
    #[inline(always)]
    pub(crate) fn prefetch_before(&self, number: usize) {
        prefetch(self.before.words(), number);
    }

    /// Sets a page that was made in an unpublished group.
    pub(crate) fn set(&self, number: usize, page: Handle, group: u64) {
        let (newest, before) = (&self.newest.words()[number], &self.before.words()[number]);
        let group = group.min(u64::from(UNKNOWN)) as u32;
        let replaced = newest.load(Ordering::Relaxed);
        if group == UNKNOWN {
            // All later groups share one number, so no version may use either entry.
            before.store(u64::from(UNKNOWN) << 32, Ordering::Release);
        } else if replaced != 0 && (replaced >> 32) as u32 != group {
            // A page of this group was never published, so only older pages are kept.
            before.store(replaced, Ordering::Release);
        }
        // After `before`: a reader that finds this page too young must find the replaced one.
        newest.store(u64::from(group) << 32 | u64::from(page), Ordering::Release);
    }
}
