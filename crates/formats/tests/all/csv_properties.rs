//! Properties in text columns: names, types, nulls, and refused inputs.

use anden_formats::{
    EpochUnit, InputPath, KeyKind, OnError, Source, SourceOptions, Span, StatedType, WantedProperties,
};
use anden_graph::WeightType;
use anden_graph::property::{PropertyColumn, PropertyType};

use crate::reading;
use crate::reading::{Folder, Read, assert_refused, read_files};

fn all() -> SourceOptions {
    let (edge_properties, vertex_properties) = (WantedProperties::All, WantedProperties::All);
    SourceOptions { edge_properties, vertex_properties, ..SourceOptions::default() }
}

fn named(names: &[&str]) -> SourceOptions {
    let names = names.iter().map(|name| name.to_string()).collect();
    SourceOptions { edge_properties: WantedProperties::Named(names), ..SourceOptions::default() }
}

/// The properties of edges as `name:type`.
fn schema(paths: &[&std::path::Path], options: &SourceOptions) -> String {
    let inputs: Vec<InputPath> = paths.iter().map(|path| InputPath::File(path.to_path_buf())).collect();
    let source = Source::open(&inputs, options.clone()).unwrap();
    let shown: Vec<_> = source.facts().edge_properties.iter().map(|(name, of)| format!("{name}:{of}")).collect();
    shown.join(" ")
}

/// The values of each row, nulls as a dash.
fn rows(columns: &[PropertyColumn]) -> Vec<String> {
    let shown = |column: &PropertyColumn, row| match column.get(row) {
        value if value.is_null() => "-".to_owned(),
        value => value.to_string(),
    };
    let num_rows = columns.first().map_or(0, PropertyColumn::len);
    (0..num_rows).map(|row| columns.iter().map(|c| shown(c, row)).collect::<Vec<_>>().join("|")).collect()
}

const TEXT: &str = "\
source,delay,target,on,late,\"a, b\",share,at
1,5,2,2024-02-29,true,\"x\"\"y\",.5,2024-02-29T12:00:00Z
1,,2,,false,\"\",1,
3,-7,1,1969-12-31,,,1e3,1970-01-01
";

#[test]
fn other_columns_are_properties() {
    let folder = Folder::new();
    let path = folder.file("a.csv", TEXT);
    assert_eq!(schema(&[&path], &all()), "delay:i64 on:date late:boolean a, b:string share:f64 at:timestamp");
    let read: Read<u32> = read_files::<u64, u32>(&[&path], &all()).unwrap();
    assert_eq!(read.pairs(), [(1, 2), (1, 2), (3, 1)]);
    let expected = [
        "5|2024-02-29|true|x\"y|0.5|2024-02-29T12:00:00Z",
        "-|-|false||1.0|-",
        "-7|1969-12-31|-|-|1000.0|1970-01-01T00:00:00Z",
    ];
    assert_eq!(rows(&read.properties), expected);
    // No properties by default; otherwise in the order of the file.
    assert_eq!(schema(&[&path], &SourceOptions::default()), "");
    assert_eq!(schema(&[&path], &named(&["share", "on"])), "on:date share:f64");
    let read: Read<u32> = read_files::<u64, u32>(&[&path], &named(&["share"])).unwrap();
    assert_eq!(rows(&read.properties), ["0.5", "1.0", "1000.0"]);
    let options = SourceOptions { weights: Some(WeightType::F64), weight_column: Some("share".into()), ..all() };
    assert!(!schema(&[&path], &options).contains("share"));
}

