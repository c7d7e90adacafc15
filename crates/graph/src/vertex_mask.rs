//! A set of vertices: the ones with adjacency lists that a caller reads.

use std::ops::Range;
use std::sync::atomic::Ordering;

use anden_base::VertexId;
use anden_base::bitmap::{AtomicBitmap, ones};

/// The words of the bitmap of one group.
const WORDS: usize = 16;

/// Prefetch distances of [`VertexMask::for_each_in_steps`], in lists. Blocks are fetched earlier than leaves, because
/// the block holds the address of the leaf.
const FAR: usize = 16;
const NEAR: usize = 8;

/// A set of vertices among 1,024 consecutive ones, the *group*, which starts at a multiple of 1,024.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VertexMask {
    first_word: usize,
    words: [u64; WORDS],
}

impl VertexMask {
    /// The number of vertices in a group.
    pub const VERTICES: usize = WORDS * 64;

    /// An empty set over the group of `vertex`.
    #[inline]
    pub fn none_near(vertex: VertexId) -> Self {
        Self { first_word: vertex as usize / Self::VERTICES * WORDS, words: [0; WORDS] }
    }

    /// The full sets that cover `vertices`, group by group.
    #[inline]
    pub fn groups(vertices: Range<VertexId>) -> impl Iterator<Item = Self> {
        let mut rest = vertices;
        std::iter::from_fn(move || {
            let mut group = (!rest.is_empty()).then(|| Self::none_near(rest.start))?;
            let (first, end) = (group.first_word * 64, rest.end as usize);
            for (i, word) in group.words.iter_mut().enumerate() {
                let low = (rest.start as usize).saturating_sub(first + i * 64).min(64);
                let high = end.saturating_sub(first + i * 64).min(64);
                if low < high {
                    // Both shifts are below 64, because `low < high <= 64`.
                    *word = !0 >> (64 - high) & !0 << low;
                }
            }
            rest.start = end.min(first + Self::VERTICES) as VertexId;
            Some(group)
        })
    }

    /// Filters the set by words: keeps the bits that `word` returns for a word's number and its set bits.
    #[inline(always)]
    pub fn among(mut self, mut word: impl FnMut(usize, u64) -> u64) -> Self {
        for (i, bits) in self.words.iter_mut().enumerate() {
            // An empty word needs no call.
            if *bits != 0 {
                *bits &= word(self.first_word + i, *bits);
            }
        }
        self
    }

    /// The first vertex of the group.
    #[inline(always)]
    pub fn first(&self) -> VertexId {
        (self.first_word * 64) as VertexId
    }

    /// Whether the set is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        // No early exit: sixteen words without branches take a few vector instructions.
        self.words.iter().fold(0, |any, word| any | word) == 0
    }

    /// The number of vertices in the set.
    #[inline]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The bits of a word of the group, by its number in a bitmap of all vertices.
    #[inline(always)]
    pub fn word(&self, number: usize) -> u64 {
        // A group starts at a multiple of sixteen words.
        self.words[number % WORDS]
    }

    /// Whether the set contains `vertex`, which must be of the group.
    #[inline(always)]
    pub fn contains(&self, vertex: VertexId) -> bool {
        self.words[vertex as usize / 64 % WORDS] >> (vertex % 64) & 1 == 1
    }

    /// Adds `vertex`, which must be of the group.
    #[inline(always)]
    pub fn insert(&mut self, vertex: VertexId) {
        self.words[vertex as usize / 64 % WORDS] |= 1 << (vertex % 64);
    }

    /// The nonzero words with their numbers.
    #[inline(always)]
    pub fn words(&self) -> impl Iterator<Item = (usize, u64)> {
        let words = self.words.iter().enumerate().filter(|&(_, &bits)| bits != 0);
        words.map(|(i, &bits)| (self.first_word + i, bits))
    }

    /// The vertices of the set, ascending.
    #[inline(always)]
    pub fn vertices(&self) -> impl Iterator<Item = VertexId> {
        let (mut i, mut bits) = (0, self.words[0]);
        std::iter::from_fn(move || {
            while bits == 0 {
                i += 1;
                bits = *self.words.get(i)?;
            }
            let bit = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            Some(((self.first_word + i) * 64 + bit) as VertexId)
        })
    }

    /// The difference of two sets over one group.
    #[inline(always)]
    pub fn without(mut self, others: &Self) -> Self {
        debug_assert_eq!(self.first_word, others.first_word);
        self.words.iter_mut().zip(&others.words).for_each(|(bits, others)| *bits &= !others);
        self
    }

    /// The intersection of two sets over one group.
    #[inline(always)]
    pub fn both(mut self, others: &Self) -> Self {
        debug_assert_eq!(self.first_word, others.first_word);
        self.words.iter_mut().zip(&others.words).for_each(|(bits, others)| *bits &= others);
        self
    }

    /// The intersection with a bitmap of all vertices. Vertices behind the end of the bitmap are left out.
    #[inline(always)]
    pub fn set_in(mut self, bitmap: &AtomicBitmap) -> Self {
        // The bitmap may end before the group.
        let words = bitmap.words().get(self.first_word..).unwrap_or_default();
        for (i, bits) in self.words.iter_mut().enumerate() {
            // Acquire: pairs with the store in `AtomicBitmap::set`, so that work done before the bit is visible.
            *bits &= words.get(i).map_or(0, |word| word.load(Ordering::Acquire));
        }
        self
    }

    /// Calls `read` with each vertex, ascending. Calls `place` sixteen vertices and `list` eight vertices ahead, so
    /// that they can prefetch the list's address and then the list.
    #[inline(always)]
    pub fn for_each_in_steps(
        &self,
        mut place: impl FnMut(VertexId),
        mut list: impl FnMut(VertexId),
        mut read: impl FnMut(VertexId),
    ) {
        let (mut places, mut lists) = (self.vertices(), self.vertices());
        // Without this start, the first lists would be read without a prefetch.
        places.by_ref().take(FAR).for_each(&mut place);
        lists.by_ref().take(NEAR).for_each(&mut list);
        for vertex in self.vertices() {
            places.next().into_iter().for_each(&mut place);
            lists.next().into_iter().for_each(&mut list);
            read(vertex);
        }
    }
}

