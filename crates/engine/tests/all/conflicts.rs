//! Conflicts with batches that are groups of their own and bypass the queue, and conflicts over weights.

use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_engine::{EdgeWeight, Engine, GraphOptions, KeyScheme, Missing, Op, OptimisticTransaction, Update};
use anden_graph::{Graph, GraphKind, WeightType, WeightedEdges};
use anden_snapshots::Direction;

use crate::transactions::{Case, Look, before, conflict, conflicts, harmless, key, meets_over, strings};

/// Larger batches are groups of their own.
const OWN_GROUP: usize = 1 << 10;
/// From this size on, all workers plan updates of edges with known ends.
const SERIAL_UPDATES: usize = 4 << 10;
/// Larger batches count as a change of everything.
const HUGE_BATCH: usize = 1 << 18;

/// `something` in the middle of `len` copies of `padding`.
fn amid<T: Clone>(padding: &T, len: usize, something: &[T]) -> Vec<T> {
    let mut all = vec![padding.clone(); len];
    all.splice(len / 2..len / 2 + something.len(), something.iter().cloned());
    all
}

/// Adds the vertices that the padding of batches names.
fn with_padding(mut before: Vec<Update>) -> Vec<Update> {
    before.extend(["far", "off"].map(|name| Update::AddVertex(key(name))));
    before
}

/// A batch with its name and its rule for missing ends.
type Batch = (&'static str, Vec<Update>, Missing);

/// The update in batches that are groups of their own, because they are strict or large. The padding changes nothing
/// that a test reads, except that edges exist.
fn own_groups(update: &Update) -> Vec<Batch> {
    let mut strict = Vec::new();
    if let Update::AddEdge { source, target, .. } | Update::SetWeight { source, target, .. } = update {
        strict.extend([source, target].map(|end| Update::AddVertex(end.clone())));
    }
    strict.push(update.clone());
    let there = Update::AddVertex(key("far"));
    let nowhere = Update::remove_edge("far", "off");
    vec![
        ("strict and large", amid(&there, OWN_GROUP + 1, &strict), Missing::Strict),
        ("strict", strict, Missing::Strict),
        ("large", amid(&there, OWN_GROUP + 1, std::slice::from_ref(update)), Missing::Lenient),
        ("larger", amid(&nowhere, SERIAL_UPDATES + 1, std::slice::from_ref(update)), Missing::Lenient),
    ]
}

fn commits((_, updates, missing): &Batch) -> impl FnOnce(&Engine, &Pool) {
    |db, pool| {
        db.apply(updates, *missing, pool).unwrap();
    }
}

/// Runs each case with each way to commit its update in a group of its own.
fn meet_own_groups(before: Vec<Update>, cases: Vec<Case>) {
    let before = with_padding(before);
    for (what, options, reads, write) in cases {
        for batch in &own_groups(&write) {
            let met = meets_over((options, &before), &reads, commits(batch));
            assert_eq!(met.unwrap_err(), conflict(what), "{write:?}, {}", batch.0);
        }
    }
}

/// Tests of small batches, which pass through the queue, missed these changes.
#[test]
fn reads_conflict_with_batches_that_change_them() {
    meet_own_groups(before(), conflicts());
    let before = with_padding(before());
    for (reads, write) in harmless() {
        for batch in &own_groups(&write) {
            let met = meets_over((strings(), &before), &reads, commits(batch));
            assert_eq!(met, Ok(()), "{write:?}, {}", batch.0);
        }
    }
}

/// An edge by the ids of its ends.
type Pair = (VertexId, VertexId);

fn dense() -> GraphOptions {
    GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() }
}

/// Two edges, a removed vertex, and all vertices up to the 60th.
fn dense_before() -> Vec<Update> {
    vec![
        Update::add_edge(1, 2),
        Update::add_edge(2, 3),
        Update::AddVertex(9.into()),
        Update::RemoveVertex(9.into()),
        Update::AddVertex(60.into()),
    ]
}

/// Changes a pair within a batch of other pairs that is a group of its own.
fn meets_pairs(options: GraphOptions, reads: Look<'_>, op: Op, pair: Pair) -> Result<(), String> {
    let pairs = amid(&(50, 51), OWN_GROUP + 1, &[pair]);
    meets_over((options, &dense_before()), reads, |db, pool| {
        db.apply_edges(&pairs, op, pool).unwrap();
    })
}

