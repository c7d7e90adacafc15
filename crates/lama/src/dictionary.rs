//! The dictionary: from keys to vertex ids and back.
//!
//! It is a list of parts, each for the ids that were added at one time; a load makes one. Where ids
//! ascend with their keys, a lookup searches the keys themselves; where they do not, the ids in the
//! order of their keys.

mod join;
mod writer;

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use base::VertexId;

use crate::column::Column;
use crate::encoding::Decoder;
use crate::file::{FramedFile, SectionKind};
use crate::key::{Key, KeyRef};
use crate::options::KeyScheme;
use crate::{Error, Result};

pub use writer::{DictionaryKeys, FinishedDictionary};
pub(crate) use writer::{PartFile, write_dictionary};

/// The bytes of the section that says what a part holds.
const FACTS_BYTES: usize = 32;

/// How a part holds its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Layout {
    /// Consecutive integers: only the first is stored.
    Range = 1,
    /// Integers by id.
    Integers = 2,
    /// Strings by id.
    Strings = 3,
}

/// What a part says of itself: layout, whether ids need sorting, first id, number of ids, and the first key of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    layout: Layout,
    has_sorted_ids: bool,
    first_id: u64,
    num_keys: u64,
    first_key: u64,
}

/// The keys of a graph's vertices.
#[derive(Debug)]
pub struct Dictionary {
    scheme: KeyScheme,
    num_keys: u64,
    parts: Vec<Arc<Part>>,
}

#[derive(Debug)]
struct Part {
    /// The number of its file.
    number: u32,
    first_id: u64,
    num_keys: u64,
    keys: Keys,
    /// Positions in the order of their keys; `None` where they ascend with the keys.
    sorted_ids: Option<Column<VertexId>>,
}

#[derive(Debug)]
enum Keys {
    Range { first_key: u64 },
    Integers(Column<u64>),
    Strings { offsets: Column<u64>, text: Column<u8> },
}

impl Dictionary {
    /// The parts with these numbers, as one dictionary: those that `known` has open, and the others opened.
    ///
    /// # Errors
    /// A part is damaged, of another scheme, or not the one that follows.
    pub(crate) fn join(
        scheme: KeyScheme,
        num_keys: u64,
        numbers: &[u32],
        known: Option<&Self>,
        open: impl Fn(u32) -> Result<Arc<FramedFile>>,
    ) -> Result<Self> {
        let known = known.map_or(&[][..], |dictionary| &dictionary.parts);
        let mut parts: Vec<Arc<Part>> = Vec::new();
        let mut next_id = 0;
        for (place, &number) in numbers.iter().enumerate() {
            let part = match known.iter().find(|part| part.number == number) {
                Some(part) => Arc::clone(part),
                None => {
                    let file = open(number)?;
                    let part = Part::open(&file, number, scheme)?;
                    let is_last = place + 1 == numbers.len();
                    let end = part.first_id.saturating_add(part.num_keys);
                    if part.first_id != next_id || end > num_keys || (is_last && end != num_keys) {
                        let what = format!(
                            "keys from vertex {next_id} expected, up to {num_keys} in all; from {} to {end} found",
                            part.first_id
                        );
                        return Err(file.corrupt(what));
                    }
                    Arc::new(part)
                }
            };
            next_id = part.first_id + part.num_keys;
            parts.push(part);
        }
        if scheme != KeyScheme::Dense && next_id != num_keys {
            return Err(Error::Input(format!("{num_keys} keys expected, {next_id} found")));
        }
        Ok(Self { scheme, num_keys, parts })
    }

    /// A dictionary without parts.
    #[cfg(test)]
    pub(crate) fn open(scheme: KeyScheme, num_keys: u64, _parts: &[FramedFile]) -> Result<Self> {
        Self::join(scheme, num_keys, &[], None, |number| Err(Error::Input(format!("there is no part {number}"))))
    }

    /// What keys are.
    pub fn scheme(&self) -> KeyScheme {
        self.scheme
    }

    /// The number of keys.
    pub fn len(&self) -> u64 {
        self.num_keys
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.num_keys == 0
    }

    /// The bytes that say the keys of ids; none where the keys follow from the ids.
    pub fn num_bytes(&self) -> u64 {
        let bytes_of = |part: &Arc<Part>| match &part.keys {
            Keys::Range { .. } => 0,
            Keys::Integers(keys) => size_of::<u64>() * keys.len(),
            Keys::Strings { offsets, text } => size_of::<u64>() * offsets.len() + text.len(),
        };
        self.parts.iter().map(bytes_of).sum::<usize>() as u64
    }

