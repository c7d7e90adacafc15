//! Net change sets: where the WAL lacks commits, the change feed leads from one snapshot to the next.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anden_base::progress::Silent;
use anden_engine::{
    AppendOptions, Changes, CommitRecord, Durability, EdgeAction, EdgeId, EdgeWeight, Engine, Error, GraphChange,
    GraphOptions, IndexKind, Key, KeyScheme, MergeScope, Missing, Retention, Update, edges_between,
};
use anden_graph::property::{ItemType, OwnedValue, PropertyValue};
use anden_graph::{Graph, WeightType};
use anden_testkit::{FaultStorage, Random, crash_every_call};

use crate::change_feed::{Consumer, Shown, add, create, kinds, records, show};
use crate::hooked::HookedStorage;
use crate::log_recovery::{DB, kill, open, pool};

const MB: u64 = 1 << 20;

/// A graph by keys, and the ids of its keys.
type State = (Shown, Vec<String>);

/// The epochs of the changes since an epoch, and which of them are net.
fn sets(db: &Engine, since: u64) -> Vec<(u64, bool)> {
    records(db, since).iter().map(|record| (record.epoch(), record.is_net())).collect()
}

/// The nearest epochs from which there are changes, by the error for another one.
fn nearest(db: &Engine, since: u64) -> (Option<u64>, u64) {
    match db.changes(since).and_then(|mut feed| feed.next().transpose()) {
        Err(Error::EpochGone { since: wanted, earlier, later }) => {
            assert_eq!(wanted, since);
            (earlier, later)
        }
        other => panic!("{other:?}"),
    }
}

fn append(db: &Engine, changes: &Changes) {
    db.append_changes(changes, &AppendOptions::default(), pool(), &Silent).unwrap();
}

fn append_edge(db: &Engine, key: u64) {
    append(db, &Changes::default().add_edge(key, key + 1));
}

fn changes_of(record: &CommitRecord) -> Vec<GraphChange> {
    let mut changes = Vec::new();
    record
        .for_each_change(|change| {
            changes.push(change);
            Ok(())
        })
        .unwrap();
    changes
}

#[test]
fn append_no_longer_ends_the_feed() {
    let (disk, db) = create(GraphOptions::default());
    db.set_keep_wal(64 * MB).unwrap();
    (1..4).for_each(|key| add(&db, key));
    append_edge(&db, 7);
    add(&db, 9);
    let expected = [(1, false), (2, false), (3, false), (4, true), (5, false)];
    // Also a consumer that was between two snapshots goes on, with the commits that are still in the WAL.
    for since in 0..5 {
        assert_eq!(sets(&db, since), expected[since as usize..], "since {since}");
    }
    let added = |key: u64| GraphChange::AddVertex(key.into());
    let found = changes_of(&records(&db, 3)[0]);
    assert_eq!(found[..2], [added(7), added(8)]);
    assert!(found.len() == 3 && matches!(&found[2], GraphChange::AddEdge(edge) if edge.source == 7.into()));
    assert_eq!(db.oldest_epoch().unwrap(), 0);
    db.verify(pool()).unwrap();
    // The segments from before the append outlast the process.
    let db = open(&kill(&disk, db)).unwrap();
    assert_eq!(sets(&db, 1), expected[1..]);
    db.set_keep_wal(0).unwrap();
    assert_eq!((sets(&db, 3), nearest(&db, 2)), (expected[3..].to_vec(), (Some(0), 3)));
}

/// Nothing would recover the commits before an append from the WAL, and the feed would lack them.
#[test]
fn kept_wal_is_durable_before_an_append() {
    for seed in 0..8 {
        let (disk, db) = create(GraphOptions::default());
        db.set_keep_wal(64 * MB).unwrap();
        for key in 1..4 {
            let update = Update::add_edge(key, key + 1);
            db.apply_with(&[update], Missing::Lenient, Durability::None, pool()).unwrap();
        }
        append_edge(&db, 7);
        let after = open(&disk.after_crash(seed)).unwrap();
        assert_eq!(sets(&after, 0), [(1, false), (2, false), (3, false), (4, true)], "seed {seed}");
    }
}

