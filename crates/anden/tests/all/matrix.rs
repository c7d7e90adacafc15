//! Every kernel on every kind of view, against its verifier and against the graph loaded anew.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anden::changes::Maintenance;
use anden::export::{ExportFormat, write_file};
use anden::job::{Parameter, Sources, Value, Values};
use anden::load::{Duplicates, Format, InputPath, WantedProperties};
use anden::{
    AppendOptions, Changes, Database, GraphKind, Job, Key, LoadOptions, Options, Parameters, Session, Update, View,
    WeightType,
};
use anden_testkit::Random;

const NUM_KEYS: u32 = 1500;
const NUM_LEVELS: u32 = 20;
/// A source that is never removed.
const SOURCE: u64 = 7;

/// The place of a database.
#[derive(Clone, Copy)]
enum Place {
    Files,
    Memory,
}

/// A random key. Smaller keys have most edges.
fn key(random: &mut Random) -> u64 {
    let bound = 1 + random.below(NUM_KEYS);
    7 * u64::from(1 + random.below(bound))
}

/// A database of 21 unmerged snapshots with added and removed edges and vertices.
fn history(path: &Path, place: Place, graph: Options, session: &Session) -> Database {
    let mut random = Random::new(42);
    let mut edges: Vec<(u64, u64)> = (0..6000).map(|_| (key(&mut random), key(&mut random))).collect();
    let input = path.with_extension("txt");
    let text: String = edges.iter().enumerate().map(|(i, (u, v))| format!("{u} {v} {}\n", 1 + i % 9)).collect();
    std::fs::write(&input, text).unwrap();
    let duplicates = match (graph.multigraph, graph.edge_properties) {
        (true, _) => Duplicates::Keep,
        (false, true) => Duplicates::Last,
        (false, false) => Duplicates::Min,
    };
    let mut options = LoadOptions { graph, duplicates, ..LoadOptions::default() };
    if graph.edge_properties {
        options.source.columns = Some(["u", "v", "weight"].map(String::from).to_vec());
        options.source.edge_properties = WantedProperties::All;
    }
    let inputs = [InputPath::File(input)];
    let (db, _) = match place {
        Place::Files => Database::load(path, &inputs, &options, session).unwrap(),
        Place::Memory => Database::load_in_memory(&inputs, &options, session).unwrap(),
    };
    let options = AppendOptions { maintenance: Maintenance::Never, ..AppendOptions::default() };
    for level in 0..NUM_LEVELS {
        let mut changes = Changes::default();
        for i in 0..60 {
            let (u, v) = (key(&mut random), key(&mut random));
            edges.push((u, v));
            changes = match graph.weight_type {
                Some(_) => changes.add_weighted_edge(u, v, 1 + i % 9),
                None if graph.edge_properties => changes.add_edge(u, v).with("weight", 1 + i % 9),
                None => changes.add_edge(u, v),
            };
            let (u, v) = edges[random.below(edges.len() as u32) as usize];
            if i % 2 == 0 {
                changes = changes.remove_edge(u, v);
            }
        }
        let gone = key(&mut random);
        if level % 3 == 1 && gone != SOURCE {
            changes = changes.remove_vertex(gone);
        }
        db.append_with(&changes, &options).unwrap();
    }
    db
}

/// The graph of a view as the only snapshot of another database. Without `lists_vertices`, only its edges are loaded,
/// and must bring all vertices.
fn loaded_anew(view: &View, lists_vertices: bool, graph: Options, path: &Path, session: &Session) -> View {
    let (edges, vertices) = (path.with_extension("edges"), path.with_extension("vertices"));
    // Properties are read as weights.
    let format = if graph.edge_properties { ExportFormat::CSV } else { ExportFormat::EDGE_LIST };
    let weight_type = if graph.edge_properties { Some(WeightType::I64) } else { graph.weight_type };
    let graph = Options { weight_type, edge_properties: false, ..graph };
    write_file(&edges, |output| view.export(format, output)).unwrap();
    let live = view.vertices_by_key().unwrap();
    let lines: String = live.iter().map(|&vertex| format!("{}\n", view.key(vertex).unwrap())).collect();
    std::fs::write(&vertices, lines).unwrap();
    let mut options = LoadOptions { graph, ..LoadOptions::default() };
    options.source.format = Format::of_name(if format == ExportFormat::CSV { "csv" } else { "edgelist" });
    options.source.vertices = lists_vertices.then(|| vertices.into()).into_iter().collect();
    let (db, _) = Database::load(path, &[InputPath::File(edges)], &options, session).unwrap();
    let anew = db.view().unwrap();
    assert_eq!((anew.num_vertices(), anew.num_edges()), (view.num_vertices(), view.num_edges()), "{}", view.name());
    anew
}

