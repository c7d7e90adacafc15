//! The plain CSR in a file, and from one.
//!
//! A saved CSR is its arrays as they are in memory, each at a multiple of [`ALIGNMENT`], so a map of
//! the file is the graph. It exists to measure against: a mapped graph is to be compared with plain
//! arrays that are mapped as well. It has no checksums; what would break the graph (offsets, targets,
//! order) is checked when it is mapped.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;

use base::mapped::{FileBytes, MappedSlice};
use base::memory::HUGE_PAGE_BYTES;
use base::parallel::Pool;
use bytemuck::{Pod, Zeroable};

use crate::formats::SerializedGraph;
use crate::{Adjacency, Csr, Direction, Error, Graph, Result, Side, Weight, WeightType, Weights};

/// Every array starts at a multiple of so many bytes: the page of a map.
const ALIGNMENT: u64 = 4096;
const MAGIC: [u8; 8] = *b"ANDENCSR";
const VERSION: u32 = 1;
/// Values that a worker reads at once: 4 MB of neighbours.
const READ_GRAIN: usize = 1 << 20;

/// The first bytes of a saved CSR.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    version: u32,
    /// 1 if directed.
    directed: u8,
    /// 1 if there are in-lists beside the out-lists.
    in_lists: u8,
    /// 0, or one more than the place in [`WeightType::ALL`].
    weight_type: u8,
    padding: u8,
    num_vertices: u64,
    num_arcs: u64,
}

const _: () = assert!(size_of::<Header>() == 32);

impl Csr {
    /// Writes the arrays to a file that [`Csr::map`] takes, replacing what is there.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let in_lists = self.in_lists().filter(|_| self.direction() == Direction::Directed);
        let weight_type = self.out_lists().weights().map(Weights::weight_type);
        let weight_type = weight_type.and_then(|t| WeightType::ALL.iter().position(|&(other, _)| other == t));
        let header = Header {
            magic: MAGIC,
            version: VERSION,
            directed: u8::from(self.direction() == Direction::Directed),
            in_lists: u8::from(in_lists.is_some()),
            weight_type: weight_type.map_or(0, |place| place as u8 + 1),
            padding: 0,
            num_vertices: self.out_lists().num_vertices() as u64,
            num_arcs: self.num_arcs(),
        };
        let write = || -> std::io::Result<()> {
            let mut out = BufWriter::with_capacity(1 << 20, InGrains { file: File::create(path)?, len: 0 });
            write_aligned(&mut out, bytemuck::bytes_of(&header))?;
            for lists in std::iter::once(self.out_lists()).chain(in_lists) {
                write_aligned(&mut out, bytemuck::cast_slice(lists.offsets()))?;
                write_aligned(&mut out, bytemuck::cast_slice(lists.targets()))?;
                if let Some(weights) = lists.weights() {
                    write_aligned(&mut out, weight_bytes(weights))?;
                }
            }
            out.flush()
        };
        write().map_err(|e| base::Error::io("write", path, e).into())
    }

    /// Maps a graph that [`Csr::save`] wrote. Cost: reads every array once, to check it.
    ///
    /// # Errors
    /// The file cannot be mapped or is not such a file, or its arrays are no CSR.
    pub fn map(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| base::Error::io("open", path, e))?;
        let bytes = FileBytes::map(&file).map_err(|e| base::Error::io("map", path, e))?;
        let bad = |what: &str| Error::Input { path: path.to_owned(), what: what.to_owned() };
        let header: &[u8] = bytes.as_slice().get(..size_of::<Header>()).ok_or_else(|| bad("no header of a CSR"))?;
        let header: Header = bytemuck::pod_read_unaligned(header);
        if header.magic != MAGIC || header.version != VERSION {
            return Err(bad("not a CSR of this version"));
        }
        let weight_type = match header.weight_type {
            0 => None,
            place => {
                let found = WeightType::ALL.get(place as usize - 1);
                Some(found.ok_or_else(|| bad("the weights are of an unknown type"))?.0)
            }
        };
        let mut next = ALIGNMENT;
        let mut lists = || -> Option<(MappedSlice<u64>, MappedSlice<u32>, Option<Weights>)> {
            let offsets = take(&bytes, &mut next, header.num_vertices.checked_add(1)?)?;
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

    /// Reads a `.sg` or `.wsg` file of the GAP benchmark suite to memory, on huge pages where the
    /// system grants them. Weights become `u32`.
    ///
    /// # Errors
    /// As [`SerializedGraph`]; or a list does not ascend, or a weight is negative.
    pub fn read_gapbs(path: &Path, pool: &Pool) -> Result<Self> {
        let file = SerializedGraph::open(path)?;
        let lists = |side| {
            let (offsets, targets, weights) = read_side(&file, side, pool)?;
            Adjacency::new(offsets, targets, weights)
                .map_err(|e| Error::Input { path: path.to_owned(), what: e.to_string() })
        };
        let out_lists = lists(Side::Out)?;
        match file.direction() {
            Direction::Undirected => Ok(Self::undirected(out_lists)),
            Direction::Directed => Self::directed(out_lists, Some(lists(Side::In)?)),
        }
    }
}

