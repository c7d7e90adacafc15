//! The dictionary maps keys to vertex ids and back.
//!
//! It is a list of parts, each for the ids of one append or load. If ids ascend with their keys, a lookup searches the
//! keys; otherwise it searches the ids in key order.

mod join;
mod writer;

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use anden_base::VertexId;

use crate::column::SectionColumn;
use crate::encoding::Decoder;
use crate::file::{FramedFile, SectionKind};
use crate::key::{Key, KeyRef};
use crate::options::KeyScheme;
use crate::{Error, Result};

pub use writer::{DictionaryKeys, FinishedDictionary};
pub(crate) use writer::{PartFile, write_dictionary};

/// Bytes of the section that describes a part.
const FACTS_BYTES: usize = 32;

/// Layout of the keys of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum KeyLayout {
    /// Consecutive integers; only the first is stored.
    Range = 1,
    /// Integers by id.
    Integers = 2,
    /// Strings by id.
    Strings = 3,
}

/// Description of a part: layout, whether ids need sorting, first id, number of keys, and the first key of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    layout: KeyLayout,
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
    parts: Vec<Arc<DictionaryPart>>,
}

#[derive(Debug)]
struct DictionaryPart {
    /// Number of its file.
    number: u32,
    first_id: u64,
    num_keys: u64,
    keys: Keys,
    /// Positions in key order; `None` if ids ascend with the keys.
    sorted_ids: Option<SectionColumn<VertexId>>,
}

#[derive(Debug)]
enum Keys {
    Range { first_key: u64 },
    Integers(SectionColumn<u64>),
    Strings { offsets: SectionColumn<u64>, text: SectionColumn<u8> },
}

