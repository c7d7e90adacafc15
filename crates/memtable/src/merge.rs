//! Merges sorted changes into one fragment of a list.
//!
//! A [`FragmentMergePlan`] first finds the changes that have an effect, and their places. This gives the length of
//! the result, so that the result is written once, in its final place.

use anden_base::VertexId;

use crate::EntryValue;
use crate::change::{BatchEffect, Change, Sink};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FragmentMergeKind {
    Insert,
    Remove,
    Replace,
}

/// A change with an effect.
#[derive(Clone, Copy, Debug)]
struct FragmentMergeStep {
    /// Index of the first entry of the old fragment that is not below the target.
    position: u32,
    /// Index in the changes.
    change: u32,
    kind: FragmentMergeKind,
}

/// Changes with an effect, ascending by target.
#[derive(Debug, Default)]
pub(crate) struct FragmentMergePlan {
    steps: Vec<FragmentMergeStep>,
    num_inserted: usize,
    num_removed: usize,
}

/// How many arcs of a list may have one target.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parallel {
    /// One. The last of several changes of a target counts.
    One,
    /// Any number. A removal takes all arcs of its target. Additions after the last removal go behind the arcs that
    /// remain. Additions for targets from `limit` on belong to the next fragment, which may hold arcs to that target.
    Many { limit: Option<VertexId> },
}

/// Ranges up to this length are counted instead of searched: counting has no branch to mispredict.
const COUNTED: usize = 64;

/// First index from `from` on whose entry is not below `target`.
#[inline(always)]
fn advance(list: &[VertexId], from: usize, target: VertexId) -> usize {
    let mut low = from;
    let mut high = list.len();
    while high - low > COUNTED {
        let middle = low + (high - low) / 2;
        if list[middle] < target { low = middle + 1 } else { high = middle }
    }
    low + list[low..high].iter().map(|&entry| u32::from(entry < target)).sum::<u32>() as usize
}

impl FragmentMergePlan {
    /// Compares `changes` (of one source, ascending by target) with a fragment.
    #[inline]
    pub(crate) fn make<W: EntryValue, C: Change<W>>(
        &mut self,
        (targets, values): (&[VertexId], &[W]),
        changes: &[C],
        parallel: Parallel,
        outcome: &mut BatchEffect<'_, impl Sink<C>>,
    ) {
        match parallel {
            Parallel::One => self.make_single(targets, values, changes, outcome),
            Parallel::Many { limit } => self.make_parallel(targets, changes, limit, outcome),
        }
    }

    /// As [`Self::make`], for a multigraph.
    #[inline(never)]
    fn make_parallel<W: EntryValue, C: Change<W>>(
        &mut self,
        targets: &[VertexId],
        changes: &[C],
        limit: Option<VertexId>,
        outcome: &mut BatchEffect<'_, impl Sink<C>>,
    ) {
        let BatchEffect { applied, sink } = outcome;
        self.steps.clear();
        (self.num_inserted, self.num_removed) = (0, 0);
        // Both sequences ascend, so positions only move forward.
        let (mut position, mut start) = (0, 0);
        for group in changes.chunk_by(|a, b| a.target() == b.target()) {
            let target = group[0].target();
            position = advance(targets, position, target);
            let num_there = targets[position..].partition_point(|&entry| entry == target);
            let removal = group.iter().rposition(|change| change.addition().is_none());
            let mut num_loops = 0;
            if let Some(removal) = removal.filter(|_| num_there > 0) {
                let steps = position..position + num_there;
                let step = |position| FragmentMergeStep {
                    position: position as u32,
                    change: start as u32,
                    kind: FragmentMergeKind::Remove,
                };
                self.steps.extend(steps.map(step));
                self.num_removed += num_there;
                num_loops -= num_there as i64;
                sink.effective(&group[removal]);
            }
            // Additions stand behind the arcs that are there, which keeps the order of parallel edges.
            position += num_there;
            if limit.is_none_or(|limit| target < limit) {
                for (i, change) in group.iter().enumerate().skip(removal.map_or(0, |removal| removal + 1)) {
                    let (position, change_index) = (position as u32, (start + i) as u32);
                    self.steps.push(FragmentMergeStep {
                        position,
                        change: change_index,
                        kind: FragmentMergeKind::Insert,
                    });
                    self.num_inserted += 1;
                    num_loops += 1;
                    sink.effective(change);
                }
            }
            if group[0].source() == target {
                applied.num_loops += num_loops;
            }
            start += group.len();
        }
        applied.num_added += self.num_inserted as u64;
        applied.num_removed += self.num_removed as u64;
    }

