//! The writes of a transaction, laid over its view.
//!
//! Lists are kept as additions and removals. A removed vertex hides all its edges of the view, so that no code has to
//! find them. New vertices get provisional ids above those of the view. In a graph without keys, these are the final
//! ids.
//!
//! No write scans earlier writes. So the values of a removed vertex or edge are not searched for: writes are numbered,
//! and a value that is older than the removal does not count.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::property::OwnedValue;
use anden_snapshots::{Direction, GraphOptions, Key, KeyScheme};
use foldhash::HashMap;

use crate::error::PropertyOf;
use crate::live::EdgeUpdate;
use crate::validation::stored_ends;

/// Neighbors that are handed over at once.
const CHUNK: usize = 128;

/// An added edge, or a parallel edge of the view that stays while others of its pair change.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnEdge {
    /// The bits of its weight.
    pub(crate) weight: u64,
    /// Boxed, because most edges have no details, and a transaction may add many edges.
    details: Option<Box<OwnEdgeDetails>>,
}

#[derive(Clone, Debug, Default)]
struct OwnEdgeDetails {
    /// The edge of the view, if it is one.
    origin: Option<Origin>,
    /// Values that were written, in a multigraph.
    values: BTreeMap<String, OwnedValue>,
}

/// The number and the row of an edge of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) number: u64,
    pub(crate) row: u64,
}

impl OwnEdge {
    /// An edge with the bits of its weight.
    pub(crate) fn new(weight: u64) -> Self {
        Self { weight, details: None }
    }

    /// The edge of the view, if it is one.
    pub(crate) fn origin(&self) -> Option<Origin> {
        self.details.as_ref().and_then(|details| details.origin)
    }

    pub(crate) fn set_origin(&mut self, origin: Origin) {
        self.details.get_or_insert_default().origin = Some(origin);
    }

    /// The written value of a property, in a multigraph.
    pub(crate) fn value(&self, name: &str) -> Option<&OwnedValue> {
        self.details.as_ref().and_then(|details| details.values.get(name))
    }

    pub(crate) fn set_value(&mut self, name: String, value: OwnedValue) {
        self.details.get_or_insert_default().values.insert(name, value);
    }

    /// The written values by property, in a multigraph.
    pub(crate) fn into_values(self) -> BTreeMap<String, OwnedValue> {
        self.details.map_or_else(BTreeMap::new, |details| details.values)
    }
}

/// The list and the neighbor of an added edge, and its number among parallel ones.
type ArcKey = (VertexId, VertexId, u32);

/// The changes of all adjacency lists in one direction. One B-tree for all lists takes far less memory than one for
/// each list, whose first node has room for eleven edges.
#[derive(Debug, Default)]
struct OwnArcs {
    /// Added edges; parallel ones are counted from 0.
    added: BTreeMap<ArcKey, OwnEdge>,
    /// Lists with the neighbors whose edges of the view are removed.
    removed: BTreeSet<(VertexId, VertexId)>,
}

impl OwnArcs {
    fn add(&mut self, list: VertexId, neighbor: VertexId, edge: OwnEdge, is_parallel: bool) {
        // In a simple graph, a later addition replaces the earlier one.
        let number = if is_parallel { self.num_added(list, neighbor) } else { 0 };
        self.added.insert((list, neighbor, number), edge);
    }

    fn remove(&mut self, list: VertexId, neighbor: VertexId) {
        for number in 0..self.num_added(list, neighbor) {
            self.added.remove(&(list, neighbor, number));
        }
        self.removed.insert((list, neighbor));
    }

    /// Forgets all changes of a list. Returns the neighbors of its additions; parallel edges repeat their neighbor.
    fn forget(&mut self, vertex: VertexId) -> Vec<VertexId> {
        let list = OwnList { arcs: self, vertex };
        let added: Vec<ArcKey> = list.added_between(0, VertexId::MAX).map(|(&key, _)| key).collect();
        let removed: Vec<VertexId> = list.removed_between(0, VertexId::MAX).collect();
        for key in &added {
            self.added.remove(key);
        }
        for neighbor in removed {
            self.removed.remove(&(vertex, neighbor));
        }
        added.into_iter().map(|(_, neighbor, _)| neighbor).collect()
    }

    fn num_added(&self, list: VertexId, neighbor: VertexId) -> u32 {
        let last = self.added.range((list, neighbor, 0)..=(list, neighbor, u32::MAX)).next_back();
        // Edges of a pair are removed together only, so their numbers have no gap.
        last.map_or(0, |((.., number), _)| number + 1)
    }
}

