//! Bad input: status 1, one line with the error and its place, and no remains.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::scene::{Scene, files_below};

/// Loads `content` under `name`. Requires a failure with `parts` in its line, and no remains.
#[track_caller]
fn load_fails(name: &str, content: impl AsRef<[u8]>, options: &[&str], parts: &[&str]) {
    let scene = Scene::new();
    scene.write(name, content);
    scene.anden(&[&["load", "db", name], options].concat()).failed(parts);
    assert_eq!(scene.names(), [name], "something is left behind");
}

#[test]
fn a_file_that_is_missing_or_cannot_be_read() {
    let scene = Scene::new();
    scene.anden(&["load", "db", "none.txt"]).failed(&["none.txt"]);
    std::fs::create_dir(scene.path("folder")).unwrap();
    scene.anden(&["load", "db", "folder"]).failed(&["folder"]);
    scene.write("edges.txt", "1 2\n");
    scene.anden(&["load", "db", "edges.txt", "none.txt"]).failed(&["none.txt"]);
    scene.anden(&["load", "none/db", "edges.txt"]).failed(&["none/db"]);
    scene.anden(&["load", "db", "edges.txt", "--vertices", "none.v"]).failed(&["none.v"]);
    assert_eq!(scene.names(), ["edges.txt", "folder"]);
}

#[test]
fn a_line_that_is_no_edge() {
    load_fails("edges.txt", "1 2\n3 4\n5 five\n", &[], &["edges.txt:3", "five"]);
    load_fails("edges.txt", "1 2\n3\n", &[], &["edges.txt:2"]);
    load_fails("edges.txt", "1 2\n-3 4\n", &[], &["edges.txt:2", "-3"]);
    load_fails("edges.txt", "1 2\n3 99999999999999999999\n", &[], &["edges.txt:2", "99999999999999999999"]);
    load_fails("edges.csv", "source,target\n1,2\n3\n", &[], &["edges.csv:3"]);
    load_fails("graph.gr", "p sp 2 1\na 1 two 3\n", &[], &["graph.gr:2", "two"]);
    // A number beyond the range of its type does not become infinite.
    load_fails("edges.txt", "1 2 1e400\n", &["--weights"], &["edges.txt:1", "1e400"]);
    load_fails("edges.csv", "a,b,w\n1,2,4e39\n", &["--weights", "--weight-type", "f32"], &["edges.csv:2", "4e39"]);
}

#[test]
fn a_bad_line_late_in_a_large_file() {
    let mut text: String = (0..300_000).map(|i| format!("{i} {}\n", i + 1)).collect();
    text += "oops\n";
    load_fails("edges.txt", text, &[], &["edges.txt:300001", "oops"]);
}

#[test]
fn skipped_lines_are_counted() {
    let scene = Scene::new();
    scene.write("edges.txt", "1 2\nx y\n3 4\n5\n");
    let ran = scene.anden(&["load", "db", "edges.txt", "--on-error", "skip", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.status, &object["edges"], &object["skipped"]), (0, &2.into(), &2.into()));
}

#[test]
fn an_id_out_of_range() {
    load_fails("edges.txt", "0 1\n1 4294967295\n", &["--ids", "dense"], &["4294967295"]);
}

#[test]
fn errors_name_the_options_that_decide() {
    load_fails("edges.txt", "ann bob\n", &[], &["edges.txt:1", "found 'ann'", "--ids string"]);
    load_fails("edges.csv", "source,target\nann,bob\n", &[], &["edges.csv:2", "--ids string"]);
    load_fails("edges.txt", "0 4294967295\n", &["--ids", "dense"], &["edges.txt:1", "--ids integer"]);
    load_fails("edges.txt", "1 2 0.5\n", &["--weight-type", "u32"], &["edges.txt:1", "'0.5'", "another --weight-type"]);
    let pattern = "%%MatrixMarket matrix coordinate pattern general\n1 1 0\n";
    load_fails("a.mtx", pattern, &["--weights"], &["a.mtx", "leave out --weights"]);
    let scene = Scene::with_small(&[]);
    let apply = |line: &str| {
        scene.write("updates.txt", line);
        scene.anden(&["apply", "db", "updates.txt"])
    };
    apply("+ 1 2 7\n").failed(&["updates.txt:1", "the graph has no weights", "without --weights"]);
    apply("+ ann bob\n").failed(&["updates.txt:1", "integer ids", "--ids string"]);
    scene.anden(&["run", "db", "sssp", "--source", "1"]).failed(&["load the graph with --weights"]);
    let weighted = Scene::with_small(&["--weights"]);
    weighted.write("updates.txt", "+ 1 2\n");
    weighted.anden(&["apply", "db", "updates.txt"]).failed(&["updates.txt:1", "loaded with --weights"]);
}

