//! The ids of a view in the order of their keys.

use anden_base::VertexId;
use anden_graph::Graph;

use crate::Result;
use crate::options::KeyScheme;
use crate::view::SnapshotView;

impl SnapshotView {
    /// All ids in ascending order of their keys, those of removed vertices included; `None`: ids ascend with keys.
    ///
    /// *Cost*: if ids ascend with keys, two keys for each part of the dictionary and every key in memory. Otherwise all
    /// ids, and all keys if there are several parts.
    ///
    /// # Errors
    /// The dictionary is damaged.
    pub fn ids_by_key(&self) -> Result<Option<Vec<VertexId>>> {
        if self.options().keys == KeyScheme::Dense {
            return Ok(None);
        }
        let bound = self.vertex_bound() as VertexId;
        let num_stored = self.dictionary().len().min(bound.into()) as VertexId;
        let keys = (num_stored..bound).map(|id| self.key_ref(id)).collect::<Result<Vec<_>>>()?;
        if self.dictionary().ascends_below(num_stored)? && keys.is_sorted() {
            let last = num_stored.checked_sub(1).map(|last| self.key_ref(last)).transpose()?;
            if last.zip(keys.first().copied()).is_none_or(|(last, first)| last < first) {
                return Ok(None);
            }
        }
        let mut merged: Vec<VertexId> = (num_stored..bound).collect();
        merged.sort_unstable_by_key(|&id| keys[(id - num_stored) as usize]);
        // The first part is usually the largest, so it is merged last and only once.
        for part in self.dictionary().ids_by_part(num_stored)?.iter().rev() {
            merged = self.merge_by_key(part, &merged)?;
        }
        Ok(Some(merged))
    }

    /// Merges two lists of ids in the order of their keys.
    fn merge_by_key<'a>(&self, mut first: &'a [VertexId], mut second: &'a [VertexId]) -> Result<Vec<VertexId>> {
        let mut merged = Vec::with_capacity(first.len() + second.len());
        let head = |ids: &[VertexId]| ids.first().map(|&id| self.key_ref(id)).transpose();
        let (mut first_key, mut second_key) = (head(first)?, head(second)?);
        while let (Some(a), Some(b)) = (first_key, second_key) {
            let (list, key) = if a < b { (&mut first, &mut first_key) } else { (&mut second, &mut second_key) };
            merged.push(list[0]);
            *list = &list[1..];
            *key = head(list)?;
        }
        merged.extend(first);
        merged.extend(second);
        Ok(merged)
    }
}
