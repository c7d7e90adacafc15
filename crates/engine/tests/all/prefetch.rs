//! The advice that the prefetcher gives the kernel besides requests for pages.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_base::storage::Storage;
use anden_engine::{Engine, GraphOptions, KeyScheme, MergeScope, Missing, Prefetch, Prefetcher, Update};
use anden_graph::{Direction, Graph, Page, Parts, WeightType, WeightedEdges, WillNeed};
use anden_testkit::{FaultStorage, wait_until};

/// A ring of 500 vertices in one base. The weight of an edge is its source.
fn ring(weight_type: Option<WeightType>) -> Engine {
    let pool = Pool::new(1).unwrap();
    let options = GraphOptions { keys: KeyScheme::Dense, weight_type, ..GraphOptions::default() };
    let database = Engine::in_memory(options).unwrap();
    let edge = |v: u64| match weight_type {
        Some(WeightType::F64) => Update::add_weighted_edge(v, (v + 1) % 500, v as f64),
        Some(_) => Update::add_weighted_edge(v, (v + 1) % 500, v as u32),
        None => Update::add_edge(v, (v + 1) % 500),
    };
    database.apply(&(0..500).map(edge).collect::<Vec<_>>(), Missing::Lenient, &pool).unwrap();
    database.checkpoint(None).unwrap();
    database.merge(MergeScope::All, &pool, &Silent).unwrap();
    database
}

#[test]
fn weights_are_read_ahead_with_their_lists() {
    let database = ring(Some(WeightType::F64));
    let prefetcher = Prefetcher::default();
    let view = prefetcher.attach(&database.view().unwrap(), Prefetch::Frontier);
    let num_looked_at = || {
        let stats = prefetcher.stats().frontier;
        stats.issued + stats.already_resident
    };
    // The announcing thread itself requests such small numbers of lists.
    view.will_need(Direction::Out, Parts::Targets, &[7]);
    assert_eq!(num_looked_at(), 1);
    view.will_need(Direction::Out, Parts::Weighted, &[7, 8]);
    assert_eq!(num_looked_at(), 1 + 2 * 2);
    let (weights, width) = view.stored_weights(Direction::Out).unwrap();
    let list = view.stored_lists(Direction::Out, 7..8);
    let place = list.start / size_of::<u32>() * width;
    assert_eq!(weights.as_slice()[place..place + width], 7_f64.to_le_bytes());
    // Reads without weights leave the advice for weights. A kernel that begins resets all advice.
    view.will_need(Direction::Out, Parts::Targets, &[9]);
    assert!(view.are_weights_exact(Direction::Out));
    view.read_exactly(false);
    assert!(!view.are_weights_exact(Direction::Out));
}

#[test]
fn weights_are_read_ahead_of_who_walks_over_them() {
    let database = ring(Some(WeightType::U32));
    // The walking thread requests the pages at its position, a helper thread those ahead.
    for (parts, num_columns) in [(Parts::Targets, 1), (Parts::Weighted, 2)] {
        let prefetcher = Prefetcher::default();
        let view = prefetcher.attach(&database.view().unwrap(), Prefetch::Sequential);
        view.will_walk(Direction::Out, parts, 0..100);
        let num_looked_at = || {
            let stats = prefetcher.stats().sequential;
            stats.issued + stats.already_resident
        };
        wait_until("all pages are looked at", || num_looked_at() >= 2 * num_columns);
        view.has_walked(Direction::Out, parts, 0..100);
        assert_eq!(num_looked_at(), 2 * num_columns, "{parts:?}");
    }
}

/// A list of a changed page is read from the base once, and then from memory.
#[test]
fn lists_that_are_in_memory_are_not_read_ahead() {
    let pool = Pool::new(1).unwrap();
    let database = ring(None);
    database.apply(&[Update::add_edge(3, 9), Update::remove_edge(7, 8)], Missing::Strict, &pool).unwrap();
    database.checkpoint(None).unwrap();
    let prefetcher = Prefetcher::default();
    let view = prefetcher.attach(&database.view().unwrap(), Prefetch::Frontier);
    assert_eq!(view.stored_list(Direction::Out, 7), view.stored_lists(Direction::Out, 7..8));
    view.will_need(Direction::Out, Parts::Targets, &[7]);
    let num_looked_at = || {
        let stats = prefetcher.stats().frontier;
        stats.issued + stats.already_resident
    };
    assert_eq!(num_looked_at(), 1);
    // Enough single-list reads for the page to be rewritten.
    for _ in 0..3 {
        let mut num_edges = 0;
        for vertex in 0..500 {
            let _ = view.for_each_fragment(Direction::Out, vertex, |targets| {
                num_edges += targets.len();
                ControlFlow::Continue(())
            });
        }
        assert_eq!(num_edges, 500);
    }
    assert!(view.stored_list(Direction::Out, 7).is_empty());
    view.will_need(Direction::Out, Parts::Targets, &[7, 8]);
    assert_eq!(num_looked_at(), 1);
}

/// Reads of a few vertices of a graph larger than memory do not read whole pages, with or without deltas.
#[test]
fn lists_are_read_alone_with_levels_and_without() {
    for changed in [3, 2100] {
        check_lists_alone(changed);
    }
}

const DB: &str = "db";
const DEGREE: u64 = 64;
const DAMAGED: u32 = 2500;

