//! The shallow tree that leads from the number of a page to the page.

use crate::Result;
use crate::arena::{Arena, Fresh, Handle, LINE_WORDS, Limit, NOTHING, Newest};
use crate::builder::Builder;
use crate::node::{DIRECTORY_WORDS, FANOUT, FANOUT_BITS, Head};

/// A page of the version that is being made, or a directory: its number, and where it is.
pub(crate) type NewPage = (u32, Handle);

/// The root, and how many directories a look-up passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    pub(crate) root: Handle,
    pub(crate) height: u32,
}

/// The children of a directory.
#[inline(always)]
pub(crate) fn children(arena: &Arena, directory: Handle) -> &[Handle] {
    &arena.words(directory, DIRECTORY_WORDS)[LINE_WORDS..]
}

impl Directory {
    /// Without pages.
    pub(crate) fn empty() -> Self {
        Self { root: NOTHING, height: 1 }
    }

    /// The pages that it can lead to.
    pub(crate) fn capacity(&self) -> u64 {
        1 << (u64::from(self.height) * u64::from(FANOUT_BITS))
    }

    /// The page with this number; [`NOTHING`] where it has no edges.
    #[inline(always)]
    pub(crate) fn page(&self, arena: &Arena, number: u32) -> Handle {
        let mut node = self.root;
        let mut level = self.height;
        while level > 0 {
            level -= 1;
            let index = (number >> (level * FANOUT_BITS)) as usize % FANOUT;
            node = children(arena, node)[index];
        }
        node
    }

    /// The pages from this number on that stand in the same directory.
    #[inline(always)]
    pub(crate) fn pages_from<'a>(&self, arena: &'a Arena, number: u32) -> &'a [Handle] {
        let leaf = self.ancestor(arena, number >> FANOUT_BITS, 1);
        &children(arena, leaf)[number as usize % FANOUT..]
    }

    /// The same with room for at least `num_pages` pages.
    pub(crate) fn grown(mut self, builder: &mut Builder<'_>, num_pages: u64) -> Result<Self> {
        while self.capacity() < num_pages {
            if self.root != NOTHING {
                let mut fresh = builder.take(DIRECTORY_WORDS)?;
                let words = builder.arena.fill(&mut fresh);
                words[..DIRECTORY_WORDS].fill(0);
                Head { birth: builder.group, count: 0 }.write(words);
                words[LINE_WORDS] = self.root;
                self.root = fresh.seal();
            }
            self.height += 1;
        }
        Ok(self)
    }

    /// Makes the lowest directories with these pages, which ascend by number, in place of what was there: the list
    /// becomes theirs. Who applies a part of a batch that shares none of them with another part does so by himself.
    pub(crate) fn make_lowest(&self, builder: &mut Builder<'_>, pages: &mut Vec<NewPage>) -> Result<()> {
        self.raise(builder, 1, pages)
    }

    /// The same with these lowest directories, which ascend by number, in place of what was there. Uses up the list.
    pub(crate) fn with(mut self, builder: &mut Builder<'_>, lowest: &mut Vec<NewPage>) -> Result<Self> {
        for levels in 2..=self.height {
            self.raise(builder, levels, lowest)?;
        }
        if let Some((_, root)) = lowest.pop() {
            self.root = root;
        }
        Ok(self)
    }

    /// From nodes to the directories above them, which stand so many levels above the pages.
    fn raise(&self, builder: &mut Builder<'_>, levels: u32, nodes: &mut Vec<NewPage>) -> Result<()> {
        let (mut to, mut from) = (0, 0);
        while from < nodes.len() {
            let parent = nodes[from].0 >> FANOUT_BITS;
            let len = nodes[from..].iter().take_while(|(number, _)| number >> FANOUT_BITS == parent).count();
            let old = self.ancestor(builder.arena, parent, levels);
            let node = replaced(builder, old, &nodes[from..from + len])?;
            nodes[to] = (parent, node);
            to += 1;
            from += len;
        }
        nodes.truncate(to);
        Ok(())
    }

    /// The directory that stands `levels` above the pages, by its number among those.
    #[inline(always)]
    fn ancestor(&self, arena: &Arena, number: u32, levels: u32) -> Handle {
        let mut node = self.root;
        for level in (0..self.height - levels).rev() {
            let index = (number >> (level * FANOUT_BITS)) as usize % FANOUT;
            node = children(arena, node)[index];
        }
        node
    }
}

