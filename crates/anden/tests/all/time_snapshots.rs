//! Snapshots of periods (`LoadOptions::snapshot_by`) against loads of the rows until the end of each period.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anden::load::{Duplicates, IdOrder, InputPath, KeyKind, SnapshotBy, SnapshotPeriod, WantedProperties};
use anden::{Database, GraphKind, Key, KeyScheme, LoadOptions, Neighbors, Options, Session, View, WeightType};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// The first second of 2012.
const YEAR_2012: i64 = 1_325_376_000;
const DAY: i64 = 86_400;
/// The first days of the months from January 2012 on, counted from the first of January.
const MONTHS: [i64; 5] = [0, 31, 60, 91, 121];

/// A row: source, target, weight, and a day of 2012.
type Row = (u64, u64, u32, i64);

/// What may differ from load to load.
#[derive(Clone, Debug)]
struct Kind {
    graph: Options,
    duplicates: Duplicates,
    properties: WantedProperties,
    order: IdOrder,
    sort_memory: Option<u64>,
    lists_vertices: bool,
}

impl Kind {
    fn options(&self, folder: &Path) -> LoadOptions {
        let mut options = LoadOptions {
            graph: self.graph,
            duplicates: self.duplicates,
            order: self.order,
            sort_memory: self.sort_memory,
            ..LoadOptions::default()
        };
        options.source.edge_properties = self.properties.clone();
        options.source.keys = match self.graph.keys {
            KeyScheme::String => KeyKind::String,
            _ => KeyKind::Integer,
        };
        options.source.block_bytes = 200;
        if self.lists_vertices {
            let path = folder.join("vertices.txt");
            std::fs::write(&path, "3\n77\n").unwrap();
            options.source.vertices = vec![path.into()];
        }
        options
    }
}

fn write(folder: &Path, name: &str, rows: &[Row]) -> PathBuf {
    let lines = rows.iter().map(|(u, v, weight, day)| {
        // Noon, so that a date alone does not tell the period.
        let micros = (YEAR_2012 + day * DAY + DAY / 2) * 1_000_000;
        format!("{u},{v},{weight},{},row {u}\n", anden::property::PropertyValue::Timestamp(micros))
    });
    let path = folder.join(name);
    std::fs::write(&path, "source,target,weight,time,note\n".to_owned() + &lines.collect::<String>()).unwrap();
    path
}

fn load(input: &Path, options: &LoadOptions) -> Result<Database, anden::Error> {
    let inputs = [InputPath::File(input.to_owned())];
    Ok(Database::load_in_memory(&inputs, options, &Session::new(2)?)?.0)
}

/// Vertices, edges, and the counts of vertices, edges and arcs.
type Content = (Vec<Key>, Vec<(Key, Key, String)>, [u64; 3]);

/// All vertices, and all edges with weights and properties; both arcs of an undirected edge.
fn content(view: &View) -> Content {
    let mut edges = Vec::new();
    let vertices: Vec<_> =
        view.vertices_by_key().unwrap().into_iter().map(|vertex| view.key(vertex).unwrap()).collect();
    for source in &vertices {
        let mut targets = view.neighbors(source.clone(), Neighbors::Out).unwrap();
        // Parallel edges come several times as neighbors.
        targets.dedup();
        for target in targets {
            for edge in view.edges_between(source.clone(), target.clone()).unwrap() {
                edges.push((source.clone(), target.clone(), format!("{:?} {:?}", edge.weight, edge.properties)));
            }
            assert!(view.neighbors(target, Neighbors::In).unwrap().contains(source));
        }
    }
    edges.sort();
    (vertices, edges, [view.num_vertices() as u64, view.num_edges(), view.num_arcs()])
}

fn month_of(row: &Row) -> usize {
    MONTHS.iter().rposition(|&first| first <= row.3).unwrap()
}

fn check(kind: &Kind, rows: &[Row]) {
    let folder = tempfile::tempdir().unwrap();
    let options = kind.options(folder.path());
    let by = SnapshotBy { column: "time".into(), period: SnapshotPeriod::Month };
    let by_time = LoadOptions { snapshot_by: Some(by), ..options.clone() };
    let db = match load(&write(folder.path(), "all.csv", rows), &by_time) {
        Ok(db) => db,
        // Such rows are refused without snapshots, too.
        Err(error) => {
            let expected = load(&write(folder.path(), "all.csv", rows), &options).unwrap_err();
            return assert_eq!(error.to_string(), expected.to_string());
        }
    };
    db.verify().unwrap();
    let mut months: Vec<usize> = rows.iter().map(month_of).collect();
    months.sort_unstable();
    months.dedup();
    let names: Vec<_> = db.snapshots().iter().map(|info| info.name.clone()).collect();
    assert_eq!(names, months.iter().map(|month| Some(format!("2012-{:02}", month + 1))).collect::<Vec<_>>());
    let expected = months.iter().map(|&month| {
        let until: Vec<_> = rows.iter().filter(|row| month_of(row) <= month).copied().collect();
        content(&load(&write(folder.path(), "until.csv", &until), &options).unwrap().view().unwrap())
    });
    let expected: Vec<_> = expected.collect();
    for is_merged in [false, true] {
        for (place, month) in months.iter().enumerate() {
            let name = format!("2012-{:02}", month + 1);
            assert_eq!(content(&db.snapshot(&name).unwrap()), expected[place], "{name}, {kind:?}");
            assert_eq!(db.snapshot_number(name.as_str()).unwrap() as usize, place + 1);
            check_window(&db, &name, &expected, place);
        }
        assert_eq!(content(&db.view().unwrap()), expected[months.len() - 1]);
        if !is_merged {
            db.merge().unwrap();
            db.verify().unwrap();
        }
    }
}

