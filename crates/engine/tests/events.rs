//! Events of the library, as a subscriber gets them.
//!
//! The tests have a process of their own and run one at a time. `tracing` decides once for each place in the code
//! whether a subscriber wants its events. A thread without a subscriber that is the first to reach a place can
//! decide against them while another thread subscribes.

use std::fmt::{Debug, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{Engine, MergeScope, Missing, Retention, Update};
use anden_testkit::{FaultPlan, FaultStorage};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

const DB: &str = "db";

/// One test at a time holds it.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Collects the events of one thread as lines: level, message, and the names of all fields.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<String>>>);

/// The message of an event, and the names of its fields.
#[derive(Default)]
struct EventText {
    message: String,
    fields: String,
}

impl Visit for EventText {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => write!(self.message, "{value:?}").unwrap(),
            name => write!(self.fields, " {name}").unwrap(),
        }
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("anden")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = EventText::default();
        event.record(&mut text);
        let level = *event.metadata().level();
        self.0.lock().unwrap().push(format!("{level} {}:{}", text.message, text.fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The events that `body` causes on this thread, up to this level.
fn events_of<R>(level: Level, body: impl FnOnce() -> R) -> Vec<String> {
    let collector = Collector::default();
    tracing::subscriber::with_default(collector.clone(), || drop(body()));
    let events = collector.0.lock().unwrap();
    let is_meant = |event: &&String| event.split(' ').next().unwrap().parse::<Level>().unwrap() <= level;
    events.iter().filter(is_meant).cloned().collect()
}

fn commit(database: &Engine, key: u64) {
    database.apply(&[Update::add_edge(key, key + 1)], Missing::Lenient, &Pool::new(1).unwrap()).unwrap();
}

#[test]
fn checkpoint_and_merge_report_begin_and_end() {
    let _alone = alone();
    let disk = FaultStorage::default();
    let database = Engine::create_in(Arc::new(disk), Path::new(DB), Default::default()).unwrap();
    commit(&database, 1);
    let events = events_of(Level::INFO, || database.checkpoint(None).unwrap());
    let ended = "INFO checkpoint ended: epoch snapshot bytes seconds";
    assert_eq!(events, ["INFO checkpoint began: epoch arcs", ended]);
    let events = events_of(Level::INFO, || database.checkpoint(None).unwrap());
    assert_eq!(events, [ended], "no changes");
    let merge = || database.merge(MergeScope::All, &Pool::new(1).unwrap(), &Silent).unwrap();
    assert_eq!(
        events_of(Level::INFO, merge),
        ["INFO merge began: snapshot", "INFO merge ended: snapshot bytes deltas seconds"]
    );
    assert_eq!(events_of(Level::INFO, merge), [""; 0], "nothing to merge");
}

#[test]
fn dropped_snapshots_are_reported() {
    let _alone = alone();
    let database = Engine::in_memory(Default::default()).unwrap();
    for key in 1..5 {
        commit(&database, key);
        database.checkpoint(None).unwrap();
    }
    let events = events_of(Level::INFO, || database.drop_snapshots(&[1], &Silent).unwrap());
    assert_eq!(events, ["INFO dropped snapshots: snapshots"]);
    let events = events_of(Level::INFO, || database.retain(Retention::Last(2)).unwrap());
    assert_eq!(events, ["INFO set the retention of snapshots: retention dropped"]);
    let events = events_of(Level::INFO, || database.checkpoint(None).unwrap());
    assert_eq!(events[0], "INFO dropped snapshots that retention does not keep: snapshots");
}

#[test]
fn opening_and_log_segments_are_reported() {
    let _alone = alone();
    let disk = FaultStorage::default();
    let database = Engine::create_in(Arc::new(disk.clone()), Path::new(DB), Default::default()).unwrap();
    assert_eq!(events_of(Level::DEBUG, || commit(&database, 1)), ["DEBUG began a WAL segment: epoch segment"]);
    assert_eq!(events_of(Level::DEBUG, || commit(&database, 2)), [""; 0]);
    let trimmed = events_of(Level::DEBUG, || database.checkpoint(None).unwrap());
    assert!(trimmed.iter().any(|event| event.starts_with("DEBUG removed WAL segments")), "{trimmed:?}");
    commit(&database, 3);
    let left = disk.after_crash(1);
    let open = || Engine::open_read_only_in(Arc::new(left.clone()), Path::new(DB)).unwrap();
    assert_eq!(
        events_of(Level::DEBUG, open),
        ["INFO opened the database to read: path epoch", "DEBUG read the WAL on: epoch records"]
    );
    let open = || Engine::open_in(Arc::new(left.clone()), Path::new(DB)).unwrap();
    let opened = "INFO opened the database to write, and replayed the WAL: path epoch records seconds";
    assert_eq!(events_of(Level::INFO, open)[0], opened);
}

#[test]
fn failures_without_a_caller_are_reported() {
    let _alone = alone();
    let disk = FaultStorage::default();
    let database = Engine::create_in(Arc::new(disk.clone()), Path::new(DB), Default::default()).unwrap();
    commit(&database, 1);
    disk.set_plan(FaultPlan::CrashAt(disk.num_calls()));
    let events = events_of(Level::ERROR, || drop(database));
    assert_eq!(events.last().unwrap(), "ERROR no snapshot at the end of the handle: path error");
}
