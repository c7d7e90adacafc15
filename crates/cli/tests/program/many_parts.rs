//! Tables of more parts than the process may have open files.

use std::process::Command;

use serde_json::{Value, json};

use crate::scene::Scene;

const NUM_PARTS: usize = 300;
/// Enough for the program itself.
const MAX_OPEN: usize = 64;

/// Runs the program with few open files, and returns its object.
fn limited(scene: &Scene, arguments: &[String]) -> Value {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {MAX_OPEN} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_anden")]);
    let output = command.args(arguments).arg("--json").current_dir(scene.path("")).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn load(scene: &Scene, inputs: &[String]) -> Value {
    limited(scene, &[&["load", "db", "--multigraph"].map(str::to_owned), inputs].concat())
}

/// Copies a part until there are [`NUM_PARTS`].
fn copies(scene: &Scene, part: &str, folder: &str) -> Vec<String> {
    std::fs::create_dir_all(scene.path(folder)).unwrap();
    let name = |i: usize| format!("{folder}/copy-{i:03}.parquet");
    (1..NUM_PARTS).for_each(|i| {
        std::fs::copy(scene.path(part), scene.path(&name(i))).unwrap();
    });
    std::iter::once(part.to_owned()).chain((1..NUM_PARTS).map(name)).collect()
}

fn with_edges() -> Scene {
    let scene = Scene::new();
    scene.write("a.csv", "source,target,amount\n1,2,7\n2,3,8\n");
    scene.anden(&["load", "one", "a.csv", "--quiet"]).succeeded();
    scene
}

#[test]
fn parts_of_parquet_need_few_descriptors() {
    let scene = with_edges();
    scene.anden(&["export", "one", "part.parquet", "--quiet"]).succeeded();
    let report = load(&scene, &copies(&scene, "part.parquet", "parts"));
    assert_eq!((&report["edges"], &report["vertices"]), (&json!(2 * NUM_PARTS), &json!(3)));
    let found = scene.anden(&["query", "db", "edge", "2", "3", "--return", "amount"]).succeeded();
    assert_eq!(found.lines(), [&["amount"][..], &["8"; NUM_PARTS]].concat());
}

#[test]
fn folders_of_many_parts_need_few_descriptors() {
    let scene = with_edges();
    scene.anden(&["export", "one", "frames", "--format", "graphframes", "--quiet"]).succeeded();
    copies(&scene, "frames/edges/part-00000.parquet", "frames/edges");
    copies(&scene, "frames/vertices/part-00000.parquet", "frames/vertices");
    let report = load(&scene, &["frames".to_owned()]);
    assert_eq!((&report["edges"], &report["vertices"]), (&json!(2 * NUM_PARTS), &json!(3)));
}

#[test]
fn parts_of_csv_need_few_descriptors() {
    let scene = Scene::new();
    let part = |i: usize| {
        let name = format!("part-{i:03}.csv");
        scene.write(&name, format!("source,target,amount\n{i},{},{i}\n", i + 1));
        name
    };
    let report = load(&scene, &(0..NUM_PARTS).map(part).collect::<Vec<_>>());
    assert_eq!((&report["edges"], &report["vertices"]), (&json!(NUM_PARTS), &json!(NUM_PARTS + 1)));
    let found = scene.anden(&["query", "db", "edge", "299", "300", "--return", "amount"]).succeeded();
    assert_eq!(found.stdout, "amount\n299\n");
}
