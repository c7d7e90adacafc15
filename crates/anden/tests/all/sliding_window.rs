//! Sliding windows against a queue of graphs, one after each batch: the window is the last graph without the first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;

use anden::graph::{Graph, WeightedEdges};
use anden::{Changes, Database, Error, GraphKind, Key, KeyScheme, Options, Retention, Update, View, WeightType};
use anden_graph::Direction;
use anden_testkit::{ModelGraph, Random};

const NUM_KEYS: u32 = 40;
const NUM_BATCHES: u32 = 150;
/// The number of batches in files, where each batch syncs several times.
const NUM_SYNCED_BATCHES: u32 = 30;

/// Edges between numbers of vertices. Each has its weight, 0 without weights, and a number that distinguishes parallel
/// edges, 0 in simple graphs.
type Edges = ModelGraph<u32, (u32, u32)>;

/// The requested changes, by numbers.
#[derive(Default)]
struct Batch {
    added: Vec<(u32, u32, u32)>,
    removed: Vec<(u32, u32)>,
    removed_vertex: Option<u32>,
}

/// A graph and its last versions.
struct Model {
    options: Options,
    num_batches: usize,
    num_additions: u32,
    edges: Edges,
    /// The edges before the window and after each of its batches.
    versions: VecDeque<Edges>,
}

impl Model {
    fn new(options: Options, num_batches: usize) -> Self {
        let edges = Edges::new(options.graph_kind).multigraph(options.multigraph);
        let versions = VecDeque::from([edges.clone()]);
        Self { options, num_batches, num_additions: 0, edges, versions }
    }

    fn key(&self, number: u32) -> Key {
        match self.options.keys {
            KeyScheme::String => Key::String(format!("vertex {number}")),
            KeyScheme::Integer => Key::Integer(u64::from(number) << 35),
            // Spread over several pages of the vertex table.
            KeyScheme::Dense => Key::Integer(u64::from(number) * 97),
        }
    }

    /// A random batch. Most removals name existing edges, of any age.
    fn batch(&self, random: &mut Random) -> Batch {
        let mut batch = Batch::default();
        for _ in 0..random.below(9) {
            let weight = if self.options.weight_type.is_some() { random.below(3) } else { 0 };
            batch.added.push((random.below(NUM_KEYS), random.below(NUM_KEYS), weight));
        }
        for _ in 0..random.below(6) {
            let known = self.edges.nth_pair(random.below(1 + self.edges.num_pairs() as u32) as usize);
            batch.removed.push(known.unwrap_or((random.below(NUM_KEYS), random.below(NUM_KEYS))));
        }
        batch.removed_vertex = (random.below(20) == 0).then(|| random.below(NUM_KEYS));
        batch
    }

    /// Removals come first, then additions. The least of parallel edges in a batch counts.
    fn apply(&mut self, batch: &Batch) {
        if let Some(gone) = batch.removed_vertex {
            self.edges.remove_vertex(gone);
        }
        for &(u, v) in &batch.removed {
            self.edges.remove_edges(u, v);
        }
        for (u, v, weight) in self.least(&batch.added) {
            self.num_additions += u32::from(self.options.multigraph);
            self.edges.add_edge(u, v, (weight, self.num_additions));
        }
    }

    /// The added edges; in a simple graph only the least of each pair.
    fn least(&self, added: &[(u32, u32, u32)]) -> Vec<(u32, u32, u32)> {
        let mut edges = ModelGraph::new(self.options.graph_kind).multigraph(self.options.multigraph);
        for &(u, v, weight) in added {
            let known: Option<&u32> = edges.edges_between(u, v).first();
            let least = known.filter(|_| !self.options.multigraph).map_or(weight, |&known| known.min(weight));
            edges.add_edge(u, v, least);
        }
        edges.edges().map(|(u, v, &weight)| (u, v, weight)).collect()
    }

    fn snapshot(&mut self) {
        self.versions.push_back(self.edges.clone());
        if self.versions.len() > self.num_batches + 1 {
            self.versions.pop_front();
        }
    }

    /// The edges of the window.
    fn window(&self) -> Edges {
        self.edges.minus(&self.versions[0])
    }

