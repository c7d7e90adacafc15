//! Random histories of clients beside each other, with checkpoints and merges between them: both checkers find an order in
//! which the transactions could have run one after the other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};

use anden_engine::{
    Database, EdgeWeight, Error, ErrorKind, GraphOptions, IndexKind, Key, KeyScheme, MergeScope, Result, Transaction,
};
use base::parallel::Pool;
use base::progress::Silent;
use graph::{Direction, WeightType};
use lama::Side;
use testkit::history::{Action, Element, History, Object, Outcome, Run, find_cycle, replay};
use testkit::{Random, scaled};

const NUM_CLIENTS: u32 = 4;
/// Objects are values of vertices, then out-lists, then in-lists, then the vertices with a value of a property, then the
/// vertex with a unique value.
const NUM_LISTS: Object = 6;
const NUM_OUT: Object = 6;
const NUM_IN: Object = 4;
const NUM_OBJECTS: Object = 20;
/// Each of these unique values is sought while as many elements are made: clients meet at the newest one.
const ELEMENTS_OF_NAME: Element = 12;

fn vertex(object: Object) -> Key {
    u64::from(object).into()
}

fn neighbor(element: Element) -> Key {
    (1_000_000 + element).into()
}

/// A vertex that gets the number of an object as a value.
fn tagged(element: Element) -> Key {
    (2_000_000 + element).into()
}

/// A vertex that gets the number of an object as its unique value.
fn named(element: Element) -> Key {
    (3_000_000 + element).into()
}

fn is_name(object: Object) -> bool {
    object >= NUM_OBJECTS
}

/// The element that made a vertex.
fn element(key: Key) -> Element {
    match key {
        Key::Integer(key) => key % 1_000_000,
        Key::String(key) => panic!("{key}"),
    }
}

fn is_tag(object: Object) -> bool {
    object >= NUM_LISTS + NUM_OUT + NUM_IN
}

fn append(tx: &mut Transaction<'_>, object: Object, element: Element, weight: Option<EdgeWeight>) -> Result<()> {
    if object < NUM_LISTS {
        let before = tx.vertex_value(&vertex(object), "list")?.as_value().to_string();
        return tx.set_vertex_value(&vertex(object), "list", format!("{before} {element}").as_str().into());
    }
    if is_tag(object) {
        return tx.set_vertex_value(&tagged(element), "tag", i64::from(object).into());
    }
    match object < NUM_LISTS + NUM_OUT {
        true => tx.add_edge(&vertex(object), &neighbor(element), weight).map(drop),
        false => tx.add_edge(&neighbor(element), &vertex(object), weight).map(drop),
    }
}

