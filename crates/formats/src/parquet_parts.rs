//! A Parquet table as a folder of parts, each a file of bounded size.

use std::path::PathBuf;

use arrow_schema::Field;

use crate::Result;
use crate::output_folder::{FolderFile, OutputFolder};
use crate::write_parquet::{ByteOutput, EncodedRows, ParquetTable, RowEncoder, RowFile, TablePlace};

/// The number of rows after which a part ends. Large enough that the parts of a billion edges can all be open.
const PART_ROWS: u64 = 4 << 20;

/// The place of a table in a folder.
pub(crate) struct PartFolder<'a> {
    pub(crate) folder: &'a OutputFolder<'a>,
    /// The name of the folder of parts.
    pub(crate) name: &'static str,
}

/// The parts of a table. The first exists even without rows, because it states the columns.
pub(crate) struct ParquetParts<'a> {
    place: PartFolder<'a>,
    fields: Vec<Field>,
    part: ParquetTable<FolderFile<'a>>,
    num_parts: u32,
    /// Rows of the parts before this one.
    num_rows: u64,
}

impl ByteOutput for FolderFile<'_> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.write(bytes)
    }

    fn complete(&mut self) -> Result<()> {
        FolderFile::complete(self)
    }
}

impl<'a> PartFolder<'a> {
    fn create(&self, part: u32) -> Result<FolderFile<'a>> {
        self.folder.create(&format!("{}/part-{part:05}.parquet", self.name))
    }
}

impl<'a> TablePlace for PartFolder<'a> {
    type File = ParquetParts<'a>;

    fn path(&self) -> PathBuf {
        self.folder.path_of(self.name)
    }

    fn begin(self, fields: Vec<Field>) -> Result<(Self::File, RowEncoder)> {
        self.folder.create_folder(self.name)?;
        let (part, encoder) = ParquetTable::begin(self.create(0)?, fields.clone())?;
        Ok((ParquetParts { place: self, fields, part, num_parts: 1, num_rows: 0 }, encoder))
    }
}

impl RowFile for ParquetParts<'_> {
    fn add(&mut self, rows: EncodedRows) -> Result<()> {
        if self.part.num_rows() >= PART_ROWS {
            let (part, _) = ParquetTable::begin(self.place.create(self.num_parts)?, self.fields.clone())?;
            self.num_parts += 1;
            self.num_rows += std::mem::replace(&mut self.part, part).finish()?;
        }
        self.part.add(rows)
    }

    fn finish(self) -> Result<u64> {
        Ok(self.num_rows + self.part.finish()?)
    }
}
