//! Who may read which version: readers pin the newest one without a lock, the writer learns which older
//! ones are still pinned.
//!
//! Each published version has a *seat*: a count of pins, and the words that lead to its nodes. To pin, a
//! reader counts itself in at the seat that is marked as current and looks again whether it still is. If
//! not, it leaves and tries the new one; what the seat holds it has not read. The writer fills a free
//! seat, marks it as current, and only then looks at the pins of the one before. Either side puts a full
//! fence between its write and its look, so at least one of them sees the other: a seat that the writer
//! finds empty after it is no longer current stays empty, or is left unread.
//!
//! This module knows nothing of nodes, so that a model checker can run it whole.

use std::sync::{Arc, OnceLock};

use super::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// The seats of the first row; each further row has twice as many.
const FIRST_ROW: u32 = 16;
const NUM_ROWS: usize = 24;

/// A seat, by its number.
pub(crate) type SeatId = u32;

#[derive(Debug)]
struct Seat<const N: usize> {
    num_pins: AtomicU64,
    words: [AtomicU64; N],
}

impl<const N: usize> Seat<N> {
    fn new() -> Self {
        Self { num_pins: AtomicU64::new(0), words: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

/// The seats, shared by the readers and the writer.
#[derive(Debug)]
pub(crate) struct Seats<const N: usize> {
    current: AtomicU32,
    rows: [OnceLock<Box<[Seat<N>]>>; NUM_ROWS],
}

impl<const N: usize> Seats<N> {
    fn seat(&self, id: SeatId) -> &Seat<N> {
        let row = (id / FIRST_ROW + 1).ilog2();
        let before = ((1 << row) - 1) * FIRST_ROW;
        let seats = self.rows[row as usize].get_or_init(|| (0..FIRST_ROW << row).map(|_| Seat::new()).collect());
        &seats[(id - before) as usize]
    }

    /// Pins the newest version: its seat, to be [unpinned](Self::unpin) once, and its words.
    pub(crate) fn pin(&self) -> (SeatId, [u64; N]) {
        loop {
            let id = self.current.load(Ordering::Acquire);
            let seat = self.seat(id);
            seat.num_pins.fetch_add(1, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if self.current.load(Ordering::Acquire) == id {
                let words = std::array::from_fn(|i| seat.words[i].load(Ordering::Relaxed));
                return (id, words);
            }
            seat.num_pins.fetch_sub(1, Ordering::Release);
        }
    }

    /// Pins a seat once more that the caller has pinned.
    pub(crate) fn pin_again(&self, id: SeatId) {
        self.seat(id).num_pins.fetch_add(1, Ordering::Relaxed);
    }

    /// A word of a seat that the caller has pinned, as the writer last [renewed](Publisher::renew) it.
    pub(crate) fn word(&self, id: SeatId, index: usize) -> u64 {
        self.seat(id).words[index].load(Ordering::Acquire)
    }

    /// Gives a pin back: what was read under it was read before the writer finds the seat empty.
    pub(crate) fn unpin(&self, id: SeatId) {
        self.seat(id).num_pins.fetch_sub(1, Ordering::Release);
    }
}

/// The writer's side: there is one.
#[derive(Debug)]
pub(crate) struct Publisher<const N: usize> {
    seats: Arc<Seats<N>>,
    current: SeatId,
    current_epoch: u64,
    /// Seats that nobody needs.
    free: Vec<SeatId>,
    num_seats: u32,
    /// Versions before the current one that may be pinned still, ascending by epoch.
    past: Vec<(u64, SeatId)>,
}

impl<const N: usize> Publisher<N> {
    /// Seats whose current version is epoch 0 with these words.
    pub(crate) fn new(words: [u64; N]) -> Self {
        let rows = std::array::from_fn(|_| OnceLock::new());
        let seats = Arc::new(Seats { current: AtomicU32::new(0), rows });
        let publisher = Self { seats, current: 0, current_epoch: 0, free: Vec::new(), num_seats: 1, past: Vec::new() };
        publisher.fill(0, words);
        publisher
    }

    /// The seats, for readers.
    pub(crate) fn seats(&self) -> &Arc<Seats<N>> {
        &self.seats
    }

    fn fill(&self, id: SeatId, words: [u64; N]) {
        let seat = self.seats.seat(id);
        for (to, word) in seat.words.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
    }

    /// Makes `words` the newest version, of an epoch above all before.
    pub(crate) fn publish(&mut self, epoch: u64, words: [u64; N]) {
        assert!(epoch > self.current_epoch, "epochs ascend");
        let id = self.free.pop().unwrap_or_else(|| {
            self.num_seats += 1;
            self.num_seats - 1
        });
        self.fill(id, words);
        self.seats.current.store(id, Ordering::Release);
        fence(Ordering::SeqCst);
        self.past.push((self.current_epoch, self.current));
        (self.current, self.current_epoch) = (id, epoch);
    }

    /// The version of the epoch before the newest, and its seat, if somebody has it pinned. If not, nobody ever will.
    pub(crate) fn outlived(&self) -> Option<(u64, SeatId)> {
        let &(epoch, id) = self.past.last()?;
        let is_pinned = || self.seats.seat(id).num_pins.load(Ordering::Acquire) != 0;
        (epoch + 1 == self.current_epoch && is_pinned()).then_some((epoch, id))
    }

    /// The newest version, and its seat.
    pub(crate) fn current(&self) -> (u64, SeatId) {
        (self.current_epoch, self.current)
    }

    /// Changes a word of a version that nobody [asks](Seats::word) for before it is changed.
    pub(crate) fn renew(&self, id: SeatId, index: usize, word: u64) {
        self.seats.seat(id).words[index].store(word, Ordering::Release);
    }

    /// Calls `dropped` with the epochs of older versions that nobody holds any more, each once; what was
    /// read from them was read before. Nobody can pin them again.
    pub(crate) fn sweep(&mut self, mut dropped: impl FnMut(u64)) {
        let (seats, free) = (&self.seats, &mut self.free);
        self.past.retain(|&(epoch, id)| {
            let is_pinned = seats.seat(id).num_pins.load(Ordering::Acquire) != 0;
            if !is_pinned {
                free.push(id);
                dropped(epoch);
            }
            is_pinned
        });
    }

    /// The older versions that may be pinned, ascending.
    pub(crate) fn past(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.past.iter().map(|&(epoch, _)| epoch)
    }
}
