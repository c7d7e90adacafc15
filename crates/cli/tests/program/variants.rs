//! Variants of kernels: other algorithms, from sources, by weight, by vertex.

use serde_json::{Value, json};

use crate::scene::Scene;

/// Runs a kernel with its verifier. Returns the result.
fn result(scene: &Scene, arguments: &[&str]) -> Value {
    let object = scene.json(&[&["run", "db"], arguments, &["--check"]].concat());
    assert_eq!(object["check"], "ok");
    object["result"].clone()
}

#[test]
fn the_first_vertices_and_largest_groups() {
    let scene = Scene::with_small(&[]);
    let top = |arguments: &[&str]| result(&scene, &[arguments, &["--top", "3"]].concat());
    assert_eq!(top(&["wcc"]), json!({ "components": 2, "largest": 4, "sizes": [[1, 4], [5, 2]] }));
    // Equal sizes are ordered by key.
    assert_eq!(top(&["scc"])["sizes"], json!([[2, 3], [1, 1], [5, 1]]));
    assert_eq!(top(&["kcore"]), json!({ "degeneracy": 2, "top": [[1, 2], [2, 2], [3, 2]], "sizes": [[2, 4], [1, 2]] }));
    assert_eq!(top(&["triangles"]), json!({ "triangles": 2, "top": [[2, 2], [3, 2], [1, 1]] }));
    assert_eq!(top(&["lcc"])["top"][0], json!([1, 0.5]));
    for kernel in ["pagerank", "bc", "closeness"] {
        assert_eq!(top(&[kernel])["top"].as_array().unwrap().len(), 3, "{kernel}");
    }
    let labels = scene.anden(&["run", "db", "cdlp", "--output", "-"]).succeeded();
    let mut sizes = std::collections::BTreeMap::<u64, u64>::new();
    for line in labels.lines() {
        *sizes.entry(line.split_once(' ').unwrap().1.parse().unwrap()).or_default() += 1;
    }
    let mut sizes: Vec<_> = sizes.into_iter().collect();
    sizes.sort_by_key(|&(_, size)| std::cmp::Reverse(size));
    assert_eq!(top(&["cdlp"])["sizes"], json!(sizes[..3]));
    let shown = scene.anden(&["run", "db", "wcc", "--top", "1"]).succeeded().stdout;
    assert!(shown.ends_with("  sizes\n    1  4\n"), "{shown}");
    scene.anden(&["run", "db", "bfs", "--source", "1", "--top", "2"]).refused(&["bfs", "top"]);
}

/// The values that a kernel writes, in the order of the keys.
fn values(scene: &Scene, arguments: &[&str]) -> Vec<f64> {
    let ran = scene.anden(&[&["run", "db"], arguments, &["--check", "--output", "-"]].concat()).succeeded();
    ran.lines().iter().map(|line| line.split_once(' ').unwrap().1.parse().unwrap()).collect()
}

fn assert_near(found: &[f64], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        // Unreached vertices are at an infinite distance.
        assert!(found == wanted || (found - wanted).abs() < 1e-12, "{found} and {wanted}");
    }
}

#[test]
fn triangles_by_vertex() {
    let scene = Scene::with_small(&[]);
    let ran = scene.anden(&["run", "db", "triangles", "--check", "--output", "-"]).succeeded();
    assert_eq!(ran.stdout, "1 1\n2 2\n3 2\n4 1\n5 0\n6 0\n");
    scene.anden(&["run", "db", "triangles", "--output", "corners", "--quiet"]).succeeded();
    assert_eq!(scene.read("corners"), ran.stdout);
}

#[test]
fn clustering_coefficients() {
    let scene = Scene::with_small(&[]);
    // Each triangle gives each of its corners one joined pair. 2 and 3 have three neighbors, and so six ordered pairs.
    assert_near(&values(&scene, &["lcc"]), &[0.5, 2.0 / 6.0, 2.0 / 6.0, 0.5, 0.0, 0.0]);
    let mean = result(&scene, &["lcc"])["mean"].as_f64().unwrap();
    assert_near(&[mean], &[(1.0 + 4.0 / 6.0) / 6.0]);
}

