//! The frame of every data file: its origin, its sections, and a checksum over every byte.
//!
//! A file is a header block, sections one after the other, the checksums of their blocks, and a directory of all that.
//! A writer streams sections of unknown length, and writes the header last.
//!
//! The header's checksum covers that of the directory. The directory covers the checksums of the checksum lists, and
//! these cover the sections. So the header's checksum, which the manifest stores, identifies the whole file.

mod ends;
mod reader;
mod writer;

pub(crate) use ends::FileEnds;
pub(crate) use reader::FramedFile;
pub(crate) use writer::{FileWriter, WrittenFile, give_id};

/// First bytes of every data file.
pub(crate) const MAGIC: [u8; 4] = *b"ANDN";

/// Format version of manifest and data files. A program reads only its own version.
pub const FORMAT_VERSION: u32 = 15;

/// Bytes of the header, so that the first section starts on a block of the disk.
pub(crate) const HEADER_BYTES: usize = 4096;

/// Bytes of the header that its checksum covers; the checksum follows them.
pub(crate) const HEADER_CHECKED_BYTES: usize = HEADER_BYTES - 4;

/// Bytes of a directory entry.
pub(crate) const ENTRY_BYTES: usize = 40;

/// Files with more sections are refused.
pub(crate) const MAX_SECTIONS: u32 = 64;

/// Content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum FileKind {
    /// Targets of the base's out-lists.
    OutTargets = 1,
    /// Targets of the base's in-lists.
    InTargets = 2,
    /// Weights of the base's out-lists.
    OutWeights = 3,
    /// Weights of the base's in-lists.
    InWeights = 4,
    /// Vertex table of the base's out-lists.
    OutTable = 5,
    /// Vertex table of the base's in-lists.
    InTable = 6,
    /// A part of the dictionary.
    Dictionary = 7,
    /// Deltas.
    Delta = 8,
    /// A column of a vertex property.
    Column = 9,
    /// Rows of edge properties.
    Rows = 10,
    /// Row numbers of the base's out-lists.
    OutRows = 11,
    /// Row numbers of the base's in-lists.
    InRows = 12,
    /// A part of an index.
    Index = 13,
    /// A form that a kernel prepares from the base's version.
    Preparation = 14,
}

impl FileKind {
    const ALL: [Self; 14] = [
        Self::OutTargets,
        Self::InTargets,
        Self::OutWeights,
        Self::InWeights,
        Self::OutTable,
        Self::InTable,
        Self::Dictionary,
        Self::Delta,
        Self::Column,
        Self::Rows,
        Self::OutRows,
        Self::InRows,
        Self::Index,
        Self::Preparation,
    ];

    /// The kind with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// Content of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum SectionKind {
    /// `u32` targets, list after list.
    Targets = 1,
    /// Weights of the graph's type, list after list.
    Weights = 2,
    /// Offsets of dense pages.
    Offsets = 3,
    /// Page index.
    PageIndex = 4,
    /// Description of a dictionary part.
    DictionaryFacts = 5,
    /// `u64` keys by id.
    IntegerKeys = 6,
    /// The start of each string, by id, and the end of the last.
    StringOffsets = 7,
    /// Strings, one after the other.
    StringText = 8,
    /// Ids in key order.
    SortedIds = 9,
    /// Ids of dead vertices, ascending.
    DeadVertices = 10,
    /// Directory of a file's deltas, with the share of each in the other sections.
    DeltaDirectory = 11,
    /// Index of the pages whose out-lists change.
    OutDeltaPages = 12,
    /// Vertices of these pages with changes, and the numbers of their changes.
    OutDeltaVertices = 13,
    /// Added and removed targets of out-lists.
    OutDeltaTargets = 14,
    /// Weights of these targets, of the graph's type.
    OutDeltaWeights = 15,
    /// Index of the pages whose in-lists change.
    InDeltaPages = 16,
    /// Vertices of these pages with changes, and the numbers of their changes.
    InDeltaVertices = 17,
    /// Added and removed targets of in-lists.
    InDeltaTargets = 18,
    /// Weights of these targets, of the graph's type.
    InDeltaWeights = 19,
    /// Vertices that died.
    DiedVertices = 20,
    /// Vertices that were dead and live again.
    ReturnedVertices = 21,
    /// Property columns that deltas change, and the numbers of vertices.
    DeltaProperties = 22,
    /// Vertices whose properties change.
    PropertyVertices = 23,
    /// The end of each vertex's values.
    PropertyEnds = 24,
    /// New and old values.
    PropertyValues = 25,
    /// Description of the rows of a column file.
    ColumnFacts = 26,
    /// One bit a row: whether it has a value.
    ColumnValidity = 27,
    /// Values of fixed width, and codes of strings.
    ColumnValues = 28,
    /// Ends of the values of variable width.
    ColumnOffsets = 29,
    /// Values of variable width, one after the other.
    ColumnBytes = 30,
    /// Descriptions of the columns.
    ColumnEntries = 31,
    /// Runs of row numbers of a file.
    RowRuns = 32,
    /// `u64` row numbers, list after list.
    RowNumbers = 33,
    /// Rows of the changes of out-lists.
    OutDeltaRows = 34,
    /// Rows of the changes of in-lists.
    InDeltaRows = 35,
    /// Index entries, ascending.
    IndexEntries = 36,
    /// An array of a prepared form. A file has several, in the order of the form.
    PreparationArray = 37,
}

impl SectionKind {
    /// Alignment of sections of this kind: a cache line, or a block of the disk if blocks are read one by one.
    pub fn alignment(self) -> u64 {
        match self {
            Self::Targets | Self::Weights | Self::RowNumbers => HEADER_BYTES as u64,
            _ => 64,
        }
    }
}

/// A directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SectionEntry {
    /// A [`SectionKind`] as a number, because newer versions have more kinds.
    pub kind: u32,
    /// Start of the section in the file.
    pub offset: u64,
    /// Bytes of the section.
    pub len: u64,
    /// Start of its block checksums in the file.
    pub checksums_offset: u64,
    /// Checksum of these checksums.
    pub checksums_crc: u32,
}
