//! CSV: delimiters, headers, quotes, columns by name.

use anden_formats::{ColumnName, Format, KeyKind, OnError, SourceOptions, Span, WantedProperties};
use anden_graph::WeightType;

use crate::reading;
use crate::reading::{Folder, U32, assert_refused, read, read_files, read_strings, read_weighted};

fn named(columns: [Option<&str>; 3]) -> SourceOptions {
    let [source_column, target_column, weight_column] = columns.map(|name| name.map(str::to_owned));
    SourceOptions { source_column, target_column, weight_column, ..SourceOptions::default() }
}

#[test]
fn delimiters_and_headers_are_told() {
    let folder = Folder::new();
    for delimiter in [",", ";", "\t"] {
        for header in ["", "source,target,note\n", "# exported\n\nsrc,dst,w\n", "\u{feff}from,to,x\n"] {
            let text = format!("{header}1,2,x\n\n 3 , 4 ,y\r\n5,6,").replace(',', delimiter);
            let read = read(&folder, "some.csv", text).unwrap();
            assert_eq!(read.pairs(), [(1, 2), (3, 4), (5, 6)], "{delimiter:?} {header:?}");
        }
    }
    let integer = "an integer from 0 to 18446744073709551615 (any text with --ids string)";
    assert_refused(read(&folder, "a.csv", "x,2\n"), &format!("a.csv:1: expected a source, {integer}, found 'x'"));
    assert_refused(read(&folder, "a.csv", "1,\n"), &format!("a.csv:1: expected a target, {integer}, found ''"));
    assert_eq!(read(&folder, "empty.csv", "").unwrap().edges, []);
    assert_eq!(read(&folder, "empty.csv", "source,target\n").unwrap().edges, []);
}

/// Regression: delimiters within quotes counted, so that the wrong delimiter was chosen.
#[test]
fn delimiters_in_quotes_do_not_tell() {
    let folder = Folder::new();
    for header in
        ["from,to,\"remarks; more; and; so\"", " \"from\",to, \"say \"\"a;b;c;\"\"\"\r", "from,to,\"a;b;c;d\n;e\""]
    {
        let read = read(&folder, "a.csv", format!("{header}\n1,2,x\n")).unwrap();
        assert_eq!(read.pairs(), [(1, 2)], "{header}");
    }
    let read = read_strings(&folder, "b.csv", "\"Doe, John\";\"Roe, Jane\"\n").unwrap();
    assert_eq!(read.edges, [("Doe, John".to_owned(), "Roe, Jane".to_owned())]);
    let read = read_strings(&folder, "c.csv", "\"1,2\"\t\"a,b;c\"\n").unwrap();
    assert_eq!(read.edges, [("1,2".to_owned(), "a,b;c".to_owned())]);
    // A quote within a field is text.
    let read = read_strings(&folder, "d.csv", "5\"1;7\"8,a;3\n").unwrap();
    assert_eq!(read.edges, [("5\"1".to_owned(), "7\"8,a".to_owned())]);
}