    fn changes(&self, batch: &Batch) -> Changes {
        let mut changes = Changes::default();
        for &(u, v, weight) in &batch.added {
            let (u, v) = (self.key(u), self.key(v));
            changes = match self.options.weight_type {
                Some(_) => changes.add_weighted_edge(u, v, weight),
                None => changes.add_edge(u, v),
            };
        }
        for &(u, v) in &batch.removed {
            changes = changes.remove_edge(self.key(u), self.key(v));
        }
        batch.removed_vertex.into_iter().fold(changes, |changes, gone| changes.remove_vertex(self.key(gone)))
    }

    /// The batch as updates. Updates apply in order, so in a simple graph only the least of parallel edges is among
    /// them.
    fn updates(&self, batch: &Batch) -> Vec<Update> {
        let mut updates: Vec<_> =
            batch.removed_vertex.map(|gone| Update::RemoveVertex(self.key(gone))).into_iter().collect();
        updates.extend(batch.removed.iter().map(|&(u, v)| Update::remove_edge(self.key(u), self.key(v))));
        updates.extend(self.least(&batch.added).into_iter().map(|(u, v, weight)| match self.options.weight_type {
            Some(_) => Update::add_weighted_edge(self.key(u), self.key(v), weight),
            None => Update::add_edge(self.key(u), self.key(v)),
        }));
        updates
    }

    /// Compares a window: its edges, and their ends as its vertices.
    fn check_window(&self, view: &View, expected: &Edges, what: &str) {
        let ends: BTreeSet<u32> = expected.edges().flat_map(|(u, v, _)| [u, v]).collect();
        self.check(view, expected, ends.len(), what);
        assert_eq!(view.num_vertices(), ends.len(), "{what}");
    }

    /// Compares the edges of a view, and the number of its vertices if each has a key.
    fn check(&self, view: &View, expected: &Edges, num_vertices: usize, what: &str) {
        let numbers: BTreeMap<Key, u32> = (0..NUM_KEYS).map(|number| (self.key(number), number)).collect();
        let (mut found, mut num_in_arcs) = (BTreeMap::<_, Vec<u32>>::new(), 0);
        for vertex in view.vertices_by_key().unwrap() {
            let number = |vertex| numbers[&view.key(vertex).unwrap()];
            let mut see = |target: u32, weight: u32| {
                if self.options.graph_kind == GraphKind::Directed || vertex <= target {
                    found.entry(expected.pair(number(vertex), number(target))).or_default().push(weight);
                }
            };
            let _ = match self.options.weight_type {
                Some(_) => {
                    view.graph().for_each_weighted_fragment::<u32>(Direction::Out, vertex, |targets, weights| {
                        targets.iter().zip(weights).for_each(|(&target, &weight)| see(target, weight));
                        ControlFlow::Continue(())
                    })
                }
                None => view.graph().for_each_fragment(Direction::Out, vertex, |targets| {
                    targets.iter().for_each(|&target| see(target, 0));
                    ControlFlow::Continue(())
                }),
            };
            num_in_arcs += view.in_degree(vertex).unwrap().unwrap_or(0);
        }
        view.graph().check().unwrap();
        found.values_mut().for_each(|weights| weights.sort_unstable());
        let weights = |(pair, edges): (_, &[(u32, u32)])| {
            let mut weights: Vec<u32> = edges.iter().map(|edge| edge.0).collect();
            weights.sort_unstable();
            (Some(pair), weights)
        };
        assert_eq!(found, expected.pairs().map(weights).collect(), "{what}");
        assert_eq!(view.num_edges(), expected.num_edges(), "{what}");
        assert!(!view.has_in_edges() || num_in_arcs == view.num_arcs(), "{what}");
        if self.options.keys != KeyScheme::Dense {
            assert_eq!(view.num_vertices(), num_vertices, "{what}");
        }
    }
}

