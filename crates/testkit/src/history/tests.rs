//! Tests of the checkers on histories of a small database with selectable bugs.

use super::*;
use crate::Random;

/// A defect of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// Validates only the objects that a transaction appends to, not those that it reads.
    SnapshotIsolation,
    /// A commit writes back the list of its snapshot plus its own elements, and so drops concurrent appends.
    LostUpdate,
    /// Reads return uncommitted elements of other transactions.
    DirtyRead,
    /// Each read returns the commits until that moment, not the transaction's snapshot.
    FracturedRead,
    /// Every transaction passes validation.
    SkippedValidation,
    /// Some commits become visible late: after their answer, and after commits that follow them.
    ReorderedPublish,
}

const NUM_OBJECTS: Object = 5;
const FIRST_SET: Object = 3;
const NUM_CLIENTS: u32 = 6;

/// An element of an object.
#[derive(Clone, Debug)]
struct Entry {
    element: Element,
    /// The number of the commit.
    number: u64,
    /// The time from which reads return the element.
    seen_from: u64,
}

/// An open transaction.
#[derive(Clone, Debug)]
struct Open {
    run: Run,
    snapshot: u64,
    num_steps: usize,
}

struct Database {
    bug: Bug,
    random: Random,
    time: u64,
    objects: Vec<Vec<Entry>>,
    num_commits: u64,
    next_element: Element,
    open: Vec<Option<Open>>,
    history: History,
}

impl Database {
    fn history(bug: Bug, seed: u64, num_runs: usize) -> History {
        let mut this = Self {
            bug,
            random: Random::new(seed),
            time: 0,
            objects: vec![Vec::new(); NUM_OBJECTS as usize],
            num_commits: 0,
            next_element: 0,
            open: vec![None; NUM_CLIENTS as usize],
            history: History { runs: Vec::new(), first_set: FIRST_SET },
        };
        while this.history.runs.len() < num_runs {
            this.time += 1;
            let client = this.random.below(NUM_CLIENTS);
            match this.open[client as usize].take() {
                None => this.begin(client),
                Some(open) if open.run.actions.len() < open.num_steps => this.step(open),
                Some(open) => this.end(open),
            }
        }
        this.history
    }

    fn begin(&mut self, client: u32) {
        let run = Run { client, begun: self.time, ended: 0, actions: Vec::new(), outcome: Outcome::Aborted };
        let num_steps = 1 + self.random.below(4) as usize;
        self.open[client as usize] = Some(Open { run, snapshot: self.num_commits, num_steps });
    }

    fn step(&mut self, mut open: Open) {
        let object = self.random.below(NUM_OBJECTS);
        let action = if self.random.below(2) == 0 {
            self.next_element += 1;
            Action::Append(object, self.next_element)
        } else {
            Action::Read(object, self.read(&open, object))
        };
        open.run.actions.push(action);
        let client = open.run.client as usize;
        self.open[client] = Some(open);
    }

    fn read(&self, open: &Open, object: Object) -> Vec<Element> {
        let is_seen = |entry: &&Entry| {
            (entry.number <= open.snapshot || self.bug == Bug::FracturedRead) && entry.seen_from <= self.time
        };
        let mut seen: Vec<_> =
            self.objects[object as usize].iter().filter(is_seen).map(|entry| entry.element).collect();
        if self.bug == Bug::DirtyRead {
            seen.extend(
                self.open
                    .iter()
                    .flatten()
                    .flat_map(|other| other.run.appends())
                    .filter(|(o, _)| *o == object)
                    .map(|(_, e)| e),
            );
        }
        seen.extend(open.run.appends().filter(|(other, _)| *other == object).map(|(_, element)| element));
        if object >= FIRST_SET {
            seen.sort_unstable();
        }
        seen
    }

    fn end(&mut self, mut open: Open) {
        open.run.ended = self.time;
        let changed = |object: &Object| self.objects[*object as usize].iter().any(|entry| entry.number > open.snapshot);
        let is_valid = open.run.actions.iter().all(|action| match (self.bug, action) {
            (Bug::SkippedValidation | Bug::LostUpdate | Bug::FracturedRead, _) => true,
            (Bug::SnapshotIsolation, Action::Append(object, _)) => !changed(object),
            (Bug::SnapshotIsolation, _) | (_, Action::Append(..)) => true,
            (_, Action::Read(object, _)) => !changed(object),
        });
        let writes = open.run.appends().next().is_some();
        if (is_valid || !writes) && self.random.below(10) > 0 {
            // A read-only transaction takes the position directly after its snapshot.
            open.run.outcome = Outcome::Committed(open.snapshot, 1);
            if writes {
                self.num_commits += 1;
                open.run.outcome = Outcome::Committed(self.num_commits, 0);
                self.append(&open);
            }
        }
        self.history.runs.push(open.run);
    }

