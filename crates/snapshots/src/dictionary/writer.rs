//! Writes a part of the dictionary.

use std::path::Path;

use anden_base::storage::Storage;
use anden_base::{MAX_VERTICES, VertexId};

use super::{FACTS_BYTES, Facts, KeyLayout};
use crate::encoding::Encoder;
use crate::file::{FileKind, FileWriter, SectionKind, WrittenFile};
use crate::names;
use crate::options::{DatabaseId, KeyScheme};
use crate::{Error, Result};

/// The keys of all vertices, by id.
#[derive(Clone, Copy, Debug)]
pub enum DictionaryKeys<'a> {
    /// Keys are ids; the number of vertices.
    Dense(u64),
    /// Integers.
    Integers {
        /// The key of each vertex.
        by_id: &'a [u64],
        /// The vertices in key order; `None` if ids ascend with keys.
        sorted: Option<&'a [VertexId]>,
    },
    /// Strings.
    Strings {
        /// All strings, one after the other, in UTF-8.
        text: &'a [u8],
        /// The start of each vertex's string, and the end of the last.
        offsets: &'a [u64],
        /// The vertices in key order (by bytes); `None` if ids ascend with keys.
        sorted: Option<&'a [VertexId]>,
    },
}

/// A dictionary that is written and synced, but not part of the database yet.
#[derive(Debug)]
pub struct FinishedDictionary {
    /// `None` for dense keys.
    pub(crate) file: Option<WrittenFile>,
    pub(crate) num_keys: u64,
}

impl DictionaryKeys<'_> {
    pub(crate) fn scheme(&self) -> KeyScheme {
        match self {
            Self::Dense(_) => KeyScheme::Dense,
            Self::Integers { .. } => KeyScheme::Integer,
            Self::Strings { .. } => KeyScheme::String,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Dense(num_keys) => *num_keys,
            Self::Integers { by_id, .. } => by_id.len() as u64,
            Self::Strings { offsets, .. } => (offsets.len() as u64).saturating_sub(1),
        }
    }

    /// Bytes of the keys, without their order.
    pub(crate) fn num_bytes(&self) -> u64 {
        match self {
            Self::Dense(_) => 0,
            Self::Integers { by_id, .. } => size_of_val(*by_id) as u64,
            Self::Strings { text, offsets, .. } => (text.len() + size_of_val(*offsets)) as u64,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn sorted(&self) -> Option<&[VertexId]> {
        match self {
            Self::Dense(_) => None,
            Self::Integers { sorted, .. } | Self::Strings { sorted, .. } => *sorted,
        }
    }

    /// The first key, if the keys are consecutive integers in the order of the ids.
    fn range_start(&self) -> Option<u64> {
        let Self::Integers { by_id, sorted: None } = self else { return None };
        let is_range = by_id.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        // The end of the range must be representable, too.
        let last_fits = by_id.last().is_none_or(|&last| last < u64::MAX);
        (is_range && last_fits).then(|| by_id.first().copied().unwrap_or(0))
    }

    pub(super) fn check(&self, scheme: KeyScheme) -> Result<()> {
        let bad = |what: String| Err(Error::Input(what));
        if self.scheme() != scheme {
            return bad(format!("{scheme:?} keys expected, {:?} keys found", self.scheme()));
        }
        if self.len() > MAX_VERTICES as u64 {
            return bad(format!("{} keys, at most {MAX_VERTICES} vertices are possible", self.len()));
        }
        if self.sorted().is_some_and(|sorted| sorted.len() as u64 != self.len()) {
            return bad("as many sorted ids as keys expected".into());
        }
        if let Self::Strings { text, offsets, .. } = self {
            let in_order = offsets.first() == Some(&0) && offsets.is_sorted();
            if !in_order || offsets.last() != Some(&(text.len() as u64)) {
                return bad(format!("offsets of strings must ascend from 0 to {}", text.len()));
            }
        }
        // Unordered keys would break the binary search of readers.
        let unordered = match self {
            Self::Dense(_) => None,
            Self::Integers { by_id, sorted } => first_unordered(*sorted, by_id.len(), |id| by_id.get(id)),
            Self::Strings { text, offsets, sorted } => {
                if let Some(id) =
                    (0..offsets.len() - 1).find(|&id| std::str::from_utf8(string(text, offsets, id)).is_err())
                {
                    return bad(format!("the key of vertex {id} is not UTF-8"));
                }
                let num_keys = offsets.len() - 1;
                first_unordered(*sorted, num_keys, |id| (id < num_keys).then(|| string(text, offsets, id)))
            }
        };
        match unordered {
            Some(rank) => bad(format!("keys must ascend and differ: those of rank {rank} and the next do not")),
            None => Ok(()),
        }
    }
}

fn string<'a>(text: &'a [u8], offsets: &[u64], id: usize) -> &'a [u8] {
    &text[offsets[id] as usize..offsets[id + 1] as usize]
}

