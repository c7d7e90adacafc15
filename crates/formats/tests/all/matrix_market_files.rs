//! Matrix Market: the banner determines the meaning of an entry.

use anden_formats::{Format, InputPath, OnError, Source, SourceOptions};
use anden_graph::GraphKind;

use crate::reading::{Folder, assert_refused, read, read_files, read_strings, read_weighted};

fn file(banner: &str, rest: &str) -> String {
    format!("%%MatrixMarket matrix coordinate {banner}\n% a comment\n\n{rest}")
}

#[test]
fn entries_are_edges_and_rows_vertices() {
    let folder = Folder::new();
    let text = file("pattern general", "4 4 3\n1 2\n% between\n 3\t1 \n3 3\r\n");
    let found = read(&folder, "a.mtx", &text).unwrap();
    assert_eq!(found.pairs(), [(1, 2), (3, 1), (3, 3)]);
    assert_eq!(found.vertices, ["1", "2", "3", "4"]);
    let strings = read_strings(&folder, "b.mtx", text.replace("3 3", "003 3")).unwrap();
    assert_eq!(strings.edges[2], ("3".into(), "3".into()));
    let mut many = file("pattern general", "1000 1000 999\n");
    (1..1000).for_each(|i| many.push_str(&format!("{i} {}\n", i + 1)));
    let expected: Vec<_> = (1..1000).map(|i| (i, i + 1)).collect();
    assert_eq!(read(&folder, "many.mtx", many).unwrap().pairs(), expected);
}

#[test]
fn values_are_weights_if_they_are_asked_for() {
    let folder = Folder::new();
    let real = file("real general", "3 3 4\n1 2 0.5\n2 3 -7\n3 1 1e3\n1 1 0\n");
    assert_eq!(read_weighted::<f64>(&folder, "a.mtx", &real).unwrap().weights, [0.5, -7.0, 1000.0, 0.0]);
    assert_eq!(read(&folder, "a.mtx", &real).unwrap().edges.len(), 4);
    let whole = file("integer general", "3 3 2\n1 2 9007199254740993\n2 3 -7\n");
    assert_eq!(read_weighted::<i64>(&folder, "b.mtx", &whole).unwrap().weights, [9_007_199_254_740_993, -7]);
    let negative = read_weighted::<u32>(&folder, "b.mtx", whole.replace("9007199254740993", "5"));
    assert_refused(
        negative,
        "b.mtx:6: expected a weight of type u32, a whole number from 0 to 4294967295 (others with another \
         --weight-type), found '-7'",
    );
    let pattern = read_weighted::<f64>(&folder, "c.mtx", file("pattern general", "1 1 0\n"));
    assert_refused(
        pattern,
        "c.mtx: weights are asked for, but the graph has none: leave out --weights and --weight-type",
    );
}

