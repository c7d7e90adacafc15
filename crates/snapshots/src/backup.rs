//! Backups of a store: the pinned files, and the list that makes a set of copied files a backup.
//!
//! Published files never change, so copying the files of one manifest copies one state, whatever a writer does
//! meanwhile. Prepared forms are left out: kernels make them anew.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::encoding::{Decoder, Encoder};
use crate::file::FileKind;
use crate::manifest::{FileRecord, Manifest};
use crate::options::{DatabaseId, Identity, now};
use crate::sealed::{HEAD_BYTES, seal, unseal};
use crate::store::{PublishedState, Store};
use crate::{Error, Result, names};

/// First bytes of a list.
const MAGIC: [u8; 4] = *b"ANDB";

/// Identifies one backup; an incremental backup names the one that it builds on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupId(pub [u8; 16]);

impl BackupId {
    /// A random id.
    pub fn random() -> Self {
        Self(Identity::random().id.0)
    }
}

impl fmt::Display for BackupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        DatabaseId(self.0).fmt(f)
    }
}

/// A file of a backup. Equal name, length and checksum mean equal bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupFile {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub len: u64,
    /// The checksum of the header of a data file, which covers the file, or of all bytes of a WAL segment.
    pub crc: u32,
}

impl From<&FileRecord> for BackupFile {
    fn from(record: &FileRecord) -> Self {
        Self { name: record.name.clone(), len: record.len, crc: record.header_crc }
    }
}

/// The manifest of a backed-up state, without prepared forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupManifest(pub(crate) Manifest);

impl BackupManifest {
    /// Id of the database, the history that the backup belongs to.
    pub fn id(&self) -> DatabaseId {
        self.0.created.id
    }

    /// Epoch of the last commit in the newest snapshot.
    pub fn epoch(&self) -> u64 {
        self.0.epoch
    }

    /// All data files of the state.
    pub fn files(&self) -> impl Iterator<Item = BackupFile> {
        self.0.files.iter().map(BackupFile::from)
    }
}

/// The list of a backup: written last, so that files without a list are no backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupList {
    /// Identity of this backup.
    pub id: BackupId,
    /// The backup that this one builds on; `None` for a full one.
    pub parent: Option<BackupId>,
    /// When it was made, in seconds since 1970.
    pub unix_time: u64,
    /// Epoch of the last commit in it.
    pub epoch: u64,
    /// The state of the snapshots.
    pub manifest: BackupManifest,
    /// Names of the data files that this backup holds. Its parents hold the rest.
    pub copied: Vec<String>,
    /// WAL segments with the commits between the newest snapshot and `epoch`, in order.
    pub log: Vec<BackupFile>,
}

impl BackupList {
    /// Name of the list in a backup.
    pub const NAME: &str = names::BACKUP;

    /// Begins the list of a backup of `manifest` that holds no file yet.
    pub fn new(manifest: BackupManifest, parent: Option<BackupId>) -> Self {
        let (epoch, unix_time) = (manifest.epoch(), now());
        Self { id: BackupId::random(), parent, unix_time, epoch, manifest, copied: Vec::new(), log: Vec::new() }
    }

    /// Whether a file of a backup may have this name.
    pub fn may_name(name: &str) -> bool {
        name == Self::NAME || names::is_data(name) || names::log_number(name).is_some()
    }

    /// The length of a file that this backup holds; `None` if it holds no such file.
    pub fn len_of(&self, name: &str) -> Option<u64> {
        let is_copied = self.copied.iter().any(|copied| copied == name);
        let data = self.manifest.0.files.iter().filter(|_| is_copied).map(|file| (&file.name, file.len));
        let all = data.chain(self.log.iter().map(|file| (&file.name, file.len)));
        all.into_iter().find(|(other, _)| *other == name).map(|(_, len)| len)
    }

