//! Backups beside writers, merges and power cuts; increments; what a restoration refuses.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anden_base::parallel::Pool;
use anden_base::progress::{CancelFlag, Progress, Silent};
use anden_base::storage::Storage;
use anden_engine::{
    AppendOptions, BackupOptions, BackupReport, BackupTarget, Changes, Durability, Engine, ErrorKind, GraphOptions,
    MergeScope, Missing, RestoreOptions, RestoreReport, Result, SnapshotView, Update, restore_in,
};
use anden_graph::{Direction, Graph};
use anden_testkit::{FaultPlan, FaultStorage, crash_every_call, scaled};

const DB: &str = "db";

fn pool() -> Pool {
    Pool::new(2).unwrap()
}

fn create(disk: &FaultStorage) -> Engine {
    let db = Engine::create_in(Arc::new(disk.clone()), Path::new(DB), GraphOptions::default()).unwrap();
    // Checkpoints come when a test asks for them.
    db.set_checkpoint_bytes(None);
    db
}

/// Commits one edge from each of these vertices to the next.
fn commit(db: &Engine, vertices: std::ops::Range<u64>) {
    let updates: Vec<_> = vertices.map(|v| Update::add_edge(v, v + 1)).collect();
    db.apply(&updates, Missing::Lenient, &pool()).unwrap();
}

fn append(db: &Engine, vertices: std::ops::Range<u64>) {
    let changes = vertices.fold(Changes::default(), |changes, v| changes.add_edge(v, v + 1));
    db.append_changes(&changes, &AppendOptions::default(), &pool(), &Silent).unwrap();
}

fn target(name: &str) -> BackupTarget<'static> {
    match name.ends_with(".tar.zst") {
        true => BackupTarget::Archive(name.into()),
        false => BackupTarget::Directory(name.into()),
    }
}

fn back_up(db: &Engine, disk: &FaultStorage, name: &str, since: Option<&str>) -> Result<BackupReport> {
    let options = BackupOptions { since: since.map(PathBuf::from), limit_rate: None };
    db.backup_in(Arc::new(disk.clone()), target(name), &options, &Silent)
}

fn restore(disk: &FaultStorage, sources: &[&str], path: &str) -> Result<RestoreReport> {
    restore_with(disk, sources, path, RestoreOptions::default())
}

fn restore_with(disk: &FaultStorage, sources: &[&str], path: &str, options: RestoreOptions) -> Result<RestoreReport> {
    let sources: Vec<_> = sources.iter().map(PathBuf::from).collect();
    restore_in(Arc::new(disk.clone()), Path::new(path), &sources, options, &pool(), &Silent)
}

/// Requires that `result` failed with these words.
fn failed<T: std::fmt::Debug>(result: Result<T>, words: &[&str]) {
    let error = result.unwrap_err().to_string();
    assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
}

/// The edges by key.
fn edges(view: &SnapshotView) -> Vec<(String, String)> {
    let mut edges = Vec::new();
    let key = |id| view.key(id).unwrap().to_string();
    for v in 0..view.vertex_bound() as u32 {
        let _ = view.for_each_fragment(Direction::Out, v, |targets| {
            edges.extend(targets.iter().map(|&target| (key(v), key(target))));
            std::ops::ControlFlow::Continue(())
        });
    }
    edges.sort_unstable();
    edges
}

fn open(disk: &FaultStorage, path: &str) -> Engine {
    let db = Engine::open_in(Arc::new(disk.clone()), Path::new(path)).unwrap();
    db.verify(&pool()).unwrap();
    db
}

/// A database with two snapshots, commits behind them, a backup of that, then more of all, and an increment.
fn with_backups(disk: &FaultStorage, ending: &str) -> (Engine, [BackupReport; 2]) {
    let db = create(disk);
    append(&db, 0..3000);
    commit(&db, 3000..3100);
    let full = back_up(&db, disk, &format!("full{ending}"), None).unwrap();
    commit(&db, 3100..3110);
    db.checkpoint(Some("named")).unwrap();
    commit(&db, 3110..3120);
    let increment = back_up(&db, disk, &format!("increment{ending}"), Some(&format!("full{ending}"))).unwrap();
    (db, [full, increment])
}

