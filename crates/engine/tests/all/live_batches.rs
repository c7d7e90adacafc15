//! Large batches, which all workers apply, have the effect of the single updates.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{AppendOptions, Changes, Engine, GraphOptions, Key, KeyScheme, Missing, Op, SnapshotView, Update};
use anden_graph::{Direction, Graph, GraphKind, WeightType, WeightedEdges};
use anden_testkit::{FaultStorage, ModelGraph, Random, scaled};

const NUM_KEYS: u32 = 3000;

/// Edges with their weights, or zeros, between numbers of keys.
type Edges = ModelGraph<u64, u32>;

/// The entries of the out-lists, with weights or zeros.
type Arcs = BTreeMap<(u64, u64), u32>;

fn key(scheme: KeyScheme, number: u32) -> Key {
    match scheme {
        KeyScheme::Dense => u64::from(number).into(),
        KeyScheme::Integer => (u64::from(number) * 1_000_003).into(),
        KeyScheme::String => number.to_string().into(),
    }
}

fn number(scheme: KeyScheme, key: &Key) -> u64 {
    match (scheme, key) {
        (KeyScheme::Integer, Key::Integer(key)) => key / 1_000_003,
        (_, Key::Integer(key)) => *key,
        (_, Key::String(key)) => key.parse().unwrap(),
    }
}

fn out_arcs(view: &SnapshotView) -> Arcs {
    let mut arcs = Arcs::new();
    let scheme = view.options().keys;
    let name = |vertex| number(scheme, &view.key(vertex).unwrap());
    for source in 0..view.vertex_bound() as VertexId {
        let mut weights = Vec::new();
        let _ = view.for_each_weighted_fragment::<u32>(Direction::Out, source, |_, some| {
            weights.extend_from_slice(some);
            ControlFlow::Continue(())
        });
        let mut weights = weights.into_iter();
        let _ = view.for_each_fragment(Direction::Out, source, |targets| {
            for &target in targets {
                assert!(arcs.insert((name(source), name(target)), weights.next().unwrap_or(0)).is_none());
            }
            ControlFlow::Continue(())
        });
    }
    let mut num_in_arcs = 0;
    for target in 0..view.vertex_bound() as VertexId {
        let _ = view.for_each_fragment(Direction::In, target, |sources| {
            assert!(sources.iter().all(|&source| arcs.contains_key(&(name(source), name(target)))));
            num_in_arcs += sources.len();
            ControlFlow::Continue(())
        });
    }
    assert!(!view.has_lists(Direction::In) || num_in_arcs == arcs.len());
    view.check().unwrap();
    arcs
}

fn empty(options: &GraphOptions) -> Edges {
    Edges::new(options.graph_kind).ordered(options.ordered)
}

fn change(edges: &mut Edges, (source, target): (u32, u32), weight: Option<u32>) {
    let (source, target) = (u64::from(source), u64::from(target));
    match weight {
        Some(weight) => edges.add_edge(source, target, weight),
        None => drop(edges.remove_edges(source, target)),
    }
}

fn arcs(edges: &Edges) -> Arcs {
    edges.arcs().map(|(source, target, &weight)| ((source, target), weight)).collect()
}