/// The values of a kernel by key. A component is named by its smallest key.
fn by_key(view: &View, values: &Values<'_>) -> BTreeMap<Key, f64> {
    let live = view.vertices_by_key().unwrap();
    let mut smallest: BTreeMap<u32, f64> = BTreeMap::new();
    let mut value = |vertex: u32| match values {
        Values::Hops(hops) => f64::from(hops[vertex as usize]),
        Values::Numbers(numbers) => f64::from(numbers[vertex as usize]),
        Values::Counts(counts) => counts[vertex as usize] as f64,
        Values::Distances(distances) => distances[vertex as usize] as f64,
        Values::Reals(reals) => reals[vertex as usize],
        Values::Vertices(labels) => {
            let label = labels[vertex as usize];
            let Key::Integer(key) = view.key(vertex).unwrap() else { panic!("integer keys") };
            *smallest.entry(label).or_insert(key as f64)
        }
    };
    live.iter().map(|&vertex| (view.key(vertex).unwrap(), value(vertex))).collect()
}

fn is_near(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Real(a), Value::Real(b)) => is_near(*a, *b),
        // Sums in another order may differ in the last digits, and so change places.
        (Value::Ranking(a), Value::Ranking(b)) => a.iter().zip(b).all(|(a, b)| is_near(a.1, b.1)),
        (Value::Keys(a), Value::Keys(b)) => {
            let sorted = |keys: &[Key]| keys.iter().cloned().collect::<BTreeSet<_>>();
            a.len() == b.len() && sorted(a) == sorted(b)
        }
        _ => a == b,
    }
}

/// A vertex to start from: [`SOURCE`], unless a window lacks it.
fn source(view: &View) -> Key {
    let smallest = || view.key(view.vertices_by_key().unwrap()[0]).unwrap();
    view.vertex(SOURCE).map_or_else(|_| smallest(), |_| SOURCE.into())
}

/// Kernels with parameters other than the defaults of the table.
fn variants(view: &View) -> Vec<(&'static str, Parameters)> {
    let given = Parameters { values: true, ..Parameters::default() };
    let source = vec![source(view)];
    let by = |name: &str| Some(name.to_owned());
    let mut variants = vec![
        ("triangles", Parameters { values: false, ..given.clone() }),
        ("pagerank", Parameters { algorithm: by("gap"), source: source.clone(), ..given.clone() }),
        ("bc", Parameters { sources: Some(u64::MAX), ..given.clone() }),
    ];
    if view.weight_type().is_some() {
        variants.push(("pagerank", Parameters { weight: by("weight"), ..given.clone() }));
        variants.push(("sssp", Parameters { algorithm: by("bellman-ford"), source, ..given }));
    }
    variants
}

/// Runs every kernel that the graph supports. Returns their names.
fn compare(name: &str, view: &View, anew: &View) -> Vec<&'static str> {
    let mut ran = Vec::new();
    for (kernel, parameters) in variants(view) {
        // Betweenness from all vertices is slow, so it runs on small views only.
        if kernel != "bc" || view.num_edges() < 500 {
            compare_one(name, &Job::new(kernel, parameters).unwrap(), view, anew);
        }
    }
    for kernel in Job::table() {
        if kernel.name == "sssp" && view.weight_type().is_none() {
            continue;
        }
        // A sample is drawn among all keys, and the graph loaded anew lacks the removed ones.
        let needs_source = kernel.needs == Sources::One || kernel.parameters.contains(&Parameter::Sources);
        let source = if needs_source { vec![source(view)] } else { Vec::new() };
        let job = Job::new(kernel.name, Parameters { source, values: true, ..Parameters::default() }).unwrap();
        compare_one(name, &job, view, anew);
        ran.push(kernel.name);
    }
    ran
}

