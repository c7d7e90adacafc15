//! Edge weights and distances, which are sums of weights.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use anden_base::mapped::MappedSlice;
use anden_base::simd::prefetch;
use bytemuck::Pod;

/// The types of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WeightType {
    /// 32-bit unsigned integers.
    U32,
    /// 64-bit signed integers.
    I64,
    /// 32-bit floating-point numbers.
    F32,
    /// 64-bit floating-point numbers.
    F64,
}

impl WeightType {
    /// All types with the names that users type.
    pub const ALL: [(Self, &str); 4] = [(Self::U32, "u32"), (Self::I64, "i64"), (Self::F32, "f32"), (Self::F64, "f64")];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(t, _)| *t == self).map_or("?", |(_, name)| name)
    }

    /// The size of one weight in bytes.
    pub fn num_bytes(self) -> usize {
        match self {
            Self::U32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }
}

/// A column of weights, parallel to the targets of a CSR.
#[derive(Clone, Debug)]
pub enum Weights {
    /// `u32` weights.
    U32(MappedSlice<u32>),
    /// `i64` weights.
    I64(MappedSlice<i64>),
    /// `f32` weights.
    F32(MappedSlice<f32>),
    /// `f64` weights.
    F64(MappedSlice<f64>),
}

impl Weights {
    /// The type of the weights.
    pub fn weight_type(&self) -> WeightType {
        match self {
            Self::U32(_) => WeightType::U32,
            Self::I64(_) => WeightType::I64,
            Self::F32(_) => WeightType::F32,
            Self::F64(_) => WeightType::F64,
        }
    }

    /// The number of weights.
    pub fn len(&self) -> usize {
        match self {
            Self::U32(w) => w.len(),
            Self::I64(w) => w.len(),
            Self::F32(w) => w.len(),
            Self::F64(w) => w.len(),
        }
    }

    /// Whether the column has no weights.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Prefetches the weights from `index` on; `index` may be out of bounds.
    #[inline(always)]
    pub fn prefetch(&self, index: usize) {
        match self {
            Self::U32(weights) => prefetch_start(weights, index),
            Self::I64(weights) => prefetch_start(weights, index),
            Self::F32(weights) => prefetch_start(weights, index),
            Self::F64(weights) => prefetch_start(weights, index),
        }
    }
}

/// Prefetches the first two cache lines of a list; the hardware prefetcher fetches the rest.
#[inline(always)]
pub fn prefetch_start<T>(entries: &[T], index: usize) {
    const LINE_BYTES: usize = 64;
    prefetch(entries, index);
    // The hint takes any index, so the end of the list needs no test.
    prefetch(entries, index + LINE_BYTES / size_of::<T>());
}

/// A type of weights; kernels are generic over it.
pub trait Weight: Pod + Send + Sync + PartialOrd + Debug + Display + FromStr + 'static {
    /// The type of the sums of these weights.
    type Distance: Distance;
    /// The tag of this type.
    const TYPE: WeightType;

    /// The weight of an edge that has none in its input.
    const ONE: Self;

    /// The weight as a distance; `None` if it is negative or NaN. Kernels that add weights refuse these.
    fn distance(self) -> Option<Self::Distance>;

    /// Whether the weight is not NaN.
    fn is_number(self) -> bool;

    /// Whether the weight is +∞ or −∞.
    fn is_infinite(self) -> bool;

    /// Whether edges may have this weight: any number or +∞, but not −∞ or NaN. Shortest paths treat +∞ as no edge.
    fn is_accepted(self) -> bool {
        // A path over −∞ has no smallest sum, and NaN has no order.
        self.is_number() && !(self.is_infinite() && self < Self::ONE)
    }

    /// The sum of two weights, for merging parallel edges; `None` on overflow.
    fn checked_plus(self, other: Self) -> Option<Self>;

    /// The bit pattern, zero-extended, for small collections of weights of any type.
    fn bits(self) -> u64;

    /// The inverse of [`bits`](Self::bits).
    fn of_bits(bits: u64) -> Self;

    /// The column as a slice; `None` if it has another type.
    fn of(weights: &Weights) -> Option<&[Self]>;

    /// Wraps weights as a column.
    fn column(weights: MappedSlice<Self>) -> Weights;
}

/// A sum of weights with an order-preserving integer form: `a < b` exactly if `a.to_bits() < b.to_bits()`. So distances
/// live in atomic integers.
pub trait Distance: Copy + Send + Sync + PartialOrd + Debug + Display + Default + 'static {
    /// Larger than every distance; means that no path was found.
    const UNREACHED: Self;

    /// The sum; saturates at [`UNREACHED`](Self::UNREACHED).
    fn plus(self, other: Self) -> Self;

    /// The distance as an integer that preserves the order.
    fn to_bits(self) -> u64;

    /// The inverse of [`to_bits`](Self::to_bits).
    fn from_bits(bits: u64) -> Self;

    /// The distance as a floating-point number, for sums and bucket widths.
    fn as_f64(self) -> f64;
}

impl Distance for u64 {
    const UNREACHED: Self = Self::MAX;

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.saturating_add(other)
    }

    #[inline(always)]
    fn to_bits(self) -> u64 {
        self
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits
    }

    fn as_f64(self) -> f64 {
        self as f64
    }
}

