//! Events and spans of the library, as a subscriber gets them.
//!
//! The tests have a process of their own and run one at a time. `tracing` decides once for each place in the code
//! whether a subscriber wants its events. A thread without a subscriber that is the first to reach a place can
//! decide against them while another thread subscribes.

use std::fmt::{Debug, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{
    AppendOptions, BackupOptions, BackupTarget, Changes, Engine, LoadOptions, MergeScope, Missing, RestoreOptions,
    Retention, Update, restore_in,
};
use anden_formats::InputPath;
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

/// Collects the events and the spans of one thread as lines: level, message or name, and the names of all fields.
#[derive(Clone, Default)]
struct Collector {
    events: Arc<Mutex<Vec<String>>>,
    spans: Arc<Mutex<Vec<String>>>,
}

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

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut text = EventText::default();
        span.record(&mut text);
        let mut spans = self.spans.lock().unwrap();
        spans.push(format!("{} {}:{}", span.metadata().level(), span.metadata().name(), text.fields));
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut text = EventText::default();
        values.record(&mut text);
        self.spans.lock().unwrap()[span.into_u64() as usize - 1].push_str(&text.fields);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = EventText::default();
        event.record(&mut text);
        let level = *event.metadata().level();
        self.events.lock().unwrap().push(format!("{level} {}:{}", text.message, text.fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The events that `body` causes on this thread, up to this level.
fn events_of<R>(level: Level, body: impl FnOnce() -> R) -> Vec<String> {
    collected(level, body).0
}

/// The events and the spans that `body` causes on this thread, up to this level.
fn collected<R>(level: Level, body: impl FnOnce() -> R) -> (Vec<String>, Vec<String>) {
    let collector = Collector::default();
    tracing::subscriber::with_default(collector.clone(), || drop(body()));
    let is_meant = |line: &&String| line.split(' ').next().unwrap().parse::<Level>().unwrap() <= level;
    let lines = |lines: &Mutex<Vec<String>>| lines.lock().unwrap().iter().filter(is_meant).cloned().collect();
    (lines(&collector.events), lines(&collector.spans))
}

fn spans_of<R>(level: Level, body: impl FnOnce() -> R) -> Vec<String> {
    collected(level, body).1
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

#[test]
fn operations_of_a_writer_are_in_spans() {
    let _alone = alone();
    let (disk, pool) = (FaultStorage::default(), Pool::new(1).unwrap());
    let database = Engine::create_in(Arc::new(disk.clone()), Path::new(DB), Default::default()).unwrap();
    let commits = ["TRACE commit_group: epoch commits durability"];
    assert_eq!(spans_of(Level::TRACE, || commit(&database, 1)), commits);
    assert_eq!(spans_of(Level::DEBUG, || commit(&database, 2)), [""; 0]);
    let edges: Vec<_> = (0..2000).map(|key| Update::add_edge(key, key + 1)).collect();
    assert_eq!(spans_of(Level::TRACE, || database.apply(&edges, Missing::Lenient, &pool).unwrap()), commits);
    let checkpoint = || database.checkpoint(None).unwrap();
    let checkpoints = ["INFO checkpoint: epoch"];
    for _ in 0..2 {
        assert_eq!(spans_of(Level::DEBUG, checkpoint), checkpoints);
    }
    let merge = |scope| database.merge(scope, &pool, &Silent).unwrap();
    assert_eq!(spans_of(Level::DEBUG, || merge(MergeScope::Newest(2))), ["INFO merge: snapshot"]);
    assert_eq!(spans_of(Level::DEBUG, || merge(MergeScope::All)), ["INFO merge: snapshot"]);
    let dropped = spans_of(Level::DEBUG, || database.drop_snapshots(&[1], &Silent).unwrap());
    assert_eq!(dropped, ["INFO drop: snapshots"]);
    assert_eq!(spans_of(Level::DEBUG, || database.retain(Retention::Last(1)).unwrap()), ["INFO retention: retention"]);
    let changes = Changes::default().add_edge(7, 8);
    let append = || database.append_changes(&changes, &AppendOptions::default(), &pool, &Silent).unwrap();
    assert_eq!(spans_of(Level::INFO, append), ["INFO append: path"]);
    drop(database);
    let open = || Engine::open_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
    assert_eq!(spans_of(Level::DEBUG, open), ["INFO open: path read_only", "INFO recovery: epoch"]);
    let open = || Engine::open_read_only_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
    assert_eq!(spans_of(Level::DEBUG, open), ["INFO open: path read_only"]);
}

#[test]
fn long_work_has_a_span_for_each_phase() {
    let _alone = alone();
    let (disk, pool) = (FaultStorage::default(), Pool::new(1).unwrap());
    let storage = || Arc::new(disk.clone());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.txt");
    std::fs::write(&file, "1 2\n2 3\n").unwrap();
    let options = LoadOptions::default();
    let load =
        || Engine::load_in(storage(), Path::new(DB), &[InputPath::File(file)], &options, &pool, &Silent).unwrap();
    let (events, spans) = collected(Level::DEBUG, load);
    assert_eq!(spans[0], "INFO load: path");
    let num_phases = spans.iter().filter(|span| span.starts_with("DEBUG phase: name")).count();
    let is_end = |event: &&String| *event == "DEBUG phase ended: seconds";
    assert!(num_phases > 1 && events.iter().filter(is_end).count() == num_phases, "{spans:?}: {events:?}");
    assert!(events.contains(&"INFO load ended: vertices edges bytes seconds".into()), "{events:?}");
    let database = Engine::open_in(storage(), Path::new(DB)).unwrap();
    let target = || BackupTarget::Directory("copy".into());
    let backup = || database.backup_in(storage(), target(), &BackupOptions::default(), &Silent).unwrap();
    let (events, spans) = collected(Level::DEBUG, backup);
    assert_eq!(spans, ["INFO backup: path", "DEBUG phase: name total", "DEBUG phase: name"]);
    assert!(events.contains(&"INFO made a backup: epoch bytes seconds".into()), "{events:?}");
    let options = RestoreOptions::default();
    let restore = || restore_in(storage(), Path::new("new"), &["copy".into()], options, &pool, &Silent).unwrap();
    let (events, spans) = collected(Level::DEBUG, restore);
    assert!(spans[0] == "INFO restore: path" && spans.len() > 2, "{spans:?}");
    assert!(events.contains(&"INFO restored the database: epoch history bytes seconds".into()), "{events:?}");
    // Without a subscriber for details, phases make no spans.
    assert_eq!(spans_of(Level::INFO, || database.checkpoint(None).unwrap()), ["INFO checkpoint: epoch"]);
}
