//! The set of vertices that a search has visited.

use std::hash::Hasher;

use anden_base::VertexId;
use anden_base::bitmap::ones;
use anden_base::simd::and_count_ones;

use super::table::VertexHashTable;
use crate::Result;

/// A set of vertices: a bitmap on small graphs; on large ones a hash table that becomes a bitmap once it is as large.
///
/// A thread keeps the set from search to search. Its cost is proportional to the members, not to the graph.
#[derive(Default)]
pub(super) struct Visited {
    bound: usize,
    is_bitmap: bool,
    /// Whether the set has members that the search has not listed.
    is_marked: bool,
    /// All bits are zero between searches.
    words: Vec<u64>,
    few: VertexHashTable<()>,
    /// Scratch of [`sorted`](Self::sorted): the numbers of nonzero words.
    filled: Vec<u32>,
}

/// A hash table with more than 1/`DENSE` of the vertices takes more room than a bitmap.
const DENSE: usize = 64;

/// Up to this many bits (64 KB), a bitmap is the better choice from the start.
const SMALL_BOUND: usize = 1 << 19;

/// [`Visited::sorted`] writes this many bits of a word without a branch.
const BITS_AT_ONCE: usize = 4;

/// A bitmap with more words than this for each member is not scanned.
const SPARSE_WORDS: usize = 16;

impl Visited {
    /// Begins a search among vertices below `bound`. The caller has ended the last search.
    pub(super) fn begin(&mut self, bound: usize) {
        self.bound = bound;
        self.is_bitmap = bound <= SMALL_BOUND;
        self.is_marked = false;
        self.few.clear();
        if self.is_bitmap {
            self.make_bitmap();
        }
    }

    /// Empties the set. `vertices` are all members except the marked ones.
    pub(super) fn end(&mut self, vertices: &[VertexId]) {
        if self.is_bitmap {
            // Few members: clear their words only. Otherwise filling the bitmap is cheaper.
            match !self.is_marked && vertices.len() * SPARSE_WORDS < self.num_words() {
                true => vertices.iter().for_each(|&v| self.words[v as usize / 64] = 0),
                false => self.words[..self.bound.div_ceil(64)].fill(0),
            }
        }
    }

    /// The most bytes of a set with `num_vertices` of `bound` vertices.
    pub(super) fn most_bytes(bound: usize, num_vertices: usize) -> usize {
        let bitmap_bytes = bound.div_ceil(64) * (size_of::<u64>() + size_of::<u32>());
        if bound <= SMALL_BOUND {
            return bitmap_bytes;
        }
        let few = num_vertices.min(bound / DENSE + 1) * VertexHashTable::<()>::MOST_BYTES;
        if num_vertices > bound / DENSE { few + bitmap_bytes } else { few }
    }

    pub(super) fn num_bytes(&self) -> usize {
        self.words.capacity() * 8 + self.filled.capacity() * 4 + self.few.num_bytes()
    }