#[test]
fn reads_conflict_with_pairs_that_change_them() {
    use Op::{Delete, Insert};
    let undirected = GraphOptions { graph_kind: GraphKind::Undirected, ..dense() };
    let edge = |t: &OptimisticTransaction<'_>, u: u64, v: u64| {
        t.has_edge(&u.into(), &v.into()).unwrap();
    };
    let list = |t: &OptimisticTransaction<'_>, v: u64, direction| drop(t.neighbors(&v.into(), direction).unwrap());
    let vertex = |t: &OptimisticTransaction<'_>, v: u64| {
        t.has_vertex(&v.into()).unwrap();
    };
    let conflicts: Vec<(&str, GraphOptions, Look<'_>, Op, Pair)> = vec![
        ("the edge from 1 to 2", dense(), Box::new(|t| edge(t, 1, 2)), Delete, (1, 2)),
        ("the edge from 1 to 3", dense(), Box::new(|t| edge(t, 1, 3)), Insert, (1, 3)),
        ("the edge from 1 to 3", undirected, Box::new(|t| edge(t, 3, 1)), Insert, (1, 3)),
        ("the edge from 1 to 2", undirected, Box::new(|t| edge(t, 1, 2)), Delete, (2, 1)),
        ("the out-edges of vertex 1", dense(), Box::new(|t| list(t, 1, Direction::Out)), Insert, (1, 3)),
        ("the out-edges of vertex 1", dense(), Box::new(|t| list(t, 1, Direction::Out)), Delete, (1, 2)),
        ("the out-edges of vertex 1", undirected, Box::new(|t| list(t, 1, Direction::In)), Insert, (3, 1)),
        ("the in-edges of vertex 3", dense(), Box::new(|t| list(t, 3, Direction::In)), Insert, (1, 3)),
        ("the in-edges of vertex 2", dense(), Box::new(|t| list(t, 2, Direction::In)), Delete, (1, 2)),
        ("the existence of vertex 9", dense(), Box::new(|t| vertex(t, 9)), Insert, (1, 9)),
        ("the existence of vertex 9", dense(), Box::new(|t| vertex(t, 9)), Insert, (9, 1)),
        ("the existence of vertex 70", dense(), Box::new(|t| vertex(t, 70)), Insert, (1, 70)),
        ("the set of vertices", dense(), Box::new(|t| drop(t.vertices().unwrap())), Insert, (1, 9)),
        ("the set of vertices", dense(), Box::new(|t| drop(t.vertices().unwrap())), Insert, (1, 70)),
        ("the set of edges", dense(), Box::new(|t| assert_eq!(t.num_edges(), 2)), Insert, (1, 3)),
        ("the set of edges", dense(), Box::new(|t| assert_eq!(t.num_edges(), 2)), Delete, (1, 2)),
    ];
    for (what, options, reads, op, pair) in conflicts {
        assert_eq!(meets_pairs(options, reads, op, pair).unwrap_err(), conflict(what), "{pair:?}, {op:?}");
    }
    let harmless: Vec<(Look<'_>, Op, Pair)> = vec![
        (Box::new(|t| edge(t, 1, 2)), Insert, (1, 3)),
        (Box::new(|t| edge(t, 1, 2)), Delete, (2, 3)),
        (Box::new(|t| list(t, 1, Direction::Out)), Insert, (2, 1)),
        (Box::new(|t| list(t, 1, Direction::In)), Insert, (1, 3)),
        (Box::new(|t| vertex(t, 9)), Insert, (1, 70)),
        (Box::new(|t| vertex(t, 9)), Delete, (1, 9)),
        (Box::new(|t| drop(t.vertices().unwrap())), Insert, (1, 3)),
    ];
    for (reads, op, pair) in harmless {
        assert_eq!(meets_pairs(dense(), reads, op, pair), Ok(()), "{pair:?}, {op:?}");
    }
}

#[test]
fn a_huge_batch_counts_as_a_change_of_everything() {
    let ways: [fn(&Engine, &Pool, &[Pair]); 2] = [
        |db, pool, pairs| {
            db.apply_edges(pairs, Op::Delete, pool).unwrap();
        },
        |db, pool, pairs| {
            let updates: Vec<_> = pairs.iter().map(|&(u, v)| Update::remove_edge(u64::from(u), u64::from(v))).collect();
            db.apply(&updates, Missing::Lenient, pool).unwrap();
        },
    ];
    for (way, apply) in ways.into_iter().enumerate() {
        for (len, pair, is_seen) in [
            (HUGE_BATCH, (50, 51), false),
            (HUGE_BATCH, (1, 2), true),
            (HUGE_BATCH + 1, (50, 51), true),
            (HUGE_BATCH + 1, (1, 2), true),
        ] {
            let reads = |t: &OptimisticTransaction<'_>| assert!(t.has_edge(&1.into(), &2.into()).unwrap());
            let writes = |db: &Engine, pool: &Pool| apply(db, pool, &amid(&(50, 51), len, &[pair]));
            let met = meets_over((dense(), &dense_before()), reads, writes);
            let expected = if is_seen { Err(conflict("the edge from 1 to 2")) } else { Ok(()) };
            assert_eq!(met, expected, "way {way}: {len} edges, {pair:?} among them");
        }
    }
}

/// Reads the weights of lists, as a search for a lightest path does.
fn lists(tx: &OptimisticTransaction<'_>, direction: Direction, names: &[&str]) {
    for name in names {
        let vertex = tx.vertex(&key(name)).unwrap().unwrap();
        let go_on = |_: &[VertexId], _: &[u32]| ControlFlow::Continue(());
        let _ = tx.graph().for_each_weighted_fragment(direction, vertex, go_on);
        tx.graph().check().unwrap();
    }
}

fn weighted_before() -> Vec<Update> {
    vec![
        Update::add_weighted_edge("a", "b", 3),
        Update::add_weighted_edge("b", "c", 4),
        Update::AddVertex(key("gone")),
        Update::RemoveVertex(key("gone")),
    ]
}