#[test]
fn null_words_are_null_in_any_column() {
    let folder = Folder::new();
    let text = "source,target,n,name,on\n1,2,NA,NA,2020-01-01\n2,3,7,\"NULL\", NA\n3,4,\"NA\",na,\n";
    let path = folder.file("a.csv", text);
    let null_words = vec!["NA".to_owned(), "NULL".to_owned()];
    let options = SourceOptions { null_words: null_words.clone(), ..all() };
    assert_eq!(schema(&[&path], &options), "n:i64 name:string on:date");
    let read: Read<u32> = read_files::<u64, u32>(&[&path], &options).unwrap();
    assert_eq!(rows(&read.properties), ["-|-|2020-01-01", "7|-|-", "-|na|-"]);
    // Without the option, such words are text.
    assert_eq!(schema(&[&path], &all()), "n:string name:string on:string");
    // An empty word makes quotes around nothing null.
    let quoted = folder.file("b.txt", "source target name\na b \"\"\n");
    let empty = SourceOptions { null_words: vec![String::new()], keys: KeyKind::String, ..all() };
    let read: Read<u32> = read_files::<Span, u32>(&[&quoted], &empty).unwrap();
    assert_eq!(rows(&read.properties), ["-"]);
    let keys = folder.file("c.csv", "source,target\na,NA\n");
    let strings = SourceOptions { null_words, keys: KeyKind::String, ..all() };
    assert_refused(
        read_files::<Span, u32>(&[&keys], &strings),
        "c.csv:2: expected a target, text in UTF-8, of 1 to 65535 bytes (0 with --empty-ids), found 'NA', which means null",
    );
}

#[test]
fn numbers_since_1970_are_timestamps() {
    let folder = Folder::new();
    let list = folder.file("a.txt", "1 2 1300000000\n2 3 1300000100.5\n");
    let columns = ["u", "v", "time:epoch_s"].map(str::to_owned).to_vec();
    let by_name = SourceOptions { columns: Some(columns), ..all() };
    assert_eq!(schema(&[&list], &by_name), "time:timestamp");
    let read: Read<u32> = read_files::<u64, u32>(&[&list], &by_name).unwrap();
    let times = ["2011-03-13T07:06:40Z", "2011-03-13T07:08:20.5Z"];
    assert_eq!(rows(&read.properties), times);
    // By option, also beside a file of timestamps.
    let numbers = folder.file("b.csv", "source,target,time,n\n1,2,1300000000000,5\n1,3,,6\n");
    let texts = folder.file("c.csv", "source,target,time:timestamp\n2,3,2011-03-13T07:08:20.5Z\n");
    let mut by_option = all();
    by_option.state_types(&[("time".to_owned(), StatedType::Epoch(EpochUnit::Milliseconds))]);
    assert_eq!(schema(&[&numbers, &texts], &by_option), "time:timestamp n:i64");
    let read: Read<u32> = read_files::<u64, u32>(&[&numbers, &texts], &by_option).unwrap();
    assert_eq!(rows(&read.properties), [format!("{}|5", times[0]), "-|6".to_owned(), format!("{}|-", times[1])]);
    // JSON lines and files of vertices, likewise.
    let lines = folder.file("d.jsonl", "{\"source\":1,\"target\":2,\"time\":1300000000000}\n");
    let read: Read<u32> = read_files::<u64, u32>(&[&lines], &by_option).unwrap();
    assert_eq!(rows(&read.properties), times[..1]);
    let vertices = folder.file("e.csv", "id,time\n7,1300000000000\n");
    let with_vertices = SourceOptions { vertices: vec![vertices.into()], ..by_option.clone() };
    let read: Read<u32> = read_files::<u64, u32>(&[&lines], &with_vertices).unwrap();
    assert_eq!(rows(&read.vertex_properties), times[..1]);
    let large = folder.file("f.csv", "source,target,time\n1,2,1e30\n");
    assert_refused(
        read_files::<u64, u32>(&[&large], &by_option),
        "f.csv:2: column 'time': expected milliseconds since 1970 within 64 bits of microseconds, found 1e30",
    );
    let numbers = folder.file("h.csv", "source,target,time:timestamp\n1,2,1300000000\n");
    assert_refused(
        read_files::<u64, u32>(&[&numbers], &all()),
        "found '1300000000': the types epoch_s and epoch_ms take numbers since 1970",
    );
    let words = folder.file("g.csv", "source,target,time\n1,2,noon\n");
    assert_refused(
        read_files::<u64, u32>(&[&words], &by_option),
        "g.csv:2: column 'time': expected a number of type f64, found 'noon'",
    );
}

