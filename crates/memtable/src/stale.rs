//! Directories that lack changed pages.
//!
//! The table of [newest pages](crate::arena::Newest) holds two pages of each number, which covers the newest version
//! and the one before. Most versions are unpinned before two more are published, and never need directories. So a
//! group that changes pages only notes which lowest directories become *stale*.
//!
//! Two groups later, before any page is replaced again, stale directories are rewritten if a reader still has that
//! version pinned. Until then the table holds all its pages. A directory that several groups changed is rewritten
//! once.

/// Numbers of the lowest directories of an adjacency table that are stale.
#[derive(Debug, Default)]
pub(crate) struct Stale {
    /// Stale in the newest version. Each is listed once and has a bit in `is_published`.
    published: Vec<u32>,
    is_published: Vec<u64>,
    /// Became stale in the next version. A number may repeat, and may be published too.
    changed: Vec<u32>,
}

impl Stale {
    /// Notes directories whose pages the running group changed.
    pub(crate) fn note(&mut self, directories: impl IntoIterator<Item = u32>) {
        self.changed.extend(directories);
    }

    /// Upper bound of the number of stale directories.
    pub(crate) fn len(&self) -> usize {
        self.published.len() + self.changed.len()
    }

    /// Moves the noted directories to the published ones.
    pub(crate) fn publish(&mut self) {
        for number in self.changed.drain(..) {
            let (word, bit) = (number as usize / 64, 1 << (number % 64));
            if word >= self.is_published.len() {
                self.is_published.resize(word + 1, 0);
            }
            if self.is_published[word] & bit == 0 {
                self.is_published[word] |= bit;
                self.published.push(number);
            }
        }
    }

    /// Removes and returns the numbers that are stale in the newest version, ascending.
    pub(crate) fn take_published(&mut self) -> Vec<u32> {
        let mut numbers = std::mem::take(&mut self.published);
        numbers.sort_unstable();
        // Whole words are cleared: all numbers with a bit are in the list.
        numbers.iter().for_each(|&number| self.is_published[number as usize / 64] = 0);
        numbers
    }

    /// Removes and returns the numbers that are stale in the next version, ascending. Requires that the published
    /// ones were taken before.
    pub(crate) fn take_changed(&mut self) -> Vec<u32> {
        debug_assert!(self.published.is_empty());
        let mut numbers = std::mem::take(&mut self.changed);
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_directory_is_made_once() {
        let mut stale = Stale::default();
        for _ in 0..2 {
            stale.note([70, 3, 70]);
            stale.publish();
            stale.note([3, 1000]);
            stale.publish();
            stale.note([5, 3, 5]);
            assert_eq!(stale.len(), 6);
            assert_eq!((stale.take_published(), stale.take_changed()), (vec![3, 70, 1000], vec![3, 5]));
            assert_eq!((stale.len(), stale.take_published(), stale.take_changed()), (0, vec![], vec![]));
        }
    }
}
