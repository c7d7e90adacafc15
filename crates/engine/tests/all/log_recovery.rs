//! Answered commits survive any crash, in whatever order writes reach the disk. Errors name damage.

use std::io::ErrorKind as IoKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_base::storage::Storage;
use anden_engine::{
    AppendOptions, Changes, Durability, Engine, ErrorKind, GraphOptions, KeyScheme, MergeScope, Missing, SnapshotView,
    Update,
};
use anden_graph::Graph;
use anden_testkit::{FaultPlan, FaultStorage, Random, crash_every_call, holds_within, scaled, wait_until};

use crate::hooked::HookedStorage;
use crate::live_model::{Model, NUM_KEYS, Truth, kinds, read};

pub const DB: &str = "db";
/// The number of possible disks after a crash to check for each call.
fn num_disks() -> u64 {
    scaled(8)
}

pub fn pool() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(1).unwrap())
}

pub fn open(disk: &FaultStorage) -> anden_engine::Result<Engine> {
    Engine::open_in(Arc::new(disk.clone()), Path::new(DB))
}

fn create(disk: &FaultStorage, options: GraphOptions) -> Engine {
    Engine::create_in(Arc::new(disk.clone()), Path::new(DB), options).unwrap()
}

/// Ends the process: nothing is written when the handle drops.
pub fn kill(disk: &FaultStorage, database: Engine) -> FaultStorage {
    let left = disk.duplicate();
    drop(database);
    left
}

pub fn segments(disk: &FaultStorage) -> Vec<PathBuf> {
    let names = disk.list(Path::new(DB)).unwrap().into_iter().filter(|name| name.starts_with("wal-"));
    names.map(|name| Path::new(DB).join(name)).collect()
}

/// The requested changes, commit by commit.
struct History {
    truth: Truth,
    random: Random,
    /// The model before the first commit and after each.
    models: Vec<Model>,
    truths: Vec<Truth>,
    /// The number of commits answered as durable.
    num_durable: usize,
}

impl History {
    fn new(options: GraphOptions, seed: u64) -> Self {
        let truth = Truth::new(options);
        let (models, truths) = (vec![truth.model()], vec![truth.clone()]);
        Self { truth, random: Random::new(seed), models, truths, num_durable: 0 }
    }

    fn remember(&mut self) {
        self.models.push(self.truth.model());
        self.truths.push(self.truth.clone());
    }

    /// Forgets all commits after this number.
    fn forget_after(&mut self, number: usize) {
        self.models.truncate(number + 1);
        self.truths.truncate(number + 1);
        self.truth = self.truths[number].clone();
        self.num_durable = number;
    }

    /// Commits random updates. Returns false if the disk failed.
    fn commit(&mut self, database: &Engine, durability: Durability) -> bool {
        let num_updates = [1, 1, 4, 40][self.random.below(4) as usize];
        let updates: Vec<_> = (0..num_updates).map(|_| self.truth.update(&mut self.random)).collect();
        self.remember();
        let answer = database.apply_with(&updates, Missing::Lenient, durability, pool());
        self.has_answered(answer.is_ok(), durability == Durability::Sync)
    }

    fn append(&mut self, database: &Engine) -> bool {
        let (u, v) = (self.random.below(NUM_KEYS).into(), self.random.below(NUM_KEYS).into());
        let mut changes = Changes::default();
        changes.added.push((self.truth.key(u), self.truth.key(v), self.truth.weight(2)));
        self.truth.add_edge(u, v, 2);
        self.remember();
        let answer = database.append_changes(&changes, &AppendOptions::default(), pool(), &Silent);
        self.has_answered(answer.is_ok(), true)
    }

    fn has_answered(&mut self, is_ok: bool, is_durable: bool) -> bool {
        if is_ok && is_durable {
            self.num_durable = self.models.len() - 1;
        }
        is_ok
    }

