//! Kernels with less memory than the graph takes. These tests need the right to limit memory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anden_testkit::memory_group::MemoryGroup;
use anden_testkit::{evict, skipped};

use crate::writer::anden;

pub fn run(command: &mut Command) -> String {
    let ended = command.output().unwrap();
    assert!(ended.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap()
}

/// Parses `key value` lines of all vertices.
fn values(text: &str) -> Vec<(u64, f64)> {
    let pairs = text.lines().map(|line| line.split_once(' ').unwrap());
    pairs.map(|(key, value)| (key.parse().unwrap(), value.parse().unwrap())).collect()
}

/// Serializes tests, because a process has one group.
pub fn one_group() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A graph with lists several times as large as the memory for them.
struct Scene {
    folder: tempfile::TempDir,
    database: PathBuf,
    files: Vec<PathBuf>,
    num_bytes: u64,
    /// A vertex of the largest component.
    source: String,
    /// Holds the only group of the process.
    _one: MutexGuard<'static, ()>,
}

impl Scene {
    fn new(generate: &[&str], load: &[&str]) -> Self {
        let one = one_group();
        // On a disk: the folder for temporary files may be in memory.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let name = if load.contains(&"--weights") { "graph.wsg" } else { "graph.sg" };
        let (input, database) = (folder.path().join(name), folder.path().join("db"));
        run(anden().args(["generate", "rmat", "--quiet"]).args(generate).arg("-o").arg(&input));
        run(anden().args(["load", "--ids", "dense", "--quiet"]).args(load).arg(&database).arg(&input));
        let labels = run(anden().arg("run").arg(&database).args(["wcc", "--output", "-", "--quiet"]));
        let mut sizes = std::collections::HashMap::new();
        labels.lines().for_each(|line| *sizes.entry(line.rsplit(' ').next().unwrap()).or_insert(0) += 1);
        let source = sizes.into_iter().max_by_key(|&(_, size)| size).unwrap().0.to_owned();
        let mut scene = Self { folder, database, files: Vec::new(), num_bytes: 0, source, _one: one };
        scene.look();
        scene
    }

    /// Lists the current files.
    fn look(&mut self) {
        let files = std::fs::read_dir(&self.database).unwrap();
        self.files = files.map(|entry| entry.unwrap().path()).collect();
        self.num_bytes = self.files.iter().map(|file| file.metadata().unwrap().len()).sum();
    }

    /// Runs a kernel with everything in memory and with a part. Compares the results, and returns the prefetch
    /// statistics.
    fn compare(&self, kernel: &[&str], group: &MemoryGroup) -> serde_json::Value {
        let arguments = |command: &mut Command, output: &Path| {
            command.arg("run").arg(&self.database).args(kernel).args(["--json", "--quiet", "--output"]).arg(output);
        };
        let [whole, part] = ["whole", "part"].map(|name| self.folder.path().join(name));
        let mut command = anden();
        arguments(&mut command, &whole);
        run(&mut command);
        self.files.iter().for_each(|file| evict(file).unwrap());
        // The shell joins the group first, so that all memory of the program counts there.
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(group.members()).arg(env!("CARGO_BIN_EXE_anden"));
        arguments(&mut command, &part);
        let report: serde_json::Value = serde_json::from_str(&run(&mut command)).unwrap();
        let [expected, found] = [&whole, &part].map(|path| values(&std::fs::read_to_string(path).unwrap()));
        assert_eq!(found.len(), expected.len(), "{kernel:?}");
        for (found, expected) in found.iter().zip(&expected) {
            let is_near = found.1 == expected.1 || (found.1 - expected.1).abs() <= 1e-9 * expected.1.abs();
            assert!(found.0 == expected.0 && is_near, "{kernel:?}: {found:?}, {expected:?} was expected");
        }
        println!("pressure: {kernel:?} of {} bytes: {}", self.num_bytes, report["prefetch"]);
        report["prefetch"]["policies"].clone()
    }
}

/// A control group with `num_bytes` of memory; `None` if this process may not make one.
fn group_of(num_bytes: u64) -> Option<MemoryGroup> {
    let group = MemoryGroup::new(num_bytes);
    if let Err(error) = &group {
        skipped(format!("little memory needs the right to limit it: {error:#}"));
    }
    group.ok()
}

/// A counter of the prefetch statistics.
fn count(prefetch: &serde_json::Value, policy: &str, name: &str) -> u64 {
    prefetch[policy][name].as_u64().unwrap_or(0)
}

#[test]
fn results_match_with_a_quarter_in_memory() {
    let scene = Scene::new(&["--scale", "19", "--degree", "32"], &[]);
    let Some(group) = group_of(scene.num_bytes / 4) else { return };
    for kernel in [&["wcc"][..], &["cdlp", "--iterations", "2"], &["pagerank"]] {
        // Scans may be left to the kernel if its own read-ahead is large.
        scene.compare(kernel, &group);
    }
    let prefetch = scene.compare(&["bfs", "--source", &scene.source], &group);
    assert!(count(&prefetch, "frontier", "issued") > 0, "{prefetch}");
}

#[test]
fn results_match_with_half_in_memory() {
    let scene = Scene::new(&["--scale", "18", "--degree", "12", "--weights", "1..255"], &["--weights"]);
    let Some(group) = group_of(scene.num_bytes / 2) else { return };
    for kernel in ["sssp", "bc"] {
        scene.compare(&[kernel, "--source", &scene.source], &group);
    }
    for kernel in ["scc", "kcore", "triangles", "lcc"] {
        scene.compare(&[kernel], &group);
    }
}

/// Deltas are read through another map of the files.
#[test]
fn a_graph_with_levels_is_read_ahead_too() {
    let mut scene = Scene::new(&["--scale", "19", "--degree", "16"], &[]);
    for number in 1..=3_u32 {
        let file = scene.folder.path().join("more.txt");
        let edges: String = (0..50).map(|i| format!("{} {}\n", i * 9000 + number, i * 7000 + 2 * number)).collect();
        std::fs::write(&file, edges).unwrap();
        run(anden().args(["append", "--no-maintenance", "--quiet"]).arg(&scene.database).arg(&file));
    }
    scene.look();
    let Some(group) = group_of(scene.num_bytes / 3) else { return };
    let prefetch = scene.compare(&["bfs", "--source", &scene.source, "--prefetch", "frontier"], &group);
    assert!(count(&prefetch, "frontier", "issued") > 0, "{prefetch}");
    let prefetch = scene.compare(&["wcc", "--prefetch", "sequential"], &group);
    assert!(count(&prefetch, "sequential", "issued") > 0, "{prefetch}");
    // Pages that a scan read ahead are checked after it passed them.
    assert!(count(&prefetch, "sequential", "useful") > 0, "{prefetch}");
}
