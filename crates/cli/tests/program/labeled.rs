//! Several files in one load: labels, types and key spaces, and queries about parts.

use serde_json::json;

use crate::scene::Scene;

const LOAD: [&str; 10] = [
    "load",
    "db",
    "--vertices",
    "Person:person=people.csv",
    "--vertices",
    "Post:post=posts.csv",
    "--edges",
    "KNOWS:person:person=knows.csv",
    "--edges",
    "LIKES:person:post=likes.csv",
];

/// Two people and two posts with equal keys.
fn blog() -> Scene {
    let scene = Scene::new();
    scene.write("people.csv", "id,name\n1,Ann\n2,Bob\n");
    scene.write("posts.csv", "id,text\n1,hello\n2,bye\n");
    scene.write("knows.csv", "source,target,since\n1,2,2020-01-01\n");
    scene.write("likes.csv", "source,target\n1,1\n2,1\n2,2\n");
    scene
}

#[test]
fn several_files_become_one_graph() {
    let scene = blog();
    let loaded = scene.json(&LOAD);
    assert_eq!((&loaded["vertices"], &loaded["edges"]), (&json!(4), &json!(4)));
    assert_eq!(loaded["properties"], json!(["type", "since"]));
    let neighbors = |part: &[&str]| {
        let mut keys = scene.json(&[&["query", "db", "neighbors", "person:2"], part].concat())["result"].clone();
        keys.as_array_mut().unwrap().sort_by_key(|key| key.to_string());
        keys
    };
    assert_eq!(neighbors(&[]), json!(["post:1", "post:2"]));
    assert_eq!(neighbors(&["--type", "LIKES"]), json!(["post:1", "post:2"]));
    assert_eq!(neighbors(&["--type", "KNOWS"]), json!([]));
    assert_eq!(neighbors(&["--type", "LIKES", "--where-vertex", "name = 'Bob' OR text = 'bye'"]), json!(["post:2"]));
    let run = scene.json(&["run", "db", "wcc", "--label", "Person", "--check"]);
    assert_eq!((&run["vertices"], &run["result"]["components"]), (&json!(2), &json!(1)));
    let shown = scene.json(&["query", "db", "vertex", "post:1"]);
    assert_eq!(shown["result"]["properties"], json!({ "labels": "Post", "text": "hello" }));
    // The exported graph loads as an equal graph without key spaces.
    scene.anden(&["export", "db", "edges.csv", "--vertices", "vertices.csv"]).succeeded();
    scene.anden(&["load", "again", "edges.csv", "--vertices", "vertices.csv", "--ids", "string"]).succeeded();
    assert_eq!(scene.anden(&["diff", "db", "1", "1", "--with", "again"]).succeeded().stdout, "");
    // Updates and appends accept types.
    scene.write(
        "updates.txt",
        "+ person:1 post:2 type=LIKES\n+ person:3 person:1 type=KNOWS\np person:3 labels Person\n",
    );
    scene.anden(&["apply", "db", "updates.txt"]).succeeded();
    scene.write("more.csv", "source,target\n3,2\n");
    scene.anden(&["append", "db", "--edges", "LIKES:person:post=more.csv"]).succeeded();
    assert_eq!(scene.json(&["run", "db", "wcc", "--type", "LIKES"])["edges"], json!(5));
    assert_eq!(scene.json(&["run", "db", "wcc", "--label", "Person"])["edges"], json!(2));
    scene.anden(&["verify", "db"]).succeeded();
}

