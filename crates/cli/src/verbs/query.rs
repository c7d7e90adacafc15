//! `anden query`.

use std::time::Instant;

use anden::property::NewValue;
use anden::query::{FoundEdge, Path, PathLength, PathOptions, ShortestPaths, VertexFragments};
use anden::stats::DegreeStatistics;
use anden::tables::{ParallelEdges, RecordBatch};
use anden::{Key, Neighbors, OwnedValue, View};
use serde_json::{Value, json};

use super::rows::AnswerRows;
use super::{add_prefetch_json, batch, degrees, fragments, note_unknown_types, open_selected, session, view};
use crate::args::{Global, Listing, Query, QueryArgs, VertexDirection};
use crate::console::{Console, ConsoleTable, count, real};
use crate::failure::{CommandFailure, Result};
use crate::text::{key_json, key_text, keys_json, owned_properties, properties_json, real_json, weight_json};

/// An answer before it is printed.
pub(super) enum Answer {
    Bool(bool),
    /// The edges of a pair, and whether edges of this graph have properties.
    Edge(Vec<FoundEdge>, bool),
    Keys(Vec<Key>),
    /// Vertices with a number each: a degree, a depth or a count.
    Numbered(Vec<(Key, u64)>),
    Count(u64),
    Rows(AnswerRows),
    /// The row of one vertex.
    Row(AnswerRows),
    Path(Option<Path>),
    /// A path with a row for each of its edges.
    Legs(Path, AnswerRows),
    Paths(Option<ShortestPaths>),
    Degrees(&'static str, DegreeStatistics),
    Vertex(Box<Vertex>),
}

/// Properties that are not null.
type QueryProperties = Vec<(String, OwnedValue)>;

/// Key, id, degrees and properties of a vertex.
pub(super) struct Vertex {
    key: Key,
    id: u32,
    out_degree: u64,
    in_degree: Option<u64>,
    properties: QueryProperties,
    fragments: Option<VertexFragments>,
}

/// Answers one question, or those of a file.
pub fn execute(global: &Global, args: &QueryArgs) -> Result {
    let question = match (&args.query, &args.batch) {
        (Some(_), Some(_)) => return Err(CommandFailure::Usage("give a question or --batch FILE, not both".into())),
        (None, None) => {
            let what = "query needs a question or --batch FILE; `anden query --help` lists the questions";
            return Err(CommandFailure::Usage(what.into()));
        }
        (question, _) => question.as_ref(),
    };
    let (session, watch) = session(global)?;
    let database = open_selected(&args.database, &session, &args.selection)?;
    let view = view(&database, &args.selection, global)?;
    if let Some(file) = &args.batch {
        return batch::execute(&view, &watch, file);
    }
    let Some(question) = question else { return Ok(()) };
    let start = Instant::now();
    let answer = answer(&view, question);
    // Before the note and the output, which would add to the time of the question.
    let seconds = start.elapsed().as_secs_f64();
    watch.clear();
    let answer = answer?;
    // An empty answer is often a misspelled type.
    if answer.is_empty() {
        note_unknown_types(&database, &args.selection, global)?;
    }
    let mut console = Console::new();
    if global.json {
        let mut object = answer.object(seconds);
        add_prefetch_json(&mut object, &view.prefetch_stats());
        console.object(&object)?;
    } else {
        answer.print(&mut console)?;
    }
    console.finish()
}

/// Answers a question.
pub(super) fn answer(view: &View, query: &Query) -> Result<Answer> {
    Ok(match query {
        Query::Edge { u, v, listing } => edge(view, u, v, listing)?,
        Query::Neighbors { v, direction, listing } => match names(&listing.columns) {
            Some(columns) => listed(&view.neighbor_rows(v.as_str(), direction.neighbors(), &columns)?, listing)?,
            None => keys(view, view.neighbors(v.as_str(), direction.neighbors())?, listing)?,
        },
        Query::Khop { v, k, direction, depths, listing } => {
            let direction = direction.neighbors();
            match *depths || wants(view, &listing.columns, DEPTH) {
                true => numbered(view, DEPTH, widened(view.khop_depths(v.as_str(), *k, direction)?), listing)?,
                false => keys(view, view.khop_along(v.as_str(), *k, direction)?, listing)?,
            }
        }
        Query::Fof { v, direction, depth, ranked, listing } => {
            let direction = direction.neighbors();
            match *ranked || *depth == 2 && wants(view, &listing.columns, COUNT) {
                true => numbered(view, COUNT, view.fof_counts(v.as_str(), direction)?, listing)?,
                false => keys(view, view.at_distance(v.as_str(), *depth, direction)?, listing)?,
            }
        }
        Query::Common { u, v, direction, listing } => {
            keys(view, view.common_neighbors(u.as_str(), v.as_str(), direction.neighbors())?, listing)?
        }
        Query::Path { .. } => path_answer(view, query)?,
        Query::Reachable { u, v, direction, max_depth } => {
            let options = PathOptions { direction: direction.neighbors(), max_depth: *max_depth };
            Answer::Bool(view.is_reachable_with(u.as_str(), v.as_str(), &options)?)
        }
        Query::Find { name, value, listing } => {
            // Text from the command line has no type; the property's type decides.
            let value = NewValue::Text { text: value.clone(), is_quoted: false };
            let found = view.find_vertices(name, value)?;
            let found = found.into_iter().map(|vertex| Ok(view.key(vertex)?)).collect::<Result<_>>()?;
            keys(view, found, listing)?
        }
        Query::Degrees { direction, top: Some(top), columns } => {
            let listing = Listing { columns: columns.clone(), limit: None, count: false };
            numbered(view, DEGREE, view.top_degrees(*top, direction.neighbors())?, &listing)?
        }
        Query::Degrees { direction, .. } => degree_statistics(view, direction.neighbors())?,
        Query::Vertex { v, columns: Some(columns), .. } => {
            Answer::Row(AnswerRows::new(&view.vertex_rows(&[v.as_str().into()], &strs(columns))?)?)
        }
        Query::Vertex { v, fragments, .. } => {
            let id = view.vertex(v.as_str())?;
            let (out_degree, in_degree) = (view.out_degree(id)?, view.in_degree(id)?);
            let properties = owned_properties(view.vertex_properties(id)?, |name| view.vertex_schema().type_of(name));
            // Only on request, because the fragments of a list need a read of its page in every delta.
            let fragments = if *fragments { Some(view.fragments(v.as_str())?) } else { None };
            Answer::Vertex(Box::new(Vertex { key: view.key(id)?, id, out_degree, in_degree, properties, fragments }))
        }
    })
}

/// The columns of `--return` beside those of vertices.
const DEPTH: &str = "depth";
const COUNT: &str = "count";
const DEGREE: &str = "degree";

/// Whether `--return` asks for a column that no property hides.
fn wants(view: &View, columns: &Option<Vec<String>>, name: &str) -> bool {
    view.vertex_schema().find(name).is_none() && columns.iter().flatten().any(|column| column == name)
}

fn widened(found: Vec<(Key, u32)>) -> Vec<(Key, u64)> {
    found.into_iter().map(|(key, number)| (key, number.into())).collect()
}

fn degree_statistics(view: &View, direction: Neighbors) -> Result<Answer> {
    let name = match direction {
        // Degrees of both directions are equal here, so one name suffices.
        _ if !view.is_directed() => "degree",
        Neighbors::Out => "out-degree",
        Neighbors::In => "in-degree",
        Neighbors::Both => "degree, out and in",
    };
    Ok(Answer::Degrees(name, view.degree_statistics(direction)?))
}

/// Answers a question about paths.
fn path_answer(view: &View, query: &Query) -> Result<Answer> {
    let Query::Path { u, v, direction, max_depth, weighted, weight, all, count, limit, columns } = query else {
        return Err(CommandFailure::failed("not a question about paths"));
    };
    let (u, v, direction) = (u.as_str(), v.as_str(), direction.neighbors());
    if let Some(name) = weight {
        let view = view.with_weight(name)?;
        return path(&view, view.weighted_path_along(u, v, direction)?, ParallelEdges::Lightest, columns);
    }
    if *weighted {
        return path(view, view.weighted_path_along(u, v, direction)?, ParallelEdges::Lightest, columns);
    }
    let options = PathOptions { direction, max_depth: *max_depth };
    if *all || count.is_some() {
        // The bounded search ends early, where the search for all paths would go on.
        if max_depth.is_some() && !view.is_reachable_with(u, v, &options)? {
            return Ok(Answer::Paths(None));
        }
        let limit = count.or(*limit).unwrap_or(usize::MAX);
        return Ok(Answer::Paths(view.shortest_paths_along(u, v, direction, limit)?));
    }
    path(view, view.path_with(u, v, &options)?, ParallelEdges::First, columns)
}

fn strs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

fn names(columns: &Option<Vec<String>>) -> Option<Vec<&str>> {
    columns.as_deref().map(strs)
}

/// The first rows of a batch, up to the limit.
fn listed(batch: &RecordBatch, listing: &Listing) -> Result<Answer> {
    // Sliced first, so that rows beyond the limit are not converted.
    let num_rows = batch.num_rows().min(listing.limit.unwrap_or(usize::MAX));
    Ok(Answer::Rows(AnswerRows::new(&batch.slice(0, num_rows))?))
}

/// Lists vertices, up to the limit.
fn keys(view: &View, mut keys: Vec<Key>, listing: &Listing) -> Result<Answer> {
    // The limit bounds a list, not a count.
    if listing.count {
        return Ok(Answer::Count(keys.len() as u64));
    }
    keys.truncate(listing.limit.unwrap_or(usize::MAX));
    match names(&listing.columns) {
        Some(columns) => listed(&view.vertex_rows(&keys, &columns)?, listing),
        None => Ok(Answer::Keys(keys)),
    }
}

/// Lists vertices with a number each, up to the limit.
fn numbered(view: &View, name: &str, mut found: Vec<(Key, u64)>, listing: &Listing) -> Result<Answer> {
    if listing.count {
        return Ok(Answer::Count(found.len() as u64));
    }
    found.truncate(listing.limit.unwrap_or(usize::MAX));
    let Some(columns) = names(&listing.columns) else { return Ok(Answer::Numbered(found)) };
    let (keys, numbers): (Vec<Key>, Vec<u64>) = found.into_iter().unzip();
    let others: Vec<&str> = match wants(view, &listing.columns, name) {
        true => columns.iter().copied().filter(|column| *column != name).collect(),
        false => columns.clone(),
    };
    // Without a name, the table would have all columns.
    let rows = match others.is_empty() {
        true => AnswerRows::without_columns(keys.len()),
        false => AnswerRows::new(&view.vertex_rows(&keys, &others)?)?,
    };
    let places = columns.iter().enumerate().filter(|(_, column)| !others.contains(column)).map(|(place, _)| place);
    Ok(Answer::Rows(rows.with_numbers(places, name, &numbers)?))
}

/// Lists the edges of a pair, up to the limit.
fn edge(view: &View, u: &str, v: &str, listing: &Listing) -> Result<Answer> {
    if let Some(columns) = names(&listing.columns) {
        return listed(&view.edge_rows(&[u.into(), v.into()], ParallelEdges::All, &columns)?, listing);
    }
    // The edge has nothing to print, so the cheapest question suffices.
    if !listing.count && !view.has_edge_properties() && !view.is_multigraph() && view.weight_type().is_none() {
        return Ok(Answer::Bool(view.has_edge(u, v)?));
    }
    let mut edges = view.edges_between(u, v)?;
    if listing.count {
        return Ok(Answer::Count(edges.len() as u64));
    }
    // Keep one edge at least: an empty list would say that the edge does not exist.
    edges.truncate(listing.limit.map_or(usize::MAX, |limit| limit.max(1)));
    Ok(Answer::Edge(edges, view.has_edge_properties()))
}

/// A path, with rows for its edges if columns are requested.
fn path(view: &View, path: Option<Path>, parallel: ParallelEdges, columns: &Option<Vec<String>>) -> Result<Answer> {
    Ok(match (path, names(columns)) {
        (Some(path), Some(columns)) => {
            let rows = AnswerRows::new(&view.edge_rows(&path.vertices, parallel, &columns)?)?;
            Answer::Legs(path, rows)
        }
        (None, Some(columns)) => {
            // Report an unknown column even if no path exists.
            view.edge_rows(&[], ParallelEdges::First, &columns)?;
            Answer::Path(None)
        }
        (path, None) => Answer::Path(path),
    })
}

impl VertexDirection {
    /// Whether an option chooses the direction.
    pub(super) fn is_given(self) -> bool {
        self.outgoing || self.incoming || self.both
    }

