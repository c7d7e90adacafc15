//! Converts given values to the type of their property.

use std::sync::Arc;

use anden_base::message::shown;
use anden_graph::property::{ColumnBuilder, Inference, OwnedValue, PropertySchema, PropertyType, PropertyValue};

use super::update::NewValue;
use crate::error::PropertyOf;
use crate::fitting::joined_type;
use crate::{Error, Result};

/// Properties, including those that a batch creates.
#[derive(Clone, Debug)]
pub(super) struct BatchSchema {
    of: PropertyOf,
    known: Arc<PropertySchema>,
    /// All properties, if there are new ones.
    extended: Option<PropertySchema>,
}

impl BatchSchema {
    pub(super) fn new(of: PropertyOf, known: Arc<PropertySchema>) -> Self {
        Self { of, known, extended: None }
    }

    /// The index of a property, and its type. A new property gets the type that holds all `values`, the batch's values
    /// for it.
    ///
    /// # Errors
    /// The property does not exist and gets no value, or its name is invalid.
    pub(super) fn find<'a>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = &'a NewValue>,
    ) -> Result<(usize, PropertyType)> {
        let schema = self.extended.as_ref().unwrap_or(&self.known);
        // A known property keeps its type, whatever values the batch has for it.
        if let Some(place) = schema.find(name)
            && let Some((_, property_type)) = schema.get(place)
        {
            return Ok((place, property_type));
        }
        let Some(property_type) = type_of_all(values) else {
            return Err(no_property(schema, self.of, name));
        };
        // Copied at the first new property only: most batches have none.
        let extended = self.extended.get_or_insert_with(|| PropertySchema::clone(&self.known));
        Ok((extended.add(name.to_owned(), property_type)?, property_type))
    }

    /// All properties, including new ones.
    pub(super) fn schema(&self) -> &PropertySchema {
        self.extended.as_ref().unwrap_or(&self.known)
    }

    /// All properties, if there are new ones.
    pub(super) fn take_extended(&mut self) -> Option<PropertySchema> {
        self.extended.take()
    }
}

/// The narrowest type that holds all values; `None` if all are null.
fn type_of_all<'a>(values: impl Iterator<Item = &'a NewValue>) -> Option<PropertyType> {
    let (mut texts, mut types) = (None, Vec::new());
    for value in values {
        match value {
            NewValue::Value(value) => types.extend(value.property_type()),
            // Quotes mark text that only looks like a number.
            NewValue::Text { is_quoted: true, .. } => types.push(PropertyType::String),
            NewValue::Text { text, .. } => texts.get_or_insert_with(Inference::default).add(text.as_bytes()),
        }
    }
    let texts = texts.map(|texts| texts.property_type());
    match texts {
        // Every text is a string.
        Some(_) if types.contains(&PropertyType::String) => Some(PropertyType::String),
        _ => joined_type(types.into_iter().chain(texts)),
    }
}

/// A value in the type of its property.
///
/// # Errors
/// The value does not fit the type.
pub(crate) fn typed(name: &str, value: &NewValue, property_type: PropertyType) -> Result<OwnedValue> {
    match value {
        NewValue::Value(OwnedValue::Null) => Ok(OwnedValue::Null),
        NewValue::Value(OwnedValue::String(text) | OwnedValue::List(_, text)) if property_type.items().is_some() => {
            parsed(name, text, property_type)
        }
        NewValue::Value(value) => Ok(converted(name, value.as_value(), property_type)?.into()),
        NewValue::Text { text, .. } => parsed(name, text, property_type),
    }
}

fn parsed(name: &str, text: &str, property_type: PropertyType) -> Result<OwnedValue> {
    OwnedValue::parse(text, property_type).map_err(|_| Error::InvalidValue {
        property: name.to_owned(),
        element: None,
        expected: property_type.text_form().to_owned(),
        found: shown(text.as_bytes()),
    })
}

/// Appends a value to a column of its property.
///
/// # Errors
/// The value does not fit the type of the column.
pub(crate) fn push_typed(name: &str, value: &OwnedValue, column: &mut ColumnBuilder) -> Result<()> {
    let property_type = column.property_type();
    match value {
        OwnedValue::String(text) | OwnedValue::List(_, text) if property_type.items().is_some() => {
            Ok(column.push(parsed(name, text, property_type)?.as_value())?)
        }
        value => Ok(column.push(converted(name, value.as_value(), property_type)?)?),
    }
}

/// A typed value in the type of its property.
///
/// # Errors
/// The value does not fit the type.
fn converted<'a>(name: &str, value: PropertyValue<'a>, property_type: PropertyType) -> Result<PropertyValue<'a>> {
    value.converted(property_type).ok_or_else(|| Error::InvalidValue {
        property: name.to_owned(),
        element: None,
        expected: format!("a value of type {property_type}"),
        found: shown(value.to_string().as_bytes()),
    })
}

