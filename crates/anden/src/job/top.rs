//! The vertices with the highest values, and the largest groups of vertices.

use std::cmp::Ordering;

use anden_base::VertexId;
use anden_graph::Graph;

use super::{JobOutcome, Value, Values};
use crate::{Key, Result, View};

/// Candidates beyond the wanted ones that are collected before the worst are dropped.
const LEAST_SPARE: usize = 1 << 10;

/// A candidate: its place in the order of keys, the vertex and its score.
type Candidate<T> = (usize, VertexId, T);

impl View {
    /// The first `length` vertices by score, by descending score; equal scores by ascending key. `scores` has a score by
    /// vertex id. A vertex without a finite score does not count.
    ///
    /// ```
    /// use anden::{Database, Options, PageRankParams, Update};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.apply(&[Update::add_edge(1, 2), Update::add_edge(3, 2)])?;
    /// let view = db.view()?;
    /// let ranks = view.pagerank(&PageRankParams::default())?;
    /// assert_eq!(view.top(&ranks, 1)?[0].0, view.vertex(2)?);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn top(&self, scores: &[f64], length: usize) -> Result<Vec<(VertexId, f64)>> {
        // Adding 0.0 turns -0.0 into 0.0, so that the two tie.
        let score = |vertex: VertexId| Some(scores[vertex as usize] + 0.0).filter(|score| score.is_finite());
        first(self, length, score, f64::total_cmp)
    }

    /// Like [`top`](Self::top), with whole numbers.
    pub(crate) fn top_counts(&self, length: usize, count: impl Fn(VertexId) -> u64) -> Result<Vec<(VertexId, u64)>> {
        first(self, length, |vertex| Some(count(vertex)), u64::cmp)
    }

    /// The sizes of the `length` largest groups of vertices, by descending size; equal sizes by ascending key of the
    /// vertex that names the group. `names` has the name of each vertex's group, by vertex id: the component or the
    /// community.
    ///
    /// # Errors
    /// The memory budget is too small for 4 bytes a vertex; damage met on the way.
    pub fn largest_groups(&self, names: &[VertexId], length: usize) -> Result<Vec<(VertexId, u64)>> {
        // One count for each name, of equal size.
        let bytes = size_of_val(names) as u64;
        self.explained(self.context().require_memory("sizes of groups", bytes))?;
        let lists = self.all_lists()?;
        let mut sizes = vec![0_u32; names.len()];
        // A removed vertex names itself, and is in no group.
        for vertex in (0..names.len() as VertexId).filter(|&vertex| lists.is_live(vertex)) {
            sizes[names[vertex as usize] as usize] += 1;
        }
        let size = |vertex: VertexId| Some(u64::from(sizes[vertex as usize])).filter(|&size| size > 0);
        first(self, length, size, u64::cmp)
    }

    /// The numbers of vertices with equal values, such as core numbers: pairs of a value and its number of vertices, by
    /// descending number; equal numbers by ascending value. `values` has a value by vertex id.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn most_frequent(&self, values: &[u32], length: usize) -> Result<Vec<(u32, u64)>> {
        let lists = self.all_lists()?;
        let mut counts = std::collections::BTreeMap::<u32, u64>::new();
        for vertex in (0..values.len() as VertexId).filter(|&vertex| lists.is_live(vertex)) {
            *counts.entry(values[vertex as usize]).or_default() += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        // The sort is stable, so equal counts stay in the order of values.
        counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        counts.truncate(length);
        Ok(counts)
    }
}

/// The figures of the first `length` vertices and groups of a result: `top`, `sizes`, or both.
pub(super) fn figures(view: &View, outcome: &dyn JobOutcome, length: usize) -> Result<Vec<(&'static str, Value)>> {
    Ok(match outcome.values_by_key(view)? {
        Some(Values::Vertices(names)) => {
            vec![("sizes", Value::Counts(keyed(view, view.largest_groups(&names, length)?)?))]
        }
        Some(Values::Numbers(numbers)) => {
            let top = view.top_counts(length, |vertex| numbers[vertex as usize].into())?;
            let sizes = view.most_frequent(&numbers, length)?;
            let sizes = sizes.into_iter().map(|(value, count)| (Key::Integer(value.into()), count)).collect();
            vec![("top", Value::Counts(keyed(view, top)?)), ("sizes", Value::Counts(sizes))]
        }
        Some(Values::Counts(counts)) => {
            vec![("top", Value::Counts(keyed(view, view.top_counts(length, |vertex| counts[vertex as usize])?)?))]
        }
        Some(Values::Reals(scores)) => {
            // Unlike a distance, a score may be infinite: a sum of very many paths.
            let score = |vertex: VertexId| Some(scores[vertex as usize] + 0.0).filter(|score| !score.is_nan());
            vec![("top", Value::Ranking(keyed(view, first(view, length, score, f64::total_cmp)?)?))]
        }
        // The values of a search have no order of merit.
        Some(Values::Hops(_) | Values::Distances(_)) | None => Vec::new(),
    })
}

/// Replaces ids by keys.
pub(crate) fn keyed<T>(view: &View, found: Vec<(VertexId, T)>) -> Result<Vec<(Key, T)>> {
    found.into_iter().map(|(vertex, value)| Ok((view.key(vertex)?, value))).collect()
}

