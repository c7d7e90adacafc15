//! Spreads the edges of a load over several snapshots at random.
//!
//! The base holds the newest snapshot, with all edges, and is written as usual. Each edge on its way there is assigned
//! to a random snapshot, and kept for a delta unless that is the first. The choice depends only on the seed and the
//! ranks of the keys of its ends. So both arcs of an edge, and all parallel edges, get the same snapshot, at any number
//! of threads and under every order of ids.

use std::sync::OnceLock;

use anden_base::VertexId;
use anden_base::progress::Progress;
use anden_base::random::{GOLDEN, mix};
use anden_graph::GraphKind;
use anden_snapshots::{ArcData, ChangedArc, DeltaChanges, Direction, FinishedDeltas, StoreBuilder};
use parking_lot::{Mutex, MutexGuard};

use super::arcs::Payload;
use super::budget::LoadBudget;
use super::keys::VertexKeys;
use super::lists::BuiltLists;
use crate::{Error, Result};

/// Memory of an arc without and with a weight or a row; vectors may have twice the capacity that they use. Writing a
/// snapshot takes 32 or 40 bytes more for each of its arcs, from the memory in which edges were sorted before.
const ARC_BYTES: u64 = 20;
const DATA_ARC_BYTES: u64 = 48;
/// The most snapshots of one load.
const MAX_SNAPSHOTS: u32 = 100_000;

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
    num_later: u64,
    /// Draws below this choose the first snapshot.
    first_below: u64,
    salt: u64,
    /// The rank of the key of each vertex, if ids do not ascend with keys.
    ranks: OnceLock<Vec<u32>>,
    is_undirected: bool,
    /// Whether arcs have data.
    has_data: bool,
    budget: LoadBudget,
    out_adjacency: Mutex<SpreadArcs>,
    in_adjacency: Mutex<SpreadArcs>,
}

/// The arcs of one direction that come after the first snapshot.
#[derive(Debug, Default)]
struct SpreadArcs {
    /// For each snapshot from the second on.
    deltas: Vec<SpreadDelta>,
    num_arcs: u64,
}

/// The arcs that one snapshot adds.
#[derive(Debug, Default)]
struct SpreadDelta {
    /// List and neighbor.
    keys: Vec<u64>,
    /// The data beside the arcs; empty if there is none.
    data: Vec<ArcData>,
    num_loops: u64,
}

impl SnapshotSpreader {
    /// `None` if there is only one snapshot.
    pub(crate) fn new(spread: &Spread, graph_kind: GraphKind, data_bytes: usize, budget: LoadBudget) -> Option<Self> {
        let num_later = u64::from(spread.num_snapshots.checked_sub(2)?) + 1;
        let share = spread.first_share.unwrap_or(1.0 / f64::from(spread.num_snapshots));
        // Saturates for 1, which `draw` treats as always.
        let first_below = (share * u64::MAX as f64) as u64;
        let empty = || {
            let deltas = (0..num_later).map(|_| SpreadDelta::default()).collect();
            Mutex::new(SpreadArcs { deltas, num_arcs: 0 })
        };
        Some(Self {
            num_later,
            first_below,
            // Mixed, so that neighboring seeds choose independently.
            salt: mix(spread.seed ^ GOLDEN),
            ranks: OnceLock::new(),
            is_undirected: graph_kind == GraphKind::Undirected,
            has_data: data_bytes > 0,
            budget,
            out_adjacency: empty(),
            in_adjacency: empty(),
        })
    }

    /// Makes the choice depend on keys, so that every order of ids gives the same snapshots.
    pub(crate) fn follow_keys(&self, keys: &VertexKeys) -> Result<()> {
        let Some(sorted) = keys.sorted() else { return Ok(()) };
        self.budget.check("the ranks of the keys, which must be in memory,", size_of_val(sorted) as u64)?;
        self.ranks.get_or_init(|| {
            let mut ranks = vec![0; sorted.len()];
            (0..).zip(sorted).for_each(|(rank, &id)| ranks[id as usize] = rank);
            ranks
        });
        Ok(())
    }

