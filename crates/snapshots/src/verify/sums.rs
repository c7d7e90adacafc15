//! Sums over all lists of one direction, independent of the order of the edges.

use std::path::Path;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_graph::{Graph, GraphKind};

use super::CHUNK_PAGES;
use crate::Result;
use crate::adjacency::AdjacencyView;
use crate::chain::ChainVersion;
use crate::changes::{ArcData, ListEntries};
use crate::options::GraphOptions;
use crate::page::WholePage;
use crate::table::PAGE_VERTICES;
use crate::view::SnapshotView;

/// Sums over the entries of lists; removed entries are subtracted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AdjacencySums {
    num_arcs: u64,
    num_loops: u64,
    /// Number of entries whose target is not larger than the list's vertex.
    num_not_ascending: u64,
    /// Hash of all (vertex, target, row, weight).
    forward: u64,
    /// Hash of all (target, vertex, row, weight).
    backward: u64,
}

impl AdjacencySums {
    /// The sums of one entry.
    fn of(source: VertexId, target: VertexId, data: ArcData) -> Self {
        Self {
            num_arcs: 1,
            num_loops: u64::from(source == target),
            num_not_ascending: u64::from(target <= source),
            forward: hash(source, target, data),
            backward: hash(target, source, data),
        }
    }

    fn with(self, other: Self, sum: fn(u64, u64) -> u64) -> Self {
        Self {
            num_arcs: sum(self.num_arcs, other.num_arcs),
            num_loops: sum(self.num_loops, other.num_loops),
            num_not_ascending: sum(self.num_not_ascending, other.num_not_ascending),
            forward: sum(self.forward, other.forward),
            backward: sum(self.backward, other.backward),
        }
    }

    pub fn plus(self, other: Self) -> Self {
        // Sums wrap, so removals can be subtracted in any order.
        self.with(other, u64::wrapping_add)
    }

    pub fn minus(self, other: Self) -> Self {
        self.with(other, u64::wrapping_sub)
    }

    /// The sums of entries of one list.
    pub fn of_list(vertex: VertexId, entries: ListEntries<'_>) -> Self {
        let targets = entries.targets.iter().enumerate();
        targets.fold(Self::default(), |sums, (place, &target)| sums.plus(Self::of(vertex, target, entries.data(place))))
    }

    /// The sums of a page.
    pub fn of_page(page: usize, whole: &WholePage, is_dead: impl Fn(VertexId) -> bool) -> Result<Self, String> {
        let first = (page * PAGE_VERTICES) as VertexId;
        let mut sums = Self::default();
        for (index, ends) in whole.offsets.windows(2).enumerate() {
            let vertex = first.wrapping_add(index as VertexId);
            let list = whole.entries.all().slice(ends[0] as usize..ends[1] as usize);
            if let Some(dead) = list.targets.iter().find(|&&target| is_dead(target) || is_dead(vertex)) {
                return Err(format!("there is an edge between {vertex} and {dead}, one of which is no vertex"));
            }
            sums = sums.plus(Self::of_list(vertex, list));
        }
        Ok(sums)
    }

    /// The sums of all lists of one direction, as readers of the view get them.
    pub fn of_lists(lists: &AdjacencyView, view: &SnapshotView, path: &Path, pool: &Pool) -> Result<Self> {
        let has_dead = view.num_vertices() < view.vertex_bound();
        let results = pool.map_chunks(0..lists.num_pages(), CHUNK_PAGES, |_, pages| -> Result<Self> {
            let mut sums = Self::default();
            for page in pages {
                let whole = lists.whole_page(page)?;
                let of_page = Self::of_page(page, &whole, |vertex| has_dead && !view.is_live(vertex));
                sums = sums.plus(of_page.map_err(|what| anden_base::Error::corrupt(path, 0, what))?);
            }
            Ok(sums)
        });
        results.into_iter().try_fold(Self::default(), |all, sums| Ok(all.plus(sums?)))
    }

    /// The first fault of a version whose out-lists have these sums, and whose in-lists have `in_sums`.
    pub fn fault(
        &self,
        in_sums: Option<&Self>,
        version: &ChainVersion,
        options: &GraphOptions,
    ) -> Option<&'static str> {
        let is_undirected = options.graph_kind == GraphKind::Undirected;
        let num_edges = if is_undirected { self.num_arcs.wrapping_add(self.num_loops) / 2 } else { self.num_arcs };
        // The out-lists hash each edge forward, the in-lists backward: equal sets of edges have equal sums.
        let is_reverse = |sums: &Self| (sums.num_arcs, sums.backward) == (self.num_arcs, self.forward);
        let faults = [
            (self.num_arcs != version.num_arcs, "degrees do not add up to the number of entries"),
            (num_edges != version.num_edges, "the number of edges is not that of the lists"),
            (is_undirected && self.forward != self.backward, "the lists of an undirected graph are not symmetric"),
            (options.ordered && self.num_not_ascending > 0, "an edge of an ordered graph leads to its smaller end"),
            (!in_sums.is_none_or(is_reverse), "in-lists are not the reverse of out-lists"),
        ];
        faults.iter().find(|(is_fault, _)| *is_fault).map(|(_, what)| *what)
    }
}

/// Mixes an edge, so that sums over different sets of edges differ.
#[inline]
fn hash(source: VertexId, target: VertexId, ArcData { row, weight }: ArcData) -> u64 {
    // Row and weight are mixed in, so that an edge with another weight changes the sums.
    let data = weight.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ row.wrapping_mul(0xa076_1d64_78bd_642f);
    let mut z = (u64::from(source) << 32 | u64::from(target)) ^ data;
    z = (z ^ (z >> 32)).wrapping_mul(0xbea2_25f9_eb34_556d);
    z = (z ^ (z >> 29)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    z ^ (z >> 32)
}
