//! Rows that meet a predicate: its columns are read first, the other columns for the rows that pass.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use anden_base::VertexId;
use anden_graph::property::{PropertyColumn, PropertyType};
use anden_snapshots::Entries;
use arrow_array::{BooleanArray, RecordBatch, new_empty_array};
use arrow_schema::{FieldRef, Schema};

use super::edges::EdgeField;
use super::vertices::VertexField;
use crate::filter::{Predicate, PredicateColumns, said_of};
use crate::{Result, View};

/// A predicate over the rows of a table in memory, in the language of [`View::filter`].
#[derive(Debug)]
pub struct RowFilter {
    predicate: Predicate,
}

impl RowFilter {
    /// Parses a predicate over the columns of batches with this schema.
    ///
    /// # Errors
    /// [`Error::InvalidInput`](crate::Error::InvalidInput): the text does not parse, names an unknown column, or mixes
    /// incompatible types. A column has a type that no property has.
    pub fn new(predicate: &str, schema: &Schema) -> Result<Self> {
        let column = |field: &FieldRef| -> Result<(String, PropertyType)> {
            let empty = PropertyColumn::from_array(new_empty_array(field.data_type()))?;
            Ok((field.name().clone(), empty.property_type()))
        };
        let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
        let columns = columns.iter().map(|(name, property_type)| (&name[..], *property_type)).collect();
        let columns = PredicateColumns { columns, noun: "column", whose: "rows" };
        let predicate = Predicate::parse(predicate, &columns).map_err(|error| said_of("rows", error))?;
        Ok(Self { predicate })
    }

    /// For each row of a batch, whether the predicate is true; as in SQL, null is not true.
    ///
    /// # Errors
    /// [`Error::InvalidInput`](crate::Error::InvalidInput): a calculation overflows or divides by zero.
    pub fn passes(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let column = |&place: &usize| PropertyColumn::from_array(Arc::clone(batch.column(place)));
        let columns = self.predicate.columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let passes = self.predicate.passes(&columns, batch.num_rows()).map_err(|error| said_of("rows", error))?;
        Ok(BooleanArray::new(passes, None))
    }
}

/// A predicate over the rows of a view, with the columns that it reads.
pub(super) struct ViewFilter<F> {
    predicate: Predicate,
    pub(super) fields: Vec<F>,
    whose: &'static str,
}

impl<F: Copy> ViewFilter<F> {
    fn new(text: &str, whose: &'static str, known: &[(&str, F)], type_of: impl Fn(F) -> PropertyType) -> Result<Self> {
        let columns = known.iter().map(|&(name, field)| (name, type_of(field))).collect();
        let predicate = Predicate::parse(text, &PredicateColumns { columns, noun: "column", whose });
        let predicate = predicate.map_err(|error| said_of(whose, error))?;
        let fields = predicate.columns.iter().map(|&place| known[place].1).collect();
        Ok(Self { predicate, fields, whose })
    }
}

impl ViewFilter<EdgeField> {
    /// A predicate over the columns of edges.
    pub(super) fn of_edges(view: &View, text: &str) -> Result<Self> {
        let names = EdgeField::names(view);
        let known: Vec<_> = names.iter().filter_map(|name| Some((&name[..], EdgeField::find(view, name)?))).collect();
        Self::new(text, "edges", &known, |field| field.property_type(view))
    }
}

impl ViewFilter<VertexField> {
    /// A predicate over the columns of vertices.
    pub(super) fn of_vertices(view: &View, text: &str) -> Result<Self> {
        let names = VertexField::names(view);
        let known: Vec<_> = names.iter().filter_map(|name| Some((&name[..], VertexField::find(view, name)?))).collect();
        Self::new(text, "vertices", &known, |field| field.property_type(view))
    }
}

/// Rows of a view whose columns are read on demand.
pub(super) trait ViewRows {
    type Field: Copy + PartialEq;

    fn num_rows(&self) -> usize;

