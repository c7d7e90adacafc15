//! The changes of one commit group, by key, out of its WAL record.
//!
//! A record names vertices by id, and properties by their places. Both last: a removed vertex keeps its id and its key,
//! and properties are only added. So any later view resolves the record of any epoch, and nothing has to be logged or
//! kept for it. Everything else that an entry has is in the record itself.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use anden_base::VertexId;
use anden_graph::property::{OwnedValue, PropertySchema, PropertyType};
use anden_snapshots::{GraphOptions, Key, SnapshotView};

use super::apply::EdgeUpdate;
use super::logged::{self, LoggedOp};
use crate::error::PropertyOf;
use crate::fitting::EdgeWeight;
use crate::log::LoggedGroup;
use crate::{Error, Result};

/// The changes of one commit group: everything that became visible with its epoch, and nothing else. Or the net changes
/// of several, from one snapshot to the next.
#[derive(Clone, Debug)]
pub struct CommitRecord {
    pub(crate) epoch: u64,
    /// The WAL record of the group.
    pub(crate) payload: Vec<u8>,
    /// The file and the place of the record in it. The directory for net changes.
    pub(crate) path: PathBuf,
    pub(crate) offset: u64,
    /// `None` if a single commit group made the changes.
    pub(crate) net: Option<NetChanges>,
    /// A view of this epoch or a later one.
    pub(crate) view: Arc<SnapshotView>,
}

/// The facts of net changes beside their record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetChanges {
    /// The epoch from which they lead on.
    pub(crate) since: u64,
    /// The number of the next row after them.
    pub(crate) next_row: u64,
}

/// A change of a graph, as a writer asked for it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum GraphChange {
    /// Where keys are ids: all ids below this bound are vertices, except those that were removed before.
    VertexBound(u64),
    /// Adds a vertex, unless it exists.
    AddVertex(Key),
    /// Removes a vertex with its edges and its values.
    RemoveVertex(Key),
    /// A new property, which has no values yet.
    NewProperty {
        /// Whether vertices or edges have it.
        of: PropertyOf,
        /// Its name.
        name: String,
        /// The type of its values.
        property_type: PropertyType,
    },
    /// Sets a value of a vertex, and adds the vertex; null removes the value, and adds no vertex.
    SetVertexProperty {
        /// The vertex.
        vertex: Key,
        /// The name of the property.
        name: String,
        /// The new value.
        value: OwnedValue,
    },
    /// Adds an edge and its ends. In a multigraph it is one more edge of the pair, otherwise it replaces the edge of the
    /// pair.
    AddEdge(AddedEdge),
    /// Removes the edges of a pair: all of them in a multigraph. Those that stay follow as [`GraphChange::AddEdge`].
    RemoveEdges {
        /// The key of the source.
        source: Key,
        /// The key of the target.
        target: Key,
    },
}

/// An added edge with all that it has.
#[derive(Clone, Debug, PartialEq)]
pub struct AddedEdge {
    /// The key of the source.
    pub source: Key,
    /// The key of the target.
    pub target: Key,
    /// In a multigraph, the number of the edge: with its ends, its [`EdgeId`](crate::EdgeId). An edge keeps it when its
    /// weight or its properties change.
    pub number: Option<u64>,
    /// The number of its values; `None` if edges have neither numbers nor properties. A row never changes: an edge with
    /// another value has another row.
    pub row: Option<u64>,
    /// The weight; `None` if edges have none.
    pub weight: Option<EdgeWeight>,
    /// The properties that are not null. `None`: the edge has been there with this row before, so they are those that
    /// came with the row.
    pub properties: Option<Vec<(String, OwnedValue)>>,
}

/// Why a record cannot be applied or shown.
pub(super) enum RecordFault {
    /// The record does not fit the graph.
    Misfit(&'static str),
    Error(Error),
}

impl From<&'static str> for RecordFault {
    fn from(what: &'static str) -> Self {
        Self::Misfit(what)
    }
}

impl From<Error> for RecordFault {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl RecordFault {
    /// The error for this record.
    pub(super) fn in_record(self, group: LoggedGroup<'_>) -> Error {
        match self {
            Self::Misfit(what) => {
                let what = format!("commit {} does not fit the graph: {what}", group.epoch);
                anden_base::Error::corrupt(group.path, group.offset, what).into()
            }
            Self::Error(error) => error,
        }
    }

    /// The error for this record of another database.
    pub(super) fn in_record_of_primary(self, epoch: u64) -> Error {
        match self {
            Self::Misfit(what) => Error::options(format!(
                "cannot apply the changes of epoch {epoch}: {what}; the databases differ: begin again from a copy of \
                 the primary"
            )),
            Self::Error(error) => error,
        }
    }
}

impl CommitRecord {
    /// The epoch of the commit group.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether these are the net changes since the epoch of an earlier snapshot, because the WAL lacks the commits in
    /// between. What was undone again is left out.
    pub fn is_net(&self) -> bool {
        self.net.is_some()
    }

