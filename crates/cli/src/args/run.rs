//! `anden run`.

use std::path::PathBuf;

use anden::job::{Job, Parameter, Sources};
use anden::kernel::Medium;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::{Selection, parse};

const EXAMPLES: &str = "\
Examples:
  anden run social.anden pagerank                           the ten highest ranks
  anden run social.anden pagerank --iterations 20 --output ranks.txt
  anden run social.anden wcc --output components.parquet    a table: key, component
  anden run social.anden wcc --top 5                        the five largest components, with their sizes
  anden run social.anden bfs --source 12 --check            with the independent verifier
  anden run roads.anden sssp --source 1 --delta 5000 --repeat 5 --json
  anden run social.anden wcc --snapshot tuesday
  anden run social.anden pagerank --window 3..7             the edges that snapshots 3 to 7 added
  anden run social.anden bc --sources 16
  anden run social.anden pagerank --source 12 --source 345  personalised: jumps lead to 12 and 345
  anden run roads.anden pagerank --weight weight            shared out by weight
  anden run social.anden cdlp --iterations 5 --output communities.txt
  anden run social.anden pagerank --store rank              then: export --where-vertex 'rank > 0.01'";

/// Run an algorithm on the whole graph
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Algorithm to run
    #[arg(value_name = "KERNEL", value_parser = known_kernels())]
    pub kernel: String,
    #[command(flatten)]
    pub parameters: ParameterArgs,
    #[command(flatten)]
    pub selection: Selection,
    /// Run this many times and report the median time
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000), allow_negative_numbers = true)]
    pub repeat: u32,
    /// With --repeat: let later runs use what the first one prepared, such as PageRank's bins. Without it, every run
    /// prepares anew, so all times mean the same work
    #[arg(long)]
    pub keep_preparation: bool,
    /// Write the value of each vertex to this file, in ascending order of keys. The extension selects the format: .csv,
    /// .parquet, .jsonl and .ndjson are tables with columns such as `key` and `distance`, where a vertex without a
    /// value has null. Otherwise text as in Graphalytics, `key value` per line; `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Store the value of each vertex as the vertex property NAME, in a new snapshot. A vertex without a value has null;
    /// a vertex outside the selected version or part keeps its value
    #[arg(long, value_name = "NAME")]
    pub store: Option<String>,
    /// Check the result with an independent serial algorithm (slow)
    #[arg(long)]
    pub check: bool,
}

const PREPARE_EXAMPLES: &str = "\
Examples:
  anden prepare social.anden                  what all kernels prepare from this graph
  anden prepare social.anden pagerank lcc";

/// Store what kernels prepare from the graph, so that their first run starts sooner
///
/// PageRank arranges the edges in bins, triangles and lcc in an oriented copy; kcore and cdlp need in-edges. The stored
/// form serves every run on the base, in any process, until a merge replaces the base. Results do not change. A form
/// that a run without options would not read is left out. A form that is stored already stays as it is. If the graph
/// has changes over the base, merge first.
#[derive(Args, Debug)]
#[command(after_help = PREPARE_EXAMPLES)]
pub struct PrepareArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Kernels to prepare for [default: all]
    #[arg(value_name = "KERNEL", value_parser = known_kernels())]
    pub kernels: Vec<String>,
}

/// Parameters of kernels. Each kernel accepts some and refuses the rest.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Parameters (each kernel takes some)")]
pub struct ParameterArgs {
    #[arg(long, help = source_help(), value_name = "V", allow_hyphen_values = true)]
    pub source: Vec<String>,
    #[arg(long, help = sources_help(), value_name = "N|all", conflicts_with = "source", value_parser = parse::count_or_all, allow_negative_numbers = true)]
    pub sources: Option<u64>,
    #[arg(long, help = seed_help(), value_name = "S", conflicts_with = "source", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Number of iterations (pagerank: exact, or at most with --tolerance [default: at most 100]; cdlp: at most
    /// [default: 10])
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub iterations: Option<u32>,
    /// Stop if the sum of all rank changes is below this (pagerank) [default: 1e-6 without --iterations]
    #[arg(long, value_name = "E", allow_negative_numbers = true, value_parser = parse::not_negative)]
    pub tolerance: Option<f64>,
    /// Share of rank that follows edges (pagerank) [default: 0.85]
    #[arg(long, value_name = "D", allow_negative_numbers = true, value_parser = parse::fraction)]
    pub damping: Option<f64>,
    /// Width of a distance bucket (sssp with delta-stepping) [default: chosen from the graph]
    #[arg(long, value_name = "D", allow_negative_numbers = true, value_parser = parse::positive)]
    pub delta: Option<f64>,
    /// Algorithm (pagerank: standard, gap; sssp: delta-stepping, bellman-ford)
    #[arg(long, value_name = "NAME")]
    pub algorithm: Option<String>,
    /// Edge property to use as the weight (sssp; pagerank: rank follows edges in proportion to it); `weight` names the
    /// weights of a graph loaded with --weights
    #[arg(long, value_name = "PROPERTY")]
    pub weight: Option<String>,
    /// Give each vertex's parent in place of its distance (bfs)
    #[arg(long)]
    pub parents: bool,
    #[arg(long, help = top_help(), value_name = "N", allow_negative_numbers = true)]
    pub top: Option<usize>,
    /// Variant of the algorithm, for a graph in memory or on disk: auto, memory, disk [default: auto]
    #[arg(long, value_name = "NAME", hide_possible_values = true, value_parser = media())]
    pub variant: Option<Medium>,
}

/// The kernels that take a parameter, and need this many sources if that is given.
fn takers(parameter: Parameter, needs: Option<Sources>) -> String {
    // The table of kernels decides, so a new kernel appears in the help texts by itself.
    let takes = Job::table().iter().filter(|kernel| kernel.parameters.contains(&parameter));
    let names = takes.filter(|kernel| needs.is_none_or(|needs| kernel.needs == needs)).map(|kernel| kernel.name);
    names.collect::<Vec<_>>().join(", ")
}

fn source_help() -> String {
    let [one, any] = [Sources::One, Sources::Any].map(|needs| takers(Parameter::Source, Some(needs)));
    format!("Start at this vertex; repeat for several ({one}: exactly one; {any}: any number)")
}

fn sources_help() -> String {
    let kernels = takers(Parameter::Sources, None);
    let default = "[default: all in a graph of up to 1,000 vertices, else 16]";
    format!("Sample this many sources, or use all vertices ({kernels}) {default}")
}

fn seed_help() -> String {
    format!("Seed of the sample of sources ({}) [default: 1]", takers(Parameter::Seed, None))
}

fn top_help() -> String {
    let kernels = takers(Parameter::Top, None);
    let default = "[default: 10 scores of pagerank, bc and closeness]";
    format!(
        "Show the N vertices with the highest values, the N largest components and communities by their smallest key or \
         label, and the N most frequent core numbers, with their sizes ({kernels}). Ties ascend by key {default}"
    )
}

fn media() -> impl TypedValueParser<Value = Medium> {
    let named = |name: String| Medium::ALL.into_iter().find(|medium| medium.name() == name).ok_or("no such variant");
    PossibleValuesParser::new(Medium::ALL.map(Medium::name)).try_map(named)
}

fn known_kernels() -> impl TypedValueParser<Value = String> {
    let kernels = Job::table().iter().map(|kernel| PossibleValue::new(kernel.name).help(kernel.about));
    PossibleValuesParser::new(kernels.collect::<Vec<_>>()).map(String::from)
}
