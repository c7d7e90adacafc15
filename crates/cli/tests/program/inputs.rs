//! Inputs with columns: the columns that are read, and the reports about the rest.

use serde_json::{Value, json};

use crate::scene::{Ran, Scene};

/// Loads a file and allows notes. Returns the report.
fn load(scene: &Scene, file: &str, options: &[&str]) -> Value {
    let ran = scene.anden(&[&["load", "db", file, "--json"], options].concat());
    assert_eq!(ran.status, 0, "{file} {options:?}: {ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let notes: Vec<&str> = ran.stderr.lines().filter_map(|line| line.strip_prefix("anden: note: ")).collect();
    assert_eq!(report["notes"], json!(notes), "standard error and --json tell the same");
    report
}

/// The edges of the database. Removes the database.
fn edges(scene: &Scene) -> Vec<String> {
    let ran = scene.anden(&["export", "db", "-", "--format", "csv"]).succeeded();
    std::fs::remove_dir_all(scene.path("db")).unwrap();
    ran.lines()[1..].iter().map(|line| line.split(',').take(2).collect::<Vec<_>>().join(",")).collect()
}

/// Columns that are known by name, in unusual places. Regression: `edge_id` counted as a source.
#[test]
fn columns_are_known_by_name() {
    let scene = Scene::new();
    let pairs = "source/target src/dst src/dest from/to from_node/to_node from_id/to_id FromNodeId/ToNodeId u/v node_1/node_2 \
                 start/end head/tail :START_ID/:END_ID ~from/~to _from/_to origin/destination source_id/target_id id1/id2 \
                 startNode/endNode x:START_ID(Person)/y:END_ID(Person)";
    for pair in pairs.split_ascii_whitespace() {
        let (source, target) = pair.split_once('/').unwrap();
        for (file, delimiter) in [("a.csv", ","), ("a.txt", " "), ("a.tsv", "\t")] {
            let text = format!("edge_id,{target},kind,{source}\n100,6,7,5\n101,7,7,6\n").replace(',', delimiter);
            scene.write(file, text);
            let report = load(&scene, file, &[]);
            assert_eq!(report["source_column"], source, "{file} {pair}");
            assert_eq!(report["target_column"], target, "{file} {pair}");
            assert_eq!(report["weight_column"], Value::Null);
            assert_eq!(report["properties"], json!(["edge_id", "kind"]));
            assert_eq!((&report["left_out"], &report["notes"]), (&json!([]), &json!([])));
            assert_eq!(edges(&scene), ["5,6", "6,7"], "{file} {pair}");
        }
    }
}

#[test]
fn other_columns_are_refused_with_their_names() {
    let scene = Scene::new();
    scene.write("small.csv", "source,target,edge_id\n1,2,3\n");
    scene.anden(&["load", "small", "small.csv"]).succeeded();
    scene.anden(&["export", "small", "edges.parquet", "--vertices", "vertices.parquet"]).succeeded();
    scene.write("people.csv", "id,age,size\n1,2,3\n2,3,1\n");
    scene.anden(&["load", "people", "small.csv", "--vertices", "people.csv"]).succeeded();
    scene.anden(&["export", "people", "e.parquet", "--vertices", "people.parquet"]).succeeded();
    scene.write("three.csv", "edge_id,a,b\n1,2,3\n");
    scene.write("three.txt", "edge_id a b\n1 2 3\n");
    scene.write("two.csv", "source,target,from,to\n1,2,3,4\n");
    scene.write("same.csv", "id,id,since\n1,2,3\n");
    scene.write("one.csv", ",to\n1,2\n");
    scene.write("pipes.csv", "a|b|c\n1|2|3\n");
    for (file, names) in [
        ("three.csv", &["'edge_id', 'a' and 'b'"][..]),
        ("three.txt", &["'edge_id', 'a' and 'b'"]),
        ("two.csv", &["'source', 'target', 'from' and 'to'"]),
        ("same.csv", &["'id', 'id' and 'since'"]),
        ("one.csv", &["'' and 'to'"]),
        ("pipes.csv", &["'a', 'b' and 'c'"]),
        ("people.parquet", &["'id', 'age' and 'size'"]),
    ] {
        for keys in ["integer", "string"] {
            if keys == "string" && !["two.csv", "people.parquet"].contains(&file) {
                continue; // A number in the first row would make it a row.
            }
            let parts = [&[file, "--source-column", "--target-column"][..], names].concat();
            scene.anden(&["load", "db", file, "--ids", keys]).failed(&parts);
            assert!(!scene.path("db").exists());
        }
    }
    for (file, source, target, expected) in
        [("three.csv", "b", "a", "3,2"), ("three.txt", "A", "B", "2,3"), ("people.parquet", "id", "size", "1,3")]
    {
        let report = load(&scene, file, &["--source-column", source, "--target-column", target]);
        assert_eq!(report["source_column"], source.to_lowercase());
        assert_eq!(edges(&scene)[0], expected);
    }
    let report = load(&scene, "edges.parquet", &[]);
    assert_eq!((&report["source_column"], &report["properties"]), (&json!("source"), &json!(["edge_id"])));
    assert_eq!(edges(&scene), ["1,2"]);
    let report = load(
        &scene,
        "same.csv",
        &["--header", "first", "--columns", "a,b,c", "--source-column", "a", "--target-column", "b"],
    );
    assert_eq!((&report["source_column"], &report["properties"]), (&json!("a"), &json!(["c"])));
}

#[test]
fn unnamed_columns_are_never_keys() {
    let scene = Scene::new();
    for header in [",node_1,node_2", "Unnamed: 0,node_1,node_2", "\"\",a,b"] {
        scene.write("a.csv", format!("{header}\n0,5,6\n1,6,7\n"));
        let report = load(&scene, "a.csv", &[]);
        assert_eq!((&report["left_out"], &report["properties"]), (&json!([1]), &json!([])), "{header}");
        assert!(report["notes"][0].as_str().unwrap().contains("a.csv: column 1 is left out"), "{report}");
        assert_eq!(edges(&scene), ["5,6", "6,7"]);
    }
}

/// Without a header, columns 1 and 2 are the ends, and each lost column has a note.
#[test]
fn columns_without_names_count_from_one() {
    let scene = Scene::new();
    scene.write("a.txt", "# words\n1 2 1000 RT\n1 2 1001 MT\n3 3 1002 RE\n% more\n");
    scene.write("a.csv", "1,2,1000,RT\n1,2,1001,MT\n3,3,1002,RE\n");
    for (file, comments) in [("a.txt", 2), ("a.csv", 0)] {
        let report = load(&scene, file, &[]);
        let ends = json!([report["source_column"], report["target_column"], report["weight_column"]]);
        assert_eq!(ends, json!([1, 2, null]));
        assert_eq!((&report["left_out"], &report["comment_lines"]), (&json!([3, 4]), &json!(comments)));
        assert_eq!((&report["merged"], &report["duplicates"], &report["loops"]), (&json!(1), &json!("min"), &json!(1)));
        assert_eq!((&report["edges_read"], &report["skipped"]), (&json!(3), &json!(0)));
        let note = format!("{file}: columns 3 and 4 are left out; --columns names them");
        assert!(report["notes"][0].as_str().unwrap().starts_with(&note), "{report}");
        assert_eq!(edges(&scene), ["1,2", "3,3"]);
        let report = load(&scene, file, &["--weights", "--duplicates", "last"]);
        assert_eq!((&report["weight_column"], &report["left_out"]), (&json!(3), &json!([4])));
        assert_eq!((&report["merged"], &report["duplicates"]), (&json!(1), &json!("last")));
        edges(&scene);
        let report = load(&scene, file, &["--columns", "u,v,time,kind", "--multigraph"]);
        assert_eq!((&report["properties"], &report["notes"]), (&json!(["time", "kind"]), &json!([])));
        assert_eq!((&report["merged"], &report["duplicates"]), (&json!(0), &json!("keep")));
        assert_eq!(edges(&scene).len(), 3);
    }
    let ran = scene.anden(&["load", "db", "a.txt"]);
    for line in [
        "  source column     1",
        "  columns left out  3, 4",
        "1 parallel edges (--duplicates min)",
        "  loops",
        "  comment lines     2",
    ] {
        assert!(ran.stdout.contains(line), "{line:?}: {}", ran.stdout);
    }
}

/// Regression: only the beginning of a file was checked, and files of removals not at all.
#[test]
fn late_columns_have_a_note() {
    let scene = Scene::new();
    scene.write("a.txt", format!("{}3 4 5 6\n", "1 2\n".repeat(20_000)));
    scene.write("a.csv", format!("{}3,4,5,6\n", "1,2\n".repeat(300_000)));
    for file in ["a.txt", "a.csv"] {
        let report = load(&scene, file, &[]);
        assert_eq!(report["left_out"], json!([3, 4]));
        let note = format!("{file}: columns 3 and 4 are left out; --columns names them");
        assert!(report["notes"][0].as_str().unwrap().starts_with(&note), "{report}");
        assert_eq!(edges(&scene), ["1,2", "3,4"]);
    }
    load(&scene, "a.txt", &[]);
    scene.write("gone.txt", "1 2\n3 4 5\n");
    scene.write("gone.csv", "source,since,target\n3,x,4\n");
    let removals = ["--remove", "gone.txt", "--remove", "gone.csv"];
    let ran = scene.anden(&[&["append", "db", "a.txt", "--json"], &removals[..]].concat());
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.status, &report["left_out"]), (0, &json!([3, 4])), "{ran:?}");
    let why = "is left out; removals name edges by source and target";
    let notes = [format!("gone.txt: column 3 {why}"), format!("gone.csv: column 'since' {why}")];
    assert_eq!(report["notes"].as_array().unwrap()[1..], notes.map(Value::from), "{report}");
    assert_eq!(ran.stderr.lines().count(), 3, "{ran:?}");
}

