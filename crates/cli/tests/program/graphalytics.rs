//! A graph in the form of LDBC Graphalytics, with outputs computed by hand.
//!
//! It is directed and has seven vertices, one of them (90) without edges. The keys are far apart on purpose.

use crate::scene::Scene;

const VERTICES: &str = "10\n20\n30\n40\n50\n60\n90\n";
const EDGES: &str = "10 20 0.25\n10 30 2\n20 30 0.5\n30 40 1\n40 10 3\n60 50 0.125\n";

fn properties(directed: bool) -> String {
    format!(
        "graph.tiny.vertex-file = tiny.v\n\
         graph.tiny.edge-file = tiny.e\n\
         graph.tiny.meta.vertices = 7\n\
         graph.tiny.meta.edges = 6\n\
         graph.tiny.directed = {directed}\n\
         graph.tiny.edge-properties.names = weight\n\
         graph.tiny.edge-properties.types = real\n\
         graph.tiny.algorithms = bfs, pr, sssp, wcc\n"
    )
}

fn scene(directed: bool) -> Scene {
    let scene = Scene::new();
    scene.write("tiny.properties", properties(directed));
    scene.write("tiny.v", VERTICES);
    scene.write("tiny.e", EDGES);
    let report = scene.json(&["load", "db", "tiny.properties", "--weights"]);
    assert_eq!((report["vertices"].as_u64(), report["edges"].as_u64()), (Some(7), Some(6)));
    scene
}

fn output(scene: &Scene, arguments: &[&str]) -> String {
    scene.anden(&[&["run", "db"], arguments, &["--output", "-", "--check"]].concat()).succeeded().stdout
}

#[test]
fn directed() {
    let scene = scene(true);
    assert_eq!(
        output(&scene, &["bfs", "--source", "20"]),
        "10 3\n20 0\n30 1\n40 2\n50 9223372036854775807\n60 9223372036854775807\n90 9223372036854775807\n"
    );
    assert_eq!(
        output(&scene, &["sssp", "--source", "10"]),
        "10 0\n20 0.25\n30 0.75\n40 1.75\n50 infinity\n60 infinity\n90 infinity\n"
    );
    assert_eq!(output(&scene, &["wcc"]), "10 10\n20 10\n30 10\n40 10\n50 50\n60 50\n90 90\n");
    let ranks = output(&scene, &["pagerank", "--iterations", "1"]);
    // 50 and 90 have no out-edges, so 2/7 is spread over all seven vertices. 60 gives 1/7 to 50.
    let lowest = (0.15 + 0.85 * 2.0 / 7.0) / 7.0;
    let expected = [
        ("10", lowest + 0.85 / 7.0),
        ("20", lowest + 0.85 / 14.0),
        ("30", lowest + 0.85 / 14.0 + 0.85 / 7.0),
        ("40", lowest + 0.85 / 7.0),
        ("50", lowest + 0.85 / 7.0),
        ("60", lowest),
        ("90", lowest),
    ];
    for (line, (key, rank)) in ranks.lines().zip(expected) {
        let (found_key, found) = line.split_once(' ').unwrap();
        assert_eq!(found_key, key);
        assert!((found.parse::<f64>().unwrap() - rank).abs() < 1e-12, "{line}: expected {rank}");
    }
    assert_eq!(ranks.lines().count(), 7);
}

#[test]
fn undirected() {
    let scene = scene(false);
    assert_eq!(scene.json(&["info", "db"])["directed"], false);
    assert_eq!(
        output(&scene, &["bfs", "--source", "20"]),
        "10 1\n20 0\n30 1\n40 2\n50 9223372036854775807\n60 9223372036854775807\n90 9223372036854775807\n"
    );
    assert_eq!(
        output(&scene, &["sssp", "--source", "40"]),
        "10 1.75\n20 1.5\n30 1\n40 0\n50 infinity\n60 infinity\n90 infinity\n"
    );
    assert_eq!(output(&scene, &["wcc"]), "10 10\n20 10\n30 10\n40 10\n50 50\n60 50\n90 90\n");
}

#[test]
fn counts_that_are_not_those_of_the_files() {
    for (count, wrong) in [("meta.vertices = 7", "meta.vertices = 8"), ("meta.edges = 6", "meta.edges = 5")] {
        let scene = Scene::new();
        scene.write("tiny.properties", properties(true).replace(count, wrong));
        scene.write("tiny.v", VERTICES);
        scene.write("tiny.e", EDGES);
        scene.anden(&["load", "db", "tiny.properties"]).failed(&["tiny"]);
        assert_eq!(scene.names(), ["tiny.e", "tiny.properties", "tiny.v"]);
    }
}

#[test]
fn edge_to_unlisted_vertex_is_refused() {
    let scene = Scene::new();
    scene.write("x.v", "1\n2\n3\n");
    scene.write("x.e", "1 2\n\n2 3\n");
    assert_eq!(scene.json(&["load", "good", "x.e"])["vertices"], 3);
    scene.write("x.e", "1 2\n\n2 4\n");
    scene.anden(&["load", "bad", "x.e"]).failed(&["x.e:3: expected a target that x.v lists, found '4'"]);
    assert!(!scene.path("bad").exists());
    assert_eq!(scene.json(&["load", "dense", "x.e", "--ids", "dense"])["vertices"], 5);
}
