//! The time to open a database after a crash.
//!
//! The crash is a copy of the files of an open database, with a WAL that no snapshot covers. Each transaction is a
//! group of its own, as from one client that waits for each. That gives the largest number of records.

use std::path::Path;

use anden_engine::{Durability, Engine, Missing, Update};
use anden_graph::Graph;
use anden_graph::property::OwnedValue;
use anyhow::{Result, ensure};

use super::commits::edge;
use super::kinds::Kind;
use crate::harness::seconds;
use crate::report::{Line, Report};
use crate::setting::Setting;

/// The number of logged transactions.
const TRANSACTIONS: u64 = 10_000_000;
const QUICK_TRANSACTIONS: u64 = 20_000;

/// Measures all lines.
pub(super) fn lines(setting: &Setting, is_quick: bool, report: &mut Report) -> Result<()> {
    let num_transactions = if is_quick { QUICK_TRANSACTIONS } else { TRANSACTIONS };
    let (plain, plain_bytes) = time_to_open(setting, num_transactions, |number, updates| {
        let (source, target) = edge(0, number);
        updates.push(Update::add_edge(source, target));
    })?;
    let bound = format!("≤ 5; {:.0} MB of files", plain_bytes as f64 / 1e6);
    report.line(Line::figure(format!("open after {num_transactions} logged commits"), "s", plain, bound));
    let (rows, row_bytes) = time_to_open(setting, num_transactions, |number, updates| {
        let (source, target) = edge(0, number);
        let values = [("amount", OwnedValue::from(number as i64)), ("rate", (number as f64 / 7.0).into())];
        updates.push(Update::add_edge_with(source, target, values));
    })?;
    let bound = format!("≤ 2 times the above; {:.0} MB of files", row_bytes as f64 / 1e6);
    report.line(Line {
        other: Line::beside(plain, "plain"),
        ratio: Some((rows / plain, rows / plain, rows / plain)),
        ..Line::figure("the same with two properties an edge", "s", rows, bound)
    });
    Ok(())
}

/// The seconds to open after logged commits, and the bytes of the files. The first commit decides whether edges have
/// properties.
fn time_to_open(
    setting: &Setting,
    num_transactions: u64,
    commit: impl Fn(u64, &mut Vec<Update>),
) -> Result<(f64, u64)> {
    let (directory, copy) = (setting.scratch.join("recovery.anden"), setting.scratch.join("recovered.anden"));
    let mut updates = Vec::new();
    commit(0, &mut updates);
    let has_properties = matches!(&updates[..], [Update::AddEdge { properties, .. }] if !properties.is_empty());
    let database = if has_properties { Kind::Properties } else { Kind::Plain }.create(&directory)?;
    database.set_durability(Durability::batched());
    for number in 0..num_transactions {
        updates.clear();
        commit(number, &mut updates);
        database.apply(&updates, Missing::Lenient, &setting.pool)?;
    }
    let num_edges = database.view()?.num_edges();
    let num_bytes = copy_files(&directory, &copy)?;
    drop(database);
    let (time, opened) = seconds(|| Engine::open(&copy));
    let opened = opened?;
    let found = opened.view()?.num_edges();
    ensure!(found == num_edges, "{num_edges} edges were committed, {found} are left");
    drop(opened);
    std::fs::remove_dir_all(&copy)?;
    std::fs::remove_dir_all(&directory)?;
    Ok((time, num_bytes))
}

/// Copies the files of a directory into a new one. Returns their bytes.
pub(super) fn copy_files(from: &Path, to: &Path) -> Result<u64> {
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
