//! Graphs as text, and files that appear completely or not at all.
//!
//! Lines of edges cannot hold vertices without edges. An undirected edge is written once, with its lower id first.
//! [`write_vertices`] writes vertices to a separate file, which is read beside the edges.

use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anden_base::VertexId;
use anden_base::progress::{Progress, Silent};
use anden_graph::property::{PropertySchema, PropertyValue};
use anden_graph::{Direction, GraphKind, Weight, WeightType, WeightedEdges};

use crate::array_text::ArrayForm;
use crate::csv_dialect::CsvDialect;
use crate::edge_rows::{EdgeRows, WrittenProperties, for_each_written};
use crate::readers;
use crate::{Error, Result};

/// Bytes that are buffered before a write.
pub(crate) const OUTPUT_BUFFER_BYTES: usize = 1 << 20;

/// The destination of a graph, with a name for messages.
pub struct Output<'a> {
    path: PathBuf,
    writer: BufWriter<Box<dyn Write + Send + 'a>>,
    progress: &'a dyn Progress,
    /// Complete files that appear right before this one; `None` if the output is no unpublished file.
    companions: Option<Vec<Aside>>,
}

impl std::fmt::Debug for Output<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Output({})", self.path.display())
    }
}

impl<'a> Output<'a> {
    /// Buffers output to `writer`, which messages call `path` (`-` for standard output).
    pub fn new(path: &Path, writer: impl Write + Send + 'a) -> Self {
        Self::stopping(path, writer, &Silent)
    }

    /// As [`new`](Self::new), but checks `progress` for cancellation.
    pub fn stopping(path: &Path, writer: impl Write + Send + 'a, progress: &'a dyn Progress) -> Self {
        let writer = BufWriter::with_capacity(OUTPUT_BUFFER_BYTES, Box::new(writer) as Box<dyn Write + Send>);
        Self { path: path.to_owned(), writer, progress, companions: None }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The bytes cannot be written, or the work was cancelled.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        // One check for each full buffer is often enough.
        if bytes.len() > self.writer.capacity() - self.writer.buffer().len() {
            self.progress.check()?;
        }
        self.writer.write_all(bytes).map_err(|e| self.failed(e))
    }

    /// Writes the buffered bytes. Writers of graphs call this at the end.
    ///
    /// # Errors
    /// The bytes cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(|e| self.failed(e))
    }

    /// The path, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The progress that tells of cancellation.
    pub(crate) fn progress(&self) -> &'a dyn Progress {
        self.progress
    }

    fn failed(&self, error: std::io::Error) -> Error {
        let is_stdout = self.path == Path::new("-");
        let name = if is_stdout { Path::new("standard output") } else { &self.path };
        anden_base::Error::io("write", name, error).into()
    }

    /// The path of a file beside this one, with another ending.
    ///
    /// # Errors
    /// The name of this file lacks its ending, so that no file can stand beside it.
    pub(crate) fn beside(&self, own: &str, other: &str) -> Result<PathBuf> {
        match self.path.extension().is_some_and(|ending| ending == own) {
            true => Ok(self.path.with_extension(other)),
            false => Err(self.refuse(format!("expected a name that ends in .{own}, with .{other} beside it"))),
        }
    }

    /// Lets a complete file appear right before this one. If this one fails, the other does not appear.
    ///
    /// # Errors
    /// Those of the file system, if this output is visible already.
    pub(crate) fn accompany(&mut self, file: Aside) -> Result<()> {
        match &mut self.companions {
            Some(companions) => companions.push(file),
            None => file.publish()?,
        }
        Ok(())
    }

    pub(crate) fn refuse(&self, what: String) -> Error {
        Error::Input { path: self.path.clone(), what }
    }
}