/// A window of one month has the edges that are new in its snapshot, or have other data there. It may also have edges
/// that the month repeats with equal data.
fn check_window(db: &Database, name: &str, expected: &[Content], place: usize) {
    let (vertices, edges, _) = content(&db.window(name..=name).unwrap());
    let ends: BTreeSet<&Key> = edges.iter().flat_map(|(source, target, _)| [source, target]).collect();
    assert!(vertices.iter().collect::<BTreeSet<_>>() == ends && vertices.len() == ends.len(), "{vertices:?}");
    let all = content(&db.window_with_isolated(name..=name).unwrap());
    assert_eq!((all.0, &all.1), (expected[place].0.clone(), &edges));
    let before = place.checked_sub(1).map_or(&[][..], |before| &expected[before].1);
    let mut repeated = edges;
    let mut old = before.to_vec();
    for edge in &expected[place].1 {
        if let Some(at) = old.iter().position(|old| old == edge) {
            old.remove(at);
            continue;
        }
        let at = repeated.iter().position(|shown| shown == edge);
        repeated.remove(at.unwrap_or_else(|| panic!("window {name} lacks {edge:?}")));
    }
    assert!(repeated.iter().all(|edge| before.contains(edge)), "window {name}: {repeated:?}");
}

fn kinds() -> impl Strategy<Value = Kind> {
    let graph = (
        prop_oneof![Just(GraphKind::Directed), Just(GraphKind::Undirected)],
        prop_oneof![Just(KeyScheme::Integer), Just(KeyScheme::String), Just(KeyScheme::Dense)],
        prop_oneof![Just(None), Just(Some(WeightType::U32)), Just(Some(WeightType::F64))],
        any::<bool>(),
    );
    let graph = graph.prop_map(|(graph_kind, keys, weight_type, ordered)| Options {
        graph_kind,
        keys,
        weight_type,
        ordered: ordered && graph_kind == GraphKind::Directed,
        ..Options::default()
    });
    let duplicates = [Duplicates::Auto, Duplicates::Min, Duplicates::Last, Duplicates::Sum, Duplicates::Keep];
    let properties = [
        WantedProperties::All,
        WantedProperties::None,
        WantedProperties::Named(vec!["note".into()]),
        WantedProperties::Named(vec!["time".into()]),
    ];
    let others = (
        proptest::sample::select(duplicates.to_vec()),
        proptest::sample::select(properties.to_vec()),
        prop_oneof![Just(IdOrder::Auto), Just(IdOrder::Input), Just(IdOrder::Degree)],
        prop_oneof![Just(None), Just(Some(1 << 12))],
        any::<bool>(),
    );
    (graph, others).prop_map(|(graph, (duplicates, properties, order, sort_memory, lists_vertices))| {
        // Dense keys are the ids, and the ids of an ordered graph direct its edges.
        let order = if graph.keys == KeyScheme::Dense || graph.ordered { IdOrder::Auto } else { order };
        Kind { graph, duplicates, properties, order, sort_memory, lists_vertices }
    })
}

#[test]
fn snapshots_equal_loads_until_their_ends() {
    // Few vertices, so that many rows are parallel or loops.
    let row = (0_u64..9, 0_u64..9, 1_u32..5, 0_i64..150);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(150));
    runner
        .run(&(kinds(), prop::collection::vec(row, 1..60)), |(kind, rows)| {
            check(&kind, &rows);
            Ok(())
        })
        .unwrap();
}

/// A small history with known answers: the friendship of 1 and 2 is renewed in March.
const KNOWN: &str = "1,2,2012-01-05\n2,3,2012-01-31\n3,4,2012-02-01\n1,2,2012-03-09\n4,1,2012-03-31\n";

fn known(options: &LoadOptions, by: &str) -> Database {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("known.csv");
    std::fs::write(&path, format!("source,target,day\n{KNOWN}")).unwrap();
    load(&path, &LoadOptions { snapshot_by: Some(by.parse().unwrap()), ..options.clone() }).unwrap()
}

fn edges_of(view: &View) -> Vec<String> {
    content(view).1.into_iter().map(|(source, target, _)| format!("{source}{target}")).collect()
}

