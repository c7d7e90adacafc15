//! `anden-bench`: side-by-side benchmarks.
//!
//! These benchmarks print every line about speed that the documents claim. The other sides are the plain CSR and the
//! programs of the GAP suite. Without `--gapbs`, the comparisons with GAP are left out.

#![forbid(unsafe_code)]

mod compare;
mod family;
mod gapbs;
mod graphs;
mod harness;
mod kernels;
mod live;
mod load;
mod machine;
mod outofcore;
mod properties;
mod report;
mod setting;
mod snapshots;
mod tables;
mod tiers;
mod transactions;
mod updates;

use std::path::PathBuf;
use std::process::ExitCode;

use anden_base::parallel::Pool;
use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use gapbs::Gapbs;
use graphs::{Graphs, Origin};
use report::Report;
use setting::Setting;

/// Counts the heap, so that reports can give the peak memory of a kernel.
#[global_allocator]
static ALLOCATOR: anden_base::memory::CountingAllocator = anden_base::memory::CountingAllocator;

/// Side-by-side benchmarks of the Anden graph engine.
#[derive(Debug, Parser)]
#[command(name = "anden-bench", version)]
struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// Load a file into a durable database: seconds, bytes, peak memory.
    Load(Options),
    /// Run every kernel on one snapshot, against the plain CSR and GAP's programs.
    Kernels(Options),
    /// Keep a graph as a series of snapshots: load, size, merge, append, and kernels against the plain CSR.
    Snapshots(Options),
    /// Insert and remove batches of edges in the memtable, against other containers.
    Updates(Options),
    /// Move each threshold between the tiers of the memtable, and leave each tier out, against the defaults: figures 6,
    /// 11 and 12 and tables 10 and 11 of Terrace.
    Tiers(Options),
    /// Run kernels on a changed graph, against the plain CSR.
    Live(Options),
    /// Run short queries, analyses and commits, alone and concurrently.
    Transactions(Options),
    /// Limit the memory to a part of the graph: scans, queries with and without the prefetcher, growth.
    Outofcore(Options),
    /// Filter by edge properties, run kernels on filtered views, and read edges as record batches.
    Properties(Options),
    /// Run every kernel over a family of graphs, against every other side that is there.
    Family(family::FamilyOptions),
    /// Run one kernel of `family` in this process.
    #[command(hide = true)]
    FamilyChild {
        /// The task, as the parent process encodes it.
        task: String,
    },
    /// Run one measurement of `outofcore` in this process.
    #[command(hide = true)]
    OutofcoreChild {
        /// The task, as the parent process encodes it.
        task: String,
    },
    /// Run all benchmarks on a small graph with few repetitions, as a smoke test.
    Quick(Options),
    /// List the changes between two reports that exceed their noise.
    Compare {
        /// The older report, as printed with --json.
        before: PathBuf,
        /// The newer report.
        after: PathBuf,
    },
    /// Print reports as the Markdown of docs/benchmarks.md.
    Tables {
        /// Reports, as printed with --json.
        #[arg(required = true)]
        reports: Vec<PathBuf>,
    },
}

#[derive(Args, Debug)]
struct Options {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Generate this graph, as rmat:SCALE:DEGREE [default: rmat:22:16; quick: rmat:16:16].
    #[arg(long, value_name = "GRAPH", conflicts_with = "sg")]
    graph: Option<Origin>,
    /// A serialized graph of GAP (.sg). The weighted graph (.wsg) stands beside it.
    #[arg(long, value_name = "FILE")]
    sg: Option<PathBuf>,
    /// The directory with the built programs of GAP.
    #[arg(long, value_name = "DIR")]
    gapbs: Option<PathBuf>,
    /// Number of threads of both sides [default: all].
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// Number of pairs of runs in comparisons with the plain CSR [default: 15; quick: 3].
    #[arg(long)]
    pairs: Option<usize>,
    /// Number of pairs of runs in comparisons with GAP, and of repeated loads [default: 5; quick: 1].
    #[arg(long)]
    gap_pairs: Option<usize>,
    /// Measure only this kernel, by its name in the report (kernels, snapshots, live), this side (updates, tiers), or
    /// this part (transactions, outofcore; load has the part `parquet`).
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Measure only these parts of `snapshots`.
    #[arg(long, value_enum, value_name = "PART")]
    part: Vec<snapshots::Part>,
    /// A weighted road network, for `transactions` and `updates`.
    #[arg(long, value_name = "FILE")]
    roads: Option<PathBuf>,
    /// A weighted social graph, for `transactions` and `updates`.
    #[arg(long, value_name = "FILE")]
    social: Option<PathBuf>,
    /// Parquet files of edges for `load`, beside the one that it writes.
    #[arg(long, value_name = "FILE")]
    parquet: Vec<PathBuf>,
    /// The directory for files, which later runs use again [default: a temporary directory].
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
}

