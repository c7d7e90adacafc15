//! Recovery: applies WAL records to the memtable.
//!
//! Only the state after the last record counts. Therefore one batch applies many records, and epochs in between have no
//! versions. No key is looked up.

use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_graph::property::PropertySchema;
use anden_snapshots::{GraphOptions, KeyScheme, Store};

use super::apply::Logging;
use super::batch::ArcBatch;
use super::changes::RecordFault;
use super::logged::{self, LoggedEdges, LoggedOp, RowValues};
use super::{Live, MemtableWriter, WriteGuard};
use crate::log::{Durability, LoggedGroup};
use crate::{Error, Result};

/// Arcs that are applied together.
const BATCH_ARCS: usize = 1 << 20;

/// Bytes of records between two looks at the memory.
const CHECKED_BYTES: usize = 4 << 20;

/// A replay in progress.
pub(crate) struct WalReplay<'a> {
    /// The budget of the memtable; `None`: no limit.
    pub(super) memory: Option<u64>,
    /// Bytes of records since the last look at the memory.
    num_unchecked: usize,
    guard: WriteGuard<'a>,
    store: &'a Store,
    pool: Option<Arc<Pool>>,
    batch: ArcBatch,
    num_records: u64,
}

impl<'a> WalReplay<'a> {
    /// A replay onto the memtable of `live`.
    pub(crate) fn new(live: &'a Live, store: &'a Store) -> Self {
        let batch = ArcBatch::new(store.options());
        Self { memory: None, num_unchecked: 0, guard: live.write_guard(), store, pool: None, batch, num_records: 0 }
    }

    /// Adds the next record.
    ///
    /// # Errors
    /// The record does not fit the graph; damage in the snapshot, or a lack of memory.
    pub(crate) fn add(&mut self, group: LoggedGroup<'_>) -> Result<()> {
        self.apply(group).map_err(|fault| fault.in_record(group))
    }

    fn apply(&mut self, group: LoggedGroup<'_>) -> Result<(), RecordFault> {
        let Self { memory, num_unchecked, guard, store, pool, batch, num_records } = self;
        *num_records += 1;
        let pool = match pool {
            Some(pool) => pool,
            // A WAL without records needs no workers.
            none => none.insert(Arc::new(Pool::new(0).map_err(Error::from)?)),
        };
        let writer = match &mut *guard.writer {
            Some(writer) => writer,
            // The snapshot has all commits before the first record.
            none => none.insert(MemtableWriter::new(store, group.epoch - 1)?),
        };
        writer.epoch = group.epoch;
        let options = *store.options();
        logged::decode(group.payload, &options, |record| writer.redo(record, &options, batch, pool))?;
        if batch.len() >= BATCH_ARCS {
            writer.flush(batch, pool)?;
            writer.newest = writer.version();
        }
        *num_unchecked += group.payload.len();
        if *num_unchecked >= CHECKED_BYTES {
            *num_unchecked = 0;
            require_memory(*memory, writer)?;
        }
        Ok(())
    }

    /// Publishes the replayed commits. Returns the number of their records.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(crate) fn finish(mut self) -> Result<u64> {
        let (Some(writer), Some(pool)) = (&mut *self.guard.writer, &self.pool) else { return Ok(0) };
        writer.flush(&mut self.batch, pool)?;
        require_memory(self.memory, writer)?;
        writer.newest = writer.version();
        writer.epoch += 1;
        let live = self.guard.live;
        live.show(Arc::clone(&writer.newest));
        Ok(self.num_records)
    }
}

fn require_memory(memory: Option<u64>, writer: &MemtableWriter) -> Result<()> {
    let needed = writer.num_bytes();
    match memory {
        Some(budget) if needed > budget => {
            let what = "the WAL, whose commits must be in memory to be checked,".to_owned();
            Err(Error::Memory { what, needed, budget })
        }
        _ => Ok(()),
    }
}

