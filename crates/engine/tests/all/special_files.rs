//! Links, FIFOs, devices, directories and sockets in the place of database files. An error names the file and its kind,
//! nothing outside the directory is read or changed, and no call waits for a peer.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{AppendOptions, Changes, Engine, GraphOptions, MergeScope, Missing, Retention, Update};
use anden_graph::Graph;

/// Environment variable that makes a copy of this program try everything in this folder.
const TRY: &str = "ANDEN_SPECIAL_FILES";
const TEST: &str = "special_files::no_special_file_is_followed_or_waited_for";
/// Much longer than a case takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
const OUTSIDE: &str = "not of the database";

type Kind = (&'static str, fn(&Path, &Path));

/// The kinds of files, in the words of the errors.
const KINDS: [Kind; 6] = [
    ("a symbolic link", |path, outside| symlink(outside, path).unwrap()),
    ("a symbolic link", |path, outside| symlink(outside.with_extension("none"), path).unwrap()),
    ("a symbolic link", |path, _| symlink("/dev/zero", path).unwrap()),
    ("a FIFO", |path, _| assert!(Command::new("mkfifo").arg(path).status().unwrap().success())),
    ("a directory", |path, _| fs::create_dir(path).unwrap()),
    ("a socket", |path, _| drop(UnixListener::bind(path).unwrap())),
];

fn pool() -> Pool {
    Pool::new(1).unwrap()
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

/// A database with a file of each kind except rows of edge properties, as a killed writer leaves it.
fn with_a_log(path: &Path, template: &Path) {
    let writer = Engine::create(path, GraphOptions::default()).unwrap();
    let append = |key: u64, merge: bool| {
        let changes = Changes {
            added: vec![(key.into(), (key + 1).into(), None)],
            vertex_properties: vec![(key.into(), "age".into(), key.cast_signed().into())],
            ..Changes::default()
        };
        writer.append_changes(&changes, &AppendOptions::default(), &pool(), &Silent).unwrap();
        if merge {
            writer.merge(MergeScope::All, &pool(), &Silent).unwrap();
        }
    };
    append(1, true);
    append(3, false);
    writer.apply(&[Update::add_edge(5, 6)], Missing::Lenient, &pool()).unwrap();
    copy(path, template);
}

/// A database with edge properties, for files with rows.
fn with_rows(path: &Path, template: &Path) {
    let options = GraphOptions { edge_properties: true, ..GraphOptions::default() };
    let writer = Engine::create(path, options).unwrap();
    let changes = Changes {
        added: vec![(1.into(), 2.into(), None)],
        edge_properties: vec![(0, "since".into(), 7.into())],
        ..Changes::default()
    };
    writer.append_changes(&changes, &AppendOptions::default(), &pool(), &Silent).unwrap();
    copy(path, template);
}

/// The names in a database directory, and names that a writer would create.
fn places(template: &Path) -> Vec<String> {
    let new = ["tmp-MANIFEST", "tmp-delta-000099", "delta-000099", "tmp-scratch-1", "wal-000099", "LOG"];
    let mut places = names(template);
    places.extend(new.map(str::to_owned));
    places.sort();
    places.dedup();
    places
}

/// Whether a reader opens the name.
fn is_read(name: &str) -> bool {
    !["LOCK", "RESERVE", "delta-000099"].contains(&name) && !name.starts_with("tmp-")
}

fn try_everything(folder: &Path) {
    let (db, outside) = (folder.join("db"), folder.join("outside"));
    for (make, has_log) in [(with_a_log as fn(&Path, &Path), true), (with_rows, false)] {
        let template = folder.join("template");
        let _ = fs::remove_dir_all(folder.join("made"));
        make(&folder.join("made"), &template);
        let num_edges = if has_log { 3 } else { 1 };
        for name in places(&template).iter().filter(|name| has_log || !(name.starts_with("wal") || *name == "LOG")) {
            for (found, put) in KINDS {
                println!("{name}: {found}");
                let refused = |what: &str, result: anden_engine::Result<()>| {
                    let error = result.unwrap_err().to_string();
                    assert!(error.contains(found) && error.contains(name.as_str()), "{what}, {name}: {error}");
                };
                let open = |what: &str, is_met: bool, open: &dyn Fn() -> anden_engine::Result<Engine>| match open() {
                    Ok(database) if !is_met => assert_eq!(database.view().unwrap().num_edges(), num_edges, "{name}"),
                    opened => refused(what, opened.map(drop)),
                };
                copy(&template, &db);
                let reader = Engine::open_read_only(&db).unwrap();
                let _ = fs::remove_file(db.join(name));
                put(&db.join(name), &outside);
                let before = fs::symlink_metadata(db.join(name)).unwrap().file_type();
                open("a reader", is_read(name), &|| Engine::open_read_only(&db));
                open("a verifier", is_read(name), &|| {
                    let database = Engine::open_read_only(&db)?;
                    database.verify(&pool())?;
                    Ok(database)
                });
                let is_met_again = name == "MANIFEST" || name == "LOG" || name.starts_with("wal-");
                match reader.refresh() {
                    Ok(_) if !is_met_again => {}
                    refreshed => refused("a refresh", refreshed.map(drop)),
                }
                assert_eq!(reader.view().unwrap().num_edges(), num_edges, "{name}");
                // A writer does without a reserve.
                open("a writer", name != "RESERVE", &|| Engine::open(&db));
                let after = fs::symlink_metadata(db.join(name)).unwrap().file_type();
                assert_eq!((after.is_fifo(), after), (before.is_fifo(), before), "{name} is {found} still");
                assert_eq!(fs::read_to_string(&outside).unwrap(), OUTSIDE, "{name}");
                assert!(!outside.with_extension("none").exists(), "{name}");
                assert_eq!(names(folder), ["db", "made", "outside", "template"], "{name}");
            }
        }
    }
}

#[test]
fn no_special_file_is_followed_or_waited_for() {
    if let Some(folder) = std::env::var_os(TRY) {
        return try_everything(&PathBuf::from(folder));
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("outside"), OUTSIDE).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", TEST, "--nocapture"]).env(TRY, folder.path());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
    let (lines, (sender, receiver)) = (BufReader::new(child.stdout.take().unwrap()).lines(), mpsc::channel());
    let reading = std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(sender.send(line))));
    let (mut last, mut num_cases) = (String::new(), 0);
    loop {
        match receiver.recv_timeout(LIMIT) {
            Ok(line) => {
                num_cases += u32::from(line.contains(": a "));
                last = line;
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                child.kill().unwrap();
                panic!("a call waits: {last}");
            }
        }
    }
    reading.join().unwrap();
    assert!(child.wait().unwrap().success(), "{last}");
    assert!(num_cases > 150, "{num_cases} cases");
}

/// Retention that cannot ask for leases drops nothing, and says so.
#[test]
fn retention_needs_the_file_of_leases() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("db");
    let database = Engine::create(&db, GraphOptions::default()).unwrap();
    database.checkpoint(None).unwrap();
    fs::create_dir(db.join("LEASES")).unwrap();
    let refused = database.retain(Retention::Last(1)).unwrap_err().to_string();
    assert!(refused.contains("LEASES"), "{refused}");
    assert_eq!((database.snapshots().len(), database.retention()), (2, Retention::All));
    fs::remove_dir(db.join("LEASES")).unwrap();
    assert_eq!(database.retain(Retention::Last(1)).unwrap(), [1]);
}
