//! `outofcore`: a graph several times larger than memory.
//!
//! Every measurement runs in a process of its own, in a control group that limits memory to a part of the database,
//! page cache included. The page cache holds no file of the database at the start. The first phase is *cold*; the
//! second continues with the cache that the first left.
//!
//! The workloads are those of "Buffer Management for LLAMA" and of LLAMA's out-of-core evaluation (Macko, Marathe,
//! Margo, Seltzer, ICDE 2015): queries with the recency model, and kernels.

mod child;
mod disk;
mod growth;
mod lengths;
mod levels;
mod loading;
mod mechanisms;
mod queries;
mod resident;
mod scans;
mod sequence;
mod side;
mod spin;
mod work;

use std::path::{Path, PathBuf};

use anden_testkit::memory_group::MemoryGroup;
use anyhow::{Context, Result, bail};

use crate::graphs::Graphs;
use crate::report::{Line, Report};
use crate::setting::Setting;
use child::{Ended, NO_LIMIT, Task};
use side::Side;
use work::Work;

pub use child::run as run_child;

/// The parts that `--kernel` selects. `lengths` takes an hour, so it runs only if selected.
const PARTS: [&str; 9] =
    ["scans", "levels", "queries", "kernels", "resident", "growth", "mechanisms", "spin", "lengths"];

/// Memory limits: one part in this many of the database fits.
const SHARES: [u64; 2] = [3, 9];

/// The memory in bytes that a process needs besides the state of vertices.
const LEAST_BYTES: u64 = 16 << 20;

/// The database under test.
struct Ground<'a> {
    setting: &'a Setting,
    database: PathBuf,
    /// The size of its files in bytes.
    num_bytes: u64,
    is_quick: bool,
}

impl Ground<'_> {
    /// A control group with memory for one part in `share` of the database.
    fn group(&self, share: u64) -> Result<MemoryGroup> {
        limited_to((self.num_bytes / share).max(LEAST_BYTES))
    }

    /// A task with two phases, no query sequence and no time limit.
    fn task(&self, work: Work, side: Side) -> Task {
        Task {
            database: self.database.clone(),
            work,
            side,
            sequence: None,
            threads: self.setting.pool.num_threads(),
            num_phases: 2,
            most_seconds: NO_LIMIT,
            is_spinning: false,
        }
    }

    /// The number of repetitions of a long measurement.
    fn num_runs(&self) -> usize {
        self.setting.num_pairs.div_ceil(3)
    }

    /// Returns the measurement, or reports that the process was killed because the state of the vertices did not fit.
    /// In a quick run that is an error.
    fn unless_it_fits<T>(&self, name: &str, measured: Result<T>, report: &mut Report) -> Result<Option<T>> {
        match measured {
            Err(error) if !self.is_quick && error.is::<Ended>() => {
                report.line(Line::not_run(name, "", error.to_string()));
                Ok(None)
            }
            measured => measured.map(Some),
        }
    }

    /// The largest file, which holds the lists that a scan reads.
    fn lists(&self) -> Result<PathBuf> {
        let mut largest = (0, None);
        for entry in std::fs::read_dir(&self.database)? {
            let entry = entry?;
            let len = entry.metadata()?.len();
            if len > largest.0 {
                largest = (len, Some(entry.path()));
            }
        }
        largest.1.ok_or_else(|| anyhow::anyhow!("{}: no files", self.database.display()))
    }
}

/// A control group with a limit of `num_bytes`.
fn limited_to(num_bytes: u64) -> Result<MemoryGroup> {
    MemoryGroup::new(num_bytes).context(
        "cannot limit memory: that takes a control group of its own; run `sudo anden-bench outofcore`, or in a group of \
         yours `systemd-run --user --scope -p Delegate=yes anden-bench outofcore`",
    )
}

/// Runs the benchmark. A quick run without the right to limit memory reports that and skips the rest.
pub fn run(setting: &Setting, graphs: &Graphs<'_>, is_quick: bool, report: &mut Report) -> Result<()> {
    if let Some(part) = setting.kernel.as_ref().filter(|part| !PARTS.contains(&part.as_str())) {
        bail!("--kernel {part}: one of {} expected", PARTS.join(", "));
    }
    let is_wanted = |part| setting.kernel.as_deref().is_none_or(|wanted| wanted == part);
    match limited_to(1 << 30) {
        Ok(group) => drop(group),
        Err(error) if is_quick => {
            report.line(Line::not_run("outofcore", "", format!("{error:#}")));
            return Ok(());
        }
        // This part measures only the disk, without a limit.
        Err(_) if setting.kernel.as_deref() == Some("mechanisms") => {}
        Err(error) => return Err(error),
    }
    let database = graphs.database()?;
    let num_bytes = bytes_of(&database)?;
    let ground = Ground { setting, database, num_bytes, is_quick };
    report.line(Line::figure("database", "MB", num_bytes as f64 / 1e6, "all files"));
    if is_wanted("scans") {
        scans::lines(&ground, report)?;
    }
    if !is_quick && is_wanted("levels") {
        levels::lines(&ground, report)?;
    }
    if is_wanted("queries") {
        let asked: &[_] = if is_quick { &queries::QUICK } else { &queries::FULL };
        queries::lines(&ground, asked, report)?;
    }
    if !is_quick && (is_wanted("kernels") || is_wanted("resident")) {
        let database = graphs.weighted_database()?;
        let num_bytes = bytes_of(&database)?;
        report.line(Line::figure("database with weights", "MB", num_bytes as f64 / 1e6, "all files"));
        let weighted = Ground { setting, database, num_bytes, is_quick };
        if is_wanted("kernels") {
            queries::lines(&ground, &queries::KERNELS, report)?;
            queries::lines(&weighted, &queries::WEIGHTED, report)?;
        }
        if is_wanted("resident") {
            resident::lines(&ground, &resident::PLAIN, report)?;
            resident::lines(&weighted, &resident::WEIGHTED, report)?;
            resident::idle(&ground, report)?;
        }
    }
    // This part generates several graphs.
    if !is_quick && is_wanted("growth") {
        growth::lines(&ground, report)?;
    }
    if !is_quick && is_wanted("mechanisms") {
        mechanisms::lines(&ground, report)?;
    }
    if !is_quick && is_wanted("spin") {
        spin::lines(&ground, report)?;
    }
    if setting.kernel.as_deref() == Some("lengths") {
        lengths::lines(&ground, report)?;
    }
    Ok(())
}

/// The total size of the files in a directory, in bytes.
fn bytes_of(directory: &Path) -> Result<u64> {
    std::fs::read_dir(directory)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}
