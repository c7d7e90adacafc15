//! Edge properties through the public API: values in every kind of view, round trips through files, weights,
//! differences.

use std::path::{Path, PathBuf};

use anden::error::NotFound;
use anden::export::{ExportFormat, write_file};
use anden::load::{Duplicates, InputPath, KeyKind, SourceOptions, WantedProperties};
use anden::property::{PropertySchema, PropertyType};
use anden::{
    Changes, Database, Error, GraphKind, Job, Key, KeyScheme, LoadOptions, OpenOptions, Options, Parameters, Session,
    Update, View,
};
use anden_testkit::Random;

struct Scene {
    folder: tempfile::TempDir,
    session: Session,
    graph: Options,
}

impl Scene {
    fn new(graph: Options) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), session: Session::new(2).unwrap(), graph }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn try_load(&self, name: &str, input: &Path, vertices: Option<PathBuf>) -> Result<Database, Error> {
        let keys = if self.graph.keys == KeyScheme::String { KeyKind::String } else { KeyKind::Integer };
        let edge_properties = WantedProperties::All;
        let vertices = vertices.map(Into::into).into_iter().collect();
        let source = SourceOptions { keys, vertices, edge_properties, ..SourceOptions::default() };
        let duplicates = if self.graph.multigraph { Duplicates::Keep } else { Duplicates::Auto };
        let options = LoadOptions { graph: self.graph, duplicates, source, ..LoadOptions::default() };
        let inputs = [InputPath::File(input.to_owned())];
        Ok(Database::load(self.path(name), &inputs, &options, &self.session)?.0)
    }

    fn load(&self, name: &str, text: &str) -> Database {
        let path = self.path(name).with_extension("csv");
        std::fs::write(&path, text).unwrap();
        self.try_load(name, &path, None).unwrap()
    }

    /// Requires that every format with properties gives the graph back.
    fn check_round_trips(&self, place: &str, view: &View) {
        let vertices = self.path("vertices.csv");
        write_file(&vertices, |output| view.export_vertices(ExportFormat::CSV, output)).unwrap();
        for (format, file) in
            [(ExportFormat::CSV, "a.csv"), (ExportFormat::PARQUET, "a.parquet"), (ExportFormat::GRAPHML, "a.graphml")]
        {
            let path = self.path(file);
            let num_edges = write_file(&path, |output| view.export(format, output)).unwrap();
            assert_eq!(num_edges, view.num_edges(), "{place}: {file}");
            let beside = (format != ExportFormat::GRAPHML).then(|| vertices.clone());
            let again = self.try_load("again", &path, beside).unwrap_or_else(|e| panic!("{place}: {file}: {e}"));
            again.verify().unwrap();
            let found = again.view().unwrap();
            assert_eq!(content(&found), content(view), "{place}: {file}");
            assert_eq!(found.edge_schema(), view.edge_schema(), "{place}: {file}");
            std::fs::remove_dir_all(self.path("again")).unwrap();
        }
    }
}

/// The edges by key, with their values as text and nulls as a dash; sorted.
fn content(view: &View) -> Vec<String> {
    let keys: Vec<String> = (0..view.vertex_bound() as u32)
        .map(|vertex| view.key(vertex).map_or_else(|_| "?".into(), |key| key.to_string()))
        .collect();
    let columns: Vec<_> = view.edge_schema().iter().map(|(name, _)| view.edge_property(name).unwrap()).collect();
    let (mut lines, mut row) = (Vec::new(), 0);
    for source in 0..view.vertex_bound() as u32 {
        let _ = anden::graph::Graph::for_each_fragment(view.graph(), anden::graph::Direction::Out, source, |targets| {
            for &target in targets {
                let (source, target) = (&keys[source as usize], &keys[target as usize]);
                let mut line = format!("{source} {target}");
                for column in &columns {
                    let value = column.get(row);
                    line += &if value.is_null() { "|-".to_owned() } else { format!("|{value}") };
                }
                lines.push(line);
                row += 1;
            }
            std::ops::ControlFlow::Continue(())
        });
    }
    assert!(columns.iter().all(|column| column.len() == row));
    lines.sort();
    lines
}

const TYPES: [(&str, PropertyType); 9] = [
    ("flag", PropertyType::Boolean),
    ("number", PropertyType::I64),
    ("size", PropertyType::U64),
    ("half", PropertyType::F32),
    ("share of", PropertyType::F64),
    ("day", PropertyType::Date),
    ("at,time", PropertyType::Timestamp),
    ("text \"quoted\"", PropertyType::String),
    ("raw", PropertyType::Bytes),
];

