//! Too little memory, and files that vanish while they are read: a message, and nothing is lost.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use crate::scene::Scene;

#[test]
fn too_little_memory_is_refused_with_what_it_takes() {
    let scene = Scene::with_small(&[]);
    scene.write("more.txt", "1 5\n2 6\n");
    scene.anden(&["append", "db", "more.txt", "--no-maintenance"]).succeeded();
    // The last verb leaves no delta to merge.
    let verbs: [&[&str]; 4] = [
        &["run", "db", "wcc"],
        &["append", "db", "more.txt", "--no-maintenance"],
        &["load", "other", "more.txt", "--ids", "dense"],
        &["merge", "db"],
    ];
    for arguments in verbs {
        let before = scene.json(&["info", "db"]);
        let with = |memory: &str| scene.anden(&[arguments, &["--memory", memory]].concat());
        let ran = with("4000").failed(&["a memory budget of 3.9 KiB is too small: ", " needs at least "]);
        let needed = advised_memory(&ran.stderr);
        assert_eq!(scene.json(&["info", "db"])["deltas"], before["deltas"], "{arguments:?}");
        with(needed).succeeded();
    }
    scene.anden(&["verify", "db"]).succeeded();
}

/// The size that an error says to give with `--memory`.
fn advised_memory(stderr: &str) -> &str {
    stderr
        .split("give it --memory ")
        .nth(1)
        .and_then(|rest| rest.split(',').next())
        .unwrap_or_else(|| panic!("{stderr}"))
}

/// The refused vertex is not in the WAL either, where the next open would fail on it.
#[test]
#[cfg_attr(anden_asan, ignore = "a sanitizer takes memory of its own")]
fn vertex_beyond_memory_is_refused_and_not_logged() {
    let scene = Scene::with_small(&["--ids", "dense"]);
    scene.write("far.upd", "+ 1 2\nv+ 4294967290\n");
    let limited = |arguments: &str| {
        let script = format!(r#"ulimit -v 4000000; exec "$0" {arguments} --threads 1"#);
        let mut shell = Command::new("bash");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_anden")]).current_dir(scene.path(".")).output().unwrap()
    };
    let info = || {
        let info: serde_json::Value = serde_json::from_slice(&limited("info db --json").stdout).unwrap();
        (info["vertices"].clone(), info["edges"].clone())
    };
    let before = info();
    let output = limited("apply db far.upd");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("memory") && stderr.contains("4294967291"), "{stderr}");
    assert_eq!(info(), before);
}

/// A growing need names a larger number each time, never less than the memory to begin.
#[test]
fn advised_memory_budget_lets_queries_succeed() {
    let scene = Scene::with_small(&[]);
    scene.write("far.csv", "source,target,distance\n1,2,3\n2,3,4\n");
    scene.anden(&["load", "far", "far.csv"]).succeeded();
    let questions: [&[&str]; 6] = [
        &["query", "db", "path", "1", "4"],
        &["query", "db", "khop", "1", "2"],
        &["query", "db", "fof", "1"],
        &["query", "db", "reachable", "1", "4"],
        &["query", "db", "path", "1", "4", "--all"],
        &["run", "far", "sssp", "--source", "1", "--weight", "distance"],
    ];
    for arguments in questions {
        let mut memory = "1000".to_owned();
        let num_tries = (0..20).find(|_| {
            let ran = scene.anden(&[arguments, &["--memory", &memory]].concat());
            if ran.status == 0 {
                return true;
            }
            assert!(
                ran.stderr.contains("a memory budget of ") && ran.stderr.contains(" is too small"),
                "{}",
                ran.stderr
            );
            let needed = advised_memory(&ran.stderr).to_owned();
            assert_ne!(needed, memory, "{}", ran.stderr);
            memory = needed;
            false
        });
        assert!(num_tries.is_some_and(|tries| tries > 0), "{arguments:?}");
    }
}