    /// The snapshot of an edge, counted from 0.
    fn draw(&self, source: VertexId, target: VertexId) -> u64 {
        let rank = |vertex: VertexId| self.ranks.get().map_or(vertex, |ranks| ranks[vertex as usize]);
        let (source, target) = (rank(source), rank(target));
        // Both arcs of an undirected edge must get one snapshot.
        let (source, target) = match self.is_undirected {
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

    /// Keeps the arcs of later snapshots from lists of a direction; `first` is the first vertex.
    pub(crate) fn note<P: Payload>(&self, direction: Direction, first: VertexId, lists: &BuiltLists<P>) -> Result<()> {
        let mut noted = self.arcs(direction);
        let SpreadArcs { deltas, num_arcs } = &mut *noted;
        let before = *num_arcs;
        lists.for_each_arc(first, |arc| {
            let snapshot = match direction {
                Direction::Out => self.draw(arc.list(), arc.neighbor()),
                // An in-list names the edge from its other end.
                Direction::In => self.draw(arc.neighbor(), arc.list()),
            };
            if let Some(delta) = (snapshot as usize).checked_sub(1).and_then(|delta| deltas.get_mut(delta)) {
                delta.keys.push(arc.key());
                delta.data.extend((!P::IS_EMPTY).then(|| arc.payload().data()));
                delta.num_loops += u64::from(arc.list() == arc.neighbor());
                *num_arcs += 1;
            }
        });
        if *num_arcs == before {
            return Ok(());
        }
        let both =
            [&self.out_adjacency, &self.in_adjacency].map(|other| other.try_lock().map_or(0, |other| other.num_arcs));
        // `try_lock` fails for the direction that is locked here, which is added below.
        let arc_bytes = if self.has_data { DATA_ARC_BYTES } else { ARC_BYTES };
        let rank_bytes = self.ranks.get().map_or(0, |ranks| size_of_val(&**ranks)) as u64;
        let num_bytes = rank_bytes + arc_bytes * (both.iter().sum::<u64>() + noted.num_arcs);
        self.budget.check("the edges of all snapshots but the first, which must be in memory,", num_bytes)
    }

    fn arcs(&self, direction: Direction) -> MutexGuard<'_, SpreadArcs> {
        match direction {
            Direction::Out => self.out_adjacency.lock(),
            Direction::In => self.in_adjacency.lock(),
        }
    }

    /// Writes the deltas of all snapshots but the first; ids are below `vertex_bound`.
    pub(crate) fn write(
        self,
        builder: &StoreBuilder,
        vertex_bound: usize,
        progress: &dyn Progress,
    ) -> Result<FinishedDeltas> {
        progress.stage("write snapshots", Some(self.num_later));
        let mut writer = builder.deltas_writer(vertex_bound);
        let is_undirected = self.is_undirected;
        let [out_deltas, in_deltas] = self.into_deltas();
        for (out_delta, in_delta) in out_deltas.into_iter().zip(in_deltas) {
            progress.check()?;
            let num_loops = out_delta.num_loops;
            let (out_added, in_added) = (out_delta.into_arcs(), in_delta.into_arcs());
            let num_arcs = out_added.len() as u64;
            writer.append(&DeltaChanges {
                vertex_bound,
                out_added: &out_added,
                in_added: &in_added,
                num_edges_added: if is_undirected { (num_arcs + num_loops) / 2 } else { num_arcs },
                ..DeltaChanges::default()
            })?;
            progress.advance(1);
        }
        Ok(writer.finish()?)
    }

    /// The additions of all snapshots but the first: to out-lists, and to in-lists.
    fn into_deltas(self) -> [Vec<SpreadDelta>; 2] {
        [self.out_adjacency, self.in_adjacency].map(|arcs| arcs.into_inner().deltas)
    }
}

impl SpreadDelta {
    /// The arcs, sorted.
    fn into_arcs(self) -> Vec<ChangedArc> {
        let arc = |(i, &key): (usize, &u64)| ChangedArc {
            list: (key >> 32) as VertexId,
            neighbor: key as VertexId,
            data: self.data.get(i).copied().unwrap_or_default(),
        };
        let mut arcs: Vec<_> = self.keys.iter().enumerate().map(arc).collect();
        // They come by list and neighbor, but parallel edges in any order.
        arcs.sort_unstable();
        arcs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spreader(num_snapshots: u32, first_share: Option<f64>, graph_kind: GraphKind) -> SnapshotSpreader {
        let spread = Spread { num_snapshots, first_share, seed: 7 };
        spread.check().unwrap();
        SnapshotSpreader::new(&spread, graph_kind, 0, LoadBudget::new(None, None, 1).unwrap()).unwrap()
    }

    fn counts(spreader: &SnapshotSpreader, num_snapshots: usize) -> Vec<u32> {
        let mut counts = vec![0; num_snapshots];
        (0..100_000_u32).for_each(|i| counts[spreader.draw(i % 300, i / 300) as usize] += 1);
        counts
    }

    #[test]
    fn edges_are_spread_as_they_should_be() {
        let counts_of = |first_share| counts(&spreader(5, first_share, GraphKind::Directed), 5);
        let near = |count: u32, expected: f64| (f64::from(count) - expected).abs() < 1000.0;
        assert!(counts_of(None).into_iter().all(|count| near(count, 20_000.0)));
        let found = counts_of(Some(0.8));
        assert!(near(found[0], 80_000.0) && found[1..].iter().all(|&count| near(count, 5_000.0)), "{found:?}");
        assert_eq!(counts_of(Some(1.0)), [100_000, 0, 0, 0, 0]);
        assert_eq!(counts_of(Some(0.0))[0], 0);
    }

    #[test]
    fn both_entries_of_an_edge_come_together() {
        let spreader = spreader(9, Some(0.3), GraphKind::Undirected);
        assert!((0..1000_u32).all(|i| spreader.draw(i, i * i) == spreader.draw(i * i, i)));
    }

    #[test]
    fn lists_are_noted_by_snapshot() {
        let spreader = spreader(3, Some(0.2), GraphKind::Directed);
        let lists = BuiltLists::<()> {
            degrees: vec![40, 0, 60],
            neighbors: (0..40).chain(0..60).collect(),
            payloads: vec![(); 100],
            num_loops: 0,
            first_merged: None,
            first_beyond: None,
        };
        spreader.note(Direction::Out, 5, &lists).unwrap();
        let expected: Vec<Vec<ChangedArc>> = [1, 2]
            .map(|snapshot| {
                let arcs = (0..40).map(|v| (5, v)).chain((0..60).map(|v| (7, v)));
                let arcs = arcs.filter(|&(u, v)| spreader.draw(u, v) == snapshot);
                arcs.map(|(list, neighbor)| ChangedArc { list, neighbor, data: ArcData::default() }).collect()
            })
            .into();
        let [deltas, _] = spreader.into_deltas();
        assert_eq!(deltas.into_iter().map(SpreadDelta::into_arcs).collect::<Vec<_>>(), expected);
        assert!(expected.iter().all(|arcs| arcs.len() > 10));
    }

    #[test]
    fn invalid_spread_is_refused() {
        assert!(Spread { num_snapshots: 0, ..Spread::default() }.check().is_err());
        assert!(Spread { first_share: Some(1.5), ..Spread::default() }.check().is_err());
        assert!(Spread { first_share: Some(f64::NAN), ..Spread::default() }.check().is_err());
    }
}
