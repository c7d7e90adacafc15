//! Small files under one checksum: magic, format version, checksum, body. The checksum covers all other bytes.

use std::path::Path;

use anden_base::checksum::{crc32c, crc32c_append};

use crate::encoding::{Decoder, Encoder};
use crate::file::FORMAT_VERSION;
use crate::{Error, Result};

/// Magic and version.
pub(crate) const CHECKED_HEAD_BYTES: usize = 8;

/// Magic, version, checksum.
pub(crate) const HEAD_BYTES: usize = 12;

/// The bytes of a file with this body.
pub(crate) fn seal(magic: [u8; 4], body: &Encoder) -> Vec<u8> {
    let mut bytes = Encoder::default();
    bytes.bytes(&magic);
    bytes.u32(FORMAT_VERSION);
    bytes.u32(crc32c_append(crc32c(&bytes.0), &body.0));
    bytes.bytes(&body.0);
    bytes.0
}

/// The body of the file at `path`, which errors call `name`.
///
/// # Errors
/// The file is of another kind or version, or damaged.
pub(crate) fn unseal<'a>(bytes: &'a [u8], magic: [u8; 4], name: &str, path: &Path) -> Result<Decoder<'a>> {
    let mut decoder = Decoder::new(bytes);
    let (found, version, crc) = (decoder.array(), decoder.u32(), decoder.u32());
    let (Some(version), Some(crc)) = (version.filter(|_| found == Some(magic)), crc) else {
        return Err(corrupt(path, 0, format!("the file does not start as a {name} does")));
    };
    if crc32c_append(crc32c(&bytes[..CHECKED_HEAD_BYTES]), &bytes[HEAD_BYTES..]) != crc {
        return Err(corrupt(path, CHECKED_HEAD_BYTES, format!("the checksum of the {name} does not fit")));
    }
    // After the checksum, so that a damaged version is reported as damage.
    if version != FORMAT_VERSION {
        return Err(Error::OtherVersion { path: path.to_owned(), found: version, supported: FORMAT_VERSION });
    }
    Ok(decoder)
}

fn corrupt(path: &Path, offset: usize, what: String) -> Error {
    anden_base::Error::corrupt(path, offset as u64, what).into()
}
