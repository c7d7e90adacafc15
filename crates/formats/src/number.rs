//! Numbers in text.
//!
//! The parser finds and sums eight digits at a time in a 64-bit word. So a number of up to fifteen digits costs no
//! branch that depends on its length. Parsed buffers end with [`PADDING`] line ends, which keep every such load in
//! bounds.

use anden_graph::{Weight, WeightType};

/// The number of line ends after the last line of a buffer.
pub(crate) const PADDING: usize = 16;

/// The decimal number at `at` and its number of digits. Zero digits mean no number, or more than fifteen digits, which
/// [`parse_u64`] must parse.
#[inline(always)]
pub(crate) fn short_number(bytes: &[u8], at: usize) -> (u64, usize) {
    let (high, num_high) = digits(bytes, at);
    if num_high < 8 {
        return (high, num_high);
    }
    // After eight digits, the number may continue.
    let (low, num_low) = digits(bytes, at + 8);
    if num_low == 8 { (0, 0) } else { (high * POWERS[num_low] + low, 8 + num_low) }
}

const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The numbers of a line of exactly two numbers of at most eight digits with one blank between them, and the line's
/// length. `None` for any other line at the start of `line`.
///
/// A few instructions find the start of the next line, without the values.
#[inline(always)]
pub(crate) fn short_pair(line: &[u8; 32]) -> Option<(u64, u64, usize)> {
    let ends = anden_base::simd::non_digits(line);
    let first = ends.trailing_zeros() as usize;
    let second = (ends & ends.wrapping_sub(1)).trailing_zeros() as usize;
    // A missing number wraps to a large count.
    let (num_first, num_second) = (first.wrapping_sub(1), second.wrapping_sub(first + 2));
    if num_first >= 8 || num_second >= 8 || !matches!(line[first], b' ' | b'\t') || line[second] != b'\n' {
        return None;
    }
    let source = eight_digits(load(line, 0), first);
    let target = eight_digits(load(line, first + 1), second - first - 1);
    Some((source, target, second + 1))
}

