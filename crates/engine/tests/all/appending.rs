//! Appends: known answers, refused inputs, and options that must not matter.

use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::{CancelFlag, Silent};
use anden_engine::{
    AppendOptions, AppendReport, Changes, Duplicates, Engine, ErrorKind, ExpectedGraph, GraphOptions, IdOrder, Key,
    KeyScheme, LoadOptions, Result, SnapshotView, Spread,
};
use anden_formats::{InputPath, OnError};
use anden_graph::{Graph, GraphKind, Weight, WeightType};
use anden_testkit::FaultStorage;

use crate::loading::{DB, Input, Model, fixed_identity};

struct Scene {
    db: Engine,
    disk: FaultStorage,
    pool: Pool,
}

impl Scene {
    fn load(text: &str, graph: GraphOptions) -> Self {
        Self::load_with(text, &LoadOptions { graph, ..LoadOptions::default() }, 2)
    }

    fn load_with(text: &str, options: &LoadOptions, num_threads: usize) -> Self {
        let (disk, pool) = (FaultStorage::default(), Pool::new(num_threads).unwrap());
        let (storage, input) = (Arc::new(disk.clone()), Input::text(text));
        let (db, _) = Engine::load_in(storage, Path::new(DB), &input.paths(), options, &pool, &Silent).unwrap();
        Self { db, disk, pool }
    }

    fn append(&self, text: &str, gone: &str, options: &AppendOptions) -> Result<AppendReport> {
        let (input, remove) = (Input::text(text), Input::text(gone));
        let options = AppendOptions { remove: remove.paths().into(), ..options.clone() };
        let report = self.db.append(&input.paths(), &options, &self.pool, &Silent);
        self.db.verify(&self.pool).unwrap();
        report
    }

    fn change(&self, changes: &Changes) -> Result<AppendReport> {
        self.db.append_changes(changes, &AppendOptions::default(), &self.pool, &Silent)
    }

