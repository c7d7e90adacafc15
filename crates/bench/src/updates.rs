//! `updates`: batches of edges that are inserted and removed, against containers with one set a vertex and against one
//! packed memory array.
//!
//! The graph and the batches are R-MAT with the parameters of the literature on dynamic containers. Each trial has a
//! batch of its own, with randomly relabelled ids. Our side publishes a version after each insertion and each removal.
//! We measure the container and a database, with the whole graph in the memtable and over a plain CSR base in which
//! each edge is looked up. The other containers take their batches in turn with ours, which is compared with the
//! fastest at each size. A social graph, if given, is measured with the container alone. Memory lines cover the given
//! social, road and serialized graphs, wholly in the memtable.

mod contest;
mod database;
mod memory;
mod readers;
mod rivals;

use std::path::Path;

use anden_base::VertexId;
use anden_base::mapped::MappedSlice;
use anden_base::parallel::Pool;
use anden_graph::generate::{Generator, RmatParams};
use anden_graph::{Adjacency, Csr, Graph};
use anden_memtable::{Addition, AdjacencyTable, Options, Removal, Space, Terrace, TransposedChanges};
use anyhow::Result;

use crate::harness::{Pairs, median, seconds};
use crate::report::{Line, Report};
use crate::setting::Setting;
use database::ThroughDatabase;
use readers::{Live, Reading};

/// The numbers of edges of a batch, and of trials.
static SIZES: [(usize, usize); 7] =
    [(10, 2000), (100, 1000), (1000, 300), (10_000, 60), (100_000, 20), (1_000_000, 7), (10_000_000, 3)];
/// A quick run omits the large batches and has fewer trials.
static QUICK_SIZES: [(usize, usize); 5] = [(10, 200), (100, 100), (1000, 30), (10_000, 10), (100_000, 3)];
/// The sizes and trials of batches for a single vertex.
static HUB_SIZES: [(usize, usize); 2] = [(100_000, 20), (1_000_000, 7)];
static QUICK_HUB_SIZES: [(usize, usize); 1] = [(100_000, 3)];

/// Edges in input order.
type Batch<'a> = &'a [(VertexId, VertexId)];

/// The generator with the parameters of the literature.
fn skewed(scale: u32, degree: u64, seed: u64) -> Result<Generator> {
    Ok(Generator::rmat(&RmatParams { scale, degree, a: 0.5, b: 0.1, c: 0.1, seed })?)
}

/// An endless stream of edges.
pub(crate) struct Supply {
    generator: Generator,
    next_block: usize,
    rest: Vec<(VertexId, VertexId)>,
}

impl Supply {
    /// Edges between vertices below 2^`scale`.
    pub(crate) fn new(scale: u32, seed: u64) -> Result<Self> {
        Ok(Self { generator: skewed(scale, 1 << 12, seed)?, next_block: 0, rest: Vec::new() })
    }

    /// The next `len` edges.
    pub(crate) fn take(&mut self, pool: &Pool, len: usize) -> Vec<(VertexId, VertexId)> {
        while self.rest.len() < len {
            let blocks = self.next_block..self.next_block + 2 * pool.num_threads();
            self.next_block = blocks.end;
            let made = pool.map_chunks(blocks, 1, |_, block| {
                let mut edges = Vec::new();
                self.generator.edges_of_block(block.start as u64, &mut edges);
                edges
            });
            made.iter().for_each(|edges| self.rest.extend_from_slice(edges));
        }
        self.rest.split_off(self.rest.len() - len)
    }
}

/// Distinct edges from vertex 0 in scattered order.
fn of_a_hub(len: usize, scale: u32) -> Vec<(VertexId, VertexId)> {
    const ODD: usize = 0x9e37_79b1;
    let mask = (1 << scale) - 1;
    (0..len).map(|i| (0, (i.wrapping_mul(ODD) & mask) as u32)).collect()
}

/// A container under test. Each call returns its seconds.
trait Container {
    fn insert(&mut self, pool: &Pool, batch: Batch<'_>) -> Result<f64>;
    fn remove(&mut self, pool: &Pool, batch: Batch<'_>) -> Result<f64>;
}

/// Our container, alone or over a base.
struct Ours<'a> {
    terrace: Terrace,
    base: Option<&'a Adjacency>,
    additions: Space<Addition>,
    removals: Space<Removal>,
    transpose: TransposedChanges<()>,
}

impl<'a> Ours<'a> {
    fn new(num_vertices: usize, base: Option<&'a Adjacency>) -> Result<Self> {
        let mut terrace = Terrace::new(&Options::default())?;
        terrace.grow(num_vertices)?;
        let (additions, removals, transpose) = (Space::default(), Space::default(), TransposedChanges::default());
        Ok(Self { terrace, base, additions, removals, transpose })
    }
}

impl Container for Ours<'_> {
    fn insert(&mut self, pool: &Pool, batch: Batch<'_>) -> Result<f64> {
        let batch: Vec<_> = batch.iter().map(|&(source, target)| Addition { source, target }).collect();
        let (time, applied) = seconds(|| -> anden_memtable::Result<()> {
            let applied = match self.base {
                Some(base) => {
                    self.terrace.apply_directions_over(pool, base, &batch, &mut self.additions, &mut self.transpose)
                }
                None => self.terrace.apply(pool, AdjacencyTable::Out, &batch, &mut self.additions).map(drop),
            };
            self.terrace.publish();
            applied
        });
        applied?;
        Ok(time)
    }