#[test]
fn bad_weights() {
    load_fails("edges.txt", "1 2 0.5\n2 3 nan\n", &["--weights"], &["edges.txt:2", "nan"]);
    load_fails("edges.txt", "1 2 0.5\n2 3\n", &["--weights"], &["edges.txt:2", "weight"]);
    load_fails("edges.txt", "1 2 7\n2 3 -7\n", &["--weights", "--weight-type", "u32"], &["edges.txt:2", "-7"]);
    load_fails("edges.csv", "source,target\n1,2\n", &["--weight-column", "cost"], &["edges.csv", "cost"]);
    load_fails("edges.csv", "source,target\n1,2\n", &["--source-column", "from"], &["edges.csv", "from"]);
}

#[test]
fn a_kernel_that_forbids_the_weights() {
    let scene = Scene::new();
    scene.write("edges.txt", "1 2 5\n2 1 -6\n");
    scene.anden(&["load", "db", "edges.txt", "--weights", "--weight-type", "i64"]).succeeded();
    scene.anden(&["run", "db", "sssp", "--source", "1"]).failed(&["vertex 1", "sssp"]);
    let plain = Scene::with_small(&[]);
    plain.anden(&["query", "db", "path", "1", "4", "--weighted"]).failed(&["weight"]);
}

pub fn gzip(content: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content.as_ref()).unwrap();
    encoder.finish().unwrap()
}

/// Regression: small files unpacked to gigabytes of scratch space before they were refused.
#[test]
fn packed_files_unpack_within_limits() {
    let graph = gap_file(2, 2, &[0, 1, 2], &[1, 0]);
    let longer = [&graph[..], &[0; 1_000_000]].concat();
    let weighted = graph.len() + 16;
    let fault = format!("longer than the {weighted} bytes that its header promises");
    load_fails("graph.sg.gz", gzip(&longer), &[], &["graph.sg.gz", &fault]);
    load_fails("graph.sg.gz", gzip(&graph), &["--scratch-limit", "20"], &["graph.sg.gz", "20 B", "--scratch-limit"]);
    let columns = [b"PAR1", &[0; 1_000_000][..]].concat();
    load_fails("e.parquet.gz", gzip(&columns), &["--scratch-limit", "64K"], &["e.parquet.gz", "--scratch-limit"]);
    let scene = Scene::new();
    scene.write("graph.sg.gz", gzip(&graph));
    scene.anden(&["load", "db", "graph.sg.gz", "--scratch-limit", "none"]).refused(&["--scratch-limit", "512M"]);
    let limit = graph.len().to_string();
    scene.anden(&["load", "db", "graph.sg.gz", "--scratch-limit", &limit]).succeeded();
}

#[test]
fn compressed_files_that_are_cut_or_lie() {
    let text: String = (0..5000).map(|i| format!("{i} {}\n", i * 7919 % 5000)).collect();
    let packed = gzip(&text);
    load_fails("edges.txt.gz", &packed[..packed.len() / 2], &[], &["edges.txt.gz"]);
    load_fails("edges.txt.gz", &packed[..packed.len() - 3], &[], &["edges.txt.gz"]);
    load_fails("edges.txt.gz", &text, &[], &["edges.txt.gz"]);
    load_fails("edges.txt.zst", &packed, &[], &["edges.txt.zst"]);
    let mut wrong_sum = packed.clone();
    let place = wrong_sum.len() - 6;
    wrong_sum[place] ^= 0xff;
    load_fails("edges.txt.gz", &wrong_sum, &[], &["edges.txt.gz"]);
}

/// A GAP file of a directed graph whose header claims `num_edges` and `num_vertices`.
fn gap_file(num_edges: i64, num_vertices: i64, offsets: &[i64], targets: &[i32]) -> Vec<u8> {
    let mut bytes = vec![1_u8];
    bytes.extend(num_edges.to_le_bytes());
    bytes.extend(num_vertices.to_le_bytes());
    for _direction in 0..2 {
        offsets.iter().for_each(|offset| bytes.extend(offset.to_le_bytes()));
        targets.iter().for_each(|target| bytes.extend(target.to_le_bytes()));
    }
    bytes
}

