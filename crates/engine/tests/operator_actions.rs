//! Random actions of an operator on the files of a live database: renames, removals, copies, links, rights and
//! truncations. Each is harmless or leads to a clear error. A file that is cut under a map may end the process by
//! SIGBUS, and never a process that reads without maps. No answered commit is lost, and nothing else is changed.
//!
//! `ANDEN_TEST_SCALE=2500` tries a million actions; with `TMPDIR` in memory this is many times as fast. This is the only
//! test of its program, because copies of the program try the actions, and may die.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{
    Direction, Durability, Engine, ErrorKind, GraphOptions, IndexKind, Io, MergeScope, Missing, Result, SnapshotView,
    Update,
};
use anden_graph::Graph;
use anden_graph::property::OwnedValue;
use anden_testkit::{Random, scaled};

/// Environment variables of a copy of this program: the folder, and the cases that it tries.
const FOLDER: &str = "ANDEN_OPERATOR_FOLDER";
const CASES: &str = "ANDEN_OPERATOR_CASES";
const TEST: &str = "random_operator_actions_are_harmless";
const NUM_CASES: u64 = 400;
/// Much longer than a case takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// As short as the number of a process, which a lock file holds.
const OUTSIDE: &str = "not of the database";
/// Bytes of a value that make a file large enough to be mapped.
const LARGE_BYTES: usize = 80 << 10;
const SIGBUS: i32 = 7;
/// Commits in the template. Commit `i` adds the edge from id `i` to `i + 1`.
const NUM_BEFORE: u64 = 6;

fn pool() -> Pool {
    Pool::new(1).unwrap()
}

/// The files in a directory, by name. Links are not followed.
fn files(path: &Path) -> BTreeMap<String, Metadata> {
    let entries = fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap())).collect()
}

/// What changes when a file is written or replaced. To compare contents would take most of the time of a case.
type Stamp = (u64, i64, i64, u64);

fn stamps(path: &Path) -> BTreeMap<String, Stamp> {
    let stamp = |file: &Metadata| (file.ino(), file.mtime(), file.mtime_nsec(), file.len());
    files(path).iter().map(|(name, file)| (name.clone(), stamp(file))).collect()
}

