//! Thrift's compact protocol, as far as Parquet's footers and page headers use it.
//!
//! Nothing is allocated by a count that was read: lists are walked, bytes are borrowed.

/// The deepest nesting that is followed; headers need four levels.
const MAX_DEPTH: usize = 32;

/// Why bytes are no structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// They end too early.
    Short,
    /// They are wrong.
    Wrong(&'static str),
}

impl Fault {
    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Short => "it ends too early",
            Self::Wrong(what) => what,
        }
    }
}

pub(super) type Read<T> = Result<T, Fault>;

/// The type of a field or of the elements of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind(u8);

impl Kind {
    pub(super) const TRUE: Self = Self(1);
    pub(super) const FALSE: Self = Self(2);
    pub(super) const I32: Self = Self(5);
    pub(super) const I64: Self = Self(6);
    pub(super) const BINARY: Self = Self(8);
    pub(super) const LIST: Self = Self(9);
    pub(super) const STRUCT: Self = Self(12);
}

/// Bytes that are read from their beginning.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, depth: 0 }
    }

    /// The bytes that were not read yet.
    pub(super) fn num_left(&self) -> usize {
        self.bytes.len()
    }

    fn byte(&mut self) -> Read<u8> {
        let (&first, rest) = self.bytes.split_first().ok_or(Fault::Short)?;
        self.bytes = rest;
        Ok(first)
    }

    fn take(&mut self, num_bytes: usize) -> Read<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(num_bytes).ok_or(Fault::Short)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Read<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Fault::Wrong("a number has more than ten bytes"))
    }

    pub(super) fn i64(&mut self) -> Read<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(super) fn i32(&mut self) -> Read<i32> {
        i32::try_from(self.i64()?).map_err(|_| Fault::Wrong("a number of 32 bits has more"))
    }

    pub(super) fn bytes(&mut self) -> Read<&'a [u8]> {
        let num_bytes = usize::try_from(self.varint()?).map_err(|_| Fault::Short)?;
        self.take(num_bytes)
    }

    pub(super) fn text(&mut self) -> Read<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Fault::Wrong("a name is not UTF-8"))
    }

    fn deeper<T>(&mut self, body: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth == MAX_DEPTH {
            return Err(Fault::Wrong("structures are nested too deep"));
        }
        self.depth += 1;
        let value = body(self);
        self.depth -= 1;
        value
    }

    /// Calls `field` with the number and type of each field of a structure. It returns whether it
    /// read the value; what it leaves is passed over.
    pub(super) fn fields(&mut self, mut field: impl FnMut(&mut Self, i64, Kind) -> Read<bool>) -> Read<()> {
        self.deeper(|reader| {
            let mut id = 0_i64;
            loop {
                let head = reader.byte()?;
                if head == 0 {
                    return Ok(());
                }
                id = match head >> 4 {
                    0 => reader.i64()?,
                    step => id.wrapping_add(step.into()),
                };
                let kind = Kind(head & 15);
                if !field(reader, id, kind)? {
                    reader.skip(kind)?;
                }
            }
        })
    }

    /// Calls `element` for each element of a list of this type.
    pub(super) fn list(&mut self, expected: Kind, mut element: impl FnMut(&mut Self) -> Read<()>) -> Read<()> {
        let (kind, count) = self.list_head()?;
        if kind != expected && count > 0 {
            return Err(Fault::Wrong("a list is of another type"));
        }
        self.deeper(|reader| (0..count).try_for_each(|_| element(reader)))
    }

    fn list_head(&mut self) -> Read<(Kind, u64)> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        // Every element takes a byte, so a count is no more than what is left.
        if count > self.num_left() as u64 {
            return Err(Fault::Short);
        }
        Ok((Kind(head & 15), count))
    }

    fn skip(&mut self, kind: Kind) -> Read<()> {
        match kind.0 {
            1 | 2 => Ok(()),
            3 => self.byte().map(|_| ()),
            4..=6 => self.varint().map(|_| ()),
            7 => self.take(8).map(|_| ()),
            8 => self.bytes().map(|_| ()),
            9 | 10 => {
                let (kind, count) = self.list_head()?;
                self.deeper(|reader| (0..count).try_for_each(|_| reader.skip_element(kind)))
            }
            11 => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                self.deeper(|reader| {
                    (0..count).try_for_each(|_| {
                        reader.skip_element(Kind(kinds >> 4))?;
                        reader.skip_element(Kind(kinds & 15))
                    })
                })
            }
            12 => self.fields(|_, _, _| Ok(false)),
            _ => Err(Fault::Wrong("a field is of an unknown type")),
        }
    }

    /// Passes over an element; unlike a field, a boolean takes a byte.
    fn skip_element(&mut self, kind: Kind) -> Read<()> {
        if matches!(kind, Kind::TRUE | Kind::FALSE) { self.byte().map(|_| ()) } else { self.skip(kind) }
    }
}

