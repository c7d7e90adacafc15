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
use crate::labeled::Said;
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
        let mut opened = OpenedParquet::new(input, to)?;
        opened.take_ldbc(to);
        match opened.ldbc.as_ref().is_some_and(|table| table.target.is_none()) {
            true => opened.add_vertices(to),
            false => opened.add_edges(to),
        }
    }

    fn open_vertices(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let mut opened = OpenedParquet::new(input, to)?;
        opened.take_ldbc(to);
        opened.ldbc = opened.ldbc.filter(|table| table.target.is_none());
        opened.add_vertices(to)
    }
}

/// Opens edges whose keys are columns of these names, unless options name others.
///
/// # Errors
/// The file cannot be read, or lacks the columns.
pub(super) fn open_edge_table(path: &Path, [source, target]: [&str; 2], to: &mut InputCollector<'_>) -> Result<()> {
    let mut opened = OpenedParquet::new(InputProbe::at_file(path)?, to)?;
    opened.options.source_column = Some(opened.named(opened.options.source_column.as_deref(), source)?);
    opened.options.target_column = Some(opened.named(opened.options.target_column.as_deref(), target)?);
    opened.add_edges(to)
}

/// Opens vertices whose keys are the column of this name, unless an option names another.
///
/// # Errors
/// The file cannot be read, or lacks the column.
pub(super) fn open_vertex_table(path: &Path, key: &str, to: &mut InputCollector<'_>) -> Result<()> {
    let mut opened = OpenedParquet::new(InputProbe::at_file(path)?, to)?;
    opened.options.vertex_column = Some(opened.named(opened.options.vertex_column.as_deref(), key)?);
    opened.add_vertices(to)
}

/// Whether the column of a file is text; `false` if there is none.
pub(super) fn has_text_column(path: &Path, name: &str) -> bool {
    let open = || ParquetFile::open(path, std::fs::File::open(path).ok()?).ok();
    open().is_some_and(|file| file.is_text(name))
}

/// A file before its rows become an input.
struct OpenedParquet {
    input: InputProbe,
    file: Arc<ParquetFile>,
    /// The options of the caller, with the columns that the kind of table names.
    options: SourceOptions,
    /// The roles of the columns, if the file is of LDBC's social network.
    ldbc: Option<LdbcTable>,
}

impl OpenedParquet {
    fn new(mut input: InputProbe, to: &InputCollector<'_>) -> Result<Self> {
        let file = input.take_file(CopyLimit { scratch: to.options.scratch_limit, promised: None })?;
        let file = Arc::new(ParquetFile::open(&input.path, file)?);
        Ok(Self { input, file, options: to.options.clone(), ldbc: None })
    }

    /// Finds the roles of a file of LDBC's social network, unless options name columns.
    fn take_ldbc(&mut self, to: &InputCollector<'_>) {
        let SourceOptions { source_column, target_column, vertex_column, .. } = &self.options;
        let is_asked = source_column.is_some() || target_column.is_some() || vertex_column.is_some();
        self.ldbc = LdbcTable::of(&self.file.names(), &self.input.path, to.has_relations).filter(|_| !is_asked);
    }

    /// The column that an option names, or else `name`, which must exist.
    fn named(&self, option: Option<&str>, name: &str) -> Result<String> {
        if option.is_none() && !self.file.names().contains(&name) {
            let found = list_of(self.file.names().into_iter().map(|name| shown(name.as_bytes())));
            return Err(self.input.bad(&format!("expected the column '{name}', found {found}")));
        }
        Ok(option.unwrap_or(name).to_owned())
    }

    fn add_edges(mut self, to: &mut InputCollector<'_>) -> Result<()> {
        if let Some(LdbcTable { source, target: Some(target), .. }) = &self.ldbc {
            [self.options.source_column, self.options.target_column] =
                [source, target].map(|&place| Some(self.file.names()[place].to_owned()));
        }
        let Self { input, file, options, ldbc } = self;
        let (layout, properties) = RowLayout::of_edges(&file, &options)?;
        to.direction_known(&input.path, None)?;
        // Each table of edges has its own names of columns, which need no note.
        let mut columns = layout.columns(&file);
        if ldbc.is_some() && to.facts.columns.source.is_some() {
            (columns.source, columns.target) = (None, None);
        }
        describe(&input, &file, &layout, columns, to);
        // Each of these columns has its own note with the reason.
        leave_out(&mut to.facts, RowLayout::unread(&file).map(|column| ColumnName::Name(column.to_owned())));
        let weight_type = layout.weight_type(&file);
        let part = to.push(input, Box::new(ParquetInput { file, layout: Arc::new(layout) }));
        (part.properties[0], part.said, part.weight_type) = (properties, said(ldbc, &options), weight_type);
        Ok(())
    }

    fn add_vertices(mut self, to: &mut InputCollector<'_>) -> Result<()> {
        if let Some(LdbcTable { source, .. }) = &self.ldbc {
            self.options.vertex_column = Some(self.file.names()[*source].to_owned());
        }
        let Self { input, file, options, ldbc } = self;
        let (layout, properties) = RowLayout::of_vertices(&file, &options)?;
        describe(&input, &file, &layout, layout.columns(&file), to);
        let part = to.push_vertices(input, Box::new(ParquetInput { file, layout: Arc::new(layout) }));
        (part.properties[1], part.said) = (properties, said(ldbc, &options));
        Ok(())
    }
}

/// The type and the labels of all rows of a table.
fn said(table: Option<LdbcTable>, options: &SourceOptions) -> Said {
    table.map(|table| table.said.wanted(options)).unwrap_or_default()
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
        let rows_at_once = self.layout.rows_at_once(&self.file, columns_at_once(input.options));
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
