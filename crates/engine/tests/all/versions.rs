//! A plain model of a graph with snapshots: one set of edges for each, without sharing.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use anden_engine::{Changes, Duplicates, EdgeWeight, GraphOptions, Key, KeyScheme, SnapshotView};
use anden_graph::property::{OwnedValue, PropertyType, PropertyValue};
use anden_graph::{Direction, Graph as _, GraphKind, Page, Weight, WeightType, WeightedEdges};
use anden_testkit::ModelGraph;

/// Edges with their weights, ascending. Graphs with rows have rows instead of weights.
pub type Edges = ModelGraph<u32, u32>;

/// Property values that are not null, by name and vertex.
pub type Values = BTreeMap<(String, u32), OwnedValue>;

/// A graph at one snapshot, by ids.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    pub bound: u32,
    /// The live vertices, and the edges.
    pub edges: Edges,
    /// The properties and their types.
    pub schema: Vec<(String, PropertyType)>,
    pub values: Values,
}

impl Graph {
    fn new(options: &GraphOptions) -> Self {
        let edges = Edges::new(options.graph_kind).ordered(options.ordered).multigraph(options.multigraph);
        Self { bound: 0, edges, schema: Vec::new(), values: Values::new() }
    }
}

/// The weight of an edge, and the number in its properties, 0 without values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Beside {
    pub weight: u32,
    pub number: u32,
}

/// The model of a database.
#[derive(Clone, Debug)]
pub struct Model {
    pub options: GraphOptions,
    pub io_order: bool,
    /// The keys, by id.
    pub keys: Vec<Key>,
    /// The existing snapshots.
    pub snapshots: BTreeMap<u32, (Option<String>, Graph)>,
    /// The newest committed graph.
    pub newest: Graph,
    pub next_number: u32,
    /// For graphs with rows: the weight and number of each row.
    pub rows: Vec<Beside>,
}

/// Changes whose weights are small numbers.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub added: Vec<(Key, Key, u32)>,
    pub removed: Vec<(Key, Key)>,
    pub added_vertices: Vec<Key>,
    pub removed_vertices: Vec<Key>,
    pub set: Vec<(Key, String, OwnedValue)>,
    pub name: Option<String>,
}

impl Asked {
    pub fn len(&self) -> usize {
        let num_vertices = self.added_vertices.len() + self.removed_vertices.len();
        self.added.len() + self.removed.len() + num_vertices + self.set.len()
    }

    /// The changes in the type of the library.
    pub fn changes(&self, options: &GraphOptions) -> Changes {
        let weight = |asked: u32| {
            let Beside { weight, .. } = Beside::asked(asked, options);
            options.weight_type.map(|weight_type| match weight_type {
                WeightType::U32 | WeightType::I64 => EdgeWeight::from(weight),
                // Halves, so that floats are not all integers.
                WeightType::F32 | WeightType::F64 => EdgeWeight::Real(f64::from(weight) / 2.0),
            })
        };
        let added = self.added.iter().map(|(u, v, w)| (u.clone(), v.clone(), weight(*w))).collect();
        let mut edge_properties = Vec::new();
        for (place, (_, _, number)) in self.added.iter().enumerate().filter(|_| options.edge_properties) {
            if *number > 0 {
                edge_properties.push((place, "number".to_owned(), OwnedValue::from(*number)));
            }
            if *number > 3 {
                edge_properties.push((place, "text".to_owned(), OwnedValue::from("x".repeat(*number as usize))));
            }
        }
        Changes {
            added,
            edge_properties,
            removed: self.removed.clone(),
            added_vertices: self.added_vertices.clone(),
            removed_vertices: self.removed_vertices.clone(),
            vertex_properties: self.set.clone(),
            name: self.name.clone(),
        }
    }
}

impl Beside {
    /// The weight and number for a small number.
    fn asked(asked: u32, options: &GraphOptions) -> Self {
        match (options.weight_type, options.edge_properties) {
            (Some(_), true) => Self { weight: asked % 2, number: asked },
            (None, true) => Self { weight: 0, number: asked },
            (Some(_), false) => Self { weight: asked, number: 0 },
            (None, false) => Self::default(),
        }
    }
}

impl Model {
    /// A new database with an empty first snapshot.
    pub fn new(options: GraphOptions, io_order: bool) -> Self {
        let newest = Graph::new(&options);
        let snapshots = BTreeMap::from([(1, (None, newest.clone()))]);
        Self { options, io_order, keys: Vec::new(), snapshots, newest, next_number: 2, rows: Vec::new() }
    }

    pub fn id(&self, key: &Key) -> Option<u32> {
        self.keys.iter().position(|known| known == key).map(|id| id as u32)
    }

