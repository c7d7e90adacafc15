//! `anden info`.

use anden::property::PropertySchema;
use anden::snapshot::LeaseInfo;
use anden::stats::{CommitStats, DegreeStatistics, LiveStats, LockHolder, ViewStats};
use anden::{Database, KeyScheme, Retention, View};
use serde_json::{Value, json};

use super::degrees::{degrees_json, plot};
use super::index::{indexes_json, indexes_text};
use super::snapshots::snapshots_json;
use super::{open, session};
use crate::args::{Global, InfoArgs};
use crate::console::{Console, ConsoleTable, count, real, size};
use crate::failure::Result;

/// Shows statistics of a database.
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
    let (storage, metrics) = (&stats.storage, &stats.metrics);
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
        "bases": storage.bases,
        "deltas": storage.deltas,
        // The names before 1.0 of the two figures above.
        "runs": storage.bases,
        "levels": storage.deltas,
        "bytes": database.disk_bytes()?,
        "bytes_per_edge": storage.bytes_per_edge,
        "pages": {
            "dense": storage.dense_pages,
            "empty": storage.empty_pages,
            "patched": storage.patched_pages,
        },
    });
    // These describe this handle only; the memtable of another process is not visible.
    (object["live"], object["commits"], object["views"]) =
        (live_json(&metrics.live, log_bytes), commits_json(&metrics.commits), views_json(&metrics.views));
    object["writer"] = writer_json(database.lock_holder()?.as_ref());
    object["leases"] = leases_json(&database.leases()?);
    object["retention"] = database.retention().to_string().into();
    object["held_back"] = json!(database.held_back_snapshots());
    let (keep_wal, oldest_epoch) = (database.keep_wal(), database.oldest_epoch()?);
    object["epoch"] = json!(database.epoch());
    object["log"] = json!({ "bytes": log_bytes, "keep_wal": keep_wal, "oldest_epoch": oldest_epoch });
    object["vertex_properties"] = schema_json(view.vertex_schema());
    object["edge_properties"] = schema_json(view.edge_schema());
    object["indexes"] = indexes_json(&database.indexes());
    let prepared = database.prepared().into_iter();
    object["prepared"] = prepared.map(|(form, bytes)| json!({ "form": form, "bytes": bytes })).collect();
    let fragments = view.fragment_statistics()?;
    object["fragments"] = json!({ "max": fragments.max, "mean": fragments.mean });
    object["degrees"] = degrees_json(&view.out_degree_statistics()?);
    if let Some(degrees) = distinct_in_degrees(view)? {
        object["in_degrees"] = degrees_json(&degrees);
    }
    Ok(object)
}

/// The process that has the database open for writing; null if there is none.
pub(super) fn writer_json(writer: Option<&LockHolder>) -> Value {
    writer.map_or(Value::Null, |writer| json!({ "process": writer.process, "program": writer.program }))
}

/// The leases on snapshots.
pub(super) fn leases_json(leases: &[LeaseInfo]) -> Value {
    let object = |lease: &LeaseInfo| {
        let LockHolder { process, program } = &lease.holder;
        json!({ "snapshot": lease.snapshot, "process": process, "program": program })
    };
    leases.iter().map(object).collect()
}

/// The memtable of this handle, and the WAL files on disk.
fn live_json(live: &LiveStats, log_bytes: u64) -> Value {
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

/// Counters of commits through this handle.
pub(super) fn commits_json(commits: &CommitStats) -> Value {
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

fn views_json(views: &ViewStats) -> Value {
    json!({ "open": views.open, "oldest_age_seconds": views.oldest_age.as_secs_f64() })
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

/// In-degrees, if the graph has in-lists and they differ from the out-lists.
fn distinct_in_degrees(view: &View) -> Result<Option<DegreeStatistics>> {
    // Undirected lists are equal in both directions, so a second table would repeat the first.
    let is_distinct = view.is_directed() && view.has_in_edges();
    Ok(if is_distinct { Some(view.in_degree_statistics()?) } else { None })
}

/// Adds the processes that write the database or hold leases on its snapshots.
fn add_processes(table: &mut ConsoleTable, database: &Database) -> Result {
    if let Some(writer) = database.lock_holder()? {
        table.pair("open for writing", format!("by {writer}"));
    }
    for LeaseInfo { snapshot, holder, .. } in database.leases()? {
        table.pair(&format!("lease on snapshot {snapshot}"), format!("by {holder}"));
    }
    Ok(())
}

/// The number of snapshots, and of those that stay although they are too old.
fn snapshots_text(database: &Database) -> String {
    let (num, retention) = (count(database.snapshots().len() as u64), database.retention());
    match (retention, database.held_back_snapshots().len()) {
        (Retention::All, _) => num,
        (_, 0) => format!("{num} ({retention})"),
        (_, held_back) => {
            let held_back = count(held_back as u64);
            format!("{num} ({retention} would drop {held_back}: correct the clock, or `retain {retention} --force`)")
        }
    }
}

/// Adds the WAL, and what of it is kept for the change feed.
fn add_log(table: &mut ConsoleTable, database: &Database, log_bytes: u64) -> Result {
    if log_bytes > 0 {
        table.pair("  of these, the log", size(log_bytes));
    }
    if database.keep_wal() > 0 {
        let kept = size(database.keep_wal());
        table.pair("  kept for changes", format!("up to {kept}, since epoch {}", count(database.oldest_epoch()?)));
    }
    Ok(())
}

fn print(console: &mut Console, database: &Database, view: &View) -> Result {
    let stats = database.stats();
    let (stats, live) = (stats.storage, stats.metrics.live);
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
    // A kind of page that does not occur is left out, to keep the line short.
    let pages: Vec<String> =
        pages.iter().filter(|(_, n)| *n > 0).map(|(kind, n)| format!("{} {kind}", count(*n as u64))).collect();
    let fragments = view.fragment_statistics()?;
    let log_bytes = database.log_bytes()?;
    let mut table = ConsoleTable::new();
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
        .pair("snapshots", snapshots_text(database))
        .pair("bases, deltas", format!("{}, {}", stats.bases, stats.deltas))
        .pair("pages", pages.join(", "))
        .pair("fragments a vertex", format!("at most {}, mean {}", count(fragments.max), real(fragments.mean)))
        .pair(
            "bytes",
            format!("{} ({} an edge and direction)", size(database.disk_bytes()?), real(stats.bytes_per_edge)),
        );
    add_log(&mut table, database, log_bytes)?;
    for (form, bytes) in database.prepared() {
        table.pair(&format!("  prepared, {form}"), size(bytes));
    }
    add_processes(&mut table, database)?;
    // Committed changes that no snapshot has yet.
    if live.delta_bytes > 0 {
        let (added, removed) = (count(live.added), count(live.removed));
        table
            .pair("live edges", format!("{added} added, {removed} removed"))
            .pair("  in memory", size(live.delta_bytes));
    }
    console.table(&table)?;
    let name = if view.is_directed() { "out-degree" } else { "degree" };
    let in_degrees = distinct_in_degrees(view)?.map(|degrees| ("in-degree", degrees));
    for (name, degrees) in [(name, view.out_degree_statistics()?)].into_iter().chain(in_degrees) {
        console.line(format_args!(""))?;
        plot(console, name, &degrees)?;
    }
    Ok(())
}