    /// Commits with snapshots and other operations between them, until the disk fails.
    fn run(&mut self, database: &Engine, num_steps: usize, durability: impl Fn(&mut Random) -> Durability) {
        for _ in 0..num_steps {
            let is_well = match self.random.below(14) {
                0 => database.checkpoint(None).is_ok(),
                1 => self.append(database),
                2 => database.merge(MergeScope::All, pool(), &Silent).is_ok(),
                3 if database.snapshots().len() > 1 => {
                    let newest = database.snapshots().last().unwrap().number;
                    database.drop_snapshots(&[newest], &Silent).is_ok()
                }
                _ => {
                    let durability = durability(&mut self.random);
                    self.commit(database, durability)
                }
            };
            if !is_well {
                return;
            }
        }
    }

    /// Requires the state after some commit, not before the last durable one. Returns its number.
    fn check(&self, view: &SnapshotView, place: &str) -> usize {
        let found = read(view);
        let number = self.models.iter().rposition(|model| *model == found);
        let number = number.unwrap_or_else(|| panic!("{place}: no commit left this"));
        assert!(number >= self.num_durable, "{place}: {number} commits are there, {} were durable", self.num_durable);
        number
    }
}

#[test]
fn commits_survive_without_a_snapshot() {
    for (seed, options) in kinds().into_iter().enumerate() {
        let mut disk = FaultStorage::default();
        let mut database = create(&disk, options);
        let mut history = History::new(options, seed as u64);
        for round in 0..6 {
            for _ in 0..12 {
                assert!(history.commit(&database, Durability::Sync));
            }
            let num_snapshots = database.snapshots().len();
            disk = kill(&disk, database);
            database = open(&disk).unwrap();
            assert_eq!(database.snapshots().len(), num_snapshots);
            let reader = Engine::open_read_only_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
            for database in [&database, &reader] {
                assert_eq!(read(&database.view().unwrap()), history.truth.model(), "seed {seed}, round {round}");
                database.verify(pool()).unwrap();
            }
        }
        database.close().unwrap();
        assert_eq!(segments(&disk), Vec::<PathBuf>::new(), "a clean close leaves no log");
        assert_eq!(read(&open(&disk).unwrap().view().unwrap()), history.truth.model());
    }
}

#[test]
fn a_crash_at_any_call_loses_no_durable_commit() {
    let of_kinds = kinds().into_iter().take(3).enumerate();
    for (seed, options) in of_kinds {
        let (mut num_states, mut numbers) = (0, std::collections::BTreeSet::new());
        let start = || {
            let disk = FaultStorage::default();
            let database = create(&disk, options);
            (disk, database)
        };
        let run = |_: &FaultStorage, database| {
            let mut history = History::new(options, seed as u64 + 100);
            history.run(&database, 25, |_| Durability::Sync);
            history
        };
        let num_calls = crash_every_call(num_disks(), start, run, |history, after, place| {
            let place = format!("kind {seed}, {place}");
            let database = open(after).unwrap_or_else(|error| panic!("{place}: {error}"));
            numbers.insert(history.check(&database.view().unwrap(), &place));
            // Later commits survive too.
            database.apply(&[Update::AddVertex(history.truth.key(1))], Missing::Lenient, pool()).unwrap();
            let expected = read(&database.view().unwrap());
            let again = open(&kill(after, database)).unwrap_or_else(|error| panic!("{place}, again: {error}"));
            assert_eq!(read(&again.view().unwrap()), expected, "{place}, again");
            num_states += 1;
        });
        assert!(num_calls > 60 && numbers.len() > 15, "{num_calls} calls, {} different states", numbers.len());
        println!("crash_every_call[log] kind {seed}: {num_calls} calls, {num_states} disks");
    }
}

