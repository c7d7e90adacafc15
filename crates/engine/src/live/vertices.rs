//! Vertices that are removed and added again in the memtable.
//!
//! Few vertices are. So one table serves all versions: for each vertex, the epochs at which it became live, or was
//! removed.

use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::VertexId;
use foldhash::HashMap;
use parking_lot::RwLock;

/// Bytes of a change in its list, which may have twice the capacity it uses; the first change of a vertex takes more.
const CHANGE_BYTES: u64 = 32;

/// The states of vertices, by epoch.
#[derive(Debug)]
pub(crate) struct VertexHistory {
    /// Vertices from here on are new: they are live unless a change says otherwise.
    first_new: usize,
    changes: RwLock<HashMap<VertexId, Vec<(u64, bool)>>>,
    /// Number of changes; 0 lets readers of most graphs skip the lock.
    num_changes: AtomicU64,
}

impl VertexHistory {
    /// No changes; the vertices below `first_new` are the snapshot's.
    pub(crate) fn new(first_new: usize) -> Self {
        Self { first_new, changes: RwLock::default(), num_changes: AtomicU64::new(0) }
    }

    /// From `epoch` on, `vertex` is live, or removed. Epochs never descend from call to call.
    pub(crate) fn set(&self, vertex: VertexId, epoch: u64, is_live: bool) {
        let mut changes = self.changes.write();
        let changes = changes.entry(vertex).or_default();
        match changes.last_mut().filter(|(last, _)| *last == epoch) {
            // No version shows an earlier change of one epoch, so the last one replaces it.
            Some(last) => last.1 = is_live,
            None => {
                changes.push((epoch, is_live));
                self.num_changes.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// Approximate bytes that the changes take.
    pub(crate) fn num_bytes(&self) -> u64 {
        CHANGE_BYTES * self.num_changes.load(Ordering::Acquire)
    }

    /// Whether `vertex` is live at `epoch`; `None` if the snapshot decides.
    pub(crate) fn is_live(&self, vertex: VertexId, epoch: u64) -> Option<bool> {
        let new = (vertex as usize >= self.first_new).then_some(true);
        if self.num_changes.load(Ordering::Acquire) == 0 {
            return new;
        }
        let changes = self.changes.read();
        // Epochs ascend, so the last change up to this epoch decides.
        let known = changes.get(&vertex).and_then(|changes| changes.iter().rfind(|(from, _)| *from <= epoch));
        known.map(|&(_, is_live)| is_live).or(new)
    }

    /// The vertices with a change, ascending, and whether they are live at `epoch`.
    pub(crate) fn states(&self, epoch: u64) -> Vec<(VertexId, bool)> {
        let changes = self.changes.read();
        let state = |(&vertex, changes): (&VertexId, &Vec<(u64, bool)>)| {
            changes.iter().rfind(|(from, _)| *from <= epoch).map(|&(_, is_live)| (vertex, is_live))
        };
        let mut states: Vec<_> = changes.iter().filter_map(state).collect();
        states.sort_unstable();
        states
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_epoch_sees_its_own() {
        let history = VertexHistory::new(10);
        assert_eq!((history.is_live(9, 5), history.is_live(10, 5)), (None, Some(true)));
        history.set(9, 3, false);
        history.set(9, 5, true);
        history.set(9, 5, false);
        history.set(9, 8, true);
        history.set(12, 6, false);
        let seen = |vertex| [2, 3, 4, 5, 7, 8, 9].map(|epoch| history.is_live(vertex, epoch));
        assert_eq!(seen(9), [None, Some(false), Some(false), Some(false), Some(false), Some(true), Some(true)]);
        assert_eq!(seen(12)[3..5], [Some(true), Some(false)]);
        assert_eq!(history.states(7), [(9, false), (12, false)]);
        assert_eq!(history.states(4), [(9, false)]);
    }
}
