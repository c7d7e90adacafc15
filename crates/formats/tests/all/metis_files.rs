//! METIS: a line for each vertex, and each edge on two lines.

use std::sync::atomic::{AtomicUsize, Ordering};

use anden_base::parallel::Pool;
use anden_formats::{EdgeBlock, Error, Format, InputPath, KeyKind, Source, SourceOptions, Span};
use anden_graph::GraphKind;

use crate::reading::{Folder, assert_refused, read, read_files, read_strings, read_weighted};

/// The graph of the manual's figure 2.
const MANUAL: &str = "\
% a comment
7 11
5 3 2
1 3 4
5 4 2 1
2 3 6 7
1 3 6
5 4 7
6 4
";

const EDGES: [(u64, u64); 11] =
    [(1, 5), (1, 3), (1, 2), (2, 3), (2, 4), (3, 5), (3, 4), (4, 6), (4, 7), (5, 6), (6, 7)];

#[test]
fn each_edge_is_given_once() {
    let folder = Folder::new();
    let found = read(&folder, "a.graph", MANUAL).unwrap();
    assert_eq!(found.pairs(), EDGES);
    assert_eq!(found.vertices, ["1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(read_strings(&folder, "b.metis", MANUAL).unwrap().edges[0], ("1".into(), "5".into()));
    let source = Source::open(&[InputPath::File(folder.path("a.graph"))], SourceOptions::default()).unwrap();
    assert_eq!((source.facts().graph_kind, source.facts().has_weights), (Some(GraphKind::Undirected), Some(false)));
    let lone = read(&folder, "c.graph", "4 1\n\n3\n% here\n2\n\n\n").unwrap();
    assert_eq!((lone.pairs(), lone.vertices.len()), (vec![(2, 3)], 4));
    assert_eq!(read(&folder, "d.graph", "0 0\n").unwrap().vertices.len(), 0);
}

#[test]
fn fmt_selects_weights_and_skips_vertex_values() {
    let folder = Folder::new();
    let weighted = "3 2 1\n2 10 3 20\n1 10\n1 20\n";
    let found = read_weighted::<u32>(&folder, "a.graph", weighted).unwrap();
    assert_eq!((found.pairs(), found.weights), (vec![(1, 2), (1, 3)], vec![10, 20]));
    assert_eq!(read(&folder, "a.graph", weighted).unwrap().pairs(), [(1, 2), (1, 3)]);
    let all = "3 2 111 2\n7 8 9 2 10 3 20\n7 8 9 1 10\n7 8 9 1 20\n";
    assert_eq!(read_weighted::<f64>(&folder, "b.graph", all).unwrap().weights, [10.0, 20.0]);
    let vertices = "3 2 10\n1 2 3\n2 1\n3 1\n";
    assert_eq!(read(&folder, "c.graph", vertices).unwrap().pairs(), [(1, 2), (1, 3)]);
    let none = read_weighted::<u32>(&folder, "c.graph", vertices);
    assert_refused(
        none,
        "c.graph: weights are asked for, but the graph has none: leave out --weights and --weight-type",
    );
}

#[test]
fn many_lines_in_many_blocks() {
    let folder = Folder::new();
    let n = 2000;
    let mut text = format!("{n} {}\n", n - 1);
    for v in 1..=n {
        if v % 100 == 0 {
            text.push_str("% % a comment with 1 2 3\n");
        }
        let neighbors: Vec<String> =
            [v - 1, v + 1].iter().filter(|u| (1..=n).contains(*u)).map(u64::to_string).collect();
        text.push_str(&format!("{}\n", neighbors.join(" ")));
    }
    let expected: Vec<_> = (1..n).map(|v| (v, v + 1)).collect();
    assert_eq!(read(&folder, "path.graph", &text).unwrap().pairs(), expected);
    let path = folder.file("path.txt", text);
    let options = SourceOptions { format: Format::of_name("metis"), keys: KeyKind::String, ..SourceOptions::default() };
    assert_eq!(read_files::<Span, u32>(&[&path], &options).unwrap().edges.len() as u64, n - 1);
}

/// Regression: the whole line of a hub, with all of its edges, was held in memory at any budget.
#[test]
fn lists_longer_than_a_block_come_in_pieces() {
    let folder = Folder::new();
    let n = 900;
    let expected: Vec<_> = (2..=n).map(|v| (1, v)).collect();
    for (fmt, before, has_weights) in
        [("0", "", false), ("1", "", true), ("10 3", "7 8  9 ", false), ("111 1", "5 6 ", true)]
    {
        let entry = |v: u64, weight: u64| if has_weights { format!("{v}\t{weight} ") } else { format!("{v} ") };
        let hub: String = (2..=n).map(|v| entry(v, v * v)).collect();
        let leaves: String = (2..=n).map(|v| format!("{before}{}\n", entry(1, v * v))).collect();
        let (comment, blanks) = ("% no 1 2 3 ".repeat(60), " ".repeat(150));
        let text =
            format!("{n} {} {fmt}\n{comment}\n{blanks}{before}{blanks}{hub}{blanks}\n{comment}\n{leaves}", n - 1);
        let path = folder.file("hub.graph", &text);
        assert_eq!(read(&folder, "hub.graph", &text).unwrap().pairs(), expected, "{fmt}");
        if has_weights {
            let found = read_weighted::<u32>(&folder, "hub.graph", &text).unwrap();
            assert_eq!((found.pairs(), found.weights), (expected.clone(), (2..=n as u32).map(|v| v * v).collect()));
        }
        for block_bytes in 70..140 {
            let options = SourceOptions { block_bytes, ..SourceOptions::default() };
            let mut source = Source::open(&[InputPath::File(path.clone())], options).unwrap();
            let most = AtomicUsize::new(0);
            let summary = source.for_each_block(&Pool::new(2).unwrap(), |_, block: EdgeBlock<u64, u32>| {
                most.fetch_max(block.edges.len(), Ordering::Relaxed);
                Ok::<(), Error>(())
            });
            assert_eq!(summary.unwrap().num_edges, n - 1);
            assert!(most.into_inner() <= block_bytes / 2, "{fmt} {block_bytes}");
        }
        // The last neighbor of the hub is wrong. The error is that of a whole line.
        let wrong = text.replacen(&hub, &format!("{hub}x"), 1);
        let expected = "hub.graph:3: expected a neighbor from 1 to 900, as the header says, found 'x'";
        assert_refused(read(&folder, "hub.graph", wrong), expected);
        let other = text.replacen(&hub, &format!("{hub}{}", entry(3, 1)), 1);
        assert_refused(read(&folder, "hub.graph", other), "found 900");
    }
}

#[test]
fn contradiction_of_header_is_refused() {
    let folder = Folder::new();
    let refused = |text: &str, expected: &str| assert_refused(read(&folder, "a.graph", text), expected);
    refused("2 1\n2\n\n", "a.graph: the graph is undirected, but not every edge stands in the lists of both its ends");
    refused("3 2\n2\n3\n\n", "lists of both its ends");
    refused("2 2\n2\n1\n", "a.graph: the header promises 2 edges, found 1");
    refused("3 1\n2\n1\n", "a.graph: the header promises 3 vertices, found the lists of 2");
    refused("2 1\n2\n1\n1\n", "a.graph:4: expected the lists of 2 vertices, found another '1'");
    refused("2 1\n3\n1\n", "a.graph:2: expected a neighbor from 1 to 2, as the header says, found '3'");
    refused("2 1\n0\n1\n", "expected a neighbor from 1 to 2, as the header says, found '0'");
    refused("2 1\n1\n1\n", "a.graph:2: expected neighbors other than the vertex itself, found 1 in its own list");
    refused("2 1 1\n2\n1\n", "expected a weight after each neighbor, as fmt says, found the end of the line");
    refused("2 1 10\n\n1\n", "expected a size or a weight of the vertex, as fmt says, found the end of the line");
    refused("2 1 7\n2\n1\n", "a.graph:1: expected a fmt of up to three digits 0 or 1, found '7'");
    refused("", "a.graph:1: expected the header 'vertices edges [fmt [ncon]]', found ''");
    refused("4000000000 0\n", "found the lists of 0");
    let differ = read_weighted::<u32>(&folder, "b.graph", "2 1 1\n2 10\n1 11\n");
    assert_refused(differ, "lists of both its ends");
}