#[test]
fn a_misdirected_write_is_named_or_harmless() {
    let (mut num_named, mut num_harmless, mut num_short) = (0, 0, 0);
    for (seed, options) in kinds().into_iter().take(3).enumerate() {
        let mut call = 0;
        loop {
            let disk = FaultStorage::default();
            let mut history = History::new(options, seed as u64 + 200);
            let database = create(&disk, options);
            let first = disk.num_calls();
            disk.set_plan(FaultPlan::MisdirectAt(first + call, call));
            history.run(&database, 25, |_| Durability::Sync);
            let was_reached = disk.num_calls() > first + call;
            let left = kill(&disk, database);
            let place = format!("kind {seed}, call {call}");
            let opened = open(&left).and_then(|database| database.verify(pool()).map(|_| database));
            match opened {
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{place}: {error}");
                    assert!(error.to_string().contains(DB), "{place}: {error}");
                    num_named += 1;
                }
                Ok(database) => {
                    // The last record may not be certified yet, or the write of its certificate went elsewhere. A
                    // commit that damage refused was not answered.
                    let found = read(&database.view().unwrap());
                    let is_there =
                        found == history.models[history.num_durable] || Some(&found) == history.models.last();
                    let lost = usize::from(!is_there);
                    history.num_durable -= lost;
                    history.check(&database.view().unwrap(), &place);
                    num_short += lost;
                    num_harmless += 1 - lost;
                }
            }
            call += 1;
            if !was_reached {
                break;
            }
        }
    }
    println!("misdirected[log]: {num_named} named, {num_harmless} harmless, {num_short} without the last record");
    assert!(num_named > 50 && num_short < 10, "{num_named} named, {num_short} without the last record");
}

#[test]
fn wal_thread_error_is_reported_until_retried() {
    let disk = FaultStorage::default();
    let database = create(&disk, kinds()[0]);
    let add = |key: u64, durability: Durability| {
        database.apply_with(&[Update::add_edge(key, key + 1)], Missing::Lenient, durability, pool())
    };
    add(1, Durability::Sync).unwrap();
    // On a busy machine the WAL thread may have retried before this thread looks.
    let is_told = (2..60).any(|key| {
        disk.set_plan(FaultPlan::FailNext("wal-", IoKind::StorageFull));
        add(key, Durability::None).unwrap();
        holds_within(Duration::from_secs(1), || {
            database.live_stats().log_error.is_some_and(|error| error.contains("wal-"))
        })
    });
    assert!(is_told);
    wait_until("the WAL thread retries", || database.live_stats().log_error.is_none());
    disk.set_plan(FaultPlan::FailNext("wal-", IoKind::StorageFull));
    let refused = add(100, Durability::Sync).unwrap_err();
    assert_eq!(database.live_stats().log_error, Some(refused.to_string()));
    add(100, Durability::Sync).unwrap();
    assert_eq!(database.live_stats().log_error, None);
}

#[test]
fn crash_keeps_durable_commits_and_a_prefix() {
    let durabilities = [
        Durability::None,
        Durability::Batched(Duration::from_millis(1)),
        Durability::Batched(Duration::from_secs(60)),
        Durability::Sync,
    ];
    let (mut num_lost, mut num_states) = (0, 0);
    for seed in 0..scaled(120) {
        println!("seed {seed}");
        let options = kinds()[seed as usize % 7];
        let mut disk = FaultStorage::default();
        let mut history = History::new(options, seed);
        drop(create(&disk, options));
        // Several generations, each after a crash.
        for generation in 0..4 {
            let database = open(&disk).unwrap();
            let call = disk.num_calls() + u64::from(history.random.below(60));
            disk.set_plan(FaultPlan::CrashAt(call));
            history.run(&database, 12, |random| durabilities[random.below(4) as usize]);
            drop(database);
            let seed = u64::from(history.random.below(1 << 30));
            let after = disk.after_crash(seed);
            let place = format!("generation {generation}, disk {seed}");
            let database = open(&after).unwrap_or_else(|error| panic!("{place}: {error}"));
            let number = history.check(&database.view().unwrap(), &place);
            num_lost += history.models.len() - 1 - number;
            num_states += 1;
            history.forget_after(number);
            disk = kill(&after, database);
        }
    }
    assert!(num_lost > 50, "of what was not durable, {num_lost} commits were lost in {num_states} crashes");
    println!("crash_any_time[log]: {num_states} crashes, {num_lost} commits lost that were not durable");
}

