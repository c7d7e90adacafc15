//! Push or pull, list or bitmap.

use std::sync::atomic::{AtomicU64, Ordering};

use base::VertexId;
use graph::{InEdges, Side};

use super::FAR;
use crate::vertex_subset::{LIST_CHUNK, Members, VertexSubset};
use crate::walk::READ_BYTES;
use crate::{Context, Error, Result};

/// Who decides between push and pull. Where a graph has no in-edges, everything is pushed.
#[derive(Debug, Default)]
pub enum Policy<'a> {
    /// Ligra's rule: the frontier is large if its vertices and out-edges together are more than a
    /// twentieth of the arcs, and then pulled.
    #[default]
    Ligra,
    /// Beamer's rule, for searches that visit each vertex once; the search keeps the state.
    Beamer(&'a mut Beamer),
    /// Always push; a frontier that is large by Ligra's rule as a bitmap, a small one as a list.
    Push,
    /// Always pull.
    Pull,
}

/// A frontier is large if its vertices and edges are more than the arcs divided by this (Ligra,
/// section 4.2).
const LARGE_DIVISOR: u64 = 20;

/// A list that lies alone on a disk takes at least the time of so many arcs.
const ARCS_OF_A_READ: u64 = READ_BYTES / size_of::<VertexId>() as u64;

/// The state of Beamer's rule in one search.
///
/// A search begins to pull when the frontier's edges are more than 1/`alpha` of those that lead out
/// of unvisited vertices, and pushes again when the frontier shrinks below 1/`beta` of the vertices.
///
/// Where lists come from a disk, they are read whole however early a target is done: there a search pulls if that reads
/// no more.
#[derive(Clone, Debug)]
pub struct Beamer {
    alpha: u64,
    beta: u64,
    unvisited_arcs: u64,
    num_visited: u64,
    pulling: bool,
    previous_len: usize,
}

impl Beamer {
    /// The values that GAP's reference implementation settled on.
    pub const ALPHA: u64 = 15;
    /// As [`ALPHA`](Self::ALPHA).
    pub const BETA: u64 = 18;

    /// The state at the start of a search on a graph with `num_arcs` arcs.
    pub fn new(num_arcs: u64) -> Self {
        let (alpha, beta) = (Self::ALPHA, Self::BETA);
        Self { alpha, beta, unvisited_arcs: num_arcs, num_visited: 0, pulling: false, previous_len: 0 }
    }

    /// The same with other thresholds; both must be at least 1.
    pub fn with_thresholds(mut self, alpha: u64, beta: u64) -> Self {
        (self.alpha, self.beta) = (alpha.max(1), beta.max(1));
        self
    }

    fn pulls(&mut self, num_vertices: usize, len: usize, frontier_arcs: impl FnOnce() -> u64) -> bool {
        if self.pulling {
            self.pulling = len >= self.previous_len || len as u64 > num_vertices as u64 / self.beta;
        } else {
            let arcs = frontier_arcs();
            self.pulling = arcs > self.unvisited_arcs / self.alpha;
            self.unvisited_arcs = self.unvisited_arcs.saturating_sub(arcs);
        }
        self.previous_len = len;
        self.pulling
    }

    /// Where lists come from a disk, of a graph and a frontier of so many vertices and arcs.
    fn pulls_from_disk(&mut self, (num_vertices, num_arcs): (u64, u64), (len, frontier_arcs): (u64, u64)) -> bool {
        self.unvisited_arcs = self.unvisited_arcs.saturating_sub(frontier_arcs);
        self.num_visited += len;
        let read = |len: u64, arcs: u64| num_arcs.min(arcs + len * ARCS_OF_A_READ);
        // Lists without arcs are not read.
        let num_unvisited = num_vertices.saturating_sub(self.num_visited).min(self.unvisited_arcs);
        self.pulling = read(len, frontier_arcs) >= read(num_unvisited, self.unvisited_arcs);
        self.pulling
    }
}

/// How one call visits the edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    SparsePush,
    DensePush,
    Pull,
}

