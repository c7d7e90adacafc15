//! Makes nodes in the group that is being applied, and retires those that they replace.

use crate::arena::{Arena, Fresh, Handle, LINE_WORDS, Slots, Stock};
use crate::graveyard::Retired;
use crate::node::{self, Child, Leaf};
use crate::{Result, Value};

/// Slots are fetched so many nodes of their size before they are written, and so many lines of each.
const SLOTS_AHEAD: usize = 3;
const MAX_LINES_AHEAD: usize = 8;

/// What one worker needs to make nodes.
#[derive(Debug)]
pub(crate) struct Builder<'a> {
    pub(crate) arena: &'a Arena,
    pub(crate) stock: &'a Stock,
    /// The group that is being applied.
    pub(crate) group: u64,
    pub(crate) slots: &'a mut Slots,
    pub(crate) retired: &'a mut Vec<Retired>,
}

impl<'a> Builder<'a> {
    /// A node of so many words.
    #[inline(always)]
    pub(crate) fn take(&mut self, num_words: usize) -> Result<Fresh> {
        let num_lines = num_words.div_ceil(LINE_WORDS);
        let fresh = self.slots.take(self.stock, num_lines)?;
        if let Some(next) = self.slots.upcoming(num_lines, SLOTS_AHEAD) {
            (0..num_lines.min(MAX_LINES_AHEAD)).for_each(|line| self.arena.prefetch(next, line));
        }
        Ok(fresh)
    }

    /// The version that is being made does not lead to this node. If no version does, the next node may lie
    /// there: whoever reads it finishes first.
    #[inline(always)]
    pub(crate) fn retire(&mut self, handle: Handle, birth: u64, num_words: usize) {
        let num_lines = num_words.div_ceil(LINE_WORDS);
        if birth == self.group {
            // No version ever led to it.
            self.slots.put_back(handle, num_lines);
        } else {
            self.retired.push(Retired { birth, handle, num_lines: num_lines as u32 });
        }
    }

    /// A leaf with `len` targets, which `write` fills in.
    #[inline(always)]
    pub(crate) fn leaf<W: Value>(&mut self, len: usize, write: impl FnOnce(&mut [u32], &mut [W])) -> Result<Handle> {
        let mut fresh = self.take(node::leaf_words::<W>(len))?;
        let (targets, values) = Leaf::write(self.arena.fill(&mut fresh), self.group, len);
        write(targets, values);
        Ok(fresh.seal())
    }

    #[inline(always)]
    pub(crate) fn retire_leaf<W: Value>(&mut self, handle: Handle, leaf: &Leaf<'_, W>) {
        self.retire(handle, leaf.birth, node::leaf_words::<W>(leaf.targets.len()));
    }

    /// An inner node over `children`.
    pub(crate) fn inner(&mut self, children: &[Child]) -> Result<Child> {
        let mut fresh = self.take(node::inner_words(children.len()))?;
        let words = self.arena.fill(&mut fresh);
        node::inner_mut(words, self.group, children.len()).copy_from_slice(children);
        Ok(Child { first: children[0].first, handle: fresh.seal() })
    }

    /// Retires an inner node; its children go to `into`.
    pub(crate) fn open_inner(&mut self, handle: Handle, into: &mut Vec<Child>) {
        let (birth, children) = node::inner(self.arena, handle);
        into.extend_from_slice(children);
        self.retire(handle, birth, node::inner_words(children.len()));
    }
}
