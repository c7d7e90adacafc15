//! Questions along either direction, with distances and counts; and files of questions.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::scene::{Ran, Scene, keys};

/// Two recommendations for 1: 8 by two neighbors, 7 by one.
const FRIENDS: &str = "1 2\n1 3\n2 7\n2 8\n3 8\n8 1\n";

fn answer(scene: &Scene, arguments: &[&str]) -> Value {
    scene.json(&[&["query", "db"], arguments].concat())["result"].clone()
}

fn text(scene: &Scene, arguments: &[&str]) -> String {
    scene.anden(&[&["query", "db"], arguments].concat()).succeeded().stdout
}

#[test]
fn hops_follow_either_direction() {
    let scene = Scene::with_small(&[]);
    assert_eq!(answer(&scene, &["khop", "4", "1", "--in"]), json!([3]));
    assert_eq!(answer(&scene, &["khop", "4", "2", "--in"]), json!([1, 2, 3]));
    assert_eq!(answer(&scene, &["khop", "2", "1", "--both"]), json!([1, 3, 4]));
    assert_eq!(answer(&scene, &["khop", "2", "1", "--out"]), json!([3]));
    assert_eq!(answer(&scene, &["fof", "4", "--in"]), json!([1, 2]));
    assert_eq!(answer(&scene, &["fof", "1", "--depth", "1"]), json!([2, 3]));
    assert_eq!(answer(&scene, &["fof", "1", "--depth", "3"]), json!([]));
    scene.anden(&["query", "db", "khop", "2", "1", "--out", "--in"]).refused(&["--in"]);
    let scene = Scene::with_small(&["--out-only"]);
    for question in [&["khop", "2", "1", "--in"][..], &["path", "1", "4", "--both"], &["degrees", "--in", "--top", "1"]]
    {
        scene.anden(&[&["query", "db"], question].concat()).failed(&["in-edges"]);
    }
}

#[test]
fn hops_are_listed_with_depths() {
    let scene = Scene::with_small(&[]);
    assert_eq!(answer(&scene, &["khop", "1", "2", "--depths"]), json!([[2, 1], [3, 1], [4, 2]]));
    assert_eq!(answer(&scene, &["khop", "1", "2", "--depths", "--count"]), json!(3));
    assert_eq!(text(&scene, &["khop", "1", "2", "--depths"]), "2\t1\n3\t1\n4\t2\n");
    assert_eq!(text(&scene, &["khop", "1", "2", "--depths", "--limit", "1"]), "2\t1\n");
    assert_eq!(text(&scene, &["khop", "3", "9", "--depths", "--both"]), "1\t1\n2\t1\n4\t1\n");
    let rows = answer(&scene, &["khop", "1", "2", "--return", "depth,key,out_degree"]);
    assert_eq!(rows[2], json!({ "depth": 2, "key": 4, "out_degree": 1 }));
    assert_eq!(keys(&rows[2]), ["depth", "key", "out_degree"]);
    assert_eq!(text(&scene, &["khop", "1", "1", "--return", "depth"]), "depth\n1\n1\n");
    assert_eq!(text(&scene, &["khop", "1", "2", "--depths", "--return", "key"]), "key\n2\n3\n4\n");
}

#[test]
fn recommendations_rank_by_common_neighbors() {
    let scene = Scene::new();
    scene.write("friends.txt", FRIENDS);
    scene.anden(&["load", "db", "friends.txt"]).succeeded();
    assert_eq!(answer(&scene, &["fof", "1"]), json!([7, 8]));
    assert_eq!(answer(&scene, &["fof", "1", "--ranked"]), json!([[8, 2], [7, 1]]));
    assert_eq!(answer(&scene, &["fof", "1", "--ranked", "--limit", "1"]), json!([[8, 2]]));
    assert_eq!(text(&scene, &["fof", "1", "--return", "key,count"]), "key\tcount\n8\t2\n7\t1\n");
    // With both directions, 8 is a neighbor of 1. The neighbor between 1 and 7 is 2, and the loop of no vertex counts.
    assert_eq!(answer(&scene, &["fof", "1", "--ranked", "--both"]), json!([[7, 1]]));
    scene.anden(&["query", "db", "fof", "1", "--ranked", "--depth", "3"]).refused(&["--depth"]);
    assert_eq!(answer(&scene, &["common", "2", "3"]), json!([8]));
    assert_eq!(answer(&scene, &["common", "2", "3", "--in"]), json!([1]));
    assert_eq!(answer(&scene, &["common", "2", "3", "--both"]), json!([1, 8]));
    assert_eq!(answer(&scene, &["common", "1", "7"]), json!([]));
    assert_eq!(
        text(&scene, &["common", "2", "3", "--both", "--return", "key,in_degree"]),
        "key\tin_degree\n1\t1\n8\t2\n"
    );
}

