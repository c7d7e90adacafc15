//! `anden load`.

use std::path::{Path, PathBuf};

use anden::{
    Database, Direction, Duplicates, Format, HeaderRule, InputPath, KeyKind, KeyScheme, LoadOptions, LoadReport,
    OnError, Options, SourceOptions, Spread, WantedProperties, WeightType,
};
use serde_json::json;

use super::ingested::{add_input, add_rows, say_notes, say_skipped};
use super::session;
use crate::args::{
    Global, LoadArgs, LoadDuplicates, LoadFormat, LoadHeader, LoadIds, LoadOnError, LoadWeight, ReadingArgs,
};
use crate::console::{Console, Table, count, duration, size};
use crate::failure::{Failure, Result};

/// Creates a database from files.
pub fn execute(global: &Global, args: &LoadArgs) -> Result {
    let inputs: Vec<InputPath> = args.inputs.iter().map(|path| input(path)).collect();
    require_one_stdin(&inputs, &args.reading)?;
    let options = options(args)?;
    let (session, watch) = session(global)?;
    watch.clean_up_from_here();
    let loaded = Database::load(&args.database, &inputs, &options, &session);
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

/// Refuses inputs, files of vertices and of edges of a type included, of which two are standard input.
pub(super) fn require_one_stdin<'a>(
    inputs: impl IntoIterator<Item = &'a InputPath>,
    reading: &'a ReadingArgs,
) -> Result {
    let of_vertices = reading.vertices.iter().map(|input| &*input.path);
    let of_edges = reading.edges.iter().map(|input| input.path.path());
    let all = inputs.into_iter().map(InputPath::path).chain(of_vertices).chain(of_edges);
    match all.filter(|path| *path == InputPath::Stdin.path()).count() {
        0 | 1 => Ok(()),
        _ => Err(Failure::Usage("standard input can be read once: give - once".into())),
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

fn table(database: &Database, report: &LoadReport) -> Table {
    let mut table = Table::new();
    let options = database.options();
    let direction = match options.direction {
        Direction::Undirected => "undirected",
        Direction::Directed if options.ordered => "ordered",
        Direction::Directed => "directed",
    };
    let rate = count((report.edges as f64 / report.seconds.max(1e-9)) as u64);
    table.pair("  vertices", count(report.vertices)).pair("  edges", format!("{}, {direction}", count(report.edges)));
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

fn options(args: &LoadArgs) -> Result<LoadOptions> {
    let duplicates = duplicates(args.duplicates, args.multigraph)?;
    let format = format(args.reading.format)?;
    let weights = weight_type(args, format);
    let keys = args.ids.map_or_else(|| usual_keys(&args.reading), key_scheme);
    let key_kind = if keys == KeyScheme::String { KeyKind::String } else { KeyKind::Integer };
    let source = SourceOptions { weights, keys: key_kind, ..sources(&args.reading, format, WantedProperties::All) };
    let graph = Options {
        direction: if args.undirected { Direction::Undirected } else { Direction::Directed },
        multigraph: duplicates == Duplicates::Keep,
        ordered: args.ordered,
        keys,
        weight_type: weights,
        in_edges: !args.out_only,
        // Where the inputs have columns for them, loading finds out.
        edge_properties: false,
    };
    let spread = Spread { num_snapshots: args.snapshots, first_share: args.first_share, seed: args.seed.unwrap_or(1) };
    Ok(LoadOptions {
        graph,
        follows_inputs: !(args.undirected || args.directed || args.ordered),
        duplicates,
        io_order: args.reading.io_order,
        source,
        spread,
        ..LoadOptions::default()
    })
}

/// How inputs are read, as far as the options say so; `properties` of edges if they do not say which.
pub fn sources(args: &ReadingArgs, format: Option<Format>, properties: WantedProperties) -> SourceOptions {
    SourceOptions {
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
        comment: args.comment,
        trim: args.trim,
        columns: args.columns.clone(),
        edge_properties: args.properties.clone().unwrap_or(properties),
        edges: args.edges.clone(),
        vertices: args.vertices.clone(),
        vertex_column: args.vertex_column.clone(),
        vertex_properties: args.vertex_properties.clone(),
        vertex_types: args.property_types.clone(),
        edge_types: args.property_types.clone(),
        ..SourceOptions::default()
    }
}

pub fn duplicates(rule: Option<LoadDuplicates>, is_multigraph: bool) -> Result<Duplicates> {
    Ok(match (rule, is_multigraph) {
        (Some(LoadDuplicates::Min | LoadDuplicates::Last | LoadDuplicates::Sum), true) => {
            return Err(Failure::Usage(
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

/// What keys are where no option says so: those in spaces are text.
fn usual_keys(reading: &ReadingArgs) -> KeyScheme {
    let of_edges = reading.edges.iter().any(|input| input.source_space.is_some() || input.target_space.is_some());
    match of_edges || reading.vertices.iter().any(|input| input.space.is_some()) {
        true => KeyScheme::String,
        false => KeyScheme::Integer,
    }
}

pub fn key_scheme(ids: LoadIds) -> KeyScheme {
    match ids {
        LoadIds::Integer => KeyScheme::Integer,
        LoadIds::String => KeyScheme::String,
        LoadIds::Dense => KeyScheme::Dense,
    }
}

pub fn format(format: LoadFormat) -> Result<Option<Format>> {
    Ok(Some(match format {
        LoadFormat::Auto => return Ok(None),
        LoadFormat::Edgelist => Format::EdgeList,
        LoadFormat::Csv => Format::Csv,
        LoadFormat::Gapbs => Format::Gapbs,
        LoadFormat::Dimacs => Format::Dimacs,
        LoadFormat::Graphalytics => Format::Graphalytics,
        LoadFormat::Mtx => Format::Mtx,
        LoadFormat::Metis => Format::Metis,
        LoadFormat::Parquet => Format::Parquet,
        LoadFormat::Graphml => Format::GraphMl,
    }))
}

pub fn weight_type_of(weight: LoadWeight) -> WeightType {
    match weight {
        LoadWeight::U32 => WeightType::U32,
        LoadWeight::I64 => WeightType::I64,
        LoadWeight::F32 => WeightType::F32,
        LoadWeight::F64 => WeightType::F64,
    }
}

/// The type that is asked for; without one, that of the format: whole numbers where it has no others.
fn weight_type(args: &LoadArgs, format: Option<Format>) -> Option<WeightType> {
    if let Some(weight) = args.weight_type {
        return Some(weight_type_of(weight));
    }
    if !args.weights && args.reading.weight_column.is_none() {
        return None;
    }
    let is_whole = match format {
        Some(Format::Gapbs | Format::Dimacs) => true,
        Some(_) => false,
        None => {
            let of_types = args.reading.edges.iter().map(|input| input.path.path());
            args.inputs.iter().map(PathBuf::as_path).chain(of_types).all(has_whole_weights)
        }
    };
    Some(if is_whole { WeightType::U32 } else { WeightType::F64 })
}

fn has_whole_weights(path: &Path) -> bool {
    let mut path = PathBuf::from(path);
    while path.extension().is_some_and(|e| ["gz", "zst", "bz2", "xz"].iter().any(|packed| e == *packed)) {
        path.set_extension("");
    }
    path.extension().is_some_and(|e| ["sg", "wsg", "el", "wel", "gr"].iter().any(|known| e == *known))
}