/// Lets `body` write a file under a temporary name, which becomes `path` once all bytes are on disk. A device or pipe
/// at `path` is written directly, because a rename would replace it.
///
/// # Errors
/// Those of `body` and of the file system. Then no temporary file remains, and an existing file at `path` is unchanged.
pub fn write_file<T, E: From<Error>>(path: &Path, body: impl FnOnce(&mut Output<'_>) -> Result<T, E>) -> Result<T, E> {
    let (value, aside) = write_aside(path, &Silent, body)?;
    aside.publish()?;
    Ok(value)
}

/// A complete file or folder on disk that is not at its path yet. Dropping it removes the file or folder.
#[derive(Debug)]
#[must_use]
pub struct Aside {
    path: PathBuf,
    /// The temporary path until the rename; `None` for a device or pipe, which is already written.
    temporary: Option<PathBuf>,
    /// Files that appear right before this one.
    companions: Vec<Aside>,
}

impl Aside {
    /// A file or folder with this temporary path.
    pub(crate) fn new(path: &Path, temporary: PathBuf) -> Self {
        Self { path: path.to_owned(), temporary: Some(temporary), companions: Vec::new() }
    }

    /// Renames the file to its path, after the files that belong to it.
    ///
    /// # Errors
    /// Those of the file system; an existing file at the path is unchanged.
    pub fn publish(mut self) -> Result<()> {
        self.companions.drain(..).try_for_each(Self::publish)?;
        if let Some(temporary) = &self.temporary {
            std::fs::rename(temporary, &self.path).map_err(|e| anden_base::Error::io("rename to", &self.path, e))?;
            // The file has its final name, so `drop` must leave it alone.
            self.temporary = None;
        }
        Ok(())
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // A destructor cannot report an error, and the remaining file does no harm.
            let _ = match temporary.is_dir() {
                true => std::fs::remove_dir_all(temporary),
                false => std::fs::remove_file(temporary),
            };
        }
    }
}

