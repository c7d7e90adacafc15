//! Lists of values as text: the JSON of a list whose items have one type, or are null.

use std::borrow::Cow;
use std::io::Write;

use super::{OwnedValue, PropertyType, PropertyValue};

/// The types of the items of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ItemType {
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
}

impl ItemType {
    /// All types with the type of one item, the name of the type of lists, and the text form of a list for messages.
    const ALL: [(Self, PropertyType, &'static str, &'static str); 8] = [
        (Self::Boolean, PropertyType::Boolean, "boolean[]", "a list of booleans such as [true,false]"),
        (Self::I64, PropertyType::I64, "i64[]", "a list of whole numbers of type i64 such as [1,2]"),
        (Self::U64, PropertyType::U64, "u64[]", "a list of whole numbers of type u64 such as [1,2]"),
        (Self::F32, PropertyType::F32, "f32[]", "a list of numbers of type f32 such as [0.5,1.0]"),
        (Self::F64, PropertyType::F64, "f64[]", "a list of numbers of type f64 such as [0.5,1.0]"),
        (Self::Date, PropertyType::Date, "date[]", "a list of dates such as [\"2024-02-29\"]"),
        (Self::Timestamp, PropertyType::Timestamp, "timestamp[]", "a list such as [\"2024-02-29T12:30:00Z\"]"),
        (Self::String, PropertyType::String, "string[]", "a list of texts such as [\"a\",\"b\"]"),
    ];

    fn entry(self) -> (Self, PropertyType, &'static str, &'static str) {
        Self::ALL[self as usize]
    }

    /// The type of one item.
    pub fn property_type(self) -> PropertyType {
        self.entry().1
    }

    pub(super) fn list_name(self) -> &'static str {
        self.entry().2
    }

    pub(super) fn text_form(self) -> &'static str {
        self.entry().3
    }
}

impl PropertyType {
    /// The type of lists whose items have this type; `None` for lists and bytes, which are no items.
    pub fn list(self) -> Option<Self> {
        ItemType::ALL.iter().find(|(_, found, ..)| *found == self).map(|&(item, ..)| Self::List(item))
    }

    /// The type of the items, if this is a type of lists.
    pub fn items(self) -> Option<ItemType> {
        match self {
            Self::List(item) => Some(item),
            _ => None,
        }
    }

    /// The type of the stored values: a list is stored as the text of its JSON.
    pub fn stored(self) -> Self {
        if self.items().is_some() { Self::String } else { self }
    }
}

/// The items of a list in JSON; `None` if the text is no list, or an item has another type. An item may be null.
pub fn parse_list(text: &[u8], item_type: ItemType) -> Option<Vec<OwnedValue>> {
    let property_type = item_type.property_type();
    let item = |item: JsonItem<'_>| {
        if item.is_null() {
            return Some(OwnedValue::Null);
        }
        let value = OwnedValue::parse(&item.text, property_type).ok()?;
        (is_text(value.as_value()) == item.is_quoted).then_some(value)
    };
    items_of(text)?.into_iter().map(item).collect()
}

/// Appends items as a list in JSON. Each value has one text in a list, so that equal lists have equal texts.
pub fn push_list<'a>(items: impl IntoIterator<Item = PropertyValue<'a>>, text: &mut Vec<u8>) {
    text.push(b'[');
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            text.push(b',');
        }
        push_json_value(item, text);
    }
    text.push(b']');
}

/// The JSON that [`push_list`] writes for the items of a list in JSON; `None` as in [`parse_list`].
pub(super) fn canonical_list(text: &[u8], item_type: ItemType) -> Option<String> {
    let items = parse_list(text, item_type)?;
    let mut canonical = Vec::with_capacity(text.len());
    push_list(items.iter().map(OwnedValue::as_value), &mut canonical);
    String::from_utf8(canonical).ok()
}

