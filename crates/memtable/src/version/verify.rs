//! Checks a whole version against the rules of its nodes.

use std::collections::HashSet;

use anden_base::VertexId;

use super::{Lists, Version};
use crate::EntryValue;
use crate::arena::{Handle, LINE_WORDS, NOTHING, NodeArena, slot_lines};
use crate::directory;
use crate::fragments::{Bounds, MIN_CHILDREN};
use crate::list::Tiers;
use crate::node::{
    self, Child, DIRECTORY_WORDS, FANOUT_BITS, LeafNode, ListTier, MAX_CHILDREN, NodeHeader, PAGE_VERTICES, VertexBlock,
};
use crate::state::AdjacencyTable;

impl<W: EntryValue> Version<W> {
    /// Checks the whole version and returns the bytes of all its nodes:
    /// - Lists ascend, stay below the bound, and live in the tier for their length.
    /// - Nodes are neither too long nor empty, and counts are right.
    /// - No node has two parents or is younger than the version.
    /// - Complete directories lead to the pages of the version.
    ///
    /// Cost: reads all nodes; for tests and diagnosis.
    ///
    /// # Errors
    /// A description of the first violation and its place.
    pub fn verify(&self) -> Result<u64, String> {
        let mut walk = VersionVerifier {
            arena: &self.shared.arena,
            tiers: &self.shared.tiers,
            epoch: self.state.epoch,
            num_vertices: self.state.num_vertices,
            seen: HashSet::new(),
            num_lines: 0,
            num_arcs: 0,
            num_loops: 0,
        };
        for adjacency_table in
            [AdjacencyTable::Out, AdjacencyTable::In, AdjacencyTable::OutRemoved, AdjacencyTable::InRemoved]
        {
            (walk.num_arcs, walk.num_loops) = (0, 0);
            let lists = self.lists(adjacency_table);
            for number in 0..lists.num_vertices.div_ceil(PAGE_VERTICES) as u64 {
                let page = lists.page(number as u32);
                if page != NOTHING {
                    walk.page::<W>(page, number)?;
                }
            }
            if let Some(directory) = self.directory(adjacency_table) {
                walk.directory(&lists, directory.root, directory.height, 0)?;
            }
            let state = self.state.adjacency_tables[adjacency_table as usize];
            let expected = (state.num_arcs, state.num_loops);
            if (walk.num_arcs, walk.num_loops) != expected {
                let found = (walk.num_arcs, walk.num_loops);
                return Err(format!("{adjacency_table:?}: {found:?} arcs and loops found, {expected:?} counted"));
            }
        }
        Ok((walk.num_lines * LINE_WORDS * size_of::<u32>()) as u64)
    }
}

struct VersionVerifier<'a> {
    arena: &'a NodeArena,
    tiers: &'a Tiers,
    epoch: u64,
    num_vertices: u64,
    seen: HashSet<Handle>,
    num_lines: usize,
    num_arcs: u64,
    num_loops: u64,
}

fn require(is_so: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(what()) }
}

impl<'a> VersionVerifier<'a> {
    fn enter(&mut self, handle: Handle, birth: u64, num_words: usize) -> Result<(), String> {
        self.num_lines += slot_lines(num_words);
        require(birth <= self.epoch, || format!("node {handle} was born in {birth}, after {}", self.epoch))?;
        require(self.seen.insert(handle), || format!("node {handle} has two parents"))
    }

    fn directory<W: EntryValue>(
        &mut self,
        lists: &Lists<'_, W>,
        handle: Handle,
        height: u32,
        number: u64,
    ) -> Result<(), String> {
        if height == 0 {
            let first = number * PAGE_VERTICES as u64;
            let known = if first < self.num_vertices { lists.page(number as u32) } else { NOTHING };
            return require(known == handle, || format!("page {number} is {known}, and directories lead to {handle}"));
        }
        if handle == NOTHING {
            // A missing directory must not hide a page.
            let pages = number << (FANOUT_BITS * height)..(number + 1) << (FANOUT_BITS * height);
            let mut pages = pages.take_while(|page| page * (PAGE_VERTICES as u64) < self.num_vertices);
            let is_empty = pages.all(|page| lists.page(page as u32) == NOTHING);
            return require(is_empty, || format!("directory {number} of height {height} is missing"));
        }
        let head = NodeHeader::read(self.arena.words(handle, DIRECTORY_WORDS));
        self.enter(handle, head.birth, DIRECTORY_WORDS)?;
        let children = directory::children(self.arena, handle);
        require(children.iter().any(|&child| child != NOTHING), || format!("directory {handle} is empty"))?;
        for (i, &child) in children.iter().enumerate() {
            self.directory(lists, child, height - 1, number << FANOUT_BITS | i as u64)?;
        }
        Ok(())
    }

