//! The adjacency lists of an Arrow file as edges.

use std::sync::Arc;

use anden_graph::property::PropertyType;
use anden_graph::{GraphKind, Weight};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_cast::cast;
use arrow_schema::{DataType, Fields};

use crate::arrow_file::{ArrowBatch, ArrowFile};
use crate::arrow_input::cells::{Cells, read_property};
use crate::arrow_input::{ArrowInput, placed, wanted_properties, weight_type};
use crate::arrow_layout::{ARCS, DIRECTED, INDEX};
use crate::chunk::{AnyInputChunk, InputChunk, ParseContext, ParsedChunk, rows_at_once};
use crate::collector::InputCollector;
use crate::columns::TableColumnNames;
use crate::indexed_edges::{IndexedEdges, KeysByRow};
use crate::key::FieldKey;
use crate::lines::ParsedBlock;
use crate::options::SourceOptions;
use crate::outcome::Fatal;
use crate::part::{InputContent, InputReader, InputStart};
use crate::probe::InputProbe;
use crate::readers::gapbs::arcs::arc_hash;
use crate::{Error, Result};

pub(super) use crate::arrow_layout::KEY;

/// The largest number of arcs of a chunk, and of lists whose offsets are read at once.
const MAX_ARCS_AT_ONCE: u64 = 256 << 10;
const LISTS_AT_ONCE: u64 = 64 << 10;

/// ArrowLists lists as an input.
#[derive(Clone)]
pub(super) struct ArrowLists {
    file: Arc<ArrowFile>,
    /// The column of lists, and that of the keys.
    lists: usize,
    key: usize,
    /// Members of an arc: the row of its target, its weight, its properties.
    index: usize,
    weight: Option<usize>,
    properties: Vec<(usize, PropertyType)>,
    graph_kind: Option<GraphKind>,
}

impl ArrowLists {
    /// The column with adjacency lists; `None` in a table of another kind.
    pub(super) fn list_column(file: &ArrowFile) -> Option<usize> {
        let (place, field) = file.schema().column_with_name(ARCS)?;
        let members = members_of(field.data_type())?;
        members.iter().any(|member| member.name() == INDEX && member.data_type().is_integer()).then_some(place)
    }
}

/// The members of the structs in a list.
fn members_of(data_type: &DataType) -> Option<&Fields> {
    let (DataType::List(arc) | DataType::LargeList(arc)) = data_type else { return None };
    match arc.data_type() {
        DataType::Struct(members) => Some(members),
        _ => None,
    }
}

/// Opens a file with this column of lists: its rows are the vertices, its lists the edges.
pub(super) fn open(input: InputProbe, file: Arc<ArrowFile>, lists: usize, to: &mut InputCollector<'_>) -> Result<()> {
    let bad = |what: String| Error::Input { path: file.path().to_owned(), what };
    if file.num_rows() >= u64::from(u32::MAX) {
        return Err(bad(format!("expected fewer than {} vertices, found {}", u32::MAX, file.num_rows())));
    }
    let schema = Arc::clone(file.schema());
    let names = TableColumnNames::new(schema.fields().iter().map(|field| &field.name()[..]));
    let asked = names.asked("--vertex-column", to.options.vertex_column.as_deref()).map_err(bad)?;
    let key = asked.or_else(|| schema.column_with_name(KEY).map(|(place, _)| place)).filter(|&key| key != lists);
    let key = key.ok_or_else(|| bad(format!("expected the column '{KEY}' beside '{ARCS}', found {}", names.list())))?;
    let key_type = schema.field(key).data_type();
    if key_type.is_null() || !Cells::can_hold_keys(key_type) {
        return Err(bad(format!("expected numbers or text in '{KEY}', found {key_type}")));
    }
    let Some(members) = members_of(schema.field(lists).data_type()) else {
        return Err(bad(format!("expected lists of structs in '{ARCS}'")));
    };
    let member_names = TableColumnNames::new(members.iter().map(|member| &member.name()[..]));
    let weight = to.options.weights.map(|_| member_names.weight_role(to.options)).transpose().map_err(bad)?;
    let index = members.iter().position(|member| member.name() == INDEX).unwrap_or_default();
    let is_free = |member: usize| member != index && Some(member) != weight;
    let (own, properties) = wanted_properties(members, is_free, &to.options.edge_properties).map_err(bad)?;
    let graph_kind = schema.metadata().get(DIRECTED).map(|stated| match stated == "false" {
        true => GraphKind::Undirected,
        false => GraphKind::Directed,
    });
    to.direction_known(file.path(), graph_kind)?;
    let rows = InputProbe::in_memory(file.path(), 0);
    ArrowInput::of_file(&file, Some(lists)).open_vertices_by(key, rows, to)?;
    let weight_type = weight.and_then(|weight| weight_type(members[weight].data_type()));
    let content = ArrowLists { file, lists, key, index, weight, properties, graph_kind };
    let part = to.push(input, Box::new(content));
    (part.properties[0], part.weight_type) = (own, weight_type);
    Ok(())
}

