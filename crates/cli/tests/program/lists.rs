//! Lists as values of properties.

use serde_json::json;

use crate::scene::Scene;

const PEOPLE: &str = "\
id:ID,:LABEL,name:string,tags:string[],scores:long[],ratios:double[],flags:boolean[],days:date[]
1,Person,Ann,a;ü;😀,1;-2;3,0.5;1.0,true;false,2024-02-29;1999-12-31
2,Person,Bob,\"say \"\"x\"\";b, c; d\",7,,,
3,Person,Cid,\"\",\"\",\"\",\"\",\"\"
4,Person,Dan,,,,,
";
const KNOWS: &str = "\
:START_ID,:END_ID,:TYPE,hops:long[]
1,2,KNOWS,1;2
2,3,KNOWS,
3,4,LIKES,\"\"
";

fn people() -> Scene {
    let scene = Scene::new();
    scene.write("people.csv", PEOPLE);
    scene.write("knows.csv", KNOWS);
    scene.anden(&["load", "db", "people.csv", "knows.csv"]).succeeded();
    scene
}

/// The names and types of the properties of vertices and edges.
fn types(scene: &Scene, db: &str) -> [serde_json::Value; 2] {
    let info = scene.json(&["info", db]);
    ["vertex_properties", "edge_properties"].map(|side| {
        let list = info[side].as_array().unwrap().iter();
        list.map(|property| (property["name"].as_str().unwrap().to_owned(), property["type"].clone())).collect()
    })
}

fn expected_types() -> [serde_json::Value; 2] {
    let vertices = json!({
        "labels": "string", "name": "string", "tags": "string[]", "scores": "i64[]", "ratios": "f64[]",
        "flags": "boolean[]", "days": "date[]",
    });
    [vertices, json!({ "type": "string", "hops": "i64[]" })]
}

#[test]
fn arrays_of_neo4j_come_back_byte_for_byte() {
    let scene = people();
    assert_eq!(types(&scene, "db"), expected_types());
    scene.anden(&["export", "db", "edges.csv", "--format", "neo4j", "--vertices", "vertices.csv"]).succeeded();
    assert_eq!((scene.read("vertices.csv"), scene.read("edges.csv")), (PEOPLE.to_owned(), KNOWS.to_owned()));
    let properties = |key: &str| scene.json(&["query", "db", "vertex", key])["result"]["properties"].clone();
    assert_eq!(properties("2")["tags"], json!(["say \"x\"", "b, c", " d"]));
    assert_eq!((&properties("3")["tags"], &properties("4")["tags"]), (&json!([]), &json!(null)));
    scene.anden(&["verify", "db"]).succeeded();
}

