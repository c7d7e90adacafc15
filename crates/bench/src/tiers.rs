//! `tiers`: what the homes of lists, and the thresholds between them, are worth.
//!
//! Terrace's figures 6, 11 and 12 and its tables 10 and 11 for our container: batches, kernels and memory with
//! each threshold, and with each home left out. The defaults are the other side of every line.

use anyhow::Result;
use base::VertexId;
use graph::{Graph, InEdges, SingleFragment, WeightedEdges};
use std::ops::ControlFlow;
use terrace::{Addition, Options, Plane, Removal, Space, Terrace, Version};

use crate::graphs::Graphs;
use crate::harness::{Pairs, seconds};
use crate::kernels::{Kernel, sources};
use crate::report::{Line, Report};
use crate::setting::Setting;
use crate::updates::Supply;

/// Edges of a batch.
const SIZES: [usize; 3] = [1000, 100_000, 1_000_000];
/// Kernels of the paper.
const KERNELS: [Kernel; 5] = [Kernel::Bfs, Kernel::PageRank64, Kernel::Wcc, Kernel::Bc, Kernel::Triangles];
/// The most that six segments of a packed list hold: longer lists need the tree whatever the threshold.
const MOST_PACKED: usize = 1 << 20;

/// The thresholds that are compared with the defaults.
fn settings() -> Vec<(String, Options)> {
    let options = |in_place, packed| Options { in_place, packed, ..Options::default() };
    let default = Options::default();
    let mut all = Vec::new();
    for in_place in [13, 29] {
        for packed in [8, 9, 10, 11, 12].map(|bits| 1 << bits) {
            if (in_place, packed) != (default.in_place, default.packed) {
                all.push((format!("S = {in_place}, L = {packed}"), options(in_place, packed)));
            }
        }
    }
    all.push(("nothing in place".to_owned(), options(0, default.packed)));
    all.push(("no packed lists".to_owned(), options(default.in_place, default.in_place)));
    all.push(("no trees but for the longest".to_owned(), options(default.in_place, MOST_PACKED)));
    all
}

/// A container with all arcs of a graph.
struct Filled {
    terrace: Terrace,
    additions: Space<Addition>,
    removals: Space<Removal>,
}

impl Filled {
    fn new(setting: &Setting, options: &Options, arcs: &[Addition], graph: &impl Graph) -> Result<Self> {
        let mut terrace = Terrace::new(&Options { direction: graph.direction(), ..options.clone() })?;
        terrace.grow(graph.vertex_bound())?;
        let mut filled = Self { terrace, additions: Space::default(), removals: Space::default() };
        filled.terrace.apply(&setting.pool, Plane::Out, arcs, &mut filled.additions)?;
        filled.terrace.publish();
        Ok(filled)
    }

    /// Seconds to insert a batch, and to remove it again.
    fn change(&mut self, setting: &Setting, batch: &[(VertexId, VertexId)]) -> Result<(f64, f64)> {
        let additions: Vec<_> = batch.iter().map(|&(source, target)| Addition { source, target }).collect();
        let removals: Vec<_> = batch.iter().map(|&(source, target)| Removal { source, target }).collect();
        let (insert, applied) = seconds(|| {
            let applied = self.terrace.apply(&setting.pool, Plane::Out, &additions, &mut self.additions);
            self.terrace.publish();
            applied
        });
        applied?;
        let (remove, applied) = seconds(|| {
            let applied = self.terrace.apply(&setting.pool, Plane::Out, &removals, &mut self.removals);
            self.terrace.publish();
            applied
        });
        applied?;
        Ok((insert, remove))
    }
}

/// A version with weights that nobody asks for: kernels take their graph with all its capabilities.
fn run_kernel<G>(setting: &Setting, kernel: Kernel, graph: &G, source: VertexId) -> Result<f64>
where
    G: InEdges + WeightedEdges + SingleFragment,
{
    Ok(kernel.run(setting, graph, source)?.seconds)
}

/// Runs the benchmark.
pub fn run(setting: &Setting, graphs: &Graphs<'_>, report: &mut Report) -> Result<()> {
    let forms = graphs.plain()?;
    let csr = forms.csr();
    let mut arcs = Vec::with_capacity(csr.num_arcs() as usize);
    for source in 0..csr.vertex_bound() as VertexId {
        let _ = csr.for_each_out_fragment(source, |targets| {
            arcs.extend(targets.iter().map(|&target| Addition { source, target }));
            ControlFlow::Continue(())
        });
    }
    let default_bytes = Filled::new(setting, &Options::default(), &arcs, csr)?.terrace.memory().live_bytes as f64;
    report.line(Line::figure("the defaults, bytes an arc", "B", default_bytes / arcs.len() as f64, ""));
    for (name, options) in settings() {
        if setting.kernel.as_deref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        // Both are new: a container that has seen batches has its nodes elsewhere.
        let mut default = Filled::new(setting, &Options::default(), &arcs, csr)?;
        let mut filled = Filled::new(setting, &options, &arcs, csr)?;
        let bytes = filled.terrace.memory().live_bytes as f64;
        report.line(Line {
            other: Some((default_bytes / arcs.len() as f64, "the defaults".into())),
            ratio: Some((bytes / default_bytes, bytes / default_bytes, bytes / default_bytes)),
            ..Line::figure(format!("{name}: bytes an arc"), "B", bytes / arcs.len() as f64, "")
        });
        batches(setting, report, &name, &mut filled, &mut default)?;
        kernels(setting, report, &name, &filled.terrace.version(), &default.terrace.version(), &sources(csr))?;
    }
    Ok(())
}

fn batches(setting: &Setting, report: &mut Report, name: &str, ours: &mut Filled, default: &mut Filled) -> Result<()> {
    let mut supply = Supply::new(setting.origin.scale(), 81)?;
    for len in SIZES {
        let (mut inserts, mut removes) = (Pairs::default(), Pairs::default());
        for trial in 0..=setting.num_pairs {
            let batch = supply.take(&setting.pool, len);
            let (ours, other) = if trial % 2 == 0 {
                let ours = ours.change(setting, &batch)?;
                (ours, default.change(setting, &batch)?)
            } else {
                let other = default.change(setting, &batch)?;
                (ours.change(setting, &batch)?, other)
            };
            if trial > 0 {
                inserts.push(ours.0, other.0);
                removes.push(ours.1, other.1);
            }
        }
        report.line(Line::compared(format!("{name}: insert {len}"), &inserts, "the defaults", ""));
        report.line(Line::compared(format!("{name}: remove {len}"), &removes, "the defaults", ""));
    }
    Ok(())
}

fn kernels(
    setting: &Setting,
    report: &mut Report,
    name: &str,
    ours: &Version<()>,
    default: &Version<()>,
    sources: &[VertexId],
) -> Result<()> {
    for kernel in KERNELS {
        let source = |pair: usize| sources.get(pair % sources.len().max(1)).copied().unwrap_or(0);
        let pairs = Pairs::alternate(
            setting.num_pairs.div_ceil(3),
            |pair| run_kernel(setting, kernel, ours, source(pair)),
            |pair| run_kernel(setting, kernel, default, source(pair)),
        )?;
        report.line(Line::compared(format!("{name}: {}", kernel.name()), &pairs, "the defaults", ""));
    }
    Ok(())
}
