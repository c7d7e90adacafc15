//! Applies sorted changes, page by page.

use anden_base::VertexId;

use crate::arena::{Handle, LINE_WORDS, Limit, NOTHING, Newest, NodeArena};
use crate::builder::NodeBuilder;
use crate::change::{AppliedArcs, BatchEffect, Change, Sink};
use crate::contexts::WorkerContexts;
use crate::list::{ChangedBlock, ListChangeGroup, ListWork, PageCopy, Tiers};
use crate::node::{FANOUT_BITS, ListTier, PAGE_BITS, PAGE_VERTICES, VertexBlockLayout};
use crate::{EntryValue, Result};

/// Prefetch distances in lists: for pages, and for the leaves that their blocks lead to.
const PAGES_AHEAD: usize = 20;
const LEAVES_AHEAD: usize = 8;
/// Maximum number of lines of a leaf to prefetch.
const MAX_LINES_AHEAD: usize = 6;

/// The lists that changes apply to, and the helpers for very long groups.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a, W> {
    pub(crate) tiers: &'a Tiers,
    pub(crate) newest: &'a Newest,
    pub(crate) contexts: &'a WorkerContexts<'a, W>,
}

fn group<W, C: Change<W>>(newest: &Newest, changes: &[C], groups: &mut Vec<ListChangeGroup>) {
    groups.clear();
    // No limit: the writer builds on the pages of its own group, too.
    let page = |source: VertexId| newest.page((source >> PAGE_BITS) as usize, Limit::NONE).unwrap_or(NOTHING);
    let mut last = None;
    for (start, change) in changes.iter().enumerate() {
        let source = change.source();
        if last != Some(source) {
            groups.push(ListChangeGroup { source, start: start as u32, page: page(source) });
            last = Some(source);
        }
    }
}

/// Applies sorted changes, and appends the numbers of the lowest directories that they make stale.
pub(crate) fn apply_sorted<W: EntryValue, C: Change<W>, S: Sink<C>>(
    builder: &mut NodeBuilder<'_>,
    target: Target<'_, W>,
    work: &mut ListWork<W>,
    changes: &[C],
    stale: &mut Vec<u32>,
    sink: &mut S,
) -> Result<AppliedArcs> {
    let arena = builder.arena;
    let layout = &target.tiers.layout;
    let mut applied = AppliedArcs::default();
    let mut groups = std::mem::take(&mut work.groups);
    group(target.newest, changes, &mut groups);
    let fetch = Fetch { arena, layout, newest: target.newest, groups: &groups };
    // The first groups. Later ones are fetched while earlier ones are applied.
    (0..PAGES_AHEAD).for_each(|i| fetch.page(i));
    (0..LEAVES_AHEAD).for_each(|i| fetch.leaf::<W>(i));
    let mut i = 0;
    while i < groups.len() {
        let number = groups[i].source >> PAGE_BITS;
        let handle = groups[i].page;
        // All lists of a page share one copy of it.
        let mut page = PageCopy { old: arena.words(handle, layout.page_words()), fresh: None };
        while i < groups.len() && groups[i].source >> PAGE_BITS == number {
            fetch.page(i + PAGES_AHEAD);
            fetch.leaf::<W>(i + LEAVES_AHEAD);
            let end = groups.get(i + 1).map_or(changes.len(), |next| next.start as usize);
            let own = &changes[groups[i].start as usize..end];
            let place =
                ChangedBlock { tiers: target.tiers, page: &mut page, index: groups[i].source as usize % PAGE_VERTICES };
            if place.is_shared(target.contexts, own.len()) {
                let (own_applied, own_effects) = work.apply_with(target.contexts, builder, place, own)?;
                applied.join(own_applied);
                sink.absorb(own_effects);
            } else {
                work.apply(builder, place, own, &mut BatchEffect { applied: &mut applied, sink: &mut *sink })?;
            }
            i += 1;
        }
        if let Some(new) = finish_page::<W>(builder, layout, handle, page) {
            target.newest.set(number as usize, new, builder.group);
            let directory = number >> FANOUT_BITS;
            // Sources ascend, so this comparison finds every repetition.
            if stale.last() != Some(&directory) {
                stale.push(directory);
            }
        }
    }
    work.groups = groups;
    Ok(applied)
}

/// Seals a changed page. A page without arcs becomes [`NOTHING`].
fn finish_page<W: EntryValue>(
    builder: &mut NodeBuilder<'_>,
    layout: &VertexBlockLayout,
    old: Handle,
    page: PageCopy<'_>,
) -> Option<Handle> {
    let mut fresh = page.fresh?;
    let words = builder.arena.fill(&mut fresh);
    layout.set_page_birth(words, builder.group);
    // An empty page takes no memory: readers find the page of zeros instead.
    let is_empty = (0..PAGE_VERTICES).all(|i| layout.block::<W>(words, i).degree() == 0);
    if old != NOTHING {
        builder.retire(old, layout.page_birth(page.old), layout.page_words());
    }
    let handle = fresh.seal();
    if is_empty {
        // It was made in this group, so its lines are free at once.
        builder.retire(handle, builder.group, layout.page_words());
        return Some(NOTHING);
    }
    Some(handle)
}

/// Prefetches what the next changes read.
struct Fetch<'a> {
    arena: &'a NodeArena,
    layout: &'a VertexBlockLayout,
    newest: &'a Newest,
    groups: &'a [ListChangeGroup],
}

impl Fetch<'_> {
    /// Fetches the page of a group, unless the group before it shares that page.
    #[inline(always)]
    fn page(&self, index: usize) {
        let Some(group) = self.groups.get(index) else { return };
        let number = group.source >> PAGE_BITS;
        if index > 0 && self.groups[index - 1].source >> PAGE_BITS == number {
            return;
        }
        let page = group.page;
        (0..self.layout.page_lines()).for_each(|line| self.arena.prefetch(page, line));
        // The table entry is written when the page is replaced.
        if page != NOTHING {
            self.newest.prefetch_before(number as usize);
        }
    }

    /// Fetches the first leaf, or the root of the B-tree, of a group whose block is already fetched.
    #[inline(always)]
    fn leaf<W: EntryValue>(&self, index: usize) {
        let Some(group) = self.groups.get(index) else { return };
        let page = self.arena.words(group.page, self.layout.page_words());
        let block = self.layout.block::<W>(page, group.source as usize % PAGE_VERTICES);
        if block.home() != ListTier::Block {
            let handle = block.children(1)[0].handle;
            let num_lines = (block.degree() * (1 + W::WORDS)).div_ceil(LINE_WORDS).min(MAX_LINES_AHEAD);
            (0..num_lines).for_each(|line| self.arena.prefetch(handle, line));
        }
    }
}
