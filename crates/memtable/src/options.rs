//! Parameters of a memtable.

use anden_graph::GraphKind;

use crate::fragments::Bounds;
use crate::list::Tiers;
use crate::node::{VertexBlockLayout, leaf_capacity};
use crate::{EntryValue, Error, Result};

/// Maximum number of words in a leaf of a packed list: 4 KB.
const PACKED_LEAF_WORDS: usize = 1024;
/// Maximum number of words in a leaf of a B-tree: 2 KB.
const TREE_LEAF_WORDS: usize = 512;
/// Maximum length of an inline list, in a block of two cache lines.
const MOST_IN_PLACE: usize = 29;

/// Shape of a memtable, and borders of its tiers.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether edges have a direction.
    pub graph_kind: GraphKind,
    /// Whether in-lists of a directed graph are kept. The caller that applies batches maintains them.
    pub in_lists: bool,
    /// Whether arcs with equal targets are allowed. A removal then takes all arcs of its target, and each addition of
    /// a batch after the last removal adds one.
    pub multigraph: bool,
    /// Number of vertices for which addresses are reserved at least. More fit unless the system limits addresses.
    pub num_vertices: usize,
    /// *S*: maximum length of an inline list. Up to 13, a block is one cache line; up to 29, two.
    pub in_place: usize,
    /// *L*: maximum length of a list that is packed in segments of at most 4 KB. Longer lists are B-trees.
    pub packed: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            graph_kind: GraphKind::Directed,
            in_lists: false,
            multigraph: false,
            num_vertices: 0,
            in_place: 13,
            packed: 1 << 10,
        }
    }
}

impl Options {
    pub(crate) fn tiers<W: EntryValue>(&self) -> Result<Tiers> {
        if self.in_place > MOST_IN_PLACE {
            return Err(Error::Parameter(format!(
                "at most {MOST_IN_PLACE} neighbors fit in a block, not {}",
                self.in_place
            )));
        }
        let layout = VertexBlockLayout::new::<W>(self.in_place);
        let packed_bounds = Bounds::up_to(leaf_capacity::<W>(PACKED_LEAF_WORDS));
        // Three quarters of the capacity, so that the leaves suffice after every cut.
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
