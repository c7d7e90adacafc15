//! Vertex properties in the memtable.
//!
//! All versions share one history, a list of entries in the order in which they were set. Each entry links to the
//! previous one of its vertex and property. A reader of an older version starts at the youngest entry and follows the
//! links. Entries never change, so values are read in place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::VertexId;
use anden_graph::property::{OwnedValue, PropertySchema, PropertyType, PropertyValue};
use anden_snapshots::{IndexKind, PropertyChanges, PropertyOverlay, SnapshotView, value_hash};
use foldhash::{HashMap, HashMapExt};
use parking_lot::RwLock;

use super::records::Records;
use super::version::LiveVersion;
use crate::Result;

/// The values that vertices got, by epoch.
#[derive(Debug, Default)]
pub(crate) struct PropertyHistory {
    log: Records<PropertyVersion>,
    /// By property and vertex: the youngest entry.
    youngest: RwLock<Vec<HashMap<VertexId, usize>>>,
    /// Indexes in memory of the indexed properties.
    indexes: Vec<MemoryIndex>,
    /// Bytes of all entries; 0 lets readers of most graphs skip the lock.
    num_bytes: AtomicU64,
}

/// An index in memory: the [`value_hash`] of values of one property, and the vertices that got them. Nothing is
/// removed, so that readers of older versions find their candidates.
#[derive(Debug)]
struct MemoryIndex {
    place: usize,
    holders: RwLock<HashMap<u32, Holders>>,
}

/// The vertices that got a value with one hash. Most values have one vertex, which needs no allocation.
#[derive(Debug)]
enum Holders {
    One(VertexId),
    Many(BTreeSet<VertexId>),
}

impl MemoryIndex {
    fn insert(&self, hash: u32, vertex: VertexId) {
        let mut holders = self.holders.write();
        match holders.entry(hash).or_insert(Holders::One(vertex)) {
            // A vertex that gets a value twice needs no set.
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
        match self.holders.read().get(&hash) {
            None => {}
            Some(Holders::One(vertex)) => to.push(*vertex),
            Some(Holders::Many(vertices)) => to.extend(vertices),
        }
    }
}

#[derive(Debug)]
struct PropertyVersion {
    epoch: u64,
    value: OwnedValue,
    /// The previous entry of this vertex and property.
    before: Option<usize>,
}

/// Bytes of an entry, with its link from the map.
const ENTRY_BYTES: usize = size_of::<PropertyVersion>() + 24;

/// Bytes of an index entry, with the free room in the table.
const INDEX_ENTRY_BYTES: usize = 2 * size_of::<(u32, Holders)>();

/// Heap bytes of a value.
fn heap_bytes(value: &OwnedValue) -> usize {
    match value {
        OwnedValue::String(text) | OwnedValue::List(_, text) => text.capacity(),
        OwnedValue::Bytes(bytes) => bytes.capacity(),
        _ => 0,
    }
}

impl PropertyHistory {
    /// No entries; the properties at these indexes of the schema have indexes.
    fn new(places: impl Iterator<Item = usize>) -> Self {
        let indexes = places.map(|place| MemoryIndex { place, holders: RwLock::default() }).collect();
        Self { indexes, ..Self::default() }
    }

    fn index(&self, place: usize) -> Option<&MemoryIndex> {
        self.indexes.iter().find(|index| index.place == place)
    }

    /// Sets a value of a vertex from `epoch` on. Epochs never descend from call to call.
    pub(crate) fn set(&self, epoch: u64, place: usize, vertex: VertexId, value: OwnedValue) {
        let mut youngest = self.youngest.write();
        if youngest.len() <= place {
            youngest.resize_with(place + 1, HashMap::new);
        }
        let before = youngest[place].get(&vertex).copied();
        let mut num_bytes = ENTRY_BYTES + heap_bytes(&value);
        // Null has no hash: no search finds it.
        if let Some((index, hash)) = self.index(place).zip(value_hash(value.as_value())) {
            index.insert(hash, vertex);
            num_bytes += INDEX_ENTRY_BYTES;
        }
        let index = self.log.push(PropertyVersion { epoch, value, before });
        youngest[place].insert(vertex, index);
        // Counted last: a reader that sees 0 bytes skips the lookup.
        self.num_bytes.fetch_add(num_bytes as u64, Ordering::Release);
    }

    /// Bytes that the history takes.
    pub(crate) fn num_bytes(&self) -> u64 {
        self.num_bytes.load(Ordering::Acquire)
    }

    /// The value of a vertex at `epoch`; `None` if the snapshot decides.
    pub(crate) fn value(&self, epoch: u64, place: usize, vertex: VertexId) -> Option<PropertyValue<'_>> {
        if self.num_bytes() == 0 {
            return None;
        }
        let youngest = self.youngest.read();
        let index = youngest.get(place)?.get(&vertex).copied()?;
        // Entries never change: the links are followed without the lock.
        drop(youngest);
        self.value_at(epoch, index)
    }

    /// The value at `epoch`, starting from the youngest entry of a vertex and property.
    fn value_at(&self, epoch: u64, youngest: usize) -> Option<PropertyValue<'_>> {
        let mut entry = self.log.get(youngest)?;
        while entry.epoch > epoch {
            entry = self.log.get(entry.before?)?;
        }
        Some(entry.value.as_value())
    }

    /// The vertices that got a value of a property by `epoch`, ascending, with their values at `epoch`.
    pub(crate) fn values(&self, epoch: u64, place: usize) -> Vec<(VertexId, PropertyValue<'_>)> {
        let youngest = self.youngest.read();
        let mut indexes: Vec<(VertexId, usize)> =
            youngest.get(place).into_iter().flatten().map(|(&vertex, &index)| (vertex, index)).collect();
        drop(youngest);
        // A hash map has no order, and readers expect ascending vertices.
        indexes.sort_unstable();
        let value = |(vertex, index)| self.value_at(epoch, index).map(|value| (vertex, value));
        indexes.into_iter().filter_map(value).collect()
    }
}

