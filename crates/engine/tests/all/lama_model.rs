//! Random operations against a plain model that keeps one set of edges for each snapshot. A failure prints the kind and
//! the seed of its database.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_base::storage::{MemoryStorage, Storage};
use anden_engine::{
    AppendOptions, ChangedArc, Duplicates, Engine, ErrorKind, GraphOptions, IdOrder, Key, KeyScheme, Maintenance,
    MergeScope, Retention, SnapshotView,
};
use anden_graph::property::OwnedValue;
use anden_graph::{GraphKind, Weight, WeightType};
use anden_testkit::{FaultStorage, Random, scaled};

use crate::versions::{Asked, Beside, Graph, Model, number_of};

const DB: &str = "db";
/// The steps for each database.
const STEPS: u32 = 400;

/// A kind of graph and of keys.
#[derive(Clone, Copy, Debug)]
struct Kind {
    graph: GraphOptions,
    io_order: bool,
}

fn directed() -> Kind {
    Kind { graph: GraphOptions::default(), io_order: false }
}

impl Kind {
    fn undirected(mut self) -> Self {
        self.graph.graph_kind = GraphKind::Undirected;
        self
    }

    fn ordered(mut self) -> Self {
        self.graph.ordered = true;
        self
    }

    fn multigraph(mut self) -> Self {
        self.graph.multigraph = true;
        self
    }

    fn out_only(mut self) -> Self {
        self.graph.in_edges = false;
        self
    }

    fn weights(mut self, weight_type: WeightType) -> Self {
        self.graph.weight_type = Some(weight_type);
        self
    }

    fn edge_properties(mut self) -> Self {
        self.graph.edge_properties = true;
        self
    }

    fn keys(mut self, keys: KeyScheme) -> Self {
        self.graph.keys = keys;
        self
    }

    fn io_order(mut self) -> Self {
        self.io_order = true;
        self
    }

    /// The key with this number. Dense keys lie in three pages.
    fn key(self, number: u32) -> Key {
        match self.graph.keys {
            KeyScheme::Integer => Key::Integer(u64::from(number * 7919 % 101) << 33 | 5),
            KeyScheme::String => Key::String(format!("v{number}")),
            KeyScheme::Dense => Key::Integer(match number {
                0..12 => number.into(),
                12..22 => u64::from(number) + 1010,
                _ => u64::from(number) + 2028,
            }),
        }
    }
}

const NUM_KEYS: u32 = 24;

/// A database and its model.
struct Pair {
    kind: Kind,
    random: Random,
    disk: Arc<dyn Storage>,
    pool: Pool,
    database: Option<Engine>,
    model: Model,
    retention: Retention,
    /// Held views, and what they must show.
    held: Vec<(SnapshotView, Graph)>,
    num_operations: u64,
}

impl Pair {
    fn new(kind: Kind, seed: u64) -> Self {
        // Every second database is in memory, and is reopened as well.
        let disk: Arc<dyn Storage> = match (seed / 1000).is_multiple_of(2) {
            true => Arc::new(FaultStorage::default()),
            false => Arc::new(MemoryStorage::default()),
        };
        let database = Engine::create_in(Arc::clone(&disk), Path::new(DB), kind.graph).unwrap();
        Self {
            kind,
            random: Random::new(seed),
            disk,
            pool: Pool::new(1).unwrap(),
            database: Some(database),
            model: Model::new(kind.graph, kind.io_order),
            retention: Retention::All,
            held: Vec::new(),
            num_operations: 0,
        }
    }

    fn database(&self) -> &Engine {
        self.database.as_ref().unwrap()
    }

    fn step(&mut self) {
        self.num_operations += 1;
        match self.random.below(24) {
            0..=11 => self.append(),
            12 => self.drop_some(),
            13 => self.merge(),
            14 => self.retain(),
            15 | 16 => self.look_at_window(),
            17 | 18 => self.look_at_diff(),
            19 => self.reopen(),
            20 => self.look_from_outside(),
            21 => self.hold(),
            _ => self.look_at_snapshot(),
        }
        let view = self.database().view().unwrap();
        self.model.check(&view, &self.model.newest);
        self.check_list();
    }

    fn key(&mut self) -> Key {
        self.kind.key(self.random.below(NUM_KEYS))
    }

    /// The ends of an existing edge, or of any pair.
    fn likely_edge(&mut self) -> (Key, Key) {
        let num_pairs = self.model.newest.edges.num_pairs() as u32;
        let at = self.random.below(num_pairs);
        match self.model.newest.edges.nth_pair(at as usize) {
            Some((u, v)) if self.random.below(5) > 0 => {
                let keys = &self.model.keys;
                (keys[u as usize].clone(), keys[v as usize].clone())
            }
            _ => (self.key(), self.key()),
        }
    }

