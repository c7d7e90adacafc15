//! Work beside commits: backups and checkpoints.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anden_base::progress::Silent;
use anden_engine::{BackupOptions, BackupTarget, Durability, Engine, Missing, Update};
use anyhow::{Result, ensure};

use super::commits::{edge, empty};
use super::recovery::copy_files;
use super::stage::{Client, Clock, quantile, side_by_side};
use crate::harness::{Pairs, seconds};
use crate::report::{Line, Report, at_most};
use crate::setting::Setting;

/// The number of edges in the database that is backed up, one batch for each.
const BATCH: u64 = 1 << 20;
const NUM_BATCHES: u64 = 24;
const QUICK_BATCH: u64 = 1 << 10;

/// Bytes of changes after which a checkpoint is made.
const CHECKPOINT_BYTES: u64 = 16 << 20;
const QUICK_CHECKPOINT_BYTES: u64 = 64 << 10;

/// Measures all lines.
pub(super) fn lines(setting: &Setting, is_quick: bool, report: &mut Report) -> Result<()> {
    let batch_len = if is_quick { QUICK_BATCH } else { BATCH };
    let time = Duration::from_millis(if is_quick { 20 } else { 4000 });
    let num_pairs = if is_quick { 1 } else { 5 };
    let database = filled(setting, batch_len)?;
    copies(setting, &database, num_pairs, report)?;
    commits_beside_backups(setting, &database, (num_pairs, time), report)?;
    database.close()?;
    commits_beside_checkpoints(setting, is_quick, (num_pairs, time), report)
}

fn directory(setting: &Setting) -> PathBuf {
    setting.scratch.join("upkeep.anden")
}

/// A database whose edges are in files.
fn filled(setting: &Setting, batch_len: u64) -> Result<Engine> {
    let database = empty(&directory(setting))?;
    for batch in 0..NUM_BATCHES {
        let edges = (batch * batch_len..(batch + 1) * batch_len).map(|number| edge(0, number));
        let updates: Vec<_> = edges.map(|(source, target)| Update::add_edge(source, target)).collect();
        database.apply(&updates, Missing::Lenient, &setting.pool)?;
    }
    ensure!(database.checkpoint_pending()?.is_some(), "there was nothing to write");
    Ok(database)
}

/// Makes a full backup. Returns its seconds and the copied bytes.
fn back_up(database: &Engine, target: &Path) -> Result<(f64, u64)> {
    let (time, done) =
        seconds(|| database.backup(BackupTarget::Directory(target.to_owned()), &BackupOptions::default(), &Silent));
    let num_bytes = done?.num_bytes;
    std::fs::remove_dir_all(target)?;
    Ok((time, num_bytes))
}

/// Copies the same directory, on the disk at the end, to `target`. Returns its seconds.
fn copy(setting: &Setting, target: &Path) -> Result<f64> {
    let (time, done) = seconds(|| -> Result<()> {
        copy_files(&directory(setting), target)?;
        for file in std::fs::read_dir(target)? {
            std::fs::File::open(file?.path())?.sync_all()?;
        }
        Ok(())
    });
    done?;
    std::fs::remove_dir_all(target)?;
    Ok(time)
}

/// Backups in turn with copies.
fn copies(setting: &Setting, database: &Engine, num_pairs: usize, report: &mut Report) -> Result<()> {
    let (target, other) = (setting.scratch.join("upkeep.backup"), setting.scratch.join("upkeep.copy"));
    let mut num_bytes = 0;
    let ours = |_| -> Result<f64> {
        let (time, copied) = back_up(database, &target)?;
        num_bytes = copied;
        Ok(time)
    };
    let pairs = Pairs::alternate(num_pairs, ours, |_| copy(setting, &other))?;
    let bound = format!("{}; {:.0} MB", at_most(1.25, pairs.ratio().0), num_bytes as f64 / 1e6);
    report.line(Line::compared("full backup", &pairs, "copy and sync", bound));
    Ok(())
}

