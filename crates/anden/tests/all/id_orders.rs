//! Results by key are the same under every order of ids.

use std::path::Path;

use anden::job::{Parameter, Sources, Value, Values};
use anden::load::{IdOrder, InputPath, Spread};
use anden::{
    AppendOptions, Changes, Database, GraphKind, Job, Key, KeyScheme, LoadOptions, Neighbors, Options, Parameters,
    Session, Update, View, WeightType,
};
use anden_testkit::{TestGraph, graphs};

/// A key of a vertex of a test graph. Keys ascend in another order than the vertices.
fn key(graph: &TestGraph, keys: KeyScheme, vertex: u32) -> Key {
    let number = u64::from(vertex) * 7919 % (graph.num_vertices.next_power_of_two() as u64);
    match keys {
        KeyScheme::String => format!("v{number}").into(),
        _ => (3 * number + 1).into(),
    }
}

/// Loads a test graph with weights, vertices without edges included.
fn load(folder: &Path, graph: &TestGraph, keys: KeyScheme, order: IdOrder, threads: usize) -> Database {
    let name = |vertex: u32| key(graph, keys, vertex);
    let edges: String = graph.edges.iter().map(|&(u, v, w)| format!("{} {} {w}\n", name(u), name(v))).collect();
    let vertices: String = (0..graph.num_vertices as u32).map(|vertex| format!("{}\n", name(vertex))).collect();
    let paths = ["edges.txt", "vertices.txt"].map(|file| folder.join(file));
    std::fs::write(&paths[0], edges).unwrap();
    std::fs::write(&paths[1], vertices).unwrap();
    let options = Options {
        graph_kind: graph.graph_kind,
        multigraph: graph.multigraph,
        keys,
        weight_type: Some(WeightType::U32),
        ..Options::default()
    };
    let mut options = LoadOptions { graph: options, order, ..LoadOptions::default() };
    options.source.weights = Some(WeightType::U32);
    options.source.keys =
        if keys == KeyScheme::String { anden::load::KeyKind::String } else { anden::load::KeyKind::Integer };
    options.source.vertices = vec![paths[1].clone().into()];
    options.source.block_bytes = 2000;
    let [edges, _] = paths;
    Database::load_in_memory(&[InputPath::File(edges)], &options, &Session::new(threads).unwrap()).unwrap().0
}

/// All edges by key, with weights; both arcs of an undirected edge.
fn edges(view: &View) -> Vec<(Key, Key, String)> {
    let mut edges = Vec::new();
    for vertex in view.vertices_by_key().unwrap() {
        let source = view.key(vertex).unwrap();
        for target in view.neighbors(source.clone(), Neighbors::Out).unwrap() {
            for edge in view.edges_between(source.clone(), target.clone()).unwrap() {
                edges.push((source.clone(), target.clone(), format!("{:?}", edge.weight)));
            }
        }
    }
    edges.sort();
    edges
}

fn is_near(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Real(a), Value::Real(b)) => is_near(*a, *b),
        // Sums in another order may differ in the last digits, and so change places.
        (Value::Ranking(a), Value::Ranking(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_near(a.1, b.1)),
        _ => a == b,
    }
}

/// A value of each vertex in the order of the keys; reals apart, because they are compared with a tolerance.
fn by_key(view: &View, values: &Values<'_>) -> (Vec<String>, Vec<f64>) {
    let (mut exact, mut reals) = (Vec::new(), Vec::new());
    for vertex in view.vertices_by_key().unwrap() {
        let place = vertex as usize;
        match values {
            Values::Hops(numbers) | Values::Numbers(numbers) => exact.push(numbers[place].to_string()),
            Values::Counts(numbers) | Values::Distances(numbers) => exact.push(numbers[place].to_string()),
            Values::Reals(numbers) => reals.push(numbers[place]),
            Values::Vertices(vertices) => exact.push(match vertices[place] {
                u32::MAX => "none".to_owned(),
                other => view.key(other).unwrap().to_string(),
            }),
        }
    }
    (exact, reals)
}

