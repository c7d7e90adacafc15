//! Rounds without bins: along in-edges, or along out-edges by ranges of targets.

use std::hint::select_unpredictable;
use std::ops::{ControlFlow, Range};

use anden_base::VertexId;
use anden_base::table::TABLE_LEN;
use anden_graph::{DensePage, Direction, Graph, Page, PageOffset};

use super::bins::MAX_PARTITION_BITS;
use super::score::{BLOCK, PageRankBlockSums, PageRankState, Round, Score};
use crate::Context;
use crate::walk::{for_each_out_list, sample};

/// The bytes of contributions that stay in the second-level cache.
const CACHED_BYTES: usize = 1 << 20;

/// The bytes of contributions that stay in the cache that cores share, on most machines. Twice as many, of 4,194,304
/// vertices in 32 bits, made a pull 1.75 times slower than bins in 64 bits, in 32 MB of shared cache.
const SHARED_CACHE_BYTES: usize = 8 << 20;

/// Rounds after which bins have paid for their build.
const FEW_ROUNDS: u32 = 10;

/// Below this mean degree, bins pay for themselves sooner: a pull takes a constant time for each list.
const MIN_DEGREE: u64 = 3;

/// With more arcs to a slot, bins have paid for their build after fewer than [`FEW_ROUNDS`].
const ARCS_OF_A_SLOT: usize = 3;

/// Number of sampled lists.
const SAMPLED_LISTS: usize = 1024;

/// Whether the contributions of this many vertices stay in the second-level cache.
pub(super) fn fits_cache<T: Score>(num_vertices: usize) -> bool {
    num_vertices <= CACHED_BYTES / size_of::<T>()
}

/// Whether a pull takes less time than bins and their build, or a push without in-edges. It finds all contributions in
/// the second-level cache if there are few. For a few rounds, it may find them in the shared cache if bins would save
/// little traffic.
pub(super) fn is_better<T: Score>(graph: &impl Graph, num_rounds: u32) -> bool {
    let bound = graph.vertex_bound();
    let may_pay = graph.has_lists(Direction::In)
        && num_rounds <= FEW_ROUNDS
        && graph.num_arcs() >= MIN_DEGREE * bound as u64
        && bound <= SHARED_CACHE_BYTES / size_of::<T>();
    fits_cache::<T>(bound) || (may_pay && has_scattered_lists(graph))
}

/// Whether bins need a slot for more than one in [`ARCS_OF_A_SLOT`] arcs, by lists at even distances. A list takes a slot
/// for each partition in which it has targets.
fn has_scattered_lists(graph: &impl Graph) -> bool {
    let (mut num_slots, mut num_seen) = (0, 0);
    for vertex in sample(graph.vertex_bound(), SAMPLED_LISTS) {
        let _ = graph.for_each_fragment(Direction::Out, vertex, |list| {
            num_seen += list.len();
            num_slots += list.chunk_by(|a, b| a >> MAX_PARTITION_BITS == b >> MAX_PARTITION_BITS).count();
            // The first fragment suffices for a sample.
            ControlFlow::Break(())
        });
    }
    ARCS_OF_A_SLOT * num_slots > num_seen
}

/// Vertices of a block of a pull: the lists of a few thousand vertices may differ much in length.
const PULL_BLOCK: usize = 1 << 12;

/// One round along the in-edges. `next` is as long as the contributions, or empty to save memory.
pub(super) fn pull_round<T: Score>(
    ctx: &Context<'_>,
    graph: &impl Graph,
    next: &mut Vec<T>,
    state: &mut PageRankState<T>,
    round: &Round<T>,
) -> Vec<PageRankBlockSums> {
    let has_room = !next.is_empty();
    let (parts, contributions) = state.parts(PULL_BLOCK);
    let contributions = &*contributions;
    let mut blocks = vec![PageRankBlockSums::default(); parts.len()];
    let room = next.chunks_mut(PULL_BLOCK).map(Some).chain(std::iter::repeat_with(|| None));
    let items = parts.into_iter().zip(&mut blocks).zip(room).collect();
    ctx.pool.for_each_item(items, |_, ((mut part, block), next)| {
        if !ctx.progress.is_cancelled() {
            let sums = in_sums(graph, part.vertices(), contributions);
            *block = part.rescore(round, &sums);
            // While the scores are in the cache.
            next.into_iter().for_each(|next| part.contribute(next));
        }
    });
    match has_room {
        true => state.replace_contributions(next),
        // Only now: other workers read the old contributions until their blocks are done.
        false => contribute(ctx, state),
    }
    blocks
}

