//! The manifest: which files make up the database. It is the one file that grows.
//!
//! Records follow each other; each has a checksum of its own and names the checksum of the one
//! before. A record is torn when a crash interrupted its append: nothing valid can follow it, and
//! it is cut off. A bad record with a valid one behind it was damaged later, and is refused.

use std::path::Path;

use base::MAX_VERTICES;
use base::checksum::{crc32c, crc32c_append};
use graph::{Direction, WeightType};

use crate::encoding::{Decoder, Encoder};
use crate::file::{FORMAT_VERSION, FileKind};
use crate::options::{DatabaseId, GraphOptions, KeyScheme};
use crate::{Error, Result, names};

/// Starts every record.
const RECORD_MAGIC: [u8; 4] = *b"ANDR";

/// Magic, length of the payload, number of the record, checksum of the record before.
const RECORD_HEAD_BYTES: usize = 16;

/// The checksum behind the payload, over head and payload.
const RECORD_CRC_BYTES: usize = 4;

/// No record is longer: a snapshot names a bounded number of files.
const MAX_PAYLOAD_BYTES: usize = 1 << 24;

/// The kinds of records, the first byte of a payload.
const CREATED: u8 = 1;
const SNAPSHOT: u8 = 2;

/// What all snapshots share: the first record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Created {
    pub id: DatabaseId,
    pub unix_time: u64,
    pub options: GraphOptions,
}

/// One published snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub number: u32,
    pub name: Option<String>,
    pub unix_time: u64,
    pub vertex_bound: u64,
    pub num_edges: u64,
    pub num_arcs: u64,
    pub num_added: u64,
    pub num_removed: u64,
    pub files: Vec<FileRecord>,
}

/// A file that a snapshot needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileRecord {
    pub kind: FileKind,
    pub name: String,
    pub len: u64,
    pub header_crc: u32,
}

/// What a manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub created: Created,
    pub snapshots: Vec<Snapshot>,
    /// The bytes of the valid records. What follows is a torn tail.
    pub valid_len: u64,
}

impl Manifest {
    /// The bytes of a manifest with these records.
    pub fn encode(created: &Created, snapshots: &[Snapshot]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut previous_crc = 0;
        let payloads = std::iter::once(created.encode()).chain(snapshots.iter().map(Snapshot::encode));
        for (number, payload) in payloads.enumerate() {
            let record = encode_record(number as u32, previous_crc, &payload);
            previous_crc = crc32c(&record[..record.len() - RECORD_CRC_BYTES]);
            bytes.extend_from_slice(&record);
        }
        bytes
    }

    /// Reads the bytes of the manifest at `path`.
    ///
    /// # Errors
    /// A newer version wrote it, it is damaged, or it names no snapshot.
    pub fn decode(bytes: &[u8], path: &Path) -> Result<Self> {
        let corrupt = |offset: usize, what: String| Error::from(base::Error::corrupt(path, offset as u64, what));
        let (payloads, valid_len) = split_records(bytes, path)?;
        let Some(((_, first), rest)) = payloads.split_first() else {
            return Err(corrupt(0, "the first record is damaged or missing".into()));
        };
        let created = Created::decode(first, path)?;
        let mut snapshots = Vec::new();
        for (offset, payload) in rest {
            let snapshot = Snapshot::decode(payload);
            let snapshot = snapshot.ok_or_else(|| corrupt(*offset, "a record does not mean anything".into()))?;
            if snapshot.number as usize != snapshots.len() + 1 {
                let what = format!("snapshot {} expected, {} found", snapshots.len() + 1, snapshot.number);
                return Err(corrupt(*offset, what));
            }
            snapshots.push(snapshot);
        }
        if snapshots.is_empty() {
            // The first snapshot is in the manifest before the manifest has its name.
            return Err(corrupt(valid_len, "the record of the first snapshot is damaged or missing".into()));
        }
        Ok(Self { created, snapshots, valid_len: valid_len as u64 })
    }

    /// The newest snapshot.
    pub fn newest(&self) -> &Snapshot {
        self.snapshots.last().expect("decoding refuses a manifest without a snapshot")
    }

    /// Every file that a snapshot needs.
    pub fn files(&self) -> impl Iterator<Item = &FileRecord> {
        self.snapshots.iter().flat_map(|snapshot| &snapshot.files)
    }
}

fn encode_record(number: u32, previous_crc: u32, payload: &[u8]) -> Vec<u8> {
    let mut record = Encoder::default();
    record.bytes(&RECORD_MAGIC);
    record.u32(payload.len() as u32);
    record.u32(number);
    record.u32(previous_crc);
    record.bytes(payload);
    record.u32(crc32c(&record.0));
    record.0
}

/// A record that is whole in itself, whatever stands before it.
struct Record<'a> {
    number: u32,
    previous_crc: u32,
    payload: &'a [u8],
    crc: u32,
    len: usize,
}

