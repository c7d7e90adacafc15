//! `anden load`.

use std::path::{Path, PathBuf};

use anden::load::{
    Duplicates, Format, HeaderRule, IdOrder, InputPath, KeyKind, LoadReport, OnError, SourceOptions, Spread,
    WantedProperties,
};
use anden::{Database, GraphKind, KeyScheme, LoadOptions, Options, WeightType};
use serde_json::json;

use super::ingested::{add_input, add_rows, say_notes, say_skipped};
use super::session;
use crate::args::{
    Global, LoadArgs, LoadDuplicates, LoadFormat, LoadHeader, LoadIds, LoadOnError, LoadWeight, ReadingArgs,
};
use crate::console::{Console, ConsoleTable, count, duration, size};
use crate::failure::{CommandFailure, Result};

/// Creates a database from files.
pub fn execute(global: &Global, args: &LoadArgs) -> Result {
    let inputs: Vec<InputPath> = args.inputs.iter().map(|path| input(path)).collect();
    // A second reader of standard input would find nothing.
    require_one_stdin(&inputs, &args.reading)?;
    let options = options(args, &inputs)?;
    let (session, watch) = session(global)?;
    // From here on, unfinished files of the database must not remain.
    watch.clean_up_from_here();
    let loaded = Database::load(&args.database, &inputs, &options, &session);
    // Cleared before any message, because a bar and a message would share a line.
    watch.clear();
    let (database, report) = loaded?;
    say_skipped(global, report.skipped, report.first_skipped.as_deref());
    say_notes(global, &report.notes);
    let mut console = Console::after("the database was made");
    if global.json {
        console.object(&object(&report))?;
    } else if !global.quiet {
        console.line(format_args!("loaded {}", args.database.display()))?;
        console.table(&table(&database, &report))?;
    }
    console.finish()
}

/// Refuses inputs that name standard input more than once, vertex and edge files included.
pub(super) fn require_one_stdin<'a>(
    inputs: impl IntoIterator<Item = &'a InputPath>,
    reading: &'a ReadingArgs,
) -> Result {
    let of_vertices = reading.vertices.iter().map(|input| input.path.path());
    let of_edges = reading.edges.iter().map(|input| input.path.path());
    let all = inputs.into_iter().map(InputPath::path).chain(of_vertices).chain(of_edges);
    match all.filter(|path| *path == InputPath::Stdin.path()).count() {
        0 | 1 => Ok(()),
        _ => Err(CommandFailure::Usage("standard input can be read once: give - once".into())),
    }
}

fn object(report: &LoadReport) -> serde_json::Value {
    let mut object = json!({
        "vertices": report.vertices,
        "edges": report.edges,
        "snapshot": report.snapshot,
        "seconds": report.seconds,
        "bytes": report.bytes,
        "skipped": report.skipped,
        "peak_bytes": report.peak_bytes,
    });
    add_input(&mut object, &report.input, &report.notes);
    object
}

fn table(database: &Database, report: &LoadReport) -> ConsoleTable {
    let mut table = ConsoleTable::new();
    let options = database.options();
    let graph_kind = match options.graph_kind {
        GraphKind::Undirected => "undirected",
        GraphKind::Directed if options.ordered => "ordered",
        GraphKind::Directed => "directed",
    };
    // A tiny input may take no measurable time.
    let rate = count((report.edges as f64 / report.seconds.max(1e-9)) as u64);
    table.pair("  vertices", count(report.vertices)).pair("  edges", format!("{}, {graph_kind}", count(report.edges)));
    if let (Some(first), Some(last)) = (database.snapshots().first(), database.snapshots().last())
        && let (Some(first), Some(last)) = (&first.name, &last.name)
        && report.snapshot > 1
    {
        table.pair("  snapshots", format!("{}, {first} to {last}", count(report.snapshot.into())));
    }
    add_rows(&mut table, &report.input, report.skipped);
    table
        .pair("  time", format!("{} ({rate} edges a second)", duration(report.seconds)))
        .pair("  bytes", size(report.bytes))
        .pair("  peak memory", size(report.peak_bytes));
    table
}

pub fn input(path: &Path) -> InputPath {
    if path == Path::new("-") { InputPath::Stdin } else { InputPath::File(path.to_owned()) }
}

