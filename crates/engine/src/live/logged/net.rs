//! The net changes between two snapshots, in the form of a WAL record.
//!
//! So a net change set is read and applied as any other. It differs in its rows: those that edges lost again in between
//! are left out, and leave gaps among the numbers. Edges of a removed vertex are removed one by one before it.

use anden_base::VertexId;
use anden_graph::Graph;
use anden_snapshots::{ChangedArc, SnapshotStep};

use super::{
    ADD_VERTICES, BOUND, DataLayout, EDGE_PROPERTIES, FIRST_ROWS, KEYS, Key, KeyScheme, PROPERTIES, REMOVE_VERTICES,
    ROWS, Recorder, VALUES,
};
use crate::{Error, Result};

/// The net changes of edges, in the order of their effect.
struct NetEdges {
    /// The pairs to remove. In a multigraph all edges of a pair go, and those that stay are added again.
    removed: Vec<(VertexId, VertexId)>,
    added: Vec<ChangedArc>,
    /// The rows that are new, ascending.
    rows: Vec<u64>,
}

/// The payload of a record with the net changes of a step. `memory`: the bytes that it may take.
///
/// # Errors
/// Damage in a snapshot; [`Error::Memory`].
pub(crate) fn encode_step(step: &SnapshotStep, memory: Option<u64>) -> Result<Vec<u8>> {
    // Arcs, their pairs, and the record.
    let needed = 2 * step.edges.num_bytes();
    if let Some(budget) = memory.filter(|&budget| needed > budget) {
        return Err(Error::Memory { what: "a net change set, which must be in memory,".into(), needed, budget });
    }
    let mut bytes = Vec::new();
    let mut recorder = Recorder { bytes: &mut bytes, layout: DataLayout::of(step.view.options()), open: None };
    recorder.new_vertices(step)?;
    recorder.new_properties(step);
    let edges = NetEdges::read(step)?;
    edges.removed.iter().for_each(|&(source, target)| recorder.edge(source, target, None));
    step.vertices.died.iter().for_each(|&vertex| recorder.vertex(REMOVE_VERTICES, vertex));
    step.vertices.returned.iter().for_each(|&vertex| recorder.vertex(ADD_VERTICES, vertex));
    recorder.rows(step, &edges)?;
    edges.added.iter().for_each(|arc| recorder.edge(arc.list, arc.neighbor, Some(arc.data)));
    for (_, changes) in &step.vertices.properties {
        // A dead vertex has lost its values with its removal.
        for (vertex, value, _) in changes.iter().filter(|&(vertex, ..)| step.view.is_live(vertex)) {
            let bytes = recorder.entry(VALUES);
            bytes.extend_from_slice(&vertex.to_le_bytes());
            bytes.extend_from_slice(&changes.column().to_le_bytes());
            anden_snapshots::encode_value(value, bytes);
        }
    }
    Ok(bytes)
}

impl NetEdges {
    fn read(step: &SnapshotStep) -> Result<Self> {
        let (options, ends) = (step.view.options(), |arc: &ChangedArc| (arc.list, arc.neighbor));
        let (mut added, mut lost) = (Vec::new(), Vec::new());
        for page in 0..step.edges.num_pages() {
            step.edges.read_page(page, &mut added, &mut lost)?;
        }
        let mut rows: Vec<u64> =
            if options.edge_properties { added.iter().map(|arc| arc.data.row).collect() } else { Vec::new() };
        rows.sort_unstable();
        let mut removed: Vec<_> = lost.iter().map(ends).collect();
        removed.dedup();
        if options.multigraph {
            added.retain(|arc| removed.binary_search(&ends(arc)).is_err());
            let mut finder = step.view.finder();
            for &(list, neighbor) in &removed {
                finder.find(list, [neighbor], |_, data| added.push(ChangedArc { list, neighbor, data }))?;
            }
        } else {
            // An added edge replaces that of its pair.
            removed.retain(|pair| added.binary_search_by_key(pair, ends).is_err());
        }
        Ok(Self { removed, added, rows })
    }
}

impl Recorder<'_> {
    fn new_vertices(&mut self, step: &SnapshotStep) -> Result<()> {
        let vertices = step.vertices.new_vertices.clone();
        if step.view.options().keys == KeyScheme::Dense {
            if !vertices.is_empty() {
                self.bytes.push(BOUND);
                self.bytes.extend_from_slice(&vertices.end.to_le_bytes());
            }
            return Ok(());
        }
        for vertex in vertices {
            let key = step.view.key(vertex)?;
            let bytes = self.entry(KEYS);
            match key {
                Key::Integer(key) => bytes.extend_from_slice(&key.to_le_bytes()),
                Key::String(key) => Self::text(bytes, &key),
            }
        }
        Ok(())
    }

    fn new_properties(&mut self, step: &SnapshotStep) {
        let view = &step.view;
        let schemas = [view.properties().schema(), view.edge_properties().schema()];
        for ((kind, schema), num_known) in
            [PROPERTIES, EDGE_PROPERTIES].into_iter().zip(schemas).zip(step.num_properties)
        {
            for (name, property_type) in schema.iter().skip(num_known) {
                let bytes = self.entry(kind);
                Self::text(bytes, property_type.name());
                Self::text(bytes, name);
            }
        }
    }

    /// New rows with their values, and the rows that are not the first ones of their edges.
    fn rows(&mut self, step: &SnapshotStep, edges: &NetEdges) -> Result<()> {
        let properties = step.view.edge_properties();
        let num_values = properties.schema().len();
        for &row in &edges.rows {
            let bytes = self.entry(ROWS);
            bytes.extend_from_slice(&row.to_le_bytes());
            bytes.extend_from_slice(&(num_values as u32).to_le_bytes());
            for place in 0..num_values {
                anden_snapshots::encode_value(properties.value(place, row)?, bytes);
            }
        }
        for arc in edges.added.iter().filter(|_| step.view.options().multigraph) {
            let (row, first) = (arc.data.row, properties.number(arc.data.row)?);
            if first != row {
                let bytes = self.entry(FIRST_ROWS);
                bytes.extend_from_slice(&row.to_le_bytes());
                bytes.extend_from_slice(&first.to_le_bytes());
            }
        }
        Ok(())
    }
}
