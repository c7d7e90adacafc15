//! The serialized graphs of the GAP benchmark suite, and inconsistent ones.

use anden_base::parallel::Pool;
use anden_formats::{InputPath, SerializedGraph, Source, SourceOptions, Span, read_gapbs};
use anden_graph::{Direction, Graph, GraphKind, WeightedEdges, Weights};

use crate::reading::{Folder, U32, read_files};

/// The bytes of a serialized graph from its parts.
fn serialized(directed: u8, num_arcs: i64, num_vertices: i64, directions: &[(&[i64], &[i32])]) -> Vec<u8> {
    let mut bytes = vec![directed];
    bytes.extend(num_arcs.to_le_bytes());
    bytes.extend(num_vertices.to_le_bytes());
    for (offsets, neighbors) in directions {
        bytes.extend(offsets.iter().flat_map(|o| o.to_le_bytes()));
        bytes.extend(neighbors.iter().flat_map(|n| n.to_le_bytes()));
    }
    bytes
}

/// A triangle 0, 1, 2 with a tail 3 and an isolated vertex 4.
fn undirected() -> Vec<u8> {
    serialized(0, 8, 5, &[(&[0, 2, 5, 7, 8, 8], &[1, 2, 0, 2, 3, 0, 1, 1])])
}

fn directed_weighted() -> Vec<u8> {
    let out_adjacency: (&[i64], &[i32]) = (&[0, 2, 2, 3], &[1, 10, 2, 20, 2, 5]);
    let in_adjacency: (&[i64], &[i32]) = (&[0, 0, 1, 3], &[0, 10, 0, 20, 2, 5]);
    serialized(1, 3, 3, &[out_adjacency, in_adjacency])
}

#[test]
fn edges_come_once() {
    let folder = Folder::new();
    let path = folder.file("a.sg", undirected());
    let read = read_files::<u64, u32>(&[&path], &SourceOptions::default()).unwrap();
    assert_eq!(read.pairs(), [(0, 1), (0, 2), (1, 2), (1, 3)]);
    assert_eq!(read.vertices, [""; 0]);
    let source = Source::open(&[InputPath::File(path.clone())], SourceOptions::default()).unwrap();
    let facts = source.facts();
    assert_eq!((facts.graph_kind, facts.has_weights), (Some(GraphKind::Undirected), Some(false)));
    assert_eq!((facts.num_vertices, facts.num_edges), (Some(5), Some(8)));
    assert_eq!(source.serialized().map(SerializedGraph::num_arcs), Some(8));

    let path = folder.file("a.wsg", directed_weighted());
    let options = SourceOptions { weights: U32, ..SourceOptions::default() };
    let read = read_files::<u64, u32>(&[&path], &options).unwrap();
    assert_eq!((read.pairs(), read.weights), (vec![(0, 1), (0, 2), (2, 2)], vec![10, 20, 5]));
}

#[test]
fn beside_other_inputs_every_vertex_is_named() {
    let folder = Folder::new();
    let (graph, text) = (folder.file("a.sg", undirected()), folder.file("b.txt", "7 8\n"));
    let read = read_files::<u64, u32>(&[&graph, &text], &SourceOptions::default()).unwrap();
    assert_eq!(read.vertices, ["0", "1", "2", "3", "4"]);
    assert_eq!(read.edges.len(), 5);
    let options = SourceOptions { keys: anden_formats::KeyKind::String, ..SourceOptions::default() };
    let read = read_files::<Span, u32>(&[&graph], &options).unwrap();
    assert_eq!((read.pairs(), read.vertices.len()), (vec![(0, 1), (0, 2), (1, 2), (1, 3)], 5));
}

