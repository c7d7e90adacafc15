//! Errors say what is missing, and what caused them.

use std::error::Error as _;

use anden::error::NotFound;
use anden::load::{InputError, InputPath, LoadOptions};
use anden::property::IndexKind;
use anden::{Database, Error, Job, Key, Options, Parameters, Session, Update};

fn missing<T>(result: Result<T, Error>) -> NotFound {
    match result {
        Err(Error::NotFound { what, .. }) => what,
        Err(error) => panic!("{error:?}"),
        Ok(_) => panic!("found"),
    }
}

#[test]
fn missing_things_are_named_by_kind() {
    let db = Database::in_memory(Options { edge_properties: true, ..Options::default() }).unwrap();
    db.apply(&[Update::add_edge(1, 2), Update::set_vertex(1, "name", "one")]).unwrap();
    let view = db.view().unwrap();
    let edge = NotFound::Edge { source: 2.into(), target: 1.into(), number: None };
    let property = |name: &str| NotFound::Property(name.into());
    assert_eq!(missing(view.vertex(7)), NotFound::Vertex(7.into()));
    assert_eq!(missing(db.transact(|tx| tx.set_edge(2, 1, "kind", "x"))), edge);
    assert_eq!(missing(db.apply_strict(&[Update::remove_edge(2, 1)])), edge);
    assert_eq!(missing(db.snapshot(9)), NotFound::Snapshot(9.into()));
    assert_eq!(missing(db.snapshot("monday")), NotFound::Snapshot("monday".into()));
    assert_eq!(missing(view.vertex_property("nam")), property("nam"));
    assert_eq!(missing(view.edge_property("amount")), property("amount"));
    assert_eq!(missing(view.find_vertices("nam", "one")), property("nam"));
    assert_eq!(missing(db.create_index("vertex", "nam", IndexKind::Plain)), property("nam"));
    assert_eq!(missing(db.drop_index("vertex", "name")), NotFound::Index("name".into()));
    assert_eq!(missing(view.edges(&["amount"])), NotFound::Column("amount".into()));
    assert_eq!(missing(Database::open("nowhere.anden")), NotFound::Database("nowhere.anden".into()));
    let session = Session::new(1).unwrap();
    let options = LoadOptions::default();
    let loaded = Database::load_in_memory(&[InputPath::File("nowhere.txt".into())], &options, &session);
    assert_eq!(missing(loaded), NotFound::File("nowhere.txt".into()));
}

#[test]
fn taken_names_exist() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::create(folder.path().join("db"), Options::default()).unwrap();
    db.apply(&[Update::set_vertex(1, "name", "one")]).unwrap();
    db.checkpoint(Some("monday")).unwrap();
    db.create_index("vertex", "name", IndexKind::Plain).unwrap();
    let again = Database::create(folder.path().join("db"), Options::default()).map(drop);
    let named = db.checkpoint(Some("monday")).map(drop);
    for result in [again, named, db.create_index("vertex", "name", IndexKind::Plain)] {
        assert!(matches!(result, Err(Error::Exists(_))), "{result:?}");
    }
}

#[test]
fn source_names_the_line_of_an_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("edges.txt");
    std::fs::write(&path, "1 2\n3 x\n").unwrap();
    let session = Session::new(1).unwrap();
    let loaded = Database::load_in_memory(&[InputPath::File(path.clone())], &LoadOptions::default(), &session);
    let error = loaded.unwrap_err();
    assert!(matches!(error, Error::InvalidInput(_)), "{error:?}");
    let cause = error.source().and_then(|cause| cause.downcast_ref::<InputError>());
    assert!(matches!(cause, Some(InputError::Line { path: at, line: 2, .. }) if *at == path), "{cause:?}");
}

/// The sample once replaced the given sources without a word.
#[test]
fn given_and_sampled_sources_exclude_each_other() {
    let parameters = Parameters { source: vec![1.into()], sources: Some(4), ..Parameters::default() };
    let error = Job::new("bc", parameters).unwrap_err();
    assert!(matches!(error, Error::InvalidInput(_)), "{error:?}");
}

#[test]
fn unique_violation_names_both_vertices() {
    let db = Database::in_memory(Options::default()).unwrap();
    db.apply(&[Update::set_vertex(1, "name", "one")]).unwrap();
    db.create_index("vertex", "name", IndexKind::Unique).unwrap();
    let error = db.apply(&[Update::AddVertex(2.into()), Update::set_vertex(2, "name", "one")]).unwrap_err();
    let Error::UniqueViolation { property, vertex, holder, .. } = &error else { panic!("{error:?}") };
    assert_eq!((property.as_str(), vertex, holder), ("name", &Key::from(2), &Key::from(1)));
}
