//! Many changes by id and column by column, as an append has them.

use base::VertexId;
use base::parallel::Pool;
use base::progress::Progress;
use graph::property::{PropertyColumn, PropertySchema};
use lama::ChangedArc;

use super::Writer;
use super::apply::unlogged;
use super::batch::{ArcUpdate, Batch};
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
    /// Entries of out-lists to be gone, all parallel ones.
    pub(crate) removed: Vec<(VertexId, VertexId)>,
    /// Entries of out-lists to be there. In a simple graph the last one of a pair counts.
    pub(crate) added: Vec<ChangedArc>,
    /// Vertices to be there, with values. The last value of a vertex counts.
    pub(crate) vertices: Vec<VertexRows>,
    /// The properties of vertices: those that there are, then new ones.
    pub(crate) properties: PropertySchema,
    pub(crate) rows: NewRows,
}

/// Vertices, and columns with a value for each of them, by the places of their properties.
pub(crate) struct VertexRows {
    pub(crate) vertices: Vec<VertexId>,
    pub(crate) columns: Vec<(usize, PropertyColumn)>,
}

/// The rows of new edges.
#[derive(Default)]
pub(crate) struct NewRows {
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
    /// Applies changes, which are in no log and not here to stay; gives the keys of new vertices back.
    ///
    /// # Errors
    /// A lack of memory; damage in the snapshot; the caller wanted it.
    pub(super) fn apply_set(&mut self, set: ChangeSet, pool: &Pool, progress: &dyn Progress) -> Result<VertexKeys> {
        let bound = set.vertex_bound;
        let mut keys = VertexKeys::Dense(0);
        self.commit_as(
            unlogged(),
            bound,
            set,
            |_, _, _| {},
            |this, mut set| {
                keys = std::mem::replace(&mut set.new_keys, VertexKeys::Dense(0));
                this.carry_out_set(set, pool, progress)
            },
        )?;
        Ok(keys)
    }

    fn carry_out_set(&mut self, set: ChangeSet, pool: &Pool, progress: &dyn Progress) -> Result<()> {
        let mut batch = Batch::new(self.options());
        self.remove_all(&set, &mut batch, pool, progress)?;
        progress.check()?;
        let ChangeSet { vertex_bound, added, vertices, properties, rows, .. } = set;
        self.num_vertices += vertex_bound - self.vertex_bound;
        self.vertex_bound = vertex_bound;
        self.properties.schema = properties.into();
        self.take_rows(&rows, pool)?;
        drop(rows);

        batch.extend(&added, pool, |arc| ArcUpdate {
            list: arc.list,
            neighbour: arc.neighbour,
            addition: Some(arc.data),
        });
        drop(added);
        self.revive_ends(&batch);
        self.change_arcs(&mut batch, pool)?;
        progress.check()?;
        for VertexRows { vertices, columns } in &vertices {
            vertices.iter().for_each(|&vertex| self.revive(vertex));
            for (place, column) in columns {
                for (&vertex, value) in vertices.iter().zip(column.iter()) {
                    self.properties.history.set(self.epoch, *place, vertex, value.into());
                }
            }
        }
        Ok(())
    }

    /// Removes edges and vertices.
    fn remove_all(&mut self, set: &ChangeSet, batch: &mut Batch, pool: &Pool, progress: &dyn Progress) -> Result<()> {
        let of_vertices = entries_of(self.underlay.view(), &set.removed_vertices, pool, progress)?;
        for entries in [&set.removed, &of_vertices] {
            batch.extend(entries, pool, |&(list, neighbour)| ArcUpdate { list, neighbour, addition: None });
        }
        self.change_arcs(batch, pool)?;
        set.removed_vertices.iter().try_for_each(|&vertex| self.lose_vertex(vertex))
    }

    /// Stores the values of new rows.
    fn take_rows(&mut self, new: &NewRows, pool: &Pool) -> Result<()> {
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
