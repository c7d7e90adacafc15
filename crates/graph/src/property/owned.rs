//! A property value that owns its memory.

use super::{ColumnBuilder, ItemType, PropertyType, PropertyValue};

/// One value of a property that owns its memory: the input counterpart of [`PropertyValue`].
#[derive(Clone, Debug)]
pub enum OwnedValue {
    /// No value.
    Null,
    /// True or false.
    Boolean(bool),
    /// A 64-bit signed integer.
    I64(i64),
    /// A 64-bit unsigned integer.
    U64(u64),
    /// A 32-bit floating-point number.
    F32(f32),
    /// A 64-bit floating-point number.
    F64(f64),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01T00:00:00Z.
    Timestamp(i64),
    /// Text.
    String(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A list in JSON, whose items have this type. As a [`PropertyValue`], it is its text.
    List(ItemType, String),
}

impl OwnedValue {
    /// Parses a text as a value of a type. The text is never taken as null.
    ///
    /// # Errors
    /// The expected and the found text, if the text is not a value of the type.
    pub fn parse(text: &str, property_type: PropertyType) -> Result<Self, String> {
        // The parser of columns also serves single values, so both accept equal texts.
        let mut column = ColumnBuilder::new(property_type);
        column.push_text(text.as_bytes())?;
        Ok(Self::of(column.finish().get(0), property_type))
    }

    /// A value of a property of this type: a text is a list if the property holds lists.
    pub fn of(value: PropertyValue<'_>, property_type: PropertyType) -> Self {
        match (value, property_type) {
            (PropertyValue::String(list), PropertyType::List(item)) => Self::List(item, list.to_owned()),
            (value, _) => value.into(),
        }
    }

    /// The type; `None` for null, which belongs to every type.
    pub fn property_type(&self) -> Option<PropertyType> {
        match self {
            Self::List(item, _) => Some(PropertyType::List(*item)),
            value => value.as_value().property_type(),
        }
    }

    /// The value, borrowed.
    pub fn as_value(&self) -> PropertyValue<'_> {
        match self {
            Self::Null => PropertyValue::Null,
            Self::Boolean(value) => PropertyValue::Boolean(*value),
            Self::I64(value) => PropertyValue::I64(*value),
            Self::U64(value) => PropertyValue::U64(*value),
            Self::F32(value) => PropertyValue::F32(*value),
            Self::F64(value) => PropertyValue::F64(*value),
            Self::Date(days) => PropertyValue::Date(*days),
            Self::Timestamp(micros) => PropertyValue::Timestamp(*micros),
            Self::String(text) | Self::List(_, text) => PropertyValue::String(text),
            Self::Bytes(bytes) => PropertyValue::Bytes(bytes),
        }
    }
}

/// As for [`PropertyValue`]: floating-point values compare by their bits.
impl PartialEq for OwnedValue {
    fn eq(&self, other: &Self) -> bool {
        self.as_value() == other.as_value()
    }
}

impl Eq for OwnedValue {}

impl From<PropertyValue<'_>> for OwnedValue {
    fn from(value: PropertyValue<'_>) -> Self {
        match value {
            PropertyValue::Null => Self::Null,
            PropertyValue::Boolean(value) => Self::Boolean(value),
            PropertyValue::I64(value) => Self::I64(value),
            PropertyValue::U64(value) => Self::U64(value),
            PropertyValue::F32(value) => Self::F32(value),
            PropertyValue::F64(value) => Self::F64(value),
            PropertyValue::Date(days) => Self::Date(days),
            PropertyValue::Timestamp(micros) => Self::Timestamp(micros),
            PropertyValue::String(text) => Self::String(text.to_owned()),
            PropertyValue::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
        }
    }
}

impl From<bool> for OwnedValue {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<i64> for OwnedValue {
    fn from(value: i64) -> Self {
        Self::I64(value)
    }
}

impl From<i32> for OwnedValue {
    fn from(value: i32) -> Self {
        Self::I64(value.into())
    }
}

// i64 and not u64, because type inference prefers i64 too.
impl From<u32> for OwnedValue {
    fn from(value: u32) -> Self {
        Self::I64(value.into())
    }
}

impl From<u64> for OwnedValue {
    fn from(value: u64) -> Self {
        Self::U64(value)
    }
}

impl From<f32> for OwnedValue {
    fn from(value: f32) -> Self {
        Self::F32(value)
    }
}

impl From<f64> for OwnedValue {
    fn from(value: f64) -> Self {
        Self::F64(value)
    }
}

impl From<&str> for OwnedValue {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for OwnedValue {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<Vec<u8>> for OwnedValue {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_values_of_a_type() {
        assert_eq!(OwnedValue::parse("3", PropertyType::F64), Ok(OwnedValue::F64(3.0)));
        assert_eq!(OwnedValue::parse("0xff", PropertyType::Bytes), Ok(vec![0xff].into()));
        assert_eq!(OwnedValue::parse("", PropertyType::String), Ok("".into()));
        let wrong = OwnedValue::parse("x", PropertyType::I64);
        assert_eq!(wrong, Err("expected a whole number of type i64, found 'x'".to_owned()));
    }
}
