//! Columns without names in text without a header: notes about those that are left out.
//!
//! Any line may be wider than earlier lines, so columns are counted while lines are read.

use anden_base::message::{list_of, shown};

use crate::options::{ColumnName, SourceFacts};

/// Facts about the unnamed columns of an input before it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnnamedColumns {
    /// The number of columns that are read, from the first.
    pub(crate) num_read: usize,
    /// The hint after the note on left-out columns; `None`: no note.
    pub(crate) hint: Option<&'static str>,
    /// The position of the note among the notes of all inputs.
    pub(crate) note_place: usize,
    /// Whether an earlier note already covers the third column, if it is the only other one.
    pub(crate) is_third_noted: bool,
}

impl UnnamedColumns {
    /// The facts of a list of vertices, the next input.
    pub(crate) fn of_vertices(facts: &SourceFacts) -> Self {
        Self { num_read: 1, hint: Some(""), note_place: facts.notes.len(), is_third_noted: false }
    }
}

/// Records left-out edge columns for the report.
pub(crate) fn leave_out(facts: &mut SourceFacts, columns: impl IntoIterator<Item = ColumnName>) {
    let known = &mut facts.columns.left_out;
    for column in columns {
        if !known.contains(&column) {
            known.push(column);
        }
    }
}

/// The note about unread columns.
pub(crate) fn left_out_note(columns: &[ColumnName]) -> String {
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
