//! `tiers`: the worth of the memtable's tiers and of the thresholds between them.
//!
//! The benchmark repeats figures 6, 11 and 12 and tables 10 and 11 of Terrace (Pandey, Wheatman, Xu, Buluc, SIGMOD
//! 2021) with our container. Each setting gets a container. A container with the defaults is the other side of every
//! line: bytes, inserted and removed batches, and kernels.
//!
//! - The rows of *figures 6, 11 and 12* move the thresholds: *S*, the longest inline list, is 13 or 29, and *L*, the
//!   longest packed list, goes from 2^8 to 2^12.
//! - The rows of *tables 10 and 11* leave a tier out: no inline lists, no packed lists, or no avoidable tree.
//!
//! The assignment of figures to thresholds and of tables to tiers is inferred, not read in the paper. Which of them
//! show updates, kernels or bytes is unknown here, so a row names a whole group. Cache misses are not counted; their
//! cost is in the seconds.
//!
//! The means of a setting judge the defaults: below 1, the setting is better.

use anden_base::VertexId;
use anden_graph::{Direction, Graph, SingleFragment, WeightedEdges};
use anden_memtable::{Addition, AdjacencyTable, Options, Removal, Space, Terrace, Version};
use anyhow::Result;
use std::ops::ControlFlow;

use crate::graphs::Graphs;
use crate::harness::{Pairs, geometric_mean, seconds};
use crate::kernels::{Kernel, sources};
use crate::report::{Line, Report, at_least};
use crate::setting::Setting;
use crate::updates::Supply;

/// The numbers of edges of a batch.
const SIZES: [usize; 3] = [1000, 100_000, 1_000_000];
/// A quick run omits the largest batch.
const QUICK_SIZES: [usize; 2] = [1000, 100_000];
/// The kernels of the paper.
const KERNELS: [Kernel; 5] = [Kernel::Bfs, Kernel::PageRank64, Kernel::Wcc, Kernel::Bc, Kernel::Triangles];
const QUICK_KERNELS: [Kernel; 2] = [Kernel::Bfs, Kernel::PageRank64];
/// The values of *S*, and of the binary logarithm of *L*.
const IN_PLACE: [usize; 2] = [13, 29];
const PACKED_BITS: [u32; 5] = [8, 9, 10, 11, 12];
const QUICK_PACKED_BITS: [u32; 2] = [8, 12];
/// More entries than a packed list can hold: longer lists need a tree at any threshold.
const MOST_PACKED: usize = 1 << 20;

/// The parts of the paper that move thresholds, and those that leave tiers out.
const THRESHOLDS: &str = "figures 6, 11 and 12";
const LEFT_OUT: &str = "tables 10 and 11";

/// A setting to compare with the defaults.
struct Compared {
    /// The part of the paper.
    of: &'static str,
    name: String,
    options: Options,
}

impl Compared {
    /// The name of a line.
    fn row(&self, what: impl std::fmt::Display) -> String {
        format!("{}: {}: {what}", self.of, self.name)
    }
}

/// All settings to compare with the defaults.
fn compared(is_quick: bool) -> Vec<Compared> {
    let default = Options::default();
    let setting = |of, name: String, in_place, packed| {
        let options = Options { in_place, packed, ..Options::default() };
        Compared { of, name, options }
    };
    let mut all = Vec::new();
    for in_place in IN_PLACE {
        for &bits in if is_quick { &QUICK_PACKED_BITS[..] } else { &PACKED_BITS } {
            let packed = 1 << bits;
            if (in_place, packed) != (default.in_place, default.packed) {
                all.push(setting(THRESHOLDS, format!("S = {in_place}, L = {packed}"), in_place, packed));
            }
        }
    }
    all.push(setting(LEFT_OUT, "nothing in place".to_owned(), 0, default.packed));
    all.push(setting(LEFT_OUT, "no packed lists".to_owned(), default.in_place, default.in_place));
    all.push(setting(LEFT_OUT, "no trees but for the longest".to_owned(), default.in_place, MOST_PACKED));
    all
}

/// A memtable container with all arcs of a graph.
struct Filled {
    terrace: Terrace,
    additions: Space<Addition>,
    removals: Space<Removal>,
}

