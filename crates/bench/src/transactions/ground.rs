//! The graphs that transactions run on.

use std::ops::ControlFlow;
use std::path::Path;

use anden_base::VertexId;
use anden_base::progress::Silent;
use anden_base::random::Random;
use anden_engine::{Engine, GraphOptions, KeyScheme, LoadOptions, SnapshotView};
use anden_formats::{InputPath, generated, write_file};
use anden_graph::generate::{Generator, RoadParams};
use anden_graph::{Csr, CsrBuilder, Direction, Graph, GraphKind, WeightType, WeightedEdges};
use anden_kernels::Context;
use anden_kernels::query::khop;
use anyhow::{Result, bail};

use crate::setting::Setting;

/// The number of queries, which run in turn.
const NUM_PAIRS: usize = 2000;
/// The most hops between the ends of a query.
const MOST_HOPS: u32 = 10;

/// A database with one snapshot, and pairs of near vertices for queries.
pub(super) struct Ground {
    pub(super) name: &'static str,
    pub(super) database: Engine,
    /// Ends at a distance of 1 to 10 hops, uniform among the vertices in that range.
    pub(super) pairs: Vec<(VertexId, VertexId)>,
}

/// An edge with its weight.
pub(super) type WeightedEdge = (VertexId, VertexId, u32);

impl Ground {
    /// A generated road network with weights from 1 to 255.
    pub(super) fn grid(setting: &Setting, name: &'static str, width: u64) -> Result<Self> {
        let path = setting.scratch.join(format!("{name}.wsg"));
        let generator = Generator::road(&RoadParams { width, height: width, seed: 1 })?.with_weights(1..=255)?;
        write_file(&path, |output| generated::write_gapbs(&generator, &setting.pool, &Silent, output))?;
        Self::load(setting, name, &path, GraphKind::Undirected)
    }

    /// A real, directed graph: a road network or a social graph.
    pub(super) fn directed(setting: &Setting, name: &'static str, path: &Path) -> Result<Self> {
        Self::load(setting, name, path, GraphKind::Directed)
    }

    fn load(setting: &Setting, name: &'static str, path: &Path, graph_kind: GraphKind) -> Result<Self> {
        let directory = setting.scratch.join(format!("{name}.anden"));
        if directory.exists() {
            std::fs::remove_dir_all(&directory)?;
        }
        let weight_type = Some(WeightType::U32);
        let graph = GraphOptions { graph_kind, keys: KeyScheme::Dense, weight_type, ..GraphOptions::default() };
        let options = LoadOptions { graph, ..LoadOptions::default() };
        let inputs = [InputPath::File(path.to_owned())];
        let (database, _) = Engine::load(&directory, &inputs, &options, &setting.pool, &Silent)?;
        let pairs = near_pairs(setting, &database.view()?)?;
        Ok(Self { name, database, pairs })
    }

    /// The edges of the first snapshot. Undirected edges appear once.
    pub(super) fn edges(&self) -> Result<Vec<WeightedEdge>> {
        let view = self.database.snapshot(1)?;
        let is_undirected = view.graph_kind() == GraphKind::Undirected;
        let mut edges = Vec::with_capacity(view.num_edges() as usize);
        for source in 0..view.vertex_bound() as VertexId {
            let _ = view.for_each_weighted_fragment::<u32>(Direction::Out, source, |targets, weights| {
                let wanted = targets.iter().zip(weights).filter(|(target, _)| !is_undirected || source <= **target);
                edges.extend(wanted.map(|(&target, &weight)| (source, target, weight)));
                ControlFlow::Continue(())
            });
        }
        view.check()?;
        Ok(edges)
    }

    /// A plain graph built anew from edges of the first snapshot and others.
    pub(super) fn plain(&self, edges: &[WeightedEdge], others: &[WeightedEdge]) -> Result<Csr> {
        let view = self.database.snapshot(1)?;
        let mut builder = CsrBuilder::<u32>::new(view.graph_kind(), view.vertex_bound());
        edges.iter().chain(others).for_each(|&(source, target, weight)| builder.edge(source, target, weight));
        Ok(builder.build_weighted()?)
    }

    /// New edges between vertices with near ids. None is in the first snapshot, in either direction.
    pub(super) fn new_edges(&self, num_edges: usize) -> Result<Vec<WeightedEdge>> {
        let view = self.database.snapshot(1)?;
        let bound = view.vertex_bound() as u64;
        if bound < 64 {
            bail!("{}: a graph of 64 vertices or more is wanted, not of {bound}", self.name);
        }
        let mut edges = Vec::with_capacity(num_edges);
        for number in 0_u64.. {
            if edges.len() == num_edges {
                break;
            }
            // Uses one step from every vertex, in scattered order, before the next step.
            let (source, step) = (number % bound * 0x9e37_79b1 % bound, 3 + number / bound);
            let target = source + step;
            let (source, target) = (source as VertexId, target as VertexId);
            if u64::from(target) >= bound || has_edge(&view, source, target) || has_edge(&view, target, source) {
                continue;
            }
            edges.push((source, target, 1 + (number % 255) as u32));
        }
        // If the factor is not coprime to the bound, the sequence repeats vertices.
        let mut ends: Vec<_> = edges.iter().map(|&(source, target, _)| (source, target)).collect();
        ends.sort_unstable();
        ends.dedup();
        if ends.len() < num_edges {
            bail!("{}: {} of {num_edges} new edges are different", self.name, ends.len());
        }
        Ok(edges)
    }
}

fn has_edge(view: &SnapshotView, source: VertexId, target: VertexId) -> bool {
    let search = view.for_each_fragment(Direction::Out, source, |list| match list.binary_search(&target) {
        Ok(_) => ControlFlow::Break(()),
        Err(_) => ControlFlow::Continue(()),
    });
    search.is_break()
}

/// Draws the ends of paths: a random vertex with edges, and a random vertex near it.
fn near_pairs(setting: &Setting, view: &SnapshotView) -> Result<Vec<(VertexId, VertexId)>> {
    let ctx = Context::new(&setting.pool);
    let mut random = Random::new(2017);
    let mut pairs = Vec::with_capacity(NUM_PAIRS);
    for _ in 0..100 * NUM_PAIRS {
        if pairs.len() == NUM_PAIRS {
            return Ok(pairs);
        }
        let source = random.index(view.vertex_bound()) as VertexId;
        let near = khop(&ctx, view, source, MOST_HOPS)?;
        if !near.is_empty() {
            pairs.push((source, near[random.index(near.len())]));
        }
    }
    bail!("almost no vertex has edges")
}