/// Pushes batches, some of them as updates with a checkpoint.
fn run(db: &Database, num_batches: u32, num_turns: u32, seed: u64) {
    println!("a window of {num_batches}, seed {seed}: {:?}", db.options());
    let random = &mut Random::new(seed);
    let mut model = Model::new(*db.options(), num_batches as usize);
    let mut window = db.sliding_window(num_batches).unwrap();
    model.check_window(&window.view().unwrap(), &model.edges, "before the first batch");
    let mut held: Option<(View, Edges)> = None;
    for turn in 0..num_turns {
        let batch = model.batch(random);
        let is_live = random.below(3) == 0;
        let view = if is_live {
            let updates = model.updates(&batch);
            let (one, other) = updates.split_at(random.below(1 + updates.len() as u32) as usize);
            db.apply(one).unwrap();
            db.apply(other).unwrap();
            db.checkpoint(None).unwrap();
            window.view().unwrap()
        } else {
            window.push(&model.changes(&batch)).unwrap()
        };
        model.apply(&batch);
        model.snapshot();
        let expected = model.window();
        let num_vertices = model.edges.vertices().len();
        model.check_window(&view, &expected, &format!("{} after batch {turn}", view.name()));
        assert_eq!(db.snapshots().len(), model.versions.len(), "batch {turn}");
        match random.below(12) {
            0 => drop(db.merge().unwrap()),
            1 => model.check(&db.view().unwrap(), &model.edges, num_vertices, "everything"),
            // A window that is opened again continues at the current state.
            2 => window = db.sliding_window(num_batches).unwrap(),
            3 => {
                if let Some((view, edges)) = held.replace((view, expected)) {
                    model.check_window(&view, &edges, "a window that was held");
                }
            }
            _ => {}
        }
    }
    db.verify().unwrap();
    // The base, the dictionary, and the few remaining deltas have files of their own.
    assert!(db.stats().storage.files.len() < 40, "{:?}", db.stats().storage.files);
    assert!(db.stats().storage.deltas <= 8 * (num_batches as usize + 8), "{}", db.stats().storage.deltas);
}

fn kinds() -> [Options; 5] {
    let directed = Options::default();
    let undirected = Options { graph_kind: GraphKind::Undirected, ..directed };
    [
        directed,
        Options { keys: KeyScheme::String, weight_type: Some(WeightType::U32), ..directed },
        Options { keys: KeyScheme::Dense, in_edges: false, ..directed },
        Options { weight_type: Some(WeightType::U32), ..undirected },
        Options { multigraph: true, keys: KeyScheme::String, weight_type: Some(WeightType::U32), ..undirected },
    ]
}

#[test]
fn a_window_is_what_its_batches_added() {
    let folder = tempfile::tempdir().unwrap();
    for (seed, options) in (0..).zip(kinds()) {
        for num_batches in [1, 4, 17] {
            let seed = 100 * seed + u64::from(num_batches);
            run(&Database::in_memory(options).unwrap(), num_batches, NUM_BATCHES, seed);
        }
        let path = folder.path().join(format!("{seed}.anden"));
        run(&Database::create(&path, options).unwrap(), 5, NUM_SYNCED_BATCHES, seed);
        // After a reopen, the window is at its old place.
        let db = Database::open(&path).unwrap();
        assert_eq!(db.sliding_window(5).unwrap().view().unwrap().num_edges(), {
            let numbers: Vec<u32> = db.snapshots().iter().map(|info| info.number).collect();
            db.window(numbers[1]..=numbers[5]).unwrap().num_edges()
        });
    }
}

#[test]
fn direct_commit_becomes_its_own_window_batch() {
    let db = Database::in_memory(Options::default()).unwrap();
    let window = db.sliding_window(2).unwrap();
    window.push(&Changes::default().add_edge(1, 2)).unwrap();
    db.apply(&[Update::add_edge(2, 3)]).unwrap();
    assert_eq!(window.view().unwrap().num_edges(), 1);
    let view = window.push(&Changes::default().add_edge(3, 4)).unwrap();
    assert_eq!((view.num_edges(), view.name()), (2, "window 3..4"));
    assert!(view.has_edge(2, 3).unwrap() && view.has_edge(3, 4).unwrap());
}

#[test]
fn a_window_is_refused_without_batches_and_keeps_names() {
    let db = Database::in_memory(Options::default()).unwrap();
    assert!(matches!(db.sliding_window(0), Err(Error::InvalidInput(_))));
    assert!(matches!(db.sliding_window(u32::MAX), Err(Error::InvalidInput(_))));
    let window = db.sliding_window(1).unwrap();
    assert_eq!(window.view().unwrap().name(), "window without snapshots");
    for key in 0..5_u64 {
        let changes = Changes::default().add_edge(key, key + 1);
        window.push(&if key == 1 { changes.named("kept") } else { changes }).unwrap();
    }
    let numbers: Vec<u32> = db.snapshots().iter().map(|info| info.number).collect();
    assert_eq!(numbers, [3, 5, 6]);
    assert_eq!(window.view().unwrap().num_edges(), 1);
    assert_eq!(db.retain(Retention::All).unwrap(), Vec::<u32>::new());
}

