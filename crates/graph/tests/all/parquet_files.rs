//! Parquet: what is written is read again, and what is damaged is refused.

use anden_graph::formats::{
    Format, KeyKind, NoProperties, OnError, SourceOptions, Span, WantedProperties, write_file, write_parquet_edges,
    write_parquet_vertices,
};
use anden_graph::property::PropertyValue;
use anden_graph::{Csr, CsrBuilder, Direction, Error, Graph, VertexId, Weight};
use base::parallel::Pool;
use proptest::prelude::*;
use std::path::{Path, PathBuf};

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

fn check<W: Weight>(direction: Direction, num_vertices: usize, edges: &[(u32, u32, W)]) {
    let mut builder = CsrBuilder::<W>::new(direction, num_vertices).keep_parallel();
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
        let direction = if is_directed { Direction::Directed } else { Direction::Undirected };
        let ends: Vec<_> = ends.into_iter().map(|(s, t, w)| (s % num_vertices, t % num_vertices, w)).collect();
        let size = num_vertices as usize;
        check::<u32>(direction, size, &ends.iter().map(|&(s, t, w)| (s, t, w as u32)).collect::<Vec<_>>());
        check::<i64>(direction, size, &ends.iter().map(|&(s, t, w)| (s, t, i64::from(w) << 31)).collect::<Vec<_>>());
        check::<f32>(direction, size, &ends.iter().map(|&(s, t, w)| (s, t, w as f32 / 7.0)).collect::<Vec<_>>());
        check::<f64>(direction, size, &ends.iter().map(|&(s, t, w)| (s, t, f64::from(w) / 7.0)).collect::<Vec<_>>());
    }
}

#[test]
fn many_rows_in_many_groups() {
    let num_vertices = 200_000_u32;
    let edges: Vec<_> = (0..700_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) % num_vertices, i % 1000, i)).collect();
    let mut builder = CsrBuilder::<u32>::new(Direction::Directed, num_vertices as usize).keep_parallel();
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

/// Files that other programs wrote; `make_parquet.py` beside them says how.
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
    let mut builder = CsrBuilder::<f64>::new(Direction::Directed, 4);
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
         string), found other bytes",
    );
}

#[test]
fn nulls_are_faults_of_their_rows() {
    let folder = Folder::new();
    let path = folder.path("many.parquet");
    let mut builder = CsrBuilder::<f64>::new(Direction::Directed, 10);
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
            format: Some(Format::Parquet),
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
            // Values have no checksum: what is read may be other values, and faults name rows.
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
        format!("'{name}' is left out: it holds {kind}, and only columns with one value a row are read")
    };
    let lists = [left_out("tags", "lists"), left_out("grades", "maps"), left_out("place.tags", "lists")];
    let decimal = |name: &str| format!("'{name}' holds decimal numbers, which are read as f64 and may lose digits");
    let (found, read) = notes(&wanted(WantedProperties::All));
    let of_values = [
        decimal("price"),
        decimal("wide"),
        "'nanos' holds timestamps in nanoseconds, which are cut to microseconds".to_owned(),
        "'clock' holds times of day, which are read as i64".to_owned(),
    ];
    assert_eq!(found, [&lists[..], &of_values].concat());
    // `place.x`, `price`, `count`, `wide`, `nanos` and `clock`.
    let row = |row: usize| read.properties.iter().map(|column| column.get(row).to_string()).collect::<Vec<_>>();
    assert_eq!(row(0)[..4], ["7", "0.1", "7", "1.0"]);
    assert_eq!((&*row(1)[1], &*row(1)[2]), ("1.2345678901234568e16", ""));
    // Columns that are not read lose nothing.
    assert_eq!(notes(&wanted(WantedProperties::None)).0, lists);
    let named = wanted(WantedProperties::Named(vec!["count".into()]));
    assert_eq!(notes(&named).0, lists);
    let weights =
        SourceOptions { weights: Some(f64::TYPE), weight_column: Some("price".into()), ..SourceOptions::default() };
    assert_eq!(notes(&weights).0, [&lists[..], &[decimal("price")]].concat());
    // The same of a file of vertices.
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
    assert_eq!(read.notes.len(), 7, "{:?}", read.notes);
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
