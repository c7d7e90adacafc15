//! Numbers in few bits: runs and packed groups (levels, indices), and differences (delta).

use super::page::Result;

/// Numbers below `2^bits`, in runs of one value and in groups of eight packed bit by bit.
pub(super) struct Runs<'a> {
    bytes: &'a [u8],
    bits: u32,
}

/// Numbers as they come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Numbers<'a> {
    /// So many times the same.
    Same(u32, usize),
    Each(&'a [u32]),
}

/// Consecutive numbers.
enum Run<'a> {
    Same { value: u32, len: usize },
    Packed { bytes: &'a [u8], len: usize },
}

impl<'a> Runs<'a> {
    /// # Errors
    /// The width is more than 32 bits.
    pub(super) fn new(bytes: &'a [u8], bits: u32) -> Result<Self> {
        if bits > 32 {
            return Err(format!("expected numbers of at most 32 bits, found {bits}"));
        }
        Ok(Self { bytes, bits })
    }

    fn next(&mut self) -> Result<Run<'a>> {
        let head = varint(&mut self.bytes)?;
        let short = || String::from("packed numbers end too early");
        if head & 1 == 0 {
            let num_bytes = self.bits.div_ceil(8) as usize;
            let (value, rest) = self.bytes.split_at_checked(num_bytes).ok_or_else(short)?;
            self.bytes = rest;
            let value = value.iter().rev().fold(0_u32, |sum, &byte| sum << 8 | u32::from(byte));
            return Ok(Run::Same { value, len: usize::try_from(head >> 1).unwrap_or(usize::MAX) });
        }
        // The last group may be cut off where its numbers end.
        let num_groups = usize::try_from(head >> 1).unwrap_or(usize::MAX);
        let num_bytes = num_groups.saturating_mul(self.bits as usize).min(self.bytes.len());
        let (bytes, rest) = self.bytes.split_at(num_bytes);
        self.bytes = rest;
        let len = match self.bits {
            0 => num_groups.saturating_mul(8),
            bits => num_groups.saturating_mul(8).min(8 * num_bytes / bits as usize),
        };
        Ok(Run::Packed { bytes, len })
    }

    /// Calls `body` with the first `count` numbers.
    ///
    /// # Errors
    /// There are fewer, or what `body` says.
    pub(super) fn for_each(mut self, mut count: usize, mut body: impl FnMut(Numbers<'_>) -> Result<()>) -> Result<()> {
        let mut buffer = [0; 256];
        while count > 0 {
            let (num_before, mut done) = (count, 0);
            match self.next()? {
                Run::Same { value, len } => {
                    done = len.min(count);
                    body(Numbers::Same(value, done))?;
                }
                Run::Packed { bytes, len } => {
                    let len = len.min(count);
                    while done < len {
                        let num_now = (len - done).min(buffer.len());
                        unpack(bytes, done, self.bits, &mut buffer[..num_now]);
                        body(Numbers::Each(&buffer[..num_now]))?;
                        done += num_now;
                    }
                }
            }
            count -= done;
            if count == num_before && self.bytes.is_empty() {
                return Err("packed numbers end too early".into());
            }
        }
        Ok(())
    }
}

/// Unpacks the numbers from `first` on. Bytes past the end are zeros.
fn unpack(bytes: &[u8], first: usize, bits: u32, into: &mut [u32]) {
    let mask = (1_u64 << bits) - 1;
    let mut bit = first * bits as usize;
    for number in into {
        *number = (word(bytes, bit / 8) >> (bit % 8) & mask) as u32;
        bit += bits as usize;
    }
}

/// The eight bytes at `at`; those past the end are zeros.
#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => {
            let rest = bytes.get(at..).unwrap_or_default();
            rest.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
        }
    }
}

/// A number of at most 64 bits, seven a byte.
pub(super) fn varint(bytes: &mut &[u8]) -> Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let Some((&byte, rest)) = bytes.split_first() else {
            return Err("packed numbers end too early".into());
        };
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("a packed number has more than ten bytes".into())
}

fn zigzag(bytes: &mut &[u8]) -> Result<i64> {
    let value = varint(bytes)?;
    Ok((value >> 1) as i64 ^ -((value & 1) as i64))
}

