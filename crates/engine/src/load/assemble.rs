//! Sorting parts side by side and handing their lists on in order.

use std::ops::Range;

use base::VertexId;
use base::parallel::Pool;
use base::progress::Progress;

use super::arcs::{KeyedArc, Payload};
use super::lists::{ListSink, Lists};
use super::options::Duplicates;
use super::partition::Parts;
use super::sort::ListSorter;
use crate::Result;

/// Whether the arcs that were taken are wanted again, for the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retain {
    /// Each part begins with what was left of it, sorted.
    Merged,
    /// The parts hold anything.
    Nothing,
}

/// How the entries of lists come to be in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    /// The bits of a neighbour to be sorted by; 0 where input order is the order of neighbours.
    pub(crate) neighbour_bits: u32,
    /// What becomes of parallel edges.
    pub(crate) duplicates: Duplicates,
}

/// Sorts every part and hands the lists to `sink`; returns how much is left of each part.
pub(crate) fn assemble<P: Payload>(
    parts: &mut Parts<P>,
    order: Order,
    retain: Retain,
    sink: &mut dyn ListSink<P>,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<Vec<usize>> {
    let ranges: Vec<_> = (0..parts.len()).map(|part| parts.lists(part)).collect();
    let mut lens = vec![0; ranges.len()];
    let work = parts.split().into_iter().zip(ranges).zip(&mut lens);
    type Item<'a, P> = ((&'a mut [KeyedArc<P>], Range<u64>), &'a mut usize);
    let make = |sorter: &mut ListSorter<P>, item: Item<'_, P>, (first, collected): &mut (VertexId, Lists<P>)| {
        let ((part, lists), left) = item;
        progress.check()?;
        *first = lists.start as VertexId;
        let len = part.len() as u64;
        sorter.sort(&mut [&mut *part], lists, collected);
        collected.merge(*first, order.duplicates);
        if retain == Retain::Merged {
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
    let sorter = || ListSorter::new(order.neighbour_bits);
    pool.in_order(work, sorter, make, |(first, lists)| sink.append(*first, lists))?;
    Ok(lens)
}
