//! Immutable versions of a memtable, as readers hold them.

mod group;
mod seam;
mod verify;

use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;

use anden_base::VertexId;
use anden_graph::GraphKind;

use crate::EntryValue;
use crate::arena::{Handle, Limit, Newest, NodeArena};
use crate::directory::Directory;
use crate::list::Tiers;
use crate::node::{self, Child, LeafNode, ListTier, PAGE_BITS, PAGE_VERTICES, VertexBlock, VertexBlockLayout};
use crate::pins::{EpochSlotId, EpochSlots};
use crate::state::{AdjacencyTable, AdjacencyTableState, NUM_ADJACENCY_TABLES, VersionState, WORDS};

pub use group::ListsOfGroup;

/// State that the writer, the readers and the versions share.
#[derive(Debug)]
pub(crate) struct TerraceShared {
    pub(crate) arena: NodeArena,
    /// Tables of newest pages, by adjacency table.
    pub(crate) newest: [Newest; NUM_ADJACENCY_TABLES],
    pub(crate) epoch_slots: Arc<EpochSlots<WORDS>>,
    pub(crate) tiers: Tiers,
    pub(crate) graph_kind: GraphKind,
    pub(crate) has_in_lists: bool,
}

/// Pins versions. Cheap to clone, and to send to another thread.
#[derive(Debug)]
pub struct Reader<W> {
    pub(crate) shared: Arc<TerraceShared>,
    pub(crate) marker: PhantomData<W>,
}

impl<W> Clone for Reader<W> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), marker: PhantomData }
    }
}

impl<W: EntryValue> Reader<W> {
    /// Pins the newest published version. Takes no lock and never waits for the writer.
    pub fn pin(&self) -> Version<W> {
        let (epoch_slot, words) = self.shared.epoch_slots.pin();
        Version {
            shared: Arc::clone(&self.shared),
            epoch_slot,
            state: VersionState::of_words(words),
            marker: PhantomData,
        }
    }
}

/// One immutable version of a memtable. A clone is as cheap as a pin.
///
/// As a [`anden_graph::Graph`] it shows the lists of [`AdjacencyTable::Out`] and, where they are kept, of
/// [`AdjacencyTable::In`]. All adjacency tables are read through [`lists`](Self::lists).
///
/// Cost: a version keeps the nodes that it reaches and newer ones do not, until its last clone is dropped. It keeps
/// no younger node.
#[derive(Debug)]
pub struct Version<W> {
    shared: Arc<TerraceShared>,
    epoch_slot: EpochSlotId,
    state: VersionState,
    marker: PhantomData<W>,
}

impl<W> Clone for Version<W> {
    fn clone(&self) -> Self {
        self.shared.epoch_slots.pin_again(self.epoch_slot);
        Self { shared: Arc::clone(&self.shared), epoch_slot: self.epoch_slot, state: self.state, marker: PhantomData }
    }
}

impl<W> Drop for Version<W> {
    fn drop(&mut self) {
        self.shared.epoch_slots.unpin(self.epoch_slot);
    }
}

impl<W: EntryValue> Version<W> {
    /// Number of the group that made this version, from 1. The version before the first group has 0.
    pub fn epoch(&self) -> u64 {
        self.state.epoch
    }

    /// Lists of one adjacency table.
    #[inline(always)]
    pub fn lists(&self, adjacency_table: AdjacencyTable) -> Lists<'_, W> {
        Lists {
            arena: &self.shared.arena,
            layout: &self.shared.tiers.layout,
            newest: &self.shared.newest[adjacency_table as usize],
            limit: Limit::of(self.state.epoch),
            adjacency_table,
            version: self,
            num_arcs: self.state.adjacency_tables[adjacency_table as usize].num_arcs,
            num_loops: self.state.adjacency_tables[adjacency_table as usize].num_loops,
            num_vertices: self.state.num_vertices as usize,
        }
    }

    /// Directories of an adjacency table, if they are complete. They stay complete.
    pub(crate) fn directory(&self, adjacency_table: AdjacencyTable) -> Option<Directory> {
        // Read anew each time: the writer may complete the directories while this version is pinned.
        let word = self.shared.epoch_slots.word(self.epoch_slot, VersionState::root_word(adjacency_table));
        AdjacencyTableState::complete_root(word).map(|root| Directory { root, height: self.state.height })
    }
}

