//! Our side: one kernel in a fresh process, the first run and the later ones.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anden::{Database, OpenOptions, Session, View};
use anden_base::VertexId;
use anden_kernels::SourceChoice;
use anden_kernels::bc::{BcParams, bc};
use anden_kernels::bfs::{BfsParams, bfs};
use anden_kernels::pagerank::{Algorithm, PageRankParams, Precision, pagerank};
use anden_kernels::sssp::{DistanceValue, SsspParams, sssp};
use anden_kernels::triangles::{TriangleParams, triangles};
use anden_kernels::wcc::{WccParams, wcc};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use super::kernel_named;
use super::members::Unfit;
use crate::harness::seconds;
use crate::kernels::{ITERATIONS, Kernel};

/// The number of largest scores that sides compare.
const TOP: usize = 5;

/// The task of a child process.
#[derive(Clone, Debug)]
pub(super) struct FamilyTask {
    pub(super) database: PathBuf,
    pub(super) kernel: Kernel,
    pub(super) source: VertexId,
    pub(super) threads: usize,
    pub(super) num_runs: usize,
}

/// The phase that makes a form of the graph, and is kept for later runs.
pub(super) const PREPARATION: &str = "preparation";

/// The two phases of a run that a kernel times.
pub(super) fn phases(kernel: Kernel) -> Option<(&'static str, &'static str)> {
    match kernel {
        Kernel::PageRank | Kernel::PageRank64 | Kernel::Triangles => Some((PREPARATION, "iterations")),
        Kernel::Bc => Some(("searches", "sums")),
        _ => None,
    }
}

/// The measurements of a child process.
#[derive(Clone, Debug)]
pub(super) struct OurRuns {
    /// Seconds from the start of the threads to the view.
    pub(super) open_seconds: f64,
    /// Seconds of each run, preparation included.
    pub(super) runs: Vec<f64>,
    /// Seconds of the first [phase](phases) of each run; empty if the kernel reports none.
    pub(super) first_phases: Vec<f64>,
    /// Seconds of each run with kept preparation, the first of which prepares; empty if the kernel prepares nothing.
    pub(super) kept_runs: Vec<f64>,
    /// The figures that must agree with those of other sides.
    pub(super) answer: Value,
}

impl FamilyTask {
    /// Runs the task in a child process.
    ///
    /// # Errors
    /// [`Unfit`] if the kernel refuses the graph. The child fails.
    pub(super) fn run(&self) -> Result<OurRuns> {
        let task = json!({
            "database": self.database,
            "kernel": self.kernel.name(),
            "source": self.source,
            "threads": self.threads,
            "num_runs": self.num_runs,
        });
        let program = std::env::current_exe()?;
        let arguments = ["family-child", &task.to_string()];
        let output = Command::new(program).args(arguments).stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            bail!("our {} on {} failed: {}", self.kernel.name(), self.database.display(), output.status);
        }
        let value: Value = serde_json::from_slice(&output.stdout).context("a child gave no report")?;
        if let Some(why) = value["refused"].as_str() {
            bail!(Unfit(why.to_owned()));
        }
        OurRuns::of(&value).ok_or_else(|| anyhow!("a child gave a strange report: {value}"))
    }

    /// Seconds of the runs, those of their first phase, and the answer of the last.
    fn runs(&self, view: &View) -> Result<(Vec<f64>, Vec<f64>, Value)> {
        let (mut runs, mut first_phases, mut last) = (Vec::new(), Vec::new(), None);
        for _ in 0..self.num_runs {
            // Freed before the clock starts.
            drop(last.take());
            let (time, outcome) = seconds(|| KernelOutcome::of(self.kernel, view, self.source));
            let outcome = outcome?;
            runs.push(time);
            first_phases.extend(outcome.first_phase_seconds());
            last = Some(outcome);
        }
        Ok((runs, first_phases, last.map_or(Value::Null, |outcome| outcome.answer())))
    }

    fn of(value: &Value) -> Result<Self> {
        let text = |name: &str| value[name].as_str().ok_or_else(|| anyhow!("{name}: text expected"));
        let number = |name: &str| value[name].as_u64().ok_or_else(|| anyhow!("{name}: a number expected"));
        Ok(Self {
            database: text("database")?.into(),
            kernel: kernel_named(text("kernel")?)?,
            source: VertexId::try_from(number("source")?)?,
            threads: number("threads")? as usize,
            num_runs: number("num_runs")? as usize,
        })
    }
}

impl OurRuns {
    fn of(value: &Value) -> Option<Self> {
        Some(Self {
            open_seconds: value["open_seconds"].as_f64()?,
            runs: numbers(&value["runs"])?,
            first_phases: numbers(&value["first_phases"])?,
            kept_runs: numbers(&value["kept_runs"])?,
            answer: value["answer"].clone(),
        })
    }
}

impl OurRuns {
    /// The runs with kept preparation; those of a kernel without preparation are all alike.
    pub(super) fn kept(&self) -> &[f64] {
        if self.kept_runs.is_empty() { &self.runs } else { &self.kept_runs }
    }
}

/// The numbers of a JSON array.
pub(super) fn numbers(value: &Value) -> Option<Vec<f64>> {
    value.as_array()?.iter().map(Value::as_f64).collect()
}

