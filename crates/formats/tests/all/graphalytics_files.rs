//! Graphalytics: three files of one graph.

use anden_formats::{InputPath, Source, SourceOptions};
use anden_graph::GraphKind;

use crate::reading::{Folder, U32, assert_refused, read_files};

const PROPERTIES: &str = "# Properties\ngraph.tiny.vertex-file = tiny.v\ngraph.tiny.edge-file = tiny.e\n\
    graph.tiny.meta.vertices = 4\ngraph.tiny.meta.edges = 3\n\ngraph.tiny.directed = false\n\
    graph.tiny.edge-properties.names = weight\ngraph.tiny.edge-properties.types = real\n\
    graph.tiny.sssp.weight-property = weight\n";

fn tiny(properties: &str) -> Folder {
    let folder = Folder::new();
    folder.file("tiny.v", "1\n2\n3\n9");
    folder.file("tiny.e", "1 2 0.5\n2 3 1.5\n1 3 2");
    folder.file("tiny.properties", properties);
    folder
}

#[test]
fn any_of_the_files_names_the_graph() {
    let folder = tiny(PROPERTIES);
    for name in ["tiny.v", "tiny.e", "tiny.properties", "tiny"] {
        let path = folder.path(name);
        let source = Source::open(&[InputPath::File(path.clone())], SourceOptions::default()).unwrap();
        let facts = source.facts();
        assert_eq!((facts.graph_kind, facts.has_weights), (Some(GraphKind::Undirected), Some(true)), "{name}");
        assert_eq!((facts.num_edges, facts.input_bytes), (Some(3), Some(28)), "{name}");
        let options = SourceOptions { weights: Some(anden_graph::WeightType::F64), ..SourceOptions::default() };
        let read = read_files::<u64, f64>(&[&path], &options).unwrap();
        assert_eq!(read.pairs(), [(1, 2), (2, 3), (1, 3)]);
        assert_eq!(read.weights, [0.5, 1.5, 2.0]);
        assert_eq!(read.vertices, ["1", "2", "3", "9"]);
    }
    let all = [folder.path("tiny.v"), folder.path("tiny.e"), folder.path("tiny.properties")];
    let read = read_files::<u64, u32>(&[&all[0], &all[1], &all[2]], &SourceOptions::default()).unwrap();
    assert_eq!((read.edges.len(), read.vertices.len()), (3, 4));
}

#[test]
fn edges_alone_are_a_graph() {
    let folder = Folder::new();
    let path = folder.file("alone.e", "1 2\n");
    let source = Source::open(&[InputPath::File(path.clone())], SourceOptions::default()).unwrap();
    assert_eq!(source.facts().graph_kind, None);
    assert_eq!(read_files::<u64, u32>(&[&path], &SourceOptions::default()).unwrap().pairs(), [(1, 2)]);
    let path = folder.file("lonely.v", "1\n");
    let result = read_files::<u64, u32>(&[&path], &SourceOptions::default());
    assert!(result.unwrap_err().contains("lonely.v: expected a file of edges"));
}

#[test]
fn properties_that_lie_are_refused() {
    let read = |from: &str, to: &str, options: &SourceOptions| {
        let folder = tiny(&PROPERTIES.replace(from, to));
        read_files::<u64, u32>(&[&folder.path("tiny.properties")], options)
    };
    let options = SourceOptions::default();
    assert_refused(read("edges = 3", "edges = 4", &options), "tiny.e: the properties promise 4 lines, found 3");
    assert_refused(read("vertices = 4", "vertices = 5", &options), "tiny.v: the properties promise 5 lines, found 4");
    assert_refused(
        read("directed = false", "directed = maybe", &options),
        "tiny.properties:7: expected true or false, found 'maybe'",
    );
    assert_refused(
        read("meta.edges = 3", "meta.edges = many", &options),
        "tiny.properties:5: expected a count, found 'many'",
    );
    assert_refused(read("# Prop", "Prop", &options), "tiny.properties:1: expected 'key = value', found 'Properties'");
    let weighted = SourceOptions { weights: U32, ..options };
    let unnamed = read("graph.tiny.edge-properties.names", "graph.tiny.nothing", &weighted);
    assert_refused(
        unnamed,
        "tiny.properties: weights are asked for, but the graph has none: leave out --weights and --weight-type",
    );
}
