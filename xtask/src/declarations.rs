//! Names that a Rust file declares, found by their keywords in code without comments and strings.

use std::collections::BTreeSet;

const KEYWORDS: [&str; 10] =
    ["fn", "struct", "enum", "trait", "type", "union", "const", "static", "mod", "macro_rules!"];
const TYPE_KEYWORDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// The names that a file declares, and the types of its `impl` blocks.
#[derive(Debug)]
pub struct Declarations {
    names: BTreeSet<String>,
}

impl Declarations {
    /// Reads the lines of a [`Source`](crate::source::Source).
    pub fn of(code: &[String]) -> Self {
        let text = code.join("\n");
        let mut names = BTreeSet::new();
        let mut before = "";
        let mut is_impl_header = false;
        for word in words(&text) {
            // `impl` also stands in signatures, where it names types of other files.
            let begins_item = word == "impl" && ["", "{", "}", ";", "]", "unsafe"].contains(&before);
            is_impl_header = (is_impl_header || begins_item) && !["{", "where"].contains(&word);
            if is_impl_header || KEYWORDS.contains(&before) {
                names.insert(word.to_owned());
            }
            before = word;
        }
        Self { names }
    }

    /// Whether the file declares the name, or has an `impl` block that names it.
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

/// Names and keywords; every other character is a word of its own. `macro_rules!` is one word.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c == '_' || c == '!' || c.is_alphanumeric();
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let length = rest.find(|c| !is_part(c)).map_or(rest.len(), |length| length.max(first.len_utf8()));
        let (word, after) = rest.split_at(length);
        rest = after;
        Some(word)
    })
}

/// The types that the lines declare, with their lines, counted from 1. Associated types and aliases inside blocks are
/// part of the item around them, so they do not count.
pub fn types(code: &[String]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in code.iter().enumerate() {
        let mut before = "";
        for word in words(line) {
            let is_type = TYPE_KEYWORDS.contains(&before) && word.starts_with(char::is_uppercase);
            if is_type && !(before == "type" && line.starts_with(' ')) {
                found.push((index + 1, word.to_owned()));
                break;
            }
            before = word;
        }
    }
    found
}

/// The public names at the root of a file, with their lines, counted from 1: items, modules, and each name of a
/// `pub use`. A glob counts as the name `*`.
pub fn public_names(code: &[String]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_use = false;
    // The last word of a path is a name only if nothing follows it in the path.
    let mut last: Option<&str> = None;
    for (index, line) in code.iter().enumerate() {
        // Items inside blocks are indented.
        let rest = match line.strip_prefix("pub ") {
            Some(rest) if !is_use => rest.trim_start(),
            _ if is_use => line.as_str(),
            _ => continue,
        };
        let mut before = "";
        is_use |= rest.starts_with("use ");
        for word in words(rest) {
            match word {
                _ if !is_use => {
                    if KEYWORDS.contains(&before) && !KEYWORDS.contains(&word) {
                        found.push((index + 1, word.to_owned()));
                        break;
                    }
                    before = word;
                }
                "," | "}" | ";" => {
                    found.extend(last.take().map(|name| (index + 1, name.to_owned())));
                    is_use = word != ";";
                }
                "use" | "as" | ":" | "{" => last = None,
                name => last = Some(name),
            }
        }
    }
    found
}

/// The functions with the attribute `#[test]`, with their lines, counted from 1.
pub fn tests(code: &[String]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_test = false;
    for (index, line) in code.iter().enumerate() {
        let line = line.trim();
        is_test |= line.starts_with("#[test]");
        let mut words = words(line).skip_while(|word| *word != "fn").skip(1);
        if let Some(name) = words.next().filter(|_| is_test) {
            found.push((index + 1, name.to_owned()));
            is_test = false;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn code(text: &str) -> Vec<String> {
        Source::new(text).code
    }

    #[test]
    fn every_kind_of_declaration_counts() {
        let text = "pub(crate) fn a<T>() {}\nconst B: u8 = 1;\nmacro_rules! c { () => {} }\nmod d;\nenum E { V }\n\
                    impl<T>\n    F<T> for crate::G\nwhere T: H {\n    fn i() -> impl J {}\n}\n";
        let found = Declarations::of(&code(text));
        for name in ["a", "B", "c", "d", "E", "F", "G", "i"] {
            assert!(found.has(name), "{name}");
        }
        for name in ["V", "H", "J", "u8"] {
            assert!(!found.has(name), "{name}");
        }
    }

    #[test]
    fn types_are_declared_outside_impl_blocks() {
        let text = "pub struct A<T>(T);\n// struct B;\npub(crate) unsafe trait C {\n    type D;\n    struct $name;\n}\n\
                    type E = u8;\nfn f() {\n    enum G {}\n}\nlet kind = 1;\n";
        let expected = [(1, "A"), (3, "C"), (7, "E"), (9, "G")];
        assert_eq!(types(&code(text)), expected.map(|(line, name)| (line, name.to_owned())));
    }

    #[test]
    fn public_names_stand_at_the_root() {
        let text = "pub mod a;\nmod b;\nuse c::D;\npub(crate) use e::F;\npub use g::H;\npub use i::{J, k::{L as M, N},\n    \
                    o::P,\n};\npub use q::*;\npub const fn r() {\n    pub struct S;\n}\n// pub struct T;\npub struct U;\n";
        let expected = [(1, "a"), (5, "H"), (6, "J"), (6, "M"), (6, "N"), (7, "P"), (9, "*"), (10, "r"), (14, "U")];
        assert_eq!(public_names(&code(text)), expected.map(|(line, name)| (line, name.to_owned())));
    }

    #[test]
    fn test_functions_bear_the_attribute() {
        let text = "#[test]\n#[cfg(unix)]\nfn a_b() {}\nfn c() {}\n    #[test] fn d(x in 0..1) {}\n";
        assert_eq!(tests(&code(text)), [(3, "a_b".to_owned()), (5, "d".to_owned())]);
    }
}
