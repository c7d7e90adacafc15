//! XML as events, with limits of memory and depth.

use std::io::{self, BufRead, BufReader, Read};

use anden_base::message::shown;
use anden_base::size::size;
use memchr::memmem;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::batch::DocumentFault;
use super::encoding::{EncodingFault, Utf8Reader};
use super::{MAX_DEPTH, MAX_ELEMENT_BYTES};

type Result<T> = std::result::Result<T, DocumentFault>;

/// Reads the events of a document.
pub(crate) struct XmlReader {
    xml: Reader<LimitedXmlReader>,
    /// An event that is returned again, with its line.
    pending: Option<(u64, Event<'static>)>,
    /// The line on which the last event began.
    line: u64,
}

impl XmlReader {
    pub(crate) fn new(reader: Box<dyn Read + Send>) -> Self {
        let reader = BufReader::with_capacity(256 << 10, Utf8Reader::new(reader));
        let xml = Reader::from_reader(LimitedXmlReader { reader, num_lines: 0, num_bytes: 0 });
        Self { xml, pending: None, line: 0 }
    }

    /// The line on which the last event began, from 0.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The number of lines that are read.
    pub(crate) fn num_lines(&self) -> u64 {
        self.xml.get_ref().num_lines
    }

    /// Lets the next call of [`event`](Self::event) return the last event again.
    pub(crate) fn put_back(&mut self, event: Event<'static>) {
        self.pending = Some((self.line, event));
    }

    /// Appends the text of the open element. Skips elements in it, unless `is_text` forbids them; returns whether there
    /// are any.
    pub(crate) fn datum(&mut self, text: &mut Vec<u8>, is_text: bool) -> Result<bool> {
        let mut buffer = Vec::new();
        let (start, mut has_elements) = (text.len(), false);
        loop {
            match self.event(&mut buffer)? {
                Event::Text(part) => text.extend_from_slice(part.as_bytes()),
                Event::CData(part) => text.extend_from_slice(part.as_bytes()),
                Event::GeneralRef(name) => {
                    let mut utf8 = [0; 4];
                    let character = character_of(&name).map_err(|what| self.wrong(what))?;
                    text.extend_from_slice(character.encode_utf8(&mut utf8).as_bytes());
                }
                Event::Start(_) if !is_text => {
                    self.pass()?;
                    has_elements = true;
                }
                Event::Empty(_) if !is_text => has_elements = true,
                Event::Start(tag) | Event::Empty(tag) => {
                    let what = format!(
                        "expected text as data, found an element {}",
                        shown(tag.name().into_inner().as_bytes())
                    );
                    return Err(self.wrong(what));
                }
                Event::End(_) => return Ok(has_elements),
                Event::Eof => return Err(self.cut()),
                _ => {}
            }
            // Each event is limited by itself, but a datum may consist of many.
            if text.len() - start > MAX_ELEMENT_BYTES {
                return Err(self.wrong(format!("data are longer than {}", size(MAX_ELEMENT_BYTES as u64))));
            }
        }
    }

