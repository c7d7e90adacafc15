//! Vertex iterators that announce which lists are read next, so that the prefetcher reads them ahead.

use std::collections::VecDeque;
use std::iter::Fuse;
use std::ops::Range;

use anden_base::VertexId;
use anden_graph::walk::{HEARD_BYTES, lists_of};
use anden_graph::{Direction, Graph, Parts, WillNeed};
use anden_snapshots::SnapshotView;

use crate::session::Prefetch;
use crate::{Neighbors, View};

/// Lists are announced up to this many vertices ahead, and again after half of them.
const AHEAD: usize = 256;

/// A sequential walk that jumps elsewhere continues there after this many vertices in near succession.
const FOLLOWED: u32 = 8;

/// Vertices are in near succession if the next one is at most this far ahead.
const GAP: VertexId = 8;

/// The access pattern of a [`Walk`].
///
/// A policy set for the session ([`Prefetch`], except [`Prefetch::Auto`]) overrides the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Reads the lists of these vertices, in any order.
    Exact,
    /// Reads the lists of these vertices, most of them in ascending order. A window ahead in storage order is fetched,
    /// and passed pages are released, as in a scan. Nothing is fetched for vertices elsewhere.
    Sequential,
    /// Reads the lists of these vertices, then those of their neighbors. High degrees come first.
    Neighborhood,
}

/// A vertex iterator that reads ahead; see [`View::walk`].
#[derive(Debug)]
pub struct Walk<I: Iterator<Item = VertexId>> {
    // Fused, because `next` asks again after the end while announced vertices remain.
    vertices: Fuse<I>,
    /// The view to announce reads to; `None` without a prefetcher.
    view: Option<View>,
    directions: &'static [Direction],
    way: WalkState,
}

/// The state of a walk.
#[derive(Debug)]
enum WalkState {
    /// Vertices that are announced and not yet returned.
    Ahead(VecDeque<VertexId>),
    /// The position in storage order.
    InOrder(Steps),
}

/// The position of a sequential walk.
#[derive(Debug)]
struct Steps {
    num_vertices: VertexId,
    bound: VertexId,
    /// The announced range that is not yet released; initially empty.
    now: Range<VertexId>,
    /// The last vertex outside that range, and the number of consecutive vertices there.
    aside: (VertexId, u32),
}

impl View {
    /// Returns `vertices` unchanged, and announces reads of their lists in `direction` as `tag` says. Vertices that do
    /// not exist are passed on too.
    ///
    /// On a graph larger than memory, lists are fetched up to 256 vertices ahead, for which the walk takes as many from
    /// `vertices` in advance. A sequential walk fetches some megabytes ahead and takes no vertex in advance. On other
    /// graphs, and with [`Prefetch::Off`], nothing is fetched.
    ///
    /// Source: the *tagged iterators* of "Buffer management for LLAMA". There a vertex table has a tag, here a walk has
    /// one.
    ///
    /// ```
    /// use anden::{Database, KeyScheme, Neighbors, Options};
    /// use anden::graph::{Direction, Graph};
    /// use anden::kernel::Tag;
    ///
    /// let db = Database::in_memory(Options { keys: KeyScheme::Dense, ..Options::default() })?;
    /// db.add_edges(&[(0, 1), (0, 2), (1, 2)])?;
    /// let view = db.view()?;
    /// let all = 0..view.vertex_bound() as anden::VertexId;
    /// let walk = view.walk(all, Neighbors::Out, Tag::Sequential);
    /// let degrees = walk.map(|vertex| view.graph().degree(Direction::Out, vertex));
    /// assert_eq!(degrees.collect::<Vec<_>>(), [2, 1, 0]);
    /// # Ok::<(), anden::Error>(())
    /// ```
    pub fn walk<I: IntoIterator<Item = VertexId>>(
        &self,
        vertices: I,
        direction: Neighbors,
        tag: Tag,
    ) -> Walk<I::IntoIter> {
        let policy = policy_of(self.session().prefetch(), tag);
        // A prefetcher state of its own: what this walk no longer needs, others may.
        let view = self.stored().is_listening().then(|| self.with_prefetch(policy));
        let directions = match direction {
            // Both directions share one list, which needs one announcement.
            _ if !self.is_directed() => &[Direction::Out][..],
            Neighbors::Out => &[Direction::Out],
            Neighbors::In => &[Direction::In],
            Neighbors::Both => &[Direction::Out, Direction::In],
        };
        let way = match policy {
            Prefetch::Sequential | Prefetch::Auto => WalkState::InOrder(Steps::new(self.lists())),
            Prefetch::Off | Prefetch::Neighborhood | Prefetch::Frontier => WalkState::Ahead(VecDeque::new()),
        };
        Walk { vertices: vertices.into_iter().fuse(), view, directions, way }
    }
}

/// The prefetch policy of a walk: that of the session, else that of its tag. [`Prefetch::Auto`] may leave a scan to the
/// system.
fn policy_of(chosen: Prefetch, tag: Tag) -> Prefetch {
    match (chosen, tag) {
        (Prefetch::Auto, Tag::Exact) => Prefetch::Frontier,
        (Prefetch::Auto, Tag::Neighborhood) => Prefetch::Neighborhood,
        (chosen, _) => chosen,
    }
}

