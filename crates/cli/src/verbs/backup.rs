//! `anden backup` and `anden restore`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anden::Database;
use anden::snapshot::BackupOptions;
use serde_json::json;

use super::{open_snapshots, session};
use crate::args::{BackupArgs, Global, RestoreArgs};
use crate::console::{Console, count, duration, size};
use crate::failure::{CommandFailure, Result};

/// Copies a database to a directory, a file or standard output.
pub fn backup(global: &Global, args: &BackupArgs) -> Result {
    let to_stdout = args.target == Path::new("-");
    if to_stdout && global.json {
        return Err(CommandFailure::Usage("backup to - and --json both want standard output: give a file".into()));
    }
    if to_stdout && std::io::stdout().is_terminal() {
        return Err(CommandFailure::Usage("standard output is a terminal: redirect it, or give a file".into()));
    }
    let (session, watch) = session(global)?;
    // The backup reads the WAL itself, so it is not replayed here.
    let database = open_snapshots(&args.database, &session)?;
    let options = BackupOptions { since: args.since.clone(), limit_rate: args.limit_rate };
    watch.clean_up_from_here();
    let begin = Instant::now();
    let done = match to_stdout {
        true => database.backup_to(&mut std::io::stdout(), &options),
        false => database.backup_with(&args.target, &options),
    };
    watch.clear();
    let report = done.map_err(|error| match CommandFailure::from(error) {
        failure if args.since.as_ref().is_some_and(|since| failure.is_damage_in(since)) => failure.in_backup(),
        failure => failure,
    })?;
    // Standard output holds the archive.
    if to_stdout {
        return Ok(());
    }
    let seconds = begin.elapsed().as_secs_f64();
    let mut console = Console::after("the backup was made");
    if global.json {
        console.object(&json!({
            "backup": report.id.to_string(),
            "parent": report.parent.map(|parent| parent.to_string()),
            "history": report.history.to_string(),
            "epoch": report.epoch,
            "files": report.num_files,
            "bytes": report.num_bytes,
            "state_bytes": report.state_bytes,
            "seconds": seconds,
        }))?;
    } else if !global.quiet {
        let (path, files, time) = (args.target.display(), count(report.num_files as u64), duration(seconds));
        let (bytes, all) = (size(report.num_bytes), size(report.state_bytes));
        let (epoch, id) = (report.epoch, report.id);
        console
            .line(format_args!("wrote {path}: epoch {epoch}, {files} files, {bytes} of {all}, {time}, backup {id}"))?;
    }
    console.finish()
}

/// Makes a database from a full backup and its increments.
pub fn restore(global: &Global, args: &RestoreArgs) -> Result {
    let (session, watch) = session(global)?;
    watch.clean_up_from_here();
    let begin = Instant::now();
    let sources: &[PathBuf] = &args.sources;
    let done = Database::restore(sources, &args.database, args.limit_rate, &session);
    watch.clear();
    let report = done.map_err(|error| CommandFailure::from(error).in_backup())?;
    let seconds = begin.elapsed().as_secs_f64();
    let mut console = Console::after("the database was restored");
    if global.json {
        console.object(&json!({
            "history": report.history.to_string(),
            "source_history": report.source_history.to_string(),
            "epoch": report.epoch,
            "snapshots": report.num_snapshots,
            "vertices": report.num_vertices,
            "edges": report.num_edges,
            "files": report.num_files,
            "bytes": report.num_bytes,
            "seconds": seconds,
        }))?;
    } else if !global.quiet {
        let (path, epoch, edges) = (args.database.display(), report.epoch, count(report.num_edges));
        let (bytes, time) = (size(report.num_bytes), duration(seconds));
        console.line(format_args!("restored and verified {path}: epoch {epoch}, {edges} edges, {bytes}, {time}"))?;
    }
    console.finish()
}
