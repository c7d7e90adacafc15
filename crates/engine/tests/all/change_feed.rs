//! The change feed: its records make an equal replica, its changes an equal graph by keys, and it gives durable commits
//! only.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anden_base::VertexId;
use anden_base::progress::Silent;
use anden_engine::{
    AddedEdge, AppendOptions, Changes, CommitRecord, Durability, EdgeWeight, Engine, Error, GraphChange, GraphOptions,
    Key, KeyScheme, MergeScope, Missing, Retention, SnapshotView, Update, edges_between,
};
use anden_graph::property::OwnedValue;
use anden_graph::{Direction, Graph, GraphKind};
use anden_testkit::{FaultStorage, Random, crash_every_call};

use crate::log_recovery::{DB, kill, open, pool, segments};
use crate::{edge_updates, live_model};

const MB: u64 = 1 << 20;

/// The values of an edge: its number, its weight, its properties.
type EdgeText = String;

/// A comparable form of a graph, by keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    vertices: BTreeSet<String>,
    values: BTreeMap<(String, String), String>,
    edges: BTreeMap<(String, String), Vec<EdgeText>>,
}

fn edge_text(number: Option<u64>, weight: Option<EdgeWeight>, properties: &[(String, OwnedValue)]) -> EdgeText {
    let mut properties: Vec<_> = properties.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    properties.sort();
    format!("{number:?} {weight:?} {properties:?}")
}

/// The order of the ends by which a graph names its edges.
fn ends(options: &GraphOptions, u: &Key, v: &Key) -> (String, String) {
    let (u, v) = (u.to_string(), v.to_string());
    let has_direction = options.graph_kind == GraphKind::Directed && !options.ordered;
    if has_direction || u <= v { (u, v) } else { (v, u) }
}

/// The graph by keys, and the ids of its keys.
pub fn show(view: &SnapshotView) -> (Shown, Vec<String>) {
    let (mut shown, mut ids) = (Shown::default(), Vec::new());
    let (options, properties) = (view.options(), view.properties());
    for v in 0..view.vertex_bound() as VertexId {
        let key = view.key(v).unwrap();
        ids.push(key.to_string());
        if view.is_live(v) {
            shown.vertices.insert(key.to_string());
        }
        for (place, (name, _)) in properties.schema().iter().enumerate() {
            let value: OwnedValue = properties.value(place, v).unwrap().into();
            if value != OwnedValue::Null {
                shown.values.insert((key.to_string(), name.to_owned()), format!("{value:?}"));
            }
        }
        let mut targets = BTreeSet::new();
        let _ = view.for_each_fragment(Direction::Out, v, |fragment| {
            targets.extend(fragment.iter().copied());
            ControlFlow::Continue(())
        });
        for target in targets {
            let found = edges_between(view, v, target, |_| true).unwrap().into_iter();
            let found = found.map(|edge| edge_text(edge.number, edge.weight, &edge.properties)).collect();
            // The two arcs of an undirected edge show one edge.
            shown.edges.insert(ends(options, &key, &view.key(target).unwrap()), found);
        }
    }
    view.check().unwrap();
    (shown, ids)
}

/// A consumer that knows the changes only, such as a cache.
pub struct Consumer {
    options: GraphOptions,
    vertices: BTreeSet<String>,
    values: BTreeMap<(String, String), String>,
    edges: BTreeMap<(String, String), Vec<AddedEdge>>,
    /// The properties of rows.
    rows: BTreeMap<u64, Vec<(String, OwnedValue)>>,
    bound: u64,
}

impl Consumer {
    pub fn new(options: GraphOptions) -> Self {
        let (vertices, values, edges, rows) = Default::default();
        Self { options, vertices, values, edges, rows, bound: 0 }
    }

    pub fn apply(&mut self, record: &CommitRecord) {
        record
            .for_each_change(|change| {
                self.change(change);
                Ok(())
            })
            .unwrap();
    }

