//! Writes lists as a BVGraph, one after the other.

use std::collections::VecDeque;

use super::{BitCode, BvLayout};

/// The most lists that decode one after the other, each as a copy of the next, as WebGraph limits them by default.
pub(crate) const MAX_REFERENCES: usize = 3;

/// The longest words of readers.
const WORD_BITS: u64 = 64;

/// Collects bits, from the highest of each byte.
#[derive(Clone, Debug, Default)]
pub(crate) struct BitSink {
    /// The complete bytes.
    pub(crate) bytes: Vec<u8>,
    bits: u64,
    /// Below 8 between two calls.
    num_bits: u32,
    /// The length of all bits.
    pub(crate) total_bits: u64,
}

impl BitSink {
    /// Appends the lowest bits of a value, at most 56.
    fn push_bits(&mut self, value: u64, num_bits: u32) {
        self.bits = self.bits << num_bits | value & ((1 << num_bits) - 1);
        self.num_bits += num_bits;
        self.total_bits += u64::from(num_bits);
        while self.num_bits >= 8 {
            self.num_bits -= 8;
            self.bytes.push((self.bits >> self.num_bits) as u8);
        }
    }

    fn push_unary(&mut self, mut value: u64) {
        while value >= 32 {
            self.push_bits(0, 32);
            value -= 32;
        }
        self.push_bits(1, value as u32 + 1);
    }

    /// Appends a number below 2^40.
    pub(crate) fn push(&mut self, code: BitCode, value: u64) {
        let length = (value + 1).ilog2();
        match code {
            BitCode::Unary => self.push_unary(value),
            BitCode::Gamma => {
                self.push_unary(length.into());
                self.push_bits(value + 1, length);
            }
            BitCode::Delta => {
                self.push(BitCode::Gamma, length.into());
                self.push_bits(value + 1, length);
            }
            BitCode::Zeta(k) => {
                let low = length / k * k;
                self.push_unary((length / k).into());
                let left = value + 1 - (1 << low);
                // A minimal binary code: the first numbers need one bit less.
                match left < 1 << low {
                    true => self.push_bits(left, low + k - 1),
                    false => self.push_bits(value + 1, low + k),
                }
            }
        }
    }

    /// Fills the last word with zeros. Returns the number of bits before them.
    ///
    /// Readers of WebGraph fetch whole words, so a shorter file would end within the last one.
    pub(crate) fn finish(&mut self) -> u64 {
        let total_bits = self.total_bits;
        let mut left = (WORD_BITS - total_bits % WORD_BITS) % WORD_BITS;
        while left > 0 {
            let num_bits = left.min(32) as u32;
            self.push_bits(0, num_bits);
            left -= u64::from(num_bits);
        }
        total_bits
    }
}

/// The length of a number in bits.
fn code_bits(code: BitCode, value: u64) -> u64 {
    let length = u64::from((value + 1).ilog2());
    match code {
        BitCode::Unary => value + 1,
        BitCode::Gamma => 2 * length + 1,
        BitCode::Delta => code_bits(BitCode::Gamma, length) + length,
        BitCode::Zeta(k) => {
            let k = u64::from(k);
            let low = length / k * k;
            length / k + low + k + u64::from(value + 1 - (1 << low) >= 1 << low)
        }
    }
}

/// A list that later ones can copy.
#[derive(Debug, Default)]
struct WrittenList {
    targets: Vec<u32>,
    /// The number of lists that must be decoded before this one.
    num_references: usize,
}

/// Encodes lists in the order of their vertices. Copies from the list that makes the fewest bits.
#[derive(Debug)]
pub(crate) struct ListEncoder {
    layout: BvLayout,
    /// The last lists, the latest first.
    window: VecDeque<WrittenList>,
    blocks: Vec<u64>,
    extra: Vec<u32>,
    next: u64,
}

impl ListEncoder {
    pub(crate) fn new(layout: BvLayout) -> Self {
        Self { layout, window: VecDeque::new(), blocks: Vec::new(), extra: Vec::new(), next: 0 }
    }

