//! Thousands of damaged inputs for every parser: no panic, no hang, and one answer at every block size. The seeds are
//! those of the fuzz targets, which try more.

use std::path::{Path, PathBuf};

use anden_base::parallel::Pool;
use anden_base::random::Random;
use anden_formats::{Format, KeyKind, OnError, SourceOptions, Span, WantedProperties, read_gapbs};
use anden_graph::WeightType;

use crate::reading::{Folder, Read, read_once};

const SEED: u64 = 0x5eed;
const MUTANTS: usize = 2500;

/// Byte strings that parsers look for.
const WORDS: [&[u8]; 18] = [
    b"\n",
    b"\r\n",
    b" ",
    b"\t",
    b",",
    b";",
    b"\"",
    b"\"\"",
    b"#",
    b"0",
    b"-1",
    b"nan",
    b"1e999",
    b"p sp 3 1\n",
    b"a 1 2 3\n",
    b"18446744073709551616",
    b"\xff",
    b"source,target\n",
];

fn mutated(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..1 + random.index(4) {
        let at = random.index(bytes.len() + 1);
        let end = (at + 1 + random.index(12)).min(bytes.len());
        match random.index(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.index(8),
            1 if at < bytes.len() => bytes[at] = random.index(256) as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            5 => drop(bytes.splice(at..at, WORDS[random.index(WORDS.len())].iter().copied())),
            _ => {
                let value: u64 = [0, 1, u64::MAX, 1 << 31, 1 << 32, 1 << 62, 255][random.index(7)];
                let width = end - at;
                bytes[at..end].copy_from_slice(&[value.to_le_bytes(), [0; 8]].concat()[..width]);
            }
        }
    }
    bytes
}

fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Calls `body` with every seed and its mutants. Prints the input after a panic.
fn for_each_mutant(target: &str, mut body: impl FnMut(&[u8])) {
    let seeds = seeds(target);
    assert!(!seeds.is_empty());
    let num_mutants = MUTANTS / seeds.len();
    let mut random = Random::new(SEED);
    for (path, seed) in &seeds {
        for i in 0..num_mutants {
            let bytes = if i == 0 { seed.clone() } else { mutated(seed, &mut random) };
            let story = Story { path, i, bytes: &bytes };
            body(&bytes);
            drop(story);
        }
    }
    println!("{target}: {} inputs from seed {SEED:#x}", num_mutants * seeds.len());
}

/// Prints its input if a panic drops it.
struct Story<'a> {
    path: &'a Path,
    i: usize,
    bytes: &'a [u8],
}

impl Drop for Story<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!(
                "mutant {} of {}, seed {SEED:#x}: {:?}",
                self.i,
                self.path.display(),
                self.bytes.escape_ascii().to_string()
            );
        }
    }
}

fn check_text(extension: &str, target: &str) {
    let folder = Folder::new();
    let is_columnar = matches!(extension, "parquet" | "arrow");
    for_each_mutant(target, |input| {
        let Some((&choice, bytes)) = input.split_first() else { return };
        let path = folder.file(&format!("mutant.{extension}"), bytes);
        let options = SourceOptions {
            weights: (choice & 2 != 0).then_some(WeightType::F64),
            keys: if choice & 1 == 0 { KeyKind::Integer } else { KeyKind::String },
            on_error: if choice & 4 == 0 { OnError::Stop } else { OnError::Skip },
            edge_properties: if choice & 8 == 0 { WantedProperties::None } else { WantedProperties::All },
            vertex_properties: if choice & 8 == 0 { WantedProperties::None } else { WantedProperties::All },
            trim: choice & 16 != 0,
            comment: (choice & 32 != 0).then_some(b'#'),
            empty_ids: choice & 65 == 65,
            ..SourceOptions::default()
        };
        let answer = |threads, block_bytes| {
            let options = SourceOptions { block_bytes, ..options.clone() };
            let read: Result<Read<f64>, _> = match options.keys {
                KeyKind::Integer => read_once::<u64, f64>(&[&path], &options, threads),
                KeyKind::String => read_once::<Span, f64>(&[&path], &options, threads),
            };
            read.map(|read| format!("{read:?}")).map_err(|e| e.to_string())
        };
        let large = answer(1, 1 << 16);
        assert!(large.as_ref().err().is_none_or(|e| e.contains("mutant.")), "{large:?}");
        let small = answer(2, if is_columnar { 4 } else { 256 });
        // The output of a decoder before its failure depends on the size of the reads, and the longest accepted line on
        // the blocks. Then both must fail, perhaps with different errors.
        let depends = |e: &String| e.contains("cannot read") || e.contains("expected lines of at most");
        // If a row group or batch is read in parts, later bytes are not read before the rows of earlier ones, so errors
        // may differ.
        if is_columnar && (large.is_err() || small.is_err()) {
            assert!(large.is_err() && small.is_err(), "{large:?} {small:?}");
        } else if large.as_ref().err().is_some_and(depends) || small.as_ref().err().is_some_and(depends) {
            assert!(small.is_err(), "{large:?}");
        } else {
            assert_eq!(large, small);
        }
    });
}

