//! From blocks of the input to raw edges and tables of keys.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use base::MAX_VERTICES;
use base::parallel::Pool;
use base::progress::Progress;
use graph::Weight;
use graph::formats::{EdgeBlock, FieldKey, Source, SourceSummary, Span};
use lama::KeyScheme;

use super::arcs::{KeyedArc, Payload};
use super::budget::Budget;
use super::intern::{IntegerTable, KeyTable, TextTable};
use super::keys::{Joined, check_num_vertices};
use super::raw::{KeyForm, OpenSlab, RawEdges, SlabStore};
use super::scratch::Scratch;
use crate::{Error, Result};

/// Tables of keys are held twice, and more, while they are joined.
const JOIN_FACTOR: u64 = 2;

/// What is done with keys while they are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyPlan {
    pub(crate) scheme: KeyScheme,
    /// Whether ids are given in the order in which keys are met.
    pub(crate) io_order: bool,
}

/// Everything that the input holds.
pub(crate) struct Ingested<P: Payload, T> {
    pub(crate) edges: RawEdges<P>,
    /// A table for each worker.
    pub(crate) tables: Vec<T>,
    /// Vertices without edges, as numbers that are keys.
    pub(crate) vertices: Vec<u32>,
    /// The largest number that is a key; `None` where there is none.
    pub(crate) max_number: Option<u64>,
    pub(crate) summary: SourceSummary,
}

/// Keys as blocks hold them.
pub(crate) trait InputKey: FieldKey {
    type Table: Joined<Key = Self>;

    /// The key as a number, where it is one; more than 32 bits where it is none.
    fn as_u64(self) -> u64;

    fn describe(self, text: &[u8]) -> String;
}

impl InputKey for u64 {
    type Table = IntegerTable;

    #[inline(always)]
    fn as_u64(self) -> u64 {
        self
    }

    fn describe(self, _text: &[u8]) -> String {
        self.to_string()
    }
}

impl InputKey for Span {
    type Table = TextTable;

    #[inline(always)]
    fn as_u64(self) -> u64 {
        u64::MAX
    }

    fn describe(self, text: &[u8]) -> String {
        String::from_utf8_lossy(self.of(text)).into_owned()
    }
}

struct Worker<P: Payload, T> {
    slab: OpenSlab<P>,
    table: T,
    table_bytes: u64,
    vertices: Vec<u32>,
    max_number: Option<u64>,
}

/// Reads the whole input; `copies` is how many times its edges are held at once later on.
pub(crate) fn ingest<K: InputKey, P: Payload>(
    source: &mut Source,
    plan: KeyPlan,
    copies: u64,
    budget: &Budget,
    scratch: &Scratch<'_>,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<Ingested<P, K::Table>> {
    progress.stage("read", source.facts().input_bytes);
    let arc_bytes = size_of::<KeyedArc<P>>() as u64;
    let reader = Reader {
        plan,
        copies,
        budget,
        slabs: SlabStore::new(scratch, (budget.slab_bytes() / arc_bytes) as usize),
        key_bytes: AtomicU64::new(0),
    };
    let workers: Vec<Mutex<Worker<P, K::Table>>> = (0..pool.num_threads())
        .map(|_| {
            let table = K::Table::new(plan.io_order);
            let slab = OpenSlab::default();
            Mutex::new(Worker { slab, table, table_bytes: 0, vertices: Vec::new(), max_number: None })
        })
        .collect();
    let (bytes_read, bytes_told) = (source.bytes_read(), AtomicU64::new(0));
    let summary = source.for_each_block(pool, |worker, block| -> Result<()> {
        progress.check()?;
        let now = bytes_read.load(Ordering::Relaxed);
        progress.advance(now.saturating_sub(bytes_told.fetch_max(now, Ordering::Relaxed)));
        let mut state = workers[worker].lock().unwrap_or_else(|e| e.into_inner());
        reader.take::<K>(worker, &mut state, block)
    })?;
    let workers: Vec<_> = workers.into_iter().map(|w| w.into_inner().unwrap_or_else(|e| e.into_inner())).collect();
    let max_number = workers.iter().filter_map(|worker| worker.max_number).max();
    let (mut slabs, mut tables, mut vertices) = (Vec::new(), Vec::new(), Vec::new());
    for mut worker in workers {
        slabs.push(worker.slab);
        tables.push(worker.table);
        vertices.append(&mut worker.vertices);
    }
    let edges = reader.slabs.finish(slabs)?;
    Ok(Ingested { edges, tables, vertices, max_number, summary })
}

/// What the workers share.
struct Reader<'a, P: Payload> {
    plan: KeyPlan,
    copies: u64,
    budget: &'a Budget,
    slabs: SlabStore<'a, P>,
    /// Bytes of all tables of keys.
    key_bytes: AtomicU64,
}