/// Lists of one adjacency table of a version.
#[derive(Clone, Copy, Debug)]
pub struct Lists<'a, W> {
    pub(crate) arena: &'a NodeArena,
    pub(crate) layout: &'a VertexBlockLayout,
    newest: &'a Newest,
    limit: Limit,
    adjacency_table: AdjacencyTable,
    version: &'a Version<W>,
    pub(crate) num_arcs: u64,
    pub(crate) num_loops: u64,
    pub(crate) num_vertices: usize,
}

impl<'a, W: EntryValue> Lists<'a, W> {
    /// Number of arcs in all lists.
    pub fn num_arcs(&self) -> u64 {
        self.num_arcs
    }

    /// Number of loops among the arcs.
    pub fn num_loops(&self) -> u64 {
        self.num_loops
    }

    /// Page with this number.
    #[inline(always)]
    fn page(&self, number: u32) -> Handle {
        match self.newest.page(number as usize, self.limit) {
            Some(page) => page,
            None => self.older_page(number),
        }
    }

    /// Page with this number, if the newest one is too young. Out of line, so that [`Self::page`] stays small.
    #[inline(never)]
    fn older_page(&self, number: u32) -> Handle {
        if let Some(page) = self.newest.page_before(number as usize, self.limit) {
            return page;
        }
        // A version that outlived two replacements of a page has complete directories.
        let directory = self.version.directory(self.adjacency_table);
        let Some(directory) = directory else {
            panic!("page {number} of version {} is in no directory", self.version.epoch())
        };
        directory.page(self.arena, number)
    }

