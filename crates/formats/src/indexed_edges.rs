//! Edges whose ends are rows of tables of vertices: in the adjacency lists of Arrow, and in GraphAr.

use anden_graph::Weight;
use arrow_array::{Array, ArrayRef};

use crate::Result;
use crate::arrow_input::cells::{Cells, whole_weights};
use crate::chunk::number_key;
use crate::key::FieldKey;
use crate::lines::ParsedBlock;
use crate::number::weight_range;
use crate::options::SourceOptions;

/// The keys of all rows of a table.
pub(crate) enum KeysByRow {
    /// Each key is the number of its row.
    Rows,
    /// By part of the table: the number of its first row, and its keys.
    Columns(Vec<(u64, Cells)>),
}

impl KeysByRow {
    /// The keys in these columns, one after the other.
    ///
    /// # Errors
    /// Those of the columns.
    pub(crate) fn new(parts: impl Iterator<Item = Result<Cells>>) -> Result<Self> {
        let (mut columns, mut num_rows, mut are_rows) = (Vec::new(), 0, true);
        for part in parts {
            let keys = part?;
            are_rows &= keys.are_numbers_from(num_rows);
            let next = num_rows + keys.len() as u64;
            columns.push((num_rows, keys));
            num_rows = next;
        }
        Ok(if are_rows { Self::Rows } else { Self::Columns(columns) })
    }

    fn place(columns: &[(u64, Cells)], row: u64) -> (&Cells, usize) {
        let (first, keys) = &columns[columns.partition_point(|&(first, _)| first <= row) - 1];
        (keys, (row - first) as usize)
    }

    /// The key of a row; `None` if it is none of this type.
    fn key<K: FieldKey>(&self, row: u64, options: &SourceOptions, text: &mut Vec<u8>) -> Result<Option<K>> {
        let Self::Columns(columns) = self else { return number_key(row, text).map(Some) };
        let (keys, row) = Self::place(columns, row);
        Ok(keys.key(row, options, text))
    }

    fn shown(&self, row: u64) -> String {
        let Self::Columns(columns) = self else { return row.to_string() };
        let (keys, row) = Self::place(columns, row);
        keys.shown(row)
    }
}

/// Collects the edges of a chunk.
pub(crate) struct IndexedEdges<'a, W> {
    /// The keys of sources and of targets.
    keys: [&'a KeysByRow; 2],
    options: &'a SourceOptions,
    /// The weight of each row, where `None` is no weight of this type; and the column for messages.
    weights: Option<(Vec<Option<W>>, Cells)>,
    kept: Vec<u32>,
    is_whole: bool,
}

impl<'a, W: Weight> IndexedEdges<'a, W> {
    /// No edges; `weights` has a value for each row.
    ///
    /// # Errors
    /// The weights cannot be converted.
    pub(crate) fn new(
        keys: [&'a KeysByRow; 2],
        weights: Option<&ArrayRef>,
        options: &'a SourceOptions,
    ) -> Result<Self> {
        let read = |column: &ArrayRef| -> Result<_> {
            let cells = Cells::of(column)?;
            let weights = match whole_weights::<W>(column) {
                Some(weights) => weights.into_iter().map(Some).collect(),
                None => (0..column.len()).map(|row| cells.weight(row)).collect(),
            };
            Ok((weights, cells))
        };
        Ok(Self { keys, options, weights: weights.map(read).transpose()?, kept: Vec::new(), is_whole: true })
    }

    /// The weight of a row; `None` without weights, and if it is none of this type.
    pub(crate) fn weight(&self, row: usize) -> Option<W> {
        self.weights.as_ref().and_then(|(weights, _)| weights[row])
    }

    /// Passes over a row.
    pub(crate) fn pass_over(&mut self) {
        self.is_whole = false;
    }

    /// Appends the edge of a row, or notes its fault. Returns whether the fault ends the read. The ends are rows that
    /// exist.
    ///
    /// # Errors
    /// The text of the keys is too long for a block.
    pub(crate) fn push<K: FieldKey>(
        &mut self,
        row: usize,
        ends: [u64; 2],
        block: &mut ParsedBlock<K, W>,
    ) -> Result<bool> {
        let [source, target] = self.keys;
        let keys = [
            source.key(ends[0], self.options, &mut block.extra)?,
            target.key(ends[1], self.options, &mut block.extra)?,
        ];
        let weight = self.weights.as_ref().map(|(weights, _)| weights[row]);
        if let ([Some(source), Some(target)], None | Some(Some(_))) = (keys, weight) {
            block.edges.push((source, target));
            block.weights.extend(weight.flatten());
            self.kept.push(row as u32);
            return Ok(false);
        }
        self.is_whole = false;
        let what = match keys.iter().position(Option::is_none) {
            Some(end) => format!("expected a key, {}, found {}", K::RANGE, self.keys[end].shown(ends[end])),
            None => {
                let found = self.weights.as_ref().map(|(_, cells)| cells.shown(row)).unwrap_or_default();
                format!("expected {}, found {found}", weight_range(W::TYPE))
            }
        };
        Ok(block.faults.note_at(row as u64, what))
    }

    /// The rows that became edges; `None` if all rows did.
    pub(crate) fn kept(self) -> Option<Vec<u32>> {
        (!self.is_whole).then_some(self.kept)
    }
}
