//! One-edge commits: the rate at each durability, by number of clients, waiting for each or with several in flight.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use anden_base::random::Random;
use anden_engine::{Durability, Engine, GraphOptions, KeyScheme, Missing, Update};
use anden_graph::Graph;
use anyhow::{Result, ensure};

use super::stage::{Client, Clock, quantile, side_by_side};
use crate::report::{Line, Report};
use crate::setting::Setting;

/// The number of vertices between which edges are committed.
pub(super) const NUM_VERTICES: u64 = 1 << 20;
/// The unanswered commits of a client with several in flight.
const IN_FLIGHT: usize = 16;
const CLIENTS: [usize; 3] = [1, 8, 64];

/// An empty directed graph without in-lists. Its changes stay in memory and in the WAL.
pub(super) fn empty(directory: &Path) -> Result<Engine> {
    if directory.exists() {
        std::fs::remove_dir_all(directory)?;
    }
    let options = GraphOptions { keys: KeyScheme::Dense, in_edges: false, ..GraphOptions::default() };
    let database = Engine::create(directory, options)?;
    database.set_checkpoint_bytes(None);
    let pool = anden_base::parallel::Pool::new(1)?;
    database.apply(&[Update::AddVertex((NUM_VERTICES - 1).into())], Missing::Lenient, &pool)?;
    Ok(database)
}

/// The edge in the `number`th commit of a client.
pub(super) fn edge(client: usize, number: u64) -> (u64, u64) {
    let mut random = Random::new(number << 8 | client as u64);
    (random.below_u64(NUM_VERTICES), random.below_u64(NUM_VERTICES))
}

/// A client that commits edges. Returns the number of answers.
fn client<'a>(setting: &'a Setting, database: &'a Engine, number: usize, in_flight: usize) -> Client<'a, u64> {
    Box::new(move |clock: &Clock<'_>| {
        let (mut num_submitted, mut num_answered) = (0, 0);
        let mut waiting = VecDeque::with_capacity(in_flight);
        while clock.is_running() {
            let (source, target) = edge(number, num_submitted);
            waiting.push_back(database.submit(&[Update::add_edge(source, target)], &setting.pool)?);
            num_submitted += 1;
            if waiting.len() == in_flight
                && let Some(first) = waiting.pop_front()
            {
                first.wait()?;
                num_answered += u64::from(clock.is_running());
            }
        }
        waiting.into_iter().try_for_each(|commit| commit.wait().map(|_| ()))?;
        Ok(num_answered)
    })
}

/// The durabilities with their names, and the targets of 8 clients with several in flight and one at a time.
fn durabilities() -> [(&'static str, Durability, [&'static str; 2]); 3] {
    [
        ("none", Durability::None, ["≥ 1000", "≥ 2000"]),
        ("batched", Durability::batched(), ["≥ 400", "≥ 1000"]),
        ("sync", Durability::Sync, ["", ""]),
    ]
}

/// The number of WAL syncs until now.
fn num_syncs(database: &Engine) -> u64 {
    database.live_stats().log_syncs
}

