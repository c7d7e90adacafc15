//! A crash or an error at every call to the disk while a database with several snapshots changes. Afterwards the
//! database is as before the change or as after it, completely.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_base::storage::Storage;
use anden_graph::{GraphKind, StoredForm, StoredFormKey, WeightType};
use anden_snapshots::{Error, GraphOptions, IndexInfo, IndexKind, KeyScheme, MergeScope, Result, Retention, Store};
use anden_testkit::{FaultPlan, FaultStorage, Random, crash_every_call, scaled};

use crate::model;
use crate::model::past::{Content, Past, below};

fn num_disks() -> u64 {
    scaled(12)
}

fn path() -> &'static Path {
    Path::new("db")
}

fn open(disk: &FaultStorage) -> Store {
    let store = Store::open(Arc::new(disk.clone()), path()).unwrap();
    store.with_unix_time(model::IDENTITY.unix_time)
}

type Act = Box<dyn Fn(&Store) -> Result<()>>;

/// A change of a database, and the content before and after it.
struct Change {
    name: &'static str,
    disk: FaultStorage,
    before: Past,
    after: Past,
    /// The indexes after the change.
    indexes: Vec<IndexInfo>,
    /// The stored forms after the change.
    forms: Vec<(StoredFormKey, u64)>,
    act: Act,
}

fn pool() -> Pool {
    Pool::new(1).unwrap()
}

/// A database with this number of snapshots, each with new keys. It has a property if the name of the change mentions
/// an index.
fn database(name: &str, num_snapshots: u32, options: GraphOptions) -> (FaultStorage, Past) {
    let random = &mut Random::new(11);
    let mut content = Content::new(options, 24);
    for i in 0..50_u32 {
        content.add_edge(i * i % 23, i * 7 % 24, i);
    }
    if name.contains("index") {
        content.properties.add(random);
        (0..20).for_each(|vertex| content.properties.set(vertex, random));
    }
    let disk = FaultStorage::default();
    let store = content.write(Arc::new(disk.clone()), path(), None).unwrap();
    let mut past = Past::new(content, None);
    for _ in 1..num_snapshots {
        append(&mut past, random, &store).unwrap();
    }
    (disk, past)
}

fn append(past: &mut Past, random: &mut Random, store: &Store) -> Result<()> {
    let mut content = past.newest.clone();
    content.evolve_all(random);
    content.add_vertices(2);
    let answer = content.changes_from(&past.newest).with(|changes| store.append(changes, None));
    past.append(content, None);
    answer.map(drop)
}

/// The kind of graph with the weights and rows that the name of a change mentions.
fn named(name: &str, options: GraphOptions) -> GraphOptions {
    let weight_type = name.contains("weight").then_some(WeightType::F64);
    GraphOptions { weight_type, edge_properties: name.contains("rows"), ..options }
}

/// An append after `prepare`. Retention drops the snapshots in `given_up`.
fn appending(name: &'static str, num_snapshots: u32, prepare: impl Fn(&Store, &mut Past), given_up: &[u32]) -> Change {
    let options = named(name, GraphOptions { keys: KeyScheme::String, ..GraphOptions::default() });
    let (disk, mut before) = database(name, num_snapshots, options);
    prepare(&open(&disk), &mut before);
    let mut content = before.newest.clone();
    content.evolve_all(&mut Random::new(77));
    (0..8).for_each(|vertex| content.properties.set(vertex, &mut Random::new(u64::from(vertex))));
    content.add_vertices(3);
    let mut after = before.clone();
    after.append(content.clone(), Some("named"));
    after.forget(given_up);
    let old = before.newest.clone();
    let act =
        move |store: &Store| content.changes_from(&old).with(|changes| store.append(changes, Some("named"))).map(drop);
    Change::new(name, disk, (before, after), Box::new(act))
}

fn changing(name: &'static str, forgotten: &[u32], act: impl Fn(&Store) -> Result<()> + 'static) -> Change {
    let undirected = GraphOptions { graph_kind: GraphKind::Undirected, ..GraphOptions::default() };
    let (disk, before) = database(name, 6, named(name, GraphOptions { keys: KeyScheme::Dense, ..undirected }));
    let mut after = before.clone();
    after.forget(forgotten);
    Change::new(name, disk, (before, after), Box::new(act))
}