/// The changes of one adjacency list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnList<'a> {
    arcs: &'a OwnArcs,
    vertex: VertexId,
}

impl<'a> OwnList<'a> {
    pub(crate) fn is_unchanged(self) -> bool {
        self.added_between(0, VertexId::MAX).next().is_none() && self.removed_between(0, VertexId::MAX).next().is_none()
    }

    /// The neighbors of the additions, ascending; parallel edges repeat their neighbor.
    pub(crate) fn targets(self) -> impl Iterator<Item = VertexId> + 'a {
        self.added_between(0, VertexId::MAX).map(|(&(_, neighbor, _), _)| neighbor)
    }

    /// Calls `body` with [targets](Self::targets) and the bits of their weights.
    pub(crate) fn for_each_chunk(
        self,
        mut body: impl FnMut(&[VertexId], &[u64]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (mut targets, mut weights, mut len) = ([0; CHUNK], [0; CHUNK], 0);
        for (&(_, neighbor, _), edge) in self.added_between(0, VertexId::MAX) {
            (targets[len], weights[len]) = (neighbor, edge.weight);
            len += 1;
            if len == CHUNK {
                body(&targets, &weights)?;
                len = 0;
            }
        }
        if len > 0 { body(&targets[..len], &weights[..len]) } else { ControlFlow::Continue(()) }
    }

    /// The number of added edges to a neighbor, with the weight of the first; `None` without any.
    pub(crate) fn added(self, neighbor: VertexId) -> Option<(usize, u64)> {
        let edge = self.arcs.added.get(&(self.vertex, neighbor, 0))?;
        Some((self.arcs.num_added(self.vertex, neighbor) as usize, edge.weight))
    }

    /// The added edges to a neighbor, in the order in which they were added.
    pub(crate) fn edges_to(self, neighbor: VertexId) -> impl Iterator<Item = &'a OwnEdge> {
        self.added_between(neighbor, neighbor).map(|(_, edge)| edge)
    }

    /// Whether the view's edges to a neighbor are removed.
    pub(crate) fn is_removed(self, neighbor: VertexId) -> bool {
        self.arcs.removed.contains(&(self.vertex, neighbor))
    }

    /// The additions whose neighbors are from `first` to `last`.
    fn added_between(self, first: VertexId, last: VertexId) -> btree_map::Range<'a, ArcKey, OwnEdge> {
        self.arcs.added.range((self.vertex, first, 0)..=(self.vertex, last, u32::MAX))
    }

    /// The neighbors from `first` to `last` whose edges of the view are removed.
    fn removed_between(self, first: VertexId, last: VertexId) -> impl Iterator<Item = VertexId> + 'a {
        self.arcs.removed.range((self.vertex, first)..=(self.vertex, last)).map(|&(_, neighbor)| neighbor)
    }
}

/// All writes of a transaction. Most transactions write little: an empty B-tree costs nothing, an empty hash table a
/// seed.
#[derive(Debug, Default)]
pub(crate) struct Own {
    out: OwnArcs,
    /// In-lists, of a directed graph only.
    into: OwnArcs,
    /// The written states of vertices: alive or removed. Ids below a new dense id have no entry.
    pub(crate) states: HashMap<VertexId, bool>,
    /// Removed vertices, perhaps added again, with the number of the write. The view's edges and values of them do not
    /// count, nor do older written values.
    gone: BTreeMap<VertexId, u64>,
    /// Pairs of a simple graph whose edge was removed, with the number of the write: older values do not count.
    renewed: BTreeMap<(VertexId, VertexId), u64>,
    ids: HashMap<Key, VertexId>,
    /// Keys of the new vertices, from the view's vertex bound on.
    keys: Vec<Key>,
    values: HashMap<(VertexId, String), Numbered>,
    /// In a simple graph, by ends in the order of storage.
    edge_values: HashMap<(VertexId, VertexId, String), Numbered>,
    /// The names in `edge_values`.
    edge_value_names: BTreeSet<String>,
    /// Names of properties that got a value, of vertices and of edges.
    valued: [BTreeSet<String>; 2],
    num_writes: u64,
    /// The view's vertex bound; `vertex_bound` includes new vertices.
    pub(crate) first_new: usize,
    pub(crate) vertex_bound: usize,
}

