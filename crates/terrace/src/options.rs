//! Parameters of a live graph.

use graph::Direction;

use crate::list::Tiers;
use crate::node::{Layout, leaf_capacity};
use crate::pieces::Bounds;
use crate::{Error, Result, Value};

/// The words of the longest leaf of a packed list: 4 KB.
const PACKED_LEAF_WORDS: usize = 1024;
/// The words of the longest leaf of a B-tree: 2 KB.
const TREE_LEAF_WORDS: usize = 512;
/// The most neighbours in place, of a block of two cache lines.
const MOST_IN_PLACE: usize = 29;

/// How a live graph is laid out.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether edges have a direction.
    pub direction: Direction,
    /// Whether the in-lists of a directed graph are kept too, by whoever applies batches.
    pub in_lists: bool,
    /// Whether a list may hold a target several times. A removal then takes all entries of its target, and each addition
    /// of a batch that follows the last removal adds one.
    pub multigraph: bool,
    /// *S*: lists up to this length lie in the block of their vertex. Up to 13, a block is one cache
    /// line; up to 29, two.
    pub in_place: usize,
    /// *L*: lists up to this length lie packed in segments of at most 4 KB; longer ones in a B-tree.
    pub packed: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { direction: Direction::Directed, in_lists: false, multigraph: false, in_place: 13, packed: 1 << 10 }
    }
}

impl Options {
    pub(crate) fn tiers<W: Value>(&self) -> Result<Tiers> {
        if self.in_place > MOST_IN_PLACE {
            return Err(Error::Parameter(format!(
                "at most {MOST_IN_PLACE} neighbours fit in a block, not {}",
                self.in_place
            )));
        }
        let layout = Layout::new::<W>(self.in_place);
        let packed_bounds = Bounds::up_to(leaf_capacity::<W>(PACKED_LEAF_WORDS));
        // Three quarters of what the leaves could hold, so that there are enough of them after every cut.
        let most_packed = layout.max_packed() * packed_bounds.max * 3 / 4;
        Ok(Tiers {
            layout,
            multigraph: self.multigraph,
            in_place: self.in_place,
            packed: self.packed.min(most_packed),
            packed_bounds,
            tree_bounds: Bounds::up_to(leaf_capacity::<W>(TREE_LEAF_WORDS)),
        })
    }
}
