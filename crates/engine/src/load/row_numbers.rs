//! New numbers of input rows: in the order of the out-lists.
//!
//! Filters and record batches read out-lists one after the other. Rows in the order of the lists let them read columns
//! sequentially.

use anden_snapshots::Direction;
use parking_lot::{Mutex, MutexGuard};

use super::arcs::Payload;
use super::lists::BuiltLists;

/// The number of an input row that no list has named yet.
const NO_NUMBER: u32 = u32::MAX;

/// Numbers each input row when the first list names it.
///
/// Both arcs of an undirected edge, and both directions of a directed graph, find the same number. Parallel edges are in
/// input order in each list, so their numbers ascend in all lists.
pub(crate) struct RowNumbers(Mutex<RowNumbering>);

/// Numbers that are being given.
pub(crate) struct OpenNumbering<'a> {
    numbering: MutexGuard<'a, RowNumbering>,
    direction: Direction,
}

impl OpenNumbering<'_> {
    /// The number of an input row.
    ///
    /// # Panics
    /// If an in-list names a row that no out-list names.
    pub(crate) fn number(&mut self, row: u64) -> u64 {
        let RowNumbering { of_row, next } = &mut *self.numbering;
        let number = &mut of_row[row as usize];
        if *number == NO_NUMBER {
            assert_eq!(self.direction, Direction::Out, "an in-list names an edge of no out-list");
            *number = *next;
            *next += 1;
        }
        u64::from(*number)
    }

    /// Replaces the input rows of lists by their numbers.
    ///
    /// # Panics
    /// As [`number`](Self::number).
    pub(crate) fn apply<P: Payload>(&mut self, lists: &mut BuiltLists<P>) {
        for payload in &mut lists.payloads {
            *payload = payload.with_row(self.number(payload.data().row));
        }
        debug_assert!(lists.rows_of_parallel_edges_ascend());
    }
}

struct RowNumbering {
    /// By row of the input.
    of_row: Vec<u32>,
    /// The next number.
    next: u32,
}

impl RowNumbers {
    /// Bytes of memory for each input row; twice that while the numbers become an order.
    pub(crate) const ROW_BYTES: u64 = size_of::<u32>() as u64;
    /// The most rows of an input.
    pub(crate) const MAX_ROWS: u64 = NO_NUMBER as u64;

    /// No row has a number.
    pub(crate) fn new(num_rows: usize) -> Self {
        Self(Mutex::new(RowNumbering { of_row: vec![NO_NUMBER; num_rows], next: 0 }))
    }

    /// Begins to number rows of a direction. The out-lists come first, by ascending vertex, then the in-lists.
    pub(crate) fn begin(&self, direction: Direction) -> OpenNumbering<'_> {
        // Lists come one part after the other, so the lock is never contended.
        OpenNumbering { numbering: self.0.lock(), direction }
    }

    /// The input row of each number. Rows of no list, such as those of merged edges or left-out loops, are missing.
    pub(crate) fn into_order(self) -> Vec<u32> {
        let RowNumbering { of_row, next } = self.0.into_inner();
        let mut order = vec![0; next as usize];
        for (row, &number) in (0..).zip(&of_row) {
            // Rows that no list names get no number, so the file of rows has no gaps.
            if number != NO_NUMBER {
                order[number as usize] = row;
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use anden_snapshots::ArcData;

    use super::super::arcs::LoadArc;
    use super::super::options::Duplicates;
    use super::super::stream::ListBuilder;
    use super::*;
    use crate::Result;
    use anden_base::VertexId;

    /// Keeps the entries of lists with their new rows.
    struct Renumbered<'a> {
        numbers: &'a RowNumbers,
        direction: Direction,
        entries: Vec<(VertexId, VertexId, u64)>,
    }

    impl super::super::lists::ListSink<ArcData> for Renumbered<'_> {
        fn append(&mut self, first: VertexId, lists: &mut BuiltLists<ArcData>) -> Result<()> {
            self.numbers.begin(self.direction).apply(lists);
            lists.for_each_arc(first, |arc| self.entries.push((arc.list(), arc.neighbor(), arc.payload().row)));
            Ok(())
        }
    }

    fn renumbered(
        numbers: &RowNumbers,
        direction: Direction,
        entries: &[(VertexId, VertexId, u64)],
    ) -> Vec<(VertexId, VertexId, u64)> {
        let mut sink = Renumbered { numbers, direction, entries: Vec::new() };
        let mut builder = ListBuilder::new(&mut sink, Duplicates::Keep);
        let arcs: Vec<_> = entries.iter().map(|&(u, v, row)| LoadArc::new(u, v, ArcData::of_row(row))).collect();
        builder.extend(&arcs).unwrap();
        builder.finish().unwrap();
        sink.entries
    }

    #[test]
    fn rows_follow_the_out_lists() {
        let numbers = RowNumbers::new(7);
        let out = renumbered(&numbers, Direction::Out, &[(0, 1, 5), (0, 2, 1), (0, 2, 4), (3, 0, 0), (3, 1, 6)]);
        assert_eq!(out, [(0, 1, 0), (0, 2, 1), (0, 2, 2), (3, 0, 3), (3, 1, 4)]);
        let back = renumbered(&numbers, Direction::In, &[(0, 3, 0), (1, 0, 5), (1, 3, 6), (2, 0, 1), (2, 0, 4)]);
        assert_eq!(back, [(0, 3, 3), (1, 0, 0), (1, 3, 4), (2, 0, 1), (2, 0, 2)]);
        // Rows 2 and 3 are in no list.
        assert_eq!(numbers.into_order(), [5, 1, 4, 0, 6]);
    }

    #[test]
    fn both_entries_of_an_undirected_edge_share_a_row() {
        let numbers = RowNumbers::new(3);
        let out = renumbered(&numbers, Direction::Out, &[(0, 2, 2), (1, 2, 0), (2, 0, 2), (2, 1, 0), (2, 2, 1)]);
        assert_eq!(out, [(0, 2, 0), (1, 2, 1), (2, 0, 0), (2, 1, 1), (2, 2, 2)]);
        assert_eq!(numbers.into_order(), [2, 0, 1]);
    }
}