    fn change(&mut self, change: GraphChange) {
        match change {
            GraphChange::VertexBound(bound) => {
                self.vertices.extend((self.bound..bound).map(|id| id.to_string()));
                self.bound = bound;
            }
            GraphChange::AddVertex(key) => drop(self.vertices.insert(key.to_string())),
            GraphChange::RemoveVertex(key) => {
                let key = key.to_string();
                self.vertices.remove(&key);
                self.values.retain(|(vertex, _), _| *vertex != key);
                self.edges.retain(|(source, target), _| *source != key && *target != key);
            }
            GraphChange::SetVertexProperty { vertex, name, value } => {
                let (vertex, place) = (vertex.to_string(), (vertex.to_string(), name));
                match value {
                    OwnedValue::Null => drop(self.values.remove(&place)),
                    value => {
                        self.vertices.insert(vertex);
                        // A view shows a list as the text of its JSON.
                        self.values.insert(place, format!("{:?}", OwnedValue::from(value.as_value())));
                    }
                }
            }
            GraphChange::AddEdge(edge) => self.add(edge),
            GraphChange::RemoveEdges { source, target } => {
                self.edges.remove(&ends(&self.options, &source, &target));
            }
            GraphChange::NewProperty { .. } => {}
            other => panic!("{other:?}"),
        }
    }

    fn add(&mut self, mut edge: AddedEdge) {
        self.vertices.extend([edge.source.to_string(), edge.target.to_string()]);
        // An ordered graph has no loops.
        if self.options.ordered && edge.source == edge.target {
            return;
        }
        if let Some(row) = edge.row {
            let properties = edge.properties.take().or_else(|| self.rows.get(&row).cloned());
            let properties = properties.expect("the properties of a row come with it");
            self.rows.insert(row, properties.clone());
            edge.properties = Some(properties);
        }
        let edges = self.edges.entry(ends(&self.options, &edge.source, &edge.target)).or_default();
        if !self.options.multigraph {
            edges.clear();
        }
        edges.push(edge);
    }

    pub fn shown(&self) -> Shown {
        let text = |edge: &AddedEdge| edge_text(edge.number, edge.weight, edge.properties.as_deref().unwrap_or(&[]));
        let of_pair = |(pair, edges): (&(String, String), &Vec<AddedEdge>)| {
            let mut edges = edges.clone();
            // In the order in which they were added first.
            edges.sort_by_key(|edge| edge.number);
            (pair.clone(), edges.iter().map(text).collect())
        };
        Shown {
            vertices: self.vertices.clone(),
            values: self.values.clone(),
            edges: self.edges.iter().map(of_pair).collect(),
        }
    }
}

/// Random updates of any kind of graph.
enum Updates {
    Plain(live_model::Truth),
    WithRows(edge_updates::Truth),
}

impl Updates {
    /// Updates of an empty database. Adds its state after each commit that they need first.
    fn new(db: &Engine, states: &mut Vec<(Shown, Vec<String>)>) -> Self {
        let options = *db.options();
        if !options.multigraph && !options.edge_properties {
            return Self::Plain(live_model::Truth::new(options));
        }
        let mut truth = edge_updates::Truth::with_types(options, |updates| {
            db.apply(updates, Missing::Lenient, pool()).unwrap();
            states.push(show(&db.view().unwrap()));
        });
        truth.note_numbers(&db.view().unwrap());
        Self::WithRows(truth)
    }

    fn commit(&mut self, db: &Engine, random: &mut Random, durability: Durability) {
        let num_updates = [1, 1, 3, 30][random.below(4) as usize];
        let updates: Vec<_> = match self {
            Self::Plain(truth) => (0..num_updates).map(|_| truth.update(random)).collect(),
            Self::WithRows(truth) => (0..num_updates).map(|_| truth.update(random)).collect(),
        };
        db.apply_with(&updates, Missing::Lenient, durability, pool()).unwrap();
        if let Self::WithRows(truth) = self {
            truth.note_numbers(&db.view().unwrap());
        }
    }
}

pub fn create(options: GraphOptions) -> (FaultStorage, Engine) {
    let disk = FaultStorage::default();
    let db = Engine::create_in(Arc::new(disk.clone()), Path::new(DB), options).unwrap();
    (disk, db)
}

pub fn kinds() -> Vec<GraphOptions> {
    let dense = GraphOptions { keys: KeyScheme::Dense, edge_properties: true, ..GraphOptions::default() };
    [live_model::kinds(), edge_updates::kinds(), vec![dense]].concat()
}

pub fn records(db: &Engine, since: u64) -> Vec<CommitRecord> {
    db.changes(since).unwrap().collect::<Result<_, _>>().unwrap()
}

