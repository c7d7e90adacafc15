//! Maps keys to vertex ids.
//!
//! Ids ascend with the keys, or with the first position of each key; neither depends on the number of workers. Then
//! [`super::order`] may renumber the vertices. The four ways:
//! - *dense*: the key is the id;
//! - *ranks*: a bitmap ranks integers that are small relative to the number of edges;
//! - *tables*: each worker numbered its keys ([`super::intern`]), and a table maps numbers to ids;
//! - *lookups*: raw edges hold integers, but some were too large for a bitmap.

use anden_base::parallel::Pool;
use anden_base::{MAX_VERTICES, VertexId};
use anden_snapshots::{DictionaryKeys, Key};

use super::arcs::{LoadArc, Payload};
use super::intern::{IntegerTable, KeyTable, NoTable, TextTable};
use super::ranks::Ranks;
use super::raw::KeyForm;
use crate::{Error, Result};

/// Maps the ends of raw edges to ids.
#[derive(Default)]
pub(crate) struct KeyMap {
    /// For numeric keys; `None`: they are ids.
    pub(crate) ranks: Option<Ranks>,
    /// For numeric keys, if there is no bitmap.
    pub(crate) lookup: Option<Lookup>,
    /// For each worker, the ids of its numbers.
    pub(crate) tables: Vec<Vec<VertexId>>,
    /// The final id of each id above; `None`: these ids are final.
    pub(crate) last: Option<Vec<VertexId>>,
}

/// A map from integer keys to ids.
pub(crate) struct Lookup {
    table: IntegerTable,
    ids: Vec<VertexId>,
}

impl KeyMap {
    /// Allocated bytes.
    pub(crate) fn num_bytes(&self) -> u64 {
        let tables: usize = self.tables.iter().map(|table| 4 * table.len()).sum();
        let lookup = self.lookup.as_ref().map_or(0, |lookup| lookup.table.num_bytes() + 4 * lookup.ids.len());
        let last = self.last.as_ref().map_or(0, |last| 4 * last.len());
        (tables + lookup + last) as u64 + self.ranks.as_ref().map_or(0, Ranks::num_bytes)
    }

    /// Whether raw edges are edges between ids already.
    pub(crate) fn is_identity(&self) -> bool {
        self.ranks.is_none() && self.lookup.is_none() && self.last.is_none() && self.tables.iter().all(Vec::is_empty)
    }

    /// Whether mapping keeps ascending edges ascending.
    pub(crate) fn keeps_order(&self) -> bool {
        self.lookup.is_none() && self.last.is_none() && self.tables.iter().all(Vec::is_empty)
    }

    /// Maps the ends of raw edges to ids.
    pub(crate) fn apply<P: Payload>(&self, form: KeyForm, edges: &mut [LoadArc<P>]) {
        let each = |edges: &mut [LoadArc<P>], id: &dyn Fn(u32) -> VertexId| {
            // The indirect call is used only for the form that waits for memory anyway.
            edges.iter_mut().for_each(|e| *e = LoadArc::new(id(e.list()), id(e.neighbor()), e.payload()));
        };
        match (form, &self.ranks, &self.lookup) {
            (KeyForm::Interned(worker), ..) => {
                let table = &*self.tables[worker];
                for edge in &mut *edges {
                    let (source, target) = (edge.list() as usize, edge.neighbor() as usize);
                    *edge = LoadArc::new(table[source], table[target], edge.payload());
                }
            }
            (KeyForm::Numbers, Some(ranks), _) => {
                for edge in &mut *edges {
                    *edge = LoadArc::new(ranks.id(edge.list()), ranks.id(edge.neighbor()), edge.payload());
                }
            }
            (KeyForm::Numbers, None, Some(lookup)) => each(&mut *edges, &|key| lookup.id(key.into())),
            (KeyForm::Numbers, None, None) => {}
        }
        if let Some(last) = &self.last {
            // The block is in the cache from the step before.
            for edge in edges {
                let (source, target) = (edge.list() as usize, edge.neighbor() as usize);
                *edge = LoadArc::new(last[source], last[target], edge.payload());
            }
        }
    }
}

impl Lookup {
    /// For keys by id, in any order.
    pub(crate) fn new(by_id: &[u64]) -> Self {
        let mut table = IntegerTable::new(false);
        let ids = (0..by_id.len() as VertexId).collect();
        by_id.iter().for_each(|&key| {
            table.intern(key, &[], 0);
        });
        Self { table, ids }
    }

