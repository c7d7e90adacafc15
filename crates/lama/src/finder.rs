//! Looks up arcs in out-lists without patching pages.
//!
//! Who asks for a few arcs of nearly every page, as an append does, would pay for pages that nobody reads
//! afterwards. A finder searches the base run's list and then what each level changes in it: adding the levels up
//! first would cost more than the few arcs of a page that are asked for.

use std::ops::Range;

use base::VertexId;

use crate::changes::PageChanges;
use crate::patched::Ground;
use crate::side::Side;
use crate::table::{page_of, place_in_page};
use crate::view::View;

/// Looks up arcs of one vertex after the other, best in ascending order.
#[derive(Debug)]
pub struct Finder<'a> {
    side: &'a Side,
    vertex_bound: usize,
    page: Option<(usize, Ground<'a>)>,
    /// What is applied to the page, one after the other; more than the page's only keep their memory.
    parts: Vec<PageChanges>,
    /// The lists that the first part changes, then those of the next…
    lists: Vec<ChangedPlaces>,
    /// Of each part, those of its lists that come at or after the vertex that was looked at last.
    rests: Vec<Range<usize>>,
    /// The parts that change the list that is looked at, and where.
    changed: Vec<(usize, ChangedPlaces)>,
    /// The vertex that was looked at last, in its page.
    last_local: usize,
    /// The weights of the entries to one neighbour.
    weights: Vec<u64>,
}

/// Where the changes of a list are among all of its page in a part.
#[derive(Clone, Debug)]
struct ChangedPlaces {
    local: usize,
    added: Range<usize>,
    removed: Range<usize>,
}

impl View {
    /// For looking up arcs. Cost: nothing yet.
    pub fn finder(&self) -> Finder<'_> {
        Finder {
            side: self.out_side(),
            vertex_bound: graph::Graph::vertex_bound(self),
            page: None,
            parts: Vec::new(),
            lists: Vec::new(),
            rests: Vec::new(),
            changed: Vec::new(),
            last_local: 0,
            weights: Vec::new(),
        }
    }
}

impl Finder<'_> {
    /// Fetches what a search for an arc reads first to the cache; best soon after the place of the list was fetched.
    pub fn prefetch(&self, vertex: VertexId, neighbour: VertexId) {
        self.side.prefetch_entry(vertex, |len| guess(len, neighbour, self.vertex_bound));
    }

    /// Calls `found` with the index of a wanted neighbour and the bits of a weight (0 without weights) for each entry
    /// of the out-list of `vertex` that leads to one. The wanted ascend, each stands once.
    ///
    /// Cost: a search in the base run's list and in the changes of the list for each neighbour; for the first vertex
    /// of a page, reading its changes.
    ///
    /// # Errors
    /// The page is damaged.
    pub fn find(
        &mut self,
        vertex: VertexId,
        wanted: impl IntoIterator<Item = VertexId>,
        mut found: impl FnMut(usize, u64),
    ) -> base::Result<()> {
        if vertex as usize >= self.vertex_bound {
            return Ok(());
        }
        self.enter(page_of(vertex))?;
        let local = place_in_page(vertex);
        self.seek(local);
        let Self { page: Some((_, ground)), parts, changed, weights, .. } = self else { return Ok(()) };
        let list = ground.list(local);
        let (mut next, end) = (list.start, list.end);
        for (index, neighbour) in wanted.into_iter().enumerate() {
            let near = list.start + guess(list.len(), neighbour, self.vertex_bound);
            next = lower_bound(&ground.targets[..end], next, near, neighbour);
            let first = next;
            next += ground.targets[first..end].iter().take_while(|&&target| target == neighbour).count();
            weights.clear();
            ground.copy_bits(first..next, weights);
            // Without weights, all that counts is how many.
            weights.resize(next - first, 0);
            for (part, ChangedPlaces { added, removed, .. }) in &*changed {
                let part = &parts[*part];
                for weight in entries(part, removed, neighbour) {
                    if let Some(place) = weights.iter().position(|&other| other == weight) {
                        weights.swap_remove(place);
                    }
                }
                weights.extend(entries(part, added, neighbour));
            }
            weights.iter().for_each(|&weight| found(index, weight));
        }
        Ok(())
    }

    fn enter(&mut self, page: usize) -> base::Result<()> {
        if self.page.as_ref().is_some_and(|(entered, _)| *entered == page) {
            return Ok(());
        }
        self.page = None;
        let (ground, num_parts) = self.side.ground_with_parts(page, &mut self.parts)?;
        self.lists.clear();
        self.rests.clear();
        for part in &self.parts[..num_parts] {
            let first = self.lists.len();
            let mut start = 0;
            for list in part.lists() {
                let added = start..start + list.added.len();
                let removed = added.end..added.end + list.removed.len();
                start = removed.end;
                self.lists.push(ChangedPlaces { local: list.local.into(), added, removed });
            }
            self.rests.push(first..self.lists.len());
        }
        self.last_local = 0;
        self.page = Some((page, ground));
        Ok(())
    }

    /// Finds the parts that change a list of the page.
    fn seek(&mut self, local: usize) {
        if local < self.last_local {
            let mut start = 0;
            for rest in &mut self.rests {
                rest.start = std::mem::replace(&mut start, rest.end);
            }
        }
        self.last_local = local;
        self.changed.clear();
        for (part, rest) in self.rests.iter_mut().enumerate() {
            rest.start += self.lists[rest.clone()].iter().take_while(|list| list.local < local).count();
            if let Some(list) = self.lists[rest.clone()].first().filter(|list| list.local == local) {
                self.changed.push((part, list.clone()));
            }
        }
    }
}

