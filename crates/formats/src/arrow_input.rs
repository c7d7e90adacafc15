//! Arrow record batches as an input of edges or vertices: rows in memory, or in an IPC file.
//!
//! Workers take ranges of rows in turn, as of any input. Integer keys and weights are read in place. Other columns are
//! converted range by range, so that a conversion runs on all cores and needs memory for a few ranges only.

pub(crate) mod cells;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_graph::property::{PropertyColumn, PropertyType};
use anden_graph::{Weight, WeightType};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};

use self::cells::{Cells, property_type, read_property, whole_edges, whole_weights};
use crate::arrow_file::{ArrowBatch, ArrowFile};
use crate::chunk::{AnyInputChunk, InputChunk, ParseContext, ParsedChunk, columns_at_once};
use crate::collector::InputCollector;
use crate::columns::{TableColumnNames, is_unnamed};
use crate::key::FieldKey;
use crate::lines::ParsedBlock;
use crate::number::weight_range;
use crate::options::{ColumnName, InputColumns, LoneKeys, SourceOptions, WantedProperties};
use crate::outcome::Fatal;
use crate::part::{InputContent, InputReader, InputStart, PartProperties};
use crate::probe::InputProbe;
use crate::{Error, Result};
use anden_base::message::shown;

/// The rows of a chunk, so that its keys stay in the cache of a core.
const ROWS_AT_ONCE: u64 = 1 << 16;
/// A row counts like this many bytes of text: both ends of an edge take as many in the loader.
const BYTES_PER_ROW: u64 = 8;

/// Rows in memory, as an input of [`Source`](crate::Source). Clones are cheap and share the rows.
///
/// Columns have the roles that they have in other tables: by option, or else by name. Keys are integers, whole
/// floating-point numbers or text. Weights are numbers.
#[derive(Clone)]
pub struct ArrowInput(Arc<ArrowRows>);

struct ArrowRows {
    name: PathBuf,
    schema: SchemaRef,
    batches: ArrowBatches,
    /// A column that is neither a key nor a property, such as the adjacency lists beside vertices.
    passed_over: Option<usize>,
}

/// The batches of a table.
enum ArrowBatches {
    Memory(Vec<RecordBatch>),
    File(Arc<ArrowFile>),
}

impl ArrowBatches {
    fn num_batches(&self) -> usize {
        match self {
            Self::Memory(batches) => batches.len(),
            Self::File(file) => file.num_batches(),
        }
    }

    fn num_rows_of(&self, batch: usize) -> u64 {
        match self {
            Self::Memory(batches) => batches[batch].num_rows() as u64,
            Self::File(file) => file.num_rows_of(batch),
        }
    }

    fn open(&self, batch: usize, wanted: &[usize]) -> Result<OpenedBatch> {
        Ok(match self {
            Self::Memory(batches) => OpenedBatch::Memory(batches[batch].clone()),
            Self::File(file) => OpenedBatch::File(file.batch(batch, wanted)?.into()),
        })
    }

    /// The size that the loader reckons with.
    fn num_bytes(&self) -> u64 {
        match self {
            Self::Memory(batches) => batches.iter().map(|batch| batch.num_rows() as u64 * BYTES_PER_ROW).sum(),
            Self::File(file) => file.num_bytes(),
        }
    }

    fn bytes_per_row(&self) -> u64 {
        match self {
            Self::Memory(_) => BYTES_PER_ROW,
            Self::File(file) => file.num_bytes() / file.num_rows().max(1),
        }
    }
}

/// A batch whose rows are read.
#[derive(Clone)]
enum OpenedBatch {
    Memory(RecordBatch),
    File(Arc<ArrowBatch>),
}

impl OpenedBatch {
    fn column(&self, place: usize, rows: &Range<u64>) -> Result<ArrayRef> {
        match self {
            Self::Memory(batch) => Ok(batch.column(place).slice(rows.start as usize, (rows.end - rows.start) as usize)),
            Self::File(batch) => batch.column(place, rows.clone()),
        }
    }
}

