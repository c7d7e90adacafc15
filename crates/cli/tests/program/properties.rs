//! Properties: read from files, shown, changed by appends, kept by snapshots.

use serde_json::json;

use crate::scene::Scene;

/// A database of three vertices with properties, and a second snapshot with other values.
fn with_properties() -> Scene {
    let scene = Scene::new();
    scene.write("edges.csv", "source,target\nann,bob\nbob,cy\n");
    scene.write("people.csv", "name,born,tall,since\nann,1980,true,2020-02-29T12:00:00Z\nbob,,false,\n");
    scene.write("later.csv", "name,born,code\nbob,1990,007\nann,,\n");
    scene.anden(&["load", "db", "edges.csv", "--ids", "string", "--vertices", "people.csv"]).succeeded();
    let types = ["--property-types", "code:string"];
    let appended = scene.json(&[&["append", "db", "--vertices", "later.csv"][..], &types].concat());
    assert_eq!((&appended["changed_properties"], &appended["snapshot"]), (&json!(3), &json!(2)));
    scene
}

#[test]
fn properties_are_shown() {
    let scene = with_properties();
    let vertex = |name: &str, selection: &[&str]| {
        scene.json(&[&["query", "db", "vertex", name][..], selection].concat())["result"]["properties"].clone()
    };
    let first = ["--snapshot", "1"];
    assert_eq!(vertex("ann", &first), json!({ "born": 1980, "tall": true, "since": "2020-02-29T12:00:00Z" }));
    assert_eq!(vertex("bob", &first), json!({ "tall": false }));
    assert_eq!(vertex("cy", &first), json!({}));
    assert_eq!(vertex("bob", &[]), json!({ "born": 1990, "tall": false, "code": "007" }));
    let shown = scene.anden(&["query", "db", "vertex", "bob"]).succeeded().stdout;
    assert!(shown.contains("born") && shown.contains("1990") && !shown.contains("since"), "{shown}");
    let info = scene.json(&["info", "db"]);
    let types: Vec<_> = info["vertex_properties"].as_array().unwrap().iter().map(|of| of["type"].clone()).collect();
    assert_eq!(types, ["i64", "boolean", "timestamp", "string"]);
    let shown = scene.anden(&["info", "db"]).succeeded().stdout;
    assert!(shown.contains("born (i64), tall (boolean), since (timestamp), code (string)"), "{shown}");
    scene.anden(&["verify", "db"]).succeeded();
}

#[test]
fn vertices_are_found_by_their_values() {
    let scene = with_properties();
    let find = |name: &str, value: &str, selection: &[&str]| {
        scene.json(&[&["query", "db", "find", name, value][..], selection].concat())["result"].clone()
    };
    assert_eq!(find("born", "1980", &[]), json!([]));
    assert_eq!(find("born", "1990", &[]), json!(["bob"]));
    assert_eq!(find("born", "1980", &["--snapshot", "1"]), json!(["ann"]));
    assert_eq!(find("tall", "true", &["--window", "2..2"]), json!([]));
    assert_eq!(find("tall", "true", &["--window", "2..2", "--isolated"]), json!(["ann"]));
    assert_eq!(find("since", "2020-02-29T12:00:00Z", &[]), json!(["ann"]));
    assert_eq!(find("tall", "false", &["--where-vertex", "born < 1990"]), json!([]));
    scene.write("live.txt", "p dan born 1990\n");
    scene.anden(&["apply", "db", "live.txt"]).succeeded();
    assert_eq!(scene.anden(&["query", "db", "find", "born", "1990"]).succeeded().stdout, "bob\ndan\n");
    let refused =
        |name: &str, value: &str, part: &str| drop(scene.anden(&["query", "db", "find", name, value]).failed(&[part]));
    refused("bron", "1990", "there is no property \"bron\" of vertices; did you mean \"born\"?");
    refused("born", "long ago", "property \"born\": expected a whole number of type i64");
}

