//! Spreads the edges of a load over several snapshots, at random or by time.
//!
//! The base holds the newest snapshot, with all edges, and is written as usual. Each edge on its way there is assigned
//! to a snapshot, and kept for a delta unless that is the first. A random choice depends only on the seed and the ranks
//! of the keys of its ends. So both arcs of an edge, and all parallel edges, get the same snapshot, at any number of
//! threads and under every order of ids. A choice by time is that of [`TimeSplit`].

use std::sync::OnceLock;

use anden_base::VertexId;
use anden_base::progress::Progress;
use anden_base::random::{GOLDEN, mix};
use anden_formats::InputPath;
use anden_snapshots::{Direction, FinishedDeltas, GraphOptions, SnapshotTag, StoreBuilder};

use super::arcs::Payload;
use super::budget::LoadBudget;
use super::keys::VertexKeys;
use super::later_arcs::{ChangedLists, LaterArcs, LaterVertices};
use super::lists::BuiltLists;
use super::row_numbers::RowNumbers;
use super::time_split::{PeriodTag, TimeSplit};
use crate::{Error, Result};

/// The most snapshots of one load.
pub(crate) const MAX_SNAPSHOTS: u32 = 100_000;

/// How the edges of a load are spread over snapshots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Number of snapshots. Each has all vertices; the last has all edges.
    pub num_snapshots: u32,
    /// The share of the edges in the first snapshot, from 0 to 1. `None`: as many as each later one adds.
    pub first_share: Option<f64>,
    /// Seed of the random choice.
    pub seed: u64,
}

impl Default for Spread {
    /// One snapshot with all edges.
    fn default() -> Self {
        Self { num_snapshots: 1, first_share: None, seed: 1 }
    }
}

impl Spread {
    pub(crate) fn check(&self) -> Result<()> {
        if !(1..=MAX_SNAPSHOTS).contains(&self.num_snapshots) {
            let what = format!("a load makes 1 to {MAX_SNAPSHOTS} snapshots, not {}", self.num_snapshots);
            return Err(Error::options(what));
        }
        match self.first_share {
            Some(share) if !(0.0..=1.0).contains(&share) => {
                Err(Error::options(format!("the first snapshot's share of the edges is from 0 to 1, not {share}")))
            }
            _ => Ok(()),
        }
    }
}

/// Assigns edges to snapshots, and keeps those of later snapshots.
pub(crate) struct SnapshotSpreader {
    choice: SnapshotChoice,
    later: LaterArcs,
}

/// How the snapshot of an edge is chosen.
enum SnapshotChoice {
    Random(RandomDraw),
    ByTime(TimeSplit),
}

/// Chooses at random.
struct RandomDraw {
    num_later: u64,
    /// Draws below this choose the first snapshot.
    first_below: u64,
    salt: u64,
    /// The rank of the key of each vertex, if ids do not ascend with keys.
    ranks: OnceLock<Vec<u32>>,
}

impl SnapshotSpreader {
    /// `None` if there is only one snapshot. `by_time` chooses by the times of the edges.
    pub(crate) fn new(
        spread: &Spread,
        by_time: Option<TimeSplit>,
        graph: &GraphOptions,
        budget: LoadBudget,
    ) -> Option<Self> {
        let choice = match by_time {
            Some(split) => SnapshotChoice::ByTime(split),
            None => SnapshotChoice::Random(RandomDraw::new(spread)?),
        };
        Some(Self { choice, later: LaterArcs::new(graph.graph_kind, graph.data_bytes(), budget) })
    }

    /// The choice by time, if times choose.
    pub(crate) fn by_time(&self) -> Option<&TimeSplit> {
        match &self.choice {
            SnapshotChoice::Random(_) => None,
            SnapshotChoice::ByTime(split) => Some(split),
        }
    }