    /// Gives ids to new keys.
    fn number(&mut self, asked: &Asked) {
        let ends = asked.added.iter().flat_map(|(u, v, _)| [u, v]);
        let mut set: Vec<_> = asked.set.iter().collect();
        set.sort_by_key(|(_, name, _)| name);
        let with_values = set.into_iter().map(|(key, ..)| key);
        let mut named: Vec<&Key> = ends.chain(&asked.added_vertices).chain(with_values).collect();
        if self.options.keys == KeyScheme::Dense {
            let largest = named.iter().map(|key| if let Key::Integer(key) = key { *key } else { 0 }).max();
            let bound = largest.map_or(0, |largest| largest + 1).max(self.newest.bound.into());
            self.keys = (0..bound).map(Key::Integer).collect();
            let old_bound = self.newest.bound;
            (old_bound..bound as u32).for_each(|id| self.newest.edges.add_vertex(id));
        } else {
            if !self.io_order {
                named.sort();
            }
            for key in named {
                if !self.keys.contains(key) {
                    self.keys.push(key.clone());
                }
            }
        }
        self.newest.bound = self.keys.len() as u32;
    }

    /// Changes the newest graph without a snapshot.
    pub fn change(&mut self, asked: &Asked, duplicates: Duplicates) {
        let before = self.newest.clone();
        let known = |model: &Self, key: &Key| model.id(key).filter(|id| *id < model.newest.bound);
        for key in &asked.removed_vertices {
            let Some(gone) = known(self, key) else { continue };
            self.newest.edges.remove_vertex(gone);
            self.newest.values.retain(|(_, vertex), _| *vertex != gone);
        }
        for (u, v) in &asked.removed {
            if let Some((u, v)) = known(self, u).zip(known(self, v)) {
                self.newest.edges.remove_edges(u, v);
            }
        }
        self.number(asked);
        let mut added = Graph::new(&self.options).edges.multigraph(true);
        for (u, v, weight) in &asked.added {
            let beside = Beside::asked(*weight, &self.options);
            let weight = if self.options.has_rows() { self.new_row(beside) } else { beside.weight };
            added.add_edge(self.id(u).unwrap(), self.id(v).unwrap(), weight);
        }
        added.vertices().iter().for_each(|&id| self.newest.edges.add_vertex(id));
        for ((u, v), weights) in added.pairs() {
            let weight = match duplicates {
                Duplicates::Auto | Duplicates::Min => weights.iter().min(),
                Duplicates::Last => weights.last(),
                Duplicates::Sum => Some(&weights.iter().sum()),
                Duplicates::Keep => None,
            };
            let mut known = self.newest.edges.remove_edges(u, v);
            match weight {
                Some(row) if self.options.has_rows() => {
                    let mut beside = self.rows[*row as usize];
                    if let (0, Some(&known)) = (beside.number, known.first()) {
                        beside.number = self.rows[known as usize].number;
                    }
                    let same = before.edges.edges_between(u, v).first().copied();
                    known = vec![same.filter(|old| self.rows[*old as usize] == beside).unwrap_or(*row)];
                    self.rows[*row as usize] = beside;
                }
                Some(weight) => known = vec![*weight],
                None => known.extend(weights),
            }
            known.sort_unstable();
            known.into_iter().for_each(|weight| self.newest.edges.add_edge(u, v, weight));
        }
        for key in &asked.added_vertices {
            let id = self.id(key).unwrap();
            self.newest.edges.add_vertex(id);
        }
        let mut new: Vec<_> =
            asked.set.iter().filter_map(|(_, name, value)| Some((name, value.as_value().property_type()?))).collect();
        new.sort();
        for (name, property_type) in new {
            if !self.newest.schema.iter().any(|(known, _)| known == name) {
                self.newest.schema.push((name.clone(), property_type));
            }
        }
        for (key, name, value) in &asked.set {
            let id = self.id(key).unwrap();
            self.newest.edges.add_vertex(id);
            match value {
                OwnedValue::Null => self.newest.values.remove(&(name.clone(), id)),
                value => self.newest.values.insert((name.clone(), id), value.clone()),
            };
        }
    }

    fn new_row(&mut self, beside: Beside) -> u32 {
        self.rows.push(beside);
        self.rows.len() as u32 - 1
    }

    /// The weight and number of an edge, from its weight or row.
    fn beside(&self, weight_or_row: u32) -> Beside {
        match self.options.has_rows() {
            true => self.rows[weight_or_row as usize],
            false => Beside { weight: weight_or_row, number: 0 },
        }
    }

