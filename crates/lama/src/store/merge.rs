//! Merges levels into runs, so that readers have fewer of them to look at. No snapshot is lost by it.

mod room;
mod rows;

use std::sync::{Arc, MutexGuard, PoisonError};

use base::parallel::Pool;
use base::progress::Progress;
use graph::{Graph, Side, Weight, WeightType};

use self::room::{Room, require_for_level};
use self::rows::NamedRows;
use super::draft::Draft;
use super::{State, Store};
use crate::chain::DeltaRun;
use crate::changes::EntryBuffer;
use crate::file::{FileKind, WrittenFile};
use crate::manifest::Manifest;
use crate::patched::WholePage;
use crate::property::{NewColumns, write_columns};
use crate::run::RunWriter;
use crate::side::PageScratch;
use crate::table::PAGE_VERTICES;
use crate::view::View;
use crate::{Error, Result};

/// A base run is worth while once this part of its entries has changed.
const MERGE_SHARE: u64 = 16;

/// So few changes do not slow anybody down.
const MIN_CHANGED_ARCS: u64 = 4096;

/// Upkeep, which goes on beside other work, takes one in so many bytes of the memory that may be used.
const UPKEEP_SHARE: u64 = 2;

/// Bytes that may be written for each byte that was loaded or appended.
const WRITE_AMPLIFICATION: u64 = 4;

/// What is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeScope {
    /// Everything, into a new base run of the newest version.
    All,
    /// The newest so many levels, into one delta run.
    Newest(u32),
}

/// What a merge did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeReport {
    /// The bytes of the files that it wrote.
    pub bytes_written: u64,
    /// The levels that readers of the newest version had to apply before it.
    pub levels_before: usize,
    /// And after it.
    pub levels_after: usize,
}

impl Store {
    /// Merges. Where there is nothing to merge, nothing happens. Others write while everything is merged.
    ///
    /// Cost: of [`MergeScope::All`], the graph is read and written once, a few pages at a time; of
    /// [`MergeScope::Newest`], these levels are.
    ///
    /// Memory: that of [`set_memory`](Self::set_memory) at most.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory): that does not suffice, which is found out before anything is written.
    /// The graph is damaged, the caller wanted it, the handle is read-only or poisoned, or the disk failed; the
    /// database is then as before.
    pub fn merge(&self, scope: MergeScope, pool: &Pool, progress: &dyn Progress) -> Result<MergeReport> {
        match scope {
            MergeScope::All => {
                let merging = self.merging.lock().unwrap_or_else(PoisonError::into_inner);
                self.merge_all(&merging, self.memory(), pool, progress)
            }
            MergeScope::Newest(num_levels) => self.begin()?.merge_newest(num_levels),
        }
    }

    /// Merges everything if enough changed since the last time, and if that does not write more than four times what
    /// was loaded and appended; once as much has changed as there is, in any case. `None`: there was no need, or half
    /// of the memory that may be used ([`set_memory`](Self::set_memory)) does not suffice.
    ///
    /// # Errors
    /// As [`merge`](Self::merge).
    pub fn maintain(&self, pool: &Pool, progress: &dyn Progress) -> Result<Option<MergeReport>> {
        let merging = self.merging.lock().unwrap_or_else(PoisonError::into_inner);
        let draft = self.begin()?;
        let is_needed = needs_merge(&draft.state);
        draft.end();
        if !is_needed {
            return Ok(None);
        }
        // Who only wanted to add something has what he wanted, also where there is no room for more.
        match self.merge_all(&merging, self.memory().map(|memory| memory / UPKEEP_SHARE), pool, progress) {
            Err(Error::Memory { .. }) => Ok(None),
            merged => merged.map(Some),
        }
    }

