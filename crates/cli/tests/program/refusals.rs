//! Commands that are refused before they begin, and their messages.

use std::process::Command;

use serde_json::Value;

use crate::bad_input::gzip;
use crate::scene::{Ran, Scene};

/// Runs the program with standard output on a full disk.
fn with_full_output(scene: &Scene, arguments: &[&str]) -> (Option<i32>, String) {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = scene.command(arguments).stdout(full).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// The memory that a message names.
fn needed(ran: &Ran) -> String {
    let rest = ran.stderr.split("needs at least ").nth(1).unwrap_or_else(|| panic!("{ran:?}"));
    rest.split(';').next().unwrap().to_owned()
}

#[test]
#[cfg_attr(anden_asan, ignore = "a sanitizer takes memory of its own")]
fn generating_keeps_to_its_memory() {
    let scene = Scene::new();
    let too_large = ["generate", "grid", "--width", "65536", "--height", "65535", "-o", "big.sg"];
    scene.anden(&too_large).failed(&["4,294,901,760 vertices", "needs at least", "--memory"]);
    // A budget beyond the available memory is an error too.
    let generate = r#"ulimit -v 1500000; exec "$0" generate uniform --scale 28 -o big.sg --memory 900T --threads 1"#;
    let mut shell = Command::new("bash");
    let output =
        shell.args(["-c", generate, env!("CARGO_BIN_EXE_anden")]).current_dir(scene.path(".")).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(stderr, "anden: the system refuses 2.0 GiB of memory\n");
    for kind in [
        &["rmat", "--scale", "14", "-o", "x.sg"][..],
        &["uniform", "--scale", "14", "--weights", "1..9", "-o", "x.wsg"],
        &["grid", "--width", "300", "--height", "200", "-o", "x.sg"],
        &["uniform", "--scale", "14", "-o", "x.txt"],
        &["uniform", "--scale", "14"],
    ] {
        let arguments = [&["generate"], kind, &["--threads", "2", "--memory"]].concat();
        let refused =
            scene.anden(&[&arguments[..], &["4M"]].concat()).failed(&["a memory budget of 4.0 MiB is too small"]);
        assert!(scene.names().is_empty(), "{:?}", scene.names());
        let needed = needed(&refused);
        let ran = scene.anden(&[&arguments[..], &[&needed]].concat()).succeeded();
        if kind.contains(&"-o") {
            assert!(ran.stdout.starts_with("wrote x."), "{ran:?}");
            scene.names().iter().for_each(|name| std::fs::remove_file(scene.path(name)).unwrap());
        }
    }
}

#[test]
fn an_export_in_two_files_changes_both_or_none() {
    let scene = Scene::new();
    scene.write("edges.csv", "source,target\n\"new\nline\",b\n");
    scene.anden(&["load", "db", "edges.csv", "--ids", "string", "--source-column", "source"]).succeeded();
    scene.write("out.csv", "before");
    for (vertices, parts) in [
        ("none/v", &["none/v: cannot create"][..]),
        ("/dev/full", &["anden: /dev/full: "]),
        ("keys.txt", &["keys.txt"]),
        ("db", &["db: expected the name of a file, found a directory"]),
    ] {
        scene.anden(&["export", "db", "out.csv", "--vertices", vertices]).failed(parts);
        scene.anden(&["export", "db", "-", "--format", "csv", "--vertices", vertices]).failed(parts);
        assert_eq!(scene.read("out.csv"), "before", "{vertices}");
    }
    scene.anden(&["export", "db", "out.txt", "--vertices", "keys.csv"]).failed(&["out.txt"]);
    assert_eq!(scene.names(), ["db", "edges.csv", "out.csv"]);
    scene.anden(&["export", "db", "out.csv", "--vertices", "keys.csv"]).succeeded();
    assert_eq!(scene.read("keys.csv"), "id\nb\n\"new\nline\"\n");
}

#[test]
fn sums_beyond_their_type_are_refused() {
    for (of, first, second) in [
        ("u32", "4294967295", "3"),
        ("i64", "9223372036854775807", "3"),
        ("i64", "-9223372036854775808", "-1"),
        ("f32", "3e38", "2e38"),
    ] {
        let scene = Scene::new();
        let sum = ["--weight-type", of, "--duplicates", "sum"];
        scene.write("edges.txt", format!("1 2 {first}\n2 3 1\n1 2 {second}\n"));
        let parts = ["edges.txt: the weights of parallel edges", of, "--weight-type"];
        for more in [&[][..], &["--undirected"], &["--threads", "1", "--ids", "string"]] {
            scene.anden(&[&["load", "db", "edges.txt"], &sum[..], more].concat()).failed(&parts);
        }
        assert_eq!(scene.names(), ["edges.txt"]);
        scene.write("first.txt", "1 2 1\n");
        scene.anden(&["load", "db", "first.txt", "--weight-type", of]).succeeded();
        scene.anden(&["append", "db", "edges.txt", "--duplicates", "sum"]).failed(&parts);
        assert_eq!(scene.json(&["info", "db"])["edges"], 1);
    }
}

#[test]
fn weights_are_numbers_or_infinite_and_properties_anything() {
    let scene = Scene::with_small(&["--weights"]);
    for (word, name) in [("inf", "a"), ("Infinity", "b")] {
        scene.write("edges.txt", format!("1 2 0.5\n2 3 {word}\n3 4 1\n"));
        scene.anden(&["load", name, "edges.txt", "--weights", "--weight-type", "f64"]).succeeded();
        scene.anden(&["append", name, "edges.txt"]).succeeded();
        scene.write("updates.txt", format!("+ 5 1 {word}\n"));
        scene.anden(&["apply", name, "updates.txt"]).succeeded();
        // Shortest paths treat an infinite weight as no edge.
        assert_eq!(scene.json(&["run", name, "sssp", "--source", "1", "--check"])["result"]["reached"], 2);
        assert_eq!(scene.json(&["run", name, "sssp", "--source", "5", "--check"])["result"]["reached"], 1);
    }
    for word in ["-inf", "1e999", "nan"] {
        scene.write("edges.txt", format!("1 2 0.5\n2 3 {word}\n"));
        scene.anden(&["load", "new", "edges.txt", "--weights"]).failed(&["edges.txt:2", "a number or inf", word]);
        scene.anden(&["append", "db", "edges.txt"]).failed(&["edges.txt:2", word]);
        scene.write("edges.csv", format!("source,target,weight\n1,2,{word}\n"));
        scene.anden(&["load", "new", "edges.csv", "--weights"]).failed(&["edges.csv:2", word]);
        scene.write("updates.txt", format!("+ 1 3 {word}\n"));
        scene.anden(&["apply", "db", "updates.txt"]).failed(&["updates.txt:1", "a number or inf", word]);
    }
    scene.write("far.csv", "source,target,distance\n1,2,inf\n2,3,-inf\n3,1,NaN\n");
    scene.anden(&["load", "far", "far.csv", "--property-types", "distance:f64"]).succeeded();
    let value = |u, v| scene.json(&["query", "far", "edge", u, v])["properties"][0]["distance"].clone();
    assert_eq!([value("1", "2"), value("2", "3"), value("3", "1")], ["inf", "-inf", "nan"].map(Value::from));
}

#[test]
fn completed_work_is_reported_when_output_fails() {
    let scene = Scene::with_small(&[]);
    scene.write("more.txt", "1 6\n");
    scene.write("updates.txt", "+ 1 7\n");
    for (arguments, done) in [
        (&["load", "new", "more.txt"][..], "the database was made"),
        (&["append", "db", "more.txt"], "the snapshot was made"),
        (&["apply", "db", "updates.txt"], "the updates were applied"),
        (&["checkpoint", "db"], "the snapshot was made"),
        (&["merge", "db"], "the database was merged"),
        (&["prepare", "db"], "the forms were stored"),
        (&["backup", "db", "backup"], "the backup was made"),
        (&["restore", "backup", "restored"], "the database was restored"),
        (&["repair", "db", "--to", "repaired"], "the database was repaired"),
        (&["retain", "db", "last:9"], "the retention was set"),
        (&["drop", "db", "1"], "the snapshots were dropped"),
        (&["export", "db", "x.csv"], "the file was written"),
    ] {
        let (status, stderr) = with_full_output(&scene, arguments);
        assert_eq!(status, Some(1), "{arguments:?}");
        assert!(stderr.starts_with(&format!("anden: {done}, but standard output: cannot write")), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    scene.anden(&["verify", "new"]).succeeded();
    for arguments in [&["--help"][..], &["--version"], &["load", "--help"], &["export", "db", "-"]] {
        let (status, stderr) = with_full_output(&scene, arguments);
        assert_eq!(status, Some(1), "{arguments:?}");
        assert!(stderr.starts_with("anden: standard output: cannot write: No space"), "{stderr}");
    }
}

#[test]
fn pages_are_text_and_there_are_none_of_help() {
    let scene = Scene::new();
    scene.anden(&["completions", "bash", "--json"]).refused(&["completions has no --json"]);
    scene.anden(&["man", "--json"]).refused(&["man has no --json"]);
    scene.anden(&["man", "pages"]).succeeded();
    let names = scene.names_in("pages");
    assert!(names.contains(&"anden-query-edge.1".to_owned()) && names.contains(&"anden-generate-rmat.1".to_owned()));
    assert!(names.iter().all(|name| !name.contains("help")), "{names:?}");
    assert!(!scene.read("pages/anden.1").contains("anden-help"));
}

#[test]
fn negative_numbers_are_refused_by_the_option() {
    let scene = Scene::with_small(&[]);
    let run = ["run", "db", "pagerank"];
    for (arguments, option) in [
        (&["run", "db", "wcc", "--threads", "-1"][..], "--threads"),
        (&["run", "db", "wcc", "--memory", "-1"], "--memory"),
        (&["run", "db", "wcc", "--memory", "-1G"], "--memory"),
        (&[&run[..], &["--iterations", "-1"]].concat(), "--iterations"),
        (&[&run[..], &["--repeat", "-1"]].concat(), "--repeat"),
        (&["run", "db", "bc", "--sources", "-1"], "--sources"),
        (&["run", "db", "bc", "--seed", "-1"], "--seed"),
        (&["load", "x", "small.txt", "--first-share", "-0.1"], "--first-share"),
        (&["load", "x", "small.txt", "--snapshots", "-1"], "--snapshots"),
        (&["generate", "rmat", "--scale", "3", "--a", "-.9"], "--a"),
        (&["generate", "rmat", "--scale", "-3"], "--scale"),
        (&["query", "db", "khop", "1", "-1"], "<K>"),
        (&["query", "db", "path", "1", "2", "--count", "-1"], "--count"),
        (&["apply", "db", "-", "--batch", "-1"], "--batch"),
        (&["merge", "db", "--newest", "-1"], "--newest"),
    ] {
        scene.anden(arguments).refused(&["invalid value", option]);
    }
    scene.anden(&["run", "db", "wcc", "--snapshot", "-1"]).failed(&["snapshot -1 does not exist"]);
    scene.anden(&["run", "db", "wcc", "--window", "-1..1"]).failed(&["snapshot -1 does not exist"]);
    scene.anden(&["drop", "db", "-1"]).failed(&["snapshot -1 does not exist"]);
}

#[test]
fn vertices_come_from_standard_input() {
    let scene = Scene::new();
    scene.write("edges.txt", "1 2\n");
    scene.anden_with_input(&["load", "db", "edges.txt", "--vertices", "-"], b"1\n2\n9\n").succeeded();
    assert_eq!(scene.json(&["info", "db"])["vertices"], 3);
    scene.anden_with_input(&["append", "db", "--vertices", "-"], b"10\n").succeeded();
    assert_eq!(scene.json(&["info", "db"])["vertices"], 4);
    scene.anden(&["load", "x", "-", "--vertices", "-"]).refused(&["standard input can be read once"]);
    scene.anden(&["append", "db", "--remove", "-", "--vertices", "-"]).refused(&["standard input can be read once"]);
}

#[test]
fn keys_are_one_column_and_no_marker() {
    let scene = Scene::new();
    scene.write("edges.csv", "source,target\n\"a b\",\"new\nline\"\n\"new\nline\",-1\n-1,c\nd,\"a b\"\n");
    scene.anden(&["load", "db", "edges.csv", "--ids", "string", "--source-column", "source"]).succeeded();
    let ask = |question: &[&str]| scene.anden(&[&["query", "db"], question].concat()).succeeded().stdout;
    assert_eq!(ask(&["neighbors", "a b"]), "\"new\\nline\"\n");
    assert_eq!(ask(&["path", "a b", "-1"]), "a path of 2 steps\n\"a b\"\n\"new\\nline\"\n\"-1\"\n");
    assert_eq!(ask(&["path", "a b", "-1", "--all"]), "1 path of 2 steps\n\"a b\" \"new\\nline\" \"-1\"\n");
    assert!(ask(&["vertex", "a b"]).contains("\"a b\""));
    let parents = scene.anden(&["run", "db", "bfs", "--source", "-1", "--parents", "--output", "-"]).succeeded().stdout;
    assert_eq!(parents, "\"-1\" \"-1\"\n\"a b\" -1\nc \"-1\"\nd -1\n\"new\\nline\" -1\n");
}

#[test]
fn memory_budget_below_program_size_is_refused() {
    let scene = Scene::with_small(&[]);
    scene.write("updates.txt", "+ 1 7\n");
    for arguments in [&["checkpoint", "db"][..], &["merge", "db"], &["apply", "db", "updates.txt"]] {
        for memory in ["1M", "8M"] {
            let with = |memory: &str| scene.anden(&[arguments, &["--memory", memory]].concat());
            assert_eq!(needed(&with(memory).failed(&["is too small"])), "24.0 MiB", "{arguments:?}");
        }
        assert_eq!(scene.json(&["info", "db"])["edges"], 6);
    }
    scene.anden(&["apply", "db", "updates.txt", "--memory", "32M"]).succeeded();
    assert_eq!(scene.json(&["info", "db"])["edges"], 7);
}

#[test]
fn ignored_algorithm_option_is_refused() {
    let scene = Scene::with_small(&["--weights"]);
    let sssp = ["run", "db", "sssp", "--source", "1", "--delta", "3", "--algorithm"];
    scene.anden(&[&sssp[..], &["bellman-ford"]].concat()).refused(&["does not take delta", "bellman-ford"]);
    scene.anden(&[&sssp[..], &["delta-stepping"]].concat()).succeeded();
}

#[test]
fn messages_say_it_once_and_shortly() {
    let scene = Scene::with_small(&[]);
    for arguments in [
        &["export", "db", "/dev/full"][..],
        &["export", "db", "x.csv", "--vertices", "/dev/full"],
        &["generate", "uniform", "--scale", "5", "-o", "/dev/full"],
    ] {
        let ran = scene.anden(arguments).failed(&["anden: /dev/full: cannot write: No space"]);
        assert_eq!(ran.stderr.matches("cannot write").count(), 1, "{ran:?}");
    }
    scene.write("edges.csv", "source,target,size\n1,2,3\n");
    let no_column = ["edges.csv: expected the column 'nosuch' that --properties names"];
    scene.anden(&["load", "x", "edges.csv", "--properties", "nosuch"]).failed(&no_column);
    let vertices = ["--vertices", "edges.csv", "--vertex-column", "source", "--vertex-properties", "nosuch"];
    let no_column = ["edges.csv: expected the column 'nosuch' that --vertex-properties names"];
    scene.anden(&[&["load", "x", "small.txt"], &vertices[..]].concat()).failed(&no_column);
    let ran = scene.anden(&["checkpoint", "db", "--name", &"n".repeat(70_000)]).failed(&["nnn", "70000 bytes"]);
    assert!(ran.stderr.len() < 300, "{}", ran.stderr.len());
    scene.write("edges.txt.gz", [gzip("1 2\n"), b"junk that is no gzip data".to_vec()].concat());
    scene.anden(&["load", "x", "edges.txt.gz"]).failed(&["edges.txt.gz", "followed by what is none"]);
    scene.write("edges.txt.gz", [gzip("1 2\n"), b"junk".to_vec()].concat());
    scene.anden(&["load", "x", "edges.txt.gz"]).failed(&["edges.txt.gz", "followed by what is none"]);
}

#[test]
fn integer_keys_have_no_sign() {
    let scene = Scene::with_small(&[]);
    scene.anden(&["query", "db", "edge", "+1", "2"]).failed(&["vertex +1 does not exist"]);
    assert_eq!(scene.anden(&["query", "db", "edge", "01", "2"]).succeeded().stdout, "true\n");
    scene.write("updates.txt", "+ +1 02\n");
    scene.anden(&["apply", "db", "updates.txt"]).failed(&["updates.txt:1", "+1"]);
    scene.write("updates.txt", "+ 01 09\n");
    scene.anden(&["apply", "db", "updates.txt"]).succeeded();
    assert_eq!(scene.json(&["query", "db", "edge", "1", "9"])["result"], true);
}

#[test]
fn weights_and_the_ending_must_agree() {
    let scene = Scene::new();
    let grid = ["generate", "grid", "--width", "2", "--height", "2"];
    scene.anden(&[&grid[..], &["--weights", "1..9", "-o", "x.sg"]].concat()).refused(&["x.sg", "call it .wsg"]);
    scene.anden(&[&grid[..], &["-o", "x.wsg"]].concat()).refused(&["x.wsg", "needs --weights"]);
    assert_eq!(scene.names(), [""; 0]);
}

#[test]
fn a_failed_report_says_that_values_are_written() {
    let scene = Scene::with_small(&[]);
    let (status, message) = with_full_output(&scene, &["run", "db", "wcc", "--output", "values.txt"]);
    assert_eq!(status, Some(1), "{message}");
    assert!(message.contains("the file was written, but standard output"), "{message}");
    assert!(!scene.read("values.txt").is_empty());
}
