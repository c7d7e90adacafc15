//! A file of updates that is applied: small transactions in flight against one by one, and one batch that is too large to
//! wait in memory for a snapshot against the same that is logged and waits.
//!
//! Both sides read the same text into an empty graph of their own. One by one is what a budget of memory asks for, so that
//! side has one which nothing exceeds.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anden::{ApplyOptions, Database, Durability, InputPath, Session};
use anyhow::{Result, ensure};

use super::commits::{edge, empty};
use crate::harness::{Pairs, seconds};
use crate::report::{Line, Report};
use crate::setting::Setting;

/// Updates in transactions, and of each.
const UPDATES: u64 = 2_000_000;
const QUICK_UPDATES: u64 = 20_000;
const TRANSACTION: usize = 1000;
/// One update more than may wait in memory for a snapshot with so many bytes for those that one is made of.
const LARGE_BATCH: u64 = (1 << 24) + 1;
const CHECKPOINT_BYTES: u64 = 64 << 20;
const QUICK_LARGE_BATCH: u64 = (1 << 18) + 1;
const QUICK_CHECKPOINT_BYTES: u64 = 1 << 20;
/// A budget that nothing exceeds.
const ANY_MEMORY: u64 = 1 << 40;
/// Pairs of runs at most: the large ones take half a minute each.
const PAIRS: usize = 3;

/// All lines.
pub(super) fn lines(setting: &Setting, is_quick: bool, report: &mut Report) -> Result<()> {
    let num_pairs = setting.num_pairs.min(PAIRS);
    let num_updates = if is_quick { QUICK_UPDATES } else { UPDATES };
    let file = write_updates(setting, num_updates)?;
    for (name, durability) in
        [("none", Durability::None), ("batched", Durability::batched()), ("sync", Durability::Sync)]
    {
        let options = ApplyOptions { batch: TRANSACTION, durability: Some(durability), ..ApplyOptions::default() };
        let run = |memory| apply(&opened(setting, memory)?, &file, &options, num_updates);
        let pairs = Pairs::alternate(num_pairs, |_| run(None), |_| run(Some(ANY_MEMORY)))?;
        let rate = num_updates as f64 / pairs.ours() / 1e6;
        let line = format!("{name}, {num_updates} updates in transactions of {TRANSACTION}, in flight");
        report.line(Line::compared(line, &pairs, "one by one", format!("{rate:.2} M updates/s")));
    }
    let (num_updates, checkpoint_bytes) = match is_quick {
        true => (QUICK_LARGE_BATCH, QUICK_CHECKPOINT_BYTES),
        false => (LARGE_BATCH, CHECKPOINT_BYTES),
    };
    let file = write_updates(setting, num_updates)?;
    let options = ApplyOptions { batch: num_updates as usize, ..ApplyOptions::default() };
    let run = |checkpoint_bytes, num_snapshots| -> Result<f64> {
        let database = opened(setting, None)?;
        database.set_checkpoint_bytes(checkpoint_bytes);
        let before = database.snapshots().len();
        let applying = apply(&database, &file, &options, num_updates)?;
        let made = database.snapshots().len() - before;
        ensure!(made == num_snapshots, "{made} snapshots were made, and not {num_snapshots}");
        let (closing, closed) = seconds(|| database.close());
        closed?;
        Ok(applying + closing)
    };
    let pairs = Pairs::alternate(num_pairs, |_| run(Some(checkpoint_bytes), 1), |_| run(None, 0))?;
    let line = format!("{num_updates} updates at once, closed, as a snapshot");
    report.line(Line::compared(line, &pairs, "logged", "reading the text included"));
    Ok(std::fs::remove_file(&file)?)
}

/// So many different edges, each a line.
fn write_updates(setting: &Setting, num_updates: u64) -> Result<PathBuf> {
    let path = setting.scratch.join("updates.txt");
    let mut file = BufWriter::new(std::fs::File::create(&path)?);
    for number in 0..num_updates {
        let (source, target) = edge(0, number);
        writeln!(file, "+ {source} {target}")?;
    }
    file.flush()?;
    Ok(path)
}

/// An empty graph that updates are applied to.
fn opened(setting: &Setting, memory: Option<u64>) -> Result<Database> {
    let directory = setting.scratch.join("replay.anden");
    empty(&directory)?.close()?;
    let session = Session::new(setting.pool.num_threads())?.with_memory(memory);
    Ok(Database::open_in(&directory, &session)?)
}

/// Gives how long it took.
fn apply(database: &Database, file: &Path, options: &ApplyOptions, num_updates: u64) -> Result<f64> {
    let (time, applied) = seconds(|| database.apply_file(&InputPath::File(file.to_owned()), options, |_| Ok(())));
    let applied = applied?.updates;
    ensure!(applied == num_updates, "{applied} of {num_updates} updates were applied");
    Ok(time)
}
