//! `anden apply` and `checkpoint`.

use serde_json::json;

use crate::scene::{Scene, keys};

const APPLY: [&str; 4] = ["apply", "db", "--durability", "none"];

fn arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
    APPLY.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn updates_are_applied_and_kept() {
    let scene = Scene::with_small(&[]);
    let before = scene.json(&["info", "db"])["edges"].as_u64().unwrap();
    scene.write("updates.txt", "# more\n+ 1 77\n+ 77 78\n- 1 2\nv+ 99\n+ 77 78\n- 5 500\n");
    let report = scene.json(&arguments(&["updates.txt", "--batch", "2", "--acks", "acks.txt"]));
    let required = ["updates", "transactions", "seconds", "updates_per_second"];
    assert_eq!(keys(&report), [&required[..], &["automatic_checkpoints", "log_syncs", "commits"]].concat());
    assert_eq!((&report["updates"], &report["transactions"]), (&json!(6), &json!(3)));
    assert_eq!(scene.read("acks.txt"), "3\n5\n7\n");
    let info = scene.json(&["info", "db"]);
    assert_eq!(info["edges"], before + 1);
    assert_eq!(info["snapshots"].as_array().unwrap().len(), 2);
    assert_eq!(scene.json(&["query", "db", "edge", "77", "78"])["result"], true);
    assert_eq!(scene.json(&["query", "db", "edge", "1", "2"])["result"], false);
    assert_eq!(scene.json(&["query", "db", "edge", "1", "2", "--snapshot", "1"])["result"], true);
    scene.anden(&["query", "db", "vertex", "99"]).succeeded();
    scene.anden(&["query", "db", "vertex", "500"]).failed(&["500"]);
    scene.anden(&["verify", "db"]).succeeded();
    // From a pipe, answered on standard output.
    let ran = scene.anden_with_input(&arguments(&["-", "--acks", "-"]), b"v- 77\n").succeeded();
    assert_eq!(ran.stdout, "1\n");
    assert_eq!(scene.json(&["info", "db"])["edges"], before - 1);
    scene.anden(&arguments(&["updates.txt", "--acks", "-", "--json"])).refused(&["--acks -"]);
}

#[test]
fn a_difference_leads_from_one_snapshot_to_the_other() {
    let scene = Scene::new();
    scene.write("first.txt", "a b\nb c\nc a\n");
    for db in ["db", "copy"] {
        scene.anden(&["load", db, "first.txt", "--ids", "string", "--quiet"]).succeeded();
    }
    scene.write("updates.txt", "- a b\n+ c d\nv- b\n+ d e\n");
    scene.anden(&arguments(&["updates.txt", "--checkpoint-every", "1", "--batch", "1"])).succeeded();
    assert_eq!(scene.json(&["info", "db"])["snapshots"].as_array().unwrap().len(), 5, "none without changes");
    let diff = scene.anden(&["diff", "db", "1", "5"]).succeeded().stdout;
    scene.anden_with_input(&["apply", "copy", "-", "--durability", "none"], diff.as_bytes()).succeeded();
    let edges = |db| scene.anden(&["export", db, "-", "--format", "edgelist"]).succeeded().stdout;
    assert_eq!(edges("copy"), edges("db"));
    assert_eq!(scene.anden(&["diff", "db", "5", "2", "--with", "copy"]).succeeded().stdout, "");
}