#[test]
fn bars_and_given_delimiters_separate_columns() {
    let folder = Folder::new();
    let ldbc = "Person.id|Person.id|creationDate\n933|4139|2010-03-13T07:37:21.718+0000\n933|6597|2010-09-20\n";
    assert_eq!(read(&folder, "a.csv", ldbc).unwrap().pairs(), [(933, 4139), (933, 6597)]);
    // Keys may contain a bar if there is another delimiter.
    let proteins = read_strings(&folder, "b.csv", "sp|P1,sp|P2\n").unwrap();
    assert_eq!(proteins.edges, [("sp|P1".to_owned(), "sp|P2".to_owned())]);
    let given = |name: &str, delimiter, text: &str| {
        let options = SourceOptions { delimiter: Some(delimiter), ..SourceOptions::default() };
        read_files::<u64, u32>(&[&folder.file(name, text)], &options)
    };
    for (name, delimiter) in [("c.csv", b'~'), ("c.txt", b'~'), ("c.dat", b'|'), ("d.txt", b'\t'), ("e.csv", b':')] {
        let bar = char::from(delimiter);
        let text = format!("# made by hand\nsource{bar}target{bar}note, long\n1{bar}2{bar}x\n3{bar}\"4\"{bar}y,z\n");
        assert_eq!(given(name, delimiter, &text).unwrap().pairs(), [(1, 2), (3, 4)], "{name}");
    }
    let list = SourceOptions { format: Format::of_name("edgelist"), delimiter: Some(b'|'), ..SourceOptions::default() };
    assert_refused(
        read_files::<u64, u32>(&[&folder.file("f.txt", "1 2\n")], &list),
        "f.txt: cannot use --delimiter: blanks separate the columns of a list; --format csv reads CSV",
    );
    let twins = read(&folder, "g.csv", "id,name,name\n1,2,3\n");
    assert!(twins.unwrap_err().contains("cannot tell which columns are source and target"));
}

#[test]
fn columns_go_by_their_names() {
    let folder = Folder::new();
    let text = "kind,to,cost,from\nx,2,7,1\ny,4,8,3\n";
    let path = folder.file("some.csv", text);
    let options = SourceOptions { weights: U32, ..SourceOptions::default() };
    let usual = read_files::<u64, u32>(&[&path], &options).unwrap();
    assert_eq!((usual.pairs(), usual.weights), (vec![(1, 2), (3, 4)], vec![7, 8]));
    let options = SourceOptions { weights: U32, ..named([Some("to"), Some("FROM"), Some("cost")]) };
    let swapped = read_files::<u64, u32>(&[&path], &options).unwrap();
    assert_eq!(swapped.pairs(), [(2, 1), (4, 3)]);
    let result = read_files::<u64, u32>(&[&path], &named([Some("tail"), None, None]));
    assert_refused(
        result,
        "some.csv:1: cannot find the column 'tail' of --source-column: the columns are 'kind', 'to', 'cost' and 'from'",
    );
    let result = read_files::<u64, u32>(&[&path], &named([Some("to"), Some("to"), None]));
    assert_refused(
        result,
        "cannot take the column 'to' as both source and target: the columns are 'kind', 'to', 'cost' and 'from'",
    );
}

#[test]
fn weights_have_a_column() {
    let folder = Folder::new();
    assert_eq!(read_weighted::<f64>(&folder, "w.csv", "1,2,0.5\n2,3,\"7\"\n").unwrap().weights, [0.5, 7.0]);
    let result = read_weighted::<u32>(&folder, "w.csv", "1,2\n2,3\n");
    assert_refused(result, "w.csv:1: expected a column of weights, found '1,2'");
    let result = read_weighted::<u32>(&folder, "w.csv", "source,target,weight\n1,2,3\n2,3\n");
    assert_refused(result, "w.csv:3: expected at least 3 columns, found 2");
    let result = read_weighted::<u32>(&folder, "w.csv", "1,2,3\n2,3,-1\n");
    let range =
        "expected a weight of type u32, a whole number from 0 to 4294967295 (others with another --weight-type)";
    assert_refused(result, &format!("w.csv:2: {range}, found '-1'"));
    assert_refused(read_weighted::<u32>(&folder, "w.csv", "1,2,\n"), &format!("w.csv:1: {range}, found ''"));
}

