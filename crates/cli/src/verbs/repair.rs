//! `anden repair`.

use anden::Database;
use anden::snapshot::{Loss, VertexSpan};
use serde_json::{Value, json};

use super::session;
use crate::args::{Global, RepairArgs};
use crate::console::{Console, count, duration, size};
use crate::failure::Result;

/// Saves what can be read of a damaged database.
pub fn execute(global: &Global, args: &RepairArgs) -> Result {
    let (session, watch) = session(global)?;
    watch.clean_up_from_here();
    let begin = std::time::Instant::now();
    let done = Database::repair(&args.database, &args.to, &session);
    watch.clear();
    let report = done?;
    let (saved, seconds) = (&report.saved, begin.elapsed().as_secs_f64());
    let mut console = Console::after("the database was repaired");
    if global.json {
        console.object(&json!({
            "history": saved.history.to_string(),
            "source_history": saved.source_history.to_string(),
            "epoch": saved.epoch,
            "snapshots": saved.num_snapshots,
            "vertices": saved.num_vertices,
            "edges": saved.num_edges,
            "files": saved.num_files,
            "bytes": saved.num_bytes,
            "losses": report.losses.iter().map(object).collect::<Vec<_>>(),
            "seconds": seconds,
        }))?;
        return console.finish();
    }
    // Losses are the answer, so `--quiet` prints them too.
    for loss in &report.losses {
        console.line(format_args!("lost: {loss}"))?;
    }
    if !global.quiet {
        let (path, bytes, time) = (args.to.display(), size(saved.num_bytes), duration(seconds));
        let (vertices, edges) = (count(saved.num_vertices), count(saved.num_edges));
        let losses = if report.losses.is_empty() { "nothing is lost" } else { "see the losses above" };
        console.line(format_args!("saved {path}: {vertices} vertices, {edges} edges, {bytes}, {time}; {losses}"))?;
    }
    console.finish()
}

/// A loss as JSON: its kind, its text, and its parts.
fn object(loss: &Loss) -> Value {
    let mut object = json!({ "kind": loss.kind(), "text": loss.to_string() });
    let parts = match loss {
        Loss::Snapshot { number, name } => json!({ "number": number, "name": name }),
        Loss::Edges { from, to } => json!({ "from": span(from), "to": to.as_ref().map(span) }),
        Loss::Vertices { num_vertices } => json!({ "vertices": num_vertices }),
        Loss::Keys { vertices } => json!({ "vertices": span(vertices) }),
        Loss::Values { property, vertices } => json!({ "property": property, "vertices": span(vertices) }),
        Loss::EdgeValues { property, num_edges } => json!({ "property": property, "edges": num_edges }),
        Loss::EdgeNumbers { num_edges } => json!({ "edges": num_edges }),
        Loss::Index { property } => json!({ "property": property }),
        Loss::Commits { first, last } => json!({ "first": first, "last": last }),
    };
    if let (Some(object), Value::Object(parts)) = (object.as_object_mut(), parts) {
        object.extend(parts);
    }
    object
}

fn span(VertexSpan { first, last, keys }: &VertexSpan) -> Value {
    let keys = keys.as_ref().map(|(first, last)| [first.to_string(), last.to_string()]);
    json!({ "first_id": first, "last_id": last, "keys": keys })
}
