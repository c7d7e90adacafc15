//! Transactions that compete for few vertices: the rate of conflicts, and whether a client starves.
//!
//! Each transaction reads the degrees of two vertices and adds an edge from one to the other. The choice of vertices
//! follows Zipf's law. Other transactions read the lists that an edge changes, so two concurrent transactions with a
//! common end cannot both commit first.

use std::time::Duration;

use anden_base::parallel::Pool;
use anden_base::random::Random;
use anden_engine::Direction;
use anden_engine::Durability;
use anyhow::{Result, ensure};

use super::commits::empty;
use super::stage::{Client, Clock, side_by_side};
use crate::report::{Line, Report};
use crate::setting::Setting;

const NUM_CLIENTS: usize = 8;
/// The number of vertices, and the skew of the choice.
const NUM_VERTICES: u64 = 100_000;
const SKEW: f64 = 0.99;

/// Random numbers by Zipf's law; the first is the most frequent.
#[derive(Clone, Copy, Debug)]
struct Zipf {
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    fn new() -> Self {
        let zeta = |bound: u64| (1..=bound).map(|number| (number as f64).powf(-SKEW)).sum::<f64>();
        let all = zeta(NUM_VERTICES);
        let eta = (1.0 - (2.0 / NUM_VERTICES as f64).powf(1.0 - SKEW)) / (1.0 - zeta(2) / all);
        Self { zeta: all, alpha: 1.0 / (1.0 - SKEW), eta }
    }

    fn next(&self, random: &mut Random) -> u64 {
        let share = random.below_u64(1 << 53) as f64 / (1_u64 << 53) as f64;
        let mass = share * self.zeta;
        if mass < 1.0 {
            return 0;
        }
        if mass < 1.0 + 0.5_f64.powf(SKEW) {
            return 1;
        }
        let number = NUM_VERTICES as f64 * (self.eta * share - self.eta + 1.0).powf(self.alpha);
        (number as u64).min(NUM_VERTICES - 1)
    }
}

/// Measures the lines.
pub(super) fn lines(setting: &Setting, is_quick: bool, report: &mut Report) -> Result<()> {
    let time = Duration::from_millis(if is_quick { 500 } else { 5_000 });
    let zipf = Zipf::new();
    let database = empty(&setting.scratch.join("conflicts.anden"))?;
    database.set_durability(Durability::None);
    let pool = Pool::new(1)?;
    let before = database.commit_stats();
    let client = |number: usize| -> Client<'_, u64> {
        let (database, pool) = (&database, &pool);
        Box::new(move |clock: &Clock<'_>| {
            let mut random = Random::new(number as u64 + 99);
            let mut num_commits = 0;
            loop {
                let (source, target) = (zipf.next(&mut random).into(), zipf.next(&mut random).into());
                database.transact(pool, |tx| -> anden_engine::Result<()> {
                    let degrees = tx.degree(&source, Direction::Out)? + tx.degree(&target, Direction::Out)?;
                    std::hint::black_box(degrees);
                    tx.add_edge(&source, &target, None).map(drop)
                })?;
                num_commits += 1;
                if !clock.is_running() {
                    return Ok(num_commits);
                }
            }
        })
    };
    let (counts, seconds) = side_by_side((0..NUM_CLIENTS).map(client).collect(), time)?;
    let stats = database.commit_stats();
    let (commits, conflicts) = (counts.iter().sum::<u64>() as f64, (stats.conflicts - before.conflicts) as f64);
    let slowest = counts.iter().copied().min().unwrap_or(0) as f64 / (commits / NUM_CLIENTS as f64);
    ensure!(slowest > 0.0, "a client starves: {counts:?}");
    let name = format!("Zipf {SKEW}, {NUM_CLIENTS} clients");
    report.line(Line::figure(format!("{name}: transactions"), "k/s", commits / seconds / 1e3, ""));
    report.line(Line::figure(format!("{name}: tries that lost"), "", conflicts / (commits + conflicts), ""));
    let alone = format!("> 0; {} were let in alone", stats.admitted_alone - before.admitted_alone);
    report.line(Line::figure(format!("{name}: the slowest client, of the mean"), "", slowest, alone));
    database.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_numbers_are_most_of_them() {
        let (zipf, mut random) = (Zipf::new(), Random::new(1));
        let numbers: Vec<u64> = (0..100_000).map(|_| zipf.next(&mut random)).collect();
        let share = |below: u64| numbers.iter().filter(|&&number| number < below).count() as f64 / 1e5;
        assert!(numbers.iter().all(|&number| number < NUM_VERTICES));
        // The mass of n^-.99 below 100,000 is 12.8. The first number has 1/12.8 of it, the first hundred 5.3/12.8.
        assert!((0.07..0.085).contains(&share(1)) && (0.38..0.45).contains(&share(100)), "{} {}", share(1), share(100));
    }
}
