//! Edges and vertices as rows of chosen columns, against the model.

use anden::property::{PropertyColumn, PropertyType};
use anden::tables::{Batches, ParallelEdges, RecordBatch, RowFilter, StoredEdge};
use anden::{Database, Error, Key, KeyScheme, Neighbors, OpenOptions, Options, OwnedValue, Session, Update, View};

use crate::edge_model::{BOUND, Edge, History, Kind, Model, histories};

/// Each row of a batch as text; null is a dash.
fn texts(batch: &RecordBatch) -> Vec<String> {
    let columns: Vec<_> =
        batch.columns().iter().map(|array| PropertyColumn::from_array(array.clone()).unwrap()).collect();
    let value = |column: &PropertyColumn, row: usize| match column.is_null(row) {
        true => "-".to_owned(),
        false => column.get(row).to_string(),
    };
    let row = |row: usize| columns.iter().map(|column| value(column, row)).collect::<Vec<_>>().join(" ");
    (0..batch.num_rows()).map(row).collect()
}

/// The edge columns of a view, without the numbers of a multigraph's edges.
fn names(view: &View, kind: Kind) -> Vec<&str> {
    let weight = kind.weights.then_some("weight");
    ["source", "target"].into_iter().chain(weight).chain(view.edge_schema().iter().map(|(name, _)| name)).collect()
}

