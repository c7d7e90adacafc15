//! Empty text as a key, which needs `--empty-ids` in files.

use serde_json::json;

use crate::scene::Scene;

const DOCUMENT: &str = "\
<graphml><key id='n' for='node' attr.name='name' attr.type='string'/>
<graph edgedefault='directed'>
<node id=''><data key='n'>none</data></node><node id='a'/><node id='b'/><node id='alone'/>
<edge source='' target='a'/><edge source='a' target='b'/><edge source='b' target=''/>
</graph></graphml>
";

fn loaded() -> Scene {
    let scene = Scene::new();
    scene.write("a.graphml", DOCUMENT);
    let report = scene.json(&["load", "db", "a.graphml", "--ids", "string", "--empty-ids"]);
    assert_eq!((&report["vertices"], &report["edges"]), (&json!(4), &json!(3)));
    scene
}

fn neighbors(scene: &Scene, key: &str) -> serde_json::Value {
    scene.json(&["query", "db", "neighbors", key])["result"].clone()
}

#[test]
fn empty_keys_are_refused_without_the_option() {
    let scene = Scene::new();
    scene.write("a.graphml", DOCUMENT);
    scene.write("a.csv", "source,target\nx,y\n,z\n");
    scene.write("a.jsonl", "{\"source\": \"x\", \"target\": \"\"}\n");
    for (file, place) in [("a.graphml", "a.graphml:3"), ("a.csv", "a.csv:3"), ("a.jsonl", "a.jsonl:1")] {
        let ran = scene.anden(&["load", "db", file, "--ids", "string"]);
        ran.failed(&[place, "expected a ", "(0 with --empty-ids), found '"]);
    }
    scene.anden(&["load", "db", "a.csv", "--empty-ids"]).failed(&["--empty-ids", "needs --ids string"]);
    // A null is not an empty text, and a word that means null is no key.
    scene.write("null.jsonl", "{\"source\": \"x\", \"target\": null}\n");
    let load = |file| scene.anden(&["load", "db", file, "--ids", "string", "--empty-ids", "--null", "z"]);
    load("null.jsonl").failed(&["null.jsonl:1: expected a target"]);
    load("a.csv").failed(&["a.csv:3: expected a target", "found 'z', which means null"]);
}

#[test]
fn every_format_keeps_an_empty_key() {
    let scene = loaded();
    let again = |inputs: &[&str]| {
        let folder = format!("db-{}", inputs.join("-"));
        scene.anden(&[&["load", &folder, "--ids", "string", "--empty-ids", "--quiet"], inputs].concat());
        let diff = scene.anden(&["diff", "db", "1", "1", "--with", &folder]).succeeded();
        assert_eq!(diff.stdout, "", "{inputs:?}");
    };
    for file in ["b.graphml", "b.gexf", "b.gml", "b.json"] {
        scene.anden(&["export", "db", file]).succeeded();
        again(&[file, "--directed"]);
    }
    for (file, vertices) in [("b.csv", "v.csv"), ("b.parquet", "v.parquet"), ("b.jsonl", "v.jsonl")] {
        scene.anden(&["export", "db", file, "--vertices", vertices]).succeeded();
        again(&[file, "--vertices", vertices]);
    }
    for format in ["neo4j", "neptune"] {
        let (edges, vertices) = (format!("{format}-e.csv"), format!("{format}-v.csv"));
        scene.anden(&["export", "db", &edges, "--format", format, "--vertices", &vertices]).succeeded();
        again(&[&edges, &vertices]);
    }
    scene.anden(&["export", "db", "frames", "--format", "graphframes"]).succeeded();
    again(&["frames"]);
    scene.anden(&["export", "db", "b.txt"]).failed(&["the key \"\" does not fit in an edge list: write CSV"]);
}

#[test]
fn pajek_labels_may_be_empty() {
    let scene = loaded();
    // Pajek has no properties of vertices.
    scene.anden(&["export", "db", "b.net"]);
    scene.anden(&["load", "again", "b.net", "--ids", "string", "--empty-ids", "--quiet"]);
    assert_eq!(scene.json(&["query", "again", "neighbors", ""])["result"], json!(["a"]));
    assert_eq!(scene.json(&["query", "again", "neighbors", "b"])["result"], json!([""]));
}

#[test]
fn empty_key_is_asked_for() {
    let scene = loaded();
    assert_eq!((neighbors(&scene, ""), neighbors(&scene, "b")), (json!(["a"]), json!([""])));
    assert_eq!(scene.anden(&["query", "db", "neighbors", "b"]).succeeded().stdout, "\"\"\n");
    assert_eq!(scene.json(&["query", "db", "vertex", ""])["result"]["properties"], json!({ "name": "none" }));
    scene.write("questions.txt", "neighbors \"\"\nedge b \"\"\npath a \"\"\n");
    let answers = scene.anden(&["query", "db", "--batch", "questions.txt"]).succeeded();
    let results: Vec<serde_json::Value> =
        answers.lines().into_iter().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!((&results[0]["result"], &results[1]["result"]), (&json!(["a"]), &json!(true)));
    assert_eq!(results[2]["result"]["vertices"], json!(["a", "b", ""]));
    let run = scene.json(&["run", "db", "bfs", "--source", "", "--check"]);
    assert_eq!((&run["result"]["source"], &run["result"]["reached"]), (&json!(""), &json!(3)));
    scene.write("some.txt", "\"\"\na\n");
    scene.anden(&["export", "db", "part.csv", "--vertices-in", "some.txt", "--quiet"]);
    assert_eq!(scene.read("part.csv"), "source,target\n\"\",a\n");
}

#[test]
fn empty_key_is_changed() {
    let scene = loaded();
    scene.write("more.txt", "+ \"\" b\n- b \"\"\np \"\" name \"no key\"\n");
    scene.anden(&["apply", "db", "more.txt"]).succeeded();
    assert_eq!(neighbors(&scene, ""), json!(["a", "b"]));
    scene.anden(&["checkpoint", "db"]).succeeded();
    scene.anden(&["run", "db", "pagerank", "--store", "rank", "--quiet"]).succeeded();
    scene.write("more.csv", "source,target\n,alone\n");
    scene.anden(&["append", "db", "more.csv"]).failed(&["more.csv:2", "--empty-ids"]);
    scene.anden(&["append", "db", "more.csv", "--empty-ids", "--quiet"]).succeeded();
    assert_eq!(neighbors(&scene, ""), json!(["a", "alone", "b"]));
    scene.anden(&["merge", "db"]).succeeded();
    scene.anden(&["verify", "db"]).succeeded();
    let properties = scene.json(&["query", "db", "vertex", ""])["result"]["properties"].clone();
    assert!(properties["name"] == "no key" && properties["rank"].is_f64(), "{properties}");
    scene.write("gone.csv", "source\n\"\"\n");
    scene.anden(&["append", "db", "--remove", "gone.csv", "--empty-ids", "--quiet"]).succeeded();
    scene.anden(&["query", "db", "vertex", ""]).failed(&["vertex \"\" does not exist"]);
    scene.anden(&["verify", "db"]).succeeded();
}

#[test]
fn graph_of_one_empty_key_loads() {
    let scene = Scene::new();
    scene.write("one.graphml", "<graphml><graph edgedefault='directed'><node id=''/></graph></graphml>");
    scene.anden(&["load", "db", "one.graphml", "--ids", "string", "--empty-ids"]).succeeded();
    scene.anden(&["verify", "db"]).succeeded();
    assert_eq!(neighbors(&scene, ""), json!([]));
}
