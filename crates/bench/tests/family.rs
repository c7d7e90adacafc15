//! `anden-bench family` on a tiny family of graphs.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn family(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anden-bench"));
    command.args(["family", "--pairs", "1", "--threads", "1"]).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Writes a directed graph with a loop, values by vertex, and a file of another kind.
fn write_data(folder: &Path) {
    std::fs::write(folder.join("wheel.el"), "0 0\n0 1\n0 2\n0 3\n1 2\n2 3\n3 1\n").unwrap();
    std::fs::write(folder.join("values.el"), "0 1\n1 2\n2 0\n").unwrap();
    std::fs::write(folder.join("README.md"), "# Graphs\n").unwrap();
}

/// The text of the cells of a graph in one table of the output.
fn cells<'a>(table: &'a str, graph: &str) -> Vec<&'a str> {
    let row = table.lines().find(|line| line.starts_with(&format!("| {graph} |"))).unwrap_or_default();
    row.split('|').map(str::trim).skip(2).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn matrix_has_each_graph_and_kernel() {
    let data = tempfile::tempdir().unwrap();
    write_data(data.path());
    let data = data.path().to_str().unwrap();
    let text = text(&family(&["--graphs", "kron6", "grid5", "wheel", "values", "README", "--data", data]));
    for expected in [
        "skipped GAPBS: no --gapbs DIR",
        "skipped NetworKit, igraph, SciPy, graph-mate, python-graphblas: no --python EXECUTABLE",
        "skipped values: no vertex has two edges",
        "skipped README: ",
        "| graph | pagerank f64 | pagerank f32 | bfs | wcc | sssp | bc | triangles |",
        "warm: no other side ran",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    let (_, phases) = text.split_once("Phases of warm runs").unwrap();
    for graph in ["kron6", "grid5", "wheel"] {
        let (times, phases) = (cells(&text, graph), cells(phases, graph));
        assert!(times.len() == 7 && times.iter().all(|cell| cell.ends_with(" s")), "{times:?}");
        assert!(phases[0].contains(" ms, ") && phases[2].ends_with(" ms"), "{phases:?}");
    }
}

#[test]
fn each_graph_gives_one_report() {
    let text = text(&family(&["--json", "--graphs", "grid4", "kron5", "--kernel", "bfs"]));
    let reports: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let graphs: Vec<_> = reports.iter().map(|report| report["graph"].as_str().unwrap()).collect();
    assert_eq!(graphs, ["grid4 (16 vertices, 24 edges)", graphs[1]]);
    for report in &reports {
        let names: Vec<_> = report["lines"].as_array().unwrap().iter().map(|line| &line["name"]).collect();
        assert_eq!(names, ["bfs, first", "bfs, warm", "bfs, kept", "bfs: open"]);
    }
    assert!(graphs[1].starts_with("kron5 (32 vertices, "), "{graphs:?}");
}

/// A stand-in for GAP's programs: it prints fixed times and the figures of the grid, one of them wrong.
#[test]
#[cfg(unix)]
fn other_sides_are_compared_with_ours() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let printed = [("bfs", "BFS Tree has 16 nodes and 48 edges"), ("cc", "There are 2 components")];
    for (program, line) in printed {
        let path = folder.path().join(program);
        let script =
            format!("#!/bin/sh\necho 'Read Time: 1'\necho 'Trial Time: 1'\necho 'Trial Time: 2'\necho '{line}'\n");
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let gapbs = folder.path().to_str().unwrap();
    let output = family(&["--graphs", "grid4", "--gapbs", gapbs, "--kernel", "bfs"]);
    let matrix = text(&output);
    assert!(cells(&matrix, "grid4")[0].ends_with("GAPBS bfs"), "{matrix}");
    assert!(matrix.contains("skipped GAPBS pr: not built") && matrix.contains("bfs on grid4"), "{matrix}");
    let output = family(&["--graphs", "grid4", "--gapbs", gapbs, "--kernel", "wcc"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("error: grid4 wcc: GAPBS cc: components 2, ours 1"),
        "{errors}"
    );
}
