//! Files that `export`, `run`, `generate` and `apply` write: in the format of their ending, or not at all.

use serde_json::{Value, json};

use crate::scene::Scene;

/// Every option for an output file, with endings that it accepts and endings that it refuses.
const OPTIONS: [(&[&str], &[&str], &[&str]); 5] = [
    (
        &["export", "none"],
        &["csv", "graphml", "el", "wsg", "jsonl", "net", "arrow", "feather"],
        &["tsv", "gr", "metis", "v"],
    ),
    (
        &["export", "none", "edges", "--vertices"],
        &["csv", "parquet", "v", "jsonl"],
        &["graphml", "mtx", "sg", "gexf", "json", "e", "arrow"],
    ),
    (
        &["run", "none", "wcc", "--output"],
        &["csv", "parquet", "jsonl", "ndjson"],
        &["graphml", "mtx", "sg", "el", "tsv", "feather"],
    ),
    (&["generate", "grid", "--width", "2", "--height", "2", "-o"], &["sg", "el"], &["csv", "parquet", "mtx", "jsonl"]),
    (&["apply", "none", "-", "--acks"], &["txt"], &["csv", "jsonl", "parquet"]),
];

/// Endings of formats that no option writes, some of them compressed.
const FOREIGN: [&str; 16] = [
    "dot", "xlsx", "npy", "npz", "orc", "avro", "h5", "db", "sqlite", "zip", "tar", "csv.gz", "txt.zst", "bz2", "xz",
    "PDF",
];

#[test]
fn foreign_endings_are_refused_before_any_work() {
    let scene = Scene::new();
    for (option, _, refused) in OPTIONS {
        for ending in refused.iter().chain(&FOREIGN) {
            let name = format!("out.{ending}");
            let last = format!("'.{}' is the ending of", ending.rsplit('.').next().unwrap().to_lowercase());
            let ran = scene.anden(&[option, &[&name]].concat());
            // The ending is refused before the missing database is noticed.
            ran.refused(&["cannot write ", &last, &format!("which is not written ({name}); use .txt")]);
            assert_eq!(scene.names(), [""; 0], "{name}");
        }
    }
}

#[test]
fn other_endings_reach_the_work() {
    let scene = Scene::new();
    for (option, written, _) in OPTIONS {
        for ending in
            written.iter().map(|ending| format!(".{ending}")).chain(["", ".out", ".ranks", ".2024"].map(Into::into))
        {
            let ran = scene.anden(&[option, &[&format!("out{ending}")]].concat());
            assert_ne!(ran.status, 2, "{ran:?}");
        }
    }
}

#[test]
fn refusals_list_the_endings_that_are_written() {
    let scene = Scene::new();
    let refused = |arguments: &[&str], list: &str| {
        scene.anden(arguments).refused(&[list]);
    };
    refused(
        &["export", "db", "k.dot"],
        "cannot write edges: '.dot' is the ending of a DOT file, which is not written (k.dot); use .txt, .el, .wel, .e, \
         .csv, .mtx, .parquet, .arrow, .feather, .graphml, .sg, .wsg, .gexf, .gml, .net, .json, .jsonl or .ndjson, or \
         choose one with --format",
    );
    refused(&["run", "db", "wcc", "--output", "r.npy"], "use .txt, .csv, .parquet, .jsonl or .ndjson");
    refused(&["export", "db", "a", "--vertices", "v.xlsx"], "use .txt, .v, .csv, .parquet, .jsonl or .ndjson");
    refused(&["generate", "rmat", "--scale", "4", "-o", "x.mtx"], "use .txt, .el, .wel, .sg or .wsg");
}

#[test]
fn an_explicit_format_overrides_the_ending() {
    let scene = Scene::with_small(&[]);
    scene.anden(&["export", "db", "k.dot", "--format", "csv"]).succeeded();
    assert!(scene.read("k.dot").starts_with("source,target\n1,2\n"));
    scene
        .anden(&["export", "db", "k.csv.gz", "--format", "csv"])
        .refused(&["'.gz' is the ending of a compressed file"]);
}