#[test]
fn headers_that_disagree_with_the_body() {
    let good = gap_file(2, 2, &[0, 1, 2], &[1, 0]);
    let scene = Scene::new();
    scene.write("good.sg", &good);
    assert_eq!(scene.json(&["load", "db", "good.sg"])["edges"], 2);
    load_fails("bad.sg", &good[..good.len() - 4], &[], &["bad.sg"]);
    load_fails("bad.sg", &good[..9], &[], &["bad.sg"]);
    load_fails("bad.sg", gap_file(3, 2, &[0, 1, 2], &[1, 0]), &[], &["bad.sg"]);
    load_fails("bad.sg", gap_file(2, 1 << 40, &[0, 1, 2], &[1, 0]), &[], &["bad.sg"]);
    load_fails("bad.sg", gap_file(2, 2, &[0, 1, 2], &[1, 7]), &[], &["bad.sg"]);
    load_fails("bad.sg", gap_file(2, 2, &[0, 9, 2], &[1, 0]), &[], &["bad.sg"]);
    load_fails("graph.gr", "p sp 3 5\na 1 2 3\n", &[], &["graph.gr"]);
    load_fails("graph.gr", "p sp 3 1\na 1 9 3\n", &[], &["graph.gr", "9"]);
}

/// Counts that wrap when multiplied by the bytes of an arc, by two directions, or by two edges an entry.
#[test]
fn huge_header_counts_are_refused() {
    let counts = [u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1, (1 << 63) + 1, 1 << 62, (1 << 62) + 2, 1 << 61];
    for count in counts {
        for name in ["bad.sg", "bad.wsg"] {
            load_fails(name, gap_file(count as i64, 2, &[0, 1, 2], &[1, 0]), &[], &[name]);
            load_fails(name, gap_file(2, count as i64, &[0, 1, 2], &[1, 0]), &[], &[name]);
        }
        for banner in ["pattern general", "pattern symmetric", "integer skew-symmetric"] {
            let entry = if banner.starts_with("integer") { "2 1 5" } else { "2 1" };
            let matrix = |rows: u64, entries: u64| {
                format!("%%MatrixMarket matrix coordinate {banner}\n{rows} {rows} {entries}\n{entry}\n")
            };
            load_fails("bad.mtx", matrix(2, count), &[], &["bad.mtx"]);
            load_fails("bad.mtx", matrix(count, 1), &[], &["bad.mtx"]);
        }
        load_fails("bad.graph", format!("2 {count}\n2\n1\n"), &[], &["bad.graph"]);
        load_fails("bad.graph", format!("{count} 1\n2\n1\n"), &[], &["bad.graph"]);
        load_fails("bad.gr", format!("p sp 2 {count}\na 1 2 3\n"), &[], &["bad.gr"]);
        load_fails("bad.gr", format!("p sp {count} 1\na 1 2 3\n"), &[], &["bad.gr"]);
    }
}

#[test]
fn a_database_that_exists() {
    let scene = Scene::with_small(&[]);
    let before = files_below(&scene.path("db")).iter().map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>();
    scene.anden(&["load", "db", "small.txt"]).failed(&["db", "exists"]);
    let after = files_below(&scene.path("db")).iter().map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>();
    assert_eq!(before, after);
    scene.anden(&["load", "small.txt", "small.txt"]).failed(&["small.txt", "exists"]);
}

#[test]
fn a_database_that_is_not_there() {
    let scene = Scene::new();
    std::fs::create_dir(scene.path("folder")).unwrap();
    for verb in [&["info"][..], &["verify"], &["snapshots"], &["run", "wcc"], &["query", "edge", "1", "2"]] {
        for name in ["none", "folder"] {
            let arguments = [&verb[..1], &[name], &verb[1..]].concat();
            scene.anden(&arguments).failed(&[name]);
        }
    }
    assert_eq!(scene.names(), ["folder"]);
}