impl ArrowInput {
    /// Takes record batches of one schema. Messages call the rows by `name`.
    ///
    /// # Errors
    /// A batch has other columns.
    pub fn new(name: impl Into<PathBuf>, schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<Self> {
        let types = |schema: &Schema| -> Vec<DataType> {
            schema.fields().iter().map(|field| field.data_type().clone()).collect()
        };
        let expected = types(&schema);
        let is_unlike = batches.iter().any(|batch| types(&batch.schema()) != expected);
        let batches = ArrowBatches::Memory(batches);
        let rows = ArrowRows { name: name.into(), schema, batches, passed_over: None };
        match is_unlike {
            true => Err(rows.bad("all batches need the columns of the schema".to_owned())),
            false => Ok(Self(rows.into())),
        }
    }

    /// The rows of a file; one column may be passed over.
    pub(crate) fn of_file(file: &Arc<ArrowFile>, passed_over: Option<usize>) -> Self {
        let (name, schema) = (file.path().to_owned(), file.schema().clone());
        Self(ArrowRows { name, schema, batches: ArrowBatches::File(Arc::clone(file)), passed_over }.into())
    }

    pub(crate) fn name(&self) -> &Path {
        &self.0.name
    }

    /// The size that the loader reckons with.
    pub(crate) fn num_bytes(&self) -> u64 {
        self.0.batches.num_bytes()
    }

    /// Opens the rows as edges; among removals, a table with one column names vertices.
    pub(crate) fn open_edges(&self, probe: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let is_of_edges = to.options.lone_keys == LoneKeys::Refuse || self.0.schema.fields().len() > 1;
        let roles = if is_of_edges { self.0.edge_roles(to.options)? } else { ArrowRoles::of_vertices(0) };
        self.0.open(self, roles, probe, to)
    }

    /// Opens the rows as vertices.
    pub(crate) fn open_vertices(&self, probe: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let place = self.0.names().vertex_role(to.options).map_err(|what| self.0.bad(what))?;
        self.open_vertices_by(place, probe, to)
    }

    /// As [`open_vertices`](Self::open_vertices), with this column of keys.
    pub(crate) fn open_vertices_by(&self, key: usize, probe: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        self.0.open(self, ArrowRoles::of_vertices(key), probe, to)
    }
}

impl std::fmt::Debug for ArrowInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArrowInput").field("name", &self.0.name).field("schema", &self.0.schema).finish()
    }
}

/// Two inputs are equal if they share their rows.
impl PartialEq for ArrowInput {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ArrowInput {}

// The rows never change, so a panic leaves them as they were.
impl std::panic::UnwindSafe for ArrowInput {}
impl std::panic::RefUnwindSafe for ArrowInput {}

/// The positions of the columns to read.
#[derive(Clone, Debug)]
struct ArrowRoles {
    /// The keys of the sources, or of the vertices.
    source: usize,
    /// `None` in a table of vertices.
    target: Option<usize>,
    weight: Option<usize>,
    properties: Vec<(usize, PropertyType)>,
}

impl ArrowRoles {
    fn of_vertices(key: usize) -> Self {
        Self { source: key, target: None, weight: None, properties: Vec::new() }
    }

    /// The columns that are read.
    fn places(&self) -> Vec<usize> {
        let keys = [Some(self.source), self.target, self.weight].into_iter().flatten();
        keys.chain(self.properties.iter().map(|&(place, _)| place)).collect()
    }

    fn is_taken(&self, place: usize) -> bool {
        place == self.source || Some(place) == self.target || Some(place) == self.weight
    }
}

impl ArrowRows {
    fn bad(&self, what: String) -> Error {
        Error::Input { path: self.name.clone(), what }
    }

    fn names(&self) -> TableColumnNames {
        TableColumnNames::new(self.schema.fields().iter().map(|field| &field.name()[..]))
    }

