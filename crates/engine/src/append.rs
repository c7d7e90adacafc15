//! Appends: changes become a new snapshot at once.
//!
//! Edges to add and remove are read, and their keys become ids ([`requests`], [`ids`]). As a [`AppendSet`] they then
//! take the path of all changes, but skip WAL and memtable.
//!
//! The work grows with the changes, not with the graph. The exception: removing a vertex from a directed graph without
//! in-lists scans the graph for edges that lead to the vertex.

mod arcs;
mod changes;
mod edge_rows;
mod ids;
mod options;
mod properties;
mod requests;
mod vertices;

use std::time::Instant;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use anden_formats::{InputPath, Source, SourceSummary};
use anden_graph::GraphKind;
use anden_graph::property::PropertySchema;
use anden_snapshots::{GraphOptions, SnapshotTag, SnapshotView};

pub use changes::Changes;
pub use options::{AppendOptions, AppendReport, ExpectedGraph, ExpectedWeights, Maintenance};

use self::arcs::{sort_arcs, sort_removed};
use self::edge_rows::{assign_rows, keep_rows};
use self::ids::{Resolved, Unknown, resolve};
use self::properties::{joined_schema, vertex_rows};
use self::requests::{AppendContext, Requests, added_by, read_source, removed_by};
use self::vertices::RemovedVertices;
use crate::live::{AddedRows, AppendSet, VertexValues, WrittenSnapshot, num_edges_of};
use crate::load::{Duplicates, Expand, IdOrder, InputReport, LoadBudget, note_on_repeated};
use crate::phases::TracedPhases;
use crate::{Engine, Error, Result};

