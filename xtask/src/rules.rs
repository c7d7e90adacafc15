//! The countable rules of style. Each checks one file and gives the places of its faults. `tidy` decides which rules
//! apply.
//!
//! The words that a rule looks for are put together with `concat!`, so that this file passes its own rules.

use std::path::Path;

use crate::Fault;
use crate::source::{Source, find_word};

/// A file has one subject: it is split long before this.
pub const MAX_FILE_LINES: usize = 800;
/// A function fits on a screen.
pub const MAX_FUNCTION_LINES: usize = 70;

const LEFTOVERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const LEFTOVER_CODE: [(&str, &str); 5] = [
    (concat!("to", "do!"), "is not written yet"),
    (concat!("unimpl", "emented!"), "is not written yet"),
    (concat!("db", "g!"), "prints for debugging"),
    (concat!("#[ign", "ore"), "a test that does not run proves nothing"),
    (concat!("should_", "panic"), "assert what the call returns, or catch the panic around that call alone"),
];
const LEFTOVER_FENCES: [&str; 2] = [concat!("```ign", "ore"), concat!("```should_", "panic")];
/// A module's name tells its subject. These names do not.
const EMPTY_NAMES: [&str; 9] = ["util", "utils", "helper", "helpers", "common", "manager", "managers", "misc", "old"];
/// Folders that belong to one machine or one user.
const MACHINE_FOLDERS: [&str; 5] =
    [concat!("/wo", "rk"), concat!("/t", "mp"), concat!("/ro", "ot"), concat!("/ho", "me"), concat!("/Us", "ers")];

/// A file is at most [`MAX_FILE_LINES`] long.
pub fn file_length(path: &Path, num_lines: usize, faults: &mut Vec<Fault>) {
    if num_lines > MAX_FILE_LINES {
        let message = format!("{num_lines} lines, at most {MAX_FILE_LINES}: split the file by concept");
        faults.push(Fault::new(path, MAX_FILE_LINES + 1, message));
    }
}

/// No marker of unfinished work, in code or in words.
pub fn leftover_markers(path: &Path, lines: &[String], faults: &mut Vec<Fault>) {
    for (index, line) in lines.iter().enumerate() {
        for marker in LEFTOVERS.into_iter().filter(|marker| find_word(line, marker).is_some()) {
            faults.push(Fault::new(path, index + 1, format!("{marker}: finish it or file an issue")));
        }
    }
}

/// No path that exists on one machine only.
pub fn machine_paths(path: &Path, lines: &[String], faults: &mut Vec<Fault>) {
    let goes_on = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    for (index, line) in lines.iter().enumerate() {
        let found = MACHINE_FOLDERS.into_iter().find(|folder| {
            line.match_indices(folder).any(|(start, _)| {
                let before = line[..start].chars().next_back();
                let after = line[start + folder.len()..].chars().next();
                !before.is_some_and(|c| goes_on(c) || "/}~$)".contains(c)) && !after.is_some_and(goes_on)
            })
        });
        if let Some(folder) = found {
            faults.push(Fault::new(path, index + 1, format!("{folder} is a folder of one machine")));
        }
    }
}

/// No file, folder or inline module whose name says nothing or counts versions.
pub fn module_names(path: &Path, source: Option<&Source>, faults: &mut Vec<Fault>) {
    let says_nothing = |name: &str| {
        let version = name.rsplit_once("_v").map(|(_, version)| version);
        let is_version = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        EMPTY_NAMES.contains(&name) || version.is_some_and(is_version)
    };
    for part in path.iter().filter_map(|part| part.to_str()) {
        let name = part.split('.').next().unwrap_or(part);
        if says_nothing(name) {
            faults.push(Fault::new(path, 1, format!("'{name}' does not say what the module hides")));
        }
    }
    for (index, line) in source.iter().flat_map(|source| source.code.iter().enumerate()) {
        let Some(start) = find_word(line, "mod") else { continue };
        let name: String = line[start + 3..].trim().chars().take_while(|&c| c == '_' || c.is_alphanumeric()).collect();
        if says_nothing(&name) {
            faults.push(Fault::new(path, index + 1, format!("'{name}' does not say what the module hides")));
        }
    }
}

/// A Rust file opens with its module doc; one comment line (a licence tag) and crate attributes may stand before it.
pub fn module_doc(path: &Path, source: &Source, faults: &mut Vec<Fault>) {
    let before = |line: &&String| line.trim().is_empty() || line.starts_with("// SPDX") || line.starts_with("#!");
    let first = source.raw.iter().find(|line| !before(line));
    if !first.is_some_and(|line| line.starts_with("//!") && line.len() > 4) {
        faults.push(Fault::new(path, 1, "no module doc: the file starts with `//!` and what it is for"));
    }
}

/// No macros of unfinished or temporary code, no tests that are skipped or pass by failing.
pub fn leftover_code(path: &Path, source: &Source, faults: &mut Vec<Fault>) {
    for (index, line) in source.code.iter().enumerate() {
        for (text, why) in LEFTOVER_CODE {
            let found = if text.starts_with('#') { line.find(text) } else { find_word(line, text) };
            if found.is_some() {
                faults.push(Fault::new(path, index + 1, format!("{text}: {why}")));
            }
        }
        for fence in LEFTOVER_FENCES.into_iter().filter(|fence| source.raw[index].contains(fence)) {
            faults.push(Fault::new(path, index + 1, format!("{fence}: an example runs or is no example")));
        }
    }
}

