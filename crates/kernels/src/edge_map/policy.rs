//! The choice between push and pull, list and bitmap.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::VertexId;
use anden_graph::{Direction, Graph, PrefetchStage};

use super::FAR;
use crate::vertex_subset::{LIST_CHUNK, Members, VertexSubset};
use crate::walk::READ_BYTES;
use crate::{Context, Error, Result};

/// The rule that decides between push and pull. A graph without in-edges is always pushed.
#[derive(Debug, Default)]
pub enum Policy<'a> {
    /// Ligra's rule: pull if the vertices and out-edges of the frontier exceed a twentieth of the arcs.
    #[default]
    Ligra,
    /// Beamer's rule, for searches that visit each vertex once. The search owns the state.
    Beamer(&'a mut Beamer),
    /// Always push: a large frontier by Ligra's rule as a bitmap, a small one as a list.
    Push,
    /// Always pull.
    Pull,
}

/// A frontier is large if its vertices and edges exceed the arcs divided by this (Ligra, section 4.2).
const LARGE_DIVISOR: u64 = 20;

/// The most edges of a frontier that one thread pushes alone. Without other workers, a push needs no atomic updates and
/// no cuts of lists, which saves more than a second thread would.
const SERIAL_ARCS: u64 = 4096;

/// A list that lies alone on a disk takes at least the time of this many arcs.
const ARCS_OF_A_READ: u64 = READ_BYTES / size_of::<VertexId>() as u64;

/// The state of Beamer's rule in one search.
///
/// A search begins to pull when the frontier's edges exceed 1/`alpha` of the edges of unvisited vertices. The search
/// pushes again when the frontier shrinks below 1/`beta` of the vertices.
///
/// Lists from a disk are read whole, however early a target is done. So a search from a disk pulls if a pull reads no
/// more.
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
    /// Default of GAP's reference implementation.
    pub const ALPHA: u64 = 15;
    /// Default of GAP's reference implementation.
    pub const BETA: u64 = 18;

    /// The state at the start of a search on a graph with `num_arcs` arcs.
    pub fn new(num_arcs: u64) -> Self {
        let (alpha, beta) = (Self::ALPHA, Self::BETA);
        Self { alpha, beta, unvisited_arcs: num_arcs, num_visited: 0, pulling: false, previous_len: 0 }
    }

    /// Sets other thresholds. Values below 1 count as 1.
    pub fn with_thresholds(mut self, alpha: u64, beta: u64) -> Self {
        (self.alpha, self.beta) = (alpha.max(1), beta.max(1));
        self
    }

    fn pulls(&mut self, num_vertices: usize, len: usize, frontier_arcs: impl FnOnce() -> u64) -> bool {
        if self.pulling {
            self.pulling = len >= self.previous_len || len as u64 > num_vertices as u64 / self.beta;
        } else {
            // Summed only here: in a run of pulls, the length of the frontier decides.
            let arcs = frontier_arcs();
            self.pulling = arcs > self.unvisited_arcs / self.alpha;
            // Rough degrees may sum to more than the arcs of the graph.
            self.unvisited_arcs = self.unvisited_arcs.saturating_sub(arcs);
        }
        self.previous_len = len;
        self.pulling
    }

    /// Whether a search from a disk pulls, given the sizes of the graph and of the frontier.
    fn pulls_from_disk(&mut self, (num_vertices, num_arcs): (u64, u64), (len, frontier_arcs): (u64, u64)) -> bool {
        self.unvisited_arcs = self.unvisited_arcs.saturating_sub(frontier_arcs);
        self.num_visited += len;
        // A scan of the whole file reads no more than all arcs.
        let read = |len: u64, arcs: u64| num_arcs.min(arcs + len * ARCS_OF_A_READ);
        // Empty lists are not read.
        let num_unvisited = num_vertices.saturating_sub(self.num_visited).min(self.unvisited_arcs);
        self.pulling = read(len, frontier_arcs) >= read(num_unvisited, self.unvisited_arcs);
        self.pulling
    }
}

/// The way in which one call visits the edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EdgeMapForm {
    /// By the calling thread alone: the frontier has few edges.
    SerialPush,
    SparsePush,
    DensePush,
    Pull,
}

