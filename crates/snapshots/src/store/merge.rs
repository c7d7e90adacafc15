//! Merges deltas, so that readers apply fewer of them. No snapshot is lost.

mod parallelism;
mod rows;

use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::{Progress, Silent};
use anden_graph::{Direction, Graph};
use parking_lot::MutexGuard;

use self::parallelism::{MergeParallelism, require_for_delta};
use self::rows::NamedRows;
use super::draft::Draft;
use super::{PublishedState, RunningWork, Store};
use crate::adjacency::PageScratch;
use crate::base_writer::BaseWriter;
use crate::chain::MergedDelta;
use crate::file::{FileKind, WrittenFile};
use crate::manifest::Manifest;
use crate::page::WholePage;
use crate::property::{NewColumns, write_columns};
use crate::table::PAGE_VERTICES;
use crate::view::SnapshotView;
use crate::{Error, Result};

/// A new base is due once one part in this many of the base's arcs has changed.
const MERGE_SHARE: u64 = 16;

/// Fewer changed arcs than this do not slow readers down.
const MIN_CHANGED_ARCS: u64 = 4096;

/// Maintenance runs beside other work, so it takes one part in this many of the memory budget.
const MAINTENANCE_SHARE: u64 = 2;

/// Bytes that may be written for each byte that was loaded or appended.
const WRITE_AMPLIFICATION: u64 = 4;

/// The deltas that a merge covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeScope {
    /// All deltas, into a new base of the newest version.
    All,
    /// This many of the newest deltas, into one merged delta.
    Newest(u32),
}

/// Result of a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeReport {
    /// Bytes of the files that the merge wrote.
    pub bytes_written: u64,
    /// Deltas that readers of the newest version applied before the merge.
    pub deltas_before: usize,
    /// Deltas that readers of the newest version apply after the merge.
    pub deltas_after: usize,
}

