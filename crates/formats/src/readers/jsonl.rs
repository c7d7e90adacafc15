//! JSON lines: an object per line, which is an edge or, in a file of vertices, a vertex.
//!
//! Members of the objects are columns. Their names tell source, target and weight, as [`columns`](crate::columns)
//! describes. The objects at the beginning of an input decide the columns and their types. A later object may lack
//! members, whose values are then null. A member with another name is an error, unless the caller names the properties.
//!
//! A list or an object as a value becomes a property of text, which holds its JSON.
//!
//! # Source
//! <https://jsonlines.org>

use std::collections::HashMap;
use std::sync::Arc;

use anden_base::message::shown;
use anden_graph::Weight;
use anden_graph::property::{ColumnBuilder, Inference, PropertyType};
use serde_json::value::RawValue;

use crate::Error;
use crate::Result;
use crate::blocks::TextBlock;
use crate::chunk::ParseContext;
use crate::collector::InputCollector;
use crate::columns::TableColumnNames;
use crate::input_format::{InputFormat, Recognition};
use crate::json::{JsonMember, read_members, text_of};
use crate::key::FieldKey;
use crate::lines::ParsedBlock;
use crate::number::{parse_weight, weight_range};
use crate::options::{ColumnName, InputColumns, SourceOptions, WantedProperties};
use crate::outcome::unexpected;
use crate::part::PartProperties;
use crate::probe::{InputProbe, SAMPLE_BYTES};
use crate::text_reader::{NoRows, TextInput, TextLines};

/// The largest number of members of the objects at the beginning.
const MAX_MEMBERS: usize = 10_000;

/// The format.
pub(super) struct JsonLines;

impl InputFormat for JsonLines {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    fn endings(&self) -> &'static [(&'static str, &'static str)] {
        &[("jsonl", "JSON lines"), ("ndjson", "JSON lines")]
    }

    fn recognises(&self, text: &[u8]) -> Recognition {
        let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
        let mut members = Vec::new();
        let is_object = lines.next().is_some_and(|line| read_members(line, &mut members).is_ok());
        let is_nested = members.iter().any(|(_, value)| value.get().starts_with(['[', '{']));
        // A single object with lists or objects may be a whole graph in JSON.
        let is_sure = is_object && (!is_nested || lines.next().is_some_and(|line| line.starts_with(b"{")));
        if is_sure { Recognition::Sure } else { Recognition::No }
    }

    fn trusts_name(&self, text: &[u8]) -> bool {
        // The beginning may be a part of one long line, or have a fault that its line number explains.
        text.trim_ascii_start().starts_with(b"{")
    }

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        to.direction_known(&input.path, None)?;
        open(input, false, to)
    }

    fn open_vertices(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        open(input, true, to)
    }
}

fn open(input: InputProbe, is_of_vertices: bool, to: &mut InputCollector<'_>) -> Result<()> {
    let options = to.options;
    let Some(sample) = JsonSample::of(&input)? else {
        to.push(input, Box::new(TextInput::new(NoRows))).is_of_vertices = is_of_vertices;
        return Ok(());
    };
    let (mut lines, properties) = sample.lines(is_of_vertices, options).map_err(|what| input.bad(&what))?;
    let wanted = if is_of_vertices { &options.vertex_properties } else { &options.edge_properties };
    let name = |place: usize| ColumnName::Name(sample.names[place].clone());
    let is_left_out = |place: &usize| !lines.is_key_or_weight(*place) && !properties.places.contains(place);
    let of_edges = |place: Option<usize>| place.filter(|_| !is_of_vertices).map(name);
    let columns = InputColumns {
        source: of_edges(Some(lines.source)),
        target: of_edges(lines.target),
        weight: of_edges(lines.weight),
        left_out: (0..sample.names.len()).filter(is_left_out).map(name).collect(),
    };
    let hint = to.hint(&columns, wanted);
    to.describe(&input.path, columns, !is_of_vertices, hint);
    // If all properties are wanted, an unknown member would be lost without notice.
    lines.refuses_others = *wanted == WantedProperties::All;
    let part = to.push(input, Box::new(TextInput::new(lines)));
    part.is_of_vertices = is_of_vertices;
    part.properties[usize::from(is_of_vertices)] = properties;
    Ok(())
}