    #[inline(always)]
    pub(crate) fn block(&self, vertex: VertexId) -> VertexBlock<'a, W> {
        assert!((vertex as usize) < self.num_vertices, "vertex {vertex} is not below {}", self.num_vertices);
        let page = self.page(vertex >> PAGE_BITS);
        let page = self.arena.words(page, self.layout.page_words());
        self.layout.block(page, vertex as usize % PAGE_VERTICES)
    }

    /// Length of the list of `vertex`.
    ///
    /// # Panics
    /// If `vertex` is not below the bound. This holds for all methods that take a vertex.
    #[inline(always)]
    pub fn degree(&self, vertex: VertexId) -> usize {
        self.block(vertex).degree()
    }

    /// Calls `body` for each fragment of the list of `vertex`, ascending, with the values of its arcs.
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
        block: &VertexBlock<'a, W>,
        body: &mut impl FnMut(&'a [VertexId], &'a [W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (height, children) = match block.home() {
            ListTier::Block => {
                let (targets, values) = block.in_place();
                return body(targets, values);
            }
            // A single leaf needs no loop over children.
            ListTier::Packed(1) => {
                let leaf = LeafNode::<W>::read(self.arena, block.children(1)[0].handle);
                return body(leaf.targets, leaf.values);
            }
            ListTier::Packed(len) => (0, block.children(len)),
            ListTier::Tree(height) => (height, block.children(1)),
        };
        for_each_leaf(self.arena, height, children, body)
    }

    /// Value of the arc from `source` to `target`, or `None` without such an arc.
    pub fn get(&self, source: VertexId, target: VertexId) -> Option<&'a W> {
        let block = self.block(source);
        let (mut height, mut children) = match block.home() {
            ListTier::Block => {
                let (targets, values) = block.in_place();
                // An inline list has at most two cache lines, so a scan beats a search.
                return targets.iter().position(|&entry| entry == target).map(|i| &values[i]);
            }
            ListTier::Packed(len) => (0, block.children(len)),
            ListTier::Tree(height) => (height, block.children(1)),
        };
        loop {
            // A target below all children is absent, and the first leaf says so.
            let index = children.partition_point(|child| child.first <= target).saturating_sub(1);
            let handle = children[index].handle;
            if height == 0 {
                let leaf = LeafNode::<W>::read(self.arena, handle);
                return leaf.targets.binary_search(&target).ok().map(|i| &leaf.values[i]);
            }
            children = node::inner(self.arena, handle).1;
            height -= 1;
        }
    }

    /// Calls `body` with the value of each parallel arc from `source` to `target`, in their order.
    ///
    /// Cost: reads each leaf up to `target`, which makes this slow for long lists.
    pub fn for_each_parallel(&self, source: VertexId, target: VertexId, mut body: impl FnMut(&'a W)) {
        let _ = self.for_each_fragment(source, |targets, values| {
            let first = targets.partition_point(|&entry| entry < target);
            let len = targets[first..].partition_point(|&entry| entry == target);
            values[first..first + len].iter().for_each(&mut body);
            // A larger target follows, so later leaves hold no match.
            if first + len < targets.len() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }

    /// List of `vertex`, if it is one fragment.
    #[inline(always)]
    pub fn single(&self, vertex: VertexId) -> Option<(&'a [VertexId], &'a [W])> {
        self.single_of(&self.block(vertex))
    }

    #[inline(always)]
    fn single_of(&self, block: &VertexBlock<'a, W>) -> Option<(&'a [VertexId], &'a [W])> {
        match block.home() {
            ListTier::Block => Some(block.in_place()),
            ListTier::Packed(1) => {
                let leaf = LeafNode::<W>::read(self.arena, block.children(1)[0].handle);
                Some((leaf.targets, leaf.values))
            }
            _ => None,
        }
    }

    /// First prefetch stage: fetches the table entry of the page of `vertex`.
    #[inline(always)]
    pub fn prefetch(&self, vertex: VertexId) {
        // An adjacency table without arcs has no pages to fetch.
        if self.num_arcs > 0 {
            self.newest.prefetch((vertex >> PAGE_BITS) as usize);
        }
    }

    /// Second prefetch stage: fetches the block of `vertex`.
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

    /// Third prefetch stage: fetches the start of the first leaf of `vertex`, or of the root of its B-tree.
    #[inline(always)]
    pub fn prefetch_list(&self, vertex: VertexId) {
        if self.num_arcs > 0 {
            self.prefetch_leaf(&self.block(vertex));
        }
    }

    #[inline(always)]
    fn prefetch_leaf(&self, block: &VertexBlock<'a, W>) {
        if block.home() == ListTier::Block {
            return;
        }
        let leaf = block.children(1)[0].handle;
        self.arena.prefetch(leaf, 0);
        self.arena.prefetch(leaf, 1);
        // Only in a list of one leaf does the degree tell where the values start.
        if W::WORDS > 0 && block.home() == ListTier::Packed(1) {
            let values = node::values_line::<W>(block.degree());
            self.arena.prefetch(leaf, values);
            self.arena.prefetch(leaf, values + 1);
        }
    }
}

/// Number of lines of the next leaf to prefetch. The processor fetches on from there.
const LINES_AHEAD: usize = 4;

/// Calls `body` for each leaf below `children`, in order.
fn for_each_leaf<'a, W: EntryValue>(
    arena: &'a NodeArena,
    height: usize,
    children: &'a [Child],
    body: &mut impl FnMut(&'a [VertexId], &'a [W]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for (i, child) in children.iter().enumerate() {
        if height > 0 {
            for_each_leaf(arena, height - 1, node::inner(arena, child.handle).1, body)?;
            continue;
        }
        // The next leaf arrives while the body reads this one.
        if let Some(next) = children.get(i + 1) {
            (0..LINES_AHEAD).for_each(|line| arena.prefetch(next.handle, line));
        }
        let leaf = LeafNode::<W>::read(arena, child.handle);
        body(leaf.targets, leaf.values)?;
    }
    ControlFlow::Continue(())
}
