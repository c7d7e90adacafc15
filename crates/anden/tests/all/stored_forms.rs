//! Stored forms: they change no result, are never needed, and leave with their base.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden::job::{JobOutput, Parameters};
use anden::{Changes, Database, Error, GraphKind, Job, Options, Session, Update, View};
use anden_base::progress::Silent;
use anden_base::storage::DiskStorage;
use anden_graph::{StoredForm, StoredFormKey};
use anden_snapshots::Store;
use anden_testkit::Random;

/// Kernels with forms, whose results do not depend on the order of their work.
const KERNELS: [&str; 5] = ["pagerank", "triangles", "lcc", "cdlp", "kcore"];

fn edges(seed: u64, num_vertices: u64, num_edges: u64) -> Vec<Update> {
    let mut random = Random::new(seed);
    let mut vertex = || random.below_u64(num_vertices);
    (0..num_edges).map(|_| Update::add_edge(vertex(), vertex())).collect()
}

/// A database on disk whose graph is its base.
fn create(path: &Path, options: Options, edges: &[Update]) -> Database {
    let db = Database::create_with(path, options, &session()).unwrap();
    db.apply(edges).unwrap();
    db.checkpoint(None).unwrap();
    db.merge().unwrap();
    db
}

/// Without a cache, a run finds no form but a stored one.
fn session() -> Session {
    Session::new(2).unwrap().with_cache(Some(0))
}

fn reader(path: &Path) -> Database {
    let options = anden::OpenOptions { read_only: true, ..(&session()).into() };
    Database::open_with(path, &options).unwrap()
}

fn run(view: &View, kernel: &str) -> JobOutput {
    view.run(&Job::new(kernel, Parameters::default()).unwrap()).unwrap()
}

fn results(view: &View) -> Vec<String> {
    let run = |kernel| {
        let output = run(view, kernel);
        format!("{kernel}: {:?} {:?}", output.summary, output.values())
    };
    KERNELS.into_iter().map(run).collect()
}

fn was_prepared(view: &View, kernel: &str) -> bool {
    run(view, kernel).was_prepared.unwrap()
}

/// The paths of the files with stored forms.
fn files(path: &Path) -> Vec<PathBuf> {
    let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("prepared-")).collect()
}

#[test]
fn stored_forms_change_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let undirected = Options { graph_kind: GraphKind::Undirected, ..Options::default() };
    let out_only = Options { in_edges: false, ..Options::default() };
    for (name, options) in [("directed", Options::default()), ("undirected", undirected), ("out-only", out_only)] {
        let path = folder.path().join(name);
        let db = create(&path, options, &edges(7, 200, 3000));
        let wanted = results(&db.view().unwrap());
        assert!(!was_prepared(&db.view().unwrap(), "lcc"), "{name}");
        let report = db.prepare(&[]).unwrap();
        assert!(report.without.is_empty() && report.forms.iter().all(|form| !form.was_stored), "{name}: {report:?}");
        let forms: Vec<&str> = report.forms.iter().map(|form| form.form).collect();
        assert!(forms.contains(&"oriented") && forms.contains(&"in-lists") != options.in_edges, "{name}: {forms:?}");
        assert_eq!(files(&path).len(), forms.len(), "{name}");
        for view in [db.view().unwrap(), reader(&path).view().unwrap()] {
            assert_eq!(results(&view), wanted, "{name}");
            assert!(was_prepared(&view, "lcc"), "{name}");
        }
        db.verify().unwrap();
        // Preparing again writes nothing.
        let names = files(&path);
        assert!(db.prepare(&[]).unwrap().forms.iter().all(|form| form.was_stored), "{name}");
        assert_eq!((files(&path), db.prepared().len()), (names, forms.len()), "{name}");
        // A named kernel without a form is told apart.
        let report = db.prepare(&["bfs", "lcc"]).unwrap();
        assert_eq!((&report.without[..], report.forms.len()), (&["bfs"][..], 1), "{name}");
    }
}

/// Scores of more vertices than fit in a cache take bins.
#[test]
fn stored_bins_serve_pagerank() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let num_vertices = 280_000;
    let options = Options { keys: anden::KeyScheme::Dense, ..Options::default() };
    let db = create(&path, options, &edges(3, num_vertices, 2 * num_vertices));
    let wanted = results(&db.view().unwrap());
    assert!(!was_prepared(&db.view().unwrap(), "pagerank"));
    let report = db.prepare(&["pagerank"]).unwrap();
    assert_eq!((report.forms[0].form, &report.forms[0].kernels[..]), ("bins", &["pagerank"][..]));
    db.verify().unwrap();
    let view = reader(&path).view().unwrap();
    assert!(was_prepared(&view, "pagerank"));
    assert_eq!(results(&view), wanted);
    // One file serves both precisions: in 32 bits, 262,144 scores fit in a cache.
    let single = anden::PageRankParams { precision: anden_kernels::pagerank::Precision::F32, ..Default::default() };
    let rank = |view: &View| {
        anden_kernels::pagerank::pagerank(&view.context(), view.graph(), &single).map(|found| found.was_prepared)
    };
    assert!(rank(&view).unwrap());
}

