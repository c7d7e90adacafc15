//! Splits XML into nodes, edges and their data.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::path::Path;

use anden_base::message::shown;
use anden_base::size::size;
use anden_graph::GraphKind;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::header::{GraphMlHeader, GraphMlKey};
use crate::outcome::{Fatal, LineFault};

/// The largest size of an element, and of the text between two elements, in bytes.
pub(super) const MAX_ELEMENT_BYTES: usize = 64 << 20;
/// The largest depth of nested elements.
const MAX_DEPTH: usize = 256;

/// An error that ends the read.
#[derive(Debug)]
pub(super) enum XmlFault {
    /// The line, from 0 after the last batch, and the fault.
    Line(u64, String),
    /// Reading failed.
    Read(io::Error),
}

impl XmlFault {
    /// Converts the fault to one of the input `path`.
    pub(super) fn into_fatal(self, path: &Path) -> Fatal {
        match self {
            Self::Line(line, what) => Fatal::Line(LineFault { line, what }),
            Self::Read(error) => Fatal::Whole(anden_base::Error::io("read", path, error).into()),
        }
    }
}

/// A range of the text of a batch.
pub(super) type GraphMlTextRange = Range<usize>;

/// A node or an edge.
#[derive(Debug)]
pub(super) struct GraphMlElement {
    /// The line of its first byte, from 0 in its batch.
    pub(super) line: u64,
    /// The node id, or the source.
    pub(super) first: GraphMlTextRange,
    /// The target of an edge.
    pub(super) second: Option<GraphMlTextRange>,
    /// Whether an undirected edge of a directed graph leads both ways.
    pub(super) is_doubled: bool,
    /// The end of its data in the data of the batch.
    pub(super) data_end: usize,
}

/// Consecutive nodes and edges.
#[derive(Debug, Default)]
pub(super) struct GraphMlBatch {
    /// The text of ids and data, with references resolved.
    pub(super) text: Vec<u8>,
    pub(super) elements: Vec<GraphMlElement>,
    /// The position of each datum's key, and its text.
    pub(super) data: Vec<(usize, GraphMlTextRange)>,
    pub(super) num_lines: u64,
}

impl GraphMlBatch {
    /// The approximate memory in bytes.
    fn num_bytes(&self) -> usize {
        self.text.len()
            + size_of::<GraphMlElement>() * self.elements.len()
            + size_of::<(usize, GraphMlTextRange)>() * self.data.len()
    }
}

/// Reads the elements of a document.
pub(super) struct ElementReader {
    xml: Reader<LimitedXmlReader>,
    /// The keys, once the header is read.
    header: Option<GraphMlHeader>,
    /// The direction that the user states.
    stated: Option<GraphKind>,
    /// The first event behind the header, with its line.
    pending: Option<(u64, Event<'static>)>,
    /// The number of nodes and edges around the present graph.
    depth: usize,
    /// The line on which the last event began.
    line: u64,
    /// The number of lines of earlier batches.
    lines_before: u64,
    is_done: bool,
    /// A fault that is returned after the elements before it.
    fault: Option<XmlFault>,
}

type Result<T> = std::result::Result<T, XmlFault>;

impl ElementReader {
    /// Reads a document. The user may state a direction, which then decides about edges that contradict their graph.
    pub(super) fn new(reader: Box<dyn Read + Send>, stated: Option<GraphKind>) -> Self {
        let reader = BufReader::with_capacity(256 << 10, reader);
        let xml = Reader::from_reader(LimitedXmlReader { reader, num_lines: 0, num_bytes: 0 });
        let (header, pending, fault) = (None, None, None);
        Self { xml, header, stated, pending, depth: 0, line: 0, lines_before: 0, is_done: false, fault }
    }

    /// Returns the header; reads up to the beginning of the graph on the first call.
    pub(super) fn header(&mut self) -> Result<&GraphMlHeader> {
        let header = match self.header.take() {
            Some(header) => header,
            None => self.read_header()?,
        };
        Ok(self.header.insert(header))
    }

