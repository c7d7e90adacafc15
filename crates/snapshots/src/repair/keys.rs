//! Saves the keys of vertices.

use std::collections::HashSet;

use anden_base::VertexId;
use anden_base::bitmap::Bitmap;

use super::DamagedStore;
use crate::Result;
use crate::builder::StoreRestorer;
use crate::dictionary::{Dictionary, DictionaryKeys, PartFile, write_dictionary};
use crate::file::{FileKind, WrittenFile};
use crate::key::{Key, KeyRef};
use crate::names;
use crate::options::KeyScheme;

/// The keys that can be read.
pub(super) struct SavedKeys {
    parts: Vec<Dictionary>,
    scheme: KeyScheme,
    /// The ids whose keys are lost, as bits.
    pub lost: Bitmap,
}

impl SavedKeys {
    /// Reads all keys below a bound.
    pub fn read(store: &DamagedStore, bound: usize) -> Self {
        let scheme = store.manifest.created.options.keys;
        let open = |&number: &u32| {
            let file = store.open_file(FileKind::Dictionary, &names::dictionary(number)).ok()?;
            Dictionary::of_part(scheme, &file, number).ok()
        };
        let parts = store.manifest.dictionary.iter().filter_map(open).collect();
        let mut this = Self { parts, scheme, lost: Bitmap::new(bound) };
        for vertex in 0..bound as VertexId {
            if this.key(vertex).is_none() {
                this.lost.set(vertex as usize);
            }
        }
        this
    }

    fn key_ref(&self, vertex: VertexId) -> Option<KeyRef<'_>> {
        if self.scheme == KeyScheme::Dense {
            return Some(KeyRef::Integer(vertex.into()));
        }
        self.parts.iter().find_map(|part| part.key_ref(vertex).ok())
    }

    /// The key of a vertex, if it can be read.
    pub fn key(&self, vertex: VertexId) -> Option<Key> {
        self.key_ref(vertex).map(Key::from)
    }

    /// Writes all keys anew. Vertices without a key get one that no other vertex has.
    ///
    /// Memory: all keys.
    ///
    /// # Errors
    /// The disk failed; two vertices have one key.
    pub fn write(&self, restorer: &StoreRestorer, number: u32) -> Result<Option<WrittenFile>> {
        let place = PartFile {
            storage: &**restorer.storage(),
            directory: restorer.path(),
            id: restorer.id(),
            number,
            first_id: 0,
        };
        let keys = self.all();
        let mut sorted: Vec<VertexId> = (0..keys.len() as VertexId).collect();
        sorted.sort_unstable_by(|&a, &b| keys[a as usize].cmp(&keys[b as usize]));
        let sorted = Some(&sorted[..]).filter(|sorted| !sorted.is_sorted());
        let written = match self.scheme {
            KeyScheme::Dense => return Ok(None),
            KeyScheme::Integer => {
                let by_id: Vec<u64> =
                    keys.iter().map(|key| if let Key::Integer(key) = key { *key } else { 0 }).collect();
                write_dictionary(place, &DictionaryKeys::Integers { by_id: &by_id, sorted }, self.scheme)?
            }
            KeyScheme::String => {
                let (mut text, mut offsets) = (Vec::new(), vec![0]);
                for key in &keys {
                    if let Key::String(key) = key {
                        text.extend_from_slice(key.as_bytes());
                    }
                    offsets.push(text.len() as u64);
                }
                let keys = DictionaryKeys::Strings { text: &text, offsets: &offsets, sorted };
                write_dictionary(place, &keys, self.scheme)?
            }
        };
        Ok(written.file)
    }

    /// All keys, with new ones for the lost keys.
    fn all(&self) -> Vec<Key> {
        let bound = self.lost.len() as VertexId;
        let known: HashSet<KeyRef<'_>> = (0..bound).filter_map(|vertex| self.key_ref(vertex)).collect();
        let is_new = |key: &Key| match key {
            Key::Integer(key) => !known.contains(&KeyRef::Integer(*key)),
            Key::String(key) => !known.contains(&KeyRef::String(key)),
        };
        let mut new_keys = (0_u64..).map(|number| match self.scheme {
            // From the largest on, which users rarely take.
            KeyScheme::Integer | KeyScheme::Dense => Key::Integer(u64::MAX - 1 - number),
            KeyScheme::String => Key::String(format!("lost key {number}")),
        });
        let mut next = || new_keys.by_ref().find(|key| is_new(key)).unwrap_or(Key::Integer(0));
        (0..bound).map(|vertex| self.key(vertex).unwrap_or_else(&mut next)).collect()
    }
}
