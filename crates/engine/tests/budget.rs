//! An input four times as large as the memory that may be used.
//!
//! Alone in its process, whose resident peak it watches.

use std::io::Write;

use anden_engine::{Database, KeyScheme, LoadOptions, Spread};
use base::parallel::Pool;
use base::progress::Silent;
use graph::Direction;
use graph::formats::InputPath;

const BUDGET: u64 = 32 << 20;
const NUM_KEYS: u64 = 100_000;

/// Writes random edges until they are so many bytes; returns how many there are.
fn write_edges(path: &std::path::Path, num_bytes: u64) -> u64 {
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

#[test]
fn an_input_of_four_times_the_budget_stays_within_it() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("edges.txt");
    let num_edges = write_edges(&input, 4 * BUDGET);
    let pool = Pool::new(2).unwrap();
    let several = Spread { num_snapshots: 3, first_share: Some(0.95), seed: 1 };
    for (keys, direction, memory, spread) in [
        // What one without a budget takes does not count for the next.
        (KeyScheme::Integer, Direction::Undirected, None, Spread::default()),
        (KeyScheme::Dense, Direction::Directed, Some(BUDGET), Spread::default()),
        (KeyScheme::Integer, Direction::Undirected, Some(BUDGET), Spread::default()),
        // Half of what there is for edges is for those that are kept for later snapshots.
        (KeyScheme::Dense, Direction::Directed, Some(3 * BUDGET), several),
    ] {
        let path = dir.path().join("graph.anden");
        let mut options = LoadOptions { memory, spread, ..LoadOptions::default() };
        options.graph.keys = keys;
        options.graph.direction = direction;
        let inputs = [InputPath::File(input.clone())];
        let (db, report) = Database::load(&path, &inputs, &options, &pool, &Silent).unwrap();
        println!(
            "{keys:?}, {direction:?}: {} bytes of input, budget {memory:?}, resident peak {}, {:.2} s",
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
}