const STREAM_VERTICES: u32 = 2000;
const STREAM_EDGES: usize = 300;
const STREAM_WINDOW: usize = 8;
const MOST_FILES: usize = 3 * STREAM_WINDOW;

/// A stream whose edges are removed when their batch leaves the window, so that the window is the whole graph.
struct Stream {
    random: Random,
    /// The batches of the window, and an equal number before it.
    batches: VecDeque<BTreeSet<(u32, u32)>>,
}

impl Stream {
    fn next(&mut self) -> Changes {
        let mut batch = BTreeSet::new();
        while batch.len() < STREAM_EDGES {
            let edge = (self.random.below(STREAM_VERTICES), self.random.below(STREAM_VERTICES));
            // An edge from before the window would not be in the window.
            if !self.batches.iter().any(|batch| batch.contains(&edge)) {
                batch.insert(edge);
            }
        }
        let gone = self.batches.len().checked_sub(STREAM_WINDOW).map(|oldest| &self.batches[oldest]);
        let changes = gone
            .into_iter()
            .flatten()
            .fold(Changes::default(), |changes, &(u, v)| changes.remove_edge(u64::from(u), u64::from(v)));
        let changes = batch.iter().fold(changes, |changes, &(u, v)| changes.add_edge(u64::from(u), u64::from(v)));
        self.batches.push_back(batch);
        if self.batches.len() > 2 * STREAM_WINDOW {
            self.batches.pop_front();
        }
        changes
    }

    fn window(&self) -> impl Iterator<Item = (u32, u32)> {
        self.batches.iter().rev().take(STREAM_WINDOW).flatten().copied()
    }

    /// The bytes of a database with only the content of the window, in one base.
    fn num_bytes(&self, options: Options) -> u64 {
        let fresh = Database::in_memory(options).unwrap();
        fresh.add_edges(&self.window().collect::<Vec<_>>()).unwrap();
        fresh.checkpoint(None).unwrap();
        fresh.merge().unwrap();
        fresh.stats().storage.bytes
    }
}

/// The remains of a stream do not grow with it, in bytes or files, by the statistics or by the file system.
#[test]
fn storage_does_not_grow_with_stream_length() {
    let options = Options { keys: KeyScheme::Dense, ..Options::default() };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    for (is_on_disk, num_batches) in [(false, 400), (true, 80)] {
        let made = if is_on_disk { Database::create(&path, options) } else { Database::in_memory(options) };
        let db = made.unwrap();
        let mut stream = Stream { random: Random::new(71), batches: VecDeque::new() };
        let window = db.sliding_window(STREAM_WINDOW as u32).unwrap();
        let (mut most_bytes, mut most_files, mut most_levels) = ([0; 2], 0, 0);
        for turn in 0..num_batches {
            let view = window.push(&stream.next()).unwrap();
            let num_edges = stream.window().count() as u64;
            assert_eq!((view.num_edges(), db.view().unwrap().num_edges()), (num_edges, num_edges), "batch {turn}");
            assert_eq!(db.snapshots().len(), (turn + 2).min(STREAM_WINDOW + 1), "batch {turn}");
            let storage = db.stats().storage;
            let half = usize::from(turn >= num_batches / 2);
            most_bytes[half] = most_bytes[half].max(storage.bytes);
            (most_files, most_levels) = (most_files.max(storage.files.len()), most_levels.max(storage.deltas));
        }
        let (content, storage) = (stream.num_bytes(options), db.stats().storage);
        // Beside the content in one base: the batches as deltas, some of them twice.
        let figures = format!("{num_batches} batches, {content} bytes of content: {most_bytes:?}, {storage:?}");
        assert!(most_bytes[0].max(most_bytes[1]) < 3 * content && 4 * most_bytes[1] < 5 * most_bytes[0], "{figures}");
        assert!(most_files < MOST_FILES && most_levels < 3 * STREAM_WINDOW, "{most_files}, {most_levels}, {figures}");
        assert!(storage.bytes_written < 4 * storage.bytes_loaded, "{figures}");
        db.verify().unwrap();
        if is_on_disk {
            let files = std::fs::read_dir(&path).unwrap().map(Result::unwrap);
            // The space for changes on a full disk is bounded on its own.
            let files: Vec<_> = files.filter(|file| file.file_name() != "RESERVE").collect();
            let num_bytes: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
            assert!(files.len() < MOST_FILES && num_bytes < 3 * content, "{num_bytes}, {files:?}, {figures}");
        }
    }
}
