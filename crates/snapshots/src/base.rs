//! An open base: the lists of a whole graph, each page verified at its first touch.
//!
//! All views of a process share the base, and its marks of verified pages.

mod arrays;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use anden_base::VertexId;
use anden_base::bitmap::AtomicBitmap;
use anden_base::checksum::BLOCK_BYTES;
use anden_base::mapped::{Advice, FileBytes, MappedSlice};
use anden_graph::{Direction, Weight, WeightType, Weights};
use parking_lot::Mutex;

pub(crate) use self::arrays::{ArcSlots, ArrayLists, PageOffsets};
use crate::Result;
use crate::arc_columns::ArcColumns;
use crate::column::SectionColumn;
use crate::encoding::Decoder;
use crate::file::{FramedFile, SectionKind};
use crate::lists::ListRules;
use crate::patched::PatchedPage;
use crate::rewritten::{OverflowLists, RewriteBudget};
use crate::table::{
    INDEX_ENTRY_BYTES, IndexEntry, PAGE_OFFSETS, PAGE_VERTICES, PageKind, num_pages, page_of, place_in_page,
};

/// Targets in a cache line.
pub(crate) const LINE_ENTRIES: usize = 64 / size_of::<VertexId>();

/// A walk over lists reports its position after this many arcs,
const STEP_EDGES: u64 = 1 << 17;

/// or after this many pages.
const STEP_PAGES: usize = 64;

/// An open base.
#[derive(Debug)]
pub(crate) struct OpenBase {
    out_lists: BaseLists,
    in_lists: Option<BaseLists>,
    vertex_bound: usize,
    dead: Option<SectionColumn<VertexId>>,
    patched: Mutex<PatchedPages>,
    /// Budget for the pages that views patch.
    memory: Arc<RewriteBudget>,
}

/// A page of one direction at a version.
pub(crate) type PageVersion = (Direction, usize, u32);

/// The patched pages of open views, so that views of several versions share equal pages.
#[derive(Debug, Default)]
struct PatchedPages {
    pages: HashMap<PageVersion, Weak<PatchedPage>>,
    /// At this size, entries of pages that no view holds are removed.
    limit: usize,
}

/// The files of one direction.
#[derive(Debug)]
pub(crate) struct AdjacencyFiles {
    pub table: Arc<FramedFile>,
    pub targets: Arc<FramedFile>,
    pub weights: Option<(Arc<FramedFile>, WeightType)>,
    pub rows: Option<Arc<FramedFile>>,
}

impl OpenBase {
    /// Joins the files of a base. Verifies its page indexes and its dead vertices. Patched pages may take `patch_bytes`
    /// of memory.
    ///
    /// # Errors
    /// A section is missing or has a wrong length; an index is damaged; the directions do not fit together.
    pub fn open(
        out_files: &AdjacencyFiles,
        in_files: Option<&AdjacencyFiles>,
        rules: ListRules,
        patch_bytes: u64,
    ) -> Result<Arc<Self>> {
        let out_lists = BaseLists::open(out_files, rules)?;
        let in_lists = in_files.map(|files| BaseLists::open(files, rules)).transpose()?;
        // Each edge is in both directions, so the numbers of arcs must agree.
        if let (Some(lists), Some(files)) = (&in_lists, in_files)
            && lists.num_arcs() != out_lists.num_arcs()
        {
            let what = format!("{} targets expected, {} found", out_lists.num_arcs(), lists.num_arcs());
            return Err(files.targets.corrupt(what));
        }
        let dead = match out_files.table.optional_section(SectionKind::DeadVertices) {
            Some(_) => Some(read_dead(&out_files.table, rules.vertex_bound)?),
            None => None,
        };
        let (patched, memory) = (Mutex::default(), RewriteBudget::new(patch_bytes));
        Ok(Arc::new(Self { out_lists, in_lists, vertex_bound: rules.vertex_bound, dead, patched, memory }))
    }

    /// The lists of one direction, if the base has them.
    pub fn lists(&self, direction: Direction) -> Option<&BaseLists> {
        match direction {
            Direction::Out => Some(&self.out_lists),
            Direction::In => self.in_lists.as_ref(),
        }
    }

