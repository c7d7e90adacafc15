//! The inputs of a source as a sequence of pieces of work.
//!
//! One worker at a time takes the next piece: it reads (and decompresses) the block, and looks at
//! what must be known before a block can be parsed on its own, the header. Everything else is done
//! outside, by as many workers as there are.

use std::fs::File;
use std::io::{Cursor, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::blocks::{BlockCutter, CutError, TextBlock};
use super::compression::decoded;
use super::csv::CsvLayout;
use super::csv_header::TableHead;
use super::csv_rows::whole_rows;
use super::dimacs::{Problem, problem_line};
use super::graphml::{Batch, ElementReader, GraphMlLayout};
use super::labeled::Said;
use super::lines::{EdgeLines, line_end, trimmed};
use super::matrix_market::{Matrix, MatrixLines};
use super::metis::{ListLines, MetisHeader};
use super::options::{KeyKind, LoneKeys, SourceOptions};
use super::outcome::{Fatal, LineFault};
use super::parquet::{ParquetFile, RowLayout, RowRange};
use super::serialized::SerializedGraph;
use super::serialized_arcs::{ArcCursor, ArcRange};
use super::unnamed_columns::UnnamedColumns;
use crate::property::{Inference, PropertySchema};
use crate::{Direction, Error, Result};

/// The most vertices without edges that one piece names.
const MAX_VERTICES_AT_ONCE: u64 = 256 << 10;
/// Bytes of a block of text that a row of columns stands for.
const BYTES_PER_ROW: u64 = 4;
/// The same for a row whose numbers become text.
const BYTES_PER_TEXT_ROW: u64 = 16;
/// First bytes of an input: enough to tell its compression and format.
pub(super) const HEAD_BYTES: usize = 64 << 10;

/// What the lines of a text are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    EdgeList,
    Csv,
    /// Columns between blanks, which have names.
    BlankColumns,
    Dimacs,
    MatrixMarket(Matrix),
    Metis(MetisHeader),
    VertexList,
    VertexCsv,
    /// Columns of vertices between blanks, under a header.
    VertexColumns,
}

impl TextKind {
    /// Whether blanks separate the columns.
    pub(super) fn has_blanks(self) -> bool {
        self.is_list() || matches!(self, Self::BlankColumns | Self::VertexColumns)
    }

    /// Whether lines are lists of keys without a header.
    pub(super) fn is_list(self) -> bool {
        matches!(self, Self::EdgeList | Self::VertexList)
    }

    /// Whether a row is a vertex.
    pub(super) fn is_of_vertices(self) -> bool {
        matches!(self, Self::VertexList | Self::VertexCsv | Self::VertexColumns)
    }
}

/// What one input holds.
#[derive(Clone, Debug)]
pub(super) enum PartKind {
    Text(TextKind),
    /// A serialized graph, and whether its vertices without edges are to be named.
    Serialized(Arc<SerializedGraph>, NameVertices),
    Parquet(Arc<ParquetFile>, Arc<RowLayout>),
    GraphMl(Arc<GraphMlLayout>),
}

/// Whether the vertices of a serialized graph are named in blocks, beside its edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameVertices {
    Yes,
    No,
}

/// One input.
pub(super) struct Part {
    pub(super) path: PathBuf,
    pub(super) kind: PartKind,
    /// What was opened to look at it, where it cannot be opened twice.
    pub(super) opened: Option<Box<dyn Read + Send>>,
    pub(super) can_reopen: bool,
    /// Edges, or vertices of a file of vertices, that another file promises.
    pub(super) num_promised: Option<u64>,
    /// The properties that it has, edges first, vertices second: as many columns come with its blocks.
    pub(super) properties: [PartProperties; 2],
    /// The columns of a table in text; `None` of other inputs, and of a table without rows.
    pub(super) table: Option<TableHead>,
    /// Comments before the first row of a table.
    pub(super) num_comments: u64,
    /// Of text whose columns have no names.
    pub(super) unnamed: Option<UnnamedColumns>,
    /// What is said of all its rows.
    pub(super) said: Said,
}