/// Weights that are not requested are left out with a note in every format. Requested weights are read.
#[test]
fn lost_weights_have_a_note_in_every_format() {
    let scene = Scene::new();
    scene.write("a.wel", "1 2 7\n");
    scene.write("a.gr", "p sp 2 1\na 1 2 7\n");
    scene.write("a.mtx", "%%MatrixMarket matrix coordinate real general\n% words\n2 2 1\n1 2 7\n");
    scene.write("a.graph", "% words\n2 1 1\n2 7\n1 7\n");
    scene.write("a.txt", "1 2 7\n");
    scene.write("a.v", "1\n2\n");
    scene.write("a.e", "1 2 7\n");
    let properties = "graph.g.vertex-file = a.v\ngraph.g.edge-file = a.e\ngraph.g.directed = true\n\
                      graph.g.edge-properties.names = weight\ngraph.g.edge-properties.types = real\n";
    scene.write("a.properties", properties);
    scene.write("a.csv", "source,target,weight\n1,2,7\n");
    for file in ["a.wel", "a.gr", "a.mtx", "a.graph", "a.txt", "a.properties", "a.csv"] {
        // With a header, a weight column is a property unless properties are off.
        let options: &[&str] = if file == "a.csv" { &["--properties", "none"] } else { &[] };
        let report = load(&scene, file, options);
        let notes = report["notes"].as_array().unwrap();
        match file {
            "a.csv" => assert_eq!((notes.len(), &report["left_out"]), (0, &json!(["weight"]))),
            _ => assert!(notes.len() == 1 && notes[0].as_str().unwrap().contains("--weights"), "{file}: {notes:?}"),
        }
        std::fs::remove_dir_all(scene.path("db")).unwrap();
        let report = load(&scene, file, &["--weights"]);
        assert_eq!((&report["notes"], &report["left_out"]), (&json!([]), &json!([])), "{file}");
        match file {
            "a.wsg" => scene.anden(&["export", "db", "a.wsg"]).succeeded(),
            _ => scene.anden(&["query", "db", "edge", "1", "2"]).succeeded(),
        };
        std::fs::remove_dir_all(scene.path("db")).unwrap();
    }
    scene.anden(&["load", "db", "a.wel", "--weights"]).succeeded();
    scene.anden(&["export", "db", "a.wsg"]).succeeded();
    scene.anden(&["export", "db", "a.graphml"]).succeeded();
    std::fs::remove_dir_all(scene.path("db")).unwrap();
    let report = load(&scene, "a.wsg", &["--ids", "dense"]);
    assert_eq!(report["notes"], json!(["a.wsg: the weights are left out; --weights reads them"]));
    std::fs::remove_dir_all(scene.path("db")).unwrap();
    let report = load(&scene, "a.graphml", &[]);
    assert_eq!((&report["properties"], &report["source_column"]), (&json!(["weight"]), &Value::Null));
    std::fs::remove_dir_all(scene.path("db")).unwrap();
    assert_eq!(load(&scene, "a.graphml", &["--properties", "none"])["left_out"], json!(["weight"]));
    std::fs::remove_dir_all(scene.path("db")).unwrap();
    // The weight column is no property.
    let report = load(&scene, "a.csv", &["--weight-column", "weight"]);
    assert_eq!((&report["weight_column"], &report["left_out"]), (&json!("weight"), &json!([])));
    std::fs::remove_dir_all(scene.path("db")).unwrap();
    scene.write("wide.csv", "source,target,weight,since\n1,2,7,2001\n");
    let report = load(&scene, "wide.csv", &["--weights"]);
    assert_eq!((&report["properties"], &report["notes"]), (&json!(["since"]), &json!([])));
    std::fs::remove_dir_all(scene.path("db")).unwrap();
    let report = load(&scene, "wide.csv", &["--weights", "--properties", "none"]);
    assert_eq!((&report["left_out"], &report["notes"]), (&json!(["since"]), &json!([])));
}

