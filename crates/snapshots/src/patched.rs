//! Pages that deltas change: the base's lists with the changes of deltas.
//!
//! A page in fragments leaves most lists in the mapped base. A changed list is several slices: those of the base's list
//! between removals, and one in memory with the additions. A short list is rewritten, because one slice is read faster
//! than two.
//!
//! Fragments take little memory, and twice the time of a plain list. So a page is rewritten as a whole, unless it is
//! large and changes little. Pages also stay in fragments once the memory is used up.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use anden_base::VertexId;

use crate::arc_columns::{ArcColumns, ArcValue};
use crate::changes::{ChangedList, EntryBuffer, PageChanges, apply};
use crate::page::{BasePage, WholePage};
use crate::rewritten::{OverflowArena, RewrittenPage};
use crate::table::PAGE_VERTICES;

/// A list of at most this many entries is rewritten.
const SHORT_LIST: usize = 64;

/// A list that loses more than one in this many entries is rewritten, not cut.
const MAX_CUTS: usize = 8;

/// A page of at most this many entries is rewritten, whatever changes: that takes a tenth of a millisecond.
const SMALL_PAGE: usize = 1 << 17;

/// A larger page is rewritten if one in this many of its entries changes.
const MUCH_CHANGED: usize = 64;

/// Most bytes of a page in fragments, besides [`CHANGE_BYTES`] an arc.
pub(crate) const FRAGMENTED_BYTES: u64 = 1 << 10;

/// Bytes of each arc that deltas add or remove: a head, two fragments, the entry, its weight and row. Lists of a
/// multigraph that lose edges are rewritten, and may take more.
pub(crate) const CHANGE_BYTES: u64 = 80;

/// Vertices in a word of the bitmap.
const WORD_BITS: usize = u64::BITS as usize;

/// A page that deltas change.
#[derive(Debug)]
pub(crate) struct PatchedPage {
    form: PatchedForm,
    num_arcs: u64,
    largest_target: Option<VertexId>,
}

#[derive(Debug)]
enum PatchedForm {
    Rewritten(RewrittenPage),
    Fragments(Box<FragmentedPage>),
}

/// A page whose unchanged lists stay in the base.
#[derive(Debug)]
pub(crate) struct FragmentedPage {
    /// Bitmap of the changed lists, and for each word the number of changed lists in the words before.
    changed: [u64; PAGE_VERTICES / WORD_BITS],
    num_before: [u16; PAGE_VERTICES / WORD_BITS],
    /// One for each changed list.
    changed_lists: Vec<ChangedListPlace>,
    fragments: Vec<PageFragment>,
    targets: Vec<VertexId>,
    columns: ArcColumns,
}

/// Place of a changed list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangedListPlace {
    start: u32,
    /// Number of entries of a list in one fragment, or number of its fragments; the highest bits say which.
    len: u32,
}

/// The list is one fragment, in memory.
const IN_MEMORY: u32 = 1 << 31;
/// The list is several fragments.
const FRAGMENTED: u32 = 1 << 30;
/// The bits of a head's length.
const LEN_MASK: u32 = FRAGMENTED - 1;

/// A fragment of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageFragment {
    source: FragmentSource,
    /// Among the targets of the page in its source.
    start: usize,
    len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FragmentSource {
    Base,
    Memory,
}