/// Gives a new vertex a unique value. Without a search, that reads which vertex has the value.
fn claim(tx: &mut Transaction<'_>, object: Object, new: Element, actions: &mut Vec<Action>) -> Result<()> {
    match tx.set_vertex_value(&named(new), "name", i64::from(object).into()) {
        Ok(()) => actions.extend([Action::Read(object, Vec::new()), Action::Append(object, new)]),
        Err(Error::UniqueViolation { holder, .. }) => {
            let holder = element(holder.parse::<u64>().unwrap().into());
            actions.push(Action::Read(object, vec![holder]));
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

fn read(tx: &Transaction<'_>, object: Object) -> Result<Vec<Element>> {
    if object < NUM_LISTS {
        let list = tx.vertex_value(&vertex(object), "list")?.as_value().to_string();
        return Ok(list.split_whitespace().map(|element| element.parse().unwrap()).collect());
    }
    let side = if object < NUM_LISTS + NUM_OUT { Side::Out } else { Side::In };
    if is_tag(object) {
        let name = if is_name(object) { "name" } else { "tag" };
        let mut elements: Vec<_> = tx.find(name, &i64::from(object).into())?.into_iter().map(element).collect();
        elements.sort_unstable();
        return Ok(elements);
    }
    let mut elements: Vec<_> = tx.neighbors(&vertex(object), side)?.into_iter().map(element).collect();
    assert_eq!(tx.degree(&vertex(object), side)?, elements.len());
    elements.sort_unstable();
    Ok(elements)
}

/// What clients share.
struct World<'a> {
    db: &'a Database,
    pool: &'a Pool,
    clock: AtomicU64,
    elements: AtomicU64,
    runs: Mutex<Vec<Run>>,
}

impl World<'_> {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Steps of a transaction, as random as can be, of which some are given up.
    fn run(&self, client: u32, random: &mut Random) -> Result<Run> {
        let begun = self.now();
        let mut tx = self.db.begin(self.pool)?;
        let mut actions = Vec::new();
        for _ in 0..1 + random.below(4) {
            let mut object = random.below(NUM_OBJECTS + 2);
            if is_name(object) {
                object = NUM_OBJECTS + (self.elements.load(Ordering::Relaxed) / ELEMENTS_OF_NAME) as Object;
            }
            let is_write = random.below(2) == 0;
            if is_write && is_name(object) {
                claim(&mut tx, object, self.elements.fetch_add(1, Ordering::Relaxed), &mut actions)?;
                continue;
            }
            actions.push(if is_write {
                let element = self.elements.fetch_add(1, Ordering::Relaxed);
                append(&mut tx, object, element, self.db.options().weight_type.map(|_| 1.into()))?;
                Action::Append(object, element)
            } else {
                Action::Read(object, read(&tx, object)?)
            });
            if random.below(8) == 0 {
                std::thread::yield_now();
            }
        }
        let writes = !tx.is_read_only();
        let outcome = match random.below(20) {
            0 => {
                drop(tx);
                Outcome::Aborted
            }
            _ => match tx.commit() {
                Ok(at) if writes => Outcome::Committed(at.epoch, at.place.into()),
                // Right behind what it saw.
                Ok(at) => Outcome::Committed(at.epoch, u64::MAX),
                Err(error) if error.kind() == ErrorKind::Conflict => Outcome::Aborted,
                Err(Error::UniqueViolation { .. }) => Outcome::Aborted,
                Err(error) => return Err(error),
            },
        };
        Ok(Run { client, begun, ended: self.now(), actions, outcome })
    }
}

fn history(options: GraphOptions, seed: u64, num_runs: usize, upkeep: bool) -> History {
    let pool = Pool::new(1).unwrap();
    let db = Database::in_memory(options).unwrap();
    db.transact(&pool, |tx| -> Result<()> {
        tx.set_vertex_value(&vertex(0), "tag", i64::from(NUM_OBJECTS).into())?;
        tx.set_vertex_value(&vertex(0), "name", 0.into())?;
        (0..NUM_OBJECTS).try_for_each(|object| tx.add_vertex(&vertex(object)))
    })
    .unwrap();
    db.create_index("name", IndexKind::Unique, &Silent).unwrap();
    // Every other history has an index of tags, and in some it comes and goes.
    if seed.is_multiple_of(2) {
        db.create_index("tag", IndexKind::Plain, &Silent).unwrap();
    }
    let world =
        World { db: &db, pool: &pool, clock: AtomicU64::new(0), elements: AtomicU64::new(1), runs: Mutex::default() };
    let is_done = AtomicBool::new(false);
    let start = Barrier::new(NUM_CLIENTS as usize);
    std::thread::scope(|scope| {
        let world = &world;
        let clients: Vec<_> = (0..NUM_CLIENTS)
            .map(|client| {
                let start = &start;
                scope.spawn(move || {
                    let mut random = Random::new(seed << 8 | u64::from(client));
                    start.wait();
                    for _ in 0..num_runs / NUM_CLIENTS as usize {
                        let run = world.run(client, &mut random).unwrap();
                        world.runs.lock().unwrap().push(run);
                    }
                })
            })
            .collect();
        if upkeep {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    db.checkpoint(None).unwrap();
                    db.merge(MergeScope::All, &pool, &Silent).unwrap();
                    match db.indexes().iter().any(|index| index.property == "tag") {
                        _ if seed % 4 < 2 => {}
                        false => db.create_index("tag", IndexKind::Plain, &Silent).unwrap(),
                        true => db.drop_index("tag").unwrap(),
                    }
                }
            });
        }
        clients.into_iter().for_each(|client| client.join().unwrap());
        is_done.store(true, Ordering::Relaxed);
    });
    let runs = world.runs.into_inner().unwrap();
    History { runs, first_set: NUM_LISTS }
}

/// As many histories as [`scaled`] says.
fn check(options: GraphOptions, usual: u64, upkeep: bool) {
    for seed in 0..scaled(usual) {
        let history = history(options, seed, 1_000, upkeep);
        let num_committed = history.num_committed();
        assert!(num_committed >= 200, "seed {seed}: only {num_committed} of 1,000 transactions were committed");
        find_cycle(&history).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        replay(&history).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
}

fn options(direction: Direction) -> GraphOptions {
    GraphOptions { keys: KeyScheme::Integer, direction, ..GraphOptions::default() }
}

#[test]
fn transactions_are_serializable() {
    check(options(Direction::Directed), 60, false);
}

#[test]
fn transactions_of_an_undirected_graph_are_serializable() {
    check(options(Direction::Undirected), 20, false);
}

#[test]
fn transactions_beside_checkpoints_and_merges_are_serializable() {
    check(options(Direction::Directed), 20, true);
}

#[test]
fn transactions_of_every_kind_of_graph_are_serializable() {
    let plain = options(Direction::Directed);
    let weighted = GraphOptions { weight_type: Some(WeightType::I64), ..plain };
    let with_properties = |options| GraphOptions { edge_properties: true, ..options };
    let multigraph = GraphOptions { multigraph: true, ..plain };
    let kinds = [weighted, with_properties(plain), multigraph, with_properties(multigraph), with_properties(weighted)];
    for (number, options) in kinds.into_iter().enumerate() {
        println!("{options:?}");
        check(options, 6, number % 2 == 1);
    }
}
