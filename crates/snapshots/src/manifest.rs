//! The manifest: the files of the database, and its versions.
//!
//! Each publication replaces it atomically, so a crash never damages it. A damaged manifest is refused.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anden_graph::property::PropertySchema;
use anden_graph::{StoredForm, StoredFormKey};

use crate::chain::{Chain, ChainVersion, DeltaRef, FIRST_UNWRITTEN, MergedDelta};
use crate::encoding::{Decoder, Encoder};
use crate::file::{FORMAT_VERSION, FileKind};
use crate::options::{DatabaseId, GraphOptions, Retention};
use crate::property::{EdgeRecord, MAX_ROWS, PropertyRecord};
use crate::sealed::{HEAD_BYTES, seal, unseal};
use crate::{Error, Result, base_writer, names};

mod created;

/// First bytes of the manifest.
const MAGIC: [u8; 4] = *b"ANDM";

/// First bytes of the manifest in format version 1.
const MAGIC_OF_VERSION_1: [u8; 4] = *b"ANDR";

/// Commits never reach this epoch, so there is always a next one.
const MAX_EPOCH: u64 = 1 << 62;

/// Facts fixed at creation, shared by all snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Created {
    pub id: DatabaseId,
    pub unix_time: u64,
    pub options: GraphOptions,
}

/// A file of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileRecord {
    pub kind: FileKind,
    pub name: String,
    pub len: u64,
    pub header_crc: u32,
}

/// A prepared form in the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PreparationRecord {
    pub key: StoredFormKey,
    /// Number of its file.
    pub file: u32,
    /// The version that it was prepared from. Not encoded: it is that of the base.
    pub version: u32,
}

/// The content of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub created: Created,
    /// Number of the next snapshot; numbers are never reused.
    pub next_number: u32,
    /// Number of the next file; numbers are never reused.
    pub next_file: u32,
    /// Epoch of the last commit in the newest version.
    pub epoch: u64,
    /// Bytes of everything that was ever loaded and appended.
    pub bytes_loaded: u64,
    /// Bytes of all files that were ever written.
    pub bytes_written: u64,
    pub retention: Retention,
    /// Bytes of WAL segments that stay although a snapshot has their commits.
    pub keep_wal: u64,
    /// Every file of the database.
    pub files: Vec<FileRecord>,
    /// Number of the base, in the names of its files.
    pub base: u32,
    /// Numbers of the dictionary's parts, in the order of ids.
    pub dictionary: Vec<u32>,
    /// Vertex properties.
    pub properties: Vec<PropertyRecord>,
    /// Edge properties.
    pub edge_properties: Vec<EdgeRecord>,
    /// The next free row number; numbers are never reused.
    pub next_row: u64,
    /// Numbers of the files with rows, in the order of rows.
    pub rows: Vec<u32>,
    pub chain: Chain,
    /// Prepared forms of the base's version.
    pub preparations: Vec<PreparationRecord>,
}

impl Manifest {
    /// The bytes of the manifest.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Encoder::default();
        self.created.encode(&mut body);
        body.u32(self.next_number);
        body.u32(self.next_file);
        body.u64(self.epoch);
        body.u64(self.bytes_loaded);
        body.u64(self.bytes_written);
        let (rule, amount) = match self.retention {
            Retention::All => (0, 0),
            Retention::Last(num_kept) => (1, num_kept),
            Retention::Named => (2, 0),
            Retention::Days(days) => (3, days),
        };
        body.u8(rule);
        body.u32(amount);
        body.u64(self.keep_wal);
        body.u32(self.files.len() as u32);
        for file in &self.files {
            body.u32(file.kind as u32);
            body.string(&file.name);
            body.u64(file.len);
            body.u32(file.header_crc);
        }
        body.u32(self.base);
        body.u32(self.chain.anchor);
        body.u32(self.dictionary.len() as u32);
        self.dictionary.iter().for_each(|&part| body.u32(part));
        body.u32(self.properties.len() as u32);
        self.properties.iter().for_each(|property| property.encode(&mut body));
        body.u32(self.edge_properties.len() as u32);
        self.edge_properties.iter().for_each(|property| property.encode(&mut body));
        body.u64(self.next_row);
        body.u32(self.rows.len() as u32);
        self.rows.iter().for_each(|&part| body.u32(part));
        body.u32(self.chain.merged_deltas.len() as u32);
        for base in &self.chain.merged_deltas {
            [base.from, base.to, base.delta.file, base.delta.index].iter().for_each(|&number| body.u32(number));
        }
        body.u32(self.chain.versions.len() as u32);
        self.chain.versions.iter().for_each(|version| version.encode(&mut body));
        body.u32(self.preparations.len() as u32);
        for PreparationRecord { key, file, .. } in &self.preparations {
            body.u32(key.form as u32);
            body.u64(key.parameter);
            body.u32(*file);
        }

