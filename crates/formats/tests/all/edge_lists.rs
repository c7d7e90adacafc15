//! Edge lists: lines that are edges, lines that are not, and the messages.

use anden_formats::{ColumnName, LoneKeys, OnError, SourceOptions, Span};

use crate::reading;
use crate::reading::{Folder, assert_refused, names, read, read_files, read_strings, read_weighted};

#[test]
fn every_spelling_of_an_edge() {
    let folder = Folder::new();
    let text = "\u{feff}# SNAP\n% Konect\n// comment\n\n0 1\n  2\t3  \n4 \t 5 1082008561 RT\r\n6 7\r\n   # indented\n\
                18446744073709551615 00000000000000000000042\n8 12345678\n123456789012345 1234567890123456\n9 9";
    let read = read(&folder, "graph.txt", text).unwrap();
    let expected = [
        (0, 1),
        (2, 3),
        (4, 5),
        (6, 7),
        (u64::MAX, 42),
        (8, 12_345_678),
        (123_456_789_012_345, 1_234_567_890_123_456),
        (9, 9),
    ];
    assert_eq!(read.pairs(), expected);
    assert_eq!((read.summary.num_edges, read.summary.num_skipped), (8, 0));
}

/// Regression: columns far from the beginning were left out without a note.
#[test]
fn late_columns_are_left_out_with_a_note() {
    let folder = Folder::new();
    let pairs = "1 2\n".repeat(20_000);
    let hint = "; --columns names them to keep them, --weights takes the third as the weight";
    let check = |line: &str, places: &[usize], what: &str| {
        let text = format!("{pairs}{line}1 2\n");
        let numbers: Vec<_> = places.iter().map(|&place| ColumnName::Number(place)).collect();
        let notes = Vec::from_iter((!places.is_empty()).then(|| format!("a.txt: {what}{hint}")));
        let found = read(&folder, "a.txt", &text).unwrap();
        assert_eq!((found.edges.len(), &found.columns.left_out), (20_002, &numbers), "{line:?}");
        assert_eq!(names(&folder, &found.notes), notes, "{line:?}");
        let found = read_strings(&folder, "a.txt", &text).unwrap();
        assert_eq!((found.edges.len(), &found.columns.left_out), (20_002, &numbers), "{line:?}");
    };
    check("3 4 \t\r\n", &[], "");
    for line in ["3 4 5\n", "3\t4\t5\r\n", "3 4  5 \n", "3 4 x\n", " 3 4 5\n", "12345678901234567890 4 \t5\n"] {
        check(line, &[3], "column 3 is left out");
    }
    for line in ["3 4 5 6 7\n", "3 4 \t 5\t6 RT \r\n", " 3 4 5 6 7\n", "3 4 5\x0b 6 7\n"] {
        check(line, &[3, 4, 5], "columns 3, 4 and 5 are left out");
    }
    let weighted = format!("{}3 4 5 6\n 3 4 5 6 7\n3 4 5 \n", "1 2 3\n".repeat(20_000));
    let found = read_weighted::<f64>(&folder, "a.txt", &weighted).unwrap();
    let note = "a.txt: columns 4 and 5 are left out; --columns names them to keep them";
    assert_eq!(names(&folder, &found.notes), [note]);
    let found = read_weighted::<f64>(&folder, "a.wel", &weighted).unwrap();
    assert_eq!(names(&folder, &found.notes), ["a.wel: columns 4 and 5 are left out"]);
    // A note already names the weights that are left out.
    let found = read(&folder, "a.wel", &weighted).unwrap();
    let weights = "a.wel: the weights are left out; --weights reads them";
    assert_eq!(names(&folder, &found.notes), [weights, "a.wel: columns 3, 4 and 5 are left out"]);
    let found = read(&folder, "a.wel", "1 2 3\n").unwrap();
    assert_eq!((&names(&folder, &found.notes)[..], found.columns.left_out.len()), (&[weights.to_owned()][..], 1));
    // Comments at the beginning give no information.
    let found = read(&folder, "a.txt", format!("{}1 2 3\n", "# words\n".repeat(10_000))).unwrap();
    let number = |place| Some(ColumnName::Number(place));
    assert_eq!((found.columns.source, found.columns.target), (number(1), number(2)));
    assert_eq!((found.columns.left_out, found.notes.len()), (vec![ColumnName::Number(3)], 1));
}

