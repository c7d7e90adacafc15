//! Every form of an edge map applies equal edges.

use anden_base::parallel::Pool;
use anden_graph::{Csr, Graph, WillNeed};
use anden_testkit::{FragmentedGraph, Random, for_each_graph};
use parking_lot::Mutex;

use super::*;

/// Records every edge, and accepts targets with even ids.
struct Note(Mutex<Vec<(VertexId, VertexId, u32)>>);

impl EdgeFunctor<u32> for Note {
    fn update_atomic(&self, source: VertexId, target: VertexId, weight: u32) -> bool {
        self.0.lock().push((source, target, weight));
        target.is_multiple_of(2)
    }

    fn condition(&self, target: VertexId) -> bool {
        target % 3 != 1
    }
}

impl EdgeFunctor for Note {
    fn update_atomic(&self, source: VertexId, target: VertexId, (): ()) -> bool {
        EdgeFunctor::<u32>::update_atomic(self, source, target, 0)
    }

    fn condition(&self, target: VertexId) -> bool {
        EdgeFunctor::<u32>::condition(self, target)
    }
}

/// The edges that a map must apply and the targets that it must return, computed by plain loops.
fn expected(csr: &Csr, frontier: &[VertexId], weighted: bool) -> (Vec<(VertexId, VertexId, u32)>, Vec<VertexId>) {
    let lists = csr.out_lists();
    let weights = u32::of(lists.weights().unwrap()).unwrap();
    let mut edges = Vec::new();
    for &source in frontier {
        for i in lists.offsets()[source as usize]..lists.offsets()[source as usize + 1] {
            let weight = if weighted { weights[i as usize] } else { 0 };
            edges.push((source, lists.targets()[i as usize], weight));
        }
    }
    edges.retain(|edge| edge.1 % 3 != 1);
    edges.sort_unstable();
    let mut targets: Vec<_> = edges.iter().map(|edge| edge.1).filter(|t| t % 2 != 1).collect();
    targets.sort_unstable();
    targets.dedup();
    (edges, targets)
}

fn check_forms<G: WeightedEdges>(pool: &Pool, csr: &Csr, graph: &G, list: &[VertexId], what: &str) {
    let ctx = Context::new(pool);
    for (policy, weighted, lean) in (0..12).map(|choice| (choice % 3, choice / 3 % 2 == 1, choice / 6 == 1)) {
        let policy = || match policy {
            0 => Policy::Push,
            1 => Policy::Ligra,
            _ => Policy::Beamer(Box::leak(Box::new(Beamer::new(graph.num_vertices(), graph.num_arcs())))),
        };
        let note = Note(Mutex::new(Vec::new()));
        let mut frontier = VertexSubset::from_list(graph.vertex_bound(), list.to_vec());
        let mut options = EdgeMapOptions { policy: policy(), distinct: true, lean };
        let next = match weighted {
            true => weighted_edge_map::<u32, _>(&ctx, graph, &mut frontier, &note, &mut options),
            false => edge_map(&ctx, graph, &mut frontier, &note, &mut options),
        };
        let mut edges = note.0.into_inner();
        edges.sort_unstable();
        let (wanted_edges, wanted_targets) = expected(csr, list, weighted);
        assert_eq!(edges, wanted_edges, "{what}, weighted: {weighted}, lean: {lean}");
        assert_eq!(next.unwrap().to_list(), wanted_targets, "{what}, weighted: {weighted}");
    }
}

#[test]
fn every_form_applies_the_same_edges() {
    for threads in [1, 3] {
        let pool = Pool::new(threads).unwrap();
        for_each_graph(|name, csr| {
            let mut random = Random::new(3);
            for share in [1, 10, 100] {
                let bound = csr.vertex_bound() as VertexId;
                let list: Vec<_> = (0..bound).filter(|_| random.below(100) < share).collect();
                let what = format!("{name}, {threads} threads, {share} % of the vertices");
                check_forms(&pool, csr, csr, &list, &what);
                let pieces = FragmentedGraph::new(csr);
                check_forms(&pool, csr, &pieces, &list, &format!("{what}, pieces"));
                check_forms(&pool, csr, &pieces.without_in_edges(), &list, &format!("{what}, out-edges only"));
            }
        });
    }
}

#[test]
fn few_lists_with_a_prefetcher_give_all_edges() {
    /// Every fiftieth target.
    struct Rare(Note);
    impl EdgeFunctor for Rare {
        fn update_atomic(&self, source: VertexId, target: VertexId, (): ()) -> bool {
            EdgeFunctor::<()>::update_atomic(&self.0, source, target, ())
        }
        fn condition(&self, target: VertexId) -> bool {
            target.is_multiple_of(50)
        }
    }
    let n: VertexId = 300;
    let mut builder = anden_graph::CsrBuilder::<u32>::new(anden_graph::GraphKind::Directed, n as usize);
    (0..n).for_each(|source| (0..n).for_each(|target| builder.edge(source, target, 1)));
    let csr = builder.build().unwrap();
    let (pool, graph) = (Pool::new(2).unwrap(), FragmentedGraph::new(&csr));
    assert!(graph.is_listening());
    // 20 of 300 lists are pushed (a bitmap, for their many edges), or 6 are pulled.
    for policy in [Policy::Push, Policy::Pull] {
        let sources: Vec<VertexId> = (0..20).map(|i| i * 15).collect();
        let mut frontier = VertexSubset::from_list(n as usize, sources.clone());
        let note = Rare(Note(Mutex::new(Vec::new())));
        let mut options = EdgeMapOptions { policy, distinct: true, lean: false };
        let next = edge_map(&Context::new(&pool), &graph, &mut frontier, &note, &mut options).unwrap();
        let targets: Vec<VertexId> = (0..6).map(|i| i * 50).collect();
        let mut edges = note.0.0.into_inner();
        edges.sort_unstable();
        let wanted = sources.iter().flat_map(|&source| targets.iter().map(move |&target| (source, target, 0)));
        assert!(edges.into_iter().eq(wanted));
        assert_eq!(next.to_list(), targets);
    }
}

#[test]
fn a_pull_without_in_edges_is_refused() {
    let pool = Pool::new(1).unwrap();
    let csr = anden_testkit::graphs().into_iter().find(|g| g.name == "path").unwrap().build().unwrap();
    let graph = FragmentedGraph::new(&csr).without_in_edges();
    let note = Note(Mutex::new(Vec::new()));
    let mut options = EdgeMapOptions { policy: Policy::Pull, distinct: true, lean: false };
    let mut all = VertexSubset::single(csr.vertex_bound(), 0);
    let result = edge_map(&Context::new(&pool), &graph, &mut all, &note, &mut options);
    assert!(matches!(result, Err(Error::Unsupported { .. })));
    let weighted = weighted_edge_map::<u32, _>(&Context::new(&pool), &csr, &mut all, &note, &mut options);
    assert!(matches!(weighted, Err(Error::Unsupported { .. })));
}