#[test]
fn a_vertex_that_is_not_there() {
    let scene = Scene::with_small(&[]);
    scene.anden(&["run", "db", "bfs", "--source", "77"]).failed(&["77", "does not exist"]);
    scene.anden(&["run", "db", "bfs", "--source", "libc6"]).failed(&["libc6", "does not exist"]);
    scene.anden(&["query", "db", "edge", "1", "77"]).failed(&["77", "does not exist"]);
    scene.anden(&["query", "db", "path", "78", "1"]).failed(&["78", "does not exist"]);
    scene.anden(&["run", "db", "bfs", "--source", "77", "--output", "hops"]).failed(&["77"]);
    assert_eq!(scene.names(), ["db", "small.txt"]);
}

#[test]
fn a_budget_that_is_too_small() {
    let scene = Scene::with_small(&[]);
    scene.anden(&["load", "db2", "small.txt", "--memory", "100"]).failed(&["memory"]);
    // A row is small, but every vertex has a place in the column.
    scene.write("wide.txt", "0 4000000\n");
    scene.write("one.csv", "id,x\n1,5\n");
    let wide = ["load", "db2", "wide.txt", "--ids", "dense", "--memory", "60M", "--threads", "1"];
    scene.anden(&wide).succeeded();
    std::fs::remove_dir_all(scene.path("db2")).unwrap();
    scene.anden(&[&wide[..], &["--vertices", "one.csv"]].concat()).failed(&["properties of the vertices", "--memory"]);
    assert_eq!(scene.names(), ["db", "one.csv", "small.txt", "wide.txt"]);
}

#[test]
fn names_that_promise_something_else() {
    let scene = Scene::with_small(&[]);
    scene.write("edges.txt", "1 2\n");
    let no_names = "edges.txt:1: cannot find the column 'from' of --source-column: the columns are '1' and '2'";
    scene.anden(&["load", "new", "edges.txt", "--source-column", "from"]).failed(&[no_names]);
    scene
        .anden(&["load", "new", "edges.txt", "--columns", "a,b", "--source-column", "b", "--target-column", "a"])
        .succeeded();
    scene.anden(&["verify", "edges.txt"]).failed(&["edges.txt: is no database"]);
    let generated = ["generate", "uniform", "--scale", "3", "--degree", "2", "-o"];
    scene
        .anden(&[&generated[..], &["x.csv"]].concat())
        .refused(&["'.csv' is the ending of CSV, which is not written (x.csv)"]);
    scene.anden(&[&generated[..], &["x.txt"]].concat()).succeeded();
}

/// Each file of a database is damaged in the middle. `verify` names it, and no command gives a wrong answer.
#[test]
fn damage_is_found_and_named() {
    let intact = Scene::with_small(&["--weights"]);
    let questions: [&[&str]; 2] = [&["run", "db", "sssp", "--source", "1"], &["query", "db", "vertex", "1"]];
    let expected = questions.map(|question| intact.json(question)["result"].clone());
    for path in files_below(&intact.path("db")) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let bytes = std::fs::read(&path).unwrap();
        if name == "LOCK" || name == "RESERVE" {
            continue; // their content has no meaning
        }
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 2] ^= 0x10;
        replace(&path, &damaged);
        // Without the manifest, nothing can be saved.
        let remedy = if name == "MANIFEST" { "from a copy" } else { "`anden repair db --to NEW` saves what is left" };
        intact.anden(&["verify", "db"]).failed(&[&name, remedy]);
        for (question, expected) in questions.iter().zip(&expected) {
            let ran = intact.anden(&[*question, &["--json"][..]].concat());
            if ran.status == 0 {
                let object: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
                assert_eq!(&object["result"], expected, "{name} is damaged and the answer is wrong");
            } else {
                ran.failed(&[&name]);
            }
        }
        replace(&path, &bytes[..bytes.len() - 1]);
        intact.anden(&["verify", "db"]).failed(&[&name]);
        replace(&path, &bytes);
    }
    intact.anden(&["verify", "db"]).succeeded();
}

/// CRC32C by its definition.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 })
    })
}

/// The manifest begins with a magic word and the version. The checksum of these and of all later bytes follows.
#[test]
fn a_database_of_a_newer_version() {
    let scene = Scene::with_small(&[]);
    let path = scene.path("db").join("MANIFEST");
    let mut bytes = std::fs::read(&path).unwrap();
    let sum = |bytes: &[u8]| crc32c(&[&bytes[..8], &bytes[12..]].concat()).to_le_bytes();
    assert_eq!(bytes[8..12], sum(&bytes), "the checksum is not that of the format");
    bytes[4..8].copy_from_slice(&1000_u32.to_le_bytes());
    let sealed = sum(&bytes);
    bytes[8..12].copy_from_slice(&sealed);
    replace(&path, &bytes);
    for verb in [&["info"][..], &["verify"], &["run", "wcc"], &["query", "edge", "1", "2"]] {
        let arguments = [&verb[..1], &["db"], &verb[1..]].concat();
        scene.anden(&arguments).failed(&["MANIFEST", "version 1000", "newer program"]);
    }
}

