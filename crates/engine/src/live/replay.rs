//! From groups of the log to a version of the live graph.
//!
//! Only the state after the last group is wanted, so many groups are applied as one batch, and the epochs in between
//! have no versions. Nothing is looked up by key.

use std::sync::Arc;

use base::parallel::Pool;
use graph::property::PropertySchema;
use lama::{GraphOptions, KeyScheme, Store};

use super::batch::Batch;
use super::logged::{self, Edges, Record, RowValues};
use super::{Live, Turn, Writer};
use crate::log::LoggedGroup;
use crate::{Error, Result};

/// So many arcs are applied together.
const BATCH_ARCS: usize = 1 << 20;

/// Groups on their way to a writer.
pub(crate) struct Replay<'a> {
    turn: Turn<'a>,
    store: &'a Store,
    pool: Option<Arc<Pool>>,
    batch: Batch,
}

/// What is wrong with a group.
enum Fault {
    /// It does not fit the graph.
    Misfit(&'static str),
    Error(Error),
}

impl From<&'static str> for Fault {
    fn from(what: &'static str) -> Self {
        Self::Misfit(what)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl<'a> Replay<'a> {
    /// Onto what `live` has.
    pub(crate) fn new(live: &'a Live, store: &'a Store) -> Self {
        let batch = Batch::new(store.options());
        Self { turn: live.turn(), store, pool: None, batch }
    }

    /// Adds the next group.
    ///
    /// # Errors
    /// The group does not fit the graph; damage in the snapshot, or a lack of memory.
    pub(crate) fn add(&mut self, group: LoggedGroup<'_>) -> Result<()> {
        self.apply(group).map_err(|fault| match fault {
            Fault::Misfit(what) => {
                let what = format!("commit {} does not fit the graph: {what}", group.epoch);
                base::Error::corrupt(group.path, group.offset, what).into()
            }
            Fault::Error(error) => error,
        })
    }

    fn apply(&mut self, group: LoggedGroup<'_>) -> Result<(), Fault> {
        let Self { turn, store, pool, batch } = self;
        let pool = match pool {
            Some(pool) => pool,
            none => none.insert(Arc::new(Pool::new(0).map_err(Error::from)?)),
        };
        let writer = match &mut *turn.writer {
            Some(writer) => writer,
            none => none.insert(Writer::new(store, group.epoch - 1)?),
        };
        writer.epoch = group.epoch;
        let options = *store.options();
        logged::decode(group.payload, &options, |record| writer.redo(record, &options, batch, pool))?;
        if batch.len() >= BATCH_ARCS {
            writer.flush(batch, pool)?;
            writer.newest = writer.version();
        }
        Ok(())
    }

    /// Shows what was added; says whether that was anything.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(crate) fn finish(mut self) -> Result<bool> {
        let (Some(writer), Some(pool)) = (&mut *self.turn.writer, &self.pool) else { return Ok(false) };
        writer.flush(&mut self.batch, pool)?;
        writer.newest = writer.version();
        writer.epoch += 1;
        let live = self.turn.live;
        live.set_epoch(writer.newest.epoch);
        live.publish(Some(Arc::clone(&writer.newest)));
        Ok(true)
    }
}

impl Writer {
    /// Does what a record of the log says; edges go to `batch`.
    fn redo(
        &mut self,
        record: Record<'_>,
        options: &GraphOptions,
        batch: &mut Batch,
        pool: &Pool,
    ) -> Result<(), Fault> {
        match record {
            Record::Add(edges) | Record::Remove(edges) => self.redo_edges(edges, options, batch)?,
            Record::AddVertex(vertex) | Record::RemoveVertex(vertex) if vertex as usize >= self.vertex_bound => {
                return Err("a vertex is beyond the last".into());
            }
            Record::AddVertex(vertex) => self.revive(vertex),
            Record::RemoveVertex(vertex) => {
                self.flush(batch, pool)?;
                if self.is_live(vertex) {
                    self.remove_vertex(vertex, batch, pool, &mut |_| {})?;
                }
            }
            Record::Key(key) => {
                self.grow_to(self.vertex_bound as u64 + 1)?;
                self.keys.push(key.into(), self.vertex_bound as u32 - 1);
            }
            Record::Bound(bound) => {
                if options.keys != KeyScheme::Dense || (bound as usize) < self.vertex_bound {
                    return Err("the vertex bound goes back".into());
                }
                self.grow_to(bound.into())?;
            }
            Record::Property(name, property_type) => {
                let mut schema = PropertySchema::clone(&self.properties.schema);
                schema.add(name.to_owned(), property_type).map_err(Error::from)?;
                self.properties.schema = Arc::new(schema);
            }
            Record::EdgeProperty(name, property_type) => {
                let mut schema = PropertySchema::clone(&self.edges.schema);
                schema.add(name.to_owned(), property_type).map_err(Error::from)?;
                self.edges.extend_schema(schema);
            }
            Record::Row(row, values) => self.redo_row(row, &values, options)?,
            Record::FirstRow(row, first) => {
                if !options.multigraph || first >= row || row >= lama::MAX_ROWS {
                    return Err("a row has no such first row".into());
                }
                self.edges.rows.set_first(row, first);
            }
            Record::Value { vertex, place, value } => {
                if vertex as usize >= self.vertex_bound || !logged::fits(&self.properties.schema, place, value) {
                    return Err("a value fits no vertex and no property".into());
                }
                // Edges before it make its vertex live.
                if !value.is_null() {
                    self.revive(vertex);
                } else if !self.is_live(vertex) {
                    return Ok(());
                }
                self.properties.history.set(self.epoch, place, vertex, value.into());
            }
        }
        Ok(())
    }

