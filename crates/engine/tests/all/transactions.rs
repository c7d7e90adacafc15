//! Transactions against a plain model: they see their writes, and commit completely or not at all.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anden_base::parallel::Pool;
use anden_base::storage::Storage;
use anden_engine::{
    EdgeWeight, Engine, Error, ErrorKind, GraphOptions, Key, KeyScheme, Missing, OptimisticTransaction, Update,
};
use anden_graph::property::OwnedValue;
use anden_graph::{Graph, WeightType};
use anden_snapshots::Direction;
use anden_testkit::{FaultPlan, FaultStorage, Random, scaled};

use crate::live_model::{NUM_KEYS, Truth, kinds, read};

fn database(options: GraphOptions) -> Engine {
    Engine::in_memory(options).unwrap()
}

pub fn key(name: &str) -> Key {
    name.into()
}

pub fn strings() -> GraphOptions {
    GraphOptions { keys: KeyScheme::String, ..GraphOptions::default() }
}

/// Compares a transaction with the model, vertex by vertex.
fn compare(tx: &OptimisticTransaction<'_>, truth: &Truth, place: &str) {
    let model = truth.model();
    let graph = tx.graph();
    assert_eq!(graph.num_vertices(), model.vertices.len(), "{place}");
    assert_eq!(graph.num_edges(), model.num_edges, "{place}");
    let mut num_arcs = 0;
    for number in 0..u64::from(NUM_KEYS) {
        let key = truth.key(number);
        let name = key.to_string();
        assert_eq!(tx.has_vertex(&key).unwrap(), model.vertices.contains(&name), "{place}: {key}");
        if !model.vertices.contains(&name) {
            assert!(matches!(tx.neighbors(&key, Direction::Out), Err(Error::NoVertex { .. })));
            continue;
        }
        let mut out: Vec<String> = tx.neighbors(&key, Direction::Out).unwrap().iter().map(Key::to_string).collect();
        out.sort_unstable();
        let of_list = model.arcs.range((name.clone(), String::new())..).take_while(|((source, _), _)| *source == name);
        let expected: Vec<_> = of_list.map(|((_, target), weight)| (target.clone(), weight.clone())).collect();
        let targets: Vec<_> = expected.iter().map(|(target, _)| target.clone()).collect();
        assert_eq!(out, targets, "{place}: out-edges of {key}");
        assert_eq!(tx.degree(&key, Direction::Out).unwrap(), out.len());
        num_arcs += out.len() as u64;
        for (target, weight) in expected {
            let target: Key = if truth.options.keys == KeyScheme::String {
                target.as_str().into()
            } else {
                target.parse::<u64>().unwrap().into()
            };
            assert!(tx.has_edge(&key, &target).unwrap());
            let found = tx.weight(&key, &target).unwrap().map_or(String::new(), |weight| weight.to_string());
            assert_eq!(found, weight, "{place}: {key} to {target}");
        }
        if graph.has_lists(Direction::In) {
            let mut into: Vec<String> = tx.neighbors(&key, Direction::In).unwrap().iter().map(Key::to_string).collect();
            into.sort_unstable();
            let mut expected: Vec<_> =
                model.arcs.keys().filter(|(_, target)| *target == name).map(|(source, _)| source.clone()).collect();
            expected.sort_unstable();
            assert_eq!(into, expected, "{place}: in-edges of {key}");
            assert_eq!(tx.degree(&key, Direction::In).unwrap(), into.len());
        }
        for property in ["size", "name", "ratio", "since"] {
            let found = tx.vertex_value(&key, property).unwrap();
            let expected = truth.values.get(&(number, property.to_owned())).cloned().unwrap_or(OwnedValue::Null);
            assert_eq!(found, expected, "{place}: {property} of {key}");
        }
    }
    assert_eq!(graph.num_arcs(), num_arcs, "{place}");
}

/// Applies an update in a transaction. Checks the answers of the insert methods.
fn step(tx: &mut OptimisticTransaction<'_>, update: &Update) {
    match update {
        Update::AddEdge { source, target, weight, .. } => {
            let was_there = tx.has_edge(source, target).unwrap();
            tx.add_edge(source, target, *weight).unwrap();
            if !was_there {
                return;
            }
            assert!(!tx.insert_edge(source, target, *weight).unwrap(), "it is there");
        }
        Update::SetWeight { source, target, weight } => match tx.has_edge(source, target).unwrap() {
            true => tx.set_weight(source, target, *weight).unwrap(),
            false => drop(tx.add_edge(source, target, Some(*weight)).unwrap()),
        },
        Update::RemoveEdge { source, target } => tx.remove_edge(source, target).unwrap(),
        Update::AddVertex(key) => {
            let was_there = tx.has_vertex(key).unwrap();
            assert_eq!(tx.insert_vertex(key).unwrap(), !was_there);
        }
        Update::RemoveVertex(key) => tx.remove_vertex(key).unwrap(),
        update => panic!("{update:?} is not asked for"),
    }
}