impl Distance for f64 {
    const UNREACHED: Self = Self::INFINITY;

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        // Infinity absorbs all other terms, so the sum saturates by itself.
        self + other
    }

    #[inline(always)]
    fn to_bits(self) -> u64 {
        // The bits of negative numbers compare in reverse order.
        debug_assert!(self >= 0.0);
        f64::to_bits(self)
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        // The inherent method takes precedence over this one, so there is no recursion.
        Self::from_bits(bits)
    }

    fn as_f64(self) -> f64 {
        self
    }
}

macro_rules! impl_weight {
    ($type:ty, $word:ty, $variant:ident, $distance:ty, $one:expr, $valid:expr, $number:expr, $infinite:expr, $plus:expr) => {
        impl Weight for $type {
            type Distance = $distance;
            const TYPE: WeightType = WeightType::$variant;
            const ONE: Self = $one;

            #[inline(always)]
            fn distance(self) -> Option<$distance> {
                // Adding zero turns -0.0 into 0.0. The bits of -0.0 would compare as the largest integer.
                $valid(self).then(|| self as $distance + (0 as $distance))
            }

            #[inline(always)]
            fn is_number(self) -> bool {
                $number(self)
            }

            #[inline(always)]
            fn is_infinite(self) -> bool {
                $infinite(self)
            }

            #[inline(always)]
            fn checked_plus(self, other: Self) -> Option<Self> {
                $plus(self, other)
            }

            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(bytemuck::cast::<Self, $word>(self))
            }

            #[inline(always)]
            fn of_bits(bits: u64) -> Self {
                bytemuck::cast(bits as $word)
            }

            #[inline(always)]
            fn of(weights: &Weights) -> Option<&[Self]> {
                match weights {
                    Weights::$variant(weights) => Some(weights),
                    _ => None,
                }
            }

            fn column(weights: MappedSlice<Self>) -> Weights {
                Weights::$variant(weights)
            }
        }
    };
}

/// The sum of floating-point weights; `None` if finite weights have an infinite sum.
fn checked_sum<W: Weight + std::ops::Add<Output = W>>(a: W, b: W) -> Option<W> {
    let is_finite = !(a.is_infinite() || b.is_infinite());
    Some(a + b).filter(|sum| !(is_finite && sum.is_infinite()))
}

impl_weight!(u32, u32, U32, u64, 1, |_| true, |_| true, |_| false, Self::checked_add);
impl_weight!(i64, u64, I64, u64, 1, |w| w >= 0, |_| true, |_| false, Self::checked_add);
impl_weight!(f32, u32, F32, f64, 1.0, |w| w >= 0.0, |w: f32| !w.is_nan(), Self::is_infinite, checked_sum);
impl_weight!(f64, u64, F64, f64, 1.0, |w| w >= 0.0, |w: f64| !w.is_nan(), Self::is_infinite, checked_sum);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sums_that_grow_are_distances() {
        assert_eq!(7_u32.distance(), Some(7_u64));
        assert_eq!((-1_i64).distance(), None);
        assert_eq!(f32::NAN.distance(), None);
        assert_eq!((-0.5_f64).distance(), None);
        assert_eq!((-0.0_f64).distance().map(f64::to_bits), Some(0));
        assert_eq!(u64::UNREACHED.plus(3), u64::UNREACHED);
    }

    #[test]
    fn sums_stay_within_their_type() {
        assert_eq!((u32::MAX.checked_plus(1), 7_u32.checked_plus(1)), (None, Some(8)));
        assert_eq!((i64::MIN.checked_plus(-1), i64::MAX.checked_plus(-1)), (None, Some(i64::MAX - 1)));
        assert_eq!((f32::MAX.checked_plus(f32::MAX), 0.5_f64.checked_plus(0.25)), (None, Some(0.75)));
        assert!([f64::NAN, f64::NEG_INFINITY].iter().all(|weight| !weight.is_accepted()));
        assert!(f32::INFINITY.is_accepted() && i64::MIN.is_accepted() && f64::MIN.is_accepted());
        assert_eq!(f32::INFINITY.checked_plus(1.0), Some(f32::INFINITY));
    }

    #[test]
    fn bits_keep_the_order() {
        let values = [0.0, 1e-300, 0.5, 1.0, 1e300, f64::UNREACHED];
        assert!(values.windows(2).all(|w| Distance::to_bits(w[0]) < Distance::to_bits(w[1])));
        assert!(values.iter().all(|&x| <f64 as Distance>::from_bits(Distance::to_bits(x)) == x));
    }

    #[test]
    fn bits_come_back() {
        assert_eq!((u32::of_bits(u32::MAX.bits()), (-1_i64).bits(), i64::of_bits(u64::MAX)), (u32::MAX, u64::MAX, -1));
        assert_eq!((f32::of_bits((-0.5_f32).bits()), f64::of_bits(1e300.bits())), (-0.5, 1e300));
    }

    #[test]
    fn a_column_knows_its_type() {
        let column = f32::column(MappedSlice::copied(&[1.0, 2.0]));
        assert_eq!((column.weight_type(), column.len()), (WeightType::F32, 2));
        assert_eq!(f32::of(&column), Some(&[1.0, 2.0][..]));
        assert!(u32::of(&column).is_none());
        assert_eq!(WeightType::I64.name(), "i64");
    }
}
