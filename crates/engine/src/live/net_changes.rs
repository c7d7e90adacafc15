//! Net changes of another database become a snapshot: they stand for several epochs, and the WAL has a record for each.

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_snapshots::{MAX_ROWS, SnapshotTag, Store};

use super::batch::ArcBatch;
use super::changes::{NetChanges, RecordFault};
use super::checkpoint::require_memory;
use super::logged::{self, LoggedOp};
use super::{Live, MemtableWriter};
use crate::log::LoggedGroup;
use crate::{Error, Result};

/// Bytes of a value of a row in memory.
const VALUE_BYTES: u64 = 8;

impl Live {
    /// Commits net changes of another database with their epoch. Returns false if this database has the epoch already.
    ///
    /// # Errors
    /// This database has not the epoch from which they lead on; they do not fit the graph, or the memory; the disk
    /// failed. Then nothing has happened.
    pub(crate) fn append_net(
        &self,
        store: &Store,
        net: NetChanges,
        group: LoggedGroup<'_>,
        pool: &Pool,
    ) -> Result<bool> {
        store.require_sound()?;
        let ours = self.epoch();
        if group.epoch <= ours {
            return Ok(false);
        }
        if net.since != ours {
            return Err(Error::options(format!(
                "cannot apply the changes of epoch {}: they are the net changes since epoch {}, and this database has \
                 epoch {ours}",
                group.epoch, net.since
            )));
        }
        let guard = self.write_guard_at_snapshot(store)?;
        let mut writer = MemtableWriter::new(store, group.epoch - 1)?;
        writer.require_room_for_rows(net, store.memory())?;
        writer.redo_net(net, group.payload, pool).map_err(|fault| fault.in_record_of_primary(group.epoch))?;
        let version = writer.version();
        let what = "a net change set, which becomes a snapshot";
        require_memory(store, what, writer.num_bytes(), version.written_bytes())?;
        // The buffers go before the delta takes memory.
        drop(writer);
        version.write_delta(store, SnapshotTag::default(), &Silent)?;
        guard.show(store, version.epoch);
        Ok(true)
    }
}

impl MemtableWriter {
    /// Refuses net changes whose rows need more memory than there is: also the missing ones among them take some.
    fn require_room_for_rows(&self, net: NetChanges, memory: Option<u64>) -> Result<()> {
        if !self.options().edge_properties {
            return Ok(());
        }
        let num_rows = net.next_row.saturating_sub(self.edges.next);
        let needed = num_rows.saturating_mul(VALUE_BYTES * self.edges.schema.len().max(1) as u64);
        let budget = memory.unwrap_or_else(anden_base::memory::available);
        if needed > budget {
            let what = "the rows of a net change set, which must be in memory,".to_owned();
            return Err(Error::Memory { what, needed, budget });
        }
        Ok(())
    }

    fn redo_net(&mut self, net: NetChanges, payload: &[u8], pool: &Pool) -> Result<(), RecordFault> {
        let options = *self.options();
        let bound = self.bound_after(payload, &options)?;
        self.make_room(bound)?;
        let mut batch = ArcBatch::new(&options);
        logged::decode(payload, &options, |record| {
            match record {
                LoggedOp::RemoveVertex(vertex) => {
                    // Its edges went before, so none is searched for.
                    self.flush(&mut batch, pool)?;
                    if vertex as usize >= self.vertex_bound || !self.is_live(vertex) {
                        return Err("a removed vertex is not there".into());
                    }
                    return Ok(self.lose_vertex(vertex)?);
                }
                // The rows before it belong to edges that are gone again.
                LoggedOp::Row(row, _) => self.edges.next = self.edges.next.max(row),
                _ => {}
            }
            self.redo(record, &options, &mut batch, pool)
        })?;
        self.flush(&mut batch, pool)?;
        if net.next_row < self.edges.next || net.next_row > MAX_ROWS {
            return Err("the numbers of rows do not follow each other".into());
        }
        self.edges.next = net.next_row;
        Ok(())
    }
}
