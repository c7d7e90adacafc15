//! The check of adjacency lists, made before they are written and when they are first read.

use base::VertexId;

/// Which lists a graph may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListRules {
    /// Every target is below this.
    pub vertex_bound: usize,
    /// Whether a target may stand twice in a list.
    pub multigraph: bool,
}

impl ListRules {
    /// Checks lists that lie one after the other; `ends` gives the end of each, ascending up to the number of targets.
    ///
    /// Cost: two passes that the compiler turns into SIMD, and a look at every end.
    ///
    /// # Errors
    /// What is wrong, and with which target.
    pub fn check(&self, targets: &[VertexId], ends: impl Iterator<Item = usize>) -> Result<(), String> {
        let largest = targets.iter().copied().max().unwrap_or(0);
        if !targets.is_empty() && largest as usize >= self.vertex_bound {
            return Err(format!("a target below {} expected, {largest} found", self.vertex_bound));
        }
        // A pair out of order is fine where one list ends and the next begins: there must be no others.
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

    /// The neighbouring pairs that no list may hold.
    fn num_disordered(&self, targets: &[VertexId]) -> usize {
        // Blocks, so that a block's count fits in the 32-bit lanes that compare the ids.
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
}