#[test]
fn parallel_edges_and_loops_count_once() {
    let scene = Scene::new();
    scene.write("a.txt", "1 2\n2 1\n1 2\n3 3\n3 3\n2 3\n");
    for (options, merged, edges, loops) in [
        (&[][..], 2, 4, 2),
        (&["--undirected"], 3, 3, 2),
        (&["--ordered"], 2, 2, 2),
        (&["--multigraph"], 0, 6, 2),
        (&["--undirected", "--multigraph"], 0, 6, 2),
        (&["--io-order"], 2, 4, 2),
        (&["--ids", "string", "--undirected"], 3, 3, 2),
        (&["--ids", "dense"], 2, 4, 2),
        (&["--snapshots", "2"], 2, 4, 2),
    ] {
        let report = load(&scene, "a.txt", options);
        let found = json!([report["merged"], report["edges"], report["loops"], report["edges_read"]]);
        assert_eq!(found, json!([merged, edges, loops, 6]), "{options:?}");
        let notes: &[&str] =
            if options == ["--ordered"] { &["2 loops are left out: an ordered graph has none"] } else { &[] };
        assert_eq!(report["notes"], json!(notes), "{options:?}");
        std::fs::remove_dir_all(scene.path("db")).unwrap();
    }
    for (kind, merged, loops) in [("--directed", 0, 1), ("--undirected", 0, 1)] {
        scene.write("b.txt", "0 1\n1 2\n2 2\n");
        load(&scene, "b.txt", &[kind]);
        scene.anden(&["export", "db", "b.sg"]).succeeded();
        std::fs::remove_dir_all(scene.path("db")).unwrap();
        let report = load(&scene, "b.sg", &["--ids", "dense"]);
        let found = json!([report["merged"], report["edges"], report["loops"]]);
        assert_eq!(found, json!([merged, 3, loops]), "{kind}");
        std::fs::remove_dir_all(scene.path("db")).unwrap();
    }
    // Symmetric entries give edges in both directions of a directed graph.
    scene.write("c.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 3\n1 1\n2 1\n2 1\n");
    let report = load(&scene, "c.mtx", &["--directed"]);
    assert_eq!(json!([report["merged"], report["edges"], report["loops"]]), json!([2, 3, 1]));
}

