//! The base run in memory: the lists of a whole graph, each page verified when it is first touched.
//!
//! All views of a process share it, and what was verified through one of them is verified for all.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use base::VertexId;
use base::bitmap::AtomicBitmap;
use base::checksum::BLOCK_BYTES;
use base::mapped::{Advice, FileBytes, MappedSlice};
use graph::{Side, Weight, WeightType, Weights};

use crate::Result;
use crate::arc_columns::ArcColumns;
use crate::column::Column;
use crate::encoding::Decoder;
use crate::file::{FramedFile, SectionKind};
use crate::lists::ListRules;
use crate::patched::PatchedPage;
use crate::rewritten::{Memory, RoomyLists};
use crate::table::{
    INDEX_ENTRY_BYTES, IndexEntry, PAGE_OFFSETS, PAGE_VERTICES, PageKind, num_pages, page_of, place_in_page,
};

/// The targets on a line of the cache.
pub(crate) const LINE_ENTRIES: usize = 64 / size_of::<VertexId>();

/// Who walks over lists says where it is after so many edges,
const STEP_EDGES: u64 = 1 << 17;

/// or after so many pages.
const STEP_PAGES: usize = 64;

/// A base run, open.
#[derive(Debug)]
pub(crate) struct BaseRun {
    out_lists: BaseLists,
    in_lists: Option<BaseLists>,
    vertex_bound: usize,
    dead: Option<Column<VertexId>>,
    patched: Mutex<PatchedPages>,
    /// What pages may take that views write anew.
    memory: Arc<Memory>,
}

/// A page of a side, as it is at a version.
pub(crate) type PageVersion = (Side, usize, u32);

/// The pages that are patched in open views, so that views of several versions share those that are the same.
#[derive(Debug, Default)]
struct PatchedPages {
    pages: HashMap<PageVersion, Weak<PatchedPage>>,
    /// Once there are so many, those that no view has any more are forgotten.
    limit: usize,
}

/// The files of one side.
#[derive(Debug)]
pub(crate) struct SideFiles {
    pub table: Arc<FramedFile>,
    pub targets: Arc<FramedFile>,
    pub weights: Option<(Arc<FramedFile>, WeightType)>,
    pub rows: Option<Arc<FramedFile>>,
}

impl BaseRun {
    /// Joins the files of a run; verifies the indexes of its pages and its list of dead vertices. Pages that levels
    /// change may take `patch_bytes` of memory.
    ///
    /// # Errors
    /// A section is missing or has a wrong length; an index is damaged; the sides do not fit together.
    pub fn open(
        out_files: &SideFiles,
        in_files: Option<&SideFiles>,
        rules: ListRules,
        patch_bytes: u64,
    ) -> Result<Arc<Self>> {
        let out_lists = BaseLists::open(out_files, rules)?;
        let in_lists = in_files.map(|files| BaseLists::open(files, rules)).transpose()?;
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
        let (patched, memory) = (Mutex::default(), Memory::new(patch_bytes));
        Ok(Arc::new(Self { out_lists, in_lists, vertex_bound: rules.vertex_bound, dead, patched, memory }))
    }

    /// The lists of a side, if the run has it.
    pub fn lists(&self, side: Side) -> Option<&BaseLists> {
        match side {
            Side::Out => Some(&self.out_lists),
            Side::In => self.in_lists.as_ref(),
        }
    }

    /// One more than its largest id.
    pub fn vertex_bound(&self) -> usize {
        self.vertex_bound
    }

    /// The ids below the bound that are no vertices, ascending.
    pub fn dead(&self) -> &[VertexId] {
        self.dead.as_ref().map_or(&[], |column| column.unverified())
    }

    /// The number of entries of the out-lists.
    pub fn num_arcs(&self) -> u64 {
        self.out_lists.num_arcs()
    }

    /// What pages may take that views write anew.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// The page as a view has patched it that is still open.
    pub fn patched(&self, page: PageVersion) -> Option<Arc<PatchedPage>> {
        self.patched_pages().pages.get(&page).and_then(Weak::upgrade)
    }

    /// Remembers a page that a view has patched.
    pub fn remember_patched(&self, page: PageVersion, patched: &Arc<PatchedPage>) {
        let mut all = self.patched_pages();
        if all.pages.len() >= all.limit {
            all.pages.retain(|_, page| page.strong_count() > 0);
            all.limit = 2 * all.pages.len() + 64;
        }
        all.pages.insert(page, Arc::downgrade(patched));
    }

