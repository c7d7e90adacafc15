//! The real disk.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

#[cfg(target_os = "linux")]
use rustix::fs::StatxFlags;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, Stat};

use super::byte_lock::{self, ByteLock};
use super::called::{is_small, read_called};
use super::{ByteLocks, FileIdentity, FileStamp, HeldFile, LockHolder, Storage, StorageFile, StorageLock};
use crate::mapped::FileBytes;
use crate::process::Birthplace;
use crate::{Error, Result};

/// A longer lock file is not one of ours: a process number takes fewer bytes.
const MAX_LOCK_BYTES: u64 = 32;

/// The byte of a lock file that its holder also locks, so that others can ask for it.
const HELD_BYTE: u64 = 0;

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskStorage;

impl Storage for DiskStorage {
    fn create_dir(&self, path: &Path) -> Result<()> {
        std::fs::create_dir(path).map_err(|e| Error::io("create directory", path, e))
    }

    fn open_dir(&self, path: &Path) -> Result<Arc<dyn Storage>> {
        Ok(Arc::new(DiskDirectory::open(path, ReadMode::Mapped)?))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        match path.try_exists() {
            // A path below a file does not exist.
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => Ok(false),
            exists => exists.map_err(|e| Error::io("look for", path, e)),
        }
    }
}

/// How a directory reads whole files.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReadMode {
    Mapped,
    Called,
}

/// A directory of the machine, held open. All calls are relative to it, so they never reach a directory that another
/// process puts at its path later.
#[derive(Clone, Debug)]
pub(super) struct DiskDirectory {
    dir: Arc<File>,
    /// Path in errors, and prefix of the paths of its files.
    path: PathBuf,
    /// Path that is independent of the current directory.
    absolute: PathBuf,
    read_mode: ReadMode,
}

impl DiskDirectory {
    pub(super) fn open(path: &Path, read_mode: ReadMode) -> Result<Self> {
        // The parent of a bare name is the empty path, which stands for the current directory.
        let place = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let dir = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(place);
        let dir = Arc::new(dir.map_err(|e| Error::io("open directory", path, e))?);
        let absolute = std::path::absolute(place).map_err(|e| Error::io("open directory", path, e))?;
        Ok(Self { dir, path: path.to_owned(), absolute, read_mode })
    }