        seal(MAGIC, &body)
    }

    /// Decodes the bytes of the manifest at `path`.
    ///
    /// # Errors
    /// The manifest is of another version, or damaged.
    pub fn decode(bytes: &[u8], path: &Path) -> Result<Self> {
        let corrupt = |offset: usize, what: &str| Error::from(anden_base::Error::corrupt(path, offset as u64, what));
        // Version 1 had another magic, so it is told apart from damage.
        if bytes.starts_with(&MAGIC_OF_VERSION_1) {
            return Err(Error::OtherVersion { path: path.to_owned(), found: 1, supported: FORMAT_VERSION });
        }
        let mut decoder = unseal(bytes, MAGIC, "manifest", path)?;
        let manifest = Self::decode_body(&mut decoder).filter(|_| decoder.is_empty());
        let manifest = manifest.ok_or_else(|| corrupt(HEAD_BYTES, "the manifest does not mean anything"))?;
        // Whole bytes may still contradict each other, and later code relies on these rules.
        manifest.check().map_err(|what| corrupt(HEAD_BYTES, &what))?;
        Ok(manifest)
    }

    fn decode_body(decoder: &mut Decoder<'_>) -> Option<Self> {
        let created = Created::decode(decoder)?;
        let (next_number, next_file) = (decoder.u32()?, decoder.u32()?);
        let epoch = decoder.u64()?;
        let (bytes_loaded, bytes_written) = (decoder.u64()?, decoder.u64()?);
        let retention = match (decoder.u8()?, decoder.u32()?) {
            (0, 0) => Retention::All,
            (1, num_kept) => Retention::Last(num_kept),
            (2, 0) => Retention::Named,
            (3, days) => Retention::Days(days),
            _ => return None,
        };
        let keep_wal = decoder.u64()?;
        let files = list(decoder, FileRecord::decode)?;
        let (base, anchor) = (decoder.u32()?, decoder.u32()?);
        let dictionary = list(decoder, Decoder::u32)?;
        let properties = list(decoder, PropertyRecord::decode)?;
        let edge_properties = list(decoder, EdgeRecord::decode)?;
        let (next_row, rows) = (decoder.u64()?, list(decoder, Decoder::u32)?);
        let merged_deltas = list(decoder, |decoder| {
            let (from, to) = (decoder.u32()?, decoder.u32()?);
            Some(MergedDelta { from, to, delta: DeltaRef { file: decoder.u32()?, index: decoder.u32()? } })
        })?;
        let versions = list(decoder, ChainVersion::decode)?;
        let chain = Chain { versions, anchor, merged_deltas };
        let preparations = list(decoder, |decoder| {
            let (form, parameter) = (StoredForm::from_number(decoder.u32()?)?, decoder.u64()?);
            let key = StoredFormKey { form, parameter };
            Some(PreparationRecord { key, file: decoder.u32()?, version: anchor })
        })?;
        Some(Self {
            created,
            next_number,
            next_file,
            epoch,
            bytes_loaded,
            bytes_written,
            retention,
            keep_wal,
            files,
            base,
            dictionary,
            properties,
            edge_properties,
            next_row,
            rows,
            chain,
            preparations,
        })
    }

    /// The first inconsistency.
    fn check(&self) -> Result<(), String> {
        // The chain first: the checks below rely on its order, and on a newest version.
        self.chain.check()?;
        self.chain.check_counts(&self.created.options)?;
        if self.next_number <= self.chain.newest().number {
            return Err(format!("the next snapshot has number {}, the newest too", self.next_number));
        }
        if self.epoch > MAX_EPOCH {
            return Err(format!("the last commit has the epoch {}", self.epoch));
        }
        let ChainVersion { epoch, next_row, .. } = *self.chain.newest();
        if (epoch, next_row) != (self.epoch, self.next_row) {
            return Err(format!(
                "the newest version has the epoch {epoch} and the next row {next_row}, the database {} and {}",
                self.epoch, self.next_row
            ));
        }
        if self.next_file > FIRST_UNWRITTEN {
            return Err(format!("the next file has number {}", self.next_file));
        }
        self.check_properties()?;
        let mut keys = HashSet::new();
        if let Some(twice) = self.preparations.iter().find(|record| !keys.insert(record.key)) {
            return Err(format!("the form {} is stored twice", twice.key));
        }
        let needed = self.needed_files();
        let mut found = HashSet::new();
        for file in &self.files {
            // A file that nothing needs would stay for good.
            if needed.get(&file.name) != Some(&file.kind) || !found.insert(&file.name) {
                return Err(format!("the file {} belongs to nothing, or twice", file.name));
            }
            // A later file would get this name again.
            if names::number(&file.name).is_none_or(|number| number >= self.next_file) {
                return Err(format!("the file {} has a number that was not given yet", file.name));
            }
        }
        // `num_file_bytes` adds these lengths without a check.
        if self.files.iter().try_fold(0, |sum: u64, file| sum.checked_add(file.len)).is_none() {
            return Err("all files together have more than 2^64 bytes".into());
        }
        if found.len() < needed.len() {
            let missing = needed.iter().find(|(name, _)| !found.contains(name));
            return Err(format!("there is no file {}", missing.map_or("", |(name, _)| name)));
        }
        Ok(())
    }

    /// The first inconsistency of the properties.
    fn check_properties(&self) -> Result<(), String> {
        let columns = self.properties.iter().map(|property| (&property.name, property.property_type, property.since));
        let of_edges = self.edge_properties.iter();
        let of_edges = of_edges.map(|property| (&property.name, property.property_type, property.since));
        for properties in [columns.collect::<Vec<_>>(), of_edges.collect()] {
            PropertySchema::new(properties.iter().map(|&(name, property_type, _)| (name.clone(), property_type)))
                .map_err(|error| error.to_string())?;
            if let Some((.., since)) = properties.iter().find(|(.., since)| *since >= self.next_number) {
                return Err(format!("a property is of version {since}, which was not given yet"));
            }
        }
        let has_rows = self.next_row > 0 || !self.rows.is_empty() || !self.edge_properties.is_empty();
        let has_values = !self.edge_properties.is_empty();
        if has_rows && !self.created.options.has_rows() || has_values && !self.created.options.edge_properties {
            return Err("a graph without rows of edges has some".into());
        }
        if self.next_row > MAX_ROWS { Err(format!("{} rows of properties", self.next_row)) } else { Ok(()) }
    }

    /// The files that must exist: those of base, dictionary, deltas, columns, rows, indexes and preparations.
    pub fn needed_files(&self) -> HashMap<String, FileKind> {
        let columns = base_writer::columns(&self.created.options).into_iter();
        let base = columns.map(|kind| (names::base(self.base, base_writer::column_name(kind)), kind));
        let dictionary = self.dictionary.iter().map(|&part| (names::dictionary(part), FileKind::Dictionary));
        let deltas = self.chain.delta_refs().map(|delta| (names::delta(delta.file), FileKind::Delta));
        let columns = self.properties.iter().filter_map(|property| property.file);
        let columns = columns.map(|number| (names::column(number), FileKind::Column));
        let rows = self.rows.iter().map(|&part| (names::rows(part), FileKind::Rows));
        let indexes = self.properties.iter().filter_map(|property| property.index.as_ref());
        let indexes = indexes.flat_map(|index| &index.parts).map(|&part| (names::index(part), FileKind::Index));
        let preparations = self.preparations.iter();
        let preparations = preparations.map(|record| (names::preparation(record.file), FileKind::Preparation));
        let columns = columns.chain(indexes).chain(preparations);
        base.chain(dictionary).chain(deltas).chain(columns).chain(rows).collect()
    }

    /// Whether files or snapshots of an `older` manifest are missing in this one.
    pub fn lacks_some_of(&self, older: &Self) -> bool {
        let files: HashSet<&str> = self.files.iter().map(|file| &*file.name).collect();
        let snapshots: HashSet<u32> = self.chain.kept().map(|version| version.number).collect();
        older.files.iter().any(|file| !files.contains(&*file.name))
            || older.chain.kept().any(|version| !snapshots.contains(&version.number))
    }

    /// Bytes of all files.
    pub fn num_file_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.len).sum()
    }
}