#[test]
fn large_batches_do_what_their_updates_say() {
    let directed = GraphOptions::default();
    let undirected = GraphOptions { graph_kind: GraphKind::Undirected, ..directed };
    let dense = GraphOptions { keys: KeyScheme::Dense, ..directed };
    let kinds = [
        dense,
        GraphOptions { in_edges: false, weight_type: Some(WeightType::U32), ..dense },
        GraphOptions { ordered: true, ..dense },
        GraphOptions { keys: KeyScheme::Dense, weight_type: Some(WeightType::U32), ..undirected },
        GraphOptions { weight_type: Some(WeightType::U32), ..directed },
        GraphOptions { keys: KeyScheme::String, ..undirected },
    ];
    let pool = Pool::new(3).unwrap();
    for seed in 0..scaled(kinds.len() as u64) {
        let options = kinds[seed as usize % kinds.len()];
        println!("seed {seed}: {options:?}");
        let random = &mut Random::new(seed + 5);
        let db = Engine::create_in(Arc::new(FaultStorage::default()), Path::new("db"), options).unwrap();
        let key = |number| key(options.keys, number);
        let mut edges = empty(&options);
        // The snapshot below the memtable.
        let mut changes = Changes::default();
        for _ in 0..4000 {
            let (u, v) = (random.below(NUM_KEYS / 2), random.below(NUM_KEYS / 2));
            changes.added.push((key(u), key(v), options.weight_type.map(|_| 3.into())));
            change(&mut edges, (u, v), Some(options.weight_type.map_or(0, |_| 3)));
        }
        db.append_changes(&changes, &AppendOptions::default(), &pool, &Silent).unwrap();
        for round in 0..4_u32 {
            let mut updates = Vec::new();
            // Every second batch has only edges between existing vertices, or between possible ids.
            let bound = NUM_KEYS / 2 * (1 + round / 2);
            if round == 2 && options.keys != KeyScheme::Dense {
                updates.extend((0..bound).map(|number| Update::AddVertex(key(number))));
            }
            for _ in 0..40_000 {
                let (u, v) = (random.below(bound), random.below(bound));
                let weight = options.weight_type.map(|_| random.below(4));
                if random.below(3) > 0 {
                    updates.push(match weight {
                        Some(weight) => Update::add_weighted_edge(key(u), key(v), i64::from(weight)),
                        None => Update::add_edge(key(u), key(v)),
                    });
                    change(&mut edges, (u, v), Some(weight.unwrap_or(0)));
                } else {
                    updates.push(Update::remove_edge(key(u), key(v)));
                    change(&mut edges, (u, v), None);
                }
            }
            db.apply(&updates, Missing::Lenient, &pool).unwrap();
            assert_eq!(out_arcs(&db.view().unwrap()), arcs(&edges), "round {round}");
        }
        db.checkpoint(None).unwrap();
        assert_eq!(out_arcs(&db.view().unwrap()), arcs(&edges), "after a checkpoint");
    }
}

#[test]
fn pairs_do_what_their_updates_say() {
    let directed = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let undirected = GraphOptions { graph_kind: GraphKind::Undirected, ..directed };
    let kinds = [
        directed,
        GraphOptions { in_edges: false, ..directed },
        undirected,
        GraphOptions { ordered: true, ..directed },
        GraphOptions { keys: KeyScheme::Integer, ..directed },
        GraphOptions { keys: KeyScheme::Integer, ..undirected },
    ];
    let pool = Pool::new(3).unwrap();
    for seed in 0..scaled(kinds.len() as u64) {
        let options = kinds[seed as usize % kinds.len()];
        println!("seed {seed}: {options:?}");
        let random = &mut Random::new(seed + 17);
        let disk = FaultStorage::default();
        let db = Engine::create_in(Arc::new(disk.clone()), Path::new("db"), options).unwrap();
        let scale = if options.keys == KeyScheme::Dense { 1 } else { 1_000_003 };
        let mut edges = empty(&options);
        let batches =
            [(Op::Insert, 6_000), (Op::Delete, 3_000), (Op::Insert, 40_000), (Op::Insert, 7), (Op::Delete, 30_000)];
        for round in 0..3 {
            for (i, (op, len)) in batches.into_iter().enumerate() {
                // Removed edges may have unknown keys, which have no id.
                let bound = if op == Op::Delete { NUM_KEYS } else { NUM_KEYS / 2 + 100 * round };
                let numbers: Vec<_> = (0..len).map(|_| (random.below(bound), random.below(bound))).collect();
                let weight = if op == Op::Insert { Some(0) } else { None };
                numbers.iter().for_each(|&pair| change(&mut edges, pair, weight));
                let pairs: Vec<_> = numbers.iter().map(|&(u, v)| (u * scale, v * scale)).collect();
                db.apply_edges(&pairs, op, &pool).unwrap();
                assert_eq!(out_arcs(&db.view().unwrap()), arcs(&edges), "round {round}, batch {i}");
            }
            // Removed vertices come back with new edges.
            let gone: Vec<_> = (0..5).map(|_| random.below(NUM_KEYS / 2)).collect();
            let updates: Vec<_> = gone.iter().map(|&v| Update::RemoveVertex(key(options.keys, v))).collect();
            gone.iter().for_each(|&gone| _ = edges.remove_vertex(gone.into()));
            db.apply(&updates, Missing::Lenient, &pool).unwrap();
            if round == 0 {
                db.checkpoint(None).unwrap();
            }
        }
        let num_vertices = db.view().unwrap().num_vertices();
        let left = disk.duplicate();
        drop(db);
        let view = Engine::open_in(Arc::new(left), Path::new("db")).unwrap().view().unwrap();
        assert_eq!((out_arcs(&view), view.num_vertices()), (arcs(&edges), num_vertices), "after a crash");
    }
}

