//! `anden diff`.

use std::collections::{HashMap, HashSet};

use anden::Key;
use anden::property::{KeyRef, PropertyValue};
use anden::snapshot::{Diff, DiffEdge, DiffProperty};
use anden_formats::{push_update_column, push_update_name, push_update_value};
use serde_json::{Value, json};

use super::{open_snapshots, session};
use crate::args::{DiffArgs, Global};
use crate::console::Console;
use crate::failure::Result;
use crate::text::{key_json, owned_properties, properties_json, property_json, weight_json};

/// Shows the changes between two snapshots.
pub fn execute(global: &Global, args: &DiffArgs) -> Result {
    let (session, watch) = session(global)?;
    // Only snapshots are compared, so a damaged WAL is no obstacle.
    let database = open_snapshots(&args.database, &session)?;
    let diff = match &args.with {
        None => database.diff(args.from.clone(), args.to.clone()),
        Some(other) => database.diff_with(args.from.clone(), &open_snapshots(other, &session)?, args.to.clone()),
    };
    watch.clear();
    let diff = diff?;
    if diff.is_multigraph() && !global.json {
        // Printing keeps the removed edges in a table, to recognise changed edges and removed pairs.
        session.require_memory("a difference of multigraphs", REMOVED_BYTES * diff.num_removed()? as u64)?;
    }
    let mut console = Console::new();
    if global.json {
        print_json(&mut console, &diff)?;
    } else {
        print(&mut console, &diff)?;
    }
    console.finish()
}

/// Approximate bytes of a removed edge in that table.
const REMOVED_BYTES: u64 = 160;

/// Prints the object piece by piece, because a diff may be larger than memory.
fn print_json(console: &mut Console, diff: &Diff) -> Result {
    let (from, to) = diff.snapshots();
    console.bytes(format!("{{\"from\":{from},\"to\":{to}").as_bytes())?;
    let edge = |edge: anden::Result<DiffEdge<'_>>| edge_json(diff, &edge?);
    let num_added = print_list(console, "added_edges", diff.added().map(edge))?;
    let num_removed = print_list(console, "removed_edges", diff.removed().map(edge))?;
    // The count follows the list, so the list is never held in memory.
    console.bytes(format!(",\"added\":{num_added},\"removed\":{num_removed}").as_bytes())?;
    let key = |key: &Key| Ok(key_json(key));
    print_list(console, "added_vertices", diff.added_vertices()?.iter().map(key))?;
    print_list(console, "removed_vertices", diff.removed_vertices()?.iter().map(key))?;
    print_list(console, "changed_properties", diff.changed_properties().map(|value| Ok(value_json(diff, &value?))))?;
    console.line("}")
}

/// Prints a list as a field of an open JSON object. Returns its length.
fn print_list(console: &mut Console, name: &str, values: impl Iterator<Item = Result<Value>>) -> Result<u64> {
    console.bytes(format!(",\"{name}\":[").as_bytes())?;
    let mut count = 0;
    for value in values {
        if count > 0 {
            console.bytes(b",")?;
        }
        console.bytes(value?.to_string().as_bytes())?;
        count += 1;
    }
    console.bytes(b"]")?;
    Ok(count)
}

/// `[source, target]`, then the weight, an object with the properties, and the number, if the graph has them.
fn edge_json(diff: &Diff, edge: &DiffEdge<'_>) -> Result<Value> {
    let key = |key: KeyRef<'_>| key_json(&Key::from(key));
    let mut list = vec![key(edge.source), key(edge.target)];
    list.extend(edge.weight.as_ref().map(weight_json));
    if edge.has_properties() {
        let properties = owned_properties(diff.edge_properties(edge)?, |name| diff.edge_property_type(name));
        list.push(properties_json(&properties));
    }
    list.extend(edge.number.map(|number| json!(number)));
    Ok(Value::Array(list))
}

/// `[vertex, name, old, new]`.
fn value_json(diff: &Diff, value: &DiffProperty<'_>) -> Value {
    let DiffProperty { vertex, name, old, new } = value;
    let property_type = diff.property_type(name);
    json!([key_json(&Key::from(*vertex)), name, property_json(old, property_type), property_json(new, property_type)])
}

/// Prints the changes as lines for `anden apply`.
fn print(console: &mut Console, diff: &Diff) -> Result {
    // Added vertices come first and removed ones last, so the edges and values between find their vertices.
    for vertex in diff.added_vertices()? {
        console.line(format_args!("v+ {}", column(&vertex)))?;
    }
    match diff.is_multigraph() {
        true if diff.has_numbers() => print_numbered(console, diff)?,
        true => print_pairs(console, diff)?,
        false => {
            // Removals come first, because a changed edge is removed and added.
            // A removal takes no property values.
            diff.removed().try_for_each(|edge| edge_line(console, '-', &edge?, &[]))?;
            diff.added().try_for_each(|edge| added_line(console, diff, &edge?))?;
        }
    }
    for value in diff.changed_properties() {
        let value = value?;
        property_line(console, &column(&value.vertex), value.name, value.new)?;
    }
    for vertex in diff.removed_vertices()? {
        console.line(format_args!("v- {}", column(&vertex)))?;
    }
    Ok(())
}

