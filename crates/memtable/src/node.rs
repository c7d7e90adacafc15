//! Layout of nodes in words.
//!
//! | node | words |
//! | --- | --- |
//! | leaf | head, targets ascending, values at the next multiple of their size |
//! | inner | head, children: first target below, handle |
//! | directory | one line with the head, [`FANOUT`] handles of directories or pages |
//! | page | [`PAGE_VERTICES`] blocks, then the values of the inline lists, block by block |
//!
//! A head holds the node's birth (the epoch of its group, 48 bits) and a count (16 bits). Nodes have no gaps: a gap
//! only helps insertion in place, and a node that a reader may hold never changes.
//!
//! A block is one or two cache lines. Its *body* holds the inline list, or leads to its leaves. Behind the body stand
//! the degree, the tier ([`ListTier`]) and a spare word. The spare words of the first two blocks hold the birth of the
//! page.

use anden_base::simd::with_ones_from;
use anden_base::{NO_VERTEX, VertexId};
use bytemuck::{Pod, Zeroable};

use crate::EntryValue;
use crate::arena::{Handle, LINE_WORDS, NodeArena};

/// Number of vertices in a page; a power of two.
pub(crate) const PAGE_VERTICES: usize = 1 << PAGE_BITS;
pub(crate) const PAGE_BITS: u32 = 2;
/// Number of children in a directory.
pub(crate) const FANOUT: usize = 1 << FANOUT_BITS;
pub(crate) const FANOUT_BITS: u32 = 6;
/// Number of words in a directory.
pub(crate) const DIRECTORY_WORDS: usize = LINE_WORDS + FANOUT;

const HEAD_WORDS: usize = 2;
/// Maximum number of children of an inner node, which then has eight lines.
pub(crate) const MAX_CHILDREN: usize = (8 * LINE_WORDS - HEAD_WORDS) / 2;

/// A leaf or inner node, as its parent stores it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Child {
    /// Lower bound of all targets below.
    pub(crate) first: VertexId,
    pub(crate) handle: Handle,
}

/// Birth and count of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeHeader {
    pub(crate) birth: u64,
    pub(crate) count: usize,
}

impl NodeHeader {
    #[inline(always)]
    pub(crate) fn read(words: &[u32]) -> Self {
        let birth = u64::from(words[0]) | u64::from(words[1] & 0xffff) << 32;
        Self { birth, count: (words[1] >> 16) as usize }
    }

    #[inline(always)]
    pub(crate) fn write(self, words: &mut [u32]) {
        debug_assert!(self.count < 1 << 16 && self.birth < 1 << 48);
        words[0] = self.birth as u32;
        words[1] = (self.birth >> 32) as u32 | (self.count as u32) << 16;
    }
}

/// A sorted fragment of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafNode<'a, W> {
    pub(crate) birth: u64,
    pub(crate) targets: &'a [VertexId],
    pub(crate) values: &'a [W],
}

/// Index of the first value word in a leaf with `len` targets.
#[inline(always)]
fn values_start<W: EntryValue>(len: usize) -> usize {
    (HEAD_WORDS + len).next_multiple_of(W::WORDS.max(1))
}

/// Line in which the values of a leaf with `len` targets start.
#[inline(always)]
pub(crate) fn values_line<W: EntryValue>(len: usize) -> usize {
    values_start::<W>(len) / LINE_WORDS
}

/// Number of words in a leaf with `len` targets.
#[inline(always)]
pub(crate) fn leaf_words<W: EntryValue>(len: usize) -> usize {
    values_start::<W>(len) + len * W::WORDS
}

/// Maximum number of targets in a leaf of `num_words` words.
pub(crate) fn leaf_capacity<W: EntryValue>(num_words: usize) -> usize {
    // `WORDS - 1` is the longest padding before the values.
    (num_words - HEAD_WORDS - W::WORDS.saturating_sub(1)) / (1 + W::WORDS)
}

impl<'a, W: EntryValue> LeafNode<'a, W> {
    #[inline(always)]
    pub(crate) fn read(arena: &'a NodeArena, handle: Handle) -> Self {
        let head = NodeHeader::read(arena.words(handle, HEAD_WORDS));
        let words = arena.words(handle, leaf_words::<W>(head.count));
        let targets = &words[HEAD_WORDS..HEAD_WORDS + head.count];
        Self { birth: head.birth, targets, values: W::column(&words[values_start::<W>(head.count)..], head.count) }
    }

    /// Writes the head of a new leaf, and returns its targets and values for writing.
    #[inline(always)]
    pub(crate) fn write(words: &mut [u32], birth: u64, len: usize) -> (&mut [VertexId], &mut [W]) {
        NodeHeader { birth, count: len }.write(words);
        let (front, back) = words.split_at_mut(values_start::<W>(len));
        (&mut front[HEAD_WORDS..HEAD_WORDS + len], W::column_mut(back, len))
    }
}