/// Whether a value is a text in JSON.
fn is_text(value: PropertyValue<'_>) -> bool {
    match value {
        // JSON has no other numbers.
        PropertyValue::F32(number) => !number.is_finite(),
        PropertyValue::F64(number) => !number.is_finite(),
        PropertyValue::Null | PropertyValue::Boolean(_) | PropertyValue::I64(_) | PropertyValue::U64(_) => false,
        _ => true,
    }
}

/// Appends a value as JSON. Dates, timestamps and bytes are texts, as are numbers that JSON lacks.
pub fn push_json_value(value: PropertyValue<'_>, to: &mut Vec<u8>) {
    if value.is_null() {
        return to.extend_from_slice(b"null");
    }
    let mut text = value.to_string();
    if !is_text(value) {
        return to.extend_from_slice(text.as_bytes());
    }
    if text == "NaN" && value.property_type().is_some_and(PropertyType::is_numeric) {
        text = "nan".into();
    }
    push_json_text(&text, to);
}

/// Appends a text in quotes, with the escapes of JSON.
pub fn push_json_text(text: &str, to: &mut Vec<u8>) {
    to.push(b'"');
    for character in text.chars() {
        // A write to memory cannot fail.
        let _ = match character {
            '"' | '\\' => write!(to, "\\{character}"),
            '\0'..='\x1f' | '\x7f' => write!(to, "\\u{:04x}", character as u32),
            _ => write!(to, "{character}"),
        };
    }
    to.push(b'"');
}

/// An item of a list in JSON.
pub(super) struct JsonItem<'a> {
    /// The text, without quotes and escapes.
    pub(super) text: Cow<'a, str>,
    pub(super) is_quoted: bool,
}

impl JsonItem<'_> {
    pub(super) fn is_null(&self) -> bool {
        !self.is_quoted && self.text == "null"
    }
}

/// The items of a list in JSON; `None` if the text is no list, or holds a list or an object.
pub(super) fn items_of(text: &[u8]) -> Option<Vec<JsonItem<'_>>> {
    let text = std::str::from_utf8(text).ok()?.trim_ascii();
    let mut rest = text.strip_prefix('[')?.strip_suffix(']')?.trim_ascii();
    let mut items = Vec::new();
    while !rest.is_empty() {
        if !items.is_empty() {
            rest = rest.strip_prefix(',')?.trim_ascii_start();
        }
        let (item, behind) = first_item(rest)?;
        items.push(item);
        rest = behind.trim_ascii_start();
    }
    Some(items)
}

/// The first item of a text, and the rest.
fn first_item(text: &str) -> Option<(JsonItem<'_>, &str)> {
    if let Some(body) = text.strip_prefix('"') {
        let (text, rest) = unescaped(body)?;
        return Some((JsonItem { text, is_quoted: true }, rest));
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
    let (word, rest) = text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()));
    // Numbers begin so. Other words, such as `inf`, are no JSON.
    let is_number = word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    let is_item = is_number || matches!(word, "true" | "false" | "null");
    is_item.then_some((JsonItem { text: word.into(), is_quoted: false }, rest))
}

/// The text up to the next quote without its escapes, and the rest behind the quote.
fn unescaped(mut rest: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut text = Cow::Borrowed("");
    loop {
        let (part, behind) = rest.split_at(rest.find(['"', '\\'])?);
        if text.is_empty() {
            text = part.into();
        } else {
            text.to_mut().push_str(part);
        }
        if let Some(rest) = behind.strip_prefix('"') {
            return Some((text, rest));
        }
        rest = &behind[1..];
        text.to_mut().push(escaped(&mut rest)?);
    }
}

/// The character of an escape. `rest` begins behind the backslash, and then behind the escape.
fn escaped(rest: &mut &str) -> Option<char> {
    let mut characters = rest.chars();
    let mark = characters.next()?;
    *rest = characters.as_str();
    Some(match mark {
        '"' | '\\' | '/' => mark,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => {
            let high = code_unit(rest)?;
            if !(0xd800..0xdc00).contains(&high) {
                return char::from_u32(high);
            }
            // Two units stand for a character beyond 16 bits.
            *rest = rest.strip_prefix("\\u")?;
            let low = code_unit(rest)?.checked_sub(0xdc00).filter(|&low| low < 0x400)?;
            return char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + low);
        }
        _ => return None,
    })
}

