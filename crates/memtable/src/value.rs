//! Values of arcs: weights, rows, both, or none.

use anden_graph::WeightType;
use bytemuck::Pod;

/// Value of an arc: a weight, a row, both, or none (`()`).
///
/// Values are compared by [their bits](Self::is_same). `==` would treat -0.0 as 0.0, and NaN as different from
/// itself.
pub trait EntryValue: Pod + Send + Sync + std::fmt::Debug {
    /// Type of the weights, if the values are weights alone.
    const TYPE: Option<WeightType>;

    /// Number of 32-bit words in a value.
    const WORDS: usize = size_of::<Self>() / size_of::<u32>();

    /// Whether the bits are equal, so that replacing one by the other has no effect.
    #[inline(always)]
    fn is_same(&self, other: &Self) -> bool {
        bytemuck::bytes_of(self) == bytemuck::bytes_of(other)
    }

    /// Reinterprets words as their first `len` values.
    ///
    /// # Panics
    /// If the words are too few, or not aligned for the type.
    #[inline(always)]
    fn column(words: &[u32], len: usize) -> &[Self] {
        bytemuck::cast_slice(&words[..len * Self::WORDS])
    }

    /// As [`column`](Self::column), mutable. Empty where values take no words.
    #[inline(always)]
    fn column_mut(words: &mut [u32], len: usize) -> &mut [Self] {
        bytemuck::cast_slice_mut(&mut words[..len * Self::WORDS])
    }
}

/// Source of all slices of `()`, which take no memory.
const NOTHINGS: &[()] = &[(); u32::MAX as usize];

impl EntryValue for () {
    const TYPE: Option<WeightType> = None;

    #[inline(always)]
    fn column(_: &[u32], len: usize) -> &[()] {
        &NOTHINGS[..len]
    }

    #[inline(always)]
    fn column_mut(_: &mut [u32], _: usize) -> &mut [()] {
        &mut []
    }
}

macro_rules! impl_value {
    ($($type:ty: $variant:ident),*) => {
        $(impl EntryValue for $type {
            const TYPE: Option<WeightType> = Some(WeightType::$variant);
        })*
    };
}

/// Bits of a weight of eight bytes, or a row.
impl EntryValue for u64 {
    const TYPE: Option<WeightType> = None;
}

/// A row, and the bits of a weight.
impl EntryValue for [u64; 2] {
    const TYPE: Option<WeightType> = None;
}

impl_value!(u32: U32, i64: I64, f32: F32, f64: F64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_same_where_their_bits_are() {
        assert!(().is_same(&()) && 7_u32.is_same(&7) && !7_i64.is_same(&(7 << 32)));
        assert!(!0.0_f32.is_same(&-0.0) && !0.0_f64.is_same(&-0.0));
        assert!(f32::NAN.is_same(&f32::NAN) && 0.5_f64.is_same(&0.5));
    }
}
