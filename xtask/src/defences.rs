//! The table of defences: each function and test that it names must exist.

use std::path::Path;

use crate::Fault;
use crate::source::{Source, find_word};
use crate::tree::{Tree, has_extension};

/// The file with the table.
pub const TABLE: &str = "docs/defences.md";
/// The folder of all files that it names.
const CRATES: &str = "crates";

/// Looks for each `` `file.rs::name` `` of the table: a function of that name in that file. A file is named by the end
/// of its path, if that leaves one file with the function. `` `::name` `` is in the file before it in the line. The
/// last cell of a row names a test.
pub fn check_table(tree: &Tree, text: &str, faults: &mut Vec<Fault>) {
    let mut is_in_body = false;
    for (index, line) in text.lines().enumerate() {
        let mut fault = |message: String| faults.push(Fault::new(Path::new(TABLE), index + 1, message));
        let mut file_before = "";
        for (file, name) in names(line) {
            let file = if file.is_empty() { file_before } else { file };
            file_before = file;
            if let Some(reason) = refusal(tree, file, name) {
                fault(format!("{file}::{name}: {reason}"));
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

/// The names between two grave accents that have a file, or none before `::`, and a function.
fn names(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|name| name.split_once("::"))
        .filter(|(file, _)| file.is_empty() || file.ends_with(".rs"))
}

fn last_cell(line: &str) -> &str {
    line.trim_end().trim_end_matches('|').rsplit('|').next().unwrap_or_default()
}

/// Why the table may not name a function in this way; none if exactly one file fits.
fn refusal(tree: &Tree, file: &str, name: &str) -> Option<String> {
    if file.is_empty() {
        return Some("no file stands before it".to_owned());
    }
    let is_named = |path: &Path| path.starts_with(CRATES) && has_extension(path, &["rs"]) && path.ends_with(file);
    let files: Vec<&str> = tree.texts().filter(|(path, _)| is_named(path)).map(|(_, text)| text).collect();
    match files.iter().filter(|text| defines(text, name)).count() {
        1 => None,
        0 if files.is_empty() => Some("there is no such file".to_owned()),
        0 => Some("there is no such function".to_owned()),
        count => Some(format!("{count} files have it; name more of the path")),
    }
}

fn defines(text: &str, name: &str) -> bool {
    let is_here = |line: &String| find_word(line, name).is_some_and(|at| line[..at].trim_end().ends_with("fn"));
    // Most files lack the name, and to tell code from comments takes long.
    text.contains(name) && Source::new(text).code.iter().any(is_here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &str) -> Vec<String> {
        let read = "// fn gone() {}\nfn cut() {}\nfn cut_off<T>() {}\nfn end() {}\n";
        let files = [
            ("crates/log/src/read.rs", read),
            ("crates/wal/src/read.rs", "fn cut() {}\n"),
            ("read.rs", "fn gone() {}"),
        ];
        let text = format!("Text.\n\n| defence | code | test |\n| --- | --- | --- |\n{rows}\n");
        let mut faults = Vec::new();
        check_table(&Tree::of(&files), &text, &mut faults);
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn functions_are_found_by_the_end_of_a_path() {
        assert_eq!(check("| a | `log/src/read.rs::cut` | `read.rs::cut_off`, `::end` |"), [""; 0]);
        assert_eq!(check("`Vec::new`, `a.rs` and log/src/read.rs::gone are no names."), [""; 0]);
        let found = check("| a | `log/src/write.rs::cut`, `ad.rs::cut` | `log/src/read.rs::cut`, `::gone` |");
        let expected = [
            "docs/defences.md:5: log/src/write.rs::cut: there is no such file",
            "docs/defences.md:5: ad.rs::cut: there is no such file",
            "docs/defences.md:5: log/src/read.rs::gone: there is no such function",
        ];
        assert_eq!(found, expected);
        let found = check("| a | `::cut` | `read.rs::cut` |");
        let expected = [
            "docs/defences.md:5: ::cut: no file stands before it",
            "docs/defences.md:5: read.rs::cut: 2 files have it; name more of the path",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn defence_without_a_test_is_a_fault() {
        let found = check("| a | `log/src/read.rs::cut` | none |\n\nMore.");
        assert_eq!(found, ["docs/defences.md:5: a defence without a test"]);
    }
}
