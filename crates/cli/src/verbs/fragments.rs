//! How the lists of a vertex are stored, for `anden query DB vertex V --fragments`.

use anden::{Key, LevelFragment, ListFragments, VertexFragments};
use serde_json::{Value, json};

use crate::console::{Console, count};
use crate::failure::Result;
use crate::text::{keys_json, keys_text};

/// As JSON: both lists, with every key.
pub fn json(fragments: &VertexFragments) -> Value {
    json!({ "out": list_json(&fragments.out), "in": fragments.into.as_ref().map(list_json) })
}

fn list_json(list: &ListFragments) -> Value {
    let level = |level: &LevelFragment| {
        json!({
            "from": level.from,
            "to": level.to,
            "backward": level.is_backward,
            "added": keys_json(&level.added),
            "removed": keys_json(&level.removed),
        })
    };
    json!({
        "base": list.base.as_ref().map(|keys| keys_json(keys)),
        "levels": list.levels.iter().map(level).collect::<Vec<_>>(),
        "live": list.live.as_ref().map(|(added, removed)| {
            json!({ "added": keys_json(added), "removed": keys_json(removed) })
        }),
        "pieces": list.pieces.iter().map(|keys| keys_json(keys)).collect::<Vec<_>>(),
    })
}

/// For people: long lists are cut.
pub fn print(console: &mut Console, fragments: &VertexFragments) -> Result {
    print_list(console, if fragments.into.is_some() { "out-list" } else { "list" }, &fragments.out)?;
    fragments.into.as_ref().map_or(Ok(()), |list| print_list(console, "in-list", list))
}

fn print_list(console: &mut Console, name: &str, list: &ListFragments) -> Result {
    console.line(format_args!("\n{name}"))?;
    match &list.base {
        Some(keys) => console.line(format_args!("  base run: {}", entries(keys)))?,
        None => console.line("  base run: not shown in a window")?,
    }
    for level in &list.levels {
        let way = if level.is_backward { ", applied backward" } else { "" };
        console.line(format_args!("  level from snapshot {} to {}{way}", level.from, level.to))?;
        print_changes(console, &level.added, &level.removed)?;
    }
    if let Some((added, removed)) = &list.live {
        console.line("  in no snapshot yet")?;
        print_changes(console, added, removed)?;
    }
    let plural = if list.pieces.len() == 1 { "piece" } else { "pieces" };
    console.line(format_args!("  read in {} {plural}", count(list.pieces.len() as u64)))?;
    list.pieces.iter().try_for_each(|keys| console.line(format_args!("    {}", entries(keys))))
}

fn print_changes(console: &mut Console, added: &[Key], removed: &[Key]) -> Result {
    for (sign, keys) in [('+', added), ('-', removed)] {
        if !keys.is_empty() {
            console.line(format_args!("    {sign} {}", entries(keys)))?;
        }
    }
    Ok(())
}

/// How many, and the first of them.
fn entries(keys: &[Key]) -> String {
    match keys.len() {
        0 => "no entries".into(),
        1 => format!("1 entry: {}", keys_text(keys)),
        len => format!("{} entries: {}", count(len as u64), keys_text(keys)),
    }
}
