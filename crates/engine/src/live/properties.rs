//! Properties of vertices in a live graph.
//!
//! What was set stands in one log for all versions, in the order in which it was set; each entry leads to the one
//! before it of the same vertex and property. A reader of an older version finds the youngest entry, and goes back to
//! the one that its version has. Entries are never changed, so values are read where they stand.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use base::VertexId;
use graph::property::{OwnedValue, PropertySchema, PropertyType, PropertyValue};
use lama::{IndexKind, PropertyChanges, PropertyOverlay, View, value_hash};

use super::records::Records;
use super::version::LiveVersion;
use crate::Result;

/// The values that vertices got, by epoch.
#[derive(Debug, Default)]
pub(crate) struct PropertyHistory {
    log: Records<Entry>,
    /// By property, and vertex: the youngest entry.
    youngest: RwLock<Vec<HashMap<VertexId, usize>>>,
    /// Of the properties with an index.
    indexes: Vec<MemoryIndex>,
    /// The bytes of all entries, 0 where there are none: most graphs are not asked in vain then.
    num_bytes: AtomicU64,
}

/// The values of a property with an index, as [`value_hash`] has them, and the vertices that got them; nothing is ever
/// removed, so that readers of older versions find their candidates too.
#[derive(Debug)]
struct MemoryIndex {
    place: usize,
    holders: RwLock<HashMap<u32, Holders, BuildHasherDefault<Spread>>>,
}

/// The vertices that got a value with one hash. Most values are those of one vertex, which takes no memory of its own.
#[derive(Debug)]
enum Holders {
    One(VertexId),
    Many(BTreeSet<VertexId>),
}

impl MemoryIndex {
    fn insert(&self, hash: u32, vertex: VertexId) {
        let mut holders = self.holders.write().unwrap_or_else(PoisonError::into_inner);
        match holders.entry(hash).or_insert(Holders::One(vertex)) {
            Holders::One(known) if *known == vertex => {}
            one @ Holders::One(_) => {
                if let Holders::One(known) = *one {
                    *one = Holders::Many([known, vertex].into());
                }
            }
            Holders::Many(known) => drop(known.insert(vertex)),
        }
    }

    fn push(&self, hash: u32, to: &mut Vec<VertexId>) {
        match self.holders.read().unwrap_or_else(PoisonError::into_inner).get(&hash) {
            None => {}
            Some(Holders::One(vertex)) => to.push(*vertex),
            Some(Holders::Many(vertices)) => to.extend(vertices),
        }
    }
}

/// Hashes a number that is a hash already: the table also needs its upper bits.
#[derive(Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Debug)]
struct Entry {
    epoch: u64,
    value: OwnedValue,
    /// The entry before it of the same vertex and property.
    before: Option<usize>,
}

/// What an entry takes, with its place among the youngest.
const ENTRY_BYTES: usize = size_of::<Entry>() + 24;

/// What an entry of an index takes, with the room in the table that is free.
const INDEX_ENTRY_BYTES: usize = 2 * size_of::<(u32, Holders)>();

/// What a value takes beside its entry.
fn heap_bytes(value: &OwnedValue) -> usize {
    match value {
        OwnedValue::String(text) => text.capacity(),
        OwnedValue::Bytes(bytes) => bytes.capacity(),
        _ => 0,
    }
}

impl PropertyHistory {
    /// Nothing yet; the properties at these places have indexes.
    fn new(places: impl Iterator<Item = usize>) -> Self {
        let indexes = places.map(|place| MemoryIndex { place, holders: RwLock::default() }).collect();
        Self { indexes, ..Self::default() }
    }

    fn index(&self, place: usize) -> Option<&MemoryIndex> {
        self.indexes.iter().find(|index| index.place == place)
    }

    /// From `epoch` on, a vertex has this value of the property at a place of the schema. Epochs ascend.
    pub(crate) fn set(&self, epoch: u64, place: usize, vertex: VertexId, value: OwnedValue) {
        let mut youngest = self.youngest.write().unwrap_or_else(PoisonError::into_inner);
        if youngest.len() <= place {
            youngest.resize_with(place + 1, HashMap::new);
        }
        let before = youngest[place].get(&vertex).copied();
        let mut num_bytes = ENTRY_BYTES + heap_bytes(&value);
        if let Some((index, hash)) = self.index(place).zip(value_hash(value.as_value())) {
            index.insert(hash, vertex);
            num_bytes += INDEX_ENTRY_BYTES;
        }
        let index = self.log.push(Entry { epoch, value, before });
        youngest[place].insert(vertex, index);
        self.num_bytes.fetch_add(num_bytes as u64, Ordering::Release);
    }

