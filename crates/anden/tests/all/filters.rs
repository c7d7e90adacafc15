//! Views of a part of the graph: each predicate against a filter of the model, edge by edge.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use anden::{Database, Direction, Error, Graph, InEdges, Job, Key, Parameters, Session, Side, Update, View};

use crate::edge_model::{BOUND, Edge, History, KINDS, Kind, Model, commit, histories, options};

type EdgeTest = fn(&Edge) -> bool;

/// Predicates over edges, with what they mean, for graphs with properties, with weights, and with neither.
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
        let _ = anden::WeightedEdges::for_each_weighted_out_fragment(view.graph(), source, |_, found: &[u32]| {
            weights.extend_from_slice(found);
            ControlFlow::Continue(())
        });
        let mut place = 0;
        let _ = view.graph().for_each_out_fragment(source, |targets| {
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

/// The same of a model, without the edges that a test refuses, in a view with these names of properties.
fn expected(model: &Model, is_undirected: bool, view: &View, edge: EdgeTest, vertex: VertexTest) -> Vec<String> {
    let is_kept = |vertex_id: &u32| vertex(model.groups.get(vertex_id).copied());
    let mut all = Vec::new();
    for e in model.edges.values().flatten().filter(|e| edge(e) && is_kept(&e.source) && is_kept(&e.target)) {
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
        // First edge by edge, then of the lists that are laid out.
        check_single_questions(&part, &wanted, &is_kept, &place);
        assert_eq!(entries(&part), wanted, "{place}");
        check_single_questions(&part, &wanted, &is_kept, &place);
        let kept = (0..BOUND).filter(|&vertex| is_kept(vertex)).count();
        assert_eq!((part.vertex_bound(), part.num_vertices()), (view.vertex_bound(), kept), "{place}");
        assert_eq!(part.num_arcs() as usize, wanted.len(), "{place}");
        let is_edge = |e: &&Edge| edge_test(e) && is_kept(e.source) && is_kept(e.target);
        assert_eq!(part.num_edges() as usize, model.edges.values().flatten().filter(is_edge).count(), "{place}");
        check_in_lists(&part, &place);
        check_kernels(&part, &place);
    }
}

/// Questions about single vertices, against the entries of the out-lists.
fn check_single_questions(part: &View, wanted: &[String], is_kept: &dyn Fn(u32) -> bool, place: &str) {
    let ends = |entry: &String| {
        let mut ends = entry.split(' ').take(2).map(|end| end.parse::<u64>().unwrap());
        (ends.next().unwrap(), ends.next().unwrap())
    };
    let ends: Vec<(u64, u64)> = wanted.iter().map(ends).collect();
    let keys = |found: BTreeSet<u64>| found.into_iter().map(Key::from).collect::<Vec<_>>();
    let out = |vertex: u64| ends.iter().filter(move |ends| ends.0 == vertex).map(|ends| ends.1);
    let into = |vertex: u64| ends.iter().filter(move |ends| ends.1 == vertex).map(|ends| ends.0);
    for vertex in 0..u64::from(BOUND) {
        let place = format!("{place}: vertex {vertex}");
        let is_there = is_kept(vertex as u32);
        assert_eq!((part.vertex(vertex).is_ok(), part.is_live(vertex as u32)), (is_there, is_there), "{place}");
        if !is_there {
            assert!(
                part.neighbors(vertex, Side::Out).is_err() && part.out_degree(vertex as u32).unwrap() == 0,
                "{place}"
            );
            continue;
        }
        let (firsts, sources) = (out(vertex).collect::<BTreeSet<_>>(), into(vertex).collect::<BTreeSet<_>>());
        let degrees = (part.out_degree(vertex as u32).unwrap(), part.in_degree(vertex as u32).unwrap());
        assert_eq!(degrees, (out(vertex).count() as u64, Some(into(vertex).count() as u64)), "{place}");
        assert_eq!(part.neighbors(vertex, Side::Out).unwrap(), keys(firsts.clone()), "{place}");
        assert_eq!(part.neighbors(vertex, Side::In).unwrap(), keys(sources), "{place}");
        let rows = part.neighbor_rows(vertex, Side::Out, &["key", "source", "target"]).unwrap();
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
        let _ = view.graph().for_each_out_fragment(vertex, |targets| {
            forward.extend(targets.iter().map(|&target| (vertex, target)));
            ControlFlow::Continue(())
        });
        let _ = view.graph().for_each_in_fragment(vertex, |sources| {
            backward.extend(sources.iter().map(|&source| (source, vertex)));
            ControlFlow::Continue(())
        });
    }
    backward.sort_unstable();
    assert_eq!(forward, backward, "{place}: in-lists");
}

/// Kernels agree with their verifiers, and with the number of vertices.
fn check_kernels(view: &View, place: &str) {
    for kernel in ["wcc", "pagerank", "triangles"] {
        let job = Job::new(kernel, Parameters::default()).unwrap();
        let output = view.run(&job).unwrap_or_else(|error| panic!("{place}: {kernel}: {error}"));
        output.check(view).unwrap_or_else(|error| panic!("{place}: {kernel}: {error}"));
    }
}

#[test]
fn a_part_is_what_a_filter_of_the_model_leaves() {
    for mut history in histories(70) {
        let History { db, kind, older, newest, live: model, random } = &mut history;
        check(&db.snapshot(newest.0).unwrap(), &newest.1, *kind, "the newest snapshot");
        check(&db.snapshot(older.0).unwrap(), &older.1, *kind, "an older snapshot");
        let window = db.window(newest.0..=newest.0).unwrap();
        assert_eq!(entries(&window.filter(Some("TRUE"), None).unwrap()), entries(&window));
        let live = db.view().unwrap();
        let part = live.filter(Some("TRUE"), None).unwrap();
        check(&live, model, *kind, "live");
        // A part stays as it is, and is filtered again as any view.
        commit(db, &mut model.clone(), *kind, random);
        assert_eq!(entries(&part), entries(&live));
        check(&part, model, *kind, "a part");
    }
}

fn refusal(view: &View, edges: &str) -> String {
    match view.filter(Some(edges), None) {
        Err(Error::InvalidInput(what)) => what,
        other => panic!("{edges}: {other:?}"),
    }
}

#[test]
fn a_wrong_predicate_is_refused_with_its_character() {
    let kind = Kind { weights: false, properties: true, multigraph: false };
    let db = Database::in_memory(options(kind, Direction::Directed)).unwrap();
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

#[test]
fn a_part_that_is_too_large_for_the_budget_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let db = Database::create(&path, options(KINDS[0], Direction::Directed)).unwrap();
    db.add_edges(&(0..500).map(|vertex| (vertex, vertex + 1)).collect::<Vec<_>>()).unwrap();
    db.close().unwrap();
    let filter = |memory: u64| {
        let session = Session::new(1).unwrap().with_memory(Some(memory));
        let db = Database::open_snapshots_in(&path, &session).unwrap();
        let part = db.view().unwrap().filter(Some("TRUE"), None).unwrap();
        // What takes no lists is answered.
        assert_eq!(part.neighbors(3, Side::Out).unwrap(), [4.into()]);
        assert_eq!((part.num_vertices(), part.num_edges()), (501, 500));
        let checked = part.graph().check();
        (part.wcc().map(|labels| labels[500]), checked)
    };
    assert_eq!(filter(64 << 20).0.unwrap(), 0);
    let (Err(Error::Memory { needed, budget, .. }), checked) = filter(8 << 20) else { panic!("it fits") };
    assert!(checked.unwrap_err().to_string().contains("memory"), "a caller that reads lists learns of it");
    assert!(budget == 8 << 20 && needed > budget && filter(needed + (1 << 20)).0.is_ok(), "{needed}");
}

#[test]
fn a_chosen_weight_stays_chosen() {
    let db = Database::in_memory(options(KINDS[2], Direction::Directed)).unwrap();
    for (source, target, amount, kind) in [(1_u64, 2_u64, 5_i64, "a"), (1, 3, 1, "b"), (3, 2, 1, "b")] {
        let properties = [("amount", anden::NewValue::from(amount)), ("kind", kind.into())];
        db.apply(&[Update::add_edge_with(source, target, properties)]).unwrap();
    }
    let view = db.view().unwrap().with_weight("amount").unwrap();
    let distance = |view: &View| match view.sssp(1_u64).unwrap() {
        anden::Distances::Integer(distances) => distances[2],
        other => panic!("{other:?}"),
    };
    assert_eq!(distance(&view), 2);
    assert_eq!(distance(&view.filter(Some("kind = 'a'"), None).unwrap()), 5);
}
