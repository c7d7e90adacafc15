//! What readers hold: one version of the graph, which never changes.

mod group;
mod seam;
mod verify;

use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;

use base::VertexId;
use graph::Direction;

use crate::Value;
use crate::arena::{Arena, Handle, Limit, Newest};
use crate::directory::Directory;
use crate::list::Tiers;
use crate::node::{self, Block, Child, Home, Layout, Leaf, PAGE_BITS, PAGE_VERTICES};
use crate::pins::{SeatId, Seats};
use crate::state::{NUM_PLANES, Plane, PlaneState, State, WORDS};

pub use group::ListsOfGroup;

/// What the writer, the readers and the versions share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) arena: Arena,
    /// By plane.
    pub(crate) newest: [Newest; NUM_PLANES],
    pub(crate) seats: Arc<Seats<WORDS>>,
    pub(crate) tiers: Tiers,
    pub(crate) direction: Direction,
    pub(crate) has_in_lists: bool,
}

/// Pins versions. Cheap to clone, and to send to another thread.
#[derive(Debug)]
pub struct Reader<W> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) marker: PhantomData<W>,
}

impl<W> Clone for Reader<W> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), marker: PhantomData }
    }
}

impl<W: Value> Reader<W> {
    /// The version that was published last. Takes no lock and waits for nobody.
    pub fn pin(&self) -> Version<W> {
        let (seat, words) = self.shared.seats.pin();
        Version { shared: Arc::clone(&self.shared), seat, state: State::of_words(words), marker: PhantomData }
    }
}

/// One version of a live graph; it never changes. A clone is as cheap as a pin.
///
/// As a [`graph::Graph`] it shows the lists of [`Plane::Out`] and, where there are, of [`Plane::In`]; all
/// planes are read through [`lists`](Self::lists).
///
/// What it costs: the nodes that this version reaches and newer ones do not are kept until the last
/// clone is dropped; nothing that was made later is.
#[derive(Debug)]
pub struct Version<W> {
    shared: Arc<Shared>,
    seat: SeatId,
    state: State,
    marker: PhantomData<W>,
}

impl<W> Clone for Version<W> {
    fn clone(&self) -> Self {
        self.shared.seats.pin_again(self.seat);
        Self { shared: Arc::clone(&self.shared), seat: self.seat, state: self.state, marker: PhantomData }
    }
}

impl<W> Drop for Version<W> {
    fn drop(&mut self) {
        self.shared.seats.unpin(self.seat);
    }
}

impl<W: Value> Version<W> {
    /// The number of the group that made this version, counted from 1; 0 before the first.
    pub fn epoch(&self) -> u64 {
        self.state.epoch
    }

    /// The lists of a plane.
    #[inline(always)]
    pub fn lists(&self, plane: Plane) -> Lists<'_, W> {
        Lists {
            arena: &self.shared.arena,
            layout: &self.shared.tiers.layout,
            newest: &self.shared.newest[plane as usize],
            limit: Limit::of(self.state.epoch),
            plane,
            version: self,
            num_arcs: self.state.planes[plane as usize].num_arcs,
            num_loops: self.state.planes[plane as usize].num_loops,
            num_vertices: self.state.num_vertices as usize,
        }
    }

    /// The directories of a plane, where they are made: they stay then.
    pub(crate) fn directory(&self, plane: Plane) -> Option<Directory> {
        let word = self.shared.seats.word(self.seat, State::root_word(plane));
        PlaneState::complete_root(word).map(|root| Directory { root, height: self.state.height })
    }
}

/// The lists of one plane of a version.
#[derive(Clone, Copy, Debug)]
pub struct Lists<'a, W> {
    pub(crate) arena: &'a Arena,
    pub(crate) layout: &'a Layout,
    newest: &'a Newest,
    limit: Limit,
    plane: Plane,
    version: &'a Version<W>,
    pub(crate) num_arcs: u64,
    pub(crate) num_loops: u64,
    pub(crate) num_vertices: usize,
}

impl<'a, W: Value> Lists<'a, W> {
    /// Entries of all lists.
    pub fn num_arcs(&self) -> u64 {
        self.num_arcs
    }

    /// Those of them that lead from a vertex to itself.
    pub fn num_loops(&self) -> u64 {
        self.num_loops
    }

    /// The page with this number.
    #[inline(always)]
    fn page(&self, number: u32) -> Handle {
        match self.newest.page(number as usize, self.limit) {
            Some(page) => page,
            None => self.older_page(number),
        }
    }

    /// The same where the newest page is too young.
    #[inline(never)]
    fn older_page(&self, number: u32) -> Handle {
        if let Some(page) = self.newest.page_before(number as usize, self.limit) {
            return page;
        }
        let directory = self.version.directory(self.plane);
        let Some(directory) = directory else {
            panic!("page {number} of version {} is in no directory", self.version.epoch())
        };
        directory.page(self.arena, number)
    }

