//! Readers in other processes while a writer commits, checkpoints and merges. They see growing prefixes of its commits.
//! A WAL that is written and removed meanwhile does not disturb them.

use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_base::storage::{MemoryStorage, Storage};
use anden_engine::{
    AppendOptions, Changes, Durability, Engine, ErrorKind, GraphOptions, KeyScheme, MergeScope, Missing, Op, Retention,
    SnapshotView, Update,
};
use anden_graph::{Direction, Graph};
use anden_testkit::FaultStorage;

use crate::hooked::HookedStorage;

/// Environment variable that makes a copy of this program a reader of this path.
const READ: &str = "ANDEN_FOLLOW_BESIDE";
/// A file beside the database with the final number of commits.
const END: &str = "end";
/// The output of a reader that saw the prefix grow [`NUM_GROWTHS`] times.
const HAS_SEEN_ENOUGH: &str = "has seen it grow";
const NUM_GROWTHS: u32 = 40;
const LIMIT: u64 = 64 << 10;
/// One in this many commits is synced in phases with syncs.
const SYNCED: u64 = 16;
/// Every second phase of this many commits has syncs. Without syncs, no record certifies the commits before it.
const PHASE: u64 = 4_000;
const DEADLINE: Duration = Duration::from_secs(400);

/// The number of edges. Checks that each leads from a vertex to the next.
fn prefix(view: &SnapshotView) -> u64 {
    let num_edges = view.num_edges();
    let num_vertices = if num_edges == 0 { 0 } else { num_edges + 1 };
    assert_eq!((view.vertex_bound() as u64, view.num_vertices() as u64), (num_vertices, num_vertices));
    for v in 0..view.vertex_bound() as VertexId {
        let mut list = Vec::new();
        let _ = view.for_each_fragment(Direction::Out, v, |targets| {
            list.extend_from_slice(targets);
            ControlFlow::Continue(())
        });
        let expected = if u64::from(v) < num_edges { vec![v + 1] } else { Vec::new() };
        assert_eq!(list, expected, "vertex {v} where there are {num_edges} edges");
    }
    view.check().unwrap();
    num_edges
}

/// Views of one handle never shrink, whatever other threads do with the handle.
fn watch(database: &Engine, is_over: &AtomicBool) {
    let mut before = 0;
    while !is_over.load(Ordering::Relaxed) {
        let num_edges = database.view().unwrap().num_edges();
        assert!(num_edges >= before, "{num_edges} edges after {before}");
        before = num_edges;
        std::thread::yield_now();
    }
}

/// The reader sees commits without gaps, never loses one, and sees all at the end.
fn follow(database: &Engine, path: &Path) {
    let (pool, end) = (Pool::new(1).unwrap(), path.with_file_name(END));
    let (mut before, mut num_growths) = (prefix(&database.view().unwrap()), 0);
    for round in 0_u64.. {
        let expected = std::fs::read_to_string(&end).ok();
        let has_changed = database.refresh().unwrap();
        let view = database.view().unwrap();
        let num_edges = if round % 4 == 0 || expected.is_some() { prefix(&view) } else { view.num_edges() };
        assert!(num_edges >= before, "{num_edges} edges after {before}");
        assert!(has_changed || num_edges == before, "{num_edges} edges after {before}, and nothing has changed");
        num_growths += u32::from(num_edges > before);
        if num_edges > before && num_growths == NUM_GROWTHS {
            println!("{HAS_SEEN_ENOUGH}");
        }
        before = num_edges;
        if round % 8 == 1 {
            // A new reader reads the WAL from its beginning.
            let other = Engine::open_read_only(path).unwrap();
            assert!(prefix(&other.view().unwrap()) >= num_edges);
            if round % 64 == 1 {
                other.verify(&pool).unwrap();
            }
        }
        if let Some(expected) = expected {
            assert_eq!(num_edges.to_string(), expected, "edges when nothing is committed any more");
            println!("followed {num_growths} times in {round} rounds");
            return;
        }
    }
}