/// The error for a property that does not exist.
pub(crate) fn no_property(schema: &PropertySchema, of: PropertyOf, name: &str) -> Error {
    Error::NoProperty { of, name: name.to_owned(), nearest: schema.nearest(name).map(str::to_owned) }
}

/// The index of a searched property, and the sought value in its type.
///
/// # Errors
/// There is no such property; the value does not fit its type.
pub fn sought_value(schema: &PropertySchema, name: &str, value: &NewValue) -> Result<(usize, OwnedValue)> {
    let place = schema.find(name);
    let Some((place, (_, property_type))) = place.and_then(|place| Some((place, schema.get(place)?))) else {
        return Err(no_property(schema, PropertyOf::Vertices, name));
    };
    Ok((place, typed(name, value, property_type)?))
}

#[cfg(test)]
mod tests {
    use anden_graph::property::ItemType;

    use super::*;

    fn text(text: &str) -> NewValue {
        NewValue::Text { text: text.into(), is_quoted: false }
    }

    fn quoted(text: &str) -> NewValue {
        NewValue::Text { text: text.into(), is_quoted: true }
    }

    #[test]
    fn new_property_type_fits_all_values() {
        let name = |values: &[NewValue]| type_of_all(values.iter()).map(PropertyType::name);
        assert_eq!(name(&[]), None);
        assert_eq!(name(&[OwnedValue::Null.into()]), None);
        assert_eq!(name(&[1_i64.into(), 2.5.into()]), Some("f64"));
        assert_eq!(name(&[text("1"), text("2.5")]), Some("f64"));
        assert_eq!(name(&[text("1"), text("x")]), Some("string"));
        assert_eq!(name(&[text("1"), quoted("2")]), Some("string"));
        assert_eq!(name(&[text("1"), 0.5.into()]), Some("f64"));
        assert_eq!(name(&[text("2024-02-29")]), Some("date"));
        assert_eq!(name(&[text("007")]), Some("string"));
        let list = |item, text: &str| NewValue::Value(OwnedValue::List(item, text.into()));
        assert_eq!(name(&[list(ItemType::I64, "[1]"), list(ItemType::F64, "[0.5]")]), Some("f64[]"));
    }

    #[test]
    fn values_take_the_type_of_their_property() {
        let typed = |name, value: &_, of| typed(name, value, of).map_err(|error| error.to_string());
        assert_eq!(typed("p", &1_i64.into(), PropertyType::F64), Ok(1.0.into()));
        assert_eq!(typed("p", &quoted("1"), PropertyType::F64), Ok(1.0.into()));
        assert_eq!(typed("p", &7_i64.into(), PropertyType::U64), Ok(7_u64.into()));
        assert_eq!(typed("p", &7_u64.into(), PropertyType::I64), Ok(7_i64.into()));
        assert_eq!(typed("p", &0.1.into(), PropertyType::F32), Ok(0.1_f32.into()));
        assert_eq!(typed("p", &text("0.1"), PropertyType::F32), Ok(0.1_f32.into()));
        assert_eq!(typed("p", &0.5_f32.into(), PropertyType::F64), Ok(0.5.into()));
        for (value, property_type) in [
            ((-1_i64).into(), PropertyType::U64),
            (u64::MAX.into(), PropertyType::I64),
            (u64::MAX.into(), PropertyType::F64),
            (1e300.into(), PropertyType::F32),
            (NewValue::from((1_i64 << 24) + 1), PropertyType::F32),
        ] {
            assert!(typed("p", &value, property_type).is_err(), "{value:?} as {property_type}");
        }
        assert_eq!(typed("p", &text("1"), PropertyType::String), Ok("1".into()));
        assert_eq!(typed("p", &OwnedValue::Null.into(), PropertyType::Date), Ok(OwnedValue::Null));
        let wrong = typed("p", &text("x"), PropertyType::I64);
        assert_eq!(wrong, Err("property \"p\": expected a whole number of type i64, found 'x'".into()));
        let list = PropertyType::List(ItemType::F64);
        for value in [text("[1, 2]"), "[1,2]".into(), NewValue::Value(OwnedValue::List(ItemType::I64, "[1,2]".into()))]
        {
            assert_eq!(typed("p", &value, list), Ok("[1.0,2.0]".into()));
        }
        let wrong = typed("p", &r#"["x"]"#.into(), list);
        let expected = "property \"p\": expected a list of numbers of type f64 such as [0.5,1.0], found '[\"x\"]'";
        assert_eq!(wrong, Err(expected.into()));
        let wrong = typed("p", &1_i64.into(), list);
        assert_eq!(wrong, Err("property \"p\": expected a value of type f64[], found '1'".into()));
        let wrong = typed("p", &0.5.into(), PropertyType::I64);
        assert_eq!(wrong, Err("property \"p\": expected a value of type i64, found '0.5'".into()));
    }
}
