//! Keys and results, formatted as text and as JSON.

use std::fmt::Write;

use anden::job::{Value, Values};
use anden::property::{KeyRef, NamedValues, OwnedValue, PropertyType, PropertyValue};
use anden::{EdgeWeight, Key};
use anden_formats::push_update_column;
use serde_json::json;

use crate::console::{count, real};

/// Graphalytics writes this distance for an unreached vertex.
const UNREACHED_HOPS: u64 = i64::MAX as u64;
const UNREACHED_DISTANCE: &str = "infinity";
/// Written for a vertex without a parent.
const NO_VERTEX: &str = "-1";

/// A key as JSON: a number or a string.
pub fn key_json(key: &Key) -> serde_json::Value {
    match key {
        Key::Integer(key) => json!(key),
        Key::String(key) => json!(key),
    }
}

/// Keys as a JSON list.
pub fn keys_json(keys: &[Key]) -> serde_json::Value {
    keys.iter().map(key_json).collect()
}

/// A number as JSON. Infinities and NaN become strings, because null means no value.
pub fn real_json(value: f64) -> serde_json::Value {
    match value {
        f64::INFINITY => json!("inf"),
        f64::NEG_INFINITY => json!("-inf"),
        value if value.is_nan() => json!("nan"),
        value => json!(value),
    }
}

/// The weight of an edge as JSON.
pub fn weight_json(weight: &EdgeWeight) -> serde_json::Value {
    match weight {
        EdgeWeight::Integer(weight) => json!(weight),
        EdgeWeight::Real(weight) => real_json(*weight),
    }
}

/// A value of a property of this type as JSON: dates, timestamps and bytes as text. Without a type,
/// a list is its text.
pub fn property_json(value: &PropertyValue<'_>, property_type: Option<PropertyType>) -> serde_json::Value {
    match value {
        PropertyValue::String(list) if matches!(property_type, Some(PropertyType::List(_))) => {
            serde_json::from_str(list).unwrap_or_else(|_| json!(list))
        }
        PropertyValue::Null => serde_json::Value::Null,
        PropertyValue::Boolean(value) => json!(value),
        PropertyValue::I64(value) => json!(value),
        PropertyValue::U64(value) => json!(value),
        // Through the shortest text: 0.1, not 0.10000000149011612.
        PropertyValue::F32(value) => real_json(value.to_string().parse().unwrap_or_else(|_| f64::from(*value))),
        PropertyValue::F64(value) => real_json(*value),
        PropertyValue::String(value) => json!(value),
        other => json!(other.to_string()),
    }
}

/// Copies of values, with the types of their properties.
pub fn owned_properties(
    values: NamedValues<'_>,
    type_of: impl Fn(&str) -> Option<PropertyType>,
) -> Vec<(String, OwnedValue)> {
    let owned = |(name, value): (&str, PropertyValue<'_>)| {
        let value = type_of(name).map_or_else(|| value.into(), |property_type| OwnedValue::of(value, property_type));
        (name.to_owned(), value)
    };
    values.into_iter().map(owned).collect()
}

/// Properties as a JSON object.
pub fn properties_json(properties: &[(String, OwnedValue)]) -> serde_json::Value {
    let value = |value: &OwnedValue| property_json(&value.as_value(), value.property_type());
    let object: serde_json::Map<_, _> = properties.iter().map(|(name, of)| (name.clone(), value(of))).collect();
    object.into()
}

/// A summary figure as JSON.
pub fn value_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Integer(number) => json!(number),
        // An empty sum is -0.0; adding 0.0 makes it 0.0.
        Value::Real(number) => real_json(*number + 0.0),
        Value::Key(key) => key_json(key),
        Value::Keys(keys) => keys_json(keys),
        Value::Ranking(ranking) => {
            ranking.iter().map(|(key, score)| json!([key_json(key), real_json(*score)])).collect()
        }
        Value::Counts(counts) => counts.iter().map(|(key, count)| json!([key_json(key), count])).collect(),
    }
}

/// A summary figure as text. Rankings have tables of their own.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::Integer(number) => count(*number),
        Value::Real(number) => real(*number + 0.0),
        Value::Key(key) => key_text(key),
        Value::Keys(keys) => keys_text(keys),
        Value::Ranking(ranking) => ranking.iter().map(|(key, _)| key_text(key)).collect::<Vec<_>>().join(", "),
        Value::Counts(counts) => counts.iter().map(|(key, _)| key_text(key)).collect::<Vec<_>>().join(", "),
    }
}

