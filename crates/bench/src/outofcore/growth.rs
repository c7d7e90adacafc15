//! Graphs of one to nine times the memory: whether time grows linearly with the graph.
//!
//! These lines repeat LLAMA's figures 7 and 8: R-MAT graphs with more vertices or more edges a vertex, most larger than
//! memory. They also repeat our columns of its tables I and III: PageRank, breadth-first search, triangles and loads.
//! The loads read serialized graphs, whose lists are sorted already.

use std::path::PathBuf;

use anden_base::progress::Silent;
use anden_formats::{generated, write_file};
use anden_graph::generate::{Generator, RmatParams};
use anden_testkit::memory_group::MemoryGroup;
use anyhow::Result;

use super::child::Task;
use super::loading::Loading;
use super::side::Side;
use super::work::{ITERATIONS, Work};
use super::{Ground, bytes_of, limited_to};
use crate::harness::median;
use crate::report::{Line, Report};

/// The memory limit for all graphs.
const LIMIT_BYTES: u64 = 64 << 20;
/// From this multiple of the memory on, a workload must grow linearly.
const FROM_TIMES: f64 = 1.9;

const WORKS: [Work; 5] = [Work::Degrees, Work::Wcc, Work::PageRank, Work::Bfs, Work::Triangles];

/// Graphs that grow in one dimension.
struct Series {
    by: &'static str,
    /// The binary logarithm of the number of vertices, and the edges a vertex.
    shapes: &'static [(u32, u64)],
}

const SERIES: [Series; 2] = [
    // The state of the vertices has one size. The lists take about 1, 2, 4, 6 and 9 times the memory.
    Series { by: "edges", shapes: &[(19, 17), (19, 36), (19, 74), (19, 114), (19, 178)] },
    // The lists take about 1, 2, 4 and 9 times the memory.
    Series { by: "vertices", shapes: &[(18, 40), (19, 40), (20, 40), (21, 40)] },
];

/// A graph of a series.
struct Grown {
    path: PathBuf,
    num_bytes: u64,
    load_seconds: f64,
}

impl Grown {
    fn times(&self) -> f64 {
        self.num_bytes as f64 / LIMIT_BYTES as f64
    }
}

/// Measures loads and scans at each size, and the slopes between the sizes.
pub(super) fn lines(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    for series in SERIES {
        let group = limited_to(LIMIT_BYTES)?;
        let mut graphs = Vec::new();
        for &(scale, degree) in series.shapes {
            let loaded = grown(ground, &group, (scale, degree));
            graphs.extend(ground.unless_it_fits(&format!("load of rmat:{scale}:{degree}"), loaded, report)?);
        }
        let at =
            |name: &str, graph: &Grown| format!("{name} at {:.1} times the memory, by {}", graph.times(), series.by);
        for graph in &graphs {
            report.line(Line::figure(at("load of a serialized graph", graph), "s", graph.load_seconds, ""));
        }
        let loads: Vec<_> = graphs.iter().map(|graph| (graph.num_bytes, graph.load_seconds)).collect();
        slopes(report, &format!("load of a serialized graph by {}", series.by), &loads);
        for work in WORKS {
            let mut medians = Vec::new();
            for graph in &graphs {
                let task = Task { database: graph.path.clone(), num_phases: 1, ..ground.task(work, Side::On) };
                let times_taken = (0..ground.num_runs())
                    .map(|_| Ok(task.run(Some(&group))?.phases[0].seconds))
                    .collect::<Result<Vec<f64>>>();
                let name = at(work.name(), graph);
                let Some(times_taken) = ground.unless_it_fits(&name, times_taken, report)? else { continue };
                let passes = if work == Work::PageRank { format!("{ITERATIONS} iterations") } else { String::new() };
                report.line(Line::figure(name, "s", median(&times_taken), passes));
                medians.push((graph.num_bytes, median(&times_taken)));
            }
            slopes(report, &format!("{} by {}", work.name(), series.by), &medians);
        }
        for graph in &graphs {
            std::fs::remove_dir_all(&graph.path)?;
        }
    }
    Ok(())
}

/// Reports the slopes of seconds over bytes, if there are several.
fn slopes(report: &mut Report, name: &str, measured: &[(u64, f64)]) {
    if let Some(farthest) = farthest_slope(measured) {
        let percent = 100.0 * farthest;
        report.line(Line::figure(format!("{name}, slopes differ by"), "%", percent, "≤ 25, from 2 times on"));
    }
}

/// The largest deviation of a slope (seconds a byte, from one size to the next) from the median slope. Counts only
/// sizes from twice the memory on. `None` with fewer than two slopes.
fn farthest_slope(measured: &[(u64, f64)]) -> Option<f64> {
    let is_large = |(num_bytes, _): &&(u64, f64)| *num_bytes as f64 >= FROM_TIMES * LIMIT_BYTES as f64;
    let large: Vec<_> = measured.iter().filter(is_large).collect();
    let slope = |pair: &[&(u64, f64)]| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0) as f64;
    let slopes: Vec<f64> = large.windows(2).map(slope).collect();
    let middle = median(&slopes);
    (slopes.len() > 1).then(|| slopes.iter().map(|slope| (slope / middle - 1.0).abs()).fold(0.0, f64::max))
}

fn grown(ground: &Ground<'_>, group: &MemoryGroup, (scale, degree): (u32, u64)) -> Result<Grown> {
    let scratch = &ground.setting.scratch;
    let (input, path) = (scratch.join("grown.sg"), scratch.join(format!("grown-{scale}-{degree}.anden")));
    let generator = Generator::rmat(&RmatParams { scale, degree, ..RmatParams::default() })?;
    write_file(&input, |output| generated::write_gapbs(&generator, &ground.setting.pool, &Silent, output))?;
    let loading = Loading { input: input.clone(), database: path.clone(), threads: ground.setting.pool.num_threads() };
    let mut load_seconds = Vec::new();
    // Loads are short and depend on the disk, so they are repeated.
    for _ in 0..ground.setting.num_pairs {
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        load_seconds.push(loading.run(group)?);
    }
    std::fs::remove_file(&input)?;
    Ok(Grown { num_bytes: bytes_of(&path)?, path, load_seconds: median(&load_seconds) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_count_from_twice_the_memory_on() {
        let at = |times: u64, seconds: f64| (times * LIMIT_BYTES, seconds);
        assert_eq!(farthest_slope(&[at(1, 50.0), at(2, 1.0), at(4, 2.0), at(6, 3.0)]), Some(0.0));
        let bent = farthest_slope(&[at(2, 1.0), at(3, 2.0), at(4, 3.0), at(5, 5.5)]).unwrap();
        assert!((bent - 1.5).abs() < 1e-9, "{bent}");
        assert_eq!(farthest_slope(&[at(1, 1.0), at(2, 1.0), at(4, 9.0)]), None);
    }
}
