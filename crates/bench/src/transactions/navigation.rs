//! The rate of navigational queries, over a snapshot and over changes in memory.

use std::time::Duration;

use anden_base::VertexId;
use anden_engine::{Engine, Missing, SnapshotView, Split, Update, Workers};
use anden_kernels::Context;
use anden_kernels::bfs::{BfsParams, bfs};
use anden_kernels::query::{friends_of_friends, path, weighted_path};
use anden_kernels::sssp::{DistanceValue, Distances, SsspParams, sssp};
use anyhow::{Result, ensure};

use super::ground::{Ground, WeightedEdge};
use super::stage::{Client, Clock, side_by_side};
use crate::report::{Line, Report};
use crate::setting::Setting;

/// One in this many edges is added before the second measurement.
const CHANGED: u64 = 100;
/// The number of answers to verify against whole-graph kernels.
const NUM_CHECKED: usize = 10;

/// A kind of query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// The path with the fewest edges.
    Path,
    /// The path with the least weight.
    WeightedPath,
    /// The friends of friends of the first vertex.
    TwoHops,
}

impl Question {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::WeightedPath => "weighted path",
            Self::TwoHops => "two hops",
        }
    }

    fn target(self) -> &'static str {
        match self {
            Self::Path => "≥ 20 a core; Janus .625",
            Self::WeightedPath => "≥ 5 a core",
            Self::TwoHops => "",
        }
    }

    /// Runs the query. Returns the length of the path, or the number of friends of friends.
    pub(super) fn ask(self, ctx: &Context<'_>, view: &SnapshotView, ends: (VertexId, VertexId)) -> Result<u64> {
        let (source, target) = ends;
        Ok(match self {
            Self::Path => path(ctx, view, source, target)?.map_or(u64::MAX, |path| path.length() as u64),
            Self::WeightedPath => match weighted_path(ctx, view, source, target)?.map(|path| path.length) {
                Some(DistanceValue::Integer(length)) => length,
                _ => u64::MAX,
            },
            Self::TwoHops => friends_of_friends(ctx, view, source)?.len() as u64,
        })
    }

    /// The answer of the whole-graph kernels.
    fn truth(self, ctx: &Context<'_>, view: &SnapshotView, (source, target): (VertexId, VertexId)) -> Result<u64> {
        if self == Self::WeightedPath {
            let distances = sssp(ctx, view, &SsspParams { source, ..SsspParams::default() })?.distances;
            return Ok(match distances {
                Distances::Integer(distances) => distances[target as usize],
                Distances::Float(_) => u64::MAX,
            });
        }
        let hops = bfs(ctx, view, &BfsParams { source, parents: false })?.hops;
        Ok(match self {
            Self::TwoHops => hops.iter().filter(|&&hops| hops == 2).count() as u64,
            _ => hops[target as usize].into(),
        })
    }
}

/// A client that repeats queries. Returns their number.
pub(super) fn client<'a>(
    database: &'a Engine,
    workers: &'a Workers,
    question: Question,
    pairs: &'a [(VertexId, VertexId)],
    first: usize,
) -> Client<'a, u64> {
    Box::new(move |clock: &Clock<'_>| {
        let mut num_asked = 0_u64;
        for &ends in pairs.iter().cycle().skip(first) {
            if !clock.is_running() {
                break;
            }
            let answer = workers.navigate(|pool| question.ask(&Context::new(pool), &database.view()?, ends))?;
            std::hint::black_box(answer?);
            num_asked += 1;
        }
        Ok(num_asked)
    })
}

/// Thousands of queries a second of all clients together.
pub(super) fn rate(
    ground: &Ground,
    question: Question,
    (num_clients, num_places): (usize, usize),
    time: Duration,
) -> Result<f64> {
    let workers = Workers::new(Split { navigational: num_places, analytics: 1 });
    let first = |number: usize| number * ground.pairs.len() / num_clients;
    let clients =
        (0..num_clients).map(|number| client(&ground.database, &workers, question, &ground.pairs, first(number)));
    let (counts, seconds) = side_by_side(clients.collect(), time)?;
    Ok(counts.iter().sum::<u64>() as f64 / seconds / 1e3)
}

fn check(setting: &Setting, ground: &Ground, question: Question) -> Result<()> {
    let (ctx, view) = (Context::new(&setting.pool), ground.database.view()?);
    for &ends in ground.pairs.iter().take(NUM_CHECKED) {
        let (found, truth) = (question.ask(&ctx, &view, ends)?, question.truth(&ctx, &view, ends)?);
        ensure!(found == truth, "{}, {} of {ends:?}: {truth} expected, {found} found", ground.name, question.name());
    }
    Ok(())
}

/// Measures a graph over its snapshot and over changes.
pub(super) fn lines(
    setting: &Setting,
    ground: &Ground,
    questions: &[Question],
    is_quick: bool,
    report: &mut Report,
) -> Result<()> {
    let time = Duration::from_millis(if is_quick { 150 } else { 2000 });
    let cores = setting.pool.num_threads();
    let measure = |what: &str, report: &mut Report| -> Result<()> {
        for &question in questions {
            check(setting, ground, question)?;
            let name = format!("{}{what}: {}", ground.name, question.name());
            let one = rate(ground, question, (1, 1), time)?;
            report.line(Line::figure(format!("{name}, one client"), "k/s", one, question.target()));
            let all = rate(ground, question, (cores, cores), time)?;
            let per_core = format!("{:.4} a core", all / cores as f64);
            report.line(Line::figure(format!("{name}, a client a core"), "k/s", all, per_core));
        }
        Ok(())
    };
    measure("", report)?;
    #[cfg(feature = "rivals")]
    super::rivals::navigation(setting, ground, questions, is_quick, report)?;
    let num_changed = (anden_graph::Graph::num_edges(&ground.database.view()?) / CHANGED) as usize;
    let edges = ground.new_edges(num_changed)?;
    ground.database.apply(&updates(&edges, true), Missing::Lenient, &setting.pool)?;
    measure(" with 1 % more live", report)?;
    ground.database.apply(&updates(&edges, false), Missing::Lenient, &setting.pool)?;
    ground.database.checkpoint_pending()?;
    Ok(())
}

/// Updates that add or remove edges.
pub(super) fn updates(edges: &[WeightedEdge], is_added: bool) -> Vec<Update> {
    let update = |&(source, target, weight): &WeightedEdge| match is_added {
        true => Update::add_weighted_edge(u64::from(source), u64::from(target), i64::from(weight)),
        false => Update::remove_edge(u64::from(source), u64::from(target)),
    };
    edges.iter().map(update).collect()
}
