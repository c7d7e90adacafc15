//! Properties of vertices and edges: their types, values and indexes; and keys without a copy.

use anden_graph::Direction;
use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_snapshots::SnapshotView;

use crate::error::no_property;
use crate::{Result, View};

pub use anden_engine::{IndexInfo, IndexKind, NewValue};
pub use anden_graph::property::{
    ColumnBuilder, ItemType, OwnedValue, PropertyColumn, PropertySchema, PropertyType, PropertyValue, parse_list,
    push_list,
};
pub use anden_snapshots::KeyRef;

/// Names and values of the properties that are not null.
pub type NamedValues<'a> = Vec<(&'a str, PropertyValue<'a>)>;

impl View {
    /// Names and types of vertex properties. A window has those of its last snapshot.
    pub fn vertex_schema(&self) -> &PropertySchema {
        self.stored().properties().schema()
    }

    /// The values of a property, by vertex id. An id without a vertex has null, as has a vertex that a filter or window
    /// excludes.
    ///
    /// Cost: a copy of the column; on a part, also the evaluation of the predicates over vertices.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound): the property does not exist; damage met on the way.
    pub fn vertex_property(&self, name: &str) -> Result<PropertyColumn> {
        let properties = self.stored().properties();
        let column = properties.schema().find(name).map(|place| properties.column(place)).transpose()?.flatten();
        let column = column.ok_or_else(|| no_property("vertices", name, properties.schema()))?;
        self.check_lists()?;
        // Vertices newer than the column have no value.
        let num_rows = self.vertex_bound().max(column.len());
        let column = column.padded(num_rows);
        Ok(match self.hidden_vertices()? {
            // A row number beyond the end gives null.
            Some(hidden) => {
                let row = |row: usize| if row < hidden.len() && hidden.get(row) { u32::MAX } else { row as u32 };
                column.gather_or_null(&(0..num_rows).map(row).collect::<Vec<_>>())
            }
            None => column,
        })
    }

    /// The properties of one vertex that are not null, in the order of the schema. A vertex that a filter excludes has
    /// none.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn vertex_properties(&self, vertex: VertexId) -> Result<NamedValues<'_>> {
        let properties = self.stored().properties();
        let mut values = Vec::new();
        if !self.has(vertex)? {
            return Ok(values);
        }
        for (place, (name, _)) in properties.schema().iter().enumerate() {
            let value = properties.value(place, vertex)?;
            if !value.is_null() {
                values.push((name, value));
            }
        }
        self.check_lists()?;
        Ok(values)
    }

    /// The vertices with a value of a property, in ascending order of keys. Null finds no vertex. Floating-point values
    /// match if their bits are equal.
    ///
    /// Cost: one or two microseconds with an index ([`Database::create_index`](crate::Database::create_index)); without
    /// one, a read of the whole property.
    ///
    /// ```
    /// use anden::{Database, Options, Update};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.apply(&[Update::set_vertex(7, "email", "ann@example.org")])?;
    /// let view = db.view()?;
    /// assert_eq!(view.find_vertices("email", "ann@example.org")?, [view.vertex(7)?]);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound): the property does not exist.
    /// [`Error::InvalidInput`](crate::Error::InvalidInput): the value does not have its type. Damage met on the way.
    pub fn find_vertices(&self, name: &str, value: impl Into<NewValue>) -> Result<Vec<VertexId>> {
        let properties = self.stored().properties();
        let (place, value) = anden_engine::sought_value(properties.schema(), name, &value.into())?;
        let found = properties.find(place, value.as_value())?;
        self.check_lists()?;
        // A filter hides vertices, but the index still lists them.
        let mut seen = Vec::with_capacity(found.len());
        for vertex in found {
            seen.extend(self.has(vertex)?.then_some(vertex));
        }
        self.sort_by_key(&mut seen)?;
        Ok(seen)
    }

    /// Names and types of edge properties.
    pub fn edge_schema(&self) -> &PropertySchema {
        self.stored().edge_properties().schema()
    }

    /// Whether edges have properties; all values may be null.
    pub fn has_edge_properties(&self) -> bool {
        self.stored().options().edge_properties
    }

    /// The values of a property of all edges, in the order of the out-lists: by source id, then by position in the
    /// list. An undirected edge has a value in both lists.
    ///
    /// *Shape*: [`num_arcs`](Self::num_arcs) rows. *Cost*: reads all out-lists and copies the values.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound): the property does not exist; damage met on the way.
    pub fn edge_property(&self, name: &str) -> Result<PropertyColumn> {
        let properties = self.stored().edge_properties();
        let Some(place) = properties.schema().find(name) else {
            return Err(no_property("edges", name, properties.schema()));
        };
        // Lays a part out first: `num_arcs` and the reads below need its lists.
        self.all_lists()?;
        let mut rows = Vec::with_capacity(self.num_arcs() as usize);
        for vertex in 0..self.vertex_bound() as VertexId {
            self.push_rows(vertex, &mut rows);
        }
        let mut columns = properties.gather(&[place], &rows)?;
        // Damaged lists look empty, so the rows are complete only if this check passes.
        self.check_lists()?;
        columns.pop().ok_or_else(|| no_property("edges", name, properties.schema()))
    }

    /// Appends the rows of an out-list, and fixes the order for later reads of the list.
    pub(crate) fn push_rows(&self, vertex: VertexId, rows: &mut Vec<u64>) {
        self.lists().fix_list_order(vertex);
        let _ = self.lists().for_each_row(Direction::Out, vertex, |_, found| {
            rows.extend_from_slice(found);
            ControlFlow::Continue(())
        });
    }
}

/// The properties of an edge that are not null, by its row.
pub(crate) fn row_values(graph: &SnapshotView, row: u64) -> Result<NamedValues<'_>> {
    let properties = graph.edge_properties();
    let mut values = Vec::new();
    for (place, (name, _)) in properties.schema().iter().enumerate() {
        let value = properties.value(place, row)?;
        if !value.is_null() {
            values.push((name, value));
        }
    }
    Ok(values)
}
