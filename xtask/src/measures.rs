//! Counts over the whole tree: idioms in comments and documents, shared type names, long test names, names of the
//! façade.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::declarations;
use crate::idioms::{self, Idiom};
use crate::prose::{self, Sentence};
use crate::source::Source;
use crate::tree::{Tree, has_extension};

/// The crates that users run. The others serve development only.
const PRODUCT_CRATES: [&str; 9] =
    ["base", "graph", "formats", "snapshots", "memtable", "kernels", "engine", "anden", "cli"];
/// Every crate has its own type of these names.
const COMMON_TYPE_NAMES: [&str; 2] = ["Error", "Result"];
/// The root of the public API.
const FACADE: &str = "crates/anden/src/lib.rs";
/// The most words of a test's name.
const MAX_TEST_NAME_WORDS: usize = 9;

/// A count over the whole tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// An idiom in the comments of `crates/*/src`.
    InComments(Idiom),
    /// An idiom in a Markdown file.
    InDocuments(Idiom),
    /// A struct, enum, trait or type of a product crate with the name of another one.
    SharedTypeName,
    /// A test of a product crate with a name of more than nine words.
    LongTestName,
    /// A public name at the root of the façade.
    FacadeName,
}

impl Measure {
    /// All measures, in the order of the limits file.
    pub const ALL: [Self; 11] = [
        Self::InComments(Idiom::Person),
        Self::InComments(Idiom::Amount),
        Self::InComments(Idiom::Inversion),
        Self::InComments(Idiom::LongSentence),
        Self::InDocuments(Idiom::Person),
        Self::InDocuments(Idiom::Amount),
        Self::InDocuments(Idiom::Inversion),
        Self::InDocuments(Idiom::LongSentence),
        Self::SharedTypeName,
        Self::LongTestName,
        Self::FacadeName,
    ];

    /// The name in the limits file.
    pub fn key(self) -> &'static str {
        match self {
            Self::InComments(Idiom::Person) => "comment-person",
            Self::InComments(Idiom::Amount) => "comment-amount",
            Self::InComments(Idiom::Inversion) => "comment-inversion",
            Self::InComments(Idiom::LongSentence) => "comment-long-sentence",
            Self::InDocuments(Idiom::Person) => "document-person",
            Self::InDocuments(Idiom::Amount) => "document-amount",
            Self::InDocuments(Idiom::Inversion) => "document-inversion",
            Self::InDocuments(Idiom::LongSentence) => "document-long-sentence",
            Self::SharedTypeName => "shared-type-name",
            Self::LongTestName => "long-test-name",
            Self::FacadeName => "facade-name",
        }
    }
}

/// A place that a measure counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Find {
    /// The file, relative to the root.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// The measure.
    pub measure: Measure,
    /// The words or the name.
    pub what: String,
}

/// All finds of a tree.
#[derive(Debug, Default)]
pub struct Counts {
    /// Ordered by path and line.
    pub finds: Vec<Find>,
    /// The number of comment lines of each file in `crates/*/src`.
    pub num_comment_lines: BTreeMap<PathBuf, usize>,
}

impl Counts {
    /// Reads every Markdown file, and every Rust file of the crates.
    pub fn of(tree: &Tree) -> Self {
        let mut counts = Self::default();
        let mut types: BTreeMap<String, Vec<(PathBuf, usize)>> = BTreeMap::new();
        for (path, text) in tree.texts() {
            if has_extension(path, &["md"]) {
                counts.add_idioms(path, &prose::of_document(text), Measure::InDocuments);
            }
            let Some((crate_name, folder)) = crate_of(path).filter(|_| has_extension(path, &["rs"])) else { continue };
            let source = Source::new(text);
            if path == Path::new(FACADE) {
                for (line, name) in declarations::public_names(source.code_before_tests()) {
                    counts.add(path, line, Measure::FacadeName, name);
                }
            }
            if folder == "src" {
                counts.add_comments(path, &source);
            }
            if PRODUCT_CRATES.contains(&crate_name) {
                counts.add_tests(path, &source);
                if folder == "src" && !is_test_module(path) {
                    for (line, name) in declarations::types(source.code_before_tests()) {
                        types.entry(name).or_default().push((path.to_path_buf(), line));
                    }
                }
            }
        }
        counts.add_types(types);
        counts.finds.sort();
        counts
    }

    /// The number of finds of the measure.
    pub fn count(&self, measure: Measure) -> usize {
        self.finds.iter().filter(|find| find.measure == measure).count()
    }

    fn add(&mut self, path: &Path, line: usize, measure: Measure, what: String) {
        self.finds.push(Find { path: path.to_path_buf(), line, measure, what });
    }