/// A random value of a type as CSV; a third of them are null.
fn cell(random: &mut Random, property_type: PropertyType) -> String {
    let number = i64::from(random.below(2_000_000)) - 1_000_000;
    let date = format!(
        "{:04}-{:02}-{:02}",
        1900 + number.rem_euclid(200),
        1 + number.rem_euclid(12),
        1 + number.rem_euclid(28)
    );
    match property_type {
        _ if random.below(3) == 0 => String::new(),
        PropertyType::Boolean => (number % 2 == 0).to_string(),
        PropertyType::I64 => (number * 9_007_199_254).to_string(),
        PropertyType::U64 => number.unsigned_abs().wrapping_mul(18_446_744_073_709).to_string(),
        PropertyType::F32 => (number as f32 / 7.0).to_string(),
        PropertyType::F64 => (number as f64 / 7.0).to_string(),
        PropertyType::Date => date,
        PropertyType::Timestamp => format!("{date}T12:30:00.{:06}Z", number.unsigned_abs() % 1_000_000),
        PropertyType::String => ["\"\"", "\"a, b\"", "\"say \"\"x\"\" <&>\"", "ünï", "\"two\nlines\"", "007"]
            [number.rem_euclid(6) as usize]
            .to_owned(),
        PropertyType::Bytes => format!("0x{:06x}", number.rem_euclid(1 << 24)),
        PropertyType::List(_) => format!("[{number}]"),
    }
}

fn table(random: &mut Random, num_lines: u32, graph: Options) -> String {
    let names: Vec<String> = TYPES.iter().map(|(name, of)| format!("\"{}:{of}\"", name.replace('"', "\"\""))).collect();
    let mut text = format!("source,target,{}\n", names.join(","));
    let mut seen = std::collections::HashSet::new();
    for _ in 0..num_lines {
        let (u, v) = (random.below(30), random.below(30));
        let ends = if graph.graph_kind == GraphKind::Undirected { (u.min(v), u.max(v)) } else { (u, v) };
        if seen.insert(ends) || graph.multigraph {
            let cells: Vec<String> = TYPES.iter().map(|&(_, of)| cell(random, of)).collect();
            text += &format!("{u},{v},{}\n", cells.join(","));
        }
    }
    text
}

#[test]
fn every_view_comes_back_from_files() {
    for (seed, graph_kind, multigraph, keys) in [
        (1, GraphKind::Directed, false, KeyScheme::Integer),
        (2, GraphKind::Directed, true, KeyScheme::String),
        (3, GraphKind::Undirected, false, KeyScheme::String),
        (4, GraphKind::Undirected, true, KeyScheme::Dense),
    ] {
        let graph = Options { graph_kind, multigraph, keys, ..Options::default() };
        let (scene, mut random) = (Scene::new(graph), Random::new(seed));
        let db = scene.load("db", &table(&mut random, 150, graph));
        for round in 0..4 {
            let path = scene.path("more.csv");
            std::fs::write(&path, table(&mut random, 25, graph)).unwrap();
            let gone = scene.path("gone.txt");
            std::fs::write(&gone, format!("{} {}\n{}\n", random.below(30), random.below(30), 5 + round)).unwrap();
            let source = SourceOptions { edge_properties: WantedProperties::All, ..SourceOptions::default() };
            let remove = vec![InputPath::File(gone)];
            let options = anden::AppendOptions { source, remove, ..anden::AppendOptions::default() };
            db.append_files(&[InputPath::File(path)], &options).unwrap();
        }
        db.append(&Changes::default().add_edge(1, 2).with("new", 7).add_edge(40, 41)).unwrap();
        let before: Vec<_> = (1..=6_u32).map(|number| content(&db.snapshot(number).unwrap())).collect();
        let check = |place: &str, view: View| {
            let place = format!("seed {seed}, {}, {place}", view.name());
            scene.check_round_trips(&place, &view);
        };
        check("deltas", db.snapshot(1).unwrap());
        check("deltas", db.snapshot(4).unwrap());
        check("deltas", db.view().unwrap());
        check("window", db.window(2..=5).unwrap());
        db.merge_newest(2).unwrap();
        check("merged delta", db.view().unwrap());
        db.merge().unwrap();
        for (number, before) in (1_u32..).zip(&before) {
            assert_eq!(&content(&db.snapshot(number).unwrap()), before, "seed {seed}, snapshot {number}");
        }
        check("merged", db.view().unwrap());
        check("back from the base", db.snapshot(2).unwrap());
        db.drop_snapshots(&[2.into(), 3.into(), 6.into()]).unwrap();
        check("dropped", db.snapshot(4).unwrap());
        check("newest dropped", db.view().unwrap());
        check("window over a gap", db.window(4..=5).unwrap());
        assert_eq!(content(&db.snapshot(1).unwrap()), before[0]);
        assert_eq!(content(&db.view().unwrap()), before[5]);
        db.verify().unwrap();
    }
}

