//! `family`: every kernel over a family of graphs, against every other side that is there.
//!
//! A default that was tuned on one graph is often bad on others, so tuning is judged by this matrix. Each pair of runs
//! is one fresh process of ours and one of GAP, on graphs with equal ids, from equal sources. A process runs its kernel
//! several times. Its first run, with opening or reading the graph, is the figure *first*. The median of the later runs
//! is *warm*, with the preparation redone; *kept* are later runs of ours that use what the first one prepared. Python libraries keep their graph, so they have only the figure *warm*. All files are in the page cache.

mod matrix;
mod members;
mod ours;
mod peers;

use std::path::{Path, PathBuf};

use anden::Session;
use anden_base::VertexId;
use anyhow::{Result, anyhow, bail};
use clap::Args;
use serde_json::Value;

use crate::gapbs::Gapbs;
use crate::harness::{Pairs, median};
use crate::kernels::Kernel;
use crate::report::{Report, number};
use matrix::{FamilyCell, FamilyRow, PeerPairs};
use members::{FamilyFiles, Unfit};
use ours::{FamilyTask, OurRuns};
use peers::{FamilyPeer, PeerRuns, Question};

pub use ours::run_child;

/// The kernels of the family.
const KERNELS: [Kernel; 7] =
    [Kernel::PageRank64, Kernel::PageRank, Kernel::Bfs, Kernel::Wcc, Kernel::Sssp, Kernel::Bc, Kernel::Triangles];

/// The runs of one process take about this many seconds in all.
const SECONDS_A_PROCESS: f64 = 0.3;
/// The least and the most runs of one process: a first one, and later ones with a median.
const RUNS: (usize, usize) = (4, 20);
/// A side that takes this many times as long as the fastest one runs only once.
const HOPELESS: f64 = 4.0;
/// The relative difference of scores that orders of summation in 32 bits explain.
const TOLERANCE: f64 = 5e-3;

/// Options of `family`.
#[derive(Args, Clone, Debug, Default)]
pub struct FamilyOptions {
    /// Print one JSON object for each graph.
    #[arg(long)]
    json: bool,
    /// Measure these graphs: kronSCALE, urandSCALE, gridWIDTH or the name of a file in the data directory [default:
    /// kron16 kron18 kron20 kron22 urand20 grid1000 and all files].
    #[arg(long, value_name = "NAME", num_args = 1..)]
    graphs: Vec<String>,
    /// A directory with graphs, in formats that a load takes without options.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The directory with the built programs of GAP.
    #[arg(long, value_name = "DIR")]
    gapbs: Option<PathBuf>,
    /// The Python in which NetworKit, igraph, SciPy, graph-mate or python-graphblas are installed.
    #[arg(long, value_name = "EXECUTABLE")]
    python: Option<PathBuf>,
    /// Measure only this kernel, by its name in the matrix.
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Number of pairs of runs.
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Number of threads of all sides [default: all].
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// The directory for files, which later runs use again [default: a temporary directory].
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
}

impl FamilyOptions {
    /// Two small graphs and one pair, for a smoke test.
    pub fn quick(json: bool, threads: usize, scratch: Option<&Path>) -> Self {
        let graphs = ["kron10", "grid30"].map(str::to_owned).to_vec();
        Self { json, graphs, pairs: 1, threads, scratch: scratch.map(Path::to_owned), ..Self::default() }
    }
}

/// The kernel of the family with this name.
fn kernel_named(name: &str) -> Result<Kernel> {
    KERNELS
        .into_iter()
        .find(|kernel| kernel.name() == name)
        .ok_or_else(|| anyhow!("--kernel {name}: one of {} expected", KERNELS.map(Kernel::name).join(", ")))
}

