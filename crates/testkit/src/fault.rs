//! A disk in memory that fails, crashes and forgets on demand.
//!
//! Each call that changes files or names is numbered from 0. A [`FaultPlan`] says at which call the power fails or an
//! error is returned. [`FaultStorage::after_crash`] then returns one of the disks that a crash may leave:
//! - Synced data is present.
//! - Each unsynced write is present, lost, or present in some of its 512-byte sectors, as a seed decides.
//! - Each unsynced change of a directory is present or lost.
//!
//! After a failed sync, the running system still sees the written data, and no later sync writes it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use anden_base::mapped::FileBytes;
use anden_base::storage::{
    ByteLockTable, ByteLocks, FileIdentity, FileStamp, HeldFile, LockHolder, Storage, StorageFile, StorageLock,
};
use anden_base::{Error, Result};

use crate::Random;

/// Unit that a disk writes as a whole or not at all.
const SECTOR_BYTES: usize = 512;

/// The faults, and the calls at which they occur.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultPlan {
    /// No fault.
    #[default]
    Never,
    /// The power fails at this call: this and all later calls fail.
    CrashAt(u64),
    /// This call fails with an error of this kind. If it is a write, half of its bytes are written.
    FailAt(u64, io::ErrorKind),
    /// The first of these calls fails, and the power fails at the second.
    FailThenCrash(u64, u64),
    /// The next call fails whose file has this in its name, in whichever thread.
    FailNext(&'static str, io::ErrorKind),
    /// This call, if it is a write, reports success. Its bytes go to a sector of a file that the second number
    /// selects.
    MisdirectAt(u64, u64),
}

/// A disk in memory. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct FaultStorage {
    state: Arc<Mutex<FaultState>>,
}

#[derive(Debug, Default)]
struct FaultState {
    plan: FaultPlan,
    num_calls: u64,
    crashed: bool,
    /// Bytes that all files may have together; `None`: any number.
    capacity: Option<usize>,
    files: Vec<Content>,
    /// Names that the running system sees.
    names: BTreeMap<PathBuf, FaultEntry>,
    /// Names that certainly survive a crash.
    synced_names: BTreeMap<PathBuf, FaultEntry>,
    /// Changes of directories since their last sync, in order.
    unsynced: Vec<(PathBuf, NameChange)>,
    locks: Vec<PathBuf>,
    bytes: ByteLockTable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultEntry {
    Dir,
    /// Index in `FaultState::files`.
    File(usize),
}

#[derive(Clone, Debug)]
enum NameChange {
    Link(PathBuf, FaultEntry),
    Unlink(PathBuf),
    Rename(PathBuf, PathBuf, FaultEntry),
}

#[derive(Clone, Debug, Default)]
struct Content {
    now: Vec<u8>,
    synced: Vec<u8>,
    unsynced: Vec<FaultChange>,
    num_changes: u64,
}

#[derive(Clone, Debug)]
enum FaultChange {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

impl FaultStorage {
    /// Creates an empty disk with this plan.
    pub fn new(plan: FaultPlan) -> Self {
        let storage = Self::default();
        storage.state.lock().plan = plan;
        storage
    }

    /// Changes the plan. The count of calls continues.
    pub fn set_plan(&self, plan: FaultPlan) {
        self.state.lock().plan = plan;
    }

    /// Limits the bytes of all files together. A write that would exceed them fails as on a full disk, and writes
    /// nothing. `None`: no limit.
    pub fn set_capacity(&self, num_bytes: Option<usize>) {
        self.state.lock().capacity = num_bytes;
    }

    /// Bytes of all files together.
    pub fn num_bytes(&self) -> usize {
        self.state.lock().num_bytes()
    }

    /// Number of earlier calls that change files or names.
    pub fn num_calls(&self) -> u64 {
        self.state.lock().num_calls
    }

