//! Gzip files of several members, with zeros behind the last one.
//!
//! Tapes and block devices pad files with zeros, which `gzip` passes over too.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// The decompressed members of a file, one after the other.
pub(crate) enum GzipMembers<R> {
    Member(Box<GzDecoder<R>>),
    /// Between two members, or behind the last one. Whether zeros were met.
    Between(R, bool),
    /// Only while one state replaces another.
    Taken,
}

impl<R: BufRead> GzipMembers<R> {
    pub(crate) fn new(bytes: R) -> Self {
        Self::Member(Box::new(GzDecoder::new(bytes)))
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
                    if let Self::Member(decoder) = std::mem::replace(self, Self::Taken) {
                        *self = Self::Between(decoder.into_inner(), false);
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
