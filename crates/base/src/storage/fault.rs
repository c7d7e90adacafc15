//! A disk in memory that fails, crashes and forgets on demand.
//!
//! Every call that changes something is numbered from 0. A [`FaultPlan`] says at which call the
//! power goes or an error is returned. [`FaultStorage::after_crash`] then gives one of the disks
//! that a crash may leave behind: what was synced is there; each unsynced write and each unsynced
//! change of a directory is there, torn at a 512-byte border, or not, as a seed decides. After a sync that failed the
//! running system goes on seeing what was written, and no later sync writes it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use super::{FileIdentity, FileStamp, HeldFile, Storage, StorageFile, StorageLock};
use crate::mapped::FileBytes;
use crate::{Error, Result};

/// The unit that a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

/// What goes wrong, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultPlan {
    /// Nothing.
    #[default]
    Never,
    /// The power goes at this call: it and every later call fail.
    CrashAt(u64),
    /// This one call fails with an error of this kind; a write is then half done.
    FailAt(u64, io::ErrorKind),
    /// The first of these calls fails, and the power goes at the second.
    FailThenCrash(u64, u64),
    /// The next call on a file whose name has this in it fails so, whichever of several threads makes it.
    FailNext(&'static str, io::ErrorKind),
    /// This call, where it is a write, says that it succeeded; its bytes went to a sector of some file, which depends
    /// on the second number.
    MisdirectAt(u64, u64),
}

/// A disk in memory; clones share it.
#[derive(Clone, Debug, Default)]
pub struct FaultStorage {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    plan: FaultPlan,
    num_calls: u64,
    crashed: bool,
    files: Vec<Content>,
    /// What the running system sees.
    names: BTreeMap<PathBuf, Entry>,
    /// What is certain to be there after a crash.
    synced_names: BTreeMap<PathBuf, Entry>,
    /// Changes of directories since they were synced, in order.
    unsynced: Vec<(PathBuf, NameChange)>,
    locks: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Dir,
    /// An index into `State::files`.
    File(usize),
}

#[derive(Clone, Debug)]
enum NameChange {
    Link(PathBuf, Entry),
    Unlink(PathBuf),
    Rename(PathBuf, PathBuf, Entry),
}

#[derive(Clone, Debug, Default)]
struct Content {
    now: Vec<u8>,
    synced: Vec<u8>,
    unsynced: Vec<Change>,
    num_changes: u64,
}

#[derive(Clone, Debug)]
enum Change {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

impl FaultStorage {
    /// An empty disk that does what `plan` says.
    pub fn new(plan: FaultPlan) -> Self {
        let storage = Self::default();
        storage.state().plan = plan;
        storage
    }

    /// Changes the plan; calls go on being counted.
    pub fn set_plan(&self, plan: FaultPlan) {
        self.state().plan = plan;
    }

    /// The calls so far that change something.
    pub fn num_calls(&self) -> u64 {
        self.state().num_calls
    }

