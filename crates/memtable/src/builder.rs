//! Makes nodes in the running group, and retires the nodes that they replace.

use crate::arena::{FreeLists, Fresh, Handle, LINE_WORDS, NodeArena, WorkerFreeLists};
use crate::limbo_list::Retired;
use crate::node::{self, Child, LeafNode};
use crate::{EntryValue, Result};

/// Prefetch distance in nodes of one size, and the maximum number of lines for each.
const SLOTS_AHEAD: usize = 3;
const MAX_LINES_AHEAD: usize = 8;

/// Context of one worker for making nodes.
#[derive(Debug)]
pub(crate) struct NodeBuilder<'a> {
    pub(crate) arena: &'a NodeArena,
    pub(crate) free_lists: &'a FreeLists,
    /// The running group, which is the birth of new nodes.
    pub(crate) group: u64,
    pub(crate) slots: &'a mut WorkerFreeLists,
    pub(crate) retired: &'a mut Vec<Retired>,
}

impl<'a> NodeBuilder<'a> {
    /// Takes lines for a node of `num_words` words.
    #[inline(always)]
    pub(crate) fn take(&mut self, num_words: usize) -> Result<Fresh> {
        let num_lines = num_words.div_ceil(LINE_WORDS);
        let fresh = self.slots.take(self.free_lists, num_lines)?;
        // The slot of a later node arrives in the cache while this node is written.
        if let Some(next) = self.slots.upcoming(num_lines, SLOTS_AHEAD) {
            (0..num_lines.min(MAX_LINES_AHEAD)).for_each(|line| self.arena.prefetch(next, line));
        }
        Ok(fresh)
    }

    /// Retires a node that the next version does not reach. If no version reaches it, a new node may take its lines
    /// at once, so the caller must have finished reading it.
    #[inline(always)]
    pub(crate) fn retire(&mut self, handle: Handle, birth: u64, num_words: usize) {
        let num_lines = num_words.div_ceil(LINE_WORDS);
        if birth == self.group {
            // Born in this group, so no version reaches it.
            self.slots.put_back(handle, num_lines);
        } else {
            self.retired.push(Retired { birth, handle, num_lines: num_lines as u32 });
        }
    }

    /// Makes a leaf with `len` targets. `write` fills it in.
    #[inline(always)]
    pub(crate) fn leaf<W: EntryValue>(
        &mut self,
        len: usize,
        write: impl FnOnce(&mut [u32], &mut [W]),
    ) -> Result<Handle> {
        let mut fresh = self.take(node::leaf_words::<W>(len))?;
        let (targets, values) = LeafNode::write(self.arena.fill(&mut fresh), self.group, len);
        write(targets, values);
        Ok(fresh.seal())
    }

    #[inline(always)]
    pub(crate) fn retire_leaf<W: EntryValue>(&mut self, handle: Handle, leaf: &LeafNode<'_, W>) {
        self.retire(handle, leaf.birth, node::leaf_words::<W>(leaf.targets.len()));
    }

    /// Makes an inner node over `children`.
    pub(crate) fn inner(&mut self, children: &[Child]) -> Result<Child> {
        let mut fresh = self.take(node::inner_words(children.len()))?;
        let words = self.arena.fill(&mut fresh);
        node::inner_mut(words, self.group, children.len()).copy_from_slice(children);
        Ok(Child { first: children[0].first, handle: fresh.seal() })
    }

    /// Retires an inner node and appends its children to `into`.
    pub(crate) fn open_inner(&mut self, handle: Handle, into: &mut Vec<Child>) {
        let (birth, children) = node::inner(self.arena, handle);
        into.extend_from_slice(children);
        self.retire(handle, birth, node::inner_words(children.len()));
    }
}
