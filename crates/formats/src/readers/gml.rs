//! GML: nested lists of keys and values in brackets, `graph [ node [ id 1 ] edge [ source 1 target 1 ] ]`.
//!
//! Nodes have an `id`, edges a `source` and a `target`. Other keys of them become properties; nested lists, such as
//! `graphics`, and repeated keys are left out with a note. The `label` of a node is its key if keys are text and labels
//! are unique, because ids are only numbers in this format. Text may have references such as `&#228;` and `&quot;`.
//!
//! # Source
//! M. Himsolt: GML, a portable graph file format, Universität Passau, 1997.

use std::io::Read;

use anden_base::message::shown;
use anden_graph::GraphKind;

use crate::Result;
use crate::collector::InputCollector;
use crate::document::{
    Characters, DocumentKey, DocumentResult, ElementBatch, ElementParser, KeyNames, LabelUse, MAX_DEPTH, ScannedParser,
    TextRange, character_of, open_scanned,
};
use crate::input_format::{InputFormat, Recognition};
use crate::probe::InputProbe;

/// The format.
pub(super) struct Gml;

impl InputFormat for Gml {
    fn name(&self) -> &'static str {
        "gml"
    }

    fn endings(&self) -> &'static [(&'static str, &'static str)] {
        &[("gml", "GML")]
    }

    fn recognises(&self, text: &[u8]) -> Recognition {
        let mut parser = GmlParser::new(Box::new(std::io::Cursor::new(text.to_vec())), None);
        if matches!(parser.find_graph(), Ok(true)) { Recognition::Sure } else { Recognition::No }
    }

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let stated = to.options.graph_kind;
        open_scanned(input, move |reader| GmlParser::new(reader, stated), to)
    }
}

/// A value of a key.
enum GmlValue {
    /// A number or a word, or a text in quotes.
    Text { is_quoted: bool },
    /// The opening bracket of a list.
    List,
}

/// Splits a document.
struct GmlParser {
    text: Characters,
    /// The direction that the user states.
    stated: Option<GraphKind>,
    /// The direction of the document, which may stand behind the edges.
    graph_kind: GraphKind,
    is_in_graph: bool,
    is_done: bool,
    names: KeyNames,
    /// The present key and value.
    key: Vec<u8>,
    value: Vec<u8>,
    has_lists: bool,
    has_repeated: bool,
}

impl GmlParser {
    fn new(reader: Box<dyn Read + Send>, stated: Option<GraphKind>) -> Self {
        Self {
            text: Characters::new(reader),
            stated,
            graph_kind: GraphKind::Undirected,
            is_in_graph: false,
            is_done: false,
            names: KeyNames::default(),
            key: Vec::new(),
            value: Vec::new(),
            has_lists: false,
            has_repeated: false,
        }
    }

    /// Passes blanks and comments; returns the next byte.
    fn peek(&mut self) -> DocumentResult<Option<u8>> {
        loop {
            match self.text.peek_visible()? {
                Some(b'#') => {
                    let mut comment = Vec::new();
                    self.text.take_until(|byte| byte == b'\n', &mut comment)?;
                }
                byte => return Ok(byte),
            }
        }
    }

