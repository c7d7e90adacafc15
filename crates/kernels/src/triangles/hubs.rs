//! The oriented lists of the first ranks as rows of bits.

use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::VertexId;
use anden_base::memory::{as_atomic_u64, zeroed_huge};
use anden_base::simd::and_count_ones;

use super::oriented::Oriented;

/// Words of a cache line, the unit of counting.
const LINE_WORDS: usize = 8;

/// For each hub, a bit for each adjacent hub of earlier rank.
#[derive(Default)]
pub(super) struct Hubs {
    words: Vec<u64>,
    len: usize,
    row_words: usize,
}

/// Rows that several workers fill.
pub(super) struct RowsToFill<'a> {
    words: &'a [AtomicU64],
    row_words: usize,
}

impl RowsToFill<'_> {
    /// Sets the bits of adjacent hubs of earlier rank. Only one worker may call this for a hub.
    pub(super) fn set(&self, rank: usize, earlier: &[VertexId]) {
        let row = &self.words[rank * self.row_words..][..self.row_words];
        for &v in earlier {
            let word = &row[v as usize / 64];
            word.store(word.load(Ordering::Relaxed) | 1 << (v % 64), Ordering::Relaxed);
        }
    }
}

impl Hubs {
    /// The bytes of the rows of `len` hubs.
    pub(super) fn num_bytes(len: usize) -> u64 {
        (len * len.div_ceil(64) * 8) as u64
    }

    pub(super) fn build(oriented: &Oriented, len: usize) -> Self {
        let mut hubs = Self::new(len);
        let rows = hubs.rows_to_fill();
        (0..len).for_each(|rank| rows.set(rank, oriented.list(rank)));
        hubs
    }

    /// `len` hubs without edges.
    pub(super) fn new(len: usize) -> Self {
        let row_words = len.div_ceil(64);
        Self { words: zeroed_huge(len * row_words), len, row_words }
    }

    /// The rows, for workers that each fill separate hubs.
    pub(super) fn rows_to_fill(&mut self) -> RowsToFill<'_> {
        RowsToFill { words: as_atomic_u64(&mut self.words), row_words: self.row_words }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn row(&self, rank: usize) -> &[u64] {
        &self.words[rank * self.row_words..][..self.row_words]
    }

    /// The number of bits that `row` and the row of `hub` share. Bits in the row of `hub` are below its rank.
    pub(super) fn num_common(&self, row: &[u64], hub: VertexId) -> u64 {
        // Bits from the hub's rank on are 0, so the rest of both rows is skipped.
        let len = (hub as usize / 64 + 1).min(row.len());
        and_count_ones(&row[..len], &self.row(hub as usize)[..len])
    }

    /// The number of `vertices` in the row of `hub`.
    pub(super) fn num_members(&self, vertices: &[VertexId], hub: VertexId) -> u64 {
        let row = self.row(hub as usize);
        vertices.iter().map(|&v| row[v as usize / 64] >> (v % 64) & 1).sum()
    }

    /// The number of cache lines that [`num_common`](Self::num_common) reads of a row.
    pub(super) fn line_count(hub: VertexId) -> usize {
        hub as usize / (64 * LINE_WORDS) + 1
    }
}
