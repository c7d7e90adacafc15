//! Batches over a base. Base and adjacency tables together equal the model, and the adjacency tables hold differences
//! only.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_graph::{Adjacency, Csr, CsrBuilder, GraphKind, Weight};
use anden_memtable::{
    Addition, AdjacencyTable, Base, EntryUpdate, EntryValue, Options, Removal, Search, Space, Terrace,
    TransposedChanges, Version, differences,
};
use anden_testkit::Random;

type Edges<W> = BTreeMap<(VertexId, VertexId), W>;

const BOUND: u32 = 400;

fn base_of<W: Weight>(edges: &Edges<W>) -> Csr {
    let mut builder = CsrBuilder::new(GraphKind::Directed, BOUND as usize - 50);
    edges.iter().for_each(|(&(source, target), &weight)| builder.edge(source, target, weight));
    builder.build_weighted().unwrap()
}

fn adjacency_table<W: EntryValue>(version: &Version<W>, adjacency_table: AdjacencyTable) -> Edges<W> {
    let mut all = Edges::new();
    for vertex in 0..BOUND {
        let _ = version.lists(adjacency_table).for_each_fragment(vertex, |targets, values| {
            all.extend(targets.iter().zip(values).map(|(&target, &value)| ((vertex, target), value)));
            ControlFlow::Continue(())
        });
    }
    all
}

fn run<W: EntryValue + PartialEq>(seed: u64, bases: &Edges<W>, base: &Adjacency, value: impl Fn(u32) -> W)
where
    Adjacency: Base<W>,
{
    println!("seed {seed}, {:?}", W::TYPE);
    let mut random = Random::new(seed);
    let pool = Pool::new(2).unwrap();
    let mut terrace = Terrace::<W>::new(&Options::default()).unwrap();
    terrace.grow(BOUND as usize).unwrap();
    let (mut space, mut transpose) = (Space::default(), TransposedChanges::default());
    let mut model = bases.clone();
    for i in 0..60 {
        // The longest batch is shared among workers, and so are the changes of its most frequent list.
        let len = [3, 200, 6000, 200, 80_000][i % 5];
        let changes: Vec<_> = (0..len)
            .map(|_| {
                let source = if len == 80_000 && random.below(8) > 0 { 7 } else { random.below(BOUND) };
                let addition = (random.below(3) > 0).then(|| value(random.below(3)));
                EntryUpdate { source, target: random.below(BOUND), addition }
            })
            .collect();
        for change in &changes {
            match change.addition {
                Some(value) => model.insert((change.source, change.target), value),
                None => model.remove(&(change.source, change.target)),
            };
        }
        terrace.apply_directions_over(&pool, base, &changes, &mut space, &mut transpose).unwrap();
        terrace.publish();
        let version = terrace.version();
        version.verify().unwrap();
        let (added, removed) =
            (adjacency_table(&version, AdjacencyTable::Out), adjacency_table(&version, AdjacencyTable::OutRemoved));
        assert!(removed.iter().all(|(edge, value)| bases.get(edge) == Some(value)), "batch {i}");
        let mut whole = bases.clone();
        whole.retain(|edge, _| !removed.contains_key(edge));
        for (&edge, &value) in &added {
            assert_eq!(whole.insert(edge, value), None, "batch {i}: fragments do not overlap");
            assert!(bases.get(&edge) != Some(&value), "batch {i}: what is as in the base is not live");
        }
        assert_eq!(whole, model, "batch {i}");
    }
}

/// The differences of a batch without a memtable equal the content of a new memtable.
#[test]
fn differences_are_those_of_a_new_container() {
    let (mut random, pool) = (Random::new(27), Pool::new(2).unwrap());
    let edges = random_edges(4, |w| w);
    let csr = base_of(&edges);
    for len in [0, 3, 200, 80_000] {
        let mut change = || EntryUpdate {
            source: random.below(BOUND),
            target: random.below(BOUND),
            addition: (random.below(3) > 0).then(|| random.below(3)),
        };
        let changes: Vec<EntryUpdate<u32>> = (0..len).map(|_| change()).collect();
        let mut terrace = Terrace::<u32>::new(&Options::default()).unwrap();
        terrace.grow(BOUND as usize).unwrap();
        let mut space = Space::default();
        terrace
            .apply_directions_over(&pool, csr.out_lists(), &changes, &mut space, &mut TransposedChanges::default())
            .unwrap();
        terrace.publish();
        let version = terrace.version();
        let parts = differences(&pool, csr.out_lists(), &changes, (BOUND as usize, false), &mut space).unwrap();
        let all = |direction: fn(&anden_memtable::Differences<u32>) -> &Vec<EntryUpdate<u32>>| -> Vec<_> {
            let changes = parts.iter().flat_map(|part| direction(part).iter());
            changes.map(|change| ((change.source, change.target), change.addition.unwrap())).collect()
        };
        assert!(adjacency_table(&version, AdjacencyTable::Out).into_iter().eq(all(|part| &part.added)), "{len}");
        assert!(
            adjacency_table(&version, AdjacencyTable::OutRemoved).into_iter().eq(all(|part| &part.removed)),
            "{len}"
        );
    }
}

