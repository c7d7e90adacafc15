//! Which files the rules of style apply to, and what the tree looks like as a whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::source::{Source, find_word};
use crate::{Fault, defences, rules};

/// The crate with unsafe code: it owns mapped memory, SIMD and unchecked reads behind safe functions.
const UNSAFE_CRATE: &str = "crates/base";
/// The one module with unsafe code elsewhere: the memory of the live graph, which readers share with its writer.
const UNSAFE_MODULE: &str = "crates/terrace/src/arena.rs";
/// A test that forks, for which no crate has a safe function.
const UNSAFE_TEST: &str = "crates/engine/tests/forked.rs";
/// The root above that module; it denies unsafe code and allows it there.
const UNSAFE_MODULE_ROOT: &str = "crates/terrace/src/lib.rs";
/// Half of the Rust files are shorter than this.
const MAX_MEDIAN_LINES: usize = 250;

/// Holds every file of the checkout that git does not ignore against the rules; gives faults and a line of summary.
pub fn check_tree(root: &Path) -> Result<(Vec<Fault>, String)> {
    let mut faults = Vec::new();
    let mut lengths = Vec::new();
    for path in files(root)? {
        let Ok(bytes) = fs::read(root.join(&path)) else { continue }; // removed, but not yet from the index
        let Some(text) = text_of(&bytes) else { continue };
        check_file(&path, text, &mut faults);
        if path == Path::new(defences::TABLE) {
            defences::check_table(root, text, &mut faults);
        }
        if is_rust(&path) {
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

/// What git tracks or would track: the new files of a change count before they are committed.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("cannot run git")?;
    if !output.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let list = String::from_utf8(output.stdout).context("a file's name is not UTF-8")?;
    Ok(list.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect())
}

/// The text, if the file is text: data and archives are none of our rules' business.
fn text_of(bytes: &[u8]) -> Option<&str> {
    let is_binary = bytes.iter().take(8192).any(|&byte| byte == 0);
    if is_binary { None } else { std::str::from_utf8(bytes).ok() }
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|found| extensions.contains(&found))
}

fn is_rust(path: &Path) -> bool {
    has_extension(path, &["rs"])
}

/// Programs of every language, by extension or, without one, by the names that such programs have here.
fn is_code(path: &Path) -> bool {
    has_extension(path, &["rs", "py", "pyi", "sh"]) || path.ends_with("Makefile") || path.ends_with(".ci/run")
}

/// A library's or program's first file, where attributes hold for the whole crate.
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
    if path.starts_with(UNSAFE_CRATE) || [UNSAFE_MODULE, UNSAFE_TEST].iter().any(|home| path == Path::new(home)) {
        rules::safety_comments(path, source, faults);
        return;
    }
    if is_crate_root(path) && path != Path::new(UNSAFE_MODULE_ROOT) {
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
        assert_eq!(check("crates/terrace/src/arena.rs", text), [""; 0]);
        assert_eq!(check("crates/engine/tests/forked.rs", text), [""; 0]);
        assert_eq!(check("crates/engine/tests/live.rs", text).len(), 1);
        assert_eq!(check("crates/terrace/src/batch.rs", text).len(), 1);
        assert_eq!(check("crates/terrace/src/arena.rs", "//! Doc.\nfn f() { unsafe { g() } }\n").len(), 1);
        assert_eq!(
            check("crates/lama/src/run.rs", text),
            ["crates/lama/src/run.rs:3: unsafe code belongs to crates/base"]
        );
        assert_eq!(check("crates/lama/src/run.rs", "//! Doc.\n#![deny(unsafe_code)]\n// unsafe\n"), [""; 0]);
    }

    #[test]
    fn only_crate_roots_outside_base_must_forbid_it() {
        assert_eq!(check("crates/lama/src/lib.rs", "//! Doc.\n").len(), 1);
        assert_eq!(check("xtask/src/main.rs", "//! Doc.\n").len(), 1);
        assert_eq!(check("crates/base/src/lib.rs", "//! Doc.\n").len(), 0);
        assert_eq!(check("crates/lama/src/run.rs", "//! Doc.\n").len(), 0);
    }

    #[test]
    fn rules_of_words_hold_for_every_text_and_rules_of_code_for_code() {
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
    fn data_is_not_read_as_text() {
        assert_eq!(text_of(b"a\0b"), None);
        assert_eq!(text_of(b"\xfd7zXZ"), None);
        assert_eq!(text_of("é".as_bytes()), Some("é"));
    }

    #[test]
    fn a_tree_is_listed_with_its_new_files_and_without_its_ignored_ones() {
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
