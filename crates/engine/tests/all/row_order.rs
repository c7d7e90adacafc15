//! Rows of edge properties: a load numbers them in the order of the out-lists, or of the input if memory is short.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{Duplicates, Engine, GraphOptions, KeyScheme, LoadOptions, SnapshotView, Spread};
use anden_formats::{InputPath, SourceOptions, WantedProperties};
use anden_graph::property::PropertyColumn;
use anden_graph::{Direction, Graph, GraphKind, WeightType, WeightedEdges};
use anden_testkit::FaultStorage;

/// The number of input lines.
const NUM_LINES: u64 = 12_000;
const NUM_VERTICES: u64 = 700;
const KINDS: [&str; 5] = ["wire", "cash", "card", "\u{e9}tude", "a longer kind of edge"];

/// Source and target, weight and values of one entry of a list.
type Entry = (u64, u64, String, String);

/// A line of the input: ends, weight, and the values as [`values`] shows them.
fn line(i: u64) -> (u64, u64, u64, [String; 4]) {
    let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // One list is much longer than the others, some lines are loops, and many edges are parallel.
    let source = if mixed.is_multiple_of(9) { 3 } else { (mixed >> 20) % NUM_VERTICES };
    let target = if mixed.is_multiple_of(31) { source } else { (mixed >> 40) % (NUM_VERTICES / 4) };
    let kind = if i.is_multiple_of(7) { "" } else { KINDS[(mixed >> 13) as usize % KINDS.len()] };
    let note = format!("note {i} {}", "x".repeat(i as usize % 40));
    // The first half has few distinct strings, so only some blocks have a dictionary.
    let half = if i < NUM_LINES / 2 { format!("h{}", i % 3) } else { format!("half {i}") };
    (source, target, mixed >> 50, [i.to_string(), kind.to_owned(), note, half])
}

fn input() -> String {
    let mut text = String::from("source,target,weight,n:i64,kind:string,note,half\n");
    for (source, target, weight, values) in (0..NUM_LINES).map(line) {
        text += &format!("{source},{target},{weight},{}\n", values.join(","));
    }
    text
}

/// The expected entries of all out-lists.
fn model(options: &LoadOptions) -> Vec<Entry> {
    let GraphOptions { ordered, graph_kind, weight_type, .. } = options.graph;
    let mut lists: BTreeMap<(u64, u64), Vec<Entry>> = BTreeMap::new();
    for (source, target, weight, values) in (0..NUM_LINES).map(line) {
        let ends = match graph_kind {
            _ if ordered && source == target => vec![],
            _ if ordered => vec![(source.min(target), source.max(target))],
            GraphKind::Undirected if source != target => vec![(source, target), (target, source)],
            _ => vec![(source, target)],
        };
        let weight = if weight_type.is_some() { weight.to_string() } else { String::new() };
        let values = values.map(|value| if value.is_empty() { "null".into() } else { value }).join("|");
        let values = if weight_type.is_some() { values } else { format!("{}|{values}", line_weight(&values)) };
        for (u, v) in ends {
            lists.entry((u, v)).or_default().push((u, v, weight.clone(), values.clone()));
        }
    }
    let keeps_all = options.duplicates == Duplicates::Keep;
    let left = |mut edges: Vec<Entry>| if keeps_all { edges } else { edges.split_off(edges.len() - 1) };
    lists.into_values().flat_map(left).collect()
}

/// The weight in the line of these values, for graphs whose weight is a property.
fn line_weight(values: &str) -> u64 {
    line(values.split('|').next().unwrap().parse().unwrap()).2
}

/// The entries and rows of all out-lists. Checks that in-lists name equal rows.
fn stored(view: &SnapshotView) -> (Vec<Entry>, Vec<u64>) {
    let (mut entries, mut rows) = (Vec::new(), Vec::new());
    let (mut by_target, mut in_rows) = (Vec::new(), Vec::new());
    let key = |vertex: u32| view.key(vertex).unwrap().to_string().parse::<u64>().unwrap();
    for vertex in 0..view.vertex_bound() as u32 {
        let mut previous = None;
        let _ = view.for_each_row(Direction::Out, vertex, |targets, found| {
            for (&target, &row) in targets.iter().zip(found) {
                assert!(previous < Some((target, row)), "rows of parallel edges ascend");
                previous = Some((target, row));
                entries.push((key(vertex), key(target), String::new(), String::new()));
                by_target.push((target, vertex, row));
            }
            rows.extend_from_slice(found);
            ControlFlow::Continue(())
        });
        let _ = view.for_each_row(Direction::In, vertex, |sources, found| {
            in_rows.extend(sources.iter().zip(found).map(|(&source, &row)| (vertex, source, row)));
            ControlFlow::Continue(())
        });
    }
    if Graph::has_lists(view, Direction::In) {
        by_target.sort_unstable();
        assert_eq!(by_target, in_rows);
    }
    if view.weight_type() == Some(WeightType::U32) {
        let mut next = entries.iter_mut();
        for vertex in 0..view.vertex_bound() as u32 {
            let _ = view.for_each_weighted_fragment(Direction::Out, vertex, |_, weights: &[u32]| {
                weights.iter().for_each(|weight| next.next().unwrap().2 = weight.to_string());
                ControlFlow::Continue(())
            });
        }
    }
    for (entry, values) in entries.iter_mut().zip(values(view, &rows)) {
        entry.3 = values;
    }
    (entries, rows)
}

