//! A database in memory behaves as one in files, and makes no file.
//!
//! The sweep runs on files here, and in memory in a process of its own. The current directory and the directory for
//! temporary files of that process are empty and must stay so. The process must not write to any disk.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anden::error::NotFound;
use anden::export::{ExportFormat, Output};
use anden::job::Sources;
use anden::load::{InputPath, WantedProperties};
use anden::{
    AppendOptions, Changes, Database, Error, Job, KeyScheme, LoadOptions, Neighbors, Options, Parameters, Retention,
    Session, Update, View, WeightType,
};
use anden_testkit::Random;

/// Environment variable with the folder of the inputs, for that process.
const INPUTS: &str = "ANDEN_IN_MEMORY_INPUTS";
/// Marks the begin and the end of the output of that process.
const MARK: &str = "\n=== sweep ===\n";

/// The two graphs of the sweep: one with weights, which takes updates, and one with edge properties.
fn kinds() -> [Options; 2] {
    let keys = KeyScheme::String;
    [
        Options { keys, weight_type: Some(WeightType::U32), ..Options::default() },
        Options { keys, edge_properties: true, ..Options::default() },
    ]
}

fn write_inputs(folder: &Path) {
    let mut random = Random::new(5);
    let mut lines = |count: usize, start: &str, end: &str| -> String {
        let mut line = || format!("{start}v{} v{} {}{end}\n", random.below(60), random.below(60), 1 + random.below(9));
        (0..count).map(|_| line()).collect()
    };
    let (base, more) = (lines(400, "", ""), lines(50, "", ""));
    let mut updates = lines(80, "+ ", "");
    updates.push_str("+ v3 v61 4\n- v1 v2\n");
    for (name, text) in [("base", &base), ("more", &more), ("updates", &updates)] {
        std::fs::write(folder.join(format!("{name}.txt")), text).unwrap();
    }
    std::fs::write(folder.join("gone.txt"), "v5 v6\nv7\n").unwrap();
    std::fs::write(folder.join("vertices.csv"), "id,size\nv1,3\nv2,4\nalone,5\n").unwrap();
}

fn load_options(graph: Options, folder: &Path) -> LoadOptions {
    // Little memory for sorting, so that edges go to scratch files if there are files. The order of rows depends on it.
    let mut options = LoadOptions { graph, sort_memory: Some(1000), ..LoadOptions::default() };
    options.source.vertices = vec![folder.join("vertices.csv").into()];
    if graph.edge_properties {
        options.duplicates = anden::load::Duplicates::Last;
        options.source.columns = Some(["u", "v", "weight"].map(String::from).to_vec());
        options.source.edge_properties = WantedProperties::All;
    }
    options
}

