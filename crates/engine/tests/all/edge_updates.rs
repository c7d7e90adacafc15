//! Random updates of multigraphs and of graphs whose edges have properties, against a plain model.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_base::storage::Storage;
use anden_engine::{
    AppendOptions, Changes, Durability, EdgeAction, EdgeId, EdgeWeight, Engine, GraphOptions, Key, KeyScheme,
    MergeScope, Missing, NewValue, SnapshotView, Update,
};
use anden_graph::property::OwnedValue;
use anden_graph::{Direction, Graph, GraphKind, WeightType, WeightedEdges};
use anden_testkit::{FaultStorage, ModelGraph, Random, crash_every_call};

const DB: &str = "db";
/// Keys are numbers below this.
const NUM_KEYS: u32 = 25;

type Values = BTreeMap<&'static str, OwnedValue>;

#[derive(Clone, Debug)]
struct Edge {
    weight: u32,
    values: Values,
    /// The number in the database, once it is committed to a multigraph.
    number: Option<u64>,
}

/// The model of the graph.
#[derive(Debug)]
pub struct Truth {
    options: GraphOptions,
    graph: ModelGraph<u64, Edge>,
    /// The values of the vertices that have some.
    values: BTreeMap<u64, Values>,
}

/// A comparable form of a graph: vertices with their values, and for each pair its edges as text, in no order.
#[derive(Clone, Debug, Default, PartialEq)]
struct Shown {
    vertices: BTreeMap<u64, String>,
    edges: BTreeMap<(u64, u64), Vec<String>>,
    num_edges: u64,
}

fn text(values: &Values) -> String {
    values.iter().map(|(name, value)| format!(" {name}={:?}", value.as_value())).collect()
}

impl Truth {
    fn new(options: GraphOptions) -> Self {
        let graph = ModelGraph::new(options.graph_kind).ordered(options.ordered).multigraph(options.multigraph);
        Self { options, graph, values: BTreeMap::new() }
    }

    /// The model after commits by `apply` that give the properties their types.
    pub fn with_types(options: GraphOptions, mut apply: impl FnMut(&[Update])) -> Self {
        let mut truth = Self::new(options);
        apply(&[Update::set_vertex(0, "size", 1), Update::set_vertex(0, "kind", "x")]);
        truth.set_vertex(0, "size", 1.into());
        truth.set_vertex(0, "kind", "x".into());
        if options.edge_properties {
            apply(&[truth.addition(1, 2, 0)]);
            truth.add_edge(1, 2, 0);
            for (name, value) in [("size", OwnedValue::I64(1)), ("kind", "y".into())] {
                apply(&[Update::set_edge(1, 2, name, value.clone())]);
                truth.set_edge(1, 2, name, value);
            }
        }
        truth
    }

    /// Adds an edge. In a simple graph, an existing edge gets the new weight and keeps its values.
    fn add_edge(&mut self, u: u64, v: u64, weight: u32) {
        match self.graph.edges_between_mut(u, v).last_mut() {
            Some(edge) if !self.options.multigraph => edge.weight = weight,
            _ => self.graph.add_edge(u, v, Edge { weight, values: Values::new(), number: None }),
        }
    }

    /// A random change of a numbered edge, also applied here; `None` if no edge has a number.
    fn change_edge(&mut self, random: &mut Random) -> Option<Update> {
        let numbered = self.graph.edges().filter_map(|(u, v, edge)| Some((u, v, edge.number?)));
        let numbered: Vec<_> = numbered.collect();
        let (u, v, number) = *numbered.get(random.below(numbered.len().max(1) as u32) as usize)?;
        let edges = self.graph.edges_between_mut(u, v);
        let edge = edges.iter_mut().find(|edge| edge.number == Some(number))?;
        let action = match random.below(3) {
            0 if self.options.weight_type.is_some() => {
                edge.weight = random.below(5);
                EdgeAction::SetWeight(edge.weight.into())
            }
            1 if self.options.edge_properties => {
                let (name, value) = ("size", random.below(5));
                edge.values.insert(name, OwnedValue::I64(value.into()));
                EdgeAction::SetProperty { name: name.to_owned(), value: i64::from(value).into() }
            }
            _ => {
                self.graph.retain(|a, b, edge| (a, b, edge.number) != (u, v, Some(number)));
                EdgeAction::Remove
            }
        };
        Some(Update::ChangeEdge { id: EdgeId { source: u.into(), target: v.into(), number }, action })
    }

