//! A crash or an error at every call to the disk while a database is created. Afterwards there is no database, or a
//! complete one.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_snapshots::{Error, Store};
use anden_testkit::{FaultPlan, FaultStorage, crash_every_call, scaled};

use crate::model::{Model, samples};

fn num_disks() -> u64 {
    scaled(12)
}

/// The number of cases without a database, and of those with a complete one.
#[derive(Debug, Default)]
struct Outcomes {
    num_none: u64,
    num_whole: u64,
}

fn path() -> &'static Path {
    Path::new("db")
}

/// Requires that the remains are a complete database, or nothing that obstructs a new one.
fn check_remains(model: &Model, disk: &FaultStorage, pool: &Pool, outcomes: &mut Outcomes, place: &str) {
    let read_only = Store::open_read_only(Arc::new(disk.clone()), path());
    match Store::open(Arc::new(disk.clone()), path()) {
        Ok(store) => {
            outcomes.num_whole += 1;
            assert!(read_only.is_ok(), "{place}: a reader sees what a writer sees");
            model.compare(&store.view().unwrap()).unwrap();
            let report = store.verify(pool).unwrap_or_else(|e| panic!("{place}: {e}"));
            assert!(report.unknown_files.is_empty(), "{place}: {:?}", report.unknown_files);
        }
        Err(Error::NotFound { .. }) => {
            outcomes.num_none += 1;
            assert!(matches!(read_only, Err(Error::NotFound { .. })), "{place}");
            let store = model.write(Arc::new(disk.clone()), path()).unwrap_or_else(|e| panic!("{place}: again: {e}"));
            model.compare(&store.view().unwrap()).unwrap();
        }
        Err(error) => panic!("{place}: {error}"),
    }
}

fn num_calls(model: &Model) -> u64 {
    let disk = FaultStorage::default();
    drop(model.write(Arc::new(disk.clone()), path()).unwrap());
    disk.num_calls()
}

#[test]
fn a_crash_leaves_nothing_or_everything() {
    let pool = Pool::new(1).unwrap();
    for (name, model) in samples::all() {
        let mut outcomes = Outcomes::default();
        let start = || (FaultStorage::default(), ());
        let write = |disk: &FaultStorage, ()| model.write(Arc::new(disk.clone()), path()).is_ok();
        let num_calls = crash_every_call(num_disks(), start, write, |&is_answered, disk, place| {
            let before = outcomes.num_none;
            let place = format!("{name}: {place}");
            check_remains(&model, disk, &pool, &mut outcomes, &place);
            assert!(!is_answered || before == outcomes.num_none, "{place}: an answered database is gone");
        });
        assert!(outcomes.num_none > 0 && outcomes.num_whole >= num_disks(), "{name}: {outcomes:?}");
        println!(
            "crash_every_call[create+publish {name}]: {num_calls} calls, {} disks each: {outcomes:?}",
            num_disks()
        );
    }
}

#[test]
fn creation_over_leftovers_is_atomic_under_crashes() {
    let pool = Pool::new(1).unwrap();
    let model = samples::undirected();
    let mut outcomes = Outcomes::default();
    let mut num_calls = 0;
    for first in [3, 9, 14] {
        let remains = FaultStorage::new(FaultPlan::CrashAt(first));
        assert!(model.write(Arc::new(remains.clone()), path()).is_err());
        let remains = remains.after_crash(first);
        let start = || (remains.duplicate(), ());
        let write = |disk: &FaultStorage, ()| model.write(Arc::new(disk.clone()), path()).is_ok();
        num_calls += crash_every_call(num_disks(), start, write, |_, disk, place| {
            let place = format!("first crash at call {first}, then {place}");
            check_remains(&model, disk, &pool, &mut outcomes, &place);
        });
    }
    println!("crash_every_call[create over remains]: {num_calls} calls, {} disks each: {outcomes:?}", num_disks());
}

/// The manifest already has its name, and it is unknown whether the name is durable.
#[test]
fn removal_of_refused_database_is_atomic_under_crashes() {
    let pool = Pool::new(1).unwrap();
    let model = samples::undirected();
    let failing = num_calls(&model) - 1;
    let (mut outcomes, mut crashing) = (Outcomes::default(), failing + 1);
    loop {
        let disk = FaultStorage::new(FaultPlan::FailThenCrash(failing, crashing));
        assert!(model.write(Arc::new(disk.clone()), path()).is_err());
        for seed in 0..4 * num_disks() {
            let place = format!("error at call {failing}, crash at {crashing}, seed {seed}");
            check_remains(&model, &disk.after_crash(seed), &pool, &mut outcomes, &place);
        }
        if disk.num_calls() <= crashing {
            break;
        }
        crashing += 1;
    }
    assert!(outcomes.num_none > 0 && outcomes.num_whole > 0 && crashing > failing + 5, "{crashing}: {outcomes:?}");
}

#[test]
fn an_error_leaves_nothing_behind() {
    let pool = Pool::new(1).unwrap();
    for (name, model) in samples::all() {
        let num_calls = num_calls(&model);
        let mut outcomes = Outcomes::default();
        let mut num_clean = 0;
        for kind in [ErrorKind::StorageFull, ErrorKind::Other] {
            for at in 0..num_calls {
                let disk = FaultStorage::new(FaultPlan::FailAt(at, kind));
                let answer = model.write(Arc::new(disk.clone()), path()).map(drop);
                disk.set_plan(FaultPlan::Never);
                let place = format!("{name}: {kind} at call {at}");
                if let Err(error) = &answer {
                    assert!(error.to_string().contains("cannot"), "{place}: {error}");
                    let is_gone = Store::open_read_only(Arc::new(disk.clone()), path()).is_err();
                    assert!(is_gone, "{place}: a database that was refused is there");
                    num_clean += u64::from(!anden_base::storage::Storage::exists(&disk, path()).unwrap());
                }
                check_remains(&model, &disk, &pool, &mut outcomes, &place);
            }
        }
        // Only errors while the lock is taken or files are removed may leave a directory.
        assert!(num_clean + outcomes.num_whole + 4 >= 2 * num_calls, "{name}: {num_clean} clean, {outcomes:?}");
        println!(
            "error_every_call[create+publish {name}]: {num_calls} calls, 2 errors each: {num_clean} clean, {outcomes:?}"
        );
    }
}