    fn read_header(&mut self) -> Result<GraphMlHeader> {
        let mut header = GraphMlHeader::default();
        let mut buffer = Vec::new();
        loop {
            let event = self.event(&mut buffer)?;
            let is_open = matches!(event, Event::Start(_));
            match event {
                Event::Start(tag) | Event::Empty(tag) => match tag.local_name().into_inner() {
                    "graphml" => {}
                    "key" => self.key(&mut header, &tag, is_open)?,
                    "graph" => {
                        // An empty graph element has no nodes and no end tag.
                        self.is_done = !is_open;
                        header.set_direction(&tag).map_err(|what| self.wrong(what))?;
                        if is_open {
                            // A fault behind the declarations is reported when the elements are read.
                            self.fault = self.keys_in_graph(&mut header).err();
                        }
                        return Ok(header);
                    }
                    "node" | "edge" => {
                        return Err(self.wrong("expected a graph around nodes and edges, found none".into()));
                    }
                    _ if is_open => self.pass()?,
                    _ => {}
                },
                // Text before the graph belongs to another format.
                Event::Text(text) if !text.trim_ascii().is_empty() => {
                    return Err(self.wrong(format!("expected a GraphML document, found {}", shown(text.as_bytes()))));
                }
                Event::Eof => return Err(self.wrong("expected a graph, found the end of the document".into())),
                _ => {}
            }
        }
    }

    /// Adds a declared key.
    fn key(&mut self, header: &mut GraphMlHeader, tag: &BytesStart<'_>, is_open: bool) -> Result<()> {
        let mut key = GraphMlKey::of(tag).map_err(|what| self.wrong(what))?;
        if is_open {
            key.default = self.default_of()?;
        }
        header.add(key).map_err(|what| self.wrong(what))
    }

    /// Reads the keys that some tools declare within the graph, before its nodes.
    fn keys_in_graph(&mut self, header: &mut GraphMlHeader) -> Result<()> {
        let mut buffer = Vec::new();
        loop {
            let event = self.event(&mut buffer)?;
            let is_open = matches!(event, Event::Start(_));
            match &event {
                Event::Start(tag) | Event::Empty(tag) => match tag.local_name().into_inner() {
                    "key" => self.key(header, tag, is_open)?,
                    "node" | "edge" | "hyperedge" => {
                        self.pending = Some((self.line, event.into_owned()));
                        return Ok(());
                    }
                    _ if is_open => self.pass()?,
                    _ => {}
                },
                // A look at the beginning of a stream ends anywhere.
                Event::End(_) | Event::Eof => {
                    self.pending = Some((self.line, event.into_owned()));
                    return Ok(());
                }
                _ => {}
            }
        }
    }

    /// The default text of the open key element.
    fn default_of(&mut self) -> Result<Option<Vec<u8>>> {
        let mut buffer = Vec::new();
        let mut default = None;
        loop {
            match self.event(&mut buffer)? {
                Event::Start(tag) if tag.local_name().into_inner() == "default" => {
                    let mut text = Vec::new();
                    self.datum(&mut text, true)?;
                    default = Some(text);
                }
                Event::Empty(tag) if tag.local_name().into_inner() == "default" => default = Some(Vec::new()),
                Event::Start(_) => self.pass()?,
                Event::End(_) => return Ok(default),
                Event::Eof => return Err(self.cut()),
                _ => {}
            }
        }
    }

    /// Returns the next elements, with about `block_bytes` of text; `None` after the last.
    pub(super) fn next(&mut self, block_bytes: usize) -> Result<Option<GraphMlBatch>> {
        self.header()?;
        if let Some(fault) = self.fault.take() {
            self.is_done = true;
            return Err(match fault {
                XmlFault::Line(line, what) => XmlFault::Line(line.saturating_sub(self.lines_before), what),
                fault => fault,
            });
        }
        let mut batch = GraphMlBatch::default();
        while !self.is_done && self.fault.is_none() && batch.num_bytes() < block_bytes {
            if let Err(fault) = self.element(&mut batch) {
                // Drops the data of an incomplete element, which follow those of the last whole element.
                let end = batch.elements.last().map_or(0, |element| element.data_end);
                batch.data.truncate(end);
                self.fault = Some(fault);
            }
        }
        let now = self.xml.get_ref().num_lines;
        // A fault counts its line from the end of this batch, so the batch ends before the faulty event.
        let end = if self.fault.is_some() { self.line.min(now) } else { now };
        batch.num_lines = end - self.lines_before.min(end);
        self.lines_before = end.max(self.lines_before);
        Ok((!batch.elements.is_empty() || self.fault.is_some()).then_some(batch))
    }