/// Reads a count and this many values. Reserves no memory, because a damaged count could be huge.
fn list<'a, T>(decoder: &mut Decoder<'a>, mut decode: impl FnMut(&mut Decoder<'a>) -> Option<T>) -> Option<Vec<T>> {
    let mut values = Vec::new();
    for _ in 0..decoder.u32()? {
        values.push(decode(decoder)?);
    }
    Some(values)
}

impl FileRecord {
    fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let kind = FileKind::from_number(decoder.u32()?)?;
        let name = decoder.string().filter(|name| names::is_data(name))?;
        Some(Self { kind, name, len: decoder.u64()?, header_crc: decoder.u32()? })
    }
}

impl ChainVersion {
    fn encode(&self, body: &mut Encoder) {
        body.u32(self.number);
        body.u8(self.is_kept.into());
        body.u8(self.name.is_some().into());
        body.string(self.name.as_deref().unwrap_or_default());
        for number in [self.unix_time, self.vertex_bound, self.num_vertices, self.num_edges, self.num_arcs] {
            body.u64(number);
        }
        body.u64(self.num_added);
        body.u64(self.num_removed);
        body.u64(self.epoch);
        body.u64(self.next_row);
        body.u8(self.as_of.is_some().into());
        body.u64(self.as_of.unwrap_or_default().cast_unsigned());
        body.u8(self.delta.is_some().into());
        // Written in any case: the decoder reads these fields without a condition.
        let delta = self.delta.unwrap_or(DeltaRef { file: 0, index: 0 });
        body.u32(delta.file);
        body.u32(delta.index);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let (number, is_kept, has_name) = (decoder.u32()?, decoder.flag()?, decoder.flag()?);
        let name = Some(decoder.string()?).filter(|_| has_name);
        let (unix_time, vertex_bound, num_vertices) = (decoder.u64()?, decoder.u64()?, decoder.u64()?);
        let (num_edges, num_arcs) = (decoder.u64()?, decoder.u64()?);
        let (num_added, num_removed) = (decoder.u64()?, decoder.u64()?);
        let (epoch, next_row) = (decoder.u64()?, decoder.u64()?);
        let has_as_of = decoder.flag()?;
        let as_of = Some(decoder.u64()?.cast_signed()).filter(|_| has_as_of);
        let has_delta = decoder.flag()?;
        let delta = Some(DeltaRef { file: decoder.u32()?, index: decoder.u32()? }).filter(|_| has_delta);
        // A hidden version has no name, because `hide` takes it away.
        let fits = vertex_bound <= anden_base::MAX_VERTICES as u64 && (is_kept || !has_name);
        fits.then_some(Self {
            number,
            is_kept,
            name,
            unix_time,
            as_of,
            epoch,
            next_row,
            vertex_bound,
            num_vertices,
            num_edges,
            num_arcs,
            num_added,
            num_removed,
            delta,
        })
    }
}

