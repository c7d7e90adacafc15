//! Apache Parquet: one row per edge or vertex. [`crate::parquet`] reads the files.

use std::path::Path;
use std::sync::Arc;

use anden_base::message::{list_of, shown};
use anden_graph::Weight;

use crate::Result;
use crate::chunk::{AnyInputChunk, InputChunk, ParseContext, ParsedChunk, columns_at_once};
use crate::collector::InputCollector;
use crate::input_format::{InputFormat, Recognition};
use crate::key::FieldKey;
use crate::options::{ColumnName, InputColumns, SourceOptions};
use crate::outcome::Fatal;
use crate::parquet::{ParquetFile, RowLayout, RowRange, bytes_of, read_rows};
use crate::part::{InputContent, InputReader, InputStart};
use crate::probe::InputProbe;
use crate::spool::CopyLimit;
use crate::table::LdbcTable;
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

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let (input, file) = open_file(input, to)?;
        let table = ldbc_table(&file, &input, to);
        match table.as_ref().is_some_and(|table| table.target.is_none()) {
            true => add_vertices(input, file, table, to),
            false => add_edges(input, file, table, to),
        }
    }

    fn open_vertices(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let (input, file) = open_file(input, to)?;
        let table = ldbc_table(&file, &input, to).filter(|table| table.target.is_none());
        add_vertices(input, file, table, to)
    }
}

/// The columns of a file of LDBC's social network, unless options name columns.
fn ldbc_table(file: &ParquetFile, input: &InputProbe, to: &InputCollector<'_>) -> Option<LdbcTable> {
    let SourceOptions { source_column, target_column, vertex_column, .. } = to.options;
    let is_asked = source_column.is_some() || target_column.is_some() || vertex_column.is_some();
    LdbcTable::of(&file.names(), &input.path, to.has_relations).filter(|_| !is_asked)
}

/// Opens edges whose keys are columns of these names, unless options name others.
///
/// # Errors
/// The file cannot be read, or lacks the columns.
pub(super) fn open_edge_table(path: &Path, [source, target]: [&str; 2], to: &mut InputCollector<'_>) -> Result<()> {
    let (input, file) = open_file(InputProbe::at_file(path)?, to)?;
    let mut options = to.options.clone();
    name_column(&mut options.source_column, source, &input, &file)?;
    name_column(&mut options.target_column, target, &input, &file)?;
    add_edges_with(input, file, None, &options, to)
}

/// Opens vertices whose keys are the column of this name, unless an option names another.
///
/// # Errors
/// The file cannot be read, or lacks the column.
pub(super) fn open_vertex_table(path: &Path, key: &str, to: &mut InputCollector<'_>) -> Result<()> {
    let (input, file) = open_file(InputProbe::at_file(path)?, to)?;
    let mut options = to.options.clone();
    name_column(&mut options.vertex_column, key, &input, &file)?;
    add_vertices_with(input, file, None, &options, to)
}

fn name_column(option: &mut Option<String>, name: &str, input: &InputProbe, file: &ParquetFile) -> Result<()> {
    if option.is_none() && !file.names().contains(&name) {
        let found = list_of(file.names().into_iter().map(|name| shown(name.as_bytes())));
        return Err(input.bad(&format!("expected the column '{name}', found {found}")));
    }
    option.get_or_insert_with(|| name.to_owned());
    Ok(())
}

fn open_file(mut input: InputProbe, to: &InputCollector<'_>) -> Result<(InputProbe, Arc<ParquetFile>)> {
    let file = input.take_file(CopyLimit { scratch: to.options.scratch_limit, promised: None })?;
    let file = Arc::new(ParquetFile::open(&input.path, file)?);
    Ok((input, file))
}

/// Whether the column of a file is text; `false` if there is none.
pub(super) fn has_text_column(path: &Path, name: &str) -> bool {
    let open = || ParquetFile::open(path, std::fs::File::open(path).ok()?).ok();
    open().is_some_and(|file| file.is_text(name))
}

fn add_edges(
    input: InputProbe,
    file: Arc<ParquetFile>,
    table: Option<LdbcTable>,
    to: &mut InputCollector<'_>,
) -> Result<()> {
    let mut options = to.options.clone();
    if let Some(LdbcTable { source, target: Some(target), .. }) = &table {
        [options.source_column, options.target_column] =
            [source, target].map(|&place| Some(file.names()[place].to_owned()));
    }
    add_edges_with(input, file, table, &options, to)
}

fn add_edges_with(
    input: InputProbe,
    file: Arc<ParquetFile>,
    table: Option<LdbcTable>,
    options: &SourceOptions,
    to: &mut InputCollector<'_>,
) -> Result<()> {
    let (layout, properties) = RowLayout::of_edges(&file, options)?;
    to.direction_known(&input.path, None)?;
    // Each table of edges has its own names of columns, which need no note.
    let mut columns = layout.columns(&file);
    if table.is_some() && to.facts.columns.source.is_some() {
        (columns.source, columns.target) = (None, None);
    }
    describe(&input, &file, &layout, columns, to);
    // Each of these columns has its own note with the reason.
    leave_out(&mut to.facts, RowLayout::unread(&file).map(|column| ColumnName::Name(column.to_owned())));
    let said = table.map(|table| table.said.wanted(to.options)).unwrap_or_default();
    let weight_type = layout.weight_type(&file);
    let part = to.push(input, Box::new(ParquetInput { file, layout: Arc::new(layout) }));
    (part.properties[0], part.said, part.weight_type) = (properties, said, weight_type);
    Ok(())
}

fn add_vertices(
    input: InputProbe,
    file: Arc<ParquetFile>,
    table: Option<LdbcTable>,
    to: &mut InputCollector<'_>,
) -> Result<()> {
    let mut options = to.options.clone();
    if let Some(LdbcTable { source, .. }) = &table {
        options.vertex_column = Some(file.names()[*source].to_owned());
    }
    add_vertices_with(input, file, table, &options, to)
}

fn add_vertices_with(
    input: InputProbe,
    file: Arc<ParquetFile>,
    table: Option<LdbcTable>,
    options: &SourceOptions,
    to: &mut InputCollector<'_>,
) -> Result<()> {
    let (layout, properties) = RowLayout::of_vertices(&file, options)?;
    describe(&input, &file, &layout, layout.columns(&file), to);
    let said = table.map(|table| table.said.wanted(to.options)).unwrap_or_default();
    let part = to.push_vertices(input, Box::new(ParquetInput { file, layout: Arc::new(layout) }));
    (part.properties[1], part.said) = (properties, said);
    Ok(())
}

/// Notes the columns of a file of edges or vertices.
fn describe(
    input: &InputProbe,
    file: &ParquetFile,
    layout: &RowLayout,
    columns: InputColumns,
    to: &mut InputCollector<'_>,
) {
    to.facts.notes.extend(layout.notes(file));
    let is_of_edges = layout.is_of_edges();
    let wanted = if is_of_edges { &to.options.edge_properties } else { &to.options.vertex_properties };
    let hint = to.hint(&columns, wanted);
    to.describe(&input.path, columns, is_of_edges, hint);
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
        let block = read_rows::<K, W>(&file, &layout, &rows, context.options)?;
        context.count_read(bytes_of(&file, &layout, &rows));
        Ok(ParsedChunk::of_extra(block))
    }
}
