//! SIMD and memory hints behind safe functions. Each has a portable form with equal results.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Hints that `slice[index]` is read soon. Any index is allowed.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no visible effect and never faults at any address; the address is computed
    // without the in-bounds promise of `add`.
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().wrapping_add(index).cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

/// Number of bits set in both `a` and `b`, over their common length.
#[inline]
pub fn and_count_ones(a: &[u64], b: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx512vpopcntdq") && std::is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has the features that the function is compiled for.
        return unsafe { and_count_ones_avx512(a, b) };
    } else if std::is_x86_feature_detected!("popcnt") {
        // SAFETY: as above.
        return unsafe { and_count_ones_popcnt(a, b) };
    }
    and_count_ones_portable(a, b)
}

/// Compiled for the `popcnt` instruction, which the baseline of x86_64 lacks.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn and_count_ones_popcnt(a: &[u64], b: &[u64]) -> u64 {
    and_count_ones_portable(a, b)
}

#[inline(always)]
fn and_count_ones_portable(a: &[u64], b: &[u64]) -> u64 {
    a.iter().zip(b).map(|(x, y)| u64::from((x & y).count_ones())).sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn and_count_ones_avx512(a: &[u64], b: &[u64]) -> u64 {
    let len = a.len().min(b.len());
    let (a, b) = (&a[..len], &b[..len]);
    let (a_blocks, a_rest) = a.as_chunks::<8>();
    let (b_blocks, b_rest) = b.as_chunks::<8>();
    let mut counts = _mm512_setzero_si512();
    for (x, y) in a_blocks.iter().zip(b_blocks) {
        // SAFETY: both references cover eight words, the 64 bytes that an unaligned load reads.
        let (x, y) = unsafe { (_mm512_loadu_si512(x.as_ptr().cast()), _mm512_loadu_si512(y.as_ptr().cast())) };
        counts = _mm512_add_epi64(counts, _mm512_popcnt_epi64(_mm512_and_si512(x, y)));
    }
    _mm512_reduce_add_epi64(counts) as u64 + and_count_ones_portable(a_rest, b_rest)
}

/// Bit mask of the bytes that are not decimal digits. The first byte is the lowest bit.
#[inline(always)]
pub fn non_digits(bytes: &[u8; 32]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of x86_64; both loads lie within the 32 bytes and need no alignment.
    unsafe {
        let half = |at: usize| {
            let bytes = _mm_loadu_si128(bytes.as_ptr().add(at).cast());
            // The shift makes the digits the ten smallest signed bytes.
            let shifted = _mm_add_epi8(bytes, _mm_set1_epi8(0x80_u8.wrapping_sub(b'0') as i8));
            _mm_movemask_epi8(_mm_cmpgt_epi8(shifted, _mm_set1_epi8(-128 + 9))) as u32
        };
        half(0) | half(16) << 16
    }
    #[cfg(not(target_arch = "x86_64"))]
    bytes.iter().rev().fold(0, |mask, byte| mask << 1 | u32::from(!byte.is_ascii_digit()))
}

/// Bit mask of the bytes equal to `byte`. The first byte is the lowest bit.
#[inline(always)]
pub fn equal_to(bytes: &[u8; 32], byte: u8) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in `non_digits`.
    unsafe {
        let half = |at: usize| {
            let bytes = _mm_loadu_si128(bytes.as_ptr().add(at).cast());
            _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8))) as u32
        };
        half(0) | half(16) << 16
    }
    #[cfg(not(target_arch = "x86_64"))]
    bytes.iter().rev().fold(0, |mask, &found| mask << 1 | u32::from(found == byte))
}

/// Bit mask of the bytes at most `byte`. The first byte is the lowest bit.
#[inline(always)]
pub fn at_most(bytes: &[u8; 32], byte: u8) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in `non_digits`.
    unsafe {
        let half = |at: usize| {
            let bytes = _mm_loadu_si128(bytes.as_ptr().add(at).cast());
            let most = _mm_set1_epi8(byte as i8);
            _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(bytes, most), most)) as u32
        };
        half(0) | half(16) << 16
    }
    #[cfg(not(target_arch = "x86_64"))]
    bytes.iter().rev().fold(0, |mask, &found| mask << 1 | u32::from(found <= byte))
}