#[cfg(test)]
mod tests {
    use anden_base::checksum::{crc32c, crc32c_append};

    use super::*;
    use crate::options::KeyScheme;
    use crate::property::{IndexKind, IndexRecord};
    use crate::sealed::CHECKED_HEAD_BYTES;
    use anden_graph::WeightType;
    use anden_graph::property::{ItemType, PropertyType};

    fn version(number: u32) -> ChainVersion {
        ChainVersion {
            number,
            is_kept: number != 3,
            name: (number == 2).then(|| "née".to_owned()),
            unix_time: 7,
            as_of: (number == 2).then_some(-1),
            epoch: u64::from(number) << 38,
            next_row: 0,
            vertex_bound: 8,
            num_vertices: 7,
            num_edges: 9,
            num_arcs: 9,
            num_added: 8,
            num_removed: if number == 1 { 0 } else { 7 },
            delta: (number > 1).then_some(DeltaRef { file: 5, index: number.saturating_sub(2) }),
        }
    }

    fn property(name: &str, file: Option<u32>) -> PropertyRecord {
        PropertyRecord { file, ..PropertyRecord::new(name, PropertyType::I64, 2) }
    }

    fn indexed(name: &str, parts: &[u32]) -> PropertyRecord {
        let index = IndexRecord { kind: IndexKind::Unique, parts: parts.to_vec() };
        PropertyRecord { index: Some(index), ..property(name, None) }
    }

