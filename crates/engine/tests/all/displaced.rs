//! An operator moves, removes or replaces files under a writer. The writer stops with an error that names the accident,
//! changes no file that is not its own, and loses no answered commit.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{
    AppendOptions, Changes, Durability, Engine, ErrorKind, GraphOptions, MergeScope, Missing, Result, Retention, Update,
};
use anden_formats::InputPath;
use anden_graph::Graph;

fn pool() -> Pool {
    Pool::new(1).unwrap()
}

fn add(database: &Engine, source: u64, durability: Durability) -> Result<()> {
    database.apply_with(&[Update::add_edge(source, source + 1)], Missing::Lenient, durability, &pool()).map(drop)
}

/// The names and contents in a directory. Links are not followed. A writer erases its number from its lock at the end,
/// so that lock counts as empty.
fn contents(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let own_lock = format!("{}\n", std::process::id()).into_bytes();
    let entries = fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap());
    let read = |entry: fs::DirEntry| {
        let bytes = if entry.file_type().unwrap().is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
        let is_own_lock = entry.file_name() == "LOCK" && bytes == own_lock;
        (entry.file_name().into_string().unwrap(), if is_own_lock { Vec::new() } else { bytes })
    };
    entries.map(read).collect()
}

/// Copies as `cp` does: existing files keep their inode.
fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in contents(from).keys() {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

/// The database `live` with a writer, an older copy of it, and another database.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    /// Edges 1 to 3 are in snapshots and edge 4 is in the WAL. All are synced.
    fn new() -> (Self, Engine) {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        let other = Engine::create(&scene.path("other"), GraphOptions::default()).unwrap();
        add(&other, 70, Durability::Sync).unwrap();
        other.close().unwrap();
        fs::write(scene.path("outside"), "not of the database").unwrap();
        let live = Engine::create(&scene.path("live"), GraphOptions::default()).unwrap();
        live.set_checkpoint_bytes(None);
        add(&live, 1, Durability::Sync).unwrap();
        live.checkpoint(None).unwrap();
        add(&live, 2, Durability::Sync).unwrap();
        copy_all(&scene.path("live"), &scene.path("backup"));
        live.checkpoint(None).unwrap();
        add(&live, 3, Durability::Sync).unwrap();
        live.checkpoint(None).unwrap();
        add(&live, 4, Durability::Sync).unwrap();
        (scene, live)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn in_live(&self, name: &str) -> PathBuf {
        self.path("live").join(name)
    }

    /// Replaces a file of the database.
    fn replace(&self, name: &str, from: &Path) {
        fs::copy(from, self.path("new")).unwrap();
        fs::rename(self.path("new"), self.in_live(name)).unwrap();
    }
}

type Accident = (&'static str, fn(&Scene), &'static str);

/// The accidents, with the text of their errors.
const ACCIDENTS: [Accident; 13] = [
    ("rm LOCK", |scene| fs::remove_file(scene.in_live("LOCK")).unwrap(), "\"LOCK\" was removed"),
    (
        "another LOCK",
        |scene| scene.replace("LOCK", &scene.path("other/LOCK")),
        "another file took the place of \"LOCK\"",
    ),
    (
        "LOCK is a link",
        |scene| {
            fs::remove_file(scene.in_live("LOCK")).unwrap();
            symlink(scene.path("outside"), scene.in_live("LOCK")).unwrap();
        },
        "a symbolic link took the place of \"LOCK\"",
    ),
    (
        "LOCK is a directory",
        |scene| {
            fs::remove_file(scene.in_live("LOCK")).unwrap();
            fs::create_dir(scene.in_live("LOCK")).unwrap();
        },
        "a directory took the place of \"LOCK\"",
    ),
    ("rm MANIFEST", |scene| fs::remove_file(scene.in_live("MANIFEST")).unwrap(), "\"MANIFEST\" was removed"),
    (
        "an older MANIFEST in its place",
        |scene| scene.replace("MANIFEST", &scene.path("backup/MANIFEST")),
        "another process wrote \"MANIFEST\"",
    ),
    (
        "an older MANIFEST written over it",
        |scene| {
            fs::copy(scene.path("backup/MANIFEST"), scene.in_live("MANIFEST")).unwrap();
        },
        "another process wrote \"MANIFEST\"",
    ),
    (
        "MANIFEST is a link",
        |scene| {
            fs::rename(scene.in_live("MANIFEST"), scene.path("away")).unwrap();
            symlink(scene.path("away"), scene.in_live("MANIFEST")).unwrap();
        },
        "a symbolic link took the place of \"MANIFEST\"",
    ),
    ("rm -r", |scene| fs::remove_dir_all(scene.path("live")).unwrap(), "\"LOCK\" was removed"),
    (
        "cp -a of an older copy",
        |scene| copy_all(&scene.path("backup"), &scene.path("live")),
        "another process wrote \"MANIFEST\"",
    ),
    (
        "cp -a of another database",
        |scene| copy_all(&scene.path("other"), &scene.path("live")),
        "another process wrote \"MANIFEST\"",
    ),
    (
        "an older copy in its place",
        |scene| {
            fs::rename(scene.path("live"), scene.path("old")).unwrap();
            fs::rename(scene.path("backup"), scene.path("live")).unwrap();
        },
        "another directory took its place",
    ),
    (
        "another database in its place",
        |scene| {
            fs::rename(scene.path("live"), scene.path("old")).unwrap();
            fs::rename(scene.path("other"), scene.path("live")).unwrap();
        },
        "another directory took its place",
    ),
];

type Operation = (&'static str, fn(Engine) -> (Result<()>, Option<Engine>));

fn keep(database: Engine, operation: impl FnOnce(&Engine) -> Result<()>) -> (Result<()>, Option<Engine>) {
    (operation(&database), Some(database))
}

fn append(database: &Engine) -> Result<()> {
    let changes = Changes { added: vec![(5.into(), 6.into(), None)], ..Changes::default() };
    database.append_changes(&changes, &AppendOptions::default(), &pool(), &Silent).map(drop)
}

const OPERATIONS: [Operation; 9] = [
    ("append", |database| keep(database, append)),
    ("apply", |database| keep(database, |database| add(database, 5, Durability::Sync))),
    ("apply and close", |database| match add(&database, 5, Durability::None) {
        Ok(()) => (database.close(), None),
        refused => (refused, Some(database)),
    }),
    ("checkpoint", |database| keep(database, |database| database.checkpoint(None).map(drop))),
    ("merge", |database| keep(database, |database| database.merge(MergeScope::All, &pool(), &Silent).map(drop))),
    ("merge the newest", |database| {
        keep(database, |database| database.merge(MergeScope::Newest(2), &pool(), &Silent).map(drop))
    }),
    ("drop", |database| keep(database, |database| database.drop_snapshots(&[2], &Silent))),
    ("retain", |database| keep(database, |database| database.retain(Retention::Last(1)).map(drop))),
    ("close", |database| (database.close(), None)),
];

#[test]
fn every_accident_stops_every_operation() {
    for (accident, happen, what) in ACCIDENTS {
        for (operation, act) in OPERATIONS {
            let place = format!("{accident}, {operation}");
            let (scene, database) = Scene::new();
            let names = ["live", "backup", "other", "old"];
            happen(&scene);
            // The writer compares the directory again before the next write to the WAL.
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(4) {
                std::thread::yield_now();
            }
            let before = names.map(|name| contents(&scene.path(name)));
            let (result, database) = act(database);
            // A commit creates no file, so a moved directory still takes it.
            let is_moved = what.contains("directory took its");
            if is_moved && operation == "apply" {
                result.unwrap();
                drop(database);
                let moved = Engine::open_read_only(&scene.path("old")).unwrap();
                assert_eq!(moved.view().unwrap().num_edges(), 5, "{place}");
            } else {
                let error = result.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Io, "{place}: {error}");
                assert!(error.to_string().contains(what), "{place}: {error}");
                if let Some(database) = database {
                    assert_eq!(
                        add(&database, 8, Durability::Sync).unwrap_err().to_string(),
                        error.to_string(),
                        "{place}"
                    );
                    assert_eq!(database.view().unwrap().num_edges(), 4, "{place}: reading goes on");
                    assert_eq!(database.close().unwrap_err().to_string(), error.to_string(), "{place}");
                }
            }
            for (name, before) in names.iter().zip(before) {
                // The WAL in the moved directory belongs to this writer.
                let is_own = is_moved && *name == "old";
                let after = contents(&scene.path(name));
                let changed: Vec<_> = before.iter().filter(|(name, bytes)| after.get(*name) != Some(*bytes)).collect();
                assert!(is_own || after == before, "{place}: {name} changed, of earlier files: {changed:?}");
            }
            assert_eq!(fs::read_to_string(scene.path("outside")).unwrap(), "not of the database", "{place}");
        }
    }
}

/// A renamed directory stays usable for the writer and the reader.
#[test]
fn a_renamed_directory_is_written_on() {
    for (operation, act) in OPERATIONS {
        let (scene, database) = Scene::new();
        let reader = Engine::open_read_only(&scene.path("live")).unwrap();
        fs::rename(scene.path("live"), scene.path("moved")).unwrap();
        let (result, database) = act(database);
        result.unwrap();
        drop(database);
        assert!(!scene.path("live").exists(), "{operation}");
        reader.refresh().unwrap();
        let moved = Engine::open(&scene.path("moved")).unwrap();
        moved.verify(&pool()).unwrap();
        let num_edges = moved.view().unwrap().num_edges();
        assert_eq!(
            num_edges,
            if ["append", "apply", "apply and close"].contains(&operation) { 5 } else { 4 },
            "{operation}"
        );
        assert_eq!(reader.view().unwrap().num_edges(), num_edges, "{operation}");
    }
}

/// The next writer finds the commits that were answered before the accident.
#[test]
fn answered_commits_survive_the_removal_of_the_lock_file() {
    let (scene, first) = Scene::new();
    fs::remove_file(scene.in_live("LOCK")).unwrap();
    let error = Engine::open(&scene.path("live")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    assert!(!scene.in_live("LOCK").exists(), "a writer that is refused makes no file");
    add(&first, 5, Durability::Sync).unwrap_err();
    drop(first);
    let second = Engine::open(&scene.path("live")).unwrap();
    assert!(second.view().unwrap().num_edges() >= 4);
    second.verify(&pool()).unwrap();
}

/// Commits without a sync are checked too, before the next file is written.
#[test]
fn batched_commits_stop_soon_after_an_accident() {
    for durability in [Durability::None, Durability::Batched(Duration::from_secs(3600))] {
        let (scene, database) = Scene::new();
        copy_all(&scene.path("other"), &scene.path("live"));
        let start = Instant::now();
        let error = loop {
            if let Err(error) = add(&database, 5, durability) {
                break error;
            }
            assert!(start.elapsed().as_secs() < 30, "{durability:?}");
        };
        assert!(error.to_string().contains("another process wrote \"MANIFEST\""), "{durability:?}: {error}");
        drop(database);
        let other = Engine::open(&scene.path("other")).unwrap();
        assert_eq!(other.view().unwrap().num_edges(), 1);
        other.verify(&pool()).unwrap();
    }
}

/// The path of a database may be a link. A reader that follows it learns that it leads elsewhere.
#[test]
fn a_reader_is_told_that_its_path_leads_elsewhere() {
    let (scene, database) = Scene::new();
    symlink("live", scene.path("current")).unwrap();
    let reader = Engine::open_read_only(&scene.path("current")).unwrap();
    add(&database, 5, Durability::Sync).unwrap();
    assert!(reader.refresh().unwrap());
    fs::remove_file(scene.path("current")).unwrap();
    symlink("other", scene.path("current")).unwrap();
    let error = reader.refresh().unwrap_err();
    assert!(error.to_string().contains("took its place; open it again"), "{error}");
    assert_eq!(reader.view().unwrap().num_edges(), 5);
}

/// A failed load removes its own files, and nothing that another process put in their place.
#[test]
fn a_failed_creation_removes_only_its_own_directory() {
    let scene = Scene::new().0;
    let before = contents(&scene.path("other"));
    let (path, pool) = (scene.path("new"), pool());
    let input = scene.path("edges.txt");
    fs::write(&input, "1 2\n2 3\nthree 4\n").unwrap();
    let swapped = AtomicBool::new(false);
    let swap = Swap { from: &scene, swapped: &swapped };
    let options = anden_engine::LoadOptions::default();
    let error = Engine::load(&path, &[InputPath::File(input)], &options, &pool, &swap).unwrap_err();
    assert!(swapped.load(Ordering::Relaxed), "{error}");
    assert_eq!(contents(&path), before);
    assert!(!scene.path("other").exists());
}

/// Swaps directories once during a load.
struct Swap<'a> {
    from: &'a Scene,
    swapped: &'a AtomicBool,
}

impl anden_base::progress::Progress for Swap<'_> {
    fn stage(&self, _: &str, _: Option<u64>) {
        if self.from.path("new").exists() && !self.swapped.swap(true, Ordering::Relaxed) {
            fs::rename(self.from.path("new"), self.from.path("away")).unwrap();
            fs::rename(self.from.path("other"), self.from.path("new")).unwrap();
        }
    }

    fn advance(&self, _: u64) {}

    fn is_cancelled(&self) -> bool {
        false
    }
}
