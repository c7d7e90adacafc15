//! Reads level files: where everything is, then page by page.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::bitmap::AtomicBitmap;
use base::{MAX_VERTICES, VertexId};
use graph::{Side, WeightType};

use super::properties::{PropertyCursor, PropertyRange, PropertySections};
use super::stored::{StoredPage, StoredWeights};
use super::{
    ChangeRules, LevelEntry, PageEntry, SIDES, SideCounts, VertexEntry, check_vertices, first_in_both, sections,
    side_index,
};
use crate::Result;
use crate::changes::PageChanges;
use crate::column::Column;
use crate::file::{FramedFile, SectionKind};
use crate::lists::ListRules;
use crate::options::GraphOptions;
use crate::property::ChangesRef;
use crate::table::PAGE_VERTICES;

/// The levels of a file.
#[derive(Debug)]
pub(crate) struct LevelFile {
    levels: Vec<Level>,
}

/// What changed from one version to a later one; clones share everything, also what was verified.
///
/// What is in memory is where its parts are; they are read in place.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    columns: Arc<Columns>,
    entry: LevelEntry,
    /// Which of the file's levels it is.
    index: usize,
    vertex_bound: usize,
    sides: [SideRanges; 2],
    died: IdRange,
    returned: IdRange,
    /// By column that changes, ascending.
    properties: Vec<PropertyRange>,
}

/// What a level has of each section of a side.
#[derive(Debug)]
struct SideRanges {
    pages: Range<usize>,
    vertices: Range<usize>,
    targets: Range<usize>,
    /// Whether the index of the pages was checked, and found to be whole.
    is_checked: AtomicBool,
    /// Bits by place in the index: the pages that were checked.
    checked_pages: AtomicBitmap,
}

#[derive(Debug)]
struct IdRange {
    range: Range<usize>,
    is_checked: AtomicBool,
}

/// The sections of a file.
#[derive(Debug)]
struct Columns {
    directory: Column<LevelEntry>,
    sides: [Option<SideColumns>; 2],
    died: Column<VertexId>,
    returned: Column<VertexId>,
    properties: Option<PropertySections>,
    options: GraphOptions,
}

#[derive(Debug)]
pub(super) struct SideColumns {
    pages: Column<PageEntry>,
    vertices: Column<u32>,
    targets: Column<VertexId>,
    weights: Option<WeightBits>,
    rows: Option<Column<u64>>,
}

/// Weights as what they are wide.
#[derive(Debug)]
enum WeightBits {
    Narrow(Column<u32>),
    Wide(Column<u64>),
}

/// Where the changes of a page are.
#[derive(Clone)]
struct PagePlaces {
    vertices: Range<usize>,
    targets: Range<usize>,
}

/// The parts of a level's side, verified by their checksums.
#[derive(Debug)]
pub(super) struct SideParts<'a> {
    pub pages: &'a [PageEntry],
    pub vertices: &'a [u32],
    pub targets: &'a [VertexId],
    pub weights: &'a [u8],
    pub rows: &'a [u64],
}

impl LevelFile {
    /// Reads which levels are in the file; verifies the directory that says so, and nothing else.
    ///
    /// Memory: some 300 bytes a level.
    ///
    /// # Errors
    /// A section is missing or has a wrong length; the directory is damaged.
    pub fn open(file: &FramedFile, options: &GraphOptions) -> Result<Self> {
        let columns = Arc::new(Columns::open(file, options)?);
        let directory = &columns.directory;
        let mut cursor = Cursor::default();
        let mut levels = Vec::new();
        for (index, entry) in directory.touch(0..directory.len())?.iter().enumerate() {
            levels.push(cursor.level(&columns, index, entry)?);
        }
        match cursor.first_unowned(&columns) {
            Some(what) => Err(file.corrupt(format!("{what} that belong to no level"))),
            None => Ok(Self { levels }),
        }
    }

    /// The levels, in the order in which they were written.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }
}

