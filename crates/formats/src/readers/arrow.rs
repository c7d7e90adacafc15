//! Arrow IPC: files and streams with a table of edges, or with adjacency lists.
//!
//! ArrowLists lists are a CSR: one row for each vertex with its key, its properties, and a list of arcs. An arc is a
//! struct with the row of its target as `index`. Such a list is stored as the offsets of all lists, and one array for
//! each member of the arcs. Other tables have one row for each edge or vertex, as in Parquet.

mod adjacency;

use std::path::Path;
use std::sync::Arc;

use arrow_schema::DataType;

use self::adjacency::ArrowLists;
use crate::Result;
use crate::arrow_file::{ArrowFile, is_likely};
use crate::arrow_input::ArrowInput;
use crate::arrow_input::cells::Cells;
use crate::collector::InputCollector;
use crate::input_format::{InputFormat, Recognition};
use crate::probe::InputProbe;
use crate::spool::CopyLimit;

/// The format.
pub(super) struct Arrow;

impl InputFormat for Arrow {
    fn name(&self) -> &'static str {
        "arrow"
    }

    fn endings(&self) -> &'static [(&'static str, &'static str)] {
        &[("arrow", "Arrow"), ("feather", "Feather"), ("ipc", "Arrow IPC"), ("arrows", "an Arrow stream")]
    }

    fn recognises(&self, text: &[u8]) -> Recognition {
        match text.starts_with(b"ARROW1\0\0") {
            true => Recognition::Sure,
            false => Recognition::likely_if(is_likely(text)),
        }
    }

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let (input, file) = open_file(input, to)?;
        match ArrowLists::list_column(&file) {
            Some(lists) => adjacency::open(input, file, lists, to),
            None => ArrowInput::of_file(&file, None).open_edges(input, to),
        }
    }

    fn open_vertices(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let (input, file) = open_file(input, to)?;
        ArrowInput::of_file(&file, ArrowLists::list_column(&file)).open_vertices(input, to)
    }

    fn has_text_keys(&self, path: &Path) -> bool {
        // Only lists have a column of keys by definition. The keys of other tables are as the caller says.
        let is_text = |data_type: &DataType| Cells::can_hold_keys(data_type) && !is_number(data_type);
        let key = || {
            let input = InputProbe::at_file(path).ok().filter(|input| input.is_file() && is_likely(&input.head))?;
            let file = ArrowFile::open(&input.path, std::fs::File::open(path).ok()?, None).ok()?;
            ArrowLists::list_column(&file)?;
            file.schema().field_with_name(adjacency::KEY).ok().map(|field| is_text(field.data_type()))
        };
        key().unwrap_or(false)
    }
}

fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_number(values),
        other => other.is_integer() || other.is_floating(),
    }
}

fn open_file(mut input: InputProbe, to: &InputCollector<'_>) -> Result<(InputProbe, Arc<ArrowFile>)> {
    let limit = CopyLimit { scratch: to.options.scratch_limit, promised: None };
    let file = input.take_file(limit)?;
    let file = ArrowFile::open(&input.path, file, to.options.scratch_limit)?;
    Ok((input, file.into()))
}