    /// Makes a random choice depend on keys, so that every order of ids gives the same snapshots.
    pub(crate) fn follow_keys(&self, keys: &VertexKeys) -> Result<()> {
        let (SnapshotChoice::Random(draw), Some(sorted)) = (&self.choice, keys.sorted()) else { return Ok(()) };
        let num_bytes = size_of_val(sorted) as u64;
        self.later.budget().check("the ranks of the keys, which must be in memory,", num_bytes)?;
        draw.ranks.get_or_init(|| {
            let mut ranks = vec![0; sorted.len()];
            (0..).zip(sorted).for_each(|(rank, &id)| ranks[id as usize] = rank);
            ranks
        });
        Ok(())
    }

    /// Keeps the arcs of later snapshots from lists of a direction; `first` is the first vertex. `numbers` renumbers the
    /// rows of the lists; `inputs` are named in errors.
    pub(crate) fn note<P: Payload>(
        &self,
        direction: Direction,
        first: VertexId,
        lists: &mut BuiltLists<P>,
        numbers: Option<&RowNumbers>,
        inputs: &[InputPath],
    ) -> Result<()> {
        let mut numbering = numbers.map(|numbers| numbers.begin(direction));
        let mut noted = self.later.lock(direction);
        let before = noted.num_arcs();
        let choice_bytes = match &self.choice {
            SnapshotChoice::ByTime(split) => {
                // Times belong to the rows of the input, so the split renumbers the rows itself.
                split.note(first, lists, &mut noted, numbering.as_mut(), inputs)?;
                split.num_bytes()
            }
            SnapshotChoice::Random(draw) => {
                // After renumbering: deltas name the rows that are written.
                if let Some(mut numbering) = numbering {
                    numbering.apply(lists);
                }
                draw.note(direction, first, lists, &mut noted, self.later.is_undirected());
                draw.ranks.get().map_or(0, |ranks| size_of_val(&**ranks)) as u64
            }
        };
        if noted.num_arcs() == before { Ok(()) } else { self.later.check(&noted, choice_bytes) }
    }

    /// Writes the deltas of all snapshots but the first; ids are below `vertex_bound`. A random choice gives the last
    /// snapshot `tag`. Returns the names and times of all snapshots, too.
    pub(crate) fn write(
        self,
        builder: &StoreBuilder,
        vertex_bound: usize,
        tag: SnapshotTag<'_>,
        progress: &dyn Progress,
    ) -> Result<(FinishedDeltas, Vec<PeriodTag>)> {
        let (vertices, tags) = match self.choice {
            SnapshotChoice::Random(draw) => {
                let mut tags = vec![PeriodTag::default(); draw.num_later as usize];
                // The tag is that of the last snapshot, which has all edges.
                tags.push(tag.into());
                (LaterVertices::constant(tags.len(), vertex_bound), tags)
            }
            SnapshotChoice::ByTime(split) => split.finish(vertex_bound),
        };
        Ok((self.later.write(builder, &vertices, progress)?, tags))
    }
}

impl RandomDraw {
    /// `None` if there is only one snapshot.
    fn new(spread: &Spread) -> Option<Self> {
        let num_later = u64::from(spread.num_snapshots.checked_sub(2)?) + 1;
        let share = spread.first_share.unwrap_or(1.0 / f64::from(spread.num_snapshots));
        // Saturates for 1, which `draw` treats as always.
        let first_below = (share * u64::MAX as f64) as u64;
        // Mixed, so that neighboring seeds choose independently.
        Some(Self { num_later, first_below, salt: mix(spread.seed ^ GOLDEN), ranks: OnceLock::new() })
    }

    /// The snapshot of an edge, counted from 0.
    fn draw(&self, source: VertexId, target: VertexId, is_undirected: bool) -> u64 {
        let rank = |vertex: VertexId| self.ranks.get().map_or(vertex, |ranks| ranks[vertex as usize]);
        let (source, target) = (rank(source), rank(target));
        // Both arcs of an undirected edge must get one snapshot.
        let (source, target) = match is_undirected {
            true => (source.min(target), source.max(target)),
            false => (source, target),
        };
        let draw = mix(self.salt.wrapping_add(u64::from(source) << 32 | u64::from(target)));
        match draw < self.first_below || self.first_below == u64::MAX {
            true => 0,
            // A second number, because `draw` is known to be at least `first_below`.
            false => 1 + ((u128::from(mix(draw)) * u128::from(self.num_later)) >> 64) as u64,
        }
    }