    /// Takes over the numbers of committed edges. Numbers of a pair ascend in the order of additions, and known numbers
    /// stay.
    pub fn note_numbers(&mut self, view: &SnapshotView) {
        if !self.options.multigraph {
            return;
        }
        let mut numbers = numbers_of(view);
        for (u, v, edge) in self.graph.edges_mut() {
            let number = numbers.get_mut(&(u, v)).unwrap().pop_first().unwrap();
            assert!(edge.number.is_none_or(|known| known == number), "{edge:?} has number {number}");
            edge.number = Some(number);
        }
        assert!(numbers.values().all(BTreeSet::is_empty));
    }

    fn set_edge(&mut self, u: u64, v: u64, name: &'static str, value: OwnedValue) {
        if let Some(edge) = self.graph.edges_between_mut(u, v).last_mut() {
            match value {
                OwnedValue::Null => edge.values.remove(name),
                value => edge.values.insert(name, value),
            };
        }
    }

    /// Sets or removes a value of a vertex. A value adds the vertex.
    fn set_vertex(&mut self, vertex: u64, name: &'static str, value: OwnedValue) {
        match value {
            OwnedValue::Null => drop(self.values.get_mut(&vertex).map(|values| values.remove(name))),
            value => {
                self.graph.add_vertex(vertex);
                self.values.entry(vertex).or_default().insert(name, value);
            }
        }
    }

    fn value(name: &str, random: &mut Random) -> OwnedValue {
        match (name, random.below(4)) {
            (_, 0) => OwnedValue::Null,
            ("size", value) => OwnedValue::I64(value.into()),
            (_, value) => OwnedValue::String(format!("{name} {value}")),
        }
    }

    /// A random update, also applied here.
    pub fn update(&mut self, random: &mut Random) -> Update {
        let (u, v) = (u64::from(random.below(NUM_KEYS)), u64::from(random.below(NUM_KEYS)));
        let name = ["size", "kind"][random.below(2) as usize];
        match random.below(100) {
            80..84 => {
                self.values.remove(&u);
                self.graph.remove_vertex(u);
                Update::RemoveVertex(u.into())
            }
            84..88 => {
                self.graph.add_vertex(u);
                Update::AddVertex(u.into())
            }
            88..94 => {
                let value = Self::value(name, random);
                self.set_vertex(u, name, value.clone());
                Update::set_vertex(u, name, value)
            }
            60..80 => {
                self.graph.remove_edges(u, v);
                Update::remove_edge(u, v)
            }
            30..60 if self.options.edge_properties => {
                let value = Self::value(name, random);
                // Setting a value of a missing edge is an error, not an addition.
                if value != OwnedValue::Null && !self.graph.has_edge(u, v) {
                    self.add_edge(u, v, 0);
                    return self.addition(u, v, 0);
                }
                self.set_edge(u, v, name, value.clone());
                Update::set_edge(u, v, name, value)
            }
            94..100 if self.options.multigraph => {
                let no_edge = self.graph.vertices().first().copied();
                self.change_edge(random).or(no_edge.map(|v| Update::AddVertex(v.into()))).unwrap_or_else(|| {
                    self.graph.add_vertex(u);
                    Update::AddVertex(u.into())
                })
            }
            20..30 if self.options.weight_type.is_some() => {
                let weight = random.below(3);
                if !self.graph.has_edge(u, v) {
                    self.add_edge(u, v, weight);
                }
                self.graph.edges_between_mut(u, v).iter_mut().for_each(|edge| edge.weight = weight);
                Update::set_weight(u, v, weight)
            }
            _ => {
                let weight = if self.options.weight_type.is_some() { random.below(3) } else { 0 };
                self.add_edge(u, v, weight);
                self.addition(u, v, weight)
            }
        }
    }

    fn addition(&self, u: u64, v: u64, weight: u32) -> Update {
        let weight = self.options.weight_type.map(|_| EdgeWeight::from(weight));
        Update::AddEdge { source: u.into(), target: v.into(), weight, properties: Vec::new() }
    }

