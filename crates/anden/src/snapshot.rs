//! Snapshots: append, read, compare, merge, drop, retain; and the types of their reports and of backups.

use std::ops::RangeInclusive;

use anden_engine::{AppendOptions, AppendReport, Changes, MergeScope};
use anden_formats::InputPath;
use anden_snapshots::SnapshotView;

use crate::cache::CacheMoment;
use crate::error::NotFound;
use crate::property::PropertyValue;
use crate::snapshot_id::time_of;
use crate::snapshot_period::Period;
use crate::{Database, Error, Result, View};

pub use crate::backup::{
    BackupId, BackupOptions, BackupReport, DatabaseId, Loss, RepairReport, RestoreReport, VertexSpan,
};
pub use crate::diff::{Diff, DiffEdge, DiffProperty};
pub use crate::sliding_window::SlidingWindow;
pub use crate::snapshot_id::SnapshotId;
pub use anden_engine::{Lease, LeaseInfo, MergeReport, Retention, SnapshotInfo, SnapshotTag, VerifyReport};

/// Methods that change the database fail if it is open for reading only, if the disk fails, or on cancellation. The
/// database is then unchanged.
impl Database {
    /// The graph at a snapshot, by number, name or [time](SnapshotId::Name).
    ///
    /// # Errors
    /// [`Error::NotFound`]: the snapshot does not exist or was dropped; damage met on the way.
    pub fn snapshot(&self, snapshot: impl Into<SnapshotId>) -> Result<View> {
        let moment = self.moment();
        let number = self.snapshot_number(snapshot)?;
        let name = format!("snapshot {number}");
        Ok(self.opened(self.inner().snapshot(number)?, self.session(), name, &moment))
    }

    /// The number of an existing snapshot, given by number, name or [time](SnapshotId::Name).
    ///
    /// ```
    /// use anden::snapshot::SnapshotTag;
    /// use anden::{Database, Options, Update};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.apply(&[Update::add_edge(1, 2)])?;
    /// let as_of = SnapshotTag::parse_as_of("2012-04-30").ok();
    /// db.checkpoint(SnapshotTag { name: Some("spring"), as_of })?;
    /// assert_eq!((db.snapshot_number("spring")?, db.snapshot_number("2012-05")?), (2, 2));
    /// assert!(db.snapshot_number("2012-03").is_err());
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`]: the snapshot does not exist or was dropped, or none is that old.
    pub fn snapshot_number(&self, snapshot: impl Into<SnapshotId>) -> Result<u32> {
        self.find_snapshot(&snapshot.into(), |snapshots, period| {
            snapshots.iter().rfind(|info| time_of(info) < period.end)
        })
    }

    /// Finds a snapshot by number or name, else by `of_period`.
    fn find_snapshot(
        &self,
        asked: &SnapshotId,
        of_period: impl FnOnce(&[SnapshotInfo], Period) -> Option<&SnapshotInfo>,
    ) -> Result<u32> {
        let snapshots = self.snapshots();
        if let Some(info) = snapshots.iter().find(|info| asked.calls(info)) {
            return Ok(info.number);
        }
        let period = match asked {
            SnapshotId::Number(_) => None,
            SnapshotId::Name(name) => Period::parse(name),
        };
        let Some(period) = period else { return Err(missing(asked, &snapshots)) };
        of_period(&snapshots, period).map(|info| info.number).ok_or_else(|| {
            let times = || snapshots.iter().map(time_of);
            let (Some(oldest), Some(newest)) = (times().min(), times().max()) else {
                return missing(asked, &snapshots);
            };
            let [oldest, newest] = [oldest, newest].map(PropertyValue::Timestamp);
            let text = format!("no snapshot is of {asked}: they are from {oldest} to {newest}");
            Error::not_found(NotFound::Snapshot(asked.clone()), text)
        })
    }

    /// The number of an existing snapshot, given by number or name. Changes of snapshots take no time: a second drop of
    /// the name `2012-05-01` would drop an older snapshot.
    fn number_of_called(&self, asked: &SnapshotId) -> Result<u32> {
        let snapshots = self.snapshots();
        let found = snapshots.iter().find(|info| asked.calls(info));
        found.map(|info| info.number).ok_or_else(|| missing(asked, &snapshots))
    }

    /// The edges that the snapshots of `window` added, both ends included, and the vertices of these edges. An edge is
    /// in the window if the last snapshot has it and it did not exist, or had another weight, before the first one. An
    /// edge that was removed and added again unchanged is not in the window. If the window begins at the oldest
    /// snapshot, all its edges count as added. A vertex without such an edge counts as removed, so a kernel gives the
    /// results of a graph with only these edges; [`window_with_isolated`](Self::window_with_isolated) keeps it.
    ///
    /// The ends are numbers, names or [times](SnapshotId::Name). A time at the start means the snapshot after
    /// the newest one from before it, so `2012-01..2012-03` has what the snapshots of these three months added.
    ///
    /// Cost: reads the edges that the snapshots added.
    ///
    /// ```
    /// use anden::{Changes, Database, Options};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.append(&Changes::default().add_edge(1, 2))?;
    /// db.append(&Changes::default().add_edge(2, 3))?;
    /// assert_eq!(db.window(3..=3)?.num_vertices(), 2);
    /// assert_eq!(db.window_with_isolated(3..=3)?.num_vertices(), 3);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`]: an end is not a snapshot, or none is of that time; [`Error::InvalidInput`]: the window is
    /// reversed; damage met on the way.
    pub fn window<S: Into<SnapshotId>>(&self, window: RangeInclusive<S>) -> Result<View> {
        let moment = self.moment();
        let (graph, name) = self.added_in(window)?;
        self.opened_window(graph, name, &moment)
    }