#[test]
fn restored_database_equals_the_state_of_the_backup() {
    for ending in ["", ".tar.zst"] {
        let disk = FaultStorage::default();
        let (db, [full, increment]) = with_backups(&disk, ending);
        let [first, second] = ["full", "increment"].map(|name| format!("{name}{ending}"));
        let before = edges(&db.view().unwrap());
        commit(&db, 5000..5001);
        let report = restore(&disk, &[&first], "old").unwrap();
        assert_eq!((report.epoch, report.num_edges, report.num_vertices), (full.epoch, 3100, 3101));
        let report = restore(&disk, &[&first, &second], "new").unwrap();
        assert_eq!((report.epoch, report.num_edges), (increment.epoch, 3120));
        assert_eq!((report.source_history, report.num_snapshots), (full.history, db.snapshots().len()));
        assert_ne!(report.history, full.history);
        assert!(!disk.list(Path::new("new")).unwrap().iter().any(|name| name.starts_with("tmp-")));
        for (path, num_edges) in [("old", 3100), ("new", 3120)] {
            let restored = open(&disk, path);
            assert_eq!(restored.view().unwrap().num_edges(), num_edges, "{path}");
            if path == "new" {
                assert_eq!(edges(&restored.view().unwrap()), before);
                assert!(restored.snapshot_number("named").is_some());
            }
            // It is a database like any other.
            commit(&restored, 6000..6010);
            restored.merge(MergeScope::All, &pool(), &Silent).unwrap();
            restored.close().unwrap();
            assert_eq!(open(&disk, path).view().unwrap().num_edges(), num_edges + 10);
        }
    }
}

#[test]
fn increment_copies_only_new_files() {
    let disk = FaultStorage::default();
    let (db, [full, increment]) = with_backups(&disk, "");
    assert_eq!((full.parent, increment.parent), (None, Some(full.id)));
    assert!(full.num_bytes == full.state_bytes && increment.num_bytes < full.num_bytes / 4, "{increment:?}");
    let named = |backup: &str| disk.list(Path::new(backup)).unwrap();
    let is_data = |name: &String| name != "BACKUP" && !name.starts_with("wal-");
    assert!(named("increment").iter().filter(|name| is_data(name)).all(|name| !named("full").contains(name)));
    // The bytes in the directory are those of the report and of the list.
    let bytes = |backup: &str| -> u64 {
        let names = named(backup).into_iter().filter(|name| name != "BACKUP");
        names.map(|name| disk.file_len(&Path::new(backup).join(name)).unwrap()).sum()
    };
    assert_eq!((bytes("full"), bytes("increment")), (full.num_bytes, increment.num_bytes));
    // Without a change, only the WAL is copied.
    let unchanged = back_up(&db, &disk, "unchanged", Some("increment")).unwrap();
    assert!(named("unchanged").iter().all(|name| !is_data(name)), "{:?}", named("unchanged"));
    assert!(unchanged.num_bytes < 4096, "{unchanged:?}");
    let report = restore(&disk, &["full", "increment", "unchanged"], "new").unwrap();
    assert_eq!(report.num_edges, 3120);
    // A merge writes all files anew. The files of the increment in between are not needed then.
    db.checkpoint(None).unwrap();
    db.merge(MergeScope::All, &pool(), &Silent).unwrap();
    back_up(&db, &disk, "merged", Some("full")).unwrap();
    assert_eq!(restore(&disk, &["full", "merged"], "newer").unwrap().num_edges, 3120);
}

