//! `anden index`.

use std::time::Instant;

use anden::Database;
use anden::property::{IndexInfo, IndexKind};
use serde_json::{Value, json};

use super::{open_snapshots, open_to_write, session};
use crate::args::{Global, IndexAction, IndexArgs};
use crate::console::{Console, ConsoleTable, count, duration, size};
use crate::failure::Result;

/// Creates, drops or lists indexes.
pub fn execute(global: &Global, args: &IndexArgs) -> Result {
    match &args.action {
        IndexAction::List => list(global, args),
        IndexAction::Create { of, name, unique } => {
            let kind = if *unique { IndexKind::Unique } else { IndexKind::Plain };
            change(global, args, ("created", name), |database| database.create_index(of.name(), name, kind))
        }
        IndexAction::Drop { of, name } => {
            change(global, args, ("dropped", name), |database| database.drop_index(of.name(), name))
        }
    }
}

fn change(
    global: &Global,
    args: &IndexArgs,
    (done, name): (&str, &str),
    body: impl FnOnce(&Database) -> anden::Result<()>,
) -> Result {
    let (session, watch) = session(global)?;
    let start = Instant::now();
    let database = open_to_write(&args.database, &session)?;
    // Building an index reads all values, so a signal must let it remove the unfinished file.
    watch.clean_up_from_here();
    let changed = body(&database);
    watch.clear();
    changed?;
    let seconds = start.elapsed().as_secs_f64();
    let mut console = Console::after("the indexes were changed");
    if global.json {
        console.object(&json!({ "seconds": seconds, "indexes": indexes_json(&database.indexes()) }))?;
    } else if !global.quiet {
        let (path, time) = (args.database.display(), duration(seconds));
        console.line(format_args!("{done} the index of {name} of {path}, {time}"))?;
    }
    console.finish()
}

fn list(global: &Global, args: &IndexArgs) -> Result {
    let (session, _watch) = session(global)?;
    // An index changes only together with a snapshot, so the WAL need not be read.
    let indexes = open_snapshots(&args.database, &session)?.indexes();
    let mut console = Console::new();
    if global.json {
        console.object(&json!({ "indexes": indexes_json(&indexes) }))?;
    } else {
        let mut table = ConsoleTable::with_header(&["of", "property", "kind", "entries", "bytes"]);
        for info in &indexes {
            let kind = kind_name(info.kind).to_owned();
            table.row(["vertex".into(), info.property.clone(), kind, count(info.num_entries), size(info.num_bytes)]);
        }
        console.table(&table)?;
    }
    console.finish()
}

/// Indexes as a JSON list.
pub fn indexes_json(indexes: &[IndexInfo]) -> Value {
    let object = |info: &IndexInfo| {
        json!({
            "of": "vertex",
            "property": info.property,
            "unique": info.kind == IndexKind::Unique,
            "entries": info.num_entries,
            "bytes": info.num_bytes,
        })
    };
    indexes.iter().map(object).collect()
}

fn kind_name(kind: IndexKind) -> &'static str {
    match kind {
        IndexKind::Plain => "plain",
        IndexKind::Unique => "unique",
    }
}

/// The indexed properties as text.
pub fn indexes_text(indexes: &[IndexInfo]) -> String {
    indexes.iter().map(|info| format!("{} ({})", info.property, kind_name(info.kind))).collect::<Vec<_>>().join(", ")
}
