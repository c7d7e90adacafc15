//! How long a database takes to open after a crash.
//!
//! The crash is a copy of the files while the database is open: it has a log, and no snapshot of what is in it. Each
//! transaction is a group of its own, as one client makes them that waits for each: more records than any other way.

use std::path::Path;

use anyhow::{Result, ensure};
use engine::{Database, Durability, Missing, Update};
use graph::Graph;

use super::commits::{edge, empty};
use crate::harness::seconds;
use crate::report::{Line, Report};
use crate::setting::Setting;

/// Transactions that are logged.
const TRANSACTIONS: u64 = 10_000_000;
const QUICK_TRANSACTIONS: u64 = 20_000;

/// The line.
pub(super) fn lines(setting: &Setting, is_quick: bool, report: &mut Report) -> Result<()> {
    let num_transactions = if is_quick { QUICK_TRANSACTIONS } else { TRANSACTIONS };
    let (directory, copy) = (setting.scratch.join("recovery.anden"), setting.scratch.join("recovered.anden"));
    let database = empty(&directory)?;
    database.set_durability(Durability::batched());
    for number in 0..num_transactions {
        let (source, target) = edge(0, number);
        database.apply(&[Update::add_edge(source, target)], Missing::Lenient, &setting.pool)?;
    }
    let num_edges = database.view()?.num_edges();
    let num_bytes = copy_files(&directory, &copy)?;
    drop(database);
    let (time, opened) = seconds(|| Database::open(&copy));
    let opened = opened?;
    let found = opened.view()?.num_edges();
    ensure!(found == num_edges, "{num_edges} edges were committed, {found} are left");
    let bound = format!("≤ 5; {:.0} MB of files", num_bytes as f64 / 1e6);
    report.line(Line::figure(format!("open after {num_transactions} logged commits"), "s", time, bound));
    drop(opened);
    std::fs::remove_dir_all(&copy)?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

fn copy_files(from: &Path, to: &Path) -> Result<u64> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    std::fs::create_dir_all(to)?;
    let mut num_bytes = 0;
    for file in std::fs::read_dir(from)? {
        let file = file?;
        num_bytes += std::fs::copy(file.path(), to.join(file.file_name()))?;
    }
    Ok(num_bytes)
}