#[test]
fn a_property_hides_the_column_of_numbers() {
    let scene = Scene::new();
    scene.write("friends.csv", "source,target\n1,2\n2,3\n");
    scene.write("people.csv", "id,count,depth\n3,70,80\n");
    scene.anden(&["load", "db", "friends.csv", "--vertices", "people.csv"]).succeeded();
    assert_eq!(text(&scene, &["fof", "1", "--return", "key,count"]), "key\tcount\n3\t70\n");
    assert_eq!(text(&scene, &["khop", "1", "2", "--return", "key,depth", "--limit", "9"]), "key\tdepth\n2\t\n3\t80\n");
}

#[test]
fn paths_follow_either_direction_and_end() {
    let scene = Scene::with_small(&["--weights"]);
    assert_eq!(answer(&scene, &["path", "4", "1", "--in"]), json!({ "vertices": [4, 3, 1], "length": 2 }));
    assert_eq!(answer(&scene, &["path", "6", "5", "--both"]), json!({ "vertices": [6, 5], "length": 1 }));
    assert_eq!(answer(&scene, &["path", "6", "1", "--both"]), json!(null));
    assert_eq!(answer(&scene, &["path", "2", "4", "--weighted", "--in"]), json!({ "vertices": [2, 4], "length": 2.0 }));
    assert_eq!(answer(&scene, &["path", "1", "4", "--max-depth", "1"]), json!(null));
    assert_eq!(answer(&scene, &["path", "1", "4", "--max-depth", "2"])["length"], 2);
    assert_eq!(answer(&scene, &["path", "1", "1", "--max-depth", "0"])["length"], 0);
    assert_eq!(answer(&scene, &["path", "1", "4", "--all", "--max-depth", "1"]), json!(null));
    assert_eq!(answer(&scene, &["path", "4", "1", "--all", "--in"])["paths"], json!([[4, 3, 1]]));
    assert_eq!(answer(&scene, &["reachable", "4", "1", "--in"]), json!(true));
    assert_eq!(answer(&scene, &["reachable", "1", "4", "--max-depth", "1"]), json!(false));
    scene.anden(&["query", "db", "path", "1", "4", "--weighted", "--max-depth", "2"]).refused(&["--max-depth"]);
    scene.anden(&["query", "db", "path", "1", "4", "--limit", "2"]).refused(&["--all"]);
    scene.write("square.txt", "1 2\n1 3\n2 4\n3 4\n");
    scene.anden(&["load", "square", "square.txt"]).succeeded();
    let limited = scene.json(&["query", "square", "path", "1", "4", "--all", "--limit", "1"])["result"].clone();
    assert_eq!(limited, json!({ "length": 2, "count": 2, "paths": [[1, 2, 4]] }));
}

#[test]
fn vertices_with_the_most_edges() {
    let scene = Scene::with_small(&[]);
    assert_eq!(answer(&scene, &["degrees", "--top", "2"]), json!([[1, 2], [2, 1]]));
    assert_eq!(answer(&scene, &["degrees", "--top", "2", "--in"]), json!([[2, 2], [3, 2]]));
    assert_eq!(answer(&scene, &["degrees", "--top", "9", "--both"])[5], json!([6, 1]));
    assert_eq!(
        text(&scene, &["degrees", "--top", "1", "--return", "key,degree,in_degree"]),
        "key\tdegree\tin_degree\n1\t2\t0\n"
    );
    assert_eq!(answer(&scene, &["degrees", "--top", "0"]), json!([]));
    scene.anden(&["query", "db", "degrees", "--return", "key"]).refused(&["--top"]);
    let part = scene.json(&["query", "db", "--where-edge", "1 = 1", "degrees", "--top", "1"]);
    assert_eq!(part["result"], json!([[1, 2]]));
}

