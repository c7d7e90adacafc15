//! Tables of vertices.

use arrow_array::RecordBatch;
use base::VertexId;
use graph::property::{ColumnBuilder, PropertyColumn, PropertyType};
use graph::{Graph, InEdges};

use super::{Chosen, key_column, key_type, u64_column, with_names};
use crate::filter::on_single;
use crate::{Key, Result, View};

/// What a column shows of a vertex.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum VertexField {
    Key,
    OutDegree,
    InDegree,
    Property(usize, PropertyType),
}

impl VertexField {
    /// What a name shows; a property that bears the name of another column stands for itself.
    pub(super) fn find(view: &View, name: &str) -> Option<Self> {
        let schema = view.vertex_schema();
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

    /// All names.
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
            Self::OutDegree => {
                on_single!(view, lists => u64_column(vertices.iter().map(|&vertex| lists.out_degree(vertex) as u64)))
            }
            Self::InDegree => {
                on_single!(view, lists => u64_column(vertices.iter().map(|&vertex| lists.in_degree(vertex) as u64)))
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
    /// The columns with these names; where there are none, the key and all properties.
    pub(super) fn of_vertices(view: &View, columns: &[&str]) -> Result<Self> {
        let known = VertexField::names(view);
        let all = with_names(vec!["key".to_owned()], view.vertex_schema());
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let columns = if columns.is_empty() { &all[..] } else { columns };
        Self::new(columns, "vertices", &known, |name| VertexField::find(view, name), |field| field.property_type(view))
    }

    /// The rows of some vertices.
    pub(super) fn vertex_batch(&self, view: &View, vertices: &[VertexId]) -> Result<RecordBatch> {
        self.batch(self.fields.iter().map(|field| field.column(view, vertices)).collect::<Result<_>>()?)
    }
}

impl View {
    /// Chosen columns of these vertices, in their order; the columns are those of [`vertices`](Self::vertices).
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound): there is no such vertex or column; damage met on the way.
    pub fn vertex_rows(&self, vertices: &[Key], columns: &[&str]) -> Result<RecordBatch> {
        let vertices = vertices.iter().map(|key| self.vertex(key.clone())).collect::<Result<Vec<_>>>()?;
        self.vertex_rows_of(&vertices, columns)
    }

    pub(super) fn vertex_rows_of(&self, vertices: &[VertexId], columns: &[&str]) -> Result<RecordBatch> {
        let batch = Chosen::of_vertices(self, columns)?.vertex_batch(self, vertices)?;
        self.check_lists()?;
        Ok(batch)
    }
}
