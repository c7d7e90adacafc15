//! Known corenesses, and graphs large enough for several threads to share a level.

use anden_base::parallel::Pool;
use anden_graph::generate::{Generator, RmatParams};
use anden_graph::{Csr, CsrBuilder, GraphKind};
use anden_kernels::kcore::{KcoreParams, KcoreResult, kcore, verify};
use anden_kernels::{Context, Medium};
use anden_testkit::{Random, graphs};

fn check(csr: &Csr, what: &str) -> KcoreResult {
    let mut results = Vec::new();
    for threads in [1, 2, 3, 10] {
        let pool = Pool::new(threads).expect("threads start");
        for (part_vertices, medium) in [(1 << 18, Medium::Memory), (100, Medium::Memory), (1 << 18, Medium::Disk)] {
            let params = KcoreParams { part_vertices };
            let ctx = Context { medium, ..Context::new(&pool) };
            let result = kcore(&ctx, csr, &params).expect("nothing is in the way");
            assert_eq!(verify(csr, &params, &result), Ok(()), "{what}, {threads} threads, {params:?}");
            results.push(result);
        }
    }
    results.dedup();
    assert_eq!(results.len(), 1, "{what}");
    results.remove(0)
}

#[test]
fn cores_of_plain_shapes_are_known() {
    let known = [("complete", 23), ("star", 1), ("path", 1), ("cycle", 2), ("grid", 2), ("no edges", 0), ("loop", 0)];
    let mut num_known = 0;
    for test in graphs() {
        let result = check(&test.build().expect("edges are in range"), test.name);
        let shape = test.name.trim_start_matches("undirected ");
        if let Some((_, core)) = known.iter().find(|(start, _)| shape.starts_with(start)) {
            assert_eq!(result.degeneracy, *core, "{}", test.name);
            num_known += 1;
        }
    }
    assert_eq!(num_known, 16);
}

#[test]
fn loops_and_parallel_edges_do_not_count() {
    // A triangle whose edges are repeated in both directions, with a tail and a loop.
    let edges = [(0, 1), (1, 0), (0, 1), (1, 2), (2, 0), (0, 2), (2, 2), (2, 3), (3, 2), (3, 3), (4, 4)];
    for graph_kind in [GraphKind::Directed, GraphKind::Undirected] {
        for keep_parallel in [false, true] {
            let mut builder = CsrBuilder::<u32>::new(graph_kind, 6);
            if keep_parallel {
                builder = builder.keep_parallel();
            }
            edges.iter().for_each(|&(source, target)| builder.edge(source, target, 1));
            let csr = builder.build().expect("edges are in range");
            assert_eq!(check(&csr, "triangle with a tail").cores, [2, 2, 2, 1, 0, 0]);
        }
    }
}

#[test]
fn threads_share_large_levels() {
    let pool = Pool::new(2).expect("threads start");
    let params = RmatParams { scale: 13, degree: 20, ..RmatParams::default() };
    let rmat = Generator::rmat(&params).expect("the parameters are good").csr(&pool).expect("it fits in memory");
    let cores = check(&rmat, "rmat");
    assert!(cores.degeneracy > 40);
    // Many rounds, since two neighbors rarely sink at one moment.
    let (many, disk) = (Pool::new(10).expect("threads start"), Medium::Disk);
    for round in 0..100 {
        let ctx = Context { medium: disk, ..Context::new(&many) };
        let again = kcore(&ctx, &rmat, &KcoreParams::default()).expect("nothing is in the way");
        assert_eq!(again, cores, "round {round}");
    }
    let directed = Csr::directed(rmat.out_lists().clone(), None).expect("lists are as they were");
    assert_eq!(check(&directed, "rmat, directed, no in-edges"), cores);
    let mut random = Random::new(7);
    let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, 20_000);
    (0..60_000).for_each(|_| builder.edge(random.below(20_000), random.below(20_000), 1));
    check(&builder.build().expect("edges are in range"), "uniform");
}
