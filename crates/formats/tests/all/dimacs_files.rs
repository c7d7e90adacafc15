//! DIMACS: the header is compared with the body.

use anden_formats::{Format, InputPath, Source, SourceOptions};
use anden_graph::GraphKind;

use crate::reading;
use crate::reading::{Folder, assert_refused, read, read_files, read_weighted};

#[test]
fn arcs_and_vertices_keep_their_numbers() {
    let folder = Folder::new();
    let text = "c road\nc\np sp 4 3\nc more\n\na 1 2 803\na 2 1 803\n  a 4   1 7 x\r\n";
    let read = read_weighted::<u32>(&folder, "road.gr", text).unwrap();
    assert_eq!(read.pairs(), [(1, 2), (2, 1), (4, 1)]);
    assert_eq!(read.weights, [803, 803, 7]);
    assert_eq!(read.vertices, ["1", "2", "3", "4"]);
    let options = SourceOptions { format: Format::of_name("dimacs"), ..SourceOptions::default() };
    let named = read_files::<u64, u32>(&[&folder.file("road.txt", text)], &options).unwrap();
    assert_eq!((named.edges, named.weights), (read.edges, vec![]));
    assert_eq!(reading::read(&folder, "empty.gr", "").unwrap().edges, []);
    assert_eq!(reading::read(&folder, "none.gr", "p sp 0 0\n").unwrap().vertices, [""; 0]);
}

#[test]
fn a_header_that_lies_is_refused() {
    let folder = Folder::new();
    let refused = |text: &str, expected: &str| assert_refused(read(&folder, "bad.gr", text), expected);
    let lines = "c comment\n".repeat(30);
    let problem = "expected the problem line 'p sp vertices arcs'";
    let problems = format!("{problem}, 'p edge vertices edges' or 'p tw vertices edges',");
    refused(&format!("{lines}p sp 2 2\na 1 2 1\n"), "bad.gr: the header promises 2 arcs, found 1");
    refused(&format!("{lines}p sp 2 0\na 1 2 1\n"), "bad.gr: the header promises 0 arcs, found 1");
    refused(&format!("{lines}a 1 2 1\n"), &format!("bad.gr:31: {problems} or a comment 'c', found 'a 1 2 1'"));
    refused(&lines, &format!("bad.gr: {problem}, found none"));
    refused(
        &format!("{lines}p sp 2 1\na 1 3 1\n"),
        "bad.gr:32: expected a target from 1 to 2, as the header says, found 3",
    );
    refused("p sp 2 1\na 0 1 1\n", "bad.gr:2: expected a source from 1 to 2, as the header says, found 0");
    refused(
        "p sp 9999999999 1\n",
        "bad.gr:1: expected two counts, at most 4294967294 vertices, found 'p sp 9999999999 1'",
    );
    refused("p sp 2 -1\n", "bad.gr:1: expected two counts, at most 4294967294 vertices, found 'p sp 2 -1'");
    refused(
        "p sp 4000000000 1\na 1 2 3\n",
        "bad.gr: the header promises 4000000000 vertices, which a text of 26 bytes does not bear out",
    );
    let arc = "expected an arc 'a source target weight' or a comment 'c'";
    refused("p sp 2 1\np sp 2 1\n", &format!("bad.gr:2: {arc}, found 'p sp 2 1'"));
    refused("p sp 2 1\n1 2 3\n", &format!("bad.gr:2: {arc}, found '1 2 3'"));
    refused("p xyz 2 1\n", &format!("bad.gr:1: {problems} or a comment 'c', found 'p xyz 2 1'"));
    let message = read(&folder, "bad.gr", "p max 2 1\n").unwrap_err();
    assert!(message.contains("this is a DIMACS file of a problem that is not read"), "{message}");
    let weight =
        "expected a weight of type u32, a whole number from 0 to 4294967295 (others with another --weight-type)";
    let result = read_weighted::<u32>(&folder, "bad.gr", "p sp 2 1\na 1 2\n");
    assert_refused(result, &format!("bad.gr:2: {weight}, found the end of the line"));
}

#[test]
fn graphs_of_coloring_and_tree_width_are_undirected() {
    let folder = Folder::new();
    let coloring = "c x\np col 4 9\nn 1 7\ne 1 2\nc between\n  e 2   4 \r\ne 4 2\n";
    let width = "c x\np tw 4 2\n1 2\nc between\n 2\t4\n";
    for (name, text, num_edges) in [("a.col", coloring, 3), ("a.gr", width, 2), ("a.txt", coloring, 3)] {
        let found = read(&folder, name, text).unwrap();
        assert_eq!((&found.pairs()[..2], found.edges.len()), (&[(1, 2), (2, 4)][..], num_edges), "{name}");
        assert_eq!(found.vertices, ["1", "2", "3", "4"], "{name}");
        let path = InputPath::File(folder.file(name, text));
        let facts = Source::open(&[path], SourceOptions::default()).unwrap().facts().clone();
        assert_eq!((facts.graph_kind, facts.has_weights), (Some(GraphKind::Undirected), Some(false)), "{name}");
    }
    assert_eq!(reading::read_strings(&folder, "s.col", coloring).unwrap().edges[1], ("2".into(), "4".into()));
    let refused = |text: &str, expected: &str| assert_refused(read(&folder, "bad.col", text), expected);
    refused("p edge 2 1\ne 1 3\n", "bad.col:2: expected a target from 1 to 2, as the header says, found 3");
    refused("p edge 2 1\n1 2\n", "bad.col:2: expected an edge 'e source target' or a comment 'c', found '1 2'");
    refused("p tw 2 2\n1 2\n", "bad.col: the header promises 2 edges, found 1");
    refused("p tw 2 1\ne 1 2\n", "found 'e'");
    let late = format!("{}p tw 2 1\n1 2\n", "c a long comment\n".repeat(100_000));
    refused(&late, "expected the problem line in the first lines, because it says the direction, found 'p tw 2 1'");
}
