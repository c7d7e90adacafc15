//! Text in the encoding that an XML declaration names, as UTF-8.

use std::io::{self, Read};

use anden_base::message::shown;
use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8};

/// Bytes in which an XML declaration ends.
const DECLARATION_BYTES: usize = 1 << 10;
/// Bytes per read.
const READ_BYTES: usize = 64 << 10;
/// A decoder makes no progress in less room.
const ROOM_BYTES: usize = 4;

/// An encoding that is not known, or text that contradicts its encoding.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct EncodingFault(pub(crate) String);

impl From<EncodingFault> for io::Error {
    fn from(fault: EncodingFault) -> Self {
        Self::new(io::ErrorKind::InvalidData, fault)
    }
}

/// Decodes a document. Text without a declaration, or with another encoding than its own, stays as it is.
pub(crate) struct Utf8Reader {
    reader: Box<dyn Read + Send>,
    /// Bytes that are read and not decoded yet; the whole text of a document in UTF-8 passes by them.
    bytes: Vec<u8>,
    start: usize,
    decoder: DecoderState,
    /// Text for which a read had no room.
    text: Vec<u8>,
    has_ended: bool,
}

enum DecoderState {
    /// The declaration is not read yet.
    Unknown,
    /// The text is UTF-8 already.
    Utf8,
    Other(Box<Decoder>),
}

impl Utf8Reader {
    pub(crate) fn new(reader: Box<dyn Read + Send>) -> Self {
        Self { reader, bytes: Vec::new(), start: 0, decoder: DecoderState::Unknown, text: Vec::new(), has_ended: false }
    }

    /// Reads up to `num_bytes` more, behind those that are left.
    fn fill(&mut self, num_bytes: usize) -> io::Result<()> {
        self.bytes.drain(..self.start);
        self.start = 0;
        let missing = num_bytes.saturating_sub(self.bytes.len());
        let num_read = (&mut self.reader).take(missing as u64).read_to_end(&mut self.bytes)?;
        self.has_ended |= num_read < missing;
        Ok(())
    }

    fn begin(&mut self) -> io::Result<()> {
        self.fill(DECLARATION_BYTES)?;
        self.decoder = match declared(&self.bytes) {
            None => DecoderState::Utf8,
            Some(label) => match Encoding::for_label(label) {
                Some(encoding) if encoding == UTF_8 => DecoderState::Utf8,
                // A declaration in letters of one byte contradicts encodings of two bytes.
                Some(encoding) if encoding.is_ascii_compatible() => {
                    DecoderState::Other(Box::new(encoding.new_decoder_without_bom_handling()))
                }
                _ => {
                    let what = format!("expected a known encoding such as UTF-8, found {}", shown(label));
                    return Err(EncodingFault(what).into());
                }
            },
        };
        Ok(())
    }
}

/// The encoding that a declaration at the beginning names.
fn declared(bytes: &[u8]) -> Option<&[u8]> {
    let declaration = bytes.strip_prefix(b"<?xml")?;
    let end = memchr::memchr(b'>', declaration)?;
    let declaration = &declaration[..end];
    let at = memchr::memmem::find(declaration, b"encoding")?;
    let value = declaration[at + b"encoding".len()..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (&quote, value) = value.split_first()?;
    let len = memchr::memchr(quote, value).filter(|_| matches!(quote, b'"' | b'\''))?;
    Some(&value[..len])
}

impl Read for Utf8Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        if matches!(self.decoder, DecoderState::Unknown) {
            self.begin()?;
        }
        loop {
            if !self.text.is_empty() {
                let num_bytes = into.len().min(self.text.len());
                into[..num_bytes].copy_from_slice(&self.text[..num_bytes]);
                self.text.drain(..num_bytes);
                return Ok(num_bytes);
            }
            let is_empty = self.start == self.bytes.len();
            match &mut self.decoder {
                DecoderState::Other(decoder) => {
                    let rest = &self.bytes[self.start..];
                    let mut room = [0; ROOM_BYTES];
                    let has_room = into.len() >= ROOM_BYTES;
                    let output = if has_room { &mut *into } else { &mut room };
                    let (result, num_read, num_written) =
                        decoder.decode_to_utf8_without_replacement(rest, output, self.has_ended);
                    if !has_room {
                        self.text.extend_from_slice(&room[..num_written]);
                    }
                    self.start += num_read;
                    if let DecoderResult::Malformed(..) = result {
                        let what = format!("the text is not in the declared encoding, {}", decoder.encoding().name());
                        return Err(EncodingFault(what).into());
                    }
                    let is_done = self.has_ended && matches!(result, DecoderResult::InputEmpty);
                    if is_done {
                        // A decoder must not be called after its end.
                        self.decoder = DecoderState::Utf8;
                    }
                    match num_written {
                        0 if is_done => return Ok(0),
                        0 => self.fill(READ_BYTES)?,
                        _ if has_room => return Ok(num_written),
                        _ => {}
                    }
                }
                _ if is_empty => return self.reader.read(into),
                _ => {
                    let num_bytes = into.len().min(self.bytes.len() - self.start);
                    into[..num_bytes].copy_from_slice(&self.bytes[self.start..][..num_bytes]);
                    self.start += num_bytes;
                    return Ok(num_bytes);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<String, String> {
        let mut text = String::new();
        let read = Utf8Reader::new(Box::new(io::Cursor::new(bytes.to_vec()))).read_to_string(&mut text);
        read.map(|_| text).map_err(|error| error.to_string())
    }

    #[test]
    fn text_has_the_declared_encoding() {
        let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><a b='\xe9\xfc'/>";
        assert!(read(latin).unwrap().ends_with("<a b='éü'/>"));
        let long = [&latin[..], &b"\xe9".repeat(300_000)[..]].concat();
        assert_eq!(read(&long).unwrap().matches('é').count(), 300_001);
        let japanese = b"<?xml version=\"1.0\" encoding = \"Shift_JIS\" ?>\x83\x65";
        assert!(read(japanese).unwrap().ends_with("?>テ"));
        for text in ["<?xml encoding='utf-8'?>é", "<?xml version='1.0'?>é", "é", "", "<?xml encoding='"] {
            assert_eq!(read(text.as_bytes()).unwrap(), text);
        }
    }

    #[test]
    fn unknown_encodings_are_refused() {
        for label in ["EBCDIC-X", "UTF-16", ""] {
            let message = read(format!("<?xml encoding='{label}'?>").as_bytes()).unwrap_err();
            assert_eq!(message, format!("expected a known encoding such as UTF-8, found '{label}'"));
        }
        let message = read(b"<?xml encoding='Shift_JIS'?>\x83").unwrap_err();
        assert_eq!(message, "the text is not in the declared encoding, Shift_JIS");
    }
}