fn epochs(db: &Engine, since: u64) -> Vec<u64> {
    records(db, since).iter().map(CommitRecord::epoch).collect()
}

/// The least epoch from which changes are given, by the error for an earlier one.
fn gone(db: &Engine, since: u64) -> u64 {
    match db.changes(since).and_then(|mut feed| feed.next().transpose()) {
        Err(Error::EpochGone { since: wanted, later, .. }) => {
            assert_eq!(wanted, since);
            later
        }
        other => panic!("{other:?}"),
    }
}

pub fn add(db: &Engine, key: u64) {
    db.apply(&[Update::add_edge(key, key + 1)], Missing::Lenient, pool()).unwrap();
}

/// A replica that follows now and then, over checkpoints, merges, kills and crashes of both sides.
#[test]
fn replica_equals_its_primary_after_each_epoch() {
    for (seed, options) in kinds().into_iter().enumerate() {
        println!("seed {seed}: {options:?}");
        let random = &mut Random::new(seed as u64 + 300);
        let ((mut disk, mut primary), (mut other, mut replica)) = (create(options), create(options));
        primary.set_keep_wal(64 * MB).unwrap();
        let mut states = vec![show(&primary.view().unwrap())];
        let (mut updates, mut consumer) = (Updates::new(&primary, &mut states), Consumer::new(options));
        for round in 0..60 {
            match random.below(12) {
                0 => drop(primary.checkpoint(None).unwrap()),
                1 => drop(primary.merge(MergeScope::All, pool(), &Silent).unwrap()),
                2 => {
                    disk = kill(&disk, primary);
                    primary = open(&disk).unwrap();
                }
                3 => {
                    // Everything was answered as durable.
                    let after = disk.after_crash(round);
                    drop(primary);
                    disk = after;
                    primary = open(&disk).unwrap();
                }
                4 => drop(replica.checkpoint(None).unwrap()),
                5 => {
                    let after = other.after_crash(round);
                    drop(replica);
                    other = after;
                    replica = open(&other).unwrap();
                }
                6 => follow(&primary, &replica, &mut consumer, &states),
                _ => {
                    updates.commit(&primary, random, Durability::Sync);
                    states.push(show(&primary.view().unwrap()));
                }
            }
        }
        follow(&primary, &replica, &mut consumer, &states);
        // A new replica gets all from the beginning, and takes over.
        let (_, late) = create(options);
        follow(&primary, &late, &mut Consumer::new(options), &states);
        late.verify(pool()).unwrap();
        updates.commit(&late, random, Durability::Sync);
        assert_eq!(late.epoch(), primary.epoch() + 1);
    }
}

/// Applies all changes that the primary has, and compares the replica and the consumer with the states of the primary.
fn follow(primary: &Engine, replica: &Engine, consumer: &mut Consumer, states: &[(Shown, Vec<String>)]) {
    for record in records(primary, replica.epoch()) {
        let epoch = record.epoch();
        assert_eq!(epoch, replica.epoch() + 1);
        assert!(replica.apply_record(&record, pool()).unwrap());
        assert!(!replica.apply_record(&record, pool()).unwrap(), "epoch {epoch} is there already");
        consumer.apply(&record);
        let expected = &states[epoch as usize];
        assert_eq!(&show(&replica.view().unwrap()), expected, "the replica at epoch {epoch}");
        assert_eq!(consumer.shown(), expected.0, "the consumer at epoch {epoch}");
    }
    assert_eq!(replica.epoch() as usize, states.len() - 1);
}

#[test]
fn only_durable_commits_are_given() {
    let (disk, db) = create(GraphOptions::default());
    db.set_keep_wal(64 * MB).unwrap();
    db.set_checkpoint_bytes(None);
    let mut random = Random::new(5);
    let later = Durability::Batched(std::time::Duration::from_secs(3600));
    let mut num_given = 0;
    for round in 0..60_u64 {
        let durability = [Durability::None, later, Durability::Sync][random.below(3) as usize];
        db.apply_with(&[Update::add_edge(round, round + 1)], Missing::Lenient, durability, pool()).unwrap();
        if random.below(10) == 0 {
            db.checkpoint(None).unwrap();
        }
        let given = epochs(&db, 0);
        assert!(given.iter().copied().eq(1..=given.len() as u64));
        assert!(given.len() as u64 <= round + 1);
        if durability == Durability::Sync {
            assert_eq!(given.len() as u64, round + 1);
        }
        let after = open(&disk.after_crash(round)).unwrap();
        assert!(after.epoch() >= given.len() as u64, "round {round}: a commit that was given is lost");
        assert!(epochs(&after, 0).starts_with(&given), "round {round}");
        num_given += given.len();
    }
    assert!(num_given < 60 * 61 / 2, "some commits wait for their sync");
}

