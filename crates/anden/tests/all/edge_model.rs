//! A model of a graph of every kind: its edges with weights and properties, and the groups of its vertices.

use std::collections::{BTreeMap, BTreeSet};

use anden::{Database, GraphKind, KeyScheme, Options, Update, WeightType};
use anden_testkit::{ModelGraph, Random};

/// The data of a graph's edges.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub weights: bool,
    pub properties: bool,
    pub multigraph: bool,
}

pub const KINDS: [Kind; 6] = [
    Kind { weights: false, properties: false, multigraph: false },
    Kind { weights: true, properties: false, multigraph: false },
    Kind { weights: false, properties: true, multigraph: false },
    Kind { weights: false, properties: false, multigraph: true },
    Kind { weights: false, properties: true, multigraph: true },
    Kind { weights: true, properties: true, multigraph: false },
];

#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    pub source: u32,
    pub target: u32,
    pub weight: Option<u32>,
    pub amount: Option<i64>,
    pub kind: Option<&'static str>,
}

/// The edges, and the groups of the vertices.
#[derive(Clone)]
pub struct Model {
    pub graph: ModelGraph<u32, Edge>,
    /// All pairs that a commit named, also those without an edge.
    pub pairs: BTreeSet<(u32, u32)>,
    pub groups: BTreeMap<u32, i64>,
}

impl Model {
    /// The model of an empty graph.
    pub fn new(kind: Kind, graph_kind: GraphKind) -> Self {
        let graph = ModelGraph::new(graph_kind).multigraph(kind.multigraph);
        Self { graph, pairs: BTreeSet::new(), groups: BTreeMap::new() }
    }
}

pub const BOUND: u32 = 60;

pub fn options(kind: Kind, graph_kind: GraphKind) -> Options {
    Options {
        graph_kind,
        multigraph: kind.multigraph,
        edge_properties: kind.properties,
        weight_type: kind.weights.then_some(WeightType::U32),
        keys: KeyScheme::Dense,
        ..Options::default()
    }
}

/// Commits random changes, and applies them to the model.
pub fn commit(db: &Database, model: &mut Model, kind: Kind, random: &mut Random) {
    let mut updates = vec![Update::AddVertex(u64::from(BOUND - 1).into())];
    for _ in 0..120 {
        let (source, target) = model.graph.pair(random.below(BOUND), random.below(BOUND)).unwrap();
        model.pairs.insert((source, target));
        if random.below(6) == 0 {
            model.graph.remove_edges(source, target);
            updates.push(Update::remove_edge(u64::from(source), u64::from(target)));
            continue;
        }
        let edge = Edge {
            source,
            target,
            weight: kind.weights.then(|| random.below(9)),
            amount: (kind.properties && random.below(4) > 0).then(|| i64::from(random.below(100))),
            kind: (kind.properties && random.below(4) > 0).then(|| ["wire", "cash", "50%"][random.below(3) as usize]),
        };
        let mut properties = Vec::new();
        if kind.properties {
            // An existing edge would keep unnamed values, so all values are set.
            properties.push(("amount", edge.amount.map_or(anden::OwnedValue::Null, anden::OwnedValue::from)));
            properties.push(("kind", edge.kind.map_or(anden::OwnedValue::Null, anden::OwnedValue::from)));
        }
        let weight = edge.weight.map(|weight| anden::EdgeWeight::Integer(weight.into()));
        let mut update = Update::add_edge_with(u64::from(source), u64::from(target), properties);
        if let Update::AddEdge { weight: to, .. } = &mut update {
            *to = weight;
        }
        updates.push(update);
        model.graph.add_edge(source, target, edge);
    }
    for _ in 0..10 {
        let (vertex, group) = (random.below(BOUND), i64::from(random.below(4)));
        updates.push(Update::set_vertex(u64::from(vertex), "group", group));
        model.groups.insert(vertex, group);
    }
    db.apply(&updates).unwrap();
}

/// A database with two snapshots and changes over them, and the content of the three.
pub struct History {
    pub db: Database,
    pub kind: Kind,
    /// The number of the snapshot, and its content.
    pub older: (u32, Model),
    pub newest: (u32, Model),
    pub live: Model,
    pub random: Random,
}

/// Histories of every kind, directed and undirected. Seeds of the kinds are consecutive.
pub fn histories(first_seed: u64) -> impl Iterator<Item = History> {
    let kinds = (first_seed..).zip(KINDS);
    kinds.flat_map(|(seed, kind)| {
        [GraphKind::Directed, GraphKind::Undirected].map(|graph_kind| {
            println!("seed {seed}, {graph_kind:?}");
            let (mut random, mut model) = (Random::new(seed), Model::new(kind, graph_kind));
            let db = Database::in_memory(options(kind, graph_kind)).unwrap();
            db.set_checkpoint_bytes(None);
            let [older, newest] = [(); 2].map(|()| {
                commit(&db, &mut model, kind, &mut random);
                (db.checkpoint(None).unwrap().number, model.clone())
            });
            commit(&db, &mut model, kind, &mut random);
            History { db, kind, older, newest, live: model, random }
        })
    })
}