    /// One more than the largest id.
    pub fn vertex_bound(&self) -> usize {
        self.vertex_bound
    }

    /// The dead ids below the bound, ascending.
    pub fn dead(&self) -> &[VertexId] {
        self.dead.as_ref().map_or(&[], |column| column.unverified())
    }

    /// Number of entries of the out-lists.
    pub fn num_arcs(&self) -> u64 {
        self.out_lists.num_arcs()
    }

    /// Budget for the pages that views patch.
    pub fn memory(&self) -> &Arc<RewriteBudget> {
        &self.memory
    }

    /// The page, if an open view has patched it.
    pub fn patched(&self, page: PageVersion) -> Option<Arc<PatchedPage>> {
        self.patched.lock().pages.get(&page).and_then(Weak::upgrade)
    }

    /// Offers a patched page to other views.
    pub fn remember_patched(&self, page: PageVersion, patched: &Arc<PatchedPage>) {
        let mut all = self.patched.lock();
        // Doubling the limit makes the clean-up constant time an insertion.
        if all.pages.len() >= all.limit {
            all.pages.retain(|_, page| page.strong_count() > 0);
            all.limit = 2 * all.pages.len() + 64;
        }
        all.pages.insert(page, Arc::downgrade(patched));
    }
}

/// The dead vertices of a base, verified.
pub(crate) fn read_dead(file: &FramedFile, vertex_bound: usize) -> Result<SectionColumn<VertexId>> {
    let column = SectionColumn::<VertexId>::open(file, SectionKind::DeadVertices)?;
    let dead = column.touch(0..column.len())?;
    let ascends = dead.windows(2).all(|pair| pair[0] < pair[1]);
    if !ascends || dead.last().is_some_and(|&last| last as usize >= vertex_bound) {
        return Err(column.corrupt(0, format!("dead vertices that ascend below {vertex_bound} expected")).into());
    }
    Ok(column)
}

/// The lists of one direction.
#[derive(Debug)]
pub(crate) struct BaseLists {
    /// One entry a page, and a last one whose base is the number of targets.
    index: Vec<IndexEntry>,
    offsets: SectionColumn<u32>,
    targets: SectionColumn<VertexId>,
    weights: Option<WeightColumn>,
    rows: Option<SectionColumn<u64>>,
    /// Weights and rows as slices.
    columns: ArcColumns,
    rules: ListRules,
    /// The lists with an overflow arena behind them, made for the first view with deltas; `None` if the system has no
    /// memory for it.
    overflow: OnceLock<Option<OverflowLists>>,
    /// Verified pages, as bits.
    verified_lists: AtomicBitmap,
    verified_weights: AtomicBitmap,
    verified_offsets: AtomicBitmap,
    /// Verified lists, as bits by vertex; made by the first list that is verified alone.
    single_lists: OnceLock<AtomicBitmap>,
    single_weights: OnceLock<AtomicBitmap>,
    /// Last setting of `read_exactly`.
    is_exact: AtomicBool,
    /// Last setting of `read_weights_exactly`.
    are_weights_exact: AtomicBool,
    /// Held while the system is told.
    advising: Mutex<()>,
}

/// A verified page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VerifiedPage<'a> {
    /// Position of its offsets among all offsets.
    pub place: usize,
    /// Offsets into `targets`, one more than vertices.
    pub offsets: &'a [u32],
    pub targets: &'a [VertexId],
    /// Index of its first arc among all targets.
    pub edge_base: usize,
}