/// A reader in another process tells durable commits by what is on the disk.
#[test]
fn readers_give_commits_that_are_certified() {
    let (disk, db) = create(GraphOptions::default());
    db.set_keep_wal(64 * MB).unwrap();
    let reader = Engine::open_read_only_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
    let mut since = 0;
    for key in 0..40 {
        add(&db, key);
        reader.refresh().unwrap();
        for epoch in epochs(&reader, since) {
            assert_eq!(epoch, since + 1);
            since = epoch;
        }
        // The record of a commit certifies the one before.
        assert!((key..=key + 1).contains(&since), "{since} after {} commits", key + 1);
        if key % 10 == 5 {
            db.checkpoint(None).unwrap();
        }
    }
    db.close().unwrap();
    reader.refresh().unwrap();
    assert_eq!(epochs(&reader, 0).last(), Some(&40));
    let error = reader.changes(41).map(drop).unwrap_err().to_string();
    assert!(error.contains("since epoch 41: the last commit has epoch 40"), "{error}");
}

#[test]
fn kept_segments_stay_within_their_limit() {
    let (mut disk, mut db) = create(GraphOptions::default());
    // Otherwise net changes lead from snapshot to snapshot.
    db.retain(Retention::Last(1)).unwrap();
    add(&db, 0);
    db.checkpoint(None).unwrap();
    assert_eq!((db.log_bytes().unwrap(), gone(&db, 0), db.oldest_epoch().unwrap()), (0, 1, 1));
    db.set_keep_wal(MB).unwrap();
    for key in 1..60 {
        add(&db, key);
        db.checkpoint(None).unwrap();
        let (bytes, stats) = (db.log_bytes().unwrap(), db.live_stats());
        assert!(bytes <= MB && stats.retained_log_bytes == bytes && stats.log_bytes == bytes, "{bytes}: {stats:?}");
        let oldest = db.oldest_epoch().unwrap();
        assert!(epochs(&db, oldest).into_iter().eq(oldest + 1..=key + 1), "since {oldest}");
        if oldest > 1 {
            assert_eq!(gone(&db, oldest - 1), oldest);
        }
        if key % 20 == 7 {
            // The setting and the segments outlast the process.
            disk = kill(&disk, db);
            db = open(&disk).unwrap();
            assert_eq!((db.keep_wal(), db.oldest_epoch().unwrap(), db.log_bytes().unwrap()), (MB, oldest, bytes));
        }
    }
    assert!(segments(&disk).len() > 5 && db.oldest_epoch().unwrap() > 1);
    db.verify(pool()).unwrap();
    db.set_keep_wal(0).unwrap();
    assert_eq!((segments(&disk).len(), gone(&db, 59)), (0, 60));
    assert_eq!(epochs(&db, 60), [0; 0]);
}

/// A crash may leave segments from before an append, which has no record.
#[test]
fn segments_from_before_an_append_are_bridged() {
    let (disk, db) = create(GraphOptions::default());
    add(&db, 1);
    let before = disk.duplicate();
    let mut changes = Changes::default();
    changes.added.push((7.into(), 8.into(), None));
    db.append_changes(&changes, &AppendOptions::default(), pool(), &Silent).unwrap();
    add(&db, 2);
    assert_eq!((epochs(&db, 0), epochs(&db, 1), epochs(&db, 2)), (vec![1, 2, 3], vec![2, 3], vec![3]));
    let segment = &segments(&before)[0];
    disk.set_contents(segment, &before.contents(segment).unwrap());
    let is_net = |db: &Engine| records(db, 0).iter().map(CommitRecord::is_net).collect::<Vec<_>>();
    assert_eq!(is_net(&db), [false, true, false]);
    // Without the snapshot before the append, nothing leads on from there.
    let number = db.snapshots().iter().find(|snapshot| snapshot.epoch == 1).unwrap().number;
    db.drop_snapshots(&[number], &Silent).unwrap();
    let mut feed = db.changes(0).unwrap();
    assert_eq!(feed.next().unwrap().unwrap().epoch(), 1);
    assert!(matches!(feed.next(), Some(Err(Error::EpochGone { since: 1, earlier: Some(0), later: 2 }))));
    assert!(feed.next().is_none());
    drop(db);
    let db = open(&disk).unwrap();
    assert_eq!(epochs(&db, 2), [3]);
}