impl WriteGuard<'_> {
    /// Commits a record of another database with its epoch, as durable as asked. Returns false if this database has the
    /// epoch already.
    ///
    /// # Errors
    /// A record before it is missing; it does not fit the graph; as [`apply`](Self::apply).
    pub(crate) fn apply_record(
        &mut self,
        store: &Store,
        group: LoggedGroup<'_>,
        durability: Durability,
        pool: &Pool,
    ) -> Result<bool> {
        store.require_sound()?;
        let live = self.live;
        let logging = Logging { log: live.log.as_ref(), durability };
        let options = *store.options();
        let writer = self.writer_over(store)?;
        writer.require_whole()?;
        if group.epoch < writer.epoch {
            return Ok(false);
        }
        if group.epoch > writer.epoch {
            return Err(Error::options(format!(
                "cannot apply the changes of epoch {}: those of epoch {} come first",
                group.epoch, writer.epoch
            )));
        }
        let refused = |fault: RecordFault| fault.in_record_of_primary(group.epoch);
        let bound = writer.bound_after(group.payload, &options).map_err(refused)?;
        let encode = |_: &MemtableWriter, payload: &&[u8], record: &mut Vec<u8>| record.extend_from_slice(payload);
        writer.commit_as(logging, bound, group.payload, encode, |writer, payload| {
            let mut batch = ArcBatch::new(&options);
            logged::decode(payload, &options, |record| writer.redo(record, &options, &mut batch, pool))
                .map_err(refused)?;
            writer.flush(&mut batch, pool)
        })?;
        // Its changes were not noted one by one.
        live.versions().change_everything(group.epoch);
        live.show(Arc::clone(&writer.newest));
        Ok(true)
    }
}

impl MemtableWriter {
    /// The vertex bound after a record of another database, whose keys must be new here.
    pub(super) fn bound_after(&self, payload: &[u8], options: &GraphOptions) -> Result<usize, RecordFault> {
        let (mut bound, newest) = (self.vertex_bound as u64, self.newest.view());
        logged::decode(payload, options, |record| {
            match record {
                LoggedOp::Key(key) => {
                    // With one key for two vertices, no snapshot could be made any more.
                    if newest.vertex_dead_or_alive(&key.into()).map_err(Error::from)?.is_some() {
                        return Err("the key of a new vertex is there already".into());
                    }
                    bound += 1;
                }
                LoggedOp::Bound(new) => bound = bound.max(new.into()),
                _ => {}
            }
            Ok::<_, RecordFault>(())
        })?;
        if bound > anden_base::MAX_VERTICES as u64 {
            return Err("there are more vertices than a graph can have".into());
        }
        Ok(bound as usize)
    }