#[test]
fn sources_in_a_wrong_order_are_refused() {
    let disk = FaultStorage::default();
    let (db, _) = with_backups(&disk, "");
    back_up(&db, &disk, "third", Some("increment")).unwrap();
    failed(restore(&disk, &[], "new"), &["no backup is named"]);
    failed(restore(&disk, &["increment"], "new"), &["increment builds on the backup", "the full backup first"]);
    failed(restore(&disk, &["increment", "full"], "new"), &["increment builds on"]);
    failed(restore(&disk, &["full", "third"], "new"), &["third builds on"]);
    failed(restore(&disk, &["full", "full"], "new"), &["full is a full backup"]);
    assert_eq!(restore(&disk, &["absent"], "new").unwrap_err().kind(), ErrorKind::NotFound);
    assert!(!disk.exists(Path::new("new")).unwrap(), "nothing is left of an attempt");
    failed(restore(&disk, &["full"], DB), &["db: exists already"]);
    assert_eq!(open_reader(&disk).view().unwrap().num_edges(), 3120);
    failed(back_up(&db, &disk, "full", None), &["full: exists already"]);
}

fn open_reader(disk: &FaultStorage) -> Engine {
    Engine::open_read_only_in(Arc::new(disk.clone()), Path::new(DB)).unwrap()
}

#[test]
fn another_history_is_refused_by_name() {
    let disk = FaultStorage::default();
    let (db, [full, _]) = with_backups(&disk, "");
    let report = restore(&disk, &["full"], "new").unwrap();
    let restored = open(&disk, "new");
    let histories = [&*full.history.to_string(), &*report.history.to_string()];
    failed(back_up(&restored, &disk, "other", Some("full")), &[histories[0], histories[1], "make a full backup"]);
    assert!(!disk.exists(Path::new("other")).unwrap());
    back_up(&restored, &disk, "other", None).unwrap();
    failed(restore(&disk, &["full", "other"], "third"), &[histories[0], histories[1], "cannot restore"]);
    drop(restored);
    drop(db);
    // A file of the original is refused in the restored database.
    let name = disk.list(Path::new("full")).unwrap().into_iter().find(|name| name.starts_with("base-")).unwrap();
    disk.set_contents(&Path::new("new").join(&name), &disk.contents(&Path::new("full").join(&name)).unwrap());
    let error = Engine::open_in(Arc::new(disk.clone()), Path::new("new")).unwrap_err();
    assert!(error.to_string().contains("belongs to another database"), "{error}");
}

#[test]
fn damage_is_refused_with_the_name_of_the_file() {
    let disk = FaultStorage::default();
    let (db, _) = with_backups(&disk, "");
    for name in disk.list(Path::new("full")).unwrap() {
        let path = Path::new("full").join(&name);
        let whole = disk.contents(&path).unwrap();
        let mut damaged = whole.clone();
        let place = whole.len() / 2;
        damaged[place] ^= 16;
        for bytes in [&damaged[..], &whole[..place], &[]] {
            disk.set_contents(&path, bytes);
            let error = restore(&disk, &["full"], "new").unwrap_err();
            let (text, kind) = (error.to_string(), error.kind());
            assert!(kind == ErrorKind::Corrupt && text.starts_with(&path.display().to_string()), "{text}");
            assert!(!disk.exists(Path::new("new")).unwrap());
        }
        disk.remove_file(&path).unwrap();
        let error = restore(&disk, &["full"], "new").unwrap_err().to_string();
        assert!(error.contains(&name) && error.contains("full"), "{error}");
        disk.create(&path).unwrap();
        disk.set_contents(&path, &whole);
    }
    restore(&disk, &["full"], "new").unwrap();
    // The merged base has lists, which opening does not verify.
    db.merge(MergeScope::All, &pool(), &Silent).unwrap();
    drop(db);
    // Damage in the database is refused by the backup.
    let name = disk.list(Path::new(DB)).unwrap().into_iter().find(|name| name.ends_with("-out")).unwrap();
    let path = Path::new(DB).join(name);
    let mut bytes = disk.contents(&path).unwrap();
    bytes[4096] ^= 1;
    disk.set_contents(&path, &bytes);
    let db = Engine::open_snapshots_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
    failed(back_up(&db, &disk, "second", None), &[&path.display().to_string(), "damaged at byte 4096"]);
    assert!(!disk.exists(Path::new("second")).unwrap());
}

