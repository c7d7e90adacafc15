//! Writes delta files.

use std::path::Path;

use anden_base::progress::{Progress, Silent};
use anden_base::storage::Storage;
use anden_base::{MAX_VERTICES, VertexId};
use anden_graph::{Direction, WeightType};

use super::properties::PropertyBuffer;
use super::section::{SectionBuffer, Spill};
use super::{
    AdjacencyCounts, ChangeRules, DIRECTIONS, Delta, DeltaEntry, DeltaPageEntry, VertexEntry, check_vertices,
    direction_index, first_in_both, sections,
};
use crate::changes::{ChangedArc, ListEntries, PageChanges};
use crate::file::{FileKind, FileWriter, SectionKind, WrittenFile};
use crate::options::{DatabaseId, GraphOptions};
use crate::property::ChangesRef;
use crate::table::page_of;
use crate::{Error, Result, names};

/// Writes a file of deltas under a temporary name.
///
/// Memory: the whole file ([`num_bytes`](Self::num_bytes)), because its sections grow in parallel, unless they
/// [spill](Self::spilling).
#[derive(Debug)]
pub(crate) struct DeltaWriter {
    file: FileWriter,
    id: DatabaseId,
    options: GraphOptions,
    deltas: Vec<DeltaEntry>,
    directions: [AdjacencyBuffer; 2],
    spill: Option<Spill>,
    died: Vec<VertexId>,
    returned: Vec<VertexId>,
    properties: PropertyBuffer,
    /// Last property column that the last delta changes.
    last_column: u32,
    /// Set after a failed append: the last delta lacks changes.
    is_broken: bool,
}

/// The sections of one direction.
#[derive(Debug)]
struct AdjacencyBuffer {
    pages: SectionBuffer,
    vertices: SectionBuffer,
    targets: SectionBuffer,
    weights: SectionBuffer,
    rows: SectionBuffer,
    /// The page that was appended last.
    last_page: usize,
}

impl DeltaWriter {
    /// Begins the file.
    ///
    /// # Errors
    /// The file exists; the disk failed.
    pub fn create(
        storage: &dyn Storage,
        directory: &Path,
        options: &GraphOptions,
        id: DatabaseId,
        file_number: u32,
    ) -> Result<Self> {
        let name = names::temporary(&names::delta(file_number));
        let file = FileWriter::create(storage, &directory.join(name))?;
        let (deltas, died, returned, properties) = Default::default();
        Ok(Self {
            file,
            id,
            options: *options,
            deltas,
            directions: DIRECTIONS.map(AdjacencyBuffer::new),
            spill: None,
            died,
            returned,
            properties,
            last_column: 0,
            is_broken: false,
        })
    }

    /// Makes large sections spill: they keep a few megabytes in memory, and the rest in scratch files until the file is
    /// finished. Spilled bytes are written twice.
    pub fn spilling(mut self, spill: Spill) -> Self {
        self.spill = Some(spill);
        self
    }

    /// Bytes of all deltas until now.
    pub fn num_bytes(&self) -> u64 {
        let directions = self.directions.iter().map(AdjacencyBuffer::num_bytes).sum::<u64>();
        let ids = size_of_val(&self.died[..]) + size_of_val(&self.returned[..]);
        directions + (size_of_val(&self.deltas[..]) + ids + self.properties.num_bytes()) as u64
    }