#[test]
fn pairs_have_no_weights() {
    let options =
        GraphOptions { keys: KeyScheme::Dense, weight_type: Some(WeightType::U32), ..GraphOptions::default() };
    let pool = Pool::new(2).unwrap();
    let db = Engine::create_in(Arc::new(FaultStorage::default()), Path::new("db"), options).unwrap();
    let added: Vec<_> = (0..3000).map(|i| Update::add_weighted_edge(i, i + 1, 5)).collect();
    db.apply(&added, Missing::Lenient, &pool).unwrap();
    let pairs: Vec<_> = (0..3000).map(|i| (i, i + 2)).collect();
    assert!(db.apply_edges(&pairs, Op::Insert, &pool).is_err());
    assert_eq!(db.view().unwrap().num_edges(), 3000);
    let pairs: Vec<_> = (0..2500).map(|i| (i, i + 1)).collect();
    db.apply_edges(&pairs, Op::Delete, &pool).unwrap();
    assert_eq!(db.view().unwrap().num_edges(), 500);
}

#[test]
fn a_large_batch_with_a_fault_does_nothing() {
    let pool = Pool::new(2).unwrap();
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let db = Engine::create_in(Arc::new(FaultStorage::default()), Path::new("db"), options).unwrap();
    let mut updates: Vec<Update> = (0..20_000_u64).map(|i| Update::add_edge(i % 50, i % 49)).collect();
    updates[17_000] = Update::add_edge(3, u64::MAX);
    updates[18_000] = Update::add_edge("x", 3);
    let error = db.apply(&updates, Missing::Lenient, &pool).unwrap_err();
    assert!(matches!(error, anden_engine::Error::Update { index: 17_000, .. }), "{error}");
    assert_eq!(db.view().unwrap().num_vertices(), 0);
}

/// A long WAL is applied in several batches, each over the result of the one before.
#[test]
fn a_long_log_is_replayed_batch_by_batch() {
    // The first two batches exceed one replay batch together. The others change their arcs.
    const MANY: u32 = 1 << 11;
    let batches = [(Op::Insert, 560_000), (Op::Insert, 540_000), (Op::Delete, 150_000), (Op::Insert, 50_000)];
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let (pool, random, disk) = (Pool::new(2).unwrap(), &mut Random::new(31), FaultStorage::default());
    let db = Engine::create_in(Arc::new(disk.clone()), Path::new("db"), options).unwrap();
    db.set_checkpoint_bytes(None);
    let mut is_there = vec![false; (MANY * MANY) as usize];
    for (op, len) in batches {
        let pairs: Vec<_> = (0..len).map(|_| (random.below(MANY), random.below(MANY))).collect();
        pairs.iter().for_each(|(u, v)| is_there[(u * MANY + v) as usize] = op == Op::Insert);
        db.apply_edges(&pairs, op, &pool).unwrap();
    }
    assert_eq!(db.live_stats().logged_commits, batches.len() as u64, "nothing is in a snapshot");
    let left = disk.duplicate();
    drop(db);
    let db = Engine::open_in(Arc::new(left), Path::new("db")).unwrap();
    let view = db.view().unwrap();
    assert_eq!(view.vertex_bound(), MANY as usize);
    let mut num_arcs = 0;
    for vertex in 0..MANY {
        let (mut out, mut into) = (Vec::new(), Vec::new());
        let _ = view.for_each_fragment(Direction::Out, vertex, |targets| {
            out.extend_from_slice(targets);
            ControlFlow::Continue(())
        });
        let _ = view.for_each_fragment(Direction::In, vertex, |sources| {
            into.extend_from_slice(sources);
            ControlFlow::Continue(())
        });
        let all = |holds: &dyn Fn(u32) -> u32| -> Vec<u32> {
            (0..MANY).filter(|&other| is_there[holds(other) as usize]).collect()
        };
        assert_eq!(out, all(&|target| vertex * MANY + target), "out-list of {vertex}");
        assert_eq!(into, all(&|source| source * MANY + vertex), "in-list of {vertex}");
        assert_eq!((view.degree(Direction::Out, vertex), view.degree(Direction::In, vertex)), (out.len(), into.len()));
        num_arcs += out.len() as u64;
    }
    assert_eq!((view.num_arcs(), view.num_edges()), (num_arcs, num_arcs));
    view.check().unwrap();
}
