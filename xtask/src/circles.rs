//! Import circles among the modules of a crate: a module may not need one that needs it, directly or through others.
//!
//! The root manifest lists the checked crates (`[workspace.metadata] without-circles`). A module is the target of a
//! `mod` line of `lib.rs`, with all files below it. It needs the modules that its code names as `crate::…`, also
//! through names that `lib.rs` re-exports. The root itself is no module, and tests at the end of a file are exempt.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::Fault;
use crate::source::Source;

/// The needs of a module: for each other module, the first file and line that names it.
type Needs = BTreeMap<String, (PathBuf, usize)>;

/// The circles of the crate with the sources in `folder`, a path relative to `root`.
pub fn check_crate(root: &Path, folder: &Path) -> Result<Vec<Fault>> {
    let lib = folder.join("lib.rs");
    let text = fs::read_to_string(root.join(&lib)).with_context(|| format!("cannot read {}", lib.display()))?;
    let exports = exports(&Source::new(&text).code_before_tests().join("\n"));
    let mut modules: BTreeMap<String, Needs> = BTreeMap::new();
    for module in exports.values().collect::<BTreeSet<_>>() {
        let needs = modules.entry(module.clone()).or_default();
        for path in files_of(root, folder, module)? {
            let text = fs::read_to_string(root.join(&path))?;
            for (line, name) in named(Source::new(&text).code_before_tests()) {
                if let Some(other) = exports.get(&name).filter(|other| *other != module) {
                    needs.entry(other.clone()).or_insert_with(|| (path.clone(), line));
                }
            }
        }
    }
    Ok(circles(&modules))
}

/// The module of each name: modules themselves, and the names that the root re-exports.
fn exports(lib: &str) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for statement in lib.split(';') {
        let statement = statement.rsplit(['}', ']']).find(|part| !part.trim().is_empty()).map_or("", str::trim);
        let statement = statement.strip_prefix("pub ").unwrap_or(statement);
        if let Some(module) = statement.strip_prefix("mod ") {
            exports.insert(module.to_owned(), module.to_owned());
        }
    }
    for statement in lib.split(';').filter_map(|statement| statement.split_once("pub use ")) {
        let mut names = words(statement.1);
        let Some(module) = names.next().filter(|module| exports.contains_key(*module)) else { continue };
        let module = module.to_owned();
        names.for_each(|name| drop(exports.insert(name.to_owned(), module.clone())));
    }
    exports
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c != '_' && !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// The files of a module.
fn files_of(root: &Path, folder: &Path, module: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.join(module)];
    let file = folder.join(module).with_extension("rs");
    files.extend(root.join(&file).exists().then_some(file));
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(root.join(&folder)) else { continue };
        for entry in entries {
            let path = folder.join(entry?.file_name());
            match root.join(&path).is_dir() {
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs"));
    files.sort();
    Ok(files)
}

/// The first name after each `crate::`, with its line, counted from 1.
fn named(code: &[String]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in code.iter().enumerate() {
        for (at, _) in line.match_indices("crate::") {
            let rest = &line[at + "crate::".len()..];
            if !rest.starts_with('{') {
                found.extend(words(rest).next().map(|name| (index + 1, name.to_owned())));
                continue;
            }
            // A list may continue on the lines below. Names in nested lists do not belong to the root.
            let mut depth = 0;
            let text = [&[rest.to_owned()][..], &code[index + 1..]].concat().join("\n");
            let mut names = String::new();
            for c in text.chars() {
                depth += i32::from(c == '{') - i32::from(c == '}');
                match depth {
                    0 => break,
                    1 => names.push(c),
                    _ => {}
                }
            }
            let first = |item: &str| words(item).next().map(|name| (index + 1, name.to_owned()));
            found.extend(names.split(',').filter_map(first));
        }
    }
    found
}

/// One fault for each module that needs itself through others, at the first name on the way.
fn circles(modules: &BTreeMap<String, Needs>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (module, needs) in modules {
        for (other, (path, line)) in needs {
            if leads_to(modules, other, module) {
                let message = format!("a circle: {module} needs {other}, which needs {module}, perhaps through others");
                faults.push(Fault::new(path, *line, message));
            }
        }
    }
    faults
}

fn leads_to(modules: &BTreeMap<String, Needs>, from: &str, to: &str) -> bool {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(module) = next.pop() {
        if module == to {
            return true;
        }
        if seen.insert(module) {
            next.extend(modules.get(module).into_iter().flat_map(Needs::keys).map(String::as_str));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)]) -> Vec<String> {
        let folder = std::env::temp_dir().join(format!("xtask-circles-{}-{}", std::process::id(), files.len()));
        for (name, text) in files {
            let path = folder.join("src").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let faults = check_crate(&folder, Path::new("src"));
        fs::remove_dir_all(&folder).unwrap();
        faults.unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_circle_is_found_through_names_of_the_root() {
        let lib =
            ("lib.rs", "//! Of all.\n#![forbid(unsafe_code)]\n\nmod a;\nmod b;\npub mod c;\n\npub use c::{Of, Z};\n");
        let a = ("a.rs", "use crate::b::{B, Of};\nuse std::fmt;\n");
        let b = ("b/deep.rs", "// use crate::a;\nfn f() {\n    let _ = \"crate::a\";\n    crate::x::g()\n}\n");
        let c =
            ("c.rs", "use crate::{\n    Z,\n    d::{A, b},\n};\n\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n");
        assert_eq!(check(&[lib, a, b, c]), [""; 0]);
        let of_root = ("b.rs", "mod deep;\nuse crate::{\n    x,\n    Of,\n};\n");
        let back = ("c/more.rs", "fn f() {\n    crate::a::g()\n}\n");
        assert_eq!(
            check(&[lib, a, b, c, of_root, back]),
            [
                "src/a.rs:1: a circle: a needs b, which needs a, perhaps through others",
                "src/b.rs:2: a circle: b needs c, which needs b, perhaps through others",
                "src/c/more.rs:2: a circle: c needs a, which needs c, perhaps through others",
            ]
        );
    }
}
