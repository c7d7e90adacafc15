//! One rule for values of missing vertices and edges, however they are set: transactions, updates and appends.

use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{AppendOptions, Changes, Engine, Error, ErrorKind, GraphOptions, Key, KeyScheme, Missing, Update};
use anden_graph::Graph;
use anden_graph::property::OwnedValue;
use anden_snapshots::SnapshotView;
use anden_testkit::FaultStorage;

/// A way to set a value of a vertex.
type VertexDoor = fn(&Engine, &Key, OwnedValue, &Pool) -> Result<(), Error>;

const VERTEX_DOORS: [(&str, VertexDoor); 4] = [
    ("transaction", |db, key, value, pool| {
        let mut tx = db.begin(pool)?;
        tx.set_vertex_value(key, "size", value.clone())?;
        assert_eq!(tx.has_vertex(key)?, value != OwnedValue::Null, "the transaction sees what it makes");
        tx.commit().map(|_| ())
    }),
    ("update", |db, key, value, pool| {
        db.apply(&[Update::set_vertex(key.clone(), "size", value)], Missing::Lenient, pool).map(|_| ())
    }),
    ("submitted update", |db, key, value, pool| {
        db.submit(&[Update::set_vertex(key.clone(), "size", value)], pool)?.wait().map(|_| ())
    }),
    ("append", |db, key, value, pool| {
        let changes = Changes::default().set_vertex(key.clone(), "size", value);
        db.append_changes(&changes, &AppendOptions::default(), pool, &Silent).map(|_| ())
    }),
];

fn kinds() -> Vec<(GraphOptions, [Key; 3])> {
    let schemes = [
        (KeyScheme::Integer, [Key::Integer(10), Key::Integer(20), Key::Integer(900)]),
        (KeyScheme::Dense, [Key::Integer(0), Key::Integer(1), Key::Integer(4)]),
        (KeyScheme::String, [Key::from("a"), Key::from("b"), Key::from("x")]),
    ];
    let levelled = [false, true].map(|edge_properties| GraphOptions { edge_properties, ..GraphOptions::default() });
    let all = schemes.into_iter().flat_map(|(keys, names)| {
        levelled.iter().map(move |options| (GraphOptions { keys, ..*options }, names.clone())).collect::<Vec<_>>()
    });
    all.collect()
}

/// A graph with an edge, a value, and a removed third vertex.
fn database(options: GraphOptions, [u, v, gone]: &[Key; 3], was_there: bool, pool: &Pool) -> Engine {
    let db = Engine::create_in(Arc::new(FaultStorage::default()), Path::new("db"), options).unwrap();
    let add = [Update::add_edge(u.clone(), v.clone()), Update::set_vertex(u.clone(), "size", 1)];
    db.apply(&add, Missing::Lenient, pool).unwrap();
    if was_there {
        let edge = Update::add_edge(u.clone(), gone.clone());
        let value = Update::set_vertex(gone.clone(), "size", 2);
        db.apply(&[edge, value], Missing::Lenient, pool).unwrap();
        db.apply(&[Update::RemoveVertex(gone.clone())], Missing::Lenient, pool).unwrap();
    }
    db
}

/// The vertices with their values, and the number of edges.
fn shown(view: &SnapshotView) -> (Vec<(String, String)>, u64) {
    let place = view.properties().schema().find("size").unwrap();
    let live = (0..view.vertex_bound() as u32).filter(|&vertex| view.is_live(vertex));
    let vertices = live.map(|vertex| {
        (view.key(vertex).unwrap().to_string(), view.properties().value(place, vertex).unwrap().to_string())
    });
    (vertices.collect(), view.num_edges())
}

