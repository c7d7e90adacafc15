//! Properties of vertices.

use base::VertexId;
use graph::property::{PropertyColumn, PropertySchema, PropertyValue};

use crate::{Error, Result, View};

impl View {
    /// Names and types of the properties that vertices have; those of a window are those of its last snapshot.
    pub fn vertex_schema(&self) -> &PropertySchema {
        self.lists().properties().schema()
    }

    /// The values of a property of all vertices, by vertex id: of ids that are no vertices null.
    ///
    /// Cost: a copy of the column.
    ///
    /// # Errors
    /// [`Error::NotFound`]: there is no such property; damage met on the way.
    pub fn vertex_property(&self, name: &str) -> Result<PropertyColumn> {
        let properties = self.lists().properties();
        let column = properties.schema().find(name).map(|place| properties.column(place)).transpose()?.flatten();
        column.ok_or_else(|| no_property("vertices", name, properties.schema()))
    }

    /// The properties of one vertex that have a value, in the order of the schema.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn vertex_properties(&self, vertex: VertexId) -> Result<Vec<(&str, PropertyValue<'_>)>> {
        let properties = self.lists().properties();
        let mut values = Vec::new();
        for (place, (name, _)) in properties.schema().iter().enumerate() {
            let value = properties.value(place, vertex)?;
            if !value.is_null() {
                values.push((name, value));
            }
        }
        Ok(values)
    }
}

/// There is no such property of `whose`.
fn no_property(whose: &str, name: &str, schema: &PropertySchema) -> Error {
    let known = schema.iter().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
    Error::NotFound(match known.is_empty() {
        true => format!("there is no property {name:?}: {whose} have none"),
        false => format!("there is no property {name:?}: {whose} have {known}"),
    })
}
