//! A writer on a full disk.

use std::io::Write;
use std::process::Command;

use anden_testkit::skipped;

use crate::power_cut::FileSystem;
use crate::writer::{Writer, anden, create, edge_line, num_edges};

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
fn space_is_freed_on_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = FileSystem::new(folder.path(), 8) else {
        return skipped("a full disk needs the rights to mount a file system, and mkfs.ext4");
    };
    free(&disk);
}

#[test]
fn space_is_freed_on_a_full_tmpfs() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = FileSystem::in_memory(folder.path(), 8) else {
        return skipped("a full file system in memory needs the rights to mount one");
    };
    free(&disk);
}

/// Frees space by each verb on a disk without a free byte.
fn free(disk: &FileSystem) {
    let database = disk.mounted.join("db");
    let run = |arguments: &[&str]| {
        let ended = anden().arg(arguments[0]).arg(&database).args(&arguments[1..]).output().unwrap();
        (ended.status.success(), String::from_utf8_lossy(&ended.stderr).into_owned())
    };
    create(&database);
    let more = database.with_extension("more");
    for edge in 1..8_u64 {
        std::fs::write(&more, edge_line(edge).trim_start_matches('+')).unwrap();
        assert_eq!(run(&["append", more.to_str().unwrap(), "--quiet", "--no-maintenance"]), (true, String::new()));
    }
    let (filler, reserve) = (disk.mounted.join("filler"), database.join("RESERVE"));
    let verbs: [&[&str]; 4] = [&["drop", "2"], &["retain", "last:4"], &["merge", "--newest", "2"], &["merge"]];
    for verb in verbs {
        assert!(reserve.exists(), "{verb:?}");
        // Fills the disk to the last byte.
        let mut file = std::fs::File::create(&filler).unwrap();
        for chunk in [1 << 16, 512, 1] {
            while file.write_all(&vec![7; chunk]).is_ok() {}
        }
        // An open file would keep its space after its removal below.
        drop(file);
        let refused = run(&["append", more.to_str().unwrap(), "--quiet", "--no-maintenance"]);
        assert!(!refused.0 && refused.1.contains("No space left"), "{verb:?}: {refused:?}");
        let (is_well, said) = run(verb);
        assert!(is_well, "{verb:?}: {said}");
        assert_eq!(num_edges(&database, "on a full disk"), 8, "{verb:?}");
        std::fs::remove_file(&filler).unwrap();
        // There is space, so the next writer makes the reserve again.
        assert_eq!(run(&["retain", "last:6", "--quiet"]), (true, String::new()));
        assert_eq!(run(&["verify", "--quiet"]), (true, String::new()));
    }
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