    /// Name of `path` in this directory.
    fn name<'a>(&self, operation: &'static str, path: &'a Path) -> Result<&'a OsStr> {
        let mut parts = path.strip_prefix(&self.path).unwrap_or(Path::new("")).components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(name)), None) => Ok(name),
            _ => {
                let what = format!("it is no file of the directory \"{}\"", self.path.display());
                Err(Error::io(operation, path, io::Error::new(io::ErrorKind::InvalidInput, what)))
            }
        }
    }

    /// Refuses a path other than this directory's.
    fn require_this(&self, operation: &'static str, path: &Path) -> Result<()> {
        if path == self.path {
            return Ok(());
        }
        let what = format!("the open directory is \"{}\"", self.path.display());
        Err(Error::io(operation, path, io::Error::new(io::ErrorKind::InvalidInput, what)))
    }

    /// Opens a regular file. Follows no link, and does not block on a FIFO without a peer.
    fn open_regular(&self, operation: &'static str, path: &Path, flags: OFlags) -> Result<File> {
        let name = self.name(operation, path)?;
        let flags = flags | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.dir, name, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => File::from(file),
            Err(error) => {
                // The kind of the found file says more than the system's reason.
                self.require_regular(operation, path, name)?;
                return Err(Error::io(operation, path, error.into()));
            }
        };
        let stat = rustix::fs::fstat(&file).map_err(|e| Error::io(operation, path, e.into()))?;
        regular(operation, path, &stat)?;
        // A write in place would change the file under its other name too, which may be another database's.
        if flags.intersects(OFlags::WRONLY | OFlags::RDWR) && stat.st_nlink > 1 {
            let what = "the file has another name too (a hard link); put a copy in its place";
            return Err(Error::io(operation, path, io::Error::new(io::ErrorKind::InvalidInput, what)));
        }
        Ok(file)
    }

    /// Status of the name, without following a link, or `None` if the name does not exist.
    fn stat(&self, operation: &'static str, path: &Path, name: &OsStr) -> Result<Option<Stat>> {
        match rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(Error::io(operation, path, error.into())),
        }
    }

    /// Refuses a name that belongs to another kind of file. A missing name passes.
    fn require_regular(&self, operation: &'static str, path: &Path, name: &OsStr) -> Result<()> {
        match self.stat(operation, path, name)? {
            Some(stat) => regular(operation, path, &stat),
            None => Ok(()),
        }
    }

    /// The process whose number is in the lock file.
    fn holder(&self, file: &File) -> Option<LockHolder> {
        let mut number = String::new();
        // Bounded, because the file may be another program's, of any length.
        file.take(MAX_LOCK_BYTES).read_to_string(&mut number).ok()?;
        let locked = identity(&rustix::fs::fstat(file).ok()?);
        Some(super::holder::of_number(number.trim().parse().ok()?, locked))
    }

    /// Opens a file of locks, only to ask for their holders. `None` if there is none, or if it must not be read: a
    /// reader needs no such file.
    fn open_to_ask(&self, path: &Path) -> Result<Option<File>> {
        use io::ErrorKind::{NotFound, PermissionDenied};
        match self.open_regular("open", path, OFlags::RDONLY) {
            Err(Error::NotRegular { .. }) => Ok(None),
            Err(error) if matches!(error.io_kind(), Some(NotFound | PermissionDenied)) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Locks the directory itself. Some network file systems cannot lock directories; then only the lock file
    /// separates writers.
    fn lock_directory(&self, path: &Path) -> Result<()> {
        match self.dir.try_lock() {
            Err(TryLockError::WouldBlock) => Err(self.locked(path)),
            Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
        }
    }

    /// Refuses a file that lost its name between opening and locking: the lock would be on a file without a name.
    fn require_named(&self, file: &File, path: &Path) -> Result<()> {
        let stat = rustix::fs::fstat(file).map_err(|e| Error::io("lock", path, e.into()))?;
        if self.stamp(path)?.map(|stamp| stamp.identity) == Some(identity(&stat)) {
            return Ok(());
        }
        Err(Error::io("lock", path, io::Error::other("another process replaced the file meanwhile; try again")))
    }

    fn locked(&self, path: &Path) -> Error {
        let file = self.open_regular("read", path, OFlags::RDONLY).ok();
        Error::Locked { path: path.to_owned(), holder: file.and_then(|file| self.holder(&file)).unwrap_or_default() }
    }
}

impl Storage for DiskDirectory {
    fn create_dir(&self, path: &Path) -> Result<()> {
        let name = self.name("create directory", path)?;
        let created = rustix::fs::mkdirat(&self.dir, name, Mode::from_raw_mode(0o777));
        created.map_err(|e| Error::io("create directory", path, e.into()))
    }

    fn open_dir(&self, path: &Path) -> Result<Arc<dyn Storage>> {
        self.require_this("open directory", path)?;
        Ok(Arc::new(self.clone()))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn StorageFile>> {
        let file = self.open_regular("create", path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        Ok(Box::new(DiskFile::new(Arc::new(file), path)))
    }

    fn open_write(&self, path: &Path) -> Result<Box<dyn StorageFile>> {
        let file = self.open_regular("open for writing", path, OFlags::WRONLY)?;
        Ok(Box::new(DiskFile::new(Arc::new(file), path)))
    }

    fn open_read(&self, path: &Path) -> Result<Box<dyn HeldFile>> {
        let file = self.open_regular("open", path, OFlags::RDONLY)?;
        Ok(Box::new(DiskFile::new(Arc::new(file), path)))
    }

    fn read(&self, path: &Path) -> Result<FileBytes> {
        let file = self.open_regular("open", path, OFlags::RDONLY)?;
        match self.read_mode {
            ReadMode::Mapped if !is_small(&file, path)? => FileBytes::map(&file).map_err(|e| Error::io("map", path, e)),
            _ => read_called(&file, path),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let (name, new_name) = (self.name("rename", from)?, self.name("rename", to)?);
        self.require_regular("rename", from, name)?;
        // `renameat` would replace a link or a FIFO in silence.
        self.require_regular("replace", to, new_name)?;
        let renamed = rustix::fs::renameat(&self.dir, name, &self.dir, new_name);
        renamed.map_err(|e| Error::io("rename", from, e.into()))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        let name = self.name("remove", path)?;
        self.require_regular("remove", path, name)?;
        rustix::fs::unlinkat(&self.dir, name, AtFlags::empty()).map_err(|e| Error::io("remove", path, e.into()))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.require_this("remove directory", path)?;
        // By path, because no call removes an open directory. Another directory at the path must stay.
        let removed = match self.is_replaced()? {
            true => Err(io::Error::other("another directory took its place")),
            false => std::fs::remove_dir(&self.absolute),
        };
        removed.map_err(|e| Error::io("remove directory", path, e))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.require_this("sync directory", path)?;
        self.dir.sync_all().map_err(|e| Error::io("sync directory", path, e))
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        self.require_this("list", path)?;
        let list = || -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in rustix::fs::Dir::read_from(&self.dir)? {
                let name = entry?.file_name().to_string_lossy().into_owned();
                if name != "." && name != ".." {
                    names.push(name);
                }
            }
            // Sorted, because the order in a directory differs between file systems.
            names.sort_unstable();
            Ok(names)
        };
        list().map_err(|e| Error::io("list", path, e))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let name = self.name("look for", path)?;
        Ok(self.stat("look for", path, name)?.is_some())
    }

    fn stamp(&self, path: &Path) -> Result<Option<FileStamp>> {
        let name = self.name("look at", path)?;
        let Some(stat) = self.stat("look at", path, name)? else { return Ok(None) };
        regular("look at", path, &stat)?;
        Ok(Some(stamp(&stat)))
    }

    #[cfg(target_os = "linux")]
    fn identity_at(&self, path: &Path) -> Result<Option<FileIdentity>> {
        let name = self.name("look at", path)?;
        // Not `stat`: once the times of a file were asked for, the kernel stamps its writes more finely (multigrain
        // timestamps). The sync of each commit then takes 40 % longer.
        match rustix::fs::statx(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::INO | StatxFlags::TYPE) {
            Ok(found) => {
                regular_mode("look at", path, found.stx_mode.into())?;
                let device = rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor);
                Ok(Some(FileIdentity::new(device, found.stx_ino)))
            }
            Err(rustix::io::Errno::NOENT) => Ok(None),
            // An old kernel, or one that forbids this call.
            Err(_) => Ok(self.stamp(path)?.map(|stamp| stamp.identity())),
        }
    }

    fn is_replaced(&self) -> Result<bool> {
        let is_other = || -> io::Result<bool> {
            match rustix::fs::stat(&self.absolute) {
                Ok(there) => Ok(identity(&rustix::fs::fstat(&self.dir)?) != identity(&there)),
                // A missing name: the directory was renamed or removed, and this handle still leads to it.
                Err(rustix::io::Errno::NOENT) => Ok(false),
                Err(error) => Err(error.into()),
            }
        };
        is_other().map_err(|e| Error::io("look at", &self.path, e))
    }

    fn lock(&self, path: &Path) -> Result<StorageLock> {
        let failed = |e: io::Error| Error::io("lock", path, e);
        // The directory first: its lock holds even if an operator removes the lock file.
        self.lock_directory(path)?;
        let mut file = self.open_regular("open for locking", path, OFlags::RDWR | OFlags::CREATE)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(self.locked(path)),
            Err(TryLockError::Error(e)) => return Err(failed(e)),
        }
        let identity = identity(&rustix::fs::fstat(&file).map_err(|e| failed(e.into()))?);
        self.require_named(&file, path)?;
        if file.metadata().map_err(failed)?.len() > MAX_LOCK_BYTES {
            let what = "it holds more than the number of a process; move it away";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidData, what)));
        }
        // So that others can ask for the holder, which `flock` does not allow. Some file systems have no such locks.
        let _ = byte_lock::try_lock(&file, HELD_BYTE, ByteLock::Exclusive);
        // For messages. The kernel holds the lock, not this number.
        let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
        let held = DiskLock { dir: Arc::clone(&self.dir), file, birthplace: Birthplace::here() };
        Ok(StorageLock::new(identity, Box::new(held)))
    }

    fn share_byte(&self, path: &Path, offset: u64) -> Result<Option<ByteLocks>> {
        let failed = |e: io::Error| Error::io("lock a byte of", path, e);
        // A file that exists need not be writable: a reader may have no right to write.
        let file = match self.open_regular("open", path, OFlags::RDONLY) {
            Err(error) if error.io_kind() == Some(io::ErrorKind::NotFound) => {
                self.open_regular("create", path, OFlags::RDONLY | OFlags::CREATE)?
            }
            opened => opened?,
        };
        if !byte_lock::try_lock(&file, offset, ByteLock::Shared).map_err(failed)? {
            return Ok(None);
        }
        self.require_named(&file, path)?;
        Ok(Some(DiskByteLocks::held(file, vec![offset])))
    }

    fn take_bytes(&self, path: &Path, offsets: &[u64]) -> Result<(ByteLocks, Vec<u64>)> {
        let failed = |e: io::Error| Error::io("lock bytes of", path, e);
        let file = self.open_regular("open for locking", path, OFlags::RDWR | OFlags::CREATE)?;
        let (mut taken, mut locked) = (Vec::new(), Vec::new());
        for &offset in offsets {
            match byte_lock::try_lock(&file, offset, ByteLock::Exclusive) {
                Ok(true) => taken.push(offset),
                Ok(false) => locked.push(offset),
                // Without such locks, no process has one.
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
                Err(error) => return Err(failed(error)),
            }
        }
        self.require_named(&file, path)?;
        Ok((DiskByteLocks::held(file, taken), locked))
    }

    fn byte_holders(&self, path: &Path, offsets: &[u64]) -> Result<Vec<(u64, LockHolder)>> {
        let Some(file) = self.open_to_ask(path)? else { return Ok(Vec::new()) };
        let is_locked = |offset: &&u64| byte_lock::is_locked(&file, **offset).unwrap_or(false);
        let locked: Vec<u64> = offsets.iter().filter(is_locked).copied().collect();
        if locked.is_empty() {
            return Ok(Vec::new());
        }
        let stat = rustix::fs::fstat(&file).map_err(|e| Error::io("look at", path, e.into()))?;
        Ok(super::holder::of_bytes(identity(&stat), &locked))
    }

    fn lock_holder(&self, path: &Path) -> Result<Option<LockHolder>> {
        let Some(file) = self.open_to_ask(path)? else { return Ok(None) };
        match byte_lock::is_locked(&file, HELD_BYTE) {
            // Without byte locks, the number must do: it leaves the file with the lock, unless a crash kept it there.
            Err(_) => Ok(self.holder(&file)),
            Ok(true) => Ok(Some(self.holder(&file).unwrap_or_default())),
            Ok(false) => Ok(None),
        }
    }
}