impl Columns {
    fn open(file: &FramedFile, options: &GraphOptions) -> Result<Self> {
        let in_side = options.stores_in_lists().then(|| SideColumns::open(file, Side::In, options)).transpose()?;
        Ok(Self {
            directory: Column::open(file, SectionKind::LevelDirectory)?,
            sides: [Some(SideColumns::open(file, Side::Out, options)?), in_side],
            died: Column::open(file, SectionKind::DiedVertices)?,
            returned: Column::open(file, SectionKind::ReturnedVertices)?,
            properties: PropertySections::open(file)?,
            options: *options,
        })
    }
}

impl SideColumns {
    fn open(file: &FramedFile, side: Side, options: &GraphOptions) -> Result<Self> {
        let kinds = sections(side);
        let weights = match options.weight_type {
            None => None,
            Some(WeightType::U32 | WeightType::F32) => Some(WeightBits::Narrow(Column::open(file, kinds.weights)?)),
            Some(WeightType::I64 | WeightType::F64) => Some(WeightBits::Wide(Column::open(file, kinds.weights)?)),
        };
        let rows = options.has_rows().then(|| Column::open(file, kinds.rows)).transpose()?;
        let targets = Column::open(file, kinds.targets)?;
        let lens = [("weights", weights.as_ref().map(WeightBits::len)), ("rows", rows.as_ref().map(Column::len))];
        for (name, len) in lens {
            if let Some(len) = len.filter(|&len| len != targets.len()) {
                return Err(file.corrupt(format!("{} {name} of changes expected, {len} found", targets.len())));
            }
        }
        Ok(Self {
            pages: Column::open(file, kinds.pages)?,
            vertices: Column::open(file, kinds.vertices)?,
            targets,
            weights,
            rows,
        })
    }
}

impl WeightBits {
    fn len(&self) -> usize {
        match self {
            Self::Narrow(column) => column.len(),
            Self::Wide(column) => column.len(),
        }
    }

    fn bytes(&self, range: Range<usize>) -> base::Result<&[u8]> {
        Ok(match self {
            Self::Narrow(column) => bytemuck::cast_slice(column.touch(range)?),
            Self::Wide(column) => bytemuck::cast_slice(column.touch(range)?),
        })
    }
}

/// Where the next level's share of each section starts.
#[derive(Debug, Default)]
struct Cursor {
    /// Of pages, vertices and targets.
    sides: [[usize; 3]; 2],
    died: usize,
    returned: usize,
    properties: PropertyCursor,
}

impl Cursor {
    fn level(&mut self, columns: &Arc<Columns>, index: usize, entry: &LevelEntry) -> Result<Level> {
        let corrupt = |what: &str| -> crate::Error { columns.directory.corrupt(index, what).into() };
        let vertex_bound = usize::try_from(entry.vertex_bound).ok().filter(|&bound| bound <= MAX_VERTICES);
        let vertex_bound = vertex_bound.ok_or_else(|| corrupt("a level with too many vertices"))?;
        if entry.from >= entry.to {
            return Err(corrupt(&format!("a level from version {} to {}", entry.from, entry.to)));
        }
        let [out_side, in_side] = SIDES.map(|side| {
            let place = side_index(side);
            self.side(place, columns.sides[place].as_ref(), &entry.sides[place])
        });
        let died = take(&mut self.died, entry.num_died, columns.died.len());
        let returned = take(&mut self.returned, entry.num_returned, columns.returned.len());
        let (Some(out_side), Some(in_side), Some(died), Some(returned)) = (out_side, in_side, died, returned) else {
            return Err(corrupt("a level reaches past the end of a section"));
        };
        let properties = self.properties.level(columns.properties.as_ref(), entry.num_columns)?;
        let properties = properties.map_err(corrupt)?;
        let [died, returned] = [died, returned].map(|range| IdRange { range, is_checked: AtomicBool::new(false) });
        let sides = [out_side, in_side];
        let columns = Arc::clone(columns);
        let entry = *entry;
        let shared = Shared { columns, entry, index, vertex_bound, sides, died, returned, properties };
        Ok(Level { shared: Arc::new(shared) })
    }