/// Both arcs of an undirected edge meet the old values, which are copied once.
#[test]
fn new_weight_keeps_values_of_an_undirected_edge() {
    let weight_type = Some(anden::graph::WeightType::U32);
    let graph = Options { graph_kind: GraphKind::Undirected, weight_type, edge_properties: true, ..Options::default() };
    let db = Database::in_memory(graph).unwrap();
    let raw = anden::OwnedValue::Bytes([10, 11].into());
    db.append(&Changes::default().add_weighted_edge(1, 2, 5).with("raw", raw.clone())).unwrap();
    db.append(&Changes::default().add_weighted_edge(2, 1, 6)).unwrap();
    let edges = db.view().unwrap().edges_between(1, 2).unwrap();
    assert_eq!(edges.len(), 1);
    assert_eq!(edges[0].properties, [("raw".to_owned(), raw)]);
    db.verify().unwrap();
}

#[test]
fn own_weights_replace_a_chosen_property() {
    let weight_type = Some(anden::graph::WeightType::U32);
    let db = Database::in_memory(Options { weight_type, edge_properties: true, ..Options::default() }).unwrap();
    db.append(&Changes::default().add_weighted_edge(1, 2, 5).with("amount", 7)).unwrap();
    let view = db.view().unwrap();
    let distance = |view: &View| {
        let job = Job::new("sssp", Parameters { source: vec![1.into()], ..Parameters::default() }).unwrap();
        let output = view.run(&job).unwrap();
        format!("{:?}", output.values().unwrap())
    };
    let chosen = view.with_weight("amount").unwrap();
    assert_eq!(distance(&chosen.with_weight("weight").unwrap()), distance(&view));
    assert_ne!(distance(&chosen), distance(&view));
}

const FLIGHTS: &str = "\
source,target,distance,delay:f64,day,note
SEA,JFK,2422,-3.5,2001-01-01,
SEA,JFK,2422,10,2001-01-02,late
SEA,ORD,1721,0,2001-01-01,
ORD,JFK,740,2,2001-01-03,
JFK,SEA,2422,1,,
";

fn flights(multigraph: bool) -> (Scene, Database) {
    let scene = Scene::new(Options { keys: KeyScheme::String, multigraph, ..Options::default() });
    let text = if multigraph { FLIGHTS.to_owned() } else { FLIGHTS.replace("SEA,JFK,2422,-3.5,2001-01-01,\n", "") };
    let db = scene.load("db", &text);
    (scene, db)
}

#[test]
fn values_are_given_edge_by_edge_and_as_columns() {
    let (_scene, db) = flights(true);
    let view = db.view().unwrap();
    let schema: Vec<_> = view.edge_schema().iter().map(|(name, of)| format!("{name} {of}")).collect();
    assert_eq!(schema, ["distance i64", "delay f64", "day date", "note string"]);
    assert!(view.has_edge_properties() && view.weight_type().is_none());
    let text = |source: &str, target: &str| -> Vec<String> {
        let edges = view.edges_between(source, target).unwrap().into_iter();
        let value = |(name, value): &(String, anden::OwnedValue)| format!("{name}={} ", value.as_value());
        edges.map(|edge| edge.properties.iter().map(value).collect()).collect()
    };
    let parallel = ["distance=2422 delay=-3.5 day=2001-01-01 ", "distance=2422 delay=10.0 day=2001-01-02 note=late "];
    assert_eq!(text("SEA", "JFK"), parallel);
    assert_eq!(text("JFK", "SEA"), ["distance=2422 delay=1.0 "]);
    assert!(text("JFK", "ORD").is_empty());
    assert!(matches!(view.edges_between("SEA", "LAX"), Err(Error::NotFound { .. })));
    let delays = view.edge_property("delay").unwrap();
    assert_eq!((delays.len() as u64, view.num_arcs()), (5, 5));
    let error = view.edge_property("speed").unwrap_err();
    assert!(
        matches!(&error, Error::NotFound { what: NotFound::Property(_), reason } if reason.as_str().contains("edges have distance, delay, day, note")),
        "{error}"
    );
    assert_eq!(db.window(1..=1).unwrap().edge_property("delay").unwrap().len(), 5);
}

