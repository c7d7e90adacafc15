//! A writer that is killed, again and again.

use std::cell::Cell;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anden::Database;
use testkit::{Random, scaled};

use crate::indexed::{create_indexed, line, num_lines};
use crate::writer::{Writer, anden, create, edge_line, num_edges};

/// The line with a number.
type Line = fn(u64) -> String;
/// Checks a database, and counts the lines that it holds.
type Count = fn(&Path, &str) -> u64;

/// Kills writers of lines after the first `found` again and again. `count` checks the database that each leaves, and gives
/// the number of its lines. Returns the answers, and the lines that were there without an answer.
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
        // Sometimes it is killed while it opens the database.
        for _ in 0..random.below(40) {
            assert!(writer.wait_for_answer(), "{place}");
        }
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
fn nothing_that_was_answered_is_lost_when_the_writer_is_killed() {
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
    // After every other writer, programs that drop and create the unique index are killed, too.
    let change_index = |random: &mut Random, place: &str| {
        if random.below(2) == 0 {
            return;
        }
        kill_index(&database, &["drop", "vertex", "code"], random);
        let has_index = || Database::open_snapshots(&database).unwrap().indexes().len() == 2;
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
    std::thread::sleep(Duration::from_micros(random.below(16_000).into()));
    // Perhaps it has ended.
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
    // Who is asked has it in memory, in a view, and has committed nothing.
    assert!(info["live"]["delta_bytes"].as_u64().unwrap() > 0, "{info}");
    assert!(info["live"]["added"].as_u64().unwrap() > 0, "{info}");
    assert_eq!((info["commits"]["commits"].as_u64(), info["views"]["open"].as_u64()), (Some(0), Some(1)), "{info}");
    // Of all files: the log's are among them.
    let files = std::fs::read_dir(&database).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    let bytes = info["bytes"].as_u64().unwrap();
    assert!(
        bytes.abs_diff(files.sum()) < 64,
        "all but the lock's file, in which is a number, and the log's mark: {info}"
    );
}

#[test]
fn files_cut_under_a_map_end_the_process_at_most_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("db");
    create(&database);
    let mut reader = anden();
    reader.arg("run").arg(&database).args(["pagerank", "--repeat", "1000000", "--quiet"]);
    let mut reader = reader.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let maps = format!("/proc/{}/maps", reader.id());
    while !std::fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("/run-")) {
        assert!(reader.try_wait().unwrap().is_none(), "it reads for long");
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut writer = Writer::apply(&database, &["--batch", "1", "--checkpoint-every", "1000"], 1);
    assert!(writer.wait_for_answer());
    // As where the disk fails, what is mapped cannot be read any more.
    let names = std::fs::read_dir(&database).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let runs: Vec<_> = names.filter(|name| name.starts_with("run-")).map(|name| database.join(name)).collect();
    let contents: Vec<_> = runs.iter().map(|file| std::fs::read(file).unwrap()).collect();
    for file in &runs {
        std::fs::File::options().write(true).open(file).unwrap().set_len(0).unwrap();
    }
    // Who reads gets SIGBUS, and has a last word.
    let ended = reader.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(1) && said.contains("became shorter while it was read"), "{said}");
    let (answered, is_well, _) = writer.end();
    assert!(!is_well, "it could make a snapshot");
    // The disk is well again.
    for (file, content) in runs.iter().zip(&contents) {
        std::fs::write(file, content).unwrap();
    }
    let found = num_edges(&database, "after it");
    assert!(found >= answered, "{found} edges, {answered} were answered");
    let verified = anden().arg("verify").arg(&database).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
}
