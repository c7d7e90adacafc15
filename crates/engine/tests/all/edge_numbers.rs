//! Edges of multigraphs, named by their numbers in transactions and batches.

use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::storage::Storage;
use anden_engine::{
    Direction, EdgeAction, EdgeId, EdgeWeight, Engine, ErrorKind, FoundEdge, GraphOptions, Key, KeyScheme, Missing,
    OptimisticTransaction, Update, edges_between,
};
use anden_graph::property::OwnedValue;
use anden_graph::{Graph, WeightType};
use anden_testkit::{FaultStorage, Random};

use crate::edge_updates::kinds;

const DB: &str = "db";

/// The edges of all pairs, from a transaction or a view.
fn all_edges(edges: impl Fn(u64, u64) -> Vec<FoundEdge>) -> Vec<String> {
    let pairs = (0..4).flat_map(|u| (0..4).map(move |v| (u, v)));
    let of_pair = |(u, v)| edges(u, v).into_iter().map(move |edge| (u, v, edge)).collect::<Vec<_>>();
    let text = |(u, v, mut edge): (u64, u64, FoundEdge)| {
        // A property that the transaction creates has no place in the schema before the commit.
        edge.properties.sort_by(|(name, _), (other, _)| name.cmp(other));
        format!("{u} {v} {:?} {:?}", edge.weight, edge.properties)
    };
    pairs.flat_map(of_pair).map(text).collect()
}

/// Some values of edge properties. A later round may name a new property.
fn random_properties(random: &mut Random, round: u32) -> Vec<(Arc<str>, OwnedValue)> {
    let names = ["size", "kind", if round < 30 { "size" } else { "late" }];
    let value = |name: &str, random: &mut Random| match (name, random.below(4)) {
        (_, 0) => OwnedValue::Null,
        ("size", value) => OwnedValue::I64(value.into()),
        (_, value) => OwnedValue::String("x".repeat(value as usize)),
    };
    let count = random.below(4) as usize;
    names[..count].iter().map(|&name| (name.into(), value(name, random))).collect()
}

fn values_are_those_of_the_last_edges(tx: &OptimisticTransaction<'_>) {
    for (u, v) in (0..4_u64).flat_map(|u| (0..4_u64).map(move |v| (Key::from(u), Key::from(v)))) {
        let last = tx.edges(&u, &v).unwrap().pop().unwrap_or_default();
        for name in ["size", "kind", "late"] {
            let value = last.properties.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
            assert_eq!(tx.edge_value(&u, &v, name).unwrap(), value.unwrap_or(OwnedValue::Null), "{name} of {u} to {v}");
        }
    }
}

/// A transaction sees parallel edges as its commit will leave them.
#[test]
fn transaction_sees_its_changes_of_parallel_edges() {
    let pool = Pool::new(1).unwrap();
    for (seed, mut options) in kinds().into_iter().enumerate() {
        options.keys = KeyScheme::Dense;
        let random = &mut Random::new(seed as u64 + 40);
        let db = Engine::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
        db.apply(&[Update::AddVertex(3.into())], Missing::Lenient, &pool).unwrap();
        for round in 0..60 {
            let mut tx = db.begin(&pool).unwrap();
            for _ in 0..random.below(8) {
                let (u, v) = (Key::from(u64::from(random.below(4))), Key::from(u64::from(random.below(4))));
                let weight = options.weight_type.map(|_| EdgeWeight::from(random.below(9)));
                let edges = tx.edges(&u, &v).unwrap();
                assert_eq!(edges.is_empty(), !tx.has_edge(&u, &v).unwrap());
                let number = edges.iter().filter_map(|edge| edge.number).nth(random.below(3) as usize);
                match (random.below(8), number, weight) {
                    (0, ..) if random.below(4) == 0 => tx.remove_vertex(&u).unwrap(),
                    (0, ..) => tx.remove_edge(&u, &v).unwrap(),
                    (1 | 2, Some(number), weight) => {
                        let id = EdgeId { source: u, target: v, number };
                        let action = match weight {
                            Some(weight) if random.below(2) == 0 => EdgeAction::SetWeight(weight),
                            _ if options.edge_properties && random.below(2) == 0 => EdgeAction::SetProperty {
                                name: "size".to_owned(),
                                value: i64::from(random.below(9)).into(),
                            },
                            _ => EdgeAction::Remove,
                        };
                        tx.change_edge(&id, action).unwrap();
                    }
                    (3, _, Some(weight)) if !edges.is_empty() => tx.set_weight(&u, &v, weight).unwrap(),
                    (3 | 4, ..) if options.edge_properties && !edges.is_empty() => {
                        let value = OwnedValue::I64(random.below(9).into());
                        tx.set_edge_value(&u, &v, "size", value.clone()).unwrap();
                        assert_eq!(tx.edge_value(&u, &v, "size").unwrap(), value);
                    }
                    (5 | 6, ..) if options.edge_properties => {
                        let properties = random_properties(random, round);
                        tx.add_edge_with(&u, &v, weight, properties).unwrap();
                    }
                    _ => drop(tx.add_edge(&u, &v, weight).unwrap()),
                }
            }
            tx.add_vertex(&1.into()).unwrap();
            let expected = all_edges(|u, v| tx.edges(&u.into(), &v.into()).unwrap());
            values_are_those_of_the_last_edges(&tx);
            let degree = tx.degree(&1.into(), Direction::Out).unwrap();
            tx.commit().unwrap();
            let view = db.view().unwrap();
            let found = all_edges(|u, v| {
                let (u, v) = if options.ordered { (u.min(v), u.max(v)) } else { (u, v) };
                edges_between(&view, u as u32, v as u32, |_| true).unwrap()
            });
            assert_eq!(found, expected, "{options:?}, round {round}");
            assert_eq!(view.degree(Direction::Out, 1), degree);
            if round % 20 == 10 {
                db.checkpoint(None).unwrap();
            }
        }
        db.verify(&pool).unwrap();
    }
}

