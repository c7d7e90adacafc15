//! Choices by key. Ids depend on the order in which a graph was loaded and grown. So a result chooses vertices by key:
//! names of components, parents, samples, and the order of ties and answers.
//!
//! Where ids ascend with keys, nothing is looked up and nothing is renamed.

use std::borrow::Cow;
use std::ops::ControlFlow;

use anden_base::{NO_VERTEX, VertexId};
use anden_graph::{Direction, Graph};
use anden_kernels::SourceChoice;

use crate::{Result, View};

/// Vertices between two looks at whether the work is cancelled.
const CHECK_VERTICES: usize = 64 << 10;

impl View {
    /// All vertices in ascending order of keys: numbers by value, strings by bytes.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn vertices_by_key(&self) -> Result<Vec<VertexId>> {
        let lists = self.all_lists()?;
        let is_live = |vertex: &VertexId| lists.is_live(*vertex);
        Ok(match self.stored().ids_by_key()? {
            Some(ids) => ids.into_iter().filter(is_live).collect(),
            None => (0..self.vertex_bound() as VertexId).filter(is_live).collect(),
        })
    }

    /// All vertices in ascending order of keys; `None` if the order of ids is that order.
    pub(crate) fn order_of_keys(&self) -> Result<Option<Vec<VertexId>>> {
        let Some(ids) = self.stored().ids_by_key()? else { return Ok(None) };
        let lists = self.all_lists()?;
        let order: Vec<_> = ids.into_iter().filter(|&vertex| lists.is_live(vertex)).collect();
        Ok(if order.is_sorted() { None } else { Some(order) })
    }

    /// The rank of the key of each id, by id; `None` if the order of ids is that of the keys.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn ranks_by_key(&self) -> Result<Option<Vec<u32>>> {
        let Some(ids) = self.stored().ids_by_key()? else { return Ok(None) };
        let mut ranks = vec![0; ids.len()];
        (0..).zip(ids).for_each(|(rank, id)| ranks[id as usize] = rank);
        Ok(Some(ranks))
    }

    /// Sorts a few vertices by key.
    pub(crate) fn sort_by_key(&self, vertices: &mut [VertexId]) -> Result<()> {
        let keys = vertices.iter().map(|&vertex| self.key_ref(vertex)).collect::<Result<Vec<_>>>()?;
        // Ids usually ascend with keys.
        if keys.is_sorted() {
            return Ok(());
        }
        let mut keyed: Vec<_> = keys.into_iter().zip(vertices.iter().copied()).collect();
        keyed.sort_unstable();
        vertices.iter_mut().zip(keyed).for_each(|(vertex, (_, sorted))| *vertex = sorted);
        Ok(())
    }

    /// Names each component by its member with the smallest key; `labels` names it by any member.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn components_by_key<'a>(&self, labels: &'a [VertexId]) -> Result<Cow<'a, [VertexId]>> {
        let Some(order) = self.order_of_keys()? else { return Ok(labels.into()) };
        // The first member in the order of the keys names the component; removed vertices keep their own names.
        let mut names: Vec<VertexId> = vec![NO_VERTEX; labels.len()];
        for vertex in order {
            let name = &mut names[labels[vertex as usize] as usize];
            *name = if *name == NO_VERTEX { vertex } else { *name };
        }
        let name_of = |&label: &VertexId| match names[label as usize] {
            NO_VERTEX => label,
            name => name,
        };
        Ok(labels.iter().map(name_of).collect())
    }

    /// The parents of a breadth-first search: of the neighbors that are one hop nearer to the source, the one with the
    /// smallest key. `parents` has any of them.
    pub(crate) fn parents_by_key<'a>(&self, hops: &[u32], parents: &'a [VertexId]) -> Result<Cow<'a, [VertexId]>> {
        let Some(order) = self.order_of_keys()? else { return Ok(parents.into()) };
        let (lists, progress) = (self.all_lists()?, self.session().progress());
        let mut chosen: Vec<VertexId> = vec![NO_VERTEX; parents.len()];
        for (i, &vertex) in order.iter().enumerate() {
            if i.is_multiple_of(CHECK_VERTICES) {
                progress.check()?;
            }
            let hops_here = hops[vertex as usize];
            // Not reached, so no parent; the source is its own.
            if parents[vertex as usize] == NO_VERTEX {
                continue;
            }
            if parents[vertex as usize] == vertex {
                chosen[vertex as usize] = vertex;
            }
            let _ = lists.for_each_fragment(Direction::Out, vertex, |targets| {
                for &target in targets {
                    // Parents come in the order of their keys, so the first one stays.
                    if hops[target as usize] == hops_here + 1 && chosen[target as usize] == NO_VERTEX {
                        chosen[target as usize] = vertex;
                    }
                }
                ControlFlow::Continue(())
            });
        }
        // Damaged lists look empty, so the parents are complete only if this check passes.
        lists.check()?;
        Ok(chosen.into())
    }

    /// A sample of sources by the ranks of their keys.
    pub(crate) fn sampled_sources(&self, count: usize, seed: u64) -> Result<SourceChoice> {
        Ok(match self.stored().ids_by_key()? {
            None => SourceChoice::Sampled { count, seed },
            Some(ids) => {
                SourceChoice::Given(anden_kernels::sample(self.all_lists()?, count, seed, |rank| ids[rank as usize]))
            }
        })
    }

    /// All vertices as sources, in the order of their keys.
    pub(crate) fn all_sources(&self) -> Result<SourceChoice> {
        Ok(self.order_of_keys()?.map_or(SourceChoice::All, SourceChoice::Given))
    }
}
