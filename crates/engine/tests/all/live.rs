//! Random updates with checkpoints, appends and merges between them, against a plain model.
//!
//! Views from any time are held and compared again later.

use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_base::storage::{MemoryStorage, Storage};
use anden_engine::{
    AppendOptions, Changes, Engine, GraphOptions, KeyScheme, MergeScope, Missing, NewValue, SnapshotView, Update,
};
use anden_graph::property::OwnedValue;
use anden_graph::{Graph, WeightType};
use anden_testkit::{FaultStorage, Random, scaled};

use crate::live_model::{Model, NUM_KEYS, Truth, kinds, read, values};

const DB: &str = "db";

#[test]
fn random_updates_match_the_model() {
    let pool = Pool::new(2).unwrap();
    let kinds = kinds();
    let num_databases = scaled(kinds.len() as u64);
    let mut total_updates = 0;
    for seed in 0..num_databases {
        let options = kinds[seed as usize % kinds.len()];
        println!("seed {seed}: {options:?}");
        let random = &mut Random::new(seed + 77);
        let storage: Arc<dyn Storage> = match seed % 2 == 0 {
            true => Arc::new(FaultStorage::default()),
            false => Arc::new(MemoryStorage::default()),
        };
        let mut db = Engine::create_in(storage.clone(), Path::new(DB), options).unwrap();
        let mut truth = Truth::new(options);
        let mut held: Vec<(SnapshotView, Model)> = Vec::new();
        for step in 0..120 {
            let num_updates = [1, 3, 20, 300][random.below(4) as usize];
            let updates: Vec<_> = (0..num_updates).map(|_| truth.update(random)).collect();
            total_updates += num_updates;
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
                    db = Engine::open_in(storage.clone(), Path::new(DB)).unwrap();
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
    println!("live_model: {total_updates} updates of {num_databases} databases");
    assert!(total_updates >= num_databases * 8_000, "{total_updates} updates");
}

#[test]
fn strict_mode_refuses_absent_vertices_and_edges() {
    let pool = Pool::new(1).unwrap();
    let options = GraphOptions { keys: KeyScheme::String, ..GraphOptions::default() };
    let db = Engine::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
    let strict = |updates: &[Update]| db.apply(updates, Missing::Strict, &pool).map_err(|error| error.to_string());
    let vertices = ["a", "b", "c"].map(|key| Update::AddVertex(key.into()));
    strict(&vertices).unwrap();
    strict(&[Update::add_edge("a", "b"), Update::remove_edge("a", "b"), Update::add_edge("b", "c")]).unwrap();
    let size = |key: &str| Update::set_vertex(key, "size", 3);
    let no_name = |key: &str| Update::set_vertex(key, "name", OwnedValue::Null);
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
        (vec![Update::set_vertex("x", "size", 3)], "vertex x does not exist"),
        (vec![Update::set_vertex("x", "size", OwnedValue::Null), size("a")], "vertex x does not exist"),
        (
            vec![size("b"), Update::set_vertex("a", "size", OwnedValue::Null)],
            "cannot remove \"size\" of vertex a: there is no value",
        ),
        (
            vec![Update::RemoveVertex("c".into()), Update::AddVertex("c".into()), no_name("c")],
            "cannot remove \"name\" of vertex c: there is no value",
        ),
    ];
    strict(&[Update::set_vertex("c", "name", "cy")]).unwrap();
    let before = read(&db.view().unwrap());
    assert_eq!(before.arcs.len(), 1);
    for (updates, expected) in refused {
        assert_eq!(strict(&updates), Err(expected.to_owned()));
        assert_eq!(read(&db.view().unwrap()), before, "nothing has happened");
    }
    strict(&[size("a"), Update::set_vertex("a", "size", OwnedValue::Null), no_name("c")]).unwrap();
    strict(&[Update::RemoveVertex("b".into()), Update::AddVertex("b".into()), Update::add_edge("a", "b")]).unwrap();
    assert_eq!(read(&db.view().unwrap()).arcs.len(), 1);
}

/// With dense keys, a vertex brings all smaller ids, in one batch as in two.
#[test]
fn the_strict_know_what_comes_with_a_vertex() {
    let pool = Pool::new(1).unwrap();
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let db = Engine::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
    let strict = |updates: &[Update]| db.apply(updates, Missing::Strict, &pool).map_err(|error| error.to_string());
    let beyond = [Update::AddVertex(100_u64.into()), Update::add_edge(50, 101)];
    assert_eq!(strict(&beyond), Err("vertex 101 does not exist".to_owned()));
    let removed = [Update::AddVertex(100_u64.into()), Update::RemoveVertex(50_u64.into()), Update::add_edge(50, 100)];
    assert_eq!(strict(&removed), Err("vertex 50 does not exist".to_owned()));
    strict(&[Update::AddVertex(100_u64.into()), Update::add_edge(50, 100), Update::RemoveVertex(7_u64.into())])
        .unwrap();
    let view = db.view().unwrap();
    assert_eq!((view.vertex_bound(), view.num_vertices(), view.num_edges()), (101, 100, 1));
    // Counts of commits that no snapshot has; the edge is in two lists.
    let report = db.verify(&pool).unwrap();
    assert_eq!((report.num_vertices, report.num_edges, report.num_arcs), (100, 1, 2));
}

#[test]
fn updates_unfit_for_the_graph_are_refused() {
    let pool = Pool::new(1).unwrap();
    let create = |options| Engine::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
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
    assert!(refused(weighted, Update::add_edge(1, 2)).contains("no weight is given"));
    assert!(refused(weighted, Update::add_weighted_edge(1, 2, -3)).contains("weight -3 does not fit"));
    assert!(refused(plain, Update::add_edge("x", "y")).contains("the graph has integer ids"));
    let dense = GraphOptions { keys: KeyScheme::Dense, ..plain };
    assert!(refused(dense, Update::add_edge(1, u64::MAX)).contains("at most"));
    assert!(
        refused(plain, Update::set_vertex(2, "size", OwnedValue::Null)).contains("no property \"size\" of vertices")
    );
    assert!(refused(plain, Update::set_vertex(2, "", 1)).contains("a name of a property"));
    assert!(refused(plain, Update::set_vertex("x", "size", 1)).contains("the graph has integer ids"));
}

#[test]
fn values_have_the_type_of_their_property() {
    let pool = Pool::new(1).unwrap();
    let db = Engine::create_in(Arc::new(FaultStorage::default()), Path::new(DB), GraphOptions::default()).unwrap();
    let apply = |updates: &[Update]| db.apply(updates, Missing::Lenient, &pool).map_err(|error| error.to_string());
    let text = |vertex: u64, name: &str, text: &str, is_quoted| Update::SetVertexProperty {
        vertex: vertex.into(),
        name: name.into(),
        value: NewValue::Text { text: text.into(), is_quoted },
    };
    apply(&[text(1, "size", "1", false), text(2, "size", "2.5", false), text(1, "code", "7", true)]).unwrap();
    let types = |view: &SnapshotView| view.properties().schema().iter().map(|(_, of)| of.name()).collect::<Vec<_>>();
    let before = db.view().unwrap();
    assert_eq!(types(&before), ["f64", "string"]);
    for _ in 0..2 {
        let wrong = apply(&[Update::AddVertex(9.into()), text(1, "size", "x", false)]);
        assert_eq!(wrong, Err("vertex 1: property \"size\": expected a number of type f64, found 'x'".into()));
        let wrong = apply(&[Update::set_vertex(1, "code", 7)]);
        assert_eq!(wrong, Err("vertex 1: property \"code\": expected a value of type string, found '7'".into()));
        // The first value of a new property sets its type.
        let wrong = apply(&[Update::set_vertex(1, "new", 7), Update::set_vertex(1, "new", true)]);
        assert_eq!(wrong, Err("vertex 1: property \"new\": expected a value of type i64, found 'true'".into()));
        assert_eq!(db.view().unwrap().num_vertices(), 2, "nothing has happened");
        assert_eq!(types(&db.view().unwrap()), ["f64", "string"]);
        db.checkpoint(None).unwrap();
    }
    apply(&[text(1, "size", "4", true), Update::set_vertex(2, "size", OwnedValue::Null)]).unwrap();
    assert_eq!(values(&before).len(), 3);
    let now: Vec<_> = values(&db.view().unwrap()).into_values().collect();
    assert_eq!(now, ["String(\"7\")", "F64(4.0)"]);
}