    fn id(&self, key: u64) -> VertexId {
        // Each key has been interned, so the default is never used.
        self.table.find(key).map_or(0, |number| self.ids[number as usize])
    }
}

/// The keys of all vertices.
pub(crate) enum VertexKeys {
    Dense(u64),
    Integers { by_id: Vec<u64>, sorted: Option<Vec<VertexId>> },
    Strings { text: Vec<u8>, offsets: Vec<u64>, sorted: Option<Vec<VertexId>> },
}

impl VertexKeys {
    /// Integer keys by id.
    pub(crate) fn integers(by_id: Vec<u64>) -> Self {
        // Ascending keys need no second order in the dictionary.
        let sorted = (!by_id.is_sorted()).then(|| order(by_id.len(), |id| by_id[id]));
        Self::Integers { by_id, sorted }
    }

    /// String keys by id: the key of `id` is `text[offsets[id]..offsets[id + 1]]`.
    pub(crate) fn strings(text: Vec<u8>, offsets: Vec<u64>) -> Self {
        let num_keys = offsets.len() - 1;
        let key = |id: usize| &text[offsets[id] as usize..offsets[id + 1] as usize];
        let sorted = (!(0..num_keys).map(key).is_sorted()).then(|| order(num_keys, key));
        Self::Strings { text, offsets, sorted }
    }

    /// The number of vertices.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Dense(num_keys) => *num_keys,
            Self::Integers { by_id, .. } => by_id.len() as u64,
            Self::Strings { offsets, .. } => offsets.len() as u64 - 1,
        }
    }

    /// Allocated bytes.
    pub(crate) fn num_bytes(&self) -> u64 {
        let (num_keys, sorted) = match self {
            Self::Dense(_) => (0, &None),
            Self::Integers { by_id, sorted } => (8 * by_id.len(), sorted),
            Self::Strings { text, offsets, sorted } => (text.len() + 8 * offsets.len(), sorted),
        };
        (num_keys + sorted.as_ref().map_or(0, |sorted| 4 * sorted.len())) as u64
    }

    /// Ids in the order of their keys; `None`: ids ascend with keys.
    pub(crate) fn sorted(&self) -> Option<&[VertexId]> {
        match self {
            Self::Dense(_) => None,
            Self::Integers { sorted, .. } | Self::Strings { sorted, .. } => sorted.as_deref(),
        }
    }

    /// The keys under other ids, of which the first ascend with keys. `vertices` has the first ids in the order of the
    /// new ones, `ids` the new ids in the order of the first.
    pub(crate) fn renumbered(self, vertices: &[VertexId], ids: &[VertexId]) -> Self {
        // First ids are ranks of keys, so the new ids by rank are in the order of the keys.
        let sorted = Some(ids.to_vec());
        match self {
            Self::Dense(num_keys) => Self::Dense(num_keys),
            Self::Integers { by_id, .. } => {
                Self::Integers { by_id: vertices.iter().map(|&vertex| by_id[vertex as usize]).collect(), sorted }
            }
            Self::Strings { text: old, offsets: ends, .. } => {
                let (mut text, mut offsets) = (Vec::with_capacity(old.len()), Vec::with_capacity(ends.len()));
                offsets.push(0);
                for &vertex in vertices {
                    text.extend_from_slice(&old[ends[vertex as usize] as usize..ends[vertex as usize + 1] as usize]);
                    offsets.push(text.len() as u64);
                }
                Self::Strings { text, offsets, sorted }
            }
        }
    }

    /// The key at an index; `None` past the end.
    pub(crate) fn key(&self, index: usize) -> Option<Key> {
        match self {
            Self::Dense(num_keys) => (index < *num_keys as usize).then_some(Key::Integer(index as u64)),
            Self::Integers { by_id, .. } => by_id.get(index).copied().map(Key::Integer),
            Self::Strings { text, offsets, .. } => {
                let text = text.get(*offsets.get(index)? as usize..*offsets.get(index + 1)? as usize)?;
                Some(Key::String(String::from_utf8_lossy(text).into_owned()))
            }
        }
    }

    /// The number of integer keys below `key`, if ids ascend with keys.
    pub(crate) fn num_below(&self, key: u64) -> u64 {
        match self {
            Self::Integers { by_id, .. } => by_id.partition_point(|&known| known < key) as u64,
            _ => key.min(self.len()),
        }
    }

    pub(crate) fn as_dictionary(&self) -> DictionaryKeys<'_> {
        match self {
            Self::Dense(num_keys) => DictionaryKeys::Dense(*num_keys),
            Self::Integers { by_id, sorted } => DictionaryKeys::Integers { by_id, sorted: sorted.as_deref() },
            Self::Strings { text, offsets, sorted } => {
                DictionaryKeys::Strings { text, offsets, sorted: sorted.as_deref() }
            }
        }
    }
}