    /// Reads columns of all rows.
    fn read(&self, view: &View, fields: &[Self::Field]) -> Result<Vec<PropertyColumn>>;

    /// Keeps the rows at these positions, which ascend.
    fn keep(&mut self, places: &[u32]);
}

/// Edges: a range of entries.
pub(super) struct ViewEdges<'a> {
    pub(super) entries: Cow<'a, Entries>,
    pub(super) range: Range<usize>,
}

impl ViewRows for ViewEdges<'_> {
    type Field = EdgeField;

    fn num_rows(&self) -> usize {
        self.range.len()
    }

    fn read(&self, view: &View, fields: &[EdgeField]) -> Result<Vec<PropertyColumn>> {
        EdgeField::columns(fields, view, &self.entries, self.range.clone())
    }

    fn keep(&mut self, places: &[u32]) {
        let start = self.range.start;
        fn picked<T: Copy>(values: &[T], start: usize, places: &[u32]) -> Vec<T> {
            // Weights and rows may be missing.
            let values = values.get(start..).filter(|values| !values.is_empty());
            values.map_or_else(Vec::new, |values| places.iter().map(|&place| values[place as usize]).collect())
        }
        self.entries = Cow::Owned(Entries {
            sources: picked(&self.entries.sources, start, places),
            targets: picked(&self.entries.targets, start, places),
            weights: picked(&self.entries.weights, start, places),
            rows: picked(&self.entries.rows, start, places),
        });
        self.range = 0..places.len();
    }
}

impl ViewRows for Vec<VertexId> {
    type Field = VertexField;

    fn num_rows(&self) -> usize {
        self.len()
    }

    fn read(&self, view: &View, fields: &[VertexField]) -> Result<Vec<PropertyColumn>> {
        fields.iter().map(|field| field.column(view, self)).collect()
    }

    fn keep(&mut self, places: &[u32]) {
        *self = places.iter().map(|&place| self[place as usize]).collect();
    }
}

/// The wanted columns of the rows that pass all filters.
pub(super) fn passing_columns<R: ViewRows>(
    view: &View,
    mut rows: R,
    filters: &[ViewFilter<R::Field>],
    wanted: &[R::Field],
) -> Result<Vec<PropertyColumn>> {
    let mut known: Vec<(R::Field, PropertyColumn)> = Vec::new();
    for (index, filter) in filters.iter().enumerate() {
        let columns = read(view, &rows, &filter.fields, &known)?;
        let num_rows = rows.num_rows();
        let passes = filter.predicate.passes(&columns, num_rows).map_err(|error| said_of(filter.whose, error))?;
        for (&field, column) in filter.fields.iter().zip(columns) {
            if wanted.contains(&field) && !known.iter().any(|(other, _)| *other == field) {
                known.push((field, column));
            }
        }
        // Rows are copied only if some of them fail.
        if passes.count_set_bits() < num_rows {
            let places: Vec<u32> = passes.set_indices_u32().collect();
            known.iter_mut().for_each(|(_, column)| *column = column.gather(&places));
            // Many queries want only columns that the predicate has read, and then nothing reads the rows again.
            if index + 1 < filters.len() || !wanted.iter().all(|field| known.iter().any(|(other, _)| other == field)) {
                rows.keep(&places);
            }
        }
    }
    read(view, &rows, wanted, &known)
}

/// The columns of all rows; those that are known are not read again.
fn read<R: ViewRows>(
    view: &View,
    rows: &R,
    fields: &[R::Field],
    known: &[(R::Field, PropertyColumn)],
) -> Result<Vec<PropertyColumn>> {
    let find = |field: &R::Field| known.iter().find(|(other, _)| other == field).map(|(_, column)| column.clone());
    let unknown: Vec<R::Field> = fields.iter().copied().filter(|field| find(field).is_none()).collect();
    let mut columns = rows.read(view, &unknown)?.into_iter();
    Ok(fields.iter().filter_map(|field| find(field).or_else(|| columns.next())).collect())
}