#[test]
fn bad_update_is_refused_with_its_line() {
    let scene = Scene::with_small(&[]);
    let edges = || scene.json(&["info", "db"])["edges"].as_u64().unwrap();
    let before = edges();
    scene.write("updates.txt", "+ 1 77\n\n+ 1 78\nadd 1 79\n");
    scene.anden(&arguments(&["updates.txt"])).failed(&["updates.txt:4", "one of + - ="]);
    assert_eq!(edges(), before, "the batch has not happened");
    scene.anden(&arguments(&["updates.txt", "--batch", "2"])).failed(&["updates.txt:4"]);
    assert_eq!(edges(), before + 2, "the batch before it has");
    scene.anden_with_input(&arguments(&["-"]), b"p 2 size 3\n").succeeded();
    for (line, parts) in [
        ("+ 1 x", ["updates.txt:2", "integer ids"]),
        ("+ 1 2 3", ["updates.txt:2", "no weights"]),
        ("= 1 2 x", ["updates.txt:2", "a number as the weight"]),
        ("- 1 2 x", ["updates.txt:2", "`- SOURCE TARGET [#NUMBER] [WEIGHT]`"]),
        (
            "p 1 size x",
            ["updates.txt:2", "vertex 1: property \"size\": expected a whole number of type i64, found 'x'"],
        ),
        ("p 1 other null", ["updates.txt:2", "there is no property \"other\" of vertices"]),
        ("p 1 size", ["updates.txt:2", "expected `p VERTEX NAME VALUE` or"]),
        ("p x size 3", ["updates.txt:2", "integer ids"]),
        ("p 1 \"size 3", ["updates.txt:2", "expected a closing quote"]),
    ] {
        scene.write("updates.txt", format!("p 2 size 4\n{line}\n"));
        scene.anden(&arguments(&["updates.txt"])).failed(&parts);
    }
    for (line, parts) in [
        ("+ 1 80", ["updates.txt:2", "vertex 80 does not exist"]),
        ("- 1 1", ["updates.txt:2", "no edge from 1 to 1"]),
        ("v- 80", ["updates.txt:2", "no vertex 80"]),
        ("p 80 size 3", ["updates.txt:2", "vertex 80 does not exist"]),
        ("p 1 size null", ["updates.txt:2", "cannot remove \"size\" of vertex 1: there is no value"]),
    ] {
        scene.write("updates.txt", format!("p 2 size 1\n{line}\n"));
        scene.anden(&arguments(&["updates.txt", "--strict"])).failed(&parts);
    }
    assert_eq!(edges(), before + 2);
    scene.anden(&arguments(&["nowhere.txt"])).failed(&["nowhere.txt"]);
    for durability in ["some", "batched:", "batched:x", "sync:3"] {
        scene.anden(&["apply", "db", "updates.txt", "--durability", durability]).refused(&[durability, "batched[:MS]"]);
    }
    for time in ["", "soon", "-1", "5m"] {
        scene.anden(&["apply", "db", "updates.txt", "--flush", time]).refused(&["--flush", "expected a time such as"]);
    }
    scene.anden(&arguments(&["updates.txt", "--batch", "0"])).refused(&["--batch"]);
}

/// Everything that a database shows: its edges and vertices with their data, its `info`, and its snapshots.
fn everything(scene: &Scene) -> [String; 4] {
    let [edges, vertices] = ["edges.csv", "vertices.csv"];
    scene.anden(&["export", "db", edges, "--format", "csv", "--vertices", vertices]).succeeded();
    let mut info = scene.json(&["info", "db"]);
    // The age of a view, and the digits of the process id in `LOCK`, do not belong to the graph.
    (info["views"], info["bytes"]) = (json!(null), json!(null));
    let snapshots = scene.anden(&["snapshots", "db"]).succeeded().stdout;
    [scene.read(edges), scene.read(vertices), info.to_string(), snapshots]
}

/// Applies batches of `right` lines that would change everything, with one `wrong` line at any place. Requires that
/// nothing changes.
fn check_refused(scene: &Scene, right: &[&str], wrong: &[(&str, &str)], options: &[&str]) {
    let before = everything(scene);
    for (number, (line, message)) in wrong.iter().enumerate() {
        let place = [0, right.len() / 2, right.len()][number % 3];
        let (first, rest) = right.split_at(place);
        let lines = [first, &[*line], if number % 2 == 0 { rest } else { &[] }].concat();
        scene.write("updates.txt", format!("# a batch\n\n{}\n", lines.join("\n")));
        let named = format!("updates.txt:{}", place + 3);
        scene.anden(&arguments(&[&["updates.txt"][..], options].concat())).failed(&[&named, message]);
        assert_eq!(everything(scene), before, "{line} on line {}", place + 3);
    }
    // The batch without the wrong line is applied.
    scene.write("updates.txt", right.join("\n"));
    scene.anden(&arguments(&[&["updates.txt"][..], options].concat())).succeeded();
    assert_ne!(everything(scene), before);
    scene.anden(&["verify", "db"]).succeeded();
}

