//! Values as text, and type inference from text.

use std::fmt;

use super::list::{canonical_list, items_of};
use super::time::{parse_date, parse_timestamp, write_date, write_timestamp};
use super::{PropertyType, PropertyValue};

/// `f64` holds every integer up to this bound exactly.
const EXACT_IN_F64: u64 = 1 << 53;

impl fmt::Display for PropertyValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Null => Ok(()),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::I64(value) => write!(f, "{value}"),
            Self::U64(value) => write!(f, "{value}"),
            // `Debug` keeps the point of 1.0, so type inference finds a float again.
            Self::F32(value) => write!(f, "{value:?}"),
            Self::F64(value) => write!(f, "{value:?}"),
            Self::Date(days) => write_date(f, days.into()),
            Self::Timestamp(micros) => write_timestamp(f, micros),
            Self::String(text) => f.write_str(text),
            Self::Bytes(bytes) => {
                f.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

/// A value that was parsed from text. Bytes need decoding, so they are owned, as is the one text of a list.
pub(super) enum ParsedValue<'a> {
    Value(PropertyValue<'a>),
    Decoded(Vec<u8>),
    List(String),
}

/// Parses a text as a value of a type; `None` if it is not one. The text is never taken as null.
pub(super) fn parse(text: &[u8], property_type: PropertyType) -> Option<ParsedValue<'_>> {
    Some(ParsedValue::Value(match property_type {
        PropertyType::Boolean => PropertyValue::Boolean(parse_boolean(text)?),
        PropertyType::I64 => PropertyValue::I64(ascii(text)?.parse().ok()?),
        PropertyType::U64 => PropertyValue::U64(ascii(text)?.parse().ok()?),
        PropertyType::F32 => PropertyValue::F32(parse_number(text, f32::is_finite)?),
        PropertyType::F64 => PropertyValue::F64(parse_number(text, f64::is_finite)?),
        PropertyType::Date => PropertyValue::Date(parse_date(text)?),
        PropertyType::Timestamp => PropertyValue::Timestamp(parse_timestamp(text)?),
        PropertyType::String => PropertyValue::String(std::str::from_utf8(text).ok()?),
        PropertyType::Bytes => return parse_bytes(text).map(ParsedValue::Decoded),
        PropertyType::List(item) => return canonical_list(text, item).map(ParsedValue::List),
    }))
}

impl PropertyType {
    /// A description of the text form of this type, for messages.
    pub fn text_form(self) -> &'static str {
        match self {
            Self::Boolean => "true or false",
            Self::I64 => "a whole number of type i64",
            Self::U64 => "a whole number of type u64",
            Self::F32 => "a number of type f32",
            Self::F64 => "a number of type f64",
            Self::Date => "a date such as 2024-02-29",
            Self::Timestamp => "a timestamp such as 2024-02-29T12:30:00Z, to the microsecond",
            Self::String => "text in UTF-8",
            Self::Bytes => "bytes as 0x and two digits each",
            Self::List(item) => item.text_form(),
        }
    }
}

fn ascii(text: &[u8]) -> Option<&str> {
    std::str::from_utf8(text).ok()
}

/// Parses a number. Digits never mean infinity, so a number beyond the type's range is refused.
fn parse_number<T: Copy + std::str::FromStr>(text: &[u8], is_finite: impl Fn(T) -> bool) -> Option<T> {
    let number: T = ascii(text)?.parse().ok()?;
    // `inf` and `nan` have no digits and are meant as such.
    (is_finite(number) || !text.iter().any(u8::is_ascii_digit)).then_some(number)
}

fn parse_boolean(text: &[u8]) -> Option<bool> {
    if text.eq_ignore_ascii_case(b"true") {
        Some(true)
    } else if text.eq_ignore_ascii_case(b"false") {
        Some(false)
    } else {
        None
    }
}

fn parse_bytes(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.strip_prefix(b"0x")?;
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, rest) = digits.as_chunks::<2>();
    // A single digit is half a byte.
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