    fn asked(&mut self) -> Asked {
        let mut asked = Asked::default();
        for _ in 0..self.random.below(7) {
            let (u, v) = if self.random.below(4) == 0 { self.likely_edge() } else { (self.key(), self.key()) };
            asked.added.push((u, v, self.random.below(6)));
        }
        for _ in 0..self.random.below(5) {
            let (u, v) = self.likely_edge();
            asked.removed.push((u, v));
        }
        if self.random.below(6) == 0 {
            let key = self.key();
            asked.added_vertices.push(key);
        }
        for _ in 0..self.random.below(8) / 6 {
            let key = self.key();
            asked.removed_vertices.push(key);
        }
        for _ in 0..self.random.below(5) {
            let key = self.key();
            let (name, value) = self.value();
            asked.set.push((key, name.to_owned(), value));
        }
        if self.random.below(12) == 0 {
            asked.name = Some(format!("name-{}", self.model.next_number));
        }
        asked
    }

    /// A random property value. Null only for an existing property.
    fn value(&mut self) -> (&'static str, OwnedValue) {
        let number = self.random.below(5);
        let (name, value) = match self.random.below(4) {
            0 => ("name", OwnedValue::from("x".repeat(number as usize))),
            1 => ("size", OwnedValue::from(i64::from(number) - 2)),
            2 => ("rate", OwnedValue::from(f64::from(number) / 3.0)),
            _ => ("seen", OwnedValue::Timestamp(i64::from(number) << 40)),
        };
        let is_there = self.model.newest.schema.iter().any(|(known, _)| known == name);
        (name, if number == 0 && is_there { OwnedValue::Null } else { value })
    }

    fn append(&mut self) {
        let asked = self.asked();
        self.num_operations += asked.len() as u64;
        let duplicates = match (self.kind.graph.multigraph, self.random.below(4)) {
            (true, _) => Duplicates::Keep,
            _ if self.kind.graph.has_rows() => Duplicates::Last,
            (_, 0) => Duplicates::Last,
            (_, 1) => Duplicates::Sum,
            _ => Duplicates::Min,
        };
        let options = AppendOptions {
            duplicates: Some(duplicates),
            order: if self.kind.io_order { IdOrder::Input } else { IdOrder::Auto },
            maintenance: if self.random.below(3) == 0 { Maintenance::WhenDue } else { Maintenance::Never },
            ..AppendOptions::default()
        };
        let before = self.model.newest.clone();
        self.model.change(&asked, duplicates);
        let number = self.model.snapshot(asked.name.clone());
        let changes = asked.changes(&self.kind.graph);
        let report = self.database().append_changes(&changes, &options, &self.pool, &Silent).unwrap();
        let newest = &self.model.newest;
        let (newest, before) = (&newest.edges, &before.edges);
        assert_eq!((report.snapshot, report.edges), (number, newest.num_edges()), "{asked:?}");
        assert_eq!(report.vertices, newest.vertices().len() as u64);
        let changed = (newest.minus(before).num_edges(), before.minus(newest).num_edges());
        assert_eq!((report.added, report.removed), changed);
        self.apply_retention();
    }

    fn numbers(&self) -> Vec<u32> {
        self.model.snapshots.keys().copied().collect()
    }

    fn some_number(&mut self) -> u32 {
        let numbers = self.numbers();
        numbers[self.random.below(numbers.len() as u32) as usize]
    }

    fn drop_some(&mut self) {
        let share = 1 + self.random.below(4);
        let mut gone: Vec<u32> = self.numbers();
        gone.retain(|_| self.random.below(4) < share);
        let all_go = gone.len() == self.model.snapshots.len();
        let dropped = self.database().drop_snapshots(&gone, &Silent);
        if all_go {
            assert_eq!(dropped.unwrap_err().kind(), ErrorKind::InvalidInput);
            return;
        }
        dropped.unwrap();
        self.model.snapshots.retain(|number, _| !gone.contains(number));
        for number in gone {
            assert_eq!(self.database().snapshot(number).unwrap_err().kind(), ErrorKind::NotFound);
        }
    }

    fn merge(&mut self) {
        let scope = match self.random.below(3) {
            0 => MergeScope::Newest(1 + self.random.below(5)),
            _ => MergeScope::All,
        };
        self.database().merge(scope, &self.pool, &Silent).unwrap();
    }

    fn retain(&mut self) {
        self.retention = match self.random.below(8) {
            0 => Retention::Named,
            1 => Retention::Days(1),
            2 | 3 => Retention::Last(1 + self.random.below(8)),
            _ => Retention::All,
        };
        let dropped = self.database().retain(self.retention).unwrap();
        assert_eq!(dropped, self.apply_retention());
    }