impl InputContent for ArrowLists {
    fn begin(&self, input: InputStart<'_>) -> Result<Box<dyn InputReader>> {
        let keys = (0..self.file.num_batches()).map(|batch| {
            let batch = self.file.batch(batch, &[self.key])?;
            let keys = Cells::of(&batch.column(self.key, 0..batch.num_rows)?);
            keys.map_err(|error| placed(error, self.file.path()))
        });
        let shared = Arc::new(KeyedLists { layout: self.clone(), keys: KeysByRow::new(keys)? });
        let arcs_at_once = rows_at_once(input.options).min(MAX_ARCS_AT_ONCE);
        Ok(Box::new(AdjacencyReader { shared, arcs_at_once, batch: 0, first_row: 0, opened: None, row: 0, arc: 0 }))
    }
}

/// The lists and the keys that all chunks look up.
struct KeyedLists {
    layout: ArrowLists,
    keys: KeysByRow,
}

/// Cuts the lists into pieces.
struct AdjacencyReader {
    shared: Arc<KeyedLists>,
    arcs_at_once: u64,
    batch: usize,
    /// The rows of the batches before.
    first_row: u64,
    opened: Option<Arc<ArrowBatch>>,
    /// The next row and the next arc of the batch.
    row: u64,
    arc: u64,
}

impl InputReader for AdjacencyReader {
    fn next(&mut self, _spare: &mut Vec<Vec<u8>>) -> Result<Option<Box<dyn AnyInputChunk>>, Fatal> {
        let ArrowLists { file, lists, .. } = &self.shared.layout;
        while self.batch < file.num_batches() && self.row >= file.num_rows_of(self.batch) {
            self.first_row += file.num_rows_of(self.batch);
            (self.batch, self.opened, self.row, self.arc) = (self.batch + 1, None, 0, 0);
        }
        if self.batch >= file.num_batches() {
            return Ok(None);
        }
        let batch = match self.opened.take() {
            Some(batch) => batch,
            None => Arc::new(file.batch(self.batch, &[*lists])?),
        };
        self.opened = Some(Arc::clone(&batch));
        let rows = self.row..batch.num_rows.min(self.row + LISTS_AT_ONCE);
        let window = batch.list_offsets(*lists, rows)?;
        // The first list may be read in part already.
        let first = window[0].max(self.arc);
        let (limit, ends) = (first + self.arcs_at_once, &window[1..]);
        // Takes the lists that end within the limit, and a part of the next one.
        let num_whole = ends.partition_point(|&end| end <= limit);
        let mut offsets = Vec::with_capacity(num_whole + 2);
        offsets.push(first);
        offsets.extend_from_slice(&ends[..num_whole]);
        if num_whole < ends.len() {
            offsets.push(limit);
        }
        let first_row = self.first_row + self.row;
        self.row += num_whole as u64;
        self.arc = offsets[offsets.len() - 1];
        Ok(Some(Box::new(AdjacencyChunk { shared: Arc::clone(&self.shared), batch, first_row, offsets })))
    }
}

