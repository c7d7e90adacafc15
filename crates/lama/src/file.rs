//! The frame of every data file: who wrote it, what is in it, and a checksum over every byte.
//!
//! A file is a header block, sections one after the other, the checksums of their blocks, and a
//! directory that says where all that is. A writer streams sections of unknown length and writes
//! the header last. The header's checksum covers the directory's, the directory's those of the
//! checksums, and these the sections: who knows the header's checksum, as the manifest does, knows
//! the whole file.

mod reader;
mod writer;

pub(crate) use reader::FramedFile;
pub(crate) use writer::{FileWriter, WrittenFile};

/// Starts every data file.
pub(crate) const MAGIC: [u8; 4] = *b"ANDN";

/// The version of the format of manifest and data files. A program reads its own.
pub const FORMAT_VERSION: u32 = 9;

/// The bytes of the header, so that the first section starts on a block of the disk.
pub(crate) const HEADER_BYTES: usize = 4096;

/// The bytes of the header that its checksum, which follows them, covers.
pub(crate) const HEADER_CHECKED_BYTES: usize = HEADER_BYTES - 4;

/// The bytes of an entry of the directory.
pub(crate) const ENTRY_BYTES: usize = 40;

/// More sections than this are no file of ours.
pub(crate) const MAX_SECTIONS: u32 = 64;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum FileKind {
    /// The targets of a run's out-lists.
    OutTargets = 1,
    /// The targets of a run's in-lists.
    InTargets = 2,
    /// The weights beside the out-lists.
    OutWeights = 3,
    /// The weights beside the in-lists.
    InWeights = 4,
    /// The vertex table of a run's out-lists.
    OutTable = 5,
    /// The vertex table of a run's in-lists.
    InTable = 6,
    /// A part of the dictionary.
    Dictionary = 7,
    /// Levels.
    Level = 8,
    /// A column of properties.
    Column = 9,
    /// Rows of properties of edges.
    Rows = 10,
    /// The numbers of the rows beside the out-lists.
    OutRows = 11,
    /// The numbers of the rows beside the in-lists.
    InRows = 12,
    /// A part of an index.
    Index = 13,
}

impl FileKind {
    const ALL: [Self; 13] = [
        Self::OutTargets,
        Self::InTargets,
        Self::OutWeights,
        Self::InWeights,
        Self::OutTable,
        Self::InTable,
        Self::Dictionary,
        Self::Level,
        Self::Column,
        Self::Rows,
        Self::OutRows,
        Self::InRows,
        Self::Index,
    ];

    /// The kind with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum SectionKind {
    /// `u32` ids of vertices, list after list.
    Targets = 1,
    /// Weights of the graph's type, list after list.
    Weights = 2,
    /// The offsets of dense pages.
    Offsets = 3,
    /// The index of the pages.
    PageIndex = 4,
    /// What a part of the dictionary holds.
    DictionaryFacts = 5,
    /// `u64` keys by id.
    IntegerKeys = 6,
    /// Where each string starts, by id, and the end of the last.
    StringOffsets = 7,
    /// The strings, one after the other.
    StringText = 8,
    /// Ids in the order of their keys.
    SortedIds = 9,
    /// Ids that are no vertices any more, ascending.
    DeadVertices = 10,
    /// Which levels a file holds, and how much of each section is whose.
    LevelDirectory = 11,
    /// The index of the pages whose out-lists levels change.
    OutLevelPages = 12,
    /// Which vertices of these pages have changes, and how many.
    OutLevelVertices = 13,
    /// The targets that are added and removed.
    OutLevelTargets = 14,
    /// Their weights, of the graph's type.
    OutLevelWeights = 15,
    /// The index of the pages whose in-lists levels change.
    InLevelPages = 16,
    /// Which vertices of these pages have changes, and how many.
    InLevelVertices = 17,
    /// The targets that are added and removed.
    InLevelTargets = 18,
    /// Their weights, of the graph's type.
    InLevelWeights = 19,
    /// Vertices that died.
    DiedVertices = 20,
    /// Vertices that had died and live again.
    ReturnedVertices = 21,
    /// Which columns of properties levels change, and for how many vertices.
    LevelProperties = 22,
    /// The vertices whose properties change.
    PropertyVertices = 23,
    /// Where the values of each of them end.
    PropertyEnds = 24,
    /// The new values and the old ones.
    PropertyValues = 25,
    /// Which rows a file has columns of.
    ColumnFacts = 26,
    /// A bit for each row that has a value.
    ColumnValidity = 27,
    /// Values of fixed width, and codes of strings.
    ColumnValues = 28,
    /// Where the values of other widths end.
    ColumnOffsets = 29,
    /// The values of other widths, one after the other.
    ColumnBytes = 30,
    /// What each column is.
    ColumnEntries = 31,
    /// Which numbers the rows of a file have.
    RowRuns = 32,
    /// The `u64` numbers of rows, list after list.
    RowNumbers = 33,
    /// The rows of what is added to and removed from out-lists.
    OutLevelRows = 34,
    /// The rows of what is added to and removed from in-lists.
    InLevelRows = 35,
    /// The entries of an index, ascending.
    IndexEntries = 36,
}

impl SectionKind {
    /// Where a section of this kind may start: on a line of the cache, or on a block of the disk where its blocks are
    /// read one by one.
    pub fn alignment(self) -> u64 {
        match self {
            Self::Targets | Self::Weights | Self::RowNumbers => HEADER_BYTES as u64,
            _ => 64,
        }
    }
}

/// An entry of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// A [`SectionKind`], as a number: newer versions have more.
    pub kind: u32,
    /// Where the section starts in the file.
    pub offset: u64,
    /// Its bytes.
    pub len: u64,
    /// Where the checksums of its blocks start in the file.
    pub checksums_offset: u64,
    /// The checksum of these checksums.
    pub checksums_crc: u32,
}
