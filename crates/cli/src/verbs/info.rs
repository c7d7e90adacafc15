//! `anden info`.

use anden::{Database, DegreeStatistics, KeyScheme, PropertySchema, View};
use serde_json::{Map, Value, json};

use super::snapshots::snapshots_json;
use super::{open, session};
use crate::args::{Global, InfoArgs};
use crate::console::{Console, Table, count, real, size};
use crate::failure::Result;

/// The length of the longest bar of the plot.
const BAR_WIDTH: f64 = 40.0;

/// Shows what a database holds.
pub fn execute(global: &Global, args: &InfoArgs) -> Result {
    let (session, _watch) = session(global)?;
    let database = open(&args.database, &session)?;
    let view = database.view()?;
    let mut console = Console::new();
    if global.json {
        console.object(&object(&database, &view)?)?;
    } else {
        print(&mut console, &database, &view)?;
    }
    console.finish()
}

fn object(database: &Database, view: &View) -> Result<Value> {
    let stats = database.stats();
    let mut object = json!({
        "vertices": view.num_vertices(),
        "edges": view.num_edges(),
        "directed": view.is_directed(),
        "weighted": view.weight_type().is_some(),
        "weight_type": view.weight_type().map(|weight| weight.name()),
        "multigraph": view.is_multigraph(),
        "ordered": database.options().ordered,
        "ids": ids(database),
        "in_edges": view.has_in_edges(),
        "arcs": view.num_arcs(),
        "snapshots": snapshots_json(&database.snapshots()),
        "runs": stats.runs,
        "levels": stats.levels,
        "bytes": stats.bytes,
        "bytes_per_edge": stats.bytes_per_edge,
        "pages": {
            "dense": stats.dense_pages,
            "empty": stats.empty_pages,
            "patched": stats.patched_pages,
        },
    });
    object["vertex_properties"] = schema_json(view.vertex_schema());
    let pieces = view.piece_statistics()?;
    object["pieces"] = json!({ "max": pieces.max, "mean": pieces.mean });
    object["degrees"] = degrees_json(&view.out_degree_statistics()?);
    if let Some(degrees) = distinct_in_degrees(view)? {
        object["in_degrees"] = degrees_json(&degrees);
    }
    Ok(object)
}

fn schema_json(schema: &PropertySchema) -> Value {
    schema.iter().map(|(name, property_type)| json!({ "name": name, "type": property_type.name() })).collect()
}

fn schema_text(schema: &PropertySchema) -> String {
    schema.iter().map(|(name, property_type)| format!("{name} ({property_type})")).collect::<Vec<_>>().join(", ")
}

fn ids(database: &Database) -> &'static str {
    match database.options().keys {
        KeyScheme::Integer => "integer",
        KeyScheme::String => "string",
        KeyScheme::Dense => "dense",
    }
}

/// In-degrees where they are there and are not the out-degrees once more.
fn distinct_in_degrees(view: &View) -> Result<Option<DegreeStatistics>> {
    let is_distinct = view.is_directed() && view.has_in_edges();
    Ok(if is_distinct { Some(view.in_degree_statistics()?) } else { None })
}

fn degrees_json(degrees: &DegreeStatistics) -> Value {
    let percentiles: Map<String, Value> =
        degrees.percentiles.iter().map(|&(percent, degree)| (percent.to_string(), json!(degree))).collect();
    let bins: Vec<Value> =
        degrees.bins.iter().map(|bin| json!([bin.degrees.start(), bin.degrees.end(), bin.num_vertices])).collect();
    json!({ "max": degrees.max, "mean": degrees.mean, "percentiles": percentiles, "histogram": bins })
}

fn print(console: &mut Console, database: &Database, view: &View) -> Result {
    let stats = database.stats();
    let mut kind = vec![if view.is_directed() { "directed" } else { "undirected" }.to_owned()];
    if database.options().ordered {
        kind.push("ordered".into());
    }
    if view.is_multigraph() {
        kind.push("multigraph".into());
    }
    kind.push(match view.weight_type() {
        Some(weight) => format!("{} weights", weight.name()),
        None => "no weights".into(),
    });
    kind.push(format!("{} keys", ids(database)));
    let pages = [("dense", stats.dense_pages), ("empty", stats.empty_pages), ("patched", stats.patched_pages)];
    let pages: Vec<String> =
        pages.iter().filter(|(_, n)| *n > 0).map(|(kind, n)| format!("{} {kind}", count(*n as u64))).collect();
    let pieces = view.piece_statistics()?;
    let mut table = Table::new();
    table
        .pair("vertices", count(view.num_vertices() as u64))
        .pair("edges", count(view.num_edges()))
        .pair("graph", kind.join(", "));
    if !view.vertex_schema().is_empty() {
        table.pair("of vertices", schema_text(view.vertex_schema()));
    }
    table
        .pair("snapshots", count(database.snapshots().len() as u64))
        .pair("runs, levels", format!("{}, {}", stats.runs, stats.levels))
        .pair("pages", pages.join(", "))
        .pair("pieces a vertex", format!("at most {}, mean {}", count(pieces.max), real(pieces.mean)))
        .pair("bytes", format!("{} ({} an edge and direction)", size(stats.bytes), real(stats.bytes_per_edge)));
    console.table(&table)?;
    let name = if view.is_directed() { "out-degree" } else { "degree" };
    plot(console, name, &view.out_degree_statistics()?)?;
    match distinct_in_degrees(view)? {
        Some(degrees) => plot(console, "in-degree", &degrees),
        None => Ok(()),
    }
}

/// A bar for each power of two; its length follows the logarithm of the count.
fn plot(console: &mut Console, name: &str, degrees: &DegreeStatistics) -> Result {
    let percentiles: Vec<String> =
        degrees.percentiles.iter().map(|(percent, degree)| format!("{percent} %: {}", count(*degree))).collect();
    let (max, mean) = (count(degrees.max), real(degrees.mean));
    console.line(format_args!("\n{name}: max {max}, mean {mean}, percentiles {}", percentiles.join(", ")))?;
    let length = |vertices: u64| (vertices as f64 + 1.0).ln();
    let longest = degrees.bins.iter().map(|bin| length(bin.num_vertices)).fold(1.0, f64::max);
    let mut table = Table::with_header(&["", "vertices", "(logarithmic)"]);
    for bin in &degrees.bins {
        let (first, last) = (*bin.degrees.start(), *bin.degrees.end());
        let range = if first == last {
            format!("  {}", count(first))
        } else {
            format!("  {} to {}", count(first), count(last))
        };
        let bar = "#".repeat((length(bin.num_vertices) / longest * BAR_WIDTH).round() as usize);
        table.row([range, count(bin.num_vertices), bar]);
    }
    console.table(&table)
}
