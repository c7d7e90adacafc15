//! Types of edges, labels of vertices and key spaces, from files to views.

use std::path::Path;

use anden::graph::Graph;
use anden::load::{EdgeInput, InputPath, KeyKind, SourceOptions, VertexInput, WantedProperties};
use anden::property::KeyRef;
use anden::{AppendOptions, Database, Error, Key, KeyScheme, LoadOptions, Neighbors, Session, Update, View};

fn file(folder: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn edges(path: std::path::PathBuf, edge_type: &str, spaces: (&str, &str)) -> EdgeInput {
    let (source_space, target_space) = (Some(spaces.0.to_owned()), Some(spaces.1.to_owned()));
    EdgeInput { path: InputPath::File(path), edge_type: edge_type.to_owned(), source_space, target_space }
}

fn vertices(path: std::path::PathBuf, labels: &str, space: &str) -> VertexInput {
    VertexInput { path: path.into(), labels: Some(labels.to_owned()), space: Some(space.to_owned()) }
}

/// Three people and two posts, with edges of two types. Keys of people and posts are equal numbers.
fn social(folder: &Path) -> Database {
    let source = SourceOptions {
        keys: KeyKind::String,
        vertices: vec![
            vertices(file(folder, "people.csv", "id,name\n1,Ann\n2,Bob\n"), "Person", "person"),
            vertices(file(folder, "admins.csv", "id,name\n3,Eve\n"), "Person;Admin", "person"),
            vertices(file(folder, "posts.csv", "id,text\n1,hello\n2,bye\n"), "Post", "post"),
        ],
        edges: vec![
            edges(
                file(folder, "knows.csv", "source,target,since\n1,2,1999\n2,3,2004\n"),
                "KNOWS",
                ("person", "person"),
            ),
            edges(file(folder, "likes.csv", "source,target\n1,1\n3,2\n"), "LIKES", ("person", "post")),
        ],
        edge_properties: WantedProperties::All,
        vertex_properties: WantedProperties::All,
        ..SourceOptions::default()
    };
    let mut options = LoadOptions { source, ..LoadOptions::default() };
    options.graph.keys = KeyScheme::String;
    Database::load(folder.join("db"), &[], &options, &Session::new(2).unwrap()).unwrap().0
}

/// The edges of a view by key, in order.
fn all_edges(view: &View) -> Vec<String> {
    let mut edges = Vec::new();
    for vertex in (0..view.vertex_bound() as u32).filter(|&vertex| view.graph().has_vertex(vertex)) {
        let key = view.key(vertex).unwrap();
        let targets = view.neighbors(key.clone(), Neighbors::Out).unwrap();
        edges.extend(targets.into_iter().map(|target| format!("{key} {target}")));
    }
    edges.sort();
    edges
}

#[test]
fn views_of_types_and_labels_hold_what_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let db = social(folder.path());
    let view = db.view().unwrap();
    let (knows, likes) = (["person:1 person:2", "person:2 person:3"], ["person:1 post:1", "person:3 post:2"]);
    assert_eq!(all_edges(&view), [knows[0], likes[0], knows[1], likes[1]]);
    assert_eq!((view.num_vertices(), view.known_types().unwrap()), (5, vec!["KNOWS".to_owned(), "LIKES".to_owned()]));
    assert_eq!(view.known_labels().unwrap(), ["Admin", "Person", "Post"]);
    // A filter by types removes no vertex; one by labels does.
    let part = view.types(&["KNOWS"]).unwrap();
    assert_eq!((all_edges(&part), part.num_vertices()), (knows.map(str::to_owned).to_vec(), 5));
    assert_eq!(all_edges(&view.types(&["KNOWS", "LIKES"]).unwrap()), all_edges(&view));
    let people = view.labels(&["Person"]).unwrap();
    assert_eq!((all_edges(&people), people.num_vertices()), (knows.map(str::to_owned).to_vec(), 3));
    assert_eq!(
        (people.known_labels().unwrap(), view.labels(&["Post"]).unwrap().known_labels().unwrap()),
        (vec!["Admin".to_owned(), "Person".to_owned()], vec!["Post".to_owned()])
    );
    assert_eq!(view.labels(&["Admin"]).unwrap().num_vertices(), 1);
    assert_eq!(view.labels(&["Admin", "Post"]).unwrap().num_vertices(), 3);
    // A filter of a filtered view. The properties stay.
    let admins = view.labels(&["Admin", "Post"]).unwrap().types(&["LIKES"]).unwrap();
    assert_eq!(all_edges(&admins), [likes[1]]);
    assert_eq!(admins.filter(Some("since IS NULL"), Some("name = 'Eve'")).unwrap().num_vertices(), 1);
    // Absent types and labels, also with names that are no words.
    assert_eq!(view.types(&["O'Hara\" OR 1 = 1"]).unwrap().num_edges(), 0);
    assert_eq!(view.labels(&["Pers"]).unwrap().num_vertices(), 0);
    assert_eq!(view.types(&[""; 0]).unwrap().num_edges(), 0);
}

