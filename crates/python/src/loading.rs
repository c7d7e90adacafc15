//! The options of `load` and `append_files`, with the names of the command line.

use anden::changes::{ExpectedGraph, ExpectedWeights, Maintenance};
use anden::load::{
    Duplicates, EdgeInput, Format, HeaderRule, IdOrder, InputPath, KeyKind, OnError, SnapshotBy, SourceOptions, Spread,
    StatedType, VertexInput, WantedProperties, parse_delimiter,
};
use anden::{AppendOptions, GraphKind, KeyScheme, LoadOptions, Options, WeightType};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyStringMethods};

use crate::error::{Result, invalid, wrong_type};
use crate::input::arrow_input;
use crate::options::{KEY_SCHEMES, Keywords, near, path, size_of_text, weight_type};
use crate::snapshot::as_of;

/// The arguments that say how files are read.
pub const READING: &[&str] = &[
    "format",
    "source_column",
    "target_column",
    "weight_column",
    "header",
    "delimiter",
    "comment",
    "trim",
    "empty_ids",
    "null",
    "scratch_limit",
    "columns",
    "edges",
    "vertices",
    "vertex_column",
    "vertex_properties",
    "properties",
    "property_types",
    "order",
    "io_order",
    "on_error",
    "duplicates",
    "multigraph",
];

/// The arguments about the kind of graph.
pub const KIND: &[&str] = &["directed", "undirected", "ordered", "out_only", "ids", "weights", "weight_type"];

/// The other arguments of `load`.
pub const LOADING: &[&str] = &["threads", "memory", "snapshots", "first_share", "seed", "snapshot_by", "name", "as_of"];

/// The other arguments of `append_files`.
pub const APPENDING: &[&str] = &["remove", "name", "as_of", "maintenance"];

/// An input: a path, `-` for standard input, or rows in memory.
pub fn input(value: &Bound<'_, PyAny>) -> Result<InputPath> {
    match arrow_input(value)? {
        Some(rows) => Ok(rows),
        None => Ok(path(value)?.into()),
    }
}

/// The items of an argument that is one item or a list of them.
fn items<T>(value: &Bound<'_, PyAny>, read: impl Fn(&Bound<'_, PyAny>) -> Result<T>) -> Result<Vec<T>> {
    let is_one = |name| value.hasattr(name);
    let is_columns = value.is_instance_of::<PyDict>();
    if is_columns || value.is_instance_of::<PyString>() || is_one("__fspath__")? || is_one("__arrow_c_stream__")? {
        return Ok(vec![read(value)?]);
    }
    value.try_iter()?.map(|item| read(&item?)).collect()
}

/// `all`, `none`, or the names of columns.
fn wanted(value: &Bound<'_, PyAny>) -> Result<WantedProperties> {
    if let Ok(text) = value.cast::<PyString>() {
        return match text.to_str()? {
            "all" => Ok(WantedProperties::All),
            // An explicit choice, so no note mentions the columns left out.
            "none" => Ok(WantedProperties::Named(Vec::new())),
            other => Err(invalid(format!("expected 'all', 'none' or a list of names, not '{other}'"))),
        };
    }
    Ok(WantedProperties::Named(value.extract()?))
}

/// A column of times and a period, such as `time:month`.
fn snapshot_by(value: &Bound<'_, PyAny>) -> Result<SnapshotBy> {
    let text: String = value.extract()?;
    text.parse().map_err(|what: String| invalid(what))
}

/// Names and types of properties: a dict such as `{"size": "i64"}`.
fn property_types(value: &Bound<'_, PyAny>) -> Result<Vec<(String, StatedType)>> {
    let dict = value.cast::<PyDict>().map_err(|_| wrong_type("a dict of names and types is expected"))?;
    let mut types = Vec::with_capacity(dict.len());
    for (name, kind) in dict.iter() {
        let (name, kind): (String, String) = (name.extract()?, kind.extract()?);
        let Some(found) = StatedType::of_name(&kind) else {
            return Err(invalid(format!("'{kind}' is no type of a property: there are {}", StatedType::names())));
        };
        types.push((name, found));
    }
    Ok(types)
}

/// The parts of a name such as `KNOWS:person:message`.
fn parts(name: &str) -> [Option<String>; 3] {
    let mut parts = name.splitn(3, ':').map(|part| Some(part.to_owned()).filter(|part| !part.is_empty()));
    std::array::from_fn(|_| parts.next().flatten())
}

/// Inputs by name: a dict from a name to an input or to a list of inputs.
fn by_name<T>(value: &Bound<'_, PyAny>, read: impl Fn(&str, &Bound<'_, PyAny>) -> Result<T>) -> Result<Option<Vec<T>>> {
    let Ok(dict) = value.cast::<PyDict>() else { return Ok(None) };
    let mut found = Vec::new();
    for (name, inputs) in dict.iter() {
        let name: String = name.extract()?;
        found.extend(items(&inputs, |input| read(&name, input))?);
    }
    Ok(Some(found))
}