    pub(super) fn neighbors(self) -> Neighbors {
        match (self.outgoing, self.incoming, self.both) {
            (false, true, _) => Neighbors::In,
            (false, _, true) => Neighbors::Both,
            _ => Neighbors::Out,
        }
    }
}

impl Answer {
    /// Whether the answer is empty or negative.
    fn is_empty(&self) -> bool {
        match self {
            Self::Bool(is_there) => !is_there,
            Self::Edge(edges, _) => edges.is_empty(),
            Self::Keys(keys) => keys.is_empty(),
            Self::Numbered(found) => found.is_empty(),
            Self::Count(count) => *count == 0,
            Self::Rows(rows) => rows.is_empty(),
            Self::Path(path) => path.is_none(),
            Self::Paths(paths) => paths.is_none(),
            Self::Degrees(_, degrees) => degrees.max == 0,
            Self::Row(_) | Self::Legs(..) | Self::Vertex(_) => false,
        }
    }

    /// The object of `--json`.
    pub(super) fn object(&self, seconds: f64) -> Value {
        let mut object = json!({ "seconds": seconds, "result": self.json() });
        // One list for each property of parallel edges, in the order of the edges.
        if let Self::Edge(edges, has_properties) = self
            && !edges.is_empty()
        {
            if edges.iter().any(|edge| edge.number.is_some()) {
                object["numbers"] = edges.iter().map(|edge| json!(edge.number)).collect();
            }
            if edges.iter().any(|edge| edge.weight.is_some()) {
                object["weights"] = edges.iter().filter_map(|edge| edge.weight.as_ref()).map(weight_json).collect();
            }
            if *has_properties {
                object["properties"] = edges.iter().map(|edge| properties_json(&edge.properties)).collect();
            }
        }
        object
    }

