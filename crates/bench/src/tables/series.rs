//! Wide tables: lines whose names differ in one number or word share a row.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::Value;

use crate::report::{NOT_RUN, number};

/// Ends of names that become columns, longer ones first.
const ENDS: [&str; 9] = ["oracle, cold", "oracle, warm", "cold", "warm", "read", "peak", "median", "p999", "p99"];
/// Networks of `transactions`, with which names begin.
const NETWORKS: [&str; 3] = ["grid", "roads", "social"];
/// Parts within names that become columns.
const CLIENTS: [&str; 2] = ["one client", "a client a core"];

/// A row: lines with one name, unit and other side. A ratio has no unit.
pub struct Row<'a> {
    name: String,
    unit: &'a str,
    other: &'a str,
    cells: Vec<(&'a str, &'a Value)>,
}

impl Row<'_> {
    fn cell(&self, column: &str) -> Option<&Value> {
        self.cells.iter().find(|(own, _)| *own == column).map(|&(_, line)| line)
    }
}

/// The row and the column of a line, from its name.
fn place<'a>(benchmark: &str, name: &'a str) -> Option<(String, &'a str)> {
    match benchmark {
        // `11 snapshots, maintained: bfs`
        "snapshots" => {
            let (column, row) = name.split_once(" snapshots").filter(|(count, _)| is_number(count))?;
            Some((row.trim_start_matches([',', ':', ' ']).to_owned(), column))
        }
        // `tables 10 and 11: nothing in place: bfs`
        "tiers" => name.rsplit_once(": ").map(|(row, column)| (row.to_owned(), column)),
        // `wholly live: bfs`
        "live" => name.split_once(": ").map(|(column, row)| (row.to_owned(), column)),
        "transactions" => of_end(name).or_else(|| of_part(name)).or_else(|| of_network(name)),
        "updates" | "outofcore" => of_end(name),
        _ => None,
    }
}

/// Splits names like `live, insert 1000`, `none, one client: median` or `bfs at 1/3, oracle, warm`.
fn of_end(name: &str) -> Option<(String, &str)> {
    if let Some((row, column)) = name.rsplit_once(' ').filter(|(_, column)| is_number(column)) {
        return Some((row.to_owned(), column));
    }
    let is_end = |end: &&&str| name.strip_suffix(**end).is_some_and(|row| row.ends_with(' '));
    let at = name.len() - ENDS.iter().find(is_end)?.len();
    Some((name[..at].trim_end_matches([':', ',', ' ']).to_owned(), &name[at..]))
}

/// Splits names like `none, 8 clients, 16 in flight`, `multigraph, batches of 1000, an edge` or `grid: path, one
/// client`.
fn of_part(name: &str) -> Option<(String, &str)> {
    let is_column = |part: &&str| {
        let count = part.strip_suffix(" clients").or_else(|| part.strip_prefix("batches of "));
        count.is_some_and(is_number) || CLIENTS.contains(part)
    };
    let parts: Vec<&str> = name.split(", ").collect();
    let at = parts.iter().position(is_column)?;
    let row = [&parts[..at], &parts[at + 1..]].concat().join(", ");
    Some((row, parts[at]))
}

/// Splits names like `grid: paths alone`.
fn of_network(name: &str) -> Option<(String, &str)> {
    let (column, row) = name.split_once(": ").filter(|(network, _)| NETWORKS.contains(network))?;
    Some((row.to_owned(), column))
}

fn is_number(text: &str) -> bool {
    text.parse::<u64>().is_ok()
}

fn word<'a>(line: &'a Value, name: &str) -> &'a str {
    line[name].as_str().unwrap_or("")
}

/// Separates the lines that stand alone from the rows of at least two cells.
pub fn split<'a>(benchmark: &str, lines: &'a [Value]) -> (Vec<&'a Value>, Vec<Row<'a>>) {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for line in lines {
        let Some((row, column)) = place(benchmark, word(line, "name")) else { continue };
        let other = word(line, "other_name");
        let unit = if other.is_empty() { word(line, "unit") } else { "" };
        let is_row = |known: &&mut Row<'_>| (&known.name, known.unit, known.other) == (&row, unit, other);
        match rows.iter_mut().filter(is_row).find(|known| known.cell(column).is_none()) {
            Some(known) => known.cells.push((column, line)),
            None => rows.push(Row { name: row, unit, other, cells: vec![(column, line)] }),
        }
    }
    rows.retain(|row| row.cells.len() > 1);
    let is_in_row = |line: &Value| rows.iter().flat_map(|row| &row.cells).any(|&(_, cell)| std::ptr::eq(cell, line));
    let alone = lines.iter().filter(|line| !is_in_row(line)).collect();
    (alone, rows)
}

