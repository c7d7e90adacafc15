//! `kernels`: every kernel on one snapshot against the plain CSR, and against the GAP suite.

use std::time::{Duration, Instant};

use anden_base::VertexId;
use anden_base::memory::{heap_peak, reset_heap_peak};
use anden_formats::read_gapbs;
use anden_graph::{Direction, Graph, SingleFragment, WeightedEdges};
use anden_kernels::SourceChoice;
use anden_kernels::bc::{BcParams, bc};
use anden_kernels::bfs::{BfsParams, bfs};
use anden_kernels::cdlp::{CdlpParams, cdlp};
use anden_kernels::closeness::{ClosenessParams, closeness};
use anden_kernels::kcore::{KcoreParams, kcore};
use anden_kernels::lcc::{LccParams, lcc};
use anden_kernels::pagerank::{Algorithm, PageRankParams, Precision, pagerank};
use anden_kernels::scc::{SccParams, scc};
use anden_kernels::sssp::{SsspParams, sssp};
use anden_kernels::triangles::{TriangleParams, triangles};
use anden_kernels::wcc::{WccParams, wcc};
use anyhow::{Result, bail};

use crate::gapbs::Gapbs;
use crate::graphs::{Forms, Graphs};
use crate::harness::{Pairs, median, seconds};
use crate::machine;
use crate::report::{Line, Report};
use crate::setting::Setting;

/// The number of PageRank iterations, as in GAP.
pub(crate) const ITERATIONS: u32 = 10;

/// The width of GAP's SSSP buckets for Kronecker graphs with weights from 1 to 255.
const GAP_DELTA: u32 = 2;

/// The number of searches of closeness: as many as a word has bits.
const CLOSENESS_SOURCES: usize = 64;

/// A measured kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// PageRank with 32-bit scores, as in GAP.
    PageRank,
    /// PageRank with 64-bit scores, the default for users.
    PageRank64,
    Bfs,
    Wcc,
    /// Equal to [`Wcc`](Self::Wcc) on an undirected graph.
    Scc,
    Sssp,
    Bc,
    Triangles,
    Lcc,
    Cdlp,
    Kcore,
    /// From [`CLOSENESS_SOURCES`] sources, which one pass searches from together.
    Closeness,
}

/// The measurements of one run.
pub(crate) struct Run {
    pub(crate) seconds: f64,
    preparation_seconds: f64,
    peak_bytes: usize,
}