/// The columns of the objects at the beginning of an input.
#[derive(Default)]
struct JsonSample {
    names: Vec<String>,
    inferences: Vec<Inference>,
    places: HashMap<String, usize>,
}

impl JsonSample {
    /// Reads the beginning; `None` if it has no lines.
    ///
    /// # Errors
    /// The input cannot be read, or its first line is no object.
    fn of(input: &InputProbe) -> Result<Option<Self>> {
        let (text, is_cut) = input.sample(SAMPLE_BYTES)?;
        let (mut sample, mut num_objects) = (Self::default(), 0);
        for (number, line) in (1..).zip(text.split(|&byte| byte == b'\n')) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match sample.add(line) {
                // Faults of later lines are reported when they are parsed.
                Err(what) if sample.names.is_empty() => {
                    return Err(Error::Line { path: input.path.clone(), line: number, what });
                }
                _ => num_objects += 1,
            }
        }
        // Blank lines alone are an empty input, unless the sample ends before the first object.
        if sample.names.is_empty() && (num_objects > 0 || is_cut) {
            return Err(input.bad("expected an object with members at the beginning, found none"));
        }
        Ok(Some(sample).filter(|sample| !sample.names.is_empty()))
    }

    fn add(&mut self, line: &[u8]) -> Result<(), String> {
        let mut members = Vec::new();
        read_members(line, &mut members)?;
        for (name, value) in members {
            let place = match self.places.get(&*name) {
                Some(&place) => place,
                None if self.names.len() == MAX_MEMBERS => {
                    return Err(format!("expected at most {MAX_MEMBERS} members, found more"));
                }
                None => {
                    self.names.push(name.clone().into_owned());
                    self.inferences.push(Inference::default());
                    self.places.insert(name.into_owned(), self.names.len() - 1);
                    self.names.len() - 1
                }
            };
            // A null says nothing about the type of its column.
            if let Some(text) = text_of(value)? {
                match value.get().starts_with('[') {
                    true => self.inferences[place].add_list(text.as_bytes()),
                    false => self.inferences[place].add(text.as_bytes()),
                }
            }
        }
        Ok(())
    }

    /// The roles of the columns, and the properties.
    ///
    /// # Errors
    /// Neither options nor names identify the keys, or the number of properties exceeds the limit.
    fn lines(&self, is_of_vertices: bool, options: &SourceOptions) -> Result<(ObjectLines, PartProperties), String> {
        let names = TableColumnNames::new(self.names.iter().map(String::as_str));
        let is_numeric = |place: usize| self.inferences[place].property_type().is_numeric();
        let (source, target, weight) = match is_of_vertices {
            true => (names.vertex_role(options)?, None, None),
            false => {
                let roles = names.edge_roles(options, is_numeric)?;
                (roles.source, Some(roles.target), roles.weight)
            }
        };
        let mut lines = ObjectLines {
            source,
            target,
            weight,
            refuses_others: false,
            // Shared, because a clone of the lines travels with each block.
            columns: Arc::new(
                self.names.iter().map(|name| JsonColumn { name: name.clone(), property: None }).collect(),
            ),
            places: Arc::new(self.places.clone()),
        };
        let wanted = if is_of_vertices { &options.vertex_properties } else { &options.edge_properties };
        let mut properties = PartProperties::default();
        for (place, name) in self.names.iter().enumerate() {
            if !lines.is_key_or_weight(place) && wanted.wants(name) {
                let found = self.inferences[place];
                properties.own.add(name.clone(), found.property_type()).map_err(|error| error.to_string())?;
                properties.inferred.push(Some(found));
                properties.places.push(place);
            }
        }
        lines.set_types(&properties);
        Ok((lines, properties))
    }
}