#[test]
fn append_tells_what_became_of_its_inputs() {
    let scene = Scene::new();
    scene.write("a.csv", "source,target,kind\n1,2,x\n");
    scene.write("plain.txt", "1 2\n");
    scene.write("b.csv", "# made by hand\nid,to,from,kind\n7,5,4,y\n8,5,4,z\n9,6,6,z\n");
    scene.write("gone.txt", "# gone\n1 2\n");
    scene.anden(&["load", "props", "a.csv"]).succeeded();
    scene.anden(&["load", "plain", "plain.txt", "--undirected"]).succeeded();
    let append = |database: &str, more: &[&str]| {
        let ran = scene.anden(&[&["append", database, "b.csv", "--json"], more].concat());
        assert_eq!(ran.status, 0, "{ran:?}");
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        (ran, report)
    };
    let (_, report) = append("props", &["--remove", "gone.txt"]);
    assert_eq!(json!([report["source_column"], report["target_column"]]), json!(["from", "to"]));
    assert_eq!((&report["properties"], &report["left_out"]), (&json!(["id", "kind"]), &json!([])));
    assert_eq!(json!([report["merged"], report["duplicates"], report["loops"]]), json!([1, "last", 1]));
    assert_eq!(json!([report["comment_lines"], report["added"], report["removed"]]), json!([2, 2, 1]));
    let (ran, report) = append("plain", &[]);
    assert_eq!((&report["properties"], &report["left_out"]), (&json!([]), &json!(["id", "kind"])));
    assert_eq!(json!([report["merged"], report["duplicates"], report["loops"]]), json!([1, "min", 1]));
    assert!(ran.stderr.starts_with("anden: note: b.csv: columns 'id' and 'kind' are left out"), "{ran:?}");
    scene.write("bad.csv", "id,a,b\n1,2,3\n");
    scene.anden(&["append", "plain", "bad.csv"]).failed(&["bad.csv:1", "--source-column", "'id', 'a' and 'b'"]);
    scene.write("gone.csv", "id,to,from\n7,5,4\n");
    assert_eq!(scene.json(&["append", "props", "--remove", "gone.csv", "--quiet"])["removed"], 1);
}

