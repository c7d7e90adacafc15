//! Reads lists of a BVGraph, one after the other.
//!
//! No number of a damaged file is trusted: codes are bounded, and a list is checked before it grows.

use std::io::Read;

use super::{BitCode, BvLayout};

/// Bytes of one read.
const BUFFER_BYTES: usize = 64 << 10;
/// The longest code of a number in bits; numbers are below 2 to this power.
const MAX_BITS: u64 = 48;
/// The largest number of arcs in the lists of the window, far above that of known graphs: 256 MB.
const MAX_WINDOW_ARCS: u64 = 1 << 26;

/// The bits of a file, from the highest of each byte.
pub(crate) struct BitSource {
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    /// The next bits, from the highest; the bits behind `num_bits` are 0.
    bits: u64,
    num_bits: u32,
}

/// The fault of a list, for messages.
pub(crate) type ListFault = String;

impl BitSource {
    pub(crate) fn new(reader: Box<dyn Read + Send>) -> Self {
        Self { reader, buffer: vec![0; BUFFER_BYTES], at: 0, end: 0, bits: 0, num_bits: 0 }
    }

    /// Fills `bits` to 56 at least, or to the end of the file.
    fn refill(&mut self) -> Result<(), ListFault> {
        if self.end - self.at < 8 {
            self.buffer.copy_within(self.at..self.end, 0);
            (self.at, self.end) = (0, self.end - self.at);
            while self.end < self.buffer.len() {
                match self.reader.read(&mut self.buffer[self.end..]) {
                    Ok(0) => break,
                    Ok(num_bytes) => self.end += num_bytes,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(format!("cannot read: {error}")),
                }
            }
        }
        while self.num_bits <= 56 && self.at < self.end {
            self.bits |= u64::from(self.buffer[self.at]) << (56 - self.num_bits);
            self.num_bits += 8;
            self.at += 1;
        }
        Ok(())
    }

    /// The next bits as a number, at most 56.
    fn read_bits(&mut self, num_bits: u32) -> Result<u64, ListFault> {
        if num_bits == 0 {
            return Ok(0);
        }
        if self.num_bits < num_bits {
            self.refill()?;
            if self.num_bits < num_bits {
                return Err(truncated());
            }
        }
        let value = self.bits >> (64 - num_bits);
        self.bits <<= num_bits;
        self.num_bits -= num_bits;
        Ok(value)
    }

    /// The number of zeros before the next one.
    fn read_unary(&mut self) -> Result<u64, ListFault> {
        let mut num_zeros = 0;
        while self.bits == 0 {
            num_zeros += u64::from(self.num_bits);
            self.num_bits = 0;
            self.refill()?;
            if self.num_bits == 0 {
                return Err(truncated());
            }
        }
        let zeros = self.bits.leading_zeros();
        // Two shifts, because one of 64 bits is not defined.
        self.bits = self.bits << zeros << 1;
        self.num_bits -= zeros + 1;
        Ok(num_zeros + u64::from(zeros))
    }

    fn read_gamma(&mut self) -> Result<u64, ListFault> {
        let num_bits = bounded(self.read_unary()?)?;
        Ok((1 << num_bits | self.read_bits(num_bits)?) - 1)
    }

    /// Reads a number.
    pub(crate) fn read(&mut self, code: BitCode) -> Result<u64, ListFault> {
        match code {
            BitCode::Unary => self.read_unary(),
            BitCode::Gamma => self.read_gamma(),
            BitCode::Delta => {
                let num_bits = bounded(self.read_gamma()?)?;
                Ok((1 << num_bits | self.read_bits(num_bits)?) - 1)
            }
            BitCode::Zeta(k) => {
                let low = bounded(self.read_unary()?.saturating_mul(u64::from(k)))?;
                // A minimal binary code among the numbers from 2^low to 2^(low+k).
                let left = self.read_bits(low + k - 1)?;
                let base = 1 << low;
                if left < base {
                    return Ok(left + base - 1);
                }
                Ok((left << 1 | self.read_bits(1)?) - 1)
            }
        }
    }
}

fn bounded(num_bits: u64) -> Result<u32, ListFault> {
    match num_bits < MAX_BITS {
        true => Ok(num_bits as u32),
        false => Err("found a number that is too large".to_owned()),
    }
}

fn truncated() -> ListFault {
    "the file ends within the list".to_owned()
}

/// Decodes the lists in order.
pub(crate) struct ListDecoder {
    source: BitSource,
    layout: BvLayout,
    num_vertices: u64,
    /// The vertex of the next list.
    next: u64,
    /// The last lists, by vertex modulo their number.
    window: Vec<Vec<u32>>,
    window_arcs: u64,
}

impl ListDecoder {
    pub(crate) fn new(source: BitSource, num_vertices: u64, layout: BvLayout) -> Self {
        let window = vec![Vec::new(); layout.window + 1];
        Self { source, layout, num_vertices, next: 0, window, window_arcs: 0 }
    }

