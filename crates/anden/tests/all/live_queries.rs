//! Queries about single vertices and edges, with changes in the memtable, against answers from a plain map.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anden::query::{PathLength, ShortestPaths};
use anden::{
    Database, Durability, EdgeWeight, Error, GraphKind, Key, KeyScheme, Neighbors, Options, Result, Update, View,
    WeightType,
};
use anden_testkit::{ModelGraph, Random};

/// The most paths to list.
const LIMIT: usize = 7;

/// A graph by vertex numbers, from which its keys are made.
#[derive(Clone)]
struct Model {
    options: Options,
    num_keys: u32,
    /// The edges with their weights.
    graph: ModelGraph<u32, u32>,
}

impl Model {
    fn new(options: Options, num_keys: u32) -> Self {
        Self { options, num_keys, graph: ModelGraph::new(options.graph_kind) }
    }

    fn key(&self, number: u32) -> Key {
        match self.options.keys {
            KeyScheme::String => Key::String(format!("vertex {number}")),
            // The order of the keys differs from that of the numbers.
            _ => Key::Integer(u64::from(number.wrapping_mul(0x9e37_79b9))),
        }
    }

    fn keys(&self, numbers: impl IntoIterator<Item = u32>) -> BTreeSet<Key> {
        numbers.into_iter().map(|number| self.key(number)).collect()
    }

    fn weight(&self, weight: u32) -> EdgeWeight {
        match self.options.weight_type {
            Some(WeightType::F32 | WeightType::F64) => EdgeWeight::Real(f64::from(weight)),
            _ => EdgeWeight::Integer(weight.into()),
        }
    }

    fn length(&self, sum: u64) -> PathLength {
        match self.options.weight_type {
            Some(WeightType::F32 | WeightType::F64) => PathLength::Real(sum as f64),
            _ => PathLength::Integer(sum),
        }
    }

    /// A random vertex. Small numbers are more frequent, and number 0 is at least half of all.
    fn number(&self, random: &mut Random) -> u32 {
        let bound = if random.below(2) == 0 { 1 } else { 1 + random.below(self.num_keys) };
        random.below(bound)
    }

    /// A random update, also applied here. Most removals of edges name an existing edge.
    fn update(&mut self, random: &mut Random) -> Update {
        let (u, v, weight) = (self.number(random), random.below(self.num_keys), random.below(9));
        let (source, target) = (self.key(u), self.key(v));
        match random.below(100) {
            0..60 => {
                self.graph.add_edge(u, v, weight);
                Update::AddEdge { source, target, weight: Some(self.weight(weight)), properties: Vec::new() }
            }
            60..70 => {
                self.graph.add_edge(u, v, weight);
                Update::SetWeight { source, target, weight: self.weight(weight) }
            }
            70..97 => {
                let v = self.out_list(u).range(v..).next().copied().unwrap_or(v);
                self.graph.remove_edges(u, v);
                Update::RemoveEdge { source, target: self.key(v) }
            }
            97 => {
                self.graph.add_vertex(v);
                Update::AddVertex(target)
            }
            _ => {
                self.graph.remove_vertex(v);
                Update::RemoveVertex(target)
            }
        }
    }

    fn out_list(&self, vertex: u32) -> BTreeSet<u32> {
        self.graph.out_list(vertex).into_iter().map(|(target, _)| target).collect()
    }

    fn in_list(&self, vertex: u32) -> BTreeSet<u32> {
        self.graph.in_list(vertex).into_iter().map(|(source, _)| source).collect()
    }

    /// For each reached vertex, the number of steps and the number of shortest paths.
    fn steps(&self, source: u32) -> BTreeMap<u32, (u64, u64)> {
        let mut found = BTreeMap::from([(source, (0, 1_u64))]);
        let mut queue = VecDeque::from([source]);
        while let Some(vertex) = queue.pop_front() {
            let (steps, num_ways) = found[&vertex];
            for target in self.out_list(vertex) {
                let known = found.entry(target).or_insert_with(|| {
                    queue.push_back(target);
                    (steps + 1, 0)
                });
                if known.0 == steps + 1 {
                    known.1 = known.1.saturating_add(num_ways);
                }
            }
        }
        found
    }

    /// For each reached vertex, the least sum of weights.
    fn distances(&self, source: u32) -> BTreeMap<u32, u64> {
        let (mut done, mut near) = (BTreeMap::new(), BTreeSet::from([(0_u64, source)]));
        while let Some((distance, vertex)) = near.pop_first() {
            if done.contains_key(&vertex) {
                continue;
            }
            done.insert(vertex, distance);
            let list = self.graph.out_list(vertex).into_iter();
            near.extend(list.map(|(target, &weight)| (distance + u64::from(weight), target)));
        }
        done
    }
}

/// The numbers of vertices by their keys.
type Numbers = BTreeMap<Key, u32>;