/// Creates an index of the first property.
fn index(store: &Store) -> Result<()> {
    let view = store.view()?;
    let (name, _) = view.properties().schema().get(0).unwrap();
    store.publish_index(store.draft_index(name, IndexKind::Plain, &Silent)?)
}

/// A change of a database with an index of its first property.
fn changing_indexed(name: &'static str, act: impl Fn(&Store) -> Result<()> + 'static) -> Change {
    let Change { disk, before, .. } = changing(name, &[], |_| Ok(()));
    index(&open(&disk)).unwrap();
    Change::new(name, disk, (before.clone(), before), Box::new(act))
}

/// Stores a form of the base's version, or replaces it.
fn store_form(store: &Store) -> Result<()> {
    let key = StoredFormKey { form: StoredForm::Bins, parameter: 7 };
    store.store_form(store.base_version(), key, &[vec![&[7; 9]], vec![&[8; 5000]]], &Silent).map(drop)
}

/// The stored forms. Each can be read completely, whatever happened.
fn forms(store: &Store) -> Vec<(StoredFormKey, u64)> {
    let Some(stored) = store.stored_forms() else { return Vec::new() };
    for (key, _) in stored.list() {
        let file = stored.open(key).unwrap().unwrap();
        file.verify(&pool()).unwrap();
        assert_eq!(file.arrays(), [&[7; 9][..], &[8; 5000]]);
    }
    stored.list().collect()
}

/// A change of a database with a stored form.
fn changing_prepared(name: &'static str, act: impl Fn(&Store) -> Result<()> + 'static) -> Change {
    let Change { disk, before, .. } = changing(name, &[], |_| Ok(()));
    store_form(&open(&disk)).unwrap();
    Change::new(name, disk, (before.clone(), before), Box::new(act))
}

fn changes() -> Vec<Change> {
    let drops = |numbers: &'static [u32]| move |store: &Store| store.drop_snapshots(numbers, &Silent);
    let merges = |scope| move |store: &Store| store.merge(scope, &pool(), &Silent).map(drop);
    let retains = |rule| move |store: &Store| store.retain(rule).map(drop);
    let keep_two = |store: &Store, past: &mut Past| {
        let given_up = store.retain(Retention::Last(2)).unwrap();
        past.forget(&given_up);
    };
    let hide_newest = |store: &Store, past: &mut Past| {
        store.drop_snapshots(&[3], &Silent).unwrap();
        past.forget(&[3]);
    };
    vec![
        appending("append", 3, |_, _| {}, &[]),
        appending("append that packs", 16, |_, _| {}, &[]),
        appending("append of rows", 3, |_, _| {}, &[]),
        appending("append of rows that packs", 16, |_, _| {}, &[]),
        appending("append of weights and rows", 3, |_, _| {}, &[]),
        appending("append with retention", 4, keep_two, &[3]),
        appending("append over a dropped newest", 3, hide_newest, &[]),
        appending("append with an index", 3, |store, _| index(store).unwrap(), &[]),
        changing("index", &[], index),
        changing_indexed("merge with an index", merges(MergeScope::All)),
        changing_indexed("drop of an index", |store| {
            let name = store.indexes()[0].property.clone();
            store.drop_index(&name)
        }),
        changing("preparation", &[], store_form),
        changing_prepared("preparation again", store_form),
        changing_prepared("merge with a preparation", merges(MergeScope::All)),
        changing("merge", &[], merges(MergeScope::All)),
        changing("merge newest", &[], merges(MergeScope::Newest(3))),
        changing("merge of weights and rows", &[], merges(MergeScope::All)),
        changing("drop middle of weights and rows", &[2, 4], drops(&[2, 4])),
        changing("drop oldest", &[1], drops(&[1])),
        changing("drop middle", &[2, 4], drops(&[2, 4])),
        changing("drop newest", &[6], drops(&[6])),
        changing("retain", &[1, 2, 3], retains(Retention::Last(3))),
    ]
}