/// The vertices of the set bits of `wanted`, ascending. Bit 0 is the vertex `64 * word`.
#[inline(always)]
pub fn vertices_of(word: usize, wanted: u64) -> impl Iterator<Item = VertexId> {
    ones(wanted).map(move |bit| (word * 64 + bit) as VertexId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_hold_all_vertices_in_order() {
        for (start, end) in [(0, 0), (0, 1), (3, 5), (60, 70), (1000, 1030), (1024, 2048), (63, 5000), (7, 7)] {
            let groups: Vec<_> = VertexMask::groups(start..end).collect();
            assert!(groups.iter().flat_map(VertexMask::vertices).eq(start..end));
            assert!(groups.iter().all(|group| group.first() % 1024 == 0 && !group.is_empty()));
            assert_eq!(groups.iter().map(VertexMask::len).sum::<usize>(), (end - start) as usize);
        }
    }

    #[test]
    fn sets_are_told_apart() {
        let [all] = VertexMask::groups(1024..1400).collect::<Vec<_>>()[..] else { panic!("more than one group") };
        let even = all.among(|_, _| 0x5555_5555_5555_5555);
        assert!(even.vertices().eq((1024..1400).step_by(2)));
        assert!(all.without(&even).vertices().eq((1025..1400).step_by(2)));
        assert_eq!((even.both(&all), all.without(&all).is_empty()), (even, true));
        // A bitmap may end within the group.
        for len in [0, 1030, 1024 + 64, 1024 + 200, 3000] {
            let bits = AtomicBitmap::new(len);
            (0..len).filter(|index| index % 3 == 0).for_each(|index| {
                bits.set(index);
            });
            assert!(all.set_in(&bits).vertices().eq((1024..1400).filter(|v| v % 3 == 0 && (*v as usize) < len)));
        }
        let mut one = VertexMask::none_near(1300);
        one.insert(1300);
        assert!(one.vertices().eq([1300]) && one.contains(1300) && !one.contains(1301));
    }

    #[test]
    fn hints_come_before_what_they_are_for() {
        for len in [0, 1, 7, 8, 9, 16, 17, 600] {
            let group = VertexMask::groups(0..len).next().unwrap_or_default();
            let seen = std::cell::RefCell::new((0, 0, 0));
            group.for_each_in_steps(
                |vertex| {
                    assert_eq!(vertex, seen.borrow().0);
                    seen.borrow_mut().0 += 1;
                },
                |vertex| {
                    assert!(vertex == seen.borrow().1 && vertex < seen.borrow().0);
                    seen.borrow_mut().1 += 1;
                },
                |vertex| {
                    assert!(vertex == seen.borrow().2 && vertex < seen.borrow().1);
                    seen.borrow_mut().2 += 1;
                },
            );
            assert_eq!(*seen.borrow(), (len, len, len));
        }
    }
}