    fn shown(&self) -> Shown {
        let mut shown = Shown { num_edges: self.graph.num_edges(), ..Shown::default() };
        let of_vertex = |vertex: &u64| self.values.get(vertex).map_or(String::new(), text);
        shown.vertices = self.graph.vertices().iter().map(|vertex| (*vertex, of_vertex(vertex))).collect();
        for (pair, edges) in self.graph.pairs() {
            let mut parallel: Vec<_> =
                edges.iter().map(|edge| format!("{}{}", edge.weight, text(&edge.values))).collect();
            parallel.sort();
            shown.edges.insert(pair, parallel);
        }
        shown
    }
}

fn named(schema: &anden_graph::property::PropertySchema, value: impl Fn(usize) -> OwnedValue) -> String {
    let mut values = Values::new();
    for (place, name) in ["kind", "size"].into_iter().filter_map(|name| Some((schema.find(name)?, name))) {
        values.insert(name, value(place));
    }
    values.retain(|_, value| *value != OwnedValue::Null);
    text(&values)
}

/// The comparable form of a view.
fn read(view: &SnapshotView) -> Shown {
    let mut shown = Shown { num_edges: view.num_edges(), ..Shown::default() };
    let key = |vertex: VertexId| match view.key(vertex).unwrap() {
        Key::Integer(key) => key,
        Key::String(key) => key.parse().unwrap(),
    };
    let is_undirected = view.graph_kind() == GraphKind::Undirected;
    let (mut num_arcs, mut num_in_arcs) = (0, 0);
    for v in 0..view.vertex_bound() as VertexId {
        let properties = view.properties();
        let of_vertex = named(properties.schema(), |place| properties.value(place, v).unwrap().into());
        if view.is_live(v) {
            shown.vertices.insert(key(v), of_vertex);
        } else {
            assert_eq!((&*of_vertex, view.degree(Direction::Out, v)), ("", 0));
        }
        let mut entries: Vec<(VertexId, String)> = Vec::new();
        let _ = view.for_each_fragment(Direction::Out, v, |targets| {
            entries.extend(targets.iter().map(|&target| (target, "0".to_owned())));
            ControlFlow::Continue(())
        });
        if view.weight_type().is_some() {
            entries.clear();
            let _ = view.for_each_weighted_fragment::<u32>(Direction::Out, v, |targets, weights| {
                entries.extend(targets.iter().zip(weights).map(|(&target, weight)| (target, weight.to_string())));
                ControlFlow::Continue(())
            });
        }
        if view.options().edge_properties {
            let properties = view.edge_properties();
            let mut texts = Vec::new();
            let _ = view.for_each_row(Direction::Out, v, |targets, rows| {
                for (&target, &row) in targets.iter().zip(rows) {
                    let value = |place| properties.value(place, row).unwrap().into();
                    texts.push((target, named(properties.schema(), value)));
                }
                ControlFlow::Continue(())
            });
            // Weights and rows have equal order.
            assert!(texts.iter().map(|text| text.0).eq(entries.iter().map(|entry| entry.0)));
            entries.iter_mut().zip(texts).for_each(|((_, entry), (_, text))| entry.push_str(&text));
        }
        num_arcs += entries.len() as u64;
        num_in_arcs += view.degree(Direction::In, v) as u64;
        for (target, shows) in entries {
            let (u, w) = (key(v), key(target));
            if !is_undirected || u <= w {
                // An ordered graph stores the ends in the order of their ids.
                let ends = if view.options().ordered { (u.min(w), u.max(w)) } else { (u, w) };
                shown.edges.entry(ends).or_default().push(shows);
            }
        }
    }
    shown.edges.values_mut().for_each(|parallel| parallel.sort());
    view.check().unwrap();
    assert_eq!(shown.vertices.len(), view.num_vertices());
    assert_eq!(num_arcs, view.num_arcs());
    assert!(!view.has_lists(Direction::In) || num_in_arcs == num_arcs);
    shown
}