impl PatchedPage {
    /// The page `base_page` with `changes`, all verified. Written to the arena `arena` if that pays; the flag beside it
    /// says whether the view is short-lived. `whole` is reused memory.
    ///
    /// Cost: the entries of the page; for a page in fragments, the changed entries and those of rewritten lists.
    ///
    /// # Errors
    /// Description of the fault: a removed arc is absent, or an added one is present.
    pub fn new(
        base_page: &BasePage<'_>,
        changes: &PageChanges,
        arena: Option<(&Arc<OverflowArena>, bool)>,
        whole: &mut WholePage,
    ) -> Result<Self, String> {
        let (num_added, num_removed) = changes.num_changes();
        let num_arcs = (base_page.targets.len() + num_added).saturating_sub(num_removed);
        let is_worth_it = num_arcs <= SMALL_PAGE || (num_added + num_removed) * MUCH_CHANGED >= num_arcs;
        // Without an arena, memory is short, or a lazy reader leaves it to the cache: fragments then copy little.
        let mut saves = arena.is_none();
        if let Some((arena, is_short_lived)) = arena.filter(|_| is_worth_it) {
            // Making the page takes its memory several times, so this is asked first.
            if arena.has_room_for(num_arcs) {
                whole.fill(base_page, changes)?;
                if let Some(page) = arena.store(whole, is_short_lived) {
                    let targets = &whole.entries.targets;
                    let (num_arcs, largest_target) = (targets.len() as u64, targets.iter().copied().max());
                    return Ok(Self { form: PatchedForm::Rewritten(page), num_arcs, largest_target });
                }
            }
            // Memory is short, so the fragments must save memory, too.
            saves = true;
        }
        let mut builder = FragmentedPageBuilder::new(base_page, saves);
        for list in changes.lists() {
            builder.add(&list)?;
        }
        let fragments = builder.finish();
        let largest_target = fragments.largest_target(base_page);
        Ok(Self { form: PatchedForm::Fragments(Box::new(fragments)), num_arcs: num_arcs as u64, largest_target })
    }

    /// Number of entries of all its lists.
    pub fn num_arcs(&self) -> u64 {
        self.num_arcs
    }

    /// Largest target of its lists.
    pub fn largest_target(&self) -> Option<VertexId> {
        self.largest_target
    }

    /// The page, if it was rewritten as a whole.
    pub fn rewritten(&self) -> Option<&RewrittenPage> {
        match &self.form {
            PatchedForm::Rewritten(page) => Some(page),
            PatchedForm::Fragments(_) => None,
        }
    }

    /// The page, if it is in fragments.
    pub fn fragments(&self) -> Option<&FragmentedPage> {
        match &self.form {
            PatchedForm::Rewritten(_) => None,
            PatchedForm::Fragments(fragments) => Some(fragments),
        }
    }
}

impl FragmentedPage {
    /// Largest target of the page's lists, unchanged lists of `base_page` included.
    fn largest_target(&self, base_page: &BasePage<'_>) -> Option<VertexId> {
        let mut largest = None;
        for local in 0..PAGE_VERTICES {
            match self.changed_list(local) {
                None => largest = largest.max(base_page.targets[base_page.list(local)].last().copied()),
                // Fragments ascend.
                Some(changed_list) => {
                    let _ = self.for_each_fragment(changed_list, base_page.targets, |fragment| {
                        largest = largest.max(fragment.last().copied());
                        ControlFlow::Continue(())
                    });
                }
            }
        }
        largest
    }

    /// Place of a list; `None` if the list does not change.
    #[inline]
    pub fn changed_list(&self, local: usize) -> Option<ChangedListPlace> {
        let (word, bit) = (local / WORD_BITS, 1 << (local % WORD_BITS));
        (self.changed[word] & bit != 0).then(|| {
            // Counts up to the word, and the bits below, give the position without an entry for each of 1,024 lists.
            let num_before = self.num_before[word] as usize + (self.changed[word] & (bit - 1)).count_ones() as usize;
            self.changed_lists[num_before]
        })
    }

    /// Length of a list.
    #[inline]
    pub fn degree(&self, changed_list: ChangedListPlace) -> usize {
        let ChangedListPlace { start, len } = changed_list;
        let num = (len & LEN_MASK) as usize;
        if len & FRAGMENTED == 0 {
            return num;
        }
        self.fragments[start as usize..start as usize + num].iter().map(|fragment| fragment.len).sum()
    }