#[test]
fn refused_strict_batch_changes_nothing() {
    let wrong = [
        ("+ 1 80 3", "vertex 80 does not exist"),
        ("+ 80 1 3", "vertex 80 does not exist"),
        ("= 80 81 3", "vertex 80 does not exist"),
        ("- 4 1", "no edge from 4 to 1"),
        ("- 80 1", "no edge from 80 to 1"),
        ("v- 80", "no vertex 80"),
        ("p 80 size 3", "vertex 80 does not exist"),
        ("p 4 size null", "cannot remove \"size\" of vertex 4: there is no value"),
        ("+ 1 2 x", "expected"),
        ("+ 1 2 3 4", "expected"),
        ("add 1 2", "one of + - ="),
        ("p 3 size large", "expected a whole number"),
    ];
    let right = ["v+ 90", "+ 3 90 7", "= 1 2 9", "- 1 3", "v- 6", "p 2 size 4", "p 3 size null", "p 4 name x"];
    for kind in [&["--directed"][..], &["--undirected"]] {
        let scene = Scene::with_small(&[&["--weights", "--weight-type", "f64"][..], kind].concat());
        scene.anden_with_input(&arguments(&["-"]), b"p 2 size 1\np 3 size 2\n").succeeded();
        check_refused(&scene, &right, &wrong, &["--strict"]);
    }
}

/// Also without `--strict`, and without weights.
#[test]
fn bad_line_refuses_the_whole_lenient_batch() {
    let scene = Scene::with_small(&[]);
    scene.anden_with_input(&arguments(&["-"]), b"p 2 size 1\n").succeeded();
    let right = ["+ 1 90", "- 1 3", "v- 6", "v- 777", "p 2 size 4"];
    let wrong = [
        ("+ 1 2 3", "no weights"),
        ("= 1 2 3", "no weights"),
        ("+ 1 x", "integer ids"),
        ("+ 1", "expected"),
        ("v+", "expected"),
        ("add 1 2", "one of + - ="),
        ("p 2 size large", "expected a whole number"),
        ("p 2 other null", "there is no property \"other\""),
    ];
    check_refused(&scene, &right, &wrong, &[]);
}

/// Multigraphs, and graphs with a rule for duplicates.
#[test]
fn refused_multigraph_batch_changes_nothing() {
    for kind in [&["--multigraph"][..], &["--duplicates", "last"], &["--multigraph", "--undirected"]] {
        let scene = Scene::new();
        scene.write("flights.csv", FLIGHTS);
        scene.anden(&[&["load", "db", "flights.csv", "--ids", "string", "--quiet"], kind].concat()).succeeded();
        let right =
            ["v+ LAX", "+ SEA LAX", "p SEA LAX distance 954", "p SEA JFK delay 11", "- ORD JFK", "p SEA size 3"];
        let wrong = [
            ("+ SEA NYC", "vertex NYC does not exist"),
            ("- SEA SEA", "no edge from SEA to SEA"),
            ("v- NYC", "no vertex NYC"),
            ("p SEA NYC delay 3", "vertex NYC does not exist"),
            ("p JFK JFK delay 3", "there is no edge from JFK to JFK"),
            ("p SEA JFK speed null", "there is no property \"speed\""),
            ("= SEA JFK 3", "no weights"),
            ("add SEA JFK", "one of + - ="),
        ];
        check_refused(&scene, &right, &wrong, &["--strict"]);
    }
}

/// Updates read weights as a load does, with the sign of zero.
#[test]
fn weights_are_read_as_the_graph_has_them() {
    let scene = Scene::new();
    for (weight_type, wrong, right, shown) in [
        ("u32", "3.0", "3", "3"),
        ("i64", "1e3", "-7", "-7"),
        ("f32", "1e39", "1e38", "1e38"),
        ("f64", "1e400", "-0", "-0"),
    ] {
        scene.write("edges.txt", "1 2 5\n");
        scene.anden(&["load", weight_type, "edges.txt", "--weights", "--weight-type", weight_type]).succeeded();
        let apply = |weight: &str| {
            let line = format!("+ 1 2 {weight}\n");
            scene.anden_with_input(&["apply", weight_type, "-", "--durability", "none"], line.as_bytes())
        };
        apply(wrong).failed(&[&format!("expected a weight of type {weight_type}"), wrong]);
        apply(right).succeeded();
        let exported = scene.anden(&["export", weight_type, "-", "--format", "edgelist"]).succeeded().stdout;
        let found = exported.split_whitespace().last().unwrap();
        let number = |text: &str| text.parse::<f64>().unwrap();
        assert!(number(found) == number(shown) && found.starts_with('-') == shown.starts_with('-'), "{exported}");
    }
}