    fn add_idioms(&mut self, path: &Path, sentences: &[Sentence], measure: fn(Idiom) -> Measure) {
        for sentence in sentences {
            for (idiom, what) in idioms::find(sentence) {
                self.add(path, sentence.line, measure(idiom), what);
            }
        }
    }

    fn add_comments(&mut self, path: &Path, source: &Source) {
        let num_lines = source.comments.iter().filter(|line| !line.trim().is_empty()).count();
        self.num_comment_lines.insert(path.to_path_buf(), num_lines);
        self.add_idioms(path, &prose::of_comments(source), Measure::InComments);
    }

    fn add_tests(&mut self, path: &Path, source: &Source) {
        for (line, name) in declarations::tests(&source.code) {
            if name.split('_').filter(|word| !word.is_empty()).count() > MAX_TEST_NAME_WORDS {
                self.add(path, line, Measure::LongTestName, name);
            }
        }
    }

    fn add_types(&mut self, types: BTreeMap<String, Vec<(PathBuf, usize)>>) {
        for (name, places) in types {
            if places.len() > 1 && !COMMON_TYPE_NAMES.contains(&name.as_str()) {
                for (path, line) in &places {
                    self.add(path, *line, Measure::SharedTypeName, format!("{name} ({} times)", places.len()));
                }
            }
        }
    }
}

/// The folder of the crate below `crates`, and the next folder: `crates/snapshots/src/view.rs` gives `snapshots` and
/// `src`.
pub fn crate_of(path: &Path) -> Option<(&str, &str)> {
    let mut parts = path.strip_prefix("crates").ok()?.iter().filter_map(|part| part.to_str());
    Some((parts.next()?, parts.next()?))
}

fn is_test_module(path: &Path) -> bool {
    path.iter().any(|part| part == "tests" || part == "tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(files: &[(&str, &str)]) -> Vec<String> {
        let show = |find: &Find| format!("{}:{}: {}", find.path.display(), find.line, find.measure.key());
        Counts::of(&Tree::of(files)).finds.iter().map(show).collect()
    }

    #[test]
    fn idioms_are_counted_in_comments_and_documents() {
        let comments = "//! Doc.\n//! Of a page, so far.\nfn f() {\n    g(\"Of it\"); // Of it\n}\n";
        let files = [
            ("crates/bench/src/a.rs", comments),
            ("crates/bench/tests/b.rs", comments),
            ("xtask/c.rs", comments),
            ("docs/d.md", "Of a page.\n"),
        ];
        assert_eq!(
            finds(&files),
            [
                "crates/bench/src/a.rs:2: comment-amount",
                "crates/bench/src/a.rs:2: comment-inversion",
                "crates/bench/src/a.rs:4: comment-inversion",
                "docs/d.md:1: document-inversion",
            ]
        );
        let counts = Counts::of(&Tree::of(&files));
        assert_eq!(counts.num_comment_lines, [(PathBuf::from("crates/bench/src/a.rs"), 3)].into());
    }

    #[test]
    fn shared_type_names_are_counted_across_product_crates() {
        let first = "struct Found;\nenum Error {}\nmod tests {\n    struct Other;\n}\n";
        let second = "pub type Found = u8;\nenum Error {}\nstruct Other;\n";
        let files = [("crates/snapshots/src/a.rs", first), ("crates/cli/src/b.rs", second)];
        assert_eq!(
            finds(&files),
            ["crates/cli/src/b.rs:1: shared-type-name", "crates/snapshots/src/a.rs:1: shared-type-name"]
        );
        let apart = [
            ("crates/snapshots/src/a.rs", first),
            ("crates/bench/src/b.rs", second),
            ("crates/cli/src/tests.rs", second),
            ("crates/cli/tests/c.rs", second),
            ("crates/cli/benches/d.rs", second),
            ("crates/cli/src/e/tests/f.rs", second),
        ];
        assert_eq!(finds(&apart), [""; 0]);
    }

    #[test]
    fn public_names_are_counted_in_the_facade() {
        let text = "//! Doc.\npub mod a;\nmod b;\npub use c::{D, e::F};\npub(crate) use g::H;\n";
        let files =
            [("crates/anden/src/lib.rs", text), ("crates/anden/src/a.rs", text), ("crates/cli/src/lib.rs", text)];
        let lines = ["2", "4", "4"].map(|line| format!("crates/anden/src/lib.rs:{line}: facade-name"));
        assert_eq!(finds(&files), lines);
    }

    #[test]
    fn test_names_have_at_most_nine_words() {
        let text = "#[test]\nfn a_b_c_d_e_f_g_h_i() {}\n#[test]\nfn a_b_c_d_e_f_g_h_i_j() {}\n";
        let files = [("crates/cli/tests/all/a.rs", text), ("crates/testkit/src/a.rs", text)];
        assert_eq!(finds(&files), ["crates/cli/tests/all/a.rs:4: long-test-name"]);
    }
}