    fn json(&self) -> Value {
        match self {
            Self::Bool(yes) => json!(yes),
            Self::Edge(edges, _) => json!(!edges.is_empty()),
            Self::Keys(keys) => keys_json(keys),
            Self::Numbered(found) => found.iter().map(|(key, number)| json!([key_json(key), number])).collect(),
            Self::Count(count) => json!(count),
            Self::Rows(rows) => rows.json().into(),
            Self::Row(row) => row.json().pop().unwrap_or(Value::Null),
            Self::Legs(path, legs) => json!({
                "vertices": keys_json(&path.vertices), "length": length_json(path), "edges": legs.json(),
            }),
            Self::Path(None) | Self::Paths(None) => Value::Null,
            Self::Path(Some(path)) => json!({ "vertices": keys_json(&path.vertices), "length": length_json(path) }),
            Self::Paths(Some(found)) => {
                let paths: Vec<Value> = found.paths.iter().map(|path| keys_json(path)).collect();
                json!({ "length": found.length, "count": found.count, "paths": paths })
            }
            Self::Degrees(_, degrees) => degrees::distribution_json(degrees),
            Self::Vertex(vertex) => vertex.json(),
        }
    }

    fn print(&self, console: &mut Console) -> Result {
        match self {
            Self::Bool(yes) => console.line(yes),
            Self::Edge(edges, has_properties) => {
                console.line(!edges.is_empty())?;
                edges.iter().try_for_each(|edge| console.line(edge_text(edge, *has_properties)))
            }
            Self::Keys(keys) => keys.iter().try_for_each(|key| console.line(key_text(key))),
            Self::Numbered(found) => {
                found.iter().try_for_each(|(key, number)| console.line(format_args!("{}\t{number}", key_text(key))))
            }
            Self::Count(count) => console.line(count),
            Self::Rows(rows) | Self::Row(rows) | Self::Legs(_, rows) => rows.print(console),
            Self::Path(None) | Self::Paths(None) => console.line("no path"),
            Self::Path(Some(path)) => {
                console.line(length_text(path))?;
                path.vertices.iter().try_for_each(|key| console.line(key_text(key)))
            }
            Self::Paths(Some(found)) => {
                let listed = match found.count == found.paths.len() as u64 {
                    true => String::new(),
                    false => format!(", of which {}", count(found.paths.len() as u64)),
                };
                let paths = if found.count == 1 { "path" } else { "paths" };
                let (num_paths, steps) = (count(found.count), steps_text(found.length));
                console.line(format_args!("{num_paths} {paths} of {steps}{listed}"))?;
                for path in &found.paths {
                    let keys: Vec<String> = path.iter().map(key_text).collect();
                    console.line(keys.join(" "))?;
                }
                Ok(())
            }
            Self::Degrees(name, degrees) => degrees::plot(console, name, degrees),
            Self::Vertex(vertex) => vertex.print(console),
        }
    }
}

impl Vertex {
    fn json(&self) -> Value {
        let mut object = json!({
            "key": key_json(&self.key),
            "id": self.id,
            "out_degree": self.out_degree,
            "in_degree": self.in_degree,
            "properties": properties_json(&self.properties),
        });
        if let Some(fragments) = &self.fragments {
            object["fragments"] = fragments::json(fragments);
        }
        object
    }