/// The answers of a batch by line.
fn answers(ran: &Ran) -> Vec<Value> {
    ran.lines().into_iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_batch_answers_each_line() {
    let scene = Scene::with_small(&["--weights"]);
    let questions =
        "# two comments\n\nneighbors 1\npath 1 4 --weighted\r\n  edge 1 2  \nkhop 1 2 --count\nvertex \"3\"";
    scene.write("questions.txt", questions);
    let ran = scene.anden(&["query", "db", "--batch", "questions.txt"]).succeeded();
    let found = answers(&ran);
    let lines: Vec<_> = found.iter().map(|answer| answer["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [3, 4, 5, 6, 7]);
    assert_eq!(keys(&found[0]), ["line", "seconds", "result"]);
    assert_eq!(found[0]["result"], json!([2, 3]));
    assert_eq!(found[1]["result"]["length"], 2.5);
    assert_eq!((&found[2]["result"], &found[2]["weights"]), (&json!(true), &json!([0.5])));
    assert_eq!((&found[3]["result"], &found[4]["result"]["key"]), (&json!(3), &json!(3)));
    // The selection applies to all questions, and standard input is a file.
    let arguments = ["query", "db", "--batch", "-", "--where-edge", "weight > 1"];
    let ran = scene.anden_with_input(&arguments, b"neighbors 1\n").succeeded();
    assert_eq!(answers(&ran)[0]["result"], json!([3]));
    assert_eq!(scene.anden_with_input(&["query", "db", "--batch", "-"], b"").succeeded().stdout, "");
}

#[test]
fn a_batch_goes_on_after_bad_lines() {
    let scene = Scene::with_small(&[]);
    let long = format!("neighbors {}", "1".repeat(2 << 20));
    let lines = ["cousins 1", "neighbors", "neighbors 99", "khop 1 x", "edge \"1", "neighbors --help", &long, "fof 2"];
    scene.write("questions.txt", lines.join("\n"));
    let ran = scene.anden(&["query", "db", "--batch", "questions.txt"]);
    let found = answers(&ran);
    assert_eq!((ran.status, found.len()), (1, 8), "{}", ran.stderr);
    assert_eq!(ran.stderr, "anden: questions.txt: 7 of 8 questions failed; their answers have \"error\"\n");
    for (answer, part) in found.iter().zip(["'cousins'", "<V>", "99", "'x'", "closing quote", "help", "bytes"]) {
        assert_eq!(keys(answer), ["line", "error"]);
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains(part) && !error.contains('\n') && !error.contains("Usage"), "{part} is not in {error}");
    }
    assert_eq!((&found[7]["line"], &found[7]["result"]), (&json!(8), &json!([4])));
    let ran = scene.anden_with_input(&["query", "db", "--batch", "-"], b"fof \xff\nfof 2\n");
    assert_eq!((ran.status, answers(&ran)[1]["result"].clone()), (1, json!([4])));
}

#[test]
fn a_batch_needs_a_file_and_no_question() {
    let scene = Scene::with_small(&[]);
    scene.anden(&["query", "db"]).refused(&["--batch"]);
    scene.anden(&["query", "db", "--batch", "x", "fof", "1"]).refused(&["--batch"]);
    scene.anden(&["query", "db", "--batch", "missing.txt"]).failed(&["missing.txt"]);
}

/// A program that asks one question after the other gets each answer before the next question.
#[test]
fn answers_do_not_wait_for_more_questions() {
    let scene = Scene::with_small(&[]);
    let mut command = scene.command(&["query", "db", "--batch", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for (question, wanted) in [("neighbors 1", json!([2, 3])), ("fof 2", json!([4]))] {
        writeln!(input, "{question}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["result"], wanted);
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}
