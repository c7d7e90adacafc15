//! Applies changes to a list.

use anden_base::VertexId;
use anden_base::simd::num_below;

use super::{ArcData, ChangedList, EntryBuffer, ListEntries};

/// Appends to `new` the list `old` with `changes` applied. Targets ascend, and changed entries with equal targets are
/// ordered by row or by the bits of the weights. Entries between the changes are copied as they are.
///
/// Cost: a copy, and for each changed target a galloping search from the one before.
///
/// # Errors
/// Description of the fault: a removed entry is absent, or an added one is present and the graph is no multigraph.
pub(crate) fn apply(
    old: ListEntries<'_>,
    changes: &ChangedList<'_>,
    multigraph: bool,
    new: &mut EntryBuffer,
) -> Result<(), String> {
    let (mut added, mut removed) = (changes.added, changes.removed);
    let num_most = old.targets.len() + added.targets.len();
    let has_changes = !(added.targets.is_empty() && removed.targets.is_empty());
    for (column, added, removed) in
        [(old.weights, added.weights, removed.weights), (old.rows, added.rows, removed.rows)]
    {
        let is_there = !(added.is_empty() && removed.is_empty());
        if has_changes && column.len() != if is_there { old.targets.len() } else { 0 } {
            return Err(format!("a list of {} targets with {} weights or rows", old.targets.len(), column.len()));
        }
    }
    new.targets.reserve(num_most);
    let is_mixed = added.targets.len() * MIXED >= old.targets.len();
    let is_plain = [added, removed].iter().all(|entries| entries.keys().is_empty());
    // Insertions into a plain list take a merge without branches.
    if is_mixed && is_plain && !multigraph && removed.targets.is_empty() {
        return merge(old.targets, added.targets, &mut new.targets);
    }
    for (column, old) in [(&mut new.weights, old.weights), (&mut new.rows, old.rows)] {
        if has_changes && !old.is_empty() {
            column.reserve(num_most);
        }
    }
    let mut rest = old;
    while let Some(&target) = [added.targets.first(), removed.targets.first()].into_iter().flatten().min() {
        // Unchanged entries up to the next change are copied as one range.
        let num_before = gallop(rest.targets, target);
        new.extend(split(&mut rest, num_before));
        let group = TargetChanges {
            target,
            old: split_equal(&mut rest, target),
            added: split_equal(&mut added, target),
            removed: split_equal(&mut removed, target),
        };
        group.apply(multigraph, new)?;
    }
    new.extend(rest);
    Ok(())
}

/// If one in this many entries is new, looking at each is faster than copying the ranges between.
const MIXED: usize = 8;

/// Entries that are compared at once.
const LANES: usize = 16;

/// Appends the targets of two ascending lists without a common target.
fn merge(old: &[VertexId], added: &[VertexId], targets: &mut Vec<VertexId>) -> Result<(), String> {
    let start = targets.len();
    targets.resize(start + old.len() + added.len(), 0);
    let places = &mut targets[start..];
    let (mut o, mut a) = (0, 0);
    // Set for an entry of both lists, or for two equal additions.
    let mut is_twice = added.windows(2).fold(false, |is_twice, pair| is_twice | (pair[0] == pair[1]));
    while let (Some(chunk), Some(&new)) = (old[o..].first_chunk::<LANES>(), added.get(a)) {
        // All are copied, and those behind the addition are overwritten, so that counting them takes no branch.
        places[o + a..][..LANES].copy_from_slice(chunk);
        let num_before = num_below(chunk, new);
        o += num_before;
        if num_before < LANES {
            is_twice |= old[o] == new;
            places[o + a] = new;
            a += 1;
        }
    }
    let mut places = places[o + a..].iter_mut();
    // No branch chooses the next entry, because the processor could not predict it.
    while let (Some(&first), Some(&second)) = (old.get(o), added.get(a)) {
        let Some(place) = places.next() else { break };
        let is_old = first < second;
        is_twice |= first == second;
        *place = if is_old { first } else { second };
        o += usize::from(is_old);
        a += usize::from(!is_old);
    }
    let rest = [&old[o..], &added[a..]].into_iter().flatten();
    places.zip(rest).for_each(|(place, &target)| *place = target);
    // Only an error needs the target, so the scan for it runs only then.
    let twice = if is_twice { targets[start..].windows(2).find(|pair| pair[0] == pair[1]) } else { None };
    match twice {
        Some(pair) => Err(format!("an edge to {} is to be added that is there already", pair[0])),
        None => Ok(()),
    }
}