/// The first rank whose key is missing or not smaller than the next rank's.
fn first_unordered<K: Ord>(
    sorted: Option<&[VertexId]>,
    num_keys: usize,
    key: impl Fn(usize) -> Option<K>,
) -> Option<usize> {
    let at = |rank: usize| key(sorted.map_or(rank, |sorted| sorted[rank] as usize));
    let in_order = |rank: usize| match (at(rank), rank + 1 < num_keys) {
        (Some(key), true) => at(rank + 1).is_some_and(|next| key < next),
        (Some(_), false) => true,
        (None, _) => false,
    };
    (0..num_keys).find(|&rank| !in_order(rank))
}

impl Facts {
    fn encode(&self) -> Vec<u8> {
        let mut facts = Encoder::default();
        facts.u32(self.layout as u32);
        facts.u32(self.has_sorted_ids.into());
        facts.u64(self.first_id);
        facts.u64(self.num_keys);
        facts.u64(self.first_key);
        debug_assert_eq!(facts.0.len(), FACTS_BYTES);
        facts.0
    }
}

/// Place of a dictionary part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartFile<'a> {
    pub storage: &'a dyn Storage,
    pub directory: &'a Path,
    pub id: DatabaseId,
    /// Number of the part's file.
    pub number: u32,
    /// Id of the first key.
    pub first_id: u64,
}

/// Writes the keys as a part, under a temporary name.
pub(crate) fn write_dictionary(
    part: PartFile<'_>,
    keys: &DictionaryKeys<'_>,
    scheme: KeyScheme,
) -> Result<FinishedDictionary> {
    let PartFile { storage, directory, id, number, first_id } = part;
    keys.check(scheme)?;
    let num_keys = keys.len();
    // Dense keys are ids, so nothing is stored.
    if scheme == KeyScheme::Dense {
        return Ok(FinishedDictionary { file: None, num_keys });
    }
    let range_start = keys.range_start();
    // A range of integers is stored as its first key only.
    let layout = match (keys, range_start) {
        (DictionaryKeys::Strings { .. }, _) => KeyLayout::Strings,
        // Consecutive integers follow from the first one.
        (_, Some(_)) => KeyLayout::Range,
        _ => KeyLayout::Integers,
    };
    let has_sorted_ids = keys.sorted().is_some();
    let facts = Facts { layout, has_sorted_ids, first_id, num_keys, first_key: range_start.unwrap_or(0) };
    let mut file = FileWriter::create(storage, &directory.join(names::temporary(&names::dictionary(number))))?;
    let mut section = |kind, bytes: &[u8]| {
        file.begin_section(kind)?;
        file.append(bytes)
    };
    section(SectionKind::DictionaryFacts, &facts.encode())?;
    match keys {
        DictionaryKeys::Integers { by_id, .. } if layout == KeyLayout::Integers => {
            section(SectionKind::IntegerKeys, bytemuck::cast_slice(by_id))?;
        }
        DictionaryKeys::Strings { text, offsets, .. } => {
            section(SectionKind::StringOffsets, bytemuck::cast_slice(offsets))?;
            section(SectionKind::StringText, text)?;
        }
        _ => {}
    }
    if let Some(sorted) = keys.sorted() {
        section(SectionKind::SortedIds, bytemuck::cast_slice(sorted))?;
    }
    let file = file.finish(FileKind::Dictionary, id)?;
    Ok(FinishedDictionary { file: Some(file), num_keys })
}