/// The weights of the changes that lead to `neighbour`.
fn entries<'a>(
    changes: &'a PageChanges,
    range: &Range<usize>,
    neighbour: VertexId,
) -> impl Iterator<Item = u64> + use<'a> {
    let targets = &changes.targets()[range.clone()];
    let first = targets.partition_point(|&target| target < neighbour);
    let count = targets[first..].iter().take_while(|&&target| target == neighbour).count();
    let first = range.start + first;
    (first..first + count).map(|place| changes.weights().get(place).copied().unwrap_or(0))
}

/// About where `neighbour` is in a list of this length, if neighbours are spread evenly.
#[inline(always)]
fn guess(len: usize, neighbour: VertexId, vertex_bound: usize) -> usize {
    ((len as u64 * u64::from(neighbour)) / (vertex_bound as u64).max(1)) as usize
}

/// The first position from `start` on with at least `target`: steps away from `near` double until it is passed.
fn lower_bound(targets: &[VertexId], start: usize, near: usize, target: VertexId) -> usize {
    let near = near.max(start).min(targets.len());
    let (mut low, mut high, mut step) = (start, targets.len(), 1);
    if targets.get(near).is_some_and(|&found| found < target) {
        low = near + 1;
        while low + step <= high && targets[low + step - 1] < target {
            low += step;
            step *= 2;
        }
        high = high.min(low + step);
    } else {
        high = near;
        while low + step <= high && targets[high - step] >= target {
            high -= step;
            step *= 2;
        }
        low = low.max(high.saturating_sub(step));
    }
    low + targets[low..high].partition_point(|&found| found < target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_bound_is_the_first_place() {
        let targets = [1, 3, 3, 3, 8, 9, 20, 21, 22, 30];
        for start in 0..=targets.len() {
            for target in 0..35 {
                let expected = start + targets[start..].iter().take_while(|&&found| found < target).count();
                for near in 0..targets.len() + 3 {
                    let found = lower_bound(&targets, start, near, target);
                    assert_eq!(found, expected, "{target} from {start} near {near}");
                }
            }
        }
    }
}