/// Two options name one file, perhaps by different names.
#[test]
fn one_file_for_two_options_is_refused() {
    let scene = Scene::with_small(&[]);
    scene.write("updates.txt", "+ 1 77\n");
    std::os::unix::fs::symlink("updates.txt", scene.path("other.txt")).unwrap();
    for acks in ["updates.txt", "./updates.txt", "other.txt"] {
        scene.anden(&arguments(&["updates.txt", "--acks", acks])).refused(&["--acks", "name another file"]);
    }
    assert_eq!(scene.read("updates.txt"), "+ 1 77\n");
    for vertices in ["edges.csv", "./edges.csv", "-"] {
        scene.anden(&["export", "db", "edges.csv", "--vertices", vertices]).refused(&["--vertices"]);
        scene.write("edges.csv", "");
    }
    // Neither file exists yet.
    scene.anden(&["export", "db", "new.csv", "--vertices", "./new.csv"]).refused(&["--vertices"]);
}

#[test]
fn updates_are_as_durable_as_asked_for() {
    let scene = Scene::with_small(&[]);
    let before = scene.json(&["info", "db"])["edges"].as_u64().unwrap();
    let durabilities: [&[&str]; 6] = [&[], &["sync"], &["batched"], &["batched:20"], &["batched:0.1s"], &["none"]];
    for (i, durability) in durabilities.iter().enumerate() {
        scene.write("updates.txt", format!("+ 1 {}\n", 200 + i));
        let option = durability.iter().flat_map(|durability| ["--durability", durability]);
        let arguments: Vec<_> = ["apply", "db", "updates.txt", "--quiet"].into_iter().chain(option).collect();
        scene.anden(&arguments).succeeded();
    }
    scene.write("updates.txt", "+ 1 200\n- 1 200\n+ 1 200\n");
    // Small transactions of a file are synced together; with a memory budget, one by one.
    let whole: &[&str] = &[];
    for (durability, memory, num_groups, num_syncs) in
        [("sync", whole, 1, 1), ("sync", &["--memory", "1G"], 3, 3), ("none", whole, 1, 0)]
    {
        let arguments = ["apply", "db", "updates.txt", "--batch", "1", "--durability", durability];
        let report = scene.json(&[&arguments, memory].concat());
        assert_eq!(report["log_syncs"], num_syncs, "{durability}: {report}");
        let commits = &report["commits"];
        assert_eq!((&commits["commits"], &commits["groups"]), (&json!(3), &json!(num_groups)), "{durability}");
        assert_eq!(commits["aborts"], json!({ "conflict": 0, "invalid": 0, "failure": 0 }));
        assert!(commits["latency_ns_p50"].as_u64().unwrap() > 0, "{report}");
    }
    let info = scene.json(&["info", "db"]);
    assert_eq!(info["edges"], before + 6);
    assert_eq!(info["log"]["bytes"], 0, "a snapshot was made at the end");
    assert!(!scene.names_in("db").iter().any(|name| name.starts_with("wal-")));
}

#[test]
fn checkpoints_have_names() {
    let scene = Scene::with_small(&[]);
    let made = scene.json(&["checkpoint", "db", "--name", "before"]);
    assert_eq!(keys(&made), ["snapshot", "seconds", "bytes", "peak_bytes"]);
    assert_eq!(made["snapshot"], 2);
    scene.anden(&["checkpoint", "db", "--name", "before"]).failed(&["before"]);
    scene.anden(&["run", "db", "wcc", "--snapshot", "before"]).succeeded();
}

