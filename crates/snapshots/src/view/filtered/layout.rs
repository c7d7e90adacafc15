//! Lays filtered entries out in arrays in memory. All threads work on both directions.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anden_base::VertexId;
use anden_base::memory::{as_atomic_u32, zeroed_huge};
use anden_base::parallel::Pool;
use anden_base::simd::prefetch;

use crate::base::{ArcSlots, ArrayLists, OpenBase, PageOffsets};
use crate::lists::ListRules;
use crate::options::GraphOptions;
use crate::table::{PAGE_OFFSETS, PAGE_VERTICES, num_pages, page_of};
use crate::view::entries::Entries;
use crate::{Error, Result};

/// Pages that a worker handles at once.
const CHUNK_PAGES: usize = 16;

/// Most workers that fill in-lists: each has its own counts of four bytes a vertex.
const MAX_GROUPS: usize = 16;

/// The distance, in entries, at which the transpose prefetches counts, and then slots.
const COUNTS_AHEAD: usize = 32;
const SLOTS_AHEAD: usize = 16;

/// The filtered out-lists of a page.
pub(super) struct KeptPage {
    offsets: PageOffsets,
    /// Without their sources.
    entries: Entries,
    num_loops: u64,
}

impl KeptPage {
    /// The lists of the page that starts with the vertex `first`.
    ///
    /// # Errors
    /// The lists have more entries than a page may have.
    pub fn new(first: usize, mut entries: Entries) -> Result<Self> {
        let mut degrees = [0_u64; PAGE_VERTICES];
        // Taken out: from here on, the offsets say which source an entry has.
        let sources = std::mem::take(&mut entries.sources);
        sources.iter().for_each(|&source| degrees[source as usize - first] += 1);
        let num_loops = sources.iter().zip(&entries.targets).filter(|(source, target)| source == target).count() as u64;
        Ok(Self { offsets: page_offsets(first, degrees.into_iter())?, entries, num_loops })
    }

    pub fn num_loops(&self) -> u64 {
        self.num_loops
    }

    /// The nonempty lists: position of the vertex in the page, and range of entries.
    fn lists(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let offsets = self.offsets.as_deref().unwrap_or_default();
        let lists = offsets.windows(2).map(|ends| ends[0] as usize..ends[1] as usize).enumerate();
        lists.filter(|(_, list)| !list.is_empty())
    }
}

/// The offsets of a page whose lists have these lengths; the page starts with the vertex `first`.
fn page_offsets(first: usize, degrees: impl Iterator<Item = u64>) -> Result<PageOffsets> {
    let (mut offsets, mut end) = (Vec::with_capacity(PAGE_OFFSETS), 0);
    offsets.push(0);
    for degree in degrees {
        end += degree;
        offsets.push(end as u32);
    }
    // Checked at the end: truncated offsets of a page that is too large are never used.
    if end > u64::from(u32::MAX) {
        let last = (first + PAGE_VERTICES - 1) as u64;
        return Err(Error::PageTooLarge { first: first as u64, last, num_edges: end });
    }
    // The last page may have fewer vertices; the others get empty lists.
    offsets.resize(PAGE_OFFSETS, end as u32);
    Ok((end > 0).then(|| offsets.into_boxed_slice()))
}

/// Bytes of a layout that depend on the vertices alone: the offsets of both directions, twice, and the counts of the
/// transpose.
pub(super) fn vertex_bytes(options: &GraphOptions, vertex_bound: usize, pool: &Pool) -> u64 {
    let (offsets, counts) = if options.stores_in_lists() { (16, 4 * num_groups(pool)) } else { (8, 0) };
    (vertex_bound * (offsets + counts)) as u64
}

/// The number of workers that fill in-lists.
fn num_groups(pool: &Pool) -> usize {
    pool.num_threads().min(MAX_GROUPS)
}

/// Joins the pages, and makes the in-lists from them if the graph stores in-lists.
///
/// Cost: copies each entry once a direction; four bytes a vertex and thread.
///
/// # Errors
/// A page of in-lists has more entries than a page may have.
pub(super) fn lay_out(
    options: &GraphOptions,
    vertex_bound: usize,
    mut pages: Vec<KeptPage>,
    pool: &Pool,
) -> Result<Arc<OpenBase>> {
    // `ArrayLists` needs all offsets together, and each page needs its own below.
    let offsets: Vec<PageOffsets> = pages.iter_mut().map(|page| page.offsets.take()).collect();
    let mut out_lists = ArrayLists::new(options, &offsets, pool);
    pages.iter_mut().zip(offsets).for_each(|(page, offsets)| page.offsets = offsets);
    let (bases, slots) = (out_lists.edge_bases(), out_lists.slots());
    pool.for_each_chunk(0..pages.len(), CHUNK_PAGES, |_, chunk| {
        // Each page writes a range of its own, so no slot is written twice.
        chunk.for_each(|page| copy(&pages[page].entries, &slots, bases[page]));
    });
    let in_lists = options.stores_in_lists().then(|| transpose(options, vertex_bound, &pages, pool)).transpose()?;
    Ok(OpenBase::in_memory(out_lists, in_lists, ListRules { vertex_bound, multigraph: options.multigraph }))
}

