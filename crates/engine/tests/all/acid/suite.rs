//! The suite, for the kind of graph in the name of the parent module.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{Engine, Error, ErrorKind, IndexKind, Key, MergeScope, OptimisticTransaction, Result};
use anden_graph::Graph;
use anden_graph::property::OwnedValue;
use anden_snapshots::Direction;
use anden_testkit::Random;

use super::kind;

const NUM_CLIENTS: u64 = 4;
const ROUNDS: u64 = 150;

/// The body of a transaction.
type Body<'a> = dyn Fn(&mut OptimisticTransaction<'_>) -> Result<()> + Sync + 'a;

struct World {
    db: Engine,
    pool: Pool,
}

fn key(number: u64) -> Key {
    number.into()
}

impl World {
    /// Creates the persons below `num_persons` with these values.
    fn new(num_persons: u64, values: &[(&str, i64)]) -> Self {
        let db = Engine::in_memory(kind(module_path!()).0).unwrap();
        let pool = Pool::new(1).unwrap();
        let world = Self { db, pool };
        world
            .transact(|tx| {
                for person in 0..num_persons {
                    tx.add_vertex(&key(person))?;
                    values.iter().try_for_each(|(name, value)| set(tx, person, name, *value))?;
                }
                Ok(())
            })
            .unwrap();
        world
    }

    fn transact<R>(&self, body: impl FnMut(&mut OptimisticTransaction<'_>) -> Result<R>) -> Result<R> {
        self.db.transact(&self.pool, body)
    }

    fn begin(&self) -> OptimisticTransaction<'_> {
        self.db.begin(&self.pool).unwrap()
    }

    /// Runs `body(client, round, random)` for concurrent clients. Each round begins at a barrier.
    fn clients(&self, body: impl Fn(u64, u64, &mut Random) + Sync) {
        let start = Barrier::new(NUM_CLIENTS as usize);
        std::thread::scope(|scope| {
            for client in 0..NUM_CLIENTS {
                let (start, body) = (&start, &body);
                scope.spawn(move || {
                    let random = &mut Random::new(client + 17);
                    for round in 0..ROUNDS {
                        start.wait();
                        body(client, round, random);
                    }
                });
            }
        });
    }

    /// Runs two transactions that both begin before either commits. Returns the number of commits.
    fn both(&self, bodies: [&Body<'_>; 2]) -> usize {
        let begun = Barrier::new(2);
        let num_committed = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for body in bodies {
                scope.spawn(|| {
                    let mut tx = self.begin();
                    begun.wait();
                    body(&mut tx).unwrap();
                    num_committed.fetch_add(u64::from(committed(tx)), Ordering::Relaxed);
                });
            }
        });
        num_committed.into_inner() as usize
    }
}

fn get(tx: &OptimisticTransaction<'_>, person: u64, name: &str) -> Result<i64> {
    Ok(match tx.vertex_value(&key(person), name)? {
        OwnedValue::I64(value) => value,
        OwnedValue::Null => 0,
        value => panic!("{value:?}"),
    })
}

fn set(tx: &mut OptimisticTransaction<'_>, person: u64, name: &str, value: i64) -> Result<()> {
    tx.set_vertex_value(&key(person), name, value.into())
}

fn text(tx: &OptimisticTransaction<'_>, person: u64, name: &str) -> Result<String> {
    Ok(tx.vertex_value(&key(person), name)?.as_value().to_string())
}

/// Whether the transaction committed. A conflict is no failure.
fn committed(tx: OptimisticTransaction<'_>) -> bool {
    match tx.commit() {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::Conflict => false,
        Err(error) => panic!("{error}"),
    }
}

/// Atomicity on commit and rollback: a new person gets an edge and a text, or nothing.
#[test]
fn atomicity() {
    let world = World::new(1, &[]);
    let num_given_up = AtomicU64::new(0);
    world.clients(|client, round, random| {
        let gives_up = random.below(3) == 0;
        num_given_up.fetch_add(u64::from(gives_up), Ordering::Relaxed);
        let person = 1 + client * ROUNDS + round;
        let result = world.transact(|tx| {
            let mails = text(tx, 0, "mails")?;
            tx.set_vertex_value(&key(0), "mails", format!("{mails} {person}").as_str().into())?;
            tx.add_edge(&key(0), &key(person), kind(module_path!()).1)?;
            if gives_up { Err(Error::Options { reason: "given up".into() }) } else { Ok(()) }
        });
        assert_eq!(result.is_err(), gives_up);
    });
    let num_committed = NUM_CLIENTS * ROUNDS - num_given_up.into_inner();
    assert!(num_committed > NUM_CLIENTS * ROUNDS / 2);
    let tx = world.begin();
    assert_eq!(text(&tx, 0, "mails").unwrap().split_whitespace().count() as u64, num_committed);
    assert_eq!(tx.degree(&key(0), Direction::Out).unwrap() as u64, num_committed);
    assert_eq!((tx.num_vertices() as u64, tx.num_edges()), (num_committed + 1, num_committed));
}

