//! What is added up over all lists of a side; none of it depends on the order of the edges.

use std::path::Path;

use base::VertexId;
use base::parallel::Pool;
use graph::{Direction, Graph};

use super::CHUNK_PAGES;
use crate::Result;
use crate::chain::Version;
use crate::changes::{ArcData, Entries};
use crate::options::GraphOptions;
use crate::patched::WholePage;
use crate::side::Side;
use crate::table::PAGE_VERTICES;
use crate::view::View;

/// Sums over the entries of lists; what is removed is subtracted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    num_arcs: u64,
    num_loops: u64,
    /// Entries whose target is not larger than their vertex.
    num_not_ascending: u64,
    /// A hash of all (vertex, target, row, weight).
    forward: u64,
    /// A hash of all (target, vertex, row, weight).
    backward: u64,
}

impl Sums {
    /// Those of an entry.
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
        self.with(other, u64::wrapping_add)
    }

    pub fn minus(self, other: Self) -> Self {
        self.with(other, u64::wrapping_sub)
    }

    /// Those of entries of one list.
    pub fn of_list(vertex: VertexId, entries: Entries<'_>) -> Self {
        let targets = entries.targets.iter().enumerate();
        targets.fold(Self::default(), |sums, (place, &target)| sums.plus(Self::of(vertex, target, entries.data(place))))
    }

    /// Those of a page.
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

    /// Those of all lists of a side, as readers of the view get them.
    pub fn of_side(side: &Side, view: &View, path: &Path, pool: &Pool) -> Result<Self> {
        let has_dead = view.num_vertices() < view.vertex_bound();
        let results = pool.map_chunks(0..side.num_pages(), CHUNK_PAGES, |_, pages| -> Result<Self> {
            let mut sums = Self::default();
            for page in pages {
                let whole = side.whole_page(page)?;
                let of_page = Self::of_page(page, &whole, |vertex| has_dead && !view.is_live(vertex));
                sums = sums.plus(of_page.map_err(|what| base::Error::corrupt(path, 0, what))?);
            }
            Ok(sums)
        });
        results.into_iter().try_fold(Self::default(), |all, sums| Ok(all.plus(sums?)))
    }

    /// What is wrong with a version whose out-lists have these sums, and its in-lists those.
    pub fn fault(&self, in_sums: Option<&Self>, version: &Version, options: &GraphOptions) -> Option<&'static str> {
        let is_undirected = options.direction == Direction::Undirected;
        let num_edges = if is_undirected { self.num_arcs.wrapping_add(self.num_loops) / 2 } else { self.num_arcs };
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

/// Mixes an edge so that sums over different sets of edges differ.
#[inline]
fn hash(source: VertexId, target: VertexId, ArcData { row, weight }: ArcData) -> u64 {
    let data = weight.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ row.wrapping_mul(0xa076_1d64_78bd_642f);
    let mut z = (u64::from(source) << 32 | u64::from(target)) ^ data;
    z = (z ^ (z >> 32)).wrapping_mul(0xbea2_25f9_eb34_556d);
    z = (z ^ (z >> 29)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    z ^ (z >> 32)
}