#[test]
fn quotes_hold_delimiters() {
    let folder = Folder::new();
    let text = "source,target\n\"Doe, Jane\",\"said \"\"hi\"\"\"\n plain ,\" kept \"\n\"\"\"\",x\"y\n";
    let read = read_strings(&folder, "names.csv", text).unwrap();
    let expected = [("Doe, Jane", "said \"hi\""), (" plain ", " kept "), ("\"", "x\"y")];
    assert_eq!(read.edges, expected.map(|(s, t)| (s.to_owned(), t.to_owned())));
    let result = read_strings(&folder, "names.csv", "a,b\n\"open,c\n");
    assert_refused(result, "names.csv:2: expected a closing quote, found none behind '\"open,c'");
    let result = read_strings(&folder, "names.csv", "a,b\n\"x\"y,c\n");
    assert_refused(result, "names.csv:2: expected a delimiter after the quote, found 'y,c'");
    let result = read_strings(&folder, "names.csv", "a,b\n,c\n");
    assert_refused(
        result,
        "names.csv:2: expected a source, text in UTF-8, of 1 to 65535 bytes (0 with --empty-ids), found ''",
    );
}

#[test]
fn quotes_hold_line_ends() {
    let folder = Folder::new();
    // Rows of many lengths, so that blocks are cut at every place of a row.
    let name = |i: usize| format!("\n\"{}\",\r\n{}", "ab\n".repeat(i % 50), i % 7);
    let mut text = String::from("\u{feff}# rows\n\"source\",\"the\n\"\"target\"\"\"\n");
    let mut expected = Vec::new();
    for i in 0..300 {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        text += &format!("{} ,{}{}", quoted(&name(i)), quoted(&name(300 - i)), ["\n", "\r\n"][i % 2]);
        text += &format!("plain,{i}\"\n{}", ["", "\n"][i % 2]);
        expected.push((name(i), name(300 - i)));
        expected.push(("plain".to_owned(), format!("{i}\"")));
    }
    let path = folder.file("names.csv", &text);
    let columns = named([Some("source"), Some("the\n\"target\""), None]);
    let options = SourceOptions { keys: KeyKind::String, trim: true, ..columns };
    assert_eq!(read_files::<Span, u32>(&[&path], &options).unwrap().edges, expected);
    for block_bytes in 130..200 {
        let options = SourceOptions { block_bytes, ..options.clone() };
        let read = reading::read_once::<Span, u32>(&[&path], &options, 1).unwrap();
        assert_eq!(read.edges, expected, "{block_bytes}");
    }
    // Line numbers are those of an editor.
    let result = read_strings(&folder, "names.csv", "a,b\n\"x\n\n\",y\n\n,c\n");
    assert_refused(
        result,
        "names.csv:6: expected a source, text in UTF-8, of 1 to 65535 bytes (0 with --empty-ids), found ''",
    );
}

/// Regression: a block grew by the lines that it held completely. With a short line before a long one of the same row,
/// it never grew.
#[test]
fn row_may_start_with_a_shorter_line() {
    let text = format!("source,target\n\"{}\n{}\",b\n", "a".repeat(90), "x".repeat(110));
    let folder = Folder::new();
    let path = folder.file("short_then_long.csv", &text);
    for block_bytes in 115..250 {
        let options = SourceOptions { block_bytes, keys: KeyKind::String, ..SourceOptions::default() };
        let read = reading::read_once::<Span, u32>(&[&path], &options, 1).unwrap();
        assert_eq!(read.edges.len(), 1, "{block_bytes}");
    }
}

