//! `anden snapshots`.

use anden::property::PropertyValue;
use anden::snapshot::SnapshotInfo;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{open_snapshots, session};
use crate::args::{DatabaseArgs, Global};
use crate::console::{Console, ConsoleTable, count, size};
use crate::failure::Result;

/// Lists the snapshots, the oldest first.
pub fn execute(global: &Global, args: &DatabaseArgs) -> Result {
    let (session, _watch) = session(global)?;
    // Snapshots are listed in the manifest, so the WAL need not be read.
    let database = open_snapshots(&args.database, &session)?;
    let snapshots = database.snapshots();
    let mut console = Console::new();
    if global.json {
        console.object(&json!({ "snapshots": snapshots_json(&snapshots) }))?;
    } else {
        let mut table = ConsoleTable::with_header(&[
            "number",
            "name",
            "time (UTC)",
            "as of",
            "vertices",
            "edges",
            "added",
            "removed",
            "bytes",
        ]);
        for info in &snapshots {
            table.row([
                info.number.to_string(),
                // A dash, because an empty cell would shift the columns for `awk`.
                info.name.clone().unwrap_or_else(|| "-".into()),
                utc(info.unix_time),
                as_of(info).unwrap_or_else(|| "-".into()),
                count(info.num_vertices),
                count(info.num_edges),
                count(info.added),
                count(info.removed),
                size(info.bytes),
            ]);
        }
        console.table(&table)?;
    }
    console.finish()
}

/// The snapshots as a JSON list.
pub fn snapshots_json(snapshots: &[SnapshotInfo]) -> Value {
    let object = |info: &SnapshotInfo| {
        json!({
            "number": info.number,
            "name": info.name,
            "time": info.unix_time,
            "as_of": as_of(info),
            "epoch": info.epoch,
            "vertices": info.num_vertices,
            "edges": info.num_edges,
            "added": info.added,
            "removed": info.removed,
            "bytes": info.bytes,
        })
    };
    snapshots.iter().map(object).collect()
}

/// The time of the data as text, such as `2012-05-31T00:00:00Z`.
fn as_of(info: &SnapshotInfo) -> Option<String> {
    info.as_of.map(|micros| PropertyValue::Timestamp(micros).to_string())
}

/// Formats seconds since 1970 as `2026-01-31 23:59:59`, in UTC. A time beyond the years of `jiff` stays a number.
pub fn utc(unix_time: u64) -> String {
    let time = i64::try_from(unix_time).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| unix_time.to_string(), |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(utc(1_735_689_599), "2024-12-31 23:59:59");
        assert_eq!(utc(253_370_764_800), "9999-01-01 00:00:00");
        assert_eq!(utc(u64::MAX), u64::MAX.to_string());
    }
}