impl Change {
    fn new(name: &'static str, disk: FaultStorage, (before, after): (Past, Past), act: Act) -> Self {
        let changed = open(&disk.duplicate());
        act(&changed).unwrap();
        Self { name, disk, before, after, indexes: changed.indexes(), forms: forms(&changed), act }
    }

    /// The number of calls that opening makes, and of those of the change.
    fn num_calls(&self) -> (u64, u64) {
        let disk = self.disk.duplicate();
        let store = open(&disk);
        let num_before = disk.num_calls();
        (self.act)(&store).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        self.after.compare(&store).unwrap();
        assert!(store.verify(&pool()).unwrap().unknown_files.is_empty(), "{}", self.name);
        (num_before, disk.num_calls() - num_before)
    }

    /// Opens the remains, and requires the complete content before the change (returns false) or after it (returns
    /// true).
    fn check(&self, disk: &FaultStorage, place: &str) -> bool {
        let reader = Store::open_read_only(Arc::new(disk.clone()), path()).unwrap_or_else(|e| panic!("{place}: {e}"));
        let store = open(disk);
        let report = store.verify(&pool()).unwrap_or_else(|e| panic!("{place}: {e}"));
        assert!(report.unknown_files.is_empty(), "{place}: {:?}", report.unknown_files);
        assert_eq!(reader.snapshots(), store.snapshots(), "{place}");
        // A merge does not change the content.
        let numbers = store.snapshots().into_iter().map(|info| info.number);
        let is_after = numbers.eq(self.after.numbers()) && store.indexes() == self.indexes;
        let is_after = is_after && forms(&store) == self.forms;
        let expected = if is_after { &self.after } else { &self.before };
        expected.compare(&store).unwrap_or_else(|e| panic!("{place}: {e}"));
        is_after
    }
}

#[test]
fn crash_leaves_old_or_new_state() {
    for change in changes() {
        let name = change.name;
        let (mut num_old, mut num_new) = (0, 0);
        let start = || {
            let disk = change.disk.duplicate();
            let store = open(&disk);
            (disk, store)
        };
        let act = |_: &FaultStorage, store| (change.act)(&store);
        let num_calls = crash_every_call(num_disks(), start, act, |answer, disk, place| {
            let place = format!("{name}: {place}");
            let is_after = change.check(disk, &place);
            assert!(is_after || answer.is_err(), "{place}: what was answered is gone");
            (num_old, num_new) = (num_old + u64::from(!is_after), num_new + u64::from(is_after));
        });
        let can_differ = change.before.numbers() != change.after.numbers();
        let can_differ =
            can_differ || ["index", "drop of an index", "preparation", "merge with a preparation"].contains(&name);
        assert!(
            num_new >= num_disks() && (num_old >= num_disks() || !can_differ),
            "{name}: {num_old} old, {num_new} new"
        );
        println!(
            "crash_every_call[{name}]: {num_calls} crash points, {} disks each: {num_old} old, {num_new} new",
            num_disks()
        );
    }
}