/// The snapshots are held after the segments, so that one has the commits of a segment that was removed before.
#[test]
fn checkpoint_during_the_opening_of_a_feed() {
    let storage = HookedStorage::default();
    let db = Arc::new(Engine::create_in(Arc::new(storage.clone()), Path::new(DB), GraphOptions::default()).unwrap());
    add(&db, 1);
    db.checkpoint(None).unwrap();
    add(&db, 2);
    let writer = Arc::clone(&db);
    // The mark is read before the segments are listed.
    storage.set_read_hook(move |_| drop(writer.checkpoint(None).unwrap()));
    assert_eq!(sets(&db, 1), [(2, true)]);
}

/// The segments are listed, opened and read while a writer removes them; then a snapshot has their commits.
#[test]
fn snapshots_lead_on_beside_checkpoints() {
    let (_, db) = create(GraphOptions::default());
    let (num_commits, mut num_read) = (400, 0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for key in 1..=num_commits {
                let update = Update::add_edge(key, key + 1);
                db.apply_with(&[update], Missing::Lenient, Durability::None, pool()).unwrap();
                db.checkpoint(None).unwrap();
            }
        });
        while !writer.is_finished() {
            let since = db.snapshots().last().unwrap().epoch;
            let epochs: Vec<_> = sets(&db, since).iter().map(|(epoch, _)| *epoch).collect();
            assert!(epochs.iter().copied().eq(since + 1..=since + epochs.len() as u64), "{epochs:?} since {since}");
            num_read += epochs.len();
        }
    });
    assert_eq!(sets(&db, 0).len() as u64, num_commits);
    println!("{num_read} records were read beside the writer");
}

#[test]
fn checkpoint_without_kept_wal_gives_net_changes() {
    let (disk, db) = create(GraphOptions::default());
    (1..4).for_each(|key| add(&db, key));
    db.checkpoint(None).unwrap();
    (4..6).for_each(|key| add(&db, key));
    db.checkpoint(None).unwrap();
    // A snapshot without a commit is no step.
    db.checkpoint(None).unwrap();
    add(&db, 6);
    assert_eq!(sets(&db, 0), [(3, true), (5, true), (6, false)]);
    assert_eq!(sets(&db, 3), [(5, true), (6, false)]);
    assert_eq!((sets(&db, 5), sets(&db, 6)), (vec![(6, false)], Vec::new()));
    assert_eq!((nearest(&db, 1), nearest(&db, 4)), ((Some(0), 3), (Some(3), 5)));
    let error = db.changes(4).unwrap().next().unwrap().unwrap_err().to_string();
    assert!(error.contains("since epoch 4") && error.contains("changes since epoch 3 and 5."), "{error}");
    // Another process reads the same.
    let reader = Engine::open_read_only_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
    assert_eq!(sets(&reader, 3)[0], (5, true));
    // What was undone is left out.
    db.apply(&[Update::add_edge(90, 91)], Missing::Lenient, pool()).unwrap();
    db.apply(&[Update::RemoveVertex(90.into()), Update::RemoveVertex(91.into())], Missing::Lenient, pool()).unwrap();
    db.checkpoint(None).unwrap();
    let found = changes_of(&records(&db, 5)[0]);
    assert!(found.iter().all(|change| !matches!(change, GraphChange::RemoveEdges { .. })), "{found:?}");
}

