//! The serialized graphs of the GAP benchmark suite (`.sg`, `.wsg`): a whole CSR in a file.
//!
//! A byte that says whether the graph is directed, the number of arcs and of vertices (`i64` each),
//! then for the out-lists, and of a directed graph for the in-lists as well, `vertices + 1` offsets
//! (`i64`) and the neighbours (`i32`; with weights, pairs of `i32`). Little-endian, without padding.
//!
//! Nothing in the header is believed before it agrees with the length of the file, so a count never
//! sizes an allocation that the file does not back; offsets and neighbours are checked as they are
//! read. Reads go to the caller's buffers at any place, so several threads may read one graph.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use base::{MAX_VERTICES, VertexId};

use super::number::{convert_weight, weight_range};
use crate::{Direction, Error, Result, Side, Weight};

const _: () = assert!(cfg!(target_endian = "little"), "values of a file are read in place");

/// Bytes before the first offset.
const HEADER_BYTES: u64 = 17;
/// Weighted neighbours that are read and taken apart at once.
const PAIRS_AT_ONCE: usize = 64 << 10;

/// An open `.sg` or `.wsg` file whose header agrees with its length.
#[derive(Debug)]
pub struct SerializedGraph {
    path: PathBuf,
    file: File,
    direction: Direction,
    is_weighted: bool,
    num_vertices: u64,
    num_arcs: u64,
}

