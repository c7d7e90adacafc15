//! Edges as they were read, before their ends are vertices.
//!
//! Workers fill slabs: large pieces of memory, of which each block of the input takes a part. Where
//! the slabs would outgrow their share of the memory, full ones go to scratch files; a slab is small
//! enough to be read back whole.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::arcs::{KeyedArc, Payload};
use super::scratch::{ArcFile, Scratch};
use crate::Result;

/// What the ends of a block's edges are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyForm {
    /// The keys themselves.
    Numbers,
    /// Numbers that this worker gave to the keys that it met.
    Interned(usize),
}

/// The edges of one block of the input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// The place of the block in the input.
    pub(crate) sequence: u64,
    pub(crate) form: KeyForm,
    /// Whether the edges ascend.
    pub(crate) is_sorted: bool,
    /// The first and the last edge, where there are any.
    pub(crate) ends: Option<(u64, u64)>,
    pub(crate) slab: usize,
    pub(crate) start: usize,
    pub(crate) len: usize,
}

/// Where the edges of some blocks are.
#[derive(Debug)]
pub(crate) enum Slab<P: Payload> {
    Memory(Vec<KeyedArc<P>>),
    File(ArcFile<P>),
}

/// All edges of the input.
#[derive(Debug)]
pub(crate) struct RawEdges<P: Payload> {
    slabs: Vec<Slab<P>>,
    /// In input order.
    blocks: Vec<Block>,
}

impl<P: Payload> Default for RawEdges<P> {
    fn default() -> Self {
        Self { slabs: Vec::new(), blocks: Vec::new() }
    }
}

impl<P: Payload> RawEdges<P> {
    /// The blocks, in input order.
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    pub(crate) fn num_edges(&self) -> usize {
        self.blocks.iter().map(|block| block.len).sum()
    }

    /// Whether the edges are in scratch files.
    pub(crate) fn is_spilled(&self) -> bool {
        self.slabs.iter().any(|slab| matches!(slab, Slab::File(_)))
    }

    /// Whether all edges ascend, first by source and then by target, as the input gives them.
    pub(crate) fn is_sorted(&self) -> bool {
        let mut previous = 0;
        self.blocks.iter().filter(|block| block.len > 0).all(|block| match block.ends {
            Some((first, last)) if block.is_sorted && first >= previous => {
                previous = last;
                true
            }
            _ => false,
        })
    }

    /// The slabs to be changed in place, each with its blocks.
    pub(crate) fn slabs_mut(&mut self) -> Vec<(&mut Slab<P>, Vec<Block>)> {
        let mut slabs: Vec<_> = self.slabs.iter_mut().map(|slab| (slab, Vec::new())).collect();
        for block in &self.blocks {
            slabs[block.slab].1.push(*block);
        }
        slabs
    }

    /// The edges of each block, in input order, where they are in memory.
    pub(crate) fn in_memory(&self) -> Vec<&[KeyedArc<P>]> {
        let arcs = |block: &Block| match &self.slabs[block.slab] {
            Slab::Memory(arcs) => &arcs[block.start..block.start + block.len],
            Slab::File(_) => &[],
        };
        self.blocks.iter().map(arcs).collect()
    }

    /// Reads the edges of one block.
    pub(crate) fn read(&self, block: &Block, into: &mut Vec<KeyedArc<P>>) -> Result<()> {
        into.clear();
        match &self.slabs[block.slab] {
            Slab::Memory(arcs) => into.extend_from_slice(&arcs[block.start..block.start + block.len]),
            Slab::File(file) => {
                into.resize(block.len, bytemuck::Zeroable::zeroed());
                file.read(block.start, into)?;
            }
        }
        Ok(())
    }
}

/// The slabs of all workers while the input is read.
pub(crate) struct SlabStore<'a, P: Payload> {
    scratch: &'a Scratch<'a>,
    /// Arcs of a slab.
    slab_arcs: usize,
    /// Arcs in slabs in memory.
    held: AtomicUsize,
    is_spilling: AtomicBool,
    slabs: Mutex<Vec<Option<Slab<P>>>>,
}

/// The slab that one worker fills.
#[derive(Debug)]
pub(crate) struct OpenSlab<P: Payload> {
    arcs: Vec<KeyedArc<P>>,
    used: usize,
    index: usize,
    blocks: Vec<Block>,
}

impl<P: Payload> Default for OpenSlab<P> {
    fn default() -> Self {
        Self { arcs: Vec::new(), used: 0, index: 0, blocks: Vec::new() }
    }
}

impl<'a, P: Payload> SlabStore<'a, P> {
    pub(crate) fn new(scratch: &'a Scratch<'a>, slab_arcs: usize) -> Self {
        let (held, is_spilling) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { scratch, slab_arcs: slab_arcs.max(1), held, is_spilling, slabs: Mutex::new(Vec::new()) }
    }