/// The edge numbers of a multigraph, by the keys of the ends. Checks that both ends of an undirected edge agree.
fn numbers_of(view: &SnapshotView) -> BTreeMap<(u64, u64), BTreeSet<u64>> {
    let mut numbers: BTreeMap<(u64, u64), BTreeSet<u64>> = BTreeMap::new();
    let key = |vertex: VertexId| match view.key(vertex).unwrap() {
        Key::Integer(key) => key,
        Key::String(key) => key.parse().unwrap(),
    };
    for v in 0..view.vertex_bound() as VertexId {
        let _ = view.for_each_row(Direction::Out, v, |targets, rows| {
            for (&target, &row) in targets.iter().zip(rows) {
                let (u, w) = (key(v), key(target));
                let ends = if view.graph_kind() == GraphKind::Undirected { (u.min(w), u.max(w)) } else { (u, w) };
                let number = view.edge_properties().number(row).unwrap();
                numbers.entry(ends).or_default().insert(number);
            }
            ControlFlow::Continue(())
        });
    }
    numbers
}

/// Graphs whose lists have rows.
pub fn kinds() -> Vec<GraphOptions> {
    let directed = GraphOptions::default();
    let undirected = GraphOptions { graph_kind: GraphKind::Undirected, ..directed };
    let weighted = GraphOptions { weight_type: Some(WeightType::U32), edge_properties: true, ..directed };
    vec![
        GraphOptions { multigraph: true, ..directed },
        GraphOptions { multigraph: true, weight_type: Some(WeightType::U32), keys: KeyScheme::String, ..undirected },
        GraphOptions { multigraph: true, weight_type: Some(WeightType::U32), in_edges: false, ..directed },
        GraphOptions { edge_properties: true, ..directed },
        GraphOptions { edge_properties: true, keys: KeyScheme::String, ..undirected },
        GraphOptions { edge_properties: true, ordered: true, in_edges: false, ..directed },
        GraphOptions { edge_properties: true, multigraph: true, ..directed },
        GraphOptions { edge_properties: true, multigraph: true, ..undirected },
        weighted,
        GraphOptions { keys: KeyScheme::String, graph_kind: GraphKind::Undirected, ..weighted },
        GraphOptions { multigraph: true, ..weighted },
    ]
}

#[test]
fn property_updates_match_the_model() {
    let pool = Pool::new(2).unwrap();
    for (seed, options) in kinds().into_iter().enumerate() {
        println!("seed {seed}: {options:?}");
        let random = &mut Random::new(seed as u64 + 7);
        let mut storage = Arc::new(FaultStorage::default());
        let mut db = Engine::create_in(storage.clone(), Path::new(DB), options).unwrap();
        // Sets the types of both properties first.
        let types = [Update::set_vertex(0, "size", 1), Update::set_vertex(0, "kind", "x")];
        db.apply(&types, Missing::Strict, &pool).unwrap_err();
        let mut truth = Truth::with_types(options, |updates| {
            db.apply(updates, Missing::Lenient, &pool).unwrap();
        });
        let mut held: Vec<(SnapshotView, Shown)> = Vec::new();
        for step in 0..40 {
            let num_updates = [1, 3, 20, 300][random.below(4) as usize];
            let updates: Vec<_> = (0..num_updates).map(|_| truth.update(random)).collect();
            let applied = db.apply(&updates, Missing::Lenient, &pool).unwrap();
            let shown = truth.shown();
            assert_eq!((applied.vertices, applied.edges), (shown.vertices.len() as u64, shown.num_edges));
            let view = db.view().unwrap();
            assert_eq!(read(&view), shown, "step {step}");
            truth.note_numbers(&view);
            match random.below(10) {
                0 => drop(db.merge(MergeScope::All, &pool, &Silent).unwrap()),
                1 => {
                    let weight = options.weight_type.map(|_| 2.into());
                    let changes = Changes { added: vec![(3.into(), 4.into(), weight)], ..Changes::default() };
                    truth.add_edge(3, 4, if weight.is_some() { 2 } else { 0 });
                    db.append_changes(&changes, &AppendOptions::default(), &pool, &Silent).unwrap();
                }
                2 => drop(db.checkpoint(None).unwrap()),
                3 => {
                    drop(db);
                    db = Engine::open_in(storage.clone(), Path::new(DB)).unwrap();
                    db.verify(&pool).unwrap();
                }
                4 => {
                    // Commits survive a power cut, with or without a snapshot.
                    drop(db);
                    storage = Arc::new(storage.after_crash(step));
                    db = Engine::open_in(storage.clone(), Path::new(DB)).unwrap();
                }
                5 => {
                    let reader = Engine::open_read_only_in(storage.clone(), Path::new(DB)).unwrap();
                    assert_eq!(read(&reader.view().unwrap()), shown, "another process, step {step}");
                }
                _ => {}
            }
            assert_eq!(read(&db.view().unwrap()), truth.shown(), "at the end of step {step}");
            truth.note_numbers(&db.view().unwrap());
            held.push((view, shown));
            if held.len() > 4 {
                let (view, shown) = held.swap_remove(random.below(5) as usize);
                assert_eq!(read(&view), shown, "a view that was held until step {step}");
            }
        }
        db.verify(&pool).unwrap();
    }
}

