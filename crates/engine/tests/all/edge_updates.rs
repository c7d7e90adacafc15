//! Random updates of multigraphs and of graphs whose edges have properties, against a plain model.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anden_engine::{
    AppendOptions, Changes, Database, Durability, EdgeAction, EdgeId, EdgeWeight, GraphOptions, Key, KeyScheme,
    MergeScope, Missing, NewValue, Update, View,
};
use base::VertexId;
use base::parallel::Pool;
use base::progress::Silent;
use base::storage::{FaultPlan, FaultStorage, Storage};
use graph::property::OwnedValue;
use graph::{Direction, Graph, InEdges, WeightType, WeightedEdges};
use testkit::Random;

const DB: &str = "db";
/// Keys are numbers below this.
const NUM_KEYS: u32 = 25;

type Values = BTreeMap<&'static str, OwnedValue>;

#[derive(Clone, Debug)]
struct Edge {
    ends: (u64, u64),
    weight: u32,
    values: Values,
    /// Its number in the database, once it is committed, in a multigraph.
    number: Option<u64>,
}

/// The graph as it should be.
#[derive(Debug)]
struct Truth {
    options: GraphOptions,
    vertices: BTreeMap<u64, Values>,
    /// In the order in which they were added.
    edges: Vec<Edge>,
}