#[test]
fn dropped_snapshot_joins_two_net_changes() {
    let (_, db) = create(GraphOptions::default());
    for key in 1..5 {
        add(&db, key);
        db.checkpoint(None).unwrap();
    }
    let before = show(&db.view().unwrap());
    assert_eq!(sets(&db, 1), [(2, true), (3, true), (4, true)]);
    let number = |epoch: u64| db.snapshots().into_iter().find(|snapshot| snapshot.epoch == epoch).unwrap().number;
    db.rename_snapshot(number(3), Some("three")).unwrap();
    db.drop_snapshots(&[number(2)], &Silent).unwrap();
    db.merge(MergeScope::All, pool(), &Silent).unwrap();
    assert_eq!(sets(&db, 1), [(3, true), (4, true)]);
    assert_eq!(nearest(&db, 2), (Some(1), 3));
    // Without its newest snapshot, the database has the changes still.
    db.drop_snapshots(&[number(4)], &Silent).unwrap();
    assert_eq!(sets(&db, 3), [(4, true)]);
    let mut follower = Follower::new(GraphOptions::default());
    follower.follow(
        &db,
        &BTreeMap::from([
            (1, show(&db.snapshot(number(1)).unwrap())),
            (3, show(&db.snapshot(number(3)).unwrap())),
            (4, before),
        ]),
    );
    assert_eq!(follower.db.epoch(), 4);
    // Retention drops all but the newest and the named one.
    db.retain(Retention::Last(1)).unwrap();
    add(&db, 5);
    db.checkpoint(None).unwrap();
    assert_eq!(nearest(&db, 4), (Some(3), 5));
}

#[test]
fn misfit_net_changes_are_refused() {
    let ((_, primary), (disk, replica)) = (create(GraphOptions::default()), create(GraphOptions::default()));
    (1..3).for_each(|key| add(&primary, key));
    let single = records(&primary, 0);
    primary.checkpoint(None).unwrap();
    (3..5).for_each(|key| add(&primary, key));
    primary.checkpoint(None).unwrap();
    let net = records(&primary, 0);
    assert_eq!((net[0].epoch(), net[1].epoch()), (2, 4));
    let error = replica.apply_record(&net[1], pool()).unwrap_err().to_string();
    assert!(error.contains("the net changes since epoch 2, and this database has epoch 0"), "{error}");
    // A replica between the two epochs has some of the changes already.
    assert!(replica.apply_record(&single[0], pool()).unwrap());
    let error = replica.apply_record(&net[0], pool()).unwrap_err().to_string();
    assert!(error.contains("the net changes since epoch 0, and this database has epoch 1"), "{error}");
    assert_eq!((replica.epoch(), replica.snapshots().len()), (1, 1));
    assert!(replica.apply_record(&single[1], pool()).unwrap());
    assert!(!replica.apply_record(&net[0], pool()).unwrap(), "epoch 2 is there already");
    assert!(replica.apply_record(&net[1], pool()).unwrap());
    assert_eq!(show(&replica.view().unwrap()), show(&primary.view().unwrap()));
    // Both databases have a snapshot of this epoch, and other kinds of graphs have none.
    assert_eq!(replica.snapshots().last().unwrap().epoch, 4);
    replica.verify(pool()).unwrap();
    drop(replica);
    assert_eq!(open(&disk).unwrap().epoch(), 4);
    let (_, dense) = create(GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() });
    let error = dense.apply_record(&net[0], pool()).unwrap_err().to_string();
    assert!(error.contains("the graphs differ in kind"), "{error}");
    // A replica that went its own way.
    let (_, other) = create(GraphOptions::default());
    other.apply(&[Update::add_edge(1, 7), Update::add_edge(7, 8)], Missing::Lenient, pool()).unwrap();
    other.apply(&[Update::RemoveVertex(1.into())], Missing::Lenient, pool()).unwrap();
    primary.apply(&[Update::RemoveVertex(1.into())], Missing::Lenient, pool()).unwrap();
    primary.checkpoint(None).unwrap();
    other.apply(&[Update::add_edge(7, 8)], Missing::Lenient, pool()).unwrap();
    other.apply(&[Update::add_edge(8, 9)], Missing::Lenient, pool()).unwrap();
    let before = show(&other.view().unwrap());
    let error = other.apply_record(&records(&primary, 4)[0], pool()).unwrap_err().to_string();
    assert!(error.contains("a removed vertex is not there; the databases differ"), "{error}");
    assert_eq!((show(&other.view().unwrap()), other.epoch()), (before, 4));
}

