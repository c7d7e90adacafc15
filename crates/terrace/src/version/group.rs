//! The lists of a group at once.
//!
//! One list after the other, each waits for its block and then for its leaf. Here blocks are on their way before
//! they are looked at, and so are leaves.

use std::ops::ControlFlow;

use base::VertexId;
use base::bitmap::ones;
use graph::WantedLists;

use super::Lists;
use crate::Value;
use crate::arena::{Handle, NOTHING};
use crate::node::{Block, PAGE_BITS, PAGE_VERTICES};

/// The pages of a group.
const PAGES: usize = WantedLists::VERTICES / PAGE_VERTICES;

/// The pages of vertices whose bits are set.
#[inline(always)]
fn pages_with(bits: u64) -> impl Iterator<Item = usize> {
    let any = (0..PAGE_VERTICES).fold(0, |any, i| any | bits >> i);
    ones(any & (!0 / ((1 << PAGE_VERTICES) - 1))).map(|bit| bit / PAGE_VERTICES)
}

/// The lists of one plane for vertices of a group.
#[derive(Debug)]
pub struct ListsOfGroup<'a, W> {
    lists: Lists<'a, W>,
    pages: [Handle; PAGES],
}

impl<'a, W: Value> Lists<'a, W> {
    /// The lists of these vertices.
    ///
    /// # Panics
    /// If one of them is not near a vertex below the bound.
    #[inline]
    pub fn of_group(&self, wanted: &WantedLists) -> ListsOfGroup<'a, W> {
        let mut pages = [NOTHING; PAGES];
        if self.num_arcs > 0 {
            for (word, bits) in wanted.words() {
                let first = word * 64;
                assert!(first < self.num_vertices, "vertex {first} is not below {}", self.num_vertices);
                let number = first >> PAGE_BITS;
                pages_with(bits).for_each(|i| pages[(number + i) % PAGES] = self.page((number + i) as u32));
            }
        }
        ListsOfGroup { lists: *self, pages }
    }
}

impl<'a, W: Value> ListsOfGroup<'a, W> {
    #[inline(always)]
    fn page(&self, vertex: VertexId) -> Handle {
        self.pages[vertex as usize / PAGE_VERTICES % PAGES]
    }

    #[inline(always)]
    fn block(&self, vertex: VertexId) -> Block<'a, W> {
        let page = self.lists.arena.words(self.page(vertex), self.lists.layout.page_words());
        self.lists.layout.block(page, vertex as usize % PAGE_VERTICES)
    }

    /// Hints that one of the vertices is looked at soon.
    #[inline(always)]
    pub fn prefetch_place(&self, vertex: VertexId) {
        self.lists.prefetch_block(self.page(vertex), vertex as usize % PAGE_VERTICES);
    }

    /// Hints that the list of one is read soon, whose place was fetched before.
    #[inline(always)]
    pub fn prefetch_list(&self, vertex: VertexId) {
        self.lists.prefetch_leaf(&self.block(vertex));
    }

    /// As [`Lists::single`], for one of the vertices.
    #[inline(always)]
    pub fn single(&self, vertex: VertexId) -> Option<(&'a [VertexId], &'a [W])> {
        self.lists.single_of(&self.block(vertex))
    }

    /// As [`Lists::for_each_fragment`], for one of the vertices.
    #[inline(always)]
    pub fn for_each_fragment(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&'a [VertexId], &'a [W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.lists.for_each_fragment_of(&self.block(vertex), &mut body)
    }
}
