//! `anden tail`, and `retain --keep-wal`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::scene::Scene;

/// Commits these lines as one transaction.
fn apply(scene: &Scene, lines: &str) {
    scene.anden_with_input(&["apply", "db", "-", "--quiet"], lines.as_bytes()).succeeded();
}

/// The lines that `tail` prints.
fn tail(scene: &Scene, arguments: &[&str]) -> Vec<Value> {
    let ran = scene.anden(&[&["tail", "db"], arguments].concat()).succeeded();
    ran.lines().into_iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn changes_are_printed_by_commit_and_resumed() {
    let scene = Scene::new();
    scene.write("edges.csv", "source,target,weight,kind\na,b,1.5,road\nb,c,2,rail\n");
    scene.anden(&["load", "db", "edges.csv", "--ids", "string", "--weights", "--quiet"]).succeeded();
    assert_eq!(tail(&scene, &[]), [json!(null); 0]);
    let retained = scene.json(&["retain", "db", "--keep-wal", "8M"]);
    assert_eq!((&retained["keep_wal"], &retained["retention"]), (&json!(8 << 20), &json!(null)));
    apply(&scene, "+ a d 4 kind=road\np a size 7\n");
    apply(&scene, "= a d 5\nv- c\nv+ e\n");
    let edge = |weight: f64, row: u64| {
        let properties = json!({ "kind": "road" });
        json!({ "op": "add_edge", "source": "a", "target": "d", "weight": weight, "row": row, "properties": properties })
    };
    let expected = [
        json!({ "epoch": 1, "changes": [
            { "op": "add_vertex", "vertex": "d" },
            { "op": "new_property", "of": "vertices", "name": "size", "type": "i64" },
            edge(4.0, 2),
            { "op": "set_vertex_property", "vertex": "a", "name": "size", "value": 7 },
        ] }),
        json!({ "epoch": 2, "changes": [
            { "op": "add_vertex", "vertex": "e" },
            edge(5.0, 3),
            { "op": "remove_vertex", "vertex": "c" },
            { "op": "add_vertex", "vertex": "e" },
        ] }),
    ];
    assert_eq!(tail(&scene, &[]), expected);
    assert_eq!(tail(&scene, &["--since", "1"]), expected[1..]);
    assert_eq!(tail(&scene, &["--since", "2"]), expected[2..]);
    scene.anden(&["tail", "db", "--since", "3"]).failed(&["the last commit has epoch 2"]);
    let info = scene.json(&["info", "db"]);
    assert_eq!(
        (&info["epoch"], &info["log"]["oldest_epoch"], &info["log"]["keep_wal"]),
        (&json!(2), &json!(0), &json!(8 << 20))
    );
    assert_eq!(scene.json(&["stats", "db"])["log"]["oldest_epoch"], 0);
    assert!(scene.anden(&["info", "db"]).succeeded().stdout.contains(", since epoch 0"));
    scene.anden(&["verify", "db"]).succeeded();
    // An append skips the WAL.
    scene.write("more.csv", "source,target,weight,kind\nx,y,1,road\n");
    scene.anden(&["append", "db", "more.csv", "--weights", "--quiet"]).succeeded();
    let net = &tail(&scene, &["--since", "2"])[0];
    assert_eq!((&net["epoch"], &net["net"], &net["changes"][0]["vertex"]), (&json!(3), &json!(true), &json!("x")));
    apply(&scene, "- x y\n");
    let epochs = |since: &str| -> Vec<Value> {
        tail(&scene, &["--since", since]).iter().map(|line| line["epoch"].clone()).collect()
    };
    assert_eq!(epochs("1"), [2, 3, 4]);
    assert!(tail(&scene, &["--since", "3"])[0].get("net").is_none());
    // Without kept segments, changes lead from snapshot to snapshot.
    scene.anden(&["retain", "db", "all", "--keep-wal", "0"]).succeeded();
    let snapshots = scene.json(&["snapshots", "db"])["snapshots"].clone();
    let first = snapshots.as_array().unwrap().iter().find(|snapshot| snapshot["epoch"] == 1).unwrap();
    scene.anden(&["drop", "db", &first["number"].to_string()]).succeeded();
    assert_eq!(epochs("0"), [2, 3, 4]);
    scene.anden(&["tail", "db", "--since", "1"]).failed(&[
        "since epoch 1",
        "since epoch 0 and 2",
        "backup",
        "keep-wal",
    ]);
}

#[test]
fn followed_database_prints_commits_until_a_signal() {
    let scene = Scene::with_small(&[]);
    scene.anden(&["retain", "db", "--keep-wal", "8M", "--quiet"]).succeeded();
    let mut command = Command::new(env!("CARGO_BIN_EXE_anden"));
    command.args(["tail", "db", "--follow"]).current_dir(scene.path(".")).stdin(Stdio::null());
    let mut follower = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    for epoch in 1..4 {
        apply(&scene, &format!("+ {epoch} 100\n"));
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["epoch"], epoch);
    }
    let killed = Command::new("kill").args(["-INT", &follower.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert!(lines.next().is_none());
    let output = follower.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    // It is the only end, so there is nothing to report.
    assert_eq!(stderr, "");
}

#[test]
fn follower_ends_with_its_reader() {
    let scene = Scene::with_small(&[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_anden"));
    command.args(["tail", "db", "--follow"]).current_dir(scene.path(".")).stdin(Stdio::null());
    let mut follower = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // No commit comes, so the follower writes nothing.
    drop(follower.stdout.take());
    let output = follower.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
}
