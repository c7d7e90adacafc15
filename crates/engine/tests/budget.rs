//! An input four times as large as the memory budget.
//!
//! Each load has a process of its own, whose resident peak it watches: an allocator keeps some of the memory of
//! an earlier load, which would count for the next one.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{Engine, IdOrder, KeyScheme, LoadOptions, Spread};
use anden_formats::InputPath;
use anden_graph::GraphKind;

const BUDGET: u64 = 32 << 20;
const NUM_KEYS: u64 = 100_000;
/// The variable by which the test tells a child process its case.
const CHILD: &str = "ANDEN_TEST_BUDGET_CASE";

/// Writes random edges until the file has `num_bytes`. Returns the number of edges.
fn write_edges(path: &Path, num_bytes: u64) -> u64 {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    let (mut state, mut written, mut num_edges) = (0x2545_f491_4f6c_dd1d_u64, 0, 0);
    while written < num_bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let line = format!("{} {}\n", state % NUM_KEYS, (state >> 32) % NUM_KEYS);
        written += line.len() as u64;
        num_edges += 1;
        file.write_all(line.as_bytes()).unwrap();
    }
    file.flush().unwrap();
    num_edges
}

type Case = (KeyScheme, GraphKind, Option<u64>, Spread, IdOrder);

fn cases() -> [Case; 5] {
    let several = Spread { num_snapshots: 3, first_share: Some(0.95), seed: 1 };
    [
        (KeyScheme::Dense, GraphKind::Directed, Some(BUDGET), Spread::default(), IdOrder::Auto),
        (KeyScheme::Integer, GraphKind::Undirected, Some(BUDGET), Spread::default(), IdOrder::Auto),
        (KeyScheme::Integer, GraphKind::Directed, Some(2 * BUDGET), Spread::default(), IdOrder::Degree),
        // Half of the memory for edges is reserved for edges of later snapshots.
        (KeyScheme::Dense, GraphKind::Directed, Some(3 * BUDGET), several, IdOrder::Auto),
        (KeyScheme::Integer, GraphKind::Undirected, None, Spread::default(), IdOrder::Auto),
    ]
}

/// Loads the file as the case says, beside it, and compares the peak with the budget.
fn load_within_budget((keys, graph_kind, memory, spread, order): Case, input: &Path, num_edges: u64) {
    let path = input.with_file_name("graph.anden");
    let mut options = LoadOptions { memory, spread, order, ..LoadOptions::default() };
    options.graph.keys = keys;
    options.graph.graph_kind = graph_kind;
    let pool = Pool::new(2).unwrap();
    let inputs = [InputPath::File(input.to_owned())];
    let (db, report) = Engine::load(&path, &inputs, &options, &pool, &Silent).unwrap();
    println!(
        "{keys:?}, {graph_kind:?}, {order:?}: {} bytes of input, budget {memory:?}, resident peak {}, {:.2} s",
        4 * BUDGET,
        report.peak_bytes,
        report.seconds
    );
    assert!(
        report.peak_bytes > 0 && memory.is_none_or(|budget| report.peak_bytes <= budget),
        "{} bytes",
        report.peak_bytes
    );
    assert!(report.vertices == NUM_KEYS && report.edges > num_edges * 99 / 100, "{report:?}");
    db.verify(&pool).unwrap();
    drop(db);
    std::fs::remove_dir_all(&path).unwrap();
}

#[test]
#[cfg_attr(anden_asan, ignore = "a sanitizer takes memory of its own")]
fn load_of_large_input_stays_within_budget() {
    // A child process: the case, the input and the number of its edges.
    if let Ok(child) = std::env::var(CHILD) {
        let mut words = child.splitn(3, ' ');
        let mut number = || words.next().unwrap().parse::<u64>().unwrap();
        let (case, num_edges) = (number(), number());
        return load_within_budget(cases()[case as usize], Path::new(words.next().unwrap()), num_edges);
    }
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("edges.txt");
    let num_edges = write_edges(&input, 4 * BUDGET);
    for case in 0..cases().len() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "load_of_large_input_stays_within_budget", "--nocapture"]);
        let output = child.env(CHILD, format!("{case} {num_edges} {}", input.display())).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        println!("{text}");
        assert!(output.status.success() && text.contains("1 passed"), "case {case}: {}", output.status);
    }
}
