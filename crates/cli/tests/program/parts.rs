//! Exports of a part: an ego network, or chosen vertices; and results that are stored as properties.

use serde_json::json;

use crate::scene::Scene;

fn exported(scene: &Scene, options: &[&str]) -> String {
    scene.anden(&[&["export", "db", "-", "--format", "edgelist"], options].concat()).succeeded().stdout
}

#[test]
fn ego_networks_have_all_edges_between() {
    let scene = Scene::with_small(&[]);
    assert_eq!(exported(&scene, &["--ego", "1", "1"]), "1 2\n1 3\n2 3\n");
    assert_eq!(exported(&scene, &["--ego", "4", "1", "--in"]), "3 4\n");
    assert_eq!(exported(&scene, &["--ego", "4", "1", "--both"]), "2 3\n3 4\n4 2\n");
    assert_eq!(exported(&scene, &["--ego", "4", "0"]), "");
    let report = scene.json(&["export", "db", "near.graphml", "--ego", "1", "1"]);
    assert_eq!((&report["vertices"], &report["edges"]), (&json!(3), &json!(3)));
    scene.anden(&["load", "near", "near.graphml"]).succeeded();
    assert_eq!(scene.json(&["info", "near"])["vertices"], 3);
    scene.anden(&["export", "db", "x.csv", "--ego", "9", "1"]).failed(&["vertex 9"]);
    scene.anden(&["export", "db", "x.csv", "--ego", "1", "far"]).refused(&["--ego 1 far"]);
    scene.anden(&["export", "db", "x.csv", "--in"]).refused(&["--ego"]);
    scene.anden(&["export", "db", "x.csv", "--ego", "1"]).refused(&["--ego"]);
}

#[test]
fn chosen_vertices_keep_their_properties() {
    let scene = Scene::new();
    scene.write("edges.csv", "source,target\nann,ben lee\nben lee,cleo\ncleo,dora\ndora,ann\n");
    scene.write("people.csv", "id,age:i64\nann,30\nben lee,40\ncleo,\ndora,60\n");
    scene.anden(&["load", "db", "edges.csv", "--ids", "string", "--vertices", "people.csv"]).succeeded();
    // Further columns, such as those of a ranking, do not count.
    scene.write("keys.txt", "\"ben lee\"\t2\n\ncleo\nann 0.5\n");
    scene.anden(&["export", "db", "part.csv", "--vertices-in", "keys.txt", "--vertices", "left.csv"]).succeeded();
    assert_eq!(scene.read("part.csv"), "source,target\nann,\"ben lee\"\n\"ben lee\",cleo\n");
    assert_eq!(scene.read("left.csv"), "id,age:i64\nann,30\n\"ben lee\",40\ncleo,\n");
    let piped = ["export", "db", "-", "--format", "edgelist", "--vertices-in", "-", "--quiet"];
    assert_eq!(scene.anden_with_input(&piped, b"cleo\ndora\n").succeeded().stdout, "cleo dora\n");
    let older = ["export", "db", "-", "--format", "edgelist", "--vertices-in", "-", "--where-vertex", "age > 50"];
    scene.anden_with_input(&older, b"cleo\ndora\n").failed(&["-:1", "cleo", "filter"]);
    scene.write("keys.txt", "ann\nzoe\n");
    scene.anden(&["export", "db", "x.csv", "--vertices-in", "keys.txt"]).failed(&["keys.txt:2", "zoe"]);
    scene.anden(&["export", "db", "x.csv", "--vertices-in", "none.txt"]).failed(&["none.txt"]);
    scene.anden(&["export", "db", "x.csv", "--vertices-in", "keys.txt", "--ego", "ann", "1"]).refused(&["--ego"]);
    assert!(!scene.names().contains(&"x.csv".to_owned()));
}

#[test]
fn results_become_vertex_properties() {
    let scene = Scene::with_small(&[]);
    let stored = scene.json(&["run", "db", "wcc", "--store", "component", "--check"]);
    assert_eq!(stored["stored"], json!({ "property": "component", "snapshot": 2 }));
    let find = |value: &str| scene.json(&["query", "db", "find", "component", value])["result"].clone();
    assert_eq!((find("1"), find("5")), (json!([1, 2, 3, 4]), json!([5, 6])));
    let shown = scene.anden(&["run", "db", "bfs", "--source", "1", "--store", "hops"]).succeeded().stdout;
    assert!(shown.ends_with("stored hops in snapshot 3\n"), "{shown}");
    let hops = |vertex: &str| scene.json(&["query", "db", "vertex", vertex])["result"]["properties"]["hops"].clone();
    assert_eq!(["1", "4", "5"].map(hops), [json!(0), json!(2), json!(null)]);
    // Values of an earlier run do not stay where the new one reaches nothing.
    let quiet = scene.anden(&["run", "db", "bfs", "--source", "5", "--store", "hops", "--quiet"]).succeeded();
    assert_eq!(quiet.stdout, "");
    assert_eq!(["1", "5", "6"].map(hops), [json!(null), json!(0), json!(1)]);
    // Vertices outside of a part, or added later, keep what they have.
    let part = ["run", "db", "bfs", "--source", "1", "--store", "hops", "--where-vertex", "component = 1"];
    scene.anden(&part).succeeded();
    assert_eq!(["1", "5", "6"].map(hops), [json!(0), json!(0), json!(1)]);
    scene.anden(&["verify", "db"]).succeeded();
}

#[test]
fn results_of_older_snapshots_skip_removed_vertices() {
    let scene = Scene::with_small(&[]);
    scene.write("updates.txt", "v- 4\n+ 7 1\n");
    scene.anden(&["apply", "db", "updates.txt"]).succeeded();
    scene.anden(&["run", "db", "kcore", "--snapshot", "1", "--store", "core", "--output", "cores.txt"]).succeeded();
    let rows = scene.anden(&["query", "db", "find", "core", "2", "--return", "key,core"]).succeeded().stdout;
    assert_eq!(rows, "key\tcore\n1\t2\n2\t2\n3\t2\n");
    assert_eq!(scene.json(&["info", "db"])["vertices"], 6);
    assert_eq!(scene.json(&["query", "db", "vertex", "7"])["result"]["properties"], json!({}));
    assert_eq!(scene.read("cores.txt").lines().count(), 6);
}

#[test]
fn stored_values_have_the_type_of_their_property() {
    let scene = Scene::new();
    scene.write("edges.csv", "source,target\nann,ben\ncleo,dora\n");
    scene.anden(&["load", "db", "edges.csv", "--ids", "string"]).succeeded();
    scene.anden(&["run", "db", "wcc", "--store", "key", "--quiet"]).succeeded();
    assert_eq!(scene.json(&["query", "db", "find", "key", "cleo"])["result"], json!(["cleo", "dora"]));
    scene.anden(&["run", "db", "pagerank", "--store", "key"]).failed(&["\"key\"", "string", "f64", "another name"]);
    scene.anden(&["run", "db", "pagerank", "--store", ""]).refused(&["--store"]);
    scene.anden(&["run", "db", "triangles", "--store", "corners", "--quiet"]).succeeded();
    assert_eq!(scene.json(&["query", "db", "find", "corners", "0", "--count"])["result"], 4);
}
