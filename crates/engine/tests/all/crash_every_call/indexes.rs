//! Indexes after a power cut or an error at each call to the disk. An index exists completely or not at all, and finds
//! what a scan finds. A unique index has no value twice.

use std::collections::BTreeMap;
use std::io::ErrorKind as IoKind;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use anden_base::progress::{Progress, Silent};
use anden_engine::{
    AppendOptions, Changes, Durability, Engine, Error, IndexKind, MergeScope, Missing, Result, SnapshotView, Update,
};
use anden_graph::Graph;
use anden_graph::property::{OwnedValue, PropertyValue};
use anden_testkit::{FaultPlan, FaultStorage, Random, scaled};

use super::crash_every_call;
use crate::log_recovery::{DB, pool};
use crate::transactions::{key, strings};

const NUM_KEYS: u32 = 8;
/// The number of possible disks after a crash to check for each call.
const NUM_DISKS: u64 = 1;
/// One in this many recovered databases gets more work.
const WORKED_ON: u64 = 3;

/// Vertices with their values, and the indexes.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    vertices: BTreeMap<String, BTreeMap<String, OwnedValue>>,
    indexes: BTreeMap<String, IndexKind>,
}

#[derive(Clone, Debug)]
enum Change {
    Set(String, &'static str, OwnedValue),
    Remove(String),
}

fn email(vertex: u32, number: u32) -> Change {
    Change::Set(format!("v{vertex}"), "email", format!("{number}@x").into())
}

fn size(vertex: u32, size: i64) -> Change {
    Change::Set(format!("v{vertex}"), "size", size.into())
}

fn no_email(vertex: u32) -> Change {
    Change::Set(format!("v{vertex}"), "email", OwnedValue::Null)
}

fn remove(vertex: u32) -> Change {
    Change::Remove(format!("v{vertex}"))
}

impl State {
    /// The state of a database, read without an index.
    fn of(db: &Engine) -> Self {
        let view = db.view().unwrap();
        let (properties, mut state) = (view.properties(), Self::default());
        for vertex in 0..view.vertex_bound() as u32 {
            let values = (0..properties.schema().len()).filter_map(|place| {
                let value = properties.value(place, vertex).unwrap();
                let (name, _) = properties.schema().get(place).unwrap();
                (!value.is_null()).then(|| (name.to_owned(), value.into()))
            });
            let values: BTreeMap<_, _> = values.collect();
            assert!(view.is_live(vertex) || values.is_empty(), "vertex {vertex} is removed and has values");
            if view.is_live(vertex) {
                state.vertices.insert(view.key(vertex).unwrap().to_string(), values);
            }
        }
        state.indexes = db.indexes().into_iter().map(|index| (index.property, index.kind)).collect();
        state
    }

    fn with(&self, changes: &[Change]) -> Self {
        let mut after = self.clone();
        for change in changes {
            match change {
                Change::Set(vertex, name, OwnedValue::Null) => {
                    after.vertices.get_mut(vertex).map(|values| values.remove(*name));
                }
                Change::Set(vertex, name, value) => {
                    let values = after.vertices.entry(vertex.clone()).or_default();
                    values.insert((*name).to_owned(), value.clone());
                }
                Change::Remove(vertex) => drop(after.vertices.remove(vertex)),
            }
        }
        after
    }

    fn with_index(&self, name: &str, kind: Option<IndexKind>) -> Self {
        let mut after = self.clone();
        after.indexes.remove(name);
        after.indexes.extend(kind.map(|kind| (name.to_owned(), kind)));
        after
    }

