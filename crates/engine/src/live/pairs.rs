//! Batches of edges given as pairs of ids.
//!
//! An update has fields that a plain edge does not need: the kind of its keys, a weight, names. If keys are ids and
//! edges carry no data, a batch is sorted straight from the caller's pairs. The WAL record is a copy of the pairs.

use anden_base::parallel::Pool;
use anden_base::{MAX_VERTICES, VertexId};
use anden_graph::GraphKind;
use anden_memtable::{Edges, Op};
use anden_snapshots::{GraphOptions, KeyScheme};

use super::apply::{BatchPlan, Logging};
use super::below::Below;
use super::update::{Missing, Update};
use super::{MemtableWriter, logged};
use crate::Result;
use crate::validation::ReadKey;

/// Pairs that one worker handles in a row.
const GRAIN: usize = 1 << 16;

/// Edges without weights, by the keys of their ends, that are all inserted or all deleted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EdgePairs<'a> {
    pub(crate) pairs: &'a [(VertexId, VertexId)],
    pub(crate) op: Op,
}

/// A batch in the form in which it was given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BatchInput<'a> {
    Updates(&'a [Update], Missing),
    Pairs(EdgePairs<'a>),
}

impl BatchInput<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Updates(updates, _) => updates.len(),
            Self::Pairs(EdgePairs { pairs, .. }) => pairs.len(),
        }
    }
}

impl EdgePairs<'_> {
    /// The pairs as updates.
    pub(crate) fn to_updates(self) -> Vec<Update> {
        let update = |&(source, target): &(VertexId, VertexId)| match self.op {
            Op::Insert => Update::add_edge(u64::from(source), u64::from(target)),
            Op::Delete => Update::remove_edge(u64::from(source), u64::from(target)),
        };
        self.pairs.iter().map(update).collect()
    }

    /// Whether a graph has plain edges and dense keys, so that pairs say all about an edge.
    pub(crate) fn suit(options: &GraphOptions) -> bool {
        // In an ordered graph, pairs would have to be turned, and loops to be left out.
        options.keys == KeyScheme::Dense && options.is_plain() && !options.ordered
    }

    /// One more than the largest id.
    fn bound(&self, pool: &Pool) -> usize {
        let largest = |chunk: &[(VertexId, VertexId)]| chunk.iter().map(|pair| pair.0.max(pair.1) as usize + 1).max();
        let bounds = pool.map_chunks(0..self.pairs.len(), GRAIN, |_, chunk| largest(&self.pairs[chunk]));
        bounds.into_iter().flatten().max().unwrap_or(0)
    }
}

impl MemtableWriter {
    /// Plans pairs for a graph that they [suit](EdgePairs::suit): the plan holds only the new vertex bound. `None` if
    /// an id is out of bounds.
    pub(super) fn plan_pairs(&self, edges: EdgePairs<'_>, pool: &Pool) -> Option<BatchPlan> {
        let bound = edges.bound(pool);
        // Otherwise, the path of updates refuses ids beyond the limit and skips edges of unknown vertices.
        let is_right = match edges.op {
            Op::Insert => bound <= MAX_VERTICES,
            Op::Delete => bound <= self.vertex_bound,
        };
        let plan = self.empty_plan();
        is_right.then(|| BatchPlan { vertex_bound: plan.vertex_bound.max(bound), ..plan })
    }

    /// Logs and applies planned pairs, and makes a version. Calls `changed` with each read key that changes.
    ///
    /// # Errors
    /// As for a batch of updates.
    pub(super) fn commit_pairs(
        &mut self,
        (edges, plan): (EdgePairs<'_>, BatchPlan),
        logging: Logging<'_>,
        pool: &Pool,
        changed: Option<&mut dyn FnMut(ReadKey)>,
    ) -> Result<()> {
        if let Some(changed) = changed {
            self.for_each_change_of_pairs(edges, changed);
            self.for_each_change(&plan, 0, self.vertex_bound, changed);
        }
        let EdgePairs { pairs, op } = edges;
        let bounds = (self.vertex_bound, plan.vertex_bound);
        let encode = |_: &Self, _: &BatchPlan, record: &mut Vec<u8>| logged::encode_pairs(edges, bounds, pool, record);
        self.commit_as(logging, plan.vertex_bound, plan, encode, |this, mut plan| {
            this.take_vertices(&mut plan);
            // While all ids are live, no end can be dead, and the pairs need not be scanned.
            if op == Op::Insert && this.num_vertices < this.vertex_bound {
                for &(source, target) in pairs {
                    this.revive(source);
                    this.revive(target);
                }
            }
            let is_mutual = this.overlay_base.view().options().graph_kind == GraphKind::Undirected;
            let immutable = this.immutable.as_ref().map(|immutable| &*immutable.version);
            let below = Below::new(&this.overlay_base, this.next_overlay_base.as_deref(), immutable);
            this.delta.apply_edges(pool, &below, Edges { pairs, op, is_mutual })
        })
    }

    fn for_each_change_of_pairs(&self, edges: EdgePairs<'_>, changed: &mut dyn FnMut(ReadKey)) {
        let options = self.overlay_base.view().options();
        // A deletion makes no vertex live, and neither does an insertion while all ids are live.
        let may_come = edges.op == Op::Insert && self.num_vertices < self.vertex_bound;
        for &(source, target) in edges.pairs {
            ReadKey::for_each_of_edge(options, source, target, &mut *changed);
            if may_come {
                self.comes(source, changed);
                self.comes(target, changed);
            }
        }
    }
}
