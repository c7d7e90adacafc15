//! Several files of vertices and edges, each with its own label or type, columns and key spaces.

use anden_formats::{EdgeInput, InputPath, KeyKind, SourceOptions, Span, VertexInput, WantedProperties};
use anden_graph::WeightType;
use anden_graph::property::PropertyColumn;

use crate::reading::{Folder, read_files};

fn edges(path: std::path::PathBuf, edge_type: &str, spaces: Option<(&str, &str)>) -> EdgeInput {
    let (source_space, target_space) = spaces.map(|(source, target)| (source.to_owned(), target.to_owned())).unzip();
    EdgeInput { path: InputPath::File(path), edge_type: edge_type.to_owned(), source_space, target_space }
}

fn vertices(path: std::path::PathBuf, labels: Option<&str>, space: Option<&str>) -> VertexInput {
    VertexInput { path: path.into(), labels: labels.map(str::to_owned), space: space.map(str::to_owned) }
}

fn options(vertices: Vec<VertexInput>, edges: Vec<EdgeInput>) -> SourceOptions {
    let (edge_properties, vertex_properties) = (WantedProperties::All, WantedProperties::All);
    SourceOptions {
        keys: KeyKind::String,
        vertices,
        edges,
        edge_properties,
        vertex_properties,
        ..SourceOptions::default()
    }
}

/// The values of each row, nulls as a dash.
fn rows(columns: &[PropertyColumn]) -> Vec<String> {
    let shown = |column: &PropertyColumn, row| match column.get(row) {
        value if value.is_null() => "-".to_owned(),
        value => value.to_string(),
    };
    let num_rows = columns.first().map_or(0, PropertyColumn::len);
    (0..num_rows).map(|row| columns.iter().map(|column| shown(column, row)).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn files_keep_their_own_columns_and_spaces() {
    let folder = Folder::new();
    let people = folder.file("people.csv", "id,name\n1,Ann\n2,Bob\n");
    let posts = folder.file("posts.csv", "id\n1\n");
    let knows = folder.file("knows.csv", "source,target,since\n1,2,1999\n");
    let likes = folder.file("likes.txt", "1 1\n2 1\n");
    let options = options(
        vec![vertices(people, Some("Person;Admin"), Some("person")), vertices(posts, Some("Post"), Some("post"))],
        vec![edges(knows, "KNOWS", Some(("person", "person"))), edges(likes, "LIKES", Some(("person", "post")))],
    );
    let read = read_files::<Span, u32>(&[], &options).unwrap();
    let expected = [("person:1", "person:2"), ("person:1", "post:1"), ("person:2", "post:1")];
    assert_eq!(read.edges, expected.map(|(source, target)| (source.to_owned(), target.to_owned())));
    assert_eq!(rows(&read.properties), ["KNOWS 1999", "LIKES -", "LIKES -"]);
    assert_eq!(read.vertices, ["person:1", "person:2", "post:1"]);
    assert_eq!(rows(&read.vertex_properties), ["Person;Admin Ann", "Person;Admin Bob", "Post -"]);
}

#[test]
fn files_without_type_have_none() {
    let folder = Folder::new();
    let (plain, typed) = (folder.file("plain.txt", "a b\n"), folder.file("typed.csv", "source,target,type\nb,c,OWN\n"));
    let knows = folder.file("knows.txt", "c d\n");
    let options = options(Vec::new(), vec![edges(knows, "KNOWS", None)]);
    let read = read_files::<Span, u32>(&[&plain, &typed], &options).unwrap();
    // A column with the name `type` gives the types of its rows.
    assert_eq!(rows(&read.properties), ["-", "OWN", "KNOWS"]);
    // A numeric `type` column is text if other files have types.
    let numbers = folder.file("numbers.csv", "source,target,type\nb,c,7\n");
    assert_eq!(rows(&read_files::<Span, u32>(&[&numbers], &options).unwrap().properties), ["7", "KNOWS"]);
}

#[test]
fn types_and_spaces_that_do_not_fit_are_refused() {
    let folder = Folder::new();
    let knows = folder.file("knows.csv", "source,target,type\n1,2,OWN\n");
    let refusal = |options: &SourceOptions| read_files::<Span, u32>(&[], options).unwrap_err();
    let twice = options(Vec::new(), vec![edges(knows.clone(), "KNOWS", None)]);
    let what = refusal(&twice);
    assert!(what.contains("knows.csv: column type: --edges TEXT=FILE gives all rows their type"), "{what}");
    let plain = folder.file("plain.txt", "1 2\n");
    let spaces = |source| options(Vec::new(), vec![edges(plain.clone(), "KNOWS", Some((source, "b")))]);
    for (space, shown) in [("", "\"\""), ("a:b", "\"a:b\"")] {
        let what = refusal(&spaces(space));
        assert!(what.contains(&format!("a key space is a name without ':', not {shown}")), "{what}");
    }
    let numbers = SourceOptions { keys: KeyKind::Integer, ..spaces("a") };
    let what = read_files::<u64, u32>(&[], &numbers).unwrap_err();
    assert!(what.contains("key spaces need --ids string"), "{what}");
    let what = refusal(&options(Vec::new(), vec![edges(plain.clone(), "", None)]));
    assert!(what.contains("an edge type has at least one character"), "{what}");
    let what = refusal(&options(vec![vertices(plain.clone(), Some("A;"), None)], Vec::new()));
    assert!(what.contains("a label has at least one character"), "{what}");
    // The longest key with its space is one byte too long.
    let long = folder.file("long.txt", format!("{} b\n", "k".repeat(65_534)));
    let too_long = options(Vec::new(), vec![edges(long, "KNOWS", Some(("a", "b")))]);
    let what = read_once_large(&too_long);
    assert!(what.contains("with their space"), "{what}");
    // Weights are read beside types.
    let weighted = folder.file("weighted.txt", "1 2 9\n");
    let with = SourceOptions {
        weights: Some(WeightType::U32),
        ..options(Vec::new(), vec![edges(weighted, "KNOWS", Some(("a", "b")))])
    };
    let read = read_files::<Span, u32>(&[], &with).unwrap();
    assert_eq!((read.weights, rows(&read.properties)), (vec![9], vec!["KNOWS".to_owned()]));
}

/// The error of inputs with lines longer than small blocks.
fn read_once_large(options: &SourceOptions) -> String {
    crate::reading::read_once::<Span, u32>(&[], options, 2).map_err(|error| error.to_string()).unwrap_err()
}