/// G0, dirty writes: concurrent writes to two persons have one order at both.
#[test]
fn dirty_writes() {
    let world = World::new(2, &[]);
    world.clients(|client, round, _| {
        world
            .transact(|tx| {
                for person in 0..2 {
                    let before = text(tx, person, "history")?;
                    let after = format!("{before} {client}.{round}");
                    tx.set_vertex_value(&key(person), "history", after.as_str().into())?;
                }
                Ok(())
            })
            .unwrap();
    });
    let tx = world.begin();
    let history = text(&tx, 0, "history").unwrap();
    assert_eq!(history, text(&tx, 1, "history").unwrap());
    assert_eq!(history.split_whitespace().count() as u64, NUM_CLIENTS * ROUNDS);
}

/// G1a and G1b: no transaction reads an aborted value (negative) or an intermediate value (even).
#[test]
fn aborted_and_intermediate_reads() {
    let world = World::new(1, &[("version", 1)]);
    let num_changes = AtomicU64::new(0);
    world.clients(|client, _, _| match client {
        0 => {
            let mut tx = world.begin();
            set(&mut tx, 0, "version", -1).unwrap();
            drop(tx);
        }
        1 => {
            let mut tx = world.begin();
            let version = get(&tx, 0, "version").unwrap();
            set(&mut tx, 0, "version", version + 1).unwrap();
            set(&mut tx, 0, "version", version + 2).unwrap();
            num_changes.fetch_add(u64::from(committed(tx)), Ordering::Relaxed);
        }
        _ => {
            let version = get(&world.begin(), 0, "version").unwrap();
            assert!(version > 0 && version % 2 == 1, "{version}");
        }
    });
    assert_eq!(num_changes.into_inner(), ROUNDS);
    assert_eq!(get(&world.begin(), 0, "version").unwrap() as u64, 1 + 2 * ROUNDS);
}

/// G1c, circular flow: if each of two transactions writes one person and reads the other, at most one sees the other's
/// write.
#[test]
fn circular_information_flow() {
    let world = World::new(2, &[("version", 0)]);
    let num_both = AtomicU64::new(0);
    for round in 1..=ROUNDS as i64 {
        let seen = [AtomicU64::new(0), AtomicU64::new(0)];
        let body = |own: usize| {
            let (world, seen) = (&world, &seen);
            move |tx: &mut OptimisticTransaction<'_>| {
                let _ = world;
                set(tx, own as u64, "version", round)?;
                seen[own].store(get(tx, 1 - own as u64, "version")? as u64, Ordering::Relaxed);
                Ok(())
            }
        };
        let num_committed = world.both([&body(0), &body(1)]);
        assert!(num_committed >= 1, "one of them wins");
        num_both.fetch_add(u64::from(num_committed == 2), Ordering::Relaxed);
        let both_seen = seen.iter().all(|seen| seen.load(Ordering::Relaxed) == round as u64);
        assert!(!both_seen, "each came before the other");
        // If neither saw the other's write, they have no serial order.
        assert!(num_committed == 1, "both were committed, and neither saw the other");
    }
}

