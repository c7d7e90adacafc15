//! The WAL part of a backup: records copied to small segments.

use anden_snapshots::DatabaseId;

use crate::Result;
use crate::log::{HeldLog, LoggedGroup, ReadFaults, SegmentCopy};

/// Segments of a backup end here. They are built in memory.
const SEGMENT_BYTES: usize = 8 << 20;

/// Copies records to segments under the id of a database.
pub(super) struct RecordCopy<'a> {
    id: DatabaseId,
    segment: Option<SegmentCopy>,
    num_segments: u32,
    /// Epoch of the last record.
    through: u64,
    /// Takes a segment by its number.
    take: &'a mut dyn FnMut(u32, &[u8]) -> Result<()>,
}

impl<'a> RecordCopy<'a> {
    /// A copy of the records after the epoch `after`.
    pub(super) fn new(id: DatabaseId, after: u64, take: &'a mut dyn FnMut(u32, &[u8]) -> Result<()>) -> Self {
        Self { id, segment: None, num_segments: 0, through: after, take }
    }

    fn push(&mut self, group: LoggedGroup<'_>) -> Result<()> {
        let segment = self.segment.get_or_insert_with(|| SegmentCopy::begin(self.id, group.epoch));
        segment.push(group.epoch, group.payload);
        self.through = group.epoch;
        match segment.bytes().len() >= SEGMENT_BYTES {
            true => self.end_segment(),
            false => Ok(()),
        }
    }

    fn end_segment(&mut self) -> Result<()> {
        let Some(segment) = self.segment.take() else { return Ok(()) };
        self.num_segments += 1;
        (self.take)(self.num_segments, segment.bytes())
    }

    /// Copies the records of a damaged `log`, up to the first one that cannot be read. Returns the epoch of the last
    /// record, and whether nothing follows it.
    ///
    /// # Errors
    /// Errors of the function that takes segments.
    pub(super) fn run_prefix(mut self, log: &HeldLog<'_>) -> Result<(u64, bool)> {
        let (mut failed, after) = (None, self.through);
        let read = log.records(after, &mut |group| self.push(group).inspect_err(|error| failed = Some(error.clone())));
        if let Some(error) = failed {
            return Err(error);
        }
        self.end_segment()?;
        Ok((self.through, read.is_ok_and(|scan| !scan.has_torn_tail())))
    }

    /// Copies the records of `log`, up to the epoch `until` if that is given. Returns the epoch of the last record.
    ///
    /// # Errors
    /// Damage in the WAL; errors of the function that takes segments.
    pub(super) fn run(mut self, log: &HeldLog<'_>, until: Option<u64>) -> Result<u64> {
        let mut faults = ReadFaults::default();
        loop {
            let (mut failed, after) = (None, self.through);
            let read = log.records(after, &mut |group| {
                // The writer appends while this reads.
                if failed.is_some() || until.is_some_and(|until| group.epoch > until) {
                    return Ok(());
                }
                self.push(group).inspect_err(|error| failed = Some(error.clone()))
            });
            if let Some(error) = failed {
                return Err(error);
            }
            match read {
                Ok(_) => break,
                // The error is in a later record, which may be half written.
                Err(_) if until.is_some_and(|until| self.through >= until) => break,
                Err(error) if faults.is_repeated(&error) => return Err(error),
                Err(_) => {}
            }
        }
        self.end_segment()?;
        Ok(self.through)
    }
}
