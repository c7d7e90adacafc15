//! Space that is kept for changes that free space.
//!
//! To drop a snapshot, a database first writes: the deltas that are composed, and a manifest. On a full disk that
//! fails, and nothing could make room. So a file of the directory holds space that only such changes get: if one meets
//! a full disk, the file is removed and the change runs once more. After such a change, and on opening, the file is
//! made again if there is space. Other changes leave it alone, so that they do not take the last bytes from commits.

use std::io::ErrorKind;

use parking_lot::Mutex;

use super::Store;
use crate::{Result, names};

/// Bytes of the file in a large database: room for the composed deltas of a few snapshots.
const MOST_BYTES: u64 = 1 << 20;
/// Bytes of the file in a small database. Such a change writes at most about as much as the database has.
const LEAST_BYTES: u64 = 64 << 10;
/// On a disk without space for all of it, the file takes this share of the free bytes. The rest is left to commits.
const SHARE_OF_FREE: u64 = 4;
/// Bytes of one write.
const CHUNK_BYTES: usize = 64 << 10;

/// The reserve file of a database.
#[derive(Debug, Default)]
pub(super) struct Reserve(Mutex<ReserveFile>);

#[derive(Debug, Default)]
struct ReserveFile {
    /// Whether this handle keeps one.
    is_kept: bool,
    /// Its bytes; `None`: there is no file, or not a regular one.
    num_bytes: Option<u64>,
}

impl Store {
    /// Keeps a reserve file from now on. A disk without space for it is no error: the file is smaller, or there is none.
    ///
    /// Cost: writes up to 1 MB, without a sync, if the file is missing.
    pub fn keep_reserve(&self) {
        let len = self.storage.file_len(&self.path.join(names::RESERVE));
        *self.reserve.0.lock() = ReserveFile { is_kept: self.lock.is_some(), num_bytes: len.ok() };
        self.renew_reserve();
    }

    /// Makes the reserve file if it is missing, or extends it if the database has grown.
    pub(super) fn renew_reserve(&self) {
        let mut reserve = self.reserve.0.lock();
        let wanted = self.num_bytes().clamp(LEAST_BYTES, MOST_BYTES);
        // Extended in steps that double, so that a growing database pays for it a few times only.
        if !reserve.is_kept || reserve.num_bytes.is_some_and(|num_bytes| num_bytes >= wanted.div_ceil(2)) {
            return;
        }
        match self.extend_reserve(reserve.num_bytes, wanted) {
            Ok(num_bytes) => reserve.num_bytes = Some(num_bytes),
            Err(error) => tracing::debug!(%error, "cannot keep a reserve of space"),
        }
    }

    /// Makes the file, or extends it from the bytes `before`. Returns its bytes: fewer than `wanted` on a disk without
    /// space for all of them.
    fn extend_reserve(&self, before: Option<u64>, wanted: u64) -> Result<u64> {
        self.check_lock()?;
        let path = self.path.join(names::RESERVE);
        // After a power cut, the file may be there without a byte.
        let file = if before.is_none() { self.storage.create(&path)? } else { self.storage.open_write(&path)? };
        let chunk = incompressible(CHUNK_BYTES);
        let mut place = before.unwrap_or(0);
        while place < wanted {
            let len = chunk.len().min((wanted - place) as usize);
            if let Err(error) = file.write_at(place, &chunk[..len]) {
                // The last free bytes of the disk belong to others. What was there before stays.
                let share = if is_full(&error) { place / SHARE_OF_FREE / LEAST_BYTES * LEAST_BYTES } else { 0 };
                match before {
                    Some(before) => file.set_len(before)?,
                    None if share > 0 => return Ok(file.set_len(share).map(|()| share)?),
                    None => self.storage.remove_file(&path)?,
                }
                return Err(error.into());
            }
            place += len as u64;
        }
        Ok(wanted)
    }

    /// Gives the space of the reserve file to the disk, if it is `least` bytes or more. Returns whether there was any.
    fn release_reserve(&self, least: u64) -> bool {
        let mut reserve = self.reserve.0.lock();
        if reserve.num_bytes.is_none_or(|num_bytes| num_bytes < least.max(1)) || self.check_lock().is_err() {
            return false;
        }
        reserve.num_bytes = None;
        let removed = self.storage.remove_file(&self.path.join(names::RESERVE));
        // Some file systems hand out the blocks of a removed file only once the removal is durable.
        removed.and_then(|()| self.storage.sync_dir(&self.path)).is_ok()
    }

    /// Runs a change that frees space. If the disk is full, the change gets the space of the reserve, once. `least`: a
    /// smaller reserve would not suffice, and the second attempt would take time for nothing.
    pub(super) fn freeing<T>(&self, least: u64, change: impl Fn() -> Result<T>) -> Result<T> {
        let mut changed = change();
        if let Err(crate::Error::Base(error)) = &changed
            && is_full(error)
            && self.release_reserve(least)
        {
            tracing::info!(path = %self.path.display(), "released the reserve, because the disk is full");
            changed = change();
        }
        // After an error too: a change that fails removes its files.
        self.renew_reserve();
        changed
    }
}

fn is_full(error: &anden_base::Error) -> bool {
    matches!(error.io_kind(), Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
}

/// Bytes without a pattern. File systems that compress would store zeros in no space.
fn incompressible(num_bytes: usize) -> Vec<u8> {
    // Xorshift, by G. Marsaglia (Journal of Statistical Software 8, 2003).
    let mut word = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word.to_le_bytes()
    });
    words.take(num_bytes.div_ceil(8)).flatten().take(num_bytes).collect()
}