/// Compares answers with those of the model.
struct Checker<'a> {
    view: &'a View,
    model: &'a Model,
    numbers: Numbers,
    place: String,
}

impl<'a> Checker<'a> {
    fn new(view: &'a View, model: &'a Model, place: impl Into<String>) -> Self {
        let numbers = (0..model.num_keys).map(|number| (model.key(number), number)).collect();
        Self { view, model, numbers, place: place.into() }
    }

    /// Checks all vertices, or some of a large graph, and paths between some of them.
    fn check(&self, random: &mut Random, num_sources: usize) {
        let model = self.model;
        assert_eq!(self.view.num_vertices(), model.graph.vertices().len(), "{}", self.place);
        assert_eq!(self.view.num_arcs(), model.graph.num_arcs(), "{}", self.place);
        let mut pick = || random.below(model.num_keys);
        // The vertex with most edges is always among them.
        let some: BTreeSet<u32> = [0].into_iter().chain((1..num_sources).map(|_| pick())).collect();
        let is_small = model.num_keys < 100;
        for number in if is_small { (0..model.num_keys).collect() } else { some.clone() } {
            match model.graph.has_vertex(number) {
                true => self.check_vertex(number),
                false => self.check_missing(number),
            }
        }
        for &source in some.iter().filter(|&&source| model.graph.has_vertex(source)) {
            let (steps, distances) = (model.steps(source), model.distances(source));
            self.check_around(source, &steps);
            for target in some.iter().copied().chain((0..3 * num_sources).map(|_| random.below(model.num_keys))) {
                if model.graph.has_vertex(target) {
                    self.check_edge(source, target);
                    self.check_path(source, target, steps.get(&target).copied());
                    self.check_weighted_path(source, target, distances.get(&target).copied());
                }
            }
        }
    }

    /// Checks neighbors and degrees.
    fn check_vertex(&self, number: u32) {
        let (Self { view, model, place, .. }, key) = (self, self.model.key(number));
        let (out, into) = (model.out_list(number), model.in_list(number));
        let both: BTreeSet<u32> = out.union(&into).copied().collect();
        for (direction, expected) in [(Neighbors::Out, &out), (Neighbors::In, &into), (Neighbors::Both, &both)] {
            self.check_set(
                view.neighbors(key.clone(), direction),
                expected.iter().copied(),
                &format!("{key} {direction:?}"),
            );
        }
        let vertex = view.vertex(key.clone()).unwrap();
        assert_eq!(view.out_degree(vertex).unwrap(), out.len() as u64, "{place}: {key}");
        assert_eq!(view.in_degree(vertex).unwrap(), Some(into.len() as u64), "{place}: {key}");
    }

    /// Requires that every query reports a missing vertex.
    fn check_missing(&self, number: u32) {
        let (view, missing) = (self.view, || self.model.key(number));
        let is_missing = |answer: Result<()>| matches!(answer, Err(Error::NotFound { .. }));
        let answers = [
            view.neighbors(missing(), Neighbors::Both).map(drop),
            view.has_edge(missing(), missing()).map(drop),
            view.khop(missing(), 2).map(drop),
            view.fof(missing()).map(drop),
            view.is_reachable(missing(), missing()).map(drop),
            view.path(missing(), missing()).map(drop),
            view.shortest_paths(missing(), missing(), 1).map(drop),
            view.weighted_path(missing(), missing()).map(drop),
        ];
        assert!(answers.into_iter().all(is_missing), "{}: {} is there", self.place, missing());
    }

    /// Checks the vertices within a number of steps.
    fn check_around(&self, source: u32, steps: &BTreeMap<u32, (u64, u64)>) {
        let key = self.model.key(source);
        let away = |range: std::ops::RangeInclusive<u64>| {
            steps.iter().filter(move |(_, (steps, _))| range.contains(steps)).map(|(&vertex, _)| vertex)
        };
        for num_hops in [0, 1, 2, 3, 50] {
            let found = self.view.khop(key.clone(), num_hops);
            self.check_set(found, away(1..=num_hops.into()), &format!("{num_hops} hops of {key}"));
        }
        self.check_set(self.view.fof(key.clone()), away(2..=2), &format!("friends of friends of {key}"));
    }

    fn check_set(&self, found: Result<Vec<Key>>, expected: impl IntoIterator<Item = u32>, what: &str) {
        let found = found.unwrap_or_else(|error| panic!("{}: {what}: {error}", self.place));
        let found_keys: BTreeSet<Key> = found.iter().cloned().collect();
        assert_eq!(found_keys, self.model.keys(expected), "{}: {what}", self.place);
        assert_eq!(found.len(), found_keys.len(), "{}: {what}: one stands twice", self.place);
    }

