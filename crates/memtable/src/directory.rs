//! A shallow tree from page numbers to pages, for versions that outlive the next one.

use crate::Result;
use crate::arena::{Fresh, Handle, LINE_WORDS, Limit, NOTHING, Newest, NodeArena};
use crate::builder::NodeBuilder;
use crate::node::{DIRECTORY_WORDS, FANOUT, FANOUT_BITS, NodeHeader};

/// Number of a new directory on its level, and its node.
pub(crate) type NumberedDirectory = (u32, Handle);

/// Root of the tree, and the number of directories on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    pub(crate) root: Handle,
    pub(crate) height: u32,
}

/// Children of a directory.
#[inline(always)]
pub(crate) fn children(arena: &NodeArena, directory: Handle) -> &[Handle] {
    &arena.words(directory, DIRECTORY_WORDS)[LINE_WORDS..]
}

impl Directory {
    /// A tree without pages.
    pub(crate) fn empty() -> Self {
        Self { root: NOTHING, height: 1 }
    }

    /// Number of pages that the tree can hold.
    pub(crate) fn capacity(&self) -> u64 {
        1 << (u64::from(self.height) * u64::from(FANOUT_BITS))
    }

    /// Page with this number, or [`NOTHING`] if it has no arcs.
    #[inline(always)]
    pub(crate) fn page(&self, arena: &NodeArena, number: u32) -> Handle {
        let mut node = self.root;
        let mut level = self.height;
        while level > 0 {
            level -= 1;
            let index = (number >> (level * FANOUT_BITS)) as usize % FANOUT;
            node = children(arena, node)[index];
        }
        node
    }

    /// Returns the tree with room for at least `num_pages` pages.
    pub(crate) fn grown(mut self, builder: &mut NodeBuilder<'_>, num_pages: u64) -> Result<Self> {
        while self.capacity() < num_pages {
            // A tree without pages grows without a node.
            if self.root != NOTHING {
                let mut fresh = builder.take(DIRECTORY_WORDS)?;
                let words = builder.arena.fill(&mut fresh);
                words[..DIRECTORY_WORDS].fill(0);
                NodeHeader { birth: builder.group, count: 0 }.write(words);
                words[LINE_WORDS] = self.root;
                self.root = fresh.seal();
            }
            self.height += 1;
        }
        Ok(self)
    }

    /// Rewrites the lowest directories with these numbers (ascending), with the pages that the table has for versions
    /// of `limit`.
    pub(crate) fn lowest(
        &self,
        builder: &mut NodeBuilder<'_>,
        (newest, limit): (&Newest, Limit),
        numbers: &[u32],
    ) -> Result<Vec<NumberedDirectory>> {
        // The newest page may be younger than the version; the table then has the page before it.
        let page = |number| newest.page(number, limit).or_else(|| newest.page_before(number, limit));
        let made = numbers.iter().map(|&number| {
            let old = self.ancestor(builder.arena, number, 1);
            let node = replaced(builder, old, |children| {
                for (i, child) in children.iter_mut().enumerate() {
                    if let Some(page) = page((number as usize) << FANOUT_BITS | i) {
                        *child = page;
                    }
                }
            })?;
            Ok((number, node))
        });
        made.collect()
    }

    /// Returns the tree with these lowest directories (ascending by number) in place of the old ones.
    pub(crate) fn with(mut self, builder: &mut NodeBuilder<'_>, mut lowest: Vec<NumberedDirectory>) -> Result<Self> {
        for levels in 2..=self.height {
            self.raise(builder, levels, &mut lowest)?;
        }
        if let Some((_, root)) = lowest.pop() {
            self.root = root;
        }
        Ok(self)
    }

