//! The limbo list: nodes that the newest version no longer reaches, until their lines are free.
//!
//! One writer makes all versions, so they form a line. A node born in group *b* and replaced in group *g* is reached
//! by versions *b* to *g* − 1 only. It is free once none of them is pinned. The *youngest* pinned version that
//! reaches the node keeps it. When that version is unpinned, the node passes to the next older one, or is free. A
//! reader that pins a version for long keeps the nodes of that version, and no younger ones.
//!
//! So nodes need no reference counts, and readers free no memory.

use std::collections::{BTreeMap, VecDeque};

use crate::arena::Handle;

/// Minimum number of nodes that [`LimboList::free_some`] examines. A version may have kept many nodes; the limit
/// spreads them over several commits.
const LEAST_STEPS: usize = 2048;

/// Emptied lists are kept to be filled again, up to this number and capacity. A large batch fills megabytes, and the
/// system would otherwise take back their pages and clear new ones.
const MOST_SPARE: usize = 8;
const MOST_SPARE_NODES: usize = 1 << 19;

/// A node that was replaced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retired {
    /// Group in which it was born.
    pub(crate) birth: u64,
    pub(crate) handle: Handle,
    pub(crate) num_lines: u32,
}

/// Nodes that older versions keep.
#[derive(Debug, Default)]
pub(crate) struct LimboList {
    /// Kept nodes, by the youngest pinned version that reaches them.
    kept: BTreeMap<u64, Vec<Retired>>,
    /// Nodes to examine, each list with the youngest version that reaches its nodes. That version was unpinned, or
    /// the nodes were replaced after it.
    due: VecDeque<(u64, Vec<Retired>)>,
    num_kept: usize,
    /// Empty lists with capacity.
    spare: Vec<Vec<Retired>>,
}

impl LimboList {
    /// Retires the nodes that were replaced in the group after version `newest`, the youngest version that reaches
    /// them. Leaves an empty list.
    pub(crate) fn retire(&mut self, newest: u64, retired: &mut Vec<Retired>) {
        // The worker gets a list with capacity back, so that the next group need not allocate.
        let retired = std::mem::replace(retired, self.spare.pop().unwrap_or_default());
        self.num_kept += retired.len();
        self.due.push_back((newest, retired));
    }

    /// Examines the nodes that version `epoch` kept, which is no longer pinned.
    pub(crate) fn release(&mut self, epoch: u64) {
        if let Some(nodes) = self.kept.remove(&epoch) {
            self.due.push_back((epoch, nodes));
        }
    }

    /// Calls `free` with lists of nodes that no version in `pinned` (ascending) reaches. Examines at least `at_least`
    /// nodes, or all.
    pub(crate) fn free_some(&mut self, pinned: &[u64], at_least: usize, mut free: impl FnMut(&[Retired])) {
        let mut num_left = at_least.max(LEAST_STEPS);
        while num_left > 0
            && let Some((youngest, mut rest)) = self.due.pop_front()
        {
            let num_steps = rest.len().min(num_left);
            num_left -= num_steps;
            // Taken from the end, so that the rest of the list is not moved.
            let mut nodes = if num_steps < rest.len() {
                let nodes = rest.split_off(rest.len() - num_steps);
                // Back to the front: the oldest nodes are examined first.
                self.due.push_front((youngest, rest));
                nodes
            } else {
                rest
            };
            // Versions after `youngest` do not reach these nodes, so only pins up to it matter.
            let num_before = pinned.partition_point(|&epoch| epoch <= youngest);
            if let Some(&keeper) = pinned[..num_before].last() {
                let kept = self.kept.entry(keeper).or_default();
                nodes.retain(|node| {
                    // Born after the keeper: no older version reaches the node either.
                    let is_reached = node.birth <= keeper;
                    if is_reached {
                        kept.push(*node);
                    }
                    !is_reached
                });
            }
            self.num_kept -= nodes.len();
            free(&nodes);
            // Larger lists are dropped: one huge batch must not keep its memory for good.
            if self.spare.len() < MOST_SPARE && nodes.capacity() <= MOST_SPARE_NODES {
                nodes.clear();
                self.spare.push(nodes);
            }
        }
    }

    /// Number of nodes in the limbo list.
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

    fn freed(limbo_list: &mut LimboList, pinned: &[u64]) -> Vec<Handle> {
        let mut freed = Vec::new();
        limbo_list.free_some(pinned, 0, |nodes| freed.extend(nodes.iter().map(|node| node.handle)));
        freed
    }

    #[test]
    fn retired_node_is_kept_while_reachable() {
        let mut limbo_list = LimboList::default();
        // Replaced in group 10, while versions 3 and 7 are pinned.
        limbo_list.retire(9, &mut vec![node(1, 1), node(3, 3), node(4, 4), node(7, 7), node(8, 8), node(10, 10)]);
        assert_eq!(freed(&mut limbo_list, &[3, 7]), [8, 10]);
        // Born after version 7 and replaced while it is pinned.
        limbo_list.retire(10, &mut vec![node(9, 9)]);
        assert_eq!(freed(&mut limbo_list, &[3, 7]), [9]);
        limbo_list.release(7);
        assert_eq!(freed(&mut limbo_list, &[3]), [4, 7]);
        limbo_list.release(3);
        assert_eq!(freed(&mut limbo_list, &[]), [1, 3]);
        assert_eq!(limbo_list.num_kept(), 0);
    }

    #[test]
    fn lists_that_were_freed_are_filled_again() {
        let mut limbo_list = LimboList::default();
        let mut retired: Vec<_> = (0..100).map(|i| node(1, i)).collect();
        limbo_list.retire(5, &mut retired);
        assert_eq!((retired.len(), freed(&mut limbo_list, &[]).len()), (0, 100));
        let mut next = vec![node(6, 7)];
        limbo_list.retire(6, &mut next);
        assert_eq!((next.len(), next.capacity() >= 100), (0, true));
        assert_eq!(freed(&mut limbo_list, &[]), [7]);
        limbo_list.retire(5, &mut (0..=MOST_SPARE_NODES as u32).map(|i| node(1, i)).collect());
        limbo_list.free_some(&[], usize::MAX, |_| ());
        assert!(limbo_list.spare.iter().all(|list| list.capacity() <= MOST_SPARE_NODES));
    }

    #[test]
    fn long_lists_are_freed_step_by_step() {
        let mut limbo_list = LimboList::default();
        limbo_list.retire(5, &mut (0..3 * LEAST_STEPS as u32).map(|i| node(1, i)).collect());
        assert_eq!(freed(&mut limbo_list, &[5]).len(), 0);
        for _ in 0..2 {
            assert_eq!(freed(&mut limbo_list, &[5]).len(), 0);
        }
        limbo_list.release(5);
        for i in 0..3 {
            assert_eq!(freed(&mut limbo_list, &[])[0], i * LEAST_STEPS as u32);
        }
        assert_eq!(limbo_list.num_kept(), 0);
    }
}