#[test]
fn net_changes_keep_to_the_memory() {
    let (_, primary) = create(GraphOptions::default());
    append(&primary, &(0..2000).fold(Changes::default(), |changes, key| changes.add_edge(key, key + 1)));
    primary.set_memory(Some(16 << 10));
    let refused = primary.changes(0).unwrap().next().unwrap();
    assert!(matches!(&refused, Err(Error::Memory { .. })), "{refused:?}");
    primary.set_memory(None);
    let (_, replica) = create(GraphOptions::default());
    replica.set_memory(Some(1 << 20));
    let refused = replica.apply_record(&records(&primary, 0)[0], pool());
    assert!(matches!(&refused, Err(Error::Memory { .. })), "{refused:?}");
    assert_eq!((replica.epoch(), replica.view().unwrap().num_edges()), (0, 0));
    replica.set_memory(None);
    assert!(replica.apply_record(&records(&primary, 0)[0], pool()).unwrap());
    assert_eq!(replica.view().unwrap().num_edges(), 2000);
}

/// Rows that edges had and lost are in no record, and still take memory in a replica.
#[test]
fn lost_rows_of_net_changes_are_bounded() {
    let options = GraphOptions { edge_properties: true, ..GraphOptions::default() };
    let ((_, primary), (_, replica)) = (create(options), create(options));
    for size in 0..600 {
        let update = Update::add_edge_with(1, 2, [("size", size)]);
        primary.apply_with(&[update], Missing::Lenient, Durability::None, pool()).unwrap();
    }
    primary.checkpoint(None).unwrap();
    let net = &records(&primary, 0)[0];
    replica.set_memory(Some(4 << 10));
    let error = replica.apply_record(net, pool()).unwrap_err();
    assert!(matches!(&error, Error::Memory { what, .. } if what.contains("rows of a net change set")), "{error}");
    replica.set_memory(None);
    assert!(replica.apply_record(net, pool()).unwrap());
    assert_eq!(show(&replica.view().unwrap()), show(&primary.view().unwrap()));
}

/// A replica that has given more rows than its primary would give some of them twice.
#[test]
fn rows_of_net_changes_never_go_back() {
    let options = GraphOptions { multigraph: true, ..GraphOptions::default() };
    let ((_, primary), (_, replica)) = (create(options), create(options));
    let edge = Update::add_edge(1, 2);
    for (db, num_edges) in [(&primary, 1), (&replica, 3)] {
        db.apply(&vec![edge.clone(); num_edges], Missing::Lenient, pool()).unwrap();
        db.checkpoint(None).unwrap();
    }
    primary.apply(&[Update::AddVertex(9.into())], Missing::Lenient, pool()).unwrap();
    primary.checkpoint(None).unwrap();
    let before = show(&replica.view().unwrap());
    let error = replica.apply_record(&records(&primary, 1)[0], pool()).unwrap_err().to_string();
    assert!(error.contains("the numbers of rows do not follow each other; the databases differ"), "{error}");
    assert_eq!((show(&replica.view().unwrap()), replica.epoch()), (before, 1));
}

/// A vertex that was removed and comes back without an edge or a value.
#[test]
fn vertex_returns_in_a_replica() {
    let ((_, primary), (_, replica)) = (create(GraphOptions::default()), create(GraphOptions::default()));
    for update in [Update::add_edge(1, 2), Update::RemoveVertex(1.into()), Update::AddVertex(1.into())] {
        primary.apply(&[update], Missing::Lenient, pool()).unwrap();
        primary.checkpoint(None).unwrap();
        let net = &records(&primary, replica.epoch())[0];
        assert!(net.is_net() && replica.apply_record(net, pool()).unwrap());
        assert_eq!(show(&replica.view().unwrap()), show(&primary.view().unwrap()));
    }
}