#[test]
fn names_that_nothing_has_give_a_note() {
    let scene = blog();
    scene.anden(&LOAD).succeeded();
    let noted = scene.anden(&["run", "db", "wcc", "--type", "LIKE"]);
    assert_eq!(noted.status, 0);
    assert!(noted.stderr.contains("note: no edge has the type \"LIKE\"; there are: KNOWS, LIKES"), "{}", noted.stderr);
    let noted = scene.anden(&["query", "db", "neighbors", "person:1", "--type", "LIKE"]);
    assert!(noted.status == 0 && noted.stderr.contains("there are: KNOWS, LIKES"), "{}", noted.stderr);
    let noted = scene.anden(&["export", "db", "none.csv", "--type", "LIKE"]);
    assert!(noted.status == 0 && noted.stderr.contains("there are: KNOWS, LIKES"), "{}", noted.stderr);
    let noted = scene.anden(&["query", "db", "vertex", "person:1", "--label", "Persons", "--label", "Person"]);
    assert!(
        noted.status == 0 && noted.stderr.contains("no vertex has the label \"Persons\"; there are: Person, Post"),
        "{}",
        noted.stderr
    );
    assert_eq!(scene.anden(&["run", "db", "wcc", "--label", "Person"]).succeeded().stderr, "");
    assert_eq!(scene.anden(&["run", "db", "wcc", "--type", "LIKE", "--quiet"]).succeeded().stderr, "");
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let scene = blog();
    let load = |options: &[&str]| scene.anden(&[&["load", "db"], options].concat());
    load(&["--edges", "knows.csv"]).refused(&["expected TYPE=FILE or TYPE:SPACE:SPACE=FILE"]);
    load(&["--edges", "KNOWS:person=knows.csv"]).refused(&["expected TYPE=FILE or TYPE:SPACE:SPACE=FILE"]);
    load(&["--edges", "KNOWS="]).refused(&["expected TYPE=FILE"]);
    load(&["--vertices", "A:b:c=people.csv", "knows.csv"]).refused(&["expected LABEL=FILE or LABEL:SPACE=FILE"]);
    load(&["--vertices", "Person=", "knows.csv"]).refused(&["expected a file after ="]);
    load(&["--edges", "KNOWS=-", "--vertices", "-"]).refused(&["standard input can be read once"]);
    load(&["--edges", "KNOWS:a:b=knows.csv", "--ids", "integer"]).failed(&["key spaces need --ids string"]);
    load(&["--edges", "KNOWS=nothere.csv"]).failed(&["nothere.csv", "cannot open"]);
    scene.anden(&["load", "plain", "likes.csv"]).succeeded();
    scene.anden(&["run", "plain", "wcc", "--type", "LIKES"]).failed(&["the edges of this graph have no types"]);
    scene.anden(&["run", "plain", "wcc", "--label", "A"]).failed(&["the vertices of this graph have no labels"]);
    let append = ["append", "plain", "--edges", "LIKES=likes.csv"];
    scene.anden(&append).failed(&["\"type\" would be a property of edges"]);
    // A path with = in it.
    scene.write("a=b.csv", "source,target\n1,2\n");
    scene.anden(&["load", "other", "knows.csv", "--vertices", "./a=b.csv", "--vertex-column", "source"]).succeeded();
}

/// The pairs of files of Neo4j and Neptune load as the graph that they came from.
#[test]
fn bulk_files_come_back() {
    let scene = blog();
    scene.anden(&LOAD).succeeded();
    let expected = scene.anden(&["export", "db", "-", "--format", "csv", "--quiet"]).succeeded().stdout;
    for (format, header) in
        [("neo4j", ":START_ID,:END_ID,:TYPE,since:date"), ("neptune", "~from,~to,~label,since:Date,~id")]
    {
        let (edges, vertices) = (format!("{format}-edges.csv"), format!("{format}-vertices.csv"));
        scene.anden(&["export", "db", &edges, "--format", format, "--vertices", &vertices]).succeeded();
        assert_eq!(scene.read(&edges).lines().next(), Some(header));
        // The files alone tell labels, types and the kind of keys.
        scene.anden(&["load", format, &edges, &vertices]).succeeded();
        let found = scene.anden(&["export", format, "-", "--format", "csv", "--quiet"]).succeeded().stdout;
        match format {
            "neo4j" => {
                assert_eq!(scene.anden(&["diff", "db", "1", "1", "--with", format]).succeeded().stdout, "");
                assert_eq!(found, expected);
            }
            // A date of Neptune may have a time.
            _ => assert_eq!(found.replace("since:timestamp", "since:date").replace("T00:00:00Z", ""), expected),
        }
        let shown = scene.json(&["query", format, "vertex", "person:2"]);
        assert_eq!(shown["result"]["properties"], json!({ "labels": "Person", "name": "Bob" }));
    }
    let noted = scene.anden(&["export", "db", "x.csv", "--format", "neo4j"]);
    assert!(
        noted.status == 0
            && noted.stderr.contains("neo4j loads vertices from a file of their own: --vertices FILE writes it")
    );
    scene.anden(&["export", "db", "x.csv", "--format", "neo4j", "--vertices", "v.csv.gz"]).refused(&["compressed"]);
}