fn edge_inputs(value: &Bound<'_, PyAny>) -> Result<Vec<EdgeInput>> {
    let found = by_name(value, |name, file| match parts(name) {
        [Some(edge_type), source_space, target_space] if source_space.is_some() == target_space.is_some() => {
            Ok(EdgeInput { path: input(file)?, edge_type, source_space, target_space })
        }
        _ => Err(invalid(format!("expected TYPE or TYPE:SPACE:SPACE as the key of a file, not '{name}'"))),
    })?;
    found.ok_or_else(|| wrong_type("a dict is expected, from a type to a file or a list of files"))
}

fn vertex_inputs(value: &Bound<'_, PyAny>) -> Result<Vec<VertexInput>> {
    let found = by_name(value, |name, file| match parts(name) {
        [labels, space, None] => Ok(VertexInput { path: input(file)?, labels, space }),
        _ => Err(invalid(format!("expected LABEL or LABEL:SPACE as the key of a file, not '{name}'"))),
    })?;
    found.map_or_else(|| items(value, |file| Ok(input(file)?.into())), Ok)
}

/// A word, or a list of words.
fn words(value: &Bound<'_, PyAny>) -> Result<Vec<String>> {
    items(value, |word| Ok(word.extract()?))
}

fn delimiter(value: &Bound<'_, PyAny>) -> Result<u8> {
    let text: String = value.extract()?;
    parse_delimiter(&text).ok_or_else(|| {
        invalid(format!("expected 'tab' or one character of punctuation, such as |, and no quote, not '{text}'"))
    })
}

fn comment(value: &Bound<'_, PyAny>) -> Result<u8> {
    let text: String = value.extract()?;
    match text.as_bytes() {
        [mark] if mark.is_ascii_punctuation() && *mark != b'"' => Ok(*mark),
        _ => Err(invalid(format!("expected one character of punctuation, such as #, and no quote, not '{text}'"))),
    }
}

fn format(value: &Bound<'_, PyAny>) -> Result<Option<Format>> {
    let name: String = value.extract()?;
    if name == "auto" {
        return Ok(None);
    }
    let found = Format::of_name(&name);
    found.map(Some).ok_or_else(|| {
        let names: Vec<_> = Format::all().map(Format::name).collect();
        let hint = near(&name, names.iter().copied()).map(|near| format!("; did you mean '{near}'?"));
        let names = names.join(", ");
        invalid(format!("'{name}' is no format: there are auto, {names}{}", hint.unwrap_or_default()))
    })
}

/// How files are read; `properties` is the default choice of edge properties.
fn source_options(given: &mut Keywords<'_>, properties: WantedProperties) -> Result<SourceOptions> {
    let types = given.take_with("property_types", property_types)?.unwrap_or_default();
    let on_error = [(OnError::Stop, "stop"), (OnError::Skip, "skip")];
    let mut options = SourceOptions {
        format: given.take_with("format", format)?.flatten(),
        on_error: given.take_word("on_error", &on_error)?.unwrap_or_default(),
        source_column: given.take("source_column")?,
        target_column: given.take("target_column")?,
        weight_column: given.take("weight_column")?,
        header: given.take_word("header", &HeaderRule::ALL)?.unwrap_or_default(),
        delimiter: given.take_with("delimiter", delimiter)?,
        comment: given.take_with("comment", comment)?,
        trim: given.is_set("trim")?,
        empty_ids: given.is_set("empty_ids")?,
        null_words: given.take_with("null", words)?.unwrap_or_default(),
        scratch_limit: given.take_with("scratch_limit", size_of_text)?,
        columns: given.take("columns")?,
        edge_properties: given.take_with("properties", wanted)?.unwrap_or(properties),
        edges: given.take_with("edges", edge_inputs)?.unwrap_or_default(),
        vertices: given.take_with("vertices", vertex_inputs)?.unwrap_or_default(),
        vertex_column: given.take("vertex_column")?,
        vertex_properties: given.take_with("vertex_properties", wanted)?.unwrap_or(WantedProperties::All),
        ..SourceOptions::default()
    };
    options.state_types(&types);
    Ok(options)
}

fn has_whole_weights(input: &InputPath) -> bool {
    Format::of_path(input.path()).is_some_and(Format::has_whole_weights)
}

/// The kind of graph that arguments ask for.
struct Kind {
    graph_kind: Option<GraphKind>,
    ordered: bool,
    out_only: bool,
    keys: Option<KeyScheme>,
    has_weights: bool,
    weight_type: Option<WeightType>,
}

