//! Sizes of pages, without reading their lists.

use super::AdjacencyView;
use crate::patched::{CHANGE_BYTES, FRAGMENTED_BYTES};

impl AdjacencyView {
    /// For each page, the number of its entries in the base, and the number of arcs that deltas add or remove.
    ///
    /// Cost: reads the index of each delta; no list.
    ///
    /// # Errors
    /// The index of a delta is damaged.
    pub fn most_entries(&self) -> anden_base::Result<(Vec<u64>, Vec<u64>)> {
        let spec = &self.shared.spec;
        let stored = (0..self.num_pages()).map(|page| self.base_targets(page).len() as u64).collect();
        let mut changed = vec![0; self.num_pages()];
        for (delta, _) in &spec.steps {
            for (page, num_arcs) in delta.page_arcs(spec.direction)? {
                if let Some(changed) = changed.get_mut(page as usize) {
                    *changed += num_arcs;
                }
            }
        }
        Ok((stored, changed))
    }

    /// Most bytes that changed pages take if there is no memory to patch them as a whole.
    ///
    /// # Errors
    /// As [`most_entries`](Self::most_entries).
    pub fn least_patch_bytes(&self) -> anden_base::Result<u64> {
        let (_, changed) = self.most_entries()?;
        let bytes = |&num_arcs: &u64| FRAGMENTED_BYTES + CHANGE_BYTES * num_arcs;
        Ok(changed.iter().filter(|&&num_arcs| num_arcs > 0).map(bytes).sum())
    }
}
