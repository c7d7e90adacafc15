//! The footer of a Parquet file: its columns, and where their values lie.
//!
//! Nothing in it is believed before it agrees with the length of the file. Only columns that hold one
//! value a row are told apart; repeated ones (lists, maps) are passed over.

use super::thrift::{Fault, Kind, Read, Reader};

/// The longest name of a column, with the names of the structures around it.
const MAX_NAME_BYTES: usize = 1024;
const MAX_COLUMNS: usize = 100_000;

/// How values are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Physical {
    Boolean,
    Int32,
    Int64,
    Int96,
    Float,
    Double,
    Bytes,
    FixedBytes(usize),
}

/// The unit of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Millis,
    Micros,
    Nanos,
}

/// What values mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logical {
    /// What they are stored as.
    Plain,
    Unsigned,
    Text,
    Decimal {
        scale: i32,
    },
    Date,
    Timestamp(Unit),
    Float16,
}

/// A column.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// Its name; of a column within structures, the names of those before, separated by points.
    pub(super) name: String,
    pub(super) physical: Physical,
    pub(super) logical: Logical,
    /// The definition level of a value that is there.
    pub(super) max_definition: u32,
    /// The column of lists or maps that it is a part of, where a row may have several values.
    pub(super) repeated: Option<Repeated>,
    /// What values mean that are read as what they are stored as, such as "times of day".
    pub(super) meaning: Option<&'static str>,
}

/// A column with several values a row, which is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repeated {
    pub(super) column: String,
    /// What its rows hold: "lists" or "maps".
    pub(super) kind: &'static str,
}

/// Where the values of a column lie for the rows of a row group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) start: u64,
    pub(super) num_bytes: u64,
    pub(super) codec: i32,
}

/// Consecutive rows.
#[derive(Clone, Debug)]
pub(super) struct RowGroup {
    pub(super) num_rows: u64,
    /// By column.
    pub(super) chunks: Vec<Chunk>,
}

/// What the footer says.
#[derive(Clone, Debug, Default)]
pub(super) struct Footer {
    pub(super) leaves: Vec<Leaf>,
    pub(super) groups: Vec<RowGroup>,
}

#[derive(Debug, Default)]
struct Element {
    physical: Option<i32>,
    len: i32,
    repetition: i32,
    name: String,
    num_children: i32,
    converted: Option<i32>,
    scale: i32,
    logical: Option<Logical>,
    meaning: Option<&'static str>,
}

