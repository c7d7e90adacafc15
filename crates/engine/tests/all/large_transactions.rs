//! Transactions of hundreds of thousands of reads and writes. No operation scans the earlier ones.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anden_base::parallel::Pool;
use anden_engine::{EdgeWeight, Engine, Error, GraphOptions, Key, KeyScheme, Missing, Update};
use anden_graph::property::OwnedValue;
use anden_graph::{Graph, WeightType};
use anden_snapshots::Direction;

/// The number of reads or writes of one kind.
const MANY: u64 = 400_000;

/// Quadratic work takes several times longer than this; linear work takes a few seconds.
const BOUND: Duration = Duration::from_secs(30);

/// Checks the clock at times, so that a failure takes no longer than the bound.
struct Watch {
    what: String,
    start: Instant,
}

impl Watch {
    fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), start: Instant::now() }
    }

    #[track_caller]
    fn tick(&self, step: u64) {
        if step.is_multiple_of(1 << 10) {
            assert!(self.start.elapsed() < BOUND, "{}: {step} took longer than {BOUND:?}", self.what);
        }
    }

    /// Calls `body` with the numbers below [`MANY`].
    #[track_caller]
    fn each(self, mut body: impl FnMut(u64)) {
        for i in 0..MANY {
            body(i);
            self.tick(i);
        }
    }
}

/// A directed weighted path over the vertices below [`MANY`].
fn path(keys: KeyScheme, pool: &Pool) -> Engine {
    let options = GraphOptions { keys, weight_type: Some(WeightType::I64), ..GraphOptions::default() };
    let db = Engine::in_memory(options).unwrap();
    let edge = |i| Update::add_weighted_edge(key(keys, i), key(keys, (i + 1) % MANY), 1);
    db.apply(&(0..MANY).map(edge).collect::<Vec<_>>(), Missing::Lenient, pool).unwrap();
    db
}

fn key(keys: KeyScheme, number: u64) -> Key {
    match keys {
        KeyScheme::String => Key::from(format!("v{number}").as_str()),
        _ => number.into(),
    }
}

#[test]
fn many_absent_keys_are_read_and_validated() {
    let pool = Pool::new(1).unwrap();
    for keys in [KeyScheme::Integer, KeyScheme::String, KeyScheme::Dense] {
        let db = path(keys, &pool);
        let begin = || {
            let mut tx = db.begin(&pool).unwrap();
            Watch::new(format!("absent keys, {keys:?}")).each(|i| {
                assert!(!tx.has_vertex(&key(keys, MANY + i)).unwrap());
                // The keys again, in another order.
                assert!(!tx.has_vertex(&key(keys, MANY + i * 7 % (i + 1))).unwrap());
            });
            tx.add_edge(&key(keys, 0), &key(keys, 9), Some(EdgeWeight::Integer(1))).unwrap();
            tx
        };
        let make = |number| db.apply(&[Update::AddVertex(key(keys, number))], Missing::Lenient, &pool).unwrap();
        let tx = begin();
        // A key that was not read does not conflict. With dense keys, the change would create all smaller ids.
        if keys != KeyScheme::Dense {
            make(2 * MANY);
        }
        tx.commit().unwrap();
        let tx = begin();
        make(MANY + 123_456);
        let Err(Error::Conflict { what }) = tx.commit() else { panic!("{keys:?}: a key was made meanwhile") };
        let name = key(keys, MANY + 123_456).to_string();
        assert!(what.contains("the existence of vertex"), "{what}");
        assert!(what.contains(&name) || keys == KeyScheme::Dense, "{what}");
    }
}

