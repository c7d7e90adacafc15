//! The chunks of GraphAr: rows that several files hold together.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use anden_graph::Weight;
use anden_graph::property::PropertyType;
use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

use super::chunk_file::{ChunkColumn, ChunkFormat, WantedColumn};
use super::info::{EdgeInfo, PropertyGroup, VertexInfo, count_in};
use crate::arrow_input::cells::Cells;
use crate::arrow_input::placed;
use crate::chunk::{AnyInputChunk, InputChunk, ParseContext, ParsedChunk, columns_at_once, number_key};
use crate::graphar_layout::ENDS;
use crate::indexed_edges::{IndexedEdges, KeysByRow};
use crate::key::FieldKey;
use crate::lines::ParsedBlock;
use crate::outcome::Fatal;
use crate::part::{InputContent, InputReader, InputStart};
use crate::{Error, Result};

/// The largest number of rows of a piece.
const MAX_ROWS_AT_ONCE: u64 = 256 << 10;

/// The folder of a property group, and the format of its chunks.
struct ChunkGroup {
    folder: PathBuf,
    format: ChunkFormat,
}

/// Opens columns of the chunk that has this name in the folder of each group. Each has `num_rows` rows.
fn open_columns(
    columns: &[WantedColumn],
    groups: &[ChunkGroup],
    name: &str,
    num_rows: u64,
) -> Result<Vec<ChunkColumn>> {
    let mut opened: Vec<Option<ChunkColumn>> = columns.iter().map(|_| None).collect();
    for (number, group) in groups.iter().enumerate() {
        let places: Vec<usize> = (0..columns.len()).filter(|&place| columns[place].group == number).collect();
        if !places.is_empty() {
            let wanted: Vec<&WantedColumn> = places.iter().map(|&place| &columns[place]).collect();
            let chunk = group.format.open(&group.folder.join(name), &wanted, Some(num_rows))?;
            places.iter().zip(chunk.columns).for_each(|(&place, column)| opened[place] = Some(column));
        }
    }
    // Each column names one of the groups.
    Ok(opened.into_iter().flatten().collect())
}

fn groups_of(groups: &[PropertyGroup]) -> Vec<ChunkGroup> {
    groups.iter().map(|group| ChunkGroup { folder: group.folder.clone(), format: group.format }).collect()
}

/// The vertices of one type.
pub(super) struct VertexTable {
    path: PathBuf,
    groups: Vec<ChunkGroup>,
    chunk_size: u64,
    num_vertices: u64,
    /// `None` if the number of a row is its key.
    key: Option<WantedColumn>,
    properties: Vec<WantedColumn>,
}

impl VertexTable {
    pub(super) fn new(info: &VertexInfo, key: Option<WantedColumn>, properties: Vec<WantedColumn>) -> Self {
        let VertexInfo { path, chunk_size, num_vertices, groups, .. } = info;
        let (chunk_size, num_vertices) = (*chunk_size, *num_vertices);
        Self { path: path.clone(), groups: groups_of(groups), chunk_size, num_vertices, key, properties }
    }

    /// The number of rows of a chunk.
    fn num_rows_of(&self, chunk: u64) -> u64 {
        self.chunk_size.min(self.num_vertices - chunk * self.chunk_size)
    }

    fn num_chunks(&self) -> u64 {
        self.num_vertices.div_ceil(self.chunk_size)
    }

    /// The keys of all vertices.
    fn keys(&self) -> Result<KeysByRow> {
        let Some(key) = &self.key else { return Ok(KeysByRow::Rows) };
        KeysByRow::new((0..self.num_chunks()).map(|chunk| {
            let num_rows = self.num_rows_of(chunk);
            let columns = open_columns(std::slice::from_ref(key), &self.groups, &format!("chunk{chunk}"), num_rows)?;
            let keys = Cells::of(columns[0].read(&(0..num_rows))?.array());
            keys.map_err(|error| placed(error, &self.path))
        }))
    }
}

impl InputContent for Arc<VertexTable> {
    fn begin(&self, input: InputStart<'_>) -> Result<Box<dyn InputReader>> {
        let rows_at_once = columns_at_once(input.options).min(MAX_ROWS_AT_ONCE);
        Ok(Box::new(VertexReader { table: Arc::clone(self), rows_at_once, chunk: 0, row: 0, columns: None }))
    }
}

struct VertexReader {
    table: Arc<VertexTable>,
    rows_at_once: u64,
    /// The next chunk, and the next row in it.
    chunk: u64,
    row: u64,
    /// The columns of the chunk once they are open: the key if there is one, then properties.
    columns: Option<Arc<Vec<ChunkColumn>>>,
}

