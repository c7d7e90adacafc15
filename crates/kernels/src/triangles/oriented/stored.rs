//! The oriented copy in a database.
//!
//! The arrays are the slices of all ranks, the numbers of doubles, the targets, and the rank of each vertex.

use std::sync::atomic::{AtomicBool, Ordering};

use anden_base::VertexId;
use anden_graph::{FormArrays, Graph, GraphKind, StoredForm, StoredFormKey};
use bytemuck::cast_slice;

use super::{GRAIN, LEN, Oriented, Slice};
use crate::stored_arrays::{arrays, copied, values};
use crate::{Context, Result};

impl Oriented {
    /// The name of the copy with this number of hubs.
    pub(crate) fn stored_key(num_hubs: usize) -> StoredFormKey {
        StoredFormKey { form: StoredForm::Oriented, parameter: num_hubs as u64 }
    }

    /// The arrays of the copy and of the ranks of the vertices.
    pub(crate) fn arrays<'a>(&'a self, ranks: &'a [VertexId]) -> FormArrays<'a> {
        let arrays =
            [cast_slice(&self.slices), cast_slice(&self.doubles), cast_slice(&self.targets), cast_slice(ranks)];
        arrays.map(|array| vec![array]).into()
    }

    /// Copies the arrays of a copy of `graph` with `num_hubs` hubs. Also returns the ranks of the vertices, not copied.
    /// The error says what does not fit.
    pub(crate) fn from_arrays<'a>(
        ctx: &Context<'_>,
        graph: &impl Graph,
        num_hubs: u64,
        stored: &[&'a [u8]],
    ) -> Result<(Self, &'a [VertexId]), String> {
        let [slices, doubles, targets, ranks] = arrays(stored)?;
        let (slices, doubles) = (values::<Slice>(slices)?, values::<u32>(doubles)?);
        let (targets, ranks) = (values::<VertexId>(targets)?, values::<VertexId>(ranks)?);
        let bound = graph.vertex_bound();
        let num_doubles = if graph.graph_kind() == GraphKind::Directed { 2 * bound } else { 0 };
        if (slices.len(), ranks.len(), doubles.len()) != (bound, bound, num_doubles) {
            return Err(format!("{} lists and {} ranks for {bound} vertices", slices.len(), ranks.len()));
        }
        // The budget has room for this many.
        if targets.len() as u64 > Self::num_entries(graph) {
            return Err(format!("{} entries, of {} at most", targets.len(), Self::num_entries(graph)));
        }
        let oriented =
            Self { slices: copied(ctx, slices), doubles: copied(ctx, doubles), targets: copied(ctx, targets) };
        let is_wrong = AtomicBool::new(false);
        ctx.pool.for_each_chunk(0..bound, GRAIN, |_, chunk| {
            let has_ranks = ranks[chunk.clone()].iter().all(|&rank| (rank as usize) < bound);
            if !has_ranks || !chunk.into_iter().all(|rank| oriented.is_list(rank, num_hubs)) {
                // Relaxed: read after the loop.
                is_wrong.store(true, Ordering::Relaxed);
            }
        });
        match is_wrong.into_inner() {
            true => Err("a list is not one of earlier ranks, hubs first".into()),
            false => Ok((oriented, ranks)),
        }
    }

    /// Whether the list of `rank` lies within the targets, and has earlier ranks only, hubs first.
    fn is_list(&self, rank: usize, num_hubs: u64) -> bool {
        let [low, high, len] = self.slices[rank];
        let start = u64::from(low) | u64::from(high) << 32;
        if start.saturating_add(u64::from(len)) > self.targets.len() as u64 {
            return false;
        }
        let doubles = self.doubles.as_chunks::<2>().0.get(rank);
        let has_doubles = doubles.is_none_or(|&[front, back]| u64::from(front) + u64::from(back) <= u64::from(len));
        let list = self.list(rank);
        has_doubles
            && list.iter().all(|&earlier| (earlier as usize) < rank)
            && !list.windows(2).any(|pair| u64::from(pair[0]) >= num_hubs && u64::from(pair[1]) < num_hubs)
    }

    /// Whether both copies have equal lists. Within a part of a list, the order is arbitrary.
    pub(crate) fn has_lists_of(&self, other: &Self) -> bool {
        let sorted = |part: &[VertexId]| {
            let mut part = part.to_vec();
            part.sort_unstable();
            part
        };
        let are_equal = |rank: usize| {
            let parts = self.parts(rank).into_iter().zip(other.parts(rank));
            self.slices[rank][LEN] == other.slices[rank][LEN]
                && parts.into_iter().all(|(part, other)| sorted(part) == sorted(other))
        };
        self.doubles == other.doubles
            && self.num_vertices() == other.num_vertices()
            && (0..self.num_vertices()).all(are_equal)
    }
}

#[cfg(test)]
mod tests {
    use anden_base::parallel::Pool;
    use anden_testkit::for_each_graph;

    use super::*;

    #[test]
    fn wrong_lists_are_refused() {
        let pool = Pool::new(2).unwrap();
        let ctx = Context::new(&pool);
        let mut num_refused = 0;
        for_each_graph(|name, graph| {
            let (made, ranks) = Oriented::build(&ctx, graph, 3).unwrap();
            let read = |made: &Oriented, ranks: &[VertexId]| {
                let arrays = made.arrays(ranks).iter().map(|pieces| pieces[0]).collect::<Vec<_>>();
                Oriented::from_arrays(&ctx, graph, 3, &arrays).map(|(oriented, ranks)| (oriented, ranks.to_vec()))
            };
            let (found, found_ranks) = read(&made, &ranks).unwrap();
            assert!(found.has_lists_of(&made) && found_ranks == ranks, "{name}");
            let Some(rank) = (0..made.num_vertices()).rfind(|&rank| !made.list(rank).is_empty()) else { return };
            let changed = |change: fn(&mut Oriented, usize)| {
                let slices = made.slices.clone();
                let mut wrong = Oriented { slices, doubles: made.doubles.clone(), targets: made.targets.clone() };
                change(&mut wrong, rank);
                read(&wrong, &ranks).is_err()
            };
            assert!(changed(|wrong, rank| wrong.slices[rank][LEN] = u32::MAX), "{name}");
            assert!(changed(|wrong, rank| wrong.slices[rank][1] = u32::MAX), "{name}");
            assert!(changed(|wrong, rank| wrong.targets[super::super::start_of(wrong.slices[rank])] = rank as u32));
            assert!(read(&made, &ranks[1..]).is_err(), "{name}");
            let beyond = vec![made.num_vertices() as VertexId; ranks.len()];
            assert!(read(&made, &beyond).is_err(), "{name}");
            num_refused += 1;
        });
        assert!(num_refused > 5);
    }
}
