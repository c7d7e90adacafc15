//! Application of a file of updates: small transactions in flight against one by one, and one batch beyond the
//! memtable's limit against that batch in the WAL.
//!
//! Both sides read one text into an empty graph each. A memory budget makes transactions run one by one, so that side
//! has a budget that nothing exceeds.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anden::changes::ApplyOptions;
use anden::load::InputPath;
use anden::{Database, Durability, OpenOptions, Session};
use anyhow::{Result, ensure};

use super::commits::{edge, empty};
use crate::harness::{Pairs, seconds};
use crate::report::{Line, Report};
use crate::setting::Setting;

/// The number of updates, and of updates in a transaction.
const UPDATES: u64 = 2_000_000;
const QUICK_UPDATES: u64 = 20_000;
const TRANSACTION: usize = 1000;
/// One update more than the memtable may hold at this checkpoint size, so that the batch becomes a snapshot.
const LARGE_BATCH: u64 = (1 << 24) + 1;
const CHECKPOINT_BYTES: u64 = 64 << 20;
const QUICK_LARGE_BATCH: u64 = (1 << 18) + 1;
const QUICK_CHECKPOINT_BYTES: u64 = 1 << 20;
/// A memory budget that nothing exceeds.
const ANY_MEMORY: u64 = 1 << 40;
/// The most pairs of runs: a large run takes half a minute.
const PAIRS: usize = 3;

/// Measures all lines.
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

/// Writes `num_updates` edges, one a line.
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

/// An empty, open graph.
fn opened(setting: &Setting, memory: Option<u64>) -> Result<Database> {
    let directory = setting.scratch.join("replay.anden");
    empty(&directory)?.close()?;
    let session = Session::new(setting.pool.num_threads())?.with_memory(memory);
    Ok(Database::open_with(&directory, &OpenOptions::from(&session))?)
}

/// Applies the file. Returns the seconds.
fn apply(database: &Database, file: &Path, options: &ApplyOptions, num_updates: u64) -> Result<f64> {
    let (time, applied) = seconds(|| database.apply_file(&InputPath::File(file.to_owned()), options, |_| Ok(())));
    let applied = applied?.updates;
    ensure!(applied == num_updates, "{applied} of {num_updates} updates were applied");
    Ok(time)
}
