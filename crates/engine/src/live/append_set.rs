//! A change set: many changes by id and column by column, as an append has them.

use std::sync::Arc;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use anden_graph::property::{PropertyColumn, PropertySchema};
use anden_graph::{Graph, GraphKind};
use anden_snapshots::ChangedArc;

use super::MemtableWriter;
use super::batch::{ArcBatch, ArcUpdate};
use super::below::Below;
use super::delta::DeltaArcs;
use super::entries::entries_of;
use super::rows::RowWriter;
use crate::Result;
use crate::load::VertexKeys;

/// Changes by id: removals first, then additions.
pub(crate) struct AppendSet {
    /// One more than the largest id, including new ones.
    pub(crate) vertex_bound: usize,
    /// The keys of new vertices, by id.
    pub(crate) new_keys: VertexKeys,
    /// Vertices that lose their edges and values. They are removed unless something is added to them.
    pub(crate) removed_vertices: Vec<VertexId>,
    /// Arcs of out-lists to remove, with all parallel ones; sorted, each once.
    pub(crate) removed: Vec<(VertexId, VertexId)>,
    /// Arcs of out-lists to add. In a simple graph the last one of a pair counts.
    pub(crate) added: Vec<ChangedArc>,
    /// Vertices to add, with values. The last value of a vertex counts.
    pub(crate) vertices: Vec<VertexValues>,
    /// Vertex properties: the existing ones, then new ones.
    pub(crate) properties: PropertySchema,
    pub(crate) rows: AddedRows,
}

/// Vertices, and columns with a value for each, by the indexes of their properties.
pub(crate) struct VertexValues {
    pub(crate) vertices: Vec<VertexId>,
    pub(crate) columns: Vec<(usize, PropertyColumn)>,
}

/// The rows of new edges.
#[derive(Default)]
pub(crate) struct AddedRows {
    /// Edge properties: the existing ones, then new ones.
    pub(crate) properties: PropertySchema,
    /// The number after the last row; `None` if edges have no rows.
    pub(crate) end: Option<u64>,
    /// The first row of each part, and columns of its values by the indexes of their properties.
    pub(crate) parts: Vec<(u64, Vec<(usize, PropertyColumn)>)>,
    /// New rows that copy the values of existing rows.
    pub(crate) copies: Vec<(u64, u64)>,
}

impl MemtableWriter {
    /// Applies a change set except for its arcs, and returns the arcs that have an effect. Nothing is logged. The keys
    /// of new vertices stay in the set.
    ///
    /// # Errors
    /// A lack of memory; damage in the snapshot; `progress` cancelled it.
    pub(super) fn apply_set(&mut self, set: &mut AppendSet, pool: &Pool, progress: &dyn Progress) -> Result<DeltaArcs> {
        let options = *self.options();
        let mut batch = ArcBatch::new(&options);
        let of_vertices = entries_of(self.overlay_base.view(), &set.removed_vertices, pool, progress)?;
        for entries in [&set.removed, &of_vertices] {
            batch.extend(entries, pool, |&(list, neighbor)| ArcUpdate { list, neighbor, addition: None });
        }
        // The batch has a copy.
        drop(of_vertices);
        let added = std::mem::take(&mut set.added);
        batch.extend(&added, pool, |arc| ArcUpdate {
            list: arc.list,
            neighbor: arc.neighbor,
            addition: Some(arc.data),
        });
        // The batch has a copy.
        drop(added);
        progress.check()?;

        // Removals first, because an addition to a removed vertex makes the vertex live again.
        set.removed_vertices.iter().try_for_each(|&vertex| self.lose_vertex(vertex))?;
        self.num_vertices += set.vertex_bound - self.vertex_bound;
        self.vertex_bound = set.vertex_bound;
        self.properties.schema = Arc::new(std::mem::take(&mut set.properties));
        self.revive_ends(&batch);
        for VertexValues { vertices, columns } in &set.vertices {
            vertices.iter().for_each(|&vertex| self.revive(vertex));
            for (place, column) in columns {
                for (&vertex, value) in vertices.iter().zip(column.iter()) {
                    self.properties.history.set(self.epoch, *place, vertex, value.into());
                }
            }
        }
        self.take_rows(&std::mem::take(&mut set.rows), pool)?;
        progress.check()?;
        self.newest = self.version();
        // The memtable of an append holds no arcs, so the snapshot is all that lies below.
        let below = Below::snapshot(self.overlay_base.view(), batch.len());
        DeltaArcs::of_batch(&batch, &below, self.vertex_bound, &options, pool)
    }

    /// The number of edges in `removed` (sorted arcs) that did not exist. `arcs` are the changes of a batch with them.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(super) fn num_missing(&self, removed: &[(VertexId, VertexId)], arcs: &DeltaArcs) -> Result<u64> {
        let view = self.overlay_base.view();
        let is_undirected = view.graph_kind() == GraphKind::Undirected;
        let mut finder = view.finder();
        // Both sequences are sorted, so one pass compares them.
        let mut gone = arcs.out_removed.iter().map(|arc| (arc.list, arc.neighbor)).peekable();
        let mut num_missing = 0;
        // An undirected edge is two arcs, and counts once.
        for &ends in removed.iter().filter(|ends| !is_undirected || ends.0 <= ends.1) {
            while gone.next_if(|&other| other < ends).is_some() {}
            // An edge that was removed and added again unchanged is not among the changes.
            if gone.peek() != Some(&ends) && finder.first(ends.0, ends.1)?.is_none() {
                num_missing += 1;
            }
        }
        Ok(num_missing)
    }

    /// Stores the values of new rows.
    fn take_rows(&mut self, new: &AddedRows, pool: &Pool) -> Result<()> {
        let Some(end) = new.end else { return Ok(()) };
        self.edges.extend_schema(new.properties.clone());
        self.edges.next = end;
        let rows = &*self.edges.rows;
        pool.map_chunks(0..new.parts.len(), 1, |_, chunk| {
            for (first_row, columns) in &new.parts[chunk] {
                let mut writer = RowWriter::new(rows);
                for (place, column) in columns {
                    (*first_row..).zip(column.iter()).for_each(|(row, value)| writer.set(row, *place, value));
                }
            }
        });
        for &(row, of) in &new.copies {
            for (place, value) in self.newest.row_values(of)?.iter().enumerate() {
                rows.set(row, place, value.as_value());
            }
        }
        Ok(())
    }
}