impl BaseLists {
    /// Opens the lists of one direction, and verifies the index of their pages.
    ///
    /// # Errors
    /// A section is missing or has a wrong length; the index is damaged.
    pub fn open(files: &AdjacencyFiles, rules: ListRules) -> Result<Self> {
        let offsets = SectionColumn::<u32>::open(&files.table, SectionKind::Offsets)?;
        let targets = SectionColumn::<VertexId>::open(&files.targets, SectionKind::Targets)?;
        let mut index = read_index(&files.table, rules.vertex_bound, targets.len() as u64)?;
        let num_dense = index.iter().filter(|entry| entry.kind == PageKind::Dense).count();
        // Offsets are found by slot, without a check, so their number must fit.
        if offsets.len() != num_dense * PAGE_OFFSETS {
            let what = format!("offsets for {num_dense} pages expected, {} found", offsets.len());
            return Err(files.table.corrupt(what));
        }
        let weights = files.weights.as_ref();
        // Weights and rows are read at the positions of their targets, so their numbers are checked below.
        let weights = weights.map(|(file, weight_type)| WeightColumn::open(file, *weight_type)).transpose()?;
        if let Some((file, _)) = &files.weights
            && let Some(column) = &weights
            && column.len() != targets.len()
        {
            return Err(file.corrupt(format!("{} weights expected, {} found", targets.len(), column.len())));
        }
        let rows = files.rows.as_ref();
        let rows = rows.map(|file| SectionColumn::<u64>::open(file, SectionKind::RowNumbers)).transpose()?;
        if let (Some(file), Some(column)) = (&files.rows, &rows)
            && column.len() != targets.len()
        {
            return Err(file.corrupt(format!("{} rows expected, {} found", targets.len(), column.len())));
        }
        // With this last entry, every page ends where the next one begins.
        index.push(IndexEntry::new(targets.len() as u64, None));
        Ok(Self::new(index, offsets, targets, weights, rows, rules))
    }

    /// Joins columns of which nothing is verified; `index` has its last entry already.
    fn new(
        index: Vec<IndexEntry>,
        offsets: SectionColumn<u32>,
        targets: SectionColumn<VertexId>,
        weights: Option<WeightColumn>,
        rows: Option<SectionColumn<u64>>,
        rules: ListRules,
    ) -> Self {
        let columns = ArcColumns {
            weights: weights.as_ref().map(WeightColumn::unverified),
            rows: rows.as_ref().map(|rows| rows.unverified().clone()),
        };
        let verified = || AtomicBitmap::new(index.len() - 1);
        let (verified_lists, verified_weights, verified_offsets) = (verified(), verified(), verified());
        Self {
            index,
            offsets,
            targets,
            weights,
            rows,
            columns,
            rules,
            overflow: OnceLock::new(),
            verified_lists,
            verified_weights,
            verified_offsets,
            single_lists: OnceLock::new(),
            single_weights: OnceLock::new(),
            is_exact: AtomicBool::new(false),
            are_weights_exact: AtomicBool::new(false),
            advising: Mutex::default(),
        }
    }

    /// Number of stored entries.
    pub fn num_arcs(&self) -> u64 {
        self.targets.len() as u64
    }

    pub fn num_pages(&self) -> usize {
        self.index.len() - 1
    }

    /// Whether a page has offsets. Without, it has no edges.
    pub fn is_dense(&self, page: usize) -> bool {
        self.index.get(page).is_some_and(|entry| entry.kind == PageKind::Dense)
    }

    /// Index of a page's first arc among all targets; behind the last page, the number of targets.
    pub fn edge_base(&self, page: usize) -> u64 {
        self.index[page.min(self.num_pages())].edge_base
    }

    /// Position of a page's offsets, if it is dense.
    pub fn place(&self, page: usize) -> usize {
        self.index[page].slot as usize * PAGE_OFFSETS
    }

    /// All offsets, verified or not.
    pub fn offsets(&self) -> &MappedSlice<u32> {
        self.offsets.unverified()
    }

    /// All targets, verified or not.
    pub fn targets(&self) -> &MappedSlice<VertexId> {
        self.targets.unverified()
    }

    /// All weights and rows, verified or not.
    pub fn columns(&self) -> &ArcColumns {
        &self.columns
    }

    /// Prefetches the offsets of `vertex`.
    #[inline]
    pub fn prefetch(&self, vertex: VertexId) {
        // On a page without offsets, this only wastes a hint.
        if let Some(entry) = self.index.get(page_of(vertex)) {
            anden_base::simd::prefetch(self.offsets(), entry.slot as usize * PAGE_OFFSETS + place_in_page(vertex));
        }
    }