#[test]
fn edge_lists() {
    check_text("txt", "edge_list");
}

#[test]
fn csv() {
    check_text("csv", "csv");
}

#[test]
fn dimacs() {
    check_text("gr", "dimacs");
}

#[test]
fn matrix_market() {
    check_text("mtx", "matrix_market");
}

#[test]
fn metis() {
    check_text("graph", "metis");
}

#[test]
fn graphml() {
    check_text("graphml", "graphml");
}

#[test]
fn gexf() {
    check_text("gexf", "gexf");
}

#[test]
fn gml() {
    check_text("gml", "gml");
}

#[test]
fn pajek() {
    check_text("net", "pajek");
}

#[test]
fn node_link() {
    check_text("json", "node_link");
}

#[test]
fn arrow() {
    check_text("arrow", "arrow");
}

#[test]
fn parquet() {
    check_text("parquet", "parquet");
}

#[test]
fn compressed() {
    check_text("any", "compressed");
}

#[test]
fn serialized_graphs() {
    let folder = Folder::new();
    let (pool, mut num_read) = (Pool::new(1).unwrap(), 0);
    for_each_mutant("serialized", |bytes| {
        let path = folder.file("mutant.wsg", bytes);
        let edges = read_once::<u64, u32>(&[&path], &SourceOptions::default(), 1);
        let graph = read_gapbs(&path, &pool);
        if let (Ok(edges), Ok(graph)) = (edges, graph) {
            assert_eq!(edges.edges.len() as u64, anden_graph::Graph::num_edges(&graph));
            num_read += 1;
        }
    });
    assert!(num_read > 0);
}

#[test]
fn properties() {
    let folder = Folder::new();
    folder.file("mutant.e", "1 2 0.5\n2 3 1\n");
    let mut num_read = 0;
    for_each_mutant("graphalytics", |bytes| {
        let path = folder.file("mutant.properties", bytes);
        if let Ok(read) = read_once::<u64, u32>(&[&path], &SourceOptions::default(), 1) {
            assert_eq!(read.pairs(), [(1, 2), (2, 3)]);
            num_read += 1;
        }
    });
    assert!(num_read > 0);
}

#[test]
fn bvgraph() {
    let folder = Folder::new();
    let mut num_read = 0;
    for_each_mutant("bvgraph", |input| {
        let Some(end) = input.iter().position(|&byte| byte == 0) else { return };
        folder.file("mutant.properties", &input[..end]);
        let path = folder.file("mutant.graph", &input[end + 1..]);
        let answer = |threads, block_bytes| {
            let options = SourceOptions { format: Format::of_name("bvgraph"), block_bytes, ..SourceOptions::default() };
            read_once::<u64, u32>(&[&path], &options, threads).map_err(|e| e.to_string())
        };
        let large = answer(1, 1 << 16);
        num_read += usize::from(large.is_ok());
        assert_eq!(format!("{large:?}"), format!("{:?}", answer(2, 256)));
    });
    assert!(num_read > 0);
}
