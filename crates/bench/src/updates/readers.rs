//! What readers cost the writer: one that analyses all the time, and many that look up a few lists.
//!
//! The writer has one thread and the readers another, so that each has a processor of its own where there are
//! two; what is left is what they do to each other's memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use base::VertexId;
use base::parallel::Pool;
use base::progress::CancelFlag;
use engine::Database;
use graph::{Graph, InEdges};
use kernels::Context;
use kernels::pagerank::{PageRankParams, pagerank};

use super::{Container, Supply};
use crate::harness::{Pairs, median};
use crate::report::{Line, Report};
use crate::setting::Setting;

/// Edges of a batch beside which PageRank runs, and how many batches make a round.
const BATCH: usize = 10_000;
const BATCHES: usize = 40;
/// Short reads a second, and the lists that each reads.
const READS_A_SECOND: u32 = 10_000;
const LISTS: usize = 10;
/// One-edge batches beside short reads.
const ONE_EDGE_TRIALS: usize = 20_000;

/// A container that is read while it changes.
pub(super) trait Live: Container {
    /// Its readers.
    fn reading(&self) -> Box<dyn Reading>;
}

/// What readers do with a container while it changes.
pub(super) trait Reading: Send {
    /// Pins the newest version, reads these lists, and lets go; returns the number of entries.
    fn read(&self, vertices: &[VertexId]) -> Result<u64>;

    /// Pins the newest version and ranks its vertices.
    fn analyse(&self, ctx: &Context<'_>) -> Result<()>;
}

impl Reading for terrace::Reader<()> {
    fn read(&self, vertices: &[VertexId]) -> Result<u64> {
        Ok(sum_of_lists(&self.pin(), vertices))
    }

    fn analyse(&self, ctx: &Context<'_>) -> Result<()> {
        rank(ctx, &self.pin())
    }
}

impl Reading for Arc<Database> {
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
        let _ = graph.for_each_out_fragment(vertex, |targets| {
            sum += targets.iter().map(|&target| u64::from(target)).sum::<u64>();
            std::ops::ControlFlow::Continue(())
        });
    }
    sum
}

fn rank(ctx: &Context<'_>, graph: &impl InEdges) -> Result<()> {
    match pagerank(ctx, graph, &PageRankParams::default()) {
        Ok(_) | Err(kernels::Error::Base(base::Error::Cancelled)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The lines of one side.
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
        // Rates, not times: what is left of them.
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

/// Runs `work` while another thread analyses one version after the other.
fn beside_analysis<R>(container: &mut dyn Live, work: impl FnOnce(&mut dyn Live) -> Result<R>) -> Result<R> {
    let reading = container.reading();
    let is_over = CancelFlag::default();
    let has_begun = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let analyst = scope.spawn(|| -> Result<()> {
            let pool = Pool::new(1)?;
            let reading = reading;
            let ctx = Context { progress: &is_over, ..Context::new(&pool) };
            while !base::progress::Progress::is_cancelled(&is_over) {
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

/// Runs `work` while another thread reads a few lists again and again; returns its reads a second, too.
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