/// Regression: a load beyond its memory used more scratch files than a process may open on many systems.
#[test]
fn a_load_has_few_files_open() {
    let scene = Scene::new();
    let edge = |i: u64| {
        let random = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("{} {}\n", random >> 48, random >> 32 & 0xffff)
    };
    scene.write("edges.txt", (0..1_500_000).map(edge).collect::<String>());
    let load = r#"ulimit -n 24; exec "$0" load db edges.txt --ids dense --memory 32M --threads 1"#;
    let mut shell = Command::new("bash");
    let output = shell.args(["-c", load, env!("CARGO_BIN_EXE_anden")]).current_dir(scene.path(".")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    scene.anden(&["verify", "db"]).succeeded();
}

/// A difference between snapshots needs no WAL.
#[test]
fn snapshots_are_compared_where_the_log_is_lost() {
    let scene = Scene::with_small(&[]);
    scene.write("more.txt", "1 5\n");
    scene.anden(&["append", "db", "more.txt"]).succeeded();
    let mut command = scene.command(&["apply", "db", "-", "--batch", "1", "--acks", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"+ 1 77\n+ 1 78\n").unwrap();
    assert_eq!(BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap(), "1");
    child.kill().unwrap();
    child.wait().unwrap();
    for name in scene.names_in("db").into_iter().filter(|name| name.starts_with("wal-")) {
        std::fs::remove_file(scene.path("db").join(name)).unwrap();
    }
    scene.anden(&["info", "db"]).failed(&["wal-000001"]);
    assert_eq!(scene.anden(&["diff", "db", "1", "2"]).succeeded().stdout, "+ 1 5\n");
}

#[test]
fn shortened_file_ends_program_with_a_message() {
    let scene = Scene::new();
    // Enough that the files are mapped.
    scene.write("edges.txt", (0..40_000).map(|number| format!("{number} {}\n", number + 1)).collect::<String>());
    scene.anden(&["load", "db", "edges.txt", "--quiet"]).succeeded();
    let arguments = ["apply", "db", "-", "--batch", "1", "--durability", "batched", "--acks", "-"];
    let mut command = scene.command(&arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    stdin.write_all(b"+ 1 77\n+ 1 78\n").unwrap();
    let mut acks = BufReader::new(stdout).lines();
    assert_eq!(acks.next().unwrap().unwrap(), "1");
    let lists: Vec<String> = scene.names_in("db").into_iter().filter(|name| name.starts_with("base-")).collect();
    let whole: Vec<Vec<u8>> = lists.iter().map(|name| std::fs::read(scene.path("db").join(name)).unwrap()).collect();
    for name in &lists {
        std::fs::OpenOptions::new().write(true).open(scene.path("db").join(name)).unwrap().set_len(0).unwrap();
    }
    // The reader of the input may wait for the next line before it passes one on.
    let _ = stdin.write_all(b"+ 3 2\n+ 4 1\n+ 2 1\n");
    drop(stdin);
    let status = child.wait().unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("anden: ") && stderr.lines().count() == 1, "{stderr}");
    assert!(stderr.contains("became shorter while it was read"), "{stderr}");
    scene.anden(&["run", "db", "wcc"]).failed(&["base-"]);
    for (name, bytes) in lists.iter().zip(&whole) {
        std::fs::write(scene.path("db").join(name), bytes).unwrap();
    }
    scene.anden(&["verify", "db"]).succeeded();
    assert_eq!(scene.json(&["query", "db", "edge", "1", "77"])["result"], true);
}

/// Errors far into a file name their place, however the file is read.
#[test]
fn damage_far_into_file_is_named_with_offset() {
    let scene = Scene::new();
    scene.anden(&["generate", "rmat", "--scale", "15", "--degree", "16", "--quiet", "-o", "graph.sg"]).succeeded();
    scene.anden(&["load", "db", "graph.sg", "--ids", "dense"]).succeeded();
    let name = scene.names_in("db").into_iter().find(|name| name.ends_with("-out")).unwrap();
    let path = scene.path("db").join(&name);
    let whole = std::fs::read(&path).unwrap();
    let run = |io: &str| scene.anden(&["run", "db", "kcore", "--io", io]);
    let expected = run("mmap").succeeded().lines().len();
    for io in ["pread", "mmap"] {
        assert_eq!(run(io).succeeded().lines().len(), expected);
        for place in [1_100_000, 1_500_000] {
            let mut bytes = whole.clone();
            bytes[place] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            let ran = run(io).failed(&[&name, "damaged at byte "]);
            let offset = ran.stderr.split("at byte ").nth(1).and_then(|rest| rest.split(':').next()).unwrap();
            let offset: usize = offset.parse().unwrap();
            // The error names the start of a checked block.
            assert!((offset..offset + (256 << 10)).contains(&place), "{place}: {}", ran.stderr);
            std::fs::write(&path, &whole[..place]).unwrap();
            run(io).failed(&[&name, &place.to_string()]);
        }
        std::fs::write(&path, &whole).unwrap();
    }
}