    fn note<P: Payload>(
        &self,
        direction: Direction,
        first: VertexId,
        lists: &BuiltLists<P>,
        noted: &mut ChangedLists,
        is_undirected: bool,
    ) {
        lists.for_each_arc(first, |arc| {
            let snapshot = match direction {
                Direction::Out => self.draw(arc.list(), arc.neighbor(), is_undirected),
                // An in-list names the edge from its other end.
                Direction::In => self.draw(arc.neighbor(), arc.list(), is_undirected),
            };
            noted.add(snapshot as usize, arc.key(), (!P::IS_EMPTY).then(|| arc.payload().data()));
        });
    }
}

#[cfg(test)]
mod tests {
    use anden_snapshots::{ArcData, ChangedArc};

    use super::*;

    fn draw(num_snapshots: u32, first_share: Option<f64>) -> RandomDraw {
        let spread = Spread { num_snapshots, first_share, seed: 7 };
        spread.check().unwrap();
        RandomDraw::new(&spread).unwrap()
    }

    fn counts(draw: &RandomDraw, num_snapshots: usize) -> Vec<u32> {
        let mut counts = vec![0; num_snapshots];
        (0..100_000_u32).for_each(|i| counts[draw.draw(i % 300, i / 300, false) as usize] += 1);
        counts
    }

    #[test]
    fn edges_are_spread_as_they_should_be() {
        let counts_of = |first_share| counts(&draw(5, first_share), 5);
        let near = |count: u32, expected: f64| (f64::from(count) - expected).abs() < 1000.0;
        assert!(counts_of(None).into_iter().all(|count| near(count, 20_000.0)));
        let found = counts_of(Some(0.8));
        assert!(near(found[0], 80_000.0) && found[1..].iter().all(|&count| near(count, 5_000.0)), "{found:?}");
        assert_eq!(counts_of(Some(1.0)), [100_000, 0, 0, 0, 0]);
        assert_eq!(counts_of(Some(0.0))[0], 0);
    }

    #[test]
    fn both_entries_of_an_edge_come_together() {
        let draw = draw(9, Some(0.3));
        assert!((0..1000_u32).all(|i| draw.draw(i, i * i, true) == draw.draw(i * i, i, true)));
    }

    #[test]
    fn lists_are_noted_by_snapshot() {
        let spread = Spread { num_snapshots: 3, first_share: Some(0.2), seed: 7 };
        let budget = LoadBudget::new(None, None, 1).unwrap();
        let spreader = SnapshotSpreader::new(&spread, None, &GraphOptions::default(), budget).unwrap();
        let draw = draw(3, Some(0.2));
        let mut lists = BuiltLists::<()> {
            degrees: vec![40, 0, 60],
            neighbors: (0..40).chain(0..60).collect(),
            payloads: vec![(); 100],
            num_loops: 0,
            first_merged: None,
            first_beyond: None,
        };
        spreader.note(Direction::Out, 5, &mut lists, None, &[]).unwrap();
        let expected: Vec<Vec<ChangedArc>> = [1, 2]
            .map(|snapshot| {
                let arcs = (0..40).map(|v| (5, v)).chain((0..60).map(|v| (7, v)));
                let arcs = arcs.filter(|&(u, v)| draw.draw(u, v, false) == snapshot);
                arcs.map(|(list, neighbor)| ChangedArc { list, neighbor, data: ArcData::default() }).collect()
            })
            .into();
        assert_eq!(spreader.later.into_added(), expected);
        assert!(expected.iter().all(|arcs| arcs.len() > 10));
    }

    #[test]
    fn invalid_spread_is_refused() {
        assert!(Spread { num_snapshots: 0, ..Spread::default() }.check().is_err());
        assert!(Spread { first_share: Some(1.5), ..Spread::default() }.check().is_err());
        assert!(Spread { first_share: Some(f64::NAN), ..Spread::default() }.check().is_err());
    }
}
