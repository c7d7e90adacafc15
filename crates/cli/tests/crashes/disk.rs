//! A writer on a full disk.

use std::process::Command;

use anden_testkit::skipped;

use crate::power_cut::FileSystem;
use crate::writer::{Writer, anden, create, num_edges};

#[test]
fn file_size_limit_loses_no_acknowledged_commit() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("db");
    create(&database);
    // The limit counts blocks of 1,024 bytes, in dash and in bash in this mode.
    let script = "ulimit -f 256; exec \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", script, "bash"]).arg(env!("CARGO_BIN_EXE_anden"));
    command.arg("apply").arg(&database).args(["-", "--acks", "-", "--quiet", "--batch", "1"]);
    let (answered, is_well, said) = Writer::start(command, 1).end();
    assert!(!is_well && said.contains("wal-") && said.contains("cannot write"), "{said}");
    assert!(answered > 1_000, "{answered} answers");
    let found = num_edges(&database, "after it");
    assert!(found == answered || found == answered + 1, "{found} edges, {answered} were answered");
    let mut writer = Writer::apply(&database, &["--batch", "1"], found);
    assert!(writer.wait_for_answer(), "there is room again");
    writer.kill();
}

#[test]
fn a_full_disk_refuses_commits_and_keeps_those_before() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = FileSystem::new(folder.path(), 8) else {
        return skipped("a full disk needs the rights to mount a file system, and mkfs.ext4");
    };
    fill(&disk);
}

#[test]
fn full_tmpfs_loses_no_acknowledged_commit() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = FileSystem::in_memory(folder.path(), 8) else {
        return skipped("a full file system in memory needs the rights to mount one");
    };
    fill(&disk);
}

/// Fills a disk of 8 MB except for growing remainders, each time with a writer that runs out of space.
fn fill(disk: &FileSystem) {
    let database = disk.mounted.join("db");
    create(&database);
    let filler = disk.mounted.join("filler");
    let mut found = 1;
    for spare in [0, 96 << 10, 700 << 10] {
        // Whether a filler of `num_bytes` fits. The last filler leaves `spare` bytes, or a little more.
        let left = |num_bytes: usize| std::fs::write(&filler, vec![1; num_bytes]).is_ok();
        let most = (0..8 << 20).step_by(64 << 10).take_while(|&num_bytes| left(num_bytes)).last().unwrap();
        assert!(left(most.saturating_sub(spare)));
        let (answered, is_well, said) = Writer::apply(&database, &["--batch", "100"], found).end();
        assert!(!is_well && said.contains("cannot"), "{spare} bytes left: {said}");
        let place = format!("{spare} bytes left");
        let now = num_edges(&database, &place);
        assert!(now >= answered, "{place}: {now} edges, {answered} were answered");
        std::fs::remove_file(&filler).unwrap();
        found = num_edges(&database, &place);
        let verified = anden().arg("verify").arg(&database).output().unwrap();
        assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    }
    let mut writer = Writer::apply(&database, &["--batch", "1"], found);
    assert!(writer.wait_for_answer(), "there is room again");
    writer.kill();
}

#[test]
fn read_only_disk_serves_readers_and_refuses_writers() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = FileSystem::new(folder.path(), 8) else {
        return skipped("a disk for reading only needs the rights to mount a file system, and mkfs.ext4");
    };
    let database = disk.mounted.join("db");
    create(&database);
    let mut writer = Writer::apply(&database, &["--batch", "1"], 1);
    assert!(writer.wait_for_answer());
    let answered = writer.kill();
    disk.make_read_only();
    let found = num_edges(&database, "for reading only");
    assert!(found >= answered, "{found} edges, {answered} were answered");
    for arguments in [&["run", "wcc"][..], &["verify"], &["info"]] {
        let ended = anden().arg(arguments[0]).arg(&database).args(&arguments[1..]).output().unwrap();
        assert!(ended.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
    }
    let (answered, is_well, said) = Writer::apply(&database, &[], found).end();
    assert!(!is_well && answered == found && said.contains("LOCK") && said.contains("Read-only file system"), "{said}");
    let input = folder.path().join("edges.txt");
    std::fs::write(&input, "0 1\n").unwrap();
    let made = anden().args(["load", "--quiet"]).arg(disk.mounted.join("other")).arg(&input).output().unwrap();
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(!made.status.success() && said.contains("other") && said.contains("Read-only file system"), "{said}");
}