/// The row of an edge of the model, seen from one of its ends.
fn row(edge: &Edge, (source, target): (u32, u32), view: &View, kind: Kind) -> String {
    let dash = || "-".to_owned();
    let mut cells = vec![source.to_string(), target.to_string()];
    cells.extend(kind.weights.then(|| edge.weight.map_or_else(dash, |weight| weight.to_string())));
    cells.extend(view.edge_schema().iter().map(|(name, _)| match name {
        "amount" => edge.amount.map_or_else(dash, |amount| amount.to_string()),
        _ => edge.kind.map_or_else(dash, str::to_owned),
    }));
    cells.join(" ")
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

/// The edges of a view in order. Requires that batches and single rows agree.
fn edges(view: &View, columns: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    for batch in view.edges(columns).unwrap() {
        let batch = batch.unwrap();
        assert_eq!(batch.schema(), *view.edges(columns).unwrap().schema());
        all.extend(texts(&batch));
    }
    let text = |value: &OwnedValue| match value {
        OwnedValue::Null => "-".to_owned(),
        value => value.as_value().to_string(),
    };
    let rows = view.edges(columns).unwrap().rows();
    let rows: Vec<String> = rows.map(|row| row.unwrap().iter().map(text).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(rows, all);
    all
}

/// The edges of a view one after the other, as rows of all columns but the number.
fn iterated(view: &View, kind: Kind) -> Vec<String> {
    let text = |edge: StoredEdge| {
        assert_eq!((edge.weight.is_some(), edge.number.is_some()), (kind.weights, kind.multigraph));
        assert_eq!(edge.id().map(|id| (id.source, id.target)).is_some(), kind.multigraph);
        let value = |name: &str| edge.get(name).map_or_else(|| "-".to_owned(), |value| value.as_value().to_string());
        let mut cells = vec![edge.source.to_string(), edge.target.to_string()];
        cells.extend(edge.weight.map(|weight| weight.to_string()));
        cells.extend(view.edge_schema().iter().map(|(name, _)| value(name)));
        cells.join(" ")
    };
    view.iter_edges().unwrap().map(|edge| text(edge.unwrap())).collect()
}

fn check_edges(view: &View, model: &Model, kind: Kind, place: &str) {
    let columns = names(view, kind);
    let found = edges(view, &columns);
    assert_eq!(iterated(view, kind), found, "{place}");
    let ends: Vec<(u32, u32)> = found
        .iter()
        .map(|row| {
            let mut cells = row.split(' ').map(|cell| cell.parse().unwrap());
            (cells.next().unwrap(), cells.next().unwrap())
        })
        .collect();
    assert!(ends.is_sorted(), "{place}: {ends:?}");
    let all = model.graph.edges();
    let expected = all.map(|(.., edge)| row(edge, (edge.source, edge.target), view, kind)).collect();
    assert_eq!(sorted(found), sorted(expected), "{place}");
    if !kind.multigraph {
        assert_eq!(edges(view, &[]), edges(view, &columns), "{place}: all columns");
    }
}

fn check_pairs(view: &View, model: &Model, kind: Kind, place: &str) {
    let columns = names(view, kind);
    for &(source, target) in &model.pairs {
        let edges = model.graph.edges_between(source, target);
        let keys: [Key; 2] = [u64::from(source).into(), u64::from(target).into()];
        let found = view.edge_rows(&keys, ParallelEdges::All, &columns).unwrap();
        let expected = |edge: &Edge| row(edge, (source, target), view, kind);
        assert_eq!(texts(&found), edges.iter().map(expected).collect::<Vec<_>>(), "{place}: {source} {target}");
        let first = view.edge_rows(&keys, ParallelEdges::First, &columns).unwrap();
        assert_eq!(texts(&first), edges.iter().take(1).map(expected).collect::<Vec<_>>(), "{place}");
        if kind.weights {
            let lightest = edges.iter().min_by_key(|edge| edge.weight).map(expected);
            let found = view.edge_rows(&keys, ParallelEdges::Lightest, &columns).unwrap();
            assert_eq!(texts(&found), Vec::from_iter(lightest), "{place}");
        }
    }
}

fn check_neighbors(view: &View, model: &Model, kind: Kind, place: &str) {
    let mut columns = names(view, kind);
    columns.insert(0, "key");
    for vertex in (0..BOUND).step_by(7) {
        for direction in [Neighbors::Out, Neighbors::In, Neighbors::Both] {
            let mut expected = Vec::new();
            for (.., edge) in model.graph.edges() {
                let is_loop = edge.source == edge.target;
                let mut push =
                    |other: u32, ends: (u32, u32)| expected.push(format!("{other} {}", row(edge, ends, view, kind)));
                if !view.is_directed() {
                    match vertex {
                        _ if vertex == edge.source => push(edge.target, (vertex, edge.target)),
                        _ if vertex == edge.target => push(edge.source, (vertex, edge.source)),
                        _ => {}
                    }
                    continue;
                }
                if direction != Neighbors::In && edge.source == vertex {
                    push(edge.target, (edge.source, edge.target));
                }
                if direction != Neighbors::Out && edge.target == vertex && !(direction == Neighbors::Both && is_loop) {
                    push(edge.source, (edge.source, edge.target));
                }
            }
            let found = view.neighbor_rows(u64::from(vertex), direction, &columns).unwrap();
            assert_eq!(sorted(texts(&found)), sorted(expected), "{place}: {vertex} {direction:?}");
            let keys = texts(&view.neighbor_rows(u64::from(vertex), direction, &["key"]).unwrap());
            let neighbors = view.neighbors(u64::from(vertex), direction).unwrap();
            assert_eq!(
                keys,
                neighbors.iter().map(Key::to_string).collect::<Vec<_>>(),
                "{place}: {vertex} {direction:?}"
            );
        }
    }
}

fn check_vertices(view: &View, model: &Model, place: &str) {
    let columns = ["key", "out_degree", "in_degree", "group"];
    let mut found = Vec::new();
    for batch in view.vertices(&columns).unwrap() {
        found.extend(texts(&batch.unwrap()));
    }
    let vertices: Vec<u32> = (0..BOUND).filter(|&vertex| view.is_live(vertex)).collect();
    let expected = vertices.iter().map(|&vertex| {
        let (out, into) = (view.out_degree(vertex).unwrap(), view.in_degree(vertex).unwrap().unwrap());
        let group = model.groups.get(&vertex).map_or_else(|| "-".to_owned(), i64::to_string);
        format!("{vertex} {out} {into} {group}")
    });
    let expected: Vec<String> = expected.collect();
    assert_eq!(found, expected, "{place}");
    let keys: Vec<Key> = vertices.iter().map(|&vertex| u64::from(vertex).into()).collect();
    assert_eq!(texts(&view.vertex_rows(&keys, &columns).unwrap()), expected, "{place}");
}

fn check(view: &View, model: &Model, kind: Kind, place: &str) {
    check_edges(view, model, kind, place);
    check_pairs(view, model, kind, place);
    check_neighbors(view, model, kind, place);
    check_vertices(view, model, place);
}

/// The model with only the edges that pass a test.
fn part(model: &Model, test: impl Fn(&Edge) -> bool) -> Model {
    let mut part = model.clone();
    part.graph.retain(|_, _, edge| test(edge));
    part
}

#[test]
fn tables_are_those_of_the_model() {
    for History { db, kind, older, newest, live: model, .. } in histories(90) {
        let view = db.snapshot(newest.0).unwrap();
        check(&view, &newest.1, kind, "the newest snapshot");
        check(&db.snapshot(older.0).unwrap(), &older.1, kind, "an older snapshot");
        let window = db.window(newest.0..=newest.0).unwrap();
        let of_window = edges(&window, &names(&window, kind));
        let all = edges(&view, &names(&window, kind));
        assert!(!of_window.is_empty() && of_window.iter().all(|row| all.contains(row)));
        assert_eq!(of_window.len() as u64, window.num_edges());
        let live = db.view().unwrap();
        check(&live, &model, kind, "live");
        if kind.properties {
            let filtered = live.filter(Some("amount > 50"), None).unwrap();
            check(&filtered, &part(&model, |edge| edge.amount > Some(50)), kind, "a part");
        }
        if kind.weights {
            let filtered = live.filter(Some("weight < 5"), None).unwrap();
            check(&filtered, &part(&model, |edge| edge.weight < Some(5)), kind, "a part by weight");
        }
    }
}

#[test]
fn numbers_of_parallel_edges_are_a_column() {
    let db = Database::in_memory(Options { multigraph: true, ..Options::default() }).unwrap();
    let edge = || Update::add_edge(1, 2);
    db.apply(&[edge(), edge(), edge()]).unwrap();
    let view = db.view().unwrap();
    let numbers = view.edges_between(1, 2).unwrap();
    let expected: Vec<String> = numbers.iter().map(|edge| format!("1 2 {}", edge.number.unwrap())).collect();
    assert_eq!(edges(&view, &["source", "target", "number"]), expected);
    assert_eq!(edges(&view, &[]), expected);
}

#[test]
fn long_lists_are_cut_into_batches() {
    const NUM_EDGES: u64 = 150_000;
    let graph = Options { keys: KeyScheme::Integer, edge_properties: true, ..Options::default() };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let db = Database::create(&path, graph).unwrap();
    let hub = (0..NUM_EDGES).map(|target| Update::add_edge_with(7, target, [("amount", target as i64)]));
    let others = (0..1_000).map(|source| Update::add_edge_with(source, source + 1, [("amount", -1_i64)]));
    db.apply(&hub.chain(others).collect::<Vec<_>>()).unwrap();
    db.close().unwrap();
    for threads in [1, 3] {
        let db = Database::open_with(
            &path,
            &OpenOptions { read_only: true, ..OpenOptions::from(&Session::new(threads).unwrap()) },
        )
        .unwrap();
        let view = db.view().unwrap();
        let (mut sum, mut num_rows, mut num_batches) = (0, 0, 0);
        for batch in view.edges(&["target", "amount"]).unwrap() {
            let batch = batch.unwrap();
            assert!((1..=1 << 16).contains(&batch.num_rows()));
            let amounts = PropertyColumn::from_array(batch.column(1).clone()).unwrap();
            sum += amounts.iter().filter_map(|value| value.to_string().parse::<i64>().ok()).sum::<i64>();
            (num_rows, num_batches) = (num_rows + batch.num_rows() as u64, num_batches + 1);
        }
        assert_eq!(num_rows, view.num_edges());
        assert!(num_batches >= 3, "{num_batches}");
        // The edge from the hub to 8 existed already, and took the amount of the second one.
        let hub: i64 = (0..NUM_EDGES as i64).sum::<i64>() - 8;
        assert_eq!(sum, hub - 1_000);
    }
}

#[test]
fn wrong_columns_are_refused_with_the_nearest() {
    let db = Database::in_memory(Options { edge_properties: true, ..Options::default() }).unwrap();
    let edge = Update::add_edge_with(1, 2, [("amount", 5_i64)]);
    db.apply(&[edge, Update::set_vertex(1, "section", "games")]).unwrap();
    let view = db.view().unwrap();
    let refused = |result: Result<(), Error>| match result {
        Err(error @ Error::NotFound { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let edges = refused(view.edges(&["amuont"]).map(drop));
    assert_eq!(edges, r#"there is no column "amuont" of edges; did you mean "amount"?"#);
    let edges = refused(view.edges(&["weight"]).map(drop));
    assert_eq!(edges, r#"there is no column "weight": edges have source, target, amount"#);
    let vertices = refused(view.vertices(&["sektion"]).map(drop));
    assert_eq!(vertices, r#"there is no column "sektion" of vertices; did you mean "section"?"#);
    let both = refused(view.neighbor_rows(1, Neighbors::Out, &["amout"]).map(drop));
    assert_eq!(both, r#"there is no column "amout" of vertices or edges; did you mean "amount"?"#);
    assert!(matches!(view.edge_rows(&[1.into(), 2.into()], ParallelEdges::Lightest, &[]), Err(Error::Unsupported(_))));
    assert!(matches!(view.vertex_rows(&[9.into()], &[]), Err(Error::NotFound { .. })));
}

/// The rows of batches as text.
fn rows_of(batches: Batches<'_>) -> Vec<String> {
    batches.flat_map(|batch| texts(&batch.unwrap())).collect()
}

type CellTest = fn(&[&str]) -> bool;

fn cell(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// Predicates, with the columns that they name and their tests of these columns.
const ROW_PREDICATES: [(&str, &[&str], CellTest); 7] = [
    ("TRUE", &[], |_| true),
    ("1 = 2", &[], |_| false),
    ("source < 30 AND target <> 7", &["source", "target"], |row| cell(row[0]) < Some(30) && row[1] != "7"),
    ("target BETWEEN 10 AND 12", &["target"], |row| (Some(10)..=Some(12)).contains(&cell(row[0]))),
    ("amount > 50 AND kind = 'wire'", &["amount", "kind"], |row| cell(row[0]) > Some(50) && row[1] == "wire"),
    ("kind IS NULL OR source = 3", &["kind", "source"], |row| row[0] == "-" || row[1] == "3"),
    ("weight < 5 AND target > 9", &["weight", "target"], |row| cell(row[0]) < Some(5) && cell(row[1]) > Some(9)),
];

fn check_filtered_edges(view: &View, kind: Kind, place: &str) {
    let all = names(view, kind);
    for (predicate, columns, test) in ROW_PREDICATES {
        if !columns.iter().all(|column| all.contains(column)) {
            continue;
        }
        // Every row, and the tested cells of the row.
        let tested = rows_of(view.edges(if columns.is_empty() { &["source"] } else { columns }).unwrap());
        let passes: Vec<bool> = tested.iter().map(|row| test(&row.split(' ').collect::<Vec<_>>())).collect();
        for wanted in [&all[..], &["target"], &all[..1], columns] {
            let rows = rows_of(view.edges(wanted).unwrap());
            let expected: Vec<String> =
                rows.into_iter().zip(&passes).filter(|(_, passes)| **passes).map(|(row, _)| row).collect();
            let found = view.edges(wanted).unwrap().with_filter(predicate).unwrap();
            assert_eq!(rows_of(found), expected, "{place}: {predicate} {wanted:?}");
            let twice = view.edges(wanted).unwrap().with_filter("source <> 4").unwrap().with_filter(predicate);
            let both = view.edges(wanted).unwrap().with_filter(&format!("({predicate}) AND source <> 4"));
            assert_eq!(rows_of(twice.unwrap()), rows_of(both.unwrap()), "{place}: {predicate} {wanted:?}");
        }
    }
}

fn check_filtered_vertices(view: &View, place: &str) {
    let rows = rows_of(view.vertices(&["key", "out_degree", "group"]).unwrap());
    let expected = |test: CellTest| -> Vec<String> {
        let keys = rows.iter().map(|row| row.split(' ').collect::<Vec<_>>());
        keys.filter(|row| test(row)).map(|row| row[0].to_owned()).collect()
    };
    let predicates: [(&str, CellTest); 3] = [
        ("out_degree > 2 AND key < 40", |row| cell(row[1]) > Some(2) && cell(row[0]) < Some(40)),
        ("\"group\" IS NULL", |row| row[2] == "-"),
        ("\"group\" = 2 OR in_degree < 0", |row| row[2] == "2"),
    ];
    for (predicate, test) in predicates {
        let found = view.vertices(&["key"]).unwrap().with_filter(predicate).unwrap();
        assert_eq!(rows_of(found), expected(test), "{place}: {predicate}");
    }
}

#[test]
fn filtered_tables_have_the_passing_rows() {
    for History { db, kind, older, .. } in histories(91) {
        let live = db.view().unwrap();
        let older = db.snapshot(older.0).unwrap();
        let part = live.filter(Some("TRUE"), Some("\"group\" IS NULL")).unwrap();
        for (view, place) in [(&live, "live"), (&older, "an older snapshot"), (&part, "a part")] {
            check_filtered_edges(view, kind, place);
            check_filtered_vertices(view, place);
        }
    }
}

#[test]
fn filters_apply_to_lists_of_several_batches() {
    let db = Database::in_memory(Options { edge_properties: true, ..Options::default() }).unwrap();
    let edges = (0..150_000).map(|target| Update::add_edge_with(7, target, [("amount", target as i64 % 1_000)]));
    db.apply(&edges.collect::<Vec<_>>()).unwrap();
    let view = db.view().unwrap();
    let found = rows_of(view.edges(&["target"]).unwrap().with_filter("amount = 999").unwrap());
    let expected: Vec<String> = (0..150).map(|thousand| (thousand * 1_000 + 999).to_string()).collect();
    assert_eq!(found, expected);
    // Batches without a passing row are skipped.
    let batches = view.edges(&["target"]).unwrap().with_filter("target IN (3, 149999)").unwrap();
    assert_eq!(batches.map(|batch| batch.unwrap().num_rows()).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn wrong_filters_of_tables_are_refused() {
    let db = Database::in_memory(Options { edge_properties: true, ..Options::default() }).unwrap();
    let large = Update::add_edge_with(1, 2, [("amount", i64::MAX)]);
    db.apply(&[large, Update::set_vertex(1, "section", "games")]).unwrap();
    let view = db.view().unwrap();
    let refused = |result: Result<(), Error>| match result {
        Err(error @ Error::InvalidInput(_)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let found = refused(view.edges(&[]).unwrap().with_filter("amuont > 3").map(drop));
    let expected = r#"there is no column "amuont" of edges; did you mean "amount"?"#;
    assert_eq!(found, format!("the predicate over edges, character 1: {expected}"));
    let found = refused(view.vertices(&[]).unwrap().with_filter("sektion = 'a'").map(drop));
    assert!(found.contains(r#"of vertices; did you mean "section"?"#), "{found}");
    let found = refused(view.edges(&[]).unwrap().with_filter("source = 'ann'").map(drop));
    assert!(found.contains("source of type u64 cannot be compared with 'ann' of type string"), "{found}");
    let mut batches = view.edges(&["target"]).unwrap().with_filter("amount + 1 > 3").unwrap();
    let found = refused(batches.next().unwrap().map(drop));
    assert!(found.starts_with("the predicate over edges, a calculation fails"), "{found}");
    let schema = view.edges(&[]).unwrap().schema().clone();
    let found = refused(RowFilter::new("surce > 1", &schema).map(drop));
    assert!(found.contains(r#"there is no column "surce" of rows; did you mean "source"?"#), "{found}");
}

#[test]
fn lists_leave_as_arrays_and_compare_as_texts() {
    let db = Database::in_memory(Options { edge_properties: true, ..Options::default() }).unwrap();
    let [tags, sizes] = ["string[]", "i64[]"].map(|name| PropertyType::of_name(name).unwrap());
    let list = |text: &str, found| OwnedValue::parse(text, found).unwrap();
    let edge = |target: i64, text| Update::add_edge_with(1, target as u64, [("tags", list(text, tags))]);
    let vertex = Update::set_vertex(1, "sizes", list("[1,null]", sizes));
    db.apply(&[edge(2, r#"["a","b"]"#), edge(3, "[]"), Update::add_edge(1, 4), vertex]).unwrap();
    let view = db.view().unwrap();
    let batch = view.edges(&["target", "tags"]).unwrap().next().unwrap().unwrap();
    assert_eq!(PropertyType::of_arrow_type(batch.schema().field(1).data_type()), Some(tags));
    let expected = [r#"2 ["a","b"]"#, "3 []", "4 -"];
    assert_eq!(texts(&batch), expected);
    let rows = view.edges(&["tags"]).unwrap().rows().map(|row| row.unwrap().remove(0));
    let rows: Vec<OwnedValue> = rows.collect();
    assert!(matches!(&rows[..], [OwnedValue::List(..), OwnedValue::List(_, empty), OwnedValue::Null] if empty == "[]"));
    assert_eq!(view.iter_edges().unwrap().next().unwrap().unwrap().get("tags"), Some(&list(r#"["a","b"]"#, tags)));
    let predicate = r#"tags <> '["a","b"]'"#;
    assert_eq!(rows_of(view.edges(&["target", "tags"]).unwrap().with_filter(predicate).unwrap()), expected[1..2]);
    let passes = RowFilter::new(predicate, &batch.schema()).unwrap().passes(&batch).unwrap();
    assert_eq!(passes.values().iter().collect::<Vec<_>>(), [false, true, false]);
    for found in [
        view.vertex_rows(&[1.into(), 2.into()], &["sizes"]).unwrap(),
        view.vertices(&["sizes"]).unwrap().next().unwrap().unwrap().slice(0, 2),
        view.neighbor_rows(2, Neighbors::In, &["sizes"]).unwrap(),
    ] {
        assert_eq!(PropertyType::of_arrow_type(found.schema().field(0).data_type()), Some(sizes));
        assert_eq!(texts(&found)[0], "[1,null]");
    }
    for found in [
        view.out_edge_rows(1, &["target", "tags"]).unwrap(),
        view.edge_rows(&[1.into(), 2.into()], ParallelEdges::First, &["target", "tags"]).unwrap(),
    ] {
        assert_eq!((found.schema(), &texts(&found)[0][..]), (batch.schema(), expected[0]));
    }
}