#[test]
fn cut_or_damaged_archive_is_refused() {
    let disk = FaultStorage::default();
    with_backups(&disk, ".tar.zst");
    let path = Path::new("full.tar.zst");
    let whole = disk.contents(path).unwrap();
    for tenth in 0..10 {
        let place = whole.len() * tenth / 10;
        let mut damaged = whole.clone();
        damaged[place] ^= 16;
        for bytes in [&damaged[..], &whole[..place]] {
            disk.set_contents(path, bytes);
            let error = restore(&disk, &["full.tar.zst"], "new").unwrap_err().to_string();
            assert!(error.contains("full.tar.zst"), "{error}");
            assert!(!disk.exists(Path::new("new")).unwrap());
        }
    }
}

#[test]
fn archive_with_other_entries_is_refused() {
    use tar::EntryType;
    let cases = [
        ("../base-000001-out", EntryType::Regular),
        ("notes", EntryType::Regular),
        ("LOCK", EntryType::Regular),
        ("sub/base-000001-out", EntryType::Regular),
        ("base-000001-out", EntryType::Symlink),
        ("base-000001-out", EntryType::Char),
    ];
    for (name, entry_type) in cases {
        let disk = FaultStorage::default();
        let mut header = tar::Header::new_gnu();
        // Not by `set_path`, which refuses such names.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(0);
        header.set_entry_type(entry_type);
        header.set_link_name("elsewhere").unwrap();
        header.set_cksum();
        let mut archive = header.as_bytes().to_vec();
        archive.extend([0; 1024]);
        disk.create(Path::new("x.tar.zst")).unwrap();
        disk.set_contents(Path::new("x.tar.zst"), &zstd::encode_all(&archive[..], 1).unwrap());
        failed(restore(&disk, &["x.tar.zst"], "new"), &["x.tar.zst", name, "no file of a backup"]);
        assert!(!disk.exists(Path::new("new")).unwrap());
    }
}

/// The archive `full.tar.zst` with an entry of 8 bytes before the others.
fn with_entry(disk: &FaultStorage, name: &str) {
    let path = Path::new("full.tar.zst");
    let mut header = tar::Header::new_gnu();
    header.set_path(name).unwrap();
    header.set_size(8);
    header.set_entry_type(tar::EntryType::Regular);
    header.set_cksum();
    let whole = zstd::decode_all(&*disk.contents(path).unwrap()).unwrap();
    let archive = [header.as_bytes(), &[7; 512][..], &whole].concat();
    disk.set_contents(path, &zstd::encode_all(&archive[..], 1).unwrap());
}

#[test]
fn an_archive_is_unpacked_as_its_list_says() {
    // A file that the list lacks, and one that has another length there.
    for name in ["base-999999-out", "wal-000007", "wal-000001"] {
        let disk = FaultStorage::default();
        with_backups(&disk, ".tar.zst");
        let names = |disk: &FaultStorage| disk.list(Path::new("")).unwrap();
        let before = names(&disk);
        with_entry(&disk, name);
        failed(restore(&disk, &["full.tar.zst"], "new"), &["full.tar.zst", name, "no such file of 8 bytes"]);
        assert_eq!(names(&disk), before);
    }
}

#[test]
fn the_rest_of_a_killed_archive_is_replaced() {
    let disk = FaultStorage::default();
    disk.create(Path::new("tmp-full.tar.zst")).unwrap().write_at(0, &[1; 100_000]).unwrap();
    let (_db, _) = with_backups(&disk, ".tar.zst");
    assert_eq!(disk.list(Path::new("")).unwrap(), [DB, "full.tar.zst", "increment.tar.zst"]);
    assert_eq!(restore(&disk, &["full.tar.zst"], "new").unwrap().num_edges, 3100);
}

