//! The public API: a database is loaded, opened, queried, and used through several handles.

use std::path::PathBuf;

use anden::changes::ApplyOptions;
use anden::error::NotFound;
use anden::export::{ExportFormat, write_file};
use anden::job::{Value, Values};
use anden::load::InputPath;
use anden::query::PathLength;
use anden::stats::FragmentStatistics;
use anden::{
    Changes, Database, Error, Job, Key, KeyScheme, LoadOptions, Neighbors, OpenOptions, Options, OwnedValue,
    PageRankParams, Parameters, Session, Update, View, WeightType,
};

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    /// A folder with `text` loaded to the database `db`.
    fn load(text: &str, graph: Options) -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        let input = scene.folder.path().join("edges.txt");
        std::fs::write(&input, text).unwrap();
        let options = LoadOptions { graph, ..LoadOptions::default() };
        let session = Session::new(2).unwrap();
        Database::load(scene.path(), &[InputPath::File(input)], &options, &session).unwrap();
        scene
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("db")
    }
}

const WORDS: &str = "bash libc6 2\nvim libc6 1\nvim bash 0.5\nlibc6 gcc 4\nlone lone 1\n";

fn words() -> Scene {
    let graph = Options { keys: KeyScheme::String, weight_type: Some(WeightType::F64), ..Options::default() };
    Scene::load(WORDS, graph)
}

#[test]
fn questions_and_answers() {
    let scene = words();
    let view = Database::open_read_only(scene.path()).unwrap().view().unwrap();
    assert_eq!((view.num_vertices(), view.num_edges(), view.name()), (5, 5, "snapshot 1"));
    assert!(view.has_edge("vim", "bash").unwrap() && !view.has_edge("bash", "vim").unwrap());
    let keys = |names: &[&str]| names.iter().map(|&name| Key::from(name)).collect::<Vec<_>>();
    assert_eq!(view.neighbors("libc6", Neighbors::In).unwrap(), keys(&["bash", "vim"]));
    assert_eq!(view.neighbors("libc6", Neighbors::Both).unwrap(), keys(&["bash", "gcc", "vim"]));
    assert_eq!(view.fof("vim").unwrap(), keys(&["gcc"]));
    let path = view.path("vim", "gcc").unwrap().unwrap();
    assert_eq!((path.vertices, path.length), (keys(&["vim", "libc6", "gcc"]), PathLength::Hops(2)));
    let path = view.weighted_path("vim", "gcc").unwrap().unwrap();
    assert_eq!((path.vertices, path.length), (keys(&["vim", "libc6", "gcc"]), PathLength::Real(5.0)));
    assert_eq!(view.path("gcc", "vim").unwrap(), None);
    assert!(matches!(view.vertex("emacs"), Err(Error::NotFound { .. })));
}

