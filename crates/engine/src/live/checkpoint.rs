//! Turns a version of the memtable into the delta of a snapshot.

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::progress::{Progress, Silent};
use anden_graph::{Graph, GraphKind};
use anden_memtable::AdjacencyTable;
use anden_snapshots::{
    ChangedArc, DeltaChanges, Direction, Key, KeyScheme, NewRows, OverlayBase, RunningWork, SnapshotInfo, SnapshotTag,
    Store,
};

use super::append_set::AppendSet;
use super::apply::Logging;
use super::delta::{DeltaArcs, cancel};
use super::pairs::BatchInput;
use super::rows::DeltaRows;
use super::update::Applied;
use super::version::LiveVersion;
use super::{Live, MemtableWriter, SnapshotWriteGuard};
use crate::load::VertexKeys;
use crate::log::Durability;
use crate::{Error, Result};

/// Memory of a checkpoint independent of its content: the program, and the buffers of its file.
pub(super) const FIXED_BYTES: u64 = 24 << 20;
/// Memory of a changed arc during a checkpoint: in sorted form and in written form.
const ARC_BYTES: u64 = 48;

/// Makes a snapshot without changes.
///
/// # Errors
/// The name is invalid or taken; the disk failed.
pub(super) fn write_empty_delta(store: &Store, tag: SnapshotTag<'_>) -> Result<SnapshotInfo> {
    let _span = tracing::info_span!("checkpoint", epoch = store.epoch()).entered();
    let work = store.checkpoints().begin(&Silent);
    let vertex_bound = store.view()?.vertex_bound();
    let snapshot = store.append(&DeltaChanges { vertex_bound, ..DeltaChanges::default() }, tag)?;
    report_checkpoint(&snapshot, store.epoch(), work);
    Ok(snapshot)
}

/// Counts a checkpoint, and tells its end.
fn report_checkpoint(snapshot: &SnapshotInfo, epoch: u64, work: RunningWork<'_>) {
    let (snapshot, bytes) = (snapshot.number, snapshot.bytes);
    let seconds = work.succeed(bytes).as_secs_f64();
    tracing::info!(epoch, snapshot, bytes, seconds, "checkpoint ended");
}

impl Live {
    /// Refuses a checkpoint of the current commits that needs more memory than the budget.
    ///
    /// # Errors
    /// [`Error::Memory`], with the memory that it needs.
    pub(crate) fn require_memory(&self, store: &Store) -> Result<()> {
        let Some(newest) = self.newest() else { return Ok(()) };
        // An immutable memtable is written on its own first; its memory is in use until then.
        let most_written =
            newest.immutable.as_ref().map_or(0, |immutable| immutable.written_bytes()).max(newest.written_bytes());
        require_memory(store, "a snapshot of what was committed", self.stats().delta_bytes, most_written)
    }

    /// Applies a very large batch as its own snapshot. Earlier commits become a snapshot first.
    ///
    /// # Errors
    /// As [`WriteGuard::apply`](super::WriteGuard::apply); the disk failed. Then nothing has happened.
    pub(crate) fn append_very_large(&self, store: &Store, given: BatchInput<'_>, pool: &Pool) -> Result<Applied> {
        store.require_sound()?;
        let guard = self.write_guard_at_snapshot(store)?;
        let mut writer = MemtableWriter::new(store, self.epoch())?;
        // No WAL record: the manifest that publishes the delta has the epoch (docs/decisions/0019).
        let unlogged = Logging { log: None, durability: Durability::None };
        let version = writer.apply(given, unlogged, pool, None)?;
        // The size is known only now. Nothing has happened yet.
        require_memory(store, "a batch that becomes a snapshot", writer.num_bytes(), version.written_bytes())?;
        // The buffers go before the delta takes memory.
        drop(writer);
        version.write_delta(store, SnapshotTag::default(), &Silent)?;
        guard.show(store, version.epoch);
        Ok(version.applied())
    }
}

