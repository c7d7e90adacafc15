//! The change feed: committed changes in order, for replicas, caches and audits.

use anden_engine::{CommitRecord, GraphChange, RecordFeed};

use crate::{Database, Result, Session};

/// Change sets in the order of their epochs; see [`Database::changes`]. Ends after an error.
#[derive(Debug)]
pub struct ChangeFeed {
    records: RecordFeed,
    session: Session,
}

/// The changes of one commit group: all that became visible with its epoch. Several transactions that were committed at
/// one time may share a group. Or the [net](ChangeSet::is_net) changes of several groups.
#[derive(Clone, Debug)]
pub struct ChangeSet(CommitRecord);

impl Iterator for ChangeFeed {
    type Item = Result<ChangeSet>;

    fn next(&mut self) -> Option<Self::Item> {
        // A reader far behind reads for a long time, and must be able to stop.
        if let Err(error) = self.session.progress().check() {
            return Some(Err(error.into()));
        }
        Some(self.records.next()?.map(ChangeSet).map_err(Into::into))
    }
}

impl ChangeSet {
    /// The epoch of the commit group. Epochs ascend: by one, and by more if the changes are [net](Self::is_net).
    pub fn epoch(&self) -> u64 {
        self.0.epoch()
    }

    /// Whether these are the net changes from the epoch of one snapshot, at which the consumer was, to the epoch of the
    /// next. The WAL lacks the commits in between. What was undone again is left out.
    pub fn is_net(&self) -> bool {
        self.0.is_net()
    }

    /// The changes in their order, as their writers asked for them. A change may change nothing, for example if an edge
    /// to add is there.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn changes(&self) -> Result<Vec<GraphChange>> {
        let mut changes = Vec::new();
        self.for_each_change(|change| {
            changes.push(change);
            Ok(())
        })?;
        Ok(changes)
    }

    /// As [`changes`](Self::changes), one at a time: a group may have millions.
    ///
    /// # Errors
    /// Damage met on the way; the first error of `body`, which ends the calls.
    pub fn for_each_change(&self, mut body: impl FnMut(GraphChange) -> Result<()>) -> Result<()> {
        let mut failed = None;
        let read = self.0.for_each_change(|change| match body(change) {
            Ok(()) => Ok(()),
            Err(error) => {
                failed = Some(error);
                // Any error ends the calls; the caller gets that of `body`.
                Err(anden_base::Error::Cancelled.into())
            }
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(read?),
        }
    }
}

impl Database {
    /// The commits after the epoch `since`, in order, one change set for each commit group. Epochs begin with 1, so a
    /// database that was created empty has all since epoch 0. The epoch of the last change set is the `since` of the
    /// next call.
    ///
    /// Only durable commits are given, of those that this handle shows: a consumer never sees a commit that the
    /// database then loses. A handle that only reads shows the commits of its last [`refresh`](Self::refresh).
    ///
    /// Changes come from the WAL, which loses a commit once a snapshot has it. [`set_keep_wal`](Self::set_keep_wal)
    /// keeps more. An append, and a batch of more than 16.8 million updates, skip the WAL. Where the WAL lacks the next
    /// commit, and `since` is the epoch of a snapshot, the next change set has the [net](ChangeSet::is_net) changes up
    /// to the next younger snapshot. At any other epoch, a consumer begins again from a copy.
    ///
    /// ```
    /// use anden::changes::GraphChange;
    /// use anden::{Database, Options, Update};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("calls.anden");
    /// let db = Database::create(&path, Options::default())?;
    /// db.apply(&[Update::AddVertex(1.into())])?;
    /// db.apply(&[Update::RemoveVertex(1.into())])?;
    /// let mut since = 0;
    /// for set in db.changes(since)? {
    ///     let set = set?;
    ///     since = set.epoch();
    ///     println!("{since}: {:?}", set.changes()?);
    /// }
    /// assert_eq!(since, 2);
    /// assert_eq!(db.changes(1)?.next().unwrap()?.changes()?, [GraphChange::RemoveVertex(1.into())]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Cost: reads the WAL from the commit after `since` on, one segment of up to 64 MB at a time. A net change set is
    /// in memory as a whole.
    ///
    /// # Errors
    /// [`Error::InvalidInput`](crate::Error::InvalidInput): `since` is later than the last commit, or the database is in
    /// memory. Errors of the disk. The iterator returns [`Error::EpochGone`](crate::Error::EpochGone) if neither the WAL
    /// nor a snapshot leads on, and damage, errors of the disk, a lack of memory, cancellation.
    pub fn changes(&self, since: u64) -> Result<ChangeFeed> {
        Ok(ChangeFeed { records: self.inner().changes(since)?, session: self.session().clone() })
    }

    /// Applies a change set of another database, its *primary*, as one commit of the same epoch. So a replica asks its
    /// primary for the changes since its own [`epoch`](Self::epoch), and after a crash goes on from there. Returns
    /// false, and does nothing, if this database has the epoch already.
    ///
    /// The replica begins as the primary did, created empty with the same options, or is restored from a backup of it.
    /// It takes every change set in its turn, and no other commit. Then both have the same vertices, edges, numbers of
    /// edges and values after each epoch. [Net](ChangeSet::is_net) changes become a snapshot of the replica. To take
    /// over, it just commits. Snapshots and indexes are its own; do not give it a unique index that the primary lacks.
    ///
    /// ```
    /// use anden::{Database, Options, Update};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let (path, other) = (folder.path().join("primary.anden"), folder.path().join("replica.anden"));
    /// let primary = Database::create(&path, Options::default())?;
    /// let replica = Database::create(&other, Options::default())?;
    /// primary.apply(&[Update::add_edge(1, 2)])?;
    /// for set in primary.changes(replica.epoch())? {
    ///     replica.apply_changes(&set?)?;
    /// }
    /// assert!(replica.view()?.has_edge(1, 2)?);
    /// assert_eq!(replica.epoch(), primary.epoch());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidInput`](crate::Error::InvalidInput): a change set before this one is missing; the graphs differ
    /// in kind; the changes do not fit, because the databases differ. As [`apply`](Self::apply).
    pub fn apply_changes(&self, set: &ChangeSet) -> Result<bool> {
        Ok(self.inner().apply_record(&set.0, self.session().pool())?)
    }

    /// The epoch of the last commit that [`view`](Self::view) shows: the number of its commit group.
    pub fn epoch(&self) -> u64 {
        self.inner().epoch()
    }

    /// The least epoch after which the WAL has all commits, but for those that skip it. From here on,
    /// [`changes`](Self::changes) takes each epoch; before, it takes those of snapshots
    /// ([`SnapshotInfo::epoch`](crate::snapshot::SnapshotInfo::epoch)).
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn oldest_epoch(&self) -> Result<u64> {
        Ok(self.inner().oldest_epoch()?)
    }

    /// Bytes of WAL segments that stay for [`changes`](Self::changes), although a snapshot has their commits.
    pub fn keep_wal(&self) -> u64 {
        self.inner().keep_wal()
    }

    /// Sets how many bytes of WAL segments stay for [`changes`](Self::changes), although a snapshot has their commits;
    /// initially 0. The database keeps the setting. Segments have up to 64 MB and stay or go whole, the oldest first.
    ///
    /// # Errors
    /// The database is open for reading only; errors of the disk.
    pub fn set_keep_wal(&self, num_bytes: u64) -> Result<()> {
        Ok(self.inner().set_keep_wal(num_bytes)?)
    }
}
