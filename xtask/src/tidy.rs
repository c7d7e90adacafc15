//! The files to which each rule of style applies, and the rules over the whole tree.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::measures::Counts;
use crate::source::{Source, find_word};
use crate::tree::{Tree, has_extension};
use crate::{Fault, defences, documents, ratchet, report, rules};

/// The crate with unsafe code: it owns mapped memory, SIMD and unchecked reads behind safe functions.
const UNSAFE_CRATE: &str = "crates/base";
/// The only other module with unsafe code: the memory of the memtable, which readers share with the writer.
const UNSAFE_MODULE: &str = "crates/memtable/src/arena.rs";
/// A test that forks: no crate has a safe function for that.
const UNSAFE_TEST: &str = "crates/engine/tests/forked.rs";
/// The bindings of Python by which arrays are shared without a copy: the memory of NumPy, and the C interface of Arrow.
const UNSAFE_BINDINGS: [&str; 2] = ["crates/python/src/csr.rs", "crates/python/src/input.rs"];
/// The roots above these modules, which deny unsafe code elsewhere.
const UNSAFE_MODULE_ROOTS: [&str; 2] = ["crates/memtable/src/lib.rs", "crates/python/src/lib.rs"];
/// The maximum of the median length of Rust files.
const MAX_MEDIAN_LINES: usize = 250;

/// Checks every file of the checkout that git does not ignore. Returns the faults and a summary line.
pub fn check_tree(root: &Path) -> Result<(Vec<Fault>, String)> {
    let mut faults = Vec::new();
    let mut lengths = Vec::new();
    let tree = Tree::read(root)?;
    documents::check(&tree, &mut faults);
    ratchet::check(&tree, &Counts::of(&tree), &mut faults);
    for (path, text) in tree.texts() {
        check_file(path, text, &mut faults);
        if path == Path::new(defences::TABLE) {
            defences::check_table(&tree, text, &mut faults);
        }
        if is_rust(path) {
            lengths.push(text.lines().count());
        }
    }
    lengths.sort_unstable();
    let median = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    if median > MAX_MEDIAN_LINES {
        let message = format!("the median Rust file has {median} lines, at most {MAX_MEDIAN_LINES}");
        faults.push(Fault::new(Path::new("."), 1, message));
    }
    let longest = lengths.last().copied().unwrap_or(0);
    Ok((faults, format!("{} Rust files, median {median} lines, longest {longest}", lengths.len())))
}

/// The counts of all measures as tables, or the counted places at or below `under` if that is given.
pub fn counts(root: &Path, under: Option<&str>) -> Result<String> {
    let counts = Counts::of(&Tree::read(root)?);
    Ok(under.map_or_else(|| report::tables(&counts), |under| report::places(&counts, Path::new(under))))
}

/// Lowers the limits of the measures to today's counts. Returns a line for each lowered limit.
pub fn lower(root: &Path) -> Result<String> {
    let tree = Tree::read(root)?;
    let (text, changes) = ratchet::lowered(&tree, &Counts::of(&tree));
    if changes.is_empty() {
        return Ok("no limit is above its count\n".to_owned());
    }
    fs::write(root.join(ratchet::LIMITS), text).with_context(|| format!("cannot write {}", ratchet::LIMITS))?;
    Ok(changes.join("\n") + "\n")
}

fn is_rust(path: &Path) -> bool {
    has_extension(path, &["rs"])
}

/// Whether the file is a program in any language, by its extension or by the known names without one.
fn is_code(path: &Path) -> bool {
    has_extension(path, &["rs", "py", "pyi", "sh"]) || path.ends_with("Makefile") || path.ends_with(".ci/run")
}

/// Whether the file is a crate root, whose attributes hold for the whole crate.
fn is_crate_root(path: &Path) -> bool {
    path.ends_with("src/lib.rs") || path.ends_with("src/main.rs")
}

fn check_file(path: &Path, text: &str, faults: &mut Vec<Fault>) {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if path != Path::new("Cargo.lock") {
        rules::leftover_markers(path, &lines, faults);
        rules::machine_paths(path, &lines, faults);
    }
    if is_code(path) {
        rules::file_length(path, lines.len(), faults);
    }
    if has_extension(path, &["py", "pyi"]) {
        rules::module_names(path, None, faults);
        rules::python_function_lengths(path, &lines, faults);
    }
    if is_rust(path) {
        check_rust(path, &Source::new(text), faults);
    }
}