/// Prints the removed, added and changed edges of a multigraph, each by its number.
fn print_numbered(console: &mut Console, diff: &Diff) -> Result {
    let mut removed: HashMap<Option<u64>, DiffEdge<'_>> = HashMap::new();
    for edge in diff.removed() {
        let edge = edge?;
        removed.insert(edge.number, edge);
    }
    // An addition whose number was removed is a change, so all removed edges are read first.
    let mut changed = HashSet::new();
    for edge in diff.added() {
        let number = edge?.number;
        changed.extend(removed.contains_key(&number).then_some(number));
    }
    // Read again, because the added edges decide which removed ones are changes.
    for edge in diff.removed() {
        let edge = edge?;
        if !changed.contains(&edge.number) {
            edge_line(console, '-', &edge, &[])?;
        }
    }
    for edge in diff.added() {
        let edge = edge?;
        match removed.get(&edge.number) {
            Some(old) => changed_lines(console, diff, old, &edge)?,
            None => added_line(console, diff, &edge)?,
        }
    }
    Ok(())
}

/// Prints the changed edges of multigraphs in two databases, whose edge numbers are unrelated. A removal removes all
/// edges of a pair, so the remaining ones are added again.
fn print_pairs(console: &mut Console, diff: &Diff) -> Result {
    let mut removed = HashSet::new();
    for edge in diff.removed() {
        let edge = edge?;
        // One line removes all edges of the pair, so print it at the first of them only.
        if removed.insert(pair(diff, &edge)) {
            console.line(format_args!("- {}", ends(&edge)))?;
            diff.edges_like(&edge)?.iter().try_for_each(|left| added_line(console, diff, left))?;
        }
    }
    for edge in diff.added() {
        let edge = edge?;
        // The edges of such a pair were printed with its removal.
        if !removed.contains(&pair(diff, &edge)) {
            added_line(console, diff, &edge)?;
        }
    }
    Ok(())
}

/// Prints an added edge with its properties.
fn added_line(console: &mut Console, diff: &Diff, edge: &DiffEdge<'_>) -> Result {
    edge_line(console, '+', edge, &diff.edge_properties(edge)?)
}

/// Prints the changes of an edge: its weight, and each changed property.
fn changed_lines(console: &mut Console, diff: &Diff, old: &DiffEdge<'_>, new: &DiffEdge<'_>) -> Result {
    let ends = ends(new);
    if let Some(weight) = new.weight.filter(|_| old.weight != new.weight) {
        console.line(format_args!("= {ends} {weight}"))?;
    }
    let (before, after) = (diff.edge_properties(old)?, diff.edge_properties(new)?);
    for (name, value) in &after {
        if !before.contains(&(*name, *value)) {
            property_line(console, &ends, name, *value)?;
        }
    }
    // A property that the new edge lacks gets the word `null`, which removes the value.
    for (name, _) in before.iter().filter(|(name, _)| after.iter().all(|(other, _)| other != name)) {
        property_line(console, &ends, name, PropertyValue::Null)?;
    }
    Ok(())
}

/// A key as a column of an update line.
fn column(key: &impl ToString) -> String {
    let mut column = String::new();
    push_update_column(&mut column, &key.to_string());
    column
}

/// Prints a property value of a vertex or edge; `of` holds the keys.
fn property_line(console: &mut Console, of: &str, name: &str, value: PropertyValue<'_>) -> Result {
    // `apply` reads this line, so names and values are quoted by its rules.
    let mut line = format!("p {of} ");
    push_update_column(&mut line, name);
    line.push(' ');
    push_update_value(&mut line, value);
    console.line(line)
}

/// The ends of an edge as columns of a line, and its number if it has one.
fn ends(edge: &DiffEdge<'_>) -> String {
    let number = edge.number.map(|number| format!(" #{number}")).unwrap_or_default();
    format!("{} {}{number}", column(&edge.source), column(&edge.target))
}

/// The ends of an edge; in an undirected graph, in an order that does not depend on the direction.
fn pair(diff: &Diff, edge: &DiffEdge<'_>) -> (String, String) {
    let ends = (column(&edge.source), column(&edge.target));
    if diff.is_directed() || ends.0 <= ends.1 { ends } else { (ends.1, ends.0) }
}

/// Prints an edge with its weight and these properties.
fn edge_line(
    console: &mut Console,
    sign: char,
    edge: &DiffEdge<'_>,
    properties: &[(&str, PropertyValue<'_>)],
) -> Result {
    let mut line = format!("{sign} {}", ends(edge));
    if let Some(weight) = edge.weight {
        line.push_str(&format!(" {weight}"));
    }
    for (name, value) in properties {
        line.push(' ');
        push_update_name(&mut line, name);
        line.push('=');
        push_update_value(&mut line, *value);
    }
    console.line(line)
}
