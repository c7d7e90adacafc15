//! The bytes of the WAL: segments, each a header and a sequence of records (*groups*).
//!
//! The header of a record has its own checksum, so that it is of use even if its payload is lost. The header then tells
//! up to which epoch the WAL was durable when the record was written. The checksum covers the database id and the place
//! in the file. So a header copied from another place or file is not valid.

use std::path::Path;

use anden_base::checksum::{crc32c, crc32c_append};
use anden_snapshots::{DatabaseId, FORMAT_VERSION};

use crate::Result;

const MAGIC: [u8; 4] = *b"ANDW";

/// The header of a segment; the first record follows it.
pub(super) const SEGMENT_HEADER_BYTES: usize = 64;
/// The offset of its checksum, which covers the bytes before it.
const SEGMENT_CRC_AT: usize = SEGMENT_HEADER_BYTES - 4;
/// The header of a record; its payload follows it.
pub(super) const GROUP_HEADER_BYTES: usize = 40;
/// Records begin at multiples of this; zeros fill the gap.
pub(super) const ALIGNMENT: usize = 8;

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// The epoch of its first record.
    pub(super) first_epoch: u64,
    /// The WAL was durable up to this epoch when the segment began.
    pub(super) synced_through: u64,
    /// The generation of the opening that wrote it; generations ascend from opening to opening.
    pub(super) generation: u32,
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupHeader {
    pub(super) payload_crc: u32,
    pub(super) epoch: u64,
    /// Bytes of the payload.
    pub(super) len: u64,
    /// The WAL was durable up to this epoch when the record was written.
    pub(super) synced_through: u64,
    /// The checksum of the header before; for the first record, that of the segment's header.
    pub(super) chain: u32,
    pub(super) generation: u32,
}

impl SegmentHeader {
    /// The bytes of the header, and the checksum to which the first record is chained.
    pub(super) fn encode(&self, id: DatabaseId) -> ([u8; SEGMENT_HEADER_BYTES], u32) {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[8..24].copy_from_slice(&id.0);
        bytes[24..32].copy_from_slice(&self.first_epoch.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.synced_through.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.generation.to_le_bytes());
        // The last bytes hold the checksum, which does not cover itself.
        let crc = crc32c(&bytes[..SEGMENT_CRC_AT]);
        bytes[SEGMENT_CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        (bytes, crc)
    }

    /// The header of a segment and its checksum; `None` if it was not fully written.
    ///
    /// # Errors
    /// The header is valid, but of another format version or database.
    pub(super) fn decode(bytes: &[u8], id: DatabaseId, path: &Path) -> Result<Option<(Self, u32)>> {
        // A crash may leave a segment that was created and not written.
        let Some(bytes) = bytes.first_chunk::<SEGMENT_HEADER_BYTES>() else { return Ok(None) };
        let crc = u32_at(bytes, SEGMENT_CRC_AT);
        if bytes[..4] != MAGIC || crc32c(&bytes[..SEGMENT_CRC_AT]) != crc {
            return Ok(None);
        }
        // Only a valid header tells the version: a torn one holds any number.
        let found = u32_at(bytes, 4);
        if found != FORMAT_VERSION {
            let path = path.to_owned();
            return Err(anden_snapshots::Error::OtherVersion { path, found, supported: FORMAT_VERSION }.into());
        }
        if bytes[8..24] != id.0 {
            return Err(anden_base::Error::corrupt(path, 8, "the log is that of another database").into());
        }
        let header =
            Self { first_epoch: u64_at(bytes, 24), synced_through: u64_at(bytes, 32), generation: u32_at(bytes, 40) };
        Ok(Some((header, crc)))
    }
}

/// The seed of the checksums of record headers.
pub(super) fn seed_of(id: DatabaseId) -> u32 {
    crc32c(&id.0)
}

impl GroupHeader {
    /// The bytes of the header at `offset`, and the checksum to which the next record is chained.
    pub(super) fn encode(&self, seed: u32, offset: u64) -> ([u8; GROUP_HEADER_BYTES], u32) {
        let mut bytes = [0; GROUP_HEADER_BYTES];
        bytes[4..8].copy_from_slice(&self.payload_crc.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.len.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.synced_through.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.chain.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.generation.to_le_bytes());
        // Last, because the checksum covers all other bytes of the header.
        let crc = header_crc(&bytes, seed, offset);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        (bytes, crc)
    }