fn options(args: &LoadArgs, inputs: &[InputPath]) -> Result<LoadOptions> {
    let duplicates = duplicates(args.duplicates, args.multigraph)?;
    let LoadFormat(format) = args.reading.format;
    let weights = weight_type(args, format);
    let source = sources(&args.reading, format, WantedProperties::All);
    let usual_keys = || match source.usual_keys(inputs) {
        KeyKind::String => KeyScheme::String,
        KeyKind::Integer => KeyScheme::Integer,
    };
    let keys = args.ids.map_or_else(usual_keys, key_scheme);
    // Dense keys are read as integers; only the store treats them otherwise.
    let key_kind = if keys == KeyScheme::String { KeyKind::String } else { KeyKind::Integer };
    let source = SourceOptions { weights, keys: key_kind, ..source };
    let graph = Options {
        graph_kind: if args.undirected { GraphKind::Undirected } else { GraphKind::Directed },
        multigraph: duplicates == Duplicates::Keep,
        ordered: args.ordered,
        keys,
        weight_type: weights,
        in_edges: !args.out_only,
        // The load sets this if the inputs have property columns.
        edge_properties: false,
    };
    let spread = Spread { num_snapshots: args.snapshots, first_share: args.first_share, seed: args.seed.unwrap_or(1) };
    Ok(LoadOptions {
        graph,
        // Without a choice, an input such as GraphML may say whether edges are directed.
        follows_inputs: !(args.undirected || args.directed || args.ordered),
        follows_weights: args.weight_type.is_none(),
        duplicates,
        order: order(&args.reading)?,
        source,
        spread,
        snapshot_by: args.snapshot_by.clone(),
        name: args.name.clone(),
        as_of: args.as_of,
        ..LoadOptions::default()
    })
}

/// The options for reading inputs; `properties` is the default choice of edge properties.
pub fn sources(args: &ReadingArgs, format: Option<Format>, properties: WantedProperties) -> SourceOptions {
    let mut sources = SourceOptions {
        format,
        on_error: if args.on_error == LoadOnError::Skip { OnError::Skip } else { OnError::Stop },
        source_column: args.source_column.clone(),
        target_column: args.target_column.clone(),
        weight_column: args.weight_column.clone(),
        header: match args.header {
            LoadHeader::Auto => HeaderRule::Auto,
            LoadHeader::First => HeaderRule::First,
            LoadHeader::None => HeaderRule::None,
        },
        delimiter: args.delimiter,
        comment: args.comment,
        trim: args.trim,
        empty_ids: args.empty_ids,
        null_words: args.null.clone(),
        scratch_limit: args.scratch_limit,
        columns: args.columns.clone(),
        edge_properties: args.properties.clone().unwrap_or(properties),
        edges: args.edges.clone(),
        vertices: args.vertices.clone(),
        vertex_column: args.vertex_column.clone(),
        vertex_properties: args.vertex_properties.clone(),
        ..SourceOptions::default()
    };
    sources.state_types(&args.property_types);
    sources
}

/// The order of ids, by either of its names.
pub fn order(args: &ReadingArgs) -> Result<IdOrder> {
    match (args.order, args.io_order) {
        (Some(order), true) if order != IdOrder::Input => Err(CommandFailure::Usage(format!(
            "--io-order is --order input, which contradicts --order {}: give one of them",
            order.name()
        ))),
        (_, true) => Ok(IdOrder::Input),
        (order, false) => Ok(order.unwrap_or_default()),
    }
}

pub fn duplicates(rule: Option<LoadDuplicates>, is_multigraph: bool) -> Result<Duplicates> {
    Ok(match (rule, is_multigraph) {
        (Some(LoadDuplicates::Min | LoadDuplicates::Last | LoadDuplicates::Sum), true) => {
            return Err(CommandFailure::Usage(
                "--multigraph keeps parallel edges: it goes with --duplicates keep only".into(),
            ));
        }
        (_, true) | (Some(LoadDuplicates::Keep), _) => Duplicates::Keep,
        (Some(LoadDuplicates::Last), _) => Duplicates::Last,
        (Some(LoadDuplicates::Sum), _) => Duplicates::Sum,
        (Some(LoadDuplicates::Min), _) => Duplicates::Min,
        (None, _) => Duplicates::Auto,
    })
}

pub fn key_scheme(ids: LoadIds) -> KeyScheme {
    match ids {
        LoadIds::Integer => KeyScheme::Integer,
        LoadIds::String => KeyScheme::String,
        LoadIds::Dense => KeyScheme::Dense,
    }
}

pub fn weight_type_of(weight: LoadWeight) -> WeightType {
    match weight {
        LoadWeight::U32 => WeightType::U32,
        LoadWeight::I64 => WeightType::I64,
        LoadWeight::F32 => WeightType::F32,
        LoadWeight::F64 => WeightType::F64,
    }
}

/// The requested weight type, else that of the format: integers for formats with integer weights only.
fn weight_type(args: &LoadArgs, format: Option<Format>) -> Option<WeightType> {
    if let Some(weight) = args.weight_type {
        return Some(weight_type_of(weight));
    }
    // A named weight column asks for weights as well.
    if !args.weights && args.reading.weight_column.is_none() {
        return None;
    }
    // No input is open yet, so without --format the file names decide.
    let is_whole = match format {
        Some(format) => format.has_whole_weights(),
        None => {
            let of_types = args.reading.edges.iter().map(|input| input.path.path());
            args.inputs.iter().map(PathBuf::as_path).chain(of_types).all(is_of_whole_weights)
        }
    };
    Some(if is_whole { WeightType::U32 } else { WeightType::F64 })
}

fn is_of_whole_weights(path: &Path) -> bool {
    Format::of_path(path).is_some_and(Format::has_whole_weights)
}
