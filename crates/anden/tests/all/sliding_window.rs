//! Sliding windows against a queue of graphs, one after each batch, and what is in the last and not in the first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;

use anden::{
    Changes, Database, Direction, Error, Graph, Key, KeyScheme, Options, Retention, Update, View, WeightType,
    WeightedEdges,
};
use testkit::Random;

const NUM_KEYS: u32 = 40;
const NUM_BATCHES: u32 = 150;
/// In files, where each is synced several times.
const NUM_SYNCED_BATCHES: u32 = 30;

/// Edges by the numbers of their ends, with the weights of parallel ones, all 0 without weights, and what tells these
/// from each other, 0 in simple graphs; ascending.
type Edges = BTreeMap<(u32, u32), Vec<(u32, u32)>>;

/// What is asked for, by numbers.
#[derive(Default)]
struct Batch {
    added: Vec<(u32, u32, u32)>,
    removed: Vec<(u32, u32)>,
    removed_vertex: Option<u32>,
}

/// A graph, and its last versions.
struct Model {
    options: Options,
    num_batches: usize,
    num_additions: u32,
    edges: Edges,
    vertices: BTreeSet<u32>,
    /// As they were after each batch of the window, and before it.
    versions: VecDeque<Edges>,
}

impl Model {
    fn new(options: Options, num_batches: usize) -> Self {
        let versions = VecDeque::from([Edges::new()]);
        Self { options, num_batches, num_additions: 0, edges: Edges::new(), vertices: BTreeSet::new(), versions }
    }

    fn key(&self, number: u32) -> Key {
        match self.options.keys {
            KeyScheme::String => Key::String(format!("vertex {number}")),
            KeyScheme::Integer => Key::Integer(u64::from(number) << 35),
            // On several pages of the vertex table.
            KeyScheme::Dense => Key::Integer(u64::from(number) * 97),
        }
    }

    fn pair(&self, u: u32, v: u32) -> (u32, u32) {
        match self.options.direction {
            Direction::Undirected => (u.min(v), u.max(v)),
            Direction::Directed => (u, v),
        }
    }

    /// A random batch; of its removals, most name edges that are there, of any age.
    fn batch(&self, random: &mut Random) -> Batch {
        let mut batch = Batch::default();
        for _ in 0..random.below(9) {
            let weight = if self.options.weight_type.is_some() { random.below(3) } else { 0 };
            batch.added.push((random.below(NUM_KEYS), random.below(NUM_KEYS), weight));
        }
        for _ in 0..random.below(6) {
            let known = self.edges.keys().nth(random.below(1 + self.edges.len() as u32) as usize);
            batch.removed.push(known.copied().unwrap_or((random.below(NUM_KEYS), random.below(NUM_KEYS))));
        }
        batch.removed_vertex = (random.below(20) == 0).then(|| random.below(NUM_KEYS));
        batch
    }

    /// Removals first, then additions; of parallel ones in a batch the least counts.
    fn apply(&mut self, batch: &Batch) {
        if let Some(gone) = batch.removed_vertex {
            self.vertices.remove(&gone);
            self.edges.retain(|&(u, v), _| u != gone && v != gone);
        }
        for &(u, v) in &batch.removed {
            self.edges.remove(&self.pair(u, v));
        }
        let mut new = Edges::new();
        for &(u, v, weight) in &batch.added {
            self.vertices.extend([u, v]);
            self.num_additions += u32::from(self.options.multigraph);
            new.entry(self.pair(u, v)).or_default().push((weight, self.num_additions));
        }
        for (pair, mut weights) in new {
            weights.sort_unstable();
            match self.options.multigraph {
                true => self.edges.entry(pair).or_default().extend(weights),
                false => drop(self.edges.insert(pair, weights[..1].to_vec())),
            }
        }
        self.edges.values_mut().for_each(|weights| weights.sort_unstable());
    }

    fn snapshot(&mut self) {
        self.versions.push_back(self.edges.clone());
        if self.versions.len() > self.num_batches + 1 {
            self.versions.pop_front();
        }
    }