#[test]
fn unknown_endings_stay_text() {
    let scene = Scene::with_small(&[]);
    for name in ["wcc", "wcc.out", "wcc.ranks", "wcc.txt"] {
        scene.anden(&["run", "db", "wcc", "--output", name]).succeeded();
        assert_eq!(scene.read(name), "1 1\n2 1\n3 1\n4 1\n5 5\n6 5\n", "{name}");
    }
}

/// The kernels, and the name of a vertex's value.
const KERNELS: [(&[&str], &str); 11] = [
    (&["bfs", "--source", "1"], "distance"),
    (&["bfs", "--source", "1", "--parents"], "parent"),
    (&["sssp", "--source", "1"], "distance"),
    (&["pagerank"], "score"),
    (&["bc"], "score"),
    (&["wcc"], "component"),
    (&["scc"], "component"),
    (&["cdlp"], "community"),
    (&["kcore"], "core"),
    (&["triangles"], "triangles"),
    (&["lcc"], "coefficient"),
];

/// The keys and values of a text. Marks of vertices without a value become null.
fn rows(text: &str, is_string: bool) -> Vec<(Value, Value)> {
    let value = |text: &str| match text {
        "9223372036854775807" | "infinity" | "-1" => Value::Null,
        text => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
    };
    let key = |text: &str| if is_string { json!(text) } else { value(text) };
    text.lines().map(|line| line.split_once(' ').unwrap()).map(|(k, v)| (key(k), value(v))).collect()
}

#[test]
fn values_are_tables_by_their_ending() {
    for ids in ["integer", "string", "dense"] {
        let scene = Scene::with_small(&["--weights", "--weight-type", "f64", "--ids", ids]);
        for (kernel, name) in KERNELS {
            let write = |file: &str| {
                scene.anden(&[&["run", "db"], kernel, &["--output", file]].concat()).succeeded();
                scene.path(file)
            };
            write("v.txt");
            let is_vertex = ["parent", "component", "community"].contains(&name);
            let mut expected = rows(&scene.read("v.txt"), ids == "string");
            if ids == "string" && is_vertex {
                let text = |value: &Value| if value.is_null() { Value::Null } else { json!(value.to_string()) };
                expected.iter_mut().for_each(|(_, value)| *value = text(value));
            }
            for file in ["v.jsonl", "v.ndjson"] {
                write(file);
                let parsed =
                    scene.read(file).lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
                let found: Vec<_> = parsed.iter().map(|row| (row["key"].clone(), row[name].clone())).collect();
                assert!(same(&found, &expected), "{ids} {kernel:?}: {found:?} {expected:?}");
            }
            write("v.csv");
            let table = scene.read("v.csv");
            assert_eq!(table.lines().next(), Some(&*format!("key,{name}")));
            assert_eq!(table.lines().count(), expected.len() + 1);
            let nulls = |text: &str| text.lines().filter(|line| line.ends_with(',')).count();
            assert_eq!(nulls(&table), expected.iter().filter(|(_, value)| value.is_null()).count());
            write("v.parquet");
            for file in ["v.csv", "v.parquet"] {
                let found = read_back(&scene, file, name, ids, &expected);
                assert!(same(&found, &expected), "{ids} {kernel:?} {file}: {found:?} {expected:?}");
            }
        }
    }
}

/// The rows of a table, read back by a load as vertices.
fn read_back(scene: &Scene, file: &str, name: &str, ids: &str, expected: &[(Value, Value)]) -> Vec<(Value, Value)> {
    let _ = std::fs::remove_dir_all(scene.path("back"));
    let load = ["load", "back", "small.txt", "--ids", ids, "--vertices", file, "--vertex-column", "key"];
    assert_eq!(scene.anden(&load).status, 0, "{load:?}");
    let value = |key: &Value| {
        let text = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
        scene.json(&["query", "back", "vertex", &text])["result"]["properties"][name].clone()
    };
    expected.iter().map(|(key, _)| (key.clone(), value(key))).collect()
}