#[test]
fn many_present_things_are_read() {
    let pool = Pool::new(1).unwrap();
    let db = path(KeyScheme::Integer, &pool);
    let mut tx = db.begin(&pool).unwrap();
    let at = |i: u64| Key::from(i % MANY);
    Watch::new("vertices").each(|i| assert!(tx.has_vertex(&at(i)).unwrap()));
    Watch::new("edges").each(|i| assert!(tx.has_edge(&at(i), &at(i + 1)).unwrap()));
    Watch::new("absent edges").each(|i| assert!(!tx.has_edge(&at(i), &at(i + 2)).unwrap()));
    Watch::new("lists").each(|i| assert_eq!(tx.degree(&at(i), Direction::In).unwrap(), 1));
    Watch::new("values").each(|i| assert!(tx.vertex_value(&at(i), "size").unwrap().as_value().is_null()));
    Watch::new("one edge, another between").each(|i| assert!(tx.has_edge(&at(i % 2), &at(i % 2 + 1)).unwrap()));
    tx.add_vertex(&Key::from(MANY)).unwrap();
    tx.commit().unwrap();
}

/// The list of a hub grows and shrinks at its beginning.
#[test]
fn many_edges_of_a_hub_come_and_go() {
    let pool = Pool::new(1).unwrap();
    let db = path(KeyScheme::Integer, &pool);
    let hub = Key::from(0);
    let target = |i: u64| Key::from(MANY - 1 - i);
    let weight = |i: u64| Some(EdgeWeight::Integer(i as i64));
    let mut tx = db.begin(&pool).unwrap();
    Watch::new("adds").each(|i| drop(tx.add_edge(&hub, &target(i), weight(i)).unwrap()));
    Watch::new("own edges").each(|i| assert!(tx.has_edge(&hub, &target(i)).unwrap()));
    Watch::new("own weights").each(|i| assert_eq!(tx.weight(&hub, &target(i)).unwrap(), weight(i)));
    Watch::new("sets").each(|i| tx.set_weight(&hub, &target(i), EdgeWeight::Integer(7)).unwrap());
    assert_eq!((tx.degree(&hub, Direction::Out).unwrap() as u64, tx.num_edges()), (MANY, 2 * MANY - 1));
    tx.commit().unwrap();
    assert_eq!(db.view().unwrap().num_edges(), 2 * MANY - 1);
    let mut tx = db.begin(&pool).unwrap();
    Watch::new("removals").each(|i| tx.remove_edge(&hub, &target(i)).unwrap());
    Watch::new("removed edges").each(|i| assert!(!tx.has_edge(&hub, &target(i)).unwrap()));
    assert_eq!((tx.degree(&hub, Direction::Out).unwrap(), tx.num_edges()), (0, MANY - 1));
    tx.commit().unwrap();
    assert_eq!(db.view().unwrap().num_edges(), MANY - 1);
}

/// New and old vertices get edges and values, and are removed.
#[test]
fn many_vertices_with_values_come_and_go() {
    let pool = Pool::new(1).unwrap();
    let db = path(KeyScheme::Integer, &pool);
    let new = |i: u64| Key::from(MANY + i);
    let old = |i: u64| Key::from(i);
    let mut tx = db.begin(&pool).unwrap();
    Watch::new("new edges")
        .each(|i| drop(tx.add_edge(&new(i), &new((i + 1) % MANY), Some(EdgeWeight::Integer(1))).unwrap()));
    Watch::new("values").each(|i| tx.set_vertex_value(&new(i), "size", OwnedValue::I64(i as i64)).unwrap());
    // Null for a property without values searches for a vertex with one.
    Watch::new("nulls").each(|i| tx.set_vertex_value(&new(i), "name", OwnedValue::Null).unwrap());
    Watch::new("old edges").each(|i| drop(tx.add_edge(&old(i), &new(i), Some(EdgeWeight::Integer(1))).unwrap()));
    Watch::new("removals").each(|i| {
        if i % 2 == 0 {
            tx.remove_vertex(&new(i)).unwrap();
        } else {
            assert_eq!(tx.vertex_value(&new(i), "size").unwrap(), OwnedValue::I64(i as i64));
        }
    });
    Watch::new("lists beside removed vertices").each(|i| {
        assert_eq!(tx.degree(&old(i), Direction::Out).unwrap() as u64, 1 + i % 2, "{i}");
    });
    // A vertex that is added again has no old values and edges.
    tx.add_vertex(&new(0)).unwrap();
    assert!(tx.vertex_value(&new(0), "size").unwrap().as_value().is_null());
    assert!(!tx.has_edge(&old(0), &new(0)).unwrap());
    tx.set_vertex_value(&new(0), "size", OwnedValue::I64(5)).unwrap();
    assert_eq!(tx.vertex_value(&new(0), "size").unwrap(), OwnedValue::I64(5));
    tx.remove_vertex(&new(0)).unwrap();
    let num_vertices = MANY + MANY / 2;
    assert_eq!((tx.num_vertices() as u64, tx.num_edges()), (num_vertices, MANY + MANY / 2));
}

