//! Writes level files.

use std::path::Path;

use base::progress::{Progress, Silent};
use base::storage::Storage;
use base::{MAX_VERTICES, VertexId};
use graph::{Side, WeightType};

use super::properties::PropertyBuffer;
use super::section::{SectionBuffer, Spill};
use super::{
    ChangeRules, Level, LevelEntry, PageEntry, SIDES, SideCounts, VertexEntry, check_vertices, first_in_both, sections,
    side_index,
};
use crate::changes::{ChangedArc, Entries, PageChanges};
use crate::file::{FileKind, FileWriter, SectionKind, WrittenFile};
use crate::options::{DatabaseId, GraphOptions};
use crate::property::ChangesRef;
use crate::table::page_of;
use crate::{Error, Result, names};

/// Writes a file of levels under a temporary name.
///
/// Memory: the whole file ([`num_bytes`](Self::num_bytes)), because its sections grow side by side, unless they
/// [spill](Self::spilling).
#[derive(Debug)]
pub(crate) struct LevelWriter {
    file: FileWriter,
    id: DatabaseId,
    options: GraphOptions,
    levels: Vec<LevelEntry>,
    sides: [SideBuffer; 2],
    spill: Option<Spill>,
    died: Vec<VertexId>,
    returned: Vec<VertexId>,
    properties: PropertyBuffer,
    /// The last column of properties that the last level changes.
    last_column: u32,
    /// An append failed: the last level lacks changes.
    is_broken: bool,
}

/// The sections of a side.
#[derive(Debug)]
struct SideBuffer {
    pages: SectionBuffer,
    vertices: SectionBuffer,
    targets: SectionBuffer,
    weights: SectionBuffer,
    rows: SectionBuffer,
    /// The page that came last.
    last_page: usize,
}

impl LevelWriter {
    /// Begins the file.
    ///
    /// # Errors
    /// There is such a file; the disk failed.
    pub fn create(
        storage: &dyn Storage,
        directory: &Path,
        options: &GraphOptions,
        id: DatabaseId,
        file_number: u32,
    ) -> Result<Self> {
        let name = names::temporary(&names::level(file_number));
        let file = FileWriter::create(storage, &directory.join(name))?;
        let (levels, died, returned, properties) = Default::default();
        Ok(Self {
            file,
            id,
            options: *options,
            levels,
            sides: SIDES.map(SideBuffer::new),
            spill: None,
            died,
            returned,
            properties,
            last_column: 0,
            is_broken: false,
        })
    }

    /// The same file, of which lists are in memory for some megabytes only, and beyond that in scratch files until it is
    /// finished: each byte of those is written twice.
    pub fn spilling(mut self, spill: Spill) -> Self {
        self.spill = Some(spill);
        self
    }

    /// The bytes of all levels so far.
    pub fn num_bytes(&self) -> u64 {
        let sides = self.sides.iter().map(SideBuffer::num_bytes).sum::<u64>();
        let ids = size_of_val(&self.died[..]) + size_of_val(&self.returned[..]);
        sides + (size_of_val(&self.levels[..]) + ids + self.properties.num_bytes()) as u64
    }

    /// Ends the level before and begins one from version `from` to version `to`, which has this vertex bound.
    ///
    /// # Errors
    /// The versions do not ascend; there are too many vertices; those that died or returned do not ascend below the
    /// bound, or one did both.
    pub fn begin_level(
        &mut self,
        from: u32,
        to: u32,
        vertex_bound: usize,
        died: &[VertexId],
        returned: &[VertexId],
    ) -> Result<()> {
        if from >= to {
            return Err(Error::Input(format!("a level from version {from} to {to}")));
        }
        if vertex_bound > MAX_VERTICES {
            return Err(Error::Input(format!("{vertex_bound} vertices, at most {MAX_VERTICES} are possible")));
        }
        for vertices in [died, returned] {
            check_vertices(vertices, vertex_bound).map_err(Error::Input)?;
        }
        if let Some(vertex) = first_in_both(died, returned) {
            return Err(Error::Input(format!("vertex {vertex} both died and returned")));
        }
        self.died.extend_from_slice(died);
        self.returned.extend_from_slice(returned);
        self.levels.push(LevelEntry {
            from,
            to,
            vertex_bound: vertex_bound as u64,
            sides: Default::default(),
            num_died: died.len() as u64,
            num_returned: returned.len() as u64,
            num_columns: 0,
        });
        Ok(())
    }

    /// Appends the changes of a page, which comes after all pages of its side in the level; none is fine.
    ///
    /// # Errors
    /// No level was begun; the graph has no such side; pages do not ascend; vertices or targets are not below the
    /// bound; changes do not ascend, or something is both added and removed; a weight is missing or no number.
    /// The file cannot be finished then.
    pub fn append_page(&mut self, side: Side, page: usize, changes: &PageChanges) -> Result<()> {
        let result = self.try_append_page(side, page, changes);
        self.is_broken |= result.is_err();
        result
    }

