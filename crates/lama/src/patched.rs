//! Pages of a view that are not those of the base run: its lists with the changes of levels.
//!
//! Most lists of a page stay where they are, mapped from the base run. One that changed is shown in
//! pieces: slices of the base's list without what was removed, and one piece in memory with what was
//! added. A short list is written anew instead: one piece is read faster than two.
//!
//! Pieces take little memory, and twice the time of a plain list. So a page is written anew as a whole,
//! unless it is large and little of it changes, or the memory for such pages is used up.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use base::VertexId;

use crate::arc_columns::{ArcColumns, ArcValue};
use crate::changes::{ArcData, ChangedList, Entries, EntryBuffer, PageChanges, apply};
use crate::options::GraphOptions;
use crate::rewritten::{RewrittenPage, Room};
use crate::table::{PAGE_OFFSETS, PAGE_VERTICES};

/// A list of at most so many entries is written anew.
const SHORT_LIST: usize = 64;

/// A list that loses more than one in so many entries is written anew, not cut.
const MAX_CUTS: usize = 8;

/// A page of at most so many entries is written anew, whatever changes: that takes a tenth of a millisecond.
const SMALL_PAGE: usize = 1 << 17;

/// A larger one is if one in so many of its entries changes.
const MUCH_CHANGED: usize = 64;

/// What a page takes at most that is not written anew, besides what [`CHANGE_BYTES`] says.
pub(crate) const PIECES_BYTES: u64 = 1 << 10;

/// And for each arc that levels add or remove: a head, two pieces, the entry, its weight and row; not what a multigraph
/// takes, whose lists are written anew where they lose edges.
pub(crate) const CHANGE_BYTES: u64 = 80;

/// A word has a bit for so many vertices.
const WORD_BITS: usize = u64::BITS as usize;

/// A page that levels change.
#[derive(Debug)]
pub(crate) struct PatchedPage {
    form: Form,
    num_arcs: u64,
    largest_target: Option<VertexId>,
}

#[derive(Debug)]
enum Form {
    Rewritten(RewrittenPage),
    Pieces(Box<Pieces>),
}

/// A page whose lists stay where they are, but for what changes.
#[derive(Debug)]
pub(crate) struct Pieces {
    /// Whose lists change, and how many of them are in the words before.
    changed: [u64; PAGE_VERTICES / WORD_BITS],
    num_before: [u16; PAGE_VERTICES / WORD_BITS],
    /// One a list that changes.
    heads: Vec<Head>,
    pieces: Vec<Piece>,
    targets: Vec<VertexId>,
    columns: ArcColumns,
}

/// Where a list is that changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    start: u32,
    /// The number of entries of a list in one piece, or the number of its pieces; the highest bits say which.
    len: u32,
}

/// The list is one piece, in memory.
const IN_MEMORY: u32 = 1 << 31;
/// The list is several pieces.
const IN_PIECES: u32 = 1 << 30;
/// The bits of a head's length.
const LEN_MASK: u32 = IN_PIECES - 1;

/// A piece of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    source: Source,
    /// Among the targets of the page in its source.
    start: usize,
    len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Base,
    Memory,
}

/// A page of the base run, or what became of it, and how its graph is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground<'a> {
    /// The page's offsets, zeros where the base has no edges.
    pub offsets: &'a [u32],
    pub targets: &'a [VertexId],
    /// Where its edges start among all.
    pub edge_base: usize,
    /// What stands beside the targets of all pages; `None` where no page has edges.
    pub columns: Option<&'a ArcColumns>,
    pub options: &'a GraphOptions,
}

/// The offsets of a page without edges.
pub(crate) const NO_OFFSETS: &[u32] = &[0; PAGE_OFFSETS];