    /// Whether the unique indexes allow the values.
    fn is_allowed(&self) -> bool {
        let unique = self.indexes.iter().filter(|(_, kind)| **kind == IndexKind::Unique);
        unique.into_iter().all(|(name, _)| {
            let values = || self.vertices.values().filter_map(|values| values.get(name));
            values().enumerate().all(|(place, value)| !values().skip(place + 1).any(|other| other == value))
        })
    }
}

/// The states that a database went through, in order.
#[derive(Debug)]
struct History {
    states: Vec<State>,
    now: State,
    /// The index of the newest state that was answered as durable.
    durable: usize,
}

impl History {
    fn new(now: State) -> Self {
        Self { states: vec![now.clone()], now, durable: 0 }
    }
}

/// Changes a database, and records the states.
struct Client {
    db: Engine,
    history: Mutex<History>,
}

impl Client {
    fn open(disk: &FaultStorage, now: State) -> Result<Self, Box<(Error, History)>> {
        match Engine::open_in(Arc::new(disk.clone()), Path::new(DB)) {
            Ok(db) => {
                // Without a budget, each operation asks the kernel for free memory, which takes longer than the rest.
                db.set_memory(Some(1 << 30));
                Ok(Self { db, history: Mutex::new(History::new(now)) })
            }
            Err(error) => Err(Box::new((error, History::new(now)))),
        }
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap()
    }

    fn now(&self) -> State {
        self.history().now.clone()
    }

    /// Records the state after a change. A refused change may be on the disk, but is not in memory.
    fn note<T>(&self, after: State, is_durable: bool, answer: Result<T>) -> Result<()> {
        let history = &mut *self.history();
        history.states.push(after.clone());
        answer?;
        history.now = after;
        if is_durable {
            history.durable = history.states.len() - 1;
        }
        Ok(())
    }

    fn commit(&self, changes: &[Change]) -> Result<()> {
        self.commit_with(changes, Durability::Sync)
    }

    fn commit_with(&self, changes: &[Change], durability: Durability) -> Result<()> {
        let update = |change: &Change| match change.clone() {
            Change::Set(vertex, name, value) => Update::set_vertex(vertex, name, value),
            Change::Remove(vertex) => Update::RemoveVertex(key(&vertex)),
        };
        let updates: Vec<Update> = changes.iter().map(update).collect();
        let answer = self.db.apply_with(&updates, Missing::Lenient, durability, pool());
        self.note_allowed(self.now().with(changes), durability == Durability::Sync, answer)
    }

    /// Appends a snapshot. Removals come first.
    fn append(&self, changes: &[Change]) -> Result<()> {
        let appended = changes.iter().fold(Changes::default(), |appended, change| match change.clone() {
            Change::Set(vertex, name, value) => appended.set_vertex(vertex, name, value),
            Change::Remove(vertex) => appended.remove_vertex(vertex),
        });
        let answer = self.db.append_changes(&appended, &AppendOptions::default(), pool(), &Silent);
        self.note_allowed(self.now().with(changes), true, answer)
    }

    /// Requires a violation if and only if the state breaks a unique index.
    fn note_allowed<T>(&self, after: State, is_durable: bool, answer: Result<T>) -> Result<()> {
        match (after.is_allowed(), answer) {
            (false, Ok(_)) => panic!("a unique index has a value twice: {after:?}"),
            (false, Err(Error::UniqueViolation { .. })) => Ok(()),
            (_, answer) => self.note(after, is_durable, answer),
        }
    }

    /// Creates an index. `meanwhile` runs while the index is collected.
    fn create(&self, name: &str, kind: IndexKind, meanwhile: impl Fn(&Self) -> Result<()> + Sync) -> Result<()> {
        let progress = Meanwhile { client: self, act: meanwhile, error: Mutex::default() };
        let answer = self.db.create_index(name, kind, &progress);
        let after = self.now().with_index(name, Some(kind));
        match (after.is_allowed(), answer) {
            (false, Ok(())) => panic!("a unique index was created of {after:?}"),
            (false, Err(error)) if error.to_string().contains("cannot create a unique index") => {}
            (_, answer) => self.note(after, true, answer)?,
        }
        progress.error.into_inner().unwrap().map_or(Ok(()), Err)
    }

    fn drop_index(&self, name: &str) -> Result<()> {
        let answer = self.db.drop_index(name);
        self.note(self.now().with_index(name, None), true, answer)
    }

    /// Makes a checkpoint, after which all commits are durable.
    fn checkpoint(&self) -> Result<()> {
        let answer = self.db.checkpoint(None);
        self.note(self.now(), true, answer)
    }

    fn merge(&self) -> Result<()> {
        self.db.merge(MergeScope::All, pool(), &Silent).map(drop)
    }

