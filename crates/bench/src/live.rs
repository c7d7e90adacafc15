//! `live`: kernels on a graph that changes, against the plain CSR of the same graph.
//!
//! Twice: over a snapshot of which a hundredth changed, half of it edges that came and half edges that went, and
//! wholly in memory, without anything below. Then, how long commits wait when a snapshot is made of what changed.

mod freeze;

use std::ops::ControlFlow;

use anyhow::{Result, bail};
use base::VertexId;
use base::progress::Silent;
use engine::{Database, GraphOptions, KeyScheme, LoadOptions, MergeScope, Missing, Update};
use graph::formats::InputPath;
use graph::{Csr, Direction, Graph, SingleFragment, WeightType, WeightedEdges};

use crate::graphs::{Forms, Graphs};
use crate::kernels::Kernel;
use crate::report::Report;
use crate::setting::Setting;
use crate::snapshots::kernel_line;

const KERNELS: [Kernel; 6] = [Kernel::PageRank, Kernel::Bfs, Kernel::Wcc, Kernel::Sssp, Kernel::Bc, Kernel::Triangles];

/// One in so many edges came, and as many went.
const CHANGED: u64 = 200;

/// Updates that are applied at once.
const BATCH: usize = 1_000_000;

/// Runs the benchmark; a quick one freezes less.
pub fn run(setting: &Setting, graphs: &Graphs<'_>, is_quick: bool, report: &mut Report) -> Result<()> {
    let is_wanted = |name: &str| setting.kernel.as_deref().is_none_or(|wanted| wanted == name);
    let kernels: Vec<Kernel> = KERNELS.into_iter().filter(|kernel| is_wanted(kernel.name())).collect();
    if kernels.is_empty() && !is_wanted(freeze::NAME) {
        bail!("--kernel: one of {}, {} expected", KERNELS.map(Kernel::name).join(", "), freeze::NAME);
    }
    let (weighted, plain): (Vec<_>, Vec<_>) = kernels.into_iter().partition(|&kernel| kernel == Kernel::Sssp);
    for (kernels, has_weights) in [(plain, false), (weighted, true)] {
        if !kernels.is_empty() {
            let forms = if has_weights { graphs.weighted()? } else { graphs.plain()? };
            lines(setting, &forms, has_weights, &kernels, report)?;
        }
    }
    if is_wanted(freeze::NAME) {
        freeze::lines(setting, is_quick, report)?;
    }
    Ok(())
}

fn lines(setting: &Setting, forms: &Forms, has_weights: bool, kernels: &[Kernel], report: &mut Report) -> Result<()> {
    let csr = forms.csr();
    let weight_type = has_weights.then_some(WeightType::U32);
    let graph =
        GraphOptions { direction: csr.direction(), keys: KeyScheme::Dense, weight_type, ..GraphOptions::default() };
    let path = setting.scratch.join("live.anden");
    let apply = |database: &Database, updates: &[Update]| -> Result<()> {
        for batch in updates.chunks(BATCH) {
            database.apply(batch, Missing::Lenient, &setting.pool)?;
        }
        Ok(())
    };
    let measure = |database: &Database, name: &str, target: &str, report: &mut Report| -> Result<()> {
        for &kernel in kernels {
            let name = format!("{name}: {}", kernel.name());
            kernel_line(setting, kernel, (&database.view()?, csr), (&name, target), report)?;
        }
        Ok(())
    };

    let options = LoadOptions { graph, ..LoadOptions::default() };
    let inputs = [InputPath::File(forms.serialized().to_owned())];
    let (database, _) = Database::load(&path, &inputs, &options, &setting.pool, &Silent)?;
    database.set_checkpoint_bytes(None);
    let (there, elsewhere) = parted(csr, has_weights);
    // What is there goes from the snapshot, and comes back live; what is elsewhere is in it, and goes.
    apply(&database, &there.iter().map(Edge::removal).collect::<Vec<_>>())?;
    apply(&database, &elsewhere.iter().map(Edge::addition).collect::<Vec<_>>())?;
    database.checkpoint(None)?;
    database.merge(MergeScope::All, &setting.pool, &Silent)?;
    apply(&database, &there.iter().map(Edge::addition).collect::<Vec<_>>())?;
    apply(&database, &elsewhere.iter().map(Edge::removal).collect::<Vec<_>>())?;
    measure(&database, "1 % changed live", "≤ 1.1", report)?;
    drop(database);
    std::fs::remove_dir_all(&path)?;

    let database = Database::create(&path, graph)?;
    // Else what is measured would be a snapshot soon.
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

/// An edge, with a weight where the graph has weights.
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

/// The edges of a graph that `is_wanted` picks by number; of an undirected graph, each once.
fn edges(csr: &Csr, has_weights: bool, is_wanted: impl Fn(u64) -> bool) -> Vec<Edge> {
    let is_undirected = csr.direction() == Direction::Undirected;
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
            true => csr.for_each_weighted_out_fragment::<u32>(source, |targets, weights| {
                targets.iter().zip(weights).for_each(|(&target, &weight)| see(source, target, Some(weight)));
                ControlFlow::Continue(())
            }),
            false => csr.for_each_out_fragment(source, |targets| {
                targets.iter().for_each(|&target| see(source, target, None));
                ControlFlow::Continue(())
            }),
        };
    }
    edges
}

/// One in [`CHANGED`] of the edges, picked at random, and as many that are not there, between ends of edges.
fn parted(csr: &Csr, has_weights: bool) -> (Vec<Edge>, Vec<Edge>) {
    let there = edges(csr, has_weights, |number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % CHANGED == 0);
    let crossed =
        there.iter().zip(there.iter().skip(there.len() / 2)).map(|(one, other)| Edge { target: other.target, ..*one });
    let is_elsewhere =
        |edge: &Edge| csr.out_list(edge.source).is_some_and(|list| list.binary_search(&edge.target).is_err());
    let elsewhere = crossed.filter(is_elsewhere).collect();
    (there, elsewhere)
}