/// The properties of the edges, or of the vertices, of one input.
#[derive(Clone, Debug, Default)]
pub(super) struct PartProperties {
    /// Its own, in the order of its columns.
    pub(super) own: PropertySchema,
    /// By property: what its values looked like, where nobody said their type, which may become
    /// another one; empty where all types are said.
    pub(super) inferred: Vec<Option<Inference>>,
    /// By property: the column of text that it stands in.
    pub(super) places: Vec<usize>,
}

impl PartProperties {
    /// What the type of a property was told from, if it is not said.
    pub(super) fn inference(&self, property: usize) -> Option<Inference> {
        self.inferred.get(property).copied().flatten()
    }
}

impl Part {
    /// What the input holds, decompressed.
    fn reader(&mut self, bytes_read: &Arc<AtomicU64>) -> Result<Box<dyn Read + Send>> {
        let path = &self.path;
        let mut reader: Box<dyn Read + Send> = match self.opened.take() {
            Some(opened) => opened,
            None if self.can_reopen => Box::new(File::open(path).map_err(|e| base::Error::io("open", path, e))?),
            None => return Err(Error::Input { path: path.clone(), what: "can be read only once".into() }),
        };
        let head = read_head(path, &mut reader, HEAD_BYTES)?;
        let counted = Counted { reader: Cursor::new(head.clone()).chain(reader), count: Arc::clone(bytes_read) };
        decoded(path, &head, counted)
    }

    /// Whether a row is a vertex.
    pub(super) fn is_of_vertices(&self) -> bool {
        matches!(self.kind, PartKind::Text(kind) if kind.is_of_vertices())
    }

    fn open(&mut self, bytes_read: &Arc<AtomicU64>) -> Result<BlockCutter> {
        Ok(BlockCutter::new(self.reader(bytes_read)?))
    }
}

/// The first bytes of an input, fewer where it is shorter.
pub(super) fn read_head(path: &Path, reader: &mut impl Read, num_bytes: usize) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    let read = reader.take(num_bytes as u64).read_to_end(&mut head);
    read.map_err(|e| base::Error::io("read", path, e))?;
    Ok(head)
}

struct Counted<R> {
    reader: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let num_bytes = self.reader.read(into)?;
        self.count.fetch_add(num_bytes as u64, Ordering::Relaxed);
        Ok(num_bytes)
    }
}

/// How the lines of a block are to be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// The block was all header.
    Nothing,
    Edges(EdgeLines),
    Columns(CsvLayout),
    Entries(MatrixLines),
    Lists(ListLines),
    Vertices,
}

/// What the numbers of vertices are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbering {
    /// Ids, from 0.
    Ids,
    /// A count from 1.
    FromOne,
}

/// What one worker does next.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) sequence: u64,
    pub(super) part: usize,
    pub(super) work: Work,
}

/// A piece of an input.
#[derive(Debug)]
pub(super) enum Work {
    Text(TextBlock, Layout),
    Arcs(Arc<SerializedGraph>, ArcRange),
    Rows(Arc<ParquetFile>, Arc<RowLayout>, RowRange),
    Elements(Batch, Arc<GraphMlLayout>),
    /// Vertices that exist although no edge names them.
    Vertices(Range<u64>, Numbering),
}

/// Where in the current input we are.
enum Position {
    Before,
    Text {
        cutter: Box<BlockCutter>,
        layout: Option<Layout>,
        problem: Option<Problem>,
        num_bytes: u64,
        /// Bytes that belong to the header of a table and are still to come.
        num_header_bytes: u64,
    },
    Arcs(ArcCursor),
    /// The rows that were handed out last.
    Rows(Option<RowRange>),
    Elements(Box<ElementReader>),
    Vertices(Range<u64>, Numbering),
}

