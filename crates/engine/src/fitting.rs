//! Converts keys and weights of a program to those of a graph, and finds common types of values.

use std::fmt;

use anden_graph::property::PropertyType;
use anden_graph::{Weight, WeightType};
use anden_snapshots::{GraphOptions, Key, KeyScheme};

use crate::{Error, Result};

/// The longest string key, as in input files.
const MAX_KEY_BYTES: usize = u16::MAX as usize;

/// The weight of an edge, before conversion to the graph's type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EdgeWeight {
    /// An integer; fits every type whose range contains it.
    Integer(i64),
    /// A real number; fits graphs with floating-point weights.
    Real(f64),
}

impl fmt::Display for EdgeWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(weight) => weight.fmt(f),
            Self::Real(weight) => weight.fmt(f),
        }
    }
}

impl From<u32> for EdgeWeight {
    fn from(weight: u32) -> Self {
        Self::Integer(weight.into())
    }
}

impl From<i32> for EdgeWeight {
    fn from(weight: i32) -> Self {
        Self::Integer(weight.into())
    }
}

impl From<i64> for EdgeWeight {
    fn from(weight: i64) -> Self {
        Self::Integer(weight)
    }
}

impl From<f32> for EdgeWeight {
    fn from(weight: f32) -> Self {
        Self::Real(weight.into())
    }
}

impl From<f64> for EdgeWeight {
    fn from(weight: f64) -> Self {
        Self::Real(weight)
    }
}

impl EdgeWeight {
    /// The weight that has these bits in a graph.
    pub(crate) fn of_bits(bits: u64, weight_type: WeightType) -> Self {
        match weight_type {
            WeightType::U32 => Self::Integer(u32::of_bits(bits).into()),
            WeightType::I64 => Self::Integer(i64::of_bits(bits)),
            WeightType::F32 => Self::Real(f32::of_bits(bits).into()),
            WeightType::F64 => Self::Real(f64::of_bits(bits)),
        }
    }

    /// The weight in the type of a graph, as bits.
    fn bits(self, weight_type: WeightType) -> Option<u64> {
        match (weight_type, self) {
            (WeightType::U32, Self::Integer(weight)) => u32::try_from(weight).ok().map(Weight::bits),
            (WeightType::I64, Self::Integer(weight)) => Some(weight.bits()),
            (WeightType::U32 | WeightType::I64, Self::Real(_)) => None,
            // An integer always fits: no `i64` is beyond the range of an `f32`, which only rounds it.
            (WeightType::F32, Self::Integer(weight)) => Some((weight as f32).bits()),
            (WeightType::F64, Self::Integer(weight)) => Some((weight as f64).bits()),
            (WeightType::F32, Self::Real(weight)) => {
                // Rounding must not turn a finite weight into infinity.
                let is_too_large = weight.is_finite() && !(weight as f32).is_finite();
                Some(weight as f32).filter(|weight| !is_too_large && weight.is_accepted()).map(Weight::bits)
            }
            (WeightType::F64, Self::Real(weight)) => {
                Some(weight).filter(|weight| weight.is_accepted()).map(Weight::bits)
            }
        }
    }
}

/// The weight of an edge as bits; 0 without weights.
///
/// # Errors
/// Only one of graph and edge has weights, or the weight does not fit the graph's type.
pub(crate) fn weight_bits(ends: (&Key, &Key), weight: Option<EdgeWeight>, options: &GraphOptions) -> Result<u64> {
    let wrong = |reason: String| Err(Error::invalid_edge(ends, reason));
    match (options.weight_type, weight) {
        (None, None) => Ok(0),
        (None, Some(given)) => {
            wrong(format!("weight {given} is given, and the graph has no weights: it was loaded without --weights"))
        }
        (Some(_), None) => wrong("no weight is given, and the graph has weights: it was loaded with --weights".into()),
        (Some(weight_type), Some(weight)) => match weight.bits(weight_type) {
            Some(bits) => Ok(bits),
            None => {
                let range =
                    if matches!(weight_type, WeightType::F32 | WeightType::F64) { "numbers or +∞ " } else { "" };
                let of = weight_type.name();
                wrong(format!(
                    "weight {weight} does not fit: the graph's are {range}of type {of}, the --weight-type of its load"
                ))
            }
        },
    }
}

