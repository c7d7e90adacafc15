//! Changes in memory, laid over a snapshot while reading.

mod smallest_tombstones;

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::{ControlFlow, Range};

use anden_base::VertexId;
use anden_graph::{Direction, VertexMask};

use crate::key::{Key, KeyRef};
use crate::property::RowOverlay;
use crate::vertex_properties::PropertyOverlay;

pub(crate) use smallest_tombstones::SmallestTombstones;

/// Number of arcs added to and removed from one list, relative to the snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListChanges {
    /// Removed entries: those of the snapshot's list, and added entries that were removed again.
    pub removed: usize,
    /// Added entries, including those that were removed again.
    pub added: usize,
}

/// Dirty lists of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirtyPageLists {
    /// The lists whose changes are wanted.
    pub wanted: VertexMask,
    /// Those that may have tombstones; the others have none.
    pub tombstoned: VertexMask,
    /// Those of which only additions are wanted: they have no tombstones, or no list below.
    pub gaining: VertexMask,
}

/// A part of the changes of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangedPart<'a> {
    /// All tombstones of a list, ascending; may name entries that the snapshot's list does not have.
    Removed(&'a [VertexId]),
    /// A fragment of the added targets, ascending, with the bytes beside them as in [`Added`].
    Added(&'a [VertexId], &'a [u8]),
}

/// Callback for changes of lists, part by part.
pub type ChangedPartBody<'a> = dyn FnMut(VertexId, ChangedPart<'_>) -> ControlFlow<()> + 'a;

/// Callback for a fragment of a list's additions: [`Added`].
pub type AddedFragment<'a> = dyn FnMut(&[VertexId], &[u8]) -> ControlFlow<()> + 'a;

/// A fragment of a list's additions: targets, and the bytes beside each. The bytes are its weight or its row; in a
/// graph with both, the row and then the bits of the weight, eight bytes each.
pub type Added<'a> = (&'a [VertexId], &'a [u8]);

/// One version of the changes over a snapshot; a version never changes.
///
/// Changes are effective: a removed arc is in the snapshot's list. An added arc is not, unless it is also removed, as
/// for a changed weight.
pub trait Overlay: Debug + Send + Sync {
    /// The vertex bound, at least that of the snapshot.
    fn vertex_bound(&self) -> usize;

    /// Number of live vertices.
    fn num_vertices(&self) -> usize;

    /// Number of edges.
    fn num_edges(&self) -> u64;

    /// Number of entries of all out-lists.
    fn num_arcs(&self) -> u64;

    /// Whether `vertex` is live; `None` if that is as in the snapshot.
    fn is_live(&self, vertex: VertexId) -> Option<bool>;

    /// The vertex with a key that the snapshot lacks.
    fn vertex(&self, key: &Key) -> Option<VertexId>;

    /// The key of a vertex that the snapshot lacks.
    fn key(&self, vertex: VertexId) -> Option<KeyRef<'_>>;

    /// Vertex properties that differ from the snapshot; `None` if none do.
    fn properties(&self) -> Option<&dyn PropertyOverlay> {
        None
    }

    /// The rows of edges that the snapshot lacks; `None` if edges have no properties.
    fn rows(&self) -> Option<&dyn RowOverlay> {
        None
    }

    /// Number of changes of a list. In an undirected graph, only out-lists are asked for.
    fn num_changes(&self, direction: Direction, vertex: VertexId) -> ListChanges;

    /// The tombstones of a list, ascending; may name entries that the snapshot's list does not have.
    fn removed(&self, direction: Direction, vertex: VertexId) -> Cow<'_, [VertexId]>;

    /// Calls `body` with the additions of a list, fragment by fragment, ascending, with the bytes beside them as in
    /// [`Added`].
    fn for_each_added(&self, direction: Direction, vertex: VertexId, body: &mut AddedFragment<'_>) -> ControlFlow<()>;

    /// The additions of a list, perhaps empty, if they are in one fragment.
    fn added(&self, _direction: Direction, _vertex: VertexId) -> Option<Added<'_>> {
        None
    }

