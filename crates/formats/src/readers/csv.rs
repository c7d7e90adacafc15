//! CSV: columns separated by `,`, `;`, tabs, `|` or another given character, with optional quotes and an optional header.
//!
//! Blanks are part of a field (RFC 4180), and comments stand only before the header.

use super::tables::open_table;
use crate::Result;
use crate::collector::InputCollector;
use crate::input_format::{InputFormat, Recognition};
use crate::lines::first_line;
use crate::probe::InputProbe;
use crate::table::{TableKind, are_marked_rows};

/// The format.
pub(super) struct Csv;

impl InputFormat for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn endings(&self) -> &'static [(&'static str, &'static str)] {
        &[("csv", "CSV"), ("tsv", "tab-separated values")]
    }

    fn recognises(&self, text: &[u8]) -> Recognition {
        let first = first_line(text);
        // If all lines are marked, they are rows if they look like rows, otherwise comments.
        let is_marked = first.is_empty() && are_marked_rows(text);
        Recognition::likely_if(is_marked || first.contains(&b',') || first.contains(&b';'))
    }

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        to.direction_known(&input.path, None)?;
        open_table(input, TableKind { has_blanks: false, is_of_vertices: false }, to)
    }

    fn open_vertices(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        open_table(input, TableKind { has_blanks: false, is_of_vertices: true }, to)
    }

    fn open_removals(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        self.open(input, to)
    }
}