    /// One of the disks that a power cut at this moment may leave; the same for the same seed.
    pub fn after_crash(&self, seed: u64) -> Self {
        let state = self.state();
        let mut random = Random(seed);
        let mut names = state.synced_names.clone();
        // A file system with a journal keeps a prefix of a directory's changes; others keep any of them.
        let has_journal = random.one_in(2);
        let mut cut_dirs: Vec<&Path> = Vec::new();
        for (dir, change) in &state.unsynced {
            if cut_dirs.contains(&dir.as_path()) {
                continue;
            }
            if !random.one_in(3) {
                change.apply(&mut names);
            } else if has_journal {
                cut_dirs.push(dir);
            }
        }
        // What is in a directory that is not there cannot be reached.
        let is_there = |dir: &Path| dir.as_os_str().is_empty() || names.get(dir) == Some(&Entry::Dir);
        let lost: Vec<PathBuf> = names.keys().filter(|name| !name.ancestors().skip(1).all(is_there)).cloned().collect();
        names.retain(|name, _| !lost.contains(name));
        let files = state.files.iter().map(|file| file.after_crash(&mut random)).collect();
        let state = State { files, synced_names: names.clone(), names, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// The bytes of a file, to be damaged by a test; `None` where there is none.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        let id = state.file_id(path).ok()?;
        Some(state.files[id].now.clone())
    }

    /// Replaces the bytes of a file, or makes it, durable at once and outside any plan.
    pub fn set_contents(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        let id = state.files.len();
        state.files.push(Content::durable(bytes.to_vec()));
        state.names.insert(path.to_owned(), Entry::File(id));
        state.synced_names.insert(path.to_owned(), Entry::File(id));
    }

    /// A separate disk with the same files, all durable, and no plan.
    pub fn duplicate(&self) -> Self {
        let state = self.state();
        let files = state.files.iter().map(|file| Content::durable(file.now.clone())).collect();
        let copy = State { files, names: state.names.clone(), synced_names: state.names.clone(), ..State::default() };
        Self { state: Arc::new(Mutex::new(copy)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn file(&self, id: usize, path: &Path) -> Box<dyn StorageFile> {
        Box::new(FaultFile { storage: self.clone(), id, path: path.to_owned() })
    }
}

impl State {
    /// Counts a call that changes something and lets it fail as planned.
    fn call(&mut self, operation: &'static str, path: &Path) -> Result<()> {
        let call = self.num_calls;
        self.num_calls += 1;
        match self.plan {
            FaultPlan::CrashAt(at) if call >= at => self.crashed = true,
            FaultPlan::FailThenCrash(at, _) if call == at => {
                return Err(Error::io(operation, path, io::ErrorKind::Other.into()));
            }
            FaultPlan::FailThenCrash(_, at) if call >= at => self.crashed = true,
            FaultPlan::FailAt(at, kind) if call == at => return Err(Error::io(operation, path, kind.into())),
            FaultPlan::FailNext(name, kind) if path.to_string_lossy().contains(name) => {
                self.plan = FaultPlan::Never;
                return Err(Error::io(operation, path, kind.into()));
            }
            _ => {}
        }
        self.alive(operation, path)
    }

    /// Writes what is meant for this place of the file `id` to a sector of some file; what was meant to be overwritten
    /// stays, and behind the end are zeros.
    fn misdirect(&mut self, id: usize, offset: usize, bytes: &[u8], random: &mut Random) {
        let num_bytes = self.files[id].now.len().max(offset + bytes.len());
        self.files[id].change(Change::SetLen(num_bytes));
        let other = random.next() as usize % self.files.len();
        let other = &mut self.files[other];
        let num_sectors = other.now.len().div_ceil(SECTOR_BYTES).max(1);
        let elsewhere = random.next() as usize % num_sectors * SECTOR_BYTES;
        // No file becomes longer by what is not meant for it.
        let room = other.now.len().saturating_sub(elsewhere);
        other.change(Change::Write(elsewhere, bytes[..room.min(bytes.len())].to_vec()));
    }

    fn alive(&self, operation: &'static str, path: &Path) -> Result<()> {
        if self.crashed {
            return Err(Error::io(operation, path, io::Error::other("simulated power cut")));
        }
        Ok(())
    }

    fn change_names(&mut self, change: NameChange) {
        let dir = change.path().parent().unwrap_or(Path::new("")).to_owned();
        change.apply(&mut self.names);
        self.unsynced.push((dir, change));
    }

    fn file_id(&self, path: &Path) -> io::Result<usize> {
        match self.names.get(path) {
            Some(Entry::File(id)) => Ok(*id),
            Some(Entry::Dir) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn require_dir(&self, path: &Path) -> io::Result<()> {
        let is_top = path.parent().is_none_or(|p| p.as_os_str().is_empty() && path.as_os_str().is_empty());
        match self.names.get(path) {
            _ if is_top => Ok(()),
            Some(Entry::Dir) => Ok(()),
            Some(Entry::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl NameChange {
    fn path(&self) -> &Path {
        match self {
            Self::Link(path, _) | Self::Unlink(path) | Self::Rename(path, ..) => path,
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, Entry>) {
        match self {
            Self::Link(path, entry) => {
                names.insert(path.clone(), *entry);
            }
            Self::Unlink(path) => {
                names.remove(path);
            }
            Self::Rename(from, to, entry) => {
                names.remove(from);
                names.insert(to.clone(), *entry);
            }
        }
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::SetLen(len) => bytes.resize(*len, 0),
            Self::Write(offset, data) => write_at(bytes, *offset, data),
        }
    }
}

impl Content {
    fn durable(bytes: Vec<u8>) -> Self {
        Self { now: bytes.clone(), synced: bytes, ..Self::default() }
    }

    /// Seen at once, and durable after a sync.
    fn change(&mut self, change: Change) {
        change.apply(&mut self.now);
        self.unsynced.push(change);
        self.num_changes += 1;
    }

    /// A sync fails: of what it was to write, a part is durable, and no later sync writes the rest.
    fn fail_sync(&mut self, random: &mut Random) {
        self.synced = self.after_crash(random).synced;
        self.unsynced.clear();
    }

    fn after_crash(&self, random: &mut Random) -> Self {
        let mut bytes = self.synced.clone();
        for change in &self.unsynced {
            match change {
                Change::SetLen(len) if !random.one_in(3) => bytes.resize(*len, 0),
                Change::SetLen(_) => {}
                Change::Write(offset, data) => write_sectors(&mut bytes, *offset, data, random),
            }
        }
        Self::durable(bytes)
    }
}

/// Writes those sectors of `data` that reach the disk: all, none, or some of them.
fn write_sectors(bytes: &mut Vec<u8>, offset: usize, data: &[u8], random: &mut Random) {
    let fate = random.next() % 4;
    let mut start = 0;
    while start < data.len() {
        let end = data.len().min(((offset + start) / SECTOR_BYTES + 1) * SECTOR_BYTES - offset);
        if fate == 0 || (fate > 1 && !random.one_in(2)) {
            write_at(bytes, offset + start, &data[start..end]);
        }
        start = end;
    }
}

fn write_at(bytes: &mut Vec<u8>, offset: usize, data: &[u8]) {
    let end = offset + data.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(data);
}

/// Splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

impl Storage for FaultStorage {
    fn create_dir(&self, path: &Path) -> Result<()> {
        let mut state = self.state();
        state.call("create directory", path)?;
        if state.names.contains_key(path) {
            return Err(Error::io("create directory", path, io::ErrorKind::AlreadyExists.into()));
        }
        state.change_names(NameChange::Link(path.to_owned(), Entry::Dir));
        Ok(())
    }

    /// The paths of this disk lead where they lead: no directory is ever renamed.
    fn open_dir(&self, path: &Path) -> Result<Arc<dyn Storage>> {
        let state = self.state();
        state.alive("open directory", path)?;
        state.require_dir(path).map_err(|e| Error::io("open directory", path, e))?;
        Ok(Arc::new(self.clone()))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn StorageFile>> {
        let mut state = self.state();
        state.call("create", path)?;
        if state.names.contains_key(path) {
            return Err(Error::io("create", path, io::ErrorKind::AlreadyExists.into()));
        }
        state.require_dir(path.parent().unwrap_or(Path::new(""))).map_err(|e| Error::io("create", path, e))?;
        let id = state.files.len();
        state.files.push(Content::default());
        state.change_names(NameChange::Link(path.to_owned(), Entry::File(id)));
        Ok(self.file(id, path))
    }

    fn open_write(&self, path: &Path) -> Result<Box<dyn StorageFile>> {
        let state = self.state();
        state.alive("open for writing", path)?;
        let id = state.file_id(path).map_err(|e| Error::io("open for writing", path, e))?;
        Ok(self.file(id, path))
    }

    fn open_read(&self, path: &Path) -> Result<Box<dyn HeldFile>> {
        let state = self.state();
        state.alive("open", path)?;
        let id = state.file_id(path).map_err(|e| Error::io("open", path, e))?;
        Ok(Box::new(FaultFile { storage: self.clone(), id, path: path.to_owned() }))
    }

    fn read(&self, path: &Path) -> Result<FileBytes> {
        Ok(FileBytes::copied(&self.read_copy(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut state = self.state();
        state.call("rename", from)?;
        let id = state.file_id(from).map_err(|e| Error::io("rename", from, e))?;
        state.change_names(NameChange::Rename(from.to_owned(), to.to_owned(), Entry::File(id)));
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        let mut state = self.state();
        state.call("remove", path)?;
        state.file_id(path).map_err(|e| Error::io("remove", path, e))?;
        state.change_names(NameChange::Unlink(path.to_owned()));
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let mut state = self.state();
        state.call("remove directory", path)?;
        state.require_dir(path).map_err(|e| Error::io("remove directory", path, e))?;
        if state.names.keys().any(|name| name.parent() == Some(path)) {
            return Err(Error::io("remove directory", path, io::ErrorKind::DirectoryNotEmpty.into()));
        }
        state.change_names(NameChange::Unlink(path.to_owned()));
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let mut state = self.state();
        state.call("sync directory", path)?;
        let all = std::mem::take(&mut state.unsynced);
        for (dir, change) in all {
            if dir == path {
                change.apply(&mut state.synced_names);
            } else {
                state.unsynced.push((dir, change));
            }
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        let state = self.state();
        state.alive("list", path)?;
        state.require_dir(path).map_err(|e| Error::io("list", path, e))?;
        let children = state.names.keys().filter(|name| name.parent() == Some(path));
        Ok(children.filter_map(|name| Some(name.file_name()?.to_string_lossy().into_owned())).collect())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let state = self.state();
        state.alive("look for", path)?;
        Ok(state.names.contains_key(path))
    }

    fn stamp(&self, path: &Path) -> Result<Option<FileStamp>> {
        let state = self.state();
        state.alive("look at", path)?;
        let id = match state.file_id(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            id => id.map_err(|e| Error::io("look at", path, e))?,
        };
        let Content { now, num_changes, .. } = &state.files[id];
        Ok(Some(FileStamp { identity: identity(id), mark: [now.len() as u64, *num_changes, 0, 0, 0] }))
    }

    fn lock(&self, path: &Path) -> Result<StorageLock> {
        let mut state = self.state();
        state.call("lock", path)?;
        if state.locks.iter().any(|held| held == path) {
            return Err(Error::Locked { path: path.to_owned(), holder: None });
        }
        if !state.names.contains_key(path) {
            let id = state.files.len();
            state.files.push(Content::default());
            state.change_names(NameChange::Link(path.to_owned(), Entry::File(id)));
        }
        let id = state.file_id(path).map_err(|e| Error::io("lock", path, e))?;
        state.locks.push(path.to_owned());
        let held = FaultLock { storage: self.clone(), path: path.to_owned() };
        Ok(StorageLock { identity: identity(id), _held: Box::new(held) })
    }
}

fn identity(id: usize) -> FileIdentity {
    FileIdentity { device: 0, inode: id as u64 }
}

struct FaultLock {
    storage: FaultStorage,
    path: PathBuf,
}

impl Drop for FaultLock {
    fn drop(&mut self) {
        self.storage.state().locks.retain(|held| held != &self.path);
    }
}

#[derive(Debug)]
struct FaultFile {
    storage: FaultStorage,
    id: usize,
    path: PathBuf,
}

impl HeldFile for FaultFile {
    fn len(&self) -> Result<u64> {
        let state = self.storage.state();
        state.alive("look at", &self.path)?;
        Ok(state.files[self.id].now.len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let bytes = self.read_all()?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        match bytes.get(start..).and_then(|rest| rest.get(..into.len())) {
            Some(found) => into.copy_from_slice(found),
            None => return Err(Error::io("read", &self.path, io::ErrorKind::UnexpectedEof.into())),
        }
        Ok(())
    }

    fn read_all(&self) -> Result<Vec<u8>> {
        let state = self.storage.state();
        state.alive("read", &self.path)?;
        Ok(state.files[self.id].now.clone())
    }
}

impl StorageFile for FaultFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut state = self.storage.state();
        let answer = state.call("write", &self.path);
        let written = match &answer {
            Ok(()) => bytes,
            // A call that the power cut or an error ends may have written a part.
            Err(_) => &bytes[..bytes.len() / 2],
        };
        let offset = usize::try_from(offset).map_err(|e| Error::io("write", &self.path, io::Error::other(e)))?;
        if let FaultPlan::MisdirectAt(at, seed) = state.plan
            && at + 1 == state.num_calls
        {
            state.misdirect(self.id, offset, written, &mut Random(seed));
        } else {
            state.files[self.id].change(Change::Write(offset, written.to_vec()));
        }
        answer
    }

    fn sync(&self) -> Result<()> {
        let mut state = self.storage.state();
        if let Err(error) = state.call("sync", &self.path) {
            if !state.crashed {
                let mut random = Random(state.num_calls);
                state.files[self.id].fail_sync(&mut random);
            }
            return Err(error);
        }
        let Content { synced, unsynced, .. } = &mut state.files[self.id];
        for change in unsynced.drain(..) {
            change.apply(synced);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let mut state = self.storage.state();
        state.call("set the length of", &self.path)?;
        let len = usize::try_from(len).map_err(|e| Error::io("set the length of", &self.path, io::Error::other(e)))?;
        state.files[self.id].change(Change::SetLen(len));
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        HeldFile::len(self)
    }

    fn identity(&self) -> Result<FileIdentity> {
        Ok(identity(self.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir_with_file(disk: &FaultStorage, content: &[u8], sync: bool) -> Result<()> {
        disk.create_dir("db".as_ref())?;
        disk.sync_dir("".as_ref())?;
        let file = disk.create("db/f".as_ref())?;
        file.write_at(0, content)?;
        if sync {
            file.sync()?;
            disk.sync_dir("db".as_ref())?;
        }
        Ok(())
    }

    #[test]
    fn what_is_synced_survives_every_crash() {
        let disk = FaultStorage::new(FaultPlan::Never);
        dir_with_file(&disk, b"kept", true).unwrap();
        for seed in 0..100 {
            let after = disk.after_crash(seed);
            assert_eq!(after.contents("db/f".as_ref()).unwrap(), b"kept", "seed {seed}");
        }
    }

    #[test]
    fn what_is_not_synced_may_be_lost_torn_or_kept() {
        let disk = FaultStorage::new(FaultPlan::Never);
        let content = vec![1; 2 * SECTOR_BYTES];
        dir_with_file(&disk, &content, false).unwrap();
        let mut outcomes = std::collections::BTreeSet::new();
        for seed in 0..200 {
            outcomes.insert(disk.after_crash(seed).contents("db/f".as_ref()));
        }
        assert!(outcomes.contains(&None), "no name");
        assert!(outcomes.contains(&Some(Vec::new())), "a name without bytes");
        assert!(outcomes.contains(&Some(content.clone())), "everything");
        assert!(outcomes.contains(&Some(content[..SECTOR_BYTES].to_vec())), "torn");
    }

    #[test]
    fn what_a_failed_sync_did_not_write_no_later_one_does() {
        let content = vec![1; 4 * SECTOR_BYTES];
        let mut num_lost = 0;
        for calls_before in 0..20 {
            let disk = FaultStorage::default();
            dir_with_file(&disk, b"", true).unwrap();
            let file = disk.open_write("db/f".as_ref()).unwrap();
            (0..calls_before).for_each(|_| file.sync().unwrap());
            file.write_at(0, &content).unwrap();
            disk.set_plan(FaultPlan::FailAt(disk.num_calls(), io::ErrorKind::Other));
            file.sync().unwrap_err();
            file.sync().unwrap();
            assert_eq!(disk.contents("db/f".as_ref()), Some(content.clone()), "the running system sees it");
            num_lost += u32::from(disk.after_crash(0).contents("db/f".as_ref()) != Some(content.clone()));
            file.write_at(0, &content).unwrap();
            file.sync().unwrap();
            assert_eq!(disk.after_crash(0).contents("db/f".as_ref()), Some(content.clone()));
        }
        assert!(num_lost > 5, "{num_lost}");
    }

    #[test]
    fn a_crash_ends_every_later_call() {
        let counted = FaultStorage::new(FaultPlan::Never);
        dir_with_file(&counted, b"abcd", true).unwrap();
        for at in 0..counted.num_calls() {
            let disk = FaultStorage::new(FaultPlan::CrashAt(at));
            assert!(dir_with_file(&disk, b"abcd", true).is_err(), "call {at}");
            assert!(disk.exists("db".as_ref()).is_err());
        }
    }

    #[test]
    fn a_misdirected_write_lands_elsewhere_and_is_answered() {
        let mut num_elsewhere = 0;
        for seed in 0..20 {
            let disk = FaultStorage::default();
            dir_with_file(&disk, &[1; 3 * SECTOR_BYTES], true).unwrap();
            let file = disk.open_write("db/f".as_ref()).unwrap();
            disk.set_plan(FaultPlan::MisdirectAt(disk.num_calls(), seed));
            file.write_at(0, &[2; SECTOR_BYTES]).unwrap();
            file.write_at(3 * SECTOR_BYTES as u64, &[3]).unwrap();
            file.sync().unwrap();
            let found = disk.after_crash(0).contents("db/f".as_ref()).unwrap();
            assert_eq!(found.len(), 3 * SECTOR_BYTES + 1);
            assert_eq!(found.iter().filter(|&&byte| byte == 2).count(), SECTOR_BYTES, "seed {seed}");
            assert_eq!(found.last(), Some(&3), "what follows is where it should be");
            num_elsewhere += u64::from(found[0] == 1);
        }
        assert!(num_elsewhere > 5, "{num_elsewhere}");
    }

    #[test]
    fn one_error_leaves_the_disk_running() {
        let disk = FaultStorage::new(FaultPlan::FailAt(3, io::ErrorKind::StorageFull));
        let error = dir_with_file(&disk, b"abcd", true).unwrap_err();
        assert_eq!(error.io_kind(), Some(io::ErrorKind::StorageFull));
        assert_eq!(disk.contents("db/f".as_ref()).unwrap(), b"ab");
        let mut byte = [0];
        disk.read_at("db/f".as_ref(), 1, &mut byte).unwrap();
        assert_eq!(&byte, b"b");
        assert!(disk.read_at("db/f".as_ref(), 2, &mut byte).is_err());
        assert_eq!(disk.list("db".as_ref()).unwrap(), ["f"]);
        let copy = disk.duplicate();
        copy.set_contents("db/g".as_ref(), b"x");
        assert_eq!((copy.list("db".as_ref()).unwrap().len(), disk.list("db".as_ref()).unwrap().len()), (2, 1));
    }
}
