//! The vertex table of one side of a run: pages of offsets behind an index.
//!
//! A page covers [`PAGE_VERTICES`] vertices. A dense page holds one offset more than vertices,
//! relative to the page's edge base, so that a list's length is a subtraction and four bytes a
//! vertex suffice however many edges there are. A page without edges is only an entry of the index.

use base::VertexId;

use crate::encoding::{Decoder, Encoder};
use crate::file::{FileKind, FileWriter, SectionKind, WrittenFile};
use crate::options::DatabaseId;
use crate::{Error, Result};

/// The vertices of a page.
pub const PAGE_VERTICES: usize = 1 << PAGE_SHIFT;

/// A vertex shifted by this is the number of its page.
pub(crate) const PAGE_SHIFT: u32 = 10;

/// The offsets of a dense page.
pub(crate) const PAGE_OFFSETS: usize = PAGE_VERTICES + 1;

/// The bytes of an entry of the index.
pub(crate) const INDEX_ENTRY_BYTES: usize = 16;

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum PageKind {
    /// No vertex has edges.
    Empty = 0,
    /// Offsets for every vertex.
    Dense = 1,
}

/// An entry of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// Where the page's edges start among all targets.
    pub edge_base: u64,
    /// Which of the dense pages it is; 0 for an empty one.
    pub slot: u32,
    /// What it is.
    pub kind: PageKind,
}

/// The number of pages of a graph.
pub(crate) fn num_pages(vertex_bound: usize) -> usize {
    vertex_bound.div_ceil(PAGE_VERTICES)
}

impl IndexEntry {
    /// The bytes of the entry.
    pub fn encode(&self, index: &mut Encoder) {
        index.u64(self.edge_base);
        index.u32(self.slot);
        index.u32(self.kind as u32);
    }

    /// The entry from its bytes; `None` for a kind that this version does not know.
    pub fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let (edge_base, slot) = (decoder.u64()?, decoder.u32()?);
        let kind = match decoder.u32()? {
            0 => PageKind::Empty,
            1 => PageKind::Dense,
            _ => return None,
        };
        Some(Self { edge_base, slot, kind })
    }
}

/// Writes a table from the degrees of consecutive vertices.
#[derive(Debug)]
pub(crate) struct TableWriter {
    file: FileWriter,
    vertex_bound: usize,
    num_vertices: usize,
    edge_base: u64,
    num_dense: u32,
    /// The offsets of the page that is not full yet.
    offsets: Vec<u32>,
    index: Encoder,
}

impl TableWriter {
    /// A table in `file`, which holds nothing yet.
    pub fn new(mut file: FileWriter, vertex_bound: usize) -> Result<Self> {
        file.begin_section(SectionKind::Offsets)?;
        let offsets = vec![0];
        Ok(Self { file, vertex_bound, num_vertices: 0, edge_base: 0, num_dense: 0, offsets, index: Encoder::default() })
    }

    /// Appends the degrees of the next vertices.
    ///
    /// # Errors
    /// They are more vertices than the graph has, or a page has too many edges.
    pub fn append(&mut self, degrees: &[u32]) -> Result<()> {
        if degrees.len() > self.vertex_bound - self.num_vertices {
            let num_lists = self.num_vertices + degrees.len();
            return Err(Error::Input(format!("{num_lists} lists for {} vertices", self.vertex_bound)));
        }
        for &degree in degrees {
            let last = *self.offsets.last().expect("a page starts with an offset");
            let Some(next) = last.checked_add(degree) else {
                let first = (self.num_vertices / PAGE_VERTICES * PAGE_VERTICES) as u64;
                let num_edges = u64::from(last) + u64::from(degree);
                return Err(Error::PageTooLarge { first, last: first + PAGE_VERTICES as u64 - 1, num_edges });
            };
            self.offsets.push(next);
            self.num_vertices += 1;
            if self.offsets.len() == PAGE_OFFSETS {
                self.end_page()?;
            }
        }
        Ok(())
    }

