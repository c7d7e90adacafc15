//! Properties of vertices and edges: types, values, columns.
//!
//! A property has a name and one type, and a value or null for each vertex or edge. Values travel in
//! [columns](PropertyColumn), which are Arrow arrays: readers [build](ColumnBuilder) them, and storages keep them
//! unchanged. A single [value](PropertyValue) is the answer for one vertex or edge.
//!
//! # Text
//! Every value has one text form, that of CSV (see [`PropertyValue`]'s `Display`). Parsing that text as its type gives
//! the value back. [`Inference`] finds the narrowest lossless type of texts without a declared type.

mod array;
mod builder;
mod bytes;
mod column;
mod distinct;
mod list;
mod list_array;
mod owned;
mod schema;
mod text;
mod time;

pub use array::{TypedArray, ZONE};
pub use builder::ColumnBuilder;
pub use column::PropertyColumn;
pub use distinct::DistinctStrings;
pub use list::{ItemType, parse_list, push_json_text, push_json_value, push_list};
pub use owned::OwnedValue;
pub use schema::{MAX_NAME_BYTES, MAX_PROPERTIES, PropertySchema};
pub use text::Inference;
pub use time::{MICROS_PER_DAY, calendar_of, days_of};

/// The types of properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PropertyType {
    /// True or false.
    Boolean,
    /// 64-bit signed integers.
    I64,
    /// 64-bit unsigned integers.
    U64,
    /// 32-bit floating-point numbers.
    F32,
    /// 64-bit floating-point numbers.
    F64,
    /// Days of the proleptic Gregorian calendar.
    Date,
    /// Microseconds, in UTC.
    Timestamp,
    /// Text in UTF-8.
    String,
    /// Any bytes.
    Bytes,
    /// Lists of values of one type, which are stored as text: the JSON that [`push_list`] writes.
    List(ItemType),
}

impl PropertyType {
    /// All types but those of lists, with the names that users type and that CSV headers carry.
    pub const ALL: [(Self, &str); 9] = [
        (Self::Boolean, "boolean"),
        (Self::I64, "i64"),
        (Self::U64, "u64"),
        (Self::F32, "f32"),
        (Self::F64, "f64"),
        (Self::Date, "date"),
        (Self::Timestamp, "timestamp"),
        (Self::String, "string"),
        (Self::Bytes, "bytes"),
    ];

    /// Names of these types in other programs.
    const OTHER_NAMES: [(Self, &str); 14] = [
        (Self::Boolean, "bool"),
        (Self::I64, "int"),
        (Self::I64, "integer"),
        (Self::I64, "long"),
        (Self::I64, "int64"),
        (Self::U64, "uint64"),
        (Self::F32, "float32"),
        (Self::F64, "float"),
        (Self::F64, "double"),
        (Self::F64, "float64"),
        (Self::Timestamp, "datetime"),
        (Self::String, "text"),
        (Self::String, "str"),
        (Self::Bytes, "binary"),
    ];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::List(item) => item.list_name(),
            _ => Self::ALL.iter().find(|(known, _)| *known == self).map_or("?", |(_, name)| name),
        }
    }

    /// The type with this name, ignoring case. `string[]` is the type of lists of strings, and so on.
    pub fn of_name(name: &str) -> Option<Self> {
        if let Some(items) = name.strip_suffix("[]") {
            return Self::of_name(items)?.list();
        }
        let mut known = Self::ALL.iter().chain(&Self::OTHER_NAMES);
        known.find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|&(found, _)| found)
    }

    /// Whether the values are numbers, and so can be weights.
    pub fn is_numeric(self) -> bool {
        matches!(self, Self::I64 | Self::U64 | Self::F32 | Self::F64)
    }

    /// Whether a column of this type converts to another type, provided that the other type holds all its values
    /// ([`PropertyColumn::converted`]).
    pub fn converts_to(self, to: Self) -> bool {
        match (self, to) {
            (from, to) if from == to => true,
            (Self::I64 | Self::U64, to) => to.is_numeric(),
            (Self::F32 | Self::F64, to) => matches!(to, Self::F32 | Self::F64),
            (Self::Date, Self::Timestamp) => true,
            (Self::List(from), Self::List(to)) => from.property_type().converts_to(to.property_type()),
            // A list is a text, and a text may be that of a list.
            (Self::String, Self::List(_)) | (Self::List(_), Self::String) => true,
            _ => false,
        }
    }

    /// The type for values of both types; `None` if only text holds both. `I64` stands for `U64` up to `i64::MAX`,
    /// `F64` for integers up to 2^53.
    pub fn joined(self, other: Self) -> Option<Self> {
        match (self, other) {
            (a, b) if a == b => Some(a),
            // Most unsigned values fit in i64, and the conversion refuses each one that does not.
            (Self::I64, Self::U64) | (Self::U64, Self::I64) => Some(Self::I64),
            (a, b) if a.is_numeric() && b.is_numeric() => Some(Self::F64),
            (Self::Date, Self::Timestamp) | (Self::Timestamp, Self::Date) => Some(Self::Timestamp),
            (Self::List(a), Self::List(b)) => a.property_type().joined(b.property_type())?.list(),
            _ => None,
        }
    }
}

