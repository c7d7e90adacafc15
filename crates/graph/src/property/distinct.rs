//! The distinct strings of columns, and their codes.

use std::hash::BuildHasher;

use arrow_array::{Array, LargeStringArray};
use arrow_buffer::OffsetBuffer;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::{PropertyColumn, PropertyType, TypedArray};
use crate::{Error, Result};

/// A dictionary pays if each string occurs this often on average. This bound stops the search early in a column with
/// more distinct strings.
const LEAST_ROWS_A_STRING: usize = 16;
/// The largest numbers of strings and of their bytes in one dictionary.
const MAX_STRINGS: usize = 1 << 16;
const MAX_BYTES: usize = 1 << 20;

/// Distinct strings in the order of their first occurrence. The position of a string is its code. Bounds keep columns
/// with many distinct strings cheap.
#[derive(Debug)]
pub struct DistinctStrings {
    /// The codes, by the hash of their string.
    // Codes and not strings, so that each string is stored once.
    codes: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The start of each string in `bytes`, and the end of the last.
    offsets: Vec<i64>,
    bytes: Vec<u8>,
    max_strings: usize,
    max_bytes: usize,
}

impl DistinctStrings {
    /// Creates a set without strings, for at most `max_strings` strings of `max_bytes` in total.
    pub fn new(max_strings: usize, max_bytes: usize) -> Self {
        let (codes, hasher) = (HashTable::new(), DefaultHashBuilder::default());
        Self { codes, hasher, offsets: vec![0], bytes: Vec::new(), max_strings, max_bytes }
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The start of each string among the bytes, and the end of the last.
    pub fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// The strings, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The strings in the order of their codes, without a copy.
    ///
    /// # Errors
    /// Arrow finds bytes that are not UTF-8, which cannot happen.
    pub fn into_texts(self) -> Result<LargeStringArray> {
        let texts = LargeStringArray::try_new(OffsetBuffer::new(self.offsets.into()), self.bytes.into(), None);
        texts.map_err(|error| Error::Parameter(error.to_string()))
    }

    /// Replaces `to` by the codes of a column of strings; null rows get 0. Returns false if the strings exceed the
    /// bounds.
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
                // Indexed by the column's own codes, so that each string is hashed once.
                let mut known: Vec<Option<u32>> = vec![None; texts.len()];
                for (row, &code) in codes.values().iter().enumerate() {
                    // The code of a null row may name no string, hence `get`.
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

    /// The code of a string, new or known; `None` if a new string exceeds the bounds.
    fn code(&mut self, text: &str) -> Option<u32> {
        let Self { codes, hasher, offsets, bytes, .. } = self;
        let text = text.as_bytes();
        let string = |code: u32| &bytes[offsets[code as usize] as usize..offsets[code as usize + 1] as usize];
        let hash = hasher.hash_one(text);
        // Looked up before the bounds are tested: a known string takes no room.
        if let Some(&code) = codes.find(hash, |&code| string(code) == text) {
            return Some(code);
        }
        // `offsets` has one entry more than strings exist.
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
    /// A column with `text` in every row.
    pub fn repeated(text: &str, num_rows: usize) -> Self {
        let texts = LargeStringArray::from_iter_values([text]);
        let coded = Self::from_codes(vec![0; num_rows], &texts, None);
        // Code 0 names the one string, so the error cannot happen.
        coded.unwrap_or_else(|_| Self::nulls(PropertyType::String, num_rows))
    }

    /// The column with a dictionary, if few of its strings are distinct; otherwise the column unchanged.
    ///
    /// Cost: one lookup a row. If most strings are distinct, the search stops after the first rows.
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
