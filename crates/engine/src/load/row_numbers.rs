//! The numbers that the rows of the input get: in the order of the out-lists, or as they came.
//!
//! Filters and record batches read out-lists one after the other. Rows in the order of the lists let them read
//! columns in sequence.

use std::sync::{Mutex, PoisonError};

use lama::Side;

use super::arcs::Payload;
use super::lists::Lists;

/// The number of an input row that no list named so far.
const NO_NUMBER: u32 = u32::MAX;

/// Gives each row of the input a number when the first list names it.
///
/// Both entries of an undirected edge and both sides of a directed graph find the same number. Parallel edges stand in
/// each list in the order of the input, so their numbers ascend in all lists.
pub(crate) struct RowNumbers(Mutex<Numbers>);

struct Numbers {
    /// By row of the input.
    of_row: Vec<u32>,
    /// The number that the next row gets.
    next: u32,
}

impl RowNumbers {
    /// Bytes of memory for each row of the input, twice while the numbers are turned into an order.
    pub(crate) const ROW_BYTES: u64 = size_of::<u32>() as u64;
    /// The most rows of an input.
    pub(crate) const MAX_ROWS: u64 = NO_NUMBER as u64;

    /// No row has a number yet.
    pub(crate) fn new(num_rows: usize) -> Self {
        Self(Mutex::new(Numbers { of_row: vec![NO_NUMBER; num_rows], next: 0 }))
    }

    /// Replaces the input rows of lists by their numbers. The lists of the out-side come by ascending vertex and before
    /// those of the in-side.
    ///
    /// # Panics
    /// If the in-side names a row that the out-side does not name.
    pub(crate) fn apply<P: Payload>(&self, side: Side, lists: &mut Lists<P>) {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Numbers { of_row, next } = &mut *numbers;
        for payload in &mut lists.payloads {
            let number = &mut of_row[payload.data().row as usize];
            if *number == NO_NUMBER {
                assert_eq!(side, Side::Out, "an in-list names an edge of no out-list");
                *number = *next;
                *next += 1;
            }
            *payload = payload.with_row(u64::from(*number));
        }
        debug_assert!(lists.rows_of_parallel_edges_ascend());
    }

    /// The input row of each number. A row of no list, as of a merged edge or a loop that is left out, is not there.
    pub(crate) fn into_order(self) -> Vec<u32> {
        let Numbers { of_row, next } = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut order = vec![0; next as usize];
        for (row, &number) in (0..).zip(&of_row) {
            if number != NO_NUMBER {
                order[number as usize] = row;
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use lama::ArcData;

    use super::super::arcs::KeyedArc;
    use super::super::options::Duplicates;
    use super::super::stream::ListBuilder;
    use super::*;
    use crate::Result;
    use base::VertexId;

    /// Keeps the entries of lists with their new rows.
    struct Renumbered<'a> {
        numbers: &'a RowNumbers,
        side: Side,
        entries: Vec<(VertexId, VertexId, u64)>,
    }

    impl super::super::lists::ListSink<ArcData> for Renumbered<'_> {
        fn append(&mut self, first: VertexId, lists: &mut Lists<ArcData>) -> Result<()> {
            self.numbers.apply(self.side, lists);
            lists.for_each_arc(first, |arc| self.entries.push((arc.list(), arc.neighbour(), arc.payload().row)));
            Ok(())
        }
    }

    fn renumbered(
        numbers: &RowNumbers,
        side: Side,
        entries: &[(VertexId, VertexId, u64)],
    ) -> Vec<(VertexId, VertexId, u64)> {
        let mut sink = Renumbered { numbers, side, entries: Vec::new() };
        let mut builder = ListBuilder::new(&mut sink, Duplicates::Keep);
        let arcs: Vec<_> = entries.iter().map(|&(u, v, row)| KeyedArc::new(u, v, ArcData::of_row(row))).collect();
        builder.extend(&arcs).unwrap();
        builder.finish().unwrap();
        sink.entries
    }

    #[test]
    fn rows_follow_the_out_lists() {
        let numbers = RowNumbers::new(7);
        let out = renumbered(&numbers, Side::Out, &[(0, 1, 5), (0, 2, 1), (0, 2, 4), (3, 0, 0), (3, 1, 6)]);
        assert_eq!(out, [(0, 1, 0), (0, 2, 1), (0, 2, 2), (3, 0, 3), (3, 1, 4)]);
        let back = renumbered(&numbers, Side::In, &[(0, 3, 0), (1, 0, 5), (1, 3, 6), (2, 0, 1), (2, 0, 4)]);
        assert_eq!(back, [(0, 3, 3), (1, 0, 0), (1, 3, 4), (2, 0, 1), (2, 0, 2)]);
        // Rows 2 and 3 stand in no list.
        assert_eq!(numbers.into_order(), [5, 1, 4, 0, 6]);
    }

    #[test]
    fn both_entries_of_an_undirected_edge_share_a_row() {
        let numbers = RowNumbers::new(3);
        let out = renumbered(&numbers, Side::Out, &[(0, 2, 2), (1, 2, 0), (2, 0, 2), (2, 1, 0), (2, 2, 1)]);
        assert_eq!(out, [(0, 2, 0), (1, 2, 1), (2, 0, 0), (2, 1, 1), (2, 2, 2)]);
        assert_eq!(numbers.into_order(), [2, 0, 1]);
    }
}
