//! A model of a graph of every kind: its edges by pair, with what stands beside them.

use std::collections::BTreeMap;

use anden::{Database, Direction, KeyScheme, Options, Update, WeightType};
use testkit::Random;

/// What a graph has beside its edges.
#[derive(Clone, Copy)]
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

/// The edges of a model by pair, and the groups of its vertices.
#[derive(Clone, Default)]
pub struct Model {
    pub edges: BTreeMap<(u32, u32), Vec<Edge>>,
    pub groups: BTreeMap<u32, i64>,
}

pub const BOUND: u32 = 60;

pub fn options(kind: Kind, direction: Direction) -> Options {
    Options {
        direction,
        multigraph: kind.multigraph,
        edge_properties: kind.properties,
        weight_type: kind.weights.then_some(WeightType::U32),
        keys: KeyScheme::Dense,
        ..Options::default()
    }
}

/// Commits some changes, and makes them in the model.
pub fn commit(db: &Database, model: &mut Model, kind: Kind, random: &mut Random) {
    let mut updates = vec![Update::AddVertex(u64::from(BOUND - 1).into())];
    for _ in 0..120 {
        let (a, b) = (random.below(BOUND), random.below(BOUND));
        let (source, target) =
            if db.options().direction == Direction::Undirected { (a.min(b), a.max(b)) } else { (a, b) };
        let pair = model.edges.entry((source, target)).or_default();
        if random.below(6) == 0 {
            pair.clear();
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
            // An edge that is there keeps what is not said of it.
            properties.push(("amount", edge.amount.map_or(anden::OwnedValue::Null, anden::OwnedValue::from)));
            properties.push(("kind", edge.kind.map_or(anden::OwnedValue::Null, anden::OwnedValue::from)));
        }
        let weight = edge.weight.map(|weight| anden::EdgeWeight::Integer(weight.into()));
        let mut update = Update::add_edge_with(u64::from(source), u64::from(target), properties);
        if let Update::AddEdge { weight: to, .. } = &mut update {
            *to = weight;
        }
        updates.push(update);
        if !kind.multigraph {
            pair.clear();
        }
        pair.push(edge);
    }
    for _ in 0..10 {
        let (vertex, group) = (random.below(BOUND), i64::from(random.below(4)));
        updates.push(Update::set_vertex(u64::from(vertex), "group", group));
        model.groups.insert(vertex, group);
    }
    db.apply(&updates).unwrap();
}

/// A database with two snapshots and changes over them, and what each of the three holds.
pub struct History {
    pub db: Database,
    pub kind: Kind,
    /// The number of the snapshot, and its content.
    pub older: (u32, Model),
    pub newest: (u32, Model),
    pub live: Model,
    pub random: Random,
}

/// A history of every kind, directed and undirected; each kind has the seed after the one before it.
pub fn histories(first_seed: u64) -> impl Iterator<Item = History> {
    let kinds = (first_seed..).zip(KINDS);
    kinds.flat_map(|(seed, kind)| {
        [Direction::Directed, Direction::Undirected].map(|direction| {
            println!("seed {seed}, {direction:?}");
            let (mut random, mut model) = (Random::new(seed), Model::default());
            let db = Database::in_memory(options(kind, direction)).unwrap();
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