impl SnapshotWriteGuard<'_> {
    /// Makes a snapshot of changes, which are the next commit, without WAL and memtable.
    ///
    /// # Errors
    /// A lack of memory; damage in the snapshot; the disk failed; or `progress` cancelled it. Then nothing has
    /// happened, or that is unknown, and the store refuses further writes.
    pub(crate) fn append(
        &self,
        store: &Store,
        mut set: AppendSet,
        tag: SnapshotTag<'_>,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<WrittenSnapshot> {
        store.require_sound()?;
        // The memtable of this writer stays empty, so it needs no room for vertices.
        let overlay_base = OverlayBase::short_lived(&store.view()?, 0);
        let mut writer = MemtableWriter::over(overlay_base, store, self.guard.live.epoch(), 0)?;
        let arcs = writer.apply_set(&mut set, pool, progress)?;
        // Before the write, so that a violation leaves nothing behind.
        writer.newest.require_unique(&set.new_keys)?;
        progress.stage("write", None);
        let num_missing = writer.num_missing(&set.removed, &arcs)?;
        let written = writer.newest.write_parts(arcs, Some(set.new_keys), store, tag, progress)?;
        self.show(store, writer.newest.epoch);
        Ok(WrittenSnapshot { num_missing, ..written })
    }

    /// Makes a new snapshot current, which is the commit of this epoch.
    pub(super) fn show(&self, store: &Store, epoch: u64) {
        let live = self.guard.live;
        live.set_epoch(epoch);
        // The manifest has the commits, so their records may go.
        live.trim_log(store);
        // Its changes were not noted one by one.
        live.versions().change_everything(epoch);
    }
}

/// A new snapshot, and counts of its changes.
#[derive(Debug)]
pub(crate) struct WrittenSnapshot {
    pub(crate) snapshot: SnapshotInfo,
    /// Edges that it adds and removes; a changed weight or row counts as both.
    pub(crate) num_added: u64,
    pub(crate) num_removed: u64,
    /// Vertex property values that it changes.
    pub(crate) num_values: u64,
    /// Edges to remove that did not exist.
    pub(crate) num_missing: u64,
}

/// Refuses a snapshot that needs more memory than the budget: `delta_bytes` for the changes, and `written_bytes` for
/// their form in the file.
pub(super) fn require_memory(store: &Store, what: &str, delta_bytes: u64, written_bytes: u64) -> Result<()> {
    let needed = FIXED_BYTES + delta_bytes + written_bytes;
    match store.memory() {
        Some(budget) if needed > budget => {
            Err(Error::Memory { what: format!("{what}, which must be in memory,"), needed, budget })
        }
        _ => Ok(()),
    }
}

impl LiveVersion {
    /// Memory of a checkpoint of this version: arcs, and the values of rows as columns.
    pub(super) fn written_bytes(&self) -> u64 {
        ARC_BYTES * self.num_changed_arcs() + self.edges.rows.num_bytes()
    }

    /// Arcs that it adds and removes, in all directions.
    fn num_changed_arcs(&self) -> u64 {
        let adjacency_tables =
            [AdjacencyTable::Out, AdjacencyTable::In, AdjacencyTable::OutRemoved, AdjacencyTable::InRemoved];
        adjacency_tables.iter().map(|&adjacency_table| self.delta.num_arcs(adjacency_table)).sum()
    }

    /// Makes a snapshot of this version. The version lies over the newest snapshot, without an immutable memtable
    /// between them. Reports written bytes to `progress`.
    ///
    /// # Errors
    /// The name is invalid or taken; the disk failed.
    pub(super) fn write_delta(
        &self,
        store: &Store,
        tag: SnapshotTag<'_>,
        progress: &dyn Progress,
    ) -> Result<SnapshotInfo> {
        let _span = tracing::info_span!("checkpoint", epoch = self.epoch).entered();
        let work = store.checkpoints().begin(progress);
        tracing::info!(epoch = self.epoch, arcs = self.num_changed_arcs(), "checkpoint began");
        let snapshot = self.write_parts(self.delta_arcs(store), new_keys(self)?, store, tag, &work)?.snapshot;
        report_checkpoint(&snapshot, self.epoch, work);
        Ok(snapshot)
    }

    /// The additions and tombstones of the memtable.
    fn delta_arcs(&self, store: &Store) -> DeltaArcs {
        let version = self;
        let arcs = |direction: Direction| {
            // Commits meanwhile may mark vertices beyond this version's bound as dirty.
            let dirty =
                || version.overlay_base.dirty(direction).filter(|&vertex| (vertex as usize) < version.vertex_bound);
            let arcs = |adjacency_table| version.delta.arcs(adjacency_table, dirty(), store.options());
            let (mut added, mut removed) =
                (arcs(AdjacencyTable::added(direction)), arcs(AdjacencyTable::removed(direction)));
            if store.options().multigraph {
                cancel(&mut added, &mut removed);
            }
            (added, removed)
        };
        let (out_added, out_removed) = arcs(Direction::Out);
        let (in_added, in_removed) =
            if store.options().stores_in_lists() { arcs(Direction::In) } else { (Vec::new(), Vec::new()) };
        DeltaArcs { out_added, out_removed, in_added, in_removed }
    }