    /// Prefetches the entries of the list of `vertex` at `places`, which maps a length to positions.
    #[inline]
    pub fn prefetch_entries(&self, vertex: VertexId, places: impl Fn(usize) -> Range<usize>) {
        // Unverified offsets only waste hints.
        let Some(entry) = self.index.get(page_of(vertex)) else { return };
        let place = entry.slot as usize * PAGE_OFFSETS + place_in_page(vertex);
        if let Some(&[start, end]) = self.offsets().get(place..place + 2) {
            let first = entry.edge_base as usize + start as usize;
            for place in places(end.saturating_sub(start) as usize).step_by(LINE_ENTRIES) {
                anden_base::simd::prefetch(self.targets(), first + place);
            }
        }
    }

    /// The lists, verified or not, with an overflow arena behind them.
    pub fn overflow(&self, memory: &Arc<RewriteBudget>) -> Option<&OverflowLists> {
        self.overflow.get_or_init(|| OverflowLists::new(self.targets(), self.columns(), memory)).as_ref()
    }

    /// Sets whether the system reads only the requested targets, and nothing around them. Turning it off turns it off
    /// for weights, too.
    pub fn read_exactly(&self, is_exact: bool) {
        if !is_exact {
            self.set_weights_exact(false);
        }
        // Most calls change nothing, and take no lock.
        if self.is_exact() == is_exact {
            return;
        }
        let _one = self.advising.lock();
        // Under the lock, so that the last advice to the system agrees with the flag.
        if self.is_exact.swap(is_exact, Ordering::Relaxed) != is_exact {
            self.targets().bytes().advise(advice(is_exact));
        }
    }

    /// Extends [`read_exactly`](Self::read_exactly) to the weights, until it is turned off.
    pub fn read_weights_exactly(&self) {
        self.set_weights_exact(true);
    }

    fn set_weights_exact(&self, is_exact: bool) {
        if self.are_weights_exact() == is_exact {
            return;
        }
        let _one = self.advising.lock();
        if self.are_weights_exact.swap(is_exact, Ordering::Relaxed) != is_exact
            && let Some((weights, _)) = self.weight_bytes()
        {
            weights.advise(advice(is_exact));
        }
    }

    /// Last setting of [`read_weights_exactly`](Self::read_weights_exactly).
    pub fn are_weights_exact(&self) -> bool {
        self.are_weights_exact.load(Ordering::Relaxed)
    }

    /// The bytes of all weights, or of all rows in a graph without weights, verified or not, and the bytes of one.
    pub fn weight_bytes(&self) -> Option<(FileBytes, usize)> {
        let rows = || self.rows.as_ref().map(|rows| (rows.unverified().bytes().clone(), size_of::<u64>()));
        self.weights.as_ref().map(WeightColumn::bytes).or_else(rows)
    }

    /// Last setting of [`read_exactly`](Self::read_exactly).
    pub fn is_exact(&self) -> bool {
        self.is_exact.load(Ordering::Relaxed)
    }

    /// End of the next step of a walk over the lists from `first` on; a multiple of the page size.
    pub fn end_of_step(&self, first: VertexId) -> VertexId {
        let page = page_of(first);
        let start = self.edge_base(page);
        let is_within = |next: &usize| *next < self.num_pages() && self.edge_base(*next) - start < STEP_EDGES;
        let end = (page + 1..page + 1 + STEP_PAGES).find(|next| !is_within(next)).unwrap_or(page + 1 + STEP_PAGES);
        VertexId::try_from(end * PAGE_VERTICES).unwrap_or(VertexId::MAX)
    }

    /// Requests these targets from the disk at once, because the system does not read ahead in exact mode.
    fn read_ahead(&self, edges: &Range<usize>) {
        // A range of at most a block takes one or two reads anyway.
        if self.is_exact() && edges.len() > BLOCK_BYTES / size_of::<VertexId>() {
            self.targets().bytes().read_ahead(edges.start * size_of::<VertexId>()..edges.end * size_of::<VertexId>());
        }
    }