#[test]
fn lists_keep_their_type_in_other_formats() {
    let scene = people();
    let reload = |name: &str, files: &[&str], options: &[&str]| {
        scene.anden(&[&["load", name], files, options].concat()).succeeded();
        assert_eq!(types(&scene, name), expected_types(), "{name}");
        assert_eq!(scene.anden(&["diff", "db", "1", "1", "--with", name]).succeeded().stdout, "", "{name}");
    };
    for file in ["graph.json", "graph.graphml", "graph.gexf"] {
        scene.anden(&["export", "db", file]).succeeded();
        reload(&file.replace('.', "-"), &[file], &["--directed"]);
    }
    assert!(scene.read("graph.json").contains(r#""tags": ["a","ü","😀"], "scores": [1,-2,3]"#));
    for (name, edges, vertices) in [("csv", "e.csv", "v.csv"), ("jsonl", "e.jsonl", "v.jsonl")] {
        scene.anden(&["export", "db", edges, "--vertices", vertices]).succeeded();
        reload(name, &[edges], &["--vertices", vertices]);
    }
    assert!(scene.read("v.csv").contains("tags:string[],scores:i64[]"));
    scene.anden(&["export", "db", "e.parquet", "--vertices", "v.parquet"]).succeeded();
    reload("parquet", &["e.parquet"], &["--vertices", "v.parquet"]);
    scene.anden(&["export", "db", "graph.arrow"]).succeeded();
    reload("arrow", &["graph.arrow"], &[]);
    let shown = scene.json(&["query", "db", "neighbors", "1", "--return", "key,hops,tags"]);
    assert_eq!((&shown["result"][0]["hops"], &shown["result"][0]["key"]), (&json!([1, 2]), &json!(2)));
    assert_eq!(shown["result"][0]["tags"], json!(["say \"x\"", "b, c", " d"]));
}

#[test]
fn neptune_has_arrays_of_vertices() {
    let scene = people();
    scene.write("updates.txt", "p 4 tags [\"a;b\",\"c\"]\n");
    scene.anden(&["apply", "db", "updates.txt"]).succeeded();
    scene.anden(&["export", "db", "edges.csv", "--format", "neptune", "--vertices", "vertices.csv"]).succeeded();
    let (edges, vertices) = (scene.read("edges.csv"), scene.read("vertices.csv"));
    let header = "~id,~label,name:String,tags:String[],scores:Long[],ratios:Double[],flags:Bool[],days:Date[]";
    assert_eq!((vertices.lines().next(), vertices.lines().last()), (Some(header), Some(r"4,Person,Dan,a\;b;c,,,,")));
    assert_eq!(
        edges.lines().take(2).collect::<Vec<_>>(),
        ["~from,~to,~label,hops:String,~id", "1,2,KNOWS,\"[1,2]\",1"]
    );
    scene.anden(&["load", "again", "edges.csv", "vertices.csv"]).succeeded();
    let shown = scene.json(&["query", "again", "vertex", "4"]);
    assert_eq!(shown["result"]["properties"]["tags"], json!(["a;b", "c"]));
    scene.anden(&["export", "db", "edges.csv", "--format", "neo4j", "--vertices", "vertices.csv"]).failed(&[
        "vertices.csv",
        "property \"tags\"",
        "has an item with ';', which separates the items there",
    ]);
}

#[test]
fn updates_of_lists_are_checked() {
    let scene = people();
    let apply = |line: &str| {
        scene.write("updates.txt", line);
        scene.anden(&["apply", "db", "updates.txt"])
    };
    apply("p 1 scores \"[ 4, null ]\"\np 2 tags [\"x\"]\np 1 2 hops []\n").succeeded();
    let shown = scene.json(&["query", "db", "vertex", "1"]);
    assert_eq!(shown["result"]["properties"]["scores"], json!([4, null]));
    apply("p 1 scores [\"x\"]\n").failed(&["scores", "expected a list of whole numbers of type i64 such as [1,2]"]);
    apply("p 1 tags x\n").failed(&["tags", "expected a list of texts"]);
    assert_eq!(scene.json(&["query", "db", "find", "tags", "[\"x\"]"])["result"], json!([2]));
    scene.anden(&["checkpoint", "db"]).succeeded();
    assert_eq!(types(&scene, "db"), expected_types());
    // An append states the type again.
    scene.write("more.csv", "id:ID,tags:string[]\n5,p;q\n");
    scene.anden(&["append", "db", "more.csv"]).succeeded();
    scene.write("more.jsonl", "{\"id\": 6, \"tags\": []}\n");
    scene.write("none.txt", "1 3\n");
    scene.anden(&["append", "db", "none.txt", "--vertices", "more.jsonl"]).succeeded();
    let filter = ["query", "db", "find", "tags", "[\"p\", \"q\"]"];
    assert_eq!(scene.json(&filter)["result"], json!([5]));
    scene.anden(&["verify", "db"]).succeeded();
}

#[test]
fn answers_in_json_have_lists_as_lists() {
    let scene = people();
    let result = |question: &[&str]| scene.json(&[&["query", "db"], question].concat())["result"].clone();
    let ann = json!({ "tags": ["a", "ü", "😀"], "ratios": [0.5, 1.0], "days": ["2024-02-29", "1999-12-31"] });
    assert_eq!(result(&["vertex", "1", "--return", "tags,ratios,days"]), ann);
    assert_eq!(
        result(&["edge", "1", "2"])[0]["hops"],
        json!(null),
        "{}",
        scene.json(&["query", "db", "edge", "1", "2"])
    );
    assert_eq!(result(&["edge", "1", "2", "--return", "hops"]), json!([{ "hops": [1, 2] }]));
    // Texts for people stay as they are.
    let text = scene.anden(&["query", "db", "vertex", "1", "--return", "tags"]).succeeded().stdout;
    assert_eq!(text, "tags\n[\"a\",\"ü\",\"😀\"]\n");

    scene.anden(&["retain", "db", "--keep-wal", "1M"]).succeeded();
    scene.write("u.txt", "+ 2 4 hops=[3,4]\np 4 tags [\"x\",null]\n");
    scene.anden(&["apply", "db", "u.txt"]).succeeded();
    let feed = scene.anden(&["tail", "db"]).succeeded().stdout;
    let set: serde_json::Value = serde_json::from_str(feed.trim()).unwrap();
    let changes = set["changes"].as_array().unwrap();
    assert!(changes.iter().any(|change| change["value"] == json!(["x", null])), "{feed}");
    assert!(changes.iter().any(|change| change["properties"]["hops"] == json!([3, 4])), "{feed}");
    let diff = scene.json(&["diff", "db", "1", "2"]);
    assert_eq!(diff["added_edges"], json!([[2, 4, { "hops": [3, 4] }]]));
    assert_eq!(diff["changed_properties"], json!([[4, "tags", null, ["x", null]]]));
}
