//! The graphs that transactions run on.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Result, bail};
use base::VertexId;
use base::progress::Silent;
use engine::{Database, GraphOptions, KeyScheme, LoadOptions, View};
use graph::formats::{InputPath, write_file};
use graph::generate::{Generator, RoadParams};
use graph::{Csr, CsrBuilder, Direction, Graph, WeightType, WeightedEdges};
use kernels::Context;
use kernels::query::khop;

use super::stage::Random;
use crate::setting::Setting;

/// Queries that are asked in turn.
const NUM_PAIRS: usize = 2000;
/// The most hops between the ends of one.
const MOST_HOPS: u32 = 10;

/// A database with one snapshot, and vertices near to each other to ask for.
pub(super) struct Ground {
    pub(super) name: &'static str,
    pub(super) database: Database,
    /// Reachable from each other in 1 to 10 hops, every vertex so near with the same probability.
    pub(super) pairs: Vec<(VertexId, VertexId)>,
}

/// An edge with its weight.
pub(super) type WeightedEdge = (VertexId, VertexId, u32);

impl Ground {
    /// A network of roads that is made, with weights from 1 to 255.
    pub(super) fn grid(setting: &Setting, name: &'static str, width: u64) -> Result<Self> {
        let path = setting.scratch.join(format!("{name}.wsg"));
        let generator = Generator::road(&RoadParams { width, height: width, seed: 1 })?.with_weights(1..=255)?;
        write_file(&path, |output| generator.write_gapbs(&setting.pool, &Silent, output))?;
        Self::load(setting, name, &path, Direction::Undirected)
    }

    /// A real network of roads, directed.
    pub(super) fn roads(setting: &Setting, name: &'static str, path: &Path) -> Result<Self> {
        Self::load(setting, name, path, Direction::Directed)
    }

    /// A social graph, directed.
    pub(super) fn social(setting: &Setting, name: &'static str, path: &Path) -> Result<Self> {
        Self::load(setting, name, path, Direction::Directed)
    }

    fn load(setting: &Setting, name: &'static str, path: &Path, direction: Direction) -> Result<Self> {
        let directory = setting.scratch.join(format!("{name}.anden"));
        if directory.exists() {
            std::fs::remove_dir_all(&directory)?;
        }
        let weight_type = Some(WeightType::U32);
        let graph = GraphOptions { direction, keys: KeyScheme::Dense, weight_type, ..GraphOptions::default() };
        let options = LoadOptions { graph, ..LoadOptions::default() };
        let inputs = [InputPath::File(path.to_owned())];
        let (database, _) = Database::load(&directory, &inputs, &options, &setting.pool, &Silent)?;
        let pairs = near_pairs(setting, &database.view()?)?;
        Ok(Self { name, database, pairs })
    }

    /// The edges of the first snapshot, each once.
    pub(super) fn edges(&self) -> Result<Vec<WeightedEdge>> {
        let view = self.database.snapshot(1)?;
        let is_undirected = view.direction() == Direction::Undirected;
        let mut edges = Vec::with_capacity(view.num_edges() as usize);
        for source in 0..view.vertex_bound() as VertexId {
            let _ = view.for_each_weighted_out_fragment::<u32>(source, |targets, weights| {
                let wanted = targets.iter().zip(weights).filter(|(target, _)| !is_undirected || source <= **target);
                edges.extend(wanted.map(|(&target, &weight)| (source, target, weight)));
                ControlFlow::Continue(())
            });
        }
        view.check()?;
        Ok(edges)
    }

    /// Edges of the first snapshot and others as a plain graph, built from nothing.
    pub(super) fn plain(&self, edges: &[WeightedEdge], others: &[WeightedEdge]) -> Result<Csr> {
        let view = self.database.snapshot(1)?;
        let mut builder = CsrBuilder::<u32>::new(view.direction(), view.vertex_bound());
        edges.iter().chain(others).for_each(|&(source, target, weight)| builder.edge(source, target, weight));
        Ok(builder.build_weighted()?)
    }

    /// Edges between vertices whose ids are near, none of which is in the first snapshot, in either direction.
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
            // The same step from every vertex, in an order without neighbours, before the next step.
            let (source, step) = (number % bound * 0x9e37_79b1 % bound, 3 + number / bound);
            let target = source + step;
            let (source, target) = (source as VertexId, target as VertexId);
            if u64::from(target) >= bound || has_edge(&view, source, target) || has_edge(&view, target, source) {
                continue;
            }
            edges.push((source, target, 1 + (number % 255) as u32));
        }
        // A factor that is not prime to the bound would come back to the same vertices.
        let mut ends: Vec<_> = edges.iter().map(|&(source, target, _)| (source, target)).collect();
        ends.sort_unstable();
        ends.dedup();
        if ends.len() < num_edges {
            bail!("{}: {} of {num_edges} new edges are different", self.name, ends.len());
        }
        Ok(edges)
    }
}

fn has_edge(view: &View, source: VertexId, target: VertexId) -> bool {
    let search = view.for_each_out_fragment(source, |list| match list.binary_search(&target) {
        Ok(_) => ControlFlow::Break(()),
        Err(_) => ControlFlow::Continue(()),
    });
    search.is_break()
}

/// Ends of paths: any vertex with edges, and any that is near to it.
fn near_pairs(setting: &Setting, view: &View) -> Result<Vec<(VertexId, VertexId)>> {
    let ctx = Context::new(&setting.pool);
    let mut random = Random::new(2017);
    let mut pairs = Vec::with_capacity(NUM_PAIRS);
    for _ in 0..100 * NUM_PAIRS {
        if pairs.len() == NUM_PAIRS {
            return Ok(pairs);
        }
        let source = random.below(view.vertex_bound() as u64) as VertexId;
        let near = khop(&ctx, view, source, MOST_HOPS)?;
        if !near.is_empty() {
            pairs.push((source, near[random.below(near.len() as u64) as usize]));
        }
    }
    bail!("almost no vertex has edges")
}