    /// The vertex that the user calls `key`; `None` where there is none, and for a key of another scheme.
    ///
    /// Cost: a binary search.
    ///
    /// # Errors
    /// The dictionary is damaged.
    pub fn vertex(&self, key: &Key) -> Result<Option<VertexId>> {
        let key = match key {
            Key::Integer(key) => KeyRef::Integer(*key),
            Key::String(key) => KeyRef::String(key),
        };
        if self.scheme == KeyScheme::Dense {
            return Ok(match key {
                KeyRef::Integer(key) if key < self.num_keys => Some(key as VertexId),
                _ => None,
            });
        }
        for part in self.parts.iter().rev() {
            if let Some(index) = part.find(key)? {
                return Ok(Some((part.first_id + index) as VertexId));
            }
        }
        Ok(None)
    }

    /// What the user calls `vertex`.
    ///
    /// # Errors
    /// There is no such vertex, or the dictionary is damaged.
    pub fn key(&self, vertex: VertexId) -> Result<Key> {
        self.key_ref(vertex).map(Key::from)
    }

    /// As [`key`](Self::key), without a copy.
    ///
    /// # Errors
    /// There is no such vertex, or the dictionary is damaged.
    pub fn key_ref(&self, vertex: VertexId) -> Result<KeyRef<'_>> {
        let id = u64::from(vertex);
        if self.scheme == KeyScheme::Dense && id < self.num_keys {
            return Ok(KeyRef::Integer(id));
        }
        let part = self.parts.iter().find(|part| (part.first_id..part.first_id + part.num_keys).contains(&id));
        match part {
            Some(part) => part.key((id - part.first_id) as usize),
            None => Err(Error::Input(format!("vertex {vertex} is not below {}", self.num_keys))),
        }
    }

    /// Checks that no key of a part stands in a part before it.
    ///
    /// # Errors
    /// One does, or a part is damaged.
    pub(crate) fn check_apart(&self, part: usize, ranks: Range<u64>) -> Result<()> {
        let (before, part) = (&self.parts[..part], &self.parts[part]);
        for rank in ranks {
            let index = part.index_at(rank)?;
            let key = part.key(index)?;
            for older in before {
                if older.find(key)?.is_some() {
                    return Err(part.corrupt(index, "a key that no vertex has yet expected"));
                }
            }
        }
        Ok(())
    }

    /// Ranges of keys that [`check_order`](Self::check_order) takes: together all, each of at most `grain` keys.
    pub(crate) fn ranges(&self, grain: usize) -> Vec<(usize, Range<u64>)> {
        let ranges = self.parts.iter().enumerate().flat_map(|(index, part)| {
            let starts = (0..part.num_keys).step_by(grain);
            starts.map(move |start| (index, start..part.num_keys.min(start + grain as u64)))
        });
        ranges.collect()
    }

    /// Checks that keys ascend strictly over these ranks of a part, into the next: over all ranks, no key and no id
    /// stands twice.
    ///
    /// # Errors
    /// They do not, or the part is damaged.
    pub(crate) fn check_order(&self, part: usize, ranks: Range<u64>) -> Result<()> {
        let part = &self.parts[part];
        let mut previous = None;
        for rank in ranks.start..part.num_keys.min(ranks.end + 1) {
            let index = part.index_at(rank)?;
            let key = part.key(index)?;
            if previous.is_some_and(|previous| previous >= key) {
                return Err(part.corrupt(index, "keys in ascending order expected"));
            }
            previous = Some(key);
        }
        Ok(())
    }
}

impl Part {
    fn open(file: &FramedFile, number: u32, scheme: KeyScheme) -> Result<Self> {
        let section = file.section(SectionKind::DictionaryFacts)?;
        let bytes = section.bytes().as_slice();
        section.verify(0..bytes.len())?;
        let facts = Facts::decode(bytes).ok_or_else(|| file.corrupt("the facts of the dictionary mean nothing"))?;
        let fits = match facts.layout {
            Layout::Range | Layout::Integers => scheme == KeyScheme::Integer,
            Layout::Strings => scheme == KeyScheme::String,
        };
        if !fits {
            return Err(file.corrupt(format!("keys {:?} in a graph with {scheme:?} keys", facts.layout)));
        }
        let keys = match facts.layout {
            Layout::Range => Keys::Range { first_key: facts.first_key },
            Layout::Integers => Keys::Integers(Column::open(file, SectionKind::IntegerKeys)?),
            Layout::Strings => Keys::Strings {
                offsets: Column::open(file, SectionKind::StringOffsets)?,
                text: Column::open(file, SectionKind::StringText)?,
            },
        };
        let sorted_ids = facts.has_sorted_ids.then(|| Column::open(file, SectionKind::SortedIds)).transpose()?;
        let part = Self { number, first_id: facts.first_id, num_keys: facts.num_keys, keys, sorted_ids };
        part.check_lengths(file)?;
        Ok(part)
    }

