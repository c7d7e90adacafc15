//! A Parquet table as a folder of parts, each a file of bounded size.

use std::path::PathBuf;

use anden_base::parallel::Pool;
use anden_graph::WeightedEdges;
use arrow_schema::Field;

use crate::edge_rows::WrittenProperties;
use crate::options::KeyKind;
use crate::output_folder::{FolderFile, OutputFolder};
use crate::write_parquet::{
    ByteOutput, ColumnKeys, EncodedRows, ParquetTable, RowEncoder, RowFile, TablePlace, WrittenKeys, write_edges_to,
    write_vertices_to,
};
use crate::{Error, Result};

/// The number of rows after which a part ends. A billion edges are about 250 parts, which a folder shows at a glance.
const PART_ROWS: u64 = 4 << 20;

/// Writes the pair of tables of GraphFrames: `vertices` with `id` and properties, `edges` with `src`, `dst`, `weight`
/// if edges have weights, and properties. Each is a folder of parts. Returns the number of edges.
///
/// Memory and errors are those of [`write_parquet_edges`](crate::write_parquet_edges).
pub(crate) fn write_parquet_folder<E: From<Error> + Send>(
    graph: &impl WeightedEdges,
    kind: KeyKind,
    keys: impl WrittenKeys<E>,
    properties: &impl WrittenProperties<E>,
    pool: &Pool,
    folder: &OutputFolder<'_>,
) -> Result<u64, E> {
    let keys = ColumnKeys::new(graph, kind, keys, pool)?;
    write_vertices_to(graph, &keys, properties, pool, PartFolder { folder, name: "vertices" })?;
    write_edges_to(graph, &keys, properties, pool, ["src", "dst"], PartFolder { folder, name: "edges" })
}

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
