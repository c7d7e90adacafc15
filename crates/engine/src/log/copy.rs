//! Copies WAL records to segments of another directory, under an id of choice.

use anden_base::checksum::crc32c;
use anden_snapshots::DatabaseId;

use super::format::{GROUP_HEADER_BYTES, GroupHeader, SEGMENT_HEADER_BYTES, SegmentHeader, group_bytes, seed_of};

/// The generation of copied segments. Every opening chooses a higher one.
const GENERATION: u32 = 1;

/// A segment in memory that takes copied records. They are synced together before anything names them, so each one
/// certifies those before it.
#[derive(Debug)]
pub(crate) struct SegmentCopy {
    bytes: Vec<u8>,
    seed: u32,
    chain: u32,
}

impl SegmentCopy {
    /// Begins a segment of the database `id` with the record of this epoch.
    pub(crate) fn begin(id: DatabaseId, first_epoch: u64) -> Self {
        let synced_through = first_epoch.saturating_sub(1);
        let header = SegmentHeader { first_epoch, synced_through, generation: GENERATION };
        let (bytes, chain) = header.encode(id);
        Self { bytes: bytes.to_vec(), seed: seed_of(id), chain }
    }

    /// Appends the next record.
    pub(crate) fn push(&mut self, epoch: u64, payload: &[u8]) {
        debug_assert!(self.bytes.len() >= SEGMENT_HEADER_BYTES);
        let header = GroupHeader {
            payload_crc: crc32c(payload),
            epoch,
            len: payload.len() as u64,
            synced_through: epoch.saturating_sub(1),
            chain: self.chain,
            generation: GENERATION,
        };
        let end = self.bytes.len() + group_bytes(payload.len());
        let (header, chain) = header.encode(self.seed, self.bytes.len() as u64);
        self.bytes.extend_from_slice(&header[..GROUP_HEADER_BYTES]);
        self.bytes.extend_from_slice(payload);
        self.bytes.resize(end, 0);
        self.chain = chain;
    }

    /// The bytes of the segment.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