/// IMP and PMP: a value or a query result that is read twice is equal both times.
#[test]
fn many_preceders() {
    let world = World::new(2, &[("version", 0)]);
    let num_changes = AtomicU64::new(0);
    world.clients(|client, round, _| {
        if client < 2 {
            world
                .transact(|tx| {
                    let version = get(tx, 0, "version")?;
                    set(tx, 0, "version", version + 1)?;
                    tx.add_edge(&key(1), &key(100 + client * ROUNDS + round), kind(module_path!()).1)
                })
                .unwrap();
            num_changes.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let tx = world.begin();
        let look =
            || (get(&tx, 0, "version").unwrap(), tx.neighbors(&key(1), Direction::Out).unwrap(), tx.num_vertices());
        let first = look();
        std::thread::yield_now();
        assert_eq!(look(), first);
        assert_eq!(first.0 as usize, first.1.len(), "they change together");
    });
    assert_eq!(num_changes.into_inner(), 2 * ROUNDS);
}

/// OTV and FR: four persons change together. A transaction that reads them twice sees one version of all.
#[test]
fn observed_transactions_do_not_vanish_and_reads_are_whole() {
    let world = World::new(4, &[("version", 0)]);
    world.clients(|client, _, _| {
        if client < 2 {
            let change = |tx: &mut OptimisticTransaction<'_>| {
                (0..4).try_for_each(|person| {
                    let version = get(tx, person, "version")?;
                    set(tx, person, "version", version + 1)
                })
            };
            return world.transact(change).unwrap();
        }
        let look = || {
            let tx = world.begin();
            [0, 1, 2, 3].map(|person| get(&tx, person, "version").unwrap())
        };
        let (first, second) = (look(), look());
        assert!(first.iter().all(|version| *version == first[0]), "{first:?}");
        assert!(second.iter().all(|version| *version == second[0] && *version >= first[0]), "{first:?}, {second:?}");
    });
    assert_eq!(get(&world.begin(), 3, "version").unwrap() as u64, 2 * ROUNDS);
}

/// LU: a counter that all transactions increment counts all of them.
#[test]
fn lost_updates() {
    let world = World::new(1, &[("friends", 0)]);
    world.clients(|client, round, _| {
        let friend = 1 + client * ROUNDS + round;
        world
            .transact(|tx| {
                let friends = get(tx, 0, "friends")?;
                set(tx, 0, "friends", friends + 1)?;
                tx.add_edge(&key(0), &key(friend), kind(module_path!()).1)
            })
            .unwrap();
    });
    let tx = world.begin();
    assert_eq!(get(&tx, 0, "friends").unwrap() as u64, NUM_CLIENTS * ROUNDS);
    assert_eq!(tx.degree(&key(0), Direction::Out).unwrap() as u64, NUM_CLIENTS * ROUNDS);
    for round in 1..=ROUNDS as i64 {
        let raise = |tx: &mut OptimisticTransaction<'_>| {
            get(tx, 0, "friends").and_then(|friends| set(tx, 0, "friends", friends + 1))
        };
        assert_eq!(world.both([&raise, &raise]), 1);
        assert_eq!(get(&world.begin(), 0, "friends").unwrap(), (NUM_CLIENTS * ROUNDS) as i64 + round);
    }
}

/// WS: two transactions withdraw from different accounts if the sum suffices, which it does once only.
#[test]
fn write_skew() {
    let world = World::new(2, &[]);
    for _ in 0..ROUNDS {
        world.transact(|tx| set(tx, 0, "value", 70).and_then(|()| set(tx, 1, "value", 80))).unwrap();
        let take = |person| {
            move |tx: &mut OptimisticTransaction<'_>| {
                let values = [get(tx, 0, "value")?, get(tx, 1, "value")?];
                if values[0] + values[1] >= 100 {
                    set(tx, person, "value", values[person as usize] - 100)?;
                }
                Ok(())
            }
        };
        assert_eq!(world.both([&take(0), &take(1)]), 1);
        let tx = world.begin();
        assert!(get(&tx, 0, "value").unwrap() + get(&tx, 1, "value").unwrap() >= 0);
    }
}

/// Each of two transactions adds an edge if it does not see the other's: only one commits.
#[test]
fn write_skew_through_an_absent_edge() {
    let world = World::new(2, &[]);
    for _ in 0..ROUNDS {
        let follow = |person: u64| {
            move |tx: &mut OptimisticTransaction<'_>| {
                let other = 1 - person;
                match tx.has_edge(&key(other), &key(person))? {
                    true => Ok(()),
                    false => tx.add_edge(&key(person), &key(other), kind(module_path!()).1).map(drop),
                }
            }
        };
        assert_eq!(world.both([&follow(0), &follow(1)]), 1);
        assert_eq!(world.begin().num_edges(), 1);
        world.transact(|tx| tx.remove_edge(&key(0), &key(1)).and_then(|()| tx.remove_edge(&key(1), &key(0)))).unwrap();
    }
}

