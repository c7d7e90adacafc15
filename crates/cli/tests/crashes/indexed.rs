//! Lines that change values with a plain and a unique index, and a check of the resulting database.
//!
//! Step `e` has four lines: an edge from `e`, the removal of a code from vertex `e - 50`, this code for vertex `e`, and
//! the kind of vertex `e`. So each unique code moves from vertex to vertex, and the values tell the number of applied
//! lines.

use std::collections::BTreeMap;
use std::path::Path;

use anden::property::{IndexKind, PropertyColumn, PropertyValue};
use anden::{Database, OwnedValue, View};

use crate::writer::{anden, create, num_edges};

const NUM_CODES: u64 = 50;
const NUM_KINDS: u64 = 7;
/// The kind of a vertex whose step is not complete.
const UNDECIDED: u64 = 99;

fn code(vertex: u64) -> String {
    format!("c{}", vertex % NUM_CODES)
}

fn kind(vertex: u64) -> u64 {
    vertex % NUM_KINDS
}

/// The line with this number. A new database has the edge of the first four.
pub fn line(number: u64) -> String {
    let vertex = number / 4;
    match number % 4 {
        0 => format!("+ {vertex} {}\n", vertex + 1),
        1 if vertex < NUM_CODES => format!("p {vertex} kind {UNDECIDED}\n"),
        1 => format!("p {} code null\n", vertex - NUM_CODES),
        2 => format!("p {vertex} code {}\n", code(vertex)),
        _ => format!("p {vertex} kind {}\n", kind(vertex)),
    }
}

/// Creates a database with the first step and both indexes.
pub fn create_indexed(database: &Path) {
    create(database);
    let updates = database.with_extension("updates");
    std::fs::write(&updates, (1..4).map(line).collect::<String>()).unwrap();
    let applied = anden().args(["apply", "--quiet"]).arg(database).arg(&updates).output().unwrap();
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    for arguments in [&["create", "vertex", "code", "--unique"][..], &["create", "vertex", "kind"]] {
        let made = anden().args(["index", "--quiet"]).arg(database).args(arguments).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
}

/// The number of lines that a database holds. Requires that they are the first ones, that `verify` finds no fault, and
/// that the indexes agree with the values.
pub fn num_lines(path: &Path, place: &str) -> u64 {
    let num_edges = num_edges(path, place);
    let database = Database::open_read_only(path).unwrap_or_else(|error| panic!("{place}: {error}"));
    database.verify().unwrap_or_else(|error| panic!("{place}: {error}"));
    let indexes = database.indexes();
    let indexes: Vec<_> = indexes.iter().map(|index| (index.property.as_str(), index.kind)).collect();
    assert_eq!(indexes, [("kind", IndexKind::Plain), ("code", IndexKind::Unique)], "{place}");
    let view = database.view().unwrap();
    let [codes, kinds] = ["code", "kind"].map(|name| view.vertex_property(name).unwrap());
    let last = num_edges - 1;
    let has_moved = last >= NUM_CODES && codes.is_null((last - NUM_CODES) as usize);
    let num_lines = 4 * last
        + match (codes.is_null(last as usize), kinds.get(last as usize)) {
            (false, PropertyValue::I64(found)) if found == kind(last) as i64 => 4,
            (false, _) => 3,
            (true, PropertyValue::I64(_)) => 2,
            (true, _) if has_moved => 2,
            _ => 1,
        };
    for vertex in 0..=num_edges {
        let has = |line: u64| 4 * vertex + line < num_lines;
        let is_moved = 4 * (vertex + NUM_CODES) + 1 < num_lines;
        let expected = if has(2) && !is_moved { code(vertex).as_str().into() } else { OwnedValue::Null };
        assert_eq!(OwnedValue::from(codes.get(vertex as usize)), expected, "{place}: code of {vertex}");
        let expected = match vertex < NUM_CODES {
            _ if has(3) => (kind(vertex) as i64).into(),
            true if has(1) => (UNDECIDED as i64).into(),
            _ => OwnedValue::Null,
        };
        assert_eq!(OwnedValue::from(kinds.get(vertex as usize)), expected, "{place}: kind of {vertex}");
    }
    let num_holders = compare(&view, "code", &codes, place);
    assert!(num_holders.into_iter().all(|holders| holders == 1), "{place}: two vertices share a code");
    compare(&view, "kind", &kinds, place);
    num_lines
}

/// Compares searches for each value of a property with a scan. Returns the number of holders of each value.
fn compare(view: &View, name: &str, column: &PropertyColumn, place: &str) -> Vec<usize> {
    let mut holders: BTreeMap<String, (OwnedValue, Vec<u32>)> = BTreeMap::new();
    for vertex in (0..column.len()).filter(|&vertex| !column.is_null(vertex)) {
        let value = column.get(vertex);
        holders.entry(value.to_string()).or_insert_with(|| (value.into(), Vec::new())).1.push(vertex as u32);
    }
    for (value, vertices) in holders.values() {
        assert_eq!(view.find_vertices(name, value.clone()).unwrap(), *vertices, "{place}: {name} {value:?}");
    }
    holders.into_values().map(|(_, vertices)| vertices.len()).collect()
}
