//! Small inputs, their expected graphs, and the contents of databases.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::path::Path;

use anden_base::storage::Storage;
use anden_engine::{DatabaseId, Duplicates, IdOrder, Identity, Key, KeyScheme, LoadOptions, SnapshotView};
use anden_formats::InputPath;
use anden_graph::{Direction, Graph, Weight, WeightedEdges};
use anden_testkit::{FaultStorage, ModelGraph};

/// The directory of databases on a test disk.
pub const DB: &str = "db";

/// An edge of an input: two keys and a weight.
pub type InputEdge = (String, String, String);

/// An edge list in a temporary directory, removed on drop.
pub struct Input {
    dir: tempfile::TempDir,
}

impl Input {
    pub fn text(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("edges.txt"), text).unwrap();
        Self { dir }
    }

    pub fn edges(edges: &[InputEdge]) -> Self {
        let line = |(source, target, weight): &InputEdge| format!("{source} {target} {weight}\n");
        Self::text(&edges.iter().map(line).collect::<String>())
    }

    pub fn paths(&self) -> [InputPath; 1] {
        [InputPath::File(self.dir.path().join("edges.txt"))]
    }
}

/// A fixed identity, so that databases are comparable byte by byte.
pub fn fixed_identity() -> Identity {
    Identity { id: DatabaseId([7; 16]), unix_time: Some(1_000_000_000) }
}

/// All files of a database with their bytes.
pub fn files(disk: &FaultStorage) -> BTreeMap<String, Vec<u8>> {
    let names = disk.list(Path::new(DB)).unwrap();
    names.into_iter().map(|name| (name.clone(), disk.contents(&Path::new(DB).join(&name)).unwrap())).collect()
}

/// A graph by pairs of vertices: the weights of each pair, in stored order.
pub type Lists<W> = BTreeMap<(u32, u32), Vec<W>>;

/// The expected graph of an input.
#[derive(Debug, PartialEq)]
pub struct Model<W> {
    /// The key of each vertex.
    pub keys: Vec<String>,
    pub out_lists: Lists<W>,
    pub in_lists: Lists<W>,
    pub num_edges: u64,
}

impl<W: Weight> Model<W> {
    /// Builds the graph in the simplest way: ids first, then all edges, then one of each pair.
    pub fn new(edges: &[InputEdge], options: &LoadOptions) -> Self {
        let keys = ids(edges, options);
        let id = |key: &String| keys.iter().position(|known| known == key).unwrap() as u32;
        let is_weighted = options.graph.weight_type.is_some();
        let graph = || ModelGraph::new(options.graph.graph_kind).ordered(options.graph.ordered).multigraph(true);
        let mut input = graph();
        for (source, target, weight) in edges {
            let weight = if is_weighted { weight.parse::<W>().ok().unwrap() } else { W::ONE };
            input.add_edge(id(source), id(target), weight);
        }
        let mut kept = graph();
        for ((source, target), weights) in input.pairs() {
            let weights = match options.duplicates {
                Duplicates::Keep => weights.to_vec(),
                _ if !is_weighted => vec![W::ONE],
                duplicates => vec![reduce(weights, duplicates)],
            };
            weights.into_iter().for_each(|weight| kept.add_edge(source, target, weight));
        }
        let (mut out_lists, mut in_lists) = (Lists::<W>::new(), Lists::<W>::new());
        for (source, target, &weight) in kept.arcs() {
            out_lists.entry((source, target)).or_default().push(weight);
            in_lists.entry((target, source)).or_default().push(weight);
        }
        Self { keys, out_lists, in_lists, num_edges: kept.num_edges() }
    }