#[test]
fn names_carry_types() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "source:i64,target,code:string,data:bytes,x:float\n1,2,007,0x0a,nan\n");
    assert_eq!(schema(&[&path], &all()), "code:string data:bytes x:f64");
    let read: Read<u32> = read_files::<u64, u32>(&[&path], &all()).unwrap();
    assert_eq!(rows(&read.properties), ["007|0x0a|NaN"]);
    let said = SourceOptions { edge_types: vec![("n".into(), PropertyType::String)], ..all() };
    let path = folder.file("b.csv", "source,target,n\n1,2,5\n");
    assert_eq!((schema(&[&path], &all()), schema(&[&path], &said)), ("n:i64".into(), "n:string".into()));
    let path = folder.file("c.csv", "source,target,n:i64\n1,2,5\n");
    let result = read_files::<u64, u32>(&[&path], &said);
    assert_refused(result, "c.csv: column 'n': expected type string, found i64");
}

#[test]
fn several_inputs_join_their_columns() {
    let folder = Folder::new();
    let first = folder.file("a.csv", "source,target,n,x\n1,2,5,1\n");
    let second = folder.file("b.csv", "x,source,target,m\n2.5,3,4,yes\n");
    let third = folder.file("c.csv", "source,target,x,n\n5,6,,never\n");
    let plain = folder.file("d.txt", "7 8\n");
    let paths: [&std::path::Path; 4] = [&first, &second, &third, &plain];
    assert_eq!(schema(&paths, &all()), "n:string x:f64 m:string");
    let read: Read<u32> = read_files::<u64, u32>(&paths, &all()).unwrap();
    assert_eq!(rows(&read.properties), ["5|1.0|-", "-|2.5|yes", "never|-|-", "-|-|-"]);
    let said = folder.file("e.csv", "source,target,n:i64\n1,2,3\n");
    assert_eq!(schema(&[&first, &said], &all()), "n:i64 x:i64");
    let clash = folder.file("f.csv", "source,target,n:date\n1,2,\n");
    let message = Source::open(&[InputPath::File(said), InputPath::File(clash)], all()).unwrap_err().to_string();
    assert!(message.contains("f.csv: column 'n': expected type i64 as in ") && message.ends_with("found date"));
}

#[test]
fn columns_without_a_header_are_named() {
    let folder = Folder::new();
    let columns = |names: &[&str]| {
        let columns = Some(names.iter().map(|name| name.to_string()).collect());
        SourceOptions { columns, ..all() }
    };
    let path = folder.file("times.txt", "# u v t kind\n1 2 1341100972 RT\n\t2  1\t1341100973  \"a b\"\r\n% end\n");
    let options = columns(&["source", "target", "time", "kind"]);
    assert_eq!(schema(&[&path], &options), "time:i64 kind:string");
    let read: Read<u32> = read_files::<u64, u32>(&[&path], &options).unwrap();
    assert_eq!(
        (read.pairs(), rows(&read.properties)),
        (vec![(1, 2), (2, 1)], vec!["1341100972|RT".into(), "1341100973|a b".into()])
    );
    let wide = folder.file("wide.txt", "1 2 7 RT\n2 1 8 RT more\n");
    let refused = read_files::<u64, u32>(&[&wide], &options);
    assert_refused(refused, "wide.txt:2: expected at most 4 columns, found another one: 'more'");
    let path = folder.file("a.csv", "5,1,2\n,3,4\n");
    let options = columns(&["n:f64", "source", "target"]);
    let read: Read<u32> = read_files::<u64, u32>(&[&path], &options).unwrap();
    assert_eq!((read.pairs(), rows(&read.properties)), (vec![(1, 2), (3, 4)], vec!["5.0".into(), "-".into()]));
    let result = read_files::<u64, u32>(&[&path], &columns(&["source", "target", "n", "m"]));
    assert_refused(result, "a.csv:1: expected 4 columns, as their names are given, found '5,1,2'");
}