#[test]
fn lists_are_read_in_pieces() {
    let folder = Folder::new();
    let graph = SerializedGraph::open(&folder.file("a.wsg", directed_weighted())).unwrap();
    assert_eq!((graph.graph_kind(), graph.is_weighted()), (GraphKind::Directed, true));
    assert_eq!((graph.num_vertices(), graph.num_arcs(), graph.num_bytes()), (3, 3, directed_weighted().len() as u64));
    let mut offsets = [9; 2];
    graph.read_offsets(Direction::In, 2, &mut offsets).unwrap();
    assert_eq!(offsets, [1, 3]);
    let (mut targets, mut weights) = ([9; 2], [0.0_f32; 2]);
    graph.read_weighted(Direction::In, 1, &mut targets, &mut weights).unwrap();
    assert_eq!((targets, weights), ([0, 2], [20.0, 5.0]));
    graph.read_neighbors(Direction::Out, 0, &mut targets).unwrap();
    assert_eq!(targets, [1, 2]);
    graph.read_neighbors(Direction::Out, 3, &mut []).unwrap();
}

#[test]
fn a_csr_is_read_whole() {
    let folder = Folder::new();
    let pool = Pool::new(2).unwrap();
    let graph = read_gapbs(&folder.file("a.sg", undirected()), &pool).unwrap();
    assert_eq!((graph.num_edges(), graph.vertex_bound(), graph.degree(Direction::Out, 1)), (4, 5, 3));
    let graph = read_gapbs(&folder.file("a.wsg", directed_weighted()), &pool).unwrap();
    assert_eq!(
        (graph.graph_kind(), graph.degree(Direction::In, 2), graph.weight_type()),
        (GraphKind::Directed, 2, U32)
    );
    let Some(Weights::U32(weights)) = graph.in_lists().and_then(|lists| lists.weights()) else { panic!("no weights") };
    assert_eq!(&weights[..], [10, 20, 5]);
    for bytes in [serialized(0, 0, 0, &[(&[0], &[])]), serialized(1, 0, 0, &[(&[0], &[]), (&[0], &[])])] {
        let path = folder.file("none.sg", bytes);
        assert_eq!(read_gapbs(&path, &pool).unwrap().vertex_bound(), 0);
        assert_eq!(read_files::<u64, u32>(&[&path], &SourceOptions::default()).unwrap().edges, []);
    }
}

#[test]
fn a_header_that_lies_is_refused() {
    let folder = Folder::new();
    let refused = |bytes: &[u8], expected: &str| {
        let path = folder.file("bad.sg", bytes);
        let error = SerializedGraph::open(&path).unwrap_err().to_string();
        assert!(error.contains("bad.sg: ") && error.contains(expected), "{error}");
        assert!(read_files::<u64, u32>(&[&path], &SourceOptions::default()).is_err());
        assert!(read_gapbs(&path, &Pool::new(1).unwrap()).is_err());
    };
    let good = undirected();
    refused(&[], "expected a header of 17 bytes, found 0 bytes in all");
    refused(&good[..16], "expected a header of 17 bytes, found 16");
    refused(
        &good[..good.len() - 1],
        "the header promises 5 vertices and 8 arcs, which take 97 bytes (129 with weights)",
    );
    refused(&[&good[..], &[0]].concat(), "found 98 bytes: the file is cut or not a serialized graph");
    refused(&[&[2], &good[1..]].concat(), "byte 0: expected 0 (undirected) or 1 (directed), found 2");
    refused(&[&[1], &good[1..]].concat(), "which take 177 bytes");
    refused(&serialized(0, -1, 5, &[]), "expected a number of arcs, found -1");
    refused(&serialized(0, 1, i64::MIN, &[]), "expected a number of vertices, found -9223372036854775808");
    refused(&serialized(0, 1, 1 << 40, &[]), "1099511627776 vertices are more than 4294967294");
    refused(&serialized(0, i64::MAX, 5, &[]), "which take more than 2^64 bytes");
    for len in 0..good.len() {
        let path = folder.file("cut.sg", &good[..len]);
        assert!(SerializedGraph::open(&path).is_err(), "{len} bytes");
    }
}