    /// Reads the model from a database.
    pub fn of(view: &SnapshotView) -> Self {
        let is_weighted = view.weight_type().is_some();
        let (mut out_lists, mut in_lists) = (Lists::<W>::new(), Lists::<W>::new());
        let bound = view.vertex_bound() as u32;
        for v in 0..bound {
            let note = |lists: &mut Lists<W>, targets: &[u32], weights: &[W]| {
                for (i, &target) in targets.iter().enumerate() {
                    lists.entry((v, target)).or_default().push(weights.get(i).copied().unwrap_or(W::ONE));
                }
                ControlFlow::Continue(())
            };
            if is_weighted {
                let _ = view.for_each_weighted_fragment::<W>(Direction::Out, v, |t, w| note(&mut out_lists, t, w));
                let _ = view.for_each_weighted_fragment::<W>(Direction::In, v, |t, w| note(&mut in_lists, t, w));
            } else {
                let _ = view.for_each_fragment(Direction::Out, v, |t| note(&mut out_lists, t, &[]));
                let _ = view.for_each_fragment(Direction::In, v, |t| note(&mut in_lists, t, &[]));
            }
        }
        view.check().unwrap();
        let keys = (0..bound).map(|v| view.key(v).unwrap()).collect::<Vec<Key>>();
        for (v, key) in (0..).zip(&keys) {
            assert_eq!(view.vertex(key).unwrap(), Some(v));
        }
        let keys = keys.iter().map(Key::to_string).collect();
        Self { keys, out_lists, in_lists, num_edges: view.num_edges() }
    }
}

/// The one weight of parallel edges.
fn reduce<W: Weight>(weights: &[W], duplicates: Duplicates) -> W {
    let merged = match duplicates {
        Duplicates::Keep => None,
        Duplicates::Auto | Duplicates::Min => weights.iter().copied().reduce(|a, b| if b < a { b } else { a }),
        Duplicates::Last => weights.last().copied(),
        Duplicates::Sum => weights.iter().copied().reduce(|sum, weight| sum.checked_plus(weight).unwrap()),
    };
    merged.unwrap()
}

/// The keys by id.
fn ids(edges: &[InputEdge], options: &LoadOptions) -> Vec<String> {
    let ends = || edges.iter().flat_map(|(source, target, _)| [source, target]);
    let number = |key: &String| key.parse::<u64>().unwrap();
    match options.graph.keys {
        KeyScheme::Dense => {
            let bound = ends().map(number).max().map_or(0, |largest| largest + 1);
            (0..bound).map(|id| id.to_string()).collect()
        }
        _ if options.order == IdOrder::Input => {
            let mut seen = BTreeSet::new();
            ends().filter(|key| seen.insert(*key)).cloned().collect()
        }
        KeyScheme::Integer => {
            let keys = ends().map(number).collect::<BTreeSet<_>>().iter().map(u64::to_string).collect();
            arranged(keys, edges, options.order)
        }
        KeyScheme::String => {
            arranged(ends().cloned().collect::<BTreeSet<_>>().into_iter().collect(), edges, options.order)
        }
    }
}

/// Ascending keys in another order, by the definition of that order.
fn arranged(keys: Vec<String>, edges: &[InputEdge], order: IdOrder) -> Vec<String> {
    let rank: BTreeMap<&String, usize> = keys.iter().zip(0..).collect();
    let mut neighbors = vec![Vec::new(); keys.len()];
    for (source, target, _) in edges {
        neighbors[rank[source]].push(rank[target]);
        neighbors[rank[target]].push(rank[source]);
    }
    let degree = |rank: usize| neighbors[rank].len();
    let mut ranks: Vec<usize> = (0..keys.len()).collect();
    // A stable sort: equal degrees stay in the order of the keys.
    ranks.sort_by_key(|&rank| std::cmp::Reverse(degree(rank)));
    match order {
        IdOrder::Auto | IdOrder::Input => return keys,
        IdOrder::Degree => {}
        IdOrder::Hub => {
            let (mut hubs, mut others) = (ranks.clone(), (0..keys.len()).collect::<Vec<_>>());
            let is_hub = |rank: usize| degree(rank) * keys.len() > 2 * edges.len();
            hubs.retain(|&rank| is_hub(rank));
            others.retain(|&rank| !is_hub(rank));
            ranks = [hubs, others].concat();
        }
        IdOrder::Bfs => {
            let (roots, mut seen) = (std::mem::take(&mut ranks), BTreeSet::new());
            for root in roots.iter().copied() {
                let mut queue: VecDeque<usize> = seen.insert(root).then_some(root).into_iter().collect();
                while let Some(rank) = queue.pop_front() {
                    ranks.push(rank);
                    queue.extend(roots.iter().filter(|next| neighbors[rank].contains(next) && seen.insert(**next)));
                }
            }
        }
    }
    ranks.into_iter().map(|rank| keys[rank].clone()).collect()
}
