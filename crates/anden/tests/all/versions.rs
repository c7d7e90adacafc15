//! Snapshots through the public API.

use std::path::PathBuf;

use anden::changes::Maintenance;
use anden::error::NotFound;
use anden::load::InputPath;
use anden::property::{PropertyType, PropertyValue};
use anden::{
    AppendOptions, Changes, Database, EdgeWeight, Error, Job, Key, KeyScheme, LoadOptions, Neighbors, Options,
    Parameters, Retention, Session, WeightType,
};

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    /// Three snapshots: `a b` and `b c`; then `c a` instead of `a b`, named `turned`; then without vertex `b`.
    fn new() -> (Self, Database) {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        let input = scene.folder.path().join("edges.txt");
        std::fs::write(&input, "a b 1\nb c 2\n").unwrap();
        let graph = Options { keys: KeyScheme::String, weight_type: Some(WeightType::F64), ..Options::default() };
        let options = LoadOptions { graph, ..LoadOptions::default() };
        let session = Session::new(2).unwrap();
        let (db, _) = Database::load(scene.path(), &[InputPath::File(input)], &options, &session).unwrap();
        let turned = Changes::default().remove_edge("a", "b").add_weighted_edge("c", "a", 0.5).named("turned");
        assert_eq!(db.append(&turned).unwrap().snapshot, 2);
        assert_eq!(db.append(&Changes::default().remove_vertex("b")).unwrap().vertices, 2);
        (scene, db)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("db")
    }
}

fn keys(names: &[&str]) -> Vec<Key> {
    names.iter().map(|&name| Key::from(name)).collect()
}

#[test]
fn snapshots_by_number_and_by_name() {
    let (_scene, db) = Scene::new();
    assert_eq!(db.snapshot(1).unwrap().neighbors("a", Neighbors::Out).unwrap(), keys(&["b"]));
    let turned = db.snapshot("turned").unwrap();
    assert_eq!((turned.name(), turned.num_edges()), ("snapshot 2", 2));
    assert_eq!(db.snapshot("2").unwrap().neighbors("c", Neighbors::Out).unwrap(), keys(&["a"]));
    assert_eq!(db.view().unwrap().num_edges(), 1);
    for missing in ["4", "0", "tuned", ""] {
        let error = db.snapshot(missing).unwrap_err();
        assert!(
            matches!(&error, Error::NotFound { what: NotFound::Snapshot(_), reason } if reason.as_str().contains("1 to 3")),
            "{error}"
        );
    }
}

#[test]
fn windows_and_differences() {
    let (_scene, db) = Scene::new();
    let window = db.window(2..=2).unwrap();
    assert_eq!((window.name(), window.num_edges(), window.num_vertices()), ("window 2..2", 1, 2));
    assert_eq!(db.window_with_isolated(2..=2).unwrap().num_vertices(), 3);
    assert!(window.has_edge("c", "a").unwrap());
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let reversed = db.window(3..=2).unwrap_err();
    assert!(matches!(&reversed, Error::InvalidInput(text) if text.as_str().contains("3..2")), "{reversed}");
    assert!(matches!(db.window(2..=7), Err(Error::NotFound { .. })));

    let diff = db.diff(1, 3).unwrap();
    assert_eq!((diff.num_added().unwrap(), diff.num_removed().unwrap(), diff.snapshots()), (1, 2, (1, 3)));
    let added = diff.added().next().unwrap().unwrap();
    assert_eq!(
        (added.source, added.target, added.weight),
        (anden::property::KeyRef::String("c"), anden::property::KeyRef::String("a"), Some(EdgeWeight::Real(0.5)))
    );
    assert_eq!((diff.added_vertices().unwrap(), diff.removed_vertices().unwrap()), (vec![], keys(&["b"])));
    let back = db.diff("3", "turned").unwrap();
    assert_eq!(
        (back.num_added().unwrap(), back.num_removed().unwrap(), back.added_vertices().unwrap()),
        (1, 0, keys(&["b"]))
    );
}

