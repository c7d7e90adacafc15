//! `properties`: filters by edge properties, kernels and queries on filtered views, the edges of one type, edges as record
//! batches, and filters on a graph that changes.

mod changes;
mod types;

use std::io::{BufWriter, Write};
use std::path::Path;

use anden::load::{Duplicates, InputPath, WantedProperties};
use anden::{Database, KeyScheme, LoadOptions, Options, PageRankParams, Session, View};
use anden_graph::generate::{Generator, RmatParams};
use anyhow::Result;

use crate::harness::{Pairs, median, seconds};
use crate::machine;
use crate::report::{Line, Report, at_least};
use crate::setting::Setting;

/// Amounts are uniform below this bound.
const AMOUNTS: u64 = 1_000_000;
const KINDS: [&str; 8] = ["wire", "cash", "card", "cheque", "giro", "fee", "loan", "rent"];
/// The bytes that a filter reads a row: an amount (8) and the code of a kind (1).
const ROW_BYTES: f64 = 9.0;
const ITERATIONS: u32 = 10;

/// Runs the benchmark.
pub fn run(setting: &Setting, report: &mut Report) -> Result<()> {
    let input = setting.scratch.join("properties.csv");
    write_input(setting, &input)?;
    // A memory budget disables the cache of filtered parts, so every filter is evaluated.
    let session = Session::new(setting.pool.num_threads())?.with_memory(Some(anden_base::memory::available()));
    let graph = Options { keys: KeyScheme::Dense, edge_properties: true, ..Options::default() };
    // R-MAT generates parallel edges; the last one stays.
    let mut options = LoadOptions { graph, duplicates: Duplicates::Last, ..LoadOptions::default() };
    options.source.edge_properties = WantedProperties::All;
    let path = setting.scratch.join("properties.anden");
    let (database, _) = Database::load(&path, &[InputPath::File(input.clone())], &options, &session)?;
    let view = database.view()?;
    filters(setting, &view, report)?;
    kernel(setting, &view, report)?;
    batches(setting, &view, report)?;
    types::run(setting, &view, &session, report)?;
    drop((view, database));
    changes::run(setting, &path, &session, report)?;
    std::fs::remove_dir_all(&path)?;
    std::fs::remove_file(&input)?;
    Ok(())
}

/// Writes the edges, each with an amount, a kind and a type.
fn write_input(setting: &Setting, path: &Path) -> Result<()> {
    let (scale, degree) = (setting.origin.scale(), setting.origin.degree().into());
    let generator = Generator::rmat(&RmatParams { scale, degree, ..RmatParams::default() })?;
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    writeln!(file, "source,target,amount:i64,kind,type")?;
    for (index, (source, target)) in (0_u64..).zip(generator.edges(&setting.pool)) {
        // The step is coprime to [`AMOUNTS`], so it reaches all amounts.
        let amount = index * 7_919 % AMOUNTS;
        let (kind, edge_type) = (KINDS[(index / 3 % 8) as usize], types::TYPES[(index * 31 / 7 % 10) as usize]);
        writeln!(file, "{source},{target},{amount},{kind},{edge_type}")?;
    }
    Ok(file.flush()?)
}

fn median_of(setting: &Setting, mut body: impl FnMut() -> Result<()>) -> Result<f64> {
    body()?;
    let mut times = Vec::new();
    for _ in 0..setting.num_pairs {
        let (time, done) = seconds(&mut body);
        done?;
        times.push(time);
    }
    Ok(median(&times))
}

/// Measures the rows that a filter scans a second.
fn filters(setting: &Setting, view: &View, report: &mut Report) -> Result<()> {
    for (name, predicate, target) in [
        ("filter, 1 % of the edges", "amount < 10000", Some(200.0)),
        ("filter, 1 % of the edges, two columns", "amount < 80000 AND kind = 'wire'", Some(200.0)),
        ("filter, half of the edges", "amount < 500000", None),
    ] {
        let time = median_of(setting, || {
            view.filter(Some(predicate), None)?.num_edges();
            Ok(())
        })?;
        let rate = view.num_edges() as f64 / time / 1e6;
        let bound = target.map_or_else(String::new, |target| at_least(target, rate));
        report.line(Line::figure(name, "M rows/s", rate, bound));
    }
    Ok(())
}

/// Compares filter and kernel with the kernel alone plus one pass over the columns.
fn kernel(setting: &Setting, view: &View, report: &mut Report) -> Result<()> {
    let pass = ROW_BYTES * view.num_edges() as f64 / machine::read_bandwidth(&setting.pool);
    let params = PageRankParams { iterations: Some(ITERATIONS), ..PageRankParams::default() };
    for (name, predicate) in [
        ("filter and pagerank, 10 % of the edges", "amount < 800000 AND kind = 'wire'"),
        ("filter and pagerank, half of the edges", "amount < 500000"),
    ] {
        let part = view.filter(Some(predicate), None)?;
        part.num_edges();
        let pairs = Pairs::alternate(
            setting.num_pairs,
            |_| {
                let (time, ranks) = seconds(|| view.filter(Some(predicate), None)?.pagerank(&params));
                ranks?;
                anyhow::Ok(time)
            },
            |_| {
                let (time, ranks) = seconds(|| part.pagerank(&params));
                ranks?;
                Ok(time + pass)
            },
        )?;
        report.line(Line::compared(name, &pairs, "pagerank and a pass over the columns", "≤ 1.3"));
    }
    Ok(())
}

/// Measures the values read a second as record batches.
fn batches(setting: &Setting, view: &View, report: &mut Report) -> Result<()> {
    for columns in [&["amount", "kind"][..], &["source", "target", "amount", "kind"]] {
        let time = median_of(setting, || {
            let mut num_rows = 0;
            for batch in view.edges(columns)? {
                num_rows += batch?.num_rows() as u64;
            }
            anyhow::ensure!(num_rows == view.num_edges(), "{num_rows} edges read of {}", view.num_edges());
            Ok(())
        })?;
        let rate = columns.len() as f64 * view.num_edges() as f64 / time / 1e6;
        let name = format!("batches of {}", columns.join(", "));
        report.line(Line::figure(name, "M values/s", rate, at_least(50.0, rate)));
    }
    Ok(())
}
