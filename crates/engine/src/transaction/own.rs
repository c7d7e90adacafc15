//! What a transaction writes, laid over what it reads.
//!
//! Lists are kept as what comes and what goes; vertices that go take whatever the view has of their edges with them, so
//! that nobody has to look for it. Vertices that are new have ids of their own, above those of the view, that nobody else
//! learns of; without keys, an id is what it will be.
//!
//! No write looks through what was written before, however much that is. A value is therefore not searched for when its
//! vertex or edge goes: writes are numbered, and a value that is older than the removal does not count.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use base::VertexId;
use graph::property::OwnedValue;
use lama::{GraphOptions, Key, KeyScheme, Side};

use crate::live::EdgeUpdate;
use crate::validation::stored_ends;

/// Neighbors that are given at once.
const CHUNK: usize = 128;

/// An edge that comes, or one of the view's parallel edges that stays while others beside it change.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnEdge {
    /// The bits of its weight.
    pub(crate) weight: u64,
    /// The edge of the view.
    pub(crate) origin: Option<Origin>,
    /// Values that were written, in a multigraph.
    pub(crate) values: BTreeMap<String, OwnedValue>,
}

/// An edge of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) number: u64,
    pub(crate) row: u64,
}

/// What changes in a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnList {
    /// What comes, by neighbor; parallel edges are counted from 0.
    added: BTreeMap<(VertexId, u32), OwnEdge>,
    /// What the view has and is gone.
    removed: BTreeSet<VertexId>,
}

impl OwnList {
    fn add(&mut self, neighbor: VertexId, edge: OwnEdge, is_parallel: bool) {
        let number = if is_parallel { self.num_added_to(neighbor) } else { 0 };
        self.added.insert((neighbor, number), edge);
    }

    fn remove(&mut self, neighbor: VertexId) {
        for number in 0..self.num_added_to(neighbor) {
            self.added.remove(&(neighbor, number));
        }
        self.removed.insert(neighbor);
    }

    fn num_added_to(&self, neighbor: VertexId) -> u32 {
        let last = self.added.range((neighbor, 0)..=(neighbor, u32::MAX)).next_back();
        last.map_or(0, |((_, number), _)| number + 1)
    }

    /// Ascending; of parallel edges several times the same.
    pub(crate) fn targets(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.added.keys().map(|&(neighbor, _)| neighbor)
    }

    /// Calls `body` with [targets](Self::targets) and the bits of their weights.
    pub(crate) fn for_each_chunk(
        &self,
        mut body: impl FnMut(&[VertexId], &[u64]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (mut targets, mut weights, mut len) = ([0; CHUNK], [0; CHUNK], 0);
        for (&(neighbor, _), edge) in &self.added {
            (targets[len], weights[len]) = (neighbor, edge.weight);
            len += 1;
            if len == CHUNK {
                body(&targets, &weights)?;
                len = 0;
            }
        }
        if len > 0 { body(&targets[..len], &weights[..len]) } else { ControlFlow::Continue(()) }
    }

    /// How many edges lead to a neighbor that come, with the weight of the first.
    pub(crate) fn added(&self, neighbor: VertexId) -> Option<(usize, u64)> {
        let edge = self.added.get(&(neighbor, 0))?;
        Some((self.num_added_to(neighbor) as usize, edge.weight))
    }

    /// The edges to a neighbor that come, in the order in which they were added.
    pub(crate) fn edges_to(&self, neighbor: VertexId) -> impl Iterator<Item = &OwnEdge> {
        self.added.range((neighbor, 0)..=(neighbor, u32::MAX)).map(|(_, edge)| edge)
    }

    /// Whether the view's edges to a neighbor are gone.
    pub(crate) fn is_removed(&self, neighbor: VertexId) -> bool {
        self.removed.contains(&neighbor)
    }
}

/// All that a transaction writes. Most transactions write little, and empty B-trees cost nothing, hash tables a seed each.
#[derive(Debug, Default)]
pub(crate) struct Own {
    out: HashMap<VertexId, OwnList>,
    /// Of a graph whose edges are in the out-list of one end only.
    into: HashMap<VertexId, OwnList>,
    /// Whether vertices are there, where that was written: not where an id is one because there is a larger one.
    pub(crate) states: HashMap<VertexId, bool>,
    /// Vertices that went, perhaps to come again, and the number of the write: the view's edges and values of them do not
    /// count, nor do older ones that were written.
    gone: BTreeMap<VertexId, u64>,
    /// Pairs of a simple graph whose edge went, and the number of the write: older values do not count.
    renewed: BTreeMap<(VertexId, VertexId), u64>,
    ids: HashMap<Key, VertexId>,
    /// Of the new vertices, from the view's bound on.
    keys: Vec<Key>,
    values: HashMap<(VertexId, String), Numbered>,
    /// In a simple graph, by ends in the order in which they are stored.
    edge_values: HashMap<(VertexId, VertexId, String), Numbered>,
    /// The names in `edge_values`.
    edge_value_names: BTreeSet<String>,
    /// Names of properties that got a value, of vertices and of edges.
    valued: [BTreeSet<String>; 2],
    num_writes: u64,
    /// Of the view, and of what is written.
    pub(crate) first_new: usize,
    pub(crate) vertex_bound: usize,
}

/// A value, and the number of the write.
#[derive(Debug)]
struct Numbered {
    number: u64,
    value: OwnedValue,
}

/// What a property is of: the index of [`Own::valued`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum PropertyOf {
    Vertices,
    Edges,
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

