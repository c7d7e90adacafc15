//! From changes to a new snapshot.
//!
//! Edges that are to be added and removed are read and their keys become ids ([`requests`], [`ids`]). As a
//! [`ChangeSet`] they take the way of all changes from there on, but for the log and the memtable.
//!
//! The work grows with what is asked for, not with the graph, save one case: to remove a vertex of a directed graph
//! without in-lists is to look for the edges that lead to it.

mod arcs;
mod changes;
mod edge_rows;
mod ids;
mod options;
mod properties;
mod requests;
mod vertices;

use std::time::Instant;

use base::VertexId;
use base::parallel::Pool;
use base::progress::Progress;
use graph::Direction;
use graph::formats::{InputPath, Source, SourceSummary};
use graph::property::PropertySchema;
use lama::{GraphOptions, View};

pub use changes::Changes;
pub use options::{AppendOptions, AppendReport, ExpectedGraph, ExpectedWeights, Maintenance};

use self::arcs::{sort_arcs, sort_removed};
use self::edge_rows::{assign_rows, keep_rows};
use self::ids::{Resolved, Unknown, resolve};
use self::properties::{joined_schema, vertex_rows};
use self::requests::{Reading, Requests, added_by, read_source, removed_by};
use self::vertices::RemovedVertices;
use crate::live::{AddedRows, ChangeSet, VertexValues, WrittenLevel, num_edges_of};
use crate::load::{Budget, Duplicates, Expand, InputReport, note_on_repeated};
use crate::{Database, Error, Result};

