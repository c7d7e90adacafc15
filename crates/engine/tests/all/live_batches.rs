//! Large batches of a live graph, which all workers look at, do what the same updates do one by one.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anden_engine::{AppendOptions, Changes, Database, Fate, GraphOptions, Key, KeyScheme, Missing, Update, View};
use base::VertexId;
use base::parallel::Pool;
use base::progress::Silent;
use base::storage::FaultStorage;
use graph::{Direction, Graph, InEdges, WeightType, WeightedEdges};
use testkit::{Random, scaled};

const NUM_KEYS: u32 = 3000;

/// Arcs with their weights, or zeros, by the keys of both ends.
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

fn out_arcs(view: &View) -> Arcs {
    let mut arcs = Arcs::new();
    let scheme = view.options().keys;
    let name = |vertex| number(scheme, &view.key(vertex).unwrap());
    for source in 0..view.vertex_bound() as VertexId {
        let mut weights = Vec::new();
        let _ = view.for_each_weighted_out_fragment::<u32>(source, |_, some| {
            weights.extend_from_slice(some);
            ControlFlow::Continue(())
        });
        let mut weights = weights.into_iter();
        let _ = view.for_each_out_fragment(source, |targets| {
            for &target in targets {
                assert!(arcs.insert((name(source), name(target)), weights.next().unwrap_or(0)).is_none());
            }
            ControlFlow::Continue(())
        });
    }
    let mut num_in_arcs = 0;
    for target in 0..view.vertex_bound() as VertexId {
        let _ = view.for_each_in_fragment(target, |sources| {
            assert!(sources.iter().all(|&source| arcs.contains_key(&(name(source), name(target)))));
            num_in_arcs += sources.len();
            ControlFlow::Continue(())
        });
    }
    assert!(!view.has_in_edges() || num_in_arcs == arcs.len());
    view.check().unwrap();
    arcs
}

fn change(arcs: &mut Arcs, options: &GraphOptions, (source, target): (u32, u32), weight: Option<u32>) {
    let (source, target) = (u64::from(source), u64::from(target));
    let is_two_way = options.direction == Direction::Undirected;
    let pairs = match options.ordered {
        true if source == target => vec![],
        true => vec![(source.min(target), source.max(target))],
        false if is_two_way => vec![(source, target), (target, source)],
        false => vec![(source, target)],
    };
    for pair in pairs {
        match weight {
            Some(weight) => arcs.insert(pair, weight),
            None => arcs.remove(&pair),
        };
    }
}

#[test]
fn large_batches_do_what_their_updates_say() {
    let directed = GraphOptions::default();
    let undirected = GraphOptions { direction: Direction::Undirected, ..directed };
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
        let db = Database::create_in(Arc::new(FaultStorage::default()), Path::new("db"), options).unwrap();
        let key = |number| key(options.keys, number);
        let mut arcs = Arcs::new();
        // What lies below the changes.
        let mut changes = Changes::default();
        for _ in 0..4000 {
            let (u, v) = (random.below(NUM_KEYS / 2), random.below(NUM_KEYS / 2));
            changes.added.push((key(u), key(v), options.weight_type.map(|_| 3.into())));
            change(&mut arcs, &options, (u, v), Some(options.weight_type.map_or(0, |_| 3)));
        }
        db.append_changes(&changes, &AppendOptions::default(), &pool, &Silent).unwrap();
        for round in 0..4_u32 {
            let mut updates = Vec::new();
            // Every second batch has nothing but edges of vertices that are there, or may be by their ids.
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
                    change(&mut arcs, &options, (u, v), Some(weight.unwrap_or(0)));
                } else {
                    updates.push(Update::remove_edge(key(u), key(v)));
                    change(&mut arcs, &options, (u, v), None);
                }
            }
            db.apply(&updates, Missing::Lenient, &pool).unwrap();
            assert_eq!(out_arcs(&db.view().unwrap()), arcs, "round {round}");
        }
        db.checkpoint(None).unwrap();
        assert_eq!(out_arcs(&db.view().unwrap()), arcs, "after a checkpoint");
    }
}

#[test]
fn pairs_do_what_their_updates_say() {
    let directed = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let undirected = GraphOptions { direction: Direction::Undirected, ..directed };
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
        let db = Database::create_in(Arc::new(disk.clone()), Path::new("db"), options).unwrap();
        let scale = if options.keys == KeyScheme::Dense { 1 } else { 1_000_003 };
        let mut arcs = Arcs::new();
        let batches =
            [(Fate::Come, 6_000), (Fate::Go, 3_000), (Fate::Come, 40_000), (Fate::Come, 7), (Fate::Go, 30_000)];
        for round in 0..3 {
            for (i, (fate, len)) in batches.into_iter().enumerate() {
                // What is to go may never have been there, and has no id then.
                let bound = if fate == Fate::Go { NUM_KEYS } else { NUM_KEYS / 2 + 100 * round };
                let edges: Vec<_> = (0..len).map(|_| (random.below(bound), random.below(bound))).collect();
                let weight = if fate == Fate::Come { Some(0) } else { None };
                edges.iter().for_each(|&edge| change(&mut arcs, &options, edge, weight));
                let pairs: Vec<_> = edges.iter().map(|&(u, v)| (u * scale, v * scale)).collect();
                db.apply_edges(&pairs, fate, &pool).unwrap();
                assert_eq!(out_arcs(&db.view().unwrap()), arcs, "round {round}, batch {i}");
            }
            // Vertices that went come back with their edges.
            let gone: Vec<_> = (0..5).map(|_| random.below(NUM_KEYS / 2)).collect();
            let updates: Vec<_> = gone.iter().map(|&v| Update::RemoveVertex(key(options.keys, v))).collect();
            arcs.retain(|&(u, v), _| !gone.iter().any(|&gone| u64::from(gone) == u || u64::from(gone) == v));
            db.apply(&updates, Missing::Lenient, &pool).unwrap();
            if round == 0 {
                db.checkpoint(None).unwrap();
            }
        }
        let num_vertices = db.view().unwrap().num_vertices();
        let left = disk.duplicate();
        drop(db);
        let view = Database::open_in(Arc::new(left), Path::new("db")).unwrap().view().unwrap();
        assert_eq!((out_arcs(&view), view.num_vertices()), (arcs, num_vertices), "after a crash");
    }
}