/// A snapshot has the commits of a kept segment, so its damage costs the feed only.
#[test]
fn damaged_kept_segment_is_found_by_verify() {
    let (disk, db) = create(GraphOptions::default());
    db.set_keep_wal(64 * MB).unwrap();
    for key in 0..6 {
        add(&db, key);
        if key % 2 == 1 {
            db.checkpoint(None).unwrap();
        }
    }
    db.close().unwrap();
    let segment = segments(&disk)[0].clone();
    let whole = disk.contents(&segment).unwrap();
    for place in [2, 70, 110, 170] {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        disk.set_contents(&segment, &bytes);
        let db = open(&disk).unwrap();
        assert_eq!(db.view().unwrap().num_edges(), 6);
        let error = db.verify(pool()).unwrap_err().to_string();
        assert!(error.contains("wal-000001") && error.contains("only the change feed needs it"), "{error}");
        let read: Result<Vec<_>, _> = db.changes(0).and_then(Iterator::collect);
        assert!(read.is_err(), "byte {place}: {read:?}");
        assert_eq!(epochs(&db, 2), [3, 4, 5, 6]);
    }
}

#[test]
fn misfit_records_are_refused() {
    let ((_, primary), (_, replica)) = (create(GraphOptions::default()), create(GraphOptions::default()));
    primary.set_keep_wal(MB).unwrap();
    (0..3).for_each(|key| add(&primary, key));
    let records = records(&primary, 0);
    let refused = |db: &Engine, record: &CommitRecord, what: &str| {
        let error = db.apply_record(record, pool()).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    refused(&replica, &records[1], "cannot apply the changes of epoch 2: those of epoch 1 come first");
    let (_, weighted) = create(GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() });
    refused(&weighted, &records[0], "the graphs differ in kind");
    let memory = Engine::in_memory(GraphOptions::default()).unwrap();
    assert!(memory.apply_record(&records[0], pool()).unwrap());
    let error = memory.changes(0).map(drop).unwrap_err().to_string();
    assert!(error.contains("in memory"), "{error}");
    // A graph without in-lists follows one with them.
    let (_, lean) = create(GraphOptions { in_edges: false, ..GraphOptions::default() });
    records.iter().for_each(|record| assert!(lean.apply_record(record, pool()).unwrap()));
    assert_eq!(lean.view().unwrap().num_edges(), 3);
}

/// Retention removes and writes files; a power cut between any two calls leaves a database and a feed without a hole.
#[test]
fn crash_at_any_call_leaves_a_feed_without_holes() {
    let script = |db: &Engine| -> Result<(), Error> {
        db.set_keep_wal(300 << 10)?;
        for key in 0..8 {
            let durability = if key % 3 == 2 { Durability::batched() } else { Durability::Sync };
            db.apply_with(&[Update::add_edge(key, key + 1)], Missing::Lenient, durability, pool())?;
            if key % 2 == 1 {
                db.checkpoint(None)?;
            }
        }
        db.set_keep_wal(100 << 10)
    };
    let mut num_records = 0;
    let start = || create(GraphOptions::default());
    // The power cut loses the answer.
    let act = |_: &FaultStorage, db| drop(script(&db));
    let num_calls = crash_every_call(6, start, act, |(), after, place| {
        let db = open(after).unwrap_or_else(|error| panic!("{place}: {error}"));
        let oldest = db.oldest_epoch().unwrap();
        let given = epochs(&db, oldest);
        assert!(given.iter().copied().eq(oldest + 1..=db.epoch()), "{place}: {given:?} since {oldest}");
        assert_eq!(db.view().unwrap().num_edges(), db.epoch(), "{place}");
        db.verify(pool()).unwrap_or_else(|error| panic!("{place}: {error}"));
        num_records += given.len();
    });
    assert!(num_calls > 40 && num_records > 500, "{num_calls} calls, {num_records} records");
}