impl InputReader for VertexReader {
    fn next(&mut self, _spare: &mut Vec<Vec<u8>>) -> Result<Option<Box<dyn AnyInputChunk>>, Fatal> {
        let table = &self.table;
        if self.chunk < table.num_chunks() && self.row >= table.num_rows_of(self.chunk) {
            (self.chunk, self.row, self.columns) = (self.chunk + 1, 0, None);
        }
        if self.chunk >= table.num_chunks() {
            return Ok(None);
        }
        let num_rows = table.num_rows_of(self.chunk);
        let columns = match self.columns.take() {
            Some(columns) => columns,
            None => {
                let wanted: Vec<WantedColumn> = table.key.iter().chain(&table.properties).cloned().collect();
                open_columns(&wanted, &table.groups, &format!("chunk{}", self.chunk), num_rows)?.into()
            }
        };
        self.columns = Some(Arc::clone(&columns));
        let rows = self.row..num_rows.min(self.row + self.rows_at_once);
        self.row = rows.end;
        let first = self.chunk * table.chunk_size + rows.start;
        Ok(Some(Box::new(VertexChunk { table: Arc::clone(table), columns, rows, first })))
    }
}

/// Consecutive vertices.
struct VertexChunk {
    table: Arc<VertexTable>,
    columns: Arc<Vec<ChunkColumn>>,
    rows: Range<u64>,
    /// The number of the first row within the type.
    first: u64,
}

impl InputChunk for VertexChunk {
    fn parse<K: FieldKey, W: Weight>(self, context: &ParseContext<'_>) -> Result<ParsedChunk<K, W>> {
        self.parse_rows(context).map_err(|error| placed(error, &self.table.path))
    }
}

impl VertexChunk {
    fn parse_rows<K: FieldKey, W: Weight>(&self, context: &ParseContext<'_>) -> Result<ParsedChunk<K, W>> {
        let num_rows = (self.rows.end - self.rows.start) as usize;
        let mut block = ParsedBlock::new(num_rows as u64, context.on_error());
        let (key, properties) = self.columns.split_at(usize::from(self.table.key.is_some()));
        let keys = key.first().map(|key| Cells::of(key.read(&self.rows)?.array())).transpose()?;
        let (mut kept, mut is_whole) = (Vec::new(), true);
        for row in 0..num_rows {
            let key: Option<K> = match &keys {
                Some(keys) => keys.key(row, context.options, &mut block.extra),
                None => Some(number_key(self.first + row as u64, &mut block.extra)?),
            };
            if let Some(key) = key {
                block.vertices.push(key);
                kept.push(row as u32);
                continue;
            }
            is_whole = false;
            let found = keys.as_ref().map(|keys| keys.shown(row)).unwrap_or_default();
            if block.faults.note_at(row as u64, format!("expected a vertex, {}, found {found}", K::RANGE)) {
                break;
            }
        }
        for column in properties {
            let column = column.read(&self.rows)?;
            block.vertex_properties.push(if is_whole { column } else { column.gather(&kept) });
        }
        Ok(ParsedChunk::of_extra(block))
    }
}

/// The edges of one type.
pub(super) struct EdgeTable {
    path: PathBuf,
    /// The folder of the lists.
    folder: PathBuf,
    format: ChunkFormat,
    groups: Vec<ChunkGroup>,
    chunk_size: u64,
    num_parts: u64,
    /// The vertices of sources and targets.
    vertices: [VertexTable; 2],
    weight: Option<WantedColumn>,
    properties: Vec<WantedColumn>,
}

impl EdgeTable {
    pub(super) fn new(
        info: &EdgeInfo,
        vertices: [VertexTable; 2],
        weight: Option<WantedColumn>,
        properties: Vec<WantedColumn>,
    ) -> Self {
        let num_grouped = vertices[usize::from(!info.is_by_source)].num_vertices;
        Self {
            path: info.path.clone(),
            folder: info.folder.clone(),
            format: info.format,
            groups: groups_of(&info.groups),
            chunk_size: info.chunk_size,
            num_parts: num_grouped.div_ceil(info.part_size),
            vertices,
            weight,
            properties,
        }
    }
}

impl InputContent for Arc<EdgeTable> {
    fn begin(&self, input: InputStart<'_>) -> Result<Box<dyn InputReader>> {
        let [source, target] = &self.vertices;
        let keys = [source.keys()?.into(), target.keys()?.into()];
        let rows_at_once = columns_at_once(input.options).min(MAX_ROWS_AT_ONCE);
        Ok(Box::new(EdgeReader {
            table: Arc::clone(self),
            keys,
            rows_at_once,
            part: 0,
            chunk: 0,
            row: 0,
            opened: None,
        }))
    }
}

/// The open files of a chunk.
struct EdgeFiles {
    /// The ends, the weight if it is read, and the properties.
    columns: Vec<ChunkColumn>,
    num_rows: u64,
}

struct EdgeReader {
    table: Arc<EdgeTable>,
    keys: [Arc<KeysByRow>; 2],
    rows_at_once: u64,
    /// The next part, its next chunk, and the next row in that.
    part: u64,
    chunk: u64,
    row: u64,
    opened: Option<Arc<EdgeFiles>>,
}

