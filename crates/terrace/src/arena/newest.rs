//! Where the newest page of each number is, and the one before it: for nearly all readers, a way to a page past all
//! directories.
//!
//! An entry holds a page and the group that the page was born in. Versions are a line, so a page that is no younger
//! than a version, and that nothing replaced before it, is the one that the version has. Entries are written before the
//! version that has them is published, and the one before it first: whoever pinned a version finds its page here, or
//! two that are younger. Then its page was replaced, and the one that replaced it as well; by that time there are
//! directories for who still has the version pinned ([`stale`](crate::stale)).
//!
//! The same entries of a table that is changed in place stay in the cache of a reader from one small batch to the next,
//! where directories are written anew, at another place each time.
//!
//! This module knows nothing of nodes, so that a model checker can run it whole.

use std::io;

use base::simd::prefetch;

use super::sync::{Ordering, fence};
use super::{Handle, Zeros};

/// The group of entries of which nobody may know the page.
const UNKNOWN: u32 = u32::MAX;

/// Tables of pages by number, which take memory where they were written.
#[derive(Debug)]
pub(crate) struct Newest {
    newest: Zeros,
    /// What the newest page replaced.
    before: Zeros,
}

/// The youngest group of whose entries a version may know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit(u32);

impl Limit {
    /// Whoever makes a version knows every page of it.
    pub(crate) const NONE: Self = Self(UNKNOWN);

    #[inline(always)]
    pub(crate) fn of(epoch: u64) -> Self {
        Self(epoch.min(u64::from(UNKNOWN - 1)) as u32)
    }

    #[inline(always)]
    fn admits(self, entry: u64) -> Option<Handle> {
        ((entry >> 32) as u32 <= self.0).then_some(entry as Handle)
    }
}

impl Newest {
    /// The last group after which tables lead to all pages of its version until two others are published.
    pub(crate) const LAST: u64 = UNKNOWN as u64 - 2;

    /// Without pages. Reserves addresses.
    ///
    /// # Errors
    /// The system does not grant them.
    pub(super) fn of_len(len: usize) -> io::Result<Self> {
        Ok(Self { newest: Zeros::of_len(len)?, before: Zeros::of_len(len)? })
    }

    /// Pages have numbers below this.
    pub(crate) fn len(&self) -> usize {
        self.newest.words().len()
    }

    /// The page with this number, where it is known to belong to the versions of `limit`.
    #[inline(always)]
    pub(crate) fn page(&self, number: usize, limit: Limit) -> Option<Handle> {
        limit.admits(self.newest.words()[number].load(Ordering::Relaxed))
    }

    /// The page that the newest one replaced, where that one is too young and this one is not. If neither is known to a
    /// version that is pinned, its directories are made.
    pub(crate) fn page_before(&self, number: usize, limit: Limit) -> Option<Handle> {
        // Pairs with `set`: what is read from here on is no older than what the newest page replaced.
        fence(Ordering::Acquire);
        limit.admits(self.before.words()[number].load(Ordering::Acquire))
    }

    /// Hints that the page with this number is looked for soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self, number: usize) {
        prefetch(self.newest.words(), number);
    }

    /// Hints that another page is soon [set](Self::set).
    #[inline(always)]
    pub(crate) fn prefetch_before(&self, number: usize) {
        prefetch(self.before.words(), number);
    }

    /// Notes a page that was made in a group that is not published yet.
    pub(crate) fn set(&self, number: usize, page: Handle, group: u64) {
        let (newest, before) = (&self.newest.words()[number], &self.before.words()[number]);
        let group = group.min(u64::from(UNKNOWN)) as u32;
        let replaced = newest.load(Ordering::Relaxed);
        if group == UNKNOWN {
            // Which of these pages a version has, nobody could tell.
            before.store(u64::from(UNKNOWN) << 32, Ordering::Release);
        } else if replaced != 0 && (replaced >> 32) as u32 != group {
            before.store(replaced, Ordering::Release);
        }
        newest.store(u64::from(group) << 32 | u64::from(page), Ordering::Release);
    }
}
