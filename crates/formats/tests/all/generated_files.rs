//! Files of generated graphs: their bytes, and cancellation.

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use anden_base::parallel::Pool;
use anden_base::progress::{Progress, Silent};
use anden_formats::{Error, Output, SerializedWeights, SourceOptions, generated, read_gapbs, write_file, write_gapbs};
use anden_graph::generate::{Generator, GridParams, RmatParams, RoadParams, UniformParams};
use anden_graph::{Graph, Weight};

use crate::reading;
use crate::reading::{Folder, read_files};

fn generators() -> Vec<(&'static str, Generator)> {
    let rmat = RmatParams { scale: 12, degree: 40, ..RmatParams::default() };
    let uniform = UniformParams { scale: 13, degree: 17, seed: 5 };
    let grid = GridParams { width: 311, height: 517, seed: 3 };
    vec![
        ("rmat", Generator::rmat(&rmat).unwrap()),
        ("uniform", Generator::uniform(&uniform).unwrap()),
        ("grid", Generator::grid(&grid).unwrap()),
        ("weighted", Generator::rmat(&rmat).unwrap().with_weights(3..=9).unwrap()),
        ("road", Generator::road(&RoadParams { width: 301, height: 277, seed: 2 }).unwrap()),
    ]
}

fn text(generator: &Generator, threads: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut output = Output::new("-".as_ref(), &mut bytes);
    generated::write_edge_list(generator, &Pool::new(threads).unwrap(), &mut output).unwrap();
    drop(output);
    bytes
}

#[test]
fn threads_do_not_change_the_text() {
    for (name, generator) in generators() {
        assert!(text(&generator, 1) == text(&generator, 4), "{name}");
    }
}

#[test]
fn a_seed_gives_the_same_file_for_ever() {
    let grid = Generator::grid(&GridParams { width: 3, height: 2, seed: 1 }).unwrap().with_weights(1..=9).unwrap();
    assert_eq!(text(&grid, 2), b"3 2 5\n3 4 7\n2 1 1\n2 0 5\n1 5 5\n4 0 5\n0 5 2\n");
    let sums: Vec<u64> = generators().iter().map(|(_, generator)| checksum(&text(generator, 2))).collect();
    assert_eq!(
        sums,
        [
            17_051_531_676_374_370_139,
            9_080_989_586_973_114_444,
            4_218_244_912_889_727_721,
            5_972_694_724_937_961_794,
            17_908_307_507_297_739_857
        ]
    );
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    let step = |sum: u64, &byte: &u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[test]
fn text_and_serialized_graph_agree() {
    let folder = Folder::new();
    let pool = Pool::new(2).unwrap();
    for (name, generator) in generators() {
        let path = folder.path("graph.txt");
        write_file::<_, Error>(&path, |output| generated::write_edge_list(&generator, &pool, output)).unwrap();
        let options =
            SourceOptions { weights: generator.has_weights().then_some(u32::TYPE), ..SourceOptions::default() };
        let read = reading::read_once::<u64, u32>(&[&path], &options, 2).unwrap();
        let from_text: HashSet<(u64, u64, u32)> = read
            .pairs()
            .into_iter()
            .enumerate()
            .filter(|(_, (s, t))| s != t)
            .map(|(i, (s, t))| (s.min(t), s.max(t), read.weights.get(i).copied().unwrap_or(1)))
            .collect();
        let path = folder.path(if generator.has_weights() { "graph.wsg" } else { "graph.sg" });
        write_file::<_, Error>(&path, |output| generated::write_gapbs(&generator, &pool, &Silent, output)).unwrap();
        let read = read_files::<u64, u32>(&[&path], &options).unwrap();
        let pairs = read.pairs().into_iter().enumerate();
        let weight = |i: usize| read.weights.get(i).copied().unwrap_or(1);
        let from_graph: HashSet<(u64, u64, u32)> = pairs.map(|(i, (s, t))| (s, t, weight(i))).collect();
        assert!(from_text == from_graph, "{name}: {} and {}", from_text.len(), from_graph.len());
        assert_eq!(from_graph.len(), read.edges.len(), "{name}");
        let graph = read_gapbs(&path, &pool).unwrap();
        assert_eq!(graph.num_edges(), read.edges.len() as u64);
        let again = folder.path("again.wsg");
        let weights = if generator.has_weights() { SerializedWeights::Write } else { SerializedWeights::Leave };
        write_file::<_, Error>(&again, |output| write_gapbs(&graph, weights, output)).unwrap();
        assert!(std::fs::read(&again).unwrap() == std::fs::read(&path).unwrap(), "{name}");
    }
}

/// Cancels at the last of a given number of checks.
struct InterruptAfter(AtomicU64);

impl Progress for InterruptAfter {
    fn is_cancelled(&self) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err()
    }
}

/// Regression: building the lists continued for seconds after a cancellation.
#[test]
fn a_serialized_graph_can_be_stopped_at_any_moment() {
    let pool = Pool::new(2).unwrap();
    let generator = Generator::rmat(&RmatParams { scale: 13, degree: 16, ..RmatParams::default() }).unwrap();
    let generator = generator.with_weights(1..=9).unwrap();
    let mut num_polls = 0;
    loop {
        let mut bytes = Vec::new();
        let mut output = Output::new("graph.wsg".as_ref(), &mut bytes);
        match generated::write_gapbs(&generator, &pool, &InterruptAfter(num_polls.into()), &mut output) {
            Ok(_) => break,
            Err(error) => assert_eq!(error.to_string(), "cancelled"),
        }
        drop(output);
        assert!(bytes.is_empty(), "something was written after {num_polls} questions");
        num_polls += 1;
    }
    // Two passes over the edges, and three over the lists.
    let (num_blocks, num_pieces) = (2 * generator.num_blocks(), 3 * (1 << 13) / 4096);
    assert!(num_polls >= num_blocks + num_pieces, "only {num_polls} questions");
}
