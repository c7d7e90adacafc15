//! How large pages are, without a look at their lists.

use super::Side;
use crate::patched::{CHANGE_BYTES, PIECES_BYTES};

impl Side {
    /// For each page, its entries in the base run, and the arcs that levels add or remove.
    ///
    /// Cost: a look at the indexes of all levels; no list is read.
    ///
    /// # Errors
    /// The index of a level is damaged.
    pub fn most_entries(&self) -> base::Result<(Vec<u64>, Vec<u64>)> {
        let recipe = &self.shared.recipe;
        let stored = (0..self.num_pages()).map(|page| self.base_targets(page).len() as u64).collect();
        let mut changed = vec![0; self.num_pages()];
        for (level, _) in &recipe.steps {
            for (page, num_arcs) in level.page_arcs(recipe.side)? {
                if let Some(changed) = changed.get_mut(page as usize) {
                    *changed += num_arcs;
                }
            }
        }
        Ok((stored, changed))
    }

    /// The bytes that the pages which levels change take at most where there is no memory to write them anew.
    ///
    /// # Errors
    /// As [`most_entries`](Self::most_entries).
    pub fn least_patch_bytes(&self) -> base::Result<u64> {
        let (_, changed) = self.most_entries()?;
        let bytes = |&num_arcs: &u64| PIECES_BYTES + CHANGE_BYTES * num_arcs;
        Ok(changed.iter().filter(|&&num_arcs| num_arcs > 0).map(bytes).sum())
    }
}