    fn prepared(form: StoredForm, file: u32) -> PreparationRecord {
        PreparationRecord { key: StoredFormKey { form, parameter: 15 }, file, version: 1 }
    }

    fn options() -> GraphOptions {
        GraphOptions {
            weight_type: Some(WeightType::F32),
            keys: KeyScheme::String,
            in_edges: false,
            ..Default::default()
        }
    }

    fn manifest() -> Manifest {
        manifest_of(options())
    }

    fn manifest_of(options: GraphOptions) -> Manifest {
        let merged_deltas = vec![MergedDelta { from: 1, to: 3, delta: DeltaRef { file: 6, index: 0 } }];
        let mut manifest = Manifest {
            created: Created { id: DatabaseId([3; 16]), unix_time: 99, options },
            next_number: 5,
            next_file: 7,
            epoch: 1 << 40,
            bytes_loaded: 123,
            bytes_written: 456,
            retention: Retention::Days(7),
            keep_wal: 1 << 30,
            files: Vec::new(),
            base: 2,
            dictionary: vec![2, 4],
            properties: vec![property("size", Some(3)), indexed("name", &[1])],
            edge_properties: Vec::new(),
            next_row: 0,
            rows: Vec::new(),
            chain: Chain { versions: (1..=4).map(version).collect(), anchor: 1, merged_deltas },
            preparations: vec![prepared(StoredForm::Bins, 6)],
        };
        let mut needed: Vec<_> = manifest.needed_files().into_iter().collect();
        needed.sort_by(|a, b| a.0.cmp(&b.0));
        let record = |(name, kind)| FileRecord { kind, name, len: 5, header_crc: 6 };
        manifest.files = needed.into_iter().map(record).collect();
        manifest
    }

    /// A manifest of a graph with edge properties.
    fn with_rows() -> Manifest {
        let mut manifest = manifest_of(GraphOptions { edge_properties: true, ..options() });
        let edge = |name: &str| EdgeRecord::new(name, PropertyType::List(ItemType::Date), 1);
        (manifest.edge_properties, manifest.next_row, manifest.rows) = (vec![edge("on"), edge("until")], 9, vec![1, 6]);
        manifest.chain.versions[3].next_row = 9;
        for number in [1, 6] {
            manifest.files.push(FileRecord { kind: FileKind::Rows, name: names::rows(number), len: 5, header_crc: 6 });
        }
        manifest
    }

    fn decode(bytes: &[u8]) -> Result<Manifest> {
        Manifest::decode(bytes, "MANIFEST".as_ref())
    }

    #[test]
    fn a_manifest_comes_back() {
        let manifest = manifest();
        assert_eq!(decode(&manifest.encode()).unwrap(), manifest);
        let names: Vec<_> = manifest.files.iter().map(|file| &*file.name).collect();
        assert_eq!(
            names,
            [
                "base-000002-out",
                "base-000002-out-table",
                "base-000002-out-weights",
                "column-000003",
                "delta-000005",
                "delta-000006",
                "dict-000002",
                "dict-000004",
                "index-000001",
                "prepared-000006",
            ]
        );
        for retention in [Retention::All, Retention::Last(4), Retention::Named] {
            let manifest = Manifest { retention, ..manifest.clone() };
            assert_eq!(decode(&manifest.encode()).unwrap().retention, retention);
        }
    }

