//! Random updates of a live graph, with checkpoints, appends and merges between them, against a plain model.
//!
//! Views that were taken at any time are held, and compared again once much has happened.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anden_engine::{
    AppendOptions, Changes, Database, EdgeWeight, GraphOptions, Key, KeyScheme, MergeScope, Missing, Update, View,
};
use base::VertexId;
use base::parallel::Pool;
use base::progress::Silent;
use base::storage::FaultStorage;
use graph::{Direction, Graph, InEdges, WeightType, WeightedEdges};
use testkit::Random;

const DB: &str = "db";
/// Keys are made of numbers below this.
const NUM_KEYS: u32 = 90;

/// What a graph is, key by key.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    vertices: BTreeSet<String>,
    /// By source and target, of an undirected graph in both orders; weights as text.
    arcs: BTreeMap<(String, String), String>,
    num_edges: u64,
}

/// The graph as it should be.
struct Truth {
    options: GraphOptions,
    /// Numbers of vertices, and of the ends of edges in the order in which they are stored.
    vertices: BTreeSet<u64>,
    edges: BTreeMap<(u64, u64), i64>,
    /// Without keys, all ids below this were vertices once.
    bound: u64,
}

impl Truth {
    fn key(&self, number: u64) -> Key {
        match self.options.keys {
            KeyScheme::Dense => Key::Integer(number),
            KeyScheme::Integer => Key::Integer(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            KeyScheme::String => Key::String(format!("key {number}")),
        }
    }

    fn edge(&self, u: u64, v: u64) -> Option<(u64, u64)> {
        match self.options {
            GraphOptions { ordered: true, .. } if u == v => None,
            GraphOptions { ordered: true, .. } | GraphOptions { direction: Direction::Undirected, .. } => {
                Some((u.min(v), u.max(v)))
            }
            _ => Some((u, v)),
        }
    }

    fn add_vertex(&mut self, number: u64) {
        if self.options.keys == KeyScheme::Dense && number >= self.bound {
            self.vertices.extend(self.bound..number);
            self.bound = number + 1;
        }
        self.vertices.insert(number);
    }

    fn remove_vertex(&mut self, number: u64) {
        if self.vertices.remove(&number) {
            self.edges.retain(|&(u, v), _| u != number && v != number);
        }
    }

    fn weight(&self, weight: i64) -> Option<EdgeWeight> {
        self.options.weight_type.map(|weight_type| match weight_type {
            WeightType::U32 | WeightType::I64 => weight.into(),
            WeightType::F32 | WeightType::F64 => (weight as f64 / 4.0).into(),
        })
    }

    /// A random update, done here as well.
    fn update(&mut self, random: &mut Random) -> Update {
        let number = |random: &mut Random| {
            let limit = 1 + random.below(NUM_KEYS);
            u64::from(random.below(limit))
        };
        let (u, v) = (number(random), number(random));
        let weight = i64::from(random.below(5));
        match random.below(100) {
            0..60 => {
                self.add_vertex(u);
                self.add_vertex(v);
                if let Some(edge) = self.edge(u, v) {
                    self.edges.insert(edge, weight);
                }
                Update::AddEdge { source: self.key(u), target: self.key(v), weight: self.weight(weight) }
            }
            60..94 => {
                if let Some(edge) = self.edge(u, v) {
                    self.edges.remove(&edge);
                }
                Update::RemoveEdge { source: self.key(u), target: self.key(v) }
            }
            94..97 => {
                self.add_vertex(u);
                Update::AddVertex(self.key(u))
            }
            _ => {
                self.remove_vertex(u);
                Update::RemoveVertex(self.key(u))
            }
        }
    }

    fn model(&self) -> Model {
        let name = |number: u64| self.key(number).to_string();
        let mut model = Model { num_edges: self.edges.len() as u64, ..Model::default() };
        model.vertices = self.vertices.iter().map(|&v| name(v)).collect();
        for (&(u, v), &weight) in &self.edges {
            let weight = self.weight(weight).map_or(String::new(), |weight| match self.options.weight_type {
                Some(WeightType::F32 | WeightType::F64) => format!("{weight}"),
                _ => weight.to_string(),
            });
            model.arcs.insert((name(u), name(v)), weight.clone());
            if self.options.direction == Direction::Undirected {
                model.arcs.insert((name(v), name(u)), weight);
            }
        }
        model
    }
}

/// What a view shows.
fn read(view: &View) -> Model {
    let mut model = Model { num_edges: view.num_edges(), ..Model::default() };
    let name = |v: VertexId| view.key(v).unwrap().to_string();
    let mut num_in_arcs = 0;
    for v in 0..view.vertex_bound() as VertexId {
        if view.is_live(v) {
            assert!(model.vertices.insert(name(v)));
            assert_eq!(view.vertex(&view.key(v).unwrap()).unwrap(), Some(v));
        }
        let mut list = Vec::new();
        let _ = view.for_each_out_fragment(v, |targets| {
            assert!(targets.is_sorted_by(|a, b| a < b));
            list.extend_from_slice(targets);
            ControlFlow::Continue(())
        });
        assert_eq!(list.len(), view.out_degree(v));
        let weights = weights(view, v);
        for (i, &target) in list.iter().enumerate() {
            let weight = weights.as_ref().map_or(String::new(), |weights| weights[i].clone());
            assert!(model.arcs.insert((name(v), name(target)), weight).is_none(), "an edge shows twice");
        }
        if view.has_in_edges() {
            let _ = view.for_each_in_fragment(v, |sources| {
                num_in_arcs += sources.len();
                for &source in sources {
                    let mut found = false;
                    let _ = view.for_each_out_fragment(source, |targets| {
                        found |= targets.contains(&v);
                        ControlFlow::Continue(())
                    });
                    assert!(found, "an in-edge without its out-edge");
                }
                ControlFlow::Continue(())
            });
        }
    }
    view.check().unwrap();
    assert_eq!(model.vertices.len(), view.num_vertices());
    assert_eq!(model.arcs.len() as u64, view.num_arcs());
    assert!(!view.has_in_edges() || num_in_arcs == model.arcs.len());
    model
}

fn weights(view: &View, v: VertexId) -> Option<Vec<String>> {
    fn of<W: graph::Weight>(view: &View, v: VertexId) -> Vec<String> {
        let mut all = Vec::new();
        let _ = view.for_each_weighted_out_fragment::<W>(v, |targets, weights| {
            assert_eq!(targets.len(), weights.len());
            all.extend(weights.iter().map(ToString::to_string));
            ControlFlow::Continue(())
        });
        all
    }
    view.weight_type().map(|weight_type| match weight_type {
        WeightType::U32 => of::<u32>(view, v),
        WeightType::I64 => of::<i64>(view, v),
        WeightType::F32 => of::<f32>(view, v),
        WeightType::F64 => of::<f64>(view, v),
    })
}

fn kinds() -> Vec<GraphOptions> {
    let directed = GraphOptions::default();
    let undirected = GraphOptions { direction: Direction::Undirected, ..directed };
    vec![
        directed,
        GraphOptions { keys: KeyScheme::Dense, weight_type: Some(WeightType::U32), ..directed },
        GraphOptions { in_edges: false, keys: KeyScheme::String, weight_type: Some(WeightType::F64), ..directed },
        GraphOptions { ordered: true, keys: KeyScheme::Dense, ..directed },
        GraphOptions { keys: KeyScheme::String, ..undirected },
        GraphOptions { weight_type: Some(WeightType::I64), ..undirected },
        GraphOptions { keys: KeyScheme::Dense, weight_type: Some(WeightType::F32), ..undirected },
    ]
}

#[test]
fn what_is_seen_is_what_was_asked_for() {
    let pool = Pool::new(2).unwrap();
    for (seed, options) in kinds().into_iter().enumerate() {
        println!("seed {seed}: {options:?}");
        let random = &mut Random::new(seed as u64 + 77);
        let storage = Arc::new(FaultStorage::default());
        let mut db = Database::create_in(storage.clone(), Path::new(DB), options).unwrap();
        let mut truth = Truth { options, vertices: BTreeSet::new(), edges: BTreeMap::new(), bound: 0 };
        let mut held: Vec<(View, Model)> = Vec::new();
        for step in 0..120 {
            let num_updates = [1, 3, 20, 300][random.below(4) as usize];
            let updates: Vec<_> = (0..num_updates).map(|_| truth.update(random)).collect();
            let applied = db.apply(&updates, Missing::Lenient, &pool).unwrap();
            let model = truth.model();
            assert_eq!((applied.vertices, applied.edges), (model.vertices.len() as u64, model.num_edges));
            let view = db.view().unwrap();
            assert_eq!(read(&view), model, "step {step}");
            match random.below(12) {
                0 | 1 => {
                    db.checkpoint(None).unwrap();
                    assert_eq!(read(&db.view().unwrap()), model, "after a checkpoint in step {step}");
                }
                2 => {
                    let (u, v) = (random.below(NUM_KEYS).into(), random.below(NUM_KEYS).into());
                    let (source, target) = (truth.key(u), truth.key(v));
                    let mut changes = Changes::default();
                    changes.added.push((source, target, truth.weight(3)));
                    truth.add_vertex(u);
                    truth.add_vertex(v);
                    if let Some(edge) = truth.edge(u, v) {
                        truth.edges.insert(edge, 3);
                    }
                    db.append_changes(&changes, &AppendOptions::default(), &pool, &Silent).unwrap();
                    assert_eq!(read(&db.view().unwrap()), truth.model(), "after an append in step {step}");
                }
                3 => {
                    db.merge(MergeScope::All, &pool, &Silent).unwrap();
                }
                4 => {
                    let newest = db.snapshots().last().map(|snapshot| snapshot.number).unwrap();
                    if db.snapshots().len() > 1 {
                        db.drop_snapshots(&[newest], &Silent).unwrap();
                    }
                }
                5 if db.snapshots().len() > 2 => {
                    db.checkpoint(None).unwrap();
                    drop(db);
                    db = Database::open_in(storage.clone(), Path::new(DB)).unwrap();
                    db.verify(&pool).unwrap();
                }
                _ => {}
            }
            assert_eq!(read(&db.view().unwrap()), truth.model(), "at the end of step {step}");
            if random.below(4) == 0 {
                held.push((view, model));
            }
            if held.len() > 4 {
                let (view, model) = held.swap_remove(random.below(5) as usize);
                assert_eq!(read(&view), model, "a view that was held until step {step}");
            }
        }
        db.verify(&pool).unwrap();
    }
}

#[test]
fn what_is_not_there_is_an_error_to_the_strict() {
    let pool = Pool::new(1).unwrap();
    let options = GraphOptions { keys: KeyScheme::String, ..GraphOptions::default() };
    let db = Database::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
    let strict = |updates: &[Update]| db.apply(updates, Missing::Strict, &pool).map_err(|error| error.to_string());
    let vertices = ["a", "b", "c"].map(|key| Update::AddVertex(key.into()));
    strict(&vertices).unwrap();
    strict(&[Update::add_edge("a", "b"), Update::remove_edge("a", "b"), Update::add_edge("b", "c")]).unwrap();
    let refused = [
        (vec![Update::add_edge("a", "x")], "vertex x does not exist"),
        (vec![Update::add_edge("a", "c"), Update::remove_edge("c", "a")], "there is no edge from c to a to remove"),
        (vec![Update::remove_edge("a", "x")], "there is no edge from a to x to remove"),
        (vec![Update::RemoveVertex("x".into())], "there is no vertex x to remove"),
        (
            vec![Update::RemoveVertex("b".into()), Update::remove_edge("b", "c")],
            "there is no edge from b to c to remove",
        ),
        (vec![Update::RemoveVertex("b".into()), Update::add_edge("a", "b")], "vertex b does not exist"),
    ];
    let before = read(&db.view().unwrap());
    assert_eq!(before.arcs.len(), 1);
    for (updates, expected) in refused {
        assert_eq!(strict(&updates), Err(expected.to_owned()));
        assert_eq!(read(&db.view().unwrap()), before, "nothing has happened");
    }
    strict(&[Update::RemoveVertex("b".into()), Update::AddVertex("b".into()), Update::add_edge("a", "b")]).unwrap();
    assert_eq!(read(&db.view().unwrap()).arcs.len(), 1);
}

#[test]
fn what_does_not_fit_the_graph_is_refused() {
    let pool = Pool::new(1).unwrap();
    let create = |options| Database::create_in(Arc::new(FaultStorage::default()), Path::new(DB), options).unwrap();
    let refused = |options, update: Update| {
        let db = create(options);
        let updates = [Update::AddVertex(1.into()), update];
        let error = db.apply(&updates, Missing::Lenient, &pool).unwrap_err().to_string();
        assert_eq!(db.view().unwrap().num_vertices(), 0, "nothing has happened");
        error
    };
    let plain = GraphOptions::default();
    let weighted = GraphOptions { weight_type: Some(WeightType::U32), ..plain };
    assert!(refused(plain, Update::add_weighted_edge(1, 2, 3)).contains("the graph has no weights"));
    assert!(refused(weighted, Update::add_edge(1, 2)).contains("has no weight"));
    assert!(refused(weighted, Update::add_weighted_edge(1, 2, -3)).contains("has weight -3"));
    assert!(refused(plain, Update::add_edge("x", "y")).contains("the graph has integer ids"));
    let dense = GraphOptions { keys: KeyScheme::Dense, ..plain };
    assert!(refused(dense, Update::add_edge(1, u64::MAX)).contains("at most"));
    assert!(refused(GraphOptions { multigraph: true, ..plain }, Update::add_edge(1, 2)).contains("multigraph"));
}
