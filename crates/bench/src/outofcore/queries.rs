//! Queries with the recency model, and kernels with random access, with and without the prefetcher.
//!
//! Plain maps may take a hundred times as long. Therefore a first run without the prefetcher counts the queries of one
//! second, and all sides run that number.

use std::path::{Path, PathBuf};

use anden_base::VertexId;
use anden_engine::Engine;
use anden_testkit::memory_group::MemoryGroup;
use anyhow::{Result, bail};

use super::child::{NO_LIMIT, Outcome, Task};
use super::sequence::{self, QUEUE_LEN, Recency};
use super::side::{Side, in_turn};
use super::work::Work;
use super::{Ground, SHARES};
use crate::harness::Pairs;
use crate::report::{Line, Report};

/// The time limit of a phase of queries without the prefetcher. All sides run the number of queries answered in it.
const QUERY_SECONDS: f64 = 1.0;

/// The time limit of a phase of a kernel. A longer phase is cut off and reported as such.
const KERNEL_SECONDS: f64 = 15.0;

/// Kernels that take longer than this without the prefetcher run in fewer pairs.
const LONG_SECONDS: f64 = 5.0;

/// The number of pairs of long kernels.
const FEW_PAIRS: usize = 3;

/// A workload with numbers of queries a phase, used as far as time permits.
pub(super) struct Asked {
    work: Work,
    alpha: f64,
    num_queries: &'static [usize],
    target: &'static str,
}

pub(super) const FULL: [Asked; 8] = [
    Asked { work: Work::Fof, alpha: 0.5, num_queries: &[1_000, 10_000, 50_000], target: "≤ 0.4" },
    Asked { work: Work::Bfs, alpha: 0.0, num_queries: &[1], target: "≤ 0.4" },
    Asked { work: Work::Edges, alpha: 0.1, num_queries: &[1_000, 10_000, 100_000, 1_000_000], target: "≤ 0.83" },
    Asked { work: Work::Edges, alpha: 0.5, num_queries: &[1_000, 10_000, 100_000, 1_000_000], target: "≤ 0.83" },
    Asked { work: Work::Edges, alpha: 1.0, num_queries: &[1_000, 10_000, 100_000, 1_000_000], target: "≤ 1.03" },
    Asked { work: Work::Edges, alpha: 0.0, num_queries: &[1_000, 10_000, 100_000, 1_000_000], target: "≤ 1.03" },
    Asked { work: Work::Paths, alpha: 0.0, num_queries: &[1_000], target: "≤ 1.03" },
    Asked { work: Work::Triangles, alpha: 0.0, num_queries: &[1], target: "≤ 1.03" },
];

pub(super) const QUICK: [Asked; 3] = [
    Asked { work: Work::Fof, alpha: 0.5, num_queries: &[100], target: "≤ 0.4" },
    Asked { work: Work::Bfs, alpha: 0.0, num_queries: &[1], target: "≤ 0.4" },
    Asked { work: Work::Edges, alpha: 0.5, num_queries: &[1_000], target: "≤ 0.83" },
];

/// Our kernels that the literature does not measure out of core.
pub(super) const KERNELS: [Asked; 5] = [
    Asked { work: Work::Bc, alpha: 0.0, num_queries: &[1], target: "≤ 1.03" },
    Asked { work: Work::Kcore, alpha: 0.0, num_queries: &[1], target: "≤ 1.03" },
    Asked { work: Work::Cdlp, alpha: 0.0, num_queries: &[1], target: "≤ 1.03" },
    Asked { work: Work::Scc, alpha: 0.0, num_queries: &[1], target: "≤ 1.03" },
    Asked { work: Work::Lcc, alpha: 0.0, num_queries: &[1], target: "≤ 1.03" },
];

/// Workloads on a graph with weights.
pub(super) const WEIGHTED: [Asked; 4] = [
    Asked { work: Work::Sssp, alpha: 0.0, num_queries: &[1], target: "≤ 1.03" },
    Asked { work: Work::BellmanFord, alpha: 0.0, num_queries: &[1], target: "≤ 1.03" },
    Asked { work: Work::WeightedPageRank, alpha: 0.0, num_queries: &[1], target: "≤ 1.03" },
    Asked { work: Work::LightPaths, alpha: 0.0, num_queries: &[1_000], target: "≤ 1.03" },
];

/// Measures `all` workloads at every share of memory.
pub(super) fn lines(ground: &Ground<'_>, all: &[Asked], report: &mut Report) -> Result<()> {
    for asked in all {
        let drawn = draw(ground, asked)?;
        for share in SHARES {
            let name = format!("{} at 1/{share}", asked.work.name());
            let group = ground.group(share)?;
            let compared = Comparison { ground, asked, drawn: &drawn, share, group: &group }.lines(report);
            ground.unless_it_fits(&name, compared, report)?;
        }
    }
    Ok(())
}

/// Draws the vertices for two phases of the largest number of queries.
fn draw(ground: &Ground<'_>, asked: &Asked) -> Result<Vec<VertexId>> {
    let most = asked.num_queries.last().copied().unwrap_or(0);
    // The view is read without a limit, and unmapped before a measurement begins.
    let view = Engine::open_read_only(&ground.database)?.view()?;
    Ok(sequence::draw(&view, Recency { alpha: asked.alpha, cap: QUEUE_LEN, seed: 1 }, 2 * asked.work.num_ends() * most))
}

/// A workload with a part of the database in memory.
struct Comparison<'a> {
    ground: &'a Ground<'a>,
    asked: &'a Asked,
    drawn: &'a [VertexId],
    share: u64,
    group: &'a MemoryGroup,
}

