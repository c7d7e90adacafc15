//! What stands beside an edge: a weight, or nothing.

use bytemuck::Pod;
use graph::WeightType;

/// What stands beside an edge: a weight, or nothing (`()`).
pub trait Value: Pod + PartialEq + Send + Sync + std::fmt::Debug {
    /// The type of the weights, if there are any.
    const TYPE: Option<WeightType>;

    /// The 32-bit words of a value.
    const WORDS: usize = size_of::<Self>() / size_of::<u32>();

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

impl_value!(u32: U32, i64: I64, f32: F32, f64: F64);
