//! The cost of properties and parallel edges: commits to each kind of graph in turn with commits to a plain one.

use std::path::Path;
use std::time::Duration;

use anden_base::parallel::Pool;
use anden_engine::{Durability, Engine, GraphOptions, KeyScheme, Missing, Update};
use anden_graph::Graph;
use anden_graph::property::OwnedValue;
use anyhow::{Result, ensure};

use super::commits::{NUM_VERTICES, edge};
use super::stage::{Client, Clock, side_by_side};
use crate::harness::{Pairs, seconds};
use crate::report::{Line, Report, at_most};
use crate::setting::Setting;

/// The number of edges in the largest batch.
const LARGEST: u64 = 1_000_000;
const QUICK_LARGEST: u64 = 1_000;

/// The kind of the committed changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Edges of a simple graph.
    Plain,
    /// Edges with three properties: an `i64`, an `f64` and a short string.
    Properties,
    /// Edges of a multigraph.
    Parallel,
    /// New property values of existing edges.
    Sets,
}

impl Kind {
    /// An empty graph with declared property types. Its changes stay in memory and in the WAL.
    pub(super) fn create(self, directory: &Path) -> Result<Engine> {
        if directory.exists() {
            std::fs::remove_dir_all(directory)?;
        }
        let options = GraphOptions {
            keys: KeyScheme::Dense,
            in_edges: false,
            multigraph: self == Self::Parallel,
            edge_properties: matches!(self, Self::Properties | Self::Sets),
            ..GraphOptions::default()
        };
        let database = Engine::create(directory, options)?;
        database.set_checkpoint_bytes(None);
        database.set_durability(Durability::None);
        let pool = Pool::new(1)?;
        database.apply(&[Update::AddVertex((NUM_VERTICES - 1).into())], Missing::Lenient, &pool)?;
        if self == Self::Properties {
            let mut first = Vec::new();
            self.push(0, 0, &mut first);
            database.apply(&first, Missing::Lenient, &pool)?;
        }
        if self == Self::Sets {
            let edges: Vec<_> = (0..SET_EDGES).map(|number| edge(0, number)).collect();
            let updates: Vec<_> = edges.iter().map(|&(source, target)| Update::add_edge(source, target)).collect();
            database.apply(&updates, Missing::Lenient, &pool)?;
        }
        Ok(database)
    }

    /// Adds the updates of a client's `number`th commit.
    pub(super) fn push(self, client: usize, number: u64, updates: &mut Vec<Update>) {
        let (source, target) = match self {
            Self::Sets => edge(0, (number * 64 + client as u64) % SET_EDGES),
            _ => edge(client, number),
        };
        match self {
            Self::Plain | Self::Parallel => updates.push(Update::add_edge(source, target)),
            Self::Sets => updates.push(Update::set_edge(source, target, "amount", number as i64)),
            Self::Properties => {
                let values: [(&str, OwnedValue); 3] = [
                    ("amount", (number as i64).into()),
                    ("rate", (number as f64 / 7.0).into()),
                    ("kind", ["card", "wire", "cash"][number as usize % 3].into()),
                ];
                updates.push(Update::add_edge_with(source, target, values));
            }
        }
    }
}

/// The number of edges that get new values.
const SET_EDGES: u64 = 1 << 16;

/// The seconds a commit, with clients that wait for each.
fn commit_time(
    setting: &Setting,
    kind: Kind,
    durability: Durability,
    num_clients: usize,
    time: Duration,
) -> Result<f64> {
    let database = kind.create(&setting.scratch.join("kinds.anden"))?;
    database.set_durability(durability);
    let clients = (0..num_clients).map(|client| -> Client<'_, u64> {
        let database = &database;
        Box::new(move |clock: &Clock<'_>| {
            let (mut number, mut updates) = (0, Vec::new());
            while clock.is_running() {
                updates.clear();
                kind.push(client, number, &mut updates);
                database.apply(&updates, Missing::Lenient, &setting.pool)?;
                number += 1;
            }
            Ok(number)
        })
    });
    let (counts, seconds) = side_by_side(clients.collect(), time)?;
    let num_commits: u64 = counts.iter().sum();
    ensure!(num_commits > 0, "nothing was committed");
    drop(database);
    Ok(seconds / num_commits as f64)
}

/// The seconds an edge, in batches of `size` one after the other.
fn batch_time(setting: &Setting, kind: Kind, size: u64, num_edges: u64) -> Result<f64> {
    let database = kind.create(&setting.scratch.join("kinds.anden"))?;
    let mut total = 0.0;
    let mut updates = Vec::new();
    for first in (0..num_edges).step_by(size as usize) {
        updates.clear();
        (first..first + size).for_each(|number| kind.push(0, number, &mut updates));
        let (time, applied) = seconds(|| database.apply(&updates, Missing::Lenient, &setting.pool));
        applied?;
        total += time;
    }
    ensure!(database.view()?.num_edges() > 0, "nothing was committed");
    Ok(total / num_edges as f64)
}

/// Measures all lines as times: a ratio of 2 is half the rate.
pub(super) fn lines(setting: &Setting, is_quick: bool, report: &mut Report) -> Result<()> {
    let (time, num_pairs) = if is_quick { (Duration::from_millis(10), 1) } else { (Duration::from_millis(400), 5) };
    let mut compare = |name: String, other: &str, most: f64, pairs: Pairs| {
        let (ratio, ..) = pairs.ratio();
        report.line(Line::compared(name, &pairs, other, at_most(most, ratio)));
    };
    let kinds = [
        (Kind::Properties, "three properties", 2.0),
        (Kind::Parallel, "multigraph", 1.25),
        (Kind::Sets, "set of a property", 2.0),
    ];
    for (durability_name, durability) in
        [("none", Durability::None), ("batched", Durability::batched()), ("sync", Durability::Sync)]
    {
        for num_clients in [1, 8] {
            for (kind, name, most) in kinds {
                let side = |kind| move |_| commit_time(setting, kind, durability, num_clients, time);
                let pairs = Pairs::alternate(num_pairs, side(kind), side(Kind::Plain))?;
                compare(format!("{name}, {durability_name}, {num_clients} clients"), "plain", most, pairs);
            }
        }
    }
    let largest = if is_quick { QUICK_LARGEST } else { LARGEST };
    for size in [1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|&size| size <= largest) {
        for (kind, name, most) in &kinds[..2] {
            let side = |kind| move |_| batch_time(setting, kind, size, largest);
            let pairs = Pairs::alternate(num_pairs, side(*kind), side(Kind::Plain))?;
            compare(format!("{name}, batches of {size}, an edge"), "plain", *most, pairs);
        }
    }
    std::fs::remove_dir_all(setting.scratch.join("kinds.anden"))?;
    Ok(())
}
