//! `live`: kernels on a changed graph, against the plain CSR of that graph.
//!
//! The kernels run twice: over a snapshot with a hundredth of the edges changed, half inserted and half deleted, and
//! with the whole graph in the memtable.

use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_base::progress::Silent;
use anden_engine::{Engine, GraphOptions, KeyScheme, LoadOptions, MergeScope, Missing, Update};
use anden_formats::InputPath;
use anden_graph::{Csr, Direction, Graph, GraphKind, SingleFragment, WeightType, WeightedEdges};
use anyhow::{Result, bail};

use crate::graphs::{Forms, Graphs};
use crate::kernels::Kernel;
use crate::report::Report;
use crate::setting::Setting;
use crate::snapshots::kernel_line;

const KERNELS: [Kernel; 6] = [Kernel::PageRank, Kernel::Bfs, Kernel::Wcc, Kernel::Sssp, Kernel::Bc, Kernel::Triangles];

/// One in this many edges is inserted, and an equal number is deleted.
const CHANGED: u64 = 200;

/// The number of updates in one batch.
const BATCH: usize = 1_000_000;

/// Runs the benchmark.
pub fn run(setting: &Setting, graphs: &Graphs<'_>, report: &mut Report) -> Result<()> {
    let is_wanted = |name: &str| setting.kernel.as_deref().is_none_or(|wanted| wanted == name);
    let kernels: Vec<Kernel> = KERNELS.into_iter().filter(|kernel| is_wanted(kernel.name())).collect();
    if kernels.is_empty() {
        bail!("--kernel: one of {} expected", KERNELS.map(Kernel::name).join(", "));
    }
    let (weighted, plain): (Vec<_>, Vec<_>) = kernels.into_iter().partition(|&kernel| kernel == Kernel::Sssp);
    for (kernels, has_weights) in [(plain, false), (weighted, true)] {
        if !kernels.is_empty() {
            let forms = if has_weights { graphs.weighted()? } else { graphs.plain()? };
            lines(setting, &forms, has_weights, &kernels, report)?;
        }
    }
    Ok(())
}

fn lines(setting: &Setting, forms: &Forms, has_weights: bool, kernels: &[Kernel], report: &mut Report) -> Result<()> {
    let csr = forms.csr();
    let weight_type = has_weights.then_some(WeightType::U32);
    let graph =
        GraphOptions { graph_kind: csr.graph_kind(), keys: KeyScheme::Dense, weight_type, ..GraphOptions::default() };
    let path = setting.scratch.join("live.anden");
    let apply = |database: &Engine, updates: &[Update]| -> Result<()> {
        for batch in updates.chunks(BATCH) {
            database.apply(batch, Missing::Lenient, &setting.pool)?;
        }
        Ok(())
    };
    let measure = |database: &Engine, name: &str, target: &str, report: &mut Report| -> Result<()> {
        for &kernel in kernels {
            let name = format!("{name}: {}", kernel.name());
            kernel_line(setting, kernel, (&database.view()?, csr), (&name, target), report)?;
        }
        Ok(())
    };

    let options = LoadOptions { graph, ..LoadOptions::default() };
    let inputs = [InputPath::File(forms.serialized().to_owned())];
    let (database, _) = Engine::load(&path, &inputs, &options, &setting.pool, &Silent)?;
    database.set_checkpoint_bytes(None);
    let (there, elsewhere) = parted(csr, has_weights);
    // Edges of the graph are missing from the snapshot and inserted in the memtable. Other edges are in the snapshot
    // and deleted in the memtable.
    apply(&database, &there.iter().map(Edge::removal).collect::<Vec<_>>())?;
    apply(&database, &elsewhere.iter().map(Edge::addition).collect::<Vec<_>>())?;
    database.checkpoint(None)?;
    database.merge(MergeScope::All, &setting.pool, &Silent)?;
    apply(&database, &there.iter().map(Edge::addition).collect::<Vec<_>>())?;
    apply(&database, &elsewhere.iter().map(Edge::removal).collect::<Vec<_>>())?;
    measure(&database, "1 % changed live", "≤ 1.1", report)?;
    drop(database);
    std::fs::remove_dir_all(&path)?;

    let database = Engine::create(&path, graph)?;
    // An automatic checkpoint would empty the memtable under test.
    database.set_checkpoint_bytes(None);
    apply(&database, &edges(csr, has_weights, |_| true).iter().map(Edge::addition).collect::<Vec<_>>())?;
    if let Some(last) = csr.vertex_bound().checked_sub(1) {
        apply(&database, &[Update::AddVertex((last as u64).into())])?;
    }
    measure(&database, "wholly live", "≤ 1.5", report)?;
    drop(database);
    std::fs::remove_dir_all(&path)?;
    Ok(())
}

/// An edge, with a weight if the graph has weights.
#[derive(Clone, Copy, Debug)]
struct Edge {
    source: VertexId,
    target: VertexId,
    weight: Option<u32>,
}

impl Edge {
    fn addition(&self) -> Update {
        let (source, target) = (u64::from(self.source), u64::from(self.target));
        match self.weight {
            Some(weight) => Update::add_weighted_edge(source, target, i64::from(weight)),
            None => Update::add_edge(source, target),
        }
    }

    fn removal(&self) -> Update {
        Update::remove_edge(u64::from(self.source), u64::from(self.target))
    }
}

/// The edges whose number `is_wanted` accepts. An undirected edge appears once.
fn edges(csr: &Csr, has_weights: bool, is_wanted: impl Fn(u64) -> bool) -> Vec<Edge> {
    let is_undirected = csr.graph_kind() == GraphKind::Undirected;
    let (mut edges, mut number) = (Vec::new(), 0);
    let mut see = |source: VertexId, target: VertexId, weight: Option<u32>| {
        if is_undirected && source > target {
            return;
        }
        number += 1;
        if is_wanted(number) {
            edges.push(Edge { source, target, weight });
        }
    };
    for source in 0..csr.vertex_bound() as VertexId {
        let _ = match has_weights {
            true => csr.for_each_weighted_fragment::<u32>(Direction::Out, source, |targets, weights| {
                targets.iter().zip(weights).for_each(|(&target, &weight)| see(source, target, Some(weight)));
                ControlFlow::Continue(())
            }),
            false => csr.for_each_fragment(Direction::Out, source, |targets| {
                targets.iter().for_each(|&target| see(source, target, None));
                ControlFlow::Continue(())
            }),
        };
    }
    edges
}

/// One in [`CHANGED`] edges, picked at random, and about as many missing edges between end points of these.
fn parted(csr: &Csr, has_weights: bool) -> (Vec<Edge>, Vec<Edge>) {
    let there = edges(csr, has_weights, |number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % CHANGED == 0);
    let crossed =
        there.iter().zip(there.iter().skip(there.len() / 2)).map(|(one, other)| Edge { target: other.target, ..*one });
    let is_elsewhere = |edge: &Edge| {
        csr.list(Direction::Out, edge.source).is_some_and(|list| list.binary_search(&edge.target).is_err())
    };
    let elsewhere = crossed.filter(is_elsewhere).collect();
    (there, elsewhere)
}