/// Regression: a file of another format loaded as an empty graph, with exit status 0.
#[test]
fn inputs_without_one_good_line_fail() {
    let scene = Scene::new();
    scene.write("good.txt", "1 2\n");
    scene.write("mixed.txt", "x 1\n1 2\n");
    scene.write("bad.txt", "# words\n1 x\n2 y\n");
    scene.write("bad.csv", "source,target\nx,1\ny,2\n");
    scene.write("bad.gr", "p sp 2 1\na 1 9 4\n");
    scene.write("bad.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 9\n");
    scene.write(
        "bad.graphml",
        "<graphml><graph edgedefault=\"directed\"><edge source=\"a\" target=\"b\"/></graph></graphml>",
    );
    let skip = ["--on-error", "skip"];
    for (file, place) in [
        ("bad.txt", "bad.txt:2"),
        ("bad.csv", "bad.csv:2"),
        ("bad.gr", "bad.gr:2"),
        ("bad.mtx", "bad.mtx:3"),
        ("bad.graphml", "bad.graphml:1"),
    ] {
        for inputs in [&[file][..], &["good.txt", file]] {
            scene.anden(&[&["load", "db"], inputs, &skip].concat()).failed(&[place, "expected"]);
            assert!(!scene.path("db").exists());
        }
    }
    scene.write("bad.v", "# words\nx\ny\n");
    scene.write("bad-v.csv", "id,name\nx,1\ny,2\n");
    for (file, place) in [("bad.v", "bad.v:2"), ("bad-v.csv", "bad-v.csv:2")] {
        scene.anden(&[&["load", "db", "good.txt", "--vertices", file], &skip[..]].concat()).failed(&[place]);
    }
    let ran = scene.anden(&[&["load", "db", "mixed.txt", "--json"], &skip[..]].concat());
    assert!(ran.status == 0 && ran.stdout.contains("\"skipped\":1"), "{ran:?}");
    scene.anden(&[&["append", "db", "bad.txt"], &skip[..]].concat()).failed(&["bad.txt:2"]);
    scene.anden(&[&["append", "db", "--remove", "bad.csv"], &skip[..]].concat()).failed(&["bad.csv:2"]);
    assert_eq!(scene.json(&["info", "db"])["snapshots"].as_array().unwrap().len(), 1);
}

#[test]
fn parts_without_a_header_are_refused_or_follow() {
    let scene = Scene::new();
    for (first, second, delimiter) in [("a.csv", "b.csv", ","), ("a.txt", "b.txt", " ")] {
        let write = |name: &str, text: &str| scene.write(name, text.replace(',', delimiter));
        write(first, "w,target,source\n5,2,1\n6,3,2\n");
        write(second, "7,4,3\n8,5,4\n");
        let both = ["load", "db", first, second];
        scene.anden(&both).failed(&[&format!("{second}:1"), "--header first"]);
        assert!(!scene.path("db").exists());
        let follow = |options: &[&str]| scene.json(&[&both[..], &["--header", "first"], options].concat());
        let report = follow(&["--weights"]);
        assert_eq!(json!([report["edges"], report["weight_column"]]), json!([4, "w"]));
        assert_eq!(edges(&scene), ["1,2", "2,3", "3,4", "4,5"]);
        assert_eq!(follow(&[])["properties"], json!(["w"]));
        edges(&scene);
        write(second, "7,4\n");
        let header_first = ["--header", "first"];
        scene.anden(&[&both[..], &header_first].concat()).failed(&[&format!("{second}:1"), "3 columns", "found 2"]);
        write(second, "w,target,source\n5,2,7\n");
        scene.anden(&[&both[..], &header_first].concat()).failed(&[&format!("{second}:1"), "header"]);
        assert_eq!(scene.json(&both)["edges"], 3);
        edges(&scene);
        write(first, "1,2\n");
        write(second, "2,3\n");
        assert_eq!(scene.json(&[&both[..], &["--header", "none"]].concat())["edges"], 2);
        edges(&scene);
    }
}