impl Store {
    /// Merges deltas; does nothing if there is nothing to merge. Other threads can write during a merge of all deltas.
    ///
    /// Cost: [`MergeScope::All`] reads and writes the graph once, a few pages at a time. [`MergeScope::Newest`] reads
    /// and writes these deltas.
    ///
    /// Memory: at most that of [`set_memory`](Self::set_memory).
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory): the memory does not suffice, which shows before anything is written.
    /// The graph is damaged, the merge was cancelled, the handle is read-only or poisoned, or the disk failed. The
    /// database is then unchanged.
    pub fn merge(&self, scope: MergeScope, pool: &Pool, progress: &dyn Progress) -> Result<MergeReport> {
        let least = match scope {
            MergeScope::All => base_bytes(&self.state().manifest),
            MergeScope::Newest(_) => 0,
        };
        self.freeing(least, || match scope {
            MergeScope::All => {
                let merging = self.merging.lock();
                self.merge_all(&merging, self.memory(), pool, progress)
            }
            MergeScope::Newest(num_deltas) => self.begin()?.merge_newest(num_deltas),
        })
    }

    /// Merges all deltas if enough changed since the last merge, within four times the bytes that were loaded and
    /// appended. The limit does not hold once as many arcs changed as the base has. `None`: no merge was due, or half
    /// of the memory budget ([`set_memory`](Self::set_memory)) does not suffice.
    ///
    /// # Errors
    /// As [`merge`](Self::merge).
    pub fn maintain(&self, pool: &Pool, progress: &dyn Progress) -> Result<Option<MergeReport>> {
        let merging = self.merging.lock();
        let draft = self.begin()?;
        let is_needed = needs_merge(&draft.state);
        // Ended before the merge, which begins a change of its own.
        draft.end();
        if !is_needed {
            return Ok(None);
        }
        // The caller's own change succeeded, so a lack of memory for maintenance is no error.
        let merged = self.merge_all(&merging, self.memory().map(|memory| memory / MAINTENANCE_SHARE), pool, progress);
        // The database may have grown since the last one.
        self.renew_reserve();
        match merged {
            Err(Error::Memory { .. }) => Ok(None),
            merged => merged.map(Some),
        }
    }

    /// Merges all deltas up to the newest version, while other threads append younger ones.
    fn merge_all(
        &self,
        _: &MutexGuard<'_, ()>,
        memory: Option<u64>,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<MergeReport> {
        let mut draft = self.begin()?;
        let state = Arc::clone(&draft.state);
        let (newest, anchor) = (state.manifest.chain.newest().number, state.manifest.chain.anchor);
        if anchor == newest {
            draft.end();
            return Ok(MergeReport::default());
        }
        let view = state.view(newest, &self.path)?;
        // Refused here if memory is short, before anything is written.
        let parallelism = MergeParallelism::new(&state, &view, pool, memory)?;
        let _span = tracing::info_span!("merge", snapshot = newest).entered();
        let events = MergeEvents::begin(self, newest, progress);
        // Made before the files, so that an error on any path below removes them.
        let aside = AsideFilesGuard(self);
        // Under the mutex: other writers spare only the temporary files that were set aside.
        let number = draft.set_aside(|number| {
            let columns = crate::base_writer::columns(&self.options).into_iter();
            columns.map(|kind| crate::names::base(number, crate::base_writer::column_name(kind))).collect()
        });
        // The writer's mutex is free from here on: writing a base takes long, and commits need not wait for it.
        draft.end();
        let rows = NamedRows::new(&state.rows);
        let base = self.write_base((view, newest), number, (parallelism, rows), pool, &events.work)?;
        let mut draft = self.begin()?;
        // Other threads may have published meanwhile, so the plan starts from their state.
        let report = match draft.state.manifest.chain.index(newest) {
            Some(_) => draft.publish_base(base, &state),
            None => {
                // The version was dropped meanwhile. The next attempt holds the writer's mutex, so that it succeeds.
                draft.add_aside(Vec::new());
                let state = Arc::clone(&draft.state);
                draft.merge_alone(&state, memory, pool, &events.work)
            }
        };
        drop(aside);
        let report = report?;
        events.end(&report);
        Ok(report)
    }

    /// Writes the base of a version.
    fn write_base(
        &self,
        (view, version): (SnapshotView, u32),
        number: u32,
        (parallelism, mut rows): (MergeParallelism, NamedRows),
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<NewBase> {
        let (bound, id) = (view.vertex_bound(), self.id());
        let writer = BaseWriter::create(&*self.storage, &self.path, &self.options, id, bound, number)?;
        progress.stage("merging", Some(view.num_arcs()));
        write_lists(&view, &writer, parallelism, &mut rows, pool, progress)?;
        let files = writer.finish_with_dead(&view.dead())?.files;
        Ok(NewBase { view, version, number, files, rows })
    }
}

/// Whether a new base is due.
fn needs_merge(state: &PublishedState) -> bool {
    let manifest = &state.manifest;
    let newest = manifest.chain.newest();
    let arcs_of = |(added, removed): (u64, u64)| added.saturating_add(removed);
    let steps = state.steps(newest.number);
    let num_changed =
        steps.iter().map(|(delta, _)| arcs_of(delta.num_arcs(Direction::Out))).fold(0, u64::saturating_add);
    let num_arcs = state.base.num_arcs();
    if num_changed < MIN_CHANGED_ARCS || num_changed < num_arcs / MERGE_SHARE {
        return false;
    }
    let base_bytes = base_bytes(manifest);
    let delta_bytes: u64 = steps.iter().map(|(delta, _)| delta.num_bytes()).sum();
    // Merges write whole graphs, so all writing is bounded by the user's own bytes.
    let allowed = manifest.bytes_loaded.saturating_mul(WRITE_AMPLIFICATION);
    let is_allowed = manifest.bytes_written.saturating_add(base_bytes).saturating_add(delta_bytes) <= allowed;
    // Bases alone would cost more than all else that is written for a change if they were due earlier.
    is_allowed || num_changed >= num_arcs
}

fn base_bytes(manifest: &Manifest) -> u64 {
    manifest.files.iter().filter(|file| crate::names::is_base(&file.name)).map(|file| file.len).sum()
}

/// The base of a version, not yet part of the database.
struct NewBase {
    view: SnapshotView,
    version: u32,
    number: u32,
    files: Vec<WrittenFile>,
    /// The rows that the arcs of the base name.
    rows: NamedRows,
}

/// Passes progress on without write rates: a merge that blocks other writers is not slowed down.
struct Unslowed<'a>(&'a dyn Progress);