/// Infers the type of a column of text, value by value.
///
/// The result is the first of boolean, i64, u64, f64, date and timestamp that fits every value, else string. A number
/// with leading zeros or a plus sign is text, because it may be a code. An integer that the type does not hold exactly
/// is text too, as is a column without values. Strings are never taken as bytes. Lists alone, whose items have one
/// such type, are lists of that type; all others are text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inference {
    /// The types that fit all added values: a bit for each position in [`CANDIDATES`].
    may_be: u8,
    has_values: bool,
    /// The types that fit the items of all added lists, likewise.
    items_may_be: u8,
    /// The kinds of items of all added lists, as bits.
    item_kinds: u8,
}

const QUOTED_ITEMS: u8 = 1;
const BARE_ITEMS: u8 = 1 << 1;
/// Lists and objects in a list, or a text that is no list.
const NESTED_ITEMS: u8 = 1 << 2;
const ALL_CANDIDATES: u8 = (1 << CANDIDATES.len()) - 1;

const CANDIDATES: [PropertyType; 6] = [
    PropertyType::Boolean,
    PropertyType::I64,
    PropertyType::U64,
    PropertyType::F64,
    PropertyType::Date,
    PropertyType::Timestamp,
];

impl Default for Inference {
    fn default() -> Self {
        Self { may_be: ALL_CANDIDATES, has_values: false, items_may_be: ALL_CANDIDATES, item_kinds: 0 }
    }
}

/// The candidates of `may_be` that a text fits. A text in quotes is no boolean and no number.
fn narrowed(mut may_be: u8, text: &[u8], is_quoted: bool) -> u8 {
    for (place, &candidate) in CANDIDATES.iter().enumerate() {
        let is_told_by_form = || matches!(candidate, PropertyType::Date | PropertyType::Timestamp);
        // A type that failed once is not tried again, so most values test few types.
        if may_be & 1 << place != 0 && (is_quoted && !is_told_by_form() || !is_lossless(text, candidate)) {
            may_be &= !(1 << place);
        }
    }
    may_be
}

/// The preferred candidate.
fn first_candidate(may_be: u8) -> Option<PropertyType> {
    // Candidates are in the order of preference, so the lowest bit wins.
    CANDIDATES.get(may_be.trailing_zeros() as usize).copied()
}

impl Inference {
    /// Adds a value that is not null.
    pub fn add(&mut self, text: &[u8]) {
        self.has_values = true;
        self.may_be = narrowed(self.may_be, text, false);
    }

    /// Adds a value that its input marks as text, in which digits are no number. It may be a date or a timestamp.
    pub fn add_quoted(&mut self, text: &[u8]) {
        self.has_values = true;
        self.may_be = narrowed(self.may_be, text, true);
    }

    /// Adds a list in JSON.
    pub fn add_list(&mut self, text: &[u8]) {
        // A list next to other values makes them text.
        self.may_be = 0;
        let Some(items) = items_of(text) else {
            self.item_kinds |= NESTED_ITEMS;
            return;
        };
        for item in items.iter().filter(|item| !item.is_null()) {
            self.item_kinds |= if item.is_quoted { QUOTED_ITEMS } else { BARE_ITEMS };
            self.items_may_be = narrowed(self.items_may_be, item.text.as_bytes(), item.is_quoted);
        }
    }

    /// Adds all values that another inference has seen.
    pub fn join(&mut self, other: Self) {
        self.has_values |= other.has_values;
        self.may_be &= other.may_be;
        self.items_may_be &= other.items_may_be;
        self.item_kinds |= other.item_kinds;
    }

    /// The inferred type.
    pub fn property_type(&self) -> PropertyType {
        let found = match (self.has_values, self.item_kinds) {
            (true, _) => first_candidate(self.may_be),
            // Texts without another type are strings, but numbers without one are no items of a list.
            (false, QUOTED_ITEMS) => {
                first_candidate(self.items_may_be).or(Some(PropertyType::String)).and_then(PropertyType::list)
            }
            (false, BARE_ITEMS) => first_candidate(self.items_may_be).and_then(PropertyType::list),
            // Without values, and without items, every candidate is left.
            (false, _) => None,
        };
        found.unwrap_or(PropertyType::String)
    }
}