#[test]
fn a_quote_that_is_not_closed_is_named() {
    let folder = Folder::new();
    let result = read_strings(&folder, "names.csv", "a,b\n\"x\ny\",\"z\nc,d\n");
    assert_refused(result, "names.csv:3: expected a closing quote, found none behind '\"z'");
    let result = read_strings(&folder, "names.csv", "a,b\n\"x\ny\"z,\"\nc,d\n");
    assert_refused(result, "names.csv:3: expected a delimiter after the quote, found 'z,\"'");
    let result = read_strings(&folder, "names.csv", "\"a,b\nc,d\n");
    assert_refused(result, "names.csv:1: expected a closing quote, found none behind '\"a,b'");
    // Much more than a block.
    let text = format!("a,b\n\"x,\n{}", "c,d\n".repeat(1000));
    let result = read_strings(&folder, "names.csv", &text);
    assert_refused(result, "names.csv:2: expected a closing quote, found none behind '\"x,'");
    // A skipped line loses only itself.
    let options = SourceOptions { keys: KeyKind::String, on_error: OnError::Skip, ..SourceOptions::default() };
    let read = read_files::<Span, u32>(&[&folder.file("names.csv", &text)], &options).unwrap();
    assert_eq!((read.edges.len(), read.summary.num_skipped), (1001, 1));
    let path = folder.file("names.csv", "a,b\n\"x\nc,d\n\"y,z\n\"v\n\",w\n");
    let read = read_files::<Span, u32>(&[&path], &options).unwrap();
    let pairs: Vec<_> = read.edges.iter().map(|(s, t)| (&s[..], &t[..])).collect();
    assert_eq!((pairs, read.summary.num_skipped), (vec![("a", "b"), ("c", "d"), ("v\n", "w")], 2));
}

#[test]
fn a_header_of_strings_needs_usual_names() {
    let folder = Folder::new();
    assert_eq!(read_strings(&folder, "a.csv", "Source,Target\nann,bob\n").unwrap().edges.len(), 1);
    let options = SourceOptions { keys: KeyKind::String, ..named([Some("ann"), None, None]) };
    let path = folder.file("a.csv", "ann,bob\nx,y\n");
    let read = read_files::<Span, u32>(&[&path], &options).unwrap();
    assert_eq!(read.edges, [("x".to_owned(), "y".to_owned())]);
}

/// Regression: a header of unknown names became an edge, and the other columns were lost without a note.
#[test]
fn a_first_line_of_strings_is_never_guessed_silently() {
    let folder = Folder::new();
    let read = read_strings(&folder, "a.csv", "# names\nann,bob\n").unwrap();
    assert_eq!(read.edges.len(), 1);
    let [guess] = &read.notes[..] else { panic!("{:?}", read.notes) };
    let expected = "a.csv: the first line 'ann,bob' is taken as an edge: if it is a header, --source-column and";
    assert!(guess.contains(expected), "{guess}");
    for known in ["source,target\na,b\n", "ann,7\n"] {
        assert_eq!(read_strings(&folder, "a.csv", known).unwrap().notes, [""; 0], "{known}");
    }
    let result = read_strings(&folder, "a.csv", "src_name,dst_name,km\na,b,1\n").unwrap_err();
    let expected = "a.csv:1: expected names of columns or an edge, found 'src_name,dst_name,km', which may be either: ";
    assert!(result.contains(expected) && result.contains("--columns"), "{result}");
    let columns = Some(vec!["u".to_owned(), "v".to_owned()]);
    let options = SourceOptions { keys: KeyKind::String, columns, ..SourceOptions::default() };
    let path = folder.file("a.csv", "ann,bob,friend\nx,y,z\n");
    let read = read_files::<Span, u32>(&[&path], &options).unwrap();
    assert_eq!((read.edges.len(), read.notes.len()), (2, 1), "the third column is left out");
    // The rule for files of vertices.
    let edges = folder.file("edges.txt", "a 1\n");
    let vertices = |text: &str, vertex_properties: WantedProperties| {
        let vertices = vec![folder.file("v.csv", text).into()];
        let options = SourceOptions { vertices, vertex_properties, keys: KeyKind::String, ..SourceOptions::default() };
        read_files::<Span, u32>(&[&edges], &options).map(|read| (read.vertices.len(), !read.notes.is_empty()))
    };
    let refused = vertices("package,size\na,1\n", WantedProperties::All).unwrap_err();
    assert!(refused.contains("v.csv:1: expected names of columns or a vertex, found 'package,size'"), "{refused}");
    assert_eq!(vertices("package,size\na,1\n", WantedProperties::None), Ok((2, true)));
    assert_eq!(vertices("a\nb\n", WantedProperties::All), Ok((2, true)));
    assert_eq!(vertices("name\nb\n", WantedProperties::All), Ok((1, false)));
    assert_eq!(vertices("a,1\nb,2\n", WantedProperties::All), Ok((2, true)), "column 2 is left out");
}

