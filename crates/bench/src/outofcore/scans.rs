//! Whole-graph scans, against the speed of the disk and of scans with everything in memory.

use anden_testkit::memory_group::MemoryGroup;
use anyhow::{Result, bail};

use super::child::Outcome;
use super::disk::Probe;
use super::side::{Side, in_turn};
use super::work::{ITERATIONS, Work};
use super::{Ground, SHARES};
use crate::harness::{Pairs, median};
use crate::report::{Line, Report};

/// The target time of a scan, relative to the slower of disk and memory.
const TARGET: &str = "≤ 1.18";

const SCANS: [Work; 3] = [Work::Degrees, Work::Wcc, Work::PageRank];

/// Measures the disk, and each scan with a part of the database in memory.
pub(super) fn lines(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let (probe, lists) = (Probe::new(), ground.lists()?);
    let rates = (0..ground.setting.num_pairs).map(|_| probe.rate(&lists)).collect::<Result<Vec<_>>>()?;
    report.line(Line::figure("disk", "MB/s", median(&rates) / 1e6, probe.name()));
    let num_bytes = lists.metadata()?.len() as f64;
    for work in SCANS {
        let in_memory = in_memory(ground, work)?;
        report.line(Line::figure(format!("{} in memory", work.name()), "s", in_memory.phases[1].seconds, ""));
        for share in SHARES {
            let group = ground.group(share)?;
            let disk = || Ok(passes(work) * num_bytes / probe.rate(&lists)?);
            let scan = Scan { ground, work, name: format!("{} at 1/{share}", work.name()), in_memory: &in_memory };
            let compared = scan.compare(&group, disk, report);
            ground.unless_it_fits(&scan.name, compared, report)?;
        }
    }
    Ok(())
}

/// A scan with a part of the database in memory.
struct Scan<'a> {
    ground: &'a Ground<'a>,
    work: Work,
    name: String,
    in_memory: &'a Outcome,
}

impl Scan<'_> {
    fn compare(&self, group: &MemoryGroup, disk: impl Fn() -> Result<f64>, report: &mut Report) -> Result<()> {
        let Self { ground, work, name, in_memory } = self;
        let mut pairs = [Pairs::default(), Pairs::default()];
        let sides = work.sides();
        let (mut beside_off, mut peak) = (vec![[Pairs::default(), Pairs::default()]; sides.len()], 0);
        let (mut read, mut read_off) = (Vec::new(), Vec::new());
        for round in 0..ground.setting.num_pairs {
            let disk = disk()?;
            let outcomes = in_turn(sides, round, |side| ground.task(*work, side).run(Some(group)))?;
            let (on, off) = (&outcomes[0], &outcomes[1]);
            for outcome in &outcomes {
                if outcome.phases.iter().any(|phase| phase.digest != in_memory.phases[0].digest) {
                    bail!("{name}: another result than in memory");
                }
            }
            peak = on.peak.max(peak);
            for (pairs, place) in pairs.iter_mut().zip(0..) {
                pairs.push(on.phases[place].seconds, disk.max(in_memory.phases[1].seconds));
            }
            for (phases, outcome) in beside_off.iter_mut().zip(&outcomes) {
                for (pairs, place) in phases.iter_mut().zip(0..) {
                    pairs.push(on.phases[place].seconds, outcome.phases[place].seconds);
                }
            }
            for (outcome, all) in [(on, &mut read), (off, &mut read_off)] {
                all.extend(outcome.phases.iter().map(|phase| phase.bytes_read as f64 / 1e6));
            }
        }
        report.line(Line::compared(format!("{name}, cold"), &pairs[0], "disk or memory", TARGET));
        report.line(Line::compared(format!("{name}, warm"), &pairs[1], "disk or memory", TARGET));
        for (side, phases) in sides.iter().zip(&beside_off).filter(|(side, _)| **side != Side::On) {
            let target = if *side == Side::Off { "≤ 1.03" } else { "" };
            report.line(Line::compared(format!("{name}, cold"), &phases[0], side.name(), target));
            report.line(Line::compared(format!("{name}, warm"), &phases[1], side.name(), target));
        }
        let off = format!("a phase; without prefetcher {:.0}", median(&read_off));
        report.line(Line::figure(format!("{name}, read"), "MB", median(&read), off));
        report.line(Line::figure(format!("{name}, peak"), "MB", peak as f64 / 1e6, ""));
        Ok(())
    }
}

/// The least number of passes over the lists in a phase.
fn passes(work: Work) -> f64 {
    if work == Work::PageRank { f64::from(ITERATIONS) } else { 1.0 }
}

/// Runs the work without a limit, so that its second phase has everything in memory.
fn in_memory(ground: &Ground<'_>, work: Work) -> Result<Outcome> {
    let mut outcomes = Vec::new();
    for _ in 0..ground.setting.num_pairs.div_ceil(3) {
        outcomes.push(ground.task(work, Side::Off).run(None)?);
    }
    outcomes.sort_by(|a, b| a.phases[1].seconds.total_cmp(&b.phases[1].seconds));
    Ok(outcomes.swap_remove(outcomes.len() / 2))
}