/// Ids in the order of their keys.
fn order<K: Ord>(num_keys: usize, key: impl Fn(usize) -> K) -> Vec<VertexId> {
    let mut ids: Vec<VertexId> = (0..num_keys as VertexId).collect();
    ids.sort_unstable_by_key(|&id| key(id as usize));
    ids
}

/// Refuses more vertices than there are ids.
pub(crate) fn check_num_vertices(num_vertices: u64) -> Result<()> {
    if num_vertices > MAX_VERTICES as u64 {
        return Err(Error::too_many("vertices", MAX_VERTICES as u64));
    }
    Ok(())
}

/// A key table that can be joined with those of other workers.
pub(crate) trait Joined: KeyTable {
    /// Joins the tables of all workers.
    fn join(tables: Vec<Self>, pool: &Pool) -> Result<(VertexKeys, Vec<Vec<VertexId>>)>;
}

impl Joined for IntegerTable {
    fn join(tables: Vec<Self>, pool: &Pool) -> Result<(VertexKeys, Vec<Vec<VertexId>>)> {
        // The hash slots are freed before the merge takes memory.
        let (keys, firsts): (Vec<_>, Vec<_>) = tables.into_iter().map(Self::into_parts).unzip();
        let merged = merge(&keys.iter().map(Vec::len).collect::<Vec<_>>(), pool, |(table, number): KeyPlace| {
            keys[table][number as usize]
        })?;
        let order =
            MergedKeyIds::new(&merged, |(table, number)| firsts[table].as_ref().map(|firsts| firsts[number as usize]));
        let by_id = order.by_id.iter().map(|&(table, number)| keys[table][number as usize]).collect();
        Ok((VertexKeys::Integers { by_id, sorted: order.sorted }, order.tables))
    }
}

impl Joined for TextTable {
    fn join(tables: Vec<Self>, pool: &Pool) -> Result<(VertexKeys, Vec<Vec<VertexId>>)> {
        let lens: Vec<_> = tables.iter().map(Self::len).collect();
        let merged = merge(&lens, pool, |(table, number): KeyPlace| tables[table].key(number))?;
        let order = MergedKeyIds::new(&merged, |(table, number)| tables[table].firsts().map(|f| f[number as usize]));
        let mut text = Vec::new();
        let mut offsets = vec![0];
        for &(table, number) in &order.by_id {
            text.extend_from_slice(tables[table].key(number));
            offsets.push(text.len() as u64);
        }
        Ok((VertexKeys::Strings { text, offsets, sorted: order.sorted }, order.tables))
    }
}

impl Joined for NoTable {
    fn join(tables: Vec<Self>, _pool: &Pool) -> Result<(VertexKeys, Vec<Vec<VertexId>>)> {
        Ok((VertexKeys::Dense(0), tables.iter().map(|_| Vec::new()).collect()))
    }
}

/// An index of a worker's table, and a number in it.
type KeyPlace = (usize, u32);

/// All keys in ascending order.
struct Merged {
    /// One place of each distinct key.
    distinct: Vec<KeyPlace>,
    /// For each table, the rank of each number's key.
    ranks: Vec<Vec<u32>>,
}