fn check_rust(path: &Path, source: &Source, faults: &mut Vec<Fault>) {
    rules::module_names(path, Some(source), faults);
    rules::module_doc(path, source, faults);
    rules::leftover_code(path, source, faults);
    rules::function_lengths(path, source, faults);
    let mut homes = [UNSAFE_MODULE, UNSAFE_TEST].into_iter().chain(UNSAFE_BINDINGS);
    if path.starts_with(UNSAFE_CRATE) || homes.any(|home| path == Path::new(home)) {
        rules::safety_comments(path, source, faults);
        return;
    }
    if is_crate_root(path) && !UNSAFE_MODULE_ROOTS.iter().any(|root| path == Path::new(root)) {
        rules::forbids_unsafe(path, source, faults);
    }
    for (index, line) in source.code.iter().enumerate() {
        if find_word(line, "unsafe").is_some() {
            faults.push(Fault::new(path, index + 1, format!("unsafe code belongs to {UNSAFE_CRATE}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn check(path: &str, text: &str) -> Vec<String> {
        let mut faults = Vec::new();
        check_file(Path::new(path), text, &mut faults);
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn unsafe_code_has_its_homes() {
        let text = "//! Doc.\n// SAFETY: fine.\nfn f() { unsafe { g() } }\n";
        assert_eq!(check("crates/base/src/mapped.rs", text), [""; 0]);
        assert_eq!(check("crates/memtable/src/arena.rs", text), [""; 0]);
        assert_eq!(check("crates/engine/tests/forked.rs", text), [""; 0]);
        assert_eq!(check("crates/engine/tests/live.rs", text).len(), 1);
        assert_eq!(check("crates/memtable/src/batch.rs", text).len(), 1);
        assert_eq!(check("crates/memtable/src/arena.rs", "//! Doc.\nfn f() { unsafe { g() } }\n").len(), 1);
        assert_eq!(
            check("crates/snapshots/src/run.rs", text),
            ["crates/snapshots/src/run.rs:3: unsafe code belongs to crates/base"]
        );
        assert_eq!(check("crates/snapshots/src/run.rs", "//! Doc.\n#![deny(unsafe_code)]\n// unsafe\n"), [""; 0]);
    }

    #[test]
    fn only_crate_roots_outside_base_must_forbid_it() {
        assert_eq!(check("crates/snapshots/src/lib.rs", "//! Doc.\n").len(), 1);
        assert_eq!(check("xtask/src/main.rs", "//! Doc.\n").len(), 1);
        assert_eq!(check("crates/base/src/lib.rs", "//! Doc.\n").len(), 0);
        assert_eq!(check("crates/snapshots/src/run.rs", "//! Doc.\n").len(), 0);
    }

    #[test]
    fn word_rules_and_code_rules_differ_in_scope() {
        let marker = concat!("FIX", "ME\n");
        assert_eq!(check("docs/format.md", marker).len(), 1);
        assert_eq!(check("Makefile", marker).len(), 1);
        assert_eq!(check("Cargo.lock", marker).len(), 0);
        assert_eq!(check("docs/long.md", &"x\n".repeat(900)).len(), 0);
        for path in ["demo/a.py", "demo/run.sh", "Makefile", ".ci/run"] {
            assert_eq!(check(path, &"x\n".repeat(900)).len(), 1, "{path}");
        }
    }

    #[test]
    fn tree_includes_new_files_but_not_ignored_ones() {
        let folder = std::env::temp_dir().join(format!("xtask-tidy-{}", std::process::id()));
        fs::create_dir_all(folder.join("target")).unwrap();
        let git = Command::new("git").args(["init", "--quiet"]).current_dir(&folder).status().unwrap();
        assert!(git.success());
        for (name, text) in [(".gitignore", "/target\n"), ("target/a.rs", "bad"), ("b.rs", "bad"), ("c.rs", "//! Doc.")]
        {
            fs::write(folder.join(name), text).unwrap();
        }
        let checked = check_tree(&folder);
        fs::remove_dir_all(&folder).unwrap();
        let (faults, summary) = checked.unwrap();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!(faults[0].path, Path::new("b.rs"));
        assert_eq!(summary, "2 Rust files, median 1 lines, longest 1");
    }
}
