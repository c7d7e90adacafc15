//! Filtered views: each predicate against a filter of the model, edge by edge.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anden::graph::Graph;
use anden::{Database, Error, GraphKind, Job, Key, Neighbors, OpenOptions, Parameters, Session, Update, View};
use anden_graph::Direction;

use anden_testkit::Random;

use crate::edge_model::{BOUND, Edge, History, KINDS, Kind, Model, commit, histories, options};

type EdgeTest = fn(&Edge) -> bool;

/// Edge predicates and their tests, for graphs with properties, with weights, or with neither.
fn edge_predicates(kind: Kind) -> Vec<(&'static str, EdgeTest)> {
    let mut all: Vec<(&str, EdgeTest)> = vec![("TRUE", |_| true), ("1 = 2", |_| false), ("NULL", |_| false)];
    if kind.properties {
        all.extend::<[(&str, EdgeTest); 14]>([
            ("amount > 50", |e| e.amount > Some(50)),
            ("NOT amount > 50", |e| e.amount.is_some_and(|amount| amount <= 50)),
            ("amount > 50.5 AND kind = 'wire'", |e| e.amount > Some(50) && e.kind == Some("wire")),
            ("amount < 10 OR kind = 'cash'", |e| e.amount.is_some_and(|a| a < 10) || e.kind == Some("cash")),
            ("amount IS NULL", |e| e.amount.is_none()),
            ("kind IS NOT NULL AND amount IS NULL", |e| e.kind.is_some() && e.amount.is_none()),
            ("kind IN ('wire', 'cash')", |e| matches!(e.kind, Some("wire" | "cash"))),
            ("kind NOT IN ('wire', 'x')", |e| e.kind.is_some_and(|kind| kind != "wire")),
            ("kind IN ('wire', NULL)", |e| e.kind == Some("wire")),
            ("kind LIKE '_a%'", |e| e.kind == Some("cash")),
            ("kind ILIKE 'WIR%' OR kind LIKE '50\\%'", |e| matches!(e.kind, Some("wire" | "50%"))),
            ("amount BETWEEN 20 AND 3 * 10", |e| e.amount.is_some_and(|a| (20..=30).contains(&a))),
            ("amount & 6 = 2 AND -amount % 5 = 0", |e| e.amount.is_some_and(|a| a & 6 == 2 && a % 5 == 0)),
            ("(amount + 1) / 2 >= 25.0 AND 'wire' < kind", |e| e.amount >= Some(49) && e.kind > Some("wire")),
        ]);
    }
    if kind.weights {
        all.push(("weight >= 3 AND weight <> 5", |e| e.weight >= Some(3) && e.weight != Some(5)));
    }
    if kind.weights && kind.properties {
        all.push(("weight * 10 < amount", |e| e.amount.is_some_and(|a| i64::from(e.weight.unwrap()) * 10 < a)));
    }
    all
}

type VertexTest = fn(Option<i64>) -> bool;

const VERTEX_PREDICATES: [(&str, VertexTest); 3] = [
    ("\"group\" <> 2", |group| group.is_some_and(|group| group != 2)),
    ("\"group\" IS NULL", |group| group.is_none()),
    ("TRUE", |_| true),
];

/// Source, target, weight, and the values of properties, of every entry of an out-list.
fn entries(view: &View) -> Vec<String> {
    let columns: Vec<_> = view.edge_schema().iter().map(|(name, _)| view.edge_property(name).unwrap()).collect();
    let (mut all, mut row) = (Vec::new(), 0);
    for source in 0..view.vertex_bound() as u32 {
        let mut weights = Vec::new();
        let _ = anden::graph::WeightedEdges::for_each_weighted_fragment(
            view.graph(),
            Direction::Out,
            source,
            |_, found: &[u32]| {
                weights.extend_from_slice(found);
                ControlFlow::Continue(())
            },
        );
        let mut place = 0;
        let _ = view.graph().for_each_fragment(Direction::Out, source, |targets| {
            for target in targets {
                let values: Vec<_> = columns.iter().map(|column| column.get(row).to_string()).collect();
                all.push(format!("{source} {target} {:?} {}", weights.get(place), values.join(" ")));
                (row, place) = (row + 1, place + 1);
            }
            ControlFlow::Continue(())
        });
    }
    all.sort();
    all
}