/// Runs a job on both views, verifies the result, and compares the two.
fn compare_one(name: &str, job: &Job, view: &View, anew: &View) {
    let (output, expected) = (view.run(job).unwrap(), anew.run(job).unwrap());
    let place = format!("{} on {name}", job.kernel().name);
    output.check(view).unwrap_or_else(|error| panic!("{place}: {error}"));
    for ((what, found), (_, expected)) in output.summary.iter().zip(&expected.summary) {
        // The final error of an iteration is no result.
        assert!(*what == "delta" || is_same(found, expected), "{place}: {what}: {found:?} and {expected:?}");
    }
    if let (Some(found), Some(expected)) = (output.values(), expected.values()) {
        let (found, expected) = (by_key(view, &found), by_key(anew, &expected));
        for ((key, found), (other, expected)) in found.iter().zip(&expected) {
            assert!(key == other && is_near(*found, *expected), "{place}: {key}: {found} and {expected}");
        }
    }
}

/// Requires that the base's list plus the changes of the deltas give the list that readers get.
fn check_fragments(name: &str, view: &View) {
    let mut num_deltas = 0;
    for vertex in view.vertices_by_key().unwrap().into_iter().step_by(13) {
        let key = view.key(vertex).unwrap();
        let fragments = view.fragments(key.clone()).unwrap();
        let degrees = [Some(view.out_degree(vertex).unwrap()), view.in_degree(vertex).unwrap()];
        for (list, degree) in [Some(fragments.out), fragments.into].into_iter().flatten().zip(degrees) {
            let mut counts = BTreeMap::<Key, i64>::new();
            list.base.iter().flatten().for_each(|key| *counts.entry(key.clone()).or_default() += 1);
            for level in &list.deltas {
                let sign = if level.is_backward { -1 } else { 1 };
                level.added.iter().for_each(|key| *counts.entry(key.clone()).or_default() += sign);
                level.removed.iter().for_each(|key| *counts.entry(key.clone()).or_default() -= sign);
                assert!(
                    level.from < level.to && !(level.added.is_empty() && level.removed.is_empty()),
                    "{name}: {key}"
                );
                num_deltas += 1;
            }
            if let Some((added, removed)) = &list.live {
                added.iter().for_each(|key| *counts.entry(key.clone()).or_default() += 1);
                removed.iter().for_each(|key| *counts.entry(key.clone()).or_default() -= 1);
            }
            let num_entries: usize = list.fragments.iter().map(Vec::len).sum();
            assert_eq!(Some(num_entries as u64), degree, "{name}: {key}");
            for found in list.fragments.iter().flatten() {
                match &list.base {
                    Some(_) => *counts.get_mut(found).unwrap_or_else(|| panic!("{name}: {key} to {found}")) -= 1,
                    // An edge with a changed weight is among the added ones, but is not one more.
                    None => assert!(list.deltas.iter().any(|delta| delta.added.contains(found)), "{name}: {key}"),
                }
            }
            assert!(list.base.is_none() || counts.values().all(|&count| count == 0), "{name}: {key}: {counts:?}");
        }
    }
    assert!(num_deltas > 0 || !(name.contains("delta") || name.contains("window")), "{name}");
}

/// Random updates. Some removals name missing edges.
fn updates(random: &mut Random, graph: Options, num_updates: u32) -> Vec<Update> {
    let mut updates = Vec::new();
    for i in 0..num_updates {
        let (u, v) = (key(random), key(random));
        updates.push(match (i % 4, graph.weight_type) {
            (3, _) => Update::remove_edge(u, v),
            (_, Some(_)) => Update::add_weighted_edge(u, v, 1 + i % 9),
            (_, None) => Update::add_edge(u, v),
        });
        if i % 97 == 96 && u != SOURCE {
            updates.push(Update::RemoveVertex(u.into()));
        }
    }
    updates
}

/// Runs all kinds of views of one history, with changes of the database between them.
fn run(graph_name: &str, graph: Options) {
    run_in(Place::Files, graph_name, graph);
}