#[test]
fn properties_are_updated() {
    let scene = Scene::new();
    scene.write("edges.csv", "source,target\nann,bob\nbob,\"cy d\"\n");
    scene.write("people.csv", "name,born,tall\nann,1980,true\nbob,,false\n");
    let load = ["edges.csv", "--ids", "string", "--vertices", "people.csv", "--quiet"];
    for db in ["db", "copy"] {
        scene.anden(&[&["load", db][..], &load].concat()).succeeded();
    }
    let lines = "p ann born 1981\np bob born 1990\np bob tall null\np \"cy d\" code 007\n# more\np ann code \"a \\\"b\\\"\"\n\
                 p eve \"given name\" \"12\"\nv- bob\n+ ann bob\np eve since 2020-02-29T12:00:00Z\np eve hash 0x00ff\n";
    scene.write("updates.txt", lines);
    let report = scene.json(&arguments(&["updates.txt", "--batch", "3", "--acks", "acks.txt"]));
    assert_eq!((&report["updates"], &report["transactions"]), (&json!(10), &json!(4)));
    assert_eq!(scene.read("acks.txt"), "3\n7\n10\n11\n");
    let vertex = |name: &str| scene.json(&["query", "db", "vertex", name])["result"]["properties"].clone();
    assert_eq!(vertex("ann"), json!({ "born": 1981, "tall": true, "code": "a \"b\"" }));
    assert_eq!(vertex("bob"), json!({}));
    assert_eq!(vertex("cy d"), json!({ "code": "007" }));
    let eve = json!({ "given name": "12", "since": "2020-02-29T12:00:00Z", "hash": "0x00ff" });
    assert_eq!(vertex("eve"), eve);
    scene.anden(&["verify", "db"]).succeeded();
    let diff = scene.anden(&["diff", "db", "1", "2"]).succeeded().stdout;
    for line in
        ["p ann code \"a \\\"b\\\"\"\n", "p \"cy d\" code 007\n", "p eve \"given name\" \"12\"\n", "p bob tall null\n"]
    {
        assert!(diff.contains(line), "{line} in {diff}");
    }
    scene.anden_with_input(&["apply", "copy", "-", "--durability", "none", "--strict"], diff.as_bytes()).succeeded();
    assert_eq!(scene.anden(&["diff", "db", "2", "2", "--with", "copy"]).succeeded().stdout, "");
    let schema = |db: &str| scene.json(&["info", db])["vertex_properties"].clone();
    let sorted = |mut schema: serde_json::Value| {
        schema.as_array_mut().unwrap().sort_by_key(|property| property["name"].to_string());
        schema
    };
    assert_eq!(sorted(schema("db")), sorted(schema("copy")), "types are those that they were");
}

const FLIGHTS: &str = "\
source,target,distance,delay
SEA,JFK,2422,-3.5
SEA,JFK,2422,10
SEA,ORD,1721,0
ORD,JFK,740,2
";

#[test]
fn properties_of_edges_are_updated() {
    for kind in [&["--multigraph"][..], &["--duplicates", "last"], &["--multigraph", "--undirected"]] {
        let scene = Scene::new();
        scene.write("flights.csv", FLIGHTS);
        for db in ["db", "copy"] {
            scene.anden(&[&["load", db, "flights.csv", "--ids", "string", "--quiet"], kind].concat()).succeeded();
        }
        scene.write(
            "updates.txt",
            "p SEA JFK delay 11\n+ SEA LAX\np SEA LAX distance 954\np SEA LAX carrier \"Alaska Air\"\n- ORD JFK\n\
             + ORD JFK\n+ ORD SEA\np ORD SEA distance null\np SEA ORD delay null\np SEA size 3\n",
        );
        let report =
            scene.json(&arguments(&["updates.txt", "--batch", "4", "--acks", "acks.txt", "--checkpoint-every", "4"]));
        assert_eq!((&report["updates"], &report["transactions"]), (&json!(10), &json!(3)));
        assert_eq!(scene.read("acks.txt"), "4\n8\n10\n");
        let info = scene.json(&["info", "db"]);
        assert_eq!(info["snapshots"].as_array().unwrap().len(), 4, "each batch is one, and no other is made");
        let edge = |u: &str, v: &str| scene.json(&["query", "db", "edge", u, v])["properties"].clone();
        let last = json!({ "distance": 2422, "delay": 11.0 });
        let first = json!({ "distance": 2422, "delay": -3.5 });
        let is_multigraph = kind[0] == "--multigraph";
        assert_eq!(edge("SEA", "JFK"), if is_multigraph { json!([first, last]) } else { json!([last]) });
        assert_eq!(edge("SEA", "LAX"), json!([{ "distance": 954, "carrier": "Alaska Air" }]));
        assert_eq!(edge("ORD", "JFK"), json!([{}]));
        scene.anden(&["verify", "db"]).succeeded();
        let diff = scene.anden(&["diff", "db", "1", "4"]).succeeded().stdout;
        scene
            .anden_with_input(&["apply", "copy", "-", "--durability", "none", "--strict"], diff.as_bytes())
            .succeeded();
        assert_eq!(scene.anden(&["diff", "db", "4", "2", "--with", "copy"]).succeeded().stdout, "", "{kind:?}\n{diff}");
        for (line, parts) in [
            ("p SEA JFK delay x", ["updates.txt:2", "the edge from SEA to JFK: property \"delay\": expected a number"]),
            ("p SEA JFK speed null", ["updates.txt:2", "there is no property \"speed\" of edges"]),
            ("= SEA JFK 3", ["updates.txt:2", "the graph has no weights"]),
            ("p SEA NYC delay 3", ["updates.txt:2", "vertex NYC does not exist"]),
            ("p JFK LAX delay 3", ["updates.txt:2", "there is no edge from JFK to LAX"]),
            (
                "p SEA LAX delay null",
                ["updates.txt:2", "cannot remove \"delay\" of the edge from SEA to LAX: there is no value"],
            ),
        ] {
            scene.write("updates.txt", format!("p SEA size 4\n{line}\n"));
            scene.anden(&arguments(&["updates.txt", "--strict"])).failed(&parts);
        }
        assert_eq!(scene.json(&["info", "db"])["snapshots"].as_array().unwrap().len(), 4);
        scene.anden(&["checkpoint", "db", "--name", "now"]).succeeded();
    }
}