#[test]
fn batch_boundaries_do_not_change_the_result() {
    let pool = Pool::new(1).unwrap();
    for options in kinds() {
        let random = &mut Random::new(5);
        let create = || Engine::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
        let (whole, split) = (create(), create());
        let mut truth = Truth::new(options);
        let first = [Update::set_vertex(0, "size", 1), Update::set_vertex(0, "kind", "x")].into_iter();
        let of_edges =
            [truth.addition(0, 1, 0), Update::set_edge(0, 1, "size", 1), Update::set_edge(0, 1, "kind", "x")];
        let mut updates: Vec<_> = first.chain(of_edges.into_iter().filter(|_| options.edge_properties)).collect();
        updates.push(Update::RemoveVertex(0.into()));
        updates.extend((0..150).map(|_| truth.update(random)));
        whole.apply(&updates, Missing::Lenient, &pool).unwrap();
        for batch in updates.chunks(7) {
            split.apply(batch, Missing::Lenient, &pool).unwrap();
        }
        assert_eq!(read(&whole.view().unwrap()), read(&split.view().unwrap()), "{options:?}");
    }
}

#[test]
fn refused_batch_changes_nothing() {
    let pool = Pool::new(1).unwrap();
    let options = GraphOptions { edge_properties: true, keys: KeyScheme::String, ..GraphOptions::default() };
    let db = Engine::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
    let first = [Update::add_edge("a", "b"), Update::set_edge("a", "b", "size", 1), Update::AddVertex("c".into())];
    db.apply(&first, Missing::Lenient, &pool).unwrap();
    let refused = |missing, update: Update| {
        let before = (db.snapshots().len(), db.view().unwrap().num_edges());
        let updates = [Update::add_edge("a", "c"), update];
        let error = db.apply(&updates, missing, &pool).unwrap_err();
        assert!(matches!(&error, anden_engine::Error::Update { index: 1, .. }), "{error:?}");
        assert_eq!((db.snapshots().len(), db.view().unwrap().num_edges()), before, "nothing has happened");
        error.to_string()
    };
    let null = || OwnedValue::Null;
    let lenient = |update| refused(Missing::Lenient, update);
    let strict = |update| refused(Missing::Strict, update);
    let wrong_text = NewValue::Text { text: "x".into(), is_quoted: false };
    assert_eq!(
        lenient(Update::set_edge("a", "b", "size", wrong_text)),
        "the edge from a to b: property \"size\": expected a whole number of type i64, found 'x'"
    );
    assert_eq!(
        lenient(Update::set_edge("a", "b", "size", "x")),
        "the edge from a to b: property \"size\": expected a value of type i64, found 'x'"
    );
    let other = Update::set_edge("a", "b", "other", null());
    assert_eq!(lenient(other), "there is no property \"other\" of edges");
    assert!(lenient(Update::add_weighted_edge("a", "b", 3)).contains("the graph has no weights"));
    assert!(lenient(Update::set_weight("a", "b", 3)).contains("the graph has no weights"));
    assert_eq!(strict(Update::set_edge("a", "x", "size", 1)), "vertex x does not exist");
    assert_eq!(strict(Update::set_edge("b", "a", "size", 1)), "there is no edge from b to a");
    assert_eq!(
        strict(Update::set_edge("b", "a", "size", null())),
        "cannot remove \"size\" of the edge from b to a: there is no value"
    );
    assert_eq!(
        strict(Update::set_edge("a", "c", "size", null())),
        "cannot remove \"size\" of the edge from a to c: there is no value"
    );
    assert_eq!(strict(Update::remove_edge("b", "a")), "there is no edge from b to a to remove");
    db.apply(&[Update::set_edge("b", "a", "size", null())], Missing::Lenient, &pool).unwrap();
    for missing in [Missing::Strict, Missing::Lenient] {
        let removed = [Update::remove_edge("a", "b"), Update::set_edge("a", "b", "size", 1)];
        let error = db.apply(&removed, missing, &pool).unwrap_err();
        assert_eq!(error.to_string(), "there is no edge from a to b");
    }
    let again = [Update::remove_edge("a", "b"), Update::add_edge("a", "b"), Update::set_edge("a", "b", "size", 1)];
    db.apply(&again, Missing::Lenient, &pool).unwrap();
    let plain = Engine::create_in(Arc::new(FaultStorage::default()), Path::new(DB), GraphOptions::default()).unwrap();
    let error = plain.apply(&[Update::set_edge(1, 2, "size", 1)], Missing::Lenient, &pool).unwrap_err();
    assert_eq!(error.to_string(), "the edge from 1 to 2: the graph was loaded without properties of edges");
    let vertices: BTreeSet<_> = read_keys(&db.view().unwrap());
    assert_eq!(vertices, BTreeSet::from(["a", "b", "c"].map(str::to_owned)));
}