    /// Adds a vertex. Returns whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, vertex: VertexId) -> bool {
        if self.is_bitmap {
            return set(&mut self.words, vertex);
        }
        let (_, is_new) = self.few.entry(vertex, ());
        if is_new && self.few.len() > self.bound / DENSE {
            self.make_bitmap();
            // The bitmap takes over the members of the table.
            for vertex in self.few.vertices() {
                self.words[vertex as usize / 64] |= 1 << (vertex % 64);
            }
            self.is_bitmap = true;
        }
        is_new
    }

    /// Whether marking `num_vertices` vertices, duplicates included, costs less than listing the new ones.
    pub(super) fn is_worth_marking(&self, num_vertices: usize) -> bool {
        self.is_bitmap && num_vertices * SPARSE_WORDS >= self.num_words()
    }

    /// Adds vertices without listing the new ones. The set must be a bitmap.
    #[inline]
    pub(super) fn mark_all(&mut self, vertices: &[VertexId]) {
        debug_assert!(self.is_bitmap);
        self.is_marked = true;
        let words = &mut self.words[..];
        vertices.iter().for_each(|&v| words[v as usize / 64] |= 1 << (v % 64));
    }

    /// Adds vertices, and appends the new ones to `found` in their order.
    #[inline]
    pub(super) fn insert_all(&mut self, vertices: &[VertexId], found: &mut Vec<VertexId>) {
        if !self.is_bitmap {
            found.extend(vertices.iter().filter(|&&v| self.insert(v)));
            return;
        }
        let num_before = found.len();
        found.resize(num_before + vertices.len(), 0);
        let (room, words) = (&mut found[num_before..], &mut self.words[..]);
        let mut num_new = 0;
        for &v in vertices {
            // Write always, keep if new: a branch here would be unpredictable.
            room[num_new] = v;
            num_new += usize::from(set(words, v));
        }
        found.truncate(num_before + num_new);
    }

    /// Removes a member.
    pub(super) fn remove(&mut self, vertex: VertexId) {
        // `sorted` does not read the table, so only the bitmap needs the removal.
        if self.is_bitmap {
            self.words[vertex as usize / 64] &= !(1 << (vertex % 64));
        }
    }

    /// The members, ascending: `vertices` and the marked ones. If marked members must be counted, calls `room` with the
    /// count before the list is allocated.
    pub(super) fn sorted(
        &mut self,
        vertices: &[VertexId],
        room: impl FnOnce(usize) -> Result<()>,
    ) -> Result<Vec<VertexId>> {
        // Few members: sorting them costs less than a scan of the bitmap.
        if !self.is_marked && (!self.is_bitmap || vertices.len() * SPARSE_WORDS < self.num_words()) {
            let mut sorted = vertices.to_vec();
            sorted.sort_unstable();
            return Ok(sorted);
        }
        // Whether a word has bits, and the number of them, is unpredictable. So the first loop writes each word number,
        // and keeps it if the word has bits. The second loop writes [`BITS_AT_ONCE`] bits of each word without a
        // branch.
        let words = &self.words[..self.bound.div_ceil(64)];
        self.filled.resize(words.len(), 0);
        // Counts with vector instructions if the processor has them.
        let num_vertices = and_count_ones(words, words) as usize;
        room(num_vertices)?;
        let mut num_filled = 0;
        for (number, &word) in words.iter().enumerate() {
            self.filled[num_filled] = number as u32;
            num_filled += usize::from(word != 0);
        }
        // The first loop writes a fixed number of slots, also for the last word.
        let mut sorted = vec![0; num_vertices + BITS_AT_ONCE];
        let mut end = 0;
        for &number in &self.filled[..num_filled] {
            let (first, mut word) = (number * 64, words[number as usize]);
            let mut num_bits = 0;
            for slot in &mut sorted[end..end + BITS_AT_ONCE] {
                // The number from an exhausted word is garbage, which is overwritten or cut off.
                *slot = first.wrapping_add(word.trailing_zeros());
                num_bits += usize::from(word != 0);
                word &= word.wrapping_sub(1);
            }
            end += num_bits;
            for bit in ones(word) {
                sorted[end] = first + bit as VertexId;
                end += 1;
            }
        }
        sorted.truncate(num_vertices);
        Ok(sorted)
    }

    fn num_words(&self) -> usize {
        self.bound.div_ceil(64)
    }

    fn make_bitmap(&mut self) {
        if self.words.len() < self.num_words() {
            self.words = vec![0; self.num_words()];
        }
    }
}

/// Sets the bit of a vertex. Returns whether it was clear.
#[inline(always)]
fn set(words: &mut [u64], vertex: VertexId) -> bool {
    let word = &mut words[vertex as usize / 64];
    let bit = 1 << (vertex % 64);
    let is_new = *word & bit == 0;
    *word |= bit;
    is_new
}

/// A hash of vertex ids by one multiplication, whose high bits are well mixed. No defense against chosen ids: their
/// author could only slow down his own query.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(self.0 as u32 ^ u32::from(byte)));
    }

    fn write_u32(&mut self, id: u32) {
        self.0 = (u64::from(id) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_remember_and_forget() {
        let mut visited = Visited::default();
        let few = (SMALL_BOUND, 100);
        for (bound, num_found) in [(64 * 20, 400), (SMALL_BOUND + 1, 300), (SMALL_BOUND + 1, 60_000), (64 * 20, 3), few]
        {
            // Twice: the first search must leave no members.
            for _ in 0..2 {
                visited.begin(bound);
                assert_eq!(visited.is_bitmap, bound <= SMALL_BOUND);
                let found: Vec<VertexId> = (0..num_found).map(|i| i * 3 * 7919 % bound as u32).collect();
                let mut new = vec![7];
                visited.insert_all(&found, &mut new);
                assert!(new[0] == 7 && new[1..] == found, "{num_found} of {bound}");
                visited.insert_all(&found, &mut new);
                assert_eq!(new.len(), found.len() + 1, "{num_found} of {bound}");
                assert!(found.iter().all(|&v| !visited.insert(v)), "{num_found} of {bound}");
                assert_eq!(visited.is_bitmap, bound <= SMALL_BOUND || num_found as usize > bound / DENSE);
                visited.remove(found[0]);
                let mut wanted = found[1..].to_vec();
                wanted.sort_unstable();
                assert_eq!(visited.sorted(&found[1..], |_| Ok(())).unwrap(), wanted, "{num_found} of {bound}");
                if visited.is_bitmap {
                    // New vertices, and one that is a member already.
                    let last = bound as VertexId - 1;
                    visited.mark_all(&[found[1], 1, 2, last]);
                    wanted.extend([1, 2, last].iter().filter(|&v| !found[1..].contains(v)));
                    wanted.sort_unstable();
                    assert_eq!(
                        visited.sorted(&found[1..], |_| Ok(())).unwrap(),
                        wanted,
                        "{num_found} of {bound}, and marked"
                    );
                }
                visited.end(&found);
                assert!(visited.words.iter().all(|&word| word == 0));
            }
        }
    }
}
