//! Adds keys to a dictionary, as a part of their own or joined with the last parts.
//!
//! A new part is joined with parts before it that are at most twice as long. So each part is less than half as long as
//! the part before. A dictionary has few parts, and a key is rewritten few times.

use anden_base::VertexId;

use super::{
    Dictionary, DictionaryKeys, DictionaryPart, FinishedDictionary, KeyRef, Keys, PartFile, string_bytes,
    write_dictionary,
};
use crate::options::KeyScheme;
use crate::{Error, Result};

/// A written part, and the numbers of all parts from then on.
#[derive(Debug)]
pub(crate) struct AddedPart {
    pub file: FinishedDictionary,
    pub numbers: Vec<u32>,
}

impl Dictionary {
    /// Writes keys for the ids that follow. `place` names the file; its first id is ignored.
    ///
    /// # Errors
    /// The keys have another scheme, are out of order or not unique; a part is damaged; the disk failed.
    pub(crate) fn write_addition(&self, keys: &DictionaryKeys<'_>, place: PartFile<'_>) -> Result<AddedPart> {
        keys.check(self.scheme)?;
        let mut num_together = keys.len();
        let mut num_kept = self.parts.len();
        // Joining parts of similar length keeps their number logarithmic, and each key is rewritten that often.
        while num_kept > 0 && self.parts[num_kept - 1].num_keys <= 2 * num_together {
            num_kept -= 1;
            num_together += self.parts[num_kept].num_keys;
        }
        let (kept, joined) = self.parts.split_at(num_kept);
        let first_id = kept.last().map_or(0, |part| part.first_id + part.num_keys);
        let place = PartFile { first_id, ..place };
        let file = match self.scheme {
            KeyScheme::Integer => {
                let keys = IntegerKeys::join(joined.iter().map(|part| &**part), keys)?;
                let by_id = &keys.by_id[..];
                write_dictionary(
                    place,
                    &DictionaryKeys::Integers { by_id, sorted: keys.sorted.as_deref() },
                    self.scheme,
                )?
            }
            _ => {
                let keys = StringKeys::join(joined.iter().map(|part| &**part), keys)?;
                let (text, offsets) = (&keys.text[..], &keys.offsets[..]);
                let keys = DictionaryKeys::Strings { text, offsets, sorted: keys.sorted.as_deref() };
                write_dictionary(place, &keys, self.scheme)?
            }
        };
        let numbers = kept.iter().map(|part| part.number).chain([place.number]).collect();
        Ok(AddedPart { file, numbers })
    }

    /// Checks that no vertex has one of these keys.
    ///
    /// # Errors
    /// A vertex has one, or the dictionary is damaged.
    pub(crate) fn check_new(&self, keys: &DictionaryKeys<'_>) -> Result<()> {
        let check = |key: KeyRef<'_>| {
            // The new keys may be in any part, because ids, not keys, order the parts.
            for part in &self.parts {
                if part.find(key)?.is_some() {
                    return Err(Error::Input(format!("the key {key} belongs to another vertex already")));
                }
            }
            Ok(())
        };
        match keys {
            DictionaryKeys::Dense(_) => Ok(()),
            DictionaryKeys::Integers { by_id, .. } => by_id.iter().try_for_each(|&key| check(KeyRef::Integer(key))),
            DictionaryKeys::Strings { text, offsets, .. } => offsets.windows(2).try_for_each(|ends| {
                let bytes = text.get(ends[0] as usize..ends[1] as usize).unwrap_or_default();
                // Keys that are not UTF-8 are refused when they are written.
                std::str::from_utf8(bytes).map_or(Ok(()), |key| check(KeyRef::String(key)))
            }),
        }
    }
}

/// Keys of several parts, one after the other.
struct IntegerKeys {
    by_id: Vec<u64>,
    sorted: Option<Vec<VertexId>>,
}

struct StringKeys {
    text: Vec<u8>,
    offsets: Vec<u64>,
    sorted: Option<Vec<VertexId>>,
}

impl IntegerKeys {
    fn join<'a>(parts: impl Iterator<Item = &'a DictionaryPart>, keys: &DictionaryKeys<'_>) -> Result<Self> {
        let mut by_id = Vec::new();
        let mut sorted = Vec::new();
        for part in parts {
            part.extend_sorted(by_id.len(), &mut sorted)?;
            match &part.keys {
                Keys::Range { first_key } => by_id.extend(*first_key..first_key + part.num_keys),
                Keys::Integers(keys) => by_id.extend_from_slice(keys.touch(0..keys.len())?),
                Keys::Strings { .. } => return Err(part.corrupt(0, "integer keys expected")),
            }
        }
        if let DictionaryKeys::Integers { by_id: new, .. } = keys {
            extend_sorted(keys, by_id.len(), &mut sorted);
            by_id.extend_from_slice(new);
        }
        // The stable sort detects the parts, which are sorted already, and merges them.
        sorted.sort_by_key(|&index| by_id.get(index as usize));
        // If ids ascend with the keys, no order is stored.
        Ok(Self { by_id, sorted: (!sorted.is_sorted()).then_some(sorted) })
    }
}

impl StringKeys {
    fn join<'a>(parts: impl Iterator<Item = &'a DictionaryPart>, keys: &DictionaryKeys<'_>) -> Result<Self> {
        let (mut text, mut offsets) = (Vec::new(), vec![0]);
        let mut sorted = Vec::new();
        for part in parts {
            part.extend_sorted(offsets.len() - 1, &mut sorted)?;
            let Keys::Strings { offsets: part_offsets, text: part_text } = &part.keys else {
                return Err(part.corrupt(0, "string keys expected"));
            };
            for index in 0..part.num_keys as usize {
                text.extend_from_slice(string_bytes(part_offsets, part_text, index)?);
                offsets.push(text.len() as u64);
            }
        }
        if let DictionaryKeys::Strings { text: new, offsets: ends, .. } = keys {
            extend_sorted(keys, offsets.len() - 1, &mut sorted);
            let start = text.len() as u64;
            text.extend_from_slice(new);
            offsets.extend(ends.iter().skip(1).map(|end| start + end));
        }
        let key = |index: VertexId| {
            let ends = offsets.get(index as usize).zip(offsets.get(index as usize + 1));
            ends.and_then(|(&start, &end)| text.get(start as usize..end as usize))
        };
        sorted.sort_by(|&a, &b| key(a).cmp(&key(b)));
        Ok(Self { sorted: (!sorted.is_sorted()).then_some(sorted), text, offsets })
    }
}

impl DictionaryPart {
    /// Appends the positions of the keys among those of all parts, in key order.
    fn extend_sorted(&self, first: usize, sorted: &mut Vec<VertexId>) -> Result<()> {
        for rank in 0..self.num_keys {
            sorted.push((first + self.index_at(rank)?) as VertexId);
        }
        Ok(())
    }
}

fn extend_sorted(keys: &DictionaryKeys<'_>, first: usize, sorted: &mut Vec<VertexId>) {
    match keys.sorted() {
        Some(ids) => sorted.extend(ids.iter().map(|&id| (first as VertexId).saturating_add(id))),
        None => sorted.extend((0..keys.len()).map(|id| (first as u64 + id) as VertexId)),
    }
}
