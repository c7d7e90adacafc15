//! `anden apply` and `checkpoint`.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anden::changes::ApplyOptions;
use anden::snapshot::SnapshotTag;
use anden_formats::OutputContent;
use serde_json::json;

use super::info::commits_json;
use super::load::input;
use super::{open_to_write, output_format, require_apart, session};
use crate::args::{ApplyArgs, CheckpointArgs, Global};
use crate::console::{Console, ConsoleTable, count, duration};
use crate::failure::{CommandFailure, Result};

/// Applies a file of updates.
pub fn apply(global: &Global, args: &ApplyArgs) -> Result {
    if global.json && args.acks.as_deref() == Some("-".as_ref()) {
        return Err(CommandFailure::Usage(
            "--acks - and --json would both write to standard output: name a file".into(),
        ));
    }
    if let Some(acks) = &args.acks {
        // The acknowledgements would overwrite the updates while they are read.
        require_apart(&args.input, acks, "--acks")?;
        output_format(acks, OutputContent::LineNumbers)?;
    }
    // Opened first, because a recovery takes long and a wrong name should fail at once.
    let mut acks = args.acks.as_deref().map(Acks::open).transpose()?;
    let (session, watch) = session(global)?;
    let database = open_to_write(&args.database, &session)?;
    acks.as_ref().map_or(Ok(()), Acks::clear)?;
    watch.clean_up_from_here();
    let options = ApplyOptions {
        batch: args.batch as usize,
        flush: args.flush,
        checkpoint_every: args.checkpoint_every,
        strict: args.strict,
        durability: Some(args.durability),
    };
    let applied = database.apply_file(&input(&args.input), &options, |line| match &mut acks {
        Some(acks) => acks.write(line),
        None => Ok(()),
    });
    // Closing consumes the handle, so read the counters first.
    let metrics = database.metrics();
    // Closed before the report, so that a failed close is an error and not a success.
    let report = applied.and_then(|report| database.close().map(|()| report));
    watch.clear();
    let report = report?;
    // A tiny file may take no measurable time: a nanosecond keeps the rate finite.
    let rate = report.updates as f64 / report.seconds.max(1e-9);
    let mut console = Console::after("the updates were applied");
    if global.json {
        console.object(&json!({
            "updates": report.updates,
            "transactions": report.transactions,
            "seconds": report.seconds,
            "updates_per_second": rate,
            "automatic_checkpoints": report.automatic_checkpoints,
            "log_syncs": metrics.live.log_syncs,
            "commits": commits_json(&metrics.commits),
        }))?;
    // A report between the line numbers would confuse their reader.
    } else if !global.quiet && args.acks.as_deref() != Some("-".as_ref()) {
        console.line(format_args!("applied {} to {}", args.input.display(), args.database.display()))?;
        let mut table = ConsoleTable::new();
        table
            .pair("  updates", count(report.updates))
            .pair("  transactions", count(report.transactions))
            .pair("  time", duration(report.seconds))
            .pair("  updates a second", count(rate as u64));
        if report.automatic_checkpoints > 0 {
            table.pair("  snapshots meanwhile", count(report.automatic_checkpoints));
        }
        console.table(&table)?;
    }
    console.finish()
}

/// Makes a snapshot.
pub fn checkpoint(global: &Global, args: &CheckpointArgs) -> Result {
    let (session, watch) = session(global)?;
    let start = Instant::now();
    let database = open_to_write(&args.database, &session)?;
    watch.clean_up_from_here();
    let made = database.checkpoint(SnapshotTag { name: args.name.as_deref(), as_of: args.as_of });
    watch.clear();
    let snapshot = made?;
    let seconds = start.elapsed().as_secs_f64();
    let mut console = Console::after("the snapshot was made");
    if global.json {
        console.object(&json!({
            "snapshot": snapshot.number,
            "seconds": seconds,
            "bytes": database.metrics().snapshot_bytes,
            "peak_bytes": anden_base::memory::resident_peak(),
        }))?;
    } else if !global.quiet {
        console.line(format_args!("made snapshot {} of {}", snapshot.number, args.database.display()))?;
    }
    console.finish()
}

/// The output for the line numbers of answered transactions.
struct Acks {
    name: String,
    /// `None` after the reader closed the pipe.
    output: Option<Box<dyn Write>>,
    /// The file of `output`; `None` for standard output.
    file: Option<File>,
}

impl Acks {
    fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        if path == Path::new("-") {
            return Ok(Self { name, output: Some(Box::new(std::io::stdout())), file: None });
        }
        let failed = |error| CommandFailure::failed(format!("{name}: cannot write: {error}"));
        // Not truncated yet: until the database is open, the old numbers count.
        let file = File::options().write(true).create(true).truncate(false).open(path).map_err(failed)?;
        // A second handle of the file for `clear`, because the box hides its type.
        let output: Box<dyn Write> = Box::new(file.try_clone().map_err(failed)?);
        Ok(Self { name, output: Some(output), file: Some(file) })
    }

    /// Removes the numbers of an earlier run. Until the database is open, they may be all that is known of that run.
    fn clear(&self) -> Result<()> {
        let failed = |error| CommandFailure::failed(format!("{}: cannot write: {error}", self.name));
        match &self.file {
            // A pipe or a device cannot be cut.
            Some(file) if file.metadata().map_err(failed)?.is_file() => file.set_len(0).map_err(failed),
            _ => Ok(()),
        }
    }

    fn write(&mut self, line: u64) -> anden::Result<()> {
        let Some(output) = &mut self.output else { return Ok(()) };
        // A line in a buffer would acknowledge nothing: flush each one.
        match writeln!(output, "{line}").and_then(|()| output.flush()) {
            Ok(()) => Ok(()),
            // The reader of the numbers has gone, but the updates go on.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                self.output = None;
                Ok(())
            }
            Err(error) => Err(anden::Error::Io(format!("{}: cannot write: {error}", self.name).into())),
        }
    }
}