    /// The weights and numbers of the edges of each pair, ascending.
    pub fn all_beside(&self, edges: &Edges) -> BTreeMap<(u32, u32), Vec<Beside>> {
        let of_pair = |rows: &[u32]| {
            let mut beside: Vec<_> = rows.iter().map(|&row| self.beside(row)).collect();
            beside.sort_unstable();
            beside
        };
        edges.pairs().map(|(pair, rows)| (pair, of_pair(rows))).collect()
    }

    /// Makes a snapshot of the newest graph.
    pub fn snapshot(&mut self, name: Option<String>) -> u32 {
        let number = self.next_number;
        self.next_number += 1;
        self.snapshots.insert(number, (name, self.newest.clone()));
        number
    }

    /// The preceding existing snapshot.
    pub fn before(&self, number: u32) -> Option<&Graph> {
        self.snapshots.range(..number).next_back().map(|(_, (_, graph))| graph)
    }

    /// The graph of a window.
    pub fn window(&self, first: u32, last: u32) -> Graph {
        let mut graph = self.snapshots[&last].1.clone();
        if let Some(before) = self.before(first) {
            graph.edges = graph.edges.minus(&before.edges);
        }
        graph
    }

    /// Compares a view with a graph, in every way to read it.
    pub fn check(&self, view: &SnapshotView, graph: &Graph) {
        match self.options.weight_type {
            None => check_as::<u32>(self, view, graph, |_| 0),
            Some(WeightType::U32) => check_as::<u32>(self, view, graph, Weight::bits),
            Some(WeightType::I64) => check_as::<i64>(self, view, graph, |weight| i64::from(weight).bits()),
            Some(WeightType::F32) => check_as::<f32>(self, view, graph, |weight| (weight as f32 / 2.0).bits()),
            Some(WeightType::F64) => check_as::<f64>(self, view, graph, |weight| (f64::from(weight) / 2.0).bits()),
        }
    }
}

/// Targets, bits of weights, and numbers of properties, sorted.
type List = Vec<(u32, u64, u32)>;

fn check_as<W: Weight>(model: &Model, view: &SnapshotView, graph: &Graph, bits: impl Fn(u32) -> u64) {
    let is_undirected = model.options.graph_kind == GraphKind::Undirected;
    let num_vertices = graph.edges.vertices().len();
    assert_eq!((view.vertex_bound(), view.num_vertices()), (graph.bound as usize, num_vertices), "vertices");
    assert_eq!(view.num_edges(), graph.edges.num_edges(), "edges");
    assert_eq!(view.has_lists(Direction::In), is_undirected || model.options.in_edges);
    check_properties(view, graph);
    let mut out_lists: Vec<List> = vec![Vec::new(); graph.bound as usize];
    let mut in_lists = out_lists.clone();
    for (source, target, &weight) in graph.edges.arcs() {
        let Beside { weight, number } = model.beside(weight);
        out_lists[source as usize].push((target, bits(weight), number));
        in_lists[target as usize].push((source, bits(weight), number));
    }
    let num_arcs: usize = out_lists.iter().map(Vec::len).sum();
    assert_eq!(view.num_arcs(), num_arcs as u64, "arcs");
    for v in 0..graph.bound {
        let is_live = graph.edges.has_vertex(v);
        assert_eq!(view.is_live(v), is_live, "vertex {v}");
        let key = &model.keys[v as usize];
        assert_eq!(view.vertex(key).unwrap(), is_live.then_some(v), "vertex {key}");
        assert_eq!(view.key(v).unwrap(), *key);
        let (out_list, in_list) = (&mut out_lists[v as usize], &mut in_lists[v as usize]);
        out_list.sort_unstable();
        in_list.sort_unstable();
        assert_eq!(view.degree(Direction::Out, v), out_list.len(), "out-degree of {v}");
        assert_eq!(list_of::<W>(view, v, Way::Out), *out_list, "out-list of {v}");
        if view.has_lists(Direction::In) {
            assert_eq!(view.degree(Direction::In, v), in_list.len(), "in-degree of {v}");
            assert_eq!(list_of::<W>(view, v, Way::In), *in_list, "in-list of {v}");
        }
    }
    check_pages(view, &out_lists);
    view.check().unwrap();
    for key in model.keys.iter().skip(graph.bound as usize) {
        assert_eq!(view.vertex(key).unwrap(), None, "{key} comes later");
    }
}