/// Two databases with unrelated ids.
#[test]
fn differences_across_databases() {
    for graph_kind in [anden::GraphKind::Directed, anden::GraphKind::Undirected] {
        let folder = tempfile::tempdir().unwrap();
        let graph = Options { keys: KeyScheme::String, multigraph: true, graph_kind, ..Options::default() };
        let create = |name: &str| Database::create(folder.path().join(name), graph).unwrap();
        let (one, two) = (create("one"), create("two"));
        let first = Changes::default().add_edge("a", "b").add_edge("a", "b").add_edge("b", "c").add_vertex("x");
        one.append(&first).unwrap();
        two.append(&Changes::default().add_edge("z", "c").add_edge("c", "b")).unwrap();
        two.append(&Changes::default().add_edge("b", "a").add_edge("z", "z")).unwrap();
        let diff = one.diff_with(2, &two, 3).unwrap();
        let shown = |edges: &mut dyn Iterator<Item = Result<anden::snapshot::DiffEdge<'_>, Error>>| {
            let mut shown: Vec<_> =
                edges.map(|edge| edge.unwrap()).map(|e| format!("{} {}", e.source, e.target)).collect();
            shown.sort();
            shown
        };
        let (added, removed) = (shown(&mut diff.added()), shown(&mut diff.removed()));
        match graph_kind {
            anden::GraphKind::Directed => {
                assert_eq!(added, ["b a", "c b", "z c", "z z"]);
                assert_eq!(removed, ["a b", "a b", "b c"]);
            }
            anden::GraphKind::Undirected => {
                assert_eq!((added, removed), (vec!["c z".into(), "z z".into()], vec!["a b".into()]))
            }
        }
        assert_eq!((diff.added_vertices().unwrap(), diff.removed_vertices().unwrap()), (keys(&["z"]), keys(&["x"])));
        let same = one.diff_with(2, &one, 2).unwrap();
        assert_eq!((same.num_added().unwrap(), same.num_removed().unwrap()), (0, 0));
    }
    let (_scene, db) = Scene::new();
    let folder = tempfile::tempdir().unwrap();
    let other = Database::create(folder.path().join("other"), Options::default()).unwrap();
    assert!(matches!(db.diff_with(1, &other, 1), Err(Error::InvalidInput(_))));
}

/// A vertex without an edge in the window has no values, no rows, and no answer.
#[test]
fn windows_hide_isolated_vertices() {
    let db = Database::in_memory(Options::default()).unwrap();
    let with_size = |changes: Changes, key: u64| changes.set_vertex(key, "size", key as i64 * 10);
    db.append(&(1..=3).fold(Changes::default().add_edge(1, 2).add_edge(2, 3), with_size)).unwrap();
    db.append(&with_size(Changes::default().add_edge(3, 4), 4)).unwrap();
    let (window, all) = (db.window(3..=3).unwrap(), db.window_with_isolated(3..=3).unwrap());
    let rows = |view: &anden::View| -> usize {
        view.vertices(&["key", "size"]).unwrap().map(|batch| batch.unwrap().num_rows()).sum()
    };
    let num_values = |view: &anden::View| {
        let column = view.vertex_property("size").unwrap();
        (0..column.len()).filter(|&row| !column.get(row).is_null()).count()
    };
    for (view, num_vertices) in [(&window, 2), (&all, 4)] {
        assert_eq!((view.num_vertices(), view.num_edges(), rows(view)), (num_vertices, 1, num_vertices));
        assert_eq!(
            (num_values(view), view.find_vertices("size", 10_i64).unwrap().len()),
            (num_vertices, num_vertices / 4)
        );
        let small = view.filter(None, Some("size < 40")).unwrap();
        assert_eq!((small.num_vertices(), num_values(&small)), (num_vertices - 1, num_vertices - 1));
    }
    let error = window.neighbors(1, Neighbors::Out).unwrap_err();
    assert!(matches!(&error, Error::NotFound { what: NotFound::Vertex(_), .. }), "{error}");
    assert!(error.to_string().contains("vertex 1 has no edge in window 3..3"), "{error}");
    assert!(window.neighbors(9, Neighbors::Out).unwrap_err().to_string().contains("does not exist"));
    // Results by id keep their length, so that the ids of two views can be compared.
    let ranks = |view: &anden::View| view.pagerank(&anden::PageRankParams::default()).unwrap();
    assert_eq!((ranks(&window).len(), ranks(&window)[0]), (ranks(&all).len(), 0.0));
}

/// Every kernel gives equal results on every snapshot and on its graph loaded at once.
#[test]
fn kernels_run_on_every_version() {
    let (scene, db) = Scene::new();
    let views = [db.snapshot(1), db.snapshot(2), db.snapshot(3), db.window(1..=2), db.window(2..=3), db.window(3..=3)];
    for view in views.map(Result::unwrap) {
        for kernel in Job::table() {
            let needs_source = kernel.needs == anden::job::Sources::One;
            // An empty window has no vertex to start from.
            if needs_source && view.vertex("c").is_err() {
                assert_eq!((view.name(), view.num_vertices()), ("window 3..3", 0));
                continue;
            }
            let source = if needs_source { vec!["c".into()] } else { Vec::new() };
            let parameters = Parameters { source, ..Parameters::default() };
            let output = view.run(&Job::new(kernel.name, parameters).unwrap()).unwrap();
            output.check(&view).unwrap_or_else(|error| panic!("{} on {}: {error}", kernel.name, view.name()));
        }
    }
    drop(scene);
}

