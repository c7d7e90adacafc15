//! Compressed inputs, read through.
//!
//! What a file is compressed with is told by its first bytes; the name only has to agree. Files of
//! several members, as parallel compressors and `cat` make them, are read as one. The memory of a
//! decoder is bounded whatever the file claims: zstd's window by its library's limit of 128 MB, xz
//! by [`XZ_MEMORY`].

use std::io::{self, BufReader, Read};
use std::path::Path;

use base::standard_input::StandardInput;

use crate::{Error, Result};

/// The most memory that an xz decoder may take, in bytes: enough for its highest preset.
const XZ_MEMORY: u64 = 256 << 20;
/// Compressed bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// How an input is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
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
    /// What the first bytes of a file say; ten bytes are enough.
    pub(super) fn of_content(head: &[u8]) -> Option<Self> {
        let bzip2_block = |rest: &[u8]| rest.starts_with(b"1AY&SY") || rest.starts_with(b"\x17\x72\x45\x38\x50\x90");
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..] if bzip2_block(rest) => Some(Self::Bzip2),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            _ => None,
        }
    }

    /// What the name says, and the name without that suffix.
    pub(super) fn of_name(path: &Path) -> (Option<Self>, &Path) {
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

/// The text behind an input that starts with `head`.
///
/// # Errors
/// The name promises a compression that the content is not of, or the decoder cannot start.
pub(super) fn decoded(path: &Path, head: &[u8], bytes: impl Read + Send + 'static) -> Result<Box<dyn Read + Send>> {
    let found = Compression::of_content(head);
    if let (Some(promised), _) = Compression::of_name(path)
        && found != Some(promised)
    {
        let found = if head.is_empty() { "an empty file" } else { "other content" };
        let what = format!("expected {} data, as the name says, found {found}", promised.name());
        return Err(Error::Input { path: path.to_owned(), what });
    }
    let Some(compression) = found else { return Ok(Box::new(bytes)) };
    let bytes = BufReader::with_capacity(READ_BYTES, bytes);
    let decoder = || -> io::Result<Box<dyn Read + Send>> {
        Ok(match compression {
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(bytes)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(bytes)?),
            Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(bytes)),
            Compression::Xz => {
                let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, liblzma::stream::CONCATENATED)?;
                Box::new(liblzma::bufread::XzDecoder::new_stream(bytes, stream))
            }
        })
    };
    let decoder = decoder().map_err(|e| base::Error::io("decompress", path, e))?;
    Ok(Box::new(Named { decoder, compression }))
}

/// Says in errors which decoder failed: they only tell of the data.
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
                _ if StandardInput::was_stopped(&e) || StandardInput::has_timed_out(&e) => e,
                io::ErrorKind::UnexpectedEof => {
                    let what = format!("the {name} data is cut short, or followed by what is none");
                    io::Error::new(e.kind(), what)
                }
                kind => {
                    let what = format!("the {name} data is damaged, cut short or followed by what is none: {e}");
                    io::Error::new(kind, what)
                }
            }
        })
    }
}
