//! Standard output and standard error: closed pipes, silence, and atomic files.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anden_testkit::{num_unread, wait_until};

use crate::bad_input::gzip;
use crate::scene::Scene;

#[test]
fn a_closed_pipe_is_no_error() {
    let scene = Scene::new();
    let edges: String = (0..200_000).map(|i| format!("{i} {}\n", i + 1)).collect();
    scene.write("path.txt", edges);
    scene.anden(&["load", "db", "path.txt"]).succeeded();
    for arguments in [
        &["run", "db", "wcc", "--output", "-"][..],
        &["export", "db", "-", "--format", "edgelist"],
        &["query", "db", "khop", "0", "200000"],
        &["generate", "rmat", "--scale", "14", "--degree", "8"],
    ] {
        let mut child = scene.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.next().is_some(), "{arguments:?} prints nothing");
        drop(lines);
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

/// The reader of the answers may stop. The updates still happen.
#[test]
fn acks_that_nobody_reads_stop_no_update() {
    let scene = Scene::with_small(&[]);
    scene.write("updates.txt", (100..3_100).map(|i| format!("+ 1 {i}\n")).collect::<String>());
    let arguments = ["apply", "db", "updates.txt", "--batch", "1", "--durability", "none", "--acks", "-"];
    let mut child = scene.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "1");
    drop(lines);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
    assert_eq!(scene.json(&["query", "db", "edge", "1", "3099"])["result"], true);
}