impl Engine {
    /// Makes a snapshot that adds `inputs` and removes [`AppendOptions::remove`].
    ///
    /// Removals come first: an edge that is removed and added exists afterwards. A removed vertex to which edges are
    /// added exists with these edges only. Existing edges are not added again, except to a multigraph; a new weight
    /// replaces the old one. Removals of missing edges do nothing. The snapshot is made even if nothing changes.
    ///
    /// Cost: grows with the changes, not with the graph. The first removal of a vertex from a directed graph without
    /// in-lists reads the graph. If a merge is due afterwards, it costs as [`merge`](Self::merge) does.
    ///
    /// # Errors
    /// The handle cannot write; an option does not fit the graph; an input is malformed (with file and line). The
    /// changes do not fit the memory; the disk failed; or `progress` cancelled the append. The database is then
    /// unchanged. A failure of maintenance, after the snapshot is made, is no error: the report has it.
    pub fn append(
        &self,
        inputs: &[InputPath],
        options: &AppendOptions,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<AppendReport> {
        self.require_writer()?;
        let _span = tracing::info_span!("append", path = %self.path().display()).entered();
        append(self, inputs, options, pool, &TracedPhases::new(progress))
    }

    /// As [`append`](Self::append), for changes that a program makes. Files in `options` are ignored.
    ///
    /// # Errors
    /// As [`append`](Self::append); a key or a weight does not fit the graph.
    pub fn append_changes(
        &self,
        changes: &Changes,
        options: &AppendOptions,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<AppendReport> {
        self.require_writer()?;
        let _span = tracing::info_span!("append", path = %self.path().display()).entered();
        append_changes(self, changes, options, pool, &TracedPhases::new(progress))
    }
}

/// Appends files.
fn append(
    database: &Engine,
    inputs: &[InputPath],
    options: &AppendOptions,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<AppendReport> {
    let append = Append::begin(database, inputs, options, pool, progress)?;
    let graph = database.options();
    // The view includes committed properties that are in no snapshot yet.
    let view = database.view()?;
    let mut sources = options.sources(&view);
    sources.block_bytes = sources.block_bytes.min(append.budget.block_bytes);
    sources.graph_kind = Some(graph.graph_kind);
    let mut source = Source::open(inputs, sources)?;
    require_edge_properties(graph, &source.facts().edge_properties)?;
    // A held view keeps its version in memory while the inputs are read.
    drop(view);
    let expand = Expand::of_inputs(graph, source.facts())?;
    let added = read_source(append.reading(), &mut source)?;
    let mut source = Source::open(&options.remove, options.removals(graph))?;
    let removed = read_source(AppendContext { graph: &unweighted(graph), ..append.reading() }, &mut source)?;
    append.finish(added, removed, expand, options.tag())
}

/// Appends changes that a program makes.
fn append_changes(
    database: &Engine,
    changes: &Changes,
    options: &AppendOptions,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<AppendReport> {
    let append = Append::begin(database, &[], options, pool, progress)?;
    let graph = database.options();
    let view = database.view()?;
    let added = added_by(append.reading(), changes, &view)?;
    drop(view);
    require_edge_properties(graph, &added.edge_schema)?;
    let removed = removed_by(AppendContext { graph: &unweighted(graph), ..append.reading() }, changes)?;
    let name = changes.name.as_deref().or(options.name.as_deref());
    append.finish(added, removed, Expand::of(graph, false), SnapshotTag { name, ..options.tag() })
}

/// Refuses edge properties for a graph without them.
fn require_edge_properties(graph: &GraphOptions, schema: &PropertySchema) -> Result<()> {
    match schema.iter().next() {
        Some((name, _)) if !graph.edge_properties => {
            let what =
                "the graph was loaded without properties of edges: leave it out, or load the graph again with it";
            Err(Error::options(format!("the column {name:?} would be a property of edges; {what}")))
        }
        _ => Ok(()),
    }
}

/// Removals name edges without their weights.
fn unweighted(graph: &GraphOptions) -> GraphOptions {
    GraphOptions { weight_type: None, ..*graph }
}

/// An append in progress.
struct Append<'a> {
    start: Instant,
    database: &'a Engine,
    inputs: &'a [InputPath],
    options: &'a AppendOptions,
    budget: LoadBudget,
    pool: &'a Pool,
    progress: &'a dyn Progress,
}

impl<'a> Append<'a> {
    fn begin(
        database: &'a Engine,
        inputs: &'a [InputPath],
        options: &'a AppendOptions,
        pool: &'a Pool,
        progress: &'a dyn Progress,
    ) -> Result<Self> {
        let start = Instant::now();
        anden_base::memory::reset_resident_peak();
        options.check(database.options())?;
        let budget = LoadBudget::new(options.memory, None, pool.num_threads())?;
        Ok(Self { start, database, inputs, options, budget, pool, progress })
    }

    fn reading(&self) -> AppendContext<'_> {
        AppendContext {
            graph: self.database.options(),
            io_order: self.options.order == IdOrder::Input,
            budget: &self.budget,
            pool: self.pool,
            progress: self.progress,
        }
    }

    /// Makes a snapshot, and merges if a merge is due.
    fn finish(&self, added: Requests, removed: Requests, expand: Expand, tag: SnapshotTag<'_>) -> Result<AppendReport> {
        let Self { database, pool, progress, .. } = *self;
        let store = database.store();
        let summary = joined(&added.summary, &removed.summary);
        let duplicates = match self.options.duplicates(database.options()) {
            // Without a rule, an append keeps the smallest weight, and the report names that rule.
            Duplicates::Auto => Duplicates::Min,
            rule => rule,
        };
        let comment_lines = added.input.comment_lines + removed.input.comment_lines;
        let mut input = InputReport { duplicates, comment_lines, ..added.input.clone() };
        let mut notes = [&added.notes[..], &removed.notes].concat();
        notes.extend(input.note_on_loops(database.options().ordered));
        let (written, asked) = self.make_snapshot(added, removed, expand, tag)?;
        let snapshot = written.snapshot;
        // Repeated values are noted for files only: a program sets them on purpose.
        if self.options.source.has_files(self.inputs) {
            notes.extend(note_on_repeated(asked.num_repeated, &self.options.source.vertices));
        }
        input.merged_to(asked.num_edges, expand, database.options().graph_kind == GraphKind::Directed);
        let mut report = AppendReport {
            vertices: snapshot.num_vertices,
            edges: snapshot.num_edges,
            snapshot: snapshot.number,
            added: written.num_added,
            removed: written.num_removed,
            changed_properties: written.num_values,
            missing: asked.num_missing + written.num_missing,
            snapshot_bytes: snapshot.bytes,
            skipped: summary.num_skipped,
            first_skipped: summary.first_skipped,
            input,
            notes,
            ..AppendReport::default()
        };
        if self.options.maintenance == Maintenance::WhenDue {
            match store.maintain(pool, progress) {
                Ok(merged) => report.maintenance_bytes = merged.map_or(0, |merged| merged.bytes_written),
                // The snapshot is made. An error here would make the caller append the changes again.
                Err(error) => report.maintenance_error = Some(error.to_string()),
            }
        }
        report.bytes = store.num_bytes();
        report.seconds = self.start.elapsed().as_secs_f64();
        report.peak_bytes = anden_base::memory::resident_peak();
        Ok(report)
    }

    /// Makes the snapshot.
    fn make_snapshot(
        &self,
        added: Requests,
        removed: Requests,
        expand: Expand,
        tag: SnapshotTag<'_>,
    ) -> Result<(WrittenSnapshot, Asked)> {
        let Self { database, pool, progress, .. } = *self;
        let (store, live) = (database.store(), database.live());
        // Wait for a running checkpoint before blocking commits, so that they go on meanwhile.
        live.wait_for_snapshot();
        // Keys get ids after those of the newest version, so no newer version may be made meanwhile. A transaction that
        // runs alone finishes first.
        let alone = database.be_alone()?;
        let guard = live.write_guard_at_snapshot(store)?;
        progress.stage("map keys", None);
        // Nothing lies over the newest snapshot now, so it has all ids and values.
        let (set, asked) = self.append_set(&store.view()?, added, removed, expand)?;
        progress.check()?;
        progress.stage("change", None);
        let written = guard.append(store, set, tag, pool, progress)?;
        // The guards are dropped before maintenance, so that commits go on during a merge.
        drop((guard, alone));
        Ok((written, asked))
    }

    /// The changes relative to `view`.
    fn append_set(
        &self,
        view: &SnapshotView,
        mut added: Requests,
        mut removed: Requests,
        expand: Expand,
    ) -> Result<(AppendSet, Asked)> {
        let Self { pool, progress, .. } = *self;
        let Resolved { vertex_bound, new_keys, .. } = resolve(&mut added, view, Unknown::Create, pool)?;
        resolve(&mut removed, view, Unknown::Ignore, pool)?;
        progress.check()?;
        let graph = view.options();
        let removed_vertices = RemovedVertices::new(view, &removed.blocks);
        let (properties, places) = joined_schema(view.properties().schema(), &added.schema, "")?;
        let (mut vertices, num_repeated) = vertex_rows(&mut added.blocks, &places);
        if graph.ordered {
            // A loop is no arc in an ordered graph, but must add its vertex.
            let ends = added.blocks.iter().flat_map(|block| &block.edges).filter(|(source, target)| source == target);
            vertices.push(VertexValues { vertices: ends.map(|ends| ends.0).collect(), columns: Vec::new() });
        }

        progress.stage("sort", None);
        let mut rows = AddedRows::default();
        if graph.has_rows() {
            let known = view.edge_properties().schema();
            rows = assign_rows(&mut added.blocks, known, &added.edge_schema, self.database.store().next_row())?;
        }
        let entries = arcs::added(added.blocks, expand);
        let mut added = sort_arcs(entries, graph, self.options.duplicates(graph), self.inputs, pool)?;
        let mut removed = arcs::removed(removed.blocks, Expand::of(graph, false));
        sort_removed(&mut removed.entries, pool);
        let num_missing = removed.num_unknown + removed_vertices.num_missing;
        progress.check()?;
        let num_edges = num_edges_of(&added, graph.graph_kind);
        // In a multigraph each requested edge is a new one, so no row is kept.
        if graph.edge_properties && !graph.multigraph {
            let is_removed = |ends: (VertexId, VertexId)| {
                let goes = |vertex| removed_vertices.vertices.binary_search(&vertex).is_ok();
                goes(ends.0) || goes(ends.1) || removed.entries.binary_search(&ends).is_ok()
            };
            keep_rows(view, &mut added, is_removed, &mut rows, pool)?;
        }
        let asked = Asked { num_edges, num_repeated, num_missing };
        let RemovedVertices { vertices: removed_vertices, .. } = removed_vertices;
        let removed = removed.entries;
        let set = AppendSet { vertex_bound, new_keys, removed_vertices, removed, added, vertices, properties, rows };
        Ok((set, asked))
    }
}

/// Counts of the requested changes.
struct Asked {
    /// Edges to add, after merging parallel ones.
    num_edges: u64,
    /// Repeated rows of values of a vertex.
    num_repeated: u64,
    /// Removals of missing vertices, and of edges with an end that was never a vertex.
    num_missing: u64,
}

fn joined(first: &SourceSummary, second: &SourceSummary) -> SourceSummary {
    SourceSummary {
        num_edges: first.num_edges + second.num_edges,
        num_skipped: first.num_skipped + second.num_skipped,
        first_skipped: first.first_skipped.clone().or_else(|| second.first_skipped.clone()),
        num_comments: first.num_comments + second.num_comments,
        num_listed: None,
    }
}