impl Ground<'_> {
    /// Where a list is among the targets.
    pub fn list(&self, local: usize) -> Range<usize> {
        self.offsets[local] as usize..self.offsets[local + 1] as usize
    }

    /// Appends these entries.
    pub fn copy(&self, entries: Range<usize>, copy: &mut EntryBuffer) {
        copy.targets.extend_from_slice(&self.targets[entries.clone()]);
        if let Some(columns) = self.columns {
            columns.copy(self.edge_base + entries.start..self.edge_base + entries.end, copy);
        }
    }

    /// What stands beside the target at a place.
    pub fn data(&self, place: usize) -> ArcData {
        self.columns.map_or(ArcData::default(), |columns| columns.data(self.edge_base + place))
    }
}

impl PatchedPage {
    /// The page of `ground` after `changes`, all of which is verified; written to a room if that is worth it, briefly
    /// or for long. `whole` is memory that is used again.
    ///
    /// Cost: the entries of the page, or those that change and those of the lists that are written anew.
    ///
    /// # Errors
    /// What is wrong: something removed is not there, or something added is.
    pub fn new(
        ground: &Ground<'_>,
        changes: &PageChanges,
        room: Option<(&Arc<Room>, bool)>,
        whole: &mut WholePage,
    ) -> Result<Self, String> {
        let (num_added, num_removed) = changes.num_changes();
        let num_arcs = (ground.targets.len() + num_added).saturating_sub(num_removed);
        let is_worth_it = num_arcs <= SMALL_PAGE || (num_added + num_removed) * MUCH_CHANGED >= num_arcs;
        let mut saves = room.is_none();
        if let Some((room, is_brief)) = room.filter(|_| is_worth_it) {
            if room.has_room_for(num_arcs) {
                whole.fill(ground, changes)?;
                if let Some(page) = room.store(whole, is_brief) {
                    let targets = &whole.entries.targets;
                    let (num_arcs, largest_target) = (targets.len() as u64, targets.iter().copied().max());
                    return Ok(Self { form: Form::Rewritten(page), num_arcs, largest_target });
                }
            }
            saves = true;
        }
        let mut builder = Builder::new(ground, saves);
        for list in changes.lists() {
            builder.add(&list)?;
        }
        let pieces = builder.finish();
        let largest_target = pieces.largest_target(ground);
        Ok(Self { form: Form::Pieces(Box::new(pieces)), num_arcs: num_arcs as u64, largest_target })
    }

    /// The entries of all its lists.
    pub fn num_arcs(&self) -> u64 {
        self.num_arcs
    }

    /// The largest entry of its lists.
    pub fn largest_target(&self) -> Option<VertexId> {
        self.largest_target
    }

    /// The page, if it was written anew.
    pub fn rewritten(&self) -> Option<&RewrittenPage> {
        match &self.form {
            Form::Rewritten(page) => Some(page),
            Form::Pieces(_) => None,
        }
    }

    /// Its lists, unless it was written anew.
    pub fn pieces(&self) -> Option<&Pieces> {
        match &self.form {
            Form::Rewritten(_) => None,
            Form::Pieces(pieces) => Some(pieces),
        }
    }
}

impl Pieces {
    /// The largest entry of the page's lists, those of `ground` that do not change included.
    fn largest_target(&self, ground: &Ground<'_>) -> Option<VertexId> {
        let mut largest = None;
        for local in 0..PAGE_VERTICES {
            match self.head(local) {
                None => largest = largest.max(ground.targets[ground.list(local)].last().copied()),
                // Fragments ascend.
                Some(head) => {
                    let _ = self.for_each_fragment(head, ground.targets, |fragment| {
                        largest = largest.max(fragment.last().copied());
                        ControlFlow::Continue(())
                    });
                }
            }
        }
        largest
    }

    /// Where a list is; `None` where it does not change.
    #[inline]
    pub fn head(&self, local: usize) -> Option<Head> {
        let (word, bit) = (local / WORD_BITS, 1 << (local % WORD_BITS));
        (self.changed[word] & bit != 0).then(|| {
            let num_before = self.num_before[word] as usize + (self.changed[word] & (bit - 1)).count_ones() as usize;
            self.heads[num_before]
        })
    }

