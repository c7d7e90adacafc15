//! Our container against the rivals: every container takes each batch in turn, and ours is compared with the best.

use std::collections::{BTreeSet, HashSet};

use anyhow::Result;

use super::rivals::{PackedArray, SetEach};
use super::{Batch, Container, Ours, Supply, come_and_go, is_wanted, report_batches};
use crate::harness::Pairs;
use crate::report::{Line, Report, at_least};
use crate::setting::Setting;

/// One in this many trials of our own lines runs here, but at least [`LEAST_TRIALS`].
const SHARE: usize = 4;
const LEAST_TRIALS: usize = 3;

/// The name that selects all rivals.
const RIVALS: &str = "rivals";

/// The target speed of an insertion of `len` edges, as a multiple of the best rival's.
fn target(len: usize) -> f64 {
    match len {
        10_000.. => 2.0,
        1000.. => 1.5,
        _ => 1.0,
    }
}

/// A container that holds the graph.
struct Side {
    name: &'static str,
    container: Box<dyn Container>,
    /// The times of one batch size: removals as ours, insertions as the other side.
    times: Pairs,
}

impl Side {
    fn new(name: &'static str, container: Box<dyn Container>) -> Self {
        Self { name, container, times: Pairs::default() }
    }
}

/// Measures the selected rivals in turn with ours.
pub(super) fn run(setting: &Setting, report: &mut Report, edges: Batch<'_>, sizes: &[(usize, usize)]) -> Result<()> {
    let scale = setting.origin.scale();
    let num_vertices = 1_usize << scale;
    let mut rivals = vec![
        Side::new("sorted vectors", Box::new(SetEach::<Vec<u32>>::new(num_vertices))),
        Side::new("B-tree sets", Box::new(SetEach::<BTreeSet<u32>>::new(num_vertices))),
        Side::new("hash sets", Box::new(SetEach::<HashSet<u32>>::new(num_vertices))),
        Side::new("one packed array", Box::new(PackedArray::new())),
    ];
    rivals.retain(|rival| is_wanted(setting, RIVALS) || is_wanted(setting, rival.name));
    if rivals.is_empty() {
        return Ok(());
    }
    let mut sides = vec![Side::new("live", Box::new(Ours::new(num_vertices, None)?))];
    sides.append(&mut rivals);
    for side in &mut sides {
        side.container.insert(&setting.pool, edges)?;
    }
    let mut supply = Supply::new(scale, 77)?;
    for &(len, num_trials) in sizes {
        let num_trials = num_trials.div_ceil(SHARE).max(LEAST_TRIALS);
        sides.iter_mut().for_each(|side| side.times = Pairs::default());
        for trial in 0..num_trials + 1 {
            let batch = supply.take(&setting.pool, len);
            for turn in 0..sides.len() {
                let index = (trial + turn) % sides.len();
                let side = &mut sides[index];
                let (insert, remove) = come_and_go(setting, &mut *side.container, &batch)?;
                if trial > 0 {
                    side.times.push(remove, insert);
                }
            }
        }
        let (ours, rivals) = (&sides[0], &sides[1..]);
        rivals.iter().for_each(|rival| report_batches(report, rival.name, len, &rival.times));
        report_best(report, ours, rivals, len);
    }
    Ok(())
}

/// Reports ours against the rival with the highest rate.
fn report_best(report: &mut Report, ours: &Side, rivals: &[Side], len: usize) {
    let Some(best) = rivals.iter().min_by(|a, b| a.times.other().total_cmp(&b.times.other())) else { return };
    let rate = |time: f64| len as f64 / time / 1e6;
    // A ratio of rates, so that more is better.
    let (ratio, low, high) = best.times.beside(&ours.times).ratio();
    report.line(Line {
        other: Line::beside(rate(best.times.other()), "the best rival"),
        ratio: Some((ratio, low, high)),
        ..Line::figure(
            format!("{}, insert {len} in turn", ours.name),
            "M/s",
            rate(ours.times.other()),
            format!("{}; {}", at_least(target(len), ratio), best.name),
        )
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_batches_have_no_lower_target() {
        assert_eq!([10, 100, 1000, 10_000, 10_000_000].map(target), [1.0, 1.0, 1.5, 2.0, 2.0]);
    }
}