/// Birth and children of an inner node of a B-tree.
#[inline(always)]
pub(crate) fn inner(arena: &NodeArena, handle: Handle) -> (u64, &[Child]) {
    let head = NodeHeader::read(arena.words(handle, HEAD_WORDS));
    let words = arena.words(handle, inner_words(head.count));
    (head.birth, bytemuck::cast_slice(&words[HEAD_WORDS..]))
}

/// Number of words in an inner node with `len` children.
pub(crate) fn inner_words(len: usize) -> usize {
    HEAD_WORDS + 2 * len
}

/// Writes the head of a new inner node, and returns its children for writing.
pub(crate) fn inner_mut(words: &mut [u32], birth: u64, len: usize) -> &mut [Child] {
    NodeHeader { birth, count: len }.write(words);
    bytemuck::cast_slice_mut(&mut words[HEAD_WORDS..HEAD_WORDS + 2 * len])
}

/// Tier of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListTier {
    /// Inline in the block.
    Block,
    /// This many leaves, whose [`Child`] entries are in the block.
    Packed(usize),
    /// A B-tree of this height above its leaves, whose root is in the block.
    Tree(usize),
}

const TREE: u32 = 1 << 16;

impl ListTier {
    #[inline(always)]
    fn of_word(word: u32) -> Self {
        match word {
            0 => Self::Block,
            word if word < TREE => Self::Packed(word as usize),
            word => Self::Tree((word - TREE) as usize),
        }
    }

    #[inline(always)]
    fn word(self) -> u32 {
        match self {
            Self::Block => 0,
            Self::Packed(num_leaves) => num_leaves as u32,
            Self::Tree(height) => TREE + height as u32,
        }
    }
}

/// Layout of the blocks in a page. The length of inline lists decides it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VertexBlockLayout {
    /// 16 or 32.
    block_words: usize,
    /// Binary logarithm of `block_words`.
    block_shift: u32,
    page_words: usize,
}

/// A vertex of a sealed page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VertexBlock<'a, W> {
    words: &'a [u32],
    in_place: &'a [W],
}

/// Number of words in a block behind its body.
const TAIL_WORDS: usize = 3;

impl VertexBlockLayout {
    /// Layout for inline lists of up to `in_place` arcs, at most 29.
    pub(crate) fn new<W: EntryValue>(in_place: usize) -> Self {
        let block_shift = if in_place + TAIL_WORDS <= LINE_WORDS { 4 } else { 5 };
        let block_words = 1_usize << block_shift;
        let page_words = PAGE_VERTICES * (block_words + (block_words - TAIL_WORDS) * W::WORDS);
        Self { block_words, block_shift, page_words }
    }

    /// Number of words in a body, which bounds the length of inline lists.
    #[inline(always)]
    pub(crate) fn body_words(&self) -> usize {
        self.block_words - TAIL_WORDS
    }

    /// Number of words in a page.
    #[inline(always)]
    pub(crate) fn page_words(&self) -> usize {
        self.page_words
    }

    /// Maximum number of leaves of a packed list. Their children fill the body.
    pub(crate) fn max_packed(&self) -> usize {
        self.body_words() / 2
    }

    /// Number of lines in a page.
    #[inline(always)]
    pub(crate) fn page_lines(&self) -> usize {
        self.page_words.div_ceil(LINE_WORDS)
    }

    /// First line of a block.
    #[inline(always)]
    pub(crate) fn block_line(&self, index: usize) -> usize {
        (index << self.block_shift) / LINE_WORDS
    }

    /// Line in which the values of a block's inline list start.
    #[inline(always)]
    pub(crate) fn values_line<W: EntryValue>(&self, index: usize) -> usize {
        self.values_range::<W>(index).start / LINE_WORDS
    }

    /// Birth of a page; 0 for the page of zeros.
    pub(crate) fn page_birth(&self, page: &[u32]) -> u64 {
        u64::from(page[self.block_words - 1]) | u64::from(page[2 * self.block_words - 1]) << 32
    }

    /// Sets the birth of a new page.
    pub(crate) fn set_page_birth(&self, page: &mut [u32], birth: u64) {
        page[self.block_words - 1] = birth as u32;
        page[2 * self.block_words - 1] = (birth >> 32) as u32;
    }

    #[inline(always)]
    fn block_range(&self, index: usize) -> std::ops::Range<usize> {
        let start = index << self.block_shift;
        start..start + self.block_words
    }

    #[inline(always)]
    fn values_range<W: EntryValue>(&self, index: usize) -> std::ops::Range<usize> {
        let (start, len) = (PAGE_VERTICES << self.block_shift, self.body_words() * W::WORDS);
        start + index * len..start + (index + 1) * len
    }