#[test]
fn changes_carry_types_labels_and_spaces() {
    let folder = tempfile::tempdir().unwrap();
    let db = social(folder.path());
    let key = Key::in_space("person", 4);
    assert_eq!(KeyRef::String(&key.to_string()).space(), Some(("person", "4")));
    assert_eq!((KeyRef::Integer(4).space(), KeyRef::String("4").space()), (None, None));
    db.transact(|tx| {
        tx.add_edge(key.clone(), Key::in_space("person", 1))?;
        tx.set_edge(key.clone(), Key::in_space("person", 1), "type", "KNOWS")?;
        tx.set(key.clone(), "labels", "Person")
    })
    .unwrap();
    let view = db.view().unwrap();
    assert_eq!(view.types(&["KNOWS"]).unwrap().num_edges(), 3);
    assert_eq!(view.labels(&["Person"]).unwrap().num_vertices(), 4);
    let mut options = AppendOptions::default();
    let more = file(folder.path(), "more.csv", "source,target\n2,2\n");
    options.source.edges = vec![edges(more, "LIKES", ("person", "post"))];
    assert_eq!(db.append_files(&[], &options).unwrap().added, 1);
    assert_eq!(db.view().unwrap().types(&["LIKES"]).unwrap().num_edges(), 3);
    assert!(db.view().unwrap().has_edge(Key::in_space("person", 2), Key::in_space("post", 2)).unwrap());
}

#[test]
fn graphs_without_types_or_labels_say_so() {
    let db = Database::in_memory(anden::Options::default()).unwrap();
    db.apply(&[Update::add_edge(1, 2)]).unwrap();
    let refusal = |part: Result<View, Error>| match part {
        Err(Error::InvalidInput(what)) => what.to_string(),
        other => panic!("{other:?}"),
    };
    let view = db.view().unwrap();
    assert_eq!(refusal(view.types(&["KNOWS"])), "the edges of this graph have no types: there is no property \"type\"");
    assert_eq!(
        refusal(view.labels(&["Person"])),
        "the vertices of this graph have no labels: there is no property \"labels\""
    );
    assert_eq!((view.known_types().unwrap().len(), view.known_labels().unwrap().len()), (0, 0));
    // An append of a type to a graph without edge properties.
    let folder = tempfile::tempdir().unwrap();
    let more = file(folder.path(), "more.csv", "source,target\n2,3\n");
    let mut options = AppendOptions::default();
    options.source.edges = vec![EdgeInput { source_space: None, target_space: None, ..edges(more, "LIKES", ("", "")) }];
    let error = db.append_files(&[], &options).unwrap_err().to_string();
    assert!(error.contains("type") && error.contains("without properties of edges"), "{error}");
}

#[test]
fn labels_in_many_sets_select_their_vertices() {
    let db = Database::in_memory(anden::Options::default()).unwrap();
    let labels = |key: u64, text: &str| Update::set_vertex(key, "labels", text.to_owned());
    // The distinct sets take more text than a predicate may have.
    let mut updates: Vec<_> = (0..5_000).map(|key| labels(key, &format!("Person{key};User_1;Reader"))).collect();
    updates.extend([
        labels(5_000, ""),
        labels(5_001, "UserX1;Person7"),
        labels(5_002, "User_1"),
        labels(5_003, ";a\\b"),
    ]);
    db.apply(&updates).unwrap();
    let view = db.view().unwrap();
    let count = |labels: &[&str]| view.labels(labels).unwrap().num_vertices();
    assert_eq!((count(&["User_1"]), count(&["Reader"]), count(&["Reader", "Person%", ""])), (5_001, 5_000, 5_000));
    assert_eq!((count(&["Reader", "UserX1", "a\\b"]), count(&["Person7"]), count(&[""])), (5_002, 2, 0));
    assert!(!view.known_labels().unwrap().contains(&String::new()));
}