    /// Takes the next key; `None` at the end of the list, whose bracket is passed, or of the document.
    fn next_key(&mut self, is_in_list: bool) -> DocumentResult<Option<()>> {
        self.key.clear();
        match self.peek()? {
            Some(b']') if is_in_list => {
                self.text.pass();
                Ok(None)
            }
            None if is_in_list => Err(self.text.wrong_here("the document ends within a list: it is cut".into())),
            None => Ok(None),
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let is_end = |byte: u8| !byte.is_ascii_alphanumeric() && !b"_.-".contains(&byte);
                self.text.take_until(is_end, &mut self.key)?;
                Ok(Some(()))
            }
            Some(byte) => Err(self.text.wrong_here(format!("expected a key of GML, found {}", shown(&[byte])))),
        }
    }

    /// Takes the value of the present key.
    fn next_value(&mut self) -> DocumentResult<GmlValue> {
        self.value.clear();
        match self.peek()? {
            Some(b'[') => {
                self.text.pass();
                Ok(GmlValue::List)
            }
            Some(b'"') => {
                self.text.pass();
                self.text.take_until(|byte| byte == b'"', &mut self.value)?;
                if self.text.peek()?.is_none() {
                    return Err(self.text.wrong("the document ends within a text: it is cut".into()));
                }
                self.text.pass();
                if self.value.contains(&b'&') {
                    self.value = resolved(&self.value);
                }
                Ok(GmlValue::Text { is_quoted: true })
            }
            Some(byte) if byte != b']' => {
                let is_end = |byte: u8| byte.is_ascii_whitespace() || b"[]\"".contains(&byte);
                self.text.take_until(is_end, &mut self.value)?;
                // igraph writes these for infinity and for a missing number.
                let number = match &self.value.to_ascii_lowercase()[..] {
                    b"nan" => b"nan",
                    b"inf" | b"+inf" => b"inf",
                    _ => &self.value[..],
                };
                self.value = number.to_vec();
                Ok(GmlValue::Text { is_quoted: false })
            }
            found => {
                let found = found.map_or("the end of the document".into(), |byte| shown(&[byte]));
                let key = shown(&self.key);
                Err(self.text.wrong_here(format!("expected a value of the key {key}, found {found}")))
            }
        }
    }

    /// Passes the rest of a list.
    fn pass_list(&mut self) -> DocumentResult<()> {
        let mut depth = 1;
        while depth > 0 {
            if self.next_key(true)?.is_none() {
                depth -= 1;
            } else if matches!(self.next_value()?, GmlValue::List) {
                depth += 1;
            }
            if depth > MAX_DEPTH {
                return Err(self.text.wrong_here("lists are nested too deep".into()));
            }
        }
        Ok(())
    }

    /// Reads up to the beginning of the next graph; returns whether there is one.
    fn find_graph(&mut self) -> DocumentResult<bool> {
        while self.next_key(false)?.is_some() {
            let is_graph = self.key.eq_ignore_ascii_case(b"graph");
            match self.next_value()? {
                GmlValue::List if is_graph => return Ok(true),
                GmlValue::List => self.pass_list()?,
                GmlValue::Text { .. } => {}
            }
        }
        Ok(false)
    }

    /// Reads the list of a node or an edge.
    fn push(&mut self, batch: &mut ElementBatch, is_edge: bool) -> DocumentResult<()> {
        let line = self.text.num_lines();
        self.text.line = line;
        let ids: &[&[u8]] = if is_edge { &[b"source", b"target"] } else { &[b"id"] };
        let mut ends: [Option<TextRange>; 2] = [None, None];
        let (first, start) = (batch.data.len(), batch.text.len());
        while self.next_key(true)?.is_some() {
            let GmlValue::Text { is_quoted } = self.next_value()? else {
                self.has_lists = true;
                self.pass_list()?;
                continue;
            };
            if let Some(place) = ids.iter().position(|id| *id == self.key) {
                ends[place] = Some(batch.push_text(&self.value));
                continue;
            }
            let name = String::from_utf8_lossy(&self.key);
            let key = self.names.number(&name, is_edge).map_err(|what| self.text.wrong(what))?;
            // NetworkX writes a list as a repeated key.
            if batch.data[first..].iter().any(|datum| datum.key() == key) {
                self.has_repeated = true;
            } else {
                batch.push_datum(key, &self.value, is_quoted);
            }
            self.text.check(batch.text.len() - start)?;
        }
        self.text.line = line;
        let missing = |name: &str, element: &str| format!("expected a key '{name}' of the {element}, found none");
        match (ends, is_edge) {
            ([Some(id), _], false) => batch.push_node(line, id),
            ([Some(source), Some(target)], true) => {
                let is_doubled = self.stated == Some(GraphKind::Directed) && self.graph_kind == GraphKind::Undirected;
                batch.push_edge(line, (source, target), is_doubled);
            }
            (_, false) => return Err(self.text.wrong(missing("id", "node"))),
            ([source, _], true) => {
                let name = if source.is_none() { "source" } else { "target" };
                return Err(self.text.wrong(missing(name, "edge")));
            }
        }
        Ok(())
    }

    /// Reads the end of the document.
    fn end(&mut self) -> DocumentResult<()> {
        self.is_done = true;
        match self.find_graph()? {
            true => Err(self.text.wrong_here("a document with a second graph is not read: split it".into())),
            false => Ok(()),
        }
    }
}

/// Resolves references such as `&quot;` and `&#228;`. Other text with an ampersand stays as it is.
fn resolved(text: &[u8]) -> Vec<u8> {
    let mut resolved = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'&', rest) {
        resolved.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        // The longest reference is that of a character number.
        let end = rest.iter().take(12).position(|&byte| byte == b';');
        let name = end.and_then(|end| std::str::from_utf8(&rest[1..end]).ok());
        match (name.and_then(|name| character_of(name).ok()), end) {
            (Some(character), Some(end)) => {
                resolved.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[end + 1..];
            }
            _ => {
                resolved.push(b'&');
                rest = &rest[1..];
            }
        }
    }
    resolved.extend_from_slice(rest);
    resolved
}

impl ElementParser for GmlParser {
    fn element(&mut self, batch: &mut ElementBatch) -> DocumentResult<bool> {
        if !self.is_in_graph && !self.is_done {
            if !self.find_graph()? {
                return Err(self.text.wrong_here("expected a graph in GML, 'graph [', found none".into()));
            }
            self.is_in_graph = true;
        }
        while !self.is_done {
            if self.next_key(true)?.is_none() {
                self.end()?;
                break;
            }
            let element = match &self.key.to_ascii_lowercase()[..] {
                b"node" => Some(false),
                b"edge" => Some(true),
                _ => None,
            };
            let is_direction = self.key.eq_ignore_ascii_case(b"directed");
            match (self.next_value()?, element) {
                (GmlValue::List, Some(is_edge)) => {
                    self.push(batch, is_edge)?;
                    return Ok(true);
                }
                (GmlValue::List, None) => self.pass_list()?,
                (GmlValue::Text { .. }, _) if is_direction => {
                    self.graph_kind = match &self.value[..] {
                        b"1" => GraphKind::Directed,
                        b"0" => GraphKind::Undirected,
                        found => {
                            let what = format!("expected directed 0 or 1, found {}", shown(found));
                            return Err(self.text.wrong_here(what));
                        }
                    };
                }
                (GmlValue::Text { .. }, _) => {}
            }
        }
        Ok(false)
    }

    fn num_lines(&self) -> u64 {
        self.text.num_lines()
    }
}

impl ScannedParser for GmlParser {
    fn keys(&self) -> &[DocumentKey] {
        self.names.keys()
    }

    fn graph_kind(&self) -> Option<GraphKind> {
        Some(self.graph_kind)
    }

    fn set_graph_kind(&mut self, graph_kind: Option<GraphKind>) {
        self.graph_kind = graph_kind.unwrap_or(self.graph_kind);
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.has_lists {
            notes.push("lists within nodes and edges are left out".to_owned());
        }
        if self.has_repeated {
            notes.push("of a key that an element repeats, only the first value is read".to_owned());
        }
        notes
    }

    fn label_use(&self) -> LabelUse {
        LabelUse::Text
    }
}
