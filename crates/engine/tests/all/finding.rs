//! Search for vertices by property value, compared with a model on every snapshot of a changing database.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{
    AppendOptions, Changes, Engine, ErrorKind, IndexKind, Key, MergeScope, Missing, SnapshotView, Update, sought_value,
};
use anden_graph::property::OwnedValue;
use anden_testkit::{FaultStorage, Random};

use crate::transactions::{key, strings};

/// Values by vertex and property name.
type Values = BTreeMap<(String, &'static str), OwnedValue>;

/// Few distinct values, so that several vertices share each.
const NUM_VALUES: u32 = 5;
const NUM_KEYS: u32 = 40;

/// The value with this number of a property.
fn value(name: &str, number: u32) -> OwnedValue {
    match name {
        "size" => i64::from(number).into(),
        _ => format!("name {number}").into(),
    }
}

/// A database under random changes, with its model.
struct Scene {
    disk: FaultStorage,
    pool: Pool,
    random: Random,
    values: Values,
    /// The model of each snapshot, by number.
    snapshots: BTreeMap<u32, Values>,
}

fn find(view: &SnapshotView, name: &str, value: &OwnedValue) -> Vec<Key> {
    let (place, value) = sought_value(view.properties().schema(), name, &value.clone().into()).unwrap();
    let found = view.properties().find(place, value.as_value()).unwrap();
    assert!(found.is_sorted_by(|a, b| a < b));
    found.into_iter().map(|vertex| view.key(vertex).unwrap()).collect()
}

fn questions() -> impl Iterator<Item = (&'static str, u32)> {
    ["size", "name"].into_iter().flat_map(|name| (0..NUM_VALUES).map(move |number| (name, number)))
}

fn expected(values: &Values, name: &str, number: u32) -> Vec<Key> {
    let value = value(name, number);
    let has_it = values.iter().filter(|((_, known), other)| *known == name && **other == value);
    has_it.map(|((vertex, _), _)| key(vertex)).collect()
}

fn sorted(mut keys: Vec<Key>) -> Vec<Key> {
    keys.sort();
    keys
}

fn compare(view: &SnapshotView, values: &Values, place: &str) {
    for (name, number) in questions() {
        let expected = expected(values, name, number);
        match view.properties().schema().find(name) {
            Some(_) => assert_eq!(sorted(find(view, name, &value(name, number))), expected, "{place}: {name} {number}"),
            None => assert!(expected.is_empty(), "{place}"),
        }
    }
}

impl Scene {
    fn new(seed: u64) -> Self {
        let (pool, random) = (Pool::new(1).unwrap(), Random::new(seed));
        Self { disk: FaultStorage::default(), pool, random, values: Values::new(), snapshots: BTreeMap::new() }
    }

    fn create(&self) -> Engine {
        Engine::create_in(Arc::new(self.disk.clone()), Path::new("db"), strings()).unwrap()
    }

    fn open(&self) -> Engine {
        Engine::open_in(Arc::new(self.disk.clone()), Path::new("db")).unwrap()
    }

    /// Sets a random value of a random vertex in the model, or removes it.
    fn set(&mut self) -> (String, &'static str, OwnedValue) {
        let vertex = format!("v{}", self.random.below(NUM_KEYS));
        let name = ["size", "name"][self.random.below(2) as usize];
        let number = self.random.below(NUM_VALUES + 1);
        // Null needs a known property.
        let is_null = number == NUM_VALUES && self.values.keys().any(|(_, known)| *known == name);
        let value = if is_null { OwnedValue::Null } else { value(name, number) };
        match is_null {
            true => self.values.remove(&(vertex.clone(), name)),
            false => self.values.insert((vertex.clone(), name), value.clone()),
        };
        (vertex, name, value)
    }

    /// Removes a random vertex from the model.
    fn remove(&mut self) -> Key {
        let vertex = format!("v{}", self.random.below(NUM_KEYS));
        self.values.retain(|(known, _), _| *known != vertex);
        key(&vertex)
    }

    fn apply(&mut self, db: &Engine) {
        let update = |scene: &mut Self| match scene.random.below(8) {
            0 => Update::RemoveVertex(scene.remove()),
            _ => {
                let (vertex, name, value) = scene.set();
                Update::set_vertex(vertex, name, value)
            }
        };
        let updates: Vec<Update> = (0..self.random.below(6) + 1).map(|_| update(self)).collect();
        db.apply(&updates, Missing::Lenient, &self.pool).unwrap();
    }

    /// A transaction finds its own writes.
    fn transact(&mut self, db: &Engine, place: &str) {
        let pool = Pool::new(1).unwrap();
        let mut tx = db.begin(&pool).unwrap();
        for _ in 0..self.random.below(6) + 1 {
            if self.random.below(8) == 0 {
                tx.remove_vertex(&self.remove()).unwrap();
            }
            let (vertex, name, value) = self.set();
            tx.set_vertex_value(&key(&vertex), name, value).unwrap();
        }
        for (name, number) in questions() {
            match tx.find(name, &value(name, number).into()) {
                Ok(found) => {
                    assert_eq!(sorted(found), expected(&self.values, name, number), "{place}: {name} {number}")
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NotFound, "{place}");
                    assert!(expected(&self.values, name, number).is_empty(), "{place}");
                }
            }
        }
        tx.commit().unwrap();
    }

    fn append(&mut self, db: &Engine) {
        // Earlier commits become a snapshot of their own.
        let before = self.values.clone();
        let mut changes = Changes::default().remove_vertex(self.remove());
        for _ in 0..self.random.below(6) {
            let (vertex, name, value) = self.set();
            changes = changes.set_vertex(vertex, name, value);
        }
        let report = db.append_changes(&changes, &AppendOptions::default(), &self.pool, &Silent).unwrap();
        self.snapshots.entry(report.snapshot - 1).or_insert(before);
        self.snapshots.insert(report.snapshot, self.values.clone());
    }

    fn check(&self, db: &Engine, place: &str) {
        compare(&db.view().unwrap(), &self.values, place);
        let existing: Vec<u32> = db.snapshots().iter().map(|snapshot| snapshot.number).collect();
        for (number, values) in self.snapshots.iter().filter(|(number, _)| existing.contains(number)) {
            compare(&db.snapshot(*number).unwrap(), values, &format!("{place}, snapshot {number}"));
        }
    }

    fn step(&mut self, db: Engine, place: &str) -> Engine {
        match self.random.below(14) {
            0..=3 => self.apply(&db),
            4..=6 => self.transact(&db, place),
            7 => {
                let number = db.checkpoint(None).unwrap().number;
                self.snapshots.insert(number, self.values.clone());
            }
            8 => self.append(&db),
            9 => drop(db.merge(MergeScope::All, &self.pool, &Silent).unwrap()),
            10 => {
                let numbers: Vec<u32> = db.snapshots().iter().map(|snapshot| snapshot.number).collect();
                if numbers.len() > 3 {
                    let dropped = numbers[self.random.below(numbers.len() as u32 - 1) as usize];
                    db.drop_snapshots(&[dropped], &Silent).unwrap();
                }
            }
            11 | 12 => {
                let name = ["size", "name"][self.random.below(2) as usize];
                let has_index = db.indexes().iter().any(|index| index.property == name);
                let is_known = db.view().unwrap().properties().schema().find(name).is_some();
                match (has_index, is_known) {
                    (true, _) => db.drop_index(name).unwrap(),
                    (false, true) => db.create_index(name, IndexKind::Plain, &Silent).unwrap(),
                    (false, false) => {
                        let error = db.create_index(name, IndexKind::Plain, &Silent).unwrap_err();
                        assert!(error.to_string().contains("no vertex has it"), "{error}");
                    }
                }
                // The commits are a snapshot now.
                let newest = db.newest_number().unwrap();
                self.snapshots.entry(newest).or_insert_with(|| self.values.clone());
                db.verify(&self.pool).unwrap();
            }
            _ => {
                db.close().unwrap();
                let db = self.open();
                let newest = db.newest_number().unwrap();
                self.snapshots.entry(newest).or_insert_with(|| self.values.clone());
                self.check(&db, place);
                return db;
            }
        }
        self.check(&db, place);
        db
    }
}