/// Consecutive arcs.
struct AdjacencyChunk {
    shared: Arc<KeyedLists>,
    batch: Arc<ArrowBatch>,
    /// The arcs `offsets[i]..offsets[i + 1]` belong to the row `first_row + i`.
    first_row: u64,
    offsets: Vec<u64>,
}

impl AdjacencyChunk {
    fn member(&self, member: usize) -> Result<arrow_array::ArrayRef> {
        let arcs = self.offsets[0]..self.offsets[self.offsets.len() - 1];
        self.batch.list_member(self.shared.layout.lists, member, arcs)
    }

    /// Reads the edges. Returns the arcs among them, unless all arcs are.
    fn read<K: FieldKey, W: Weight>(
        &self,
        options: &SourceOptions,
        block: &mut ParsedBlock<K, W>,
    ) -> Result<Option<Vec<u32>>> {
        let KeyedLists { layout, keys } = &*self.shared;
        let indices = cast(&self.member(layout.index)?, &DataType::Int64);
        let indices = indices.map_err(|error| layout.file.bad(&error.to_string()))?;
        let indices = indices.as_primitive::<Int64Type>();
        let weights = layout.weight.map(|member| self.member(member)).transpose()?;
        let mut edges = IndexedEdges::<W>::new([keys, keys], weights.as_ref(), options)?;
        let num_rows = layout.file.num_rows();
        let is_undirected = layout.graph_kind == Some(GraphKind::Undirected);
        for (row, arcs) in (self.first_row..).zip(self.offsets.windows(2)) {
            for arc in (arcs[0] - self.offsets[0]) as usize..(arcs[1] - self.offsets[0]) as usize {
                let target = indices.is_valid(arc).then(|| indices.value(arc)).and_then(|index| index.try_into().ok());
                let Some(target) = target.filter(|&target: &u64| target < num_rows) else {
                    let found = if indices.is_valid(arc) { indices.value(arc).to_string() } else { "null".into() };
                    return Err(layout.file.bad(&format!("expected an index below {num_rows}, found {found}")));
                };
                if is_undirected && !balance(block, [row, target], edges.weight(arc)) {
                    edges.pass_over();
                } else if edges.push(arc, [row, target], block)? {
                    return Ok(edges.kept());
                }
            }
        }
        Ok(edges.kept())
    }
}

/// Adds an arc of an undirected graph to the balance. Returns whether it stands at the lower end of its edge.
fn balance<K, W: Weight>(block: &mut ParsedBlock<K, W>, ends: [u64; 2], weight: Option<W>) -> bool {
    let [source, target] = ends.map(|row| row as u32);
    let weight_bits = weight.map_or(0, |weight| weight.bits());
    // Each arc at the upper end cancels the arc at the lower end in the sum.
    let (hash, is_lower) = (arc_hash(source.min(target), source.max(target), weight_bits), source <= target);
    block.balance = match is_lower {
        true => block.balance.wrapping_add(hash),
        false => block.balance.wrapping_sub(hash),
    };
    is_lower
}

impl InputChunk for AdjacencyChunk {
    fn parse<K: FieldKey, W: Weight>(self, context: &ParseContext<'_>) -> Result<ParsedChunk<K, W>> {
        self.parse_arcs(context).map_err(|error| placed(error, self.shared.layout.file.path()))
    }
}

impl AdjacencyChunk {
    fn parse_arcs<K: FieldKey, W: Weight>(&self, context: &ParseContext<'_>) -> Result<ParsedChunk<K, W>> {
        let num_arcs = self.offsets[self.offsets.len() - 1] - self.offsets[0];
        let mut block = ParsedBlock::new(num_arcs, context.on_error());
        let kept = self.read(context.options, &mut block)?;
        for &(member, property_type) in &self.shared.layout.properties {
            let column = read_property(&self.member(member)?, property_type)?;
            block.properties.push(kept.as_ref().map_or_else(|| column.clone(), |kept| column.gather(kept)));
        }
        let file = &self.shared.layout.file;
        context.count_read(file.num_bytes() * (self.offsets.len() as u64 - 1) / file.num_rows().max(1));
        Ok(ParsedChunk::of_extra(block))
    }
}