    /// As [`window`](Self::window), with all vertices of the last snapshot.
    ///
    /// # Errors
    /// As [`window`](Self::window).
    pub fn window_with_isolated<S: Into<SnapshotId>>(&self, window: RangeInclusive<S>) -> Result<View> {
        let moment = self.moment();
        let (graph, name) = self.added_in(window)?;
        Ok(self.opened(graph, self.session(), name, &moment))
    }

    /// A view of the edges that a window added, with the vertices of these edges.
    pub(crate) fn opened_window(&self, graph: SnapshotView, name: String, moment: &CacheMoment) -> Result<View> {
        let session = self.session();
        let graph = graph.without_isolated(session.pool(), session.progress())?;
        Ok(self.opened(graph, session, name, moment))
    }

    /// The edges that the snapshots of a window added, with all vertices of the last one; and the name of the window.
    fn added_in<S: Into<SnapshotId>>(&self, window: RangeInclusive<S>) -> Result<(SnapshotView, String)> {
        let (first, last) = window.into_inner();
        let (first, last) = (first.into(), last.into());
        let start = self.find_snapshot(&first, |snapshots, period| {
            let earlier = snapshots.iter().rposition(|info| time_of(info) < period.start);
            snapshots.get(earlier.map_or(0, |place| place + 1))
        })?;
        let end = self.snapshot_number(last.clone())?;
        let is_number = |id: &SnapshotId| matches!(id, SnapshotId::Number(_));
        if start > end && !(is_number(&first) && is_number(&last)) {
            let text =
                format!("no snapshot is in {first}..{last}: it begins with snapshot {start} and ends with {end}");
            return Err(Error::InvalidInput(text.into()));
        }
        Ok((self.inner().window(start..=end)?, format!("window {start}..{end}")))
    }

    /// The changes from one snapshot to another. `to` may be the older one.
    ///
    /// # Errors
    /// [`Error::NotFound`]: a snapshot does not exist; damage met on the way.
    pub fn diff(&self, from: impl Into<SnapshotId>, to: impl Into<SnapshotId>) -> Result<Diff> {
        self.cache().yield_budget(self.session());
        let (from, to) = (self.snapshot_number(from)?, self.snapshot_number(to)?);
        let version = |number| -> Result<_> { Ok((number, self.inner().snapshot(number)?)) };
        Diff::new(self.inner().diff_by_pages(from, to)?, version(from)?, version(to)?, self.session())
    }

    /// The changes from a snapshot of this database to a snapshot of another. Vertices are matched by key.
    ///
    /// Cost: looks up all keys. Each iteration over added or removed edges reads both snapshots.
    ///
    /// # Errors
    /// [`Error::NotFound`]: a snapshot does not exist; [`Error::InvalidInput`]: the graphs differ in kind;
    /// [`Error::Memory`]; damage met on the way.
    pub fn diff_with(&self, from: impl Into<SnapshotId>, other: &Self, to: impl Into<SnapshotId>) -> Result<Diff> {
        self.cache().yield_budget(self.session());
        let (from, to) = (self.snapshot_number(from)?, other.snapshot_number(to)?);
        let session = self.session();
        // The engine opens snapshots without a prefetcher, and a comparison reads all lists.
        let version = |number, graph: SnapshotView| (number, session.prefetcher().attach(&graph, session.prefetch()));
        let (old, new) = (self.inner().snapshot(from)?, other.inner().snapshot(to)?);
        Diff::across(version(from, old), version(to, new), session)
    }