#[test]
fn second_backup_to_one_archive_ends_the_first() {
    /// Begins another backup once the first bytes were copied.
    struct BacksUpMeanwhile<'a>(&'a Engine, &'a FaultStorage, AtomicBool);
    impl Progress for BacksUpMeanwhile<'_> {
        fn advance(&self, _amount: u64) {
            if !self.2.swap(true, Ordering::Relaxed) {
                back_up(self.0, self.1, "full.tar.zst", None).unwrap();
                self.1.rename(Path::new("full.tar.zst"), Path::new("second.tar.zst")).unwrap();
            }
        }
    }
    let disk = FaultStorage::default();
    let db = create(&disk);
    append(&db, 0..100);
    let progress = BacksUpMeanwhile(&db, &disk, AtomicBool::new(false));
    let options = BackupOptions::default();
    let result = db.backup_in(Arc::new(disk.clone()), target("full.tar.zst"), &options, &progress);
    failed(result, &["full.tar.zst", "another backup"]);
    assert_eq!(disk.list(Path::new("")).unwrap(), [DB, "second.tar.zst"]);
    assert_eq!(restore(&disk, &["second.tar.zst"], "new").unwrap().num_edges, 100);
}

#[test]
fn interrupted_backup_is_none() {
    let start = || {
        let disk = FaultStorage::default();
        let db = create(&disk);
        append(&db, 0..100);
        commit(&db, 100..200);
        (disk, db)
    };
    for name in ["backup", "backup.tar.zst"] {
        let act = |disk: &FaultStorage, db| back_up(&db, disk, name, None);
        crash_every_call(scaled(4), start, act, |result, disk, place| {
            let restored = restore(disk, &[name], "new");
            // A backup that was answered is whole. Another one is whole, or is refused.
            assert!(result.is_err() || restored.is_ok(), "{name}, {place}: {restored:?}");
            if restored.is_ok() {
                assert_eq!(open(disk, "new").view().unwrap().num_edges(), 200);
            }
            assert_eq!(open(disk, DB).view().unwrap().num_edges(), 200);
        });
    }
}

#[test]
fn failed_backup_leaves_nothing_behind() {
    for name in ["backup", "backup.tar.zst"] {
        let mut call = 0;
        loop {
            let disk = FaultStorage::default();
            let db = create(&disk);
            append(&db, 0..100);
            commit(&db, 100..200);
            disk.set_plan(FaultPlan::FailAt(disk.num_calls() + call, std::io::ErrorKind::StorageFull));
            let result = back_up(&db, &disk, name, None);
            disk.set_plan(FaultPlan::Never);
            commit(&db, 200..201);
            match result {
                Ok(_) => break,
                // The last sync of the directory fails behind the rename: the backup is there, and whole.
                Err(_) if restore(&disk, &[name], "new").is_ok() => {}
                Err(_) => {
                    let left: Vec<_> = disk.list(Path::new("")).unwrap();
                    assert_eq!(left, [DB], "{name}, call {call}");
                }
            }
            call += 1;
        }
        assert!(call > 3, "{call} calls");
    }
}

/// A disk with a backup of 200 edges, half of them in the WAL.
fn disk_with_backup() -> FaultStorage {
    let disk = FaultStorage::default();
    let db = create(&disk);
    append(&db, 0..100);
    commit(&db, 100..200);
    back_up(&db, &disk, "backup", None).unwrap();
    disk
}