#[test]
fn kernels_as_methods() {
    let scene = words();
    let view = Database::open_read_only(scene.path()).unwrap().view().unwrap();
    let id = |key: &str| view.vertex(key).unwrap() as usize;
    let hops = view.bfs("bash").unwrap();
    assert_eq!((hops[id("gcc")], hops[id("vim")]), (2, u32::MAX));
    assert_eq!(view.sssp("vim").unwrap(), anden::kernel::Distances::Float(vec![0.5, 5.0, 1.0, f64::INFINITY, 0.0]));
    let labels = view.wcc().unwrap();
    assert_eq!((labels[id("vim")], labels[id("lone")]), (id("bash") as u32, id("lone") as u32));
    assert_eq!(view.triangles().unwrap(), 1);
    assert_eq!(view.scc().unwrap(), [0, 1, 2, 3, 4]);
    let cores = view.kcore().unwrap();
    let of_names = ["bash", "gcc", "libc6", "lone", "vim"].map(|name| cores[id(name)]);
    assert_eq!(of_names, [2, 1, 2, 0, 2]);
    let labels = view.cdlp(1).unwrap();
    assert_eq!((labels[id("bash")], labels[id("vim")]), (id("libc6") as u32, id("bash") as u32));
    assert_eq!((labels[id("lone")], view.cdlp(0).unwrap()), (id("lone") as u32, vec![0, 1, 2, 3, 4]));
    let ranks = view.pagerank(&PageRankParams::default()).unwrap();
    assert!((ranks.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    let between = view.bc(&["bash".into()]).unwrap();
    let best = (0..between.len()).max_by(|&a, &b| between[a].total_cmp(&between[b])).unwrap();
    assert_eq!(best, id("libc6"));
}

#[test]
fn every_kernel_of_the_table_runs_and_is_checked() {
    let scene = words();
    let view = Database::open_read_only(scene.path()).unwrap().view().unwrap();
    for kernel in Job::table() {
        let source = if kernel.needs == anden::job::Sources::One { vec!["vim".into()] } else { Vec::new() };
        let parameters = Parameters { source, ..Parameters::default() };
        let output = view.run(&Job::new(kernel.name, parameters).unwrap()).unwrap();
        output.check(&view).unwrap();
        assert!(!output.summary.is_empty(), "{}", kernel.name);
        let length = match output.values() {
            Some(Values::Hops(values) | Values::Vertices(values) | Values::Numbers(values)) => values.len(),
            Some(Values::Counts(values) | Values::Distances(values)) => values.len(),
            Some(Values::Reals(values)) => values.len(),
            None => view.vertex_bound(),
        };
        assert_eq!(length, view.vertex_bound(), "{}", kernel.name);
        let shown = output.values().map(|values| format!("{values:?}"));
        assert_eq!(shown, output.into_values().map(|values| format!("{values:?}")), "{}", kernel.name);
    }
}

#[test]
fn a_job_is_refused_before_it_runs() {
    let parameters = Parameters { damping: Some(0.5), ..Parameters::default() };
    let message = Job::new("wcc", parameters).unwrap_err().to_string();
    assert!(message.contains("wcc") && message.contains("damping"), "{message}");
    assert!(matches!(Job::new("magic", Parameters::default()), Err(Error::InvalidInput(_))));
}

#[test]
fn numbers_and_text_are_both_understood_as_keys() {
    let scene = Scene::load("7 40\n", Options::default());
    let view = Database::open(scene.path()).unwrap().view().unwrap();
    assert_eq!(view.vertex(40).unwrap(), view.vertex("40").unwrap());
    assert!(matches!(view.vertex(41), Err(Error::NotFound { .. })));
    let output = view.run(&Job::new("wcc", Parameters::default()).unwrap()).unwrap();
    assert_eq!(output.summary, [("components", Value::Integer(1)), ("largest", Value::Integer(2))]);
}

#[test]
fn one_handle_writes_and_others_read() {
    let scene = words();
    let writer = Database::open(scene.path()).unwrap();
    assert!(matches!(Database::open(scene.path()), Err(Error::Locked(_))));
    Database::open_read_only(scene.path()).unwrap().verify().unwrap();
    drop(writer);
    Database::open(scene.path()).unwrap();
    assert!(matches!(Database::create(scene.path(), Options::default()), Err(Error::Exists(_))));
    let nowhere = scene.folder.path().join("nowhere");
    let missing = Database::open_read_only(nowhere).map(drop);
    assert!(matches!(missing, Err(Error::NotFound { what: NotFound::Database(_), .. })));
}

#[test]
fn refresh_shows_newer_commits_to_reader() {
    let scene = words();
    let writer = Database::open(scene.path()).unwrap();
    let reader = Database::open_read_only(scene.path()).unwrap();
    assert!(!reader.refresh().unwrap(), "nothing was committed");
    writer.apply(&[Update::add_weighted_edge("gcc", "vim", 1.5)]).unwrap();
    assert!(!writer.refresh().unwrap(), "it knows already");
    let snapshots =
        Database::open_with(scene.path(), &OpenOptions { snapshots_only: true, ..OpenOptions::default() }).unwrap();
    let before = reader.view().unwrap();
    assert_eq!((before.num_edges(), snapshots.view().unwrap().num_edges()), (5, 5));
    for handle in [&reader, &snapshots] {
        assert!(handle.refresh().unwrap() && !handle.refresh().unwrap());
        let view = handle.view().unwrap();
        assert!(view.num_edges() == 6 && view.has_edge("gcc", "vim").unwrap());
    }
    writer.checkpoint(None).unwrap();
    writer.apply(&[Update::remove_edge("gcc", "vim"), Update::remove_edge("lone", "lone")]).unwrap();
    assert_eq!(reader.snapshots().len(), 1);
    assert!(reader.refresh().unwrap() && !reader.refresh().unwrap());
    assert_eq!((reader.snapshots().len(), reader.view().unwrap().num_edges()), (2, 4));
    assert_eq!(before.num_edges(), 5, "a view never changes");
    writer.close().unwrap();
    assert!(reader.refresh().unwrap());
    assert_eq!((reader.snapshots().len(), reader.view().unwrap().num_edges()), (3, 4));
}

#[test]
fn an_empty_database_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("db"), Options::default()).unwrap();
    database.verify().unwrap();
    let view = database.view().unwrap();
    assert_eq!((view.num_vertices(), view.num_edges()), (0, 0));
    assert_eq!(view.pagerank(&PageRankParams::default()).unwrap(), Vec::<f64>::new());
}

