//! `load`, `export`, `generate` and `verify`.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::json;

use crate::scene::{Scene, files_below, keys};

#[test]
fn a_load_reports_what_it_did() {
    let scene = Scene::new();
    scene.write("small.txt", crate::scene::SMALL);
    let report = scene.json(&["load", "db", "small.txt", "--quiet"]);
    let numbers = ["vertices", "edges", "snapshot", "seconds", "bytes", "skipped", "peak_bytes"];
    let columns = ["source_column", "target_column", "weight_column", "properties", "left_out"];
    let counts = ["edges_read", "merged", "duplicates", "loops", "comment_lines", "notes"];
    assert_eq!(keys(&report), [&numbers[..], &columns, &counts].concat());
    assert_eq!((&report["vertices"], &report["edges"], &report["snapshot"]), (&json!(6), &json!(6), &json!(1)));
    assert!(report["bytes"].as_u64().unwrap() > 0 && report["peak_bytes"].as_u64().unwrap() > 0);
    let verified = scene.json(&["verify", "db"]);
    assert_eq!(verified["ok"], true);
    assert!(scene.anden(&["verify", "db"]).succeeded().stdout.starts_with("ok"));
}

#[test]
fn the_smallest_graphs() {
    let scene = Scene::new();
    scene.write("empty.txt", "");
    scene.write("comment.txt", "# nothing\n");
    scene.write("loop.txt", "7 7\n7 7\n");
    scene.write("one.v", "7\n");
    for (database, file) in [("a", "empty.txt"), ("b", "comment.txt")] {
        let report = scene.json(&["load", database, file]);
        assert_eq!((&report["vertices"], &report["edges"]), (&json!(0), &json!(0)));
    }
    let report = scene.json(&["load", "c", "loop.txt"]);
    assert_eq!((&report["vertices"], &report["edges"]), (&json!(1), &json!(1)));
    let report = scene.json(&["load", "d", "empty.txt", "--vertices", "one.v"]);
    assert_eq!((&report["vertices"], &report["edges"]), (&json!(1), &json!(0)));
    for database in ["a", "b", "c", "d"] {
        scene.anden(&["verify", database]).succeeded();
        scene.anden(&["info", database]).succeeded();
        for kernel in ["pagerank", "wcc", "triangles"] {
            scene.anden(&["run", database, kernel, "--check"]).succeeded();
        }
    }
    assert_eq!(scene.json(&["run", "c", "bfs", "--source", "7"])["result"]["reached"], 1);
    assert_eq!(scene.json(&["run", "d", "bfs", "--source", "7"])["result"]["reached"], 1);
}

#[test]
fn repeated_edges_follow_the_rule() {
    let scene = Scene::new();
    scene.write("edges.txt", "1 2 3\n1 2 1\n1 2 2\n2 2 9\n");
    let distance = |options: &[&str]| {
        let report = scene.json(&[&["load", "db", "edges.txt", "--weights"], options].concat());
        let run = scene.json(&["run", "db", "sssp", "--source", "1"]);
        std::fs::remove_dir_all(scene.path("db")).unwrap();
        (report["edges"].as_u64().unwrap(), run["result"]["max_distance"].as_f64().unwrap())
    };
    assert_eq!(distance(&[]), (2, 1.0));
    assert_eq!(distance(&["--duplicates", "min"]), (2, 1.0));
    assert_eq!(distance(&["--duplicates", "last"]), (2, 2.0));
    assert_eq!(distance(&["--duplicates", "sum"]), (2, 6.0));
    assert_eq!(distance(&["--duplicates", "keep"]), (4, 1.0));
    assert_eq!(distance(&["--multigraph"]), (4, 1.0));
}

#[test]
fn graph_kinds() {
    let scene = Scene::new();
    scene.write("edges.txt", "2 1\n1 2\n2 3\n3 3\n");
    let neighbors =
        |database: &str, key: &str| scene.json(&["query", database, "neighbors", key])["result"].to_string();
    assert_eq!(scene.json(&["load", "directed", "edges.txt", "--directed"])["edges"], 4);
    assert_eq!(scene.json(&["load", "undirected", "edges.txt", "--undirected"])["edges"], 3);
    // In an ordered graph, the source is smaller than the target, so it has no loops.
    assert_eq!(scene.json(&["load", "ordered", "edges.txt", "--ordered", "--quiet"])["edges"], 2);
    assert_eq!((neighbors("directed", "3"), neighbors("undirected", "3")), ("[3]".into(), "[2,3]".into()));
    assert_eq!(scene.json(&["info", "undirected"])["directed"], false);
    scene.anden(&["load", "out", "edges.txt", "--out-only"]).succeeded();
    scene.anden(&["query", "out", "neighbors", "3", "--in"]).failed(&["in-edges"]);
    for database in ["directed", "undirected", "ordered", "out"] {
        scene.anden(&["verify", database]).succeeded();
    }
}

