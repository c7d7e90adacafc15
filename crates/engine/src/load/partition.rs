//! Spreads arcs over ranges of lists, in parallel and in input order.
//!
//! One pass counts, one pass moves. Arcs are gathered in a one-line buffer for each part before they move. So memory
//! sees whole cache lines, and the TLB does not limit the number of parts. Each worker takes a contiguous share of the
//! input, and the shares follow one another within each part. So the order does not depend on the number of workers.

use std::ops::Range;

use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use bytemuck::Zeroable;

use super::arcs::{Expand, LoadArc, Payload};
use super::sort::bits_below;
use crate::Result;

/// Arcs of a part that, with as much scratch space, fit a second-level cache.
const ARCS_PER_PART: usize = 40 << 10;
/// With more parts, the line buffers would fall out of the cache.
const MAX_PARTS: u32 = 4096;
/// Lists of a part, as bits; bounds the array of degrees.
const MAX_LIST_BITS: u32 = 20;
/// Arcs gathered before they move: one cache line without payload.
const LINE_ARCS: usize = 8;
/// Arcs between two checks for cancellation.
const POLL_ARCS: usize = 1 << 20;

/// Arcs by the range of lists that they belong to.
#[derive(Debug)]
pub(crate) struct ArcPartitions<P: Payload> {
    arcs: Vec<LoadArc<P>>,
    /// The start of each part, and the end of the last.
    bounds: Vec<usize>,
    lists: Range<u64>,
    list_bits: u32,
}

impl<P: Payload> ArcPartitions<P> {
    /// The number of parts.
    pub(crate) fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// The lists that part `index` covers.
    pub(crate) fn lists(&self, index: usize) -> Range<u64> {
        part_lists(&self.lists, self.list_bits, index)
    }

    /// The parts, in order, for sorting in place.
    pub(crate) fn split(&mut self) -> Vec<&mut [LoadArc<P>]> {
        let mut rest = &mut *self.arcs;
        let lens = self.bounds.windows(2).map(|pair| pair[1] - pair[0]);
        lens.map(|len| rest.split_off_mut(..len).expect("parts cover the arcs")).collect()
    }

    /// The first `lens[i]` arcs of each part.
    pub(crate) fn heads(&self, lens: &[usize]) -> Vec<&[LoadArc<P>]> {
        self.bounds.iter().zip(lens).map(|(&start, &len)| &self.arcs[start..start + len]).collect()
    }
}

fn part_lists(lists: &Range<u64>, list_bits: u32, index: usize) -> Range<u64> {
    // Parts are aligned: the low bits of a list are its index in the part.
    let base = lists.start >> list_bits;
    let start = (base + index as u64) << list_bits;
    start.max(lists.start)..(start + (1 << list_bits)).min(lists.end)
}

/// Cuts `lists` so that parts of about `num_arcs` arcs in all fit the cache. Returns the bits of a list within its
/// part, and the number of parts.
fn choose_parts(lists: &Range<u64>, num_arcs: usize) -> (u32, usize) {
    let wanted = (num_arcs / ARCS_PER_PART).max(1) as u64;
    let wanted_bits = bits_below(wanted).min(bits_below(u64::from(MAX_PARTS)));
    let list_bits = bits_below(lists.end - lists.start).saturating_sub(wanted_bits).min(MAX_LIST_BITS);
    let num_parts = match lists.is_empty() {
        true => 0,
        false => ((lists.end - 1) >> list_bits) - (lists.start >> list_bits) + 1,
    };
    (list_bits, num_parts as usize)
}

/// Expands the edges of `blocks`, which are in input order, and spreads the arcs over parts of `lists`. All arcs must
/// belong to `lists`.
///
/// Cost: reads the blocks twice and allocates the arcs once.
pub(crate) fn partition<P: Payload>(
    blocks: &[&[LoadArc<P>]],
    expand: Expand,
    lists: Range<u64>,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<ArcPartitions<P>> {
    let num_given: usize = blocks.iter().map(|block| block.len()).sum();
    let (list_bits, num_parts) = choose_parts(&lists, num_given * expand.factor());
    let base = (lists.start >> list_bits) as u32;
    let part_of = |arc: LoadArc<P>| ((arc.list() >> list_bits) - base) as usize;

    let shares = cut(blocks, pool.num_threads());
    // A share counts for itself: within a part, its arcs follow those of the earlier shares.
    let counts = pool.map_chunks(0..shares.len(), 1, |_, share| {
        let mut counts = vec![0_usize; num_parts];
        for block in &shares[share.start] {
            for piece in block.chunks(POLL_ARCS) {
                // The check below drops incomplete counts.
                if progress.is_cancelled() {
                    break;
                }
                piece.iter().for_each(|&arc| expand.entries(arc, |entry| counts[part_of(entry)] += 1));
            }
        }
        counts
    });
    progress.check()?;

    let mut bounds = vec![0; num_parts + 1];
    for part in 0..num_parts {
        bounds[part + 1] = bounds[part] + counts.iter().map(|counts| counts[part]).sum::<usize>();
    }
    let mut arcs: Vec<LoadArc<P>> = anden_base::memory::zeroed_huge(bounds[num_parts]);
    let mut targets: Vec<Vec<&mut [LoadArc<P>]>> = shares.iter().map(|_| Vec::with_capacity(num_parts)).collect();
    let mut rest = &mut *arcs;
    for part in 0..num_parts {
        // Within a part, the shares follow each other in input order.
        for (targets, counts) in targets.iter_mut().zip(&counts) {
            targets.push(rest.split_off_mut(..counts[part]).expect("the counts add up"));
        }
    }
    // Targets of different workers do not overlap, so they write without a lock.
    pool.for_each_item(shares.into_iter().zip(targets).collect(), |_, (share, targets)| {
        let mut lines = Lines::new(targets);
        for block in share {
            for piece in block.chunks(POLL_ARCS) {
                if progress.is_cancelled() {
                    return;
                }
                piece.iter().for_each(|&arc| expand.entries(arc, |entry| lines.push(part_of(entry), entry)));
            }
        }
        lines.flush();
    });
    progress.check()?;
    Ok(ArcPartitions { arcs, bounds, lists, list_bits })
}

/// Cuts blocks into `num_shares` shares of equal size.
fn cut<'a, P: Payload>(blocks: &[&'a [LoadArc<P>]], num_shares: usize) -> Vec<Vec<&'a [LoadArc<P>]>> {
    let total: usize = blocks.iter().map(|block| block.len()).sum();
    let mut shares = vec![Vec::new(); num_shares];
    let mut start = 0;
    for &block in blocks {
        let mut rest = block;
        while !rest.is_empty() {
            // The share of the next arc, and the end of that share.
            let share = start * num_shares / total;
            let end = ((share + 1) * total).div_ceil(num_shares);
            let (piece, after) = rest.split_at(rest.len().min(end - start));
            shares[share].push(piece);
            start += piece.len();
            rest = after;
        }
    }
    shares
}