/// Ctrl-C also ends the writer of a pipe, so the input may end within a line.
#[test]
fn an_interrupted_apply_takes_no_half_of_a_line() {
    let scene = Scene::with_small(&[]);
    const ENOUGH: usize = 5;
    let mut num_interrupted = 0;
    for round in 0..200 {
        let mut command = scene.command(&["apply", "db", "-", "--batch", "1", "--acks", "-"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"+ 1 77\n+ 1 78\n").unwrap();
        let mut acks = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(acks.next().unwrap().unwrap(), "1");
        let half = format!("{}", 1_000 + round);
        input.write_all(format!("+ 1 {half}").as_bytes()).unwrap();
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        // The subject: the input ends a moment after the signal, with the writer of the pipe.
        std::thread::sleep(Duration::from_millis(3 + round));
        drop(input);
        let is_acknowledged = acks.map_while(Result::ok).any(|ack| ack == "3");
        let is_interrupted = child.wait().unwrap().code() == Some(130);
        let has_half = scene.anden(&["query", "db", "edge", "1", &half]).stdout == "true\n";
        // A busy system may deliver the end of the input first. Then the input is complete.
        assert_eq!(has_half, is_acknowledged, "round {round}");
        assert!(is_interrupted || has_half, "round {round}");
        num_interrupted += usize::from(is_interrupted && !has_half);
        if num_interrupted == ENOUGH {
            return;
        }
    }
    panic!("half of a line was taken nearly always: all but {num_interrupted} times");
}

#[test]
fn an_interrupted_export_ends() {
    let scene = Scene::new();
    // More output than a pipe holds, in each format.
    let edge = |i: u64| format!("{i} {}\n", i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44);
    scene.write("edges.txt", (0..300_000).map(edge).collect::<String>());
    scene.anden(&["load", "db", "edges.txt"]).succeeded();
    for name in ["out.sg", "out.parquet", "out.mtx", "out.graphml", "out.csv"] {
        assert!(Command::new("mkfifo").arg(scene.path(name)).status().unwrap().success());
        let mut child =
            scene.command(&["export", "db", name]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut pipe = std::fs::File::open(scene.path(name)).unwrap();
        std::io::Read::read_exact(&mut pipe, &mut [0]).unwrap();
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        // The subject: a slow reader. The export may not write all of its output before it sees the signal.
        while std::io::Read::read(&mut pipe, &mut [0; 4096]).unwrap() > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let status = child.wait().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((status.code(), String::from_utf8(output.stdout).unwrap().as_str()), (Some(130), ""), "{name}");
    }
}

#[test]
fn an_output_file_appears_whole_or_not_at_all() {
    let scene = Scene::with_small(&[]);
    scene.anden(&["run", "db", "bfs", "--source", "1", "--output", "hops.txt"]).succeeded();
    assert_eq!(scene.names(), ["db", "hops.txt", "small.txt"]);
    scene.anden(&["run", "db", "bfs", "--source", "1", "--output", "none/hops.txt"]).failed(&["none/hops.txt"]);
    scene.anden(&["run", "db", "bfs", "--source", "1", "--output", "db"]).failed(&["db", "directory"]);
    scene.anden(&["export", "db", "none/edges.csv"]).failed(&["none/edges.csv"]);
    scene
        .anden(&["export", "db", "edges.csv.gz"])
        .refused(&["edges.csv.gz", "'.gz' is the ending of a compressed file"]);
    scene.anden(&["export", "db", "edges.csv", "--vertices", "vertices.csv.zst"]).refused(&["'.zst' is the ending of"]);
    scene.anden(&["run", "db", "wcc", "--output", "wcc.txt.xz"]).refused(&["'.xz' is the ending of"]);
    assert_eq!(scene.names(), ["db", "hops.txt", "small.txt"]);
}

#[test]
fn json_and_values_do_not_share_standard_output() {
    let scene = Scene::with_small(&[]);
    scene.anden(&["run", "db", "wcc", "--output", "-", "--json"]).refused(&["--output", "--json"]);
    scene.anden(&["export", "db", "-", "--json"]).refused(&["--json"]);
    let object = scene.json(&["run", "db", "wcc", "--output", "wcc.txt"]);
    assert_eq!(object["kernel"], "wcc");
    assert_eq!(scene.read("wcc.txt"), "1 1\n2 1\n3 1\n4 1\n5 5\n6 5\n");
}

#[test]
fn quiet_means_no_report() {
    let scene = Scene::with_small(&[]);
    assert_eq!(scene.anden(&["load", "db2", "small.txt", "--quiet"]).succeeded().stdout, "");
    assert_eq!(scene.anden(&["export", "db", "edges.csv", "--quiet"]).succeeded().stdout, "");
    assert_eq!(scene.anden(&["verify", "db", "--quiet"]).succeeded().stdout, "");
    assert_eq!(scene.anden(&["query", "db", "edge", "1", "2", "--quiet"]).succeeded().stdout, "true\n");
}

#[test]
fn verbose_shows_events_on_standard_error() {
    let scene = Scene::with_small(&[]);
    let silent = scene.anden(&["checkpoint", "db", "--json"]).succeeded();
    for (key, (verbose, has_details)) in (7..).zip([("-v", false), ("--verbose", false), ("-vv", true)]) {
        scene.write("updates.txt", format!("+ 6 {key}\n"));
        let applied = scene.anden(&["apply", "db", "updates.txt", verbose]);
        assert_eq!((applied.status, applied.stderr.contains("DEBUG")), (0, has_details), "{applied:?}");
        let ran = scene.anden(&["checkpoint", "db", "--json", verbose]);
        assert_eq!(ran.status, 0, "{ran:?}");
        let object: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert!(object["snapshot"].is_u64() && ran.lines().len() == silent.lines().len(), "{ran:?}");
        let has = |parts: &[&str]| ran.stderr.lines().any(|line| parts.iter().all(|&part| line.contains(part)));
        assert!(has(&["INFO", "opened the database", "epoch=", "records="]), "{ran:?}");
        assert!(has(&["INFO", "checkpoint ended", "snapshot=", "bytes=", "seconds="]), "{ran:?}");
    }
}

/// A reader of standard error that went away is no reason to stop.
#[test]
fn verbose_with_full_standard_error_still_works() {
    let scene = Scene::with_small(&[]);
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = scene.command(&["-vv", "checkpoint", "db", "--json"]).stderr(full()).output().unwrap();
    assert!(output.status.success() && output.stdout.starts_with(b"{"), "{output:?}");
}

/// A shell's `<(…)` and named pipes are files that can be read once.
#[test]
fn pipes_with_names_are_read_whole() {
    let scene = Scene::new();
    let edges: String = (10_000..20_000).map(|i| format!("{i} {}\n", i + 1)).collect();
    scene.write("edges.txt", edges);
    let verbs = ["load db <(cat edges.txt)", "append db <(cat edges.txt)", "load zipped <(gzip -c edges.txt)"];
    let named = ["mkfifo pipe", "(cat edges.txt > pipe &)", "\"$0\" load named pipe"].join("; ");
    for script in verbs.map(|verb| format!("\"$0\" {verb}")).into_iter().chain([named]) {
        let mut shell = Command::new("bash");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_anden")]).current_dir(scene.path("."));
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }
    for database in ["db", "zipped", "named"] {
        assert_eq!(scene.json(&["info", database])["edges"], 10_000, "{database}");
    }
}

/// A load that is interrupted while it waits for input reports that and leaves no remains.
#[test]
fn an_interrupted_load_leaves_nothing_behind() {
    let scene = Scene::new();
    let mut child = scene.command(&["load", "db", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines: String = (0..100_000).map(|i| format!("{i} {}\n", i + 1)).collect();
    input.write_all(lines.as_bytes()).unwrap();
    // The handler is installed: the program reads, because the pipe holds less than was written.
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    // The program may stop reading from here on.
    while input.write_all(lines.as_bytes()).is_ok() {}
    drop(input);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.starts_with("anden: interrupted"), "{stderr}");
    assert!(scene.names().is_empty(), "{:?}", scene.names());
}

/// Generating a large graph is interrupted long before its end, and leaves no remains.
#[test]
fn an_interrupt_ends_generating() {
    let scene = Scene::new();
    for file in ["large.sg", "large.txt"] {
        let arguments = ["generate", "rmat", "--scale", "25", "--degree", "16", "-o", file];
        let child = scene.command(&arguments).stderr(Stdio::piped()).spawn().unwrap();
        // A file under a temporary name shows that there are remains to remove.
        while scene.names().is_empty() {
            std::thread::yield_now();
        }
        let start = Instant::now();
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let (stderr, seconds) = (String::from_utf8(output.stderr).unwrap(), start.elapsed().as_secs());
        assert_eq!(output.status.code(), Some(130), "{file}: {stderr}");
        assert!(seconds < 30, "{file}: it took {seconds} seconds");
        assert!(scene.names().is_empty(), "{file}: {:?}", scene.names());
    }
}

/// A wait for a silent pipe can be interrupted.
#[test]
fn an_interrupt_ends_waiting_for_input() {
    for (verb, packed) in [("load", false), ("load", true), ("append", false), ("apply", false), ("apply", true)] {
        let scene = Scene::new();
        if verb != "load" {
            scene.write("edges.txt", "0 1\n");
            scene.anden(&["load", "db", "edges.txt"]).succeeded();
        }
        let mut child = scene.command(&[verb, "db", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let lines: String =
            (0..50_000).map(|i| format!("{}{i} {}\n", if verb == "apply" { "+ " } else { "" }, i + 1)).collect();
        let bytes = if packed { gzip(&lines) } else { lines.into_bytes() };
        // Without the end, so that the program waits for more.
        input.write_all(&bytes[..bytes.len() - 20]).unwrap();
        wait_until("the program reads the whole input", || num_unread(&input) == 0);
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        drop(input);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{verb}, packed: {packed}: {stderr}");
        assert!(stderr.starts_with("anden: interrupted"), "{verb}, packed: {packed}: {stderr}");
        match verb {
            "load" => assert!(scene.names().is_empty(), "{:?}", scene.names()),
            "append" => assert_eq!(scene.json(&["info", "db"])["edges"], 1),
            _ => assert!(scene.json(&["info", "db"])["edges"].as_u64() >= Some(1)),
        }
    }
}
