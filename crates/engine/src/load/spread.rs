//! Spreading the edges of a load over several snapshots at random.
//!
//! The run holds the newest snapshot, which has all edges, and is written as ever; what passes on its way
//! there is drawn a snapshot, and kept where that is not the first. The draw depends on the seed and the
//! ends of an edge alone: both entries of an edge, and all parallel ones, get the same, at any number of
//! threads.

use std::sync::{Mutex, MutexGuard};

use base::VertexId;
use base::progress::Progress;
use graph::Direction;
use lama::{ArcData, ChangedArc, FinishedLevels, LevelChanges, Side, StoreBuilder};

use super::arcs::Payload;
use super::budget::Budget;
use super::lists::Lists;
use crate::{Error, Result};

/// What an entry takes, without or with a weight or a row: vectors grow to twice what they hold. To write a snapshot
/// takes 32 more for each of its entries, or 40, by then of what edges were sorted in.
const ARC_BYTES: u64 = 20;
const DATA_ARC_BYTES: u64 = 48;
/// Most snapshots of one load.
const MAX_SNAPSHOTS: u32 = 100_000;

/// Over how many snapshots the edges of a load are spread, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Snapshots to be made. All have all vertices, the last has all edges.
    pub num_snapshots: u32,
    /// The share of the edges in the first, from 0 to 1; `None`: as many as each of the others adds.
    pub first_share: Option<f64>,
    /// Draws a snapshot for each edge.
    pub seed: u64,
}

impl Default for Spread {
    /// One snapshot with everything.
    fn default() -> Self {
        Self { num_snapshots: 1, first_share: None, seed: 1 }
    }
}

impl Spread {
    pub(crate) fn check(&self) -> Result<()> {
        if !(1..=MAX_SNAPSHOTS).contains(&self.num_snapshots) {
            let what = format!("a load makes 1 to {MAX_SNAPSHOTS} snapshots, not {}", self.num_snapshots);
            return Err(Error::Option(what));
        }
        match self.first_share {
            Some(share) if !(0.0..=1.0).contains(&share) => {
                Err(Error::Option(format!("the first snapshot's share of the edges is from 0 to 1, not {share}")))
            }
            _ => Ok(()),
        }
    }
}

/// Draws snapshots, and keeps what belongs to others than the first.
pub(crate) struct Spreader {
    num_later: u64,
    /// Draws below this are for the first snapshot.
    first_below: u64,
    salt: u64,
    is_undirected: bool,
    /// Whether anything stands beside an entry.
    has_data: bool,
    budget: Budget,
    out_side: Mutex<SpreadSide>,
    in_side: Mutex<SpreadSide>,
}

/// The entries of one side that came after the first snapshot.
#[derive(Debug, Default)]
struct SpreadSide {
    /// For each snapshot from the second on.
    levels: Vec<SpreadLevel>,
    num_arcs: u64,
}

/// The entries that one snapshot adds, sorted.
#[derive(Debug, Default)]
struct SpreadLevel {
    /// List and neighbour.
    keys: Vec<u64>,
    /// What stands beside them; empty where nothing does.
    data: Vec<ArcData>,
    num_loops: u64,
}

impl Spreader {
    /// None where there is nothing to be spread.
    pub(crate) fn new(spread: &Spread, direction: Direction, data_bytes: usize, budget: Budget) -> Option<Self> {
        let num_later = u64::from(spread.num_snapshots.checked_sub(2)?) + 1;
        let share = spread.first_share.unwrap_or(1.0 / f64::from(spread.num_snapshots));
        // Saturates for 1, where every draw but one of 2^64 is for the first snapshot.
        let first_below = (share * u64::MAX as f64) as u64;
        let side = || {
            let levels = (0..num_later).map(|_| SpreadLevel::default()).collect();
            Mutex::new(SpreadSide { levels, num_arcs: 0 })
        };
        Some(Self {
            num_later,
            first_below,
            salt: mixed(spread.seed ^ 0x9e37_79b9_7f4a_7c15),
            is_undirected: direction == Direction::Undirected,
            has_data: data_bytes > 0,
            budget,
            out_side: side(),
            in_side: side(),
        })
    }

    /// The snapshot that an edge comes with, from 0.
    fn draw(&self, source: VertexId, target: VertexId) -> u64 {
        let (source, target) = match self.is_undirected {
            true => (source.min(target), source.max(target)),
            false => (source, target),
        };
        let draw = mixed(self.salt.wrapping_add(u64::from(source) << 32 | u64::from(target)));
        match draw < self.first_below || self.first_below == u64::MAX {
            true => 0,
            false => 1 + ((u128::from(mixed(draw)) * u128::from(self.num_later)) >> 64) as u64,
        }
    }

    /// Notes lists on their way to a side, of which `first` is the first vertex.
    pub(crate) fn note<P: Payload>(&self, side: Side, first: VertexId, lists: &Lists<P>) -> Result<()> {
        let mut noted = self.side(side);
        let SpreadSide { levels, num_arcs } = &mut *noted;
        let before = *num_arcs;
        lists.for_each_arc(first, |arc| {
            let snapshot = match side {
                Side::Out => self.draw(arc.list(), arc.neighbour()),
                Side::In => self.draw(arc.neighbour(), arc.list()),
            };
            if let Some(level) = (snapshot as usize).checked_sub(1).and_then(|level| levels.get_mut(level)) {
                level.keys.push(arc.key());
                level.data.extend((!P::IS_EMPTY).then(|| arc.payload().data()));
                level.num_loops += u64::from(arc.list() == arc.neighbour());
                *num_arcs += 1;
            }
        });
        if *num_arcs == before {
            return Ok(());
        }
        let both = [&self.out_side, &self.in_side].map(|other| other.try_lock().map_or(0, |other| other.num_arcs));
        // The side that is locked here counts on its own.
        let arc_bytes = if self.has_data { DATA_ARC_BYTES } else { ARC_BYTES };
        let num_bytes = arc_bytes * (both.iter().sum::<u64>() + noted.num_arcs);
        self.budget.check("the edges of all snapshots but the first, which must be in memory,", num_bytes)
    }