    fn try_append_page(&mut self, side: Side, page: usize, changes: &PageChanges) -> Result<()> {
        let place = self.check_side(side)?;
        if changes.is_empty() {
            return Ok(());
        }
        let Some(level) = self.levels.last_mut() else { return Err(no_level()) };
        let (counts, buffer) = (&mut level.sides[place], &mut self.sides[place]);
        let rules = ChangeRules::new(level.vertex_bound as usize, &self.options);
        rules.check(page, changes).map_err(Error::Input)?;
        let spill = self.spill.as_ref();
        buffer.append(counts, page, changes, spill)?;
        let Entries { targets, weights, rows } = changes.entries();
        buffer.targets.append(targets, spill)?;
        buffer.rows.append(rows, spill)?;
        buffer.append_weights(self.options.weight_type, weights, spill)
    }

    /// Appends all changes of a side, sorted; there are none of it in the level yet.
    ///
    /// # Errors
    /// As of [`append_page`](Self::append_page).
    pub fn append_arcs(&mut self, side: Side, added: &[ChangedArc], removed: &[ChangedArc]) -> Result<()> {
        let result = self.try_append_arcs(side, added, removed);
        self.is_broken |= result.is_err();
        result
    }

    fn try_append_arcs(&mut self, side: Side, added: &[ChangedArc], removed: &[ChangedArc]) -> Result<()> {
        let place = self.check_side(side)?;
        // A large level is in memory once, not once and a half while it grows.
        self.sides[place].reserve(added.len() + removed.len(), &self.options);
        if let Some(pair) = [added, removed].into_iter().flat_map(|arcs| arcs.windows(2)).find(|pair| pair[0] > pair[1])
        {
            return Err(Error::Input(format!("changes out of order: {:?} before {:?}", pair[0], pair[1])));
        }
        let (mut added, mut removed) = (added, removed);
        let mut changes = PageChanges::default();
        while let Some(first) = [added.first(), removed.first()].into_iter().flatten().map(|arc| arc.list).min() {
            let page = page_of(first);
            let (page_added, page_removed) = (split_page(&mut added, page), split_page(&mut removed, page));
            changes.clear();
            changes.extend_from_arcs(page_added, page_removed, &self.options);
            self.try_append_page(side, page, &changes)?;
        }
        Ok(())
    }

    /// Appends the changes of a column of properties, which comes after all columns of the level before; none is fine.
    ///
    /// # Errors
    /// No level was begun; columns or vertices do not ascend; a value does not change, or its type does. The file
    /// cannot be finished then.
    pub fn append_properties(&mut self, column: u32, changes: ChangesRef<'_>) -> Result<()> {
        let result = self.try_append_properties(column, changes);
        self.is_broken |= result.is_err();
        result
    }

    fn try_append_properties(&mut self, column: u32, changes: ChangesRef<'_>) -> Result<()> {
        let Some(level) = self.levels.last_mut() else { return Err(no_level()) };
        if changes.vertices.is_empty() {
            return Ok(());
        }
        if level.num_columns > 0 && self.last_column >= column {
            return Err(Error::Input(format!("changes of column {column} out of order")));
        }
        changes.check(level.vertex_bound as usize).map_err(Error::Input)?;
        self.properties.append(column, changes).map_err(Error::Input)?;
        self.last_column = column;
        level.num_columns += 1;
        Ok(())
    }

    /// Ends the level before and appends one as it is, from a file of the same database.
    ///
    /// # Errors
    /// The level is damaged; the file cannot be finished then.
    pub fn append_level(&mut self, level: &Level) -> Result<()> {
        let result = self.try_append_level(level);
        self.is_broken |= result.is_err();
        result
    }

    fn try_append_level(&mut self, level: &Level) -> Result<()> {
        let parts = [level.parts(Side::Out)?, level.parts(Side::In)?];
        let (died, returned) = (level.died()?, level.returned()?);
        for (buffer, parts) in self.sides.iter_mut().zip(parts) {
            let Some(parts) = parts else { continue };
            let spill = self.spill.as_ref();
            buffer.pages.append(parts.pages, spill)?;
            buffer.vertices.append(parts.vertices, spill)?;
            buffer.targets.append(parts.targets, spill)?;
            buffer.weights.append(parts.weights, spill)?;
            buffer.rows.append(parts.rows, spill)?;
        }
        self.died.extend_from_slice(died);
        self.returned.extend_from_slice(returned);
        self.levels.push(*level.entry());
        for column in level.property_columns() {
            if let Some(changes) = level.property_changes(column)? {
                self.properties.append(column, changes).map_err(Error::Input)?;
                self.last_column = column;
            }
        }
        Ok(())
    }

    /// Writes the file and syncs it.
    ///
    /// # Errors
    /// An append failed before; the disk failed.
    pub fn finish(self) -> Result<WrittenFile> {
        self.finish_telling(&Silent)
    }

