//! Concurrent queries and analyses, with and without arriving edges.

use std::time::{Duration, Instant};

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_engine::{Missing, Split, Update, Workers};
use anden_graph::{Graph, WeightedEdges};
use anden_kernels::Context;
use anden_kernels::pagerank::{PageRankParams, pagerank};
use anden_kernels::sssp::{Distances, SsspParams, sssp};
use anyhow::{Result, anyhow, ensure};

use super::ground::{Ground, WeightedEdge};
use super::navigation::{Question, client, updates};
use super::stage::{Client, Clock, quantile, side_by_side};
use crate::harness::seconds;
use crate::report::{Line, Report};
use crate::setting::Setting;

/// The edges that arrive a second, and in one transaction.
const ARRIVALS_A_SECOND: usize = 100_000;
const BATCH: usize = 1000;
/// The memtable size that starts a checkpoint, in lines with rare checkpoints instead of one every 64 MB.
const RARE_CHECKPOINT_BYTES: u64 = 1 << 30;
/// The time to verify the results of a run against plain graphs, in the order of the results.
const CHECK_TIME: Duration = Duration::from_secs(8);

/// The result of an analysis.
enum Finding {
    Distances { source: VertexId, distances: Vec<u64> },
    Ranks(Vec<f64>),
}

/// A finished analysis.
struct Analysis {
    seconds: f64,
    /// The number of edges in its view.
    num_edges: u64,
    finding: Finding,
}

/// The result of a client.
enum Done {
    /// The number of queries.
    Asked(u64),
    Analysed(Vec<Analysis>),
    /// The seconds of each transaction.
    Ingested(Vec<f64>),
}

impl Finding {
    /// Computes shortest paths from a vertex for even numbers, ranks for odd ones.
    fn of(ctx: &Context<'_>, graph: &impl WeightedEdges, number: usize) -> Result<Self> {
        if number % 2 == 1 {
            return Ok(Self::Ranks(pagerank(ctx, graph, &PageRankParams::default())?.scores));
        }
        let source = (number as u64 * 7_919 % graph.vertex_bound() as u64) as VertexId;
        match sssp(ctx, graph, &SsspParams { source, ..SsspParams::default() })?.distances {
            Distances::Integer(distances) => Ok(Self::Distances { source, distances }),
            Distances::Float(_) => Err(anyhow!("integer distances expected")),
        }
    }

    /// Whether a kernel on `graph` computes this result.
    fn is_right(&self, ctx: &Context<'_>, graph: &impl WeightedEdges) -> Result<bool> {
        match self {
            Self::Distances { source, distances } => {
                let params = SsspParams { source: *source, ..SsspParams::default() };
                Ok(sssp(ctx, graph, &params)?.distances == Distances::Integer(distances.clone()))
            }
            Self::Ranks(ranks) => {
                let truth = pagerank(ctx, graph, &PageRankParams::default())?.scores;
                let is_near = |(&found, &truth): (&f64, &f64)| (found - truth).abs() <= 1e-9 * truth;
                Ok(truth.len() == ranks.len() && ranks.iter().zip(&truth).all(is_near))
            }
        }
    }
}

/// A client that analyses the newest committed version repeatedly.
fn analyst<'a>(ground: &'a Ground, workers: &'a Workers) -> Client<'a, Done> {
    Box::new(move |clock: &Clock<'_>| {
        let mut done: Vec<Analysis> = Vec::new();
        while clock.is_running() {
            let number = done.len();
            let analysis = workers.analyse(|pool| -> Result<Analysis> {
                let (seconds, found) = seconds(|| {
                    let view = ground.database.view()?;
                    Ok::<_, anyhow::Error>((view.num_edges(), Finding::of(&Context::new(pool), &view, number)?))
                });
                let (num_edges, finding) = found?;
                Ok(Analysis { seconds, num_edges, finding })
            })?;
            done.push(analysis?);
        }
        Ok(Done::Analysed(done))
    })
}

/// Queries a second and analyses a second.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    navigational: f64,
    analytic: f64,
}

/// The rate of analyses if both kernels ran equally often.
fn analytic_rate(analyses: &[Analysis]) -> f64 {
    let mean = |first: usize| {
        let times: Vec<f64> = analyses.iter().skip(first).step_by(2).map(|analysis| analysis.seconds).collect();
        times.iter().sum::<f64>() / times.len().max(1) as f64
    };
    let both = mean(0) + if analyses.len() > 1 { mean(1) } else { mean(0) };
    if both > 0.0 { 2.0 / both } else { 0.0 }
}