    /// Appends a snapshot with these [`Changes`].
    ///
    /// # Errors
    /// See above; [`Error::InvalidInput`]: a key, weight or name is not valid.
    pub fn append(&self, changes: &Changes) -> Result<AppendReport> {
        self.append_with(changes, &AppendOptions::default())
    }

    /// Like [`append`](Self::append), with options. Ignores the files that `options` name.
    ///
    /// # Errors
    /// As [`append`](Self::append); an option does not fit the graph.
    pub fn append_with(&self, changes: &Changes, options: &AppendOptions) -> Result<AppendReport> {
        require_short(options.name.as_deref())?;
        let session = self.session();
        self.cache().yield_budget(session);
        let options = self.within_memory(options);
        Ok(self.inner().append_changes(changes, &options, session.pool(), session.progress())?)
    }

    /// Appends a snapshot with the edges of files, without those in [`AppendOptions::remove`].
    ///
    /// # Errors
    /// See above; [`Error::InvalidInput`]: a bad input, with file and line, or an option that does not fit the graph.
    pub fn append_files(&self, inputs: &[InputPath], options: &AppendOptions) -> Result<AppendReport> {
        // A bad name is refused before the inputs are read.
        require_short(options.name.as_deref())?;
        let session = self.session();
        self.cache().yield_budget(session);
        let options = self.within_memory(options);
        Ok(self.inner().append(inputs, &options, session.pool(), session.progress())?)
    }

    fn within_memory(&self, options: &AppendOptions) -> AppendOptions {
        AppendOptions { memory: options.memory.or(self.session().memory()), ..options.clone() }
    }

    /// Merges the base and all deltas into a new base. Reads are then as fast as after a load. All snapshots stay.
    ///
    /// # Errors
    /// See above.
    pub fn merge(&self) -> Result<MergeReport> {
        self.merge_scope(MergeScope::All)
    }

    /// Merges the deltas of the newest `num_snapshots` snapshots into one merged delta, and keeps the base.
    ///
    /// # Errors
    /// See above.
    pub fn merge_newest(&self, num_snapshots: u32) -> Result<MergeReport> {
        self.merge_scope(MergeScope::Newest(num_snapshots))
    }

    fn merge_scope(&self, scope: MergeScope) -> Result<MergeReport> {
        self.cache().yield_budget(self.session());
        let report = self.inner().merge(scope, self.session().pool(), self.session().progress())?;
        if report.bytes_written == 0 {
            // A merge with nothing to do did not check the budget.
            self.session().require_writer("a merge", 0)?;
        }
        Ok(report)
    }

    /// Drops a snapshot at any position. If it is the newest, its changes stay committed: the default view shows them,
    /// and the next snapshot includes them.
    ///
    /// # Errors
    /// See above; [`Error::NotFound`]: the snapshot does not exist; [`Error::InvalidInput`]: no snapshot would be left;
    /// [`Error::Locked`]: a process holds a [lease](Self::lease) on it.
    pub fn drop_snapshot(&self, snapshot: impl Into<SnapshotId>) -> Result<()> {
        self.drop_snapshots(&[snapshot.into()]).map(|_| ())
    }

    /// Drops snapshots by number or name, all of them or none. Returns their numbers in ascending order.
    ///
    /// # Errors
    /// As [`drop_snapshot`](Self::drop_snapshot).
    pub fn drop_snapshots(&self, snapshots: &[SnapshotId]) -> Result<Vec<u32>> {
        let numbers = snapshots.iter().map(|snapshot| self.number_of_called(snapshot));
        let mut numbers = numbers.collect::<Result<Vec<_>>>()?;
        numbers.sort_unstable();
        // A number and a name may lead to one snapshot.
        numbers.dedup();
        self.inner().drop_snapshots(&numbers, self.session().progress())?;
        Ok(numbers)
    }

    /// Takes a lease on a snapshot, by number, name or [time](SnapshotId::Name). Until the lease is dropped, or its
    /// process ends, no process can drop the snapshot, and retention leaves it out. Several processes may hold leases
    /// on one snapshot. Processes that open the database only for reading take leases too.
    ///
    /// A view needs no lease: it keeps its files open. A lease is for the next view, in this process or in others.
    ///
    /// ```
    /// use anden::{Changes, Database, Error, Options};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.append(&Changes::default().add_edge(1, 2))?;
    /// let lease = db.lease(1)?;
    /// assert!(matches!(db.drop_snapshot(1), Err(Error::Locked(_))));
    /// drop(lease);
    /// db.drop_snapshot(1)?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`]: the snapshot does not exist or was dropped; [`Error::InvalidInput`]: the directory cannot be
    /// written and has no file `LEASES`, or the system has no such locks.
    pub fn lease(&self, snapshot: impl Into<SnapshotId>) -> Result<Lease> {
        let number = self.snapshot_number(snapshot)?;
        Ok(self.inner().lease(number)?)
    }

