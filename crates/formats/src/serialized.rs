//! The serialized graphs of the GAP benchmark suite (`.sg`, `.wsg`): a whole CSR in a file.
//!
//! Layout, little-endian without padding: a byte that is 1 for a directed graph, the number of arcs and of vertices
//! (`i64` each), the out-lists. A directed graph adds the in-lists. Lists are `vertices + 1` offsets (`i64`) and the
//! neighbors (`i32`; with weights, pairs of `i32`).
//!
//! The header is trusted only if it agrees with the length of the file. So a count never sizes an allocation that the
//! file does not back. Offsets and neighbors are checked as they are read. Reads have explicit offsets and the caller's
//! buffers, so several threads may read one graph.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anden_base::{MAX_VERTICES, VertexId};
use anden_graph::{Direction, GraphKind, Weight};

use crate::number::{convert_weight, weight_range};
use crate::{Error, Result};

const _: () = assert!(cfg!(target_endian = "little"), "values of a file are read in place");

/// Bytes before the first offset.
const HEADER_BYTES: u64 = 17;
/// Weighted neighbors per read.
const PAIRS_AT_ONCE: usize = 64 << 10;

/// An open `.sg` or `.wsg` file with a header that agrees with its length.
#[derive(Debug)]
pub struct SerializedGraph {
    path: PathBuf,
    file: File,
    graph_kind: GraphKind,
    is_weighted: bool,
    num_vertices: u64,
    num_arcs: u64,
}