    /// Ends the delta before, and begins one from version `from` to version `to`, which has this vertex bound.
    ///
    /// # Errors
    /// The versions do not ascend; there are too many vertices; vertices that died or returned do not ascend below the
    /// bound, or one vertex did both.
    pub fn begin_delta(
        &mut self,
        from: u32,
        to: u32,
        vertex_bound: usize,
        died: &[VertexId],
        returned: &[VertexId],
    ) -> Result<()> {
        // Readers refuse such a delta, so none may be written.
        if from >= to {
            return Err(Error::Input(format!("a delta from version {from} to {to}")));
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
        self.deltas.push(DeltaEntry {
            from,
            to,
            vertex_bound: vertex_bound as u64,
            directions: Default::default(),
            num_died: died.len() as u64,
            num_returned: returned.len() as u64,
            num_columns: 0,
        });
        Ok(())
    }

    /// Appends the changes of a page, which follows all pages of its direction in the delta. Empty changes are ignored.
    ///
    /// # Errors
    /// No delta was begun, or the graph does not store this direction. Pages do not ascend. Vertices or targets are not
    /// below the bound. Changes do not ascend, or an arc is both added and removed. A weight is missing or no number.
    /// The file cannot be finished then.
    pub fn append_page(&mut self, direction: Direction, page: usize, changes: &PageChanges) -> Result<()> {
        let result = self.try_append_page(direction, page, changes);
        // An error may leave columns of unequal length, so the file must not be finished.
        self.is_broken |= result.is_err();
        result
    }

    fn try_append_page(&mut self, direction: Direction, page: usize, changes: &PageChanges) -> Result<()> {
        let place = self.check_direction(direction)?;
        if changes.is_empty() {
            return Ok(());
        }
        let Some(delta) = self.deltas.last_mut() else { return Err(no_delta()) };
        let (counts, buffer) = (&mut delta.directions[place], &mut self.directions[place]);
        let rules = ChangeRules::new(delta.vertex_bound as usize, &self.options);
        // Readers refuse changes that break these rules.
        rules.check(page, changes).map_err(Error::Input)?;
        let spill = self.spill.as_ref();
        buffer.append(counts, page, changes, spill)?;
        let ListEntries { targets, weights, rows } = changes.entries();
        buffer.targets.append(targets, spill)?;
        buffer.rows.append(rows, spill)?;
        buffer.append_weights(self.options.weight_type, weights, spill)
    }

    /// Appends all changes of one direction, sorted, to a delta that has none of this direction yet.
    ///
    /// # Errors
    /// As [`append_page`](Self::append_page).
    pub fn append_arcs(&mut self, direction: Direction, added: &[ChangedArc], removed: &[ChangedArc]) -> Result<()> {
        let result = self.try_append_arcs(direction, added, removed);
        self.is_broken |= result.is_err();
        result
    }

    fn try_append_arcs(&mut self, direction: Direction, added: &[ChangedArc], removed: &[ChangedArc]) -> Result<()> {
        let place = self.check_direction(direction)?;
        // Reserved at once, so that a large delta is in memory once, not once and a half while it grows.
        self.directions[place].reserve(added.len() + removed.len(), &self.options);
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
            self.try_append_page(direction, page, &changes)?;
        }
        Ok(())
    }

    /// Appends the changes of a property column, which follows all columns of the delta. Empty changes are ignored.
    ///
    /// # Errors
    /// No delta was begun; columns or vertices do not ascend; a new value equals the old one, or has another type. The
    /// file cannot be finished then.
    pub fn append_properties(&mut self, column: u32, changes: ChangesRef<'_>) -> Result<()> {
        let result = self.try_append_properties(column, changes);
        self.is_broken |= result.is_err();
        result
    }

    fn try_append_properties(&mut self, column: u32, changes: ChangesRef<'_>) -> Result<()> {
        let Some(delta) = self.deltas.last_mut() else { return Err(no_delta()) };
        if changes.vertices.is_empty() {
            return Ok(());
        }
        // Readers search the columns of a delta by number, so the columns must ascend.
        if delta.num_columns > 0 && self.last_column >= column {
            return Err(Error::Input(format!("changes of column {column} out of order")));
        }
        changes.check(delta.vertex_bound as usize).map_err(Error::Input)?;
        self.properties.append(column, changes).map_err(Error::Input)?;
        self.last_column = column;
        delta.num_columns += 1;
        Ok(())
    }

    /// Ends the delta before, and appends one as it is, from a file of this database.
    ///
    /// # Errors
    /// The delta is damaged; the file cannot be finished then.
    pub fn append_delta(&mut self, delta: &Delta) -> Result<()> {
        let result = self.try_append_delta(delta);
        self.is_broken |= result.is_err();
        result
    }

