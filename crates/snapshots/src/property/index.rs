//! Indexes lead from the values of a property to the vertices that have them.
//!
//! An index is a list of parts, each an immutable file of entries. An entry is the hash of a value, and a vertex. The
//! one invariant: if a vertex has a value in some version of the chain, a part has the entry. The opposite does not
//! hold. The vertex may have lost the value, or another value may have this hash, so a reader compares each candidate
//! with its view. So removals are never recorded, and drops, merged deltas and retention leave indexes alone.
//!
//! New values become a part of their own, or are joined with the last parts that are at most twice as long. So an index
//! has few parts. A merge rewrites the entries without those that no version needs.

use std::path::Path;
use std::sync::Arc;

use anden_base::VertexId;
use anden_base::storage::Storage;
use anden_graph::property::{PropertyColumn, PropertyValue};

use super::changes::ChangesRef;
use crate::column::SectionColumn;
use crate::encoding::{Decoder, Encoder};
use crate::file::{FileKind, FileWriter, FramedFile, SectionKind, WrittenFile};
use crate::options::DatabaseId;
use crate::{Result, names};

/// Entries that are passed to a file's writer at once.
const WRITTEN_ENTRIES: usize = 1 << 13;

/// First step of the search for an entry, away from its expected position.
const FIRST_REACH: usize = 16;

/// Uniqueness of the values of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexKind {
    /// Several vertices may have equal values.
    #[default]
    Plain,
    /// No two vertices have equal values; any number may have none.
    Unique,
}

/// An index in the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexRecord {
    pub kind: IndexKind,
    /// Numbers of the files of its parts.
    pub parts: Vec<u32>,
}

impl IndexRecord {
    /// Encodes the index of a property, or that it has none.
    pub fn encode(record: Option<&Self>, body: &mut Encoder) {
        body.u8(match record.map(|record| record.kind) {
            None => 0,
            Some(IndexKind::Plain) => 1,
            Some(IndexKind::Unique) => 2,
        });
        if let Some(Self { parts, .. }) = record {
            body.u32(parts.len() as u32);
            parts.iter().for_each(|&part| body.u32(part));
        }
    }

    /// Decodes it; the outer `None` means that the bytes are not valid.
    pub fn decode(decoder: &mut Decoder<'_>) -> Option<Option<Self>> {
        let kind = match decoder.u8()? {
            0 => return Some(None),
            1 => IndexKind::Plain,
            2 => IndexKind::Unique,
            _ => return None,
        };
        let mut parts = Vec::new();
        // Reserves no memory, because a damaged count could be huge.
        for _ in 0..decoder.u32()? {
            parts.push(decoder.u32()?);
        }
        Some(Some(Self { kind, parts }))
    }
}

/// An open index.
#[derive(Clone, Debug)]
pub(crate) struct VertexIndex {
    pub kind: IndexKind,
    /// The parts, with the numbers of their files.
    pub parts: Vec<(u32, Arc<IndexPart>)>,
}

impl VertexIndex {
    /// Appends the vertices that may have a value with this hash.
    ///
    /// Cost: a search in each part; the number of parts is at most logarithmic in the number of entries.
    ///
    /// # Errors
    /// A part is damaged.
    pub fn push_candidates(&self, hash: u32, to: &mut Vec<VertexId>) -> anden_base::Result<()> {
        self.parts.iter().try_for_each(|(_, part)| part.push_candidates(hash, to))
    }

