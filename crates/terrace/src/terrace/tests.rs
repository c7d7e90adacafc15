//! Which changes of a batch had an effect on the planes of the out-lists: what in-lists are made of.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use graph::{CsrBuilder, Weight};
use testkit::Random;

use super::*;
use crate::overlay::Search;

type Edges<W> = BTreeMap<(VertexId, VertexId), W>;

/// Vertices above have no out-edges.
const NUM_SOURCES: u32 = 300;
const BOUND: u32 = 150_000;
const PLANES: [Plane; 2] = [Plane::Out, Plane::OutRemoved];

/// A base that says that it has no edges.
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
    fn find(&mut self, _: VertexId, _: VertexId) -> base::Result<Option<W>> {
        Ok(None)
    }
}

/// A base that cannot be read beyond its first vertices.
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
    fn find(&mut self, source: VertexId, _: VertexId) -> base::Result<Option<()>> {
        match source {
            ..NUM_READABLE => Ok(None),
            _ => Err(base::Error::corrupt("base".as_ref(), 0, "it cannot be read")),
        }
    }
}

fn entries<W: Value>(version: &Version<W>, plane: Plane) -> Edges<W> {
    let mut all = Edges::new();
    for vertex in 0..NUM_SOURCES {
        let _ = version.lists(plane).for_each_fragment(vertex, |targets, values| {
            all.extend(targets.iter().zip(values).map(|(&target, &value)| ((vertex, target), value)));
            ControlFlow::Continue(())
        });
    }
    all
}

/// Applies changes; returns those that had an effect, by plane.
fn effects<W: Value>(
    terrace: &mut Terrace<W>,
    pool: &Pool,
    base: &impl Base<W>,
    changes: &[Update<W>],
    space: &mut Space<Update<W>>,
) -> [Vec<Update<W>>; 2] {
    let view: View<Update<W>, Update<W>> = |sorted| sorted;
    let sinks = terrace.apply_to_side::<_, _, Listed<W>>(pool, base, changes, view, space).unwrap();
    sinks.map(|parts| parts.into_iter().flat_map(|Listed(part)| part).collect())
}

fn run<W: Value + PartialEq>(
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
    let mut models = [Edges::<W>::new(), Edges::new()];
    for i in 0..16 {
        // The longest is shared among workers, and so are the changes of the list that it names most.
        let len = [3, 300, 6000, 90_000][i % 4];
        let share_of_additions = [9, 5, 1, 7][i / 4];
        let changes: Vec<_> = (0..len)
            .map(|_| {
                let source = if len == 90_000 && random.below(8) > 0 { 7 } else { random.below(NUM_SOURCES) };
                let addition = (random.below(10) < share_of_additions).then(|| value(random.below(3)));
                Update { source, target: random.below([500, BOUND][i / 2 % 2]), addition }
            })
            .collect();
        let effects = effects(&mut terrace, &pool, base, &changes, &mut space);
        terrace.publish();
        let version = terrace.version();
        for ((plane, model), effects) in PLANES.into_iter().zip(&mut models).zip(&effects) {
            assert!(effects.is_sorted_by(|a, b| a.key() < b.key()), "batch {i}, {plane:?}");
            for change in effects {
                let edge = (change.source, change.target);
                let old = match change.addition {
                    Some(value) => model.insert(edge, value),
                    None => model.remove(&edge),
                };
                assert!(old != change.addition, "batch {i}, {plane:?}: {change:?} has no effect");
            }
            assert!(*model == entries(&version, plane), "batch {i}, {plane:?}");
        }
    }
}

fn base_of<W: Weight>(seed: u64, weight: impl Fn(u32) -> W) -> graph::Csr {
    let mut random = Random::new(seed);
    let mut builder = CsrBuilder::new(Direction::Directed, BOUND as usize);
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
fn each_change_with_an_effect_is_told_once_and_in_order() {
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
    let update = |target, addition| Update { source: 1, target, addition };
    let changes = [update(2, Some(5)), update(3, Some(1)), update(2, None), update(3, Some(8)), update(4, None)];
    let mut space = Space::default();
    assert_eq!(effects(&mut terrace, &pool, &Nothing, &changes, &mut space), [vec![update(3, Some(8))], vec![]]);
    assert_eq!(effects(&mut terrace, &pool, &Nothing, &changes[3..4], &mut space), [vec![], vec![]]);
}

#[test]
fn nothing_follows_a_batch_that_failed_half_way() {
    let pool = Pool::new(1).unwrap();
    let mut terrace = Terrace::<()>::new(&Options::default()).unwrap();
    terrace.grow(NUM_SOURCES as usize).unwrap();
    let (mut space, mut mirror) = (Space::default(), Mirror::default());
    let add = |source| Update { source, target: 7, addition: Some(()) };
    terrace.apply_sides_over(&pool, &Damaged, &[add(1)], &mut space, &mut mirror).unwrap();
    let epoch = terrace.publish();
    let batch = [add(2), add(NUM_READABLE)];
    let error = terrace.apply_sides_over(&pool, &Damaged, &batch, &mut space, &mut mirror).unwrap_err().to_string();
    assert!(error.contains("it cannot be read"), "{error}");
    let refused = [
        terrace.apply_sides_over(&pool, &Damaged, &[add(3)], &mut space, &mut mirror).unwrap_err(),
        terrace.apply(&pool, Plane::Out, &[add(4)], &mut space).unwrap_err(),
        terrace.grow(2 * NUM_SOURCES as usize).unwrap_err(),
    ];
    assert!(refused.iter().all(|error| error.to_string().contains("the live graph is read-only")), "{refused:?}");
    assert_eq!(terrace.publish(), epoch, "half a batch is no version");
    assert_eq!(entries(&terrace.version(), Plane::Out), Edges::from([((1, 7), ())]));
}

#[test]
fn a_batch_that_names_a_vertex_beyond_the_bound_is_refused_whole() {
    let pool = Pool::new(2).unwrap();
    let mut terrace = Terrace::<()>::new(&Options::default()).unwrap();
    terrace.grow(NUM_SOURCES as usize).unwrap();
    let mut space = Space::default();
    // Looked at and applied by one thread, applied by several, and looked at by several, too.
    for len in [3, 2 * SERIAL_BATCH, 100_000] {
        for (source, target) in [(NUM_SOURCES, 0), (0, NUM_SOURCES)] {
            let add = |i| Update { source: i as u32 % NUM_SOURCES, target: 7, addition: Some(()) };
            let mut changes: Vec<_> = (0..len).map(add).collect();
            changes[len / 2] = Update { source, target, addition: Some(()) };
            let error = terrace.apply(&pool, Plane::Out, &changes, &mut space).unwrap_err();
            assert!(matches!(error, Error::Vertex { vertex: NUM_SOURCES, .. }), "{len} changes: {error}");
            terrace.publish();
            assert_eq!(entries(&terrace.version(), Plane::Out), Edges::new(), "{len} changes");
        }
    }
    terrace.apply(&pool, Plane::Out, &[Update { source: 0, target: 7, addition: Some(()) }], &mut space).unwrap();
    terrace.publish();
    assert_eq!(entries(&terrace.version(), Plane::Out).len(), 1);
}
