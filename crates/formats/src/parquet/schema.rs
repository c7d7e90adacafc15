//! The columns of a file, and the positions of their values.

use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, TimeUnit, Type};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};

use super::guard::Result;

/// The meaning of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logical {
    /// The stored form.
    Plain,
    Unsigned,
    Text,
    Decimal {
        scale: i32,
    },
    Date,
    Timestamp(TimeUnit),
    Float16,
}

/// A column.
#[derive(Clone, Debug)]
pub(super) struct ParquetLeaf {
    /// The name. In a column within structures, points separate their names from its own. Lists have the name of their
    /// column, not that of their items.
    pub(super) name: String,
    pub(super) column: ColumnDescPtr,
    pub(super) logical: Logical,
    pub(super) content: RowContent,
}

/// What a row of a column may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RowContent {
    /// A value or null.
    Value,
    /// A list of values. At this definition level it is empty, below it null.
    List { level: i16 },
    /// Maps, lists of lists or lists of structures, which are not read.
    Other(Repeated),
}

/// A column around others that is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repeated {
    pub(super) column: String,
    /// The content of its rows: "lists" or "maps".
    pub(super) kind: &'static str,
}

impl ParquetLeaf {
    /// Whether a row has at most one value.
    pub(super) fn is_single(&self) -> bool {
        self.content == RowContent::Value
    }

    /// Whether the column can be read.
    pub(super) fn is_readable(&self) -> bool {
        !matches!(self.content, RowContent::Other(_))
    }
}

/// The position of a column's values for the rows of a row group.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkPlace {
    pub(super) start: u64,
    pub(super) num_bytes: u64,
    /// The number of values, nulls and empty lists included.
    pub(super) num_values: u64,
    pub(super) codec: Compression,
}

/// Consecutive rows.
#[derive(Clone, Debug)]
pub(super) struct RowGroup {
    pub(super) num_rows: u64,
    /// By column.
    pub(super) chunks: Vec<ChunkPlace>,
}

/// The columns of a file.
pub(super) fn leaves_of(metadata: &ParquetMetaData) -> Vec<ParquetLeaf> {
    let schema = metadata.file_metadata().schema_descr();
    let leaf = |(place, column): (usize, &ColumnDescPtr)| {
        let (name, content) = content_of(schema, place);
        ParquetLeaf { name, column: column.clone(), logical: logical_of(column), content }
    };
    schema.columns().iter().enumerate().map(leaf).collect()
}

/// The row groups of a file with `num_data_bytes` before its footer.
///
/// # Errors
/// Counts or positions contradict each other or the length of the file.
pub(super) fn groups_of(metadata: &ParquetMetaData, num_data_bytes: u64) -> Result<Vec<RowGroup>> {
    let mut groups = Vec::with_capacity(metadata.num_row_groups());
    let mut sum = 0_u64;
    for group in metadata.row_groups() {
        let num_rows = u64::try_from(group.num_rows()).map_err(|_| "a number of rows is negative")?;
        sum = sum.checked_add(num_rows).ok_or("there are more than 2^64 rows")?;
        let chunks = group.columns().iter().map(|chunk| place_of(chunk, num_data_bytes));
        groups.push(RowGroup { num_rows, chunks: chunks.collect::<Result<_>>()? });
    }
    if u64::try_from(metadata.file_metadata().num_rows()) != Ok(sum) {
        return Err("the rows of the row groups are not as many as those of the file".into());
    }
    Ok(groups)
}

fn place_of(chunk: &ColumnChunkMetaData, num_data_bytes: u64) -> Result<ChunkPlace> {
    if chunk.file_path().is_some_and(|path| !path.is_empty()) {
        return Err("its values lie in another file".into());
    }
    // Some writers omit the dictionary's position or write 0. Then the data's position is that of the dictionary.
    let data = chunk.data_page_offset();
    let start = chunk.dictionary_page_offset().filter(|&at| at > 0 && at < data).unwrap_or(data);
    match (u64::try_from(start), u64::try_from(chunk.compressed_size())) {
        (Ok(start), Ok(num_bytes)) if start.checked_add(num_bytes).is_some_and(|end| end <= num_data_bytes) => {
            let num_values = u64::try_from(chunk.num_values()).unwrap_or(0);
            Ok(ChunkPlace { start, num_bytes, num_values, codec: chunk.compression() })
        }
        _ => Err("values lie outside the file".into()),
    }
}

/// The name of a column, and what its rows hold.
fn content_of(schema: &SchemaDescriptor, place: usize) -> (String, RowContent) {
    let column = schema.column(place);
    let (parts, mut node, mut parent, mut level) = (column.path().parts(), schema.get_column_root_ptr(place), None, 0);
    for depth in 1..=parts.len() {
        let info = node.get_basic_info();
        if info.repetition() == Repetition::REPEATED {
            // The column is the group marked as a list or map, around the repeated element.
            let (around, kind) = parent.map_or((depth, "lists"), |kind| (depth - 1, kind));
            let name = parts[..around].join(".");
            // One more group stands around items that may be null. Older writers did without, and named structures so.
            let is_wrapped = |list: &str| {
                let is_structure = info.name() == "array" || info.name() == format!("{list}_tuple");
                depth + 1 == parts.len() && node.get_fields().len() == 1 && !is_structure
            };
            let has_values = depth == parts.len() || around < depth && is_wrapped(&parts[around - 1]);
            return if kind == "lists" && has_values && column.max_rep_level() == 1 {
                (name, RowContent::List { level })
            } else {
                (column.path().string(), RowContent::Other(Repeated { column: name, kind }))
            };
        }
        level += i16::from(info.repetition() == Repetition::OPTIONAL);
        parent = match info.converted_type() {
            ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE => Some("maps"),
            ConvertedType::LIST => Some("lists"),
            _ => None,
        };
        let inner = parts.get(depth).and_then(|inner| node.get_fields().iter().find(|field| field.name() == inner));
        match inner.cloned() {
            Some(inner) => node = inner,
            None => break,
        }
    }
    (column.path().string(), RowContent::Value)
}

/// The meaning of a column's values. The crate has checked that it fits their type.
fn logical_of(column: &ColumnDescPtr) -> Logical {
    match (column.converted_type(), column.logical_type_ref()) {
        (ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON, _) => Logical::Text,
        (ConvertedType::DECIMAL, _) => Logical::Decimal { scale: column.type_scale() },
        (ConvertedType::DATE, _) => Logical::Date,
        (ConvertedType::TIMESTAMP_MILLIS, _) => Logical::Timestamp(TimeUnit::MILLIS),
        (ConvertedType::TIMESTAMP_MICROS, _) => Logical::Timestamp(TimeUnit::MICROS),
        (ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64, _) => {
            Logical::Unsigned
        }
        (_, Some(LogicalType::Timestamp(_))) => Logical::Timestamp(TimeUnit::NANOS),
        (_, Some(LogicalType::Float16)) => Logical::Float16,
        // The reader turns their bytes into text.
        (_, Some(LogicalType::Uuid)) => Logical::Text,
        // The reader asks the crate for microseconds.
        _ if column.physical_type() == Type::INT96 => Logical::Timestamp(TimeUnit::MICROS),
        _ => Logical::Plain,
    }
}