fn random_edges<W>(seed: u64, value: impl Fn(u32) -> W) -> Edges<W> {
    let mut random = Random::new(seed);
    let bound = BOUND - 50;
    (0..9000).map(|_| ((random.below(bound), random.below(bound)), value(random.below(3)))).collect()
}

#[test]
fn base_and_planes_together_are_the_model() {
    let weighted = random_edges(1, f64::from);
    run(21, &weighted, base_of(&weighted).out_lists(), f64::from);
    let weighted = random_edges(2, |w| w);
    run(22, &weighted, base_of(&weighted).out_lists(), |w| w);
    let plain = random_edges(3, |_| ());
    let ones = plain.keys().map(|&edge| (edge, 1_u32)).collect();
    run(23, &plain, base_of(&ones).out_lists(), |_| ());
}

/// A base in which a pair may have several edges.
#[derive(Debug)]
struct Parallel(BTreeMap<(VertexId, VertexId), Vec<u64>>);

impl Base<u64> for Parallel {
    type Search<'a> = &'a Self;

    fn search(&self) -> &Self {
        self
    }
}

impl Search<u64> for &Parallel {
    fn find(&mut self, source: VertexId, target: VertexId) -> anden_base::Result<Option<u64>> {
        Ok(self.0.get(&(source, target)).and_then(|edges| edges.first().copied()))
    }

    fn find_all(&mut self, source: VertexId, target: VertexId, found: &mut dyn FnMut(u64)) -> anden_base::Result<()> {
        self.0.get(&(source, target)).into_iter().flatten().for_each(|&edge| found(edge));
        Ok(())
    }
}

/// Edges of an adjacency table, by pair in the order of the list.
fn pairs(version: &Version<u64>, adjacency_table: AdjacencyTable) -> BTreeMap<(VertexId, VertexId), Vec<u64>> {
    let mut all = BTreeMap::<_, Vec<u64>>::new();
    for vertex in 0..BOUND {
        let _ = version.lists(adjacency_table).for_each_fragment(vertex, |targets, values| {
            let edges = targets.iter().zip(values);
            edges.for_each(|(&target, &value)| all.entry((vertex, target)).or_default().push(value));
            ControlFlow::Continue(())
        });
    }
    all
}

/// Base and differences together equal the base after the changes.
fn check_differences(pool: &Pool, base: &Parallel, changes: &[EntryUpdate<u64>]) {
    let mut expected = base.0.clone();
    for change in changes {
        let edges = expected.entry((change.source, change.target)).or_default();
        match change.addition {
            Some(value) => edges.push(value),
            None => edges.clear(),
        }
    }
    expected.retain(|_, edges| !edges.is_empty());
    let mut whole = base.0.clone();
    let mut last = None;
    for part in differences(pool, base, changes, (BOUND as usize, true), &mut Space::default()).unwrap() {
        for gone in &part.removed {
            let edges = whole.get_mut(&(gone.source, gone.target)).unwrap();
            edges.remove(edges.iter().position(|&edge| Some(edge) == gone.addition).unwrap());
        }
        for new in &part.added {
            let pair = Some((new.source, new.target));
            assert!(last <= pair, "additions are sorted");
            last = pair;
            whole.entry((new.source, new.target)).or_default().push(new.addition.unwrap());
        }
    }
    whole.retain(|_, edges| !edges.is_empty());
    assert!(whole == expected);
}