impl std::fmt::Display for PropertyType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// One value of a property.
///
/// `Display` writes the text form: an empty text for null; `true` or `false`; the shortest decimal number that parses
/// to the value; `2024-02-29`; `2024-02-29T12:30:00.5Z`; text unchanged; bytes as `0x` and two hexadecimal digits each.
/// Years before 0 or after 9999 have a sign and at least four digits.
#[derive(Clone, Copy, Debug)]
pub enum PropertyValue<'a> {
    /// No value.
    Null,
    /// True or false.
    Boolean(bool),
    /// A signed integer.
    I64(i64),
    /// An unsigned integer.
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
    String(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl PropertyValue<'_> {
    /// The type; `None` for null, which belongs to every type.
    pub fn property_type(&self) -> Option<PropertyType> {
        Some(match self {
            Self::Null => return None,
            Self::Boolean(_) => PropertyType::Boolean,
            Self::I64(_) => PropertyType::I64,
            Self::U64(_) => PropertyType::U64,
            Self::F32(_) => PropertyType::F32,
            Self::F64(_) => PropertyType::F64,
            Self::Date(_) => PropertyType::Date,
            Self::Timestamp(_) => PropertyType::Timestamp,
            Self::String(_) => PropertyType::String,
            Self::Bytes(_) => PropertyType::Bytes,
        })
    }

    /// The value without a lifetime; `None` for text and bytes, which are borrowed.
    pub fn to_static(self) -> Option<PropertyValue<'static>> {
        Some(match self {
            Self::Null => PropertyValue::Null,
            Self::Boolean(value) => PropertyValue::Boolean(value),
            Self::I64(value) => PropertyValue::I64(value),
            Self::U64(value) => PropertyValue::U64(value),
            Self::F32(value) => PropertyValue::F32(value),
            Self::F64(value) => PropertyValue::F64(value),
            Self::Date(days) => PropertyValue::Date(days),
            Self::Timestamp(micros) => PropertyValue::Timestamp(micros),
            Self::String(_) | Self::Bytes(_) => return None,
        })
    }

    /// The value as another type; `None` if that type does not hold it.
    ///
    /// Integers convert to the other integer type and to floating-point types that hold them exactly. `F32` and `F64`
    /// convert to each other, to the nearest value. A date becomes the timestamp of its midnight. Null stays null. A
    /// text is a list if it is exactly the one that [`push_list`] writes for its items.
    pub fn converted(self, to: PropertyType) -> Option<Self> {
        // 128 bits hold both integer types, so one closure serves both.
        let whole = |value: i128| match to {
            PropertyType::I64 => i64::try_from(value).ok().map(Self::I64),
            PropertyType::U64 => u64::try_from(value).ok().map(Self::U64),
            // Floating-point types hold every integer up to these bounds exactly.
            PropertyType::F64 => (value.unsigned_abs() <= 1 << 53).then_some(Self::F64(value as f64)),
            PropertyType::F32 => (value.unsigned_abs() <= 1 << 24).then_some(Self::F32(value as f32)),
            _ => None,
        };
        match (self, to) {
            // Null has no type of its own, and stays null in every type.
            (value, to) if value.property_type().is_none_or(|from| from == to) => Some(value),
            (Self::I64(value), _) => whole(value.into()),
            (Self::U64(value), _) => whole(value.into()),
            (Self::F32(value), PropertyType::F64) => Some(Self::F64(value.into())),
            (Self::F64(value), PropertyType::F32) => {
                // A finite value beyond the range of `f32` would become infinite.
                let nearest = value as f32;
                (nearest.is_finite() || !value.is_finite()).then_some(Self::F32(nearest))
            }
            (Self::Date(days), PropertyType::Timestamp) => {
                // Days in 32 bits reach further than microseconds in 64 bits.
                i64::from(days).checked_mul(MICROS_PER_DAY).map(Self::Timestamp)
            }
            (Self::String(text), PropertyType::List(item)) => {
                (list::canonical_list(text.as_bytes(), item)? == text).then_some(self)
            }
            _ => None,
        }
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

/// Floating-point values are equal if their bits are, so that every value equals itself, NaN included.
impl PartialEq for PropertyValue<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            (Self::I64(a), Self::I64(b)) | (Self::Timestamp(a), Self::Timestamp(b)) => a == b,
            (Self::U64(a), Self::U64(b)) => a == b,
            (Self::F32(a), Self::F32(b)) => a.to_bits() == b.to_bits(),
            (Self::F64(a), Self::F64(b)) => a.to_bits() == b.to_bits(),
            (Self::Date(a), Self::Date(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for PropertyValue<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_go_by_their_names() {
        for (known, name) in PropertyType::ALL {
            assert_eq!((known.name(), PropertyType::of_name(&name.to_uppercase())), (name, Some(known)));
        }
        assert_eq!(PropertyType::of_name("double"), Some(PropertyType::F64));
        assert_eq!(PropertyType::of_name("u128"), None);
    }

    #[test]
    fn joined_types_lose_nothing() {
        assert_eq!(PropertyType::I64.joined(PropertyType::F64), Some(PropertyType::F64));
        assert_eq!(PropertyType::Timestamp.joined(PropertyType::Date), Some(PropertyType::Timestamp));
        assert_eq!(PropertyType::F32.joined(PropertyType::U64), Some(PropertyType::F64));
        assert_eq!(PropertyType::I64.joined(PropertyType::U64), Some(PropertyType::I64));
        assert_eq!(PropertyType::I64.joined(PropertyType::String), None);
        assert_eq!(PropertyType::Bytes.joined(PropertyType::Bytes), Some(PropertyType::Bytes));
        let list = |item| PropertyType::List(item);
        assert_eq!(list(ItemType::I64).joined(list(ItemType::F64)), Some(list(ItemType::F64)));
        assert_eq!(list(ItemType::I64).joined(list(ItemType::String)), None);
        assert_eq!(list(ItemType::I64).joined(PropertyType::I64), None);
    }

    #[test]
    fn equal_means_the_same_bits() {
        assert_eq!(PropertyValue::F64(f64::NAN), PropertyValue::F64(f64::NAN));
        assert_ne!(PropertyValue::F32(1.0), PropertyValue::F64(1.0));
        assert_ne!(PropertyValue::F64(0.0), PropertyValue::F64(-0.0));
        assert_ne!(PropertyValue::Null, PropertyValue::String(""));
        assert_ne!(PropertyValue::I64(1), PropertyValue::Timestamp(1));
    }
}
