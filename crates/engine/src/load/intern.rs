//! Key tables: numbers for keys in the order in which a worker meets them.
//!
//! Each worker has its own table, so that workers share nothing while they read. [`super::keys`] joins the tables.

use std::hash::{BuildHasher, RandomState};

use anden_base::simd::prefetch;
use anden_formats::Span;

/// Edges whose slots are prefetched together, so that cache misses overlap.
const BATCH: usize = 16;
const FIRST_SLOTS: usize = 1 << 10;

/// Keys of one kind in the order of their first appearance.
pub(crate) trait KeyTable: Sized + Send {
    /// A key as a block has it.
    type Key: Copy;

    /// An empty table. With `firsts`, the table remembers the first position of each key.
    fn new(firsts: bool) -> Self;

    /// The number of `key`; a new one if the key is new. `text` holds the keys of the block, `position` is the key's
    /// place in the input.
    fn intern(&mut self, key: Self::Key, text: &[u8], position: u64) -> u32;

    /// Hints that `key` is looked up soon.
    fn will_need(&self, key: Self::Key, text: &[u8]);

    /// The number of keys.
    fn len(&self) -> usize;

    /// Allocated bytes.
    fn num_bytes(&self) -> usize;

    /// Numbers both ends of each edge; positions count up from `position`.
    fn intern_edges(
        &mut self,
        edges: &[(Self::Key, Self::Key)],
        text: &[u8],
        mut position: u64,
        mut body: impl FnMut(usize, u32, u32),
    ) {
        for (i, batch) in edges.chunks(BATCH).enumerate() {
            for &(source, target) in batch {
                self.will_need(source, text);
                self.will_need(target, text);
            }
            for (j, &(source, target)) in batch.iter().enumerate() {
                let source = self.intern(source, text, position);
                let target = self.intern(target, text, position + 1);
                body(i * BATCH + j, source, target);
                position += 2;
            }
        }
    }
}

/// The slots of a hash table with linear probing: 0 for free, else a key's number plus one.
struct InternSlots {
    slots: Vec<u32>,
    /// Random, so that an input cannot contain keys chosen to collide.
    seed: u64,
}

impl InternSlots {
    fn new() -> Self {
        Self { slots: vec![0; FIRST_SLOTS], seed: RandomState::new().hash_one(0) }
    }

    #[inline(always)]
    fn hash(&self, word: u64) -> u64 {
        // The finisher of MurmurHash3, keyed by the seed.
        let mut hash = (word ^ self.seed).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 33;
        // A shift keeps the factor odd, so the product loses no bits.
        hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53 ^ self.seed << 1);
        hash ^ hash >> 29
    }

    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    /// The number for which `is_same` holds, or the free slot for it.
    #[inline(always)]
    fn find(&self, hash: u64, is_same: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mut slot = self.home(hash);
        loop {
            match self.slots[slot] {
                0 => return Err(slot),
                taken if is_same(taken - 1) => return Ok(taken - 1),
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// Doubles the slots once they are half full. `hash_of` gives the hash of a number's key.
    fn grow(&mut self, len: usize, hash_of: impl Fn(&Self, u32) -> u64) {
        // Half full at most, so that probes stay short.
        if 2 * len < self.slots.len() {
            return;
        }
        let num_slots = 2 * self.slots.len();
        // Freed first: the keys suffice to fill the new slots.
        drop(std::mem::take(&mut self.slots));
        self.slots = anden_base::memory::zeroed_huge(num_slots);
        // All keys differ, so the first free slot serves.
        for number in 0..len as u32 {
            if let Err(slot) = self.find(hash_of(self, number), |_| false) {
                self.slots[slot] = number + 1;
            }
        }
    }
}

/// The first position of each key, if it is needed.
struct Firsts(Option<Vec<u64>>);

impl Firsts {
    #[inline(always)]
    fn note(&mut self, number: u32, position: u64) {
        if let Some(firsts) = &mut self.0 {
            match firsts.get_mut(number as usize) {
                // The smallest counts, whatever the order of the calls.
                Some(first) => *first = position.min(*first),
                None => firsts.push(position),
            }
        }
    }

    fn num_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |firsts| 8 * firsts.capacity())
    }
}

/// Integers.
pub(crate) struct IntegerTable {
    slots: InternSlots,
    keys: Vec<u64>,
    firsts: Firsts,
}

impl IntegerTable {
    /// The keys by number, and the first position of each.
    pub(crate) fn into_parts(self) -> (Vec<u64>, Option<Vec<u64>>) {
        (self.keys, self.firsts.0)
    }

    /// The number of a known key.
    pub(crate) fn find(&self, key: u64) -> Option<u32> {
        self.slots.find(self.slots.hash(key), |number| self.keys[number as usize] == key).ok()
    }
}

impl KeyTable for IntegerTable {
    type Key = u64;

    fn new(firsts: bool) -> Self {
        Self { slots: InternSlots::new(), keys: Vec::new(), firsts: Firsts(firsts.then(Vec::new)) }
    }