/// Whether rows have equal keys and values. Numbers and their texts are equal.
fn same(found: &[(Value, Value)], expected: &[(Value, Value)]) -> bool {
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    let is_same = |a: &Value, b: &Value| a == b || number(a).is_some() && number(a) == number(b);
    found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| is_same(&a.0, &b.0) && is_same(&a.1, &b.1))
}

#[test]
fn exports_name_what_they_leave_out() {
    let scene = Scene::new();
    scene.write("edges.csv", "source,target,kind,cost\n1,2,a,3\n2,3,b,4\n");
    scene.write("names.csv", "id,name\n1,one\n2,two\n");
    scene.anden(&["load", "db", "edges.csv", "--vertices", "names.csv"]).succeeded();
    scene.anden(&["load", "weighted", "edges.csv", "--weight-column", "cost", "--weight-type", "u32"]);
    let (kind, cost, name) =
        ("the edge property \"kind\"", "the edge property \"cost\"", "the vertex property \"name\"");
    let cases: [(&[&str], &[&str]); 16] = [
        (&["db", "a.txt"], &[kind, cost, name]),
        (&["db", "a.mtx"], &[kind, cost, name]),
        (&["db", "a.sg"], &[kind, cost, name]),
        (&["db", "a.csv"], &[name]),
        (&["db", "a.parquet", "--vertices", "b.txt"], &[name]),
        (&["db", "a.parquet", "--vertices", "b.parquet"], &[]),
        (&["db", "a.csv", "--vertices", "b.csv"], &[]),
        (&["db", "a.graphml"], &[]),
        (&["db", "a.gexf"], &[]),
        (&["db", "a.json"], &[]),
        (&["db", "a.jsonl", "--vertices", "b.jsonl"], &[]),
        (&["weighted", "a.net"], &[kind]),
        (&["weighted", "a.sg"], &["the weights", kind]),
        (&["weighted", "a.wsg"], &[kind]),
        (&["weighted", "a.txt"], &[kind]),
        (&["weighted", "a.mtx"], &[kind]),
    ];
    for (arguments, left_out) in cases {
        let ran = scene.anden(&[&["export"], arguments, &["--json"]].concat());
        assert_eq!(ran.status, 0, "{ran:?}");
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(report["left_out"], json!(left_out), "{arguments:?}");
        let notes: Vec<_> =
            ran.stderr.lines().filter(|line| line.starts_with("anden: note: the export leaves out")).collect();
        assert_eq!(notes.len(), usize::from(!left_out.is_empty()), "{ran:?}");
        assert!(left_out.iter().all(|what| notes[0].contains(what)), "{ran:?}");
        scene.anden(&[&["export"], arguments, &["--quiet"]].concat()).succeeded();
    }
    let ran = scene.anden(&["export", "db", "-"]);
    assert!(ran.stderr.contains(kind) && ran.stdout == "1 2\n2 3\n", "{ran:?}");
}

/// An output that replaces a file of a database would destroy it with status 0.
#[test]
fn outputs_never_replace_files_of_a_database() {
    let scene = Scene::with_small(&[]);
    std::os::unix::fs::symlink(scene.path("db/MANIFEST"), scene.path("link")).unwrap();
    let names: Vec<String> = std::fs::read_dir(scene.path("db"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let files = names.iter().map(|name| format!("db/{name}")).chain(["link".to_owned()]);
    for file in files {
        for arguments in [
            &["export", "db", &file][..],
            &["export", "db", &file, "--format", "edgelist"],
            &["export", "db", "x.csv", "--vertices", &file],
            &["run", "db", "wcc", "--output", &file],
            &["generate", "grid", "--width", "2", "--height", "2", "-o", &file],
            &["apply", "db", "-", "--acks", &file],
        ] {
            scene.anden_with_input(arguments, b"").refused(&[&file, "is a file of a database: name another file"]);
        }
    }
    scene.anden(&["verify", "db"]).succeeded();
    scene.anden(&["export", "db", "db/edges.txt"]).succeeded();
}
