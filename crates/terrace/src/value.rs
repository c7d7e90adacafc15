//! What stands beside an edge: a weight, or nothing.

use bytemuck::Pod;
use graph::WeightType;

/// What stands beside an edge: a weight, or nothing (`()`).
///
/// There is no `==` of values, which takes -0.0 for 0.0 and no NaN for itself: what is asked is whether they are
/// [the same](Self::is_same).
pub trait Value: Pod + Send + Sync + std::fmt::Debug {
    /// The type of the weights, if there are any.
    const TYPE: Option<WeightType>;

    /// The 32-bit words of a value.
    const WORDS: usize = size_of::<Self>() / size_of::<u32>();

    /// Whether the bits are the same, so that a change from one to the other changes nothing.
    #[inline(always)]
    fn is_same(&self, other: &Self) -> bool {
        bytemuck::bytes_of(self) == bytemuck::bytes_of(other)
    }

    /// The first `len` values in these words.
    ///
    /// # Panics
    /// If there are fewer, or they are not aligned.
    #[inline(always)]
    fn column(words: &[u32], len: usize) -> &[Self] {
        bytemuck::cast_slice(&words[..len * Self::WORDS])
    }

    /// The same, to be written; empty where values take no words.
    #[inline(always)]
    fn column_mut(words: &mut [u32], len: usize) -> &mut [Self] {
        bytemuck::cast_slice_mut(&mut words[..len * Self::WORDS])
    }
}

/// As many nothings as anyone may want: they take no memory.
const NOTHINGS: &[()] = &[(); u32::MAX as usize];

impl Value for () {
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
        $(impl Value for $type {
            const TYPE: Option<WeightType> = Some(WeightType::$variant);
        })*
    };
}

/// The bits of any weight of eight bytes, or the number of a row.
impl Value for u64 {
    const TYPE: Option<WeightType> = None;
}

/// The number of a row, and the bits of a weight.
impl Value for [u64; 2] {
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