/// The first `length` vertices by descending score; equal scores by ascending key. A vertex without a score does not
/// count.
///
/// *Memory*: 24 bytes for each of twice `length` vertices.
fn first<T: Copy>(
    view: &View,
    length: usize,
    score: impl Fn(VertexId) -> Option<T>,
    ascending: impl Fn(&T, &T) -> Ordering,
) -> Result<Vec<(VertexId, T)>> {
    if length == 0 {
        return Ok(Vec::new());
    }
    let lists = view.all_lists()?;
    let order = view.order_of_keys()?;
    let by_rank = |a: &Candidate<T>, b: &Candidate<T>| ascending(&b.2, &a.2).then(a.0.cmp(&b.0));
    let room = length.saturating_mul(2).max(length.saturating_add(LEAST_SPARE));
    let mut kept: Vec<Candidate<T>> = Vec::new();
    // The worst score that is certainly beaten or tied by `length` vertices with smaller keys.
    let mut least: Option<T> = None;
    for place in 0..order.as_ref().map_or(view.vertex_bound(), Vec::len) {
        let vertex = order.as_ref().map_or(place as VertexId, |order| order[place]);
        let Some(score) = score(vertex) else { continue };
        // Most vertices fail the comparison, so it comes before the look at the vertex.
        if least.is_some_and(|least| ascending(&score, &least).is_le()) || !lists.is_live(vertex) {
            continue;
        }
        kept.push((place, vertex, score));
        if kept.len() >= room {
            least = shorten(&mut kept, length, by_rank);
        }
    }
    shorten(&mut kept, length, by_rank);
    kept.sort_unstable_by(by_rank);
    Ok(kept.into_iter().map(|(_, vertex, score)| (vertex, score)).collect())
}

/// Drops all but the first `length` candidates. Returns the score of the last one that stays.
fn shorten<T: Copy>(
    kept: &mut Vec<Candidate<T>>,
    length: usize,
    by_rank: impl Fn(&Candidate<T>, &Candidate<T>) -> Ordering,
) -> Option<T> {
    let last = length.checked_sub(1).filter(|&last| last < kept.len())?;
    kept.select_nth_unstable_by(last, by_rank);
    kept.truncate(length);
    Some(kept[last].2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Database, Options, Update};

    /// A graph whose ids descend with keys: the vertex of key 9999 - i has id i.
    fn reversed(num_vertices: u64) -> Database {
        let db = Database::in_memory(Options::default()).unwrap();
        let updates: Vec<_> = (0..num_vertices).map(|i| Update::AddVertex((9_999 - i).into())).collect();
        // One update each: a batch assigns its ids by key.
        for update in updates.chunks(1) {
            db.apply(update).unwrap();
        }
        db
    }

    #[test]
    fn the_first_are_those_of_a_full_sort() {
        let db = reversed(3000);
        let view = db.view().unwrap();
        let scores: Vec<f64> = (0..3000_u32).map(|id| f64::from(id * 7919 % 97)).collect();
        let mut expected: Vec<_> = (0..3000_u32).map(|id| (scores[id as usize], view.key(id).unwrap(), id)).collect();
        expected.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        for length in [0, 1, 10, 700, 2999, 3000, 9000, usize::MAX] {
            let found: Vec<u32> = view.top(&scores, length).unwrap().into_iter().map(|(vertex, _)| vertex).collect();
            let expected: Vec<u32> = expected.iter().take(length).map(|(.., vertex)| *vertex).collect();
            assert_eq!(found, expected, "{length}");
        }
    }

    #[test]
    fn groups_and_values_are_counted_without_removed_vertices() {
        let db = reversed(6);
        db.apply(&[Update::RemoveVertex(9_996.into())]).unwrap();
        let view = db.view().unwrap();
        let id = |key: u64| view.vertex(key).unwrap();
        let mut names: Vec<u32> = (0..view.vertex_bound() as u32).collect();
        names[id(9_999) as usize] = id(9_995);
        names[id(9_994) as usize] = id(9_997);
        let sizes = |length| keyed(&view, view.largest_groups(&names, length).unwrap()).unwrap();
        // Equal sizes are ordered by the keys of the names.
        assert_eq!(sizes(9), [(9_995.into(), 2), (9_997.into(), 2), (9_998.into(), 1)]);
        assert_eq!(sizes(1), [(9_995.into(), 2)]);
        let mut values = vec![3; view.vertex_bound()];
        values[id(9_999) as usize] = 7;
        assert_eq!(view.most_frequent(&values, 5).unwrap(), [(3, 4), (7, 1)]);
    }

    #[test]
    fn infinite_scores_do_not_count_and_zeros_tie() {
        let db = reversed(4);
        let view = db.view().unwrap();
        let top = view.top(&[-0.0, f64::INFINITY, 0.0, f64::NAN], 9).unwrap();
        let keys: Vec<_> = top.into_iter().map(|(vertex, _)| view.key(vertex).unwrap()).collect();
        assert_eq!(keys, [9_997.into(), 9_999.into()]);
    }
}