    fn side(&mut self, place: usize, columns: Option<&SideColumns>, counts: &SideCounts) -> Option<SideRanges> {
        let lens = columns.map_or([0; 3], SideColumns::lens);
        let num_targets = counts.num_added.checked_add(counts.num_removed)?;
        let [pages, vertices, targets] = &mut self.sides[place];
        let pages = take(pages, counts.num_pages, lens[0])?;
        Some(SideRanges {
            checked_pages: AtomicBitmap::new(pages.len()),
            pages,
            vertices: take(vertices, counts.num_vertices, lens[1])?,
            targets: take(targets, num_targets, lens[2])?,
            is_checked: AtomicBool::new(false),
        })
    }

    /// What is left when all levels have their share.
    fn first_unowned(&self, columns: &Columns) -> Option<&'static str> {
        let sides = self.sides.iter().zip(&columns.sides);
        let is_owned = |(ends, side): (&[usize; 3], &Option<SideColumns>)| {
            side.as_ref().is_none_or(|columns| columns.lens() == *ends)
        };
        if !sides.into_iter().all(is_owned) {
            return Some("changes");
        }
        let is_owned = self.died == columns.died.len() && self.returned == columns.returned.len();
        if !is_owned {
            return Some("vertices");
        }
        (!self.properties.is_at_end(columns.properties.as_ref())).then_some("properties")
    }
}

impl SideColumns {
    fn lens(&self) -> [usize; 3] {
        [self.pages.len(), self.vertices.len(), self.targets.len()]
    }
}

/// The next `count` of `len`.
pub(super) fn take(cursor: &mut usize, count: u64, len: usize) -> Option<Range<usize>> {
    let start = *cursor;
    let end = usize::try_from(count).ok().and_then(|count| start.checked_add(count)).filter(|&end| end <= len)?;
    *cursor = end;
    Some(start..end)
}

impl Level {
    /// The version that the changes start from.
    pub fn from(&self) -> u32 {
        self.shared.entry.from
    }

    /// The version that they lead to.
    pub fn to(&self) -> u32 {
        self.shared.entry.to
    }

    /// The vertex bound of the version that they lead to.
    pub fn vertex_bound(&self) -> usize {
        self.shared.vertex_bound
    }

    /// The number of arcs added to the lists of a side, and removed from them.
    pub fn num_arcs(&self, side: Side) -> (u64, u64) {
        let counts = &self.shared.entry.sides[side_index(side)];
        (counts.num_added, counts.num_removed)
    }

    /// The bytes of the level in its file, the frame of the file left out.
    pub fn num_bytes(&self) -> u64 {
        let shared = &self.shared;
        let sides = shared.sides.iter().map(|side| {
            let target_bytes = size_of::<VertexId>() + shared.columns.options.data_bytes();
            side.pages.len() * size_of::<PageEntry>() + side.vertices.len() * 4 + side.targets.len() * target_bytes
        });
        (size_of::<LevelEntry>() + sides.sum::<usize>()) as u64 + self.num_unpaged_bytes()
    }

    /// Of those, what it does not have page by page: vertices that died or returned, and properties.
    pub fn num_unpaged_bytes(&self) -> u64 {
        let shared = &self.shared;
        let num_ids = shared.died.range.len() + shared.returned.range.len();
        let properties: usize = shared.properties.iter().map(PropertyRange::num_bytes).sum();
        (num_ids * size_of::<VertexId>() + properties) as u64
    }

    /// The pages of a side that have changes, ascending.
    ///
    /// # Errors
    /// The index is damaged.
    pub fn pages(&self, side: Side) -> base::Result<Vec<u32>> {
        Ok(self.index(side)?.iter().map(|entry| entry.page).collect())
    }