/// Looks up pages of the version that is being made, in a row: where one is not known and stands in the same directory
/// as the last, with one read.
pub(crate) struct Cursor<'a> {
    arena: &'a Arena,
    newest: &'a Newest,
    directory: Directory,
    /// The last directory, by its number among those above pages, and its children.
    parent: Option<u32>,
    children: &'a [Handle],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(arena: &'a Arena, newest: &'a Newest, directory: Directory) -> Self {
        Self { arena, newest, directory, parent: None, children: &[] }
    }

    /// As [`Directory::page`].
    #[inline(always)]
    pub(crate) fn page(&mut self, number: u32) -> Handle {
        if let Some(page) = self.newest.page(number as usize, Limit::of(u64::MAX)) {
            return page;
        }
        let parent = number >> FANOUT_BITS;
        if self.parent != Some(parent) {
            self.parent = Some(parent);
            self.children = children(self.arena, self.directory.ancestor(self.arena, parent, 1));
        }
        self.children[number as usize % FANOUT]
    }
}

/// A copy of a directory with other children at the lowest bits of these numbers; nothing where all of
/// them are.
fn replaced(builder: &mut Builder<'_>, old: Handle, new: &[NewPage]) -> Result<Handle> {
    let arena = builder.arena;
    let mut fresh: Fresh = builder.take(DIRECTORY_WORDS)?;
    let words = &mut arena.fill(&mut fresh)[..DIRECTORY_WORDS];
    let old_words = arena.words(old, DIRECTORY_WORDS);
    words.copy_from_slice(old_words);
    Head { birth: builder.group, count: 0 }.write(words);
    for &(number, handle) in new {
        words[LINE_WORDS + number as usize % FANOUT] = handle;
    }
    let is_empty = words[LINE_WORDS..].iter().all(|&child| child == NOTHING);
    if old != NOTHING {
        builder.retire(old, Head::read(old_words).birth, DIRECTORY_WORDS);
    }
    let handle = fresh.seal();
    if is_empty {
        builder.retire(handle, builder.group, DIRECTORY_WORDS);
        return Ok(NOTHING);
    }
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{Slots, Stock};
    use std::collections::BTreeMap;
    use testkit::Random;

    #[test]
    fn pages_are_found_again_and_directories_come_back() {
        let seed = 0xd1;
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let arena = Arena::reserve().unwrap();
        let stock = Stock::new(&arena);
        let (mut slots, mut retired) = (Slots::default(), Vec::new());
        let mut directory = Directory::empty();
        let mut model = BTreeMap::new();
        let nothing_known = Newest::reserve();
        (0..1 << 19).for_each(|number| nothing_known.set(number, 0, u64::MAX));
        for group in 1..60 {
            let builder =
                &mut Builder { arena: &arena, stock: &stock, group, slots: &mut slots, retired: &mut retired };
            let bound = 1 << (group / 3).min(19);
            directory = directory.grown(builder, u64::from(bound)).unwrap();
            let mut pages = BTreeMap::new();
            for _ in 0..random.below(200) {
                pages.insert(random.below(bound), if group > 50 { 0 } else { random.below(1000) });
            }
            if group == 59 {
                pages = model.keys().map(|&number| (number, 0)).collect();
            }
            model.extend(&pages);
            let mut nodes = pages.into_iter().collect();
            directory.make_lowest(builder, &mut nodes).unwrap();
            directory = directory.with(builder, &mut nodes).unwrap();
            for number in 0..bound.min(4096) {
                assert_eq!(directory.page(&arena, number), model.get(&number).copied().unwrap_or(0));
            }
            let mut cursor = Cursor::new(&arena, &nothing_known, directory);
            for (&number, &page) in &model {
                assert_eq!(cursor.page(number), page, "group {group}");
            }
            assert!(model.iter().all(|(&number, &page)| directory.page(&arena, number) == page), "group {group}");
            slots.settle(&stock);
            stock.give_back(retired.drain(..).map(|node| (node.handle, node.num_lines as usize)));
        }
        assert_eq!((directory.root, stock.num_live()), (NOTHING, 0));
    }
}
