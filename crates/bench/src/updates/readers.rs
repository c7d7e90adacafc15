//! The cost of readers to the writer: one reader that analyses all the time, or many short reads.
//!
//! The writer and the readers have one thread each, so that each has a processor on a machine with two. The remaining
//! cost is contention for memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::progress::CancelFlag;
use anden_engine::Engine;
use anden_graph::{Direction, Graph};
use anden_kernels::Context;
use anden_kernels::pagerank::{PageRankParams, pagerank};
use anyhow::Result;

use super::{Container, Supply};
use crate::harness::{Pairs, median};
use crate::report::{Line, Report};
use crate::setting::Setting;

/// The edges of a batch beside PageRank, and the batches of a round.
const BATCH: usize = 10_000;
const BATCHES: usize = 40;
/// The short reads a second, and the lists of each.
const READS_A_SECOND: u32 = 10_000;
const LISTS: usize = 10;
/// The number of one-edge batches beside short reads.
const ONE_EDGE_TRIALS: usize = 20_000;

/// A container that supports concurrent readers.
pub(super) trait Live: Container {
    /// A handle for readers.
    fn reading(&self) -> Box<dyn Reading>;
}

/// The operations of a concurrent reader.
pub(super) trait Reading: Send {
    /// Pins the newest version, reads the lists of `vertices`, and unpins. Returns the number of entries.
    fn read(&self, vertices: &[VertexId]) -> Result<u64>;

    /// Pins the newest version and ranks its vertices.
    fn analyse(&self, ctx: &Context<'_>) -> Result<()>;
}

impl Reading for anden_memtable::Reader<()> {
    fn read(&self, vertices: &[VertexId]) -> Result<u64> {
        Ok(sum_of_lists(&self.pin(), vertices))
    }

    fn analyse(&self, ctx: &Context<'_>) -> Result<()> {
        rank(ctx, &self.pin())
    }
}

impl Reading for Arc<Engine> {
    fn read(&self, vertices: &[VertexId]) -> Result<u64> {
        Ok(sum_of_lists(&self.view()?, vertices))
    }

    fn analyse(&self, ctx: &Context<'_>) -> Result<()> {
        rank(ctx, &self.view()?)
    }
}

fn sum_of_lists(graph: &impl Graph, vertices: &[VertexId]) -> u64 {
    let mut sum = 0;
    for &vertex in vertices.iter().filter(|&&vertex| (vertex as usize) < graph.vertex_bound()) {
        let _ = graph.for_each_fragment(Direction::Out, vertex, |targets| {
            sum += targets.iter().map(|&target| u64::from(target)).sum::<u64>();
            std::ops::ControlFlow::Continue(())
        });
    }
    sum
}

fn rank(ctx: &Context<'_>, graph: &impl Graph) -> Result<()> {
    match pagerank(ctx, graph, &PageRankParams::default()) {
        Ok(_) | Err(anden_kernels::Error::Base(anden_base::Error::Cancelled)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Measures one side.
pub(super) fn measure(
    setting: &Setting,
    report: &mut Report,
    name: &str,
    container: &mut dyn Live,
    is_quick: bool,
) -> Result<()> {
    let pool = Pool::new(1)?;
    let mut supply = Supply::new(setting.origin.scale(), 79)?;
    let mut pairs = Pairs::default();
    for _ in 0..if is_quick { 1 } else { 7 } {
        let mut round = |container: &mut dyn Live| -> Result<f64> {
            let mut times = Vec::with_capacity(BATCHES);
            for _ in 0..BATCHES {
                let batch = supply.take(&setting.pool, BATCH);
                times.push(container.insert(&pool, &batch)?);
                container.remove(&pool, &batch)?;
            }
            Ok(median(&times))
        };
        let alone = round(container)?;
        let beside = beside_analysis(container, round)?;
        // The ratio is one of rates: the share of the speed that remains.
        pairs.push(BATCH as f64 / beside / 1e6, BATCH as f64 / alone / 1e6);
    }
    report.line(Line {
        unit: "M/s",
        ..Line::compared(format!("{name}, insert {BATCH} beside PageRank"), &pairs, "alone, one thread", "≥ 0.85")
    });
    let trials = if is_quick { ONE_EDGE_TRIALS / 10 } else { ONE_EDGE_TRIALS };
    let edges = supply.take(&setting.pool, trials);
    let (mut times, rate) = beside_short_reads(setting, container, |container| {
        edges.iter().map(|&edge| Ok(container.insert(&pool, &[edge])? * 1e6)).collect::<Result<Vec<f64>>>()
    })?;
    times.sort_by(f64::total_cmp);
    let reads = format!("{name}, one edge beside {rate:.0} reads a second");
    report.line(Line::figure(format!("{reads}, median"), "µs", median(&times), "≤ 2"));
    report.line(Line::figure(format!("{reads}, p99"), "µs", times[trials * 99 / 100], ""));
    Ok(())
}

/// Runs `work` while another thread analyses version after version.
fn beside_analysis<R>(container: &mut dyn Live, work: impl FnOnce(&mut dyn Live) -> Result<R>) -> Result<R> {
    let reading = container.reading();
    let is_over = CancelFlag::default();
    let has_begun = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let analyst = scope.spawn(|| -> Result<()> {
            let pool = Pool::new(1)?;
            let reading = reading;
            let ctx = Context { progress: &is_over, ..Context::new(&pool) };
            while !anden_base::progress::Progress::is_cancelled(&is_over) {
                has_begun.store(true, Ordering::Relaxed);
                reading.analyse(&ctx)?;
            }
            Ok(())
        });
        while !has_begun.load(Ordering::Relaxed) && !analyst.is_finished() {
            std::hint::spin_loop();
        }
        let done = work(container);
        is_over.cancel();
        analyst.join().map_err(|_| anyhow::anyhow!("the analyst ended early"))??;
        done
    })
}

/// Runs `work` while another thread does short reads. Returns the reads a second too.
fn beside_short_reads<R>(
    setting: &Setting,
    container: &mut dyn Live,
    work: impl FnOnce(&mut dyn Live) -> Result<R>,
) -> Result<(R, f64)> {
    let vertices: Vec<VertexId> =
        Supply::new(setting.origin.scale(), 80)?.take(&setting.pool, 1 << 14).into_iter().map(|edge| edge.0).collect();
    let reading = container.reading();
    let is_over = AtomicBool::new(false);
    let period = Duration::from_secs(1) / READS_A_SECOND;
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| -> Result<f64> {
            let reading = reading;
            let start = Instant::now();
            let mut num_reads = 0_u32;
            while !is_over.load(Ordering::Relaxed) {
                if start.elapsed() < period * num_reads {
                    std::hint::spin_loop();
                    continue;
                }
                let first = num_reads as usize * LISTS % (vertices.len() - LISTS);
                std::hint::black_box(reading.read(&vertices[first..first + LISTS])?);
                num_reads += 1;
            }
            Ok(f64::from(num_reads) / start.elapsed().as_secs_f64())
        });
        let done = work(container);
        is_over.store(true, Ordering::Relaxed);
        let rate = reader.join().map_err(|_| anyhow::anyhow!("the reader ended early"))??;
        Ok((done?, rate))
    })
}