/// Number of these ascending numbers that are below `bound`.
#[inline(always)]
pub fn num_below(ascending: &[u32; 16], bound: u32) -> usize {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of x86_64; the four loads lie within the 64 bytes and need no alignment.
    let mask = unsafe {
        // The comparison is signed, so both operands have their sign bit flipped.
        let sign = _mm_set1_epi32(i32::MIN);
        let bound = _mm_xor_si128(_mm_set1_epi32(bound as i32), sign);
        let below = |at: usize| {
            let numbers = _mm_loadu_si128(ascending.as_ptr().add(at).cast());
            _mm_cmpgt_epi32(bound, _mm_xor_si128(numbers, sign))
        };
        let halves = (_mm_packs_epi32(below(0), below(4)), _mm_packs_epi32(below(8), below(12)));
        _mm_movemask_epi8(_mm_packs_epi16(halves.0, halves.1)) as u32
    };
    #[cfg(not(target_arch = "x86_64"))]
    let mask = ascending.iter().rev().fold(0_u32, |mask, &number| mask << 1 | u32::from(number < bound));
    mask.trailing_ones() as usize
}

/// The first `len` of these numbers, followed by numbers with all bits set.
///
/// Written as whole vectors, so that later vector loads need not wait for narrower stores.
#[inline(always)]
pub fn with_ones_from(numbers: &[u32; 16], len: usize) -> [u32; 16] {
    let mut all = [0; 16];
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of x86_64; all loads and stores lie within the 64 bytes of either array and need no
    // alignment.
    unsafe {
        let last = _mm_set1_epi32(len as i32 - 1);
        for (at, places) in places().into_iter().enumerate() {
            let own = _mm_loadu_si128(numbers.as_ptr().add(4 * at).cast());
            _mm_storeu_si128(all.as_mut_ptr().add(4 * at).cast(), _mm_or_si128(own, _mm_cmpgt_epi32(places, last)));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    all.iter_mut().zip(numbers).enumerate().for_each(|(i, (to, &from))| *to = if i < len { from } else { u32::MAX });
    all
}

/// Inserts `number` at `position`. Later numbers move up by one, and the last is dropped.
#[inline(always)]
pub fn insert_lane(numbers: &[u32; 16], position: usize, number: u32) -> [u32; 16] {
    let mut all = [0; 16];
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in `with_ones_from`.
    unsafe {
        let (position, number) = (_mm_set1_epi32(position as i32), _mm_set1_epi32(number as i32));
        let mut before = _mm_setzero_si128();
        for (at, places) in places().into_iter().enumerate() {
            let own = _mm_loadu_si128(numbers.as_ptr().add(4 * at).cast());
            let moved = _mm_or_si128(_mm_slli_si128::<4>(own), _mm_srli_si128::<12>(before));
            let (is_behind, is_there) = (_mm_cmpgt_epi32(places, position), _mm_cmpeq_epi32(places, position));
            let rest = select(is_behind, moved, own);
            _mm_storeu_si128(all.as_mut_ptr().add(4 * at).cast(), select(is_there, number, rest));
            before = own;
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    for i in 0..16 {
        all[i] = match i.cmp(&position) {
            std::cmp::Ordering::Less => numbers[i],
            std::cmp::Ordering::Equal => number,
            std::cmp::Ordering::Greater => numbers[i - 1],
        };
    }
    all
}

/// Removes the number at `position`. Later numbers move down by one, and `last` is appended.
#[inline(always)]
pub fn remove_lane(numbers: &[u32; 16], position: usize, last: u32) -> [u32; 16] {
    let mut all = [0; 16];
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in `with_ones_from`.
    unsafe {
        let position = _mm_set1_epi32(position as i32);
        let mut behind = _mm_cvtsi32_si128(last as i32);
        for (at, places) in places().into_iter().enumerate().rev() {
            let own = _mm_loadu_si128(numbers.as_ptr().add(4 * at).cast());
            let moved = _mm_or_si128(_mm_srli_si128::<4>(own), _mm_slli_si128::<12>(behind));
            _mm_storeu_si128(
                all.as_mut_ptr().add(4 * at).cast(),
                select(_mm_cmpgt_epi32(position, places), own, moved),
            );
            behind = own;
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    for i in 0..16 {
        all[i] = if i < position { numbers[i] } else { numbers.get(i + 1).copied().unwrap_or(last) };
    }
    all
}

/// Positions of the sixteen lanes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn places() -> [__m128i; 4] {
    // SAFETY: SSE2 is part of x86_64, and no memory is touched.
    unsafe { [0, 4, 8, 12].map(|first| _mm_setr_epi32(first, first + 1, first + 2, first + 3)) }
}

/// Lanes of `yes` where the mask is set, of `no` elsewhere.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn select(mask: __m128i, yes: __m128i, no: __m128i) -> __m128i {
    // SAFETY: SSE2 is part of x86_64, and no memory is touched.
    unsafe { _mm_or_si128(_mm_and_si128(mask, yes), _mm_andnot_si128(mask, no)) }
}

/// Number of bytes in a cache line, the unit of [`stream_line`].
pub const LINE_BYTES: usize = 64;

/// Copies one line past the cache, for data that is not read again soon.
///
/// Makes a plain copy if `target` is not aligned to a line. Call [`stream_fence`] before another thread may read the
/// data.
#[inline(always)]
pub fn stream_line(target: &mut [u32; 16], source: &[u32; 16]) {
    #[cfg(target_arch = "x86_64")]
    if (target.as_ptr() as usize).is_multiple_of(LINE_BYTES) {
        // SAFETY: both references cover 64 bytes, and the target is aligned to 16 as SSE2's streaming store demands.
        unsafe {
            let from = source.as_ptr().cast::<__m128i>();
            let to = target.as_mut_ptr().cast::<__m128i>();
            for i in 0..4 {
                _mm_stream_si128(to.add(i), _mm_loadu_si128(from.add(i)));
            }
        }
        return;
    }
    *target = *source;
}

/// Orders all earlier [`stream_line`] stores of this thread before its later ones.
#[inline]
pub fn stream_fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86_64; a fence touches no memory.
    unsafe {
        _mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_move_as_entries_of_a_vector() {
        let numbers: [u32; 16] = std::array::from_fn(|i| (i as u32 + 1).wrapping_mul(0x1111_1111));
        for position in 0..=16 {
            let mut filled = numbers.to_vec();
            filled[position..].fill(u32::MAX);
            assert_eq!(with_ones_from(&numbers, position).to_vec(), filled, "{position}");
        }
        for position in 0..16 {
            let mut longer = numbers.to_vec();
            longer.insert(position, 7);
            assert_eq!(insert_lane(&numbers, position, 7).to_vec(), longer[..16], "{position}");
            let mut shorter = numbers.to_vec();
            shorter.remove(position);
            shorter.push(9);
            assert_eq!(remove_lane(&numbers, position, 9).to_vec(), shorter, "{position}");
        }
    }

    #[test]
    fn and_counts_agree_at_every_length() {
        let a: Vec<u64> = (0..100).map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let b: Vec<u64> = a.iter().map(|x| x.rotate_left(17)).collect();
        for len in 0..a.len() {
            let expected = and_count_ones_portable(&a[..len], &b);
            assert_eq!(and_count_ones(&a[..len], &b), expected, "{len} words");
            #[cfg(target_arch = "x86_64")]
            if std::is_x86_feature_detected!("popcnt") {
                // SAFETY: the processor has the feature that the function is compiled for.
                assert_eq!(unsafe { and_count_ones_popcnt(&a[..len], &b) }, expected, "{len} words");
            }
        }
    }

    #[test]
    fn digits_are_told_from_all_other_bytes() {
        for byte in 0..=255_u8 {
            for place in 0..32 {
                let mut bytes = [if byte.is_ascii_digit() { b' ' } else { b'5' }; 32];
                bytes[place] = byte;
                let expected = if byte.is_ascii_digit() { !(1 << place) } else { 1 << place };
                assert_eq!(non_digits(&bytes), expected, "byte {byte} at {place}");
            }
        }
    }

    #[test]
    fn bytes_are_compared_without_sign() {
        for value in 0..=u8::MAX {
            for place in 0..32 {
                let mut bytes = [b'x'; 32];
                bytes[place] = value;
                let is_set = |condition: bool| if condition { 1_u32 << place } else { 0 };
                assert_eq!(equal_to(&bytes, b'\n'), is_set(value == b'\n'), "{value:#x} at {place}");
                assert_eq!(at_most(&bytes, b' '), is_set(value <= b' '), "{value:#x} at {place}");
            }
        }
    }

    #[test]
    fn numbers_below_a_bound_are_counted() {
        for step in [1, 7, u32::MAX / 16] {
            for first in [0, 3, u32::MAX - 15 * step] {
                let numbers: [u32; 16] = std::array::from_fn(|i| first.saturating_add(i as u32 * step));
                let near = |number: u32| [number.saturating_sub(1), number, number.saturating_add(1)];
                for bound in numbers.into_iter().flat_map(near).chain([0, 1 << 31, u32::MAX]) {
                    let expected = numbers.iter().filter(|&&number| number < bound).count();
                    assert_eq!(num_below(&numbers, bound), expected, "{numbers:?} below {bound}");
                }
            }
        }
    }

    #[test]
    fn streamed_lines_arrive() {
        let source: [u32; 16] = std::array::from_fn(|i| i as u32);
        let mut buffer = [0_u32; 64];
        for start in 0..48 {
            let target: &mut [u32; 16] = (&mut buffer[start..start + 16]).try_into().unwrap();
            stream_line(target, &source);
            stream_fence();
            assert_eq!(buffer[start..start + 16], source);
        }
        prefetch(&buffer, 1_000_000);
    }
}
