//! `snapshots`: a graph as a series of snapshots, against the plain CSR of that graph.
//!
//! The benchmark repeats LLAMA's figures 3 and 4: the cost of many snapshots for loads, size, merges and analyses. The
//! first snapshot holds most edges; the other snapshots share the rest at random. *Maintained* snapshots are as a load
//! leaves them: the base is that of the newest snapshot. *Appended* snapshots have had no maintenance: the base is that
//! of the oldest, and readers apply all deltas.

mod window;

use std::path::PathBuf;
use std::time::Instant;

use anden_base::VertexId;
use anden_base::progress::Silent;
use anden_engine::{
    AppendOptions, Changes, EdgeWeight, Engine, GraphOptions, Key, KeyScheme, LoadOptions, Maintenance, MergeScope,
    SnapshotView, Spread,
};
use anden_formats::{InputPath, SerializedWeights, read_gapbs, write_file, write_gapbs};
use anden_graph::{Direction, Graph, SingleFragment, WeightType, WeightedEdges};
use anyhow::{Result, bail};

use crate::graphs::{Forms, Graphs, copy_database};
use crate::harness::{Pairs, median, seconds};
use crate::kernels::{Kernel, sources};
use crate::report::{Line, Report};
use crate::setting::Setting;

/// The share of the edges in the first snapshot.
const FIRST_SHARE: f64 = 0.8;

/// The numbers of snapshots in the paper's tables. One snapshot is the other side.
const NUM_SNAPSHOTS: [u32; 6] = [2, 6, 11, 51, 101, 201];

/// The kernels of the paper, plus shortest paths.
const KERNELS: [Kernel; 5] = [Kernel::PageRank, Kernel::Bfs, Kernel::Wcc, Kernel::Triangles, Kernel::Sssp];

/// The share of the edges in a small append; ten of them are compared with one of equal total size.
const SMALL_SHARE: f64 = 0.001;

/// The number of deltas with one edge each.
const NUM_TINY: u32 = 2000;

/// Runs the benchmark. A quick run has few snapshots.
pub fn run(setting: &Setting, graphs: &Graphs<'_>, is_quick: bool, report: &mut Report) -> Result<()> {
    if !KERNELS.iter().any(|&kernel| is_wanted(setting, kernel)) {
        bail!("--kernel: one of {} expected", KERNELS.map(Kernel::name).join(", "));
    }
    let plain = graphs.plain()?;
    let measures = |part: Part| setting.parts.is_empty() || setting.parts.contains(&part);
    if measures(Part::Series) {
        series_lines(setting, graphs, &plain, if is_quick { &[3] } else { &NUM_SNAPSHOTS }, report)?;
    }
    if measures(Part::Array) {
        array_lines(setting, &plain, report)?;
    }
    if measures(Part::Append) {
        append_lines(setting, &plain, report)?;
    }
    if measures(Part::Steady) {
        for num_appends in if is_quick { &[10][..] } else { &[10, 200] } {
            steady_lines(setting, &plain, *num_appends, None, report)?;
            if is_wanted(setting, Kernel::Sssp) {
                steady_lines(setting, &graphs.weighted()?, *num_appends, Some(WeightType::U32), report)?;
            }
        }
    }
    if measures(Part::Tiny) {
        tiny_lines(setting, report)?;
    }
    if measures(Part::Window) {
        window::lines(setting, &plain, is_quick, report)?;
    }
    Ok(())
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// From 2 to 201 snapshots of one load; the 201 also appended and merged.
    Series,
    /// The vertex table against a flat array.
    Array,
    /// Small appends against a large one.
    Append,
    /// Appends with maintenance.
    Steady,
    /// Thousands of deltas with one edge each.
    Tiny,
    /// A sliding window over hundreds of batches.
    Window,
}

/// Whether the options select a kernel.
fn is_wanted(setting: &Setting, kernel: Kernel) -> bool {
    setting.kernel.as_ref().is_none_or(|name| name == kernel.name())
}