    fn try_append_delta(&mut self, delta: &Delta) -> Result<()> {
        // Verified before the first part is appended, so that damage is not copied.
        let parts = [delta.parts(Direction::Out)?, delta.parts(Direction::In)?];
        let (died, returned) = (delta.died()?, delta.returned()?);
        for (buffer, parts) in self.directions.iter_mut().zip(parts) {
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
        self.deltas.push(*delta.entry());
        for column in delta.property_columns() {
            if let Some(changes) = delta.property_changes(column)? {
                self.properties.append(column, changes).map_err(Error::Input)?;
                self.last_column = column;
            }
        }
        Ok(())
    }

    /// Writes the file, and syncs it.
    ///
    /// # Errors
    /// An earlier append failed; the disk failed.
    pub fn finish(self) -> Result<WrittenFile> {
        self.finish_telling(&Silent)
    }

    /// As [`finish`](Self::finish); reports each megabyte of lists and values to `progress`, so that the caller can
    /// slow the writing down.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn finish_telling(mut self, progress: &dyn Progress) -> Result<WrittenFile> {
        if self.is_broken {
            return Err(Error::Input("an append failed before".into()));
        }
        let file = &mut self.file;
        file.begin_section(SectionKind::DeltaDirectory)?;
        file.append(bytemuck::cast_slice(&self.deltas))?;
        // A graph that stores no in-lists has no sections for them.
        let num_directions = if self.options.stores_in_lists() { 2 } else { 1 };
        for (direction, buffer) in DIRECTIONS.into_iter().zip(self.directions).take(num_directions) {
            let kinds = sections(direction);
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
        self.file.finish(FileKind::Delta, self.id)
    }

    /// Index of a direction that the graph stores.
    fn check_direction(&self, direction: Direction) -> Result<usize> {
        if direction == Direction::In && !self.options.stores_in_lists() {
            return Err(Error::Input("the graph keeps no in-lists".into()));
        }
        if self.deltas.is_empty() {
            return Err(no_delta());
        }
        Ok(direction_index(direction))
    }
}

/// Takes the arcs of lists up to the end of a page.
fn split_page<'a>(arcs: &mut &'a [ChangedArc], page: usize) -> &'a [ChangedArc] {
    let (taken, rest) = arcs.split_at(arcs.partition_point(|arc| page_of(arc.list) <= page));
    *arcs = rest;
    taken
}

fn no_delta() -> Error {
    Error::Input("changes before a delta was begun".into())
}

impl AdjacencyBuffer {
    fn new(direction: Direction) -> Self {
        let [pages, vertices, targets, weights, rows] = match direction {
            Direction::Out => ["out-pages", "out-vertices", "out-targets", "out-weights", "out-rows"],
            Direction::In => ["in-pages", "in-vertices", "in-targets", "in-weights", "in-rows"],
        }
        .map(SectionBuffer::new);
        Self { pages, vertices, targets, weights, rows, last_page: 0 }
    }

    fn num_bytes(&self) -> u64 {
        let Self { pages, vertices, targets, weights, rows, .. } = self;
        [pages, vertices, targets, weights, rows].map(SectionBuffer::num_bytes).iter().sum()
    }

    /// Reserves memory for this many arcs.
    fn reserve(&mut self, num_arcs: usize, options: &GraphOptions) {
        self.targets.reserve(num_arcs * size_of::<VertexId>());
        self.weights.reserve(num_arcs * options.weight_type.map_or(0, WeightType::num_bytes));
        self.rows.reserve(if options.has_rows() { num_arcs * size_of::<u64>() } else { 0 });
    }

    /// Appends the page and vertex entries of checked changes, and counts them; the caller appends their arcs.
    fn append(
        &mut self,
        counts: &mut AdjacencyCounts,
        page: usize,
        changes: &PageChanges,
        spill: Option<&Spill>,
    ) -> Result<()> {
        if counts.num_pages > 0 && self.last_page >= page {
            return Err(Error::Input(format!("changes of page {page} out of order")));
        }
        // The index entry of a page has 32 bits for this start.
        let Ok(vertices_start) = u32::try_from(counts.num_vertices) else {
            return Err(Error::Input(format!("a delta with changes of more than {} vertices", u32::MAX)));
        };
        let targets_start = counts.num_added + counts.num_removed;
        self.pages.append(&[DeltaPageEntry { page: page as u32, vertices_start, targets_start }], spill)?;
        self.last_page = page;
        counts.num_pages += 1;
        for list in changes.lists() {
            let (mut num_added, mut num_removed) = (list.added.targets.len(), list.removed.targets.len());
            counts.num_added += num_added as u64;
            counts.num_removed += num_removed as u64;
            // An entry counts up to `MAX_COUNT`, so a long list takes several entries.
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
            // Narrowed part by part, so that no second array of all weights is needed.
            Some(WeightType::U32 | WeightType::F32) => weights.chunks(PART).try_for_each(|part| {
                let mut narrow = [0; PART];
                narrow.iter_mut().zip(part).for_each(|(narrow, &bits)| *narrow = bits as u32);
                self.weights.append(&narrow[..part.len()], spill)
            }),
            Some(WeightType::I64 | WeightType::F64) => self.weights.append(weights, spill),
        }
    }
}