/// Merges tables; `lens` are their numbers of keys.
fn merge<K: Ord>(lens: &[usize], pool: &Pool, key: impl Fn(KeyPlace) -> K + Sync) -> Result<Merged> {
    let key = &key;
    let sorted = pool.map_chunks(0..lens.len(), 1, |_, chunk| {
        // One worker sorts one table: tables of workers are of similar size.
        let table = chunk.start;
        let mut numbers: Vec<u32> = (0..lens[table] as u32).collect();
        // The keys of one table differ, so an unstable sort has one result.
        numbers.sort_unstable_by_key(|&number| key((table, number)));
        numbers
    });
    let mut ranks: Vec<Vec<u32>> = lens.iter().map(|&len| vec![0; len]).collect();
    let mut distinct: Vec<KeyPlace> = Vec::new();
    let mut next = vec![0; lens.len()];
    loop {
        // Few tables, so a scan of their heads is as fast as a heap.
        let heads = (0..lens.len()).filter_map(|table| Some((table, *sorted[table].get(next[table])?)));
        let Some(place) = heads.min_by(|&a, &b| key(a).cmp(&key(b))) else { break };
        // A key that several workers met gets one id.
        if distinct.last().is_none_or(|&last| key(last) != key(place)) {
            distinct.push(place);
        }
        let (table, number) = place;
        ranks[table][number as usize] = (distinct.len() - 1) as u32;
        next[table] += 1;
    }
    check_num_vertices(distinct.len() as u64)?;
    Ok(Merged { distinct, ranks })
}

/// The ids of merged keys.
struct MergedKeyIds {
    by_id: Vec<KeyPlace>,
    /// Ids in the order of their keys, if ids do not ascend with keys.
    sorted: Option<Vec<VertexId>>,
    tables: Vec<Vec<VertexId>>,
}

impl MergedKeyIds {
    /// Ids in the order of the keys, or of their first positions if `first` knows them.
    fn new(merged: &Merged, first: impl Fn(KeyPlace) -> Option<u64>) -> Self {
        let mut firsts = vec![u64::MAX; merged.distinct.len()];
        let mut is_known = false;
        for (table, ranks) in merged.ranks.iter().enumerate() {
            for (number, &rank) in (0..).zip(ranks) {
                if let Some(position) = first((table, number)) {
                    is_known = true;
                    firsts[rank as usize] = position.min(firsts[rank as usize]);
                }
            }
        }
        // Without positions ids ascend with the keys, and ranks are ids.
        if !is_known {
            return Self { by_id: merged.distinct.clone(), sorted: None, tables: merged.ranks.clone() };
        }
        let mut rank_of_id: Vec<u32> = (0..merged.distinct.len() as u32).collect();
        rank_of_id.sort_unstable_by_key(|&rank| firsts[rank as usize]);
        let mut id_of_rank = vec![0; rank_of_id.len()];
        for (id, &rank) in (0..).zip(&rank_of_id) {
            id_of_rank[rank as usize] = id;
        }
        let by_id = rank_of_id.iter().map(|&rank| merged.distinct[rank as usize]).collect();
        let table = |ranks: &Vec<u32>| ranks.iter().map(|&rank| id_of_rank[rank as usize]).collect();
        let tables = merged.ranks.iter().map(table).collect();
        // Ranks ascend with the keys, so the ids by rank are in the order of the keys.
        Self { by_id, sorted: Some(id_of_rank), tables }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(firsts: bool) -> Vec<IntegerTable> {
        let met = [vec![(900, 4), (7, 5), (1 << 40, 9)], vec![(7, 0), (3, 1), (900, 2)], vec![]];
        met.iter()
            .map(|keys| {
                let mut table = IntegerTable::new(firsts);
                keys.iter().for_each(|&(key, position)| {
                    table.intern(key, &[], position);
                });
                table
            })
            .collect()
    }

    #[test]
    fn ids_ascend_with_keys() {
        let pool = Pool::new(2).unwrap();
        let (keys, tables) = IntegerTable::join(tables(false), &pool).unwrap();
        let VertexKeys::Integers { by_id, sorted: None } = keys else { panic!("integers expected") };
        assert_eq!(by_id, [3, 7, 900, 1 << 40]);
        assert_eq!(tables, [vec![2, 1, 3], vec![1, 0, 2], vec![]]);
        let lookup = Lookup::new(&by_id);
        assert_eq!([3, 7, 900].map(|key| lookup.id(key)), [0, 1, 2]);
    }

    #[test]
    fn ids_ascend_with_first_places() {
        let pool = Pool::new(2).unwrap();
        let (keys, tables) = IntegerTable::join(tables(true), &pool).unwrap();
        let VertexKeys::Integers { by_id, sorted: Some(sorted) } = keys else { panic!("sorted ids expected") };
        assert_eq!(by_id, [7, 3, 900, 1 << 40]);
        assert_eq!(sorted, [1, 0, 2, 3]);
        assert_eq!(tables, [vec![2, 0, 3], vec![0, 1, 2], vec![]]);
    }
}