    /// Drops all snapshots but the newest.
    fn drop_snapshots(&self) -> Result<()> {
        let mut numbers: Vec<u32> = self.db.snapshots().iter().map(|snapshot| snapshot.number).collect();
        numbers.pop();
        self.db.drop_snapshots(&numbers, &Silent)
    }

    /// Requires that the graph equals the recorded state and agrees with its indexes.
    fn check(&self, place: &str) {
        assert_eq!(State::of(&self.db), self.now(), "{place}");
        compare_indexes(&self.db, place);
    }
}

/// Runs a function while an index is collected.
struct Meanwhile<'a, F> {
    client: &'a Client,
    act: F,
    error: Mutex<Option<Error>>,
}

impl<F: Fn(&Client) -> Result<()> + Sync> Progress for Meanwhile<'_, F> {
    fn stage(&self, _: &str, _: Option<u64>) {
        *self.error.lock().unwrap() = (self.act)(self.client).err();
    }
}

/// Each index finds what a scan finds, in each snapshot and in the newest view. Unique values are unique in the newest.
fn compare_indexes(db: &Engine, place: &str) {
    let newest = db.view().unwrap();
    compare_view(&newest, place);
    for snapshot in db.snapshots() {
        compare_view(&db.snapshot(snapshot.number).unwrap(), &format!("{place}, snapshot {}", snapshot.number));
    }
    assert!(State::of(db).is_allowed(), "{place}: a unique index has a value twice");
}

fn compare_view(view: &SnapshotView, place: &str) {
    let properties = view.properties();
    for number in 0..properties.schema().len() {
        let column = properties.column(number).unwrap().unwrap();
        let holders = |value: PropertyValue<'_>| -> Vec<u32> {
            (0..column.len()).filter(|&vertex| column.get(vertex) == value).map(|vertex| vertex as u32).collect()
        };
        let stored = (0..column.len()).map(|vertex| column.get(vertex)).filter(|value| !value.is_null());
        let all = (0..20).map(|value| OwnedValue::from(format!("{value}@x")));
        let all: Vec<OwnedValue> = all.chain((0..6_i64).map(OwnedValue::from)).chain(stored.map(Into::into)).collect();
        for value in &all {
            let found = properties.find(number, value.as_value()).unwrap();
            assert_eq!(found, holders(value.as_value()), "{place}: property {number}, {value:?}");
        }
    }
}

/// Steps that change a database and its indexes.
type Act = Box<dyn Fn(&Client) -> Result<()>>;

struct Workload {
    name: String,
    disk: FaultStorage,
    before: State,
    act: Act,
}

/// A database with two snapshots and a log, and with both indexes or none.
fn start(has_indexes: bool) -> (FaultStorage, State) {
    let disk = FaultStorage::default();
    drop(Engine::create_in(Arc::new(disk.clone()), Path::new(DB), strings()).unwrap());
    let client = Client::open(&disk, State::default()).unwrap_or_else(|failed| panic!("{}", failed.0));
    let first: Vec<Change> = (0..4).flat_map(|vertex| [email(vertex, vertex), size(vertex, vertex.into())]).collect();
    client.commit(&first).unwrap();
    client.checkpoint().unwrap();
    if has_indexes {
        client.create("email", IndexKind::Unique, |_| Ok(())).unwrap();
        client.create("size", IndexKind::Plain, |_| Ok(())).unwrap();
    }
    client.commit(&[email(0, 10), size(1, 0), remove(2)]).unwrap();
    client.checkpoint().unwrap();
    client.commit(&[email(1, 11), size(4, 0)]).unwrap();
    (disk.duplicate(), client.now())
}

/// Creates indexes beside commits and a checkpoint.
fn create_indexes(client: &Client) -> Result<()> {
    client.commit_with(&[email(5, 5)], Durability::None)?;
    client.create("email", IndexKind::Unique, |client| {
        client.commit(&[email(0, 12), email(6, 10)])?;
        client.commit(&[remove(5), no_email(1)])?;
        client.checkpoint()?;
        client.drop_snapshots()?;
        client.merge()?;
        client.commit(&[email(3, 12), email(0, 3)])
    })?;
    client.commit(&[email(7, 12)])?;
    client.commit(&[email(7, 5), size(7, 3)])?;
    client.create("size", IndexKind::Plain, |client| client.commit(&[size(0, 3), size(3, 0), email(1, 1)]))?;
    client.commit(&[size(6, 3), remove(0)])?;
    client.commit(&[email(4, 3)])
}

