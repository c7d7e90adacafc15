//! Tables of 32,768 numbers, small enough for a second-level cache, with 15-bit indexes.
//!
//! The index of each access is masked to 15 bits, so no access leaves its table. All other conditions of unchecked
//! accesses are established once per block, by the function that makes the accesses.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::ops::AddAssign;

use crate::simd::prefetch;

/// Number of bits in a place.
pub const PLACE_BITS: u32 = 15;

/// Number of entries in a table.
pub const TABLE_LEN: usize = 1 << PLACE_BITS;

/// Highest bit of an entry, above its place: marks the first place of a run.
pub const RUN_FLAG: u16 = 1 << PLACE_BITS;

const PLACE_MASK: u16 = RUN_FLAG - 1;

/// `f32` and `f64`.
pub trait Number: Copy + AddAssign + private::Gather {}

impl Number for f32 {}
impl Number for f64 {}

mod private {
    /// Sealed: the unchecked code is written for these two types only.
    pub trait Gather: Sized {
        fn gather(table: &[Self; super::TABLE_LEN], places: &[u16], into: &mut [Self]);
    }
}

/// Sets `into[i]` to the number at `places[i]`, over their common length. Writes past the cache if the processor has
/// AVX-512.
#[inline]
pub fn gather<T: Number>(table: &[T; TABLE_LEN], places: &[u16], into: &mut [T]) {
    let len = places.len().min(into.len());
    T::gather(table, &places[..len], &mut into[..len]);
}

#[inline]
fn gather_portable<T: Copy>(table: &[T; TABLE_LEN], places: &[u16], into: &mut [T]) {
    for (into, place) in into.iter_mut().zip(places) {
        *into = table[usize::from(place & PLACE_MASK)];
    }
}

macro_rules! impl_gather {
    ($type:ty, $avx512:ident) => {
        impl private::Gather for $type {
            #[inline]
            fn gather(table: &[$type; TABLE_LEN], places: &[u16], into: &mut [$type]) {
                #[cfg(target_arch = "x86_64")]
                if std::is_x86_feature_detected!("avx512f") {
                    // SAFETY: the processor has the feature that the function is compiled for.
                    return unsafe { $avx512(table, places, into) };
                }
                gather_portable(table, places, into);
            }
        }
    };
}

impl_gather!(f32, gather_f32_avx512);
impl_gather!(f64, gather_f64_avx512);

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn gather_f32_avx512(table: &[f32; TABLE_LEN], places: &[u16], into: &mut [f32]) {
    let (head, blocks, rest) = aligned_blocks::<f32, 16>(into);
    let (head_places, places) = places.split_at(head.len());
    gather_portable(table, head_places, head);
    let (place_blocks, rest_places) = places.as_chunks::<16>();
    let mask = _mm512_set1_epi32(i32::from(PLACE_MASK));
    for (block, places) in blocks.iter_mut().zip(place_blocks) {
        // SAFETY: `places` covers the 32 bytes that are loaded; every index is masked to the length
        // of the table; `block` covers 64 bytes, aligned to 64 by `aligned_blocks`.
        unsafe {
            let places = _mm512_cvtepu16_epi32(_mm256_loadu_si256(places.as_ptr().cast()));
            let values = _mm512_i32gather_ps::<4>(_mm512_and_si512(places, mask), table.as_ptr());
            _mm512_stream_ps(block.as_mut_ptr(), values);
        }
    }
    _mm_sfence();
    gather_portable(table, rest_places, rest);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn gather_f64_avx512(table: &[f64; TABLE_LEN], places: &[u16], into: &mut [f64]) {
    let (head, blocks, rest) = aligned_blocks::<f64, 8>(into);
    let (head_places, places) = places.split_at(head.len());
    gather_portable(table, head_places, head);
    let (place_blocks, rest_places) = places.as_chunks::<8>();
    let mask = _mm256_set1_epi32(i32::from(PLACE_MASK));
    for (block, places) in blocks.iter_mut().zip(place_blocks) {
        // SAFETY: `places` covers the 16 bytes that are loaded; every index is masked to the length
        // of the table; `block` covers 64 bytes, aligned to 64 by `aligned_blocks`.
        unsafe {
            let places = _mm256_cvtepu16_epi32(_mm_loadu_si128(places.as_ptr().cast()));
            let values = _mm512_i32gather_pd::<8>(_mm256_and_si256(places, mask), table.as_ptr());
            _mm512_stream_pd(block.as_mut_ptr(), values);
        }
    }
    _mm_sfence();
    gather_portable(table, rest_places, rest);
}

/// The numbers before the first cache line, whole lines of `N` numbers, and the rest.
#[cfg(target_arch = "x86_64")]
fn aligned_blocks<T, const N: usize>(data: &mut [T]) -> (&mut [T], &mut [[T; N]], &mut [T]) {
    const { assert!(N * size_of::<T>() == crate::simd::LINE_BYTES) };
    let head_len = data.as_ptr().align_offset(crate::simd::LINE_BYTES).min(data.len());
    let (head, data) = data.split_at_mut(head_len);
    let (blocks, rest) = data.as_chunks_mut::<N>();
    (head, blocks, rest)
}

/// Runs of places, with one value per run.
#[derive(Debug)]
pub struct Runs<'a, T> {
    /// Places. [`RUN_FLAG`] marks the first of each run.
    pub places: &'a [u16],
    /// Value of each run.
    pub values: &'a [T],
}

