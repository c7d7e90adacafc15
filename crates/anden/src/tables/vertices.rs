//! Tables of vertices.

use anden_base::VertexId;
use anden_graph::property::{ColumnBuilder, PropertyColumn, PropertyType};
use anden_graph::{Direction, Graph};
use arrow_array::RecordBatch;

use super::{Chosen, key_column, key_type, u64_column, with_names};
use crate::filter::on_single;
use crate::{Key, Result, View};

/// A column of a vertex table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum VertexField {
    Key,
    OutDegree,
    InDegree,
    Property(usize, PropertyType),
}

impl VertexField {
    /// Finds the column of a name. A property hides a built-in column of equal name.
    pub(super) fn find(view: &View, name: &str) -> Option<Self> {
        let schema = view.vertex_schema();
        // Properties come first: a column of the user stays reachable under its own name.
        if let Some(place) = schema.find(name) {
            return Some(Self::Property(place, schema.get(place)?.1));
        }
        match name {
            "key" => Some(Self::Key),
            "out_degree" => Some(Self::OutDegree),
            "in_degree" => view.has_in_edges().then_some(Self::InDegree),
            _ => None,
        }
    }

    /// All column names.
    pub(super) fn names(view: &View) -> Vec<String> {
        let mut names = vec!["key".to_owned(), "out_degree".to_owned()];
        names.extend(view.has_in_edges().then(|| "in_degree".to_owned()));
        with_names(names, view.vertex_schema())
    }

    pub(super) fn property_type(self, view: &View) -> PropertyType {
        match self {
            Self::Key => key_type(view),
            Self::OutDegree | Self::InDegree => PropertyType::U64,
            Self::Property(_, property_type) => property_type,
        }
    }

    pub(super) fn column(self, view: &View, vertices: &[VertexId]) -> Result<PropertyColumn> {
        match self {
            Self::Key => key_column(view, vertices),
            // On a part that is not laid out, this tests the lists of these vertices only.
            Self::OutDegree => {
                on_single!(view, lists => u64_column(vertices.iter().map(|&vertex| lists.degree(Direction::Out, vertex) as u64)))
            }
            Self::InDegree => {
                on_single!(view, lists => u64_column(vertices.iter().map(|&vertex| lists.degree(Direction::In, vertex) as u64)))
            }
            Self::Property(place, property_type) => {
                let mut column = ColumnBuilder::new(property_type);
                for &vertex in vertices {
                    column.push(view.stored().properties().value(place, vertex)?)?;
                }
                Ok(column.finish())
            }
        }
    }
}

impl Chosen<VertexField> {
    /// The columns with these names; an empty slice selects the key and all properties.
    pub(super) fn of_vertices(view: &View, columns: &[&str]) -> Result<Self> {
        let known = VertexField::names(view);
        // Degrees read all lists, so they are no default columns.
        let all = with_names(vec!["key".to_owned()], view.vertex_schema());
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let columns = if columns.is_empty() { &all[..] } else { columns };
        Self::new(columns, "vertices", &known, |name| VertexField::find(view, name), |field| field.property_type(view))
    }

    /// A batch with these vertices.
    pub(super) fn vertex_batch(&self, view: &View, vertices: &[VertexId]) -> Result<RecordBatch> {
        self.batch(self.fields.iter().map(|field| field.column(view, vertices)).collect::<Result<_>>()?)
    }
}

impl View {
    /// A table of these vertices, in their order. Columns as in [`vertices`](Self::vertices).
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound): the vertex or column does not exist. Damage met on the way.
    pub fn vertex_rows(&self, vertices: &[Key], columns: &[&str]) -> Result<RecordBatch> {
        let vertices = vertices.iter().map(|key| self.vertex(key.clone())).collect::<Result<Vec<_>>>()?;
        self.vertex_rows_of(&vertices, columns)
    }

    pub(super) fn vertex_rows_of(&self, vertices: &[VertexId], columns: &[&str]) -> Result<RecordBatch> {
        let batch = Chosen::of_vertices(self, columns)?.vertex_batch(self, vertices)?;
        // The degree of a damaged list looks like 0.
        self.check_lists()?;
        Ok(batch)
    }
}
