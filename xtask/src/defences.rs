//! The table of defences names functions and tests; each of them is to exist.

use std::fs;
use std::path::Path;

use crate::Fault;
use crate::source::{Source, find_word};

/// Where the table is.
pub const TABLE: &str = "docs/defences.md";
/// What its names of files begin at.
const CRATES: &str = "crates";

/// Looks for everything that the table calls `` `file.rs::name` ``: a function of that name in that file. A defence of a
/// table has a test, in the last cell of its row.
pub fn check_table(root: &Path, text: &str, faults: &mut Vec<Fault>) {
    let mut is_in_body = false;
    for (index, line) in text.lines().enumerate() {
        let mut fault = |message: String| faults.push(Fault::new(Path::new(TABLE), index + 1, message));
        for (file, name) in names(line) {
            if let Some(what) = missing(&root.join(CRATES).join(file), name) {
                fault(format!("{file}::{name}: {what}"));
            }
        }
        let is_row = line.starts_with('|');
        if is_row && is_in_body && names(last_cell(line)).next().is_none() {
            fault("a defence without a test".to_owned());
        }
        // A table begins with its headings and a rule.
        is_in_body = is_row && (is_in_body || line.starts_with("| ---"));
    }
}

/// The names between two grave accents that have a file and a function.
fn names(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|name| name.split_once("::"))
        .filter(|(file, _)| file.ends_with(".rs"))
}

fn last_cell(line: &str) -> &str {
    line.trim_end().trim_end_matches('|').rsplit('|').next().unwrap_or_default()
}

/// What is wrong with the name of a function.
fn missing(file: &Path, name: &str) -> Option<&'static str> {
    let Ok(text) = fs::read_to_string(file) else { return Some("there is no such file") };
    let is_defined = |line: &String| {
        let at = find_word(line, name)?;
        line[..at].trim_end().ends_with("fn").then_some(())
    };
    let is_there = Source::new(&text).code.iter().any(|line| is_defined(line).is_some());
    if is_there { None } else { Some("there is no such function") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_looked_for() {
        let root = std::env::temp_dir().join(format!("xtask-defences-{}", std::process::id()));
        fs::create_dir_all(root.join("crates/log/src")).unwrap();
        fs::write(root.join("crates/log/src/read.rs"), "// fn gone() {}\nfn cut() {}\nfn cut_off<T>() {}\n").unwrap();
        let check = |text: &str| {
            let mut faults = Vec::new();
            check_table(&root, text, &mut faults);
            faults.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let table = |rows: &str| format!("Text.\n\n| what | where | test |\n| --- | --- | --- |\n{rows}\n");
        assert_eq!(check(&table("| a | `log/src/read.rs::cut` | `log/src/read.rs::cut_off` |")), [""; 0]);
        assert_eq!(check("`Vec::new`, `a.rs` and log/src/read.rs::gone are no names."), [""; 0]);
        let found = check(&table("| a | `log/src/write.rs::cut` | `log/src/read.rs::cut`, `log/src/read.rs::gone` |"));
        let expected = [
            "docs/defences.md:5: log/src/write.rs::cut: there is no such file",
            "docs/defences.md:5: log/src/read.rs::gone: there is no such function",
        ];
        assert_eq!(found, expected);
        let without = check(&table("| a | `log/src/read.rs::cut` | none |\n\nMore."));
        assert_eq!(without, ["docs/defences.md:5: a defence without a test"]);
        fs::remove_dir_all(&root).unwrap();
    }
}