/// The first keys, and the number of further ones.
pub fn keys_text(keys: &[Key]) -> String {
    const SHOWN: usize = 20;
    let shown = keys.iter().take(SHOWN).map(key_text).collect::<Vec<_>>().join(", ");
    match keys.len() {
        ..=SHOWN => shown,
        len => format!("{shown} and {} more", count((len - SHOWN) as u64)),
    }
}

/// A key as text, as [`push_key`] writes it.
pub fn key_text(key: &Key) -> String {
    let mut text = String::new();
    match key {
        Key::Integer(number) => push(&mut text, number),
        Key::String(key) => push_key(&mut text, KeyRef::String(key)),
    }
    text
}

/// Appends a key. Quotes it, as `diff` does, if the key would not be one column or would read as [`NO_VERTEX`].
pub fn push_key(line: &mut String, key: KeyRef<'_>) {
    match key {
        KeyRef::Integer(number) => push(line, number),
        KeyRef::String(NO_VERTEX) => push(line, format_args!("\"{NO_VERTEX}\"")),
        KeyRef::String(text) => push_update_column(line, text),
    }
}

fn push(line: &mut String, shown: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = write!(line, "{shown}");
}

/// Appends the value of a vertex as Graphalytics writes it. `key` returns the keys of vertices.
pub fn push_value<'a, E>(
    line: &mut String,
    values: &Values<'_>,
    vertex: usize,
    key: impl Fn(u32) -> Result<KeyRef<'a>, E>,
) -> Result<(), E> {
    match values {
        Values::Hops(hops) if hops[vertex] == u32::MAX => push(line, UNREACHED_HOPS),
        Values::Hops(hops) => push(line, hops[vertex]),
        Values::Vertices(vertices) if vertices[vertex] == u32::MAX => push(line, NO_VERTEX),
        // These values are ids, which mean nothing outside the database.
        Values::Vertices(vertices) => push_key(line, key(vertices[vertex])?),
        Values::Numbers(numbers) => push(line, numbers[vertex]),
        Values::Counts(counts) => push(line, counts[vertex]),
        Values::Distances(distances) if distances[vertex] == u64::MAX => push(line, UNREACHED_DISTANCE),
        Values::Distances(distances) => push(line, distances[vertex]),
        Values::Reals(reals) if reals[vertex] == f64::INFINITY => push(line, UNREACHED_DISTANCE),
        Values::Reals(reals) => push(line, reals[vertex]),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn written(values: &Values<'_>) -> Vec<String> {
        let text = |vertex| {
            let mut line = String::new();
            let key = |v| Ok::<_, Infallible>(KeyRef::Integer(u64::from(v) * 10));
            push_value(&mut line, values, vertex, key).unwrap();
            line
        };
        (0..2).map(text).collect()
    }

    #[test]
    fn values_follow_graphalytics() {
        assert_eq!(written(&Values::Hops(vec![3, u32::MAX].into())), ["3", "9223372036854775807"]);
        assert_eq!(written(&Values::Vertices(vec![7, u32::MAX].into())), ["70", "-1"]);
        assert_eq!(written(&Values::Distances(vec![12, u64::MAX].into())), ["12", "infinity"]);
        assert_eq!(written(&Values::Reals(vec![0.5, f64::INFINITY].into())), ["0.5", "infinity"]);
    }

    #[test]
    fn keys_are_one_column() {
        let quoted = ["-1", "new\nline", "a b", ""].map(|key| key_text(&key.into()));
        assert_eq!(quoted, [r#""-1""#, r#""new\nline""#, r#""a b""#, r#""""#]);
        assert_eq!(["-2", "a"].map(|key| key_text(&key.into())), ["-2", "a"]);
    }

    #[test]
    fn infinity_is_no_json() {
        let found = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(|number| value_json(&Value::Real(number)));
        assert_eq!(found, ["inf", "-inf", "nan"]);
        assert_eq!(value_json(&Value::Real(-0.0)).to_string(), "0.0");
        assert_eq!(value_json(&Value::Ranking(vec![("a".into(), 0.5)])), json!([["a", 0.5]]));
    }
}