impl Comparison<'_> {
    /// Measures all numbers of queries for which time suffices without the prefetcher. If none fits, measures the
    /// number that fits.
    fn lines(&self, report: &mut Report) -> Result<()> {
        let (work, num_queries) = (self.asked.work, self.asked.num_queries);
        let most = num_queries.last().copied().unwrap_or(0);
        let most_seconds = if work.is_asked() { QUERY_SECONDS } else { KERNEL_SECONDS };
        let alone = self.measure(Side::Off, &self.sequence(most)?, most_seconds)?;
        let num_done = alone.phases.iter().map(|phase| phase.num_done as usize).min().unwrap_or(0);
        if num_done == 0 {
            return self.cut_off(&alone, most_seconds, report);
        }
        let is_long = alone.phases[0].seconds > LONG_SECONDS;
        let num_pairs = self.ground.setting.num_pairs;
        let num_pairs = if is_long { num_pairs.min(FEW_PAIRS) } else { num_pairs };
        let mut sizes: Vec<usize> = num_queries.iter().copied().filter(|&size| size <= num_done).collect();
        // If the possible number is far from all planned ones, a line for it tells more than none.
        if sizes.last().is_none_or(|&last| last < num_done / 4) {
            sizes.push(round(num_done));
        }
        for size in sizes {
            self.pairs(size, num_pairs, report)?;
        }
        Ok(())
    }

    /// Reports a run without the prefetcher that did not end in time.
    fn cut_off(&self, off: &Outcome, most_seconds: f64, report: &mut Report) -> Result<()> {
        let on = self.measure(Side::On, &self.sequence(1)?, most_seconds)?;
        for (side, outcome) in [(Side::Off, off), (Side::On, &on)] {
            let is_cut = outcome.phases[0].num_done == 0;
            let what = if is_cut { "or more: cut off" } else { "one run" };
            let name = format!("{} at 1/{}, cold, {}", self.asked.work.name(), self.share, side.name());
            report.line(Line::figure(name, "s", outcome.phases[0].seconds, what));
        }
        Ok(())
    }

    /// Measures all sides in turn.
    fn pairs(&self, num_queries: usize, num_pairs: usize, report: &mut Report) -> Result<()> {
        let (work, path) = (self.asked.work, self.sequence(num_queries)?);
        let sides = work.sides();
        let mut compared = vec![[Pairs::default(), Pairs::default()]; sides.len()];
        let mut digests = None;
        for round in 0..num_pairs {
            let outcomes = in_turn(sides, round, |side| self.measure(side, &path, NO_LIMIT))?;
            for outcome in &outcomes {
                let found: Vec<u64> = outcome.phases.iter().map(|phase| phase.digest).collect();
                if *digests.get_or_insert_with(|| found.clone()) != found {
                    bail!("{}: the sides have different results", work.name());
                }
            }
            // The oracle is compared with plain maps, and the prefetcher with all other sides.
            for ((outcome, side), phases) in outcomes.iter().zip(sides).zip(&mut compared) {
                let (ours, other) = if side.is_oracle() { (outcome, &outcomes[1]) } else { (&outcomes[0], outcome) };
                for (place, pairs) in phases.iter_mut().enumerate() {
                    pairs.push(ours.phases[place].seconds, other.phases[place].seconds);
                }
            }
        }
        let name = self.name(num_queries);
        for (side, phases) in sides.iter().zip(&compared).filter(|(side, _)| **side != Side::On) {
            let (name, other, targets) = match side {
                Side::Oracle => (format!("{name}, oracle"), Side::Off, [""; 2]),
                Side::Off => (name.clone(), *side, [self.asked.target, "≤ 1.03"]),
                _ => (name.clone(), *side, [""; 2]),
            };
            for ((phase, pairs), target) in ["cold", "warm"].iter().zip(phases).zip(targets) {
                report.line(Line::compared(format!("{name}, {phase}"), pairs, other.name(), target));
            }
        }
        Ok(())
    }

    fn name(&self, num_queries: usize) -> String {
        let (name, alpha, share) = (self.asked.work.name(), self.asked.alpha, self.share);
        match self.asked.work {
            Work::Edges | Work::Fof => format!("{name} α={alpha} n={num_queries} at 1/{share}"),
            Work::Paths | Work::LightPaths => format!("{name} n={num_queries} at 1/{share}"),
            _ => format!("{name} at 1/{share}"),
        }
    }

    /// Writes the first drawn vertices for two phases of `num_queries`. Returns the file.
    fn sequence(&self, num_queries: usize) -> Result<PathBuf> {
        let path = self.ground.setting.scratch.join("outofcore.sequence");
        let len = (2 * self.asked.work.num_ends() * num_queries).min(self.drawn.len());
        sequence::write(&path, &self.drawn[..len])?;
        Ok(path)
    }

    fn measure(&self, side: Side, sequence: &Path, most_seconds: f64) -> Result<Outcome> {
        let sequence = Some(sequence.to_owned());
        let task = Task { sequence, most_seconds, ..self.ground.task(self.asked.work, side) };
        task.run(Some(self.group))
    }
}

/// The number rounded down to one significant digit.
fn round(number: usize) -> usize {
    let unit = 10_usize.pow(number.checked_ilog10().unwrap_or(0));
    number / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_queries_are_round() {
        assert_eq!([0, 1, 9, 10, 19, 4_321].map(round), [0, 1, 9, 10, 10, 4_000]);
    }
}