#[test]
fn vertices_come_from_a_file_of_their_own() {
    let folder = Folder::new();
    let edges = folder.file("edges.txt", "1 2\n");
    let vertices = |name: &str, text: &str| {
        let options = SourceOptions { vertices: vec![folder.file(name, text).into()], ..SourceOptions::default() };
        read_files::<u64, u32>(&[&edges], &options).map(|read| read.vertices)
    };
    assert_eq!(vertices("v.txt", "# ids\n7\n8 label\n").unwrap(), ["7", "8"]);
    assert_eq!(vertices("v.csv", "label,id\nx,7\ny,9\n").unwrap(), ["7", "9"]);
    assert_eq!(vertices("v.csv", "7,x\n9,y\n").unwrap(), ["7", "9"]);
    let integer = "expected a vertex, an integer from 0 to 18446744073709551615 (any text with --ids string)";
    assert_refused(vertices("v.txt", "7\nx\n"), &format!("v.txt:2: {integer}, found 'x'"));
    assert_refused(vertices("v.csv", "7,a\nx,b\n"), &format!("v.csv:2: {integer}, found 'x'"));
}

/// Regression: columns after the first 1 MiB were left out without a note.
#[test]
fn late_columns_without_names_are_noted() {
    let folder = Folder::new();
    let rows = "1,2,3\n".repeat(180_000);
    for (row, numbers) in [
        ("4,5,6\n", &[3][..]),
        ("4,5,6,7\n", &[3, 4]),
        ("4,5,,\n", &[3, 4]),
        ("4,5,\"a,b\",6,\"c\"\"\"\r\n", &[3, 4, 5]),
        // An error in a column that is left out does not refuse the row.
        ("4,5,a\"b,6\n", &[3, 4]),
    ] {
        let path = folder.file("a.csv", format!("{rows}{row}"));
        let found = reading::read_once::<u64, u32>(&[&path], &SourceOptions::default(), 2).unwrap();
        assert_eq!(found.edges.len(), 180_001);
        assert_eq!(found.columns.left_out, numbers.iter().map(|&place| ColumnName::Number(place)).collect::<Vec<_>>());
        assert_eq!(found.notes.len(), 1, "{row:?}: {:?}", found.notes);
        let list = left_out(numbers);
        assert!(found.notes[0].contains(&format!("a.csv: {list} left out")), "{row:?}: {:?}", found.notes);
    }
}

fn left_out(numbers: &[usize]) -> &'static str {
    ["column 3 is", "columns 3 and 4 are", "columns 3, 4 and 5 are"][numbers.len() - 1]
}

#[test]
fn fields_have_a_limit() {
    let folder = Folder::new();
    let text = format!("a,{}\n", "x".repeat(70_000));
    let options = SourceOptions { keys: KeyKind::String, ..SourceOptions::default() };
    let path = folder.file("long.csv", text);
    let error = reading::read_once::<Span, u32>(&[&path], &options, 1).unwrap_err().to_string();
    assert!(error.ends_with("long.csv:1: column 2: expected at most 64.0 KiB, found 68.4 KiB"), "{error}");
}

#[test]
fn callers_must_ask_for_what_the_options_say() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "1,2,3\n");
    let options = SourceOptions { weights: Some(WeightType::F64), ..SourceOptions::default() };
    assert!(reading::read_once::<u64, u32>(&[&path], &options, 1).is_err());
    assert!(reading::read_once::<Span, f64>(&[&path], &options, 1).is_err());
    assert!(reading::read_once::<u64, f64>(&[&path], &options, 1).is_ok());
}
