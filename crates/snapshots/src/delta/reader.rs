//! Reads delta files: the directory first, then page by page.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anden_base::bitmap::AtomicBitmap;
use anden_base::{MAX_VERTICES, VertexId};
use anden_graph::{Direction, WeightType};

use super::properties::{PropertyCursor, PropertyRange, PropertySections};
use super::stored::{StoredPage, StoredWeights};
use super::{
    AdjacencyCounts, ChangeRules, DIRECTIONS, DeltaEntry, DeltaPageEntry, VertexEntry, check_vertices, direction_index,
    first_in_both, sections,
};
use crate::Result;
use crate::changes::PageChanges;
use crate::column::SectionColumn;
use crate::file::{FramedFile, SectionKind};
use crate::lists::ListRules;
use crate::options::GraphOptions;
use crate::property::ChangesRef;
use crate::table::PAGE_VERTICES;

/// The deltas of a file.
#[derive(Debug)]
pub(crate) struct DeltaFile {
    deltas: Vec<Delta>,
}

/// Changes from one version to a later one; clones share everything, verification marks included.
///
/// Only the places of its parts are in memory. The parts are read in place.
#[derive(Clone, Debug)]
pub(crate) struct Delta {
    shared: Arc<OpenedDelta>,
}

#[derive(Debug)]
struct OpenedDelta {
    columns: Arc<DeltaFileSections>,
    entry: DeltaEntry,
    /// Index of the delta in its file.
    index: usize,
    vertex_bound: usize,
    directions: [AdjacencyRanges; 2],
    died: IdRange,
    returned: IdRange,
    /// By changed column, ascending.
    properties: Vec<PropertyRange>,
}

/// A delta's share of each section of one direction.
#[derive(Debug)]
struct AdjacencyRanges {
    pages: Range<usize>,
    vertices: Range<usize>,
    targets: Range<usize>,
    /// Whether the page index was checked.
    is_checked: AtomicBool,
    /// Bits by position in the page index: the pages that were checked.
    checked_pages: AtomicBitmap,
}

#[derive(Debug)]
struct IdRange {
    range: Range<usize>,
    is_checked: AtomicBool,
}

/// The sections of a file.
#[derive(Debug)]
struct DeltaFileSections {
    directory: SectionColumn<DeltaEntry>,
    directions: [Option<AdjacencyColumns>; 2],
    died: SectionColumn<VertexId>,
    returned: SectionColumn<VertexId>,
    properties: Option<PropertySections>,
    options: GraphOptions,
}

#[derive(Debug)]
pub(super) struct AdjacencyColumns {
    pages: SectionColumn<DeltaPageEntry>,
    vertices: SectionColumn<u32>,
    targets: SectionColumn<VertexId>,
    weights: Option<WeightBits>,
    rows: Option<SectionColumn<u64>>,
}

/// Weights by their width.
#[derive(Debug)]
enum WeightBits {
    Narrow(SectionColumn<u32>),
    Wide(SectionColumn<u64>),
}

/// Place of a page's changes.
#[derive(Clone)]
struct PagePlaces {
    vertices: Range<usize>,
    targets: Range<usize>,
}

/// The parts of a delta in one direction, verified by their checksums.
#[derive(Debug)]
pub(super) struct AdjacencySlices<'a> {
    pub pages: &'a [DeltaPageEntry],
    pub vertices: &'a [u32],
    pub targets: &'a [VertexId],
    pub weights: &'a [u8],
    pub rows: &'a [u64],
}

impl DeltaFile {
    /// Reads which deltas the file has. Verifies the directory, and nothing else.
    ///
    /// Memory: about 300 bytes a delta.
    ///
    /// # Errors
    /// A section is missing or has a wrong length; the directory is damaged.
    pub fn open(file: &FramedFile, options: &GraphOptions) -> Result<Self> {
        let columns = Arc::new(DeltaFileSections::open(file, options)?);
        let directory = &columns.directory;
        let mut cursor = Cursor::default();
        let mut deltas = Vec::new();
        // The directory tells where all parts are, so the opening verifies it. Parts are verified when they are read.
        for (index, entry) in directory.touch(0..directory.len())?.iter().enumerate() {
            deltas.push(cursor.delta(&columns, index, entry)?);
        }
        // No later read would verify bytes that belong to no delta.
        match cursor.first_unowned(&columns) {
            Some(what) => Err(file.corrupt(format!("{what} that belong to no delta"))),
            None => Ok(Self { deltas }),
        }
    }

