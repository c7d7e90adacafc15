//! The number, the name or the time of a snapshot.

use anden_engine::SnapshotInfo;

use crate::snapshot_period::Period;

/// A snapshot, by number, name or time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SnapshotId {
    /// The number, from 1.
    Number(u32),
    /// The name, or a time: a month (`2012-05`), a week of ISO 8601 (`2012-W18`), a day, an hour (`2012-05-03T10`), a
    /// minute or a second, in UTC without a zone. A snapshot with this name comes first. A time means the newest
    /// snapshot whose data is from before its end, by [`as_of`](crate::snapshot::SnapshotInfo::as_of), or else by its
    /// creation. If the snapshot of that period was dropped, this is an older one, and [`is_of`](Self::is_of) is false.
    /// Drops and renames take no time.
    Name(String),
}

impl SnapshotId {
    /// Whether this is the number or the name of a snapshot, or a time whose period has the time of the snapshot.
    ///
    /// ```
    /// use anden::snapshot::{SnapshotId, SnapshotTag};
    /// use anden::{Changes, Database, Options};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.append(&Changes::default().add_edge(1, 2))?;
    /// let as_of = SnapshotTag::parse_as_of("2012-04-30").ok();
    /// db.checkpoint(SnapshotTag { name: Some("spring"), as_of })?;
    /// let newest = &db.snapshots()[2];
    /// let is_of = |text: &str| SnapshotId::from(text).is_of(newest);
    /// assert!(is_of("3") && is_of("spring") && is_of("2012-04") && is_of("2012-W18"));
    /// assert!(!is_of("2012-05"));
    /// # Ok::<(), anden::Error>(())
    /// ```
    pub fn is_of(&self, snapshot: &SnapshotInfo) -> bool {
        let is_in = |period: Period| (period.start..period.end).contains(&time_of(snapshot));
        match self {
            _ if self.calls(snapshot) => true,
            Self::Number(_) => false,
            Self::Name(name) => Period::parse(name).is_some_and(is_in),
        }
    }

    /// Whether this is the number or the name of a snapshot.
    pub(crate) fn calls(&self, snapshot: &SnapshotInfo) -> bool {
        match self {
            Self::Number(number) => snapshot.number == *number,
            Self::Name(name) => snapshot.name.as_ref() == Some(name),
        }
    }
}

/// The time of a snapshot's data, or else of its creation, in microseconds since 1970.
pub(crate) fn time_of(info: &SnapshotInfo) -> i64 {
    info.as_of.unwrap_or_else(|| i64::try_from(info.unix_time).unwrap_or(i64::MAX).saturating_mul(1_000_000))
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
