//! Numbers of seconds or milliseconds since 1970 as timestamps, and the names of types that users type.

use anden_graph::property::{ColumnBuilder, PropertyColumn, PropertyType, PropertyValue};

use crate::array_text::ArrayForm;

/// The unit of numbers that count from 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
}

impl EpochUnit {
    const NAMES: [(Self, &str); 4] = [
        (Self::Seconds, "epoch_s"),
        (Self::Milliseconds, "epoch_ms"),
        (Self::Seconds, "epoch_seconds"),
        (Self::Milliseconds, "epoch_milliseconds"),
    ];

    fn noun(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
        }
    }

    /// The timestamp of a number; `None` beyond 64 bits of microseconds.
    fn timestamp(self, number: PropertyValue<'_>) -> Option<i64> {
        let micros = match self {
            Self::Seconds => 1_000_000,
            Self::Milliseconds => 1_000,
        };
        match number {
            PropertyValue::I64(number) => number.checked_mul(micros),
            PropertyValue::U64(number) => i64::try_from(number).ok()?.checked_mul(micros),
            PropertyValue::F32(number) => in_range(f64::from(number) * micros as f64),
            PropertyValue::F64(number) => in_range(number * micros as f64),
            _ => None,
        }
    }

    /// Refuses the text of a number that is no timestamp. Other text is left to the parser of numbers.
    pub(crate) fn check(self, text: &[u8]) -> Result<(), String> {
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
        match number.map(PropertyValue::F64) {
            Some(number) if self.timestamp(number).is_none() => Err(self.out_of_range(number)),
            _ => Ok(()),
        }
    }

    fn out_of_range(self, number: PropertyValue<'_>) -> String {
        format!("expected {} since 1970 within 64 bits of microseconds, found {number}", self.noun())
    }

    /// The timestamps of a column of numbers.
    ///
    /// # Errors
    /// A number is beyond 64 bits of microseconds.
    pub(crate) fn timestamps(self, numbers: &PropertyColumn) -> Result<PropertyColumn, String> {
        let mut column = ColumnBuilder::new(PropertyType::Timestamp);
        for number in numbers.iter() {
            let value = match number.is_null() {
                true => PropertyValue::Null,
                false => PropertyValue::Timestamp(self.timestamp(number).ok_or_else(|| self.out_of_range(number))?),
            };
            column.push(value).map_err(|error| error.to_string())?;
        }
        Ok(column.finish())
    }
}

/// The nearest integer of 64 bits.
fn in_range(micros: f64) -> Option<i64> {
    // The bounds are powers of two, so both are exact. The comparison refuses NaN.
    let bound = (1_u64 << 63) as f64;
    (micros >= -bound && micros < bound).then(|| micros.round() as i64)
}

/// The type of a column as users state it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatedType {
    /// The type of the property.
    Property(PropertyType),
    /// Numbers of this unit, which become timestamps.
    Epoch(EpochUnit),
    /// Lists whose fields have this form.
    Array(ArrayForm),
}

impl From<PropertyType> for StatedType {
    fn from(property_type: PropertyType) -> Self {
        Self::Property(property_type)
    }
}

impl StatedType {
    /// The type with this name, ignoring case.
    pub fn of_name(name: &str) -> Option<Self> {
        let unit = EpochUnit::NAMES.iter().find(|(_, known)| known.eq_ignore_ascii_case(name));
        unit.map(|(unit, _)| Self::Epoch(*unit)).or_else(|| Some(PropertyType::of_name(name)?.into()))
    }

    /// The names of all types, for messages and help texts.
    pub fn names() -> String {
        let names: Vec<_> = PropertyType::ALL.iter().map(|(_, name)| *name).collect();
        format!("{}, epoch_s, epoch_ms, or a list such as string[]", names.join(", "))
    }

    /// The type of the values in the input.
    pub(crate) fn of_input(self) -> PropertyType {
        match self {
            Self::Property(property_type) => property_type,
            // Also holds fractions. Whole numbers of the years up to 287,000 are exact.
            Self::Epoch(_) => PropertyType::F64,
            Self::Array(form) => PropertyType::List(form.item_type),
        }
    }

    pub(crate) fn epoch(self) -> Option<EpochUnit> {
        match self {
            Self::Epoch(unit) => Some(unit),
            Self::Property(_) | Self::Array(_) => None,
        }
    }

    pub(crate) fn array(self) -> Option<ArrayForm> {
        match self {
            Self::Array(form) => Some(form),
            Self::Property(_) | Self::Epoch(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_timestamps_within_range() {
        let (s, ms) = (EpochUnit::Seconds, EpochUnit::Milliseconds);
        for (unit, number, expected) in [
            (s, PropertyValue::I64(1_300_000_000), Some(1_300_000_000_000_000)),
            (ms, PropertyValue::U64(1_300_000_000_123), Some(1_300_000_000_123_000)),
            (s, PropertyValue::F64(1_300_000_000.25), Some(1_300_000_000_250_000)),
            (s, PropertyValue::F64(-0.5), Some(-500_000)),
            (s, PropertyValue::I64(i64::MAX / 1_000_000), Some(9_223_372_036_854_000_000)),
            (s, PropertyValue::I64(i64::MAX / 1_000_000 + 1), None),
            (ms, PropertyValue::U64(u64::MAX), None),
            (ms, PropertyValue::F64(f64::NAN), None),
            (ms, PropertyValue::F64(1e300), None),
        ] {
            assert_eq!(unit.timestamp(number), expected, "{number} {unit:?}");
        }
        assert_eq!(StatedType::of_name("Epoch_MS"), Some(StatedType::Epoch(ms)));
        assert_eq!(StatedType::of_name("long"), Some(PropertyType::I64.into()));
        assert_eq!(StatedType::of_name("epoch"), None);
    }
}