    /// The length of a list.
    #[inline]
    pub fn degree(&self, head: Head) -> usize {
        let Head { start, len } = head;
        let num = (len & LEN_MASK) as usize;
        if len & IN_PIECES == 0 {
            return num;
        }
        self.pieces[start as usize..start as usize + num].iter().map(|piece| piece.len).sum()
    }

    /// Calls `body` with the pieces of a list: where they are, and their places there.
    #[inline(always)]
    fn for_each_piece(
        &self,
        head: Head,
        mut body: impl FnMut(Source, Range<usize>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Head { start, len } = head;
        let (start, num) = (start as usize, (len & LEN_MASK) as usize);
        if len & IN_PIECES != 0 {
            let mut pieces = self.pieces[start..start + num].iter();
            return pieces.try_for_each(|piece| body(piece.source, piece.start..piece.start + piece.len));
        }
        let source = if len & IN_MEMORY == 0 { Source::Base } else { Source::Memory };
        body(source, start..start + num)
    }

    /// Calls `body` with the fragments of a list; `base` holds the page's targets in the base run.
    #[inline(always)]
    pub fn for_each_fragment(
        &self,
        head: Head,
        base: &[VertexId],
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.for_each_piece(head, |source, range| match source {
            Source::Base => body(&base[range]),
            Source::Memory => body(&self.targets[range]),
        })
    }

    /// As [`for_each_fragment`](Self::for_each_fragment), with values of a column.
    #[inline(always)]
    pub fn for_each_fragment_with<P: ArcValue>(
        &self,
        head: Head,
        base: (&[VertexId], &[P]),
        mut body: impl FnMut(&[VertexId], &[P]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(values) = P::of(&self.columns) else { return ControlFlow::Continue(()) };
        self.for_each_piece(head, |source, range| match source {
            Source::Base => body(&base.0[range.clone()], &base.1[range]),
            Source::Memory => body(&self.targets[range.clone()], &values[range]),
        })
    }

    /// A list, where it is in one piece.
    #[inline]
    pub fn single_list<'a>(&'a self, head: Head, base: &'a [VertexId]) -> Option<&'a [VertexId]> {
        let Head { start, len } = head;
        let range = start as usize..start as usize + (len & LEN_MASK) as usize;
        match len & (IN_MEMORY | IN_PIECES) {
            0 => Some(&base[range]),
            IN_MEMORY => Some(&self.targets[range]),
            _ => None,
        }
    }
}

/// Whether a list that changes is written anew. `saves`: only where it must be.
fn is_rewritten(ground: &Ground<'_>, list: &ChangedList<'_>, saves: bool) -> bool {
    let old_len = ground.list(list.local.into()).len();
    let (num_added, num_removed) = (list.added.targets.len(), list.removed.targets.len());
    // Of parallel entries, only `apply` knows which go.
    let is_ambiguous = ground.options.multigraph && num_removed > 0;
    if saves {
        return is_ambiguous;
    }
    old_len + num_added <= SHORT_LIST || num_removed * MAX_CUTS > old_len || is_ambiguous
}

/// Builds a page in pieces.
struct Builder<'a> {
    ground: &'a Ground<'a>,
    /// Memory has run out: nothing is copied that is in the base run.
    saves: bool,
    changed: [u64; PAGE_VERTICES / WORD_BITS],
    heads: Vec<Head>,
    pieces: Vec<Piece>,
    entries: EntryBuffer,
    old: EntryBuffer,
}

impl<'a> Builder<'a> {
    fn new(ground: &'a Ground<'a>, saves: bool) -> Self {
        let (heads, pieces) = (Vec::new(), Vec::new());
        let (changed, entries, old) = Default::default();
        Self { ground, saves, changed, heads, pieces, entries, old }
    }

    /// The head of a list in one piece; as a piece of its own where its place has too many digits.
    fn head(&mut self, source: Source, start: usize, len: usize) -> Head {
        if len > LEN_MASK as usize || start > u32::MAX as usize {
            return self.head_of_pieces(&[Piece { source, start, len }]);
        }
        let kind = if source == Source::Memory { IN_MEMORY } else { 0 };
        Head { start: start as u32, len: len as u32 | kind }
    }

