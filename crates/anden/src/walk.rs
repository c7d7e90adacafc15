//! Iterators over vertices that say which lists will be read, so that others read them ahead.

use std::collections::VecDeque;
use std::iter::Fuse;
use std::ops::Range;

use base::VertexId;
use graph::{Graph, Parts, WillNeed};

use crate::{Prefetch, Side, View};

/// Lists are announced so many vertices ahead at most, and again once half of them were passed.
const AHEAD: usize = 256;

/// How a [`Walk`] goes: what is read at each vertex that it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// The lists of these vertices, wherever they lie.
    Exact,
    /// The lists of these vertices, most of which follow each other.
    Sequential,
    /// The lists of these vertices and then those of their neighbours, high degrees first.
    Neighbourhood,
}

/// Vertices in the order of an iterator, whose lists are read ahead; see [`View::walk`].
#[derive(Debug)]
pub struct Walk<I: Iterator<Item = VertexId>> {
    vertices: Fuse<I>,
    /// Who is told; `None` where nobody listens.
    view: Option<View>,
    side: Side,
    tag: Tag,
    /// Those that are announced.
    ahead: VecDeque<VertexId>,
}

impl View {
    /// The same vertices in the same order, for somebody who reads their lists on `side` as `tag` says: where the graph
    /// is larger than memory, lists are read up to 256 vertices ahead of him, for which as many are taken from `vertices`.
    /// Elsewhere, and with [`Prefetch::Off`], nothing is done. Vertices that do not exist are passed on, too.
    ///
    /// The *tagged iterators* of "Buffer management for LLAMA"; there a tag belongs to a vertex table, here to a walk.
    ///
    /// ```
    /// use anden::{Database, Graph, KeyScheme, Options, Side, Tag};
    ///
    /// let db = Database::in_memory(Options { keys: KeyScheme::Dense, ..Options::default() })?;
    /// db.add_edges(&[(0, 1), (0, 2), (1, 2)])?;
    /// let view = db.view()?;
    /// let all = 0..view.vertex_bound() as anden::VertexId;
    /// let degrees = view.walk(all, Side::Out, Tag::Sequential).map(|vertex| view.graph().out_degree(vertex));
    /// assert_eq!(degrees.collect::<Vec<_>>(), [2, 1, 0]);
    /// # Ok::<(), anden::Error>(())
    /// ```
    pub fn walk<I: IntoIterator<Item = VertexId>>(&self, vertices: I, side: Side, tag: Tag) -> Walk<I::IntoIter> {
        let policy = match tag {
            Tag::Exact | Tag::Sequential => Prefetch::Frontier,
            Tag::Neighbourhood => Prefetch::Neighbourhood,
        };
        let view = self.lists().is_listening().then(|| self.with_prefetch(policy));
        Walk { vertices: vertices.into_iter().fuse(), view, side, tag, ahead: VecDeque::new() }
    }
}

impl<I: Iterator<Item = VertexId>> Walk<I> {
    /// Takes vertices, and announces their lists.
    fn go_ahead(&mut self) {
        let Some(view) = &self.view else { return };
        let start = self.ahead.len();
        self.ahead.extend(self.vertices.by_ref().take(AHEAD - start));
        let lists = view.lists();
        let exists = |vertex: &VertexId| (*vertex as usize) < lists.vertex_bound();
        let next: Vec<VertexId> = self.ahead.iter().skip(start).copied().filter(exists).collect();
        let sides = match self.side {
            _ if !view.is_directed() => &[graph::Side::Out][..],
            Side::Out => &[graph::Side::Out],
            Side::In => &[graph::Side::In],
            Side::Both => &[graph::Side::Out, graph::Side::In],
        };
        for &side in sides {
            match self.tag {
                Tag::Sequential => lists.will_need_runs(side, Parts::Targets, &runs(&next)),
                Tag::Exact | Tag::Neighbourhood => lists.will_need(side, Parts::Targets, &next),
            }
        }
    }
}

/// Vertices that follow each other, together.
fn runs(vertices: &[VertexId]) -> Vec<Range<VertexId>> {
    let runs = vertices.chunk_by(|&vertex, &next| vertex.checked_add(1) == Some(next));
    runs.map(|run| run[0]..run[run.len() - 1] + 1).collect()
}

impl<I: Iterator<Item = VertexId>> Iterator for Walk<I> {
    type Item = VertexId;

    fn next(&mut self) -> Option<VertexId> {
        if self.view.is_some() && self.ahead.len() <= AHEAD / 2 {
            self.go_ahead();
        }
        self.ahead.pop_front().or_else(|| self.vertices.next())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (least, most) = self.vertices.size_hint();
        let num_ahead = self.ahead.len();
        (least.saturating_add(num_ahead), most.and_then(|most| most.checked_add(num_ahead)))
    }
}

impl<I: Iterator<Item = VertexId>> Drop for Walk<I> {
    fn drop(&mut self) {
        if let Some(view) = &self.view {
            view.lists().forget_needs();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_in_the_order_are_runs() {
        assert_eq!(runs(&[3, 4, 5, 9, 8, 8, 9]), [3..6, 9..10, 8..9, 8..10]);
        assert!(runs(&[]).is_empty());
    }
}
