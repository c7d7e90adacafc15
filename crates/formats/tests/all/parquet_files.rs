//! Parquet: written files are read back, and damaged ones are refused.

use anden_base::parallel::Pool;
use anden_formats::{
    Error, Format, InputPath, KeyKind, NoProperties, OnError, Source, SourceOptions, Span, WantedProperties,
    write_file, write_parquet_edges, write_parquet_vertices,
};
use anden_graph::property::PropertyValue;
use anden_graph::{Csr, CsrBuilder, Graph, GraphKind, VertexId, Weight};
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::made::{Made, columns, edges_of};
use crate::reading::{Folder, Read, assert_refused, read_files, read_once};

fn number(vertex: VertexId, text: &mut Vec<u8>) -> Result<(), Error> {
    text.extend((u64::from(vertex) * 1_000_003).to_string().into_bytes());
    Ok(())
}

fn name(vertex: VertexId, text: &mut Vec<u8>) -> Result<(), Error> {
    text.extend(format!("ü {vertex},\n\"").into_bytes());
    Ok(())
}

fn shown(key: fn(VertexId, &mut Vec<u8>) -> Result<(), Error>, vertex: VertexId) -> String {
    let mut text = Vec::new();
    key(vertex, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn write(graph: &Csr, kind: KeyKind, path: &Path, threads: usize, vertices: &Path) {
    let pool = Pool::new(threads).unwrap();
    let key = if kind == KeyKind::Integer { number } else { name };
    let made = Made::new(graph);
    let num = write_file(path, |output| write_parquet_edges(graph, kind, key, &made, &pool, output)).unwrap();
    assert_eq!(num, graph.num_edges());
    let num = write_file(vertices, |output| write_parquet_vertices(graph, kind, key, &made, &pool, output)).unwrap();
    assert_eq!(num, graph.num_vertices() as u64);
}

fn check<W: Weight>(graph_kind: GraphKind, num_vertices: usize, edges: &[(u32, u32, W)]) {
    let mut builder = CsrBuilder::<W>::new(graph_kind, num_vertices).keep_parallel();
    edges.iter().for_each(|&(s, t, w)| builder.edge(s, t, w));
    let graph = builder.build_weighted().unwrap();
    let expected = edges_of::<W>(&graph);
    let folder = Folder::new();
    for kind in [KeyKind::Integer, KeyKind::String] {
        let (path, other) = (folder.path("edges.parquet"), folder.path("other.parquet"));
        let vertices = folder.path("vertices.parquet");
        write(&graph, kind, &path, 2, &vertices);
        write(&graph, kind, &other, 1, &vertices);
        assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(&other).unwrap());
        let options = SourceOptions {
            weights: Some(W::TYPE),
            keys: kind,
            vertices: vec![vertices.into()],
            edge_properties: WantedProperties::All,
            vertex_properties: WantedProperties::All,
            ..SourceOptions::default()
        };
        let (key, read): (fn(_, &mut _) -> _, Read<W>) = match kind {
            KeyKind::Integer => (number, read_files::<u64, W>(&[&path], &options).unwrap()),
            KeyKind::String => (name, read_files::<Span, W>(&[&path], &options).unwrap()),
        };
        let keys: Vec<_> = expected.iter().map(|&(s, t, _, _)| (shown(key, s), shown(key, t))).collect();
        assert_eq!(read.edges, keys);
        assert_eq!(read.weights, expected.iter().map(|edge| edge.2).collect::<Vec<_>>());
        let ids = 0..num_vertices as VertexId;
        assert_eq!(read.vertices, ids.clone().map(|vertex| shown(key, vertex)).collect::<Vec<_>>());
        let made = Made::new(&graph);
        if !expected.is_empty() {
            assert_eq!(read.properties, columns(&made.edges, expected.iter().map(|edge| edge.3)));
        }
        assert_eq!(read.vertex_properties, columns(&made.vertices, ids.map(u64::from)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_graph_comes_back(
        is_directed: bool,
        num_vertices in 1_u32..60,
        ends in prop::collection::vec((any::<u32>(), any::<u32>(), any::<i32>()), 0..400),
    ) {
        let graph_kind = if is_directed { GraphKind::Directed } else { GraphKind::Undirected };
        let ends: Vec<_> = ends.into_iter().map(|(s, t, w)| (s % num_vertices, t % num_vertices, w)).collect();
        let size = num_vertices as usize;
        check::<u32>(graph_kind, size, &ends.iter().map(|&(s, t, w)| (s, t, w as u32)).collect::<Vec<_>>());
        check::<i64>(graph_kind, size, &ends.iter().map(|&(s, t, w)| (s, t, i64::from(w) << 31)).collect::<Vec<_>>());
        check::<f32>(graph_kind, size, &ends.iter().map(|&(s, t, w)| (s, t, w as f32 / 7.0)).collect::<Vec<_>>());
        check::<f64>(graph_kind, size, &ends.iter().map(|&(s, t, w)| (s, t, f64::from(w) / 7.0)).collect::<Vec<_>>());
    }
}

#[test]
fn many_rows_in_many_groups() {
    let num_vertices = 200_000_u32;
    let edges: Vec<_> = (0..700_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) % num_vertices, i % 1000, i)).collect();
    let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, num_vertices as usize).keep_parallel();
    edges.iter().for_each(|&(s, t, w)| builder.edge(s, t, w));
    let graph = builder.build_weighted().unwrap();
    let folder = Folder::new();
    let path = folder.path("a.parquet");
    let pool = Pool::new(3).unwrap();
    write_file(&path, |output| write_parquet_edges(&graph, KeyKind::Integer, number, &NoProperties, &pool, output))
        .unwrap();
    let expected: Vec<_> =
        edges_of::<u32>(&graph).iter().map(|&(s, t, w, _)| (shown(number, s), shown(number, t), w)).collect();
    for (threads, block_bytes) in [(1, 4 << 20), (3, 1 << 18), (3, 1 << 20)] {
        let options = SourceOptions { weights: Some(u32::TYPE), block_bytes, ..SourceOptions::default() };
        let read = read_once::<u64, u32>(&[&path], &options, threads).unwrap();
        let found = read.edges.into_iter().zip(read.weights).map(|((s, t), w)| (s, t, w));
        assert!(found.eq(expected.iter().cloned()), "{threads} threads, blocks of {block_bytes}");
    }
}

/// Files of other programs, made by `make_parquet.py` beside them.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parquet").join(name)
}