    fn head_of_pieces(&mut self, pieces: &[Piece]) -> Head {
        let start = self.pieces.len() as u32;
        self.pieces.extend_from_slice(pieces);
        Head { start, len: pieces.len() as u32 | IN_PIECES }
    }

    /// Adds a list, behind those before it.
    fn add(&mut self, list: &ChangedList<'_>) -> Result<(), String> {
        let old = self.ground.list(list.local.into());
        let start = self.entries.targets.len();
        let head = if is_rewritten(self.ground, list, self.saves) {
            self.old.clear();
            self.ground.copy(old, &mut self.old);
            apply(self.old.all(), list, self.ground.options.multigraph, &mut self.entries)?;
            self.head(Source::Memory, start, self.entries.targets.len() - start)
        } else {
            let mut pieces = cut(self.ground.targets, old, list.removed.targets)?;
            self.entries.extend(list.added);
            let len = list.added.targets.len();
            if len > 0 {
                pieces.push(Piece { source: Source::Memory, start, len });
            }
            match pieces[..] {
                [] => self.head(Source::Base, 0, 0),
                [Piece { source, start, len }] => self.head(source, start, len),
                _ => self.head_of_pieces(&pieces),
            }
        };
        let local = usize::from(list.local);
        self.changed[local / WORD_BITS] |= 1 << (local % WORD_BITS);
        self.heads.push(head);
        Ok(())
    }

    fn finish(self) -> Pieces {
        let columns = ArcColumns::new(self.ground.options, &self.entries);
        let Self { changed, mut heads, mut pieces, entries: EntryBuffer { mut targets, .. }, .. } = self;
        heads.shrink_to_fit();
        if self.saves {
            pieces.shrink_to_fit();
            targets.shrink_to_fit();
        }
        let mut num_before = [0; PAGE_VERTICES / WORD_BITS];
        for word in 1..num_before.len() {
            num_before[word] = num_before[word - 1] + changed[word - 1].count_ones() as u16;
        }
        Pieces { changed, num_before, heads, pieces, targets, columns }
    }
}

/// The pieces of a list of a simple graph between what is removed from it.
fn cut(targets: &[VertexId], list: Range<usize>, removed: &[VertexId]) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::with_capacity(removed.len() + 2);
    let mut rest = list;
    for &target in removed {
        let index = targets[rest.clone()].binary_search(&target);
        let place = rest.start + index.map_err(|_| format!("an edge to {target} is removed that is not there"))?;
        if place > rest.start {
            pieces.push(Piece { source: Source::Base, start: rest.start, len: place - rest.start });
        }
        rest.start = place + 1;
    }
    if !rest.is_empty() {
        pieces.push(Piece { source: Source::Base, start: rest.start, len: rest.len() });
    }
    Ok(pieces)
}

/// All lists of a page, one after the other.
#[derive(Debug, Default)]
pub(crate) struct WholePage {
    /// One more than a page's vertices.
    pub offsets: Vec<u32>,
    pub entries: EntryBuffer,
}

impl WholePage {
    /// Becomes the page of `ground` after `changes`, all of which is verified, instead of what it was.
    ///
    /// # Errors
    /// What is wrong: something removed is not there, something added is, or the page has too many entries.
    pub fn fill(&mut self, ground: &Ground<'_>, changes: &PageChanges) -> Result<(), String> {
        let Self { offsets, entries } = self;
        offsets.clear();
        entries.clear();
        offsets.reserve(PAGE_OFFSETS);
        entries.targets.reserve(ground.targets.len() + changes.num_changes().0);
        offsets.push(0);
        let mut old = EntryBuffer::default();
        let mut next = 0;
        for list in changes.lists() {
            let local = usize::from(list.local);
            self.copy(ground, next..local)?;
            let range = ground.list(local);
            if ground.options.is_plain() {
                let old = Entries { targets: &ground.targets[range], ..Entries::default() };
                apply(old, &list, ground.options.multigraph, &mut self.entries)?;
            } else {
                old.clear();
                ground.copy(range, &mut old);
                apply(old.all(), &list, ground.options.multigraph, &mut self.entries)?;
            }
            self.end_list()?;
            next = local + 1;
        }
        self.copy(ground, next..PAGE_VERTICES)
    }

