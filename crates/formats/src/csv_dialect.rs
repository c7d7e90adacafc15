//! The headers and values of CSV for different readers: Anden, `neo4j-admin import` and the bulk loader of Neptune.

use std::borrow::Cow;

use anden_graph::WeightType;
use anden_graph::property::{PropertySchema, PropertyType, PropertyValue};

use crate::array_text::ArrayForm;
use crate::options::{EDGE_NAME_PROPERTY, LABELS_PROPERTY, TYPE_PROPERTY};

/// The name of the column of weights.
const WEIGHT: &str = "weight";
/// The name of the column of keys of vertices.
const KEY: &str = "id";

/// The reader that a file of CSV is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CsvDialect {
    /// Anden: `source,target` and `id`. Names carry Anden's types.
    #[default]
    Plain,
    /// `neo4j-admin import`: `:START_ID,:END_ID,:TYPE` and `id:ID,:LABEL`. Whole numbers have the type `long`.
    Neo4j,
    /// The bulk loader of Neptune: `~from,~to,~label,~id` and `~id,~label`. Edges without a property `~id` get their
    /// numbers in the last column.
    Neptune,
}

impl CsvDialect {
    /// The names of the columns of edges.
    pub(crate) fn edge_names(self, weight_type: Option<WeightType>, schema: &PropertySchema) -> Vec<String> {
        let keys = match self {
            Self::Plain => ["source", "target"],
            Self::Neo4j => [":START_ID", ":END_ID"],
            Self::Neptune => ["~from", "~to"],
        };
        let mut names = keys.map(str::to_owned).to_vec();
        names.extend(weight_type.map(|weight_type| match (self, weight_type) {
            (Self::Plain, _) => WEIGHT.to_owned(),
            (_, WeightType::U32 | WeightType::I64) => self.property_name(WEIGHT, PropertyType::I64),
            (_, WeightType::F32) => self.property_name(WEIGHT, PropertyType::F32),
            (_, WeightType::F64) => self.property_name(WEIGHT, PropertyType::F64),
        }));
        names.extend(schema.iter().map(|column| match (self, column) {
            (Self::Neo4j, (TYPE_PROPERTY, PropertyType::String)) => ":TYPE".to_owned(),
            (Self::Neptune, (TYPE_PROPERTY, PropertyType::String)) => "~label".to_owned(),
            (Self::Neptune, (EDGE_NAME_PROPERTY, _)) => EDGE_NAME_PROPERTY.to_owned(),
            // Its edges have no arrays.
            (Self::Neptune, (name, property_type)) => self.property_name(name, property_type.stored()),
            (_, (name, property_type)) => self.property_name(name, property_type),
        }));
        if self.has_edge_numbers(schema) {
            names.push(EDGE_NAME_PROPERTY.to_owned());
        }
        names
    }