/// Computes the contributions of the next round, once no worker reads those of the last.
pub(super) fn contribute<T: Score>(ctx: &Context<'_>, state: &mut PageRankState<T>) {
    let (parts, contributions) = state.parts(BLOCK);
    let items = parts.into_iter().zip(contributions.chunks_mut(BLOCK)).collect();
    ctx.pool.for_each_item(items, |_, (part, contributions)| part.contribute(contributions));
}

fn in_sums<T: Score>(graph: &impl Graph, vertices: Range<VertexId>, contributions: &[T]) -> Vec<T> {
    let first = vertices.start;
    let mut sums = vec![T::default(); vertices.len()];
    let _ = graph.for_each_page(Direction::In, vertices, |page| {
        match page {
            Page::Dense(page) => add_page(&page, contributions, &mut sums[(page.first() - first) as usize..]),
            Page::Patched(vertices) => {
                for vertex in vertices {
                    let sum = &mut sums[(vertex - first) as usize];
                    let _ = graph.for_each_fragment(Direction::In, vertex, |fragment| {
                        fragment.iter().for_each(|&source| *sum += contributions[source as usize]);
                        ControlFlow::Continue(())
                    });
                }
            }
            Page::Empty(_) => {}
        }
        ControlFlow::Continue(())
    });
    sums
}

/// Number of lists that are summed side by side. The entries of one list are added one after the other, and each
/// addition waits for the last; those of several lists overlap.
const LANES: usize = 4;

/// A list that is being summed.
#[derive(Clone, Copy)]
struct Lane<'a, T> {
    index: usize,
    rest: &'a [VertexId],
    sum: T,
}

/// From this mean degree on, lists are summed side by side, if the contributions are cached. Additions along shorter
/// lists overlap by themselves. Where contributions are far, a plain loop has more of them under way.
const LONG_LISTS: usize = 16;

/// The first entries of a list, which are added without a branch on its length. The processor mispredicts where a short
/// list ends, which takes longer than these additions. Past the end it adds 0.
const HEAD: usize = 4;

/// Lists of a page that are compared with the next list.
const COMPARED_LISTS: usize = 32;

/// Adds the contributions along the lists of a page, each list in its order.
fn add_page<T: Score, O: PageOffset>(page: &DensePage<'_, O>, contributions: &[T], sums: &mut [T]) {
    let num_entries = page.all_targets().len();
    if num_entries > LONG_LISTS * page.len() && fits_cache::<T>(contributions.len() - TABLE_LEN) {
        add_long_lists(page, contributions, sums);
    } else if num_entries <= HEAD * page.len() && has_uneven_lists(page) {
        add_short_lists(page, contributions, sums);
    } else {
        for (sum, (_, list)) in sums.iter_mut().zip(page.lists()) {
            *sum = sum_of(list, contributions, T::default());
        }
    }
}

/// Whether half of the lists are longer or shorter than the next list, by a sample. The processor predicts the ends
/// of even lists.
fn has_uneven_lists<O: PageOffset>(page: &DensePage<'_, O>) -> bool {
    let indices = (0..page.len().saturating_sub(1)).step_by(page.len().div_ceil(COMPARED_LISTS));
    indices.filter(|&index| page.degree(index) != page.degree(index + 1)).count() >= COMPARED_LISTS / 2
}

/// As [`add_page`], for lists with few entries beyond their [`HEAD`].
fn add_short_lists<T: Score, O: PageOffset>(page: &DensePage<'_, O>, contributions: &[T], sums: &mut [T]) {
    // One of the zeros behind the contributions of the vertices.
    let (targets, none) = (page.all_targets(), contributions.len() - 1);
    debug_assert!(contributions[none] == T::default());
    let mut start = 0;
    for (index, sum) in sums.iter_mut().enumerate().take(page.len()) {
        let end = start + page.degree(index);
        *sum = match targets[start..].first_chunk::<HEAD>() {
            Some(head) => {
                let mut total = T::default();
                for (position, &source) in head.iter().enumerate() {
                    let is_inside = start + position < end;
                    total += contributions[select_unpredictable(is_inside, source as usize, none)];
                }
                sum_of(targets[..end].get(start + HEAD..).unwrap_or_default(), contributions, total)
            }
            // At the end of the page.
            None => sum_of(&targets[start..end], contributions, T::default()),
        };
        start = end;
    }
}

