//! The cost and the gain of a property index: commits of a new value with and without one, and a lookup against a scan.

use std::path::Path;
use std::time::Duration;

use anden_base::progress::Silent;
use anden_engine::{Durability, Engine, GraphOptions, IndexKind, KeyScheme, MergeScope, Missing, Update};
use anden_graph::property::PropertyValue;
use anyhow::{Result, ensure};

use super::stage::{Client, Clock, side_by_side};
use crate::harness::{Pairs, seconds};
use crate::report::{Line, Report, at_most};
use crate::setting::Setting;

/// The number of vertices, each with a distinct value.
const NUM_VERTICES: u64 = 1_000_000;
const QUICK_VERTICES: u64 = 10_000;
/// The number of vertices in one batch.
const GRAIN: u64 = 100_000;
/// The target time of a lookup.
const LOOKUP_SECONDS: f64 = 2e-6;
/// The factor that an index may add to a commit.
const MOST: f64 = 1.5;

/// A scattered vertex for each number.
fn vertex(number: u64, num_vertices: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % num_vertices
}

fn email(number: u64) -> String {
    format!("user{number}@example.org")
}

/// A graph in which each vertex has an e-mail address in the base.
fn create(setting: &Setting, directory: &Path, kind: Option<IndexKind>, num_vertices: u64) -> Result<Engine> {
    if directory.exists() {
        std::fs::remove_dir_all(directory)?;
    }
    let database = Engine::create(directory, GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() })?;
    database.set_durability(Durability::None);
    for first in (0..num_vertices).step_by(GRAIN as usize) {
        let vertices = first..num_vertices.min(first + GRAIN);
        let updates: Vec<Update> = vertices.map(|v| Update::set_vertex(v, "email", email(v))).collect();
        database.apply(&updates, Missing::Lenient, &setting.pool)?;
    }
    database.checkpoint(None)?;
    database.merge(MergeScope::All, &setting.pool, &Silent)?;
    if let Some(kind) = kind {
        database.create_index("email", kind, &Silent)?;
    }
    database.set_checkpoint_bytes(None);
    Ok(database)
}

/// The seconds a lookup, over many addresses.
fn lookup_time(database: &Engine, num_lookups: u64, num_vertices: u64) -> Result<f64> {
    let view = database.view()?;
    let emails: Vec<String> = (0..num_lookups).map(|number| email(vertex(number, num_vertices))).collect();
    let (time, found) = seconds(|| -> Result<usize> {
        let mut num_found = 0;
        for email in &emails {
            num_found += view.properties().find(0, PropertyValue::String(email))?.len();
        }
        Ok(num_found)
    });
    ensure!(found? as u64 == num_lookups, "an address was not found");
    Ok(time / num_lookups as f64)
}

/// The seconds a commit of `num_sets` new addresses.
fn commit_time(
    setting: &Setting,
    database: &Engine,
    (round, num_sets, num_vertices): (usize, u64, u64),
    time: Duration,
) -> Result<f64> {
    let client: Client<'_, u64> = Box::new(|clock: &Clock<'_>| {
        let mut number = 0;
        while clock.is_running() {
            let sets = number * num_sets..(number + 1) * num_sets;
            let update =
                |set| Update::set_vertex(vertex(set, num_vertices), "email", format!("{round}.{set}@example.org"));
            database.apply(&sets.map(update).collect::<Vec<_>>(), Missing::Lenient, &setting.pool)?;
            number += 1;
        }
        Ok(number)
    });
    let (counts, seconds) = side_by_side(vec![client], time)?;
    let num_commits: u64 = counts.iter().sum();
    ensure!(num_commits > 0, "nothing was committed");
    Ok(seconds / num_commits as f64)
}

/// Measures all lines as times: a ratio of 2 is half the rate.
pub(super) fn lines(setting: &Setting, is_quick: bool, report: &mut Report) -> Result<()> {
    let (time, num_pairs) = if is_quick { (Duration::from_millis(10), 1) } else { (Duration::from_millis(400), 5) };
    let num_vertices = if is_quick { QUICK_VERTICES } else { NUM_VERTICES };
    let directory = |name: &str| setting.scratch.join(format!("indexes-{name}.anden"));
    let without = create(setting, &directory("none"), None, num_vertices)?;
    for (name, kind) in [("plain", IndexKind::Plain), ("unique", IndexKind::Unique)] {
        let with = create(setting, &directory(name), Some(kind), num_vertices)?;
        if kind == IndexKind::Plain {
            let indexed = |_| lookup_time(&with, num_vertices / 5, num_vertices);
            let pairs = Pairs::alternate(num_pairs, indexed, |_| lookup_time(&without, 3, num_vertices))?;
            let bound = format!("{:.1} µs at most", LOOKUP_SECONDS * 1e6);
            report.line(Line::compared(format!("lookup of one of {num_vertices} strings"), &pairs, "scan", bound));
        }
        for num_sets in [1, 100] {
            let side = |database| move |round| commit_time(setting, database, (round, num_sets, num_vertices), time);
            let pairs = Pairs::alternate(num_pairs, side(&with), side(&without))?;
            let (ratio, ..) = pairs.ratio();
            let line = format!("commit of {num_sets} sets, {name} index");
            report.line(Line::compared(line, &pairs, "no index", at_most(MOST, ratio)));
        }
        drop(with);
        std::fs::remove_dir_all(directory(name))?;
    }
    drop(without);
    std::fs::remove_dir_all(directory("none"))?;
    Ok(())
}