#[test]
fn a_file_that_fails_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("values.txt");
    let failed = write_file(&path, |output| -> Result<(), Error> {
        output.write(b"half")?;
        Err(Error::Cancelled)
    });
    assert!(matches!(failed, Err(Error::Cancelled)));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    write_file(&path, |output| -> Result<(), Error> { Ok(output.write(b"whole")?) }).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole");
}

/// A rename would replace the device with a file.
#[cfg(target_os = "linux")]
#[test]
fn a_device_stays_a_device() {
    use std::os::unix::fs::FileTypeExt;
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("device");
    std::os::unix::fs::symlink("/dev/full", &link).unwrap();
    let failed = write_file(&link, |output| -> Result<(), Error> { Ok(output.write(b"values")?) });
    assert!(matches!(failed, Err(Error::Io(_))), "{failed:?}");
    assert!(std::fs::metadata(&link).unwrap().file_type().is_char_device());
}

#[test]
fn vertices_that_were_just_committed_have_no_properties() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::create(folder.path().join("db"), Options::default()).unwrap();
    db.append(&Changes::default().add_edge(1, 2).set_vertex(1, "size", 5_i64)).unwrap();
    db.apply(&[Update::add_edge(2, 3)]).unwrap();
    let view = db.view().unwrap();
    let sizes = view.vertex_property("size").unwrap();
    let of = |key: u64| view.vertex(key).unwrap();
    assert_eq!(sizes.len(), view.vertex_bound());
    assert_eq!((sizes.get(of(1) as usize).to_string(), sizes.get(of(3) as usize).is_null()), ("5".to_owned(), true));
    assert!(view.vertex_properties(of(3)).unwrap().is_empty());
}

#[test]
fn values_are_changed_live() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::create(folder.path().join("db"), Options::default()).unwrap();
    db.append(&Changes::default().add_edge(1, 2).set_vertex(1, "size", 5_i64).set_vertex(2, "size", 6_i64)).unwrap();
    let shown = |view: &View, key: u64| {
        let values = view.vertex_properties(view.vertex(key).unwrap()).unwrap();
        values.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
    };
    let csv = |view: &View| {
        let path = folder.path().join("vertices.csv");
        write_file(&path, |output| view.export_vertices(ExportFormat::CSV, output)).unwrap();
        std::fs::read_to_string(&path).unwrap()
    };
    db.apply(&[Update::set_vertex(1, "size", 7), Update::set_vertex(3, "name", "three"), Update::add_edge(3, 4)])
        .unwrap();
    let before = db.view().unwrap();
    assert_eq!([shown(&before, 1), shown(&before, 3), shown(&before, 4)], ["size 7", "name three", ""]);
    assert_eq!(before.vertex_schema().iter().map(|(name, _)| name).collect::<Vec<_>>(), ["size", "name"]);
    assert_eq!(csv(&before), "id,size:i64,name:string\n1,7,\n2,6,\n3,,three\n4,,\n");
    db.apply(&[Update::RemoveVertex(2.into()), Update::set_vertex(1, "size", OwnedValue::Null)]).unwrap();
    db.apply(&[Update::add_edge(1, 2)]).unwrap();
    let after = db.view().unwrap();
    let sizes = after.vertex_property("size").unwrap();
    assert_eq!((sizes.len(), sizes.num_nulls()), (after.vertex_bound(), after.vertex_bound()));
    assert_eq!([shown(&after, 1), shown(&after, 2), shown(&after, 3)], ["", "", "name three"]);
    let snapshot = db.checkpoint(None).unwrap();
    assert_eq!(csv(&before), "id,size:i64,name:string\n1,7,\n2,6,\n3,,three\n4,,\n", "a view stays as it is");
    let kept = db.snapshot(snapshot.number).unwrap();
    assert_eq!([shown(&kept, 1), shown(&kept, 2), shown(&kept, 3)], ["", "", "name three"]);
    let diff = db.diff(2, snapshot.number).unwrap();
    let changed: Vec<_> = diff.changed_properties().map(|value| value.unwrap().name.to_owned()).collect();
    assert_eq!(changed, ["size", "size", "name"]);
    let strict = db.apply_strict(&[Update::set_vertex(9, "size", 1)]);
    assert!(matches!(strict, Err(Error::NotFound { what: NotFound::Vertex(key), .. }) if key == 9.into()));
    db.verify().unwrap();
}