    /// Applies retention to the model. Returns the dropped snapshots.
    fn apply_retention(&mut self) -> Vec<u32> {
        let num_kept = match self.retention {
            Retention::Named => 1,
            Retention::Last(n) => n as usize,
            // Retention by days drops nothing, because tests do not take days.
            _ => usize::MAX,
        };
        let numbers = self.numbers();
        let old = &numbers[..numbers.len().saturating_sub(num_kept)];
        let gone: Vec<u32> = old.iter().copied().filter(|number| self.model.snapshots[number].0.is_none()).collect();
        self.model.snapshots.retain(|number, _| !gone.contains(number));
        gone
    }

    fn look_at_window(&mut self) {
        let (a, b) = (self.some_number(), self.some_number());
        if a > b {
            assert_eq!(self.database().window(a..=b).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
        let (first, last) = (a.min(b), a.max(b));
        let view = self.database().window(first..=last).unwrap();
        self.model.check(&view, &self.model.window(first, last));
    }

    fn look_at_diff(&mut self) {
        let (a, b) = (self.some_number(), self.some_number());
        let diff = self.database().diff(a, b).unwrap();
        let (from, to) = (&self.model.snapshots[&a].1, &self.model.snapshots[&b].1);
        let [added, removed] =
            [(to, from), (from, to)].map(|(one, other)| self.model.all_beside(&one.edges.minus(&other.edges)));
        assert_eq!(self.edges_of(&diff.added), added, "added from {a} to {b}");
        assert_eq!(self.edges_of(&diff.removed), removed, "removed from {a} to {b}");
        for vertex in from.edges.vertices().symmetric_difference(to.edges.vertices()) {
            let is_named =
                diff.new_vertices.contains(vertex) || diff.died.contains(vertex) || diff.returned.contains(vertex);
            assert!(is_named, "vertex {vertex} from {a} to {b}");
        }
        let mut changed = BTreeMap::new();
        for (name, changes) in &diff.properties {
            for (vertex, new, old) in changes.iter() {
                changed.insert((name.clone(), vertex), (OwnedValue::from(new), OwnedValue::from(old)));
            }
        }
        let value = |graph: &Graph, key| graph.values.get(key).cloned().unwrap_or(OwnedValue::Null);
        let expected =
            from.values.keys().chain(to.values.keys()).map(|key| (key.clone(), (value(to, key), value(from, key))));
        let expected: BTreeMap<_, _> = expected.filter(|(_, (new, old))| new != old).collect();
        assert_eq!(changed, expected, "properties from {a} to {b}");
    }

    fn edges_of(&self, arcs: &[ChangedArc]) -> BTreeMap<(u32, u32), Vec<Beside>> {
        assert!(arcs.is_sorted());
        let mut edges = BTreeMap::<_, Vec<Beside>>::new();
        let newest = self.database().view().unwrap();
        for arc in arcs {
            let weight = match self.kind.graph.weight_type {
                None => 0,
                Some(WeightType::U32) => arc.data.weight as u32,
                Some(WeightType::I64) => i64::of_bits(arc.data.weight) as u32,
                Some(WeightType::F32) => (2.0 * f32::of_bits(arc.data.weight)) as u32,
                Some(WeightType::F64) => (2.0 * f64::of_bits(arc.data.weight)) as u32,
            };
            let number = if self.kind.graph.edge_properties { number_of(&newest, arc.data.row) } else { 0 };
            edges.entry((arc.list, arc.neighbor)).or_default().push(Beside { weight, number });
        }
        edges.values_mut().for_each(|beside| beside.sort_unstable());
        edges
    }

    fn look_at_snapshot(&mut self) {
        let number = self.some_number();
        let view = self.database().snapshot(number).unwrap();
        let (name, graph) = &self.model.snapshots[&number];
        self.model.check(&view, graph);
        if let Some(name) = name {
            assert_eq!(self.database().snapshot_number(name), Some(number));
        }
    }

    fn reopen(&mut self) {
        self.database = None;
        self.database = Some(Engine::open_in(Arc::clone(&self.disk), Path::new(DB)).unwrap());
        if self.random.below(3) == 0 {
            self.database().verify(&self.pool).unwrap();
        }
    }

    fn look_from_outside(&mut self) {
        let number = self.some_number();
        let reader = Engine::open_read_only_in(Arc::clone(&self.disk), Path::new(DB)).unwrap();
        self.model.check(&reader.snapshot(number).unwrap(), &self.model.snapshots[&number].1);
        self.model.check(&reader.view().unwrap(), &self.model.newest);
        let refused = reader.append_changes(&Default::default(), &AppendOptions::default(), &self.pool, &Silent);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    /// Compares a held view again, and holds another.
    fn hold(&mut self) {
        if self.held.len() > 3 {
            let at = self.random.below(self.held.len() as u32) as usize;
            let (view, graph) = self.held.swap_remove(at);
            self.model.check(&view, &graph);
        }
        let number = self.some_number();
        let view = self.database().snapshot(number).unwrap();
        self.held.push((view, self.model.snapshots[&number].1.clone()));
    }

    /// Compares the list of snapshots with the model's.
    fn check_list(&self) {
        let found = self.database().snapshots();
        let numbers: Vec<u32> = found.iter().map(|info| info.number).collect();
        assert_eq!(numbers, self.numbers());
        for info in &found {
            let (name, graph) = &self.model.snapshots[&info.number];
            assert_eq!((&info.name, info.num_edges), (name, graph.edges.num_edges()), "snapshot {}", info.number);
            assert_eq!(info.num_vertices, graph.edges.vertices().len() as u64, "snapshot {}", info.number);
        }
    }

    fn finish(mut self) -> u64 {
        for number in self.numbers() {
            let view = self.database().snapshot(number).unwrap();
            self.model.check(&view, &self.model.snapshots[&number].1);
        }
        for (view, graph) in std::mem::take(&mut self.held) {
            self.model.check(&view, &graph);
        }
        self.database().verify(&self.pool).unwrap();
        self.num_operations
    }
}

fn num_databases() -> u64 {
    scaled(8)
}

/// Runs databases of one kind through random operations; there are fifteen kinds.
fn run(name: &str, kind: Kind) {
    let mut num_operations = 0;
    for database in 0..num_databases() {
        let seed = database * 1000 + name.len() as u64;
        println!("lama_model {name}: seed {seed}");
        let mut pair = Pair::new(kind, seed);
        (0..STEPS).for_each(|_| pair.step());
        num_operations += pair.finish();
    }
    println!("lama_model {name}: {num_operations} operations on {} databases", num_databases());
    assert!(num_operations >= num_databases() * 1_300, "{num_operations} operations");
}

#[test]
fn lama_model_directed() {
    run("directed", directed());
}

#[test]
fn lama_model_directed_u32_strings() {
    run("directed, u32, strings", directed().weights(WeightType::U32).keys(KeyScheme::String));
}

#[test]
fn lama_model_undirected_dense() {
    run("undirected, dense", directed().undirected().keys(KeyScheme::Dense));
}

#[test]
fn lama_model_undirected_f64_strings_in_input_order() {
    let kind = directed().undirected().weights(WeightType::F64).keys(KeyScheme::String).io_order();
    run("undirected, f64, strings in input order", kind);
}

#[test]
fn lama_model_multigraph_i64() {
    run("multigraph, i64", directed().multigraph().weights(WeightType::I64));
}

#[test]
fn lama_model_undirected_multigraph_f32() {
    run("undirected multigraph, f32", directed().undirected().multigraph().weights(WeightType::F32));
}

#[test]
fn lama_model_out_only_u32_dense() {
    let kind = directed().out_only().weights(WeightType::U32).keys(KeyScheme::Dense);
    run("out-only, u32, dense", kind);
}

#[test]
fn lama_model_out_only_multigraph_strings() {
    run("out-only multigraph, strings", directed().out_only().multigraph().keys(KeyScheme::String));
}

#[test]
fn lama_model_ordered_u32_in_input_order() {
    run("ordered, u32, in input order", directed().ordered().weights(WeightType::U32).io_order());
}

#[test]
fn lama_model_directed_dense() {
    run("directed, dense", directed().keys(KeyScheme::Dense));
}

#[test]
fn lama_model_edge_properties() {
    run("edge properties", directed().edge_properties());
}

#[test]
fn lama_model_edge_properties_undirected_strings() {
    run("edge properties, undirected, strings", directed().undirected().edge_properties().keys(KeyScheme::String));
}

#[test]
fn lama_model_weights_and_edge_properties() {
    run("weights and edge properties", directed().weights(WeightType::F64).edge_properties());
}

#[test]
fn lama_model_weights_and_edge_properties_undirected_multigraph() {
    let kind = directed().undirected().multigraph().weights(WeightType::I64).edge_properties();
    run("weights and edge properties, undirected multigraph", kind);
}

#[test]
fn lama_model_edge_properties_multigraph_dense() {
    let kind = directed().multigraph().edge_properties().keys(KeyScheme::Dense);
    run("edge properties, multigraph, dense", kind);
}