#[test]
fn a_body_that_lies_is_refused() {
    let folder = Folder::new();
    let pool = Pool::new(2).unwrap();
    let refused = |name: &str, bytes: Vec<u8>, expected: &str| {
        let path = folder.file(name, bytes);
        let options =
            SourceOptions { weights: (name == "bad.wsg").then_some(U32).flatten(), ..SourceOptions::default() };
        let error = read_files::<u64, u32>(&[&path], &options).unwrap_err();
        assert!(error.contains(name) && error.contains(expected), "{error}");
    };
    let body = |offsets: &[i64], neighbors: &[i32]| serialized(0, 4, 3, &[(offsets, neighbors)]);
    refused(
        "bad.sg",
        body(&[0, 3, 2, 4], &[1, 2, 0, 0]),
        "damaged at byte 33: expected offsets that ascend from 0 to 4",
    );
    refused("bad.sg", body(&[1, 2, 3, 4], &[1, 2, 0, 0]), "damaged at byte 17: expected offsets that ascend");
    refused("bad.sg", body(&[0, 2, 3, 3], &[1, 2, 0, 0]), "expected offsets that ascend from 0 to 4, found 0 to 3");
    refused("bad.sg", body(&[0, 2, 3, 5], &[1, 2, 0, 0]), "expected offsets that ascend");
    refused("bad.sg", body(&[0, -2, 3, 4], &[1, 2, 0, 0]), "expected offsets that ascend");
    refused(
        "bad.sg",
        body(&[0, 2, 3, 4], &[1, 3, 0, 0]),
        "damaged at byte 53: expected a vertex from 0 to below 3, found 3",
    );
    refused("bad.sg", body(&[0, 2, 3, 4], &[1, -1, 0, 0]), "expected a vertex from 0 to below 3, found -1");
    refused("bad.sg", body(&[0, 2, 3, 4], &[1, 2, 0, 1]), "not every edge stands in the lists of both its ends");
    let weighted = serialized(0, 2, 2, &[(&[0, 1, 2], &[1, -7, 0, -7])]);
    refused(
        "bad.wsg",
        weighted.clone(),
        "expected a weight of type u32, a whole number from 0 to 4294967295 (others with another \
         --weight-type), found -7",
    );
    // The ends of an edge disagree on its weight, which is an error if weights are read.
    let differ = serialized(0, 2, 2, &[(&[0, 1, 2], &[1, 5, 0, 9])]);
    refused("bad.wsg", differ.clone(), "not every edge stands in the lists of both its ends");
    let parallel = serialized(0, 4, 2, &[(&[0, 2, 4], &[1, 5, 1, 9, 0, 9, 0, 5])]);
    let weights = SourceOptions { weights: U32, ..SourceOptions::default() };
    assert_eq!(read_files::<u64, u32>(&[&folder.file("ok.wsg", parallel)], &weights).unwrap().weights, [5, 9]);
    let unread = read_files::<u64, u32>(&[&folder.file("ok.wsg", differ)], &SourceOptions::default()).unwrap();
    assert_eq!(unread.pairs(), [(0, 1)]);
    let options = SourceOptions { weights: Some(anden_graph::WeightType::I64), ..SourceOptions::default() };
    let read = read_files::<u64, i64>(&[&folder.file("ok.wsg", weighted)], &options).unwrap();
    assert_eq!(read.weights, [-7]);
    let unsorted = folder.file("unsorted.sg", body(&[0, 2, 3, 4], &[2, 1, 0, 0]));
    assert!(read_gapbs(&unsorted, &pool).unwrap_err().to_string().contains("the list of vertex 0 does not ascend"));
}

#[test]
fn weights_that_are_not_there_are_missed() {
    let folder = Folder::new();
    let path = folder.file("a.sg", undirected());
    let options = SourceOptions { weights: U32, ..SourceOptions::default() };
    let error = read_files::<u64, u32>(&[&path], &options).unwrap_err();
    assert!(
        error.ends_with("a.sg: weights are asked for, but the graph has none: leave out --weights and --weight-type"),
        "{error}"
    );
    let directed = folder.file("b.wsg", directed_weighted());
    let error = read_files::<u64, u32>(&[&path, &directed], &SourceOptions::default()).unwrap_err();
    assert!(error.ends_with("expected a graph that is undirected, as the inputs before, found directed"), "{error}");
}
