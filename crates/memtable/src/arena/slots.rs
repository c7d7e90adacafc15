//! Free lines of the arena: free lists by size class, shared by all workers, and a few slots at hand for each worker.
//!
//! Returned lines are handed out before new ones. On a virtual machine, the first touch of a page costs twenty times
//! as much as a later one.

use std::ops::Range;

use parking_lot::Mutex;

use super::{Fresh, Handle, LINE_WORDS, MAX_LINES, NodeArena};
use crate::{Error, Result};

/// Number of slots that move from the free lists to a worker at a time.
const HANDFUL: usize = 64;
/// Number of new lines that a worker takes at a time: 256 KB.
const STRETCH_LINES: usize = 4096;
/// Sizes up to this many lines have a class each. Above, four classes share a doubling.
const EXACT_LINES: usize = 16;
const NUM_CLASSES: usize = class_of(MAX_LINES) + 1;

/// Class of a node of `num_lines` lines, at least one.
const fn class_of(num_lines: usize) -> usize {
    if num_lines <= EXACT_LINES {
        return num_lines - 1;
    }
    let octave = (num_lines - 1).ilog2();
    let quarter = ((num_lines - 1) >> (octave - 2)) & 3;
    EXACT_LINES + (octave - EXACT_LINES.ilog2()) as usize * 4 + quarter
}

/// Number of lines in a slot of a class.
const fn lines_of(class: usize) -> usize {
    if class < EXACT_LINES {
        return class + 1;
    }
    let octave = EXACT_LINES.ilog2() as usize + (class - EXACT_LINES) / 4;
    (1 << octave) + (((class - EXACT_LINES) % 4 + 1) << (octave - 2))
}

/// Number of lines in the slot of a node of `num_words` words.
pub(crate) fn slot_lines(num_words: usize) -> usize {
    lines_of(class_of(num_words.div_ceil(LINE_WORDS)))
}

/// Free lists that all workers share.
#[derive(Debug)]
pub(crate) struct FreeLists {
    free: Mutex<Free>,
}

#[derive(Debug)]
struct Free {
    /// First lines of free slots, by class.
    slots: [Vec<Handle>; NUM_CLASSES],
    /// Lines that were never handed out.
    untouched: Range<usize>,
    /// Number of lines in slots that nodes occupy.
    num_live: i64,
}

impl FreeLists {
    /// All lines of an arena except [`MAX_LINES`] at each end. Those in front are the node of zeros; those at the end
    /// keep the slice of any valid handle within the range.
    pub(crate) fn new(arena: &NodeArena) -> Self {
        let slots = std::array::from_fn(|_| Vec::new());
        let untouched = MAX_LINES..arena.num_lines() - MAX_LINES;
        Self { free: Mutex::new(Free { slots, untouched, num_live: 0 }) }
    }

    /// Takes nodes back, each with its number of lines. They are handed out again in this order.
    pub(crate) fn give_back(&self, nodes: impl DoubleEndedIterator<Item = (Handle, usize)>) {
        let mut free = self.free.lock();
        // Slots are popped from the end, so the first node goes there.
        for (handle, num_lines) in nodes.rev() {
            let class = class_of(num_lines);
            free.slots[class].push(handle);
            free.num_live -= lines_of(class) as i64;
        }
    }

    /// Number of lines that nodes occupy, without those that workers took and did not
    /// [count_taken](WorkerFreeLists::count_taken).
    pub(crate) fn num_live(&self) -> i64 {
        self.free.lock().num_live
    }

    /// Number of lines ever handed out, which is the memory taken from the system.
    pub(crate) fn num_touched(&self) -> usize {
        self.free.lock().untouched.start - MAX_LINES
    }
}

/// Free slots at hand for one worker.
#[derive(Debug)]
pub(crate) struct WorkerFreeLists {
    at_hand: [Vec<Handle>; NUM_CLASSES],
    stretch: Range<usize>,
    /// Lines taken less lines put back, since the last [`count_taken`](WorkerFreeLists::count_taken).
    num_taken: i64,
}

impl Default for WorkerFreeLists {
    fn default() -> Self {
        Self { at_hand: std::array::from_fn(|_| Vec::new()), stretch: 0..0, num_taken: 0 }
    }
}

