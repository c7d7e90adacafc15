//! Layer 4 of Anden: the public API.
//!
//! A [`Database`] is a directory or lives in memory. A [`View`] is the graph at one version. Callers name vertices by
//! key, results are arrays by vertex id, and [`Job`] is the one table of algorithms.
//!
//! ```no_run
//! use anden::{Database, Job, PageRankParams, Parameters};
//!
//! let db = Database::open_read_only("social.anden")?;
//! let view = db.view()?;
//! let ranks = view.pagerank(&PageRankParams::default())?;
//! let hops = view.bfs("libc6")?;
//! let distance = hops[view.vertex("bash")? as usize];
//! let output = view.run(&Job::new("wcc", Parameters::default())?)?;
//! # Ok::<(), anden::Error>(())
//! ```
//!
//! The root has the names that most programs need. The modules have the rest:
//! - [`graph`] and [`kernel`]: graphs and algorithms of your own;
//! - [`load`] and [`export`]: files;
//! - [`property`]: values, types and indexes;
//! - [`job`], [`query`] and [`tables`]: the table of algorithms, and answers;
//! - [`changes`] and [`snapshot`]: options, reports and the feed of changes, and of versions and their backups;
//! - [`error`], [`session`] and [`stats`]: kinds of failures, shared threads, counters.

#![forbid(unsafe_code)]

mod backup;
pub mod changes;
pub mod error;
pub mod export;
pub mod graph;
pub mod job;
pub mod kernel;
mod key_order;
pub mod load;
pub mod property;
pub mod query;
pub mod session;
pub mod snapshot;
pub mod stats;
pub mod tables;

mod analysis;
mod cache;
mod change_feed;
mod csr;
mod database;
mod degrees;
mod diff;
mod filter;
mod indexes;
mod labeled;
mod neighborhood;
mod open;
mod pending;
mod pinned;
mod prepare;
mod replay;
mod sliding_window;
mod snapshot_id;
mod snapshot_period;
mod stored_values;
mod transaction;
mod view;
mod walk;
mod weighted;
mod work;

pub use anden_base::VertexId;
pub use anden_base::progress::Progress;
pub use anden_engine::{AppendOptions, Changes, Durability, EdgeId, EdgeWeight, LoadOptions, Retention, Update};
pub use anden_graph::property::OwnedValue;
pub use anden_graph::{GraphKind, WeightType};
pub use anden_kernels::pagerank::PageRankParams;
pub use anden_kernels::query::Neighbors;
pub use anden_snapshots::{GraphOptions as Options, Key, KeyScheme};
pub use database::Database;
pub use error::{Error, Result};
pub use job::{Job, Parameters};
pub use open::OpenOptions;
pub use pending::Pending;
pub use session::Session;
pub use transaction::Transaction;
pub use view::View;

/// The Rust code of the README, which `cargo test` compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