    fn refusal(&self, text: &str, options: &AppendOptions) -> String {
        let error = self.append(text, "", options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert_eq!(self.db.snapshots().len(), 1, "{error}");
        error.to_string()
    }
}

/// Edges between keys, in the order of the lists.
fn edges<W: Weight>(view: &SnapshotView) -> Vec<String> {
    let model = Model::<W>::of(view);
    let shown = |((u, v), weights): (&(u32, u32), &Vec<W>)| {
        let (u, v) = (&model.keys[*u as usize], &model.keys[*v as usize]);
        weights.iter().map(|weight| format!("{u} {v} {weight}")).collect::<Vec<_>>()
    };
    model.out_lists.iter().flat_map(shown).collect()
}

fn weighted(weight_type: WeightType) -> GraphOptions {
    GraphOptions { weight_type: Some(weight_type), ..GraphOptions::default() }
}

#[test]
fn files_and_changes_come_to_the_same() {
    let first = Scene::load("1 2 5\n2 3 1\n3 3 2\n", weighted(WeightType::U32));
    let second = Scene::load("1 2 5\n2 3 1\n3 3 2\n", weighted(WeightType::U32));
    let report =
        first.append("1 2 7\n9 1 4\n1 9 2\n1 9 8\n2 3 1\n", "3 3\n3 4\n8\n", &AppendOptions::default()).unwrap();
    let changes = Changes::default()
        .add_weighted_edge(1, 2, 7)
        .add_weighted_edge(9, 1, 4)
        .add_weighted_edge("1", 9, 2_u32)
        .add_weighted_edge(1, 9, 8_i64)
        .add_weighted_edge(2, 3, 1)
        .remove_edge(3, 3)
        .remove_edge(3, "4")
        .remove_vertex(8);
    let same = second.change(&changes).unwrap();
    let counts = |report: &AppendReport| (report.vertices, report.edges, report.added, report.removed, report.missing);
    assert_eq!((counts(&report), counts(&same)), ((4, 4, 3, 2, 2), (4, 4, 3, 2, 2)));
    let expected = ["1 2 7", "1 9 2", "2 3 1", "9 1 4"];
    assert_eq!(edges::<u32>(&first.db.view().unwrap()), expected);
    assert_eq!(edges::<u32>(&second.db.view().unwrap()), expected);
    assert_eq!(edges::<u32>(&first.db.snapshot(1).unwrap()), ["1 2 5", "2 3 1", "3 3 2"]);
    assert!(report.seconds > 0.0 && report.bytes > report.snapshot_bytes && report.snapshot_bytes > 0);
}

#[test]
fn duplicates_in_an_input_follow_the_rule() {
    for (duplicates, weight) in [(None, 3), (Some(Duplicates::Last), 4), (Some(Duplicates::Sum), 12)] {
        let scene = Scene::load("1 2 1\n", weighted(WeightType::I64));
        let options = AppendOptions { duplicates, ..AppendOptions::default() };
        scene.append("1 2 5\n1 2 3\n1 2 4\n", "", &options).unwrap();
        assert_eq!(edges::<i64>(&scene.db.view().unwrap()), [format!("1 2 {weight}")]);
    }
    let scene = Scene::load("1 2 1\n", GraphOptions { multigraph: true, ..weighted(WeightType::F32) });
    scene.append("1 2 1\n1 2 0.5\n", "", &AppendOptions::default()).unwrap();
    assert_eq!(edges::<f32>(&scene.db.view().unwrap()), ["1 2 1", "1 2 1", "1 2 0.5"]);
    let report = scene.append("1 2 1\n1 2 9\n", "1 2\n", &AppendOptions::default()).unwrap();
    assert_eq!((report.added, report.removed, report.edges), (2, 3, 2));
    assert_eq!(edges::<f32>(&scene.db.view().unwrap()), ["1 2 1", "1 2 9"]);
}

#[test]
fn new_ids_follow_those_before() {
    let scene = Scene::load("50 20\n", GraphOptions::default());
    scene.append("90 20\n10 70\n", "", &AppendOptions::default()).unwrap();
    let io_order = AppendOptions { order: IdOrder::Input, ..AppendOptions::default() };
    scene.append("95 5\n20 1\n", "", &io_order).unwrap();
    let view = scene.db.view().unwrap();
    let keys: Vec<Key> = (0..view.vertex_bound() as u32).map(|v| view.key(v).unwrap()).collect();
    assert_eq!(keys, [20, 50, 10, 70, 90, 95, 5, 1].map(Key::Integer));
}

#[test]
fn returning_vertex_keeps_id_without_edges() {
    let strings = GraphOptions { keys: KeyScheme::String, ..GraphOptions::default() };
    for graph in [strings, GraphOptions { in_edges: false, ..strings }] {
        let scene = Scene::load("a b\nb c\nc b\nb b\n", graph);
        let report = scene.change(&Changes::default().remove_vertex("b")).unwrap();
        assert_eq!((report.vertices, report.edges, report.removed), (2, 0, 4));
        let view = scene.db.view().unwrap();
        assert_eq!((view.vertex(&"b".into()).unwrap(), view.vertex_bound(), view.num_vertices()), (None, 3, 2));
        let again = scene.change(&Changes::default().remove_vertex("b").remove_vertex("x")).unwrap();
        assert_eq!((again.missing, again.vertices), (2, 2));
        scene.change(&Changes::default().add_edge("c", "b").add_edge("d", "a")).unwrap();
        let view = scene.db.view().unwrap();
        assert_eq!(view.vertex(&"b".into()).unwrap(), Some(1));
        assert_eq!(view.vertex(&"d".into()).unwrap(), Some(3));
        assert_eq!(edges::<u32>(&view), ["c b 1", "d a 1"]);
        // Removed and added in one append: only the new edge remains.
        scene.change(&Changes::default().remove_vertex("a").add_edge("a", "c")).unwrap();
        let view = scene.db.view().unwrap();
        assert_eq!((edges::<u32>(&view), view.num_vertices()), (vec!["a c 1".to_owned(), "c b 1".into()], 4));
    }
}

#[test]
fn dense_ids_reach_to_the_largest() {
    let scene = Scene::load("0 1\n", GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() });
    let report = scene.append("5 2\n", "7\n8 9\n", &AppendOptions::default()).unwrap();
    assert_eq!((report.vertices, report.edges, report.missing), (6, 2, 2));
    let report = scene.change(&Changes::default().add_vertex(3000).remove_vertex(1)).unwrap();
    assert_eq!((report.vertices, report.edges), (3000, 1));
    let view = scene.db.view().unwrap();
    assert!(!view.is_live(1) && view.is_live(2999) && view.vertex(&1.into()).unwrap().is_none());
    assert!(scene.change(&Changes::default().add_edge(1, 1 << 32)).unwrap_err().to_string().contains("dense id"));
}

