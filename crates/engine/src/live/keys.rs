//! Keys of vertices that are not in the snapshot below the memtable.
//!
//! Keys are only added, in the order of their ids. A reader of an older version finds later keys too, and ignores ids
//! beyond its bound. The lookup of a key by id takes no lock.

use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::VertexId;
use anden_snapshots::{Key, KeyRef};
use foldhash::HashMap;
use parking_lot::RwLock;

use super::records::Records;

/// New keys with their ids.
#[derive(Debug)]
pub(crate) struct NewKeys {
    /// The id of the first key.
    first: usize,
    ids: RwLock<HashMap<Key, VertexId>>,
    /// By id, from the first one.
    keys: Records<Key>,
    num_bytes: AtomicU64,
}

impl NewKeys {
    /// No keys; the first one will have the id `first`.
    pub(crate) fn new(first: usize) -> Self {
        Self { first, ids: RwLock::default(), keys: Records::default(), num_bytes: AtomicU64::new(0) }
    }

    /// Adds a key with the next id, `id`.
    pub(crate) fn push(&self, key: Key, id: VertexId) {
        // The list first: a reader that finds the id in the map also finds its key.
        let index = self.keys.push(key.clone());
        debug_assert_eq!(self.first + index, id as usize, "ids follow each other");
        // A key is in the map and in the list, each with its text.
        let text_bytes = if let Key::String(text) = &key { text.len() } else { 0 };
        let num_bytes = 2 * (size_of::<Key>() + text_bytes) + size_of::<VertexId>();
        self.num_bytes.fetch_add(num_bytes as u64, Ordering::Relaxed);
        self.ids.write().insert(key, id);
    }

    /// Approximate bytes that the keys take.
    pub(crate) fn num_bytes(&self) -> u64 {
        self.num_bytes.load(Ordering::Relaxed)
    }

    /// The id of a key.
    pub(crate) fn id(&self, key: &Key) -> Option<VertexId> {
        self.ids.read().get(key).copied()
    }

    /// The key of an id.
    pub(crate) fn key(&self, id: VertexId) -> Option<KeyRef<'_>> {
        self.keys.get((id as usize).checked_sub(self.first)?).map(|key| match key {
            Key::Integer(key) => KeyRef::Integer(*key),
            Key::String(key) => KeyRef::String(key),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_ids_lead_to_each_other() {
        let keys = NewKeys::new(7);
        for id in 7..10_000 {
            assert_eq!(keys.key(id), None);
            keys.push(Key::String(format!("v{id}")), id);
        }
        for id in 7..10_000 {
            let name = format!("v{id}");
            assert_eq!(keys.key(id), Some(KeyRef::String(&name)));
            assert_eq!(keys.id(&Key::String(name)), Some(id));
        }
        assert_eq!((keys.key(6), keys.key(10_000), keys.id(&Key::Integer(7))), (None, None, None));
    }
}
