//! Tracks scans over all lists in file order, and decides which bytes to read ahead of them.
//!
//! Workers that share a scan in small parts form one walk: each begins with bytes that were asked for ahead of another.
//! Workers with large parts are walks of their own, and a walk asks for nothing beyond the start of the next one.

use std::ops::Range;

/// The most walks that are told apart.
const MAX_WALKS: usize = 8;

/// A walk ends after this many announcements of other walks.
const FORGOTTEN_AFTER: u64 = 64;

/// The least bytes to ask for at once, except at the end.
const LEAST_BYTES: usize = 1 << 20;

/// The walks over one file.
#[derive(Debug, Default)]
pub(super) struct Walks {
    walks: Vec<SequentialScan>,
    num_calls: u64,
}

#[derive(Debug)]
struct SequentialScan {
    begin: usize,
    at: usize,
    /// All bytes from `at` up to here were asked for.
    asked: usize,
    last_call: u64,
}

impl Walks {
    /// Whether no known walk has reached the bytes `here`.
    pub fn begins(&self, here: &Range<usize>, window: usize) -> bool {
        self.place(here, window).is_none()
    }

    /// Notes that the bytes `here` are read now. Returns the bytes to ask for: up to `window` further, within
    /// `num_bytes`, and none twice.
    pub fn go_on(&mut self, here: &Range<usize>, window: usize, num_bytes: usize) -> Range<usize> {
        self.num_calls += 1;
        let now = self.num_calls;
        self.walks.retain(|walk| now - walk.last_call <= FORGOTTEN_AFTER);
        let place = match self.place(here, window) {
            Some(place) => place,
            None => self.begin(here.start, now),
        };
        // A walk stops where the next one began: those bytes were asked for already.
        let next = self.walks.iter().map(|walk| walk.begin).filter(|&begin| begin > here.start).min();
        let end = next.unwrap_or(num_bytes).min(num_bytes);
        let walk = &mut self.walks[place];
        walk.last_call = now;
        // Workers of one walk come in any order.
        walk.at = walk.at.max(here.start);
        let goal = walk.at.max(here.end).saturating_add(window).min(end);
        // Small pieces would cost a system call each, so wait until enough bytes are due.
        if goal <= walk.asked || goal - walk.asked < LEAST_BYTES && goal < end {
            return walk.asked..walk.asked;
        }
        std::mem::replace(&mut walk.asked, goal)..goal
    }

    fn place(&self, here: &Range<usize>, window: usize) -> Option<usize> {
        // Another worker of this walk may be a little ahead.
        let is_on = |walk: &SequentialScan| {
            walk.begin <= here.start && walk.at <= here.start.saturating_add(window) && here.start <= walk.asked
        };
        let found = self.walks.iter().enumerate().filter(|(_, walk)| is_on(walk));
        found.max_by_key(|(_, walk)| walk.last_call).map(|(place, _)| place)
    }

    /// Begins a walk, in place of the oldest if there are too many.
    fn begin(&mut self, start: usize, now: u64) -> usize {
        let walk = SequentialScan { begin: start, at: start, asked: start, last_call: now };
        if self.walks.len() < MAX_WALKS {
            self.walks.push(walk);
            return self.walks.len() - 1;
        }
        let oldest = (0..MAX_WALKS).min_by_key(|&place| self.walks[place].last_call).unwrap_or(0);
        self.walks[oldest] = walk;
        oldest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: usize = 1 << 20;

    /// Workers take parts of `num_bytes` in turn, one step each. Returns how often each step was asked for before it
    /// was read.
    fn walk(num_bytes: usize, part: usize, step: usize, num_workers: usize, window: usize) -> (Vec<u32>, usize) {
        let mut walks = Walks::default();
        let mut asked = vec![0; num_bytes / step];
        let (mut next_part, mut far) = (0, 0);
        let mut workers = vec![0..0; num_workers];
        loop {
            for worker in &mut workers {
                if Range::is_empty(worker) && next_part < num_bytes {
                    *worker = next_part..(next_part + part).min(num_bytes);
                    next_part = worker.end;
                }
                if Range::is_empty(worker) {
                    continue;
                }
                let here = worker.start..worker.start + step;
                let ahead = walks.go_on(&here, window, num_bytes);
                far = far.max(ahead.end.saturating_sub(here.end));
                (ahead.start / step..ahead.end / step).for_each(|place| asked[place] += 1);
                assert!(asked[here.start / step] > 0, "{here:?} was not asked for");
                worker.start += step;
            }
            if next_part >= num_bytes && workers.iter().all(Range::is_empty) {
                return (asked, far);
            }
        }
    }

    #[test]
    fn everything_is_asked_for_once_and_in_time() {
        for part in [MB, 2 * MB, 32 * MB] {
            for num_workers in [1, 2, 3] {
                let (asked, far) = walk(128 * MB, part, MB / 2, num_workers, 6 * MB);
                let num_twice = asked.iter().filter(|&&count| count > 1).count();
                // Where parts meet, a worker may follow another into bytes that are asked for already.
                assert!(num_twice <= asked.len() / 20, "parts of {part} bytes: {num_twice} of {}", asked.len());
                assert!(far <= 6 * MB + 2 * part.min(2 * MB), "parts of {part} bytes: {far}");
            }
        }
    }

    #[test]
    fn the_next_pass_begins_anew() {
        let mut walks = Walks::default();
        for _ in 0..3 {
            let ends: Vec<_> =
                (0..64).map(|step| walks.go_on(&(step * MB..(step + 1) * MB), 4 * MB, 64 * MB)).collect();
            assert_eq!((ends[0].clone(), ends[63].end), (0..5 * MB, 64 * MB));
            assert_eq!(ends.iter().map(Range::len).sum::<usize>(), 64 * MB);
        }
    }
}
