//! Which of the lists of consecutive vertices are read.

use std::ops::Range;
use std::sync::atomic::Ordering;

use base::VertexId;
use base::bitmap::{AtomicBitmap, ones};

/// Words of a bitmap that say which lists of a group are wanted.
const WORDS: usize = 16;

/// Lists ahead of which it is fetched where they are, and what they hold.
const FAR: usize = 16;
const NEAR: usize = 8;

/// Some of 1,024 consecutive vertices, the first of which is a multiple of that: those whose lists are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedLists {
    first_word: usize,
    words: [u64; WORDS],
}

impl WantedLists {
    /// The vertices that one of these can hold.
    pub const VERTICES: usize = WORDS * 64;

    /// None of those that `vertex` is one of.
    #[inline]
    pub fn none_near(vertex: VertexId) -> Self {
        Self { first_word: vertex as usize / Self::VERTICES * WORDS, words: [0; WORDS] }
    }

    /// All of the vertices, group by group.
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
                    *word = !0 >> (64 - high) & !0 << low;
                }
            }
            rest.start = end.min(first + Self::VERTICES) as VertexId;
            Some(group)
        })
    }

    /// Those of them of which a word that covers them says so, from its number and the bits that are wanted of it.
    #[inline(always)]
    pub fn among(mut self, mut word: impl FnMut(usize, u64) -> u64) -> Self {
        for (i, bits) in self.words.iter_mut().enumerate() {
            if *bits != 0 {
                *bits &= word(self.first_word + i, *bits);
            }
        }
        self
    }

    /// The first vertex that may be one of them.
    #[inline(always)]
    pub fn first(&self) -> VertexId {
        (self.first_word * 64) as VertexId
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.words.iter().fold(0, |any, word| any | word) == 0
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The bits of the word with this number, which has to be near them.
    #[inline(always)]
    pub fn word(&self, number: usize) -> u64 {
        self.words[number % WORDS]
    }

    /// Whether a vertex is one of them, which has to be near them.
    #[inline(always)]
    pub fn contains(&self, vertex: VertexId) -> bool {
        self.words[vertex as usize / 64 % WORDS] >> (vertex % 64) & 1 == 1
    }

    /// Makes a vertex one of them, which has to be near them.
    #[inline(always)]
    pub fn insert(&mut self, vertex: VertexId) {
        self.words[vertex as usize / 64 % WORDS] |= 1 << (vertex % 64);
    }

    /// The number of each word and the bits that are set in it, where there are any.
    #[inline(always)]
    pub fn words(&self) -> impl Iterator<Item = (usize, u64)> {
        let words = self.words.iter().enumerate().filter(|&(_, &bits)| bits != 0);
        words.map(|(i, &bits)| (self.first_word + i, bits))
    }

    /// The vertices, ascending.
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

    /// Those of them that are not of others, which are near them.
    #[inline(always)]
    pub fn without(mut self, others: &Self) -> Self {
        debug_assert_eq!(self.first_word, others.first_word);
        self.words.iter_mut().zip(&others.words).for_each(|(bits, others)| *bits &= !others);
        self
    }

    /// Those of them that are of others, too, which are near them.
    #[inline(always)]
    pub fn both(mut self, others: &Self) -> Self {
        debug_assert_eq!(self.first_word, others.first_word);
        self.words.iter_mut().zip(&others.words).for_each(|(bits, others)| *bits &= others);
        self
    }

    /// Those of them whose bits are set; none that the bitmap has no bits for.
    #[inline(always)]
    pub fn set_in(mut self, bitmap: &AtomicBitmap) -> Self {
        let words = bitmap.words().get(self.first_word..).unwrap_or_default();
        for (i, bits) in self.words.iter_mut().enumerate() {
            *bits &= words.get(i).map_or(0, |word| word.load(Ordering::Acquire));
        }
        self
    }

    /// Calls `read` with each of them, ascending, some time before `place`, and between the two `list`: hints to fetch
    /// where its list is, and what that holds.
    #[inline(always)]
    pub fn for_each_in_steps(
        &self,
        mut place: impl FnMut(VertexId),
        mut list: impl FnMut(VertexId),
        mut read: impl FnMut(VertexId),
    ) {
        let (mut places, mut lists) = (self.vertices(), self.vertices());
        places.by_ref().take(FAR).for_each(&mut place);
        lists.by_ref().take(NEAR).for_each(&mut list);
        for vertex in self.vertices() {
            places.next().into_iter().for_each(&mut place);
            lists.next().into_iter().for_each(&mut list);
            read(vertex);
        }
    }
}

/// The vertices, from `64 * word` on, whose bits are set in `wanted`, ascending.
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
            let groups: Vec<_> = WantedLists::groups(start..end).collect();
            assert!(groups.iter().flat_map(WantedLists::vertices).eq(start..end));
            assert!(groups.iter().all(|group| group.first() % 1024 == 0 && !group.is_empty()));
            assert_eq!(groups.iter().map(WantedLists::len).sum::<usize>(), (end - start) as usize);
        }
    }

    #[test]
    fn sets_are_told_apart() {
        let [all] = WantedLists::groups(1024..1400).collect::<Vec<_>>()[..] else { panic!("more than one group") };
        let even = all.among(|_, _| 0x5555_5555_5555_5555);
        assert!(even.vertices().eq((1024..1400).step_by(2)));
        assert!(all.without(&even).vertices().eq((1025..1400).step_by(2)));
        assert_eq!((even.both(&all), all.without(&all).is_empty()), (even, true));
        // A bitmap that ends within them has no bits for the others.
        for len in [0, 1030, 1024 + 64, 1024 + 200, 3000] {
            let bits = AtomicBitmap::new(len);
            (0..len).filter(|index| index % 3 == 0).for_each(|index| {
                bits.set(index);
            });
            assert!(all.set_in(&bits).vertices().eq((1024..1400).filter(|v| v % 3 == 0 && (*v as usize) < len)));
        }
        let mut one = WantedLists::none_near(1300);
        one.insert(1300);
        assert!(one.vertices().eq([1300]) && one.contains(1300) && !one.contains(1301));
    }

    #[test]
    fn hints_come_before_what_they_are_for() {
        for len in [0, 1, 7, 8, 9, 16, 17, 600] {
            let group = WantedLists::groups(0..len).next().unwrap_or_default();
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
