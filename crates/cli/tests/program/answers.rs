//! Known answers on a graph that is checked by hand, and the exact shape of `--json`.

use serde_json::{Value, json};

use crate::scene::{Scene, keys};

const RUN_KEYS: [&str; 9] =
    ["kernel", "vertices", "edges", "threads", "view", "seconds", "median_seconds", "peak_bytes", "result"];

/// Runs a kernel with its verifier and checks the shape of the report. Returns the result.
fn result(scene: &Scene, arguments: &[&str]) -> Value {
    let object = scene.json(&[&["run", "db"], arguments, &["--check"]].concat());
    let found: Vec<&str> =
        keys(&object).into_iter().filter(|key| !["preparation_seconds", "prepared", "check"].contains(key)).collect();
    assert_eq!(found, RUN_KEYS);
    assert_eq!(
        (&object["kernel"], &object["vertices"], &object["edges"]),
        (&json!(arguments[0]), &json!(6), &json!(6))
    );
    assert!(object["peak_bytes"].as_u64().unwrap() > 0);
    object["result"].clone()
}

#[test]
fn bfs() {
    let scene = Scene::with_small(&[]);
    let found = result(&scene, &["bfs", "--source", "1"]);
    assert_eq!(found, json!({ "source": 1, "reached": 4, "depth": 2 }));
    assert_eq!(keys(&found), ["source", "reached", "depth"]);
    scene.anden(&["run", "db", "bfs", "--source", "1", "--output", "hops"]).succeeded();
    assert_eq!(scene.read("hops"), "1 0\n2 1\n3 1\n4 2\n5 9223372036854775807\n6 9223372036854775807\n");
    let parents = scene.anden(&["run", "db", "bfs", "--source", "1", "--parents", "--output", "-"]).succeeded();
    let parents = parents.lines();
    assert_eq!((parents[0], parents[1], parents[2], parents[3], parents[5]), ("1 1", "2 1", "3 1", "4 3", "6 -1"));
}

#[test]
fn sssp() {
    let scene = Scene::with_small(&["--weights"]);
    let found = result(&scene, &["sssp", "--source", "1"]);
    assert_eq!(found, json!({ "source": 1, "reached": 4, "max_distance": 2.5, "sum_distance": 4.5 }));
    assert_eq!(keys(&found), ["source", "reached", "max_distance", "sum_distance"]);
    scene.anden(&["run", "db", "sssp", "--source", "1", "--output", "distances"]).succeeded();
    assert_eq!(scene.read("distances"), "1 0\n2 0.5\n3 1.5\n4 2.5\n5 infinity\n6 infinity\n");
}

