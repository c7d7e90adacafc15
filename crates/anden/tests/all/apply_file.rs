//! Files of updates: batches in flight are separate transactions.

use std::io::{Write, pipe};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use anden::changes::{ApplyOptions, ApplyReport};
use anden::load::InputPath;
use anden::{Database, Error, KeyScheme, Options, Result};
use tempfile::TempDir;

/// A folder with a database in it and a file of these updates.
fn scene(updates: &str) -> (TempDir, Database, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let db =
        Database::create(folder.path().join("db"), Options { keys: KeyScheme::Dense, ..Options::default() }).unwrap();
    let file = folder.path().join("updates.txt");
    std::fs::write(&file, updates).unwrap();
    (folder, db, file)
}

/// Applies a file in batches of ten. Returns the answered lines too.
fn apply(db: &Database, file: &Path, strict: bool) -> (Result<ApplyReport>, Vec<u64>) {
    let mut answered = Vec::new();
    let options = ApplyOptions { batch: 10, strict, ..ApplyOptions::default() };
    let report = db.apply_file(&InputPath::File(file.to_owned()), &options, |line| {
        answered.push(line);
        Ok(())
    });
    (report, answered)
}

fn additions(range: std::ops::Range<u32>) -> String {
    range.map(|i| format!("+ {i} {}\n", i + 1)).collect()
}

#[test]
fn small_batches_are_committed_and_synced_together() {
    let (_folder, db, file) = scene(&additions(0..1_000));
    let (report, answered) = apply(&db, &file, false);
    let report = report.unwrap();
    assert_eq!((report.updates, report.transactions), (1_000, 100));
    assert!(answered.into_iter().eq((10..=1_000).step_by(10)));
    let (stats, live) = (db.metrics().commits, db.metrics().live);
    assert_eq!((stats.commits, stats.groups, stats.largest_group, live.log_syncs), (100, 1, 100, 1));
    assert_eq!(db.view().unwrap().num_edges(), 1_000);
}

/// The line is invalid, does not fit the graph, or names a missing edge in strict mode.
#[test]
fn only_batches_before_a_bad_line_are_applied() {
    for (wrong, strict) in [("+ 7\n", false), ("+ 7 8 5\n", false), ("+ x 8\n", false), ("- 500 600\n", true)] {
        let vertices: String = (0..200).map(|i| format!("v+ {i}\n")).collect();
        let updates = [&vertices, &additions(0..45), wrong, &additions(45..100)].concat();
        let (_folder, db, file) = scene(&updates);
        let (report, answered) = apply(&db, &file, strict);
        let error = report.unwrap_err();
        assert!(
            matches!(&error, Error::InvalidInput(what) if what.as_str().contains("updates.txt:246: ")),
            "{wrong}: {error}"
        );
        assert!(answered.into_iter().eq((10..=240).step_by(10)), "{wrong}");
        assert_eq!(db.view().unwrap().num_edges(), 40, "{wrong}");
        // A later file is applied.
        std::fs::write(&file, additions(100..130)).unwrap();
        apply(&db, &file, strict).0.unwrap();
        assert_eq!(db.view().unwrap().num_edges(), 70, "{wrong}");
    }
}

/// The writer of a pipe may wait for an answer before it writes more.
#[test]
fn complete_lines_of_open_pipe_are_acknowledged() {
    let (_folder, db, _) = scene("");
    let (reader, mut writer) = pipe().unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
    let (sender, answers) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for batch in 0..5_u32 {
                // The batch and half a line more.
                let lines = additions(batch * 10..batch * 10 + 10);
                let lines = if batch == 0 { &lines[..] } else { &lines["+ ".len()..] };
                writer.write_all([lines, "+ "].concat().as_bytes()).unwrap();
                let answer = answers.recv_timeout(Duration::from_secs(60));
                assert_eq!(answer, Ok(u64::from(batch) * 10 + 10));
            }
            writer.write_all(b"77 78\n").unwrap();
        });
        let options = ApplyOptions { batch: 10, ..ApplyOptions::default() };
        let report = db.apply_file(&InputPath::File(path), &options, |line| {
            let _ = sender.send(line);
            Ok(())
        });
        assert_eq!(report.unwrap().transactions, 6);
    });
    assert_eq!(db.view().unwrap().num_edges(), 51);
    drop(reader);
}