impl<P: Payload> Reader<'_, P> {
    fn take<K: InputKey>(
        &self,
        worker: usize,
        state: &mut Worker<P, K::Table>,
        block: EdgeBlock<K, P::Weight>,
    ) -> Result<()> {
        check_weights::<P, K>(&block)?;
        let key_bytes = self.key_bytes.load(Ordering::Relaxed) * JOIN_FACTOR;
        let limit = self.budget.for_edges(key_bytes)? / (self.copies * size_of::<KeyedArc<P>>() as u64);
        let largest = largest_number(&block);
        let form = match (self.plan.scheme, largest) {
            (KeyScheme::Dense, Some(largest)) if (largest as usize) < MAX_VERTICES => KeyForm::Numbers,
            (KeyScheme::Dense, _) if !is_empty(&block) => return Err(out_of_range(&block)),
            (KeyScheme::Integer, Some(_)) if !self.plan.io_order => KeyForm::Numbers,
            _ => KeyForm::Interned(worker),
        };
        let payload = |i: usize| if P::IS_WEIGHTED { P::from_weight(block.weights[i]) } else { P::zeroed() };
        let target = (block.sequence, form);
        match form {
            KeyForm::Numbers => {
                state.max_number = state.max_number.max(largest.map(u64::from));
                state.vertices.extend(block.vertices.iter().map(|key| key.as_u64() as u32));
                self.slabs.add(&mut state.slab, target, block.edges.len(), limit as usize, |arcs| {
                    for (i, (arc, (source, target))) in arcs.iter_mut().zip(&block.edges).enumerate() {
                        *arc = KeyedArc::new(source.as_u64() as u32, target.as_u64() as u32, payload(i));
                    }
                })
            }
            KeyForm::Interned(_) => {
                let Worker { slab, table, .. } = state;
                self.slabs.add(slab, target, block.edges.len(), limit as usize, |arcs| {
                    intern_block(table, &block, |i, source, target| {
                        arcs[i] = KeyedArc::new(source, target, payload(i));
                    });
                })?;
                self.account(state)
            }
        }
    }

    /// Notes what a worker's table takes now.
    fn account<T: Joined>(&self, state: &mut Worker<P, T>) -> Result<()> {
        let now = state.table.num_bytes() as u64;
        self.key_bytes.fetch_add(now - state.table_bytes, Ordering::Relaxed);
        state.table_bytes = now;
        check_num_vertices(state.table.len() as u64)
    }
}

/// Gives numbers to all keys of a block.
fn intern_block<K: InputKey, W>(table: &mut K::Table, block: &EdgeBlock<K, W>, body: impl FnMut(usize, u32, u32)) {
    // The place in the input: blocks have far fewer keys than 2^32.
    let mut position = block.sequence << 32;
    table.intern_edges(&block.edges, &block.text, position, body);
    position += 2 * block.edges.len() as u64;
    for &key in &block.vertices {
        table.intern(key, &block.text, position);
        position += 1;
    }
}

/// The largest key of a block whose keys all fit in 32 bits.
fn largest_number<K: InputKey, W>(block: &EdgeBlock<K, W>) -> Option<u32> {
    let of_edges = block.edges.iter().map(|&(source, target)| source.as_u64().max(target.as_u64())).max();
    let of_vertices = block.vertices.iter().map(|key| key.as_u64()).max();
    of_edges.max(of_vertices).and_then(|largest| u32::try_from(largest).ok())
}

fn is_empty<K, W>(block: &EdgeBlock<K, W>) -> bool {
    block.edges.is_empty() && block.vertices.is_empty()
}

fn out_of_range<K: InputKey, W>(block: &EdgeBlock<K, W>) -> Error {
    let is_out = |key: &K| key.as_u64() >= MAX_VERTICES as u64;
    let keys = block.edges.iter().flat_map(|(source, target)| [source, target]).chain(&block.vertices);
    let found = keys.copied().find(is_out).map_or_else(String::new, |key| key.describe(&block.text));
    Error::Option(format!(
        "vertex {found} is out of range: dense ids are below {MAX_VERTICES}; integer ids may be any number"
    ))
}

/// Weights are as many as edges, and numbers.
fn check_weights<P: Payload, K>(block: &EdgeBlock<K, P::Weight>) -> Result<()> {
    if !P::IS_WEIGHTED {
        return Ok(());
    }
    if block.weights.len() != block.edges.len() {
        let what = format!("{} edges came with {} weights", block.edges.len(), block.weights.len());
        return Err(Error::Option(what));
    }
    match block.weights.iter().all(|weight| weight.is_number()) {
        true => Ok(()),
        false => Err(Error::Option("a weight is not a number (NaN)".into())),
    }
}
