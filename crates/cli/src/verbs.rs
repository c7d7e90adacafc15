//! The verbs: each calls the library and prints the result.

mod append;
mod backup;
mod batch;
mod degrees;
mod diff;
mod export;
mod fragments;
mod generate;
mod index;
mod info;
mod ingested;
mod live;
mod load;
mod manual;
mod prepare;
mod query;
mod repair;
mod rows;
mod run;
mod snapshots;
mod stats;
mod tail;
mod verify;
mod versions;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden::export::{ExportFormat, Output};
use anden::snapshot::SnapshotId;
use anden::stats::{PolicyStats, PrefetchStats};
use anden::{Database, OpenOptions, Progress, Session, View};
use anden_base::memory::addresses_left;
use anden_base::size::{size_at_least, size_at_most};
use anden_formats::{Aside, OutputContent, write_aside};
use serde_json::json;

use crate::args::{Cli, Global, Selection, Verb};
use crate::failure::{CommandFailure, Result, complain};
use crate::watch::Watch;

/// Addresses, in bytes, that a small database needs beside the program: memtables, the heap, and maps of files.
const LEAST_ADDRESSES: u64 = 96 << 20;
/// Addresses that a thread needs: its stack, and buffers.
const ADDRESSES_OF_THREAD: u64 = 4 << 20;
/// The addresses of the program itself differ by less than this from run to run.
const ADDRESS_LEEWAY: u64 = 1 << 20;

/// Maximum number of names in a note.
const MAX_NAMES: usize = 10;

/// Runs the command.
pub fn execute(cli: Cli) -> Result {
    let global = &cli.global;
    match cli.verb {
        Verb::Load(args) => load::execute(global, &args),
        Verb::Info(args) => info::execute(global, &args),
        Verb::Stats(args) => stats::execute(global, &args),
        Verb::Tail(args) => tail::execute(global, &args),
        Verb::Run(args) => run::execute(global, &args),
        Verb::Prepare(args) => prepare::execute(global, &args),
        Verb::Query(args) => query::execute(global, &args),
        Verb::Index(args) => index::execute(global, &args),
        Verb::Verify(args) => verify::execute(global, &args),
        Verb::Export(args) => export::execute(global, &args),
        Verb::Generate(args) => generate::execute(global, &args),
        Verb::Snapshots(args) => snapshots::execute(global, &args),
        Verb::Completions { shell } => manual::completions(global, shell),
        Verb::Man { directory } => manual::pages(global, directory.as_deref()),
        Verb::Append(args) => append::execute(global, &args),
        Verb::Apply(args) => live::apply(global, &args),
        Verb::Checkpoint(args) => live::checkpoint(global, &args),
        Verb::Merge(args) => versions::merge(global, &args),
        Verb::Drop(args) => versions::drop(global, &args),
        Verb::Rename(args) => versions::rename(global, &args),
        Verb::Diff(args) => diff::execute(global, &args),
        Verb::Retain(args) => versions::retain(global, &args),
        Verb::Backup(args) => backup::backup(global, &args),
        Verb::Restore(args) => backup::restore(global, &args),
        Verb::Repair(args) => repair::execute(global, &args),
    }
}

/// Opens a session with the threads, memory and progress of the global options.
fn session(global: &Global) -> Result<(Session, Arc<Watch>)> {
    // Events and a progress bar would write over each other.
    let watch = Arc::new(Watch::new(global.quiet || global.verbose > 0));
    require_addresses(global)?;
    // 0 lets the library take one thread for each core.
    let session = Session::new(global.threads.unwrap_or(0))?;
    Ok((session.with_memory(global.memory).with_progress(watch.clone()), watch))
}