#[test]
fn a_search_gives_what_a_model_gives() {
    for seed in 0..8 {
        let mut scene = Scene::new(seed);
        let mut db = scene.create();
        for step in 0..80 {
            db = scene.step(db, &format!("seed {seed}, step {step}"));
        }
        db.verify(&scene.pool).unwrap();
    }
}

#[test]
fn a_search_names_what_it_does_not_know() {
    let pool = Pool::new(1).unwrap();
    let db = Engine::create_in(Arc::new(FaultStorage::default()), Path::new("db"), strings()).unwrap();
    let email = Update::set_vertex("ann", "email", "ann@example.org");
    db.apply(&[email, Update::set_vertex("ann", "size", 7)], Missing::Lenient, &pool).unwrap();
    let tx = db.begin(&pool).unwrap();
    let refused = |name: &str, value: OwnedValue| {
        let error = tx.find(name, &value.into()).unwrap_err();
        (error.kind(), error.to_string())
    };
    let nearest = "there is no property \"emial\" of vertices; did you mean \"email\"?";
    assert_eq!(refused("emial", "x".into()), (ErrorKind::NotFound, nearest.into()));
    let without = "there is no property \"colour\" of vertices";
    assert_eq!(refused("colour", "x".into()), (ErrorKind::NotFound, without.into()));
    let wrong = "property \"size\": expected a value of type i64, found '0.5'";
    assert_eq!(refused("size", 0.5.into()), (ErrorKind::InvalidInput, wrong.into()));
    assert_eq!(tx.find("size", &7.0.into()).map_err(|error| error.kind()), Err(ErrorKind::InvalidInput));
    assert_eq!(tx.find("size", &7_u64.into()).unwrap(), [key("ann")]);
    assert_eq!(tx.find("size", &OwnedValue::Null.into()).unwrap(), []);
}