/// The entries of a list with one target, and their changes.
struct TargetChanges<'a> {
    target: VertexId,
    old: ListEntries<'a>,
    added: ListEntries<'a>,
    removed: ListEntries<'a>,
}

impl TargetChanges<'_> {
    #[inline]
    fn apply(&self, multigraph: bool, new: &mut EntryBuffer) -> Result<(), String> {
        let Self { target, old, added, removed } = self;
        let Some(num_kept) = old.targets.len().checked_sub(removed.targets.len()) else {
            return Err(self.missing());
        };
        let num_now = num_kept + added.targets.len();
        // In a simple graph, a second entry for a target means that the changes do not fit.
        if num_now > 1 && !multigraph {
            return Err(format!("an edge to {target} is to be added that is there already"));
        }
        new.targets.extend(std::iter::repeat_n(*target, num_now));
        let has = |column: fn(&ListEntries<'_>) -> bool| column(old) || column(added);
        let has_rows = has(|entries| !entries.rows.is_empty());
        match has(|entries| !entries.weights.is_empty()) {
            // With both, weights move with their rows.
            true if has_rows => return self.apply_both(new),
            true => apply_column(old.weights, added.weights, removed.weights, &mut new.weights),
            false if has_rows => apply_column(old.rows, added.rows, removed.rows, &mut new.rows),
            false => Some(()),
        }
        .ok_or_else(|| self.missing())
    }

    #[inline(never)]
    fn apply_both(&self, new: &mut EntryBuffer) -> Result<(), String> {
        let data =
            |entries: ListEntries<'_>| (0..entries.targets.len()).map(|place| entries.data(place)).collect::<Vec<_>>();
        let mut kept: Vec<ArcData> = data(self.old);
        kept.sort_unstable();
        let mut removed = data(self.removed);
        removed.sort_unstable();
        let mut removed = removed.into_iter().peekable();
        kept.retain(|kept| removed.next_if_eq(kept).is_none());
        if removed.peek().is_some() {
            return Err(self.missing());
        }
        kept.extend(data(self.added));
        kept.sort_unstable();
        new.weights.extend(kept.iter().map(|data| data.weight));
        new.rows.extend(kept.iter().map(|data| data.row));
        Ok(())
    }

    #[cold]
    fn missing(&self) -> String {
        let what = if self.removed.keys().is_empty() { "" } else { ", or not with this weight or row" };
        format!("an edge to {} is to be removed that is not there{what}", self.target)
    }
}

/// Appends the numbers `old` without `removed` and with `added`, sorted; `None` if a removed number is absent.
#[inline]
fn apply_column(old: &[u64], added: &[u64], removed: &[u64], new: &mut Vec<u64>) -> Option<()> {
    let start = new.len();
    // Without removals, no entry needs to be searched.
    if removed.is_empty() {
        new.extend_from_slice(old);
    } else {
        keep(old, removed, new)?;
    }
    new.extend_from_slice(added);
    new[start..].sort_unstable();
    Some(())
}

/// Appends `old`, sorted, without the sorted `removed`, which is no longer; `None` if a removed number is absent.
fn keep(old: &[u64], removed: &[u64], kept: &mut Vec<u64>) -> Option<()> {
    let start = kept.len();
    kept.extend_from_slice(old);
    kept[start..].sort_unstable();
    let (mut removed, mut end) = (removed, start);
    for place in start..kept.len() {
        match removed.split_first() {
            Some((&first, rest)) if first == kept[place] => removed = rest,
            _ => {
                kept[end] = kept[place];
                end += 1;
            }
        }
    }
    kept.truncate(end);
    removed.is_empty().then_some(())
}

/// Takes the first `len` entries.
#[inline]
fn split<'a>(list: &mut ListEntries<'a>, len: usize) -> ListEntries<'a> {
    let taken;
    (taken, *list) = list.split_at(len);
    taken
}

/// Takes the entries with `target`, which come first.
#[inline]
fn split_equal<'a>(list: &mut ListEntries<'a>, target: VertexId) -> ListEntries<'a> {
    let len = list.targets.iter().take_while(|&&other| other == target).count();
    split(list, len)
}

/// Number of targets before `target`. The cost grows with the logarithm of the result.
#[inline]
fn gallop(targets: &[VertexId], target: VertexId) -> usize {
    let mut step = 1;
    while step <= targets.len() && targets[step - 1] < target {
        step *= 2;
    }
    let start = step / 2;
    start + targets[start..targets.len().min(step)].partition_point(|&other| other < target)
}