impl Kind {
    fn new(given: &mut Keywords<'_>) -> Result<Self> {
        let directed = given.take::<bool>("directed")?;
        let (is_undirected, ordered) = (given.is_set("undirected")?, given.is_set("ordered")?);
        let graph_kind = match (directed, is_undirected) {
            (Some(true), true) => return Err(invalid("a graph is directed or undirected, not both")),
            (Some(false), _) | (None, true) => Some(GraphKind::Undirected),
            (Some(true), false) => Some(GraphKind::Directed),
            (None, false) => None,
        };
        Ok(Self {
            graph_kind,
            ordered,
            out_only: given.is_set("out_only")?,
            keys: given.take_word("ids", &KEY_SCHEMES)?,
            has_weights: given.is_set("weights")?,
            weight_type: given.take_with("weight_type", weight_type)?,
        })
    }
}

/// The order of ids, by either of its names.
fn order(given: &mut Keywords<'_>) -> Result<IdOrder> {
    let order = given.take_word("order", &IdOrder::ALL)?;
    match (order, given.is_set("io_order")?) {
        (Some(order), true) if order != IdOrder::Input => {
            let name = order.name();
            Err(invalid(format!("io_order=True is order='input', which contradicts order='{name}': give one of them")))
        }
        (_, true) => Ok(IdOrder::Input),
        (order, false) => Ok(order.unwrap_or_default()),
    }
}

fn duplicates(given: &mut Keywords<'_>) -> Result<Duplicates> {
    let rule = given.take_word("duplicates", &Duplicates::ALL)?;
    match (rule, given.is_set("multigraph")?) {
        (Some(Duplicates::Keep) | None, true) => Ok(Duplicates::Keep),
        (Some(_), true) => Err(invalid("multigraph keeps parallel edges: it goes with duplicates='keep' only")),
        (rule, false) => Ok(rule.unwrap_or_default()),
    }
}

/// The options of `load`.
pub fn load_options(given: &mut Keywords<'_>, inputs: &[InputPath]) -> Result<LoadOptions> {
    let kind = Kind::new(given)?;
    let duplicates = duplicates(given)?;
    let source = source_options(given, WantedProperties::All)?;
    let is_weighted = kind.has_weights || source.weight_column.is_some();
    // No input is open yet, so without a format the names of the files decide.
    let is_whole = match source.format {
        Some(format) => format.has_whole_weights(),
        None => inputs.iter().chain(source.edges.iter().map(|edges| &edges.path)).all(has_whole_weights),
    };
    let usual = if is_whole { WeightType::U32 } else { WeightType::F64 };
    let usual_keys = || match source.usual_keys(inputs) {
        KeyKind::String => KeyScheme::String,
        KeyKind::Integer => KeyScheme::Integer,
    };
    let graph = Options {
        graph_kind: kind.graph_kind.unwrap_or(GraphKind::Directed),
        multigraph: duplicates == Duplicates::Keep,
        ordered: kind.ordered,
        keys: kind.keys.unwrap_or_else(usual_keys),
        weight_type: kind.weight_type.or_else(|| is_weighted.then_some(usual)),
        in_edges: !kind.out_only,
        // The load sets this if the inputs have property columns.
        edge_properties: false,
    };
    let spread = Spread {
        num_snapshots: given.take("snapshots")?.unwrap_or(1),
        first_share: given.take("first_share")?,
        seed: given.take("seed")?.unwrap_or(1),
    };
    Ok(LoadOptions {
        graph,
        follows_inputs: kind.graph_kind.is_none() && !kind.ordered,
        follows_weights: kind.weight_type.is_none(),
        duplicates,
        order: order(given)?,
        source,
        spread,
        snapshot_by: given.take_with("snapshot_by", snapshot_by)?,
        name: given.take("name")?,
        as_of: given.take_with("as_of", as_of)?,
        ..LoadOptions::default()
    })
}

/// The options of `append_files` on a graph of this kind.
pub fn append_options(given: &mut Keywords<'_>, graph: &Options) -> Result<AppendOptions> {
    let kind = Kind::new(given)?;
    let duplicates = match duplicates(given)? {
        Duplicates::Auto => None,
        rule => Some(rule),
    };
    // Without a choice, new edges get properties as the loaded ones did.
    let usual = if graph.edge_properties { WantedProperties::All } else { WantedProperties::None };
    let source = source_options(given, usual)?;
    let weights = match kind.weight_type {
        Some(weight_type) => ExpectedWeights::Of(weight_type),
        None if kind.has_weights || source.weight_column.is_some() => ExpectedWeights::Some,
        None => ExpectedWeights::Any,
    };
    let (graph_kind, ordered, out_only, keys) = (kind.graph_kind, kind.ordered, kind.out_only, kind.keys);
    let maintains = given.take::<bool>("maintenance")?.unwrap_or(true);
    Ok(AppendOptions {
        duplicates,
        order: order(given)?,
        memory: None,
        source,
        remove: given.take_with("remove", |value| items(value, input))?.unwrap_or_default(),
        name: given.take("name")?,
        as_of: given.take_with("as_of", as_of)?,
        maintenance: if maintains { Maintenance::WhenDue } else { Maintenance::Never },
        expected: ExpectedGraph { graph_kind, ordered, out_only, keys, weights },
    })
}
