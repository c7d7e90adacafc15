//! Maps the keys of an append to vertex ids.
//!
//! A known key keeps its id, even if its vertex was removed. New keys get the next ids, in their order of appearance.

use anden_base::parallel::Pool;
use anden_base::{NO_VERTEX, VertexId};
use anden_graph::Graph;
use anden_snapshots::{Key, KeyScheme, SnapshotView};

use super::requests::{RequestBlock, Requests};
use crate::Result;
use crate::load::{VertexKeys, check_num_vertices};

/// Keys that a worker looks up at once.
const GRAIN: usize = 4 << 10;

/// The vertices of some requests.
pub(crate) struct Resolved {
    /// The keys of new vertices, by id.
    pub(crate) new_keys: VertexKeys,
    /// One more than the largest id, including new ones.
    pub(crate) vertex_bound: usize,
}

/// The treatment of unknown keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// Creates a vertex.
    Create,
    /// Maps the key to no vertex.
    Ignore,
}

/// Replaces the indexes of keys in `requests` by ids, or by [`NO_VERTEX`].
///
/// Cost: one dictionary search for each distinct key, in ascending order.
pub(crate) fn resolve(requests: &mut Requests, view: &SnapshotView, unknown: Unknown, pool: &Pool) -> Result<Resolved> {
    let old_bound = view.vertex_bound();
    match &requests.keys {
        VertexKeys::Dense(_) => {
            debug_assert_eq!(view.options().keys, KeyScheme::Dense);
            let named = requests.blocks.iter().flat_map(|block| {
                let ends = block.edges.iter().flat_map(|&(source, target)| [source, target]);
                ends.chain(block.vertices.iter().copied())
            });
            let largest = if unknown == Unknown::Create { named.max() } else { None };
            let vertex_bound = largest.map_or(old_bound, |largest| old_bound.max(largest as usize + 1));
            check_num_vertices(vertex_bound as u64)?;
            // Removals may name ids beyond the bound, which are no vertices.
            let bound = vertex_bound as VertexId;
            map_blocks(&mut requests.blocks, pool, |id| if id < bound { id } else { NO_VERTEX });
            Ok(Resolved { new_keys: VertexKeys::Dense((vertex_bound - old_bound) as u64), vertex_bound })
        }
        keys => {
            let mut ids = find_all(keys, view, pool)?;
            let mut new_places = Vec::new();
            if unknown == Unknown::Create {
                for (place, id) in ids.iter_mut().enumerate().filter(|(_, id)| **id == NO_VERTEX) {
                    // Checked for each key, so that the next id does not overflow.
                    check_num_vertices((old_bound + new_places.len() + 1) as u64)?;
                    *id = (old_bound + new_places.len()) as VertexId;
                    new_places.push(place);
                }
            }
            map_blocks(&mut requests.blocks, pool, |place| ids[place as usize]);
            Ok(Resolved { new_keys: select(keys, &new_places), vertex_bound: old_bound + new_places.len() })
        }
    }
}

fn map_blocks(blocks: &mut [RequestBlock], pool: &Pool, id: impl Fn(u32) -> VertexId + Sync) {
    pool.for_each_item(blocks.iter_mut().collect(), |_, block: &mut RequestBlock| block.map(&id));
}

/// The id of each key, live or removed; [`NO_VERTEX`] if there is none.
fn find_all(keys: &VertexKeys, view: &SnapshotView, pool: &Pool) -> Result<Vec<VertexId>> {
    let key_at = |place: usize| -> Key {
        match keys {
            VertexKeys::Dense(_) => Key::Integer(place as u64),
            VertexKeys::Integers { by_id, .. } => Key::Integer(by_id[place]),
            VertexKeys::Strings { text, offsets, .. } => {
                let bytes = &text[offsets[place] as usize..offsets[place + 1] as usize];
                // Keys are validated when they are read.
                Key::String(String::from_utf8_lossy(bytes).into_owned())
            }
        }
    };
    let found = pool.map_chunks(0..keys.len() as usize, GRAIN, |_, places| -> Result<Vec<VertexId>> {
        places.map(|place| Ok(view.vertex_dead_or_alive(&key_at(place))?.map_or(NO_VERTEX, |found| found.0))).collect()
    });
    let mut ids = Vec::with_capacity(keys.len() as usize);
    for part in found {
        ids.extend(part?);
    }
    Ok(ids)
}

/// The keys at these ascending indexes.
fn select(keys: &VertexKeys, places: &[usize]) -> VertexKeys {
    match keys {
        VertexKeys::Dense(_) => VertexKeys::Dense(places.len() as u64),
        VertexKeys::Integers { by_id, .. } => VertexKeys::integers(places.iter().map(|&place| by_id[place]).collect()),
        VertexKeys::Strings { text: all, offsets: bounds, .. } => {
            let (mut text, mut offsets) = (Vec::new(), vec![0]);
            for &place in places {
                text.extend_from_slice(&all[bounds[place] as usize..bounds[place + 1] as usize]);
                offsets.push(text.len() as u64);
            }
            VertexKeys::strings(text, offsets)
        }
    }
}