/// Refuses all but regular files.
fn regular(operation: &'static str, path: &Path, stat: &Stat) -> Result<()> {
    regular_mode(operation, path, stat.st_mode)
}

fn regular_mode(operation: &'static str, path: &Path, mode: RawMode) -> Result<()> {
    let found = match FileType::from_raw_mode(mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => "a symbolic link",
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something unknown",
    };
    Err(Error::NotRegular { operation, path: path.to_owned(), found })
}

// The types of the fields differ between systems.
#[allow(clippy::unnecessary_cast)]
fn identity(stat: &Stat) -> FileIdentity {
    FileIdentity::new(stat.st_dev as u64, stat.st_ino as u64)
}

#[allow(clippy::unnecessary_cast)]
fn stamp(stat: &Stat) -> FileStamp {
    let times = [stat.st_mtime as u64, stat.st_mtime_nsec as u64, stat.st_ctime as u64, stat.st_ctime_nsec as u64];
    let [modified, modified_ns, changed, changed_ns] = times;
    let mark = [stat.st_size as u64, modified, modified_ns, changed, changed_ns];
    FileStamp::new(identity(stat), mark)
}

/// A lock of this process. A forked child shares the open files, so closing them here would not release the lock.
struct DiskLock {
    dir: Arc<File>,
    file: File,
    birthplace: Birthplace,
}