/// Refuses work if the system limits addresses to fewer than a small database needs.
fn require_addresses(global: &Global) -> Result {
    let num_threads = global.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let needed = LEAST_ADDRESSES.saturating_add(ADDRESSES_OF_THREAD.saturating_mul(num_threads as u64));
    match addresses_left() {
        Some(left) if left < needed => Err(CommandFailure::failed(format!(
            "the program needs at least {} of addresses with --threads {num_threads}, and its limit (ulimit -v) leaves {}: raise it by {} KiB",
            size_at_least(needed),
            size_at_most(left),
            (needed - left + ADDRESS_LEEWAY).div_ceil(1024)
        ))),
        _ => Ok(()),
    }
}

/// The output format for a file name.
///
/// # Errors
/// This content cannot be written in that format, or the file belongs to a database. Nothing was written.
fn output_format(path: &Path, content: OutputContent) -> Result<ExportFormat> {
    // Checked first, because `MANIFEST` and `LOCK` have no ending and would pass as text.
    require_no_database_file(path)?;
    ExportFormat::of_path(path, content).map_err(|error| CommandFailure::Usage(error.to_string()))
}

/// Refuses an output path that would replace a file of a database.
fn require_no_database_file(path: &Path) -> Result {
    match anden_snapshots::is_database_file(path) {
        true => Err(CommandFailure::Usage(format!("{} is a file of a database: name another file", path.display()))),
        false => Ok(()),
    }
}

/// Refuses an output path that equals another path of the command; `option` names it in the error.
fn require_apart(other: &Path, path: &Path, option: &str) -> Result {
    // Two spellings of a path can name one file.
    let is_one = || other == path || resolved(other).is_some_and(|other| resolved(path) == Some(other));
    match other != Path::new("-") && is_one() {
        true => {
            Err(CommandFailure::Usage(format!("{option} {} is {}: name another file", path.display(), other.display())))
        }
        false => Ok(()),
    }
}

/// The path without links and dots. Only the directory of a file that does not exist yet is resolved.
fn resolved(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| {
        let directory = path.parent()?;
        // The parent of a bare name is empty, which no system call takes.
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        Some(directory.canonicalize().ok()?.join(path.file_name()?))
    })
}