fn weighted() -> GraphOptions {
    GraphOptions { weight_type: Some(WeightType::U32), ..strings() }
}

fn over_weights() -> Vec<Case> {
    let undirected = GraphOptions { graph_kind: GraphKind::Undirected, ..weighted() };
    let ordered = GraphOptions { ordered: true, ..weighted() };
    let set = |u: &str, v: &str| Update::set_weight(u, v, 9);
    let add = |u: &str, v: &str| Update::add_weighted_edge(u, v, 9);
    let weight = |t: &OptimisticTransaction<'_>, u: &str, v: &str| t.weight(&key(u), &key(v)).unwrap().is_some();
    vec![
        ("the edge from a to b", weighted(), Box::new(move |t| assert!(weight(t, "a", "b"))), set("a", "b")),
        ("the edge from a to b", weighted(), Box::new(move |t| assert!(weight(t, "a", "b"))), add("a", "b")),
        ("the edge from a to b", undirected, Box::new(move |t| assert!(weight(t, "b", "a"))), set("a", "b")),
        ("the edge from a to b", ordered, Box::new(move |t| assert!(weight(t, "b", "a"))), set("a", "b")),
        ("the edge from a to c", weighted(), Box::new(move |t| assert!(!weight(t, "a", "c"))), add("a", "c")),
        ("the edge from a to c", weighted(), Box::new(move |t| assert!(!weight(t, "a", "c"))), set("a", "c")),
        ("the edge from a to c", undirected, Box::new(move |t| assert!(!weight(t, "c", "a"))), add("a", "c")),
        (
            "the existence of vertex new",
            weighted(),
            Box::new(move |t| assert!(!weight(t, "a", "new"))),
            add("a", "new"),
        ),
        ("the out-edges of vertex b", weighted(), Box::new(|t| lists(t, Direction::Out, &["a", "b"])), set("b", "c")),
        ("the in-edges of vertex c", weighted(), Box::new(|t| lists(t, Direction::In, &["c"])), set("b", "c")),
        ("the out-edges of vertex c", undirected, Box::new(|t| lists(t, Direction::Out, &["c"])), set("b", "c")),
        ("the existence of vertex gone", weighted(), Box::new(|t| drop(t.has_vertex(&key("gone")))), set("a", "gone")),
        ("the existence of vertex gone", weighted(), Box::new(|t| drop(t.has_vertex(&key("gone")))), set("gone", "a")),
        ("the set of vertices", weighted(), Box::new(|t| drop(t.vertices())), set("a", "gone")),
        ("the set of edges", weighted(), Box::new(|t| assert_eq!(t.num_edges(), 2)), set("a", "c")),
    ]
}

#[test]
fn weight_read_conflicts_with_weight_update() {
    for (what, options, reads, write) in over_weights() {
        let small = ("small", vec![write.clone()], Missing::Lenient);
        let met = meets_over((options, &weighted_before()), reads, commits(&small));
        assert_eq!(met.unwrap_err(), conflict(what), "{write:?}");
    }
    meet_own_groups(weighted_before(), over_weights());
    let harmless: Vec<(Look<'_>, Update)> = vec![
        (Box::new(|t| drop(t.weight(&key("a"), &key("b")))), Update::set_weight("b", "c", 9)),
        (Box::new(|t| drop(t.weight(&key("a"), &key("b")))), Update::add_weighted_edge("a", "c", 9)),
        (Box::new(|t| lists(t, Direction::Out, &["a"])), Update::set_weight("b", "c", 9)),
        (Box::new(|t| lists(t, Direction::In, &["b"])), Update::set_weight("b", "c", 9)),
        (Box::new(|t| drop(t.has_vertex(&key("b")))), Update::set_weight("b", "c", 9)),
    ];
    let before = with_padding(weighted_before());
    for (reads, write) in harmless {
        for batch in &own_groups(&write) {
            let met = meets_over((weighted(), &before), &reads, commits(batch));
            assert_eq!(met, Ok(()), "{write:?}, {}", batch.0);
        }
    }
}

/// The transaction's own write decides the weight, whatever others commit.
#[test]
fn weights_of_own_edges_conflict_with_nothing() {
    let pool = Pool::new(1).unwrap();
    for is_removed in [false, true] {
        let db = Engine::in_memory(weighted()).unwrap();
        db.apply(&[Update::add_weighted_edge("a", "b", 3)], Missing::Lenient, &pool).unwrap();
        let mut tx = db.begin(&pool).unwrap();
        match is_removed {
            true => tx.remove_edge(&key("a"), &key("b")).unwrap(),
            false => drop(tx.add_edge(&key("a"), &key("b"), Some(EdgeWeight::Integer(5))).unwrap()),
        }
        let expected = if is_removed { None } else { Some(EdgeWeight::Integer(5)) };
        assert_eq!(tx.weight(&key("a"), &key("b")).unwrap(), expected);
        db.apply(&[Update::set_weight("a", "b", 9)], Missing::Lenient, &pool).unwrap();
        tx.commit().unwrap();
    }
}