impl Filled {
    fn new(setting: &Setting, options: &Options, arcs: &[Addition], graph: &impl Graph) -> Result<Self> {
        let mut terrace = Terrace::new(&Options { graph_kind: graph.graph_kind(), ..options.clone() })?;
        terrace.grow(graph.vertex_bound())?;
        let mut filled = Self { terrace, additions: Space::default(), removals: Space::default() };
        filled.terrace.apply(&setting.pool, AdjacencyTable::Out, arcs, &mut filled.additions)?;
        filled.terrace.publish();
        Ok(filled)
    }

    /// Inserts a batch and removes it. Returns the seconds of each.
    fn change(&mut self, setting: &Setting, batch: &[(VertexId, VertexId)]) -> Result<(f64, f64)> {
        let additions: Vec<_> = batch.iter().map(|&(source, target)| Addition { source, target }).collect();
        let removals: Vec<_> = batch.iter().map(|&(source, target)| Removal { source, target }).collect();
        let (insert, applied) = seconds(|| {
            let applied = self.terrace.apply(&setting.pool, AdjacencyTable::Out, &additions, &mut self.additions);
            self.terrace.publish();
            applied
        });
        applied?;
        let (remove, applied) = seconds(|| {
            let applied = self.terrace.apply(&setting.pool, AdjacencyTable::Out, &removals, &mut self.removals);
            self.terrace.publish();
            applied
        });
        applied?;
        Ok((insert, remove))
    }
}

/// Runs a kernel. Kernels require all capabilities of a graph, but no kernel here reads weights.
fn run_kernel<G>(setting: &Setting, kernel: Kernel, graph: &G, source: VertexId) -> Result<f64>
where
    G: WeightedEdges + SingleFragment,
{
    Ok(kernel.run(setting, graph, source)?.seconds)
}

/// Runs the benchmark. A quick run has fewer settings, batches and kernels.
pub fn run(setting: &Setting, graphs: &Graphs<'_>, is_quick: bool, report: &mut Report) -> Result<()> {
    let forms = graphs.plain()?;
    let csr = forms.csr();
    let mut arcs = Vec::with_capacity(csr.num_arcs() as usize);
    for source in 0..csr.vertex_bound() as VertexId {
        let _ = csr.for_each_fragment(Direction::Out, source, |targets| {
            arcs.extend(targets.iter().map(|&target| Addition { source, target }));
            ControlFlow::Continue(())
        });
    }
    let sources = sources(csr);
    let mut means = Vec::new();
    let default_name = |options: &Options| format!("the defaults, S = {}, L = {}", options.in_place, options.packed);
    report.line(homes(default_name(&Options::default()), csr, &Options::default()));
    for compared in compared(is_quick) {
        if setting.kernel.as_deref().is_some_and(|wanted| wanted != compared.name) {
            continue;
        }
        // Both containers are new, because earlier batches would have moved the nodes.
        let mut default = Filled::new(setting, &Options::default(), &arcs, csr)?;
        let mut filled = Filled::new(setting, &compared.options, &arcs, csr)?;
        report.line(homes(format!("{}: {}", compared.of, compared.name), csr, &compared.options));
        let mut side = Side { setting, report, compared: &compared, is_quick, ratios: Vec::new() };
        let mut parts = vec![side.bytes(&filled, &default, arcs.len())];
        side.batches(&mut filled, &mut default)?;
        parts.push(side.mean("batches, mean"));
        side.kernels(&filled.terrace.version(), &default.terrace.version(), &sources)?;
        parts.push(side.mean("kernels, mean"));
        side.ratios = parts;
        means.push((side.mean("bytes, batches and kernels, mean"), compared.name));
    }
    if let Some((best, name)) = means.iter().min_by(|a, b| a.0.total_cmp(&b.0)) {
        let bound = format!("{}: the defaults are the best; {name}", at_least(1.0, *best));
        let ratio = Some((*best, *best, *best));
        report.line(Line { ratio, ..Line::figure("the best setting, mean to that of the defaults", "", *best, bound) });
    }
    Ok(())
}

