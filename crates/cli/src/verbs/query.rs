//! `anden query`.

use std::time::Instant;

use anden::{Key, OwnedValue, Path, PathLength, Side, View};
use serde_json::{Map, Value, json};

use super::{open, session, view};
use crate::args::{Global, Query, QueryArgs, VertexSide};
use crate::console::{Console, Table, count};
use crate::failure::{Failure, Result};
use crate::text::{key_json, keys_json, property_json, real_json};

/// An answer, before it is printed.
enum Answer {
    Bool(bool),
    Keys(Vec<Key>),
    Path(Option<Path>),
    Vertex { key: Key, id: u32, out_degree: u64, in_degree: Option<u64>, properties: Vec<(String, OwnedValue)> },
}

/// Answers one question.
pub fn execute(global: &Global, args: &QueryArgs) -> Result {
    if let Query::Vertex { fragments: true, .. } = args.query {
        return Err(Failure::not_yet("--fragments"));
    }
    let (session, watch) = session(global)?;
    let database = open(&args.database, &session)?;
    let view = view(&database, &args.selection)?;
    let start = Instant::now();
    let answer = answer(&view, &args.query);
    let seconds = start.elapsed().as_secs_f64();
    watch.clear();
    let answer = answer?;
    let mut console = Console::new();
    if global.json {
        console.object(&json!({ "seconds": seconds, "result": answer.json() }))?;
    } else {
        answer.print(&mut console)?;
    }
    console.finish()
}

fn answer(view: &View, query: &Query) -> Result<Answer> {
    Ok(match query {
        Query::Edge { u, v } => Answer::Bool(view.has_edge(u.as_str(), v.as_str())?),
        Query::Neighbors { v, side } => Answer::Keys(view.neighbors(v.as_str(), side.side())?),
        Query::Khop { v, k } => Answer::Keys(view.khop(v.as_str(), *k)?),
        Query::Fof { v } => Answer::Keys(view.fof(v.as_str())?),
        Query::Path { u, v, weighted: false } => Answer::Path(view.path(u.as_str(), v.as_str())?),
        Query::Path { u, v, weighted: true } => Answer::Path(view.weighted_path(u.as_str(), v.as_str())?),
        Query::Reachable { u, v } => Answer::Bool(view.path(u.as_str(), v.as_str())?.is_some()),
        Query::Vertex { v, .. } => {
            let id = view.vertex(v.as_str())?;
            let (out_degree, in_degree) = (view.out_degree(id), view.in_degree(id));
            let properties = view.vertex_properties(id)?.into_iter();
            let properties = properties.map(|(name, value)| (name.to_owned(), value.into())).collect();
            Answer::Vertex { key: view.key(id)?, id, out_degree, in_degree, properties }
        }
    })
}

impl VertexSide {
    fn side(self) -> Side {
        match (self.incoming, self.both) {
            (true, _) => Side::In,
            (_, true) => Side::Both,
            _ => Side::Out,
        }
    }
}

impl Answer {
    fn json(&self) -> Value {
        match self {
            Self::Bool(yes) => json!(yes),
            Self::Keys(keys) => keys_json(keys),
            Self::Path(None) => Value::Null,
            Self::Path(Some(path)) => json!({ "vertices": keys_json(&path.vertices), "length": length_json(path) }),
            Self::Vertex { key, id, out_degree, in_degree, properties } => {
                let properties: Map<String, Value> =
                    properties.iter().map(|(name, value)| (name.clone(), property_json(&value.as_value()))).collect();
                json!({
                    "key": key_json(key),
                    "id": id,
                    "out_degree": out_degree,
                    "in_degree": in_degree,
                    "properties": properties,
                })
            }
        }
    }

    fn print(&self, console: &mut Console) -> Result {
        match self {
            Self::Bool(yes) => console.line(yes),
            Self::Keys(keys) => keys.iter().try_for_each(|key| console.line(key)),
            Self::Path(None) => console.line("no path"),
            Self::Path(Some(path)) => path.vertices.iter().try_for_each(|key| console.line(key)),
            Self::Vertex { key, id, out_degree, in_degree, properties } => {
                let mut table = Table::new();
                table.pair("key", key).pair("id", id).pair("out-degree", count(*out_degree));
                if let Some(in_degree) = in_degree {
                    table.pair("in-degree", count(*in_degree));
                }
                for (name, value) in properties {
                    table.pair(name, value.as_value());
                }
                console.table(&table)
            }
        }
    }
}

fn length_json(path: &Path) -> Value {
    match path.length {
        PathLength::Hops(hops) => json!(hops),
        PathLength::Integer(sum) => json!(sum),
        PathLength::Real(sum) => real_json(sum),
    }
}
