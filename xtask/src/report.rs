//! Tables of the [measures](crate::measures), so that a contributor sees where to begin.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::idioms::Idiom;
use crate::measures::{Counts, Find, Measure, crate_of};

/// The files that each list names.
const MAX_FILES: usize = 15;
/// The columns for idioms, in comments and in documents.
const IDIOMS: [(Idiom, &str); 4] = [
    (Idiom::Person, "person"),
    (Idiom::Amount, "amount"),
    (Idiom::Inversion, "inversion"),
    (Idiom::LongSentence, "long sentence"),
];

/// Every place at or below `under`, one a line, in the form of a fault.
pub fn places(counts: &Counts, under: &Path) -> String {
    let mut out = String::new();
    for find in counts.finds.iter().filter(|find| find.path.starts_with(under)) {
        writeln!(out, "{}:{}: {}: {}", find.path.display(), find.line, find.measure.key(), find.what).unwrap();
    }
    out
}

/// The counts by crate, the documents and source files with the most, and the most frequent type names.
pub fn tables(counts: &Counts) -> String {
    let mut out = String::from("Comments of crates/*/src: count (per 1,000 comment lines); names: count\n");
    let mut num_lines: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, lines) in &counts.num_comment_lines {
        *num_lines.entry(crate_name(path)).or_default() += lines;
    }
    write!(out, "{:<10}{:>8}", "crate", "lines").unwrap();
    IDIOMS.iter().for_each(|(_, title)| write!(out, "{title:>16}").unwrap());
    writeln!(out, "{:>14}{:>12}", "shared types", "long tests").unwrap();
    for (name, lines) in &num_lines {
        let finds: Vec<_> = counts.finds.iter().filter(|find| crate_name(&find.path) == *name).collect();
        crate_row(&mut out, name, *lines, &finds);
    }
    crate_row(&mut out, "all", num_lines.values().sum(), &counts.finds.iter().collect::<Vec<_>>());
    let in_documents = |find: &&Find| matches!(find.measure, Measure::InDocuments(_));
    worst(&mut out, "Documents", counts.finds.iter().filter(in_documents));
    worst(&mut out, "Rust files", counts.finds.iter().filter(|find| !in_documents(find)));
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for find in counts.finds.iter().filter(|find| find.measure == Measure::SharedTypeName) {
        *names.entry(find.what.as_str()).or_default() += 1;
    }
    let names = by_count(names).into_iter().take(MAX_FILES).map(|(name, _)| name);
    writeln!(out, "\nShared type names: {}", names.collect::<Vec<_>>().join(", ")).unwrap();
    out
}

fn crate_name(path: &Path) -> &str {
    crate_of(path).map_or("", |(name, _)| name)
}

fn crate_row(out: &mut String, name: &str, num_lines: usize, finds: &[&Find]) {
    let count = |measure| finds.iter().filter(|find| find.measure == measure).count();
    write!(out, "{name:<10}{num_lines:>8}").unwrap();
    for (idiom, _) in IDIOMS {
        let count = count(Measure::InComments(idiom));
        let rate = count as f64 * 1_000.0 / num_lines.max(1) as f64;
        write!(out, "{:>16}", format!("{count} ({rate:.1})")).unwrap();
    }
    writeln!(out, "{:>14}{:>12}", count(Measure::SharedTypeName), count(Measure::LongTestName)).unwrap();
}

/// The files with the most finds, and how often each measure counts there.
fn worst<'a>(out: &mut String, title: &str, finds: impl Iterator<Item = &'a Find>) {
    let mut files: BTreeMap<&Path, BTreeMap<Measure, usize>> = BTreeMap::new();
    for find in finds {
        *files.entry(&find.path).or_default().entry(find.measure).or_default() += 1;
    }
    let totals = files.iter().map(|(path, measures)| (*path, measures.values().sum())).collect();
    writeln!(out, "\n{title} with the most:").unwrap();
    for (path, total) in by_count(totals).into_iter().take(MAX_FILES) {
        let measures = files[path].iter().map(|(measure, count)| format!("{} {count}", measure.key()));
        writeln!(out, "{total:>6}  {}: {}", path.display(), measures.collect::<Vec<_>>().join(", ")).unwrap();
    }
}

/// The largest count first.
fn by_count<K: Ord>(counts: BTreeMap<K, usize>) -> Vec<(K, usize)> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn counts() -> Counts {
        let snapshots = "// Of a page.\n// So far.\nstruct Found;\n";
        let files = [
            ("crates/snapshots/src/a.rs", snapshots),
            ("crates/cli/src/b.rs", "// Fine.\n"),
            ("crates/cli/src/c.rs", "struct Found;\n"),
            ("docs/d.md", "Of a page.\n"),
        ];
        Counts::of(&Tree::of(&files))
    }

    #[test]
    fn tables_have_crates_and_worst_files() {
        let text = tables(&counts());
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let has = |row: &str| rows.contains(&row.split(' ').collect());
        assert!(has("cli 1 0 (0.0) 0 (0.0) 0 (0.0) 0 (0.0) 1 0"), "{text}");
        assert!(has("snapshots 2 0 (0.0) 1 (500.0) 1 (500.0) 0 (0.0) 1 0"), "{text}");
        assert!(has("all 3 0 (0.0) 1 (333.3) 1 (333.3) 0 (0.0) 2 0"), "{text}");
        assert!(has("1 docs/d.md: document-inversion 1"), "{text}");
        assert!(
            has("3 crates/snapshots/src/a.rs: comment-amount 1, comment-inversion 1, shared-type-name 1"),
            "{text}"
        );
        assert!(text.ends_with("Shared type names: Found (2 times)\n"), "{text}");
    }

    #[test]
    fn places_are_those_below_a_path() {
        let expected = "crates/cli/src/c.rs:1: shared-type-name: Found (2 times)\n";
        assert_eq!(places(&counts(), Path::new("crates/cli")), expected);
        assert_eq!(places(&counts(), Path::new("crates/c")), "");
    }
}
