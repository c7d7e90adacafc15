//! Which directories do not know the pages that changed.
//!
//! The table of [newest pages](crate::arena::Newest) has two pages of each number, and so leads to all pages of the
//! newest version and of the one before it. Most versions are gone by the time that the next but one is made, and
//! need no directories at all. So a group that changes pages only notes which of the lowest directories are *stale*
//! then. They are made anew at the start of the next group but one, for the version that the first of the two made, if
//! somebody has it pinned still; nothing that this version has was overwritten in the table by then. What several
//! groups changed is made once.

/// The lowest directories of a plane that are stale, by number.
#[derive(Debug, Default)]
pub(crate) struct Stale {
    /// In the newest version, each once; a bit of `is_published` for each.
    published: Vec<u32>,
    is_published: Vec<u64>,
    /// In the version that is being made, as well; some of them more than once.
    changed: Vec<u32>,
}

impl Stale {
    /// Pages of these directories were changed in the group that is being made.
    pub(crate) fn note(&mut self, directories: impl IntoIterator<Item = u32>) {
        self.changed.extend(directories);
    }

    /// At least as many as there are.
    pub(crate) fn len(&self) -> usize {
        self.published.len() + self.changed.len()
    }

    /// What was changed is published.
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

    /// Those that are stale in the newest version, ascending: no longer.
    pub(crate) fn take_published(&mut self) -> Vec<u32> {
        let mut numbers = std::mem::take(&mut self.published);
        numbers.sort_unstable();
        numbers.iter().for_each(|&number| self.is_published[number as usize / 64] = 0);
        numbers
    }

    /// Those that are stale in the version that is being made, ascending: no longer. The others come first.
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