    fn check_edge(&self, source: u32, target: u32) {
        let weight = self.model.graph.edges_between(source, target).first().map(|&weight| self.model.weight(weight));
        let (u, v) = (self.model.key(source), self.model.key(target));
        let edges = self.view.edges_between(u.clone(), v.clone()).unwrap();
        assert_eq!(self.view.has_edge(u, v).unwrap(), !edges.is_empty());
        let found = (!edges.is_empty(), edges.into_iter().filter_map(|edge| edge.weight).collect::<Vec<_>>());
        assert_eq!(found, (weight.is_some(), Vec::from_iter(weight)), "{}: {source} to {target}", self.place);
    }

    /// Checks reachability, a shortest path, and all shortest paths.
    fn check_path(&self, source: u32, target: u32, steps: Option<(u64, u64)>) {
        let (u, v) = (self.model.key(source), self.model.key(target));
        let what = format!("{}: from {u} to {v}", self.place);
        assert_eq!(self.view.is_reachable(u.clone(), v.clone()).unwrap(), steps.is_some(), "{what}");
        let path = self.view.path(u.clone(), v.clone()).unwrap();
        let paths = self.view.shortest_paths(u, v, LIMIT).unwrap();
        let Some((length, count)) = steps else {
            assert_eq!((path, paths), (None, None), "{what}");
            return;
        };
        let path = path.unwrap_or_else(|| panic!("{what}: no path"));
        assert_eq!(path.length, PathLength::Hops(length), "{what}");
        let ShortestPaths { paths, .. } = match paths {
            Some(paths) if (paths.length, paths.count) == (length, count) => paths,
            paths => panic!("{what}: {count} paths of {length} edges, not {paths:?}"),
        };
        assert_eq!(paths.len() as u64, count.min(LIMIT as u64), "{what}");
        assert_eq!(BTreeSet::from_iter(&paths).len(), paths.len(), "{what}: a path stands twice");
        for path in [&path.vertices].into_iter().chain(&paths) {
            assert_eq!(path.len() as u64, length + 1, "{what}: {path:?}");
            self.check_way((source, target), path, &what);
        }
    }

    fn check_weighted_path(&self, source: u32, target: u32, distance: Option<u64>) {
        let (u, v) = (self.model.key(source), self.model.key(target));
        let what = format!("{}: by weight from {u} to {v}", self.place);
        let path = self.view.weighted_path(u, v).unwrap();
        assert_eq!(path.as_ref().map(|path| path.length), distance.map(|sum| self.model.length(sum)), "{what}");
        if let (Some(path), Some(distance)) = (path, distance) {
            assert_eq!(self.check_way((source, target), &path.vertices, &what), distance, "{what}: {path:?}");
        }
    }

    /// Requires that a path consists of edges between its ends. Returns the sum of their weights.
    fn check_way(&self, ends: (u32, u32), path: &[Key], what: &str) -> u64 {
        let numbers: Vec<u32> = path.iter().map(|key| self.numbers[key]).collect();
        assert_eq!((numbers.first(), numbers.last()), (Some(&ends.0), Some(&ends.1)), "{what}: {path:?}");
        let weight = |pair: &[u32]| self.model.graph.edges_between(pair[0], pair[1]).first().copied();
        let weights = numbers.windows(2).map(|pair| weight(pair).unwrap_or_else(|| panic!("{what}: {path:?}")));
        weights.map(u64::from).sum()
    }
}

/// A database with its model.
struct World {
    db: Database,
    model: Model,
    random: Random,
    num_sources: usize,
    held: Vec<(View, Model, String)>,
}

/// Sets the flag on drop, also after a panic.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl World {
    /// Applies random updates in several batches, and compares each view. Holds the last one.
    fn update(&mut self, place: &str, num_updates: usize) {
        for part in 0..3 {
            let updates: Vec<_> = (0..num_updates / 3).map(|_| self.model.update(&mut self.random)).collect();
            self.db.apply(&updates).unwrap();
            self.check(&format!("{place}, part {part}"));
        }
        self.held.push((self.db.view().unwrap(), self.model.clone(), format!("{place}, held")));
    }

    fn check(&mut self, place: &str) {
        let view = self.db.view().unwrap();
        Checker::new(&view, &self.model, place).check(&mut self.random, self.num_sources);
    }

    /// Compares the last held view repeatedly during commits.
    fn check_while_others_commit(&mut self, place: &str) {
        let (is_done, num_batches) = (AtomicBool::new(false), AtomicUsize::new(0));
        let Self { db, model, random, num_sources, held } = self;
        let mut writer_random = Random::new(random.next_u64());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let updates: Vec<_> = (0..20).map(|_| model.update(&mut writer_random)).collect();
                    db.apply(&updates).unwrap();
                    num_batches.fetch_add(1, Ordering::Relaxed);
                }
            });
            let _done = Done(&is_done);
            let (view, old, _) = held.last().unwrap();
            while num_batches.load(Ordering::Relaxed) < 30 {
                Checker::new(view, old, format!("{place}, held while others commit")).check(random, *num_sources);
            }
        });
        self.check(&format!("{place}, after the others"));
    }

    /// Commits during a checkpoint lie over the immutable memtable.
    fn update_beside_a_snapshot(&mut self, num_updates: usize) {
        self.db.set_background_write_rate(Some(1));
        self.db.set_checkpoint_bytes(Some(1));
        self.db.apply(&[self.model.update(&mut self.random)]).unwrap();
        while self.db.metrics().live.background_pauses == 0 {
            std::thread::yield_now();
        }
        self.db.set_checkpoint_bytes(None);
        self.update("beside a snapshot", num_updates);
        let stats = self.db.metrics().live;
        assert!(stats.is_checkpoint_running && stats.automatic_checkpoints == 0, "{stats:?}");
        self.db.set_background_write_rate(None);
        while self.db.metrics().live.automatic_checkpoints == 0 {
            std::thread::yield_now();
        }
        self.check("after it");
        self.check_while_others_commit("beside a snapshot");
    }
}