#[test]
fn transaction_sees_its_writes_and_others_do_not() {
    let pool = Pool::new(1).unwrap();
    let kinds = kinds();
    for seed in 0..scaled(kinds.len() as u64) {
        let options = kinds[seed as usize % kinds.len()];
        println!("seed {seed}: {options:?}");
        let random = &mut Random::new(seed + 900);
        let (db, mut truth) = (database(options), Truth::new(options));
        for round in 0..25 {
            let mut tx = db.begin(&pool).unwrap();
            let (before, view) = (truth.clone(), db.view().unwrap());
            for _ in 0..random.below(12) {
                if random.below(4) == 0 {
                    let number = u64::from(random.below(NUM_KEYS));
                    let name = ["size", "name"][random.below(2) as usize];
                    let value = match (name, random.below(5)) {
                        (_, 0) => OwnedValue::Null,
                        ("size", value) => OwnedValue::I64(value.into()),
                        (_, value) => OwnedValue::String("x".repeat(value as usize)),
                    };
                    tx.set_vertex_value(&truth.key(number), name, value.clone()).unwrap();
                    match value {
                        OwnedValue::Null => drop(truth.values.remove(&(number, name.to_owned()))),
                        value => {
                            truth.add_vertex(number);
                            truth.values.insert((number, name.into()), value);
                        }
                    }
                    continue;
                }
                let mut other = truth.clone();
                let update = other.update(random);
                if !matches!(update, Update::SetVertexProperty { .. }) {
                    step(&mut tx, &update);
                    truth = other;
                }
            }
            compare(&tx, &truth, &format!("round {round}"));
            assert_eq!(read(&db.view().unwrap()), before.model(), "uncommitted writes are invisible");
            if random.below(4) == 0 {
                drop(tx);
                truth = before.clone();
            } else {
                tx.commit().unwrap();
            }
            assert_eq!(read(&db.view().unwrap()), truth.model(), "round {round}");
            assert_eq!(read(&view), before.model(), "a view stays");
            if random.below(8) == 0 {
                db.checkpoint(None).unwrap();
            }
        }
        db.verify(&pool).unwrap();
    }
}

/// A read of a transaction.
pub type Look<'a> = Box<dyn Fn(&OptimisticTransaction<'_>) + 'a>;

/// The graph that the cases of [`conflicts`] and [`harmless`] begin with.
pub fn before() -> Vec<Update> {
    vec![
        Update::add_edge("a", "b"),
        Update::add_edge("b", "c"),
        Update::set_vertex("c", "size", 1),
        Update::AddVertex(key("lone")),
        Update::AddVertex(key("gone")),
        Update::RemoveVertex(key("gone")),
    ]
}