    /// The pages of a side that have changes, ascending, each with the number of arcs added and removed.
    ///
    /// # Errors
    /// The index is damaged.
    pub fn page_arcs(&self, side: Side) -> base::Result<Vec<(u32, u64)>> {
        let (pages, targets) = (self.index(side)?, &self.shared.sides[side_index(side)].targets);
        let num_arcs = |place| part(targets, pages, place, |entry| entry.targets_start as usize).len() as u64;
        Ok(pages.iter().enumerate().map(|(place, entry)| (entry.page, num_arcs(place))).collect())
    }

    /// Whether a page of a side has changes; also true where that cannot be read, so that
    /// [`read_page`](Self::read_page) says why.
    ///
    /// Cost: a binary search; the first call for a side verifies its index.
    pub fn touches(&self, side: Side, page: usize) -> bool {
        self.index(side).map_or(true, |pages| find(pages, page).is_some())
    }

    /// The changes of a page, instead of what `out` held; false where there are none.
    ///
    /// Cost: a binary search and a pass over the changes; the first time, checksums and checks.
    ///
    /// # Errors
    /// The page is damaged; `out` is empty then.
    pub fn read_page(&self, side: Side, page: usize, out: &mut PageChanges) -> base::Result<bool> {
        out.clear();
        let Some((columns, place, stored)) = self.find_page(side, page)? else { return Ok(false) };
        let checked_pages = &self.shared.sides[side_index(side)].checked_pages;
        let mut result = self.read_changes(columns, stored.clone(), out);
        if result.is_ok() && !checked_pages.get(place) {
            let rules = ChangeRules::new(self.shared.vertex_bound, &self.shared.columns.options);
            result = rules.check(page, out).map_err(|what| columns.targets.corrupt(stored.targets.start, what));
            if result.is_ok() {
                checked_pages.set(place);
            }
        }
        if result.is_err() {
            out.clear();
        }
        result.map(|()| true)
    }