/// Notes of several inputs stand in the order of the inputs.
#[test]
fn notes_on_columns_follow_their_inputs() {
    let folder = Folder::new();
    let files = [("a.txt", "1 2 3\n"), ("b.csv", "x,source,target\n3,4,5\n"), ("c.txt", "6 7\n1 2 3 4\n")];
    let paths = files.map(|(name, text)| folder.file(name, text));
    let paths: Vec<_> = paths.iter().map(|path| path.as_path()).collect();
    let found = read_files::<u64, u32>(&paths, &SourceOptions::default()).unwrap();
    let notes = names(&folder, &found.notes);
    let starts = ["a.txt: column 3 is", "b.csv: column 'x'", "b.csv: the source is", "c.txt: columns 3 and 4 are"];
    assert!(notes.len() == 4 && notes.iter().zip(starts).all(|(note, start)| note.starts_with(start)), "{notes:?}");
    let [three, four] = [3, 4].map(ColumnName::Number);
    assert_eq!(found.columns.left_out, [ColumnName::Name("x".into()), three, four]);
}

#[test]
fn files_of_removals_and_vertices_have_notes() {
    let folder = Folder::new();
    let options = SourceOptions { lone_keys: LoneKeys::Vertices, ..SourceOptions::default() };
    for (name, text) in [("gone.txt", "7\n1 2\n3 4 5\n"), ("gone.csv", "7\n1,2\n3,4,5\n"), ("gone.tsv", "1\t2\t5\n")] {
        let path = folder.file(name, text);
        let found = read_files::<u64, u32>(&[&path], &options).unwrap();
        let note = format!("{name}: column 3 is left out; removals name edges by source and target");
        assert_eq!(names(&folder, &found.notes), [note]);
    }
    let edges = folder.file("a.txt", "1 2\n");
    for (name, text) in [("v.txt", "7\n8 red\n"), ("v.csv", "7\n8,red\n")] {
        let options = SourceOptions { vertices: vec![folder.file(name, text).into()], ..SourceOptions::default() };
        let found = read_files::<u64, u32>(&[&edges], &options).unwrap();
        assert_eq!(names(&folder, &found.notes), [format!("{name}: column 2 is left out")]);
        assert_eq!(found.columns.left_out, []);
    }
}

#[test]
fn empty_input_has_no_edges() {
    let folder = Folder::new();
    for text in ["", "\n", "\n\n\n", "# only words", "\r\n", " \t"] {
        assert_eq!(read(&folder, "graph.txt", text).unwrap().edges, [], "{text:?}");
    }
}

#[test]
fn a_line_that_is_no_edge_is_named() {
    let folder = Folder::new();
    let refused = |line: &str, expected: &str| {
        let text = format!("# header\n{}{line}\n1 x\n", "1 2\n".repeat(40));
        assert_refused(read(&folder, "bad.txt", text), &format!("bad.txt:42: {expected}"));
    };
    let integer = "an integer from 0 to 18446744073709551615 (any text with --ids string)";
    refused("17", &format!("expected a target, {integer}, found the end of the line"));
    refused("a 2", &format!("expected a source, {integer}, found 'a'"));
    refused("1 2x", &format!("expected a target, {integer}, found '2x'"));
    refused("-1 2", &format!("expected a source, {integer}, found '-1'"));
    refused("1,2", &format!("expected a source, {integer}, found '1,2'"));
    refused("18446744073709551616 2", &format!("expected a source, {integer}, found '18446744073709551616'"));
    refused("1 \u{1b}[31m", &format!(r"expected a target, {integer}, found '\u{{1b}}[31m'"));
    let long = "9".repeat(80);
    refused(&format!("1 {long}"), &format!("expected a target, {integer}, found '{}…'", &long[..60]));
}