    #[inline(always)]
    pub(crate) fn block(&self, vertex: VertexId) -> Block<'a, W> {
        assert!((vertex as usize) < self.num_vertices, "vertex {vertex} is not below {}", self.num_vertices);
        let page = self.page(vertex >> PAGE_BITS);
        let page = self.arena.words(page, self.layout.page_words());
        self.layout.block(page, vertex as usize % PAGE_VERTICES)
    }

    /// The length of the list of `vertex`.
    ///
    /// # Panics
    /// If `vertex` is not below the bound; so do all methods that take a vertex.
    #[inline(always)]
    pub fn degree(&self, vertex: VertexId) -> usize {
        self.block(vertex).degree()
    }

    /// Calls `body` with the list of `vertex`, piece by piece, ascending, each with the values beside it.
    #[inline(always)]
    pub fn for_each_fragment(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&'a [VertexId], &'a [W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.for_each_fragment_of(&self.block(vertex), &mut body)
    }

    #[inline(always)]
    fn for_each_fragment_of(
        &self,
        block: &Block<'a, W>,
        body: &mut impl FnMut(&'a [VertexId], &'a [W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (height, children) = match block.home() {
            Home::Block => {
                let (targets, values) = block.in_place();
                return body(targets, values);
            }
            Home::Packed(1) => {
                let leaf = Leaf::<W>::read(self.arena, block.children(1)[0].handle);
                return body(leaf.targets, leaf.values);
            }
            Home::Packed(len) => (0, block.children(len)),
            Home::Tree(height) => (height, block.children(1)),
        };
        for_each_leaf(self.arena, height, children, body)
    }

    /// What stands beside the edge from `source` to `target`; `None` where there is no such edge.
    pub fn get(&self, source: VertexId, target: VertexId) -> Option<&'a W> {
        let block = self.block(source);
        let (mut height, mut children) = match block.home() {
            Home::Block => {
                let (targets, values) = block.in_place();
                return targets.iter().position(|&entry| entry == target).map(|i| &values[i]);
            }
            Home::Packed(len) => (0, block.children(len)),
            Home::Tree(height) => (height, block.children(1)),
        };
        loop {
            let index = children.partition_point(|child| child.first <= target).saturating_sub(1);
            let handle = children[index].handle;
            if height == 0 {
                let leaf = Leaf::<W>::read(self.arena, handle);
                return leaf.targets.binary_search(&target).ok().map(|i| &leaf.values[i]);
            }
            children = node::inner(self.arena, handle).1;
            height -= 1;
        }
    }

    /// Calls `body` with what stands beside each of the edges from `source` to `target`, of which a multigraph may have
    /// several, in their order.
    ///
    /// Cost: a look at each leaf of a long list.
    pub fn for_each_parallel(&self, source: VertexId, target: VertexId, mut body: impl FnMut(&'a W)) {
        let _ = self.for_each_fragment(source, |targets, values| {
            let first = targets.partition_point(|&entry| entry < target);
            let len = targets[first..].partition_point(|&entry| entry == target);
            values[first..first + len].iter().for_each(&mut body);
            if first + len < targets.len() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }

    /// The list of `vertex` where it lies in one piece.
    #[inline(always)]
    pub fn single(&self, vertex: VertexId) -> Option<(&'a [VertexId], &'a [W])> {
        self.single_of(&self.block(vertex))
    }

    #[inline(always)]
    fn single_of(&self, block: &Block<'a, W>) -> Option<(&'a [VertexId], &'a [W])> {
        match block.home() {
            Home::Block => Some(block.in_place()),
            Home::Packed(1) => {
                let leaf = Leaf::<W>::read(self.arena, block.children(1)[0].handle);
                Some((leaf.targets, leaf.values))
            }
            _ => None,
        }
    }

    /// Hints that the list of `vertex` is looked for soon.
    #[inline(always)]
    pub fn prefetch(&self, vertex: VertexId) {
        if self.num_arcs > 0 {
            self.newest.prefetch((vertex >> PAGE_BITS) as usize);
        }
    }

    /// Hints the same, once what the first hint asked for is there.
    #[inline(always)]
    pub fn prefetch_place(&self, vertex: VertexId) {
        if self.num_arcs > 0 {
            let page = self.page(vertex >> PAGE_BITS);
            self.prefetch_block(page, vertex as usize % PAGE_VERTICES);
        }
    }

    #[inline(always)]
    fn prefetch_block(&self, page: Handle, index: usize) {
        self.arena.prefetch(page, self.layout.block_line(index));
        if W::WORDS > 0 {
            self.arena.prefetch(page, self.layout.values_line::<W>(index));
        }
    }

    /// Hints that the list of `vertex`, where it is by now known, is read soon.
    #[inline(always)]
    pub fn prefetch_list(&self, vertex: VertexId) {
        if self.num_arcs > 0 {
            self.prefetch_leaf(&self.block(vertex));
        }
    }

    #[inline(always)]
    fn prefetch_leaf(&self, block: &Block<'a, W>) {
        if block.home() == Home::Block {
            return;
        }
        let leaf = block.children(1)[0].handle;
        self.arena.prefetch(leaf, 0);
        self.arena.prefetch(leaf, 1);
        if W::WORDS > 0 && block.home() == Home::Packed(1) {
            let values = node::values_line::<W>(block.degree());
            self.arena.prefetch(leaf, values);
            self.arena.prefetch(leaf, values + 1);
        }
    }
}

/// Lines of the next leaf that are fetched ahead; the processor goes on from there.
const LINES_AHEAD: usize = 4;

/// Calls `body` with the leaves below `children` in order.
fn for_each_leaf<'a, W: Value>(
    arena: &'a Arena,
    height: usize,
    children: &'a [Child],
    body: &mut impl FnMut(&'a [VertexId], &'a [W]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for (i, child) in children.iter().enumerate() {
        if height > 0 {
            for_each_leaf(arena, height - 1, node::inner(arena, child.handle).1, body)?;
            continue;
        }
        if let Some(next) = children.get(i + 1) {
            (0..LINES_AHEAD).for_each(|line| arena.prefetch(next.handle, line));
        }
        let leaf = Leaf::<W>::read(arena, child.handle);
        body(leaf.targets, leaf.values)?;
    }
    ControlFlow::Continue(())
}
