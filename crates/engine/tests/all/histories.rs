//! Random histories of concurrent clients with checkpoints and merges. Both checkers find them serializable.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{
    EdgeWeight, Engine, Error, ErrorKind, GraphOptions, IndexKind, Key, KeyScheme, MergeScope, OptimisticTransaction,
    Result,
};
use anden_graph::{GraphKind, WeightType};
use anden_snapshots::Direction;
use anden_testkit::history::{Action, Element, History, Object, Outcome, Run, find_cycle, replay};
use anden_testkit::{Random, scaled};

const NUM_CLIENTS: u32 = 4;
/// Objects are, in this order: values of vertices, out-lists, in-lists, sets of vertices with a property value, and
/// vertices with a unique value.
const NUM_LISTS: Object = 6;
const NUM_OUT: Object = 6;
const NUM_IN: Object = 4;
const NUM_OBJECTS: Object = 20;
/// Clients use one unique value for this many elements, so that they meet at the newest value.
const ELEMENTS_OF_NAME: Element = 12;

fn vertex(object: Object) -> Key {
    u64::from(object).into()
}

fn neighbor(element: Element) -> Key {
    (1_000_000 + element).into()
}

/// The vertex that gets the number of an object as a value.
fn tagged(element: Element) -> Key {
    (2_000_000 + element).into()
}

/// The vertex that gets the number of an object as its unique value.
fn named(element: Element) -> Key {
    (3_000_000 + element).into()
}

fn is_name(object: Object) -> bool {
    object >= NUM_OBJECTS
}

/// The element of a vertex.
fn element(key: Key) -> Element {
    match key {
        Key::Integer(key) => key % 1_000_000,
        Key::String(key) => panic!("{key}"),
    }
}

fn is_tag(object: Object) -> bool {
    object >= NUM_LISTS + NUM_OUT + NUM_IN
}

fn append(
    tx: &mut OptimisticTransaction<'_>,
    object: Object,
    element: Element,
    weight: Option<EdgeWeight>,
) -> Result<()> {
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

/// Gives a new vertex a unique value. Even without a search, this reads which vertex has the value.
fn claim(tx: &mut OptimisticTransaction<'_>, object: Object, new: Element, actions: &mut Vec<Action>) -> Result<()> {
    match tx.set_vertex_value(&named(new), "name", i64::from(object).into()) {
        Ok(()) => actions.extend([Action::Read(object, Vec::new()), Action::Append(object, new)]),
        Err(Error::UniqueViolation { holder, .. }) => {
            actions.push(Action::Read(object, vec![element(holder)]));
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

fn read(tx: &OptimisticTransaction<'_>, object: Object) -> Result<Vec<Element>> {
    if object < NUM_LISTS {
        let list = tx.vertex_value(&vertex(object), "list")?.as_value().to_string();
        return Ok(list.split_whitespace().map(|element| element.parse().unwrap()).collect());
    }
    let direction = if object < NUM_LISTS + NUM_OUT { Direction::Out } else { Direction::In };
    if is_tag(object) {
        let name = if is_name(object) { "name" } else { "tag" };
        let mut elements: Vec<_> = tx.find(name, &i64::from(object).into())?.into_iter().map(element).collect();
        elements.sort_unstable();
        return Ok(elements);
    }
    let mut elements: Vec<_> = tx.neighbors(&vertex(object), direction)?.into_iter().map(element).collect();
    assert_eq!(tx.degree(&vertex(object), direction)?, elements.len());
    elements.sort_unstable();
    Ok(elements)
}

/// The state that clients share.
struct World<'a> {
    db: &'a Engine,
    pool: &'a Pool,
    clock: AtomicU64,
    elements: AtomicU64,
    runs: Mutex<Vec<Run>>,
}

impl World<'_> {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Runs a random transaction. Some transactions are abandoned.
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
                // A read-only transaction has the position directly after its view.
                Ok(at) => Outcome::Committed(at.epoch, u64::MAX),
                Err(error) if error.kind() == ErrorKind::Conflict => Outcome::Aborted,
                Err(Error::UniqueViolation { .. }) => Outcome::Aborted,
                Err(error) => return Err(error),
            },
        };
        Ok(Run { client, begun, ended: self.now(), actions, outcome })
    }
}

fn history(options: GraphOptions, seed: u64, num_runs: usize, maintenance: bool) -> History {
    let pool = Pool::new(1).unwrap();
    let db = Engine::in_memory(options).unwrap();
    db.transact(&pool, |tx| -> Result<()> {
        tx.set_vertex_value(&vertex(0), "tag", i64::from(NUM_OBJECTS).into())?;
        tx.set_vertex_value(&vertex(0), "name", 0.into())?;
        (0..NUM_OBJECTS).try_for_each(|object| tx.add_vertex(&vertex(object)))
    })
    .unwrap();
    db.create_index("name", IndexKind::Unique, &Silent).unwrap();
    // Every second history has an index of tags; in some, the index is dropped and created again.
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
        if maintenance {
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

/// Checks [`scaled`] numbers of histories.
fn check(options: GraphOptions, usual: u64, maintenance: bool) {
    for seed in 0..scaled(usual) {
        let history = history(options, seed, 1_000, maintenance);
        let num_committed = history.num_committed();
        assert!(num_committed >= 200, "seed {seed}: only {num_committed} of 1,000 transactions were committed");
        find_cycle(&history).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        replay(&history).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
}

fn options(graph_kind: GraphKind) -> GraphOptions {
    GraphOptions { keys: KeyScheme::Integer, graph_kind, ..GraphOptions::default() }
}

#[test]
fn transactions_are_serializable() {
    check(options(GraphKind::Directed), 60, false);
}

#[test]
fn transactions_of_an_undirected_graph_are_serializable() {
    check(options(GraphKind::Undirected), 20, false);
}

#[test]
fn transactions_beside_checkpoints_and_merges_are_serializable() {
    check(options(GraphKind::Directed), 20, true);
}

#[test]
fn transactions_of_every_kind_of_graph_are_serializable() {
    let plain = options(GraphKind::Directed);
    let weighted = GraphOptions { weight_type: Some(WeightType::I64), ..plain };
    let with_properties = |options| GraphOptions { edge_properties: true, ..options };
    let multigraph = GraphOptions { multigraph: true, ..plain };
    let kinds = [weighted, with_properties(plain), multigraph, with_properties(multigraph), with_properties(weighted)];
    for (number, options) in kinds.into_iter().enumerate() {
        println!("{options:?}");
        check(options, 6, number % 2 == 1);
    }
}
