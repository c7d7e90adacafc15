//! A writer that is killed repeatedly.

use std::cell::Cell;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anden::{Database, OpenOptions};
use anden_testkit::{Random, scaled, wait_until};

use crate::indexed::{create_indexed, line, num_lines};
use crate::writer::{Writer, anden, create, create_path, edge_line, num_edges};

/// The line with this number.
type Line = fn(u64) -> String;
/// Checks a database, and counts the lines that it holds.
type Count = fn(&Path, &str) -> u64;

/// Repeatedly kills writers that add lines after the first `found`. `count` checks each remaining database and returns
/// its number of lines. Returns the answered lines, and the lines that survived without an answer.
fn kill_cycles(
    database: &Path,
    num_cycles: u64,
    (line, count): (Line, Count),
    between: impl Fn(&mut Random, &str),
) -> (u64, u64) {
    let seed = std::env::var("ANDEN_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("seed {seed}");
    let random = &mut Random::new(seed);
    let mut found = count(database, "first");
    let (mut num_answered, mut num_unanswered) = (0, 0);
    for cycle in 0..num_cycles {
        let durability = ["sync", "batched:1", "none"][random.below(3) as usize];
        let every = ["10", "100", "1000"][random.below(3) as usize];
        let batch = ["1", "7"][random.below(2) as usize];
        let place = format!("cycle {cycle}: {durability}, batches of {batch}, a snapshot every {every}");
        let arguments = ["--durability", durability, "--batch", batch, "--checkpoint-every", every];
        let mut writer = Writer::apply_lines(database, &arguments, found, line);
        // Without an answer, it is killed while it opens the database.
        for _ in 0..random.below(40) {
            assert!(writer.wait_for_answer(), "{place}");
        }
        // The subject: the writer is killed at a random time after an answer.
        std::thread::sleep(Duration::from_micros(random.below(4_000).into()));
        let answered = writer.kill();
        let now = count(database, &place);
        assert!(now >= found, "{place}: {now} lines, {found} before");
        assert!(durability == "none" || now >= answered, "{place}: {now} lines, {answered} were answered");
        num_answered += answered - found;
        num_unanswered += now.saturating_sub(answered);
        found = now;
        between(random, &place);
    }
    assert!(num_answered > 10 * num_cycles, "{num_answered} answers");
    (num_answered, num_unanswered)
}

#[test]
fn killed_writer_loses_no_acknowledged_commit() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("db");
    create(&database);
    let num_cycles = scaled(200);
    let (answered, unanswered) = kill_cycles(&database, num_cycles, (edge_line, num_edges), |_, _| {});
    println!("kill: {num_cycles} cycles, {answered} commits answered, 0 lost, {unanswered} more were there");
}

#[test]
fn indexes_agree_with_values_after_each_kill() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("db");
    create_indexed(&database);
    let num_cycles = scaled(40);
    let (num_kept, num_created) = (Cell::new(0), Cell::new(0));
    // After every second writer, a program that drops or creates the unique index is killed too.
    let change_index = |random: &mut Random, place: &str| {
        if random.below(2) == 0 {
            return;
        }
        kill_index(&database, &["drop", "vertex", "code"], random);
        let has_index = || {
            Database::open_with(&database, &OpenOptions { snapshots_only: true, ..OpenOptions::default() })
                .unwrap()
                .indexes()
                .len()
                == 2
        };
        num_kept.set(num_kept.get() + u64::from(has_index()));
        while !has_index() {
            kill_index(&database, &["create", "vertex", "code", "--unique"], random);
            num_created.set(num_created.get() + 1);
        }
        num_lines(&database, place);
    };
    let (answered, unanswered) = kill_cycles(&database, num_cycles, (line, num_lines), change_index);
    let (kept, created) = (num_kept.get(), num_created.get());
    println!("kill: {num_cycles} cycles, {answered} lines answered, 0 lost, {unanswered} more were there");
    println!("kill: {kept} indexes survived their drop, {created} programs tried to create one");
}

/// Kills `anden index` after a random time, or lets it end.
fn kill_index(database: &Path, arguments: &[&str], random: &mut Random) {
    let mut changing = anden();
    changing.args(["index", "--quiet"]).arg(database).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    let mut changing = changing.spawn().unwrap();
    // The subject: the program is killed at a random time.
    std::thread::sleep(Duration::from_micros(random.below(16_000).into()));
    // The program may have ended already.
    let _ = changing.kill();
    changing.wait().unwrap();
}

#[test]
fn the_log_that_a_killed_writer_left_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("db");
    create(&database);
    let mut writer = Writer::apply(&database, &["--batch", "1"], 1);
    assert!(writer.wait_for_answer());
    writer.kill();
    let shown = anden().arg("info").arg(&database).arg("--json").output().unwrap();
    let info: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert!(info["log"]["bytes"].as_u64().unwrap() > 0, "{info}");
    assert_eq!(info["live"]["log_bytes"], info["log"]["bytes"]);
    // The `info` process holds the WAL's changes in memory and in a view, and has committed nothing.
    assert!(info["live"]["delta_bytes"].as_u64().unwrap() > 0, "{info}");
    assert!(info["live"]["added"].as_u64().unwrap() > 0, "{info}");
    assert_eq!((info["commits"]["commits"].as_u64(), info["views"]["open"].as_u64()), (Some(0), Some(1)), "{info}");
    // The bytes of all files, those of the WAL included.
    let files = std::fs::read_dir(&database).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    let bytes = info["bytes"].as_u64().unwrap();
    assert!(
        bytes.abs_diff(files.sum()) < 64,
        "all but the lock's file, in which is a number, and the log's mark: {info}"
    );
}

#[test]
fn truncated_mapped_files_lose_no_commit() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("db");
    // Enough that the files are mapped.
    const NUM_EDGES: u64 = 40_000;
    create_path(&database, NUM_EDGES);
    let mut reader = anden();
    reader.arg("run").arg(&database).args(["pagerank", "--repeat", "1000000", "--quiet"]);
    let mut reader = reader.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let maps = format!("/proc/{}/maps", reader.id());
    wait_until("the reader maps the base", || {
        assert!(reader.try_wait().unwrap().is_none(), "it reads for long");
        std::fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("/base-"))
    });
    let mut writer = Writer::apply(&database, &["--batch", "1", "--checkpoint-every", "1000"], NUM_EDGES);
    assert!(writer.wait_for_answer());
    // Mapped pages become unreadable, as after a disk failure.
    let names = std::fs::read_dir(&database).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let runs: Vec<_> = names.filter(|name| name.starts_with("base-")).map(|name| database.join(name)).collect();
    let contents: Vec<_> = runs.iter().map(|file| std::fs::read(file).unwrap()).collect();
    for file in &runs {
        std::fs::File::options().write(true).open(file).unwrap().set_len(0).unwrap();
    }
    // The reader gets SIGBUS and prints a message.
    let ended = reader.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(1) && said.contains("became shorter while it was read"), "{said}");
    let (answered, is_well, _) = writer.end();
    assert!(!is_well, "it could make a snapshot");
    // The files are whole again.
    for (file, content) in runs.iter().zip(&contents) {
        std::fs::write(file, content).unwrap();
    }
    let found = num_edges(&database, "after it");
    assert!(found >= answered, "{found} edges, {answered} were answered");
    let verified = anden().arg("verify").arg(&database).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
}
