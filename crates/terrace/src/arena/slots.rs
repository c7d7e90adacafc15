//! Which lines are free: classes of sizes, one stock for all workers, a few slots of each class at hand.
//!
//! Lines that come back are handed out again before new ones are: on a virtual machine the first touch
//! of a page costs twenty times as much as a later one.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use super::{Arena, Fresh, Handle, LINE_WORDS, MAX_LINES};
use crate::{Error, Result};

/// Slots that move from the stock to a worker at a time.
const HANDFUL: usize = 64;
/// New lines that a worker takes from the stock at a time: 256 KB.
const STRETCH_LINES: usize = 4096;
/// Sizes up to this many lines have a class each; above, four classes share a doubling.
const EXACT_LINES: usize = 16;
const NUM_CLASSES: usize = class_of(MAX_LINES) + 1;

/// The class that a node of so many lines, at least one, belongs to.
const fn class_of(num_lines: usize) -> usize {
    if num_lines <= EXACT_LINES {
        return num_lines - 1;
    }
    let octave = (num_lines - 1).ilog2();
    let quarter = ((num_lines - 1) >> (octave - 2)) & 3;
    EXACT_LINES + (octave - EXACT_LINES.ilog2()) as usize * 4 + quarter
}

/// The lines of the slots of a class.
const fn lines_of(class: usize) -> usize {
    if class < EXACT_LINES {
        return class + 1;
    }
    let octave = EXACT_LINES.ilog2() as usize + (class - EXACT_LINES) / 4;
    (1 << octave) + (((class - EXACT_LINES) % 4 + 1) << (octave - 2))
}

/// The lines of the slot that a node of so many words lies in.
pub(crate) fn slot_lines(num_words: usize) -> usize {
    lines_of(class_of(num_words.div_ceil(LINE_WORDS)))
}

/// What is free, for all workers.
#[derive(Debug)]
pub(crate) struct Stock {
    free: Mutex<Free>,
}

#[derive(Debug)]
struct Free {
    /// By class, the first lines of slots.
    slots: [Vec<Handle>; NUM_CLASSES],
    /// Lines that were never handed out.
    untouched: Range<usize>,
    /// Lines of slots that nodes occupy.
    num_live: i64,
}

impl Stock {
    /// All lines of an arena but those at its ends.
    pub(crate) fn new(arena: &Arena) -> Self {
        let slots = std::array::from_fn(|_| Vec::new());
        let untouched = MAX_LINES..arena.num_lines() - MAX_LINES;
        Self { free: Mutex::new(Free { slots, untouched, num_live: 0 }) }
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Takes nodes back, each with its number of lines, to hand them out again in this order.
    pub(crate) fn give_back(&self, nodes: impl DoubleEndedIterator<Item = (Handle, usize)>) {
        let mut free = self.lock();
        for (handle, num_lines) in nodes.rev() {
            let class = class_of(num_lines);
            free.slots[class].push(handle);
            free.num_live -= lines_of(class) as i64;
        }
    }

    /// The lines that nodes occupy, but for what workers took and did not [settle](Slots::settle).
    pub(crate) fn num_live(&self) -> i64 {
        self.lock().num_live
    }

    /// The lines that were ever handed out, which is what takes memory.
    pub(crate) fn num_touched(&self) -> usize {
        self.lock().untouched.start - MAX_LINES
    }
}

/// What one worker has at hand.
#[derive(Debug)]
pub(crate) struct Slots {
    at_hand: [Vec<Handle>; NUM_CLASSES],
    stretch: Range<usize>,
    /// Lines taken, less lines put back, since the last time the stock was told.
    num_taken: i64,
}

impl Default for Slots {
    fn default() -> Self {
        Self { at_hand: std::array::from_fn(|_| Vec::new()), stretch: 0..0, num_taken: 0 }
    }
}

impl Slots {
    /// Lines for a node.
    ///
    /// # Errors
    /// The arena is full.
    #[inline]
    pub(crate) fn take(&mut self, stock: &Stock, num_lines: usize) -> Result<Fresh> {
        let class = class_of(num_lines);
        let handle = match self.at_hand[class].pop() {
            Some(handle) => handle,
            None => self.refill(stock, class)?,
        };
        let num_lines = lines_of(class);
        self.num_taken += num_lines as i64;
        Ok(Fresh { handle, num_lines: num_lines as u32 })
    }

