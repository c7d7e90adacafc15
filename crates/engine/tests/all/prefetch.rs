//! What the advisor tells the system beside what it asks for.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anden_engine::{Advisor, Database, GraphOptions, KeyScheme, MergeScope, Missing, Prefetch, Update};
use base::parallel::Pool;
use base::progress::Silent;
use base::storage::{FaultStorage, Storage};
use graph::{Graph, Page, Parts, Side, WeightType, WeightedEdges, WillNeed};

/// An edge from each of 500 vertices to the next, as long as the number of the first, in one run.
fn ring(weight_type: Option<WeightType>) -> Database {
    let pool = Pool::new(1).unwrap();
    let options = GraphOptions { keys: KeyScheme::Dense, weight_type, ..GraphOptions::default() };
    let database = Database::in_memory(options).unwrap();
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
    let advisor = Advisor::default();
    let view = advisor.attach(&database.view().unwrap(), Prefetch::Frontier);
    let num_looked_at = || {
        let stats = advisor.stats().frontier;
        stats.issued + stats.already_resident
    };
    // So few are asked for by whoever announces them.
    view.will_need(Side::Out, Parts::Targets, &[7]);
    assert_eq!(num_looked_at(), 1);
    view.will_need(Side::Out, Parts::Weighted, &[7, 8]);
    assert_eq!(num_looked_at(), 1 + 2 * 2);
    let (weights, width) = view.stored_weights(Side::Out).unwrap();
    let list = view.stored_lists(Side::Out, 7..8);
    let place = list.start / size_of::<u32>() * width;
    assert_eq!(weights.as_slice()[place..place + width], 7_f64.to_le_bytes());
    // Who needs none leaves them as they are; a kernel that begins leaves everything to the system.
    view.will_need(Side::Out, Parts::Targets, &[9]);
    assert!(view.are_weights_exact(Side::Out));
    view.read_exactly(false);
    assert!(!view.are_weights_exact(Side::Out));
}

#[test]
fn weights_are_read_ahead_of_who_walks_over_them() {
    let database = ring(Some(WeightType::U32));
    // What he has come to is looked at at once, all that is ahead of him by a scout.
    for (parts, num_columns) in [(Parts::Targets, 1), (Parts::Weighted, 2)] {
        let advisor = Advisor::default();
        let view = advisor.attach(&database.view().unwrap(), Prefetch::Sequential);
        let end = Instant::now() + Duration::from_secs(60);
        view.will_walk(Side::Out, parts, 0..100);
        let num_looked_at = || {
            let stats = advisor.stats().sequential;
            stats.issued + stats.already_resident
        };
        while num_looked_at() < 2 * num_columns {
            assert!(Instant::now() < end, "{parts:?}: {} of {}", num_looked_at(), 2 * num_columns);
            std::thread::sleep(Duration::from_millis(1));
        }
        view.has_walked(Side::Out, parts, 0..100);
        assert_eq!(num_looked_at(), 2 * num_columns, "{parts:?}");
    }
}

/// What levels change is read from the run once, and then from memory.
#[test]
fn lists_that_are_in_memory_are_not_read_ahead() {
    let pool = Pool::new(1).unwrap();
    let database = ring(None);
    database.apply(&[Update::add_edge(3, 9), Update::remove_edge(7, 8)], Missing::Strict, &pool).unwrap();
    database.checkpoint(None).unwrap();
    let advisor = Advisor::default();
    let view = advisor.attach(&database.view().unwrap(), Prefetch::Frontier);
    assert_eq!(view.stored_list(Side::Out, 7), view.stored_lists(Side::Out, 7..8));
    view.will_need(Side::Out, Parts::Targets, &[7]);
    let num_looked_at = || {
        let stats = advisor.stats().frontier;
        stats.issued + stats.already_resident
    };
    assert_eq!(num_looked_at(), 1);
    // Enough of them, one after the other, for their page to be written anew.
    for _ in 0..3 {
        let mut num_edges = 0;
        for vertex in 0..500 {
            let _ = view.for_each_out_fragment(vertex, |targets| {
                num_edges += targets.len();
                ControlFlow::Continue(())
            });
        }
        assert_eq!(num_edges, 500);
    }
    assert!(view.stored_list(Side::Out, 7).is_empty());
    view.will_need(Side::Out, Parts::Targets, &[7, 8]);
    assert_eq!(num_looked_at(), 1);
}

/// Whoever looks at a few vertices of a graph larger than memory does not have whole pages read, levels or not.
#[test]
fn lists_are_read_alone_with_levels_and_without() {
    for changed in [3, 2100] {
        check_lists_alone(changed);
    }
}

const DB: &str = "db";
const DEGREE: u64 = 64;
const DAMAGED: u32 = 2500;