#[test]
fn any_number_is_a_weight() {
    for multigraph in [false, true] {
        let (_scene, db) = flights(multigraph);
        db.append(&Changes::default().add_edge("JFK", "LAX").with("distance", 2475).with("delay", 0.25)).unwrap();
        let view = db.view().unwrap();
        let by = |name: &str| Some(name.to_owned());
        let source = vec![Key::from("SEA")];
        let sssp = |weight: &str| {
            let parameters =
                Parameters { source: source.clone(), weight: by(weight), values: true, ..Parameters::default() };
            view.run(&Job::new("sssp", parameters).unwrap())
        };
        let output = sssp("distance").unwrap();
        output.check(&view).unwrap();
        let max = output.summary.iter().find(|(name, _)| *name == "max_distance").map(|(_, value)| value.clone());
        assert_eq!(max, Some(anden::job::Value::Integer(4897)));
        let path = view.with_weight("distance").unwrap().weighted_path("SEA", "LAX").unwrap().unwrap();
        assert_eq!(path.length, anden::query::PathLength::Integer(4897));
        // Another weight of the graph, cached for the next call.
        let negative = "vertex JFK lies on a cycle of negative weight: sssp needs cycles of weight 0 or more";
        match sssp("delay") {
            Err(error) => assert!(multigraph && error.to_string() == negative, "{error}"),
            Ok(output) => {
                output.check(&view).unwrap();
                let sum = output.summary.iter().find(|(name, _)| *name == "sum_distance");
                assert!(!multigraph && sum.is_some_and(|(_, sum)| *sum == anden::job::Value::Real(4.25)), "{sum:?}");
            }
        }
    }
}

#[test]
fn property_unfit_as_weight_is_refused() {
    let (scene, db) = flights(true);
    let view = db.view().unwrap();
    let refused = |view: &View, name: &str| view.with_weight(name).unwrap_err().to_string();
    assert_eq!(refused(&view, "speed"), "there is no property \"speed\": edges have distance, delay, day, note");
    assert_eq!(refused(&view, "day"), "the property \"day\" of edges is of type date: a weight is a number");
    assert_eq!(refused(&view, "weight"), "there is no property \"weight\": edges have distance, delay, day, note");
    let error =
        view.run(&Job::new("sssp", Parameters { source: vec!["SEA".into()], ..Parameters::default() }).unwrap());
    let error = error.map(|_| ()).unwrap_err().to_string();
    assert_eq!(error, "sssp needs edge weights: choose one of the properties distance, delay with --weight");
    db.append(&Changes::default().add_edge("ORD", "SEA").with("delay", 1)).unwrap();
    let expected = "the edge from ORD to SEA has no \"distance\": every edge needs a weight";
    assert_eq!(refused(&db.view().unwrap(), "distance"), expected);
    db.snapshot(1).unwrap().with_weight("distance").unwrap();
    let small = Session::new(1).unwrap().with_memory(Some(100));
    drop(db);
    let view = Database::open_with(scene.path("db"), &OpenOptions { read_only: true, ..OpenOptions::from(&small) })
        .unwrap()
        .view()
        .unwrap();
    assert!(refused(&view, "delay").contains("a memory budget of 100 B is too small"));
}