    /// Calls `body` with the fragments of a list: source, and range there.
    #[inline(always)]
    fn for_each_source_fragment(
        &self,
        changed_list: ChangedListPlace,
        mut body: impl FnMut(FragmentSource, Range<usize>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let ChangedListPlace { start, len } = changed_list;
        let (start, num) = (start as usize, (len & LEN_MASK) as usize);
        if len & FRAGMENTED != 0 {
            let mut fragments = self.fragments[start..start + num].iter();
            return fragments
                .try_for_each(|fragment| body(fragment.source, fragment.start..fragment.start + fragment.len));
        }
        let source = if len & IN_MEMORY == 0 { FragmentSource::Base } else { FragmentSource::Memory };
        body(source, start..start + num)
    }

    /// Calls `body` with the fragments of a list; `base` holds the page's targets in the base.
    #[inline(always)]
    pub fn for_each_fragment(
        &self,
        changed_list: ChangedListPlace,
        base: &[VertexId],
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.for_each_source_fragment(changed_list, |source, range| match source {
            FragmentSource::Base => body(&base[range]),
            FragmentSource::Memory => body(&self.targets[range]),
        })
    }

    /// As [`for_each_fragment`](Self::for_each_fragment), with values of a column.
    #[inline(always)]
    pub fn for_each_fragment_with<P: ArcValue>(
        &self,
        changed_list: ChangedListPlace,
        base: (&[VertexId], &[P]),
        mut body: impl FnMut(&[VertexId], &[P]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(values) = P::of(&self.columns) else { return ControlFlow::Continue(()) };
        self.for_each_source_fragment(changed_list, |source, range| match source {
            FragmentSource::Base => body(&base.0[range.clone()], &base.1[range]),
            FragmentSource::Memory => body(&self.targets[range.clone()], &values[range]),
        })
    }

    /// A list, if it is one fragment.
    #[inline]
    pub fn single_list<'a>(&'a self, changed_list: ChangedListPlace, base: &'a [VertexId]) -> Option<&'a [VertexId]> {
        let ChangedListPlace { start, len } = changed_list;
        let range = start as usize..start as usize + (len & LEN_MASK) as usize;
        match len & (IN_MEMORY | FRAGMENTED) {
            0 => Some(&base[range]),
            IN_MEMORY => Some(&self.targets[range]),
            _ => None,
        }
    }
}

/// Whether a changed list is rewritten. `saves`: only if it must be.
fn is_rewritten(base_page: &BasePage<'_>, list: &ChangedList<'_>, saves: bool) -> bool {
    let old_len = base_page.list(list.local.into()).len();
    let (num_added, num_removed) = (list.added.targets.len(), list.removed.targets.len());
    // Only `apply` knows which parallel entries go.
    let is_ambiguous = base_page.options.multigraph && num_removed > 0;
    if saves {
        return is_ambiguous;
    }
    old_len + num_added <= SHORT_LIST || num_removed * MAX_CUTS > old_len || is_ambiguous
}

/// Builds a page in fragments.
struct FragmentedPageBuilder<'a> {
    base_page: &'a BasePage<'a>,
    /// Memory has run out: nothing is copied that is in the base.
    saves: bool,
    changed: [u64; PAGE_VERTICES / WORD_BITS],
    changed_lists: Vec<ChangedListPlace>,
    fragments: Vec<PageFragment>,
    entries: EntryBuffer,
    old: EntryBuffer,
}

impl<'a> FragmentedPageBuilder<'a> {
    fn new(base_page: &'a BasePage<'a>, saves: bool) -> Self {
        let (changed_lists, fragments) = (Vec::new(), Vec::new());
        let (changed, entries, old) = Default::default();
        Self { base_page, saves, changed, changed_lists, fragments, entries, old }
    }

