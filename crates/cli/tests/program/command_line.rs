//! Command lines that parse and that do not.

use serde_json::Value;

use crate::scene::{Scene, keys};

#[test]
fn help_and_version() {
    let scene = Scene::new();
    let help = scene.anden(&["--help"]).succeeded();
    for verb in [
        "load",
        "append",
        "info",
        "stats",
        "tail",
        "run",
        "prepare",
        "query",
        "index",
        "verify",
        "export",
        "generate",
        "snapshots",
        "merge",
        "drop",
        "rename",
        "diff",
        "retain",
        "backup",
        "restore",
        "repair",
        "completions",
        "man",
    ] {
        assert!(help.stdout.contains(&format!("\n  {verb} ")), "{verb}: {}", help.stdout);
        let help = scene.anden(&[verb, "--help"]).succeeded();
        assert!(help.stdout.contains("Examples:\n  anden "), "{verb}: {}", help.stdout);
    }
    assert!(scene.anden(&["--version"]).succeeded().stdout.starts_with("anden "));
}

#[test]
fn unparsable_arguments_exit_with_status_2() {
    let scene = Scene::with_small(&[]);
    scene.anden(&["frobnicate"]).refused(&["frobnicate"]);
    scene.anden(&["run", "db", "pagerang"]).refused(&["pagerang", "pagerank"]);
    scene.anden(&["run", "db", "bfs", "--colour"]).refused(&["--colour"]);
    scene.anden(&["load", "x", "small.txt", "--format", "xml"]).refused(&["xml", "edgelist"]);
    scene.anden(&["load", "x"]).refused(&["INPUT"]);
    scene.anden(&["load", "x", "small.txt", "--directed", "--undirected"]).refused(&["--undirected"]);
    scene.anden(&["load", "x", "small.txt", "--multigraph", "--duplicates", "sum"]).refused(&["--multigraph"]);
    scene.anden(&["run", "db", "wcc", "--threads", "0"]).refused(&["--threads"]);
    scene.anden(&["run", "db", "wcc", "--memory", "much"]).refused(&["--memory", "512M"]);
    scene.anden(&["run", "db", "pagerank", "--damping", "1.5"]).refused(&["--damping"]);
    scene.anden(&["query", "db", "neighbors", "1", "--in", "--both"]).refused(&["--both"]);
    scene.anden(&["query", "db", "cousins", "1"]).refused(&["cousins"]);
    scene.anden(&["generate", "clique"]).refused(&["clique"]);
    scene.anden(&["append", "db"]).refused(&["INPUT"]);
    scene.anden(&["restore", "x"]).refused(&["DB"]);
    scene.anden(&["repair", "db"]).refused(&["--to"]);
    scene.anden(&["backup", "db", "x", "--limit-rate", "0"]).refused(&["--limit-rate"]);
    scene.anden(&["stats", "db", "--watch", "0"]).refused(&["--watch", "seconds"]);
    scene.anden(&["stats", "db", "--prometheus", "--json"]).refused(&["--prometheus"]);
    scene.anden(&["drop", "db"]).refused(&["N|NAME"]);
    scene.anden(&["diff", "db", "1"]).refused(&["B"]);
    scene.anden(&["retain", "db", "some"]).refused(&["some", "last:N"]);
    scene.anden(&["retain", "db"]).refused(&["last:N"]);
    scene.anden(&["retain", "db", "--keep-wal", "much"]).refused(&["--keep-wal", "512M"]);
    scene.anden(&["tail", "db", "--since", "-1"]).refused(&["--since"]);
    scene.anden(&["merge", "db", "--newest", "0"]).refused(&["--newest"]);
    scene.anden(&["prepare", "db", "pagerang"]).refused(&["pagerang", "pagerank"]);
    scene.anden(&["run", "db", "wcc", "--window", "3"]).refused(&["--window", "3..7"]);
    scene.anden(&["run", "db", "wcc", "--window", "1..1", "--snapshot", "1"]).refused(&["--window", "--snapshot"]);
    scene.anden(&["load", "x", "small.txt", "--snapshots", "0"]).refused(&["--snapshots"]);
    scene.anden(&["load", "x", "small.txt", "--snapshots", "2", "--first-share", "2"]).refused(&["--first-share"]);
    assert_eq!(scene.anden(&[]).status, 2);
}

#[test]
fn a_kernel_refuses_what_it_does_not_take() {
    let scene = Scene::with_small(&[]);
    scene.anden(&["run", "db", "bfs", "--source", "1", "--damping", "0.5"]).refused(&["bfs", "damping"]);
    scene.anden(&["run", "db", "wcc", "--source", "1"]).refused(&["wcc", "source"]);
    scene.anden(&["run", "db", "triangles", "--iterations", "3"]).refused(&["triangles", "iterations"]);
    scene.anden(&["run", "db", "pagerank", "--delta", "3"]).refused(&["pagerank", "delta"]);
    scene.anden(&["run", "db", "pagerank", "--algorithm", "fast"]).refused(&["fast", "standard, gap"]);
    scene.anden(&["run", "db", "bfs"]).refused(&["bfs", "source"]);
    scene.anden(&["run", "db", "bfs", "--source", "1", "--source", "2"]).refused(&["bfs", "one source"]);
}

