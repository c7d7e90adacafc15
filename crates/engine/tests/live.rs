//! Random updates of a live graph, with checkpoints, appends and merges between them, against a plain model.
//!
//! Views that were taken at any time are held, and compared again once much has happened.

mod live_model;

use std::path::Path;
use std::sync::Arc;

use anden_engine::{AppendOptions, Changes, Database, GraphOptions, KeyScheme, MergeScope, Missing, Update, View};
use base::parallel::Pool;
use base::progress::Silent;
use base::storage::{FaultStorage, MemoryStorage, Storage};
use graph::{Graph, WeightType};
use live_model::{Model, NUM_KEYS, Truth, kinds, read};
use testkit::Random;

const DB: &str = "db";

#[test]
fn what_is_seen_is_what_was_asked_for() {
    let pool = Pool::new(2).unwrap();
    for (seed, options) in kinds().into_iter().enumerate() {
        println!("seed {seed}: {options:?}");
        let random = &mut Random::new(seed as u64 + 77);
        let storage: Arc<dyn Storage> = match seed % 2 == 0 {
            true => Arc::new(FaultStorage::default()),
            false => Arc::new(MemoryStorage::default()),
        };
        let mut db = Database::create_in(storage.clone(), Path::new(DB), options).unwrap();
        let mut truth = Truth::new(options);
        let mut held: Vec<(View, Model)> = Vec::new();
        for step in 0..120 {
            let num_updates = [1, 3, 20, 300][random.below(4) as usize];
            let updates: Vec<_> = (0..num_updates).map(|_| truth.update(random)).collect();
            let applied = db.apply(&updates, Missing::Lenient, &pool).unwrap();
            let model = truth.model();
            assert_eq!((applied.vertices, applied.edges), (model.vertices.len() as u64, model.num_edges));
            let view = db.view().unwrap();
            assert_eq!(read(&view), model, "step {step}");
            match random.below(12) {
                0 | 1 => {
                    db.checkpoint(None).unwrap();
                    assert_eq!(read(&db.view().unwrap()), model, "after a checkpoint in step {step}");
                }
                2 => {
                    let (u, v) = (random.below(NUM_KEYS).into(), random.below(NUM_KEYS).into());
                    let (source, target) = (truth.key(u), truth.key(v));
                    let mut changes = Changes::default();
                    changes.added.push((source, target, truth.weight(3)));
                    truth.add_edge(u, v, 3);
                    db.append_changes(&changes, &AppendOptions::default(), &pool, &Silent).unwrap();
                    assert_eq!(read(&db.view().unwrap()), truth.model(), "after an append in step {step}");
                }
                3 => {
                    db.merge(MergeScope::All, &pool, &Silent).unwrap();
                }
                4 => {
                    let newest = db.snapshots().last().map(|snapshot| snapshot.number).unwrap();
                    if db.snapshots().len() > 1 {
                        db.drop_snapshots(&[newest], &Silent).unwrap();
                    }
                }
                5 if db.snapshots().len() > 2 => {
                    db.checkpoint(None).unwrap();
                    drop(db);
                    db = Database::open_in(storage.clone(), Path::new(DB)).unwrap();
                    db.verify(&pool).unwrap();
                }
                _ => {}
            }
            assert_eq!(read(&db.view().unwrap()), truth.model(), "at the end of step {step}");
            if random.below(4) == 0 {
                held.push((view, model));
            }
            if held.len() > 4 {
                let (view, model) = held.swap_remove(random.below(5) as usize);
                assert_eq!(read(&view), model, "a view that was held until step {step}");
            }
        }
        db.verify(&pool).unwrap();
    }
}

#[test]
fn what_is_not_there_is_an_error_to_the_strict() {
    let pool = Pool::new(1).unwrap();
    let options = GraphOptions { keys: KeyScheme::String, ..GraphOptions::default() };
    let db = Database::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
    let strict = |updates: &[Update]| db.apply(updates, Missing::Strict, &pool).map_err(|error| error.to_string());
    let vertices = ["a", "b", "c"].map(|key| Update::AddVertex(key.into()));
    strict(&vertices).unwrap();
    strict(&[Update::add_edge("a", "b"), Update::remove_edge("a", "b"), Update::add_edge("b", "c")]).unwrap();
    let refused = [
        (vec![Update::add_edge("a", "x")], "vertex x does not exist"),
        (vec![Update::add_edge("a", "c"), Update::remove_edge("c", "a")], "there is no edge from c to a to remove"),
        (vec![Update::remove_edge("a", "x")], "there is no edge from a to x to remove"),
        (vec![Update::RemoveVertex("x".into())], "there is no vertex x to remove"),
        (
            vec![Update::RemoveVertex("b".into()), Update::remove_edge("b", "c")],
            "there is no edge from b to c to remove",
        ),
        (vec![Update::RemoveVertex("b".into()), Update::add_edge("a", "b")], "vertex b does not exist"),
    ];
    let before = read(&db.view().unwrap());
    assert_eq!(before.arcs.len(), 1);
    for (updates, expected) in refused {
        assert_eq!(strict(&updates), Err(expected.to_owned()));
        assert_eq!(read(&db.view().unwrap()), before, "nothing has happened");
    }
    strict(&[Update::RemoveVertex("b".into()), Update::AddVertex("b".into()), Update::add_edge("a", "b")]).unwrap();
    assert_eq!(read(&db.view().unwrap()).arcs.len(), 1);
}

#[test]
fn what_does_not_fit_the_graph_is_refused() {
    let pool = Pool::new(1).unwrap();
    let create = |options| Database::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
    let refused = |options, update: Update| {
        let db = create(options);
        let updates = [Update::AddVertex(1.into()), update];
        let error = db.apply(&updates, Missing::Lenient, &pool).unwrap_err().to_string();
        assert_eq!(db.view().unwrap().num_vertices(), 0, "nothing has happened");
        error
    };
    let plain = GraphOptions::default();
    let weighted = GraphOptions { weight_type: Some(WeightType::U32), ..plain };
    assert!(refused(plain, Update::add_weighted_edge(1, 2, 3)).contains("the graph has no weights"));
    assert!(refused(weighted, Update::add_edge(1, 2)).contains("has no weight"));
    assert!(refused(weighted, Update::add_weighted_edge(1, 2, -3)).contains("has weight -3"));
    assert!(refused(plain, Update::add_edge("x", "y")).contains("the graph has integer ids"));
    let dense = GraphOptions { keys: KeyScheme::Dense, ..plain };
    assert!(refused(dense, Update::add_edge(1, u64::MAX)).contains("at most"));
    assert!(refused(GraphOptions { multigraph: true, ..plain }, Update::add_edge(1, 2)).contains("multigraph"));
}