#[test]
fn recovered_records_are_durable_before_new_ones() {
    let disk = FaultStorage::default();
    let database = create(&disk, kinds()[0]);
    let add = |database: &Engine, key: u64, durability| {
        database.apply_with(&[Update::add_edge(key, key + 1)], Missing::Lenient, durability, pool()).unwrap();
    };
    add(&database, 1, Durability::Batched(Duration::from_secs(3600)));
    // Fails the checkpoint on drop, so that the files are those of a killed process.
    disk.set_plan(FaultPlan::FailNext("delta-", IoKind::StorageFull));
    drop(database);
    let database = open(&disk).unwrap();
    assert_eq!(database.snapshots().len(), 1);
    add(&database, 2, Durability::Sync);
    for seed in 0..50 {
        let after = open(&disk.after_crash(seed)).unwrap_or_else(|error| panic!("disk {seed}: {error}"));
        assert_eq!(after.view().unwrap().num_edges(), 2, "disk {seed}");
    }
}

#[test]
fn commit_is_invisible_until_synced() {
    let storage = HookedStorage::default();
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let database = Arc::new(Engine::create_in(Arc::new(storage.clone()), Path::new(DB), options).unwrap());
    let edge = |number: u64| Update::add_edge(number, number + 1);
    // One edge, a group, and a batch that is not copied.
    let batches = [vec![edge(0)], (1..20).map(edge).collect(), (20..3_000).map(edge).collect()];
    let mut num_edges = 0;
    for batch in batches {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (reader, shown) = (Arc::clone(&database), Arc::clone(&seen));
        storage.set_hook(move |path| {
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("wal-")) {
                shown.lock().unwrap().push((reader.view().unwrap().num_edges(), reader.epoch()));
            }
        });
        let epoch = database.epoch();
        database.apply_with(&batch, Missing::Lenient, Durability::Sync, pool()).unwrap();
        storage.clear_hook();
        // The hook runs before each call, at least for a write and a sync.
        let seen = seen.lock().unwrap();
        assert!(seen.len() >= 2 && seen.iter().all(|&found| found == (num_edges, epoch)), "{seen:?}");
        num_edges += batch.len() as u64;
        assert_eq!(database.view().unwrap().num_edges(), num_edges);
    }
}

#[test]
fn a_full_disk_refuses_a_commit_and_nothing_else() {
    let options = kinds()[0];
    let (mut call, mut num_refused, mut num_poisoned) = (0, 0, 0);
    loop {
        let disk = FaultStorage::default();
        let database = create(&disk, options);
        let add = |key: u64| database.apply(&[Update::add_edge(key, key + 1)], Missing::Lenient, pool());
        add(0).unwrap();
        let first = disk.num_calls();
        disk.set_plan(FaultPlan::FailAt(first + call, IoKind::StorageFull));
        let answers: Vec<_> = (1..4).map(|step| add(10 * step)).collect();
        let was_reached = disk.num_calls() > first + call;
        disk.set_plan(FaultPlan::Never);
        let num_answered = 1 + answers.iter().filter(|answer| answer.is_ok()).count() as u64;
        assert_eq!(database.view().unwrap().num_edges(), num_answered, "what is refused has not happened");
        let later = add(100);
        let is_poisoned = later.is_err();
        let mut num_edges = num_answered;
        match later {
            Ok(applied) => num_edges = applied.edges,
            Err(error) => {
                assert!(error.to_string().contains("open the database again"), "{error}");
                assert_eq!(database.checkpoint(None).unwrap_err().kind(), ErrorKind::Io);
                num_poisoned += 1;
            }
        }
        num_refused += usize::from(answers.iter().any(|answer| answer.is_err()) && !is_poisoned);
        assert_eq!(database.view().unwrap().num_edges(), num_edges, "readers go on");
        let found = open(&kill(&disk, database)).unwrap().view().unwrap().num_edges();
        assert!(found == num_edges || (is_poisoned && found == num_edges + 1), "{found} edges, {num_edges} answered");
        call += 1;
        if !was_reached {
            break;
        }
    }
    assert!(num_refused > 0 && num_poisoned > 0, "{num_refused} refused, {num_poisoned} poisoned");
}

/// A small WAL of two generations: two segments that begin with an edge each, and no snapshot of them. All commits are
/// synced and certified. Returns the number of edges too.
pub fn small_log() -> (FaultStorage, u64) {
    log_of(2)
}

