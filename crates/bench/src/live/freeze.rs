//! How long a commit is held up when a snapshot is made of what was committed before.
//!
//! The newest version is frozen first, while nobody else can commit: in constant time, whatever it holds. Here one
//! thread commits an edge after the other, and another makes a snapshot of ever more changes. Whoever begins to commit
//! just after the snapshot was asked for may have to wait for the freeze, so the longest of these commits bounds it; it
//! has the first changes of the new delta in it, too. The median of the commits before is the other side. Later on, the
//! new delta is laid over the new snapshot: the longest commit until the snapshot is there has that in it.
//!
//! When the freeze has its turn is not seen from here. Where other programs keep the processors busy that may be later
//! than [`SOON`], and a commit may be long because its thread had to wait: the lines say something on an idle machine.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use base::VertexId;
use base::parallel::Pool;
use engine::{Database, Durability, Fate, GraphOptions, KeyScheme};

use crate::harness::{Pairs, median, seconds};
use crate::report::{Line, Report};
use crate::setting::Setting;
use crate::updates::Supply;

/// The name of this part.
pub(super) const NAME: &str = "freeze";

/// Bytes in memory of which a snapshot is made, and how often.
const DELTAS: [u64; 3] = [1 << 20, 16 << 20, 128 << 20];
const QUICK_DELTAS: [u64; 3] = [1 << 18, 1 << 20, 4 << 20];
const TRIALS: usize = 7;
const QUICK_TRIALS: usize = 3;

/// A batch that fills the delta has an edge for so many bytes of what is wanted, so that no delta is much larger.
const BYTES_OF_EDGE: u64 = 1024;
/// Commits that begin so soon after the snapshot was asked for may wait for the freeze.
const SOON: Duration = Duration::from_millis(1);
/// Commits before a snapshot is asked for, and after it is there.
const BEFORE: usize = 1000;
const AFTER: usize = 10;
/// Between two commits, so that who freezes finds a moment without one.
const PAUSE: Duration = Duration::from_micros(5);

/// One edge that was committed.
struct Commit {
    began: Instant,
    seconds: f64,
}

/// What a snapshot did to commits.
struct Trial {
    delta_bytes: u64,
    median: f64,
    longest_soon: f64,
    longest: f64,
    snapshot: f64,
}

/// The lines of databases in memory and in files.
pub(super) fn lines(setting: &Setting, is_quick: bool, report: &mut Report) -> Result<()> {
    let (deltas, num_trials) = if is_quick { (QUICK_DELTAS, QUICK_TRIALS) } else { (DELTAS, TRIALS) };
    for place in [Place::Memory, Place::Files] {
        let mut trials: Vec<Vec<Trial>> = deltas.iter().map(|_| Vec::new()).collect();
        for number in 0..num_trials {
            for (of_delta, &num_bytes) in trials.iter_mut().zip(&deltas) {
                of_delta.push(trial(setting, place, number as u64, num_bytes)?);
            }
        }
        for (of_delta, num_bytes) in trials.iter().zip(deltas) {
            report_delta(report, &format!("{}, {} KB live", place.name(), num_bytes >> 10), of_delta);
        }
        let (Some(small), Some(large)) = (trials.first(), trials.last()) else { continue };
        let mut pairs = Pairs::default();
        small
            .iter()
            .zip(large)
            .for_each(|(small, large)| pairs.push(large.longest_soon * 1e6, small.longest_soon * 1e6));
        let times = deltas[deltas.len() - 1] / deltas[0];
        let name = format!("freeze, {}, {times} times as much live: longest commit", place.name());
        report.line(Line { unit: "µs", ..Line::compared(name, &pairs, "the least", "constant: about 1") });
    }
    Ok(())
}

fn report_delta(report: &mut Report, name: &str, trials: &[Trial]) {
    let of = |figure: fn(&Trial) -> f64| median(&trials.iter().map(figure).collect::<Vec<_>>());
    let mut pairs = Pairs::default();
    trials.iter().for_each(|trial| pairs.push(trial.longest_soon * 1e6, trial.median * 1e6));
    let bound = format!("{:.1} MB live", of(|trial| trial.delta_bytes as f64) / 1e6);
    let longest = format!("freeze, {name}: longest commit");
    report.line(Line { unit: "µs", ..Line::compared(longest, &pairs, "median commit before", bound) });
    let bound = format!("a snapshot takes {:.1} ms", of(|trial| trial.snapshot) * 1e3);
    let until = format!("freeze, {name}: longest until the snapshot is there");
    report.line(Line::figure(until, "µs", of(|trial| trial.longest) * 1e6, bound));
}