#[test]
fn indexes_of_a_replica_follow_net_changes() {
    let ((_, primary), (_, replica)) = (create(GraphOptions::default()), create(GraphOptions::default()));
    primary.apply(&[Update::set_vertex(0, "size", 1)], Missing::Lenient, pool()).unwrap();
    assert!(replica.apply_record(&records(&primary, 0)[0], pool()).unwrap());
    primary.checkpoint(None).unwrap();
    replica.create_index("size", IndexKind::Plain, &Silent).unwrap();
    let updates: Vec<_> = (0..40_u64).map(|key| Update::set_vertex(key, "size", key as i64 % 7)).collect();
    primary.apply(&updates, Missing::Lenient, pool()).unwrap();
    primary.checkpoint(None).unwrap();
    let net = records(&primary, 1);
    assert!(net[0].is_net() && replica.apply_record(&net[0], pool()).unwrap());
    let view = replica.view().unwrap();
    assert!(view.properties().index(0).is_some());
    let found = view.properties().find(0, PropertyValue::I64(3)).unwrap();
    assert_eq!(found.len(), (0..40).filter(|key| key % 7 == 3).count());
    replica.verify(pool()).unwrap();
}

/// A replica, and a consumer that knows the changes only.
struct Follower {
    options: GraphOptions,
    disk: FaultStorage,
    db: Engine,
    consumer: Consumer,
    num_net: usize,
    num_gone: usize,
}

impl Follower {
    fn new(options: GraphOptions) -> Self {
        let (disk, db) = create(options);
        Self { options, disk, db, consumer: Consumer::new(options), num_net: 0, num_gone: 0 }
    }

    /// Applies all changes, and compares with the states of the primary by epoch. Begins again where the feed ends.
    fn follow(&mut self, primary: &Engine, states: &BTreeMap<u64, State>) {
        for record in primary.changes(self.db.epoch()).unwrap() {
            let record = match record {
                Ok(record) => record,
                Err(Error::EpochGone { since, later, .. }) => {
                    assert!(primary.snapshots().iter().all(|snapshot| snapshot.epoch != since), "since {since}");
                    assert!(later > since);
                    let (num_net, num_gone) = (self.num_net, self.num_gone + 1);
                    *self = Self { num_net, num_gone, ..Self::new(self.options) };
                    return self.follow(primary, states);
                }
                Err(error) => panic!("{error}"),
            };
            assert!(self.db.apply_record(&record, pool()).unwrap());
            assert!(!self.db.apply_record(&record, pool()).unwrap(), "the epoch is there already");
            self.consumer.apply(&record);
            self.num_net += usize::from(record.is_net());
            let (epoch, kind) = (record.epoch(), if record.is_net() { "net" } else { "single" });
            assert_eq!(self.db.epoch(), epoch);
            let expected = &states[&epoch];
            assert_eq!(&show(&self.db.view().unwrap()), expected, "the replica at epoch {epoch}, {kind}");
            assert_eq!(self.consumer.shown(), expected.0, "the consumer at epoch {epoch}, {kind}");
        }
        assert_eq!(self.db.epoch(), primary.epoch());
    }

    /// A power cut.
    fn crash(&mut self, seed: u64) {
        let epoch = self.db.epoch();
        self.disk = self.disk.after_crash(seed);
        self.db = open(&self.disk).unwrap();
        assert_eq!(self.db.epoch(), epoch);
    }
}

fn key(options: &GraphOptions, random: &mut Random) -> Key {
    let number = u64::from(random.below(14));
    match options.keys {
        KeyScheme::Dense => number.into(),
        KeyScheme::Integer => (number * 1_000_003).into(),
        KeyScheme::String => format!("key {number}").as_str().into(),
    }
}

fn weight(options: &GraphOptions, random: &mut Random) -> Option<EdgeWeight> {
    let weight = i64::from(random.below(5));
    options.weight_type.map(|weight_type| match weight_type {
        WeightType::U32 | WeightType::I64 => weight.into(),
        WeightType::F32 | WeightType::F64 => (weight as f64).into(),
    })
}

fn tags(random: &mut Random) -> OwnedValue {
    OwnedValue::List(ItemType::I64, format!("[{}]", random.below(9)))
}