/// Measures the paper's figures: one load with rising numbers of snapshots.
fn series_lines(
    setting: &Setting,
    graphs: &Graphs<'_>,
    plain: &Forms,
    counts: &[u32],
    report: &mut Report,
) -> Result<()> {
    let one = load(setting, plain, 1, None)?;
    let (time, csr) = seconds(|| read_gapbs(plain.serialized(), &setting.pool));
    drop(csr?);
    report.line(ratio_line("1 snapshot: load", "s", one.seconds, (time, "csr in memory"), "durable; the csr is not"));
    for &count in counts {
        let many = load(setting, plain, count, None)?;
        let name = format!("{count} snapshots");
        report.line(ratio_line(&format!("{name}: load"), "s", many.seconds, (one.seconds, "1 snapshot"), ""));
        let bytes = (one.bytes() / 1e6, "1 snapshot");
        report.line(ratio_line(&format!("{name}: size"), "MB", many.bytes() / 1e6, bytes, "≤ 1.6 at 201"));
        open_lines(&many, &name, report)?;
        let target = if count <= 11 { "≤ 1.05" } else { "≤ 1.15" };
        kernel_lines(setting, graphs, &many, (Made::Loaded, &format!("{name}, maintained"), target), report)?;
        if count == *counts.last().unwrap_or(&count) {
            oldest_lines(setting, plain, &many, &name, report)?;
            let appended = append_all(setting, &many, None)?;
            kernel_lines(setting, graphs, &appended, (Made::Appended, &format!("{name}, appended"), "≤ 1.6"), report)?;
            merge_lines(setting, plain, &appended, &one, report)?;
        }
    }
    Ok(())
}

/// The way snapshots were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    /// One load.
    Loaded,
    /// Appends without maintenance.
    Appended,
}

/// A database in the scratch directory, removed on drop.
struct Loaded {
    path: PathBuf,
    database: Option<Engine>,
    seconds: f64,
    num_snapshots: u32,
}

impl Loaded {
    fn database(&self) -> Result<&Engine> {
        self.database.as_ref().ok_or_else(|| anyhow::anyhow!("the database is closed"))
    }