#[test]
fn interrupted_restoration_leaves_no_database() {
    let disk = disk_with_backup();
    let act = |disk: &FaultStorage, ()| restore(disk, &["backup"], "new");
    crash_every_call(
        scaled(4),
        || (disk.duplicate(), ()),
        act,
        |result, disk, place| {
            match Engine::open_in(Arc::new(disk.clone()), Path::new("new")) {
                Ok(restored) => assert_eq!(restored.view().unwrap().num_edges(), 200),
                Err(error) => {
                    assert!(result.is_err(), "{error}");
                    assert_eq!(error.kind(), ErrorKind::NotFound, "{place}: {error}");
                    // The next attempt clears the remains.
                    let restored = restore(disk, &["backup"], "new");
                    assert!(restored.is_ok(), "{place}: {restored:?}");
                    assert_eq!(open(disk, "new").view().unwrap().num_edges(), 200);
                }
            }
        },
    );
}

#[test]
fn failed_restoration_leaves_nothing_or_a_whole_database() {
    let (disk, mut call) = (disk_with_backup(), 0);
    loop {
        let disk = disk.duplicate();
        disk.set_plan(FaultPlan::FailAt(disk.num_calls() + call, std::io::ErrorKind::StorageFull));
        let result = restore(&disk, &["backup"], "new");
        disk.set_plan(FaultPlan::Never);
        if disk.exists(Path::new("new/MANIFEST")).unwrap_or(false) {
            assert_eq!(open(&disk, "new").view().unwrap().num_edges(), 200, "call {call}");
        } else {
            // The failing call may be one of the removal. The next attempt clears the remains.
            let restored = restore(&disk, &["backup"], "new");
            assert!(restored.is_ok(), "call {call}: {restored:?}");
            assert_eq!(open(&disk, "new").view().unwrap().num_edges(), 200, "call {call}");
        }
        if result.is_ok() {
            break;
        }
        call += 1;
    }
    assert!(call > 10, "{call} calls");
}

#[test]
fn a_wal_is_replayed_within_the_memory() {
    let disk = disk_with_backup();
    let options = RestoreOptions { memory: Some(1 << 10), ..RestoreOptions::default() };
    failed(restore_with(&disk, &["backup"], "new", options), &["the WAL", "memory"]);
    assert!(!disk.exists(Path::new("new")).unwrap());
    restore_with(&disk, &["backup"], "new", RestoreOptions { memory: Some(64 << 20), ..options }).unwrap();
}

#[test]
fn a_rate_of_nothing_is_refused() {
    let disk = disk_with_backup();
    let options = RestoreOptions { limit_rate: Some(0), ..RestoreOptions::default() };
    let error = restore_with(&disk, &["backup"], "new", options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let options = BackupOptions { since: None, limit_rate: Some(0) };
    let result = open_reader(&disk).backup_in(Arc::new(disk.clone()), target("other"), &options, &Silent);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(disk.list(Path::new("")).unwrap(), ["backup", DB]);
}

#[test]
fn backups_beside_a_writer_are_prefixes() {
    let disk = FaultStorage::default();
    let db = create(&disk);
    // Checkpoints and merges run all the time.
    db.set_checkpoint_bytes(Some(2 << 10));
    let (is_over, num_commits) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut names = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let pool = Pool::new(1).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                let v = num_commits.load(Ordering::Relaxed);
                let durability = if v % 64 == 0 { Durability::Sync } else { Durability::None };
                db.apply_with(&[Update::add_edge(v, v + 1)], Missing::Lenient, durability, &pool).unwrap();
                num_commits.store(v + 1, Ordering::Release);
            }
        });
        let reader = open_reader(&disk);
        for number in 0..scaled(8) {
            let answered = num_commits.load(Ordering::Acquire);
            // By turns in the writer's process, and as another process would.
            let handle = if number % 2 == 0 { &db } else { &reader };
            let name = format!("backup-{number}");
            let since = (number > 0).then(|| format!("backup-{}", number - 1));
            let report = back_up(handle, &disk, &name, since.as_deref()).unwrap();
            if number % 2 == 0 {
                assert!(report.epoch >= answered, "an answered commit is missing");
            }
            names.push((name, report.epoch));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    for (place, (_, epoch)) in names.iter().enumerate() {
        let sources: Vec<&str> = names[..=place].iter().map(|(name, _)| &**name).collect();
        let path = format!("restored-{place}");
        assert_eq!(restore(&disk, &sources, &path).unwrap().num_edges, *epoch, "{sources:?}");
        // Each commit adds the next edge, so the state of an epoch is known.
        let mut expected: Vec<_> = (0..*epoch).map(|v| (v.to_string(), (v + 1).to_string())).collect();
        expected.sort_unstable();
        assert_eq!(edges(&open(&disk, &path).view().unwrap()), expected);
    }
}