/// The entries of a model without the edges that a test refuses, with the property names of a view.
fn expected(model: &Model, is_undirected: bool, view: &View, edge: EdgeTest, vertex: VertexTest) -> Vec<String> {
    let is_kept = |vertex_id: &u32| vertex(model.groups.get(vertex_id).copied());
    let mut all = Vec::new();
    for (.., e) in model.graph.edges().filter(|(u, v, e)| edge(e) && is_kept(u) && is_kept(v)) {
        let values = view.edge_schema().iter().map(|(name, _)| match name {
            "amount" => e.amount.map_or(String::new(), |amount| amount.to_string()),
            _ => e.kind.unwrap_or_default().to_owned(),
        });
        let values = values.collect::<Vec<_>>().join(" ");
        let mut push = |a: u32, b: u32| all.push(format!("{a} {b} {:?} {values}", e.weight.as_ref()));
        push(e.source, e.target);
        if is_undirected && e.source != e.target {
            push(e.target, e.source);
        }
    }
    all.sort();
    all
}

fn check(view: &View, model: &Model, kind: Kind, place: &str) {
    let is_undirected = !view.is_directed();
    assert_eq!(entries(view), expected(model, is_undirected, view, |_| true, |_| true), "{place}: the whole");
    for (i, (edges, edge_test)) in edge_predicates(kind).into_iter().enumerate() {
        let (vertices, vertex_test) = VERTEX_PREDICATES[i % 3];
        let place = format!("{place}: {edges}; {vertices}");
        let part = view.filter(Some(edges), Some(vertices)).unwrap_or_else(|error| panic!("{place}: {error}"));
        let wanted = expected(model, is_undirected, view, edge_test, vertex_test);
        let is_kept = |vertex: u32| vertex_test(model.groups.get(&vertex).copied());
        // First edge by edge, then from the lists that are laid out.
        check_single_questions(&part, &wanted, &is_kept, &place);
        assert_eq!(entries(&part), wanted, "{place}");
        check_single_questions(&part, &wanted, &is_kept, &place);
        let kept = (0..BOUND).filter(|&vertex| is_kept(vertex)).count();
        assert_eq!((part.vertex_bound(), part.num_vertices()), (view.vertex_bound(), kept), "{place}");
        assert_eq!(part.num_arcs() as usize, wanted.len(), "{place}");
        let is_edge = |(u, v, e): &(u32, u32, &Edge)| edge_test(e) && is_kept(*u) && is_kept(*v);
        assert_eq!(part.num_edges() as usize, model.graph.edges().filter(is_edge).count(), "{place}");
        check_in_lists(&part, &place);
        check_kernels(&part, &place);
        check_connected(&part, &wanted, &place);
    }
}

/// The two ends of an entry.
fn ends_of(entry: &str) -> (u64, u64) {
    let mut ends = entry.split(' ').take(2).map(|end| end.parse::<u64>().unwrap());
    (ends.next().unwrap(), ends.next().unwrap())
}

/// Without isolated vertices, the entries of a view stay, and its vertices are their ends.
fn check_connected(view: &View, wanted: &[String], place: &str) -> View {
    let ends: BTreeSet<u64> =
        wanted.iter().map(|entry| ends_of(entry)).flat_map(|(source, target)| [source, target]).collect();
    let connected = view.without_isolated().unwrap();
    for view in [connected.clone(), connected.filter(Some("TRUE"), None).unwrap()] {
        assert_eq!(entries(&view), wanted, "{place}: connected");
        let vertices: BTreeSet<u64> = (0..u64::from(BOUND)).filter(|&vertex| view.vertex(vertex).is_ok()).collect();
        assert_eq!((view.num_vertices(), &vertices), (ends.len(), &ends), "{place}: connected");
        let values = view.vertex_property("group").unwrap();
        assert!((0..BOUND).all(|vertex| view.is_live(vertex) || values.get(vertex as usize).is_null()), "{place}");
    }
    connected
}