    fn slabs(&self) -> MutexGuard<'_, Vec<Option<Slab<P>>>> {
        self.slabs.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Adds a block of `len` edges, which `fill` writes; `limit` bounds the arcs held in memory.
    pub(crate) fn add(
        &self,
        open: &mut OpenSlab<P>,
        block: (u64, KeyForm),
        len: usize,
        limit: usize,
        fill: impl FnOnce(&mut [KeyedArc<P>]),
    ) -> Result<()> {
        if len == 0 {
            return Ok(()); // a block of comments has no edges, and perhaps no slab was begun yet
        }
        if open.arcs.len() - open.used < len {
            self.renew(open, len, limit)?;
        }
        let start = open.used;
        let arcs = &mut open.arcs[start..start + len];
        fill(arcs);
        let ends = arcs.first().zip(arcs.last()).map(|(first, last)| (first.key(), last.key()));
        let is_sorted = arcs.is_sorted_by_key(|arc| arc.key());
        open.used += len;
        let (sequence, form) = block;
        open.blocks.push(Block { sequence, form, is_sorted, ends, slab: open.index, start, len });
        Ok(())
    }

    /// Arcs that slabs in memory have room for.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    pub(crate) fn is_spilling(&self) -> bool {
        self.is_spilling.load(Ordering::Relaxed)
    }

    /// Arcs of a scratch file that can be read back whole.
    pub(crate) fn file_arcs(&self) -> usize {
        self.slab_arcs
    }

    /// Adds numbers that are keys, in no order, as a scratch file.
    pub(crate) fn add_file(&self, open: &mut OpenSlab<P>, arcs: &[KeyedArc<P>]) -> Result<()> {
        self.is_spilling.store(true, Ordering::Relaxed);
        let mut file = self.scratch.file()?;
        file.append(arcs)?;
        let mut slabs = self.slabs();
        let block = Block {
            sequence: 0,
            form: KeyForm::Numbers,
            is_sorted: false,
            ends: None,
            slab: slabs.len(),
            start: 0,
            len: arcs.len(),
        };
        slabs.push(Some(Slab::File(file)));
        open.blocks.push(block);
        Ok(())
    }

    /// Puts away what the worker has and gives it room for `len` arcs.
    fn renew(&self, open: &mut OpenSlab<P>, len: usize, limit: usize) -> Result<()> {
        let wanted = self.slab_arcs.max(len);
        let held = self.held.load(Ordering::Relaxed);
        let must_spill = held + wanted > limit || self.is_spilling.load(Ordering::Relaxed);
        if must_spill && open.used > 0 {
            self.is_spilling.store(true, Ordering::Relaxed);
            self.spill(open)?;
        } else if open.used > 0 {
            self.keep(open);
        }
        if open.arcs.len() < wanted {
            self.held.fetch_sub(open.arcs.len(), Ordering::Relaxed);
            drop(std::mem::take(&mut open.arcs));
            open.arcs = base::memory::zeroed_huge(wanted);
            self.held.fetch_add(wanted, Ordering::Relaxed);
        }
        open.used = 0;
        let mut slabs = self.slabs();
        open.index = slabs.len();
        slabs.push(None);
        Ok(())
    }

    fn spill(&self, open: &OpenSlab<P>) -> Result<()> {
        let mut file = self.scratch.file()?;
        file.append(&open.arcs[..open.used])?;
        self.slabs()[open.index] = Some(Slab::File(file));
        Ok(())
    }

    fn keep(&self, open: &mut OpenSlab<P>) {
        let mut arcs = std::mem::take(&mut open.arcs);
        arcs.truncate(open.used);
        self.slabs()[open.index] = Some(Slab::Memory(arcs));
    }

    /// Takes what the workers still have. If any slab was spilled, all are.
    pub(crate) fn finish(self, open: impl IntoIterator<Item = OpenSlab<P>>) -> Result<RawEdges<P>> {
        let is_spilling = self.is_spilling.load(Ordering::Relaxed);
        let mut blocks = Vec::new();
        for mut open in open {
            if open.used > 0 && is_spilling {
                self.spill(&open)?;
            } else if open.used > 0 {
                self.keep(&mut open);
            }
            blocks.append(&mut open.blocks);
        }
        blocks.sort_unstable_by_key(|block| block.sequence);
        let mut slabs = Vec::new();
        for slab in self.slabs.into_inner().unwrap_or_else(|e| e.into_inner()) {
            slabs.push(match slab {
                Some(Slab::Memory(arcs)) if is_spilling => {
                    let mut file = self.scratch.file()?;
                    file.append(&arcs)?;
                    Slab::File(file)
                }
                Some(slab) => slab,
                // A worker made room for a block without edges.
                None => Slab::Memory(Vec::new()),
            });
        }
        Ok(RawEdges { slabs, blocks })
    }
}