    /// Applies one operation of a record; edges go to `batch`.
    pub(super) fn redo(
        &mut self,
        record: LoggedOp<'_>,
        options: &GraphOptions,
        batch: &mut ArcBatch,
        pool: &Pool,
    ) -> Result<(), RecordFault> {
        match record {
            LoggedOp::Add(edges) | LoggedOp::Remove(edges) => self.redo_edges(edges, options, batch)?,
            LoggedOp::AddVertex(vertex) | LoggedOp::RemoveVertex(vertex) if vertex as usize >= self.vertex_bound => {
                return Err("a vertex is beyond the last".into());
            }
            LoggedOp::AddVertex(vertex) => self.revive(vertex),
            LoggedOp::RemoveVertex(vertex) => {
                // Edges of the vertex must be applied before they are removed with it.
                self.flush(batch, pool)?;
                if self.is_live(vertex) {
                    self.remove_vertex(vertex, batch, pool, &mut |_| {})?;
                }
            }
            LoggedOp::Key(key) => {
                self.grow_to(self.vertex_bound as u64 + 1)?;
                // `grow_to` has counted the vertex already.
                self.keys.push(key.into(), self.vertex_bound as u32 - 1);
            }
            LoggedOp::Bound(bound) => {
                if options.keys != KeyScheme::Dense || (bound as usize) < self.vertex_bound {
                    return Err("the vertex bound goes back".into());
                }
                self.grow_to(bound.into())?;
            }
            LoggedOp::Property(name, property_type) => {
                let mut schema = PropertySchema::clone(&self.properties.schema);
                schema.add(name.to_owned(), property_type).map_err(Error::from)?;
                self.properties.schema = Arc::new(schema);
            }
            LoggedOp::EdgeProperty(name, property_type) => {
                let mut schema = PropertySchema::clone(&self.edges.schema);
                schema.add(name.to_owned(), property_type).map_err(Error::from)?;
                self.edges.extend_schema(schema);
            }
            LoggedOp::Row(row, values) => self.redo_row(row, &values, options)?,
            LoggedOp::FirstRow(row, first) => {
                if !options.multigraph || first >= row || row >= anden_snapshots::MAX_ROWS {
                    return Err("a row has no such first row".into());
                }
                self.edges.rows.set_first(row, first);
            }
            LoggedOp::Value { vertex, place, value } => {
                if vertex as usize >= self.vertex_bound || !logged::fits(&self.properties.schema, place, value) {
                    return Err("a value fits no vertex and no property".into());
                }
                // Edges before it in the batch would make the vertex live.
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
    fn redo_edges(
        &mut self,
        edges: LoggedEdges<'_>,
        options: &GraphOptions,
        batch: &mut ArcBatch,
    ) -> Result<(), RecordFault> {
        let bound = self.vertex_bound as u64;
        for edge in edges.iter() {
            if u64::from(edge.source.max(edge.target)) >= bound {
                return Err("an edge has an end that is no vertex".into());
            }
            if edge.addition.is_some_and(|data| !logged::is_number(data.weight, options.weight_type)) {
                return Err("a weight is no number".into());
            }
            if let Some(data) = edge.addition.filter(|data| options.has_rows() && data.row >= self.edges.next) {
                // Without edge properties no part lists the rows, so edges define how many there are.
                if options.edge_properties || data.row >= anden_snapshots::MAX_ROWS {
                    return Err("an edge has a row that is not there".into());
                }
                self.edges.next = data.row + 1;
            }
            if options.ordered && edge.source == edge.target && edge.addition.is_some() {
                // A loop is no arc here, but must add its vertex.
                self.revive(edge.source);
            }
            edge.for_each_arc(options, |arc| batch.push(arc));
        }
        Ok(())
    }

    /// Stores the values of a row.
    fn redo_row(&mut self, row: u64, values: &RowValues<'_>, options: &GraphOptions) -> Result<(), RecordFault> {
        if !options.edge_properties || row != self.edges.next || row >= anden_snapshots::MAX_ROWS {
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

    /// Adds the vertices below `bound`.
    fn grow_to(&mut self, bound: u64) -> Result<(), RecordFault> {
        if bound > anden_base::MAX_VERTICES as u64 {
            return Err("there are more vertices than a graph can have".into());
        }
        let bound = bound as usize;
        self.make_room(bound)?;
        self.num_vertices += bound - self.vertex_bound;
        self.vertex_bound = bound;
        Ok(())
    }

    /// Applies the collected arcs.
    pub(super) fn flush(&mut self, batch: &mut ArcBatch, pool: &Pool) -> Result<()> {
        self.revive_ends(batch);
        self.change_arcs(batch, pool)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use anden_graph::property::PropertyValue;
    use anden_snapshots::DictionaryKeys;
    use anden_testkit::{FaultStorage, wait_until};

    use super::*;

    /// A graph with edge properties and the vertices 0 to 2.
    fn store() -> Store {
        let options = GraphOptions { keys: KeyScheme::Dense, edge_properties: true, ..GraphOptions::default() };
        let builder = Store::create(Arc::new(FaultStorage::default()), Path::new("db"), options).unwrap();
        let dictionary = builder.write_dictionary(DictionaryKeys::Dense(3)).unwrap();
        let base = builder.base_writer(3).unwrap().finish().unwrap();
        builder.publish(base, dictionary, 0, None).unwrap()
    }

    fn entries(kind: u8, entries: &[&[u8]]) -> Vec<u8> {
        [&[kind][..], &(entries.len() as u32).to_le_bytes(), &entries.concat()].concat()
    }

    /// Edges name rows by number: a wrong row would show values of another edge, or take memory up to its number.
    #[test]
    fn rows_that_do_not_fit_are_refused() {
        let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
        let property = entries(9, &[&[text("i64"), text("amount")].concat()]);
        let row = |number: u64, value: PropertyValue<'_>| {
            let mut entry = [&number.to_le_bytes()[..], &1_u32.to_le_bytes()].concat();
            anden_snapshots::encode_value(value, &mut entry);
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
            let mut replay = WalReplay::new(&live, &store);
            let added =
                replay.add(LoggedGroup { epoch: 1, payload, synced_through: 0, path: Path::new("wal"), offset: 0 });
            added.and_then(|()| replay.finish())
        };
        assert_eq!(replayed(&good).unwrap(), 1);
        for (payload, what) in bad {
            let error = replayed(&payload).unwrap_err().to_string();
            assert!(error.contains(what), "{error}, not: {what}");
        }
    }

    /// A reader that sees the epoch must find the version.
    #[test]
    fn replayed_version_is_shown_before_its_epoch() {
        let (store, live) = (store(), Live::default());
        std::thread::scope(|scope| {
            let reading = live.published.read();
            let replaying = scope.spawn(|| {
                let mut replay = WalReplay::new(&live, &store);
                let added = replay.add(LoggedGroup {
                    epoch: 1,
                    payload: &[],
                    synced_through: 0,
                    path: Path::new("wal"),
                    offset: 0,
                });
                added.and_then(|()| replay.finish())
            });
            // A waiting writer of this lock lets no reader in.
            wait_until("the replay publishes its version", || live.published.try_read().is_none());
            assert_eq!(live.epoch(), 0);
            drop(reading);
            assert_eq!(replaying.join().unwrap().unwrap(), 1);
        });
        assert_eq!((live.epoch(), live.newest().map(|version| version.epoch)), (1, Some(1)));
    }
}
