//! The live graph: what was committed since the newest snapshot, in memory.
//!
//! A [`Live`] holds the changes in a [`terrace`] container and lays them over the snapshot, version after
//! version. There is one writer at a time; readers get the version that was published last, and keep it.
//!
//! Every edge that is named is looked up in the snapshot once. What it is in the changes is then blind:
//! an edge to add is added, and no longer removed, unless the snapshot has it with the same weight; an
//! edge to remove is not added any more, and removed if the snapshot has it. So nothing is read from the
//! changes, of several updates of one edge the last counts, and the changes stay effective: they hold
//! nothing that the snapshot has.

mod apply;
mod checkpoint;
mod delta;
mod keys;
mod update;
mod version;
mod vertices;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use base::parallel::Pool;
use lama::{Side, Store, Underlay, View};

pub use update::{Applied, Missing, Update};

use self::delta::Delta;
use self::keys::NewKeys;
use self::version::LiveVersion;
use self::vertices::VertexHistory;
use crate::{Error, Result};

/// Vertices that may come before everything is prepared for more.
const SPARE_VERTICES: usize = 1 << 16;

/// What was committed since the newest snapshot.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// Held by whoever writes: changes, or a snapshot. `None` until something is changed.
    writer: Mutex<Option<Writer>>,
    /// What readers get; `None` while nothing lies over the newest snapshot.
    published: RwLock<Option<Arc<LiveVersion>>>,
}

/// The right to write.
pub(crate) struct Turn<'a> {
    live: &'a Live,
    writer: MutexGuard<'a, Option<Writer>>,
}

/// The changes, and what they are made with.
#[derive(Debug)]
struct Writer {
    delta: Delta,
    underlay: Arc<Underlay>,
    keys: Arc<NewKeys>,
    vertices: Arc<VertexHistory>,
    vertex_bound: usize,
    num_vertices: usize,
    /// Of the next version.
    epoch: u64,
    /// Of the last whole batch.
    newest: Arc<LiveVersion>,
    /// A batch failed half way: what was published is whole, and nothing can follow it.
    is_broken: bool,
}

impl Live {
    /// Waits until nobody else writes.
    pub(crate) fn turn(&self) -> Turn<'_> {
        Turn { live: self, writer: self.writer.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// The same; what was committed before is a snapshot of its own.
    ///
    /// # Errors
    /// As [`Turn::checkpoint`].
    pub(crate) fn turn_at_snapshot(&self, store: &Store) -> Result<Turn<'_>> {
        let mut turn = self.turn();
        if turn.writer.is_some() {
            turn.checkpoint(store, None)?;
        }
        Ok(turn)
    }

    /// The graph with all changes; `None` where there are none.
    pub(crate) fn view(&self) -> Option<View> {
        // Only a pointer is copied under the lock.
        let newest = self.published.read().unwrap_or_else(PoisonError::into_inner).clone();
        newest.map(|newest| newest.view())
    }

    fn publish(&self, version: Option<Arc<LiveVersion>>) {
        *self.published.write().unwrap_or_else(PoisonError::into_inner) = version;
    }
}

impl Turn<'_> {
    /// Applies a batch: all of it, or nothing where an update is not right.
    ///
    /// # Errors
    /// A key or a weight that does not fit the graph; with [`Missing::Strict`], an update of what is not there;
    /// damage in the snapshot.
    pub(crate) fn apply(
        &mut self,
        store: &Store,
        updates: &[Update],
        missing: Missing,
        pool: &Pool,
    ) -> Result<Applied> {
        let writer = match &mut *self.writer {
            Some(writer) => writer,
            none => none.insert(Writer::new(store)?),
        };
        let version = writer.apply(updates, missing, pool)?;
        let applied = Applied {
            epoch: version.epoch,
            vertices: version.num_vertices as u64,
            edges: lama::Overlay::num_edges(&*version),
        };
        self.live.publish(Some(version));
        Ok(applied)
    }
}

impl Writer {
    /// Over the newest snapshot, or what is shown in its place.
    fn new(store: &Store) -> Result<Self> {
        let options = store.options();
        if options.multigraph {
            return Err(Error::Option("a multigraph takes its changes by append, not by updates".into()));
        }
        if options.edge_properties {
            let what = "a graph whose edges have properties takes its changes by append, not by updates";
            return Err(Error::Option(what.into()));
        }
        let view = store.view()?;
        let vertex_bound = graph::Graph::vertex_bound(&view);
        let num_vertices = graph::Graph::num_vertices(&view);
        let terrace_options = terrace::Options {
            direction: options.direction,
            in_lists: options.stores_in_lists(),
            ..terrace::Options::default()
        };
        let mut delta = Delta::new(options.weight_type, &terrace_options)?;
        let underlay = Arc::new(Underlay::new(&view, vertex_bound + vertex_bound / 4 + SPARE_VERTICES));
        delta.grow(underlay.capacity())?;
        let keys = Arc::new(NewKeys::new(vertex_bound));
        let vertices = Arc::new(VertexHistory::new(vertex_bound));
        let newest = Arc::new(LiveVersion {
            epoch: 0,
            underlay: Arc::clone(&underlay),
            delta: delta.publish(),
            keys: Arc::clone(&keys),
            vertices: Arc::clone(&vertices),
            vertex_bound,
            num_vertices,
        });
        Ok(Self { delta, underlay, keys, vertices, vertex_bound, num_vertices, epoch: 1, newest, is_broken: false })
    }

    /// A version of what was applied so far, perhaps of half a batch: only [`Live::publish`] shows it.
    fn version(&mut self) -> Arc<LiveVersion> {
        Arc::new(LiveVersion {
            epoch: self.epoch,
            underlay: Arc::clone(&self.underlay),
            delta: self.delta.publish(),
            keys: Arc::clone(&self.keys),
            vertices: Arc::clone(&self.vertices),
            vertex_bound: self.vertex_bound,
            num_vertices: self.num_vertices,
        })
    }

    /// The sides whose lists are kept.
    fn sides(&self) -> &'static [Side] {
        match self.underlay.view().options().stores_in_lists() {
            true => &[Side::Out, Side::In],
            false => &[Side::Out],
        }
    }
}