    fn remove(&mut self, pool: &Pool, batch: Batch<'_>) -> Result<f64> {
        let batch: Vec<_> = batch.iter().map(|&(source, target)| Removal { source, target }).collect();
        let (time, applied) = seconds(|| -> anden_memtable::Result<()> {
            let applied = match self.base {
                Some(base) => {
                    self.terrace.apply_directions_over(pool, base, &batch, &mut self.removals, &mut self.transpose)
                }
                None => self.terrace.apply(pool, AdjacencyTable::Out, &batch, &mut self.removals).map(drop),
            };
            self.terrace.publish();
            applied
        });
        applied?;
        Ok(time)
    }
}

impl Live for Ours<'_> {
    fn reading(&self) -> Box<dyn Reading> {
        Box::new(self.terrace.reader())
    }
}

/// The edges as a plain CSR without in-lists.
fn plain_csr(num_vertices: usize, mut edges: Vec<(VertexId, VertexId)>) -> Result<Csr> {
    edges.sort_unstable();
    edges.dedup();
    let mut offsets = vec![0_u64; num_vertices + 1];
    edges.iter().for_each(|&(source, _)| offsets[source as usize + 1] += 1);
    (0..num_vertices).for_each(|v| offsets[v + 1] += offsets[v]);
    let targets: Vec<VertexId> = edges.into_iter().map(|(_, target)| target).collect();
    let lists = Adjacency::new(MappedSlice::copied(&offsets), MappedSlice::copied(&targets), None)?;
    Ok(Csr::directed(lists, None)?)
}

/// Measures one side with batches of the stream.
fn measure(
    setting: &Setting,
    report: &mut Report,
    name: &str,
    (container, scale): (&mut dyn Container, u32),
    sizes: &[(usize, usize)],
) -> Result<()> {
    let mut supply = Supply::new(scale, 77)?;
    measure_batches(setting, report, name, container, sizes, |len| supply.take(&setting.pool, len))
}

/// Measures one side with batches from the caller.
fn measure_batches(
    setting: &Setting,
    report: &mut Report,
    name: &str,
    container: &mut dyn Container,
    sizes: &[(usize, usize)],
    mut batch_of: impl FnMut(usize) -> Vec<(VertexId, VertexId)>,
) -> Result<()> {
    for &(len, num_trials) in sizes {
        let mut pairs = Pairs::default();
        for trial in 0..num_trials + 1 {
            let batch = batch_of(len);
            let (insert, remove) = come_and_go(setting, container, &batch)?;
            if trial > 0 {
                pairs.push(remove, insert);
            }
        }
        report_batches(report, name, len, &pairs);
    }
    Ok(())
}

/// Inserts a batch and removes it. Returns the seconds of each.
fn come_and_go(setting: &Setting, container: &mut dyn Container, batch: Batch<'_>) -> Result<(f64, f64)> {
    Ok((container.insert(&setting.pool, batch)?, container.remove(&setting.pool, batch)?))
}

/// The lines of one batch size. In `pairs`, our side holds removals and the other side insertions.
fn report_batches(report: &mut Report, name: &str, len: usize, pairs: &Pairs) {
    let rate = |time: f64| len as f64 / time / 1e6;
    report.line(Line::figure(format!("{name}, insert {len}"), "M/s", rate(pairs.other()), ""));
    let (ratio, low, high) = pairs.ratio();
    report.line(Line {
        ratio: Some((1.0 / ratio, 1.0 / high, 1.0 / low)),
        other: Line::beside(rate(pairs.other()), "insert"),
        ..Line::figure(format!("{name}, remove {len}"), "M/s", rate(pairs.ours()), "≥ 0.8")
    });
}

fn sizes(is_quick: bool) -> &'static [(usize, usize)] {
    if is_quick { &QUICK_SIZES } else { &SIZES }
}