    fn check_lengths(&self, file: &FramedFile) -> Result<()> {
        let num_keys = self.num_keys as usize;
        let fits = match &self.keys {
            Keys::Range { first_key } => first_key.checked_add(self.num_keys).is_some() && self.sorted_ids.is_none(),
            Keys::Integers(keys) => keys.len() == num_keys,
            Keys::Strings { offsets, .. } => num_keys.checked_add(1) == Some(offsets.len()),
        };
        let ids_fit = self.num_keys <= base::MAX_VERTICES as u64
            && self.first_id <= base::MAX_VERTICES as u64
            && self.sorted_ids.as_ref().is_none_or(|ids| ids.len() == num_keys);
        if fits && ids_fit { Ok(()) } else { Err(file.corrupt("columns of the dictionary have a wrong length")) }
    }

    /// The key at `index`, below the number of keys.
    fn key(&self, index: usize) -> Result<KeyRef<'_>> {
        match &self.keys {
            Keys::Range { first_key } => Ok(KeyRef::Integer(first_key + index as u64)),
            Keys::Integers(keys) => Ok(KeyRef::Integer(keys.touch(index..index + 1)?[0])),
            Keys::Strings { offsets, text } => {
                let bytes = string_bytes(offsets, text, index)?;
                let key = std::str::from_utf8(bytes);
                Ok(KeyRef::String(key.map_err(|_| offsets.corrupt(index, "a key that is not UTF-8"))?))
            }
        }
    }

    /// The index of the key with this rank in the order of keys.
    fn index_at(&self, rank: u64) -> Result<usize> {
        let Some(ids) = &self.sorted_ids else { return Ok(rank as usize) };
        let index = ids.touch(rank as usize..rank as usize + 1)?[0] as usize;
        if index as u64 >= self.num_keys {
            let what = format!("an id below {} expected, {index} found", self.num_keys);
            return Err(ids.corrupt(rank as usize, what).into());
        }
        Ok(index)
    }

    fn find(&self, key: KeyRef<'_>) -> Result<Option<u64>> {
        if let (Keys::Range { first_key }, KeyRef::Integer(key)) = (&self.keys, key) {
            return Ok(key.checked_sub(*first_key).filter(|&index| index < self.num_keys));
        }
        let (mut low, mut high) = (0, self.num_keys);
        while low < high {
            let rank = low + (high - low) / 2;
            let index = self.index_at(rank)?;
            match self.compare(index, key)? {
                Ordering::Less => low = rank + 1,
                Ordering::Equal => return Ok(Some(index as u64)),
                Ordering::Greater => high = rank,
            }
        }
        Ok(None)
    }

    /// The key at `index` compared with `key`; a key of another scheme is equal to none.
    fn compare(&self, index: usize, key: KeyRef<'_>) -> Result<Ordering> {
        match (&self.keys, key) {
            (Keys::Integers(keys), KeyRef::Integer(key)) => Ok(keys.touch(index..index + 1)?[0].cmp(&key)),
            (Keys::Strings { offsets, text }, KeyRef::String(key)) => {
                Ok(string_bytes(offsets, text, index)?.cmp(key.as_bytes()))
            }
            _ => Ok(Ordering::Less),
        }
    }

    fn corrupt(&self, index: usize, what: &str) -> Error {
        match &self.keys {
            Keys::Range { .. } => Error::Input(what.to_owned()),
            Keys::Integers(keys) => keys.corrupt(index, what).into(),
            Keys::Strings { offsets, .. } => offsets.corrupt(index, what).into(),
        }
    }
}

fn string_bytes<'a>(offsets: &Column<u64>, text: &'a Column<u8>, index: usize) -> Result<&'a [u8]> {
    let ends = offsets.touch(index..index + 2)?;
    let (start, end) = (ends[0], ends[1]);
    if start > end || end > text.len() as u64 {
        let what = format!("a string from {start} to {end} in {} bytes of text", text.len());
        return Err(offsets.corrupt(index, what).into());
    }
    Ok(text.touch(start as usize..end as usize)?)
}

impl Facts {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut decoder = Decoder::new(bytes);
        let layout = match decoder.u32()? {
            1 => Layout::Range,
            2 => Layout::Integers,
            3 => Layout::Strings,
            _ => return None,
        };
        let has_sorted_ids = match decoder.u32()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let (first_id, num_keys, first_key) = (decoder.u64()?, decoder.u64()?, decoder.u64()?);
        let facts = Self { layout, has_sorted_ids, first_id, num_keys, first_key };
        (bytes.len() == FACTS_BYTES).then_some(facts)
    }
}
