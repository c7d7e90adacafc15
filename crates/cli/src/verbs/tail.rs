//! `anden tail`.

use std::time::Duration;

use anden::changes::{AddedEdge, ChangeSet, GraphChange, PropertyOf};
use anden::{Database, Progress};
use serde_json::{Value, json};

use super::{open, session};
use crate::args::{Global, TailArgs};
use crate::console::Console;
use crate::failure::Result;
use crate::text::{key_json, properties_json, property_json, weight_json};
use crate::watch::Watch;

/// Time between two looks at the files of a followed database.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Prints the changes after an epoch, a line for each commit group, or for the net changes up to a snapshot.
pub fn execute(global: &Global, args: &TailArgs) -> Result {
    let (session, watch) = session(global)?;
    let database = open(&args.database, &session)?;
    watch.clear();
    // From here on a signal ends the command behind a whole line.
    watch.clean_up_from_here();
    if args.follow {
        watch.runs_until_signal();
    }
    let mut since = match args.since {
        Some(since) => since,
        None => database.oldest_epoch()?,
    };
    let mut console = Console::new();
    loop {
        print_since(&mut console, &database, &mut since, &watch)?;
        // The reader waits for these lines.
        console.flush()?;
        if !args.follow {
            return console.finish();
        }
        std::thread::sleep(LOOK_EVERY);
        if watch.is_cancelled() {
            return Err(Watch::interruption());
        }
        // A write would report a closed pipe, but without a commit nothing is written.
        console.require_reader()?;
        database.refresh()?;
    }
}

/// Prints the changes after `since`, and sets it to the epoch of the last line.
fn print_since(console: &mut Console, database: &Database, since: &mut u64, watch: &Watch) -> Result {
    for set in database.changes(*since)? {
        let set = set?;
        print_line(console, &set)?;
        *since = set.epoch();
        if watch.is_cancelled() {
            // What was printed whole is of use to the reader.
            console.flush()?;
            return Err(Watch::interruption());
        }
    }
    Ok(())
}

/// Prints the object piece by piece, because a group may have millions of changes.
fn print_line(console: &mut Console, set: &ChangeSet) -> Result {
    let net = if set.is_net() { "\"net\":true," } else { "" };
    console.bytes(format!("{{\"epoch\":{},{net}\"changes\":[", set.epoch()).as_bytes())?;
    let (mut separator, mut failed) = ("", None);
    let read = set.for_each_change(|change| {
        let text = format!("{separator}{}", change_json(change));
        separator = ",";
        console.bytes(text.as_bytes()).map_err(|error| {
            failed = Some(error);
            // Any error ends the calls; that of the output is reported.
            anden::Error::Cancelled
        })
    });
    match failed {
        Some(failure) => return Err(failure),
        None => read?,
    }
    console.line("]}")
}

/// A change as a JSON object: `op`, and the arguments of that.
fn change_json(change: GraphChange) -> Value {
    match change {
        GraphChange::VertexBound(bound) => json!({ "op": "vertex_bound", "bound": bound }),
        GraphChange::AddVertex(key) => json!({ "op": "add_vertex", "vertex": key_json(&key) }),
        GraphChange::RemoveVertex(key) => json!({ "op": "remove_vertex", "vertex": key_json(&key) }),
        GraphChange::NewProperty { of, name, property_type } => {
            let of = if of == PropertyOf::Vertices { "vertices" } else { "edges" };
            json!({ "op": "new_property", "of": of, "name": name, "type": property_type.name() })
        }
        GraphChange::SetVertexProperty { vertex, name, value } => {
            let (vertex, value) = (key_json(&vertex), property_json(&value.as_value(), value.property_type()));
            json!({ "op": "set_vertex_property", "vertex": vertex, "name": name, "value": value })
        }
        GraphChange::AddEdge(edge) => edge_json(&edge),
        GraphChange::RemoveEdges { source, target } => {
            json!({ "op": "remove_edges", "source": key_json(&source), "target": key_json(&target) })
        }
        // A later version of the library may have more; its name says what it is.
        other => json!({ "op": "other", "text": format!("{other:?}") }),
    }
}

fn edge_json(edge: &AddedEdge) -> Value {
    let AddedEdge { source, target, number, row, weight, properties } = edge;
    let mut object = json!({ "op": "add_edge", "source": key_json(source), "target": key_json(target) });
    if let Some(weight) = weight {
        object["weight"] = weight_json(weight);
    }
    if let Some(number) = number {
        object["number"] = json!(number);
    }
    if let Some(row) = row {
        object["row"] = json!(row);
        // An edge that had its row before keeps its properties.
        object["properties"] = properties.as_ref().map_or(Value::Null, |properties| properties_json(properties));
    }
    object
}