fn copy_all(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for name in files(from).keys() {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

/// A kind of graph.
#[derive(Clone, Copy, Debug)]
enum GraphShape {
    Plain,
    /// A multigraph with properties and an index.
    Full,
}

impl GraphShape {
    fn options(self) -> GraphOptions {
        match self {
            Self::Plain => GraphOptions::default(),
            Self::Full => GraphOptions { multigraph: true, edge_properties: true, ..GraphOptions::default() },
        }
    }

    fn commit(self, db: &Engine, number: u64) -> Result<()> {
        let (source, target) = (100 + number, 101 + number);
        let updates = match self {
            Self::Plain => vec![Update::add_edge(source, target)],
            Self::Full => vec![
                Update::add_edge_with(source, target, [("since", number as i64)]),
                Update::set_vertex(target, "age", number as i64),
                Update::set_vertex(target, "note", "x".repeat(if number == 0 { LARGE_BYTES } else { 0 })),
            ],
        };
        db.apply_with(&updates, Missing::Lenient, Durability::Sync, &pool()).map(drop)
    }

    /// Makes `template`, the state that a killed writer leaves, and `older`, an earlier copy of it.
    fn make(self, folder: &Path) {
        let made = folder.join("made");
        let _ = fs::remove_dir_all(&made);
        let db = Engine::create(&made, self.options()).unwrap();
        db.set_checkpoint_bytes(None);
        for number in 0..NUM_BEFORE {
            self.commit(&db, number).unwrap();
            match number {
                1 => {
                    db.checkpoint(None).unwrap();
                    if matches!(self, Self::Full) {
                        db.create_index("age", IndexKind::Plain, &Silent).unwrap();
                    }
                    db.merge(MergeScope::All, &pool(), &Silent).unwrap();
                }
                2 => drop(db.checkpoint(None).unwrap()),
                3 => {
                    copy_all(&made, &folder.join("older"));
                    db.checkpoint(None).unwrap();
                }
                _ => {}
            }
        }
        copy_all(&made, &folder.join("template"));
        drop(db);
        fs::remove_dir_all(&made).unwrap();
    }
}

/// The number of commits that a view shows. Requires that they are the first ones.
fn num_commits(view: &SnapshotView) -> Result<u64> {
    let mut pairs = Vec::new();
    for vertex in 0..view.vertex_bound() as u32 {
        let _ = view.for_each_fragment(Direction::Out, vertex, |targets| {
            pairs.extend(targets.iter().map(|&target| (u64::from(vertex), u64::from(target))));
            std::ops::ControlFlow::Continue(())
        });
    }
    let found = values(view, pairs.len() as u64)?;
    // What was read of a file that was cut does not count.
    view.check()?;
    pairs.sort_unstable();
    let expected: Vec<_> = (0..pairs.len() as u64).map(|number| (number, number + 1)).collect();
    assert_eq!(pairs, expected, "a wrong answer");
    for (number, found) in found.iter().enumerate() {
        let note = OwnedValue::String("x".repeat(if number == 0 { LARGE_BYTES } else { 0 }));
        assert!(found == &[OwnedValue::I64(number as i64), note], "a wrong value");
    }
    Ok(pairs.len() as u64)
}

/// The values of the targets of the first commits, by commit; none in a graph without properties.
fn values(view: &SnapshotView, num_commits: u64) -> Result<Vec<[OwnedValue; 2]>> {
    let properties = view.properties();
    let schema = properties.schema();
    let (Some(age), Some(note)) = (schema.find("age"), schema.find("note")) else { return Ok(Vec::new()) };
    let value =
        |place, number| -> Result<OwnedValue> { Ok(schema.owned(place, properties.value(place, number as u32 + 1)?)) };
    (0..num_commits).map(|number| Ok([value(age, number)?, value(note, number)?])).collect()
}

/// What an operator does to a file, in the words of the output.
const ACTIONS: [&str; 12] = [
    "rename",
    "rename over another",
    "move away",
    "remove",
    "copy back",
    "move back",
    "copy from another database",
    "chmod",
    "link outside",
    "replace by a link to outside",
    "replace by a symbolic link",
    "truncate",
];

/// The actions after which a file may be shorter. A copy cuts the file before it writes.
const CUTS: [&str; 3] = ["copy back", "copy from another database", "truncate"];

/// A database of a case, and the numbers of its commits.
struct OperatorCase<'a> {
    folder: &'a Path,
    random: Random,
    shape: GraphShape,
    num_answered: u64,
    num_tried: u64,
    /// The file of the action.
    name: String,
}

impl OperatorCase<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join("live").join(name)
    }

    /// A file of the live database.
    fn any_file(&mut self) -> String {
        let names: Vec<String> = files(&self.path("live")).into_keys().collect();
        names[self.random.index(names.len())].clone()
    }

    /// The largest file of those that may be mapped. Small ones are not.
    fn largest_data_file(&self) -> String {
        let is_data = |name: &str| !name.starts_with("wal-") && name != "RESERVE";
        let files = files(&self.path("live")).into_iter().filter(|(name, _)| is_data(name));
        files.max_by_key(|(_, file)| file.len()).unwrap().0
    }

    /// Acts on a file, after it says what it does. Failures of the action itself are left aside.
    fn act(&mut self, number: u64, is_mapped: bool) {
        self.name = self.any_file();
        let action = ACTIONS[self.random.index(ACTIONS.len())];
        if action == "truncate" && self.random.below(2) == 0 {
            self.name = self.largest_data_file();
        }
        let map = if is_mapped { "map" } else { "pread" };
        println!("case {number}: {:?}, {map}, {action}, {}", self.shape, self.name);
        let (file, other) = (self.file(&self.name), self.any_file());
        if CUTS.contains(&action) {
            // Put back after a SIGBUS.
            let _ = fs::copy(&file, self.path("saved"));
        }
        let _ = match action {
            "rename" => fs::rename(&file, self.file("renamed")),
            "rename over another" => {
                // The other file is lost too.
                if other.starts_with("wal-") || other == "LOG" {
                    self.name.clone_from(&other);
                }
                fs::rename(&file, self.file(&other))
            }
            "move away" => fs::rename(&file, self.path("away")),
            "remove" => fs::remove_file(&file),
            "copy back" => fs::copy(self.path("older").join(&self.name), &file).map(drop),
            "move back" => {
                let copied = fs::copy(self.path("older").join(&self.name), self.path("away"));
                copied.and_then(|_| fs::rename(self.path("away"), &file))
            }
            "copy from another database" => fs::copy(self.path("other").join(&self.name), &file).map(drop),
            "chmod" => {
                let mode = [0, 0o444, 0o777][self.random.index(3)];
                fs::set_permissions(&file, fs::Permissions::from_mode(mode))
            }
            "link outside" => fs::hard_link(&file, self.path("away")),
            "replace by a link to outside" => {
                fs::remove_file(&file).and_then(|()| fs::hard_link(self.path("outside"), &file))
            }
            "replace by a symbolic link" => fs::remove_file(&file).and_then(|()| symlink(self.path("outside"), &file)),
            _ => self.truncate(&file),
        };
    }

    fn truncate(&mut self, file: &Path) -> std::io::Result<()> {
        let file = fs::OpenOptions::new().write(true).open(file)?;
        let len = self.random.below_u64(file.metadata()?.len() + 1);
        file.set_len(len)
    }

    fn commit(&mut self, db: &Engine) {
        let number = self.num_tried;
        // After an error the numbers have a gap, so no further commit is tried.
        if self.num_answered < self.num_tried {
            return;
        }
        self.num_tried += 1;
        if self.check(self.shape.commit(db, number)).is_some() {
            self.num_answered += 1;
            println!("answered {}", self.num_answered);
        }
    }

    /// The value of a call that succeeded. An error must be one of the files.
    fn check<T>(&self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let is_clear = error.kind() != ErrorKind::Internal && error.to_string().len() > 10;
                assert!(is_clear, "{:?}: {error}", error.kind());
                println!("error: {error}");
                None
            }
        }
    }

    /// Reads all edges. The number of commits is at least `least`.
    fn read(&self, db: &Engine, least: u64) {
        let view = self.check(db.view());
        if let Some(num) = view.and_then(|view| self.check(num_commits(&view))) {
            assert!((least..=self.num_tried).contains(&num), "{num} commits, {least} to {}", self.num_tried);
        }
    }

    /// One call of a writer or a reader.
    fn call(&mut self, db: &Engine) {
        if db.is_read_only() {
            match self.random.below(3) {
                0 => drop(self.check(db.refresh())),
                1 => drop(self.check(db.verify(&pool()))),
                _ => self.read(db, 0),
            }
            return;
        }
        match self.random.below(8) {
            0..3 => self.commit(db),
            3 => drop(self.check(db.checkpoint(None))),
            4 => drop(self.check(db.merge(MergeScope::All, &pool(), &Silent))),
            5 => drop(self.check(db.merge(MergeScope::Newest(2), &pool(), &Silent))),
            6 => drop(self.check(db.verify(&pool()))),
            _ => self.read(db, self.num_answered),
        }
    }

    /// The next processes open the database, to read and to write.
    fn reopen(&self) {
        // The end of the WAL is certified up to the mark only, and a file of the WAL was changed.
        let is_log = self.name.starts_with("wal-") || self.name == "LOG";
        let least = if is_log { 0 } else { self.num_answered };
        let opens: [fn(&Path) -> Result<Engine>; 2] =
            [|path| Engine::open_read_only_with(path, Io::Pread), |path| Engine::open(path)];
        for open in opens {
            if let Some(db) = self.check(open(&self.path("live"))) {
                self.read(&db, least);
                self.check(db.close());
            }
        }
    }

    /// Tries a case. Without maps, only a reader that uses none has the database open.
    fn run(&mut self, number: u64) {
        println!("begin");
        copy_all(&self.path("template"), &self.path("live"));
        let others = ["template", "older", "other"].map(|name| stamps(&self.path(name)));
        let is_mapped = self.random.below(4) > 0;
        let db = match self.random.below(4) {
            _ if !is_mapped => Engine::open_read_only_with(&self.path("live"), Io::Pread),
            0 => Engine::open_read_only(&self.path("live")),
            _ => Engine::open(&self.path("live")),
        };
        let db = db.unwrap();
        db.set_checkpoint_bytes(None);
        (0..self.random.below(3)).for_each(|_| self.call(&db));
        self.act(number, is_mapped);
        (0..1 + self.random.below(3)).for_each(|_| self.call(&db));
        // The writer must not have written through a link, nor elsewhere.
        self.check(db.close());
        self.reopen();
        assert_eq!(fs::read_to_string(self.path("outside")).unwrap(), OUTSIDE);
        for (name, before) in ["template", "older", "other"].iter().zip(&others) {
            assert_eq!(stamps(&self.path(name)), *before, "{name} was changed");
        }
        for name in ["away", "saved", "live"] {
            let path = self.path(name);
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
        let names: Vec<String> = files(self.folder).into_keys().collect();
        assert_eq!(names, ["older", "other", "outside", "template"]);
    }
}

