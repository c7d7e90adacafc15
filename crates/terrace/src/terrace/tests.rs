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