/// Merges and drops snapshots once the first bytes were copied.
struct MergesMeanwhile<'a>(&'a Engine, AtomicBool);

impl Progress for MergesMeanwhile<'_> {
    fn advance(&self, _amount: u64) {
        if !self.1.swap(true, Ordering::Relaxed) {
            commit(self.0, 900..950);
            self.0.checkpoint(None).unwrap();
            self.0.merge(MergeScope::All, &pool(), &Silent).unwrap();
            self.0.drop_snapshots(&[1, 2], &Silent).unwrap();
        }
    }
}

#[test]
fn a_merge_meanwhile_takes_no_file_away() {
    let disk = FaultStorage::default();
    let db = create(&disk);
    append(&db, 0..500);
    append(&db, 500..600);
    commit(&db, 600..700);
    let (before, progress) = (edges(&db.view().unwrap()), MergesMeanwhile(&db, AtomicBool::new(false)));
    let (options, storage) = (BackupOptions::default(), Arc::new(disk.clone()));
    let report = db.backup_in(storage, target("backup"), &options, &progress).unwrap();
    assert!(progress.1.into_inner());
    let restored = restore(&disk, &["backup"], "new").unwrap();
    assert_eq!((restored.epoch, restored.num_snapshots, restored.num_edges), (report.epoch, 3, 700));
    assert_eq!(edges(&open(&disk, "new").view().unwrap()), before);
}

#[test]
fn cancelled_work_leaves_nothing_behind() {
    let disk = FaultStorage::default();
    let (db, _) = with_backups(&disk, "");
    let cancelled = CancelFlag::default();
    cancelled.cancel();
    let options = BackupOptions::default();
    for name in ["other", "other.tar.zst"] {
        let result = db.backup_in(Arc::new(disk.clone()), target(name), &options, &cancelled);
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Cancelled);
    }
    let result = restore_in(
        Arc::new(disk.clone()),
        Path::new("new"),
        &["full".into()],
        RestoreOptions::default(),
        &pool(),
        &cancelled,
    );
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(disk.list(Path::new("")).unwrap(), [DB, "full", "increment"]);
}

#[test]
fn a_limited_backup_keeps_to_its_rate() {
    let disk = FaultStorage::default();
    let db = create(&disk);
    append(&db, 0..3000);
    let num_bytes = back_up(&db, &disk, "fast", None).unwrap().num_bytes;
    let options = BackupOptions { since: None, limit_rate: Some(num_bytes * 5) };
    let begin = std::time::Instant::now();
    db.backup_in(Arc::new(disk.clone()), target("slow"), &options, &Silent).unwrap();
    assert!(begin.elapsed() >= std::time::Duration::from_millis(190), "{:?}", begin.elapsed());
}

#[test]
fn commits_of_a_database_in_memory_are_backed_up() {
    let (db, disk) = (Engine::in_memory(GraphOptions::default()).unwrap(), FaultStorage::default());
    commit(&db, 0..10);
    let report = back_up(&db, &disk, "backup", None).unwrap();
    assert_eq!(restore(&disk, &["backup"], "new").unwrap().num_edges, 10);
    assert_eq!(open(&disk, "new").epoch(), report.epoch);
}