/// The pieces of all inputs, in order.
pub(super) struct Stream<'a> {
    parts: &'a mut [Part],
    options: &'a SourceOptions,
    bytes_read: &'a Arc<AtomicU64>,
    part: usize,
    position: Position,
    sequence: u64,
    spare: Vec<Vec<u8>>,
    /// By input: the edges that its header promised.
    problems: Vec<Option<Problem>>,
    /// By input: the comments before its first row or entry.
    num_comments: Vec<u64>,
}

impl<'a> Stream<'a> {
    pub(super) fn new(parts: &'a mut [Part], options: &'a SourceOptions, bytes_read: &'a Arc<AtomicU64>) -> Self {
        let problems = vec![None; parts.len()];
        let position = Position::Before;
        let num_comments = parts.iter().map(|part| part.num_comments).collect();
        let spare = Vec::new();
        Self { parts, options, bytes_read, part: 0, position, sequence: 0, spare, problems, num_comments }
    }

    /// Ends the pieces: something is wrong.
    pub(super) fn finish(&mut self) {
        self.part = self.parts.len();
    }

    /// Takes back the memory of a block.
    pub(super) fn recycle(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }

    /// The place of the next piece: its sequence and input.
    pub(super) fn place(&self) -> (u64, usize) {
        (self.sequence, self.part.min(self.parts.len().saturating_sub(1)))
    }

    /// Whether an input is a serialized graph that says so.
    pub(super) fn is_undirected(&self, part: usize) -> bool {
        let kind = &self.parts[part].kind;
        match kind {
            PartKind::Serialized(graph, _) => graph.direction() == Direction::Undirected,
            PartKind::Text(kind) => matches!(kind, TextKind::Metis(_)),
            PartKind::Parquet(..) | PartKind::GraphMl(_) => false,
        }
    }

    /// What the header of each input promised.
    pub(super) fn problems(&self) -> &[Option<Problem>] {
        &self.problems
    }

    /// The comments before the first row or entry of all inputs.
    pub(super) fn num_comments(&self) -> u64 {
        self.num_comments.iter().sum()
    }

    /// The next piece, or none after the last.
    pub(super) fn next(&mut self) -> Result<Option<Piece>, Fatal> {
        while self.part < self.parts.len() {
            let part = self.part;
            let Some(work) = self.next_work()? else {
                self.part += 1;
                self.position = Position::Before;
                continue;
            };
            let piece = Piece { sequence: self.sequence, part, work };
            self.sequence += 1;
            return Ok(Some(piece));
        }
        Ok(None)
    }

    /// The rows of a piece whose keys are numbers in the input: as much memory as a block of text.
    fn rows_at_once(&self) -> u64 {
        let row_bytes = if self.options.keys == KeyKind::String { BYTES_PER_TEXT_ROW } else { BYTES_PER_ROW };
        (self.options.block_bytes as u64 / row_bytes).max(1)
    }

