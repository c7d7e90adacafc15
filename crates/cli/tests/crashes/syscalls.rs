//! A writer whose calls to the system fail, or are its last. Needs `strace`.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::writer::{Writer, create, num_edges};

/// A writer whose calls are tampered with.
fn tampered(database: &Path, injection: &str, arguments: &[&str]) -> Writer {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("inject={injection}")]);
    command.arg(env!("CARGO_BIN_EXE_anden"));
    command.arg("apply").arg(database).args(["-", "--acks", "-", "--quiet", "--batch", "1"]).args(arguments);
    Writer::start(command, num_edges(database, "before"))
}

fn has_strace() -> bool {
    let tried = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "inject=pwrite64:error=EIO:when=1", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let has_strace = tried.is_ok_and(|status| status.success());
    if !has_strace {
        println!("skipped: failing calls need strace, and the right to use it");
    }
    has_strace
}

#[test]
fn a_kill_at_any_write_or_sync_loses_nothing() {
    if !has_strace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("db");
    create(&database);
    let mut num_answered = 0;
    for call in ["pwrite64", "fdatasync", "fsync"] {
        for at in 1..16 {
            let place = format!("killed at {call} {at}");
            let before = num_edges(&database, &place);
            let mut writer =
                tampered(&database, &format!("{call}:signal=SIGKILL:when={at}"), &["--checkpoint-every", "4"]);
            // Where the call is never made, it would go on for ever.
            let mut is_running = true;
            while is_running && writer.num_answered < before + 40 {
                is_running = writer.wait_for_answer();
            }
            let answered = if is_running { writer.kill() } else { writer.end().0 };
            let found = num_edges(&database, &place);
            assert!(found >= answered, "{place}: {found} edges, {answered} were answered");
            num_answered += answered - before;
        }
    }
    assert!(num_answered > 50, "{num_answered} answers");
}

#[test]
fn a_call_that_fails_ends_writing_by_name_and_loses_nothing() {
    if !has_strace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("db");
    create(&database);
    for (injection, expected) in [
        ("fdatasync:error=EIO:when=3", "cannot sync"),
        ("fdatasync:error=ENOSPC:when=3", "cannot sync"),
        ("pwrite64:error=EIO:when=8", "cannot write"),
        ("pwrite64:error=ENOSPC:when=8", "cannot write"),
    ] {
        let (answered, is_well, said) = tampered(&database, injection, &[]).end();
        assert!(!is_well && said.contains(expected) && said.contains("wal-"), "{injection}: {said}");
        let found = num_edges(&database, injection);
        assert!(found == answered || found == answered + 1, "{injection}: {found} edges, {answered} were answered");
    }
    // An interrupted call and a short one are made again.
    for injection in ["pwrite64:error=EINTR:when=8", "fdatasync:error=EINTR:when=3"] {
        let mut writer = tampered(&database, injection, &[]);
        let first = writer.num_answered;
        while writer.num_answered < first + 20 {
            assert!(writer.wait_for_answer(), "{injection}");
        }
        let answered = writer.kill();
        assert!(num_edges(&database, injection) >= answered, "{injection}");
    }
}