/// A small WAL of `num_segments` segments.
pub fn log_of(num_segments: u64) -> (FaultStorage, u64) {
    log_with(num_segments, Durability::Sync)
}

/// As [`log_of`], with this durability of the commits in the last segment.
pub fn log_with(num_segments: u64, of_last: Durability) -> (FaultStorage, u64) {
    let mut disk = FaultStorage::default();
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let mut num_edges = 0;
    for generation in 0..num_segments {
        let database = if generation == 0 { create(&disk, options) } else { open(&disk).unwrap() };
        database.set_durability(if generation + 1 == num_segments { of_last } else { Durability::Sync });
        for step in 0..4 {
            let source = generation * 10 + step;
            let applied = database.apply(&[Update::add_edge(source, source + 1)], Missing::Lenient, pool()).unwrap();
            num_edges = applied.edges;
        }
        if database.durability() == Durability::Sync {
            wait_until("the end of the WAL is certified", || certified(&disk) == Some(database.epoch()));
        }
        // Without another opening, which would certify the commits that were not synced.
        disk = kill(&disk, database);
    }
    (disk, num_edges)
}

/// The epoch of the durable high-water mark.
fn certified(disk: &FaultStorage) -> Option<u64> {
    let mark = disk.contents(&Path::new(DB).join("LOG"))?;
    Some(u64::from_le_bytes(*mark.get(24..)?.first_chunk()?))
}

/// The number of edges of a damaged WAL. `None` if it is refused with an error that names the file.
pub fn edges_of(disk: &FaultStorage, place: &str) -> Option<u64> {
    let reader = Engine::open_read_only_in(Arc::new(disk.clone()), Path::new(DB));
    let writer = open(disk);
    match (reader, writer) {
        (Ok(reader), Ok(writer)) => {
            let num_edges = writer.view().unwrap().num_edges();
            assert_eq!(reader.view().unwrap().num_edges(), num_edges, "{place}");
            Some(num_edges)
        }
        (Err(reader), Err(writer)) => {
            assert_eq!(reader.to_string(), writer.to_string(), "{place}");
            assert!(writer.to_string().contains("wal-"), "{place}: {writer}");
            assert_eq!(writer.kind(), ErrorKind::Corrupt, "{place}: {writer}");
            None
        }
        (reader, writer) => panic!("{place}: a reader finds {reader:?}, a writer {writer:?}"),
    }
}