#[test]
fn value_makes_its_vertex_through_every_door() {
    let pool = Pool::new(1).unwrap();
    for (options, keys) in kinds() {
        for was_there in [false, true] {
            let mut results = Vec::new();
            for (name, door) in VERTEX_DOORS {
                let db = database(options, &keys, was_there, &pool);
                let before = shown(&db.view().unwrap());
                // An append names its vertices by rows, as a file does. A row without a value creates its vertex too.
                if name != "append" {
                    door(&db, &keys[2], OwnedValue::Null, &pool).unwrap();
                    assert_eq!(shown(&db.view().unwrap()), before, "{name}: null makes nothing, {options:?}");
                }
                door(&db, &keys[2], 7.into(), &pool).unwrap();
                let after = shown(&db.view().unwrap());
                assert!(after.0.contains(&(keys[2].to_string(), "7".to_owned())), "{name}: {after:?}");
                assert_eq!(after.1, 1, "the edges of a vertex do not come back");
                db.verify(&pool).unwrap();
                results.push((name, after));
            }
            for (name, result) in &results {
                assert_eq!(*result, results[0].1, "{name}, {options:?}");
            }
        }
    }
}

#[test]
fn strict_batch_refuses_value_of_missing_vertex() {
    let pool = Pool::new(1).unwrap();
    for (options, keys) in kinds() {
        for was_there in [false, true] {
            for value in [OwnedValue::Null, 7.into()] {
                let db = database(options, &keys, was_there, &pool);
                let before = shown(&db.view().unwrap());
                let update = Update::set_vertex(keys[2].clone(), "size", value);
                let error = db.apply(&[update], Missing::Strict, &pool).unwrap_err();
                assert_eq!(error.to_string(), format!("vertex {} does not exist", keys[2]), "{options:?}");
                assert_eq!(shown(&db.view().unwrap()), before);
            }
        }
    }
}

#[test]
fn value_of_missing_edge_is_refused_by_every_door() {
    let pool = Pool::new(1).unwrap();
    let plain = GraphOptions { edge_properties: true, ..GraphOptions::default() };
    let kinds = kinds().into_iter().filter(|(options, _)| options.edge_properties);
    let multigraph = (GraphOptions { multigraph: true, ..plain }, [1, 2, 3].map(Key::Integer));
    let ordered = (GraphOptions { ordered: true, ..plain }, [1, 2, 3].map(Key::Integer));
    for (options, keys) in kinds.chain([multigraph, ordered]) {
        let [u, v, gone] = &keys;
        // A missing vertex, a reverse edge, a loop, and a removed edge.
        let missing = if options.ordered { [(u, gone), (gone, u), (v, v)] } else { [(u, gone), (v, u), (v, v)] };
        for (source, target) in missing {
            for was_there in [false, true] {
                let db = database(options, &keys, was_there, &pool);
                let before = shown(&db.view().unwrap());
                let set = |value: OwnedValue| Update::set_edge(source.clone(), target.clone(), "p", value);
                // Creates the property, so that null is allowed.
                db.apply(&[Update::set_edge(u.clone(), v.clone(), "p", 1)], Missing::Lenient, &pool).unwrap();
                let expected = format!("there is no edge from {source} to {target}");
                let refused = |error: Error| {
                    assert_eq!((error.kind(), error.to_string()), (ErrorKind::NotFound, expected.clone()));
                    assert_eq!(shown(&db.view().unwrap()), before, "{options:?}");
                };
                refused(db.apply(&[set(7.into())], Missing::Lenient, &pool).unwrap_err());
                db.apply(&[set(7.into())], Missing::Strict, &pool).unwrap_err();
                let mut tx = db.begin(&pool).unwrap();
                refused(tx.set_edge_value(source, target, "p", 7.into()).unwrap_err());
                // Null for a missing edge changes nothing.
                tx.set_edge_value(source, target, "p", OwnedValue::Null).unwrap();
                tx.commit().unwrap();
                db.apply(&[set(OwnedValue::Null)], Missing::Lenient, &pool).unwrap();
                assert_eq!(shown(&db.view().unwrap()), before, "{options:?}");
            }
        }
    }
}