fn decode_record(bytes: &[u8]) -> Option<Record<'_>> {
    let mut decoder = Decoder::new(bytes);
    if decoder.array()? != RECORD_MAGIC {
        return None;
    }
    let payload_len = usize::try_from(decoder.u32()?).ok()?;
    let (number, previous_crc) = (decoder.u32()?, decoder.u32()?);
    if payload_len > MAX_PAYLOAD_BYTES {
        return None;
    }
    let payload = decoder.bytes(payload_len)?;
    let crc = decoder.u32()?;
    let head_crc = crc32c(&bytes[..RECORD_HEAD_BYTES]);
    let len = RECORD_HEAD_BYTES + payload_len + RECORD_CRC_BYTES;
    (crc32c_append(head_crc, payload) == crc).then_some(Record { number, previous_crc, payload, crc, len })
}

/// The payload of a record, and where in the manifest the record starts.
type Payload<'a> = (usize, &'a [u8]);

/// The payloads of the valid records, and the bytes of these records.
fn split_records<'a>(bytes: &'a [u8], path: &Path) -> Result<(Vec<Payload<'a>>, usize)> {
    let mut payloads = Vec::new();
    let (mut position, mut previous_crc) = (0, 0);
    while let Some(record) = decode_record(&bytes[position..]) {
        if (record.number as usize, record.previous_crc) != (payloads.len(), previous_crc) {
            let what =
                format!("record {} expected, {} found, or one that follows another", payloads.len(), record.number);
            return Err(base::Error::corrupt(path, position as u64, what).into());
        }
        payloads.push((position, record.payload));
        position += record.len;
        previous_crc = record.crc;
    }
    let tail = &bytes[position..];
    if (1..tail.len()).any(|skip| decode_record(&tail[skip..]).is_some()) {
        let what = format!("record {} is damaged, valid records follow it", payloads.len());
        return Err(base::Error::corrupt(path, position as u64, what).into());
    }
    Ok((payloads, position))
}

impl Created {
    fn encode(&self) -> Vec<u8> {
        let mut payload = Encoder::default();
        let options = &self.options;
        payload.u8(CREATED);
        payload.u32(FORMAT_VERSION);
        payload.bytes(&self.id.0);
        payload.u64(self.unix_time);
        payload.u8(match options.direction {
            Direction::Directed => 0,
            Direction::Undirected => 1,
        });
        payload.u8(options.multigraph.into());
        payload.u8(options.ordered.into());
        payload.u8(match options.keys {
            KeyScheme::Integer => 0,
            KeyScheme::String => 1,
            KeyScheme::Dense => 2,
        });
        payload.u8(weight_number(options.weight_type));
        payload.u8(options.in_edges.into());
        payload.0
    }

    fn decode(payload: &[u8], path: &Path) -> Result<Self> {
        let corrupt = |what: &str| Error::from(base::Error::corrupt(path, 0, what));
        let mut decoder = Decoder::new(payload);
        let (Some(CREATED), Some(version)) = (decoder.u8(), decoder.u32()) else {
            return Err(corrupt("the first record is not that of a new database"));
        };
        if version > FORMAT_VERSION {
            return Err(Error::NewerVersion { path: path.to_owned(), found: version, supported: FORMAT_VERSION });
        }
        let created = Self::decode_fields(&mut decoder).filter(|_| decoder.is_empty());
        created.ok_or_else(|| corrupt("the first record does not mean anything"))
    }

    fn decode_fields(decoder: &mut Decoder<'_>) -> Option<Self> {
        let (id, unix_time) = (DatabaseId(decoder.array()?), decoder.u64()?);
        let direction = if decoder.flag()? { Direction::Undirected } else { Direction::Directed };
        let (multigraph, ordered) = (decoder.flag()?, decoder.flag()?);
        let keys = match decoder.u8()? {
            0 => KeyScheme::Integer,
            1 => KeyScheme::String,
            2 => KeyScheme::Dense,
            _ => return None,
        };
        let weight_type = weight_type(decoder.u8()?)?;
        let in_edges = decoder.flag()?;
        let options = GraphOptions { direction, multigraph, ordered, keys, weight_type, in_edges };
        Some(Self { id, unix_time, options })
    }
}

/// The number of a type of weights on disk; 0 is none.
fn weight_number(weight_type: Option<WeightType>) -> u8 {
    match weight_type {
        None => 0,
        Some(WeightType::U32) => 1,
        Some(WeightType::I64) => 2,
        Some(WeightType::F32) => 3,
        Some(WeightType::F64) => 4,
    }
}

fn weight_type(number: u8) -> Option<Option<WeightType>> {
    let types = std::iter::once(None).chain(WeightType::ALL.iter().map(|&(weight_type, _)| Some(weight_type)));
    types.into_iter().find(|&weight_type| weight_number(weight_type) == number)
}