/// Replaces a file, because published files are read-only.
fn replace(path: &std::path::Path, bytes: &[u8]) {
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Every input is checked for its format, also standard input, and also if any text may be a key.
#[test]
fn foreign_inputs_are_named_before_any_hint() {
    let scene = Scene::new();
    let flow = "c FILE: a.max\np max 3 2\nn 1 s\na 1 2 5\n";
    let inputs = [
        ("a.max", flow, "this is a DIMACS file of a problem that is not read"),
        ("a.txt", flow, "this is a DIMACS file"),
        ("a.zip", "PK\x03\x04\x14\0\0\0", "this is a zip archive"),
        ("a.dot", "digraph {\n a -> b;\n}\n", "this is a DOT file"),
        ("a.csv", "[{\"source\": 1}]\n", "this is a JSON file of another form"),
        ("b.geojson", "a b\n", "the ending '.geojson' is that of a JSON file of another form"),
    ];
    scene.write("good.txt", "1 2\n");
    scene.anden(&["load", "good", "good.txt"]).succeeded();
    for (name, text, found) in inputs {
        scene.write(name, text);
        for options in [&[][..], &["--ids", "string"], &["--ids", "string", "--on-error", "skip"]] {
            let ran = scene.anden(&[&["load", "db", name], options].concat());
            ran.failed(&["cannot read ", name, found, ", which is not read; "]);
            if found.starts_with("this") {
                let ran = scene.anden_with_input(&[&["load", "db", "-"], options].concat(), text.as_bytes());
                ran.failed(&["cannot read -: ", found]);
            }
        }
        scene.anden(&["load", "db", "good.txt", "--vertices", name]).failed(&[name, found]);
        scene.anden(&["append", "good", name]).failed(&[name, found]);
        scene.anden(&["append", "good", "good.txt", "--remove", name]).failed(&[name, found]);
    }
    assert!(!scene.path("db").exists());
    // The format that the user gives has priority.
    scene.anden(&["load", "db", "b.geojson", "--ids", "string", "--format", "edgelist", "--quiet"]).succeeded();
}

#[test]
fn parquet_columns_that_are_left_out_are_noted() {
    let scene = Scene::new();
    let notes = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/parquet/notes/types.parquet");
    std::fs::copy(notes, scene.path("types.parquet")).unwrap();
    let ran = scene.anden(&["load", "db", "types.parquet", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let noted: Vec<&str> = report["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect();
    let first =
        "types.parquet: column 'grades' is left out: it holds maps, and only values and lists of values are read";
    assert_eq!((noted.len(), noted[0]), (5, first));
    let lines: Vec<String> = noted.iter().map(|note| format!("anden: note: {note}")).collect();
    assert_eq!(ran.stderr.lines().collect::<Vec<_>>(), lines);
}

#[test]
fn wrong_items_of_lists_are_told_with_their_place() {
    let scene = Scene::new();
    let load = |name: &str, text: &str| {
        scene.write(name, text);
        scene.anden(&["load", "db", name])
    };
    let number = "expected a whole number of type i64, found 'x'";
    load("neo4j.csv", ":ID,scores:long[]\n1,1;2\n2,1;x\n").failed(&["neo4j.csv:3: column 'scores'", number]);
    load("neptune.csv", "~id,scores:Long[]\na,x\n").failed(&["neptune.csv:2: column 'scores'", number]);
    let list = "expected a list of whole numbers of type i64 such as [1,2], found";
    load("plain.csv", "source,target,sizes:i64[]\n1,2,1;2\n").failed(&["plain.csv:2: column 'sizes'", list, "'1;2'"]);
    let lines = "{\"source\":1,\"target\":2,\"sizes\":[1]}\n".repeat(60_000);
    load("lines.jsonl", &format!("{lines}{{\"source\":1,\"target\":2,\"sizes\":[0.5]}}\n")).failed(&[
        "lines.jsonl:60001: member 'sizes'",
        list,
        "--property-types",
    ]);
    assert!(!scene.path("db").exists());
}