/// Compares queries about single vertices with the entries of the out-lists.
fn check_single_questions(part: &View, wanted: &[String], is_kept: &dyn Fn(u32) -> bool, place: &str) {
    let ends: Vec<(u64, u64)> = wanted.iter().map(|entry| ends_of(entry)).collect();
    let keys = |found: BTreeSet<u64>| found.into_iter().map(Key::from).collect::<Vec<_>>();
    let out = |vertex: u64| ends.iter().filter(move |ends| ends.0 == vertex).map(|ends| ends.1);
    let into = |vertex: u64| ends.iter().filter(move |ends| ends.1 == vertex).map(|ends| ends.0);
    for vertex in 0..u64::from(BOUND) {
        let place = format!("{place}: vertex {vertex}");
        let is_there = is_kept(vertex as u32);
        assert_eq!((part.vertex(vertex).is_ok(), part.is_live(vertex as u32)), (is_there, is_there), "{place}");
        if !is_there {
            let error = part.vertex(vertex).unwrap_err().to_string();
            assert!(error.contains("a filter leaves it out"), "{place}: {error}");
            assert!(
                part.neighbors(vertex, Neighbors::Out).is_err() && part.out_degree(vertex as u32).unwrap() == 0,
                "{place}"
            );
            continue;
        }
        let (firsts, sources) = (out(vertex).collect::<BTreeSet<_>>(), into(vertex).collect::<BTreeSet<_>>());
        let degrees = (part.out_degree(vertex as u32).unwrap(), part.in_degree(vertex as u32).unwrap());
        assert_eq!(degrees, (out(vertex).count() as u64, Some(into(vertex).count() as u64)), "{place}");
        assert_eq!(part.neighbors(vertex, Neighbors::Out).unwrap(), keys(firsts.clone()), "{place}");
        assert_eq!(part.neighbors(vertex, Neighbors::In).unwrap(), keys(sources), "{place}");
        let rows = part.neighbor_rows(vertex, Neighbors::Out, &["key", "source", "target"]).unwrap();
        assert_eq!(rows.num_rows(), out(vertex).count(), "{place}");
        let mut seconds: BTreeSet<u64> = firsts.iter().flat_map(|&first| out(first)).chain(firsts.clone()).collect();
        seconds.remove(&vertex);
        assert_eq!(part.khop(vertex, 2).unwrap(), keys(seconds.clone()), "{place}");
        for &second in &seconds {
            let path = part.path(vertex, second).unwrap().unwrap();
            assert_eq!(path.vertices.len(), if firsts.contains(&second) { 2 } else { 3 }, "{place} to {second}");
        }
        for target in (0..u64::from(BOUND)).filter(|&target| is_kept(target as u32)) {
            let between = part.edges_between(vertex, target).unwrap();
            assert_eq!(between.len(), out(vertex).filter(|&other| other == target).count(), "{place} to {target}");
            assert_eq!(part.has_edge(vertex, target).unwrap(), firsts.contains(&target), "{place} to {target}");
        }
    }
}

fn check_in_lists(view: &View, place: &str) {
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    for vertex in 0..view.vertex_bound() as u32 {
        let _ = view.graph().for_each_fragment(Direction::Out, vertex, |targets| {
            forward.extend(targets.iter().map(|&target| (vertex, target)));
            ControlFlow::Continue(())
        });
        let _ = view.graph().for_each_fragment(Direction::In, vertex, |sources| {
            backward.extend(sources.iter().map(|&source| (source, vertex)));
            ControlFlow::Continue(())
        });
    }
    // A list may come in several fragments, each ascending.
    forward.sort_unstable();
    backward.sort_unstable();
    assert_eq!(forward, backward, "{place}: in-lists");
}

/// Requires that kernels agree with their verifiers and with the number of vertices.
fn check_kernels(view: &View, place: &str) {
    for kernel in ["wcc", "pagerank", "triangles"] {
        let job = Job::new(kernel, Parameters::default()).unwrap();
        let output = view.run(&job).unwrap_or_else(|error| panic!("{place}: {kernel}: {error}"));
        output.check(view).unwrap_or_else(|error| panic!("{place}: {kernel}: {error}"));
    }
}