    /// The options of the graph that changed.
    pub fn options(&self) -> &GraphOptions {
        self.view.options()
    }

    /// Calls `body` with the changes in their order. A change may change nothing, for example if the edge exists.
    ///
    /// Cost: a look into the dictionary for each vertex that a change names.
    ///
    /// # Errors
    /// Damage in the dictionary; a record that does not fit the graph; errors of `body`.
    pub fn for_each_change(&self, mut body: impl FnMut(GraphChange) -> Result<()>) -> Result<()> {
        let mut reader = ChangeReader { view: &self.view, rows: HashMap::new(), first_rows: HashMap::new() };
        logged::decode(&self.payload, self.options(), |op| reader.read(op, &mut body))
            .map_err(|fault: RecordFault| fault.in_record(self.record()))
    }

    /// The record of the group.
    pub(crate) fn record(&self) -> LoggedGroup<'_> {
        let Self { epoch, payload, path, offset, .. } = self;
        LoggedGroup { epoch: *epoch, payload, synced_through: 0, path, offset: *offset }
    }
}

/// The state of reading a record.
struct ChangeReader<'a> {
    view: &'a SnapshotView,
    /// The values of the rows of this record.
    rows: HashMap<u64, Vec<(String, OwnedValue)>>,
    /// The first rows of the edges that have these rows, where they differ.
    first_rows: HashMap<u64, u64>,
}

impl ChangeReader<'_> {
    fn key(&self, vertex: VertexId) -> Result<Key, RecordFault> {
        if vertex as usize >= anden_graph::Graph::vertex_bound(self.view) {
            return Err("a vertex is beyond the last".into());
        }
        Ok(self.view.key(vertex).map_err(Error::from)?)
    }

    fn read(&mut self, op: LoggedOp<'_>, body: &mut dyn FnMut(GraphChange) -> Result<()>) -> Result<(), RecordFault> {
        let change = match op {
            LoggedOp::Bound(bound) => GraphChange::VertexBound(bound.into()),
            LoggedOp::Key(key) => GraphChange::AddVertex(key.into()),
            LoggedOp::AddVertex(vertex) => GraphChange::AddVertex(self.key(vertex)?),
            LoggedOp::RemoveVertex(vertex) => GraphChange::RemoveVertex(self.key(vertex)?),
            LoggedOp::Property(name, property_type) => {
                GraphChange::NewProperty { of: PropertyOf::Vertices, name: name.to_owned(), property_type }
            }
            LoggedOp::EdgeProperty(name, property_type) => {
                GraphChange::NewProperty { of: PropertyOf::Edges, name: name.to_owned(), property_type }
            }
            LoggedOp::Value { vertex, place, value } => {
                let schema = self.view.properties().schema();
                let (name, value) = (name_at(schema, place)?, schema.owned(place, value));
                GraphChange::SetVertexProperty { vertex: self.key(vertex)?, name, value }
            }
            LoggedOp::Row(row, values) => {
                let schema = self.view.edge_properties().schema();
                let values = values.iter().enumerate().filter(|(_, value)| !value.is_null());
                let named = values.map(|(place, value)| -> Result<(String, OwnedValue), RecordFault> {
                    Ok((name_at(schema, place)?, schema.owned(place, value)))
                });
                self.rows.insert(row, named.collect::<Result<_, RecordFault>>()?);
                return Ok(());
            }
            LoggedOp::FirstRow(row, first) => {
                self.first_rows.insert(row, first);
                return Ok(());
            }
            LoggedOp::Add(edges) | LoggedOp::Remove(edges) => {
                for edge in edges.iter() {
                    body(self.edge(edge)?)?;
                }
                return Ok(());
            }
        };
        Ok(body(change)?)
    }

    fn edge(&self, edge: EdgeUpdate) -> Result<GraphChange, RecordFault> {
        let (source, target) = (self.key(edge.source)?, self.key(edge.target)?);
        let Some(data) = edge.addition else { return Ok(GraphChange::RemoveEdges { source, target }) };
        let options = self.view.options();
        let first_row = || self.first_rows.get(&data.row).copied().unwrap_or(data.row);
        Ok(GraphChange::AddEdge(AddedEdge {
            source,
            target,
            number: options.multigraph.then(first_row),
            row: options.has_rows().then_some(data.row),
            weight: options.weight_type.map(|weight_type| EdgeWeight::of_bits(data.weight, weight_type)),
            properties: match options.edge_properties {
                true => self.rows.get(&data.row).cloned(),
                false => Some(Vec::new()),
            },
        }))
    }
}

/// The name of the property at a place.
fn name_at(schema: &PropertySchema, place: usize) -> Result<String, RecordFault> {
    let found = schema.get(place).map(|(name, _)| name.to_owned());
    found.ok_or(RecordFault::Misfit("a value belongs to no property"))
}
