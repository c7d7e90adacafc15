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
    /// After Beamer, for searches that visit each vertex once. The search owns the state.
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

/// The state of the choice in one search.
///
/// Each round goes in the direction that is expected to cost less. A push tests each arc of the frontier. A pull reads
/// the list of each unvisited vertex up to its first neighbor in the frontier. If one in `k` of the unvisited arcs leads
/// to the frontier, that is after `k` arcs, or at the end of a shorter list. So where lists are long, a pull pays
/// off as soon as the frontier is large. Where they are short, as in web graphs, it pays off late or never.
///
/// Lists from a disk are read whole, however early a target is done. So a search from a disk pulls if a pull reads no
/// more.
#[derive(Clone, Debug)]
pub struct Beamer {
    unvisited_arcs: u64,
    num_unvisited: u64,
    pulling: bool,
    reads_whole_lists: bool,
}

impl Beamer {
    /// The cost of an arc of a push, in arcs of a pull: it may write where other workers write. Measured, as the next
    /// one: docs/decisions/0049-push-or-pull-by-cost.md.
    const PUSH_COST: u64 = 4;
    /// The cost of beginning a list in a pull, in arcs of a pull.
    const LIST_COST: u64 = 2;

    /// The state at the start of a search on a graph with this many vertices and arcs.
    pub fn new(num_vertices: usize, num_arcs: u64) -> Self {
        let num_unvisited = num_vertices as u64;
        Self { unvisited_arcs: num_arcs, num_unvisited, pulling: false, reads_whole_lists: false }
    }

    /// For a search that needs all neighbors in the frontier, for example to count paths.
    pub fn reading_whole_lists(mut self) -> Self {
        self.reads_whole_lists = true;
        self
    }

    fn pulls(&mut self, len: u64, frontier_arcs: impl FnOnce() -> u64) -> bool {
        self.num_unvisited = self.num_unvisited.saturating_sub(len);
        // The largest frontiers are not worth a sum over their degrees: a pull has fewer lists to read.
        if self.pulling && len >= self.num_unvisited {
            return true;
        }
        let arcs = frontier_arcs();
        // Rough degrees may sum to more than the arcs of the graph.
        self.unvisited_arcs = self.unvisited_arcs.saturating_sub(arcs);
        let tested_in_each_list = 1 + self.unvisited_arcs / arcs.max(1);
        // The product saturates: 2^32 vertices times 2^33 arcs are more than 64 bits hold.
        let tested = match self.reads_whole_lists {
            true => self.unvisited_arcs,
            false => self.unvisited_arcs.min(self.num_unvisited.saturating_mul(tested_in_each_list)),
        };
        self.pulling = arcs * Self::PUSH_COST > tested + self.num_unvisited * Self::LIST_COST;
        self.pulling
    }

    /// Whether a search from a disk pulls, given the arcs of the graph and the size of the frontier.
    fn pulls_from_disk(&mut self, num_arcs: u64, (len, frontier_arcs): (u64, u64)) -> bool {
        self.unvisited_arcs = self.unvisited_arcs.saturating_sub(frontier_arcs);
        self.num_unvisited = self.num_unvisited.saturating_sub(len);
        // A scan of the whole file reads no more than all arcs.
        let read = |len: u64, arcs: u64| num_arcs.min(arcs + len * ARCS_OF_A_READ);
        // Empty lists are not read.
        let num_unvisited = self.num_unvisited.min(self.unvisited_arcs);
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
                pull(state.pulls_from_disk(graph.num_arcs(), (frontier.len() as u64, arcs())))
            }
            Self::Beamer(state) => pull(state.pulls(frontier.len() as u64, arcs)),
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
    fn a_search_pulls_where_lists_end_early() {
        let pulls = |mut beamer: Beamer, rounds: &[(u64, u64)]| -> Vec<bool> {
            rounds.iter().map(|&(len, arcs)| beamer.pulls(len, || arcs)).collect()
        };
        // Lists of 40: a pull finds the frontier after one arc of 40, then after one of three.
        let long_lists = Beamer::new(1000, 40_000);
        assert_eq!(pulls(long_lists, &[(1, 40), (30, 1_000), (300, 12_000)]), [false, false, true]);
        // Lists of 3 end before the frontier is found, so a pull tests them all.
        let short_lists = Beamer::new(1000, 3_000);
        assert_eq!(pulls(short_lists.clone(), &[(1, 3), (30, 100), (300, 600)]), [false; 3]);
        // What is left are a few lists.
        assert_eq!(pulls(short_lists, &[(300, 600), (600, 2000)]), [false, true]);
        // Whole lists are more than what leaves the frontier.
        let counting = Beamer::new(1000, 40_000).reading_whole_lists();
        assert_eq!(pulls(counting, &[(30, 1_000), (100, 6_000), (500, 20_000)]), [false, false, true]);
    }

    #[test]
    fn large_frontiers_pull_without_a_sum() {
        let mut beamer = Beamer::new(1000, 40_000);
        assert!(beamer.pulls(300, || 20_000));
        assert!(beamer.pulls(400, || unreachable!("more vertices than the 300 that are left")));
        assert!(!beamer.pulls(10, || 40));
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
                let mut beamer = Beamer::new(graph.num_vertices(), graph.num_arcs());
                let frontier = VertexSubset::single(graph.vertex_bound(), 0);
                Policy::Beamer(&mut beamer).choose(ctx, graph, &frontier).unwrap()
            }
            let ctx = Context { medium, ..Context::new(&pool) };
            assert_eq!((choose(&ctx, &csr), choose(&ctx, &heard)), (plain, listened_to), "{medium:?}");
        }
    }

    #[test]
    fn search_from_disk_picks_the_cheaper_direction() {
        const NUM_ARCS: u64 = 100_000_000;
        let pulls = |levels: &[(u64, u64)]| {
            let mut beamer = Beamer::new(1_000_000, NUM_ARCS);
            levels.iter().map(|&level| beamer.pulls_from_disk(NUM_ARCS, level)).collect::<Vec<_>>()
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