/// Adds the value of each run to `table` at the places of the run. Meanwhile, prefetches `next`, the runs that
/// follow.
///
/// # Panics
/// If the first place has no flag, or if the runs outnumber the values.
#[inline]
pub fn add_runs<T: Number>(table: &mut [T; TABLE_LEN], runs: &Runs<'_, T>, next: &Runs<'_, T>) {
    const STEP: usize = 32;
    let (places, values) = (runs.places, runs.values);
    assert!(places.first().is_none_or(|first| first & RUN_FLAG != 0), "the first place begins a run");
    let next_step = next.values.len().div_ceil((places.len() / STEP).max(1));
    let mut num_seen = 0;
    let (blocks, rest) = places.as_chunks::<STEP>();
    for (i, block) in blocks.iter().enumerate() {
        prefetch(next.places, i * STEP);
        prefetch(next.values, i * next_step);
        // Near the end of the values, each index is checked.
        if num_seen + STEP > values.len() {
            add_checked(table, block, values, &mut num_seen);
            continue;
        }
        let mut add = |entry: u16| {
            num_seen += usize::from(entry >> PLACE_BITS);
            // SAFETY: the first place of all has a flag, so `num_seen` is at least 1. Before this block it was at
            // most `values.len() - STEP`, and the block has `STEP` places.
            let value = unsafe { *values.get_unchecked(num_seen - 1) };
            table[usize::from(entry & PLACE_MASK)] += value;
        };
        for &[a, b, c, d] in block.as_chunks::<4>().0 {
            add(a);
            add(b);
            add(c);
            add(d);
        }
    }
    add_checked(table, rest, values, &mut num_seen);
}

/// Adds the values at some of the places. `num_seen` flags came before them.
#[inline]
fn add_checked<T: Number>(table: &mut [T; TABLE_LEN], places: &[u16], values: &[T], num_seen: &mut usize) {
    for &entry in places {
        *num_seen += usize::from(entry >> PLACE_BITS);
        table[usize::from(entry & PLACE_MASK)] += values[*num_seen - 1];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table<T: Number + From<u16>>() -> Vec<T> {
        (0..TABLE_LEN).map(|i| T::from((i * 7 % 1000) as u16)).collect()
    }

    fn places(len: usize) -> Vec<u16> {
        (0..len).map(|i| (i as u32).wrapping_mul(2_654_435_761) as u16).collect()
    }

    #[test]
    fn gathered_numbers_are_those_of_the_table() {
        let (singles, doubles) = (table::<f32>(), table::<f64>());
        for len in [0, 1, 7, 8, 16, 63, 64, 200] {
            let places = places(len);
            let (mut a, mut b) = (vec![0.0; len + 3], vec![0.0; len + 3]);
            gather(singles.first_chunk().unwrap(), &places, &mut a[3..]);
            gather(doubles.first_chunk().unwrap(), &places, &mut b[3..]);
            for (i, place) in places.iter().enumerate() {
                let index = usize::from(place & PLACE_MASK);
                assert_eq!((a[i + 3], b[i + 3]), (singles[index], doubles[index]), "{i} of {len}");
            }
        }
    }

    #[test]
    fn runs_add_their_values() {
        let mut sums = table::<f64>();
        let mut expected = sums.clone();
        let entries = [3 | RUN_FLAG, 5, 3, 5 | RUN_FLAG, PLACE_MASK | RUN_FLAG];
        let runs = |places, values| Runs { places, values };
        add_runs(sums.first_chunk_mut().unwrap(), &runs(&entries, &[0.5, 0.25, 8.0, 99.0]), &runs(&[], &[]));
        for (place, value) in [(3, 1.0), (5, 0.75), (TABLE_LEN - 1, 8.0)] {
            expected[place] += value;
        }
        assert_eq!(sums, expected);
        add_runs(sums.first_chunk_mut().unwrap(), &runs(&[], &[]), &runs(&entries, &[1.0]));
        assert_eq!(sums, expected);
    }

    #[test]
    fn long_runs_add_their_values() {
        let mut places = places(5000);
        places[0] |= RUN_FLAG;
        let num_runs = places.iter().filter(|&&entry| entry & RUN_FLAG != 0).count();
        let values: Vec<f64> = (0..num_runs).map(|i| (i + 1) as f64).collect();
        let mut expected = table::<f64>();
        let mut sums = expected.clone();
        let mut run = 0.0;
        for &entry in &places {
            run += f64::from(entry >> PLACE_BITS);
            expected[usize::from(entry & PLACE_MASK)] += run;
        }
        let runs = Runs { places: &places, values: &values };
        add_runs(sums.first_chunk_mut().unwrap(), &runs, &runs);
        assert_eq!(sums, expected);
    }

    #[test]
    fn runs_without_values_are_refused() {
        let refused = |places: &[u16], values: &[f32]| {
            let mut sums = table::<f32>();
            let runs = Runs { places, values };
            std::panic::catch_unwind(move || add_runs(sums.first_chunk_mut().unwrap(), &runs, &runs)).is_err()
        };
        assert!(refused(&[1 | RUN_FLAG, 2 | RUN_FLAG], &[1.0]));
        assert!(refused(&[1, 2 | RUN_FLAG], &[1.0, 2.0]));
        assert!(!refused(&[1 | RUN_FLAG, 2 | RUN_FLAG], &[1.0, 2.0]));
        let long = [RUN_FLAG; 1000];
        assert!((990..1000).all(|len| refused(&long, &vec![0.0; len])) && !refused(&long, &[0.0; 1000]));
    }
}