impl Drop for DiskLock {
    fn drop(&mut self) {
        if !self.birthplace.is_elsewhere() {
            // Closing the files releases the lock only if no child shares them.
            let _ = byte_lock::unlock(&self.file, HELD_BYTE);
            // The number of a process without the lock would mislead.
            let _ = self.file.set_len(0);
            let _ = self.file.unlock();
            let _ = self.dir.unlock();
        }
    }
}

/// Locks on bytes. A forked child shares them, so dropping its copy must not release them.
struct DiskByteLocks {
    file: File,
    offsets: Vec<u64>,
    birthplace: Birthplace,
}

impl DiskByteLocks {
    fn held(file: File, offsets: Vec<u64>) -> ByteLocks {
        ByteLocks::new(Box::new(Self { file, offsets, birthplace: Birthplace::here() }))
    }
}

impl Drop for DiskByteLocks {
    fn drop(&mut self) {
        if !self.birthplace.is_elsewhere() {
            // Closing the file releases the locks only if no child shares it.
            for &offset in &self.offsets {
                let _ = byte_lock::unlock(&self.file, offset);
            }
        }
    }
}

/// An open file of the system.
#[derive(Debug)]
pub(super) struct DiskFile {
    file: Arc<File>,
    path: PathBuf,
}

impl DiskFile {
    /// `path` is the name in errors.
    pub fn new(file: Arc<File>, path: &Path) -> Self {
        Self { file, path: path.to_owned() }
    }

