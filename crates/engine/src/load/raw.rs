//! Raw edges: edges as they were read, before their ends are ids.
//!
//! Workers fill slabs: large pieces of memory that hold the edges of many blocks. If the slabs would outgrow their
//! share of the memory, full ones go to scratch files. A slab is small enough to be read back whole.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::arcs::{LoadArc, Payload};
use super::scratch::{ArcFile, ScratchFiles};
use crate::Result;

/// The form of the ends of a block's edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyForm {
    /// The keys themselves.
    Numbers,
    /// Numbers that this worker gave to its keys.
    Interned(usize),
}

/// The edges of one block of the input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawBlock {
    /// The position of the block in the input.
    pub(crate) sequence: u64,
    pub(crate) form: KeyForm,
    /// Whether the edges ascend.
    pub(crate) is_sorted: bool,
    /// The keys of the first and the last edge, if there are any.
    pub(crate) ends: Option<(u64, u64)>,
    pub(crate) slab: usize,
    pub(crate) start: usize,
    pub(crate) len: usize,
}

/// The place of the edges of some blocks.
#[derive(Debug)]
pub(crate) enum Slab<P: Payload> {
    Memory(Vec<LoadArc<P>>),
    File(ArcFile<P>),
}

/// All edges of the input.
#[derive(Debug)]
pub(crate) struct RawEdges<P: Payload> {
    slabs: Vec<Slab<P>>,
    /// In input order.
    blocks: Vec<RawBlock>,
}

impl<P: Payload> Default for RawEdges<P> {
    fn default() -> Self {
        Self { slabs: Vec::new(), blocks: Vec::new() }
    }
}

impl<P: Payload> RawEdges<P> {
    /// The blocks, in input order.
    pub(crate) fn blocks(&self) -> &[RawBlock] {
        &self.blocks
    }

    pub(crate) fn num_edges(&self) -> usize {
        self.blocks.iter().map(|block| block.len).sum()
    }

    /// Whether edges are in scratch files.
    pub(crate) fn is_spilled(&self) -> bool {
        self.slabs.iter().any(|slab| matches!(slab, Slab::File(_)))
    }

    /// Whether all edges ascend by source and target in input order.
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

    /// The slabs, mutable, each with its blocks.
    pub(crate) fn slabs_mut(&mut self) -> Vec<(&mut Slab<P>, Vec<RawBlock>)> {
        let mut slabs: Vec<_> = self.slabs.iter_mut().map(|slab| (slab, Vec::new())).collect();
        for block in &self.blocks {
            slabs[block.slab].1.push(*block);
        }
        slabs
    }

    /// The edges of each block, in input order, if they are in memory.
    pub(crate) fn in_memory(&self) -> Vec<&[LoadArc<P>]> {
        let arcs = |block: &RawBlock| match &self.slabs[block.slab] {
            Slab::Memory(arcs) => &arcs[block.start..block.start + block.len],
            Slab::File(_) => &[],
        };
        self.blocks.iter().map(arcs).collect()
    }

    /// Reads the edges of one block.
    pub(crate) fn read(&self, block: &RawBlock, into: &mut Vec<LoadArc<P>>) -> Result<()> {
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
    scratch: &'a ScratchFiles<'a>,
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
    arcs: Vec<LoadArc<P>>,
    used: usize,
    index: usize,
    blocks: Vec<RawBlock>,
}

impl<P: Payload> Default for OpenSlab<P> {
    fn default() -> Self {
        Self { arcs: Vec::new(), used: 0, index: 0, blocks: Vec::new() }
    }
}

impl<'a, P: Payload> SlabStore<'a, P> {
    pub(crate) fn new(scratch: &'a ScratchFiles<'a>, slab_arcs: usize) -> Self {
        let (held, is_spilling) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { scratch, slab_arcs: slab_arcs.max(1), held, is_spilling, slabs: Mutex::new(Vec::new()) }
    }

    /// Adds a block of `len` edges, which `fill` writes. `limit` bounds the arcs in memory.
    pub(crate) fn add(
        &self,
        open: &mut OpenSlab<P>,
        block: (u64, KeyForm),
        len: usize,
        limit: usize,
        fill: impl FnOnce(&mut [LoadArc<P>]),
    ) -> Result<()> {
        // A block of comments has no edges, and perhaps no slab was begun yet.
        if len == 0 {
            return Ok(());
        }
        if open.arcs.len() - open.used < len {
            self.renew(open, len, limit)?;
        }
        let start = open.used;
        let arcs = &mut open.arcs[start..start + len];
        fill(arcs);
        // Noted while the edges are in the cache, because sorted input needs no sorting.
        let ends = arcs.first().zip(arcs.last()).map(|(first, last)| (first.key(), last.key()));
        let is_sorted = arcs.is_sorted_by_key(|arc| arc.key());
        open.used += len;
        let (sequence, form) = block;
        open.blocks.push(RawBlock { sequence, form, is_sorted, ends, slab: open.index, start, len });
        Ok(())
    }

    /// Arcs for which slabs in memory have room.
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

    /// Adds edges between numeric keys, in no order, as a scratch file.
    pub(crate) fn add_file(&self, open: &mut OpenSlab<P>, arcs: &[LoadArc<P>]) -> Result<()> {
        self.is_spilling.store(true, Ordering::Relaxed);
        let mut file = self.scratch.file()?;
        file.append(arcs)?;
        // The lock is taken after the write, so that other workers go on meanwhile.
        let mut slabs = self.slabs.lock();
        let block = RawBlock {
            // The edges come in no order, so the sequence does not matter.
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

    /// Stores the worker's full slab, and makes room for `len` arcs.
    fn renew(&self, open: &mut OpenSlab<P>, len: usize, limit: usize) -> Result<()> {
        let wanted = self.slab_arcs.max(len);
        // Concurrent workers may exceed the limit by one slab each.
        let held = self.held.load(Ordering::Relaxed);
        // After the first file all slabs go to files, because edges are then sorted on the disk.
        let must_spill = held + wanted > limit || self.is_spilling.load(Ordering::Relaxed);
        if must_spill && open.used > 0 {
            self.is_spilling.store(true, Ordering::Relaxed);
            self.spill(open)?;
        } else if open.used > 0 {
            self.keep(open);
        }
        // The memory of a spilled slab is used again.
        if open.arcs.len() < wanted {
            self.held.fetch_sub(open.arcs.len(), Ordering::Relaxed);
            // Freed first, so that the old and the new slab do not take memory together.
            drop(std::mem::take(&mut open.arcs));
            open.arcs = anden_base::memory::zeroed_huge(wanted);
            self.held.fetch_add(wanted, Ordering::Relaxed);
        }
        open.used = 0;
        let mut slabs = self.slabs.lock();
        open.index = slabs.len();
        slabs.push(None);
        Ok(())
    }

    fn spill(&self, open: &OpenSlab<P>) -> Result<()> {
        let mut file = self.scratch.file()?;
        file.append(&open.arcs[..open.used])?;
        self.slabs.lock()[open.index] = Some(Slab::File(file));
        Ok(())
    }

    fn keep(&self, open: &mut OpenSlab<P>) {
        let mut arcs = std::mem::take(&mut open.arcs);
        arcs.truncate(open.used);
        self.slabs.lock()[open.index] = Some(Slab::Memory(arcs));
    }

    /// Takes the workers' open slabs. If any slab was spilled, all are.
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
        for slab in self.slabs.into_inner() {
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
