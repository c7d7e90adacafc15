//! `anden merge`, `drop`, `rename` and `retain`.

use std::time::Instant;

use serde_json::json;

use super::{open_to_write, session};
use crate::args::{DropArgs, Global, MergeArgs, RenameArgs, RetainArgs};
use crate::console::{Console, duration, size};
use crate::failure::Result;

/// Merges deltas.
pub fn merge(global: &Global, args: &MergeArgs) -> Result {
    let (session, watch) = session(global)?;
    let start = Instant::now();
    let database = open_to_write(&args.database, &session)?;
    watch.clean_up_from_here();
    let merged = match args.newest {
        None => database.merge(),
        Some(num_snapshots) => database.merge_newest(num_snapshots),
    };
    watch.clear();
    let report = merged?;
    let seconds = start.elapsed().as_secs_f64();
    let total = database.metrics().snapshot_bytes;
    let mut console = Console::after("the database was merged");
    if global.json {
        console.object(&json!({
            "seconds": seconds,
            "bytes": total,
            "peak_bytes": anden_base::memory::resident_peak(),
            "written_bytes": report.bytes_written,
        }))?;
    } else if !global.quiet {
        let (written, total, time) = (size(report.bytes_written), size(total), duration(seconds));
        console.line(format_args!("merged {}: wrote {written}, {total} in all, {time}", args.database.display()))?;
    }
    console.finish()
}

/// Drops snapshots.
pub fn drop(global: &Global, args: &DropArgs) -> Result {
    let (session, watch) = session(global)?;
    let start = Instant::now();
    let database = open_to_write(&args.database, &session)?;
    watch.clean_up_from_here();
    // Read before the drop, to show how much space it freed.
    let before = database.metrics().snapshot_bytes;
    let dropped = database.drop_snapshots(&args.snapshots);
    watch.clear();
    let dropped = dropped?;
    let (seconds, bytes) = (start.elapsed().as_secs_f64(), database.metrics().snapshot_bytes);
    let mut console = Console::after("the snapshots were dropped");
    if global.json {
        console.object(&json!({ "dropped": dropped, "seconds": seconds, "bytes": bytes }))?;
    } else if !global.quiet {
        let (path, before, after) = (args.database.display(), size(before), size(bytes));
        console.line(format_args!("dropped {} of {path}: {before} before, {after} after", shown(&dropped)))?;
    }
    console.finish()
}

/// Gives a snapshot another name.
pub fn rename(global: &Global, args: &RenameArgs) -> Result {
    let (session, _) = session(global)?;
    let database = open_to_write(&args.database, &session)?;
    let number = database.rename_snapshot(args.snapshot.clone(), args.name.as_deref())?;
    let mut console = Console::after("the snapshot was renamed");
    if global.json {
        console.object(&json!({ "snapshot": number, "name": args.name }))?;
    } else if !global.quiet {
        let name = args.name.as_deref().map_or_else(|| "no name".to_owned(), |name| format!("the name {name}"));
        console.line(format_args!("snapshot {number} of {} has {name}", args.database.display()))?;
    }
    console.finish()
}

/// Sets which snapshots to keep, and how much of the WAL.
pub fn retain(global: &Global, args: &RetainArgs) -> Result {
    let (session, watch) = session(global)?;
    let database = open_to_write(&args.database, &session)?;
    watch.clean_up_from_here();
    if let Some(num_bytes) = args.keep_wal {
        database.set_keep_wal(num_bytes)?;
    }
    let retain = |retention| if args.force { database.retain_by_force(retention) } else { database.retain(retention) };
    let dropped = args.retention.map(retain).transpose();
    watch.clear();
    let dropped = dropped?.unwrap_or_default();
    let mut console = Console::after("the retention was set");
    if global.json {
        let (bytes, keep_wal) = (database.metrics().snapshot_bytes, database.keep_wal());
        let retention = args.retention.map(|retention| retention.to_string());
        let object = json!({ "retention": retention, "dropped": dropped, "bytes": bytes, "keep_wal": keep_wal });
        console.object(&object)?;
    } else if !global.quiet {
        let path = args.database.display();
        if let Some(retention) = args.retention {
            console.line(format_args!("{path} retains {retention}: dropped {}", shown(&dropped)))?;
        }
        if let Some(num_bytes) = args.keep_wal {
            console.line(format_args!("{path} keeps up to {} of the WAL", size(num_bytes)))?;
        }
    }
    console.finish()
}

fn shown(numbers: &[u32]) -> String {
    let shown: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    match shown.len() {
        0 => "no snapshot".into(),
        1 => format!("snapshot {}", shown[0]),
        _ => format!("snapshots {}", shown.join(", ")),
    }
}
