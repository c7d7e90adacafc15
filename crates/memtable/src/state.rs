//! State of a version: roots of its directories, and counts.

use crate::arena::Handle;
use crate::directory::Directory;
use anden_graph::Direction;

/// Adjacency tables of a version, which are published together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdjacencyTable {
    /// Out-lists, or the arcs added to the out-lists of a base.
    Out = 0,
    /// In-lists of a directed graph, or the arcs added to the in-lists of a base.
    In = 1,
    /// Arcs removed from the out-lists of a base.
    OutRemoved = 2,
    /// Arcs removed from the in-lists of a base.
    InRemoved = 3,
}

impl AdjacencyTable {
    /// Adjacency table of the arcs that one direction of the base lacks.
    pub fn added(direction: Direction) -> Self {
        match direction {
            Direction::Out => Self::Out,
            Direction::In => Self::In,
        }
    }

    /// Adjacency table of the arcs that are removed from one direction of the base.
    pub fn removed(direction: Direction) -> Self {
        match direction {
            Direction::Out => Self::OutRemoved,
            Direction::In => Self::InRemoved,
        }
    }
}

pub(crate) const NUM_ADJACENCY_TABLES: usize = 4;
/// Number of words in a published state.
pub(crate) const WORDS: usize = 3 + 3 * NUM_ADJACENCY_TABLES;

/// Flag above the 32-bit root: the directories are complete.
const COMPLETE: u64 = 1 << 32;

/// State of one adjacency table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AdjacencyTableState {
    /// Root of the directories, which miss [stale](crate::stale) pages only.
    pub(crate) root: Handle,
    /// Whether no directory is stale.
    pub(crate) is_complete: bool,
    pub(crate) num_arcs: u64,
    pub(crate) num_loops: u64,
}

/// State of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VersionState {
    pub(crate) epoch: u64,
    pub(crate) num_vertices: u64,
    /// Height of all directories.
    pub(crate) height: u32,
    pub(crate) adjacency_tables: [AdjacencyTableState; NUM_ADJACENCY_TABLES],
}

impl AdjacencyTableState {
    /// The root and the flag of complete directories, as one word.
    pub(crate) fn root_word(&self) -> u64 {
        u64::from(self.root) | if self.is_complete { COMPLETE } else { 0 }
    }

    /// Root of the directories, if they are complete.
    pub(crate) fn complete_root(word: u64) -> Option<Handle> {
        (word & COMPLETE != 0).then_some(word as Handle)
    }
}

impl VersionState {
    /// A state without vertices.
    pub(crate) fn empty() -> Self {
        let Directory { root, height } = Directory::empty();
        let adjacency_table = AdjacencyTableState { root, is_complete: true, num_arcs: 0, num_loops: 0 };
        Self { epoch: 0, num_vertices: 0, height, adjacency_tables: [adjacency_table; NUM_ADJACENCY_TABLES] }
    }

    #[inline(always)]
    pub(crate) fn directory(&self, adjacency_table: AdjacencyTable) -> Directory {
        Directory { root: self.adjacency_tables[adjacency_table as usize].root, height: self.height }
    }

    /// Index of an adjacency table's [root word](AdjacencyTableState::root_word) in the words of a state.
    pub(crate) fn root_word(adjacency_table: AdjacencyTable) -> usize {
        3 + 3 * adjacency_table as usize
    }

    pub(crate) fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[..3].copy_from_slice(&[self.epoch, self.num_vertices, u64::from(self.height)]);
        for (words, adjacency_table) in words[3..].chunks_exact_mut(3).zip(&self.adjacency_tables) {
            words.copy_from_slice(&[adjacency_table.root_word(), adjacency_table.num_arcs, adjacency_table.num_loops]);
        }
        words
    }

    pub(crate) fn of_words(words: [u64; WORDS]) -> Self {
        let adjacency_table = |i: usize| AdjacencyTableState {
            root: words[3 + 3 * i] as Handle,
            is_complete: words[3 + 3 * i] & COMPLETE != 0,
            num_arcs: words[4 + 3 * i],
            num_loops: words[5 + 3 * i],
        };
        Self {
            epoch: words[0],
            num_vertices: words[1],
            height: words[2] as u32,
            adjacency_tables: std::array::from_fn(adjacency_table),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_come_back_from_their_words() {
        let adjacency_table = |i: u32| AdjacencyTableState {
            root: i,
            is_complete: i.is_multiple_of(2),
            num_arcs: u64::from(i) << 33,
            num_loops: 7,
        };
        let state = VersionState {
            epoch: 9,
            num_vertices: 1 << 31,
            height: 5,
            adjacency_tables: [1, 2, 3, 4].map(adjacency_table),
        };
        assert_eq!(VersionState::of_words(state.words()), state);
        assert_eq!(VersionState::of_words(VersionState::empty().words()), VersionState::empty());
    }
}
