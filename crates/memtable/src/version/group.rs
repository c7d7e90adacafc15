//! Lists of a group of vertices at once.
//!
//! A loop over single lists waits twice for memory: for the block and for the leaf. Here both are prefetched for
//! later vertices of the group.

use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_base::bitmap::ones;
use anden_graph::VertexMask;

use super::Lists;
use crate::EntryValue;
use crate::arena::{Handle, NOTHING};
use crate::node::{PAGE_BITS, PAGE_VERTICES, VertexBlock};

/// Number of pages in a group.
const PAGES: usize = VertexMask::VERTICES / PAGE_VERTICES;

/// Indexes of the pages that hold vertices whose bits are set.
#[inline(always)]
fn pages_with(bits: u64) -> impl Iterator<Item = usize> {
    // One bit for each page: its lowest, the union of its vertices.
    let any = (0..PAGE_VERTICES).fold(0, |any, i| any | bits >> i);
    ones(any & (!0 / ((1 << PAGE_VERTICES) - 1))).map(|bit| bit / PAGE_VERTICES)
}

/// Lists of one adjacency table for the vertices of a group.
#[derive(Debug)]
pub struct ListsOfGroup<'a, W> {
    lists: Lists<'a, W>,
    pages: [Handle; PAGES],
}

impl<'a, W: EntryValue> Lists<'a, W> {
    /// Finds the pages of the wanted lists.
    ///
    /// # Panics
    /// If a wanted vertex has no vertex below the bound in its aligned block of 64.
    #[inline]
    pub fn of_group(&self, wanted: &VertexMask) -> ListsOfGroup<'a, W> {
        let mut pages = [NOTHING; PAGES];
        // Without arcs, all pages stay `NOTHING`.
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

impl<'a, W: EntryValue> ListsOfGroup<'a, W> {
    #[inline(always)]
    fn page(&self, vertex: VertexId) -> Handle {
        self.pages[vertex as usize / PAGE_VERTICES % PAGES]
    }

    #[inline(always)]
    fn block(&self, vertex: VertexId) -> VertexBlock<'a, W> {
        let page = self.lists.arena.words(self.page(vertex), self.lists.layout.page_words());
        self.lists.layout.block(page, vertex as usize % PAGE_VERTICES)
    }

    /// Fetches the block of a vertex of the group.
    #[inline(always)]
    pub fn prefetch_place(&self, vertex: VertexId) {
        self.lists.prefetch_block(self.page(vertex), vertex as usize % PAGE_VERTICES);
    }

    /// Fetches the start of the first leaf or of the B-tree of a list whose block was fetched before.
    #[inline(always)]
    pub fn prefetch_list(&self, vertex: VertexId) {
        self.lists.prefetch_leaf(&self.block(vertex));
    }

    /// As [`Lists::single`], for a vertex of the group.
    #[inline(always)]
    pub fn single(&self, vertex: VertexId) -> Option<(&'a [VertexId], &'a [W])> {
        self.lists.single_of(&self.block(vertex))
    }

    /// As [`Lists::for_each_fragment`], for a vertex of the group.
    #[inline(always)]
    pub fn for_each_fragment(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&'a [VertexId], &'a [W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.lists.for_each_fragment_of(&self.block(vertex), &mut body)
    }
}