#[test]
fn sssp_with_whole_weights_gives_whole_distances() {
    let scene = Scene::new();
    scene.write("roads.gr", "c roads\np sp 4 3\na 1 2 7\na 2 3 5\na 1 3 20\n");
    scene.anden(&["load", "db", "roads.gr", "--weights"]).succeeded();
    let object = scene.json(&["run", "db", "sssp", "--source", "1", "--check"]);
    assert_eq!(object["result"].to_string(), r#"{"source":1,"reached":3,"max_distance":12,"sum_distance":19}"#);
    let ran = scene.anden(&["run", "db", "sssp", "--source", "1", "--output", "-"]).succeeded();
    assert_eq!(ran.stdout, "1 0\n2 7\n3 12\n4 infinity\n");
}

#[test]
fn wcc() {
    let scene = Scene::with_small(&[]);
    let found = result(&scene, &["wcc"]);
    assert_eq!(found, json!({ "components": 2, "largest": 4 }));
    let ran = scene.anden(&["run", "db", "wcc", "--output", "-"]).succeeded();
    assert_eq!(ran.stdout, "1 1\n2 1\n3 1\n4 1\n5 5\n6 5\n");
}

#[test]
fn triangles() {
    let scene = Scene::with_small(&[]);
    assert_eq!(result(&scene, &["triangles"]), json!({ "triangles": 2 }));
}

/// Betweenness from 1 alone. The one shortest path from 1 to 4 leads through 3, and no other has an inner vertex.
#[test]
fn bc() {
    let scene = Scene::with_small(&[]);
    let found = result(&scene, &["bc", "--source", "1"]);
    assert_eq!(keys(&found), ["sources", "top"]);
    assert_eq!(found["top"][0][0], 3);
    result(&scene, &["bc", "--sources", "2"]);
}

/// PageRank by its definition, with a matrix.
fn pagerank_by_matrix(num_vertices: usize, edges: &[(usize, usize)], iterations: usize) -> Vec<f64> {
    let n = num_vertices as f64;
    let degree = |u: usize| edges.iter().filter(|edge| edge.0 == u).count() as f64;
    let mut ranks = vec![1.0 / n; num_vertices];
    for _ in 0..iterations {
        let dangling: f64 = (0..num_vertices).filter(|&u| degree(u) == 0.0).map(|u| ranks[u]).sum();
        let mut next = vec![0.15 / n + 0.85 * dangling / n; num_vertices];
        edges.iter().for_each(|&(u, v)| next[v] += 0.85 * ranks[u] / degree(u));
        ranks = next;
    }
    ranks
}

#[test]
fn pagerank() {
    let scene = Scene::with_small(&[]);
    let found = result(&scene, &["pagerank", "--iterations", "30"]);
    assert_eq!(keys(&found), ["iterations", "delta", "sum", "top"]);
    assert_eq!((&found["iterations"], found["top"].as_array().unwrap().len()), (&json!(30), 6));
    assert!((found["sum"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    let expected = pagerank_by_matrix(6, &[(0, 1), (0, 2), (1, 2), (2, 3), (3, 1), (4, 5)], 30);
    let ran = scene.anden(&["run", "db", "pagerank", "--iterations", "30", "--output", "-"]).succeeded();
    for (i, line) in ran.lines().into_iter().enumerate() {
        let (key, rank) = line.split_once(' ').unwrap();
        assert_eq!(key, (i + 1).to_string());
        let rank: f64 = rank.parse().unwrap();
        assert!((rank - expected[i]).abs() < 1e-9, "{line}: expected {}", expected[i]);
    }
}

#[test]
fn repeats_are_all_reported() {
    let scene = Scene::with_small(&[]);
    let object = scene.json(&["run", "db", "wcc", "--repeat", "3", "--threads", "2"]);
    assert_eq!((object["seconds"].as_array().unwrap().len(), &object["threads"]), (3, &json!(2)));
    assert!(object["median_seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn repeats_keep_preparation_on_request() {
    let scene = Scene::with_small(&[]);
    let run = ["run", "db", "pagerank", "--variant", "memory", "--repeat", "3"];
    let redone = scene.json(&run);
    assert_eq!(redone["prepared"], json!([false, false, false]));
    let kept = scene.json(&[&run[..], &["--keep-preparation"]].concat());
    assert_eq!(kept["prepared"], json!([false, true, true]));
    assert_eq!(kept["result"], redone["result"]);
}

fn answer(scene: &Scene, arguments: &[&str]) -> Value {
    let object = scene.json(&[&["query", "db"], arguments].concat());
    assert_eq!(keys(&object), ["seconds", "result"]);
    object["result"].clone()
}

#[test]
fn queries() {
    let scene = Scene::with_small(&["--weights"]);
    assert_eq!(answer(&scene, &["neighbors", "1"]), json!([2, 3]));
    assert_eq!(answer(&scene, &["neighbors", "2", "--in"]), json!([1, 4]));
    assert_eq!(answer(&scene, &["neighbors", "2", "--both"]), json!([1, 3, 4]));
    assert_eq!(answer(&scene, &["khop", "2", "1"]), json!([3]));
    assert_eq!(answer(&scene, &["khop", "1", "2"]), json!([2, 3, 4]));
    assert_eq!(answer(&scene, &["fof", "2"]), json!([4]));
    assert_eq!(answer(&scene, &["path", "1", "4"]), json!({ "vertices": [1, 3, 4], "length": 2 }));
    assert_eq!(answer(&scene, &["path", "1", "4", "--weighted"]), json!({ "vertices": [1, 2, 3, 4], "length": 2.5 }));
    assert_eq!(answer(&scene, &["path", "1", "5"]), json!(null));
    assert_eq!(answer(&scene, &["path", "1", "1"]), json!({ "vertices": [1], "length": 0 }));
    assert_eq!(answer(&scene, &["reachable", "1", "4"]), json!(true));
    assert_eq!(answer(&scene, &["reachable", "4", "1"]), json!(false));
    let vertex = answer(&scene, &["vertex", "2"]);
    assert_eq!((&vertex["key"], &vertex["out_degree"], &vertex["in_degree"]), (&json!(2), &json!(1), &json!(2)));
    assert_eq!(scene.anden(&["query", "db", "neighbors", "1"]).succeeded().stdout, "2\n3\n");
}

#[test]
fn edges_are_shown_with_their_weights() {
    let scene = Scene::with_small(&["--weights"]);
    let edge = |database: &str, ends: [&str; 2]| scene.json(&["query", database, "edge", ends[0], ends[1]]);
    let found = edge("db", ["1", "2"]);
    assert_eq!((keys(&found), &found["result"]), (vec!["seconds", "result", "weights"], &json!(true)));
    assert_eq!(found["weights"], json!([0.5]));
    let none = edge("db", ["2", "1"]);
    assert_eq!((keys(&none), &none["result"]), (vec!["seconds", "result"], &json!(false)));
    assert_eq!(scene.anden(&["query", "db", "edge", "1", "2"]).succeeded().stdout, "true\nweight 0.5\n");
    assert_eq!(scene.anden(&["query", "db", "edge", "1", "4"]).succeeded().stdout, "false\n");
    scene.write("parallel.txt", "1 2 7\n1 2 9\n2 3 1\n");
    scene.anden(&["load", "roads", "parallel.txt", "--weight-type", "u32", "--multigraph", "--undirected"]).succeeded();
    assert_eq!(edge("roads", ["2", "1"])["weights"], json!([7, 9]));
    // In the newest snapshot, and in commits since.
    scene.write("more.txt", "3 1 5\n");
    scene.anden(&["append", "roads", "more.txt"]).succeeded();
    scene.write("updates.txt", "+ 3 1 4\n");
    scene.anden(&["apply", "roads", "updates.txt"]).succeeded();
    let shown = scene.anden(&["query", "roads", "edge", "1", "3"]).succeeded().stdout;
    assert_eq!(shown, "true\n#3 weight 5\n#4 weight 4\n");
    // Without weights, none are shown.
    let plain = Scene::with_small(&[]);
    assert_eq!(answer(&plain, &["edge", "1", "2"]), json!(true));
    assert_eq!(plain.anden(&["query", "db", "edge", "1", "2"]).succeeded().stdout, "true\n");
}

#[test]
fn paths_are_shown_with_their_lengths() {
    let scene = Scene::with_small(&["--weights"]);
    let path = |database: &str, options: &[&str]| {
        scene.anden(&[&["query", database, "path"], options].concat()).succeeded().stdout
    };
    assert_eq!(path("db", &["1", "4"]), "a path of 2 steps\n1\n3\n4\n");
    assert_eq!(path("db", &["1", "3"]), "a path of 1 step\n1\n3\n");
    assert_eq!(path("db", &["1", "1"]), "a path of 0 steps\n1\n");
    assert_eq!(path("db", &["1", "4", "--weighted"]), "a path of length 2.5, 3 steps\n1\n2\n3\n4\n");
    assert_eq!(path("db", &["1", "5"]), "no path\n");
    scene.write("roads.txt", "1 2 1500\n");
    scene.anden(&["load", "roads", "roads.txt", "--weight-type", "u32"]).succeeded();
    assert_eq!(path("roads", &["1", "2", "--weighted"]), "a path of length 1,500, 1 step\n1\n2\n");
}

#[test]
fn all_shortest_paths() {
    let scene = Scene::with_small(&[]);
    assert_eq!(answer(&scene, &["path", "1", "4", "--all"]), json!({ "length": 2, "count": 1, "paths": [[1, 3, 4]] }));
    assert_eq!(answer(&scene, &["path", "4", "1", "--all"]), json!(null));
    scene.write("square.txt", "1 2\n1 3\n1 5\n2 4\n3 4\n5 4\n");
    scene.anden(&["load", "square", "square.txt"]).succeeded();
    let ask = |options: &[&str]| scene.anden(&[&["query", "square", "path", "1", "4"], options].concat());
    assert_eq!(ask(&["--all"]).succeeded().stdout, "3 paths of 2 steps\n1 2 4\n1 3 4\n1 5 4\n");
    assert_eq!(ask(&["--count", "1"]).succeeded().stdout, "3 paths of 2 steps, of which 1\n1 2 4\n");
    ask(&["--all", "--weighted"]).refused(&["--weighted"]);
    assert_eq!(scene.anden(&["query", "square", "path", "4", "1", "--all"]).succeeded().stdout, "no path\n");
}

#[test]
fn degrees_of_all_vertices() {
    let scene = Scene::with_small(&[]);
    let out = answer(&scene, &["degrees"]);
    assert_eq!((&out["max"], &out["mean"]), (&json!(2), &json!(1.0)));
    assert_eq!(out["counts"], json!([[0, 1], [1, 4], [2, 1]]));
    assert_eq!(answer(&scene, &["degrees", "--in"])["counts"], json!([[0, 2], [1, 2], [2, 2]]));
    assert_eq!(answer(&scene, &["degrees", "--both"])["counts"], json!([[1, 2], [2, 2], [3, 2]]));
    assert_eq!(answer(&scene, &["degrees", "--snapshot", "1"]), out);
    let shown = scene.anden(&["query", "db", "degrees", "--in"]).succeeded().stdout;
    assert!(shown.contains("in-degree: max 2, mean 1") && shown.contains('#'), "{shown}");
}

#[test]
fn fragments_of_a_vertex() {
    let scene = Scene::with_small(&[]);
    scene.write("more.txt", "1 4\n5 1\n");
    scene.write("gone.txt", "1 2\n");
    scene.anden(&["append", "db", "more.txt", "--remove", "gone.txt"]).succeeded();
    let vertex = answer(&scene, &["vertex", "1", "--fragments"]);
    assert_eq!((&vertex["key"], &vertex["out_degree"], &vertex["in_degree"]), (&json!(1), &json!(2), &json!(1)));
    let delta = json!({ "from": 1, "to": 2, "backward": false, "added": [4], "removed": [2] });
    let (out, into) = (&vertex["fragments"]["out"], &vertex["fragments"]["in"]);
    assert_eq!((&out["base"], &out["deltas"], &out["fragments"]), (&json!([2, 3]), &json!([delta]), &json!([[3, 4]])));
    assert_eq!((&into["base"], &into["fragments"]), (&json!([]), &json!([[5]])));
    let window = answer(&scene, &["vertex", "1", "--fragments", "--window", "2..2"]);
    assert_eq!(
        (&window["fragments"]["out"]["base"], &window["fragments"]["out"]["fragments"]),
        (&json!(null), &json!([[4]]))
    );
    let shown = scene.anden(&["query", "db", "vertex", "1", "--fragments"]).succeeded().stdout;
    for part in ["base: 2 entries: 2, 3", "delta from snapshot 1 to 2", "+ 1 entry: 4", "- 1 entry: 2", "in-list"] {
        assert!(shown.contains(part), "{part:?} is not in {shown}");
    }
}

#[test]
fn string_keys() {
    let scene = Scene::new();
    scene.write("deps.csv", "kind,from,to\nd,bash,libc6\nd,\"vim, the editor\",libc6\nr,bash,sed\n");
    let options = ["--ids", "string", "--source-column", "from", "--target-column", "to"];
    scene.anden(&[&["load", "db", "deps.csv"], &options[..]].concat()).succeeded();
    assert_eq!(answer(&scene, &["neighbors", "libc6", "--in"]), json!(["bash", "vim, the editor"]));
    assert_eq!(answer(&scene, &["path", "bash", "sed"]), json!({ "vertices": ["bash", "sed"], "length": 1 }));
    let ranks = scene.json(&["run", "db", "pagerank"]);
    assert_eq!(ranks["result"]["top"][0][0], "libc6");
    scene.anden(&["query", "db", "neighbors", "zsh"]).failed(&["zsh", "does not exist"]);
}

/// Keys with delimiters are quoted, as in a difference.
#[test]
fn every_vertex_has_a_line_of_its_own() {
    let scene = Scene::new();
    scene.write("edges.csv", "source,target\n\"a\nb\",c 1\nc,d\n");
    scene.anden(&["load", "db", "edges.csv", "--ids", "string"]).succeeded();
    let written = scene.anden(&["run", "db", "wcc", "--output", "-"]).succeeded();
    assert_eq!(written.lines(), [r#""a\nb" "a\nb""#, "c c", r#""c 1" "a\nb""#, "d c"]);
}

#[test]
fn info_and_snapshots() {
    let scene = Scene::with_small(&["--weights"]);
    let info = scene.json(&["info", "db"]);
    let required = [
        "vertices",
        "edges",
        "directed",
        "weighted",
        "snapshots",
        "bases",
        "deltas",
        "bytes",
        "bytes_per_edge",
        "pages",
        "fragments",
    ];
    assert!(required.iter().all(|key| info.get(key).is_some()), "{info}");
    assert_eq!((&info["runs"], &info["levels"]), (&info["bases"], &info["deltas"]), "the older names");
    assert_eq!((&info["vertices"], &info["edges"], &info["directed"]), (&json!(6), &json!(6), &json!(true)));
    assert_eq!((&info["weighted"], &info["degrees"]["max"]), (&json!(true), &json!(2)));
    let listed = scene.json(&["snapshots", "db"]);
    assert_eq!(keys(&listed), ["snapshots"]);
    let snapshot = &listed["snapshots"][0];
    let expected = ["number", "name", "time", "as_of", "epoch", "vertices", "edges", "added", "removed", "bytes"];
    assert_eq!(keys(snapshot), expected);
    assert_eq!((&snapshot["number"], &snapshot["edges"], &snapshot["added"]), (&json!(1), &json!(6), &json!(6)));
    assert_eq!(info["snapshots"], listed["snapshots"]);
    let shown = scene.anden(&["info", "db"]).succeeded().stdout;
    assert!(shown.contains("out-degree") && shown.contains('#'), "{shown}");
    assert!(scene.anden(&["snapshots", "db"]).succeeded().stdout.starts_with("number"));
}

#[test]
fn a_snapshot_by_number() {
    let scene = Scene::with_small(&[]);
    assert_eq!(scene.json(&["run", "db", "wcc", "--snapshot", "1"])["result"]["components"], 2);
    scene.anden(&["run", "db", "wcc", "--snapshot", "2"]).failed(&["snapshot 2"]);
    scene.anden(&["run", "db", "wcc", "--snapshot", "easter"]).failed(&["easter"]);
}

/// A diamond with a parallel edge on its left side.
#[test]
fn parallel_edges_are_paths_of_betweenness_alone() {
    let scene = Scene::new();
    scene.write("diamond.txt", "1 2 5\n1 2 3\n1 3 4\n2 4 1\n3 4 1\n");
    let scores = |database: &str| {
        let ran = scene.anden(&["run", database, "bc", "--source", "1", "--output", "-", "--check"]).succeeded();
        let score = |key: &str| -> f64 {
            let line = ran.stdout.lines().find(|line| line.starts_with(&format!("{key} "))).unwrap();
            line.split(' ').nth(1).unwrap().parse().unwrap()
        };
        [score("2"), score("3")]
    };
    scene.anden(&["load", "twice", "diamond.txt", "--multigraph", "--weights"]).succeeded();
    scene.anden(&["load", "once", "diamond.txt", "--duplicates", "min", "--weights"]).succeeded();
    // With the parallel edge, two of three shortest paths from 1 to 4 lead through 2; without it, one of two.
    let twice = scores("twice");
    assert!((twice[0] - 2.0 / 3.0).abs() < 1e-9 && (twice[1] - 1.0 / 3.0).abs() < 1e-9, "{twice:?}");
    assert_eq!(scores("once"), [0.5, 0.5]);
    for database in ["twice", "once"] {
        let all = scene.json(&["query", database, "path", "1", "4", "--all"])["result"].clone();
        assert_eq!(all, json!({ "length": 2, "count": 2, "paths": [[1, 2, 4], [1, 3, 4]] }));
        let first = scene.json(&["query", database, "path", "1", "4", "--count", "1"])["result"].clone();
        assert_eq!(first, json!({ "length": 2, "count": 2, "paths": [[1, 2, 4]] }));
        let lightest = scene.json(&["query", database, "path", "1", "4", "--weighted"])["result"].clone();
        assert_eq!(lightest, json!({ "vertices": [1, 2, 4], "length": 4.0 }));
    }
}
