//! `anden prepare`: what it stores, says and refuses.

use serde_json::json;

use crate::scene::{Scene, keys};

#[test]
fn prepared_forms_are_stored_shown_and_used() {
    let scene = Scene::with_small(&["--out-only"]);
    let run = |kernel: &str| scene.json(&["run", "db", kernel, "--check"]);
    let wanted = ["lcc", "kcore", "cdlp"].map(|kernel| run(kernel)["result"].clone());
    assert_eq!(run("lcc")["prepared"], json!([false]));
    let report = scene.json(&["prepare", "db", "lcc", "kcore", "cdlp", "bfs", "lcc", "bfs"]);
    assert_eq!(keys(&report), ["forms", "without"]);
    assert_eq!(report["forms"][0]["kernels"], json!(["lcc"]));
    assert_eq!(keys(&report["forms"][0]), ["form", "kernels", "bytes", "seconds", "stored_before"]);
    assert_eq!(report["without"], json!(["bfs"]));
    let forms = report["forms"].as_array().unwrap();
    assert_eq!(forms.iter().map(|form| &form["form"]).collect::<Vec<_>>(), ["oriented", "in-lists"]);
    assert_eq!(forms[1]["kernels"], json!(["kcore", "cdlp"]));
    assert_eq!(run("lcc")["prepared"], json!([true]));
    assert_eq!(["lcc", "kcore", "cdlp"].map(|kernel| run(kernel)["result"].clone()), wanted);
    assert_eq!(scene.json(&["info", "db"])["prepared"][1]["form"], "in-lists");
    assert!(scene.anden(&["info", "db"]).succeeded().stdout.contains("prepared, in-lists"));

    let again = scene.anden(&["prepare", "db", "kcore"]).succeeded().stdout;
    assert!(again.starts_with("in-lists") && again.contains("kcore") && again.contains("stored already"), "{again}");
    let without = scene.anden(&["prepare", "db", "bfs"]).succeeded().stdout;
    assert_eq!(without, "bfs reads no prepared form of this graph\n");
    assert_eq!(scene.anden(&["prepare", "db", "--quiet"]).succeeded().stdout, "");
    scene.anden(&["verify", "db"]).succeeded();
}

#[test]
fn a_changed_graph_is_merged_before_it_is_prepared() {
    let scene = Scene::with_small(&[]);
    scene.write("more.txt", "1 6\n");
    scene.anden(&["append", "db", "more.txt", "--no-maintenance"]).succeeded();
    scene.anden(&["prepare", "db"]).failed(&["cannot prepare", "merge first"]);
    scene.anden(&["merge", "db"]).succeeded();
    scene.anden(&["prepare", "db"]).succeeded();
    assert_eq!(scene.json(&["run", "db", "lcc"])["prepared"], json!([true]));
}

#[test]
fn a_damaged_form_is_named_and_replaced() {
    let scene = Scene::with_small(&[]);
    scene.anden(&["prepare", "db", "lcc"]).succeeded();
    let file = scene.names_in("db").into_iter().find(|name| name.starts_with("prepared-")).unwrap();
    let path = format!("db/{file}");
    let mut bytes = std::fs::read(scene.path(&path)).unwrap();
    bytes[4096] ^= 1;
    scene.write(&path, bytes);
    scene.anden(&["verify", "db"]).failed(&[&file]);
    let ran = scene.anden(&["run", "db", "lcc", "--check", "-v"]);
    assert!(ran.status == 0 && ran.stderr.contains("prepared anew") && ran.stderr.contains(&file), "{}", ran.stderr);
    scene.anden(&["prepare", "db", "lcc"]).succeeded();
    scene.anden(&["verify", "db"]).succeeded();
}