    /// Returns the leases on all snapshots, of this process and others.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn leases(&self) -> Result<Vec<LeaseInfo>> {
        Ok(self.inner().leases()?)
    }

    /// Gives a snapshot, by number or name, another name; `None` takes its name away. Returns its number.
    ///
    /// ```
    /// use anden::{Changes, Database, Options};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// let number = db.append(&Changes::default().add_edge(1, 2))?.snapshot;
    /// db.rename_snapshot(number, Some("monday"))?;
    /// assert_eq!(db.snapshot("monday")?.num_edges(), 1);
    /// db.rename_snapshot("monday", None)?;
    /// assert!(db.snapshot("monday").is_err());
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// See above; [`Error::NotFound`]: the snapshot does not exist; [`Error::Exists`]: another one has the name;
    /// [`Error::InvalidInput`]: the name is not valid.
    pub fn rename_snapshot(&self, snapshot: impl Into<SnapshotId>, name: Option<&str>) -> Result<u32> {
        require_short(name)?;
        let number = self.number_of_called(&snapshot.into())?;
        self.inner().rename_snapshot(number, name)?;
        Ok(number)
    }

    /// Sets which snapshots are kept, now and after each new snapshot. Returns the numbers of those dropped now.
    /// Snapshots with a [lease](Self::lease) stay until a later snapshot finds them without one.
    ///
    /// [`Retention::Days`] follows the clock, which may jump. So it never drops more than half of the snapshots by
    /// itself: this method refuses then, and a new snapshot drops none. See
    /// [`held_back_snapshots`](Self::held_back_snapshots).
    ///
    /// # Errors
    /// See above. [`Error::InvalidInput`]: [`Retention::Days`] would drop more than half of the snapshots.
    pub fn retain(&self, retention: Retention) -> Result<Vec<u32>> {
        Ok(self.inner().retain(retention)?)
    }

    /// As [`retain`](Self::retain), also if [`Retention::Days`] drops more than half of the snapshots.
    ///
    /// # Errors
    /// See above.
    pub fn retain_by_force(&self, retention: Retention) -> Result<Vec<u32>> {
        Ok(self.inner().retain_by_force(retention)?)
    }

    /// The rule that [`retain`](Self::retain) set last; initially [`Retention::All`].
    ///
    /// ```
    /// use anden::{Database, Options, Retention};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.retain(Retention::Days(30))?;
    /// assert_eq!((db.retention(), db.held_back_snapshots()), (Retention::Days(30), vec![]));
    /// # Ok::<(), anden::Error>(())
    /// ```
    pub fn retention(&self) -> Retention {
        self.inner().retention()
    }

    /// The numbers of the snapshots that [`Retention::Days`] would drop now, and keeps because they are more than half
    /// of all. Correct the clock, or drop them with [`retain_by_force`](Self::retain_by_force).
    pub fn held_back_snapshots(&self) -> Vec<u32> {
        self.inner().held_back_snapshots()
    }
}

/// Refuses a snapshot name that is too long for an error message.
pub(crate) fn require_short(name: Option<&str>) -> Result<()> {
    const MOST_SHOWN: usize = 60;
    match name {
        // The engine has a stricter limit. This one only keeps the message short.
        Some(name) if name.len() > 16 * MOST_SHOWN => {
            let shown: String = name.chars().take(MOST_SHOWN).collect();
            let what = format!("{shown:?}… cannot name a snapshot: it has {} bytes, which are too many", name.len());
            Err(Error::InvalidInput(what.into()))
        }
        _ => Ok(()),
    }
}

/// The error for a snapshot that does not exist.
fn missing(asked: &SnapshotId, snapshots: &[SnapshotInfo]) -> Error {
    let numbers: Vec<u32> = snapshots.iter().map(|info| info.number).collect();
    let text = format!("snapshot {asked} does not exist or was dropped: there are {}", shown_numbers(&numbers));
    Error::not_found(NotFound::Snapshot(asked.clone()), text)
}

/// Formats numbers as ranges: `1 to 4, 7`.
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
        // Two numbers read better as a list than as a range.
        1 => format!("{}, {}", range.start(), range.end()),
        _ => format!("{} to {}", range.start(), range.end()),
    };
    ranges.iter().map(shown).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_in_ranges() {
        assert_eq!(shown_numbers(&[1, 2, 3, 4, 7, 9, 10]), "1 to 4, 7, 9, 10");
        assert_eq!(shown_numbers(&[]), "");
    }
}