    /// Skips the open element.
    pub(crate) fn pass(&mut self) -> Result<()> {
        let mut buffer = Vec::new();
        let mut depth = 1;
        while depth > 0 {
            match self.event(&mut buffer)? {
                Event::Start(_) if depth == MAX_DEPTH => return Err(self.wrong("elements are nested too deep".into())),
                Event::Start(_) => depth += 1,
                Event::End(_) => depth -= 1,
                Event::Eof => return Err(self.cut()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads the next XML event into `buffer`.
    pub(crate) fn event<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Result<Event<'b>> {
        if let Some((line, event)) = self.pending.take() {
            self.line = line;
            return Ok(event);
        }
        buffer.clear();
        // The limit applies to each event.
        self.xml.get_mut().num_bytes = 0;
        self.line = self.xml.get_ref().num_lines;
        match self.xml.read_event_into(buffer) {
            // A document type may declare entities, and those could expand without limit.
            Ok(Event::DocType(text)) if text.contains("<!ENTITY") => {
                Err(self.wrong("a document type (DTD) that declares entities is not read: take it out".into()))
            }
            Ok(event) => Ok(event),
            // The limit of `LimitedXmlReader` arrives as an I/O error.
            Err(quick_xml::Error::Io(_)) if self.xml.get_ref().num_bytes > MAX_ELEMENT_BYTES => {
                Err(self.wrong(format!("an element is longer than {}", size(MAX_ELEMENT_BYTES as u64))))
            }
            Err(quick_xml::Error::Io(error)) if error.get_ref().is_some_and(|fault| fault.is::<EncodingFault>()) => {
                Err(self.wrong(error.to_string()))
            }
            // The library shares its error, so kind and text are copied.
            Err(quick_xml::Error::Io(error)) => {
                Err(DocumentFault::Read(io::Error::new(error.kind(), error.to_string())))
            }
            Err(error) => Err(self.wrong(format!("the XML is not well formed: {error}"))),
        }
    }

    /// A fault on the line of the last event.
    pub(crate) fn wrong(&self, what: String) -> DocumentFault {
        DocumentFault::Line(self.line, what)
    }

    /// The fault of a document that ends early.
    pub(crate) fn cut(&self) -> DocumentFault {
        self.wrong("the document ends within an element: it is cut".into())
    }

    /// The text of an attribute of the last event.
    ///
    /// # Errors
    /// As [`attribute`].
    pub(crate) fn attribute(&self, tag: &BytesStart<'_>, name: &str) -> Result<Option<String>> {
        attribute(tag, name).map_err(|what| self.wrong(what))
    }

    /// The text of a mandatory attribute.
    ///
    /// # Errors
    /// As [`attribute`]; or the attribute is missing.
    pub(crate) fn required(&self, tag: &BytesStart<'_>, name: &str) -> Result<String> {
        self.attribute(tag, name)?.ok_or_else(|| {
            let element = tag.local_name();
            self.wrong(format!("expected an attribute '{name}' of the {}, found none", element.into_inner()))
        })
    }
}

/// The text of an attribute.
///
/// # Errors
/// The attributes are not well formed, this one occurs twice, or it has an entity.
pub(crate) fn attribute(tag: &BytesStart<'_>, name: &str) -> std::result::Result<Option<String>, String> {
    let mut found = None;
    // The library's check compares every pair of names. Only this attribute matters here.
    for attribute in tag.attributes().with_checks(false) {
        let attribute = attribute.map_err(|error| format!("the XML is not well formed: {error}"))?;
        if attribute.key.into_inner() != name {
            continue;
        }
        if found.is_some() {
            return Err(format!("the attribute '{name}' is there twice"));
        }
        found = Some(unescaped(&attribute.value)?);
    }
    Ok(found)
}

/// Normalizes the value of an attribute: any blank becomes a space, and references are resolved.
fn unescaped(value: &str) -> std::result::Result<String, String> {
    let mut text = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find(['&', '\t', '\r', '\n']) {
        let (before, after) = rest.split_at(at);
        text.push_str(before);
        if !after.starts_with('&') {
            text.push(' ');
            rest = &after[1..];
            continue;
        }
        let Some((name, after)) = after[1..].split_once(';') else {
            return Err(format!("expected ';' after '&', found {}", shown(after.as_bytes())));
        };
        text.push(character_of(name)?);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

/// Resolves a reference: one of XML's own five, or a number.
pub(crate) fn character_of(name: &str) -> std::result::Result<char, String> {
    // `from_str_radix` accepts a plus sign, which XML does not allow.
    let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
    let character = match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => match (name.strip_prefix("#x"), name.strip_prefix('#')) {
            (Some(digits), _) if !digits.starts_with('+') => number(digits, 16),
            (None, Some(digits)) if !digits.starts_with('+') => number(digits, 10),
            _ => return Err(format!("the entity {} is not read: only XML's own are", shown(name.as_bytes()))),
        },
    };
    character.ok_or_else(|| format!("the reference {} is no character", shown(name.as_bytes())))
}

/// The name of the root element of an XML document, without its prefix.
pub(crate) fn xml_root(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = bytes.trim_ascii_start();
    loop {
        let end = match rest {
            [b'<', b'?', ..] => memmem::find(rest, b"?>")? + 2,
            [b'<', b'!', b'-', b'-', ..] => memmem::find(rest, b"-->")? + 3,
            // A document type may have declarations in brackets.
            [b'<', b'!', ..] => match (memmem::find(rest, b">")?, memmem::find(rest, b"[")) {
                (end, Some(bracket)) if bracket < end => {
                    memmem::find(rest, b"]")? + memmem::find(&rest[memmem::find(rest, b"]")?..], b">")? + 1
                }
                (end, _) => end + 1,
            },
            [b'<', name @ ..] => {
                let len = name.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b":_-.".contains(byte))?;
                // A name without a closing bracket is not an element.
                memmem::find(name, b">")?;
                return name[..len].rsplit(|&byte| byte == b':').next();
            }
            _ => return None,
        };
        rest = rest[end..].trim_ascii_start();
    }
}

/// Counts lines, and limits the bytes that one event reads.
struct LimitedXmlReader {
    reader: BufReader<Utf8Reader>,
    num_lines: u64,
    num_bytes: usize,
}

impl Read for LimitedXmlReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let num_bytes = available.len().min(into.len());
        into[..num_bytes].copy_from_slice(&available[..num_bytes]);
        self.consume(num_bytes);
        Ok(num_bytes)
    }
}

impl BufRead for LimitedXmlReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        // The parser keeps a whole event in memory, so an event must not grow without limit.
        if self.num_bytes > MAX_ELEMENT_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an element is too long"));
        }
        self.reader.fill_buf()
    }

    fn consume(&mut self, num_bytes: usize) {
        let used = &self.reader.buffer()[..num_bytes];
        self.num_lines += memchr::memchr_iter(b'\n', used).count() as u64;
        self.num_bytes += num_bytes;
        self.reader.consume(num_bytes);
    }
}
