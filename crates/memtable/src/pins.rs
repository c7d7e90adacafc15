//! Pins of versions: readers pin the newest version without a lock, and the writer learns which older versions are
//! still pinned.
//!
//! Each published version has an *epoch slot* ([`EpochSlot`]): a count of pins, and the words that lead to its nodes. A
//! reader increments the count of the current slot, then checks that the slot is still current. If it is not, the
//! reader decrements the count and tries again, without having read the words. The writer fills a free slot, makes it
//! current, and only then reads the count of the slot before.
//!
//! Each thread puts a full fence between its write and its check, so at least one of them sees the other's write. A
//! slot that is not current and whose count the writer reads as zero is never read again before it is refilled.
//!
//! This module does not depend on nodes, so a model checker can run all of it.

use std::sync::{Arc, OnceLock};

use super::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// Slots of the first row. Each further row has twice as many.
const FIRST_ROW: u32 = 16;
const NUM_ROWS: usize = 24;

/// Number of an epoch slot.
pub(crate) type EpochSlotId = u32;

#[derive(Debug)]
struct EpochSlot<const N: usize> {
    num_pins: AtomicU64,
    words: [AtomicU64; N],
}

impl<const N: usize> EpochSlot<N> {
    fn new() -> Self {
        Self { num_pins: AtomicU64::new(0), words: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

/// The epoch slots, shared by the readers and the writer.
#[derive(Debug)]
pub(crate) struct EpochSlots<const N: usize> {
    // Rows are allocated when needed and never move, so readers need no lock.
    current: AtomicU32,
    rows: [OnceLock<Box<[EpochSlot<N>]>>; NUM_ROWS],
}

impl<const N: usize> EpochSlots<N> {
    fn epoch_slot(&self, id: EpochSlotId) -> &EpochSlot<N> {
        // Row r has FIRST_ROW << r slots, so the row follows from a logarithm, without a search.
        let row = (id / FIRST_ROW + 1).ilog2();
        let before = ((1 << row) - 1) * FIRST_ROW;
        let epoch_slots =
            self.rows[row as usize].get_or_init(|| (0..FIRST_ROW << row).map(|_| EpochSlot::new()).collect());
        &epoch_slots[(id - before) as usize]
    }

    /// Pins the newest version. Returns its slot, to be [unpinned](Self::unpin) once, and its words.
    pub(crate) fn pin(&self) -> (EpochSlotId, [u64; N]) {
        loop {
            // Pairs with the store in `Publisher::publish`, which makes the words visible.
            let id = self.current.load(Ordering::Acquire);
            let epoch_slot = self.epoch_slot(id);
            // Relaxed: the fence below orders this write before the check of `current`.
            epoch_slot.num_pins.fetch_add(1, Ordering::Relaxed);
            // Without the fence, the writer could miss this pin and this reader the new version.
            fence(Ordering::SeqCst);
            if self.current.load(Ordering::Acquire) == id {
                // Relaxed: the acquire load of `current` makes the words visible, and the pin keeps the writer from
                // refilling them.
                let words = std::array::from_fn(|i| epoch_slot.words[i].load(Ordering::Relaxed));
                return (id, words);
            }
            epoch_slot.num_pins.fetch_sub(1, Ordering::Release);
        }
    }

    /// Pins a slot that the caller has already pinned.
    pub(crate) fn pin_again(&self, id: EpochSlotId) {
        // Relaxed: the caller's own pin keeps the count above zero meanwhile.
        self.epoch_slot(id).num_pins.fetch_add(1, Ordering::Relaxed);
    }

    /// Word of a slot that the caller has pinned, as last [renewed](Publisher::renew).
    pub(crate) fn word(&self, id: EpochSlotId, index: usize) -> u64 {
        self.epoch_slot(id).words[index].load(Ordering::Acquire)
    }

    /// Releases a pin. All reads under it happen before the writer finds the slot empty.
    pub(crate) fn unpin(&self, id: EpochSlotId) {
        self.epoch_slot(id).num_pins.fetch_sub(1, Ordering::Release);
    }
}

/// The writer's access to the slots. Only one exists.
#[derive(Debug)]
pub(crate) struct Publisher<const N: usize> {
    epoch_slots: Arc<EpochSlots<N>>,
    current: EpochSlotId,
    current_epoch: u64,
    /// Slots without a version.
    free: Vec<EpochSlotId>,
    num_slots: u32,
    /// Versions before the current one that may still be pinned, ascending by epoch.
    past: Vec<(u64, EpochSlotId)>,
}

impl<const N: usize> Publisher<N> {
    /// Creates slots whose current version is epoch 0 with these words.
    pub(crate) fn new(words: [u64; N]) -> Self {
        let rows = std::array::from_fn(|_| OnceLock::new());
        let epoch_slots = Arc::new(EpochSlots { current: AtomicU32::new(0), rows });
        let publisher =
            Self { epoch_slots, current: 0, current_epoch: 0, free: Vec::new(), num_slots: 1, past: Vec::new() };
        publisher.fill(0, words);
        publisher
    }

    /// The slots, for readers.
    pub(crate) fn epoch_slots(&self) -> &Arc<EpochSlots<N>> {
        &self.epoch_slots
    }

    fn fill(&self, id: EpochSlotId, words: [u64; N]) {
        let epoch_slot = self.epoch_slots.epoch_slot(id);
        for (to, word) in epoch_slot.words.iter().zip(words) {
            // Relaxed: the slot is not current, so no reader uses its words. The store of `current` publishes them.
            to.store(word, Ordering::Relaxed);
        }
    }

    /// Publishes `words` as the newest version. `epoch` exceeds all epochs before.
    pub(crate) fn publish(&mut self, epoch: u64, words: [u64; N]) {
        assert!(epoch > self.current_epoch, "epochs ascend");
        let id = self.free.pop().unwrap_or_else(|| {
            self.num_slots += 1;
            self.num_slots - 1
        });
        self.fill(id, words);
        // After the words, so that readers of a current slot see them.
        self.epoch_slots.current.store(id, Ordering::Release);
        // Pairs with the fence in `EpochSlots::pin`.
        fence(Ordering::SeqCst);
        // The count of the old slot is read only by way of `past`, so never before the fence.
        self.past.push((self.current_epoch, self.current));
        (self.current, self.current_epoch) = (id, epoch);
    }

    /// Slot of the version before the newest, if its epoch is the preceding one and a reader has it pinned. A version
    /// that is unpinned now can never be pinned again.
    pub(crate) fn outlived(&self) -> Option<(u64, EpochSlotId)> {
        let &(epoch, id) = self.past.last()?;
        // Acquire: pairs with `unpin`, so all reads under the last pin happen before the answer.
        let is_pinned = || self.epoch_slots.epoch_slot(id).num_pins.load(Ordering::Acquire) != 0;
        (epoch + 1 == self.current_epoch && is_pinned()).then_some((epoch, id))
    }

    /// Epoch and slot of the newest version.
    pub(crate) fn current(&self) -> (u64, EpochSlotId) {
        (self.current_epoch, self.current)
    }

    /// Changes a word of a version. Its readers [ask](EpochSlots::word) for that word only after the change.
    pub(crate) fn renew(&self, id: EpochSlotId, index: usize, word: u64) {
        self.epoch_slots.epoch_slot(id).words[index].store(word, Ordering::Release);
    }

    /// Calls `dropped` once for the epoch of each older version that is no longer pinned. All reads of that version
    /// happened before, and it can never be pinned again.
    pub(crate) fn sweep(&mut self, mut dropped: impl FnMut(u64)) {
        let (epoch_slots, free) = (&self.epoch_slots, &mut self.free);
        self.past.retain(|&(epoch, id)| {
            // Pairs with `EpochSlots::unpin`: all reads under the pin are over.
            let is_pinned = epoch_slots.epoch_slot(id).num_pins.load(Ordering::Acquire) != 0;
            if !is_pinned {
                free.push(id);
                dropped(epoch);
            }
            is_pinned
        });
    }

    /// Epochs of the older versions that may be pinned, ascending.
    pub(crate) fn past(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.past.iter().map(|&(epoch, _)| epoch)
    }
}
