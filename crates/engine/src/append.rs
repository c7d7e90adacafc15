//! From changes to a new snapshot.
//!
//! Edges that are to be added and removed are read and their keys become ids ([`requests`], [`ids`]);
//! vertices that go take their edges along ([`vertices`]). What is left once all of that is held
//! against the newest version ([`effective`]) is the level of the new snapshot.
//!
//! The work grows with what is asked for, not with the graph, save one case: to remove a vertex of a
//! directed graph without in-lists is to look for the edges that lead to it.

mod arcs;
mod changes;
mod edge_rows;
mod effective;
mod ids;
mod options;
mod properties;
mod requests;
mod vertices;

use std::time::Instant;

use base::parallel::Pool;
use base::progress::Progress;
use graph::formats::{InputPath, Source, SourceSummary};
use graph::property::PropertySchema;
use graph::{Direction, Graph};
use lama::{GraphOptions, KeyScheme, LevelChanges, NewRows, SnapshotInfo, View};

pub use changes::{Changes, EdgeWeight, integer_key};
pub(crate) use changes::{fitting_key, weight_bits};
pub use options::{AppendOptions, AppendReport, ExpectedGraph, ExpectedWeights, Maintenance};

pub(crate) use self::arcs::num_edges_of;
use self::arcs::{sort_arcs, sort_entries, turned};
use self::edge_rows::{AskedRows, EdgeRows};
use self::effective::{Asked, Effective, compare};
pub(crate) use self::ids::order;
use self::ids::{Resolved, Unknown, resolve};
use self::properties::PropertyEffects;
pub(crate) use self::properties::{fitting, joined_type};
use self::requests::{Reading, Requests, added_by, read_source, removed_by};
use self::vertices::VertexChanges;
pub(crate) use self::vertices::entries_of;
use crate::load::{Budget, Duplicates, Expand, InputReport, note_on_repeated};
use crate::{Database, Error, Result};

/// Appends files.
pub(crate) fn append(
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
pub(crate) fn append_changes(
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
        let (snapshot, change) = self.make_snapshot(added, removed, expand, name)?;
        // A program that sets a value twice knows that it does.
        if !self.inputs.is_empty() || self.options.source.vertices.is_some() {
            notes.extend(note_on_repeated(change.properties.num_repeated, self.options.source.vertices.as_deref()));
        }
        input.merged_to(change.num_asked, expand, database.options().direction == Direction::Directed);
        let mut report = AppendReport {
            vertices: snapshot.num_vertices,
            edges: snapshot.num_edges,
            snapshot: snapshot.number,
            added: change.effective.num_added,
            removed: change.effective.num_removed,
            changed_properties: change.properties.num_changed,
            missing: change.effective.num_missing + change.vertices.num_missing,
            snapshot_bytes: snapshot.bytes,
            skipped: summary.num_skipped,
            first_skipped: summary.first_skipped,
            input,
            notes,
            ..AppendReport::default()
        };
        drop(change);
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

    /// Finds out what changes, and makes a snapshot of it.
    fn make_snapshot(
        &self,
        added: Requests,
        removed: Requests,
        expand: Expand,
        name: Option<&str>,
    ) -> Result<(SnapshotInfo, Change)> {
        let Self { database, pool, progress, .. } = *self;
        let (store, live) = (database.store(), database.live());
        // Others commit until a snapshot is there that is being made just now.
        live.wait_for_snapshot();
        // What changes is found out against the newest version: nobody may make a newer one meanwhile, and a transaction
        // that is let in alone is done before.
        let alone = database.be_alone()?;
        let (turn, view) = (live.turn_at_snapshot(store)?, store.view()?);
        progress.stage("map keys", None);
        let change = self.change(&view, added, removed, expand)?;
        progress.check()?;
        progress.stage("write", None);
        let Change { resolved, vertices, effective, properties, rows, .. } = &change;
        let (in_added, in_removed) = match store.options().stores_in_lists() {
            true => (turned(&effective.added, pool), turned(&effective.removed, pool)),
            false => (Vec::new(), Vec::new()),
        };
        let has_new_keys = resolved.vertex_bound > view.vertex_bound() && store.options().keys != KeyScheme::Dense;
        let snapshot = turn.append(
            store,
            &LevelChanges {
                vertex_bound: resolved.vertex_bound,
                died: &vertices.died,
                returned: &vertices.returned,
                keys: has_new_keys.then(|| resolved.new_keys.as_dictionary()),
                out_added: &effective.added,
                out_removed: &effective.removed,
                in_added: &in_added,
                in_removed: &in_removed,
                num_edges_added: effective.num_added,
                num_edges_removed: effective.num_removed,
                new_properties: &properties.new,
                properties: &properties.changes,
                new_edge_properties: &rows.new,
                rows: NewRows {
                    numbers: &rows.numbers,
                    next_row: rows.next_row,
                    columns: &rows.columns,
                    ..NewRows::default()
                },
                ..LevelChanges::default()
            },
            name,
        )?;
        drop((turn, alone));
        Ok((snapshot, change))
    }

    /// What changes in `view`.
    fn change(&self, view: &View, mut added: Requests, mut removed: Requests, expand: Expand) -> Result<Change> {
        let Self { pool, progress, .. } = *self;
        let resolved = resolve(&added, view, Unknown::Create, pool)?;
        resolved.apply(&mut added.blocks, pool);
        resolve(&removed, view, Unknown::Ignore, pool)?.apply(&mut removed.blocks, pool);
        progress.check()?;
        let vertices = VertexChanges::new(view, &added.blocks, &removed.blocks);
        let properties = PropertyEffects::new(view, &added.blocks, &added.schema, &vertices)?;

        progress.stage("sort", None);
        let graph = view.options();
        let mut rows = None;
        if graph.has_rows() {
            let known = view.edge_properties().schema();
            rows = Some(AskedRows::assign(&mut added, known, self.database.store().next_row())?);
        }
        let entries = arcs::added(added.blocks, expand);
        let added = sort_arcs(entries, graph, self.options.duplicates(graph), self.inputs, pool)?;
        let of_vertices = entries_of(view, &vertices.cleared, pool, progress)?;
        let removed = arcs::removed(removed.blocks, Expand::of(graph, false));
        let removals = sort_entries(removed.entries, of_vertices, pool);
        progress.check()?;
        let num_asked = num_edges_of(&added, graph.direction);
        let asked = Asked { added, removed: removals };
        let mut effective = compare(view, &asked, pool, progress)?;
        effective.num_missing += removed.num_unknown;
        let rows = rows.map(|rows| rows.settle(view, &mut effective, &asked.removed)).transpose()?.unwrap_or_default();
        Ok(Change { resolved, vertices, effective, properties, rows, num_asked })
    }
}

/// What an append changes.
struct Change {
    resolved: Resolved,
    vertices: VertexChanges,
    effective: Effective,
    properties: PropertyEffects,
    rows: EdgeRows,
    /// Edges that are asked for, parallel ones merged.
    num_asked: u64,
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