    /// The bytes that it takes.
    pub(crate) fn num_bytes(&self) -> u64 {
        self.num_bytes.load(Ordering::Acquire)
    }

    /// The value of a vertex at `epoch`; `None` where that is as in the snapshot.
    pub(crate) fn value(&self, epoch: u64, place: usize, vertex: VertexId) -> Option<PropertyValue<'_>> {
        if self.num_bytes() == 0 {
            return None;
        }
        let youngest = self.youngest.read().unwrap_or_else(PoisonError::into_inner);
        let index = youngest.get(place)?.get(&vertex).copied()?;
        drop(youngest);
        self.value_at(epoch, index)
    }

    /// The value at `epoch` of the vertex and property of an entry.
    fn value_at(&self, epoch: u64, youngest: usize) -> Option<PropertyValue<'_>> {
        let mut entry = self.log.get(youngest)?;
        while entry.epoch > epoch {
            entry = self.log.get(entry.before?)?;
        }
        Some(entry.value.as_value())
    }

    /// The vertices that got a value of a property by `epoch`, ascending, and the values that they have then.
    pub(crate) fn values(&self, epoch: u64, place: usize) -> Vec<(VertexId, PropertyValue<'_>)> {
        let youngest = self.youngest.read().unwrap_or_else(PoisonError::into_inner);
        let mut indexes: Vec<(VertexId, usize)> =
            youngest.get(place).into_iter().flatten().map(|(&vertex, &index)| (vertex, index)).collect();
        drop(youngest);
        indexes.sort_unstable();
        let value = |(vertex, index)| self.value_at(epoch, index).map(|value| (vertex, value));
        indexes.into_iter().filter_map(value).collect()
    }
}

impl PropertyHistory {
    /// Appends the vertices that may have a value of a property at `epoch`, of those that got one.
    fn push_candidates(&self, epoch: u64, place: usize, value: PropertyValue<'_>, to: &mut Vec<VertexId>) {
        match self.index(place).zip(value_hash(value)) {
            Some((index, hash)) => index.push(hash, to),
            None => {
                let values = self.values(epoch, place).into_iter();
                to.extend(values.filter(|(_, current)| *current == value).map(|(vertex, _)| vertex));
            }
        }
    }
}

/// The properties of the vertices of a version.
#[derive(Clone, Debug)]
pub(crate) struct LiveProperties {
    pub(crate) history: Arc<PropertyHistory>,
    /// Those of the snapshot, and behind them those that are new.
    pub(crate) schema: Arc<PropertySchema>,
    /// The places of those with an index.
    indexes: Arc<[(usize, IndexKind)]>,
}

impl LiveProperties {
    /// Those of a snapshot.
    pub(crate) fn new(snapshot: &View) -> Self {
        let properties = snapshot.properties();
        let indexes = (0..properties.schema().len()).filter_map(|place| Some((place, properties.index(place)?)));
        let indexes: Arc<[_]> = indexes.collect();
        let history = Arc::new(PropertyHistory::new(indexes.iter().map(|&(place, _)| place)));
        Self { history, schema: Arc::new(properties.schema().clone()), indexes }
    }

    /// The values that follow go to another history than those so far.
    pub(super) fn begin_history(&mut self) {
        self.history = Arc::new(PropertyHistory::new(self.indexes.iter().map(|&(place, _)| place)));
    }

    /// The index of the property at a place of the schema; `None` where it has none.
    pub(super) fn index(&self, place: usize) -> Option<IndexKind> {
        self.indexes.iter().find(|(indexed, _)| *indexed == place).map(|&(_, kind)| kind)
    }

    /// The places of the properties whose values are unique.
    pub(super) fn unique(&self) -> impl Iterator<Item = usize> {
        self.indexes.iter().filter(|(_, kind)| *kind == IndexKind::Unique).map(|&(place, _)| place)
    }

