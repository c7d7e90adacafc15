//! Unique indexes: the changes that they refuse, the errors, and that refused changes have no effect.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{
    AppendOptions, Changes, Engine, Error, ErrorKind, IndexKind, Key, Missing, OptimisticTransaction, Result, Update,
};
use anden_graph::property::OwnedValue;
use anden_testkit::{FaultStorage, Random};

use crate::transactions::{key, strings};

struct Scene {
    db: Engine,
    disk: FaultStorage,
    pool: Pool,
}

fn email(vertex: &str, value: &str) -> Update {
    Update::set_vertex(vertex, "email", value)
}

/// A unique index of e-mail addresses. Those of ann are in a snapshot, those of bob in the memtable.
fn scene() -> Scene {
    let (disk, pool) = (FaultStorage::default(), Pool::new(1).unwrap());
    let db = Engine::create_in(Arc::new(disk.clone()), Path::new("db"), strings()).unwrap();
    db.apply(&[email("ann", "a@x"), Update::AddVertex(key("cid"))], Missing::Lenient, &pool).unwrap();
    db.create_index("email", IndexKind::Unique, &Silent).unwrap();
    db.apply(&[email("bob", "b@x")], Missing::Lenient, &pool).unwrap();
    Scene { db, disk, pool }
}

fn violation(vertex: &str, value: &str, holder: &str) -> String {
    format!(
        "cannot set \"email\" of vertex {vertex} to \"{value}\": vertex {holder} has this value, and the index is unique; \
         choose another value, or take it away there first"
    )
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T>, vertex: &str, value: &str, holder: &str) {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::UniqueViolation { .. }), "{error:?}");
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::InvalidInput, violation(vertex, value, holder)));
}

impl Scene {
    fn apply(&self, updates: &[Update]) -> Result<()> {
        self.db.apply(updates, Missing::Lenient, &self.pool).map(drop)
    }

    fn begin(&self) -> OptimisticTransaction<'_> {
        self.db.begin(&self.pool).unwrap()
    }

    fn holder(&self, value: &str) -> Vec<Key> {
        self.begin().find("email", &value.into()).unwrap()
    }
}

#[test]
fn a_transaction_stays_usable_after_a_violation() {
    let scene = scene();
    let mut tx = scene.begin();
    for (value, holder) in [("a@x", "ann"), ("b@x", "bob")] {
        refused(tx.set_vertex_value(&key("new"), "email", value.into()), "new", value, holder);
        refused(tx.set_vertex_value(&key("cid"), "email", value.into()), "cid", value, holder);
    }
    assert!(tx.is_read_only() && !tx.has_vertex(&key("new")).unwrap(), "the calls have no effect");
    // A vertex may keep its value, and take one that was removed or whose vertex is removed.
    tx.set_vertex_value(&key("ann"), "email", "a@x".into()).unwrap();
    tx.set_vertex_value(&key("ann"), "email", "a2@x".into()).unwrap();
    tx.set_vertex_value(&key("cid"), "email", "a@x".into()).unwrap();
    tx.remove_vertex(&key("bob")).unwrap();
    tx.set_vertex_value(&key("dan"), "email", "b@x".into()).unwrap();
    refused(tx.set_vertex_value(&key("ann"), "email", "b@x".into()), "ann", "b@x", "dan");
    // Several vertices may have no value.
    for vertex in ["eve", "fay"] {
        tx.add_vertex(&key(vertex)).unwrap();
        tx.set_vertex_value(&key(vertex), "email", OwnedValue::Null).unwrap();
    }
    tx.commit().unwrap();
    assert_eq!(
        ["a@x", "a2@x", "b@x"].map(|value| scene.holder(value)),
        ["cid", "ann", "dan"].map(|name| vec![key(name)])
    );
    scene.db.verify(&scene.pool).unwrap();
}

#[test]
fn unique_value_race_conflicts_then_violates() {
    let scene = scene();
    let (mut first, mut second) = (scene.begin(), scene.begin());
    first.set_vertex_value(&key("cid"), "email", "new@x".into()).unwrap();
    second.set_vertex_value(&key("dan"), "email", "new@x".into()).unwrap();
    first.commit().unwrap();
    let error = second.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().starts_with("the vertices with a value that was searched changed"), "{error}");
    let mut num_runs = 0;
    let retried: Result<()> = scene.db.transact(&scene.pool, |tx| {
        num_runs += 1;
        tx.set_vertex_value(&key("dan"), "email", "new@x".into())
    });
    refused(retried, "dan", "new@x", "cid");
    assert_eq!(num_runs, 1, "a violation is not tried again");
}

