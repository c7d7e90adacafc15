//! A plain model of a graph, and random updates for both.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_engine::{EdgeWeight, GraphOptions, Key, KeyScheme, NewValue, SnapshotView, Update};
use anden_graph::property::OwnedValue;
use anden_graph::{Direction, Graph, GraphKind, VertexMask, WeightType, WeightedEdges};
use anden_testkit::{ModelGraph, Random};

/// The bound of the numbers in keys.
pub const NUM_KEYS: u32 = 90;

/// A comparable form of a graph, by keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    pub vertices: BTreeSet<String>,
    /// Weights as text, by source and target; both orders for an undirected graph.
    pub arcs: BTreeMap<(String, String), String>,
    pub num_edges: u64,
    /// Values with their types, by vertex and property name.
    pub values: BTreeMap<(String, String), String>,
}

/// The model of a graph.
#[derive(Clone)]
pub struct Truth {
    pub options: GraphOptions,
    /// Numbers of vertices, and the weights of edges.
    pub graph: ModelGraph<u64, i64>,
    /// Values by the number of the vertex and the property name.
    pub values: BTreeMap<(u64, String), OwnedValue>,
    /// With dense keys: all ids below this have been vertices.
    pub bound: u64,
}

impl Truth {
    /// The model of an empty graph.
    pub fn new(options: GraphOptions) -> Self {
        let graph = ModelGraph::new(options.graph_kind).ordered(options.ordered);
        Self { options, graph, values: BTreeMap::new(), bound: 0 }
    }

    /// Adds an edge or sets its weight, and adds its ends.
    pub fn add_edge(&mut self, u: u64, v: u64, weight: i64) {
        self.add_vertex(u);
        self.add_vertex(v);
        self.graph.add_edge(u, v, weight);
    }