/// Writes the rows, with one table for each set of rows that share columns.
pub fn write(text: &mut String, rows: &[Row<'_>]) -> Result<()> {
    let mut tables: Vec<(Vec<&str>, Vec<&Row<'_>>)> = Vec::new();
    for row in rows {
        let own: Vec<&str> = row.cells.iter().map(|&(column, _)| column).collect();
        match tables.iter_mut().find(|(columns, _)| own.iter().any(|column| columns.contains(column))) {
            Some((columns, rows)) => {
                let new: Vec<&str> = own.into_iter().filter(|column| !columns.contains(column)).collect();
                columns.extend(new);
                rows.push(row);
            }
            None => tables.push((own, vec![row])),
        }
    }
    for (index, (columns, rows)) in tables.iter().enumerate() {
        text.push_str(if index == 0 { "" } else { "\n" });
        table(text, columns, rows)?;
    }
    Ok(())
}

/// Writes a table. A bound that all cells of a row share is its last cell; other bounds stand in their cells.
fn table(text: &mut String, columns: &[&str], rows: &[&Row<'_>]) -> Result<()> {
    writeln!(text, "| | unit or other side | {} | bound or target |", columns.join(" | "))?;
    writeln!(text, "| --- | --- |{} --- |", " ---: |".repeat(columns.len()))?;
    for row in rows {
        let side = if row.other.is_empty() { row.unit.to_owned() } else { format!("÷ {}", row.other) };
        let mut bounds = row.cells.iter().map(|(_, line)| word(line, "bound"));
        let first = bounds.next().unwrap_or("");
        let shared = bounds.all(|bound| bound == first).then_some(first);
        let cells: Vec<_> = columns.iter().map(|column| cell(row.cell(column), shared.is_none())).collect();
        writeln!(text, "| {} | {side} | {} | {} |", row.name, cells.join(" | "), shared.unwrap_or(""))?;
    }
    Ok(())
}

/// The ratio of a line and its interval, or our figure.
fn cell(line: Option<&Value>, has_bound: bool) -> String {
    let Some(line) = line else { return String::new() };
    let digits = if line["ratio"].as_f64().is_some_and(|ratio| ratio < 0.01) { 4 } else { 3 };
    let short = |name: &str| line[name].as_f64().map(|value| format!("{value:.digits$}"));
    let figure = match [short("ratio"), short("low"), short("high")] {
        [Some(ratio), Some(low), Some(high)] if low != high => format!("{ratio} [{low}, {high}]"),
        [Some(ratio), ..] => ratio,
        [None, ..] if !line["other_name"].is_null() => NOT_RUN.to_owned(),
        _ => line["ours"].as_f64().map_or(NOT_RUN.into(), number),
    };
    match word(line, "bound") {
        "" => figure,
        bound if has_bound => format!("{figure} ({bound})"),
        _ => figure,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn batch_sizes_become_columns() {
        let insert = |len: u32, rate: f64| json!({"name": format!("live, insert {len}"), "unit": "M/s", "ours": rate});
        let remove = json!({"name": "live, remove 10", "unit": "M/s", "ours": 6.0, "other": 4.0, "other_name": "insert",
            "ratio": 1.5, "low": 1.25, "high": 1.75, "bound": "≥ 0.8"});
        let lines = [insert(10, 4.0), insert(100, 5.0), remove];
        let (alone, rows) = split("updates", &lines);
        assert_eq!((alone, rows.len()), (vec![&lines[2]], 1));
        let mut text = String::new();
        write(&mut text, &rows).unwrap();
        assert!(text.ends_with("| live, insert | M/s | 4.000 | 5.000 |  |\n"), "{text}");
    }

    #[test]
    fn rows_without_common_columns_have_tables_of_their_own() {
        let line = |name: &str| json!({"name": name, "unit": "µs", "ours": 1.0});
        let names = [
            "sync, one client: median",
            "sync, one client: p99",
            "none, 8 clients, at once",
            "none, 64 clients, at once",
        ];
        let lines = names.map(line);
        let mut text = String::new();
        write(&mut text, &split("transactions", &lines).1).unwrap();
        assert_eq!(text.matches("\n\n| | unit").count(), 1, "{text}");
        assert!(text.contains("| 8 clients | 64 clients | bound"), "{text}");
    }

    #[test]
    fn bounds_that_differ_stand_in_their_cells() {
        let line = |phase: &str, bound: &str| {
            json!({"name": format!("bfs at 1/3, {phase}"), "unit": "s", "ours": 1.0, "other": 2.0, "other_name": "plain",
                "ratio": 0.5, "low": 0.4, "high": 0.6, "bound": bound})
        };
        let lines = [line("oracle, cold", "≤ 0.4"), line("cold", "≤ 1.03")];
        let mut text = String::new();
        write(&mut text, &split("outofcore", &lines).1).unwrap();
        let row = "| bfs at 1/3 | ÷ plain | 0.500 [0.400, 0.600] (≤ 0.4) | 0.500 [0.400, 0.600] (≤ 1.03) |  |\n";
        assert!(text.ends_with(row), "{text}");
    }

    #[test]
    fn names_tell_rows_and_columns() {
        let of = |benchmark, name| place(benchmark, name).unwrap_or_default();
        assert_eq!(of("snapshots", "11 snapshots, maintained: bfs"), ("maintained: bfs".into(), "11"));
        assert_eq!(of("tiers", "tables 10 and 11: no trees: bfs"), ("tables 10 and 11: no trees".into(), "bfs"));
        assert_eq!(of("transactions", "none, 8 clients, 16 in flight"), ("none, 16 in flight".into(), "8 clients"));
        assert_eq!(of("transactions", "sync, one client: p999"), ("sync, one client".into(), "p999"));
        assert_eq!(of("transactions", "grid: path, one client"), ("grid: path".into(), "one client"));
        assert_eq!(of("transactions", "roads: paths alone"), ("paths alone".into(), "roads"));
        assert_eq!(of("live", "wholly live: bfs"), ("bfs".into(), "wholly live"));
        assert_eq!(of("outofcore", "bfs at 1/3, oracle, warm"), ("bfs at 1/3".into(), "oracle, warm"));
        assert_eq!(place("snapshots", "array: degrees in order"), None);
        assert_eq!(place("updates", "live, insert 10000 beside PageRank"), None);
        assert_eq!(place("kernels", "bfs 7"), None);
    }
}
