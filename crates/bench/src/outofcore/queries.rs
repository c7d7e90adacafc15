//! Queries with the recency model, and kernels that jump, with the advisor and without.

use std::path::PathBuf;

use anyhow::{Result, bail};
use engine::Database;

use super::child::{Outcome, Task};
use super::limit::Group;
use super::sequence::{self, Recency};
use super::side::Side;
use super::work::Work;
use super::{Ground, SHARES};
use crate::harness::Pairs;
use crate::report::{Line, Report};

/// More of a workload is not measured where a run without the advisor takes longer than this.
const MOST_SECONDS: f64 = 20.0;

/// A workload with so many queries a phase.
struct Asked {
    work: Work,
    alpha: f64,
    num_queries: &'static [usize],
    target: &'static str,
}

const FULL: [Asked; 8] = [
    Asked { work: Work::Fof, alpha: 0.5, num_queries: &[100, 1_000, 10_000, 50_000], target: "≤ 0.4" },
    Asked { work: Work::Bfs, alpha: 0.0, num_queries: &[1], target: "≤ 0.4" },
    Asked { work: Work::Edges, alpha: 0.1, num_queries: &[1_000, 10_000, 100_000, 1_000_000], target: "≤ 0.83" },
    Asked { work: Work::Edges, alpha: 0.5, num_queries: &[1_000, 10_000, 100_000, 1_000_000], target: "≤ 0.83" },
    Asked { work: Work::Edges, alpha: 1.0, num_queries: &[1_000, 10_000, 100_000, 1_000_000], target: "≤ 1.03" },
    Asked { work: Work::Edges, alpha: 0.0, num_queries: &[1_000, 10_000], target: "≤ 1.03" },
    Asked { work: Work::Paths, alpha: 0.0, num_queries: &[20, 200], target: "≤ 1.03" },
    Asked { work: Work::Triangles, alpha: 0.0, num_queries: &[1], target: "≤ 1.03" },
];

const QUICK: [Asked; 3] = [
    Asked { work: Work::Fof, alpha: 0.5, num_queries: &[100], target: "≤ 0.4" },
    Asked { work: Work::Bfs, alpha: 0.0, num_queries: &[1], target: "≤ 0.4" },
    Asked { work: Work::Edges, alpha: 0.5, num_queries: &[1_000], target: "≤ 0.83" },
];

/// Every workload at every share of memory.
pub(super) fn lines(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let all: &[Asked] = if ground.is_quick { &QUICK } else { &FULL };
    for asked in all {
        for share in SHARES {
            for &num_queries in asked.num_queries {
                let path = sequence_file(ground, asked, num_queries)?;
                let compared = compare(ground, asked, num_queries, share, &path, report);
                let name = format!("{} at 1/{share}", asked.work.name());
                let seconds = ground.unless_it_fits(&name, compared, report)?;
                if seconds.is_none_or(|seconds| seconds > MOST_SECONDS / 10.0) {
                    // Ten times as many take too long.
                    break;
                }
            }
        }
    }
    Ok(())
}

/// The vertices of both phases.
fn sequence_file(ground: &Ground<'_>, asked: &Asked, num_queries: usize) -> Result<PathBuf> {
    let path = ground.setting.scratch.join("outofcore.sequence");
    let recency = Recency { alpha: asked.alpha, seed: 1 + num_queries as u64 };
    let ends = if asked.work == Work::Paths { 2 } else { 1 };
    // Read with nothing limited, and unmapped before anything is measured.
    let view = Database::open_read_only(&ground.database)?.view()?;
    sequence::write(&path, &sequence::draw(&view, recency, 2 * ends * num_queries))?;
    Ok(path)
}

/// All sides in turn; the median seconds of the cold phase without the advisor.
fn compare(
    ground: &Ground<'_>,
    asked: &Asked,
    num_queries: usize,
    share: u64,
    path: &std::path::Path,
    report: &mut Report,
) -> Result<f64> {
    let group = ground.group(share)?;
    let measure = |side| measure(ground, asked.work, side, path, &group);
    let (mut on_off, mut oracle_off) = ([Pairs::default(), Pairs::default()], Pairs::default());
    let mut digests = None;
    for pair in 0..ground.setting.num_pairs {
        let (on, off) = match pair % 2 {
            0 => (measure(Side::On)?, measure(Side::Off)?),
            _ => {
                let off = measure(Side::Off)?;
                (measure(Side::On)?, off)
            }
        };
        let oracle = measure(Side::Oracle)?;
        for outcome in [&on, &off, &oracle] {
            let found: Vec<u64> = outcome.phases.iter().map(|phase| phase.digest).collect();
            if *digests.get_or_insert_with(|| found.clone()) != found {
                bail!("{}: the sides have different results", asked.work.name());
            }
        }
        for (place, pairs) in on_off.iter_mut().enumerate() {
            pairs.push(on.phases[place].seconds, off.phases[place].seconds);
        }
        oracle_off.push(oracle.phases[0].seconds, off.phases[0].seconds);
    }
    let name = match asked.work {
        Work::Edges | Work::Fof => {
            format!("{} α={} n={num_queries} at 1/{share}", asked.work.name(), asked.alpha)
        }
        Work::Paths => format!("{} n={num_queries} at 1/{share}", asked.work.name()),
        _ => format!("{} at 1/{share}", asked.work.name()),
    };
    report.line(Line::compared(format!("{name}, cold"), &on_off[0], "advisor off", asked.target));
    report.line(Line::compared(format!("{name}, warm"), &on_off[1], "advisor off", asked.target));
    report.line(Line::compared(format!("{name}, oracle, cold"), &oracle_off, "advisor off", "what could be had"));
    Ok(on_off[0].other())
}

fn measure(ground: &Ground<'_>, work: Work, side: Side, path: &std::path::Path, group: &Group) -> Result<Outcome> {
    let (threads, sequence) = (ground.setting.pool.num_threads(), Some(path.to_owned()));
    Task { database: ground.database.clone(), work, side, sequence, threads, num_phases: 2 }.run(Some(group))
}
