//! How the lists of a vertex are stored, for `anden query DB vertex V --fragments`.

use anden::Key;
use anden::query::{DeltaFragment, ListFragments, VertexFragments};
use serde_json::{Value, json};

use crate::console::{Console, count};
use crate::failure::Result;
use crate::text::{keys_json, keys_text};

/// Both lists as JSON, with all keys.
pub fn json(fragments: &VertexFragments) -> Value {
    json!({ "out": list_json(&fragments.out), "in": fragments.into.as_ref().map(list_json) })
}

fn list_json(list: &ListFragments) -> Value {
    let delta = |delta: &DeltaFragment| {
        json!({
            "from": delta.from,
            "to": delta.to,
            "backward": delta.is_backward,
            "added": keys_json(&delta.added),
            "removed": keys_json(&delta.removed),
        })
    };
    json!({
        "base": list.base.as_ref().map(|keys| keys_json(keys)),
        "deltas": list.deltas.iter().map(delta).collect::<Vec<_>>(),
        "memtable": list.live.as_ref().map(|(added, removed)| {
            json!({ "added": keys_json(added), "removed": keys_json(removed) })
        }),
        "fragments": list.fragments.iter().map(|keys| keys_json(keys)).collect::<Vec<_>>(),
    })
}

/// Prints both lists. Long lists are cut.
pub fn print(console: &mut Console, fragments: &VertexFragments) -> Result {
    // An undirected graph, or one without in-edges, has only one list of a vertex.
    print_list(console, if fragments.into.is_some() { "out-list" } else { "list" }, &fragments.out)?;
    fragments.into.as_ref().map_or(Ok(()), |list| print_list(console, "in-list", list))
}

fn print_list(console: &mut Console, name: &str, list: &ListFragments) -> Result {
    console.line(format_args!("\n{name}"))?;
    match &list.base {
        Some(keys) => console.line(format_args!("  base: {}", entries(keys)))?,
        // A window starts from the snapshot before it, whose edges it does not show.
        None => console.line("  base: not shown in a window")?,
    }
    for delta in &list.deltas {
        // An older snapshot can be read from a newer base by undoing deltas.
        let way = if delta.is_backward { ", applied backward" } else { "" };
        console.line(format_args!("  delta from snapshot {} to {}{way}", delta.from, delta.to))?;
        print_changes(console, &delta.added, &delta.removed)?;
    }
    if let Some((added, removed)) = &list.live {
        console.line("  memtable, in no snapshot yet")?;
        print_changes(console, added, removed)?;
    }
    let plural = if list.fragments.len() == 1 { "fragment" } else { "fragments" };
    console.line(format_args!("  read in {} {plural}", count(list.fragments.len() as u64)))?;
    list.fragments.iter().try_for_each(|keys| console.line(format_args!("    {}", entries(keys))))
}

fn print_changes(console: &mut Console, added: &[Key], removed: &[Key]) -> Result {
    for (sign, keys) in [('+', added), ('-', removed)] {
        if !keys.is_empty() {
            console.line(format_args!("    {sign} {}", entries(keys)))?;
        }
    }
    Ok(())
}

/// The number of keys, and the first of them.
fn entries(keys: &[Key]) -> String {
    match keys.len() {
        0 => "no entries".into(),
        1 => format!("1 entry: {}", keys_text(keys)),
        len => format!("{} entries: {}", count(len as u64), keys_text(keys)),
    }
}