    pub(super) fn stamp(&self) -> Result<FileStamp> {
        let stat = rustix::fs::fstat(&self.file).map_err(|e| Error::io("look at", &self.path, e.into()))?;
        Ok(stamp(&stat))
    }
}

impl HeldFile for DiskFile {
    fn len(&self) -> Result<u64> {
        self.file.metadata().map(|m| m.len()).map_err(|e| Error::io("look at", &self.path, e))
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(into, offset).map_err(|e| Error::io("read", &self.path, e))
    }

    fn read_all(&self) -> Result<Vec<u8>> {
        let read = || -> io::Result<Vec<u8>> {
            let len = usize::try_from(self.file.metadata()?.len()).map_err(io::Error::other)?;
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(len)?;
            while bytes.len() < len {
                let offset = bytes.len() as u64;
                match rustix::io::pread(&self.file, rustix::buffer::spare_capacity(&mut bytes), offset) {
                    // The file was truncated after its length was read.
                    Ok(0) => break,
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => {
                        let error = io::Error::from(error);
                        let what = format!("{} bytes from byte {offset} on: {error}", len - bytes.len());
                        return Err(io::Error::new(error.kind(), what));
                    }
                }
            }
            Ok(bytes)
        };
        read().map_err(|e| Error::io("read", &self.path, e))
    }
}