impl SerializedGraph {
    /// Opens the file and checks its header against its length. The length also shows whether edges have weights.
    /// Without arcs, the name decides.
    ///
    /// # Errors
    /// The file cannot be read, is shorter or longer than its header says, or has more vertices than ids exist.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| anden_base::Error::io("open", path, e))?;
        Self::of_file(path, file, is_weighted_name(path))
    }

    /// As [`open`](Self::open), for an open file that messages call `path`. `is_weighted` follows from its name.
    pub(crate) fn of_file(path: &Path, file: File, is_weighted: bool) -> Result<Self> {
        let metadata = file.metadata().map_err(|e| anden_base::Error::io("look at", path, e))?;
        let bad = |what: String| Error::Input { path: path.to_owned(), what };
        // Only a regular file has a length to check the header against, and can be read at any offset.
        if !metadata.is_file() {
            return Err(bad("expected a regular file, found another kind of entry".into()));
        }
        let len = metadata.len();
        if len < HEADER_BYTES {
            return Err(bad(format!("expected a header of {HEADER_BYTES} bytes, found {len} bytes in all")));
        }
        let mut header = [0; HEADER_BYTES as usize];
        file.read_exact_at(&mut header, 0).map_err(|e| anden_base::Error::io("read", path, e))?;
        let Header { graph_kind, num_vertices, num_arcs } = Header::parse(path, &header)?;
        let expected = |arc_bytes| file_bytes(graph_kind, num_vertices, num_arcs, arc_bytes);
        let is_weighted = match (expected(4), expected(8)) {
            // Without arcs, both expected lengths agree.
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
        Ok(Self { path: path.to_owned(), file, graph_kind, is_weighted, num_vertices, num_arcs })
    }

    /// The most bytes that a file with the header at the beginning of `reader` has; `None`: the file ends before it
    /// is complete.
    ///
    /// # Errors
    /// The file cannot be read, or no file has this header.
    pub(crate) fn promised_bytes(path: &Path, reader: impl Read) -> Result<Option<u64>> {
        let mut header = Vec::new();
        let read = reader.take(HEADER_BYTES).read_to_end(&mut header);
        read.map_err(|e| anden_base::Error::io("read", path, e))?;
        let Ok(header) = header[..].try_into() else { return Ok(None) };
        // Pairs of a neighbor and a weight are the larger kind. A length beyond 2^64 bytes is no promise to rely on.
        let header = Header::parse(path, header)?;
        Ok(file_bytes(header.graph_kind, header.num_vertices, header.num_arcs, 2 * size_of::<VertexId>() as u64))
    }

    /// Whether decompressed bytes begin a serialized graph. Their first byte is 0 or 1, which no text starts with.
    pub(crate) fn is_likely(bytes: &[u8]) -> bool {
        bytes.len() as u64 >= HEADER_BYTES && bytes[0] <= 1
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the graph is directed. In an undirected graph, every edge stands in both lists.
    pub fn graph_kind(&self) -> GraphKind {
        self.graph_kind
    }

    /// Whether each neighbor has a weight.
    pub fn is_weighted(&self) -> bool {
        self.is_weighted
    }

    /// The number of vertices. Ids are below this number.
    pub fn num_vertices(&self) -> u64 {
        self.num_vertices
    }

    /// The number of neighbors in one direction.
    pub fn num_arcs(&self) -> u64 {
        self.num_arcs
    }

    /// The length of the file in bytes.
    pub fn num_bytes(&self) -> u64 {
        let bytes = file_bytes(self.graph_kind, self.num_vertices, self.num_arcs, self.arc_bytes());
        bytes.unwrap_or(u64::MAX)
    }

    /// Reads the offsets `first..first + into.len()` of one direction. Their number is the number of vertices plus one.
    ///
    /// The offsets that are read ascend, start at 0 and end at [`num_arcs`](Self::num_arcs). To check that they ascend
    /// as a whole, begin each piece with the last offset of the piece before.
    ///
    /// # Errors
    /// The offsets do not ascend as promised, or the file cannot be read.
    ///
    /// # Panics
    /// If the range exceeds the last offset.
    pub fn read_offsets(&self, direction: Direction, first: u64, into: &mut [u64]) -> Result<()> {
        let end = first + into.len() as u64;
        assert!(end <= self.num_vertices + 1, "offsets {first}..{end} of {}", self.num_vertices + 1);
        let start = self.direction_start(direction) + 8 * first;
        self.read_at(bytemuck::cast_slice_mut(into), start)?;
        // An empty range has nothing to check.
        let (Some(&low), Some(&high)) = (into.first(), into.last()) else { return Ok(()) };
        let ascend = into.is_sorted() && high <= self.num_arcs;
        if ascend && (first != 0 || low == 0) && (end != self.num_vertices + 1 || high == self.num_arcs) {
            return Ok(());
        }
        // The position is searched only for the message.
        let falls = into.windows(2).position(|pair| pair[0] > pair[1]);
        let at = start + 8 * falls.map_or(0, |i| i as u64 + 1);
        let what = format!("expected offsets that ascend from 0 to {}, found {low} to {high}", self.num_arcs);
        Err(anden_base::Error::corrupt(&self.path, at, what).into())
    }

    /// Reads the neighbors `first..first + into.len()` of one direction, without weights.
    ///
    /// Every neighbor is below [`num_vertices`](Self::num_vertices). The order within a list is that of the file: the
    /// GAP suite sorts its lists, other writers may not.
    ///
    /// # Errors
    /// A neighbor is not a vertex, or the file cannot be read.
    ///
    /// # Panics
    /// If the range exceeds the last neighbor.
    pub fn read_neighbors(&self, direction: Direction, first: u64, into: &mut [VertexId]) -> Result<()> {
        let start = self.arc_start(direction, first, into.len());
        // Weights stand between the neighbors, so they are read and dropped.
        if self.is_weighted {
            return self.read_pairs(start, into, |_, _| Ok(()));
        }
        self.read_at(bytemuck::cast_slice_mut(into), start)?;
        self.check_neighbors(into, start)
    }

    /// Reads the neighbors `first..first + into.len()` of one direction with their weights.
    ///
    /// # Errors
    /// As [`read_neighbors`](Self::read_neighbors). Also, the graph has no weights, or a weight is negative and `W`
    /// is unsigned.
    ///
    /// # Panics
    /// If the range exceeds the last neighbor, or the buffers differ in length.
    pub fn read_weighted<W: Weight>(
        &self,
        direction: Direction,
        first: u64,
        into: &mut [VertexId],
        weights: &mut [W],
    ) -> Result<()> {
        assert_eq!(into.len(), weights.len());
        if !self.is_weighted {
            return Err(Error::Input { path: self.path.clone(), what: "the graph has no weights".into() });
        }
        let start = self.arc_start(direction, first, into.len());
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
            Err(anden_base::Error::corrupt(&self.path, start + 8 * (range.start + i) as u64 + 4, what).into())
        })
    }

    fn read_pairs(
        &self,
        start: u64,
        into: &mut [VertexId],
        mut body: impl FnMut(Range<usize>, &[[u32; 2]]) -> Result<()>,
    ) -> Result<()> {
        // Targets and weights alternate in the file, so they pass through a small buffer.
        let mut pairs = vec![[0_u32; 2]; into.len().min(PAIRS_AT_ONCE)];
        for (i, part) in into.chunks_mut(PAIRS_AT_ONCE).enumerate() {
            let first = i * PAIRS_AT_ONCE;
            let pairs = &mut pairs[..part.len()];
            self.read_at(bytemuck::cast_slice_mut(pairs), start + 8 * first as u64)?;
            for (target, pair) in part.iter_mut().zip(&*pairs) {
                *target = pair[0];
            }
            self.check_neighbors(part, start + 8 * first as u64)?;
            body(first..first + part.len(), pairs)?;
        }
        Ok(())
    }

    fn check_neighbors(&self, neighbors: &[VertexId], start: u64) -> Result<()> {
        // The largest neighbor decides. Its position is searched only for the message.
        let largest = neighbors.iter().copied().fold(0, VertexId::max);
        if u64::from(largest) < self.num_vertices || neighbors.is_empty() {
            return Ok(());
        }
        let index = neighbors.iter().position(|&v| u64::from(v) >= self.num_vertices).unwrap_or(0);
        let what =
            format!("expected a vertex from 0 to below {}, found {}", self.num_vertices, neighbors[index] as i32);
        Err(anden_base::Error::corrupt(&self.path, start + self.arc_bytes() * index as u64, what).into())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(into, offset).map_err(|e| anden_base::Error::io("read", &self.path, e).into())
    }

    fn arc_bytes(&self) -> u64 {
        if self.is_weighted { 8 } else { 4 }
    }

    fn direction_start(&self, direction: Direction) -> u64 {
        let direction_bytes = 8 * (self.num_vertices + 1) + self.arc_bytes() * self.num_arcs;
        match (direction, self.graph_kind) {
            (Direction::In, GraphKind::Directed) => HEADER_BYTES + direction_bytes,
            _ => HEADER_BYTES,
        }
    }

    fn arc_start(&self, direction: Direction, first: u64, len: usize) -> u64 {
        let end = first + len as u64;
        assert!(end <= self.num_arcs, "arcs {first}..{end} of {}", self.num_arcs);
        self.direction_start(direction) + 8 * (self.num_vertices + 1) + self.arc_bytes() * first
    }
}

