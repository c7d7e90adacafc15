//! Assigns ids to all keys, and maps raw edges to edges between ids.

use anden_base::MAX_VERTICES;
use anden_snapshots::KeyScheme;
use parking_lot::Mutex;

use super::Load;
use super::arcs::{Expand, LoadArc, Payload};
use super::buckets::ArcBuckets;
use super::ingest::{Ingested, InputKey};
use super::intern::KeyTable;
use super::keys::{Joined, KeyMap, Lookup, VertexKeys, check_num_vertices};
use super::options::IdOrder;
use super::ranks::Presence;
use super::raw::{KeyForm, RawBlock, RawEdges, Slab};
use crate::{Error, Result};

/// The bitmap is used for keys up to this many times the number of edges,
const MAX_SPARSITY: u64 = 16;
/// and for all keys below this, for which the bitmap is small anyway.
const SMALL_KEY: u64 = 16 << 20;

/// The keys of all vertices, and the map from the ends of raw edges to ids.
///
/// `expand` is the expansion with which edges were spread. `known` is the number of vertices if the input says that
/// keys are the numbers below it.
pub(crate) fn resolve<K: InputKey, P: Payload>(
    load: &Load<'_>,
    ingested: &mut Ingested<'_, P, K::Table>,
    known: Option<u64>,
    expand: Expand,
) -> Result<(VertexKeys, KeyMap)> {
    load.progress.stage("map keys", None);
    let known = known.unwrap_or(0);
    let num_numbers = ingested.max_number.map_or(0, |largest| largest + 1).max(known);
    if load.options.graph.keys == KeyScheme::Dense {
        check_num_vertices(num_numbers)?;
        return Ok((VertexKeys::Dense(num_numbers), KeyMap::default()));
    }
    let tables_are_empty = ingested.tables.iter().all(|table| table.len() == 0);
    let num_spread = ingested.buckets.as_ref().map_or(0, ArcBuckets::len);
    let num_named = 2 * (ingested.edges.num_edges() + num_spread) as u64 + ingested.vertices.len() as u64 + known;
    let serves = num_numbers <= SMALL_KEY.max(MAX_SPARSITY.saturating_mul(num_named));
    if num_numbers > 0 && tables_are_empty && serves && load.options.order != IdOrder::Input {
        return by_bitmap(load, ingested, num_numbers, known, expand);
    }
    by_tables::<K, P>(load, ingested, known)
}

fn by_bitmap<P: Payload, T>(
    load: &Load<'_>,
    ingested: &mut Ingested<'_, P, T>,
    num_numbers: u64,
    known: u64,
    expand: Expand,
) -> Result<(VertexKeys, KeyMap)> {
    // Refused before the bitmap takes its memory.
    load.budget.for_edges(Presence::num_bytes(num_numbers))?;
    let presence = Presence::new(num_numbers - 1);
    if let Some(buckets) = &mut ingested.buckets {
        // With two entries for each edge, the owners of the lists are all vertices.
        let are_doubled = expand == Expand::Both;
        buckets.for_each_mut(load.pool, |_, entries| {
            entries.iter().for_each(|entry| presence.set(entry.list().into()));
            if !are_doubled {
                entries.iter().for_each(|entry| presence.set(entry.neighbor().into()));
            }
        });
    }
    presence.set_below(known);
    ingested.vertices.iter().for_each(|&key| presence.set(key.into()));
    for_each_block(load, &mut ingested.edges, |_, _, edges| {
        for edge in edges {
            presence.set(edge.list().into());
            presence.set(edge.neighbor().into());
        }
    })?;
    let ranks = presence.into_ranks();
    check_num_vertices(ranks.len())?;
    // The list of keys takes eight bytes for each, beside the bitmap.
    load.budget.for_edges(Presence::num_bytes(num_numbers) + 8 * ranks.len())?;
    let keys = VertexKeys::Integers { by_id: ranks.keys(), sorted: None };
    // An identity saves a pass over all edges.
    let ranks = if ranks.is_identity() { None } else { Some(ranks) };
    Ok((keys, KeyMap { ranks, ..KeyMap::default() }))
}