#[test]
fn searches_conflict_with_changes_of_their_value_only() {
    let meets = |value: &str, update: Update| {
        let scene = scene();
        let mut tx = scene.begin();
        tx.find("email", &value.into()).unwrap();
        scene.apply(&[update]).unwrap();
        tx.add_vertex(&key("mark")).unwrap();
        tx.commit().is_err()
    };
    assert!(meets("new@x", email("cid", "new@x")));
    assert!(meets("a@x", email("ann", "other@x")));
    assert!(meets("b@x", Update::RemoveVertex(key("bob"))));
    assert!(meets("a@x", Update::set_vertex("ann", "email", OwnedValue::Null)));
    assert!(!meets("a@x", email("bob", "other@x")));
    assert!(!meets("new@x", email("bob", "other@x")));
    assert!(!meets("b@x", Update::RemoveVertex(key("ann"))));
}

#[test]
fn a_batch_is_checked_as_a_whole() {
    let scene = scene();
    refused(scene.apply(&[Update::add_edge("x", "y"), email("cid", "a@x")]), "cid", "a@x", "ann");
    refused(scene.apply(&[email("cid", "b@x")]), "cid", "b@x", "bob");
    refused(scene.apply(&[email("dan", "c@x"), email("eve", "c@x")]), "dan", "c@x", "eve");
    // Large batches are groups of their own.
    let padding = vec![Update::AddVertex(key("cid")); 2_000];
    refused(scene.apply(&[&padding[..], &[email("dan", "a@x")]].concat()), "dan", "a@x", "ann");
    refused(scene.db.apply(&[email("cid", "a@x")], Missing::Strict, &scene.pool), "cid", "a@x", "ann");
    assert_eq!(scene.db.view().unwrap().vertex(&key("x")).unwrap(), None, "all or nothing");
    // Two vertices swap their values, and one takes that of a removed vertex.
    scene.apply(&[email("ann", "b@x"), email("bob", "a@x")]).unwrap();
    scene.apply(&[email("cid", "b@x"), Update::RemoveVertex(key("ann"))]).unwrap();
    scene.apply(&[email("dan", "b@x"), email("dan", "d@x")]).unwrap();
    assert_eq!(
        ["a@x", "b@x", "d@x"].map(|value| scene.holder(value)),
        ["bob", "cid", "dan"].map(|name| vec![key(name)])
    );
}

#[test]
fn requests_of_one_group_are_checked_against_each_other() {
    let scene = scene();
    let submit = |update: Update| scene.db.submit(&[update], &scene.pool).unwrap();
    let pending: Vec<_> =
        [email("p", "1@x"), email("q", "1@x"), email("q", "2@x"), email("r", "2@x"), email("p", "3@x")]
            .into_iter()
            .chain([email("s", "1@x")])
            .map(submit)
            .collect();
    let outcomes: Vec<bool> = pending.into_iter().map(|commit| commit.wait().is_ok()).collect();
    assert_eq!(outcomes, [true, false, true, false, true, true]);
    let expected = ["s", "q", "p"].map(|name| vec![key(name)]);
    assert_eq!(["1@x", "2@x", "3@x"].map(|value| scene.holder(value)), expected);
}

#[test]
fn an_append_is_checked_and_names_what_is_wrong() {
    let scene = scene();
    let append = |changes: &Changes| {
        let appended = scene.db.append_changes(changes, &AppendOptions::default(), &scene.pool, &Silent);
        appended.map(|report| report.snapshot)
    };
    let set = |changes: Changes, vertex: &str, value: &str| changes.set_vertex(vertex, "email", value);
    let none = Changes::default;
    refused(append(&set(none(), "cid", "a@x")), "cid", "a@x", "ann");
    refused(append(&set(none(), "dan", "b@x")), "dan", "b@x", "bob");
    refused(append(&set(set(none(), "dan", "n@x"), "eve", "n@x")), "dan", "n@x", "eve");
    assert_eq!(scene.db.view().unwrap().vertex(&key("dan")).unwrap(), None, "nothing has happened");
    append(&set(set(none(), "ann", "b@x"), "bob", "a@x")).unwrap();
    append(&set(none().remove_vertex("ann"), "cid", "b@x")).unwrap();
    assert_eq!((scene.holder("a@x"), scene.holder("b@x")), (vec![key("bob")], vec![key("cid")]));
    scene.db.verify(&scene.pool).unwrap();
}