    #[test]
    fn damage_anywhere_is_refused() {
        let whole = manifest().encode();
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 4;
            assert!(decode(&bytes).is_err(), "byte {place}");
            assert!(decode(&whole[..place]).is_err(), "cut at {place}");
        }
        assert!(decode(&[&whole[..], &[0]].concat()).is_err(), "one byte more");
    }

    #[test]
    fn inconsistent_manifest_is_refused() {
        let refused = |expected: &str, change: fn(&mut Manifest)| {
            let mut manifest = manifest();
            change(&mut manifest);
            let error = decode(&manifest.encode()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        refused("belongs to nothing", |manifest| manifest.dictionary = vec![2]);
        refused("no file dict-000006", |manifest| manifest.dictionary = vec![2, 4, 6]);
        refused("belongs to nothing", |manifest| manifest.files.push(manifest.files[0].clone()));
        refused("belongs to nothing", |manifest| manifest.files[0].kind = FileKind::Delta);
        refused("belongs to nothing", |manifest| manifest.properties[0].file = None);
        refused("belongs to nothing", |manifest| manifest.properties[1].index = None);
        refused("no file index-000005", |manifest| manifest.properties[1] = indexed("name", &[1, 5]));
        refused("belongs to nothing", |manifest| manifest.preparations.clear());
        refused("no file prepared-000005", |manifest| manifest.preparations.push(prepared(StoredForm::InLists, 5)));
        refused("the form bins of 15 is stored twice", |manifest| {
            manifest.preparations.push(prepared(StoredForm::Bins, 6));
        });
        refused("two properties with the name 'size'", |manifest| manifest.properties[1].name = "size".into());
        refused("a property is of version 5", |manifest| manifest.properties[1].since = 5);
        refused("a number that was not given yet", |manifest| manifest.next_file = 6);
        refused("the epoch 4611686018427387905", |manifest| manifest.epoch = (1 << 62) + 1);
        refused("the newest version has the epoch 1099511627776", |manifest| manifest.epoch += 1);
        refused("version 3 cannot follow version 2", |manifest| manifest.chain.versions[1].epoch = 1 << 40);
        refused("version 4 cannot follow version 3", |manifest| manifest.chain.versions[2].next_row = 1);
        refused("the next file has number", |manifest| manifest.next_file = u32::MAX);
        refused("the next snapshot has number 4", |manifest| manifest.next_number = 4);
        refused("does not mean anything", |manifest| manifest.chain.versions[2].name = Some("hidden".into()));
        refused("does not mean anything", |manifest| manifest.chain.versions[3].vertex_bound = 1 << 33);
        refused("does not mean anything", |manifest| manifest.files[0].name = "../notes".into());
        refused("which does not exist", |manifest| manifest.chain.anchor = 9);
    }

    #[test]
    fn rows_of_edges_come_back() {
        let manifest = with_rows();
        assert_eq!(decode(&manifest.encode()).unwrap(), manifest);
        let without_weights = GraphOptions { weight_type: None, edge_properties: true, ..options() };
        let manifest = manifest_of(without_weights);
        assert_eq!(decode(&manifest.encode()).unwrap(), manifest);
        let refused = |expected: &str, change: fn(&mut Manifest)| {
            let mut manifest = with_rows();
            change(&mut manifest);
            let error = decode(&manifest.encode()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        refused("of edges has some", |manifest| manifest.created.options.edge_properties = false);
        refused("two properties with the name 'on'", |manifest| manifest.edge_properties[1].name = "on".into());
        refused("a property is of version 5", |manifest| manifest.edge_properties[1].since = 5);
        refused("belongs to nothing", |manifest| manifest.rows.truncate(1));
        refused("the next row 9, the database 1099511627776 and 10", |manifest| manifest.next_row = 10);
        refused("rows of properties", |manifest| {
            manifest.next_row = u64::MAX;
            manifest.chain.versions[3].next_row = u64::MAX;
        });
        refused("no file base-000002-out-rows", |manifest| {
            manifest.files.retain(|file| file.kind != FileKind::OutRows);
        });
    }

    #[test]
    fn another_version_is_named() {
        for version in [FORMAT_VERSION - 1, FORMAT_VERSION + 1] {
            let mut bytes = manifest().encode();
            bytes[4..8].copy_from_slice(&version.to_le_bytes());
            let crc = crc32c_append(crc32c(&bytes[..CHECKED_HEAD_BYTES]), &bytes[HEAD_BYTES..]);
            bytes[8..12].copy_from_slice(&crc.to_le_bytes());
            let error = decode(&bytes).unwrap_err();
            let is_named = |found: u32, supported: u32| (found, supported) == (version, FORMAT_VERSION);
            assert!(
                matches!(error, Error::OtherVersion { found, supported, .. } if is_named(found, supported)),
                "{error}"
            );
        }
        assert!(matches!(decode(b"ANDR..."), Err(Error::OtherVersion { found: 1, .. })));
    }
}
