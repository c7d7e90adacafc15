//! The part of a delta that changes vertex properties.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use anden_base::VertexId;
use anden_base::progress::Progress;
use bytemuck::{Pod, Zeroable};

use super::reader::take;
use super::section::write_parts;
use crate::Result;
use crate::column::SectionColumn;
use crate::file::{FileWriter, FramedFile, SectionKind};
use crate::property::ChangesRef;

/// A column that a delta changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct PropertyEntry {
    /// Number of the column.
    pub column: u32,
    pub num_vertices: u32,
    /// Bytes of the values.
    pub num_bytes: u64,
}

const _: () = assert!(size_of::<PropertyEntry>() == 16);

/// The sections of a file; present only if one of its deltas changes a property.
#[derive(Debug)]
pub(super) struct PropertySections {
    entries: SectionColumn<PropertyEntry>,
    vertices: SectionColumn<VertexId>,
    ends: SectionColumn<u64>,
    values: SectionColumn<u8>,
}

/// A delta's share of these sections, for one column.
#[derive(Debug)]
pub(super) struct PropertyRange {
    pub column: u32,
    vertices: Range<usize>,
    values: Range<usize>,
    is_checked: AtomicBool,
}

impl PropertySections {
    /// The sections of a file, if it has them.
    ///
    /// # Errors
    /// A section is missing or has a wrong length.
    pub fn open(file: &FramedFile) -> Result<Option<Self>> {
        // Sections of properties are left out of files that change none.
        if file.optional_section(SectionKind::DeltaProperties).is_none() {
            return Ok(None);
        }
        let sections = Self {
            entries: SectionColumn::open(file, SectionKind::DeltaProperties)?,
            vertices: SectionColumn::open(file, SectionKind::PropertyVertices)?,
            ends: SectionColumn::open(file, SectionKind::PropertyEnds)?,
            values: SectionColumn::open(file, SectionKind::PropertyValues)?,
        };
        if sections.ends.len() != sections.vertices.len() {
            let (expected, found) = (sections.vertices.len(), sections.ends.len());
            return Err(file.corrupt(format!("values of {expected} changed properties expected, of {found} found")));
        }
        Ok(Some(sections))
    }

    /// The changes of a column, verified on first use.
    ///
    /// # Errors
    /// The changes are damaged.
    pub fn changes(&self, range: &PropertyRange, vertex_bound: usize) -> anden_base::Result<ChangesRef<'_>> {
        // Relaxed is enough: the mark says only that these bytes, which never change, were checked.
        if range.is_checked.load(Ordering::Relaxed) {
            return Ok(ChangesRef {
                vertices: &self.vertices.unverified()[range.vertices.clone()],
                ends: &self.ends.unverified()[range.vertices.clone()],
                values: &self.values.unverified()[range.values.clone()],
            });
        }
        let changes = ChangesRef {
            vertices: self.vertices.touch(range.vertices.clone())?,
            ends: self.ends.touch(range.vertices.clone())?,
            values: self.values.touch(range.values.clone())?,
        };
        // Verified before the mark, so that other threads skip only a check that passed.
        changes.check(vertex_bound).map_err(|what| self.vertices.corrupt(range.vertices.start, what))?;
        range.is_checked.store(true, Ordering::Relaxed);
        Ok(changes)
    }
}

impl PropertyRange {
    /// Bytes of the changes in the file.
    pub fn num_bytes(&self) -> usize {
        let each = size_of::<VertexId>() + size_of::<u64>();
        size_of::<PropertyEntry>() + self.vertices.len() * each + self.values.len()
    }
}

/// Start of the next delta's share: among entries, vertices and bytes of values.
#[derive(Debug, Default)]
pub(super) struct PropertyCursor([usize; 3]);

impl PropertyCursor {
    /// Takes the next delta's share: this many columns.
    ///
    /// # Errors
    /// The section is damaged. The inner error describes any other fault.
    pub fn delta(
        &mut self,
        sections: Option<&PropertySections>,
        num_columns: u64,
    ) -> anden_base::Result<Result<Vec<PropertyRange>, &'static str>> {
        let Some(sections) = sections else {
            return Ok(if num_columns == 0 { Ok(Vec::new()) } else { Err("a delta lacks its properties") });
        };
        let [entries, vertices, values] = &mut self.0;
        let Some(range) = take(entries, num_columns, sections.entries.len()) else {
            return Ok(Err("a delta reaches past the end of a section"));
        };
        let mut ranges: Vec<PropertyRange> = Vec::new();
        for entry in sections.entries.touch(range)? {
            let vertices = take(vertices, entry.num_vertices.into(), sections.vertices.len());
            let values = take(values, entry.num_bytes, sections.values.len());
            let (Some(vertices), Some(values)) = (vertices, values) else {
                return Ok(Err("a delta reaches past the end of a section"));
            };
            // Ascending columns let readers search.
            if vertices.is_empty() || ranges.last().is_some_and(|last| last.column >= entry.column) {
                return Ok(Err("the columns that a delta changes are out of order"));
            }
            ranges.push(PropertyRange { column: entry.column, vertices, values, is_checked: AtomicBool::new(false) });
        }
        Ok(Ok(ranges))
    }

    /// Whether the shares of all deltas cover the sections.
    pub fn is_at_end(&self, sections: Option<&PropertySections>) -> bool {
        sections
            .is_none_or(|sections| self.0 == [sections.entries.len(), sections.vertices.len(), sections.values.len()])
    }
}

/// The sections of a file that is being written.
#[derive(Debug, Default)]
pub(super) struct PropertyBuffer {
    entries: Vec<PropertyEntry>,
    vertices: Vec<VertexId>,
    ends: Vec<u64>,
    values: Vec<u8>,
}

impl PropertyBuffer {
    /// Appends checked changes of a column.
    ///
    /// # Errors
    /// The number of changes exceeds its type.
    pub fn append(&mut self, column: u32, changes: ChangesRef<'_>) -> Result<(), String> {
        let num_vertices = u32::try_from(changes.vertices.len());
        // The entry of a column has 32 bits for this number.
        let num_vertices = num_vertices.map_err(|_| "too many properties change".to_owned())?;
        self.entries.push(PropertyEntry { column, num_vertices, num_bytes: changes.values.len() as u64 });
        self.vertices.extend_from_slice(changes.vertices);
        self.ends.extend_from_slice(changes.ends);
        self.values.extend_from_slice(changes.values);
        Ok(())
    }

    /// Bytes written until now.
    pub fn num_bytes(&self) -> usize {
        size_of_val(&self.entries[..])
            + size_of_val(&self.vertices[..])
            + size_of_val(&self.ends[..])
            + self.values.len()
    }

    /// Writes the sections, unless they are empty; reports each megabyte to `progress`.
    ///
    /// # Errors
    /// The disk failed.
    pub fn write(&self, file: &mut FileWriter, progress: &dyn Progress) -> Result<()> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let sections: [(SectionKind, &[u8]); 4] = [
            (SectionKind::DeltaProperties, bytemuck::cast_slice(&self.entries)),
            (SectionKind::PropertyVertices, bytemuck::cast_slice(&self.vertices)),
            (SectionKind::PropertyEnds, bytemuck::cast_slice(&self.ends)),
            (SectionKind::PropertyValues, &self.values),
        ];
        for (kind, bytes) in sections {
            file.begin_section(kind)?;
            write_parts(bytes, file, progress)?;
        }
        Ok(())
    }
}