#[test]
fn values_that_are_not_unique_are_named() {
    let scene = scene();
    scene.db.drop_index("email").unwrap();
    let error = scene.db.drop_index("email").unwrap_err().to_string();
    assert_eq!(error, "cannot drop the index: the property \"email\" of vertices has none");
    scene.apply(&[email("cid", "a@x")]).unwrap();
    let error = scene.db.create_index("email", IndexKind::Unique, &Silent).unwrap_err().to_string();
    let expected = "cannot create a unique index of \"email\": the vertices ann and cid both have the value a@x; change one \
                    of them, or create an index that is not unique";
    assert_eq!(error, expected);
    assert!(scene.db.indexes().is_empty());
    scene.db.create_index("email", IndexKind::Plain, &Silent).unwrap();
    let error = scene.db.create_index("email", IndexKind::Plain, &Silent).unwrap_err().to_string();
    assert_eq!(error, "cannot create an index of the property \"email\": it has one already; drop that one first");
    let error = scene.db.create_index("emial", IndexKind::Plain, &Silent).unwrap_err().to_string();
    let expected = "cannot create an index of the property \"emial\": no vertex has it; did you mean \"email\"?";
    assert_eq!(error, expected);
}

#[test]
fn a_transaction_across_a_change_of_indexes_loses() {
    let scene = scene();
    let mut tx = scene.begin();
    tx.find("email", &"new@x".into()).unwrap();
    scene.db.drop_index("email").unwrap();
    scene.apply(&[email("cid", "new@x")]).unwrap();
    tx.add_vertex(&key("mark")).unwrap();
    assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Conflict);
    let mut tx = scene.begin();
    tx.set_vertex_value(&key("dan"), "email", "new@x".into()).unwrap();
    scene.apply(&[email("cid", "other@x")]).unwrap();
    scene.db.create_index("email", IndexKind::Unique, &Silent).unwrap();
    scene.apply(&[email("cid", "new@x")]).unwrap();
    refused(tx.commit(), "dan", "new@x", "cid");
}

#[test]
fn a_reader_and_a_recovery_know_the_index() {
    let scene = scene();
    let reader = Engine::open_read_only_in(Arc::new(scene.disk.clone()), Path::new("db")).unwrap();
    let found = |db: &Engine, value: &str| {
        let view = db.view().unwrap();
        assert_eq!(view.properties().index(0), Some(IndexKind::Unique));
        view.properties().find(0, anden_graph::property::PropertyValue::String(value)).unwrap()
    };
    assert_eq!((found(&reader, "a@x"), found(&reader, "b@x")), (vec![0], vec![2]));
    scene.apply(&[email("cid", "c@x")]).unwrap();
    assert_eq!(found(&reader, "c@x"), Vec::<u32>::new());
    reader.refresh().unwrap();
    assert_eq!(found(&reader, "c@x"), [1]);
    // A process that ends without closing leaves the WAL.
    let disk = scene.disk.after_crash(1);
    std::mem::forget(scene);
    let db = Engine::open_in(Arc::new(disk), Path::new("db")).unwrap();
    assert_eq!((found(&db, "a@x"), found(&db, "b@x"), found(&db, "c@x")), (vec![0], vec![2], vec![1]));
    let pool = Pool::new(1).unwrap();
    refused(db.apply(&[email("dan", "c@x")], Missing::Lenient, &pool), "dan", "c@x", "cid");
    db.verify(&pool).unwrap();
}

/// Random batches over few values are refused exactly as by a model.
#[test]
fn a_model_refuses_the_same_batches() {
    for seed in 0..6 {
        let (scene, mut random) = (scene(), Random::new(seed));
        let mut model: BTreeMap<String, String> =
            [("ann", "a@x"), ("bob", "b@x")].map(|(vertex, value)| (vertex.to_owned(), value.to_owned())).into();
        let mut num_refused = 0;
        for step in 0..150 {
            let mut after = model.clone();
            let mut updates = Vec::new();
            for _ in 0..random.below(3) + 1 {
                let (vertex, value) = (format!("v{}", random.below(8)), format!("{}@x", random.below(12)));
                updates.push(match random.below(8) {
                    0 => {
                        after.remove(&vertex);
                        Update::RemoveVertex(key(&vertex))
                    }
                    _ => {
                        after.insert(vertex.clone(), value.clone());
                        email(&vertex, &value)
                    }
                });
            }
            let mut values: Vec<&String> = after.values().collect();
            values.sort_unstable();
            let is_unique = values.windows(2).all(|pair| pair[0] != pair[1]);
            let place = format!("seed {seed}, step {step}: {updates:?}");
            assert_eq!(scene.apply(&updates).is_ok(), is_unique, "{place}");
            match is_unique {
                true => model = after,
                false => num_refused += 1,
            }
            for (vertex, value) in &model {
                assert_eq!(scene.holder(value), [key(vertex)], "{place}");
            }
            if random.below(20) == 0 {
                scene.db.checkpoint(None).unwrap();
            }
        }
        assert!(num_refused > 20, "{num_refused}");
        scene.db.verify(&scene.pool).unwrap();
    }
}