    fn next_work(&mut self) -> Result<Option<Work>, Fatal> {
        let rows_at_once = self.rows_at_once();
        loop {
            match &mut self.position {
                Position::Before => self.position = self.open_part()?,
                Position::Arcs(cursor) => {
                    if let Some(arcs) = cursor.next()? {
                        return Ok(Some(Work::Arcs(Arc::clone(cursor.graph()), arcs)));
                    }
                    let PartKind::Serialized(graph, NameVertices::Yes) = &self.parts[self.part].kind else {
                        return Ok(None);
                    };
                    self.position = Position::Vertices(0..graph.num_vertices(), Numbering::Ids);
                }
                Position::Elements(reader) => {
                    let Part { path, kind: PartKind::GraphMl(layout), .. } = &self.parts[self.part] else {
                        return Ok(None);
                    };
                    let batch = reader.next(self.options.block_bytes).map_err(|fault| fault.into_fatal(path))?;
                    return Ok(batch.map(|batch| Work::Elements(batch, Arc::clone(layout))));
                }
                Position::Rows(last) => {
                    let PartKind::Parquet(file, layout) = &self.parts[self.part].kind else { return Ok(None) };
                    // About as many as there are lines in a block of text.
                    let about = (self.options.block_bytes as u64 / BYTES_PER_ROW).max(1);
                    let Some(rows) = file.next_rows(last.as_ref(), about) else { return Ok(None) };
                    *last = Some(rows.clone());
                    return Ok(Some(Work::Rows(Arc::clone(file), Arc::clone(layout), rows)));
                }
                Position::Vertices(vertices, _) if vertices.is_empty() => return Ok(None),
                Position::Vertices(vertices, numbering) => {
                    let end = vertices.end.min(vertices.start + rows_at_once.min(MAX_VERTICES_AT_ONCE));
                    let now = vertices.start..end;
                    vertices.start = end;
                    return Ok(Some(Work::Vertices(now, *numbering)));
                }
                Position::Text { .. } => {
                    if let Some(work) = self.next_text()? {
                        return Ok(Some(work));
                    }
                    match self.after_text()? {
                        Some(vertices) => self.position = Position::Vertices(vertices, Numbering::FromOne),
                        None => return Ok(None),
                    }
                }
            }
        }
    }

    fn open_part(&mut self) -> Result<Position> {
        let rows_at_once = self.rows_at_once();
        let part = &mut self.parts[self.part];
        Ok(match &part.kind {
            PartKind::Serialized(graph, _) => Position::Arcs(ArcCursor::new(Arc::clone(graph), rows_at_once)),
            PartKind::Parquet(..) => Position::Rows(None),
            PartKind::GraphMl(_) => Position::Elements(Box::new(ElementReader::new(part.reader(self.bytes_read)?))),
            PartKind::Text(kind) => {
                let layout = match kind {
                    TextKind::EdgeList => Some(Layout::Edges(match self.options.lone_keys {
                        LoneKeys::Refuse => EdgeLines::Plain,
                        LoneKeys::Vertices => EdgeLines::OrVertices,
                    })),
                    TextKind::VertexList => Some(Layout::Vertices),
                    TextKind::Csv | TextKind::BlankColumns | TextKind::VertexCsv | TextKind::VertexColumns => {
                        Some(part.table.as_ref().map_or(Layout::Nothing, |table| Layout::Columns(table.layout)))
                    }
                    TextKind::Dimacs | TextKind::MatrixMarket(_) | TextKind::Metis(_) => None,
                };
                let num_header_bytes = part.table.as_ref().map_or(0, |table| table.num_header_bytes);
                let cutter = Box::new(part.open(self.bytes_read)?);
                Position::Text { cutter, layout, problem: None, num_bytes: 0, num_header_bytes }
            }
        })
    }

    fn next_text(&mut self) -> Result<Option<Work>, Fatal> {
        let Position::Text { cutter, layout, problem, num_bytes, num_header_bytes } = &mut self.position else {
            return Ok(None);
        };
        let part = &self.parts[self.part];
        let mut buffer = self.spare.pop().unwrap_or_default();
        let mut about = self.options.block_bytes;
        let block = loop {
            let block = cutter.next(&part.path, buffer, about).map_err(|error| match error {
                CutError::Read(error) => Fatal::Whole(error),
                CutError::LongLine(limit) => Fatal::Line(LineFault {
                    line: 0,
                    what: format!("expected lines of at most {}, found a longer one", base::size::size(limit as u64)),
                }),
            })?;
            let Some(mut block) = block else { return Ok(None) };
            let begin = block.start;
            let of_header = (*num_header_bytes).min((block.end - begin) as u64);
            block.start += of_header as usize;
            if let (None, PartKind::Text(kind)) = (*layout, &part.kind) {
                self.num_comments[self.part] += find_header(&mut block, *kind, layout, problem)?;
                self.problems[self.part] = *problem;
            }
            let end = match *layout {
                _ if cutter.is_at_end() => block.end,
                Some(Layout::Columns(ref columns)) => whole_rows(&block.bytes, block.start, block.end, columns),
                Some(Layout::Lists(lines)) => {
                    cutter.cut_lines();
                    lines.whole_entries(&block)
                }
                // The header, where it is not found, goes on behind the block.
                None => block.start,
                _ => block.end,
            };
            if end > begin {
                *num_header_bytes -= of_header;
                if end < block.end {
                    cutter.take_back(&mut block, end);
                }
                break block;
            }
            // A row is longer than the block, of which the last lines may be known in part.
            about = 2 * about.max(block.end);
            cutter.take_back(&mut block, 0);
            buffer = block.bytes;
        };
        *num_bytes += block.end as u64;
        let now = layout.unwrap_or(Layout::Nothing);
        if let Some(Layout::Lists(lines)) = layout {
            lines.pass(&block);
        }
        Ok(Some(Work::Text(block, now)))
    }