#[test]
fn a_view_outlives_what_happens_beside_it() {
    let (scene, db) = Scene::new();
    let (first, reader) = (db.snapshot(1).unwrap(), Database::open_read_only(scene.path()).unwrap());
    let second = reader.snapshot("turned").unwrap();
    db.merge().unwrap();
    db.drop_snapshot("turned").unwrap();
    db.drop_snapshot(1).unwrap();
    db.append(&Changes::default().add_weighted_edge("x", "a", 3)).unwrap();
    db.merge().unwrap();
    assert_eq!(first.neighbors("b", Neighbors::Both).unwrap(), keys(&["a", "c"]));
    assert_eq!(second.neighbors("c", Neighbors::Both).unwrap(), keys(&["a", "b"]));
    assert!(matches!(db.snapshot(1), Err(Error::NotFound { .. })));
    db.verify().unwrap();
    assert_eq!(Database::open_read_only(scene.path()).unwrap().snapshots().len(), 2);
}

#[test]
fn retention_and_the_last_snapshot() {
    let (_scene, db) = Scene::new();
    assert_eq!(db.retain(Retention::Last(1)).unwrap(), [1]);
    assert_eq!(db.retain(Retention::Named).unwrap(), Vec::<u32>::new());
    db.append(&Changes::default()).unwrap();
    let numbers: Vec<u32> = db.snapshots().iter().map(|info| info.number).collect();
    assert_eq!(numbers, [2, 4]);
    let error = db.drop_snapshots(&[2.into(), "4".into()]).unwrap_err();
    assert!(matches!(error, Error::InvalidInput(_)), "{error}");
    assert_eq!(db.drop_snapshots(&["turned".into()]).unwrap(), [2]);
    assert!(matches!(db.drop_snapshot(4), Err(Error::InvalidInput(_))));
}

#[test]
fn a_reader_cannot_change_anything() {
    let (scene, db) = Scene::new();
    drop(db);
    let reader = Database::open_read_only(scene.path()).unwrap();
    let changes = Changes::default();
    let refused = |result: Result<(), Error>| {
        let error = result.unwrap_err();
        assert!(matches!(&error, Error::ReadOnly(text) if text.as_str().contains("reading only")), "{error}");
    };
    refused(reader.append(&changes).map(|_| ()));
    refused(
        reader.append_files(&[], &AppendOptions { maintenance: Maintenance::Never, ..Default::default() }).map(|_| ()),
    );
    refused(reader.merge().map(|_| ()));
    refused(reader.merge_newest(2).map(|_| ()));
    refused(reader.drop_snapshot(1));
    refused(reader.retain(Retention::All).map(|_| ()));
}

#[test]
fn properties_are_versioned_too() {
    let (_scene, db) = Scene::new();
    let changes =
        Changes::default().set_vertex("a", "size", 3).set_vertex("c", "name", "cee").set_vertex("d", "size", 4);
    assert_eq!(db.append(&changes).unwrap().changed_properties, 3);
    let view = db.view().unwrap();
    let sizes = view.vertex_property("size").unwrap();
    let size = |key: &str| sizes.get(view.vertex(key).unwrap() as usize);
    assert_eq!((size("a"), size("c"), size("d")), (PropertyValue::I64(3), PropertyValue::Null, PropertyValue::I64(4)));
    let of_c = view.vertex_properties(view.vertex("c").unwrap()).unwrap();
    assert_eq!(of_c, [("name", PropertyValue::String("cee"))]);
    assert_eq!(
        view.vertex_schema().iter().collect::<Vec<_>>(),
        [("name", PropertyType::String), ("size", PropertyType::I64)]
    );
    let error = view.vertex_property("weight").unwrap_err();
    assert!(
        matches!(&error, Error::NotFound { what: NotFound::Property(_), reason } if reason.as_str().contains("vertices have name, size")),
        "{error}"
    );
    let before = db.snapshot(3).unwrap();
    assert!(before.vertex_schema().is_empty() && before.vertex_property("size").is_err());
    let diff = db.diff(3, 4).unwrap();
    let changed: Vec<_> = diff.changed_properties().map(|change| change.unwrap().new).collect();
    assert_eq!(changed, [PropertyValue::String("cee"), PropertyValue::I64(3), PropertyValue::I64(4)]);
}