/// What the header of a file says.
struct Header {
    graph_kind: GraphKind,
    num_vertices: u64,
    num_arcs: u64,
}

impl Header {
    fn parse(path: &Path, header: &[u8; HEADER_BYTES as usize]) -> Result<Self> {
        let bad = |what: String| Error::Input { path: path.to_owned(), what };
        let word = |at: usize| i64::from_le_bytes(std::array::from_fn(|i| header[at + i]));
        let graph_kind = match header[0] {
            0 => GraphKind::Undirected,
            1 => GraphKind::Directed,
            other => return Err(bad(format!("byte 0: expected 0 (undirected) or 1 (directed), found {other}"))),
        };
        let count = |name: &str, value: i64| {
            u64::try_from(value).map_err(|_| bad(format!("expected a number of {name}, found {value}")))
        };
        let (num_arcs, num_vertices) = (count("arcs", word(1))?, count("vertices", word(9))?);
        if num_vertices > MAX_VERTICES as u64 {
            return Err(bad(format!("{num_vertices} vertices are more than {MAX_VERTICES}, the most there can be")));
        }
        Ok(Self { graph_kind, num_vertices, num_arcs })
    }
}

/// The length of a file with these counts; `None` if it exceeds 64 bits.
pub(crate) fn file_bytes(graph_kind: GraphKind, num_vertices: u64, num_arcs: u64, arc_bytes: u64) -> Option<u64> {
    // The counts come from a file, so no product may overflow.
    let direction = num_vertices.checked_add(1)?.checked_mul(8)?.checked_add(num_arcs.checked_mul(arc_bytes)?)?;
    let num_directions = if graph_kind == GraphKind::Directed { 2 } else { 1 };
    direction.checked_mul(num_directions)?.checked_add(HEADER_BYTES)
}

fn is_weighted_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("wsg"))
}
