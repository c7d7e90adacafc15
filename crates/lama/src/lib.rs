//! Floor 2 of Anden: graphs on disk.
//!
//! A database is a directory. Its [`Store`] holds snapshots of a graph; a snapshot is read through
//! a [`View`], which maps the files of a run: a vertex table in pages, and beside it the targets
//! and the weights of the edges. [`Dictionary`] leads from the user's keys to vertex ids. The format
//! of every file, and why a crash at any moment leaves a whole database or none, is written in
//! `docs/format.md`.
//!
//! Bytes are little-endian and read in place, so big-endian machines are refused at compile time.
#![forbid(unsafe_code)]

#[cfg(target_endian = "big")]
compile_error!("the files are read in place, and they are little-endian");

mod arc_columns;
mod base_run;
mod builder;
mod chain;
mod changes;
mod column;
mod dictionary;
mod encoding;
mod error;
mod file;
mod finder;
mod key;
mod level;
mod listener;
mod lists;
mod manifest;
mod names;
mod options;
mod overlay;
mod patched;
mod property;
mod rewritten;
mod run;
mod side;
mod store;
mod table;
mod temp_file;
mod verify;
mod view;

pub use builder::{FinishedLevels, LevelsWriter, StoreBuilder};
pub use changes::{ArcData, ChangedArc};
pub use dictionary::{Dictionary, DictionaryKeys, FinishedDictionary};
pub use error::{Error, Result};
pub use file::FORMAT_VERSION;
pub use finder::Finder;
pub use graph::{Parts, Side};
pub use key::{Key, KeyRef};
pub use listener::Listener;
pub use names::{LOG_MARK, is_database_file, log as log_name, log_number};
pub use options::{DatabaseId, GraphOptions, Identity, KeyScheme, Retention};
pub use overlay::{
    Added, AddedPiece, ChangedPart, ChangedPartBody, ListChanges, Overlay, TouchedLists, Underlay, without,
};
pub use property::{
    EdgeProperties, IndexKind, MAX_ROWS, PropertyChanges, PropertyOverlay, RowOverlay, RowParts, RowSet, RowTest,
    VertexProperties, decode_value, encode_value, value_hash,
};
pub use run::{FinishedRun, RunWriter};
pub use side::{ListChange, ListOrigin};
pub use store::{
    Diff, EdgeChanges, IndexDraft, IndexInfo, LevelChanges, MergeReport, MergeScope, NewRows, SnapshotInfo, Stats,
    Store, WriterLock,
};
pub use table::PAGE_VERTICES;
pub use temp_file::TempFile;
pub use verify::VerifyReport;
pub use view::{Entries, EntryFilter, KeepEntries, View};
