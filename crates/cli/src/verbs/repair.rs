//! `anden repair`.

use anden::Database;
use anden::snapshot::{Loss, VertexSpan};
use serde_json::{Value, json};

use super::session;
use crate::args::{Global, RepairArgs};
use crate::console::{Console, count, duration, size};
use crate::failure::Result;

/// More losses than these are summed up too, because the first ones leave the screen.
const MOST_LINES: usize = 8;

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
    if report.losses.len() > MOST_LINES {
        console.line(format_args!("lost in all: {}", sums(&report.losses).join("; ")))?;
    }
    if !global.quiet {
        let (path, bytes, time) = (args.to.display(), size(saved.num_bytes), duration(seconds));
        let (vertices, edges) = (count(saved.num_vertices), count(saved.num_edges));
        let losses = if report.losses.is_empty() { "nothing is lost" } else { "see the losses above" };
        console.line(format_args!("saved {path}: {vertices} vertices, {edges} edges, {bytes}, {time}; {losses}"))?;
    }
    console.finish()
}

/// The losses with one text for each kind and property.
fn sums(losses: &[Loss]) -> Vec<String> {
    let mut groups: Vec<Vec<&Loss>> = Vec::new();
    for loss in losses {
        match groups.iter_mut().find(|group| kind_and_property(group[0]) == kind_and_property(loss)) {
            Some(group) => group.push(loss),
            None => groups.push(vec![loss]),
        }
    }
    groups.iter().flat_map(|group| sum(group)).collect()
}

fn kind_and_property(loss: &Loss) -> (&str, Option<&str>) {
    let property = if let Loss::Values { property, .. } = loss { Some(&**property) } else { None };
    (loss.kind(), property)
}

/// The text for losses of one kind and property.
fn sum(group: &[&Loss]) -> Vec<String> {
    let mut spans: Vec<_> = group.iter().filter_map(|loss| vertices_of(loss)).collect();
    // Lists of vertices that are lost in parts come once for each range of targets.
    spans.sort_unstable();
    spans.dedup();
    let vertices = count(spans.iter().map(|&(first, last)| u64::from(last - first) + 1).sum());
    match group {
        [Loss::Snapshot { .. }, _, ..] => vec![format!("{} snapshots", count(group.len() as u64))],
        [Loss::Edges { .. }, ..] => vec![format!("edges from {vertices} vertices")],
        [Loss::Keys { .. }, ..] => vec![format!("{vertices} vertices whose keys are lost, with all their edges")],
        [Loss::Values { property, .. }, ..] => vec![format!("values of {property:?} of {vertices} vertices")],
        others => others.iter().map(|loss| loss.to_string()).collect(),
    }
}

/// The first and the last id of the vertices that have lost something; `None` for other losses.
fn vertices_of(loss: &Loss) -> Option<(u32, u32)> {
    let span = match loss {
        Loss::Edges { from, .. } => from,
        Loss::Keys { vertices } | Loss::Values { vertices, .. } => vertices,
        _ => return None,
    };
    Some((span.first, span.last))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_in_many_places_are_summed_up() {
        let page = |first| VertexSpan { first, last: first + 9, keys: None };
        let values =
            |property: &str, place: u32| Loss::Values { property: property.into(), vertices: page(place * 20) };
        let mut losses = vec![Loss::Snapshot { number: 7, name: None }];
        losses.extend((0..1000).map(|place| values("age", place)));
        losses.extend((0..3).map(|place| values("name", place)));
        losses.extend((0..6).map(|to| Loss::Edges { from: page(40), to: Some(page(to * 10)) }));
        losses.extend((0..2).map(|place| Loss::Keys { vertices: page(place * 10) }));
        losses.push(Loss::Index { property: "age".into() });
        let expected = [
            "snapshot 7",
            "values of \"age\" of 10,000 vertices",
            "values of \"name\" of 30 vertices",
            "edges from 10 vertices",
            "20 vertices whose keys are lost, with all their edges",
            "the index of \"age\"; create it again",
        ];
        assert_eq!(sums(&losses), expected);
        losses.push(Loss::Snapshot { number: 9, name: Some("old".into()) });
        assert_eq!(sums(&losses)[0], "2 snapshots");
    }
}