/// `sum` and the contributions along a list, in its order.
#[inline(always)]
fn sum_of<T: Score>(list: &[VertexId], contributions: &[T], mut sum: T) -> T {
    // A local number, which stays in a register.
    list.iter().for_each(|&source| sum += contributions[source as usize]);
    sum
}

/// As [`add_page`], for long lists: keeps [`LANES`] of them in progress, and replaces each one that ends.
fn add_long_lists<T: Score, O: PageOffset>(page: &DensePage<'_, O>, contributions: &[T], sums: &mut [T]) {
    let mut next = 0..page.len().min(sums.len());
    let mut lanes = [Lane { index: 0, rest: &[], sum: T::default() }; LANES];
    'page: loop {
        for lane in &mut lanes {
            while lane.rest.is_empty() {
                // The first time, this writes the 0 that is there.
                sums[lane.index] += lane.sum;
                lane.sum = T::default();
                let Some(index) = next.next() else { break 'page };
                (lane.index, lane.rest) = (index, page.list(index));
            }
        }
        let len = lanes.iter().map(|lane| lane.rest.len()).min().unwrap_or(0);
        let [a, b, c, d] = lanes.each_mut().map(|lane| lane.rest.split_off(..len).unwrap_or(&[]));
        // A copy, which stays in registers.
        let mut totals = lanes.map(|lane| lane.sum);
        for (((&a, &b), &c), &d) in a.iter().zip(b).zip(c).zip(d) {
            for (total, source) in totals.iter_mut().zip([a, b, c, d]) {
                *total += contributions[source as usize];
            }
        }
        lanes.iter_mut().zip(totals).for_each(|(lane, total)| lane.sum = total);
    }
    for lane in lanes {
        sums[lane.index] += sum_of(lane.rest, contributions, lane.sum);
    }
}

/// One round along the out-edges: every worker scans all of them, and adds at its own targets.
pub(super) fn push_round<T: Score>(
    ctx: &Context<'_>,
    graph: &impl Graph,
    sums: &mut [T],
    state: &mut PageRankState<T>,
    round: &Round<T>,
) -> Vec<PageRankBlockSums> {
    // Each worker owns a range of targets, so the sums need no atomics.
    let share = sums.len().div_ceil(ctx.pool.num_threads()).max(1);
    let (_, contributions) = state.parts(BLOCK);
    let contributions = &*contributions;
    let items = sums.chunks_mut(share).enumerate().collect();
    ctx.pool.for_each_item(items, |_, (index, sums): (usize, &mut [T])| {
        sums.fill(T::default());
        add_out_edges(ctx, graph, index * share, sums, contributions);
    });
    let (parts, _) = state.parts(BLOCK);
    let mut blocks = vec![PageRankBlockSums::default(); parts.len()];
    let items = parts.into_iter().zip(sums.chunks(BLOCK)).zip(&mut blocks).collect();
    ctx.pool.for_each_item(items, |_, ((mut part, sums), block)| *block = part.rescore(round, sums));
    contribute(ctx, state);
    blocks
}

fn add_out_edges<T: Score>(ctx: &Context<'_>, graph: &impl Graph, first: usize, sums: &mut [T], contributions: &[T]) {
    let bound = graph.vertex_bound();
    // In blocks, so that a cancellation is noticed soon.
    for start in (0..bound).step_by(BLOCK) {
        if ctx.progress.is_cancelled() {
            return;
        }
        let vertices = start as VertexId..bound.min(start + BLOCK) as VertexId;
        for_each_out_list(graph, vertices, |source, list| {
            let contribution = contributions[source as usize];
            for &target in list {
                // Targets below the range wrap around to numbers above it.
                if let Some(sum) = sums.get_mut((target as usize).wrapping_sub(first)) {
                    *sum += contribution;
                }
            }
        });
    }
}