/// A member of the objects.
#[derive(Clone)]
struct JsonColumn {
    name: String,
    /// The type, if the column is a property.
    property: Option<PropertyType>,
}

/// Lines of objects.
#[derive(Clone)]
struct ObjectLines {
    source: usize,
    /// `None` in a file of vertices.
    target: Option<usize>,
    weight: Option<usize>,
    /// Whether a member that is no column is an error.
    refuses_others: bool,
    columns: Arc<Vec<JsonColumn>>,
    /// The columns by name.
    places: Arc<HashMap<String, usize>>,
}

impl ObjectLines {
    fn is_key_or_weight(&self, place: usize) -> bool {
        place == self.source || Some(place) == self.target || Some(place) == self.weight
    }

    fn set_types(&mut self, properties: &PartProperties) {
        let mut columns = self.columns.to_vec();
        for (&place, (_, property_type)) in properties.places.iter().zip(properties.own.iter()) {
            columns[place].property = Some(property_type);
        }
        self.columns = Arc::new(columns);
    }
}

impl TextLines for ObjectLines {
    // Keys are copied, so that a block does not keep the text of all its objects.
    const HAS_KEYS_IN_TEXT: bool = false;

    fn set_properties(&mut self, properties: &[PartProperties; 2]) {
        self.set_types(&properties[usize::from(self.target.is_none())]);
    }

    fn parse<K: FieldKey, W: Weight>(&self, block: &TextBlock, context: &ParseContext<'_>) -> ParsedBlock<K, W> {
        let mut parsed = ParsedBlock::of_block(block, context.on_error());
        let mut properties: Vec<(usize, ColumnBuilder)> = Vec::new();
        for (place, column) in self.columns.iter().enumerate() {
            // Properties are in the order of the columns.
            properties.extend(column.property.map(|property_type| (place, ColumnBuilder::new(property_type))));
        }
        let options = context.options;
        let mut row = JsonRow { lines: self, options, members: Vec::new(), values: vec![None; self.columns.len()] };
        parsed.for_each_line(block, |parsed, start, end| {
            if start == end {
                return Ok(());
            }
            let num_rows = if self.target.is_some() { parsed.edges.len() } else { parsed.vertices.len() };
            let read = row.read(&block.bytes[start..end], parsed, &mut properties);
            if read.is_err() {
                // A faulty object may have appended some of its values already.
                properties.iter_mut().for_each(|(_, column)| column.truncate(num_rows));
            }
            read
        });
        let columns = properties.into_iter().map(|(_, column)| column.finish()).collect();
        match self.target {
            Some(_) => parsed.properties = columns,
            None => parsed.vertex_properties = columns,
        }
        parsed
    }
}

/// The buffers of a row, reused for all lines of a block.
struct JsonRow<'a> {
    lines: &'a ObjectLines,
    options: &'a SourceOptions,
    members: Vec<JsonMember<'a>>,
    /// By column: its value in this row.
    values: Vec<Option<&'a RawValue>>,
}

impl<'a> JsonRow<'a> {
    /// Appends the edge or vertex of a line.
    fn read<K: FieldKey, W: Weight>(
        &mut self,
        line: &'a [u8],
        parsed: &mut ParsedBlock<K, W>,
        properties: &mut [(usize, ColumnBuilder)],
    ) -> Result<(), String> {
        let lines = self.lines;
        // A member that this line lacks must not keep its value of the line before.
        self.values.fill(None);
        self.members.clear();
        read_members(line, &mut self.members)?;
        for (name, value) in &self.members {
            match lines.places.get(&**name) {
                // A repeated member replaces the earlier one, as in most readers of JSON.
                Some(&place) => self.values[place] = Some(*value),
                None if lines.refuses_others => {
                    return Err(format!(
                        "expected the members that the lines at the beginning have, found another one, {}: \
                         {} names the members to read",
                        shown(name.as_bytes()),
                        if lines.target.is_some() { "--properties" } else { "--vertex-properties" }
                    ));
                }
                None => {}
            }
        }
        let weight = match lines.weight {
            Some(place) => Some(self.weight::<W>(place)?),
            None => None,
        };
        for (place, column) in properties {
            self.push_property(*place, column)?;
        }
        // Edges come last, because the caller takes back only the properties of a faulty line.
        let key = |place: usize, role: &str, extra: &mut Vec<u8>| self.key::<K>(place, role, extra);
        match lines.target {
            Some(target) => {
                let source = key(lines.source, "source", &mut parsed.extra)?;
                parsed.edges.push((source, key(target, "target", &mut parsed.extra)?));
            }
            None => parsed.vertices.push(key(lines.source, "vertex", &mut parsed.extra)?),
        }
        parsed.weights.extend(weight);
        Ok(())
    }