#[test]
fn symmetry_says_what_an_entry_stands_for() {
    let folder = Folder::new();
    let facts = |name: &str, banner: &str, rest: &str| {
        let path = folder.file(name, file(banner, rest));
        Source::open(&[InputPath::File(path)], SourceOptions::default()).unwrap().facts().clone()
    };
    assert_eq!(facts("a.mtx", "real symmetric", "2 2 0\n").graph_kind, Some(GraphKind::Undirected));
    assert_eq!(facts("b.mtx", "real general", "2 2 0\n").graph_kind, Some(GraphKind::Directed));
    assert_eq!(facts("c.mtx", "real skew-symmetric", "2 2 0\n").graph_kind, Some(GraphKind::Directed));
    assert_eq!(facts("d.mtx", "pattern general", "2 2 0\n").has_weights, Some(false));

    let symmetric = read(&folder, "e.mtx", file("pattern symmetric", "3 3 3\n2 1\n3 3\n3 1\n")).unwrap();
    assert_eq!(symmetric.pairs(), [(2, 1), (3, 3), (3, 1)]);
    let skew = file("real skew-symmetric", "3 3 2\n2 1 1.5\n3 1 -2\n");
    let found = read_weighted::<f64>(&folder, "f.mtx", &skew).unwrap();
    assert_eq!(found.pairs(), [(2, 1), (1, 2), (3, 1), (1, 3)]);
    assert_eq!(found.weights, [1.5, -1.5, -2.0, 2.0]);
    assert_eq!(read(&folder, "f.mtx", &skew).unwrap().edges.len(), 4);

    let above = read(&folder, "g.mtx", file("pattern symmetric", "3 3 1\n1 2\n")).unwrap();
    assert_eq!(above.pairs(), [(1, 2)]);
    let above = read_weighted::<i64>(&folder, "g.mtx", file("integer skew-symmetric", "3 3 1\n1 2 5\n")).unwrap();
    assert_eq!((above.pairs(), above.weights), (vec![(1, 2), (2, 1)], vec![5, -5]));
    let diagonal = read(&folder, "h.mtx", file("real skew-symmetric", "3 3 1\n2 2 1\n"));
    assert_refused(
        diagonal,
        "h.mtx:5: expected no entry on the diagonal of a skew-symmetric matrix, found row 2, column 2",
    );
    let unsigned = read_weighted::<u32>(&folder, "i.mtx", file("integer skew-symmetric", "3 3 1\n2 1 1\n"));
    assert_refused(
        unsigned,
        "i.mtx:5: the mirrored entry of a skew-symmetric matrix has the value -1: expected a weight of type u32, a whole \
         number from 0 to 4294967295 (others with another --weight-type)",
    );
}

#[test]
fn rectangular_matrices_are_bipartite() {
    let folder = Folder::new();
    let text = file("integer general", "2 3 3\n1 3 7\n2 1 8\n 2\t2\t9\n");
    let found = read_weighted::<i64>(&folder, "a.mtx", &text).unwrap();
    assert_eq!(found.pairs(), [(1, 5), (2, 3), (2, 4)]);
    assert_eq!(found.vertices, ["1", "2", "3", "4", "5"]);
    assert_eq!(found.weights, [7, 8, 9]);
    let refused = |banner: &str, rest: &str, expected: &str| {
        assert_refused(read(&folder, "b.mtx", file(banner, rest)), expected);
    };
    refused("pattern general", "2 3 1\n3 1\n", "b.mtx:5: expected a row from 1 to 2, as the header says, found '3'");
    refused("pattern general", "2 3 1\n1 4\n", "b.mtx:5: expected a column from 1 to 3, as the header says, found '4'");
    refused(
        "pattern symmetric",
        "2 3 0\n",
        "b.mtx:4: expected as many columns as rows in a symmetric matrix, found 2 rows and 3 columns",
    );
    refused(
        "pattern general",
        "4294967294 1 0\n",
        "expected at most 4294967294 rows and columns, found '4294967294 1 0'",
    );
}

#[test]
fn complex_matrices_are_patterns() {
    let folder = Folder::new();
    let text = file("complex hermitian", "3 3 3\n1 1 2.5 0\n2 1 -1 1e3\n% between\n3 2 0 .5\r\n");
    assert_eq!(read(&folder, "a.mtx", &text).unwrap().pairs(), [(1, 1), (2, 1), (3, 2)]);
    let path = folder.file("b.mtx", &text);
    let facts = Source::open(&[InputPath::File(path)], SourceOptions::default()).unwrap().facts().clone();
    assert_eq!((facts.graph_kind, facts.has_weights), (Some(GraphKind::Undirected), Some(false)));
    let skew = file("complex skew-symmetric", "2 2 1\n2 1 1 1\n");
    assert_eq!(read(&folder, "c.mtx", skew).unwrap().pairs(), [(2, 1), (1, 2)]);
    for (entry, expected) in [
        ("1 1 5", "d.mtx:5: expected two numbers, the parts of a complex value, found the end of the line"),
        ("1 1 5 x", "d.mtx:5: expected two numbers, the parts of a complex value, found 'x'"),
        ("1 1 5 6 7", "d.mtx:5: expected the end of the line after the value, found '7'"),
    ] {
        assert_refused(read(&folder, "d.mtx", file("complex general", &format!("1 1 1\n{entry}\n"))), expected);
    }
}