    fn append(&mut self, open: &Open) {
        let late = self.bug == Bug::ReorderedPublish && self.random.below(4) == 0;
        let seen_from = self.time + if late { 20 } else { 0 };
        for (object, element) in open.run.appends() {
            let entries = &mut self.objects[object as usize];
            if self.bug == Bug::LostUpdate {
                entries.retain(|entry| entry.number <= open.snapshot || entry.number == self.num_commits);
            }
            entries.push(Entry { element, number: self.num_commits, seen_from });
        }
    }
}

#[test]
fn serializable_history_passes_both_checkers() {
    for seed in 0..30 {
        println!("seed {seed}");
        let history = Database::history(Bug::None, seed, 1_000);
        assert!(history.num_committed() > 300, "{}", history.num_committed());
        find_cycle(&history).unwrap();
        replay(&history).unwrap();
    }
}

/// The number of histories that each checker rejects, out of ten.
fn num_caught(bug: Bug) -> (usize, usize) {
    let histories: Vec<_> = (0..10).map(|seed| Database::history(bug, seed + 500, 300)).collect();
    let count =
        |check: fn(&History) -> Result<(), String>| histories.iter().filter(|history| check(history).is_err()).count();
    (count(find_cycle), count(replay))
}

#[test]
fn every_planted_bug_is_found_by_both_checkers() {
    assert_eq!(num_caught(Bug::None), (0, 0));
    for bug in [
        Bug::SnapshotIsolation,
        Bug::LostUpdate,
        Bug::DirtyRead,
        Bug::FracturedRead,
        Bug::SkippedValidation,
        Bug::ReorderedPublish,
    ] {
        assert_eq!(num_caught(bug), (10, 10), "{bug:?}");
    }
}

fn run(client: u32, (begun, ended): (u64, u64), position: u64, actions: &[Action]) -> Run {
    Run { client, begun, ended, actions: actions.to_vec(), outcome: Outcome::Committed(position, 0) }
}

#[test]
fn small_cycles_are_found() {
    use Action::{Append, Read};
    let check = |runs: Vec<Run>| find_cycle(&History { runs, first_set: 10 });
    // Write skew.
    let skew =
        vec![run(0, (1, 5), 1, &[Read(0, vec![]), Append(1, 1)]), run(1, (2, 6), 2, &[Read(1, vec![]), Append(0, 2)])];
    assert!(check(skew).unwrap_err().starts_with("a cycle"));
    // A later transaction misses a commit that was answered before it began.
    let stale = vec![run(0, (1, 2), 1, &[Append(0, 1)]), run(1, (3, 4), 2, &[Read(0, vec![])])];
    assert!(check(stale.clone()).unwrap_err().contains("real time"));
    assert!(replay(&History { runs: stale, first_set: 10 }).is_err());
    // Transactions that overlap in time may commit in either order.
    check(vec![run(0, (1, 4), 2, &[Append(0, 1)]), run(1, (3, 5), 1, &[Read(0, vec![])])]).unwrap();
    // The positions contradict real time.
    let turned = vec![run(0, (1, 2), 2, &[Append(0, 1)]), run(1, (3, 4), 1, &[Append(1, 2)])];
    assert!(replay(&History { runs: turned, first_set: 10 }).is_err());
    let half = vec![run(0, (1, 9), 1, &[Append(0, 1), Append(0, 2)]), run(1, (3, 4), 2, &[Read(0, vec![1])])];
    assert!(check(half).unwrap_err().contains("committed as one"));
}

#[test]
fn read_only_transactions_replay_in_time_order() {
    use Action::{Append, Read};
    // The order of the runs in the history does not matter.
    let early = run(1, (3, 4), 1, &[Read(0, vec![1])]);
    let late = run(2, (5, 6), 1, &[Read(0, vec![1])]);
    let write = run(0, (1, 2), 0, &[Append(0, 1)]);
    let check = |runs: &[&Run]| replay(&History { runs: runs.iter().map(|&run| run.clone()).collect(), first_set: 10 });
    check(&[&write, &early, &late]).unwrap();
    check(&[&late, &early, &write]).unwrap();
}