/// Whether the options select a side.
fn is_wanted(setting: &Setting, name: &str) -> bool {
    setting.kernel.as_deref().is_none_or(|wanted| wanted == name)
}

/// Runs the benchmark.
pub fn run(setting: &Setting, is_quick: bool, report: &mut Report) -> Result<()> {
    let pool = &setting.pool;
    let scale = setting.origin.scale();
    let generator = skewed(scale, 16, 1)?;
    let edges = generator.edges(pool);
    let sizes = sizes(is_quick);
    containers(setting, report, &edges, is_quick)?;
    if let Some(path) = &setting.social {
        social(setting, report, path, sizes)?;
    }
    if is_wanted(setting, "memory") {
        memory::run(setting, report)?;
    }
    if is_wanted(setting, "database") {
        let mut live = ThroughDatabase::empty()?;
        live.insert(pool, &edges)?;
        measure(setting, report, "database", (&mut live, scale), sizes)?;
        one_edge(setting, report, "database", &mut live)?;
        readers::measure(setting, report, "database", &mut live, is_quick)?;
    }
    if is_wanted(setting, "database with a log") {
        let mut live = ThroughDatabase::logged(&setting.scratch)?;
        live.insert(pool, &edges)?;
        measure(setting, report, "database with a log", (&mut live, scale), sizes)?;
    }
    if is_wanted(setting, "database over a base") {
        let mut live = ThroughDatabase::over(&generator, pool, &setting.scratch)?;
        measure(setting, report, "database over a base", (&mut live, scale), sizes)?;
        readers::measure(setting, report, "database over a base", &mut live, is_quick)?;
    }
    contest::run(setting, report, &edges, sizes)
}

/// Measures the container alone and over a plain CSR.
fn containers(setting: &Setting, report: &mut Report, edges: Batch<'_>, is_quick: bool) -> Result<()> {
    let sizes = sizes(is_quick);
    let scale = setting.origin.scale();
    let num_vertices = 1_usize << scale;
    let csr = plain_csr(num_vertices, edges.to_vec())?;
    if is_wanted(setting, "live") {
        let mut live = Ours::new(num_vertices, None)?;
        live.insert(&setting.pool, edges)?;
        report.line(memory::nodes("live graph, bytes of nodes", &live.terrace, &csr));
        measure(setting, report, "live", (&mut live, scale), sizes)?;
        one_edge(setting, report, "live", &mut live)?;
        readers::measure(setting, report, "live", &mut live, is_quick)?;
    }
    if is_wanted(setting, "over a base") {
        let mut over = Ours::new(num_vertices, Some(csr.out_lists()))?;
        measure(setting, report, "over a base", (&mut over, scale), sizes)?;
    }
    for (name, base) in [("live, a hub", None), ("over a base, a hub", Some(csr.out_lists()))] {
        if is_wanted(setting, name) {
            let sizes: &[_] = if is_quick { &QUICK_HUB_SIZES } else { &HUB_SIZES };
            let mut ours = Ours::new(num_vertices, base)?;
            measure_batches(setting, report, name, &mut ours, sizes, |len| of_a_hub(len, scale))?;
        }
    }
    Ok(())
}

/// Measures the container alone on a real graph.
fn social(setting: &Setting, report: &mut Report, path: &Path, sizes: &[(usize, usize)]) -> Result<()> {
    let csr = memory::real(setting, path)?;
    let scale = csr.vertex_bound().next_power_of_two().ilog2();
    if is_wanted(setting, "live on a social graph") {
        let mut live = Ours::new(1 << scale, None)?;
        live.insert(&setting.pool, &memory::arcs(&csr))?;
        measure(setting, report, "live on a social graph", (&mut live, scale), sizes)?;
    }
    if is_wanted(setting, "over a social graph") {
        let mut over = Ours::new(1 << scale, Some(csr.out_lists()))?;
        measure(setting, report, "over a social graph", (&mut over, scale), sizes)?;
    }
    Ok(())
}

/// Measures the time from one edge to its published version.
fn one_edge(setting: &Setting, report: &mut Report, name: &str, live: &mut dyn Container) -> Result<()> {
    const TRIALS: usize = 20_000;
    let mut supply = Supply::new(setting.origin.scale(), 78)?;
    let mut times = Vec::with_capacity(TRIALS);
    for edge in supply.take(&setting.pool, TRIALS) {
        times.push(live.insert(&setting.pool, &[edge])? * 1e6);
    }
    times.sort_by(f64::total_cmp);
    report.line(Line::figure(format!("{name}, one edge, median"), "µs", median(&times), "≤ 2"));
    report.line(Line::figure(format!("{name}, one edge, p99"), "µs", times[TRIALS * 99 / 100], ""));
    Ok(())
}
