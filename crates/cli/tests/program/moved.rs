//! A database that is moved, replaced or unlocked while the program writes to it, and special files in place of its
//! files.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::os::unix::fs::symlink;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::scene::Scene;

/// `anden apply live -`, which commits each line with a sync.
struct Writer {
    process: Child,
    input: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    num_sent: u64,
    num_answered: u64,
}

impl Writer {
    fn start(scene: &Scene) -> Self {
        let arguments = ["apply", "live", "-", "--batch", "1", "--acks", "-", "--quiet"];
        let mut command = scene.command(&arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let answers = BufReader::new(output).lines();
        Self { process, input, answers, num_sent: 0, num_answered: 0 }
    }

    /// Sends two lines and waits for the answer to the first. The second may wait for a third.
    fn commit(&mut self) {
        for _ in 0..2 {
            self.send();
        }
        while self.num_answered + 1 < self.num_sent {
            self.num_answered = self.answers.next().unwrap().unwrap().parse().unwrap();
        }
    }

    /// Sends a line. The program may have ended.
    fn send(&mut self) {
        self.num_sent += 1;
        let _ = writeln!(self.input, "+ 1000 {}", 2000 + self.num_sent);
    }

    /// Ends the input. Returns the status, the number of answered lines, and standard error.
    fn end(self) -> (i32, u64, String) {
        let Self { mut process, input, answers, num_answered, .. } = self;
        drop(input);
        let num_answered = answers.map(|line| line.unwrap().parse().unwrap()).last().unwrap_or(num_answered);
        let mut said = String::new();
        process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (process.wait().unwrap().code().unwrap(), num_answered, said)
    }
}

/// The databases `live`, which a process writes, and `other`.
fn beside_a_writer() -> (Scene, Writer) {
    let scene = Scene::new();
    scene.write("edges.txt", "1 2\n2 3\n");
    scene.write("others.txt", "7 8\n");
    scene.anden(&["load", "live", "edges.txt"]).succeeded();
    scene.anden(&["load", "other", "others.txt"]).succeeded();
    let mut writer = Writer::start(&scene);
    writer.commit();
    (scene, writer)
}

fn contents(scene: &Scene, database: &str) -> BTreeMap<String, Vec<u8>> {
    let names = scene.names_in(database).into_iter();
    names.map(|name| (name.clone(), std::fs::read(scene.path(database).join(name)).unwrap())).collect()
}

fn num_edges(scene: &Scene, database: &str) -> u64 {
    scene.anden(&["verify", database]).succeeded();
    scene.json(&["info", database])["edges"].as_u64().unwrap()
}

#[test]
fn directory_that_replaced_database_is_not_written() {
    let (scene, mut writer) = beside_a_writer();
    let other = contents(&scene, "other");
    std::fs::rename(scene.path("live"), scene.path("old")).unwrap();
    std::fs::rename(scene.path("other"), scene.path("live")).unwrap();
    writer.commit();
    let (status, num_answered, said) = writer.end();
    assert!(status == 1 && said.contains("cannot write: another directory took its place (live)"), "{status}: {said}");
    assert_eq!(contents(&scene, "live"), other);
    assert_eq!(num_edges(&scene, "live"), 1);
    // The moved directory has every answered commit.
    assert!(num_answered >= 3, "{num_answered}");
    assert!(num_edges(&scene, "old") >= 2 + num_answered);
}

#[test]
fn removed_lock_file_admits_no_second_writer() {
    let (scene, mut writer) = beside_a_writer();
    std::fs::remove_file(scene.path("live/LOCK")).unwrap();
    scene.write("more.txt", "+ 1 9\n");
    for arguments in [&["apply", "live", "more.txt"][..], &["checkpoint", "live"], &["append", "live", "edges.txt"]] {
        scene.anden(arguments).failed(&["locked by another process"]);
    }
    writer.send();
    writer.send();
    let (status, num_answered, said) = writer.end();
    assert!(status == 1 && said.contains("cannot write: \"LOCK\" was removed (live)"), "{status}: {said}");
    assert!(num_edges(&scene, "live") >= 2 + num_answered, "{num_answered} were answered");
    scene.anden(&["apply", "live", "more.txt"]).succeeded();
    assert_eq!(scene.json(&["query", "live", "edge", "1", "9"])["result"], true);
}

#[test]
fn a_removed_database_fails_its_writer() {
    let (scene, mut writer) = beside_a_writer();
    std::fs::remove_dir_all(scene.path("live")).unwrap();
    writer.send();
    writer.send();
    let (status, num_answered, said) = writer.end();
    assert!(status == 1 && said.contains("cannot write: \"LOCK\" was removed"), "{status}: {said}");
    assert!(num_answered <= 2 && !scene.path("live").exists());
}

#[test]
fn a_renamed_database_keeps_its_writer() {
    let (scene, mut writer) = beside_a_writer();
    std::fs::rename(scene.path("live"), scene.path("moved")).unwrap();
    writer.commit();
    let (status, num_answered, said) = writer.end();
    assert_eq!((status, num_answered, said.as_str()), (0, 4, ""));
    assert_eq!(num_edges(&scene, "moved"), 6);
}

/// Runs the program and requires that it ends soon.
fn run_in_time(scene: &Scene, arguments: &[&str]) -> (i32, String) {
    let mut process = scene.command(arguments).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while process.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(60) {
            process.kill().unwrap();
            panic!("anden {arguments:?} does not end");
        }
        std::thread::yield_now();
    }
    let output = process.wait_with_output().unwrap();
    (output.status.code().unwrap_or(-1), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn special_files_are_refused_by_every_verb() {
    let (scene, writer) = beside_a_writer();
    let Writer { mut process, .. } = writer;
    process.kill().unwrap();
    process.wait().unwrap();
    scene.write("more.txt", "+ 1 9\n");
    scene.write("outside", "not of the database");
    std::fs::rename(scene.path("live"), scene.path("template")).unwrap();
    for name in ["wal-000001", "MANIFEST", "LOG", "LOCK", "base-000001-out-table"] {
        for kind in ["a FIFO", "a symbolic link", "a symbolic link to zeros"] {
            let copied = Command::new("cp").args(["-r", "template", "live"]).current_dir(scene.path("")).status();
            assert!(copied.unwrap().success());
            let path = scene.path("live").join(name);
            std::fs::remove_file(&path).unwrap();
            match kind {
                "a FIFO" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
                "a symbolic link" => symlink(scene.path("outside"), &path).unwrap(),
                _ => symlink("/dev/zero", &path).unwrap(),
            }
            for arguments in [
                &["info", "live"][..],
                &["run", "live", "wcc"],
                &["verify", "live"],
                &["apply", "live", "more.txt"],
                &["checkpoint", "live"],
            ] {
                let (status, said) = run_in_time(&scene, arguments);
                let is_reader = !["apply", "checkpoint"].contains(&arguments[0]);
                if is_reader && name == "LOCK" {
                    assert_eq!(status, 0, "{arguments:?}, {name}: {said}");
                    continue;
                }
                let names_it = said.contains(name) && said.contains(kind.trim_end_matches(" to zeros"));
                assert!(status == 1 && names_it, "{arguments:?}, {name}: {status}: {said}");
                assert_eq!(scene.read("outside"), "not of the database");
            }
            std::fs::remove_dir_all(scene.path("live")).unwrap();
        }
    }
}