/// A function is at most [`MAX_FUNCTION_LINES`] long, from its `fn` to its closing brace.
pub fn function_lengths(path: &Path, source: &Source, faults: &mut Vec<Fault>) {
    for (first, line) in source.code.iter().enumerate() {
        let Some(start) = find_word(line, "fn") else { continue };
        let name: String =
            line[start + 2..].trim_start().chars().take_while(|&c| c == '_' || c.is_alphanumeric()).collect();
        if name.is_empty() {
            continue; // a function pointer's type
        }
        let Some(last) = body_end(&source.code[first..], start).map(|lines| first + lines) else { continue };
        report_function(path, &name, first, last, faults);
    }
}

fn report_function(path: &Path, name: &str, first: usize, last: usize, faults: &mut Vec<Fault>) {
    let num_lines = last - first + 1;
    if num_lines > MAX_FUNCTION_LINES {
        let message = format!("fn {name} has {num_lines} lines, at most {MAX_FUNCTION_LINES}");
        faults.push(Fault::new(path, first + 1, message));
    }
}

/// The index of the line on which a body ends that begins after column `start` of the first line. `None` for a
/// declaration.
fn body_end(code: &[String], start: usize) -> Option<usize> {
    let (mut brackets, mut braces) = (0_i32, 0_i32);
    for (index, line) in code.iter().enumerate() {
        for c in line[if index == 0 { start } else { 0 }..].chars() {
            match c {
                '(' | '[' => brackets += 1,
                ')' | ']' => brackets -= 1,
                '{' => braces += 1,
                '}' if braces == 1 && brackets == 0 => return Some(index),
                '}' => braces -= 1,
                ';' if braces == 0 && brackets == 0 => return None,
                _ => {}
            }
        }
    }
    None
}

/// A Python function is at most [`MAX_FUNCTION_LINES`] long, from its `def` to its last indented line.
pub fn python_function_lengths(path: &Path, lines: &[String], faults: &mut Vec<Fault>) {
    let indent = |line: &str| line.len() - line.trim_start().len();
    for (first, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        let Some(rest) = text.strip_prefix("def ").or_else(|| text.strip_prefix("async def ")) else { continue };
        let name = rest.split('(').next().unwrap_or(rest);
        let mut last = first;
        for (index, below) in lines.iter().enumerate().skip(first + 1).filter(|(_, below)| !below.trim().is_empty()) {
            if indent(below) <= indent(line) && !below.trim_start().starts_with(')') {
                break;
            }
            last = index;
        }
        report_function(path, name, first, last, faults);
    }
}

/// The root of a crate without unsafe code forbids it.
pub fn forbids_unsafe(path: &Path, source: &Source, faults: &mut Vec<Fault>) {
    if !source.code.iter().any(|line| line.trim() == "#![forbid(unsafe_code)]") {
        faults.push(Fault::new(path, 1, "the root of a crate without unsafe code says #![forbid(unsafe_code)]"));
    }
}

/// Every unsafe block and impl follows a `SAFETY:` comment; every unsafe function and trait has a `# Safety` section.
pub fn safety_comments(path: &Path, source: &Source, faults: &mut Vec<Fault>) {
    for (index, line) in source.code.iter().enumerate() {
        let Some(start) = find_word(line, "unsafe") else { continue };
        let rest = line[start + "unsafe".len()..].trim_start();
        if rest.starts_with("fn(") || rest.starts_with("fn (") || rest.starts_with(')') {
            continue; // a function pointer's type, or a lint's or attribute's argument
        }
        let declares = ["fn ", "trait ", "extern "].iter().any(|word| rest.starts_with(word));
        if declares && is_in_trait_impl(&source.code, index) {
            continue; // the trait's own documentation says what its caller owes
        }
        let comment = comment_above(source, index);
        if !(comment.contains("SAFETY:") || declares && comment.contains("# Safety")) {
            let wanted = if declares { "a `# Safety` section" } else { "a `// SAFETY:` comment" };
            faults.push(Fault::new(path, index + 1, format!("unsafe without {wanted} above it")));
        }
    }
}

/// Whether the line belongs directly to an `impl Trait for Type`.
fn is_in_trait_impl(code: &[String], index: usize) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let outer = code[..index].iter().rev().find(|line| !line.trim().is_empty() && indent(line) < indent(&code[index]));
    outer.is_some_and(|line| find_word(line, "impl").is_some() && find_word(line, "for").is_some())
}

/// The comments on a line and above it, up to the end of the statement or item before.
fn comment_above(source: &Source, index: usize) -> String {
    let mut comment = String::new();
    for above in (0..=index).rev() {
        let (raw, code) = (source.raw[above].trim(), source.code[above].trim());
        let is_attribute = code.starts_with("#[") || code.ends_with(")]");
        let ends_something = raw.is_empty() || code.ends_with([';', '{', '}']) && !is_attribute;
        if above < index && ends_something {
            break;
        }
        if let Some(start) = raw.find("//") {
            comment.push_str(&raw[start..]);
            comment.push('\n');
        }
    }
    comment
}

#[cfg(test)]
mod tests;