/// The files of a BVGraph load as the graph that they came from, also by their common name.
#[test]
fn bvgraph_comes_back() {
    let scene = Scene::new();
    scene.write("list.txt", "2 0\n0 1\n2 3\n3 1\n");
    scene.anden(&["load", "db", "list.txt"]).succeeded();
    assert_eq!(scene.json(&["export", "db", "web.graph", "--format", "bvgraph"])["edges"], json!(4));
    let edges = |database: &str| {
        let text = scene.anden(&["export", database, "-", "--format", "csv"]).succeeded().stdout;
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        lines.sort();
        lines
    };
    for name in ["web.graph", "web.properties", "web"] {
        let database = format!("of-{name}");
        scene.anden(&["load", &database, name]).succeeded();
        assert_eq!(edges(&database), edges("db"), "{name}");
    }
    scene.anden(&["export", "db", "-", "--format", "bvgraph"]).failed(&["expected a name that ends in .graph"]);
    scene.anden(&["export", "db", "web.bv", "--format", "bvgraph"]).failed(&["web.bv: expected a name that ends in"]);
}

/// The folder of GraphFrames loads as the graph that it came from.
#[test]
fn folder_of_graphframes_comes_back() {
    let scene = blog();
    scene.anden(&LOAD).succeeded();
    let expected = scene.anden(&["export", "db", "-", "--format", "csv", "--quiet"]).succeeded().stdout;
    let written = scene.json(&["export", "db", "frames", "--format", "graphframes"]);
    assert_eq!((&written["vertices"], &written["edges"], &written["left_out"]), (&json!(4), &json!(4), &json!([])));
    assert!(written["bytes"].as_u64().unwrap() > 500);
    // The columns tell the kind of keys.
    scene.anden(&["load", "again", "frames"]).succeeded();
    assert_eq!(scene.anden(&["diff", "db", "1", "1", "--with", "again"]).succeeded().stdout, "");
    assert_eq!(scene.anden(&["export", "again", "-", "--format", "csv", "--quiet"]).succeeded().stdout, expected);
    let shown = scene.json(&["query", "again", "vertex", "person:2"]);
    assert_eq!(shown["result"]["properties"], json!({ "labels": "Person", "name": "Bob" }));
    let export =
        |file: &str, more: &[&str]| scene.anden(&[&["export", "db", file, "--format", "graphframes"], more].concat());
    export("frames", &[]).failed(&["frames: expected a new or empty folder, found one with files"]);
    export("people.csv", &[]).failed(&["people.csv: expected a new or empty folder, found a file"]);
    export("-", &[]).refused(&["--format graphframes writes a folder, not standard output"]);
    export("more", &["--vertices", "v.csv"]).refused(&["the folder of --format graphframes holds the vertices"]);
    scene.anden(&["load", "x", "people.csv", "--format", "graphframes"]).failed(&["expected a folder with 'edges'"]);
}

