//! What each verb does: call the library, print what it says.

mod append;
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
mod query;
mod rows;
mod run;
mod snapshots;
mod verify;
mod versions;

use std::path::Path;
use std::sync::Arc;

use anden::{
    Aside, Database, Output, OutputContent, OutputFormat, PolicyStats, PrefetchStats, Progress, Session, View,
    write_aside,
};
use serde_json::json;

use crate::args::{Cli, Global, Selection, Verb};
use crate::failure::{Failure, Result, complain};
use crate::watch::Watch;

/// How many names a note lists at most.
const MAX_NAMES: usize = 10;

/// Executes the command line.
pub fn execute(cli: Cli) -> Result {
    let global = &cli.global;
    match cli.verb {
        Verb::Load(args) => load::execute(global, &args),
        Verb::Info(args) => info::execute(global, &args),
        Verb::Run(args) => run::execute(global, &args),
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
        Verb::Diff(args) => diff::execute(global, &args),
        Verb::Retain(args) => versions::retain(global, &args),
    }
}

/// The threads, the budget and the watcher that the options of every verb ask for.
fn session(global: &Global) -> Result<(Session, Arc<Watch>)> {
    let watch = Arc::new(Watch::new(global.quiet));
    let session = Session::new(global.threads.unwrap_or(0))?;
    Ok((session.with_memory(global.memory).with_progress(watch.clone()), watch))
}

/// The format that the name of an output asks for.
///
/// # Errors
/// The name is that of a format in which this content is not written, or that of a file of a database: nothing has been
/// done.
fn output_format(path: &Path, content: OutputContent) -> Result<OutputFormat> {
    require_no_database_file(path)?;
    anden::output_format(path, content).map_err(|error| Failure::Usage(error.to_string()))
}

/// Refuses an output that would replace a file of a database.
fn require_no_database_file(path: &Path) -> Result {
    match anden::is_database_file(path) {
        true => Err(Failure::Usage(format!("{} is a file of a database: name another file", path.display()))),
        false => Ok(()),
    }
}

/// Refuses to write to what is read or written already; `option` names `path`.
fn require_apart(other: &Path, path: &Path, option: &str) -> Result {
    let is_one = other != Path::new("-")
        && (other == path || matches!((other.canonicalize(), path.canonicalize()), (Ok(a), Ok(b)) if a == b));
    match is_one {
        true => Err(Failure::Usage(format!("{option} {} is {}: name another file", path.display(), other.display()))),
        false => Ok(()),
    }
}

/// Writes a file with `body`, until Ctrl-C, and leaves it aside: then there is none.
fn write_aside_watched<T>(
    path: &Path,
    watch: &Watch,
    body: impl FnOnce(&mut Output<'_>) -> Result<T>,
) -> Result<(T, Aside)> {
    let written = write_aside(path, watch, body);
    if watch.is_cancelled() { Err(Failure::Cancelled) } else { written }
}

/// Opens a database for reading, in the way that is asked for; without its log where snapshots were selected.
fn open_selected(path: &Path, session: &Session, selection: &Selection) -> Result<Database> {
    let session = session.clone().with_io(selection.io.unwrap_or_default());
    if selection.snapshot.is_some() || selection.window.is_some() {
        return Ok(Database::open_snapshots_in(path, &session)?);
    }
    open(path, &session)
}

/// Opens a database for reading.
fn open(path: &Path, session: &Session) -> Result<Database> {
    Ok(Database::open_read_only_in(path, session)?)
}

/// Opens a database as its one writer.
fn open_to_write(path: &Path, session: &Session) -> Result<Database> {
    Ok(Database::open_in(path, session)?)
}

/// The version of the graph that is asked for.
fn whole_view(database: &Database, selection: &Selection) -> Result<View> {
    Ok(match (&selection.snapshot, &selection.window) {
        (Some(snapshot), _) => database.snapshot(snapshot)?,
        (None, Some(window)) => database.window(window.clone())?,
        (None, None) => database.view()?,
    })
}

/// The part of the graph that is asked for, with a note on labels that no vertex has.
fn view(database: &Database, selection: &Selection, global: &Global) -> Result<View> {
    let view = whole_view(database, selection)?;
    let view = selection.prefetch.map_or(view.clone(), |policy| view.with_prefetch(policy));
    let view = if selection.types.is_empty() { view } else { view.types(&selection.types)? };
    let view = if selection.labels.is_empty() { view } else { of_labels(&view, &selection.labels, global)? };
    match (&selection.where_edge, &selection.where_vertex) {
        (None, None) => Ok(view),
        (edges, vertices) => Ok(view.filter(edges.as_deref(), vertices.as_deref())?),
    }
}

/// Says which of the types that were asked for no edge has. To know all types takes a pass over all edges: only an empty
/// answer is worth it.
fn note_unknown_types(database: &Database, selection: &Selection, global: &Global) -> Result {
    if !selection.types.is_empty() && !global.quiet {
        say_unknown("edge", "type", &selection.types, &whole_view(database, selection)?.known_types()?);
    }
    Ok(())
}

/// The part with vertices that have one of these labels.
fn of_labels(view: &View, labels: &[String], global: &Global) -> Result<View> {
    let part = view.labels(labels)?;
    if !global.quiet {
        say_unknown("vertex", "label", labels, &view.known_labels()?);
    }
    Ok(part)
}

/// Says which names no vertex or edge has.
fn say_unknown(whose: &str, what: &str, asked: &[String], known: &[String]) {
    for name in asked.iter().filter(|name| !known.contains(name)) {
        let known: Vec<_> = known.iter().take(MAX_NAMES).map(String::as_str).collect();
        complain(&format!("note: no {whose} has the {what} \"{name}\"; there are: {}", known.join(", ")));
    }
}

/// What was read ahead, under this name, where anything was.
fn add_prefetch_json(object: &mut serde_json::Value, stats: &PrefetchStats) {
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
