//! Saves the values of vertices and edges.

use std::sync::Arc;

use anden_base::bitmap::Bitmap;
use anden_graph::property::{ColumnBuilder, PropertyColumn, PropertyType, PropertyValue};

use super::DamagedStore;
use super::loss::Loss;
use crate::Result;
use crate::builder::StoreRestorer;
use crate::changes::ApplyDirection;
use crate::delta::Delta;
use crate::file::{FileKind, WrittenFile};
use crate::names;
use crate::property::{ColumnFile, EdgeColumns, FIRST_ROWS, NewColumns, PropertyRecord, RowRun, write_columns};
use crate::vertex_properties::{StoredProperties, VertexColumn};

/// Rows of a column that are written at once.
const WRITTEN_ROWS: usize = 1 << 16;

/// The values of a vertex property that can be read.
pub(super) struct SavedColumn {
    /// The values by id; null where a value is lost.
    pub values: PropertyColumn,
    /// The ids whose values cannot be read, as bits.
    pub lost: Bitmap,
}

/// The readable values of all vertex properties of a version.
pub(super) struct SavedValues {
    stored: StoredProperties,
    /// Numbers of the columns whose file cannot be opened.
    unopened: Vec<u32>,
    bound: usize,
}

impl SavedValues {
    pub fn open(
        store: &DamagedStore,
        steps: &[(Delta, ApplyDirection)],
        (version, bound): (u32, usize),
    ) -> Result<Self> {
        let mut unopened = Vec::new();
        let mut open = |(number, record): (u32, &PropertyRecord)| {
            let file = record.file.and_then(|file| {
                let opened = store.open_file(FileKind::Column, &names::column(file));
                let opened = opened.and_then(|opened| ColumnFile::open(&opened));
                let expected = (number, record.property_type);
                let opened = opened.ok().filter(|file| file.row_ends().is_none() && file.columns().eq([expected]));
                if opened.is_none() {
                    unopened.push(number);
                }
                opened.map(Arc::new)
            });
            VertexColumn { record: record.clone(), file, index: None }
        };
        let columns: Vec<_> = (0..).zip(&store.manifest.properties).map(&mut open).collect();
        let stored = StoredProperties::new(&Arc::new(columns), steps, version, bound)?;
        Ok(Self { stored, unopened, bound })
    }

    /// The values of a property, by the number of its column.
    pub fn column(&self, number: u32, property_type: PropertyType) -> Result<SavedColumn> {
        let (mut values, mut lost) = (ColumnBuilder::new(property_type), Bitmap::new(self.bound));
        for vertex in 0..self.bound as u32 {
            let is_below = self.unopened.contains(&number) && !self.stored.is_changed(number, vertex);
            match self.stored.value_of(number, vertex) {
                Ok(value) if !is_below => values.push(value)?,
                _ => {
                    values.push(PropertyValue::Null)?;
                    lost.set(vertex as usize);
                }
            }
        }
        Ok(SavedColumn { values: values.finish(), lost })
    }
}

/// Writes a column without the values of dead vertices; `None` if no value is left.
///
/// # Errors
/// The disk failed.
pub(super) fn write_column(
    restorer: &StoreRestorer,
    number: u32,
    (column, record): (u32, &PropertyRecord),
    saved: &PropertyColumn,
    dead: &Bitmap,
) -> Result<Option<WrittenFile>> {
    let mut values = ColumnBuilder::new(record.property_type);
    for vertex in 0..saved.len() {
        values.push(if dead.get(vertex) { PropertyValue::Null } else { saved.get(vertex) })?;
    }
    let values = values.finish();
    if values.num_nulls() == values.len() {
        return Ok(None);
    }
    let types = [(column, record.property_type)];
    let new = NewColumns {
        file_number: number,
        kind: FileKind::Column,
        runs: &[],
        num_rows: values.len() as u64,
        columns: &types,
    };
    let (storage, path) = (&**restorer.storage(), restorer.path());
    write_columns(storage, path, restorer.id(), new, &|_, take| take(&values)).map(Some)
}

/// Writes the readable values of rows of edges, in one part. Returns the losses too.
///
/// # Errors
/// The disk failed.
pub(super) fn write_rows(
    store: &DamagedStore,
    restorer: &StoreRestorer,
    number: u32,
    rows: &[u64],
) -> Result<(Option<WrittenFile>, Vec<Loss>)> {
    let manifest = &store.manifest;
    let open = |&number: &u32| {
        let file = store.open_file(FileKind::Rows, &names::rows(number)).ok()?;
        Some((number, Arc::new(ColumnFile::open(&file).ok()?)))
    };
    let parts: Vec<_> = manifest.rows.iter().filter_map(open).collect();
    let has_unopened = parts.len() < manifest.rows.len();
    let columns = EdgeColumns { records: manifest.edge_properties.clone(), parts };
    let (options, mut losses) = (&manifest.created.options, Vec::new());
    // Without edge properties, rows that no part has are first rows. A part that cannot be opened could have had them.
    let first = |&row: &u64| columns.first_row(row).ok().filter(|_| !has_unopened || columns.has(row));
    let firsts: Vec<_> = if options.multigraph { rows.iter().map(first).collect() } else { Vec::new() };
    let num_lost = firsts.iter().filter(|first| first.is_none()).count() as u64;
    if num_lost > 0 {
        losses.push(Loss::EdgeNumbers { num_edges: num_lost });
    }
    let first_of = |place: usize| firsts.get(place).copied().flatten().filter(|&first| first != rows[place]);
    // Without edge properties, only later rows are stored.
    let is_stored = |place: &usize| options.edge_properties || first_of(*place).is_some();
    let stored: Vec<usize> = (0..rows.len()).filter(is_stored).collect();
    if stored.is_empty() {
        return Ok((None, losses));
    }
    for (number, record) in (0..).zip(&columns.records) {
        let num_edges = stored.iter().filter(|&&place| columns.get(number, rows[place]).is_err()).count() as u64;
        if num_edges > 0 {
            losses.push(Loss::EdgeValues { property: record.name.clone(), num_edges });
        }
    }
    let numbers: Vec<u64> = stored.iter().map(|&place| rows[place]).collect();
    let mut runs = Vec::new();
    RowRun::push_numbers(&mut runs, &numbers, 0);
    let types = columns.types(&[], stored.iter().any(|&place| first_of(place).is_some()));
    let num_rows = numbers.len() as u64;
    let new = NewColumns { file_number: number, kind: FileKind::Rows, runs: &runs, num_rows, columns: &types };
    let written = write_columns(&**restorer.storage(), restorer.path(), restorer.id(), new, &|place, take| {
        let (column, property_type) = types[place];
        for places in stored.chunks(WRITTEN_ROWS) {
            let mut values = ColumnBuilder::new(property_type);
            for &place in places {
                values.push(match column {
                    FIRST_ROWS => first_of(place).map_or(PropertyValue::Null, |first| PropertyValue::I64(first as i64)),
                    _ => columns.get(column, rows[place]).unwrap_or(PropertyValue::Null),
                })?;
            }
            take(&values.finish())?;
        }
        Ok(())
    })?;
    Ok((Some(written), losses))
}