#[test]
fn multigraphs_with_weights_are_updated() {
    let scene = Scene::new();
    scene.write("edges.txt", "1 2 5\n1 2 6\n2 3 1\n");
    for db in ["db", "copy"] {
        scene.anden(&["load", db, "edges.txt", "--weights", "--multigraph", "--quiet"]).succeeded();
    }
    scene.write("updates.txt", "+ 1 2 5\n= 2 3 7\n= 3 1 2\n+ 3 1 2\n= 3 1 4\n- 1 2\n+ 1 2 6\n+ 4 4 1\n+ 4 4 1\n");
    scene.anden(&arguments(&["updates.txt"])).succeeded();
    assert_eq!(
        scene.anden(&["export", "db", "-", "--format", "edgelist"]).succeeded().stdout,
        "1 2 6\n2 3 7\n3 1 4\n3 1 4\n4 4 1\n4 4 1\n"
    );
    let diff = scene.anden(&["diff", "db", "1", "2"]).succeeded().stdout;
    scene.anden_with_input(&["apply", "copy", "-", "--durability", "none", "--strict"], diff.as_bytes()).succeeded();
    assert_eq!(scene.anden(&["diff", "db", "2", "2", "--with", "copy"]).succeeded().stdout, "");
    scene.write("updates.txt", "+ 1 2 7\np 1 2 kind x\n");
    scene.anden(&arguments(&["updates.txt"])).failed(&["updates.txt:2", "loaded without properties of edges"]);
}

#[test]
fn values_follow_one_rule_on_the_command_line() {
    let scene = Scene::with_small(&[]);
    scene.write("value.upd", "p 9 size 3\n");
    scene.anden(&["apply", "db", "value.upd", "--strict"]).failed(&["value.upd:1: vertex 9 does not exist"]);
    assert_eq!(scene.json(&["info", "db"])["vertices"], 6);
    scene.anden(&["apply", "db", "value.upd"]).succeeded();
    assert_eq!(scene.json(&["query", "db", "vertex", "9"])["result"]["properties"], json!({ "size": 3 }));
    scene.anden(&["apply", "db", "value.upd", "--strict"]).succeeded();
    scene.write("edges.csv", "source,target,kind\n1,2,a\n");
    scene.anden(&["load", "rows", "edges.csv"]).succeeded();
    for line in ["p 2 1 kind b\n", "p 1 7 kind b\n", "p 1 1 kind b\n"] {
        scene.write("edge.upd", line);
        let ends: Vec<&str> = line.split(' ').collect();
        let expected = format!("edge.upd:1: there is no edge from {} to {}", ends[1], ends[2]);
        scene.anden(&["apply", "rows", "edge.upd"]).failed(&[&expected]);
    }
    assert_eq!(scene.json(&["info", "rows"])["edges"], 1);
    scene.write("edge.upd", "p 1 2 kind b\np 2 1 kind null\n");
    scene.anden(&["apply", "rows", "edge.upd"]).succeeded();
}