#[test]
fn strong_components() {
    let scene = Scene::with_small(&[]);
    assert_eq!(result(&scene, &["scc"]), json!({"components": 4, "largest": 3}));
    assert_eq!(values(&scene, &["scc"]), [1.0, 2.0, 2.0, 2.0, 5.0, 6.0]);
}

#[test]
fn cores() {
    let scene = Scene::with_small(&[]);
    assert_eq!(result(&scene, &["kcore"]), json!({"degeneracy": 2}));
    assert_eq!(values(&scene, &["kcore"]), [2.0, 2.0, 2.0, 2.0, 1.0, 1.0]);
}

#[test]
fn communities() {
    let scene = Scene::with_small(&[]);
    // Labels alternate between two pairs of vertices, and between 5 and 6.
    assert_eq!(result(&scene, &["cdlp"]), json!({"communities": 4, "iterations": 10}));
    assert_eq!(values(&scene, &["cdlp"]), [1.0, 2.0, 2.0, 1.0, 5.0, 6.0]);
    assert_eq!(values(&scene, &["cdlp", "--iterations", "3"]), [2.0, 1.0, 1.0, 2.0, 6.0, 5.0]);
    assert_eq!(result(&scene, &["cdlp", "--iterations", "0"]), json!({"communities": 6, "iterations": 0}));
    scene.anden(&["run", "db", "cdlp", "--tolerance", "1"]).refused(&["cdlp", "tolerance"]);
}

#[test]
fn tied_labels_resolve_to_the_smallest_key() {
    let scene = Scene::new();
    scene.write("first.txt", "20 30\n");
    scene.write("second.txt", "20 10\n");
    scene.anden(&["load", "db", "first.txt"]).succeeded();
    // 10 has the largest id.
    scene.anden(&["append", "db", "second.txt"]).succeeded();
    let ran = scene.anden(&["run", "db", "cdlp", "--iterations", "1", "--check", "--output", "-"]).succeeded();
    assert_eq!(ran.stdout, "10 20\n20 10\n30 20\n");
}

#[test]
fn pagerank_that_drops_dangling_mass() {
    let scene = Scene::with_small(&[]);
    let base = 0.15 / 6.0;
    let once = values(&scene, &["pagerank", "--algorithm", "gap", "--iterations", "1"]);
    let share = 0.85 / 6.0;
    assert_near(&once, &[base, base + 1.5 * share, base + 1.5 * share, base + share, base, base + share]);
    let sum = result(&scene, &["pagerank", "--algorithm", "gap"])["sum"].as_f64().unwrap();
    assert!(sum < 1.0 - 1e-3, "{sum}");
}

#[test]
fn pagerank_from_sources() {
    let scene = Scene::with_small(&[]);
    let personal = ["pagerank", "--source", "5", "--source", "1", "--iterations", "1"];
    let (share, home) = (0.85 / 6.0, (0.15 + 0.85 / 6.0) / 2.0);
    assert_near(&values(&scene, &personal), &[home, 1.5 * share, 1.5 * share, share, home, share]);
    let found = result(&scene, &["pagerank", "--source", "5"]);
    assert_eq!((&found["top"][0][0], &found["top"][1][0]), (&json!(5), &json!(6)));
    assert!(found["top"][2][1].as_f64().unwrap() < 1e-5, "{found}");
    scene.anden(&["run", "db", "pagerank", "--source", "77"]).failed(&["77", "does not exist"]);
}

#[test]
fn pagerank_by_weight() {
    let scene = Scene::with_small(&["--weights"]);
    let (share, base) = (0.85 / 6.0, (0.15 + 0.85 / 6.0) / 6.0);
    let (to_two, to_three) = (share * 0.5 / 4.5, share * 4.0 / 4.5);
    let wanted = [base, base + to_two + share, base + to_three + share, base + share, base, base + share];
    assert_near(&values(&scene, &["pagerank", "--weight", "weight", "--iterations", "1"]), &wanted);
    scene.anden(&["run", "db", "pagerank", "--weight", "colour"]).failed(&["colour"]);
    let plain = Scene::with_small(&[]);
    plain.anden(&["run", "db", "pagerank", "--weight", "weight"]).failed(&["weight"]);
}