    #[inline]
    fn intern(&mut self, key: u64, _text: &[u8], position: u64) -> u32 {
        let hash = self.slots.hash(key);
        let number = match self.slots.find(hash, |number| self.keys[number as usize] == key) {
            Ok(number) => number,
            Err(slot) => {
                let number = self.keys.len() as u32;
                self.slots.slots[slot] = number + 1;
                self.keys.push(key);
                let keys = &self.keys;
                // Grown now, so that each search meets a free slot.
                self.slots.grow(keys.len(), |slots, number| slots.hash(keys[number as usize]));
                number
            }
        };
        self.firsts.note(number, position);
        number
    }

    #[inline(always)]
    fn will_need(&self, key: u64, _text: &[u8]) {
        prefetch(&self.slots.slots, self.slots.home(self.slots.hash(key)));
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn num_bytes(&self) -> usize {
        4 * self.slots.slots.len() + 8 * self.keys.capacity() + self.firsts.num_bytes()
    }
}

/// Strings.
pub(crate) struct TextTable {
    slots: InternSlots,
    /// The hash of each key: comparing hashes first avoids most text comparisons.
    hashes: Vec<u64>,
    /// The end of each key in the text; it begins at the end of the one before.
    ends: Vec<u64>,
    text: Vec<u8>,
    firsts: Firsts,
}

impl TextTable {
    fn hash(&self, key: &[u8]) -> u64 {
        let (words, rest) = key.as_chunks::<8>();
        // The length tells keys apart that differ only in zeros at the end.
        let mut hash = key.len() as u64;
        for word in words {
            hash = self.slots.hash(hash.rotate_left(29) ^ u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.slots.hash(hash.rotate_left(29) ^ u64::from_le_bytes(last))
    }

    /// The key with a number.
    pub(crate) fn key(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[number] as usize]
    }

    /// The first position of each key.
    pub(crate) fn firsts(&self) -> Option<&[u64]> {
        self.firsts.0.as_deref()
    }
}

impl KeyTable for TextTable {
    type Key = Span;

    fn new(firsts: bool) -> Self {
        let firsts = Firsts(firsts.then(Vec::new));
        Self { slots: InternSlots::new(), hashes: Vec::new(), ends: Vec::new(), text: Vec::new(), firsts }
    }

    fn intern(&mut self, key: Span, text: &[u8], position: u64) -> u32 {
        let key = key.of(text);
        let hash = self.hash(key);
        let is_same = |number: u32| self.hashes[number as usize] == hash && self.key(number) == key;
        let number = match self.slots.find(hash, is_same) {
            Ok(number) => number,
            Err(slot) => {
                let number = self.ends.len() as u32;
                self.slots.slots[slot] = number + 1;
                self.text.extend_from_slice(key);
                self.ends.push(self.text.len() as u64);
                self.hashes.push(hash);
                let hashes = &self.hashes;
                // The stored hash saves reading the text of each key.
                self.slots.grow(hashes.len(), |_, number| hashes[number as usize]);
                number
            }
        };
        self.firsts.note(number, position);
        number
    }

    #[inline]
    fn will_need(&self, key: Span, text: &[u8]) {
        prefetch(&self.slots.slots, self.slots.home(self.hash(key.of(text))));
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn num_bytes(&self) -> usize {
        let words = self.hashes.capacity() + self.ends.capacity();
        4 * self.slots.slots.len() + 8 * words + self.text.capacity() + self.firsts.num_bytes()
    }
}

/// Dense keys are ids and need no numbers.
pub(crate) struct NoTable;

impl KeyTable for NoTable {
    type Key = u32;

    fn new(_firsts: bool) -> Self {
        Self
    }

    fn intern(&mut self, key: u32, _text: &[u8], _position: u64) -> u32 {
        key
    }

    fn will_need(&self, _key: u32, _text: &[u8]) {}

    fn len(&self) -> usize {
        0
    }

    fn num_bytes(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_keep_their_numbers() {
        let mut table = IntegerTable::new(true);
        let keys: Vec<u64> = (0..10_000).map(|i: u64| (i % 3000).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let edges: Vec<_> = keys.as_chunks::<2>().0.iter().map(|&[a, b]| (a, b)).collect();
        table.intern_edges(&edges, &[], 100, |i, a, b| assert_eq!([a, b], [2 * i, 2 * i + 1].map(|k| k as u32 % 3000)));
        assert_eq!((table.len(), table.find(keys[7]), table.find(1)), (3000, Some(7), None));
        assert!(table.num_bytes() >= 3000 * 12);
        let (by_number, firsts) = table.into_parts();
        assert_eq!(by_number, keys[..3000]);
        assert_eq!(firsts.unwrap(), (100..3100).collect::<Vec<_>>());
    }

    #[test]
    fn strings_keep_their_numbers() {
        let mut table = TextTable::new(false);
        let words: Vec<String> = (0..5000).map(|i| "x".repeat(i % 23) + &(i % 1000).to_string()).collect();
        let mut known = std::collections::HashMap::new();
        for word in &words {
            let next = known.len() as u32;
            let expected = *known.entry(word).or_insert(next);
            let span = Span { start: 1, len: word.len() as u32 };
            assert_eq!(table.intern(span, format!("_{word}_").as_bytes(), 0), expected);
            assert_eq!(table.key(expected), word.as_bytes());
        }
        assert_eq!((table.len(), table.firsts()), (known.len(), None));
    }
}
