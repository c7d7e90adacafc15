//! Readers in other threads and processes while a writer appends, merges and drops. They see whole states, and files
//! that vanish meanwhile do not disturb them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_base::storage::{DiskStorage, Storage};
use anden_graph::{Direction, Graph};
use anden_snapshots::{Error, GraphOptions, MergeScope, Retention, Store};
use anden_testkit::Random;

use crate::model::past::{Content, Past};

/// Environment variable that makes a copy of this program a reader of this path.
const READ: &str = "ANDEN_READ_BESIDE";

const NUM_ROUNDS: u32 = 40;

fn disk() -> Arc<dyn Storage> {
    Arc::new(DiskStorage)
}

/// Every snapshot has the number of edges in its list entry, and a held view keeps its snapshot.
fn read_until_the_end(path: &Path) {
    let mut held = Vec::new();
    let mut num_states = 0;
    let store = Store::open_read_only(disk(), path).unwrap();
    loop {
        for info in store.snapshots() {
            // The snapshots in the list cannot be dropped from this handle's state.
            let view = store.snapshot(info.number).unwrap();
            let num_arcs: usize = (0..view.vertex_bound() as u32).map(|v| view.degree(Direction::Out, v)).sum();
            view.check().unwrap();
            assert_eq!((num_arcs as u64, view.num_edges()), (info.num_edges, info.num_edges));
            held.push((view, num_arcs));
        }
        if num_states % 8 == 0 {
            store.verify(&Pool::new(1).unwrap()).unwrap();
        }
        held.drain(..held.len().saturating_sub(50));
        let is_over = store.snapshots().iter().any(|info| info.name.as_deref() == Some("last"));
        if is_over {
            break;
        }
        num_states += u32::from(store.refresh().unwrap());
    }
    for (view, num_arcs) in held {
        assert_eq!((0..view.vertex_bound() as u32).map(|v| view.degree(Direction::Out, v)).sum::<usize>(), num_arcs);
    }
    println!("read {num_states} states");
}

fn reader(path: &Path) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command
        .args(["--exact", "beside_a_writer::readers_in_other_processes_see_whole_states", "--nocapture"])
        .env(READ, path);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
fn readers_in_other_processes_see_whole_states() {
    if let Some(path) = std::env::var_os(READ) {
        return read_until_the_end(&PathBuf::from(path));
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let random = &mut Random::new(3);
    let mut content = Content::new(GraphOptions::default(), 300);
    let store = content.write(disk(), &path, None).unwrap();
    let mut past = Past::new(content.clone(), None);
    let readers = [reader(&path), reader(&path)];
    let pool = Pool::new(1).unwrap();
    for round in 0..=NUM_ROUNDS {
        content.evolve(random);
        let name = (round == NUM_ROUNDS).then_some("last");
        content.changes_from(&past.newest).with(|changes| store.append(changes, name)).unwrap();
        past.append(content.clone(), name);
        if round == NUM_ROUNDS {
            break;
        }
        match round % 5 {
            1 => drop(store.merge(MergeScope::All, &pool, &Silent).unwrap()),
            2 => drop(store.merge(MergeScope::Newest(3), &pool, &Silent).unwrap()),
            3 => {
                past.forget(&store.retain(Retention::Last(4)).unwrap());
                store.retain(Retention::All).unwrap();
            }
            _ => {}
        }
    }
    past.compare(&store).unwrap();
    for reader in readers {
        let output = reader.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("read "), "{text}");
    }
}

