//! The distinct strings of columns, and the codes that stand for them.

use std::hash::BuildHasher;

use arrow_array::{Array, LargeStringArray};
use arrow_buffer::OffsetBuffer;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::{PropertyColumn, PropertyType, TypedArray};
use crate::{Error, Result};

/// A dictionary pays if a string stands in this many rows on average: a column with more distinct strings is given up
/// after a small part of it.
const LEAST_ROWS_A_STRING: usize = 16;
/// At most this many strings, and bytes of them, are looked for.
const MAX_STRINGS: usize = 1 << 16;
const MAX_BYTES: usize = 1 << 20;

/// Distinct strings in the order in which they first came; the place of each is its code. There are bounds, so that
/// columns with many distinct strings cost little.
#[derive(Debug)]
pub struct DistinctStrings {
    /// Codes, by the hashes of their strings.
    codes: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Where strings begin among the bytes, and where the last one ends.
    offsets: Vec<i64>,
    bytes: Vec<u8>,
    max_strings: usize,
    max_bytes: usize,
}

impl DistinctStrings {
    /// No strings yet; at most `max_strings` with `max_bytes` in all.
    pub fn new(max_strings: usize, max_bytes: usize) -> Self {
        let (codes, hasher) = (HashTable::new(), DefaultHashBuilder::default());
        Self { codes, hasher, offsets: vec![0], bytes: Vec::new(), max_strings, max_bytes }
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where each string begins among the bytes, and where the last one ends.
    pub fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// The strings, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The strings by their codes; nothing is copied.
    ///
    /// # Errors
    /// There are none: Arrow checks that the bytes are UTF-8.
    pub fn into_texts(self) -> Result<LargeStringArray> {
        let texts = LargeStringArray::try_new(OffsetBuffer::new(self.offsets.into()), self.bytes.into(), None);
        texts.map_err(|error| Error::Parameter(error.to_string()))
    }

    /// Replaces `to` by the code of each row of a column of strings, 0 of null ones; false where that would take too
    /// many strings.
    pub fn codes(&mut self, column: &PropertyColumn, to: &mut Vec<u32>) -> bool {
        to.clear();
        let is_valid = |row: usize| column.validity().is_none_or(|nulls| nulls.is_valid(row));
        match column.values() {
            TypedArray::String(array) => {
                for row in 0..array.len() {
                    let code = if is_valid(row) { self.code(array.value(row)) } else { Some(0) };
                    let Some(code) = code else { return false };
                    to.push(code);
                }
            }
            TypedArray::Coded { codes, texts } => {
                // By code of the column, so that each string is looked up once.
                let mut known: Vec<Option<u32>> = vec![None; texts.len()];
                for (row, &code) in codes.values().iter().enumerate() {
                    let code = match known.get(code as usize).copied().flatten() {
                        _ if !is_valid(row) => Some(0),
                        Some(known) => Some(known),
                        None => {
                            known[code as usize] = self.code(texts.value(code as usize));
                            known[code as usize]
                        }
                    };
                    let Some(code) = code else { return false };
                    to.push(code);
                }
            }
            _ => return false,
        }
        true
    }

    /// The code of a string, a new one where it is new; `None` where there are too many.
    fn code(&mut self, text: &str) -> Option<u32> {
        let Self { codes, hasher, offsets, bytes, .. } = self;
        let text = text.as_bytes();
        let string = |code: u32| &bytes[offsets[code as usize] as usize..offsets[code as usize + 1] as usize];
        let hash = hasher.hash_one(text);
        if let Some(&code) = codes.find(hash, |&code| string(code) == text) {
            return Some(code);
        }
        if offsets.len() > self.max_strings || bytes.len() + text.len() > self.max_bytes {
            return None;
        }
        let code = offsets.len() as u32 - 1;
        codes.insert_unique(hash, code, |&code| hasher.hash_one(string(code)));
        bytes.extend_from_slice(text);
        offsets.push(bytes.len() as i64);
        Some(code)
    }
}

impl PropertyColumn {
    /// A column of strings that are all `text`.
    pub fn repeated(text: &str, num_rows: usize) -> Self {
        let texts = LargeStringArray::from_iter_values([text]);
        let coded = Self::from_codes(vec![0; num_rows], &texts, None);
        coded.unwrap_or_else(|_| Self::nulls(PropertyType::String, num_rows))
    }

    /// The same column with a dictionary, if it is of strings of which few are distinct; otherwise as it is.
    ///
    /// Cost: a look-up a row; the first rows tell where most strings are distinct.
    pub fn with_dictionary(self) -> Self {
        let TypedArray::String(_) = self.values() else { return self };
        let max_strings = (self.len() / LEAST_ROWS_A_STRING).min(MAX_STRINGS);
        let (mut distinct, mut codes) = (DistinctStrings::new(max_strings, MAX_BYTES), Vec::with_capacity(self.len()));
        if !distinct.codes(&self, &mut codes) {
            return self;
        }
        let coded =
            distinct.into_texts().ok().and_then(|texts| Self::from_codes(codes, &texts, self.validity().cloned()).ok());
        coded.unwrap_or(self)
    }
}