/// Tries these cases. The kind of graph changes in the middle.
fn try_cases(folder: &Path, cases: &str) {
    let (first, end) = cases.split_once("..").unwrap();
    let (first, end): (u64, u64) = (first.parse().unwrap(), end.parse().unwrap());
    let shape_of = |number: u64| if (number / 16).is_multiple_of(2) { GraphShape::Plain } else { GraphShape::Full };
    for number in first..end {
        if number == first || number.is_multiple_of(16) {
            shape_of(number).make(folder);
        }
        let random = Random::new(number);
        let shape = shape_of(number);
        let (num_answered, num_tried, name) = (NUM_BEFORE, NUM_BEFORE, String::new());
        OperatorCase { folder, random, shape, num_answered, num_tried, name }.run(number);
    }
}

/// What a copy of this program said before its end.
struct Ended {
    status: ExitStatus,
    /// The line of the last case.
    case: String,
    num_cases: u64,
    num_answered: u64,
    /// The lines since then.
    rest: String,
}

/// Runs a copy of this program for some cases. No call may wait.
fn run_copy(folder: &Path, cases: std::ops::Range<u64>) -> Ended {
    let program = std::env::current_exe().unwrap();
    // A SIGBUS is expected, so no core is dumped.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -c 0; exec \"$0\" \"$@\""]).arg(program).args(["--exact", TEST, "--nocapture"]);
    command.env(FOLDER, folder).env(CASES, format!("{}..{}", cases.start, cases.end));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
    let (lines, (sender, receiver)) = (BufReader::new(child.stdout.take().unwrap()).lines(), mpsc::channel());
    let reading = std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(sender.send(line))));
    let (mut case, mut rest, mut num_cases, mut num_answered) = (String::new(), String::new(), 0, NUM_BEFORE);
    loop {
        match receiver.recv_timeout(LIMIT) {
            Ok(line) if line.starts_with("case ") => {
                (case, rest, num_cases) = (line, String::new(), num_cases + 1);
            }
            Ok(line) => {
                if line == "begin" {
                    num_answered = NUM_BEFORE;
                }
                if let Some(num) = line.strip_prefix("answered ") {
                    num_answered = num.parse().unwrap();
                }
                rest += &format!("{line}\n");
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                child.kill().unwrap();
                panic!("a call waits: {case}\n{rest}");
            }
        }
    }
    reading.join().unwrap();
    Ended { status: child.wait().unwrap(), case, num_cases, num_answered, rest }
}

