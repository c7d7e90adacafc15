//! Applies changes to a list.

use base::VertexId;
use base::simd::num_below;

use super::ChangedList;

/// A list and its weights, or no weights in a graph that has none.
type List<'a> = (&'a [VertexId], &'a [u64]);

/// Appends to `targets` and `weights` the list `old` with `changes` applied: ascending targets, and what changed
/// among equal ones is ordered by the bits of the weights. What is between the changes is copied as it is.
///
/// Cost: a search for each changed target whose steps grow with the distance from the one before, and a copy.
///
/// # Errors
/// What does not fit: something to be removed is not there, or something to be added is, but for a multigraph.
pub(crate) fn apply(
    old: (&[VertexId], &[u64]),
    changes: &ChangedList<'_>,
    multigraph: bool,
    targets: &mut Vec<VertexId>,
    weights: &mut Vec<u64>,
) -> Result<(), String> {
    let has_weights = !(changes.added_weights.is_empty() && changes.removed_weights.is_empty());
    let has_changes = !(changes.added.is_empty() && changes.removed.is_empty());
    if has_changes && old.1.len() != if has_weights { old.0.len() } else { 0 } {
        return Err(format!("a list of {} targets with {} weights", old.0.len(), old.1.len()));
    }
    targets.reserve(old.0.len() + changes.added.len());
    let is_mixed = changes.added.len() * MIXED >= old.0.len();
    if is_mixed && !has_weights && !multigraph && changes.removed.is_empty() {
        return merge(old.0, changes.added, targets);
    }
    if has_weights {
        weights.reserve(old.0.len() + changes.added.len());
    }
    let mut added: List<'_> = (changes.added, changes.added_weights);
    let mut removed: List<'_> = (changes.removed, changes.removed_weights);
    let mut rest: List<'_> = old;
    while let Some(&target) = [added.0.first(), removed.0.first()].into_iter().flatten().min() {
        let num_before = gallop(rest.0, target);
        let unchanged = split(&mut rest, num_before);
        targets.extend_from_slice(unchanged.0);
        weights.extend_from_slice(unchanged.1);
        let group = Group {
            target,
            old: split_equal(&mut rest, target),
            added: split_equal(&mut added, target),
            removed: split_equal(&mut removed, target),
        };
        group.apply(multigraph, targets, weights)?;
    }
    targets.extend_from_slice(rest.0);
    weights.extend_from_slice(rest.1);
    Ok(())
}

/// Where at least one in so many entries is new, looking at each is faster than copying what is between.
const MIXED: usize = 8;

/// So many entries are compared at once.
const LANES: usize = 16;

/// Appends the targets of two ascending lists that share none.
fn merge(old: &[VertexId], added: &[VertexId], targets: &mut Vec<VertexId>) -> Result<(), String> {
    let start = targets.len();
    targets.resize(start + old.len() + added.len(), 0);
    let places = &mut targets[start..];
    let (mut o, mut a) = (0, 0);
    // An entry of both, or two equal ones to be added.
    let mut is_twice = added.windows(2).fold(false, |is_twice, pair| is_twice | (pair[0] == pair[1]));
    while let (Some(chunk), Some(&new)) = (old[o..].first_chunk::<LANES>(), added.get(a)) {
        // All are copied, and those that do not come first are overwritten: how many do shows without a branch.
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
    // What comes next is found without a branch, for nobody could guess it.
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
    let twice = if is_twice { targets[start..].windows(2).find(|pair| pair[0] == pair[1]) } else { None };
    match twice {
        Some(pair) => Err(format!("an edge to {} is to be added that is there already", pair[0])),
        None => Ok(()),
    }
}

/// The entries of a list with one target, and their changes.
struct Group<'a> {
    target: VertexId,
    old: List<'a>,
    added: List<'a>,
    removed: List<'a>,
}

impl Group<'_> {
    #[inline]
    fn apply(&self, multigraph: bool, targets: &mut Vec<VertexId>, weights: &mut Vec<u64>) -> Result<(), String> {
        let Self { target, old, added, removed } = self;
        let Some(num_kept) = old.0.len().checked_sub(removed.0.len()) else {
            return Err(self.missing());
        };
        let num_now = num_kept + added.0.len();
        if num_now > 1 && !multigraph {
            return Err(format!("an edge to {target} is to be added that is there already"));
        }
        targets.extend(std::iter::repeat_n(*target, num_now));
        if old.1.is_empty() && added.1.is_empty() {
            return Ok(());
        }
        let start = weights.len();
        if removed.1.is_empty() {
            weights.extend_from_slice(old.1);
        } else {
            keep_weights(old.1, removed.1, weights).ok_or_else(|| self.missing())?;
        }
        weights.extend_from_slice(added.1);
        weights[start..].sort_unstable();
        Ok(())
    }

    #[cold]
    fn missing(&self) -> String {
        let what = if self.removed.1.is_empty() { "" } else { ", or not with this weight" };
        format!("an edge to {} is to be removed that is not there{what}", self.target)
    }
}

/// Appends `old` without `removed`, which is sorted and of which there are no more; `None` where something of it is
/// not there.
fn keep_weights(old: &[u64], removed: &[u64], kept: &mut Vec<u64>) -> Option<()> {
    let start = kept.len();
    kept.extend_from_slice(old);
    kept[start..].sort_unstable();
    let (mut removed, mut end) = (removed, start);
    for place in start..kept.len() {
        match removed.split_first() {
            Some((&weight, rest)) if weight == kept[place] => removed = rest,
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
fn split<'a>(list: &mut List<'a>, len: usize) -> List<'a> {
    let (targets, rest) = list.0.split_at(len);
    let (weights, rest_weights) = list.1.split_at(len.min(list.1.len()));
    *list = (rest, rest_weights);
    (targets, weights)
}

/// Takes the entries with `target`, which come first.
#[inline]
fn split_equal<'a>(list: &mut List<'a>, target: VertexId) -> List<'a> {
    let len = list.0.iter().take_while(|&&other| other == target).count();
    split(list, len)
}

/// The number of targets that come before `target`.
#[inline]
fn gallop(targets: &[VertexId], target: VertexId) -> usize {
    let mut step = 1;
    while step <= targets.len() && targets[step - 1] < target {
        step *= 2;
    }
    let start = step / 2;
    start + targets[start..targets.len().min(step)].partition_point(|&other| other < target)
}