impl Progress for Unslowed<'_> {
    fn stage(&self, name: &str, total: Option<u64>) {
        self.0.stage(name, total);
    }

    fn advance(&self, amount: u64) {
        self.0.advance(amount);
    }

    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// On drop, removes the files that were set aside and did not become part of the database.
pub(super) struct AsideFilesGuard<'a>(pub &'a Store);

impl Drop for AsideFilesGuard<'_> {
    fn drop(&mut self) {
        self.0.forget_aside();
    }
}

impl Draft<'_> {
    /// Merges all deltas while no other thread writes.
    fn merge_alone(
        mut self,
        state: &PublishedState,
        memory: Option<u64>,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<MergeReport> {
        let number = self.next_file();
        let version = state.manifest.chain.newest().number;
        let view = state.view(version, &self.store.path)?;
        let parallelism = MergeParallelism::new(state, &view, pool, memory)?;
        let rows = NamedRows::new(&state.rows);
        let base = self.store.write_base((view, version), number, (parallelism, rows), pool, &Unslowed(progress))?;
        self.publish_base(base, state)
    }

    /// Makes a written base the database's. `before`: the state at the start of the merge.
    fn publish_base(mut self, base: NewBase, before: &PublishedState) -> Result<MergeReport> {
        let deltas_before = before.manifest.chain.steps(base.version).len();
        let mut manifest = self.state.manifest.clone();
        // From here on, the files belong to this change, and are removed if it fails.
        self.add_aside(base.files);
        self.write_columns(&mut manifest, &base.view)?;
        let plan = manifest.chain.merged_to(base.version);
        manifest.base = base.number;
        manifest.chain = self.carry_out(plan, None)?;
        // After the chain is final, because its deltas name rows, too.
        self.reclaim_rows(&mut manifest, base.rows)?;
        let deltas_after = manifest.chain.steps(manifest.chain.newest().number).len();
        let bytes_written = self.num_bytes();
        self.publish(manifest)?;
        Ok(MergeReport { bytes_written, deltas_before, deltas_after })
    }

    /// Writes the columns of vertex properties whose values at the version of `newest` differ from their files.
    ///
    /// Memory: one column.
    fn write_columns(&mut self, manifest: &mut Manifest, newest: &SnapshotView) -> Result<()> {
        for (column, record) in manifest.properties.iter_mut().enumerate() {
            let properties = newest.properties().stored();
            if !properties.has_changed(column as u32) {
                continue;
            }
            let values = properties.column_of(column as u32)?;
            record.file = None;
            // A column of nulls needs no file.
            if values.num_nulls() < values.len() {
                let number = self.next_file();
                let (storage, path) = (&*self.store.storage, &*self.store.path);
                let types = [(column as u32, record.property_type)];
                let new = NewColumns {
                    file_number: number,
                    kind: FileKind::Column,
                    runs: &[],
                    num_rows: values.len() as u64,
                    columns: &types,
                };
                let file = write_columns(storage, path, manifest.created.id, new, &|_, take| take(&values))?;
                self.add(file);
                record.file = Some(number);
            }
            if let Some(index) = &mut record.index {
                index.parts = self.renew_index(column as u32, &values)?;
            }
        }
        Ok(())
    }

    fn merge_newest(mut self, num_deltas: u32) -> Result<MergeReport> {
        let mut manifest = self.state.manifest.clone();
        let newest = manifest.chain.newest().number;
        let deltas_before = manifest.chain.steps(newest).len();
        let Some((from, to)) = manifest.chain.newest_range(num_deltas) else {
            return Ok(MergeReport { deltas_before, deltas_after: deltas_before, bytes_written: 0 });
        };
        let deltas = self.state.deltas_between(from, to);
        // Before the first byte is written, so that a refused merge leaves nothing.
        require_for_delta(&deltas, self.store.memory())?;
        let store = self.store;
        let _span = tracing::info_span!("merge", snapshot = newest).entered();
        let events = MergeEvents::begin(store, newest, &Silent);
        let delta = self.write_composed(deltas, from, to)?;
        manifest.chain = manifest.chain.with_merged_delta(MergedDelta { from, to, delta });
        let deltas_after = manifest.chain.steps(newest).len();
        let bytes_written = self.num_bytes();
        self.publish(manifest)?;
        let report = MergeReport { bytes_written, deltas_before, deltas_after };
        events.end(&report);
        Ok(report)
    }
}