fn copy(entries: &Entries, slots: &ArcSlots<'_>, start: usize) {
    entries.targets.iter().enumerate().for_each(|(place, &target)| slots.put_target(start + place, target));
    entries.weights.iter().enumerate().for_each(|(place, &bits)| slots.put_weight(start + place, bits));
    entries.rows.iter().enumerate().for_each(|(place, &row)| slots.put_row(start + place, row));
}

/// Makes the in-lists. Each worker takes a group of pages, and counts its entries by target. The counts of all groups
/// determine the range of each group in each in-list. So the lists ascend without sorting.
fn transpose(options: &GraphOptions, vertex_bound: usize, pages: &[KeptPage], pool: &Pool) -> Result<ArrayLists> {
    let groups = groups_of(pages, num_groups(pool));
    let mut counts = pool.share(groups.clone(), |_, group| {
        // Each group counts apart, so that no counter is shared.
        let mut counts = zeroed_huge::<u32>(vertex_bound);
        let targets = pages[group].iter().flat_map(|page| &page.entries.targets);
        targets.for_each(|&target| counts[target as usize] += 1);
        counts
    });
    let offsets = in_offsets(vertex_bound, &mut counts, pool)?;
    let mut lists = ArrayLists::new(options, &offsets, pool);
    let (bases, slots) = (lists.edge_bases(), lists.slots());
    pool.for_each_item(groups.into_iter().zip(counts).collect(), |_, (group, mut starts)| {
        for page in group {
            let entries = &pages[page].entries;
            let slot_of = |target: VertexId, starts: &[u32]| bases[page_of(target)] + starts[target as usize] as usize;
            for (place, list) in pages[page].lists() {
                let source = (page * PAGE_VERTICES + place) as VertexId;
                for entry in list {
                    // Targets are scattered over all memory: their counts and slots are fetched some entries before.
                    if let Some(&ahead) = entries.targets.get(entry + COUNTS_AHEAD) {
                        prefetch(&starts, ahead as usize);
                    }
                    if let Some(&ahead) = entries.targets.get(entry + SLOTS_AHEAD) {
                        slots.prefetch(slot_of(ahead, &starts));
                    }
                    let target = entries.targets[entry];
                    let slot = slot_of(target, &starts);
                    starts[target as usize] += 1;
                    slots.put_target(slot, source);
                    entries.weights.get(entry).into_iter().for_each(|&bits| slots.put_weight(slot, bits));
                    entries.rows.get(entry).into_iter().for_each(|&row| slots.put_row(slot, row));
                }
            }
        }
    });
    Ok(lists)
}

/// Cuts the pages into at most `num_groups` ranges with about equal numbers of entries.
fn groups_of(pages: &[KeptPage], num_groups: usize) -> Vec<Range<usize>> {
    let num_arcs: usize = pages.iter().map(|page| page.entries.len()).sum();
    let (mut groups, mut start, mut num_before) = (Vec::new(), 0, 0);
    for (page, kept) in pages.iter().enumerate() {
        num_before += kept.entries.len();
        // The last group takes the rest, so that every page is in one.
        if groups.len() + 1 < num_groups && num_before >= num_arcs * (groups.len() + 1) / num_groups {
            groups.push(start..page + 1);
            start = page + 1;
        }
    }
    groups.push(start..pages.len());
    groups
}