    /// The changes of a page, where they are stored; `None` where there are none. `scratch` is memory that is used
    /// again.
    ///
    /// Cost: a binary search; the first time, that of [`read_page`](Self::read_page).
    ///
    /// # Errors
    /// The page is damaged.
    pub fn stored_page(
        &self,
        side: Side,
        page: usize,
        scratch: &mut PageChanges,
    ) -> base::Result<Option<StoredPage<'_>>> {
        let Some((columns, place, stored)) = self.find_page(side, page)? else { return Ok(None) };
        let PagePlaces { vertices, targets } = stored.clone();
        let checked_pages = &self.shared.sides[side_index(side)].checked_pages;
        if !checked_pages.get(place) {
            if columns.weights.is_some() || columns.rows.is_some() {
                self.read_page(side, page, scratch)?;
            } else {
                self.check_plain(columns, page, stored)?;
                checked_pages.set(place);
            }
        }
        Ok(Some(StoredPage {
            vertices: &columns.vertices.unverified()[vertices],
            targets: &columns.targets.unverified()[targets.clone()],
            weights: match &columns.weights {
                None => StoredWeights::None,
                Some(WeightBits::Narrow(column)) => StoredWeights::Narrow(&column.unverified()[targets.clone()]),
                Some(WeightBits::Wide(column)) => StoredWeights::Wide(&column.unverified()[targets.clone()]),
            },
            rows: columns.rows.as_ref().map_or(&[], |column| &column.unverified()[targets]),
        }))
    }

    /// A page's place in the index, and where its changes are.
    fn find_page(&self, side: Side, page: usize) -> base::Result<Option<(&SideColumns, usize, PagePlaces)>> {
        let pages = self.index(side)?;
        let (Some(place), Some(columns)) = (find(pages, page), &self.shared.columns.sides[side_index(side)]) else {
            return Ok(None);
        };
        let ranges = &self.shared.sides[side_index(side)];
        let vertices = part(&ranges.vertices, pages, place, |entry| entry.vertices_start as usize);
        let targets = part(&ranges.targets, pages, place, |entry| entry.targets_start as usize);
        Ok(Some((columns, place, PagePlaces { vertices, targets })))
    }

    fn read_changes(
        &self,
        columns: &SideColumns,
        PagePlaces { vertices, targets }: PagePlaces,
        out: &mut PageChanges,
    ) -> base::Result<()> {
        let first = vertices.start;
        let entries = columns.vertices.touch(vertices)?;
        let is_counted = |entry: &VertexEntry| out.push_counts(entry.local, entry.num_added, entry.num_removed);
        check_entries(columns, first, entries, is_counted)?;
        let values = columns.targets.touch(targets.clone())?;
        let num_values = values.len();
        let rows = columns.rows.as_ref().map_or(Ok(&[][..]), |rows| rows.touch(targets.clone()))?;
        let fits = match &columns.weights {
            None => out.set_arcs(values, std::iter::empty(), rows),
            Some(WeightBits::Narrow(weights)) => {
                out.set_arcs(values, weights.touch(targets)?.iter().map(|&bits| u64::from(bits)), rows)
            }
            Some(WeightBits::Wide(weights)) => out.set_arcs(values, weights.touch(targets)?.iter().copied(), rows),
        };
        if !fits {
            return Err(bad_sum(columns, first, num_values));
        }
        Ok(())
    }

    /// Checks the changes of a page of a graph without weights and rows where they are stored, as
    /// [`read_page`](Self::read_page) does once it has copied them.
    fn check_plain(
        &self,
        columns: &SideColumns,
        page: usize,
        PagePlaces { vertices, targets }: PagePlaces,
    ) -> base::Result<()> {
        let (first, first_target) = (vertices.start, targets.start);
        let vertices = columns.vertices.touch(vertices)?;
        let targets = columns.targets.touch(targets)?;
        let (mut any_added, mut any_removed, mut num_targets, mut last_local) = (0, 0, 0_u64, 0);
        let mut is_whole = true;
        check_entries(columns, first, vertices, |entry| {
            any_added |= entry.num_added;
            any_removed |= entry.num_removed;
            num_targets += u64::from(entry.num_added + entry.num_removed);
            is_whole &= entry.num_added < VertexEntry::MAX_COUNT && entry.num_removed < VertexEntry::MAX_COUNT;
            last_local = entry.local;
            true
        })?;
        if num_targets != targets.len() as u64 {
            return Err(bad_sum(columns, first, targets.len()));
        }
        let rules = ChangeRules::new(self.shared.vertex_bound, &self.shared.columns.options);
        let lists = ListRules { vertex_bound: self.shared.vertex_bound, multigraph: rules.multigraph };
        // Where an entry is a list, all lists are checked at once.
        let ends = vertices.iter().scan(0, |end, &bits| {
            let entry = VertexEntry::decode(bits);
            *end += (entry.num_added + entry.num_removed) as usize;
            Some(*end)
        });
        let is_of_one_kind = is_whole && (any_added == 0 || any_removed == 0);
        let is_below = page * PAGE_VERTICES + usize::from(last_local) < self.shared.vertex_bound;
        if is_of_one_kind && is_below && lists.check(targets, ends).is_ok() {
            return Ok(());
        }
        let stored = StoredPage { vertices, targets, weights: StoredWeights::None, rows: &[] };
        for list in stored.lists() {
            let list = list.ok_or_else(|| bad_sum(columns, first, targets.len()))?;
            rules.check_list(page, &list).map_err(|what| columns.targets.corrupt(first_target, what))?;
        }
        Ok(())
    }

    /// The index of a side, checked once.
    fn index(&self, side: Side) -> base::Result<&[PageEntry]> {
        let ranges = &self.shared.sides[side_index(side)];
        let Some(columns) = &self.shared.columns.sides[side_index(side)] else { return Ok(&[]) };
        // The mark needs no order: it says only that somebody checked bytes that nobody changes.
        if ranges.is_checked.load(Ordering::Relaxed) {
            return Ok(&columns.pages.unverified()[ranges.pages.clone()]);
        }
        let pages = columns.pages.touch(ranges.pages.clone())?;
        if let Some(bad) = self.first_bad_page(ranges, pages) {
            return Err(columns.pages.corrupt(ranges.pages.start + bad, "the index of changed pages is out of order"));
        }
        ranges.is_checked.store(true, Ordering::Relaxed);
        Ok(pages)
    }

    /// Pages ascend, and each has a vertex and an arc at least.
    fn first_bad_page(&self, ranges: &SideRanges, pages: &[PageEntry]) -> Option<usize> {
        let Some(first) = pages.first() else {
            return (!ranges.vertices.is_empty() || !ranges.targets.is_empty()).then_some(0);
        };
        if (first.vertices_start, first.targets_start) != (0, 0) {
            return Some(0);
        }
        let num_pages = crate::table::num_pages(self.shared.vertex_bound);
        let (num_vertices, num_targets) = (ranges.vertices.len() as u64, ranges.targets.len() as u64);
        let is_inside = |entry: &PageEntry| {
            (entry.page as usize) < num_pages
                && u64::from(entry.vertices_start) < num_vertices
                && entry.targets_start < num_targets
        };
        let ascends = |a: &PageEntry, b: &PageEntry| {
            a.page < b.page && a.vertices_start < b.vertices_start && a.targets_start < b.targets_start
        };
        (0..pages.len()).find(|&i| !is_inside(&pages[i]) || i > 0 && !ascends(&pages[i - 1], &pages[i]))
    }

    /// The vertices that died, ascending. In a level over several versions they may be vertices that are new in it.
    ///
    /// # Errors
    /// They are damaged.
    pub fn died(&self) -> base::Result<&[VertexId]> {
        self.ids(&self.shared.columns.died, &self.shared.died)
    }

    /// The vertices that had died and live again, ascending.
    ///
    /// # Errors
    /// They are damaged.
    pub fn returned(&self) -> base::Result<&[VertexId]> {
        self.ids(&self.shared.columns.returned, &self.shared.returned)
    }

    fn ids<'a>(&self, column: &'a Column<VertexId>, ids: &IdRange) -> base::Result<&'a [VertexId]> {
        if ids.is_checked.load(Ordering::Relaxed) {
            return Ok(&column.unverified()[ids.range.clone()]);
        }
        let vertices = column.touch(ids.range.clone())?;
        let checked = check_vertices(vertices, self.shared.vertex_bound);
        checked.map_err(|what| column.corrupt(ids.range.start, what))?;
        ids.is_checked.store(true, Ordering::Relaxed);
        Ok(vertices)
    }

    /// Whether properties of vertices change.
    pub fn has_properties(&self) -> bool {
        !self.shared.properties.is_empty()
    }

    /// The columns of properties that change, ascending.
    pub fn property_columns(&self) -> impl ExactSizeIterator<Item = u32> {
        self.shared.properties.iter().map(|range| range.column)
    }

    /// Whether a column of properties changes.
    pub fn changes_property(&self, column: u32) -> bool {
        self.shared.properties.binary_search_by_key(&column, |range| range.column).is_ok()
    }

    /// What changes in a column of properties, if anything does.
    ///
    /// Cost: a binary search; the first call for a column verifies its changes.
    ///
    /// # Errors
    /// They are damaged.
    pub fn property_changes(&self, column: u32) -> base::Result<Option<ChangesRef<'_>>> {
        let Shared { columns, properties, vertex_bound, .. } = &*self.shared;
        let Ok(place) = properties.binary_search_by_key(&column, |range| range.column) else { return Ok(None) };
        columns.properties.as_ref().map(|sections| sections.changes(&properties[place], *vertex_bound)).transpose()
    }

    /// An error about the level, of which nothing more can be said than where it is listed.
    pub fn corrupt(&self, what: impl Into<String>) -> base::Error {
        self.shared.columns.directory.corrupt(self.shared.index, what)
    }

    /// Reads everything, and checks what reading page by page does not: the sums in the directory.
    ///
    /// # Errors
    /// Something is damaged.
    pub fn verify(&self) -> base::Result<()> {
        if let Some(vertex) = first_in_both(self.died()?, self.returned()?) {
            return Err(self.corrupt(format!("vertex {vertex} both died and returned")));
        }
        self.property_columns().try_for_each(|column| self.property_changes(column).map(drop))?;
        let mut changes = PageChanges::default();
        for side in SIDES {
            let (mut num_added, mut num_removed) = (0, 0);
            for page in self.index(side)? {
                self.read_page(side, page.page as usize, &mut changes)?;
                let (added, removed) = changes.num_changes();
                num_added += added as u64;
                num_removed += removed as u64;
            }
            if (num_added, num_removed) != self.num_arcs(side) {
                let (added, removed) = self.num_arcs(side);
                let what =
                    format!("{added} arcs added and {removed} removed expected, {num_added} and {num_removed} found");
                return Err(self.corrupt(what));
            }
        }
        Ok(())
    }

    pub(super) fn entry(&self) -> &LevelEntry {
        &self.shared.entry
    }

    /// All of a side, verified by its checksums.
    pub(super) fn parts(&self, side: Side) -> base::Result<Option<SideParts<'_>>> {
        let ranges = &self.shared.sides[side_index(side)];
        let Some(columns) = &self.shared.columns.sides[side_index(side)] else { return Ok(None) };
        let weights = columns.weights.as_ref().map(|weights| weights.bytes(ranges.targets.clone())).transpose()?;
        Ok(Some(SideParts {
            pages: self.index(side)?,
            vertices: columns.vertices.touch(ranges.vertices.clone())?,
            targets: columns.targets.touch(ranges.targets.clone())?,
            weights: weights.unwrap_or_default(),
            rows: columns.rows.as_ref().map_or(Ok(&[][..]), |rows| rows.touch(ranges.targets.clone()))?,
        }))
    }
}

