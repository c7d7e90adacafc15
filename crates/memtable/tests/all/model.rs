//! Random batches against a model of sorted maps. Versions are pinned at random and compared after many more batches.
//! The rules of nodes are checked after each batch.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_memtable::{
    Addition, AdjacencyTable, AppliedArcs, EntryUpdate, EntryValue, Lists, Options, Removal, Space, Terrace, Version,
};
use anden_testkit::Random;

type Model<W> = BTreeMap<VertexId, BTreeMap<VertexId, W>>;

fn list<W: EntryValue>(lists: &Lists<'_, W>, vertex: VertexId) -> Vec<(VertexId, W)> {
    let mut all = Vec::new();
    let _ = lists.for_each_fragment(vertex, |targets, values| {
        all.extend(targets.iter().copied().zip(values.iter().copied()));
        ControlFlow::Continue(())
    });
    all
}

fn compare<W: EntryValue + PartialEq>(
    version: &Version<W>,
    adjacency_table: AdjacencyTable,
    model: &Model<W>,
    bound: u32,
    what: &str,
) {
    let lists = version.lists(adjacency_table);
    assert_eq!(lists.num_arcs(), model.values().map(|list| list.len() as u64).sum::<u64>(), "{what}");
    let none = BTreeMap::new();
    for vertex in 0..bound {
        let expected = model.get(&vertex).unwrap_or(&none);
        assert_eq!(lists.degree(vertex), expected.len(), "{what}, vertex {vertex}");
        let found = list(&lists, vertex);
        assert!(found.iter().map(|(t, w)| (t, w)).eq(expected), "{what}, vertex {vertex}");
        for target in [0, vertex, bound / 2, bound - 1].into_iter().chain(expected.keys().step_by(97).copied()) {
            assert_eq!(lists.get(vertex, target), expected.get(&target), "{what}, edge {vertex} -> {target}");
        }
    }
}

fn change_model<W: EntryValue + PartialEq>(model: &mut Model<W>, changes: &[EntryUpdate<W>]) -> AppliedArcs {
    let before = model.clone();
    for change in changes {
        let list = model.entry(change.source).or_default();
        match change.addition {
            Some(value) => list.insert(change.target, value),
            None => list.remove(&change.target),
        };
    }
    let mut applied = AppliedArcs::default();
    let none = BTreeMap::new();
    for (source, list) in model.iter() {
        let old = before.get(source).unwrap_or(&none);
        applied.num_removed += old.keys().filter(|target| !list.contains_key(target)).count() as u64;
        for (target, value) in list {
            match old.get(target) {
                None => applied.num_added += 1,
                Some(old) => applied.num_replaced += u64::from(old != value),
            }
        }
    }
    applied
}

/// A batch of `len` changes that mostly add (`grow`) or mostly remove, with a few sources of many changes.
fn batch<W: EntryValue>(
    random: &mut Random,
    (bound, len, grow): (u32, usize, bool),
    value: &impl Fn(u32) -> W,
) -> Vec<EntryUpdate<W>> {
    let share = if grow { 9 } else { 1 };
    (0..len)
        .map(|_| {
            let source = if random.below(3) == 0 { random.below(3) * (bound / 3) } else { random.below(bound) };
            let addition = (random.below(10) < share).then(|| value(random.below(3)));
            EntryUpdate { source, target: random.below(bound), addition }
        })
        .collect()
}

struct Setting {
    options: Options,
    bound: u32,
    num_batches: usize,
    max_len: u32,
    threads: usize,
}

