//! Floor 3 of Anden: the database.
//!
//! A [`Database`] is a directory with a graph in it. [`Database::load`] makes one from files; its
//! [`view`](Database::view) is what algorithms read. [`Database::append`] makes a new snapshot of it, and
//! older ones can be looked at, compared, merged and dropped.

#![forbid(unsafe_code)]

mod append;
mod commit;
mod commit_queue;
mod database;
mod error;
mod fitting;
mod indexes;
mod live;
mod load;
mod log;
mod prefetch;
mod transaction;
mod validation;
mod workers;

pub use append::{AppendOptions, AppendReport, Changes, ExpectedGraph, ExpectedWeights, Maintenance};
pub use commit::Pending;
pub use commit_queue::{CommitStats, Committed, NewEdge, Sequence};
pub use database::Database;
pub use error::{Error, ErrorKind, Result};
pub use fitting::{EdgeWeight, integer_key};
pub use lama::{
    ArcData, ChangedArc, DatabaseId, Dictionary, Diff, EdgeChanges, GraphOptions, Identity, IndexInfo, IndexKind, Key,
    KeyRef, KeyScheme, MergeReport, MergeScope, Retention, Side, SnapshotInfo, Stats, VerifyReport, View,
};
pub use live::{Applied, EdgeAction, EdgeId, LiveStats, Missing, NewValue, Update, UpkeepHold, sought_value};
pub use load::{Duplicates, InputReport, LoadOptions, LoadReport, Spread};
pub use log::Durability;
pub use prefetch::{Advisor, Io, PolicyStats, Prefetch, PrefetchStats};
pub use terrace::Fate;
pub use transaction::{FoundEdge, Transaction, TransactionGraph, edges_between};
pub use workers::{Split, Workers};