/// The main function of a child: opens the database, runs the kernel and prints the measurements.
pub fn run_child(text: &str) -> Result<()> {
    let value: Value = serde_json::from_str(text).context("a task as the parent writes it expected")?;
    let task = FamilyTask::of(&value)?;
    let start = Instant::now();
    let database = open(&task.database, task.threads)?;
    let view = database.view()?;
    let open_seconds = start.elapsed().as_secs_f64();
    let (runs, first_phases, answer) = match task.runs(&view) {
        Ok(measured) => measured,
        // Such as betweenness on a large grid, which has more shortest paths than a float holds.
        Err(error) if matches!(error.downcast_ref(), Some(anden_kernels::Error::Unsupported { .. })) => {
            println!("{}", json!({ "refused": format!("{error:#}") }));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let kept_runs = match phases(task.kernel) {
        // The files are mapped again, and verified by the first of these runs.
        Some((PREPARATION, _)) => task.runs(&open_cached(&task.database, &Session::new(task.threads)?)?.view()?)?.0,
        _ => Vec::new(),
    };
    println!(
        "{}",
        json!({
            "open_seconds": open_seconds,
            "runs": runs,
            "first_phases": first_phases,
            "kept_runs": kept_runs,
            "answer": answer,
        })
    );
    Ok(())
}

/// Opens a database whose kernels prepare anew in each run.
pub(super) fn open(database: &Path, threads: usize) -> Result<Database> {
    open_cached(database, &Session::new(threads)?.with_cache(Some(0)))
}

fn open_cached(database: &Path, session: &Session) -> Result<Database> {
    Ok(Database::open_with(database, &OpenOptions { read_only: true, ..OpenOptions::from(session) })?)
}

/// The result of a kernel, before the figures for comparisons are taken from it.
enum KernelOutcome {
    PageRank(anden_kernels::pagerank::PageRankResult),
    Bfs(anden_kernels::bfs::BfsResult),
    Wcc(anden_kernels::wcc::WccResult),
    Sssp(anden_kernels::sssp::SsspResult),
    Bc(anden_kernels::bc::BcResult),
    Triangles(anden_kernels::triangles::TriangleResult),
}

impl KernelOutcome {
    /// Runs the kernel with the context of the view, as the public methods of a view do.
    fn of(kernel: Kernel, view: &View, source: VertexId) -> Result<Self> {
        let (ctx, graph) = (&view.context(), view.graph());
        Ok(match kernel {
            Kernel::PageRank | Kernel::PageRank64 => {
                let precision = if kernel == Kernel::PageRank { Precision::F32 } else { Precision::F64 };
                let params = PageRankParams {
                    iterations: Some(ITERATIONS),
                    algorithm: Algorithm::Gap,
                    precision,
                    ..PageRankParams::default()
                };
                Self::PageRank(pagerank(ctx, graph, &params)?)
            }
            Kernel::Bfs => Self::Bfs(bfs(ctx, graph, &BfsParams { source, ..BfsParams::default() })?),
            Kernel::Wcc => Self::Wcc(wcc(ctx, graph, &WccParams::default())?),
            // Without the statistics that a view keeps, so each run scans the weights again.
            Kernel::Sssp => Self::Sssp(sssp(ctx, graph, &SsspParams { source, ..SsspParams::default() })?),
            Kernel::Bc => Self::Bc(bc(ctx, graph, &BcParams { sources: SourceChoice::Given(vec![source]) })?),
            Kernel::Triangles => Self::Triangles(triangles(ctx, graph, &TriangleParams::default())?),
            other => bail!("{} is not part of the family", other.name()),
        })
    }

    fn first_phase_seconds(&self) -> Option<f64> {
        match self {
            Self::PageRank(result) => Some(result.preparation_seconds),
            Self::Triangles(result) => Some(result.preparation_seconds),
            Self::Bc(result) => Some(result.search_seconds),
            _ => None,
        }
    }

    /// The figures that other sides give, too.
    fn answer(&self) -> Value {
        match self {
            Self::PageRank(result) => json!({ "top": top(&result.scores) }),
            Self::Bfs(result) => json!({ "reached": result.reached, "depth": result.depth }),
            Self::Wcc(result) => json!({ "components": result.components }),
            Self::Sssp(result) => {
                let (farthest, sum) = (whole(result.max_distance), whole(result.sum_distance));
                json!({ "reached": result.reached, "farthest": farthest, "sum": sum })
            }
            // Other sides scale the scores, so only shares of the largest one agree.
            Self::Bc(result) => {
                let top = top(&result.scores);
                match top.first().filter(|&&largest| largest > 0.0) {
                    Some(largest) => json!({ "top": top.iter().map(|score| score / largest).collect::<Vec<_>>() }),
                    None => json!({}),
                }
            }
            Self::Triangles(result) => json!({ "triangles": result.triangles }),
        }
    }
}

/// The largest scores, the largest first.
fn top(scores: &[f64]) -> Vec<f64> {
    let mut scores = scores.to_vec();
    scores.sort_by(|a, b| b.total_cmp(a));
    scores.truncate(TOP);
    scores
}

fn whole(distance: DistanceValue) -> Value {
    match distance {
        DistanceValue::Integer(sum) => sum.into(),
        DistanceValue::Float(sum) => sum.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_reach_the_child_unchanged() {
        let task = json!({ "database": "a.anden", "kernel": "bfs", "source": 7, "threads": 2, "num_runs": 3 });
        let read = FamilyTask::of(&task).unwrap();
        assert_eq!((read.kernel, read.source, read.num_runs), (Kernel::Bfs, 7, 3));
        assert!(FamilyTask::of(&json!({ "database": "a.anden", "kernel": "lcc" })).is_err());
    }

    #[test]
    fn top_scores_come_first() {
        assert_eq!(top(&[1.0, 5.0, 3.0, 2.0, 4.0, 0.0]), [5.0, 4.0, 3.0, 2.0, 1.0]);
    }
}