    /// The slot that will be taken after `distance` others of its size, where it is known already.
    #[inline(always)]
    pub(crate) fn upcoming(&self, num_lines: usize, distance: usize) -> Option<Handle> {
        let at_hand = &self.at_hand[class_of(num_lines)];
        at_hand.len().checked_sub(distance).and_then(|i| at_hand.get(i)).copied()
    }

    #[cold]
    fn refill(&mut self, stock: &Stock, class: usize) -> Result<Handle> {
        let mut free = stock.lock();
        let slots = &mut free.slots[class];
        let keep = slots.len().saturating_sub(HANDFUL);
        self.at_hand[class].extend(slots.drain(keep..));
        if let Some(handle) = self.at_hand[class].pop() {
            return Ok(handle);
        }
        let num_lines = lines_of(class);
        if self.stretch.len() < num_lines {
            self.renew_stretch(&mut free)?;
        }
        let handle = self.stretch.start;
        self.stretch.start += num_lines;
        Ok(handle as Handle)
    }

    /// Takes new lines; what is left of the old ones becomes slots.
    fn renew_stretch(&mut self, free: &mut Free) -> Result<()> {
        if free.untouched.len() < STRETCH_LINES {
            return Err(Error::Full { bytes: free.untouched.start * LINE_WORDS * size_of::<u32>() });
        }
        while !self.stretch.is_empty() {
            let class = (0..NUM_CLASSES).rev().find(|&class| lines_of(class) <= self.stretch.len()).unwrap_or(0);
            free.slots[class].push(self.stretch.start as Handle);
            self.stretch.start += lines_of(class);
        }
        let start = free.untouched.start;
        free.untouched.start += STRETCH_LINES;
        self.stretch = start..start + STRETCH_LINES;
        Ok(())
    }

    /// Takes a node back that no version leads to.
    #[inline]
    pub(crate) fn put_back(&mut self, handle: Handle, num_lines: usize) {
        let class = class_of(num_lines);
        self.num_taken -= lines_of(class) as i64;
        self.at_hand[class].push(handle);
    }

    /// Tells the stock what was taken since the last time.
    pub(crate) fn settle(&mut self, stock: &Stock) {
        if self.num_taken != 0 {
            stock.lock().num_live += std::mem::take(&mut self.num_taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_sizes_and_waste_a_fifth_at_most() {
        for lines in 1..=MAX_LINES {
            let class = class_of(lines);
            assert!(lines_of(class) >= lines && lines_of(class) * 4 <= lines * 5, "{lines} lines");
            assert!(class == 0 || lines_of(class - 1) < lines, "{lines} lines");
        }
        assert_eq!(lines_of(NUM_CLASSES - 1), MAX_LINES);
    }

    #[test]
    fn lines_come_back_in_the_order_they_are_given() {
        let (arena, []) = Arena::reserve().unwrap();
        let stock = Stock::new(&arena);
        let mut slots = Slots::default();
        let mut take = |lines: usize| slots.take(&stock, lines).unwrap().seal();
        let first: Vec<Handle> = (0..200).map(|_| take(3)).collect();
        let other = take(3);
        stock.give_back(first.iter().map(|&handle| (handle, 3)));
        let again: Vec<Handle> = (0..200).map(|_| take(3)).collect();
        assert!(first.chunks(HANDFUL).all(|handful| again.chunks(HANDFUL).any(|other| other == handful)));
        assert!(!again.contains(&other));
        slots.settle(&stock);
        assert_eq!(stock.num_live(), 201 * 3);
    }

    #[test]
    fn no_line_is_handed_out_twice() {
        let (arena, []) = Arena::reserve().unwrap();
        let stock = Stock::new(&arena);
        let mut slots = [Slots::default(), Slots::default()];
        let mut taken = vec![false; 1 << 20];
        for i in 0..2000_usize {
            let lines = i * 7 % MAX_LINES + 1;
            let fresh = slots[i % 2].take(&stock, lines).unwrap();
            let start = fresh.handle as usize;
            assert!(start >= MAX_LINES);
            for is_taken in &mut taken[start..start + fresh.num_lines as usize] {
                assert!(!std::mem::replace(is_taken, true), "node {i}");
            }
        }
    }
}