impl Snapshot {
    fn encode(&self) -> Vec<u8> {
        let mut payload = Encoder::default();
        payload.u8(SNAPSHOT);
        payload.u32(self.number);
        payload.u8(self.name.is_some().into());
        payload.string(self.name.as_deref().unwrap_or_default());
        for number in [self.unix_time, self.vertex_bound, self.num_edges, self.num_arcs, self.num_added] {
            payload.u64(number);
        }
        payload.u64(self.num_removed);
        payload.u32(self.files.len() as u32);
        for file in &self.files {
            payload.u32(file.kind as u32);
            payload.string(&file.name);
            payload.u64(file.len);
            payload.u32(file.header_crc);
        }
        payload.0
    }

    fn decode(payload: &[u8]) -> Option<Self> {
        let mut decoder = Decoder::new(payload);
        if decoder.u8()? != SNAPSHOT {
            return None;
        }
        let number = decoder.u32()?;
        let has_name = decoder.flag()?;
        let name = Some(decoder.string()?).filter(|_| has_name);
        let (unix_time, vertex_bound) = (decoder.u64()?, decoder.u64()?);
        let (num_edges, num_arcs) = (decoder.u64()?, decoder.u64()?);
        let (num_added, num_removed) = (decoder.u64()?, decoder.u64()?);
        let mut files = Vec::new();
        for _ in 0..decoder.u32()? {
            files.push(FileRecord::decode(&mut decoder)?);
        }
        let fits = decoder.is_empty() && vertex_bound <= MAX_VERTICES as u64;
        fits.then_some(Self {
            number,
            name,
            unix_time,
            vertex_bound,
            num_edges,
            num_arcs,
            num_added,
            num_removed,
            files,
        })
    }

    /// The one file of this kind.
    pub fn file(&self, kind: FileKind) -> Option<&FileRecord> {
        self.files.iter().find(|file| file.kind == kind)
    }

    /// The bytes of all its files.
    pub fn num_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.len).sum()
    }
}

impl FileRecord {
    fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let kind = FileKind::from_number(decoder.u32()?)?;
        let name = decoder.string().filter(|name| names::is_data(name))?;
        Some(Self { kind, name, len: decoder.u64()?, header_crc: decoder.u32()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created() -> Created {
        let options =
            GraphOptions { weight_type: Some(WeightType::F32), keys: KeyScheme::String, ..Default::default() };
        Created { id: DatabaseId([3; 16]), unix_time: 99, options }
    }

    fn snapshot(number: u32) -> Snapshot {
        let file =
            FileRecord { kind: FileKind::OutTable, name: names::run(number, "out-table"), len: 5, header_crc: 6 };
        let name = (number == 2).then(|| "née".to_owned());
        Snapshot {
            number,
            name,
            unix_time: 7,
            vertex_bound: 8,
            num_edges: 9,
            num_arcs: 10,
            num_added: 11,
            num_removed: 12,
            files: vec![file],
        }
    }

    fn decode(bytes: &[u8]) -> Result<Manifest> {
        Manifest::decode(bytes, "MANIFEST".as_ref())
    }

    #[test]
    fn records_come_back() {
        let snapshots = [snapshot(1), snapshot(2)];
        let bytes = Manifest::encode(&created(), &snapshots);
        let manifest = decode(&bytes).unwrap();
        assert_eq!((manifest.created, &manifest.snapshots[..]), (created(), &snapshots[..]));
        assert_eq!(manifest.valid_len, bytes.len() as u64);
    }

    #[test]
    fn a_torn_tail_is_cut_and_damage_before_a_valid_record_is_refused() {
        let one = Manifest::encode(&created(), &[snapshot(1)]);
        let two = Manifest::encode(&created(), &[snapshot(1), snapshot(2)]);
        assert_eq!(one, two[..one.len()]);
        for len in one.len()..two.len() {
            assert_eq!(decode(&two[..len]).unwrap().valid_len, one.len() as u64, "cut at {len}");
        }
        for len in 0..one.len() {
            assert!(decode(&one[..len]).is_err(), "cut at {len}");
        }
        for place in 0..one.len() {
            let mut bytes = two.clone();
            bytes[place] ^= 4;
            assert!(decode(&bytes).is_err(), "byte {place}");
        }
    }

    #[test]
    fn a_record_of_another_chain_is_refused() {
        let one = Manifest::encode(&created(), &[snapshot(1)]);
        let other = Manifest::encode(&Created { unix_time: 100, ..created() }, &[snapshot(1), snapshot(2)]);
        let error = decode(&[&one[..], &other[one.len()..]].concat()).unwrap_err().to_string();
        assert!(error.contains("record 2 expected"), "{error}");
    }

    #[test]
    fn a_newer_version_is_named() {
        let mut payload = created().encode();
        payload[1] = 9;
        payload.push(77);
        let error = decode(&encode_record(0, 0, &payload)).unwrap_err();
        assert!(matches!(error, Error::NewerVersion { found: 9, supported: FORMAT_VERSION, .. }), "{error}");
    }
}
