//! `anden backup`, `anden restore` and `anden repair`: what they write, say and refuse.

use std::process::Command;

use serde_json::json;

use crate::scene::{Scene, keys};

#[test]
fn a_backup_and_its_increment_are_restored() {
    let scene = Scene::with_small(&[]);
    let full = scene.json(&["backup", "db", "full"]);
    assert_eq!(keys(&full), ["backup", "parent", "history", "epoch", "files", "bytes", "state_bytes", "seconds"]);
    scene.write("more.txt", "+ 1 9\n");
    scene.anden(&["apply", "db", "more.txt"]).succeeded();
    let said = scene.anden(&["backup", "db", "increment.tar.zst", "--since", "full"]).succeeded().stdout;
    assert!(said.starts_with("wrote increment.tar.zst: epoch 1, ") && said.contains(" of "), "{said}");
    let id = scene.json(&["backup", "db", "next", "--since", "increment.tar.zst"])["parent"].clone();
    assert!(said.ends_with(&format!(", backup {}\n", id.as_str().unwrap())), "{said}");
    let report = scene.json(&["restore", "full", "increment.tar.zst", "new"]);
    let fields = ["history", "source_history", "epoch", "snapshots", "vertices", "edges", "files", "bytes", "seconds"];
    assert_eq!(keys(&report), fields);
    assert_eq!((&report["source_history"], &report["epoch"]), (&full["history"], &json!(1)));
    // A drop may be the first thing that is done with it, on a full disk.
    assert!(scene.path("new/RESERVE").exists());
    scene.anden(&["verify", "new"]).succeeded();
    assert_eq!(scene.json(&["query", "new", "edge", "1", "9"])["result"], true);
    scene.anden(&["restore", "full", "old", "--limit-rate", "1G", "--quiet"]).succeeded();
    scene.anden(&["query", "old", "edge", "1", "9"]).failed(&["vertex 9 does not exist"]);
}

#[test]
fn a_backup_goes_through_a_pipe() {
    let scene = Scene::with_small(&[]);
    let mut backup = scene.command(&["backup", "db", "-"]);
    let archive = backup.output().unwrap();
    assert!(archive.status.success() && archive.stderr.is_empty(), "{archive:?}");
    scene.anden_with_input(&["restore", "-", "new"], &archive.stdout).succeeded();
    assert_eq!(scene.json(&["info", "new"])["edges"], scene.json(&["info", "db"])["edges"]);
    let half = &archive.stdout[..archive.stdout.len() / 2];
    scene.anden_with_input(&["restore", "-", "half"], half).failed(&["-: ", "is cut or damaged", "another copy"]);
    assert!(!scene.names().contains(&"half".to_owned()), "{:?}", scene.names());
    scene.anden(&["backup", "db", "-", "--json"]).refused(&["--json"]);
}

#[test]
fn taken_paths_and_foreign_backups_are_refused() {
    let scene = Scene::with_small(&[]);
    scene.anden(&["backup", "db", "full"]).succeeded();
    scene.anden(&["backup", "db", "full"]).failed(&["full", "exists already"]);
    scene.anden(&["restore", "full", "db"]).failed(&["db", "exists already"]);
    scene.anden(&["restore", "full", "new"]).succeeded();
    scene.anden(&["backup", "new", "next", "--since", "full"]).failed(&["history", "make a full backup"]);
    scene.anden(&["restore", "db", "other"]).failed(&["db is a database and no backup", "`anden backup`"]);
    scene.anden(&["backup", "db", "next", "--since", "db"]).failed(&["db is a database and no backup"]);
    scene.anden(&["info", "full"]).failed(&["full", "is a backup", "`anden restore`"]);
    scene.anden(&["backup", "db", "next.tar.gz"]).failed(&["next.tar.gz", "ends in .tar.zst"]);
    scene.anden(&["restore", "absent", "other"]).failed(&["absent"]);
    assert!(!scene.names().iter().any(|name| name.starts_with("next") || name == "other"), "{:?}", scene.names());
}