/// A line buffer for each part.
struct Lines<'a, P: Payload> {
    lines: Vec<[LoadArc<P>; LINE_ARCS]>,
    fills: Vec<u8>,
    /// The unfilled rest of each part.
    targets: Vec<&'a mut [LoadArc<P>]>,
}

impl<'a, P: Payload> Lines<'a, P> {
    fn new(targets: Vec<&'a mut [LoadArc<P>]>) -> Self {
        let lines = vec![[LoadArc::zeroed(); LINE_ARCS]; targets.len()];
        Self { lines, fills: vec![0; targets.len()], targets }
    }

    #[inline(always)]
    fn push(&mut self, part: usize, arc: LoadArc<P>) {
        let fill = self.fills[part] as usize;
        // The modulo proves the bound to the compiler.
        self.lines[part][fill % LINE_ARCS] = arc;
        self.fills[part] = fill as u8 + 1;
        if fill + 1 == LINE_ARCS {
            self.fills[part] = 0;
            let target = self.targets[part].split_off_mut(..LINE_ARCS).expect("parts were counted");
            // A whole line moves as one array, which the compiler turns into wide stores.
            let target: &mut [LoadArc<P>; LINE_ARCS] = target.try_into().expect("a whole line");
            *target = self.lines[part];
        }
    }

    #[inline(always)]
    fn flush_line(&mut self, part: usize) {
        let fill = std::mem::take(&mut self.fills[part]) as usize;
        let target = self.targets[part].split_off_mut(..fill).expect("parts were counted");
        target.copy_from_slice(&self.lines[part][..fill]);
    }

    fn flush(mut self) {
        (0..self.targets.len()).for_each(|part| self.flush_line(part));
    }
}

#[cfg(test)]
mod tests {
    use anden_base::progress::Silent;

    use super::*;

    #[test]
    fn parts_hold_their_arcs_in_input_order() {
        let arcs: Vec<LoadArc<u32>> =
            (0..200_000_u32).map(|i| LoadArc::new(100 + i.wrapping_mul(2_654_435_761) % 3000, i % 77, i)).collect();
        let blocks: Vec<_> = arcs.chunks(9_999).collect();
        let mut first = None;
        for threads in [1, 3] {
            let pool = Pool::new(threads).unwrap();
            let mut parts = partition(&blocks, Expand::AsGiven, 100..3100, &pool, &Silent).unwrap();
            let (mut total, mut covered) = (0, 100);
            let ranges: Vec<_> = (0..parts.len()).map(|part| parts.lists(part)).collect();
            assert!(ranges.len() > 1);
            for (range, part) in ranges.iter().zip(parts.split()) {
                assert_eq!(range.start, covered);
                covered = range.end;
                total += part.len();
                assert!(part.iter().all(|arc| range.contains(&u64::from(arc.list()))));
                assert!(part.windows(2).all(|pair| pair[0].payload() < pair[1].payload()));
            }
            assert_eq!((covered, total), (3100, arcs.len()));
            let keys: Vec<_> = parts.arcs.iter().map(|arc| (arc.key(), arc.payload())).collect();
            assert_eq!(first.get_or_insert_with(|| keys.clone()), &keys);
        }
    }

    #[test]
    fn no_lists_make_no_parts() {
        let pool = Pool::new(1).unwrap();
        let mut parts = partition::<()>(&[], Expand::Both, 0..0, &pool, &Silent).unwrap();
        assert!(parts.split().is_empty());
    }

    #[test]
    fn shares_cover_the_input_in_order() {
        let arcs: Vec<LoadArc<()>> = (0..100).map(|i| LoadArc::new(i, 0, ())).collect();
        for num_shares in 1..8 {
            let shares = cut(&[&arcs[..1], &arcs[1..1], &arcs[1..60], &arcs[60..]], num_shares);
            let found: Vec<u32> = shares.concat().concat().iter().map(|arc| arc.list()).collect();
            assert_eq!(found, (0..100).collect::<Vec<_>>());
        }
    }
}