#[test]
fn an_error_changes_nothing_or_ends_all_writing() {
    for change in changes() {
        let (num_before, num_calls) = change.num_calls();
        let (mut num_undone, mut num_poisoned, mut num_done) = (0, 0, 0);
        for kind in [ErrorKind::StorageFull, ErrorKind::Other] {
            for at in 0..num_calls {
                let place = format!("{}: {kind} at call {at} of {num_calls}", change.name);
                let disk = change.disk.duplicate();
                let store = open(&disk);
                disk.set_plan(FaultPlan::FailAt(num_before + at, kind));
                let answer = (change.act)(&store);
                disk.set_plan(FaultPlan::Never);
                let Err(error) = answer else {
                    // Only files that are removed after the change may remain.
                    num_done += 1;
                    change.after.compare(&store).unwrap();
                    assert!(store.verify(&pool()).unwrap().unknown_files.len() <= 1, "{place}");
                    continue;
                };
                assert!(error.to_string().contains("cannot"), "{place}: {error}");
                change.before.compare(&store).unwrap_or_else(|e| panic!("{place}: {e}"));
                match (change.act)(&store) {
                    Ok(()) => {
                        num_undone += 1;
                        change.after.compare(&store).unwrap_or_else(|e| panic!("{place}: {e}"));
                        assert!(store.verify(&pool()).unwrap().unknown_files.is_empty(), "{place}");
                    }
                    Err(Error::Poisoned { .. }) => {
                        num_poisoned += 1;
                        change.before.compare(&store).unwrap_or_else(|e| panic!("{place}: {e}"));
                        assert!(matches!(store.retain(Retention::Named), Err(Error::Poisoned { .. })), "{place}");
                    }
                    Err(error) => panic!("{place}: again: {error}"),
                }
                drop(store);
                change.check(&disk, &place);
                // A power cut after the error: removals may be durable although the rename of the manifest is not.
                for seed in 0..num_disks() {
                    change.check(&disk.after_crash(seed), &format!("{place}, seed {seed}"));
                }
            }
        }
        // The two errors at the rename of the manifest and at the sync of its directory.
        assert_eq!(num_poisoned, 4, "{}", change.name);
        println!(
            "error_every_call[{}]: {num_calls} calls, 2 errors each: {num_undone} undone, {num_poisoned} poisoned, \
             {num_done} done all the same",
            change.name
        );
    }
}

/// A merge whose delta exceeds its memory keeps parts of it in scratch files.
#[test]
fn crash_during_spilling_merge_keeps_old_state() {
    let random = &mut Random::new(5);
    let options = GraphOptions { keys: KeyScheme::Dense, weight_type: None, ..GraphOptions::default() };
    let mut content = Content::new(options, 3_000);
    let original = FaultStorage::default();
    let store = content.write(Arc::new(original.clone()), path(), None).unwrap();
    for _ in 0..2 {
        let before = content.clone();
        // The targets of one direction in both deltas take 1.4 MB.
        for _ in 0..180_000 {
            content.add_edge(below(random, 3_000) as u32, below(random, 3_000) as u32, 1);
        }
        content.changes_from(&before).with(|changes| store.append(changes, None)).unwrap();
    }
    let snapshots = store.snapshots();
    drop(store);
    let merge = |disk: &FaultStorage| {
        let store = open(disk);
        store.set_memory(Some(1 << 30));
        store.merge(MergeScope::Newest(2), &pool(), &Silent).map(drop)
    };
    let has_scratch =
        |disk: &FaultStorage| disk.list(path()).unwrap().iter().any(|name| name.starts_with("tmp-scratch-"));
    let disk = original.duplicate();
    open(&disk);
    let num_before = disk.num_calls();
    merge(&disk).unwrap();
    assert!(!has_scratch(&disk));
    let (num_calls, mut num_with_scratch) = (disk.num_calls() - num_before, 0);
    for at in 0..=num_calls {
        let crashed = original.duplicate();
        crashed.set_plan(FaultPlan::CrashAt(num_before + at));
        // The crash loses the answer.
        drop(merge(&crashed));
        for seed in 0..3 {
            let disk = crashed.after_crash(seed);
            num_with_scratch += u32::from(has_scratch(&disk));
            let place = format!("call {at} of {num_calls}, seed {seed}");
            let store = open(&disk);
            let report = store.verify(&pool()).unwrap_or_else(|e| panic!("{place}: {e}"));
            assert!(report.unknown_files.is_empty(), "{place}: {:?}", report.unknown_files);
            assert_eq!(store.snapshots(), snapshots, "{place}");
            content.compare_edges(&store.view().unwrap()).unwrap_or_else(|e| panic!("{place}: {e}"));
            assert!(!has_scratch(&disk), "{place}");
        }
    }
    assert!(num_with_scratch > 2, "{num_with_scratch} crashes left scratch files");
    println!(
        "crash_every_call[merge that spills]: {num_calls} crash points, 3 disks each: {num_with_scratch} with scratch files"
    );
}