/// Regression: keys with `#` in CSV counted as comments, and the load was empty.
#[test]
fn marks_in_csv_are_data() {
    let scene = Scene::new();
    let strings = ["--ids", "string"];
    for name in ["a.csv", "-"] {
        let text = "#rust,#graphs\n#graphs,#db\n#db,#rust\n";
        scene.write("a.csv", text);
        let ran = scene.anden_with_input(&[&["load", "db", name, "--json"], &strings[..]].concat(), text.as_bytes());
        assert!(
            ran.status == 0 && ran.stdout.contains("\"edges\":3") && ran.stdout.contains("\"comment_lines\":0"),
            "{ran:?}"
        );
        assert_eq!(edges(&scene).len(), 3);
    }
    scene.write("b.csv", "# made\n% by me\nsource,target\n#a,%b\n//c,d\n");
    let report = load(&scene, "b.csv", &strings);
    assert_eq!(json!([report["edges"], report["comment_lines"]]), json!([2, 2]));
    edges(&scene);
    scene.write("c.csv", ";made\nsource,target\n;x,\"y\n#a,b\n;end\n");
    let report = load(&scene, "c.csv", &[&strings[..], &["--comment", ";"]].concat());
    assert_eq!(json!([report["edges"], report["comment_lines"]]), json!([1, 3]));
    edges(&scene);
    scene.write("d.csv", "# source,target\na,b\n");
    let report = load(&scene, "d.csv", &strings);
    assert_eq!(json!([report["edges"], report["source_column"]]), json!([1, "source"]));
    assert!(report["notes"][0].as_str().unwrap().contains("is taken as the header"), "{report}");
    edges(&scene);
    scene.write("e.csv", "#a,#b\nb,c\n");
    scene.anden(&["load", "db", "e.csv", "--ids", "string"]).failed(&["e.csv:1", "--comment '#'", "--header none"]);
    scene.write("f.txt", "1 2\n");
    scene.anden(&["load", "db", "f.txt", "--comment", ";"]).failed(&["f.txt", "';'", "--comment is for CSV"]);
    scene.anden(&["load", "db", "f.txt", "--comment", "ab"]).refused(&["--comment"]);
}

#[test]
fn columns_have_the_given_delimiter() {
    let scene = Scene::new();
    let strings = ["--ids", "string"];
    scene.write("g.dat", "source~target\na~b c\n");
    let report = load(&scene, "g.dat", &[&strings[..], &["--delimiter", "~"]].concat());
    assert_eq!(json!([report["edges"], report["target_column"]]), json!([1, "target"]));
    assert_eq!(edges(&scene), ["a,\"b c\""]);
    scene.write("h.dat", "source\ttarget\na\tb\n");
    let report = load(&scene, "h.dat", &[&strings[..], &["--delimiter", "tab"]].concat());
    assert_eq!(report["edges"], 1);
    edges(&scene);
    for wrong in ["ab", "\"", "x", " ", ""] {
        scene.anden(&["load", "db", "g.dat", "--delimiter", wrong]).refused(&["--delimiter", "punctuation"]);
    }
}

#[test]
fn blanks_are_part_of_a_field() {
    let scene = Scene::new();
    scene.write("a.csv", "my,y\nx ,y\nx,y\n");
    let strings = ["--ids", "string"];
    let vertices = |options: &[&str]| {
        let report = load(&scene, "a.csv", &[&strings[..], options].concat());
        edges(&scene);
        (report["vertices"].as_u64(), report["edges"].as_u64())
    };
    assert_eq!(vertices(&[]), (Some(4), Some(3)), "'x ' and 'x' are two");
    assert_eq!(vertices(&["--trim"]), (Some(3), Some(2)));
    scene.write("b.csv", "source,target,n\na, \"b\",1\n");
    for text in ["source,target,n\na, \"b\",1\n", "source,target,n\n\"a\" ,b,1\n"] {
        scene.write("b.csv", text);
        scene.anden(&["load", "db", "b.csv", "--ids", "string"]).failed(&["b.csv:2", "--trim", "blanks"]);
        load(&scene, "b.csv", &[&strings[..], &["--trim"]].concat());
        assert_eq!(edges(&scene), ["a,b"]);
    }
    // Blanks around numbers have no meaning.
    scene.write("c.csv", " source , target , n \n 1 , 2 , 7 \n");
    let report = load(&scene, "c.csv", &[]);
    assert_eq!(json!([report["source_column"], report["properties"]]), json!(["source", ["n"]]));
    let ran = scene.anden(&["export", "db", "-", "--format", "csv"]).succeeded();
    assert_eq!(ran.stdout, "source,target,n:i64\n1,2,7\n");
}

#[test]
fn exported_keys_are_read_back_exactly() {
    let scene = Scene::new();
    let quoted = |key: &str| format!("\"{}\"", key.replace('"', "\"\""));
    let keys = [
        " x",
        "x ",
        "x",
        "a b",
        "say \"x\"",
        "\"",
        "line\nend",
        "end\r",
        "#x",
        "%x",
        "//x",
        "a,b",
        "a;b",
        "a\tb",
        "1",
        " ",
    ];
    let mut text = "source,target,note\n".to_owned();
    for (i, key) in keys.iter().enumerate() {
        text += &format!("{},{},{}\n", quoted(key), quoted(keys[(i + 1) % keys.len()]), quoted(key));
    }
    scene.write("keys.csv", text);
    let round = |from: &str, vertices: &[&str], more: &[&str]| {
        load(&scene, from, &[&["--ids", "string"], vertices, more].concat());
        let ran = scene.anden(&["export", "db", "out.csv", "--vertices", "out-v.csv"]).succeeded();
        assert!(ran.stdout.contains("16"), "{ran:?}");
        std::fs::remove_dir_all(scene.path("db")).unwrap();
        (scene.read("out.csv"), scene.read("out-v.csv"))
    };
    let first = round("keys.csv", &[], &[]);
    std::fs::copy(scene.path("out.csv"), scene.path("in.csv")).unwrap();
    std::fs::copy(scene.path("out-v.csv"), scene.path("in-v.csv")).unwrap();
    assert_eq!(round("in.csv", &["--vertices", "in-v.csv"], &[]), first);
    assert_eq!(round("in.csv", &["--vertices", "in-v.csv"], &["--trim"]), first, "quotes keep blanks");
    for key in keys {
        assert!(first.0.contains(&quoted(key)) || first.0.contains(&format!("\n{key},")), "{key:?}");
    }
}

