//! Looks up arcs in out-lists without patching pages.
//!
//! Who asks for a few arcs of nearly every page, as an append does, would pay for pages that nobody reads
//! afterwards. A finder composes what levels change on a page, and holds that against the base run's lists.

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
    changes: PageChanges,
    /// Where the changes of each list of the page are among all of the page.
    lists: Vec<(usize, Changed)>,
    /// The weights of the entries to one neighbour.
    weights: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Changed {
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
            changes: PageChanges::default(),
            lists: Vec::new(),
            weights: Vec::new(),
        }
    }
}

impl Finder<'_> {
    /// Calls `found` with the index of a wanted neighbour and the bits of a weight (0 without weights) for each entry
    /// of the out-list of `vertex` that leads to one. The wanted ascend, each stands once.
    ///
    /// Cost: a search in the base run's list and in the changes of the list for each neighbour; for the first vertex
    /// of a page, composing its changes.
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
        let Self { page: Some((_, ground)), changes, lists, weights, .. } = self else { return Ok(()) };
        let local = place_in_page(vertex);
        let list = ground.list(local);
        let changed = lists.binary_search_by_key(&local, |list| list.0).ok().map(|index| &lists[index].1);
        let (mut next, end) = (list.start, list.end);
        for (index, neighbour) in wanted.into_iter().enumerate() {
            next = lower_bound(&ground.targets[..end], next, neighbour);
            let first = next;
            next += ground.targets[first..end].iter().take_while(|&&target| target == neighbour).count();
            weights.clear();
            ground.copy_bits(first..next, weights);
            // Without weights, all that counts is how many.
            weights.resize(next - first, 0);
            if let Some(Changed { added, removed }) = changed {
                for weight in entries(changes, removed, neighbour) {
                    if let Some(place) = weights.iter().position(|&other| other == weight) {
                        weights.swap_remove(place);
                    }
                }
                weights.extend(entries(changes, added, neighbour));
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
        self.lists.clear();
        let ground = self.side.ground_with(page, &mut self.changes)?;
        let mut start = 0;
        for list in self.changes.lists() {
            let added = start..start + list.added.len();
            let removed = added.end..added.end + list.removed.len();
            start = removed.end;
            self.lists.push((list.local.into(), Changed { added, removed }));
        }
        self.page = Some((page, ground));
        Ok(())
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

/// The first position from `start` on with at least `target`: steps double until it is passed.
fn lower_bound(targets: &[VertexId], start: usize, target: VertexId) -> usize {
    let (mut low, mut step) = (start, 1);
    while low + step <= targets.len() && targets[low + step - 1] < target {
        low += step;
        step *= 2;
    }
    let high = targets.len().min(low + step);
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
                assert_eq!(lower_bound(&targets, start, target), expected, "{target} from {start}");
            }
        }
    }
}
