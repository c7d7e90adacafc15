//! What a version is: where its directories start, and what there is to count.

use graph::Side;

use crate::arena::Handle;
use crate::directory::Directory;

/// Lists that belong together: all planes of a version are published at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    /// The out-lists, or what was added to those of a base.
    Out = 0,
    /// The in-lists of a directed graph, or what was added to those of a base.
    In = 1,
    /// What is removed from the out-lists of a base.
    OutRemoved = 2,
    /// What is removed from the in-lists of a base.
    InRemoved = 3,
}

impl Plane {
    /// Where the edges are that a side of the base lacks.
    pub fn added(side: Side) -> Self {
        match side {
            Side::Out => Self::Out,
            Side::In => Self::In,
        }
    }

    /// Where the edges are that are gone from a side of the base.
    pub fn removed(side: Side) -> Self {
        match side {
            Side::Out => Self::OutRemoved,
            Side::In => Self::InRemoved,
        }
    }
}

pub(crate) const NUM_PLANES: usize = 4;
/// The words of a state, as they are published.
pub(crate) const WORDS: usize = 3 + 3 * NUM_PLANES;

/// A bit beside the root.
const COMPLETE: u64 = 1 << 32;

/// The lists of one plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlaneState {
    /// Of directories that have all that is not [stale](crate::stale).
    pub(crate) root: Handle,
    /// Nothing is stale.
    pub(crate) is_complete: bool,
    pub(crate) num_arcs: u64,
    pub(crate) num_loops: u64,
}

/// A version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) epoch: u64,
    pub(crate) num_vertices: u64,
    /// Of all directories.
    pub(crate) height: u32,
    pub(crate) planes: [PlaneState; NUM_PLANES],
}

impl PlaneState {
    /// The root, and whether directories are complete, as one word.
    pub(crate) fn root_word(&self) -> u64 {
        u64::from(self.root) | if self.is_complete { COMPLETE } else { 0 }
    }

    /// The root of complete directories.
    pub(crate) fn complete_root(word: u64) -> Option<Handle> {
        (word & COMPLETE != 0).then_some(word as Handle)
    }
}

impl State {
    /// Without vertices.
    pub(crate) fn empty() -> Self {
        let Directory { root, height } = Directory::empty();
        let plane = PlaneState { root, is_complete: true, num_arcs: 0, num_loops: 0 };
        Self { epoch: 0, num_vertices: 0, height, planes: [plane; NUM_PLANES] }
    }

    #[inline(always)]
    pub(crate) fn directory(&self, plane: Plane) -> Directory {
        Directory { root: self.planes[plane as usize].root, height: self.height }
    }

    /// The place of a plane's [root](PlaneState::root_word) among the words of a state.
    pub(crate) fn root_word(plane: Plane) -> usize {
        3 + 3 * plane as usize
    }

    pub(crate) fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[..3].copy_from_slice(&[self.epoch, self.num_vertices, u64::from(self.height)]);
        for (words, plane) in words[3..].chunks_exact_mut(3).zip(&self.planes) {
            words.copy_from_slice(&[plane.root_word(), plane.num_arcs, plane.num_loops]);
        }
        words
    }

    pub(crate) fn of_words(words: [u64; WORDS]) -> Self {
        let plane = |i: usize| PlaneState {
            root: words[3 + 3 * i] as Handle,
            is_complete: words[3 + 3 * i] & COMPLETE != 0,
            num_arcs: words[4 + 3 * i],
            num_loops: words[5 + 3 * i],
        };
        Self { epoch: words[0], num_vertices: words[1], height: words[2] as u32, planes: std::array::from_fn(plane) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_come_back_from_their_words() {
        let plane = |i: u32| PlaneState {
            root: i,
            is_complete: i.is_multiple_of(2),
            num_arcs: u64::from(i) << 33,
            num_loops: 7,
        };
        let state = State { epoch: 9, num_vertices: 1 << 31, height: 5, planes: [1, 2, 3, 4].map(plane) };
        assert_eq!(State::of_words(state.words()), state);
        assert_eq!(State::of_words(State::empty().words()), State::empty());
    }
}