#[test]
fn every_kernel_takes_either_variant() {
    let scene = Scene::with_small(&["--weights"]);
    let jobs: [&[&str]; 11] = [
        &["bfs", "--source", "1"],
        &["pagerank", "--iterations", "3"],
        &["pagerank", "--iterations", "3", "--weight", "weight"],
        &["wcc"],
        &["scc"],
        &["sssp", "--source", "1"],
        &["bc", "--source", "1"],
        &["triangles"],
        &["lcc"],
        &["cdlp"],
        &["kcore"],
    ];
    for job in jobs {
        let wanted = values(&scene, job);
        for variant in ["auto", "memory", "disk"] {
            assert_near(&values(&scene, &[job, &["--variant", variant]].concat()), &wanted);
        }
    }
    scene.anden(&["run", "db", "wcc", "--variant", "tape"]).refused(&["tape", "memory", "disk"]);
}

/// The memory of a kernel shows its variant: a copy of the graph or bins take more than a scan of the lists.
#[test]
fn memory_and_option_choose_the_kernel_variant() {
    let scene = Scene::new();
    scene.anden(&["generate", "rmat", "--scale", "13", "--degree", "16", "--quiet", "-o", "graph.sg"]).succeeded();
    scene.anden(&["load", "db", "graph.sg", "--ids", "dense"]).succeeded();
    for kernel in [&["triangles"][..], &["pagerank", "--iterations", "2"]] {
        let run = [&["run", "db"], kernel, &["--threads", "1"]].concat();
        let with = |options: &[&str]| {
            let object = scene.json(&[&run[..], options].concat());
            (object["peak_bytes"].as_u64().unwrap(), object["result"]["triangles"].clone())
        };
        let too_small = scene.anden(&[&run[..], &["--memory", "1000"]].concat()).failed(&["at least "]);
        let least = too_small.stderr.split("at least ").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
        let [auto, memory, disk] = ["auto", "memory", "disk"].map(|variant| with(&["--variant", variant]));
        assert!(memory.0 > disk.0 + (100 << 10), "{kernel:?}: {} bytes, {} from a disk", memory.0, disk.0);
        let little = with(&["--memory", least]);
        assert!(little.0 < memory.0 - (100 << 10), "{kernel:?}: {} bytes of {}", little.0, memory.0);
        assert!([&memory.1, &disk.1, &little.1].into_iter().all(|result| *result == auto.1), "{kernel:?}");
        println!(
            "{kernel:?}: {} bytes, {} in memory, {} from a disk, {} of {least}",
            auto.0, memory.0, disk.0, little.0
        );
    }
}

#[test]
fn shortest_paths_by_either_algorithm() {
    let scene = Scene::with_small(&["--weights"]);
    let by = |name| result(&scene, &["sssp", "--source", "1", "--algorithm", name]);
    assert_eq!(by("bellman-ford"), by("delta-stepping"));
    assert_eq!(result(&scene, &["sssp", "--source", "1", "--weight", "weight"]), by("bellman-ford"));
    scene.anden(&["run", "db", "sssp", "--source", "1", "--algorithm", "dijkstra"]).refused(&["bellman-ford"]);
    scene.anden(&["run", "db", "sssp", "--source", "1", "--weight", "colour"]).failed(&["colour"]);
}

#[test]
fn betweenness_from_a_sample_and_from_all() {
    let scene = Scene::with_small(&[]);
    let all = result(&scene, &["bc", "--sources", "all"]);
    assert_eq!(all["sources"], json!([1, 2, 3, 4, 5, 6]));
    assert_eq!(all, result(&scene, &["bc", "--sources", "6"]));
    // The path from 1 to 4 leads through 3, as does 2 to 4; 3 to 2 leads through 4, and 4 to 3 through 2.
    assert_eq!(values(&scene, &["bc", "--sources", "all"]), [0.0, 1.0, 2.0, 1.0, 0.0, 0.0]);
    let sampled = |seed: &str| result(&scene, &["bc", "--sources", "2", "--seed", seed]);
    assert_eq!(sampled("9")["sources"].as_array().unwrap().len(), 2);
    assert_eq!(sampled("9"), sampled("9"));
    assert!((1..20).any(|seed| sampled(&seed.to_string())["sources"] != sampled("9")["sources"]));
    scene.anden(&["run", "db", "bc", "--sources", "few"]).refused(&["few"]);
}