    fn edge_roles(&self, options: &SourceOptions) -> Result<ArrowRoles> {
        let can_be_weight = |place: usize| self.schema.field(place).data_type().is_numeric();
        let roles = self.names().edge_roles(options, can_be_weight).map_err(|what| self.bad(what))?;
        let (source, target, weight) = (roles.source, Some(roles.target), roles.weight);
        Ok(ArrowRoles { source, target, weight, properties: Vec::new() })
    }

    /// Refuses columns whose types do not fit their roles.
    fn check(&self, roles: &ArrowRoles) -> Result<()> {
        let refuse = |place: usize, expected: &str| {
            let field = self.schema.field(place);
            let (name, found) = (shown(field.name().as_bytes()), field.data_type());
            Err(self.bad(format!("column {name}: expected {expected}, found the Arrow type {found}")))
        };
        for place in [Some(roles.source), roles.target].into_iter().flatten() {
            let data_type = self.schema.field(place).data_type();
            // Any number of nulls needs no bytes in a file, so a few bytes could stand for endless rows.
            let is_endless = data_type.is_null() && matches!(self.batches, ArrowBatches::File(_));
            if is_endless || !Cells::can_hold_keys(data_type) {
                return refuse(place, "integers or text as keys");
            }
        }
        let is_weight = |found: &DataType| found.is_numeric() || found.is_null();
        match roles.weight.filter(|&place| !is_weight(self.schema.field(place).data_type())) {
            Some(place) => refuse(place, "numbers as weights"),
            None => Ok(()),
        }
    }

    fn open(
        &self,
        rows: &ArrowInput,
        mut roles: ArrowRoles,
        probe: InputProbe,
        to: &mut InputCollector<'_>,
    ) -> Result<()> {
        self.check(&roles)?;
        let is_of_edges = roles.target.is_some();
        let options = to.options;
        let wanted = if is_of_edges { &options.edge_properties } else { &options.vertex_properties };
        let properties = self.add_properties(&mut roles, wanted)?;
        if is_of_edges {
            to.direction_known(&self.name, None)?;
        }
        let weight_type = match &self.batches {
            // A table in memory has the type that the caller asks for.
            ArrowBatches::Memory(_) => None,
            ArrowBatches::File(_) => roles.weight.and_then(|place| weight_type(self.schema.field(place).data_type())),
        };
        let columns = self.columns(&roles);
        let hint = to.hint(&columns, wanted);
        to.describe(&self.name, columns, is_of_edges, hint);
        let content = Box::new(OpenedArrow { rows: rows.clone(), roles: roles.into() });
        let side = usize::from(!is_of_edges);
        let part = if is_of_edges { to.push(probe, content) } else { to.push_vertices(probe, content) };
        (part.properties[side], part.weight_type) = (properties, weight_type);
        Ok(())
    }

    /// Adds the wanted columns that are neither keys nor weights.
    fn add_properties(&self, roles: &mut ArrowRoles, wanted: &WantedProperties) -> Result<PartProperties> {
        let is_free = |place: usize| !roles.is_taken(place) && Some(place) != self.passed_over;
        let found = wanted_properties(self.schema.fields(), is_free, wanted).map_err(|what| self.bad(what))?;
        roles.properties = found.1;
        Ok(found.0)
    }