impl Policy<'_> {
    pub(super) fn choose<G: Graph>(
        &mut self,
        ctx: &Context<'_>,
        graph: &G,
        frontier: &VertexSubset,
    ) -> Result<EdgeMapForm> {
        // Known after the first call.
        let num_arcs = OnceCell::new();
        let arcs = || *num_arcs.get_or_init(|| out_arcs(ctx, graph, frontier));
        let large = || {
            let limit = graph.num_arcs() / LARGE_DIVISOR;
            let len = frontier.len() as u64;
            // The degrees are summed only where the number of vertices does not decide.
            len > limit || len + arcs() > limit
        };
        let sparse = || match num_arcs.get() {
            Some(&arcs) if arcs + frontier.len() as u64 <= SERIAL_ARCS => EdgeMapForm::SerialPush,
            _ => EdgeMapForm::SparsePush,
        };
        let pull = |is_better: bool| if is_better { EdgeMapForm::Pull } else { sparse() };
        let push = |is_large: bool| if is_large { EdgeMapForm::DensePush } else { sparse() };
        if !graph.has_lists(Direction::In) {
            return match self {
                Self::Pull => Err(Error::Unsupported { kernel: "edge map by pull", needs: "in-edges" }),
                _ => Ok(push(large())),
            };
        }
        Ok(match self {
            Self::Pull => EdgeMapForm::Pull,
            Self::Push => push(large()),
            Self::Ligra if large() => EdgeMapForm::Pull,
            Self::Ligra => sparse(),
            Self::Beamer(state) if ctx.reads_from_disk(graph) => {
                let all = (graph.num_vertices() as u64, graph.num_arcs());
                pull(state.pulls_from_disk(all, (frontier.len() as u64, arcs())))
            }
            Self::Beamer(state) => pull(state.pulls(graph.num_vertices(), frontier.len(), arcs)),
        })
    }
}

/// The rough number of edges that leave the frontier.
pub(super) fn out_arcs<G: Graph>(ctx: &Context<'_>, graph: &G, frontier: &VertexSubset) -> u64 {
    // One counter for each worker; the alignment keeps them on separate cache lines.
    #[repr(align(128))]
    struct ArcCounter(AtomicU64);
    let counters: Vec<ArcCounter> = (0..ctx.pool.num_threads()).map(|_| ArcCounter(AtomicU64::new(0))).collect();
    let add = |worker: usize, v: VertexId| {
        // Only this worker writes its counter, so plain loads and stores suffice.
        let count = &counters[worker].0;
        count.store(count.load(Ordering::Relaxed) + graph.rough_degree(Direction::Out, v) as u64, Ordering::Relaxed);
    };
    match frontier.members() {
        Members::Sparse(list) => ctx.pool.for_each_chunk(0..list.len(), LIST_CHUNK, |worker, chunk| {
            for index in chunk {
                if let Some(&ahead) = list.get(index + FAR) {
                    graph.prefetch(Direction::Out, PrefetchStage::RoughDegree, ahead);
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
        assert!(pulls(5, 94)); // a little more than a fifteenth of the 1400 left
        assert!(pulls(4 + 20, 0)); // growing
        assert!(pulls(11, 0)); // more than an eighteenth of the vertices
        assert!(!pulls(10, 1));
    }

    #[test]
    fn a_medium_that_is_chosen_decides_the_rule() {
        let pool = anden_base::parallel::Pool::new(1).unwrap();
        let csr = anden_testkit::graphs().into_iter().find(|graph| graph.name == "path").unwrap().build().unwrap();
        let heard = anden_testkit::FragmentedGraph::new(&csr);
        // One arc of many does not justify a pull; on a disk, all lists together are one read.
        for (medium, plain, listened_to) in [
            (Medium::Auto, EdgeMapForm::SerialPush, EdgeMapForm::Pull),
            (Medium::Memory, EdgeMapForm::SerialPush, EdgeMapForm::SerialPush),
            (Medium::Disk, EdgeMapForm::Pull, EdgeMapForm::Pull),
        ] {
            fn choose(ctx: &Context<'_>, graph: &impl Graph) -> EdgeMapForm {
                let mut beamer = Beamer::new(graph.num_arcs());
                let frontier = VertexSubset::single(graph.vertex_bound(), 0);
                Policy::Beamer(&mut beamer).choose(ctx, graph, &frontier).unwrap()
            }
            let ctx = Context { medium, ..Context::new(&pool) };
            assert_eq!((choose(&ctx, &csr), choose(&ctx, &heard)), (plain, listened_to), "{medium:?}");
        }
    }

    #[test]
    fn search_from_disk_picks_the_cheaper_direction() {
        const ALL: (u64, u64) = (1_000_000, 100_000_000);
        let pulls = |levels: &[(u64, u64)]| {
            let mut beamer = Beamer::new(ALL.1);
            levels.iter().map(|&level| beamer.pulls_from_disk(ALL, level)).collect::<Vec<_>>()
        };
        // Reading only the hubs costs less than reading all they lead to. After that, few vertices are left.
        assert_eq!(pulls(&[(1, 50), (20_000, 70_000_000), (970_000, 29_999_000)]), [false, false, true]);
        // Push and pull read equally much.
        assert_eq!(pulls(&[(1, 50), (400_000, 70_000_000)]), [false, true]);
        // Only 100 of the 20,000 unvisited vertices have arcs.
        assert_eq!(pulls(&[(970_000, 99_990_000), (10_000, 9_900)]), [true, true]);
        // A long, thin graph.
        assert_eq!(pulls(&[(3, 6); 5]), [false; 5]);
    }
}