impl Steps {
    fn new(lists: &SnapshotView) -> Self {
        let bound = lists.vertex_bound();
        let num_vertices = VertexId::try_from(lists_of(lists, HEARD_BYTES)).unwrap_or(VertexId::MAX);
        Self { num_vertices, bound: VertexId::try_from(bound).unwrap_or(VertexId::MAX), now: 0..0, aside: (0, 0) }
    }

    /// Moves to a vertex. At the start of a step, returns the passed range and the next one.
    #[inline]
    fn come_to(&mut self, vertex: VertexId) -> Option<[Range<VertexId>; 2]> {
        // The common case: the vertex is announced already.
        if self.now.contains(&vertex) || vertex >= self.bound {
            self.aside.1 = 0;
            return None;
        }
        let goes_on = self.now.is_empty() || (self.now.end..self.now.end.saturating_add(GAP)).contains(&vertex);
        // Single vertices elsewhere must not end the scan. A jump counts only after several vertices there.
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
    /// Announces more lists if few are ahead.
    fn go_ahead(&mut self) {
        let (Some(view), WalkState::Ahead(ahead)) = (&self.view, &mut self.way) else { return };
        let start = ahead.len();
        // Announce at least half a window at a time, not one vertex.
        if start > AHEAD / 2 {
            return;
        }
        ahead.extend(self.vertices.by_ref().take(AHEAD - start));
        let lists = view.lists();
        // Vertices that do not exist have no lists to announce.
        let exists = |vertex: &VertexId| (*vertex as usize) < lists.vertex_bound();
        let next: Vec<VertexId> = ahead.iter().skip(start).copied().filter(exists).collect();
        // At the end of the vertices, every further call would announce an empty slice.
        if next.is_empty() {
            return;
        }
        self.directions.iter().for_each(|&direction| lists.will_need(direction, Parts::Targets, &next));
    }

    /// Reports the position of a sequential walk; `None`: its end.
    fn step(&mut self, vertex: Option<VertexId>) {
        let (Some(view), WalkState::InOrder(steps)) = (&self.view, &mut self.way) else { return };
        let [passed, next] = match vertex {
            Some(vertex) => match steps.come_to(vertex) {
                Some(ranges) => ranges,
                None => return,
            },
            None => [std::mem::take(&mut steps.now), 0..0],
        };
        // Released first: the passed pages make room for the next ones.
        for &direction in self.directions {
            if !passed.is_empty() {
                view.lists().has_walked(direction, Parts::Targets, passed.clone());
            }
        }
        for &direction in self.directions {
            if !next.is_empty() {
                view.lists().will_walk(direction, Parts::Targets, next.clone());
            }
        }
    }
}

impl<I: Iterator<Item = VertexId>> Iterator for Walk<I> {
    type Item = VertexId;

    fn next(&mut self) -> Option<VertexId> {
        self.go_ahead();
        if let WalkState::Ahead(ahead) = &mut self.way
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
            WalkState::Ahead(ahead) => ahead.len(),
            WalkState::InOrder(_) => 0,
        };
        (least.saturating_add(num_ahead), most.and_then(|most| most.checked_add(num_ahead)))
    }
}

impl<I: Iterator<Item = VertexId>> Drop for Walk<I> {
    fn drop(&mut self) {
        // An abandoned walk releases its pages and withdraws its requests.
        self.step(None);
        if let Some(view) = &self.view {
            view.lists().forget_needs();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a walk and returns its announced and released ranges, in steps of 100 below 1,000.
    fn steps(vertices: impl IntoIterator<Item = VertexId>) -> [Vec<(VertexId, VertexId)>; 2] {
        let mut steps = Steps { num_vertices: 100, bound: 1000, now: 0..0, aside: (0, 0) };
        let found: Vec<_> = vertices.into_iter().filter_map(|vertex| steps.come_to(vertex)).collect();
        let [passed, next] = [0, 1].map(|place| found.iter().map(move |ranges| ranges[place].clone()));
        let passed = passed.filter(|passed| !passed.is_empty());
        [next.map(|range| (range.start, range.end)).collect(), passed.map(|range| (range.start, range.end)).collect()]
    }

    #[test]
    fn ordered_walk_is_announced_and_released_in_steps() {
        let [next, passed] = steps(450..1000);
        assert_eq!(next, [(450, 550), (550, 650), (650, 750), (750, 850), (850, 950), (950, 1000)]);
        assert_eq!(passed, next[..5]);
        // Vertices between the wanted ones are read with them.
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
    fn chosen_policy_overrides_walk_tag() {
        let tags = [Tag::Exact, Tag::Sequential, Tag::Neighborhood];
        let by_tag = [Prefetch::Frontier, Prefetch::Auto, Prefetch::Neighborhood];
        assert_eq!(tags.map(|tag| policy_of(Prefetch::Auto, tag)), by_tag);
        for chosen in Prefetch::ALL.into_iter().filter(|&chosen| chosen != Prefetch::Auto) {
            assert_eq!(tags.map(|tag| policy_of(chosen, tag)), [chosen; 3]);
        }
    }
}