/// Sizes and repetitions that hold if the options give none.
struct Defaults {
    scale: u32,
    degree: u32,
    num_pairs: usize,
    num_gap_pairs: usize,
    /// Whether the benchmarks use few snapshots, batches and kernels.
    is_quick: bool,
}

const FULL: Defaults = Defaults { scale: 22, degree: 16, num_pairs: 15, num_gap_pairs: 5, is_quick: false };
/// This degree makes the lists about nine times as large as the state of all vertices.
const OUT_OF_CORE: Defaults = Defaults { scale: 20, degree: 64, num_pairs: 7, ..FULL };
const QUICK: Defaults = Defaults { scale: 16, degree: 16, num_pairs: 3, num_gap_pairs: 1, is_quick: true };

fn main() -> ExitCode {
    match run(Arguments::parse().benchmark) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("anden-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(benchmark: Benchmark) -> Result<()> {
    match benchmark {
        Benchmark::Load(options) => measure(&options, &FULL, &["load"]),
        Benchmark::Kernels(options) => measure(&options, &FULL, &["kernels"]),
        Benchmark::Snapshots(options) => measure(&options, &FULL, &["snapshots"]),
        Benchmark::Updates(options) => measure(&options, &Defaults { scale: 20, ..FULL }, &["updates"]),
        Benchmark::Tiers(options) => measure(&options, &Defaults { scale: 20, ..FULL }, &["tiers"]),
        Benchmark::Live(options) => measure(&options, &Defaults { scale: 20, ..FULL }, &["live"]),
        Benchmark::Transactions(options) => measure(&options, &FULL, &["transactions"]),
        Benchmark::Outofcore(options) => measure(&options, &OUT_OF_CORE, &["outofcore"]),
        Benchmark::Properties(options) => {
            measure(&options, &Defaults { scale: 20, degree: 10, ..FULL }, &["properties"])
        }
        Benchmark::Family(options) => family::run(&options),
        Benchmark::FamilyChild { task } => family::run_child(&task),
        Benchmark::OutofcoreChild { task } => outofcore::run_child(&task),
        Benchmark::Quick(options) => {
            const ALL: [&str; 9] =
                ["load", "kernels", "snapshots", "updates", "tiers", "live", "transactions", "outofcore", "properties"];
            measure(&options, &QUICK, &ALL)?;
            family::run(&family::FamilyOptions::quick(options.json, options.threads, options.scratch.as_deref()))
        }
        Benchmark::Compare { before, after } => compare::compare(&before, &after),
        Benchmark::Tables { reports } => tables::print(&reports),
    }
}

fn measure(options: &Options, defaults: &Defaults, names: &[&'static str]) -> Result<()> {
    let temporary = match &options.scratch {
        Some(_) => None,
        None => Some(tempfile::tempdir()?),
    };
    let scratch = match (&options.scratch, &temporary) {
        (Some(path), _) => path.clone(),
        (None, Some(directory)) => directory.path().to_owned(),
        (None, None) => std::env::temp_dir(),
    };
    std::fs::create_dir_all(&scratch)?;
    let pool = Pool::new(options.threads)?;
    let threads = pool.num_threads();
    let generated = || options.graph.clone().unwrap_or(Origin::Rmat { scale: defaults.scale, degree: defaults.degree });
    let setting = Setting {
        gapbs: options.gapbs.as_deref().map(|dir| Gapbs::new(dir, threads)).transpose()?,
        pool,
        num_pairs: options.pairs.unwrap_or(defaults.num_pairs),
        num_gap_pairs: options.gap_pairs.unwrap_or(defaults.num_gap_pairs),
        origin: options.sg.clone().map_or_else(generated, Origin::Serialized),
        kernel: options.kernel.clone(),
        parts: options.part.clone(),
        roads: options.roads.clone(),
        social: options.social.clone(),
        parquet: options.parquet.clone(),
        scratch,
    };
    let graphs = Graphs::new(&setting);
    for &name in names {
        let graph = match name {
            "transactions" => transactions::title(defaults.is_quick),
            _ => setting.origin.to_string(),
        };
        let mut report = Report::new(name, graph, threads, options.json);
        match name {
            "load" => load::run(&setting, &graphs, &mut report)?,
            "live" => live::run(&setting, &graphs, &mut report)?,
            "updates" => updates::run(&setting, defaults.is_quick, &mut report)?,
            "transactions" => transactions::run(&setting, defaults.is_quick, &mut report)?,
            "outofcore" => outofcore::run(&setting, &graphs, defaults.is_quick, &mut report)?,
            "properties" => properties::run(&setting, &mut report)?,
            "tiers" => tiers::run(&setting, &graphs, defaults.is_quick, &mut report)?,
            "snapshots" => snapshots::run(&setting, &graphs, defaults.is_quick, &mut report)?,
            _ => kernels::run(&setting, &graphs, &mut report)?,
        }
        report.finish();
    }
    Ok(())
}