impl Dictionary {
    /// Joins the parts with these numbers; takes open ones from `known`, and opens the others.
    ///
    /// # Errors
    /// A part is damaged, of another scheme, or out of sequence.
    pub(crate) fn join(
        scheme: KeyScheme,
        num_keys: u64,
        numbers: &[u32],
        known: Option<&Self>,
        open: impl Fn(u32) -> Result<Arc<FramedFile>>,
    ) -> Result<Self> {
        let known = known.map_or(&[][..], |dictionary| &dictionary.parts);
        let mut parts: Vec<Arc<DictionaryPart>> = Vec::new();
        let mut next_id = 0;
        for (place, &number) in numbers.iter().enumerate() {
            let part = match known.iter().find(|part| part.number == number) {
                Some(part) => Arc::clone(part),
                None => {
                    let file = open(number)?;
                    let part = DictionaryPart::open(&file, number, scheme)?;
                    let is_last = place + 1 == numbers.len();
                    let end = part.first_id.saturating_add(part.num_keys);
                    // Parts must cover the ids without a gap, because a vertex finds its part by its id.
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

    /// A part of a dictionary, alone. It has the keys of its own ids.
    ///
    /// # Errors
    /// The part is damaged, or of another scheme.
    pub(crate) fn of_part(scheme: KeyScheme, file: &FramedFile, number: u32) -> Result<Self> {
        let part = DictionaryPart::open(file, number, scheme)?;
        Ok(Self { scheme, num_keys: part.num_keys, parts: vec![Arc::new(part)] })
    }

    /// A dictionary without parts.
    #[cfg(test)]
    pub(crate) fn open(scheme: KeyScheme, num_keys: u64, _parts: &[FramedFile]) -> Result<Self> {
        Self::join(scheme, num_keys, &[], None, |number| Err(Error::Input(format!("there is no part {number}"))))
    }

    /// The kind of keys.
    pub fn scheme(&self) -> KeyScheme {
        self.scheme
    }

    /// Number of keys.
    pub fn len(&self) -> u64 {
        self.num_keys
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.num_keys == 0
    }

    /// Bytes of the stored keys; 0 if the keys follow from the ids.
    pub fn num_bytes(&self) -> u64 {
        let bytes_of = |part: &Arc<DictionaryPart>| match &part.keys {
            Keys::Range { .. } => 0,
            Keys::Integers(keys) => size_of::<u64>() * keys.len(),
            Keys::Strings { offsets, text } => size_of::<u64>() * offsets.len() + text.len(),
        };
        self.parts.iter().map(bytes_of).sum::<usize>() as u64
    }

    /// The vertex with this key; `None` if no vertex has it, or if the key is of another scheme.
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

    /// The key of `vertex`.
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
        // There are few parts, so a scan suffices.
        let part = self.parts.iter().find(|part| (part.first_id..part.first_id + part.num_keys).contains(&id));
        match part {
            Some(part) => part.key((id - part.first_id) as usize),
            None => Err(Error::Input(format!("vertex {vertex} is not below {}", self.num_keys))),
        }
    }

    /// The parts with ids below `bound`.
    fn parts_below(&self, bound: VertexId) -> impl Iterator<Item = &Arc<DictionaryPart>> {
        self.parts.iter().filter(move |part| part.num_keys > 0 && part.first_id < u64::from(bound))
    }

    /// Whether ids below `bound` ascend with their keys.
    pub(crate) fn ascends_below(&self, bound: VertexId) -> Result<bool> {
        let mut last: Option<KeyRef<'_>> = None;
        for part in self.parts_below(bound) {
            let first = part.key(0)?;
            if part.sorted_ids.is_some() || last.is_some_and(|last| last >= first) {
                return Ok(false);
            }
            last = Some(part.key(part.num_keys as usize - 1)?);
        }
        Ok(true)
    }

    /// The ids of each part in ascending order of their keys, without those from `bound` on.
    pub(crate) fn ids_by_part(&self, bound: VertexId) -> Result<Vec<Vec<VertexId>>> {
        let of_part = |part: &Arc<DictionaryPart>| -> Result<Vec<VertexId>> {
            let mut ids = Vec::with_capacity(part.num_keys as usize);
            for rank in 0..part.num_keys {
                let id = (part.first_id + part.index_at(rank)? as u64) as VertexId;
                ids.extend((id < bound).then_some(id));
            }
            Ok(ids)
        };
        self.parts_below(bound).map(of_part).collect()
    }

    /// Checks that no key of a part is also in an earlier part.
    ///
    /// # Errors
    /// A key is, or a part is damaged.
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

    /// Splits all keys into ranges of at most `grain` keys for [`check_order`](Self::check_order).
    pub(crate) fn ranges(&self, grain: usize) -> Vec<(usize, Range<u64>)> {
        let ranges = self.parts.iter().enumerate().flat_map(|(index, part)| {
            let starts = (0..part.num_keys).step_by(grain);
            starts.map(move |start| (index, start..part.num_keys.min(start + grain as u64)))
        });
        ranges.collect()
    }

    /// Checks that keys ascend strictly over these ranks of a part, and into the next rank. Over all ranks, this proves
    /// that no key and no id appears twice.
    ///
    /// # Errors
    /// Keys do not ascend, or the part is damaged.
    pub(crate) fn check_order(&self, part: usize, ranks: Range<u64>) -> Result<()> {
        let part = &self.parts[part];
        let mut previous = None;
        // One rank more, so that the border to the next range is checked, too.
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

impl DictionaryPart {
    fn open(file: &FramedFile, number: u32, scheme: KeyScheme) -> Result<Self> {
        let section = file.section(SectionKind::DictionaryFacts)?;
        let bytes = section.bytes().as_slice();
        // The facts are small, and lead to all else.
        section.verify(0..bytes.len())?;
        let facts = Facts::decode(bytes).ok_or_else(|| file.corrupt("the facts of the dictionary mean nothing"))?;
        let fits = match facts.layout {
            KeyLayout::Range | KeyLayout::Integers => scheme == KeyScheme::Integer,
            KeyLayout::Strings => scheme == KeyScheme::String,
        };
        if !fits {
            return Err(file.corrupt(format!("keys {:?} in a graph with {scheme:?} keys", facts.layout)));
        }
        let keys = match facts.layout {
            KeyLayout::Range => Keys::Range { first_key: facts.first_key },
            KeyLayout::Integers => Keys::Integers(SectionColumn::open(file, SectionKind::IntegerKeys)?),
            KeyLayout::Strings => Keys::Strings {
                offsets: SectionColumn::open(file, SectionKind::StringOffsets)?,
                text: SectionColumn::open(file, SectionKind::StringText)?,
            },
        };
        let sorted_ids = facts.has_sorted_ids.then(|| SectionColumn::open(file, SectionKind::SortedIds)).transpose()?;
        let part = Self { number, first_id: facts.first_id, num_keys: facts.num_keys, keys, sorted_ids };
        part.check_lengths(file)?;
        Ok(part)
    }

    fn check_lengths(&self, file: &FramedFile) -> Result<()> {
        let num_keys = self.num_keys as usize;
        let fits = match &self.keys {
            // The end of the range is computed for each lookup, so it must not overflow.
            Keys::Range { first_key } => first_key.checked_add(self.num_keys).is_some() && self.sorted_ids.is_none(),
            Keys::Integers(keys) => keys.len() == num_keys,
            Keys::Strings { offsets, .. } => num_keys.checked_add(1) == Some(offsets.len()),
        };
        let ids_fit = self.num_keys <= anden_base::MAX_VERTICES as u64
            && self.first_id <= anden_base::MAX_VERTICES as u64
            && self.sorted_ids.as_ref().is_none_or(|ids| ids.len() == num_keys);
        if fits && ids_fit { Ok(()) } else { Err(file.corrupt("columns of the dictionary have a wrong length")) }
    }

    /// The key at `index`, which is below the number of keys.
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

    /// Index of the key with this rank in key order.
    fn index_at(&self, rank: u64) -> Result<usize> {
        let Some(ids) = &self.sorted_ids else { return Ok(rank as usize) };
        let index = ids.touch(rank as usize..rank as usize + 1)?[0] as usize;
        // Ids are from the file, and index the keys below.
        if index as u64 >= self.num_keys {
            let what = format!("an id below {} expected, {index} found", self.num_keys);
            return Err(ids.corrupt(rank as usize, what).into());
        }
        Ok(index)
    }

    fn find(&self, key: KeyRef<'_>) -> Result<Option<u64>> {
        // The index in a range follows from the key, without a search.
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

    /// Compares the key at `index` with `key`. A key of another scheme is equal to none.
    fn compare(&self, index: usize, key: KeyRef<'_>) -> Result<Ordering> {
        match (&self.keys, key) {
            (Keys::Integers(keys), KeyRef::Integer(key)) => Ok(keys.touch(index..index + 1)?[0].cmp(&key)),
            (Keys::Strings { offsets, text }, KeyRef::String(key)) => {
                Ok(string_bytes(offsets, text, index)?.cmp(key.as_bytes()))
            }
            // A key of another scheme is never equal, and the search ends behind the last key.
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

fn string_bytes<'a>(offsets: &SectionColumn<u64>, text: &'a SectionColumn<u8>, index: usize) -> Result<&'a [u8]> {
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
            1 => KeyLayout::Range,
            2 => KeyLayout::Integers,
            3 => KeyLayout::Strings,
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
