//! Ids of integer keys that are small relative to the number of edges: a bitmap of the keys, with ranks.

use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::VertexId;
use anden_base::bitmap::{AtomicBitmap, ones};

/// Bits of a word.
const WORD_BITS: u64 = u64::BITS as u64;

/// The bitmap of the keys that exist.
pub(crate) struct Presence(AtomicBitmap);

impl Presence {
    /// No key yet; keys up to `max_key` may be set.
    pub(crate) fn new(max_key: u64) -> Self {
        Self(AtomicBitmap::new(max_key as usize + 1))
    }

    /// Bytes of a bitmap of keys up to `max_key`, with ranks.
    pub(crate) fn num_bytes(max_key: u64) -> u64 {
        (max_key / WORD_BITS + 1) * (size_of::<u64>() + size_of::<Word>()) as u64
    }

    #[inline(always)]
    pub(crate) fn set(&self, key: u64) {
        self.0.set(key as usize);
    }

    /// Sets all keys below `end`.
    pub(crate) fn set_below(&self, end: u64) {
        let words: &[AtomicU64] = self.0.words();
        // Whole words at once, because an input may say that all keys below a large bound exist.
        words[..(end / WORD_BITS) as usize].iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
        (end / WORD_BITS * WORD_BITS..end).for_each(|key| self.set(key));
    }

    /// Assigns ids in ascending order of the keys.
    pub(crate) fn into_ranks(self) -> Ranks {
        let mut num_keys = 0;
        let bitmap = self.0.into_bitmap();
        // One pass in the order of the words: a rank is the number of set bits before.
        let words = bitmap.words().iter().map(|&bits| {
            let before = num_keys as u32;
            num_keys += u64::from(bits.count_ones());
            Word { bits, before }
        });
        let words = words.collect();
        Ranks { words, num_keys }
    }
}

/// 64 keys, and the number of keys before them.
#[derive(Clone, Copy, Debug)]
struct Word {
    bits: u64,
    before: VertexId,
}

/// Maps keys to ids in ascending order of the keys.
#[derive(Debug)]
pub(crate) struct Ranks {
    words: Vec<Word>,
    num_keys: u64,
}

impl Ranks {
    /// The number of keys.
    pub(crate) fn len(&self) -> u64 {
        self.num_keys
    }

    /// Allocated bytes.
    pub(crate) fn num_bytes(&self) -> u64 {
        (self.words.len() * size_of::<Word>()) as u64
    }

    /// The id of an existing key.
    #[inline(always)]
    pub(crate) fn id(&self, key: u32) -> VertexId {
        // Bits and count lie side by side, so a lookup costs one cache miss.
        let word = self.words[key as usize / 64];
        word.before + (word.bits & ((1 << (key % 64)) - 1)).count_ones()
    }

    /// The key of each id.
    pub(crate) fn keys(&self) -> Vec<u64> {
        let mut keys = Vec::with_capacity(self.num_keys as usize);
        for (i, word) in self.words.iter().enumerate() {
            keys.extend(ones(word.bits).map(|bit| i as u64 * WORD_BITS + bit as u64));
        }
        keys
    }

    /// Whether every key is its own id.
    pub(crate) fn is_identity(&self) -> bool {
        self.words.last().is_none_or(|last| {
            let num_last = u64::from(last.bits.count_ones());
            // The last word may be used in part, but without a hole.
            let is_prefix = last.bits.trailing_ones() == last.bits.count_ones();
            is_prefix && self.num_keys == (self.words.len() as u64 - 1) * WORD_BITS + num_last
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_ranks() {
        let keys = [0, 5, 63, 64, 65, 127, 130, 999];
        let presence = Presence::new(999);
        keys.iter().for_each(|&key| presence.set(key));
        let ranks = presence.into_ranks();
        assert_eq!(ranks.keys(), keys);
        assert!((0..).zip(keys).all(|(rank, key)| ranks.id(key as u32) == rank));
        assert!(!ranks.is_identity());
    }

    #[test]
    fn ids_can_be_the_keys() {
        for end in [1, 63, 64, 65, 200] {
            let presence = Presence::new(end - 1);
            presence.set_below(end);
            let ranks = presence.into_ranks();
            assert_eq!((ranks.len(), ranks.is_identity()), (end, true));
            let presence = Presence::new(end + 1);
            presence.set_below(end);
            presence.set(end + 1);
            assert!(!presence.into_ranks().is_identity());
        }
    }
}