fn run<W: EntryValue + PartialEq>(setting: &Setting, seed: u64, value: impl Fn(u32) -> W) {
    println!("seed {seed}, {} vertices, {:?}, {:?}", setting.bound, setting.options, W::TYPE);
    let mut random = Random::new(seed);
    let pool = Pool::new(setting.threads).unwrap();
    let mut terrace = Terrace::<W>::new(&setting.options).unwrap();
    terrace.grow(setting.bound as usize).unwrap();
    let reader = terrace.reader();
    let adjacency_tables = [AdjacencyTable::Out, AdjacencyTable::InRemoved];
    let mut models = [Model::<W>::new(), Model::<W>::new()];
    let mut space = Space::default();
    let mut pinned: Vec<(Version<W>, [Model<W>; 2])> = Vec::new();
    for i in 0..setting.num_batches {
        let grow = i % 8 < 5;
        for (adjacency_table, model) in adjacency_tables.into_iter().zip(&mut models) {
            if adjacency_table == AdjacencyTable::InRemoved && i % 3 != 0 {
                continue;
            }
            let len = 1 + random.below([10, setting.max_len.min(300), setting.max_len][i % 3]) as usize;
            let changes = batch(&mut random, (setting.bound, len, grow), &value);
            let applied = terrace.apply(&pool, adjacency_table, &changes, &mut space).unwrap();
            let expected = change_model(model, &changes);
            let counts = |a: &AppliedArcs| (a.num_added, a.num_removed, a.num_replaced);
            assert_eq!(counts(&applied), counts(&expected), "batch {i}");
        }
        if i % 5 != 4 {
            terrace.publish();
            let version = reader.pin();
            version.verify().unwrap_or_else(|what| panic!("batch {i}: {what}"));
            if random.below(4) == 0 {
                pinned.push((version.clone(), models.clone()));
            }
            drop(version);
            // Groups without changes are versions too.
            (0..random.below(12).saturating_sub(8)).for_each(|_| _ = terrace.publish());
        }
        while pinned.len() > 5 || !pinned.is_empty() && random.below(6) == 0 {
            let (version, models) = pinned.swap_remove(random.below(pinned.len() as u32) as usize);
            version.verify().unwrap_or_else(|what| panic!("epoch {}, batch {i}: {what}", version.epoch()));
            for (adjacency_table, model) in adjacency_tables.into_iter().zip(&models) {
                compare(
                    &version,
                    adjacency_table,
                    model,
                    setting.bound,
                    &format!("epoch {} after batch {i}", version.epoch()),
                );
            }
        }
    }
    terrace.publish();
    compare(&reader.pin(), AdjacencyTable::Out, &models[0], setting.bound, "at the end");
    for (version, models) in pinned.drain(..) {
        compare(&version, AdjacencyTable::Out, &models[0], setting.bound, "pinned at the end");
    }
    terrace.collect();
    let memory = terrace.memory();
    assert_eq!(memory.live_bytes, reader.pin().verify().unwrap(), "what is live is what the newest version reaches");
    assert_eq!((memory.num_kept_nodes, memory.num_pinned_versions), (0, 0));
    for (adjacency_table, model) in adjacency_tables.into_iter().zip(&models) {
        let all: Vec<EntryUpdate<W>> = model
            .iter()
            .flat_map(|(&source, list)| list.keys().map(move |&target| EntryUpdate { source, target, addition: None }))
            .collect();
        terrace.apply(&pool, adjacency_table, &all, &mut space).unwrap();
    }
    terrace.publish();
    terrace.collect();
    assert_eq!(terrace.memory().live_bytes, 0, "without edges there are no nodes");
}

#[test]
fn random_batches_agree_with_the_model() {
    let setting = |in_place, packed, bound, num_batches, max_len, threads| Setting {
        options: Options { in_place, packed, ..Options::default() },
        bound,
        num_batches,
        max_len,
        threads,
    };
    run(&setting(13, 1 << 10, 300, 120, 4000, 1), 1, |_| ());
    run(&setting(13, 1 << 8, 40_000, 40, 30_000, 3), 2, |_| ());
    run(&setting(13, 1 << 12, 9000, 40, 20_000, 2), 3, |_| ());
    run(&setting(29, 1 << 9, 3000, 60, 9000, 2), 4, f64::from);
    run(&setting(2, 4, 2000, 60, 9000, 2), 5, |w| w);
    run(&setting(0, 0, 2000, 60, 9000, 2), 6, i64::from);
    run(&setting(5, 1 << 12, 2000, 60, 9000, 2), 7, |w| w as f32);
}

/// Lists that leave their place early, few enough for `make miri`.
#[test]
fn small_batches_agree_with_the_model() {
    let setting = |in_place, packed, threads| Setting {
        options: Options { in_place, packed, ..Options::default() },
        bound: 16,
        num_batches: 9,
        max_len: 40,
        threads,
    };
    run(&setting(2, 4, 1), 21, |_| ());
    run(&setting(0, 0, 2), 22, |w| w);
}