impl Database {
    /// Makes a snapshot of what `inputs` add and [`AppendOptions::remove`] removes.
    ///
    /// Removals come first: an edge that is removed and added is there afterwards, and a removed vertex
    /// that edges are added to is there with these alone. What is there already is not added again,
    /// except to a multigraph; a weight replaces the one before. What is not there is not removed.
    /// The snapshot is made even where nothing changes.
    ///
    /// Cost: grows with what is asked for, not with the graph; but for the first vertex that is removed
    /// from a directed graph without in-lists, the graph is read. Maintenance, where it is due, merges
    /// as [`merge`](Self::merge) does.
    ///
    /// # Errors
    /// The handle cannot write, an option does not fit the graph, an input is not what it should be (with
    /// file and line), the changes do not fit the memory, the disk failed, or the caller wanted it. The
    /// database is then as it was; only what happens during maintenance, after the snapshot is made,
    /// leaves it there.
    pub fn append(
        &self,
        inputs: &[InputPath],
        options: &AppendOptions,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<AppendReport> {
        self.require_writer()?;
        append(self, inputs, options, pool, progress)
    }

    /// As [`append`](Self::append), with what a program made up; of `options`, files are not looked at.
    ///
    /// # Errors
    /// As [`append`](Self::append); a key or a weight that does not fit the graph.
    pub fn append_changes(
        &self,
        changes: &Changes,
        options: &AppendOptions,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<AppendReport> {
        self.require_writer()?;
        append_changes(self, changes, options, pool, progress)
    }
}

/// Appends files.
fn append(
    database: &Database,
    inputs: &[InputPath],
    options: &AppendOptions,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<AppendReport> {
    let append = Append::begin(database, inputs, options, pool, progress)?;
    let graph = database.options();
    // Properties that were just committed are known too.
    let view = database.view()?;
    let mut sources = options.sources(&view);
    sources.block_bytes = sources.block_bytes.min(append.budget.block_bytes);
    let mut source = Source::open(inputs, sources)?;
    require_edge_properties(graph, &source.facts().edge_properties)?;
    drop(view);
    let expand = Expand::of_inputs(graph, source.facts())?;
    let added = read_source(append.reading(), &mut source)?;
    let mut source = Source::open(&options.remove, options.removals(graph))?;
    let removed = read_source(Reading { graph: &unweighted(graph), ..append.reading() }, &mut source)?;
    append.finish(added, removed, expand, options.name.as_deref())
}

/// Appends what a program made up.
fn append_changes(
    database: &Database,
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
    let removed = removed_by(Reading { graph: &unweighted(graph), ..append.reading() }, changes)?;
    let name = changes.name.as_deref().or(options.name.as_deref());
    append.finish(added, removed, Expand::of(graph, false), name)
}

/// Refuses properties of edges for a graph that has none.
fn require_edge_properties(graph: &GraphOptions, schema: &PropertySchema) -> Result<()> {
    match schema.iter().next() {
        Some((name, _)) if !graph.edge_properties => {
            let what =
                "the graph was loaded without properties of edges: leave it out, or load the graph again with it";
            Err(Error::Option(format!("the column {name:?} would be a property of edges; {what}")))
        }
        _ => Ok(()),
    }
}

/// Removals name edges, not their weights.
fn unweighted(graph: &GraphOptions) -> GraphOptions {
    GraphOptions { weight_type: None, ..*graph }
}

/// An append under way.
struct Append<'a> {
    start: Instant,
    database: &'a Database,
    inputs: &'a [InputPath],
    options: &'a AppendOptions,
    budget: Budget,
    pool: &'a Pool,
    progress: &'a dyn Progress,
}

impl<'a> Append<'a> {
    fn begin(
        database: &'a Database,
        inputs: &'a [InputPath],
        options: &'a AppendOptions,
        pool: &'a Pool,
        progress: &'a dyn Progress,
    ) -> Result<Self> {
        let start = Instant::now();
        base::memory::reset_resident_peak();
        options.check(database.options())?;
        let budget = Budget::new(options.memory, None, pool.num_threads())?;
        Ok(Self { start, database, inputs, options, budget, pool, progress })
    }

    fn reading(&self) -> Reading<'_> {
        Reading {
            graph: self.database.options(),
            io_order: self.options.io_order,
            budget: &self.budget,
            pool: self.pool,
            progress: self.progress,
        }
    }

    /// Makes a snapshot, and merges what is due.
    fn finish(&self, added: Requests, removed: Requests, expand: Expand, name: Option<&str>) -> Result<AppendReport> {
        let Self { database, pool, progress, .. } = *self;
        let store = database.store();
        let summary = joined(&added.summary, &removed.summary);
        let duplicates = match self.options.duplicates(database.options()) {
            Duplicates::Auto => Duplicates::Min,
            rule => rule,
        };
        let comment_lines = added.input.comment_lines + removed.input.comment_lines;
        let mut input = InputReport { duplicates, comment_lines, ..added.input.clone() };
        let mut notes = [&added.notes[..], &removed.notes].concat();
        notes.extend(input.note_on_loops(database.options().ordered));
        let (written, asked) = self.make_snapshot(added, removed, expand, name)?;
        let snapshot = written.snapshot;
        // A program that sets a value twice knows that it does.
        if self.options.source.has_files(self.inputs) {
            notes.extend(note_on_repeated(asked.num_repeated, &self.options.source.vertices));
        }
        input.merged_to(asked.num_edges, expand, database.options().direction == Direction::Directed);
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
                // What was to be appended is there: an error would have it appended again.
                Err(error) => report.maintenance_error = Some(error.to_string()),
            }
        }
        report.bytes = store.num_bytes();
        report.seconds = self.start.elapsed().as_secs_f64();
        report.peak_bytes = base::memory::resident_peak();
        Ok(report)
    }

    /// Makes a snapshot of what is asked for.
    fn make_snapshot(
        &self,
        added: Requests,
        removed: Requests,
        expand: Expand,
        name: Option<&str>,
    ) -> Result<(WrittenLevel, Asked)> {
        let Self { database, pool, progress, .. } = *self;
        let (store, live) = (database.store(), database.live());
        // Others commit until a snapshot is there that is being made just now.
        live.wait_for_snapshot();
        // Keys get ids after those of the newest version, so no newer one may be made meanwhile. A transaction that is let
        // in alone is done before.
        let alone = database.be_alone()?;
        let turn = live.turn_at_snapshot(store)?;
        progress.stage("map keys", None);
        let (set, asked) = self.change_set(&store.view()?, added, removed, expand)?;
        progress.check()?;
        progress.stage("change", None);
        let written = turn.append(store, set, name, pool, progress)?;
        drop((turn, alone));
        Ok((written, asked))
    }

    /// What changes in `view`.
    fn change_set(
        &self,
        view: &View,
        mut added: Requests,
        mut removed: Requests,
        expand: Expand,
    ) -> Result<(ChangeSet, Asked)> {
        let Self { pool, progress, .. } = *self;
        let Resolved { vertex_bound, new_keys, .. } = resolve(&mut added, view, Unknown::Create, pool)?;
        resolve(&mut removed, view, Unknown::Ignore, pool)?;
        progress.check()?;
        let graph = view.options();
        let removed_vertices = RemovedVertices::new(view, &removed.blocks);
        let (properties, places) = joined_schema(view.properties().schema(), &added.schema, "")?;
        let (mut vertices, num_repeated) = vertex_rows(&mut added.blocks, &places);
        if graph.ordered {
            // A loop is no entry there, and yet its vertex is to be there.
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
        let num_edges = num_edges_of(&added, graph.direction);
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
        let set = ChangeSet { vertex_bound, new_keys, removed_vertices, removed, added, vertices, properties, rows };
        Ok((set, asked))
    }
}

/// What an append was asked for.
struct Asked {
    /// Edges, parallel ones merged.
    num_edges: u64,
    /// Rows that give a vertex values again.
    num_repeated: u64,
    /// Removals of vertices that are not there, and of edges of which an end was never one.
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