fn run_in(place: Place, graph_name: &str, graph: Options) {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::new(2).unwrap();
    let db = history(&folder.path().join("db"), place, graph, &session);
    let mut num_anew = 0;
    let mut check = |name: &str, view: View| {
        num_anew += 1;
        let view = if graph.edge_properties { view.with_weight("weight").unwrap() } else { view };
        // A window is compared with a load of its edges alone.
        let lists_vertices = !name.contains("window");
        let anew = loaded_anew(&view, lists_vertices, graph, &folder.path().join(format!("anew{num_anew}")), &session);
        let ran = compare(name, &view, &anew);
        check_fragments(name, &view);
        println!("kernels x views [{graph_name}] {name}: {}", ran.join(" "));
        assert!(ran.len() + 1 >= Job::table().len());
    };
    check("the first snapshot, a base", db.snapshot(1).unwrap());
    check("20 deltas", db.view().unwrap());
    check("10 deltas", db.snapshot(11).unwrap());
    check("a window of 7 deltas", db.window(6..=12).unwrap());
    check("a window of 1 delta", db.window(21..=21).unwrap());
    check("a window of everything", db.window(1..=21).unwrap());
    check("7 deltas alone, with all vertices", db.window_with_isolated(6..=12).unwrap());
    db.merge_newest(15).unwrap();
    check("5 deltas and a merged delta", db.view().unwrap());
    let held = db.snapshot(9).unwrap();
    db.merge().unwrap();
    check("merged", db.view().unwrap());
    check("3 deltas back from the merged base", db.snapshot(18).unwrap());
    check("20 deltas back", db.snapshot(1).unwrap());
    check("a window before the merged base", db.window(3..=19).unwrap());
    check("a window that slides, before the merged base", {
        let window = db.sliding_window(20).unwrap();
        window.view().unwrap()
    });
    db.drop_snapshots(&[5, 6, 7, 8, 9, 10, 11].map(Into::into)).unwrap();
    check("dropped in the middle: the next younger", db.snapshot(12).unwrap());
    check("dropped in the middle: a window over the gap", db.window(4..=13).unwrap());
    check("a view of what was dropped", held);
    db.drop_snapshot(21).unwrap();
    check("the newest dropped", db.view().unwrap());
    check("the newest that is left", db.snapshot(20).unwrap());
    if !graph.multigraph && !graph.edge_properties {
        let mut random = Random::new(43);
        db.apply(&updates(&mut random, graph, 200)).unwrap();
        let held = db.view().unwrap();
        check("changes over what is left", held.clone());
        db.apply(&updates(&mut random, graph, 2000)).unwrap();
        check("more changes", db.view().unwrap());
        check("the first of them, held", held);
        db.checkpoint(None).unwrap();
        check("a checkpoint", db.view().unwrap());
        db.merge().unwrap();
        db.apply(&updates(&mut random, graph, 100)).unwrap();
        check("changes over a base", db.view().unwrap());
    }
    db.verify().unwrap();
}

#[test]
fn directed_with_weights() {
    run("directed, f64", Options { weight_type: Some(WeightType::F64), ..Options::default() });
}

#[test]
fn directed_with_weights_in_memory() {
    let graph = Options { weight_type: Some(WeightType::F64), ..Options::default() };
    run_in(Place::Memory, "directed, f64, in memory", graph);
}

#[test]
fn undirected_with_a_property_as_weight_in_memory() {
    let graph = Options { graph_kind: GraphKind::Undirected, edge_properties: true, ..Options::default() };
    run_in(Place::Memory, "undirected, property, in memory", graph);
}

#[test]
fn undirected_with_weights() {
    let graph_kind = GraphKind::Undirected;
    run("undirected, u32", Options { graph_kind, weight_type: Some(WeightType::U32), ..Options::default() });
}

#[test]
fn multigraph_with_weights() {
    run("multigraph, i64", Options { multigraph: true, weight_type: Some(WeightType::I64), ..Options::default() });
}

#[test]
fn directed_with_a_property_as_weight() {
    run("directed, property", Options { edge_properties: true, ..Options::default() });
}

#[test]
fn undirected_multigraph_with_a_property_as_weight() {
    let graph_kind = GraphKind::Undirected;
    run("undirected, property", Options { graph_kind, multigraph: true, edge_properties: true, ..Options::default() });
}

#[test]
fn without_in_edges() {
    run("out-only", Options { in_edges: false, ..Options::default() });
}
