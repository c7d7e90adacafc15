//! Transactions by key, as users write them.

use anden::query::{Path, PathLength};
use anden::{Database, Durability, Error, KeyScheme, Neighbors, Options, OwnedValue, Update, WeightType};

fn roads() -> Database {
    let options = Options { keys: KeyScheme::String, weight_type: Some(WeightType::U32), ..Options::default() };
    let db = Database::in_memory(options).unwrap();
    let road = |from: &str, to: &str, km: u32| Update::add_weighted_edge(from, to, km);
    db.apply(&[road("a", "b", 1), road("b", "c", 1), road("a", "c", 5), road("c", "d", 1)]).unwrap();
    db
}

#[test]
fn questions_see_what_the_transaction_wrote() {
    let db = roads();
    let mut tx = db.begin().unwrap();
    tx.remove_edge("b", "c").unwrap();
    tx.add_weighted_edge("d", "new", 2).unwrap();
    assert_eq!(tx.khop("a", 2).unwrap(), ["b", "c", "d"].map(Into::into));
    assert_eq!(tx.fof("a").unwrap(), ["d".into()]);
    assert_eq!(tx.neighbors_on("c", Neighbors::Both).unwrap(), ["a", "d"].map(Into::into));
    let keys = |keys: &[&str]| keys.iter().map(|&key| key.into()).collect::<Vec<_>>();
    let path = tx.path("a", "new").unwrap();
    assert_eq!(path, Some(Path { vertices: keys(&["a", "c", "d", "new"]), length: PathLength::Hops(3) }));
    let path = tx.weighted_path("a", "new").unwrap();
    assert_eq!(path, Some(Path { vertices: keys(&["a", "c", "d", "new"]), length: PathLength::Integer(8) }));
    tx.set_weight("a", "c", 2).unwrap();
    assert_eq!(tx.weighted_path("a", "d").unwrap().unwrap().length, PathLength::Integer(3));
    tx.remove_vertex("c").unwrap();
    assert!(!tx.is_reachable("a", "d").unwrap() && tx.is_reachable("d", "new").unwrap());
    assert!(matches!(tx.neighbors("c"), Err(Error::NotFound { .. })));
    assert_eq!((tx.num_vertices(), tx.num_edges()), (4, 2));
    assert_eq!(db.view().unwrap().num_edges(), 4);
    tx.commit_with(Durability::None).unwrap();
    assert_eq!(db.view().unwrap().num_edges(), 2);
}

#[test]
fn negative_weight_error_names_vertex_keys() {
    let options = Options { keys: KeyScheme::String, weight_type: Some(WeightType::I64), ..Options::default() };
    let db = Database::in_memory(options).unwrap();
    db.apply(&[Update::add_edge("x", "y")]).unwrap_err();
    db.apply(&[Update::add_weighted_edge("x", "y", -3_i64), Update::add_weighted_edge("y", "z", 1_i64)]).unwrap();
    let error = db.begin().unwrap().weighted_path("x", "z").unwrap_err();
    assert!(error.to_string().starts_with("the edge from x to y has weight -3"), "{error}");
    assert_eq!(error.to_string(), db.view().unwrap().weighted_path("x", "z").unwrap_err().to_string());
}

#[test]
fn removed_edge_of_searched_path_conflicts() {
    let db = roads();
    let mut tx = db.begin().unwrap();
    assert!(tx.is_reachable("a", "d").unwrap());
    tx.add_vertex("reached").unwrap();
    db.apply(&[Update::remove_edge("c", "d")]).unwrap();
    let error = tx.commit().unwrap_err();
    let Error::Conflict(what) = error else { panic!("{error}") };
    assert!(what.as_str().ends_with("changed since the transaction began: try it again"), "{what}");
    assert!(db.view().unwrap().vertex("reached").is_err());
}

#[test]
fn values_of_vertices_and_edges_are_written_and_read() {
    let options = Options { edge_properties: true, ..Options::default() };
    let db = Database::in_memory(options).unwrap();
    let mut seen = Vec::new();
    db.transact(|tx| {
        seen.clear();
        assert!(tx.insert_edge(1, 2)? && !tx.insert_edge(1, 2)? && tx.has_vertex(2)?);
        tx.set(1, "name", "one")?;
        tx.set_edge(1, 2, "kind", "new")?;
        seen.push((tx.get(1, "name")?, tx.get_edge(1, 2, "kind")?, tx.get(2, "name")?));
        Ok(())
    })
    .unwrap();
    let text = |text: &str| OwnedValue::String(text.into());
    assert_eq!(seen, [(text("one"), text("new"), OwnedValue::Null)]);
    let mut tx = db.begin().unwrap();
    assert_eq!(tx.get_edge(1, 2, "kind").unwrap(), text("new"));
    tx.set_edge(1, 2, "kind", OwnedValue::Null).unwrap();
    assert_eq!(tx.get_edge(1, 2, "kind").unwrap(), OwnedValue::Null);
    assert!(matches!(tx.set_edge(2, 1, "kind", "x"), Err(Error::NotFound { .. })));
    // Another commit adds an edge off the path, which does not conflict, and then one that matters.
    db.apply(&[Update::add_edge(2, 3)]).unwrap();
    tx.commit().unwrap();
    let mut tx = db.begin().unwrap();
    assert_eq!(tx.get_edge(1, 2, "kind").unwrap(), OwnedValue::Null);
    tx.add_vertex(9).unwrap();
    db.apply(&[Update::set_edge(1, 2, "kind", "other")]).unwrap();
    assert!(matches!(tx.commit(), Err(Error::Conflict(_))));
    assert_eq!(db.read(|view| Ok(view.num_edges())).unwrap(), 2);
}

#[test]
fn commits_in_flight_keep_their_order() {
    let db = Database::in_memory(Options::default()).unwrap();
    let mut pending = Vec::new();
    for i in 0..200_u64 {
        pending.push(db.submit(&[Update::set_vertex(1, "last", i as i64), Update::add_edge(1, i + 2)]).unwrap());
        if i % 3 == 0 {
            let mut tx = db.begin().unwrap();
            tx.add_vertex(1_000 + i).unwrap();
            pending.push(tx.submit().unwrap());
        }
    }
    drop(pending.pop());
    let epochs: Vec<u64> = pending.into_iter().map(|commit| commit.wait().unwrap()).collect();
    assert!(epochs.is_sorted() && epochs.last().is_some());
    let tx = db.begin().unwrap();
    assert_eq!(tx.get(1, "last").unwrap(), OwnedValue::I64(199));
    assert_eq!((tx.degree(1).unwrap(), tx.num_vertices()), (200, 201 + 67));
    let stats = db.metrics().commits;
    assert!(stats.commits == 267 && stats.groups < 20, "{stats:?}");
}

#[test]
fn a_database_open_for_reading_takes_no_transactions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    Database::create(&path, Options::default()).unwrap().close().unwrap();
    let db = Database::open_read_only(&path).unwrap();
    let refused = [db.begin().err(), db.transact(|tx| tx.add_edge(1, 2)).err(), db.submit(&[]).err()];
    for error in refused {
        assert!(error.unwrap().to_string().contains("is open for reading only"));
    }
}
