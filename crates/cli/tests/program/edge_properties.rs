//! Edge properties: read from files, shown, chosen as weights, changed by appends, and round trips through files.

use serde_json::json;

use crate::scene::Scene;

const FLIGHTS: &str = "\
origin,destination,distance,delay,day
SEA,JFK,2422,-3.5,2001-01-01
SEA,JFK,2422,10,
SEA,ORD,1721,0,2001-01-01
ORD,JFK,740,2,2001-01-03
";

const LOAD: [&str; 9] =
    ["load", "db", "flights.csv", "--ids", "string", "--source-column", "origin", "--target-column", "destination"];

fn flights(options: &[&str]) -> Scene {
    let scene = Scene::new();
    scene.write("flights.csv", FLIGHTS);
    scene.anden(&[&LOAD[..], options].concat()).succeeded();
    scene
}

#[test]
fn edges_are_shown_with_their_properties() {
    let scene = flights(&["--multigraph"]);
    let edge = scene.json(&["query", "db", "edge", "SEA", "JFK"]);
    assert_eq!(edge["result"], true);
    let first = json!({ "distance": 2422, "delay": -3.5, "day": "2001-01-01" });
    assert_eq!(edge["properties"], json!([first, { "distance": 2422, "delay": 10.0 }]));
    let lines = scene.anden(&["query", "db", "edge", "SEA", "JFK"]).succeeded().stdout;
    // Edges are numbered in the order of the lists. The edge from ORD comes first, because ORD sorts before SEA.
    assert_eq!(lines, "true\n#1 distance 2422, delay -3.5, day 2001-01-01\n#2 distance 2422, delay 10.0\n");
    assert_eq!(edge["numbers"], json!([1, 2]));
    assert_eq!(scene.anden(&["query", "db", "edge", "JFK", "SEA"]).succeeded().stdout, "false\n");
    let none = scene.json(&["query", "db", "edge", "JFK", "SEA"]);
    assert_eq!((&none["result"], none.get("properties")), (&json!(false), None));
    let info = scene.json(&["info", "db"]);
    let property = |name: &str, of: &str| json!({ "name": name, "type": of });
    let expected = json!([property("distance", "i64"), property("delay", "f64"), property("day", "date")]);
    assert_eq!((&info["edge_properties"], &info["weighted"]), (&expected, &json!(false)));
    let shown = scene.anden(&["info", "db"]).succeeded().stdout;
    assert!(shown.contains("of edges") && shown.contains("distance (i64), delay (f64), day (date)"), "{shown}");
    scene.anden(&["verify", "db"]).succeeded();
}