/// The error for a removed number, or for a graph without parallel edges, names the edge.
#[test]
fn numbers_that_are_gone_are_refused() {
    let pool = Pool::new(1).unwrap();
    let create = |multigraph| {
        let options = GraphOptions { multigraph, weight_type: Some(WeightType::F64), ..GraphOptions::default() };
        let db = Engine::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
        db.apply(&[Update::add_weighted_edge(1, 2, 3), Update::add_weighted_edge(1, 2, 4)], Missing::Lenient, &pool)
            .unwrap();
        db
    };
    let id = |number| EdgeId { source: 1.into(), target: 2.into(), number };
    let db = create(true);
    let refused = |db: &Engine, action: EdgeAction, number| {
        for missing in [Missing::Lenient, Missing::Strict] {
            let update = Update::change_edge(id(number), action.clone());
            let in_batch = db.apply(&[Update::add_weighted_edge(1, 2, 9), update], missing, &pool).unwrap_err();
            let in_transaction = db.begin(&pool).unwrap().change_edge(&id(number), action.clone()).unwrap_err();
            assert_eq!(db.view().unwrap().num_edges(), if db.options().multigraph { 2 } else { 1 });
            if missing == Missing::Strict {
                return [in_batch.to_string(), in_transaction.to_string()];
            }
        }
        unreachable!("the last one returns")
    };
    for action in [EdgeAction::Remove, EdgeAction::SetWeight(1.into())] {
        assert_eq!(refused(&db, action, 7), ["there is no edge #7 from 1 to 2"; 2]);
    }
    let [in_batch, in_transaction] = refused(&db, EdgeAction::SetWeight(f64::NAN.into()), 1);
    assert!(
        in_batch.contains("weight NaN does not fit") && in_transaction.contains("weight NaN does not fit"),
        "{in_batch}"
    );
    let simple = create(false);
    for what in refused(&simple, EdgeAction::Remove, 0) {
        assert!(what.contains("#0") && what.contains("edges have numbers in multigraphs only"), "{what}");
    }
    db.apply(&[Update::change_edge(id(0), EdgeAction::Remove)], Missing::Strict, &pool).unwrap();
    assert_eq!(refused_text(&db, id(0), &pool), "there is no edge #0 from 1 to 2");
    // The number is not reused.
    db.apply(&[Update::add_weighted_edge(1, 2, 5)], Missing::Lenient, &pool).unwrap();
    let view = db.view().unwrap();
    let numbers: Vec<_> =
        edges_between(&view, 0, 1, |_| true).unwrap().into_iter().filter_map(|edge| edge.number).collect();
    assert!(numbers.len() == 2 && numbers[0] == 1 && numbers[1] > 1, "{numbers:?}");
}

fn refused_text(db: &Engine, id: EdgeId, pool: &Pool) -> String {
    db.apply(&[Update::change_edge(id, EdgeAction::Remove)], Missing::Lenient, pool).unwrap_err().to_string()
}