#[test]
fn files_are_applied_while_snapshots_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let updates: String = (0..30_000).map(|i| format!("+ {} {}\n", i % 1_000, i * 7 % 997)).collect();
    let input = folder.path().join("updates.txt");
    std::fs::write(&input, updates).unwrap();
    let db = Database::create(&path, Options::default()).unwrap();
    // The first batch exceeds the limit, and the commit of the third waits for its checkpoint.
    db.set_checkpoint_bytes(Some(10_000));
    db.set_background_write_rate(None);
    let options = ApplyOptions { batch: 5_000, ..ApplyOptions::default() };
    let report = db.apply_file(&InputPath::File(input), &options, |_| Ok(())).unwrap();
    db.checkpoint(None).unwrap();
    let (stats, num_edges) = (db.metrics().live, db.view().unwrap().num_edges());
    assert_eq!((report.updates, report.transactions, stats.background_error), (30_000, 6, None));
    let num_snapshots = db.snapshots().len();
    assert!(num_snapshots > 2 && report.automatic_checkpoints <= 6, "{num_snapshots} snapshots");
    assert_eq!((stats.delta_bytes, stats.added, stats.is_checkpoint_running), (0, 0, false), "all is in snapshots");
    db.apply(&[Update::add_edge(5_000, 5_001)]).unwrap();
    assert!(db.metrics().live.delta_bytes > 0);
    db.close().unwrap();
    let db = Database::open(&path).unwrap();
    assert_eq!(db.view().unwrap().num_edges(), num_edges + 1);
}

/// The statistics count the slices that algorithms get, not their sources.
#[test]
fn fragments_are_counted() {
    let db = Database::in_memory(Options { keys: KeyScheme::Dense, ..Options::default() }).unwrap();
    let counted = || db.view().unwrap().fragment_statistics().unwrap();
    let of = |max, mean| FragmentStatistics { max, mean };
    assert_eq!(counted(), of(0, 0.0));
    db.add_edges(&[(0, 1), (0, 2), (0, 3), (0, 4), (1, 2)]).unwrap();
    assert_eq!(counted(), of(1, 1.0), "live");
    db.checkpoint(None).unwrap();
    assert_eq!(counted(), of(1, 1.0), "a snapshot");
    db.add_edges(&[(0, 5)]).unwrap();
    assert_eq!(counted(), of(2, 1.5), "one more, live");
    db.remove_edges(&[(0, 2)]).unwrap();
    assert_eq!(counted(), of(3, 2.0), "and one less, from between two");
    db.checkpoint(None).unwrap();
    assert_eq!(counted(), of(1, 1.0), "the next snapshot");
    let hub: Vec<_> = (0..5000).map(|target| (2, target)).collect();
    db.add_edges(&hub).unwrap();
    assert!(counted().max > 4, "leaves of a long list");
    db.checkpoint(None).unwrap();
    assert_eq!(counted(), of(1, 1.0), "and none in a snapshot");
}

#[test]
fn ids_beyond_the_bound_are_answered() {
    let db = Database::in_memory(Options::default()).unwrap();
    db.apply(&[Update::add_edge(1, 2)]).unwrap();
    let view = db.view().unwrap();
    for view in [view.filter(Some("TRUE"), None).unwrap(), view] {
        for vertex in [2, 7, u32::MAX] {
            assert!(!view.is_live(vertex));
            assert!(matches!(view.out_degree(vertex), Err(Error::InvalidInput(_))));
            assert!(matches!(view.in_degree(vertex), Err(Error::InvalidInput(_))));
            assert!(view.vertex_properties(vertex).unwrap().is_empty());
        }
        assert_eq!((view.out_degree(0).unwrap(), view.in_degree(1).unwrap()), (1, Some(1)));
    }
}

#[test]
fn no_sources_mean_all_vertices() {
    let db = Database::in_memory(Options::default()).unwrap();
    db.apply(&[Update::add_edge(1, 2), Update::add_edge(2, 3)]).unwrap();
    let view = db.view().unwrap();
    let all = [1, 2, 3].map(Key::from);
    assert_eq!(
        (view.bc(&[]).unwrap(), view.closeness(&[]).unwrap()),
        (view.bc(&all).unwrap(), view.closeness(&all).unwrap())
    );
    assert!(view.bc(&[]).unwrap()[1] > 0.0);
}

#[test]
fn vertex_export_names_the_memory_it_needs() {
    let scene = words();
    let export = |memory: u64| {
        let session = Session::new(2).unwrap().with_memory(Some(memory));
        let options = OpenOptions { read_only: true, ..OpenOptions::from(&session) };
        let view = Database::open_with(scene.path(), &options).unwrap().view().unwrap();
        let path = scene.folder.path().join("vertices.csv");
        write_file(&path, |output| view.export_vertices(ExportFormat::CSV, output))
    };
    let Err(Error::Memory { needed, budget: 1, .. }) = export(1) else { panic!("a budget of a byte is too small") };
    assert!(matches!(export(needed - 1), Err(Error::Memory { .. })));
    export(needed).unwrap();
}
