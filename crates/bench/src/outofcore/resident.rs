//! The cost of an idle prefetcher: with everything in memory, and without queries.

use std::time::Duration;

use anden_engine::{Engine, Prefetch, Prefetcher};
use anden_graph::{Parts, WillNeed};
use anyhow::{Result, bail};

use super::Ground;
use super::child::{Outcome, Task};
use super::side::{Side, in_turn};
use super::work::Work;
use crate::harness::Pairs;
use crate::report::{Line, Report};

pub(super) const PLAIN: [Work; 10] = [
    Work::Degrees,
    Work::Wcc,
    Work::PageRank,
    Work::Bfs,
    Work::Bc,
    Work::Scc,
    Work::Kcore,
    Work::Cdlp,
    Work::Triangles,
    Work::Lcc,
];

/// Workloads on a graph with weights.
pub(super) const WEIGHTED: [Work; 2] = [Work::Sssp, Work::WeightedPageRank];

/// The phases of a run. The first reads the files; the fastest of the others counts.
const NUM_PHASES: usize = 6;

/// The time without queries.
const IDLE: Duration = Duration::from_secs(3);

/// Measures kernels with everything in memory, with and without the prefetcher.
pub(super) fn lines(ground: &Ground<'_>, works: &[Work], report: &mut Report) -> Result<()> {
    for &work in works {
        let mut pairs = Pairs::default();
        for pair in 0..ground.setting.num_pairs {
            let outcomes = in_turn(&[Side::On, Side::Off], pair, |side| measure(ground, work, side))?;
            let (on, off) = (&outcomes[0], &outcomes[1]);
            if on.phases[0].digest != off.phases[0].digest {
                bail!("{}: the sides have different results", work.name());
            }
            pairs.push(warm_seconds(on), warm_seconds(off));
        }
        report.line(Line::compared(format!("{} in memory", work.name()), &pairs, "prefetcher off", "≤ 1.01"));
    }
    Ok(())
}

/// Reports the processor time of idle prefetcher threads.
pub(super) fn idle(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let millis = idle_millis(ground)?;
    let what = format!("of processor time in {} s with a prefetcher that no reader asks", IDLE.as_secs());
    report.line(Line::figure("idle", "ms", millis, what));
    Ok(())
}

fn warm_seconds(outcome: &Outcome) -> f64 {
    outcome.phases.iter().skip(1).map(|phase| phase.seconds).fold(f64::INFINITY, f64::min)
}

fn measure(ground: &Ground<'_>, work: Work, side: Side) -> Result<Outcome> {
    let is_long = matches!(work, Work::Triangles | Work::Lcc | Work::Cdlp | Work::Kcore);
    let num_phases = if is_long { 3 } else { NUM_PHASES };
    Task { num_phases, ..ground.task(work, side) }.run(None)
}

/// The processor time of all threads of this process while its prefetcher threads are idle. They had work before.
fn idle_millis(ground: &Ground<'_>) -> Result<f64> {
    let prefetcher = Prefetcher::default();
    let view = prefetcher.attach(&Engine::open_read_only(&ground.database)?.view()?, Prefetch::Frontier);
    view.will_need(anden_graph::Direction::Out, Parts::Targets, &(0..1000).collect::<Vec<_>>());
    std::thread::sleep(IDLE / 10);
    let before = processor_nanos()?;
    std::thread::sleep(IDLE);
    Ok((processor_nanos()? - before) as f64 / 1e6)
}

/// The processor time of all threads of this process, in nanoseconds.
fn processor_nanos() -> Result<u64> {
    let mut sum = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        sum += text.split(' ').next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum)
}
