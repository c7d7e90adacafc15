//! The names of files in a database directory.

use std::path::Path;

/// The manifest: the list of the database's files and versions.
pub(crate) const MANIFEST: &str = "MANIFEST";

/// The list of a backup. A database has none.
pub(crate) const BACKUP: &str = "BACKUP";

/// The lock file; the holder of its lock is the one writer.
pub(crate) const LOCK: &str = "LOCK";

/// The file whose bytes are locked by leases. It has no content, and is there once a lease was taken or a snapshot was
/// dropped.
pub(crate) const LEASES: &str = "LEASES";

/// The file that keeps space for changes on a full disk. No manifest names it, and its bytes mean nothing.
pub(crate) const RESERVE: &str = "RESERVE";

/// Prefix of files that are not published yet, or never will be.
pub(crate) const TEMPORARY: &str = "tmp-";

const SCRATCH: &str = "scratch-";

/// Marks a directory whose WAL was restored and whose manifest is not there yet. Its WAL belongs to no database.
pub(crate) const RESTORING: &str = "tmp-scratch-restoring";

/// The file with the WAL's durable high-water mark. No manifest names it, and opening a store leaves it alone.
pub const LOG_MARK: &str = "LOG";

const BASE: &str = "base-";
const DICTIONARY: &str = "dict-";
const DELTA: &str = "delta-";
const COLUMN: &str = "column-";
const ROWS: &str = "rows-";
const INDEX: &str = "index-";
const PREPARATION: &str = "prepared-";
const LOG: &str = "wal-";

/// Least number of digits in a name.
const NUMBER_DIGITS: usize = 6;

/// Name of a column file of a base.
pub(crate) fn base(number: u32, column: &str) -> String {
    format!("{BASE}{number:0NUMBER_DIGITS$}-{column}")
}

/// Whether a file of this name belongs to a base, which every database has.
pub(crate) fn is_of_base(name: &str) -> bool {
    name.starts_with(BASE)
}

/// Name of a dictionary part.
pub(crate) fn dictionary(number: u32) -> String {
    format!("{DICTIONARY}{number:0NUMBER_DIGITS$}")
}

/// Name of a file of deltas.
pub(crate) fn delta(number: u32) -> String {
    format!("{DELTA}{number:0NUMBER_DIGITS$}")
}

/// Name of a vertex property's column file.
pub(crate) fn column(number: u32) -> String {
    format!("{COLUMN}{number:0NUMBER_DIGITS$}")
}

/// Name of a file of edge rows.
pub(crate) fn rows(number: u32) -> String {
    format!("{ROWS}{number:0NUMBER_DIGITS$}")
}

/// Name of an index part.
pub(crate) fn index(number: u32) -> String {
    format!("{INDEX}{number:0NUMBER_DIGITS$}")
}

/// Name of a file with a prepared form.
pub(crate) fn preparation(number: u32) -> String {
    format!("{PREPARATION}{number:0NUMBER_DIGITS$}")
}

/// Name of a WAL segment. No manifest names it, and opening a store leaves it alone.
pub fn log(number: u32) -> String {
    format!("{LOG}{number:0NUMBER_DIGITS$}")
}

/// The number in the name of a WAL segment; `None` for other names.
pub fn log_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(LOG)?;
    let number = digits.parse().ok()?;
    // Only one spelling of a number is a name of ours.
    (log(number) == name).then_some(number)
}

/// Name of a scratch file.
pub(crate) fn scratch(name: &str) -> String {
    format!("{TEMPORARY}{SCRATCH}{name}")
}

/// Name of a file before it is published.
pub fn temporary(name: &str) -> String {
    format!("{TEMPORARY}{name}")
}

/// Whether a published file may have this name. A manifest holds no other names.
pub(crate) fn is_data(name: &str) -> bool {
    let prefixes = [BASE, DICTIONARY, DELTA, COLUMN, ROWS, INDEX, PREPARATION];
    let rest = prefixes.into_iter().find_map(|prefix| name.strip_prefix(prefix));
    rest.is_some_and(|rest| {
        // Without separators, a forged manifest cannot name a file outside of the directory.
        let is_plain = rest.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        // A data file is found by its number, so a name without one is not ours.
        is_plain && rest.bytes().take_while(u8::is_ascii_digit).count() >= NUMBER_DIGITS
    })
}

/// Whether a data file of this name belongs to a base.
pub(crate) fn is_base(name: &str) -> bool {
    name.starts_with(BASE)
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

/// Whether a file, or the target of a link, belongs to a database. Other output must not replace it.
pub fn is_database_file(path: &Path) -> bool {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().and_then(|name| name.to_str());
    let has_manifest = || path.parent().is_some_and(|directory| directory.join(MANIFEST).is_file());
    name.is_some_and(is_ours) && has_manifest()
}

/// Whether a file of the WAL may have this name.
pub(crate) fn is_log(name: &str) -> bool {
    name == LOG_MARK || log_number(name).is_some()
}

/// Whether only databases create files with this name.
pub(crate) fn is_ours(name: &str) -> bool {
    let is_temporary = |name: &str| name == MANIFEST || name.starts_with(SCRATCH) || is_data(name);
    let is_single = [MANIFEST, LOCK, LEASES, RESERVE].contains(&name);
    is_single || is_data(name) || name.strip_prefix(TEMPORARY).is_some_and(is_temporary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_numbers() {
        assert_eq!((number(&base(7, "out-table")), number(&delta(1_234_567))), (Some(7), Some(1_234_567)));
        assert_eq!(
            [log(7).as_str(), "wal-1234567", "wal-0000007", "wal-+00001"].map(log_number),
            [Some(7), Some(1_234_567), None, None]
        );
        assert_eq!((number("delta-99999999999"), number("tmp-delta-000001"), number(MANIFEST)), (None, None, None));
    }

    #[test]
    fn a_name_never_leads_out_of_the_directory() {
        assert!(
            is_data(&base(1, "out"))
                && is_data(&dictionary(12))
                && is_data(&delta(7))
                && is_data(&column(3))
                && is_data(&rows(4))
                && is_data(&index(5))
                && is_data(&preparation(6))
        );
        for name in [
            "base-/../../x",
            "base-000001-out/..",
            "../base-1",
            "MANIFEST",
            "tmp-base-1",
            "base-\0",
            "delta-1",
            "base-1",
            "base-away",
        ] {
            assert!(!is_data(name), "{name:?}");
        }
        for name in [&scratch("a b"), LOCK, LEASES, MANIFEST, RESERVE, "tmp-MANIFEST", "tmp-base-000001-in"] {
            assert!(is_ours(name), "{name:?}");
        }
        for name in
            ["notes.txt", "tmp-notes.txt", "tmp-LOCK", "tmp-RESERVE", "base_of_luck", "wal-000001", "tmp-wal-000001"]
        {
            assert!(!is_ours(name), "{name:?}");
        }
    }
}
