//! Checks of all Markdown files: links lead somewhere, named code exists, documents stay short.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use crate::Fault;
use crate::declarations::Declarations;
use crate::markdown::{self, Link};
use crate::source::Source;
use crate::tree::{Tree, has_extension};

/// A limit on the size of a document.
#[derive(Debug, Clone, Copy)]
enum Size {
    Bytes(usize),
    Lines(usize),
}

/// The size of a file, or of each file in a folder. A reader finishes these documents in one sitting.
const MAX_SIZES: [(&str, Size); 2] = [("ARCHITECTURE.md", Size::Bytes(25_000)), ("docs/decisions", Size::Lines(60))];

/// Checks every Markdown file of the tree.
pub fn check(tree: &Tree, faults: &mut Vec<Fault>) {
    for (path, text) in tree.texts().filter(|(path, _)| has_extension(path, &["md"])) {
        check_size(path, text, faults);
        for link in markdown::links(text) {
            check_link(tree, path, text, &link, faults);
        }
    }
}

fn check_size(path: &Path, text: &str, faults: &mut Vec<Fault>) {
    for (place, size) in MAX_SIZES {
        if !path.starts_with(place) {
            continue;
        }
        let num_lines = text.lines().count();
        match size {
            Size::Bytes(max) if text.len() > max => {
                let message = format!("{} bytes, at most {max}: move details to docs/", text.len());
                faults.push(Fault::new(path, num_lines, message));
            }
            Size::Lines(max) if num_lines > max => {
                faults.push(Fault::new(
                    path,
                    max + 1,
                    format!("{num_lines} lines, at most {max}: shorten the document"),
                ));
            }
            _ => {}
        }
    }
}

fn check_link(tree: &Tree, path: &Path, text: &str, link: &Link, faults: &mut Vec<Fault>) {
    let target = link.target.as_str();
    if target.contains("://") || target.starts_with("mailto:") {
        return;
    }
    let mut fault = |message: String| faults.push(Fault::new(path, link.line, message));
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let Some(file) = (if file.is_empty() { Some(path.to_path_buf()) } else { resolve(path, file) }) else {
        return fault(format!("broken link '{target}': it leaves the repository"));
    };
    if !tree.has(&file) {
        return fault(format!("broken link '{target}': the repository has no {}", file.display()));
    }
    if let Some(anchor) = anchor.filter(|_| has_extension(&file, &["md"])) {
        let found = if file == path { Some(text) } else { tree.text(&file) };
        if !found.is_some_and(|text| markdown::anchors(text).contains(anchor)) {
            fault(format!("broken link '{target}': {} has no heading #{anchor}", file.display()));
        }
    }
    if let Some(code) = tree.text(&file).filter(|_| has_extension(&file, &["rs"])) {
        check_names(&file, code, link, &mut fault);
    }
}

/// The path of a target, relative to the root; none if it leaves the root. `/a` begins at the root, as on GitHub.
fn resolve(from: &Path, target: &str) -> Option<PathBuf> {
    let mut path = if target.starts_with('/') { PathBuf::new() } else { from.parent()?.to_path_buf() };
    for part in Path::new(target).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir if !path.pop() => return None,
            _ => {}
        }
    }
    Some(path)
}

/// The code that a line names beside a link to a file: `` `Type::name` in [file.rs](…) `` or `` [`name`](file.rs) ``.
fn check_names(file: &Path, text: &str, link: &Link, fault: &mut impl FnMut(String)) {
    let names: Vec<&str> = names_before(&link.before).into_iter().chain(spans(&link.text)).collect();
    if names.is_empty() {
        return;
    }
    let code = Source::new(text).code;
    let declarations = Declarations::of(&code);
    let is_module = |part: &str| file.iter().any(|folder| Path::new(folder).file_stem() == Some(OsStr::new(part)));
    for name in names {
        // `run(…)`, `Pool<'_>` and `measure!` are named by their first part.
        let name = name.split(['(', '<', '!']).next().unwrap_or(name);
        let missing = name.split("::").find(|part| !is_module(part) && !declarations.has(part));
        if let Some(part) = missing {
            fault(format!("`{name}`: {} declares no {part}", file.display()));
        }
    }
}

