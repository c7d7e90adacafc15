//! Bitmaps: a plain one, and one that several threads set.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

const WORD_BITS: usize = u64::BITS as usize;

/// A fixed number of bits, initially clear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// Creates `len` clear bits. Cost: `len / 8` bytes.
    pub fn new(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(WORD_BITS)], len }
    }

    /// Number of bits.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the bitmap has no bits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether bit `index` is set.
    ///
    /// # Panics
    /// If `index` is not below the length rounded up to 64.
    #[inline]
    pub fn get(&self, index: usize) -> bool {
        self.words[index / WORD_BITS] >> (index % WORD_BITS) & 1 == 1
    }

    /// Sets bit `index`.
    ///
    /// # Panics
    /// If `index` is not below the length rounded up to 64. Debug builds check the length itself.
    #[inline]
    pub fn set(&mut self, index: usize) {
        debug_assert!(index < self.len);
        self.words[index / WORD_BITS] |= 1 << (index % WORD_BITS);
    }

    /// Clears bit `index`.
    ///
    /// # Panics
    /// As [`set`](Self::set).
    #[inline]
    pub fn unset(&mut self, index: usize) {
        debug_assert!(index < self.len);
        self.words[index / WORD_BITS] &= !(1 << (index % WORD_BITS));
    }

    /// Clears every bit.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// The bitmap with every bit inverted.
    #[must_use]
    pub fn complement(mut self) -> Self {
        self.words.iter_mut().for_each(|word| *word = !*word);
        // Bits beyond the length stay clear, because counts and lists include them.
        if let Some(last) = self.words.last_mut().filter(|_| !self.len.is_multiple_of(WORD_BITS)) {
            *last &= (1 << (self.len % WORD_BITS)) - 1;
        }
        self
    }

    /// Number of set bits.
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Positions of the set bits, ascending.
    pub fn iter_ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| ones(word).map(move |b| i * WORD_BITS + b))
    }

    /// The bits as words of 64. The lowest position is the lowest bit.
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

/// Positions of the set bits of one word, ascending.
#[inline]
pub fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if word == 0 {
            return None;
        }
        let bit = word.trailing_zeros() as usize;
        word &= word - 1;
        Some(bit)
    })
}

/// A fixed number of bits that several threads may set concurrently.
#[derive(Debug, Default)]
pub struct AtomicBitmap {
    words: Vec<AtomicU64>,
    len: usize,
}

impl AtomicBitmap {
    /// Creates `len` clear bits.
    pub fn new(len: usize) -> Self {
        Self { words: (0..len.div_ceil(WORD_BITS)).map(|_| AtomicU64::new(0)).collect(), len }
    }

    /// Number of bits.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the bitmap has no bits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether bit `index` is set. Synchronizes with the thread that set it.
    #[inline]
    pub fn get(&self, index: usize) -> bool {
        self.words[index / WORD_BITS].load(Ordering::Acquire) >> (index % WORD_BITS) & 1 == 1
    }

    /// Sets bit `index`. Returns true for the one caller that found it clear.
    #[inline]
    pub fn set(&self, index: usize) -> bool {
        debug_assert!(index < self.len);
        let mask = 1 << (index % WORD_BITS);
        let word = &self.words[index / WORD_BITS];
        // While threads share the bitmap, set bits stay set. A plain load then saves the locked instruction.
        // AcqRel: pairs with the load in `get`, so that what was done before is visible to a thread that sees the bit.
        word.load(Ordering::Relaxed) & mask == 0 && word.fetch_or(mask, Ordering::AcqRel) & mask == 0
    }

    /// Sets (or clears) bit `index`, while no other thread writes. Saves the locked instruction of [`set`](Self::set).
    #[inline]
    pub fn write_alone(&self, index: usize, is_set: bool) {
        debug_assert!(index < self.len);
        let (word, mask) = (&self.words[index / WORD_BITS], 1 << (index % WORD_BITS));
        let old = word.load(Ordering::Relaxed);
        word.store(if is_set { old | mask } else { old & !mask }, Ordering::Relaxed);
    }

    /// Position of the first bit in `range` that is set (or clear, by `is_set`), or the end of the range.
    ///
    /// # Panics
    /// If the range exceeds the bitmap.
    #[inline]
    pub fn find(&self, is_set: bool, range: Range<usize>) -> usize {
        let mut at = range.start;
        while at < range.end {
            let word = self.words[at / WORD_BITS].load(Ordering::Acquire);
            let wanted = if is_set { word } else { !word } >> (at % WORD_BITS);
            if wanted != 0 {
                return range.end.min(at + wanted.trailing_zeros() as usize);
            }
            at = (at / WORD_BITS + 1) * WORD_BITS;
        }
        range.end
    }

    /// Clears every bit.
    pub fn clear(&mut self) {
        self.words.iter_mut().for_each(|w| *w.get_mut() = 0);
    }

    /// The words, for reading and for setting 64 bits at a time.
    pub fn words(&self) -> &[AtomicU64] {
        &self.words
    }

    /// Number of set bits.
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|w| w.load(Ordering::Relaxed).count_ones() as usize).sum()
    }

    /// Converts to a plain bitmap.
    pub fn into_bitmap(self) -> Bitmap {
        Bitmap { words: self.words.into_iter().map(AtomicU64::into_inner).collect(), len: self.len }
    }
}

impl From<Bitmap> for AtomicBitmap {
    fn from(bitmap: Bitmap) -> Self {
        Self { words: bitmap.words.into_iter().map(AtomicU64::new).collect(), len: bitmap.len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_bits_are_listed_in_order() {
        let mut bitmap = Bitmap::new(200);
        for i in [0, 63, 64, 130, 199] {
            bitmap.set(i);
        }
        bitmap.unset(64);
        assert_eq!(bitmap.iter_ones().collect::<Vec<_>>(), [0, 63, 130, 199]);
        assert_eq!(bitmap.count_ones(), 4);
        assert!(bitmap.get(130) && !bitmap.get(131));
        bitmap.clear();
        assert_eq!(bitmap.count_ones(), 0);
    }

    #[test]
    fn complement_inverts_no_bit_beyond_the_length() {
        for len in [0, 1, 63, 64, 65, 200] {
            let mut bitmap = Bitmap::new(len);
            (0..len).step_by(3).for_each(|index| bitmap.set(index));
            let expected: Vec<_> = (0..len).filter(|index| index % 3 > 0).collect();
            let complement = bitmap.clone().complement();
            assert_eq!(complement.iter_ones().collect::<Vec<_>>(), expected, "{len}");
            assert_eq!(complement.complement(), bitmap, "{len}");
        }
    }

    #[test]
    fn bits_are_found_within_their_range() {
        let bitmap = AtomicBitmap::new(300);
        for index in [5, 6, 64, 200] {
            bitmap.set(index);
        }
        for (is_set, range, found) in [
            (true, 0..300, 5),
            (false, 5..300, 7),
            (true, 7..300, 64),
            (true, 65..300, 200),
            (true, 65..150, 150),
            (true, 65..200, 200),
            (false, 64..65, 65),
            (true, 9..9, 9),
        ] {
            assert_eq!(bitmap.find(is_set, range.clone()), found, "{is_set}, {range:?}");
        }
    }

    #[test]
    fn one_setter_wins() {
        let bitmap = AtomicBitmap::new(70);
        assert!(bitmap.set(69));
        assert!(!bitmap.set(69));
        assert!(bitmap.get(69));
        assert_eq!(bitmap.into_bitmap().iter_ones().collect::<Vec<_>>(), [69]);
    }
}
