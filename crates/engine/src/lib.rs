//! Floor 3 of Anden: the database.
//!
//! A [`Database`] is a directory with a graph in it. [`Database::load`] makes one from files; its
//! [`view`](Database::view) is what algorithms read.

#![forbid(unsafe_code)]

mod database;
mod error;
mod load;

pub use database::Database;
pub use error::{Error, ErrorKind, Result};
pub use lama::{
    DatabaseId, Dictionary, GraphOptions, Identity, Key, KeyRef, KeyScheme, SnapshotInfo, Stats, VerifyReport, View,
};
pub use load::{Duplicates, LoadOptions, LoadReport};