    fn side(&self, side: Side) -> MutexGuard<'_, SpreadSide> {
        let side = match side {
            Side::Out => &self.out_side,
            Side::In => &self.in_side,
        };
        side.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Writes what each snapshot but the first adds to a graph with ids below `vertex_bound`.
    pub(crate) fn write(
        self,
        builder: &StoreBuilder,
        vertex_bound: usize,
        progress: &dyn Progress,
    ) -> Result<FinishedLevels> {
        progress.stage("write snapshots", Some(self.num_later));
        let mut writer = builder.levels_writer(vertex_bound);
        let is_undirected = self.is_undirected;
        let [out_levels, in_levels] = self.into_levels();
        for (out_level, in_level) in out_levels.into_iter().zip(in_levels) {
            progress.check()?;
            let num_loops = out_level.num_loops;
            let (out_added, in_added) = (out_level.into_arcs(), in_level.into_arcs());
            let num_arcs = out_added.len() as u64;
            writer.append(&LevelChanges {
                vertex_bound,
                out_added: &out_added,
                in_added: &in_added,
                num_edges_added: if is_undirected { (num_arcs + num_loops) / 2 } else { num_arcs },
                ..LevelChanges::default()
            })?;
            progress.advance(1);
        }
        Ok(writer.finish()?)
    }

    /// What each snapshot but the first adds: to out-lists, to in-lists.
    fn into_levels(self) -> [Vec<SpreadLevel>; 2] {
        [self.out_side, self.in_side].map(|side| side.into_inner().unwrap_or_else(|e| e.into_inner()).levels)
    }
}

impl SpreadLevel {
    /// The entries, sorted.
    fn into_arcs(self) -> Vec<ChangedArc> {
        let arc = |(i, &key): (usize, &u64)| ChangedArc {
            list: (key >> 32) as VertexId,
            neighbour: key as VertexId,
            data: self.data.get(i).copied().unwrap_or_default(),
        };
        let mut arcs: Vec<_> = self.keys.iter().enumerate().map(arc).collect();
        // They come by list and neighbour; parallel edges are in any order.
        arcs.sort_unstable();
        arcs
    }
}

/// The finisher of SplitMix64: every bit of the result depends on every bit of `word`.
fn mixed(word: u64) -> u64 {
    let mut word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spreader(num_snapshots: u32, first_share: Option<f64>, direction: Direction) -> Spreader {
        let spread = Spread { num_snapshots, first_share, seed: 7 };
        spread.check().unwrap();
        Spreader::new(&spread, direction, 0, Budget::new(None, None, 1).unwrap()).unwrap()
    }

    fn counts(spreader: &Spreader, num_snapshots: usize) -> Vec<u32> {
        let mut counts = vec![0; num_snapshots];
        (0..100_000_u32).for_each(|i| counts[spreader.draw(i % 300, i / 300) as usize] += 1);
        counts
    }

    #[test]
    fn edges_are_spread_as_they_should_be() {
        let counts_of = |first_share| counts(&spreader(5, first_share, Direction::Directed), 5);
        let near = |count: u32, expected: f64| (f64::from(count) - expected).abs() < 1000.0;
        assert!(counts_of(None).into_iter().all(|count| near(count, 20_000.0)));
        let found = counts_of(Some(0.8));
        assert!(near(found[0], 80_000.0) && found[1..].iter().all(|&count| near(count, 5_000.0)), "{found:?}");
        assert_eq!(counts_of(Some(1.0)), [100_000, 0, 0, 0, 0]);
        assert_eq!(counts_of(Some(0.0))[0], 0);
    }

    #[test]
    fn both_entries_of_an_edge_come_together() {
        let spreader = spreader(9, Some(0.3), Direction::Undirected);
        assert!((0..1000_u32).all(|i| spreader.draw(i, i * i) == spreader.draw(i * i, i)));
    }

    #[test]
    fn lists_are_noted_by_snapshot() {
        let spreader = spreader(3, Some(0.2), Direction::Directed);
        let lists = Lists::<()> {
            degrees: vec![40, 0, 60],
            neighbours: (0..40).chain(0..60).collect(),
            payloads: vec![(); 100],
            num_loops: 0,
            first_merged: None,
            first_beyond: None,
        };
        spreader.note(Side::Out, 5, &lists).unwrap();
        let expected: Vec<Vec<ChangedArc>> = [1, 2]
            .map(|snapshot| {
                let arcs = (0..40).map(|v| (5, v)).chain((0..60).map(|v| (7, v)));
                let arcs = arcs.filter(|&(u, v)| spreader.draw(u, v) == snapshot);
                arcs.map(|(list, neighbour)| ChangedArc { list, neighbour, data: ArcData::default() }).collect()
            })
            .into();
        let [levels, _] = spreader.into_levels();
        assert_eq!(levels.into_iter().map(SpreadLevel::into_arcs).collect::<Vec<_>>(), expected);
        assert!(expected.iter().all(|arcs| arcs.len() > 10));
    }

    #[test]
    fn what_cannot_be_spread_is_refused() {
        assert!(Spread { num_snapshots: 0, ..Spread::default() }.check().is_err());
        assert!(Spread { first_share: Some(1.5), ..Spread::default() }.check().is_err());
        assert!(Spread { first_share: Some(f64::NAN), ..Spread::default() }.check().is_err());
    }
}
