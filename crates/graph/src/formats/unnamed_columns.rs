//! Columns without names, of text without a header: which are read, and what to say of the others.
//!
//! Any line may be wider than the lines before it, so the columns are counted as the lines are read.

use super::message::{list_of, shown};
use super::options::{ColumnName, InputColumns, SourceFacts};
use super::outcome::PartCounts;
use super::part::Part;

/// The most columns that a report names; the first line of a table has no more either.
const MAX_REPORTED: usize = 10_000;

/// What is known of the columns of one input before it is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnnamedColumns {
    /// Columns that are read: the first ones.
    pub(super) num_read: usize,
    /// What to say of the others beside their numbers; `None`: they have no note.
    pub(super) hint: Option<&'static str>,
    /// The place of the note among those of all inputs.
    pub(super) note_place: usize,
    /// Whether an earlier note says that the third column, if it is the only other one, is left out.
    pub(super) is_third_noted: bool,
}

impl UnnamedColumns {
    /// Those of a list of vertices, which comes next.
    pub(super) fn of_vertices(facts: &SourceFacts) -> Self {
        Self { num_read: 1, hint: Some(""), note_place: facts.notes.len(), is_third_noted: false }
    }
}

/// Takes note of the columns that were not read, of all inputs that were read.
pub(super) fn describe(parts: &[Part], counts: &[PartCounts], facts: &mut SourceFacts) {
    let mut notes = Vec::new();
    for (part, counts) in parts.iter().zip(counts) {
        let Some(unnamed) = part.unnamed else { continue };
        let is_of_edges = !part.is_of_vertices();
        if is_of_edges && counts.num_edges > 0 && facts.columns.source.is_none() {
            // The beginning of the input held comments only.
            let [source, target, weight] = [1, 2, 3].map(|place| Some(ColumnName::Number(place)));
            let weight = weight.filter(|_| unnamed.num_read > 2);
            facts.columns =
                InputColumns { source, target, weight, left_out: std::mem::take(&mut facts.columns.left_out) };
        }
        let last = counts.num_columns.min(MAX_REPORTED);
        let columns: Vec<ColumnName> = (unnamed.num_read + 1..=last).map(ColumnName::Number).collect();
        if columns.is_empty() {
            continue;
        }
        let is_noted = unnamed.is_third_noted && columns == [ColumnName::Number(3)];
        if let Some(hint) = unnamed.hint.filter(|_| !is_noted) {
            let note = format!("{}: {}{hint}", part.path.display(), left_out_note(&columns));
            notes.push((unnamed.note_place, note));
        }
        if is_of_edges {
            leave_out(facts, columns);
        }
    }
    // From the last on: places count the notes that stood there before.
    for (place, note) in notes.into_iter().rev() {
        facts.notes.insert(place, note);
    }
}

/// Takes note of columns of edges that are left out, for the report.
pub(super) fn leave_out(facts: &mut SourceFacts, columns: impl IntoIterator<Item = ColumnName>) {
    let known = &mut facts.columns.left_out;
    for column in columns {
        if !known.contains(&column) {
            known.push(column);
        }
    }
}

/// What to say of columns that are not read.
pub(super) fn left_out_note(columns: &[ColumnName]) -> String {
    let are_numbers = columns.iter().all(|column| matches!(column, ColumnName::Number(_)));
    let shown = columns.iter().map(|column| match column {
        ColumnName::Name(name) => shown(name.as_bytes()),
        ColumnName::Number(number) if are_numbers => number.to_string(),
        ColumnName::Number(number) => format!("number {number}"),
    });
    let list = list_of(shown);
    match columns.len() {
        1 => format!("column {list} is left out"),
        _ => format!("columns {list} are left out"),
    }
}
