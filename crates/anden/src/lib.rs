//! Floor 4 of Anden: what users of the library see.
//!
//! A [`Database`] is a directory, or in memory; a [`View`] is the graph in it at a snapshot. Vertices are called by
//! their keys, results are arrays by vertex id, and [`Job`] is the one table of algorithms.
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
//! Algorithms of one's own are written with [`kernels::edge_map()`] over [`View::graph`], which the traits
//! [`Graph`], [`InEdges`] and [`WeightedEdges`] give access to.

#![forbid(unsafe_code)]

mod analysis;
mod database;
mod degrees;
mod diff;
mod error;
mod export;
mod filter;
mod indexes;
mod job;
mod labeled;
mod live;
mod parts;
mod pinned;
mod properties;
mod query;
mod replay;
mod session;
mod sliding_window;
mod stats;
mod tables;
mod transaction;
mod versions;
mod view;
mod walk;
mod weighted;
mod work;

pub use arrow_array::RecordBatch;
pub use base::mapped::{fail_beyond_file_limits, say_where_pages_are_lost};
pub use base::memory::{CountingAllocator, resident_peak};
pub use base::progress::Progress;
pub use base::size::{size, size_at_least};
pub use base::standard_input::StandardInput;
pub use base::{NO_VERTEX, VertexId};
pub use database::Database;
pub use degrees::{DegreeBin, DegreeStatistics};
pub use diff::{Diff, DiffEdge, DiffProperty};
pub use engine::{
    AppendOptions, AppendReport, Applied, Changes, CommitStats, Committed, Duplicates, Durability, EdgeAction, EdgeId,
    EdgeWeight, ExpectedGraph, ExpectedWeights, FoundEdge, IndexInfo, IndexKind, InputReport, Io, LiveStats,
    LoadOptions, LoadReport, Maintenance, MergeReport, MergeScope, NewEdge, NewValue, PolicyStats, Prefetch,
    PrefetchStats, Retention, Split, Spread, TransactionGraph, Update,
};
pub use error::{Error, Result};
pub use export::{ExportFormat, VertexFormat, write_aside, write_file};
pub use graph::formats::{
    Aside, ColumnName, EdgeInput, Format, HeaderRule, InputColumns, InputPath, KeyKind, OnError, Output, OutputContent,
    OutputFormat, SourceOptions, VertexInput, WantedProperties, output_format, push_update_column, push_update_name,
    push_update_value, require_uncompressed,
};
pub use graph::generate;
pub use graph::property::{OwnedValue, PropertyColumn, PropertySchema, PropertyType, PropertyValue};
pub use graph::{Direction, Graph, InEdges, Weight, WeightType, WeightedEdges};
pub use job::{Job, JobOutput, Kernel, Parameter, Parameters, Sources, Value, Values};
pub use kernels;
pub use kernels::Medium;
pub use kernels::pagerank::PageRankParams;
pub use kernels::sssp::Distances;
pub use lama::{
    GraphOptions as Options, Key, KeyRef, KeyScheme, SnapshotInfo, Stats as StorageStats, VerifyReport,
    is_database_file,
};
pub use live::{ApplyOptions, ApplyReport};
pub use pinned::ViewStats;
pub use properties::NamedValues;
pub use query::{LevelFragment, ListFragments, Path, PathLength, ShortestPaths, Side, VertexFragments};
pub use session::Session;
pub use sliding_window::SlidingWindow;
pub use stats::Stats;
pub use tables::{BatchRows, Batches, ParallelEdges};
pub use transaction::{Pending, Transaction};
pub use versions::SnapshotId;
pub use view::{PieceStatistics, View};
pub use walk::{Tag, Walk};