impl Kernel {
    const ALL: [Self; 12] = [
        Self::PageRank,
        Self::PageRank64,
        Self::Bfs,
        Self::Wcc,
        Self::Scc,
        Self::Sssp,
        Self::Bc,
        Self::Triangles,
        Self::Lcc,
        Self::Cdlp,
        Self::Kcore,
        Self::Closeness,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PageRank => "pagerank f32",
            Self::PageRank64 => "pagerank f64",
            Self::Bfs => "bfs",
            Self::Wcc => "wcc",
            Self::Scc => "scc",
            Self::Sssp => "sssp",
            Self::Bc => "bc",
            Self::Triangles => "triangles",
            Self::Lcc => "lcc",
            Self::Cdlp => "cdlp",
            Self::Kcore => "kcore",
            Self::Closeness => "closeness",
        }
    }

    /// The program of GAP; `None` if it has none.
    fn gap_program(self) -> Option<&'static str> {
        match self {
            Self::PageRank | Self::PageRank64 => Some("pr"),
            Self::Bfs => Some("bfs"),
            Self::Wcc => Some("cc"),
            Self::Sssp => Some("sssp"),
            Self::Bc => Some("bc"),
            Self::Triangles => Some("tc"),
            Self::Scc | Self::Lcc | Self::Cdlp | Self::Kcore | Self::Closeness => None,
        }
    }

    fn gap_arguments(self, source: VertexId) -> Vec<String> {
        match self {
            Self::PageRank | Self::PageRank64 => vec![format!("-i{ITERATIONS}"), "-t0".into(), "-n1".into()],
            Self::Bfs | Self::Bc => vec![format!("-r{source}"), "-n1".into()],
            Self::Sssp => vec![format!("-r{source}"), format!("-d{GAP_DELTA}"), "-n1".into()],
            _ => vec!["-n1".into()],
        }
    }

    /// The target ratio of our time to GAP's.
    fn gap_target(self) -> &'static str {
        match self {
            Self::PageRank | Self::PageRank64 => "≤ 0.25 (scale 22), ≤ 0.5 (scale 20)",
            Self::Bfs | Self::Wcc | Self::Sssp => "≤ 0.9",
            Self::Bc => "≤ 0.6",
            Self::Triangles => "≤ 0.2",
            Self::Scc | Self::Lcc | Self::Cdlp | Self::Kcore | Self::Closeness => "",
        }
    }

    /// The lower bound of the bytes that a run moves, if each byte crosses the memory bus once.
    fn least_bytes(self, graph: &impl Graph) -> u64 {
        let (vertices, arcs) = (graph.vertex_bound() as u64, graph.num_arcs());
        match self {
            // Each iteration reads each arc and an offset, and reads and writes a score a vertex.
            Self::PageRank => u64::from(ITERATIONS) * (4 * arcs + 20 * vertices),
            Self::PageRank64 => u64::from(ITERATIONS) * (4 * arcs + 32 * vertices),
            Self::Sssp => 8 * arcs + 12 * vertices,
            Self::Bc => 2 * (4 * arcs + 16 * vertices),
            // Each iteration reads each arc and an offset, and reads and writes a label a vertex.
            Self::Cdlp => u64::from(ITERATIONS) * (4 * arcs + 16 * vertices),
            // Counting degrees needs offsets only; peeling reads every list.
            Self::Kcore => 4 * arcs + 24 * vertices,
            // Each arc once, and three words of 64 searches a vertex.
            Self::Closeness => 4 * arcs + 32 * vertices,
            Self::Bfs | Self::Wcc | Self::Scc | Self::Triangles | Self::Lcc => 4 * arcs + 8 * vertices,
        }
    }

    pub(crate) fn run<G>(self, setting: &Setting, graph: &G, source: VertexId) -> Result<Run>
    where
        G: WeightedEdges + SingleFragment,
    {
        let ctx = &anden_kernels::Context::new(&setting.pool);
        let before = reset_heap_peak();
        let (time, preparation) = seconds(|| -> anden_kernels::Result<f64> {
            Ok(match self {
                Self::PageRank | Self::PageRank64 => {
                    let precision = if self == Self::PageRank { Precision::F32 } else { Precision::F64 };
                    let params = PageRankParams {
                        iterations: Some(ITERATIONS),
                        algorithm: Algorithm::Gap,
                        precision,
                        ..PageRankParams::default()
                    };
                    pagerank(ctx, graph, &params)?.preparation_seconds
                }
                Self::Bfs => bfs(ctx, graph, &BfsParams { source, ..BfsParams::default() }).map(|_| 0.0)?,
                Self::Wcc => wcc(ctx, graph, &WccParams::default()).map(|_| 0.0)?,
                Self::Scc => scc(ctx, graph, &SccParams::default()).map(|_| 0.0)?,
                Self::Sssp => sssp(ctx, graph, &SsspParams { source, ..SsspParams::default() }).map(|_| 0.0)?,
                Self::Bc => bc(ctx, graph, &BcParams { sources: SourceChoice::Given(vec![source]) }).map(|_| 0.0)?,
                Self::Triangles => triangles(ctx, graph, &TriangleParams::default()).map(|_| 0.0)?,
                Self::Lcc => lcc(ctx, graph, &LccParams::default()).map(|_| 0.0)?,
                Self::Cdlp => {
                    let params = CdlpParams { iterations: ITERATIONS, ..CdlpParams::default() };
                    cdlp(ctx, graph, &params).map(|_| 0.0)?
                }
                Self::Kcore => kcore(ctx, graph, &KcoreParams::default()).map(|_| 0.0)?,
                Self::Closeness => {
                    let sources = SourceChoice::Sampled { count: CLOSENESS_SOURCES, seed: 1 };
                    closeness(ctx, graph, &ClosenessParams { sources }).map(|_| 0.0)?
                }
            })
        });
        Ok(Run { seconds: time, preparation_seconds: preparation?, peak_bytes: heap_peak() - before })
    }
}

/// Runs the benchmark.
pub fn run(setting: &Setting, graphs: &Graphs, report: &mut Report) -> Result<()> {
    let wanted = |kernel: &Kernel| setting.kernel.as_ref().is_none_or(|name| name == kernel.name());
    if !Kernel::ALL.iter().any(wanted) {
        bail!("--kernel: one of {} expected", Kernel::ALL.map(Kernel::name).join(", "));
    }
    let bandwidth = machine::read_bandwidth(&setting.pool);
    report.line(Line::figure("read bandwidth", "GB/s", bandwidth / 1e9, "all threads, 1 GiB"));
    parallel_loops(setting, report);
    for kernel in Kernel::ALL.into_iter().filter(wanted) {
        let forms = if kernel == Kernel::Sssp { graphs.weighted()? } else { graphs.plain()? };
        let sources = sources(forms.csr());
        let least = kernel.least_bytes(forms.csr()) as f64;
        let bound = format!("{:.2} GB moved once: {:.3} s", least / 1e9, least / bandwidth);
        against_csr(setting, kernel, &forms, &sources, &bound, report)?;
        if let (Some(gapbs), Some(program)) = (&setting.gapbs, kernel.gap_program()) {
            against_gapbs(setting, kernel, &forms, &sources, (gapbs, program), report)?;
        }
    }
    Ok(())
}