/// What a graph is: vertices and their values, and by pair the edges, as text and in no order.
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
    fn ends(&self, u: u64, v: u64) -> Option<(u64, u64)> {
        let has_order = self.options.ordered || self.options.direction == Direction::Undirected;
        (!self.options.ordered || u != v).then_some(if has_order { (u.min(v), u.max(v)) } else { (u, v) })
    }

    fn add_vertex(&mut self, vertex: u64) {
        self.vertices.entry(vertex).or_default();
    }

    fn add_edge(&mut self, u: u64, v: u64, weight: u32) {
        self.add_vertex(u);
        self.add_vertex(v);
        let Some(ends) = self.ends(u, v) else { return };
        match self.edges.iter_mut().find(|edge| edge.ends == ends) {
            Some(edge) if !self.options.multigraph => edge.weight = weight,
            _ => self.edges.push(Edge { ends, weight, values: Values::new(), number: None }),
        }
    }

    /// The keys of an edge are those that it was added with, or the other way round.
    fn id(edge: &Edge) -> Option<EdgeId> {
        let number = edge.number?;
        Some(EdgeId { source: edge.ends.0.into(), target: edge.ends.1.into(), number })
    }

    /// A change of one of parallel edges, done here as well; `None` where no edge has a number.
    fn change_edge(&mut self, random: &mut Random) -> Option<Update> {
        let numbered: Vec<usize> = (0..self.edges.len()).filter(|&edge| self.edges[edge].number.is_some()).collect();
        let edge = *numbered.get(random.below(numbered.len().max(1) as u32) as usize)?;
        let id = Self::id(&self.edges[edge])?;
        let action = match random.below(3) {
            0 if self.options.weight_type.is_some() => {
                self.edges[edge].weight = random.below(5);
                EdgeAction::SetWeight(self.edges[edge].weight.into())
            }
            1 if self.options.edge_properties => {
                let (name, value) = ("size", random.below(5));
                self.edges[edge].values.insert(name, OwnedValue::I64(value.into()));
                EdgeAction::SetProperty { name: name.to_owned(), value: i64::from(value).into() }
            }
            _ => {
                self.edges.remove(edge);
                EdgeAction::Remove
            }
        };
        Some(Update::ChangeEdge { id, action })
    }

    /// Takes over the numbers of edges that were committed: of a pair, they ascend in the order of the additions, and
    /// those that edges have already stay.
    fn note_numbers(&mut self, view: &View) {
        if !self.options.multigraph {
            return;
        }
        let mut numbers = numbers_of(view);
        for edge in &mut self.edges {
            let number = numbers.get_mut(&edge.ends).unwrap().pop_first().unwrap();
            assert!(edge.number.is_none_or(|known| known == number), "{edge:?} has number {number}");
            edge.number = Some(number);
        }
        assert!(numbers.values().all(BTreeSet::is_empty));
    }

    fn has_edge(&self, u: u64, v: u64) -> bool {
        let ends = self.ends(u, v);
        self.edges.iter().any(|edge| Some(edge.ends) == ends)
    }

    fn set_edge(&mut self, u: u64, v: u64, name: &'static str, value: OwnedValue) {
        let ends = self.ends(u, v);
        if let Some(edge) = self.edges.iter_mut().rfind(|edge| Some(edge.ends) == ends) {
            match value {
                OwnedValue::Null => edge.values.remove(name),
                value => edge.values.insert(name, value),
            };
        }
    }

    fn value(name: &str, random: &mut Random) -> OwnedValue {
        match (name, random.below(4)) {
            (_, 0) => OwnedValue::Null,
            ("size", value) => OwnedValue::I64(value.into()),
            (_, value) => OwnedValue::String(format!("{name} {value}")),
        }
    }

    /// A random update, done here as well.
    fn update(&mut self, random: &mut Random) -> Update {
        let (u, v) = (u64::from(random.below(NUM_KEYS)), u64::from(random.below(NUM_KEYS)));
        let name = ["size", "kind"][random.below(2) as usize];
        match random.below(100) {
            80..84 => {
                self.vertices.remove(&u);
                self.edges.retain(|edge| edge.ends.0 != u && edge.ends.1 != u);
                Update::RemoveVertex(u.into())
            }
            84..88 => {
                self.add_vertex(u);
                Update::AddVertex(u.into())
            }
            88..94 => {
                let value = Self::value(name, random);
                match &value {
                    OwnedValue::Null => drop(self.vertices.get_mut(&u).map(|values| values.remove(name))),
                    value => drop(self.vertices.entry(u).or_default().insert(name, value.clone())),
                }
                Update::set_vertex(u, name, value)
            }
            60..80 => {
                let ends = self.ends(u, v);
                self.edges.retain(|edge| Some(edge.ends) != ends);
                Update::remove_edge(u, v)
            }
            30..60 if self.options.edge_properties => {
                let value = Self::value(name, random);
                // A value makes no edge: to set one of an edge that is not there is an error.
                if value != OwnedValue::Null && !self.has_edge(u, v) {
                    self.add_edge(u, v, 0);
                    return self.addition(u, v, 0);
                }
                self.set_edge(u, v, name, value.clone());
                Update::set_edge(u, v, name, value)
            }
            94..100 if self.options.multigraph => {
                let no_edge = self.vertices.keys().next().copied();
                self.change_edge(random).or(no_edge.map(|v| Update::AddVertex(v.into()))).unwrap_or_else(|| {
                    self.add_vertex(u);
                    Update::AddVertex(u.into())
                })
            }
            20..30 if self.options.weight_type.is_some() => {
                let weight = random.below(3);
                self.add_vertex(u);
                self.add_vertex(v);
                let Some(ends) = self.ends(u, v) else { return Update::set_weight(u, v, weight) };
                if self.edges.iter().all(|edge| edge.ends != ends) {
                    self.add_edge(u, v, weight);
                }
                self.edges.iter_mut().filter(|edge| edge.ends == ends).for_each(|edge| edge.weight = weight);
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
        let mut shown = Shown { num_edges: self.edges.len() as u64, ..Shown::default() };
        shown.vertices = self.vertices.iter().map(|(&vertex, values)| (vertex, text(values))).collect();
        for edge in &self.edges {
            let parallel = shown.edges.entry(edge.ends).or_default();
            parallel.push(format!("{}{}", edge.weight, text(&edge.values)));
            parallel.sort();
        }
        shown
    }
}

fn named(schema: &graph::property::PropertySchema, value: impl Fn(usize) -> OwnedValue) -> String {
    let mut values = Values::new();
    for (place, name) in ["kind", "size"].into_iter().filter_map(|name| Some((schema.find(name)?, name))) {
        values.insert(name, value(place));
    }
    values.retain(|_, value| *value != OwnedValue::Null);
    text(&values)
}

/// What a view shows.
fn read(view: &View) -> Shown {
    let mut shown = Shown { num_edges: view.num_edges(), ..Shown::default() };
    let key = |vertex: VertexId| match view.key(vertex).unwrap() {
        Key::Integer(key) => key,
        Key::String(key) => key.parse().unwrap(),
    };
    let is_undirected = view.direction() == Direction::Undirected;
    let (mut num_arcs, mut num_in_arcs) = (0, 0);
    for v in 0..view.vertex_bound() as VertexId {
        let properties = view.properties();
        let of_vertex = named(properties.schema(), |place| properties.value(place, v).unwrap().into());
        if view.is_live(v) {
            shown.vertices.insert(key(v), of_vertex);
        } else {
            assert_eq!((&*of_vertex, view.out_degree(v)), ("", 0));
        }
        let mut entries: Vec<(VertexId, String)> = Vec::new();
        let _ = view.for_each_out_fragment(v, |targets| {
            entries.extend(targets.iter().map(|&target| (target, "0".to_owned())));
            ControlFlow::Continue(())
        });
        if view.weight_type().is_some() {
            entries.clear();
            let _ = view.for_each_weighted_out_fragment::<u32>(v, |targets, weights| {
                entries.extend(targets.iter().zip(weights).map(|(&target, weight)| (target, weight.to_string())));
                ControlFlow::Continue(())
            });
        }
        if view.options().edge_properties {
            let properties = view.edge_properties();
            let mut texts = Vec::new();
            let _ = view.for_each_out_row(v, |targets, rows| {
                for (&target, &row) in targets.iter().zip(rows) {
                    let value = |place| properties.value(place, row).unwrap().into();
                    texts.push((target, named(properties.schema(), value)));
                }
                ControlFlow::Continue(())
            });
            // Weights and rows come in the same order.
            assert!(texts.iter().map(|text| text.0).eq(entries.iter().map(|entry| entry.0)));
            entries.iter_mut().zip(texts).for_each(|((_, entry), (_, text))| entry.push_str(&text));
        }
        num_arcs += entries.len() as u64;
        num_in_arcs += view.in_degree(v) as u64;
        for (target, shows) in entries {
            let (u, w) = (key(v), key(target));
            if !is_undirected || u <= w {
                // An ordered graph has them in the order of their ids.
                let ends = if view.options().ordered { (u.min(w), u.max(w)) } else { (u, w) };
                shown.edges.entry(ends).or_default().push(shows);
            }
        }
    }
    shown.edges.values_mut().for_each(|parallel| parallel.sort());
    view.check().unwrap();
    assert_eq!(shown.vertices.len(), view.num_vertices());
    assert_eq!(num_arcs, view.num_arcs());
    assert!(!view.has_in_edges() || num_in_arcs == num_arcs);
    shown
}

/// The numbers of the edges of a multigraph, by the keys of their ends; both ends of an undirected one tell the same.
fn numbers_of(view: &View) -> BTreeMap<(u64, u64), BTreeSet<u64>> {
    let mut numbers: BTreeMap<(u64, u64), BTreeSet<u64>> = BTreeMap::new();
    let key = |vertex: VertexId| match view.key(vertex).unwrap() {
        Key::Integer(key) => key,
        Key::String(key) => key.parse().unwrap(),
    };
    for v in 0..view.vertex_bound() as VertexId {
        let _ = view.for_each_out_row(v, |targets, rows| {
            for (&target, &row) in targets.iter().zip(rows) {
                let (u, w) = (key(v), key(target));
                let ends = if view.direction() == Direction::Undirected { (u.min(w), u.max(w)) } else { (u, w) };
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
    let undirected = GraphOptions { direction: Direction::Undirected, ..directed };
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
        GraphOptions { keys: KeyScheme::String, direction: Direction::Undirected, ..weighted },
        GraphOptions { multigraph: true, ..weighted },
    ]
}

#[test]
fn what_is_seen_is_what_was_asked_for() {
    let pool = Pool::new(2).unwrap();
    for (seed, options) in kinds().into_iter().enumerate() {
        println!("seed {seed}: {options:?}");
        let random = &mut Random::new(seed as u64 + 7);
        let mut storage = Arc::new(FaultStorage::default());
        let mut db = Database::create_in(storage.clone(), Path::new(DB), options).unwrap();
        // What is known of both properties from the beginning is their types.
        let types = [Update::set_vertex(0, "size", 1), Update::set_vertex(0, "kind", "x")];
        db.apply(&types, Missing::Strict, &pool).unwrap_err();
        db.apply(&types, Missing::Lenient, &pool).unwrap();
        let of_vertex = Values::from([("size", 1.into()), ("kind", "x".into())]);
        let mut truth = Truth { options, vertices: BTreeMap::from([(0, of_vertex)]), edges: Vec::new() };
        if options.edge_properties {
            db.apply(&[truth.addition(1, 2, 0)], Missing::Lenient, &pool).unwrap();
            truth.add_edge(1, 2, 0);
            for (name, value) in [("size", OwnedValue::I64(1)), ("kind", "y".into())] {
                db.apply(&[Update::set_edge(1, 2, name, value.clone())], Missing::Lenient, &pool).unwrap();
                truth.set_edge(1, 2, name, value);
            }
        }
        let mut held: Vec<(View, Shown)> = Vec::new();
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
                    db = Database::open_in(storage.clone(), Path::new(DB)).unwrap();
                    db.verify(&pool).unwrap();
                }
                4 => {
                    // What was committed survives a power cut, snapshot or not.
                    drop(db);
                    storage = Arc::new(storage.after_crash(step));
                    db = Database::open_in(storage.clone(), Path::new(DB)).unwrap();
                }
                5 => {
                    let reader = Database::open_read_only_in(storage.clone(), Path::new(DB)).unwrap();
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
fn where_a_batch_ends_does_not_matter() {
    let pool = Pool::new(1).unwrap();
    for options in kinds() {
        let random = &mut Random::new(5);
        let create = || Database::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
        let (whole, split) = (create(), create());
        let mut truth = Truth { options, vertices: BTreeMap::new(), edges: Vec::new() };
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
fn what_is_wrong_happens_not_at_all() {
    let pool = Pool::new(1).unwrap();
    let options = GraphOptions { edge_properties: true, keys: KeyScheme::String, ..GraphOptions::default() };
    let db = Database::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
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
        "the edge from a to b: x is no value of type i64 (\"size\")"
    );
    assert_eq!(
        lenient(Update::set_edge("a", "b", "other", null())),
        "there is no property \"other\" whose value could go"
    );
    assert!(lenient(Update::add_weighted_edge("a", "b", 3)).contains("the graph has no weights"));
    assert!(lenient(Update::set_weight("a", "b", 3)).contains("the graph has no weights"));
    assert_eq!(strict(Update::set_edge("a", "x", "size", 1)), "vertex x does not exist");
    assert_eq!(strict(Update::set_edge("b", "a", "size", 1)), "there is no edge from b to a");
    assert_eq!(
        strict(Update::set_edge("b", "a", "size", null())),
        "there is no \"size\" of an edge from b to a to remove"
    );
    assert_eq!(
        strict(Update::set_edge("a", "c", "size", null())),
        "there is no \"size\" of an edge from a to c to remove"
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
    let plain = Database::create_in(Arc::new(FaultStorage::default()), Path::new(DB), GraphOptions::default()).unwrap();
    let error = plain.apply(&[Update::set_edge(1, 2, "size", 1)], Missing::Lenient, &pool).unwrap_err();
    assert_eq!(error.to_string(), "the edge from 1 to 2: the graph was loaded without properties of edges");
    let vertices: BTreeSet<_> = read_keys(&db.view().unwrap());
    assert_eq!(vertices, BTreeSet::from(["a", "b", "c"].map(str::to_owned)));
}

fn read_keys(view: &View) -> BTreeSet<String> {
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

fn amount(view: &View, source: u64, target: u64) -> String {
    let [source, target] = [source, target].map(|key| view.vertex(&key.into()).unwrap().unwrap());
    let mut found = String::new();
    let _ = view.for_each_out_row(source, |targets, rows| {
        if let Some(place) = targets.iter().position(|&other| other == target) {
            found = view.edge_properties().value(0, rows[place]).unwrap().to_string();
        }
        ControlFlow::Continue(())
    });
    found
}

/// Each set makes a row. Those that came and went between two snapshots are in no file.
#[test]
fn sets_of_one_edge_leave_one_row_on_disk() {
    let (pool, disk) = (Pool::new(1).unwrap(), FaultStorage::default());
    let db = Database::create_in(Arc::new(disk.clone()), Path::new(DB), payments()).unwrap();
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

/// A merge writes rows anew without those that only dropped snapshots named; views that are open keep theirs.
#[test]
fn rows_of_dropped_snapshots_are_reclaimed() {
    let (pool, disk) = (Pool::new(1).unwrap(), FaultStorage::default());
    let db = Database::create_in(Arc::new(disk.clone()), Path::new(DB), payments()).unwrap();
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
    // An edge that is in no snapshot yet, over the rows that are written anew.
    db.apply(&[Update::add_edge_with(7, 5, [("amount", 75)])], Missing::Lenient, &pool).unwrap();
    db.checkpoint(None).unwrap();
    let live = [Update::set_edge(7, 5, "amount", 76), Update::add_edge_with(7, 6, [("amount", 77)])];
    db.apply(&live, Missing::Lenient, &pool).unwrap();
    db.merge(MergeScope::All, &pool, &Silent).unwrap();
    assert!(rows_bytes(&disk) * 3 < before, "{} bytes of {before}", rows_bytes(&disk));
    let shown = |view: &View| (0..num_edges).map(|edge| amount(view, edge, edge + 1)).collect::<Vec<_>>();
    for (round, view) in held.iter().enumerate() {
        let expected: Vec<_> = (0..num_edges).map(|edge| (edge * 10 + round as u64).to_string()).collect();
        assert_eq!(shown(view), expected, "round {round}");
    }
    let view = db.view().unwrap();
    assert_eq!((shown(&view), amount(&view, 7, 5), amount(&view, 7, 6)), (shown(&held[4]), "76".into(), "77".into()));
    db.verify(&pool).unwrap();
    drop((held, view, db));
    let db = Database::open_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
    assert_eq!(amount(&db.view().unwrap(), 7, 5), "76");
    db.verify(&pool).unwrap();
}

/// Properties that are given with an edge are those that are set one by one, in small batches and large ones.
#[test]
fn edges_come_with_their_properties() {
    let pool = Pool::new(2).unwrap();
    for multigraph in [false, true] {
        for keys in [KeyScheme::Dense, KeyScheme::String] {
            let options = GraphOptions { edge_properties: true, multigraph, keys, ..GraphOptions::default() };
            let create = || Database::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
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

/// The batches of a run, and the graph before the first and after each.
fn scripted(options: GraphOptions, seed: u64) -> (Vec<Vec<Update>>, Vec<Shown>) {
    let random = &mut Random::new(seed);
    let mut truth = Truth { options, vertices: BTreeMap::new(), edges: Vec::new() };
    let (mut batches, mut shown) = (Vec::new(), vec![truth.shown()]);
    for size in [1, 12, 3, 1, 20, 2] {
        batches.push((0..size).map(|_| truth.update(random)).collect());
        shown.push(truth.shown());
    }
    (batches, shown)
}

/// Whatever a power cut leaves is the graph after some commit, not before the last one that was answered.
#[test]
fn crash_at_any_call_leaves_a_prefix_of_commits() {
    let pool = Pool::new(1).unwrap();
    for (seed, options) in kinds().into_iter().enumerate() {
        let (batches, shown) = scripted(options, seed as u64 + 100);
        let (mut call, mut num_outcomes) = (0, BTreeSet::new());
        loop {
            let disk = FaultStorage::default();
            let db = Database::create_in(Arc::new(disk.clone()), Path::new(DB), options).unwrap();
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
            disk.set_plan(FaultPlan::CrashAt(disk.num_calls() + call));
            let mut num_answered = 0;
            for (number, batch) in batches.iter().enumerate() {
                if db.apply(batch, Missing::Lenient, &pool).is_err() || number == 2 && db.checkpoint(None).is_err() {
                    break;
                }
                num_answered = number + 1;
            }
            let is_whole = num_answered == batches.len() && db.merge(MergeScope::All, &pool, &Silent).is_ok();
            for of_disk in 0..2 {
                let after = Database::open_in(Arc::new(disk.after_crash(of_disk)), Path::new(DB)).unwrap();
                let found = read(&after.view().unwrap());
                let place = shown.iter().rposition(|shown| *shown == found);
                let place = place.unwrap_or_else(|| panic!("{options:?}, call {call}: no state is {found:?}"));
                assert!(place >= num_answered || shown[num_answered] == found, "{options:?}, call {call}: {place}");
                after.verify(&pool).unwrap();
                num_outcomes.insert(place);
            }
            call += 1;
            if is_whole {
                break;
            }
        }
        assert!(num_outcomes.len() > 3 && call > 20, "{options:?}: {num_outcomes:?} after {call} calls");
    }
}

/// Requests that share a group plan into the same rows: one that is refused leaves those of the others as they are.
#[test]
fn refused_request_leaves_rows_of_its_group() {
    let (pool, disk) = (Pool::new(1).unwrap(), FaultStorage::default());
    let db = Database::create_in(Arc::new(disk), Path::new(DB), payments()).unwrap();
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
