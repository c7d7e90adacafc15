//! The plain CSR in a file, and from a file.
//!
//! A saved CSR holds its arrays as they are in memory, each at a multiple of [`ALIGNMENT`]. So a map of the file is the
//! graph. The format serves measurements: a mapped graph is compared with plain arrays that are also mapped. It has no
//! checksums. Mapping checks offsets, targets and order, which a reader relies on.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anden_base::mapped::{FileBytes, MappedSlice};
use anden_base::memory::HUGE_PAGE_BYTES;
use bytemuck::{Pod, Zeroable};

use crate::{Adjacency, Csr, Error, Graph, GraphKind, Result, Weight, WeightType, Weights};

/// Each array starts at a multiple of this many bytes, the page size of a map.
const ALIGNMENT: u64 = 4096;
const MAGIC: [u8; 8] = *b"ANDENCSR";
const VERSION: u32 = 1;

/// The first bytes of a saved CSR.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct CsrFileHeader {
    magic: [u8; 8],
    version: u32,
    /// 1 if directed.
    directed: u8,
    /// 1 if in-lists follow the out-lists.
    in_lists: u8,
    /// 0, or one more than the position in [`WeightType::ALL`].
    weight_type: u8,
    padding: u8,
    num_vertices: u64,
    num_arcs: u64,
}

// The header is written as its bytes, so its size is part of the format.
const _: () = assert!(size_of::<CsrFileHeader>() == 32);

impl Csr {
    /// Writes the arrays to a file that [`Csr::map`] reads. Replaces an existing file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        // The in-lists of an undirected graph are its out-lists, which are written once.
        let in_lists = self.in_lists().filter(|_| self.graph_kind() == GraphKind::Directed);
        let weight_type = self.out_lists().weights().map(Weights::weight_type);
        let weight_type = weight_type.and_then(|t| WeightType::ALL.iter().position(|&(other, _)| other == t));
        let header = CsrFileHeader {
            magic: MAGIC,
            version: VERSION,
            directed: u8::from(self.graph_kind() == GraphKind::Directed),
            in_lists: u8::from(in_lists.is_some()),
            weight_type: weight_type.map_or(0, |place| place as u8 + 1),
            padding: 0,
            num_vertices: self.out_lists().num_vertices() as u64,
            num_arcs: self.num_arcs(),
        };
        let write = || -> std::io::Result<()> {
            // Neither atomic nor synced: a measurement can write the file again.
            let mut out = BufWriter::with_capacity(1 << 20, InGrains { file: File::create(path)?, len: 0 });
            write_aligned(&mut out, bytemuck::bytes_of(&header))?;
            for lists in std::iter::once(self.out_lists()).chain(in_lists) {
                write_aligned(&mut out, bytemuck::cast_slice(lists.offsets()))?;
                write_aligned(&mut out, bytemuck::cast_slice(lists.targets()))?;
                if let Some(weights) = lists.weights() {
                    write_aligned(&mut out, weight_bytes(weights))?;
                }
            }
            // A writer that is only dropped hides an error of the disk.
            out.flush()
        };
        write().map_err(|e| anden_base::Error::io("write", path, e).into())
    }

    /// Maps a graph that [`Csr::save`] wrote. Cost: reads every array once to check it.
    ///
    /// # Errors
    /// The file cannot be mapped, is not a saved CSR, or its arrays are not a CSR.
    pub fn map(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| anden_base::Error::io("open", path, e))?;
        let bytes = FileBytes::map(&file).map_err(|e| anden_base::Error::io("map", path, e))?;
        let bad = |what: &str| Error::Input { path: path.to_owned(), what: what.to_owned() };
        let header: &[u8] =
            bytes.as_slice().get(..size_of::<CsrFileHeader>()).ok_or_else(|| bad("no header of a CSR"))?;
        let header: CsrFileHeader = bytemuck::pod_read_unaligned(header);
        if header.magic != MAGIC || header.version != VERSION {
            return Err(bad("not a CSR of this version"));
        }
        // The order of `ALL` is part of the format, and 0 stands for no weights.
        let weight_type = match header.weight_type {
            0 => None,
            place => {
                let found = WeightType::ALL.get(place as usize - 1);
                Some(found.ok_or_else(|| bad("the weights are of an unknown type"))?.0)
            }
        };
        // The header takes the first page.
        let mut next = ALIGNMENT;
        let mut lists = || -> Option<(MappedSlice<u64>, MappedSlice<u32>, Option<Weights>)> {
            // A damaged header may hold any number.
            let offsets = take(&bytes, &mut next, header.num_vertices.checked_add(1)?)?;
            // `take` advances, so the arrays come in the order of `save`.
            let targets = take(&bytes, &mut next, header.num_arcs)?;
            let weights = match weight_type {
                None => None,
                Some(WeightType::U32) => Some(u32::column(take(&bytes, &mut next, header.num_arcs)?)),
                Some(WeightType::I64) => Some(i64::column(take(&bytes, &mut next, header.num_arcs)?)),
                Some(WeightType::F32) => Some(f32::column(take(&bytes, &mut next, header.num_arcs)?)),
                Some(WeightType::F64) => Some(f64::column(take(&bytes, &mut next, header.num_arcs)?)),
            };
            Some((offsets, targets, weights))
        };
        let mut adjacency = || {
            let (offsets, targets, weights) = lists().ok_or_else(|| bad("shorter than its header says"))?;
            Adjacency::new(offsets, targets, weights).map_err(|e| bad(&e.to_string()))
        };
        let out_lists = adjacency()?;
        if header.directed == 0 {
            return Ok(Self::undirected(out_lists));
        }
        let in_lists = if header.in_lists == 0 { None } else { Some(adjacency()?) };
        Self::directed(out_lists, in_lists)
    }
}