/// Regression: a header of blank-separated text became an edge, without the note that CSV gives.
#[test]
fn first_lines_of_text_are_told_as_in_csv() {
    let scene = Scene::new();
    let strings = ["--ids", "string"];
    for (file, delimiter) in [("a.txt", " "), ("a.csv", ",")] {
        let write = |text: &str| scene.write(file, text.replace(' ', delimiter));
        write("name friend\nann bob\n");
        let report = load(&scene, file, &strings);
        assert_eq!(report["edges"], 2);
        let line = format!("the first line 'name{delimiter}friend' is taken as an edge");
        assert!(report["notes"][0].as_str().unwrap().contains(&line), "{report}");
        edges(&scene);
        let report = load(&scene, file, &[&strings[..], &["--header", "first"]].concat());
        assert_eq!(json!([report["edges"], report["source_column"], report["notes"]]), json!([1, "name", []]));
        edges(&scene);
        assert_eq!(load(&scene, file, &[&strings[..], &["--header", "none"]].concat())["notes"], json!([]));
        edges(&scene);
        write("from to\nann bob\n");
        let report = load(&scene, file, &strings);
        assert_eq!(json!([report["edges"], report["target_column"], report["notes"]]), json!([1, "to", []]));
        edges(&scene);
        write("u v\nann bob\n");
        let report = load(&scene, file, &strings);
        assert_eq!(json!([report["edges"], report["source_column"]]), json!([1, "u"]));
        assert!(report["notes"][0].as_str().unwrap().contains("--header none"), "{report}");
        edges(&scene);
        write("name friend since\nann bob may\n");
        scene.anden(&["load", "db", file, "--ids", "string"]).failed(&[file, "--source-column", "--header none"]);
        write("person friend\n1 2\n");
        let report = load(&scene, file, &[]);
        assert_eq!(json!([report["edges"], report["source_column"]]), json!([1, "person"]));
        edges(&scene);
    }
}

#[test]
fn lists_of_vertices_may_have_a_header() {
    let scene = Scene::new();
    scene.write("a.txt", "1 2\n");
    for (text, vertices) in [("id\n7\n", 3), ("id age\n7 30\n", 3), ("7\n8\n", 4)] {
        scene.write("v.txt", text);
        let report = load(&scene, "a.txt", &["--vertices", "v.txt"]);
        assert_eq!((&report["vertices"], &report["notes"]), (&json!(vertices), &json!([])), "{text:?}");
        std::fs::remove_dir_all(scene.path("db")).unwrap();
    }
    scene.write("v.txt", "node\nuser\n");
    let report = load(&scene, "a.txt", &["--ids", "string", "--vertices", "v.txt"]);
    assert_eq!(report["vertices"], 4, "a key may have the name of a column");
    assert!(
        report["notes"][0].as_str().unwrap().contains("v.txt: the first line 'node' is taken as a vertex"),
        "{report}"
    );
    std::fs::remove_dir_all(scene.path("db")).unwrap();
    scene.write("v.txt", "7 red\n8 blue\n");
    let report = load(&scene, "a.txt", &["--vertices", "v.txt"]);
    assert_eq!(json!([report["left_out"], report["notes"]]), json!([[], ["v.txt: column 2 is left out"]]));
}