    /// What the window shows.
    fn window(&self) -> Edges {
        let mut window = self.edges.clone();
        for (pair, old) in &self.versions[0] {
            let Some(weights) = window.get_mut(pair) else { continue };
            for weight in old {
                if let Some(place) = weights.iter().position(|other| other == weight) {
                    weights.remove(place);
                }
            }
        }
        window.retain(|_, weights| !weights.is_empty());
        window
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

    /// The same as updates. Those of a batch happen in their order, so in a simple graph only the least of parallel ones is there.
    fn updates(&self, batch: &Batch) -> Vec<Update> {
        let mut updates: Vec<_> =
            batch.removed_vertex.map(|gone| Update::RemoveVertex(self.key(gone))).into_iter().collect();
        updates.extend(batch.removed.iter().map(|&(u, v)| Update::remove_edge(self.key(u), self.key(v))));
        let mut added: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for &(u, v, weight) in &batch.added {
            let known = added.entry(self.pair(u, v)).or_default();
            known.push(weight);
            if !self.options.multigraph {
                known.sort_unstable();
                known.truncate(1);
            }
        }
        let added = added.into_iter().flat_map(|(pair, weights)| weights.into_iter().map(move |weight| (pair, weight)));
        updates.extend(added.map(|((u, v), weight)| match self.options.weight_type {
            Some(_) => Update::add_weighted_edge(self.key(u), self.key(v), weight),
            None => Update::add_edge(self.key(u), self.key(v)),
        }));
        updates
    }

    fn check(&self, view: &View, expected: &Edges, what: &str) {
        let numbers: BTreeMap<Key, u32> = (0..NUM_KEYS).map(|number| (self.key(number), number)).collect();
        let (mut found, mut num_in_arcs) = (BTreeMap::<_, Vec<u32>>::new(), 0);
        for vertex in view.vertices_by_key().unwrap() {
            let number = |vertex| numbers[&view.key(vertex).unwrap()];
            let mut see = |target: u32, weight: u32| {
                if self.options.direction == Direction::Directed || vertex <= target {
                    found.entry(self.pair(number(vertex), number(target))).or_default().push(weight);
                }
            };
            let _ = match self.options.weight_type {
                Some(_) => view.graph().for_each_weighted_out_fragment::<u32>(vertex, |targets, weights| {
                    targets.iter().zip(weights).for_each(|(&target, &weight)| see(target, weight));
                    ControlFlow::Continue(())
                }),
                None => view.graph().for_each_out_fragment(vertex, |targets| {
                    targets.iter().for_each(|&target| see(target, 0));
                    ControlFlow::Continue(())
                }),
            };
            num_in_arcs += view.in_degree(vertex).unwrap().unwrap_or(0);
        }
        view.graph().check().unwrap();
        found.values_mut().for_each(|weights| weights.sort_unstable());
        let weights = |(pair, edges): (&_, &Vec<(u32, u32)>)| (*pair, edges.iter().map(|edge| edge.0).collect());
        assert_eq!(found, expected.iter().map(weights).collect(), "{what}");
        assert_eq!(view.num_edges(), expected.values().map(|weights| weights.len() as u64).sum::<u64>(), "{what}");
        assert!(!view.has_in_edges() || num_in_arcs == view.num_arcs(), "{what}");
        if self.options.keys != KeyScheme::Dense {
            assert_eq!(view.num_vertices(), self.vertices.len(), "{what}");
        }
    }
}

/// Pushes batches, some of them as live updates with a checkpoint.
fn run(db: &Database, num_batches: u32, num_turns: u32, seed: u64) {
    println!("a window of {num_batches}, seed {seed}: {:?}", db.options());
    let random = &mut Random::new(seed);
    let mut model = Model::new(*db.options(), num_batches as usize);
    let mut window = db.sliding_window(num_batches).unwrap();
    model.check(&window.view().unwrap(), &Edges::new(), "before the first batch");
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
        model.check(&view, &expected, &format!("{} after batch {turn}", view.name()));
        assert_eq!(db.snapshots().len(), model.versions.len(), "batch {turn}");
        match random.below(12) {
            0 => drop(db.merge().unwrap()),
            1 => model.check(&db.view().unwrap(), &model.edges, "everything"),
            // What was opened before goes on where the database is.
            2 => window = db.sliding_window(num_batches).unwrap(),
            3 => {
                if let Some((view, edges)) = held.replace((view, expected)) {
                    let vertices =
                        std::mem::replace(&mut model.vertices, view.vertices_by_key().unwrap().into_iter().collect());
                    model.check(&view, &edges, "a window that was held");
                    model.vertices = vertices;
                }
            }
            _ => {}
        }
    }
    db.verify().unwrap();
    // In files of their own are the base run, the dictionary, and the few levels that are left.
    assert!(db.stats().storage.files.len() < 40, "{:?}", db.stats().storage.files);
    assert!(db.stats().storage.levels <= 8 * (num_batches as usize + 8), "{}", db.stats().storage.levels);
}

