//! Unmerged deltas that change every page, against the merged graph.

use std::path::PathBuf;

use anden_base::progress::Silent;
use anden_engine::{AppendOptions, Changes, Engine, Maintenance, MergeScope};
use anden_graph::Graph;
use anden_graph::generate::{Generator, UniformParams};
use anden_testkit::memory_group::MemoryGroup;
use anyhow::{Result, bail};

use super::child::Task;
use super::side::{Side, in_turn};
use super::work::Work;
use super::{Ground, SHARES};
use crate::graphs::copy_database;
use crate::harness::{Pairs, median};
use crate::report::{Line, Report};

const NUM_LEVELS: u64 = 5;

/// A delta has one edge for this many vertices, at random, so several vertices of each page change.
const VERTICES_AN_EDGE: usize = 1000;

/// The target time of a workload, relative to the merged graph.
const TARGET: &str = "≤ 1.60";

const WORKS: [Work; 4] = [Work::Degrees, Work::Wcc, Work::PageRank, Work::Bfs];

/// One graph in two forms.
struct Forms {
    with_deltas: PathBuf,
    merged: PathBuf,
}

/// Measures each workload with a part of the database in memory.
pub(super) fn lines(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let forms = Forms::make(ground)?;
    for work in WORKS {
        for share in SHARES {
            let name = format!("{} with {NUM_LEVELS} levels at 1/{share}", work.name());
            let compared = compare(ground, &forms, work, &ground.group(share)?, &name, report);
            ground.unless_it_fits(&name, compared, report)?;
        }
    }
    std::fs::remove_dir_all(&forms.with_deltas)?;
    std::fs::remove_dir_all(&forms.merged)?;
    Ok(())
}

fn compare(
    ground: &Ground<'_>,
    forms: &Forms,
    work: Work,
    group: &MemoryGroup,
    name: &str,
    report: &mut Report,
) -> Result<()> {
    let (mut phases, mut read, mut peak) = ([Pairs::default(), Pairs::default()], [Vec::new(), Vec::new()], 0);
    for round in 0..ground.num_runs() {
        let run =
            |database: &PathBuf| Task { database: database.clone(), ..ground.task(work, Side::On) }.run(Some(group));
        let outcomes = in_turn(&[&forms.with_deltas, &forms.merged], round, run)?;
        let (with_deltas, merged) = (&outcomes[0], &outcomes[1]);
        for (place, pairs) in phases.iter_mut().enumerate() {
            if with_deltas.phases[place].digest != merged.phases[place].digest {
                bail!("{name}: another result than merged");
            }
            pairs.push(with_deltas.phases[place].seconds, merged.phases[place].seconds);
        }
        for (outcome, read) in outcomes.iter().zip(&mut read) {
            read.extend(outcome.phases.iter().map(|phase| phase.bytes_read as f64 / 1e6));
        }
        peak = with_deltas.peak.max(peak);
    }
    for (pairs, phase) in phases.iter().zip(["cold", "warm"]) {
        report.line(Line::compared(format!("{name}, {phase}"), pairs, "merged", TARGET));
    }
    let merged = format!("a phase; merged {:.0}", median(&read[1]));
    report.line(Line::figure(format!("{name}, read"), "MB", median(&read[0]), merged));
    report.line(Line::figure(format!("{name}, peak"), "MB", peak as f64 / 1e6, ""));
    Ok(())
}

impl Forms {
    /// Copies the database, appends edges between random vertices, and merges a copy of that.
    fn make(ground: &Ground<'_>) -> Result<Self> {
        let (pool, scratch) = (&ground.setting.pool, &ground.setting.scratch);
        let [with_deltas, merged] = ["levelled.anden", "levelled-merged.anden"].map(|name| scratch.join(name));
        copy_database(&ground.database, &with_deltas)?;
        let database = Engine::open(&with_deltas)?;
        let num_vertices = database.view()?.vertex_bound();
        let options = AppendOptions { maintenance: Maintenance::Never, ..AppendOptions::default() };
        for seed in 0..NUM_LEVELS {
            let generator = Generator::uniform(&UniformParams { scale: num_vertices.ilog2(), degree: 1, seed })?;
            let mut edges = Vec::new();
            generator.edges_of_block(0, &mut edges);
            edges.truncate(num_vertices / VERTICES_AN_EDGE);
            let add = |changes: Changes, (source, target)| changes.add_edge(u64::from(source), u64::from(target));
            let changes = edges.into_iter().fold(Changes::default(), add);
            database.append_changes(&changes, &options, pool, &Silent)?;
        }
        database.close()?;
        copy_database(&with_deltas, &merged)?;
        let database = Engine::open(&merged)?;
        database.merge(MergeScope::All, pool, &Silent)?;
        database.close()?;
        Ok(Self { with_deltas, merged })
    }
}