impl Footer {
    /// The footer in `bytes`, before which a file has `num_data_bytes`.
    pub(super) fn parse(bytes: &[u8], num_data_bytes: u64) -> Read<Self> {
        let (mut elements, mut groups, mut num_rows) = (Vec::new(), Vec::new(), 0);
        Reader::new(bytes).fields(|reader, id, kind| {
            match (id, kind) {
                (2, Kind::LIST) => {
                    reader.list(Kind::STRUCT, |reader| element(reader).map(|element| elements.push(element)))?
                }
                (3, Kind::I64) => num_rows = reader.i64()?,
                (4, Kind::LIST) => {
                    let group = |reader: &mut Reader<'_>| row_group(reader, num_data_bytes);
                    reader.list(Kind::STRUCT, |reader| group(reader).map(|group| groups.push(group)))?;
                }
                (8, _) => return Err(Fault::Wrong("it is encrypted")),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let leaves = leaves(&elements)?;
        let mut sum = 0_u64;
        for group in &groups {
            if group.chunks.len() != leaves.len() {
                return Err(Fault::Wrong("a row group has another number of columns than the schema"));
            }
            sum = sum.checked_add(group.num_rows).ok_or(Fault::Wrong("there are more than 2^64 rows"))?;
        }
        if u64::try_from(num_rows) != Ok(sum) {
            return Err(Fault::Wrong("the rows of the row groups are not as many as those of the file"));
        }
        Ok(Self { leaves, groups })
    }
}

fn element(reader: &mut Reader<'_>) -> Read<Element> {
    let mut element = Element::default();
    reader.fields(|reader, id, kind| {
        match (id, kind) {
            (1, Kind::I32) => element.physical = Some(reader.i32()?),
            (2, Kind::I32) => element.len = reader.i32()?,
            (3, Kind::I32) => element.repetition = reader.i32()?,
            (4, Kind::BINARY) => element.name = reader.text()?.to_owned(),
            (5, Kind::I32) => element.num_children = reader.i32()?,
            (6, Kind::I32) => element.converted = Some(reader.i32()?),
            (7, Kind::I32) => element.scale = reader.i32()?,
            (10, Kind::STRUCT) => (element.logical, element.meaning) = logical(reader)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(element)
}

/// A logical type, where it is one that makes a difference; and what values mean of one that does not.
fn logical(reader: &mut Reader<'_>) -> Read<(Option<Logical>, Option<&'static str>)> {
    let (mut found, mut meaning) = (None, None);
    reader.fields(|reader, id, kind| {
        if kind != Kind::STRUCT {
            return Ok(false);
        }
        match id {
            1 | 4 | 12 => found = Some(Logical::Text),
            6 => found = Some(Logical::Date),
            15 => found = Some(Logical::Float16),
            7 => meaning = Some(TIMES),
            13 => meaning = Some(DOCUMENTS),
            14 => meaning = Some("UUIDs"),
            5 => {
                let mut scale = 0;
                reader.fields(|reader, id, kind| {
                    let is_scale = id == 1 && kind == Kind::I32;
                    if is_scale {
                        scale = reader.i32()?;
                    }
                    Ok(is_scale)
                })?;
                found = Some(Logical::Decimal { scale });
                return Ok(true);
            }
            8 => {
                let mut unit = Unit::Micros;
                reader.fields(|reader, id, kind| {
                    if id != 2 || kind != Kind::STRUCT {
                        return Ok(false);
                    }
                    reader.fields(|_, id, _| {
                        unit = match id {
                            1 => Unit::Millis,
                            2 => Unit::Micros,
                            _ => Unit::Nanos,
                        };
                        Ok(false)
                    })?;
                    Ok(true)
                })?;
                found = Some(Logical::Timestamp(unit));
                return Ok(true);
            }
            10 => {
                reader.fields(|_, id, kind| {
                    if id == 2 {
                        found = Some(if kind == Kind::FALSE { Logical::Unsigned } else { Logical::Plain });
                    }
                    Ok(false)
                })?;
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    })?;
    Ok((found, meaning))
}

/// What values mean by their converted type, of those that are read as what they are stored as.
fn converted_meaning(element: &Element) -> Option<&'static str> {
    match element.converted {
        Some(7 | 8) => Some(TIMES),
        Some(20) => Some(DOCUMENTS),
        Some(21) => Some("intervals of time"),
        _ => None,
    }
}

const TIMES: &str = "times of day";
const DOCUMENTS: &str = "BSON documents";

fn row_group(reader: &mut Reader<'_>, num_data_bytes: u64) -> Read<RowGroup> {
    let mut group = RowGroup { num_rows: 0, chunks: Vec::new() };
    reader.fields(|reader, id, kind| {
        match (id, kind) {
            (1, Kind::LIST) => {
                let chunk = |reader: &mut Reader<'_>| chunk(reader, num_data_bytes);
                reader.list(Kind::STRUCT, |reader| chunk(reader).map(|chunk| group.chunks.push(chunk)))?;
            }
            (3, Kind::I64) => {
                group.num_rows =
                    u64::try_from(reader.i64()?).map_err(|_| Fault::Wrong("a number of rows is negative"))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(group)
}

fn chunk(reader: &mut Reader<'_>, num_data_bytes: u64) -> Read<Chunk> {
    let (mut codec, mut num_bytes, mut data, mut dictionary) = (-1, -1, -1, -1);
    reader.fields(|reader, id, kind| {
        match (id, kind) {
            (1, Kind::BINARY) => {
                if !reader.bytes()?.is_empty() {
                    return Err(Fault::Wrong("its values lie in another file"));
                }
            }
            (8 | 9, _) => return Err(Fault::Wrong("it is encrypted")),
            (3, Kind::STRUCT) => reader.fields(|reader, id, kind| {
                match (id, kind) {
                    (4, Kind::I32) => codec = reader.i32()?,
                    (7, Kind::I64) => num_bytes = reader.i64()?,
                    (9, Kind::I64) => data = reader.i64()?,
                    (11, Kind::I64) => dictionary = reader.i64()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    // Some writers leave the dictionary's place out, or say 0, and mean it by the data's.
    let start = if dictionary > 0 && dictionary < data { dictionary } else { data };
    let place = u64::try_from(start).ok().zip(u64::try_from(num_bytes).ok());
    match place {
        Some((start, num_bytes)) if start.checked_add(num_bytes).is_some_and(|end| end <= num_data_bytes) => {
            Ok(Chunk { start, num_bytes, codec })
        }
        _ => Err(Fault::Wrong("values lie outside the file")),
    }
}

/// A group of the schema some of whose children are to come.
struct Open {
    num_left: i32,
    /// Of the path of the group.
    name_len: usize,
    level: u32,
    repeated: Option<Repeated>,
    /// What it holds, where it is marked as lists or maps.
    kind: Option<&'static str>,
}

/// The columns of a schema: its leaves.
fn leaves(elements: &[Element]) -> Read<Vec<Leaf>> {
    let wrong = Err(Fault::Wrong("the schema is no tree"));
    let Some((root, rest)) = elements.split_first() else { return wrong };
    let mut open = vec![Open { num_left: root.num_children, name_len: 0, level: 0, repeated: None, kind: None }];
    let mut leaves = Vec::new();
    let mut path = String::new();
    for element in rest {
        while open.last().is_some_and(|group| group.num_left == 0) {
            open.pop();
        }
        let Some(parent) = open.last_mut() else { return wrong };
        parent.num_left -= 1;
        path.truncate(parent.name_len);
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(&element.name);
        if path.len() > MAX_NAME_BYTES || leaves.len() == MAX_COLUMNS {
            return Err(Fault::Wrong("it has too many columns, or too long names of columns"));
        }
        let level = parent.level + u32::from(element.repetition != 0);
        let repeated = parent.repeated.clone().or_else(|| {
            // The column is the group that is marked as a list or map, around what is repeated.
            let (len, kind) = parent.kind.map_or((path.len(), "lists"), |kind| (parent.name_len, kind));
            (element.repetition == 2).then(|| Repeated { column: path[..len].to_owned(), kind })
        });
        if element.num_children > 0 {
            if open.len() > 64 {
                return Err(Fault::Wrong("structures are nested too deep"));
            }
            let kind = match element.converted {
                Some(1 | 2) => Some("maps"),
                Some(3) => Some("lists"),
                _ => None,
            };
            open.push(Open { num_left: element.num_children, name_len: path.len(), level, repeated, kind });
            continue;
        }
        let Some(physical) = element.physical else { continue };
        let physical = physical_type(physical, element.len)?;
        let logical = logical_type(element, physical);
        let meaning = element.meaning.or_else(|| converted_meaning(element));
        leaves.push(Leaf { name: path.clone(), physical, logical, max_definition: level, repeated, meaning });
    }
    while open.last().is_some_and(|group| group.num_left == 0) {
        open.pop();
    }
    if open.is_empty() { Ok(leaves) } else { wrong }
}

fn physical_type(number: i32, len: i32) -> Read<Physical> {
    Ok(match number {
        0 => Physical::Boolean,
        1 => Physical::Int32,
        2 => Physical::Int64,
        3 => Physical::Int96,
        4 => Physical::Float,
        5 => Physical::Double,
        6 => Physical::Bytes,
        7 => match usize::try_from(len) {
            Ok(len @ 1..=65536) => Physical::FixedBytes(len),
            _ => return Err(Fault::Wrong("values of a fixed length are not of 1 to 65536 bytes")),
        },
        _ => return Err(Fault::Wrong("a column is of an unknown type")),
    })
}

/// What the values of a leaf mean: by its logical type, or by the older converted one.
fn logical_type(element: &Element, physical: Physical) -> Logical {
    let converted = match element.converted {
        Some(0 | 4 | 19) => Logical::Text,
        Some(5) => Logical::Decimal { scale: element.scale },
        Some(6) => Logical::Date,
        Some(9) => Logical::Timestamp(Unit::Millis),
        Some(10) => Logical::Timestamp(Unit::Micros),
        Some(11..=14) => Logical::Unsigned,
        _ => Logical::Plain,
    };
    let logical = element.logical.unwrap_or(converted);
    let is_whole = matches!(physical, Physical::Int32 | Physical::Int64);
    let is_bytes = matches!(physical, Physical::Bytes | Physical::FixedBytes(_));
    let fits = match logical {
        Logical::Plain => true,
        Logical::Text => physical == Physical::Bytes,
        Logical::Unsigned => is_whole,
        Logical::Decimal { scale } => (0..=38).contains(&scale) && (is_whole || is_bytes),
        Logical::Date => physical == Physical::Int32,
        Logical::Timestamp(_) => physical == Physical::Int64,
        Logical::Float16 => physical == Physical::FixedBytes(2),
    };
    match (fits, physical) {
        (_, Physical::Int96) => Logical::Timestamp(Unit::Nanos),
        (true, _) => logical,
        (false, _) => Logical::Plain,
    }
}