    /// The head of a list in one fragment. If the place does not fit into the head, the fragment is stored apart.
    fn changed_list(&mut self, source: FragmentSource, start: usize, len: usize) -> ChangedListPlace {
        if len > LEN_MASK as usize || start > u32::MAX as usize {
            return self.changed_list_in_fragments(&[PageFragment { source, start, len }]);
        }
        let kind = if source == FragmentSource::Memory { IN_MEMORY } else { 0 };
        ChangedListPlace { start: start as u32, len: len as u32 | kind }
    }

    fn changed_list_in_fragments(&mut self, fragments: &[PageFragment]) -> ChangedListPlace {
        let start = self.fragments.len() as u32;
        self.fragments.extend_from_slice(fragments);
        ChangedListPlace { start, len: fragments.len() as u32 | FRAGMENTED }
    }

    /// Adds the next list.
    fn add(&mut self, list: &ChangedList<'_>) -> Result<(), String> {
        let old = self.base_page.list(list.local.into());
        let start = self.entries.targets.len();
        let changed_list = if is_rewritten(self.base_page, list, self.saves) {
            self.old.clear();
            self.base_page.copy(old, &mut self.old);
            apply(self.old.all(), list, self.base_page.options.multigraph, &mut self.entries)?;
            self.changed_list(FragmentSource::Memory, start, self.entries.targets.len() - start)
        } else {
            let mut fragments = cut(self.base_page.targets, old, list.removed.targets)?;
            self.entries.extend(list.added);
            let len = list.added.targets.len();
            if len > 0 {
                fragments.push(PageFragment { source: FragmentSource::Memory, start, len });
            }
            // A list in one fragment needs no entry among the fragments.
            match fragments[..] {
                // An emptied list is an empty range of the base.
                [] => self.changed_list(FragmentSource::Base, 0, 0),
                [PageFragment { source, start, len }] => self.changed_list(source, start, len),
                _ => self.changed_list_in_fragments(&fragments),
            }
        };
        let local = usize::from(list.local);
        self.changed[local / WORD_BITS] |= 1 << (local % WORD_BITS);
        self.changed_lists.push(changed_list);
        Ok(())
    }

    fn finish(self) -> FragmentedPage {
        let columns = ArcColumns::new(self.base_page.options, &self.entries);
        let Self { changed, mut changed_lists, mut fragments, entries: EntryBuffer { mut targets, .. }, .. } = self;
        changed_lists.shrink_to_fit();
        // Memory is short, so reserved memory is given back.
        if self.saves {
            fragments.shrink_to_fit();
            targets.shrink_to_fit();
        }
        let mut num_before = [0; PAGE_VERTICES / WORD_BITS];
        for word in 1..num_before.len() {
            num_before[word] = num_before[word - 1] + changed[word - 1].count_ones() as u16;
        }
        FragmentedPage { changed, num_before, changed_lists, fragments, targets, columns }
    }
}

/// The fragments of a list between its removals, in a simple graph.
fn cut(targets: &[VertexId], list: Range<usize>, removed: &[VertexId]) -> Result<Vec<PageFragment>, String> {
    // One fragment more than removals, and one for the additions.
    let mut fragments = Vec::with_capacity(removed.len() + 2);
    let mut rest = list;
    for &target in removed {
        let index = targets[rest.clone()].binary_search(&target);
        let place = rest.start + index.map_err(|_| format!("an edge to {target} is removed that is not there"))?;
        // Between two removals side by side, no empty fragment is left.
        if place > rest.start {
            fragments.push(PageFragment { source: FragmentSource::Base, start: rest.start, len: place - rest.start });
        }
        rest.start = place + 1;
    }
    if !rest.is_empty() {
        fragments.push(PageFragment { source: FragmentSource::Base, start: rest.start, len: rest.len() });
    }
    Ok(fragments)
}

#[cfg(test)]
mod tests {
    use anden_graph::{Weight, WeightType, Weights};

    use super::*;
    use crate::options::GraphOptions;
    use crate::table::PAGE_OFFSETS;