    /// Appends the list of the next vertex, whose targets ascend strictly.
    pub(crate) fn push(&mut self, targets: &[u32], sink: &mut BitSink) {
        let (mut best, mut best_bits) = (0, self.count_bits(targets, 0));
        let is_copied = |list: &WrittenList| !list.targets.is_empty() && list.num_references < MAX_REFERENCES;
        for distance in 1..=self.window.len() {
            if !targets.is_empty() && is_copied(&self.window[distance - 1]) {
                let num_bits = self.count_bits(targets, distance);
                (best, best_bits) = if num_bits < best_bits { (distance, num_bits) } else { (best, best_bits) };
            }
        }
        self.each_number(targets, best, |code, value| sink.push(code, value));
        let num_references = if best == 0 { 0 } else { self.window[best - 1].num_references + 1 };
        self.next += 1;
        if self.layout.window > 0 {
            let is_full = self.window.len() == self.layout.window;
            let mut list = if is_full { self.window.pop_back() } else { None }.unwrap_or_default();
            list.targets.clear();
            list.targets.extend_from_slice(targets);
            list.num_references = num_references;
            self.window.push_front(list);
        }
    }

    fn count_bits(&mut self, targets: &[u32], distance: usize) -> u64 {
        let mut num_bits = 0;
        self.each_number(targets, distance, |code, value| num_bits += code_bits(code, value));
        num_bits
    }

    /// Calls `emit` with each number of a list that copies from the list `distance` before; 0 copies from none.
    fn each_number(&mut self, targets: &[u32], distance: usize, mut emit: impl FnMut(BitCode, u64)) {
        let layout = self.layout;
        emit(layout.outdegrees, targets.len() as u64);
        if targets.is_empty() {
            return;
        }
        if layout.window > 0 {
            emit(layout.references, distance as u64);
        }
        self.extra.clear();
        match distance {
            0 => self.extra.extend_from_slice(targets),
            _ => {
                self.compare(targets, distance);
                emit(layout.blocks, self.blocks.len() as u64);
                // Only the first block may be empty.
                let lengths = self.blocks.iter().enumerate();
                lengths.for_each(|(block, &length)| emit(layout.blocks, length - u64::from(block > 0)));
            }
        }
        if self.extra.is_empty() {
            return;
        }
        if layout.min_interval > 0 {
            self.take_intervals(&mut emit);
        }
        let mut last = None;
        for &target in &self.extra {
            let target = u64::from(target);
            let gap = last.map_or_else(|| signed(target, self.next), |last| target - last - 1);
            emit(layout.residuals, gap);
            last = Some(target);
        }
    }

    /// Finds the blocks that are copied and passed over in turn, but for the last, and the targets that are not copied.
    fn compare(&mut self, targets: &[u32], distance: usize) {
        self.blocks.clear();
        let (mut at, mut length, mut is_copied) = (0, 0, true);
        for &copied in &self.window[distance - 1].targets {
            while at < targets.len() && targets[at] < copied {
                self.extra.push(targets[at]);
                at += 1;
            }
            let is_here = targets.get(at) == Some(&copied);
            at += usize::from(is_here);
            if is_here != is_copied {
                self.blocks.push(length);
                (length, is_copied) = (0, is_here);
            }
            length += 1;
        }
        self.extra.extend_from_slice(&targets[at..]);
    }

    /// Emits the intervals among the targets that are not copied, and leaves the others.
    fn take_intervals(&mut self, emit: &mut impl FnMut(BitCode, u64)) {
        let (code, least) = (self.layout.intervals, self.layout.min_interval);
        let is_run = |pair: &u32, next: &u32| pair + 1 == *next;
        let is_interval = |run: &&[u32]| run.len() as u64 >= least;
        let num_intervals = self.extra.chunk_by(is_run).filter(is_interval).count();
        emit(code, num_intervals as u64);
        if num_intervals == 0 {
            return;
        }
        let mut end = None;
        for run in self.extra.chunk_by(is_run).filter(is_interval) {
            let start = u64::from(run[0]);
            emit(code, end.map_or_else(|| signed(start, self.next), |end| start - end - 1));
            emit(code, run.len() as u64 - least);
            end = Some(start + run.len() as u64);
        }
        let left: Vec<u32> = self.extra.chunk_by(is_run).filter(|run| !is_interval(run)).flatten().copied().collect();
        self.extra = left;
    }
}

/// The signed distance of a target from a vertex: 0, -1, 1, -2, 2 and so on become 0, 1, 2, 3, 4.
fn signed(target: u64, vertex: u64) -> u64 {
    if target >= vertex { 2 * (target - vertex) } else { 2 * (vertex - target) - 1 }
}
