//! The names of files in a database directory.

use std::path::Path;

/// The list of what belongs to the database.
pub(crate) const MANIFEST: &str = "MANIFEST";

/// The file whose lock makes its holder the one writer.
pub(crate) const LOCK: &str = "LOCK";

/// Starts the names of files that are not part of the database yet, or never will be.
pub(crate) const TEMPORARY: &str = "tmp-";

const SCRATCH: &str = "scratch-";

/// The file that says how far the log was durable. No manifest names it, and whoever opens a store leaves it alone.
pub const LOG_MARK: &str = "LOG";

const RUN: &str = "run-";
const DICTIONARY: &str = "dict-";
const LEVEL: &str = "level-";
const COLUMN: &str = "column-";
const ROWS: &str = "rows-";
const INDEX: &str = "index-";
const LOG: &str = "wal-";

/// Digits of a number in a name, at least.
const NUMBER_DIGITS: usize = 6;

/// The name of a column of a run.
pub(crate) fn run(number: u32, column: &str) -> String {
    format!("{RUN}{number:0NUMBER_DIGITS$}-{column}")
}

/// The name of a part of the dictionary.
pub(crate) fn dictionary(number: u32) -> String {
    format!("{DICTIONARY}{number:0NUMBER_DIGITS$}")
}

/// The name of a file of levels.
pub(crate) fn level(number: u32) -> String {
    format!("{LEVEL}{number:0NUMBER_DIGITS$}")
}

/// The name of a file of a column of properties.
pub(crate) fn column(number: u32) -> String {
    format!("{COLUMN}{number:0NUMBER_DIGITS$}")
}

/// The name of a file of rows of properties.
pub(crate) fn rows(number: u32) -> String {
    format!("{ROWS}{number:0NUMBER_DIGITS$}")
}

/// The name of a part of an index.
pub(crate) fn index(number: u32) -> String {
    format!("{INDEX}{number:0NUMBER_DIGITS$}")
}

/// The name of a segment of the log. No manifest names it, and whoever opens a store leaves it alone.
pub fn log(number: u32) -> String {
    format!("{LOG}{number:0NUMBER_DIGITS$}")
}

/// The number in the name of a segment of the log; `None` where it is none.
pub fn log_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(LOG)?;
    let number = digits.parse().ok()?;
    (log(number) == name).then_some(number)
}

/// The name of a scratch file.
pub(crate) fn scratch(name: &str) -> String {
    format!("{TEMPORARY}{SCRATCH}{name}")
}

/// The name of `name` before it is published.
pub(crate) fn temporary(name: &str) -> String {
    format!("{TEMPORARY}{name}")
}

/// Whether a published file may have this name: the only names that a manifest may hold.
pub(crate) fn is_data(name: &str) -> bool {
    let rest = [RUN, DICTIONARY, LEVEL, COLUMN, ROWS, INDEX].into_iter().find_map(|prefix| name.strip_prefix(prefix));
    rest.is_some_and(|rest| {
        let is_plain = rest.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        is_plain && rest.bytes().take_while(u8::is_ascii_digit).count() >= NUMBER_DIGITS
    })
}

/// Whether a data file of this name belongs to a run.
pub(crate) fn is_run(name: &str) -> bool {
    name.starts_with(RUN)
}

/// Whether a data file of this name belongs to the dictionary.
pub(crate) fn is_dictionary(name: &str) -> bool {
    name.starts_with(DICTIONARY)
}

/// The number in the name of a data file.
pub(crate) fn number(name: &str) -> Option<u32> {
    let digits = name.split('-').nth(1).filter(|_| is_data(name))?;
    digits.parse().ok()
}

/// Whether a file, or the file that a link leads to, belongs to a database. Another output must not replace it.
pub fn is_database_file(path: &Path) -> bool {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().and_then(|name| name.to_str());
    let has_manifest = || path.parent().is_some_and(|directory| directory.join(MANIFEST).is_file());
    name.is_some_and(is_ours) && has_manifest()
}

/// Whether only a database makes files with this name.
pub(crate) fn is_ours(name: &str) -> bool {
    let is_temporary = |name: &str| name == MANIFEST || name.starts_with(SCRATCH) || is_data(name);
    name == MANIFEST || name == LOCK || is_data(name) || name.strip_prefix(TEMPORARY).is_some_and(is_temporary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_numbers() {
        assert_eq!((number(&run(7, "out-table")), number(&level(1_234_567))), (Some(7), Some(1_234_567)));
        assert_eq!(
            [log(7).as_str(), "wal-1234567", "wal-0000007", "wal-+00001"].map(log_number),
            [Some(7), Some(1_234_567), None, None]
        );
        assert_eq!((number("level-99999999999"), number("tmp-level-000001"), number(MANIFEST)), (None, None, None));
    }

    #[test]
    fn a_name_never_leads_out_of_the_directory() {
        assert!(
            is_data(&run(1, "out"))
                && is_data(&dictionary(12))
                && is_data(&level(7))
                && is_data(&column(3))
                && is_data(&rows(4))
                && is_data(&index(5))
        );
        for name in [
            "run-/../../x",
            "run-000001-out/..",
            "../run-1",
            "MANIFEST",
            "tmp-run-1",
            "run-\0",
            "level-1",
            "run-1",
            "run-away",
        ] {
            assert!(!is_data(name), "{name:?}");
        }
        for name in [&scratch("a b"), LOCK, MANIFEST, "tmp-MANIFEST", "tmp-run-000001-in"] {
            assert!(is_ours(name), "{name:?}");
        }
        for name in ["notes.txt", "tmp-notes.txt", "tmp-LOCK", "run_of_luck", "wal-000001", "tmp-wal-000001"] {
            assert!(!is_ours(name), "{name:?}");
        }
    }
}