#[test]
fn an_edge_of_an_undirected_graph_is_one() {
    let undirected = GraphOptions { graph_kind: GraphKind::Undirected, ..GraphOptions::default() };
    let scene = Scene::load("1 2\n2 2\n", undirected);
    let report = scene.append("2 1\n3 1\n1 3\n4 4\n", "2 2\n9 9\n", &AppendOptions::default()).unwrap();
    assert_eq!((report.edges, report.added, report.removed, report.missing), (3, 2, 1, 1));
    let diff = scene.db.diff(1, 2).unwrap();
    assert_eq!((diff.added.len(), diff.removed.len()), (2, 1));
    let report = scene.change(&Changes::default().remove_edge(1, 3).remove_edge(3, 1).remove_vertex(4)).unwrap();
    assert_eq!((report.edges, report.removed, report.missing), (1, 2, 0));
}

#[test]
fn an_input_without_directions_leads_both_ways() {
    let scene = Scene::load("0 1\n", GraphOptions::default());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("graph.sg");
    // Vertices 0 to 2 and one edge, in the lists of both ends.
    let mut bytes = vec![0_u8];
    bytes.extend([2_i64, 3, 0, 0, 1, 2].iter().flat_map(|number| number.to_le_bytes()));
    bytes.extend([2_i32, 1].iter().flat_map(|number| number.to_le_bytes()));
    std::fs::write(&path, bytes).unwrap();
    let inputs = [InputPath::File(path)];
    let report = scene.db.append(&inputs, &AppendOptions::default(), &scene.pool, &Silent).unwrap();
    assert_eq!((report.vertices, report.edges), (3, 3));
    assert_eq!(edges::<u32>(&scene.db.view().unwrap()), ["0 1 1", "1 2 1", "2 1 1"]);
}

#[test]
fn empty_append_makes_a_snapshot() {
    let scene = Scene::load("1 2\n", GraphOptions::default());
    let report = scene.change(&Changes::default().named("quiet")).unwrap();
    assert_eq!((report.snapshot, report.edges, report.added), (2, 1, 0));
    assert_eq!(scene.db.snapshot_number("quiet"), Some(2));
    assert_eq!(scene.db.snapshots()[1].name.as_deref(), Some("quiet"));
    for name in ["quiet", "12", ""] {
        let error = scene.change(&Changes::default().named(name)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name:?}: {error}");
    }
    assert_eq!(scene.db.snapshots().len(), 2);
}