/// A list that is long enough for two levels of inner nodes grows and shrinks, by batches for one worker and by
/// shared ones.
fn grow_and_shrink_a_hub<W: EntryValue + PartialEq>(threads: usize, seed: u64, value: impl Fn(u32) -> W) {
    println!("seed {seed}, {threads} threads, {:?}", W::TYPE);
    let pool = Pool::new(threads).unwrap();
    let bound = 200_000;
    let mut random = Random::new(seed);
    let mut terrace = Terrace::<W>::new(&Options::default()).unwrap();
    terrace.grow(bound as usize).unwrap();
    let mut space = Space::default();
    let mut model = Model::new();
    let mut pinned = None;
    for round in 0..24 {
        let len = [20_000, 100_000, 80_000][round % 3];
        let (start, span) = (random.below(bound), [bound / 4, bound, bound / 8][round / 2 % 3]);
        let share_of_additions = if round < 14 { 9 } else { random.below(3) };
        let mut changes: Vec<_> = (0..len)
            .map(|_| {
                let source = if random.below(16) > 0 { 77 } else { random.below(100) };
                let addition = (random.below(10) < share_of_additions).then(|| value(random.below(9)));
                EntryUpdate { source, target: (start + random.below(span)) % bound, addition }
            })
            .collect();
        if round % 6 == 5 {
            // Only a few entries of a stretch remain, too few for a leaf.
            let (start, end) = (bound / 3, bound / 3 * 2);
            let gone = (start..end).filter(|target| target % 997 > 0);
            changes.extend(gone.map(|target| EntryUpdate { source: 77, target, addition: None }));
        }
        let applied = terrace.apply(&pool, AdjacencyTable::Out, &changes, &mut space).unwrap();
        let expected = change_model(&mut model, &changes);
        let counts = |a: &AppliedArcs| (a.num_added, a.num_removed, a.num_replaced);
        assert_eq!(counts(&applied), counts(&expected), "round {round}");
        terrace.publish();
        let version = terrace.version();
        version.verify().unwrap_or_else(|what| panic!("round {round}: {what}"));
        compare(&version, AdjacencyTable::Out, &model, 100, &format!("round {round}"));
        if round % 4 == 0
            && let Some((version, model)) = pinned.replace((version, model.clone()))
        {
            compare(&version, AdjacencyTable::Out, &model, 100, &format!("pinned before round {round}"));
        }
    }
    drop(pinned);
    let rest: Vec<_> = model[&77].keys().map(|&target| Removal { source: 77, target }).collect();
    terrace.apply(&pool, AdjacencyTable::Out, &rest[1..], &mut Space::default()).unwrap();
    terrace.publish();
    terrace.collect();
    let version = terrace.version();
    assert_eq!(terrace.memory().live_bytes, version.verify().unwrap(), "what is live is what the version reaches");
    assert_eq!(version.lists(AdjacencyTable::Out).degree(77), 1);
}

#[test]
fn a_hub_grows_and_shrinks() {
    grow_and_shrink_a_hub(2, 11, f64::from);
    grow_and_shrink_a_hub(3, 12, |_| ());
    grow_and_shrink_a_hub(1, 13, |w| w);
}

#[test]
fn the_last_change_of_an_edge_counts() {
    let pool = Pool::new(1).unwrap();
    let mut terrace = Terrace::<u32>::new(&Options::default()).unwrap();
    terrace.grow(5).unwrap();
    let update = |target, addition| EntryUpdate { source: 1, target, addition };
    let changes = [update(2, Some(5)), update(3, Some(1)), update(2, None), update(3, Some(8)), update(4, None)];
    let mut space = Space::default();
    let applied = terrace.apply(&pool, AdjacencyTable::Out, &changes, &mut space).unwrap();
    assert_eq!((applied.num_added, applied.num_removed, applied.num_replaced), (1, 0, 0));
    let again = terrace.apply(&pool, AdjacencyTable::Out, &[update(3, Some(8))], &mut space).unwrap();
    assert_eq!(again, AppliedArcs::default());
    terrace.publish();
    assert_eq!(list(&terrace.version().lists(AdjacencyTable::Out), 1), [(3, 8)]);
}

#[test]
fn a_change_beyond_the_bound_refuses_its_batch() {
    let pool = Pool::new(1).unwrap();
    let mut terrace = Terrace::<()>::new(&Options::default()).unwrap();
    terrace.grow(5).unwrap();
    for changes in [[(0, 1), (5, 1)], [(0, 1), (1, 5)]] {
        let changes = changes.map(|(source, target)| Addition { source, target });
        let error = terrace.apply(&pool, AdjacencyTable::Out, &changes, &mut Space::default()).unwrap_err();
        assert_eq!(error.to_string(), "vertex 5 of a change is not below 5");
    }
    terrace.publish();
    assert_eq!(terrace.version().lists(AdjacencyTable::Out).num_arcs(), 0);
    terrace.grow(6).unwrap();
    let last = Addition { source: 5, target: 5 };
    terrace.apply(&pool, AdjacencyTable::Out, &[last], &mut Space::default()).unwrap();
    terrace.publish();
    assert_eq!(terrace.version().lists(AdjacencyTable::Out).get(5, 5), Some(&()));
    assert!(Terrace::<()>::new(&Options { in_place: 30, ..Options::default() }).is_err());
    assert!(terrace.grow(usize::MAX).is_err());
}
