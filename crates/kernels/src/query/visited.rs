//! Which vertices a search has seen.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use base::VertexId;
use base::bitmap::Bitmap;

use super::table_bytes;

/// A set that is a hash table while it is small and a bitmap when it is not.
pub(super) enum Visited {
    Few { bound: usize, vertices: HashSet<VertexId, BuildHasherDefault<IdHasher>> },
    Many(Bitmap),
}

/// A hash table of more than 1/`DENSE` of the vertices takes more room than a bitmap of all.
const DENSE: usize = 64;

impl Visited {
    pub(super) fn new(bound: usize) -> Self {
        Self::Few { bound, vertices: HashSet::default() }
    }

    /// The most bytes that it takes with so many of `bound` vertices in it.
    pub(super) fn most_bytes(bound: usize, num_vertices: usize) -> usize {
        let few = num_vertices.min(bound / DENSE + 1) * table_bytes(size_of::<VertexId>());
        if num_vertices > bound / DENSE { few + bound.div_ceil(64) * 8 } else { few }
    }

    /// Adds a vertex; whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, vertex: VertexId) -> bool {
        match self {
            Self::Many(bits) => {
                let is_new = !bits.get(vertex as usize);
                bits.set(vertex as usize);
                is_new
            }
            Self::Few { bound, vertices } => {
                let is_new = vertices.insert(vertex);
                if vertices.len() > *bound / DENSE {
                    let mut bits = Bitmap::new(*bound);
                    vertices.iter().for_each(|&v| bits.set(v as usize));
                    *self = Self::Many(bits);
                }
                is_new
            }
        }
    }
}

/// A hash of vertex ids: one multiplication, whose high bits are good. Ids are not chosen by an
/// adversary, who could do no more than slow down his own question.
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
    fn both_forms_remember() {
        let mut visited = Visited::new(64 * 20);
        for round in [true, false] {
            for v in (0..1200).step_by(7) {
                assert_eq!(visited.insert(v), round, "vertex {v}");
            }
        }
        assert!(matches!(visited, Visited::Many(_)));
        assert!(visited.insert(1) && !visited.insert(1));
    }
}