    /// The vertices that follow from the header, once the text has ended.
    fn after_text(&self) -> Result<Option<Range<u64>>, Fatal> {
        let Position::Text { layout, problem, num_bytes, .. } = &self.position else { return Ok(None) };
        let part = &self.parts[self.part];
        let bad = |what: String| Err(Fatal::Whole(Error::Input { path: part.path.clone(), what }));
        if let (None, PartKind::Text(kind)) = (layout, &part.kind)
            && *num_bytes > 0
        {
            match kind {
                TextKind::Dimacs => return bad("expected the problem line 'p sp vertices arcs', found none".into()),
                TextKind::MatrixMarket(_) => return bad("expected the size 'rows columns entries', found none".into()),
                _ => {}
            }
        }
        let Some(problem) = problem else { return Ok(None) };
        if let Some(Layout::Lists(ListLines { first_vertex, .. })) = layout
            && *first_vertex <= problem.num_vertices
        {
            let num_lists = *first_vertex - 1;
            return bad(format!(
                "the header promises {} vertices, found the lists of {num_lists}",
                problem.num_vertices
            ));
        }
        // Vertices without arcs leave no trace in the text, but this many are a lie or a slip.
        if problem.num_vertices > 16 * num_bytes + (1 << 20) {
            return bad(format!(
                "the header promises {} vertices, which a text of {num_bytes} bytes does not bear out",
                problem.num_vertices
            ));
        }
        Ok(Some(1..problem.num_vertices + 1))
    }
}

/// Looks for the header of a graph format in a block and lets the block begin behind it. Gives the number of comments
/// before it.
fn find_header(
    block: &mut TextBlock,
    kind: TextKind,
    layout: &mut Option<Layout>,
    problem: &mut Option<Problem>,
) -> Result<u64, Fatal> {
    let (mut num_lines, mut num_comments) = (0, 0);
    while block.start < block.end {
        let at = block.start;
        let end = line_end(&block.bytes, at);
        let (first, last) = trimmed(&block.bytes, at, end);
        let line = &block.bytes[first..last];
        let line_index = num_lines;
        let bad = |what| Fatal::Line(LineFault { line: line_index, what });
        num_lines += 1;
        block.start = end + 1;
        let is_found = match kind {
            TextKind::MatrixMarket(matrix) => matrix
                .size_line(line)
                .map_err(bad)?
                .map(|found| (found, Layout::Entries(MatrixLines { matrix, num_vertices: found.num_vertices }))),
            TextKind::Metis(header) => {
                (line.first() != Some(&b'%')).then(|| (header.problem(), Layout::Lists(ListLines::new(header))))
            }
            _ => problem_line(line)
                .map_err(bad)?
                .map(|found| (found, Layout::Edges(EdgeLines::Arcs { num_vertices: found.num_vertices }))),
        };
        if let Some((found, lines)) = is_found {
            (*problem, *layout) = (Some(found), Some(lines));
            break;
        }
        let is_banner = line.starts_with(b"%%");
        num_comments += u64::from(!line.is_empty() && !is_banner);
    }
    Ok(num_comments)
}
