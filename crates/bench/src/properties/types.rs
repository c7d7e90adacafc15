//! The edges of one type out of ten, laid out as a base in memory, against a plain CSR and a database of only these
//! edges.

use std::ops::ControlFlow;
use std::path::Path;

use anden::export::{ExportFormat, write_file};
use anden::load::InputPath;
use anden::{Database, KeyScheme, LoadOptions, Neighbors, Options, PageRankParams, Session, View};
use anden_base::VertexId;
use anden_base::mapped::MappedSlice;
use anden_graph::{Adjacency, Csr, Direction, Graph};
use anyhow::Result;

use super::ITERATIONS;
use crate::harness::{Pairs, seconds};
use crate::report::{Line, Report};
use crate::setting::Setting;

/// The edge types, all equally frequent.
pub(super) const TYPES: [&str; 10] = ["T0", "T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9"];
/// The number of queries in one measurement.
const QUESTIONS: usize = 200;

/// Measures the view of the edges of one type.
pub(super) fn run(setting: &Setting, view: &View, session: &Session, report: &mut Report) -> Result<()> {
    let params = PageRankParams { iterations: Some(ITERATIONS), ..PageRankParams::default() };
    let types = &TYPES[3..4];
    let part = view.types(types)?;
    first_kernel(setting, view, types, &edges(&part), &params, report)?;
    let path = setting.scratch.join("type.anden");
    let database = loaded(setting, &part, &path, session)?;
    let alone = database.view()?;
    anyhow::ensure!(alone.num_edges() == part.num_edges(), "the part and the database differ");
    later_kernels(setting, &part, &alone, &params, report)?;
    questions(setting, view, types, &part, &alone, report)?;
    drop((alone, database));
    Ok(std::fs::remove_dir_all(path)?)
}

fn edges(part: &View) -> Vec<(VertexId, VertexId)> {
    let mut edges = Vec::with_capacity(part.num_edges() as usize);
    for source in 0..part.vertex_bound() as VertexId {
        let _ = part.graph().for_each_fragment(Direction::Out, source, |targets| {
            edges.extend(targets.iter().map(|&target| (source, target)));
            ControlFlow::Continue(())
        });
    }
    edges
}

/// A database loaded from the edges of the part, with the vertices of the part.
fn loaded(setting: &Setting, part: &View, path: &Path, session: &Session) -> Result<Database> {
    let [edges, vertices] = ["type.el", "type-vertices.txt"].map(|name| setting.scratch.join(name));
    write_file(&edges, |output| part.export(ExportFormat::EDGE_LIST, output))?;
    write_file(&vertices, |output| part.export_vertices(ExportFormat::EDGE_LIST, output))?;
    let graph = Options { keys: KeyScheme::Dense, ..Options::default() };
    let mut options = LoadOptions { graph, ..LoadOptions::default() };
    options.source.vertices = vec![vertices.clone().into()];
    let (database, _) = Database::load(path, &[InputPath::File(edges.clone())], &options, session)?;
    std::fs::remove_file(edges)?;
    std::fs::remove_file(vertices)?;
    Ok(database)
}

/// A plain CSR in both directions, built by a counting sort of edges in memory: the least work from edges alone.
fn csr(num_vertices: usize, edges: &[(VertexId, VertexId)]) -> Result<Csr> {
    let lists = |ends: fn(&(VertexId, VertexId)) -> (VertexId, VertexId)| -> Result<Adjacency> {
        let mut offsets = vec![0_u64; num_vertices + 1];
        edges.iter().for_each(|edge| offsets[ends(edge).0 as usize + 1] += 1);
        (0..num_vertices).for_each(|vertex| offsets[vertex + 1] += offsets[vertex]);
        let mut next = offsets.clone();
        let mut targets = vec![0; edges.len()];
        for (list, other) in edges.iter().map(ends) {
            targets[next[list as usize] as usize] = other;
            next[list as usize] += 1;
        }
        Ok(Adjacency::new(MappedSlice::copied(&offsets), MappedSlice::copied(&targets), None)?)
    };
    Ok(Csr::directed(lists(|&edge| edge)?, Some(lists(|&(source, target)| (target, source))?))?)
}

