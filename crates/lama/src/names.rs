//! The names of files in a database directory.

/// The list of what belongs to the database.
pub(crate) const MANIFEST: &str = "MANIFEST";

/// The file whose lock makes its holder the one writer.
pub(crate) const LOCK: &str = "LOCK";

/// Starts the names of files that are not part of the database yet, or never will be.
pub(crate) const TEMPORARY: &str = "tmp-";

const RUN: &str = "run-";
const DICTIONARY: &str = "dict-";

/// The name of a column of a run.
pub(crate) fn run(number: u32, column: &str) -> String {
    format!("{RUN}{number:06}-{column}")
}

/// The name of a part of the dictionary.
pub(crate) fn dictionary(number: u32) -> String {
    format!("{DICTIONARY}{number:06}")
}

/// The name of `name` before it is published.
pub(crate) fn temporary(name: &str) -> String {
    format!("{TEMPORARY}{name}")
}

/// Whether a published file may have this name: the only names that a manifest may hold.
pub(crate) fn is_data(name: &str) -> bool {
    let plain = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    plain && (name.starts_with(RUN) || name.starts_with(DICTIONARY))
}

/// Whether only a database makes files with this name.
pub(crate) fn is_ours(name: &str) -> bool {
    name == MANIFEST || name == LOCK || name.starts_with(TEMPORARY) || is_data(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_leads_out_of_the_directory() {
        assert!(is_data(&run(1, "out")) && is_data(&dictionary(12)));
        for name in ["run-/../../x", "run-000001-out/..", "../run-1", "MANIFEST", "tmp-run-1", "run-\0", "level-1"] {
            assert!(!is_data(name), "{name:?}");
        }
        assert!(is_ours("tmp-anything") && is_ours(LOCK) && !is_ours("notes.txt"));
    }
}