impl PropertyHistory {
    /// Appends the vertices of this history that may have a value at `epoch`.
    fn push_candidates(&self, epoch: u64, place: usize, value: PropertyValue<'_>, to: &mut Vec<VertexId>) {
        match self.index(place).zip(value_hash(value)) {
            Some((index, hash)) => index.push(hash, to),
            // Without an index, all values of the memtable are compared.
            None => {
                let values = self.values(epoch, place).into_iter();
                to.extend(values.filter(|(_, current)| *current == value).map(|(vertex, _)| vertex));
            }
        }
    }
}

/// The vertex properties of a version.
#[derive(Clone, Debug)]
pub(crate) struct LiveProperties {
    pub(crate) history: Arc<PropertyHistory>,
    /// The snapshot's properties, then new ones.
    pub(crate) schema: Arc<PropertySchema>,
    /// The indexed properties.
    indexes: Arc<[(usize, IndexKind)]>,
}

impl LiveProperties {
    /// Without changes over a snapshot.
    pub(crate) fn new(snapshot: &SnapshotView) -> Self {
        let properties = snapshot.properties();
        let indexes = (0..properties.schema().len()).filter_map(|place| Some((place, properties.index(place)?)));
        let indexes: Arc<[_]> = indexes.collect();
        let history = Arc::new(PropertyHistory::new(indexes.iter().map(|&(place, _)| place)));
        Self { history, schema: Arc::new(properties.schema().clone()), indexes }
    }

    /// Begins a new history for later values.
    pub(super) fn begin_history(&mut self) {
        self.history = Arc::new(PropertyHistory::new(self.indexes.iter().map(|&(place, _)| place)));
    }

    /// The kind of index of a property; `None` without one.
    pub(super) fn index(&self, place: usize) -> Option<IndexKind> {
        self.indexes.iter().find(|(indexed, _)| *indexed == place).map(|&(_, kind)| kind)
    }

    /// The properties with a unique index.
    pub(super) fn unique(&self) -> impl Iterator<Item = usize> {
        self.indexes.iter().filter(|(_, kind)| *kind == IndexKind::Unique).map(|&(place, _)| place)
    }

    /// The changes for a delta: new properties, and by column the values that differ from `snapshot`.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(crate) fn changes(&self, epoch: u64, snapshot: &SnapshotView) -> Result<DeltaProperties> {
        let below = snapshot.properties();
        let mut delta = DeltaProperties::default();
        let new = self.schema.iter().skip(below.schema().len());
        delta.new.extend(new.map(|(name, property_type)| (name.to_owned(), property_type)));
        for place in 0..self.schema.len() {
            let mut changes = PropertyChanges::new(place as u32);
            for (vertex, value) in self.history.values(epoch, place) {
                // A value that equals the snapshot's is no change, so the delta leaves it out.
                changes.push(vertex, value, below.value(place, vertex)?);
            }
            delta.changes.extend(Some(changes).filter(|changes| !changes.is_empty()));
        }
        Ok(delta)
    }
}

impl LiveVersion {
    /// The value of a vertex property in this version.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(crate) fn value_over(&self, place: usize, vertex: VertexId) -> Result<PropertyValue<'_>> {
        match self.value(place, vertex) {
            Some(value) => Ok(value),
            None => Ok(self.snapshot().properties().value(place, vertex)?),
        }
    }

    /// The vertices with a value of a property, in any order.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(super) fn find_over(&self, place: usize, value: PropertyValue<'_>) -> Result<Vec<VertexId>> {
        let mut found = self.snapshot().properties().find(place, value)?;
        // The candidates below decide about vertices with a newer value.
        found.retain(|&vertex| self.value(place, vertex).is_none());
        let mut changed = Vec::new();
        self.push_candidates(place, value, &mut changed);
        changed.sort_unstable();
        // A vertex may have got the value several times, or in both memtables.
        changed.dedup();
        // A candidate may have another value by now, so its current value decides.
        found.extend(changed.into_iter().filter(|&vertex| self.value(place, vertex) == Some(value)));
        Ok(found)
    }
}

/// The changes of a delta in vertex properties.
#[derive(Debug, Default)]
pub(crate) struct DeltaProperties {
    pub(crate) new: Vec<(String, PropertyType)>,
    pub(crate) changes: Vec<PropertyChanges>,
}

impl PropertyOverlay for LiveVersion {
    fn schema(&self) -> &PropertySchema {
        &self.properties.schema
    }

    fn value(&self, place: usize, vertex: VertexId) -> Option<PropertyValue<'_>> {
        let immutable = || self.immutable.as_ref().and_then(|immutable| immutable.value(place, vertex));
        self.properties.history.value(self.epoch, place, vertex).or_else(immutable)
    }

    fn values(&self, place: usize) -> Vec<(VertexId, PropertyValue<'_>)> {
        let newer = self.properties.history.values(self.epoch, place);
        let Some(immutable) = &self.immutable else { return newer };
        let mut all: BTreeMap<_, _> = immutable.values(place).into_iter().collect();
        // The values of the memtable replace those of the immutable one.
        all.extend(newer);
        all.into_iter().collect()
    }

    fn push_candidates(&self, place: usize, value: PropertyValue<'_>, to: &mut Vec<VertexId>) {
        self.properties.history.push_candidates(self.epoch, place, value, to);
        if let Some(immutable) = &self.immutable {
            immutable.push_candidates(place, value, to);
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
