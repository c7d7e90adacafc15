//! From keys to vertex ids.
//!
//! Ids ascend with the keys, or with the place where a key is met first; neither depends on the
//! number of workers. There are four ways:
//! - *dense*: the key is the id;
//! - *ranks*: integers that are small beside the number of edges are ranked by a bitmap;
//! - *tables*: each worker numbered its keys ([`super::intern`]), a table leads from there to ids;
//! - *lookups*: integers that were left as they are, though some turned out too large for a bitmap.

use base::parallel::Pool;
use base::{MAX_VERTICES, VertexId};
use lama::{DictionaryKeys, Key};

use super::arcs::{KeyedArc, Payload};
use super::intern::{IntegerTable, KeyTable, NoTable, TextTable};
use super::ranks::Ranks;
use super::raw::KeyForm;
use crate::{Error, Result};

/// Leads from what stands in raw edges to ids.
#[derive(Default)]
pub(crate) struct KeyMap {
    /// For numbers that are keys; `None`: they are ids.
    pub(crate) ranks: Option<Ranks>,
    /// For numbers that are keys, where there is no bitmap.
    pub(crate) lookup: Option<Lookup>,
    /// For numbers that a worker gave.
    pub(crate) tables: Vec<Vec<VertexId>>,
}

/// Ids by key.
pub(crate) struct Lookup {
    table: IntegerTable,
    ids: Vec<VertexId>,
}

impl KeyMap {
    /// Bytes that are allocated.
    pub(crate) fn num_bytes(&self) -> u64 {
        let tables: usize = self.tables.iter().map(|table| 4 * table.len()).sum();
        let lookup = self.lookup.as_ref().map_or(0, |lookup| lookup.table.num_bytes() + 4 * lookup.ids.len());
        tables as u64 + lookup as u64 + self.ranks.as_ref().map_or(0, Ranks::num_bytes)
    }

    /// Whether raw edges are edges between ids already.
    pub(crate) fn is_identity(&self) -> bool {
        self.ranks.is_none() && self.lookup.is_none() && self.tables.iter().all(Vec::is_empty)
    }

    /// Whether ascending edges ascend still once they are mapped.
    pub(crate) fn keeps_order(&self) -> bool {
        self.lookup.is_none() && self.tables.iter().all(Vec::is_empty)
    }

    /// Turns the ends of raw edges into ids.
    pub(crate) fn apply<P: Payload>(&self, form: KeyForm, edges: &mut [KeyedArc<P>]) {
        let each = |edges: &mut [KeyedArc<P>], id: &dyn Fn(u32) -> VertexId| {
            // Behind a pointer only for the forms that wait for memory anyhow.
            edges.iter_mut().for_each(|e| *e = KeyedArc::new(id(e.list()), id(e.neighbour()), e.payload()));
        };
        match (form, &self.ranks, &self.lookup) {
            (KeyForm::Interned(worker), ..) => {
                let table = &*self.tables[worker];
                for edge in edges {
                    let (source, target) = (edge.list() as usize, edge.neighbour() as usize);
                    *edge = KeyedArc::new(table[source], table[target], edge.payload());
                }
            }
            (KeyForm::Numbers, Some(ranks), _) => {
                for edge in edges {
                    *edge = KeyedArc::new(ranks.id(edge.list()), ranks.id(edge.neighbour()), edge.payload());
                }
            }
            (KeyForm::Numbers, None, Some(lookup)) => each(edges, &|key| lookup.id(key.into())),
            (KeyForm::Numbers, None, None) => {}
        }
    }
}

impl Lookup {
    /// For keys that are in ascending or any other order by id.
    pub(crate) fn new(by_id: &[u64]) -> Self {
        let mut table = IntegerTable::new(false);
        let ids = (0..by_id.len() as VertexId).collect();
        by_id.iter().for_each(|&key| {
            table.intern(key, &[], 0);
        });
        Self { table, ids }
    }

    fn id(&self, key: u64) -> VertexId {
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
    /// Integers by id.
    pub(crate) fn integers(by_id: Vec<u64>) -> Self {
        let sorted = (!by_id.is_sorted()).then(|| order(by_id.len(), |id| by_id[id]));
        Self::Integers { by_id, sorted }
    }

    /// Strings by id: that of `id` is `text[offsets[id]..offsets[id + 1]]`.
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

    /// The number of integer keys below `key`, where ids ascend with them.
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
        let what = format!("the input has {num_vertices} or more vertices, at most {MAX_VERTICES} are possible");
        return Err(Error::Option(what));
    }
    Ok(())
}

/// A table of keys that can be joined with those of other workers.
pub(crate) trait Joined: KeyTable {
    /// Joins the tables of all workers.
    fn join(tables: Vec<Self>, pool: &Pool) -> Result<(VertexKeys, Vec<Vec<VertexId>>)>;
}

impl Joined for IntegerTable {
    fn join(tables: Vec<Self>, pool: &Pool) -> Result<(VertexKeys, Vec<Vec<VertexId>>)> {
        let (keys, firsts): (Vec<_>, Vec<_>) = tables.into_iter().map(Self::into_parts).unzip();
        let merged = merge(&keys.iter().map(Vec::len).collect::<Vec<_>>(), pool, |(table, number): Place| {
            keys[table][number as usize]
        })?;
        let order = Order::new(&merged, |(table, number)| firsts[table].as_ref().map(|firsts| firsts[number as usize]));
        let by_id = order.by_id.iter().map(|&(table, number)| keys[table][number as usize]).collect();
        Ok((VertexKeys::Integers { by_id, sorted: order.sorted }, order.tables))
    }
}

impl Joined for TextTable {
    fn join(tables: Vec<Self>, pool: &Pool) -> Result<(VertexKeys, Vec<Vec<VertexId>>)> {
        let lens: Vec<_> = tables.iter().map(Self::len).collect();
        let merged = merge(&lens, pool, |(table, number): Place| tables[table].key(number))?;
        let order = Order::new(&merged, |(table, number)| tables[table].firsts().map(|f| f[number as usize]));
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

/// A worker's table, and a number in it.
type Place = (usize, u32);

/// All keys in ascending order.
struct Merged {
    /// One place of each key.
    distinct: Vec<Place>,
    /// For each table, the rank of each number's key.
    ranks: Vec<Vec<u32>>,
}

/// Merges tables of so many keys each.
fn merge<K: Ord>(lens: &[usize], pool: &Pool, key: impl Fn(Place) -> K + Sync) -> Result<Merged> {
    let key = &key;
    let sorted = pool.map_chunks(0..lens.len(), 1, |_, chunk| {
        let table = chunk.start;
        let mut numbers: Vec<u32> = (0..lens[table] as u32).collect();
        numbers.sort_unstable_by_key(|&number| key((table, number)));
        numbers
    });
    let mut ranks: Vec<Vec<u32>> = lens.iter().map(|&len| vec![0; len]).collect();
    let mut distinct: Vec<Place> = Vec::new();
    let mut next = vec![0; lens.len()];
    loop {
        let heads = (0..lens.len()).filter_map(|table| Some((table, *sorted[table].get(next[table])?)));
        let Some(place) = heads.min_by(|&a, &b| key(a).cmp(&key(b))) else { break };
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
struct Order {
    by_id: Vec<Place>,
    /// Ids in the order of their keys, where that is not their own.
    sorted: Option<Vec<VertexId>>,
    tables: Vec<Vec<VertexId>>,
}

impl Order {
    /// Ids in the order of the keys, or, where `first` knows it, of where each was met first.
    fn new(merged: &Merged, first: impl Fn(Place) -> Option<u64>) -> Self {
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
