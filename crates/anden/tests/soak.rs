//! Writers, readers, analyses and an operator work on one database for a given time. The graph keeps its size, so
//! memory, descriptors, threads, maps, files and disk must not grow after a warm-up.
//!
//! `ANDEN_SOAK_SECONDS` is the time; `make soak SECONDS=3600` runs an hour. This is the only test of its program,
//! because resources are those of the process.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anden::property::IndexKind;
use anden::snapshot::BackupOptions;
use anden::{
    Database, Durability, Error, Job, OpenOptions, Options, Parameters, Result, Retention, Session, Update, View,
};
use anden_base::memory::CountingAllocator;
use anden_testkit::{Random, ResourceLog};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const DEFAULT_SECONDS: u64 = 60;
/// Samples of a run, at most one in [`SHORTEST`].
const NUM_SAMPLES: u64 = 600;
const SHORTEST: Duration = Duration::from_millis(50);
const NUM_WRITERS: u64 = 2;
/// Edges of a batch.
const BATCH: u64 = 20;
/// Batches of a writer whose edges are in the graph. Each batch removes the one that is this much older.
const WINDOW: u64 = 400;
/// Targets of edges.
const FIRST_TARGET: u64 = 1000;
/// Snapshots that are kept.
const KEPT: u32 = 4;

/// The shared state of the threads.
struct Soak {
    folder: PathBuf,
    session: Session,
    db: Database,
    is_over: AtomicBool,
    num_rounds: [AtomicU64; 4],
}

/// The kinds of threads, as places in `num_rounds`.
#[derive(Clone, Copy, Debug)]
enum SoakRole {
    Writer,
    Reader,
    Analyst,
    Operator,
}