/// Compares the properties by column and one by one.
fn check_properties(view: &SnapshotView, graph: &Graph) {
    let properties = view.properties();
    let found: Vec<_> = properties.schema().iter().map(|(name, of)| (name.to_owned(), of)).collect();
    assert_eq!(found, graph.schema);
    for (place, (name, _)) in graph.schema.iter().enumerate() {
        let column = properties.column(place).unwrap().unwrap();
        assert_eq!(column.len(), graph.bound as usize);
        for v in 0..graph.bound {
            let expected = graph.values.get(&(name.clone(), v)).map_or(PropertyValue::Null, OwnedValue::as_value);
            assert_eq!(column.get(v as usize), expected, "{name} of {v}");
            // One by one for all vertices with a value, and some without.
            if !expected.is_null() || v % 7 == 0 {
                assert_eq!(properties.value(place, v).unwrap(), expected, "{name} of {v}");
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Out,
    In,
}

/// A list. Checks its fragments.
fn list_of<W: Weight>(view: &SnapshotView, vertex: u32, way: Way) -> List {
    let (mut list, mut targets_only) = (List::new(), Vec::new());
    let mut plain = |targets: &[u32]| {
        assert!(targets.is_sorted(), "a piece that does not ascend");
        targets_only.extend_from_slice(targets);
        ControlFlow::Continue(())
    };
    let _ = match way {
        Way::Out => view.for_each_fragment(Direction::Out, vertex, &mut plain),
        Way::In => view.for_each_fragment(Direction::In, vertex, &mut plain),
    };
    targets_only.sort_unstable();
    list.extend(targets_only.iter().map(|&target| (target, 0, 0)));
    if view.weight_type().is_some() {
        list.clear();
        let weighted = |targets: &[u32], weights: &[W]| {
            assert!(targets.is_sorted() && targets.len() == weights.len(), "a weighted piece");
            list.extend(targets.iter().zip(weights).map(|(&target, weight)| (target, weight.bits(), 0)));
            ControlFlow::Continue(())
        };
        let _ = match way {
            Way::Out => view.for_each_weighted_fragment::<W>(Direction::Out, vertex, weighted),
            Way::In => view.for_each_weighted_fragment::<W>(Direction::In, vertex, weighted),
        };
    }
    if view.options().has_rows() {
        // Weights and rows have equal order.
        let mut entries = list.iter_mut();
        let with_rows = |targets: &[u32], rows: &[u64]| {
            assert_eq!(targets.len(), rows.len());
            for (&target, &row) in targets.iter().zip(rows) {
                let entry = entries.next().filter(|entry| entry.0 == target);
                let (.., number) = entry.expect("lists with and without rows are the same");
                *number = if view.options().edge_properties { number_of(view, row) } else { 0 };
            }
            ControlFlow::Continue(())
        };
        let _ = match way {
            Way::Out => view.for_each_row(Direction::Out, vertex, with_rows),
            Way::In => view.for_each_row(Direction::In, vertex, with_rows),
        };
        assert!(entries.next().is_none(), "lists with and without rows differ");
    }
    list.sort_unstable();
    assert!(list.iter().map(|entry| entry.0).eq(targets_only), "lists with and without weights differ");
    list
}

/// The number in the properties of an edge, which all of them hold.
pub fn number_of(view: &SnapshotView, row: u64) -> u32 {
    let properties = view.edge_properties();
    let place = |name: &str| properties.schema().find(name).unwrap_or(usize::MAX);
    let number = match properties.value(place("number"), row).unwrap() {
        PropertyValue::Null => 0,
        PropertyValue::I64(number) => number as u32,
        other => panic!("{other:?}"),
    };
    let text = properties.value(place("text"), row).unwrap();
    assert_eq!(
        text,
        if number > 3 { PropertyValue::String(&"xxxxxxxxxx"[..number as usize]) } else { PropertyValue::Null }
    );
    number
}

/// Compares the out-lists page by page.
fn check_pages(view: &SnapshotView, expected: &[List]) {
    let mut next = 0;
    let _ = view.for_each_page(Direction::Out, 0..expected.len() as u32, |page| {
        let mut found: Vec<(u32, Vec<u32>)> = Vec::new();
        match page {
            Page::Dense(page) => found.extend(page.lists().map(|(vertex, targets)| (vertex, targets.to_vec()))),
            Page::Empty(vertices) => found.extend(vertices.map(|vertex| (vertex, Vec::new()))),
            Page::Patched(vertices) => vertices.for_each(|vertex| {
                let mut all = Vec::new();
                let _ = view.for_each_fragment(Direction::Out, vertex, |targets| {
                    all.extend_from_slice(targets);
                    ControlFlow::Continue(())
                });
                all.sort_unstable();
                found.push((vertex, all));
            }),
        }
        for (vertex, targets) in found {
            assert_eq!(vertex, next);
            assert!(expected[vertex as usize].iter().map(|entry| entry.0).eq(targets), "page of {vertex}");
            next += 1;
        }
        ControlFlow::Continue(())
    });
    assert_eq!(next as usize, expected.len(), "pages cover all vertices");
}