#[test]
fn a_lone_key_may_name_a_vertex() {
    let folder = Folder::new();
    let options = SourceOptions { lone_keys: LoneKeys::Vertices, ..SourceOptions::default() };
    let path = folder.file("gone.txt", "1 2\n7\n# 8\n 123456789012345678 \r\n\n3 4 5\n9");
    let read = read_files::<u64, u32>(&[&path], &options).unwrap();
    assert_eq!(read.pairs(), [(1, 2), (3, 4)]);
    assert_eq!(read.vertices, ["7", "123456789012345678", "9"]);
    let integer = "an integer from 0 to 18446744073709551615 (any text with --ids string)";
    for (text, expected) in [
        ("1 2\nx\n", format!("bad.txt:2: expected a vertex, {integer}, found 'x'")),
        ("1 2\n3 x\n", format!("bad.txt:2: expected a target, {integer}, found 'x'")),
    ] {
        assert_refused(read_files::<u64, u32>(&[&folder.file("bad.txt", text)], &options), &expected);
    }
    let options = SourceOptions { keys: anden_formats::KeyKind::String, ..options };
    let read = read_files::<Span, u32>(&[&folder.file("names.txt", "a b\n17\nö\n")], &options).unwrap();
    assert_eq!((read.edges.len(), read.vertices), (1, vec!["17".to_owned(), "ö".to_owned()]));
}

/// Regression: CR counted as a blank, so that all later lines were columns of the first.
#[test]
fn lines_that_end_in_cr_alone_are_refused() {
    let folder = Folder::new();
    let refused = |result: Result<reading::Read<u32>, String>, behind: &str| {
        assert_refused(
            result,
            &format!("cr.txt:1: expected lines that end in LF or CR LF, found one with CR alone behind '{behind}'"),
        );
    };
    for (text, behind) in [
        ("1 2\r3 4\r5 6\r", "1 2"),
        ("1 2\r3 4\r5 6\n", "1 2"),
        ("1\t2 x\r3\t4 y\r\n", "1\\t2 x"),
        ("# words\r1 2\r3 4\r", "# words"),
        ("1\r2\r", "1"),
    ] {
        refused(read(&folder, "cr.txt", text), behind);
        refused(read_strings(&folder, "cr.txt", text), behind);
    }
    refused(read_weighted(&folder, "cr.txt", "1 2 7 x\r3 4 8 y\r"), "1 2 7 x");
    let lone = SourceOptions { lone_keys: LoneKeys::Vertices, ..SourceOptions::default() };
    refused(read_files::<u64, u32>(&[&folder.file("cr.txt", "1\r2\r3")], &lone), "1");
    let listed =
        SourceOptions { vertices: vec![folder.file("cr.txt", "1\r2\r3\r").into()], ..SourceOptions::default() };
    refused(read_files::<u64, u32>(&[&folder.file("ok.txt", "1 2\n")], &listed), "1");
    let arcs = read(&folder, "a.gr", "p sp 9 1\na 1 2 3 x\ra 2 3 4 x\n");
    assert_refused(arcs, "a.gr:2: expected lines that end in LF or CR LF, found one with CR alone behind 'a 1 2 3 x'");
    let ends = read(&folder, "lf.txt", "1 2\r\n3 4 x\r\n5 6 x \r\r\n\r\n7 8 \r\n\r9 10\r").unwrap();
    assert_eq!(ends.pairs(), [(1, 2), (3, 4), (5, 6), (7, 8), (9, 10)]);
}

#[test]
fn faulty_lines_can_be_skipped() {
    let folder = Folder::new();
    let text = "0 1\nx y\n2 3\n\n4\n5 6\n";
    let options = SourceOptions { on_error: OnError::Skip, ..SourceOptions::default() };
    let read = read_files::<u64, u32>(&[&folder.file("some.txt", text)], &options).unwrap();
    assert_eq!(read.pairs(), [(0, 1), (2, 3), (5, 6)]);
    assert_eq!((read.summary.num_edges, read.summary.num_skipped), (3, 2));
    let first = read.summary.first_skipped.unwrap();
    assert!(first.contains("some.txt:2: expected a source"), "{first}");
}