#[test]
fn windows_of_months_show_what_they_added() {
    let simple = LoadOptions { duplicates: Duplicates::Min, ..LoadOptions::default() };
    let db = known(&simple, "day:month");
    let window = |first: &str, last: &str| edges_of(&db.window(first..=last).unwrap());
    assert_eq!(window("2012-01", "2012-01"), ["12", "23"]);
    assert_eq!(window("2012-02", "2012-03"), ["34", "41"]);
    assert_eq!(window("2012-03", "2012-03"), ["41"]);
    assert_eq!(window("2012-02-01", "2012-02-29"), ["34"]);
    assert_eq!(db.snapshot("2012-02").unwrap().num_edges(), 3);
    assert_eq!(db.snapshot("2012-03-01").unwrap().name(), "snapshot 2");

    let multi = LoadOptions { duplicates: Duplicates::Keep, ..LoadOptions::default() };
    let db = known(&multi, "day:month");
    let window = |first: &str, last: &str| edges_of(&db.window(first..=last).unwrap());
    assert_eq!(window("2012-03", "2012-03"), ["12", "41"]);
    assert_eq!(window("2012-02", "2012-02"), ["34"]);
    assert_eq!(db.snapshot("2012-03").unwrap().num_edges(), 5);
}

#[test]
fn periods_name_their_snapshots() {
    let options = LoadOptions { duplicates: Duplicates::Min, ..LoadOptions::default() };
    for (by, names) in [
        ("day:month", &["2012-01", "2012-02", "2012-03"][..]),
        ("day:week", &["2012-W01", "2012-W05", "2012-W10", "2012-W13"]),
        ("day:day", &["2012-01-05", "2012-01-31", "2012-02-01", "2012-03-09", "2012-03-31"]),
        ("day:hour", &["2012-01-05T00", "2012-01-31T00", "2012-02-01T00", "2012-03-09T00", "2012-03-31T00"]),
    ] {
        let db = known(&options, by);
        let snapshots = db.snapshots();
        assert_eq!(snapshots.iter().map(|info| info.name.as_deref().unwrap()).collect::<Vec<_>>(), names, "{by}");
        for info in &snapshots {
            let as_of = info.as_of.unwrap();
            // The name and the last microsecond lead to the snapshot, and the next microsecond may be too late.
            let time = anden::property::PropertyValue::Timestamp(as_of).to_string();
            assert_eq!(db.snapshot_number(info.name.as_deref().unwrap()).unwrap(), info.number);
            assert_eq!(db.snapshot_number(time.as_str()).unwrap(), info.number, "{time}");
        }
    }
    let first = known(&options, "day:month").snapshots()[0].as_of.unwrap();
    assert_eq!(anden::property::PropertyValue::Timestamp(first).to_string(), "2012-01-31T23:59:59.999999Z");
}

#[test]
fn inputs_without_times_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |text: &str, change: &dyn Fn(&mut LoadOptions)| {
        let path = folder.path().join(if text.contains(',') { "edges.csv" } else { "edges.txt" });
        std::fs::write(&path, text).unwrap();
        let mut options = LoadOptions { snapshot_by: Some("time:day".parse().unwrap()), ..LoadOptions::default() };
        options.source.edge_properties = WantedProperties::All;
        change(&mut options);
        load(&path, &options).map(|_| ()).unwrap_err().to_string()
    };
    let unchanged = |_: &mut LoadOptions| {};
    for (text, parts) in [
        ("source,target,day\n1,2,2012-01-05\n", &["edges.csv", "'time'", "--snapshot-by", "day"][..]),
        ("source,target,time\n1,2,1325376000\n", &["edges.csv", "i64", "time:epoch_s", "epoch_ms"]),
        ("source,target,time\n1,2,soon\n", &["edges.csv", "string", "time:timestamp"]),
        ("source,target,time\n1,2,2012-01-05\n1,3,\n", &["edges.csv:3", "null", "--snapshot-by"]),
        ("1 2\n", &["edges.txt", "--columns"]),
        ("source,target,time\n1,2,+12012-01-05\n", &["+12012-01-05", "9999", "--snapshot-by"]),
    ] {
        let error = refused(text, &unchanged);
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let text = "source,target,time\n1,2,2012-01-05\n";
    let error = refused(text, &|options| options.name = Some("a".into()));
    assert!(error.contains("--name") && error.contains("--snapshot-by"), "{error}");
    let error = refused(text, &|options| options.as_of = Some(0));
    assert!(error.contains("--as-of") && error.contains("--snapshot-by"), "{error}");
    let error = refused(text, &|options| options.spread.num_snapshots = 2);
    assert!(error.contains("--snapshots") && error.contains("--snapshot-by"), "{error}");
}

#[test]
fn a_small_budget_names_the_times() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<Row> = (0..400_000).map(|i| (i % 7, i % 11, 1, 0)).collect();
    let path = write(folder.path(), "long.csv", &rows);
    let mut options = LoadOptions { duplicates: Duplicates::Keep, ..LoadOptions::default() };
    options.snapshot_by = Some("time:hour".parse().unwrap());
    options.memory = Some(8 << 20);
    let error = load(&path, &options).map(|_| ()).unwrap_err();
    assert!(matches!(&error, anden::Error::Memory { .. }), "{error}");
    options.memory = Some(200 << 20);
    assert_eq!(load(&path, &options).unwrap().view().unwrap().num_edges(), 400_000);
}
