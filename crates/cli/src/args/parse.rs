//! Parsers of option values.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anden::load::{EdgeInput, InputPath, SnapshotBy, StatedType, VertexInput, WantedProperties, parse_delimiter};
use anden::session::parse_size;
use anden::snapshot::{SnapshotId, SnapshotTag};

/// Parses a number of threads, from 1 to 4,096.
pub fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        // A larger number is most likely a typing error, and would only exhaust the system.
        Ok(n @ 1..=4096) => Ok(n),
        _ => Err("expected a number from 1 to 4096".into()),
    }
}

/// Parses a count; `all` is more than any graph has.
pub fn count_or_all(text: &str) -> Result<u64, String> {
    match text {
        "all" => Ok(u64::MAX),
        number => number.parse().map_err(|_| "expected a number or `all`".into()),
    }
}

/// Parses a size in bytes, such as `512M`.
pub fn bytes(text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| "expected a size such as 512M or 4G".into())
}

/// Parses a size in bytes that may be 0.
pub fn bytes_or_zero(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { bytes(text) }
}

/// Parses bytes a second, such as `50M`.
pub fn rate(text: &str) -> Result<u64, String> {
    bytes(text).and_then(|rate| if rate > 0 { Ok(rate) } else { Err("expected at least one byte a second".into()) })
}

/// Parses a time: `100ms`, `1.5s`; a bare number is milliseconds.
pub fn time(text: &str) -> Result<Duration, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, unit) = text.split_at(digits);
    let seconds_each = match unit {
        "" | "ms" => 1e-3,
        "s" => 1.0,
        // No duration accepts NaN, so an unknown unit fails below.
        _ => f64::NAN,
    };
    let seconds = number.parse::<f64>().map(|number| number * seconds_each);
    let time = seconds.ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or_else(|| "expected a time such as 100ms, 2s, or a number of milliseconds".into())
}

/// Parses an interval in seconds, up to a day.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let time = positive(text).ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = time.filter(|time| (Duration::from_millis(1)..=Duration::from_secs(86_400)).contains(time));
    time.ok_or_else(|| "expected a number of seconds from 0.001 to 86400".into())
}

/// Parses an inclusive range: `1..255`.
pub fn interval<T: std::str::FromStr + PartialOrd>(text: &str) -> Result<RangeInclusive<T>, String> {
    let bounds = text.split_once("..").and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    match bounds {
        Some((low, high)) if low <= high => Ok(low..=high),
        Some(_) => Err("the first number must not be larger than the second".into()),
        None => Err("expected two numbers as in 1..255".into()),
    }
}

/// Parses a window of snapshots: `3..7`, `monday..friday`, `2012-01..2012-03`. The library checks the order of its ends.
pub fn window(text: &str) -> Result<RangeInclusive<SnapshotId>, String> {
    match text.split_once("..") {
        Some((first, last)) if !first.is_empty() && !last.is_empty() => Ok(first.into()..=last.into()),
        _ => Err("expected two snapshots as in 3..7 or 2012-01..2012-03".into()),
    }
}

/// Parses the time of data, in microseconds since 1970.
pub fn as_of(text: &str) -> Result<i64, String> {
    SnapshotTag::parse_as_of(text)
}

/// Parses a column of times and a period: `time:month`.
pub fn snapshot_by(text: &str) -> Result<SnapshotBy, String> {
    text.parse()
}

/// Parses `all`, `none`, or column names: `size,name`.
pub fn wanted(text: &str) -> Result<WantedProperties, String> {
    match text {
        "all" => Ok(WantedProperties::All),
        // An explicit choice, so no note mentions the columns left out.
        "none" => Ok(WantedProperties::Named(Vec::new())),
        names if names.split(',').all(|name| !name.is_empty()) => {
            Ok(WantedProperties::Named(names.split(',').map(str::to_owned).collect()))
        }
        _ => Err("expected all, none, or names as in size,name".into()),
    }
}

/// Parses a vertex file with optional labels and key space: `people.csv`, `Person=people.csv`,
/// `Person;Actor:person=people.csv`.
pub fn vertex_input(text: &str) -> Result<VertexInput, String> {
    let Some((names, path)) = named_file(text) else { return Ok(PathBuf::from(text).into()) };
    // An empty name before or after a colon stands for no label or no key space.
    let mut names = names.split(':').map(|name| Some(name.to_owned()).filter(|name| !name.is_empty()));
    match (names.next().flatten(), names.next().flatten(), names.next(), path) {
        (.., "") => Err("expected a file after =".into()),
        (labels, space, None, path) => Ok(VertexInput { path: PathBuf::from(path).into(), labels, space }),
        _ => Err("expected LABEL=FILE or LABEL:SPACE=FILE".into()),
    }
}

/// Parses an edge file with its type and optional key spaces: `KNOWS=knows.csv`, `LIKES:person:message=likes.csv`.
pub fn edge_input(text: &str) -> Result<EdgeInput, String> {
    let wanted = || "expected TYPE=FILE or TYPE:SPACE:SPACE=FILE".to_owned();
    let (names, path) = named_file(text).filter(|(_, path)| !path.is_empty()).ok_or_else(wanted)?;
    let path = InputPath::from(PathBuf::from(path));
    let mut names = names.split(':').map(|name| Some(name.to_owned()).filter(|name| !name.is_empty()));
    match (names.next().flatten(), names.next(), names.next(), names.next()) {
        (Some(edge_type), None, ..) => Ok(EdgeInput { path, edge_type, source_space: None, target_space: None }),
        // One key space alone is refused: it could belong to either end.
        (Some(edge_type), Some(source_space), Some(target_space), None) => {
            Ok(EdgeInput { path, edge_type, source_space, target_space })
        }
        _ => Err(wanted()),
    }
}

