//! Compressed inputs, decompressed while they are read.
//!
//! The first bytes of a file determine its compression, and the name must agree. Files of several members, as parallel
//! compressors and `cat` write them, are read as one. Decoder memory is bounded for hostile files too: zstd's window by
//! [`zstd_window_log`], xz by [`XZ_MEMORY`].

use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use anden_base::size::size;
use anden_base::standard_input::StandardInput;

use crate::gzip_members::GzipMembers;
use crate::{Error, Result};

/// The memory limit of an xz decoder in bytes: enough for the highest preset.
const XZ_MEMORY: u64 = 256 << 20;
/// The first bytes of an input, enough to detect compression and format.
pub(crate) const HEAD_BYTES: usize = 64 << 10;
/// Compressed bytes per read.
const READ_BYTES: usize = 256 << 10;

/// The compression of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
    Bzip2,
    Xz,
}

const SUFFIXES: [(&str, Compression); 5] = [
    ("gz", Compression::Gzip),
    ("zst", Compression::Zstd),
    ("bz2", Compression::Bzip2),
    ("xz", Compression::Xz),
    ("zstd", Compression::Zstd),
];

impl Compression {
    /// Detects the compression from the first bytes of a file; ten bytes are enough.
    pub(crate) fn of_content(head: &[u8]) -> Option<Self> {
        // A text may begin with `BZh` and a digit, so the magic number of a block or of the end must follow.
        let bzip2_block = |rest: &[u8]| rest.starts_with(b"1AY&SY") || rest.starts_with(b"\x17\x72\x45\x38\x50\x90");
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..] if bzip2_block(rest) => Some(Self::Bzip2),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            _ => None,
        }
    }

    /// The compression that the name states, and the name without that suffix.
    pub(crate) fn of_name(path: &Path) -> (Option<Self>, &Path) {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        let found = SUFFIXES.iter().find(|(suffix, _)| extension.eq_ignore_ascii_case(suffix));
        match (found, path.file_stem()) {
            (Some(&(_, compression)), Some(stem)) => (Some(compression), Path::new(stem)),
            _ => (None, path),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
        }
    }
}

/// Opens the decompressed text of an input that starts with `head`.
///
/// # Errors
/// The content lacks the compression that the name promises, or the decoder cannot start.
pub(crate) fn decoded(path: &Path, head: &[u8], bytes: impl Read + Send + 'static) -> Result<Box<dyn Read + Send>> {
    let found = Compression::of_content(head);
    if let (Some(promised), _) = Compression::of_name(path)
        // A damaged start would otherwise be read as text, with misleading faults.
        && found != Some(promised)
    {
        let found = if head.is_empty() { "an empty file" } else { "other content" };
        let what = format!("expected {} data, as the name says, found {found}", promised.name());
        return Err(Error::Input { path: path.to_owned(), what });
    }
    // The content decides, so a compressed file needs no suffix.
    let Some(compression) = found else { return Ok(Box::new(bytes)) };
    let bytes = BufReader::with_capacity(READ_BYTES, bytes);
    let decoder = || -> io::Result<Box<dyn Read + Send>> {
        Ok(match compression {
            // Decoders for several members, because joined files are valid and must be read to their end.
            Compression::Gzip => Box::new(GzipMembers::new(bytes)),
            Compression::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes)?;
                decoder.window_log_max(zstd_window_log(anden_base::memory::available()))?;
                Box::new(decoder)
            }
            Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(bytes)),
            Compression::Xz => {
                let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, liblzma::stream::CONCATENATED)?;
                Box::new(liblzma::bufread::XzDecoder::new_stream(bytes, stream))
            }
        })
    };
    let decoder = decoder().map_err(|e| anden_base::Error::io("decompress", path, e))?;
    Ok(Box::new(Named { decoder, compression }))
}

/// The largest window of a zstd decoder, as a power of two: the format's largest that takes at most a quarter of the
/// available memory, and at least the 128 MB that every decoder accepts.
fn zstd_window_log(available: u64) -> u32 {
    (available / 4).max(1).ilog2().clamp(27, 31)
}

/// The beginning of the decompressed text of an input.
///
/// # Errors
/// The content lacks the compression that the name promises.
pub(crate) fn text_of(path: &Path, head: &[u8]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    // The head ends within the compressed data, so an error at its end is normal.
    let _ = decoded(path, head, Cursor::new(head.to_vec()))?.take(64 << 10).read_to_end(&mut text);
    if text.starts_with(b"\xef\xbb\xbf") {
        text.drain(..3);
    }
    Ok(text)
}

/// Reads the first `num_bytes` of an input, or fewer if it is shorter.
///
/// # Errors
/// The input cannot be read.
pub(crate) fn read_head(path: &Path, reader: &mut impl Read, num_bytes: usize) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    let read = reader.take(num_bytes as u64).read_to_end(&mut head);
    read.map_err(|e| anden_base::Error::io("read", path, e))?;
    Ok(head)
}

/// Adds the name of the decoder to errors, which describe only the data.
struct Named {
    decoder: Box<dyn Read + Send>,
    compression: Compression,
}

impl Read for Named {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.decoder.read(into).map_err(|e| {
            let name = self.compression.name();
            match e.kind() {
                io::ErrorKind::Interrupted => e,
                // These errors do not concern the data.
                _ if StandardInput::was_stopped(&e) || StandardInput::has_timed_out(&e) => e,
                io::ErrorKind::UnexpectedEof => {
                    let what = format!("the {name} data is cut short, or followed by what is none");
                    io::Error::new(e.kind(), what)
                }
                // The library gives its errors as text only.
                kind if self.compression == Compression::Zstd && e.to_string().contains("too much memory") => {
                    let window = size(1 << zstd_window_log(anden_base::memory::available()));
                    let what = format!(
                        "the zstd data needs a window of more than {window}, a quarter of the available memory; \
                         compress it again with --long=27 or less"
                    );
                    io::Error::new(kind, what)
                }
                kind => {
                    let what = format!("the {name} data is damaged, cut short or followed by what is none: {e}");
                    io::Error::new(kind, what)
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_take_a_quarter_of_the_memory() {
        let logs = [0, 1 << 29, 1 << 30, (1 << 32) - 1, 1 << 32, 1 << 33, 1 << 50].map(zstd_window_log);
        assert_eq!(logs, [27, 27, 28, 29, 30, 31, 31]);
    }
}