#[test]
fn pairs_have_no_weights() {
    let options =
        GraphOptions { keys: KeyScheme::Dense, weight_type: Some(WeightType::U32), ..GraphOptions::default() };
    let pool = Pool::new(2).unwrap();
    let db = Database::create_in(Arc::new(FaultStorage::default()), Path::new("db"), options).unwrap();
    let added: Vec<_> = (0..3000).map(|i| Update::add_weighted_edge(i, i + 1, 5)).collect();
    db.apply(&added, Missing::Lenient, &pool).unwrap();
    let pairs: Vec<_> = (0..3000).map(|i| (i, i + 2)).collect();
    assert!(db.apply_edges(&pairs, Fate::Come, &pool).is_err());
    assert_eq!(db.view().unwrap().num_edges(), 3000);
    let pairs: Vec<_> = (0..2500).map(|i| (i, i + 1)).collect();
    db.apply_edges(&pairs, Fate::Go, &pool).unwrap();
    assert_eq!(db.view().unwrap().num_edges(), 500);
}

#[test]
fn a_large_batch_with_a_fault_does_nothing() {
    let pool = Pool::new(2).unwrap();
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let db = Database::create_in(Arc::new(FaultStorage::default()), Path::new("db"), options).unwrap();
    let mut updates: Vec<Update> = (0..20_000_u64).map(|i| Update::add_edge(i % 50, i % 49)).collect();
    updates[17_000] = Update::add_edge(3, u64::MAX);
    updates[18_000] = Update::add_edge("x", 3);
    let error = db.apply(&updates, Missing::Lenient, &pool).unwrap_err();
    assert!(matches!(error, anden_engine::Error::Update { index: 17_000, .. }), "{error}");
    assert_eq!(db.view().unwrap().num_vertices(), 0);
}

/// What the log has is applied in several batches where it is much, each over what those before left.
#[test]
fn a_long_log_is_replayed_batch_by_batch() {
    // The first two have more arcs together than are applied at once, and the others change what they left.
    const MANY: u32 = 1 << 11;
    let batches = [(Fate::Come, 560_000), (Fate::Come, 540_000), (Fate::Go, 150_000), (Fate::Come, 50_000)];
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let (pool, random, disk) = (Pool::new(2).unwrap(), &mut Random::new(31), FaultStorage::default());
    let db = Database::create_in(Arc::new(disk.clone()), Path::new("db"), options).unwrap();
    db.set_checkpoint_bytes(None);
    let mut is_there = vec![false; (MANY * MANY) as usize];
    for (fate, len) in batches {
        let pairs: Vec<_> = (0..len).map(|_| (random.below(MANY), random.below(MANY))).collect();
        pairs.iter().for_each(|(u, v)| is_there[(u * MANY + v) as usize] = fate == Fate::Come);
        db.apply_edges(&pairs, fate, &pool).unwrap();
    }
    assert_eq!(db.live_stats().logged_commits, batches.len() as u64, "nothing is in a snapshot");
    let left = disk.duplicate();
    drop(db);
    let db = Database::open_in(Arc::new(left), Path::new("db")).unwrap();
    let view = db.view().unwrap();
    assert_eq!(view.vertex_bound(), MANY as usize);
    let mut num_arcs = 0;
    for vertex in 0..MANY {
        let (mut out, mut into) = (Vec::new(), Vec::new());
        let _ = view.for_each_out_fragment(vertex, |targets| {
            out.extend_from_slice(targets);
            ControlFlow::Continue(())
        });
        let _ = view.for_each_in_fragment(vertex, |sources| {
            into.extend_from_slice(sources);
            ControlFlow::Continue(())
        });
        let all = |holds: &dyn Fn(u32) -> u32| -> Vec<u32> {
            (0..MANY).filter(|&other| is_there[holds(other) as usize]).collect()
        };
        assert_eq!(out, all(&|target| vertex * MANY + target), "out-list of {vertex}");
        assert_eq!(into, all(&|source| source * MANY + vertex), "in-list of {vertex}");
        assert_eq!((view.out_degree(vertex), view.in_degree(vertex)), (out.len(), into.len()));
        num_arcs += out.len() as u64;
    }
    assert_eq!((view.num_arcs(), view.num_edges()), (num_arcs, num_arcs));
    view.check().unwrap();
}