/// The code spans right before ` in ` or ` of ` at the end of `before`. Spans joined by commas or "and" count together.
fn names_before(before: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let Some(mut rest) = [" in ", " of "].iter().find_map(|word| before.strip_suffix(word)) else { return names };
    while let Some((head, name)) = rest.strip_suffix('`').and_then(|rest| rest.rsplit_once('`')) {
        names.push(name);
        let Some(next) = [", ", " and "].iter().find_map(|joint| head.strip_suffix(joint)) else { break };
        rest = next;
    }
    names
}

/// The code spans of a link's text that look like names.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |span: &&str| span.chars().all(|c| c.is_alphanumeric() || "_:".contains(c));
    text.split('`').skip(1).step_by(2).filter(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_files(files: &[(&str, &str)]) -> Vec<String> {
        let mut faults = Vec::new();
        check(&Tree::of(files), &mut faults);
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_to_files_and_headings_are_followed() {
        let other = ("docs/b.md", "# Two words\n[up](../a.md#one) [root](/a.md) [folder](../docs)\n");
        let good = ("a.md", "# One\n[b](docs/b.md) [two](docs/b.md#two-words) [one](#one) [out](https://a.b/c.md)\n");
        assert_eq!(check_files(&[good, other]), [""; 0]);
        let bad = ("a.md", "# Own\n\n[b](docs/c.md) [two](docs/b.md#two) [one](#one) [out](../x)\n");
        assert_eq!(
            check_files(&[bad, ("docs/b.md", "# Two words\n")]),
            [
                "a.md:3: broken link 'docs/c.md': the repository has no docs/c.md",
                "a.md:3: broken link 'docs/b.md#two': docs/b.md has no heading #two",
                "a.md:3: broken link '#one': a.md has no heading #one",
                "a.md:3: broken link '../x': it leaves the repository",
            ]
        );
    }

    #[test]
    fn named_code_is_looked_up_in_the_linked_file() {
        let code = (
            "src/log.rs",
            "// fn gone() {}\npub struct Log;\nimpl<T> From<T> for Mark {\n    fn from() {}\n}\nfn cut() {}\n",
        );
        let good = "`Log` in [log.rs](src/log.rs), `Mark::from` and `cut` in [log.rs](src/log.rs)\n\
                    `src::log::cut` of [x](src/log.rs), [`Log` and `log`](src/log.rs), `gone` by [log.rs](src/log.rs)\n";
        assert_eq!(check_files(&[("a.md", good), code]), [""; 0]);
        let bad = "`gone` and `cut` in [log.rs](src/log.rs)\n`Log::from`, `Pool::cut` in [x](src/log.rs), [`Gone`](src/log.rs)\n";
        assert_eq!(
            check_files(&[("a.md", bad), code]),
            [
                "a.md:1: `gone`: src/log.rs declares no gone",
                "a.md:2: `Pool::cut`: src/log.rs declares no Pool",
                "a.md:2: `Gone`: src/log.rs declares no Gone",
            ]
        );
    }

    #[test]
    fn sizes_have_limits() {
        let record = "x\n".repeat(61);
        let map = "é".repeat(12_501);
        let files = [("ARCHITECTURE.md", map.as_str()), ("docs/decisions/1.md", &record), ("docs/long.md", &record)];
        assert_eq!(
            check_files(&files),
            [
                "ARCHITECTURE.md:1: 25002 bytes, at most 25000: move details to docs/",
                "docs/decisions/1.md:61: 61 lines, at most 60: shorten the document",
            ]
        );
        assert_eq!(check_files(&[("ARCHITECTURE.md", &map[2..]), ("docs/decisions/1.md", &record[2..])]), [""; 0]);
    }
}
