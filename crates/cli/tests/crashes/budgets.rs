//! Verbs and kernels in a control group with just the memory that they report to need, page cache included.
//!
//! They must end, give the right result, and read the files a small number of times. With too little page cache, the
//! kernel evicts pages before they are read, and the files are read many times over. Bytes are counted instead of time,
//! which depends on the machine. These tests need the right to limit memory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::MutexGuard;

use anden::{Database, Error, Job, Key, OpenOptions, Parameters, Session};
use anden_testkit::memory_group::MemoryGroup;
use anden_testkit::{evict, skipped};

use crate::pressure::{one_group, run};
use crate::writer::anden;

/// A time limit in seconds. The slowest command takes a few; a longer one rereads its files all the time.
const SECONDS: &str = "120";
/// Enough memory for verbs without a state of vertices.
const SMALL: u64 = 64 << 20;

/// A graph with lists of about twice [`SMALL`] and few triangles, in a folder on a disk.
struct Scene {
    folder: tempfile::TempDir,
    database: PathBuf,
    num_bytes: u64,
    _one: MutexGuard<'static, ()>,
}

/// The result of a command in the group.
struct Ended {
    stdout: String,
    read_bytes: u64,
}

impl Scene {
    fn new() -> Self {
        let scene = Self::of_scale("20");
        assert!(scene.num_bytes > SMALL * 3 / 2, "{} bytes are too few for this test", scene.num_bytes);
        scene
    }