/// Runs the benchmark.
///
/// # Errors
/// A result of another side differs from ours; the matrix is printed before.
pub fn run(options: &FamilyOptions) -> Result<()> {
    let kernels = match &options.kernel {
        Some(name) => vec![kernel_named(name)?],
        None => KERNELS.to_vec(),
    };
    let members = members::members(&options.graphs, options.data.as_deref())?;
    let session = Session::new(options.threads)?;
    let threads = session.num_threads();
    let temporary = tempfile::tempdir()?;
    let scratch = options.scratch.as_deref().unwrap_or(temporary.path());
    // JSON has the standard output for itself.
    let say = |line: String| if options.json { eprintln!("{line}") } else { println!("{line}") };
    let gapbs = options.gapbs.as_deref().map(|directory| Gapbs::new(directory, threads)).transpose()?;
    let mut peers =
        peers::peers(gapbs.as_ref(), options.python.as_deref(), threads, |line| say(format!("skipped {line}")))?;
    let (mut rows, mut num_wrong) = (Vec::new(), 0);
    for member in &members {
        let files = match member.files(scratch, &session) {
            Ok(files) => files,
            Err(error) if error.is::<Unfit>() => {
                say(format!("skipped {}: {error:#}", member.name));
                continue;
            }
            Err(error) => return Err(error.context(member.name.clone())),
        };
        let graph = format!("{} ({} vertices, {} edges)", member.name, files.num_vertices, files.num_edges);
        eprintln!("{graph}");
        let mut cells = Vec::new();
        for &kernel in &kernels {
            let mut contest = Contest { kernel, files: &files, threads, name: &member.name, num_wrong: 0 };
            match contest.cell(options.pairs.max(1), &mut peers) {
                Ok(cell) => cells.push(cell),
                Err(error) if error.is::<Unfit>() => {
                    say(format!("skipped {} on {}: {error:#}", kernel.name(), member.name));
                }
                Err(error) => return Err(error),
            }
            num_wrong += contest.num_wrong;
        }
        peers.iter_mut().for_each(|peer| peer.end());
        if options.json {
            let mut report = Report::new("family", graph, threads, true);
            cells.iter().flat_map(FamilyCell::lines).for_each(|line| report.line(line));
            report.finish();
        }
        let FamilyFiles { num_vertices, num_edges, .. } = files;
        rows.push(FamilyRow { graph: member.name.clone(), num_vertices, num_edges, cells });
    }
    if !options.json {
        print!("{}", matrix::text(&kernels, &rows));
    }
    if num_wrong > 0 {
        bail!("{num_wrong} results of other sides differ from ours: see the lines that begin with error");
    }
    Ok(())
}

/// Another side in the contest for one cell.
struct FamilySide<'p> {
    peer: &'p mut dyn FamilyPeer,
    pairs: PeerPairs,
    /// Whether it runs in pairs. A side that was hopeless in the warm-up does not.
    is_measured: bool,
}

/// The runs of all sides for one kernel on one graph.
struct Contest<'a> {
    kernel: Kernel,
    files: &'a FamilyFiles,
    threads: usize,
    /// The name of the graph.
    name: &'a str,
    /// The number of results that differ from ours.
    num_wrong: usize,
}

impl Contest<'_> {
    /// Runs all sides in turn.
    fn cell(&mut self, num_pairs: usize, peers: &mut [Box<dyn FamilyPeer>]) -> Result<FamilyCell> {
        let warm_up = self.ours(self.source(0), 2)?;
        let mut sides = self.warmed_up(&warm_up, peers);
        let least = sides.iter().map(|side| side.pairs.warm.other()).fold(f64::INFINITY, f64::min);
        for side in &mut sides {
            side.is_measured = side.pairs.warm.other() <= HOPELESS * least;
            // The warm-up is a measurement only of a side that gets no other one.
            if side.is_measured {
                (side.pairs.first, side.pairs.warm, side.pairs.kept) = Default::default();
            }
        }
        let our_seconds = warm(&warm_up.runs);
        let num_runs = (SECONDS_A_PROCESS / our_seconds).clamp(RUNS.0 as f64, RUNS.1 as f64) as usize;
        let mut ours = Vec::new();
        for pair in 0..num_pairs {
            let source = self.source(pair);
            let question = Question { num_runs, wants_answer: false, ..self.question(source, &warm_up) };
            ours.push(self.round(&question, pair % 2 == 1, &mut sides)?);
        }
        let cell = self.summed(&ours, sides.into_iter().map(|side| side.pairs).collect());
        let milliseconds = number(cell.warm_seconds * 1e3);
        eprintln!("{} {}: {milliseconds} ms, {num_pairs} pairs of {num_runs} runs", self.name, self.kernel.name());
        Ok(cell)
    }

    /// The sides that have the kernel and could run it.
    fn warmed_up<'p>(&mut self, ours: &OurRuns, peers: &'p mut [Box<dyn FamilyPeer>]) -> Vec<FamilySide<'p>> {
        let mut sides = Vec::new();
        for peer in peers {
            if !peer.has(self.kernel) {
                continue;
            }
            if let Some(runs) = self.checked(peer.as_mut(), ours) {
                let name = peer.name().to_owned();
                let mut pairs =
                    PeerPairs { name, first: Pairs::default(), warm: Pairs::default(), kept: Pairs::default() };
                add(&mut pairs, ours, &runs);
                sides.push(FamilySide { peer: peer.as_mut(), pairs, is_measured: true });
            }
        }
        sides
    }

    /// One process of ours and one of each side that is measured.
    fn round(&self, question: &Question<'_>, is_reversed: bool, sides: &mut [FamilySide<'_>]) -> Result<OurRuns> {
        let ours = || self.ours(question.source, question.num_runs);
        let before = if is_reversed { None } else { Some(ours()?) };
        let mut runs = Vec::new();
        for side in sides.iter_mut().filter(|side| side.is_measured) {
            match side.peer.run(question) {
                Ok(theirs) => runs.push((&mut side.pairs, theirs)),
                Err(error) => eprintln!("skipped a pair of {}: {error:#}", side.pairs.name),
            }
        }
        let ours = before.map_or_else(ours, Ok)?;
        for (pairs, theirs) in runs {
            add(pairs, &ours, &theirs);
        }
        Ok(ours)
    }

    fn question(&self, source: VertexId, ours: &OurRuns) -> Question<'_> {
        Question {
            kernel: self.kernel,
            source,
            num_runs: ours.runs.len(),
            our_seconds: warm(&ours.runs),
            files: self.files,
            wants_answer: true,
        }
    }

    fn ours(&self, source: VertexId, num_runs: usize) -> Result<OurRuns> {
        let is_weighted = self.kernel == Kernel::Sssp;
        let database = if is_weighted { &self.files.weighted_database } else { &self.files.database };
        let task =
            FamilyTask { database: database.clone(), kernel: self.kernel, source, threads: self.threads, num_runs };
        task.run()
    }

    fn source(&self, pair: usize) -> VertexId {
        self.files.sources[pair % self.files.sources.len()]
    }

    /// Runs a peer as often as ours in the warm-up, and compares the results. `None` if the peer fails.
    fn checked(&mut self, peer: &mut dyn FamilyPeer, ours: &OurRuns) -> Option<PeerRuns> {
        let cell = format!("{} {}: {}", self.name, self.kernel.name(), peer.name());
        let runs = peer.run(&self.question(self.source(0), ours));
        let runs = runs.inspect_err(|error| eprintln!("skipped {cell}: {error:#}")).ok()?;
        if let Some(difference) = difference(&ours.answer, &runs.answer) {
            eprintln!("error: {cell}: {difference}");
            self.num_wrong += 1;
        }
        Some(runs)
    }

    fn summed(&self, ours: &[OurRuns], peers: Vec<PeerPairs>) -> FamilyCell {
        let of_all = |figure: &dyn Fn(&OurRuns) -> f64| median(&ours.iter().map(figure).collect::<Vec<_>>());
        let has_phases = ours.iter().all(|runs| !runs.first_phases.is_empty());
        FamilyCell {
            kernel: self.kernel,
            first_seconds: of_all(&|runs| runs.open_seconds + runs.runs[0]),
            open_seconds: of_all(&|runs| runs.open_seconds),
            warm_seconds: of_all(&|runs| warm(&runs.runs)),
            kept_seconds: of_all(&|runs| warm(runs.kept())),
            first_phase_seconds: has_phases.then(|| of_all(&|runs| warm(&runs.first_phases))),
            peers,
        }
    }
}

