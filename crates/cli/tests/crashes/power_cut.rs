//! A writer on a file system that loses all data that is not durable. These tests need the right to mount one.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anden::{Database, Durability, Update};
use anden_testkit::{Random, scaled, skipped, wait_until};

use crate::writer::{Writer, create, num_edges};

/// Shuts file systems down. Reads `PATH FLAG` lines and answers each with a line. Flag 2 loses everything that is not
/// durable; flag 1 keeps the journal.
const SHUTDOWN: &str = "
import fcntl, os, struct, sys
for line in sys.stdin:
    path, flag = line.split()
    directory = os.open(path, os.O_RDONLY)
    fcntl.ioctl(directory, 0x8004587D, struct.pack('I', int(flag)))
    os.close(directory)
    print('done', flush=True)
";

/// A file system for a test.
pub struct FileSystem {
    /// The arguments of `mount`.
    kind: Vec<OsString>,
    pub mounted: PathBuf,
    is_mounted: bool,
    shutdown: Option<(Child, ChildStdin, BufReader<ChildStdout>)>,
}

fn runs(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

impl FileSystem {
    /// An ext4 of `num_mb` MB in a file; `None` if this process may not mount one.
    pub fn new(folder: &Path, num_mb: u64) -> Option<Self> {
        let image = folder.join("image");
        std::fs::File::create(&image).unwrap().set_len(num_mb << 20).unwrap();
        if !runs(Command::new("mkfs.ext4").args(["-q", "-F", "-I", "256"]).arg(&image)) {
            return None;
        }
        Self::of_kind(folder, vec!["-o".into(), "loop".into(), image.into()])
    }

    /// A file system in memory, which loses its content when it is unmounted.
    pub fn in_memory(folder: &Path, num_mb: u64) -> Option<Self> {
        let size = format!("size={num_mb}M");
        Self::of_kind(folder, ["-t", "tmpfs", "-o", &size, "tmpfs"].map(OsString::from).into())
    }

    fn of_kind(folder: &Path, kind: Vec<OsString>) -> Option<Self> {
        let mounted = folder.join("mounted");
        std::fs::create_dir(&mounted).unwrap();
        let mut this = Self { kind, mounted, is_mounted: false, shutdown: None };
        this.mount().then_some(this)
    }

    fn mount(&mut self) -> bool {
        self.is_mounted = runs(Command::new("mount").args(&self.kind).arg(&self.mounted));
        self.is_mounted
    }

    /// Remounts the file system read-only.
    pub fn make_read_only(&self) {
        assert!(runs(Command::new("mount").args(["-o", "remount,ro"]).arg(&self.mounted)));
    }

    fn unmount(&mut self) {
        while self.is_mounted {
            self.is_mounted = !runs(Command::new("umount").arg(&self.mounted));
        }
    }

    /// Cuts the power.
    fn cut(&mut self, flag: u32) {
        let (_, input, output) = self.shutdown.get_or_insert_with(|| {
            let mut command = Command::new("python3");
            let mut process = command
                .args(["-c", SHUTDOWN])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("python3, which the tests need anyway");
            let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
            (process, input, BufReader::new(output))
        });
        writeln!(input, "{} {flag}", self.mounted.display()).unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        assert_eq!(answer, "done\n");
    }
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        if let Some((mut process, input, _)) = self.shutdown.take() {
            drop(input);
            let _ = process.wait();
        }
        if self.is_mounted {
            let _ = runs(Command::new("umount").arg("-l").arg(&self.mounted));
        }
    }
}

#[test]
fn power_cut_loses_no_synced_commit() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut disk) = FileSystem::new(folder.path(), 48) else {
        return skipped("power cuts need the rights to mount a file system, and mkfs.ext4");
    };
    let database = disk.mounted.join("db");
    create(&database);
    disk.unmount();
    assert!(disk.mount());
    let num_cycles = scaled(100);
    let random = &mut Random::new(2);
    let (mut found, mut num_answered, mut num_lost) = (1, 0, 0);
    for cycle in 0..num_cycles {
        let durability = ["sync", "sync", "batched:1", "none"][random.below(4) as usize];
        let every = ["10", "100", "1000"][random.below(3) as usize];
        let flag = 1 + random.below(2);
        let place = format!("cut {cycle}, flag {flag}: {durability}, a snapshot every {every}");
        let arguments = ["--durability", durability, "--batch", "1", "--checkpoint-every", every];
        let mut writer = Writer::apply(&database, &arguments, found);
        for _ in 0..random.below(30) {
            assert!(writer.wait_for_answer(), "{place}");
        }
        // The subject: the power fails at a random time after the last answer.
        std::thread::sleep(Duration::from_micros(random.below(3_000).into()));
        disk.cut(flag);
        let answered = writer.kill();
        disk.unmount();
        assert!(disk.mount(), "{place}");
        let now = num_edges(&database, &place);
        assert!(durability != "sync" || now >= answered, "{place}: {now} edges, {answered} were answered");
        num_answered += answered - found;
        num_lost += answered.saturating_sub(now);
        found = now;
    }
    disk.unmount();
    assert!(num_answered > 5 * num_cycles && num_lost > 0, "{num_answered} answered, {num_lost} lost");
    println!(
        "power cut: {num_cycles} cycles, {num_answered} commits answered; none of those with sync is lost, {num_lost} of \
         the others"
    );
}

/// A handle in this process counts the WAL syncs, because their time depends on the disk.
#[test]
fn batches_are_durable_long_before_the_writer_ends() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut disk) = FileSystem::new(folder.path(), 48) else {
        return skipped("power cuts need the rights to mount a file system, and mkfs.ext4");
    };
    let path = disk.mounted.join("db");
    create(&path);
    disk.unmount();
    assert!(disk.mount());
    let num_cycles = scaled(10);
    let (mut found, mut num_noted, mut num_lost) = (1, 0, 0);
    for cycle in 0..num_cycles {
        let flag = 1 + cycle as u32 % 2;
        let place = format!("cut {cycle}, flag {flag}");
        let database = Database::open(&path).unwrap_or_else(|error| panic!("{place}: {error}"));
        let mut num_answered = found;
        let mut add = || {
            let update = Update::add_edge(num_answered, num_answered + 1);
            database.apply_with(&[update], Durability::Batched(Duration::from_millis(1))).unwrap();
            num_answered += 1;
            num_answered
        };
        let noted = (0..20).map(|_| add()).last().unwrap();
        // The newest counted sync may not cover all commits; neither may the next, which is counted when it begins. The
        // third has ended once a fourth begins.
        let num_syncs = database.metrics().live.log_syncs + 3;
        wait_until("three more syncs of the WAL", || {
            add();
            database.metrics().live.log_syncs >= num_syncs
        });
        let answered = (0..20).map(|_| add()).last().unwrap();
        disk.cut(flag);
        drop(database);
        disk.unmount();
        assert!(disk.mount(), "{place}");
        let now = num_edges(&path, &place);
        assert!(now >= noted, "{place}: {now} edges, {noted} were synced, {answered} were answered");
        num_noted += noted - found;
        num_lost += answered.saturating_sub(now);
        found = now;
    }
    disk.unmount();
    println!(
        "power cut: {num_cycles} cycles, {num_noted} commits in batches are all there, {num_lost} later ones are not"
    );
}