/// Runs a conflict case: in a graph that begins with `before`, a transaction reads with `reads`, `writes` commits, and
/// the transaction writes and commits.
pub fn meets_over(
    (options, before): (GraphOptions, &[Update]),
    reads: impl Fn(&OptimisticTransaction<'_>),
    writes: impl FnOnce(&Engine, &Pool),
) -> Result<(), String> {
    let pool = Pool::new(1).unwrap();
    let db = database(options);
    db.apply(before, Missing::Lenient, &pool).unwrap();
    let mut tx = db.begin(&pool).unwrap();
    reads(&tx);
    writes(&db, &pool);
    let view = db.view().unwrap();
    let mark = if options.keys == KeyScheme::Dense { 100.into() } else { key("mark") };
    tx.add_vertex(&mark).unwrap();
    let done = tx.commit();
    let is_marked = db.view().unwrap().vertex(&mark).unwrap().is_some();
    assert_eq!(is_marked, done.is_ok(), "all of it or nothing");
    assert!(view.vertex(&mark).unwrap().is_none());
    let stats = db.commit_stats();
    assert_eq!((stats.conflicts, stats.commits), if done.is_ok() { (0, 3) } else { (1, 2) });
    done.map(drop).map_err(|error| {
        assert_eq!(error.kind(), ErrorKind::Conflict);
        error.to_string()
    })
}

fn meets(options: GraphOptions, reads: impl Fn(&OptimisticTransaction<'_>), writes: &[Update]) -> Result<(), String> {
    let writes = |db: &Engine, pool: &Pool| {
        db.apply(writes, Missing::Lenient, pool).unwrap();
    };
    meets_over((options, &before()), reads, writes)
}

/// The text of a conflict.
pub fn conflict(what: &str) -> String {
    format!("{what} changed since the transaction began: try it again")
}

/// The name in the error, the graph, the read, and the conflicting update.
pub type Case = (&'static str, GraphOptions, Look<'static>, Update);

/// Searches for the vertices with a value.
fn finds(name: &'static str, value: i64) -> Look<'static> {
    Box::new(move |t| drop(t.find(name, &value.into())))
}

fn neighbors(vertex: &'static str, direction: Direction) -> Look<'static> {
    Box::new(move |t| drop(t.neighbors(&key(vertex), direction)))
}

/// Reads that conflict with an update of [`before`].
pub fn conflicts() -> Vec<Case> {
    let undirected = GraphOptions { graph_kind: anden_graph::GraphKind::Undirected, ..strings() };
    let add = |u: &str, v: &str| Update::add_edge(u, v);
    let removed = |v: &str| Update::RemoveVertex(v.into());
    vec![
        (
            "the edge from a to b",
            strings(),
            Box::new(|t| drop(t.has_edge(&key("a"), &key("b")))),
            Update::remove_edge("a", "b"),
        ),
        ("the edge from a to c", strings(), Box::new(|t| drop(t.has_edge(&key("a"), &key("c")))), add("a", "c")),
        ("the edge from a to c", undirected, Box::new(|t| drop(t.has_edge(&key("c"), &key("a")))), add("a", "c")),
        (
            "the out-edges of vertex a",
            strings(),
            Box::new(|t| drop(t.degree(&key("a"), Direction::Out))),
            add("a", "c"),
        ),
        ("the out-edges of vertex a", undirected, neighbors("a", Direction::In), add("c", "a")),
        ("the in-edges of vertex c", strings(), neighbors("c", Direction::In), add("a", "c")),
        ("the in-edges of vertex c", strings(), neighbors("c", Direction::In), removed("b")),
        ("the out-edges of vertex a", strings(), neighbors("a", Direction::Out), removed("b")),
        ("the edge from a to b", strings(), Box::new(|t| drop(t.has_edge(&key("a"), &key("b")))), removed("b")),
        ("the existence of vertex lone", strings(), Box::new(|t| drop(t.has_vertex(&key("lone")))), removed("lone")),
        ("the existence of vertex lone", strings(), neighbors("lone", Direction::Out), removed("lone")),
        ("the existence of vertex gone", strings(), Box::new(|t| drop(t.has_vertex(&key("gone")))), add("a", "gone")),
        ("the existence of vertex new", strings(), Box::new(|t| drop(t.has_vertex(&key("new")))), add("a", "new")),
        (
            "the existence of vertex new",
            strings(),
            Box::new(|t| drop(t.has_edge(&key("a"), &key("new")))),
            add("a", "new"),
        ),
        (
            "the properties of vertex c",
            strings(),
            Box::new(|t| drop(t.vertex_value(&key("c"), "size"))),
            Update::set_vertex("c", "size", 2),
        ),
        ("a property that was searched", strings(), finds("size", 1), Update::set_vertex("c", "size", 2)),
        ("a property that was searched", strings(), finds("size", 2), Update::set_vertex("a", "size", 2)),
        ("a property that was searched", strings(), finds("new", 2), Update::set_vertex("a", "new", 2)),
        ("the properties of vertex c", strings(), finds("size", 1), removed("c")),
        (
            "the properties of vertex c",
            strings(),
            Box::new(|t| drop(t.vertex_value(&key("c"), "new"))),
            Update::set_vertex("c", "new", 2),
        ),
        ("the set of vertices", strings(), Box::new(|t| drop(t.vertices())), add("a", "new")),
        ("the set of vertices", strings(), Box::new(|t| assert!(t.num_vertices() > 0)), removed("c")),
        ("the set of edges", strings(), Box::new(|t| assert!(t.num_edges() > 0)), add("a", "c")),
    ]
}

/// Reads that an update of [`before`] does not affect.
pub fn harmless() -> Vec<(Look<'static>, Update)> {
    let add = |u: &str, v: &str| Update::add_edge(u, v);
    let removed = |v: &str| Update::RemoveVertex(v.into());
    vec![
        (Box::new(|t| drop(t.has_edge(&key("a"), &key("b")))), add("a", "c")),
        (Box::new(|t| drop(t.has_edge(&key("a"), &key("c")))), removed("lone")),
        (neighbors("a", Direction::Out), add("b", "a")),
        (neighbors("a", Direction::In), add("a", "c")),
        (Box::new(|t| drop(t.has_vertex(&key("a")))), add("a", "new")),
        (Box::new(|t| drop(t.vertex_value(&key("c"), "size"))), add("c", "a")),
        (finds("size", 1), removed("b")),
        (finds("size", 1), Update::set_vertex("b", "name", "c")),
        (Box::new(|t| drop(t.vertices())), add("a", "c")),
        (Box::new(|t| drop(t.has_vertex(&key("new")))), add("a", "newer")),
    ]
}

#[test]
fn reads_conflict_with_changes_to_them() {
    for (what, options, reads, write) in conflicts() {
        let error = meets(options, reads, std::slice::from_ref(&write)).unwrap_err();
        assert_eq!(error, conflict(what), "{write:?}");
    }
    for (reads, write) in harmless() {
        meets(strings(), reads, std::slice::from_ref(&write)).unwrap();
    }
}

/// Algorithms ask for all vertices, and queries whether one id is a vertex.
#[test]
fn vertices_that_are_met_in_the_graph_are_read() {
    let new = [Update::add_edge("a", "new")];
    let looks: [Look<'_>; 4] = [
        Box::new(|t| assert!((0..t.graph().vertex_bound() as u32).any(|v| t.graph().is_live(v)))),
        Box::new(|t| assert!(t.graph().for_each_page(Direction::Out, 0..2, |_| ControlFlow::Break(())).is_break())),
        // A new vertex may get an id that does not exist yet.
        Box::new(|t| assert!(!t.graph().has_vertex(5))),
        Box::new(|t| assert!(t.key(5).is_err())),
    ];
    for look in looks {
        assert!(meets(strings(), look, &new).unwrap_err().starts_with("the set of vertices"));
    }
    let asks = |t: &OptimisticTransaction<'_>| assert!(t.graph().has_vertex(3));
    meets(strings(), asks, &new).unwrap();
    let error = meets(strings(), asks, &[Update::RemoveVertex("lone".into())]).unwrap_err();
    assert!(error.starts_with("the existence of vertex lone"), "{error}");
}

#[test]
fn keys_that_are_ids_conflict_where_they_become_vertices() {
    let pool = Pool::new(1).unwrap();
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let db = database(options);
    db.apply(&[Update::add_edge(1, 2)], Default::default(), &pool).unwrap();
    let mut tx = db.begin(&pool).unwrap();
    assert!(!tx.has_vertex(&7.into()).unwrap() && tx.has_vertex(&0.into()).unwrap());
    tx.add_edge(&1.into(), &5.into(), None).unwrap();
    assert!(tx.has_vertex(&4.into()).unwrap(), "ids below are vertices too");
    assert_eq!(tx.num_vertices(), 6);
    drop(tx);
    let looks: [fn(&OptimisticTransaction<'_>, u64) -> bool; 3] = [
        |t, id| t.has_vertex(&id.into()).unwrap(),
        |t, id| t.graph().has_vertex(id as u32),
        |t, id| t.graph().degree(Direction::Out, id as u32) > 0,
    ];
    for (place, look) in looks.into_iter().enumerate() {
        let asked = 7 + 10 * place as u64;
        for (other, is_seen) in [(asked - 1, false), (asked + 2, true)] {
            let mut tx = db.begin(&pool).unwrap();
            assert!(!look(&tx, asked));
            db.apply(&[Update::AddVertex(other.into())], Default::default(), &pool).unwrap();
            tx.add_edge(&1.into(), &2.into(), None).unwrap();
            assert_eq!(tx.commit().is_err(), is_seen, "look {place}: vertex {other}");
        }
    }
    // The id exists because this transaction made a larger one. Other transactions may make it before, or remove it.
    for (asked, is_seen) in [(50, true), (100, false)] {
        let mut tx = db.begin(&pool).unwrap();
        tx.add_vertex(&100.into()).unwrap();
        assert!(tx.has_vertex(&asked.into()).unwrap());
        let others = [Update::AddVertex(100.into()), Update::RemoveVertex(asked.into())];
        db.apply(&others, Default::default(), &pool).unwrap();
        assert_eq!(tx.commit().is_err(), is_seen, "vertex {asked}");
        db.apply(&[Update::RemoveVertex(100.into())], Default::default(), &pool).unwrap();
    }
}

/// In an ordered graph, an edge of two new vertices belongs to the list of the vertex that gets its id first.
#[test]
fn lists_of_new_vertices_conflict_where_their_edges_turn() {
    let pool = Pool::new(1).unwrap();
    let options = GraphOptions { ordered: true, ..strings() };
    let lists =
        |tx: &OptimisticTransaction<'_>, direction| ["a", "b"].map(|u| tx.neighbors(&key(u), direction).unwrap());
    for direction in [Direction::Out, Direction::In] {
        for (made, read, is_seen) in [("a", "a", true), ("a", "b", true), ("b", "a", false), ("b", "b", true)] {
            let db = database(options);
            let mut tx = db.begin(&pool).unwrap();
            // The edge leads from b to a.
            tx.add_edge(&key("b"), &key("a"), None).unwrap();
            let before = tx.neighbors(&key(read), direction).unwrap();
            db.apply(&[Update::AddVertex(key(made))], Default::default(), &pool).unwrap();
            let done = tx.commit();
            assert_eq!(done.is_err(), is_seen, "{made} is made, the {direction:?}-list of {read} was read");
            if done.is_ok() {
                let after = lists(&db.begin(&pool).unwrap(), direction);
                assert_eq!(after[usize::from(read == "b")], before);
            }
        }
    }
    // A blind write reads nothing.
    let db = database(options);
    let mut tx = db.begin(&pool).unwrap();
    tx.add_edge(&key("b"), &key("a"), None).unwrap();
    assert_eq!(lists(&tx, Direction::Out), [vec![], vec![key("a")]]);
    let mut blind = db.begin(&pool).unwrap();
    blind.add_edge(&key("b"), &key("a"), None).unwrap();
    db.apply(&[Update::AddVertex(key("a"))], Default::default(), &pool).unwrap();
    blind.commit().unwrap();
    assert!(tx.commit().is_err());
    assert_eq!(lists(&db.begin(&pool).unwrap(), Direction::Out), [vec![key("b")], vec![]]);
}

/// A transaction reads its edge values as its commit leaves them.
#[test]
fn values_of_edges_are_those_that_the_commit_leaves() {
    type Step = fn(&mut OptimisticTransaction<'_>) -> Result<(), Error>;
    let pool = Pool::new(1).unwrap();
    let directed = GraphOptions { edge_properties: true, ..strings() };
    let undirected = GraphOptions { graph_kind: anden_graph::GraphKind::Undirected, ..directed };
    let multigraph = GraphOptions { multigraph: true, ..directed };
    let cases: [(&str, GraphOptions, [OwnedValue; 2], Step); 8] = [
        ("both ways", undirected, [2.into(), 2.into()], |t| {
            t.set_edge_value(&key("a"), &key("b"), "p", 1.into())?;
            t.set_edge_value(&key("b"), &key("a"), "p", 2.into())
        }),
        ("both ways, ordered", GraphOptions { ordered: true, ..directed }, [2.into(), 2.into()], |t| {
            t.set_edge_value(&key("b"), &key("a"), "p", 1.into())?;
            t.set_edge_value(&key("a"), &key("b"), "p", 2.into())
        }),
        ("another edge", directed, [1.into(), OwnedValue::Null], |t| {
            t.add_edge(&key("b"), &key("a"), None)?;
            t.set_edge_value(&key("a"), &key("b"), "p", 1.into())
        }),
        ("the edge back goes", directed, [1.into(), OwnedValue::Null], |t| {
            t.set_edge_value(&key("a"), &key("b"), "p", 1.into())?;
            t.remove_edge(&key("b"), &key("a"))
        }),
        ("the same edge goes", undirected, [OwnedValue::Null, OwnedValue::Null], |t| {
            t.set_edge_value(&key("a"), &key("b"), "p", 1.into())?;
            t.remove_edge(&key("b"), &key("a"))?;
            t.add_edge(&key("a"), &key("b"), None).map(drop)
        }),
        ("it is added again", directed, [1.into(), OwnedValue::Null], |t| {
            t.set_edge_value(&key("a"), &key("b"), "p", 1.into())?;
            t.add_edge(&key("a"), &key("b"), None).map(drop)
        }),
        ("a parallel one comes", multigraph, [OwnedValue::Null, OwnedValue::Null], |t| {
            t.set_edge_value(&key("a"), &key("b"), "p", 1.into())?;
            t.add_edge(&key("a"), &key("b"), None).map(drop)
        }),
        ("and has a value", multigraph, [3.into(), OwnedValue::Null], |t| {
            t.set_edge_value(&key("a"), &key("b"), "p", 1.into())?;
            t.add_edge(&key("a"), &key("b"), None)?;
            t.set_edge_value(&key("a"), &key("b"), "p", 3.into())
        }),
    ];
    let values = |t: &OptimisticTransaction<'_>| {
        [("a", "b"), ("b", "a")].map(|(u, v)| t.edge_value(&key(u), &key(v), "p").unwrap())
    };
    for (what, options, expected, step) in cases {
        let db = database(options);
        db.apply(&[Update::add_edge("a", "b"), Update::set_edge("a", "b", "p", 9)], Default::default(), &pool).unwrap();
        let mut tx = db.begin(&pool).unwrap();
        step(&mut tx).unwrap();
        assert_eq!(values(&tx), expected, "{what}, in the transaction");
        tx.commit().unwrap();
        assert_eq!(values(&db.begin(&pool).unwrap()), expected, "{what}, after it");
    }
}

/// Removing a missing value reads its absence.
#[test]
fn removing_absent_value_conflicts_with_its_insertion() {
    let pool = Pool::new(1).unwrap();
    let db = database(strings());
    db.apply(&[Update::add_edge("a", "b")], Default::default(), &pool).unwrap();
    for (value, is_seen) in [(OwnedValue::Null, true), (5.into(), false)] {
        let mut tx = db.begin(&pool).unwrap();
        tx.set_vertex_value(&key("a"), "size", value).unwrap();
        tx.add_vertex(&key("mark")).unwrap();
        let other = if is_seen { Update::set_vertex("a", "size", 7) } else { Update::set_vertex("a", "size", 8) };
        db.apply(&[other], Default::default(), &pool).unwrap();
        assert_eq!(tx.commit().is_err(), is_seen);
    }
}

#[test]
fn refused_request_leaves_group_and_ids_intact() {
    let pool = Pool::new(1).unwrap();
    let db = database(strings());
    let good = db.submit(&[Update::add_edge("a", "b"), Update::set_vertex("a", "size", 1)], &pool).unwrap();
    let bad = [Update::add_edge("x", "y"), Update::set_vertex("x", "other", 1), Update::set_vertex("x", "size", 0.5)];
    let wrong = db.submit(&bad, &pool).unwrap();
    let weighted = db.submit(&[Update::add_weighted_edge("p", "q", 3)], &pool).unwrap();
    let last = db.submit(&[Update::add_edge("b", "c")], &pool).unwrap();
    let epoch = last.wait().unwrap();
    let expected = "vertex x: property \"size\": expected a value of type i64, found '0.5'";
    assert_eq!(wrong.wait().unwrap_err().to_string(), expected);
    assert!(weighted.wait().is_err());
    assert_eq!(good.wait().unwrap(), epoch);
    let view = db.view().unwrap();
    assert_eq!((view.num_vertices(), view.vertex_bound(), view.num_edges()), (3, 3, 2));
    assert_eq!(view.properties().schema().iter().map(|(name, _)| name).collect::<Vec<_>>(), ["size"]);
    let stats = db.commit_stats();
    assert_eq!((stats.commits, stats.groups, stats.largest_group, stats.invalid), (2, 1, 2, 2));
    assert!(stats.latency_ns_p50 > 0);
}

#[test]
fn a_set_value_brings_back_a_removed_vertex() {
    let pool = Pool::new(1).unwrap();
    let db = database(strings());
    db.apply(&[Update::add_edge("a", "b"), Update::set_vertex("a", "old", 1)], Default::default(), &pool).unwrap();
    let mut tx = db.begin(&pool).unwrap();
    tx.set_vertex_value(&key("a"), "size", 3.into()).unwrap();
    let mut reader = db.begin(&pool).unwrap();
    assert_eq!(reader.vertex_value(&key("a"), "old").unwrap(), 1.into());
    reader.set_vertex_value(&key("a"), "size", 4.into()).unwrap();
    db.apply(&[Update::RemoveVertex(key("a"))], Default::default(), &pool).unwrap();
    // Only reads conflict: a value alone is written blindly.
    let error = reader.commit().unwrap_err();
    assert!(matches!(&error, Error::Conflict { what } if what == "the existence of vertex a"), "{error}");
    tx.commit().unwrap();
    let tx = db.begin(&pool).unwrap();
    let values = ["size", "old"].map(|name| tx.vertex_value(&key("a"), name).unwrap());
    assert_eq!(values, [3.into(), OwnedValue::Null]);
    assert_eq!(tx.degree(&key("a"), Direction::Out).unwrap(), 0);
    let mut tx = db.begin(&pool).unwrap();
    let error = tx.set_weight(&key("a"), &key("c"), EdgeWeight::Integer(1)).unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::NotFound, "there is no edge from a to c"));
}

#[test]
fn an_append_changes_whatever_was_read() {
    let pool = Pool::new(1).unwrap();
    let db = database(strings());
    db.apply(&[Update::AddVertex(key("a"))], Default::default(), &pool).unwrap();
    let mut tx = db.begin(&pool).unwrap();
    assert_eq!(tx.degree(&key("a"), Direction::Out).unwrap(), 0);
    let changes = anden_engine::Changes { added: vec![(key("a"), key("b"), None)], ..Default::default() };
    db.append_changes(&changes, &Default::default(), &pool, &anden_base::progress::Silent).unwrap();
    tx.add_vertex(&key("c")).unwrap();
    assert!(tx.commit().is_err());
    let mut tx = db.begin(&pool).unwrap();
    assert!(tx.has_edge(&key("a"), &key("b")).unwrap());
    tx.add_vertex(&key("c")).unwrap();
    tx.commit().unwrap();
}

/// Regression: a commit of -0.0 over 0.0, or the reverse, counted as no change.
#[test]
fn the_sign_of_zero_is_committed() {
    let pool = Pool::new(1).unwrap();
    let (a, b) = (key("a"), key("b"));
    for weight_type in [WeightType::F32, WeightType::F64] {
        let db = database(GraphOptions { weight_type: Some(weight_type), ..strings() });
        let is_negative = |tx: &OptimisticTransaction<'_>| match tx.weight(&a, &b).unwrap() {
            Some(EdgeWeight::Real(weight)) => weight.is_sign_negative(),
            other => panic!("{other:?} is no floating weight"),
        };
        db.apply(&[Update::add_weighted_edge("a", "b", 0.0)], Default::default(), &pool).unwrap();
        // Over a value in the memtable, and over one in a snapshot.
        for (weight, is_live) in [(-0.0, true), (0.0, true), (-0.0, false), (0.0, false)] {
            if !is_live {
                db.checkpoint(None).unwrap();
            }
            db.transact(&pool, |tx| -> Result<(), Error> {
                tx.set_weight(&a, &b, EdgeWeight::Real(weight))?;
                assert_eq!(is_negative(tx), weight.is_sign_negative());
                Ok(())
            })
            .unwrap();
            let after = db.begin(&pool).unwrap();
            assert_eq!(is_negative(&after), weight.is_sign_negative(), "{weight}, {weight_type:?}, live: {is_live}");
        }
    }
}

#[test]
fn requests_of_one_group_see_each_other() {
    let pool = Pool::new(1).unwrap();
    for first in [Update::add_edge("a", "c"), Update::RemoveVertex(key("b"))] {
        let db = database(strings());
        db.apply(&[Update::add_edge("a", "b")], Default::default(), &pool).unwrap();
        let mut tx = db.begin(&pool).unwrap();
        assert_eq!(tx.degree(&key("a"), Direction::Out).unwrap(), 1);
        tx.add_vertex(&key("seen")).unwrap();
        let mut other = db.begin(&pool).unwrap();
        assert_eq!(other.degree(&key("a"), Direction::In).unwrap(), 0);
        other.add_vertex(&key("other")).unwrap();
        let first = db.submit(&[first], &pool).unwrap();
        let (second, third) = (tx.submit().unwrap(), other.submit().unwrap());
        let epochs = (first.wait().unwrap(), third.wait().unwrap());
        assert!(epochs.0 <= epochs.1);
        assert_eq!(second.wait().unwrap_err().kind(), ErrorKind::Conflict);
        assert!(db.view().unwrap().vertex(&key("seen")).unwrap().is_none());
    }
}

#[test]
fn starved_transaction_is_admitted_exclusively() {
    let pool = Pool::new(1).unwrap();
    let db = database(strings());
    let mut num_tries = 0;
    db.transact(&pool, |tx| -> Result<(), Error> {
        num_tries += 1;
        let num_edges = tx.num_edges();
        if num_tries < 20 {
            // A rival commit is always faster, and does not wait for an exclusive transaction.
            let (u, v) = (format!("u{num_tries}"), format!("v{num_tries}"));
            db.apply(&[Update::add_edge(u.as_str(), v.as_str())], Default::default(), &pool)?;
        }
        tx.set_vertex_value_or_make("count", num_edges)
    })
    .unwrap();
    let stats = db.commit_stats();
    assert_eq!((num_tries, stats.retries, stats.admitted_alone), (20, 19, 14));
    assert_eq!(db.view().unwrap().num_edges(), 19);
}

#[test]
fn exclusive_transaction_commits_before_submitted_requests() {
    let pool = Pool::new(1).unwrap();
    let db = database(strings());
    let mut num_tries = 0;
    let mut rivals = Vec::new();
    db.transact(&pool, |tx| -> Result<(), Error> {
        num_tries += 1;
        assert!(num_tries < 20, "it never gets in");
        let num_edges = tx.num_edges();
        // Committed when a thread waits for this commit or a later one.
        let (u, v) = (format!("u{num_tries}"), format!("v{num_tries}"));
        rivals.push(db.submit(&[Update::add_edge(u.as_str(), v.as_str())], &pool)?);
        tx.set_vertex_value_or_make("count", num_edges)
    })
    .unwrap();
    let stats = db.commit_stats();
    assert_eq!((num_tries, stats.retries, stats.admitted_alone), (7, 6, 1));
    assert_eq!(db.view().unwrap().num_edges(), 6);
    for rival in rivals {
        rival.wait().unwrap();
    }
    assert_eq!(db.view().unwrap().num_edges(), 7);
}

/// Regression: appends bypass the queue and continued beside an exclusive transaction, which could lose for ever.
#[test]
fn appends_wait_for_who_is_alone() {
    let pool = Pool::new(1).unwrap();
    let db = database(strings());
    let append = |number: u32| {
        let pool = Pool::new(1).unwrap();
        let edge = (key("a"), key(&format!("b{number}")), None);
        let changes = anden_engine::Changes { added: vec![edge], ..Default::default() };
        db.append_changes(&changes, &Default::default(), &pool, &anden_base::progress::Silent).unwrap();
    };
    let (num_appends, is_done) = (AtomicU32::new(0), AtomicBool::new(false));
    let mut num_tries = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Acquire) {
                append(num_appends.load(Ordering::Relaxed));
                num_appends.fetch_add(1, Ordering::Release);
            }
        });
        db.transact(&pool, |tx| -> Result<(), Error> {
            num_tries += 1;
            let num_edges = tx.num_edges();
            let (begin, before) = (Instant::now(), num_appends.load(Ordering::Acquire));
            // The second finished append began after the transaction, which therefore loses unless it is exclusive.
            let is_beaten = || num_appends.load(Ordering::Acquire) >= before + 2;
            while !is_beaten() && (num_tries <= 6 || begin.elapsed() < Duration::from_millis(200)) {
                std::thread::yield_now();
            }
            if num_tries == 20 {
                is_done.store(true, Ordering::Release);
            }
            tx.set_vertex_value_or_make("count", num_edges)
        })
        .unwrap();
        is_done.store(true, Ordering::Release);
    });
    assert_eq!((num_tries, db.commit_stats().admitted_alone), (7, 1));
    // An exclusive transaction may append itself. That append does not wait, and makes the transaction lose.
    let mut num_tries = 0;
    db.transact(&pool, |tx| -> Result<(), Error> {
        num_tries += 1;
        let num_edges = tx.num_edges();
        if num_tries < 9 {
            append(1_000_000 + num_tries);
        }
        tx.set_vertex_value_or_make("count", num_edges)
    })
    .unwrap();
    assert_eq!((num_tries, db.commit_stats().admitted_alone), (9, 4));
}

