//! The change feed: its records make an equal replica, its changes an equal graph by keys, and it gives durable commits
//! only.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anden_base::VertexId;
use anden_base::progress::Silent;
use anden_base::storage::Storage;
use anden_engine::{
    AddedEdge, AppendOptions, Changes, CommitRecord, Durability, EdgeWeight, Engine, Error, ErrorKind, GraphChange,
    GraphOptions, Key, KeyScheme, MergeScope, Missing, Retention, SnapshotView, Update, edges_between,
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
    let reader = Engine::open_read_only_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
    let (mut num_given, mut num_hidden) = (0, 0);
    for round in 0..60_u64 {
        let durability = [Durability::None, later, Durability::Sync][random.below(3) as usize];
        db.apply_with(&[Update::add_edge(round, round + 1)], Missing::Lenient, durability, pool()).unwrap();
        if random.below(10) == 0 {
            db.checkpoint(None).unwrap();
        }
        reader.refresh().unwrap();
        let [given, given_by_reader] = [&db, &reader].map(|db| epochs(db, 0));
        assert!(given.iter().copied().eq(1..=given.len() as u64));
        assert!(given.len() as u64 <= round + 1);
        if durability == Durability::Sync {
            assert_eq!(given.len() as u64, round + 1);
        }
        let after = open(&disk.after_crash(round)).unwrap();
        for given in [&given, &given_by_reader] {
            assert!(after.epoch() >= given.len() as u64, "round {round}: a commit that was given is lost");
            assert!(epochs(&after, 0).starts_with(given), "round {round}");
        }
        num_given += given.len();
        num_hidden += usize::from(given_by_reader.len() < reader.epoch() as usize);
    }
    assert!(num_given < 60 * 61 / 2, "some commits wait for their sync");
    assert!(num_hidden > 0, "a reader shows commits that are not durable, and does not give them");
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
        // The mark certifies the first commit of a segment at once.
        assert!(key > 0 || since == 1);
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
    assert_eq!(segments(&disk).len(), 0);
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
    let segments = segments(&disk);
    assert_eq!(segments.len(), 3);
    for (number, segment) in segments.iter().enumerate() {
        let (whole, before) = (disk.contents(segment).unwrap(), 2 * number as u64);
        for place in [2, 70, 110, 170] {
            let mut bytes = whole.clone();
            bytes[place] ^= 1;
            disk.set_contents(segment, &bytes);
            // Without its header, the youngest segment is what a crash leaves, and the next writer removes it.
            if place == 2 && number == 2 {
                let reader = Engine::open_read_only_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
                reader.verify(pool()).unwrap();
                continue;
            }
            let db = open(&disk).unwrap();
            assert_eq!(db.view().unwrap().num_edges(), 6);
            let error = db.verify(pool()).unwrap_err().to_string();
            let name = segment.display().to_string();
            assert!(error.contains(&name) && error.contains("only the change feed needs it"), "{error}");
            let mut feed = db.changes(before).unwrap();
            let fault = feed.find_map(Result::err).expect("the net changes do not stand for damaged records");
            assert_eq!(fault.kind(), ErrorKind::Corrupt, "byte {place} of {name}: {fault}");
            assert!(feed.next().is_none(), "a feed ends after an error");
            assert!(epochs(&db, before + 2).into_iter().eq(before + 3..=6));
        }
        disk.set_contents(segment, &whole);
    }
}

/// What follows the records of a segment: a record that was refused and could not be cut off, or a torn tail.
#[test]
fn garbage_behind_records_is_no_damage() {
    let (disk, db) = create(GraphOptions::default());
    db.set_keep_wal(64 * MB).unwrap();
    for key in 0..3 {
        add(&db, key);
        if key < 2 {
            db.checkpoint(None).unwrap();
        }
    }
    let disk = kill(&disk, db);
    for segment in segments(&disk) {
        let mut bytes = disk.contents(&segment).unwrap();
        let end = bytes.iter().rposition(|&byte| byte != 0).unwrap().next_multiple_of(8);
        bytes[end + 8..end + 16].fill(7);
        disk.set_contents(&segment, &bytes);
    }
    let check = |db: &Engine| {
        db.verify(pool()).unwrap();
        let given = records(db, 0);
        assert!(given.iter().all(|record| !record.is_net()));
        assert!(given.len() >= 2 && given.iter().map(CommitRecord::epoch).eq(1..=given.len() as u64));
    };
    check(&Engine::open_read_only_in(Arc::new(disk.clone()), Path::new(DB)).unwrap());
    // A writer cuts the torn tail.
    check(&open(&disk).unwrap());
}