    fn patched_pages(&self) -> MutexGuard<'_, PatchedPages> {
        self.patched.lock().unwrap_or_else(|e| e.into_inner())
    }
}

fn read_dead(file: &FramedFile, vertex_bound: usize) -> Result<Column<VertexId>> {
    let column = Column::<VertexId>::open(file, SectionKind::DeadVertices)?;
    let dead = column.touch(0..column.len())?;
    let ascends = dead.windows(2).all(|pair| pair[0] < pair[1]);
    if !ascends || dead.last().is_some_and(|&last| last as usize >= vertex_bound) {
        return Err(column.corrupt(0, format!("dead vertices that ascend below {vertex_bound} expected")).into());
    }
    Ok(column)
}

/// The lists of one side.
#[derive(Debug)]
pub(crate) struct BaseLists {
    /// The last entry belongs to no page: its base is the number of targets.
    index: Vec<IndexEntry>,
    offsets: Column<u32>,
    targets: Column<VertexId>,
    weights: Option<WeightColumn>,
    rows: Option<Column<u64>>,
    /// Both as slices.
    columns: ArcColumns,
    rules: ListRules,
    /// The lists again, with room behind them, since the first view that changes them; `None` where the system has
    /// none.
    roomy: OnceLock<Option<RoomyLists>>,
    /// Bits by page: what was checked, and found to be whole.
    verified_lists: AtomicBitmap,
    verified_weights: AtomicBitmap,
    verified_offsets: AtomicBitmap,
    /// Bits by vertex, since the first list that was verified alone.
    single_lists: OnceLock<AtomicBitmap>,
    single_weights: OnceLock<AtomicBitmap>,
    /// Whether the system was told last to read nothing around a place by itself.
    is_exact: AtomicBool,
    /// The same of the weights.
    are_weights_exact: AtomicBool,
    /// Taken by who tells it.
    advising: Mutex<()>,
}

/// A page that was verified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BasePage<'a> {
    /// Where its offsets start among all.
    pub place: usize,
    /// One more than vertices; within `targets`.
    pub offsets: &'a [u32],
    pub targets: &'a [VertexId],
    /// Where its edges start among all.
    pub edge_base: usize,
}

impl BaseLists {
    fn open(files: &SideFiles, rules: ListRules) -> Result<Self> {
        let offsets = Column::<u32>::open(&files.table, SectionKind::Offsets)?;
        let targets = Column::<VertexId>::open(&files.targets, SectionKind::Targets)?;
        let mut index = read_index(&files.table, rules.vertex_bound, targets.len() as u64)?;
        let num_dense = index.iter().filter(|entry| entry.kind == PageKind::Dense).count();
        if offsets.len() != num_dense * PAGE_OFFSETS {
            let what = format!("offsets for {num_dense} pages expected, {} found", offsets.len());
            return Err(files.table.corrupt(what));
        }
        let weights = files.weights.as_ref();
        let weights = weights.map(|(file, weight_type)| WeightColumn::open(file, *weight_type)).transpose()?;
        if let Some((file, _)) = &files.weights
            && let Some(column) = &weights
            && column.len() != targets.len()
        {
            return Err(file.corrupt(format!("{} weights expected, {} found", targets.len(), column.len())));
        }
        let rows = files.rows.as_ref();
        let rows = rows.map(|file| Column::<u64>::open(file, SectionKind::RowNumbers)).transpose()?;
        if let (Some(file), Some(column)) = (&files.rows, &rows)
            && column.len() != targets.len()
        {
            return Err(file.corrupt(format!("{} rows expected, {} found", targets.len(), column.len())));
        }
        let columns = ArcColumns {
            weights: weights.as_ref().map(WeightColumn::unverified),
            rows: rows.as_ref().map(|rows| rows.unverified().clone()),
        };
        let num_pages = index.len();
        index.push(IndexEntry { edge_base: targets.len() as u64, slot: 0, kind: PageKind::Empty });
        let verified = || AtomicBitmap::new(num_pages);
        let (verified_lists, verified_weights, verified_offsets) = (verified(), verified(), verified());
        Ok(Self {
            index,
            offsets,
            targets,
            weights,
            rows,
            columns,
            rules,
            roomy: OnceLock::new(),
            verified_lists,
            verified_weights,
            verified_offsets,
            single_lists: OnceLock::new(),
            single_weights: OnceLock::new(),
            is_exact: AtomicBool::new(false),
            are_weights_exact: AtomicBool::new(false),
            advising: Mutex::default(),
        })
    }

    /// The number of stored entries.
    pub fn num_arcs(&self) -> u64 {
        self.targets.len() as u64
    }