/// Measures all lines.
pub(super) fn lines(setting: &Setting, is_quick: bool, report: &mut Report) -> Result<()> {
    let time = Duration::from_millis(if is_quick { 20 } else { 1000 });
    for (name, durability, targets) in durabilities() {
        for num_clients in CLIENTS {
            for (way, in_flight) in [1, IN_FLIGHT].into_iter().enumerate() {
                let database = empty(&setting.scratch.join("commits.anden"))?;
                database.set_durability(durability);
                let (before, syncs_before) = (database.commit_stats(), num_syncs(&database));
                let clients = (0..num_clients).map(|number| client(setting, &database, number, in_flight));
                let rate = side_by_side(clients.collect(), time)?.0.iter().sum::<u64>() as f64 / time.as_secs_f64();
                let after = database.commit_stats();
                let groups = (after.groups - before.groups).max(1);
                let size = (after.commits - before.commits) as f64 / groups as f64;
                let how = if in_flight == 1 { "one at a time".into() } else { format!("{IN_FLIGHT} in flight") };
                let target = if num_clients == 8 { targets[way] } else { "" };
                let num_syncs = num_syncs(&database) - syncs_before;
                let separator = if target.is_empty() { "" } else { "; " };
                let bound = format!("{target}{separator}groups of {size:.1}, {num_syncs} syncs");
                let line = format!("{name}, {num_clients} clients, {how}");
                report.line(Line::figure(line, "k/s", rate / 1e3, bound));
                if name == "sync" && in_flight == 1 && num_clients > 1 {
                    let share = size / num_clients as f64;
                    report.line(Line::figure(
                        format!("{name}, {num_clients} clients: a group, of the waiting clients"),
                        "",
                        share,
                        "≥ 0.8",
                    ));
                }
                #[cfg(feature = "rivals")]
                if in_flight == 1 {
                    rivals(setting, name, num_clients, rate, time, report)?;
                }
                database.close()?;
            }
        }
    }
    latency(setting, if is_quick { 2_000 } else { 200_000 }, report)
}

/// Measures the latency of one client that waits for each commit.
fn latency(setting: &Setting, num_commits: u64, report: &mut Report) -> Result<()> {
    for (name, durability, targets) in [
        ("none", Durability::None, ["≤ 3", "≤ 50"]),
        ("batched", Durability::batched(), ["", ""]),
        ("sync", Durability::Sync, ["", ""]),
    ] {
        let database = empty(&setting.scratch.join("commits.anden"))?;
        database.set_durability(durability);
        let num_commits = if name == "sync" { num_commits / 50 } else { num_commits };
        let mut times = Vec::with_capacity(num_commits as usize);
        let syncs_before = num_syncs(&database);
        for number in 0..num_commits {
            let (source, target) = edge(0, number);
            let update = [Update::add_edge(source, target)];
            let start = Instant::now();
            database.apply(&update, Missing::Lenient, &setting.pool)?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
        let syncs = format!("{} syncs of {num_commits} commits", num_syncs(&database) - syncs_before);
        let bounds = [("median", 500, targets[0]), ("p99", 990, targets[1]), ("p999", 999, syncs.as_str())];
        for (what, per_mille, bound) in bounds {
            let time = quantile(&mut times, per_mille);
            report.line(Line::figure(format!("{name}, one client: {what}"), "µs", time, bound));
        }
        ensure!(database.view()?.num_edges() > 0, "nothing was committed");
        database.close()?;
    }
    Ok(())
}

/// Measures other stores with an equal number of clients.
#[cfg(feature = "rivals")]
fn rivals(
    setting: &Setting,
    durability: &str,
    num_clients: usize,
    ours: f64,
    time: Duration,
    report: &mut Report,
) -> Result<()> {
    use super::rivals::{Promise, stores};
    let promise = match durability {
        "none" => Promise::Nothing,
        "batched" => Promise::Batched,
        _ => Promise::Sync,
    };
    for (name, store) in stores(&setting.scratch, promise)? {
        let store = &*store;
        let client = |client: usize| -> Client<'_, u64> {
            Box::new(move |clock: &Clock<'_>| {
                let mut number = 0;
                while clock.is_running() {
                    let (source, target) = edge(client, number);
                    store.insert((source as u32, target as u32, 1))?;
                    number += 1;
                }
                Ok(number)
            })
        };
        let (counts, seconds) = side_by_side((0..num_clients).map(client).collect(), time)?;
        let theirs = counts.iter().sum::<u64>() as f64 / seconds;
        let ratio = ours / theirs;
        let target = match (promise, num_clients) {
            (Promise::Sync, 8) => "≥ 5 times SQLite",
            (Promise::Sync, 64) => "≥ 25 times SQLite",
            _ => "",
        };
        report.line(Line {
            other: Line::beside(theirs / 1e3, name),
            ratio: Some((ratio, ratio, ratio)),
            ..Line::figure(format!("{durability}, {num_clients} clients, one at a time"), "k/s", ours / 1e3, target)
        });
    }
    Ok(())
}