/// A unique index is refused if a concurrent commit duplicates a value, and is created later.
fn create_after_refusal(client: &Client) -> Result<()> {
    client.create("email", IndexKind::Unique, |client| client.commit(&[email(5, 3)]))?;
    client.create("email", IndexKind::Plain, |client| client.commit(&[email(6, 3)]))?;
    client.drop_index("email")?;
    client.commit(&[email(5, 5), remove(6)])?;
    client.create("email", IndexKind::Unique, |client| client.commit(&[email(3, 6), email(7, 3)]))?;
    client.commit(&[email(5, 3)])
}

/// All other changes of indexed values or of index files.
fn change_values(client: &Client) -> Result<()> {
    client.commit(&[email(0, 11), email(1, 10)])?;
    client.commit(&[email(5, 11)])?;
    client.commit_with(&[remove(3), email(5, 3), size(5, 0)], Durability::None)?;
    client.checkpoint()?;
    client.commit(&[no_email(0), email(2, 11)])?;
    client.merge()?;
    client.append(&[remove(1), email(6, 10), size(6, 2), email(0, 0)])?;
    client.append(&[email(6, 3)])?;
    client.commit(&[email(4, 1), size(4, 2)])?;
    client.drop_snapshots()?;
    client.merge()?;
    client.drop_index("email")?;
    client.commit(&[email(5, 0), email(6, 0)])?;
    client.drop_index("size")?;
    client.commit(&[size(5, 2), email(5, 5)])?;
    client.create("email", IndexKind::Unique, |client| client.commit(&[email(6, 6), email(7, 0)]))
}

/// Random steps, most of them commits.
fn mix(client: &Client, seed: u64) -> Result<()> {
    let random = &mut Random::new(seed);
    for _ in 0..12 {
        let changes = random_changes(random);
        match random.below(14) {
            0 => client.checkpoint()?,
            1 => client.merge()?,
            2 => client.append(&changes)?,
            3 if client.db.snapshots().len() > 2 => client.drop_snapshots()?,
            4..=6 => toggle_index(client, random)?,
            7 => client.commit_with(&changes, Durability::None)?,
            _ => client.commit(&changes)?,
        }
    }
    Ok(())
}

fn toggle_index(client: &Client, random: &mut Random) -> Result<()> {
    let name = ["email", "size"][random.below(2) as usize];
    let kind = if name == "email" { IndexKind::Unique } else { IndexKind::Plain };
    let meanwhile = [random_changes(random), random_changes(random)];
    match client.now().indexes.contains_key(name) {
        true => client.drop_index(name),
        false => client.create(name, kind, |client| meanwhile.iter().try_for_each(|changes| client.commit(changes))),
    }
}

/// Random changes. Removals come first, as in an append.
fn random_changes(random: &mut Random) -> Vec<Change> {
    let mut changes: Vec<Change> = (0..random.below(4) / 3).map(|_| remove(random.below(NUM_KEYS))).collect();
    for _ in 0..1 + random.below(3) {
        changes.push(match random.below(2) {
            0 => email(random.below(NUM_KEYS), random.below(16)),
            _ => size(random.below(NUM_KEYS), random.below(4).into()),
        });
    }
    changes
}

fn workloads() -> Vec<Workload> {
    let workload = |name: String, has_indexes: bool, act: Act| {
        let (disk, before) = start(has_indexes);
        Workload { name, disk, before, act }
    };
    let mut workloads = vec![
        workload("create indexes".into(), false, Box::new(create_indexes)),
        workload("create after refusal".into(), false, Box::new(create_after_refusal)),
        workload("change values".into(), true, Box::new(change_values)),
    ];
    for seed in 0..scaled(1) {
        workloads.push(workload(format!("mix {seed}"), seed % 2 == 0, Box::new(move |client| mix(client, seed))));
    }
    workloads
}