fn read_keys(view: &SnapshotView) -> BTreeSet<String> {
    let live = (0..view.vertex_bound() as VertexId).filter(|&vertex| view.is_live(vertex));
    live.map(|vertex| view.key(vertex).unwrap().to_string()).collect()
}

fn rows_bytes(disk: &FaultStorage) -> u64 {
    let names = disk.list(Path::new(DB)).unwrap();
    let rows = names.iter().filter(|name| name.starts_with("rows-"));
    rows.map(|name| disk.contents(&Path::new(DB).join(name)).unwrap().len() as u64).sum()
}

fn payments() -> GraphOptions {
    GraphOptions { edge_properties: true, ..GraphOptions::default() }
}

fn amount(view: &SnapshotView, source: u64, target: u64) -> String {
    let [source, target] = [source, target].map(|key| view.vertex(&key.into()).unwrap().unwrap());
    let mut found = String::new();
    let _ = view.for_each_row(Direction::Out, source, |targets, rows| {
        if let Some(place) = targets.iter().position(|&other| other == target) {
            found = view.edge_properties().value(0, rows[place]).unwrap().to_string();
        }
        ControlFlow::Continue(())
    });
    found
}

/// Each set makes a row. Rows that are replaced before the next snapshot reach no file.
#[test]
fn sets_of_one_edge_leave_one_row_on_disk() {
    let (pool, disk) = (Pool::new(1).unwrap(), FaultStorage::default());
    let db = Engine::create_in(Arc::new(disk.clone()), Path::new(DB), payments()).unwrap();
    db.set_checkpoint_bytes(Some(100 << 10));
    db.set_durability(Durability::None);
    const NUM_SETS: i64 = 60_000;
    let set = |amount: i64| db.submit(&[Update::add_edge_with(1, 2, [("amount", amount)])], &pool).unwrap();
    let mut pending: Vec<_> = (0..NUM_SETS).map(set).collect();
    pending.pop().unwrap().wait().unwrap();
    drop(pending);
    db.checkpoint(None).unwrap();
    assert!(db.live_stats().automatic_checkpoints > 0, "{:?}", db.live_stats());
    assert_eq!(amount(&db.view().unwrap(), 1, 2), (NUM_SETS - 1).to_string());
    let num_snapshots = db.snapshots().len() as u64;
    assert!(rows_bytes(&disk) < num_snapshots * 20_000, "{} bytes, {num_snapshots} snapshots", rows_bytes(&disk));
    db.verify(&pool).unwrap();
}

