//! The versions of a graph: making them, looking back, folding and dropping them.

use std::ops::RangeInclusive;

use engine::{AppendOptions, AppendReport, Changes, MergeReport, MergeScope, Retention};
use graph::formats::InputPath;

use crate::{Database, Diff, Error, Result, View};

/// A snapshot, by its number or its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SnapshotId {
    /// Its number, from 1.
    Number(u32),
    /// Its name.
    Name(String),
}

impl From<u32> for SnapshotId {
    fn from(number: u32) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for SnapshotId {
    /// Digits are a number: names are none.
    fn from(text: &str) -> Self {
        match text.parse() {
            Ok(number) if text.bytes().all(|b| b.is_ascii_digit()) => Self::Number(number),
            _ => Self::Name(text.to_owned()),
        }
    }
}

impl From<&String> for SnapshotId {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

/// All methods that change something fail on a database that is open for reading only, and where the disk
/// fails or the work is cancelled; the database is then as it was.
impl Database {
    /// The graph at a snapshot, by number or name.
    ///
    /// # Errors
    /// [`Error::NotFound`]: there is no such snapshot, or it was dropped; damage in what it needs.
    pub fn snapshot(&self, snapshot: impl Into<SnapshotId>) -> Result<View> {
        let number = self.snapshot_number(snapshot)?;
        let name = format!("snapshot {number}");
        Ok(self.opened(self.inner().snapshot(number)?, self.session(), name))
    }

    /// The number of a snapshot that is there, perhaps by its name.
    ///
    /// # Errors
    /// [`Error::NotFound`]: there is no such snapshot, or it was dropped.
    pub fn snapshot_number(&self, snapshot: impl Into<SnapshotId>) -> Result<u32> {
        let snapshots = self.snapshots();
        let (found, asked) = match snapshot.into() {
            SnapshotId::Number(number) => (snapshots.iter().find(|info| info.number == number), number.to_string()),
            SnapshotId::Name(name) => (snapshots.iter().find(|info| info.name.as_ref() == Some(&name)), name),
        };
        found.map(|info| info.number).ok_or_else(|| {
            let numbers: Vec<u32> = snapshots.iter().map(|info| info.number).collect();
            let known = shown_numbers(&numbers);
            Error::NotFound(format!("snapshot {asked} does not exist or was dropped: there are {known}"))
        })
    }

    /// The edges that the snapshots of `window`, both ends included, added: those that its last one has and that were
    /// not there, or had another weight, before its first one. What went and came again in between as it was is not in
    /// it. Of the oldest snapshot all edges count as added. All vertices of the last snapshot are in it.
    ///
    /// # Errors
    /// [`Error::NotFound`]: an end is no snapshot; [`Error::InvalidInput`]: the window is reversed; damage
    /// in what it needs.
    pub fn window(&self, window: RangeInclusive<u32>) -> Result<View> {
        let name = format!("window {}..{}", window.start(), window.end());
        Ok(self.opened(self.inner().window(window)?, self.session(), name))
    }

    /// What changes on the way from one snapshot to another, which may be the older one.
    ///
    /// # Errors
    /// [`Error::NotFound`]: one of them does not exist; damage in what they need.
    pub fn diff(&self, from: impl Into<SnapshotId>, to: impl Into<SnapshotId>) -> Result<Diff> {
        let (from, to) = (self.snapshot_number(from)?, self.snapshot_number(to)?);
        let version = |number| -> Result<_> { Ok((number, self.inner().snapshot(number)?)) };
        Diff::new(self.inner().diff_by_pages(from, to)?, version(from)?, version(to)?, self.session())
    }

    /// What changes on the way from a snapshot of this database to one of another, whose vertices are matched
    /// by their keys.
    ///
    /// Cost: looks up all keys; both snapshots are read each time the edges of one side are asked for.
    ///
    /// # Errors
    /// [`Error::NotFound`]: one of them does not exist; [`Error::InvalidInput`]: the graphs are of different
    /// kinds; [`Error::Memory`]; damage in what they need.
    pub fn diff_with(&self, from: impl Into<SnapshotId>, other: &Self, to: impl Into<SnapshotId>) -> Result<Diff> {
        let (from, to) = (self.snapshot_number(from)?, other.snapshot_number(to)?);
        let session = self.session();
        let version = |number, graph: lama::View| (number, session.advisor().attach(&graph, session.prefetch()));
        let (old, new) = (self.inner().snapshot(from)?, other.inner().snapshot(to)?);
        Diff::across(version(from, old), version(to, new), session)
    }

    /// Makes a snapshot of what is added and removed; see [`Changes`].
    ///
    /// # Errors
    /// See above; [`Error::InvalidInput`]: a key, weight or name does not fit.
    pub fn append(&self, changes: &Changes) -> Result<AppendReport> {
        self.append_with(changes, &AppendOptions::default())
    }

