//! What is laid over a snapshot: changes in memory that no level holds yet.
//!
//! An [`Underlay`] is a snapshot that such changes are laid over, version after version. It knows which
//! vertices any of them touched, so that the lists of all others are read as from the snapshot alone.

mod first_cuts;

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::VertexId;
use base::bitmap::{AtomicBitmap, ones};
use graph::{Direction, WantedLists};

use crate::finder::Finder;
use crate::key::{Key, KeyRef};
use crate::property::{PropertyOverlay, RowOverlay};
use crate::side::{Side, SideOverlay};
use crate::view::View;

pub(crate) use first_cuts::FirstCuts;

/// How much of a list changes; nothing of a list that stays as it is, unless what was added to it was removed again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListChanges {
    /// Entries that go: those of the snapshot's list, and of what was added those that were removed again.
    pub removed: usize,
    /// Entries that come, these included.
    pub added: usize,
}

/// Lists of a group that may differ from the snapshot's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TouchedLists {
    /// Those whose changes are wanted.
    pub wanted: WantedLists,
    /// Those of them that may lose entries; the others lose none.
    pub cut: WantedLists,
    /// Those of them of which only what they gain is wanted: they lose nothing, or nothing of them is below.
    pub gaining: WantedLists,
}

/// A part of what changes in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangedPart<'a> {
    /// All that it loses, ascending; may name entries that the snapshot's list does not have.
    Removed(&'a [VertexId]),
    /// A piece of what it gains, ascending, with the bytes of what stands beside it.
    Added(&'a [VertexId], &'a [u8]),
}

/// Takes what changes in lists, part by part.
pub type ChangedPartBody<'a> = dyn FnMut(VertexId, ChangedPart<'_>) -> ControlFlow<()> + 'a;

/// Takes a piece of what a list gains: [`Added`].
pub type AddedPiece<'a> = dyn FnMut(&[VertexId], &[u8]) -> ControlFlow<()> + 'a;

/// A piece of what a list gains: targets, and the bytes of what stands beside each. That is its weight or the number of
/// its row; in a graph with both, the row and then the bits of the weight, eight bytes each.
pub type Added<'a> = (&'a [VertexId], &'a [u8]);

/// One version of the changes that are laid over a snapshot; it never changes itself.
///
/// They are effective: what is removed is in the snapshot's list, and what is added is not, unless it is
/// removed too, as a changed weight is.
pub trait Overlay: Debug + Send + Sync {
    /// The snapshot, where it is known.
    fn below(&self) -> Option<&View> {
        None
    }

    /// The ids are below this; at least the bound of the snapshot.
    fn vertex_bound(&self) -> usize;

    /// The number of live vertices.
    fn num_vertices(&self) -> usize;

    /// The number of edges.
    fn num_edges(&self) -> u64;

    /// The entries of all out-lists.
    fn num_arcs(&self) -> u64;

    /// Whether `vertex` is one; `None` where that is as in the snapshot.
    fn is_live(&self, vertex: VertexId) -> Option<bool>;

    /// The vertex with a key that the snapshot does not have.
    fn vertex(&self, key: &Key) -> Option<VertexId>;

    /// The key of a vertex that the snapshot does not have.
    fn key(&self, vertex: VertexId) -> Option<KeyRef<'_>>;

    /// The values of vertices that are not as in the snapshot; `None` where all are.
    fn properties(&self) -> Option<&dyn PropertyOverlay> {
        None
    }

    /// The rows of edges that the snapshot does not have; `None` where edges have no properties.
    fn rows(&self) -> Option<&dyn RowOverlay> {
        None
    }

    /// How much of a list changes. Of an undirected graph, only out-lists are asked for.
    fn num_changes(&self, side: graph::Side, vertex: VertexId) -> ListChanges;

    /// What a list loses, ascending; may name entries that the snapshot's list does not have.
    fn removed(&self, side: graph::Side, vertex: VertexId) -> Cow<'_, [VertexId]>;