/// The answer of a commit names its new edges, also if other requests share its group.
#[test]
fn commits_name_the_edges_that_they_add() {
    let pool = Pool::new(1).unwrap();
    for mut options in kinds() {
        options.keys = KeyScheme::Dense;
        let db = Engine::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
        let weight = options.weight_type.map(|_| EdgeWeight::from(1));
        let add = |tx: &mut OptimisticTransaction<'_>, u: u64, v: u64| tx.add_edge(&u.into(), &v.into(), weight);
        db.apply(&[Update::AddVertex(7.into())], Missing::Lenient, &pool).unwrap();
        let before = db.submit(&[edge(5, 6, weight), edge(5, 6, weight)], &pool).unwrap();
        let mut tx = db.begin(&pool).unwrap();
        let first = add(&mut tx, 1, 2).unwrap();
        if !options.multigraph {
            assert_eq!(tx.commit().unwrap().edge_id(&first), None);
            continue;
        }
        assert!(!tx.insert_edge(&1.into(), &2.into(), weight).unwrap());
        let gone = add(&mut tx, 2, 1).unwrap();
        tx.remove_edge(&2.into(), &1.into()).unwrap();
        let again = add(&mut tx, 1, 2).unwrap();
        if weight.is_some() {
            tx.set_weight(&1.into(), &2.into(), 5.into()).unwrap();
        }
        let last = add(&mut tx, 1, 2).unwrap();
        let committed = tx.commit().unwrap();
        before.wait().unwrap();
        let ids = [&first, &gone, &again, &last].map(|edge| committed.edge_id(edge).unwrap());
        assert!(ids.is_sorted_by_key(|id| id.number), "{ids:?}");
        assert_eq!((&ids[0].source, &ids[1].source), (&Key::from(1_u64), &Key::from(2_u64)));
        // The view has the remaining numbers.
        let view = db.view().unwrap();
        let numbers: Vec<_> =
            edges_between(&view, 1, 2, |_| true).unwrap().iter().filter_map(|edge| edge.number).collect();
        let left: Vec<u64> = match options.graph_kind {
            anden_graph::GraphKind::Directed => vec![ids[0].number, ids[2].number, ids[3].number],
            anden_graph::GraphKind::Undirected => vec![ids[2].number, ids[3].number],
        };
        assert_eq!(numbers, left, "{options:?}: {numbers:?}, {ids:?}");
        let change =
            |id: &EdgeId| db.apply(&[Update::change_edge(id.clone(), EdgeAction::Remove)], Missing::Strict, &pool);
        change(&ids[2]).unwrap();
        change(&ids[1]).unwrap_err();
        assert_eq!(db.view().unwrap().num_edges(), numbers.len() as u64 + 1);
        // An ordered graph does not store a loop.
        let ordered = GraphOptions { ordered: true, graph_kind: anden_graph::GraphKind::Directed, ..options };
        let db = Engine::create_in(Arc::new(FaultStorage::default()), Path::new(DB), ordered).unwrap();
        let mut tx = db.begin(&pool).unwrap();
        let (not_stored, stored) = (add(&mut tx, 3, 3).unwrap(), add(&mut tx, 3, 2).unwrap());
        let committed = tx.commit().unwrap();
        assert_eq!(committed.edge_id(&not_stored), None);
        assert!(committed.edge_id(&stored).is_some());
    }
}

fn edge(u: u64, v: u64, weight: Option<EdgeWeight>) -> Update {
    Update::AddEdge { source: u.into(), target: v.into(), weight, properties: Vec::new() }
}

/// Many changes of one pair in a batch are planned once. The WAL does not hold all edges of the pair for each of them.
#[test]
fn many_changes_of_a_pair_make_a_short_record() {
    let (pool, disk) = (Pool::new(1).unwrap(), FaultStorage::default());
    let options = GraphOptions { multigraph: true, ..GraphOptions::default() };
    let db = Engine::create_in(Arc::new(disk.clone()), Path::new(DB), options).unwrap();
    let num_edges = 2_000;
    db.apply(&vec![Update::add_edge(1, 2); num_edges], Missing::Lenient, &pool).unwrap();
    db.checkpoint(None).unwrap();
    let ids: Vec<_> =
        edges_between(&db.view().unwrap(), 0, 1, |_| true).unwrap().iter().filter_map(|edge| edge.number).collect();
    assert_eq!(ids.len(), num_edges);
    let remove =
        |&number: &u64| Update::change_edge(EdgeId { source: 1.into(), target: 2.into(), number }, EdgeAction::Remove);
    let updates: Vec<_> = ids[1..].iter().map(remove).collect();
    db.apply(&updates, Missing::Strict, &pool).unwrap();
    let names = disk.list(Path::new(DB)).unwrap();
    let segments = names.iter().filter(|name| name.starts_with("wal-"));
    let num_bytes: usize = segments.map(|name| disk.contents(&Path::new(DB).join(name)).unwrap().len()).sum();
    // The size includes reserved space.
    assert!(num_bytes < 1 << 20, "{num_bytes} bytes of log");
    // Finding the pair does not depend on the number of its removed edges.
    let left = edges_between(&db.view().unwrap(), 0, 1, |_| true).unwrap();
    assert_eq!(left.iter().filter_map(|edge| edge.number).collect::<Vec<_>>(), ids[..1]);
    db.checkpoint(None).unwrap();
    db.apply(&[remove(&ids[1])], Missing::Lenient, &pool).unwrap_err();
    db.apply(&[remove(&ids[0])], Missing::Lenient, &pool).unwrap();
    assert_eq!(db.view().unwrap().num_edges(), 0);
    db.verify(&pool).unwrap();
}