/// The concurrent clients of a run.
#[derive(Clone, Copy)]
struct Cast {
    num_askers: usize,
    has_analyst: bool,
    ingests: bool,
}

struct Outcome {
    rates: Rates,
    analyses: Vec<Analysis>,
    /// The seconds of each transaction.
    commits: Vec<f64>,
    seconds: f64,
}

fn play(ground: &Ground, split: Split, cast: Cast, arrivals: &[Vec<Update>], time: Duration) -> Result<Outcome> {
    let workers = Workers::new(split);
    let mut clients: Vec<Client<'_, Done>> = Vec::new();
    for number in 0..cast.num_askers {
        let first = number * ground.pairs.len() / cast.num_askers;
        let ask = client(&ground.database, &workers, Question::Path, &ground.pairs, first);
        clients.push(Box::new(move |clock: &Clock<'_>| Ok(Done::Asked(ask(clock)?))));
    }
    if cast.has_analyst {
        clients.push(analyst(ground, &workers));
    }
    if cast.ingests {
        clients.push(Box::new(move |clock: &Clock<'_>| Ok(Done::Ingested(ingest(ground, arrivals, clock)?))));
    }
    let (done, seconds) = side_by_side(clients, time)?;
    let mut outcome =
        Outcome { rates: Rates::default(), analyses: Vec::new(), commits: Vec::new(), seconds: time.as_secs_f64() };
    for done in done {
        match done {
            // Query clients stop when the time is over. An analysis runs to its end.
            Done::Asked(number) => outcome.rates.navigational += number as f64 / time.as_secs_f64(),
            Done::Analysed(analyses) => outcome.analyses = analyses,
            Done::Ingested(commits) => outcome.commits = commits,
        }
    }
    ensure!(seconds >= time.as_secs_f64(), "the clients ended early");
    outcome.rates.analytic = analytic_rate(&outcome.analyses);
    Ok(outcome)
}

/// Applies the transactions at their scheduled times until the run ends or none is left.
fn ingest(ground: &Ground, arrivals: &[Vec<Update>], clock: &Clock<'_>) -> Result<Vec<f64>> {
    let pool = Pool::new(1)?;
    let start = Instant::now();
    let mut times = Vec::with_capacity(arrivals.len());
    for (number, batch) in arrivals.iter().enumerate() {
        let due = start + Duration::from_secs_f64((number * BATCH) as f64 / ARRIVALS_A_SECOND as f64);
        if let Some(early) = due.checked_duration_since(Instant::now()) {
            std::thread::sleep(early);
        }
        if !clock.is_running() {
            break;
        }
        let (time, applied) = seconds(|| ground.database.apply(batch, Missing::Lenient, &pool));
        applied?;
        times.push(time);
    }
    Ok(times)
}

/// Verifies results against kernels on a plain graph of the edges that had arrived, for at most `time`. Returns the
/// number of verified results. An edge count between two transactions is an error too.
fn check(
    setting: &Setting,
    ground: &Ground,
    edges: &[WeightedEdge],
    analyses: &[Analysis],
    time: Duration,
) -> Result<usize> {
    let base = ground.edges()?;
    let ctx = Context::new(&setting.pool);
    let (mut num_checked, begin) = (0, Instant::now());
    for analysis in analyses {
        if begin.elapsed() >= time {
            break;
        }
        let finding = &analysis.finding;
        let num_new = (analysis.num_edges - base.len() as u64) as usize;
        ensure!(num_new.is_multiple_of(BATCH), "{}: an analysis saw {num_new} new edges", ground.name);
        let plain = ground.plain(&base, &edges[..num_new])?;
        ensure!(finding.is_right(&ctx, &plain)?, "{}: an analysis of {num_new} new edges is wrong", ground.name);
        num_checked += 1;
    }
    Ok(num_checked)
}

/// Measures queries and analyses alone on their share of the cores, together, and together while edges arrive.
pub(super) fn lines(setting: &Setting, ground: &Ground, is_quick: bool, report: &mut Report) -> Result<()> {
    let time = Duration::from_millis(if is_quick { 300 } else { 5_000 });
    let cores = setting.pool.num_threads();
    let num_batches = 2 * ((time.as_secs_f64() * ARRIVALS_A_SECOND as f64) as usize / BATCH);
    let edges = ground.new_edges(num_batches * BATCH)?;
    let arrivals: Vec<Vec<Update>> = edges.chunks(BATCH).map(|batch| updates(batch, true)).collect();
    let shared = Split::of_cores(cores);
    let cast = |num_askers, has_analyst, ingests| Cast { num_askers, has_analyst, ingests };
    let name = ground.name;
    // Alone, each runs on its share of the cores, because analyses do not scale linearly to all cores.
    let alone = |what: &str, report: &mut Report| -> Result<Rates> {
        let navigational = play(ground, shared, cast(shared.navigational, false, false), &[], time)?.rates.navigational;
        let analytic = play(ground, shared, cast(0, true, false), &[], time)?.rates.analytic;
        let with = |num_cores: usize| format!("{num_cores} of {cores} cores");
        let (paths, analyses) = (format!("{name}: paths alone{what}"), format!("{name}: analyses alone{what}"));
        report.line(Line::figure(paths, "k/s", navigational / 1e3, with(shared.navigational)));
        let turns = format!("SSSP and PageRank in turn, {}", with(shared.analytics));
        report.line(Line::figure(analyses, "1/s", analytic, turns));
        Ok(Rates { navigational, analytic })
    };
    let shares = alone("", report)?;
    let mut compare = |what: &str, rates: Rates| {
        let pairs = [
            (format!("{name}: paths {what}"), "k/s", rates.navigational / 1e3, shares.navigational / 1e3),
            (format!("{name}: analyses {what}"), "1/s", rates.analytic, shares.analytic),
        ];
        for (name, unit, ours, share) in pairs {
            let ratio = ours / share;
            report.line(Line {
                other: Line::beside(share, "alone on these cores"),
                ratio: Some((ratio, ratio, ratio)),
                ..Line::figure(name, unit, ours, "≥ 0.8")
            });
        }
    };
    let both = play(ground, shared, cast(shared.navigational, true, false), &[], time)?;
    compare("beside analyses and theirs", both.rates);
    let default = play(ground, shared, cast(shared.navigational, true, true), &arrivals, time)?;
    compare("beside each other and arrivals", default.rates);
    ground.database.set_checkpoint_bytes(Some(RARE_CHECKPOINT_BYTES));
    let rest = &arrivals[default.commits.len()..];
    let mut mixed = play(ground, shared, cast(shared.navigational, true, true), rest, time)?;
    compare("beside each other and arrivals, snapshots each 1 GB", mixed.rates);
    alone(", with what arrived still live", report)?;
    ground.database.checkpoint_pending()?;
    alone(", with what arrived", report)?;
    let arrived = (mixed.commits.len() * BATCH) as f64 / mixed.seconds / 1e3;
    let bound = format!("{} arrive in transactions of {BATCH}", ARRIVALS_A_SECOND / 1000);
    report.line(Line::figure(format!("{name}: edges committed meanwhile"), "k/s", arrived, bound));
    for (what, per_mille) in [("median", 500), ("p99", 990)] {
        let latency = quantile(&mut mixed.commits, per_mille) * 1e6;
        report.line(Line::figure(format!("{name}: a transaction of these, {what}"), "µs", latency, ""));
    }
    let mut num_checked = 0;
    for analyses in [&default.analyses, &mixed.analyses] {
        num_checked += check(setting, ground, &edges, analyses, CHECK_TIME)?;
    }
    let num_analyses = default.analyses.len() + mixed.analyses.len();
    report.line(checked_line(name, num_checked, num_analyses));
    Ok(())
}

fn checked_line(name: &str, num_checked: usize, num_analyses: usize) -> Line {
    let of = format!("{num_analyses} in all, each equal to a run on a plain graph of that moment");
    Line::figure(format!("{name}: analyses checked"), "", num_checked as f64, of)
}

/// Runs queries and analyses beside arriving edges, and verifies every analysis against a plain graph of its epoch.
pub(super) fn checked(setting: &Setting, ground: &Ground, report: &mut Report) -> Result<()> {
    let time = Duration::from_secs(10);
    let num_batches = (time.as_secs_f64() * ARRIVALS_A_SECOND as f64) as usize / BATCH;
    let edges = ground.new_edges(num_batches * BATCH)?;
    let arrivals: Vec<Vec<Update>> = edges.chunks(BATCH).map(|batch| updates(batch, true)).collect();
    let shared = Split::of_cores(setting.pool.num_threads());
    let cast = Cast { num_askers: shared.navigational, has_analyst: true, ingests: true };
    let analyses = play(ground, shared, cast, &arrivals, time)?.analyses;
    let num_checked = check(setting, ground, &edges, &analyses, Duration::MAX)?;
    report.line(checked_line(ground.name, num_checked, analyses.len()));
    Ok(())
}
