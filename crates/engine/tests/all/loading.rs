//! Small inputs, the graphs that they should become, and what databases hold.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use anden_engine::{DatabaseId, Duplicates, Identity, Key, KeyScheme, LoadOptions, View};
use base::storage::{FaultStorage, Storage};
use graph::formats::InputPath;
use graph::{Direction, Graph, InEdges, Weight, WeightedEdges};

/// Where databases lie on a disk of a test.
pub const DB: &str = "db";

/// An edge as it stands in an input: two keys and a weight.
pub type InputEdge = (String, String, String);

/// Writes an edge list to a directory that lasts as long as the result.
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

/// An identity that makes databases comparable byte by byte.
pub fn fixed_identity() -> Identity {
    Identity { id: DatabaseId([7; 16]), unix_time: Some(1_000_000_000) }
}

/// All files of a database with their bytes.
pub fn files(disk: &FaultStorage) -> BTreeMap<String, Vec<u8>> {
    let names = disk.list(Path::new(DB)).unwrap();
    names.into_iter().map(|name| (name.clone(), disk.contents(&Path::new(DB).join(&name)).unwrap())).collect()
}

/// A graph as sorted lists between keys: of each pair the weights, in the order in which they are stored.
pub type Lists<W> = BTreeMap<(u32, u32), Vec<W>>;

/// What an input should become.
#[derive(Debug, PartialEq)]
pub struct Model<W> {
    /// The key of each vertex.
    pub keys: Vec<String>,
    pub out_lists: Lists<W>,
    pub in_lists: Lists<W>,
    pub num_edges: u64,
}

impl<W: Weight> Model<W> {
    /// Builds the graph by the book: ids first, then every entry into a map.
    pub fn new(edges: &[InputEdge], options: &LoadOptions) -> Self {
        let keys = ids(edges, options);
        let id = |key: &String| keys.iter().position(|known| known == key).unwrap() as u32;
        let is_weighted = options.graph.weight_type.is_some();
        let (mut out_lists, mut in_lists) = (Lists::<W>::new(), Lists::<W>::new());
        for (source, target, weight) in edges {
            let (source, target) = (id(source), id(target));
            let weight = if is_weighted { weight.parse::<W>().ok().unwrap() } else { W::ONE };
            let entries = match (options.graph.ordered, options.graph.direction) {
                (true, _) if source == target => vec![],
                (true, _) => vec![(source.min(target), source.max(target))],
                (_, Direction::Undirected) if source != target => vec![(source, target), (target, source)],
                _ => vec![(source, target)],
            };
            for (source, target) in entries {
                out_lists.entry((source, target)).or_default().push(weight);
                in_lists.entry((target, source)).or_default().push(weight);
            }
        }
        for weights in out_lists.values_mut().chain(in_lists.values_mut()) {
            if !is_weighted && options.duplicates != Duplicates::Keep {
                weights.truncate(1);
            }
            reduce(weights, options.duplicates);
        }
        let num_arcs: usize = out_lists.values().map(Vec::len).sum();
        let loops: usize = out_lists.iter().filter(|((u, v), _)| u == v).map(|(_, w)| w.len()).sum();
        let num_edges = match options.graph.direction {
            Direction::Directed => num_arcs,
            Direction::Undirected => (num_arcs + loops) / 2,
        };
        Self { keys, out_lists, in_lists, num_edges: num_edges as u64 }
    }

    /// Reads the same from a database.
    pub fn of(view: &View) -> Self {
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
                let _ = view.for_each_weighted_out_fragment::<W>(v, |t, w| note(&mut out_lists, t, w));
                let _ = view.for_each_weighted_in_fragment::<W>(v, |t, w| note(&mut in_lists, t, w));
            } else {
                let _ = view.for_each_out_fragment(v, |t| note(&mut out_lists, t, &[]));
                let _ = view.for_each_in_fragment(v, |t| note(&mut in_lists, t, &[]));
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

fn reduce<W: Weight>(weights: &mut Vec<W>, duplicates: Duplicates) {
    let merged = match duplicates {
        Duplicates::Keep => return,
        Duplicates::Auto | Duplicates::Min => weights.iter().copied().reduce(|a, b| if b < a { b } else { a }),
        Duplicates::Last => weights.last().copied(),
        Duplicates::Sum => weights.iter().copied().reduce(|sum, weight| sum.checked_plus(weight).unwrap()),
    };
    *weights = merged.into_iter().collect();
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
        _ if options.io_order => {
            let mut seen = BTreeSet::new();
            ends().filter(|key| seen.insert(*key)).cloned().collect()
        }
        KeyScheme::Integer => ends().map(number).collect::<BTreeSet<_>>().iter().map(u64::to_string).collect(),
        KeyScheme::String => ends().cloned().collect::<BTreeSet<_>>().into_iter().collect(),
    }
}