/// A pair with thousands of edges fills several leaves, so a removal affects all of them.
#[test]
fn parallel_edges_are_those_of_a_model() {
    for (seed, in_place, packed) in [(41, 13, 1 << 10), (42, 0, 60), (43, 29, 3000)] {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let pool = Pool::new(2).unwrap();
        let options = Options { in_lists: true, multigraph: true, in_place, packed, ..Options::default() };
        let mut terrace = Terrace::<u64>::new(&options).unwrap();
        terrace.grow(BOUND as usize).unwrap();
        let (mut space, mut transpose) = (Space::default(), TransposedChanges::default());
        let mut next = 0;
        let mut new_edge = || {
            next += 1;
            next
        };
        let mut base = Parallel(BTreeMap::new());
        for _ in 0..500 {
            let pair = (random.below(9), random.below(9));
            base.0.entry(pair).or_default().push(new_edge());
        }
        let mut model = base.0.clone();
        for i in 0..40 {
            let len = [3, 200, 6_000, 90_000][i % 4];
            let targets = [4, 40, BOUND][i % 3];
            let changes: Vec<_> = (0..len)
                .map(|_| {
                    let source = [7, random.below(9), random.below(BOUND)][random.below(3) as usize];
                    let is_removed = random.below(if len > 1_000 { 2_000 } else { 8 }) == 0;
                    let addition = (!is_removed).then(&mut new_edge);
                    EntryUpdate { source, target: random.below(targets), addition }
                })
                .collect();
            for change in &changes {
                let edges = model.entry((change.source, change.target)).or_default();
                match change.addition {
                    Some(value) => edges.push(value),
                    None => edges.clear(),
                }
            }
            model.retain(|_, edges| !edges.is_empty());
            check_differences(&pool, &base, &changes);
            terrace.apply_directions_over(&pool, &base, &changes, &mut space, &mut transpose).unwrap();
            terrace.publish();
            let version = terrace.version();
            version.verify().unwrap();
            let (added, removed) = (pairs(&version, AdjacencyTable::Out), pairs(&version, AdjacencyTable::OutRemoved));
            let mut whole = base.0.clone();
            for (pair, edges) in &removed {
                assert_eq!(whole.remove(pair).as_ref(), Some(edges), "batch {i}: all edges of a pair are removed");
            }
            for (&pair, edges) in &added {
                whole.entry(pair).or_default().extend(edges);
                let mut listed = Vec::new();
                version.lists(AdjacencyTable::Out).for_each_parallel(pair.0, pair.1, |&value| listed.push(value));
                assert_eq!(&listed, edges, "batch {i}");
            }
            assert!(whole == model, "batch {i}");
            for (out_plane, in_plane) in [(added, AdjacencyTable::In), (removed, AdjacencyTable::InRemoved)] {
                let turned: BTreeMap<_, _> = out_plane.into_iter().map(|((u, v), edges)| ((v, u), edges)).collect();
                assert!(pairs(&version, in_plane) == turned, "batch {i}, {in_plane:?}");
            }
        }
        let mut longest: Vec<_> = model.values().map(Vec::len).collect();
        longest.sort_unstable();
        assert!(longest.last().is_some_and(|&len| len > 3_000), "{longest:?}");
    }
}

#[test]
fn a_batch_that_the_base_knows_leaves_nothing_live() {
    let pool = Pool::new(1).unwrap();
    let edges = random_edges(4, |_| 1_u32);
    let csr = base_of(&edges);
    let mut terrace = Terrace::<()>::new(&Options::default()).unwrap();
    terrace.grow(BOUND as usize).unwrap();
    let additions: Vec<_> = edges.keys().map(|&(source, target)| Addition { source, target }).collect();
    let removals: Vec<_> = edges.keys().map(|&(source, target)| Removal { source, target }).collect();
    let lists = csr.out_lists();
    let mut transpose = TransposedChanges::default();
    let mut add = |terrace: &mut Terrace| {
        terrace.apply_directions_over(&pool, lists, &additions, &mut Space::default(), &mut transpose).unwrap();
        terrace.publish();
    };
    let num_live = |terrace: &Terrace| {
        let version = terrace.version();
        [AdjacencyTable::Out, AdjacencyTable::OutRemoved]
            .map(|adjacency_table| version.lists(adjacency_table).num_arcs())
    };
    add(&mut terrace);
    assert_eq!(num_live(&terrace), [0, 0]);
    assert_eq!(terrace.memory().live_bytes, 0);
    terrace
        .apply_directions_over(&pool, lists, &removals, &mut Space::default(), &mut TransposedChanges::default())
        .unwrap();
    terrace.publish();
    assert_eq!(num_live(&terrace), [0, edges.len() as u64]);
    add(&mut terrace);
    assert_eq!(num_live(&terrace), [0, 0]);
    terrace.collect();
    assert_eq!(terrace.memory().live_bytes, 0);
}