    /// Byte range of these vertices' lists among all targets, verified or not.
    pub fn list_bytes(&self, vertices: Range<VertexId>) -> Range<usize> {
        let place = |vertex: VertexId| {
            let page = page_of(vertex);
            let Some(entry) = self.index.get(page) else { return self.targets.len() };
            let offset = match entry.kind {
                PageKind::Dense => {
                    self.offsets().get(self.place(page) + place_in_page(vertex)).map_or(0, |&offset| offset as usize)
                }
                PageKind::Empty => 0,
            };
            // Unverified offsets may be damaged, so the range is cut to the targets.
            (entry.edge_base as usize + offset).min(self.targets.len())
        };
        let (start, end) = (place(vertices.start), place(vertices.end));
        start * size_of::<VertexId>()..end.max(start) * size_of::<VertexId>()
    }

    /// A page, verified on first use; `None` if it has no edges.
    ///
    /// # Errors
    /// The page is damaged.
    pub fn page(&self, page: usize) -> anden_base::Result<Option<VerifiedPage<'_>>> {
        if !self.is_dense(page) {
            return Ok(None);
        }
        // Two threads may check one page at once. Both set one bit, so no lock is needed.
        if !self.verified_lists.get(page) {
            self.check_lists(page)?;
            self.verified_lists.set(page);
        }
        Ok(Some(self.verified_page(page)))
    }

    /// The targets of the list of `vertex`, verified on first use without the rest of the page; empty if the page has
    /// no edges.
    ///
    /// # Errors
    /// The offsets of the page or the list are damaged.
    pub fn list(&self, vertex: VertexId) -> anden_base::Result<Range<usize>> {
        let Some(edges) = self.unverified_list(vertex)? else { return Ok(0..0) };
        // Ids at the end of the last page may belong to vertices of an overlay; their lists here are empty.
        if edges.is_empty() || self.verified_lists.get(page_of(vertex)) {
            return Ok(edges);
        }
        // Allocated on first use: without lazy reads, no list is verified alone.
        let verified = self.single_lists.get_or_init(|| AtomicBitmap::new(self.rules.vertex_bound));
        if !verified.get(vertex as usize) {
            self.read_ahead(&edges);
            let targets = self.targets.touch(edges.clone())?;
            let what = self.rules.check(targets, std::iter::once(targets.len()));
            what.map_err(|what| self.targets.corrupt(edges.start, what))?;
            verified.set(vertex as usize);
        }
        Ok(edges)
    }

    /// As [`list`](Self::list), with the weights of the list verified.
    ///
    /// # Errors
    /// As [`list`](Self::list), or the weights are damaged.
    pub fn weighted_list(&self, vertex: VertexId) -> anden_base::Result<Range<usize>> {
        let edges = self.list(vertex)?;
        let Some(weights) = &self.weights else { return Ok(edges) };
        if edges.is_empty() || self.verified_weights.get(page_of(vertex)) {
            return Ok(edges);
        }
        let verified = self.single_weights.get_or_init(|| AtomicBitmap::new(self.rules.vertex_bound));
        if !verified.get(vertex as usize) {
            let (bytes, width) = weights.bytes();
            // As in `read_ahead`: in exact mode, the system does not read ahead.
            if self.are_weights_exact() && edges.len() * width > BLOCK_BYTES {
                bytes.read_ahead(edges.start * width..edges.end * width);
            }
            weights.check(edges.clone())?;
            verified.set(vertex as usize);
        }
        Ok(edges)
    }

    /// Length of the list of `vertex`, without reading its targets.
    ///
    /// # Errors
    /// The offsets of the page are damaged.
    pub fn degree(&self, vertex: VertexId) -> anden_base::Result<usize> {
        Ok(self.unverified_list(vertex)?.map_or(0, |edges| edges.len()))
    }

    /// Range of the list of `vertex`, by its page's offsets, which are verified here; `None` if the page has no edges.
    fn unverified_list(&self, vertex: VertexId) -> anden_base::Result<Option<Range<usize>>> {
        let page = page_of(vertex);
        if !self.is_dense(page) {
            return Ok(None);
        }
        if !self.verified_offsets.get(page) {
            self.check_offsets(page)?;
            self.verified_offsets.set(page);
        }
        Ok(Some(self.verified_list(vertex)))
    }

    /// Range of the list of `vertex`, whose page has edges and verified offsets.
    #[inline]
    pub fn verified_list(&self, vertex: VertexId) -> Range<usize> {
        let page = page_of(vertex);
        let (place, base) = (self.place(page) + place_in_page(vertex), self.edge_base(page) as usize);
        let ends = &self.offsets()[place..place + 2];
        base + ends[0] as usize..base + ends[1] as usize
    }

    /// Verifies the weights of a page on first use.
    ///
    /// # Errors
    /// The page is damaged.
    pub fn verify_weights(&self, page: usize) -> anden_base::Result<()> {
        if let Some(weights) = &self.weights
            && self.is_dense(page)
            && !self.verified_weights.get(page)
        {
            weights.check(self.edges(page))?;
            self.verified_weights.set(page);
        }
        Ok(())
    }

    /// Verifies the rows of these entries, if there are rows.
    ///
    /// # Errors
    /// The rows are damaged.
    pub fn verify_rows(&self, edges: Range<usize>) -> anden_base::Result<()> {
        self.rows.as_ref().map_or(Ok(()), |rows| rows.touch(edges).map(drop))
    }

    /// The range of a page's targets; empty behind the last page.
    pub fn edges(&self, page: usize) -> Range<usize> {
        self.edge_base(page) as usize..self.edge_base(page + 1) as usize
    }

    fn verified_page(&self, page: usize) -> VerifiedPage<'_> {
        let place = self.place(page);
        let edges = self.edges(page);
        VerifiedPage {
            place,
            offsets: &self.offsets.unverified()[place..place + PAGE_OFFSETS],
            targets: &self.targets.unverified()[edges.clone()],
            edge_base: edges.start,
        }
    }

    /// Checks a dense page: checksums, offsets, order of lists.
    fn check_lists(&self, page: usize) -> anden_base::Result<()> {
        // Offsets first: they cut the targets into the lists that are checked below.
        let page_offsets = self.check_offsets(page)?;
        let edges = self.edges(page);
        self.read_ahead(&edges);
        let page_targets = self.targets.touch(edges.clone())?;
        let ends = page_offsets[1..].iter().map(|&end| end as usize);
        self.rules.check(page_targets, ends).map_err(|what| self.targets.corrupt(edges.start, what))
    }

    /// Checks the offsets of a dense page, and returns them.
    fn check_offsets(&self, page: usize) -> anden_base::Result<&[u32]> {
        let num_edges = self.edges(page).len();
        let start = self.place(page);
        let page_offsets = self.offsets.touch(start..start + PAGE_OFFSETS)?;
        let num_vertices = (self.rules.vertex_bound - page * PAGE_VERTICES).min(PAGE_VERTICES);
        // The last page may have fewer vertices; the offsets behind them repeat the end.
        let end = page_offsets[num_vertices];
        let in_order = page_offsets[0] == 0
            && page_offsets.is_sorted()
            && end as usize == num_edges
            && end == page_offsets[PAGE_VERTICES];
        match in_order {
            true => Ok(page_offsets),
            false => {
                let what = format!("offsets of a page do not ascend from 0 to {num_edges}");
                Err(self.offsets.corrupt(start, what))
            }
        }
    }
}