/// A merge rewrites the rows without those that only dropped snapshots named. Open views keep theirs.
#[test]
fn rows_of_dropped_snapshots_are_reclaimed() {
    let (pool, disk) = (Pool::new(1).unwrap(), FaultStorage::default());
    let db = Engine::create_in(Arc::new(disk.clone()), Path::new(DB), payments()).unwrap();
    let num_edges = 3_000;
    let mut held = Vec::new();
    for round in 0..5_i64 {
        let set = |edge: u64| Update::add_edge_with(edge, edge + 1, [("amount", edge as i64 * 10 + round)]);
        db.apply(&(0..num_edges).map(set).collect::<Vec<_>>(), Missing::Lenient, &pool).unwrap();
        db.checkpoint(None).unwrap();
        held.push(db.view().unwrap());
    }
    let before = rows_bytes(&disk);
    db.merge(MergeScope::All, &pool, &Silent).unwrap();
    assert_eq!(rows_bytes(&disk), before, "every snapshot is kept, and so are its rows");
    db.retain(anden_engine::Retention::Last(1)).unwrap();
    // Adds an edge that is in no snapshot, over the rewritten rows.
    db.apply(&[Update::add_edge_with(7, 5, [("amount", 75)])], Missing::Lenient, &pool).unwrap();
    db.checkpoint(None).unwrap();
    let live = [Update::set_edge(7, 5, "amount", 76), Update::add_edge_with(7, 6, [("amount", 77)])];
    db.apply(&live, Missing::Lenient, &pool).unwrap();
    db.merge(MergeScope::All, &pool, &Silent).unwrap();
    assert!(rows_bytes(&disk) * 3 < before, "{} bytes of {before}", rows_bytes(&disk));
    let shown = |view: &SnapshotView| (0..num_edges).map(|edge| amount(view, edge, edge + 1)).collect::<Vec<_>>();
    for (round, view) in held.iter().enumerate() {
        let expected: Vec<_> = (0..num_edges).map(|edge| (edge * 10 + round as u64).to_string()).collect();
        assert_eq!(shown(view), expected, "round {round}");
    }
    let view = db.view().unwrap();
    assert_eq!((shown(&view), amount(&view, 7, 5), amount(&view, 7, 6)), (shown(&held[4]), "76".into(), "77".into()));
    db.verify(&pool).unwrap();
    drop((held, view, db));
    let db = Engine::open_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
    assert_eq!(amount(&db.view().unwrap(), 7, 5), "76");
    db.verify(&pool).unwrap();
}

/// Properties given with an edge equal properties set one by one, in small and large batches.
#[test]
fn edges_come_with_their_properties() {
    let pool = Pool::new(2).unwrap();
    for multigraph in [false, true] {
        for keys in [KeyScheme::Dense, KeyScheme::String] {
            let options = GraphOptions { edge_properties: true, multigraph, keys, ..GraphOptions::default() };
            let create = || Engine::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
            let (together, apart) = (create(), create());
            let random = &mut Random::new(91);
            let key = |number: u32| match keys {
                KeyScheme::String => Key::from(number.to_string()),
                _ => Key::Integer(number.into()),
            };
            for (round, num_updates) in [3_000, 9_000, 40, 9_000].into_iter().enumerate() {
                let (mut with, mut without) = (Vec::new(), Vec::new());
                for number in 0..num_updates {
                    let (u, v) = (key(random.below(150)), key(random.below(60)));
                    let mut properties = Vec::new();
                    if random.below(4) > 0 {
                        properties.push(("size", NewValue::from(i64::from(number))));
                    }
                    if random.below(3) > 0 {
                        properties.push(("kind", ["a", "b"][random.below(2) as usize].into()));
                    }
                    without.push(Update::add_edge(u.clone(), v.clone()));
                    let set =
                        |(name, value): &(&str, NewValue)| Update::set_edge(u.clone(), v.clone(), *name, value.clone());
                    without.extend(properties.iter().map(set));
                    with.push(Update::add_edge_with(u.clone(), v.clone(), properties));
                }
                together.apply(&with, Missing::Lenient, &pool).unwrap();
                apart.apply(&without, Missing::Lenient, &pool).unwrap();
                let (together, apart) = (read(&together.view().unwrap()), read(&apart.view().unwrap()));
                assert!(together == apart, "{options:?}, round {round}");
            }
            together.checkpoint(None).unwrap();
            together.verify(&pool).unwrap();
        }
    }
}