/// A client that commits edges, one at a time. Returns the microseconds of each.
fn committer<'a>(setting: &'a Setting, database: &'a Engine, first: u64) -> Client<'a, Vec<f64>> {
    Box::new(move |clock: &Clock<'_>| {
        let mut times = Vec::new();
        for number in first.. {
            if !clock.is_running() {
                break;
            }
            let (source, target) = edge(1, number);
            let start = Instant::now();
            database.apply(&[Update::add_edge(source, target)], Missing::Lenient, &setting.pool)?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
        Ok(times)
    })
}

/// Commits to the same database with and without backups one after the other, and beside copies of its files. A copy
/// shows what any reader and writer of that many bytes costs on the machine.
fn commits_beside_backups(
    setting: &Setting,
    database: &Engine,
    (num_pairs, time): (usize, Duration),
    report: &mut Report,
) -> Result<()> {
    database.set_durability(Durability::batched());
    let target = setting.scratch.join("upkeep.beside");
    let mut next = 0;
    let mut measure = |work: Option<&(dyn Fn() -> Result<f64> + Sync)>| -> Result<(f64, usize)> {
        let mut clients = vec![committer(setting, database, next)];
        clients.extend(work.map(|work| -> Client<'_, Vec<f64>> {
            Box::new(move |clock: &Clock<'_>| {
                let mut times = Vec::new();
                while clock.is_running() {
                    times.push(work()?);
                }
                Ok(times)
            })
        }));
        let (done, seconds) = side_by_side(clients, time)?;
        next += done[0].len() as u64;
        Ok((seconds / done[0].len().max(1) as f64, done.get(1).map_or(0, Vec::len)))
    };
    let backup = || Ok(back_up(database, &target)?.0);
    let copy = || copy(setting, &target);
    let (mut beside_backups, mut beside_copies) = (Pairs::default(), Pairs::default());
    let (mut num_backups, mut num_copies) = (0, 0);
    for _ in 0..num_pairs {
        let without = measure(None)?.0;
        let (beside, num) = measure(Some(&backup))?;
        beside_backups.push(beside, without);
        num_backups += num;
        let (beside, num) = measure(Some(&copy))?;
        beside_copies.push(beside, without);
        num_copies += num;
    }
    let bound = format!("{}; {num_backups} backups", at_most(1.11, beside_backups.ratio().0));
    report.line(Line::compared("a commit beside backups, batched", &beside_backups, "without", bound));
    let bound = format!("{num_copies} copies");
    report.line(Line::compared("a commit beside copies, batched", &beside_copies, "without", bound));
    Ok(())
}

/// Tails of the latency of commits, with and without checkpoints meanwhile.
fn commits_beside_checkpoints(
    setting: &Setting,
    is_quick: bool,
    (num_pairs, time): (usize, Duration),
    report: &mut Report,
) -> Result<()> {
    let checkpoint_bytes = if is_quick { QUICK_CHECKPOINT_BYTES } else { CHECKPOINT_BYTES };
    let mut num_checkpoints = 0;
    let mut measure = |checkpoint_bytes: Option<u64>| -> Result<f64> {
        let database = empty(&directory(setting))?;
        database.set_durability(Durability::batched());
        database.set_checkpoint_bytes(checkpoint_bytes);
        let (mut done, _) = side_by_side(vec![committer(setting, &database, 0)], time)?;
        num_checkpoints += database.num_snapshots() - 1;
        database.close()?;
        Ok(quantile(&mut done[0], 999) / 1e6)
    };
    let mut pairs = Pairs::default();
    for _ in 0..num_pairs {
        let without = measure(None)?;
        pairs.push(measure(Some(checkpoint_bytes))?, without);
    }
    let bound = format!("{}; {num_checkpoints} checkpoints", at_most(3.0, pairs.ratio().0));
    report.line(Line::compared("p99.9 of commits beside checkpoints", &pairs, "without", bound));
    std::fs::remove_dir_all(directory(setting))?;
    Ok(())
}
