//! Values of bytes: keys and texts.
//!
//! A value is laid out once, however many rows have it: rows hold places among the entries. The
//! entries of plain pages are not compared, so each is one of its own.

use std::ops::Range;

use super::packed::deltas;
use super::page::Result;

/// The most values of a page whose lengths are stored as differences, which are laid out before the
/// bytes are known.
const MAX_DELTA_VALUES: usize = 16 << 20;
/// The most bytes that the values of such a page come to.
const MAX_DELTA_BYTES: usize = 256 << 20;

/// Values of bytes, by row.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// The bytes that entries lie in.
    pub(super) bytes: Vec<u8>,
    /// The places of the values: start and length.
    pub(super) entries: Vec<(u32, u32)>,
    /// By row: the entry.
    pub(super) indices: Vec<u32>,
}

impl Texts {
    /// The bytes of an entry.
    pub(super) fn entry(&self, index: u32) -> &[u8] {
        let (start, len) = self.entries[index as usize];
        &self.bytes[start as usize..][..len as usize]
    }

    /// Adds a row with a value of its own at this place.
    fn push(&mut self, start: usize, len: usize) -> Result<()> {
        let place = u32::try_from(start).ok().zip(u32::try_from(len).ok()).zip(u32::try_from(self.entries.len()).ok());
        let ((start, len), index) = place.ok_or("its values take more than 4 GB")?;
        self.entries.push((start, len));
        self.indices.push(index);
        Ok(())
    }
}

/// Appends `take` values after the first `skip`: each behind its length, or all of one length.
pub(super) fn plain_texts(
    body: &[u8],
    fixed_len: Option<usize>,
    skip: usize,
    take: usize,
    texts: &mut Texts,
) -> Result<()> {
    let short = || String::from("a page ends within a value");
    if let Some(len) = fixed_len {
        let end = (skip + take).checked_mul(len).filter(|&end| end <= body.len()).ok_or_else(short)?;
        let base = texts.bytes.len();
        texts.bytes.extend_from_slice(&body[skip * len..end]);
        return (0..take).try_for_each(|i| texts.push(base + i * len, len));
    }
    let mut rest = body;
    let mut next = || -> Result<usize> {
        let (len, after) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        let len = u32::from_le_bytes(*len) as usize;
        rest = after.get(len..).ok_or_else(short)?;
        Ok(body.len() - rest.len() - len)
    };
    let mut first = None;
    for _ in 0..skip {
        next()?;
    }
    let base = texts.bytes.len();
    let mut end = 0;
    for _ in 0..take {
        let start = next()?;
        // Lengths are copied with the values: one copy of all is cheaper than many.
        let first = *first.get_or_insert(start - 4);
        end = start + u32::from_le_bytes([body[start - 4], body[start - 3], body[start - 2], body[start - 1]]) as usize;
        texts.push(base + start - first, end - start)?;
    }
    if let Some(first) = first {
        texts.bytes.extend_from_slice(&body[first..end]);
    }
    Ok(())
}

/// Appends the values of `window`, of at most `limit` whose lengths, and shared beginnings, are stored
/// as differences before the bytes.
pub(super) fn delta_texts(
    mut body: &[u8],
    has_prefixes: bool,
    limit: usize,
    window: Range<usize>,
    texts: &mut Texts,
) -> Result<()> {
    if limit > MAX_DELTA_VALUES {
        return Err(format!("a page has {limit} values, more than {MAX_DELTA_VALUES}"));
    }
    let (mut prefixes, mut lens) = (Vec::new(), Vec::new());
    if has_prefixes {
        deltas(&mut body, limit, |len| prefixes.push(len))?;
    }
    deltas(&mut body, limit, |len| lens.push(len))?;
    if lens.len() < window.end || (has_prefixes && prefixes.len() != lens.len()) {
        return Err(format!("expected at least {} values in a page, found {}", window.end, lens.len()));
    }
    let mut before: Vec<u8> = Vec::new();
    let mut num_bytes = 0;
    for (i, &len) in lens.iter().enumerate().take(window.end) {
        let len = usize::try_from(len).ok().filter(|&len| len <= body.len());
        let Some(len) = len else { return Err("a page ends within a value".into()) };
        let (value, rest) = body.split_at(len);
        body = rest;
        if has_prefixes {
            let prefix = usize::try_from(prefixes[i]).ok().filter(|&prefix| prefix <= before.len());
            let Some(prefix) = prefix else { return Err("a value shares more than there is before it".into()) };
            before.truncate(prefix);
            before.extend_from_slice(value);
            // Only what is laid out, or copied, counts: a page may otherwise stand for any number of bytes.
            num_bytes += before.len();
        } else {
            num_bytes += len;
        }
        if num_bytes > MAX_DELTA_BYTES {
            return Err(format!("the values of a page take more than {}", base::size::size(MAX_DELTA_BYTES as u64)));
        }
        if i >= window.start {
            let value = if has_prefixes { &before[..] } else { value };
            let start = texts.bytes.len();
            texts.bytes.extend_from_slice(value);
            texts.push(start, value.len())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(texts: &Texts) -> Vec<&str> {
        texts.indices.iter().map(|&index| std::str::from_utf8(texts.entry(index)).unwrap()).collect()
    }

    #[test]
    fn plain_values() {
        let mut body = Vec::new();
        for text in ["a", "", "bcd", "e"] {
            body.extend((text.len() as u32).to_le_bytes());
            body.extend(text.as_bytes());
        }
        let mut texts = Texts::default();
        plain_texts(&body, None, 1, 2, &mut texts).unwrap();
        plain_texts(&body, None, 0, 4, &mut texts).unwrap();
        plain_texts(b"abcdef", Some(2), 1, 2, &mut texts).unwrap();
        assert_eq!(rows(&texts), ["", "bcd", "a", "", "bcd", "e", "cd", "ef"]);
        assert!(plain_texts(&body, None, 0, 5, &mut texts).is_err());
        assert!(plain_texts(&body[..6], None, 0, 2, &mut texts).is_err());
        assert!(plain_texts(b"abc", Some(2), 1, 1, &mut texts).is_err());
        assert!(plain_texts(&[255; 8], None, 0, 1, &mut texts).is_err());
    }

    #[test]
    fn values_by_differences() {
        // Lengths 5, 5, 6, 6: "Hello", "World", "Foobar", "ABCDEF".
        let mut body = vec![8, 1, 4, 10, 0, 1, 0b010];
        body.extend(b"HelloWorldFoobarABCDEF");
        let mut texts = Texts::default();
        delta_texts(&body, false, 4, 1..4, &mut texts).unwrap();
        assert_eq!(rows(&texts), ["World", "Foobar", "ABCDEF"]);
        assert!(delta_texts(&body[..20], false, 4, 0..4, &mut Texts::default()).is_err());
        assert!(delta_texts(&body, false, 4, 0..5, &mut Texts::default()).is_err());
        // Beginnings 0, 2 and lengths 4, 1: "axis", "axe".
        let mut body = vec![8, 1, 2, 0, 4, 0, 8, 1, 2, 8, 5, 0];
        body.extend(b"axise");
        let mut texts = Texts::default();
        delta_texts(&body, true, 2, 0..2, &mut texts).unwrap();
        assert_eq!(rows(&texts), ["axis", "axe"]);
        let mut texts = Texts::default();
        delta_texts(&body, true, 2, 1..2, &mut texts).unwrap();
        assert_eq!(rows(&texts), ["axe"]);
        // A beginning longer than what there is.
        body[4] = 100;
        assert!(delta_texts(&body, true, 2, 0..2, &mut Texts::default()).is_err());
    }
}
