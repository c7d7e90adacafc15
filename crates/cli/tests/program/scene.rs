//! A folder for each test, and the program run inside it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anden::{Changes, Database, LoadOptions, Retention, Session};
use anden_snapshots::{DatabaseId, Identity};
use serde_json::Value;

/// Edges between 1..4 with weights, a second component 5 → 6.
pub const SMALL: &str = "\
# source target weight
1 2 0.5
1 3 4
2 3 1
3 4 1
4 2 2
5 6 1
";

/// A temporary folder, removed on drop.
pub struct Scene {
    folder: tempfile::TempDir,
}

/// The result of a run of the program.
#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
    command: String,
}

impl Scene {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A scene with the database `db` of [`SMALL`], loaded with `options` and without notes.
    pub fn with_small(options: &[&str]) -> Self {
        let scene = Self::new();
        scene.write("small.txt", SMALL);
        scene.anden(&[&["load", "db", "small.txt", "--quiet"], options].concat()).succeeded();
        scene
    }

    /// A scene with a database `db` of four snapshots of the year 2001. Its rule of thirty days kept all of them then.
    pub fn with_old_history() -> Self {
        let scene = Self::new();
        scene.write("small.txt", SMALL);
        let identity = Some(Identity { id: DatabaseId([7; 16]), unix_time: Some(1_000_000_000) });
        let options = LoadOptions { identity, ..LoadOptions::default() };
        let session = Session::new(1).unwrap();
        let inputs = [scene.path("small.txt").into()];
        let (database, _) = Database::load(scene.path("db"), &inputs, &options, &session).unwrap();
        for key in 1..4 {
            database.append(&Changes::default().add_edge(key, key + 10)).unwrap();
        }
        assert!(database.retain(Retention::Days(30)).unwrap().is_empty());
        database.close().unwrap();
        scene
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The names in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        self.names_in("")
    }

    /// The names in a subfolder, sorted.
    pub fn names_in(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path().join(folder)).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The program with these arguments, in the folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anden"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub fn anden(&self, arguments: &[&str]) -> Ran {
        self.anden_with_input(arguments, b"")
    }

    /// Runs the program with `input` on standard input.
    pub fn anden_with_input(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let input_file = self.folder.path().join(".stdin");
        std::fs::write(&input_file, input).unwrap();
        let output = self.command(arguments).stdin(std::fs::File::open(&input_file).unwrap()).output().unwrap();
        std::fs::remove_file(&input_file).unwrap();
        Ran::new(output, arguments)
    }

    /// Runs the program with this many bytes of addresses (`ulimit -v`), beside those of its executable file.
    pub fn anden_within(&self, num_bytes: u64, arguments: &[&str]) -> Ran {
        let program = env!("CARGO_BIN_EXE_anden");
        let num_kib = (std::fs::metadata(program).unwrap().len() + num_bytes) / 1024;
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -v {num_kib}; exec \"$0\" \"$@\""), program]).args(arguments);
        Ran::new(shell.current_dir(self.folder.path()).stdin(Stdio::null()).output().unwrap(), arguments)
    }

    /// Runs the program with `--json`. Returns its object.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.anden(&[arguments, &["--json"]].concat()).succeeded();
        let lines = ran.stdout.lines().count();
        assert_eq!(lines, 1, "one object and nothing else: {ran:?}");
        serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {ran:?}"))
    }
}

impl Ran {
    fn new(output: Output, arguments: &[&str]) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            command: arguments.join(" "),
        }
    }

    /// Requires status 0 and an empty standard error.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!((self.status, self.stderr.as_str()), (0, ""), "anden {}", self.command);
        self
    }

    /// Requires status 1, an empty standard output, and one line on standard error that begins with `anden: ` and
    /// contains all `parts`.
    #[track_caller]
    pub fn failed(self, parts: &[&str]) -> Self {
        assert_eq!((self.status, self.stdout.as_str()), (1, ""), "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "one line: {self:?}");
        self.complains(parts)
    }

    /// Requires status 2 and all `parts` on standard error.
    #[track_caller]
    pub fn refused(self, parts: &[&str]) -> Self {
        assert_eq!((self.status, self.stdout.as_str()), (2, ""), "{self:?}");
        self.complains(parts)
    }

    #[track_caller]
    fn complains(self, parts: &[&str]) -> Self {
        assert!(self.stderr.starts_with("anden: "), "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not in {self:?}");
        }
        self
    }

    pub fn lines(&self) -> Vec<&str> {
        self.stdout.lines().collect()
    }
}

/// The keys of a JSON object, in order.
pub fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Files below a folder.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}
