//! `anden stats`.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anden::stats::{Observation, Observer};
use serde_json::{Value, json};

use super::info::{leases_json, writer_json};
use crate::args::{Global, StatsArgs};
use crate::console::{Console, ConsoleTable, count, size};
use crate::failure::{CommandFailure, Result};
use crate::watch::Watch;

/// Places of the columns of a watched database.
const COLUMNS: [(&str, usize); 7] =
    [("epoch", 12), ("groups/s", 10), ("log", 10), ("log/s", 12), ("snapshots", 10), ("deltas", 7), ("on disk", 10)];

/// Shows the state of a database.
pub fn execute(global: &Global, args: &StatsArgs) -> Result {
    if args.prometheus && global.json {
        return Err(CommandFailure::Usage("--prometheus is a format of its own: leave out --json".into()));
    }
    // It ends the process at the first Ctrl-C: nothing is to be cleaned up.
    let signals = Watch::new(true);
    let mut observer = Observer::open(&args.database)?;
    let mut console = Console::new();
    if let Some(interval) = args.watch {
        signals.runs_until_signal();
        return watch(&mut console, global, &mut observer, interval);
    }
    let observed = observer.observe()?;
    if args.prometheus {
        let path = args.database.display().to_string();
        console.bytes(observed.to_prometheus(&[("database", &path)]).as_bytes())?;
    } else if global.json {
        console.object(&object(&observed, None))?;
    } else {
        console.table(&table(&observed))?;
        if !global.quiet {
            print_note(&mut console, &args.database)?;
        }
    }
    console.finish()
}

/// Where the other figures are.
fn print_note(console: &mut Console, path: &Path) -> Result {
    let path = path.display();
    console.line(format_args!("\nlatencies, memtable, views, cache: `db.metrics()` in the process that writes {path}"))
}

/// Prints a line after each `interval`, until a signal ends the process or the reader closes the pipe.
fn watch(console: &mut Console, global: &Global, observer: &mut Observer, interval: Duration) -> Result {
    if !global.json {
        let names: Vec<_> = COLUMNS.iter().map(|&(name, width)| format!("{name:>width$}")).collect();
        console.line(names.concat())?;
    }
    let mut last: Option<(Observation, Instant)> = None;
    let mut next = Instant::now();
    loop {
        let (observed, now) = (observer.observe()?, Instant::now());
        let rates = last.as_ref().map(|(before, at)| ObservedRates::between(before, &observed, now - *at));
        match global.json {
            true => console.object(&object(&observed, Some(rates.as_ref())))?,
            false => console.line(line(&observed, rates.as_ref()))?,
        }
        // The reader waits for this line.
        console.flush()?;
        last = Some((observed, now));
        // From the planned time on, so that intervals do not grow by the time of the looks.
        next = (next + interval).max(now);
        std::thread::sleep(next - now);
    }
}

/// Changes a second between two observations.
struct ObservedRates {
    groups: f64,
    /// Growth of the WAL; none if a snapshot has taken some of it.
    log_bytes: Option<f64>,
}

impl ObservedRates {
    fn between(before: &Observation, after: &Observation, time: Duration) -> Self {
        // Two looks are never at one moment, but clocks are coarse.
        let seconds = time.as_secs_f64().max(1e-6);
        let grown = after.log_bytes.checked_sub(before.log_bytes);
        Self {
            groups: after.epoch.saturating_sub(before.epoch) as f64 / seconds,
            log_bytes: grown.map(|bytes| bytes as f64 / seconds),
        }
    }
}

fn line(observed: &Observation, rates: Option<&ObservedRates>) -> String {
    let dash = || "-".to_owned();
    let cells = [
        count(observed.epoch),
        rates.map_or_else(dash, |rates| count(rates.groups.round() as u64)),
        size(observed.log_bytes),
        rates.and_then(|rates| rates.log_bytes).map_or_else(dash, |bytes| format!("{}/s", size(bytes as u64))),
        count(observed.snapshots as u64),
        count(observed.deltas as u64),
        size(observed.disk_bytes),
    ];
    let cells = COLUMNS.iter().zip(cells).map(|(&(_, width), cell)| format!("{cell:>width$}"));
    let writer = observed.writer.as_ref().map_or_else(|| "  no writer".to_owned(), |writer| format!("  {writer}"));
    cells.chain([writer]).collect()
}

/// The observation as JSON; the objects of a watched database have rates too.
fn object(observed: &Observation, rates: Option<Option<&ObservedRates>>) -> Value {
    let newest = &observed.newest;
    let files = observed.files.iter().map(|files| {
        let object = json!({ "files": files.files, "bytes": files.bytes });
        (files.kind.clone(), object)
    });
    let mut object = json!({
        "time": SystemTime::UNIX_EPOCH.elapsed().map_or(0.0, |time| time.as_secs_f64()),
        "epoch": observed.epoch,
        "snapshot_epoch": observed.snapshot_epoch,
        "snapshots": observed.snapshots,
        "newest": { "number": newest.number, "name": newest.name, "time": newest.unix_time },
        "vertices": newest.num_vertices,
        "edges": newest.num_edges,
        "bases": observed.bases,
        "deltas": observed.deltas,
        "files": files.collect::<Value>(),
        "log": {
            "segments": observed.log_segments,
            "bytes": observed.log_bytes,
            "keep_wal": observed.keep_wal,
            "oldest_epoch": observed.oldest_epoch,
        },
        "bytes": observed.disk_bytes,
        "writer": writer_json(observed.writer.as_ref()),
        "leases": leases_json(&observed.leases),
    });
    if let Some(rates) = rates {
        object["groups_per_second"] = json!(rates.map(|rates| rates.groups));
        object["log_bytes_per_second"] = json!(rates.and_then(|rates| rates.log_bytes));
    }
    object
}

fn table(observed: &Observation) -> ConsoleTable {
    let newest = &observed.newest;
    let name = newest.name.as_ref().map_or_else(String::new, |name| format!(", {name}"));
    let mut table = ConsoleTable::new();
    table
        .pair("writer", observed.writer.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string))
        .pair("epoch", count(observed.epoch))
        .pair("  of these in snapshots", count(observed.snapshot_epoch))
        .pair("snapshots", format!("{}, the newest is {}{name}", count(observed.snapshots as u64), newest.number))
        .pair("  vertices", count(newest.num_vertices))
        .pair("  edges", count(newest.num_edges))
        .pair("bases, deltas", format!("{}, {}", observed.bases, observed.deltas))
        .pair("bytes", size(observed.disk_bytes));
    for files in &observed.files {
        table.pair(&format!("  {}, {}", files.kind, number_of_files(files.files)), size(files.bytes));
    }
    table.pair(&format!("  log, {}", number_of_files(observed.log_segments)), size(observed.log_bytes));
    table.pair("  changes since epoch", count(observed.oldest_epoch));
    for lease in &observed.leases {
        table.pair(&format!("lease on snapshot {}", lease.snapshot), format!("by {}", lease.holder));
    }
    table
}

fn number_of_files(number: usize) -> String {
    format!("{} {}", count(number as u64), if number == 1 { "file" } else { "files" })
}