    /// The number of vertices that went.
    pub(crate) fn num_gone(&self) -> usize {
        self.gone.len()
    }

    /// Whether a vertex went, perhaps to come again.
    pub(crate) fn is_gone(&self, vertex: VertexId) -> bool {
        !self.gone.is_empty() && self.gone.contains_key(&vertex)
    }

    /// What of an ascending piece of a list of the view does not count, ascending.
    ///
    /// Cost: that of the piece, or of what was written, whichever is less.
    pub(crate) fn hidden(&self, list: Option<&OwnList>, targets: &[VertexId], options: &GraphOptions) -> Vec<VertexId> {
        let mut hidden = Vec::new();
        let (Some(&first), Some(&last)) = (targets.first(), targets.last()) else { return hidden };
        let all = first..=last;
        let mut push =
            |num_written: usize, range: &mut dyn Iterator<Item = VertexId>, has: &dyn Fn(VertexId) -> bool| {
                match num_written < targets.len() {
                    true => hidden.extend(range),
                    false => hidden.extend(targets.iter().copied().filter(|&target| has(target))),
                }
            };
        push(self.gone.len(), &mut self.gone.range(all.clone()).map(|(&gone, _)| gone), &|target| self.is_gone(target));
        if let Some(list) = list {
            let removed = &list.removed;
            push(removed.len(), &mut removed.range(all).copied(), &|target| removed.contains(&target));
            if !options.multigraph {
                let added = list.added.range((first, 0)..=(last, u32::MAX));
                let has = |target| list.added.contains_key(&(target, 0));
                push(list.added.len(), &mut added.map(|(&(target, _), _)| target), &has);
            }
        }
        hidden.sort_unstable();
        hidden.dedup();
        hidden
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
    pub(crate) fn change_edge(&mut self, ends: (VertexId, VertexId), edge: Option<OwnEdge>, options: &GraphOptions) {
        let is_parallel = options.multigraph;
        let has_in_lists = is_in_one_list(options);
        EdgeUpdate { source: ends.0, target: ends.1, addition: None }.for_each_arc(options, |arc| {
            let change = |lists: &mut HashMap<VertexId, OwnList>, list, neighbor| {
                let list: &mut OwnList = lists.entry(list).or_default();
                match &edge {
                    Some(edge) => list.add(neighbor, edge.clone(), is_parallel),
                    None => list.remove(neighbor),
                }
            };
            change(&mut self.out, arc.list, arc.neighbour);
            if has_in_lists {
                change(&mut self.into, arc.neighbour, arc.list);
            }
        });
        if edge.is_none() && !self.edge_values.is_empty() {
            let number = self.next_write();
            self.renewed.insert(stored_ends(options, ends), number);
        }
    }

    /// The edges of a pair of a multigraph are these and no others.
    pub(crate) fn replace_edges(&mut self, ends: (VertexId, VertexId), edges: Vec<OwnEdge>, options: &GraphOptions) {
        self.change_edge(ends, None, options);
        edges.into_iter().for_each(|edge| self.change_edge(ends, Some(edge), options));
    }

    /// A vertex goes, with its edges and values.
    pub(crate) fn remove_vertex(&mut self, vertex: VertexId, options: &GraphOptions) {
        let number = self.next_write();
        self.states.insert(vertex, false);
        self.gone.insert(vertex, number);
        // What the view has of it is gone with the vertex.
        let forget = |list: Option<OwnList>, others: &mut HashMap<VertexId, OwnList>| {
            for neighbor in list.iter().flat_map(OwnList::targets) {
                if let Some(list) = others.get_mut(&neighbor) {
                    list.remove(vertex);
                }
            }
        };
        let list = self.out.remove(&vertex);
        match is_in_one_list(options) {
            true => {
                forget(list, &mut self.into);
                forget(self.into.remove(&vertex), &mut self.out);
            }
            false => forget(list, &mut self.out),
        }
    }

    /// The value of a vertex that was written and counts.
    pub(crate) fn value(&self, vertex: VertexId, name: &str) -> Option<&OwnedValue> {
        let Numbered { number, value } = self.values.get(&(vertex, name.to_owned()))?;
        (*number > self.gone_at(vertex)).then_some(value)
    }

    /// The vertices that got a value of a property here, and the values that count.
    pub(crate) fn values_of(&self, name: &str) -> impl Iterator<Item = (VertexId, &OwnedValue)> {
        let named = self.values.keys().filter(move |(_, other)| other == name);
        named.filter_map(move |&(vertex, _)| Some((vertex, self.value(vertex, name)?)))
    }

    pub(crate) fn set_value(&mut self, vertex: VertexId, name: &str, value: OwnedValue) {
        self.note_valued(PropertyOf::Vertices, name, &value);
        let number = self.next_write();
        self.values.insert((vertex, name.to_owned()), Numbered { number, value });
    }

    /// The value of an edge, by its ends in the order in which they are stored, that was written and counts.
    pub(crate) fn edge_value(&self, ends: (VertexId, VertexId), name: &str) -> Option<&OwnedValue> {
        let Numbered { number, value } = self.edge_values.get(&(ends.0, ends.1, name.to_owned()))?;
        let renewed = self.renewed.get(&ends).copied().unwrap_or(0);
        (*number > renewed.max(self.gone_at(ends.0)).max(self.gone_at(ends.1))).then_some(value)
    }

    pub(crate) fn set_edge_value(&mut self, ends: (VertexId, VertexId), name: &str, value: OwnedValue) {
        self.note_valued(PropertyOf::Edges, name, &value);
        if !self.edge_value_names.contains(name) {
            self.edge_value_names.insert(name.to_owned());
        }
        let number = self.next_write();
        self.edge_values.insert((ends.0, ends.1, name.to_owned()), Numbered { number, value });
    }

    /// Names of properties of edges of a simple graph that were written.
    pub(crate) fn edge_property_names(&self) -> impl Iterator<Item = &String> {
        self.edge_value_names.iter()
    }

    /// Whether a property got a value here, which makes it at the commit, whatever becomes of the value.
    pub(crate) fn makes_property(&self, of: PropertyOf, name: &str) -> bool {
        self.valued[of as usize].contains(name)
    }

    pub(crate) fn note_valued(&mut self, of: PropertyOf, name: &str, value: &OwnedValue) {
        if !value.as_value().is_null() && !self.makes_property(of, name) {
            self.valued[of as usize].insert(name.to_owned());
        }
    }

    /// The number of the write that removed a vertex last; 0 before all writes.
    fn gone_at(&self, vertex: VertexId) -> u64 {
        self.gone.get(&vertex).copied().unwrap_or(0)
    }

    fn next_write(&mut self) -> u64 {
        self.num_writes += 1;
        self.num_writes
    }
}

/// Whether an edge is an arc of one out-list, so that its other end needs a list of its own to find it.
fn is_in_one_list(options: &GraphOptions) -> bool {
    options.direction == graph::Direction::Directed
}
