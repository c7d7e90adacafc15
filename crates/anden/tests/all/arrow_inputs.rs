//! Loads and appends from Arrow record batches in memory.

use std::sync::Arc;

use anden::load::{ArrowInput, InputPath, KeyKind, SourceOptions, VertexInput, WantedProperties};
use anden::{AppendOptions, Database, KeyScheme, LoadOptions, Options, OwnedValue, Session, WeightType};
use arrow_array::builder::{FixedSizeListBuilder, Float64Builder, ListBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, StructArray, UInt32Array,
};
use arrow_schema::{DataType, Field};

type Column<'a> = (&'a str, ArrayRef);

fn input<const N: usize>(columns: [Column<'_>; N]) -> InputPath {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    // Two batches, one of them empty.
    let batches = vec![batch.slice(0, 0), batch.clone()];
    InputPath::Arrow(ArrowInput::new("rows", batch.schema(), batches).unwrap())
}

fn integers(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn load(inputs: &[InputPath], options: &LoadOptions) -> anden::Result<Database> {
    Ok(Database::load_in_memory(inputs, options, &Session::new(2).unwrap())?.0)
}

fn edges(db: &Database) -> Vec<String> {
    let view = db.view().unwrap();
    let rows = view.edges(&[]).unwrap().rows();
    rows.map(|row| row.unwrap().iter().map(|value| format!("{value:?} ")).collect()).collect()
}

fn refusal(inputs: &[InputPath], options: &LoadOptions) -> String {
    load(inputs, options).unwrap_err().to_string()
}

#[test]
fn integers_of_any_width_are_keys() {
    let (source, target): (Vec<i64>, Vec<i64>) = ((0..70_000).map(|i| i % 300).collect(), (0..70_000).collect());
    let wide = input([("source", integers(&source)), ("target", integers(&target))]);
    let narrow = |values: &[i64]| values.iter().map(|&value| value as i32).collect::<Vec<_>>();
    let signed = Arc::new(Int32Array::from(narrow(&source))) as ArrayRef;
    let unsigned: ArrayRef = Arc::new(UInt32Array::from_iter_values(target.iter().map(|&value| value as u32)));
    let mixed = input([("source", signed), ("target", unsigned)]);
    for keys in [KeyScheme::Integer, KeyScheme::Dense] {
        let options = LoadOptions { graph: Options { keys, ..Options::default() }, ..LoadOptions::default() };
        let [wide, mixed] = [&wide, &mixed].map(|input| load(std::slice::from_ref(input), &options).unwrap());
        assert_eq!(edges(&wide).len(), 70_000, "{keys:?}");
        assert_eq!(edges(&wide), edges(&mixed), "{keys:?}");
    }
}

#[test]
fn weights_properties_and_text_keys_are_read() {
    let keys: DictionaryArray<arrow_array::types::Int32Type> = ["a", "b", "a"].into_iter().collect();
    let columns = [
        ("source", Arc::new(keys) as ArrayRef),
        ("target", Arc::new(StringArray::from(vec!["b", "c", "c"])) as ArrayRef),
        ("weight", integers(&[3, 4, 5])),
        ("kind", Arc::new(StringArray::from(vec![Some("x"), None, Some("y")])) as ArrayRef),
    ];
    let graph = Options { keys: KeyScheme::String, weight_type: Some(WeightType::F64), ..Options::default() };
    let ages = [
        ("id", Arc::new(StringArray::from(vec!["a", "d"])) as ArrayRef),
        ("age", Arc::new(Int32Array::from(vec![30, 40])) as ArrayRef),
    ];
    let source = SourceOptions {
        edge_properties: WantedProperties::All,
        vertex_properties: WantedProperties::All,
        vertices: vec![VertexInput::from(input(ages))],
        ..SourceOptions::default()
    };
    let db = load(&[input(columns)], &LoadOptions { graph, source, ..LoadOptions::default() }).unwrap();
    let view = db.view().unwrap();
    assert_eq!((view.num_vertices(), view.num_edges()), (4, 3));
    let mut rows = view.edges(&["source", "target", "weight", "kind"]).unwrap().rows().collect::<Result<Vec<_>, _>>();
    let text = |text: &str| OwnedValue::String(text.to_owned());
    let last = rows.as_mut().unwrap().pop().unwrap();
    assert_eq!(last, [text("b"), text("c"), OwnedValue::F64(4.0), OwnedValue::Null]);
    assert_eq!(view.find_vertices("age", 40_i64).unwrap(), [view.vertex("d").unwrap()]);
}

#[test]
fn bad_rows_are_named() {
    let one = |source: ArrayRef| [input([("source", source), ("target", integers(&[1, 2]))])];
    let plain = LoadOptions::default();
    let text = refusal(&one(integers(&[5, -1])), &plain);
    assert!(text.starts_with("rows:2: expected a source, an integer from 0") && text.ends_with("found -1"), "{text}");
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(1)]));
    assert!(refusal(&one(nulls), &plain).starts_with("rows:1: expected a source"));
    let dense = LoadOptions { graph: Options { keys: KeyScheme::Dense, ..Options::default() }, ..plain.clone() };
    assert!(refusal(&one(integers(&[1 << 40, 1])), &dense).contains("found 1099511627776"));
    let lists: ArrayRef = Arc::new(arrow_array::BooleanArray::from(vec![true, false]));
    assert!(refusal(&one(lists), &plain).contains("found the Arrow type Boolean"));
    let weights: ArrayRef = Arc::new(Float64Array::from(vec![0.5, f64::NAN]));
    let rows = input([("source", integers(&[1, 2])), ("target", integers(&[1, 2])), ("weight", weights)]);
    let weighted = Options { weight_type: Some(WeightType::F64), ..Options::default() };
    let text = refusal(&[rows], &LoadOptions { graph: weighted, ..plain });
    assert!(text.starts_with("rows:2: expected a weight") || text.contains("found NaN"), "{text}");
}