/// Logs all answers of a view.
fn look(log: &mut String, view: &View) {
    let text = |write: &dyn Fn(&mut Output<'_>) -> Result<(), Error>| {
        let mut bytes = Vec::new();
        write(&mut Output::new(Path::new("-"), &mut bytes)).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    writeln!(log, "{}: {} vertices, {} edges", view.name(), view.num_vertices(), view.num_edges()).unwrap();
    for format in [ExportFormat::CSV, ExportFormat::GRAPHML, ExportFormat::PARQUET] {
        log.push_str(&text(&|output| view.export(format, output).map(|_| ())));
    }
    log.push_str(&text(&|output| view.export_vertices(ExportFormat::CSV, output)));
    let weighted = if view.has_edge_properties() { view.with_weight("weight").unwrap() } else { view.clone() };
    for kernel in Job::table() {
        let source = if kernel.needs == Sources::One { vec!["v1".into()] } else { Vec::new() };
        let parameters = Parameters { source, values: true, ..Parameters::default() };
        let output = weighted.run(&Job::new(kernel.name, parameters).unwrap()).unwrap();
        output.check(&weighted).unwrap_or_else(|error| panic!("{} on {}: {error}", kernel.name, view.name()));
        writeln!(log, "{}: {:?}", kernel.name, output.summary).unwrap();
    }
    writeln!(log, "{:?}", view.neighbors("v1", Neighbors::Both).unwrap()).unwrap();
    writeln!(log, "{:?}", view.khop("v1", 2).unwrap()).unwrap();
    writeln!(log, "{:?}", view.path("v1", "v9").unwrap()).unwrap();
    writeln!(log, "{:?}", view.degree_statistics(Neighbors::Out).unwrap()).unwrap();
    writeln!(log, "{:?}", view.fragments("v1").unwrap()).unwrap();
}

/// Applies all operations to a database. Returns the log of its views in between.
fn sweep(db: &Database, folder: &Path) -> String {
    let mut log = String::new();
    let input = |name: &str| InputPath::File(folder.join(name));
    let is_live = db.options().weight_type.is_some();
    look(&mut log, &db.view().unwrap());
    let mut options =
        AppendOptions { remove: vec![InputPath::File(folder.join("gone.txt"))], ..AppendOptions::default() };
    if !is_live {
        options.source.columns = Some(["u", "v", "weight"].map(String::from).to_vec());
        options.source.edge_properties = WantedProperties::All;
    }
    db.append_files(&[input("more.txt")], &options).unwrap();
    look(&mut log, &db.view().unwrap());
    let edge = |changes: Changes, u: &str, v: &str| match is_live {
        true => changes.add_weighted_edge(u, v, 2),
        false => changes.add_edge(u, v).with("weight", 2),
    };
    let changes = edge(Changes::default(), "v1", "new").remove_vertex("v8").set_vertex("v1", "size", 9_i64);
    db.append(&changes.named("named")).unwrap();
    let held = db.view().unwrap();
    if is_live {
        db.checkpoint(Some("checkpoint")).unwrap();
        db.apply(&[Update::add_weighted_edge("v1", "v2", 3), Update::remove_edge("v1", "new")]).unwrap();
        look(&mut log, &db.view().unwrap());
        db.checkpoint(None).unwrap();
        db.apply_file(&input("updates.txt"), &anden::changes::ApplyOptions { batch: 30, ..Default::default() }, |_| {
            Ok(())
        })
        .unwrap();
        db.checkpoint(None).unwrap();
    }
    let numbers: Vec<u32> = db.snapshots().iter().map(|info| info.number).collect();
    let last = numbers[numbers.len() - 1];
    look(&mut log, &db.window(2..=last).unwrap());
    let diff = db.diff(1, last).unwrap();
    writeln!(log, "{} and {}", diff.num_added().unwrap(), diff.num_removed().unwrap()).unwrap();
    writeln!(log, "{:?}", db.merge_newest(2).unwrap()).unwrap();
    db.merge().unwrap();
    look(&mut log, &db.view().unwrap());
    look(&mut log, &db.snapshot(1).unwrap());
    db.drop_snapshot(2).unwrap();
    let window = db.sliding_window(2).unwrap();
    for i in 0..12 {
        let view = window.push(&edge(Changes::default(), &format!("v{i}"), "v9").remove_edge("v1", "v9")).unwrap();
        writeln!(log, "{}: {:?}", view.name(), view.neighbors("v9", Neighbors::In).unwrap()).unwrap();
    }
    writeln!(log, "{:?}", db.retain(Retention::Last(1)).unwrap()).unwrap();
    db.merge().unwrap();
    look(&mut log, &db.view().unwrap());
    look(&mut log, &held);
    let names: Vec<_> = db.snapshots().into_iter().map(|info| (info.number, info.name, info.num_edges)).collect();
    writeln!(log, "{names:?} {:?}", db.verify().unwrap()).unwrap();
    writeln!(log, "{:?}", db.stats().storage.files).unwrap();
    log
}

/// The bytes that this process has written to disks.
fn written() -> String {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    io.lines().find(|line| line.starts_with("write_bytes")).unwrap_or_default().to_owned()
}

/// The sweep in memory, in the process of its own.
fn in_memory(folder: &Path) -> String {
    let session = Session::new(2).unwrap();
    let before = written();
    let mut log = String::new();
    for graph in kinds() {
        let options = load_options(graph, folder);
        let (db, _) =
            Database::load_in_memory(&[InputPath::File(folder.join("base.txt"))], &options, &session).unwrap();
        log.push_str(&sweep(&db, folder));
    }
    assert_eq!(written(), before, "something was written to a disk");
    log
}

#[test]
fn the_same_as_in_files_without_a_file() {
    if let Some(folder) = std::env::var_os(INPUTS) {
        println!("{MARK}{}{MARK}", in_memory(Path::new(&folder)));
        return;
    }
    let (inputs, nowhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_inputs(inputs.path());
    let mut expected = String::new();
    for (place, graph) in kinds().into_iter().enumerate() {
        let (path, session) = (inputs.path().join(format!("{place}.anden")), Session::new(2).unwrap());
        let input = [InputPath::File(inputs.path().join("base.txt"))];
        let (db, _) = Database::load(path, &input, &load_options(graph, inputs.path()), &session).unwrap();
        expected.push_str(&sweep(&db, inputs.path()));
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "the_same_as_in_files_without_a_file", "--nocapture"]);
    child.current_dir(&nowhere).env("TMPDIR", nowhere.path()).env(INPUTS, inputs.path());
    let output = child.output().unwrap();
    let (found, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{found}\n{errors}");
    let found = found.split(MARK).nth(1).unwrap_or_else(|| panic!("{found}"));
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
    assert_eq!(std::fs::read_dir(nowhere.path()).unwrap().count(), 0, "there are files");
}

#[test]
fn it_is_gone_with_its_last_view() {
    let db = Database::in_memory(Options::default()).unwrap();
    db.append(&Changes::default().add_edge(1, 2)).unwrap();
    let other = Database::in_memory(Options::default()).unwrap();
    assert_eq!((db.view().unwrap().num_edges(), other.view().unwrap().num_edges()), (1, 0));
    let view = db.view().unwrap();
    drop(db);
    assert!(view.has_edge(1, 2).unwrap());
}

#[test]
fn errors_say_what_they_are_about() {
    let db = Database::in_memory(Options::default()).unwrap();
    let text = db.append(&Changes::default().add_edge("a", "b")).unwrap_err().to_string();
    assert!(text.contains('a') && !text.contains('/'), "{text}");
    let both = Options { ordered: true, graph_kind: anden::GraphKind::Undirected, ..Options::default() };
    let refused = Database::in_memory(both).unwrap_err();
    assert!(matches!(&refused, Error::InvalidInput(text) if text.as_str().contains("ordered")), "{refused}");
    let session = Session::new(1).unwrap();
    let missing = [InputPath::File("nowhere.txt".into())];
    let error = Database::load_in_memory(&missing, &LoadOptions::default(), &session).unwrap_err();
    assert!(
        matches!(&error, Error::NotFound { what: NotFound::File(path), .. } if path.ends_with("nowhere.txt")),
        "{error}"
    );
}