/// Where a database is.
#[derive(Clone, Copy)]
enum Place {
    Memory,
    Files,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::Memory => "in memory",
            Self::Files => "in files with a log",
        }
    }

    /// A database of which no snapshot is made but those that are asked for, and for whose log nobody waits.
    fn database(self, path: &Path) -> Result<Database> {
        let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
        let database = match self {
            Self::Memory => Database::in_memory(options)?,
            Self::Files => Database::create(path, options)?,
        };
        database.set_durability(Durability::None);
        database.set_checkpoint_bytes(None);
        Ok(database)
    }
}

fn trial(setting: &Setting, place: Place, number: u64, num_bytes: u64) -> Result<Trial> {
    let path = setting.scratch.join("freeze.anden");
    let scale = setting.origin.scale();
    let database = place.database(&path)?;
    let mut supply = Supply::new(scale, 90 + number)?;
    while database.live_stats().delta_bytes < num_bytes {
        let batch = supply.take(&setting.pool, (num_bytes / BYTES_OF_EDGE) as usize);
        database.apply_edges(&batch, Fate::Come, &setting.pool)?;
    }
    let trial = snapshot_beside_commits(&database, scale)?;
    drop(database);
    if path.exists() {
        std::fs::remove_dir_all(&path)?;
    }
    Ok(trial)
}

/// Makes a snapshot of what is live while another thread commits.
fn snapshot_beside_commits(database: &Database, scale: u32) -> Result<Trial> {
    let delta_bytes = database.live_stats().delta_bytes;
    let writer = Committing { is_over: AtomicBool::new(false), num_commits: AtomicUsize::new(0) };
    let (asked, snapshot, commits) = std::thread::scope(|scope| -> Result<_> {
        let handle = scope.spawn(|| writer.commit(database, scale));
        let wait_for = |num_commits: usize| {
            while writer.num_commits.load(Ordering::Relaxed) < num_commits && !handle.is_finished() {
                std::thread::yield_now();
            }
        };
        wait_for(BEFORE);
        let asked = Instant::now();
        let (snapshot, made) = seconds(|| database.checkpoint(None));
        wait_for(writer.num_commits.load(Ordering::Relaxed) + AFTER);
        writer.is_over.store(true, Ordering::Relaxed);
        let commits = handle.join().map_err(|_| anyhow::anyhow!("the writer ended early"))??;
        made?;
        Ok((asked, snapshot, commits))
    })?;
    let (before, since) = commits.split_at(commits.partition_point(|commit| commit.began < asked));
    let longest = |commits: &[Commit]| commits.iter().map(|commit| commit.seconds).fold(0.0, f64::max);
    // Who began just before may be the one that waits.
    let last = &before[before.len().saturating_sub(1)..];
    let soon = &since[..since.partition_point(|commit| commit.began < asked + SOON)];
    let until = &since[..since.partition_point(|commit| commit.began < asked + Duration::from_secs_f64(snapshot))];
    Ok(Trial {
        delta_bytes,
        median: median(&before.iter().map(|commit| commit.seconds).collect::<Vec<_>>()),
        longest_soon: longest(last).max(longest(soon)),
        longest: longest(last).max(longest(until)),
        snapshot,
    })
}

/// Who commits one edge after the other.
struct Committing {
    is_over: AtomicBool,
    num_commits: AtomicUsize,
}

impl Committing {
    /// Commits edges to and from anywhere until it is over.
    fn commit(&self, database: &Database, scale: u32) -> Result<Vec<Commit>> {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let pool = Pool::new(1)?;
        let mask = (1_u64 << scale) - 1;
        let mut commits = Vec::with_capacity(1 << 20);
        while !self.is_over.load(Ordering::Relaxed) {
            let mixed = (commits.len() as u64 + 1).wrapping_mul(ODD);
            let edge = ((mixed >> 40 & mask) as VertexId, (mixed >> 16 & mask) as VertexId);
            let began = Instant::now();
            let (seconds, applied) = seconds(|| database.apply_edges(&[edge], Fate::Come, &pool));
            applied?;
            commits.push(Commit { began, seconds });
            self.num_commits.store(commits.len(), Ordering::Relaxed);
            let ended = Instant::now();
            while ended.elapsed() < PAUSE {
                std::hint::spin_loop();
            }
        }
        Ok(commits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However seldom a thread has its turn, there are commits on both sides of the snapshot.
    #[test]
    fn commits_beside_a_snapshot_are_measured() {
        for place in [Place::Memory, Place::Files] {
            let directory = tempfile::tempdir().unwrap();
            let database = place.database(&directory.path().join("freeze.anden")).unwrap();
            database.apply_edges(&[(0, 1), (1, 2)], Fate::Come, &Pool::new(1).unwrap()).unwrap();
            let trial = snapshot_beside_commits(&database, 10).unwrap();
            assert!(trial.delta_bytes > 0 && trial.median > 0.0 && trial.snapshot > 0.0);
            assert!(trial.longest > 0.0 && trial.longest_soon > 0.0);
            assert_eq!(database.snapshots().len(), 2, "that of the beginning, and the one that was made");
        }
    }
}
