//! Columns that stand beside the targets of lists: weights of the graph's type, and rows.

use std::borrow::Cow;
use std::ops::Range;

use base::mapped::MappedSlice;
use bytemuck::{Pod, Zeroable};
use graph::{Weight, WeightType, Weights};

use crate::changes::{ArcData, EntryBuffer};
use crate::options::GraphOptions;

/// What stands beside targets, each as many as there are targets.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArcColumns {
    pub weights: Option<Weights>,
    pub rows: Option<MappedSlice<u64>>,
}

/// The row of an edge, as a column holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Row(pub u64);

/// A value of one of the columns: a weight of some type, or a row.
pub(crate) trait ArcValue: Pod {
    /// Whether this is a weight. Otherwise it is a row.
    const IS_WEIGHT: bool;

    /// The column of these values, where there is one.
    fn of(columns: &ArcColumns) -> Option<&[Self]>;

    /// The value among all that an arc carries.
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

impl ArcValue for Row {
    const IS_WEIGHT: bool = false;

    fn of(columns: &ArcColumns) -> Option<&[Self]> {
        columns.rows.as_ref().map(|rows| bytemuck::cast_slice(rows))
    }

    fn of_data(data: ArcData) -> Self {
        Self(data.row)
    }
}

impl ArcColumns {
    /// Columns of these entries, as a graph has them.
    pub fn new(options: &GraphOptions, entries: &EntryBuffer) -> Self {
        let weights = options.weight_type.map(|weight_type| typed_weights(weight_type, &entries.weights));
        Self { weights, rows: options.has_rows().then(|| MappedSlice::copied(&entries.rows)) }
    }

    /// What stands beside the target at a place.
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

    /// Appends what stands beside these targets.
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

/// Weights of this type from their bits.
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

/// The values of one column of `len` entries in memory. `bytes` holds either that column alone, or one pair of a row
/// and the bits of a weight for each entry.
pub(crate) fn values_of<P: ArcValue>(len: usize, bytes: &[u8]) -> Cow<'_, [P]> {
    if bytes.len() == len * size_of::<P>() {
        return Cow::Borrowed(bytemuck::cast_slice(bytes));
    }
    let entries: &[[u64; 2]] = bytemuck::cast_slice(bytes);
    entries.iter().map(|&[row, weight]| P::of_data(ArcData { row, weight })).collect()
}
