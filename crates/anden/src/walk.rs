//! Iterators over vertices that say which lists will be read, so that others read them ahead.

use std::collections::VecDeque;
use std::iter::Fuse;
use std::ops::Range;

use base::VertexId;
use graph::{Graph, Parts, WillNeed};

use crate::{Prefetch, Side, View};

/// Lists are announced so many vertices ahead at most, and again once half of them were passed.
const AHEAD: usize = 256;

/// About so many bytes of lists are one step of a sequential walk.
const STEP_BYTES: u64 = 512 << 10;

/// A sequential walk that leaves its place goes on in another once it came to so many vertices there,
const FOLLOWED: u32 = 8;

/// each of them at most so far behind the one before.
const GAP: VertexId = 8;

/// How a [`Walk`] goes: what is read at each vertex that it comes to.
///
/// Where a user chose a policy for all ([`Prefetch`], but for [`Prefetch::Auto`]), that takes the place of the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// The lists of these vertices, wherever they lie.
    Exact,
    /// The lists of these vertices, most of which follow each other: a window ahead of them in the order of the file is
    /// read, and what they have passed is given back, as of a scan. Of single vertices elsewhere nothing is.
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
    sides: &'static [graph::Side],
    way: Way,
}

/// What is known of the vertices of a walk.
#[derive(Debug)]
enum Way {
    /// Those that are announced, and were not come to.
    Ahead(VecDeque<VertexId>),
    /// Where in the order of the file it is.
    InOrder(Steps),
}

/// The steps of a sequential walk.
#[derive(Debug)]
struct Steps {
    num_vertices: VertexId,
    bound: VertexId,
    /// What is announced and was not given back; empty at first.
    now: Range<VertexId>,
    /// Where it was last outside of that, and how many vertices it has come to there.
    aside: (VertexId, u32),
}

impl View {
    /// The same vertices in the same order, for somebody who reads their lists on `side` as `tag` says: where the graph
    /// is larger than memory, lists are read up to 256 vertices ahead of him, for which as many are taken from `vertices`;
    /// of a sequential walk a window of some megabytes ahead, for which none are. Elsewhere, and with [`Prefetch::Off`],
    /// nothing is done. Vertices that do not exist are passed on, too.
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
        let policy = policy_of(self.session().prefetch(), tag);
        // A listener of its own: what this walk does not want any more, others may.
        let view = self.stored().is_listening().then(|| self.with_prefetch(policy));
        let sides = match side {
            _ if !self.is_directed() => &[graph::Side::Out][..],
            Side::Out => &[graph::Side::Out],
            Side::In => &[graph::Side::In],
            Side::Both => &[graph::Side::Out, graph::Side::In],
        };
        let way = match policy {
            Prefetch::Sequential | Prefetch::Auto => Way::InOrder(Steps::new(self.lists())),
            Prefetch::Off | Prefetch::Neighbourhood | Prefetch::Frontier => Way::Ahead(VecDeque::new()),
        };
        Walk { vertices: vertices.into_iter().fuse(), view, sides, way }
    }
}

/// What is read ahead of a walk: what was chosen for all, else what its tag says. A scan is sometimes left to the system
/// ([`Prefetch::Auto`]).
fn policy_of(chosen: Prefetch, tag: Tag) -> Prefetch {
    match (chosen, tag) {
        (Prefetch::Auto, Tag::Exact) => Prefetch::Frontier,
        (Prefetch::Auto, Tag::Neighbourhood) => Prefetch::Neighbourhood,
        (chosen, _) => chosen,
    }
}

impl Steps {
    fn new(lists: &lama::View) -> Self {
        let bound = lists.vertex_bound();
        let list_bytes = lists.num_arcs() * size_of::<VertexId>() as u64 / bound.max(1) as u64;
        let num_vertices = VertexId::try_from(STEP_BYTES / list_bytes.max(1)).unwrap_or(VertexId::MAX).max(1);
        Self { num_vertices, bound: VertexId::try_from(bound).unwrap_or(VertexId::MAX), now: 0..0, aside: (0, 0) }
    }

    /// The walk has come to a vertex: what it has passed by that, and what it will read next, where a step begins.
    #[inline]
    fn come_to(&mut self, vertex: VertexId) -> Option<[Range<VertexId>; 2]> {
        if self.now.contains(&vertex) || vertex >= self.bound {
            self.aside.1 = 0;
            return None;
        }
        let goes_on = self.now.is_empty() || (self.now.end..self.now.end.saturating_add(GAP)).contains(&vertex);
        if !goes_on {
            let (last, num_followed) = self.aside;
            let follows = num_followed > 0 && (last..=last.saturating_add(GAP)).contains(&vertex);
            self.aside = (vertex, if follows { num_followed + 1 } else { 1 });
            if self.aside.1 < FOLLOWED {
                return None;
            }
        }
        self.aside.1 = 0;
        let next = vertex..vertex.saturating_add(self.num_vertices).min(self.bound);
        Some([std::mem::replace(&mut self.now, next.clone()), next])
    }
}

