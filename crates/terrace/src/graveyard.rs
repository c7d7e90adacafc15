//! Nodes that the newest version does not lead to any more, and when their lines are free.
//!
//! There is one writer, so versions are a line: a node that was born in group *b* and replaced in group
//! *g* is reached by the versions *b* to *g* − 1 and by no other. It is free once none of them is pinned.
//! A node is therefore kept by the *youngest* pinned version that reaches it; when that version goes, it
//! passes to the next older one, or is free. A reader that holds on to a version for long so keeps what
//! its version leads to, and nothing that was born after.
//!
//! Nodes need no counts of references for this, and readers free nothing.

use std::collections::{BTreeMap, VecDeque};

use crate::arena::Handle;

/// What one [`Graveyard::free_some`] looks at, at least: a version that goes may have kept many nodes,
/// and the commit that notices it shall not pay for all.
const LEAST_STEPS: usize = 2048;

/// Of lists that were freed, so many are kept to be filled again, and none with room for more than so many nodes: a
/// large batch fills megabytes, whose pages the system would take back and give anew.
const MOST_SPARE: usize = 8;
const MOST_SPARE_NODES: usize = 1 << 19;

/// A node that was replaced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retired {
    /// The group it was born in.
    pub(crate) birth: u64,
    pub(crate) handle: Handle,
    pub(crate) num_lines: u32,
}

/// The nodes that older versions keep.
#[derive(Debug, Default)]
pub(crate) struct Graveyard {
    /// By the youngest pinned version that reaches them.
    kept: BTreeMap<u64, Vec<Retired>>,
    /// What was kept by a version that went, or was replaced in the group that followed it.
    due: VecDeque<(u64, Vec<Retired>)>,
    num_kept: usize,
    /// Empty lists that have room.
    spare: Vec<Vec<Retired>>,
}

impl Graveyard {
    /// Takes the nodes that were replaced in the group after version `newest`, which alone of the
    /// versions that reach them is the youngest; leaves an empty list.
    pub(crate) fn bury(&mut self, newest: u64, retired: &mut Vec<Retired>) {
        let retired = std::mem::replace(retired, self.spare.pop().unwrap_or_default());
        self.num_kept += retired.len();
        self.due.push_back((newest, retired));
    }

    /// Version `epoch` is not pinned any more.
    pub(crate) fn release(&mut self, epoch: u64) {
        if let Some(nodes) = self.kept.remove(&epoch) {
            self.due.push_back((epoch, nodes));
        }
    }

    /// Calls `free` with lists of nodes that no version in `pinned` (ascending) reaches, as far as they
    /// are found in `at_least` steps (and some more).
    pub(crate) fn free_some(&mut self, pinned: &[u64], at_least: usize, mut free: impl FnMut(&[Retired])) {
        let mut num_left = at_least.max(LEAST_STEPS);
        while num_left > 0
            && let Some((youngest, mut rest)) = self.due.pop_front()
        {
            let num_steps = rest.len().min(num_left);
            num_left -= num_steps;
            // From the end: what is left stays where it is, however much that is.
            let mut nodes = if num_steps < rest.len() {
                let nodes = rest.split_off(rest.len() - num_steps);
                self.due.push_front((youngest, rest));
                nodes
            } else {
                rest
            };
            let num_before = pinned.partition_point(|&epoch| epoch <= youngest);
            if let Some(&keeper) = pinned[..num_before].last() {
                let kept = self.kept.entry(keeper).or_default();
                nodes.retain(|node| {
                    let is_reached = node.birth <= keeper;
                    if is_reached {
                        kept.push(*node);
                    }
                    !is_reached
                });
            }
            self.num_kept -= nodes.len();
            free(&nodes);
            if self.spare.len() < MOST_SPARE && nodes.capacity() <= MOST_SPARE_NODES {
                nodes.clear();
                self.spare.push(nodes);
            }
        }
    }

    /// The nodes that are not free yet.
    pub(crate) fn num_kept(&self) -> usize {
        self.num_kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(birth: u64, handle: Handle) -> Retired {
        Retired { birth, handle, num_lines: 1 }
    }

    fn freed(graveyard: &mut Graveyard, pinned: &[u64]) -> Vec<Handle> {
        let mut freed = Vec::new();
        graveyard.free_some(pinned, 0, |nodes| freed.extend(nodes.iter().map(|node| node.handle)));
        freed
    }

    #[test]
    fn a_node_is_kept_by_the_versions_that_reach_it() {
        let mut graveyard = Graveyard::default();
        // Replaced in group 10, while versions 3 and 7 are pinned.
        graveyard.bury(9, &mut vec![node(1, 1), node(3, 3), node(4, 4), node(7, 7), node(8, 8), node(10, 10)]);
        assert_eq!(freed(&mut graveyard, &[3, 7]), [8, 10]);
        // Born after version 7, and replaced while it is pinned.
        graveyard.bury(10, &mut vec![node(9, 9)]);
        assert_eq!(freed(&mut graveyard, &[3, 7]), [9]);
        graveyard.release(7);
        assert_eq!(freed(&mut graveyard, &[3]), [4, 7]);
        graveyard.release(3);
        assert_eq!(freed(&mut graveyard, &[]), [1, 3]);
        assert_eq!(graveyard.num_kept(), 0);
    }

    #[test]
    fn lists_that_were_freed_are_filled_again() {
        let mut graveyard = Graveyard::default();
        let mut retired: Vec<_> = (0..100).map(|i| node(1, i)).collect();
        graveyard.bury(5, &mut retired);
        assert_eq!((retired.len(), freed(&mut graveyard, &[]).len()), (0, 100));
        let mut next = vec![node(6, 7)];
        graveyard.bury(6, &mut next);
        assert_eq!((next.len(), next.capacity() >= 100), (0, true));
        assert_eq!(freed(&mut graveyard, &[]), [7]);
        graveyard.bury(5, &mut (0..=MOST_SPARE_NODES as u32).map(|i| node(1, i)).collect());
        graveyard.free_some(&[], usize::MAX, |_| ());
        assert!(graveyard.spare.iter().all(|list| list.capacity() <= MOST_SPARE_NODES));
    }

    #[test]
    fn long_lists_are_freed_step_by_step() {
        let mut graveyard = Graveyard::default();
        graveyard.bury(5, &mut (0..3 * LEAST_STEPS as u32).map(|i| node(1, i)).collect());
        assert_eq!(freed(&mut graveyard, &[5]).len(), 0);
        for _ in 0..2 {
            assert_eq!(freed(&mut graveyard, &[5]).len(), 0);
        }
        graveyard.release(5);
        for i in 0..3 {
            assert_eq!(freed(&mut graveyard, &[])[0], i * LEAST_STEPS as u32);
        }
        assert_eq!(graveyard.num_kept(), 0);
    }
}
