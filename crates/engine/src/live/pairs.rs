//! Batches of edges that come as pairs of ids, not update by update.
//!
//! An update says a lot that a plain edge does not need: the kind of its keys, a weight, names. Where keys are ids and
//! edges carry nothing, a batch is sorted straight from the caller's pairs, and what the log gets of it are the pairs.

use base::parallel::Pool;
use base::{MAX_VERTICES, VertexId};
use graph::Direction;
use lama::{GraphOptions, KeyScheme};
use terrace::{Edges, Fate};

use super::apply::{Logging, Plan};
use super::below::Below;
use super::update::{Missing, Update};
use super::{Writer, logged};
use crate::Result;
use crate::validation::ReadKey;

/// Pairs that one worker looks at in a row.
const GRAIN: usize = 1 << 16;

/// Edges without weights, by the keys of their ends, that all come or all go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EdgePairs<'a> {
    pub(crate) pairs: &'a [(VertexId, VertexId)],
    pub(crate) fate: Fate,
}

/// A batch as it was given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given<'a> {
    Updates(&'a [Update], Missing),
    Pairs(EdgePairs<'a>),
}

impl Given<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Updates(updates, _) => updates.len(),
            Self::Pairs(EdgePairs { pairs, .. }) => pairs.len(),
        }
    }
}

impl EdgePairs<'_> {
    /// The same as updates.
    pub(crate) fn to_updates(self) -> Vec<Update> {
        let update = |&(source, target): &(VertexId, VertexId)| match self.fate {
            Fate::Come => Update::add_edge(u64::from(source), u64::from(target)),
            Fate::Go => Update::remove_edge(u64::from(source), u64::from(target)),
        };
        self.pairs.iter().map(update).collect()
    }

    /// Whether pairs are all there is to say about edges of such a graph that are given by key.
    pub(crate) fn suit(options: &GraphOptions) -> bool {
        options.keys == KeyScheme::Dense && options.is_plain() && !options.ordered
    }

    /// One more than the largest id.
    fn bound(&self, pool: &Pool) -> usize {
        let largest = |chunk: &[(VertexId, VertexId)]| chunk.iter().map(|pair| pair.0.max(pair.1) as usize + 1).max();
        let bounds = pool.map_chunks(0..self.pairs.len(), GRAIN, |_, chunk| largest(&self.pairs[chunk]));
        bounds.into_iter().flatten().max().unwrap_or(0)
    }
}

impl Writer {
    /// Plans pairs for a graph that they [suit](EdgePairs::suit): what is left of the plan is how many vertices there
    /// are. `None` where one is out of bounds.
    pub(super) fn plan_pairs(&self, edges: EdgePairs<'_>, pool: &Pool) -> Option<Plan> {
        let bound = edges.bound(pool);
        let is_right = match edges.fate {
            Fate::Come => bound <= MAX_VERTICES,
            Fate::Go => bound <= self.vertex_bound,
        };
        let plan = self.empty_plan();
        is_right.then(|| Plan { vertex_bound: plan.vertex_bound.max(bound), ..plan })
    }

    /// Logs and applies pairs that were planned, and makes a version with them; `changed` is called with what changes.
    ///
    /// # Errors
    /// As for a batch of updates.
    pub(super) fn commit_pairs(
        &mut self,
        (edges, plan): (EdgePairs<'_>, Plan),
        logging: Logging<'_>,
        pool: &Pool,
        changed: Option<&mut dyn FnMut(ReadKey)>,
    ) -> Result<()> {
        if let Some(changed) = changed {
            self.for_each_change_of_pairs(edges, changed);
            self.for_each_change(&plan, 0, self.vertex_bound, changed);
        }
        let EdgePairs { pairs, fate } = edges;
        let bounds = (self.vertex_bound, plan.vertex_bound);
        let encode = |_: &Self, _: &Plan, record: &mut Vec<u8>| logged::encode_pairs(edges, bounds, pool, record);
        self.commit_as(logging, plan.vertex_bound, plan, encode, |this, mut plan| {
            this.take_vertices(&mut plan);
            if fate == Fate::Come && this.num_vertices < this.vertex_bound {
                for &(source, target) in pairs {
                    this.revive(source);
                    this.revive(target);
                }
            }
            let is_mutual = this.underlay.view().options().direction == Direction::Undirected;
            let frozen = this.frozen.as_ref().map(|frozen| &*frozen.version);
            let below = Below::new(&this.underlay, this.next_underlay.as_deref(), frozen);
            this.delta.apply_edges(pool, &below, Edges { pairs, fate, is_mutual })
        })
    }

    fn for_each_change_of_pairs(&self, edges: EdgePairs<'_>, changed: &mut dyn FnMut(ReadKey)) {
        let options = self.underlay.view().options();
        let may_come = edges.fate == Fate::Come && self.num_vertices < self.vertex_bound;
        for &(source, target) in edges.pairs {
            ReadKey::for_each_of_edge(options, source, target, &mut *changed);
            if may_come {
                self.comes(source, changed);
                self.comes(target, changed);
            }
        }
    }
}