    /// Rewrites the directories above `nodes`, which stand `levels` above the pages.
    fn raise(&self, builder: &mut NodeBuilder<'_>, levels: u32, nodes: &mut Vec<NumberedDirectory>) -> Result<()> {
        let (mut to, mut from) = (0, 0);
        while from < nodes.len() {
            // Nodes ascend, so the children of a parent stand together, and each parent is rewritten once.
            let parent = nodes[from].0 >> FANOUT_BITS;
            let len = nodes[from..].iter().take_while(|(number, _)| number >> FANOUT_BITS == parent).count();
            let old = self.ancestor(builder.arena, parent, levels);
            let new = &nodes[from..from + len];
            let node = replaced(builder, old, |children| {
                new.iter().for_each(|&(number, node)| children[number as usize % FANOUT] = node);
            })?;
            // There are never more parents than children, so the result replaces the input from the front.
            nodes[to] = (parent, node);
            to += 1;
            from += len;
        }
        nodes.truncate(to);
        Ok(())
    }

    /// Directory `levels` above the pages, by its number among those.
    #[inline(always)]
    fn ancestor(&self, arena: &NodeArena, number: u32, levels: u32) -> Handle {
        let mut node = self.root;
        for level in (0..self.height - levels).rev() {
            let index = (number >> (level * FANOUT_BITS)) as usize % FANOUT;
            node = children(arena, node)[index];
        }
        node
    }
}

/// Copies a directory and changes its children. Returns [`NOTHING`] if all of them are.
fn replaced(builder: &mut NodeBuilder<'_>, old: Handle, change: impl FnOnce(&mut [Handle])) -> Result<Handle> {
    let arena = builder.arena;
    let mut fresh: Fresh = builder.take(DIRECTORY_WORDS)?;
    let words = &mut arena.fill(&mut fresh)[..DIRECTORY_WORDS];
    // `NOTHING` leads to zeros, so a missing directory is copied like any other.
    let old_words = arena.words(old, DIRECTORY_WORDS);
    words.copy_from_slice(old_words);
    NodeHeader { birth: builder.group, count: 0 }.write(words);
    let children = &mut words[LINE_WORDS..];
    change(children);
    let is_empty = children.iter().all(|&child| child == NOTHING);
    if old != NOTHING {
        builder.retire(old, NodeHeader::read(old_words).birth, DIRECTORY_WORDS);
    }
    let handle = fresh.seal();
    // No version reaches a node of this group yet, so its lines are free at once.
    if is_empty {
        builder.retire(handle, builder.group, DIRECTORY_WORDS);
        return Ok(NOTHING);
    }
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{FreeLists, WorkerFreeLists};
    use anden_testkit::Random;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn pages_are_found_again_and_directories_come_back() {
        let seed = 0xd1;
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let (arena, [newest]) = NodeArena::reserve(0).unwrap();
        let free_lists = FreeLists::new(&arena);
        let (mut slots, mut retired) = (WorkerFreeLists::default(), Vec::new());
        let mut directory = Directory::empty();
        let mut model = BTreeMap::new();
        for group in 1..60 {
            let builder = &mut NodeBuilder {
                arena: &arena,
                free_lists: &free_lists,
                group,
                slots: &mut slots,
                retired: &mut retired,
            };
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
            let stale: BTreeSet<u32> = pages.keys().map(|number| number >> FANOUT_BITS).collect();
            pages.iter().for_each(|(&number, &page)| newest.set(number as usize, page, group));
            if group % 2 == 0 {
                // The next group has begun.
                pages.keys().for_each(|&number| newest.set(number as usize, 77, group + 1));
            }
            let stale: Vec<u32> = stale.into_iter().collect();
            let lowest = directory.lowest(builder, (&newest, Limit::of(group)), &stale).unwrap();
            directory = directory.with(builder, lowest).unwrap();
            for number in 0..bound.min(4096) {
                assert_eq!(directory.page(&arena, number), model.get(&number).copied().unwrap_or(0));
            }
            assert!(model.iter().all(|(&number, &page)| directory.page(&arena, number) == page), "group {group}");
            for (&number, &page) in &pages {
                newest.set(number as usize, page, group + 1);
            }
            slots.count_taken(&free_lists);
            free_lists.give_back(retired.drain(..).map(|node| (node.handle, node.num_lines as usize)));
        }
        assert_eq!((directory.root, free_lists.num_live()), (NOTHING, 0));
    }
}
