//! `load`: from a file to a durable database, against GAP's reader and the disk.

mod parquet;

use std::path::Path;

use anden_base::memory::{reset_resident_peak, resident_peak};
use anden_base::progress::Silent;
use anden_engine::{Engine, GraphOptions, KeyScheme, LoadOptions};
use anden_formats::InputPath;
use anden_graph::GraphKind;
use anyhow::{Result, bail};

use crate::gapbs::Gapbs;
use crate::graphs::Graphs;
use crate::harness::{Pairs, median, seconds};
use crate::machine;
use crate::report::{Line, Report};
use crate::setting::Setting;

/// The measurements of one load.
struct Load {
    seconds: f64,
    bytes: u64,
    bytes_per_edge: f64,
    peak_bytes: u64,
    arcs_bytes: f64,
}

/// The part that reads and loads Parquet.
const PARQUET: &str = "parquet";

/// Runs the benchmark.
pub fn run(setting: &Setting, graphs: &Graphs<'_>, report: &mut Report) -> Result<()> {
    match setting.kernel.as_deref() {
        None => {
            text_lines(setting, graphs, report)?;
            parquet::lines(setting, graphs, report)
        }
        Some(PARQUET) => parquet::lines(setting, graphs, report),
        Some(other) => bail!("{other:?}: the only part of load is {PARQUET}"),
    }
}

fn text_lines(setting: &Setting, graphs: &Graphs<'_>, report: &mut Report) -> Result<()> {
    let text = graphs.text()?;
    // These lines come first: memory that larger loads leave in the process would count against the limit.
    for (name, keys) in [("dense ids", KeyScheme::Dense), ("integer keys", KeyScheme::Integer)] {
        external_lines(setting, &text, name, keys, report)?;
    }
    for (name, keys, target) in [
        ("text, dense ids", KeyScheme::Dense, "speed ≥ 4: ratio ≤ 0.25"),
        ("text, integer keys", KeyScheme::Integer, "speed ≥ 2.5: ratio ≤ 0.4"),
    ] {
        for graph_kind in [GraphKind::Undirected, GraphKind::Directed] {
            text_line(setting, &text, name, keys, graph_kind, target, report)?;
        }
    }
    serialized_lines(setting, graphs, report)
}

/// Loads text into a durable database, against GAP's reader and builder, which stay in memory.
fn text_line(
    setting: &Setting,
    text: &Path,
    name: &str,
    keys: KeyScheme,
    graph_kind: GraphKind,
    target: &str,
    report: &mut Report,
) -> Result<()> {
    let undirected = graph_kind == GraphKind::Undirected;
    let name = format!("{name}, {}", if undirected { "undirected" } else { "directed" });
    let mut last = None;
    let mut ours = |_: usize| {
        let load = load(setting, text, keys, graph_kind, None)?;
        let time = load.seconds;
        last = Some(load);
        anyhow::Ok(time)
    };
    let input_bytes = std::fs::metadata(text)?.len() as f64;
    let bound = |seconds: f64| format!("{target}; {:.0} MB/s of text", input_bytes / seconds / 1e6);
    match &setting.gapbs {
        Some(gapbs) => {
            let pairs = Pairs::alternate(setting.num_gap_pairs, &mut ours, |_| gapbs.read_and_build(text, undirected))?;
            report.line(Line::compared(&*name, &pairs, Gapbs::NAME, bound(pairs.ours())));
        }
        None => {
            let times = (0..setting.num_gap_pairs).map(&mut ours).collect::<Result<Vec<f64>>>()?;
            let time = median(&times);
            report.line(Line::figure(&*name, "s", time, bound(time)));
        }
    }
    if let Some(load) = last {
        let (limit, dictionary) = if keys == KeyScheme::Dense { (4.25, 0.0) } else { (4.6, load.arcs_bytes) };
        // With a dictionary, the size counts all files.
        let bytes_per_edge = if dictionary > 0.0 { dictionary } else { load.bytes_per_edge };
        report.line(Line::figure(format!("{name}: size"), "B/arc", bytes_per_edge, format!("≤ {limit}")));
        report.line(Line::figure(format!("{name}: peak"), "MB", load.peak_bytes as f64 / 1e6, "resident"));
    }
    Ok(())
}

/// Loads a serialized graph. It is sorted already, so the bound is the speed of the disk.
fn serialized_lines(setting: &Setting, graphs: &Graphs<'_>, report: &mut Report) -> Result<()> {
    let forms = graphs.plain()?;
    let graph_kind = anden_graph::Graph::graph_kind(forms.csr());
    let mut bytes = load(setting, forms.serialized(), KeyScheme::Dense, graph_kind, None)?.bytes;
    let pairs = Pairs::alternate(
        setting.num_gap_pairs,
        |_| {
            let load = load(setting, forms.serialized(), KeyScheme::Dense, graph_kind, None)?;
            bytes = load.bytes;
            anyhow::Ok(load.seconds)
        },
        |_| machine::write_and_sync_seconds(&setting.scratch, std::fs::metadata(forms.serialized())?.len()),
    )?;
    let bound = format!("about 1; {:.2} GB written", bytes as f64 / 1e9);
    report.line(Line::compared("serialized graph", &pairs, "write and sync", bound));
    Ok(())
}

/// Loads an input four times larger than the memory budget.
fn external_lines(setting: &Setting, input: &Path, name: &str, keys: KeyScheme, report: &mut Report) -> Result<()> {
    let memory = std::fs::metadata(input)?.len() / 4;
    match load(setting, input, keys, GraphKind::Undirected, Some(memory)) {
        Ok(load) => {
            let peak = load.peak_bytes as f64 / 1e6;
            let bound = format!("≤ {:.1}: a quarter of the file", memory as f64 / 1e6);
            report.line(Line::figure(format!("in a quarter of the memory, {name}: peak"), "MB", peak, bound));
            report.line(Line::figure(format!("in a quarter of the memory, {name}"), "s", load.seconds, ""));
        }
        // The vertices must fit in memory. A quarter of a tiny graph does not even hold the program.
        Err(error) => {
            report.line(Line::not_run(format!("in a quarter of the memory, {name}"), "s", error.to_string()));
        }
    }
    Ok(())
}

fn load(setting: &Setting, input: &Path, keys: KeyScheme, graph_kind: GraphKind, memory: Option<u64>) -> Result<Load> {
    let path = setting.scratch.join("loaded.anden");
    let graph = GraphOptions { graph_kind, keys, ..GraphOptions::default() };
    let options = LoadOptions { graph, memory, ..LoadOptions::default() };
    let inputs = [InputPath::File(input.to_owned())];
    reset_resident_peak();
    let (time, loaded) = seconds(|| Engine::load(&path, &inputs, &options, &setting.pool, &Silent));
    let (database, _) = loaded?;
    let peak_bytes = resident_peak();
    let stats = database.stats();
    let num_arcs = anden_graph::Graph::num_arcs(&database.view()?);
    let num_directions = if graph_kind == GraphKind::Undirected { 1.0 } else { 2.0 };
    let arcs_bytes = stats.bytes as f64 / (num_arcs as f64 * num_directions);
    drop(database);
    std::fs::remove_dir_all(&path)?;
    Ok(Load { seconds: time, bytes: stats.bytes, bytes_per_edge: stats.bytes_per_edge, peak_bytes, arcs_bytes })
}