    /// Calls `body` with what a list gains, piece by piece, ascending, each with the bytes of what stands beside it.
    fn for_each_added(&self, side: graph::Side, vertex: VertexId, body: &mut AddedPiece<'_>) -> ControlFlow<()>;

    /// What a list gains where that is in one piece, perhaps an empty one.
    fn added(&self, _side: graph::Side, _vertex: VertexId) -> Option<Added<'_>> {
        None
    }

    /// What a list loses, and what it gains where that is in one piece, perhaps an empty one. Most lists that lose
    /// entries are read with this one call.
    fn changes(&self, side: graph::Side, vertex: VertexId) -> (Cow<'_, [VertexId]>, Option<Added<'_>>) {
        (self.removed(side, vertex), None)
    }

    /// Calls `body` for one list after the other, in any order, with all that it loses, if that is wanted, and then,
    /// unless told to break, with what it gains: who finds what he wants in what is left of the snapshot's list asks no
    /// further.
    fn for_each_change(&self, side: graph::Side, lists: &TouchedLists, body: &mut ChangedPartBody<'_>) {
        for vertex in lists.wanted.vertices() {
            if lists.gaining.contains(vertex)
                || body(vertex, ChangedPart::Removed(&self.removed(side, vertex))).is_continue()
            {
                let mut give = |targets: &[VertexId], bytes: &[u8]| body(vertex, ChangedPart::Added(targets, bytes));
                let _ = self.for_each_added(side, vertex, &mut give);
            }
        }
    }

    /// Hints that what changes in a list is looked for soon.
    fn prefetch(&self, _side: graph::Side, _vertex: VertexId) {}

    /// Hints the same, once what the first hint asked for is there; of a list that may lose entries if it `is_cut`.
    fn prefetch_place(&self, _side: graph::Side, _vertex: VertexId, _is_cut: bool) {}

    /// Hints that what changes in a list, which was looked for, is read soon.
    fn prefetch_list(&self, _side: graph::Side, _vertex: VertexId, _is_cut: bool) {}
}

/// Calls `body` with what is left, piece by piece, of an ascending list without the entries of another.
///
/// Of an empty list, an empty piece is left.
#[inline]
pub fn without(
    targets: &[VertexId],
    removed: &[VertexId],
    mut body: impl FnMut(Range<usize>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    /// Entries that are given before it is looked whether the next twice as many are all left, and so on: who soon finds
    /// what he wants spares himself the search for what is removed, and the search is among lines that are read anyway.
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
        let next = end + targets[end..].iter().take_while(|&&target| target == gone).count();
        if next > end {
            if end > start {
                body(start..end)?;
            }
            start = next;
        }
    }
    if start < targets.len() || targets.is_empty() { body(start..targets.len()) } else { ControlFlow::Continue(()) }
}

/// A snapshot, ready to have changes laid over it.
#[derive(Clone, Debug)]
pub struct Underlay {
    view: View,
    out: Touchable,
    /// Of an undirected graph there is none.
    r#in: Option<Touchable>,
    capacity: usize,
}

/// A side, and the vertices whose lists may differ.
#[derive(Clone, Debug)]
struct Touchable {
    lists: Side,
    touched: Arc<AtomicBitmap>,
    /// Those of them that may lose entries.
    cut: Arc<AtomicBitmap>,
    /// And from where on.
    first_cuts: Arc<FirstCuts>,
}

impl Underlay {
    /// Over `view`, changes of vertices below `capacity`, or below the view's bound.
    ///
    /// Cost: 8 bytes for each 1,024 vertices, and ten bits a vertex and side.
    pub fn new(view: &View, capacity: usize) -> Self {
        Self::lasting(view, capacity, false)
    }

    /// The same, where another one takes its place within seconds: what is made for it is cheap to make, and a little
    /// slower to read.
    pub fn brief(view: &View, capacity: usize) -> Self {
        Self::lasting(view, capacity, true)
    }