/// A value, and the number of the write.
#[derive(Debug)]
struct Numbered {
    number: u64,
    value: OwnedValue,
}

impl Own {
    /// No writes, over a view whose ids are below `vertex_bound`.
    pub(crate) fn new(vertex_bound: usize) -> Self {
        Self { first_new: vertex_bound, vertex_bound, ..Self::default() }
    }

    /// Whether a list may differ from the view's.
    pub(crate) fn changes_lists(&self) -> bool {
        !self.out.added.is_empty() || !self.out.removed.is_empty() || !self.gone.is_empty()
    }

    /// The number of removed vertices.
    pub(crate) fn num_gone(&self) -> usize {
        self.gone.len()
    }

    /// Whether a vertex was removed, perhaps added again.
    pub(crate) fn is_gone(&self, vertex: VertexId) -> bool {
        // Most transactions remove no vertex, and need no lookup.
        !self.gone.is_empty() && self.gone.contains_key(&vertex)
    }

    /// The targets of a fragment of the view that do not count, ascending.
    ///
    /// Cost: linear in the shorter of fragment and writes.
    pub(crate) fn hidden(&self, list: OwnList<'_>, targets: &[VertexId], options: &GraphOptions) -> Vec<VertexId> {
        let mut hidden = Vec::new();
        let (Some(&first), Some(&last)) = (targets.first(), targets.last()) else { return hidden };
        let mut push = |written: &mut dyn Iterator<Item = VertexId>, is_written: &dyn Fn(VertexId) -> bool| {
            let start = hidden.len();
            hidden.extend(written.take(targets.len()));
            // Enumerates the smaller of writes and fragment.
            if hidden.len() - start == targets.len() {
                hidden.truncate(start);
                hidden.extend(targets.iter().copied().filter(|&target| is_written(target)));
            }
        };
        push(&mut self.gone.range(first..=last).map(|(&gone, _)| gone), &|target| self.is_gone(target));
        push(&mut list.removed_between(first, last), &|target| list.is_removed(target));
        // In a simple graph, an added edge replaces the edge of the view.
        if !options.multigraph {
            let added = list.added_between(first, last);
            push(&mut added.map(|(&(_, target, _), _)| target), &|target| list.added(target).is_some());
        }
        hidden.sort_unstable();
        hidden.dedup();
        hidden
    }

