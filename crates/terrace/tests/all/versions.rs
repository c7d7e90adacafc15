//! What a pinned version costs the writer, that memory comes back when the pin goes, and that readers on
//! other threads see whole versions while the writer goes on.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use anden_terrace::{Addition, Options, Plane, Removal, Space, Terrace, Update};
use base::parallel::Pool;
use graph::Graph;
use testkit::Random;

/// Applies `changes` and publishes them.
fn commit(terrace: &mut Terrace, pool: &Pool, changes: &[Update]) {
    terrace.apply(pool, Plane::Out, changes, &mut Space::default()).unwrap();
    terrace.publish();
}

fn random_updates(random: &mut Random, len: usize, bound: u32) -> Vec<Update> {
    let update = |random: &mut Random| Update {
        source: random.below(bound),
        target: random.below(bound),
        addition: (random.below(2) == 0).then_some(()),
    };
    (0..len).map(|_| update(random)).collect()
}

/// A reader that holds on to one version keeps the nodes of that version. However many groups follow,
/// what was made and replaced after it is freed as if nobody were there.
#[test]
fn a_pinned_version_keeps_what_it_reaches_and_no_more() {
    const BOUND: u32 = 20_000;
    let pool = Pool::new(1).unwrap();
    let mut random = Random::new(0x91);
    let mut terrace = Terrace::<()>::new(&Options::default()).unwrap();
    terrace.grow(BOUND as usize).unwrap();
    let base = random_updates(&mut random, 200_000, BOUND);
    commit(&mut terrace, &pool, &base);
    // With directories, as one that is held for long has.
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
            // By now nearly no node is shared, and the bound is met to a few per cent from below as well.
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

/// One edge copies a page and a leaf, and makes directories for who has the version before the newest.
#[test]
fn one_edge_copies_eight_kilobytes_at_most() {
    let pool = Pool::new(1).unwrap();
    let mut terrace = Terrace::<()>::new(&Options::default()).unwrap();
    terrace.grow(1 << 22).unwrap();
    let mut changes: Vec<Update> =
        (0..300_000).map(|i| Update { source: 1_000_000, target: i * 13, addition: Some(()) }).collect();
    for source in [5, 1 << 21] {
        changes.extend((0..1000).map(|i| Update { source, target: i * 7, addition: Some(()) }));
    }
    commit(&mut terrace, &pool, &changes);
    for source in [5, 6, 1 << 21, 1_000_000] {
        for target in [3, 400, 800, 6001, 300_001, 3_000_000, 3_999_999] {
            let version = terrace.version();
            let before = terrace.memory().live_bytes;
            commit(&mut terrace, &pool, &[Update { source, target, addition: Some(()) }]);
            let copied = terrace.memory().live_bytes - before;
            assert!(copied <= 8 << 10, "{copied} bytes for {source} -> {target}");
            drop(version);
            terrace.collect();
        }
    }
}

#[test]
fn readers_see_whole_versions_while_the_writer_goes_on() {
    const BOUND: u32 = 3000;
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
                    // Every group adds or removes the same targets to or from all of its sources.
                    let sum = |version: &anden_terrace::Version<()>| {
                        let mut arcs = 0;
                        for vertex in 0..BOUND {
                            let _ = version.for_each_out_fragment(vertex, |list| {
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
        for i in 0..1500 {
            let len = [1, 20, 3000][i % 3];
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
    terrace.apply(&pool, Plane::Out, &additions, &mut Space::default()).unwrap();
    terrace.publish();
    let (reader, version) = (terrace.reader(), terrace.version());
    terrace.apply(&pool, Plane::Out, &[Removal { source: 9, target: 4 }], &mut Space::default()).unwrap();
    drop(terrace);
    assert_eq!((version.out_degree(9), reader.pin().out_degree(9)), (100, 100), "what was not published is not seen");
}