fn read_until_the_end(path: &Path) {
    let database = Engine::open_read_only(path).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&database, &is_over));
        let followed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| follow(&database, path)));
        is_over.store(true, Ordering::Relaxed);
        watcher.join().unwrap();
        followed.unwrap();
    });
}

/// A reader process, killed on drop.
struct Reader(Child);

impl Reader {
    fn new(path: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let test = "beside_a_writer::readers_in_other_processes_see_prefixes_that_grow";
        command.args(["--exact", test, "--nocapture"]).env(READ, path);
        Self(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Returns the output of the reader, and counts when it has seen enough and when it has ended.
    fn listen(&mut self, num_content: &AtomicU32, num_ended: &AtomicU32) -> String {
        let mut text = String::new();
        for line in BufReader::new(self.0.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            num_content.fetch_add(u32::from(line.contains(HAS_SEEN_ENOUGH)), Ordering::Relaxed);
            text += &format!("{line}\n");
        }
        num_ended.fetch_add(1, Ordering::Relaxed);
        assert!(self.0.wait().unwrap().success() && text.contains("followed "), "{text}");
        text
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Commits an edge from each vertex to the next until `is_enough`. Returns their number.
fn commit_until(writer: &Engine, is_enough: impl Fn() -> bool) -> u64 {
    let (pool, begin) = (Pool::new(1).unwrap(), Instant::now());
    let later = Durability::Batched(Duration::from_secs(3600));
    let mut num_commits = 0;
    let mut commit = |durability| {
        let update = [Update::add_edge(num_commits, num_commits + 1)];
        writer.apply_with(&update, Missing::Lenient, durability, &pool).unwrap();
        num_commits += 1;
        num_commits
    };
    let mut number = 0;
    while !is_enough() {
        assert!(begin.elapsed() < DEADLINE, "{number} commits were not enough: {:?}", writer.live_stats());
        let is_synced = number / PHASE % 2 == 1 && number % SYNCED == 0;
        number = commit(if is_synced { Durability::Sync } else { later });
    }
    commit(Durability::Sync)
}

/// The number of the oldest WAL segment; `None` if a snapshot holds everything.
fn oldest_segment(path: &Path) -> Option<u32> {
    let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter_map(|name| anden_snapshots::log_number(name.to_str()?)).min()
}

#[test]
fn readers_in_other_processes_see_prefixes_that_grow() {
    if let Some(path) = std::env::var_os(READ) {
        return read_until_the_end(&PathBuf::from(path));
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let writer = Engine::create(&path, options).unwrap();
    writer.set_checkpoint_bytes(Some(LIMIT));
    writer.set_background_write_rate(None);
    let (num_content, num_ended) = (AtomicU32::new(0), AtomicU32::new(0));
    let mut readers = [Reader::new(&path), Reader::new(&path)];
    std::thread::scope(|scope| {
        let listeners = readers.each_mut().map(|reader| scope.spawn(|| reader.listen(&num_content, &num_ended)));
        let num_commits = commit_until(&writer, || {
            let stats = writer.live_stats();
            let is_busy = stats.automatic_checkpoints >= 12 && stats.automatic_merges >= 2;
            is_busy && num_content.load(Ordering::Relaxed) == 2 || num_ended.load(Ordering::Relaxed) > 0
        });
        std::fs::write(dir.path().join("tmp"), num_commits.to_string()).unwrap();
        std::fs::rename(dir.path().join("tmp"), dir.path().join(END)).unwrap();
        listeners.into_iter().for_each(|hook| println!("{}", hook.join().unwrap()));
        println!("{num_commits} commits: {:?}", writer.live_stats());
    });
    let stats = writer.live_stats();
    assert!(stats.automatic_checkpoints >= 12 && stats.automatic_merges >= 2, "{stats:?}");
    assert_eq!((stats.background_error, stats.log_error), (None, None));
    assert!(oldest_segment(&path).is_none_or(|number| number > 4), "segments went while they were read");
}

/// Regression: a reader showed more than the snapshot that it then found, and looked for the rest in a WAL that a
/// younger snapshot had replaced. A concurrent call for a view got the older snapshot.
#[test]
fn refresh_never_shows_an_older_snapshot() {
    let storage = HookedStorage::default();
    let disk = || Arc::new(storage.clone());
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let writer = Arc::new(Engine::create_in(disk(), Path::new("db"), options).unwrap());
    // No later record certifies these commits, so a WAL without them looks complete.
    fn add(writer: &Engine, number: u64) {
        let (update, later) = (Update::add_edge(number, number + 1), Durability::Batched(Duration::from_secs(3600)));
        writer.apply_with(&[update], Missing::Lenient, later, &Pool::new(1).unwrap()).unwrap();
    }
    (0..4).for_each(|number| add(&writer, number));
    let reader = Arc::new(Engine::open_read_only_in(disk(), Path::new("db")).unwrap());
    let (busy, other, mut is_first) = (Arc::clone(&writer), Arc::clone(&reader), true);
    storage.set_hook(move |_| {
        // The checkpoint of the first four edges is in progress.
        if std::mem::take(&mut is_first) {
            add(&busy, 4);
            assert!(other.refresh().unwrap());
        }
    });
    writer.checkpoint(None).unwrap();
    storage.clear_hook();
    assert_eq!((reader.view().unwrap().num_edges(), reader.snapshots().len()), (5, 1));

    let (next, busy, other, num_looks) =
        (storage.clone(), Arc::clone(&writer), Arc::clone(&reader), Arc::new(AtomicU32::new(0)));
    let looks = Arc::clone(&num_looks);
    storage.set_read_hook(move |path| {
        assert!(path.ends_with("MANIFEST"), "{}", path.display());
        let (again, busy, other, looks) = (next.clone(), Arc::clone(&busy), Arc::clone(&other), Arc::clone(&looks));
        next.set_read_hook(move |path| {
            assert!(path.ends_with("LOG"), "the mark is read before the segments: {}", path.display());
            busy.checkpoint(None).unwrap();
            let (other, looks) = (Arc::clone(&other), Arc::clone(&looks));
            again.set_read_hook(move |path| {
                assert!(path.ends_with("MANIFEST"), "{}", path.display());
                assert_eq!(other.view().unwrap().num_edges(), 5, "what was shown is shown");
                looks.fetch_add(1, Ordering::Relaxed);
            });
        });
    });
    assert!(reader.refresh().unwrap());
    assert_eq!(num_looks.load(Ordering::Relaxed), 1);
    assert_eq!((reader.view().unwrap().num_edges(), reader.snapshots().len()), (5, 3));
    assert_eq!(reader.epoch(), writer.epoch());
}

/// The writer publishes a new base and removes the old one each time that the reader maps a file of the base. The
/// reader opens no file twice.
#[test]
fn files_that_were_opened_stay_open_while_others_vanish() {
    let (storage, db) = (HookedStorage::default(), Path::new("db"));
    let writer = Arc::new(Engine::create_in(Arc::new(storage.clone()), db, GraphOptions::default()).unwrap());
    let append = |writer: &Engine, number: u64| {
        let changes = Changes { added: vec![(number.into(), (number + 1).into(), None)], ..Changes::default() };
        writer.append_changes(&changes, &AppendOptions::default(), &Pool::new(1).unwrap(), &Silent).unwrap();
    };
    writer.retain(Retention::Last(1)).unwrap();
    (0..3).for_each(|number| append(&writer, number));
    let opened = Arc::new(Mutex::new(Vec::new()));
    let (busy, seen, mut number) = (Arc::clone(&writer), Arc::clone(&opened), 3);
    storage.set_map_hook(move |path| {
        seen.lock().unwrap().push(path.to_owned());
        if number < 200 && path.to_string_lossy().contains("base-") {
            append(&busy, number);
            number += 1;
        }
    });
    let reader = Engine::open_read_only_in(Arc::new(storage.clone()), db).unwrap();
    let (num_edges, opened) = (reader.view().unwrap().num_edges(), opened.lock().unwrap().clone());
    assert!((4..100).contains(&num_edges), "{num_edges} edges, {opened:?}");
    let is_first = |(index, path): (usize, &PathBuf)| !opened[..index].contains(path);
    assert!(opened.iter().enumerate().all(is_first), "{opened:?}");
}

/// Files vanish before a reader has opened them all. It keeps those that it has, and opens only new ones.
#[test]
fn opening_beside_a_fast_writer_ends_soon() {
    let (storage, db): (Arc<dyn Storage>, _) = (Arc::new(MemoryStorage::default()), Path::new("db"));
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let writer = Engine::create_in(Arc::clone(&storage), db, options).unwrap();
    let pairs: Vec<_> = (0..400_000).map(|v| (v, v + 1)).collect();
    writer.apply_edges(&pairs, Op::Insert, &Pool::new(1).unwrap()).unwrap();
    writer.checkpoint(None).unwrap();
    writer.merge(MergeScope::All, &Pool::new(1).unwrap(), &Silent).unwrap();
    writer.retain(Retention::Last(1)).unwrap();
    let (num_answered, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let publish = || {
        let pool = Pool::new(1).unwrap();
        for number in 1.. {
            let changes = Changes { added: vec![(0.into(), (number + 1).into(), None)], ..Changes::default() };
            writer.append_changes(&changes, &AppendOptions::default(), &pool, &Silent).unwrap();
            num_answered.store(number, Ordering::Release);
            if is_over.load(Ordering::Relaxed) {
                return;
            }
        }
    };
    let mut times = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(publish);
        for round in 0..20 {
            while num_answered.load(Ordering::Acquire) <= 5 * round {
                std::thread::yield_now();
            }
            let (before, start) = (num_answered.load(Ordering::Acquire), Instant::now());
            let reader = Engine::open_read_only_in(Arc::clone(&storage), db);
            times.push(start.elapsed());
            let num_edges = reader.and_then(|reader| Ok(reader.view()?.num_edges()));
            if num_edges.as_ref().is_ok_and(|&num_edges| num_edges < 400_000 + before) || num_edges.is_err() {
                is_over.store(true, Ordering::Relaxed);
                panic!("{num_edges:?} edges, {before} answered before");
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    times.sort_unstable();
    println!("opened in {times:?} beside {} publications", num_answered.load(Ordering::Relaxed));
    assert!(times.iter().all(|&time| time < Duration::from_secs(1)), "{times:?}");
}

/// The files that a manifest names may vanish before the reader opens them.
#[test]
fn opening_retries_with_the_next_manifest() {
    let storage = HookedStorage::default();
    let writer =
        Arc::new(Engine::create_in(Arc::new(storage.clone()), Path::new("db"), GraphOptions::default()).unwrap());
    for number in 0..3 {
        writer.apply(&[Update::add_edge(number, number + 1)], Missing::Lenient, &Pool::new(1).unwrap()).unwrap();
        writer.checkpoint(None).unwrap();
    }
    let busy = Arc::clone(&writer);
    storage.set_read_hook(move |path| {
        assert!(path.ends_with("MANIFEST"), "{}", path.display());
        assert!(busy.merge(MergeScope::All, &Pool::new(1).unwrap(), &Silent).is_ok());
    });
    let reader = Engine::open_read_only_in(Arc::new(storage), Path::new("db")).unwrap();
    assert_eq!((reader.view().unwrap().num_edges(), reader.snapshots().len()), (3, 4));
}

/// A changed durable record is damage for a refreshing reader too. The reader keeps its view, and sees everything once
/// the record is repaired. It keeps nothing that it read before the damage.
#[test]
fn refresh_reports_damaged_durable_record() {
    let (disk, path, pool) = (FaultStorage::default(), Path::new("db/wal-000001"), Pool::new(1).unwrap());
    let writer = Engine::create_in(Arc::new(disk.clone()), Path::new("db"), GraphOptions::default()).unwrap();
    let add = |number: u64| {
        writer.apply(&[Update::add_edge(number, number + 1)], Missing::Lenient, &pool).unwrap();
        disk.contents(path).unwrap()
    };
    let written: Vec<_> = (0..2).map(add).collect();
    let reader = Engine::open_read_only_in(Arc::new(disk.clone()), Path::new("db")).unwrap();
    let written: Vec<_> = written.into_iter().chain((2..5).map(add)).collect();
    let mut damaged = written[4].clone();
    damaged[written[3].iter().rposition(|&byte| byte != 0).unwrap()] ^= 1;
    disk.set_contents(path, &damaged);
    let error = reader.refresh().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("commit 4, which was durable, cannot be read"), "{error}");
    assert_eq!((prefix(&reader.view().unwrap()), reader.epoch()), (2, 2), "the epoch is that of the view");
    disk.set_contents(path, &written[4]);
    assert!(reader.refresh().unwrap());
    assert_eq!((prefix(&reader.view().unwrap()), reader.epoch()), (5, 5));
}

/// A writer takes back a commit that meets damage or a lack of memory. After a reopen, another commit gets its number.
#[test]
fn refresh_drops_commits_that_were_rolled_back() {
    let (disk, db, pool) = (FaultStorage::default(), Path::new("db"), Pool::new(1).unwrap());
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let add = |writer: &Engine, source: u64, target: u64| {
        let (edge, later) = (Update::add_edge(source, target), Durability::Batched(Duration::from_secs(3600)));
        writer.apply_with(&[edge], Missing::Lenient, later, &pool).unwrap();
    };
    let writer = Engine::create_in(Arc::new(disk.clone()), db, options).unwrap();
    add(&writer, 0, 1);
    let without = disk.duplicate();
    add(&writer, 0, 2);
    let reader = Engine::open_read_only_in(Arc::new(disk.clone()), db).unwrap();
    let edges = || {
        let (view, mut list) = (reader.view().unwrap(), Vec::new());
        for source in 0..view.vertex_bound() as VertexId {
            let _ = view.for_each_fragment(Direction::Out, source, |targets| {
                list.extend(targets.iter().map(|&target| (source, target)));
                ControlFlow::Continue(())
            });
        }
        list
    };
    assert_eq!(edges(), [(0, 1), (0, 2)]);
    let show = |other: &FaultStorage| {
        for name in other.list(db).unwrap().into_iter().filter(|name| name.starts_with("wal")) {
            disk.set_contents(&db.join(&name), &other.contents(&db.join(&name)).unwrap());
        }
        reader.refresh().unwrap()
    };
    assert!(show(&without));
    assert_eq!(edges(), [(0, 1)]);
    // The reader sees the commit again, and then others in its place.
    let with = without.duplicate();
    let other = Engine::open_in(Arc::new(with.clone()), db).unwrap();
    add(&other, 0, 2);
    assert!(show(&with));
    assert_eq!(edges(), [(0, 1), (0, 2)]);
    for targets in [&[3][..], &[3, 4]] {
        let disk_of_others = without.duplicate();
        let other = Engine::open_in(Arc::new(disk_of_others.clone()), db).unwrap();
        targets.iter().for_each(|&target| add(&other, 0, target));
        assert!(show(&disk_of_others));
        let expected: Vec<_> = [1].iter().chain(targets).map(|&target| (0, target as VertexId)).collect();
        assert_eq!(edges(), expected);
    }
}