#[test]
fn how_files_are_read_changes_no_answer() {
    let scene = Scene::with_small(&[]);
    let answer = |options: &[&str]| {
        let wcc = scene.anden(&[&["run", "db", "wcc", "--output", "-"], options].concat());
        let khop = scene.anden(&[&["query", "db", "khop", "1", "2"], options].concat());
        [wcc.succeeded().stdout.clone(), khop.succeeded().stdout.clone()]
    };
    let expected = answer(&[]);
    assert_eq!(answer(&["--io", "pread"]), expected);
    for policy in ["auto", "off", "neighbourhood", "neighborhood", "sequential", "frontier"] {
        assert_eq!(answer(&["--prefetch", policy]), expected, "{policy}");
    }
    let khop = ["query", "db", "khop", "1", "2", "--json"];
    assert!(!scene.anden(&khop).succeeded().stdout.contains("prefetch"));
    let counted = scene.anden(&[&khop[..], &["--prefetch", "frontier"]].concat());
    assert!(counted.succeeded().stdout.contains(r#""prefetch":{"requested":"#));
    scene.anden(&["run", "db", "wcc", "--prefetch", "ahead"]).refused(&["ahead"]);
    scene.anden(&["run", "db", "wcc", "--io", "tape"]).refused(&["tape"]);
}

#[test]
fn prefetch_counters_are_reported_by_policy() {
    let scene = Scene::new();
    scene.anden(&["generate", "rmat", "--scale", "11", "--degree", "16", "--quiet", "-o", "graph.sg"]).succeeded();
    scene.anden(&["load", "db", "graph.sg", "--ids", "dense"]).succeeded();
    let counters = ["already_resident", "bytes", "dropped", "issued", "requested", "useful", "wasted"];
    let sorted = |object: &Value| {
        let mut names: Vec<String> = keys(object).into_iter().map(str::to_owned).collect();
        names.sort();
        names
    };
    let cases: [(&[&str], &str); 5] = [
        (&["run", "db", "wcc"], "sequential"),
        (&["run", "db", "bfs", "--source", "1"], "frontier"),
        (&["run", "db", "bfs", "--source", "1"], "neighbourhood"),
        (&["query", "db", "khop", "1", "2"], "frontier"),
        (&["query", "db", "fof", "1"], "neighbourhood"),
    ];
    for (arguments, policy) in cases {
        let prefetch = &scene.json(&[arguments, &["--prefetch", policy]].concat())["prefetch"];
        assert_eq!(sorted(prefetch)[..], [&counters[..4], &["policies"], &counters[4..]].concat(), "{arguments:?}");
        assert_eq!(keys(&prefetch["policies"]), [policy], "{arguments:?}");
        let of_policy = &prefetch["policies"][policy];
        assert_eq!(sorted(of_policy), counters, "{arguments:?}");
        assert!(
            counters.iter().all(|&name| of_policy[name].is_u64() && of_policy[name] == prefetch[name]),
            "{prefetch}"
        );
        assert!(of_policy["requested"].as_u64().unwrap() > 0, "{arguments:?}: {prefetch}");
        for quiet in ["auto", "off"] {
            let object = scene.json(&[arguments, &["--prefetch", quiet]].concat());
            assert!(object.get("prefetch").is_none(), "{arguments:?}, {quiet}: {object}");
        }
    }
}

#[test]
fn options_may_stand_anywhere() {
    let scene = Scene::with_small(&[]);
    let first = scene.anden(&["--json", "--threads", "1", "query", "--snapshot", "1", "db", "neighbors", "1"]);
    let last = scene.anden(&["query", "db", "neighbors", "1", "--snapshot", "1", "--threads", "1", "--json"]);
    assert!(first.succeeded().stdout.contains("[2,3]"));
    assert!(last.succeeded().stdout.contains("[2,3]"));
}

#[test]
fn completions_and_man_pages() {
    let scene = Scene::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = scene.anden(&["completions", shell]).succeeded().stdout;
        assert!(script.contains("anden") && script.contains("pagerank") && script.contains("weight-type"), "{shell}");
    }
    assert!(scene.anden(&["man"]).succeeded().stdout.contains(".TH anden 1"));
    scene.anden(&["man", "pages"]).succeeded();
    assert!(scene.read("pages/anden-load.1").contains("undirected"));
    assert!(scene.read("pages/anden-query-path.1").contains("weighted"));
}