    /// The deltas, in the order of their writing.
    pub fn deltas(&self) -> &[Delta] {
        &self.deltas
    }
}

impl DeltaFileSections {
    fn open(file: &FramedFile, options: &GraphOptions) -> Result<Self> {
        let in_adjacency =
            options.stores_in_lists().then(|| AdjacencyColumns::open(file, Direction::In, options)).transpose()?;
        Ok(Self {
            directory: SectionColumn::open(file, SectionKind::DeltaDirectory)?,
            directions: [Some(AdjacencyColumns::open(file, Direction::Out, options)?), in_adjacency],
            died: SectionColumn::open(file, SectionKind::DiedVertices)?,
            returned: SectionColumn::open(file, SectionKind::ReturnedVertices)?,
            properties: PropertySections::open(file)?,
            options: *options,
        })
    }
}

impl AdjacencyColumns {
    fn open(file: &FramedFile, direction: Direction, options: &GraphOptions) -> Result<Self> {
        let kinds = sections(direction);
        let weights = match options.weight_type {
            None => None,
            Some(WeightType::U32 | WeightType::F32) => {
                Some(WeightBits::Narrow(SectionColumn::open(file, kinds.weights)?))
            }
            Some(WeightType::I64 | WeightType::F64) => {
                Some(WeightBits::Wide(SectionColumn::open(file, kinds.weights)?))
            }
        };
        let rows = options.has_rows().then(|| SectionColumn::open(file, kinds.rows)).transpose()?;
        let targets = SectionColumn::open(file, kinds.targets)?;
        // Weights and rows are read at the positions of their targets, so the lengths must agree.
        let lens =
            [("weights", weights.as_ref().map(WeightBits::len)), ("rows", rows.as_ref().map(SectionColumn::len))];
        for (name, len) in lens {
            if let Some(len) = len.filter(|&len| len != targets.len()) {
                return Err(file.corrupt(format!("{} {name} of changes expected, {len} found", targets.len())));
            }
        }
        Ok(Self {
            pages: SectionColumn::open(file, kinds.pages)?,
            vertices: SectionColumn::open(file, kinds.vertices)?,
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

    fn bytes(&self, range: Range<usize>) -> anden_base::Result<&[u8]> {
        Ok(match self {
            Self::Narrow(column) => bytemuck::cast_slice(column.touch(range)?),
            Self::Wide(column) => bytemuck::cast_slice(column.touch(range)?),
        })
    }
}

/// Start of the next delta's share of each section.
#[derive(Debug, Default)]
struct Cursor {
    /// Pages, vertices and targets of both directions.
    directions: [[usize; 3]; 2],
    died: usize,
    returned: usize,
    properties: PropertyCursor,
}

impl Cursor {
    fn delta(&mut self, columns: &Arc<DeltaFileSections>, index: usize, entry: &DeltaEntry) -> Result<Delta> {
        let corrupt = |what: &str| -> crate::Error { columns.directory.corrupt(index, what).into() };
        let vertex_bound = usize::try_from(entry.vertex_bound).ok().filter(|&bound| bound <= MAX_VERTICES);
        let vertex_bound = vertex_bound.ok_or_else(|| corrupt("a delta with too many vertices"))?;
        if entry.from >= entry.to {
            return Err(corrupt(&format!("a delta from version {} to {}", entry.from, entry.to)));
        }
        let [out_adjacency, in_adjacency] = DIRECTIONS.map(|direction| {
            let place = direction_index(direction);
            self.ranges(place, columns.directions[place].as_ref(), &entry.directions[place])
        });
        let died = take(&mut self.died, entry.num_died, columns.died.len());
        let returned = take(&mut self.returned, entry.num_returned, columns.returned.len());
        let (Some(out_adjacency), Some(in_adjacency), Some(died), Some(returned)) =
            (out_adjacency, in_adjacency, died, returned)
        else {
            return Err(corrupt("a delta reaches past the end of a section"));
        };
        let properties = self.properties.delta(columns.properties.as_ref(), entry.num_columns)?;
        let properties = properties.map_err(corrupt)?;
        let [died, returned] = [died, returned].map(|range| IdRange { range, is_checked: AtomicBool::new(false) });
        let directions = [out_adjacency, in_adjacency];
        let columns = Arc::clone(columns);
        let entry = *entry;
        let shared = OpenedDelta { columns, entry, index, vertex_bound, directions, died, returned, properties };
        Ok(Delta { shared: Arc::new(shared) })
    }

    fn ranges(
        &mut self,
        place: usize,
        columns: Option<&AdjacencyColumns>,
        counts: &AdjacencyCounts,
    ) -> Option<AdjacencyRanges> {
        let lens = columns.map_or([0; 3], AdjacencyColumns::lens);
        // Both counts are from the file, so their sum may overflow.
        let num_targets = counts.num_added.checked_add(counts.num_removed)?;
        let [pages, vertices, targets] = &mut self.directions[place];
        let pages = take(pages, counts.num_pages, lens[0])?;
        Some(AdjacencyRanges {
            checked_pages: AtomicBitmap::new(pages.len()),
            pages,
            vertices: take(vertices, counts.num_vertices, lens[1])?,
            targets: take(targets, num_targets, lens[2])?,
            is_checked: AtomicBool::new(false),
        })
    }

    /// Name of the first section with a rest after all deltas have their share.
    fn first_unowned(&self, columns: &DeltaFileSections) -> Option<&'static str> {
        let directions = self.directions.iter().zip(&columns.directions);
        let is_owned = |(ends, columns): (&[usize; 3], &Option<AdjacencyColumns>)| {
            columns.as_ref().is_none_or(|columns| columns.lens() == *ends)
        };
        if !directions.into_iter().all(is_owned) {
            return Some("changes");
        }
        let is_owned = self.died == columns.died.len() && self.returned == columns.returned.len();
        if !is_owned {
            return Some("vertices");
        }
        (!self.properties.is_at_end(columns.properties.as_ref())).then_some("properties")
    }
}

impl AdjacencyColumns {
    fn lens(&self) -> [usize; 3] {
        [self.pages.len(), self.vertices.len(), self.targets.len()]
    }
}

/// Takes the next `count` of `len`.
pub(super) fn take(cursor: &mut usize, count: u64, len: usize) -> Option<Range<usize>> {
    let start = *cursor;
    let end = usize::try_from(count).ok().and_then(|count| start.checked_add(count)).filter(|&end| end <= len)?;
    *cursor = end;
    Some(start..end)
}

impl Delta {
    /// The version that the delta starts from.
    pub fn from(&self) -> u32 {
        self.shared.entry.from
    }

    /// The version that the delta leads to.
    pub fn to(&self) -> u32 {
        self.shared.entry.to
    }

    /// Vertex bound of the version `to`.
    pub fn vertex_bound(&self) -> usize {
        self.shared.vertex_bound
    }

    /// Numbers of added and removed arcs in one direction.
    pub fn num_arcs(&self, direction: Direction) -> (u64, u64) {
        let counts = &self.shared.entry.directions[direction_index(direction)];
        (counts.num_added, counts.num_removed)
    }

    /// Bytes of the delta in its file, without the file's frame.
    pub fn num_bytes(&self) -> u64 {
        let shared = &self.shared;
        let directions = shared.directions.iter().map(|ranges| {
            let target_bytes = size_of::<VertexId>() + shared.columns.options.data_bytes();
            ranges.pages.len() * size_of::<DeltaPageEntry>()
                + ranges.vertices.len() * 4
                + ranges.targets.len() * target_bytes
        });
        (size_of::<DeltaEntry>() + directions.sum::<usize>()) as u64 + self.num_unpaged_bytes()
    }

    /// Bytes of the parts that are not stored by page: vertices that died or returned, and properties.
    pub fn num_unpaged_bytes(&self) -> u64 {
        let shared = &self.shared;
        let num_ids = shared.died.range.len() + shared.returned.range.len();
        let properties: usize = shared.properties.iter().map(PropertyRange::num_bytes).sum();
        (num_ids * size_of::<VertexId>() + properties) as u64
    }

    /// The pages with changes in one direction, ascending.
    ///
    /// # Errors
    /// The index is damaged.
    pub fn pages(&self, direction: Direction) -> anden_base::Result<Vec<u32>> {
        Ok(self.index(direction)?.iter().map(|entry| entry.page).collect())
    }

    /// The pages with changes in one direction, ascending, each with the number of added and removed arcs.
    ///
    /// # Errors
    /// The index is damaged.
    pub fn page_arcs(&self, direction: Direction) -> anden_base::Result<Vec<(u32, u64)>> {
        let (pages, targets) = (self.index(direction)?, &self.shared.directions[direction_index(direction)].targets);
        // The next page's start ends this page, so no arc needs to be read.
        let num_arcs = |place| part(targets, pages, place, |entry| entry.targets_start as usize).len() as u64;
        Ok(pages.iter().enumerate().map(|(place, entry)| (entry.page, num_arcs(place))).collect())
    }

    /// Whether a page has changes. Also true if the index is damaged, so that [`read_page`](Self::read_page) reports
    /// the damage.
    ///
    /// Cost: a binary search; the first call for a direction verifies its index.
    pub fn touches(&self, direction: Direction, page: usize) -> bool {
        self.index(direction).map_or(true, |pages| find(pages, page).is_some())
    }

    /// Reads the changes of a page into `out`; false if there are none.
    ///
    /// Cost: a binary search and a pass over the changes; the first time, checksums and checks.
    ///
    /// # Errors
    /// The page is damaged; `out` is then empty.
    pub fn read_page(&self, direction: Direction, page: usize, out: &mut PageChanges) -> anden_base::Result<bool> {
        out.clear();
        let Some((columns, place, stored)) = self.find_page(direction, page)? else { return Ok(false) };
        let checked_pages = &self.shared.directions[direction_index(direction)].checked_pages;
        let mut result = self.read_changes(columns, stored.clone(), out);
        // Checked once; later reads of the page only copy.
        if result.is_ok() && !checked_pages.get(place) {
            let rules = ChangeRules::new(self.shared.vertex_bound, &self.shared.columns.options);
            result = rules.check(page, out).map_err(|what| columns.targets.corrupt(stored.targets.start, what));
            if result.is_ok() {
                // Set after the check: another thread must not skip a check that fails.
                checked_pages.set(place);
            }
        }
        if result.is_err() {
            out.clear();
        }
        result.map(|()| true)
    }

    /// The changes of a page in their stored form; `None` if there are none. `scratch` is reused memory.
    ///
    /// Cost: a binary search; the first time, the cost of [`read_page`](Self::read_page).
    ///
    /// # Errors
    /// The page is damaged.
    pub fn stored_page(
        &self,
        direction: Direction,
        page: usize,
        scratch: &mut PageChanges,
    ) -> anden_base::Result<Option<StoredPage<'_>>> {
        let Some((columns, place, stored)) = self.find_page(direction, page)? else { return Ok(None) };
        let PagePlaces { vertices, targets } = stored.clone();
        let checked_pages = &self.shared.directions[direction_index(direction)].checked_pages;
        if !checked_pages.get(place) {
            // With weights or rows, `read_page` checks its copy. Plain targets are checked in place, without a copy.
            if columns.weights.is_some() || columns.rows.is_some() {
                self.read_page(direction, page, scratch)?;
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

    /// A page's position in the index, and the place of its changes.
    fn find_page(
        &self,
        direction: Direction,
        page: usize,
    ) -> anden_base::Result<Option<(&AdjacencyColumns, usize, PagePlaces)>> {
        let pages = self.index(direction)?;
        let (Some(place), Some(columns)) =
            (find(pages, page), &self.shared.columns.directions[direction_index(direction)])
        else {
            return Ok(None);
        };
        let ranges = &self.shared.directions[direction_index(direction)];
        let vertices = part(&ranges.vertices, pages, place, |entry| entry.vertices_start as usize);
        let targets = part(&ranges.targets, pages, place, |entry| entry.targets_start as usize);
        Ok(Some((columns, place, PagePlaces { vertices, targets })))
    }

    fn read_changes(
        &self,
        columns: &AdjacencyColumns,
        PagePlaces { vertices, targets }: PagePlaces,
        out: &mut PageChanges,
    ) -> anden_base::Result<()> {
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

    /// Checks the changes of a page in their stored form, in a graph without weights and rows, as
    /// [`read_page`](Self::read_page) checks its copy.
    fn check_plain(
        &self,
        columns: &AdjacencyColumns,
        page: usize,
        PagePlaces { vertices, targets }: PagePlaces,
    ) -> anden_base::Result<()> {
        let (first, first_target) = (vertices.start, targets.start);
        let vertices = columns.vertices.touch(vertices)?;
        let targets = columns.targets.touch(targets)?;
        let (mut any_added, mut any_removed, mut num_targets, mut last_local) = (0, 0, 0_u64, 0);
        let mut is_whole = true;
        check_entries(columns, first, vertices, |entry| {
            any_added |= entry.num_added;
            any_removed |= entry.num_removed;
            num_targets += u64::from(entry.num_added + entry.num_removed);
            // A full entry may continue in the next one, so it is not a whole list.
            is_whole &= entry.num_added < VertexEntry::MAX_COUNT && entry.num_removed < VertexEntry::MAX_COUNT;
            last_local = entry.local;
            true
        })?;
        if num_targets != targets.len() as u64 {
            return Err(bad_sum(columns, first, targets.len()));
        }
        let rules = ChangeRules::new(self.shared.vertex_bound, &self.shared.columns.options);
        let lists = ListRules { vertex_bound: self.shared.vertex_bound, multigraph: rules.multigraph };
        // If each entry is a whole list, one vectorized check covers all lists of the page.
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
        // Lists are checked one by one, if the page is mixed, or to name a fault.
        let stored = StoredPage { vertices, targets, weights: StoredWeights::None, rows: &[] };
        for list in stored.lists() {
            let list = list.ok_or_else(|| bad_sum(columns, first, targets.len()))?;
            rules.check_list(page, &list).map_err(|what| columns.targets.corrupt(first_target, what))?;
        }
        Ok(())
    }

    /// The page index of one direction, checked on first use.
    fn index(&self, direction: Direction) -> anden_base::Result<&[DeltaPageEntry]> {
        let ranges = &self.shared.directions[direction_index(direction)];
        let Some(columns) = &self.shared.columns.directions[direction_index(direction)] else { return Ok(&[]) };
        // Relaxed is enough: the mark says only that these bytes, which never change, were checked.
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

    /// The first entry that breaks the order: pages ascend, and each has at least one vertex and one arc.
    fn first_bad_page(&self, ranges: &AdjacencyRanges, pages: &[DeltaPageEntry]) -> Option<usize> {
        // Without pages, no vertices and no arcs may be left over.
        let Some(first) = pages.first() else {
            return (!ranges.vertices.is_empty() || !ranges.targets.is_empty()).then_some(0);
        };
        if (first.vertices_start, first.targets_start) != (0, 0) {
            return Some(0);
        }
        let num_pages = crate::table::num_pages(self.shared.vertex_bound);
        let (num_vertices, num_targets) = (ranges.vertices.len() as u64, ranges.targets.len() as u64);
        // A start at the end would leave a page without changes.
        let is_inside = |entry: &DeltaPageEntry| {
            (entry.page as usize) < num_pages
                && u64::from(entry.vertices_start) < num_vertices
                && entry.targets_start < num_targets
        };
        let ascends = |a: &DeltaPageEntry, b: &DeltaPageEntry| {
            a.page < b.page && a.vertices_start < b.vertices_start && a.targets_start < b.targets_start
        };
        (0..pages.len()).find(|&i| !is_inside(&pages[i]) || i > 0 && !ascends(&pages[i - 1], &pages[i]))
    }

    /// The vertices that died, ascending. In a composed delta, some may be vertices that are new in it.
    ///
    /// # Errors
    /// The vertices are damaged.
    pub fn died(&self) -> anden_base::Result<&[VertexId]> {
        self.ids(&self.shared.columns.died, &self.shared.died)
    }

    /// The vertices that were dead and live again, ascending.
    ///
    /// # Errors
    /// The vertices are damaged.
    pub fn returned(&self) -> anden_base::Result<&[VertexId]> {
        self.ids(&self.shared.columns.returned, &self.shared.returned)
    }

    fn ids<'a>(&self, column: &'a SectionColumn<VertexId>, ids: &IdRange) -> anden_base::Result<&'a [VertexId]> {
        // Relaxed, as for the page index: the mark speaks of bytes that never change.
        if ids.is_checked.load(Ordering::Relaxed) {
            return Ok(&column.unverified()[ids.range.clone()]);
        }
        let vertices = column.touch(ids.range.clone())?;
        let checked = check_vertices(vertices, self.shared.vertex_bound);
        checked.map_err(|what| column.corrupt(ids.range.start, what))?;
        ids.is_checked.store(true, Ordering::Relaxed);
        Ok(vertices)
    }

    /// Whether vertex properties change.
    pub fn has_properties(&self) -> bool {
        !self.shared.properties.is_empty()
    }

    /// The property columns that change, ascending.
    pub fn property_columns(&self) -> impl ExactSizeIterator<Item = u32> {
        self.shared.properties.iter().map(|range| range.column)
    }

    /// Whether a property column changes.
    pub fn changes_property(&self, column: u32) -> bool {
        self.shared.properties.binary_search_by_key(&column, |range| range.column).is_ok()
    }

    /// The changes of a property column, if there are any.
    ///
    /// Cost: a binary search; the first call for a column verifies its changes.
    ///
    /// # Errors
    /// The changes are damaged.
    pub fn property_changes(&self, column: u32) -> anden_base::Result<Option<ChangesRef<'_>>> {
        let OpenedDelta { columns, properties, vertex_bound, .. } = &*self.shared;
        let Ok(place) = properties.binary_search_by_key(&column, |range| range.column) else { return Ok(None) };
        columns.properties.as_ref().map(|sections| sections.changes(&properties[place], *vertex_bound)).transpose()
    }

    /// An error about the delta as a whole, placed at its directory entry.
    pub fn corrupt(&self, what: impl Into<String>) -> anden_base::Error {
        self.shared.columns.directory.corrupt(self.shared.index, what)
    }

    /// Reads everything, and checks what page-wise reads do not: the sums in the directory.
    ///
    /// # Errors
    /// A part is damaged.
    pub fn verify(&self) -> anden_base::Result<()> {
        if let Some(vertex) = first_in_both(self.died()?, self.returned()?) {
            return Err(self.corrupt(format!("vertex {vertex} both died and returned")));
        }
        self.property_columns().try_for_each(|column| self.property_changes(column).map(drop))?;
        let mut changes = PageChanges::default();
        for direction in DIRECTIONS {
            let (mut num_added, mut num_removed) = (0, 0);
            for page in self.index(direction)? {
                self.read_page(direction, page.page as usize, &mut changes)?;
                let (added, removed) = changes.num_changes();
                num_added += added as u64;
                num_removed += removed as u64;
            }
            if (num_added, num_removed) != self.num_arcs(direction) {
                let (added, removed) = self.num_arcs(direction);
                let what =
                    format!("{added} arcs added and {removed} removed expected, {num_added} and {num_removed} found");
                return Err(self.corrupt(what));
            }
        }
        Ok(())
    }

    pub(super) fn entry(&self) -> &DeltaEntry {
        &self.shared.entry
    }

    /// All parts of one direction, verified by their checksums.
    pub(super) fn parts(&self, direction: Direction) -> anden_base::Result<Option<AdjacencySlices<'_>>> {
        let ranges = &self.shared.directions[direction_index(direction)];
        let Some(columns) = &self.shared.columns.directions[direction_index(direction)] else { return Ok(None) };
        let weights = columns.weights.as_ref().map(|weights| weights.bytes(ranges.targets.clone())).transpose()?;
        Ok(Some(AdjacencySlices {
            pages: self.index(direction)?,
            vertices: columns.vertices.touch(ranges.vertices.clone())?,
            targets: columns.targets.touch(ranges.targets.clone())?,
            weights: weights.unwrap_or_default(),
            rows: columns.rows.as_ref().map_or(Ok(&[][..]), |rows| rows.touch(ranges.targets.clone()))?,
        }))
    }
}

/// Checks that the vertex entries of a page, which start at `first`, are in order and that `is_fine` accepts them.
fn check_entries(
    columns: &AdjacencyColumns,
    first: usize,
    entries: &[u32],
    mut is_fine: impl FnMut(&VertexEntry) -> bool,
) -> anden_base::Result<()> {
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

fn bad_sum(columns: &AdjacencyColumns, first: usize, num_targets: usize) -> anden_base::Error {
    columns.vertices.corrupt(first, format!("counts that add up to {num_targets} changes expected"))
}

/// Position of a page in the index.
fn find(pages: &[DeltaPageEntry], page: usize) -> Option<usize> {
    // If every page changes, the position is the page number.
    if pages.get(page).is_some_and(|entry| entry.page as usize == page) {
        return Some(page);
    }
    pages.binary_search_by_key(&page, |entry| entry.page as usize).ok()
}

/// The part of `range` that belongs to a page; the index was checked.
fn part(
    range: &Range<usize>,
    pages: &[DeltaPageEntry],
    place: usize,
    start: impl Fn(&DeltaPageEntry) -> usize,
) -> Range<usize> {
    let end = pages.get(place + 1).map_or(range.end, |next| range.start + start(next));
    range.start + start(&pages[place])..end
}
