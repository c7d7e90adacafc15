//! From a version of a live graph to the level of a snapshot.

use base::VertexId;
use base::parallel::Pool;
use base::progress::{Progress, Silent};
use graph::{Direction, Graph};
use lama::{ChangedArc, Key, KeyScheme, LevelChanges, NewRows, Side, SnapshotInfo, Store, Underlay};
use terrace::Plane;

use super::apply::Logging;
use super::change_set::ChangeSet;
use super::delta::{LevelArcs, cancel};
use super::pairs::Given;
use super::rows::LevelRows;
use super::update::Applied;
use super::version::LiveVersion;
use super::{Live, SnapshotTurn, Writer};
use crate::load::VertexKeys;
use crate::log::Durability;
use crate::{Error, Result};

/// What making a snapshot holds whatever is in it: the program, and the buffers of its file.
pub(super) const FIXED_BYTES: u64 = 24 << 20;
/// A changed arc on its way from the container to the file: as it is sorted, and as it is written.
const ARC_BYTES: u64 = 48;

/// Makes a snapshot in which nothing changes.
///
/// # Errors
/// The name is no name or taken; the disk failed.
pub(super) fn write_empty_level(store: &Store, name: Option<&str>) -> Result<SnapshotInfo> {
    let vertex_bound = store.view()?.vertex_bound();
    Ok(store.append(&LevelChanges { vertex_bound, ..LevelChanges::default() }, name)?)
}

impl Live {
    /// Refuses a snapshot of what is committed that takes more memory than there may be.
    ///
    /// # Errors
    /// [`Error::Memory`], with what it takes.
    pub(crate) fn require_memory(&self, store: &Store) -> Result<()> {
        let Some(newest) = self.newest() else { return Ok(()) };
        // What is frozen already is written for itself; until then it is there too.
        let most_written =
            newest.frozen.as_ref().map_or(0, |frozen| frozen.written_bytes()).max(newest.written_bytes());
        require_memory(store, "a snapshot of what was committed", self.stats().delta_bytes, most_written)
    }

    /// Applies a very large batch as a snapshot of its own, behind one of what was committed before.
    ///
    /// # Errors
    /// As [`Turn::apply`](super::Turn::apply); the disk failed. Nothing has happened then.
    pub(crate) fn append_very_large(&self, store: &Store, given: Given<'_>, pool: &Pool) -> Result<Applied> {
        store.require_sound()?;
        let turn = self.turn_at_snapshot(store)?;
        let mut writer = Writer::new(store, self.epoch())?;
        let unlogged = Logging { log: None, durability: Durability::None };
        let version = writer.apply(given, unlogged, pool, None)?;
        require_memory(store, "a batch that becomes a snapshot", writer.num_bytes(), version.written_bytes())?;
        drop(writer);
        version.write_level(store, None, &Silent)?;
        turn.show(store, version.epoch);
        Ok(version.applied())
    }
}

impl SnapshotTurn<'_> {
    /// Makes a snapshot of changes, which are the next commit, without the log and the memtable.
    ///
    /// # Errors
    /// A lack of memory; damage in the snapshot; the disk failed, or the caller wanted it. Nothing has happened then, or
    /// it is not known, and the store says so from then on.
    pub(crate) fn append(
        &self,
        store: &Store,
        mut set: ChangeSet,
        name: Option<&str>,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<WrittenLevel> {
        store.require_sound()?;
        // Its memtable stays empty.
        let underlay = Underlay::brief(&store.view()?, 0);
        let mut writer = Writer::over(underlay, store, self.turn.live.epoch(), 0)?;
        let arcs = writer.apply_set(&mut set, pool, progress)?;
        writer.newest.require_unique(&set.new_keys)?;
        progress.stage("write", None);
        let num_missing = writer.num_missing(&set.removed, &arcs)?;
        let written = writer.newest.write_parts(arcs, Some(set.new_keys), store, name, progress)?;
        self.show(store, writer.newest.epoch);
        Ok(WrittenLevel { num_missing, ..written })
    }

    /// The newest snapshot is the commit of this epoch.
    fn show(&self, store: &Store, epoch: u64) {
        let live = self.turn.live;
        live.set_epoch(epoch);
        live.trim_log(store);
        live.stripes().change_everything(epoch);
    }
}

/// A snapshot, and what it changes.
#[derive(Debug)]
pub(crate) struct WrittenLevel {
    pub(crate) snapshot: SnapshotInfo,
    /// Edges that it adds and removes; one whose weight or row changes is both.
    pub(crate) num_added: u64,
    pub(crate) num_removed: u64,
    /// Values of vertices that it changes.
    pub(crate) num_values: u64,
    /// Edges that were to go and were not there.
    pub(crate) num_missing: u64,
}

