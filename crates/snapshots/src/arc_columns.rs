//! Columns parallel to the targets of lists: weights of the graph's type, and rows.

use std::borrow::Cow;
use std::ops::Range;

use anden_base::mapped::MappedSlice;
use anden_graph::{Weight, WeightType, Weights};
use bytemuck::{Pod, Zeroable};

use crate::changes::{ArcData, EntryBuffer};
use crate::options::GraphOptions;

/// Columns parallel to targets.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArcColumns {
    pub weights: Option<Weights>,
    pub rows: Option<MappedSlice<u64>>,
}

/// A row number in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct ArcRow(pub u64);

/// A value of a column: a weight of some type, or a row.
pub(crate) trait ArcValue: Pod {
    /// True for weights, false for rows.
    const IS_WEIGHT: bool;

    /// The column of these values, if there is one.
    fn of(columns: &ArcColumns) -> Option<&[Self]>;

    /// This value of an arc's data.
    fn of_data(data: ArcData) -> Self;
}

impl<W: Weight> ArcValue for W {
    const IS_WEIGHT: bool = true;

    #[inline(always)]
    fn of(columns: &ArcColumns) -> Option<&[Self]> {
        columns.weights.as_ref().and_then(W::of)
    }

    fn of_data(data: ArcData) -> Self {
        W::of_bits(data.weight)
    }
}

impl ArcValue for ArcRow {
    const IS_WEIGHT: bool = false;

    fn of(columns: &ArcColumns) -> Option<&[Self]> {
        columns.rows.as_ref().map(|rows| bytemuck::cast_slice(rows))
    }

    fn of_data(data: ArcData) -> Self {
        Self(data.row)
    }
}

impl ArcColumns {
    /// The columns of these entries that such a graph has.
    pub fn new(options: &GraphOptions, entries: &EntryBuffer) -> Self {
        let weights = options.weight_type.map(|weight_type| typed_weights(weight_type, &entries.weights));
        Self { weights, rows: options.has_rows().then(|| MappedSlice::copied(&entries.rows)) }
    }

    /// Row and weight of the entry at a position.
    pub fn data(&self, place: usize) -> ArcData {
        let weight = match &self.weights {
            None => 0,
            Some(Weights::U32(weights)) => weights[place].bits(),
            Some(Weights::I64(weights)) => weights[place].bits(),
            Some(Weights::F32(weights)) => weights[place].bits(),
            Some(Weights::F64(weights)) => weights[place].bits(),
        };
        ArcData { row: self.rows.as_ref().map_or(0, |rows| rows[place]), weight }
    }

    /// Appends rows and weights of these entries.
    pub fn copy(&self, range: Range<usize>, entries: &mut EntryBuffer) {
        let bits = &mut entries.weights;
        match &self.weights {
            None => {}
            Some(Weights::U32(weights)) => bits.extend(weights[range.clone()].iter().map(|weight| weight.bits())),
            Some(Weights::I64(weights)) => bits.extend(weights[range.clone()].iter().map(|weight| weight.bits())),
            Some(Weights::F32(weights)) => bits.extend(weights[range.clone()].iter().map(|weight| weight.bits())),
            Some(Weights::F64(weights)) => bits.extend(weights[range.clone()].iter().map(|weight| weight.bits())),
        }
        if let Some(rows) = &self.rows {
            entries.rows.extend_from_slice(&rows[range]);
        }
    }
}

/// Weights of this type, from their bits.
pub(crate) fn typed_weights(weight_type: WeightType, bits: &[u64]) -> Weights {
    fn typed<W: Weight>(bits: &[u64]) -> Weights {
        W::column(MappedSlice::copied(&bits.iter().map(|&bits| W::of_bits(bits)).collect::<Vec<W>>()))
    }
    match weight_type {
        WeightType::U32 => typed::<u32>(bits),
        WeightType::I64 => typed::<i64>(bits),
        WeightType::F32 => typed::<f32>(bits),
        WeightType::F64 => typed::<f64>(bits),
    }
}

/// One column of `len` entries in memory. `bytes` holds this column alone, or a row and the bits of a weight for each
/// entry.
pub(crate) fn values_of<P: ArcValue>(len: usize, bytes: &[u8]) -> Cow<'_, [P]> {
    // The bytes hold this column alone, so they serve as they are.
    if bytes.len() == len * size_of::<P>() {
        return Cow::Borrowed(bytemuck::cast_slice(bytes));
    }
    let entries: &[[u64; 2]] = bytemuck::cast_slice(bytes);
    entries.iter().map(|&[row, weight]| P::of_data(ArcData { row, weight })).collect()
}
