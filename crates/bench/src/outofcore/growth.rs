//! Graphs of one to nine times the memory: whether time grows as the graph does (LLAMA's figures 7 and 8, and its
//! tables I and III).

use std::path::PathBuf;

use anyhow::Result;
use base::progress::Silent;
use engine::{Database, GraphOptions, KeyScheme, LoadOptions};
use graph::Direction;
use graph::formats::{InputPath, write_file};
use graph::generate::{Generator, RmatParams};

use super::child::{NO_LIMIT, Task};
use super::side::Side;
use super::work::{ITERATIONS, Work};
use super::{Ground, bytes_of, limited_to};
use crate::harness::median;
use crate::report::{Line, Report};

/// What all graphs have as memory.
const LIMIT_BYTES: u64 = 64 << 20;
/// The vertices of all of them, as a power of two: their state takes the same at any size.
const SCALE: u32 = 19;
/// Edges a vertex: the lists take 1, 2, 4, 6 and 9 times the memory, about.
const DEGREES: [u64; 5] = [17, 36, 74, 114, 178];
/// A workload from so many times the memory on grows linearly.
const FROM_TIMES: f64 = 1.9;

const WORKS: [Work; 4] = [Work::Degrees, Work::Wcc, Work::PageRank, Work::Triangles];

/// A graph that is larger than the last.
struct Grown {
    path: PathBuf,
    num_bytes: u64,
    load_seconds: f64,
}

/// Loads and scans at each size, and the slopes between the sizes.
pub(super) fn lines(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let group = limited_to(LIMIT_BYTES)?;
    let graphs = DEGREES.into_iter().map(|degree| grown(ground, degree)).collect::<Result<Vec<_>>>()?;
    let times = |graph: &Grown| graph.num_bytes as f64 / LIMIT_BYTES as f64;
    for graph in &graphs {
        let name = format!("load at {:.1} times the memory", times(graph));
        report.line(Line::figure(name, "s", graph.load_seconds, "--memory 64M"));
    }
    slopes(report, "load", &graphs, &graphs.iter().map(|graph| graph.load_seconds).collect::<Vec<_>>());
    for work in WORKS {
        let mut medians = Vec::new();
        for graph in &graphs {
            let task = Task {
                database: graph.path.clone(),
                work,
                side: Side::On,
                sequence: None,
                threads: ground.setting.pool.num_threads(),
                num_phases: 1,
                most_seconds: NO_LIMIT,
            };
            let times_taken = (0..num_runs(ground))
                .map(|_| Ok(task.run(Some(&group))?.phases[0].seconds))
                .collect::<Result<Vec<f64>>>()?;
            medians.push(median(&times_taken));
            let passes = if work == Work::PageRank { format!("{ITERATIONS} iterations") } else { String::new() };
            let name = format!("{} at {:.1} times the memory", work.name(), times(graph));
            report.line(Line::figure(name, "s", median(&times_taken), passes));
        }
        slopes(report, work.name(), &graphs, &medians);
    }
    for graph in &graphs {
        std::fs::remove_dir_all(&graph.path)?;
    }
    Ok(())
}

/// How often each size is measured; the median counts.
fn num_runs(ground: &Ground<'_>) -> usize {
    ground.setting.num_pairs.div_ceil(3)
}

/// The seconds for each byte between one size and the next, from twice the memory on, against their median.
fn slopes(report: &mut Report, name: &str, graphs: &[Grown], seconds: &[f64]) {
    let sizes: Vec<f64> = graphs.iter().map(|graph| graph.num_bytes as f64).collect();
    let large = sizes.iter().position(|&size| size >= FROM_TIMES * LIMIT_BYTES as f64).unwrap_or(sizes.len());
    let slope = |place: usize| (seconds[place + 1] - seconds[place]) / (sizes[place + 1] - sizes[place]);
    let slopes: Vec<f64> = (large..sizes.len().saturating_sub(1)).map(slope).collect();
    let middle = median(&slopes);
    let farthest = slopes.iter().map(|slope| (slope / middle - 1.0).abs()).fold(0.0, f64::max);
    report.line(Line::figure(format!("{name}, slopes differ by"), "%", 100.0 * farthest, "≤ 25, from 2 times on"));
}

fn grown(ground: &Ground<'_>, degree: u64) -> Result<Grown> {
    let scratch = &ground.setting.scratch;
    let (input, path) = (scratch.join("grown.sg"), scratch.join(format!("grown-{degree}.anden")));
    let generator = Generator::rmat(&RmatParams { scale: SCALE, degree, ..RmatParams::default() })?;
    write_file(&input, |output| generator.write_gapbs(&ground.setting.pool, &Silent, output))?;
    let graph = GraphOptions { direction: Direction::Undirected, keys: KeyScheme::Dense, ..GraphOptions::default() };
    let options = LoadOptions { graph, memory: Some(LIMIT_BYTES), ..LoadOptions::default() };
    let mut load_seconds = Vec::new();
    // They are short, and wait for the disk.
    for _ in 0..ground.setting.num_pairs {
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        let inputs = [InputPath::File(input.clone())];
        let (database, loaded) = Database::load(&path, &inputs, &options, &ground.setting.pool, &Silent)?;
        drop(database);
        load_seconds.push(loaded.seconds);
    }
    std::fs::remove_file(&input)?;
    Ok(Grown { num_bytes: bytes_of(&path)?, path, load_seconds: median(&load_seconds) })
}