impl Soak {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Calls `body` with ascending numbers until the time is over.
    fn repeat(&self, role: SoakRole, mut body: impl FnMut(u64) -> Result<()>) {
        let mut number = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            if let Err(error) = body(number) {
                // The other threads must end, or the test would run until its time is over.
                self.is_over.store(true, Ordering::Relaxed);
                panic!("round {number} of a {role:?}: {error}");
            }
            number += 1;
            self.num_rounds[role as usize].fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The pairs of a batch, which no batch within the window shares.
fn pairs(writer: u64, number: u64) -> impl Iterator<Item = (u64, u64)> {
    let target = FIRST_TARGET + number % (2 * WINDOW);
    (0..BATCH).map(move |i| (writer * BATCH + i, target))
}

/// Adds a batch of edges with values, removes an old one, and changes values of vertices.
fn batch(writer: u64, number: u64) -> Vec<Update> {
    let mut updates: Vec<Update> = pairs(writer, number)
        .map(|(source, target)| Update::add_edge_with(source, target, [("since", number as i64)]))
        .collect();
    if let Some(old) = number.checked_sub(WINDOW) {
        updates.extend(pairs(writer, old).map(|(source, target)| Update::remove_edge(source, target)));
    }
    let vertex = FIRST_TARGET + number % WINDOW;
    updates.push(Update::set_vertex(vertex, "age", (number % 90) as i64));
    updates.push(Update::set_vertex(vertex, "name", format!("vertex {vertex} in batch {number}").as_str()));
    updates
}

/// Commits in turn with all durabilities, and as transactions.
fn write(soak: &Soak, writer: u64) {
    let durabilities =
        [Durability::None, Durability::Batched(Duration::from_millis(5)), Durability::None, Durability::Sync];
    soak.repeat(SoakRole::Writer, |number| {
        let updates = batch(writer, number);
        match number % 5 {
            4 => soak.db.submit(&updates)?.wait().map(drop),
            i => soak.db.apply_with(&updates, durabilities[i as usize]).map(drop),
        }?;
        if number % 50 == 0 {
            // A key of its own for each writer, so that transactions do not conflict.
            soak.db.transact(|tx| {
                let key = 10 + writer;
                let seen = tx.degree(key)?;
                tx.set(key, "age", seen as i64)
            })?;
        }
        Ok(())
    });
}

/// Asks questions, holds views for a while, and opens the database anew.
fn read(soak: &Soak, reader: u64) {
    let mut random = Random::new(reader);
    let mut held: Vec<View> = Vec::new();
    soak.repeat(SoakRole::Reader, |number| {
        soak.db.navigate(|view| {
            let source = random.below_u64(NUM_WRITERS * BATCH);
            view.out_degree(view.vertex(source)?)?;
            view.find_vertices("age", random.below_u64(90) as i64).map(drop)
        })?;
        if number % 100 == 0 {
            held.push(soak.db.view()?);
            if held.len() > 3 {
                let view = held.remove(0);
                assert!(view.num_edges() > 0);
            }
        }
        if number % 200 == 0 {
            let options = OpenOptions { read_only: true, ..OpenOptions::from(&soak.session) };
            let other = Database::open_with(soak.path("db"), &options)?;
            assert!(other.view()?.num_edges() > 0);
            other.refresh()?;
        }
        Ok(())
    });
}

/// Runs kernels on the newest version, on a part of it, and on a snapshot.
fn analyse(soak: &Soak) {
    let kernels = ["wcc", "pagerank", "triangles", "cdlp", "kcore", "scc"];
    let job = |number: u64| Job::new(kernels[number as usize % kernels.len()], Parameters::default());
    soak.repeat(SoakRole::Analyst, |number| {
        let job = job(number)?;
        soak.db.analyse(|view| view.run(&job).map(drop))?;
        soak.db.analyse(|view| view.filter(Some("since > 100"), None)?.run(&job).map(drop))?;
        if let Some(snapshot) = soak.db.snapshots().last() {
            match soak.db.snapshot(snapshot.number) {
                // Retention dropped it meanwhile.
                Err(Error::NotFound { .. }) => {}
                view => drop(view?.run(&job)?),
            }
        }
        Ok(())
    });
}

/// What an operator does, in turn.
fn operate(soak: &Soak) {
    let db = &soak.db;
    let remove = |name: &str| std::fs::remove_dir_all(soak.path(name)).unwrap();
    soak.repeat(SoakRole::Operator, |number| {
        match number % 8 {
            0 => drop(db.checkpoint(None)?),
            1 => drop(db.merge_newest(2)?),
            2 => {
                db.backup(soak.path("full"))?;
                db.checkpoint(None)?;
                let since = Some(soak.path("full"));
                db.backup_with(soak.path("more"), &BackupOptions { since, ..BackupOptions::default() })?;
                let sources = ["full", "more"].map(|name| soak.path(name));
                Database::restore(&sources, soak.path("restored"), None, &soak.session)?;
                Database::open_with(soak.path("restored"), &OpenOptions::from(&soak.session))?.close()?;
                ["full", "more", "restored"].iter().for_each(|name| remove(name));
            }
            3 => drop(db.merge()?),
            4 => {
                let oldest = db.snapshots()[0].number;
                match db.drop_snapshot(oldest) {
                    // Retention was faster, or it is the only one.
                    Err(Error::NotFound { .. } | Error::InvalidInput(_)) | Ok(()) => {}
                    Err(error) => return Err(error),
                }
            }
            5 => match db.prepare(&["triangles"]) {
                // Commits came since the last merge, as they nearly always do.
                Err(Error::InvalidInput(_)) | Ok(_) => {}
                Err(error) => return Err(error),
            },
            6 => {
                db.drop_index("vertex", "age")?;
                db.create_index("vertex", "age", IndexKind::Plain)?;
            }
            _ => {
                let newest = db.checkpoint(None)?.number;
                drop(db.lease(newest)?);
                db.verify()?;
            }
        }
        Ok(())
    });
}

/// A database with the first batches.
fn begin(folder: &Path) -> Soak {
    let session = Session::new(2).unwrap();
    let options = Options { multigraph: true, edge_properties: true, ..Options::default() };
    let db = Database::create_with(folder.join("db"), options, &session).unwrap();
    for writer in 0..NUM_WRITERS {
        db.apply(&batch(writer, 0)).unwrap();
    }
    db.create_index("vertex", "age", IndexKind::Plain).unwrap();
    db.retain(Retention::Last(KEPT)).unwrap();
    db.set_checkpoint_bytes(Some(400_000));
    db.set_background_write_rate(None);
    Soak { folder: folder.to_owned(), session, db, is_over: AtomicBool::new(false), num_rounds: Default::default() }
}

#[test]
fn resources_do_not_grow_with_time() {
    let seconds = std::env::var("ANDEN_SOAK_SECONDS").map_or(DEFAULT_SECONDS, |text| text.parse().unwrap());
    let time = Duration::from_secs(seconds);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let soak = &begin(folder.path());
    let mut log = ResourceLog::new(folder.path());
    let start = Instant::now();
    std::thread::scope(|scope| {
        for writer in 0..NUM_WRITERS {
            scope.spawn(move || write(soak, writer));
        }
        for reader in 0..2 {
            scope.spawn(move || read(soak, reader));
        }
        scope.spawn(|| analyse(soak));
        scope.spawn(|| operate(soak));
        let pause = (time / NUM_SAMPLES as u32).max(SHORTEST);
        while start.elapsed() < time && !soak.is_over.load(Ordering::Relaxed) {
            // The subject: samples at an even rate.
            std::thread::sleep(pause);
            log.sample();
        }
        soak.is_over.store(true, Ordering::Relaxed);
    });
    let rounds = soak.num_rounds.each_ref().map(|num| num.load(Ordering::Relaxed));
    println!("{seconds} s, rounds {rounds:?} of writers, readers, analyses, operator\n{}", log.summary());
    soak.db.verify().unwrap();
    assert!(rounds.iter().all(|&num| num > 0), "{rounds:?}");
    // As the graph keeps its size, growth is a leak.
    let num_edges = soak.db.view().unwrap().num_edges();
    assert!(num_edges <= NUM_WRITERS * BATCH * WINDOW, "{num_edges} edges");
    let leaks = log.leaks();
    assert!(leaks.is_empty(), "{leaks:#?}");
}
