//! Limits of addresses (`ulimit -v`): a small database works, or the error names what is needed.

use std::collections::BTreeSet;

use crate::scene::Scene;

/// Enough for a small database, beside the program itself.
const SUFFICIENT: u64 = 200 << 20;
/// Too few for any command.
const TOO_FEW: u64 = 32 << 20;

/// Edges between vertices all over `first..first + 200_000`.
fn edges(first: u64) -> BTreeSet<(u64, u64)> {
    let vertex = |i: u64| first + (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % 200_000;
    (0..300_000).map(|i| (vertex(2 * i + 1), vertex(2 * i + 2))).collect()
}

/// Runs a command with few addresses on two threads.
#[track_caller]
fn run(scene: &Scene, arguments: &[&str]) -> String {
    scene.anden_within(SUFFICIENT, &[arguments, &["--threads", "2", "--quiet"]].concat()).succeeded().stdout
}

#[test]
#[cfg_attr(anden_asan, ignore = "a sanitizer takes memory of its own")]
fn small_database_works_with_few_addresses() {
    let scene = Scene::new();
    scene.write("edges.txt", (0..124).map(|i| format!("{i} {}\n", (i * 7 + 1) % 124)).collect::<String>());
    scene.write("updates.txt", "+ 1 50\n+ 1 51\n- 2 15\n");
    scene.write("more.txt", "3 60\n");
    for options in [&[][..], &["--ids", "string", "--undirected"]] {
        run(&scene, &[&["load", "db", "edges.txt"], options].concat());
        run(&scene, &["apply", "db", "updates.txt", "--batch", "1"]);
        run(&scene, &["checkpoint", "db"]);
        run(&scene, &["apply", "db", "updates.txt"]);
        run(&scene, &["append", "db", "more.txt"]);
        run(&scene, &["run", "db", "pagerank"]);
        run(&scene, &["run", "db", "wcc", "--io", "pread"]);
        run(&scene, &["query", "db", "path", "1", "60"]);
        run(&scene, &["merge", "db"]);
        run(&scene, &["export", "db", "out.csv"]);
        run(&scene, &["backup", "db", "copy"]);
        run(&scene, &["restore", "copy", "restored"]);
        run(&scene, &["verify", "restored"]);
        assert_eq!(run(&scene, &["query", "restored", "edge", "3", "60"]), "true\n");
        ["db", "copy", "restored"].iter().for_each(|name| std::fs::remove_dir_all(scene.path(name)).unwrap());
    }
}

/// Snapshots come early enough that the changes never fill the few addresses of a memtable.
#[test]
#[cfg_attr(anden_asan, ignore = "a sanitizer takes memory of its own")]
fn many_updates_fit_in_few_addresses() {
    let scene = Scene::with_small(&["--ids", "dense"]);
    let mut wanted = scene.json(&["info", "db"])["edges"].as_u64().unwrap();
    // Batches of the second size are larger than the memtable, and become snapshots at once.
    for (first, batch) in [(10, "1000"), (500_000, "30000")] {
        let edges = edges(first);
        let updates = edges.iter().rev().map(|(source, target)| format!("+ {source} {target}\n"));
        scene.write("updates.txt", updates.collect::<String>());
        let apply = ["apply", "db", "updates.txt", "--durability", "none", "--threads", "2", "--batch"];
        // A batch that does not fit is refused, and nothing has happened.
        scene.anden_within(SUFFICIENT, &[&apply[..], &["300000"]].concat()).failed(&["MiB of addresses", "ulimit -v"]);
        assert_eq!(scene.json(&["info", "db"])["edges"], wanted);
        scene.anden_within(SUFFICIENT, &[&apply[..], &[batch]].concat()).succeeded();
        wanted += edges.len() as u64;
        assert_eq!(scene.json(&["info", "db"])["edges"], wanted, "batches of {batch}");
    }
    scene.anden(&["verify", "db"]).succeeded();
    run(&scene, &["run", "db", "wcc"]);
}

/// A vertex far beyond the others needs a larger memtable, which takes the place of an empty one.
#[test]
#[cfg_attr(anden_asan, ignore = "a sanitizer takes memory of its own")]
fn memtable_grows_with_the_vertices() {
    let scene = Scene::with_small(&["--ids", "dense"]);
    scene.write("far.txt", "+ 1 1500000\n");
    run(&scene, &["apply", "db", "far.txt"]);
    scene.write("farther.txt", "+ 1 5\n+ 1 3000000\n");
    run(&scene, &["apply", "db", "farther.txt", "--batch", "1"]);
    scene.anden(&["verify", "db"]).succeeded();
    assert_eq!(scene.json(&["query", "db", "edge", "1", "3000000"])["result"], true);
}

#[test]
#[cfg_attr(anden_asan, ignore = "a sanitizer takes memory of its own")]
fn too_few_addresses_are_refused_with_the_need() {
    let scene = Scene::with_small(&[]);
    scene.write("updates.txt", "+ 1 7\n");
    let before = scene.names();
    for arguments in [
        &["load", "other", "small.txt"][..],
        &["apply", "db", "updates.txt"],
        &["checkpoint", "db"],
        &["run", "db", "wcc"],
        &["info", "db"],
    ] {
        let arguments = [arguments, &["--threads", "2", "--quiet"]].concat();
        let ran = scene.anden_within(TOO_FEW, &arguments).failed(&["of addresses", "ulimit -v", "needs at least"]);
        assert_eq!(scene.names(), before, "{arguments:?}");
        let more = ran.stderr.split("raise it by ").nth(1).and_then(|rest| rest.split(" KiB").next());
        let more: u64 = more.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{ran:?}"));
        scene.anden_within(TOO_FEW + more * 1024, &arguments).succeeded();
        let _ = std::fs::remove_dir_all(scene.path("other"));
    }
    assert_eq!(scene.json(&["info", "db"])["edges"], 7);
}