    /// Merges everything up to the newest version, while younger ones may come.
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
        let room = Room::new(&state, &view, pool, memory)?;
        let aside = Aside(self);
        let number = draft.set_aside(|number| {
            let columns = crate::run::columns(&self.options).into_iter();
            columns.map(|kind| crate::names::run(number, crate::run::column_name(kind))).collect()
        });
        draft.end();
        let rows = NamedRows::new(&state.rows);
        let run = self.write_run((view, newest), number, (room, rows), pool, progress)?;
        let mut draft = self.begin()?;
        let report = match draft.state.manifest.chain.index(newest) {
            Some(_) => draft.publish_run(run, &state),
            None => {
                // The version was given up meanwhile: now nobody else may write.
                draft.add_aside(Vec::new());
                let state = Arc::clone(&draft.state);
                draft.merge_alone(&state, memory, pool, progress)
            }
        };
        drop(aside);
        report
    }

    /// Writes the base run of a version.
    fn write_run(
        &self,
        (view, version): (View, u32),
        number: u32,
        (room, mut rows): (Room, NamedRows),
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<NewRun> {
        let (bound, id) = (view.vertex_bound(), self.id());
        let writer = RunWriter::create(&*self.storage, &self.path, &self.options, id, bound, number)?;
        progress.stage("merging", Some(view.num_arcs()));
        write_lists(&view, &writer, room, &mut rows, pool, progress)?;
        let files = writer.finish_with_dead(&view.dead())?.files;
        Ok(NewRun { view, version, number, files, rows })
    }
}

/// Whether it is time for a new base run.
fn needs_merge(state: &State) -> bool {
    let manifest = &state.manifest;
    let newest = manifest.chain.newest();
    let arcs_of = |(added, removed): (u64, u64)| added.saturating_add(removed);
    let steps = state.steps(newest.number);
    let num_changed = steps.iter().map(|(level, _)| arcs_of(level.num_arcs(Side::Out))).fold(0, u64::saturating_add);
    let num_arcs = state.base.num_arcs();
    if num_changed < MIN_CHANGED_ARCS || num_changed < num_arcs / MERGE_SHARE {
        return false;
    }
    let run_bytes: u64 =
        manifest.files.iter().filter(|file| crate::names::is_run(&file.name)).map(|file| file.len).sum();
    let level_bytes: u64 = steps.iter().map(|(level, _)| level.num_bytes()).sum();
    let allowed = manifest.bytes_loaded.saturating_mul(WRITE_AMPLIFICATION);
    let is_allowed = manifest.bytes_written.saturating_add(run_bytes).saturating_add(level_bytes) <= allowed;
    // With a smaller share, base runs alone would cost more than all else that is written for a change.
    is_allowed || num_changed >= num_arcs
}

/// The base run of a version, not part of the database yet.
struct NewRun {
    view: View,
    version: u32,
    number: u32,
    files: Vec<WrittenFile>,
    /// Those that its lists name.
    rows: NamedRows,
}

/// Who makes others wait is not slowed down.
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

/// Dropped, nothing is left of what was written aside and did not become part of the database.
struct Aside<'a>(&'a Store);

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        self.0.forget_aside();
    }
}

