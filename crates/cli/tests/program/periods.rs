//! `load --snapshot-by`, and windows and times on its snapshots.

use serde_json::json;

use crate::scene::Scene;

/// Mails at noon of four days in January, February and April 2012, in seconds since 1970.
const MAILS: &str = "\
1 2 1326974400
2 3 1328011200
3 4 1328616000
1 2 1333281600
";

fn with_months(options: &[&str]) -> Scene {
    let scene = Scene::new();
    scene.write("mails.txt", MAILS);
    let load = ["load", "db", "mails.txt", "--columns", "from,to,time:epoch_s", "--snapshot-by", "time:month"];
    scene.anden(&[&load, options].concat()).succeeded();
    scene
}

fn edges(scene: &Scene, selection: &[&str]) -> Vec<String> {
    let ran = scene.anden(&[&["export", "db", "-", "--format", "edgelist", "--quiet"], selection].concat()).succeeded();
    ran.stdout.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn each_month_becomes_a_snapshot() {
    let scene = with_months(&["--multigraph"]);
    let snapshots = scene.json(&["snapshots", "db"])["snapshots"].clone();
    let named = |place: usize| (snapshots[place]["name"].clone(), snapshots[place]["as_of"].clone());
    assert_eq!(named(0), (json!("2012-01"), json!("2012-01-31T23:59:59.999999Z")));
    assert_eq!(named(2), (json!("2012-04"), json!("2012-04-30T23:59:59.999999Z")));
    assert_eq!(snapshots.as_array().unwrap().len(), 3);
    assert_eq!(edges(&scene, &["--snapshot", "2012-01"]), ["1 2", "2 3"]);
    assert_eq!(edges(&scene, &["--snapshot", "2012-02"]), ["1 2", "2 3", "3 4"]);
    assert_eq!(edges(&scene, &["--snapshot", "2012-04"]), ["1 2", "1 2", "2 3", "3 4"]);
    assert_eq!(edges(&scene, &["--window", "2012-02..2012-04"]), ["1 2", "3 4"]);
    assert_eq!(edges(&scene, &["--window", "2012-04..2012-04"]), ["1 2"]);
    assert_eq!(scene.json(&["run", "db", "wcc", "--snapshot", "2012-01"])["vertices"], 3);
    assert_eq!(scene.json(&["query", "db", "edge", "3", "4"])["properties"][0]["time"], "2012-02-07T12:00:00Z");
    scene.anden(&["verify", "db"]).succeeded();
    let shown = scene
        .anden(&[
            "load",
            "other",
            "mails.txt",
            "--columns",
            "from,to,time:epoch_s",
            "--multigraph",
            "--snapshot-by",
            "time:day",
        ])
        .succeeded()
        .stdout;
    assert!(shown.contains("snapshots") && shown.contains("4, 2012-01-19 to 2012-04-01"), "{shown}");
}

#[test]
fn repeated_edges_follow_the_rule_of_duplicates() {
    let scene = with_months(&["--properties", "none"]);
    assert_eq!(edges(&scene, &["--window", "2012-04..2012-04"]), Vec::<String>::new());
    assert_eq!(edges(&scene, &["--snapshot", "2012-04"]), ["1 2", "2 3", "3 4"]);
    assert_eq!(scene.json(&["info", "db"])["snapshots"][2]["added"], 0);
    let scene = with_months(&["--duplicates", "last"]);
    assert_eq!(edges(&scene, &["--window", "2012-04..2012-04"]), ["1 2"]);
    let time = |snapshot: &str| {
        scene.json(&["query", "db", "edge", "1", "2", "--snapshot", snapshot])["properties"][0]["time"].clone()
    };
    assert_eq!((time("2012-02"), time("2012-04")), (json!("2012-01-19T12:00:00Z"), json!("2012-04-01T12:00:00Z")));
    scene
        .anden(&["load", "new", "mails.txt", "--columns", "from,to,time:epoch_s", "--snapshot-by", "time:month"])
        .failed(&["edges 1 and 4 of the input are parallel", "--duplicates"]);
}

#[test]
fn faults_name_file_line_and_option() {
    let scene = Scene::new();
    scene.write("mails.csv", "from,to,time,note\n1,2,2012-01-19,a\n2,3,,b\n3,4,2012-02-01,c\n");
    let load = |options: &[&str]| scene.anden(&[&["load", "db", "mails.csv"], options].concat());
    load(&["--snapshot-by", "time:week"]).failed(&["mails.csv:3", "time", "--snapshot-by", "null"]);
    load(&["--snapshot-by", "tyme:week"]).failed(&["mails.csv", "tyme", "--snapshot-by", "time, note"]);
    load(&["--snapshot-by", "note:week"]).failed(&["mails.csv", "note", "--snapshot-by", "note:timestamp"]);
    load(&["--snapshot-by", "from:week"]).failed(&["mails.csv", "from", "--snapshot-by"]);
    load(&["--snapshot-by", "time:year"]).refused(&["--snapshot-by", "hour, day, week, month", "time:year"]);
    for other in [&["--snapshots", "2"][..], &["--name", "a"], &["--as-of", "2012-01-01"], &["--seed", "2"]] {
        load(&[&["--snapshot-by", "time:week"], other].concat()).refused(&["--snapshot-by", other[0]]);
    }
    assert!(!scene.path("db").exists());
    scene.write("numbers.csv", "from,to,time\n1,2,1326974400\n");
    scene.anden(&["load", "db", "numbers.csv", "--snapshot-by", "time:week"]).failed(&[
        "numbers.csv",
        "i64",
        "--property-types",
        "time:epoch_s",
        "epoch_ms",
    ]);
}

#[test]
fn lines_without_a_time_may_be_skipped() {
    let scene = Scene::new();
    scene.write("mails.csv", "from,to,time\n1,2,2012-01-19\n2,3,\n3,4,2012-02-01\n");
    let ran = scene.anden(&["load", "db", "mails.csv", "--snapshot-by", "time:week", "--on-error", "skip"]);
    assert!(ran.status == 0 && ran.stderr.contains("mails.csv:3"), "{ran:?}");
    assert_eq!(edges(&scene, &["--snapshot", "2012-W05"]), ["1 2", "3 4"]);
}

#[test]
fn a_dropped_month_leads_to_an_older_one() {
    let scene = with_months(&["--multigraph"]);
    let wcc = |time: &str| scene.anden(&["run", "db", "wcc", "--snapshot", time, "--json"]);
    assert_eq!(wcc("2012-02").succeeded().status, 0);
    scene.anden(&["drop", "db", "2012-02"]).succeeded();
    let ran = wcc("2012-02");
    assert!(ran.status == 0 && ran.stdout.contains("\"view\":\"snapshot 1\""), "{ran:?}");
    let note = "anden: note: no snapshot is called 2012-02 or of that time: reading the older snapshot 1 (2012-01)\n";
    assert_eq!(ran.stderr, note);
    let quiet = scene.anden(&["run", "db", "wcc", "--snapshot", "2012-02", "--quiet"]).succeeded();
    assert_eq!(quiet.stderr, "");
    // A day of the month leads to the snapshot of the month without a note; a window has what is left of its months.
    assert_eq!(wcc("2012-04-30").succeeded().status, 0);
    scene.anden(&["drop", "db", "2012-02"]).failed(&["snapshot 2012-02 does not exist"]);
    let window = ["export", "db", "-", "--format", "edgelist", "--window", "2012-02..2012-02"];
    scene.anden(&window).failed(&["no snapshot is in 2012-02..2012-02"]);
    assert_eq!(edges(&scene, &["--window", "2012-02..2012-04"]), ["1 2", "3 4"]);
}

#[test]
fn windows_have_the_vertices_of_their_edges() {
    let scene = with_months(&["--multigraph"]);
    let run = |kernel: &str, options: &[&str]| {
        scene.json(&[&["run", "db", kernel, "--check", "--window", "2012-02..2012-02"], options].concat())
    };
    let touched = run("wcc", &[]);
    assert_eq!(
        (&touched["view"], &touched["vertices"], &touched["edges"]),
        (&json!("window 2..2"), &json!(2), &json!(1))
    );
    assert_eq!(touched["result"]["components"], 1);
    assert_eq!(run("wcc", &["--no-isolated"])["vertices"], 2);
    let all = run("wcc", &["--isolated"]);
    assert_eq!((&all["vertices"], &all["edges"], &all["result"]["components"]), (&json!(4), &json!(1), &json!(3)));
    let ranks = run("pagerank", &["--output", "ranks.txt"]);
    assert!((ranks["result"]["sum"].as_f64().unwrap() - 1.0).abs() < 1e-9, "{ranks}");
    let keys = |file: &str| scene.read(file).lines().map(|line| line[..1].to_owned()).collect::<Vec<_>>();
    assert_eq!(keys("ranks.txt"), ["3", "4"]);
    let export = ["export", "db", "edges.txt", "--vertices", "keys.txt", "--quiet", "--window", "2012-02..2012-02"];
    scene.anden(&export).succeeded();
    assert_eq!(keys("keys.txt"), ["3", "4"]);
    scene.anden(&[&export[..], &["--isolated"]].concat()).succeeded();
    assert_eq!(keys("keys.txt"), ["1", "2", "3", "4"]);
    let neighbors = ["query", "db", "neighbors", "4", "--window", "2012-04..2012-04"];
    scene.anden(&neighbors).failed(&["vertex 4 has no edge in window 3..3"]);
    let none = scene.json(&[&neighbors[..], &["--isolated"]].concat());
    assert_eq!(none["result"], json!([]));
    scene.anden(&["query", "db", "neighbors", "9", "--window", "2012-04..2012-04"]).failed(&["9 does not exist"]);
    scene.anden(&["run", "db", "wcc", "--isolated"]).refused(&["--isolated", "--window"]);
    let both = ["run", "db", "wcc", "--window", "2..2", "--isolated", "--no-isolated"];
    scene.anden(&both).refused(&["--isolated", "--no-isolated"]);
}

#[test]
fn isolated_vertices_are_left_out_on_request() {
    let scene = with_months(&["--multigraph"]);
    for (edges, options, num_vertices) in [
        ("time > '2012-02-05'", &[][..], 4),
        ("time > '2012-02-05'", &["--no-isolated"], 4),
        ("time > '2012-03-05'", &["--no-isolated"], 2),
        ("time > '2012-03-05'", &["--window", "2..3"], 4),
        ("time > '2012-03-05'", &["--window", "2..3", "--no-isolated"], 2),
    ] {
        let found = scene.json(&[&["run", "db", "wcc", "--where-edge", edges], options].concat());
        assert_eq!(found["vertices"], num_vertices, "{edges} {options:?}");
    }
}