    /// One of the disks that a power cut now may leave. Equal seeds give equal disks.
    pub fn after_crash(&self, seed: u64) -> Self {
        let state = self.state.lock();
        let random = &mut Random::new(seed);
        let mut names = state.synced_names.clone();
        // A file system with a journal keeps a prefix of a directory's changes; others keep any of them.
        let has_journal = one_in(random, 2);
        let mut cut_dirs: Vec<&Path> = Vec::new();
        for (dir, change) in &state.unsynced {
            if cut_dirs.contains(&dir.as_path()) {
                continue;
            }
            // An undecided change is lost in one case of three: both outcomes must be frequent.
            if !one_in(random, 3) {
                change.apply(&mut names);
            } else if has_journal {
                cut_dirs.push(dir);
            }
        }
        // Files in a lost directory are unreachable.
        let is_there = |dir: &Path| dir.as_os_str().is_empty() || names.get(dir) == Some(&FaultEntry::Dir);
        let lost: Vec<PathBuf> = names.keys().filter(|name| !name.ancestors().skip(1).all(is_there)).cloned().collect();
        names.retain(|name, _| !lost.contains(name));
        let files = state.files.iter().map(|file| file.after_crash(random)).collect();
        let state = FaultState { files, synced_names: names.clone(), names, ..FaultState::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Bytes of a file, for a test to damage, or `None` without the file.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state.lock();
        let id = state.file_id(path).ok()?;
        Some(state.files[id].now.clone())
    }

    /// Replaces or creates a file, durable at once and outside any plan.
    pub fn set_contents(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state.lock();
        // A fresh file, so that open handles keep the old bytes, as after a restore from a copy.
        let id = state.files.len();
        state.files.push(Content::durable(bytes.to_vec()));
        state.names.insert(path.to_owned(), FaultEntry::File(id));
        state.synced_names.insert(path.to_owned(), FaultEntry::File(id));
    }

    /// A separate disk with copies of all files, all durable, and no plan.
    pub fn duplicate(&self) -> Self {
        let state = self.state.lock();
        // The names and the files of this moment, as the running system sees them.
        let files = state.files.iter().map(|file| Content::durable(file.now.clone())).collect();
        let copy = FaultState {
            files,
            names: state.names.clone(),
            synced_names: state.names.clone(),
            ..FaultState::default()
        };
        Self { state: Arc::new(Mutex::new(copy)) }
    }

    fn file(&self, id: usize, path: &Path) -> Box<dyn StorageFile> {
        // Handles hold the index: a rename does not change what they read.
        Box::new(FaultFile { storage: self.clone(), id, path: path.to_owned() })
    }
}

impl FaultState {
    /// Counts a call that changes files or names, and fails it as planned.
    fn call(&mut self, operation: &'static str, path: &Path) -> Result<()> {
        let call = self.num_calls;
        self.num_calls += 1;
        match self.plan {
            // Later calls fail too, because the flag stays set.
            FaultPlan::CrashAt(at) if call >= at => self.crashed = true,
            FaultPlan::FailThenCrash(at, _) if call == at => {
                return Err(Error::io(operation, path, io::ErrorKind::Other.into()));
            }
            FaultPlan::FailThenCrash(_, at) if call >= at => self.crashed = true,
            FaultPlan::FailAt(at, kind) if call == at => return Err(Error::io(operation, path, kind.into())),
            FaultPlan::FailNext(name, kind) if path.to_string_lossy().contains(name) => {
                // One fault only, so that the caller's clean-up can succeed.
                self.plan = FaultPlan::Never;
                return Err(Error::io(operation, path, kind.into()));
            }
            _ => {}
        }
        self.alive(operation, path)
    }

    /// Writes bytes for `offset` of file `id` to a sector of any file instead. The old bytes stay, and an extended
    /// file is filled with zeros.
    fn misdirect(&mut self, id: usize, offset: usize, bytes: &[u8], random: &mut Random) {
        // The caller believes the write, so the length must be as after it.
        let num_bytes = self.files[id].now.len().max(offset + bytes.len());
        self.files[id].change(FaultChange::SetLen(num_bytes));
        let other = random.next_u64() as usize % self.files.len();
        let other = &mut self.files[other];
        let num_sectors = other.now.len().div_ceil(SECTOR_BYTES).max(1);
        let elsewhere = random.next_u64() as usize % num_sectors * SECTOR_BYTES;
        // A misdirected write does not extend a file.
        let room = other.now.len().saturating_sub(elsewhere);
        other.change(FaultChange::Write(elsewhere, bytes[..room.min(bytes.len())].to_vec()));
    }

    fn alive(&self, operation: &'static str, path: &Path) -> Result<()> {
        if self.crashed {
            return Err(Error::io(operation, path, io::Error::other("simulated power cut")));
        }
        Ok(())
    }

    fn num_bytes(&self) -> usize {
        let files = self.names.values().filter_map(|entry| match entry {
            FaultEntry::File(id) => Some(self.files[*id].now.len()),
            FaultEntry::Dir => None,
        });
        files.sum()
    }