#[test]
fn files_of_other_programs() {
    let mut names: Vec<String> = std::fs::read_dir(fixture(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|name| name.ends_with(".parquet"));
    names.sort();
    assert!(names.len() >= 8, "{names:?}");
    let expected = std::fs::read_to_string(fixture("expected.txt")).unwrap();
    for name in names {
        let options = SourceOptions {
            keys: KeyKind::String,
            weights: Some(f64::TYPE),
            edge_properties: WantedProperties::All,
            source_column: Some("from".into()),
            target_column: Some("to".into()),
            weight_column: Some("w".into()),
            ..SourceOptions::default()
        };
        let read = read_files::<Span, f64>(&[&fixture(&name)], &options).unwrap();
        let mut found = String::new();
        for (row, ((from, to), weight)) in read.edges.iter().zip(&read.weights).enumerate() {
            let values = read.properties.iter().map(|column| column.get(row).to_string());
            let line =
                [from.clone(), to.clone(), weight.to_string()].into_iter().chain(values).collect::<Vec<_>>().join("|");
            found.push_str(&line);
            found.push('\n');
        }
        assert_eq!(found, expected, "{name}");
    }
}

fn small(folder: &Folder, kind: KeyKind) -> PathBuf {
    let mut builder = CsrBuilder::<f64>::new(GraphKind::Directed, 4);
    [(0, 1, 0.5), (0, 2, 1.0), (2, 1, -1.0), (3, 3, 2.5)].iter().for_each(|&(s, t, w)| builder.edge(s, t, w));
    let graph = builder.build_weighted().unwrap();
    let path = folder.path("small.parquet");
    write(&graph, kind, &path, 1, &folder.path("vertices.parquet"));
    path
}

#[test]
fn columns_are_found_and_their_types_are_held_to() {
    let folder = Folder::new();
    let path = small(&folder, KeyKind::String);
    let read = |options: SourceOptions| read_files::<Span, f64>(&[&path], &options);
    let strings = SourceOptions { keys: KeyKind::String, ..SourceOptions::default() };
    assert_eq!(read(strings.clone()).unwrap().edges.len(), 4);
    let column = |name: &str| Some(name.to_owned());
    let swapped = SourceOptions { source_column: column("TARGET"), target_column: column("source"), ..strings.clone() };
    assert_eq!(read(swapped).unwrap().edges[0], (shown(name, 1), shown(name, 0)));
    let missing = read(SourceOptions { source_column: column("nowhere"), ..strings.clone() });
    let expected = "small.parquet: cannot find the column 'nowhere' of --source-column: the columns are 'source', ";
    assert!(missing.unwrap_err().contains(expected));
    let twice =
        read(SourceOptions { source_column: column("target"), target_column: column("target"), ..strings.clone() });
    assert_refused(
        twice,
        "cannot take the column 'target' as both source and target: the columns are 'source', 'target', 'weight', \
         'edge boolean', 'edge i64', 'edge u64', 'edge f32', 'edge f64', 'edge date', 'edge timestamp', 'edge string' \
         and 'edge bytes'",
    );
    let dates = read(SourceOptions { source_column: column("edge date"), ..strings.clone() });
    assert_refused(dates, "column 'edge date': expected text or whole numbers as keys of sources, found dates");
    let weights = SourceOptions { weights: Some(f64::TYPE), weight_column: column("edge string"), ..strings.clone() };
    assert_refused(read(weights), "column 'edge string': expected numbers as weights, found text");
    let weights = SourceOptions { weights: Some(f64::TYPE), weight_column: column("edge i64"), ..strings.clone() };
    assert_refused(read(weights), "small.parquet:4: expected a weight of type f64, a number or inf, found null");
    let numbers = read_files::<u64, f64>(&[&path], &SourceOptions::default());
    assert_refused(
        numbers,
        "small.parquet:1: expected a source, an integer from 0 to 18446744073709551615 (any text with --ids \
         string), found 'ü 0,\\n\"'",
    );
}

#[test]
fn nulls_are_faults_of_their_rows() {
    let folder = Folder::new();
    let path = folder.path("many.parquet");
    let mut builder = CsrBuilder::<f64>::new(GraphKind::Directed, 10);
    (0..10).for_each(|v| builder.edge(v, v, 1.0));
    let graph = builder.build_weighted().unwrap();
    write(&graph, KeyKind::Integer, &path, 1, &folder.path("vertices.parquet"));
    let options = SourceOptions {
        weights: Some(u32::TYPE),
        weight_column: Some("edge f64".into()),
        edge_properties: WantedProperties::Named(vec!["edge i64".into()]),
        ..SourceOptions::default()
    };
    let stopped = read_files::<u64, u32>(&[&path], &options);
    assert_refused(
        stopped,
        "many.parquet:4: expected a weight of type u32, a whole number from 0 to 4294967295 (others with another \
         --weight-type), found null",
    );
    let read = read_files::<u64, u32>(&[&path], &SourceOptions { on_error: OnError::Skip, ..options }).unwrap();
    assert_eq!(read.weights, [0, 1, 2, 4, 5, 6, 7, 9]);
    assert_eq!(read.summary.num_skipped, 2);
    assert!(read.summary.first_skipped.unwrap().contains("many.parquet:4: "));
    assert_eq!(read.properties[0].iter().next().unwrap(), PropertyValue::I64(-7));
    assert_eq!(read.properties[0].len(), 8);
}

#[test]
fn damage_is_an_error_that_names_the_file() {
    let folder = Folder::new();
    for kind in [KeyKind::Integer, KeyKind::String] {
        let bytes = std::fs::read(small(&folder, kind)).unwrap();
        let path = folder.path("damaged.parquet");
        let options = SourceOptions {
            keys: KeyKind::String,
            format: Format::of_name("parquet"),
            edge_properties: WantedProperties::All,
            ..SourceOptions::default()
        };
        let attempt = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read_once::<Span, f64>(&[&path], &options, 1).map_err(|error| error.to_string())
        };
        assert!(attempt(&bytes).is_ok());
        for len in (0..bytes.len()).step_by(3) {
            let error = attempt(&bytes[..len]).unwrap_err();
            assert!(error.contains("damaged.parquet: "), "{len} bytes: {error}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            // Values have no checksum, so damage may give other values. Errors name rows.
            if let Err(error) = attempt(&damaged) {
                assert!(error.contains("damaged.parquet:"), "byte {at}: {error}");
            }
        }
    }
}

#[test]
fn other_files_are_no_parquet() {
    let folder = Folder::new();
    let read =
        |name: &str, bytes: &[u8]| read_files::<u64, u32>(&[&folder.file(name, bytes)], &SourceOptions::default());
    assert_refused(read("a.parquet", b"1 2\n"), "a.parquet: expected a Parquet file, found 4 bytes");
    let cut = read("b.parquet", b"PAR1 and so on, and so on");
    assert_refused(cut, "b.parquet: expected a Parquet file, which ends in PAR1: the file is cut, or another");
    assert_refused(read("c.parquet", b"PAR1....PARE"), "c.parquet: the Parquet file is encrypted, which is not read");
    let long = read("d.parquet", b"PAR1\xff\xff\xff\xffPAR1");
    assert_refused(long, "d.parquet: the footer claims 4294967295 bytes of a file of 12");
}

#[test]
fn columns_that_lose_something_are_noted() {
    let path = fixture("notes/types.parquet");
    let wanted = |edge_properties| SourceOptions { edge_properties, ..SourceOptions::default() };
    let notes = |options: &SourceOptions| {
        let read = read_files::<u64, f64>(&[&path], options).unwrap();
        let prefix = format!("{}: column ", path.display());
        let notes = read.notes.iter().filter_map(|note| Some(note.strip_prefix(&prefix)?.to_owned()));
        (notes.collect::<Vec<_>>(), read)
    };
    let left_out = |name: &str, kind: &str| {
        format!("'{name}' is left out: it holds {kind}, and only values and lists of values are read")
    };
    let maps = [left_out("grades", "maps")];
    let decimal = |name: &str| format!("'{name}' holds decimal numbers, which are read as f64 and may lose digits");
    let (found, read) = notes(&wanted(WantedProperties::All));
    let of_values = [
        decimal("price"),
        decimal("wide"),
        "'nanos' holds timestamps in nanoseconds, which are cut to microseconds".to_owned(),
        "'clock' holds times of day, which are read as i64".to_owned(),
    ];
    assert_eq!(found, [&maps[..], &of_values].concat());
    // `tags`, `place.x`, `place.tags`, `price`, `count`, `wide`, `nanos` and `clock`.
    let row = |row: usize| read.properties.iter().map(|column| column.get(row).to_string()).collect::<Vec<_>>();
    assert_eq!(row(0)[..6], [r#"["a","b"]"#, "7", r#"["t"]"#, "0.1", "7", "1.0"]);
    assert_eq!(row(1)[..5], ["[]", "8", "", "1.2345678901234568e16", ""]);
    // Columns that are not read lose no precision.
    assert_eq!(notes(&wanted(WantedProperties::None)).0, maps);
    let named = wanted(WantedProperties::Named(vec!["count".into()]));
    assert_eq!(notes(&named).0, maps);
    let weights =
        SourceOptions { weights: Some(f64::TYPE), weight_column: Some("price".into()), ..SourceOptions::default() };
    assert_eq!(notes(&weights).0, [&maps[..], &[decimal("price")]].concat());
    // The note for a file of vertices.
    let folder = Folder::new();
    let edges = folder.file("edges.txt", "1 2\n");
    let vertices = vec![path.clone().into()];
    let options = SourceOptions {
        vertices,
        vertex_column: Some("source".into()),
        vertex_properties: WantedProperties::All,
        ..SourceOptions::default()
    };
    let read = read_files::<u64, f64>(&[&edges], &options).unwrap();
    assert_eq!(read.notes.len(), 5, "{:?}", read.notes);
}

#[test]
fn whole_decimals_are_exact_keys() {
    let path = fixture("notes/decimal_ids.parquet");
    let numbers = read_files::<u64, f64>(&[&path], &SourceOptions::default()).unwrap();
    let large = "18446744073709551615";
    let expected = [("1", "2"), (large, "3")].map(|(source, target)| (source.to_owned(), target.to_owned()));
    assert_eq!((&numbers.edges[..], numbers.notes.len()), (&expected[..], 0));
    let strings = SourceOptions { keys: KeyKind::String, ..SourceOptions::default() };
    let texts = read_files::<Span, f64>(&[&path], &strings).unwrap();
    assert_eq!(texts.edges, expected);
    let path = fixture("notes/negative_ids.parquet");
    assert_refused(
        read_files::<u64, f64>(&[&path], &SourceOptions::default()),
        "negative_ids.parquet:2: expected a source, an integer from 0 to 18446744073709551615 (any text with --ids \
         string), found -5",
    );
    assert_eq!(read_files::<Span, f64>(&[&path], &strings).unwrap().edges[1].0, "-5");
    let path = fixture("notes/types.parquet");
    let priced = SourceOptions { source_column: Some("price".into()), ..SourceOptions::default() };
    assert_refused(
        read_files::<u64, f64>(&[&path], &priced),
        "column 'price': expected whole numbers as keys of sources, found decimal numbers",
    );
}

#[test]
fn whole_floating_numbers_are_keys() {
    let path = fixture("notes/float_ids.parquet");
    let skip = SourceOptions { on_error: OnError::Skip, ..SourceOptions::default() };
    let numbers = read_files::<u64, f64>(&[&path], &skip).unwrap();
    assert_eq!(numbers.pairs(), [(1, 2)]);
    assert_eq!(numbers.summary.num_skipped, 2);
    let refused = "an integer from 0 to 18446744073709551615 (any text with --ids string), found";
    assert_refused(
        read_files::<u64, f64>(&[&path], &SourceOptions::default()),
        &format!("float_ids.parquet:2: expected a source, {refused} -3"),
    );
    let swapped = SourceOptions {
        source_column: Some("target".into()),
        target_column: Some("source".into()),
        keys: KeyKind::String,
        ..SourceOptions::default()
    };
    let texts = read_files::<Span, f64>(&[&path], &swapped);
    assert_refused(
        texts,
        "float_ids.parquet:2: expected a source, text in UTF-8, of 1 to 65535 bytes (0 with --empty-ids), found 1.5",
    );
    let texts = read_files::<Span, f64>(&[&path], &SourceOptions { on_error: OnError::Skip, ..swapped }).unwrap();
    assert_eq!(texts.edges, [("2".to_owned(), "1".to_owned())]);
}

/// A file with this footer after its magic number.
fn with_footer(footer: &[u8]) -> Vec<u8> {
    let len = (footer.len() as u32).to_le_bytes();
    [b"PAR1", footer, &len, b"PAR1"].concat()
}

/// An element of a schema: optional, with a name, and the number of its children if it is a group.
fn element(name: &[u8], num_children: Option<u32>) -> Vec<u8> {
    let mut bytes = if num_children.is_some() { Vec::new() } else { vec![0x15, 2] };
    bytes.extend([if num_children.is_some() { 0x35 } else { 0x25 }, 2, 0x18]);
    varint(name.len() as u64, &mut bytes);
    bytes.extend(name);
    if let Some(num_children) = num_children {
        bytes.push(0x15);
        varint(u64::from(num_children) * 2, &mut bytes);
    }
    bytes.push(0);
    bytes
}

fn varint(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// A footer with these elements and no rows.
fn schema(elements: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0x15, 2, 0x19, 0xfc];
    varint(elements.len() as u64, &mut bytes);
    bytes.extend(elements.concat());
    bytes.extend([0x16, 0, 0x19, 0x0c, 0]);
    bytes
}

#[test]
fn hostile_footers_are_refused_before_they_are_decoded() {
    let folder = Folder::new();
    let refused = |footer: &[u8], what: &str| {
        let path = folder.file("hostile.parquet", with_footer(footer));
        let read = read_once::<u64, u32>(&[&path], &SourceOptions::default(), 1).map_err(|error| error.to_string());
        assert_refused(read, &format!("hostile.parquet: {what}"));
    };
    let leaf = |name: &str| element(name.as_bytes(), None);
    // The small file that the hostile ones differ from has no rows, and is read.
    let good = schema(&[element(b"root", Some(2)), leaf("source"), leaf("target")]);
    let path = folder.file("good.parquet", with_footer(&good));
    assert_eq!(read_once::<u64, u32>(&[&path], &SourceOptions::default(), 1).unwrap().edges, []);
    let lie = "the footer is damaged: its schema has too many columns, too deep structures or too long names";
    refused(&schema(&[element(b"root", Some(i32::MAX as u32)), leaf("source"), leaf("target")]), lie);
    let mut deep = vec![element(b"g", Some(1)); 100_000];
    deep.push(leaf("source"));
    refused(&schema(&deep), lie);
    refused(&schema(&[element(b"root", Some(1)), leaf(&"n".repeat(2000))]), lie);
    // A list of 2^31 - 1 truth values that the decoder would pass one by one, without a byte for each.
    let mut long = good.clone();
    long.truncate(good.len() - 1);
    long.extend([0xa9, 0xf1, 0xff, 0xff, 0xff, 0xff, 7, 0]);
    refused(&long, "the footer is damaged: a list is longer than its bytes");
    // A number of children as a structure, which the decoder would read as a number.
    let mut wrong = element(b"root", Some(2));
    let at = wrong.len() - 3;
    wrong[at] = 0x1c;
    let wrong = schema(&[wrong, leaf("source"), leaf("target")]);
    refused(&wrong, "the footer is damaged: a field is of another type than the format says");
    refused(&good[..good.len() - 1], "the footer is damaged: it ends too early");
}

/// The numbers of page types and encodings in the format.
pub const DATA_PAGE: u64 = 0;
const INDEX_PAGE: u64 = 1;
pub const PLAIN: u64 = 0;
const DELTA_BINARY_PACKED: u64 = 5;

/// A page of version 1 with its header.
pub fn page(kind: u64, num_values: u64, encoding: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut numbers = vec![(0x15, kind), (0x15, body.len() as u64), (0x15, body.len() as u64)];
    if kind == DATA_PAGE {
        numbers.extend([(0x2c15, num_values), (0x15, encoding), (0x15, 3), (0x15, 3)]);
    }
    for (head, number) in numbers {
        bytes.extend(if head > 0xff { vec![(head >> 8) as u8, head as u8] } else { vec![head as u8] });
        varint(number * 2, &mut bytes);
    }
    // The ends of the structures.
    bytes.extend(if kind == DATA_PAGE { &[0, 0][..] } else { &[0] });
    [&bytes, body].concat()
}

pub fn plain(numbers: impl IntoIterator<Item = i32>) -> Vec<u8> {
    numbers.into_iter().flat_map(i32::to_le_bytes).collect()
}

/// A file with one row group. `columns` holds the declaration of each column and its pages.
fn with_columns(num_rows: i64, columns: &[(&str, Vec<Vec<u8>>)]) -> Vec<u8> {
    let end = |declared: &str| if declared.ends_with('}') { "" } else { ";" };
    let declared: String = columns.iter().map(|column| format!("required {}{}", column.0, end(column.0))).collect();
    let schema = parse_message_type(&format!("message schema {{ {declared} }}")).unwrap();
    let schema = Arc::new(SchemaDescriptor::new(Arc::new(schema)));
    let (mut bytes, mut group) = (b"PAR1".to_vec(), RowGroupMetaData::builder(schema.clone()).set_num_rows(num_rows));
    for (place, (_, pages)) in columns.iter().enumerate() {
        let chunk = ColumnChunkMetaData::builder(schema.column(place))
            .set_data_page_offset(bytes.len() as i64)
            .set_num_values(num_rows)
            .set_total_compressed_size(pages.concat().len() as i64);
        bytes.extend(pages.concat());
        group = group.add_column_metadata(chunk.build().unwrap());
    }
    let file = FileMetaData::new(1, num_rows, None, None, schema, None);
    let metadata = ParquetMetaData::new(file, vec![group.build().unwrap()]);
    ParquetMetaDataWriter::new(&mut bytes, &metadata).finish().unwrap();
    bytes
}

/// Reads forged columns beside numbered sources and targets, with blocks of every size.
pub fn read_forged(num_rows: i32, column: (&str, Vec<Vec<u8>>)) -> Result<Read<u32>, String> {
    let keys = |name| (name, vec![page(DATA_PAGE, num_rows as u64, PLAIN, &plain(0..num_rows))]);
    let bytes = with_columns(num_rows.into(), &[keys("INT32 source"), keys("INT32 target"), column]);
    let options = SourceOptions { edge_properties: WantedProperties::All, ..SourceOptions::default() };
    read_files::<u64, u32>(&[&Folder::new().file("forged.parquet", bytes)], &options)
}

#[test]
fn index_pages_are_passed() {
    let index = || page(INDEX_PAGE, 0, 0, b"any bytes");
    let data = |numbers: std::ops::Range<i32>| page(DATA_PAGE, numbers.len() as u64, PLAIN, &plain(numbers));
    let pages = vec![index(), data(0..7), index(), index(), data(7..90), data(90..100), index()];
    let read = read_forged(100, ("INT32 w", pages)).unwrap();
    assert!(read.properties[0].iter().eq((0..100).map(PropertyValue::I64)));
}

#[test]
fn differences_that_wrap_are_read_in_parts() {
    // A first value of 5 and 127 steps of 2^30, in blocks of 128 values in 4 parts.
    let mut body = vec![0x80, 1, 4, 0x80, 1, 10];
    varint(1 << 31, &mut body);
    body.extend([0; 4]);
    let read = read_forged(128, ("INT32 w", vec![page(DATA_PAGE, 128, DELTA_BINARY_PACKED, &body)])).unwrap();
    let wrapped = |row: i32| PropertyValue::I64(row.wrapping_mul(1 << 30).wrapping_add(5).into());
    assert!(read.properties[0].iter().eq((0..128).map(wrapped)));
}

#[test]
fn timestamps_out_of_range_name_their_row() {
    let value = |day: i32, nanos: i64| [&nanos.to_le_bytes()[..], &day.to_le_bytes()].concat();
    let times = |value_of_last: Vec<u8>| {
        let mut body = value(2_440_589, 1999).repeat(99);
        body.extend(value_of_last);
        read_forged(100, ("INT96 at", vec![page(DATA_PAGE, 100, PLAIN, &body)]))
    };
    let read = times(value(2_440_588 - 106_751_991, -1)).unwrap();
    let shown = |row| read.properties[0].get(row).to_string();
    assert_eq!((&*shown(0), &*shown(98)), ("1970-01-02T00:00:00.000001Z", "1970-01-02T00:00:00.000001Z"));
    for (day, nanos) in [(i32::MAX, 0), (i32::MIN, 0), (2_440_588 - 106_751_992, 0), (2_440_588 + 106_751_991, 1 << 62)]
    {
        let low = [nanos as u32, (nanos as u64 >> 32) as u32, day as u32];
        let what = format!("row 100: expected a timestamp within 64 bits of microseconds, found {low:?}");
        assert_refused(times(value(day, nanos)), &format!("forged.parquet: column 'at': {what}"));
    }
    let body = [0_i64, i64::MAX].map(i64::to_le_bytes).concat();
    let millis = read_forged(2, ("INT64 at (TIMESTAMP_MILLIS)", vec![page(DATA_PAGE, 2, PLAIN, &body)]));
    let what = "row 2: expected a timestamp within 64 bits of microseconds, found 9223372036854775807";
    assert_refused(millis, &format!("forged.parquet: column 'at': {what}"));
}

#[test]
fn file_that_changes_after_its_footer_is_refused() {
    let folder = Folder::new();
    let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, 3);
    [(0, 1), (1, 2)].iter().for_each(|&(s, t)| builder.edge(s, t, 1));
    let (path, vertices) = (folder.path("edges.parquet"), folder.path("vertices.parquet"));
    write(&builder.build().unwrap(), KeyKind::Integer, &path, 1, &vertices);
    let mut source = Source::open(&[InputPath::File(path.clone())], SourceOptions::default()).unwrap();
    let pool = Pool::new(1).unwrap();
    let mut num_edges = || source.for_each_block::<u64, u32, Error>(&pool, |_, _| Ok(())).map(|read| read.num_edges);
    assert_eq!(num_edges().unwrap(), 2);
    std::fs::copy(&vertices, &path).unwrap();
    let refused = num_edges().unwrap_err().to_string();
    assert!(refused.ends_with("edges.parquet: the file was changed during the read"), "{refused}");
}
