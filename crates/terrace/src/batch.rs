//! Applies sorted changes, page by page.

use base::VertexId;

use crate::arena::{Arena, Handle, LINE_WORDS, Limit, NOTHING, Newest};
use crate::builder::Builder;
use crate::change::{Applied, Change, Outcome, Sink};
use crate::crew::Crew;
use crate::list::{ListWork, PageCopy, Place, Tiers};
use crate::node::{FANOUT_BITS, Home, Layout, PAGE_BITS, PAGE_VERTICES};
use crate::{Result, Value};

/// How many lists ahead pages are fetched, and the leaves that their blocks lead to.
const PAGES_AHEAD: usize = 20;
const LEAVES_AHEAD: usize = 8;
/// The most lines of a leaf that are fetched ahead.
const MAX_LINES_AHEAD: usize = 6;

/// The lists that changes are applied to, and who helps where one has very many.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a, W> {
    pub(crate) tiers: &'a Tiers,
    pub(crate) newest: &'a Newest,
    pub(crate) crew: &'a Crew<'a, W>,
}

/// The changes of one list among those of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    source: VertexId,
    start: u32,
    page: Handle,
}

fn group<W, C: Change<W>>(newest: &Newest, changes: &[C], groups: &mut Vec<Group>) {
    groups.clear();
    let page = |source: VertexId| newest.page((source >> PAGE_BITS) as usize, Limit::NONE).unwrap_or(NOTHING);
    let mut last = None;
    for (start, change) in changes.iter().enumerate() {
        let source = change.source();
        if last != Some(source) {
            groups.push(Group { source, start: start as u32, page: page(source) });
            last = Some(source);
        }
    }
}

/// Applies changes, which are sorted; appends the numbers of the lowest directories that are stale then.
pub(crate) fn apply_sorted<W: Value, C: Change<W>, S: Sink<C>>(
    builder: &mut Builder<'_>,
    target: Target<'_, W>,
    work: &mut ListWork<W>,
    changes: &[C],
    stale: &mut Vec<u32>,
    sink: &mut S,
) -> Result<Applied> {
    let arena = builder.arena;
    let layout = &target.tiers.layout;
    let mut applied = Applied::default();
    let mut groups = std::mem::take(&mut work.groups);
    group(target.newest, changes, &mut groups);
    let fetch = Fetch { arena, layout, newest: target.newest, groups: &groups };
    (0..PAGES_AHEAD).for_each(|i| fetch.page(i));
    (0..LEAVES_AHEAD).for_each(|i| fetch.leaf::<W>(i));
    let mut i = 0;
    while i < groups.len() {
        let number = groups[i].source >> PAGE_BITS;
        let handle = groups[i].page;
        let mut page = PageCopy { old: arena.words(handle, layout.page_words()), fresh: None };
        while i < groups.len() && groups[i].source >> PAGE_BITS == number {
            fetch.page(i + PAGES_AHEAD);
            fetch.leaf::<W>(i + LEAVES_AHEAD);
            let end = groups.get(i + 1).map_or(changes.len(), |next| next.start as usize);
            let own = &changes[groups[i].start as usize..end];
            let place =
                Place { tiers: target.tiers, page: &mut page, index: groups[i].source as usize % PAGE_VERTICES };
            if place.is_shared(target.crew, own.len()) {
                let (own_applied, own_effects) = work.apply_with(target.crew, builder, place, own)?;
                applied.join(own_applied);
                sink.absorb(own_effects);
            } else {
                work.apply(builder, place, own, &mut Outcome { applied: &mut applied, sink: &mut *sink })?;
            }
            i += 1;
        }
        if let Some(new) = finish_page::<W>(builder, layout, handle, page) {
            target.newest.set(number as usize, new, builder.group);
            let directory = number >> FANOUT_BITS;
            if stale.last() != Some(&directory) {
                stale.push(directory);
            }
        }
    }
    work.groups = groups;
    Ok(applied)
}

/// Seals a page that changed; one without edges becomes nothing.
fn finish_page<W: Value>(
    builder: &mut Builder<'_>,
    layout: &Layout,
    old: Handle,
    page: PageCopy<'_>,
) -> Option<Handle> {
    let mut fresh = page.fresh?;
    let words = builder.arena.fill(&mut fresh);
    layout.set_page_birth(words, builder.group);
    let is_empty = (0..PAGE_VERTICES).all(|i| layout.block::<W>(words, i).degree() == 0);
    if old != NOTHING {
        builder.retire(old, layout.page_birth(page.old), layout.page_words());
    }
    let handle = fresh.seal();
    if is_empty {
        builder.retire(handle, builder.group, layout.page_words());
        return Some(NOTHING);
    }
    Some(handle)
}

/// Brings to the cache what the next changes will read.
struct Fetch<'a> {
    arena: &'a Arena,
    layout: &'a Layout,
    newest: &'a Newest,
    groups: &'a [Group],
}

impl Fetch<'_> {
    /// The page of a group, if it is the first of its page.
    #[inline(always)]
    fn page(&self, index: usize) {
        let Some(group) = self.groups.get(index) else { return };
        let number = group.source >> PAGE_BITS;
        if index > 0 && self.groups[index - 1].source >> PAGE_BITS == number {
            return;
        }
        let page = group.page;
        (0..self.layout.page_lines()).for_each(|line| self.arena.prefetch(page, line));
        if page != NOTHING {
            self.newest.prefetch_before(number as usize);
        }
    }

    /// The leaf of a group whose block is here already.
    #[inline(always)]
    fn leaf<W: Value>(&self, index: usize) {
        let Some(group) = self.groups.get(index) else { return };
        let page = self.arena.words(group.page, self.layout.page_words());
        let block = self.layout.block::<W>(page, group.source as usize % PAGE_VERTICES);
        if block.home() != Home::Block {
            let handle = block.children(1)[0].handle;
            let num_lines = (block.degree() * (1 + W::WORDS)).div_ceil(LINE_WORDS).min(MAX_LINES_AHEAD);
            (0..num_lines).for_each(|line| self.arena.prefetch(handle, line));
        }
    }
}