    fn end_page(&mut self) -> Result<()> {
        let num_edges = *self.offsets.last().expect("a page starts with an offset");
        if num_edges == 0 {
            IndexEntry { edge_base: self.edge_base, slot: 0, kind: PageKind::Empty }.encode(&mut self.index);
        } else {
            let slot = self.num_dense;
            IndexEntry { edge_base: self.edge_base, slot, kind: PageKind::Dense }.encode(&mut self.index);
            // A page that the graph's last vertex does not fill goes on with empty lists.
            self.offsets.resize(PAGE_OFFSETS, num_edges);
            self.file.append(bytemuck::cast_slice(&self.offsets))?;
            self.num_dense += 1;
            self.edge_base += u64::from(num_edges);
        }
        self.offsets.clear();
        self.offsets.push(0);
        Ok(())
    }

    /// Gives the vertices that did not come empty lists, and writes the index and which ids are no vertices, if any.
    pub fn finish(mut self, kind: FileKind, id: DatabaseId, dead: &[VertexId]) -> Result<WrittenFile> {
        const NONE: [u32; PAGE_VERTICES] = [0; PAGE_VERTICES];
        while self.num_vertices < self.vertex_bound {
            self.append(&NONE[..(self.vertex_bound - self.num_vertices).min(PAGE_VERTICES)])?;
        }
        if self.offsets.len() > 1 {
            self.end_page()?;
        }
        self.file.begin_section(SectionKind::PageIndex)?;
        self.file.append(&self.index.0)?;
        if !dead.is_empty() {
            self.file.begin_section(SectionKind::DeadVertices)?;
            self.file.append(bytemuck::cast_slice(dead))?;
        }
        self.file.finish(kind, id)
    }
}

/// The page of a vertex.
#[inline(always)]
pub(crate) fn page_of(vertex: VertexId) -> usize {
    (vertex >> PAGE_SHIFT) as usize
}

/// The place of a vertex in its page.
#[inline(always)]
pub(crate) fn place_in_page(vertex: VertexId) -> usize {
    vertex as usize % PAGE_VERTICES
}

const _: () = assert!(PAGE_SHIFT < u32::BITS && size_of::<VertexId>() == 4);

#[cfg(test)]
mod tests {
    use super::*;
    use base::storage::FaultStorage;

    fn writer(disk: &FaultStorage, vertex_bound: usize) -> TableWriter {
        TableWriter::new(FileWriter::create(disk, "table".as_ref()).unwrap(), vertex_bound).unwrap()
    }

    #[test]
    fn a_page_with_too_many_edges_is_named() {
        let disk = FaultStorage::default();
        let mut table = writer(&disk, 3000);
        table.append(&[0; PAGE_VERTICES + 5]).unwrap();
        let error = table.append(&[u32::MAX, 0, 1]).unwrap_err();
        assert!(matches!(error, Error::PageTooLarge { first: 1024, last: 2047, num_edges: 0x1_0000_0000 }), "{error}");
    }

    #[test]
    fn bases_go_on_where_offsets_end() {
        let disk = FaultStorage::default();
        let mut table = writer(&disk, 4 * PAGE_VERTICES + 1);
        table.append(&[u32::MAX]).unwrap();
        table.append(&[0; PAGE_VERTICES - 1]).unwrap();
        table.append(&[0; PAGE_VERTICES]).unwrap();
        table.append(&[7]).unwrap();
        let id = DatabaseId([1; 16]);
        table.finish(FileKind::OutTable, id, &[]).unwrap();
        let file = crate::file::FramedFile::open(&disk, "table".as_ref(), FileKind::OutTable, id).unwrap();
        let index = file.values::<u8>(SectionKind::PageIndex).unwrap();
        let mut decoder = Decoder::new(&index);
        let entries: Vec<_> = std::iter::from_fn(|| IndexEntry::decode(&mut decoder)).collect();
        let entry = |edge_base, slot, kind| IndexEntry { edge_base, slot, kind };
        let (first, all) = (u64::from(u32::MAX), u64::from(u32::MAX) + 7);
        let expected = [
            entry(0, 0, PageKind::Dense),
            entry(first, 0, PageKind::Empty),
            entry(first, 1, PageKind::Dense),
            entry(all, 0, PageKind::Empty),
            entry(all, 0, PageKind::Empty),
        ];
        assert_eq!(entries, expected);
        let offsets = file.values::<u32>(SectionKind::Offsets).unwrap();
        assert_eq!(offsets.len(), 2 * PAGE_OFFSETS);
        assert_eq!((offsets[0], offsets[1], offsets[PAGE_VERTICES]), (0, u32::MAX, u32::MAX));
    }
}
