//! Many changes by id and column by column, as an append has them.

use std::sync::Arc;

use base::VertexId;
use base::parallel::Pool;
use base::progress::Progress;
use graph::property::{PropertyColumn, PropertySchema};
use graph::{Direction, Graph};
use lama::ChangedArc;

use super::Writer;
use super::batch::{ArcUpdate, Batch};
use super::below::Below;
use super::delta::LevelArcs;
use super::entries::entries_of;
use super::rows::RowWriter;
use crate::Result;
use crate::load::VertexKeys;

/// Changes whose keys are ids: removals first, then additions.
pub(crate) struct ChangeSet {
    /// One more than the largest id, new ones included.
    pub(crate) vertex_bound: usize,
    /// The keys of new vertices, by id.
    pub(crate) new_keys: VertexKeys,
    /// Vertices that lose their edges and values; they are gone where nothing is added to them.
    pub(crate) removed_vertices: Vec<VertexId>,
    /// Entries of out-lists to be gone, all parallel ones; sorted, each once.
    pub(crate) removed: Vec<(VertexId, VertexId)>,
    /// Entries of out-lists to be there. In a simple graph the last one of a pair counts.
    pub(crate) added: Vec<ChangedArc>,
    /// Vertices to be there, with values. The last value of a vertex counts.
    pub(crate) vertices: Vec<VertexValues>,
    /// The properties of vertices: those that there are, then new ones.
    pub(crate) properties: PropertySchema,
    pub(crate) rows: AddedRows,
}

/// Vertices, and columns with a value for each of them, by the places of their properties.
pub(crate) struct VertexValues {
    pub(crate) vertices: Vec<VertexId>,
    pub(crate) columns: Vec<(usize, PropertyColumn)>,
}

/// The rows of new edges.
#[derive(Default)]
pub(crate) struct AddedRows {
    /// The properties of edges: those that there are, then new ones.
    pub(crate) properties: PropertySchema,
    /// The number of the row behind the last one; `None` where edges have no rows.
    pub(crate) end: Option<u64>,
    /// The first row of each part, and columns of its values by the places of their properties.
    pub(crate) parts: Vec<(u64, Vec<(usize, PropertyColumn)>)>,
    /// Rows that have the values of rows that are there.
    pub(crate) copies: Vec<(u64, u64)>,
}

impl Writer {
    /// Applies changes, but for the entries of lists, which it gives back: those that have an effect. Nothing is logged,
    /// and the keys of new vertices stay in the set.
    ///
    /// # Errors
    /// A lack of memory; damage in the snapshot; the caller wanted it.
    pub(super) fn apply_set(&mut self, set: &mut ChangeSet, pool: &Pool, progress: &dyn Progress) -> Result<LevelArcs> {
        let options = *self.options();
        let mut batch = Batch::new(&options);
        let of_vertices = entries_of(self.underlay.view(), &set.removed_vertices, pool, progress)?;
        for entries in [&set.removed, &of_vertices] {
            batch.extend(entries, pool, |&(list, neighbour)| ArcUpdate { list, neighbour, addition: None });
        }
        drop(of_vertices);
        let added = std::mem::take(&mut set.added);
        batch.extend(&added, pool, |arc| ArcUpdate {
            list: arc.list,
            neighbour: arc.neighbour,
            addition: Some(arc.data),
        });
        drop(added);
        progress.check()?;

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
        let below = Below::snapshot(self.underlay.view(), batch.len());
        LevelArcs::of_batch(&batch, &below, self.vertex_bound, &options, pool)
    }

    /// The edges of `removed`, sorted entries that were to go, that were not there; `arcs` are those that a batch with
    /// them changed.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(super) fn num_missing(&self, removed: &[(VertexId, VertexId)], arcs: &LevelArcs) -> Result<u64> {
        let view = self.underlay.view();
        let is_undirected = view.direction() == Direction::Undirected;
        let mut finder = view.finder();
        let mut gone = arcs.out_removed.iter().map(|arc| (arc.list, arc.neighbour)).peekable();
        let mut num_missing = 0;
        for &ends in removed.iter().filter(|ends| !is_undirected || ends.0 <= ends.1) {
            while gone.next_if(|&other| other < ends).is_some() {}
            // An edge that came back as it was did not change.
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