#[test]
fn filtered_view_matches_the_model() {
    for mut history in histories(70) {
        let History { db, kind, older, newest, live: model, random } = &mut history;
        check(&db.snapshot(newest.0).unwrap(), &newest.1, *kind, "the newest snapshot");
        check(&db.snapshot(older.0).unwrap(), &older.1, *kind, "an older snapshot");
        let window = db.window(newest.0..=newest.0).unwrap();
        assert_eq!(entries(&window.filter(Some("TRUE"), None).unwrap()), entries(&window));
        let all = db.window_with_isolated(newest.0..=newest.0).unwrap();
        let connected = check_connected(&all, &entries(&window), "a window");
        assert_eq!(connected.num_vertices(), window.num_vertices());
        let live = db.view().unwrap();
        check_kernels(&check_connected(&live, &entries(&live), "live"), "live, connected");
        let part = live.filter(Some("TRUE"), None).unwrap();
        check(&live, model, *kind, "live");
        // A filtered view does not change, and can be filtered again.
        commit(db, &mut model.clone(), *kind, random);
        assert_eq!(entries(&part), entries(&live));
        check(&part, model, *kind, "a part");
    }
}

fn refusal(view: &View, edges: &str) -> String {
    match view.filter(Some(edges), None) {
        Err(Error::InvalidInput(what)) => what.to_string(),
        other => panic!("{edges}: {other:?}"),
    }
}

