//! The check of adjacency lists, before they are written and when they are first read, and the search in them.

use anden_base::VertexId;

/// Rules for the lists of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListRules {
    /// Every target is below this.
    pub vertex_bound: usize,
    /// Whether a target may appear more than once in a list.
    pub multigraph: bool,
}

impl ListRules {
    /// Checks consecutive lists; `ends` gives the end of each, ascending up to the number of targets.
    ///
    /// Cost: two passes that the compiler vectorizes, and a look at every end.
    ///
    /// # Errors
    /// Description of the fault, with the target.
    pub fn check(&self, targets: &[VertexId], ends: impl Iterator<Item = usize>) -> Result<(), String> {
        let largest = targets.iter().copied().max().unwrap_or(0);
        if !targets.is_empty() && largest as usize >= self.vertex_bound {
            return Err(format!("a target below {} expected, {largest} found", self.vertex_bound));
        }
        // A pair may be out of order only across the border of two lists, so both counts must agree.
        let num_disordered = self.num_disordered(targets);
        let mut num_at_borders = 0;
        let mut border = 0;
        for end in ends {
            if end != border && end < targets.len() {
                num_at_borders += usize::from(self.is_disordered(targets[end - 1], targets[end]));
            }
            border = end;
        }
        if num_disordered != num_at_borders {
            let what = if self.multigraph { "ascend" } else { "ascend strictly" };
            return Err(format!("lists that {what} expected, {} pairs out of order", num_disordered - num_at_borders));
        }
        Ok(())
    }

    /// Number of adjacent pairs that no list may contain.
    fn num_disordered(&self, targets: &[VertexId]) -> usize {
        // Counts of a block fit into the 32-bit lanes of the comparison.
        const BLOCK: usize = 4096;
        let next = targets.get(1..).unwrap_or_default();
        let blocks = targets.chunks(BLOCK).zip(next.chunks(BLOCK));
        let count = |(a, b): (&[VertexId], &[VertexId])| -> u32 {
            a.iter().zip(b).map(|(&a, &b)| u32::from(self.is_disordered(a, b))).sum()
        };
        blocks.map(|block| count(block) as usize).sum()
    }

    #[inline(always)]
    fn is_disordered(&self, a: VertexId, b: VertexId) -> bool {
        if self.multigraph { a > b } else { a >= b }
    }
}

/// The first position from `start` on with at least `target`. Gallops away from `near`, with doubling steps.
pub(crate) fn lower_bound(targets: &[VertexId], start: usize, near: usize, target: VertexId) -> usize {
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

    const SIMPLE: ListRules = ListRules { vertex_bound: 10, multigraph: false };
    const MULTI: ListRules = ListRules { vertex_bound: 10, multigraph: true };

    #[test]
    fn lists_may_descend_only_at_borders() {
        let check =
            |rules: ListRules, targets: &[u32], ends: &[usize]| rules.check(targets, ends.iter().copied()).is_ok();
        assert!(check(SIMPLE, &[], &[0, 0]));
        assert!(check(SIMPLE, &[1, 5, 0, 9, 9], &[0, 2, 2, 4, 5, 5]));
        assert!(!check(SIMPLE, &[1, 5, 0, 9, 9], &[0, 2, 5]));
        assert!(check(MULTI, &[1, 5, 0, 9, 9], &[0, 2, 5]));
        assert!(!check(MULTI, &[1, 5, 0, 9, 9], &[3, 5]));
        assert!(!check(MULTI, &[10], &[1]));
        assert!(!check(SIMPLE, &[2, 1], &[2, 2]));
        assert!(!check(SIMPLE, &[3, 2, 1], &[1, 1, 1, 3]));
    }

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
