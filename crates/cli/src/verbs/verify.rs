//! `anden verify`.

use serde_json::json;

use super::{open, session};
use crate::args::{DatabaseArgs, Global};
use crate::console::{Console, count, duration, size};
use crate::failure::Result;

/// Verifies the whole database. The first fault is an error with its place.
pub fn execute(global: &Global, args: &DatabaseArgs) -> Result {
    let (session, watch) = session(global)?;
    let start = std::time::Instant::now();
    // Opened with the WAL, so commits that no snapshot has are checked too.
    let report = open(&args.database, &session).and_then(|database| Ok(database.verify()?));
    watch.clear();
    let report = report.map_err(|failure| failure.with_repair(&args.database))?;
    let seconds = start.elapsed().as_secs_f64();
    let mut console = Console::new();
    if global.json {
        console.object(&json!({
            "ok": true,
            "files": report.num_files,
            "bytes": report.num_bytes,
            "vertices": report.num_vertices,
            "edges": report.num_edges,
            "seconds": seconds,
        }))?;
    } else if !global.quiet {
        let (files, bytes, time) = (report.num_files, size(report.num_bytes), duration(seconds));
        console.line(format_args!("ok: {files} files, {bytes}, {} edges, {time}", count(report.num_edges)))?;
    }
    console.finish()
}