/// The first half of [`write_file`], which checks `progress` for cancellation. Several files can be complete before the
/// first one appears at its path.
///
/// # Errors
/// As [`write_file`], and cancellation.
pub fn write_aside<T, E: From<Error>>(
    path: &Path,
    progress: &dyn Progress,
    body: impl FnOnce(&mut Output<'_>) -> Result<T, E>,
) -> Result<(T, Aside), E> {
    let io = |operation, e| E::from(anden_base::Error::io(operation, path, e).into());
    let refused = |what: &str| Err(Error::Input { path: path.to_owned(), what: what.to_owned() }.into());
    // A missing file is no error, because the file is created below.
    let found = std::fs::metadata(path).ok();
    if found.as_ref().is_some_and(std::fs::Metadata::is_dir) {
        return refused("expected the name of a file, found a directory");
    }
    if found.is_some_and(|found| !found.is_file()) {
        let file = std::fs::OpenOptions::new().write(true).open(path).map_err(|e| io("open", e))?;
        let mut output = Output::stopping(path, file, progress);
        let value = body(&mut output)?;
        output.flush()?;
        return Ok((value, Aside { path: path.to_owned(), temporary: None, companions: Vec::new() }));
    }
    let Some(temporary) = temporary_path(path) else { return refused("expected the name of a file") };
    let file = std::fs::File::create(&temporary).map_err(|e| io("create", e))?;
    // From here on, every error drops this guard, which removes the temporary file.
    let mut aside = Aside::new(path, temporary);
    let mut output = Output::stopping(path, &file, progress);
    output.companions = Some(Vec::new());
    let value = body(&mut output)?;
    output.flush()?;
    aside.companions = output.companions.unwrap_or_default();
    // Synced before the rename, so that a crash cannot leave a truncated file at `path`.
    file.sync_all().map_err(|e| io("sync", e))?;
    Ok((value, aside))
}

/// A path for an unfinished file or folder; `None` if `path` has no name.
pub(crate) fn temporary_path(path: &Path) -> Option<PathBuf> {
    // Beside the final path, because a rename cannot cross file systems.
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(path.file_name()?);
    // Numbered, so that two threads that write one path do not share a file.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    temporary.push(format!(".{}.{}.tmp", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    Some(path.with_file_name(temporary))
}

/// The style of a line of text.
pub(crate) struct Style {
    delimiter: u8,
    may_quote: bool,
    /// Whether readers would take a list with commas or semicolons for CSV.
    is_told_by_content: bool,
    dialect: CsvDialect,
}

/// Writes `source target [weight]` lines; returns their number.
///
/// `key` appends the key of a vertex to the given bytes.
///
/// # Errors
/// Those of `key` and of the output. A key has blanks, which such lines cannot hold. A key has commas or semicolons,
/// and the name of the output does not identify a list.
pub fn write_edge_list<E: From<Error>>(
    graph: &impl WeightedEdges,
    key: impl FnMut(VertexId, &mut Vec<u8>) -> Result<(), E>,
    output: &mut Output<'_>,
) -> Result<u64, E> {
    // Only the name of a list tells readers that commas are part of its keys.
    let is_told_by_content = !readers::of_path(&output.path).is_some_and(|reader| reader.is_list());
    let dialect = CsvDialect::Plain;
    write_lines(graph, key, output, &Style { delimiter: b' ', may_quote: false, is_told_by_content, dialect })
}

/// Writes edges as rows of CSV: keys, weights and properties under a header that the dialect names, quoted where
/// necessary. Returns the number of edges. A null is an empty field, an empty text is quoted.
///
/// # Errors
/// Those of keys, properties and output. A property has the name of another column, or a value that the dialect lacks.
pub fn write_csv<E: From<Error>>(
    graph: &impl WeightedEdges,
    key: impl FnMut(VertexId, &mut Vec<u8>) -> Result<(), E>,
    properties: &impl WrittenProperties<E>,
    dialect: CsvDialect,
    output: &mut Output<'_>,
) -> Result<u64, E> {
    let style = Style::csv(dialect);
    let (weight_type, schema) = (graph.weight_type(), properties.edge_schema());
    refuse_clash(&dialect.taken_edge_names(weight_type.is_some()), schema, output.path())?;
    output.write(&style.header(&dialect.edge_names(weight_type, schema), output)?)?;
    // Without properties, edges need no columns, so their lines are written at once.
    if schema.is_empty() && dialect == CsvDialect::Plain {
        return write_lines(graph, key, output, &style);
    }
    match graph.weight_type() {
        None | Some(WeightType::U32) => write_rows::<u32, _, E>(graph, key, properties, output, &style),
        Some(WeightType::I64) => write_rows::<i64, _, E>(graph, key, properties, output, &style),
        Some(WeightType::F32) => write_rows::<f32, _, E>(graph, key, properties, output, &style),
        Some(WeightType::F64) => write_rows::<f64, _, E>(graph, key, properties, output, &style),
    }
}

/// Refuses properties with the name of another column, which readers could not distinguish.
pub(crate) fn refuse_clash(taken: &[&str], properties: &PropertySchema, path: &Path) -> Result<()> {
    let is_taken = |name: &str| taken.iter().any(|taken| taken.eq_ignore_ascii_case(name));
    match properties.iter().find(|(name, _)| is_taken(name)) {
        Some((name, _)) => Err(Error::Input {
            path: path.to_owned(),
            what: format!("the property '{name}' has the name of another column: write GraphML"),
        }),
        None => Ok(()),
    }
}

/// Writes the lines of edges with properties.
fn write_rows<W: Weight, G: WeightedEdges, E: From<Error>>(
    graph: &G,
    mut key: impl FnMut(VertexId, &mut Vec<u8>) -> Result<(), E>,
    properties: &impl WrittenProperties<E>,
    output: &mut Output<'_>,
    style: &Style,
) -> Result<u64, E> {
    let (mut edges, mut line, mut num_edges) = (EdgeRows::<W>::default(), Vec::new(), 0);
    let schema = properties.edge_schema();
    let (name, is_numbered) = (style.dialect.edge_name(schema), style.dialect.has_edge_numbers(schema));
    let arrays = style.dialect.arrays(schema, true);
    for_each_written(graph, 0..graph.vertex_bound() as VertexId, true, |vertex| {
        edges.push(graph, properties, vertex)?;
        // Edges wait for a common lookup of their properties. The last vertex ends the wait.
        if edges.len() < EDGES_AT_ONCE && (vertex as usize) < graph.vertex_bound() - 1 {
            return Ok(());
        }
        let columns = properties.edge_columns(&edges.rows)?;
        for row in 0..edges.len() {
            line.clear();
            key(edges.sources[row], &mut line)?;
            style.fit_key(&mut line, 0, output)?;
            line.push(style.delimiter);
            let start = line.len();
            key(edges.targets[row], &mut line)?;
            style.fit_key(&mut line, start, output)?;
            if let Some(weight) = edges.weights.get(row) {
                style.push_value(&mut line, &style.dialect.number(weight.to_string()), output)?;
            }
            let number = num_edges + row as u64 + 1;
            for (place, column) in columns.iter().enumerate() {
                match column.get(row) {
                    // An edge that was added after the load has no name, and Neptune needs one.
                    PropertyValue::Null if Some(place) == name => {
                        style.push_value(&mut line, &format!("#{number}"), output)?;
                    }
                    value => style.push_cell(&mut line, value, arrays[place], output)?,
                }
            }
            if is_numbered {
                style.push_value(&mut line, &number.to_string(), output)?;
            }
            line.push(b'\n');
            output.write(&line)?;
        }
        num_edges += edges.len() as u64;
        edges.clear();
        Ok::<(), E>(())
    })?;
    // A damaged page looks empty, so the file is complete only if the graph has no fault.
    graph.check().map_err(Error::from)?;
    output.flush()?;
    Ok(num_edges)
}

fn write_lines<G: WeightedEdges, E: From<Error>>(
    graph: &G,
    key: impl FnMut(VertexId, &mut Vec<u8>) -> Result<(), E>,
    output: &mut Output<'_>,
    style: &Style,
) -> Result<u64, E> {
    let writer = LineWriter { graph, key, output, style, line: Vec::new(), source_end: 0, num_edges: 0 };
    match graph.weight_type() {
        None => writer.write::<u32>(None),
        Some(WeightType::U32) => writer.write::<u32>(Some(())),
        Some(WeightType::I64) => writer.write::<i64>(Some(())),
        Some(WeightType::F32) => writer.write::<f32>(Some(())),
        Some(WeightType::F64) => writer.write::<f64>(Some(())),
    }
}

struct LineWriter<'a, 'o, G, F> {
    graph: &'a G,
    key: F,
    output: &'a mut Output<'o>,
    style: &'a Style,
    /// The source with its delimiter, then the rest of a line.
    line: Vec<u8>,
    source_end: usize,
    num_edges: u64,
}

impl<G: WeightedEdges, F, E: From<Error>> LineWriter<'_, '_, G, F>
where
    F: FnMut(VertexId, &mut Vec<u8>) -> Result<(), E>,
{
    fn write<W: Weight>(mut self, weighted: Option<()>) -> Result<u64, E> {
        let graph = self.graph;
        let mut failed = Ok(());
        for_each_written(graph, 0..graph.vertex_bound() as VertexId, false, |source| {
            // The key of a vertex without edges is not read.
            if graph.degree(Direction::Out, source) == 0 {
                return Ok(());
            }
            self.line.clear();
            // The key of the source is made once for all its edges.
            self.push_key(source)?;
            self.line.push(self.style.delimiter);
            self.source_end = self.line.len();
            // Fragment closures return no error, so the first one is kept outside.
            let mut each = |targets: &[VertexId], weights: &[W]| {
                failed = self.fragment(source, targets, weights);
                if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            let _ = match weighted {
                Some(()) => graph.for_each_weighted_fragment::<W>(Direction::Out, source, each),
                None => graph.for_each_fragment(Direction::Out, source, |targets| each(targets, &[])),
            };
            std::mem::replace(&mut failed, Ok(()))
        })?;
        // A damaged page looks empty, so the file is complete only if the graph has no fault.
        graph.check().map_err(Error::from)?;
        self.output.flush()?;
        Ok(self.num_edges)
    }

    fn fragment<W: Weight>(&mut self, source: VertexId, targets: &[VertexId], weights: &[W]) -> Result<(), E> {
        for (i, &target) in targets.iter().enumerate() {
            // Both ends list an undirected edge, and only its lower end writes it.
            if target < source && self.graph.graph_kind() == GraphKind::Undirected {
                continue;
            }
            self.line.truncate(self.source_end);
            self.push_key(target)?;
            if let Some(weight) = weights.get(i) {
                self.line.push(self.style.delimiter);
                // A write to memory cannot fail.
                let _ = write!(self.line, "{weight}");
            }
            self.line.push(b'\n');
            self.output.write(&self.line)?;
            self.num_edges += 1;
        }
        Ok(())
    }

    fn push_key(&mut self, vertex: VertexId) -> Result<(), E> {
        let start = self.line.len();
        (self.key)(vertex, &mut self.line)?;
        Ok(self.style.fit_key(&mut self.line, start, self.output)?)
    }
}

/// The number of vertices per property lookup.
const VERTICES_AT_ONCE: usize = 4 << 10;
/// The approximate number of edges per property lookup.
const EDGES_AT_ONCE: usize = 16 << 10;

impl Style {
    /// Commas, and quotes where necessary.
    pub(crate) const CSV: Self = Self::csv(CsvDialect::Plain);

    const fn csv(dialect: CsvDialect) -> Self {
        Self { delimiter: b',', may_quote: true, is_told_by_content: false, dialect }
    }

    /// The line of a header.
    fn header(&self, names: &[String], output: &Output<'_>) -> Result<Vec<u8>> {
        let mut line = Vec::new();
        for name in names {
            self.push_value(&mut line, name, output)?;
        }
        // The first name has no delimiter before it.
        line.remove(0);
        line.push(b'\n');
        Ok(line)
    }

    /// Appends a delimiter and a property value; only the delimiter for null. `array` is the name of the property and
    /// the form of its lists.
    fn push_cell(
        &self,
        line: &mut Vec<u8>,
        value: PropertyValue<'_>,
        array: Option<(&str, ArrayForm)>,
        output: &Output<'_>,
    ) -> Result<()> {
        match (value, array) {
            (PropertyValue::Null, _) => {
                line.push(self.delimiter);
                Ok(())
            }
            (PropertyValue::String(list), Some((name, form))) => {
                let field = form.field(list, |item| self.dialect.text(item));
                let field = field.map_err(|what| output.refuse(format!("property {name:?}: {what}")))?;
                self.push_value(line, &field, output)
            }
            (value, _) => {
                let text = self.dialect.text(value).map_err(|what| output.refuse(what))?;
                self.push_value(line, &text, output)
            }
        }
    }

    /// Appends a delimiter and a value, quoted if necessary.
    fn push_value(&self, line: &mut Vec<u8>, value: &str, output: &Output<'_>) -> Result<()> {
        line.push(self.delimiter);
        let start = line.len();
        line.extend_from_slice(value.as_bytes());
        self.fit_key(line, start, output)
    }

    /// Quotes the key at the end of a line if necessary.
    pub(crate) fn fit_key(&self, line: &mut Vec<u8>, start: usize, output: &Output<'_>) -> Result<()> {
        let key = &line[start..];
        let is_plain = |&byte: &u8| {
            byte > b' '
                && byte != self.delimiter
                && !(if self.may_quote { b"\"#".as_slice() } else { b"\"#%/,;" }).contains(&byte)
        };
        if !key.is_empty() && key.iter().all(is_plain) {
            return Ok(());
        }
        let key = String::from_utf8_lossy(key).into_owned();
        if !self.may_quote {
            // A list cannot hold a key that would be read as a comment or as several keys.
            let is_comment = ["#", "%", "//"].iter().any(|mark| key.starts_with(mark));
            let is_cut = key.contains(|c: char| c.is_ascii_whitespace());
            let is_column = self.is_told_by_content && key.contains([',', ';']);
            if key.is_empty() || is_cut || is_column || is_comment {
                let what = if self.delimiter == b',' { "a list of keys" } else { "an edge list" };
                return Err(output.refuse(format!("the key {key:?} does not fit in {what}: write CSV")));
            }
        } else {
            line.truncate(start);
            line.extend(format!("\"{}\"", key.replace('"', "\"\"")).into_bytes());
        }
        Ok(())
    }
}

/// The text format of vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VertexLines {
    /// One key per line.
    List,
    /// One row per line under a header: the key, and property names with their types. Values are quoted where needed.
    /// A null is an empty field, an empty text is quoted.
    Csv(CsvDialect),
}

/// Writes the keys of vertices, one per line, which an edge list, CSV or a matrix of edges lacks. CSV also has the
/// properties.
///
/// # Errors
/// Those of keys, properties and output. A key or a text does not fit in such a line.
pub fn write_vertices<E: From<Error>>(
    vertices: &[VertexId],
    lines: VertexLines,
    mut key: impl FnMut(VertexId, &mut Vec<u8>) -> Result<(), E>,
    properties: &impl WrittenProperties<E>,
    output: &mut Output<'_>,
) -> Result<(), E> {
    let (style, has_columns) = match lines {
        // The comma only picks the words of an error: a line of one key has no delimiter.
        VertexLines::List => (Style { may_quote: false, is_told_by_content: true, ..Style::CSV }, false),
        VertexLines::Csv(dialect) => (Style::csv(dialect), true),
    };
    let (mut line, schema) = (Vec::new(), properties.vertex_schema());
    let arrays = style.dialect.arrays(schema, false);
    if has_columns {
        refuse_clash(style.dialect.taken_vertex_names(), schema, output.path())?;
        output.write(&style.header(&style.dialect.vertex_names(schema), output)?)?;
    }
    for vertices in vertices.chunks(VERTICES_AT_ONCE) {
        let columns = if has_columns { properties.vertex_columns(vertices)? } else { Vec::new() };
        for (row, &vertex) in vertices.iter().enumerate() {
            line.clear();
            key(vertex, &mut line)?;
            style.fit_key(&mut line, 0, output)?;
            for (column, array) in columns.iter().zip(&arrays) {
                style.push_cell(&mut line, column.get(row), *array, output)?;
            }
            line.push(b'\n');
            output.write(&line)?;
        }
    }
    Ok(output.flush()?)
}