    /// Whether a part has this entry.
    ///
    /// # Errors
    /// A part is damaged.
    pub fn has(&self, entry: u64) -> anden_base::Result<bool> {
        for (_, part) in &self.parts {
            let place = part.first_from(entry)?;
            // All entries of the part may be smaller.
            if place < part.entries.len() && part.entry(place)? == entry {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Number of entries of all parts.
    pub fn num_entries(&self) -> u64 {
        self.parts.iter().map(|(_, part)| part.len() as u64).sum()
    }
}

/// A part of an index: strictly ascending entries.
#[derive(Debug)]
pub(crate) struct IndexPart {
    entries: SectionColumn<u64>,
}

impl IndexPart {
    /// Opens the part in a file.
    ///
    /// # Errors
    /// The file has no entries.
    pub fn open(file: &FramedFile) -> Result<Self> {
        Ok(Self { entries: SectionColumn::open(file, SectionKind::IndexEntries)? })
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// All entries, verified.
    ///
    /// # Errors
    /// The entries are damaged.
    pub fn entries(&self) -> anden_base::Result<&[u64]> {
        self.entries.touch(0..self.entries.len())
    }

    /// An error about the entry at `index`.
    pub fn corrupt(&self, index: usize, what: &str) -> anden_base::Error {
        self.entries.corrupt(index, what)
    }

    fn entry(&self, index: usize) -> anden_base::Result<u64> {
        Ok(self.entries.touch(index..index + 1)?[0])
    }

    fn push_candidates(&self, hash: u32, to: &mut Vec<VertexId>) -> anden_base::Result<()> {
        for index in self.first_from(entry_of(hash, 0))?..self.entries.len() {
            let (found, vertex) = split(self.entry(index)?);
            // Entries ascend, so those with this hash stand together.
            if found != hash {
                break;
            }
            to.push(vertex);
        }
        Ok(())
    }

    /// Position of the first entry that is at least `entry`.
    ///
    /// Hashes are evenly spread, so the search starts at the expected position of `entry`, and touches few pages.
    fn first_from(&self, entry: u64) -> anden_base::Result<usize> {
        let len = self.entries.len();
        let expected = ((u128::from(entry) * len as u128) >> 64) as usize;
        let (mut low, mut high, mut reach) = (expected, expected, FIRST_REACH);
        // Doubling steps bound a range, which the binary search below narrows.
        while low > 0 && self.entry(low - 1)? >= entry {
            high = low - 1;
            low = low.saturating_sub(reach);
            reach *= 2;
        }
        reach = FIRST_REACH;
        while high < len && self.entry(high)? < entry {
            low = high + 1;
            high = high.saturating_add(reach).min(len);
            reach *= 2;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(middle)? < entry { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }
}

/// The hash by which indexes find a value; `None` for null, which no index holds.
///
/// The hash is part of the file format. Equal values of one type have equal hashes; the type itself does not enter.
pub fn value_hash(value: PropertyValue<'_>) -> Option<u32> {
    let hash = match value {
        PropertyValue::Null => return None,
        PropertyValue::Boolean(value) => mixed(value.into()),
        PropertyValue::I64(value) | PropertyValue::Timestamp(value) => mixed(value as u64),
        PropertyValue::U64(value) => mixed(value),
        PropertyValue::F32(value) => mixed(value.to_bits().into()),
        PropertyValue::F64(value) => mixed(value.to_bits()),
        PropertyValue::Date(value) => mixed(value as u64),
        PropertyValue::String(value) => hash_of_bytes(value.as_bytes()),
        PropertyValue::Bytes(value) => hash_of_bytes(value),
    };
    Some((hash >> 32) as u32)
}

fn hash_of_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]).map(|&word| u64::from_le_bytes(word));
    // The length enters the hash, so the padding with zeros causes no collisions of its own.
    words.fold(mixed(bytes.len() as u64), |hash, word| mixed(hash ^ word))
}

/// Folds the two halves of a product: each bit of the number changes about half of the result.
fn mixed(number: u64) -> u64 {
    let product = u128::from(number ^ 0x2d35_8dcc_aa6c_78a5) * 0x8bb8_4b93_962e_acc9;
    let folded = (product as u64) ^ (product >> 64) as u64;
    folded.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The entry of a vertex with a value of this hash.
pub(crate) fn entry_of(hash: u32, vertex: VertexId) -> u64 {
    u64::from(hash) << 32 | u64::from(vertex)
}

/// Hash and vertex of an entry.
pub(crate) fn split(entry: u64) -> (u32, VertexId) {
    ((entry >> 32) as u32, entry as VertexId)
}

/// Appends the entries of the values of consecutive vertices from `first` on.
pub(crate) fn push_column(first: usize, column: &PropertyColumn, to: &mut Vec<u64>) {
    let entries =
        (0..column.len()).filter_map(|row| Some(entry_of(value_hash(column.get(row))?, (first + row) as u32)));
    to.extend(entries);
}

/// Appends the entries of the new and the old values of changes.
pub(crate) fn push_changes(changes: ChangesRef<'_>, to: &mut Vec<u64>) {
    for (vertex, new, old) in changes.iter() {
        to.extend([new, old].into_iter().filter_map(|value| Some(entry_of(value_hash(value)?, vertex))));
    }
}

/// Writes a part under a temporary name, and syncs the file: the entries of several ascending lists, without
/// duplicates.
///
/// # Errors
/// The file exists; the disk failed.
pub(crate) fn write_index(
    storage: &dyn Storage,
    directory: &Path,
    (id, file_number): (DatabaseId, u32),
    lists: &[&[u64]],
) -> Result<WrittenFile> {
    let path = directory.join(names::temporary(&names::index(file_number)));
    let mut file = FileWriter::create(storage, &path)?;
    file.begin_section(SectionKind::IndexEntries)?;
    let mut lists: Vec<&[u64]> = lists.to_vec();
    let mut written = Vec::with_capacity(WRITTEN_ENTRIES);
    // There are few lists (logarithmic in their length), so looking at each is cheap.
    while let Some(&next) = lists.iter().filter_map(|list| list.first()).min() {
        written.push(next);
        for list in &mut lists {
            while list.first() == Some(&next) {
                *list = &list[1..];
            }
        }
        if written.len() == WRITTEN_ENTRIES {
            file.append(bytemuck::cast_slice(&written))?;
            written.clear();
        }
    }
    file.append(bytemuck::cast_slice(&written))?;
    file.finish(FileKind::Index, id)
}

#[cfg(test)]
mod tests {
    use anden_testkit::{FaultStorage, Random};

    use super::*;

    const ID: DatabaseId = DatabaseId([7; 16]);

    fn part(lists: &[&[u64]]) -> IndexPart {
        let disk = FaultStorage::default();
        let file = write_index(&disk, "".as_ref(), (ID, 3), lists).unwrap();
        IndexPart::open(&FramedFile::open(&disk, &file.path, FileKind::Index, ID).unwrap()).unwrap()
    }

    #[test]
    fn every_entry_is_found() {
        let mut random = Random::new(4);
        // Evenly spread hashes, and hashes that are all equal.
        for bits in [32, 8, 0] {
            let mut entries: Vec<u64> = (0..5_000)
                .map(|vertex| entry_of((random.below(u32::MAX) as u64 >> (32 - bits)) as u32, vertex))
                .collect();
            entries.sort_unstable();
            let (even, odd): (Vec<u64>, Vec<u64>) = entries.iter().partition(|entry| **entry % 2 == 0);
            let part = part(&[&even, &odd, &even[..7]]);
            assert_eq!(part.entries().unwrap(), entries);
            for &entry in &entries {
                let (hash, vertex) = split(entry);
                let mut found = Vec::new();
                part.push_candidates(hash, &mut found).unwrap();
                assert!(found.contains(&vertex), "{bits} bits");
                assert_eq!(found.len(), entries.iter().filter(|other| split(**other).0 == hash).count());
            }
            let mut found = Vec::new();
            [u32::MAX, 3_000_000_000].iter().for_each(|&hash| part.push_candidates(hash, &mut found).unwrap());
            assert!(found.is_empty());
        }
        assert!(part(&[]).entries().unwrap().is_empty());
    }

    #[test]
    fn hashes_are_part_of_the_format() {
        let hashes = [
            PropertyValue::Boolean(true),
            PropertyValue::I64(1),
            PropertyValue::F64(0.5),
            PropertyValue::String(""),
            PropertyValue::String("ann@example.org"),
            PropertyValue::Bytes(&[0]),
        ]
        .map(|value| value_hash(value).unwrap());
        assert_eq!(hashes, KNOWN_HASHES);
        assert_eq!(value_hash(PropertyValue::Null), None);
    }

    const KNOWN_HASHES: [u32; 6] =
        [3_379_818_581, 3_379_818_581, 459_383_127, 316_969_925, 2_027_424_656, 1_733_768_275];

    #[test]
    fn hashes_differ_where_values_do() {
        let mut hashes: Vec<u32> = (0..100_000).filter_map(|i| value_hash(PropertyValue::I64(i))).collect();
        let texts = (0..100_000).map(|i| format!("user{i}@example.org"));
        hashes.extend(texts.filter_map(|text| value_hash(PropertyValue::String(&text))));
        hashes.sort_unstable();
        hashes.dedup();
        assert!(hashes.len() > 199_900, "{}", hashes.len());
    }
}
