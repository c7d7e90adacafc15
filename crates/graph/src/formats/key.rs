//! Keys of vertices as they stand in an input.

use base::MAX_VERTICES;

use super::KeyKind;
use super::number::parse_u64;

/// The longest string key.
const MAX_KEY_BYTES: usize = u16::MAX as usize;

/// How a key stands in an [`EdgeBlock`](super::EdgeBlock): as a number, or as a place in its text.
pub trait FieldKey: Copy + Send + Sync + 'static {
    /// Which keys these are.
    const KIND: KeyKind;
    /// What a key may be, for messages.
    const RANGE: &'static str;

    /// The key in `text[start..start + len]`; none where that is no key of this kind.
    fn from_text(text: &[u8], start: usize, len: usize) -> Option<Self>;

    /// The key of bytes that do not stand in the text as they are: spans append them to `extra`,
    /// which will follow `base` bytes of text.
    fn from_owned(bytes: &[u8], base: usize, extra: &mut Vec<u8>) -> Option<Self>;

    /// The bytes of a key that is a place in `text`; empty of numbers.
    fn as_text(self, text: &[u8]) -> &[u8];

    /// A number as a key where that needs no text.
    fn from_digits(number: u64) -> Option<Self>;

    /// The vertex that a format which counts from 1 calls by this number, as a key where that needs no text.
    #[inline(always)]
    fn from_count(number: u64) -> Option<Self> {
        Self::from_digits(number)
    }
}

/// A place in [`EdgeBlock::text`](super::EdgeBlock::text): a string key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The number of bytes.
    pub len: u32,
}

impl Span {
    /// The bytes of the key.
    ///
    /// # Panics
    /// If `text` is not the text of the block that the span came with.
    #[inline]
    pub fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.start as usize..][..self.len as usize]
    }
}

impl FieldKey for u64 {
    const KIND: KeyKind = KeyKind::Integer;
    const RANGE: &'static str = "an integer from 0 to 18446744073709551615 (any text with --ids string)";

    fn from_text(text: &[u8], start: usize, len: usize) -> Option<Self> {
        parse_u64(text.get(start..)?.get(..len)?)
    }

    fn from_owned(bytes: &[u8], _base: usize, _extra: &mut Vec<u8>) -> Option<Self> {
        parse_u64(bytes)
    }

    fn as_text(self, _text: &[u8]) -> &[u8] {
        &[]
    }

    #[inline(always)]
    fn from_digits(number: u64) -> Option<Self> {
        Some(number)
    }
}

impl FieldKey for Span {
    const KIND: KeyKind = KeyKind::String;
    const RANGE: &'static str = "text in UTF-8, of 1 to 65535 bytes";

    fn from_text(text: &[u8], start: usize, len: usize) -> Option<Self> {
        let bytes = text.get(start..)?.get(..len)?;
        if bytes.is_empty() || len > MAX_KEY_BYTES || std::str::from_utf8(bytes).is_err() {
            return None;
        }
        Some(Self { start: u32::try_from(start).ok()?, len: len as u32 })
    }

    fn from_owned(bytes: &[u8], base: usize, extra: &mut Vec<u8>) -> Option<Self> {
        let span = Self::from_text(bytes, 0, bytes.len())?;
        let start = u32::try_from(base + extra.len()).ok()?;
        extra.extend_from_slice(bytes);
        Some(Self { start, ..span })
    }

    fn as_text(self, text: &[u8]) -> &[u8] {
        self.of(text)
    }

    #[inline(always)]
    fn from_digits(_number: u64) -> Option<Self> {
        None
    }
}

/// A number that is an id of a vertex as it stands; ids count from 0, whatever a format does.
impl FieldKey for u32 {
    const KIND: KeyKind = KeyKind::Integer;
    const RANGE: &'static str = "a dense id from 0 to 4294967293 (other keys with --ids integer or string)";

    fn from_text(text: &[u8], start: usize, len: usize) -> Option<Self> {
        u64::from_text(text, start, len).and_then(Self::from_digits)
    }

    fn from_owned(bytes: &[u8], _base: usize, _extra: &mut Vec<u8>) -> Option<Self> {
        parse_u64(bytes).and_then(Self::from_digits)
    }

    fn as_text(self, _text: &[u8]) -> &[u8] {
        &[]
    }

    #[inline(always)]
    fn from_digits(number: u64) -> Option<Self> {
        if number < MAX_VERTICES as u64 { Some(number as Self) } else { None }
    }

    #[inline(always)]
    fn from_count(number: u64) -> Option<Self> {
        number.checked_sub(1).and_then(Self::from_digits)
    }
}

const _: () = assert!(MAX_VERTICES == 4_294_967_294, "the range of dense ids, as messages give it");