#[test]
fn in_lists_hold_the_same_the_other_way_round() {
    let seed = 31;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let edges = random_edges(5, f64::from);
    let csr = base_of(&edges);
    let empty = base_of(&Edges::<f64>::new());
    for (base, bases) in [(csr.out_lists(), edges), (empty.out_lists(), Edges::new())] {
        let pool = Pool::new(2).unwrap();
        let mut terrace = Terrace::<f64>::new(&Options { in_lists: true, ..Options::default() }).unwrap();
        terrace.grow(BOUND as usize).unwrap();
        let (mut space, mut transpose) = (Space::default(), TransposedChanges::default());
        let mut model = bases.clone();
        for i in 0..30 {
            let len = [3, 200, 5_000][i % 3];
            let changes: Vec<_> = (0..len)
                .map(|_| EntryUpdate {
                    source: random.below(BOUND),
                    target: random.below(BOUND),
                    addition: (random.below(3) > 0).then(|| f64::from(random.below(3))),
                })
                .collect();
            for change in &changes {
                match change.addition {
                    Some(value) => model.insert((change.source, change.target), value),
                    None => model.remove(&(change.source, change.target)),
                };
            }
            terrace.apply_directions_over(&pool, base, &changes, &mut space, &mut transpose).unwrap();
            terrace.publish();
            let version = terrace.version();
            version.verify().unwrap();
            let (added, removed) =
                (adjacency_table(&version, AdjacencyTable::Out), adjacency_table(&version, AdjacencyTable::OutRemoved));
            let mut whole = bases.clone();
            whole.retain(|edge, _| !removed.contains_key(edge));
            whole.extend(added.clone());
            assert_eq!(whole, model, "batch {i}");
            let turned =
                |edges: Edges<f64>| -> Edges<f64> { edges.into_iter().map(|((u, v), w)| ((v, u), w)).collect() };
            assert_eq!(adjacency_table(&version, AdjacencyTable::In), turned(added), "batch {i}");
            assert_eq!(adjacency_table(&version, AdjacencyTable::InRemoved), turned(removed), "batch {i}");
        }
    }
}

/// Regression: -0.0 over 0.0, and the reverse, was no change, because `==` treats them as equal.
fn change_the_sign_of_zero<W: EntryValue + Weight>(zeros: [W; 2])
where
    Adjacency: Base<W>,
{
    let pool = Pool::new(1).unwrap();
    for [old, new] in [zeros, [zeros[1], zeros[0]]] {
        let csr = base_of(&Edges::from([((1, 2), old)]));
        let mut terrace = Terrace::<W>::new(&Options { in_lists: true, ..Options::default() }).unwrap();
        terrace.grow(BOUND as usize).unwrap();
        let (mut space, mut transpose) = (Space::default(), TransposedChanges::default());
        let mut set = |target, weight| {
            let changes = [EntryUpdate { source: 1, target, addition: Some(weight) }];
            terrace.apply_directions_over(&pool, csr.out_lists(), &changes, &mut space, &mut transpose).unwrap();
            terrace.publish();
            let version = terrace.version();
            let bits = |adjacency_table, list, entry| {
                version.lists(adjacency_table).get(list, entry).map(|&weight: &W| weight.bits())
            };
            let out = [AdjacencyTable::Out, AdjacencyTable::OutRemoved]
                .map(|adjacency_table| bits(adjacency_table, 1, target));
            assert_eq!(
                [AdjacencyTable::In, AdjacencyTable::InRemoved].map(|adjacency_table| bits(adjacency_table, target, 1)),
                out
            );
            out
        };
        let (old_bits, new_bits) = (Some(old.bits()), Some(new.bits()));
        assert_eq!(set(2, old), [None, None], "it is as in the base");
        assert_eq!(set(2, new), [new_bits, old_bits]);
        assert_eq!(set(2, old), [None, None], "it is as in the base again");
        // An edge that the base lacks.
        assert_eq!(set(3, old), [old_bits, None]);
        assert_eq!(set(3, new), [new_bits, None]);
    }
}

#[test]
fn the_sign_of_zero_is_part_of_a_weight() {
    change_the_sign_of_zero([0.0_f32, -0.0]);
    change_the_sign_of_zero([0.0_f64, -0.0]);
}

/// A base that cannot be read.
struct Broken;

impl Base<()> for Broken {
    type Search<'a> = Self;

    fn search(&self) -> Self {
        Self
    }
}

impl Search<()> for Broken {
    fn find(&mut self, source: VertexId, _: VertexId) -> anden_base::Result<Option<()>> {
        match source {
            7 => Err(anden_base::Error::Cancelled),
            _ => Ok(None),
        }
    }
}

#[test]
fn damage_below_fails_batch_and_keeps_published_version() {
    let pool = Pool::new(2).unwrap();
    let mut terrace = Terrace::<()>::new(&Options::default()).unwrap();
    terrace.grow(10).unwrap();
    let (mut space, mut transpose) = (Space::default(), TransposedChanges::default());
    let add = |source| [Addition { source, target: 3 }];
    terrace.apply_directions_over(&pool, &Broken, &add(1), &mut space, &mut transpose).unwrap();
    terrace.publish();
    assert!(terrace.apply_directions_over(&pool, &Broken, &add(7), &mut space, &mut transpose).is_err());
    assert!(
        terrace.apply_directions_over(&pool, &Broken, &add(1), &mut space, &mut transpose).is_err(),
        "it is read-only"
    );
    terrace.publish();
    assert_eq!(terrace.version().lists(AdjacencyTable::Out).num_arcs(), 1);
}
