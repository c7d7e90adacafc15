//! `anden append`.

use anden::changes::{AppendReport, ExpectedGraph, ExpectedWeights, Maintenance};
use anden::load::{Duplicates, InputPath, WantedProperties};
use anden::{AppendOptions, Database, GraphKind};
use serde_json::json;

use super::ingested::{add_input, add_rows, say_notes, say_skipped};
use super::load::{duplicates, input, key_scheme, order, require_one_stdin, sources, weight_type_of};
use super::{open_to_write, session};
use crate::args::{AppendArgs, Global, KindArgs};
use crate::console::{Console, ConsoleTable, count, duration, size};
use crate::failure::{Result, complain};

/// Appends a snapshot with the additions and removals of files.
pub fn execute(global: &Global, args: &AppendArgs) -> Result {
    let inputs: Vec<InputPath> = args.inputs.iter().map(|path| input(path)).collect();
    let mut options = options(args)?;
    // Checked with the removals, which may come from standard input too.
    require_one_stdin(inputs.iter().chain(&options.remove), &args.reading)?;
    let (session, watch) = session(global)?;
    let database = open_to_write(&args.database, &session)?;
    // Without a choice, new edges get properties as the loaded ones did.
    if args.reading.properties.is_none() && database.options().edge_properties {
        options.source.edge_properties = WantedProperties::All;
    }
    watch.clean_up_from_here();
    let appended = database.append_files(&inputs, &options);
    watch.clear();
    let report = appended?;
    say_skipped(global, report.skipped, report.first_skipped.as_deref());
    say_notes(global, &report.notes);
    // The snapshot stands, so a failed merge is a note and no error.
    if let Some(error) = report.maintenance_error.as_ref().filter(|_| !global.quiet) {
        complain(&format!("note: the snapshot is there, but not the merge that is due after it: {error}"));
    }
    let mut console = Console::after("the snapshot was made");
    if global.json {
        console.object(&object(&report))?;
    } else if !global.quiet {
        console.line(format_args!("appended snapshot {} to {}", report.snapshot, args.database.display()))?;
        console.table(&table(&database, &report))?;
    }
    console.finish()
}

fn object(report: &AppendReport) -> serde_json::Value {
    let mut object = json!({
        "vertices": report.vertices,
        "edges": report.edges,
        "snapshot": report.snapshot,
        "seconds": report.seconds,
        "bytes": report.bytes,
        "skipped": report.skipped,
        "peak_bytes": report.peak_bytes,
        "added": report.added,
        "removed": report.removed,
        "changed_properties": report.changed_properties,
        "missing": report.missing,
        "snapshot_bytes": report.snapshot_bytes,
        "maintenance_bytes": report.maintenance_bytes,
        "maintenance_error": report.maintenance_error,
    });
    add_input(&mut object, &report.input, &report.notes);
    object
}

fn table(database: &Database, report: &AppendReport) -> ConsoleTable {
    let mut table = ConsoleTable::new();
    table
        .pair("  vertices", count(report.vertices))
        .pair("  edges", count(report.edges))
        .pair("  added", count(report.added))
        .pair("  removed", count(report.removed));
    if report.changed_properties > 0 {
        table.pair("  properties changed", count(report.changed_properties));
    }
    if report.missing > 0 {
        table.pair("  not there to be removed", count(report.missing));
    }
    add_rows(&mut table, &report.input, report.skipped);
    table
        .pair("  snapshots", count(database.snapshots().len() as u64))
        .pair("  time", duration(report.seconds))
        .pair("  bytes", format!("{}, of {}", size(report.snapshot_bytes), size(report.bytes)))
        .pair("  peak memory", size(report.peak_bytes));
    table
}

fn options(args: &AppendArgs) -> Result<AppendOptions> {
    Ok(AppendOptions {
        duplicates: match duplicates(args.duplicates, args.kind.multigraph)? {
            // `None` leaves the rule to the engine, which knows the kind of graph.
            Duplicates::Auto => None,
            rule => Some(rule),
        },
        order: order(&args.reading)?,
        // `None` takes the budget of the session.
        memory: None,
        // The caller selects all properties if the graph has edge properties, once the database is open.
        source: sources(&args.reading, args.reading.format.0, WantedProperties::None),
        remove: args.remove.iter().map(|path| input(path)).collect(),
        name: args.name.clone(),
        as_of: args.as_of,
        maintenance: if args.no_maintenance { Maintenance::Never } else { Maintenance::WhenDue },
        expected: expected(&args.kind, args.reading.weight_column.is_some()),
    })
}

fn expected(kind: &KindArgs, has_weight_column: bool) -> ExpectedGraph {
    ExpectedGraph {
        graph_kind: match (kind.directed, kind.undirected) {
            (true, _) => Some(GraphKind::Directed),
            (_, true) => Some(GraphKind::Undirected),
            _ => None,
        },
        ordered: kind.ordered,
        out_only: kind.out_only,
        keys: kind.ids.map(key_scheme),
        weights: match kind.weight_type {
            Some(weight_type) => ExpectedWeights::Of(weight_type_of(weight_type)),
            // A graph without weights would lose the named column.
            None if kind.weights || has_weight_column => ExpectedWeights::Some,
            None => ExpectedWeights::Any,
        },
    }
}