    /// The names that properties of edges cannot have.
    pub(crate) fn taken_edge_names(self, has_weights: bool) -> Vec<&'static str> {
        let keys: &[&str] = if self == Self::Plain { &["source", "target"] } else { &[] };
        keys.iter().copied().chain(has_weights.then_some(WEIGHT)).collect()
    }

    /// The names of the columns of vertices.
    pub(crate) fn vertex_names(self, schema: &PropertySchema) -> Vec<String> {
        let key = match self {
            Self::Plain => KEY,
            // Neo4j keeps the key as a property of this name, which must be free.
            Self::Neo4j if schema.find(KEY).is_none() => "id:ID",
            Self::Neo4j => ":ID",
            Self::Neptune => "~id",
        };
        let names = schema.iter().map(|column| match (self, column) {
            (Self::Neo4j, (LABELS_PROPERTY, PropertyType::String)) => ":LABEL".to_owned(),
            (Self::Neptune, (LABELS_PROPERTY, PropertyType::String)) => "~label".to_owned(),
            (_, (name, property_type)) => self.property_name(name, property_type),
        });
        std::iter::once(key.to_owned()).chain(names).collect()
    }

    /// The names that properties of vertices cannot have.
    pub(crate) fn taken_vertex_names(self) -> &'static [&'static str] {
        if self == Self::Plain { &[KEY] } else { &[] }
    }

    /// The property that names each edge, which must not be null.
    pub(crate) fn edge_name(self, schema: &PropertySchema) -> Option<usize> {
        schema.find(EDGE_NAME_PROPERTY).filter(|_| self == Self::Neptune)
    }

    /// Whether the last column of edges numbers them.
    pub(crate) fn has_edge_numbers(self, schema: &PropertySchema) -> bool {
        self == Self::Neptune && self.edge_name(schema).is_none()
    }

    /// By property: its name, and the form of its lists, if they are written as arrays.
    pub(crate) fn arrays(self, schema: &PropertySchema, is_of_edges: bool) -> Vec<Option<(&str, ArrayForm)>> {
        let has_arrays = match self {
            // A list is the text of its JSON.
            Self::Plain => false,
            Self::Neo4j => true,
            Self::Neptune => !is_of_edges,
        };
        let form = |item_type| ArrayForm { item_type, is_escaped: self == Self::Neptune };
        let array = |(name, property_type): (_, PropertyType)| Some((name, form(property_type.items()?)));
        schema.iter().map(|column| array(column).filter(|_| has_arrays)).collect()
    }

    /// The name of a property with its type.
    fn property_name(self, name: &str, property_type: PropertyType) -> String {
        match property_type {
            PropertyType::List(item) if self != Self::Plain => self.property_name(name, item.property_type()) + "[]",
            _ => format!("{name}:{}", self.type_name(property_type)),
        }
    }

    fn type_name(self, property_type: PropertyType) -> &'static str {
        // Neither loader has unsigned numbers, or bytes as one value.
        match (self, property_type) {
            (Self::Plain, _) => property_type.name(),
            (Self::Neo4j, PropertyType::Boolean) => "boolean",
            (Self::Neo4j, PropertyType::I64 | PropertyType::U64) => "long",
            (Self::Neo4j, PropertyType::F32) => "float",
            (Self::Neo4j, PropertyType::F64) => "double",
            (Self::Neo4j, PropertyType::Date) => "date",
            (Self::Neo4j, PropertyType::Timestamp) => "datetime",
            (Self::Neo4j, PropertyType::String | PropertyType::Bytes | PropertyType::List(_)) => "string",
            (Self::Neptune, PropertyType::Boolean) => "Bool",
            (Self::Neptune, PropertyType::I64 | PropertyType::U64) => "Long",
            (Self::Neptune, PropertyType::F32) => "Float",
            (Self::Neptune, PropertyType::F64) => "Double",
            (Self::Neptune, PropertyType::Date | PropertyType::Timestamp) => "Date",
            (Self::Neptune, PropertyType::String | PropertyType::Bytes | PropertyType::List(_)) => "String",
        }
    }

    /// The text of a number with a fraction, or of a weight.
    pub(crate) fn number(self, text: String) -> String {
        match (self, &text[..]) {
            (Self::Plain, _) => text,
            // Java reads no shorter words.
            (_, "inf") => "Infinity".to_owned(),
            (_, "-inf") => "-Infinity".to_owned(),
            _ => text,
        }
    }

    /// The text of a value that is not null.
    ///
    /// # Errors
    /// The type of the column cannot hold the value.
    pub(crate) fn text(self, value: PropertyValue<'_>) -> Result<Cow<'_, str>, String> {
        match value {
            PropertyValue::String(text) => Ok(text.into()),
            PropertyValue::F32(_) | PropertyValue::F64(_) => Ok(self.number(value.to_string()).into()),
            PropertyValue::U64(number) if self != Self::Plain && i64::try_from(number).is_err() => {
                Err(format!("the value {number} is above {}, the largest whole number there: write CSV", i64::MAX))
            }
            value => Ok(value.to_string().into()),
        }
    }
}