/// Runs all kinds of views of one graph.
fn run(db: Database, num_keys: u32, num_sources: usize, seed: u64) {
    println!("{num_keys} keys, seed {seed}: {:?}", db.options());
    db.set_checkpoint_bytes(None);
    db.set_durability(Durability::None);
    let model = Model::new(*db.options(), num_keys);
    let (num_updates, num_more) = (4 * num_keys as usize, num_keys as usize);
    let mut world = World { db, model, random: Random::new(seed), num_sources, held: Vec::new() };
    world.update("wholly live", num_updates);
    assert!(num_keys < 3000 || world.model.out_list(0).len() > 1024, "one vertex has many neighbors");
    world.check_while_others_commit("wholly live");
    world.db.checkpoint(None).unwrap();
    world.check("a snapshot");
    world.update("live over a snapshot", num_more);
    world.check_while_others_commit("live over a snapshot");
    world.db.checkpoint(None).unwrap();
    world.update("memtable over deltas", num_more);
    world.update_beside_a_snapshot(num_more);
    world.db.merge().unwrap();
    world.update("memtable over a merged base", num_more);
    for (view, model, place) in world.held {
        Checker::new(&view, &model, place).check(&mut world.random, num_sources);
    }
}

fn options(graph_kind: GraphKind, weight_type: WeightType, keys: KeyScheme) -> Options {
    Options { graph_kind, weight_type: Some(weight_type), keys, ..Options::default() }
}

#[test]
fn answers_are_those_of_a_plain_map_directed() {
    let options = options(GraphKind::Directed, WeightType::U32, KeyScheme::Integer);
    run(Database::in_memory(options).unwrap(), 45, 8, 1);
}

#[test]
fn answers_are_those_of_a_plain_map_undirected() {
    let options = options(GraphKind::Undirected, WeightType::I64, KeyScheme::String);
    run(Database::in_memory(options).unwrap(), 45, 8, 2);
}

/// One vertex has more neighbors than a packed array of the memtable holds.
#[test]
fn queries_over_a_hub_match_a_map() {
    for (seed, graph_kind) in [(3, GraphKind::Directed), (4, GraphKind::Undirected)] {
        let options = options(graph_kind, WeightType::F64, KeyScheme::Integer);
        run(Database::in_memory(options).unwrap(), 3000, 5, seed);
    }
}

#[test]
fn answers_are_those_of_a_plain_map_in_files() {
    let folder = tempfile::tempdir().unwrap();
    for (seed, graph_kind) in [(5, GraphKind::Directed), (6, GraphKind::Undirected)] {
        let options = options(graph_kind, WeightType::F32, KeyScheme::String);
        run(Database::create(folder.path().join(format!("{seed}.anden")), options).unwrap(), 30, 5, seed);
    }
}

/// A reader of the WAL of another process, running or ended, sees its commits.
#[test]
fn queries_over_a_wal_match_a_map() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(GraphKind::Directed, WeightType::U32, KeyScheme::Integer);
    let path = folder.path().join("db");
    let db = Database::create(&path, options).unwrap();
    let (mut model, mut random) = (Model::new(options, 45), Random::new(7));
    for part in 0..4 {
        let updates: Vec<_> = (0..90).map(|_| model.update(&mut random)).collect();
        db.apply(&updates).unwrap();
        let beside = Database::open_read_only(&path).unwrap();
        let view = beside.view().unwrap();
        assert!(beside.metrics().live.delta_bytes > 0);
        Checker::new(&view, &model, format!("read beside the writer, part {part}")).check(&mut random, 8);
        if part == 1 {
            db.checkpoint(None).unwrap();
        }
    }
}