    /// What a level has to change: properties that are new, and by column what is not as in `snapshot`.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(crate) fn changes(&self, epoch: u64, snapshot: &View) -> Result<LevelProperties> {
        let below = snapshot.properties();
        let mut level = LevelProperties::default();
        let new = self.schema.iter().skip(below.schema().len());
        level.new.extend(new.map(|(name, property_type)| (name.to_owned(), property_type)));
        for place in 0..self.schema.len() {
            let mut changes = PropertyChanges::new(place as u32);
            for (vertex, value) in self.history.values(epoch, place) {
                changes.push(vertex, value, below.value(place, vertex)?);
            }
            level.changes.extend(Some(changes).filter(|changes| !changes.is_empty()));
        }
        Ok(level)
    }
}

impl LiveVersion {
    /// The value of a vertex, of the property at a place of the schema.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(crate) fn value_over(&self, place: usize, vertex: VertexId) -> Result<PropertyValue<'_>> {
        match self.value(place, vertex) {
            Some(value) => Ok(value),
            None => Ok(self.snapshot().properties().value(place, vertex)?),
        }
    }

    /// The vertices with a value of the property at a place of the schema, in any order.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(super) fn find_over(&self, place: usize, value: PropertyValue<'_>) -> Result<Vec<VertexId>> {
        let mut found = self.snapshot().properties().find(place, value)?;
        found.retain(|&vertex| self.value(place, vertex).is_none());
        let mut changed = Vec::new();
        self.push_candidates(place, value, &mut changed);
        changed.sort_unstable();
        changed.dedup();
        found.extend(changed.into_iter().filter(|&vertex| self.value(place, vertex) == Some(value)));
        Ok(found)
    }
}

/// What a level changes in the properties of vertices.
#[derive(Debug, Default)]
pub(crate) struct LevelProperties {
    pub(crate) new: Vec<(String, PropertyType)>,
    pub(crate) changes: Vec<PropertyChanges>,
}

impl PropertyOverlay for LiveVersion {
    fn schema(&self) -> &PropertySchema {
        &self.properties.schema
    }

    fn value(&self, place: usize, vertex: VertexId) -> Option<PropertyValue<'_>> {
        let frozen = || self.frozen.as_ref().and_then(|frozen| frozen.value(place, vertex));
        self.properties.history.value(self.epoch, place, vertex).or_else(frozen)
    }

    fn values(&self, place: usize) -> Vec<(VertexId, PropertyValue<'_>)> {
        let newer = self.properties.history.values(self.epoch, place);
        let Some(frozen) = &self.frozen else { return newer };
        let mut all: BTreeMap<_, _> = frozen.values(place).into_iter().collect();
        all.extend(newer);
        all.into_iter().collect()
    }

    fn push_candidates(&self, place: usize, value: PropertyValue<'_>, to: &mut Vec<VertexId>) {
        self.properties.history.push_candidates(self.epoch, place, value, to);
        if let Some(frozen) = &self.frozen {
            frozen.push_candidates(place, value, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: Vec<(VertexId, PropertyValue<'_>)>) -> Vec<(VertexId, String)> {
        values.into_iter().map(|(vertex, value)| (vertex, value.to_string())).collect()
    }

    #[test]
    fn each_epoch_sees_its_own() {
        let history = PropertyHistory::default();
        assert_eq!(history.value(9, 0, 4), None);
        history.set(2, 1, 4, 20.into());
        history.set(3, 1, 4, 30.into());
        history.set(3, 1, 4, 31.into());
        history.set(3, 0, 4, "x".into());
        history.set(5, 1, 2, 50.into());
        history.set(6, 1, 4, OwnedValue::Null);
        let seen = [1, 2, 3, 5, 6].map(|epoch| history.value(epoch, 1, 4).map(|value| value.to_string()));
        assert_eq!(seen, [None, Some("20"), Some("31"), Some("31"), Some("")].map(|text| text.map(str::to_owned)));
        assert_eq!(texts(history.values(4, 1)), [(4, "31".into())]);
        assert_eq!(texts(history.values(6, 1)), [(2, "50".into()), (4, String::new())]);
        assert_eq!((history.values(6, 2).len(), history.value(2, 0, 4)), (0, None));
    }
}
