//! The limits of the [measures](crate::measures): each count may fall, and the limit falls with it.
//!
//! A count above its limit is a fault. A count below its limit is a fault as well, because the next change could use
//! the difference up; `cargo xtask tidy --lower` mends it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Fault;
use crate::measures::{Counts, Measure};
use crate::tree::Tree;

/// The file with one line `key = number` for each measure. A measure without a line has the limit 0.
pub const LIMITS: &str = "xtask/limits.toml";

/// Compares the counts with the limits.
pub fn check(tree: &Tree, counts: &Counts, faults: &mut Vec<Fault>) {
    let path = Path::new(LIMITS);
    let text = tree.text(path).unwrap_or_default();
    let mut limits: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (line, key, value) in entries(text) {
        let limit = value.parse().ok().filter(|_| Measure::ALL.iter().any(|measure| measure.key() == key));
        match limit {
            Some(limit) if !limits.contains_key(key) => drop(limits.insert(key, (line, limit))),
            _ => faults.push(Fault::new(path, line, format!("'{key} = {value}': expected one number for a measure"))),
        }
    }
    for measure in Measure::ALL {
        let (key, count) = (measure.key(), counts.count(measure));
        let (line, limit) = limits.get(key).copied().unwrap_or((1, 0));
        if count > limit {
            let message = format!("{key}: {count}, at most {limit}; `cargo xtask tidy --counts PATH` shows the places");
            faults.push(Fault::new(path, line, message));
        } else if count < limit {
            let message = format!("{key}: {count}, below the limit {limit}; run `cargo xtask tidy --lower`");
            faults.push(Fault::new(path, line, message));
        }
    }
}

/// The limits file with every limit that is above its count lowered to it, and a line for each change.
pub fn lowered(tree: &Tree, counts: &Counts) -> (String, Vec<String>) {
    let text = tree.text(Path::new(LIMITS)).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut changes = Vec::new();
    for (line, key, value) in entries(text) {
        let Some(measure) = Measure::ALL.into_iter().find(|measure| measure.key() == key) else { continue };
        let count = counts.count(measure);
        if value.parse().is_ok_and(|limit: usize| count < limit) {
            lines[line - 1] = format!("{key} = {count}");
            changes.push(format!("{key}: {value} to {count}"));
        }
    }
    lines.push(String::new());
    (lines.join("\n"), changes)
}

/// Line number, key and value of each entry. The file needs no more of TOML.
fn entries(text: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|(index, line)| {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        (index + 1, key.trim(), value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with two inversions in documents.
    fn tree(limits: &str) -> Tree {
        Tree::of(&[("a.md", "Of a page.\n\nOf a list.\n"), (LIMITS, limits)])
    }

    fn check_limits(limits: &str) -> Vec<String> {
        let mut faults = Vec::new();
        let tree = tree(limits);
        check(&tree, &Counts::of(&tree), &mut faults);
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn count_equals_its_limit() {
        assert_eq!(check_limits("# Why.\n\ndocument-inversion = 2\nlong-test-name = 0\n"), [""; 0]);
        let above = check_limits("# Why.\ndocument-inversion = 1\n");
        assert_eq!(above.len(), 1);
        assert!(above[0].starts_with("xtask/limits.toml:2: document-inversion: 2, at most 1;"), "{above:?}");
        let below = check_limits("document-inversion = 3\n");
        assert_eq!(
            below,
            ["xtask/limits.toml:1: document-inversion: 2, below the limit 3; run `cargo xtask tidy --lower`"]
        );
        assert!(check_limits("")[0].contains("document-inversion: 2, at most 0;"));
    }

    #[test]
    fn limits_that_mean_nothing_are_refused() {
        let limits = "document-inversion = 2\ndocument-inversion = 2\ninversion = 0\nlong-test-name = few\n";
        let lines = ["2: 'document-inversion = 2'", "3: 'inversion = 0'", "4: 'long-test-name = few'"];
        let expected = lines.map(|line| format!("{LIMITS}:{line}: expected one number for a measure"));
        assert_eq!(check_limits(limits), expected);
    }

    #[test]
    fn limits_are_lowered_and_never_raised() {
        let tree = tree("# Why.\ndocument-inversion = 5\nlong-test-name = 1\n");
        let expected = "# Why.\ndocument-inversion = 2\nlong-test-name = 0\n";
        let changes = ["document-inversion: 5 to 2", "long-test-name: 1 to 0"].map(str::to_owned);
        assert_eq!(lowered(&tree, &Counts::of(&tree)), (expected.to_owned(), changes.into()));
        let above = "document-inversion = 1\n";
        let tree = self::tree(above);
        assert_eq!(lowered(&tree, &Counts::of(&tree)), (above.to_owned(), vec![]));
    }
}
