//! Layer 2 of Anden: snapshots of a graph on disk, after LLAMA (Macko et al., ICDE 2015).
//!
//! A database is a directory. [`Store`] opens it and holds its snapshots. A [`SnapshotView`] reads one snapshot: a
//! vertex table in pages, with the targets and weights of arcs in arrays beside it. [`Dictionary`] maps keys to vertex
//! ids.
//!
//! `docs/format.md` defines the format of every file, and explains why a crash leaves a whole database or none.
//!
//! Files are little-endian and read in place, so big-endian machines are refused at compile time.
#![forbid(unsafe_code)]

#[cfg(target_endian = "big")]
compile_error!("the files are read in place, and they are little-endian");

mod adjacency;
mod arc_columns;
mod backup;
mod base;
mod base_writer;
mod builder;
mod chain;
mod changes;
mod column;
mod delta;
mod dictionary;
mod encoding;
mod error;
mod file;
mod finder;
mod hook;
mod key;
mod key_order;
mod lists;
mod manifest;
mod names;
mod options;
mod overlay;
mod page;
mod patched;
mod property;
mod repair;
mod rewritten;
mod sealed;
mod store;
mod table;
mod temp_file;
mod verify;
mod vertex_properties;
mod view;

pub use adjacency::{ListChange, ListOrigin};
pub use anden_graph::{Direction, Parts};
pub use backup::{BackupFile, BackupId, BackupList, BackupManifest, PinnedFiles};
pub use base_writer::{BaseWriter, FinishedBase};
pub use builder::{DeltasWriter, FinishedDeltas, RestoredStore, StoreBuilder, StoreRestorer};
pub use changes::{ArcData, ChangedArc};
pub use dictionary::{Dictionary, DictionaryKeys, FinishedDictionary};
pub use error::{Error, Result};
pub use file::FORMAT_VERSION;
pub use finder::Finder;
pub use hook::Listener;
pub use key::{Key, KeyRef};
pub use names::{LOG_MARK, is_database_file, log as log_name, log_number, temporary as temporary_name};
pub use options::{DatabaseId, GraphOptions, Identity, KeyScheme, Retention, SnapshotTag};
pub use overlay::{Added, AddedFragment, ChangedPart, ChangedPartBody, DirtyPageLists, ListChanges, Overlay, without};
pub use property::{
    EdgeProperties, IndexKind, MAX_ROWS, PropertyChanges, RowOverlay, RowParts, RowSet, RowTest, decode_value,
    encode_value, value_hash,
};
pub use repair::{DamagedStore, Loss, RepairedStore, VertexSpan};
pub use store::{
    DeltaChanges, EdgeChanges, IndexDraft, IndexInfo, Lease, LeaseInfo, MergeReport, MergeScope, NewRows, RunningWork,
    SnapshotDiff, SnapshotInfo, SnapshotStep, SnapshotSteps, StorageStats, Store, StoredFormFile, StoredForms,
    WorkCounters, WorkProgress, WorkStats, WriterLock, check_first_name, is_database,
};
pub use table::PAGE_VERTICES;
pub use temp_file::TempFile;
pub use verify::VerifyReport;
pub use vertex_properties::{PropertyOverlay, VertexProperties};
pub use view::{Entries, EntryFilter, KeepEntries, OverlayBase, SnapshotView, WholeLists};