/// Advice to the system for exact reads, or for others.
fn advice(is_exact: bool) -> Advice {
    if is_exact { Advice::Random } else { Advice::Normal }
}

/// Reads and verifies the page index: bases ascend to the number of targets, slots count the dense pages.
fn read_index(file: &FramedFile, vertex_bound: usize, num_targets: u64) -> Result<Vec<IndexEntry>> {
    let section = file.section(SectionKind::PageIndex)?;
    let bytes = section.bytes().as_slice();
    section.verify(0..bytes.len())?;
    let num_pages = num_pages(vertex_bound);
    let corrupt = |page: usize, what: &str| {
        let offset = section.file_offset() + (page * INDEX_ENTRY_BYTES) as u64;
        anden_base::Error::corrupt(file.path(), offset, what)
    };
    // Checked before `num_pages` sizes an allocation.
    if bytes.len() != num_pages * INDEX_ENTRY_BYTES {
        let what = format!("an index of {num_pages} pages expected, {} bytes found", bytes.len());
        return Err(corrupt(0, &what).into());
    }
    let mut decoder = Decoder::new(bytes);
    let mut index = Vec::with_capacity(num_pages + 1);
    let (mut slot, mut previous) = (0, None::<IndexEntry>);
    for page in 0..num_pages {
        let entry = IndexEntry::decode(&mut decoder).ok_or_else(|| corrupt(page, "a page of an unknown kind"))?;
        let num_before = match previous {
            Some(previous) => page_len(&previous, entry.edge_base),
            None => (entry.edge_base == 0).then_some(0),
        };
        // Slots count the dense pages, so that no two pages share offsets.
        let is_next = entry.slot == if entry.kind == PageKind::Dense { slot } else { 0 };
        if num_before.is_none() || !is_next {
            return Err(corrupt(page, "the index of the pages is out of order").into());
        }
        slot += u32::from(entry.kind == PageKind::Dense);
        previous = Some(entry);
        index.push(entry);
    }
    // Positions up to `num_targets` follow from the index, so its end must fit, too.
    let ends_well = previous.map_or(num_targets == 0, |last| page_len(&last, num_targets).is_some());
    if !ends_well {
        let what = format!("the index of the pages does not end at {num_targets} targets");
        return Err(corrupt(num_pages.saturating_sub(1), &what).into());
    }
    Ok(index)
}