    /// Budgets rely on these bounds.
    #[test]
    fn a_page_without_memory_takes_what_is_said() {
        const DEGREE: usize = 200;
        let offsets: Vec<u32> = (0..PAGE_OFFSETS).map(|vertex| (vertex * DEGREE) as u32).collect();
        let targets: Vec<VertexId> = (0..PAGE_VERTICES).flat_map(|_| (0..DEGREE as VertexId).map(|i| 2 * i)).collect();
        let options =
            GraphOptions { weight_type: Some(WeightType::F64), edge_properties: true, ..GraphOptions::default() };
        let (weights, rows) = (vec![1.0_f64.bits(); targets.len()], vec![7; targets.len()]);
        let columns = ArcColumns::new(&options, &EntryBuffer { targets: targets.clone(), weights, rows });
        let base_page =
            BasePage { offsets: &offsets, targets: &targets, edge_base: 0, columns: Some(&columns), options: &options };
        for (num_changed, num_added, num_removed) in
            [(1, 1, 0), (1, 0, 1), (1, 9, 9), (PAGE_VERTICES, 1, 1), (7, 0, 25)]
        {
            let (bits, rows) = (vec![1.0_f64.bits(); DEGREE], vec![7; DEGREE]);
            let added: Vec<VertexId> = (0..num_added).map(|i| 2 * i + 1).collect();
            let removed: Vec<VertexId> = (0..num_removed).map(|i| 4 * i + 2).collect();
            let mut changes = PageChanges::default();
            for local in 0..num_changed {
                let entries = |targets: &'_ [VertexId]| -> EntryBuffer {
                    let (weights, rows) = (bits[..targets.len()].to_vec(), rows[..targets.len()].to_vec());
                    EntryBuffer { targets: targets.to_vec(), weights, rows }
                };
                changes.push(local as u16, entries(&added).all(), entries(&removed).all());
            }
            let page = PatchedPage::new(&base_page, &changes, None, &mut WholePage::default()).unwrap();
            let FragmentedPage { changed_lists, fragments, targets, columns, .. } = page.fragments().unwrap();
            let taken = size_of::<PatchedPage>()
                + size_of::<FragmentedPage>()
                + changed_lists.capacity() * size_of::<ChangedListPlace>()
                + fragments.capacity() * size_of::<PageFragment>()
                + targets.capacity() * size_of::<VertexId>()
                + columns.weights.as_ref().map_or(0, Weights::len) * size_of::<f64>()
                + columns.rows.as_ref().map_or(0, |rows| rows.len() * size_of::<u64>());
            let num_arcs = (num_changed * (added.len() + removed.len())) as u64;
            let said = FRAGMENTED_BYTES + CHANGE_BYTES * num_arcs;
            assert!(taken as u64 <= said, "{taken} bytes, {said} are said, of {num_arcs} arcs");
            let shown = |local: usize| {
                let mut list = Vec::new();
                match page.fragments().unwrap().changed_list(local) {
                    Some(changed_list) => {
                        let _ =
                            page.fragments().unwrap().for_each_fragment(changed_list, base_page.targets, |fragment| {
                                list.extend_from_slice(fragment);
                                ControlFlow::Continue(())
                            });
                    }
                    None => list.extend_from_slice(&base_page.targets[base_page.list(local)]),
                }
                list.sort_unstable();
                list
            };
            for local in [0, num_changed - 1, num_changed % PAGE_VERTICES, PAGE_VERTICES - 1] {
                let is_changed = local < num_changed;
                let mut expected: Vec<VertexId> = base_page.targets[base_page.list(local)].to_vec();
                if is_changed {
                    expected.retain(|target| !removed.contains(target));
                    expected.extend(&added);
                    expected.sort_unstable();
                }
                assert_eq!(shown(local), expected, "{local} of {num_changed}");
            }
        }
    }
}