/// A direction that an input states counts, for files and pipes, unless options override it.
#[test]
fn directions_that_inputs_state() {
    let scene = Scene::new();
    scene.write("path.graph", "3 2\n2\n1 3\n2\n");
    scene.write("more.txt", "3 1\n");
    let metis = scene.read("path.graph");
    let shape = |database: &str| {
        let info = scene.json(&["info", database]);
        (info["directed"].as_bool().unwrap(), info["edges"].as_u64().unwrap())
    };
    scene.anden(&["load", "file", "path.graph"]).succeeded();
    scene.anden_with_input(&["load", "pipe", "-", "--format", "metis"], metis.as_bytes()).succeeded();
    scene.anden(&["load", "both", "path.graph", "--directed"]).succeeded();
    scene.anden(&["load", "mixed", "path.graph", "more.txt"]).succeeded();
    assert_eq!((shape("file"), shape("pipe")), ((false, 2), (false, 2)));
    assert_eq!((shape("both"), shape("mixed")), ((true, 4), (false, 3)));
    // The direction of the edges in the second file is unknown.
    let parts = ["more.txt", "expected a graph that is undirected", "append"];
    scene.anden(&["load", "no", "path.graph", "more.txt", "--directed"]).failed(&parts);
    scene.anden(&["append", "both", "more.txt", "path.graph"]).failed(&parts);
    scene.anden(&["append", "both", "more.txt"]).succeeded();
    scene.anden(&["append", "both", "path.graph"]).succeeded();
    assert_eq!((shape("both"), scene.path("no").exists()), ((true, 5), false));
    scene.anden(&["append", "mixed", "more.txt", "path.graph"]).succeeded();
}

#[test]
fn dense_ids_are_keys() {
    let scene = Scene::new();
    scene.write("edges.txt", "0 3\n3 1\n");
    let report = scene.json(&["load", "db", "edges.txt", "--ids", "dense"]);
    assert_eq!((&report["vertices"], &report["edges"]), (&json!(4), &json!(2)));
    assert_eq!(scene.json(&["query", "db", "vertex", "2"])["result"]["out_degree"], 0);
    scene.anden(&["query", "db", "vertex", "4"]).failed(&["4", "does not exist"]);
}

/// Regression: formats that count vertices from 1 left an unused id 0.
#[test]
fn one_based_formats_get_zero_based_ids() {
    let scene = Scene::new();
    scene.write("a.mtx", "%%MatrixMarket matrix coordinate pattern general\n4 4 2\n1 4\n 4  3 \n");
    scene.write("b.graph", "4 2\n4\n\n4\n1 3\n");
    scene.write("c.gr", "p sp 4 2\na 1 4 7\na  4 3 7\n");
    for file in ["a.mtx", "b.graph", "c.gr"] {
        let report = scene.json(&["load", file.split('.').next().unwrap(), file, "--ids", "dense", "--quiet"]);
        assert_eq!((&report["vertices"], &report["edges"]), (&json!(4), &json!(2)), "{file}");
        let db = file.split('.').next().unwrap();
        assert_eq!(scene.json(&["query", db, "edge", "0", "3"])["result"], true, "{file}");
        assert_eq!(scene.json(&["query", db, "edge", "3", "2"])["result"], true, "{file}");
        scene.anden(&["query", db, "vertex", "4"]).failed(&["does not exist"]);
        // The exported graph loads as an equal graph, without a note about lost keys.
        scene.anden(&["export", db, "again.mtx"]).succeeded();
        scene.anden(&["load", "again", "again.mtx", "--ids", "dense"]).succeeded();
        assert_eq!(scene.anden(&["diff", db, "1", "1", "--with", "again"]).succeeded().stdout, "", "{file}");
        std::fs::remove_dir_all(scene.path("again")).unwrap();
    }
    scene.write("more.mtx", "%%MatrixMarket matrix coordinate pattern general\n4 4 1\n2 1\n");
    assert_eq!(scene.json(&["append", "a", "more.mtx"])["added"], 1);
    assert_eq!(scene.json(&["query", "a", "edge", "1", "0"])["result"], true);
}