#[inline(always)]
fn load(line: &[u8; 32], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&line[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// The value of the first `count` of eight bytes, which are digits; `count` is 1 to 8.
#[inline(always)]
fn eight_digits(bytes: u64, count: usize) -> u64 {
    // Shifts the digits to the high end of the word, with zeros before them.
    let values = (bytes ^ (0x30 * ONES)) << (64 - 8 * count);
    // Joins digits to pairs, pairs to fours and fours to eight, each in one multiplication.
    let pairs = (values * 10 + (values >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    (fours * 10_000 + (fours >> 32)) & 0xffff_ffff
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// The value and the number of the up to eight digits at `at`.
#[inline(always)]
fn digits(bytes: &[u8], at: usize) -> (u64, usize) {
    let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) else { return (0, 0) };
    // Each byte of `values` is the value of its digit, or at least ten. The sum sets the top bit of each byte from ten
    // upwards and never carries into another byte.
    let values = u64::from_le_bytes(*chunk) ^ (0x30 * ONES);
    let others = (((values & (0x7f * ONES)) + 0x76 * ONES) | values) & (0x80 * ONES);
    let count = (others.trailing_zeros() / 8) as usize;
    if count == 0 {
        return (0, 0);
    }
    (eight_digits(u64::from_le_bytes(*chunk), count), count)
}

/// Parses a whole token as an unsigned number.
pub(crate) fn parse_u64(token: &[u8]) -> Option<u64> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    if token.is_empty() {
        return None;
    }
    token.iter().try_fold(0_u64, |value, byte| value.checked_mul(10)?.checked_add(digit(byte)?))
}

/// Parses a whole token as a weight: a number of the type, or `inf`. A number beyond the type's range is refused.
pub fn parse_weight<W: Weight>(token: &[u8]) -> Option<W> {
    let weight: W = std::str::from_utf8(token).ok()?.parse().ok()?;
    // Parsing turns a number beyond the range into an infinity.
    let is_too_large = weight.is_infinite() && token.iter().any(u8::is_ascii_digit);
    (weight.is_accepted() && !is_too_large).then_some(weight)
}

/// A short unsigned number as a weight of an integer type.
#[inline(always)]
pub(crate) fn whole_weight<W: Weight>(value: u64) -> Option<W> {
    match W::TYPE {
        WeightType::U32 => u32::try_from(value).ok().map(bytemuck::cast),
        WeightType::I64 => i64::try_from(value).ok().map(bytemuck::cast),
        WeightType::F32 | WeightType::F64 => None,
    }
}

/// Converts a weight of a serialized graph to another type; `None` if it is negative and `W` is unsigned.
#[inline(always)]
pub(crate) fn convert_weight<W: Weight>(value: i32) -> Option<W> {
    match W::TYPE {
        WeightType::U32 => u32::try_from(value).ok().map(bytemuck::cast),
        WeightType::I64 => Some(bytemuck::cast(i64::from(value))),
        WeightType::F32 => Some(bytemuck::cast(value as f32)),
        WeightType::F64 => Some(bytemuck::cast(f64::from(value))),
    }
}

/// The inverse of [`convert_weight`] for integer types; `None` if the weight does not fit.
pub(crate) fn serialized_weight<W: Weight>(weight: W) -> Option<i32> {
    match W::TYPE {
        WeightType::U32 => i32::try_from(bytemuck::cast::<W, u32>(weight)).ok(),
        WeightType::I64 => i32::try_from(bytemuck::cast::<W, i64>(weight)).ok(),
        WeightType::F32 | WeightType::F64 => None,
    }
}

/// A description of valid weights of a type, for messages.
pub fn weight_range(weight_type: WeightType) -> &'static str {
    match weight_type {
        WeightType::U32 => {
            "a weight of type u32, a whole number from 0 to 4294967295 (others with another --weight-type)"
        }
        WeightType::I64 => "a weight of type i64, a whole number (others with --weight-type f64)",
        WeightType::F32 => "a weight of type f32, a number or inf",
        WeightType::F64 => "a weight of type f64, a number or inf",
    }
}

/// Appends the decimal digits of a number.
pub(crate) fn push_u64(text: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padded(text: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.extend([b'\n'; PADDING]);
        bytes
    }

    #[test]
    fn short_numbers_of_every_length() {
        let mut value = 0_u64;
        for num_digits in 1..=15 {
            value = value * 10 + num_digits % 10;
            for end in [" ", "\n", "\t7", ",", "x", "/", ":", "\u{b0}", "-1"] {
                let text = format!("{value}{end}");
                assert_eq!(short_number(&padded(&text), 0), (value, num_digits as usize), "{text:?}");
            }
        }
        assert_eq!(short_number(&padded("0000123 "), 0), (123, 7));
        assert_eq!(short_number(&padded("1234567890123456"), 0), (0, 0));
        assert_eq!(short_number(&padded("-5"), 0), (0, 0));
        assert_eq!(short_number(b"12", 0), (0, 0));
    }

    #[test]
    fn every_byte_beside_a_digit_ends_the_number() {
        for byte in (0..=u8::MAX).filter(|b| !b.is_ascii_digit()) {
            for at in 0..8 {
                let mut bytes = padded("98765432");
                bytes[at] = byte;
                let expected = if at == 0 { 0 } else { "98765432"[..at].parse().unwrap() };
                assert_eq!(short_number(&bytes, 0), (expected, at), "byte {byte:#x} at {at}");
            }
        }
    }

    #[test]
    fn overflow_is_no_number() {
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_u64(b"18446744073709551616"), None);
        assert_eq!(parse_u64(b"00000000000000000000000042"), Some(42));
        assert_eq!((parse_u64(b""), parse_u64(b"+1"), parse_u64(b"1_0")), (None, None, None));
    }

    #[test]
    fn weights_are_numbers_of_their_type() {
        assert_eq!(parse_weight::<u32>(b"-1"), None);
        assert_eq!(parse_weight::<u32>(b"4294967296"), None);
        assert_eq!(parse_weight::<i64>(b"-9"), Some(-9));
        for none in ["nan", "-inf", "1e400", "-1e400"] {
            assert_eq!(parse_weight::<f64>(none.as_bytes()), None, "{none}");
        }
        for infinite in ["inf", "Infinity", "+inf"] {
            assert_eq!(parse_weight::<f64>(infinite.as_bytes()), Some(f64::INFINITY), "{infinite}");
        }
        assert_eq!((parse_weight::<f32>(b"1e39"), parse_weight::<f32>(b"-1.5e3")), (None, Some(-1500.0)));
        assert_eq!(parse_weight::<f64>(b"\xff"), None);
        assert_eq!(whole_weight::<u32>(1 << 32), None);
        assert_eq!(whole_weight::<i64>(7), Some(7));
        assert_eq!(convert_weight::<u32>(-1), None);
        assert_eq!(convert_weight::<f64>(-1), Some(-1.0));
    }

    #[test]
    fn pairs_of_short_numbers_are_lines() {
        let pair = |text: &str| {
            let mut line = [b'7'; 32];
            line[..text.len()].copy_from_slice(text.as_bytes());
            short_pair(&line)
        };
        assert_eq!(pair("0 1\n"), Some((0, 1, 4)));
        assert_eq!(pair("12345678\t98765432\n"), Some((12_345_678, 98_765_432, 18)));
        assert_eq!(pair("00000042 7\n"), Some((42, 7, 11)));
        let others = ["", "\n", " 1 2\n", "1  2\n", "1 2 \n", "1 2\r\n", "1\n2 3\n", "1 \n", "-1 2\n", "1 2 3\n"];
        let long = ["123456789 1\n", "1 123456789\n", "1234567890123456789012345678901", "1,2\n", "# 1\n", "1 2#\n"];
        others.iter().chain(&long).for_each(|text| assert_eq!(pair(text), None, "{text:?}"));
    }

    #[test]
    fn digits_are_written() {
        for value in [0, 7, 10, 4_294_967_295, u64::MAX] {
            let mut text = Vec::new();
            push_u64(&mut text, value);
            assert_eq!(text, value.to_string().as_bytes());
        }
    }
}