/// Checks that the entries of vertices of a page, the first of which is at `first`, are in order, and `is_fine`.
fn check_entries(
    columns: &SideColumns,
    first: usize,
    entries: &[u32],
    mut is_fine: impl FnMut(&VertexEntry) -> bool,
) -> base::Result<()> {
    let mut last = None::<VertexEntry>;
    for (index, &bits) in entries.iter().enumerate() {
        let entry = VertexEntry::decode(bits);
        let is_next = entry.num_added + entry.num_removed > 0 && last.is_none_or(|last| entry.follows(last));
        if !is_next || !is_fine(&entry) {
            return Err(columns.vertices.corrupt(first + index, "changes of vertices out of order"));
        }
        last = Some(entry);
    }
    Ok(())
}

fn bad_sum(columns: &SideColumns, first: usize, num_targets: usize) -> base::Error {
    columns.vertices.corrupt(first, format!("counts that add up to {num_targets} changes expected"))
}

/// Where a page is in the index.
fn find(pages: &[PageEntry], page: usize) -> Option<usize> {
    // Where every page changes, its place is its number.
    if pages.get(page).is_some_and(|entry| entry.page as usize == page) {
        return Some(page);
    }
    pages.binary_search_by_key(&page, |entry| entry.page as usize).ok()
}

/// The part of `range` that belongs to a page; the index was checked.
fn part(range: &Range<usize>, pages: &[PageEntry], place: usize, start: impl Fn(&PageEntry) -> usize) -> Range<usize> {
    let end = pages.get(place + 1).map_or(range.end, |next| range.start + start(next));
    range.start + start(&pages[place])..end
}