#[test]
fn output_is_ascending_by_key_whatever_the_ids() {
    let scene = Scene::new();
    scene.write("edges.txt", "900 5\n5 70\n70 1000000000000\n");
    scene.anden(&["load", "db", "edges.txt", "--io-order"]).succeeded();
    let ran = scene.anden(&["run", "db", "bfs", "--source", "900", "--output", "-"]).succeeded();
    assert_eq!(ran.stdout, "5 1\n70 2\n900 0\n1000000000000 3\n");
    scene.write("words.txt", "b a\na c\n");
    scene.anden(&["load", "words", "words.txt", "--io-order", "--ids", "string", "--header", "none"]).succeeded();
    let ran = scene.anden(&["run", "words", "bfs", "--source", "b", "--output", "-"]).succeeded();
    assert_eq!(ran.stdout, "a 1\nb 0\nc 2\n");
}

#[test]
fn answers_are_equal_under_every_order() {
    let scene = Scene::new();
    // Two components, of which the hub of each has the largest key.
    scene.write("edges.txt", "9 1\n9 2\n9 3\n3 2\n8 4\n8 5\n1 9\n4 8\n2 900\n3 900\n");
    let orders = ["auto", "input", "degree", "hub", "bfs"];
    let mut expected = Vec::new();
    for order in orders {
        scene.anden(&["load", order, "edges.txt", "--order", order]).succeeded();
        scene.anden(&["verify", order]).succeeded();
        let answers: Vec<String> = [
            &["run", order, "wcc", "--output", "-"][..],
            &["run", order, "scc", "--output", "-"],
            &["run", order, "cdlp", "--output", "-"],
            &["run", order, "bfs", "--source", "1", "--parents", "--output", "-"],
            &["query", order, "neighbors", "9"],
            &["query", order, "khop", "1", "2"],
        ]
        .map(|args| scene.anden(args).succeeded().stdout)
        .into();
        if expected.is_empty() {
            assert_eq!(answers[0], "1 1\n2 1\n3 1\n4 4\n5 4\n8 4\n9 1\n900 1\n");
            assert!(answers[3].contains("900 2\n"), "{}", answers[3]);
            expected = answers.clone();
        }
        assert_eq!(answers, expected, "{order}");
    }
    let ids = |order| {
        [1, 2, 3, 4, 5, 8, 9, 900]
            .map(|key| scene.json(&["query", order, "vertex", &key.to_string()])["result"]["id"].as_u64().unwrap())
    };
    assert_eq!(ids("auto"), [0, 1, 2, 3, 4, 5, 6, 7]);
    // Degrees by key: 2, 3, 3, 2, 1, 3, 4, 2; their mean is 2.5.
    assert_eq!(ids("degree"), [4, 1, 2, 5, 7, 3, 0, 6]);
    assert_eq!(ids("hub"), [4, 1, 2, 5, 6, 3, 0, 7]);
    assert_eq!(ids("bfs"), [3, 1, 2, 6, 7, 5, 0, 4]);
    assert_eq!(ids("input"), [1, 2, 3, 5, 6, 4, 0, 7]);
}

