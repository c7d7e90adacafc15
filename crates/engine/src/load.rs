//! Ingest: input files become a database.
//!
//! The input is read in parallel into *raw edges*, whose ends are keys or numbers of keys ([`ingest`]). Keys become ids
//! ([`keys`]), whose order may follow the shape of the graph ([`order`]). The edges are spread over ranges of lists that
//! fit the processor's cache ([`partition`]). Each range is sorted there ([`sort`]), and its lists are appended to the
//! base in order ([`assemble`]). In-lists are spread from the sorted out-lists, so that only their owners remain to be
//! sorted. Edges without weights are spread while they are read ([`buckets`]).
//!
//! Edges beyond the memory budget go to scratch files, as sorted runs that are merged ([`external`]). Edges that ascend
//! already are not sorted. A serialized graph is taken list by list ([`serialized`]).
//!
//! Edge property values wait for the out-lists and are written in their order ([`row_numbers`]). If memory is short,
//! they are written before the lists, in input order ([`rows`]).
//!
//! Several snapshots share one base: each edge on its way there is assigned to a snapshot ([`spread`]), at random or by
//! its time ([`time_split`]).
//!
//! The same input gives the same bytes at any number of threads and on each of these ways, except for the order of the
//! rows of edge properties.

mod arcs;
mod assemble;
mod buckets;
mod budget;
mod build;
mod external;
mod ingest;
mod intern;
mod keys;
mod later_arcs;
mod lists;
mod map;
mod options;
mod order;
mod partition;
mod period;
mod properties;
mod ranks;
mod raw;
mod report;
mod row_numbers;
mod rows;
mod scratch;
mod serialized;
mod sort;
mod spread;
mod stream;
mod time_split;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use anden_base::storage::Storage;
use anden_formats::{InputPath, SerializedGraph, Source, Span};
use anden_graph::property::PropertySchema;
use anden_graph::{GraphKind, WeightType};
use anden_snapshots::{ArcData, KeyScheme, SnapshotTag, Store, StoreBuilder};

pub use options::{Duplicates, IdOrder, LoadOptions};
pub use period::{SnapshotBy, SnapshotPeriod};
pub(crate) use report::note_on_repeated;
pub use report::{InputReport, LoadReport};
pub use spread::Spread;

use self::arcs::EdgeRow;
pub(crate) use self::arcs::{Expand, LoadArc, Payload};
pub(crate) use self::budget::LoadBudget;
use self::build::Built;
pub(crate) use self::ingest::{InputKey, require_accepted};
pub(crate) use self::intern::KeyTable;
pub(crate) use self::keys::{Joined, VertexKeys, check_num_vertices};
pub(crate) use self::options::too_large_a_sum;
use self::spread::SnapshotSpreader;
use self::time_split::{PeriodTag, TimeSplit};
use crate::Result;
use crate::phases::TracedPhases;

/// The state that all steps of a load share.
#[derive(Clone, Copy)]
pub(crate) struct Load<'a> {
    pub(crate) options: &'a LoadOptions,
    pub(crate) inputs: &'a [InputPath],
    /// The edge properties that the graph gets.
    pub(crate) properties: &'a PropertySchema,
    pub(crate) budget: LoadBudget,
    pub(crate) builder: &'a StoreBuilder,
    pub(crate) spreader: Option<&'a SnapshotSpreader>,
    pub(crate) pool: &'a Pool,
    pub(crate) progress: &'a dyn Progress,
}

impl<'a> Load<'a> {
    /// The split of the edges by time, if there is one.
    pub(crate) fn by_time(&self) -> Option<&'a TimeSplit> {
        self.spreader.and_then(SnapshotSpreader::by_time)
    }

    /// Whether edges carry the rows of the input during the load.
    pub(crate) fn needs_rows(&self) -> bool {
        self.options.graph.has_rows() || self.by_time().is_some()
    }

    /// The treatment of parallel edges while they are sorted. A split by time merges them later, because each snapshot
    /// may merge other edges.
    pub(crate) fn sorted_duplicates(&self) -> Duplicates {
        if self.by_time().is_some() { Duplicates::Keep } else { self.options.duplicates }
    }
}