/// The offsets of the in-lists. The count of each group becomes the position in the page where its entries start.
fn in_offsets(vertex_bound: usize, counts: &mut [Vec<u32>], pool: &Pool) -> Result<Vec<PageOffsets>> {
    // One worker handles each page, so no count is contended; atomics only allow the shared access.
    let counts: Vec<&[AtomicU32]> = counts.iter_mut().map(|counts| as_atomic_u32(counts)).collect();
    let chunks = pool.map_chunks(0..num_pages(vertex_bound), CHUNK_PAGES, |_, pages| {
        let offsets = pages.map(|page| {
            let first = page * PAGE_VERTICES;
            let vertices = first..vertex_bound.min(first + PAGE_VERTICES);
            let count = |vertex: usize| counts.iter().map(move |counts| &counts[vertex]);
            let degree = |vertex: usize| count(vertex).map(|count| u64::from(count.load(Ordering::Relaxed))).sum();
            let offsets = page_offsets(first, vertices.clone().map(degree))?;
            for (vertex, &start) in vertices.zip(offsets.as_deref().unwrap_or_default()) {
                count(vertex).fold(start, |start, count| start + count.swap(start, Ordering::Relaxed));
            }
            Ok(offsets)
        });
        offsets.collect::<Result<Vec<_>>>()
    });
    Ok(chunks.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use anden_graph::{Direction, WeightType, Weights};
    use anden_testkit::Random;

    use super::*;

    /// Three and a half pages; the second page has no out-lists.
    const VERTICES: usize = 3 * PAGE_VERTICES + PAGE_VERTICES / 2;

    /// A source, a target, the bits of a weight and a row.
    type Arc = (VertexId, VertexId, u64, u64);

    fn random_arcs(random: &mut Random) -> Vec<Arc> {
        let mut arcs: Vec<Arc> = (0..20_000)
            .map(|row| (random.below(VERTICES as u32), random.below(VERTICES as u32), row * 7, row))
            .filter(|&(source, ..)| page_of(source) != 1)
            .collect();
        // A hub in both directions, and parallel arcs.
        arcs.extend(
            (0..3_000).map(|row| (5, row % 2_000, row, 20_000 + row as u64)).map(|(s, t, w, r)| (s, t, w.into(), r)),
        );
        arcs.extend((0..3_000_u32).map(|row| (row % 1_000, 9, 0, 30_000 + u64::from(row))));
        arcs.sort_unstable_by_key(|&(source, target, _, row)| (source, target, row));
        arcs
    }

    fn pages(arcs: &[Arc]) -> Vec<KeptPage> {
        (0..num_pages(VERTICES))
            .map(|page| {
                let mut entries = Entries::default();
                for &(source, target, weight, row) in arcs.iter().filter(|arc| page_of(arc.0) == page) {
                    entries.sources.push(source);
                    entries.targets.push(target);
                    entries.weights.push(weight);
                    entries.rows.push(row);
                }
                KeptPage::new(page * PAGE_VERTICES, entries).unwrap()
            })
            .collect()
    }

    /// The arcs of one direction, from the lists.
    fn arcs_of(base: &OpenBase, direction: Direction) -> Vec<Arc> {
        let lists = base.lists(direction).unwrap();
        let Some(Weights::U32(weights)) = &lists.columns().weights else { panic!("weights are there") };
        let rows = lists.columns().rows.as_ref().unwrap();
        let arcs = (0..VERTICES as VertexId).flat_map(|vertex| {
            let list = lists.list(vertex).unwrap();
            list.map(move |place| (vertex, lists.targets()[place], weights[place].into(), rows[place]))
        });
        arcs.collect()
    }

    #[test]
    fn lists_of_both_directions_hold_the_arcs_in_order() {
        let options = GraphOptions {
            weight_type: Some(WeightType::U32),
            edge_properties: true,
            multigraph: true,
            ..Default::default()
        };
        for (seed, num_threads) in [(1, 1), (2, 2), (3, 3), (4, 20)] {
            let pool = Pool::new(num_threads).unwrap();
            let arcs = random_arcs(&mut Random::new(seed));
            let base = lay_out(&options, VERTICES, pages(&arcs), &pool).unwrap();
            assert_eq!(arcs_of(&base, Direction::Out), arcs, "{num_threads} threads");
            let mut turned: Vec<Arc> = arcs.iter().map(|&(s, t, weight, row)| (t, s, weight, row)).collect();
            turned.sort_unstable_by_key(|&(list, other, _, row)| (list, other, row));
            assert_eq!(arcs_of(&base, Direction::In), turned, "{num_threads} threads");
        }
        let empty = lay_out(&options, VERTICES, pages(&[]), &Pool::new(2).unwrap()).unwrap();
        assert_eq!((empty.num_arcs(), arcs_of(&empty, Direction::In).len()), (0, 0));
    }

    #[test]
    fn groups_have_about_equal_numbers_of_entries() {
        let arcs: Vec<Arc> = (0..VERTICES as VertexId).map(|vertex| (vertex, 0, 0, 0)).collect();
        let pages = pages(&arcs);
        assert_eq!(groups_of(&pages, 1), vec![0..4; 1]);
        assert_eq!(groups_of(&pages, 2), [0..2, 2..4]);
        assert_eq!(groups_of(&pages, 9), [0..1, 1..2, 2..3, 3..4, 4..4]);
    }
}