#[test]
fn contradicting_orders_are_refused() {
    let scene = Scene::new();
    scene.write("edges.txt", "9 1\n9 2\n");
    let load = |options: &[&'static str]| [&["load", "db", "edges.txt"], options].concat();
    scene.anden(&load(&["--io-order", "--order", "bfs"])).refused(&["--io-order", "--order bfs"]);
    scene.anden(&load(&["--order", "size"])).refused(&["auto, input, degree"]);
    scene.anden(&load(&["--order", "degree", "--ids", "dense"])).failed(&["--order degree", "--ids dense"]);
    scene.anden(&load(&["--order", "hub", "--ordered"])).failed(&["--order hub", "--ordered"]);
    scene.anden(&load(&["--io-order", "--order", "input"])).succeeded();
    let appended = scene.anden(&["append", "db", "edges.txt", "--order", "degree"]);
    appended.failed(&["--order degree", "fixed when a graph is loaded"]);
    scene.anden(&["append", "db", "edges.txt", "--order", "input"]).succeeded();
}

#[test]
fn several_inputs_and_standard_input() {
    let scene = Scene::new();
    scene.write("a.txt", "1 2\n");
    scene.write("b.txt", "2 3\n");
    assert_eq!(scene.json(&["load", "db", "a.txt", "b.txt"])["edges"], 2);
    scene.anden_with_input(&["load", "piped", "-"], b"1 2\n2 3\n3 4\n").succeeded();
    assert_eq!(scene.json(&["info", "piped"])["edges"], 3);
    scene.anden(&["load", "twice", "-", "-"]).refused(&["once"]);
}

#[test]
fn a_line_that_may_be_a_header_is_told() {
    let scene = Scene::new();
    scene.write("pairs.csv", "ann,bob\nbob,cid\n");
    let load = |database: &str, more: &[&str]| {
        scene.anden(&[&["load", database, "pairs.csv", "--ids", "string", "--json"], more].concat())
    };
    let ran = load("db", &[]);
    let note = "anden: note: pairs.csv: the first line 'ann,bob' is taken as an edge: ";
    assert!(ran.status == 0 && ran.stderr.starts_with(note), "{ran:?}");
    assert!(ran.stdout.contains("\"edges\":2"), "{ran:?}");
    assert!(load("b", &["--columns", "u,v"]).succeeded().stdout.contains("\"edges\":2"));
    assert!(load("c", &["--quiet"]).succeeded().stdout.contains("\"edges\":2"));
    let header = ["--source-column", "ann", "--target-column", "bob"];
    assert!(load("d", &header).succeeded().stdout.contains("\"edges\":1"));
    let ran = scene.anden(&["append", "db", "pairs.csv"]);
    assert!(ran.status == 0 && ran.stderr.starts_with(note), "{ran:?}");
    scene.write("gone.csv", "ann,bob\n");
    scene.anden(&["append", "db", "--remove", "gone.csv"]).succeeded();
    scene.write("links.csv", "src_name,dst_name,kind\na,b,new\n");
    scene.anden(&["load", "e", "links.csv", "--ids", "string"]).failed(&[
        "links.csv:1",
        "--source-column",
        "--columns",
    ]);
    assert!(!scene.path("e").exists());
}

#[test]
fn exported_graph_loads_again() {
    let scene = Scene::with_small(&["--weights"]);
    let expected = scene.json(&["run", "db", "sssp", "--source", "1"])["result"].clone();
    for (file, options) in [
        ("edges.txt", &["--weights"][..]),
        ("edges.csv", &["--weights"]),
        ("edges.wel", &["--weights", "--weight-type", "f64"]),
    ] {
        let report = scene.json(&["export", "db", file]);
        assert_eq!((&report["vertices"], &report["edges"]), (&json!(6), &json!(6)));
        let database = format!("{file}.anden");
        scene.anden(&[&["load", &database, file], options].concat()).succeeded();
        assert_eq!(scene.json(&["run", &database, "sssp", "--source", "1"])["result"], expected, "{file}");
    }
    let ran = scene.anden(&["export", "db", "-", "--format", "edgelist"]).succeeded();
    assert_eq!(ran.stdout, "1 2 0.5\n1 3 4\n2 3 1\n3 4 1\n4 2 2\n5 6 1\n");
    scene.anden(&["load", "undirected", "small.txt", "--undirected", "--quiet"]).succeeded();
    assert_eq!(scene.anden(&["export", "undirected", "-"]).succeeded().lines().len(), 6);
    scene.anden(&["export", "undirected", "small.sg"]).succeeded();
    let report = scene.json(&["load", "from-gap", "small.sg", "--ids", "dense"]);
    assert_eq!((&report["vertices"], &report["edges"]), (&json!(6), &json!(6)));
    assert_eq!(scene.json(&["info", "from-gap"])["directed"], false);
}

#[test]
fn generated_graphs_do_not_depend_on_threads() {
    let scene = Scene::new();
    let kinds = [
        &["rmat", "--scale", "10", "--degree", "4"][..],
        &["uniform", "--scale", "10", "--degree", "4"],
        &["grid", "--width", "20", "--height", "30"],
    ];
    for kind in kinds {
        for extra in [&[][..], &["--weights", "1..255"]] {
            for file in ["a.txt", if extra.is_empty() { "a.sg" } else { "a.wsg" }] {
                let other = file.replace('a', "b");
                let common = [&["generate"], kind, extra, &["--seed", "42"]].concat();
                scene.anden(&[&common[..], &["-o", file, "--threads", "1"]].concat()).succeeded();
                scene.anden(&[&common[..], &["-o", &other, "--threads", "3"]].concat()).succeeded();
                let bytes = |name: &str| std::fs::read(scene.path(name)).unwrap();
                assert!(bytes(file) == bytes(&other), "{kind:?} {extra:?} {file}");
            }
        }
    }
    scene.anden(&["load", "db", "a.wsg", "--weights", "--ids", "dense"]).succeeded();
    let info = scene.json(&["info", "db"]);
    assert_eq!((&info["vertices"], &info["weighted"]), (&json!(600), &json!(true)));
    scene.anden(&["run", "db", "sssp", "--source", "0", "--check"]).succeeded();
}

#[test]
fn another_seed_gives_another_graph() {
    let scene = Scene::new();
    let text = |seed: &str| {
        scene.anden(&["generate", "rmat", "--scale", "8", "--degree", "4", "--seed", seed]).succeeded().stdout
    };
    assert_ne!(text("1"), text("2"));
    assert_eq!(text("1"), text("1"));
}

#[test]
fn every_format_of_export_is_one_of_load() {
    let scene = Scene::new();
    scene.write("edges.csv", "source,target,weight\nann,bob,0.5\nbob,\"c, d\",2\n");
    scene.write("lone.csv", "id,age\nann,7\nlone,\n");
    let options = ["--ids", "string", "--weights"];
    let load = |name: &str, file: &str, more: &[&str]| {
        let report = scene.json(&[&["load", name, file], &options[..], more].concat());
        (report["vertices"].as_u64(), report["edges"].as_u64())
    };
    assert_eq!(load("db", "edges.csv", &["--vertices", "lone.csv"]), (Some(4), Some(2)));
    scene.json(&["export", "db", "a.graphml"]);
    assert_eq!(load("graphml", "a.graphml", &[]), (Some(4), Some(2)));
    assert!(scene.anden(&["query", "graphml", "vertex", "ann"]).succeeded().stdout.contains('7'));
    let ran = scene.anden(&["export", "db", "a.parquet", "--vertices", "b.parquet"]).succeeded();
    assert!(ran.stdout.contains("wrote b.parquet: 4 vertices"), "{}", ran.stdout);
    assert_eq!(load("parquet", "a.parquet", &["--vertices", "b.parquet"]), (Some(4), Some(2)));
    scene.json(&["export", "db", "a.csv", "--vertices", "b.csv"]);
    assert_eq!(load("csv", "a.csv", &["--vertices", "b.csv"]), (Some(4), Some(2)));
    scene
        .anden(&["export", "db", "b.txt", "--vertices", "c.txt"])
        .failed(&["c.txt: the key", "does not fit in a list of keys: write CSV"]);
    for output in [&["a.mtx"][..], &["-", "--format", "mtx"]] {
        let ran = scene.anden(&[&["export", "db"], output].concat());
        assert_eq!(ran.status, 0);
        assert!(ran.stderr.contains("--vertices FILE writes the key of each row"), "{}", ran.stderr);
    }
    let report = scene.json(&["load", "mtx", "a.mtx", "--weights"]);
    assert_eq!((report["vertices"].as_u64(), report["edges"].as_u64()), (Some(4), Some(2)));
    scene.anden(&["export", "mtx", "a.sg", "--quiet"]).succeeded();
    let weighted = scene.anden(&["export", "mtx", "-", "--format", "mtx"]).succeeded().stdout;
    assert_eq!(weighted, "%%MatrixMarket matrix coordinate real general\n4 4 2\n1 2 0.5\n2 3 2\n");
    let piped = scene
        .anden_with_input(&["load", "piped", "-", "--format", "gapbs"], &std::fs::read(scene.path("a.sg")).unwrap());
    assert!(piped.succeeded().stdout.contains("4"));
}

/// The total length of a database's files, as `du --apparent-size` counts without the directory.
fn bytes_on_disk(scene: &Scene, database: &str) -> u64 {
    let lengths = files_below(&scene.path(database)).into_iter().map(|file| file.metadata().unwrap().len());
    lengths.sum()
}

#[test]
fn info_counts_the_bytes_of_all_files() {
    let scene = Scene::with_small(&[]);
    scene.write("more.txt", "1 6\n");
    scene.write("edges.csv", "source,target,kind\n1,2,a\n2,3,b\n");
    let count = |database: &str, what: &str| {
        let bytes = scene.json(&["info", database])["bytes"].clone();
        assert_eq!(bytes, bytes_on_disk(&scene, database), "{what}");
    };
    count("db", "one snapshot");
    scene.anden(&["append", "db", "more.txt", "--no-maintenance"]).succeeded();
    count("db", "two snapshots");
    scene.anden_with_input(&["apply", "db", "-", "--durability", "none"], b"+ 1 9\n").succeeded();
    count("db", "updates");
    scene.anden(&["merge", "db"]).succeeded();
    count("db", "a merge");
    scene.anden(&["load", "words", "small.txt", "--ids", "string", "--snapshots", "3", "--quiet"]).succeeded();
    count("words", "string keys");
    scene.anden(&["load", "rows", "edges.csv", "--multigraph"]).succeeded();
    count("rows", "edge properties");
    scene.write("db/notes.txt", "kept by hand");
    count("db", "a file of the user");
}

/// The WAL of a killed writer has reserved space, which counts.
#[test]
fn info_counts_the_log_with_its_room() {
    let scene = Scene::with_small(&[]);
    let mut writer = scene.command(&["apply", "db", "-", "--batch", "1", "--acks", "-"]);
    let mut writer = writer.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    writer.stdin.as_mut().unwrap().write_all(b"+ 1 9\n").unwrap();
    let mut answer = String::new();
    BufReader::new(writer.stdout.take().unwrap()).read_line(&mut answer).unwrap();
    writer.kill().unwrap();
    writer.wait().unwrap();
    let info = scene.json(&["info", "db"]);
    assert!(info["log"]["bytes"].as_u64().unwrap() > 0, "{info}");
    assert_eq!(info["bytes"], bytes_on_disk(&scene, "db"));
}

#[test]
fn weights_keep_their_type_where_files_state_it() {
    let scene = Scene::new();
    scene.write("a.txt", "1 2 7\n2 3 4\n");
    for weight_type in ["u32", "i64", "f32", "f64"] {
        let database = format!("{weight_type}.anden");
        scene.json(&["load", &database, "a.txt", "--weight-type", weight_type]);
        for ending in ["graphml", "gexf", "parquet"] {
            let (file, back) = (format!("{weight_type}.{ending}"), format!("{weight_type}-{ending}"));
            scene.json(&["export", &database, &file]);
            scene.json(&["load", &back, &file, "--weights"]);
            assert_eq!(scene.json(&["info", &back])["weight_type"], weight_type, "{ending}");
            let over = format!("{back}-f64");
            scene.json(&["load", &over, &file, "--weight-type", "f64"]);
            assert_eq!(scene.json(&["info", &over])["weight_type"], "f64", "{ending}");
        }
    }
    // Inputs of unlike types have no type in common.
    scene.json(&["load", "both", "u32.parquet", "i64.parquet", "--weights"]);
    assert_eq!(scene.json(&["info", "both"])["weight_type"], "f64");
    scene.json(&["load", "same", "u32.parquet", "u32.graphml", "--weights"]);
    assert_eq!(scene.json(&["info", "same"])["weight_type"], "u32");
}

#[test]
fn documents_load_by_their_names() {
    let scene = Scene::new();
    scene.write("edges.csv", "source,target,weight,kind\n1,2,0.5,a\n2,5,2,b\n");
    scene.write("names.csv", "id,name\n1,Ann\n9,lone\n");
    scene.json(&["load", "db", "edges.csv", "--vertices", "names.csv"]);
    for (ending, format) in [("gexf", "gexf"), ("gml", "gml"), ("json", "json"), ("net", "pajek"), ("jsonl", "jsonl")] {
        let (file, back) = (format!("a.{ending}"), format!("{ending}.anden"));
        let exported = scene.json(&["export", "db", &file, "--quiet"]);
        assert_eq!(exported["edges"], 2, "{ending}");
        assert_eq!(scene.json(&["export", "db", "same.txt", "--format", format, "--quiet"])["edges"], 2);
        assert_eq!(scene.read(&file), scene.read("same.txt"));
        let loaded = scene.json(&["load", &back, &file, "--quiet"]);
        let num_vertices = if ending == "jsonl" { 3 } else { 4 };
        assert_eq!((&loaded["edges"], &loaded["vertices"]), (&json!(2), &json!(num_vertices)), "{ending}");
        assert_eq!(scene.json(&["query", &back, "neighbors", "2"])["result"], json!([5]), "{ending}");
        if ["gexf", "gml", "json"].contains(&ending) {
            let vertex = scene.json(&["query", &back, "vertex", "1"]);
            assert_eq!(vertex["result"]["properties"]["name"], "Ann", "{ending}");
        }
    }
}