impl Draft<'_> {
    /// Merges everything while nobody else writes.
    fn merge_alone(
        mut self,
        state: &State,
        memory: Option<u64>,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<MergeReport> {
        let number = self.next_file();
        let version = state.manifest.chain.newest().number;
        let view = state.view(version, &self.store.path)?;
        let room = Room::new(state, &view, pool, memory)?;
        let rows = NamedRows::new(&state.rows);
        let run = self.store.write_run((view, version), number, (room, rows), pool, &Unslowed(progress))?;
        self.publish_run(run, state)
    }

    /// Makes a run that was written the base run. `before`: when that was begun.
    fn publish_run(mut self, run: NewRun, before: &State) -> Result<MergeReport> {
        let levels_before = before.manifest.chain.steps(run.version).len();
        let mut manifest = self.state.manifest.clone();
        self.add_aside(run.files);
        self.write_columns(&mut manifest, &run.view)?;
        let plan = manifest.chain.merged_to(run.version);
        manifest.run = run.number;
        manifest.chain = self.carry_out(plan, None)?;
        self.reclaim_rows(&mut manifest, run.rows)?;
        let levels_after = manifest.chain.steps(manifest.chain.newest().number).len();
        let bytes_written = self.num_bytes();
        self.publish(manifest)?;
        Ok(MergeReport { bytes_written, levels_before, levels_after })
    }

    /// Writes the columns of properties that differ at the version of `newest` from what their files hold.
    ///
    /// Memory: one column.
    fn write_columns(&mut self, manifest: &mut Manifest, newest: &View) -> Result<()> {
        for (column, record) in manifest.properties.iter_mut().enumerate() {
            let properties = newest.properties().stored();
            if !properties.has_changed(column as u32) {
                continue;
            }
            let values = properties.column_of(column as u32)?;
            record.file = None;
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

    fn merge_newest(mut self, num_levels: u32) -> Result<MergeReport> {
        let mut manifest = self.state.manifest.clone();
        let newest = manifest.chain.newest().number;
        let levels_before = manifest.chain.steps(newest).len();
        let Some((from, to)) = manifest.chain.newest_range(num_levels) else {
            return Ok(MergeReport { levels_before, levels_after: levels_before, bytes_written: 0 });
        };
        let levels = self.state.levels_between(from, to);
        require_for_level(&levels, self.store.memory())?;
        let level = self.write_composed(levels, from, to)?;
        manifest.chain = manifest.chain.with_delta_run(DeltaRun { from, to, level });
        let levels_after = manifest.chain.steps(newest).len();
        let bytes_written = self.num_bytes();
        self.publish(manifest)?;
        Ok(MergeReport { bytes_written, levels_before, levels_after })
    }
}

/// Writes all lists of a view. While one worker writes pages, the others make the next ones, where there is room for
/// them.
fn write_lists(
    view: &View,
    writer: &RunWriter,
    room: Room,
    rows: &mut NamedRows,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<()> {
    let num_pages = view.vertex_bound().div_ceil(PAGE_VERTICES);
    for side in [Side::Out, Side::In] {
        let Some(lists) = view.side(side) else { continue };
        let make = |scratch: &mut PageScratch, page: usize, (made, whole): &mut (usize, WholePage)| -> Result<()> {
            progress.check()?;
            *made = page;
            Ok(lists.read_whole_page(page, scratch, whole)?)
        };
        let mut take = |(page, whole): &mut (usize, WholePage)| {
            if side == Side::Out && view.options().has_rows() {
                rows.mark(&whole.entries.rows)?;
            }
            append(writer, view, side, *page, whole, progress)
        };
        match room {
            Room::ForMany => pool.in_order(0..num_pages, PageScratch::default, make, take)?,
            Room::ForOne => {
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
    writer: &RunWriter,
    view: &View,
    side: Side,
    page: usize,
    whole: &WholePage,
    progress: &dyn Progress,
) -> Result<()> {
    let num_vertices = (view.vertex_bound() - page * PAGE_VERTICES).min(PAGE_VERTICES);
    let ends = whole.offsets.get(..=num_vertices).unwrap_or_default();
    let degrees: Vec<u32> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if side == Side::Out {
        progress.advance(whole.entries.targets.len() as u64);
    }
    let EntryBuffer { targets, weights, rows } = &whole.entries;
    let entry_bytes = size_of::<u32>() + view.options().data_bytes();
    progress.wrote((degrees.len() * size_of::<u32>() + targets.len() * entry_bytes) as u64);
    match view.options().weight_type {
        None => writer.append_verified::<u32>(side, &degrees, targets, &[], rows),
        Some(WeightType::U32) => writer.append_verified(side, &degrees, targets, &typed::<u32>(weights), rows),
        Some(WeightType::I64) => writer.append_verified(side, &degrees, targets, &typed::<i64>(weights), rows),
        Some(WeightType::F32) => writer.append_verified(side, &degrees, targets, &typed::<f32>(weights), rows),
        Some(WeightType::F64) => writer.append_verified(side, &degrees, targets, &typed::<f64>(weights), rows),
    }
}

fn typed<W: Weight>(bits: &[u64]) -> Vec<W> {
    bits.iter().map(|&bits| W::of_bits(bits)).collect()
}