    fn columns(&self, roles: &ArrowRoles) -> InputColumns {
        let name = |place: usize| ColumnName::Name(self.schema.field(place).name().clone());
        let is_read =
            |place: usize| roles.is_taken(place) || roles.properties.iter().any(|(property, _)| *property == place);
        InputColumns {
            source: roles.target.map(|_| name(roles.source)),
            target: roles.target.map(name),
            weight: roles.weight.map(name),
            left_out: (0..self.schema.fields().len())
                .filter(|&place| !is_read(place) && Some(place) != self.passed_over)
                .map(name)
                .collect(),
        }
    }
}

/// The wanted properties among free columns, and their columns.
///
/// # Errors
/// What is wrong with a column: no property has its type, or two have one name.
pub(crate) fn wanted_properties(
    fields: &[FieldRef],
    is_free: impl Fn(usize) -> bool,
    wanted: &WantedProperties,
) -> Result<(PartProperties, Vec<(usize, PropertyType)>), String> {
    let (mut properties, mut places) = (PartProperties::default(), Vec::new());
    for (place, field) in fields.iter().enumerate() {
        if !is_free(place) || is_unnamed(field.name()) || !wanted.wants(field.name()) {
            continue;
        }
        let Some(found) = property_type(field.data_type()) else {
            let (name, found) = (shown(field.name().as_bytes()), field.data_type());
            return Err(format!(
                "column {name}: no property has the Arrow type {found}; convert the column, or leave it out"
            ));
        };
        properties.own.add(field.name().clone(), found).map_err(|error| error.to_string())?;
        places.push((place, found));
    }
    Ok((properties, places))
}

/// The type of weights that a column of this type states.
pub(crate) fn weight_type(data_type: &DataType) -> Option<WeightType> {
    match data_type {
        DataType::UInt32 => Some(WeightType::U32),
        DataType::Int64 => Some(WeightType::I64),
        DataType::Float32 => Some(WeightType::F32),
        DataType::Float64 => Some(WeightType::F64),
        _ => None,
    }
}

/// Opened rows.
#[derive(Clone)]
struct OpenedArrow {
    rows: ArrowInput,
    roles: Arc<ArrowRoles>,
}

impl InputContent for OpenedArrow {
    fn begin(&self, input: InputStart<'_>) -> Result<Box<dyn InputReader>> {
        // A small memory budget makes blocks smaller.
        let rows_at_once = columns_at_once(input.options).min(ROWS_AT_ONCE);
        Ok(Box::new(ArrowReader { input: self.clone(), rows_at_once, batch: 0, row: 0, opened: None }))
    }
}

/// Cuts batches into ranges of rows.
struct ArrowReader {
    input: OpenedArrow,
    rows_at_once: u64,
    /// The next row: its batch, and its position there.
    batch: usize,
    row: u64,
    /// The batch of the next row, once it is read.
    opened: Option<OpenedBatch>,
}

impl InputReader for ArrowReader {
    fn next(&mut self, _spare: &mut Vec<Vec<u8>>) -> Result<Option<Box<dyn AnyInputChunk>>, Fatal> {
        let batches = &self.input.rows.0.batches;
        while self.batch < batches.num_batches() && self.row >= batches.num_rows_of(self.batch) {
            (self.batch, self.row, self.opened) = (self.batch + 1, 0, None);
        }
        if self.batch >= batches.num_batches() {
            return Ok(None);
        }
        let batch = match self.opened.take() {
            Some(batch) => batch,
            None => batches.open(self.batch, &self.input.roles.places())?,
        };
        self.opened = Some(batch.clone());
        let rows = self.row..batches.num_rows_of(self.batch).min(self.row + self.rows_at_once);
        self.row = rows.end;
        Ok(Some(Box::new(ArrowChunk { input: self.input.clone(), batch, rows })))
    }
}

/// A range of rows of a batch.
struct ArrowChunk {
    input: OpenedArrow,
    batch: OpenedBatch,
    rows: Range<u64>,
}

impl ArrowChunk {
    fn column(&self, place: usize) -> Result<ArrayRef> {
        self.batch.column(place, &self.rows)
    }

    fn num_rows(&self) -> usize {
        (self.rows.end - self.rows.start) as usize
    }