    fn lasting(view: &View, capacity: usize, is_brief: bool) -> Self {
        let capacity = capacity.max(view.out_side().num_pages() << crate::table::PAGE_SHIFT);
        let bits = || Arc::new(AtomicBitmap::new(capacity));
        let touchable = |side: &Side| Touchable {
            lists: side.underlay(capacity, is_brief),
            touched: bits(),
            cut: bits(),
            first_cuts: Arc::new(FirstCuts::new(capacity)),
        };
        let r#in = match view.options().direction {
            Direction::Directed => view.side(graph::Side::In).map(touchable),
            Direction::Undirected => None,
        };
        Self { out: touchable(view.out_side()), r#in, capacity, view: view.clone() }
    }

    /// The snapshot.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// For looking up arcs of the snapshot where readers of it with changes over it look them up.
    pub fn finder(&self) -> Finder<'_> {
        Finder::new(&self.out.lists, graph::Graph::vertex_bound(&self.view))
    }

    /// Vertices below this can be touched.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// From now on the list of `vertex` may lose entries, none before `first`. Versions that already have readers stay
    /// as they are.
    ///
    /// # Panics
    /// If `vertex` is not below the capacity.
    #[inline]
    pub fn cut(&self, side: graph::Side, vertex: VertexId, first: VertexId) {
        let touchable = self.touchable(side);
        touchable.first_cuts.lower(vertex, first);
        touchable.cut.set(vertex as usize);
        self.touch(side, vertex);
    }

    /// From now on the list of `vertex` may gain entries. Versions that already have readers stay as they are.
    ///
    /// # Panics
    /// If `vertex` is not below the capacity.
    #[inline]
    pub fn touch(&self, side: graph::Side, vertex: VertexId) {
        let touchable = self.touchable(side);
        if touchable.touched.set(vertex as usize) {
            touchable.lists.touch(vertex);
        }
    }

    /// From now on the lists that `other`, of a smaller capacity, knows of a side may change as they may there.
    pub fn learn(&self, side: graph::Side, other: &Self) {
        for vertex in other.touched(side) {
            match other.is_cut(side, vertex) {
                true => self.cut(side, vertex, other.touchable(side).first_cuts.first(vertex)),
                false => self.touch(side, vertex),
            }
        }
    }

    /// The vertices of a side that were touched, ascending.
    pub fn touched(&self, side: graph::Side) -> impl Iterator<Item = VertexId> + '_ {
        let words = self.touchable(side).touched.words().iter().enumerate();
        words.flat_map(|(i, word)| ones(word.load(Ordering::Relaxed)).map(move |bit| (i * 64 + bit) as VertexId))
    }

    /// Whether the list of a vertex may lose entries.
    #[inline]
    pub fn is_cut(&self, side: graph::Side, vertex: VertexId) -> bool {
        self.touchable(side).cut.get(vertex as usize)
    }

    fn touchable(&self, side: graph::Side) -> &Touchable {
        match (side, &self.r#in) {
            (graph::Side::In, Some(r#in)) => r#in,
            _ => &self.out,
        }
    }

    /// The snapshot with a version of the changes over it, each of whose vertices was touched.
    pub fn overlaid(&self, overlay: Arc<dyn Overlay>) -> View {
        debug_assert!(overlay.vertex_bound() <= self.capacity);
        let laid = |touchable: &Touchable, side| {
            let (touched, cut) = (Arc::clone(&touchable.touched), Arc::clone(&touchable.cut));
            let (first_cuts, overlay) = (Arc::clone(&touchable.first_cuts), Arc::clone(&overlay));
            touchable.lists.overlaid(SideOverlay { side, touched, cut, first_cuts, overlay })
        };
        let out_side = laid(&self.out, graph::Side::Out);
        let in_side = match self.view.options().direction {
            Direction::Undirected => Some(out_side.clone()),
            Direction::Directed => self.r#in.as_ref().map(|side| laid(side, graph::Side::In)),
        };
        self.view.with_overlay(out_side, in_side, overlay)
    }
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