type Arrays = (MappedSlice<u64>, MappedSlice<u32>, Option<Weights>);

fn read_side(file: &SerializedGraph, side: Side, pool: &Pool) -> Result<Arrays> {
    // The header agreed with the file's length, so these sizes are backed by bytes on disk.
    let num_offsets = file.num_vertices() as usize + 1;
    let num_arcs = usize::try_from(file.num_arcs()).map_err(|e| Error::Parameter(e.to_string()))?;
    let failed = Mutex::new(None);
    let note = |result: Result<()>| {
        if let Err(error) = result {
            failed.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(error);
        }
    };
    let mut offsets: Vec<u64> = base::memory::zeroed_huge(num_offsets);
    pool.for_each_part_mut(&mut offsets, READ_GRAIN, |start, part| {
        note(file.read_offsets(side, start as u64, part));
    });
    let mut targets = huge_words(num_arcs);
    let mut weights = huge_words(if file.is_weighted() { num_arcs } else { 0 });
    let target_slice: &mut [u32] = &mut bytemuck::cast_slice_mut(&mut targets)[..num_arcs];
    if file.is_weighted() {
        let weight_slice: &mut [u32] = &mut bytemuck::cast_slice_mut(&mut weights)[..num_arcs];
        let pairs = target_slice.chunks_mut(READ_GRAIN).zip(weight_slice.chunks_mut(READ_GRAIN));
        let parts: Vec<_> = pairs.enumerate().collect();
        pool.for_each_item(parts, |_, (i, (targets, weights))| {
            note(file.read_weighted(side, (i * READ_GRAIN) as u64, targets, weights));
        });
    } else {
        pool.for_each_part_mut(target_slice, READ_GRAIN, |start, part| {
            note(file.read_neighbours(side, start as u64, part));
        });
    }
    if let Some(error) = failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
        return Err(error);
    }
    let owned = |words: Vec<u64>| {
        let column = FileBytes::owned(words, num_arcs * size_of::<u32>()).and_then(MappedSlice::<u32>::new);
        column.ok_or_else(|| Error::Parameter(format!("{num_arcs} arcs do not fit in memory")))
    };
    let weights = if file.is_weighted() { Some(u32::column(owned(weights)?)) } else { None };
    let num_offset_bytes = offsets.len() * size_of::<u64>();
    let offsets = FileBytes::owned(offsets, num_offset_bytes).and_then(MappedSlice::new);
    let offsets = offsets.ok_or_else(|| Error::Parameter("offsets do not fit in memory".into()))?;
    Ok((offsets, owned(targets)?, weights))
}

/// Room for so many `u32`s, aligned for any array.
fn huge_words(num_values: usize) -> Vec<u64> {
    base::memory::zeroed_huge(num_values.div_ceil(2))
}

/// The next array of a saved CSR.
fn take<T: Pod>(bytes: &FileBytes, next: &mut u64, count: u64) -> Option<MappedSlice<T>> {
    let values = bytes.typed(*next, count)?;
    *next = (*next + count * size_of::<T>() as u64).next_multiple_of(ALIGNMENT);
    Some(values)
}

/// A new file that is written up to where a huge page ends, and on from there: the system then has it in huge pages, and
/// a map is read with fewer looks at its tables. So is what this one is compared with.
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

    fn assert_same(a: &Csr, b: &Csr) {
        assert_eq!((a.direction(), a.num_edges(), a.num_arcs()), (b.direction(), b.num_edges(), b.num_arcs()));
        let arrays = |lists: &Adjacency| (lists.offsets().to_vec(), lists.targets().to_vec());
        assert_eq!(arrays(a.out_lists()), arrays(b.out_lists()));
        assert_eq!(a.in_lists().map(arrays), b.in_lists().map(arrays));
        let weights = |graph: &Csr| graph.out_lists().weights().map(|w| weight_bytes(w).to_vec());
        assert_eq!(weights(a), weights(b));
    }

    #[test]
    fn a_saved_graph_is_mapped_again() {
        let dir = tempfile::tempdir().unwrap();
        for direction in [Direction::Directed, Direction::Undirected] {
            for num_vertices in [0, 1, 700] {
                let mut builder = CsrBuilder::<f64>::new(direction, num_vertices);
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
        let mut builder = CsrBuilder::<u32>::new(Direction::Directed, 3);
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
            // Whatever is taken for a graph can be read as one.
            if let Ok(graph) = Csr::map(&path) {
                let degrees = (0..graph.vertex_bound() as u32).map(|v| graph.out_degree(v) as u64);
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