    /// The header at `offset`, and its checksum; `None` if it is not valid.
    pub(super) fn decode(bytes: &[u8; GROUP_HEADER_BYTES], seed: u32, offset: u64) -> Option<(Self, u32)> {
        let (header, crc) = Self::decode_checked(bytes);
        // No record has epoch 0, so zeros are never a header, whatever their checksum.
        (header.epoch > 0 && crc == header_crc(bytes, seed, offset)).then_some((header, crc))
    }

    /// The header and its checksum, already known to be valid.
    pub(super) fn decode_checked(bytes: &[u8; GROUP_HEADER_BYTES]) -> (Self, u32) {
        let header = Self {
            payload_crc: u32_at(bytes, 4),
            epoch: u64_at(bytes, 8),
            len: u64_at(bytes, 16),
            synced_through: u64_at(bytes, 24),
            chain: u32_at(bytes, 32),
            generation: u32_at(bytes, 36),
        };
        (header, u32_at(bytes, 0))
    }
}

fn header_crc(bytes: &[u8; GROUP_HEADER_BYTES], seed: u32, offset: u64) -> u32 {
    let mut checked = [0; GROUP_HEADER_BYTES + 4];
    checked[..8].copy_from_slice(&offset.to_le_bytes());
    checked[8..].copy_from_slice(&bytes[4..]);
    crc32c_append(seed, &checked)
}

/// The bytes of a record with a payload of this length.
pub(super) fn group_bytes(payload_bytes: usize) -> usize {
    (GROUP_HEADER_BYTES + payload_bytes).next_multiple_of(ALIGNMENT)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().copied().map_or(0, u32::from_le_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().copied().map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: DatabaseId = DatabaseId([7; 16]);

    #[test]
    fn headers_come_back_from_their_place_only() {
        let header = GroupHeader { payload_crc: 1, epoch: 2, len: 3, synced_through: 4, chain: 5, generation: 6 };
        let (seed, (bytes, crc)) = (seed_of(ID), header.encode(seed_of(ID), 64));
        assert_eq!(GroupHeader::decode(&bytes, seed, 64), Some((header, crc)));
        assert_eq!(GroupHeader::decode(&bytes, seed, 72), None);
        assert_eq!(GroupHeader::decode(&bytes, seed_of(DatabaseId([8; 16])), 64), None);
        for place in 0..GROUP_HEADER_BYTES {
            let mut damaged = bytes;
            damaged[place] ^= 1;
            assert_eq!(GroupHeader::decode(&damaged, seed, 64), None, "byte {place}");
        }
        assert_eq!(GroupHeader::decode(&[0; GROUP_HEADER_BYTES], seed, 64), None);
    }

    #[test]
    fn a_segment_of_another_database_or_version_is_named() {
        let header = SegmentHeader { first_epoch: 9, synced_through: 8, generation: 3 };
        let (bytes, crc) = header.encode(ID);
        let decode = |bytes: &[u8], id| SegmentHeader::decode(bytes, id, "wal-000001".as_ref());
        assert_eq!(decode(&bytes, ID).unwrap(), Some((header, crc)));
        let error = decode(&bytes, DatabaseId([8; 16])).unwrap_err().to_string();
        assert!(error.contains("another database"), "{error}");
        for place in 0..SEGMENT_HEADER_BYTES {
            let mut damaged = bytes;
            damaged[place] ^= 1;
            assert_eq!(decode(&damaged, ID).unwrap(), None, "byte {place}");
            assert_eq!(decode(&bytes[..place], ID).unwrap(), None, "{place} bytes");
        }
        let mut other = bytes;
        other[4] += 1;
        let crc = crc32c(&other[..SEGMENT_CRC_AT]);
        other[SEGMENT_CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        assert!(matches!(
            decode(&other, ID),
            Err(crate::Error::Snapshots(anden_snapshots::Error::OtherVersion { .. }))
        ));
    }
}
