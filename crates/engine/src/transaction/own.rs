//! What a transaction writes, laid over what it reads.
//!
//! Lists are kept as what comes and what goes; vertices that go take whatever the view has of their edges with them, so
//! that nobody has to look for it. Vertices that are new have ids of their own, above those of the view, that nobody else
//! learns of; without keys, an id is what it will be.

use std::collections::{HashMap, HashSet};

use base::VertexId;
use graph::property::OwnedValue;
use lama::{GraphOptions, Key, KeyScheme, Side};

use crate::commit::stored_ends;
use crate::live::EdgeUpdate;

/// What changes in a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnList {
    /// Ascending; of a multigraph perhaps several times the same.
    pub(crate) targets: Vec<VertexId>,
    /// The bits of their weights.
    pub(crate) weights: Vec<u64>,
    /// What the view has and is gone, ascending.
    pub(crate) removed: Vec<VertexId>,
}

impl OwnList {
    fn add(&mut self, neighbour: VertexId, weight: u64, is_parallel: bool) {
        let place = self.targets.partition_point(|&target| target < neighbour);
        if !is_parallel && self.targets.get(place) == Some(&neighbour) {
            self.weights[place] = weight;
            return;
        }
        self.targets.insert(place, neighbour);
        self.weights.insert(place, weight);
    }

    fn remove(&mut self, neighbour: VertexId) {
        let start = self.targets.partition_point(|&target| target < neighbour);
        let end = self.targets.partition_point(|&target| target <= neighbour);
        self.targets.drain(start..end);
        self.weights.drain(start..end);
        if let Err(place) = self.removed.binary_search(&neighbour) {
            self.removed.insert(place, neighbour);
        }
    }

    /// How many edges lead to a neighbour that come, with the weight of the last.
    pub(crate) fn added(&self, neighbour: VertexId) -> Option<(usize, u64)> {
        let start = self.targets.partition_point(|&target| target < neighbour);
        let end = self.targets.partition_point(|&target| target <= neighbour);
        (end > start).then(|| (end - start, self.weights[end - 1]))
    }

    /// Whether the view's edges to a neighbour are gone.
    pub(crate) fn is_removed(&self, neighbour: VertexId) -> bool {
        self.removed.binary_search(&neighbour).is_ok()
    }
}

/// All that a transaction writes.
#[derive(Debug, Default)]
pub(crate) struct Own {
    out: HashMap<VertexId, OwnList>,
    /// Of a directed graph.
    into: HashMap<VertexId, OwnList>,
    /// Whether vertices are there, where that was written: not where an id is one because there is a larger one.
    pub(crate) states: HashMap<VertexId, bool>,
    /// Vertices that went, perhaps to come again: the view's edges and values of them do not count.
    pub(crate) gone: HashSet<VertexId>,
    ids: HashMap<Key, VertexId>,
    /// Of the new vertices, from the view's bound on.
    keys: Vec<Key>,
    pub(crate) values: HashMap<(VertexId, String), OwnedValue>,
    /// By ends in the order in which they are stored.
    pub(crate) edge_values: HashMap<(VertexId, VertexId, String), OwnedValue>,
    /// Of the view, and of what is written.
    pub(crate) first_new: usize,
    pub(crate) vertex_bound: usize,
}

impl Own {
    /// Nothing yet, over a view whose ids are below `vertex_bound`.
    pub(crate) fn new(vertex_bound: usize) -> Self {
        Self { first_new: vertex_bound, vertex_bound, ..Self::default() }
    }

    /// Whether lists may differ from the view's.
    pub(crate) fn changes_lists(&self) -> bool {
        !self.out.is_empty() || !self.gone.is_empty()
    }

    pub(crate) fn list(&self, side: Side, vertex: VertexId) -> Option<&OwnList> {
        match side {
            Side::Out => self.out.get(&vertex),
            Side::In => self.into.get(&vertex),
        }
    }

    /// The vertices whose lists of a side are changed.
    pub(crate) fn changed_lists(&self, side: Side) -> impl Iterator<Item = VertexId> + '_ {
        match side {
            Side::Out => self.out.keys().copied(),
            Side::In => self.into.keys().copied(),
        }
    }

    /// The id of a vertex that is new here, dead or alive.
    pub(crate) fn id(&self, key: &Key, options: &GraphOptions) -> Option<VertexId> {
        match (options.keys, key) {
            (KeyScheme::Dense, &Key::Integer(key)) => {
                (key >= self.first_new as u64 && key < self.vertex_bound as u64).then_some(key as VertexId)
            }
            _ => self.ids.get(key).copied(),
        }
    }

    /// The key of a vertex that is new here.
    pub(crate) fn key(&self, vertex: VertexId, options: &GraphOptions) -> Option<Key> {
        let index = (vertex as usize).checked_sub(self.first_new)?;
        match options.keys {
            KeyScheme::Dense => Some(Key::Integer(vertex.into())),
            _ => self.keys.get(index).cloned(),
        }
    }

    /// Makes a vertex that the view has no id for.
    pub(crate) fn make(&mut self, key: &Key, options: &GraphOptions) -> VertexId {
        let id = match (options.keys, key) {
            // Ids below it become vertices too.
            (KeyScheme::Dense, &Key::Integer(id)) => id as VertexId,
            _ => {
                let id = self.vertex_bound as VertexId;
                self.ids.insert(key.clone(), id);
                self.keys.push(key.clone());
                id
            }
        };
        self.vertex_bound = id as usize + 1;
        self.states.insert(id, true);
        id
    }

    /// A new vertex is one unless it went.
    pub(crate) fn is_live(&self, vertex: VertexId) -> Option<bool> {
        let new = vertex as usize >= self.first_new;
        self.states.get(&vertex).copied().or(new.then_some((vertex as usize) < self.vertex_bound))
    }

    /// An edge is to be there, or to be gone.
    pub(crate) fn change_edge(&mut self, edge: EdgeUpdate, options: &GraphOptions) {
        let is_parallel = options.multigraph;
        let has_in_lists = options.direction == graph::Direction::Directed;
        edge.for_each_arc(options, |arc| {
            let change = |lists: &mut HashMap<VertexId, OwnList>, list, neighbour| {
                let list: &mut OwnList = lists.entry(list).or_default();
                match arc.addition {
                    Some(weight) => list.add(neighbour, weight, is_parallel),
                    None => list.remove(neighbour),
                }
            };
            change(&mut self.out, arc.list, arc.neighbour);
            if has_in_lists {
                change(&mut self.into, arc.neighbour, arc.list);
            }
        });
        // Of parallel edges, the last one's values are asked for: one that is added has none.
        if (edge.addition.is_none() || is_parallel) && !self.edge_values.is_empty() {
            let ends = stored_ends(options, (edge.source, edge.target));
            self.edge_values.retain(|(source, target, _), _| (*source, *target) != ends);
        }
    }

    /// A vertex goes, with its edges and values.
    pub(crate) fn remove_vertex(&mut self, vertex: VertexId) {
        self.states.insert(vertex, false);
        self.gone.insert(vertex);
        self.values.retain(|(other, _), _| *other != vertex);
        self.edge_values.retain(|(source, target, _), _| *source != vertex && *target != vertex);
        for lists in [&mut self.out, &mut self.into] {
            lists.remove(&vertex);
            for list in lists.values_mut() {
                // What the view has of it is gone with the vertex.
                if list.added(vertex).is_some() {
                    list.remove(vertex);
                }
            }
        }
    }
}
