//! The number, the name or the time of a snapshot.

/// A snapshot, by number, name or time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SnapshotId {
    /// The number, from 1.
    Number(u32),
    /// The name, or a time: a month (`2012-05`), a week of ISO 8601 (`2012-W18`), a day, an hour (`2012-05-03T10`), a
    /// minute or a second, in UTC without a zone. A snapshot with this name comes first. A time means the newest
    /// snapshot whose data is from before its end, by [`as_of`](crate::snapshot::SnapshotInfo::as_of), or else by its
    /// creation. Drops and renames take no time.
    Name(String),
}

impl std::fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl From<u32> for SnapshotId {
    fn from(number: u32) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for SnapshotId {
    /// Text of digits only is a number, because a name cannot be a number.
    fn from(text: &str) -> Self {
        match text.parse() {
            // `parse` also takes a plus sign, which may begin a name.
            Ok(number) if text.bytes().all(|b| b.is_ascii_digit()) => Self::Number(number),
            // A number beyond `u32` names no snapshot, and the lookup says so.
            _ => Self::Name(text.to_owned()),
        }
    }
}

impl From<&String> for SnapshotId {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_a_number() {
        assert_eq!(SnapshotId::from("12"), SnapshotId::Number(12));
        assert_eq!(SnapshotId::from("12a"), SnapshotId::Name("12a".into()));
        assert_eq!(SnapshotId::from("+1"), SnapshotId::Name("+1".into()));
        assert_eq!(SnapshotId::from("99999999999"), SnapshotId::Name("99999999999".into()));
    }
}
