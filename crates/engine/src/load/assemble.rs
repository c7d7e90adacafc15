//! Sorts parts in parallel and hands their lists on in order.

use std::ops::Range;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::progress::Progress;

use super::arcs::{LoadArc, Payload};
use super::lists::{BuiltLists, ListSink};
use super::options::Duplicates;
use super::partition::ArcPartitions;
use super::sort::ListSorter;
use crate::Result;

/// Whether the merged arcs are needed again, for the other direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retain {
    /// Each part begins with its remaining arcs, sorted.
    Merged,
    /// The content of the parts is undefined.
    Nothing,
}

/// How the arcs of a list are ordered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArcOrder {
    /// The bits of a neighbor to sort by; 0 if arcs come by ascending neighbors.
    pub(crate) neighbor_bits: u32,
    /// The treatment of parallel edges.
    pub(crate) duplicates: Duplicates,
}

/// Sorts every part and hands the lists to `sink`. Returns the number of arcs left in each part.
pub(crate) fn assemble<P: Payload>(
    parts: &mut ArcPartitions<P>,
    order: ArcOrder,
    retain: Retain,
    sink: &mut dyn ListSink<P>,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<Vec<usize>> {
    let ranges: Vec<_> = (0..parts.len()).map(|part| parts.lists(part)).collect();
    let mut lens = vec![0; ranges.len()];
    let work = parts.split().into_iter().zip(ranges).zip(&mut lens);
    type Item<'a, P> = ((&'a mut [LoadArc<P>], Range<u64>), &'a mut usize);
    let make = |sorter: &mut ListSorter<P>, item: Item<'_, P>, (first, collected): &mut (VertexId, BuiltLists<P>)| {
        let ((part, lists), left) = item;
        // Once for each part: often enough for the user, and cheap beside a sort.
        progress.check()?;
        *first = lists.start as VertexId;
        let len = part.len() as u64;
        sorter.sort(&mut [&mut *part], lists, collected);
        collected.merge(*first, order.duplicates);
        if retain == Retain::Merged {
            // Merging only removes arcs, so the part has room for the rest.
            let mut places = part.iter_mut();
            collected.for_each_arc(*first, |arc| {
                if let Some(place) = places.next() {
                    *place = arc;
                }
            });
            *left = collected.len();
        }
        progress.advance(len);
        Ok(())
    };
    let sorter = || ListSorter::new(order.neighbor_bits);
    pool.in_order(work, sorter, make, |(first, lists)| sink.append(*first, lists))?;
    Ok(lens)
}
