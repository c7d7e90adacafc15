//! CSV for the bulk loaders of Neo4j and Neptune, whose headers state the roles of columns.
//!
//! A file with such a header has this format under any name, so the reader of CSV takes it too. Given by name, the
//! format refuses other files.

use super::csv::Csv;
use crate::Result;
use crate::collector::InputCollector;
use crate::input_format::{InputFormat, Recognition};
use crate::probe::InputProbe;

/// The formats.
pub(super) struct Bulk {
    name: &'static str,
    headers: &'static str,
}

/// The CSV of `neo4j-admin import`.
pub(super) const NEO4J: Bulk = Bulk { name: "neo4j", headers: "with :ID, or with :START_ID and :END_ID" };
/// The CSV of the bulk loader of Neptune.
pub(super) const NEPTUNE: Bulk = Bulk { name: "neptune", headers: "with ~id, or with ~from and ~to" };

impl InputFormat for Bulk {
    fn name(&self) -> &'static str {
        self.name
    }

    fn recognises(&self, _text: &[u8]) -> Recognition {
        Recognition::No
    }

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let path = input.path.clone();
        Csv.open(input, to)?;
        let table = to.parts.last().and_then(|part| part.table.as_ref());
        match table.is_some_and(|table| table.states_vertices().is_none()) {
            true => Err(crate::Error::Input {
                path,
                what: format!("expected a header {}, as --format {} says, found none", self.headers, self.name),
            }),
            false => Ok(()),
        }
    }

    fn open_vertices(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        self.open(input, to)
    }
}