/// Runs every kernel on both views and compares results by key.
fn compare_kernels(place: &str, found: &View, expected: &View, source: &Key) {
    for kernel in Job::table() {
        let top = kernel.parameters.contains(&Parameter::Top).then_some(4);
        let given = Parameters { values: true, top, ..Parameters::default() };
        let with_source = Parameters { source: vec![source.clone()], ..given.clone() };
        let parameters = match (kernel.name, kernel.needs) {
            ("bfs", _) => vec![with_source.clone(), Parameters { parents: true, ..with_source }],
            (_, Sources::One) => vec![with_source],
            ("bc" | "closeness", _) => vec![given.clone(), Parameters { sources: Some(3), ..given }],
            _ => vec![given],
        };
        for parameters in parameters {
            let job = Job::new(kernel.name, parameters).unwrap();
            let [a, b] = [found, expected].map(|view| view.run(&job).unwrap());
            a.check(found).unwrap();
            for ((name, a), (_, b)) in a.summary.iter().zip(&b.summary) {
                assert!(*name == "delta" || is_same(a, b), "{place}, {}: {name}: {a:?}, not {b:?}", kernel.name);
            }
            let (a, b) = (a.values_by_key(found).unwrap().unwrap(), b.values_by_key(expected).unwrap().unwrap());
            let ((a, a_reals), (b, b_reals)) = (by_key(found, &a), by_key(expected, &b));
            assert_eq!(a, b, "{place}, {}", kernel.name);
            assert!(a_reals.iter().zip(&b_reals).all(|(a, b)| is_near(*a, *b)), "{place}, {}", kernel.name);
        }
    }
}

fn compare_queries(place: &str, found: &View, expected: &View, key: &Key) {
    for direction in [Neighbors::Out, Neighbors::In, Neighbors::Both] {
        let [a, b] = [found, expected].map(|view| view.neighbors(key.clone(), direction).unwrap());
        assert!(a == b && a.is_sorted(), "{place}: {a:?}, not {b:?}");
    }
    for direction in [Neighbors::Out, Neighbors::In, Neighbors::Both] {
        let ranked = |view: &View| {
            let other = view.neighbors(key.clone(), Neighbors::Both).unwrap().pop().unwrap_or(key.clone());
            (
                view.khop_depths(key.clone(), 3, direction).unwrap(),
                view.fof_counts(key.clone(), direction).unwrap(),
                view.top_degrees(7, direction).unwrap(),
                view.common_neighbors(key.clone(), other, direction).unwrap(),
                edges(&view.ego(key.clone(), 1, direction).unwrap()),
            )
        };
        assert_eq!(ranked(found), ranked(expected), "{place}, {direction:?}");
    }
    let [a, b] = [found, expected].map(|view| (view.khop(key.clone(), 2).unwrap(), view.fof(key.clone()).unwrap()));
    assert!(a == b && a.0.is_sorted() && a.1.is_sorted(), "{place}: {a:?}, not {b:?}");
}

/// The keys by id.
fn ids(view: &View) -> Vec<Key> {
    (0..view.vertex_bound() as u32).map(|vertex| view.key(vertex).unwrap()).collect()
}

fn compare(graph: &TestGraph, keys: KeyScheme) {
    let folder = tempfile::tempdir().unwrap();
    let expected = load(folder.path(), graph, keys, IdOrder::Auto, 2);
    let source = graph.edges.first().map_or(0, |edge| edge.0);
    let source = key(graph, keys, source);
    for (order, name) in IdOrder::ALL {
        let place = format!("{}, {keys:?}, {name}", graph.name);
        let db = load(folder.path(), graph, keys, order, 3);
        db.verify().unwrap();
        let [a, b] = [&db, &expected].map(|db| db.view().unwrap());
        assert_eq!(ids(&a), ids(&load(folder.path(), graph, keys, order, 1).view().unwrap()), "{place}");
        assert_eq!(edges(&a), edges(&b), "{place}");
        // A kernel may refuse a graph without vertices.
        if graph.num_vertices > 0 {
            compare_kernels(&place, &a, &b, &source);
            compare_queries(&place, &a, &b, &source);
        }
    }
}