/// Whether parsing a text as the type loses nothing.
fn is_lossless(text: &[u8], candidate: PropertyType) -> bool {
    let is_number = matches!(candidate, PropertyType::I64 | PropertyType::U64 | PropertyType::F64);
    if is_number {
        let (digits, is_negative) = text.strip_prefix(b"-").map_or((text, false), |digits| (digits, true));
        let num_digits = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        // `007` may be a code, and a number would print without its zeros.
        let has_zeros = num_digits > 1 && digits[0] == b'0';
        if text.first() == Some(&b'+') || has_zeros {
            return false;
        }
        if num_digits == digits.len() && num_digits > 0 {
            // In an integer, the sign and each digit count.
            let Some(size) = ascii(digits).and_then(|digits| digits.parse::<u64>().ok()) else { return false };
            let most = match candidate {
                PropertyType::F64 => EXACT_IN_F64,
                PropertyType::U64 if is_negative => 0,
                PropertyType::U64 => u64::MAX,
                _ => i64::MAX as u64 + u64::from(is_negative),
            };
            // An integer cannot hold the sign of -0.
            return size <= most && !(is_negative && size == 0);
        }
    }
    parse(text, candidate).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, property_type: PropertyType) -> Option<String> {
        parse(text.as_bytes(), property_type).map(|parsed| match parsed {
            ParsedValue::Value(value) => value.to_string(),
            ParsedValue::Decoded(bytes) => PropertyValue::Bytes(&bytes).to_string(),
            ParsedValue::List(text) => text,
        })
    }

    #[test]
    fn text_comes_back() {
        let values = [
            PropertyValue::Boolean(true),
            PropertyValue::Boolean(false),
            PropertyValue::I64(i64::MIN),
            PropertyValue::I64(i64::MAX),
            PropertyValue::U64(u64::MAX),
            PropertyValue::F32(0.1),
            PropertyValue::F32(f32::MIN_POSITIVE),
            PropertyValue::F32(f32::INFINITY),
            PropertyValue::Date(i32::MIN),
            PropertyValue::Date(0),
            PropertyValue::Date(i32::MAX),
            PropertyValue::Timestamp(i64::MIN),
            PropertyValue::Timestamp(-1),
            PropertyValue::Timestamp(1_500_000),
            PropertyValue::Timestamp(i64::MAX),
            PropertyValue::String("a,\"b\"\nü"),
            PropertyValue::Bytes(&[0, 255, 16]),
            PropertyValue::Bytes(&[]),
        ];
        let numbers =
            [0.0, -0.0, 1.0, -1.5, 0.1, 1e300, 5e-324, 1e16, 123_456_789.125, f64::INFINITY, f64::NEG_INFINITY];
        for value in values.into_iter().chain(numbers.map(PropertyValue::F64)) {
            let text = value.to_string();
            let property_type = value.property_type().unwrap();
            match parse(text.as_bytes(), property_type) {
                Some(ParsedValue::Value(found)) => assert_eq!(found, value, "{text}"),
                Some(ParsedValue::Decoded(found)) => assert_eq!(PropertyValue::Bytes(&found), value, "{text}"),
                Some(ParsedValue::List(found)) => panic!("{text} is {found}"),
                None => panic!("{text} is no {property_type}"),
            }
        }
        assert_eq!(PropertyValue::Timestamp(1_500_000).to_string(), "1970-01-01T00:00:01.5Z");
        assert_eq!(PropertyValue::F64(2.0).to_string(), "2.0");
        assert_eq!(parsed("nan", PropertyType::F64).as_deref(), Some("NaN"));
    }

    #[test]
    fn wrong_text_is_no_value() {
        for (text, property_type) in [
            ("yes", PropertyType::Boolean),
            ("1.5", PropertyType::I64),
            ("9223372036854775808", PropertyType::I64),
            ("", PropertyType::I64),
            ("-1", PropertyType::U64),
            ("18446744073709551616", PropertyType::U64),
            ("1e39", PropertyType::F32),
            ("1,5", PropertyType::F64),
            ("1e400", PropertyType::F64),
            ("2024-02-30", PropertyType::Date),
            ("noon", PropertyType::Timestamp),
            ("0x123", PropertyType::Bytes),
            ("0xzz", PropertyType::Bytes),
            ("ff", PropertyType::Bytes),
        ] {
            assert_eq!(parsed(text, property_type), None, "{text} as {property_type}");
        }
        assert!(parse(b"\xff", PropertyType::String).is_none());
    }

    #[test]
    fn digits_of_a_text_are_no_number() {
        let inferred = |values: &[(&str, bool)]| {
            let mut inference = Inference::default();
            for (value, is_quoted) in values {
                match is_quoted {
                    true => inference.add_quoted(value.as_bytes()),
                    false => inference.add(value.as_bytes()),
                }
            }
            inference.property_type().name()
        };
        assert_eq!(inferred(&[("1", false)]), "i64");
        assert_eq!(inferred(&[("1", true)]), "string");
        assert_eq!(inferred(&[("1", false), ("2", true)]), "string");
        assert_eq!(inferred(&[("true", true)]), "string");
        assert_eq!(inferred(&[("2024-02-29", true)]), "date");
        assert_eq!(inferred(&[("2024-02-29", true), ("2024-02-29T10:00Z", false)]), "timestamp");
    }

    #[test]
    fn lists_have_the_type_of_their_items() {
        let inferred = |lists: &[&str]| {
            let mut inference = Inference::default();
            lists.iter().for_each(|list| inference.add_list(list.as_bytes()));
            inference
        };
        for (lists, expected) in [
            (&[r#"["a"]"#, "[]", r#"["1","b"]"#][..], "string[]"),
            (&["[1]", "[2,null]"], "i64[]"),
            (&["[1]", "[2.5]"], "f64[]"),
            (&["[true]"], "boolean[]"),
            (&[r#"["2024-02-29"]"#], "date[]"),
            (&[r#"["2024-02-29"]"#, r#"["x"]"#], "string[]"),
            (&["[]", "[null]"], "string"),
            (&["[1]", r#"["a"]"#], "string"),
            (&["[1,true]"], "string"),
            (&["[[1]]"], "string"),
            (&["[1]", r#"{"a":1}"#], "string"),
        ] {
            assert_eq!(inferred(lists).property_type().name(), expected, "{lists:?}");
        }
        let mut mixed = inferred(&["[1]"]);
        mixed.add(b"1");
        assert_eq!(mixed.property_type().name(), "string");
        let (mut joined, mut empty) = (inferred(&["[1]"]), Inference::default());
        joined.join(inferred(&["[2.5]"]));
        empty.join(joined);
        assert_eq!(empty.property_type().name(), "f64[]");
    }

    #[test]
    fn the_narrowest_type_that_loses_nothing() {
        let inferred = |values: &[&str]| {
            let mut inference = Inference::default();
            values.iter().for_each(|value| inference.add(value.as_bytes()));
            inference.property_type().name()
        };
        assert_eq!(inferred(&[]), "string");
        assert_eq!(inferred(&["true", "False"]), "boolean");
        assert_eq!(inferred(&["1", "-2", "0"]), "i64");
        assert_eq!(inferred(&["1", "2.5", "1e3", "NaN"]), "f64");
        assert_eq!(inferred(&["9007199254740993"]), "i64");
        assert_eq!(inferred(&["-9223372036854775808"]), "i64");
        assert_eq!(inferred(&["-9223372036854775809"]), "string");
        assert_eq!(inferred(&["inf", "1e308"]), "f64");
        assert_eq!(inferred(&["0.5", "1e400"]), "string");
        assert_eq!(inferred(&["9007199254740993", "0.5"]), "string");
        assert_eq!(inferred(&["18446744073709551615", "0"]), "u64");
        assert_eq!(inferred(&["18446744073709551615", "-1"]), "string");
        assert_eq!(inferred(&["18446744073709551616"]), "string");
        assert_eq!(inferred(&["007"]), "string");
        assert_eq!(inferred(&["-0"]), "string");
        assert_eq!(inferred(&["+1"]), "string");
        assert_eq!(inferred(&["00.5"]), "string");
        assert_eq!(inferred(&["2024-02-29", "2024-03-01"]), "date");
        assert_eq!(inferred(&["2024-02-29", "2024-03-01T10:00"]), "timestamp");
        assert_eq!(inferred(&["2024-02-29T10:00:00.1234567Z"]), "string");
        assert_eq!(inferred(&["1", "true"]), "string");
        assert_eq!(inferred(&["0x00"]), "string");
    }
}