    fn key<K: FieldKey>(&self, place: usize, role: &str, extra: &mut Vec<u8>) -> Result<K, String> {
        let found = self.values[place].ok_or_else(|| {
            let name = shown(self.lines.columns[place].name.as_bytes());
            format!("expected a {role} in the member {name}, found none")
        })?;
        let wrong = || unexpected(&format!("a {role}, {}", K::RANGE), Some(found.get().as_bytes()));
        // Booleans and nested values have a text as well, but are no keys.
        let is_key = found.get().starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit());
        let text =
            text_of(found)?.filter(|text| is_key && self.options.may_be_key(text.as_bytes())).ok_or_else(wrong)?;
        K::from_owned(text.as_bytes(), 0, extra).ok_or_else(wrong)
    }

    fn weight<W: Weight>(&self, place: usize) -> Result<W, String> {
        let text = match self.values[place] {
            Some(value) => text_of(value)?,
            None => None,
        };
        let text = text.as_deref().unwrap_or("null").as_bytes();
        parse_weight(text).ok_or_else(|| unexpected(weight_range(W::TYPE), Some(text)))
    }

    fn push_property(&self, place: usize, column: &mut ColumnBuilder) -> Result<(), String> {
        let text = match self.values[place] {
            Some(value) => text_of(value)?,
            None => None,
        };
        let Some(text) = text else {
            column.push_nulls(1);
            return Ok(());
        };
        column.push_text(text.as_bytes()).map_err(|what| {
            let name = &self.lines.columns[place].name;
            let (shown_name, option) = (shown(name.as_bytes()), shown(format!("{name}:string").as_bytes()));
            let found = column.property_type();
            format!(
                "member {shown_name}: {what}: the lines at the beginning have type {found}; --property-types {option} \
                 gives another one"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Mutex;

    use anden_base::parallel::Pool;

    use super::*;
    use crate::{EdgeBlock, InputPath, KeyKind, OnError, Source, Span, VertexInput};

    /// The vertices, edges and properties of a read, as text in input order.
    fn read<K: FieldKey>(
        inputs: &[PathBuf],
        options: &SourceOptions,
        key: impl Fn(&K, &[u8]) -> String + Sync,
    ) -> Result<Vec<String>> {
        let inputs: Vec<_> = inputs.iter().cloned().map(InputPath::File).collect();
        let mut source = Source::open(&inputs, options.clone())?;
        let blocks = Mutex::new(Vec::new());
        source.for_each_block::<K, f64, Error>(&Pool::new(2)?, |_, block: EdgeBlock<K, f64>| {
            let mut lines = Vec::new();
            for (row, (source, target)) in block.edges.iter().enumerate() {
                let weight = block.weights.get(row).map(|weight| format!(" {weight}")).unwrap_or_default();
                let values = block.properties.iter().map(|column| format!(" {}", column.get(row)));
                let ends = format!("{} {}", key(source, &block.text), key(target, &block.text));
                lines.push(format!("{ends}{weight}{}", values.collect::<String>()));
            }
            for (row, vertex) in block.vertices.iter().enumerate() {
                let values = block.vertex_properties.iter().map(|column| format!(" {}", column.get(row)));
                lines.push(format!("{}{}", key(vertex, &block.text), values.collect::<String>()));
            }
            blocks.lock().unwrap().push((block.sequence, lines));
            Ok(())
        })?;
        let mut blocks = blocks.into_inner().unwrap();
        blocks.sort_unstable();
        let schema = if options.vertices.is_empty() {
            &source.facts().edge_properties
        } else {
            &source.facts().vertex_properties
        };
        let header = schema.iter().map(|(name, property_type)| format!("{name}:{property_type}"));
        Ok(header.chain(blocks.into_iter().flat_map(|(_, lines)| lines)).collect())
    }

    /// Reads a text with every size of blocks, which must not matter.
    fn read_text(text: &str, options: &SourceOptions) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, text).unwrap();
        let read = |block_bytes: usize| {
            let options = SourceOptions { block_bytes, ..options.clone() };
            let inputs = [path.clone()];
            let read = match options.keys {
                KeyKind::Integer => read(&inputs, &options, |key: &u64, _| key.to_string()),
                KeyKind::String => {
                    read(&inputs, &options, |key: &Span, text| String::from_utf8(key.of(text).to_vec()).unwrap())
                }
            };
            read.map_err(|error| error.to_string().replace(&path.display().to_string(), "a.jsonl"))
        };
        let found = read(4 << 20);
        for block_bytes in [150, 400] {
            assert_eq!(read(block_bytes), found, "{block_bytes}");
        }
        found
    }

    fn all() -> SourceOptions {
        SourceOptions { edge_properties: WantedProperties::All, ..SourceOptions::default() }
    }

    #[test]
    fn objects_are_edges_with_typed_properties() {
        let text = concat!(
            "{\"source\": 1, \"target\": 2, \"weight\": 0.5, \"since\": \"2020-01-01\", \"tags\": [\"a\", 1]}\n",
            "\n",
            "{\"since\":null,\"target\":\"3\",\"source\":2,\"weight\":2e1}\r\n",
            "{\"source\": 3, \"target\": 1, \"weight\": \"-1\", \"since\": \"1999-12-31\", \"tags\": \"\\u00e9\\n\"}",
        );
        let weighted = SourceOptions { weights: Some(anden_graph::WeightType::F64), ..all() };
        let expected =
            ["since:date", "tags:string", "1 2 0.5 2020-01-01 [\"a\", 1]", "2 3 20  ", "3 1 -1 1999-12-31 é\n"];
        assert_eq!(read_text(text, &weighted).unwrap(), expected);
        let named = SourceOptions { edge_properties: WantedProperties::Named(vec!["weight".into()]), ..all() };
        assert_eq!(read_text(text, &named).unwrap()[0], "weight:f64");
        assert_eq!(read_text(text, &SourceOptions::default()).unwrap(), ["1 2", "2 3", "3 1"]);
    }

    #[test]
    fn keys_may_be_text() {
        let strings = SourceOptions {
            keys: KeyKind::String,
            source_column: Some("payer".into()),
            target_column: Some("payee".into()),
            ..SourceOptions::default()
        };
        let text = "{\"payer\":\"a b\",\"payee\":\"\\\"c\\\"\"}\n{\"payer\":-7,\"payee\":\"é\"}\n".repeat(9);
        let found = read_text(&text, &strings).unwrap();
        assert_eq!((found.len(), &*found[0], &*found[1]), (18, "a b \"c\"", "-7 é"));
    }

    #[test]
    fn faults_name_the_line() {
        let first = "{\"source\":1,\"target\":2,\"n\":1}\n\n";
        for (line, part) in [
            ("1 2", "a.jsonl:3: expected an object in JSON, found '1 2': "),
            ("[1, 2]", "a.jsonl:3: expected an object in JSON, found '[1, 2]'"),
            ("{\"source\":1,\"target\":2}}", "a.jsonl:3: expected an object in JSON"),
            ("{\"source\":1,\"target\":", "a.jsonl:3: expected an object in JSON"),
            ("{\"source\":1}", "a.jsonl:3: expected a target in the member 'target', found none"),
            ("{\"source\":null,\"target\":2}", "a.jsonl:3: expected a source, an integer"),
            ("{\"source\":[1],\"target\":2}", "found '[1]'"),
            ("{\"source\":1.5,\"target\":2}", "found '1.5'"),
            ("{\"source\":1,\"target\":2,\"n\":\"x\"}", "a.jsonl:3: member 'n': expected"),
        ] {
            let stop = SourceOptions { edge_types: vec![("n".into(), PropertyType::I64)], ..all() };
            let message = read_text(&format!("{first}{line}\n"), &stop).unwrap_err();
            assert!(message.contains(part), "{line}: {message}");
            let skip = SourceOptions { on_error: OnError::Skip, ..stop };
            assert_eq!(
                read_text(&format!("{first}{line}\n{first}"), &skip).unwrap()[1..],
                ["1 2 1", "1 2 1"],
                "{line}"
            );
        }
        let message = read_text("x\n", &all()).unwrap_err();
        assert!(message.starts_with("a.jsonl:1: expected an object in JSON, found 'x'"), "{message}");
        let message = read_text("{\"a\":1,\"b\":2,\"c\":3}\n{}\n", &all()).unwrap_err();
        assert!(message.starts_with("a.jsonl: cannot tell which columns are source and target"), "{message}");
    }

    #[test]
    fn late_members_are_refused_unless_properties_are_named() {
        let mut text = "{\"source\":1,\"target\":2,\"a\":1}\n".repeat(2 * SAMPLE_BYTES as usize / 32);
        text += "{\"source\":1,\"target\":2,\"late\":1}\n";
        let message = read_text(&text, &all()).unwrap_err();
        assert!(message.contains("found another one, 'late': --properties names the members to read"), "{message}");
        for wanted in [WantedProperties::None, WantedProperties::Named(vec!["a".into()])] {
            let options = SourceOptions { edge_properties: wanted, block_bytes: 1 << 20, ..SourceOptions::default() };
            assert!(read_text(&text, &options).is_ok());
        }
    }

    #[test]
    fn objects_may_be_vertices() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.ndjson");
        std::fs::write(&path, "{\"name\":\"x\",\"id\":7}\n{\"id\":8}\n").unwrap();
        let options = SourceOptions {
            vertices: vec![VertexInput::from(path)],
            vertex_properties: WantedProperties::All,
            ..SourceOptions::default()
        };
        let found = read(&[], &options, |key: &u64, _| key.to_string()).unwrap();
        assert_eq!(found, ["name:string", "7 x", "8 "]);
    }

    #[test]
    fn content_tells_lines_of_objects() {
        let is_sure = |text: &str| JsonLines.recognises(text.as_bytes()) == Recognition::Sure;
        for text in ["{\"a\": 1}", "\n {\"a\": {}}\n{}\n", "{\"a\": [1]}\n{\"a", "{}\n{}\n"] {
            assert!(is_sure(text), "{text}");
        }
        let graph = "{\"graph\": {\"nodes\": {}}}\n";
        for text in ["", "1 2\n", "{a} {b}\n", "{\n \"a\": 1\n}", "{\"nodes\": [], \"links\": []}\n", "[1]\n", graph] {
            assert!(!is_sure(text), "{text}");
        }
    }

    #[test]
    fn ending_suffices_for_one_object_and_long_lines() {
        let one = "{\"source\":1,\"target\":2,\"tags\":[\"a\"]}\n";
        assert_eq!(read_text(one, &all()).unwrap(), ["tags:string[]", "1 2 [\"a\"]"]);
        // Longer than the beginning by which formats are told.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long.jsonl");
        std::fs::write(&path, format!("{{\"source\":1,\"target\":2,\"note\":\"{}\"}}\n", "x".repeat(100_000))).unwrap();
        let found = read(&[path], &SourceOptions::default(), |key: &u64, _| key.to_string()).unwrap();
        assert_eq!(found, ["1 2"]);
        let empty = read_text("{}\n{}\n", &all()).unwrap_err();
        assert!(empty.contains("expected an object with members at the beginning"), "{empty}");
    }
}