#[test]
fn weights_of_each_type() {
    let folder = Folder::new();
    let text = "0 1 5\n1 2 4294967295 x\n2 3\t07\r\n";
    assert_eq!(read_weighted::<u32>(&folder, "w.txt", text).unwrap().weights, [5, u32::MAX, 7]);
    assert_eq!(
        read_weighted::<i64>(&folder, "w.txt", "0 1 -5\n1 2 9223372036854775807").unwrap().weights,
        [-5, i64::MAX]
    );
    assert_eq!(read_weighted::<f32>(&folder, "w.txt", text).unwrap().weights, [5.0, 4_294_967_295.0, 7.0]);
    assert_eq!(read_weighted::<f64>(&folder, "w.txt", "0 1 -1.5e3\n1 2 .25 \n").unwrap().weights, [-1500.0, 0.25]);
    // Weights that are not requested are not parsed.
    assert_eq!(read(&folder, "w.txt", "0 1 nan\n").unwrap().pairs(), [(0, 1)]);
}

#[test]
fn a_bad_weight_is_named() {
    let folder = Folder::new();
    let u32_range = "w.txt:2: expected a weight of type u32, a whole number from 0 to 4294967295 (others with \
                     another --weight-type), found";
    for (line, found) in
        [("1 2", "the end of the line"), ("1 2 -3", "'-3'"), ("1 2 1.5", "'1.5'"), ("1 2 4294967296", "'4294967296'")]
    {
        let result = read_weighted::<u32>(&folder, "w.txt", format!("0 1 1\n{line}\n"));
        assert_refused(result, &format!("{u32_range} {found}"));
    }
    for nan in ["nan", "NaN", "-nan"] {
        let result = read_weighted::<f64>(&folder, "w.txt", format!("0 1 1\n1 2 {nan}\n"));
        assert_refused(result, &format!("w.txt:2: expected a weight of type f64, a number or inf, found '{nan}'"));
    }
    assert_refused(
        read_weighted::<i64>(&folder, "w.txt", "0 1 9223372036854775808"),
        "w.txt:1: expected a weight of type i64, a whole number (others with --weight-type f64), \
         found '9223372036854775808'",
    );
}

#[test]
fn string_keys_are_any_text() {
    let folder = Folder::new();
    let read = read_strings(&folder, "names.txt", "ann böb\nböb 7 extra\r\n# no\nx#y //z\n").unwrap();
    let expected = [("ann", "böb"), ("böb", "7"), ("x#y", "//z")];
    assert_eq!(read.edges, expected.map(|(s, t)| (s.to_owned(), t.to_owned())));
    assert_refused(
        read_strings(&folder, "names.txt", b"ann bob\nann \xff\n"),
        "names.txt:2: expected a target, text in UTF-8, of 1 to 65535 bytes (0 with --empty-ids), found '\u{fffd}'",
    );
    assert_refused(
        read_strings(&folder, "names.txt", "ann\n"),
        "names.txt:1: expected a target, text in UTF-8, of 1 to 65535 bytes (0 with --empty-ids), found the end of the line",
    );
}

#[test]
fn a_line_that_does_not_fit_is_refused() {
    let folder = Folder::new();
    let path = folder.file("long.txt", format!("1 2\n1 2 {}\n", "x".repeat(300)));
    let options = SourceOptions { block_bytes: 200, ..SourceOptions::default() };
    let error = reading::read_once::<u64, u32>(&[&path], &options, 2).unwrap_err().to_string();
    assert!(error.ends_with("long.txt:2: expected lines of at most 200 B, found a longer one"), "{error}");
}

#[test]
fn several_files_are_one_input() {
    let folder = Folder::new();
    let (one, two) = (folder.file("one.txt", "1 2\n3 4"), folder.file("two.txt", "5 6\n7 8\n"));
    let read = read_files::<u64, u32>(&[&one, &two, &one], &SourceOptions::default()).unwrap();
    assert_eq!(read.pairs(), [(1, 2), (3, 4), (5, 6), (7, 8), (1, 2), (3, 4)]);
    let bad = folder.file("bad.txt", "1 2\n3\n");
    let result = read_files::<u64, u32>(&[&one, &bad], &SourceOptions::default());
    assert!(result.unwrap_err().contains("bad.txt:2: expected a target"));
}