/// The batches of a run, and the graph before the first batch and after each.
fn scripted(options: GraphOptions, seed: u64) -> (Vec<Vec<Update>>, Vec<Shown>) {
    let random = &mut Random::new(seed);
    let mut truth = Truth::new(options);
    let (mut batches, mut shown) = (Vec::new(), vec![truth.shown()]);
    for size in [1, 12, 3, 1, 20, 2] {
        batches.push((0..size).map(|_| truth.update(random)).collect());
        shown.push(truth.shown());
    }
    (batches, shown)
}

/// A power cut leaves the graph after some commit, not before the last answered one.
#[test]
fn crash_at_any_call_leaves_a_prefix_of_commits() {
    let pool = Pool::new(1).unwrap();
    for (seed, options) in kinds().into_iter().enumerate() {
        let (batches, shown) = scripted(options, seed as u64 + 100);
        let start = || {
            let disk = FaultStorage::default();
            let db = Engine::create_in(Arc::new(disk.clone()), Path::new(DB), options).unwrap();
            let of_both =
                [Update::set_vertex(0, "size", 1), Update::set_vertex(0, "kind", "x"), Update::RemoveVertex(0.into())];
            db.apply(&of_both, Missing::Lenient, &pool).unwrap();
            if options.edge_properties {
                let first = Update::AddEdge {
                    source: 0.into(),
                    target: 1.into(),
                    weight: options.weight_type.map(|_| 0.into()),
                    properties: vec![("size".into(), 1.into()), ("kind".into(), "x".into())],
                };
                let gone = [Update::RemoveVertex(0.into()), Update::RemoveVertex(1.into())];
                db.apply(&[&[first][..], &gone].concat(), Missing::Lenient, &pool).unwrap();
            }
            (disk, db)
        };
        let act = |_: &FaultStorage, db: Engine| {
            for (number, batch) in batches.iter().enumerate() {
                if db.apply(batch, Missing::Lenient, &pool).is_err() || number == 2 && db.checkpoint(None).is_err() {
                    return number;
                }
            }
            // The power cut loses the answer.
            drop(db.merge(MergeScope::All, &pool, &Silent));
            batches.len()
        };
        let mut outcomes = BTreeSet::new();
        let num_calls = crash_every_call(2, start, act, |&num_answered, disk, place| {
            let after = Engine::open_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
            let found = read(&after.view().unwrap());
            let number = shown.iter().rposition(|shown| *shown == found);
            let number = number.unwrap_or_else(|| panic!("{options:?}, {place}: no state is {found:?}"));
            assert!(number >= num_answered || shown[num_answered] == found, "{options:?}, {place}: {number}");
            after.verify(&pool).unwrap();
            outcomes.insert(number);
        });
        assert!(outcomes.len() > 3 && num_calls > 20, "{options:?}: {outcomes:?} after {num_calls} calls");
    }
}

/// Requests of a group share new rows. A refused request leaves the rows of the others unchanged.
#[test]
fn refused_request_leaves_rows_of_its_group() {
    let (pool, disk) = (Pool::new(1).unwrap(), FaultStorage::default());
    let db = Engine::create_in(Arc::new(disk), Path::new(DB), payments()).unwrap();
    let bad = NewValue::Text { text: "x".into(), is_quoted: false };
    let first = db.submit(&[Update::add_edge_with(1, 2, [("amount", 1)])], &pool).unwrap();
    let refused = [Update::set_edge(1, 2, "amount", 5), Update::set_edge(1, 2, "amount", bad)];
    let refused = db.submit(&refused, &pool).unwrap();
    let other = db.submit(&[Update::set_edge(1, 2, "note", "kept")], &pool).unwrap();
    let epoch = other.wait().unwrap();
    assert_eq!(first.wait().unwrap(), epoch, "they share a group");
    refused.wait().unwrap_err();
    let view = db.view().unwrap();
    assert_eq!((amount(&view, 1, 2), view.edge_properties().schema().len()), ("1".into(), 2));
}