    /// The bytes that it has room in.
    pub fn num_bytes(&self) -> usize {
        self.offsets.capacity() * size_of::<u32>() + self.entries.num_bytes()
    }

    fn end_list(&mut self) -> Result<(), String> {
        let end =
            u32::try_from(self.entries.targets.len()).map_err(|_| "a page has 2^32 entries or more".to_owned())?;
        self.offsets.push(end);
        Ok(())
    }

    /// Copies lists that do not change.
    fn copy(&mut self, ground: &Ground<'_>, locals: Range<usize>) -> Result<(), String> {
        let entries = ground.offsets[locals.start] as usize..ground.offsets[locals.end] as usize;
        let start = self.entries.targets.len();
        ground.copy(entries.clone(), &mut self.entries);
        u32::try_from(self.entries.targets.len()).map_err(|_| "a page has 2^32 entries or more".to_owned())?;
        let ends = &ground.offsets[locals.start + 1..=locals.end];
        self.offsets.extend(ends.iter().map(|&end| (start + end as usize - entries.start) as u32));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use graph::{Weight, WeightType, Weights};

    use super::*;

    /// Whoever has a budget for what levels change counts on these bounds.
    #[test]
    fn a_page_without_memory_takes_what_is_said() {
        const DEGREE: usize = 200;
        let offsets: Vec<u32> = (0..PAGE_OFFSETS).map(|vertex| (vertex * DEGREE) as u32).collect();
        let targets: Vec<VertexId> = (0..PAGE_VERTICES).flat_map(|_| (0..DEGREE as VertexId).map(|i| 2 * i)).collect();
        let options =
            GraphOptions { weight_type: Some(WeightType::F64), edge_properties: true, ..GraphOptions::default() };
        let (weights, rows) = (vec![1.0_f64.bits(); targets.len()], vec![7; targets.len()]);
        let columns = ArcColumns::new(&options, &EntryBuffer { targets: targets.clone(), weights, rows });
        let ground =
            Ground { offsets: &offsets, targets: &targets, edge_base: 0, columns: Some(&columns), options: &options };
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
            let page = PatchedPage::new(&ground, &changes, None, &mut WholePage::default()).unwrap();
            let Pieces { heads, pieces, targets, columns, .. } = page.pieces().unwrap();
            let taken = size_of::<PatchedPage>()
                + size_of::<Pieces>()
                + heads.capacity() * size_of::<Head>()
                + pieces.capacity() * size_of::<Piece>()
                + targets.capacity() * size_of::<VertexId>()
                + columns.weights.as_ref().map_or(0, Weights::len) * size_of::<f64>()
                + columns.rows.as_ref().map_or(0, |rows| rows.len() * size_of::<u64>());
            let num_arcs = (num_changed * (added.len() + removed.len())) as u64;
            let said = PIECES_BYTES + CHANGE_BYTES * num_arcs;
            assert!(taken as u64 <= said, "{taken} bytes, {said} are said, of {num_arcs} arcs");
            let shown = |local: usize| {
                let mut list = Vec::new();
                match page.pieces().unwrap().head(local) {
                    Some(head) => {
                        let _ = page.pieces().unwrap().for_each_fragment(head, ground.targets, |fragment| {
                            list.extend_from_slice(fragment);
                            ControlFlow::Continue(())
                        });
                    }
                    None => list.extend_from_slice(&ground.targets[ground.list(local)]),
                }
                list.sort_unstable();
                list
            };
            for local in [0, num_changed - 1, num_changed % PAGE_VERTICES, PAGE_VERTICES - 1] {
                let is_changed = local < num_changed;
                let mut expected: Vec<VertexId> = ground.targets[ground.list(local)].to_vec();
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