/// Each of two transactions reads both lists and adds to the other one: only one finds both empty.
#[test]
fn write_skew_through_two_adjacency_lists() {
    let world = World::new(4, &[]);
    for (direction, round) in [Direction::Out, Direction::In]
        .into_iter()
        .flat_map(|direction| (0..ROUNDS).map(move |round| (direction, round)))
    {
        let join = |group: u64| {
            move |tx: &mut OptimisticTransaction<'_>| {
                let lens = [tx.degree(&key(0), direction)?, tx.degree(&key(1), direction)?];
                if lens == [0, 0] {
                    let (from, to) = if direction == Direction::Out { (group, 2 + group) } else { (2 + group, group) };
                    tx.add_edge(&key(from), &key(to), kind(module_path!()).1)?;
                }
                Ok(())
            }
        };
        assert_eq!(world.both([&join(0), &join(1)]), 1, "round {round}");
        assert_eq!(world.begin().num_edges(), 1);
        world
            .transact(|tx| (0..2).try_for_each(|v| tx.remove_vertex(&key(v)).and_then(|()| tx.add_vertex(&key(v)))))
            .unwrap();
    }
}

/// Each of two transactions creates a vertex if the other's does not exist. Also, one removes a vertex while another
/// adds an edge to it because it exists.
#[test]
fn write_skew_through_the_existence_of_vertices() {
    let world = World::new(1, &[]);
    for round in 0..ROUNDS {
        // Alternates between keys that never existed and keys that were removed.
        let first = if round % 2 == 0 { 10 + 2 * round } else { 8 + 2 * round };
        let make = |own: u64| {
            move |tx: &mut OptimisticTransaction<'_>| match tx.has_vertex(&key(first + 1 - own))? {
                true => Ok(()),
                false => tx.add_vertex(&key(first + own)),
            }
        };
        assert_eq!(world.both([&make(0), &make(1)]), 1);
        assert_eq!(world.begin().num_vertices(), 2);
        let there = if world.begin().has_vertex(&key(first)).unwrap() { first } else { first + 1 };
        let remove = |tx: &mut OptimisticTransaction<'_>| match tx.neighbors(&key(0), Direction::Out)?.is_empty() {
            true => tx.remove_vertex(&key(there)),
            false => Ok(()),
        };
        let link = |tx: &mut OptimisticTransaction<'_>| match tx.has_vertex(&key(there))? {
            true => tx.add_edge(&key(0), &key(there), kind(module_path!()).1).map(drop),
            false => Ok(()),
        };
        assert_eq!(world.both([&remove, &link]), 1);
        let tx = world.begin();
        assert_eq!(tx.num_edges() as usize + 1, tx.num_vertices(), "an edge and both its ends, or neither");
        world.transact(|tx| tx.remove_vertex(&key(there))).unwrap();
    }
}

/// Two persons, one with the value 0 of "name", with each kind of index.
fn worlds_with_names() -> impl Iterator<Item = World> {
    [None, Some(IndexKind::Plain), Some(IndexKind::Unique)].into_iter().map(|index| {
        let world = World::new(2, &[]);
        world.transact(|tx| set(tx, 0, "name", 0)).unwrap();
        if let Some(kind) = index {
            world.db.create_index("name", kind, &Silent).unwrap();
        }
        world
    })
}

/// Two transactions each find no vertex with a value, and give it to a vertex: only one commits.
#[test]
fn write_skew_through_an_absent_value() {
    for world in worlds_with_names() {
        for round in 1..=ROUNDS as i64 {
            let take = |own: u64| {
                move |tx: &mut OptimisticTransaction<'_>| match tx.find("name", &round.into())?.is_empty() {
                    true => set(tx, own, "name", round),
                    false => Ok(()),
                }
            };
            assert_eq!(world.both([&take(0), &take(1)]), 1, "round {round}");
            assert_eq!(world.begin().find("name", &round.into()).unwrap().len(), 1, "round {round}");
            // The values are in a snapshot, in the memtable, or in both.
            if round % 20 == 0 {
                world.db.checkpoint(None).unwrap();
            }
        }
    }
}

/// Two transactions each find two vertices with a value, and take it from one of them: only one commits.
#[test]
fn write_skew_through_a_found_value() {
    for world in worlds_with_names().filter(|world| !is_unique(world)) {
        for round in 1..=ROUNDS as i64 {
            world.transact(|tx| (0..2).try_for_each(|person| set(tx, person, "name", round))).unwrap();
            let leave = |own: u64| {
                move |tx: &mut OptimisticTransaction<'_>| match tx.find("name", &round.into())?.len() {
                    2 if round % 2 == 0 => tx.remove_vertex(&key(own)),
                    2 => set(tx, own, "name", -1),
                    _ => Ok(()),
                }
            };
            assert_eq!(world.both([&leave(0), &leave(1)]), 1, "round {round}");
            assert_eq!(world.begin().find("name", &round.into()).unwrap().len(), 1, "round {round}");
        }
    }
}