    /// Whether the disk has space for a file that a write extends to `end`.
    fn has_space(&self, id: usize, end: usize) -> bool {
        let growth = end.saturating_sub(self.files[id].now.len());
        self.capacity.is_none_or(|capacity| growth == 0 || self.num_bytes() + growth <= capacity)
    }

    fn change_names(&mut self, change: NameChange) {
        let dir = change.path().parent().unwrap_or(Path::new("")).to_owned();
        change.apply(&mut self.names);
        self.unsynced.push((dir, change));
    }

    fn file_id(&self, path: &Path) -> io::Result<usize> {
        match self.names.get(path) {
            Some(FaultEntry::File(id)) => Ok(*id),
            Some(FaultEntry::Dir) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn require_dir(&self, path: &Path) -> io::Result<()> {
        let is_top = path.parent().is_none_or(|p| p.as_os_str().is_empty() && path.as_os_str().is_empty());
        match self.names.get(path) {
            // The top of the disk always exists: no call creates it.
            _ if is_top => Ok(()),
            Some(FaultEntry::Dir) => Ok(()),
            Some(FaultEntry::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
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

    fn apply(&self, names: &mut BTreeMap<PathBuf, FaultEntry>) {
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

impl FaultChange {
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

    /// Visible at once, and durable after a sync.
    fn change(&mut self, change: FaultChange) {
        change.apply(&mut self.now);
        self.unsynced.push(change);
        self.num_changes += 1;
    }

    /// Fails a sync: a part of the data becomes durable, and no later sync writes the rest.
    fn fail_sync(&mut self, random: &mut Random) {
        self.synced = self.after_crash(random).synced;
        self.unsynced.clear();
    }

    fn after_crash(&self, random: &mut Random) -> Self {
        let mut bytes = self.synced.clone();
        for change in &self.unsynced {
            match change {
                FaultChange::SetLen(len) if !one_in(random, 3) => bytes.resize(*len, 0),
                // A lost change of the length keeps the old one, as a journal without it would.
                FaultChange::SetLen(_) => {}
                FaultChange::Write(offset, data) => write_sectors(&mut bytes, *offset, data, random),
            }
        }
        Self::durable(bytes)
    }
}

/// Writes the sectors of `data` that reach the disk: all, none, or some.
fn write_sectors(bytes: &mut Vec<u8>, offset: usize, data: &[u8], random: &mut Random) {
    // One draw for the whole write: all of it, none of it, or each sector by itself.
    let op = random.next_u64() % 4;
    let mut start = 0;
    while start < data.len() {
        let end = data.len().min(((offset + start) / SECTOR_BYTES + 1) * SECTOR_BYTES - offset);
        if op == 0 || (op > 1 && !one_in(random, 2)) {
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

/// True once in `n` calls.
fn one_in(random: &mut Random, n: u64) -> bool {
    random.next_u64().is_multiple_of(n)
}

impl Storage for FaultStorage {
    fn create_dir(&self, path: &Path) -> Result<()> {
        let mut state = self.state.lock();
        state.call("create directory", path)?;
        if state.names.contains_key(path) {
            return Err(Error::io("create directory", path, io::ErrorKind::AlreadyExists.into()));
        }
        state.change_names(NameChange::Link(path.to_owned(), FaultEntry::Dir));
        Ok(())
    }

    /// Directories of this disk are never renamed, so a path leads to one directory only.
    fn open_dir(&self, path: &Path) -> Result<Arc<dyn Storage>> {
        let state = self.state.lock();
        state.alive("open directory", path)?;
        state.require_dir(path).map_err(|e| Error::io("open directory", path, e))?;
        Ok(Arc::new(self.clone()))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn StorageFile>> {
        let mut state = self.state.lock();
        state.call("create", path)?;
        if state.names.contains_key(path) {
            return Err(Error::io("create", path, io::ErrorKind::AlreadyExists.into()));
        }
        state.require_dir(path.parent().unwrap_or(Path::new(""))).map_err(|e| Error::io("create", path, e))?;
        let id = state.files.len();
        state.files.push(Content::default());
        state.change_names(NameChange::Link(path.to_owned(), FaultEntry::File(id)));
        Ok(self.file(id, path))
    }

    fn open_write(&self, path: &Path) -> Result<Box<dyn StorageFile>> {
        let state = self.state.lock();
        // Opening changes nothing on the disk, so it is not counted.
        state.alive("open for writing", path)?;
        let id = state.file_id(path).map_err(|e| Error::io("open for writing", path, e))?;
        Ok(self.file(id, path))
    }

    fn open_read(&self, path: &Path) -> Result<Box<dyn HeldFile>> {
        let state = self.state.lock();
        state.alive("open", path)?;
        let id = state.file_id(path).map_err(|e| Error::io("open", path, e))?;
        Ok(Box::new(FaultFile { storage: self.clone(), id, path: path.to_owned() }))
    }

    fn read(&self, path: &Path) -> Result<FileBytes> {
        Ok(FileBytes::copied(&self.read_copy(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut state = self.state.lock();
        state.call("rename", from)?;
        let id = state.file_id(from).map_err(|e| Error::io("rename", from, e))?;
        state.change_names(NameChange::Rename(from.to_owned(), to.to_owned(), FaultEntry::File(id)));
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        let mut state = self.state.lock();
        state.call("remove", path)?;
        state.file_id(path).map_err(|e| Error::io("remove", path, e))?;
        state.change_names(NameChange::Unlink(path.to_owned()));
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let mut state = self.state.lock();
        state.call("remove directory", path)?;
        state.require_dir(path).map_err(|e| Error::io("remove directory", path, e))?;
        // A directory with files must stay, as on a real disk.
        if state.names.keys().any(|name| name.parent() == Some(path)) {
            return Err(Error::io("remove directory", path, io::ErrorKind::DirectoryNotEmpty.into()));
        }
        state.change_names(NameChange::Unlink(path.to_owned()));
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let mut state = self.state.lock();
        state.call("sync directory", path)?;
        let all = std::mem::take(&mut state.unsynced);
        for (dir, change) in all {
            // Other directories keep their changes: one sync makes one directory durable.
            if dir == path {
                change.apply(&mut state.synced_names);
            } else {
                state.unsynced.push((dir, change));
            }
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        let state = self.state.lock();
        state.alive("list", path)?;
        state.require_dir(path).map_err(|e| Error::io("list", path, e))?;
        let children = state.names.keys().filter(|name| name.parent() == Some(path));
        Ok(children.filter_map(|name| Some(name.file_name()?.to_string_lossy().into_owned())).collect())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let state = self.state.lock();
        state.alive("look for", path)?;
        Ok(state.names.contains_key(path))
    }

    fn stamp(&self, path: &Path) -> Result<Option<FileStamp>> {
        let state = self.state.lock();
        state.alive("look at", path)?;
        let id = match state.file_id(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            id => id.map_err(|e| Error::io("look at", path, e))?,
        };
        let Content { now, num_changes, .. } = &state.files[id];
        // The length alone would miss a change in place.
        Ok(Some(FileStamp::new(identity(id), [now.len() as u64, *num_changes, 0, 0, 0])))
    }

    fn lock(&self, path: &Path) -> Result<StorageLock> {
        let mut state = self.state.lock();
        state.call("lock", path)?;
        if state.locks.iter().any(|held| held == path) {
            return Err(Error::Locked { path: path.to_owned(), holder: LockHolder::this() });
        }
        // A lock is a file that the first caller creates, as on a real disk.
        if !state.names.contains_key(path) {
            let id = state.files.len();
            state.files.push(Content::default());
            state.change_names(NameChange::Link(path.to_owned(), FaultEntry::File(id)));
        }
        let id = state.file_id(path).map_err(|e| Error::io("lock", path, e))?;
        state.locks.push(path.to_owned());
        let held = FaultLock { storage: self.clone(), path: path.to_owned() };
        Ok(StorageLock::new(identity(id), Box::new(held)))
    }

    fn lock_holder(&self, path: &Path) -> Result<Option<LockHolder>> {
        let is_held = self.state.lock().locks.iter().any(|held| held == path);
        Ok(is_held.then(LockHolder::this))
    }

    fn share_byte(&self, path: &Path, offset: u64) -> Result<Option<ByteLocks>> {
        Ok(self.state.lock().bytes.share(path, offset))
    }

    fn take_bytes(&self, path: &Path, offsets: &[u64]) -> Result<(ByteLocks, Vec<u64>)> {
        Ok(self.state.lock().bytes.take(path, offsets))
    }

    fn byte_holders(&self, path: &Path, offsets: &[u64]) -> Result<Vec<(u64, LockHolder)>> {
        Ok(self.state.lock().bytes.holders(path, offsets))
    }
}

fn identity(id: usize) -> FileIdentity {
    FileIdentity::new(0, id as u64)
}

struct FaultLock {
    storage: FaultStorage,
    path: PathBuf,
}

impl Drop for FaultLock {
    fn drop(&mut self) {
        // Also after a power cut, as the end of a process frees its locks.
        self.storage.state.lock().locks.retain(|held| held != &self.path);
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
        let state = self.storage.state.lock();
        state.alive("look at", &self.path)?;
        Ok(state.files[self.id].now.len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        // Tests have small files, so a copy of the whole is cheap.
        let bytes = self.read_all()?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        match bytes.get(start..).and_then(|rest| rest.get(..into.len())) {
            Some(found) => into.copy_from_slice(found),
            None => return Err(Error::io("read", &self.path, io::ErrorKind::UnexpectedEof.into())),
        }
        Ok(())
    }

    fn read_all(&self) -> Result<Vec<u8>> {
        let state = self.storage.state.lock();
        state.alive("read", &self.path)?;
        Ok(state.files[self.id].now.clone())
    }
}

impl StorageFile for FaultFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut state = self.storage.state.lock();
        let was_crashed = state.crashed;
        let answer = state.call("write", &self.path);
        let written = match &answer {
            Ok(()) => bytes,
            // Nothing reaches a disk without power.
            Err(_) if was_crashed => return answer,
            // A call that a power cut or an error ends may have written a part.
            Err(_) => &bytes[..bytes.len() / 2],
        };
        let offset = usize::try_from(offset).map_err(|e| Error::io("write", &self.path, io::Error::other(e)))?;
        if !state.has_space(self.id, offset + written.len()) {
            return Err(Error::io("write", &self.path, io::ErrorKind::StorageFull.into()));
        }
        if let FaultPlan::MisdirectAt(at, seed) = state.plan
            // The count was advanced by `call`, so this call is the one before it.
            && at + 1 == state.num_calls
        {
            state.misdirect(self.id, offset, written, &mut Random::new(seed));
        } else {
            state.files[self.id].change(FaultChange::Write(offset, written.to_vec()));
        }
        answer
    }

    fn sync(&self) -> Result<()> {
        let mut state = self.storage.state.lock();
        if let Err(error) = state.call("sync", &self.path) {
            if !state.crashed {
                // Seeded by the call, so that a repeated run loses the same bytes.
                let mut random = Random::new(state.num_calls);
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
        let mut state = self.storage.state.lock();
        state.call("set the length of", &self.path)?;
        let len = usize::try_from(len).map_err(|e| Error::io("set the length of", &self.path, io::Error::other(e)))?;
        state.files[self.id].change(FaultChange::SetLen(len));
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
    fn synced_data_survives_every_crash() {
        let disk = FaultStorage::new(FaultPlan::Never);
        dir_with_file(&disk, b"kept", true).unwrap();
        for seed in 0..100 {
            let after = disk.after_crash(seed);
            assert_eq!(after.contents("db/f".as_ref()).unwrap(), b"kept", "seed {seed}");
        }
    }

    #[test]
    fn unsynced_data_may_be_lost_torn_or_kept() {
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
    fn later_sync_skips_bytes_of_failed_sync() {
        let content = vec![1; 4 * SECTOR_BYTES];
        let mut num_lost = 0;
        // Twenty counts of calls: the seed of a failed sync depends on them.
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
    fn full_disk_takes_what_fits() {
        let disk = FaultStorage::default();
        dir_with_file(&disk, &[1; 100], true).unwrap();
        disk.set_capacity(Some(150));
        let file = disk.create("db/g".as_ref()).unwrap();
        assert_eq!(file.write_at(0, &[2; 51]).unwrap_err().io_kind(), Some(io::ErrorKind::StorageFull));
        file.write_at(0, &[2; 50]).unwrap();
        file.write_at(0, &[3; 50]).unwrap();
        assert!(file.write_at(50, &[4]).is_err() && disk.num_bytes() == 150);
        disk.remove_file("db/f".as_ref()).unwrap();
        file.write_at(50, &[4]).unwrap();
        disk.set_capacity(None);
        file.write_at(51, &[4; 1000]).unwrap();
        assert_eq!(disk.num_bytes(), 1051);
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
