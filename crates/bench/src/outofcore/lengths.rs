//! Query sequences as long as the paper's, and the cap of its recency queue.
//!
//! `queries` asks all sides the number of queries that plain maps answer in a second, which may be a hundred. Here each
//! side has its own time limit for the whole sequence. A side that reaches the limit counts with its answers until
//! then, because sides are compared by the time a query.

use anden_engine::Engine;
use anyhow::{Result, bail};

use super::child::{Outcome, Task};
use super::sequence::{self, QUEUE_LEN, Recency};
use super::side::{Side, in_turn};
use super::work::Work;
use super::{Ground, SHARES};
use crate::harness::{Pairs, median};
use crate::report::{Line, Report};

/// The time limits of a phase, on plain maps and on the other sides.
const OFF_SECONDS: f64 = 10.0;
const SECONDS: f64 = 60.0;

/// The sides. The first is compared with all others.
const SIDES: [Side; 3] = [Side::On, Side::Off, Side::Oracle];

/// The probabilities that the next vertex is a recent one.
const ALPHAS: [f64; 3] = [0.1, 0.5, 1.0];
/// The numbers of queries in a phase.
const EDGES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
const FOF: [usize; 3] = [1_000, 10_000, 50_000];
/// The caps of the recency queue, and the numbers of queries for them.
const CAPS: [usize; 3] = [64, 1_024, 16_384];
const CAPPED: [usize; 1] = [10_000];

/// One kind of queries.
struct Kind {
    name: String,
    work: Work,
    recency: Recency,
}

/// Measures every length of every kind, with the larger share of memory.
pub(super) fn lines(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let recency = Recency { alpha: 0.5, cap: QUEUE_LEN, seed: 1 };
    for alpha in ALPHAS {
        let (name, recency) = (format!("edge queries α={alpha}"), Recency { alpha, ..recency });
        Kind { name, work: Work::Edges, recency }.lines(ground, &EDGES, report)?;
    }
    for cap in CAPS {
        let (name, recency) = (format!("edge queries α={} L={cap}", recency.alpha), Recency { cap, ..recency });
        Kind { name, work: Work::Edges, recency }.lines(ground, &CAPPED, report)?;
    }
    let name = format!("friends of friends α={}", recency.alpha);
    Kind { name, work: Work::Fof, recency }.lines(ground, &FOF, report)
}

impl Kind {
    /// Measures `lengths` in ascending order, up to the first that no side finishes.
    fn lines(&self, ground: &Ground<'_>, lengths: &[usize], report: &mut Report) -> Result<()> {
        let most = lengths.last().copied().unwrap_or(0);
        // The view is read without a limit, and unmapped before a measurement begins.
        let view = Engine::open_read_only(&ground.database)?.view()?;
        let drawn = sequence::draw(&view, self.recency, 2 * most);
        drop(view);
        let path = ground.setting.scratch.join("outofcore.sequence");
        for &length in lengths {
            sequence::write(&path, &drawn[..drawn.len().min(2 * length)])?;
            let task = Task { sequence: Some(path.clone()), ..ground.task(self.work, Side::On) };
            let name = format!("{} whole n={length} at 1/{}", self.name, SHARES[0]);
            let rounds = self.rounds(ground, &task, length);
            let Some(rounds) = ground.unless_it_fits(&name, rounds, report)? else { return Ok(()) };
            compare(&name, &rounds, length, report);
            if rounds.iter().flatten().flat_map(|outcome| &outcome.phases).all(|phase| phase.num_done < length as u64) {
                break;
            }
        }
        Ok(())
    }

    /// The outcomes of each side in each round.
    fn rounds(&self, ground: &Ground<'_>, task: &Task, length: usize) -> Result<Vec<Vec<Outcome>>> {
        let group = ground.group(SHARES[0])?;
        let mut digests = [None; 2];
        let mut rounds = Vec::new();
        for round in 0..ground.num_runs() {
            let outcomes = in_turn(&SIDES, round, |side| {
                let most_seconds = if side == Side::Off { OFF_SECONDS } else { SECONDS };
                Task { side, most_seconds, ..task.clone() }.run(Some(&group))
            })?;
            for (digest, place) in digests.iter_mut().zip(0..) {
                let whole = outcomes.iter().map(|outcome| outcome.phases[place]);
                for phase in whole.filter(|phase| phase.num_done == length as u64) {
                    if *digest.get_or_insert(phase.digest) != phase.digest {
                        bail!("{}: the sides have different results", self.name);
                    }
                }
            }
            rounds.push(outcomes);
        }
        Ok(rounds)
    }
}

/// Reports the time a query, cold and warm, against each other side.
fn compare(name: &str, rounds: &[Vec<Outcome>], length: usize, report: &mut Report) {
    for (phase, place) in ["cold", "warm"].iter().zip(0..) {
        for (side, other) in SIDES.iter().zip(0..).skip(1) {
            let mut pairs = Pairs::default();
            let (mut num_ours, mut num_others) = (Vec::new(), Vec::new());
            for outcomes in rounds {
                let (on, beside) = (outcomes[0].phases[place], outcomes[other].phases[place]);
                let micros = |seconds: f64, num_done: u64| 1e6 * seconds / num_done as f64;
                // A side without an answer has no time a query.
                if on.num_done.min(beside.num_done) > 0 {
                    pairs.push(micros(on.seconds, on.num_done), micros(beside.seconds, beside.num_done));
                }
                num_ours.push(on.num_done as f64);
                num_others.push(beside.num_done as f64);
            }
            let bound = answered(length, median(&num_ours) as usize, median(&num_others) as usize);
            let line = Line::compared(format!("{name}, {phase}"), &pairs, side.name(), bound);
            report.line(Line { unit: "µs", ..line });
        }
    }
}

/// The unit of the times, with the numbers of answers if a side was cut off.
fn answered(length: usize, num_ours: usize, num_others: usize) -> String {
    match num_ours.min(num_others) < length {
        true => format!("a query; {num_ours} and {num_others} answered in time"),
        false => "a query".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_off_side_is_reported_with_its_count() {
        assert_eq!(answered(1_000, 1_000, 1_000), "a query");
        assert_eq!(answered(1_000, 1_000, 70), "a query; 1000 and 70 answered in time");
        assert_eq!(answered(1_000, 999, 1_000), "a query; 999 and 1000 answered in time");
    }
}