/// A random update; in a multigraph some change one of several parallel edges.
fn update(db: &Engine, random: &mut Random) -> Update {
    let options = db.options();
    let (source, target) = (key(options, random), key(options, random));
    match random.below(20) {
        0..8 => {
            let properties = match options.edge_properties && random.below(3) > 0 {
                true => vec![("size".into(), i64::from(random.below(4)).into())],
                false => Vec::new(),
            };
            Update::AddEdge { source, target, weight: weight(options, random), properties }
        }
        8..11 => Update::remove_edge(source, target),
        11 => Update::RemoveVertex(source),
        12 => Update::AddVertex(source),
        13 => Update::set_vertex(source, "tags", tags(random)),
        14..16 => {
            Update::set_vertex(source, "size", [OwnedValue::Null, OwnedValue::I64(3)][random.below(2) as usize].clone())
        }
        16 if options.weight_type.is_some() => {
            Update::SetWeight { source, target, weight: weight(options, random).unwrap() }
        }
        17 if options.edge_properties => Update::set_edge(source, target, "kind", format!("kind {}", random.below(3))),
        _ if options.multigraph => changed_edge(db, (source, target), random),
        _ => Update::AddEdge { source, target, weight: weight(options, random), properties: Vec::new() },
    }
}

/// A change of one parallel edge, or one more edge.
fn changed_edge(db: &Engine, (source, target): (Key, Key), random: &mut Random) -> Update {
    let (options, view) = (db.options(), db.view().unwrap());
    let ids = |key: &Key| view.vertex(key).unwrap();
    let edges = match (ids(&source), ids(&target)) {
        (Some(u), Some(v)) => edges_between(&view, u, v, |_| true).unwrap(),
        _ => Vec::new(),
    };
    let Some(number) = edges.first().and_then(|edge| edge.number) else {
        return Update::AddEdge { source, target, weight: weight(options, random), properties: Vec::new() };
    };
    let action = match random.below(3) {
        0 if options.weight_type.is_some() => EdgeAction::SetWeight(weight(options, random).unwrap()),
        1 if options.edge_properties => EdgeAction::SetProperty { name: "size".into(), value: 9.into() },
        _ => EdgeAction::Remove,
    };
    Update::change_edge(EdgeId { source, target, number }, action)
}

/// Random changes of an append.
fn appended(options: &GraphOptions, random: &mut Random) -> Changes {
    let mut changes = Changes::default();
    for _ in 0..1 + random.below(6) {
        changes.added.push((key(options, random), key(options, random), weight(options, random)));
    }
    if random.below(2) == 0 {
        changes.removed.push((key(options, random), key(options, random)));
    }
    if random.below(3) == 0 {
        changes.removed_vertices.push(key(options, random));
    }
    if random.below(2) == 0 {
        changes.vertex_properties.push((key(options, random), "size".into(), OwnedValue::I64(random.below(4).into())));
    }
    if options.edge_properties && random.below(2) == 0 {
        changes.edge_properties.push((0, "size".into(), OwnedValue::I64(random.below(9).into())));
    }
    changes
}

/// The types of the properties, which later updates may remove.
fn first_updates(options: &GraphOptions, random: &mut Random) -> Vec<Update> {
    let (source, target) = (key(options, random), key(options, random));
    let mut updates =
        vec![Update::set_vertex(source.clone(), "size", 1), Update::set_vertex(source.clone(), "tags", tags(random))];
    let properties = match options.edge_properties {
        true => vec![("size".into(), 1.into()), ("kind".into(), "x".into())],
        false => Vec::new(),
    };
    updates.push(Update::AddEdge { source, target, weight: weight(options, random), properties });
    updates
}

