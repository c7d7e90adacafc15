//! Properties of vertices and edges.

use std::ops::ControlFlow;

use base::VertexId;
use graph::property::{PropertyColumn, PropertySchema, PropertyValue};

use crate::{Error, NewValue, Result, View};

/// Names and values of properties that have a value.
pub type NamedValues<'a> = Vec<(&'a str, PropertyValue<'a>)>;

impl View {
    /// Names and types of the properties that vertices have; those of a window are those of its last snapshot.
    pub fn vertex_schema(&self) -> &PropertySchema {
        self.stored().properties().schema()
    }

    /// The values of a property of all vertices, by vertex id: of ids that are no vertices null.
    ///
    /// Cost: a copy of the column.
    ///
    /// # Errors
    /// [`Error::NotFound`]: there is no such property; damage met on the way.
    pub fn vertex_property(&self, name: &str) -> Result<PropertyColumn> {
        let properties = self.stored().properties();
        let column = properties.schema().find(name).map(|place| properties.column(place)).transpose()?.flatten();
        let column = column.ok_or_else(|| no_property("vertices", name, properties.schema()))?;
        // Vertices that were committed since the snapshot have none.
        let num_rows = self.vertex_bound().max(column.len());
        Ok(column.padded(num_rows))
    }

    /// The properties of one vertex that have a value, in the order of the schema.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn vertex_properties(&self, vertex: VertexId) -> Result<NamedValues<'_>> {
        let properties = self.stored().properties();
        let mut values = Vec::new();
        for (place, (name, _)) in properties.schema().iter().enumerate() {
            let value = properties.value(place, vertex)?;
            if !value.is_null() {
                values.push((name, value));
            }
        }
        Ok(values)
    }

    /// The vertices with a value of a property, ascending by id. Null finds nothing; floating numbers are the same if their
    /// bits are.
    ///
    /// Cost: that of a search in the index ([`Database::create_index`](crate::Database::create_index)), a microsecond or
    /// two; without an index, a read of the whole property.
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
    /// [`Error::NotFound`]: there is no such property. [`Error::InvalidInput`]: the value is none of its type. Damage met
    /// on the way.
    pub fn find_vertices(&self, name: &str, value: impl Into<NewValue>) -> Result<Vec<VertexId>> {
        let properties = self.stored().properties();
        let (place, value) = engine::sought_value(properties.schema(), name, &value.into())?;
        let found = properties.find(place, value.as_value())?;
        // A filter hides vertices, and their values stay.
        let mut seen = Vec::with_capacity(found.len());
        for vertex in found {
            seen.extend(self.has(vertex)?.then_some(vertex));
        }
        Ok(seen)
    }

    /// Names and types of the properties that edges have.
    pub fn edge_schema(&self) -> &PropertySchema {
        self.stored().edge_properties().schema()
    }

    /// Whether edges have properties, which may be all null.
    pub fn has_edge_properties(&self) -> bool {
        self.stored().options().edge_properties
    }

    /// The values of a property of all edges, in the order of the out-lists: those of the edges of the first vertex id,
    /// in the order of its fragments, then those of the next. An undirected edge has a value in the lists of both ends.
    ///
    /// *Shape*: [`num_arcs`](Self::num_arcs) rows. *Cost*: reads all out-lists and copies the values.
    ///
    /// # Errors
    /// [`Error::NotFound`]: there is no such property; damage met on the way.
    pub fn edge_property(&self, name: &str) -> Result<PropertyColumn> {
        let properties = self.stored().edge_properties();
        let Some(place) = properties.schema().find(name) else {
            return Err(no_property("edges", name, properties.schema()));
        };
        self.all_lists()?;
        let mut rows = Vec::with_capacity(self.num_arcs() as usize);
        for vertex in 0..self.vertex_bound() as VertexId {
            self.push_rows(vertex, &mut rows);
        }
        // Lists with damage look empty: what they hold is known only if all is well.
        self.check_lists()?;
        let mut columns = properties.gather(&[place], &rows)?;
        columns.pop().ok_or_else(|| no_property("edges", name, properties.schema()))
    }

    /// Appends the rows of an out-list, in the order that every later read of the list has.
    pub(crate) fn push_rows(&self, vertex: VertexId, rows: &mut Vec<u64>) {
        self.lists().fix_list_order(vertex);
        let _ = self.lists().for_each_out_row(vertex, |_, found| {
            rows.extend_from_slice(found);
            ControlFlow::Continue(())
        });
    }
}

/// The properties of an edge that have a value, by its row.
pub(crate) fn row_values(graph: &lama::View, row: u64) -> Result<NamedValues<'_>> {
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

/// There is no such property of `whose`.
pub(crate) fn no_property(whose: &str, name: &str, schema: &PropertySchema) -> Error {
    Error::NotFound(no_such("property", whose, name, schema.iter().map(|(name, _)| name)))
}

/// There is no `what` with this name: the nearest one, or all.
pub(crate) fn no_such<'a>(what: &str, whose: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    match known.iter().map(|known| (strsim::damerau_levenshtein(name, known), known)).min() {
        None => format!("there is no {what} {name:?}: {whose} have none"),
        Some((distance, near)) if distance <= name.chars().count().div_ceil(3) => {
            format!("there is no {what} {name:?} of {whose}; did you mean {near:?}?")
        }
        Some(_) => format!("there is no {what} {name:?}: {whose} have {}", known.join(", ")),
    }
}