/// Sets a value of the counter vertex.
trait Count {
    fn set_vertex_value_or_make(&mut self, name: &str, value: u64) -> Result<(), Error>;
}

impl Count for OptimisticTransaction<'_> {
    fn set_vertex_value_or_make(&mut self, name: &str, value: u64) -> Result<(), Error> {
        self.set_vertex_value(&name.into(), "value", (value as i64).into())
    }
}

#[test]
fn a_handle_for_reading_begins_nothing() {
    let pool = Pool::new(1).unwrap();
    let storage: Arc<dyn Storage> = Arc::new(FaultStorage::default());
    let db = Engine::create_in(storage.clone(), Path::new("db"), strings()).unwrap();
    db.close().unwrap();
    let db = Engine::open_read_only_in(storage, Path::new("db")).unwrap();
    assert!(matches!(db.begin(&pool), Err(Error::ReadOnly { .. })));
    assert!(matches!(db.submit(&[], &pool), Err(Error::ReadOnly { .. })));
    let num_edges = db.read(|view| Ok::<_, Error>(view.num_edges())).unwrap();
    assert_eq!(num_edges, 0);
}

#[test]
fn failed_wal_write_causes_no_conflict() {
    let pool = Pool::new(1).unwrap();
    let disk = FaultStorage::default();
    let db = Engine::create_in(Arc::new(disk.clone()), Path::new("db"), strings()).unwrap();
    db.apply(&[Update::add_edge("a", "b")], Default::default(), &pool).unwrap();
    let mut tx = db.begin(&pool).unwrap();
    assert_eq!(tx.degree(&key("a"), Direction::Out).unwrap(), 1);
    let epoch = db.epoch();
    disk.set_plan(FaultPlan::FailNext("wal", std::io::ErrorKind::StorageFull));
    let pending = [("a", "c"), ("a", "d")].map(|(u, v)| db.submit(&[Update::add_edge(u, v)], &pool).unwrap());
    for refused in pending {
        assert_eq!(refused.wait().unwrap_err().kind(), ErrorKind::Io);
    }
    assert_eq!((db.epoch(), db.view().unwrap().num_edges(), db.commit_stats().failures), (epoch, 1, 2));
    tx.add_edge(&key("a"), &key("e"), None).unwrap();
    tx.commit().unwrap();
    assert_eq!((db.epoch(), db.view().unwrap().num_edges()), (epoch + 1, 2));
}