/// Random commits and appends, with checkpoints, merges, drops, kills and power cuts, and a WAL that is kept at times.
/// A replica that follows now and then equals its primary after each epoch that it gets.
#[test]
fn net_changes_make_an_equal_replica() {
    let (mut num_net, mut num_gone) = (0, 0);
    for (seed, options) in kinds().into_iter().enumerate() {
        println!("seed {seed}: {options:?}");
        let random = &mut Random::new(seed as u64 + 500);
        let (mut disk, mut primary) = create(options);
        let mut states = BTreeMap::from([(0, show(&primary.view().unwrap()))]);
        let mut follower = Follower::new(options);
        for round in 0..90 {
            match random.below(16) {
                _ if round == 0 => {
                    let updates = first_updates(&options, random);
                    primary.apply_with(&updates, Missing::Lenient, Durability::Sync, pool()).unwrap();
                }
                0 | 1 => drop(primary.checkpoint(None).unwrap()),
                2 => drop(primary.merge(MergeScope::All, pool(), &Silent).unwrap()),
                3 => {
                    disk = kill(&disk, primary);
                    primary = open(&disk).unwrap();
                }
                4 => {
                    // Everything was answered as durable.
                    disk = disk.after_crash(round);
                    primary = open(&disk).unwrap();
                }
                5 => {
                    let numbers: Vec<u32> =
                        primary.snapshots().iter().skip(1).map(|snapshot| snapshot.number).collect();
                    if let Some(&number) = numbers.get(random.below(8) as usize) {
                        primary.drop_snapshots(&[number], &Silent).unwrap();
                    }
                }
                6 => primary.set_keep_wal([0, 64 * MB][random.below(2) as usize]).unwrap(),
                7 | 8 => append(&primary, &appended(&options, random)),
                9 => follower.follow(&primary, &states),
                10 => follower.crash(round),
                _ => {
                    let num_updates = [1, 1, 3, 20][random.below(4) as usize];
                    let updates: Vec<_> = (0..num_updates).map(|_| update(&primary, random)).collect();
                    // A numbered edge may be gone by its turn.
                    let _ = primary.apply_with(&updates, Missing::Lenient, Durability::Sync, pool());
                }
            }
            states.insert(primary.epoch(), show(&primary.view().unwrap()));
        }
        follower.follow(&primary, &states);
        // A new replica gets all from the beginning, and takes over with the same ids and rows.
        let mut late = Follower::new(options);
        late.follow(&primary, &states);
        late.db.verify(pool()).unwrap();
        late.crash(seed as u64);
        let updates = first_updates(&options, random);
        for db in [&primary, &late.db] {
            db.apply_with(&updates, Missing::Lenient, Durability::Sync, pool()).unwrap();
        }
        assert_eq!(show(&late.db.view().unwrap()), show(&primary.view().unwrap()));
        primary.verify(pool()).unwrap();
        num_net += follower.num_net + late.num_net;
        num_gone += follower.num_gone;
    }
    assert!(num_net > 100 && num_gone > 0, "{num_net} net change sets, {num_gone} times gone");
}

/// A crash between the manifest of an append and the end of the WAL leaves segments beside a younger snapshot.
#[test]
fn crash_around_appends_leaves_a_whole_feed() {
    let script = |db: &Engine| -> Result<(), Error> {
        db.set_keep_wal(MB)?;
        for key in 0..6 {
            db.apply(&[Update::add_edge(key, key + 1)], Missing::Lenient, pool())?;
            if key % 3 == 1 {
                let changes = Changes::default().add_edge(key + 100, key + 101);
                db.append_changes(&changes, &AppendOptions::default(), pool(), &Silent)?;
            }
        }
        db.set_keep_wal(0)?;
        db.apply(&[Update::add_edge(50, 51)], Missing::Lenient, pool())?;
        drop(db.checkpoint(None)?);
        Ok(())
    };
    let mut num_net = 0;
    let start = || create(GraphOptions::default());
    // The power cut loses the answer.
    let act = |_: &FaultStorage, db| drop(script(&db));
    let num_calls = crash_every_call(4, start, act, |(), after, place| {
        let db = open(after).unwrap_or_else(|error| panic!("{place}: {error}"));
        db.verify(pool()).unwrap_or_else(|error| panic!("{place}: {error}"));
        let (_, replica) = create(GraphOptions::default());
        for record in records(&db, 0) {
            num_net += usize::from(record.is_net());
            assert!(replica.apply_record(&record, pool()).unwrap(), "{place}");
        }
        assert_eq!(replica.epoch(), db.epoch(), "{place}");
        assert_eq!(show(&replica.view().unwrap()), show(&db.view().unwrap()), "{place}");
    });
    assert!(num_calls > 40 && num_net > 100, "{num_calls} calls, {num_net} net change sets");
}