/// A database of 3,000 vertices with as many edges each, a level that adds one to those of the vertex `changed`, and a
/// flipped bit in the part of the list of 2,500 that the file with this ending holds.
fn with_damage(weight_type: Option<WeightType>, changed: u64, ending: &str) -> FaultStorage {
    let (disk, db, pool) = (FaultStorage::default(), Path::new(DB), Pool::new(1).unwrap());
    let options = GraphOptions { keys: KeyScheme::Dense, weight_type, ..GraphOptions::default() };
    let database = Database::create_in(Arc::new(disk.clone()), db, options).unwrap();
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
    // Targets and weights of four bytes begin behind the header.
    bytes[4096 + (u64::from(DAMAGED) * DEGREE * 4) as usize] ^= 1;
    disk.set_contents(&path, &bytes);
    disk
}

/// Weights of a list that no level changes are read by those who want them.
#[test]
fn lists_are_read_alone_without_their_weights() {
    let disk = with_damage(Some(WeightType::U32), 2100, "-out-weights");
    let database = Database::open_read_only_in(Arc::new(disk), Path::new(DB)).unwrap();
    let advisor = Advisor::default();
    let view = advisor.attach(&database.view().unwrap(), Prefetch::Frontier);
    for (vertex, expected) in [(DAMAGED, DEGREE as usize), (2100, DEGREE as usize + 1)] {
        let mut degree = 0;
        let _ = view.for_each_out_fragment(vertex, |targets| {
            degree += targets.len();
            ControlFlow::Continue(())
        });
        assert_eq!(degree, expected);
    }
    view.check().unwrap();
    let _ = view.for_each_weighted_out_fragment::<u32>(DAMAGED, |_, _| ControlFlow::Continue(()));
    assert!(view.check().is_err());
}

/// Reads lists beside a damaged one, where a level changes that of the vertex `changed`.
fn check_lists_alone(changed: u32) {
    let (disk, db) = (with_damage(None, changed.into(), "-out"), Path::new(DB));
    for is_heard in [true, false] {
        let database = Database::open_read_only_in(Arc::new(disk.clone()), db).unwrap();
        let advisor = Advisor::default();
        let mut view = database.view().unwrap();
        if is_heard {
            view = advisor.attach(&view, Prefetch::Frontier);
        }
        for vertex in [2100, 3, 2900] {
            let mut degree = 0;
            let _ = view.for_each_out_fragment(vertex, |targets| {
                degree += targets.len();
                ControlFlow::Continue(())
            });
            // A page that does not pass its check has no lists.
            let degree_now = DEGREE as usize + usize::from(vertex == changed);
            let expected = if is_heard || vertex == 3 { degree_now } else { 0 };
            assert_eq!((degree, view.out_degree(vertex)), (expected, expected), "{vertex}, {changed} changed");
        }
        let damaged_degree = if is_heard { DEGREE as usize } else { 0 };
        assert_eq!(view.out_degree(DAMAGED), damaged_degree, "its entries are not read");
        assert_eq!(view.check().is_ok(), is_heard);
        let _ = view.for_each_out_fragment(DAMAGED, |_| ControlFlow::Continue(()));
        assert!(view.check().is_err());
    }
}

/// Memory for pages that are written anew is memory that the files of a graph larger than that have not.
#[test]
fn what_levels_change_is_written_anew_where_nobody_waits_for_a_disk() {
    let (disk, db) = (with_damage(None, 3, "-out"), Path::new(DB));
    for policy in [Prefetch::Sequential, Prefetch::Off] {
        let database = Database::open_read_only_in(Arc::new(disk.clone()), db).unwrap();
        let advisor = Advisor::default();
        let view = advisor.attach(&database.view().unwrap(), policy);
        let (mut num_edges, mut is_dense) = (0, Vec::new());
        let _ = view.for_each_out_page(0..1024, |page| {
            is_dense.push(matches!(page, Page::Dense(_)));
            ControlFlow::Continue(())
        });
        for vertex in 0..1024 {
            let _ = view.for_each_out_fragment(vertex, |targets| {
                num_edges += targets.len() as u64;
                ControlFlow::Continue(())
            });
        }
        assert_eq!((num_edges, is_dense), (1024 * DEGREE + 1, vec![policy == Prefetch::Off]), "{policy:?}");
        view.check().unwrap();
    }
}

/// Where nobody told the system otherwise, it read every list by itself, a page at a time, that was not announced: the
/// way back of betweenness took twice as long with the advisor as without.
#[test]
fn whoever_falls_silent_is_left_to_the_system() {
    let database = ring(None);
    let advisor = Advisor::default();
    let view = advisor.attach(&database.view().unwrap(), Prefetch::Frontier);
    let vertices: Vec<u32> = (0..500).collect();
    let end = Instant::now() + Duration::from_secs(60);
    // On a busy machine, silence may be over before this thread looks.
    while !view.is_exact(Side::Out) {
        assert!(Instant::now() < end, "what is announced is read exactly");
        view.will_need(Side::Out, Parts::Targets, &vertices);
    }
    while view.is_exact(Side::Out) {
        assert!(Instant::now() < end, "nobody announced anything, and the system still reads nothing by itself");
        std::thread::sleep(Duration::from_millis(1));
    }
}