/// After a SIGBUS, the database opens cleanly once the file is whole again.
fn reopen_after_sigbus(folder: &Path, ended: &Ended) {
    let name = ended.case.rsplit(", ").next().unwrap();
    let file = folder.join("live").join(name);
    // A merge may have retired the file.
    if file.exists() {
        fs::copy(folder.join("saved"), &file).unwrap();
    }
    let is_log = name.starts_with("wal-") || name == "LOG";
    let db = Engine::open(&folder.join("live")).unwrap_or_else(|error| panic!("{}: {error}", ended.case));
    let num = num_commits(&db.view().unwrap()).unwrap();
    assert!(num >= ended.num_answered || is_log, "{}: {num} of {}", ended.case, ended.num_answered);
    db.verify(&pool()).unwrap();
    db.close().unwrap();
    for name in ["away", "saved"] {
        let _ = fs::remove_file(folder.join(name));
    }
    fs::remove_dir_all(folder.join("live")).unwrap();
}

/// Tries these cases in a folder of their own. Returns the number of copies that ended by SIGBUS.
fn try_all(cases: std::ops::Range<u64>) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("outside"), OUTSIDE).unwrap();
    let other = Engine::create(&folder.path().join("other"), GraphOptions::default()).unwrap();
    GraphShape::Plain.commit(&other, 70).unwrap();
    other.checkpoint(None).unwrap();
    other.close().unwrap();
    let (mut next, mut num_signals) = (cases.start, 0);
    while next < cases.end {
        let ended = run_copy(folder.path(), next..cases.end);
        assert!(ended.num_cases > 0, "{}", ended.rest);
        next += ended.num_cases;
        if ended.status.success() {
            continue;
        }
        let is_cut = CUTS.iter().any(|action| ended.case.contains(&format!(", map, {action}, ")));
        let is_expected = is_cut && ended.status.signal() == Some(SIGBUS);
        assert!(is_expected, "{} ended with {}\n{}", ended.case, ended.status, ended.rest);
        num_signals += 1;
        reopen_after_sigbus(folder.path(), &ended);
    }
    assert_eq!(next, cases.end);
    num_signals
}

#[test]
fn random_operator_actions_are_harmless() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return try_cases(Path::new(&folder), &std::env::var(CASES).unwrap());
    }
    let end = scaled(NUM_CASES);
    let num_parts = std::thread::available_parallelism().unwrap().get() as u64;
    let border = |part: u64| part * end / num_parts;
    let num_signals: u64 = std::thread::scope(|scope| {
        let parts = (0..num_parts).map(|part| scope.spawn(move || try_all(border(part)..border(part + 1))));
        let parts: Vec<_> = parts.collect();
        parts.into_iter().map(|part| part.join().unwrap()).sum()
    });
    println!("{end} actions, {num_signals} ended by SIGBUS");
    assert!(num_signals > 0, "no file was mapped");
}