/// Refuses a snapshot that needs more memory than there may be: `delta_bytes` for what is committed, and
/// `written_bytes` for what is made of it.
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
    /// Bytes that a snapshot of it has in memory while it is written: arcs, and the values of rows as columns.
    pub(super) fn written_bytes(&self) -> u64 {
        ARC_BYTES * self.num_changed_arcs() + self.edges.rows.num_bytes()
    }

    /// Arcs that it adds and removes, on all sides.
    fn num_changed_arcs(&self) -> u64 {
        let planes = [Plane::Out, Plane::In, Plane::OutRemoved, Plane::InRemoved];
        planes.iter().map(|&plane| self.delta.num_arcs(plane)).sum()
    }

    /// Makes a snapshot of this version, which lies over the newest one, with nothing frozen between them; tells
    /// `progress` what it writes.
    ///
    /// # Errors
    /// The name is no name or taken; the disk failed.
    pub(super) fn write_level(
        &self,
        store: &Store,
        name: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<SnapshotInfo> {
        Ok(self.write_parts(self.level_arcs(store), new_keys(self)?, store, name, progress)?.snapshot)
    }

    /// What the memtable adds and removes.
    fn level_arcs(&self, store: &Store) -> LevelArcs {
        let version = self;
        let arcs = |side: Side| {
            // Who commits meanwhile may touch vertices that this version has no room for.
            let touched = || version.underlay.touched(side).filter(|&vertex| (vertex as usize) < version.vertex_bound);
            let arcs = |plane| version.delta.arcs(plane, touched(), store.options());
            let (mut added, mut removed) = (arcs(Plane::added(side)), arcs(Plane::removed(side)));
            if store.options().multigraph {
                cancel(&mut added, &mut removed);
            }
            (added, removed)
        };
        let (out_added, out_removed) = arcs(Side::Out);
        let (in_added, in_removed) =
            if store.options().stores_in_lists() { arcs(Side::In) } else { (Vec::new(), Vec::new()) };
        LevelArcs { out_added, out_removed, in_added, in_removed }
    }

    /// The same with these entries of lists, and these keys of new vertices.
    fn write_parts(
        &self,
        arcs: LevelArcs,
        keys: Option<VertexKeys>,
        store: &Store,
        name: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<WrittenLevel> {
        debug_assert!(self.frozen.is_none(), "what is frozen becomes a snapshot first");
        let version = self;
        let below = version.snapshot();
        let LevelArcs { out_added, out_removed, in_added, in_removed } = arcs;
        let vertices = LevelVertices::new(version);
        let has_new_keys = version.vertex_bound > below.vertex_bound() && store.options().keys != KeyScheme::Dense;
        let keys = keys.filter(|_| has_new_keys);
        let properties = version.properties.changes(version.epoch, below)?;
        let rows = LevelRows::new(version, &out_added)?;
        let direction = store.options().direction;
        let (num_added, num_removed) = (num_edges_of(&out_added, direction), num_edges_of(&out_removed, direction));
        let snapshot = store.append_telling(
            &LevelChanges {
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
            name,
            progress,
        )?;
        let num_values = properties.changes.iter().map(|changes| changes.len() as u64).sum();
        Ok(WrittenLevel { snapshot, num_added, num_removed, num_values, num_missing: 0 })
    }
}

/// The edges that entries stand for; without a direction, each but a loop has two.
pub(crate) fn num_edges_of(arcs: &[ChangedArc], direction: Direction) -> u64 {
    match direction {
        Direction::Directed => arcs.len() as u64,
        Direction::Undirected => {
            let num_loops = arcs.iter().filter(|arc| arc.list == arc.neighbour).count();
            ((arcs.len() + num_loops) / 2) as u64
        }
    }
}

/// What a level changes in the vertices.
pub(super) struct LevelVertices {
    pub(super) died: Vec<VertexId>,
    pub(super) returned: Vec<VertexId>,
}

impl LevelVertices {
    /// What a version changes, with nothing frozen between it and the snapshot.
    pub(super) fn new(version: &LiveVersion) -> Self {
        let below = version.snapshot();
        let states = version.vertices.states(version.epoch);
        let was_live = |vertex: VertexId| vertex as usize >= below.vertex_bound() || below.is_live(vertex);
        let changed = |is_live: bool| {
            let changed = states.iter().filter(|&&(vertex, now)| now == is_live && was_live(vertex) != now);
            changed.map(|&(vertex, _)| vertex).collect::<Vec<_>>()
        };
        Self { died: changed(false), returned: changed(true) }
    }
}

/// The keys of the vertices that the snapshot does not have; none where there are none, or keys are ids.
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
            None => return Err(Error::Option(format!("vertex {vertex} has no key"))),
        }
    }
    Ok(Some(match scheme {
        KeyScheme::Integer => VertexKeys::integers(integers),
        _ => VertexKeys::strings(text, offsets),
    }))
}
