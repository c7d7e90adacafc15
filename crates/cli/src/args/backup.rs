//! `anden backup`, `anden restore` and `anden repair`.

use std::path::PathBuf;

use clap::Args;

use super::parse;

const BACKUP_EXAMPLES: &str = "\
Examples:
  anden backup social.anden monday                           a full backup in a new directory
  anden backup social.anden tuesday --since monday           only files that are new since then
  anden backup social.anden monday.tar.zst --limit-rate 50M  one file
  anden backup social.anden - | ssh host 'cat > monday.tar.zst'";

/// Back up a database, also while another process writes it
///
/// Copies everything committed, as of one epoch, and verifies every block on the way. Prepared forms are left out. An
/// unfinished backup is never taken for one: its list, BACKUP, is written last.
#[derive(Args, Debug)]
#[command(after_help = BACKUP_EXAMPLES)]
pub struct BackupArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// New directory, or new file if the name ends in `.tar.zst`; `-` for such a file on standard output
    #[arg(value_name = "DEST")]
    pub target: PathBuf,
    /// Copy only files that this earlier backup of the database lacks. `anden restore` needs both
    #[arg(long, value_name = "EARLIER")]
    pub since: Option<PathBuf>,
    /// Copy at most this many bytes a second, for example 50M [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = parse::rate, allow_hyphen_values = true)]
    pub limit_rate: Option<u64>,
}

const RESTORE_EXAMPLES: &str = "\
Examples:
  anden restore monday social.anden
  anden restore monday tuesday wednesday social.anden        a full backup and its increments
  ssh host 'cat monday.tar.zst' | anden restore - social.anden";

/// Restore a database from a full backup and its increments, newest last
///
/// Verifies every checksum and all structures before the database appears. The database begins a new history: backups
/// of its origin are no parents of its own backups.
#[derive(Args, Debug)]
#[command(after_help = RESTORE_EXAMPLES)]
pub struct RestoreArgs {
    /// Directories or `.tar.zst` files of `anden backup`; `-` for such a file on standard input
    #[arg(value_name = "SOURCE", required = true, num_args = 1..)]
    pub sources: Vec<PathBuf>,
    /// Directory of the new database
    #[arg(value_name = "DB", required = true)]
    pub database: PathBuf,
    /// Copy at most this many bytes a second, for example 50M [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = parse::rate, allow_hyphen_values = true)]
    pub limit_rate: Option<u64>,
}

const REPAIR_EXAMPLES: &str = "\
Examples:
  anden repair social.anden --to saved.anden
  anden repair social.anden --to saved.anden --json | jq '.losses[]'";

/// Save what can be read of a damaged database in a new one, and list what is lost
///
/// The damaged database is only read. If the newest snapshot is whole, saves all snapshots whose files are whole.
/// Otherwise saves the newest one page by page, lost lists from the other ends of the edges. Then the commits of the
/// write-ahead log, up to the first damaged one. Stop the writer before.
#[derive(Args, Debug)]
#[command(after_help = REPAIR_EXAMPLES)]
pub struct RepairArgs {
    /// Directory of the damaged database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Directory of the new database, which must not exist
    #[arg(long, value_name = "NEW", required = true)]
    pub to: PathBuf,
}