#[test]
fn vertices_have_properties() {
    let folder = Folder::new();
    let edges = folder.file("e.csv", "source,target\n1,2\n");
    let vertices = folder.file("v.csv", "born,id,name\n1815,2,Ada\n,9,\n");
    let options = SourceOptions { vertices: vec![vertices.clone().into()], ..all() };
    let read: Read<u32> = read_files::<u64, u32>(&[&edges], &options).unwrap();
    assert_eq!(
        (&read.vertices[..], rows(&read.vertex_properties)),
        (&["2".to_owned(), "9".into()][..], vec!["1815|Ada".into(), "-|-".into()])
    );
    assert_eq!((read.properties.len(), read.pairs()), (0, vec![(1, 2)]));
    let options = SourceOptions { vertex_column: Some("born".into()), ..options };
    let result = read_files::<u64, u32>(&[&edges], &options);
    assert_refused(
        result,
        "v.csv:3: expected a vertex, an integer from 0 to 18446744073709551615 (any text with --ids string), found ''",
    );
    let options = SourceOptions { vertices: vec![vertices.into()], vertex_column: Some("key".into()), ..all() };
    assert_refused(
        read_files::<u64, u32>(&[&edges], &options),
        "v.csv:1: cannot find the column 'key' of --vertex-column: the columns are 'born', 'id' and 'name'",
    );
}

#[test]
fn bad_columns_are_refused() {
    let folder = Folder::new();
    let refused = |text: &str, options: SourceOptions, expected: &str| {
        assert_refused(read_files::<u64, u32>(&[&folder.file("a.csv", text)], &options), expected);
    };
    refused(
        "source,target,n,n\n1,2,3,4\n",
        all(),
        "a.csv:1: there are two properties with the name 'n': rename one of them",
    );
    refused(
        "source,target,n\n1,2,3\n",
        named(&["m"]),
        "a.csv: expected the column 'm' that --properties names, found none",
    );
    refused(
        "source,target,n:i64\n1,2,x\n",
        all(),
        "a.csv:2: column 'n': expected a whole number of type i64, found 'x'",
    );
    refused("source,target,n\n1,2,3\n1,2\n", all(), "a.csv:3: expected at least 3 columns, found 2");
    refused("source,target,a\u{1}\n1,2,3\n", all(), r"without control characters, found 'a\u{1}'");
    // After the beginning from which types are inferred.
    let text = format!("source,target,n\n{}1,2,late\n", "1,2,3\n".repeat(180_000));
    let path = folder.file("a.csv", text);
    let error = reading::read_once::<u64, u32>(&[&path], &all(), 2).unwrap_err().to_string();
    assert!(error.ends_with(
        "a.csv:180002: column 'n': expected a whole number of type i64, found 'late': the lines at the beginning \
         have type i64; --property-types 'n:string' or this name in the header gives another one"
    ));
    // A skipped row leaves no values in the columns before the faulty one.
    let text = "source,target,k,n:i64\n1,2,a,1\n3,4,b,x\n5,6,c,\n,7,d,8\n";
    let options = SourceOptions { on_error: OnError::Skip, ..all() };
    let read: Read<u32> = read_files::<u64, u32>(&[&folder.file("s.csv", text)], &options).unwrap();
    assert_eq!((read.pairs(), rows(&read.properties)), (vec![(1, 2), (5, 6)], vec!["a|1".into(), "c|-".into()]));
    assert_eq!(read.summary.num_skipped, 2);
}

#[test]
fn string_keys_and_compressed_files_have_properties_too() {
    let folder = Folder::new();
    let packed = zstd::encode_all("source,target,n\nann,bob,1\nbob,\"c\"\"d\",\n".as_bytes(), 1).unwrap();
    let path = folder.file("a.csv.zst", packed);
    let options = SourceOptions { keys: KeyKind::String, ..all() };
    let read: Read<u32> = read_files::<Span, u32>(&[&path], &options).unwrap();
    assert_eq!(read.edges, [("ann".into(), "bob".into()), ("bob".into(), "c\"d".into())]);
    assert_eq!(rows(&read.properties), ["1", "-"]);
}