/// Splits `NAMES=FILE`. Names have no `/` and no `.`, so `./a=b.csv` is a file without names.
fn named_file(text: &str) -> Option<(&str, &str)> {
    text.split_once('=').filter(|(names, _)| !names.is_empty() && !names.contains(['/', '.']))
}

/// Parses column names: `key,amount`.
pub fn names(text: &str) -> Result<Vec<String>, String> {
    match text.split(',').all(|name| !name.is_empty()) {
        true => Ok(text.split(',').map(str::to_owned).collect()),
        false => Err("expected names as in key,amount".into()),
    }
}

/// Parses a delimiter of columns.
pub fn delimiter(text: &str) -> Result<u8, String> {
    parse_delimiter(text)
        .ok_or_else(|| "expected 'tab' or one character of punctuation, such as |, and no quote".into())
}

/// Parses a comment character: punctuation, but no quote.
pub fn mark(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        // A letter, a digit or a blank could begin a key, and a quote begins a field.
        [mark] if mark.is_ascii_punctuation() && *mark != b'"' => Ok(*mark),
        _ => Err("expected one character of punctuation, such as #, and no quote".into()),
    }
}

/// Parses a property with its type: `size:i64`. A name may contain colons, a type cannot.
pub fn property_type(text: &str) -> Result<(String, StatedType), String> {
    // From the right, because only a name may contain colons.
    let split = text.rsplit_once(':').filter(|(name, _)| !name.is_empty());
    let found = split.and_then(|(name, of)| Some((name.to_owned(), StatedType::of_name(of)?)));
    found.ok_or_else(|| format!("expected a name and a type as in size:i64, of the types {}", StatedType::names()))
}

/// Parses a number from 0 to 1.
pub fn fraction(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        // The range excludes NaN.
        Ok(x) if (0.0..=1.0).contains(&x) => Ok(x),
        _ => Err("expected a number from 0 to 1".into()),
    }
}

/// Parses a finite number of at least 0.
pub fn not_negative(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x >= 0.0 && x.is_finite() => Ok(x),
        _ => Err("expected a number of 0 or more".into()),
    }
}

/// Parses a finite number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err("expected a number above 0".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_milliseconds_unless_said() {
        let [ms, s] = [Duration::from_millis, Duration::from_secs];
        for (text, expected) in
            [("0", ms(0)), ("100", ms(100)), ("100ms", ms(100)), ("2s", s(2)), ("1.5s", ms(1500)), ("0.5", ms(1) / 2)]
        {
            assert_eq!(time(text), Ok(expected), "{text}");
        }
        for bad in ["", "ms", "s", "-1", "1m", "1 s", "1e3", "1..2", "nan", "inf", "99999999999999999999s"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn intervals_are_inclusive() {
        assert_eq!(interval::<u32>("1..255"), Ok(1..=255));
        assert_eq!(interval::<u32>("7..7"), Ok(7..=7));
        assert!(interval::<u32>("9..1").is_err());
        assert!(interval::<u32>("9").is_err());
        assert!(interval::<u32>("-1..4").is_err());
    }

    #[test]
    fn windows_are_two_snapshots() {
        assert_eq!(window("3..7"), Ok(3.into()..=7.into()));
        assert_eq!(window("2012-01..monday"), Ok("2012-01".into()..="monday".into()));
        assert!(["3", "3..", "..7", "..", ""].iter().all(|text| window(text).is_err()));
    }

    #[test]
    fn numbers_in_bounds() {
        assert_eq!(fraction("0.85"), Ok(0.85));
        assert!(fraction("1.1").is_err() && fraction("nan").is_err());
        assert!(not_negative("-1").is_err() && not_negative("inf").is_err());
        assert!(positive("0").is_err() && positive("2").is_ok());
        assert!(threads("0").is_err() && threads("2").is_ok());
        assert_eq!((count_or_all("16"), count_or_all("all")), (Ok(16), Ok(u64::MAX)));
        assert!(count_or_all("some").is_err() && count_or_all("-1").is_err());
    }

    #[test]
    fn columns_and_their_types() {
        assert_eq!(wanted("all"), Ok(WantedProperties::All));
        assert_eq!(wanted("none"), Ok(WantedProperties::Named(Vec::new())));
        assert_eq!((mark("#"), mark(";")), (Ok(b'#'), Ok(b';')));
        assert!(["", "a", "1", "\"", " ", "//", "§"].iter().all(|text| mark(text).is_err()));
        assert_eq!(wanted("a,b"), Ok(WantedProperties::Named(vec!["a".into(), "b".into()])));
        assert!(wanted("").is_err() && wanted("a,,b").is_err());
        assert_eq!(property_type("a:b:text"), Ok(("a:b".into(), anden::property::PropertyType::String.into())));
        assert!(property_type("size").is_err() && property_type(":i64").is_err() && property_type("a:u128").is_err());
    }
}