/// Writes a temporary file with `body`; the caller publishes it. Ctrl-C cancels and removes the file.
fn write_aside_watched<T>(
    path: &Path,
    watch: &Watch,
    body: impl FnOnce(&mut Output<'_>) -> Result<T>,
) -> Result<(T, Aside)> {
    let written = write_aside(path, watch, body);
    // The error of an interrupted write may be any, so the signal decides the message.
    if watch.is_cancelled() { Err(CommandFailure::Cancelled) } else { written }
}

/// Opens a database for reading, as the selection asks. For a snapshot or window, the WAL is not read.
fn open_selected(path: &Path, session: &Session, selection: &Selection) -> Result<Database> {
    // A snapshot needs no commits that came later, so a damaged WAL is no obstacle.
    let snapshots_only = selection.snapshot.is_some() || selection.window.is_some();
    let io = selection.io.unwrap_or_default();
    Ok(Database::open_with(path, &OpenOptions { read_only: true, snapshots_only, io, ..session.into() })?)
}

/// Opens a database for reading.
fn open(path: &Path, session: &Session) -> Result<Database> {
    Ok(Database::open_with(path, &OpenOptions { read_only: true, ..session.into() })?)
}

/// Opens the snapshots of a database for reading, without the WAL.
fn open_snapshots(path: &Path, session: &Session) -> Result<Database> {
    Ok(Database::open_with(path, &OpenOptions { snapshots_only: true, ..session.into() })?)
}

/// Opens a database for writing.
fn open_to_write(path: &Path, session: &Session) -> Result<Database> {
    Ok(Database::open_with(path, &session.into())?)
}

/// The selected version of the graph.
fn whole_view(database: &Database, selection: &Selection) -> Result<View> {
    if selection.isolated && selection.window.is_none() {
        return Err(CommandFailure::Usage("--isolated goes with --window".into()));
    }
    Ok(match (&selection.snapshot, &selection.window) {
        (Some(snapshot), _) => database.snapshot(snapshot)?,
        (None, Some(window)) if selection.isolated => database.window_with_isolated(window.clone())?,
        (None, Some(window)) => database.window(window.clone())?,
        (None, None) => database.view()?,
    })
}

/// The selected part of the graph. Prints a note about unknown labels.
fn view(database: &Database, selection: &Selection, global: &Global) -> Result<View> {
    let view = whole_view(database, selection)?;
    if let Some(snapshot) = selection.snapshot.as_ref().filter(|_| !global.quiet) {
        note_older_snapshot(database, &snapshot.into())?;
    }
    let view = selection.prefetch.map_or(view.clone(), |policy| view.with_prefetch(policy));
    let view = if selection.types.is_empty() { view } else { view.types(&selection.types)? };
    let view = if selection.labels.is_empty() { view } else { of_labels(&view, &selection.labels, global)? };
    let view = match (&selection.where_edge, &selection.where_vertex) {
        (None, None) => view,
        (edges, vertices) => view.filter(edges.as_deref(), vertices.as_deref())?,
    };
    // Last, because the other options decide which edges are left.
    Ok(if selection.no_isolated { view.without_isolated()? } else { view })
}

/// Prints a note if no snapshot has the name that was given, nor a time in that period: an older one is read then.
fn note_older_snapshot(database: &Database, asked: &SnapshotId) -> Result {
    let number = database.snapshot_number(asked.clone())?;
    let snapshots = database.snapshots();
    if let Some(found) = snapshots.iter().find(|info| info.number == number && !asked.is_of(info)) {
        let name = found.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
        complain(&format!(
            "note: no snapshot is called {asked} or of that time: reading the older snapshot {number}{name}"
        ));
    }
    Ok(())
}

/// Prints a note about selected types that no edge has. Finding all types reads all edges, so call this only if the
/// result is empty.
fn note_unknown_types(database: &Database, selection: &Selection, global: &Global) -> Result {
    if !selection.types.is_empty() && !global.quiet {
        say_unknown("edge", "type", &selection.types, &whole_view(database, selection)?.known_types()?);
    }
    Ok(())
}

/// The part with these labels.
fn of_labels(view: &View, labels: &[String], global: &Global) -> Result<View> {
    let part = view.labels(labels)?;
    // An unknown label gives an empty part without an error, so say which labels exist.
    if !global.quiet {
        say_unknown("vertex", "label", labels, &view.known_labels()?);
    }
    Ok(part)
}

/// Prints a note for each name that no vertex or edge has.
fn say_unknown(whose: &str, what: &str, asked: &[String], known: &[String]) {
    for name in asked.iter().filter(|name| !known.contains(name)) {
        let known: Vec<_> = known.iter().take(MAX_NAMES).map(String::as_str).collect();
        complain(&format!("note: no {whose} has the {what} \"{name}\"; there are: {}", known.join(", ")));
    }
}

/// Adds the counters of the prefetcher, if it did anything.
fn add_prefetch_json(object: &mut serde_json::Value, stats: &PrefetchStats) {
    // A run on a graph in memory prefetches nothing, and zeros would only lengthen its report.
    if stats.has_worked() {
        let policies = stats.by_policy().into_iter().filter(|(_, stats)| *stats != PolicyStats::default());
        let mut all = policy_json(&stats.total());
        all["policies"] = policies.map(|(name, stats)| (name.to_owned(), policy_json(&stats))).collect();
        object["prefetch"] = all;
    }
}

fn policy_json(stats: &PolicyStats) -> serde_json::Value {
    json!({
        "requested": stats.requested,
        "dropped": stats.dropped,
        "issued": stats.issued,
        "bytes": stats.bytes,
        "already_resident": stats.already_resident,
        "useful": stats.useful,
        "wasted": stats.wasted,
    })
}