#[test]
fn empty_text_is_a_key_by_option() {
    let text = |values: [&str; 2]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let rows = [input([("source", text(["a", ""])), ("target", text(["", "b"]))])];
    let graph = Options { keys: KeyScheme::String, ..Options::default() };
    let source = SourceOptions { keys: KeyKind::String, ..SourceOptions::default() };
    let options = LoadOptions { graph, source, ..LoadOptions::default() };
    let found = refusal(&rows, &options);
    assert!(found.starts_with("rows:1: expected a target") && found.ends_with("(0 with --empty-ids), found ''"));
    let source = SourceOptions { empty_ids: true, ..options.source };
    let db = load(&rows, &LoadOptions { source, ..options }).unwrap();
    assert_eq!(edges(&db).len(), 2);
    let view = db.view().unwrap();
    assert_eq!(view.key(view.vertex("").unwrap()).unwrap(), "".into());
}

#[test]
fn lists_become_json() {
    let (ends, names) = (integers(&[1, 2, 3, 4]), Arc::new(Field::new("item", DataType::Utf8, true)));
    let mut tags = ListBuilder::new(StringBuilder::new());
    tags.append_value([Some("skipped")]);
    tags.append_value([Some("a;b"), None, Some("\"c\"")]);
    tags.append_null();
    tags.append_value(Vec::<Option<&str>>::new());
    tags.append_value([Some("é")]);
    // A part of a column keeps the items of the whole column.
    let tags: ArrayRef = Arc::new(tags.finish().slice(1, 4));
    let mut nested = ListBuilder::new(FixedSizeListBuilder::new(Float64Builder::new(), 2));
    for row in 0..4 {
        for item in 0..row {
            nested.values().values().append_slice(&[f64::from(item) + 0.5, f64::INFINITY]);
            nested.values().append(true);
        }
        nested.append(true);
    }
    let nested: ArrayRef = Arc::new(nested.finish());
    let rows = input([("source", ends.clone()), ("target", ends.clone()), ("tags", tags), ("nested", nested)]);
    let source = SourceOptions { edge_properties: WantedProperties::All, ..SourceOptions::default() };
    let options = LoadOptions { source, ..LoadOptions::default() };
    let db = load(&[rows], &options).unwrap();
    let view = db.view().unwrap();
    let found: Vec<Vec<OwnedValue>> = view.edges(&[]).unwrap().rows().map(|row| row.unwrap()[2..].to_vec()).collect();
    let text = |text: &str| OwnedValue::String(text.to_owned());
    let expected = [
        [text(r#"["a;b",null,"\"c\""]"#), text("[]")],
        [OwnedValue::Null, text(r#"[[0.5,"inf"]]"#)],
        [text("[]"), text(r#"[[0.5,"inf"],[1.5,"inf"]]"#)],
        [text("[\"é\"]"), text(r#"[[0.5,"inf"],[1.5,"inf"],[2.5,"inf"]]"#)],
    ];
    assert_eq!(found, expected.map(|row| row.to_vec()));
    // Structures have no such text.
    let pairs = StructArray::from(vec![(names, Arc::new(StringArray::from(vec!["a", "b", "c", "d"])) as ArrayRef)]);
    let rows = input([("source", ends.clone()), ("target", ends), ("pair", Arc::new(pairs) as ArrayRef)]);
    assert!(refusal(&[rows], &options).contains("column 'pair': no property has the Arrow type Struct"));
}

#[test]
fn rows_are_appended_and_removed() {
    let two = |source: &[i64], target: &[i64]| input([("source", integers(source)), ("target", integers(target))]);
    let db = load(&[two(&[1, 2], &[2, 3])], &LoadOptions::default()).unwrap();
    let remove = vec![two(&[1], &[2]), input([("key", integers(&[9]))])];
    let options = AppendOptions { remove, ..AppendOptions::default() };
    let report = db.append_files(&[two(&[3, 9], &[4, 9])], &options).unwrap();
    assert_eq!(report.snapshot, 2);
    let view = db.view().unwrap();
    assert_eq!((view.has_edge(1, 2).unwrap(), view.has_edge(3, 4).unwrap()), (false, true));
}