impl Policy<'_> {
    pub(super) fn choose<G: InEdges>(&mut self, ctx: &Context<'_>, graph: &G, frontier: &VertexSubset) -> Result<Form> {
        let large = || {
            let limit = graph.num_arcs() / LARGE_DIVISOR;
            let len = frontier.len() as u64;
            len > limit || len + out_arcs(ctx, graph, frontier) > limit
        };
        let pull = |is_better: bool| if is_better { Form::Pull } else { Form::SparsePush };
        let push = |is_large: bool| if is_large { Form::DensePush } else { Form::SparsePush };
        if !graph.has_in_edges() {
            return match self {
                Self::Pull => Err(Error::Unsupported { kernel: "edge map by pull", needs: "in-edges" }),
                _ => Ok(push(large())),
            };
        }
        Ok(match self {
            Self::Pull => Form::Pull,
            Self::Push => push(large()),
            Self::Ligra if large() => Form::Pull,
            Self::Ligra => Form::SparsePush,
            Self::Beamer(state) if ctx.reads_from_disk(graph) => {
                let all = (graph.num_vertices() as u64, graph.num_arcs());
                pull(state.pulls_from_disk(all, (frontier.len() as u64, out_arcs(ctx, graph, frontier))))
            }
            Self::Beamer(state) => {
                pull(state.pulls(graph.num_vertices(), frontier.len(), || out_arcs(ctx, graph, frontier)))
            }
        })
    }
}

/// About the number of edges that leave the frontier.
pub(super) fn out_arcs<G: InEdges>(ctx: &Context<'_>, graph: &G, frontier: &VertexSubset) -> u64 {
    // One counter a worker, far enough apart that they do not share a cache line.
    #[repr(align(128))]
    struct Counter(AtomicU64);
    let counters: Vec<Counter> = (0..ctx.pool.num_threads()).map(|_| Counter(AtomicU64::new(0))).collect();
    let add = |worker: usize, v: VertexId| {
        let count = &counters[worker].0;
        count.store(count.load(Ordering::Relaxed) + graph.rough_out_degree(v) as u64, Ordering::Relaxed);
    };
    match frontier.members() {
        Members::Sparse(list) => ctx.pool.for_each_chunk(0..list.len(), LIST_CHUNK, |worker, chunk| {
            for index in chunk {
                if let Some(&ahead) = list.get(index + FAR) {
                    graph.prefetch_rough_degree(Side::Out, ahead);
                }
                add(worker, list[index]);
            }
        }),
        Members::All | Members::Dense(..) => frontier.for_each(ctx.pool, add),
    }
    counters.iter().map(|c| c.0.load(Ordering::Relaxed)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Medium;

    #[test]
    fn a_search_pulls_while_the_frontier_is_large() {
        let mut beamer = Beamer::new(1500);
        let mut pulls = |len, arcs| beamer.pulls(180, len, || arcs);
        assert!(!pulls(1, 100)); // exactly a fifteenth
        assert!(pulls(5, 94)); // of the 1400 left, a little more
        assert!(pulls(4 + 20, 0)); // growing
        assert!(pulls(11, 0)); // more than an eighteenth of the vertices
        assert!(!pulls(10, 1));
    }

    #[test]
    fn a_medium_that_is_chosen_decides_the_rule() {
        let pool = base::parallel::Pool::new(1).unwrap();
        let csr = testkit::graphs().into_iter().find(|graph| graph.name == "path").unwrap().build().unwrap();
        let heard = testkit::Pieces::new(&csr);
        // One arc of many is not worth a pull; from a disk, all lists are one read.
        for (medium, plain, listened_to) in [
            (Medium::Auto, Form::SparsePush, Form::Pull),
            (Medium::Memory, Form::SparsePush, Form::SparsePush),
            (Medium::Disk, Form::Pull, Form::Pull),
        ] {
            fn choose(ctx: &Context<'_>, graph: &impl InEdges) -> Form {
                let mut beamer = Beamer::new(graph.num_arcs());
                let frontier = VertexSubset::single(graph.vertex_bound(), 0);
                Policy::Beamer(&mut beamer).choose(ctx, graph, &frontier).unwrap()
            }
            let ctx = Context { medium, ..Context::new(&pool) };
            assert_eq!((choose(&ctx, &csr), choose(&ctx, &heard)), (plain, listened_to), "{medium:?}");
        }
    }

    #[test]
    fn a_search_from_a_disk_takes_the_way_that_reads_less() {
        const ALL: (u64, u64) = (1_000_000, 100_000_000);
        let pulls = |levels: &[(u64, u64)]| {
            let mut beamer = Beamer::new(ALL.1);
            levels.iter().map(|&level| beamer.pulls_from_disk(ALL, level)).collect::<Vec<_>>()
        };
        // Hubs with most of the arcs are read alone; those that they lead to would be everything, and few are left.
        assert_eq!(pulls(&[(1, 50), (20_000, 70_000_000), (970_000, 29_999_000)]), [false, false, true]);
        // As much either way.
        assert_eq!(pulls(&[(1, 50), (400_000, 70_000_000)]), [false, true]);
        // Of 20,000 that are left all but 100 have no arcs.
        assert_eq!(pulls(&[(970_000, 99_990_000), (10_000, 9_900)]), [true, true]);
        // Long and thin.
        assert_eq!(pulls(&[(3, 6); 5]), [false; 5]);
    }
}