    /// The changes of a list.
    pub(crate) fn list(&self, direction: Direction, vertex: VertexId) -> OwnList<'_> {
        let arcs = match direction {
            Direction::Out => &self.out,
            Direction::In => &self.into,
        };
        OwnList { arcs, vertex }
    }

    /// The vertices whose out-lists change; they repeat.
    pub(crate) fn changed_lists(&self) -> impl Iterator<Item = VertexId> + '_ {
        let OwnArcs { added, removed } = &self.out;
        added.keys().map(|&(list, ..)| list).chain(removed.iter().map(|&(list, _)| list))
    }

    /// The id of a vertex that is new here, alive or removed.
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

    /// Gives a vertex an id that the view does not have.
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

    /// Whether a vertex is alive, if this transaction decides it. A new vertex is alive unless it was removed.
    pub(crate) fn is_live(&self, vertex: VertexId) -> Option<bool> {
        let new = vertex as usize >= self.first_new;
        // In a graph without keys, new ids below the largest one have no state of their own.
        self.states.get(&vertex).copied().or(new.then_some((vertex as usize) < self.vertex_bound))
    }

    /// Adds an edge, or removes the edges of the pair.
    pub(crate) fn change_edge(&mut self, ends: (VertexId, VertexId), edge: Option<OwnEdge>, options: &GraphOptions) {
        let is_parallel = options.multigraph;
        let has_in_lists = is_in_one_list(options);
        EdgeUpdate { source: ends.0, target: ends.1, addition: None }.for_each_arc(options, |arc| {
            let change = |arcs: &mut OwnArcs, list, neighbor| match &edge {
                Some(edge) => arcs.add(list, neighbor, edge.clone(), is_parallel),
                None => arcs.remove(list, neighbor),
            };
            change(&mut self.out, arc.list, arc.neighbor);
            if has_in_lists {
                change(&mut self.into, arc.neighbor, arc.list);
            }
        });
        // Without written values, the removal outdates none.
        if edge.is_none() && !self.edge_values.is_empty() {
            let number = self.next_write();
            self.renewed.insert(stored_ends(options, ends), number);
        }
    }

    /// Replaces all edges of a pair of a multigraph.
    pub(crate) fn replace_edges(&mut self, ends: (VertexId, VertexId), edges: Vec<OwnEdge>, options: &GraphOptions) {
        self.change_edge(ends, None, options);
        edges.into_iter().for_each(|edge| self.change_edge(ends, Some(edge), options));
    }

    /// Removes a vertex with its edges and values.
    pub(crate) fn remove_vertex(&mut self, vertex: VertexId, options: &GraphOptions) {
        let number = self.next_write();
        self.states.insert(vertex, false);
        self.gone.insert(vertex, number);
        // Only written edges are removed here: `gone` hides those of the view.
        let remove_from = |others: &mut OwnArcs, neighbors: Vec<VertexId>| {
            // The arc of a loop went with the list.
            neighbors.into_iter().filter(|&other| other != vertex).for_each(|other| others.remove(other, vertex));
        };
        let neighbors = self.out.forget(vertex);
        match is_in_one_list(options) {
            true => {
                remove_from(&mut self.into, neighbors);
                remove_from(&mut self.out, self.into.forget(vertex));
            }
            false => remove_from(&mut self.out, neighbors),
        }
    }

    /// The written value of a vertex, if it still counts.
    pub(crate) fn value(&self, vertex: VertexId, name: &str) -> Option<&OwnedValue> {
        let Numbered { number, value } = self.values.get(&(vertex, name.to_owned()))?;
        (*number > self.gone_at(vertex)).then_some(value)
    }

    /// The vertices that got a value of a property here, with the values that still count.
    pub(crate) fn values_of(&self, name: &str) -> impl Iterator<Item = (VertexId, &OwnedValue)> {
        let named = self.values.keys().filter(move |(_, other)| other == name);
        named.filter_map(move |&(vertex, _)| Some((vertex, self.value(vertex, name)?)))
    }

    pub(crate) fn set_value(&mut self, vertex: VertexId, name: &str, value: OwnedValue) {
        self.note_valued(PropertyOf::Vertices, name, &value);
        let number = self.next_write();
        self.values.insert((vertex, name.to_owned()), Numbered { number, value });
    }

    /// The written value of an edge, if it still counts. `ends` are in the order of storage.
    pub(crate) fn edge_value(&self, ends: (VertexId, VertexId), name: &str) -> Option<&OwnedValue> {
        let Numbered { number, value } = self.edge_values.get(&(ends.0, ends.1, name.to_owned()))?;
        let renewed = self.renewed.get(&ends).copied().unwrap_or(0);
        (*number > renewed.max(self.gone_at(ends.0)).max(self.gone_at(ends.1))).then_some(value)
    }

    pub(crate) fn set_edge_value(&mut self, ends: (VertexId, VertexId), name: &str, value: OwnedValue) {
        self.note_valued(PropertyOf::Edges, name, &value);
        // Most names are known, and need no copy.
        if !self.edge_value_names.contains(name) {
            self.edge_value_names.insert(name.to_owned());
        }
        let number = self.next_write();
        self.edge_values.insert((ends.0, ends.1, name.to_owned()), Numbered { number, value });
    }

    /// Names of edge properties that were written, in a simple graph.
    pub(crate) fn edge_property_names(&self) -> impl Iterator<Item = &String> {
        self.edge_value_names.iter()
    }

    /// Whether a property got a non-null value here. The commit creates the property, even if the value does not count.
    pub(crate) fn makes_property(&self, of: PropertyOf, name: &str) -> bool {
        self.valued[of as usize].contains(name)
    }

    pub(crate) fn note_valued(&mut self, of: PropertyOf, name: &str, value: &OwnedValue) {
        if !value.as_value().is_null() && !self.makes_property(of, name) {
            self.valued[of as usize].insert(name.to_owned());
        }
    }

    /// The number of the last write that removed a vertex; 0 if none did.
    fn gone_at(&self, vertex: VertexId) -> u64 {
        self.gone.get(&vertex).copied().unwrap_or(0)
    }

    fn next_write(&mut self) -> u64 {
        self.num_writes += 1;
        self.num_writes
    }
}

/// Whether an edge is one arc in an out-list, so that its other end needs an in-list to find it.
fn is_in_one_list(options: &GraphOptions) -> bool {
    options.graph_kind == anden_graph::GraphKind::Directed
}