    /// Block `index` of a page.
    #[inline(always)]
    pub(crate) fn block<'a, W: EntryValue>(&self, page: &'a [u32], index: usize) -> VertexBlock<'a, W> {
        let in_place = W::column(&page[self.values_range::<W>(index)], self.body_words());
        VertexBlock { words: &page[self.block_range(index)], in_place }
    }

    /// Writes degree and tier of a block in a new page. Returns its body and values for writing.
    #[inline(always)]
    pub(crate) fn write_block<'a, W: EntryValue>(
        &self,
        page: &'a mut [u32],
        index: usize,
        degree: usize,
        home: ListTier,
    ) -> (&'a mut [u32], &'a mut [W]) {
        let (blocks, values) = page.split_at_mut(PAGE_VERTICES << self.block_shift);
        let range = self.block_range(index);
        let (body, tail) = blocks[range].split_at_mut(self.body_words());
        tail[0] = degree as u32;
        tail[1] = home.word();
        let len = self.body_words();
        (body, W::column_mut(&mut values[index * len * W::WORDS..], len))
    }
}

impl<'a, W: EntryValue> VertexBlock<'a, W> {
    /// Length of the list.
    #[inline(always)]
    pub(crate) fn degree(&self) -> usize {
        self.words[self.words.len() - TAIL_WORDS] as usize
    }

    #[inline(always)]
    pub(crate) fn home(&self) -> ListTier {
        ListTier::of_word(self.words[self.words.len() - TAIL_WORDS + 1])
    }

    /// The list, if it is inline.
    #[inline(always)]
    pub(crate) fn in_place(&self) -> (&'a [VertexId], &'a [W]) {
        let degree = self.degree();
        (&self.words[..degree], &self.in_place[..degree])
    }

    /// The inline list, padded with [`NO_VERTEX`], or `None` for blocks of two lines.
    #[inline(always)]
    pub(crate) fn lanes(&self) -> Option<[VertexId; LINE_WORDS]> {
        const { assert!(NO_VERTEX == u32::MAX) };
        Some(with_ones_from(self.words.try_into().ok()?, self.degree()))
    }

    /// The first `len` children, if the list is not inline.
    #[inline(always)]
    pub(crate) fn children(&self, len: usize) -> &'a [Child] {
        bytemuck::cast_slice(&self.words[..2 * len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_keep_births_and_counts() {
        let mut words = [0; 2];
        for (birth, count) in [(0, 0), (u64::from(u32::MAX) + 5, 1022), ((1 << 48) - 1, (1 << 16) - 1)] {
            NodeHeader { birth, count }.write(&mut words);
            let head = NodeHeader::read(&words);
            assert_eq!((head.birth, head.count), (birth, count));
        }
    }

    #[test]
    fn leaves_fill_their_words() {
        assert_eq!((leaf_capacity::<()>(1024), leaf_words::<()>(1022)), (1022, 1024));
        assert_eq!((leaf_capacity::<u32>(1024), leaf_words::<u32>(511)), (511, 1024));
        let capacity = leaf_capacity::<f64>(1024);
        assert!((1018..=1024).contains(&leaf_words::<f64>(capacity)), "{capacity}");
        assert_eq!(values_start::<f64>(3), 6);
    }

    #[test]
    fn blocks_of_a_page_do_not_touch() {
        fn check<W: EntryValue>(in_place: usize, block_words: usize, value: impl Fn(u32) -> W) {
            let layout = VertexBlockLayout::new::<W>(in_place);
            let mut page = vec![0; layout.page_words()];
            for i in 0..PAGE_VERTICES {
                let (body, values) = layout.write_block::<W>(&mut page, i, in_place, ListTier::Block);
                body.fill(i as u32);
                values.fill(value(i as u32));
            }
            layout.set_page_birth(&mut page, 7 << 40);
            assert_eq!((layout.page_birth(&page), layout.block_words), (7 << 40, block_words));
            for i in 0..PAGE_VERTICES {
                let block = layout.block::<W>(&page, i);
                let (targets, values) = block.in_place();
                assert_eq!((block.degree(), block.home()), (in_place, ListTier::Block));
                assert!(targets.iter().all(|&target| target == i as u32) && targets.len() == in_place);
                assert!(values.iter().all(|&v| v.is_same(&value(i as u32))) && values.len() == in_place);
            }
        }
        check::<()>(13, 16, |_| ());
        check::<u32>(13, 16, |i| i + 1);
        check::<f64>(13, 16, f64::from);
        check::<f32>(29, 32, |i| i as f32);
        for home in [ListTier::Block, ListTier::Packed(6), ListTier::Tree(1), ListTier::Tree(4)] {
            assert_eq!(ListTier::of_word(home.word()), home);
        }
    }
}