fn first_kernel(
    setting: &Setting,
    view: &View,
    types: &[&str],
    edges: &[(VertexId, VertexId)],
    params: &PageRankParams,
    report: &mut Report,
) -> Result<()> {
    let pairs = Pairs::alternate(
        setting.num_pairs,
        |_| {
            let (time, ranks) = seconds(|| view.types(types)?.pagerank(params));
            ranks?;
            anyhow::Ok(time)
        },
        |_| {
            let (time, ranks) = seconds(|| -> Result<_> {
                let csr = csr(view.vertex_bound(), edges)?;
                Ok(anden_kernels::pagerank::pagerank(&view.context(), &csr, params)?)
            });
            ranks?;
            Ok(time)
        },
    )?;
    report.line(Line::compared("one type of ten: lay out and pagerank", &pairs, "CSR from an array", "≤ 1.3"));
    Ok(())
}

fn later_kernels(
    setting: &Setting,
    part: &View,
    alone: &View,
    params: &PageRankParams,
    report: &mut Report,
) -> Result<()> {
    let source = largest(alone);
    let mut compare = |name: &str, run: &dyn Fn(&View) -> anden::Result<()>| -> Result<()> {
        let timed = |view: &View| -> Result<f64> {
            let (time, done) = seconds(|| run(view));
            done?;
            Ok(time)
        };
        let pairs = Pairs::alternate(setting.num_pairs, |_| timed(part), |_| timed(alone))?;
        report.line(Line::compared(format!("one type of ten: {name}"), &pairs, "its edges, loaded", "≤ 1.02"));
        Ok(())
    };
    compare("pagerank", &|view| view.pagerank(params).map(drop))?;
    compare("wcc", &|view| view.wcc().map(drop))?;
    compare("triangles", &|view| view.triangles().map(drop))?;
    let key = alone.key(source)?;
    compare("bfs", &move |view| view.bfs(key.clone()).map(drop))
}

/// The vertex with the most out-edges.
fn largest(view: &View) -> VertexId {
    let vertices = 0..view.vertex_bound() as VertexId;
    vertices.max_by_key(|&vertex| view.graph().degree(Direction::Out, vertex)).unwrap_or(0)
}

/// Vertices with edges, spread over the ids.
fn some_vertices(view: &View) -> Vec<VertexId> {
    let bound = view.vertex_bound() as u64;
    let spread = (0..bound).map(|index| (index * 2_654_435_761 % bound) as VertexId);
    spread.filter(|&vertex| view.graph().degree(Direction::Out, vertex) > 0).take(QUESTIONS).collect()
}

fn questions(
    setting: &Setting,
    view: &View,
    types: &[&str],
    part: &View,
    alone: &View,
    report: &mut Report,
) -> Result<()> {
    let vertices = some_vertices(alone);
    let keys = vertices.iter().map(|&vertex| alone.key(vertex)).collect::<anden::Result<Vec<_>>>()?;
    let timed = |run: &dyn Fn(usize) -> anden::Result<()>| -> Result<f64> {
        let (time, done) = seconds(|| (0..keys.len()).try_for_each(run));
        done?;
        Ok(time / keys.len() as f64)
    };
    let khop = |view: &View, at: usize| view.khop(keys[at].clone(), 2).map(drop);
    let path = |view: &View, at: usize| view.path(keys[at].clone(), keys[keys.len() - 1 - at].clone()).map(drop);
    let neighbors = |view: &View, at: usize| view.neighbors(keys[at].clone(), Neighbors::Out).map(drop);
    type Question<'a> = &'a dyn Fn(&View, usize) -> anden::Result<()>;
    for (name, question) in [("khop 2", &khop as Question<'_>), ("path", &path)] {
        let pairs = Pairs::alternate(
            setting.num_pairs,
            |_| timed(&|at| question(part, at)),
            |_| timed(&|at| question(alone, at)),
        )?;
        let name = format!("one type of ten: {name}, laid out");
        report.line(Line::compared(name, &pairs, "its edges, loaded", "≤ 1.2"));
    }
    // The view is new each time, so its edges are tested one by one.
    for (name, question) in [("neighbors", &neighbors as Question<'_>), ("khop 2", &khop)] {
        let pairs = Pairs::alternate(
            setting.num_pairs,
            |_| timed(&|at| question(&view.types(types)?, at)),
            |_| timed(&|at| question(view, at)),
        )?;
        report.line(Line::compared(format!("one type of ten: {name}, asked once"), &pairs, "all edges", ""));
    }
    Ok(())
}