    fn print(&self, console: &mut Console) -> Result {
        let mut table = ConsoleTable::new();
        table.pair("key", key_text(&self.key)).pair("id", self.id).pair("out-degree", count(self.out_degree));
        if let Some(in_degree) = self.in_degree {
            table.pair("in-degree", count(in_degree));
        }
        for (name, value) in &self.properties {
            table.pair(name, value.as_value());
        }
        console.table(&table)?;
        self.fragments.as_ref().map_or(Ok(()), |fragments| fragments::print(console, fragments))
    }
}

/// The properties that distinguish parallel edges: number, weight, values.
fn edge_text(edge: &FoundEdge, has_properties: bool) -> String {
    let weight = edge.weight.iter().map(|weight| format!("weight {weight}"));
    let properties = edge.properties.iter().map(|(name, value)| format!("{name} {}", value.as_value()));
    // An edge without values must not look like one whose values are not shown.
    let none = (has_properties && edge.properties.is_empty()).then(|| "no properties".to_owned());
    let values: Vec<_> = weight.chain(properties).chain(none).collect();
    let number = edge.number.map(|number| format!("#{number}"));
    [number, (!values.is_empty()).then(|| values.join(", "))].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The length of a path as text.
fn length_text(path: &Path) -> String {
    // A path without edges still has one vertex, so the subtraction cannot wrap.
    let steps = steps_text(path.vertices.len() as u64 - 1);
    match path.length {
        PathLength::Hops(_) => format!("a path of {steps}"),
        PathLength::Integer(sum) => format!("a path of length {}, {steps}", count(sum)),
        PathLength::Real(sum) => format!("a path of length {}, {steps}", real(sum)),
    }
}

/// Formats a number of steps: `2 steps`.
fn steps_text(num_steps: u64) -> String {
    format!("{} {}", count(num_steps), if num_steps == 1 { "step" } else { "steps" })
}

fn length_json(path: &Path) -> Value {
    match path.length {
        PathLength::Hops(hops) => json!(hops),
        PathLength::Integer(sum) => json!(sum),
        PathLength::Real(sum) => real_json(sum),
    }
}
