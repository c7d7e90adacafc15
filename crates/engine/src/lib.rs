//! Layer 3 of Anden: the database.
//!
//! An [`Engine`] works on one database: a directory that holds one graph. [`Engine::load`] ingests files, and
//! [`Engine::append`] adds a snapshot. [`Engine::view`] is the graph that algorithms read. Older snapshots can be read,
//! compared, merged and dropped.

#![forbid(unsafe_code)]

mod append;
mod backup;
mod change_feed;
mod commit;
mod commit_queue;
mod database;
mod error;
mod fitting;
mod indexes;
mod live;
mod load;
mod log;
mod observer;
mod phases;
mod prefetch;
mod stored_forms;
mod transaction;
mod validation;
mod workers;

pub use anden_memtable::Op;
pub use anden_snapshots::{
    ArcData, BackupId, ChangedArc, DatabaseId, Dictionary, Direction, EdgeChanges, GraphOptions, Identity, IndexInfo,
    IndexKind, Key, KeyRef, KeyScheme, Lease, LeaseInfo, Loss, MergeReport, MergeScope, Retention, SnapshotDiff,
    SnapshotInfo, SnapshotTag, SnapshotView, StorageStats, StoredFormFile, StoredForms, VerifyReport, VertexSpan,
    WorkProgress, WorkStats,
};
pub use append::{AppendOptions, AppendReport, Changes, ExpectedGraph, ExpectedWeights, Maintenance};
pub use backup::{
    BackupOptions, BackupReport, BackupTarget, RepairReport, RestoreOptions, RestoreReport, repair, repair_in, restore,
    restore_in,
};
pub use change_feed::RecordFeed;
pub use commit::{CommitReceipt, ExclusiveCommit, PendingCommit};
pub use commit_queue::{CommitLatencies, CommitStats, Committed, Histogram, NewEdge, Sequence};
pub use database::Engine;
pub use error::{ElementKey, Error, ErrorKind, PropertyOf, Result};
pub use fitting::{EdgeWeight, integer_key};
pub use live::{
    AddedEdge, Applied, CommitRecord, EdgeAction, EdgeId, GraphChange, LiveStats, MaintenanceHold, Missing, NewValue,
    Update, sought_value,
};
pub use load::{Duplicates, IdOrder, InputReport, LoadOptions, LoadReport, SnapshotBy, SnapshotPeriod, Spread};
pub use log::Durability;
pub use observer::CommitObserver;
pub use prefetch::{Io, PolicyStats, Prefetch, PrefetchStats, Prefetcher};
pub use transaction::{FoundEdge, OptimisticTransaction, TransactionGraph, edges_between};
pub use workers::{Split, Workers};