impl SerializedGraph {
    /// Opens the file and holds its header against its length, which also tells whether there are
    /// weights; where it cannot (no arcs), the name does.
    ///
    /// # Errors
    /// The file cannot be read, is shorter or longer than its header says, or has more vertices
    /// than there are ids.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| base::Error::io("open", path, e))?;
        Self::of_file(path, file, is_weighted_name(path))
    }

    /// The same of an open file, which messages call `path`; `is_weighted` is what its name says.
    pub(super) fn of_file(path: &Path, file: File, is_weighted: bool) -> Result<Self> {
        let metadata = file.metadata().map_err(|e| base::Error::io("look at", path, e))?;
        let bad = |what: String| Error::Input { path: path.to_owned(), what };
        if !metadata.is_file() {
            return Err(bad("expected a regular file, found another kind of entry".into()));
        }
        let len = metadata.len();
        if len < HEADER_BYTES {
            return Err(bad(format!("expected a header of {HEADER_BYTES} bytes, found {len} bytes in all")));
        }
        let mut header = [0; HEADER_BYTES as usize];
        file.read_exact_at(&mut header, 0).map_err(|e| base::Error::io("read", path, e))?;
        let word = |at: usize| i64::from_le_bytes(std::array::from_fn(|i| header[at + i]));
        let direction = match header[0] {
            0 => Direction::Undirected,
            1 => Direction::Directed,
            other => return Err(bad(format!("byte 0: expected 0 (undirected) or 1 (directed), found {other}"))),
        };
        let count = |name: &str, value: i64| {
            u64::try_from(value).map_err(|_| bad(format!("expected a number of {name}, found {value}")))
        };
        let (num_arcs, num_vertices) = (count("arcs", word(1))?, count("vertices", word(9))?);
        if num_vertices > MAX_VERTICES as u64 {
            return Err(bad(format!("{num_vertices} vertices are more than {MAX_VERTICES}, the most there can be")));
        }
        let expected = |arc_bytes| file_bytes(direction, num_vertices, num_arcs, arc_bytes);
        let is_weighted = match (expected(4), expected(8)) {
            (plain, _) if num_arcs == 0 && plain == Some(len) => is_weighted,
            (plain, _) if plain == Some(len) => false,
            (_, weighted) if weighted == Some(len) => true,
            (plain, weighted) => {
                let name = |bytes: Option<u64>| bytes.map_or("more than 2^64".to_owned(), |b| b.to_string());
                return Err(bad(format!(
                    "the header promises {num_vertices} vertices and {num_arcs} arcs, which take {} bytes ({} with \
                     weights), found {len} bytes: the file is cut or not a serialized graph",
                    name(plain),
                    name(weighted)
                )));
            }
        };
        Ok(Self { path: path.to_owned(), file, direction, is_weighted, num_vertices, num_arcs })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether edges have a direction; of an undirected graph, every edge stands in both lists.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Whether each neighbour has a weight beside it.
    pub fn is_weighted(&self) -> bool {
        self.is_weighted
    }

    /// The number of vertices; ids are below it.
    pub fn num_vertices(&self) -> u64 {
        self.num_vertices
    }

    /// The number of neighbours of one side.
    pub fn num_arcs(&self) -> u64 {
        self.num_arcs
    }

    /// The bytes of the file.
    pub fn num_bytes(&self) -> u64 {
        let bytes = file_bytes(self.direction, self.num_vertices, self.num_arcs, self.arc_bytes());
        bytes.unwrap_or(u64::MAX)
    }

    /// Reads the offsets `first..first + into.len()` of one side; there is one more than vertices.
    ///
    /// Offsets that are read ascend, start at 0 and end at [`num_arcs`](Self::num_arcs). Read
    /// consecutive pieces so that each begins with the last offset of the one before: then the
    /// offsets ascend as a whole.
    ///
    /// # Errors
    /// The offsets do not, or the file cannot be read.
    ///
    /// # Panics
    /// If the range reaches past the last offset.
    pub fn read_offsets(&self, side: Side, first: u64, into: &mut [u64]) -> Result<()> {
        let end = first + into.len() as u64;
        assert!(end <= self.num_vertices + 1, "offsets {first}..{end} of {}", self.num_vertices + 1);
        let start = self.side_start(side) + 8 * first;
        self.read_at(bytemuck::cast_slice_mut(into), start)?;
        let (Some(&low), Some(&high)) = (into.first(), into.last()) else { return Ok(()) };
        let ascend = into.is_sorted() && high <= self.num_arcs;
        if ascend && (first != 0 || low == 0) && (end != self.num_vertices + 1 || high == self.num_arcs) {
            return Ok(());
        }
        let falls = into.windows(2).position(|pair| pair[0] > pair[1]);
        let at = start + 8 * falls.map_or(0, |i| i as u64 + 1);
        let what = format!("expected offsets that ascend from 0 to {}, found {low} to {high}", self.num_arcs);
        Err(base::Error::corrupt(&self.path, at, what).into())
    }

    /// Reads the neighbours `first..first + into.len()` of one side, without their weights.
    ///
    /// Every neighbour is below [`num_vertices`](Self::num_vertices). The order within a list is
    /// the file's: the suite sorts its lists, other writers may not.
    ///
    /// # Errors
    /// A neighbour is no vertex, or the file cannot be read.
    ///
    /// # Panics
    /// If the range reaches past the last neighbour.
    pub fn read_neighbours(&self, side: Side, first: u64, into: &mut [VertexId]) -> Result<()> {
        let start = self.arc_start(side, first, into.len());
        if self.is_weighted {
            return self.read_pairs(start, into, |_, _| Ok(()));
        }
        self.read_at(bytemuck::cast_slice_mut(into), start)?;
        self.check_neighbours(into, start)
    }

    /// Reads the neighbours `first..first + into.len()` of one side and the weight of each.
    ///
    /// # Errors
    /// As [`read_neighbours`](Self::read_neighbours); or there are no weights, or one is negative
    /// and `W` is not.
    ///
    /// # Panics
    /// If the range reaches past the last neighbour, or the buffers differ in length.
    pub fn read_weighted<W: Weight>(
        &self,
        side: Side,
        first: u64,
        into: &mut [VertexId],
        weights: &mut [W],
    ) -> Result<()> {
        assert_eq!(into.len(), weights.len());
        if !self.is_weighted {
            return Err(Error::Input { path: self.path.clone(), what: "the graph has no weights".into() });
        }
        let start = self.arc_start(side, first, into.len());
        self.read_pairs(start, into, |range: Range<usize>, pairs: &[[u32; 2]]| {
            let mut bad = None;
            for (i, (weight, pair)) in weights[range.clone()].iter_mut().zip(pairs).enumerate() {
                match convert_weight(pair[1] as i32) {
                    Some(value) => *weight = value,
                    None => bad = bad.or(Some(i)),
                }
            }
            let Some(i) = bad else { return Ok(()) };
            let what = format!("expected {}, found {}", weight_range(W::TYPE), pairs[i][1] as i32);
            Err(base::Error::corrupt(&self.path, start + 8 * (range.start + i) as u64 + 4, what).into())
        })
    }

    fn read_pairs(
        &self,
        start: u64,
        into: &mut [VertexId],
        mut body: impl FnMut(Range<usize>, &[[u32; 2]]) -> Result<()>,
    ) -> Result<()> {
        let mut pairs = vec![[0_u32; 2]; into.len().min(PAIRS_AT_ONCE)];
        for (i, part) in into.chunks_mut(PAIRS_AT_ONCE).enumerate() {
            let first = i * PAIRS_AT_ONCE;
            let pairs = &mut pairs[..part.len()];
            self.read_at(bytemuck::cast_slice_mut(pairs), start + 8 * first as u64)?;
            for (target, pair) in part.iter_mut().zip(&*pairs) {
                *target = pair[0];
            }
            self.check_neighbours(part, start + 8 * first as u64)?;
            body(first..first + part.len(), pairs)?;
        }
        Ok(())
    }

    fn check_neighbours(&self, neighbours: &[VertexId], start: u64) -> Result<()> {
        let largest = neighbours.iter().copied().fold(0, VertexId::max);
        if u64::from(largest) < self.num_vertices || neighbours.is_empty() {
            return Ok(());
        }
        let index = neighbours.iter().position(|&v| u64::from(v) >= self.num_vertices).unwrap_or(0);
        let what =
            format!("expected a vertex from 0 to below {}, found {}", self.num_vertices, neighbours[index] as i32);
        Err(base::Error::corrupt(&self.path, start + self.arc_bytes() * index as u64, what).into())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(into, offset).map_err(|e| base::Error::io("read", &self.path, e).into())
    }

    fn arc_bytes(&self) -> u64 {
        if self.is_weighted { 8 } else { 4 }
    }

    fn side_start(&self, side: Side) -> u64 {
        let side_bytes = 8 * (self.num_vertices + 1) + self.arc_bytes() * self.num_arcs;
        match (side, self.direction) {
            (Side::In, Direction::Directed) => HEADER_BYTES + side_bytes,
            _ => HEADER_BYTES,
        }
    }

    fn arc_start(&self, side: Side, first: u64, len: usize) -> u64 {
        let end = first + len as u64;
        assert!(end <= self.num_arcs, "arcs {first}..{end} of {}", self.num_arcs);
        self.side_start(side) + 8 * (self.num_vertices + 1) + self.arc_bytes() * first
    }
}

/// The length of a file with so many vertices and arcs, or `None` where it does not fit in 64 bits.
pub(crate) fn file_bytes(direction: Direction, num_vertices: u64, num_arcs: u64, arc_bytes: u64) -> Option<u64> {
    let side = num_vertices.checked_add(1)?.checked_mul(8)?.checked_add(num_arcs.checked_mul(arc_bytes)?)?;
    let num_sides = if direction == Direction::Directed { 2 } else { 1 };
    side.checked_mul(num_sides)?.checked_add(HEADER_BYTES)
}

fn is_weighted_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("wsg"))
}