/// A user lists the files, in any order; their headers say the rest.
#[test]
fn bulk_headers_need_no_options() {
    let scene = Scene::new();
    scene.write("people.csv", "id:ID(Person),name:string,:LABEL\n1,Ann,Person\n2,Bob,Person;Admin\n");
    scene.write("posts.csv", ":ID(Post),text,:LABEL\n1,hello,Post\n");
    scene.write("likes.csv", ":START_ID(Person),:END_ID(Post),:TYPE\n1,1,LIKES\n2,1,LIKES\n");
    scene.write("more.csv", ":START_ID(Person),:END_ID(Person),:TYPE\n1,2,KNOWS\n");
    let report = scene.json(&["load", "db", "likes.csv", "people.csv", "posts.csv"]);
    assert_eq!((&report["vertices"], &report["edges"], &report["notes"]), (&json!(3), &json!(2), &json!([])));
    scene.anden(&["append", "db", "more.csv"]).succeeded();
    assert_eq!(scene.json(&["query", "db", "neighbors", "Person:1", "--type", "KNOWS"])["result"], json!(["Person:2"]));
    assert_eq!(scene.json(&["run", "db", "wcc", "--label", "Admin"])["vertices"], json!(1));
    scene.anden(&["load", "x", "likes.csv", "--ids", "integer"]).failed(&["key spaces need --ids string"]);
}

/// A CSR in an Arrow file loads as the graph that it came from.
#[test]
fn arrow_file_comes_back() {
    let scene = blog();
    scene.anden(&LOAD).succeeded();
    let expected = scene.anden(&["export", "db", "-", "--format", "csv", "--quiet"]).succeeded().stdout;
    let written = scene.json(&["export", "db", "blog.arrow"]);
    assert_eq!((&written["edges"], &written["left_out"]), (&json!(4), &json!([])));
    scene.anden(&["load", "again", "blog.arrow"]).succeeded();
    assert_eq!(scene.anden(&["diff", "db", "1", "1", "--with", "again"]).succeeded().stdout, "");
    assert_eq!(scene.anden(&["export", "again", "-", "--format", "csv", "--quiet"]).succeeded().stdout, expected);
    scene.anden(&["export", "db", "x.arrow", "--vertices", "v.arrow"]).refused(&["cannot write"]);
}

/// The folder of GraphAr loads as the graph that it came from, also by its file in YAML.
#[test]
fn folder_of_graphar_comes_back() {
    let scene = blog();
    scene.anden(&LOAD).succeeded();
    let written = scene.json(&["export", "db", "blog", "--format", "graphar"]);
    assert_eq!((&written["vertices"], &written["edges"], &written["left_out"]), (&json!(4), &json!(4), &json!([])));
    for input in ["blog", "blog/graph.graph.yml"] {
        let database = format!("of-{}", input.replace('/', "-"));
        scene.anden(&["load", &database, input]).succeeded();
        assert_eq!(scene.anden(&["diff", "db", "1", "1", "--with", &database]).succeeded().stdout, "");
        let shown = scene.json(&["query", &database, "vertex", "person:2"]);
        assert_eq!(shown["result"]["properties"], json!({ "labels": "Person", "name": "Bob" }));
    }
    scene.anden(&["export", "db", "-", "--format", "graphar"]).refused(&["writes a folder, not standard output"]);
    scene.write("other.yml", "a: 1\n");
    scene.anden(&["load", "x", "other.yml"]).failed(&["other.yml: expected 'vertices' with names of YAML files"]);
}

/// Edges without a name get one.
#[test]
fn edge_names_of_neptune_come_back() {
    let scene = Scene::new();
    let edges = "~id,~from,~to,~label\ne1,v1,v2,knows\ne2,v2,v1,likes\n";
    scene.write("named.csv", edges);
    scene.anden(&["load", "named", "named.csv"]).succeeded();
    let name = |database: &str, source: &str, target: &str| {
        scene.anden(&["query", database, "edge", source, target, "--return", "~id"]).succeeded().stdout
    };
    assert_eq!(name("named", "v1", "v2"), "~id\ne1\n");
    scene.write("more.txt", "+ v2 v2 type=knows\n");
    scene.anden(&["apply", "named", "more.txt"]).succeeded();
    scene.anden(&["export", "named", "again.csv", "--format", "neptune", "--vertices", "again-v.csv"]).succeeded();
    let expected = "~from,~to,~id,~label\nv1,v2,e1,knows\nv2,v1,e2,likes\nv2,v2,\"#3\",knows\n";
    assert_eq!(scene.read("again.csv"), expected);
    scene.anden(&["load", "again", "again.csv", "again-v.csv"]).succeeded();
    assert_eq!(name("again", "v2", "v1"), "~id\ne2\n");
}
