//! A replica that follows its primary and takes over.
//!
//! The replica begins with a backup. It then applies one change set after the other, each as one commit with the epoch
//! that it has in the primary. So its own epoch tells where to go on, also after a crash, and there is nothing else to
//! record. Once the primary has ended, the replica is an ordinary database.

use std::path::Path;

use anden::{Database, Result, Session};

/// Makes a replica at `path` from a backup of the primary. The backup is made in `backup`, a new directory.
///
/// # Errors
/// A path exists, the primary is damaged, or the disk fails.
pub fn begin(primary: &Database, backup: &Path, path: &Path) -> Result<Database> {
    primary.backup(backup)?;
    Database::restore(&[backup.to_owned()], path, None, &Session::new(0)?)?;
    Database::open(path)
}

/// Applies what the primary has committed since the replica's epoch. Returns the number of change sets.
///
/// # Errors
/// [`EpochGone`](anden::Error::EpochGone): the primary no longer keeps the next commit in its WAL, and no snapshot of the
/// replica's epoch, so begin again. The primary is damaged, or a disk fails.
pub fn follow(primary: &Database, replica: &Database) -> Result<usize> {
    primary.refresh()?;
    let mut num_applied = 0;
    for set in primary.changes(replica.epoch())? {
        num_applied += usize::from(replica.apply_changes(&set?)?);
    }
    Ok(num_applied)
}

/// Follows until no process has the primary open for writing, and the replica has all that it committed.
/// `has_applied` gets the number of change sets after each look.
///
/// # Errors
/// As for [`follow`].
pub fn follow_to_the_end(primary: &Database, replica: &Database, mut has_applied: impl FnMut(usize)) -> Result<()> {
    loop {
        // Before the look: a writer that has ended commits nothing after it.
        let has_ended = primary.lock_holder()?.is_none();
        has_applied(follow(primary, replica)?);
        if has_ended {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
