//! Reports of `load` and `append` about their inputs.

use anden::load::{ColumnName, Duplicates, InputReport};
use serde_json::{Value, json};

use crate::args::Global;
use crate::console::{ConsoleTable, count};
use crate::failure::complain;

/// Prints the number of skipped lines, and the error of the first.
pub fn say_skipped(global: &Global, num_skipped: u64, first: Option<&str>) {
    if let Some(line) = first.filter(|_| !global.quiet) {
        match num_skipped {
            1 => complain(&format!("skipped 1 line: {line}")),
            // Only the first error is shown: a wrong separator would fill the screen.
            _ => complain(&format!("skipped {} lines, the first: {line}", count(num_skipped))),
        }
    }
}

/// Prints notes about the inputs, one per line.
pub fn say_notes(global: &Global, notes: &[String]) {
    for note in notes.iter().filter(|_| !global.quiet) {
        complain(&format!("note: {note}"));
    }
}

/// A column as JSON: its name, or its number from 1.
fn column(column: &ColumnName) -> Value {
    match column {
        ColumnName::Name(name) => json!(name),
        ColumnName::Number(number) => json!(number),
    }
}

/// The option value of a rule for parallel edges; `None` if repeated edges are refused.
fn rule(duplicates: Duplicates) -> Option<&'static str> {
    // A repeated edge that is refused has no rule, so it has no option value either.
    Duplicates::ALL.iter().find(|(rule, _)| *rule == duplicates).map(|(_, name)| *name)
}

/// Adds the input report to the JSON object.
pub fn add_input(object: &mut Value, input: &InputReport, notes: &[String]) {
    let columns = &input.columns;
    object["source_column"] = json!(columns.source.as_ref().map(column));
    object["target_column"] = json!(columns.target.as_ref().map(column));
    object["weight_column"] = json!(columns.weight.as_ref().map(column));
    object["properties"] = json!(input.properties);
    object["left_out"] = columns.left_out.iter().map(column).collect();
    object["edges_read"] = json!(input.edges);
    object["merged"] = json!(input.merged);
    object["duplicates"] = json!(rule(input.duplicates));
    object["loops"] = json!(input.loops);
    object["comment_lines"] = json!(input.comment_lines);
    object["notes"] = json!(notes);
}

/// Adds the input report to the table, without empty rows.
pub fn add_rows(table: &mut ConsoleTable, input: &InputReport, num_skipped: u64) {
    let columns = &input.columns;
    let shown = |column: &ColumnName| match column {
        ColumnName::Name(name) => name.clone(),
        ColumnName::Number(number) => number.to_string(),
    };
    for (name, column) in [
        ("  source column", &columns.source),
        ("  target column", &columns.target),
        ("  weight column", &columns.weight),
    ] {
        if let Some(column) = column {
            table.pair(name, shown(column));
        }
    }
    if !input.properties.is_empty() {
        table.pair("  properties", input.properties.join(", "));
    }
    if !columns.left_out.is_empty() {
        let names: Vec<String> = columns.left_out.iter().map(shown).collect();
        table.pair("  columns left out", names.join(", "));
    }
    if input.merged > 0 {
        let rule = rule(input.duplicates).map(|rule| format!(" (--duplicates {rule})")).unwrap_or_default();
        table.pair("  merged", format!("{} parallel edges{rule}", count(input.merged)));
    }
    for (name, number) in
        [("  loops", input.loops), ("  comment lines", input.comment_lines), ("  skipped", num_skipped)]
    {
        // Rows of zeros would hide the few that say something about this input.
        if number > 0 {
            table.pair(name, count(number));
        }
    }
}