#[test]
fn an_edge_with_other_values_is_in_a_difference() {
    let (scene, db) = flights(false);
    db.append(&Changes::default().add_edge("ORD", "JFK").with("distance", 741).add_edge("SEA", "ORD")).unwrap();
    let lines = |diff: &anden::snapshot::Diff| -> Vec<String> {
        let of = |sign: char, edge: anden::snapshot::DiffEdge<'_>| {
            let values = diff.edge_properties(&edge).unwrap();
            let values: String = values.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            assert!(edge.has_properties() && edge.weight.is_none());
            format!("{sign}{} {}{values}", edge.source, edge.target)
        };
        let removed = diff.removed().map(|edge| of('-', edge.unwrap()));
        removed.chain(diff.added().map(|edge| of('+', edge.unwrap()))).collect()
    };
    let expected = ["-ORD JFK distance=740 delay=2.0 day=2001-01-03", "+ORD JFK distance=741"];
    assert_eq!(lines(&db.diff(1, 2).unwrap()), expected);
    // Another database with other ids and rows holds the same graph except for the change.
    let mut turned: Vec<&str> = FLIGHTS.lines().skip(2).collect();
    turned.reverse();
    let other = scene.load("other", &format!("{}\n{}\n", FLIGHTS.lines().next().unwrap(), turned.join("\n")));
    assert_eq!(lines(&db.diff_with(1, &other, 1).unwrap()), [""; 0]);
    let found = lines(&db.diff_with(2, &other, 1).unwrap());
    assert_eq!(found, ["-ORD JFK distance=741", "+ORD JFK distance=740 delay=2.0 day=2001-01-03"]);
}

#[test]
fn names_that_files_cannot_hold_are_refused() {
    let scene = Scene::new(Options::default());
    let path = scene.path("edges.csv");
    std::fs::write(&path, "u,v,source\n1,2,3\n").unwrap();
    let source = SourceOptions {
        edge_properties: WantedProperties::All,
        source_column: Some("u".into()),
        target_column: Some("v".into()),
        ..SourceOptions::default()
    };
    let options = LoadOptions { source, ..LoadOptions::default() };
    let db = Database::load(scene.path("db"), &[InputPath::File(path)], &options, &scene.session).unwrap().0;
    let view = db.view().unwrap();
    assert_eq!(view.edge_schema().len(), 1);
    for (format, file) in [(ExportFormat::CSV, "b.csv"), (ExportFormat::PARQUET, "b.parquet")] {
        let error = write_file::<_, Error>(&scene.path(file), |output| view.export(format, output)).unwrap_err();
        assert!(error.to_string().ends_with("the property 'source' has the name of another column: write GraphML"));
        assert!(!scene.path(file).exists());
    }
    let graphml = scene.path("b.graphml");
    write_file::<_, Error>(&graphml, |output| view.export(ExportFormat::GRAPHML, output)).unwrap();
    assert_eq!(content(&scene.try_load("again", &graphml, None).unwrap().view().unwrap()), ["1 2|3"]);
    assert_ne!(view.edge_schema(), &PropertySchema::default());
}

#[test]
fn values_of_edges_are_updated() {
    for multigraph in [false, true] {
        let (_scene, db) = flights(multigraph);
        let before = db.view().unwrap();
        let delays = |view: &View| {
            let edges = view.edges_between("SEA", "JFK").unwrap();
            let delay = |edge: &anden::query::FoundEdge| {
                let found = edge.properties.iter().find(|(name, _)| *name == "delay");
                found.map(|(_, value)| value.as_value().to_string())
            };
            edges.iter().filter_map(delay).collect::<Vec<_>>()
        };
        let first = if multigraph { vec!["-3.5"] } else { vec![] };
        assert_eq!(delays(&before), [&first[..], &["10.0"]].concat());
        let num_edges = before.num_edges();
        let (added, gate) = (Update::add_edge("JFK", "LAX"), Update::set_edge("JFK", "LAX", "gate", "B7"));
        db.apply(&[Update::set_edge("SEA", "JFK", "delay", 11), added, gate]).unwrap();
        let after = db.view().unwrap();
        assert_eq!(delays(&after), [&first[..], &["11.0"]].concat());
        assert_eq!(after.edges_between("JFK", "LAX").unwrap()[0].properties[0].0, "gate");
        assert_eq!((after.num_edges(), db.snapshots().len()), (num_edges + 1, 1), "a commit makes no snapshot");
        assert_eq!(delays(&before), [&first[..], &["10.0"]].concat(), "a view stays as it is");
        let strict = db.apply_strict(&[Update::set_edge("LAX", "SEA", "delay", 1)]).unwrap_err();
        let Error::NotFound { what: NotFound::Edge { source, target, .. }, .. } = &strict else { panic!("{strict}") };
        assert_eq!((source, target), (&Key::from("LAX"), &Key::from("SEA")));
        assert_eq!(strict.to_string(), "there is no edge from LAX to SEA");
        db.verify().unwrap();
    }
}
