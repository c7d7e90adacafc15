//! How nodes lie in their words.
//!
//! | node | words |
//! | --- | --- |
//! | leaf | head, targets ascending, values at the next multiple of their size |
//! | inner | head, children: first target below, handle |
//! | directory | one line with the head, [`FANOUT`] handles of directories or pages |
//! | page | [`PAGE_VERTICES`] blocks, then the values of the neighbours in place, block by block |
//!
//! A head holds the group that the node was born in, 48 bits, and a count, 16 bits. Nodes are as long
//! as what they hold: a gap would serve a later change in place, and a node that a reader may hold is
//! never changed in place.
//!
//! A block is a cache line (or two): the *body* is the neighbours in place, or leads to where they are;
//! behind it stand the degree, the [`Home`], and a spare word. The spare words of the first two blocks
//! hold the page's birth.

use base::simd::with_ones_from;
use base::{NO_VERTEX, VertexId};
use bytemuck::{Pod, Zeroable};

use crate::Value;
use crate::arena::{Arena, Handle, LINE_WORDS};

/// Vertices whose blocks lie in one page; a power of two.
pub(crate) const PAGE_VERTICES: usize = 1 << PAGE_BITS;
pub(crate) const PAGE_BITS: u32 = 2;
/// Children of a directory.
pub(crate) const FANOUT: usize = 1 << FANOUT_BITS;
pub(crate) const FANOUT_BITS: u32 = 6;
/// Words of a directory.
pub(crate) const DIRECTORY_WORDS: usize = LINE_WORDS + FANOUT;

const HEAD_WORDS: usize = 2;
/// The most children of an inner node, which then has eight lines.
pub(crate) const MAX_CHILDREN: usize = (8 * LINE_WORDS - HEAD_WORDS) / 2;

/// A leaf or an inner node, as its parent knows it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Child {
    /// Every target below is at least this one.
    pub(crate) first: VertexId,
    pub(crate) handle: Handle,
}

/// The birth and the count of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) birth: u64,
    pub(crate) count: usize,
}

impl Head {
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

/// A sorted piece of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaf<'a, W> {
    pub(crate) birth: u64,
    pub(crate) targets: &'a [VertexId],
    pub(crate) values: &'a [W],
}

/// Where the values of a leaf with so many targets start.
#[inline(always)]
fn values_start<W: Value>(len: usize) -> usize {
    (HEAD_WORDS + len).next_multiple_of(W::WORDS.max(1))
}

/// The line of a leaf with so many targets in which its values start.
#[inline(always)]
pub(crate) fn values_line<W: Value>(len: usize) -> usize {
    values_start::<W>(len) / LINE_WORDS
}

/// The words of a leaf with so many targets.
#[inline(always)]
pub(crate) fn leaf_words<W: Value>(len: usize) -> usize {
    values_start::<W>(len) + len * W::WORDS
}

/// The most targets of a leaf of so many words.
pub(crate) fn leaf_capacity<W: Value>(num_words: usize) -> usize {
    (num_words - HEAD_WORDS - W::WORDS.saturating_sub(1)) / (1 + W::WORDS)
}

impl<'a, W: Value> Leaf<'a, W> {
    #[inline(always)]
    pub(crate) fn read(arena: &'a Arena, handle: Handle) -> Self {
        let head = Head::read(arena.words(handle, HEAD_WORDS));
        let words = arena.words(handle, leaf_words::<W>(head.count));
        let targets = &words[HEAD_WORDS..HEAD_WORDS + head.count];
        Self { birth: head.birth, targets, values: W::column(&words[values_start::<W>(head.count)..], head.count) }
    }

    /// The targets and values of a leaf that is being made.
    #[inline(always)]
    pub(crate) fn write(words: &mut [u32], birth: u64, len: usize) -> (&mut [VertexId], &mut [W]) {
        Head { birth, count: len }.write(words);
        let (front, back) = words.split_at_mut(values_start::<W>(len));
        (&mut front[HEAD_WORDS..HEAD_WORDS + len], W::column_mut(back, len))
    }
}

/// An inner node of a B-tree: its birth and children.
#[inline(always)]
pub(crate) fn inner(arena: &Arena, handle: Handle) -> (u64, &[Child]) {
    let head = Head::read(arena.words(handle, HEAD_WORDS));
    let words = arena.words(handle, inner_words(head.count));
    (head.birth, bytemuck::cast_slice(&words[HEAD_WORDS..]))
}

/// The words of an inner node with so many children.
pub(crate) fn inner_words(len: usize) -> usize {
    HEAD_WORDS + 2 * len
}

/// The children of an inner node that is being made.
pub(crate) fn inner_mut(words: &mut [u32], birth: u64, len: usize) -> &mut [Child] {
    Head { birth, count: len }.write(words);
    bytemuck::cast_slice_mut(&mut words[HEAD_WORDS..HEAD_WORDS + 2 * len])
}

/// Where the list of a vertex lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// In the block.
    Block,
    /// In so many leaves, whose [`Child`]ren are in the block.
    Packed(usize),
    /// In a B-tree of this height above its leaves, whose root is in the block.
    Tree(usize),
}

const TREE: u32 = 1 << 16;

impl Home {
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

/// How blocks lie in a page, which the thresholds decide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// 16 or 32.
    block_words: usize,
    /// The shift that multiplies by it.
    block_shift: u32,
    page_words: usize,
}