fn kinds() -> [Options; 5] {
    let directed = Options::default();
    let undirected = Options { direction: Direction::Undirected, ..directed };
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
        // The next to open it finds the window where it was.
        let db = Database::open(&path).unwrap();
        assert_eq!(db.sliding_window(5).unwrap().view().unwrap().num_edges(), {
            let numbers: Vec<u32> = db.snapshots().iter().map(|info| info.number).collect();
            db.window(numbers[1]..=numbers[5]).unwrap().num_edges()
        });
    }
}

#[test]
fn what_was_applied_is_a_batch_of_its_own() {
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

/// A stream whose edges go again when their batch leaves the window, so that the window is all that there is.
struct Stream {
    random: Random,
    /// Those of the window, and as many before it.
    batches: VecDeque<BTreeSet<(u32, u32)>>,
}

impl Stream {
    fn next(&mut self) -> Changes {
        let mut batch = BTreeSet::new();
        while batch.len() < STREAM_EDGES {
            let edge = (self.random.below(STREAM_VERTICES), self.random.below(STREAM_VERTICES));
            // What was there before the window would not be in it.
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

    /// The bytes of a database that has what the window has and nothing else, in one run.
    fn num_bytes(&self, options: Options) -> u64 {
        let fresh = Database::in_memory(options).unwrap();
        fresh.add_edges(&self.window().collect::<Vec<_>>()).unwrap();
        fresh.checkpoint(None).unwrap();
        fresh.merge().unwrap();
        fresh.stats().storage.bytes
    }
}

/// What a stream leaves behind does not grow with it: neither bytes nor files, whether it is counted or looked up.
#[test]
fn a_long_stream_takes_no_more_room_than_a_short_one() {
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
            (most_files, most_levels) = (most_files.max(storage.files.len()), most_levels.max(storage.levels));
        }
        let (content, storage) = (stream.num_bytes(options), db.stats().storage);
        // Beside what the window has in one run: its batches as levels, some of them twice.
        let figures = format!("{num_batches} batches, {content} bytes of content: {most_bytes:?}, {storage:?}");
        assert!(most_bytes[0].max(most_bytes[1]) < 3 * content && 4 * most_bytes[1] < 5 * most_bytes[0], "{figures}");
        assert!(most_files < MOST_FILES && most_levels < 3 * STREAM_WINDOW, "{most_files}, {most_levels}, {figures}");
        assert!(storage.bytes_written < 4 * storage.bytes_loaded, "{figures}");
        db.verify().unwrap();
        if is_on_disk {
            let files: Vec<_> = std::fs::read_dir(&path).unwrap().map(Result::unwrap).collect();
            let num_bytes: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
            assert!(files.len() < MOST_FILES && num_bytes < 3 * content, "{num_bytes}, {files:?}, {figures}");
        }
    }
}