/// A transaction refuses invalid properties immediately, before its commit.
#[test]
fn properties_of_numbered_edges_are_checked_at_once() {
    let pool = Pool::new(1).unwrap();
    for edge_properties in [false, true] {
        let options = GraphOptions { multigraph: true, edge_properties, ..GraphOptions::default() };
        let db = Engine::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
        db.apply(&[edge(1, 2, None)], Missing::Lenient, &pool).unwrap();
        let id = EdgeId { source: 1.into(), target: 2.into(), number: 0 };
        let set = |value: OwnedValue| EdgeAction::SetProperty { name: "size".to_owned(), value: value.into() };
        let mut tx = db.begin(&pool).unwrap();
        let null = tx.change_edge(&id, set(OwnedValue::Null));
        if edge_properties {
            null.unwrap();
            tx.change_edge(&id, set(3.into())).unwrap();
        } else {
            assert!(null.unwrap_err().to_string().contains("loaded without properties of edges"));
        }
        tx.commit().unwrap();
        let found = &edges_between(&db.view().unwrap(), 0, 1, |_| true).unwrap()[0];
        assert_eq!(found.properties.len(), usize::from(edge_properties));
    }
}

/// An addition with properties reads nothing, so no commit in between is a conflict. The one exception is a null value
/// of an unknown property.
#[test]
fn additions_with_properties_read_nothing() {
    let pool = Pool::new(1).unwrap();
    for multigraph in [false, true] {
        let options = GraphOptions { multigraph, edge_properties: true, ..GraphOptions::default() };
        let meets = |name: &str, value: OwnedValue, other: Update| {
            let db = Engine::in_memory(options).unwrap();
            db.apply(&[Update::add_edge_with(1, 2, [("kind", "card")])], Missing::Lenient, &pool).unwrap();
            let mut tx = db.begin(&pool).unwrap();
            tx.add_edge_with(&1.into(), &2.into(), None, vec![(name.into(), value)]).unwrap();
            db.apply(&[other], Missing::Lenient, &pool).unwrap();
            let done = tx.commit().map(drop);
            let edges = edges_between(&db.view().unwrap(), 0, 1, |_| true).unwrap();
            (done.map_err(|error| error.kind()), edges.into_iter().map(|edge| edge.properties).collect::<Vec<_>>())
        };
        let kind = || ("kind".to_owned(), OwnedValue::from("card"));
        let size = |size: i64| ("size".to_owned(), OwnedValue::from(size));
        let both = if multigraph { vec![vec![kind(), size(8)], vec![size(7)]] } else { vec![vec![kind(), size(7)]] };
        assert_eq!(meets("size", 7.into(), Update::set_edge(1, 2, "size", 8)), (Ok(()), both));
        assert_eq!(meets("size", 7.into(), Update::remove_edge(1, 2)), (Ok(()), vec![vec![size(7)]]));
        let (done, edges) = meets("size", OwnedValue::Null, Update::set_edge(1, 2, "size", 8));
        let expected = if multigraph { Ok(()) } else { Err(ErrorKind::Conflict) };
        assert_eq!((done, &edges[0]), (expected, &vec![kind(), size(8)]));
    }
}

/// An ordered graph has an edge in the list of its lesser end, also if the caller names the greater end first.
#[test]
fn set_weight_keeps_edges_of_ordered_pair() {
    let pool = Pool::new(1).unwrap();
    let weight_type = Some(WeightType::U32);
    let kind = GraphOptions { keys: KeyScheme::Dense, weight_type, ..GraphOptions::default() };
    let options = GraphOptions { multigraph: true, ordered: true, ..kind };
    let db = Engine::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
    db.apply(&[(); 2].map(|()| edge(1, 2, Some(7.into()))), Missing::Lenient, &pool).unwrap();
    let mut tx = db.begin(&pool).unwrap();
    tx.set_weight(&2.into(), &1.into(), 9.into()).unwrap();
    let found = tx.edges(&2.into(), &1.into()).unwrap();
    let weights: Vec<_> = found.iter().map(|edge| edge.weight).collect();
    assert_eq!(weights, [Some(EdgeWeight::Integer(9)); 2]);
    tx.commit().unwrap();
    assert_eq!(edges_between(&db.view().unwrap(), 1, 2, |_| true).unwrap(), found);
}
