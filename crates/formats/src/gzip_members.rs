//! Gzip files of several members, with zeros behind the last one.
//!
//! Tapes and block devices pad files with zeros, which `gzip` passes over too.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// The decompressed members of a file, one after the other.
pub(crate) enum GzipMembers<R> {
    Member(Box<GzDecoder<LateReader<R>>>),
    /// Between two members, or behind the last one. Whether zeros were met.
    Between(R, bool),
    /// Only while one state replaces another.
    Taken,
}

impl<R: BufRead> GzipMembers<R> {
    pub(crate) fn new(bytes: R) -> Self {
        let mut decoder = Box::new(GzDecoder::new(LateReader(None)));
        decoder.get_mut().0 = Some(bytes);
        Self::Member(decoder)
    }
}

/// A reader that its decoder gets after its creation. A creation that reads a part of a header and stalls cannot go on;
/// a later read can.
pub(crate) struct LateReader<R>(Option<R>);

impl<R: Read> Read for LateReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Some(bytes) => bytes.read(into),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl<R: BufRead> BufRead for LateReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match &mut self.0 {
            Some(bytes) => bytes.fill_buf(),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn consume(&mut self, num_bytes: usize) {
        if let Some(bytes) = &mut self.0 {
            bytes.consume(num_bytes);
        }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self {
                Self::Member(decoder) => {
                    let num_bytes = decoder.read(into)?;
                    if num_bytes > 0 || into.is_empty() {
                        return Ok(num_bytes);
                    }
                    if let Self::Member(decoder) = std::mem::replace(self, Self::Taken)
                        && let Some(bytes) = decoder.into_inner().0
                    {
                        *self = Self::Between(bytes, false);
                    }
                }
                Self::Between(bytes, has_zeros) => {
                    let buffer = bytes.fill_buf()?;
                    let num_zeros = buffer.iter().take_while(|&&byte| byte == 0).count();
                    let is_end = buffer.is_empty();
                    let is_padding = num_zeros == buffer.len();
                    bytes.consume(num_zeros);
                    *has_zeros |= num_zeros > 0;
                    if is_end {
                        return Ok(0);
                    }
                    if is_padding {
                        continue;
                    }
                    // Zeros pad the file as a whole, so a member behind them is no part of it.
                    if *has_zeros {
                        return Err(io::Error::new(io::ErrorKind::InvalidData, "zeros are followed by other bytes"));
                    }
                    if let Self::Between(bytes, _) = std::mem::replace(self, Self::Taken) {
                        *self = Self::new(bytes);
                    }
                }
                Self::Taken => return Ok(0),
            }
        }
    }
}
