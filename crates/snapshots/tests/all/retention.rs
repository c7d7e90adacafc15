//! Retention by days beside a clock that jumps.

use std::path::Path;
use std::sync::Arc;

use anden_snapshots::{Error, GraphOptions, KeyScheme, Retention, SnapshotInfo, Store};
use anden_testkit::{FaultStorage, Random};

use crate::model;
use crate::model::past::{Content, Past};

const DAY: u64 = 86_400;
const NUM_DAYS: u64 = 10;

/// The database with the clock at this day; snapshot 1 was made on day 0.
fn open_on(disk: &FaultStorage, day: u64) -> Store {
    let store = Store::open(Arc::new(disk.clone()), Path::new("db")).unwrap();
    store.with_unix_time(model::IDENTITY.unix_time.map(|begin| begin + day * DAY))
}

fn append_on(disk: &FaultStorage, past: &mut Past, day: u64) -> SnapshotInfo {
    let mut next = past.newest.clone();
    next.evolve_all(&mut Random::new(day));
    let info = next.changes_from(&past.newest).with(|changes| open_on(disk, day).append(changes, None)).unwrap();
    past.append(next, None);
    info
}

/// A snapshot on each of ten days.
fn database() -> (FaultStorage, Past) {
    let mut content = Content::new(GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() }, 24);
    (0..50_u32).for_each(|i| content.add_edge(i * i % 23, i * 7 % 24, i));
    let disk = FaultStorage::default();
    drop(content.write(Arc::new(disk.clone()), Path::new("db"), None).unwrap());
    let mut past = Past::new(content, None);
    (1..NUM_DAYS).for_each(|day| drop(append_on(&disk, &mut past, day)));
    (disk, past)
}

fn numbers(store: &Store) -> Vec<u32> {
    store.snapshots().iter().map(|info| info.number).collect()
}

#[test]
fn rule_that_drops_most_is_refused_with_dates() {
    let (disk, past) = database();
    let store = open_on(&disk, 10);
    let error = store.retain(Retention::Days(3)).unwrap_err();
    assert!(matches!(error, Error::DropsMost { days: 3, num_dropped: 7, num_snapshots: 10, .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "cannot retain days:3: that drops 7 of 10 snapshots, created 2023-11-14 to 2023-11-20, and the clock says \
         2023-11-24; correct the clock, or insist by --force (force=True)"
    );
    assert_eq!(store.retention(), Retention::All);
    past.compare(&store).unwrap();
    // Half of the snapshots may go.
    let half = open_on(&disk.duplicate(), 10);
    assert_eq!(half.retain(Retention::Days(5)).unwrap(), [1, 2, 3, 4, 5]);
    assert_eq!(store.retain_by_force(Retention::Days(3)).unwrap(), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!((numbers(&store), store.retention()), (vec![8, 9, 10], Retention::Days(3)));
}

#[test]
fn other_rules_do_not_follow_the_clock() {
    let (disk, _) = database();
    let store = open_on(&disk, 4_000);
    assert_eq!(store.retain(Retention::Last(2)).unwrap().len(), 8);
    assert_eq!(store.retain(Retention::Named).unwrap(), [9]);
    assert_eq!(store.held_back_snapshots(), Vec::<u32>::new());
}

#[test]
fn jump_of_the_clock_keeps_the_history() {
    let (disk, mut past) = database();
    assert_eq!(open_on(&disk, 10).retain(Retention::Days(30)).unwrap(), Vec::<u32>::new());
    // The clock jumps by a year, and a snapshot is made.
    let number = append_on(&disk, &mut past, 400).number;
    let store = open_on(&disk, 400);
    assert_eq!(numbers(&store), (1..=number).collect::<Vec<_>>());
    past.compare(&store).unwrap();
    assert_eq!(store.held_back_snapshots(), (1..number).collect::<Vec<_>>());
    drop(store);
    // The clock is right again: the rule holds nothing back, and works as before.
    assert_eq!(open_on(&disk, 11).held_back_snapshots(), Vec::<u32>::new());
    append_on(&disk, &mut past, 11);
    past.compare(&open_on(&disk, 11)).unwrap();
    append_on(&disk, &mut past, 33);
    past.forget(&[1, 2, 3]);
    past.compare(&open_on(&disk, 33)).unwrap();
}

#[test]
fn held_back_snapshots_go_by_force_or_once_few() {
    let (disk, mut past) = database();
    open_on(&disk, 10).retain(Retention::Days(30)).unwrap();
    append_on(&disk, &mut past, 400);
    let forced = open_on(&disk.duplicate(), 400);
    let insisted = forced.retain(Retention::Days(30)).unwrap_err();
    assert!(matches!(insisted, Error::DropsMost { num_dropped: 10, num_snapshots: 11, .. }), "{insisted}");
    assert_eq!(forced.retain_by_force(Retention::Days(30)).unwrap(), (1..=10).collect::<Vec<_>>());
    assert_eq!(numbers(&forced), [11]);
    // Snapshots go on. Once the old ones are no more than half, they go by themselves.
    for number in 12..=19 {
        append_on(&disk, &mut past, 400);
        assert_eq!(numbers(&open_on(&disk, 400)).len(), number, "snapshot {number}");
    }
    append_on(&disk, &mut past, 400);
    assert_eq!(numbers(&open_on(&disk, 400)), (11..=20).collect::<Vec<_>>());
}