/// Regression: a delimiter in a value moved all later values, and the last one was lost.
#[test]
fn rows_with_further_columns_are_refused() {
    let scene = Scene::new();
    scene.write("a.csv", "source,target,name\n1,2,Doe, Jane\n");
    scene.anden(&["load", "db", "a.csv"]).failed(&["a.csv:2", "at most 3 columns", "' Jane'"]);
    scene.write("a.csv", "source,target,name\n1,2,Doe,,\n");
    let ran: Ran = scene.anden(&["load", "db", "a.csv"]);
    assert_eq!(ran.succeeded().status, 0, "delimiters at the end hold no value");
    // Trailing columns that are not read count too.
    scene.write("b.csv", "name,source,target,x\nfoo,a,b,3\nNew York, NY,c,d,4\n");
    scene.write("b.txt", "source\ttarget\nNew York\tBoston\n");
    scene.write("c.txt", "source target name\n1 2 New York\n");
    scene.write("d.txt", "1 2\n3 4 5\n");
    for (file, line, columns, options) in [
        ("b.csv", 3, 4, &["--properties", "none"][..]),
        ("b.csv", 3, 4, &["--properties", "name"]),
        ("b.txt", 2, 2, &[]),
        ("c.txt", 2, 3, &[]),
        ("c.txt", 2, 3, &["--properties", "none"]),
        ("d.txt", 2, 2, &["--columns", "u,v"]),
    ] {
        let ran = scene.anden(&[&["load", "db2", file, "--ids", "string"], options].concat());
        ran.failed(&[&format!("{file}:{line}"), &format!("at most {columns} columns")]);
    }
}

/// Quotes have no meaning in an edge list, wherever they stand.
#[test]
fn keys_of_lists_may_begin_with_a_quote() {
    let scene = Scene::new();
    scene.write("a.txt", "\"a# &\nx \"a#\n");
    let load = ["load", "db", "a.txt", "--ids", "string", "--quiet"];
    scene.anden(&load).succeeded();
    scene.anden(&["export", "db", "b.txt"]).succeeded();
    scene.anden(&["load", "db2", "b.txt", "--ids", "string", "--quiet"]).succeeded();
    let edges = |database: &str| scene.anden(&["export", database, "-", "--format", "edgelist"]).succeeded().stdout;
    assert_eq!(edges("db").lines().collect::<Vec<_>>(), ["\"a# &", "x \"a#"]);
    assert_eq!(edges("db2"), edges("db"));
}

/// Regression: the last row counted, without a note.
#[test]
fn vertices_that_are_named_again_have_a_note() {
    let scene = Scene::new();
    scene.write("a.txt", "1 2\n");
    scene.write("v.csv", "id,size\n1,10\n2,20\n1,11\n1,12\n");
    let report = load(&scene, "a.txt", &["--vertices", "v.csv"]);
    let note = json!(["v.csv: 2 rows name a vertex again: the values of the last row count"]);
    assert_eq!(report["notes"], note);
    let size = |vertex: &str| scene.json(&["query", "db", "vertex", vertex])["result"]["properties"]["size"].clone();
    assert_eq!((size("1"), size("2")), (json!(12), json!(20)));
    scene.write("w.csv", "id,size\n2,21\n2,22\n1,13\n");
    let ran = scene.anden(&["append", "db", "--vertices", "w.csv", "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["notes"], json!(["w.csv: 1 row names a vertex again: the values of the last row count"]));
    assert_eq!((size("1"), size("2")), (json!(13), json!(22)));
    std::fs::remove_dir_all(scene.path("db")).unwrap();
    // Without values, equal rows lose nothing.
    scene.write("v.csv", "id\n1\n1\n");
    assert_eq!(load(&scene, "a.txt", &["--vertices", "v.csv"])["notes"], json!([]));
}

/// Regression: the message named a header, which a file need not have, and not the option.
#[test]
fn late_values_of_other_types_name_the_option() {
    let scene = Scene::new();
    scene.write("a.csv", format!("source,target,n\n{}1,2,late\n", "1,2,3\n".repeat(180_000)));
    let args = ["load", "db", "a.csv", "--duplicates", "last"];
    scene.anden(&args).failed(&["a.csv:180002", "found 'late'", "--property-types 'n:string'"]);
    scene.anden(&[&args[..], &["--property-types", "n:string"]].concat()).succeeded();
    assert_eq!(scene.json(&["query", "db", "edge", "1", "2"])["properties"][0]["n"], "late");
}

/// Spreadsheets and some editors write a byte order mark.
#[test]
fn updates_may_begin_with_a_byte_order_mark() {
    let scene = Scene::new();
    scene.write("a.txt", "1 2\n");
    scene.anden(&["load", "db", "a.txt"]).succeeded();
    scene.write("u.txt", "\u{feff}+ 3 4\n- 1 2\n");
    assert_eq!(scene.json(&["apply", "db", "u.txt"])["updates"], 2);
    let input = "\u{feff}+ 5 6\n".as_bytes();
    assert_eq!(scene.anden_with_input(&["apply", "db", "-"], input).succeeded().status, 0);
    assert_eq!(edges(&scene), ["3,4", "5,6"]);
}