#[test]
fn damaged_backups_are_named_with_a_remedy() {
    let scene = Scene::with_small(&[]);
    scene.anden(&["backup", "db", "full"]).succeeded();
    scene.anden(&["backup", "db", "full.tar.zst"]).succeeded();
    let remedy = "take another copy of that backup";
    let base = scene.path("full/base-000001-out");
    let content = std::fs::read(&base).unwrap();
    let mut damaged = content.clone();
    damaged[100] ^= 1;
    std::fs::write(&base, damaged).unwrap();
    scene.anden(&["restore", "full", "new"]).failed(&["base-000001-out", "damaged at byte", remedy]);
    std::fs::remove_file(&base).unwrap();
    scene.anden(&["restore", "full", "new"]).failed(&["base-000001-out", "the file is missing", remedy]);
    let archive = std::fs::read(scene.path("full.tar.zst")).unwrap();
    let mut flipped = archive.clone();
    flipped[archive.len() / 2] ^= 1;
    for bytes in [&archive[..archive.len() - 9], &flipped, b"no archive"] {
        std::fs::write(scene.path("other.tar.zst"), bytes).unwrap();
        for verb in [&["restore", "other.tar.zst", "new"][..], &["backup", "db", "new", "--since", "other.tar.zst"]] {
            scene.anden(verb).failed(&["other.tar.zst", "damaged", remedy]);
        }
    }
    assert!(!scene.names().contains(&"new".to_owned()));
}

#[test]
fn a_repair_lists_what_is_lost() {
    let scene = Scene::with_small(&["--weights"]);
    let report = scene.json(&["repair", "db", "--to", "whole"]);
    let fields = ["history", "source_history", "epoch", "snapshots", "vertices", "edges", "files", "bytes", "losses"];
    assert_eq!(keys(&report)[..9], fields);
    assert_eq!((&report["losses"], &report["edges"]), (&json!([]), &json!(6)));
    let said = scene.anden(&["repair", "db", "--to", "again"]).succeeded().stdout;
    assert!(said.starts_with("saved again: 6 vertices, 6 edges, ") && said.ends_with("nothing is lost\n"), "{said}");
    // The targets of the out-lists alone are in the in-lists too.
    let targets = |name: &str| scene.path("db").join(format!("base-000001-{name}"));
    std::fs::remove_file(targets("out")).unwrap();
    assert!(scene.path("again/RESERVE").exists());
    let remedy = "`anden repair db --to NEW` saves what is left";
    scene.anden(&["verify", "db"]).failed(&["base-000001-out", "the file is missing", remedy]);
    assert_eq!(scene.json(&["repair", "db", "--to", "recovered"])["losses"], json!([]));
    let weight = |database: &str| scene.json(&["query", database, "edge", "1", "3"])["result"].clone();
    assert_eq!(weight("recovered"), weight("whole"));
    std::fs::remove_file(targets("in")).unwrap();
    let lost = scene.anden(&["repair", "db", "--to", "part"]).succeeded().stdout;
    let span = "1 to 6 (ids 0 to 5)";
    let expected =
        format!("lost: edges from the vertices {span} to the vertices {span}\nsaved part: 6 vertices, 0 edges");
    assert!(lost.starts_with(&expected) && lost.ends_with("see the losses above\n"), "{lost}");
    let loss = &scene.json(&["repair", "db", "--to", "other"])["losses"][0];
    assert_eq!((&loss["kind"], &loss["from"]["keys"]), (&json!("edges"), &json!(["1", "6"])));
    scene.anden(&["verify", "part"]).succeeded();
    scene.anden(&["repair", "db", "--to", "part"]).failed(&["part", "exists already"]);
    let manifest = scene.path("db").join("MANIFEST");
    std::fs::write(&manifest, b"no manifest").unwrap();
    let said = scene.anden(&["verify", "db"]).failed(&["MANIFEST", "damaged", "from a copy"]).stderr.clone();
    assert!(!said.contains("anden repair"), "{said}");
    std::fs::remove_file(manifest).unwrap();
    scene.anden(&["repair", "db", "--to", "third"]).failed(&["db", "is no database", "restore it from a backup"]);
    scene.anden(&["repair", "absent", "--to", "third"]).failed(&["absent"]);
    assert!(!scene.names().contains(&"third".to_owned()));
}

#[test]
fn an_archive_is_not_written_to_a_terminal() {
    let scene = Scene::with_small(&[]);
    let command = format!("'{}' backup db -", env!("CARGO_BIN_EXE_anden"));
    // `script` gives the command a terminal, and exits with its status.
    let script = Command::new("script").args(["-qec", &command, "/dev/null"]).current_dir(scene.path("")).output();
    let Ok(script) = script else {
        println!("skipped: there is no `script` that makes a terminal");
        return;
    };
    let shown = String::from_utf8_lossy(&script.stdout);
    assert!(shown.contains("standard output is a terminal") && shown.lines().count() == 1, "{shown}");
    assert_eq!(script.status.code(), Some(2));
}