#[test]
fn columns_are_chosen() {
    let schema = |options: &[&str]| {
        let scene = flights(options);
        let info = scene.json(&["info", "db"]);
        let found = info["edge_properties"].as_array().unwrap().iter();
        found.map(|of| format!("{} {}", of["name"].as_str().unwrap(), of["type"].as_str().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(schema(&["--multigraph", "--properties", "all"]), ["distance i64", "delay f64", "day date"]);
    assert_eq!(schema(&["--multigraph", "--properties", "day,delay"]), ["delay f64", "day date"]);
    assert!(schema(&["--properties", "none"]).is_empty());
    let types = ["--property-types", "distance:f64,day:string"];
    assert_eq!(schema(&[&["--duplicates", "last"][..], &types].concat()), ["distance f64", "delay f64", "day string"]);
    // The weight column is no property.
    assert_eq!(schema(&["--weight-column", "distance", "--multigraph"]), ["delay f64", "day date"]);
    assert!(schema(&["--weight-column", "distance", "--properties", "none", "--quiet"]).is_empty());
    let scene = Scene::new();
    scene.write("flights.csv", FLIGHTS);
    scene
        .anden(&[&LOAD[..], &["--weight-column", "distance"]].concat())
        .failed(&["edges 1 and 2 of the input are parallel", "--properties none leaves the columns out"]);
    scene
        .anden(&[&LOAD[..], &["--properties", "speed"]].concat())
        .failed(&["flights.csv: expected the column 'speed' that --properties names"]);
    scene.anden(&[&LOAD[..], &["--properties", ""]].concat()).refused(&["expected all, none, or names"]);
    assert!(!scene.path("db").exists());
}

#[test]
fn parallel_edges_need_a_choice() {
    let scene = Scene::new();
    scene.write("flights.csv", FLIGHTS);
    let choice = "--duplicates last keeps those of the last line, --duplicates keep all edges";
    let load = |rule: &[&str]| scene.anden(&[&LOAD[..], rule].concat());
    load(&[]).failed(&["edges 1 and 2 of the input are parallel; ", choice]);
    for rule in ["min", "sum"] {
        let columns = "the columns 'distance', 'delay' and 'day' would be properties of edges; ";
        load(&["--duplicates", rule]).failed(&[columns, choice]);
    }
    assert_eq!(scene.names(), ["flights.csv"], "nothing is left behind");
    load(&["--duplicates", "last"]).succeeded();
    let edge = scene.json(&["query", "db", "edge", "SEA", "JFK"]);
    assert_eq!(edge["properties"], json!([{ "distance": 2422, "delay": 10.0 }]));
    // In an append, the last line wins.
    scene.write("more.csv", "source,target,distance\nJFK,SEA,1\nJFK,SEA,2\n");
    assert_eq!(scene.json(&["append", "db", "more.csv"])["added"], 1);
    assert_eq!(scene.json(&["query", "db", "edge", "JFK", "SEA"])["properties"], json!([{ "distance": 2 }]));
    let refused = ["append", "db", "more.csv", "--duplicates", "min"];
    scene.anden(&refused).failed(&["the graph has properties of edges: of parallel edges, the last line's are kept"]);
}

#[test]
fn any_number_is_a_weight() {
    let scene = flights(&["--multigraph"]);
    let run = |weight: &str, more: &[&str]| {
        let arguments = ["run", "db", "sssp", "--source", "SEA", "--weight", weight];
        scene.anden(&[&arguments[..], more].concat())
    };
    run("distance", &["--check", "--output", "distances.txt"]).succeeded();
    assert_eq!(scene.read("distances.txt"), "JFK 2422\nORD 1721\nSEA 0\n");
    // One of the delays is negative.
    run("delay", &["--check"]).succeeded();
    run("speed", &[]).failed(&["there is no property \"speed\": edges have distance, delay, day"]);
    run("day", &[]).failed(&["the property \"day\" of edges is of type date: a weight is a number"]);
    scene
        .anden(&["run", "db", "sssp", "--source", "SEA"])
        .failed(&["choose one of the properties distance, delay with --weight"]);
    let pagerank = scene.json(&["run", "db", "pagerank", "--weight", "distance", "--check"]);
    assert_eq!(pagerank["check"], "ok");
    let path = scene.json(&["query", "db", "path", "SEA", "JFK", "--weight", "distance"]);
    assert_eq!(path["result"], json!({ "vertices": ["SEA", "JFK"], "length": 2422 }));
    scene.anden(&["query", "db", "path", "SEA", "JFK", "--weighted"]).failed(&["choose one of the properties"]);
    scene.write("more.csv", "source,target,delay\nJFK,SEA,1\n");
    scene.anden(&["append", "db", "more.csv"]).succeeded();
    run("distance", &[]).failed(&["the edge from JFK to SEA has no \"distance\": every edge needs a weight"]);
    run("distance", &["--snapshot", "1"]).succeeded();
}

/// Unsigned integers and 32-bit floats survive every format.
#[test]
fn numbers_of_every_type_come_back() {
    let scene = Scene::new();
    scene.write("edges.csv", "source,target,hash,cost:f32\n1,2,18446744073709551615,0.1\n2,3,7,2.5\n3,1,,1e-45\n");
    scene.anden(&["load", "db", "edges.csv"]).succeeded();
    let info = scene.json(&["info", "db"]);
    let types: Vec<_> = info["edge_properties"].as_array().unwrap().iter().map(|of| of["type"].clone()).collect();
    assert_eq!(types, [json!("u64"), json!("f32")], "{info}");
    let edge = || scene.json(&["query", "db", "edge", "1", "2"])["properties"].clone();
    assert_eq!(edge(), json!([{ "hash": u64::MAX, "cost": 0.1 }]));
    for file in ["a.csv", "a.parquet", "a.graphml"] {
        scene.anden(&["export", "db", file]).succeeded();
        let types = if file == "a.csv" { &["--property-types", "cost:f32"][..] } else { &[] };
        scene.anden(&[&["load", "again", file][..], types].concat()).succeeded();
        let schema = |database: &str| scene.json(&["info", database])["edge_properties"].clone();
        assert_eq!(schema("again"), schema("db"), "{file}");
        assert_eq!(scene.anden(&["diff", "db", "1", "1", "--with", "again"]).succeeded().stdout, "", "{file}");
        std::fs::remove_dir_all(scene.path("again")).unwrap();
    }
    let run = |weight: &str| scene.anden(&["run", "db", "sssp", "--source", "1", "--weight", weight, "--check"]);
    run("cost").succeeded();
    run("hash").failed(&["the edge from 1 to 2 has \"hash\" 18446744073709551615, which is no weight"]);
    scene.write("updates.txt", "p 1 2 hash 8\np 2 3 cost 0.25\n+ 4 1 hash=9 cost=3\n");
    scene.anden(&["apply", "db", "updates.txt", "--quiet"]).succeeded();
    assert_eq!(edge(), json!([{ "hash": 8, "cost": 0.1 }]));
    for (line, expected) in [
        ("p 1 2 hash -1", "expected a whole number of type u64, found '-1'"),
        ("p 1 2 cost 1e39", "expected a number of type f32, found '1e39'"),
    ] {
        scene.write("bad.txt", line);
        scene.anden(&["apply", "db", "bad.txt"]).failed(&["bad.txt:1", expected]);
    }
    // A column of the other integer type fits if its values do.
    scene.write("more.csv", "source,target,hash:i64,cost:f64\n5,1,10,0.5\n");
    scene.anden(&["append", "db", "more.csv"]).succeeded();
    scene.write("more.csv", "source,target,hash:i64\n5,1,-10\n");
    scene.anden(&["append", "db", "more.csv"]).failed(&["more.csv", "-10 of type i64 is no value of type u64"]);
    scene.anden(&["checkpoint", "db"]).succeeded();
    scene.anden(&["merge", "db"]).succeeded();
    assert_eq!(scene.json(&["query", "db", "edge", "4", "1"])["properties"], json!([{ "hash": 9, "cost": 3.0 }]));
    scene.anden(&["verify", "db"]).succeeded();
}

#[test]
fn a_changed_property_is_a_changed_edge() {
    let scene = flights(&["--duplicates", "last"]);
    scene.write("more.csv", "source,target,distance,gate\nSEA,ORD,1722,B7\nJFK,ORD,740,\nORD,JFK,,\n");
    let report = scene.json(&["append", "db", "more.csv"]);
    assert_eq!((&report["added"], &report["removed"], &report["edges"]), (&json!(2), &json!(1), &json!(4)));
    let lines = scene.anden(&["diff", "db", "1", "2"]).succeeded().stdout;
    let expected = "- SEA ORD\n+ JFK ORD distance=740\n+ SEA ORD distance=1722 gate=B7\n";
    assert_eq!(lines, expected);
    let diff = scene.json(&["diff", "db", "1", "2"]);
    assert_eq!(diff["removed_edges"], json!([["SEA", "ORD", { "distance": 1721, "delay": 0.0, "day": "2001-01-01" }]]));
    assert_eq!(diff["added_edges"][0], json!(["JFK", "ORD", { "distance": 740 }]));
    let edge = |selection: &[&str]| {
        scene.json(&[&["query", "db", "edge", "SEA", "ORD"][..], selection].concat())["properties"].clone()
    };
    assert_eq!(edge(&[]), json!([{ "distance": 1722, "gate": "B7" }]));
    assert_eq!(edge(&["--window", "2..2"]), json!([{ "distance": 1722, "gate": "B7" }]));
    assert_eq!(edge(&["--snapshot", "1"]), json!([{ "distance": 1721, "delay": 0.0, "day": "2001-01-01" }]));
}

#[test]
fn files_come_back() {
    let scene = flights(&["--multigraph"]);
    scene.anden(&["append", "db", "--remove", "/dev/null", "--name", "same"]).succeeded();
    for file in ["a.csv", "a.parquet", "a.graphml"] {
        scene.anden(&["export", "db", file, "--snapshot", "1"]).succeeded();
        scene.anden(&["load", "again", file, "--ids", "string", "--multigraph"]).succeeded();
        assert_eq!(scene.anden(&["diff", "db", "1", "1", "--with", "again"]).succeeded().stdout, "", "{file}");
        assert_eq!(scene.json(&["info", "again"])["edge_properties"], scene.json(&["info", "db"])["edge_properties"]);
        std::fs::remove_dir_all(scene.path("again")).unwrap();
    }
    let csv = "source,target,distance:i64,delay:f64,day:date\nORD,JFK,740,2.0,2001-01-03\n\
               SEA,JFK,2422,-3.5,2001-01-01\nSEA,JFK,2422,10.0,\nSEA,ORD,1721,0.0,2001-01-01\n";
    assert_eq!(scene.read("a.csv"), csv);
    // An edge list cannot hold properties, and a note says so.
    scene.anden(&["export", "db", "a.txt", "--quiet"]).succeeded();
    assert_eq!(scene.read("a.txt"), "ORD JFK\nSEA JFK\nSEA JFK\nSEA ORD\n");
}

#[test]
fn graphs_without_properties_leave_columns_out() {
    let scene = flights(&["--properties", "none"]);
    scene.write("more.csv", "source,target,distance\nJFK,SEA,soon\n");
    assert_eq!(scene.json(&["append", "db", "more.csv", "--quiet"])["added"], 1);
    scene
        .anden(&["append", "db", "more.csv", "--properties", "all"])
        .failed(&["was loaded without properties of edges"]);
    scene.write("timed.txt", "1 2 1217567877 RT\n2 1 1217573801 MT\n");
    scene.anden(&["load", "timed", "timed.txt", "--columns", "u,v,time,kind"]).succeeded();
    let edge = scene.json(&["query", "timed", "edge", "2", "1"]);
    assert_eq!(edge["properties"], json!([{ "time": 1217573801, "kind": "MT" }]));
    scene.anden(&["load", "plain", "timed.txt", "--quiet"]).succeeded();
    assert!(scene.json(&["query", "plain", "edge", "2", "1"]).get("properties").is_none());
}

/// Weights together with properties: in every format, in the memtable, in snapshots, in diffs and back in files.
#[test]
fn edges_have_weights_and_properties() {
    let scene = flights(&["--weight-column", "distance", "--weight-type", "u32", "--duplicates", "last"]);
    let edge = |from: &str, to: &str| scene.anden(&["query", "db", "edge", from, to]).succeeded().stdout;
    assert_eq!(edge("SEA", "JFK"), "true\nweight 2422, delay 10.0\n");
    assert_eq!(edge("SEA", "ORD"), "true\nweight 1721, delay 0.0, day 2001-01-01\n");
    let shown = scene.json(&["query", "db", "edge", "SEA", "ORD"]);
    let properties = json!([{ "delay": 0.0, "day": "2001-01-01" }]);
    assert_eq!((&shown["weights"], &shown["properties"]), (&json!([1721]), &properties));
    let info = scene.json(&["info", "db"]);
    assert_eq!((&info["weight_type"], info["edge_properties"].as_array().unwrap().len()), (&json!("u32"), 2));
    // The declared weight is the default.
    let run = |options: &[&str]| {
        let arguments = ["run", "db", "sssp", "--source", "SEA", "--check", "--output", "out.txt"];
        scene.anden(&[&arguments[..], options].concat()).succeeded();
        scene.read("out.txt")
    };
    assert_eq!(run(&[]), "JFK 2422\nORD 1721\nSEA 0\n");
    assert_eq!(run(&["--weight", "delay"]), "JFK 2\nORD 0\nSEA 0\n");
    scene.write("updates.txt", "+ JFK SEA 7 delay=1.5\n= SEA ORD 9\np ORD JFK delay 3\n+ SEA JFK 5\n");
    scene.anden(&["apply", "db", "updates.txt", "--quiet"]).succeeded();
    assert_eq!(edge("JFK", "SEA"), "true\nweight 7, delay 1.5\n");
    assert_eq!(edge("SEA", "ORD"), "true\nweight 9, delay 0.0, day 2001-01-01\n");
    assert_eq!(edge("SEA", "JFK"), "true\nweight 5, delay 10.0\n");
    assert_eq!(edge("ORD", "JFK"), "true\nweight 740, delay 3.0, day 2001-01-03\n");
    // An append that changes the weight of an edge keeps its properties.
    scene.write("more.csv", "source,target,weight,delay\nSEA,ORD,10,\nORD,SEA,11,4\n");
    assert_eq!(scene.json(&["append", "db", "more.csv"])["added"], 2);
    assert_eq!(edge("SEA", "ORD"), "true\nweight 10, delay 0.0, day 2001-01-01\n");
    assert_eq!(edge("ORD", "SEA"), "true\nweight 11, delay 4.0\n");
    for file in ["a.csv", "a.parquet", "a.graphml"] {
        scene.anden(&["export", "db", file]).succeeded();
        let load = ["load", "again", file, "--ids", "string", "--weights", "--weight-type", "u32"];
        scene.anden(&load).succeeded();
        assert_eq!(scene.anden(&["diff", "db", "3", "1", "--with", "again"]).succeeded().stdout, "", "{file}");
        std::fs::remove_dir_all(scene.path("again")).unwrap();
    }
    let lines = scene.anden(&["diff", "db", "2", "3"]).succeeded().stdout;
    assert_eq!(lines, "- SEA ORD 9\n+ ORD SEA 11 delay=4.0\n+ SEA ORD 10 delay=0.0 day=2001-01-01\n");
    scene.write("bad.txt", "+ SEA LAX delay=1\n");
    scene.anden(&["apply", "db", "bad.txt"]).failed(&["bad.txt:1", "no weight is given, and the graph has weights"]);
    scene.anden(&["merge", "db"]).succeeded();
    assert_eq!(edge("SEA", "ORD"), "true\nweight 10, delay 0.0, day 2001-01-01\n");
    scene.anden(&["verify", "db"]).succeeded();
}

/// A parallel edge is read, changed and removed by its number, which never changes.
#[test]
fn parallel_edges_have_numbers() {
    for kind in [&["--multigraph"][..], &["--multigraph", "--undirected"]] {
        let scene = flights(&[&["--weight-column", "distance"][..], kind].concat());
        let edge = || scene.anden(&["query", "db", "edge", "SEA", "JFK"]).succeeded().stdout;
        let first = "true\n#1 weight 2422, delay -3.5, day 2001-01-01\n#2 weight 2422, delay 10.0\n";
        assert_eq!(edge(), first);
        scene.write("one.txt", "= SEA JFK #1 5\np SEA JFK #1 delay null\n+ SEA JFK 9\n- SEA JFK #2\n");
        scene.anden(&["apply", "db", "one.txt", "--quiet"]).succeeded();
        let changed = "true\n#1 weight 5, day 2001-01-01\n#";
        assert!(edge().starts_with(changed) && edge().ends_with(" weight 9, no properties\n"), "{}", edge());
        let lines = scene.anden(&["diff", "db", "1", "2"]).succeeded().stdout;
        // An undirected edge begins with the end that sorts first.
        let ends = if kind.len() == 1 { "SEA JFK" } else { "JFK SEA" };
        for (sign, rest) in [("=", "#1 5"), ("p", "#1 delay null"), ("-", "#2 2422")] {
            let line = format!("{sign} {ends} {rest}");
            assert!(lines.lines().any(|other| other == line), "{line} in {lines}");
        }
        // The reverse difference is applied by number, and the edge that it adds gets a new one.
        let back = scene.anden(&["diff", "db", "2", "1"]).succeeded().stdout;
        scene.write("back.txt", &back);
        scene.anden(&["apply", "db", "back.txt", "--quiet"]).succeeded();
        let numberless = |text: String| -> Vec<String> {
            text.lines().map(|line| line.split_once(' ').map_or(line, |(_, rest)| rest).to_owned()).collect()
        };
        assert_eq!(numberless(edge()), numberless(first.to_owned()));
        scene.anden(&["merge", "db"]).succeeded();
        assert_eq!(numberless(edge()), numberless(first.to_owned()));
        for (line, expected) in [
            ("- SEA JFK #2", "there is no edge #2 from SEA to JFK"),
            ("= SEA ORD #0 3", "there is no edge #0 from SEA to ORD"),
            ("p SEA LAX #0 delay 3", "there is no edge #0 from SEA to LAX"),
        ] {
            scene.write("bad.txt", line);
            scene.anden(&["apply", "db", "bad.txt"]).failed(&["bad.txt:1", expected]);
        }
        scene.anden(&["verify", "db"]).succeeded();
    }
    let scene = flights(&["--duplicates", "last"]);
    scene.write("bad.txt", "- SEA JFK #1\n");
    scene.anden(&["apply", "db", "bad.txt"]).failed(&["bad.txt:1", "edges have numbers in multigraphs only"]);
}

#[test]
fn verbs_take_a_part_of_the_graph() {
    let scene = flights(&["--multigraph"]);
    let late = ["--where-edge", "delay > 1 AND distance < 1000"];
    let run = scene.json(&[&["run", "db", "wcc", "--check"][..], &late].concat());
    assert_eq!((&run["vertices"], &run["edges"], &run["result"]["components"]), (&json!(3), &json!(1), &json!(2)));
    let neighbors = |of: &str, filter: &[&str]| scene.json(&[&["query", "db", "neighbors", of], filter].concat());
    assert_eq!(neighbors("SEA", &["--where-edge", "day = '2001-01-01'"])["result"], json!(["JFK", "ORD"]));
    assert_eq!(neighbors("SEA", &["--where-edge", "delay >= 10"])["result"], json!(["JFK"]));
    scene.anden(&["export", "db", "late.csv", "--where-edge", "day IS NULL"]).succeeded();
    assert_eq!(scene.read("late.csv"), "source,target,distance:i64,delay:f64,day:date\nSEA,JFK,2422,10.0,\n");
    scene.write("places.csv", "id,country\nSEA,US\nORD,US\nJFK,\n");
    scene.anden(&["append", "db", "--vertices", "places.csv", "--quiet"]).succeeded();
    let part = scene.json(&["run", "db", "wcc", "--where-vertex", "country = 'US'"]);
    assert_eq!((&part["vertices"], &part["edges"]), (&json!(2), &json!(1)));
    scene.anden(&["query", "db", "edge", "SEA", "JFK", "--where-vertex", "country = 'US'"]).failed(&["JFK"]);
    for (filter, what) in [
        ("distence > 3", "character 1: there is no property \"distence\" of edges; did you mean \"distance\"?"),
        ("delay > 3 AND day < 7", "character 15: day of type date cannot be compared with 7 of type i64"),
    ] {
        scene.anden(&["run", "db", "wcc", "--where-edge", filter]).failed(&["the predicate over edges, ", what]);
    }
}

#[test]
fn answers_have_columns() {
    let scene = flights(&["--multigraph"]);
    let ask = |question: &[&str]| scene.anden(&[&["query", "db"], question].concat());
    let text = |question: &[&str]| ask(question).succeeded().stdout;
    let json = |question: &[&str]| scene.json(&[&["query", "db"], question].concat())["result"].clone();
    let columns = ["neighbors", "SEA", "--return", "key,distance,day"];
    let expected = "key\tdistance\tday\nJFK\t2422\t2001-01-01\nJFK\t2422\t\nORD\t1721\t2001-01-01\n";
    assert_eq!(text(&columns), expected);
    let first = json!({ "key": "JFK", "distance": 2422, "day": "2001-01-01" });
    assert_eq!(json(&[&columns[..], &["--limit", "1"]].concat()), json!([first]));
    assert_eq!(text(&["neighbors", "SEA", "--return", "key,out_degree"]), "key\tout_degree\nJFK\t0\nORD\t1\n");
    assert_eq!(
        text(&["neighbors", "JFK", "--in", "--return", "source,number"]),
        "source\tnumber\nORD\t0\nSEA\t1\nSEA\t2\n"
    );
    assert_eq!(text(&["edge", "SEA", "JFK", "--return", "number,delay"]), "number\tdelay\n1\t-3.5\n2\t10.0\n");
    assert_eq!(
        json(&["khop", "SEA", "2", "--return", "key,in_degree", "--limit", "1"]),
        json!([{ "key": "JFK", "in_degree": 3 }])
    );
    assert_eq!(json(&["vertex", "SEA", "--return", "out_degree,key"]), json!({ "out_degree": 3, "key": "SEA" }));
    let legs = ["path", "SEA", "JFK", "--return", "source,target,distance,delay"];
    assert_eq!(text(&legs), "source\ttarget\tdistance\tdelay\nSEA\tJFK\t2422\t-3.5\n");
    let path = json(&[&legs[..], &["--weight", "distance"]].concat());
    assert_eq!(path["vertices"], json!(["SEA", "JFK"]));
    assert_eq!(path["edges"], json!([{ "source": "SEA", "target": "JFK", "distance": 2422, "delay": -3.5 }]));
    let part = ["--where-edge", "delay >= 0"];
    assert_eq!(text(&[&legs[..], &part].concat()).lines().last(), Some("SEA\tJFK\t2422\t10.0"));
    assert_eq!(text(&["path", "JFK", "SEA", "--return", "delay"]), "no path\n");
}

#[test]
fn answers_are_counted_and_limited() {
    let scene = flights(&["--multigraph"]);
    let text = |question: &[&str]| scene.anden(&[&["query", "db"], question].concat()).succeeded().stdout;
    assert_eq!(text(&["neighbors", "SEA", "--count"]), "2\n");
    assert_eq!(text(&["edge", "SEA", "JFK", "--count"]), "2\n");
    assert_eq!(text(&["edge", "JFK", "SEA", "--count"]), "0\n");
    assert_eq!(scene.json(&["query", "db", "khop", "SEA", "2", "--count"])["result"], json!(2));
    assert_eq!(text(&["neighbors", "SEA", "--limit", "1"]), "JFK\n");
    assert_eq!(text(&["edge", "SEA", "JFK", "--limit", "1"]).lines().count(), 2);
    let refused = |question: &[&str], parts: &[&str]| {
        scene.anden(&[&["query", "db"], question].concat()).failed(parts);
    };
    let near = r#"there is no column "delai" of edges; did you mean "delay"?"#;
    refused(&["edge", "SEA", "JFK", "--return", "delai"], &[near]);
    refused(&["path", "JFK", "SEA", "--return", "delai"], &[near]);
    refused(
        &["khop", "SEA", "1", "--return", "delay"],
        &["there is no column", "vertices have key, out_degree, in_degree"],
    );
    refused(&["neighbors", "XYZ", "--return", "key"], &["XYZ", "does not exist"]);
    let both = ["query", "db", "neighbors", "SEA", "--count", "--limit", "1"];
    scene.anden(&both).refused(&["cannot be used with"]);
    scene.anden(&["query", "db", "khop", "SEA", "1", "--return", "key,"]).refused(&["expected names"]);
}

#[test]
fn negative_weights_give_distances_or_name_a_cycle() {
    let scene = Scene::new();
    scene.write("a.txt", "1 2 1\n2 3 -2\n1 3 5\n4 5 -1\n");
    scene.write("b.txt", "1 2 1\n2 3 -2\n3 2 1\n");
    for weight_type in ["i64", "f64"] {
        for algorithm in ["delta-stepping", "bellman-ford"] {
            let load = ["--weight-type", weight_type, "--quiet"];
            scene.anden(&[&["load", "a", "a.txt"], &load[..]].concat()).succeeded();
            scene.anden(&[&["load", "b", "b.txt"], &load[..]].concat()).succeeded();
            let run = ["sssp", "--source", "1", "--algorithm", algorithm, "--check"];
            let result = scene.json(&[&["run", "a"], &run[..]].concat())["result"].clone();
            assert_eq!(result, json!({"source": 1, "reached": 3, "max_distance": 1.0, "sum_distance": 0.0}));
            scene.anden(&["run", "a", "sssp", "--source", "1", "--output", "d.csv"]).succeeded();
            assert_eq!(scene.read("d.csv"), "key,distance\n1,0\n2,1\n3,-1\n4,\n5,\n");
            let cycle = "vertex 2 lies on a cycle of negative weight: sssp needs cycles of weight 0 or more";
            scene.anden(&[&["run", "b"], &run[..]].concat()).failed(&[cycle]);
            for database in ["a", "b"] {
                std::fs::remove_dir_all(scene.path(database)).unwrap();
            }
        }
    }
}