    /// The same; tells `progress` every megabyte of lists and values, so that it may be written slower.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn finish_telling(mut self, progress: &dyn Progress) -> Result<WrittenFile> {
        if self.is_broken {
            return Err(Error::Input("an append failed before".into()));
        }
        let file = &mut self.file;
        file.begin_section(SectionKind::LevelDirectory)?;
        file.append(bytemuck::cast_slice(&self.levels))?;
        let num_sides = if self.options.stores_in_lists() { 2 } else { 1 };
        for (side, buffer) in SIDES.into_iter().zip(self.sides).take(num_sides) {
            let kinds = sections(side);
            file.begin_section(kinds.pages)?;
            buffer.pages.write(file, progress)?;
            file.begin_section(kinds.vertices)?;
            buffer.vertices.write(file, progress)?;
            file.begin_section(kinds.targets)?;
            buffer.targets.write(file, progress)?;
            if self.options.weight_type.is_some() {
                file.begin_section(kinds.weights)?;
                buffer.weights.write(file, progress)?;
            }
            if self.options.has_rows() {
                file.begin_section(kinds.rows)?;
                buffer.rows.write(file, progress)?;
            }
        }
        file.begin_section(SectionKind::DiedVertices)?;
        file.append(bytemuck::cast_slice(&self.died))?;
        file.begin_section(SectionKind::ReturnedVertices)?;
        file.append(bytemuck::cast_slice(&self.returned))?;
        self.properties.write(file, progress)?;
        self.file.finish(FileKind::Level, self.id)
    }

    /// The place of a side that the graph has.
    fn check_side(&self, side: Side) -> Result<usize> {
        if side == Side::In && !self.options.stores_in_lists() {
            return Err(Error::Input("the graph keeps no in-lists".into()));
        }
        if self.levels.is_empty() {
            return Err(no_level());
        }
        Ok(side_index(side))
    }
}

/// Takes the arcs of the lists up to the end of a page.
fn split_page<'a>(arcs: &mut &'a [ChangedArc], page: usize) -> &'a [ChangedArc] {
    let (taken, rest) = arcs.split_at(arcs.partition_point(|arc| page_of(arc.list) <= page));
    *arcs = rest;
    taken
}

fn no_level() -> Error {
    Error::Input("changes before a level was begun".into())
}

impl SideBuffer {
    fn new(side: Side) -> Self {
        let [pages, vertices, targets, weights, rows] = match side {
            Side::Out => ["out-pages", "out-vertices", "out-targets", "out-weights", "out-rows"],
            Side::In => ["in-pages", "in-vertices", "in-targets", "in-weights", "in-rows"],
        }
        .map(SectionBuffer::new);
        Self { pages, vertices, targets, weights, rows, last_page: 0 }
    }

    fn num_bytes(&self) -> u64 {
        let Self { pages, vertices, targets, weights, rows, .. } = self;
        [pages, vertices, targets, weights, rows].map(SectionBuffer::num_bytes).iter().sum()
    }

    /// Makes room for so many arcs.
    fn reserve(&mut self, num_arcs: usize, options: &GraphOptions) {
        self.targets.reserve(num_arcs * size_of::<VertexId>());
        self.weights.reserve(num_arcs * options.weight_type.map_or(0, WeightType::num_bytes));
        self.rows.reserve(if options.has_rows() { num_arcs * size_of::<u64>() } else { 0 });
    }

    /// Appends which vertices have checked changes to the level with these counts; their entries follow.
    fn append(
        &mut self,
        counts: &mut SideCounts,
        page: usize,
        changes: &PageChanges,
        spill: Option<&Spill>,
    ) -> Result<()> {
        if counts.num_pages > 0 && self.last_page >= page {
            return Err(Error::Input(format!("changes of page {page} out of order")));
        }
        let Ok(vertices_start) = u32::try_from(counts.num_vertices) else {
            return Err(Error::Input(format!("a level with changes of more than {} vertices", u32::MAX)));
        };
        let targets_start = counts.num_added + counts.num_removed;
        self.pages.append(&[PageEntry { page: page as u32, vertices_start, targets_start }], spill)?;
        self.last_page = page;
        counts.num_pages += 1;
        for list in changes.lists() {
            let (mut num_added, mut num_removed) = (list.added.targets.len(), list.removed.targets.len());
            counts.num_added += num_added as u64;
            counts.num_removed += num_removed as u64;
            while num_added + num_removed > 0 {
                let [added, removed] = [num_added, num_removed].map(|n| n.min(VertexEntry::MAX_COUNT as usize));
                let entry = VertexEntry { local: list.local, num_added: added as u32, num_removed: removed as u32 };
                self.vertices.append(&[entry.encode()], spill)?;
                counts.num_vertices += 1;
                num_added -= added;
                num_removed -= removed;
            }
        }
        Ok(())
    }

    fn append_weights(
        &mut self,
        weight_type: Option<WeightType>,
        weights: &[u64],
        spill: Option<&Spill>,
    ) -> Result<()> {
        const PART: usize = 256;
        match weight_type {
            None => Ok(()),
            Some(WeightType::U32 | WeightType::F32) => weights.chunks(PART).try_for_each(|part| {
                let mut narrow = [0; PART];
                narrow.iter_mut().zip(part).for_each(|(narrow, &bits)| *narrow = bits as u32);
                self.weights.append(&narrow[..part.len()], spill)
            }),
            Some(WeightType::I64 | WeightType::F64) => self.weights.append(weights, spill),
        }
    }
}