/// Measures loops of a given length of work on one thread, some time after the loop before.
fn parallel_loops(setting: &Setting, report: &mut Report) {
    const LOOPS: usize = 200;
    const CHUNKS: usize = 16;
    let spin = |time: Duration| {
        let start = Instant::now();
        while start.elapsed() < time {
            std::hint::spin_loop();
        }
    };
    for (gap, work) in [(20, 0), (20, 50), (1000, 0), (1000, 50)] {
        let chunk = Duration::from_micros(work) / CHUNKS as u32;
        let micros: Vec<f64> = (0..LOOPS)
            .map(|_| {
                spin(Duration::from_micros(gap));
                let start = Instant::now();
                setting.pool.for_each_chunk(0..CHUNKS, 1, |_, _| spin(chunk));
                start.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        let name = format!("parallel loop, {work} µs of work, {gap} µs after the last");
        report.line(Line::figure(name, "µs", median(&micros), "to wake a thread takes tens of µs"));
    }
}

/// Compares the view of a snapshot with the plain CSR, both mapped. Then compares the CSR in memory with the mapped
/// one, which gives the cost of the mapping.
fn against_csr(
    setting: &Setting,
    kernel: Kernel,
    forms: &Forms,
    sources: &[VertexId],
    bound: &str,
    report: &mut Report,
) -> Result<()> {
    let source = |pair: usize| sources[pair % sources.len()];
    let mut peak = 0;
    let pairs = Pairs::alternate(
        setting.num_pairs,
        |pair| {
            let run = kernel.run(setting, forms.view(), source(pair))?;
            peak = peak.max(run.peak_bytes);
            anyhow::Ok(run.seconds)
        },
        |pair| Ok(kernel.run(setting, forms.csr(), source(pair))?.seconds),
    )?;
    report.line(Line::compared(kernel.name(), &pairs, "mapped csr", format!("≤ 1.02, high ≤ 1.05; {bound}")));
    let a_vertex = peak as f64 / forms.csr().vertex_bound().max(1) as f64;
    report.line(Line::figure(
        format!("{} peak memory", kernel.name()),
        "B/vertex",
        a_vertex,
        "≤ 40, and what it may keep",
    ));

    let heap = read_gapbs(forms.serialized(), &setting.pool)?;
    let pairs = Pairs::alternate(
        setting.num_pairs.div_ceil(3),
        |pair| anyhow::Ok(kernel.run(setting, &heap, source(pair))?.seconds),
        |pair| Ok(kernel.run(setting, forms.csr(), source(pair))?.seconds),
    )?;
    report.line(Line::compared(format!("{} on heap csr", kernel.name()), &pairs, "mapped csr", "what huge pages give"));
    Ok(())
}

fn against_gapbs(
    setting: &Setting,
    kernel: Kernel,
    forms: &Forms,
    sources: &[VertexId],
    (gapbs, program): (&Gapbs, &str),
    report: &mut Report,
) -> Result<()> {
    let source = |pair: usize| sources[pair % sources.len()];
    let mut preparations = Vec::new();
    let pairs = Pairs::alternate(
        setting.num_gap_pairs,
        |pair| {
            let run = kernel.run(setting, forms.view(), source(pair))?;
            preparations.push(run.preparation_seconds);
            anyhow::Ok(run.seconds)
        },
        |pair| gapbs.kernel(program, forms.serialized(), &kernel.gap_arguments(source(pair))),
    )?;
    if matches!(kernel, Kernel::PageRank | Kernel::PageRank64) {
        // The first entry is the warm-up run.
        let iterations = pairs.less(&preparations[1..]);
        report.line(Line::compared(
            format!("{} iterations", kernel.name()),
            &iterations,
            Gapbs::NAME,
            kernel.gap_target(),
        ));
        report.line(Line::compared(format!("{} with preparation", kernel.name()), &pairs, Gapbs::NAME, "≤ 0.4"));
    } else {
        report.line(Line::compared(kernel.name(), &pairs, Gapbs::NAME, kernel.gap_target()));
    }
    Ok(())
}

/// Source vertices with edges, spread over the ids.
pub(crate) fn sources(graph: &impl Graph) -> Vec<VertexId> {
    const NUM_SOURCES: usize = 8;
    let bound = graph.vertex_bound();
    let start = |i: usize| (bound as u64 * (2 * i as u64 + 1) / (2 * NUM_SOURCES as u64)) as usize;
    let with_edges =
        |from: usize| (from..bound).chain(0..from).find(|&v| graph.degree(Direction::Out, v as VertexId) > 0);
    (0..NUM_SOURCES).filter_map(|i| with_edges(start(i))).map(|v| v as VertexId).collect()
}