/// The median of the runs after the first; the first if it is the only one.
fn warm(runs: &[f64]) -> f64 {
    if runs.len() > 1 { median(&runs[1..]) } else { median(runs) }
}

/// Adds a pair of processes.
fn add(pairs: &mut PeerPairs, ours: &OurRuns, theirs: &PeerRuns) {
    pairs.warm.push(warm(&ours.runs), warm(&theirs.runs));
    pairs.kept.push(warm(ours.kept()), warm(&theirs.runs));
    if let (Some(read), Some(first)) = (theirs.read_seconds, theirs.runs.first()) {
        pairs.first.push(ours.open_seconds + ours.runs[0], read + first);
    }
}

/// The first figure that both sides give and that differs.
fn difference(ours: &Value, theirs: &Value) -> Option<String> {
    let figures = theirs.as_object()?;
    figures.iter().find_map(|(name, figure)| {
        let own = &ours[name];
        let is_equal = match (ours::numbers(own), ours::numbers(figure)) {
            (Some(own), Some(other)) => {
                // A peer may print fewer of the scores, but not none.
                let is_part = other.len() <= own.len() && other.is_empty() == own.is_empty();
                is_part && own.iter().zip(&other).all(|(a, b)| (a - b).abs() <= TOLERANCE * a.abs())
            }
            _ => own.is_null() || own == figure,
        };
        (!is_equal).then(|| format!("{name} {figure}, ours {own}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn different_results_are_named() {
        let ours = json!({ "reached": 7, "depth": 2, "top": [0.5, 0.25] });
        assert_eq!(difference(&ours, &json!({ "reached": 7 })), None);
        assert_eq!(difference(&ours, &json!({ "reached": 8 })), Some("reached 8, ours 7".into()));
        assert_eq!(difference(&ours, &json!({ "top": [0.5001, 0.25] })), None);
        assert!(difference(&ours, &json!({ "top": [0.6, 0.25] })).is_some());
        assert!(difference(&ours, &json!({ "reached": null })).is_some());
    }

    #[test]
    fn later_runs_are_warm() {
        assert_eq!((warm(&[9.0, 1.0, 3.0, 2.0]), warm(&[9.0])), (2.0, 9.0));
    }
}
