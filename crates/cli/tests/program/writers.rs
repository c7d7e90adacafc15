//! A process that writes, and concurrent other processes.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::scene::Scene;

/// `anden apply db -`, which commits line by line and holds the database until its input ends.
struct Writer {
    process: Child,
    input: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Writer {
    fn start(scene: &Scene) -> Self {
        let mut command = scene.command(&["apply", "db", "-", "--batch", "1", "--acks", "-", "--quiet"]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self { process, input, answers: BufReader::new(output).lines() }
    }

    /// Sends `lines` and waits for the answer to the first. The last may have to wait for a later line.
    fn commit(&mut self, lines: &str) {
        self.input.write_all(lines.as_bytes()).unwrap();
        assert_eq!(self.answers.next().unwrap().unwrap(), "1");
    }

    /// Ends the input and waits for the process.
    fn end(self) {
        let Self { mut process, input, answers } = self;
        drop(input);
        assert_eq!(answers.map(Result::unwrap).collect::<Vec<_>>(), ["2"]);
        assert!(process.wait().unwrap().success());
    }
}

#[test]
fn second_writer_is_refused_with_lock_holder() {
    let scene = Scene::with_small(&[]);
    scene.write("more.txt", "+ 1 9\n");
    scene.write("edges.txt", "1 9\n");
    let mut writer = Writer::start(&scene);
    writer.commit("+ 1 7\n+ 1 8\n");
    let holder = format!("locked by another process ({}, anden)", writer.process.id());
    for arguments in [
        &["apply", "db", "more.txt"][..],
        &["append", "db", "edges.txt"],
        &["checkpoint", "db"],
        &["merge", "db"],
        &["prepare", "db"],
        &["retain", "db", "last:1"],
        &["drop", "db", "1"],
    ] {
        scene.anden(arguments).failed(&["LOCK", &holder, "wait until the other process has closed it"]);
        let info = scene.json(&["info", "db"]);
        assert!(info["edges"] == 7 || info["edges"] == 8, "{info}");
        scene.anden(&["info", "db"]).succeeded();
        assert_eq!(scene.json(&["query", "db", "edge", "1", "7"])["result"], true);
    }
    writer.end();
    scene.anden(&["apply", "db", "more.txt"]).succeeded();
    // The lock file of a killed holder stays, with an obsolete process id.
    let mut writer = Writer::start(&scene);
    writer.commit("+ 2 7\n+ 2 8\n");
    writer.process.kill().unwrap();
    writer.process.wait().unwrap();
    assert_eq!(scene.read("db/LOCK").trim(), writer.process.id().to_string());
    scene.anden(&["apply", "db", "more.txt"]).succeeded();
    assert_eq!(scene.json(&["query", "db", "edge", "2", "7"])["result"], true);
    scene.anden(&["verify", "db"]).succeeded();
}

/// The value of `name` in the output of `info`.
fn row(text: &str, name: &str) -> String {
    let value = text.lines().find_map(|line| line.trim().strip_prefix(name));
    value.unwrap_or_else(|| panic!("{name}: {text}")).trim().to_owned()
}

/// The next process reads the WAL of a killed one, and shows its changes as live.
#[test]
fn killed_writer_commits_show_as_live_edges() {
    let scene = Scene::with_small(&[]);
    let mut writer = Writer::start(&scene);
    writer.commit("- 1 2\n+ 1 8\n");
    writer.process.kill().unwrap();
    writer.process.wait().unwrap();
    let text = scene.anden(&["info", "db"]).succeeded().stdout;
    let is_second_there = scene.json(&["info", "db"])["edges"] == 6;
    let expected = if is_second_there { "1 added, 1 removed" } else { "0 added, 1 removed" };
    assert_eq!((row(&text, "live edges").as_str(), row(&text, "snapshots").as_str()), (expected, "1"), "{text}");
    scene.anden(&["checkpoint", "db"]).succeeded();
    let text = scene.anden(&["info", "db"]).succeeded().stdout;
    assert!(!text.contains("live edges") && row(&text, "snapshots") == "2", "{text}");
}

#[test]
fn running_writer_commits_show_as_live_edges() {
    let scene = Scene::with_small(&[]);
    let mut writer = Writer::start(&scene);
    writer.commit("+ 1 7\n+ 1 8\n");
    let info = scene.json(&["info", "db"]);
    let live = &info["live"];
    let number = |name: &str| live[name].as_u64().unwrap_or_else(|| panic!("{name}: {info}"));
    assert!(number("delta_bytes") > 0 && number("log_bytes") > 0, "{info}");
    assert!([1, 2].contains(&number("added")) && number("removed") == 0, "{info}");
    // The `info` process has committed nothing, and holds the view that it shows.
    let aborts = json!({ "conflict": 0, "invalid": 0, "failure": 0 });
    assert_eq!((&info["commits"]["commits"], &info["commits"]["aborts"]), (&json!(0), &aborts), "{info}");
    assert_eq!(info["views"]["open"], 1, "{info}");
    assert!(info["views"]["oldest_age_seconds"].as_f64().unwrap() > 0.0, "{info}");
    let text = scene.anden(&["info", "db"]).succeeded().stdout;
    assert!(["1", "2"].map(|n| format!("{n} added, 0 removed")).contains(&row(&text, "live edges")), "{text}");
    assert!(row(&text, "in memory").ends_with('B'), "{text}");
    writer.end();
    let text = scene.anden(&["info", "db"]).succeeded().stdout;
    assert!(!text.contains("live edges") && !text.contains("in memory"), "{text}");
    let info = scene.json(&["info", "db"]);
    let live = &info["live"];
    assert_eq!((&live["delta_bytes"], &live["added"], &live["log_bytes"]), (&json!(0), &json!(0), &json!(0)), "{info}");
    assert_eq!((&info["edges"], &info["views"]["open"]), (&json!(8), &json!(1)), "{info}");
}

#[test]
fn stats_of_a_running_writer_are_seen_from_outside() {
    let scene = Scene::with_small(&[]);
    let idle = scene.json(&["stats", "db"]);
    assert_eq!((&idle["writer"], &idle["epoch"], &idle["log"]["segments"]), (&json!(null), &json!(0), &json!(0)));
    assert_eq!((&idle["edges"], &idle["files"]["base"]["files"].is_u64()), (&json!(6), &true), "{idle}");
    assert_eq!(scene.json(&["info", "db"])["writer"], json!(null));
    let mut writer = Writer::start(&scene);
    writer.commit("+ 1 7\n+ 1 8\n");
    let holder = json!({ "process": writer.process.id(), "program": "anden" });
    let stats = scene.json(&["stats", "db"]);
    assert_eq!((&stats["writer"], &stats["snapshots"], &stats["snapshot_epoch"]), (&holder, &json!(1), &json!(0)));
    assert!(stats["epoch"].as_u64().unwrap() >= 1 && stats["log"]["bytes"].as_u64().unwrap() > 0, "{stats}");
    assert_eq!(scene.json(&["info", "db"])["writer"], holder);
    let named = format!("process {} (anden)", writer.process.id());
    assert_eq!(row(&scene.anden(&["info", "db"]).succeeded().stdout, "open for writing"), format!("by {named}"));
    let text = scene.anden(&["stats", "db"]).succeeded().stdout;
    assert!(row(&text, "writer") == named && text.contains("db.metrics()"), "{text}");
    assert!(!scene.anden(&["stats", "db", "--quiet"]).succeeded().stdout.contains("metrics"));
    let text = scene.anden(&["stats", "db", "--prometheus"]).succeeded().stdout;
    let lines = ["# TYPE anden_wal_bytes gauge", "anden_writer_present{database=\"db\"} 1"];
    assert!(lines.iter().all(|line| text.lines().any(|other| other == *line)), "{text}");
    // A killed writer holds nothing, although its number is still in the file.
    writer.process.kill().unwrap();
    writer.process.wait().unwrap();
    assert!(!scene.read("db/LOCK").is_empty());
    assert_eq!(scene.json(&["stats", "db"])["writer"], json!(null));
    scene.anden(&["checkpoint", "db"]).succeeded();
    assert_eq!(scene.read("db/LOCK"), "", "a writer that ends takes its number away");
}

/// `anden stats db --watch --json`, and its lines.
fn watch(scene: &Scene) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut command = scene.command(&["stats", "db", "--watch", "0.01", "--json"]);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    (process, lines)
}

#[test]
fn watched_stats_follow_the_writer_until_a_signal() {
    let scene = Scene::with_small(&[]);
    let (process, mut lines) = watch(&scene);
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let first = next();
    assert_eq!((&first["epoch"], &first["groups_per_second"]), (&json!(0), &json!(null)), "{first}");
    let mut writer = Writer::start(&scene);
    writer.commit("+ 1 7\n+ 1 8\n");
    let has_commits = |stats: &Value| stats["epoch"].as_u64().unwrap() > 0;
    let stats = std::iter::repeat_with(&mut next).find(has_commits).unwrap();
    assert!(stats["groups_per_second"].as_f64().unwrap() > 0.0, "{stats}");
    writer.end();
    // The snapshot at the end of the writer takes the WAL away.
    let is_over = |stats: &Value| stats["snapshots"] == 2 && stats["log"]["segments"] == 0 && stats["writer"].is_null();
    let stats = std::iter::repeat_with(&mut next).find(is_over).unwrap();
    assert_eq!((&stats["epoch"], &stats["edges"]), (&stats["snapshot_epoch"], &json!(8)), "{stats}");
    let killed = std::process::Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = process.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    // It is the only end, so there is nothing to report.
    assert_eq!((output.status.code(), &*stderr), (Some(130), ""));
}

#[test]
fn watched_stats_end_with_their_reader() {
    let scene = Scene::with_small(&[]);
    let (process, mut lines) = watch(&scene);
    lines.next().unwrap().unwrap();
    drop(lines);
    let output = process.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{output:?}");
}
