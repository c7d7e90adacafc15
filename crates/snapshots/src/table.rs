//! The vertex table of a base in one direction: pages of offsets, and an index of the pages.
//!
//! A page covers [`PAGE_VERTICES`] vertices. A dense page holds one more offset than vertices, relative to the page's
//! first arc. So the length of a list is a difference of two offsets, and four bytes a vertex suffice for any number of
//! edges.
//!
//! Where each page before it has offsets, the place of a list follows from the vertex alone. So a few pages without
//! edges have offsets too ([`PageSlots`]). The others are only index entries, since a graph may have few vertices with
//! edges among billions of ids.

use anden_base::VertexId;

use crate::encoding::{Decoder, Encoder};
use crate::file::{FileKind, FileWriter, SectionKind, WrittenFile};
use crate::options::DatabaseId;
use crate::{Error, Result};

/// Vertices of a page.
pub const PAGE_VERTICES: usize = 1 << PAGE_SHIFT;

/// A vertex shifted right by this is its page number.
pub(crate) const PAGE_SHIFT: u32 = 10;

/// Offsets of a dense page.
pub(crate) const PAGE_OFFSETS: usize = PAGE_VERTICES + 1;

/// Bytes of an index entry.
pub(crate) const INDEX_ENTRY_BYTES: usize = 16;

/// Kind of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum PageKind {
    /// No vertex has edges, and there are no offsets.
    Empty = 0,
    /// Offsets for every vertex.
    Dense = 1,
}

/// An entry of the page index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// Index of the page's first arc among all targets.
    pub edge_base: u64,
    /// Index among the dense pages; 0 for an empty page.
    pub slot: u32,
    pub kind: PageKind,
}

/// Gives the pages of a table their slots, in order.
#[derive(Debug, Default)]
pub(crate) struct PageSlots {
    num_with_edges: u32,
    num_without_edges: u32,
}

/// At most one in this many dense pages has no edges.
const EDGELESS_SHARE: u32 = 8;

impl PageSlots {
    /// The slot of the next page; `None` if it is empty.
    pub fn next(&mut self, has_edges: bool) -> Option<u32> {
        if !has_edges && self.num_without_edges * EDGELESS_SHARE > self.num_with_edges {
            return None;
        }
        let slot = self.num_dense();
        *if has_edges { &mut self.num_with_edges } else { &mut self.num_without_edges } += 1;
        Some(slot)
    }

    /// The number of dense pages.
    pub fn num_dense(&self) -> u32 {
        self.num_with_edges + self.num_without_edges
    }
}

/// Number of pages of a graph.
pub(crate) fn num_pages(vertex_bound: usize) -> usize {
    vertex_bound.div_ceil(PAGE_VERTICES)
}

impl IndexEntry {
    /// The entry of a dense page with this slot, or of an empty one.
    pub fn new(edge_base: u64, slot: Option<u32>) -> Self {
        let kind = if slot.is_some() { PageKind::Dense } else { PageKind::Empty };
        Self { edge_base, slot: slot.unwrap_or(0), kind }
    }

    /// Encodes the entry.
    pub fn encode(&self, index: &mut Encoder) {
        index.u64(self.edge_base);
        index.u32(self.slot);
        index.u32(self.kind as u32);
    }

    /// Decodes an entry; `None` for an unknown kind.
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
    slots: PageSlots,
    /// The offsets of the current page.
    offsets: Vec<u32>,
    index: Encoder,
}

impl TableWriter {
    /// A table in `file`, which is empty.
    pub fn new(mut file: FileWriter, vertex_bound: usize) -> Result<Self> {
        file.begin_section(SectionKind::Offsets)?;
        let (offsets, slots, index) = (vec![0], PageSlots::default(), Encoder::default());
        Ok(Self { file, vertex_bound, num_vertices: 0, edge_base: 0, slots, offsets, index })
    }

    /// Appends the degrees of the next vertices.
    ///
    /// # Errors
    /// More vertices than the graph has, or a page with too many edges.
    pub fn append(&mut self, degrees: &[u32]) -> Result<()> {
        if degrees.len() > self.vertex_bound - self.num_vertices {
            let num_lists = self.num_vertices + degrees.len();
            return Err(Error::Input(format!("{num_lists} lists for {} vertices", self.vertex_bound)));
        }
        for &degree in degrees {
            let last = *self.offsets.last().expect("a page starts with an offset");
            // Offsets have 32 bits, relative to the first arc of their page.
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
        let slot = self.slots.next(num_edges > 0);
        IndexEntry::new(self.edge_base, slot).encode(&mut self.index);
        if slot.is_some() {
            // The last page may have fewer vertices; the others get empty lists.
            self.offsets.resize(PAGE_OFFSETS, num_edges);
            self.file.append(bytemuck::cast_slice(&self.offsets))?;
            self.edge_base += u64::from(num_edges);
        }
        self.offsets.clear();
        self.offsets.push(0);
        Ok(())
    }

    /// Gives missing vertices empty lists, and writes the page index and the dead vertices, if there are any.
    pub fn finish(mut self, kind: FileKind, id: DatabaseId, dead: &[VertexId]) -> Result<WrittenFile> {
        const NONE: [u32; PAGE_VERTICES] = [0; PAGE_VERTICES];
        // In pages, so that one array of zeros serves any number of vertices.
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

/// Position of a vertex in its page.
#[inline(always)]
pub(crate) fn place_in_page(vertex: VertexId) -> usize {
    vertex as usize % PAGE_VERTICES
}

const _: () = assert!(PAGE_SHIFT < u32::BITS && size_of::<VertexId>() == 4);

#[cfg(test)]
mod tests {
    use super::*;
    use anden_testkit::FaultStorage;

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
    fn few_pages_without_edges_have_offsets() {
        let mut slots = PageSlots::default();
        let found: Vec<_> = (0..20).map(|page| slots.next(page >= 2)).collect();
        // The first page may be one, and the second would be too many.
        assert_eq!(found[..3], [Some(0), None, Some(1)]);
        let later: Vec<_> = (0..4).map(|_| slots.next(false)).collect();
        assert_eq!(later, [Some(19), Some(20), None, None]);
        assert_eq!((slots.num_dense(), slots.next(true)), (21, Some(21)));
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
            // Few pages have no edges yet.
            entry(first, 1, PageKind::Dense),
            entry(first, 2, PageKind::Dense),
            entry(all, 0, PageKind::Empty),
            entry(all, 0, PageKind::Empty),
        ];
        assert_eq!(entries, expected);
        let offsets = file.values::<u32>(SectionKind::Offsets).unwrap();
        assert_eq!(offsets.len(), 3 * PAGE_OFFSETS);
        assert_eq!((offsets[0], offsets[1], offsets[PAGE_VERTICES]), (0, u32::MAX, u32::MAX));
    }
}
