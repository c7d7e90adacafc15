//! From inputs to a database.
//!
//! The input is read in parallel to *raw edges*, whose ends are keys or numbers of keys
//! ([`ingest`]). Keys become ids ([`keys`]). The edges are spread over ranges of lists that fit the
//! processor's cache ([`partition`]), each is sorted there ([`sort`]), and its lists are handed to
//! the run in order ([`assemble`]). In-lists are spread from the sorted out-lists, which leaves
//! nothing to be sorted but their owners. Edges without weights are spread while they are read
//! ([`buckets`]).
//!
//! Edges that do not fit the memory budget wait in scratch files and are merged from sorted runs
//! ([`external`]). Edges that ascend already are not sorted. A serialized graph is taken list by
//! list ([`serialized`]).
//!
//! Values of edge properties wait for the out-lists and are written in their order ([`row_numbers`]). If memory is
//! short, they are written before the lists, in the order of the input ([`rows`]).
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
mod lists;
mod map;
mod options;
mod partition;
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

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use base::parallel::Pool;
use base::progress::Progress;
use base::storage::Storage;
use graph::formats::{InputPath, SerializedGraph, Source, Span};
use graph::{Direction, WeightType};
use lama::{ArcData, KeyScheme, Store, StoreBuilder};

pub use options::{Duplicates, LoadOptions};
pub(crate) use report::note_on_repeated;
pub use report::{InputReport, LoadReport};
pub use spread::Spread;

use self::arcs::EdgeRow;
pub(crate) use self::arcs::{Expand, KeyedArc, Payload};
pub(crate) use self::budget::Budget;
use self::build::Built;
pub(crate) use self::ingest::InputKey;
pub(crate) use self::intern::KeyTable;
pub(crate) use self::keys::{Joined, VertexKeys, check_num_vertices};
pub(crate) use self::options::too_large_a_sum;
use self::spread::Spreader;
use crate::Result;

/// What all steps of a load share.
#[derive(Clone, Copy)]
pub(crate) struct Load<'a> {
    pub(crate) options: &'a LoadOptions,
    pub(crate) inputs: &'a [InputPath],
    pub(crate) budget: Budget,
    pub(crate) builder: &'a StoreBuilder,
    pub(crate) spreader: Option<&'a Spreader>,
    pub(crate) pool: &'a Pool,
    pub(crate) progress: &'a dyn Progress,
}

/// Loads inputs to a new database at `path`.
pub(crate) fn load(
    storage: Arc<dyn Storage>,
    path: &Path,
    inputs: &[InputPath],
    options: &LoadOptions,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<(Store, LoadReport)> {
    let start = Instant::now();
    // What a load before this one left with the allocator is not this one's.
    base::memory::give_back_unused();
    base::memory::reset_resident_peak();
    let mut options = options.agreed()?;
    let budget = Budget::new(options.memory, options.sort_memory, pool.num_threads())?;
    let budget = if options.spread.num_snapshots > 1 { budget.shared()? } else { budget };
    options.source.block_bytes = options.source.block_bytes.min(budget.block_bytes);
    let mut source = Source::open(inputs, options.source.clone())?;
    options.agree_on_direction(source.facts().direction);
    options.agree_on_edges(&source.facts().edge_properties)?;
    let builder = match options.identity {
        Some(identity) => Store::create_as(storage, path, options.graph, identity)?,
        None => Store::create(storage, path, options.graph)?,
    };
    let spreader = Spreader::new(&options.spread, options.graph.direction, options.graph.data_bytes(), budget);
    let load =
        Load { options: &options, inputs, budget, builder: &builder, spreader: spreader.as_ref(), pool, progress };
    let built = match source.serialized().filter(|graph| serialized::fits(graph, &options)) {
        Some(graph) => build_serialized(&load, graph)?,
        None => build_source(&load, &mut source)?,
    };
    progress.check()?;
    refuse_unlisted(&source, &built, &options)?;
    let name = options.name.as_deref();
    let store = match spreader {
        None => builder.publish(built.run, built.dictionary, built.num_edges, name)?,
        Some(spreader) => {
            let levels = spreader.write(&builder, built.num_vertices as usize, progress)?;
            let mut names = vec![None; options.spread.num_snapshots as usize];
            names[options.spread.num_snapshots as usize - 1] = name;
            builder.publish_many(built.run, built.dictionary, built.num_edges, levels, &names)?
        }
    };
    let mut input = InputReport::new(source.facts(), &built.summary, built.num_loops, options.duplicates);
    let is_directed = options.graph.direction == Direction::Directed;
    input.merged_to(built.num_edges, Expand::of_inputs(&options.graph, source.facts())?, is_directed);
    let mut notes = source.facts().notes.clone();
    notes.extend(note_on_repeated(built.num_repeated, &options.source.vertices));
    notes.extend(input.note_on_loops(options.graph.ordered));
    let report = LoadReport {
        vertices: built.num_vertices,
        edges: built.num_edges,
        snapshot: store.snapshots().last().map_or(0, |snapshot| snapshot.number),
        seconds: start.elapsed().as_secs_f64(),
        bytes: store.stats().bytes,
        skipped: built.summary.num_skipped,
        first_skipped: built.summary.first_skipped,
        input,
        notes,
        peak_bytes: base::memory::resident_peak(),
    };
    Ok((store, report))
}

/// Refuses edges to vertices that inputs do not list, although they list all. Ids of dense keys are there
/// whether they are listed or not.
fn refuse_unlisted(source: &Source, built: &Built, options: &LoadOptions) -> Result<()> {
    let num_vertices = if options.graph.keys == KeyScheme::Dense { 0 } else { built.num_vertices };
    if built.summary.num_listed.is_some_and(|num_listed| num_vertices > num_listed)
        && let Some(error) = source.unlisted()?
    {
        return Err(error.into());
    }
    Ok(())
}

/// Builds the graph of a serialized one, whose edges carry weights or nothing.
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
    match (graph.weight_type, graph.has_rows()) {
        // Without weights, the type in which they would be read does not matter.
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
