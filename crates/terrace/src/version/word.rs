//! The lists of 64 vertices at once.
//!
//! One list after the other, each waits for its block and then for its leaf. Here all blocks are on their way
//! before the first of them is looked at, and so are the leaves.

use std::ops::ControlFlow;

use base::VertexId;
use graph::vertices_of;

use super::Lists;
use crate::Value;
use crate::arena::{Handle, NOTHING};
use crate::node::{Block, PAGE_BITS, PAGE_VERTICES};

/// The pages of 64 vertices.
const PAGES: usize = 64 / PAGE_VERTICES;

/// The lists of one plane for 64 vertices.
#[derive(Clone, Copy, Debug)]
pub struct ListsOfWord<'a, W> {
    lists: Lists<'a, W>,
    word: usize,
    pages: [Handle; PAGES],
}

impl<'a, W: Value> Lists<'a, W> {
    /// The lists of the vertices from `64 * word` on.
    ///
    /// # Panics
    /// If the first of them is not below the bound.
    #[inline]
    pub fn of_word(&self, word: usize) -> ListsOfWord<'a, W> {
        let mut pages = [NOTHING; PAGES];
        if self.num_arcs > 0 {
            let first = word * 64;
            assert!(first < self.num_vertices, "vertex {first} is not below {}", self.num_vertices);
            let number = first >> PAGE_BITS;
            for (i, page) in pages.iter_mut().enumerate() {
                match self.newest.page(number + i, self.limit) {
                    Some(newest) => *page = newest,
                    None => {
                        pages.copy_from_slice(&self.directory.pages_from(self.arena, number as u32)[..PAGES]);
                        break;
                    }
                }
            }
        }
        ListsOfWord { lists: *self, word, pages }
    }
}

impl<'a, W: Value> ListsOfWord<'a, W> {
    #[inline(always)]
    fn page(&self, vertex: VertexId) -> Handle {
        self.pages[vertex as usize / PAGE_VERTICES % PAGES]
    }

    #[inline(always)]
    fn block(&self, vertex: VertexId) -> Block<'a, W> {
        let page = self.lists.arena.words(self.page(vertex), self.lists.layout.page_words());
        self.lists.layout.block(page, vertex as usize % PAGE_VERTICES)
    }

    /// Hints that these of the vertices are looked at soon: by bit, from the first on.
    #[inline]
    pub fn prefetch_places(&self, wanted: u64) {
        if self.lists.num_arcs > 0 {
            for vertex in vertices_of(self.word, wanted) {
                self.lists.prefetch_block(self.page(vertex), vertex as usize % PAGE_VERTICES);
            }
        }
    }

    /// Hints that the lists of these are read soon, whose places were fetched before.
    #[inline]
    pub fn prefetch_lists(&self, wanted: u64) {
        if self.lists.num_arcs > 0 {
            vertices_of(self.word, wanted).for_each(|vertex| self.lists.prefetch_leaf(&self.block(vertex)));
        }
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
