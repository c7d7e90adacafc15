//! Tables in text, for the formats that have some: CSV and blank-separated text.

use std::sync::Arc;

use anden_graph::Weight;

use crate::Result;
use crate::blocks::TextBlock;
use crate::chunk::ParseContext;
use crate::collector::InputCollector;
use crate::key::FieldKey;
use crate::lines::{EdgeLines, ParsedBlock, parse_edges, parse_vertices};
use crate::options::{InputColumns, LoneKeys, SourceOptions};
use crate::part::{InputContent, PartProperties};
use crate::probe::InputProbe;
use crate::table::{BLANKS, CsvLayout, CsvProperties, TableHead, TableKind, head_of, parse_columns, whole_rows};
use crate::text_reader::{NoRows, TextInput, TextLines};
use crate::unnamed_columns::UnnamedColumns;

/// Rows of columns, under a header or with the names that the caller gives.
#[derive(Clone)]
struct TableRows {
    layout: CsvLayout,
    properties: Arc<CsvProperties>,
}

impl TextLines for TableRows {
    fn set_properties(&mut self, properties: &[PartProperties; 2]) {
        let side = usize::from(self.layout.target.is_none());
        self.properties = Arc::new(CsvProperties::new(&properties[side]));
    }

    fn whole_rows(&self, block: &TextBlock) -> usize {
        whole_rows(&block.bytes, block.start, block.end, &self.layout)
    }

    fn parse<K: FieldKey, W: Weight>(&self, block: &TextBlock, context: &ParseContext<'_>) -> ParsedBlock<K, W> {
        parse_columns(block, &self.layout, &self.properties, context)
    }
}

/// Lines of blank-separated keys, without a header.
#[derive(Clone, Copy)]
pub(super) struct EdgeListLines(EdgeLines);

impl EdgeListLines {
    pub(super) fn new(options: &SourceOptions) -> Self {
        Self(match options.lone_keys {
            LoneKeys::Refuse => EdgeLines::Plain,
            LoneKeys::Vertices => EdgeLines::OrVertices,
        })
    }
}

impl TextLines for EdgeListLines {
    fn parse<K: FieldKey, W: Weight>(&self, block: &TextBlock, context: &ParseContext<'_>) -> ParsedBlock<K, W> {
        parse_edges(block, self.0, context.is_weighted(), context.on_error())
    }
}

/// Lines of which the first column is a vertex.
#[derive(Clone, Copy)]
pub(super) struct VertexListLines;

impl TextLines for VertexListLines {
    fn parse<K: FieldKey, W: Weight>(&self, block: &TextBlock, context: &ParseContext<'_>) -> ParsedBlock<K, W> {
        parse_vertices(block, context.on_error())
    }
}

/// Opens a list of edges without a header. `has_weights`: it has weights by its name.
///
/// # Errors
/// The content lacks the compression that the name promises.
pub(super) fn open_list(input: InputProbe, has_weights: bool, to: &mut InputCollector<'_>) -> Result<()> {
    to.direction_known(&input.path, None)?;
    if has_weights {
        to.weights_given(&input.path);
    }
    let unnamed = to.list_columns(&input, has_weights)?;
    let lines = EdgeListLines::new(to.options);
    to.push(input, Box::new(TextInput::new(lines))).unnamed = Some(unnamed);
    Ok(())
}

/// Opens a list of vertices without a header; `num_promised` is their number, if another file promises it.
pub(super) fn open_vertex_list(input: InputProbe, num_promised: Option<u64>, to: &mut InputCollector<'_>) {
    let unnamed = UnnamedColumns::of_vertices(&to.facts);
    let part = to.push_vertices(input, Box::new(TextInput::new(VertexListLines)));
    (part.unnamed, part.num_promised) = (Some(unnamed), num_promised);
}

