//! `append`, `snapshots`, `merge`, `drop`, `diff`, `retain`, and older snapshots.

use serde_json::{Value, json};

use crate::scene::{Scene, files_below, keys};

/// A scene with three snapshots of `db`: the small graph; with 2 → 5 and without 5 → 6; without vertex 4 and with 7 →
/// 1.
fn with_history(options: &[&str]) -> Scene {
    let scene = Scene::with_small(options);
    let weighted = options.contains(&"--weights");
    scene.write("second.txt", if weighted { "2 5 3\n1 2 0.5\n" } else { "2 5\n1 2\n" });
    scene.write("gone.txt", "# edges and vertices\n5 6\n6 5\n");
    scene.write("third.txt", if weighted { "7 1 1.5\n" } else { "7 1\n" });
    scene.write("also_gone.txt", "4\n");
    scene.anden(&["append", "db", "second.txt", "--remove", "gone.txt", "--name", "second"]).succeeded();
    scene.anden(&["append", "db", "third.txt", "--remove", "also_gone.txt"]).succeeded();
    scene
}

fn edges(scene: &Scene, selection: &[&str]) -> Vec<String> {
    let ran = scene.anden(&[&["export", "db", "-", "--format", "edgelist"], selection].concat()).succeeded();
    ran.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn an_append_reports_what_it_did() {
    let scene = Scene::with_small(&[]);
    scene.write("more.txt", "1 2\n2 5\n9 1\n");
    scene.write("gone.txt", "5 6\n3 77\n78\n");
    let report = scene.json(&["append", "db", "more.txt", "--remove", "gone.txt", "--name", "second"]);
    let required = ["vertices", "edges", "snapshot", "seconds", "bytes", "skipped", "peak_bytes"];
    assert_eq!(keys(&report)[..7], required);
    assert_eq!((&report["vertices"], &report["edges"], &report["snapshot"]), (&json!(7), &json!(7), &json!(2)));
    assert_eq!((&report["added"], &report["removed"], &report["missing"]), (&json!(2), &json!(1), &json!(2)));
    assert!(report["bytes"].as_u64() > report["snapshot_bytes"].as_u64());
    assert_eq!(edges(&scene, &[]), ["1 2", "1 3", "2 3", "2 5", "3 4", "4 2", "9 1"]);
    let shown = scene.anden(&["append", "db", "--remove", "gone.txt"]).succeeded().stdout;
    assert!(shown.starts_with("appended snapshot 3 to db\n"), "{shown}");
    scene.anden(&["verify", "db"]).succeeded();
}

#[test]
fn snapshots_are_looked_back_at() {
    let scene = with_history(&[]);
    let (first, second, third) = (
        ["1 2", "1 3", "2 3", "3 4", "4 2", "5 6"],
        ["1 2", "1 3", "2 3", "2 5", "3 4", "4 2"],
        ["1 2", "1 3", "2 3", "2 5", "7 1"],
    );
    assert_eq!(edges(&scene, &["--snapshot", "1"]), first);
    assert_eq!(edges(&scene, &["--snapshot", "2"]), second);
    assert_eq!(edges(&scene, &["--snapshot", "second"]), second);
    assert_eq!(edges(&scene, &["--snapshot", "3"]), third);
    assert_eq!(edges(&scene, &[]), third);
    assert_eq!(edges(&scene, &["--window", "2..3"]), ["2 5", "7 1"]);
    assert_eq!(edges(&scene, &["--window", "1..2"]), second);
    let run = |selection: &[&str]| scene.json(&[&["run", "db", "wcc", "--check"], selection].concat());
    let at_first = run(&["--snapshot", "1"]);
    assert_eq!((&at_first["view"], &at_first["vertices"]), (&json!("snapshot 1"), &json!(6)));
    assert_eq!(at_first["result"], json!({ "components": 2, "largest": 4 }));
    let window = run(&["--window", "2..3"]);
    assert_eq!((&window["view"], &window["edges"]), (&json!("window 2..3"), &json!(2)));
    assert_eq!(run(&[])["view"], "snapshot 3");
    let neighbors = |selection: &[&str]| {
        scene.json(&[&["query", "db", "neighbors", "2", "--both"], selection].concat())["result"].clone()
    };
    assert_eq!(neighbors(&["--snapshot", "1"]), json!([1, 3, 4]));
    assert_eq!(neighbors(&["--snapshot", "second"]), json!([1, 3, 4, 5]));
    assert_eq!(neighbors(&[]), json!([1, 3, 5]));
    scene.anden(&["query", "db", "vertex", "4"]).failed(&["4", "does not exist"]);
    scene.anden(&["query", "db", "vertex", "4", "--snapshot", "2"]).succeeded();
    scene.anden(&["query", "db", "vertex", "7", "--snapshot", "2"]).failed(&["7", "does not exist"]);
}

#[test]
fn snapshots_are_listed() {
    let scene = with_history(&[]);
    let listed = scene.json(&["snapshots", "db"])["snapshots"].clone();
    let column = |name: &str| listed.as_array().unwrap().iter().map(|info| info[name].clone()).collect::<Value>();
    assert_eq!(column("number"), json!([1, 2, 3]));
    assert_eq!(column("name"), json!([null, "second", null]));
    assert_eq!((column("vertices"), column("edges")), (json!([6, 6, 6]), json!([6, 6, 5])));
    assert_eq!((column("added"), column("removed")), (json!([6, 1, 1]), json!([0, 1, 2])));
    let info = scene.json(&["info", "db"]);
    assert_eq!((&info["vertices"], &info["edges"], &info["snapshots"]), (&json!(6), &json!(5), &listed));
    assert!(info["pages"]["patched"].is_u64() && info["deltas"].is_u64() && info["fragments"]["max"].is_u64());
    assert!(scene.anden(&["snapshots", "db"]).succeeded().stdout.contains("second"));
    assert!(scene.anden(&["info", "db"]).succeeded().stdout.contains("fragments a vertex"));
}

#[test]
fn differences() {
    let scene = with_history(&[]);
    let diff = |arguments: &[&str]| scene.anden(&[&["diff", "db"], arguments].concat()).succeeded().stdout;
    assert_eq!(diff(&["1", "2"]), "- 5 6\n+ 2 5\n");
    assert_eq!(diff(&["2", "1"]), "- 2 5\n+ 5 6\n");
    assert_eq!(diff(&["1", "3"]), "v+ 7\n- 3 4\n- 4 2\n- 5 6\n+ 2 5\n+ 7 1\nv- 4\n");
    assert_eq!(diff(&["3", "second"]), "v+ 4\n- 7 1\n+ 3 4\n+ 4 2\nv- 7\n");
    assert_eq!(diff(&["2", "2"]), "");
    scene.write("old.txt", "2 5\n1 2\n9 1\n");
    scene.anden(&["load", "old", "old.txt"]).succeeded();
    assert_eq!(diff(&["2", "1", "--with", "old"]), "v+ 9\n- 1 3\n- 2 3\n- 3 4\n- 4 2\n+ 9 1\nv- 3\nv- 4\nv- 6\n");
    scene.anden(&["diff", "db", "1", "7", "--with", "old"]).failed(&["snapshot 7"]);
    scene.anden(&["diff", "db", "1", "1", "--with", "none"]).failed(&["none"]);
    let object = scene.json(&["diff", "db", "second", "3"]);
    assert_eq!((&object["from"], &object["to"]), (&json!(2), &json!(3)));
    assert_eq!((&object["added"], &object["removed"]), (&json!(1), &json!(2)));
    assert_eq!(object["added_edges"], json!([[7, 1]]));
    assert_eq!(object["removed_edges"], json!([[3, 4], [4, 2]]));
    assert_eq!((&object["added_vertices"], &object["removed_vertices"]), (&json!([7]), &json!([4])));
}

#[test]
fn a_new_weight_replaces_the_one_before() {
    let scene = with_history(&["--weights"]);
    scene.write("weights.txt", "1 2 7\n1 3 4\n2 5 1\n2 5 2\n");
    let report = scene.json(&["append", "db", "weights.txt", "--weights", "--weight-type", "f64"]);
    assert_eq!((&report["added"], &report["removed"]), (&json!(2), &json!(2)));
    assert_eq!(edges(&scene, &[]), ["1 2 7", "1 3 4", "2 3 1", "2 5 1", "7 1 1.5"]);
    let diff = scene.anden(&["diff", "db", "3", "4"]).succeeded().stdout;
    assert_eq!(diff, "- 1 2 0.5\n- 2 5 3\n+ 1 2 7\n+ 2 5 1\n");
    assert_eq!(scene.json(&["diff", "db", "3", "4"])["added_edges"], json!([[1, 2, 7.0], [2, 5, 1.0]]));
    scene.anden(&["run", "db", "sssp", "--source", "7", "--check"]).succeeded();
    assert_eq!(scene.json(&["query", "db", "path", "7", "2", "--weighted"])["result"]["length"], 8.5);
    assert_eq!(edges(&scene, &["--window", "4..4"]), ["1 2 7", "2 5 1"]);
}

#[test]
fn merging_and_dropping_lose_nothing_else() {
    let scene = with_history(&["--weights"]);
    let before: Vec<_> = ["1", "2", "3"].map(|number| edges(&scene, &["--snapshot", number])).into();
    let report = scene.json(&["merge", "db"]);
    assert_eq!(keys(&report)[..3], ["seconds", "bytes", "peak_bytes"]);
    for (number, before) in ["1", "2", "3"].iter().zip(&before) {
        assert_eq!(edges(&scene, &["--snapshot", number]), *before);
    }
    assert_eq!(scene.json(&["info", "db"])["pages"]["patched"], 0);
    scene.anden(&["merge", "db", "--newest", "2"]).succeeded();
    let dropped = scene.json(&["drop", "db", "second"]);
    assert_eq!(dropped["dropped"], json!([2]));
    scene.anden(&["run", "db", "wcc", "--snapshot", "2"]).failed(&["snapshot 2", "1, 3"]);
    scene.anden(&["run", "db", "wcc", "--snapshot", "second"]).failed(&["second"]);
    assert_eq!((edges(&scene, &["--snapshot", "1"]), edges(&scene, &[])), (before[0].clone(), before[2].clone()));
    // The newest snapshot is dropped and its changes stay. The next snapshot has a new number.
    scene.anden(&["drop", "db", "3"]).succeeded();
    assert_eq!(edges(&scene, &[]), before[2]);
    scene.anden(&["drop", "db", "1"]).failed(&["snapshot"]);
    scene.write("fourth.txt", "8 1 1\n");
    assert_eq!(scene.json(&["append", "db", "fourth.txt"])["snapshot"], 4);
    assert_eq!(edges(&scene, &["--window", "4..4"]).len(), 3);
    scene.anden(&["verify", "db"]).succeeded();
}

#[test]
fn retention_keeps_what_it_says() {
    let scene = with_history(&[]);
    let numbers = || {
        let listed = scene.json(&["snapshots", "db"])["snapshots"].clone();
        listed.as_array().unwrap().iter().map(|info| info["number"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let retained = scene.json(&["retain", "db", "last:1"]);
    assert_eq!((&retained["retention"], &retained["dropped"]), (&json!("last:1"), &json!([1])));
    assert_eq!(numbers(), [2, 3]);
    scene.anden(&["append", "db", "second.txt"]).succeeded();
    assert_eq!(numbers(), [2, 4]);
    scene.anden(&["retain", "db", "all"]).succeeded();
    scene.anden(&["append", "db", "third.txt"]).succeeded();
    assert_eq!(numbers(), [2, 4, 5]);
    assert_eq!(scene.json(&["retain", "db", "named"])["dropped"], json!([4]));
    scene.anden(&["retain", "db", "days:1"]).succeeded();
    assert_eq!(numbers(), [2, 5]);
}

/// A rule by days must not drop the history after a jump of the clock: the snapshots here are of the year 2001.
#[test]
fn retention_by_days_keeps_an_old_history() {
    let scene = Scene::with_old_history();
    let info = || scene.json(&["info", "db"]);
    assert_eq!((&info()["retention"], &info()["held_back"]), (&json!("days:30"), &json!([1, 2, 3])));
    assert!(scene.anden(&["info", "db"]).succeeded().stdout.contains("days:30 would drop 3"));
    let parts = ["days:30", "drops 3 of 4 snapshots", "2001-09-09", "--force"];
    scene.anden(&["retain", "db", "days:30"]).failed(&parts);
    scene.write("more.txt", "8 9\n");
    let appended = scene.anden(&["append", "db", "more.txt", "-v"]);
    assert_eq!(appended.status, 0);
    assert!(appended.stderr.contains("retention drops no snapshot"), "{}", appended.stderr);
    assert_eq!(info()["held_back"], json!([1, 2, 3, 4]));
    let retained = scene.json(&["retain", "db", "days:30", "--force"]);
    assert_eq!(retained["dropped"], json!([1, 2, 3, 4]));
    assert_eq!((&info()["held_back"], info()["snapshots"].as_array().unwrap().len()), (&json!([]), 1));
    scene.anden(&["verify", "db"]).succeeded();
}

#[test]
fn edges_are_spread_over_snapshots() {
    let scene = Scene::new();
    scene.anden(&["generate", "rmat", "--scale", "9", "--degree", "8", "-o", "graph.txt"]).succeeded();
    let load = |name: &str, options: &[&str]| scene.json(&[&["load", name, "graph.txt"], options].concat());
    let spread = ["--snapshots", "5", "--first-share", "0.6", "--seed", "3"];
    let report = load("db", &spread);
    assert_eq!(report["snapshot"], 5);
    let listed = scene.json(&["snapshots", "db"])["snapshots"].clone();
    let column = |name: &str| -> Vec<u64> {
        listed.as_array().unwrap().iter().map(|info| info[name].as_u64().unwrap()).collect()
    };
    let num_edges = report["edges"].as_u64().unwrap();
    let (edges_of, added) = (column("edges"), column("added"));
    assert_eq!((edges_of[4], added.iter().sum::<u64>()), (num_edges, num_edges));
    assert!(added[0].abs_diff(num_edges * 6 / 10) < num_edges / 20, "{added:?} of {num_edges}");
    assert!(added[1..].iter().all(|&n| n.abs_diff(num_edges / 10) < num_edges / 30), "{added:?} of {num_edges}");
    assert!(column("vertices").iter().all(|&n| n == report["vertices"].as_u64().unwrap()));
    let mut all = Vec::new();
    for number in 2..=5 {
        let window = format!("{number}..{number}");
        let found = edges(&scene, &["--window", &window]);
        assert_eq!(found.len() as u64, added[number - 1]);
        all.extend(found);
    }
    all.extend(edges(&scene, &["--snapshot", "1"]));
    all.sort();
    let mut newest = edges(&scene, &[]);
    newest.sort();
    assert_eq!(all, newest);
    let first = edges(&scene, &["--snapshot", "2"]);
    load("single", &[&spread[..], &["--threads", "1"]].concat());
    let again = scene.anden(&["export", "single", "-", "--format", "edgelist", "--snapshot", "2"]).succeeded().stdout;
    assert_eq!(again.lines().collect::<Vec<_>>(), first);
    scene.anden(&["verify", "db"]).succeeded();
}

/// Requires that the database does not change by refused commands.
#[test]
fn refused_commands_leave_database_unchanged() {
    let scene = with_history(&[]);
    scene.write("bad.txt", "1 2\n3 four\n");
    scene.write("wide.txt", "1 2 3\n");
    let contents = || -> Vec<_> {
        // The content of the lock file has no meaning.
        let files = files_below(&scene.path("db")).into_iter().filter(|path| !path.ends_with("LOCK"));
        files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
    };
    let before = contents();
    let fails = |arguments: &[&str], parts: &[&str]| {
        scene.anden(arguments).failed(parts);
    };
    fails(&["append", "db", "bad.txt"], &["bad.txt:2", "four"]);
    fails(&["append", "db", "second.txt", "--remove", "bad.txt"], &["bad.txt:2", "four"]);
    fails(&["append", "db", "none.txt"], &["none.txt"]);
    fails(&["append", "db", "second.txt", "--remove", "none.txt"], &["none.txt"]);
    fails(&["append", "db", "wide.txt", "--weights"], &["no weights", "leave out --weights", "load"]);
    fails(&["append", "db", "wide.txt", "--weight-type", "u32"], &["no weights"]);
    fails(&["append", "db", "second.txt", "--undirected"], &["is directed, not undirected"]);
    fails(&["append", "db", "second.txt", "--ids", "string"], &["integer ids, not string", "--ids"]);
    fails(&["append", "db", "second.txt", "--multigraph"], &["no multigraph"]);
    fails(&["append", "db", "second.txt", "--name", "second"], &["second"]);
    fails(&["append", "db", "second.txt", "--name", "12"], &["12"]);
    fails(&["append", "db", "second.txt", "--memory", "100"], &["memory"]);
    fails(&["append", "nowhere", "second.txt"], &["nowhere"]);
    fails(&["run", "db", "wcc", "--snapshot", "9"], &["snapshot 9", "1 to 3"]);
    fails(&["run", "db", "wcc", "--window", "3..2"], &["3..2", "reversed"]);
    fails(&["run", "db", "wcc", "--window", "2..9"], &["9"]);
    fails(&["export", "db", "out.txt", "--snapshot", "third"], &["third"]);
    fails(&["diff", "db", "1", "9"], &["snapshot 9"]);
    fails(&["drop", "db", "9"], &["snapshot 9"]);
    fails(&["drop", "db", "2", "9"], &["snapshot 9"]);
    fails(&["drop", "db", "1", "2", "3"], &["snapshot"]);
    scene.anden(&["append", "db", "-", "--remove", "-"]).refused(&["once"]);
    let changed: Vec<_> = contents().into_iter().filter(|file| !before.contains(file)).map(|file| file.0).collect();
    assert_eq!((changed, contents().len()), (vec![], before.len()), "the database changed");
    assert_eq!(scene.anden(&["append", "db", "second.txt", "--multigraph", "--duplicates", "sum"]).status, 2);
}

#[test]
fn remove_option_reads_csv() {
    let scene = Scene::new();
    scene.write("edges.txt", "1 2\n2 3\n3 4\n4 5\n5 1\n");
    let removed = |arguments: &[&str], input: &[u8]| {
        let _ = std::fs::remove_dir_all(scene.path("db"));
        scene.anden(&["load", "db", "edges.txt"]).succeeded();
        scene.anden_with_input(&[&["append", "db"], arguments].concat(), input).succeeded();
        edges(&scene, &[])
    };
    let expected = ["2 3", "5 1"];
    scene.write("gone.csv", "source,target\n\"1\",2\n4\n");
    assert_eq!(removed(&["--remove", "gone.csv"], b""), expected);
    let columns = ["--source-column", "u", "--target-column", "v"];
    scene.write("more.csv", "v,kind,u\n2,x,1\n4,y,3\n5,z,4\n");
    // Tests of the inputs cover the note on the other column.
    assert_eq!(removed(&[&["--quiet", "--remove", "more.csv"], &columns[..]].concat(), b""), expected);
    assert_eq!(removed(&["--remove", "-"], b"1;2\n4\n"), expected);
    assert_eq!(removed(&["--remove", "-"], b"1 2\n4\n"), expected);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, b"vertex\n4\n1,2\n").unwrap();
    std::fs::write(scene.path("gone.csv.gz"), encoder.finish().unwrap()).unwrap();
    assert_eq!(removed(&["--remove", "gone.csv.gz"], b""), expected);
    assert_eq!(removed(&["--remove", "gone.csv", "--remove", "-"], b"5 1\n"), expected[..1]);

    let fails = |text: &str, expected: &str| {
        scene.write("bad.csv", text);
        scene.anden(&["append", "db", "--remove", "bad.csv"]).failed(&[expected]);
    };
    fails(
        "1,2\n\n4,x\n",
        "bad.csv:3: expected a target, an integer from 0 to 18446744073709551615 (any text with --ids \
         string), found 'x'",
    );
    fails("1,2\n4,\n", "bad.csv:2: expected a target");
    fails("1,2\nx\n", "bad.csv:2: expected a source");
    fails("1,2\n\"3\n4,5\n", "bad.csv:2: expected a closing quote");
    scene.write("gone.graphml", "<graphml/>");
    scene.anden(&["append", "db", "--remove", "gone.graphml"]).failed(&["gone.graphml: ", "lists and CSV"]);
    assert_eq!(edges(&scene, &[]), expected[..1]);
}

#[test]
fn weights_are_read_as_the_graph_has_them() {
    let scene = Scene::with_small(&["--weights"]);
    scene.write("bare.txt", "1 2\n");
    scene.write("more.txt", "9 1 2.5\n");
    scene.anden(&["append", "db", "bare.txt"]).failed(&["bare.txt:1", "weight"]);
    scene.anden(&["append", "db", "more.txt", "--weight-type", "u32"]).failed(&["f64", "not u32", "--weight-type f64"]);
    scene.anden(&["append", "db", "more.txt"]).succeeded();
    assert!(edges(&scene, &[]).contains(&"9 1 2.5".to_owned()));
}

/// The database does not store the rule of the load. Each append has its own, which does not state the kind of graph.
#[test]
fn repeated_edges_of_an_append_follow_its_rule() {
    let scene = Scene::new();
    scene.write("edges.txt", "1 2 3\n1 2 4\n");
    scene.write("more.txt", "2 3 5\n2 3 1\n2 3 2\n");
    for (rule, weight) in [(&[][..], 1.0), (&["--duplicates", "min"], 1.0), (&["--duplicates", "last"], 2.0)] {
        check_rule(&scene, rule, weight);
    }
    check_rule(&scene, &["--duplicates", "sum"], 8.0);
    let help = scene.anden(&["help", "append"]).succeeded().stdout;
    let kind = help.find("The kind of graph").unwrap();
    assert!(help.find("--duplicates <RULE>").is_some_and(|place| place < kind), "{help}");
}

fn check_rule(scene: &Scene, rule: &[&str], weight: f64) {
    scene.anden(&["load", "db", "edges.txt", "--weights", "--duplicates", "sum"]).succeeded();
    scene.anden(&[&["append", "db", "more.txt"], rule].concat()).succeeded();
    assert_eq!(scene.json(&["query", "db", "edge", "1", "2"])["weights"], json!([7.0]));
    assert_eq!(scene.json(&["query", "db", "edge", "2", "3"])["weights"], json!([weight]), "{rule:?}");
    std::fs::remove_dir_all(scene.path("db")).unwrap();
}

#[test]
fn strings_and_columns() {
    let scene = Scene::new();
    scene.write("a.csv", "from,to\nbash,libc6\nvim,libc6\n");
    scene.write("b.csv", "from,to\nnano,libc6\nbash,libc6\n");
    scene.write("gone.txt", "vim\n");
    let columns = ["--source-column", "from", "--target-column", "to"];
    scene.anden(&[&["load", "db", "a.csv", "--ids", "string"], &columns[..]].concat()).succeeded();
    scene.anden(&[&["append", "db", "b.csv", "--remove", "gone.txt"], &columns[..]].concat()).succeeded();
    let neighbors = |arguments: &[&str]| {
        scene.json(&[&["query", "db", "neighbors", "libc6", "--in"], arguments].concat())["result"].clone()
    };
    assert_eq!((neighbors(&[]), neighbors(&["--snapshot", "1"])), (json!(["bash", "nano"]), json!(["bash", "vim"])));
    assert_eq!(
        scene.anden(&["diff", "db", "1", "2"]).succeeded().stdout,
        "v+ nano\n- vim libc6\n+ nano libc6\nv- vim\n"
    );
    scene.write("back.txt", "vim bash\n");
    scene.anden(&["append", "db", "back.txt", "--header", "none"]).succeeded();
    assert_eq!(scene.json(&["query", "db", "neighbors", "vim"])["result"], json!(["bash"]));
}

#[test]
fn snapshots_have_times_of_their_data() {
    let scene = Scene::new();
    scene.write("edges.txt", "1 2\n2 3\n");
    scene.write("more.txt", "3 4\n");
    scene.anden(&["load", "db", "edges.txt", "--as-of", "2012-04-30"]).succeeded();
    scene.anden(&["append", "db", "more.txt", "--as-of", "2012-05-31T18:00+02:00"]).succeeded();
    scene.anden(&["checkpoint", "db", "--name", "june", "--as-of", "-0001-12-31"]).succeeded();
    scene.anden(&["checkpoint", "db"]).succeeded();
    let expected = json!(["2012-04-30T00:00:00Z", "2012-05-31T16:00:00Z", "-0001-12-31T00:00:00Z", null]);
    for verb in ["snapshots", "info"] {
        let listed = scene.json(&[verb, "db"])["snapshots"].clone();
        let times: Vec<_> = listed.as_array().unwrap().iter().map(|snapshot| snapshot["as_of"].clone()).collect();
        assert_eq!(Value::from(times), expected, "{verb}");
    }
    let shown = scene.anden(&["snapshots", "db"]).succeeded().stdout;
    assert!(shown.contains("as of") && shown.contains("2012-05-31T16:00:00Z"), "{shown}");
    // A new name and a merge keep the time.
    scene.anden(&["rename", "db", "june", "may"]).succeeded();
    scene.anden(&["merge", "db"]).succeeded();
    assert_eq!(scene.json(&["snapshots", "db"])["snapshots"][2]["as_of"], expected[2]);
    // Several snapshots: the last one has all edges, so the time is its time.
    scene.anden(&["load", "several", "edges.txt", "--snapshots", "2", "--as-of", "2012-05-01"]).succeeded();
    let listed = scene.json(&["snapshots", "several"])["snapshots"].clone();
    assert_eq!((&listed[0]["as_of"], &listed[1]["as_of"]), (&json!(null), &json!("2012-05-01T00:00:00Z")));
    for wrong in ["2012-05", "yesterday", "2012-02-30"] {
        scene.anden(&["append", "db", "more.txt", "--as-of", wrong]).refused(&["--as-of", wrong]);
    }
}

#[test]
fn times_name_snapshots() {
    let scene = Scene::new();
    scene.write("1.txt", "1 2\n");
    scene.anden(&["load", "db", "1.txt", "--as-of", "2012-01-31"]).succeeded();
    for (name, as_of) in [("2", "2012-02-14T09:30"), ("3", "2012-02-29"), ("4", "2012-04-01")] {
        scene.write("more.txt", format!("1 {name}3\n"));
        scene.anden(&["append", "db", "more.txt", "--as-of", as_of]).succeeded();
    }
    // Quiet, because a note names a snapshot that is older than the time.
    let num_edges = |selection: &[&str]| {
        let run = scene.json(&[&["run", "db", "wcc", "--quiet"], selection].concat());
        (run["view"].clone(), run["edges"].clone())
    };
    for (time, number) in [
        ("2012-01", 1),
        ("2012-02-14", 2),
        ("2012-02-14T09:29", 1),
        ("2012-W07", 2),
        ("2012-02", 3),
        ("2012-03", 3),
        ("2012-04-01T00", 4),
        ("2999-12", 4),
    ] {
        let view = (json!(format!("snapshot {number}")), json!(number));
        assert_eq!(num_edges(&["--snapshot", time]), view, "{time}");
    }
    assert_eq!(num_edges(&["--window", "2012-02..2012-02"]), (json!("window 2..3"), json!(2)));
    assert_eq!(num_edges(&["--window", "2012-01..3"]), (json!("window 1..3"), json!(3)));
    assert_eq!(num_edges(&["--window", "2012-02-15..2012-04"]), (json!("window 3..4"), json!(2)));
    let fails =
        |option: &str, value: &str, texts: &[&str]| scene.anden(&["run", "db", "wcc", option, value]).failed(texts);
    fails("--snapshot", "2011-12", &["no snapshot is of 2011-12", "2012-01-31T00:00:00Z to 2012-04-01T00:00:00Z"]);
    fails("--snapshot", "2012-13", &["snapshot 2012-13 does not exist"]);
    fails("--window", "2012-03..2012-03", &["no snapshot is in 2012-03..2012-03"]);
    fails("--window", "2013-01..2013-02", &["no snapshot is of 2013-01"]);
    // A second drop of a name that looks like a time must not drop an older snapshot.
    scene.anden(&["drop", "db", "2012-03"]).failed(&["snapshot 2012-03 does not exist"]);
    scene.anden(&["rename", "db", "2012-03", "spring"]).failed(&["snapshot 2012-03 does not exist"]);
    // A name comes before a time.
    scene.anden(&["rename", "db", "4", "2012-02"]).succeeded();
    assert_eq!(num_edges(&["--snapshot", "2012-02"]).0, "snapshot 4");
}

#[test]
fn snapshots_get_other_names() {
    let scene = Scene::new();
    scene.write("edges.txt", "1 2\n2 3\n");
    scene.anden(&["load", "db", "edges.txt", "--name", "monday"]).succeeded();
    scene.write("more.txt", "3 4\n");
    scene.anden(&["append", "db", "more.txt", "--name", "tuesday"]).succeeded();
    let names = || -> Vec<Value> {
        let listed = scene.json(&["snapshots", "db"])["snapshots"].clone();
        listed.as_array().unwrap().iter().map(|snapshot| snapshot["name"].clone()).collect()
    };
    assert_eq!(names(), ["monday", "tuesday"]);
    scene.anden(&["rename", "db", "2", "monday"]).failed(&["snapshot 1", "\"monday\""]);
    let renamed = scene.json(&["rename", "db", "monday", "first"]);
    assert_eq!(renamed, serde_json::json!({ "snapshot": 1, "name": "first" }));
    assert_eq!(names(), ["first", "tuesday"]);
    assert_eq!(scene.json(&["run", "db", "wcc", "--snapshot", "first"])["vertices"], 3);
    scene.anden(&["run", "db", "wcc", "--snapshot", "monday"]).failed(&["monday"]);
    // The old name is free, and a name may be given twice to one snapshot.
    scene.anden(&["rename", "db", "tuesday", "monday"]).succeeded();
    scene.anden(&["rename", "db", "2", "monday"]).succeeded();
    let shown = scene.anden(&["rename", "db", "first", "--unnamed"]).succeeded().stdout;
    assert_eq!((shown.as_str(), names()), ("snapshot 1 of db has no name\n", vec![Value::Null, "monday".into()]));
    scene.anden(&["rename", "db", "1", "2"]).failed(&["\"2\" cannot name a snapshot"]);
    scene.anden(&["rename", "db", "9", "x"]).failed(&["snapshot 9"]);
    scene.anden(&["rename", "db", "1"]).refused(&["<NEW>"]);
    scene.anden(&["load", "other", "edges.txt", "--name", "7"]).failed(&["\"7\" cannot name a snapshot"]);
    scene.anden(&["load", "several", "edges.txt", "--snapshots", "2", "--name", "all"]).succeeded();
    assert_eq!(
        scene.json(&["query", "several", "--snapshot", "all", "khop", "1", "2"])["result"],
        serde_json::json!([2, 3])
    );
    scene.anden(&["verify", "db"]).succeeded();
}