    /// As [`write_delta`](Self::write_delta), with these arcs, and these keys of new vertices.
    fn write_parts(
        &self,
        arcs: DeltaArcs,
        keys: Option<VertexKeys>,
        store: &Store,
        tag: SnapshotTag<'_>,
        progress: &dyn Progress,
    ) -> Result<WrittenSnapshot> {
        debug_assert!(self.immutable.is_none(), "the immutable memtable becomes a snapshot first");
        let version = self;
        let below = version.snapshot();
        let DeltaArcs { out_added, out_removed, in_added, in_removed } = arcs;
        let vertices = DeltaVertices::new(version);
        // Dense keys are ids, and need no dictionary.
        let has_new_keys = version.vertex_bound > below.vertex_bound() && store.options().keys != KeyScheme::Dense;
        let keys = keys.filter(|_| has_new_keys);
        let properties = version.properties.changes(version.epoch, below)?;
        let rows = DeltaRows::new(version, &out_added)?;
        let graph_kind = store.options().graph_kind;
        let (num_added, num_removed) = (num_edges_of(&out_added, graph_kind), num_edges_of(&out_removed, graph_kind));
        let snapshot = store.append_telling(
            &DeltaChanges {
                epoch: version.epoch,
                vertex_bound: version.vertex_bound,
                died: &vertices.died,
                returned: &vertices.returned,
                keys: keys.as_ref().map(VertexKeys::as_dictionary),
                out_added: &out_added,
                out_removed: &out_removed,
                in_added: &in_added,
                in_removed: &in_removed,
                new_properties: &properties.new,
                properties: &properties.changes,
                new_edge_properties: &rows.new,
                rows: NewRows {
                    numbers: &rows.numbers,
                    next_row: rows.next,
                    columns: &rows.columns,
                    first_rows: rows.first_rows.as_ref(),
                },
                num_edges_added: num_added,
                num_edges_removed: num_removed,
            },
            tag,
            progress,
        )?;
        let num_values = properties.changes.iter().map(|changes| changes.len() as u64).sum();
        Ok(WrittenSnapshot { snapshot, num_added, num_removed, num_values, num_missing: 0 })
    }
}

/// The number of edges of these arcs; an undirected edge has two, unless it is a loop.
pub(crate) fn num_edges_of(arcs: &[ChangedArc], graph_kind: GraphKind) -> u64 {
    match graph_kind {
        GraphKind::Directed => arcs.len() as u64,
        GraphKind::Undirected => {
            let num_loops = arcs.iter().filter(|arc| arc.list == arc.neighbor).count();
            ((arcs.len() + num_loops) / 2) as u64
        }
    }
}

/// The vertices that a delta removes and adds again.
pub(super) struct DeltaVertices {
    pub(super) died: Vec<VertexId>,
    pub(super) returned: Vec<VertexId>,
}

impl DeltaVertices {
    /// The changes of a version, without an immutable memtable between it and the snapshot.
    pub(super) fn new(version: &LiveVersion) -> Self {
        let below = version.snapshot();
        let states = version.vertices.states(version.epoch);
        // A new vertex is born live, so only its removal is a change.
        let was_live = |vertex: VertexId| vertex as usize >= below.vertex_bound() || below.is_live(vertex);
        let changed = |is_live: bool| {
            let changed = states.iter().filter(|&&(vertex, now)| now == is_live && was_live(vertex) != now);
            changed.map(|&(vertex, _)| vertex).collect::<Vec<_>>()
        };
        Self { died: changed(false), returned: changed(true) }
    }
}

/// The keys of the vertices that the snapshot does not have; `None` if keys are ids.
fn new_keys(version: &LiveVersion) -> Result<Option<VertexKeys>> {
    let below = version.snapshot();
    let scheme = below.options().keys;
    if scheme == KeyScheme::Dense {
        return Ok(None);
    }
    let mut integers = Vec::new();
    let (mut text, mut offsets) = (Vec::new(), vec![0]);
    for vertex in below.vertex_bound()..version.vertex_bound {
        match version.keys.key(vertex as u32).map(Key::from) {
            Some(Key::Integer(key)) => integers.push(key),
            Some(Key::String(key)) => {
                text.extend_from_slice(key.as_bytes());
                offsets.push(text.len() as u64);
            }
            None => return Err(Error::internal(format!("vertex {vertex} has no key"))),
        }
    }
    Ok(Some(match scheme {
        KeyScheme::Integer => VertexKeys::integers(integers),
        _ => VertexKeys::strings(text, offsets),
    }))
}