#[test]
fn contradictory_append_is_refused() {
    let scene = Scene::load("1 2\n", GraphOptions::default());
    let options = AppendOptions::default();
    assert!(scene.refusal("1 2\nx 3\n", &options).contains("edges.txt:2"));
    assert!(scene.refusal("1 2\n3\n", &options).contains("edges.txt:2"));
    let undirected = ExpectedGraph { graph_kind: Some(GraphKind::Undirected), ..ExpectedGraph::default() };
    let text = scene.refusal("1 2\n", &AppendOptions { expected: undirected, ..options.clone() });
    assert_eq!(text, "the graph is directed, not undirected");
    let keep = AppendOptions { duplicates: Some(Duplicates::Keep), ..options.clone() };
    assert!(scene.refusal("1 2\n", &keep).contains("multigraph"));
    let text = scene.refusal("1 2\n", &AppendOptions { memory: Some(1 << 20), ..options.clone() });
    assert!(text.contains("needs at least"), "{text}");
    for changes in [
        Changes::default().add_weighted_edge(1, 2, 3),
        Changes::default().add_edge("one", 2),
        Changes::default().remove_vertex("one"),
    ] {
        assert_eq!(scene.change(&changes).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    let scene = Scene::load("1 2 3\n", weighted(WeightType::F64));
    assert!(scene.refusal("1 2\n", &options).contains("edges.txt:1"));
    assert!(scene.change(&Changes::default().add_edge(1, 2)).unwrap_err().to_string().contains("no weight"));
    let reader = Engine::open_read_only_in(Arc::new(scene.disk.clone()), Path::new(DB)).unwrap();
    let refused = reader.append_changes(&Changes::default(), &options, &scene.pool, &Silent).unwrap_err();
    assert!(refused.to_string().contains("reading only"), "{refused}");
}

#[test]
fn skipped_lines_are_counted() {
    let scene = Scene::load("1 2\n", GraphOptions::default());
    let mut options = AppendOptions::default();
    options.source.on_error = OnError::Skip;
    let report = scene.append("2 3\nx\n", "1 2\n1 y\n", &options).unwrap();
    assert_eq!((report.edges, report.skipped), (1, 2));
    assert!(report.first_skipped.unwrap().contains("edges.txt:2"));
}

#[test]
fn a_cancelled_append_changes_nothing() {
    let scene = Scene::load("1 2\n", GraphOptions::default());
    let stop = CancelFlag::default();
    stop.cancel();
    let changes = Changes::default().add_edge(1, 3);
    let error = scene.db.append_changes(&changes, &AppendOptions::default(), &scene.pool, &stop).unwrap_err();
    assert_eq!((error.kind(), scene.db.snapshots().len()), (ErrorKind::Cancelled, 1));
    scene.change(&changes).unwrap();
}

/// Changes beyond the budget are refused, and the error names their size.
#[test]
fn oversized_changes_are_refused_with_needed_memory() {
    let scene = Scene::load("1 2\n", GraphOptions::default());
    let options = AppendOptions { memory: Some(64 << 20), ..AppendOptions::default() };
    let text: String = (0..400_000).map(|i| format!("{} {}\n", i % 977, i)).collect();
    let refusal = scene.refusal(&text, &options);
    assert!(refusal.contains("changes of one snapshot") && refusal.contains("needs at least"), "{refusal}");
    scene.append(&text[..10_000], "", &options).unwrap();
}

#[test]
fn threads_and_blocks_do_not_matter() {
    let base: String = (0..3000).map(|i| format!("{} {} {}\n", i % 71, i * i % 89, i % 9)).collect();
    let more: String = (0..5000).map(|i| format!("{} {} {}\n", i % 97, i * i % 101, i % 7)).collect();
    let gone: String = (0..400).map(|i| format!("{} {}\n", i % 71, i * i % 89)).collect::<String>() + "5\n6\n99\n";
    let mut first = None;
    for (num_threads, block_bytes) in [(1, 4 << 20), (2, 300), (3, 1000)] {
        let graph = GraphOptions { keys: KeyScheme::String, ..weighted(WeightType::U32) };
        let scene = Scene::load_with(&base, &LoadOptions { graph, ..LoadOptions::default() }, num_threads);
        let mut options =
            AppendOptions { duplicates: Some(Duplicates::Last), order: IdOrder::Input, ..AppendOptions::default() };
        options.source.block_bytes = block_bytes;
        let report = scene.append(&more, &gone, &options).unwrap();
        assert!(report.added > 1000 && report.removed > 100, "{report:?}");
        let model = Model::<u32>::of(&scene.db.view().unwrap());
        let found = format!("{:?} {model:?}", (report.added, report.removed, report.missing));
        assert_eq!(first.get_or_insert_with(|| found.clone()), &found);
    }
}

/// Loads with several snapshots: each has its share, and together they are the graph, for every way of loading.
#[test]
fn a_load_spreads_edges_over_snapshots() {
    let text: String = (0..4000).map(|i| format!("{} {} {}\n", i % 61, i * i % 1087, i % 5)).collect();
    let spread = Spread { num_snapshots: 4, first_share: Some(0.4), seed: 9 };
    let undirected = GraphOptions { graph_kind: GraphKind::Undirected, ..weighted(WeightType::F64) };
    let multigraph = GraphOptions { multigraph: true, ..weighted(WeightType::F64) };
    for graph in [GraphOptions::default(), undirected, multigraph] {
        let single = Scene::load(&text, graph);
        for sort_memory in [None, Some(20_000)] {
            let options = LoadOptions {
                graph,
                spread,
                sort_memory,
                identity: Some(fixed_identity()),
                name: Some("all".into()),
                ..LoadOptions::default()
            };
            let scene = Scene::load_with(&text, &options, 2);
            scene.db.verify(&scene.pool).unwrap();
            let (whole, found) = (single.db.view().unwrap(), scene.db.view().unwrap());
            assert_eq!(edges::<f64>(&found), edges::<f64>(&whole));
            assert_eq!(scene.db.snapshot_number("all"), Some(4));
            let snapshots = scene.db.snapshots();
            let first_share = snapshots[0].num_edges as f64 / whole.num_edges() as f64;
            assert!((0.3..0.5).contains(&first_share), "{first_share}");
            assert_eq!(snapshots.iter().map(|info| info.added).sum::<u64>(), whole.num_edges());
            for info in &snapshots {
                let view = scene.db.snapshot(info.number).unwrap();
                assert_eq!((view.num_edges(), view.num_vertices()), (info.num_edges, whole.num_vertices()));
                let window = scene.db.window(info.number..=info.number).unwrap();
                assert_eq!(window.num_edges(), info.added);
            }
        }
    }
}