/// A database of 3,000 vertices with equal degrees, and a delta that adds an edge to the vertex `changed`. A bit is
/// flipped in the list of vertex 2,500, in the file with this ending.
fn with_damage(weight_type: Option<WeightType>, changed: u64, ending: &str) -> FaultStorage {
    let (disk, db, pool) = (FaultStorage::default(), Path::new(DB), Pool::new(1).unwrap());
    let options = GraphOptions { keys: KeyScheme::Dense, weight_type, ..GraphOptions::default() };
    let database = Engine::create_in(Arc::new(disk.clone()), db, options).unwrap();
    let edge = |source: u64, target: u64| match weight_type {
        Some(_) => Update::add_weighted_edge(source, target, 1_u32),
        None => Update::add_edge(source, target),
    };
    let edges = (0..3000).flat_map(|v| (0..DEGREE).map(move |i| edge(v, (v + i) % 3000)));
    database.apply(&edges.collect::<Vec<_>>(), Missing::Lenient, &pool).unwrap();
    database.checkpoint(None).unwrap();
    database.merge(MergeScope::All, &pool, &Silent).unwrap();
    database.apply(&[edge(changed, 500)], Missing::Strict, &pool).unwrap();
    database.close().unwrap();
    let path = db.join(disk.list(db).unwrap().into_iter().find(|name| name.ends_with(ending)).unwrap());
    let mut bytes = disk.contents(&path).unwrap();
    // Targets and weights of four bytes begin after the header.
    bytes[4096 + (u64::from(DAMAGED) * DEGREE * 4) as usize] ^= 1;
    disk.set_contents(&path, &bytes);
    disk
}

/// Only reads of weights read the weights of an unchanged list.
#[test]
fn lists_are_read_alone_without_their_weights() {
    let disk = with_damage(Some(WeightType::U32), 2100, "-out-weights");
    let database = Engine::open_read_only_in(Arc::new(disk), Path::new(DB)).unwrap();
    let prefetcher = Prefetcher::default();
    let view = prefetcher.attach(&database.view().unwrap(), Prefetch::Frontier);
    for (vertex, expected) in [(DAMAGED, DEGREE as usize), (2100, DEGREE as usize + 1)] {
        let mut degree = 0;
        let _ = view.for_each_fragment(Direction::Out, vertex, |targets| {
            degree += targets.len();
            ControlFlow::Continue(())
        });
        assert_eq!(degree, expected);
    }
    view.check().unwrap();
    let _ = view.for_each_weighted_fragment::<u32>(Direction::Out, DAMAGED, |_, _| ControlFlow::Continue(()));
    assert!(view.check().is_err());
}

/// Reads lists beside a damaged one, with a delta that changes the vertex `changed`.
fn check_lists_alone(changed: u32) {
    let (disk, db) = (with_damage(None, changed.into(), "-out"), Path::new(DB));
    for is_heard in [true, false] {
        let database = Engine::open_read_only_in(Arc::new(disk.clone()), db).unwrap();
        let prefetcher = Prefetcher::default();
        let mut view = database.view().unwrap();
        if is_heard {
            view = prefetcher.attach(&view, Prefetch::Frontier);
        }
        for vertex in [2100, 3, 2900] {
            let mut degree = 0;
            let _ = view.for_each_fragment(Direction::Out, vertex, |targets| {
                degree += targets.len();
                ControlFlow::Continue(())
            });
            // A damaged page has no lists.
            let degree_now = DEGREE as usize + usize::from(vertex == changed);
            let expected = if is_heard || vertex == 3 { degree_now } else { 0 };
            assert_eq!(
                (degree, view.degree(Direction::Out, vertex)),
                (expected, expected),
                "{vertex}, {changed} changed"
            );
        }
        let damaged_degree = if is_heard { DEGREE as usize } else { 0 };
        assert_eq!(view.degree(Direction::Out, DAMAGED), damaged_degree, "its entries are not read");
        assert_eq!(view.check().is_ok(), is_heard);
        let _ = view.for_each_fragment(Direction::Out, DAMAGED, |_| ControlFlow::Continue(()));
        assert!(view.check().is_err());
    }
}

/// Rewritten pages would take memory from the files of a graph larger than memory.
#[test]
fn prefetched_scan_does_not_patch_pages() {
    let (disk, db) = (with_damage(None, 3, "-out"), Path::new(DB));
    for policy in [Prefetch::Sequential, Prefetch::Off] {
        let database = Engine::open_read_only_in(Arc::new(disk.clone()), db).unwrap();
        let prefetcher = Prefetcher::default();
        let view = prefetcher.attach(&database.view().unwrap(), policy);
        let (mut num_edges, mut is_dense) = (0, Vec::new());
        let _ = view.for_each_page(Direction::Out, 0..1024, |page| {
            is_dense.push(matches!(page, Page::Dense(_)));
            ControlFlow::Continue(())
        });
        for vertex in 0..1024 {
            let _ = view.for_each_fragment(Direction::Out, vertex, |targets| {
                num_edges += targets.len() as u64;
                ControlFlow::Continue(())
            });
        }
        assert_eq!((num_edges, is_dense), (1024 * DEGREE + 1, vec![policy == Prefetch::Off]), "{policy:?}");
        view.check().unwrap();
    }
}

/// Regression: advice for exact reads stayed after the announcements ended, so the kernel read unannounced lists page
/// by page. The backward pass of betweenness took twice as long with the prefetcher as without.
#[test]
fn silent_reader_is_left_to_system_read_ahead() {
    let database = ring(None);
    let prefetcher = Prefetcher::default();
    let view = prefetcher.attach(&database.view().unwrap(), Prefetch::Frontier);
    let vertices: Vec<u32> = (0..500).collect();
    // On a busy machine, the silence may already be over when this thread looks.
    wait_until("announced lists are read exactly", || {
        view.will_need(Direction::Out, Parts::Targets, &vertices);
        view.is_exact(Direction::Out)
    });
    wait_until("without announcements, the system reads ahead", || !view.is_exact(Direction::Out));
}