#[test]
fn missing_or_foreign_segment_is_refused() {
    let (disk, _) = small_log();
    let paths = segments(&disk);
    let copy = disk.duplicate();
    copy.remove_file(&paths[0]).unwrap();
    let error = open(&copy).unwrap_err();
    assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains("missing"), "{error}");
    assert_eq!(segments(&copy), paths[1..], "nothing is changed");
    let (other, _) = small_log();
    let copy = disk.duplicate();
    copy.set_contents(&paths[1], &other.contents(&paths[1]).unwrap());
    let error = open(&copy).unwrap_err();
    assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains("another database"), "{error}");
    let copy = disk.duplicate();
    copy.set_contents(&paths[1], &disk.contents(&paths[0]).unwrap());
    assert_eq!(open(&copy).unwrap_err().kind(), ErrorKind::Corrupt, "the same segment twice");
    let reader = |disk: &FaultStorage| Engine::open_read_only_in(Arc::new(disk.clone()), Path::new(DB));
    assert_eq!(reader(&copy).unwrap_err().kind(), ErrorKind::Corrupt);
    // The snapshots stay readable.
    let snapshots = Engine::open_snapshots_in(Arc::new(copy), Path::new(DB)).unwrap();
    let newest = snapshots.snapshots().last().unwrap().num_edges;
    assert_eq!(snapshots.view().unwrap().num_edges(), newest);
    assert_eq!(snapshots.refresh().unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn a_log_that_is_gone_is_named() {
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    fn add(database: &Engine, source: u64) {
        database.apply(&[Update::add_edge(source, source + 1)], Missing::Lenient, pool()).unwrap();
    }
    type Commits = fn(&Engine);
    let with_commits: [(&str, Commits); 4] = [
        ("a commit", |database| add(database, 1)),
        ("commits", |database| (1..9).for_each(|source| add(database, source))),
        ("commits behind a snapshot", |database| {
            (1..4).for_each(|source| add(database, source));
            database.checkpoint(None).unwrap();
            add(database, 5);
        }),
        ("commits that the thread syncs", |database| {
            database.set_durability(Durability::Batched(Duration::ZERO));
            add(database, 1);
            while database.live_stats().log_syncs == 0 {
                std::thread::yield_now();
            }
            database.set_durability(Durability::Sync);
            add(database, 2);
        }),
    ];
    for (place, commit) in with_commits {
        let disk = FaultStorage::default();
        let database = create(&disk, options);
        commit(&database);
        let left = kill(&disk, database);
        let newest = Engine::open_snapshots_in(Arc::new(left.clone()), Path::new(DB)).unwrap();
        let num_before = newest.view().unwrap().num_edges();
        assert!(edges_of(&left.duplicate(), place).unwrap() > num_before, "{place}");
        segments(&left).iter().for_each(|path| left.remove_file(path).unwrap());
        assert_eq!(edges_of(&left, place), None, "{place}");
        let error = open(&left).unwrap_err().to_string();
        assert!(error.contains("which was durable, is missing"), "{place}: {error}");
        assert_eq!(newest.refresh().unwrap_err().kind(), ErrorKind::Corrupt, "{place}");
        // To accept the loss, the operator removes the durable high-water mark.
        left.remove_file(&Path::new(DB).join("LOG")).unwrap();
        assert_eq!(edges_of(&left, place), Some(num_before), "{place}");
    }
}

#[test]
fn a_log_that_lacks_its_end_is_named() {
    let (disk, num_edges) = small_log();
    disk.remove_file(segments(&disk).last().unwrap()).unwrap();
    assert_eq!(edges_of(&disk.duplicate(), "without the last segment"), None);
    // Records that a snapshot covers are not required.
    let (disk, _) = small_log();
    open(&disk).unwrap().close().unwrap();
    assert_eq!(segments(&disk), Vec::<PathBuf>::new());
    assert_eq!(edges_of(&disk, "closed"), Some(num_edges));
}

#[test]
fn a_reader_follows_commits_and_snapshots() {
    let disk = FaultStorage::default();
    let options = kinds()[5];
    let writer = create(&disk, options);
    let mut history = History::new(options, 3);
    let reader = Engine::open_read_only_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
    assert!(!reader.refresh().unwrap());
    for step in 0..60 {
        let state = || (writer.epoch(), writer.snapshots());
        let state_before = state();
        let held = reader.view().unwrap();
        let before = read(&held);
        history.run(&writer, 2, |_| Durability::Sync);
        assert_eq!(read(&reader.view().unwrap()), before, "step {step}: nothing moves by itself");
        assert!(reader.refresh().unwrap() || state() == state_before, "step {step}");
        assert_eq!(read(&reader.view().unwrap()), history.truth.model(), "step {step}");
        assert_eq!(read(&held), before, "step {step}: a view never changes");
        assert!(!reader.refresh().unwrap());
    }
    assert!(reader.apply(&[Update::add_edge(1, 2)], Missing::Lenient, pool()).is_err());
    // The writer may still sync its mark.
    drop(writer);
    let num_calls = disk.num_calls();
    drop(reader);
    assert_eq!(disk.num_calls(), num_calls, "a reader changes nothing");
}

/// A reopened writer begins its WAL anew, while a reader expects more of it than exists.
#[test]
fn a_reader_follows_who_writes_next() {
    let disk = FaultStorage::default();
    let later = Durability::Batched(Duration::from_secs(3600));
    let add = |writer: &Engine, number: u64| {
        writer.apply_with(&[Update::add_edge(number, number + 1)], Missing::Lenient, later, pool()).unwrap();
    };
    let writer = create(&disk, kinds()[0]);
    let reader = Engine::open_read_only_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
    (0..20).for_each(|number| add(&writer, number));
    assert!(reader.refresh().unwrap());
    drop(writer);
    let writer = open(&disk).unwrap();
    for number in 20..30 {
        add(&writer, number);
        assert!(reader.refresh().unwrap(), "commit {number}");
        assert_eq!(reader.view().unwrap().num_edges(), number + 1);
    }
}

/// A segment that is written during a read looks torn at changing places. Only a stable tear is damage.
#[test]
fn segment_torn_by_concurrent_write_is_reread() {
    let storage = HookedStorage::default();
    let writer = create(&storage.disk, kinds()[1]);
    let segment = |disk: &FaultStorage| segments(disk).remove(0);
    let mut ends = Vec::new();
    for source in 0..8 {
        let update = [Update::add_weighted_edge(source, source + 1, 1)];
        writer.apply(&update, Missing::Lenient, pool()).unwrap();
        let bytes = storage.disk.contents(&segment(&storage.disk)).unwrap();
        ends.push(bytes.iter().rposition(|&byte| byte != 0).unwrap());
    }
    let path = segment(&storage.disk);
    let whole = storage.disk.contents(&path).unwrap();
    let open = || Engine::open_read_only_in(Arc::new(storage.clone()), Path::new(DB));
    /// After each read of the mark, which precedes that of the segment, flips a byte at the next of `ends`.
    fn tear(storage: &HookedStorage, segment: PathBuf, whole: Vec<u8>, mut ends: Vec<usize>) {
        let next = storage.clone();
        storage.set_read_hook(move |path| {
            if path.ends_with("LOG") {
                let mut bytes = whole.clone();
                ends.pop().into_iter().for_each(|end| bytes[end] ^= 1);
                next.disk.set_contents(&segment, &bytes);
            }
            tear(&next, segment.clone(), whole.clone(), std::mem::take(&mut ends));
        });
    }
    tear(&storage, path.clone(), whole.clone(), ends[..6].to_vec());
    assert_eq!(open().unwrap().view().unwrap().num_edges(), 8);
    tear(&storage, path, whole, vec![ends[3]; 2]);
    assert_eq!(open().unwrap_err().kind(), ErrorKind::Corrupt, "the same twice");
}

/// A refresh has read an old manifest when another refresh has shown everything.
#[test]
fn concurrent_refreshes_leave_no_gap() {
    let storage = HookedStorage::default();
    let writer = Arc::new(create(&storage.disk, kinds()[0]));
    let add = |writer: &Engine, target: u64| {
        writer.apply_with(&[Update::add_edge(0, target)], Missing::Lenient, Durability::Sync, pool()).unwrap();
    };
    (1..=4).for_each(|target| add(&writer, target));
    writer.checkpoint(None).unwrap();
    let reader = Engine::open_read_only_in(Arc::new(storage.clone()), Path::new(DB)).unwrap();
    let reader = Arc::new(reader);
    writer.apply(&[Update::remove_edge(0, 1)], Missing::Lenient, pool()).unwrap();
    writer.checkpoint(None).unwrap();
    let (busy, other) = (Arc::clone(&writer), Arc::clone(&reader));
    storage.set_read_hook(move |path| {
        assert!(path.ends_with("MANIFEST"));
        busy.apply(&[Update::remove_edge(0, 2)], Missing::Lenient, pool()).unwrap();
        busy.checkpoint(None).unwrap();
        let (other, (done, is_done)) = (Arc::clone(&other), std::sync::mpsc::channel());
        std::thread::spawn(move || done.send(other.refresh().unwrap()));
        // The other refresh may have to wait.
        let _ = is_done.recv_timeout(Duration::from_millis(300));
        busy.apply(&[Update::remove_edge(0, 3)], Missing::Lenient, pool()).unwrap();
    });
    reader.refresh().unwrap();
    writer.apply(&[Update::add_edge(4, 0)], Missing::Lenient, pool()).unwrap();
    reader.refresh().unwrap();
    assert_eq!(read(&reader.view().unwrap()), read(&writer.view().unwrap()));
}

/// The kernel reports a failed write to one sync only. Another sync of the file would succeed.
#[test]
fn no_sync_beside_one_that_fails_succeeds() {
    let storage = HookedStorage::default();
    let database = Arc::new(Engine::create_in(Arc::new(storage.clone()), Path::new(DB), kinds()[0]).unwrap());
    let soon = Durability::Batched(Duration::from_secs(2));
    let other = Arc::clone(&database);
    let (done, is_done) = std::sync::mpsc::channel();
    database.apply_with(&[Update::add_edge(1, 2)], Missing::Lenient, soon, pool()).unwrap();
    // The next call is the sync of the WAL thread.
    let (disk, mut is_first) = (storage.disk.clone(), true);
    storage.set_hook(move |_| {
        if !std::mem::take(&mut is_first) {
            return;
        }
        let (other, done, answer) = (Arc::clone(&other), done.clone(), std::sync::mpsc::channel());
        std::thread::spawn(move || {
            let update = [Update::add_edge(2, 3)];
            let answered = other.apply_with(&update, Missing::Lenient, Durability::Sync, pool());
            let _ = (answer.0.send(()), done.send(answered.map(drop)));
        });
        // The second sync must wait.
        assert!(answer.1.recv_timeout(Duration::from_millis(300)).is_err(), "it synced what is being synced");
        disk.set_plan(FaultPlan::FailNext("wal-", IoKind::Other));
    });
    let answered = is_done.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(answered.unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn a_commit_of_one_edge_takes_little() {
    let disk = FaultStorage::default();
    let database = create(&disk, GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() });
    database.apply(&[Update::add_edge(0, 999)], Missing::Lenient, pool()).unwrap();
    let end = |disk: &FaultStorage| {
        let bytes = disk.contents(&segments(disk)[0]).unwrap();
        bytes.iter().rposition(|&byte| byte != 0).unwrap()
    };
    let before = end(&disk);
    for target in 0..100 {
        database.apply(&[Update::add_edge(1, target)], Missing::Lenient, pool()).unwrap();
    }
    let num_bytes = end(&disk) - before;
    assert!(num_bytes < 100 * 64, "{num_bytes} bytes for 100 commits of an edge");
    assert!(database.log_bytes().unwrap() >= num_bytes as u64);
}

#[test]
fn a_large_batch_comes_back() {
    let pool = Pool::new(2).unwrap();
    for options in kinds() {
        let disk = FaultStorage::default();
        let database = create(&disk, options);
        let mut truth = Truth::new(options);
        let random = &mut Random::new(9);
        let add = |truth: &mut Truth, random: &mut Random| {
            let (u, v) = (u64::from(random.below(NUM_KEYS)), u64::from(random.below(NUM_KEYS)));
            let (source, target) = (truth.key(u), truth.key(v));
            if random.below(3) == 0 {
                truth.graph.remove_edges(u, v);
                return Update::RemoveEdge { source, target };
            }
            truth.add_edge(u, v, 1);
            Update::AddEdge { source, target, weight: truth.weight(1), properties: Vec::new() }
        };
        let vertices: Vec<_> = (0..u64::from(NUM_KEYS)).map(|number| Update::AddVertex(truth.key(number))).collect();
        (0..u64::from(NUM_KEYS)).for_each(|number| truth.add_vertex(number));
        database.apply(&vertices, Missing::Lenient, &pool).unwrap();
        let updates: Vec<_> = (0..10_000).map(|_| add(&mut truth, random)).collect();
        database.apply(&updates, Missing::Lenient, &pool).unwrap();
        assert_eq!(read(&database.view().unwrap()), truth.model());
        let database = open(&kill(&disk, database)).unwrap();
        assert_eq!(read(&database.view().unwrap()), truth.model(), "{options:?}");
    }
}

#[test]
fn graphs_in_memory_have_no_log() {
    let database = Engine::in_memory(GraphOptions::default()).unwrap();
    database.set_durability(Durability::Batched(Duration::from_millis(1)));
    database.apply(&[Update::add_edge(1, 2)], Missing::Lenient, pool()).unwrap();
    assert_eq!(database.log_bytes().unwrap(), 0);
}