/// A structure that is put together, field by field, in ascending order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
    /// The last field of the structure that is open, and of those around it.
    last: Vec<i64>,
}

impl Writer {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn zigzag(&mut self, value: i64) {
        self.varint((value << 1 ^ value >> 63) as u64);
    }

    fn field(&mut self, id: i64, kind: Kind) {
        let last = self.last.last_mut().map_or(0, |last| std::mem::replace(last, id));
        let step = id - last;
        if (1..16).contains(&step) {
            self.bytes.push((step as u8) << 4 | kind.0);
        } else {
            self.bytes.push(kind.0);
            self.zigzag(id);
        }
    }

    /// Opens a structure: the whole, or an element of a list.
    pub(super) fn open(&mut self) {
        self.last.push(0);
    }

    /// Closes what was opened.
    pub(super) fn close(&mut self) {
        self.last.pop();
        self.bytes.push(0);
    }

    pub(super) fn open_field(&mut self, id: i64) {
        self.field(id, Kind::STRUCT);
        self.open();
    }

    /// A structure without fields.
    pub(super) fn mark(&mut self, id: i64) {
        self.open_field(id);
        self.close();
    }

    pub(super) fn i32(&mut self, id: i64, value: i32) {
        self.field(id, Kind::I32);
        self.zigzag(value.into());
    }

    pub(super) fn i64(&mut self, id: i64, value: i64) {
        self.field(id, Kind::I64);
        self.zigzag(value);
    }

    pub(super) fn i8(&mut self, id: i64, value: u8) {
        self.field(id, Kind(3));
        self.bytes.push(value);
    }

    pub(super) fn boolean(&mut self, id: i64, value: bool) {
        self.field(id, if value { Kind::TRUE } else { Kind::FALSE });
    }

    pub(super) fn text(&mut self, id: i64, text: &str) {
        self.field(id, Kind::BINARY);
        self.element_text(text);
    }

    pub(super) fn list(&mut self, id: i64, kind: Kind, count: usize) {
        self.field(id, Kind::LIST);
        match u8::try_from(count) {
            Ok(count @ ..15) => self.bytes.push(count << 4 | kind.0),
            _ => {
                self.bytes.push(15 << 4 | kind.0);
                self.varint(count as u64);
            }
        }
    }

    pub(super) fn element_i32(&mut self, value: i32) {
        self.zigzag(value.into());
    }

    pub(super) fn element_text(&mut self, text: &str) {
        self.varint(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut writer = Writer::default();
        writer.open();
        writer.i32(1, -7);
        writer.boolean(2, true);
        writer.text(40, "name");
        writer.list(41, Kind::I32, 20);
        (0..20).for_each(|i| writer.element_i32(i));
        writer.open_field(42);
        writer.i64(3, i64::MIN);
        writer.close();
        writer.close();
        let mut found = (0, false, "", Vec::new(), 0);
        let mut reader = Reader::new(&writer.bytes);
        reader
            .fields(|reader, id, kind| {
                match id {
                    1 => found.0 = reader.i32()?,
                    2 => found.1 = kind == Kind::TRUE,
                    40 => found.2 = reader.text()?,
                    41 => reader.list(Kind::I32, |reader| reader.i32().map(|value| found.3.push(value)))?,
                    _ => {
                        return reader
                            .fields(|reader, _, _| reader.i64().map(|value| found.4 = value).map(|()| true))
                            .map(|()| true);
                    }
                }
                Ok(true)
            })
            .unwrap();
        assert_eq!(found, (-7, true, "name", (0..20).collect(), i64::MIN));
        assert_eq!(reader.num_left(), 0);
        let mut skipping = Reader::new(&writer.bytes);
        skipping.fields(|_, _, _| Ok(false)).unwrap();
        assert_eq!(skipping.num_left(), 0);
        for len in 0..writer.bytes.len() {
            assert_eq!(Reader::new(&writer.bytes[..len]).fields(|_, _, _| Ok(false)), Err(Fault::Short), "{len}");
        }
    }

    #[test]
    fn hostile_structures_end() {
        let deep = [0x1c; 10_000];
        assert_eq!(Reader::new(&deep).fields(|_, _, _| Ok(false)), Err(Fault::Wrong("structures are nested too deep")));
        // A map that claims 2^63 pairs of booleans.
        let map = [0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x11, 1, 1, 1];
        assert_eq!(Reader::new(&map).fields(|_, _, _| Ok(false)), Err(Fault::Short));
        let number = [0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert!(matches!(Reader::new(&number).fields(|_, _, _| Ok(false)), Err(Fault::Wrong(_))));
    }
}