/// A writer makes the file of a segment before it writes the header.
#[test]
fn segment_without_header_is_no_damage() {
    let (disk, db) = create(GraphOptions::default());
    add(&db, 0);
    db.checkpoint(None).unwrap();
    let next = Path::new(DB).join("wal-000002");
    disk.set_contents(&next, &[]);
    assert_eq!(epochs(&db, 0), [1]);
    disk.remove_file(&next).unwrap();
    // Where no snapshot leads on, it is what the feed lacks.
    add(&db, 1);
    let segment = segments(&disk)[0].clone();
    let mut bytes = disk.contents(&segment).unwrap();
    bytes[2] ^= 1;
    disk.set_contents(&segment, &bytes);
    let error = db.changes(1).unwrap().next().unwrap().unwrap_err();
    assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains("wal-000002"), "{error}");
}

/// A record counts only behind the one that it followed when it was written.
#[test]
fn feed_refuses_a_record_of_another_chain() {
    let (disk, db) = create(GraphOptions::default());
    db.set_keep_wal(MB).unwrap();
    db.close().unwrap();
    let other_disk = disk.duplicate();
    let [db, other] = [&disk, &other_disk].map(|disk| open(disk).unwrap());
    add(&db, 1);
    add(&other, 5);
    let segment = segments(&disk)[0].clone();
    let first = other_disk.contents(&segment).unwrap();
    let end = first.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    add(&db, 2);
    db.checkpoint(None).unwrap();
    let mut bytes = disk.contents(&segment).unwrap();
    bytes[..end].copy_from_slice(&first[..end]);
    disk.set_contents(&segment, &bytes);
    let mut feed = db.changes(0).unwrap();
    assert_eq!(feed.next().unwrap().unwrap().epoch(), 1);
    let error = feed.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("a record does not follow the one before it"), "{error}");
    let error = db.verify(pool()).unwrap_err().to_string();
    assert!(error.contains("a record does not follow the one before it"), "{error}");
}

/// A power cut may bring a removed segment back, but not the next one.
#[test]
fn returned_segment_opens_no_hole() {
    let (disk, db) = create(GraphOptions::default());
    db.retain(Retention::Last(1)).unwrap();
    db.set_keep_wal(64 * MB).unwrap();
    for key in 0..6 {
        add(&db, key);
        db.checkpoint(None).unwrap();
    }
    let before = segments(&disk);
    let bytes = disk.contents(&before[0]).unwrap();
    db.set_keep_wal(3 * bytes.len() as u64).unwrap();
    assert_eq!(segments(&disk), before[3..]);
    disk.set_contents(&before[0], &bytes);
    for db in [&db, &Engine::open_read_only_in(Arc::new(disk.clone()), Path::new(DB)).unwrap()] {
        assert_eq!((db.oldest_epoch().unwrap(), epochs(db, 3)), (3, vec![4, 5, 6]));
        assert_eq!(gone(db, 2), 3);
    }
    // The next writer removes it again.
    drop(db);
    open(&disk).unwrap();
    assert_eq!(segments(&disk), before[3..]);
}

/// A segment that a crash left, and that no feed reads, may never have been durable.
#[test]
fn left_segments_are_no_damage() {
    let (disk, db) = create(GraphOptions::default());
    add(&db, 0);
    let segment = segments(&disk)[0].clone();
    let mut bytes = disk.contents(&segment).unwrap();
    bytes[110] ^= 1;
    db.checkpoint(None).unwrap();
    add(&db, 1);
    disk.set_contents(&segment, &bytes);
    let reader = Engine::open_read_only_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
    reader.verify(pool()).unwrap();
    // The next writer removes it, even if nothing but its name is left.
    disk.set_contents(&segment, &[]);
    let disk = kill(&disk, db);
    let db = open(&disk).unwrap();
    db.verify(pool()).unwrap();
    assert_eq!(segments(&disk).len(), 1);
}