    /// Reads up to the end of the next node or edge, or of the graph.
    fn element(&mut self, batch: &mut GraphMlBatch) -> Result<()> {
        let mut buffer = Vec::new();
        loop {
            let event = self.event(&mut buffer)?;
            let line = self.line - self.lines_before;
            let is_open = matches!(event, Event::Start(_));
            let mut is_doubled = false;
            match event {
                Event::Start(tag) | Event::Empty(tag) => {
                    let (first, second) = match tag.local_name().into_inner() {
                        "node" => (self.id(&tag, "id", batch)?, None),
                        "edge" => {
                            is_doubled = self.is_doubled(&tag)?;
                            let (source, target) = (self.id(&tag, "source", batch)?, self.id(&tag, "target", batch)?);
                            (source, Some(target))
                        }
                        "hyperedge" => return Err(self.wrong("hyperedges are not read: an edge has two ends".into())),
                        _ if is_open => {
                            self.pass()?;
                            continue;
                        }
                        _ => continue,
                    };
                    if is_open {
                        self.data(batch, second.is_some())?;
                    }
                    let data_end = batch.data.len();
                    batch.elements.push(GraphMlElement { line, first, second, is_doubled, data_end });
                    return Ok(());
                }
                Event::End(tag) if self.depth > 0 => {
                    // The end of a graph within a node or an edge, or of the element around it.
                    self.depth -= usize::from(tag.local_name().into_inner() != "graph");
                }
                Event::End(_) => return self.end(),
                Event::Eof => return Err(self.cut()),
                _ => {}
            }
        }
    }

    /// Reads the rest of the document after the graph.
    fn end(&mut self) -> Result<()> {
        self.is_done = true;
        let mut buffer = Vec::new();
        // The rest is read as well, because a document that was cut there would pass for a whole one.
        let mut depth = 1;
        loop {
            match self.event(&mut buffer)? {
                Event::Start(tag) | Event::Empty(tag) if tag.local_name().into_inner() == "graph" => {
                    return Err(self.wrong("a document with a second graph is not read: split it".into()));
                }
                Event::Start(_) => self.pass()?,
                Event::End(_) => depth -= 1,
                Event::Eof if depth > 0 => return Err(self.cut()),
                Event::Eof => return Ok(()),
                _ => {}
            }
        }
    }

    /// Reads the data of the open element: an edge if `is_edge`, else a node.
    fn data(&mut self, batch: &mut GraphMlBatch, is_edge: bool) -> Result<()> {
        let mut buffer = Vec::new();
        loop {
            let event = self.event(&mut buffer)?;
            let is_open = matches!(event, Event::Start(_));
            match event {
                Event::Start(tag) | Event::Empty(tag) => match tag.local_name().into_inner() {
                    "data" => {
                        let key = attribute(&tag, "key").map_err(|what| self.wrong(what))?;
                        let Some(key) = key else { return Err(self.wrong("data need an attribute 'key'".into())) };
                        let header = self.header.as_ref();
                        let known = header.and_then(|header| {
                            let number = header.find(&key, is_edge)?;
                            Some((
                                number,
                                header.keys[number].property_type.is_some(),
                                header.keys[number].has_own_type,
                            ))
                        });
                        match known {
                            Some((number, is_kept, is_text)) => {
                                let start = batch.text.len();
                                let has_elements = is_open && self.datum(&mut batch.text, is_text)?;
                                // Drawings and XML are dropped.
                                match is_kept && !has_elements {
                                    true => batch.data.push((number, start..batch.text.len())),
                                    false => batch.text.truncate(start),
                                }
                            }
                            // Gephi, Cytoscape and APOC write data of keys that they do not declare.
                            None if is_open => self.pass()?,
                            None => {}
                        }
                    }
                    // The elements of the graph follow, then the end of this element.
                    "graph" if is_open => {
                        self.depth += 1;
                        return Ok(());
                    }
                    _ if is_open => self.pass()?,
                    _ => {}
                },
                Event::End(_) => return Ok(()),
                Event::Eof => return Err(self.cut()),
                _ => {}
            }
        }
    }

