//! Objects of JSON: their members, and the text of a value.

use std::borrow::Cow;
use std::fmt;

use anden_base::message::shown;
use anden_graph::Weight;
use anden_graph::property::push_json_text;
use serde_core::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A member of one object.
pub(crate) type JsonMember<'a> = (Cow<'a, str>, &'a RawValue);

/// Appends the members of the object in a text.
///
/// # Errors
/// The text is no object.
pub(crate) fn read_members<'a>(line: &'a [u8], members: &mut Vec<JsonMember<'a>>) -> Result<(), String> {
    let mut json = serde_json::Deserializer::from_slice(line);
    // A second object on the line would otherwise be lost without notice.
    let read = MemberVisitor(members).deserialize(&mut json).and_then(|()| json.end());
    read.map_err(|error| {
        // The line number of the error counts within this line.
        let error = error.to_string();
        let what = error.split(" at line ").next().unwrap_or_default();
        format!("expected an object in JSON, found {}: {what}", shown(line.trim_ascii()))
    })
}

/// Takes the members of an object in their order, without a copy of their text.
struct MemberVisitor<'a, 'v>(&'v mut Vec<JsonMember<'a>>);

impl<'a> DeserializeSeed<'a> for MemberVisitor<'a, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for MemberVisitor<'a, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(NameVisitor)? {
            self.0.push((name, map.next_value()?));
        }
        Ok(())
    }
}

/// Takes the name of a member, borrowed unless it has escapes.
struct NameVisitor;

impl<'a> DeserializeSeed<'a> for NameVisitor {
    type Value = Cow<'a, str>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Cow<'a, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'a> for NameVisitor {
    type Value = Cow<'a, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, name: &'a str) -> Result<Cow<'a, str>, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Cow<'a, str>, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

/// The text of a value: of a string without its quotes, of a nested value its JSON. `None` for null.
///
/// # Errors
/// A string has an escape that is no character.
pub(crate) fn text_of(value: &RawValue) -> Result<Option<Cow<'_, str>>, String> {
    let json = value.get();
    match json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        // Most strings have no escapes, so their text is that between the quotes.
        Some(text) if !text.contains('\\') => Ok(Some(text.into())),
        Some(_) => match serde_json::from_str::<String>(json) {
            Ok(text) => Ok(Some(text.into())),
            Err(_) => Err(format!("expected a text of characters, found {}", shown(json.as_bytes()))),
        },
        None => Ok((json != "null").then(|| json.into())),
    }
}

/// Appends a weight as JSON.
pub(crate) fn push_json_weight<W: Weight>(weight: W, line: &mut Vec<u8>) {
    // The form of `Debug` keeps floats apart from integers, and large ones short.
    let text = format!("{weight:?}");
    match text.ends_with(|end: char| end.is_ascii_digit()) {
        true => line.extend_from_slice(text.as_bytes()),
        // JSON has no infinity.
        false => push_json_text(&text, line),
    }
}