/// The values of rows, between bars.
fn values(view: &SnapshotView, rows: &[u64]) -> Vec<String> {
    let properties = view.edge_properties();
    let places: Vec<_> = (0..properties.schema().len()).collect();
    let columns = properties.gather(&places, rows).unwrap();
    let shown = |column: &PropertyColumn, place: usize| match column.get(place) {
        value if value.is_null() => "null".to_owned(),
        value => value.to_string(),
    };
    (0..rows.len()).map(|row| columns.iter().map(|column| shown(column, row)).collect::<Vec<_>>().join("|")).collect()
}

/// Whether rows are numbered without gaps by their first entries in the out-lists.
fn follows_lists(rows: &[u64]) -> bool {
    let mut next = 0;
    rows.iter().all(|&row| {
        next += u64::from(row == next);
        row < next
    })
}

struct Scene {
    dir: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("edges.csv"), input()).unwrap();
        Self { dir }
    }

    fn load(&self, options: &LoadOptions, num_threads: usize) -> Engine {
        let (input, pool) = (InputPath::File(self.dir.path().join("edges.csv")), Pool::new(num_threads).unwrap());
        let storage = Arc::new(FaultStorage::default());
        let (db, _) = Engine::load_in(storage, Path::new("db"), &[input], options, &pool, &Silent).unwrap();
        db.verify(&pool).unwrap();
        db
    }
}

fn with(graph: GraphOptions, duplicates: Duplicates) -> LoadOptions {
    // Many blocks, each with its own dictionary.
    let source = SourceOptions {
        edge_properties: WantedProperties::All,
        weight_column: graph.weight_type.map(|_| "weight".into()),
        block_bytes: 32 << 10,
        ..SourceOptions::default()
    };
    LoadOptions { graph, duplicates, source, ..LoadOptions::default() }
}

/// All kinds of graphs with edge properties.
fn kinds() -> Vec<LoadOptions> {
    let plain = GraphOptions { edge_properties: true, ..GraphOptions::default() };
    let weighted = Some(WeightType::U32);
    let undirected = GraphKind::Undirected;
    let graphs = [
        plain,
        GraphOptions { keys: KeyScheme::Dense, ..plain },
        GraphOptions { in_edges: false, weight_type: weighted, ..plain },
        GraphOptions { graph_kind: undirected, ..plain },
        GraphOptions { graph_kind: undirected, weight_type: weighted, ..plain },
        GraphOptions { ordered: true, ..plain },
    ];
    let both = |graph| [with(graph, Duplicates::Last), with(graph, Duplicates::Keep)];
    graphs.into_iter().flat_map(both).collect()
}

#[test]
fn rows_follow_the_out_lists() {
    let scene = Scene::new();
    for options in kinds() {
        let expected = model(&options);
        for num_threads in [1, 3] {
            let db = scene.load(&options, num_threads);
            let view = db.view().unwrap();
            let (entries, rows) = stored(&view);
            assert_eq!(entries, expected, "{options:?}");
            assert!(follows_lists(&rows), "{options:?}");
            // Merged edges and dropped loops have no rows.
            assert_eq!(rows.iter().max().map(|&last| last + 1), Some(view.num_edges()));
        }
    }
}

#[test]
fn small_budget_keeps_the_order_of_the_input() {
    let scene = Scene::new();
    for options in kinds() {
        let expected = model(&options);
        let mut num_ordered = 0;
        let budgets = [1 << 20, 1 << 21, 3 << 20, 1 << 22, 1 << 25];
        for sort_memory in budgets {
            let db = scene.load(&LoadOptions { sort_memory: Some(sort_memory), ..options.clone() }, 2);
            let view = db.view().unwrap();
            let (entries, rows) = stored(&view);
            assert_eq!(entries, expected, "{options:?}");
            let is_input_order = entries.iter().zip(&rows).all(|(entry, row)| {
                let n = if options.graph.weight_type.is_some() { 0 } else { 1 };
                entry.3.split('|').nth(n).unwrap() == row.to_string()
            });
            assert!(is_input_order != follows_lists(&rows), "{options:?}");
            num_ordered += u64::from(!is_input_order);
        }
        assert!(num_ordered > 0 && num_ordered < budgets.len() as u64, "{num_ordered} of {budgets:?}: {options:?}");
    }
}

#[test]
fn later_snapshots_name_the_rows_in_their_order() {
    let scene = Scene::new();
    for options in kinds() {
        let spread = Spread { num_snapshots: 3, ..Spread::default() };
        let db = scene.load(&LoadOptions { spread, ..options.clone() }, 2);
        let (entries, rows) = stored(&db.view().unwrap());
        assert_eq!(entries, model(&options), "{options:?}");
        assert!(follows_lists(&rows), "{options:?}");
        let of_row: BTreeMap<_, _> = rows.iter().zip(&entries).map(|(row, entry)| (row, &entry.3)).collect();
        let (first, first_rows) = stored(&db.snapshot(1).unwrap());
        assert!(!first.is_empty() && first.len() < entries.len());
        assert!(first_rows.iter().zip(&first).all(|(row, entry)| *of_row[row] == entry.3));
    }
}