    /// The number of pages.
    pub fn num_pages(&self) -> usize {
        self.index.len() - 1
    }

    /// Whether a page has edges.
    pub fn is_dense(&self, page: usize) -> bool {
        self.index.get(page).is_some_and(|entry| entry.kind == PageKind::Dense)
    }

    /// Where the edges of a page start among all; behind the last page, where all end.
    pub fn edge_base(&self, page: usize) -> u64 {
        self.index[page.min(self.num_pages())].edge_base
    }

    /// Where the offsets of a page start, if it has edges.
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

    /// All that stands beside the targets, verified or not.
    pub fn columns(&self) -> &ArcColumns {
        &self.columns
    }

    /// Fetches the place of the list of `vertex` to the cache.
    #[inline]
    pub fn prefetch(&self, vertex: VertexId) {
        // A hint does not care whether the page has offsets.
        if let Some(entry) = self.index.get(page_of(vertex)) {
            base::simd::prefetch(self.offsets(), entry.slot as usize * PAGE_OFFSETS + place_in_page(vertex));
        }
    }

    /// Fetches the entries of the list of `vertex` to the cache that are at `places`, which depend on its length.
    #[inline]
    pub fn prefetch_entries(&self, vertex: VertexId, places: impl Fn(usize) -> Range<usize>) {
        // Nor does it care whether the offsets are verified.
        let Some(entry) = self.index.get(page_of(vertex)) else { return };
        let place = entry.slot as usize * PAGE_OFFSETS + place_in_page(vertex);
        if let Some(&[start, end]) = self.offsets().get(place..place + 2) {
            let first = entry.edge_base as usize + start as usize;
            for place in places(end.saturating_sub(start) as usize).step_by(LINE_ENTRIES) {
                base::simd::prefetch(self.targets(), first + place);
            }
        }
    }

    /// All targets and what stands beside them, verified or not, with room for pages behind them.
    pub fn roomy(&self, memory: &Arc<Memory>) -> Option<&RoomyLists> {
        self.roomy.get_or_init(|| RoomyLists::new(self.targets(), self.columns(), memory)).as_ref()
    }

    /// Tells the system whether all targets that are read are asked for, so that it reads nothing around them by
    /// itself. If not, neither are all weights.
    pub fn read_exactly(&self, is_exact: bool) {
        if !is_exact {
            self.set_weights_exact(false);
        }
        if self.is_exact() == is_exact {
            return;
        }
        let _one = self.advising.lock().unwrap_or_else(|e| e.into_inner());
        if self.is_exact.swap(is_exact, Ordering::Relaxed) != is_exact {
            self.targets().bytes().advise(advice(is_exact));
        }
    }

    /// Tells the same of the weights, until the targets are read otherwise again.
    pub fn read_weights_exactly(&self) {
        self.set_weights_exact(true);
    }

    fn set_weights_exact(&self, is_exact: bool) {
        if self.are_weights_exact() == is_exact {
            return;
        }
        let _one = self.advising.lock().unwrap_or_else(|e| e.into_inner());
        if self.are_weights_exact.swap(is_exact, Ordering::Relaxed) != is_exact
            && let Some((weights, _)) = self.weight_bytes()
        {
            weights.advise(advice(is_exact));
        }
    }

    /// Whether the weights are read so.
    pub fn are_weights_exact(&self) -> bool {
        self.are_weights_exact.load(Ordering::Relaxed)
    }

    /// The bytes of all weights, or of all rows where there are only those, verified or not, and those of each.
    pub fn weight_bytes(&self) -> Option<(FileBytes, usize)> {
        let rows = || self.rows.as_ref().map(|rows| (rows.unverified().bytes().clone(), size_of::<u64>()));
        self.weights.as_ref().map(WeightColumn::bytes).or_else(rows)
    }

    /// What was said last.
    pub fn is_exact(&self) -> bool {
        self.is_exact.load(Ordering::Relaxed)
    }

    /// Where a walk over the lists from `first` on may stop to say so: at the end of a page.
    pub fn end_of_step(&self, first: VertexId) -> VertexId {
        let page = page_of(first);
        let start = self.edge_base(page);
        let is_within = |next: &usize| *next < self.num_pages() && self.edge_base(*next) - start < STEP_EDGES;
        let end = (page + 1..page + 1 + STEP_PAGES).find(|next| !is_within(next)).unwrap_or(page + 1 + STEP_PAGES);
        VertexId::try_from(end * PAGE_VERTICES).unwrap_or(VertexId::MAX)
    }

