//! `anden snapshots`.

use anden::{Database, SnapshotInfo};
use serde_json::{Value, json};

use super::session;
use crate::args::{DatabaseArgs, Global};
use crate::console::{Console, Table, count, size};
use crate::failure::Result;

/// Lists the snapshots, the oldest first.
pub fn execute(global: &Global, args: &DatabaseArgs) -> Result {
    let (session, _watch) = session(global)?;
    let database = Database::open_snapshots_in(&args.database, &session)?;
    let snapshots = database.snapshots();
    let mut console = Console::new();
    if global.json {
        console.object(&json!({ "snapshots": snapshots_json(&snapshots) }))?;
    } else {
        let mut table =
            Table::with_header(&["number", "name", "time (UTC)", "vertices", "edges", "added", "removed", "bytes"]);
        for info in &snapshots {
            table.row([
                info.number.to_string(),
                info.name.clone().unwrap_or_else(|| "-".into()),
                utc(info.unix_time),
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
            "vertices": info.num_vertices,
            "edges": info.num_edges,
            "added": info.added,
            "removed": info.removed,
            "bytes": info.bytes,
        })
    };
    snapshots.iter().map(object).collect()
}

/// `2026-01-31 23:59:59` from the seconds since 1970.
pub fn utc(unix_time: u64) -> String {
    let (days, seconds) = (unix_time / 86_400, unix_time % 86_400);
    // Days are counted from the first of March of year 0, so that a leap day ends its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(utc(1_735_689_599), "2024-12-31 23:59:59");
    }
}