    pub fn key(&self, number: u64) -> Key {
        match self.options.keys {
            KeyScheme::Dense => Key::Integer(number),
            KeyScheme::Integer => Key::Integer(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            KeyScheme::String => Key::String(format!("key {number}")),
        }
    }

    pub fn add_vertex(&mut self, number: u64) {
        if self.options.keys == KeyScheme::Dense && number >= self.bound {
            (self.bound..number).for_each(|vertex| self.graph.add_vertex(vertex));
            self.bound = number + 1;
        }
        self.graph.add_vertex(number);
    }

    pub fn remove_vertex(&mut self, number: u64) {
        if self.graph.remove_vertex(number) {
            self.values.retain(|(vertex, _), _| *vertex != number);
        }
    }

    /// Sets a random value of a vertex, or removes one. Returns the update.
    pub fn set_value(&mut self, number: u64, random: &mut Random) -> Update {
        let name = ["size", "name", "ratio", "since"][random.below(4) as usize];
        let value = match (name, random.below(6)) {
            // Null needs a known property, because it has no type.
            ("since", 0) | (_, 1) if self.values.keys().any(|(_, other)| other == name) => OwnedValue::Null,
            ("size", value) => OwnedValue::I64(value.into()),
            ("name", value) => OwnedValue::String("name ".repeat(value as usize)),
            ("ratio", value) => OwnedValue::F64(f64::from(value) / 2.0),
            (_, value) => OwnedValue::Date(value as i32),
        };
        let update = Update::set_vertex(self.key(number), name, value.clone());
        match value {
            OwnedValue::Null => drop(self.values.remove(&(number, name.to_owned()))),
            value => {
                self.add_vertex(number);
                self.values.insert((number, name.to_owned()), value);
            }
        }
        match update {
            Update::SetVertexProperty { vertex, name, value: NewValue::Value(value) }
                if name != "name" && value != OwnedValue::Null =>
            {
                let text = value.as_value().to_string();
                Update::SetVertexProperty { vertex, name, value: NewValue::Text { text, is_quoted: false } }
            }
            update => update,
        }
    }

    pub fn weight(&self, weight: i64) -> Option<EdgeWeight> {
        self.options.weight_type.map(|weight_type| match weight_type {
            WeightType::U32 | WeightType::I64 => weight.into(),
            WeightType::F32 | WeightType::F64 => (weight as f64 / 4.0).into(),
        })
    }

    /// A random update, also applied here.
    pub fn update(&mut self, random: &mut Random) -> Update {
        let number = |random: &mut Random| {
            let limit = 1 + random.below(NUM_KEYS);
            u64::from(random.below(limit))
        };
        let (u, v) = (number(random), number(random));
        let weight = i64::from(random.below(5));
        match random.below(113) {
            0..60 => {
                self.add_edge(u, v, weight);
                let (source, target) = (self.key(u), self.key(v));
                match self.weight(weight) {
                    Some(weight) if u % 5 == 0 => Update::SetWeight { source, target, weight },
                    weight => Update::AddEdge { source, target, weight, properties: Vec::new() },
                }
            }
            60..94 => {
                self.graph.remove_edges(u, v);
                Update::RemoveEdge { source: self.key(u), target: self.key(v) }
            }
            94..97 => {
                self.add_vertex(u);
                Update::AddVertex(self.key(u))
            }
            97..110 => self.set_value(u, random),
            _ => {
                self.remove_vertex(u);
                Update::RemoveVertex(self.key(u))
            }
        }
    }

    pub fn model(&self) -> Model {
        let name = |number: u64| self.key(number).to_string();
        let mut model = Model { num_edges: self.graph.num_edges(), ..Model::default() };
        model.vertices = self.graph.vertices().iter().map(|&v| name(v)).collect();
        let value = |((vertex, of), value): (&(u64, String), &OwnedValue)| {
            ((name(*vertex), of.clone()), format!("{:?}", value.as_value()))
        };
        model.values = self.values.iter().map(value).collect();
        for (source, target, &weight) in self.graph.arcs() {
            let weight = self.weight(weight).map_or(String::new(), |weight| match self.options.weight_type {
                Some(WeightType::F32 | WeightType::F64) => format!("{weight}"),
                _ => weight.to_string(),
            });
            model.arcs.insert((name(source), name(target)), weight);
        }
        model
    }
}

/// The comparable form of a view.
pub fn read(view: &SnapshotView) -> Model {
    let mut model = Model { num_edges: view.num_edges(), ..Model::default() };
    let name = |v: VertexId| view.key(v).unwrap().to_string();
    let mut num_in_arcs = 0;
    for v in 0..view.vertex_bound() as VertexId {
        if view.is_live(v) {
            assert!(model.vertices.insert(name(v)));
            assert_eq!(view.vertex(&view.key(v).unwrap()).unwrap(), Some(v));
        }
        let mut list = Vec::new();
        let _ = view.for_each_fragment(Direction::Out, v, |targets| {
            assert!(targets.is_sorted_by(|a, b| a < b));
            list.extend_from_slice(targets);
            ControlFlow::Continue(())
        });
        assert_eq!(list.len(), view.degree(Direction::Out, v));
        let weights = weights(view, v);
        for (i, &target) in list.iter().enumerate() {
            let weight = weights.as_ref().map_or(String::new(), |weights| weights[i].clone());
            assert!(model.arcs.insert((name(v), name(target)), weight).is_none(), "an edge shows twice");
        }
        if view.has_lists(Direction::In) {
            let _ = view.for_each_fragment(Direction::In, v, |sources| {
                num_in_arcs += sources.len();
                for &source in sources {
                    let mut found = false;
                    let _ = view.for_each_fragment(Direction::Out, source, |targets| {
                        found |= targets.contains(&v);
                        ControlFlow::Continue(())
                    });
                    assert!(found, "an in-edge without its out-edge");
                }
                ControlFlow::Continue(())
            });
        }
    }
    check_words(view);
    model.values = values(view);
    view.check().unwrap();
    assert_eq!(model.vertices.len(), view.num_vertices());
    assert_eq!(model.arcs.len() as u64, view.num_arcs());
    assert!(!view.has_lists(Direction::In) || num_in_arcs == model.arcs.len());
    model
}

/// A read of several lists gives the single lists, and no others.
fn check_words(view: &SnapshotView) {
    let patterns = [!0, 0x9e37_79b9_7f4a_7c15, 1, 0, 1 << 63];
    for group in VertexMask::groups(0..view.vertex_bound() as VertexId) {
        let wanted = &group.among(|word, _| patterns[word % patterns.len()]);
        let (mut out, mut inward, mut expected) =
            (BTreeMap::new(), BTreeMap::new(), [BTreeMap::new(), BTreeMap::new()]);
        for v in wanted.vertices() {
            let [out, inward] = &mut expected;
            let _ = view.for_each_fragment(Direction::Out, v, |list| note(out, v, list));
            let _ = view.for_each_fragment(Direction::In, v, |list| note(inward, v, list));
        }
        view.for_each_fragment_of(Direction::Out, wanted, |v, list| note(&mut out, v, list));
        view.for_each_fragment_of(Direction::In, wanted, |v, list| note(&mut inward, v, list));
        assert_eq!([&out, &inward], [&expected[0], &expected[1]]);
        // A list on a dense page is complete.
        for (dense, lists) in [
            (view.dense_lists(Direction::Out, wanted), &expected[0]),
            (view.dense_lists(Direction::In, wanted), &expected[1]),
        ] {
            let Some((page, dense)) = dense else { continue };
            assert_eq!(dense.both(wanted), dense);
            for v in dense.vertices() {
                let list = page.list((v - page.first()) as usize);
                assert_eq!(list, lists.get(&v).map_or(&[][..], |list| list), "{v}");
            }
        }
        // A break out of one list does not skip the others.
        let mut left = BTreeSet::new();
        view.for_each_fragment_of(Direction::Out, wanted, |v, list| {
            assert!(list.is_empty() || left.insert(v), "a list that was left goes on");
            if list.is_empty() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        assert!(left.iter().eq(expected[0].keys()));
    }
}

fn note(lists: &mut BTreeMap<VertexId, Vec<VertexId>>, v: VertexId, list: &[VertexId]) -> ControlFlow<()> {
    if !list.is_empty() {
        let all = lists.entry(v).or_default();
        all.extend_from_slice(list);
        all.sort_unstable();
    }
    ControlFlow::Continue(())
}

/// The values of all vertices, by column and one by one.
pub fn values(view: &SnapshotView) -> BTreeMap<(String, String), String> {
    let mut values = BTreeMap::new();
    let properties = view.properties();
    for (place, (name, property_type)) in properties.schema().iter().enumerate() {
        let column = properties.column(place).unwrap().unwrap();
        assert_eq!((column.len(), column.property_type()), (view.vertex_bound(), property_type));
        for v in 0..view.vertex_bound() as VertexId {
            let value = properties.value(place, v).unwrap();
            assert_eq!(column.get(v as usize), value);
            assert!(value.is_null() || view.is_live(v), "what is no vertex has no value");
            if !value.is_null() {
                values.insert((view.key(v).unwrap().to_string(), name.to_owned()), format!("{value:?}"));
            }
        }
    }
    assert!(properties.column(properties.schema().len()).unwrap().is_none());
    values
}

fn weights(view: &SnapshotView, v: VertexId) -> Option<Vec<String>> {
    fn of<W: anden_graph::Weight>(view: &SnapshotView, v: VertexId) -> Vec<String> {
        let mut all = Vec::new();
        let _ = view.for_each_weighted_fragment::<W>(Direction::Out, v, |targets, weights| {
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

pub fn kinds() -> Vec<GraphOptions> {
    let directed = GraphOptions::default();
    let undirected = GraphOptions { graph_kind: GraphKind::Undirected, ..directed };
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
