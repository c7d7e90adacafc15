//! A plain model of a live graph, and random updates done to both.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use anden_engine::{EdgeWeight, GraphOptions, Key, KeyScheme, NewValue, Update, View};
use base::VertexId;
use graph::property::OwnedValue;
use graph::{Direction, Graph, InEdges, WantedLists, WeightType, WeightedEdges};
use testkit::Random;

/// Keys are made of numbers below this.
pub const NUM_KEYS: u32 = 90;

/// What a graph is, key by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    pub vertices: BTreeSet<String>,
    /// By source and target, of an undirected graph in both orders; weights as text.
    pub arcs: BTreeMap<(String, String), String>,
    pub num_edges: u64,
    /// By vertex and name of the property; values with their types.
    pub values: BTreeMap<(String, String), String>,
}

/// The graph as it should be.
#[derive(Clone)]
pub struct Truth {
    pub options: GraphOptions,
    /// Numbers of vertices, and of the ends of edges in the order in which they are stored.
    pub vertices: BTreeSet<u64>,
    pub edges: BTreeMap<(u64, u64), i64>,
    /// By number of the vertex and name of the property.
    pub values: BTreeMap<(u64, String), OwnedValue>,
    /// Without keys, all ids below this were vertices once.
    pub bound: u64,
}

impl Truth {
    /// Of a graph without vertices.
    pub fn new(options: GraphOptions) -> Self {
        Self { options, vertices: BTreeSet::new(), edges: BTreeMap::new(), values: BTreeMap::new(), bound: 0 }
    }

    /// An edge is there with this weight, and its ends with it.
    pub fn add_edge(&mut self, u: u64, v: u64, weight: i64) {
        self.add_vertex(u);
        self.add_vertex(v);
        if let Some(edge) = self.edge(u, v) {
            self.edges.insert(edge, weight);
        }
    }

    pub fn key(&self, number: u64) -> Key {
        match self.options.keys {
            KeyScheme::Dense => Key::Integer(number),
            KeyScheme::Integer => Key::Integer(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            KeyScheme::String => Key::String(format!("key {number}")),
        }
    }

    pub fn edge(&self, u: u64, v: u64) -> Option<(u64, u64)> {
        match self.options {
            GraphOptions { ordered: true, .. } if u == v => None,
            GraphOptions { ordered: true, .. } | GraphOptions { direction: Direction::Undirected, .. } => {
                Some((u.min(v), u.max(v)))
            }
            _ => Some((u, v)),
        }
    }

    pub fn add_vertex(&mut self, number: u64) {
        if self.options.keys == KeyScheme::Dense && number >= self.bound {
            self.vertices.extend(self.bound..number);
            self.bound = number + 1;
        }
        self.vertices.insert(number);
    }

    pub fn remove_vertex(&mut self, number: u64) {
        if self.vertices.remove(&number) {
            self.edges.retain(|&(u, v), _| u != number && v != number);
            self.values.retain(|(vertex, _), _| *vertex != number);
        }
    }

    /// Gives a vertex a random value, or takes one away.
    pub fn set_value(&mut self, number: u64, random: &mut Random) -> Update {
        let name = ["size", "name", "ratio", "since"][random.below(4) as usize];
        let value = match (name, random.below(6)) {
            // Nothing is said of its type.
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

    /// A random update, done here as well.
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
                if let Some(edge) = self.edge(u, v) {
                    self.edges.remove(&edge);
                }
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
        let mut model = Model { num_edges: self.edges.len() as u64, ..Model::default() };
        model.vertices = self.vertices.iter().map(|&v| name(v)).collect();
        let value = |((vertex, of), value): (&(u64, String), &OwnedValue)| {
            ((name(*vertex), of.clone()), format!("{:?}", value.as_value()))
        };
        model.values = self.values.iter().map(value).collect();
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
pub fn read(view: &View) -> Model {
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
    check_words(view);
    model.values = values(view);
    view.check().unwrap();
    assert_eq!(model.vertices.len(), view.num_vertices());
    assert_eq!(model.arcs.len() as u64, view.num_arcs());
    assert!(!view.has_in_edges() || num_in_arcs == model.arcs.len());
    model
}

/// Lists that are asked for together are those that are asked for one by one, and only those.
fn check_words(view: &View) {
    let patterns = [!0, 0x9e37_79b9_7f4a_7c15, 1, 0, 1 << 63];
    for group in WantedLists::groups(0..view.vertex_bound() as VertexId) {
        let wanted = &group.among(|word, _| patterns[word % patterns.len()]);
        let (mut out, mut inward, mut expected) =
            (BTreeMap::new(), BTreeMap::new(), [BTreeMap::new(), BTreeMap::new()]);
        for v in wanted.vertices() {
            let [out, inward] = &mut expected;
            let _ = view.for_each_out_fragment(v, |list| note(out, v, list));
            let _ = view.for_each_in_fragment(v, |list| note(inward, v, list));
        }
        view.for_each_out_fragment_of(wanted, |v, list| note(&mut out, v, list));
        view.for_each_in_fragment_of(wanted, |v, list| note(&mut inward, v, list));
        assert_eq!([&out, &inward], [&expected[0], &expected[1]]);
        // What stands as on a dense page is the whole list.
        for (dense, lists) in
            [(view.dense_out_lists(wanted), &expected[0]), (view.dense_in_lists(wanted), &expected[1])]
        {
            let Some((page, dense)) = dense else { continue };
            assert_eq!(dense.both(wanted), dense);
            for v in dense.vertices() {
                let list = page.list((v - page.first()) as usize);
                assert_eq!(list, lists.get(&v).map_or(&[][..], |list| list), "{v}");
            }
        }
        // Who leaves each list at once still comes to the others.
        let mut left = BTreeSet::new();
        view.for_each_out_fragment_of(wanted, |v, list| {
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
pub fn values(view: &View) -> BTreeMap<(String, String), String> {
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

pub fn kinds() -> Vec<GraphOptions> {
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