/// The next array of a saved CSR.
fn take<T: Pod>(bytes: &FileBytes, next: &mut u64, count: u64) -> Option<MappedSlice<T>> {
    let values = bytes.typed(*next, count)?;
    // `typed` has checked the range, so this cannot overflow.
    *next = (*next + count * size_of::<T>() as u64).next_multiple_of(ALIGNMENT);
    Some(values)
}

/// Writes a new file in pieces that end at borders of huge pages, so that the system keeps the file in huge pages. A
/// map then costs fewer page-table lookups. Snapshots are written in this way too, so comparisons are fair.
struct InGrains {
    file: File,
    len: usize,
}

impl Write for InGrains {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = HUGE_PAGE_BYTES - self.len % HUGE_PAGE_BYTES;
        let num_written = self.file.write(&bytes[..bytes.len().min(room)])?;
        self.len += num_written;
        Ok(num_written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

fn write_aligned(out: &mut impl Write, bytes: &[u8]) -> std::io::Result<()> {
    const ZEROS: [u8; ALIGNMENT as usize] = [0; ALIGNMENT as usize];
    out.write_all(bytes)?;
    let padding = bytes.len().next_multiple_of(ZEROS.len()) - bytes.len();
    out.write_all(&ZEROS[..padding])
}

fn weight_bytes(weights: &Weights) -> &[u8] {
    match weights {
        Weights::U32(w) => bytemuck::cast_slice(w),
        Weights::I64(w) => bytemuck::cast_slice(w),
        Weights::F32(w) => bytemuck::cast_slice(w),
        Weights::F64(w) => bytemuck::cast_slice(w),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CsrBuilder;
    use crate::Direction;

    fn assert_same(a: &Csr, b: &Csr) {
        assert_eq!((a.graph_kind(), a.num_edges(), a.num_arcs()), (b.graph_kind(), b.num_edges(), b.num_arcs()));
        let arrays = |lists: &Adjacency| (lists.offsets().to_vec(), lists.targets().to_vec());
        assert_eq!(arrays(a.out_lists()), arrays(b.out_lists()));
        assert_eq!(a.in_lists().map(arrays), b.in_lists().map(arrays));
        let weights = |graph: &Csr| graph.out_lists().weights().map(|w| weight_bytes(w).to_vec());
        assert_eq!(weights(a), weights(b));
    }

    #[test]
    fn a_saved_graph_is_mapped_again() {
        let dir = tempfile::tempdir().unwrap();
        for graph_kind in [GraphKind::Directed, GraphKind::Undirected] {
            for num_vertices in [0, 1, 700] {
                let mut builder = CsrBuilder::<f64>::new(graph_kind, num_vertices);
                for i in 0..num_vertices as u32 * 3 {
                    builder.edge(i * 7 % num_vertices as u32, i * i % num_vertices as u32, f64::from(i) / 8.0);
                }
                for graph in [builder.clone().build().unwrap(), builder.build_weighted().unwrap()] {
                    let path = dir.path().join("graph.csr");
                    graph.save(&path).unwrap();
                    assert_same(&graph, &Csr::map(&path).unwrap());
                }
            }
        }
    }

    #[test]
    fn a_cut_or_foreign_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("graph.csr");
        let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, 3);
        builder.edge(0, 2, 1);
        builder.build().unwrap().save(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for len in [0, 10, 32, 4096, 8192, 4 * 4096] {
            std::fs::write(&path, &whole[..len]).unwrap();
            assert!(Csr::map(&path).is_err(), "{len} bytes");
        }
        for place in (0..whole.len()).filter(|place| place % 4096 < 48) {
            let mut damaged = whole.clone();
            damaged[place] ^= 0xff;
            std::fs::write(&path, &damaged).unwrap();
            // A damaged file that maps must still read as a graph.
            if let Ok(graph) = Csr::map(&path) {
                let degrees = (0..graph.vertex_bound() as u32).map(|v| graph.degree(Direction::Out, v) as u64);
                assert_eq!(degrees.sum::<u64>(), graph.num_arcs());
            }
        }
        let mut foreign = whole.clone();
        foreign[0] ^= 1;
        std::fs::write(&path, &foreign).unwrap();
        assert!(Csr::map(&path).unwrap_err().to_string().contains("not a CSR"));
        let mut lying = whole;
        lying[4096 + 8] = 9;
        std::fs::write(&path, &lying).unwrap();
        assert!(Csr::map(&path).is_err());
    }
}