    /// The tombstones of a list, and its additions, perhaps empty, if they are in one fragment. One call reads most
    /// lists with tombstones.
    fn changes(&self, direction: Direction, vertex: VertexId) -> (Cow<'_, [VertexId]>, Option<Added<'_>>) {
        (self.removed(direction, vertex), None)
    }

    /// Calls `body` for one list after the other, in any order: with all tombstones, if they are wanted, and then with
    /// the additions. A break ends the list, because a reader that finds its target in the snapshot's part needs no
    /// more.
    fn for_each_change(&self, direction: Direction, lists: &DirtyPageLists, body: &mut ChangedPartBody<'_>) {
        for vertex in lists.wanted.vertices() {
            if lists.gaining.contains(vertex)
                || body(vertex, ChangedPart::Removed(&self.removed(direction, vertex))).is_continue()
            {
                let mut give = |targets: &[VertexId], bytes: &[u8]| body(vertex, ChangedPart::Added(targets, bytes));
                // A break ends this list only.
                let _ = self.for_each_added(direction, vertex, &mut give);
            }
        }
    }

    /// First prefetch stage: the changes of a list will be looked up.
    fn prefetch(&self, _direction: Direction, _vertex: VertexId) {}

    /// Second prefetch stage: fetches the block that the first stage's entry leads to. `has_tombstones`: the list may
    /// have tombstones.
    fn prefetch_place(&self, _direction: Direction, _vertex: VertexId, _has_tombstones: bool) {}

    /// Third prefetch stage: fetches the changes of a list, after their block.
    fn prefetch_list(&self, _direction: Direction, _vertex: VertexId, _has_tombstones: bool) {}
}

/// Calls `body` with the ranges of an ascending list that remain without the entries of `removed`.
///
/// An empty list gives one empty range.
#[inline]
pub fn without(
    targets: &[VertexId],
    removed: &[VertexId],
    mut body: impl FnMut(Range<usize>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    /// Length of the first range; each further one is twice as long. A reader that soon finds its target spares the
    /// search for tombstones, and the search then stays within lines that are read anyway.
    const HEAD: usize = 16;
    let mut start = 0;
    for &gone in removed {
        let (mut len, mut limit) = (HEAD, targets.len());
        while let Some(&last) = targets.get(start + len - 1) {
            if last >= gone {
                limit = start + len;
                break;
            }
            body(start..start + len)?;
            (start, len) = (start + len, 2 * len);
        }
        let end = start + targets[start..limit].partition_point(|&target| target < gone);
        // In a multigraph, a tombstone removes all entries of its target.
        let next = end + targets[end..].iter().take_while(|&&target| target == gone).count();
        // A tombstone may name an entry that the list does not have.
        if next > end {
            if end > start {
                body(start..end)?;
            }
            start = next;
        }
    }
    if start < targets.len() || targets.is_empty() { body(start..targets.len()) } else { ControlFlow::Continue(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_entries_is_what_is_between_them() {
        let left = |targets: &[VertexId], removed: &[VertexId]| {
            let mut left = Vec::new();
            let flow = without(targets, removed, |range| {
                left.push(targets[range].to_vec());
                ControlFlow::Continue(())
            });
            assert!(flow.is_continue());
            left
        };
        assert_eq!(left(&[2, 4, 6], &[]), [vec![2, 4, 6]]);
        assert_eq!(left(&[2, 4, 6], &[1, 4, 5, 7]), [vec![2], vec![6]]);
        assert_eq!(left(&[2, 4, 4, 6, 8], &[2, 4]), [vec![6, 8]]);
        assert_eq!(left(&[2, 4, 6], &[6]), [vec![2, 4]]);
        assert!(left(&[2, 4], &[2, 4]).is_empty());
        let long: Vec<VertexId> = (0..40).collect();
        for gone in 0..40 {
            let rest: Vec<VertexId> = (0..40).filter(|&target| target != gone).collect();
            assert_eq!(left(&long, &[gone]).concat(), rest, "without {gone}");
        }
        assert_eq!(left(&long[..16], &[20]), [long[..16].to_vec()]);
    }
}
