//! Where the newest page of each number is: for most readers, a way to it past all directories.
//!
//! An entry holds a page and the group that the page was born in. Versions are a line, so a page that is no younger
//! than a version, and that nothing replaced before it, is the one that the version's directories lead to. Entries are
//! written before the version that has them is published: whoever pinned it finds that page, or a younger one, which
//! its group gives away; then the directories know.
//!
//! The same entries of a table that is changed in place stay in the cache of a reader from one small batch to the next,
//! where directories are written anew, at another place each time.

use std::sync::atomic::Ordering;

use base::simd::prefetch;

use super::{Handle, Zeros};

/// The most entries that are reserved: of 2^32 vertices with four on a page.
const MOST_ENTRIES: usize = 1 << 30;
/// The least.
const LEAST_ENTRIES: usize = 1 << 16;
/// The group of entries of which nobody may know the page.
const UNKNOWN: u32 = u32::MAX;

/// A table of pages by number, which takes memory where it was written. Pages beyond its end are not in it.
#[derive(Debug)]
pub(crate) struct Newest(Zeros);

/// The youngest group of whose entries a version may know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit(u32);

impl Limit {
    #[inline(always)]
    pub(crate) fn of(epoch: u64) -> Self {
        Self(epoch.min(u64::from(UNKNOWN - 1)) as u32)
    }
}

impl Newest {
    /// Without pages. Reserves addresses, and where the system grants none, there will be no entries.
    pub(crate) fn reserve() -> Self {
        Self(Zeros::reserve(LEAST_ENTRIES..=MOST_ENTRIES))
    }

    /// The page with this number, where it is known to belong to the versions of `limit`.
    #[inline(always)]
    pub(crate) fn page(&self, number: usize, limit: Limit) -> Option<Handle> {
        let entry = self.0.words().get(number)?.load(Ordering::Relaxed);
        ((entry >> 32) as u32 <= limit.0).then_some(entry as Handle)
    }

    /// Hints that the page with this number is looked for soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self, number: usize) {
        prefetch(self.0.words(), number);
    }

    /// Notes a page that was made in a group that is not published yet.
    pub(crate) fn set(&self, number: usize, page: Handle, group: u64) {
        if let Some(entry) = self.0.words().get(number) {
            let group = group.min(u64::from(UNKNOWN));
            entry.store(group << 32 | u64::from(page), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_known_to_versions_that_are_no_older() {
        let newest = Newest::reserve();
        assert_eq!(newest.page(5, Limit::of(0)), Some(0), "there is nothing at first");
        newest.set(5, 77, 3);
        let page = |epoch| newest.page(5, Limit::of(epoch));
        assert_eq!([page(2), page(3), page(u64::MAX)], [None, Some(77), Some(77)]);
        newest.set(5, 0, 4);
        assert_eq!([page(3), page(4)], [None, Some(0)]);
        assert_eq!(newest.page(usize::MAX, Limit::of(9)), None);
        newest.set(usize::MAX, 1, 1);
    }

    #[test]
    fn after_four_billion_groups_nothing_is_known() {
        let newest = Newest::reserve();
        for group in [u64::from(UNKNOWN), u64::from(UNKNOWN) + 5, 1 << 40] {
            newest.set(1, 9, group);
            assert_eq!(
                [Limit::of(0), Limit::of(group), Limit::of(u64::MAX)].map(|limit| newest.page(1, limit)),
                [None; 3]
            );
        }
        newest.set(1, 9, u64::from(UNKNOWN) - 1);
        assert_eq!(newest.page(1, Limit::of(1 << 40)), Some(9));
    }
}