/// The share of the arcs in each tier, with lists as long as in the graph.
fn homes(name: String, csr: &impl Graph, options: &Options) -> Line {
    let (mut in_place, mut packed, mut all) = (0, 0, 0);
    for vertex in 0..csr.vertex_bound() as VertexId {
        let degree = csr.degree(Direction::Out, vertex);
        all += degree;
        match degree {
            degree if degree <= options.in_place => in_place += degree,
            degree if degree <= options.packed => packed += degree,
            _ => {}
        }
    }
    let share = |part: usize| 100.0 * part as f64 / all.max(1) as f64;
    let others = match options.packed {
        MOST_PACKED => format!("the others: {:.1} %", share(all - in_place)),
        _ => format!("packed: {:.1} %, in trees: {:.1} %", share(packed), share(all - in_place - packed)),
    };
    Line::figure(format!("{name}: arcs in place"), "%", share(in_place), others)
}

/// The measurement of one setting against the defaults.
struct Side<'a> {
    setting: &'a Setting,
    report: &'a mut Report,
    compared: &'a Compared,
    is_quick: bool,
    /// The ratios of the lines since the last mean.
    ratios: Vec<f64>,
}

impl Side<'_> {
    fn line(&mut self, what: impl std::fmt::Display, pairs: &Pairs) {
        self.ratios.push(pairs.ratio().0);
        self.report.line(Line::compared(self.compared.row(what), pairs, "the defaults", ""));
    }

    /// Reports the geometric mean, the smallest and the largest of the ratios since the last mean.
    fn mean(&mut self, what: &str) -> f64 {
        let ratios = std::mem::take(&mut self.ratios);
        let (low, high) =
            ratios.iter().fold((f64::MAX, f64::MIN), |(low, high), &ratio| (low.min(ratio), high.max(ratio)));
        let mean = geometric_mean(&ratios);
        self.report.line(Line {
            ratio: Some((mean, low, high)),
            other: Line::beside(1.0, "the defaults"),
            ..Line::figure(
                self.compared.row(what),
                "",
                mean,
                format!("{}: the defaults are as good", at_least(1.0, mean)),
            )
        });
        mean
    }

    fn bytes(&mut self, ours: &Filled, default: &Filled, num_arcs: usize) -> f64 {
        let an_arc = |filled: &Filled| filled.terrace.memory().live_bytes as f64 / num_arcs.max(1) as f64;
        let (ours, other) = (an_arc(ours), an_arc(default));
        let ratio = ours / other;
        self.report.line(Line {
            other: Line::beside(other, "the defaults"),
            ratio: Some((ratio, ratio, ratio)),
            ..Line::figure(self.compared.row("bytes an arc"), "B", ours, "nodes, not their tables")
        });
        ratio
    }

    fn batches(&mut self, ours: &mut Filled, default: &mut Filled) -> Result<()> {
        let setting = self.setting;
        let mut supply = Supply::new(setting.origin.scale(), 81)?;
        for &len in if self.is_quick { &QUICK_SIZES[..] } else { &SIZES } {
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
            self.line(format_args!("insert {len}"), &inserts);
            self.line(format_args!("remove {len}"), &removes);
        }
        Ok(())
    }

    fn kernels(&mut self, ours: &Version<()>, default: &Version<()>, sources: &[VertexId]) -> Result<()> {
        let setting = self.setting;
        for &kernel in if self.is_quick { &QUICK_KERNELS[..] } else { &KERNELS } {
            let source = |pair: usize| sources.get(pair % sources.len().max(1)).copied().unwrap_or(0);
            let pairs = Pairs::alternate(
                setting.num_pairs.div_ceil(3),
                |pair| run_kernel(setting, kernel, ours, source(pair)),
                |pair| run_kernel(setting, kernel, default, source(pair)),
            )?;
            self.line(kernel.name(), &pairs);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_threshold_and_every_home_is_compared_once() {
        let of = |part: &str| compared(false).iter().filter(|compared| compared.of == part).count();
        assert_eq!((of(THRESHOLDS), of(LEFT_OUT)), (IN_PLACE.len() * PACKED_BITS.len() - 1, 3));
        let mut names: Vec<String> = compared(false).into_iter().map(|compared| compared.name).collect();
        let is_full = |name: &String| names.contains(name);
        assert!(compared(true).iter().all(|quick| is_full(&quick.name)), "a quick run has no setting of its own");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), compared(false).len());
    }
}