    /// Appends the text of the open element. Skips elements in it, unless `is_text` forbids them; returns whether there
    /// are any.
    fn datum(&mut self, text: &mut Vec<u8>, is_text: bool) -> Result<bool> {
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
    fn pass(&mut self) -> Result<()> {
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

    /// Appends the text of a mandatory attribute.
    fn id(&self, tag: &BytesStart<'_>, name: &str, batch: &mut GraphMlBatch) -> Result<GraphMlTextRange> {
        let text = attribute(tag, name).map_err(|what| self.wrong(what))?;
        let Some(text) = text else {
            let element = tag.local_name();
            return Err(
                self.wrong(format!("expected an attribute '{name}' of the {}, found none", element.into_inner()))
            );
        };
        let start = batch.text.len();
        batch.text.extend_from_slice(text.as_bytes());
        Ok(start..batch.text.len())
    }

    /// Whether an edge leads both ways, but the graph is directed.
    ///
    /// # Errors
    /// The edge has another direction than its graph, and the user states none.
    fn is_doubled(&self, tag: &BytesStart<'_>) -> Result<bool> {
        let default = self.header.as_ref().is_some_and(GraphMlHeader::is_directed);
        let own = attribute(tag, "directed").map_err(|what| self.wrong(what))?;
        let is_directed = match own.as_deref() {
            None => default,
            Some("true" | "1") => true,
            Some("false" | "0") => false,
            Some(found) => {
                return Err(self.wrong(format!("expected directed true or false, found {}", shown(found.as_bytes()))));
            }
        };
        match self.stated {
            None if is_directed != default => {
                let found = shown(own.unwrap_or_default().as_bytes());
                Err(self.wrong(format!(
                    "expected edges as edgedefault says, found one with directed={found}; \
                     --directed or --undirected reads both kinds"
                )))
            }
            Some(GraphKind::Directed) => Ok(!is_directed),
            _ => Ok(false),
        }
    }

    /// Reads the next XML event into `buffer`.
    fn event<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Result<Event<'b>> {
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
            Ok(Event::Decl(declaration)) => match declaration.encoding() {
                Some(Ok(encoding)) if !is_utf8(&encoding) => {
                    Err(self.wrong(format!("expected the encoding UTF-8, found {}", shown(encoding.as_bytes()))))
                }
                _ => Ok(Event::Decl(declaration)),
            },
            Ok(event) => Ok(event),
            // The limit of `LimitedXmlReader` arrives as an I/O error.
            Err(quick_xml::Error::Io(_)) if self.xml.get_ref().num_bytes > MAX_ELEMENT_BYTES => {
                Err(self.wrong(format!("an element is longer than {}", size(MAX_ELEMENT_BYTES as u64))))
            }
            // The library shares its error, so kind and text are copied.
            Err(quick_xml::Error::Io(error)) => Err(XmlFault::Read(io::Error::new(error.kind(), error.to_string()))),
            Err(error) => Err(self.wrong(format!("the XML is not well formed: {error}"))),
        }
    }

    fn wrong(&self, what: String) -> XmlFault {
        XmlFault::Line(self.line, what)
    }

    fn cut(&self) -> XmlFault {
        self.wrong("the document ends within an element: it is cut".into())
    }
}

fn is_utf8(encoding: &str) -> bool {
    ["utf-8", "utf8", "us-ascii", "ascii"].iter().any(|known| encoding.eq_ignore_ascii_case(known))
}

/// The text of an attribute.
///
/// # Errors
/// The attributes are not well formed, this one occurs twice, or it has an entity.
pub(super) fn attribute(tag: &BytesStart<'_>, name: &str) -> std::result::Result<Option<String>, String> {
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
fn character_of(name: &str) -> std::result::Result<char, String> {
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

/// Counts lines, and limits the bytes that one event reads.
struct LimitedXmlReader {
    reader: BufReader<Box<dyn Read + Send>>,
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