fn by_tables<K: InputKey, P: Payload>(
    load: &Load<'_>,
    ingested: &mut Ingested<'_, P, K::Table>,
    known: u64,
) -> Result<(VertexKeys, KeyMap)> {
    // Each worker locks its own table only, so no lock is contended.
    let mut tables: Vec<Mutex<K::Table>> = std::mem::take(&mut ingested.tables).into_iter().map(Mutex::new).collect();
    let has_numbers = ingested.max_number.is_some();
    if let Some(buckets) = &mut ingested.buckets {
        buckets.for_each_mut(load.pool, |worker, entries| {
            let mut table = tables[worker].lock();
            for key in entries.iter().flat_map(|entry| [entry.list(), entry.neighbor()]) {
                intern_number::<K>(&mut table, key.into(), 0);
            }
        });
    }
    // Only blocks of plain numbers have keys that no table knows yet.
    if has_numbers {
        for_each_block(load, &mut ingested.edges, |worker, block, edges| {
            let mut table = tables[worker].lock();
            for edge in edges.iter().filter(|_| block.form == KeyForm::Numbers) {
                for key in [edge.list(), edge.neighbor()] {
                    intern_number::<K>(&mut table, key.into(), 0);
                }
            }
        })?;
    }
    // Any table serves, because all tables are joined.
    if let Some(table) = tables.first_mut() {
        let table = table.get_mut();
        ingested.vertices.iter().for_each(|&key| intern_number::<K>(table, key.into(), 0));
        // Listed vertices without edges come after all others.
        let unseen = known.min(MAX_VERTICES as u64);
        (0..unseen).for_each(|key| intern_number::<K>(table, key, u64::MAX - unseen + key));
    }
    let tables: Vec<_> = tables.into_iter().map(Mutex::into_inner).collect();
    let table_bytes: usize = tables.iter().map(KeyTable::num_bytes).sum();
    load.budget.for_edges(table_bytes as u64)?;
    let (keys, tables) = K::Table::join(tables, load.pool)?;
    let lookup = match &keys {
        VertexKeys::Integers { by_id, .. } if has_numbers => Some(Lookup::new(by_id)),
        _ => None,
    };
    load.progress.check()?;
    Ok((keys, KeyMap { lookup, tables, ..KeyMap::default() }))
}

fn intern_number<K: InputKey>(table: &mut K::Table, number: u64, position: u64) {
    if let Some(key) = K::from_digits(number) {
        table.intern(key, &[], position);
    }
}

/// Calls `body(worker, block, edges)` with every block, in no order, from all workers. Changes of the edges persist if
/// the edges are in memory.
pub(crate) fn for_each_block<P: Payload>(
    load: &Load<'_>,
    edges: &mut RawEdges<P>,
    body: impl Fn(usize, &RawBlock, &mut [LoadArc<P>]) + Sync,
) -> Result<()> {
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    load.pool.for_each_item(edges.slabs_mut(), |worker, (slab, blocks)| {
        let mut work = || -> Result<()> {
            let mut copy = Vec::new();
            let arcs = match slab {
                Slab::Memory(arcs) => arcs,
                Slab::File(file) => {
                    copy.resize(file.len(), bytemuck::Zeroable::zeroed());
                    file.read(0, &mut copy)?;
                    &mut copy
                }
            };
            for block in &blocks {
                load.progress.check()?;
                body(worker, block, &mut arcs[block.start..block.start + block.len]);
            }
            Ok(())
        };
        // After a failure, the other slabs need no work.
        let has_failed = failed.lock().is_some();
        if !has_failed && let Err(error) = work() {
            failed.lock().get_or_insert(error);
        }
    });
    failed.into_inner().map_or(Ok(()), Err)
}