    /// As [`Self::make`], for a simple graph.
    #[inline(always)]
    fn make_single<W: EntryValue, C: Change<W>>(
        &mut self,
        targets: &[VertexId],
        values: &[W],
        changes: &[C],
        outcome: &mut BatchEffect<'_, impl Sink<C>>,
    ) {
        let BatchEffect { applied, sink } = outcome;
        self.steps.clear();
        let (mut num_inserted, mut num_removed) = (0, 0);
        let mut position = 0;
        for (i, change) in changes.iter().enumerate() {
            let target = change.target();
            // The last of several changes of a target counts.
            if changes.get(i + 1).is_some_and(|next| next.target() == target) {
                continue;
            }
            position = advance(targets, position, target);
            let is_there = targets.get(position) == Some(&target);
            let kind = match change.addition() {
                Some(_) if !is_there => FragmentMergeKind::Insert,
                // An equal value has no effect, and copies no node.
                Some(value) if W::WORDS > 0 && !values[position].is_same(&value) => FragmentMergeKind::Replace,
                None if is_there => FragmentMergeKind::Remove,
                _ => continue,
            };
            num_inserted += usize::from(kind == FragmentMergeKind::Insert);
            num_removed += usize::from(kind == FragmentMergeKind::Remove);
            applied.num_replaced += u64::from(kind == FragmentMergeKind::Replace);
            if change.source() == target && kind != FragmentMergeKind::Replace {
                applied.num_loops += if kind == FragmentMergeKind::Insert { 1 } else { -1 };
            }
            sink.effective(change);
            self.steps.push(FragmentMergeStep { position: position as u32, change: i as u32, kind });
        }
        applied.num_added += num_inserted as u64;
        applied.num_removed += num_removed as u64;
        (self.num_inserted, self.num_removed) = (num_inserted, num_removed);
    }

    /// Whether the fragment stays unchanged.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Length of a fragment of `len` entries after the changes.
    #[inline(always)]
    pub(crate) fn len_after(&self, len: usize) -> usize {
        len + self.num_inserted - self.num_removed
    }

    /// Writes the new content of the fragment that the plan was made for.
    #[inline]
    pub(crate) fn write<W: EntryValue, C: Change<W>>(
        &self,
        (targets, values): (&[VertexId], &[W]),
        changes: &[C],
        (new_targets, new_values): (&mut [VertexId], &mut [W]),
    ) {
        // Targets and values are woven apart: each is one pass over one array.
        self.weave(targets, new_targets, |i| changes[i].target());
        if W::WORDS > 0 {
            self.weave(values, new_values, |i| match changes[i].addition() {
                Some(value) => value,
                // Not reached: `weave` asks for the values of insertions and replacements only.
                None => W::zeroed(),
            });
        }
    }

    #[inline(always)]
    fn weave<T: Copy>(&self, old: &[T], new: &mut [T], value: impl Fn(usize) -> T) {
        let (mut from, mut to) = (0, 0);
        for step in &self.steps {
            let position = step.position as usize;
            let len = position - from;
            copy_run(&old[from..position], &mut new[to..to + len]);
            to += len;
            from = position;
            if step.kind != FragmentMergeKind::Remove {
                new[to] = value(step.change as usize);
                to += 1;
            }
            if step.kind != FragmentMergeKind::Insert {
                from += 1;
            }
        }
        let len = old.len() - from;
        copy_run(&old[from..], &mut new[to..to + len]);
    }
}

/// Copies entries. Short copies, which are most, avoid a call of `memcpy`.
#[inline(always)]
fn copy_run<T: Copy>(from: &[T], to: &mut [T]) {
    if from.len() < 8 {
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from;
        }
    } else {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlay::Listed;
    use crate::{AppliedArcs, EntryUpdate};
    use anden_testkit::Random;
    use std::collections::BTreeMap;

    #[test]
    fn merged_lists_are_those_of_a_map() {
        let seed = 0x6d65;
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let mut plan = FragmentMergePlan::default();
        for round in 0..2000 {
            let bound = [20, 200, 2000][round % 3];
            let mut model = BTreeMap::new();
            for _ in 0..random.below(bound) {
                model.insert(random.below(bound), random.below(3));
            }
            let (targets, values): (Vec<u32>, Vec<u32>) = model.iter().map(|(&t, &w)| (t, w)).unzip();
            let mut changes: Vec<EntryUpdate<u32>> = (0..random.below(bound / 2))
                .map(|_| EntryUpdate {
                    source: 3,
                    target: random.below(bound),
                    addition: (random.below(2) == 0).then(|| random.below(3)),
                })
                .collect();
            changes.sort_by_key(|change| change.target);
            let (mut applied, mut effective) = (AppliedArcs::default(), Listed::default());
            let mut outcome = BatchEffect { applied: &mut applied, sink: &mut effective };
            plan.make((&targets, &values), &changes, Parallel::One, &mut outcome);
            let mut expected = AppliedArcs::default();
            let before = model.clone();
            for change in &changes {
                match change.addition {
                    Some(value) => model.insert(change.target, value),
                    None => model.remove(&change.target),
                };
            }
            for target in 0..bound {
                match (before.get(&target), model.get(&target)) {
                    (None, Some(_)) => expected.num_added += 1,
                    (Some(_), None) => expected.num_removed += 1,
                    (old, new) => expected.num_replaced += u64::from(old != new),
                }
            }
            applied.num_loops = 0;
            assert_eq!(applied, expected, "round {round}");
            assert_eq!(plan.len_after(targets.len()), model.len(), "round {round}");
            let Listed(effective) = effective;
            assert_eq!(effective.len() as u64, applied.num_added + applied.num_removed + applied.num_replaced);
            let (mut new_targets, mut new_values) = (vec![0; model.len()], vec![0; model.len()]);
            plan.write((&targets, &values), &changes, (&mut new_targets, &mut new_values));
            assert!(new_targets.iter().zip(&new_values).eq(model.iter()), "round {round}");
        }
    }
}