impl<I: Iterator<Item = VertexId>> Walk<I> {
    /// Takes vertices, and announces their lists, where few are ahead.
    fn go_ahead(&mut self) {
        let (Some(view), Way::Ahead(ahead)) = (&self.view, &mut self.way) else { return };
        let start = ahead.len();
        if start > AHEAD / 2 {
            return;
        }
        ahead.extend(self.vertices.by_ref().take(AHEAD - start));
        let lists = view.lists();
        let exists = |vertex: &VertexId| (*vertex as usize) < lists.vertex_bound();
        let next: Vec<VertexId> = ahead.iter().skip(start).copied().filter(exists).collect();
        self.sides.iter().for_each(|&side| lists.will_need(side, Parts::Targets, &next));
    }

    /// Says where a sequential walk is: at a vertex, or at its end.
    fn step(&mut self, vertex: Option<VertexId>) {
        let (Some(view), Way::InOrder(steps)) = (&self.view, &mut self.way) else { return };
        let [passed, next] = match vertex {
            Some(vertex) => match steps.come_to(vertex) {
                Some(ranges) => ranges,
                None => return,
            },
            None => [std::mem::take(&mut steps.now), 0..0],
        };
        for &side in self.sides {
            if !passed.is_empty() {
                view.lists().has_walked(side, Parts::Targets, passed.clone());
            }
        }
        for &side in self.sides {
            if !next.is_empty() {
                view.lists().will_walk(side, Parts::Targets, next.clone());
            }
        }
    }
}

impl<I: Iterator<Item = VertexId>> Iterator for Walk<I> {
    type Item = VertexId;

    fn next(&mut self) -> Option<VertexId> {
        self.go_ahead();
        if let Way::Ahead(ahead) = &mut self.way
            && let Some(vertex) = ahead.pop_front()
        {
            return Some(vertex);
        }
        let vertex = self.vertices.next();
        self.step(vertex);
        vertex
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (least, most) = self.vertices.size_hint();
        let num_ahead = match &self.way {
            Way::Ahead(ahead) => ahead.len(),
            Way::InOrder(_) => 0,
        };
        (least.saturating_add(num_ahead), most.and_then(|most| most.checked_add(num_ahead)))
    }
}

impl<I: Iterator<Item = VertexId>> Drop for Walk<I> {
    fn drop(&mut self) {
        self.step(None);
        if let Some(view) = &self.view {
            view.lists().forget_needs();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From where to where vertices are announced, in steps of 100 below 1,000, and given back.
    fn steps(vertices: impl IntoIterator<Item = VertexId>) -> [Vec<(VertexId, VertexId)>; 2] {
        let mut steps = Steps { num_vertices: 100, bound: 1000, now: 0..0, aside: (0, 0) };
        let found: Vec<_> = vertices.into_iter().filter_map(|vertex| steps.come_to(vertex)).collect();
        let [passed, next] = [0, 1].map(|place| found.iter().map(move |ranges| ranges[place].clone()));
        let passed = passed.filter(|passed| !passed.is_empty());
        [next.map(|range| (range.start, range.end)).collect(), passed.map(|range| (range.start, range.end)).collect()]
    }

    #[test]
    fn a_walk_in_order_is_announced_once_and_given_back_step_by_step() {
        let [next, passed] = steps(450..1000);
        assert_eq!(next, [(450, 550), (550, 650), (650, 750), (750, 850), (850, 950), (950, 1000)]);
        assert_eq!(passed, next[..5]);
        // Vertices between those that are wanted are read with them.
        assert_eq!(steps((0..300).step_by(7))[0], [(0, 100), (105, 205), (210, 310)]);
        assert!(steps([u32::MAX, 1000]).iter().all(Vec::is_empty));
    }

    #[test]
    fn single_vertices_elsewhere_are_no_steps_and_many_are() {
        let with_leaps = (0..200).flat_map(|vertex| [vertex, 500 + vertex * 389 % 400]);
        assert_eq!(steps(with_leaps)[0], [(0, 100), (100, 200)]);
        let elsewhere = (0..50).chain(600..700);
        assert_eq!(steps(elsewhere), [vec![(0, 100), (607, 707)], vec![(0, 100)]]);
        assert_eq!(steps((0..500).rev())[0], [(499, 599)]);
    }

    #[test]
    fn what_is_chosen_for_all_takes_the_place_of_a_tag() {
        let tags = [Tag::Exact, Tag::Sequential, Tag::Neighbourhood];
        let by_tag = [Prefetch::Frontier, Prefetch::Auto, Prefetch::Neighbourhood];
        assert_eq!(tags.map(|tag| policy_of(Prefetch::Auto, tag)), by_tag);
        for chosen in Prefetch::ALL.into_iter().filter(|&chosen| chosen != Prefetch::Auto) {
            assert_eq!(tags.map(|tag| policy_of(chosen, tag)), [chosen; 3]);
        }
    }
}