    /// The next vertex and its successors, in ascending order; `None` after the last vertex.
    ///
    /// # Errors
    /// The list is damaged or too long; the text names its vertex.
    pub(crate) fn next(&mut self) -> Result<Option<(u32, &[u32])>, ListFault> {
        if self.next == self.num_vertices {
            return Ok(None);
        }
        let vertex = self.next;
        let place = vertex as usize % self.window.len();
        let mut list = std::mem::take(&mut self.window[place]);
        self.window_arcs -= list.len() as u64;
        list.clear();
        self.decode(vertex, &mut list).map_err(|what| format!("cannot read the list of vertex {vertex}: {what}"))?;
        self.window_arcs += list.len() as u64;
        self.window[place] = list;
        self.next += 1;
        Ok(Some((vertex as u32, &self.window[place])))
    }

    /// The list that [`next`](Self::next) returned last.
    pub(crate) fn last(&self) -> &[u32] {
        &self.window[self.next.saturating_sub(1) as usize % self.window.len()]
    }

    fn decode(&mut self, vertex: u64, list: &mut Vec<u32>) -> Result<(), ListFault> {
        let layout = self.layout;
        let degree = self.source.read(layout.outdegrees)?;
        if degree == 0 {
            return Ok(());
        }
        if degree > self.num_vertices {
            return Err(format!("found {degree} successors among {} vertices", self.num_vertices));
        }
        // A few bits can state a long interval, so the length is limited before the list grows.
        if self.window_arcs + degree > MAX_WINDOW_ARCS {
            return Err(format!("the last {} lists have more than {MAX_WINDOW_ARCS} arcs", self.window.len()));
        }
        if layout.window > 0 {
            self.copy(vertex, degree, list)?;
        }
        let num_copied = list.len();
        if degree > list.len() as u64 && layout.min_interval > 0 {
            self.read_intervals(vertex, degree, list)?;
        }
        let num_before = list.len();
        self.read_residuals(vertex, degree, list)?;
        // Each part ascends, so one part alone is sorted.
        if num_before > 0 && (num_copied > 0 || num_before < list.len()) {
            list.sort();
            if let Some(pair) = list.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(format!("the successor {} is repeated", pair[0]));
            }
        }
        Ok(())
    }

    /// Appends the blocks that are copied from another list.
    fn copy(&mut self, vertex: u64, degree: u64, list: &mut Vec<u32>) -> Result<(), ListFault> {
        let distance = self.source.read(self.layout.references)?;
        if distance == 0 {
            return Ok(());
        }
        if distance > vertex.min(self.layout.window as u64) {
            return Err(format!("it copies from {distance} lists before, expected at most {}", self.layout.window));
        }
        let copied = &self.window[(vertex - distance) as usize % self.window.len()];
        let num_blocks = self.source.read(self.layout.blocks)?;
        let (mut at, mut is_copied) = (0, true);
        for block in 0..num_blocks {
            // Only the first block may be empty.
            let length = self.source.read(self.layout.blocks)?.saturating_add(u64::from(block > 0));
            if length > (copied.len() - at) as u64 {
                return Err(format!("it copies more than the {} successors of another list", copied.len()));
            }
            let end = at + length as usize;
            if is_copied {
                list.extend_from_slice(&copied[at..end]);
            }
            (at, is_copied) = (end, !is_copied);
        }
        // The last block is implied.
        if is_copied {
            list.extend_from_slice(&copied[at..]);
        }
        too_many(list.len() as u64, degree)
    }

    fn read_intervals(&mut self, vertex: u64, degree: u64, list: &mut Vec<u32>) -> Result<(), ListFault> {
        let code = self.layout.intervals;
        let num_intervals = self.source.read(code)?;
        let mut end = 0;
        for interval in 0..num_intervals {
            let gap = self.source.read(code)?;
            let start = if interval == 0 { signed(vertex, gap)? } else { end + 1 + gap };
            let length = self.source.read(code)? + self.layout.min_interval;
            too_many(list.len() as u64 + length, degree)?;
            end = start + length;
            self.require_vertex(end - 1)?;
            list.extend(start as u32..=(end - 1) as u32);
        }
        Ok(())
    }

    /// Appends the successors that are still missing.
    fn read_residuals(&mut self, vertex: u64, degree: u64, list: &mut Vec<u32>) -> Result<(), ListFault> {
        let mut last = None;
        for _ in list.len() as u64..degree {
            let gap = self.source.read(self.layout.residuals)?;
            let successor = match last {
                None => signed(vertex, gap)?,
                Some(last) => last + 1 + gap,
            };
            self.require_vertex(successor)?;
            list.push(successor as u32);
            last = Some(successor);
        }
        Ok(())
    }

    fn require_vertex(&self, successor: u64) -> Result<(), ListFault> {
        match successor < self.num_vertices {
            true => Ok(()),
            false => Err(format!("the successor {successor} is beyond the {} vertices", self.num_vertices)),
        }
    }
}

fn too_many(found: u64, degree: u64) -> Result<(), ListFault> {
    match found <= degree {
        true => Ok(()),
        false => Err(format!("expected {degree} successors, found {found}")),
    }
}

/// The vertex at a signed distance, which is coded as 0, -1, 1, -2, 2 and so on.
fn signed(vertex: u64, coded: u64) -> Result<u64, ListFault> {
    let distance = coded >> 1;
    let found = if coded & 1 == 0 { vertex.checked_add(distance) } else { vertex.checked_sub(distance + 1) };
    found.ok_or_else(|| format!("found a successor below 0, {} before {vertex}", distance + 1))
}