#[test]
fn views_outlive_what_they_show() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let random = &mut Random::new(4);
    let mut content = Content::new(GraphOptions::default(), 1500);
    let store = content.write(disk(), &path, None).unwrap();
    let mut past = Past::new(content.clone(), None);
    for _ in 0..6 {
        content.evolve(random);
        content.changes_from(&past.newest).with(|changes| store.append(changes, None)).unwrap();
        past.append(content.clone(), None);
    }
    let views: Vec<_> = past.numbers().iter().map(|&number| store.snapshot(number).unwrap()).collect();
    let window = store.window(3, 5).unwrap();
    let num_edges = window.num_edges();
    let pool = Pool::new(1).unwrap();
    store.merge(MergeScope::All, &pool, &Silent).unwrap();
    store.drop_snapshots(&[1, 2, 3, 4, 5, 6], &Silent).unwrap();
    store.merge(MergeScope::All, &pool, &Silent).unwrap();
    for ((_, _, content), view) in past.snapshots.iter().zip(&views) {
        content.compare(view).unwrap();
    }
    drop(store);
    for ((_, _, content), view) in past.snapshots.iter().zip(views) {
        content.compare(&view).unwrap();
    }
    assert_eq!(window.num_edges(), num_edges);
    let names = DiskStorage.list(&path).unwrap();
    assert_eq!(names.iter().filter(|name| name.starts_with("base-")).count(), 4, "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("delta-")), "{names:?}");
}

#[test]
fn threads_read_while_one_writes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let random = &mut Random::new(8);
    let mut content = Content::new(GraphOptions::default(), 1100);
    let store = content.write(disk(), &path, None).unwrap();
    let mut past = Past::new(content.clone(), None);
    let is_over = AtomicBool::new(false);
    let read = || {
        let mut num_views = 0;
        while !is_over.load(Ordering::Relaxed) || num_views == 0 {
            for info in store.snapshots() {
                // The snapshot may be dropped after the list was read.
                let view = match store.snapshot(info.number) {
                    Err(Error::NoSnapshot { .. }) => continue,
                    view => view.unwrap(),
                };
                let num_arcs: usize = (0..view.vertex_bound() as u32).map(|v| view.degree(Direction::Out, v)).sum();
                view.check().unwrap();
                assert_eq!(num_arcs as u64, info.num_edges);
                num_views += 1;
            }
        }
        num_views
    };
    let num_views = std::thread::scope(|scope| {
        let readers = [scope.spawn(read), scope.spawn(read)];
        let pool = Pool::new(1).unwrap();
        for round in 0..30_u32 {
            content.evolve(random);
            content.changes_from(&past.newest).with(|changes| store.append(changes, None)).unwrap();
            past.append(content.clone(), None);
            match round % 4 {
                1 => drop(store.merge(MergeScope::All, &pool, &Silent).unwrap()),
                2 => drop(store.merge(MergeScope::Newest(2), &pool, &Silent).unwrap()),
                3 => {
                    let dropped = [past.numbers()[0], past.numbers()[2]];
                    store.drop_snapshots(&dropped, &Silent).unwrap();
                    past.forget(&dropped);
                }
                _ => {}
            }
        }
        is_over.store(true, Ordering::Relaxed);
        readers.map(|reader| reader.join().unwrap())
    });
    past.compare(&store).unwrap();
    println!("{num_views:?} views read beside 30 appends");
}

/// Regression: a manifest that another thread published between two reads counted as damage.
#[test]
fn a_writing_handle_is_verified_while_threads_write() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let random = &mut Random::new(12);
    let mut content = Content::new(GraphOptions::default(), 60);
    let store = content.write(disk(), &path, None).unwrap();
    store.retain(Retention::Last(2)).unwrap();
    let is_over = AtomicBool::new(false);
    let verify = || {
        let (pool, mut num_verified) = (Pool::new(1).unwrap(), 0);
        while !is_over.load(Ordering::Relaxed) || num_verified == 0 {
            store.verify(&pool).unwrap();
            num_verified += 1;
        }
        num_verified
    };
    let num_verified = std::thread::scope(|scope| {
        let verifier = scope.spawn(verify);
        let pool = Pool::new(1).unwrap();
        for round in 0..200_u32 {
            let before = content.clone();
            content.evolve(random);
            content.changes_from(&before).with(|changes| store.append(changes, None)).unwrap();
            if round % 4 == 3 {
                store.merge(MergeScope::All, &pool, &Silent).unwrap();
            }
        }
        is_over.store(true, Ordering::Relaxed);
        verifier.join().unwrap()
    });
    println!("verified {num_verified} times beside 200 appends");
}