/// Text as an integer key, in the syntax of inputs: digits without a sign.
pub fn integer_key(text: &str) -> Option<u64> {
    // `parse` alone accepts a plus sign.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// A key in the graph's key scheme; converts between a number and its text.
///
/// # Errors
/// The key does not fit the scheme.
pub(crate) fn fitting_key(key: &Key, scheme: KeyScheme) -> Result<Key> {
    let wrong = || {
        let scheme = scheme_name(scheme);
        let reason = format!("the graph has {scheme} ids; text is a key after a load with --ids string");
        Err(Error::invalid_vertex(key, reason))
    };
    match (scheme, key) {
        (KeyScheme::String, Key::String(text)) if text.len() > MAX_KEY_BYTES => {
            Err(Error::invalid_vertex(key, format!("a key has at most {MAX_KEY_BYTES} bytes, found {}", text.len())))
        }
        (KeyScheme::String, Key::String(_)) => Ok(key.clone()),
        // In a graph with string keys, `7` and `"7"` name one vertex.
        (KeyScheme::String, Key::Integer(number)) => Ok(Key::String(number.to_string())),
        (KeyScheme::Integer | KeyScheme::Dense, Key::Integer(_)) => Ok(key.clone()),
        (KeyScheme::Integer | KeyScheme::Dense, Key::String(text)) => {
            integer_key(text).map_or_else(wrong, |number| Ok(Key::Integer(number)))
        }
    }
}

/// The name of a key scheme, as in options.
pub(crate) fn scheme_name(keys: KeyScheme) -> &'static str {
    match keys {
        KeyScheme::Integer => "integer",
        KeyScheme::String => "string",
        KeyScheme::Dense => "dense",
    }
}

/// The type that holds values of all these types; types that do not join are ignored.
pub(crate) fn joined_type(mut types: impl Iterator<Item = PropertyType>) -> Option<PropertyType> {
    let first = types.next()?;
    Some(types.fold(first, |joined, next| joined.joined(next).unwrap_or(joined)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_take_the_type_of_the_graph() {
        let graph = |weight_type| GraphOptions { weight_type, ..GraphOptions::default() };
        let bits = |weight: Option<EdgeWeight>, weight_type| {
            weight_bits((&"a".into(), &"b".into()), weight, &graph(weight_type)).map_err(|error| error.to_string())
        };
        assert_eq!(bits(None, None), Ok(0));
        assert_eq!(bits(Some(7_u32.into()), Some(WeightType::U32)), Ok(7));
        assert_eq!(bits(Some((-1_i64).into()), Some(WeightType::I64)), Ok(u64::MAX));
        assert_eq!(bits(Some(0.5_f32.into()), Some(WeightType::F32)), Ok(0.5_f32.bits()));
        assert_eq!(bits(Some(3.into()), Some(WeightType::F64)), Ok(3.0_f64.bits()));
        for (weight, weight_type, what) in [
            (
                Some(1.into()),
                None,
                "the edge from a to b: weight 1 is given, and the graph has no weights: it was loaded without --weights",
            ),
            (
                None,
                Some(WeightType::U32),
                "the edge from a to b: no weight is given, and the graph has weights: it was loaded with --weights",
            ),
            (
                Some((-1).into()),
                Some(WeightType::U32),
                "the edge from a to b: weight -1 does not fit: the graph's are of type u32, the --weight-type of its load",
            ),
            (
                Some(0.5.into()),
                Some(WeightType::I64),
                "the edge from a to b: weight 0.5 does not fit: the graph's are of type i64, the --weight-type of its load",
            ),
        ] {
            assert_eq!(bits(weight, weight_type), Err(what.to_owned()));
        }
        assert!(bits(Some(f64::NAN.into()), Some(WeightType::F64)).is_err());
        assert!(bits(Some(f64::NEG_INFINITY.into()), Some(WeightType::F64)).is_err());
        for weight_type in [WeightType::F32, WeightType::F64] {
            assert!(bits(Some(f64::INFINITY.into()), Some(weight_type)).is_ok());
        }
        assert!(bits(Some(1e300.into()), Some(WeightType::F32)).is_err());
    }

    #[test]
    fn keys_take_the_scheme_of_the_graph() {
        assert_eq!(fitting_key(&7.into(), KeyScheme::String).unwrap(), "7".into());
        assert_eq!(fitting_key(&"7".into(), KeyScheme::Dense).unwrap(), 7.into());
        assert!(fitting_key(&"x".into(), KeyScheme::Integer).is_err());
        assert_eq!(fitting_key(&"".into(), KeyScheme::String).unwrap(), "".into());
        assert!(fitting_key(&"x".repeat(1 << 16).into(), KeyScheme::String).is_err());
    }
}
