//! Processes with system calls that fail, or that kill them. These tests need `strace`.

use std::path::Path;
use std::process::{Command, Stdio};

use anden_testkit::skipped;

use crate::writer::{Writer, anden, create, num_edges};

/// The edges that a writer adds. The writer ends by itself, because a kill would hit `strace` instead of the traced
/// program.
const NUM_EDGES: u64 = 30;

/// The program with injected faults in its system calls.
fn tampered(injection: &str) -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("inject={injection}")]);
    command.arg(env!("CARGO_BIN_EXE_anden"));
    command
}

/// A writer with injected faults in its system calls.
fn tampered_writer(database: &Path, injection: &str, arguments: &[&str]) -> Writer {
    let mut command = tampered(injection);
    command.arg("apply").arg(database).args(["-", "--acks", "-", "--quiet", "--batch", "1"]).args(arguments);
    Writer::start_some(command, num_edges(database, "before"), NUM_EDGES)
}

fn has_strace() -> bool {
    let tried = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "inject=pwrite64:error=EIO:when=1", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let has_strace = tried.is_ok_and(|status| status.success());
    if !has_strace {
        skipped("failing calls need strace, and the right to use it");
    }
    has_strace
}

#[test]
fn a_kill_at_any_write_or_sync_loses_nothing() {
    if !has_strace() {
        return;
    }
    let (mut num_kills, mut num_answered) = (0, 0);
    for call in ["pwrite64", "fdatasync", "fsync"] {
        for at in 1.. {
            let place = format!("killed at {call} {at}");
            // A new database, so that all runs make equal calls.
            let folder = tempfile::tempdir().unwrap();
            let database = folder.path().join("db");
            create(&database);
            let before = num_edges(&database, &place);
            let injection = format!("{call}:signal=SIGKILL:when={at}");
            let (answered, is_well, _) = tampered_writer(&database, &injection, &["--checkpoint-every", "4"]).end();
            let found = num_edges(&database, &place);
            assert!(found >= answered, "{place}: {found} edges, {answered} were answered");
            num_answered += answered - before;
            if is_well {
                println!("syscalls: killed at each of {} calls of {call}", at - 1);
                num_kills += at - 1;
                break;
            }
        }
    }
    assert!(num_kills > 100 && num_answered > 50, "{num_kills} kills, {num_answered} answers");
}

#[test]
fn failed_system_call_loses_no_acknowledged_commit() {
    if !has_strace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("db");
    create(&database);
    // With a memory budget, transactions are committed one by one.
    let one_by_one = ["--memory", "1G"];
    for (injection, at, expected) in [
        ("fdatasync:error=EIO", 3, "cannot sync"),
        ("fdatasync:error=ENOSPC", 3, "cannot sync"),
        ("pwrite64:error=EIO", 8, "cannot write"),
        ("pwrite64:error=ENOSPC", 8, "cannot write"),
        // A call that writes nothing and reports that. Files that may not grow cause one that writes a part.
        ("pwrite64:retval=0", 8, "cannot write"),
    ] {
        // About every second call is for the mark of the WAL, without which commits go on.
        let runs = (at..at + 20).map(|at| tampered_writer(&database, &format!("{injection}:when={at}"), &one_by_one));
        let (answered, _, said) = runs.map(Writer::end).find(|(_, is_well, _)| !is_well).expect(injection);
        assert!(said.contains(expected) && said.contains("wal-"), "{injection}: {said}");
        let found = num_edges(&database, injection);
        assert!(found == answered || found == answered + 1, "{injection}: {found} edges, {answered} were answered");
    }
    // The program repeats interrupted and short calls.
    for injection in ["pwrite64:error=EINTR:when=8", "fdatasync:error=EINTR:when=3"] {
        let before = num_edges(&database, injection);
        let (answered, is_well, said) = tampered_writer(&database, injection, &one_by_one).end();
        assert!(is_well, "{injection}: {said}");
        let expected = before + NUM_EDGES;
        assert_eq!((answered, num_edges(&database, injection)), (expected, expected), "{injection}");
    }
}

#[test]
fn failed_pread_names_file_and_offset() {
    if !has_strace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("db");
    create(&database);
    let mut num_refused = 0;
    for at in 1.. {
        let mut command = tampered(&format!("pread64:error=EIO:when={at}"));
        let ended = command.arg("run").arg(&database).args(["wcc", "--io", "pread"]).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        // The loader reads before the program does.
        if said.contains("loading shared libraries") || said.contains("relocation error") {
            continue;
        }
        if ended.status.success() {
            break;
        }
        assert!(
            said.contains("cannot read") && said.contains("db/") && said.contains("from byte 0 on"),
            "{at}: {said}"
        );
        assert_eq!(ended.status.code(), Some(1), "{at}: {said}");
        num_refused += 1;
    }
    assert!(num_refused > 1, "{num_refused} reads that failed");
    let verified = anden().arg("verify").arg(&database).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
}