    /// Adds the arcs of edges to `batch`.
    fn redo_edges(&mut self, edges: Edges<'_>, options: &GraphOptions, batch: &mut Batch) -> Result<(), Fault> {
        let bound = self.vertex_bound as u64;
        for edge in edges.iter() {
            if u64::from(edge.source.max(edge.target)) >= bound {
                return Err("an edge has an end that is no vertex".into());
            }
            if edge.addition.is_some_and(|data| !logged::is_number(data.weight, options.weight_type)) {
                return Err("a weight is no number".into());
            }
            if let Some(data) = edge.addition.filter(|data| options.has_rows() && data.row >= self.edges.next) {
                // Without values, nothing but the edges says how many rows there are.
                if options.edge_properties || data.row >= lama::MAX_ROWS {
                    return Err("an edge has a row that is not there".into());
                }
                self.edges.next = data.row + 1;
            }
            if options.ordered && edge.source == edge.target && edge.addition.is_some() {
                // A loop is no arc here, and yet its vertex is to be there.
                self.revive(edge.source);
            }
            edge.for_each_arc(options, |arc| batch.push(arc));
        }
        Ok(())
    }

    /// Stores the values of a row.
    fn redo_row(&mut self, row: u64, values: &RowValues<'_>, options: &GraphOptions) -> Result<(), Fault> {
        if !options.edge_properties || row != self.edges.next || row >= lama::MAX_ROWS {
            return Err("the numbers of rows do not follow each other".into());
        }
        for (place, value) in values.iter().enumerate() {
            if !logged::fits(&self.edges.schema, place, value) {
                return Err("a value fits no property of edges".into());
            }
            self.edges.rows.set(row, place, value);
        }
        self.edges.next = row + 1;
        Ok(())
    }

    /// Makes the vertices below a bound.
    fn grow_to(&mut self, bound: u64) -> Result<(), Fault> {
        if bound > base::MAX_VERTICES as u64 {
            return Err("there are more vertices than a graph can have".into());
        }
        let bound = bound as usize;
        self.make_room(bound)?;
        self.num_vertices += bound - self.vertex_bound;
        self.vertex_bound = bound;
        Ok(())
    }

    /// Applies what is collected.
    fn flush(&mut self, batch: &mut Batch, pool: &Pool) -> Result<()> {
        self.revive_ends(batch);
        self.change_arcs(batch, pool)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use base::storage::FaultStorage;
    use graph::property::PropertyValue;
    use lama::DictionaryKeys;

    use super::*;

    /// A graph whose edges have properties, with the vertices 0 to 2.
    fn store() -> Store {
        let options = GraphOptions { keys: KeyScheme::Dense, edge_properties: true, ..GraphOptions::default() };
        let builder = Store::create(Arc::new(FaultStorage::default()), Path::new("db"), options).unwrap();
        let dictionary = builder.write_dictionary(DictionaryKeys::Dense(3)).unwrap();
        let run = builder.run_writer(3).unwrap().finish().unwrap();
        builder.publish(run, dictionary, 0, None).unwrap()
    }

    fn entries(kind: u8, entries: &[&[u8]]) -> Vec<u8> {
        [&[kind][..], &(entries.len() as u32).to_le_bytes(), &entries.concat()].concat()
    }

    /// Edges name rows by number: a record that lies would show values of another edge, or take memory up to its number.
    #[test]
    fn rows_that_do_not_fit_are_refused() {
        let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
        let property = entries(9, &[&[text("i64"), text("amount")].concat()]);
        let row = |number: u64, value: PropertyValue<'_>| {
            let mut entry = [&number.to_le_bytes()[..], &1_u32.to_le_bytes()].concat();
            lama::encode_value(value, &mut entry);
            entries(10, &[&entry])
        };
        let edge = |row: u64| entries(1, &[&[&[1, 0, 0, 0, 2, 0, 0, 0], &row.to_le_bytes()[..]].concat()]);
        let amount = PropertyValue::I64(5);
        let good = [property.clone(), row(0, amount), row(1, PropertyValue::Null), edge(1)].concat();
        let bad = [
            ([&good[..], &row(1, amount)].concat(), "the numbers of rows do not follow each other"),
            ([&good[..], &row(u64::MAX, amount)].concat(), "the numbers of rows do not follow each other"),
            ([&good[..], &edge(2)].concat(), "an edge has a row that is not there"),
            ([&property[..], &row(0, PropertyValue::F64(1.0))].concat(), "a value fits no property of edges"),
            (row(0, amount), "a value fits no property of edges"),
            (good[..good.len() - 1].to_vec(), "a record is longer than its commit"),
        ];
        let replayed = |payload: &[u8]| {
            let (store, live) = (store(), Live::default());
            let mut replay = Replay::new(&live, &store);
            let added = replay.add(LoggedGroup { epoch: 1, payload, path: Path::new("wal"), offset: 0 });
            added.and_then(|()| replay.finish())
        };
        assert!(replayed(&good).unwrap());
        for (payload, what) in bad {
            let error = replayed(&payload).unwrap_err().to_string();
            assert!(error.contains(what), "{error}, not: {what}");
        }
    }
}
