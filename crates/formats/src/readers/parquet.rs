//! Apache Parquet: one row per edge or vertex. [`crate::parquet`] reads the files.

use std::sync::Arc;

use anden_graph::Weight;

use crate::Result;
use crate::chunk::{AnyInputChunk, InputChunk, ParseContext, ParsedChunk, columns_at_once};
use crate::collector::InputCollector;
use crate::input_format::{InputFormat, Recognition};
use crate::key::FieldKey;
use crate::options::ColumnName;
use crate::outcome::Fatal;
use crate::parquet::{ParquetFile, RowLayout, RowRange, bytes_of, read_rows};
use crate::part::{InputContent, InputReader, InputStart};
use crate::probe::InputProbe;
use crate::unnamed_columns::leave_out;

/// The format.
pub(super) struct Parquet;

impl InputFormat for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn endings(&self) -> &'static [(&'static str, &'static str)] {
        &[("parquet", "Parquet")]
    }

    fn recognises(&self, text: &[u8]) -> Recognition {
        Recognition::likely_if(ParquetFile::is_likely(text))
    }

    fn open(&self, mut input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let file = input.take_file()?;
        let file = Arc::new(ParquetFile::open(&input.path, file)?);
        let (layout, properties) = RowLayout::of_edges(&file, to.options)?;
        to.direction_known(&input.path, None)?;
        describe(&input, &file, &layout, true, to);
        let weight_type = layout.weight_type(&file);
        let part = to.push(input, Box::new(ParquetInput { file, layout: Arc::new(layout) }));
        part.properties[0] = properties;
        part.weight_type = weight_type;
        Ok(())
    }

    fn open_vertices(&self, mut input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let file = input.take_file()?;
        let file = Arc::new(ParquetFile::open(&input.path, file)?);
        let (layout, properties) = RowLayout::of_vertices(&file, to.options)?;
        describe(&input, &file, &layout, false, to);
        to.push_vertices(input, Box::new(ParquetInput { file, layout: Arc::new(layout) })).properties[1] = properties;
        Ok(())
    }
}

/// Notes the columns of a file of edges or vertices.
fn describe(
    input: &InputProbe,
    file: &ParquetFile,
    layout: &RowLayout,
    is_of_edges: bool,
    to: &mut InputCollector<'_>,
) {
    to.facts.notes.extend(layout.notes(file));
    let options = to.options;
    let wanted = if is_of_edges { &options.edge_properties } else { &options.vertex_properties };
    let columns = layout.columns(file);
    let hint = to.hint(&columns, wanted);
    to.describe(&input.path, columns, is_of_edges, hint);
    if is_of_edges {
        // Each of these columns has its own note with the reason.
        leave_out(&mut to.facts, RowLayout::unread(file).map(|column| ColumnName::Name(column.to_owned())));
    }
}

/// A file as an input.
#[derive(Clone)]
struct ParquetInput {
    file: Arc<ParquetFile>,
    layout: Arc<RowLayout>,
}

impl InputContent for ParquetInput {
    fn begin(&self, input: InputStart<'_>) -> Result<Box<dyn InputReader>> {
        // About as many rows as the lines of a block of text.
        let rows_at_once = columns_at_once(input.options);
        Ok(Box::new(ParquetReader { input: self.clone(), rows_at_once, last: None }))
    }
}

/// Cuts a file into rows.
struct ParquetReader {
    input: ParquetInput,
    rows_at_once: u64,
    /// The last returned rows.
    last: Option<RowRange>,
}

impl InputReader for ParquetReader {
    fn next(&mut self, _spare: &mut Vec<Vec<u8>>) -> Result<Option<Box<dyn AnyInputChunk>>, Fatal> {
        let Some(rows) = self.input.file.next_rows(self.last.as_ref(), self.rows_at_once) else { return Ok(None) };
        self.last = Some(rows.clone());
        Ok(Some(Box::new(ParquetChunk(self.input.clone(), rows))))
    }
}

/// Consecutive rows.
struct ParquetChunk(ParquetInput, RowRange);

impl InputChunk for ParquetChunk {
    fn parse<K: FieldKey, W: Weight>(self, context: &ParseContext<'_>) -> Result<ParsedChunk<K, W>> {
        let Self(ParquetInput { file, layout }, rows) = self;
        let block = read_rows::<K, W>(&file, &layout, &rows, context.on_error())?;
        context.count_read(bytes_of(&file, &layout, &rows));
        Ok(ParsedChunk::of_extra(block))
    }
}
