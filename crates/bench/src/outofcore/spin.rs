//! Queries beside a thread that only spins: the authors of the paper found that they took less time.

use std::sync::atomic::{AtomicBool, Ordering};

use anden_engine::Engine;
use anyhow::Result;

use super::child::{NO_LIMIT, Task};
use super::sequence::{self, QUEUE_LEN, Recency};
use super::side::{Side, in_turn};
use super::work::Work;
use super::{Ground, SHARES};
use crate::harness::Pairs;
use crate::report::{Line, Report};

/// Each side runs the number of queries answered in this time, up to the maximum.
const SECONDS: f64 = 1.0;
const MOST_QUERIES: usize = 10_000;

const ASKED: [(Work, Side); 3] = [(Work::Edges, Side::Off), (Work::Edges, Side::On), (Work::Fof, Side::Off)];

/// Stops the thread on drop, also after a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `body`, beside a spinning thread if `is_spinning`.
pub(super) fn beside<R>(is_spinning: bool, body: impl FnOnce() -> R) -> R {
    let is_over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        if is_spinning {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let _over = Over(is_over);
        body()
    })
}

/// Measures cold queries with and without a spinning thread.
pub(super) fn lines(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let view = Engine::open_read_only(&ground.database)?.view()?;
    let drawn = sequence::draw(&view, Recency { alpha: 0.0, cap: QUEUE_LEN, seed: 1 }, MOST_QUERIES);
    drop(view);
    let path = ground.setting.scratch.join("outofcore.sequence");
    let group = ground.group(SHARES[0])?;
    for (work, side) in ASKED {
        sequence::write(&path, &drawn)?;
        let task = Task { sequence: Some(path.clone()), num_phases: 1, ..ground.task(work, side) };
        let alone = Task { most_seconds: SECONDS, ..task.clone() }.run(Some(&group))?;
        let num_queries = (alone.phases[0].num_done as usize).clamp(1, drawn.len());
        sequence::write(&path, &drawn[..num_queries])?;
        let task = Task { most_seconds: NO_LIMIT, ..task };
        let mut pairs = Pairs::default();
        for round in 0..ground.setting.num_pairs {
            let times = in_turn(&[true, false], round, |is_spinning| {
                Ok(Task { is_spinning, ..task.clone() }.run(Some(&group))?.phases[0].seconds)
            })?;
            pairs.push(times[0], times[1]);
        }
        let name = format!("{} n={num_queries}, {}, a thread spins", work.name(), side.name());
        report.line(Line::compared(name, &pairs, "none that does", "1: it does nothing"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_spins_as_long_as_there_is_work() {
        assert_eq!([true, false].map(|is_spinning| beside(is_spinning, || 7)), [7, 7]);
        let panicked = std::panic::catch_unwind(|| beside(true, || panic!("on purpose")));
        assert!(panicked.is_err());
    }
}
