//! Leases: a process keeps a snapshot from being dropped by another process.
//!
//! A lease is a shared lock on one byte of the file `LEASES`, at the offset that is the snapshot's number. The kernel
//! releases it when the process ends in any way, so no lease outlives its holder. A writer that drops snapshots takes
//! their bytes alone until the new manifest is published. So either the writer sees the lease, or the reader, whose
//! lock then comes later, sees that the snapshot is gone.
//!
//! A lease keeps no file. A merge may replace the files of a snapshot, but it loses none, and files that a reader has
//! open stay readable.

use std::time::{Duration, Instant};

use anden_base::storage::{ByteLocks, LockHolder};

use super::Store;
use crate::{Error, Result, names};

/// Time that a lease waits for a drop of its snapshot to end or fail.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Time between two attempts.
const TRY_EVERY: Duration = Duration::from_millis(2);

/// A lease on a snapshot, which lasts until it is dropped or its process ends.
///
/// No process can drop the snapshot meanwhile. The lease does not depend on the handle that gave it.
#[derive(Debug)]
#[must_use = "the lease ends when this is dropped"]
pub struct Lease {
    snapshot: u32,
    _held: ByteLocks,
}

/// A lease that some process holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseInfo {
    /// Number of the snapshot.
    pub snapshot: u32,
    /// The process, as far as the system tells.
    pub holder: LockHolder,
}

/// Snapshots that may be dropped, because no process can take a lease on them meanwhile.
#[derive(Debug)]
pub(super) struct Droppable {
    pub(super) numbers: Vec<u32>,
    _held: Option<ByteLocks>,
}

impl Lease {
    /// The number of the snapshot.
    pub fn snapshot(&self) -> u32 {
        self.snapshot
    }
}

impl Store {
    /// Takes a lease on a snapshot. The file of leases is created if it does not exist.
    ///
    /// # Errors
    /// [`Error::NoSnapshot`]; the directory cannot be written and has no file of leases; the system has no locks of
    /// open files; the snapshot is being dropped.
    pub fn lease(&self, snapshot: u32) -> Result<Lease> {
        self.state().kept(snapshot)?;
        let (path, begin) = (self.path.join(names::LEASES), Instant::now());
        let held = loop {
            match self.storage.share_byte(&path, snapshot.into()).map_err(|error| refused(snapshot, error))? {
                Some(held) => break held,
                None if begin.elapsed() > MAX_WAIT => {
                    let what = format!("cannot take a lease on snapshot {snapshot}: it is being dropped; try again");
                    return Err(Error::Input(what));
                }
                // A drop writes a delta at most, and may still fail.
                None => std::thread::sleep(TRY_EVERY),
            }
        };
        // The snapshot may have been dropped before the lock was there.
        self.newest_state()?.kept(snapshot)?;
        Ok(Lease { snapshot, _held: held })
    }

    /// All leases on snapshots, by snapshot.
    ///
    /// # Errors
    /// The disk failed.
    pub fn leases(&self) -> Result<Vec<LeaseInfo>> {
        let numbers: Vec<u64> = self.state().manifest.chain.kept().map(|version| version.number.into()).collect();
        let holders = self.storage.byte_holders(&self.path.join(names::LEASES), &numbers)?;
        let info = |(number, holder)| LeaseInfo { snapshot: u32::try_from(number).unwrap_or(u32::MAX), holder };
        Ok(holders.into_iter().map(info).collect())
    }

    /// Keeps processes from taking leases on these snapshots, to drop them.
    ///
    /// # Errors
    /// [`Error::Leased`]; the disk failed.
    pub(super) fn require_unleased(&self, numbers: &[u32]) -> Result<Droppable> {
        let droppable = self.unleased(numbers)?;
        let is_leased = |number: &&u32| !droppable.numbers.contains(number);
        let Some(&snapshot) = numbers.iter().find(is_leased) else { return Ok(droppable) };
        let holders = self.storage.byte_holders(&self.path.join(names::LEASES), &[snapshot.into()]);
        let holder = holders.ok().and_then(|mut holders| holders.pop()).map(|(_, holder)| holder).unwrap_or_default();
        Err(Error::Leased { snapshot, path: self.path.clone(), holder })
    }

    /// As [`require_unleased`](Self::require_unleased), without the snapshots that have leases. If the file of leases
    /// cannot be used, no snapshot is droppable: the caller has more important work than to drop.
    pub(super) fn unleased_of(&self, numbers: &[u32]) -> Droppable {
        self.unleased(numbers).unwrap_or_else(|error| {
            tracing::warn!(%error, snapshots = ?numbers, "cannot look for leases, so snapshots stay");
            Droppable { numbers: Vec::new(), _held: None }
        })
    }

    pub(super) fn unleased(&self, numbers: &[u32]) -> Result<Droppable> {
        if numbers.is_empty() {
            return Ok(Droppable { numbers: Vec::new(), _held: None });
        }
        let offsets: Vec<u64> = numbers.iter().copied().map(u64::from).collect();
        let (held, leased) = self.storage.take_bytes(&self.path.join(names::LEASES), &offsets)?;
        let numbers: Vec<u32> = numbers.iter().copied().filter(|&number| !leased.contains(&number.into())).collect();
        if !leased.is_empty() {
            tracing::info!(snapshots = ?leased, "leased snapshots stay");
        }
        Ok(Droppable { numbers, _held: Some(held) })
    }
}

/// The error of a lease for which the directory or the system lacks what it needs.
fn refused(snapshot: u32, error: anden_base::Error) -> Error {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem, Unsupported};
    let hint = match error.io_kind() {
        Some(PermissionDenied | ReadOnlyFilesystem) => {
            "a lease needs this file, which a process that may write there makes by its first lease"
        }
        Some(Unsupported) => "this system has no locks that processes can hold on parts of a file",
        _ => return error.into(),
    };
    Error::Input(format!("cannot take a lease on snapshot {snapshot}: {error}; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rights_are_named_with_their_cure() {
        let failed = |kind: std::io::ErrorKind| {
            let error = anden_base::Error::io("create", "db/LEASES".as_ref(), kind.into());
            refused(7, error).to_string()
        };
        let text = failed(std::io::ErrorKind::PermissionDenied);
        assert!(text.starts_with("cannot take a lease on snapshot 7: db/LEASES: cannot create: "), "{text}");
        assert!(text.ends_with("makes by its first lease"), "{text}");
        assert!(failed(std::io::ErrorKind::Unsupported).ends_with("on parts of a file"));
        assert!(!failed(std::io::ErrorKind::StorageFull).contains("lease"));
    }
}
