//! Edge lists: `source target [weight]` per line, separated by blanks, with an optional header.
//!
//! Lines that begin with `#`, `%` or `//` are comments. Without a header, further columns are left out.

use super::tables::open_table;
use crate::Result;
use crate::collector::InputCollector;
use crate::input_format::{InputFormat, Recognition};
use crate::probe::InputProbe;
use crate::table::TableKind;

/// The format, which any text has by default.
pub(super) struct EdgeList;

impl InputFormat for EdgeList {
    fn name(&self) -> &'static str {
        "edgelist"
    }

    fn recognises(&self, _text: &[u8]) -> Recognition {
        Recognition::Likely
    }

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        to.direction_known(&input.path, None)?;
        open_table(input, TableKind { has_blanks: true, is_of_vertices: false }, to)
    }

    fn open_vertices(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        open_table(input, TableKind { has_blanks: true, is_of_vertices: true }, to)
    }

    fn open_removals(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        self.open(input, to)
    }
}