#[test]
fn every_order_gives_equal_results() {
    for graph in graphs() {
        compare(&graph, KeyScheme::Integer);
    }
    for graph in graphs().iter().filter(|graph| graph.num_vertices < 100) {
        compare(graph, KeyScheme::String);
    }
}

#[test]
fn equal_scores_rank_by_key() {
    let folder = tempfile::tempdir().unwrap();
    // Every vertex of a ring has the same closeness, which is a quotient of whole numbers.
    let ring: Vec<_> = (0..64).map(|v| (v, (v + 1) % 64, 1)).collect();
    let graph =
        TestGraph { name: "ring", graph_kind: GraphKind::Undirected, num_vertices: 64, multigraph: false, edges: ring };
    let top = |order| {
        let view = load(folder.path(), &graph, KeyScheme::Integer, order, 2).view().unwrap();
        view.run(&Job::new("closeness", Parameters::default()).unwrap()).unwrap().summary
    };
    let expected = top(IdOrder::Auto);
    let (_, Value::Ranking(ranking)) = &expected[1] else { panic!("a ranking expected") };
    assert_eq!(
        ranking.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|n: u64| Key::from(3 * n + 1))
    );
    for (order, name) in IdOrder::ALL {
        assert_eq!(top(order), expected, "{name}");
    }
}

#[test]
fn changes_after_an_ordered_load_keep_results_equal() {
    let folder = tempfile::tempdir().unwrap();
    let graph = graphs().into_iter().find(|graph| graph.name == "few edges").unwrap();
    let change = |db: &Database| {
        let changes = (0..40_u64)
            .fold(Changes::default(), |changes, i| changes.add_weighted_edge(i * i % 50, 9000 + 7 * i % 41, i as u32));
        db.append_with(&changes, &AppendOptions { order: IdOrder::Input, ..AppendOptions::default() }).unwrap();
        let updates: Vec<_> = (0..30_u64).map(|i| Update::add_weighted_edge(10_000 - 3 * i, 7 * i, 2)).collect();
        db.apply(&updates).unwrap();
        db.apply(&[Update::RemoveVertex(9001.into())]).unwrap();
    };
    let expected = load(folder.path(), &graph, KeyScheme::Integer, IdOrder::Auto, 2);
    change(&expected);
    for (order, name) in IdOrder::ALL {
        let db = load(folder.path(), &graph, KeyScheme::Integer, order, 2);
        change(&db);
        for is_merged in [false, true] {
            if is_merged {
                db.checkpoint(None).unwrap();
                db.merge().unwrap();
            }
            db.verify().unwrap();
            let [a, b] = [&db, &expected].map(|db| db.view().unwrap());
            assert_eq!(edges(&a), edges(&b), "{name}");
            compare_kernels(name, &a, &b, &0.into());
            compare_queries(name, &a, &b, &0.into());
        }
    }
}

#[test]
fn spread_over_snapshots_follows_keys() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("edges.txt");
    std::fs::write(&input, (0..900_u32).map(|i| format!("{} {}\n", i * 7919 % 97, i * i % 89)).collect::<String>())
        .unwrap();
    let load = |order| {
        let spread = Spread { num_snapshots: 4, first_share: Some(0.4), seed: 5 };
        let options = LoadOptions { order, spread, ..LoadOptions::default() };
        Database::load_in_memory(&[InputPath::File(input.clone())], &options, &Session::new(2).unwrap()).unwrap().0
    };
    let expected = load(IdOrder::Auto);
    for (order, name) in IdOrder::ALL {
        let db = load(order);
        for snapshot in 1..=4 {
            let [a, b] = [&db, &expected].map(|db| edges(&db.snapshot(snapshot).unwrap()));
            assert_eq!(a, b, "{name}, snapshot {snapshot}");
        }
    }
}