#[test]
fn banners_with_one_percent_sign_are_read() {
    let folder = Folder::new();
    let text = "%MatrixMarket matrix coordinate pattern symmetric\n% a comment\n5 5 2\n2 1\n4 3\n";
    assert_eq!(read(&folder, "a.mtx", text).unwrap().pairs(), [(2, 1), (4, 3)]);
    // By content, too.
    let path = folder.file("b.txt", text);
    assert_eq!(read_files::<u64, u32>(&[&path], &SourceOptions::default()).unwrap().pairs(), [(2, 1), (4, 3)]);
}

#[test]
fn contradiction_of_header_is_refused_with_its_line() {
    let folder = Folder::new();
    let refused = |banner: &str, rest: &str, expected: &str| {
        assert_refused(read(&folder, "a.mtx", file(banner, rest)), expected);
    };
    refused("pattern general", "3 3 1\n1 4\n", "a.mtx:5: expected a column from 1 to 3, as the header says, found '4'");
    refused("pattern general", "3 3 1\n0 1\n", "a.mtx:5: expected a row from 1 to 3, as the header says, found '0'");
    refused("pattern general", "3 3 1\nx 1\n", "expected a row from 1 to 3, as the header says, found 'x'");
    refused(
        "pattern general",
        "3 3 1\n1\n",
        "expected a column from 1 to 3, as the header says, found the end of the line",
    );
    refused("pattern general", "3 3 2\n1 2\n", "a.mtx: the header promises 2 entries, found 1");
    refused("pattern general", "3 3 0\n1 2\n", "a.mtx: the header promises 0 entries, found 1");
    refused("real skew-symmetric", "3 3 2\n2 1 1\n", "a.mtx: the header promises 2 entries, found 1");
    refused(
        "pattern general",
        "3 3 1\n1 2 7\n",
        "expected a row and a column, as the banner says pattern, found a value '7'",
    );
    refused("real general", "3 3 1\n1 2\n", "expected a real value, as the banner says, found the end of the line");
    refused("integer general", "3 3 1\n1 2 1.5\n", "expected an integer value, as the banner says, found '1.5'");
    refused("real general", "3 3 1\n1 2 1 9\n", "expected the end of the line after the value, found '9'");
    refused("pattern general", "3 3\n", "a.mtx:4: expected the size 'rows columns entries', found '3 3'");
    refused(
        "pattern general",
        "4294967295 4294967295 0\n",
        "expected at most 4294967294 rows and columns, found '4294967295 4294967295 0'",
    );
    refused("pattern general", "4000000000 4000000000 0\n", "which a text of 86 bytes does not bear out");
    refused("pattern general", "", "a.mtx: expected the size 'rows columns entries', found none");
    let array = read(&folder, "b.mtx", "%%MatrixMarket matrix array real general\n1 1\n5\n");
    assert_refused(array, "b.mtx:1: the array format lists every entry of a matrix: only coordinate is read");
    assert_refused(
        read(&folder, "c.mtx", ""),
        "c.mtx:1: expected the banner '%%MatrixMarket matrix coordinate FIELD SYMMETRY', found ''",
    );
}

#[test]
fn content_tells_and_faults_can_be_passed_over() {
    let folder = Folder::new();
    let path = folder.file("a.txt", file("pattern general", "3 3 3\n1 2\nx\n2 3\n"));
    let options = SourceOptions { on_error: OnError::Skip, ..SourceOptions::default() };
    let found = read_files::<u64, u32>(&[&path], &options).unwrap();
    assert_eq!((found.pairs(), found.summary.num_skipped), (vec![(1, 2), (2, 3)], 1));
    let options = SourceOptions { format: Format::of_name("mtx"), ..SourceOptions::default() };
    let path = folder.file("b.txt", "\u{feff}%%matrixmarket Matrix Coordinate Pattern General\n2 2 1\n2 1\n");
    assert_eq!(read_files::<u64, u32>(&[&path], &options).unwrap().pairs(), [(2, 1)]);
}