    /// Reads keys and weights row by row: for columns with nulls, text or faults. Returns the rows without a fault, if
    /// some row has one.
    fn read_rows<K: FieldKey, W: Weight>(
        &self,
        options: &SourceOptions,
        block: &mut ParsedBlock<K, W>,
    ) -> Result<Option<Vec<u32>>> {
        let roles = &self.input.roles;
        let source = Cells::of(&self.column(roles.source)?)?;
        let target = roles.target.map(|place| Cells::of(&self.column(place)?)).transpose()?;
        let weight = roles.weight.map(|place| Cells::of(&self.column(place)?)).transpose()?;
        let role = if target.is_some() { "source" } else { "vertex" };
        let mut kept = None;
        for row in 0..self.num_rows() {
            let mut read = || -> Result<_, String> {
                let key = |cells: &Cells, role: &str, text: &mut Vec<u8>| {
                    let wrong = || format!("expected a {role}, {}, found {}", K::RANGE, cells.shown(row));
                    cells.key::<K>(row, options, text).ok_or_else(wrong)
                };
                let first = key(&source, role, &mut block.extra)?;
                let second = target.as_ref().map(|target| key(target, "target", &mut block.extra)).transpose()?;
                let weight = weight.as_ref().map(|cells| {
                    let wrong = || format!("expected {}, found {}", weight_range(W::TYPE), cells.shown(row));
                    cells.weight::<W>(row).ok_or_else(wrong)
                });
                Ok((first, second, weight.transpose()?))
            };
            match read() {
                Ok((first, second, weight)) => {
                    match second {
                        Some(second) => block.edges.push((first, second)),
                        None => block.vertices.push(first),
                    }
                    block.weights.extend(weight);
                    kept.iter_mut().for_each(|kept: &mut Vec<u32>| kept.push(row as u32));
                }
                Err(what) => {
                    // Faults are rare, so kept rows are listed from the first one on.
                    kept.get_or_insert_with(|| (0..row as u32).collect());
                    if block.faults.note_at(row as u64, what) {
                        break;
                    }
                }
            }
        }
        Ok(kept)
    }

    /// Reads keys and weights in place. Returns false if a column has another form.
    fn read_whole<K: FieldKey, W: Weight>(&self, block: &mut ParsedBlock<K, W>) -> Result<bool> {
        let roles = &self.input.roles;
        let Some(target) = roles.target else { return Ok(false) };
        let weights = match roles.weight {
            None => Vec::new(),
            Some(place) => match whole_weights::<W>(&self.column(place)?) {
                Some(weights) => weights,
                None => return Ok(false),
            },
        };
        let Some(edges) = whole_edges::<K>(&self.column(roles.source)?, &self.column(target)?) else {
            return Ok(false);
        };
        (block.edges, block.weights) = (edges, weights);
        Ok(true)
    }
}

/// The error of a conversion with the name of its table.
pub(crate) fn placed(error: Error, path: &Path) -> Error {
    match error {
        Error::Parameter(what) => Error::Input { path: path.to_owned(), what },
        Error::Graph(error) => Error::Input { path: path.to_owned(), what: error.to_string() },
        other => other,
    }
}

impl InputChunk for ArrowChunk {
    fn parse<K: FieldKey, W: Weight>(self, context: &ParseContext<'_>) -> Result<ParsedChunk<K, W>> {
        self.parse_rows(context).map_err(|error| placed(error, &self.input.rows.0.name))
    }
}

impl ArrowChunk {
    fn parse_rows<K: FieldKey, W: Weight>(&self, context: &ParseContext<'_>) -> Result<ParsedChunk<K, W>> {
        let mut block = ParsedBlock::new(self.num_rows() as u64, context.on_error());
        let kept = if self.read_whole(&mut block)? { None } else { self.read_rows(context.options, &mut block)? };
        let mut properties = Vec::with_capacity(self.input.roles.properties.len());
        for &(place, to) in &self.input.roles.properties {
            let column: PropertyColumn = read_property(&self.column(place)?, to)?;
            properties.push(kept.as_ref().map_or_else(|| column.clone(), |kept| column.gather(kept)));
        }
        match self.input.roles.target {
            Some(_) => block.properties = properties,
            None => block.vertex_properties = properties,
        }
        context.count_read(self.num_rows() as u64 * self.input.rows.0.batches.bytes_per_row());
        Ok(ParsedChunk::of_extra(block))
    }
}
