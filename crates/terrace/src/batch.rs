//! Applies sorted changes, page by page.

use base::VertexId;

use crate::arena::{Arena, Handle, NOTHING};
use crate::builder::Builder;
use crate::change::{Applied, Change, Outcome, Sink};
use crate::directory::{Directory, NewPage};
use crate::list::{ListWork, PageCopy, Place, Tiers};
use crate::node::{Home, Layout, PAGE_BITS, PAGE_VERTICES};
use crate::{Result, Value};

/// How many changes ahead blocks are fetched, and half of it, the leaves that they lead to.
const AHEAD: usize = 16;

/// The lists that changes are applied to.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) tiers: &'a Tiers,
    pub(crate) directory: Directory,
}

/// Applies changes, which are sorted; appends the pages that it made, and those that became empty.
pub(crate) fn apply_sorted<W: Value, C: Change<W>, S: Sink<C>>(
    builder: &mut Builder<'_>,
    target: Target<'_>,
    work: &mut ListWork<W>,
    changes: &[C],
    pages: &mut Vec<NewPage>,
    sink: &mut S,
) -> Result<Applied> {
    let arena = builder.arena;
    let layout = &target.tiers.layout;
    let mut applied = Applied::default();
    let fetch = Fetch { arena, layout, directory: target.directory };
    changes.iter().take(AHEAD).for_each(|change| fetch.block(change.source()));
    changes.iter().take(AHEAD / 2).for_each(|change| fetch.leaf::<W>(change.source()));
    let mut start = 0;
    while start < changes.len() {
        let number = changes[start].source() >> PAGE_BITS;
        let handle = target.directory.page(arena, number);
        let mut page = PageCopy { old: arena.words(handle, layout.page_words()), fresh: None };
        while start < changes.len() && changes[start].source() >> PAGE_BITS == number {
            let source = changes[start].source();
            let len = 1 + changes[start + 1..].iter().take_while(|change| change.source() == source).count();
            fetch.ahead::<W, C>(changes, start, len);
            let own = &changes[start..start + len];
            let index = source as usize % PAGE_VERTICES;
            let place = Place { tiers: target.tiers, page: &mut page, index };
            work.apply(builder, place, own, &mut Outcome { applied: &mut applied, sink: &mut *sink })?;
            start += len;
        }
        if let Some(new) = finish_page::<W>(builder, layout, handle, page) {
            pages.push((number, new));
        }
    }
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
    directory: Directory,
}

impl Fetch<'_> {
    /// The changes from `start` on, `len` of them, are next.
    #[inline(always)]
    fn ahead<W: Value, C: Change<W>>(&self, changes: &[C], start: usize, len: usize) {
        let len = len.min(AHEAD);
        for i in start + AHEAD..start + AHEAD + len {
            match changes.get(i) {
                Some(change) if change.source() != changes[i - 1].source() => self.block(change.source()),
                _ => {}
            }
        }
        for i in start + AHEAD / 2..start + AHEAD / 2 + len {
            match changes.get(i) {
                Some(change) if change.source() != changes[i - 1].source() => self.leaf::<W>(change.source()),
                _ => {}
            }
        }
    }

    #[inline(always)]
    fn block(&self, vertex: VertexId) {
        let page = self.directory.page(self.arena, vertex >> PAGE_BITS);
        self.arena.prefetch(page, self.layout.block_line(vertex as usize % PAGE_VERTICES));
    }

    #[inline(always)]
    fn leaf<W: Value>(&self, vertex: VertexId) {
        let page = self.directory.page(self.arena, vertex >> PAGE_BITS);
        let block =
            self.layout.block::<W>(self.arena.words(page, self.layout.page_words()), vertex as usize % PAGE_VERTICES);
        if block.home() != Home::Block {
            let handle = block.children(1)[0].handle;
            let num_lines = block.degree().div_ceil(16).min(4);
            (0..num_lines).for_each(|line| self.arena.prefetch(handle, line));
        }
    }
}
