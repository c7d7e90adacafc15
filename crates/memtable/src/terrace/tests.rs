//! Effective changes of a batch on the adjacency tables of the out-lists, from which in-lists are made.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use anden_graph::{CsrBuilder, Weight};
use anden_testkit::Random;

use super::*;
use crate::overlay::Search;

type ModelEdges<W> = BTreeMap<(VertexId, VertexId), W>;

/// Vertices from this number on have no out-edges.
const NUM_SOURCES: u32 = 300;
const BOUND: u32 = 150_000;
const OUT_TABLES: [AdjacencyTable; 2] = [AdjacencyTable::Out, AdjacencyTable::OutRemoved];

/// A base without edges that says so.
struct Nothing;

impl<W> Base<W> for Nothing {
    type Search<'a> = Self;

    fn search(&self) -> Self {
        Self
    }

    fn is_empty(&self) -> bool {
        true
    }
}

impl<W> Search<W> for Nothing {
    fn find(&mut self, _: VertexId, _: VertexId) -> anden_base::Result<Option<W>> {
        Ok(None)
    }
}

/// A base that is damaged beyond its first vertices.
struct Damaged;

const NUM_READABLE: VertexId = 5;

impl Base<()> for Damaged {
    type Search<'a> = Self;

    fn search(&self) -> Self {
        Self
    }

    fn is_empty(&self) -> bool {
        false
    }
}

impl Search<()> for Damaged {
    fn find(&mut self, source: VertexId, _: VertexId) -> anden_base::Result<Option<()>> {
        match source {
            ..NUM_READABLE => Ok(None),
            _ => Err(anden_base::Error::corrupt("base".as_ref(), 0, "it cannot be read")),
        }
    }
}

fn entries<W: EntryValue>(version: &Version<W>, adjacency_table: AdjacencyTable) -> ModelEdges<W> {
    let mut all = ModelEdges::new();
    for vertex in 0..NUM_SOURCES {
        let _ = version.lists(adjacency_table).for_each_fragment(vertex, |targets, values| {
            all.extend(targets.iter().zip(values).map(|(&target, &value)| ((vertex, target), value)));
            ControlFlow::Continue(())
        });
    }
    all
}

/// Applies changes and returns the effective ones by adjacency table.
fn effects<W: EntryValue>(
    terrace: &mut Terrace<W>,
    pool: &Pool,
    base: &impl Base<W>,
    changes: &[EntryUpdate<W>],
    space: &mut Space<EntryUpdate<W>>,
) -> [Vec<EntryUpdate<W>>; 2] {
    let view: ChangeCast<EntryUpdate<W>, EntryUpdate<W>> = |sorted| sorted;
    let sinks = terrace.apply_to_direction::<_, _, Listed<W>>(pool, base, changes, view, space).unwrap();
    sinks.map(|parts| parts.into_iter().flat_map(|Listed(part)| part).collect())
}

fn run<W: EntryValue + PartialEq>(
    seed: u64,
    threads: usize,
    (in_place, packed): (usize, usize),
    base: &impl Base<W>,
    value: impl Fn(u32) -> W,
) {
    println!("seed {seed}, {threads} threads, up to {in_place} in place and {packed} packed, {:?}", W::TYPE);
    let mut random = Random::new(seed);
    let pool = Pool::new(threads).unwrap();
    let mut terrace = Terrace::<W>::new(&Options { in_place, packed, ..Options::default() }).unwrap();
    terrace.grow(BOUND as usize).unwrap();
    let mut space = Space::default();
    let mut models = [ModelEdges::<W>::new(), ModelEdges::new()];
    for i in 0..16 {
        // The longest batch is shared among workers, and so are the changes of its most frequent list.
        let len = [3, 300, 6000, 90_000][i % 4];
        let share_of_additions = [9, 5, 1, 7][i / 4];
        let changes: Vec<_> = (0..len)
            .map(|_| {
                let source = if len == 90_000 && random.below(8) > 0 { 7 } else { random.below(NUM_SOURCES) };
                let addition = (random.below(10) < share_of_additions).then(|| value(random.below(3)));
                EntryUpdate { source, target: random.below([500, BOUND][i / 2 % 2]), addition }
            })
            .collect();
        let effects = effects(&mut terrace, &pool, base, &changes, &mut space);
        terrace.publish();
        let version = terrace.version();
        for ((adjacency_table, model), effects) in OUT_TABLES.into_iter().zip(&mut models).zip(&effects) {
            assert!(effects.is_sorted_by(|a, b| a.key() < b.key()), "batch {i}, {adjacency_table:?}");
            for change in effects {
                let edge = (change.source, change.target);
                let old = match change.addition {
                    Some(value) => model.insert(edge, value),
                    None => model.remove(&edge),
                };
                assert!(old != change.addition, "batch {i}, {adjacency_table:?}: {change:?} has no effect");
            }
            assert!(*model == entries(&version, adjacency_table), "batch {i}, {adjacency_table:?}");
        }
    }
}