    fn page<W: EntryValue>(&mut self, handle: Handle, number: u64) -> Result<(), String> {
        let layout = &self.tiers.layout;
        let words = self.arena.words(handle, layout.page_words());
        self.enter(handle, layout.page_birth(words), layout.page_words())?;
        let before = self.num_arcs;
        for i in 0..PAGE_VERTICES {
            let vertex = number * PAGE_VERTICES as u64 + i as u64;
            let block = layout.block::<W>(words, i);
            require(block.degree() == 0 || vertex < self.num_vertices, || format!("{vertex} is not below the bound"))?;
            self.list(vertex as VertexId, &block).map_err(|what| format!("list of {vertex}: {what}"))?;
        }
        require(self.num_arcs > before, || format!("page {number} is empty"))
    }

    fn list<W: EntryValue>(&mut self, vertex: VertexId, block: &VertexBlock<'a, W>) -> Result<(), String> {
        let (degree, home, tiers) = (block.degree(), block.home(), self.tiers);
        let fits = match home {
            ListTier::Block => degree <= tiers.in_place,
            ListTier::Packed(len) => {
                degree > tiers.in_place && degree <= tiers.packed && (1..=tiers.layout.max_packed()).contains(&len)
            }
            ListTier::Tree(height) => height > 0 && degree > tiers.in_place.max(tiers.packed / 2),
        };
        require(fits, || format!("{degree} entries do not belong to {home:?}"))?;
        let mut targets = Vec::with_capacity(degree);
        match home {
            ListTier::Block => targets.extend_from_slice(block.in_place().0),
            ListTier::Packed(len) => {
                let bounds = tiers.packed_bounds;
                let children = block.children(len);
                self.leaves::<W>(children, bounds, &mut targets)?;
                require(len == 1 || targets.len() >= len * bounds.min, || format!("{len} leaves of {degree}"))?;
            }
            ListTier::Tree(height) => {
                let root = &block.children(1)[0];
                self.tree::<W>(height, root, Some(degree), &mut targets)?;
            }
        }
        require(targets.len() == degree, || format!("{} entries where there should be {degree}", targets.len()))?;
        let ascends = |pair: &[VertexId]| pair[0] < pair[1] || tiers.multigraph && pair[0] == pair[1];
        require(targets.windows(2).all(ascends), || "it does not ascend".into())?;
        let is_below = targets.last().is_none_or(|&last| u64::from(last) < self.num_vertices);
        require(is_below, || "an entry is not below the bound".into())?;
        self.num_arcs += degree as u64;
        self.num_loops += targets.iter().filter(|&&target| target == vertex).count() as u64;
        Ok(())
    }

    /// Checks an inner node and all nodes below it. `degree` is given for the root of a list.
    fn tree<W: EntryValue>(
        &mut self,
        height: usize,
        root: &Child,
        degree: Option<usize>,
        targets: &mut Vec<VertexId>,
    ) -> Result<(), String> {
        let (birth, children) = node::inner(self.arena, root.handle);
        self.enter(root.handle, birth, node::inner_words(children.len()))?;
        let least = if degree.is_some() { 1 } else { MIN_CHILDREN };
        require((least..=MAX_CHILDREN).contains(&children.len()), || format!("{} children", children.len()))?;
        require(children[0].first == root.first, || "a parent does not know its first child".into())?;
        if height == 1 {
            // A list that moved up from packed arrays keeps its longer leaves until they change.
            let max = self.tiers.tree_bounds.max.max(self.tiers.packed_bounds.max);
            self.leaves::<W>(children, Bounds::up_to(max), targets)?;
            let min = self.tiers.tree_bounds.min.min(degree.unwrap_or(usize::MAX));
            let mut lens = children.iter().map(|child| LeafNode::<W>::read(self.arena, child.handle).targets.len());
            return lens.try_for_each(|len| require(len >= min, || format!("a leaf with only {len} entries")));
        }
        children.iter().try_for_each(|child| self.tree::<W>(height - 1, child, None, targets))
    }

    fn leaves<W: EntryValue>(
        &mut self,
        children: &[Child],
        bounds: Bounds,
        targets: &mut Vec<VertexId>,
    ) -> Result<(), String> {
        for (i, child) in children.iter().enumerate() {
            let leaf = LeafNode::<W>::read(self.arena, child.handle);
            let len = leaf.targets.len();
            self.enter(child.handle, leaf.birth, node::leaf_words::<W>(len))?;
            require((1..=bounds.max).contains(&len), || format!("a leaf with {len} entries"))?;
            let end = children.get(i + 1).map_or(u64::MAX, |next| u64::from(next.first));
            let last = u64::from(leaf.targets[len - 1]);
            let is_between = leaf.targets[0] >= child.first && (last < end || self.tiers.multigraph && last == end);
            require(is_between, || format!("leaf {i} is not between its neighbors"))?;
            targets.extend_from_slice(leaf.targets);
        }
        Ok(())
    }
}