/// Loads inputs into a new database at `path`.
pub(crate) fn load(
    storage: Arc<dyn Storage>,
    path: &Path,
    inputs: &[InputPath],
    options: &LoadOptions,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<(Store, LoadReport)> {
    let _span = tracing::info_span!("load", path = %path.display()).entered();
    let loaded = load_inputs(storage, path, inputs, options, pool, &TracedPhases::new(progress))?;
    let LoadReport { vertices, edges, bytes, seconds, .. } = loaded.1;
    tracing::info!(vertices, edges, bytes, seconds, "load ended");
    Ok(loaded)
}

fn load_inputs(
    storage: Arc<dyn Storage>,
    path: &Path,
    inputs: &[InputPath],
    options: &LoadOptions,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<(Store, LoadReport)> {
    let start = Instant::now();
    // Memory that an earlier load left with the allocator must not count for this one.
    anden_base::memory::give_back_unused();
    anden_base::memory::reset_resident_peak();
    let wanted = &options.source.edge_properties;
    let mut options = options.agreed()?;
    let budget = LoadBudget::new(options.memory, options.sort_memory, pool.num_threads())?;
    // The edges of later snapshots are kept beside those that are being sorted.
    let budget = if options.has_several_snapshots() { budget.shared()? } else { budget };
    options.source.block_bytes = options.source.block_bytes.min(budget.block_bytes);
    if !options.follows_inputs {
        options.source.graph_kind = Some(options.graph.graph_kind);
    }
    let mut source = Source::open(inputs, options.source.clone())?;
    options.agree_on_direction(source.facts().graph_kind);
    options.agree_on_weights(&mut source);
    let properties = options.stored_properties(source.facts(), wanted)?;
    options.agree_on_edges(&properties)?;
    // Created only now, so that an unreadable input leaves no database behind.
    let builder = match options.identity {
        Some(identity) => Store::create_as(storage, path, options.graph, identity)?,
        None => Store::create(storage, path, options.graph)?,
    };
    let by_time = TimeSplit::new(&options, source.facts(), &properties, budget);
    let spreader = SnapshotSpreader::new(&options.spread, by_time, &options.graph, budget);
    let load = Load {
        options: &options,
        inputs,
        properties: &properties,
        budget,
        builder: &builder,
        spreader: spreader.as_ref(),
        pool,
        progress,
    };
    let built = match source.serialized().filter(|graph| serialized::fits(graph, &options)) {
        Some(graph) => build_serialized(&load, graph)?,
        None => build_source(&load, &mut source)?,
    };
    progress.check()?;
    // Before the publication, so that a refused input leaves no snapshot behind.
    refuse_unlisted(&source, &built, &options)?;
    let report = report(&load, &source, &built)?;
    let Built { base, dictionary, num_vertices, num_edges, .. } = built;
    let tag = SnapshotTag { name: options.name.as_deref(), as_of: options.as_of };
    let store = match spreader {
        None => builder.publish(base, dictionary, num_edges, tag)?,
        Some(spreader) => {
            let (deltas, tags) = spreader.write(&builder, num_vertices as usize, tag, progress)?;
            let tags: Vec<_> = tags.iter().map(PeriodTag::as_tag).collect();
            builder.publish_many(base, dictionary, num_edges, deltas, &tags)?
        }
    };
    let report = LoadReport {
        snapshot: store.snapshots().last().map_or(0, |snapshot| snapshot.number),
        seconds: start.elapsed().as_secs_f64(),
        bytes: store.stats().bytes,
        peak_bytes: anden_base::memory::resident_peak(),
        ..report
    };
    Ok((store, report))
}

/// The report on the inputs and on the graph.
fn report(load: &Load<'_>, source: &Source, built: &Built) -> Result<LoadReport> {
    let Load { options, properties, .. } = *load;
    let mut input = InputReport::new(source.facts(), properties, &built.summary, built.num_loops, options.duplicates);
    let is_directed = options.graph.graph_kind == GraphKind::Directed;
    input.merged_to(built.num_edges, Expand::of_inputs(&options.graph, source.facts())?, is_directed);
    let mut notes = source.facts().notes.clone();
    notes.extend(note_on_repeated(built.num_repeated, &options.source.vertices));
    notes.extend(input.note_on_loops(options.graph.ordered));
    Ok(LoadReport {
        vertices: built.num_vertices,
        edges: built.num_edges,
        skipped: built.summary.num_skipped,
        first_skipped: built.summary.first_skipped.clone(),
        input,
        notes,
        ..LoadReport::default()
    })
}

/// Refuses edges to vertices that the inputs do not list, if the inputs claim to list all. Dense keys are exempt: their
/// ids exist whether they are listed or not.
fn refuse_unlisted(source: &Source, built: &Built, options: &LoadOptions) -> Result<()> {
    let num_vertices = if options.graph.keys == KeyScheme::Dense { 0 } else { built.num_vertices };
    if built.summary.num_listed.is_some_and(|num_listed| num_vertices > num_listed)
        && let Some(error) = source.unlisted()?
    {
        return Err(error.into());
    }
    Ok(())
}

/// Builds from a serialized graph, whose edges have weights or no data.
fn build_serialized(load: &Load<'_>, graph: &SerializedGraph) -> Result<Built> {
    match load.options.graph.weight_type {
        None => serialized::build::<()>(load, graph),
        Some(WeightType::U32) => serialized::build::<u32>(load, graph),
        Some(WeightType::I64) => serialized::build::<i64>(load, graph),
        Some(WeightType::F32) => serialized::build::<f32>(load, graph),
        Some(WeightType::F64) => serialized::build::<f64>(load, graph),
    }
}

fn build_source(load: &Load<'_>, source: &mut Source) -> Result<Built> {
    match load.options.graph.keys {
        KeyScheme::String => build_keyed::<Span>(load, source),
        KeyScheme::Integer => build_keyed::<u64>(load, source),
        KeyScheme::Dense => build_keyed::<u32>(load, source),
    }
}

fn build_keyed<K: InputKey>(load: &Load<'_>, source: &mut Source) -> Result<Built> {
    let graph = &load.options.graph;
    match (graph.weight_type, load.needs_rows()) {
        // Without weights, the weight type of the parser does not matter.
        (None, false) => build::build::<K, u32, ()>(load, source),
        (None, true) => build::build::<K, u32, EdgeRow>(load, source),
        (Some(WeightType::U32), false) => build::build::<K, u32, u32>(load, source),
        (Some(WeightType::I64), false) => build::build::<K, i64, i64>(load, source),
        (Some(WeightType::F32), false) => build::build::<K, f32, f32>(load, source),
        (Some(WeightType::F64), false) => build::build::<K, f64, f64>(load, source),
        (Some(WeightType::U32), true) => build::build::<K, u32, ArcData>(load, source),
        (Some(WeightType::I64), true) => build::build::<K, i64, ArcData>(load, source),
        (Some(WeightType::F32), true) => build::build::<K, f32, ArcData>(load, source),
        (Some(WeightType::F64), true) => build::build::<K, f64, ArcData>(load, source),
    }
}
