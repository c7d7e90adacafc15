//! Little-endian numbers and byte strings; decoding checks every length.

/// Appends numbers and byte strings.
#[derive(Debug, Default)]
pub(crate) struct Encoder(pub Vec<u8>);

impl Encoder {
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn bytes(&mut self, value: &[u8]) {
        self.0.extend_from_slice(value);
    }

    /// A string after its length. The format's strings are short: names of files and snapshots.
    pub fn string(&mut self, value: &str) {
        self.u32(value.len() as u32);
        self.bytes(value.as_bytes());
    }

    /// Appends zeros up to `len` bytes.
    pub fn pad_to(&mut self, len: usize) {
        debug_assert!(self.0.len() <= len);
        self.0.resize(len, 0);
    }
}

/// Decodes the output of an [`Encoder`]. `None` means that the bytes end too early, or are not valid.
#[derive(Clone, Debug)]
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn string(&mut self) -> Option<String> {
        let len = usize::try_from(self.u32()?).ok()?;
        String::from_utf8(self.bytes(len)?.to_vec()).ok()
    }

    /// A byte that is 0 or 1.
    pub fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// The bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all bytes were read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Whether all bytes not read yet are zero.
    pub fn zeros(&self) -> bool {
        self.rest.iter().all(|&byte| byte == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_values_decode_exactly() {
        let mut encoder = Encoder::default();
        encoder.u8(1);
        encoder.u32(0x0403_0201);
        encoder.u64(5);
        encoder.string("né");
        encoder.pad_to(24);
        let read = |bytes: &[u8]| {
            let mut decoder = Decoder::new(bytes);
            let values = (decoder.flag()?, decoder.u32()?, decoder.u64()?, decoder.string()?);
            (decoder.zeros() && !decoder.is_empty()).then_some(values)
        };
        assert_eq!(encoder.0[1..5], [1, 2, 3, 4]);
        assert_eq!(read(&encoder.0), Some((true, 0x0403_0201, 5, "né".to_owned())));
        assert!((0..20).all(|len| read(&encoder.0[..len]).is_none()));
        encoder.0[0] = 2;
        assert_eq!(read(&encoder.0), None);
    }
}
