//! `anden run`.

use std::path::PathBuf;

use anden::Medium;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::{Selection, parse};

const EXAMPLES: &str = "\
Examples:
  anden run social.anden pagerank                           the ten highest ranks
  anden run social.anden pagerank --iterations 20 --output ranks.txt
  anden run social.anden wcc --output components.parquet    a table: key, component
  anden run social.anden bfs --source 12 --check            with the independent verifier
  anden run roads.anden sssp --source 1 --delta 5000 --repeat 5 --json
  anden run social.anden wcc --snapshot tuesday
  anden run social.anden pagerank --window 3..7             the edges that snapshots 3 to 7 added
  anden run social.anden bc --sources 16
  anden run social.anden pagerank --source 12 --source 345  personalised: jumps lead to 12 and 345
  anden run roads.anden pagerank --weight weight            shared out by weight
  anden run social.anden cdlp --iterations 5 --output communities.txt";

/// Run an algorithm over the whole graph
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// The database: a directory
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// The algorithm
    #[arg(value_name = "KERNEL", value_parser = known_kernels())]
    pub kernel: String,
    #[command(flatten)]
    pub parameters: ParameterArgs,
    #[command(flatten)]
    pub selection: Selection,
    /// Run it so many times, and report the median
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000), allow_negative_numbers = true)]
    pub repeat: u32,
    /// Write the value of each vertex, ascending by key, in the format that the name ends in: `.csv`, `.parquet`,
    /// `.jsonl`, `.ndjson` (a table with the columns `key` and, for example, `distance`; a vertex without a value has null), else text,
    /// `key value` a line as Graphalytics has it; `-` for text on standard output
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Check the result with an independent serial verifier (slow)
    #[arg(long)]
    pub check: bool,
}

/// The parameters of algorithms. Each algorithm takes some of them and refuses the rest.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Parameters (each kernel takes some)")]
pub struct ParameterArgs {
    /// Where to start, by key; again for several (bfs and sssp take one, bc and pagerank any number)
    #[arg(long, value_name = "V", allow_hyphen_values = true)]
    pub source: Vec<String>,
    /// So many sources, sampled, or all vertices (bc) [default: all of a graph of up to 1,000 vertices, else 16 sampled]
    #[arg(long, value_name = "N|all", conflicts_with = "source", value_parser = parse::count_or_all, allow_negative_numbers = true)]
    pub sources: Option<u64>,
    /// Draws the sample of sources (bc) [default: 1]
    #[arg(long, value_name = "S", conflicts_with = "source", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// So many iterations (pagerank: exactly so many, at most with --tolerance [default: at most 100]; cdlp: at most
    /// [default: 10])
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub iterations: Option<u32>,
    /// Stop once the ranks change by less, in total (pagerank) [default: 1e-6 unless --iterations is given]
    #[arg(long, value_name = "E", allow_negative_numbers = true, value_parser = parse::not_negative)]
    pub tolerance: Option<f64>,
    /// The share of rank that follows edges (pagerank) [default: 0.85]
    #[arg(long, value_name = "D", allow_negative_numbers = true, value_parser = parse::fraction)]
    pub damping: Option<f64>,
    /// The width of a bucket of distances (sssp, delta-stepping) [default: chosen by the graph]
    #[arg(long, value_name = "D", allow_negative_numbers = true, value_parser = parse::positive)]
    pub delta: Option<f64>,
    /// The algorithm, where there are several (pagerank: standard, gap; sssp: delta-stepping, bellman-ford)
    #[arg(long, value_name = "NAME")]
    pub algorithm: Option<String>,
    /// The edge property that holds the weights (sssp; pagerank: edges carry rank in proportion to it); `weight` for those
    /// of a graph that was loaded with --weights
    #[arg(long, value_name = "PROPERTY")]
    pub weight: Option<String>,
    /// Give the parent of each vertex in place of its distance (bfs)
    #[arg(long)]
    pub parents: bool,
    /// Which way to take, where there are several: the one for a graph in memory, or for a graph on a disk: auto, memory,
    /// disk [default: auto]
    #[arg(long, value_name = "NAME", hide_possible_values = true, value_parser = media())]
    pub variant: Option<Medium>,
}

fn media() -> impl TypedValueParser<Value = Medium> {
    let named = |name: String| Medium::ALL.into_iter().find(|medium| medium.name() == name).ok_or("no such variant");
    PossibleValuesParser::new(Medium::ALL.map(Medium::name)).try_map(named)
}

fn known_kernels() -> impl TypedValueParser<Value = String> {
    let kernels = anden::Job::table().iter().map(|kernel| PossibleValue::new(kernel.name).help(kernel.about));
    PossibleValuesParser::new(kernels.collect::<Vec<_>>()).map(String::from)
}
