//! `anden apply` and `checkpoint`.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anden::{ApplyOptions, OutputContent};
use serde_json::json;

use super::info::commits_json;
use super::load::input;
use super::{open_to_write, output_format, require_apart, session};
use crate::args::{ApplyArgs, CheckpointArgs, Global};
use crate::console::{Console, Table, count, duration};
use crate::failure::{Failure, Result};

/// Replays updates.
pub fn apply(global: &Global, args: &ApplyArgs) -> Result {
    if global.json && args.acks.as_deref() == Some("-".as_ref()) {
        return Err(Failure::Usage("--acks - and --json would both write to standard output: name a file".into()));
    }
    if let Some(acks) = &args.acks {
        require_apart(&args.input, acks, "--acks")?;
        output_format(acks, OutputContent::LineNumbers)?;
    }
    let mut acks = args.acks.as_deref().map(Acks::open).transpose()?;
    let (session, watch) = session(global)?;
    let database = open_to_write(&args.database, &session)?;
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
    let stats = database.stats();
    let report = applied.and_then(|report| database.close().map(|()| report));
    watch.clear();
    let report = report?;
    let rate = report.updates as f64 / report.seconds.max(f64::MIN_POSITIVE);
    let mut console = Console::after("the updates were applied");
    if global.json {
        console.object(&json!({
            "updates": report.updates,
            "transactions": report.transactions,
            "seconds": report.seconds,
            "updates_per_second": rate,
            "automatic_checkpoints": report.automatic_checkpoints,
            "log_syncs": stats.live.log_syncs,
            "commits": commits_json(&stats),
        }))?;
    } else if !global.quiet && args.acks.as_deref() != Some("-".as_ref()) {
        console.line(format_args!("applied {} to {}", args.input.display(), args.database.display()))?;
        let mut table = Table::new();
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
    let made = database.checkpoint(args.name.as_deref());
    watch.clear();
    let snapshot = made?;
    let seconds = start.elapsed().as_secs_f64();
    let mut console = Console::after("the snapshot was made");
    if global.json {
        console.object(&json!({
            "snapshot": snapshot.number,
            "seconds": seconds,
            "bytes": database.stats().storage.bytes,
            "peak_bytes": anden::resident_peak(),
        }))?;
    } else if !global.quiet {
        console.line(format_args!("made snapshot {} of {}", snapshot.number, args.database.display()))?;
    }
    console.finish()
}

/// Where the numbers of answered lines go.
struct Acks {
    name: String,
    /// Nowhere once nobody reads them any more.
    output: Option<Box<dyn Write>>,
}

impl Acks {
    fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let output: Box<dyn Write> = match path == Path::new("-") {
            true => Box::new(std::io::stdout()),
            false => {
                Box::new(File::create(path).map_err(|error| Failure::failed(format!("{name}: cannot write: {error}")))?)
            }
        };
        Ok(Self { name, output: Some(output) })
    }

    fn write(&mut self, line: u64) -> anden::Result<()> {
        let Some(output) = &mut self.output else { return Ok(()) };
        match writeln!(output, "{line}").and_then(|()| output.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                self.output = None;
                Ok(())
            }
            Err(error) => Err(anden::Error::Io(format!("{}: cannot write: {error}", self.name))),
        }
    }
}