impl EdgeReader {
    /// Opens the files of the next chunk; `None` after the last one of the part.
    fn open(&self) -> Result<Option<EdgeFiles>> {
        let Self { table, part, chunk, .. } = self;
        let name = format!("part{part}/chunk{chunk}");
        let list = table.folder.join("adj_list").join(&name);
        let count = table.folder.join(format!("edge_count{part}"));
        let num_rows = match count.exists() {
            true => match count_in(&count)?.checked_sub(chunk.saturating_mul(table.chunk_size)) {
                None | Some(0) => return Ok(None),
                Some(num_left) => Some(num_left.min(table.chunk_size)),
            },
            // Without a count, the chunks themselves tell.
            false if !list.exists() => return Ok(None),
            false => None,
        };
        let ends = ENDS.map(|end| WantedColumn {
            group: 0,
            name: end.to_owned(),
            property_type: PropertyType::I64,
            is_exact: true,
        });
        let lists = table.format.open(&list, &ends.each_ref(), num_rows)?;
        let (mut columns, num_rows) = (lists.columns, lists.num_rows);
        let wanted: Vec<WantedColumn> = table.weight.iter().chain(&table.properties).cloned().collect();
        columns.extend(open_columns(&wanted, &table.groups, &name, num_rows)?);
        Ok(Some(EdgeFiles { columns, num_rows }))
    }
}

impl InputReader for EdgeReader {
    fn next(&mut self, _spare: &mut Vec<Vec<u8>>) -> Result<Option<Box<dyn AnyInputChunk>>, Fatal> {
        let files = loop {
            if self.part >= self.table.num_parts {
                return Ok(None);
            }
            match self.opened.take() {
                Some(files) if self.row < files.num_rows => break files,
                Some(_) => (self.chunk, self.row) = (self.chunk + 1, 0),
                None => match self.open()? {
                    Some(files) => self.opened = Some(files.into()),
                    None => (self.part, self.chunk, self.row) = (self.part + 1, 0, 0),
                },
            }
        };
        self.opened = Some(Arc::clone(&files));
        let rows = self.row..files.num_rows.min(self.row + self.rows_at_once);
        self.row = rows.end;
        let (table, keys) = (Arc::clone(&self.table), self.keys.clone());
        Ok(Some(Box::new(EdgeChunk { table, keys, files, rows })))
    }
}

/// Consecutive edges.
struct EdgeChunk {
    table: Arc<EdgeTable>,
    keys: [Arc<KeysByRow>; 2],
    files: Arc<EdgeFiles>,
    rows: Range<u64>,
}

impl InputChunk for EdgeChunk {
    fn parse<K: FieldKey, W: Weight>(self, context: &ParseContext<'_>) -> Result<ParsedChunk<K, W>> {
        self.parse_rows(context).map_err(|error| placed(error, &self.table.path))
    }
}

impl EdgeChunk {
    /// The numbers of one end; all are those of vertices.
    fn end(&self, side: usize) -> Result<ArrayRef> {
        let column = self.files.columns[side].read(&self.rows)?.array().clone();
        let num_vertices = self.table.vertices[side].num_vertices;
        let numbers = column.as_primitive::<Int64Type>();
        let is_vertex = |number: i64| u64::try_from(number).is_ok_and(|number| number < num_vertices);
        let fault = numbers.iter().find(|number| !number.is_some_and(is_vertex));
        match fault {
            None => Ok(column),
            Some(found) => {
                let found = found.map_or("null".to_owned(), |found| found.to_string());
                let what = format!("column '{}': expected a number below {num_vertices}, found {found}", ENDS[side]);
                Err(Error::Input { path: self.table.path.clone(), what })
            }
        }
    }

    fn parse_rows<K: FieldKey, W: Weight>(&self, context: &ParseContext<'_>) -> Result<ParsedChunk<K, W>> {
        let mut block = ParsedBlock::new(self.rows.end - self.rows.start, context.on_error());
        let (sources, targets) = (self.end(0)?, self.end(1)?);
        let (sources, targets) = (sources.as_primitive::<Int64Type>(), targets.as_primitive::<Int64Type>());
        let (weight, properties) = self.files.columns[ENDS.len()..].split_at(usize::from(self.table.weight.is_some()));
        let weights =
            weight.first().map(|weight| Ok::<_, Error>(weight.read(&self.rows)?.array().clone())).transpose()?;
        let mut edges = IndexedEdges::<W>::new([&self.keys[0], &self.keys[1]], weights.as_ref(), context.options)?;
        for row in 0..sources.len() {
            let ends = [sources.value(row) as u64, targets.value(row) as u64];
            if edges.push(row, ends, &mut block)? {
                break;
            }
        }
        let kept = edges.kept();
        for column in properties {
            let column = column.read(&self.rows)?;
            block.properties.push(kept.as_ref().map_or_else(|| column.clone(), |kept| column.gather(kept)));
        }
        Ok(ParsedChunk::of_extra(block))
    }
}