impl StorageFile for DiskFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|e| Error::io("write", &self.path, e))
    }

    fn hasten(&self, offset: u64, len: u64) {
        #[cfg(target_os = "linux")]
        // SAFETY: the descriptor is that of an open file, and the call touches no memory of ours.
        unsafe {
            let (offset, len) = (offset as libc::off64_t, len as libc::off64_t);
            libc::sync_file_range(self.file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (offset, len);
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(|e| Error::io("sync", &self.path, e))
    }

    fn sync_data(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io("sync", &self.path, e))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|e| Error::io("set the length of", &self.path, e))
    }

    fn len(&self) -> Result<u64> {
        HeldFile::len(self)
    }

    fn identity(&self) -> Result<FileIdentity> {
        Ok(self.stamp()?.identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_those_of_stamps() {
        let folder = std::env::temp_dir().join(format!("anden-identity-{}", std::process::id()));
        DiskStorage.create_dir(&folder).unwrap();
        let dir = DiskStorage.open_dir(&folder).unwrap();
        let path = |name: &str| folder.join(name);
        std::fs::write(path("file"), "x").unwrap();
        std::os::unix::fs::symlink("file", path("link")).unwrap();
        let stamp = dir.stamp(&path("file")).unwrap().unwrap();
        assert_eq!(dir.identity_at(&path("file")).unwrap(), Some(stamp.identity()));
        assert_eq!(dir.identity_at(&path("none")).unwrap(), None);
        assert!(matches!(dir.identity_at(&path("link")), Err(Error::NotRegular { .. })));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn file_with_two_names_is_not_written() {
        let folder = std::env::temp_dir().join(format!("anden-names-{}", std::process::id()));
        DiskStorage.create_dir(&folder).unwrap();
        let (first, second) = (folder.join("first"), folder.join("second"));
        std::fs::write(&first, "1").unwrap();
        std::fs::hard_link(&first, &second).unwrap();
        let dir = DiskStorage.open_dir(&folder).unwrap();
        for refused in [dir.open_write(&first).err(), dir.lock(&first).err()] {
            let refused = refused.unwrap().to_string();
            assert!(refused.contains("a hard link"), "{refused}");
        }
        assert_eq!(dir.read(&second).unwrap().as_slice(), b"1");
        dir.remove_file(&second).unwrap();
        dir.open_write(&first).unwrap();
        drop(dir);
        DiskStorage.open_dir(&folder).unwrap().lock(&first).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn held_lock_is_refused_until_released() {
        let dir = std::env::temp_dir().join(format!("anden-disk-{}", std::process::id()));
        let disk = DiskStorage;
        disk.create_dir(&dir).unwrap();
        let lock_path = dir.join("LOCK");
        let held = disk.lock(&lock_path).unwrap();
        let refused = disk.lock(&lock_path).err().unwrap();
        let holder = disk.lock_holder(&lock_path).unwrap().unwrap();
        assert!(holder.process == Some(std::process::id()) && holder.program.is_some(), "{holder}");
        assert!(matches!(&refused, Error::Locked { holder: named, .. } if *named == holder), "{refused:?}");
        assert!(refused.to_string().ends_with("locked by another handle of this process"), "{refused}");
        drop(held);
        assert_eq!(disk.lock_holder(&lock_path).unwrap(), None);
        assert_eq!(disk.lock_holder(&dir.join("none")).unwrap(), None);
        drop(disk.lock(&lock_path).unwrap());

        let path = dir.join("file");
        let file = disk.create(&path).unwrap();
        file.write_at(4, b"tail").unwrap();
        file.write_at(0, b"head").unwrap();
        file.sync().unwrap();
        file.sync_data().unwrap();
        assert!(disk.create(&path).is_err());
        assert_eq!(disk.read(&path).unwrap().as_slice(), b"headtail");
        let mut part = [0; 4];
        assert_eq!(disk.file_len(&path).unwrap(), 8);
        disk.read_at(&path, 2, &mut part).unwrap();
        assert_eq!(&part, b"adta");
        assert_eq!(disk.read_at(&path, 6, &mut part).unwrap_err().io_kind(), Some(io::ErrorKind::UnexpectedEof));
        disk.rename(&path, &dir.join("other")).unwrap();
        disk.sync_dir(&dir).unwrap();
        assert_eq!(disk.list(&dir).unwrap(), ["LOCK", "other"]);
        disk.remove_file(&dir.join("other")).unwrap();
        disk.remove_file(&lock_path).unwrap();
        disk.remove_dir(&dir).unwrap();
        assert!(!disk.exists(&dir).unwrap());
    }

    #[test]
    fn a_directory_is_reached_wherever_it_is() {
        let folder = std::env::temp_dir().join(format!("anden-handle-{}", std::process::id()));
        let (here, there) = (folder.join("here"), folder.join("there"));
        DiskStorage.create_dir(&folder).unwrap();
        DiskStorage.create_dir(&here).unwrap();
        let dir = DiskStorage.open_dir(&here).unwrap();
        std::fs::rename(&here, &there).unwrap();
        drop(dir.create(&here.join("file")).unwrap());
        assert!(there.join("file").exists() && !dir.is_replaced().unwrap());
        DiskStorage.create_dir(&here).unwrap();
        std::fs::write(here.join("file"), "of another").unwrap();
        assert!(dir.is_replaced().unwrap());
        assert!(dir.read(&here.join("file")).unwrap().is_empty());
        dir.rename(&here.join("file"), &here.join("new")).unwrap();
        assert_eq!(
            (dir.list(&here).unwrap(), std::fs::read(here.join("file")).unwrap()),
            (vec!["new".into()], b"of another".to_vec())
        );
        dir.remove_file(&here.join("new")).unwrap();
        std::fs::remove_file(here.join("file")).unwrap();
        let error = dir.remove_dir(&here).unwrap_err().to_string();
        assert!(error.contains("another directory took its place") && here.exists(), "{error}");
        for path in [folder.join("there/file"), here.join("../there/file"), here.join("a/b"), here.clone()] {
            let error = dir.create(&path).unwrap_err();
            assert_eq!(error.io_kind(), Some(io::ErrorKind::InvalidInput), "{error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_lock_outlives_the_removal_of_its_file() {
        let dir = std::env::temp_dir().join(format!("anden-lock-{}", std::process::id()));
        let path = dir.join("LOCK");
        DiskStorage.create_dir(&dir).unwrap();
        let held = DiskStorage.lock(&path).unwrap();
        assert_eq!(DiskStorage.stamp(&path).unwrap().map(|stamp| stamp.identity()), Some(held.identity()));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(DiskStorage.lock(&path), Err(Error::Locked { .. })) && !path.exists());
        drop(held);
        // A file of the user with this name is not truncated.
        std::fs::write(&path, [b'1'; 100]).unwrap();
        let error = DiskStorage.lock(&path).unwrap_err().to_string();
        assert!(error.contains("more than the number of a process"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), [b'1'; 100]);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