/// Two transactions insert one unique value, and search nothing: only one commits.
#[test]
fn a_unique_value_is_inserted_once() {
    for world in worlds_with_names().filter(is_unique) {
        for round in 1..=ROUNDS {
            let insert =
                |own: u64| move |tx: &mut OptimisticTransaction<'_>| set(tx, 2 * round + own, "name", round as i64);
            assert_eq!(world.both([&insert(0), &insert(1)]), 1, "round {round}");
            assert_eq!(world.begin().find("name", &round.into()).unwrap().len(), 1, "round {round}");
        }
    }
}

fn is_unique(world: &World) -> bool {
    world.db.indexes().iter().any(|index| index.kind == IndexKind::Unique)
}

/// All transactions change the edges of one hub. Blind changes do not conflict; changes that read it commit in the end.
#[test]
fn a_hub_is_no_livelock() {
    let world = World::new(1, &[("degree", 0)]);
    world.clients(|client, round, _| {
        let other = 1 + client * ROUNDS + round;
        match client {
            0 => world
                .transact(|tx| tx.insert_edge(&key(0), &key(other), kind(module_path!()).1))
                .map(|is_new| assert!(is_new)),
            1 => world.transact(|tx| tx.add_edge(&key(0), &key(other), kind(module_path!()).1)).map(drop),
            _ => world.transact(|tx| {
                tx.add_edge(&key(0), &key(other), kind(module_path!()).1)?;
                let degree = tx.degree(&key(0), Direction::Out)?;
                set(tx, 0, "degree", degree as i64)
            }),
        }
        .unwrap();
    });
    let tx = world.begin();
    assert_eq!(tx.degree(&key(0), Direction::Out).unwrap() as u64, NUM_CLIENTS * ROUNDS);
    assert!(world.db.commit_stats().commits > NUM_CLIENTS * ROUNDS);
}

/// Out-lists, in-lists, degrees and counts agree in every view, beside added and removed edges and vertices,
/// checkpoints and merges.
#[test]
fn lists_degrees_and_counts_agree() {
    let world = World::new(30, &[]);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                world.db.checkpoint(None).unwrap();
                world.db.merge(MergeScope::All, &world.pool, &Silent).unwrap();
            }
        });
        world.clients(|client, _, random| {
            let person = |random: &mut Random| key(random.below(30).into());
            if client == 3 {
                return agree(&world.db.view().unwrap());
            }
            let (u, v, what) = (person(random), person(random), random.below(8));
            world
                .transact(|tx| match what {
                    0 => tx.remove_vertex(&u),
                    1..4 => tx.remove_edge(&u, &v),
                    _ => tx.insert_edge(&u, &v, kind(module_path!()).1).map(drop),
                })
                .unwrap();
        });
        is_done.store(true, Ordering::Relaxed);
    });
    agree(&world.db.view().unwrap());
    assert!(world.db.commit_stats().commits > ROUNDS);
}

fn agree(view: &anden_snapshots::SnapshotView) {
    let (mut out, mut into) = (Vec::new(), Vec::new());
    let mut num_vertices = 0;
    for vertex in 0..view.vertex_bound() as u32 {
        let before = (out.len(), into.len());
        let _ = view.for_each_fragment(Direction::Out, vertex, |targets| {
            out.extend(targets.iter().map(|&target| (vertex, target)));
            std::ops::ControlFlow::Continue(())
        });
        let _ = view.for_each_fragment(Direction::In, vertex, |sources| {
            into.extend(sources.iter().map(|&source| (source, vertex)));
            std::ops::ControlFlow::Continue(())
        });
        assert_eq!(
            (view.degree(Direction::Out, vertex), view.degree(Direction::In, vertex)),
            (out.len() - before.0, into.len() - before.1)
        );
        assert!(view.is_live(vertex) || before == (out.len(), into.len()), "{vertex} is none and has edges");
        num_vertices += usize::from(view.is_live(vertex));
    }
    out.sort_unstable();
    into.sort_unstable();
    assert_eq!(out, into);
    assert_eq!((out.len() as u64, num_vertices), (view.num_edges(), view.num_vertices()));
}