fn code_unit(rest: &mut &str) -> Option<u32> {
    let (digits, behind) = rest.split_at_checked(4)?;
    *rest = behind;
    // `from_str_radix` alone takes a sign.
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str, name: &str) -> Option<String> {
        canonical_list(text.as_bytes(), PropertyType::of_name(name)?.items()?)
    }

    #[test]
    fn lists_have_one_text() {
        for (text, name, expected) in [
            ("[]", "string[]", "[]"),
            (" [ ] ", "i64[]", "[]"),
            (r#"["a", "b"]"#, "string[]", r#"["a","b"]"#),
            (r#"["\u00e9\n\/\"\\", "\ud83d\ude00", "a;b", ""]"#, "string[]", r#"["é\u000a/\"\\","😀","a;b",""]"#),
            ("[1,-2 , null]", "i64[]", "[1,-2,null]"),
            ("[18446744073709551615]", "u64[]", "[18446744073709551615]"),
            (r#"[1,2.50,1e300,"inf","NaN"]"#, "f64[]", r#"[1.0,2.5,1e300,"inf","nan"]"#),
            ("[0.1]", "f32[]", "[0.1]"),
            ("[true,false]", "bool[]", "[true,false]"),
            (r#"["2024-02-29"]"#, "date[]", r#"["2024-02-29"]"#),
            (r#"["2024-02-29T01:00+01:00"]"#, "timestamp[]", r#"["2024-02-29T00:00:00Z"]"#),
            (r#"["NaN"]"#, "string[]", r#"["NaN"]"#),
        ] {
            assert_eq!(canonical(text, name).as_deref(), Some(expected), "{text}");
            assert_eq!(canonical(expected, name).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_lists() {
        for (text, name) in [
            ("", "string[]"),
            ("a", "string[]"),
            ("[", "string[]"),
            ("[a]", "string[]"),
            ("[1]", "string[]"),
            ("[\"a\"", "string[]"),
            ("[\"a]", "string[]"),
            ("[\"a\" \"b\"]", "string[]"),
            ("[\"a\",]", "string[]"),
            ("[,\"a\"]", "string[]"),
            (r#"["\x"]"#, "string[]"),
            (r#"["\u12"]"#, "string[]"),
            (r#"["\ud800"]"#, "string[]"),
            ("[[\"a\"]]", "string[]"),
            ("[\"1\"]", "i64[]"),
            ("[1.5]", "i64[]"),
            ("[-1]", "u64[]"),
            ("[1e400]", "f64[]"),
            ("[\"0.5\"]", "f64[]"),
            ("[inf]", "f64[]"),
            ("[-inf]", "f64[]"),
            ("[1]", "bool[]"),
            ("[2024]", "date[]"),
            ("[\"2024-02-30\"]", "date[]"),
        ] {
            assert_eq!(canonical(text, name), None, "{text} as {name}");
        }
        assert!(parse_list(b"[\"\xff\"]", ItemType::String).is_none());
    }

    #[test]
    fn types_of_lists_go_by_their_items() {
        for (item, property_type, name, _) in ItemType::ALL {
            assert_eq!((item.property_type(), property_type.list()), (property_type, Some(PropertyType::List(item))));
            assert_eq!(PropertyType::of_name(name), Some(PropertyType::List(item)));
            assert_eq!((PropertyType::List(item).name(), name.strip_suffix("[]")), (name, Some(property_type.name())));
            assert_eq!(PropertyType::List(item).stored(), PropertyType::String);
        }
        assert_eq!(PropertyType::of_name("Long[]"), Some(PropertyType::List(ItemType::I64)));
        for name in ["bytes[]", "string[][]", "[]", "x[]"] {
            assert_eq!(PropertyType::of_name(name), None, "{name}");
        }
    }
}