#[test]
fn damaged_forms_are_prepared_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let db = create(&path, Options::default(), &edges(5, 100, 1500));
    let wanted = results(&db.view().unwrap());
    db.prepare(&["lcc"]).unwrap();
    let damage: [&dyn Fn(&Path); 3] = [
        &|file| {
            let mut bytes = std::fs::read(file).unwrap();
            bytes[4200] ^= 1;
            std::fs::write(file, bytes).unwrap();
        },
        &|file| std::fs::File::options().write(true).open(file).unwrap().set_len(5000).unwrap(),
        &|file| std::fs::remove_file(file).unwrap(),
    ];
    for damage in damage {
        let file = files(&path)[0].clone();
        damage(&file);
        for view in [db.view().unwrap(), reader(&path).view().unwrap()] {
            assert!(!was_prepared(&view, "lcc"));
            assert_eq!(results(&view), wanted);
        }
        let error = db.verify().unwrap_err().to_string();
        assert!(error.contains(&*file.to_string_lossy()), "{error}");
        assert!(!db.prepare(&["lcc"]).unwrap().forms[0].was_stored);
        assert!(!file.exists() && files(&path).len() == 1);
        assert!(was_prepared(&reader(&path).view().unwrap(), "lcc"));
        db.verify().unwrap();
    }
}

#[test]
fn a_form_of_another_graph_is_found_by_verify() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let options = Options { in_edges: false, ..Options::default() };
    drop(create(&path, options, &[Update::add_edge(1, 2), Update::add_edge(2, 3)]));
    let key = StoredFormKey { form: StoredForm::InLists, parameter: 0 };
    for (sources, is_whole) in [([2_u32, 2], true), ([0, 9], false), ([0, 1], true)] {
        let store = Store::open(Arc::new(DiskStorage), &path).unwrap();
        let ends = [0_u64, 1, 2].map(u64::to_le_bytes).concat();
        let sources = sources.map(u32::to_le_bytes).concat();
        store.store_form(store.base_version(), key, &[vec![&ends[..]], vec![&sources[..]]], &Silent).unwrap();
        drop(store);
        let db = reader(&path);
        match db.verify() {
            // The last form is that of the graph.
            Ok(_) => assert_eq!(sources, [0_u32, 1].map(u32::to_le_bytes).concat()),
            Err(error) => assert!(error.to_string().contains("the form is not that of the graph"), "{error}"),
        }
        // Entries that lead out of the graph are never used.
        let cores = run(&db.view().unwrap(), "kcore");
        assert!(is_whole || format!("{:?}", cores.values().unwrap()).contains("[1, 1, 1]"));
    }
    reader(&path).verify().unwrap();
}

#[test]
fn a_merge_retires_stored_forms() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let db = create(&path, Options::default(), &edges(9, 100, 1500));
    let base = db.snapshots().last().unwrap().number;
    db.prepare(&["lcc"]).unwrap();
    let before = db.view().unwrap();
    // Commits, and a snapshot of them, leave the form to the snapshot of the base.
    db.apply(&[Update::add_edge(1, 2), Update::add_edge(500, 1)]).unwrap();
    let refused = |db: &Database| {
        let error = db.prepare(&["lcc"]).unwrap_err();
        assert!(matches!(error, Error::InvalidInput(_)) && error.to_string().contains("merge first"), "{error}");
    };
    for _ in 0..2 {
        refused(&db);
        assert!(!was_prepared(&db.view().unwrap(), "lcc"));
        assert!(was_prepared(&db.snapshot(base).unwrap(), "lcc") && was_prepared(&before, "lcc"));
        db.verify().unwrap();
        db.checkpoint(None).unwrap();
    }
    db.append(&Changes::default().add_edge(7, 8)).unwrap();
    db.merge().unwrap();
    assert!(files(&path).is_empty() && db.prepared().is_empty());
    // A view from before goes on without the form.
    assert!(!was_prepared(&before, "lcc") && !was_prepared(&db.snapshot(base).unwrap(), "lcc"));
    db.verify().unwrap();
    db.prepare(&["lcc"]).unwrap();
    assert!(was_prepared(&db.view().unwrap(), "lcc"));
    assert!(matches!(reader(&path).prepare(&[]), Err(Error::ReadOnly(_))));
    assert!(db.prepare(&["pagerang"]).unwrap_err().to_string().contains("unknown kernel pagerang"));
}

/// Dropping the snapshot of the base keeps the base, and with it the form.
#[test]
fn a_dropped_snapshot_keeps_the_form_of_its_base() {
    let db = Database::in_memory_with(Options::default(), &session()).unwrap();
    db.apply(&edges(9, 100, 1500)).unwrap();
    db.checkpoint(None).unwrap();
    db.merge().unwrap();
    db.prepare(&["lcc"]).unwrap();
    let base = db.snapshots().last().unwrap().number;
    db.append(&Changes::default().add_edge(7, 8)).unwrap();
    db.drop_snapshot(base).unwrap();
    assert_eq!(db.prepared().len(), 1);
    db.verify().unwrap();
}