/// A vertex of a sealed page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a, W> {
    words: &'a [u32],
    in_place: &'a [W],
}

/// The words of a block behind its body.
const TAIL_WORDS: usize = 3;

impl Layout {
    /// Blocks with room for `in_place` neighbours, at most 29.
    pub(crate) fn new<W: Value>(in_place: usize) -> Self {
        let block_shift = if in_place + TAIL_WORDS <= LINE_WORDS { 4 } else { 5 };
        let block_words = 1_usize << block_shift;
        let page_words = PAGE_VERTICES * (block_words + (block_words - TAIL_WORDS) * W::WORDS);
        Self { block_words, block_shift, page_words }
    }

    /// The most neighbours in place.
    #[inline(always)]
    pub(crate) fn body_words(&self) -> usize {
        self.block_words - TAIL_WORDS
    }

    /// The words of a page.
    #[inline(always)]
    pub(crate) fn page_words(&self) -> usize {
        self.page_words
    }

    /// The most leaves of the packed home: their children lie in the body.
    pub(crate) fn max_packed(&self) -> usize {
        self.body_words() / 2
    }

    /// The lines of a page.
    #[inline(always)]
    pub(crate) fn page_lines(&self) -> usize {
        self.page_words.div_ceil(LINE_WORDS)
    }

    /// The first line of a block.
    #[inline(always)]
    pub(crate) fn block_line(&self, index: usize) -> usize {
        (index << self.block_shift) / LINE_WORDS
    }

    /// The line in which the values of the neighbours in place of a block start.
    #[inline(always)]
    pub(crate) fn values_line<W: Value>(&self, index: usize) -> usize {
        self.values_range::<W>(index).start / LINE_WORDS
    }

    /// The group that a page was born in; 0 for the page of zeros.
    pub(crate) fn page_birth(&self, page: &[u32]) -> u64 {
        u64::from(page[self.block_words - 1]) | u64::from(page[2 * self.block_words - 1]) << 32
    }

    /// Marks a page that is being made.
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
    fn values_range<W: Value>(&self, index: usize) -> std::ops::Range<usize> {
        let (start, len) = (PAGE_VERTICES << self.block_shift, self.body_words() * W::WORDS);
        start + index * len..start + (index + 1) * len
    }

    /// Block `index` of a page.
    #[inline(always)]
    pub(crate) fn block<'a, W: Value>(&self, page: &'a [u32], index: usize) -> Block<'a, W> {
        let in_place = W::column(&page[self.values_range::<W>(index)], self.body_words());
        Block { words: &page[self.block_range(index)], in_place }
    }

    /// The body and the values of a block that is being made, after its degree and home were written.
    #[inline(always)]
    pub(crate) fn write_block<'a, W: Value>(
        &self,
        page: &'a mut [u32],
        index: usize,
        degree: usize,
        home: Home,
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

impl<'a, W: Value> Block<'a, W> {
    /// The length of the list.
    #[inline(always)]
    pub(crate) fn degree(&self) -> usize {
        self.words[self.words.len() - TAIL_WORDS] as usize
    }

    #[inline(always)]
    pub(crate) fn home(&self) -> Home {
        Home::of_word(self.words[self.words.len() - TAIL_WORDS + 1])
    }

    /// The list, where its home is the block.
    #[inline(always)]
    pub(crate) fn in_place(&self) -> (&'a [VertexId], &'a [W]) {
        let degree = self.degree();
        (&self.words[..degree], &self.in_place[..degree])
    }

    /// The list, where its home is the block, and behind it numbers that no vertex has; `None` of a block of two lines.
    #[inline(always)]
    pub(crate) fn lanes(&self) -> Option<[VertexId; LINE_WORDS]> {
        const { assert!(NO_VERTEX == u32::MAX) };
        Some(with_ones_from(self.words.try_into().ok()?, self.degree()))
    }

    /// The first `len` children, where the home is another one.
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
            Head { birth, count }.write(&mut words);
            let head = Head::read(&words);
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
        fn check<W: Value>(in_place: usize, block_words: usize, value: impl Fn(u32) -> W) {
            let layout = Layout::new::<W>(in_place);
            let mut page = vec![0; layout.page_words()];
            for i in 0..PAGE_VERTICES {
                let (body, values) = layout.write_block::<W>(&mut page, i, in_place, Home::Block);
                body.fill(i as u32);
                values.fill(value(i as u32));
            }
            layout.set_page_birth(&mut page, 7 << 40);
            assert_eq!((layout.page_birth(&page), layout.block_words), (7 << 40, block_words));
            for i in 0..PAGE_VERTICES {
                let block = layout.block::<W>(&page, i);
                let (targets, values) = block.in_place();
                assert_eq!((block.degree(), block.home()), (in_place, Home::Block));
                assert!(targets.iter().all(|&target| target == i as u32) && targets.len() == in_place);
                assert!(values.iter().all(|&v| v.is_same(&value(i as u32))) && values.len() == in_place);
            }
        }
        check::<()>(13, 16, |_| ());
        check::<u32>(13, 16, |i| i + 1);
        check::<f64>(13, 16, f64::from);
        check::<f32>(29, 32, |i| i as f32);
        for home in [Home::Block, Home::Packed(6), Home::Tree(1), Home::Tree(4)] {
            assert_eq!(Home::of_word(home.word()), home);
        }
    }
}