/// Opens a table. A list is a table if it has a header or the caller names its columns.
///
/// # Errors
/// The input cannot be read, or its first row does not identify the columns.
pub(super) fn open_table(input: InputProbe, kind: TableKind, to: &mut InputCollector<'_>) -> Result<()> {
    let TableKind { has_blanks, mut is_of_vertices } = kind;
    let takes_no_mark = has_blanks && !is_of_vertices && to.options.lone_keys == LoneKeys::Refuse;
    // A list has fixed marks, so another mark would have no effect.
    if let Some(mark) = to.options.comment.filter(|mark| takes_no_mark && !b"#%".contains(mark)) {
        return Err(input.bad(&format!(
            "cannot take '{}' as the mark of comments: in a list they begin with #, % or //; --comment is for CSV",
            char::from(mark)
        )));
    }
    if has_blanks && to.options.delimiter.is_some() {
        return Err(input.bad("cannot use --delimiter: blanks separate the columns of a list; --format csv reads CSV"));
    }
    // The parts of a table are all CSV, or all blank-separated.
    let is_part = |head: &&TableHead| (head.layout.delimiter == BLANKS) == has_blanks;
    let tables = to.parts.iter().filter(|part| !part.is_of_vertices).filter_map(|part| part.table.as_ref());
    let first = tables.filter(|_| !is_of_vertices).find(is_part);
    let last = to.parts.last().and_then(|part| part.table.as_ref()).filter(|table| table.is_header_alone);
    let (found, num_comments) = head_of(&input, kind, last.or(first), to.options)?;
    let options = to.options;
    let said = found.as_ref().map(|(head, _)| head.said(options)).unwrap_or_default();
    is_of_vertices = found.as_ref().and_then(|(head, _)| head.states_vertices()).unwrap_or(is_of_vertices);
    let wanted = if is_of_vertices { &options.vertex_properties } else { &options.edge_properties };
    let mut hint = to.hint(&InputColumns::default(), wanted);
    if let Some((head, _)) = &found {
        head.notes.iter().for_each(|note| to.note(&input.path, note));
        let left_out = head.left_out().into_iter().map(|place| head.name(place)).collect();
        // Each file of edges with roles has its own names, which need no note.
        let is_told = is_of_vertices || (head.states_vertices().is_some() && to.facts.columns.source.is_some());
        let of_edges = |place: Option<usize>| place.filter(|_| !is_told).map(|place| head.name(place));
        let columns = InputColumns {
            source: of_edges(Some(head.layout.source)),
            target: of_edges(head.layout.target),
            weight: of_edges(head.layout.weight),
            left_out,
        };
        // Anden names edges itself, so their names in the file need no note.
        let are_names =
            head.states_vertices().is_some() && head.left_out().into_iter().all(|place| head.is_of_edge_names(place));
        hint = to.hint(&columns, wanted).filter(|_| !are_names);
        to.describe(&input.path, columns, !is_of_vertices, hint);
    }
    let num_read = if is_of_vertices { 1 } else { 2 + usize::from(options.weights.is_some()) };
    let unnamed = UnnamedColumns { num_read, hint, note_place: to.facts.notes.len(), is_third_noted: false };
    let is_table = |head: &TableHead| !has_blanks || head.has_names();
    let (table, properties) = found.filter(|(head, _)| is_table(head)).unzip();
    let is_list = has_blanks && table.is_none();
    let content: Box<dyn InputContent> = match &table {
        Some(table) => {
            let rows = TableRows { layout: table.layout, properties: Arc::default() };
            Box::new(TextInput::behind(table.num_header_bytes, rows))
        }
        None if is_list && is_of_vertices => Box::new(TextInput::new(VertexListLines)),
        None if is_list => Box::new(TextInput::new(EdgeListLines::new(options))),
        None => Box::new(TextInput::new(NoRows)),
    };
    let part = to.push(input, content);
    (part.is_of_vertices, part.said) = (is_of_vertices, said);
    part.properties[usize::from(is_of_vertices)] = properties.unwrap_or_default();
    // Lists count their comments while they are read.
    part.num_comments = if is_list { 0 } else { num_comments };
    // Columns with names are reported at the opening, others once the read has counted them.
    part.unnamed = Some(unnamed).filter(|_| table.as_ref().is_none_or(|table| !table.has_names()));
    part.table = table;
    Ok(())
}