    fn bytes(&self) -> f64 {
        self.database.as_ref().map_or(0, |database| database.stats().bytes) as f64
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.database = None;
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn load(setting: &Setting, forms: &Forms, num_snapshots: u32, weights: Option<WeightType>) -> Result<Loaded> {
    let spread = Spread { num_snapshots, first_share: Some(FIRST_SHARE), seed: 1 };
    load_file(setting, forms.serialized().to_owned(), forms.csr().graph_kind(), spread, weights)
}

fn load_file(
    setting: &Setting,
    input: PathBuf,
    graph_kind: anden_graph::GraphKind,
    spread: Spread,
    weights: Option<WeightType>,
) -> Result<Loaded> {
    let kind = if weights.is_some() { "weighted" } else { "plain" };
    let name = format!("{kind}-{}-of-{}.anden", input.file_stem().unwrap_or_default().display(), spread.num_snapshots);
    let path = setting.scratch.join(name);
    if path.exists() {
        std::fs::remove_dir_all(&path)?;
    }
    let graph = GraphOptions { graph_kind, keys: KeyScheme::Dense, weight_type: weights, ..GraphOptions::default() };
    let num_snapshots = spread.num_snapshots;
    let options = LoadOptions { graph, spread, ..LoadOptions::default() };
    let (time, loaded) = seconds(|| Engine::load(&path, &[InputPath::File(input)], &options, &setting.pool, &Silent));
    Ok(Loaded { path, database: Some(loaded?.0), seconds: time, num_snapshots })
}

/// Makes equal snapshots by appends: loads the first and appends the changes of every other.
fn append_all(setting: &Setting, many: &Loaded, weights: Option<WeightType>) -> Result<Loaded> {
    let database = many.database()?;
    let mut appended = first_alone(setting, database, weights)?;
    let options = AppendOptions { maintenance: Maintenance::Never, ..AppendOptions::default() };
    for number in 2..=many.num_snapshots {
        let changes = step(database, (number - 1, number), weights.is_some())?;
        let (time, done) = seconds(|| {
            appended.database()?.append_changes(&changes, &options, &setting.pool, &Silent).map_err(anyhow::Error::from)
        });
        done?;
        appended.seconds += time;
    }
    appended.num_snapshots = many.num_snapshots;
    Ok(appended)
}

fn changes(edges: impl Iterator<Item = (VertexId, VertexId, Option<EdgeWeight>)>) -> Changes {
    let key = |vertex: VertexId| Key::Integer(vertex.into());
    Changes { added: edges.map(|(u, v, weight)| (key(u), key(v), weight)).collect(), ..Changes::default() }
}

/// A database with only the first snapshot of another.
fn first_alone(setting: &Setting, database: &Engine, weights: Option<WeightType>) -> Result<Loaded> {
    let first = database.snapshot(1)?;
    let is_weighted = weights.is_some();
    let path = setting.scratch.join(if is_weighted { "first.wsg" } else { "first.sg" });
    let serialized = if is_weighted { SerializedWeights::Write } else { SerializedWeights::Leave };
    write_file(&path, |output| write_gapbs(&first, serialized, output))?;
    let alone = load_file(setting, path.clone(), first.graph_kind(), Spread::default(), weights)?;
    std::fs::remove_file(path)?;
    Ok(alone)
}

/// The edges added between two snapshots.
fn step(database: &Engine, (from, to): (u32, u32), is_weighted: bool) -> Result<Changes> {
    let added = database.diff(from, to)?.added;
    Ok(changes(added.iter().map(|arc| {
        let weight = is_weighted.then_some(EdgeWeight::Integer(arc.data.weight as i64));
        (arc.list, arc.neighbor, weight)
    })))
}

/// Measures every kernel on the newest snapshot.
fn kernel_lines(
    setting: &Setting,
    graphs: &Graphs<'_>,
    snapshots: &Loaded,
    (made, name, target): (Made, &str, &str),
    report: &mut Report,
) -> Result<()> {
    let plain = graphs.plain()?;
    for kernel in KERNELS.into_iter().filter(|&kernel| is_wanted(setting, kernel)) {
        let name = format!("{name}: {}", kernel.name());
        if kernel == Kernel::Sssp {
            let weighted = graphs.weighted()?;
            let weights = Some(WeightType::U32);
            let many = load(setting, &weighted, snapshots.num_snapshots, weights)?;
            let many = if made == Made::Appended { append_all(setting, &many, weights)? } else { many };
            kernel_line(setting, kernel, (&many.database()?.view()?, weighted.csr()), (&name, target), report)?;
        } else {
            kernel_line(setting, kernel, (&snapshots.database()?.view()?, plain.csr()), (&name, target), report)?;
        }
    }
    Ok(())
}

/// Measures a kernel on a view, against the plain CSR of that graph.
pub(crate) fn kernel_line(
    setting: &Setting,
    kernel: Kernel,
    (view, csr): (&SnapshotView, &(impl WeightedEdges + SingleFragment)),
    (name, target): (&str, &str),
    report: &mut Report,
) -> Result<()> {
    if (view.num_arcs(), view.vertex_bound()) != (csr.num_arcs(), csr.vertex_bound()) {
        bail!("{name}: {} arcs expected, {} found", csr.num_arcs(), view.num_arcs());
    }
    let sources = sources(csr);
    let source = |pair: usize| sources[pair % sources.len()];
    let pairs = Pairs::alternate(
        setting.num_pairs,
        |pair| anyhow::Ok(kernel.run(setting, view, source(pair))?.seconds),
        |pair| Ok(kernel.run(setting, csr, source(pair))?.seconds),
    )?;
    report.line(Line::compared(name, &pairs, "mapped csr", target));
    Ok(())
}

/// Measures the oldest snapshot, which is read backward from the base of the newest.
fn oldest_lines(setting: &Setting, forms: &Forms, many: &Loaded, name: &str, report: &mut Report) -> Result<()> {
    let view = many.database()?.snapshot(1)?;
    let source = sources(&view).first().copied().unwrap_or(0);
    let first = Kernel::Bfs.run(setting, &view, source)?.seconds;
    report.line(Line::figure(format!("{name}, oldest: first bfs"), "s", first, "every page is patched"));
    let pairs = Pairs::alternate(
        setting.num_pairs,
        |_| anyhow::Ok(Kernel::Bfs.run(setting, &view, source)?.seconds),
        |_| Ok(Kernel::Bfs.run(setting, forms.csr(), source)?.seconds),
    )?;
    let bound = "the csr is the newest's: a quarter more edges";
    report.line(Line::compared(format!("{name}, oldest: bfs"), &pairs, "mapped csr", bound));
    Ok(())
}

/// Measures the multiversioned vertex table against the flat array of the CSR: LLAMA's section III-C.
fn array_lines(setting: &Setting, forms: &Forms, report: &mut Report) -> Result<()> {
    /// Golden-ratio steps visit every vertex once, in an order that defeats hardware prefetching.
    const STEP: u64 = 0x9e37_79b1;
    fn sum(setting: &Setting, graph: &impl Graph, step: u64) -> u64 {
        let bound = graph.vertex_bound() as u64;
        let degree = |i: usize| graph.degree(Direction::Out, (i as u64 * step % bound) as VertexId) as u64;
        setting.pool.map_chunks(0..bound as usize, 1 << 14, |_, chunk| chunk.map(degree).sum::<u64>()).iter().sum()
    }
    for (name, step) in [("array: degrees in order", 1), ("array: degrees at random", STEP)] {
        let timed = |graph: &dyn Fn() -> u64| -> Result<f64> {
            let (time, sum) = seconds(graph);
            if step == 1 && sum != forms.csr().num_arcs() {
                bail!("degrees add up to {sum}, not to {}", forms.csr().num_arcs());
            }
            Ok(time)
        };
        let pairs = Pairs::alternate(
            setting.num_pairs,
            |_| timed(&|| sum(setting, forms.view(), step)),
            |_| timed(&|| sum(setting, forms.csr(), step)),
        )?;
        report.line(Line::compared(name, &pairs, "mapped csr", "LLAMA's section III-C"));
    }
    Ok(())
}

/// Measures the slowest of several snapshots to open.
fn open_lines(many: &Loaded, name: &str, report: &mut Report) -> Result<()> {
    let mut slowest: f64 = 0.0;
    for number in [1, many.num_snapshots.div_ceil(2), many.num_snapshots] {
        let (time, view) =
            seconds(|| -> Result<SnapshotView> { Ok(Engine::open_read_only(&many.path)?.snapshot(number)?) });
        view?;
        slowest = slowest.max(time);
    }
    report.line(Line::figure(format!("{name}: open any"), "s", slowest, "≤ 0.2"));
    Ok(())
}

/// Measures the merge of appended snapshots into one base, then drops all but the newest.
fn merge_lines(setting: &Setting, forms: &Forms, many: &Loaded, one: &Loaded, report: &mut Report) -> Result<()> {
    let database = many.database()?;
    let name = format!("{} snapshots, appended", many.num_snapshots);
    let pairs = Pairs::alternate(
        setting.num_gap_pairs.clamp(1, 5),
        |_| -> Result<f64> {
            let database = Engine::open(&synced_copy(setting, many)?)?;
            let (time, merged) = seconds(|| database.merge(MergeScope::All, &setting.pool, &Silent));
            merged?;
            Ok(time)
        },
        |_| {
            // A disk is slower after a large write, so both sides follow one.
            synced_copy(setting, many)?;
            Ok(load(setting, forms, 1, None)?.seconds)
        },
    )?;
    report.line(Line::compared(format!("{name}: merge"), &pairs, "load of it sorted", "≤ 2"));
    database.merge(MergeScope::All, &setting.pool, &Silent)?;
    let older: Vec<u32> = (1..many.num_snapshots).collect();
    let (time, dropped) = seconds(|| database.drop_snapshots(&older, &Silent));
    dropped?;
    report.line(Line::figure(format!("{name}: drop all but the newest"), "s", time, ""));
    database.merge(MergeScope::All, &setting.pool, &Silent)?;
    let bytes = (one.bytes() / 1e6, "1 snapshot");
    report.line(ratio_line("all but the newest dropped: size", "MB", many.bytes() / 1e6, bytes, "within 2 %"));
    Ok(())
}

/// A synced copy of a database.
fn synced_copy(setting: &Setting, many: &Loaded) -> Result<PathBuf> {
    let path = setting.scratch.join("copy.anden");
    copy_database(&many.path, &path)?;
    Ok(path)
}

/// Measures ten small appends against one of equal total size, in time and bytes.
fn append_lines(setting: &Setting, forms: &Forms, report: &mut Report) -> Result<()> {
    // The load makes eleven parts: a first one with nearly all edges, and ten small appends.
    let spread = Spread { num_snapshots: 11, first_share: Some(1.0 - 10.0 * SMALL_SHARE), seed: 2 };
    let graph_kind = forms.csr().graph_kind();
    let parts = load_file(setting, forms.serialized().to_owned(), graph_kind, spread, None)?;
    let path = setting.scratch.join("small.sg");
    let first = parts.database()?.snapshot(1)?;
    write_file(&path, |output| write_gapbs(&first, SerializedWeights::Leave, output))?;
    let options = AppendOptions { maintenance: Maintenance::Never, ..AppendOptions::default() };
    let timed = |steps: &[(u32, u32)]| -> Result<(f64, f64)> {
        let base = load_file(setting, path.clone(), graph_kind, Spread::default(), None)?;
        let before = base.bytes();
        let mut total = 0.0;
        for &(from, to) in steps {
            let changes = step(parts.database()?, (from, to), false)?;
            let (time, done) = seconds(|| {
                base.database()?.append_changes(&changes, &options, &setting.pool, &Silent).map_err(anyhow::Error::from)
            });
            done?;
            total += time;
        }
        Ok((total, base.bytes() - before))
    };
    let steps: Vec<_> = (1..11).map(|number| (number, number + 1)).collect();
    let (mut pairs, mut bytes) = (Pairs::default(), (0.0, 0.0));
    for _ in 0..setting.num_gap_pairs.clamp(1, 5) {
        let (small, large) = (timed(&steps)?, timed(&[(1, 11)])?);
        pairs.push(small.0, large.0);
        bytes = (small.1, large.1);
    }
    std::fs::remove_file(path)?;
    report.line(Line::compared("10 appends of .1 %", &pairs, "one of 1 %", "≤ 1.5"));
    report.line(ratio_line("10 appends of .1 %: size", "MB", bytes.0 / 1e6, (bytes.1 / 1e6, "one of 1 %"), "≤ 1.5"));
    Ok(())
}

/// Appends snapshots with maintenance. Measures the time of each, and all bytes written for it.
fn steady_lines(
    setting: &Setting,
    forms: &Forms,
    num_appends: u32,
    weights: Option<WeightType>,
    report: &mut Report,
) -> Result<()> {
    let name = format!("{} snapshots, appended with maintenance", num_appends + 1);
    let spread = Spread { num_snapshots: num_appends + 1, first_share: Some(FIRST_SHARE), seed: 3 };
    let parts = load_file(setting, forms.serialized().to_owned(), forms.csr().graph_kind(), spread, weights)?;
    let base = first_alone(setting, parts.database()?, weights)?;
    let mut times = Vec::new();
    for number in 1..=num_appends {
        let changes = step(parts.database()?, (number, number + 1), weights.is_some())?;
        let options = AppendOptions::default();
        let (time, done) = seconds(|| {
            base.database()?.append_changes(&changes, &options, &setting.pool, &Silent).map_err(anyhow::Error::from)
        });
        done?;
        times.push(time);
    }
    if weights.is_none() {
        let slowest = times.iter().copied().fold(0.0, f64::max);
        report.line(Line::figure(format!("{name}: an append"), "s", median(&times), "maintenance as it is due"));
        report.line(Line::figure(format!("{name}: the slowest append"), "s", slowest, "with a merge"));
        let stats = base.database()?.stats();
        let amplification = stats.bytes_written as f64 / stats.bytes_loaded as f64;
        report.line(Line::figure(format!("{name}: written a byte"), "B", amplification, "≤ 4"));
    }
    let view = base.database()?.view()?;
    let reads = |kernel: Kernel| is_wanted(setting, kernel) && (kernel == Kernel::Sssp) == weights.is_some();
    for kernel in KERNELS.into_iter().filter(|&kernel| reads(kernel)) {
        let target = if num_appends <= 10 { "≤ 1.05" } else { "≤ 1.15" };
        kernel_line(setting, kernel, (&view, forms.csr()), (&format!("{name}: {}", kernel.name()), target), report)?;
    }
    Ok(())
}

/// Measures thousands of snapshots of one edge each.
fn tiny_lines(setting: &Setting, report: &mut Report) -> Result<()> {
    let path = setting.scratch.join("tiny.anden");
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let database = Engine::create(&path, options)?;
    let append = AppendOptions { maintenance: Maintenance::Never, ..AppendOptions::default() };
    let start = Instant::now();
    for number in 0..NUM_TINY {
        let changes = changes(std::iter::once((number % 97, number, None)));
        database.append_changes(&changes, &append, &setting.pool, &Silent)?;
    }
    let each = start.elapsed().as_secs_f64() / f64::from(NUM_TINY);
    drop(database);
    report.line(Line::figure("an append of one edge", "ms", each * 1e3, "synced"));
    let num_files = std::fs::read_dir(&path)?.count() as f64;
    report.line(Line::figure(format!("{NUM_TINY} tiny levels: files"), "", num_files, "< 200"));
    let (time, view) = seconds(|| -> Result<u64> { Ok(Engine::open_read_only(&path)?.view()?.num_edges()) });
    if view? != u64::from(NUM_TINY) {
        bail!("the graph of {NUM_TINY} tiny levels lost edges");
    }
    report.line(Line::figure(format!("{NUM_TINY} tiny levels: open"), "s", time, "≤ 1"));
    std::fs::remove_dir_all(path)?;
    Ok(())
}

fn ratio_line(name: &str, unit: &'static str, ours: f64, (other, other_name): (f64, &str), bound: &str) -> Line {
    let ratio = ours / other;
    Line {
        name: name.to_owned(),
        unit,
        ours: Some(ours),
        other: Line::beside(other, other_name),
        ratio: Some((ratio, ratio, ratio)),
        bound: bound.to_owned(),
    }
}