#[test]
fn misfit_records_are_refused() {
    let ((_, primary), (disk, replica)) = (create(GraphOptions::default()), create(GraphOptions::default()));
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
    let reader = Engine::open_read_only_in(Arc::new(disk), Path::new(DB)).unwrap();
    assert!(matches!(reader.apply_record(&records[0], pool()), Err(Error::ReadOnly { .. })));
    assert!(matches!(reader.set_keep_wal(1), Err(Error::ReadOnly { .. })));
    // A graph without in-lists follows one with them.
    let (_, lean) = create(GraphOptions { in_edges: false, ..GraphOptions::default() });
    records.iter().for_each(|record| assert!(lean.apply_record(record, pool()).unwrap()));
    assert_eq!(lean.view().unwrap().num_edges(), 3);
}

/// The first commits of a replica and of its primary, the second one of the primary, and its fault in the replica.
type Divergence = (GraphOptions, Vec<Update>, Vec<Update>, Update, &'static str);

/// Each record names something that the replica lacks, or that it has in another place.
fn divergences() -> Vec<Divergence> {
    let dense = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let valued = GraphOptions { edge_properties: true, ..GraphOptions::default() };
    let integers = GraphOptions::default();
    let vertex = |key: u64| Update::AddVertex(key.into());
    let size = |key: u64| Update::set_vertex(key, "size", 1);
    let edge = |source: u64| Update::add_edge_with(source, source + 1, [("size", 1)]);
    let no_value = "a value fits no vertex and no property";
    vec![
        (integers, vec![vertex(1)], vec![Update::add_edge(1, 2)], Update::add_edge(2, 1), "an end that is no vertex"),
        (integers, vec![vertex(1)], vec![vertex(1), vertex(2)], Update::RemoveVertex(2.into()), "beyond the last"),
        (integers, vec![vertex(2)], vec![vertex(1)], vertex(2), "the key of a new vertex is there already"),
        (dense, vec![vertex(9)], vec![vertex(1)], vertex(5), "the vertex bound goes back"),
        (integers, vec![vertex(1)], vec![size(1)], size(1), no_value),
        (integers, vec![size(1)], vec![size(1), vertex(2)], size(2), no_value),
        (valued, vec![edge(1), edge(2)], vec![edge(1), vertex(3)], edge(2), "rows do not follow each other"),
    ]
}

#[test]
fn records_of_a_diverged_primary_are_refused() {
    let mut num_broken = 0;
    for (options, ours, theirs, next, what) in divergences() {
        let ((_, primary), (disk, replica)) = (create(options), create(options));
        let apply = |db: &Engine, updates: &[Update]| db.apply(updates, Missing::Lenient, pool()).unwrap();
        apply(&replica, &ours);
        apply(&primary, &theirs);
        apply(&primary, &[next]);
        let before = show(&replica.view().unwrap());
        let record = &records(&primary, 1)[0];
        let error = replica.apply_record(record, pool()).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains("the databases differ"), "{what}: {error}");
        let error = replica.apply_record(record, pool()).unwrap_err().to_string();
        num_broken += usize::from(error.contains("an earlier batch failed half way"));
        assert_eq!((show(&replica.view().unwrap()), replica.epoch()), (before.clone(), 1), "{what}");
        // The record has left the WAL.
        let again = open(&kill(&disk, replica)).unwrap();
        assert_eq!((show(&again.view().unwrap()), again.epoch()), (before, 1), "{what}");
        apply(&again, &[Update::add_edge(1, 7)]);
        again.checkpoint(None).unwrap();
        again.verify(pool()).unwrap();
    }
    // New keys are compared before anything is applied.
    assert_eq!(num_broken, divergences().len() - 1);
}

/// A transaction on a replica reads a list that a record, single or net, then changes.
#[test]
fn applied_records_conflict_with_transactions() {
    let ((_, primary), (_, replica)) = (create(GraphOptions::default()), create(GraphOptions::default()));
    add(&primary, 0);
    assert!(replica.apply_record(&records(&primary, 0)[0], pool()).unwrap());
    for is_net in [false, true] {
        primary.checkpoint(None).unwrap();
        let epoch = replica.epoch();
        add(&primary, epoch);
        if is_net {
            primary.checkpoint(None).unwrap();
        }
        let record = &records(&primary, epoch)[0];
        assert_eq!(record.is_net(), is_net);
        let mut tx = replica.begin(pool()).unwrap();
        assert_eq!(tx.degree(&epoch.into(), Direction::Out).unwrap(), 0);
        tx.add_vertex(&100.into()).unwrap();
        assert!(replica.apply_record(record, pool()).unwrap());
        assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Conflict);
    }
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
