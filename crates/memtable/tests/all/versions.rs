//! The cost of pinned versions for the writer, and the return of memory after the last pin. Readers on other threads
//! see whole versions while the writer continues.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use anden_base::parallel::Pool;
use anden_graph::{Direction, Graph};
use anden_memtable::{Addition, AdjacencyTable, EntryUpdate, Options, Removal, Space, Terrace};
use anden_testkit::Random;

/// Applies `changes` and publishes them.
fn commit(terrace: &mut Terrace, pool: &Pool, changes: &[EntryUpdate]) {
    terrace.apply(pool, AdjacencyTable::Out, changes, &mut Space::default()).unwrap();
    terrace.publish();
}

fn random_updates(random: &mut Random, len: usize, bound: u32) -> Vec<EntryUpdate> {
    let update = |random: &mut Random| EntryUpdate {
        source: random.below(bound),
        target: random.below(bound),
        addition: (random.below(2) == 0).then_some(()),
    };
    (0..len).map(|_| update(random)).collect()
}

/// A pinned version keeps its nodes. Nodes that are made and replaced later are freed as if it were not pinned.
#[test]
fn pinned_version_keeps_only_reachable_nodes() {
    const BOUND: u32 = 20_000;
    let pool = Pool::new(1).unwrap();
    let mut random = Random::new(0x91);
    let mut terrace = Terrace::<()>::new(&Options::default()).unwrap();
    terrace.grow(BOUND as usize).unwrap();
    let base = random_updates(&mut random, 200_000, BOUND);
    commit(&mut terrace, &pool, &base);
    // Makes directories, as for any version that is pinned for long.
    terrace.collect();
    let version = terrace.version();
    let pinned_bytes = version.verify().unwrap();
    for round in 0..60 {
        let changes = random_updates(&mut random, 5000, BOUND);
        commit(&mut terrace, &pool, &changes);
        terrace.collect();
        let newest_bytes = terrace.version().verify().unwrap();
        let live_bytes = terrace.memory().live_bytes;
        assert!(live_bytes <= pinned_bytes + newest_bytes, "{live_bytes} bytes are live after round {round}");
        if round > 30 {
            // By now nearly no node is shared, so the bound is also tight from below, to a few per cent.
            assert!(live_bytes * 10 > (pinned_bytes + newest_bytes) * 8, "round {round}");
        }
    }
    assert_eq!(version.verify().unwrap(), pinned_bytes);
    let touched = terrace.memory().touched_bytes;
    drop(version);
    terrace.collect();
    assert_eq!(terrace.memory().live_bytes, terrace.version().verify().unwrap());
    for _ in 0..30 {
        let changes = random_updates(&mut random, 5000, BOUND);
        commit(&mut terrace, &pool, &changes);
    }
    let grown = terrace.memory().touched_bytes - touched;
    assert!(grown * 3 < touched, "what came back serves the groups that follow: {grown} bytes more than {touched}");
}

/// One edge copies a page and a leaf, and makes directories for a pinned version before the newest.
#[test]
fn one_edge_copies_eight_kilobytes_at_most() {
    let pool = Pool::new(1).unwrap();
    let mut terrace = Terrace::<()>::new(&Options::default()).unwrap();
    terrace.grow(1 << 22).unwrap();
    let mut changes: Vec<EntryUpdate> =
        (0..300_000).map(|i| EntryUpdate { source: 1_000_000, target: i * 13, addition: Some(()) }).collect();
    for source in [5, 1 << 21] {
        changes.extend((0..1000).map(|i| EntryUpdate { source, target: i * 7, addition: Some(()) }));
    }
    commit(&mut terrace, &pool, &changes);
    for source in [5, 6, 1 << 21, 1_000_000] {
        for target in [3, 400, 800, 6001, 300_001, 3_000_000, 3_999_999] {
            let version = terrace.version();
            let before = terrace.memory().live_bytes;
            commit(&mut terrace, &pool, &[EntryUpdate { source, target, addition: Some(()) }]);
            let copied = terrace.memory().live_bytes - before;
            assert!(copied <= 8 << 10, "{copied} bytes for {source} -> {target}");
            drop(version);
            terrace.collect();
        }
    }
}

#[test]
fn readers_see_whole_versions_while_the_writer_goes_on() {
    // Miri finds races with few groups.
    const BOUND: u32 = if cfg!(miri) { 40 } else { 3000 };
    let pool = Pool::new(2).unwrap();
    let mut terrace = Terrace::<()>::new(&Options::default()).unwrap();
    terrace.grow(BOUND as usize).unwrap();
    // Readers may be faster than the first group, and read lists of all vertices.
    terrace.publish();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (reader, is_over) = (terrace.reader(), &is_over);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                let mut held = reader.pin();
                let mut num_pinned = 0;
                while !is_over.load(Ordering::Relaxed) || num_pinned < 10 {
                    let version = reader.pin();
                    assert!(version.epoch() >= held.epoch());
                    // Each group adds or removes equal targets for all of its sources.
                    let sum = |version: &anden_memtable::Version<()>| {
                        let mut arcs = 0;
                        for vertex in 0..BOUND {
                            let _ = version.for_each_fragment(Direction::Out, vertex, |list| {
                                assert!(list.is_sorted() && list.iter().all(|&target| target < BOUND));
                                arcs += list.len() as u64;
                                ControlFlow::Continue(())
                            });
                        }
                        arcs
                    };
                    assert_eq!(sum(&version), version.num_arcs());
                    assert_eq!(sum(&held), held.num_arcs());
                    if random.below(8) == 0 {
                        held = version.clone();
                    }
                    num_pinned += 1;
                }
            });
        }
        let mut random = Random::new(99);
        for i in 0..anden_testkit::scaled(1500) as usize {
            let len = [1, 20, BOUND as usize][i % 3];
            let changes = random_updates(&mut random, len, BOUND);
            commit(&mut terrace, &pool, &changes);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    terrace.collect();
    assert_eq!(terrace.memory().live_bytes, terrace.version().verify().unwrap());
}

#[test]
fn versions_outlive_the_writer() {
    let pool = Pool::new(1).unwrap();
    let mut terrace = Terrace::<()>::new(&Options::default()).unwrap();
    terrace.grow(100).unwrap();
    let additions: Vec<_> = (0..100).map(|target| Addition { source: 9, target }).collect();
    terrace.apply(&pool, AdjacencyTable::Out, &additions, &mut Space::default()).unwrap();
    terrace.publish();
    let (reader, version) = (terrace.reader(), terrace.version());
    terrace.apply(&pool, AdjacencyTable::Out, &[Removal { source: 9, target: 4 }], &mut Space::default()).unwrap();
    drop(terrace);
    assert_eq!(
        (version.degree(Direction::Out, 9), reader.pin().degree(Direction::Out, 9)),
        (100, 100),
        "what was not published is not seen"
    );
}