/// The events and the counters of a merge.
struct MergeEvents<'a> {
    snapshot: u32,
    work: RunningWork<'a>,
}

impl<'a> MergeEvents<'a> {
    fn begin(store: &'a Store, snapshot: u32, progress: &'a dyn Progress) -> Self {
        tracing::info!(snapshot, "merge began");
        Self { snapshot, work: store.merges.begin(progress) }
    }

    fn end(self, report: &MergeReport) {
        let (snapshot, bytes, deltas) = (self.snapshot, report.bytes_written, report.deltas_after);
        let seconds = self.work.succeed(bytes).as_secs_f64();
        tracing::info!(snapshot, bytes, deltas, seconds, "merge ended");
    }
}

/// Writes all lists of a view. While one worker writes pages, the others make the next ones, if the memory allows.
fn write_lists(
    view: &SnapshotView,
    writer: &BaseWriter,
    parallelism: MergeParallelism,
    rows: &mut NamedRows,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<()> {
    let num_pages = view.vertex_bound().div_ceil(PAGE_VERTICES);
    for direction in [Direction::Out, Direction::In] {
        let Some(lists) = view.adjacency(direction) else { continue };
        let make = |scratch: &mut PageScratch, page: usize, (made, whole): &mut (usize, WholePage)| -> Result<()> {
            progress.check()?;
            *made = page;
            Ok(lists.read_whole_page(page, scratch, whole)?)
        };
        let mut take = |(page, whole): &mut (usize, WholePage)| {
            // Both directions name the same rows, so out-lists suffice.
            if direction == Direction::Out && view.options().has_rows() {
                rows.mark(&whole.entries.rows)?;
            }
            append(writer, view, direction, *page, whole, progress)
        };
        match parallelism {
            // Workers make pages ahead; the pages leave in order, because each file is one stream.
            MergeParallelism::ForMany => pool.in_order(0..num_pages, PageScratch::default, make, take)?,
            MergeParallelism::ForOne => {
                let (mut scratch, mut piece) = Default::default();
                (0..num_pages).try_for_each(|page| {
                    make(&mut scratch, page, &mut piece)?;
                    take(&mut piece)
                })?;
            }
        }
    }
    Ok(())
}

fn append(
    writer: &BaseWriter,
    view: &SnapshotView,
    direction: Direction,
    page: usize,
    whole: &WholePage,
    progress: &dyn Progress,
) -> Result<()> {
    let (num_vertices, num_arcs) = (writer.num_vertices(page), whole.entries.targets.len());
    if direction == Direction::Out {
        progress.advance(num_arcs as u64);
    }
    let entry_bytes = size_of::<u32>() + view.options().data_bytes();
    progress.wrote((num_vertices * size_of::<u32>() + num_arcs * entry_bytes) as u64);
    // A file may have been cut since its lists were verified.
    view.check()?;
    writer.append_page(direction, page, whole)
}