/// Opens a possible disk after a crash, and requires a recorded state. Returns its number. Some databases get more
/// work.
fn check_recovered(history: &History, disk: &FaultStorage, place: &str, works_on: bool) -> usize {
    let client = Client::open(disk, State::default()).unwrap_or_else(|failed| panic!("{place}: {}", failed.0));
    let verified = client.db.verify(pool()).unwrap_or_else(|error| panic!("{place}: {error}"));
    assert_eq!(verified.unknown_files, Vec::<String>::new(), "{place}");
    let found = State::of(&client.db);
    let number = history.states.iter().rposition(|state| *state == found);
    let number = number.unwrap_or_else(|| panic!("{place}: no step left {found:?}"));
    assert!(number >= history.durable, "{place}: state {number} is there, {} was durable", history.durable);
    compare_indexes(&client.db, place);
    client.history().now = found;
    if works_on {
        work_on(&client, place);
    }
    number
}

fn work_on(client: &Client, place: &str) {
    // Each value of the model is offered to another vertex: a unique index refuses those that are taken.
    for value in [0, 3, 10, 11, 12] {
        client.commit_with(&[email(9, value)], Durability::None).unwrap();
    }
    client.commit(&[email(9, 9), size(9, 3)]).unwrap();
    client.checkpoint().unwrap();
    client.merge().unwrap();
    client.check(&format!("{place}, then"));
    client.db.verify(pool()).unwrap_or_else(|error| panic!("{place}, then: {error}"));
}

#[test]
fn a_crash_at_any_call_leaves_whole_indexes() {
    for workload in workloads() {
        let run = |disk: &FaultStorage, ()| match Client::open(disk, workload.before.clone()) {
            Err(failed) => failed.1,
            Ok(client) => {
                // The power cut loses the answer.
                drop((workload.act)(&client));
                client.history.into_inner().unwrap()
            }
        };
        let mut reached = std::collections::BTreeSet::new();
        let (mut num_states, mut num_disks) = (0, 0_u64);
        let num_calls = crash_every_call(
            scaled(NUM_DISKS),
            || (workload.disk.duplicate(), ()),
            run,
            |history, disk, place| {
                let place = format!("{}: {place}", workload.name);
                num_states = history.states.len();
                reached.insert(check_recovered(history, disk, &place, num_disks.is_multiple_of(WORKED_ON)));
                num_disks += 1;
            },
        );
        assert!(2 * reached.len() > num_states, "{}: {reached:?} of {num_states} states", workload.name);
        println!("crash_every_call[{}]: {num_calls} calls, {} of {num_states} states", workload.name, reached.len());
    }
}

#[test]
fn an_error_at_any_call_leaves_whole_indexes() {
    for workload in workloads() {
        let (mut call, mut num_well, mut num_poisoned) = (0, 0, 0);
        loop {
            let place = format!("{}: call {call}", workload.name);
            let disk = workload.disk.duplicate();
            disk.set_plan(FaultPlan::FailAt(call, IoKind::StorageFull));
            let client = match Client::open(&disk, workload.before.clone()) {
                Ok(client) => client,
                Err(failed) => {
                    let (error, history) = *failed;
                    assert!(error.to_string().contains(DB), "{place}: {error}");
                    disk.set_plan(FaultPlan::Never);
                    check_recovered(&history, &disk, &place, true);
                    call += 1;
                    continue;
                }
            };
            let answer = (workload.act)(&client);
            let is_last = disk.num_calls() <= call;
            assert!(!is_last || answer.is_ok(), "{place}: {answer:?}");
            disk.set_plan(FaultPlan::Never);
            client.check(&place);
            match client.commit(&[email(0, 13), size(0, 5)]) {
                Ok(()) => num_well += u64::from(client.checkpoint().is_ok()),
                Err(error) => {
                    assert!(
                        answer.is_err() && error.to_string().contains("open the database again"),
                        "{place}: {error}"
                    );
                    num_poisoned += 1;
                }
            }
            client.check(&place);
            let left = if call % 2 == 0 { disk.after_crash(call) } else { disk.duplicate() };
            check_recovered(&client.history(), &left, &place, false);
            if is_last {
                break;
            }
            call += 1;
        }
        assert!(num_well > call / 2 && num_poisoned > 0, "{num_well} went on, {num_poisoned} did not, of {call}");
        println!("fail_every_call[{}]: {call} calls, {num_poisoned} end all writing", workload.name);
    }
}