    /// Has the system read these targets now, where it reads nothing ahead by itself.
    fn read_ahead(&self, edges: &Range<usize>) {
        if self.is_exact() && edges.len() > BLOCK_BYTES / size_of::<VertexId>() {
            self.targets().bytes().read_ahead(edges.start * size_of::<VertexId>()..edges.end * size_of::<VertexId>());
        }
    }

    /// The bytes of the lists of these vertices among all targets, verified or not.
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
            (entry.edge_base as usize + offset).min(self.targets.len())
        };
        let (start, end) = (place(vertices.start), place(vertices.end));
        start * size_of::<VertexId>()..end.max(start) * size_of::<VertexId>()
    }

    /// A page, verified now if it was not before; `None` where it has no edges.
    ///
    /// # Errors
    /// The page is damaged.
    pub fn page(&self, page: usize) -> base::Result<Option<BasePage<'_>>> {
        if !self.is_dense(page) {
            return Ok(None);
        }
        if !self.verified_lists.get(page) {
            self.check_lists(page)?;
            self.verified_lists.set(page);
        }
        Ok(Some(self.verified_page(page)))
    }

    /// The targets of the list of `vertex`, verified now if they were not before, and no others; none where the page
    /// has no edges.
    ///
    /// # Errors
    /// The offsets of the page are damaged, or the list is.
    pub fn list(&self, vertex: VertexId) -> base::Result<Range<usize>> {
        let Some(edges) = self.unverified_list(vertex)? else { return Ok(0..0) };
        // Ids at the end of the last page are of no vertex of the run, and perhaps of one that is laid over it.
        if edges.is_empty() || self.verified_lists.get(page_of(vertex)) {
            return Ok(edges);
        }
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

    /// The same, and the weights of the list.
    ///
    /// # Errors
    /// As for [`list`](Self::list), or the weights are damaged.
    pub fn weighted_list(&self, vertex: VertexId) -> base::Result<Range<usize>> {
        let edges = self.list(vertex)?;
        let Some(weights) = &self.weights else { return Ok(edges) };
        if edges.is_empty() || self.verified_weights.get(page_of(vertex)) {
            return Ok(edges);
        }
        let verified = self.single_weights.get_or_init(|| AtomicBitmap::new(self.rules.vertex_bound));
        if !verified.get(vertex as usize) {
            let (bytes, width) = weights.bytes();
            if self.are_weights_exact() && edges.len() * width > BLOCK_BYTES {
                bytes.read_ahead(edges.start * width..edges.end * width);
            }
            weights.check(edges.clone())?;
            verified.set(vertex as usize);
        }
        Ok(edges)
    }

    /// The length of the list of `vertex`; none of its targets is read.
    ///
    /// # Errors
    /// The offsets of the page are damaged.
    pub fn degree(&self, vertex: VertexId) -> base::Result<usize> {
        Ok(self.unverified_list(vertex)?.map_or(0, |edges| edges.len()))
    }

    /// Where the list of `vertex` is, after the offsets of its page, which are verified; `None` where it has no edges.
    fn unverified_list(&self, vertex: VertexId) -> base::Result<Option<Range<usize>>> {
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

    /// Where the list of `vertex` is, whose page has edges and verified offsets.
    #[inline]
    pub fn verified_list(&self, vertex: VertexId) -> Range<usize> {
        let page = page_of(vertex);
        let (place, base) = (self.place(page) + place_in_page(vertex), self.edge_base(page) as usize);
        let ends = &self.offsets()[place..place + 2];
        base + ends[0] as usize..base + ends[1] as usize
    }

    /// Verifies the weights of a page, if they were not before.
    ///
    /// # Errors
    /// The page is damaged.
    pub fn verify_weights(&self, page: usize) -> base::Result<()> {
        if let Some(weights) = &self.weights
            && self.is_dense(page)
            && !self.verified_weights.get(page)
        {
            weights.check(self.edges(page))?;
            self.verified_weights.set(page);
        }
        Ok(())
    }

    /// Verifies the rows beside these entries, where there are rows.
    ///
    /// # Errors
    /// They are damaged.
    pub fn verify_rows(&self, edges: Range<usize>) -> base::Result<()> {
        self.rows.as_ref().map_or(Ok(()), |rows| rows.touch(edges).map(drop))
    }

    /// The targets of a page; none behind the last one.
    pub fn edges(&self, page: usize) -> Range<usize> {
        self.edge_base(page) as usize..self.edge_base(page + 1) as usize
    }

    fn verified_page(&self, page: usize) -> BasePage<'_> {
        let place = self.place(page);
        let edges = self.edges(page);
        BasePage {
            place,
            offsets: &self.offsets.unverified()[place..place + PAGE_OFFSETS],
            targets: &self.targets.unverified()[edges.clone()],
            edge_base: edges.start,
        }
    }

    /// Checks a dense page: checksums, offsets, lists.
    fn check_lists(&self, page: usize) -> base::Result<()> {
        let page_offsets = self.check_offsets(page)?;
        let edges = self.edges(page);
        self.read_ahead(&edges);
        let page_targets = self.targets.touch(edges.clone())?;
        let ends = page_offsets[1..].iter().map(|&end| end as usize);
        self.rules.check(page_targets, ends).map_err(|what| self.targets.corrupt(edges.start, what))
    }

    /// Checks the offsets of a dense page, and gives them.
    fn check_offsets(&self, page: usize) -> base::Result<&[u32]> {
        let num_edges = self.edges(page).len();
        let start = self.place(page);
        let page_offsets = self.offsets.touch(start..start + PAGE_OFFSETS)?;
        let num_vertices = (self.rules.vertex_bound - page * PAGE_VERTICES).min(PAGE_VERTICES);
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

/// What the system is told of bytes that are asked for exactly, or of others.
fn advice(is_exact: bool) -> Advice {
    if is_exact { Advice::Random } else { Advice::Normal }
}

/// The index of the pages, verified: bases ascend to the number of targets, slots count the dense pages.
fn read_index(file: &FramedFile, vertex_bound: usize, num_targets: u64) -> Result<Vec<IndexEntry>> {
    let section = file.section(SectionKind::PageIndex)?;
    let bytes = section.bytes().as_slice();
    section.verify(0..bytes.len())?;
    let num_pages = num_pages(vertex_bound);
    let corrupt = |page: usize, what: &str| {
        let offset = section.file_offset() + (page * INDEX_ENTRY_BYTES) as u64;
        base::Error::corrupt(file.path(), offset, what)
    };
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
        let is_next = entry.slot == if entry.kind == PageKind::Dense { slot } else { 0 };
        if num_before.is_none() || !is_next {
            return Err(corrupt(page, "the index of the pages is out of order").into());
        }
        slot += u32::from(entry.kind == PageKind::Dense);
        previous = Some(entry);
        index.push(entry);
    }
    let ends_well = previous.map_or(num_targets == 0, |last| page_len(&last, num_targets).is_some());
    if !ends_well {
        let what = format!("the index of the pages does not end at {num_targets} targets");
        return Err(corrupt(num_pages.saturating_sub(1), &what).into());
    }
    Ok(index)
}

/// The edges of a page, given where the next page's start; `None` where its kind cannot have so many.
fn page_len(entry: &IndexEntry, next_base: u64) -> Option<u64> {
    let len = next_base.checked_sub(entry.edge_base)?;
    match entry.kind {
        PageKind::Empty => len == 0,
        PageKind::Dense => (1..=u64::from(u32::MAX)).contains(&len),
    }
    .then_some(len)
}

/// The weights of a side, of any type.
#[derive(Debug)]
enum WeightColumn {
    U32(Column<u32>),
    I64(Column<i64>),
    F32(Column<f32>),
    F64(Column<f64>),
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
            WeightType::U32 => Self::U32(Column::open(file, SectionKind::Weights)?),
            WeightType::I64 => Self::I64(Column::open(file, SectionKind::Weights)?),
            WeightType::F32 => Self::F32(Column::open(file, SectionKind::Weights)?),
            WeightType::F64 => Self::F64(Column::open(file, SectionKind::Weights)?),
        })
    }

    fn len(&self) -> usize {
        for_weights!(self, column => column.len())
    }

    fn bytes(&self) -> (FileBytes, usize) {
        fn bytes<W: Weight>(column: &Column<W>) -> (FileBytes, usize) {
            (column.unverified().bytes().clone(), size_of::<W>())
        }
        for_weights!(self, column => bytes(column))
    }

    fn unverified(&self) -> Weights {
        for_weights!(self, column => Weight::column(column.unverified().clone()))
    }

    fn check(&self, edges: Range<usize>) -> base::Result<()> {
        fn check<W: Weight>(column: &Column<W>, edges: Range<usize>) -> base::Result<()> {
            let weights = column.touch(edges.clone())?;
            match weights.iter().position(|weight| !weight.is_number()) {
                Some(index) => Err(column.corrupt(edges.start + index, "a weight that is no number")),
                None => Ok(()),
            }
        }
        for_weights!(self, column => check(column, edges))
    }
}