    /// The bytes of the list.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Encoder::default();
        body.bytes(&self.id.0);
        body.u8(self.parent.is_some().into());
        body.bytes(&self.parent.map_or([0; 16], |parent| parent.0));
        body.u64(self.unix_time);
        body.u64(self.epoch);
        let manifest = self.manifest.0.encode();
        body.u64(manifest.len() as u64);
        body.bytes(&manifest);
        body.u32(self.copied.len() as u32);
        self.copied.iter().for_each(|name| body.string(name));
        body.u32(self.log.len() as u32);
        for BackupFile { name, len, crc } in &self.log {
            body.string(name);
            body.u64(*len);
            body.u32(*crc);
        }
        seal(MAGIC, &body)
    }

    /// Decodes the bytes of the list at `path`.
    ///
    /// # Errors
    /// The list is of another format version, or damaged.
    pub fn decode(bytes: &[u8], path: &Path) -> Result<Self> {
        let corrupt = |offset: usize, what: &str| Error::from(anden_base::Error::corrupt(path, offset as u64, what));
        let mut decoder = unseal(bytes, MAGIC, "list of a backup", path)?;
        let list = Self::decode_body(&mut decoder, path).filter(|_| decoder.is_empty());
        let list = list.ok_or_else(|| corrupt(HEAD_BYTES, "the list does not mean anything"))??;
        match list.fault() {
            Some(what) => Err(corrupt(HEAD_BYTES, what)),
            None => Ok(list),
        }
    }

    fn decode_body(decoder: &mut Decoder<'_>, path: &Path) -> Option<Result<Self>> {
        let id = BackupId(decoder.array()?);
        let (has_parent, parent) = (decoder.flag()?, BackupId(decoder.array()?));
        let (unix_time, epoch) = (decoder.u64()?, decoder.u64()?);
        let len = usize::try_from(decoder.u64()?).ok()?;
        let manifest = decoder.bytes(len)?;
        let mut copied = Vec::new();
        for _ in 0..decoder.u32()? {
            copied.push(decoder.string()?);
        }
        let mut log = Vec::new();
        for _ in 0..decoder.u32()? {
            log.push(BackupFile { name: decoder.string()?, len: decoder.u64()?, crc: decoder.u32()? });
        }
        let parent = has_parent.then_some(parent);
        let list = |manifest| {
            let manifest = BackupManifest(manifest);
            Self { id, parent, unix_time, epoch, manifest, copied, log }
        };
        Some(Manifest::decode(manifest, path).map(list))
    }

    /// The first inconsistency.
    fn fault(&self) -> Option<&'static str> {
        let is_file = |name: &String| self.manifest.0.files.iter().any(|file| file.name == *name);
        let numbers = self.log.iter().map(|file| names::log_number(&file.name));
        let faults = [
            (!self.copied.iter().all(is_file), "the list has a file that the manifest does not name"),
            (!self.manifest.0.preparations.is_empty(), "the backup has prepared forms"),
            (!numbers.eq((1..).take(self.log.len()).map(Some)), "the WAL segments are not numbered from 1"),
            (self.epoch < self.manifest.epoch(), "the epoch is before that of the newest snapshot"),
        ];
        faults.iter().find(|(is_fault, _)| *is_fault).map(|(_, what)| *what)
    }
}

/// The files of a store at one moment. They stay readable while this value lives, also when a merge or a drop removes
/// them; their space is freed after that.
#[derive(Debug)]
pub struct PinnedFiles {
    state: Arc<PublishedState>,
    manifest: BackupManifest,
}

impl Store {
    /// Pins the files of the current state. A read-only handle looks for a newer state of the writer first, and goes on
    /// showing its own.
    ///
    /// # Errors
    /// A read-only handle: as [`refresh`](Self::refresh).
    pub fn pin_files(&self) -> Result<PinnedFiles> {
        let state = self.newest_state()?;
        let mut manifest = state.manifest.clone();
        manifest.preparations.clear();
        manifest.files.retain(|file| file.kind != FileKind::Preparation);
        Ok(PinnedFiles { state, manifest: BackupManifest(manifest) })
    }
}

impl PinnedFiles {
    /// The pinned state.
    pub fn manifest(&self) -> &BackupManifest {
        &self.manifest
    }

    /// Hands over the bytes of a data file part by part, each verified before.
    ///
    /// # Errors
    /// The first fault of the file; an error of `take`.
    pub fn copy<E: From<Error>>(&self, name: &str, take: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let files: &HashMap<_, _> = &self.state.files;
        let file = files.get(name).ok_or_else(|| Error::Input(format!("no file {name:?} is pinned")))?;
        let mut taken = Ok(());
        let copied = file.copy(&mut |part| {
            taken = take(part);
            // The error itself may be of another type; this one only ends the copy.
            if taken.is_ok() { Ok(()) } else { Err(anden_base::Error::Cancelled.into()) }
        });
        taken?;
        Ok(copied?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DictionaryKeys, GraphOptions};
    use anden_base::storage::MemoryStorage;

    fn list() -> BackupList {
        let builder = Store::create(Arc::new(MemoryStorage::default()), "db".as_ref(), GraphOptions::default());
        let builder = builder.unwrap();
        let keys = DictionaryKeys::Integers { by_id: &[], sorted: None };
        let (dictionary, base) = (builder.write_dictionary(keys).unwrap(), builder.base_writer(0).unwrap());
        let store = builder.publish(base.finish().unwrap(), dictionary, 0, None).unwrap();
        let mut list = BackupList::new(store.pin_files().unwrap().manifest().clone(), Some(BackupId([5; 16])));
        list.copied = list.manifest.files().map(|file| file.name).collect();
        list.log.push(BackupFile { name: names::log(1), len: 64, crc: 9 });
        list
    }

    #[test]
    fn a_list_comes_back_and_damage_is_refused() {
        let list = list();
        let whole = list.encode();
        assert_eq!(BackupList::decode(&whole, "BACKUP".as_ref()).unwrap(), list);
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 4;
            assert!(BackupList::decode(&bytes, "BACKUP".as_ref()).is_err(), "byte {place}");
            assert!(BackupList::decode(&whole[..place], "BACKUP".as_ref()).is_err(), "cut at {place}");
        }
    }

    #[test]
    fn inconsistent_list_is_refused() {
        let refused = |expected: &str, change: fn(&mut BackupList)| {
            let mut list = list();
            change(&mut list);
            let error = BackupList::decode(&list.encode(), "BACKUP".as_ref()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        refused("the manifest does not name", |list| list.copied.push("../notes".into()));
        refused("not numbered from 1", |list| list.log[0].name = "../wal-000001".into());
        refused("not numbered from 1", |list| list.log[0].name = names::log(2));
        refused("the epoch is before", |list| {
            list.manifest.0.epoch = 7;
            list.manifest.0.chain.versions.iter_mut().for_each(|version| version.epoch = 7);
        });
    }
}
