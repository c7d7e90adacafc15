//! `anden info`.

use anden::{Database, DegreeStatistics, KeyScheme, PropertySchema, Stats, View};
use serde_json::{Value, json};

use super::degrees::{degrees_json, plot};
use super::index::{indexes_json, indexes_text};
use super::snapshots::snapshots_json;
use super::{open, session};
use crate::args::{Global, InfoArgs};
use crate::console::{Console, Table, count, real, size};
use crate::failure::Result;

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
    let storage = &stats.storage;
    let log_bytes = database.log_bytes()?;
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
        "runs": storage.runs,
        "levels": storage.levels,
        "bytes": database.disk_bytes()?,
        "bytes_per_edge": storage.bytes_per_edge,
        "pages": {
            "dense": storage.dense_pages,
            "empty": storage.empty_pages,
            "patched": storage.patched_pages,
        },
    });
    // Of this handle: what another process has in memory, it alone knows.
    (object["live"], object["commits"], object["views"]) =
        (live_json(&stats, log_bytes), commits_json(&stats), views_json(&stats));
    object["log"] = json!({ "bytes": log_bytes });
    object["vertex_properties"] = schema_json(view.vertex_schema());
    object["edge_properties"] = schema_json(view.edge_schema());
    object["indexes"] = indexes_json(&database.indexes());
    let pieces = view.piece_statistics()?;
    object["pieces"] = json!({ "max": pieces.max, "mean": pieces.mean });
    object["degrees"] = degrees_json(&view.out_degree_statistics()?);
    if let Some(degrees) = distinct_in_degrees(view)? {
        object["in_degrees"] = degrees_json(&degrees);
    }
    Ok(object)
}

/// What is in memory, and the log, the files of which are there whoever wrote them.
fn live_json(stats: &Stats, log_bytes: u64) -> Value {
    let live = &stats.live;
    json!({
        "delta_bytes": live.delta_bytes,
        "added": live.added,
        "removed": live.removed,
        "checkpoint_running": live.is_checkpoint_running,
        "automatic_checkpoints": live.automatic_checkpoints,
        "automatic_merges": live.automatic_merges,
        "background_write_rate": live.background_write_rate,
        "background_bytes": live.background_bytes,
        "background_pauses": live.background_pauses,
        "log_bytes": log_bytes,
        "logged_commits": live.logged_commits,
        "log_syncs": live.log_syncs,
        "log_error": live.log_error,
        "background_error": live.background_error,
    })
}

/// What was committed through a handle, what was not, and how long it took.
pub(super) fn commits_json(stats: &Stats) -> Value {
    let commits = &stats.commits;
    json!({
        "commits": commits.commits,
        "aborts": {
            "conflict": commits.conflicts,
            "invalid": commits.invalid,
            "failure": commits.failures,
        },
        "retries": commits.retries,
        "admitted_alone": commits.admitted_alone,
        "groups": commits.groups,
        "largest_group": commits.largest_group,
        "latency_ns_p50": commits.latency_ns_p50,
        "latency_ns_p99": commits.latency_ns_p99,
        "latency_ns_p999": commits.latency_ns_p999,
    })
}

fn views_json(stats: &Stats) -> Value {
    json!({ "open": stats.views.open, "oldest_age_seconds": stats.views.oldest_age.as_secs_f64() })
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

fn print(console: &mut Console, database: &Database, view: &View) -> Result {
    let Stats { storage: stats, live, .. } = database.stats();
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
    let log_bytes = database.log_bytes()?;
    let mut table = Table::new();
    table
        .pair("vertices", count(view.num_vertices() as u64))
        .pair("edges", count(view.num_edges()))
        .pair("graph", kind.join(", "));
    if !view.vertex_schema().is_empty() {
        table.pair("of vertices", schema_text(view.vertex_schema()));
    }
    let indexes = database.indexes();
    if !indexes.is_empty() {
        table.pair("indexes", indexes_text(&indexes));
    }
    if !view.edge_schema().is_empty() {
        table.pair("of edges", schema_text(view.edge_schema()));
    }
    table
        .pair("snapshots", count(database.snapshots().len() as u64))
        .pair("runs, levels", format!("{}, {}", stats.runs, stats.levels))
        .pair("pages", pages.join(", "))
        .pair("pieces a vertex", format!("at most {}, mean {}", count(pieces.max), real(pieces.mean)))
        .pair(
            "bytes",
            format!("{} ({} an edge and direction)", size(database.disk_bytes()?), real(stats.bytes_per_edge)),
        );
    if log_bytes > 0 {
        table.pair("  of these, the log", size(log_bytes));
    }
    // Committed, and in no snapshot yet.
    if live.delta_bytes > 0 {
        let (added, removed) = (count(live.added), count(live.removed));
        table
            .pair("live edges", format!("{added} added, {removed} removed"))
            .pair("  in memory", size(live.delta_bytes));
    }
    console.table(&table)?;
    let name = if view.is_directed() { "out-degree" } else { "degree" };
    plot(console, name, &view.out_degree_statistics()?)?;
    match distinct_in_degrees(view)? {
        Some(degrees) => plot(console, "in-degree", &degrees),
        None => Ok(()),
    }
}