    /// As [`append`](Self::append), told how; files that `options` name are not looked at.
    ///
    /// # Errors
    /// As [`append`](Self::append), and where an option does not fit the graph.
    pub fn append_with(&self, changes: &Changes, options: &AppendOptions) -> Result<AppendReport> {
        let session = self.session();
        let options = self.within_memory(options);
        Ok(self.inner().append_changes(changes, &options, session.pool(), session.progress())?)
    }

    /// Makes a snapshot of what files add, and what [`AppendOptions::remove`] removes.
    ///
    /// # Errors
    /// See above; [`Error::InvalidInput`] with file and line where an input is not what it should be, and
    /// where an option does not fit the graph.
    pub fn append_files(&self, inputs: &[InputPath], options: &AppendOptions) -> Result<AppendReport> {
        require_short(options.name.as_deref())?;
        let session = self.session();
        let options = self.within_memory(options);
        Ok(self.inner().append(inputs, &options, session.pool(), session.progress())?)
    }

    fn within_memory(&self, options: &AppendOptions) -> AppendOptions {
        AppendOptions { memory: options.memory.or(self.session().memory()), ..options.clone() }
    }

    /// Folds everything into one run: what was appended is then read as fast as what was loaded. No
    /// snapshot is lost.
    ///
    /// # Errors
    /// See above.
    pub fn merge(&self) -> Result<MergeReport> {
        self.merge_scope(MergeScope::All)
    }

    /// Folds the changes of the newest `num_snapshots` snapshots into one run beside the large one.
    ///
    /// # Errors
    /// See above.
    pub fn merge_newest(&self, num_snapshots: u32) -> Result<MergeReport> {
        self.merge_scope(MergeScope::Newest(num_snapshots))
    }

    fn merge_scope(&self, scope: MergeScope) -> Result<MergeReport> {
        self.parts().clear();
        let report = self.inner().merge(scope, self.session().pool(), self.session().progress())?;
        if report.bytes_written == 0 {
            // Nobody asked for memory, since nothing was to be done.
            self.session().require_writer("a merge", 0)?;
        }
        Ok(report)
    }

    /// Drops a snapshot, wherever it stands. What the newest changed stays committed: it is in the default
    /// view and goes into the next snapshot.
    ///
    /// # Errors
    /// See above; [`Error::NotFound`]: there is no such snapshot; [`Error::InvalidInput`]: it is the only one.
    pub fn drop_snapshot(&self, snapshot: impl Into<SnapshotId>) -> Result<()> {
        self.drop_snapshots(&[snapshot.into()]).map(|_| ())
    }

    /// Drops snapshots, all of them or none; returns their numbers, ascending.
    ///
    /// # Errors
    /// As [`drop_snapshot`](Self::drop_snapshot).
    pub fn drop_snapshots(&self, snapshots: &[SnapshotId]) -> Result<Vec<u32>> {
        let numbers = snapshots.iter().map(|snapshot| self.snapshot_number(snapshot.clone()));
        let mut numbers = numbers.collect::<Result<Vec<_>>>()?;
        numbers.sort_unstable();
        numbers.dedup();
        self.parts().clear();
        self.inner().drop_snapshots(&numbers, self.session().progress())?;
        Ok(numbers)
    }

    /// Sets which snapshots are kept, now and whenever a snapshot is made; returns those that were dropped now.
    ///
    /// # Errors
    /// See above.
    pub fn retain(&self, retention: Retention) -> Result<Vec<u32>> {
        self.parts().clear();
        Ok(self.inner().retain(retention)?)
    }
}

/// Refuses the name of a snapshot that is too long to be shown in an error.
pub(crate) fn require_short(name: Option<&str>) -> Result<()> {
    const MOST_SHOWN: usize = 60;
    match name {
        Some(name) if name.len() > 16 * MOST_SHOWN => {
            let shown: String = name.chars().take(MOST_SHOWN).collect();
            let what = format!("{shown:?}… cannot name a snapshot: it has {} bytes, which are too many", name.len());
            Err(Error::InvalidInput(what))
        }
        _ => Ok(()),
    }
}

/// `1 to 4, 7`
fn shown_numbers(ascending: &[u32]) -> String {
    let mut ranges: Vec<RangeInclusive<u32>> = Vec::new();
    for &number in ascending {
        match ranges.last_mut() {
            Some(range) if range.end().checked_add(1) == Some(number) => *range = *range.start()..=number,
            _ => ranges.push(number..=number),
        }
    }
    let shown = |range: &RangeInclusive<u32>| match range.end() - range.start() {
        0 => range.start().to_string(),
        1 => format!("{}, {}", range.start(), range.end()),
        _ => format!("{} to {}", range.start(), range.end()),
    };
    ranges.iter().map(shown).collect::<Vec<_>>().join(", ")
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

    #[test]
    fn numbers_are_shown_in_ranges() {
        assert_eq!(shown_numbers(&[1, 2, 3, 4, 7, 9, 10]), "1 to 4, 7, 9, 10");
        assert_eq!(shown_numbers(&[]), "");
    }
}