impl WorkerFreeLists {
    /// Takes lines for a node.
    ///
    /// # Errors
    /// The arena is full.
    #[inline]
    pub(crate) fn take(&mut self, free_lists: &FreeLists, num_lines: usize) -> Result<Fresh> {
        let class = class_of(num_lines);
        let handle = match self.at_hand[class].pop() {
            Some(handle) => handle,
            None => self.refill(free_lists, class)?,
        };
        let num_lines = lines_of(class);
        self.num_taken += num_lines as i64;
        Ok(Fresh { handle, num_lines: num_lines as u32 })
    }

    /// Slot that [`take`](Self::take) will return after `distance` others of its size, if it is at hand.
    #[inline(always)]
    pub(crate) fn upcoming(&self, num_lines: usize, distance: usize) -> Option<Handle> {
        let at_hand = &self.at_hand[class_of(num_lines)];
        at_hand.len().checked_sub(distance).and_then(|i| at_hand.get(i)).copied()
    }

    #[cold]
    fn refill(&mut self, free_lists: &FreeLists, class: usize) -> Result<Handle> {
        // One lock for many slots.
        let mut free = free_lists.free.lock();
        let slots = &mut free.slots[class];
        // Taken from the end, so that the other handles do not move.
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

    /// Takes new lines. The rest of the old ones become slots.
    fn renew_stretch(&mut self, free: &mut Free) -> Result<()> {
        // A rest shorter than a stretch stays unused, which wastes at most 256 KB.
        if free.untouched.len() < STRETCH_LINES {
            return Err(Error::Full { bytes: free.untouched.start * LINE_WORDS * size_of::<u32>() });
        }
        // The largest slots that fit, so that few small ones remain.
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

    /// Takes back a node that no version leads to.
    #[inline]
    pub(crate) fn put_back(&mut self, handle: Handle, num_lines: usize) {
        let class = class_of(num_lines);
        self.num_taken -= lines_of(class) as i64;
        // Last in, first out: this slot was used last, so it is likely still in the cache.
        self.at_hand[class].push(handle);
    }

    /// Adds the lines taken since the last call to the count of live lines.
    pub(crate) fn count_taken(&mut self, free_lists: &FreeLists) {
        if self.num_taken != 0 {
            free_lists.free.lock().num_live += std::mem::take(&mut self.num_taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_waste_at_most_a_fifth() {
        for lines in 1..=MAX_LINES {
            let class = class_of(lines);
            assert!(lines_of(class) >= lines && lines_of(class) * 4 <= lines * 5, "{lines} lines");
            assert!(class == 0 || lines_of(class - 1) < lines, "{lines} lines");
        }
        assert_eq!(lines_of(NUM_CLASSES - 1), MAX_LINES);
    }

    #[test]
    fn lines_come_back_in_the_order_they_are_given() {
        let (arena, []) = NodeArena::reserve(0).unwrap();
        let free_lists = FreeLists::new(&arena);
        let mut slots = WorkerFreeLists::default();
        let mut take = |lines: usize| slots.take(&free_lists, lines).unwrap().seal();
        let first: Vec<Handle> = (0..200).map(|_| take(3)).collect();
        let other = take(3);
        free_lists.give_back(first.iter().map(|&handle| (handle, 3)));
        let again: Vec<Handle> = (0..200).map(|_| take(3)).collect();
        assert!(first.chunks(HANDFUL).all(|handful| again.chunks(HANDFUL).any(|other| other == handful)));
        assert!(!again.contains(&other));
        slots.count_taken(&free_lists);
        assert_eq!(free_lists.num_live(), 201 * 3);
    }

    #[test]
    fn no_line_is_handed_out_twice() {
        let (arena, []) = NodeArena::reserve(0).unwrap();
        let free_lists = FreeLists::new(&arena);
        let mut slots = [WorkerFreeLists::default(), WorkerFreeLists::default()];
        let mut taken = vec![false; 1 << 20];
        for i in 0..2000_usize {
            let lines = i * 7 % MAX_LINES + 1;
            let fresh = slots[i % 2].take(&free_lists, lines).unwrap();
            let start = fresh.handle as usize;
            assert!(start >= MAX_LINES);
            for is_taken in &mut taken[start..start + fresh.num_lines as usize] {
                assert!(!std::mem::replace(is_taken, true), "node {i}");
            }
        }
    }
}
