//! Vertex keys as inputs store them.

use anden_base::MAX_VERTICES;

use crate::KeyKind;
use crate::number::parse_u64;

/// The longest string key in bytes.
const MAX_KEY_BYTES: usize = u16::MAX as usize;

/// A key in an [`EdgeBlock`](crate::EdgeBlock): a number, or a range of the block's text.
pub trait FieldKey: Copy + Send + Sync + 'static {
    /// The type of these keys.
    const KIND: KeyKind;
    /// A description of valid keys, for messages.
    const RANGE: &'static str;

    /// The key in `text[start..start + len]`; `None` if that is not a key of this type. Empty text is a string key;
    /// readers take it as one [if the caller allows it](crate::SourceOptions::empty_ids).
    fn from_text(text: &[u8], start: usize, len: usize) -> Option<Self>;

    /// The key of bytes that the text does not contain. Spans append the bytes to `extra`, which will follow `base`
    /// bytes of text.
    fn from_owned(bytes: &[u8], base: usize, extra: &mut Vec<u8>) -> Option<Self>;

    /// The bytes of a key in `text`; empty for numbers.
    fn as_text(self, text: &[u8]) -> &[u8];

    /// A number as a key, if that needs no text.
    fn from_digits(number: u64) -> Option<Self>;

    /// The key of the vertex that a format numbers from 1, if that needs no text.
    #[inline(always)]
    fn from_count(number: u64) -> Option<Self> {
        Self::from_digits(number)
    }
}

/// A range of [`EdgeBlock::text`](crate::EdgeBlock::text): a string key.
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
    /// If the range exceeds `text`, because `text` belongs to another block.
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
    const RANGE: &'static str = "text in UTF-8, of 1 to 65535 bytes (0 with --empty-ids)";

    fn from_text(text: &[u8], start: usize, len: usize) -> Option<Self> {
        let bytes = text.get(start..)?.get(..len)?;
        if len > MAX_KEY_BYTES || std::str::from_utf8(bytes).is_err() {
            return None;
        }
        // A span has 32 bits for its start, so the text of a block ends at 4 GB.
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

/// An id as a key. Ids count from 0, even if a format counts from 1.
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