#[test]
fn a_wrong_predicate_is_refused_with_its_character() {
    let kind = Kind { weights: false, properties: true, multigraph: false };
    let db = Database::in_memory(options(kind, GraphKind::Directed)).unwrap();
    let edge = Update::add_edge_with(1_u64, 2_u64, [("amount", 5_i64)]);
    db.apply(&[edge, Update::set_edge(1_u64, 2_u64, "kind", "wire"), Update::set_edge(1_u64, 2_u64, "day", "x")])
        .unwrap();
    let view = db.view().unwrap();
    for (text, what) in [
        ("amuont > 3", r#"character 1: there is no property "amuont" of edges; did you mean "amount"?"#),
        ("amount > 3 AND price < 2", r#"character 16: there is no property "price": edges have amount, kind, day"#),
        ("kind > 3", "character 1: kind of type string cannot be compared with 3 of type i64"),
        ("amount = 'x'", "character 1: amount of type i64 cannot be compared with 'x' of type string"),
        ("amount", "character 1: true or false expected, found amount of type i64"),
        ("amount >", "character 9: Expected: an expression, found: EOF"),
        ("amount > 3 kind", "character 12: Expected: the end, found: kind"),
        ("amount + kind > 3", "character 10: a number expected, found kind of type string"),
        ("amount LIKE 'x'", "character 1: text expected, found amount of type i64"),
        ("amount & 1.5 = 1", "character 1: bits are those of whole numbers, not of type f64"),
        ("amount IN (SELECT 1)", "character 1: amount IN (SELECT 1) is not possible here"),
        ("amount > 3\n  AND price < 2", r#"line 2, character 7: there is no property "price": edges"#),
        ("amount\n>", "line 2, character 2: Expected: an expression, found: EOF"),
        ("amount > 3\nAND 'x", "line 2, character 5: "),
        ("amount / 0 = 1", "a calculation fails: Divide by zero error"),
    ] {
        let found = refusal(&view, text);
        assert!(found.starts_with(&format!("the predicate over edges, {what}")), "{text}: {found}");
    }
    let deep = format!("{}amount{} > 3", "(".repeat(5_000), ")".repeat(5_000));
    assert!(refusal(&view, &deep).ends_with("the expression is nested too deep"));
    let chain = |part: &str, operator: &str, len: usize| vec![part; len].join(operator);
    let long = format!("{} AND amount IN ({})", chain("amount = 5", " OR ", 600), chain("5", ", ", 10_000));
    assert_eq!(view.filter(Some(&long), None).unwrap().num_edges(), 1);
    assert!(refusal(&view, &chain("amount = 5", " OR ", 4_000)).ends_with("at most 2000 are possible"));
    assert!(refusal(&view, &format!("{} > 3", chain("amount", "+", 900))).ends_with("nested too deep"));
    assert!(refusal(&view, &format!("{} > 3", chain("amount", "+", 9_000))).ends_with("at most 2000 are possible"));
    assert!(refusal(&view, &"x".repeat(70_000)).ends_with("at most 65536 are possible"));
    let vertices = view.filter(None, Some("x = 1")).unwrap_err().to_string();
    assert_eq!(vertices, r#"the predicate over vertices, character 1: there is no property "x": vertices have none"#);
}

/// With this budget a session has no memory for the lists of a part.
const LEAST_BUDGET: u64 = 8 << 20;

#[test]
fn part_beyond_the_budget_is_laid_out_in_files() {
    let session = Session::new(2).unwrap().with_memory(Some(LEAST_BUDGET));
    for (seed, kind) in (90..).zip(KINDS) {
        for graph_kind in [GraphKind::Directed, GraphKind::Undirected] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("db");
            let (mut random, mut model) = (Random::new(seed), Model::new(kind, graph_kind));
            let db = Database::create(&path, options(kind, graph_kind)).unwrap();
            commit(&db, &mut model, kind, &mut random);
            db.checkpoint(None).unwrap();
            commit(&db, &mut model, kind, &mut random);
            db.close().unwrap();
            let db =
                Database::open_with(&path, &OpenOptions { read_only: true, ..OpenOptions::from(&session) }).unwrap();
            // The changes of the second commit are in the WAL.
            let view = db.view().unwrap();
            for (i, (edges, edge_test)) in edge_predicates(kind).into_iter().enumerate() {
                let (vertices, vertex_test) = VERTEX_PREDICATES[i % 3];
                let place = format!("{kind:?} {graph_kind:?}: {edges}; {vertices}");
                let part = view.filter(Some(edges), Some(vertices)).unwrap();
                let wanted = expected(&model, !view.is_directed(), &view, edge_test, vertex_test);
                assert_eq!(part.num_arcs() as usize, wanted.len(), "{place}");
                assert_eq!(entries(&part), wanted, "{place}");
                check_in_lists(&part, &place);
            }
        }
    }
}

#[test]
fn kernel_runs_on_a_part_beyond_the_budget() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let db = Database::create(&path, options(KINDS[0], GraphKind::Directed)).unwrap();
    let edges: Vec<_> = (0..500_000).map(|number| (number % 2_000, (number * 7 + number / 2_000) % 2_000)).collect();
    db.add_edges(&edges).unwrap();
    db.close().unwrap();
    let whole = Database::open_with(&path, &OpenOptions { snapshots_only: true, ..OpenOptions::default() })
        .unwrap()
        .view()
        .unwrap();
    // Memory for the arrays of the kernel and for file pages, but not for a layout, which takes 24 bytes an arc.
    let session = Session::new(1).unwrap().with_memory(Some(LEAST_BUDGET + 10 * whole.num_arcs()));
    let view = Database::open_with(&path, &OpenOptions { snapshots_only: true, ..OpenOptions::from(&session) })
        .unwrap()
        .view()
        .unwrap();
    let part = view.filter(Some("TRUE"), None).unwrap();
    assert_eq!((part.num_vertices(), part.num_edges()), (whole.num_vertices(), whole.num_edges()));
    assert_eq!(part.wcc().unwrap(), whole.wcc().unwrap());
}

#[test]
fn a_chosen_weight_stays_chosen() {
    let db = Database::in_memory(options(KINDS[2], GraphKind::Directed)).unwrap();
    for (source, target, amount, kind) in [(1_u64, 2_u64, 5_i64, "a"), (1, 3, 1, "b"), (3, 2, 1, "b")] {
        let properties = [("amount", anden::property::NewValue::from(amount)), ("kind", kind.into())];
        db.apply(&[Update::add_edge_with(source, target, properties)]).unwrap();
    }
    let view = db.view().unwrap().with_weight("amount").unwrap();
    let distance = |view: &View| match view.sssp(1_u64).unwrap() {
        anden::kernel::Distances::Integer(distances) => distances[2],
        other => panic!("{other:?}"),
    };
    assert_eq!(distance(&view), 2);
    assert_eq!(distance(&view.filter(Some("kind = 'a'"), None).unwrap()), 5);
}

/// The vertices of a part with keys below 6, tested one by one before a layout and read from the lists after it.
fn shown(part: &View) -> [Vec<u64>; 2] {
    let keys = || (0..6).filter(|&key| part.vertex(key).is_ok()).collect();
    let before = keys();
    part.vertices_by_key().unwrap();
    [before, keys()]
}

#[test]
fn negative_zero_and_nan_compare_as_in_sql() {
    let db = Database::in_memory(anden::Options::default()).unwrap();
    let values = [0.0, -0.0, f64::NAN, -f64::NAN, 7.0, f64::NEG_INFINITY];
    let updates: Vec<_> = (0_u64..).zip(values).map(|(key, value)| Update::set_vertex(key, "x", value)).collect();
    db.apply(&updates).unwrap();
    let view = db.view().unwrap();
    let cases: [(&str, &[u64]); 9] = [
        ("x = 0", &[0, 1]),
        ("x = -0.0", &[0, 1]),
        ("x >= 0", &[0, 1, 2, 3, 4]),
        ("x < 0", &[5]),
        ("x > 5", &[2, 3, 4]),
        ("x <> x", &[]),
        ("x BETWEEN 0 AND 7", &[0, 1, 4]),
        ("x IN (0, 7)", &[0, 1, 4]),
        ("-x = 0", &[0, 1]),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(&view.filter(None, Some(text)).unwrap()), [expected, expected], "{text}");
    }
}

#[test]
fn properties_of_excluded_vertices_are_null() {
    let db = Database::in_memory(anden::Options::default()).unwrap();
    db.apply(&(0..6_u64).map(|key| Update::set_vertex(key, "x", key as i64)).collect::<Vec<_>>()).unwrap();
    let view = db.view().unwrap();
    let values = |part: &View| {
        let column = part.vertex_property("x").unwrap();
        assert_eq!(column.len(), view.vertex_bound());
        for key in 0..6_u64 {
            let vertex = view.vertex(key).unwrap();
            let is_there = !part.vertex_properties(vertex).unwrap().is_empty();
            assert_eq!(is_there, !column.is_null(vertex as usize), "{key}");
        }
        column.iter().filter(|value| !value.is_null()).map(|value| value.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(values(&view), ["0", "1", "2", "3", "4", "5"]);
    let part = view.filter(None, Some("x > 1")).unwrap();
    let both = part.filter(None, Some("x < 4")).unwrap();
    assert_eq!(
        (values(&part), values(&both)),
        (vec!["2".into(), "3".into(), "4".into(), "5".into()], vec!["2".into(), "3".into()])
    );
    part.vertices_by_key().unwrap();
    let after = part.filter(Some("TRUE"), None).unwrap();
    assert_eq!((values(&part), values(&after)), (values(&after), vec!["2".into(), "3".into(), "4".into(), "5".into()]));
}

/// Cancels work on request, and counts the layouts that begin.
#[derive(Default)]
struct Layouts {
    num_begun: AtomicU64,
    is_cancelled: AtomicBool,
}

impl anden::Progress for Layouts {
    fn stage(&self, name: &str, _: Option<u64>) {
        self.num_begun.fetch_add(u64::from(name == "filter"), Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }
}

#[test]
fn a_failed_layout_is_tried_again_by_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let db = Database::create(&path, anden::Options { edge_properties: true, ..anden::Options::default() }).unwrap();
    db.apply(&[Update::add_edge_with(1, 2, [("amount", 3_i64)]), Update::add_edge(1, 3)]).unwrap();
    db.close().unwrap();
    let progress = Arc::new(Layouts::default());
    let session = Session::new(1).unwrap().with_progress(progress.clone());
    let db = Database::open_with(&path, &OpenOptions::from(&session)).unwrap();
    let part = db.view().unwrap().filter(Some("amount > 2"), None).unwrap();
    progress.is_cancelled.store(true, Ordering::Relaxed);
    for _ in 0..3 {
        assert_eq!(part.num_edges(), 2, "the whole graph");
        assert!(part.graph().check().is_err());
    }
    assert_eq!(progress.num_begun.load(Ordering::Relaxed), 1);
    assert!(matches!(part.wcc(), Err(Error::Cancelled)));
    progress.is_cancelled.store(false, Ordering::Relaxed);
    assert_eq!((part.wcc().unwrap(), part.num_edges()), (vec![0, 0, 2], 1));
    part.graph().check().unwrap();
}