#[test]
fn indexes_are_made_listed_and_dropped() {
    let scene = with_properties();
    scene.write("same.txt", "p ann code 007\n");
    let made = scene.json(&["index", "db", "create", "vertex", "code", "--unique"]);
    assert_eq!(made["indexes"][0]["property"], "code");
    assert_eq!(scene.anden(&["index", "db", "list"]).succeeded().lines().len(), 2);
    assert_eq!(scene.json(&["info", "db"])["indexes"], scene.json(&["index", "db", "list"])["indexes"]);
    assert_eq!(scene.json(&["info", "db"])["indexes"][0]["unique"], true);
    let shown = scene.anden(&["info", "db"]).succeeded().stdout;
    assert!(shown.contains("code (unique)"), "{shown}");
    assert_eq!(scene.json(&["query", "db", "find", "code", "007"])["result"], json!(["bob"]));
    let refused = "cannot set \"code\" of vertex ann to \"007\": vertex bob has this value, and the index is unique";
    scene.anden(&["apply", "db", "same.txt"]).failed(&[refused]);
    scene.write("same.csv", "name,code\ncy,007\n");
    let types = ["--property-types", "code:string"];
    scene.anden(&[&["append", "db", "--vertices", "same.csv"][..], &types].concat()).failed(&["vertex cy", "bob"]);
    scene.anden(&["verify", "db"]).succeeded();
    scene.anden(&["index", "db", "create", "vertex", "code"]).failed(&["it has one already"]);
    scene.anden(&["index", "db", "drop", "vertex", "code"]).succeeded();
    scene.anden(&["index", "db", "drop", "vertex", "code"]).failed(&["has none"]);
    scene.anden(&["apply", "db", "same.txt"]).succeeded();
    scene
        .anden(&["index", "db", "create", "vertex", "code", "--unique"])
        .failed(&["ann and bob both have the value 007"]);
    scene.anden(&["index", "db", "create", "vertex", "cod"]).failed(&["no vertex has it; did you mean \"code\"?"]);
    scene.anden(&["index", "db", "create", "edge", "code"]).refused(&["edge", "vertex"]);
    assert_eq!(scene.json(&["index", "db", "list"])["indexes"], json!([]));
}

#[test]
fn changed_properties_are_part_of_a_diff() {
    let scene = with_properties();
    let diff = scene.json(&["diff", "db", "1", "2"]);
    let changed = json!([["ann", "born", 1980, null], ["bob", "born", null, 1990], ["bob", "code", null, "007"]]);
    assert_eq!(diff["changed_properties"], changed);
    let lines = scene.anden(&["diff", "db", "2", "1"]).succeeded().stdout;
    assert_eq!(lines, "p ann born 1980\np bob born null\np bob code null\n");
    // Another database, with other vertex ids.
    scene.write("others.csv", "name,tall,born\nzoe,true,1\nbob,false,1990\nann,true,1980\n");
    let load = ["load", "other", "edges.csv", "--ids", "string", "--vertices", "others.csv"];
    scene.anden(&[&load[..], &["--vertex-properties", "born", "--io-order"]].concat()).succeeded();
    let lines = scene.anden(&["diff", "db", "2", "1", "--with", "other"]).succeeded().stdout;
    let expected =
        "v+ zoe\np zoe born 1\np ann born 1980\np bob code null\np ann since null\np bob tall null\np ann tall null\n";
    assert_eq!(lines, expected);
}

#[test]
fn bad_columns_are_told_with_their_place() {
    let scene = with_properties();
    let refused = |args: &[&str], expected: &str| drop(scene.anden(args).failed(&[expected]));
    scene.write("bad.csv", "name,born\nann,1980\nbob,soon\n");
    let expected = "bad.csv:3: column 'born': expected a whole number of type i64, found 'soon'";
    refused(&["append", "db", "--vertices", "bad.csv"], expected);
    refused(
        &["append", "db", "--vertices", "bad.csv", "--vertex-column", "key"],
        "bad.csv:1: cannot find the column 'key'",
    );
    let missing = ["append", "db", "--vertices", "bad.csv", "--vertex-properties", "size"];
    refused(&missing, "bad.csv: expected the column 'size' that --vertex-properties names, found none");
    scene.write("twice.csv", "name,born,born\nann,1,2\n");
    refused(&["append", "db", "--vertices", "twice.csv"], "twice.csv:1: there are two properties with the name 'born'");
    assert_eq!(scene.json(&["snapshots", "db"])["snapshots"].as_array().map(Vec::len), Some(2));
    scene.anden(&["load", "db2", "edges.csv", "--property-types", "born"]).refused(&["a name and a type"]);
}

/// A list of edges with epoch seconds, and CSV with words for null.
#[test]
fn epochs_and_null_words_are_read() {
    let scene = Scene::new();
    scene.write("a.txt", "1 2 1300000000\n2 3 1300000100\n");
    scene.anden(&["load", "a", "a.txt", "--columns", "u,v,time:epoch_s"]).succeeded();
    let exported = scene.anden(&["export", "a", "-", "--format", "csv"]).succeeded().stdout;
    let expected = "source,target,time:timestamp\n1,2,2011-03-13T07:06:40Z\n2,3,2011-03-13T07:08:20Z\n";
    assert_eq!(exported, expected);
    scene.write("b.csv", "source,target,time,n\n1,2,1300000000000,NA\n2,3,NULL,7\n");
    let options = ["--property-types", "time:epoch_ms", "--null", "NA", "--null", "NULL"];
    scene.anden(&[&["load", "b", "b.csv"], &options[..]].concat()).succeeded();
    let exported = scene.anden(&["export", "b", "-", "--format", "csv"]).succeeded().stdout;
    assert_eq!(exported, "source,target,time:timestamp,n:i64\n1,2,2011-03-13T07:06:40Z,\n2,3,,7\n");
    scene.anden(&["load", "c", "b.csv", "--property-types", "n:epoch"]).refused(&["epoch_s, epoch_ms"]);
}