    fn of_scale(scale: &str) -> Self {
        let one = one_group();
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (input, database) = (folder.path().join("graph.sg"), folder.path().join("db"));
        run(anden().args(["generate", "uniform", "--scale", scale, "--degree", "16", "--quiet", "-o"]).arg(&input));
        run(anden().args(["load", "--ids", "dense", "--quiet"]).arg(&database).arg(&input));
        std::fs::remove_file(&input).unwrap();
        let mut scene = Self { folder, database, num_bytes: 0, _one: one };
        scene.num_bytes = files(&scene.database).iter().map(|file| file.metadata().unwrap().len()).sum();
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes `num` lines of edges after a sign, between vertices all over the graph.
    fn write_edges(&self, name: &str, sign: &str, num: u64) -> PathBuf {
        let vertex = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
        let line = |i: u64| format!("{sign}{} {}\n", vertex(2 * i + 1), vertex(2 * i + 2));
        let path = self.path(name);
        std::fs::write(&path, (0..num).map(line).collect::<String>()).unwrap();
        path
    }

    /// Runs a command in a group with `num_bytes` of memory. No page of the database is cached before.
    fn run_in(&self, num_bytes: u64, args: &[&str]) -> Ended {
        self.try_in(num_bytes, args).unwrap_or_else(|what| panic!("{args:?} in {num_bytes} bytes: {what}"))
    }

    /// As [`run_in`](Self::run_in). Returns status and standard error of a failed command.
    fn try_in(&self, num_bytes: u64, args: &[&str]) -> Result<Ended, String> {
        let group = MemoryGroup::new(num_bytes).unwrap();
        files(self.folder.path()).iter().for_each(|file| evict(file).unwrap());
        // The counters of the shell include the reads of its child.
        let script =
            "echo $$ > \"$0\" && timeout -s KILL \"$@\"; status=$?; grep ^read_bytes /proc/$$/io >&2; exit $status";
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(group.members()).arg(SECONDS).arg(env!("CARGO_BIN_EXE_anden")).args(args);
        let ended = command.output().unwrap();
        let stderr = String::from_utf8(ended.stderr).unwrap();
        if !ended.status.success() {
            return Err(format!("{}: {stderr}", ended.status));
        }
        let count = stderr.lines().find_map(|line| line.strip_prefix("read_bytes: ")).unwrap();
        Ok(Ended { stdout: String::from_utf8(ended.stdout).unwrap(), read_bytes: count.parse().unwrap() })
    }

    /// As [`run_in`](Self::run_in), and requires that the command reads the files at most `times` times. Returns
    /// standard output.
    fn reads_at_most(&self, times: u64, num_bytes: u64, args: &[&str]) -> String {
        let ended = self.run_in(num_bytes, args);
        println!("{args:?} in {num_bytes} bytes: {} bytes read of {}", ended.read_bytes, self.num_bytes);
        let most = times * self.num_bytes;
        assert!(ended.read_bytes <= most, "{args:?} in {num_bytes} bytes reads {} bytes, not {most}", ended.read_bytes);
        ended.stdout
    }
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn may_limit_memory() -> bool {
    let group = MemoryGroup::new(SMALL);
    if let Err(error) = &group {
        skipped(format!("budgets need the right to limit memory: {error:#}"));
    }
    group.is_ok()
}

/// The memory that a kernel reports to need.
fn need(database: &Path, kernel: &str, parameters: Parameters) -> u64 {
    let session = Session::new(2).unwrap().with_memory(Some(1));
    let view = Database::open_with(database, &OpenOptions { read_only: true, ..OpenOptions::from(&session) })
        .unwrap()
        .view()
        .unwrap();
    match view.run(&Job::new(kernel, parameters).unwrap()) {
        Err(Error::Memory { needed, .. }) => needed,
        Err(error) => panic!("{kernel}: {error}"),
        Ok(_) => panic!("{kernel} does with a byte"),
    }
}

/// The result of a kernel, without times and floating-point sums.
fn result(stdout: &str) -> serde_json::Value {
    let mut result = serde_json::from_str::<serde_json::Value>(stdout).unwrap()["result"].take();
    for name in ["top", "delta", "sum", "mean"] {
        result.as_object_mut().unwrap().remove(name);
    }
    result
}

#[test]
fn kernels_run_in_what_they_say_they_need() {
    let scene = Scene::new();
    if !may_limit_memory() {
        return;
    }
    let database = scene.database.to_str().unwrap();
    let kernels = [
        ("bfs", "--source 1", 12),
        ("pagerank", "--iterations 3", 6),
        ("wcc", "", 6),
        ("bc", "--source 1", 24),
        ("triangles", "", 24),
        ("lcc", "", 24),
        ("cdlp", "--iterations 2", 8),
        ("scc", "", 6),
        ("kcore", "", 60),
    ];
    for (kernel, options, times) in kernels {
        let has_source = options.contains("--source");
        let parameters =
            Parameters { source: has_source.then(|| Key::from(1)).into_iter().collect(), ..Parameters::default() };
        let needed = need(&scene.database, kernel, parameters).to_string();
        let mut args = vec!["run", database, kernel, "--json", "--quiet", "--threads", "2"];
        args.extend(options.split_whitespace());
        let expected = result(&run(anden().args(&args)));
        args.extend(["--memory", &needed]);
        let found = result(&scene.reads_at_most(times, needed.parse().unwrap(), &args));
        assert_eq!(found, expected, "{kernel}");
    }
}

#[test]
fn exports_read_lists_once_or_twice() {
    let scene = Scene::new();
    if !may_limit_memory() {
        return;
    }
    let database = scene.database.to_str().unwrap();
    for format in ["edgelist", "csv", "mtx", "parquet", "graphml", "gapbs"] {
        let [whole, part] = ["whole", "part"].map(|name| scene.path(&format!("{name}.{format}")));
        let args = |file: &Path, threads: &'static str| {
            let file = file.to_str().unwrap().to_owned();
            ["export", database, &file, "--format", format, "--quiet", "--threads", threads].map(str::to_owned)
        };
        run(anden().args(args(&whole, "2")));
        // More workers than fit in the budget.
        let args = args(&part, "4");
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        args.extend(["--memory", "64M"]);
        scene.reads_at_most(3, SMALL, &args);
        assert!(std::fs::read(&whole).unwrap() == std::fs::read(&part).unwrap(), "{format}");
        [whole, part].iter().for_each(|file| std::fs::remove_file(file).unwrap());
    }
}

#[test]
fn differences_are_read_page_by_page() {
    let scene = Scene::new();
    if !may_limit_memory() {
        return;
    }
    let database = scene.database.to_str().unwrap();
    run(anden()
        .args(["append", "--no-maintenance", "--quiet", database])
        .arg(scene.write_edges("more.txt", "", 600_000)));
    let diff = |more: &[&'static str]| [&["diff", database, "1", "2", "--quiet"], more].concat();
    for options in [&[][..], &["--json"]] {
        let expected = run(anden().args(diff(options)));
        assert!(expected.len() > 6_000_000, "{} bytes", expected.len());
        let args = [diff(options), vec!["--memory", "64M"]].concat();
        assert!(scene.reads_at_most(2, SMALL, &args) == expected, "{options:?}");
    }
    let copy = scene.path("copy");
    std::fs::create_dir(&copy).unwrap();
    for file in files(&scene.database) {
        std::fs::copy(&file, copy.join(file.file_name().unwrap())).unwrap();
    }
    let across = ["diff", database, "1", "1", "--with", copy.to_str().unwrap(), "--quiet", "--memory", "64M"];
    assert_eq!(scene.reads_at_most(6, SMALL, &across), "");
}

#[test]
fn updates_read_the_lists_that_they_change() {
    let scene = Scene::new();
    if !may_limit_memory() {
        return;
    }
    const NUM_UPDATES: u64 = 50_000;
    let database = scene.database.to_str().unwrap();
    let updates = scene.write_edges("updates.txt", "+ ", NUM_UPDATES);
    let args = ["apply", database, updates.to_str().unwrap(), "--memory", "64M", "--durability", "none", "--json"];
    // The command verifies all lists once, and each update reads a page of each of its two lists.
    let times = 3 + 2 * NUM_UPDATES * 4096 / scene.num_bytes;
    let report: serde_json::Value = serde_json::from_str(&scene.reads_at_most(times, SMALL, &args)).unwrap();
    assert_eq!(report["updates"], NUM_UPDATES);
    run(anden().args(["verify", "--quiet", database]));
}

/// Without `--memory`, snapshots come as early as the memory of the group asks for.
#[test]
fn writers_without_a_budget_fit_in_small_groups() {
    let scene = Scene::of_scale("10");
    if !may_limit_memory() {
        return;
    }
    let database = scene.database.to_str().unwrap();
    let updates = scene.write_edges("updates.txt", "+ ", 400_000);
    let args = ["apply", database, updates.to_str().unwrap(), "--batch", "1000", "--durability", "none", "--quiet"];
    scene.run_in(SMALL * 3 / 2, &args);
    run(anden().args(["verify", "--quiet", database]));
}

#[test]
fn verbs_that_only_read_do_with_little_memory() {
    let scene = Scene::new();
    if !may_limit_memory() {
        return;
    }
    let database = scene.database.to_str().unwrap();
    for (args, times) in [
        (&["info", database, "--json"][..], 3),
        (&["snapshots", database], 1),
        (&["verify", database], 3),
        (&["query", database, "neighbors", "77"], 1),
        (&["query", database, "path", "1", "99999"], 4),
        (&["query", database, "vertex", "5", "--fragments"], 1),
    ] {
        let expected = run(anden().args(args));
        let found = scene.reads_at_most(times, SMALL, args);
        assert!(args[0] == "verify" || args.contains(&"--json") || found == expected, "{args:?}: {found}");
    }
    let more = scene.write_edges("more.txt", "", 50_000);
    for (args, times) in [
        (&["append", database, more.to_str().unwrap(), "--no-maintenance", "--quiet"][..], 3),
        (&["merge", database, "--quiet"], 4),
        (&["checkpoint", database, "--quiet"], 1),
    ] {
        scene.reads_at_most(times, SMALL, &[args, &["--memory", "64M"]].concat());
    }
}

/// The bytes of a budget in the form of the messages: MiB with one digit, rounded up.
fn bytes_of(budget: &str) -> u64 {
    let num_mib: f64 = budget.trim_end_matches("MiB").parse().unwrap();
    (num_mib * f64::from(1 << 20)).ceil() as u64
}

#[test]
fn loads_run_in_what_they_say_they_need() {
    let scene = Scene::new();
    if !may_limit_memory() {
        return;
    }
    let [expected, found] = ["expected", "found"].map(|name| scene.path(name));
    let [text, lists, few] = ["graph.el", "graph.sg", "few.sg"].map(|name| scene.path(name));
    for (input, scale) in [(&text, "18"), (&lists, "18"), (&few, "16")] {
        run(anden().args(["generate", "uniform", "--scale", scale, "--degree", "16", "--quiet", "-o"]).arg(input));
    }
    let counts = |database: &Path| {
        run(anden().args(["verify", "--quiet"]).arg(database));
        let info = run(anden().args(["info", "--json"]).arg(database));
        let info: serde_json::Value = serde_json::from_str(&info).unwrap();
        std::fs::remove_dir_all(database).unwrap();
        (info["vertices"].clone(), info["edges"].clone())
    };
    for (input, options, budget, times) in [
        (&text, "--threads 2 --ids integer", "1MiB", 10),
        (&text, "--threads 2 --ids integer", "64MiB", 4),
        (&text, "--threads 2 --ids dense", "1MiB", 10),
        (&text, "--threads 2 --ids integer --undirected", "1MiB", 12),
        (&text, "--threads 2 --ids integer --undirected", "64MiB", 5),
        (&text, "--threads 2 --ids string", "64MiB", 10),
        (&lists, "--threads 2 --ids integer", "1MiB", 4),
        (&lists, "--threads 2 --ids dense", "1MiB", 4),
        (&lists, "--threads 2 --ids string", "64MiB", 12),
        // Regression: this load was killed, because the chunks of a serialized graph had one size at any budget.
        (&few, "--threads 4 --ids string", "1MiB", 24),
    ] {
        let args = |database: &Path, budget: &str| {
            let [database, input] = [database, input].map(|path| path.display().to_string());
            let options = options.split(' ').chain(["--quiet", "--memory", budget]).map(str::to_owned);
            ["load".to_owned(), database, input].into_iter().chain(options).collect::<Vec<_>>()
        };
        run(anden().args(args(&expected, "4GiB")));
        let expected = counts(&expected);
        // A load names at most twice the memory for the keys already read, so it is repeated with that. How often
        // depends on which worker is ahead.
        let mut budget = budget.to_owned();
        let read_bytes = (0..12).find_map(|_| {
            let args = args(&found, &budget);
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            // A program does not start in less than 16 MiB.
            match scene.try_in(bytes_of(&budget).max(16 << 20), &args) {
                Ok(ended) => Some(ended.read_bytes),
                Err(what) => {
                    let (_, hint) = what.split_once("give it --memory ").unwrap_or_else(|| panic!("{args:?}: {what}"));
                    budget = hint.split(',').next().unwrap().to_owned();
                    None
                }
            }
        });
        let read_bytes = read_bytes.unwrap_or_else(|| panic!("{options}: {budget} is not enough either"));
        let input_bytes = input.metadata().unwrap().len();
        println!("{options} of {} in {budget}: {read_bytes} bytes read of {input_bytes}", input.display());
        assert!(read_bytes <= times * input_bytes, "{options} in {budget} reads {read_bytes} bytes of {input_bytes}");
        assert_eq!(counts(&found), expected, "{options}");
    }
}