/// Number of arcs of a page, given the next page's base; `None` if its kind cannot have that number.
fn page_len(entry: &IndexEntry, next_base: u64) -> Option<u64> {
    let len = next_base.checked_sub(entry.edge_base)?;
    match entry.kind {
        PageKind::Empty => len == 0,
        // Offsets within a page have 32 bits.
        PageKind::Dense => len <= u64::from(u32::MAX),
    }
    .then_some(len)
}

/// The weights of one direction, of any type.
#[derive(Debug)]
enum WeightColumn {
    U32(SectionColumn<u32>),
    I64(SectionColumn<i64>),
    F32(SectionColumn<f32>),
    F64(SectionColumn<f64>),
}

macro_rules! for_weights {
    ($column:expr, $name:ident => $body:expr) => {
        match $column {
            WeightColumn::U32($name) => $body,
            WeightColumn::I64($name) => $body,
            WeightColumn::F32($name) => $body,
            WeightColumn::F64($name) => $body,
        }
    };
}

impl WeightColumn {
    fn open(file: &FramedFile, weight_type: WeightType) -> Result<Self> {
        Ok(match weight_type {
            WeightType::U32 => Self::U32(SectionColumn::open(file, SectionKind::Weights)?),
            WeightType::I64 => Self::I64(SectionColumn::open(file, SectionKind::Weights)?),
            WeightType::F32 => Self::F32(SectionColumn::open(file, SectionKind::Weights)?),
            WeightType::F64 => Self::F64(SectionColumn::open(file, SectionKind::Weights)?),
        })
    }

    fn len(&self) -> usize {
        for_weights!(self, column => column.len())
    }

    fn bytes(&self) -> (FileBytes, usize) {
        fn bytes<W: Weight>(column: &SectionColumn<W>) -> (FileBytes, usize) {
            (column.unverified().bytes().clone(), size_of::<W>())
        }
        for_weights!(self, column => bytes(column))
    }

    fn unverified(&self) -> Weights {
        for_weights!(self, column => Weight::column(column.unverified().clone()))
    }

    fn check(&self, edges: Range<usize>) -> anden_base::Result<()> {
        fn check<W: Weight>(column: &SectionColumn<W>, edges: Range<usize>) -> anden_base::Result<()> {
            let weights = column.touch(edges.clone())?;
            match weights.iter().position(|weight| !weight.is_number()) {
                Some(index) => Err(column.corrupt(edges.start + index, "a weight that is no number")),
                None => Ok(()),
            }
        }
        for_weights!(self, column => check(column, edges))
    }
}
