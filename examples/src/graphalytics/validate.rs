//! The validation of Graphalytics, which compares an output with the expected one.
//!
//! Both must have one value for each vertex. Beyond that, each algorithm has one of three rules.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anden::{Error, Result};

/// The rule by which two outputs are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The values are equal.
    Exact,
    /// The values differ by at most [`EPSILON`], relative to the expected one.
    Near,
    /// The values divide the vertices into equal groups, whatever the names of the groups.
    Equivalent,
}

/// The largest relative error of a value.
pub const EPSILON: f64 = 1e-4;

impl Rule {
    /// The rule of an algorithm.
    ///
    /// # Errors
    /// The algorithm is unknown.
    pub fn of(algorithm: &str) -> Result<Self> {
        match algorithm {
            "bfs" | "cdlp" => Ok(Self::Exact),
            "pr" | "sssp" | "lcc" => Ok(Self::Near),
            "wcc" => Ok(Self::Equivalent),
            other => Err(Error::InvalidInput(format!("Graphalytics has no algorithm {other}").into())),
        }
    }
}

/// Reads a file of lines `vertex value`.
///
/// # Errors
/// The file cannot be read, a line does not have two words, or a vertex appears twice.
pub fn read_output(path: &Path) -> Result<BTreeMap<String, String>> {
    let place = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|error| Error::Io(format!("{place}: cannot read: {error}").into()))?;
    let mut values = BTreeMap::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [vertex, value] = words[..] else {
            return Err(Error::InvalidInput(format!("{place}:{}: a vertex and a value expected", index + 1).into()));
        };
        if values.insert(vertex.to_owned(), value.to_owned()).is_some() {
            return Err(Error::InvalidInput(format!("{place}:{}: vertex {vertex} stands twice", index + 1).into()));
        }
    }
    Ok(values)
}

/// Compares an output with the expected one.
///
/// # Errors
/// The first difference, as a sentence.
pub fn validate(
    rule: Rule,
    found: &BTreeMap<String, String>,
    expected: &BTreeMap<String, String>,
) -> std::result::Result<(), String> {
    if let Some(vertex) = expected.keys().find(|vertex| !found.contains_key(*vertex)) {
        return Err(format!("vertex {vertex} has no value"));
    }
    if let Some(vertex) = found.keys().find(|vertex| !expected.contains_key(*vertex)) {
        return Err(format!("vertex {vertex} should not be there"));
    }
    let (mut names, mut owners) = (HashMap::new(), HashMap::new());
    for ((vertex, found), expected) in found.iter().zip(expected.values()) {
        let is_same = match rule {
            Rule::Exact => found == expected,
            Rule::Near => is_near(found, expected),
            Rule::Equivalent => {
                *names.entry(expected).or_insert(found) == found && *owners.entry(found).or_insert(expected) == expected
            }
        };
        if !is_same {
            return Err(format!("vertex {vertex} has {found}, {expected} expected"));
        }
    }
    Ok(())
}

fn is_near(found: &str, expected: &str) -> bool {
    match (found.parse::<f64>(), expected.parse::<f64>()) {
        (Ok(found), Ok(expected)) => {
            found == expected || expected.is_finite() && (found - expected).abs() <= EPSILON * expected.abs()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(lines: &[(&str, &str)]) -> BTreeMap<String, String> {
        lines.iter().map(|&(vertex, value)| (vertex.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn each_rule_has_its_measure() {
        let of = |value| output(&[("1", value), ("2", "7"), ("3", "9")]);
        let check = |rule, found, expected| validate(rule, &of(found), &of(expected)).is_ok();
        assert!(check(Rule::Exact, "7", "7") && !check(Rule::Exact, "7", "7.0"));
        assert!(check(Rule::Near, "1.00009", "1") && !check(Rule::Near, "1.0002", "1"));
        assert!(check(Rule::Near, "infinity", "Infinity") && !check(Rule::Near, "5", "infinity"));
        assert!(!check(Rule::Near, "infinity", "5") && !check(Rule::Near, "NaN", "NaN") && !check(Rule::Near, "", "1"));
        assert!(check(Rule::Near, "0", "0.0") && !check(Rule::Near, "1e-9", "0"));
    }

    #[test]
    fn groups_may_be_called_anything() {
        let expected = output(&[("1", "1"), ("2", "1"), ("3", "3")]);
        let check = |a, b, c| validate(Rule::Equivalent, &output(&[("1", a), ("2", b), ("3", c)]), &expected).is_ok();
        assert!(check("1", "1", "3") && check("x", "x", "y"));
        assert!(!check("1", "2", "3") && !check("1", "1", "1"));
    }

    #[test]
    fn vertices_must_be_the_same() {
        let two = output(&[("1", "0"), ("2", "0")]);
        let three = output(&[("1", "0"), ("2", "0"), ("3", "0")]);
        assert!(validate(Rule::Exact, &two, &three).is_err() && validate(Rule::Exact, &three, &two).is_err());
        assert!(validate(Rule::Exact, &output(&[("1", "0"), ("4", "0")]), &two).is_err());
    }
}