#[test]
fn many_values_of_edges_come_and_go() {
    let pool = Pool::new(1).unwrap();
    let options = GraphOptions { edge_properties: true, ..GraphOptions::default() };
    let db = Engine::in_memory(options).unwrap();
    let ends = |i: u64| (Key::from(i), Key::from(i + 1));
    let mut tx = db.begin(&pool).unwrap();
    Watch::new("edges").each(|i| drop(tx.add_edge(&ends(i).0, &ends(i).1, None).unwrap()));
    Watch::new("values").each(|i| tx.set_edge_value(&ends(i).0, &ends(i).1, "size", OwnedValue::I64(1)).unwrap());
    Watch::new("nulls").each(|i| tx.set_edge_value(&ends(i).0, &ends(i).1, "name", OwnedValue::Null).unwrap());
    Watch::new("removals").each(|i| {
        let (source, target) = ends(i);
        match i % 4 {
            0 => tx.remove_edge(&source, &target).unwrap(),
            1 => assert_eq!(tx.edge_value(&source, &target, "size").unwrap(), OwnedValue::I64(1)),
            2 => {
                // An edge that is added again has no value.
                tx.remove_edge(&source, &target).unwrap();
                tx.add_edge(&source, &target, None).unwrap();
                assert!(tx.edge_value(&source, &target, "size").unwrap().as_value().is_null());
            }
            // This removes both edges of the vertex too.
            _ => tx.remove_vertex(&target).unwrap(),
        }
    });
    assert!(tx.edge_value(&ends(3).0, &ends(3).1, "size").unwrap().as_value().is_null());
    tx.commit().unwrap();
    assert_eq!(db.view().unwrap().num_edges(), MANY / 2);
}

/// A strict batch checks its removals against its earlier changes.
#[test]
fn strict_batch_of_removals_is_linear() {
    let pool = Pool::new(1).unwrap();
    let db = path(KeyScheme::Integer, &pool);
    let num_removed = 20_000;
    let set = (0..MANY).map(|i| Update::set_vertex(i, "size", OwnedValue::I64(1)));
    let add = (0..MANY).map(|i| Update::add_weighted_edge(i, (i + 2) % MANY, 1));
    let remove = (0..num_removed).map(|i| Update::RemoveVertex((2 * i).into()));
    let updates: Vec<_> = set.chain(add).chain(remove).collect();
    let start = Instant::now();
    db.apply(&updates, Missing::Strict, &pool).unwrap();
    assert!(start.elapsed() < BOUND, "{:?}", start.elapsed());
    // Edges of removed vertices are gone, so removing one of them is an error.
    let gone: HashSet<u64> = (0..num_removed).map(|i| 2 * i).collect();
    let left = (0..MANY).flat_map(|i| [(i, (i + 1) % MANY), (i, (i + 2) % MANY)]);
    let num_left = left.filter(|(source, target)| !gone.contains(source) && !gone.contains(target)).count();
    assert_eq!(db.view().unwrap().num_edges(), num_left as u64);
}