fn base_of<W: Weight>(seed: u64, weight: impl Fn(u32) -> W) -> anden_graph::Csr {
    let mut random = Random::new(seed);
    let mut builder = CsrBuilder::new(GraphKind::Directed, BOUND as usize);
    let edges: BTreeMap<_, _> = (0..40_000)
        .map(|i| {
            let (source, span) = if i % 4 == 0 { (7, BOUND) } else { (random.below(NUM_SOURCES), 500) };
            ((source, random.below(span)), weight(random.below(3)))
        })
        .collect();
    edges.into_iter().for_each(|((source, target), weight)| builder.edge(source, target, weight));
    builder.build_weighted().unwrap()
}

#[test]
fn effective_changes_are_reported_once_in_order() {
    run(41, 2, (13, 1 << 10), base_of(1, f64::from).out_lists(), f64::from);
    run(42, 3, (29, 1 << 9), base_of(2, |w| w).out_lists(), |_| ());
    run(43, 1, (2, 4), base_of(3, |w| w).out_lists(), |w| w);
    run(44, 2, (5, 1 << 12), &Nothing, f64::from);
    run(45, 3, (13, 1 << 8), &Nothing, |_| ());
    run(46, 1, (0, 0), &Nothing, |w| w);
}

#[test]
fn of_changes_of_one_edge_the_last_is_told() {
    let pool = Pool::new(1).unwrap();
    let mut terrace = Terrace::<u32>::new(&Options::default()).unwrap();
    terrace.grow(5).unwrap();
    let update = |target, addition| EntryUpdate { source: 1, target, addition };
    let changes = [update(2, Some(5)), update(3, Some(1)), update(2, None), update(3, Some(8)), update(4, None)];
    let mut space = Space::default();
    assert_eq!(effects(&mut terrace, &pool, &Nothing, &changes, &mut space), [vec![update(3, Some(8))], vec![]]);
    assert_eq!(effects(&mut terrace, &pool, &Nothing, &changes[3..4], &mut space), [vec![], vec![]]);
}

#[test]
fn failed_batch_makes_memtable_read_only() {
    let pool = Pool::new(1).unwrap();
    let mut terrace = Terrace::<()>::new(&Options::default()).unwrap();
    terrace.grow(NUM_SOURCES as usize).unwrap();
    let (mut space, mut transpose) = (Space::default(), TransposedChanges::default());
    let add = |source| EntryUpdate { source, target: 7, addition: Some(()) };
    terrace.apply_directions_over(&pool, &Damaged, &[add(1)], &mut space, &mut transpose).unwrap();
    let epoch = terrace.publish();
    let batch = [add(2), add(NUM_READABLE)];
    let error =
        terrace.apply_directions_over(&pool, &Damaged, &batch, &mut space, &mut transpose).unwrap_err().to_string();
    assert!(error.contains("it cannot be read"), "{error}");
    let refused = [
        terrace.apply_directions_over(&pool, &Damaged, &[add(3)], &mut space, &mut transpose).unwrap_err(),
        terrace.apply(&pool, AdjacencyTable::Out, &[add(4)], &mut space).unwrap_err(),
        terrace.grow(2 * NUM_SOURCES as usize).unwrap_err(),
    ];
    assert!(refused.iter().all(|error| error.to_string().contains("the memtable is read-only")), "{refused:?}");
    assert_eq!(terrace.publish(), epoch, "half a batch is no version");
    assert_eq!(entries(&terrace.version(), AdjacencyTable::Out), ModelEdges::from([((1, 7), ())]));
}

#[test]
fn batch_beyond_vertex_bound_is_refused_whole() {
    let pool = Pool::new(2).unwrap();
    let mut terrace = Terrace::<()>::new(&Options::default()).unwrap();
    terrace.grow(NUM_SOURCES as usize).unwrap();
    let mut space = Space::default();
    // Searched and applied by one thread; applied by several; searched by several as well.
    for len in [3, 2 * SERIAL_BATCH, 100_000] {
        for (source, target) in [(NUM_SOURCES, 0), (0, NUM_SOURCES)] {
            let add = |i| EntryUpdate { source: i as u32 % NUM_SOURCES, target: 7, addition: Some(()) };
            let mut changes: Vec<_> = (0..len).map(add).collect();
            changes[len / 2] = EntryUpdate { source, target, addition: Some(()) };
            let error = terrace.apply(&pool, AdjacencyTable::Out, &changes, &mut space).unwrap_err();
            assert!(matches!(error, Error::Vertex { vertex: NUM_SOURCES, .. }), "{len} changes: {error}");
            terrace.publish();
            assert_eq!(entries(&terrace.version(), AdjacencyTable::Out), ModelEdges::new(), "{len} changes");
        }
    }
    terrace
        .apply(&pool, AdjacencyTable::Out, &[EntryUpdate { source: 0, target: 7, addition: Some(()) }], &mut space)
        .unwrap();
    terrace.publish();
    assert_eq!(entries(&terrace.version(), AdjacencyTable::Out).len(), 1);
}