/// Calls `body` with each of at most `limit` numbers that are stored as differences; returns how many
/// there are. `bytes` moves behind them.
///
/// # Errors
/// There are more, or they are damaged.
pub(super) fn deltas(bytes: &mut &[u8], limit: usize, mut body: impl FnMut(i64)) -> Result<usize> {
    let block_len = varint(bytes)?;
    let num_parts = varint(bytes)?;
    let total = varint(bytes)?;
    let mut value = zigzag(bytes)?;
    let total = usize::try_from(total).ok().filter(|&total| total <= limit);
    let Some(total) = total else { return Err(format!("differences of more than {limit} numbers")) };
    let is_right = (1..=1 << 20).contains(&block_len) && (1..=block_len).contains(&num_parts);
    if !is_right || !block_len.is_multiple_of(num_parts) || !(block_len / num_parts).is_multiple_of(8) {
        return Err(format!("differences in blocks of {block_len} numbers in {num_parts} parts"));
    }
    let part_len = (block_len / num_parts) as usize;
    let mut left = total;
    if left > 0 {
        body(value);
        left -= 1;
    }
    while left > 0 {
        let least = zigzag(bytes)?;
        let Some((widths, rest)) = bytes.split_at_checked(num_parts as usize) else {
            return Err("differences end too early".into());
        };
        *bytes = rest;
        for &bits in widths {
            if left == 0 {
                break;
            }
            let num_now = left.min(part_len);
            let part = delta_part(bytes, bits, part_len, num_now)?;
            for i in 0..num_now {
                value = value.wrapping_add(least).wrapping_add(wide_number(part, i, bits) as i64);
                body(value);
            }
            left -= num_now;
        }
    }
    Ok(total)
}

/// The bytes of `part_len` numbers of so many bits, of which the first `num_needed` must be there: the
/// last part may be cut off where its numbers end.
fn delta_part<'a>(bytes: &mut &'a [u8], bits: u8, part_len: usize, num_needed: usize) -> Result<&'a [u8]> {
    let width = usize::from(bits);
    if width > 64 {
        return Err(format!("expected differences of at most 64 bits, found {bits}"));
    }
    if bytes.len() < (num_needed * width).div_ceil(8) {
        return Err("differences end too early".into());
    }
    let (part, rest) = bytes.split_at((part_len / 8 * width).min(bytes.len()));
    *bytes = rest;
    Ok(part)
}

/// The number at `index` of numbers of up to 64 bits.
#[inline(always)]
fn wide_number(bytes: &[u8], index: usize, bits: u8) -> u64 {
    let width = usize::from(bits);
    let (byte, shift) = (index * width / 8, index * width % 8);
    let low = word(bytes, byte) >> shift;
    // A number of more than 56 bits may reach into a ninth byte.
    let high = match shift + width > 64 {
        true => u64::from(bytes.get(byte + 8).copied().unwrap_or(0)) << (64 - shift),
        false => 0,
    };
    (low | high) & u64::MAX.checked_shr(64 - u32::from(bits)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(bytes: &[u8], bits: u32, count: usize) -> Result<Vec<u32>> {
        let mut found = Vec::new();
        Runs::new(bytes, bits)?.for_each(count, |numbers| {
            match numbers {
                Numbers::Same(value, len) => found.extend(vec![value; len]),
                Numbers::Each(values) => found.extend_from_slice(values),
            }
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn runs_and_groups() {
        // The example of the format's description: 0 to 7 in three bits.
        assert_eq!(numbers(&[3, 0x88, 0xc6, 0xfa], 3, 8).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(numbers(&[3, 0x88, 0xc6, 0xfa], 3, 5).unwrap(), [0, 1, 2, 3, 4]);
        assert_eq!(numbers(&[10, 4, 3, 0x88, 0xc6, 0xfa], 3, 7).unwrap(), [4, 4, 4, 4, 4, 0, 1]);
        assert_eq!(numbers(&[6, 1, 2, 3, 4], 32, 3).unwrap(), [0x0403_0201; 3]);
        assert_eq!(numbers(&[200, 1], 0, 50).unwrap(), [0; 50]);
        assert_eq!(numbers(&[], 3, 0).unwrap(), []);
        for (bytes, bits) in [(&[][..], 3), (&[3, 0x88], 3), (&[0, 1], 3), (&[0x80], 1), (&[10], 8)] {
            assert!(numbers(bytes, bits, 8).is_err(), "{bytes:?}");
        }
        assert!(Runs::new(&[], 33).is_err());
    }

    #[test]
    fn differences() {
        // 7, 5, 3, 1, 2, 3, 4, 5: the example of the format's description, in one part of eight.
        let bytes = [8, 1, 8, 14, 3, 2, 0xc0, 0x3f];
        let mut found = Vec::new();
        assert_eq!(deltas(&mut &bytes[..], 8, |value| found.push(value)).unwrap(), 8);
        assert_eq!(found, [7, 5, 3, 1, 2, 3, 4, 5]);
        assert!(deltas(&mut &bytes[..], 7, drop).is_err());
        for len in 0..bytes.len() {
            assert!(deltas(&mut &bytes[..len], 8, drop).is_err(), "{len}");
        }
        assert!(deltas(&mut &[0, 1, 8, 14, 3][..], 8, drop).is_err());
        assert!(deltas(&mut &[8, 1, 8, 14, 3, 65, 1][..], 8, drop).is_err());
        // 64 bits, which straddle nine bytes.
        let mut wide = vec![8, 1, 2, 0, 0, 64];
        wide.extend(u64::MAX.to_le_bytes());
        let mut found = Vec::new();
        deltas(&mut &wide[..], 2, |value| found.push(value)).unwrap();
        assert_eq!(found, [0, -1]);
    }
}
