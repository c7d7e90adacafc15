//! Node-link JSON: an object with a list of nodes and a list of edges, as NetworkX and D3 write it.
//!
//! `nodes` and `edges`, or `links`, are lists of objects. A node has an `id`; without ids, nodes count from 0. An edge
//! has `source` and `target`. Other members of these objects become properties: a list or an object becomes text, which
//! holds its JSON. `directed` says whether edges are directed; without it they are not. Other members of the outermost
//! object are ignored.
//!
//! The outermost object is split byte by byte, so that only one node or edge at a time is in memory; each is then
//! parsed by `serde_json`.
//!
//! # Source
//! <https://networkx.org/documentation/stable/reference/readwrite/json_graph.html>

use std::io::{Cursor, Read};

use anden_base::message::shown;
use anden_graph::GraphKind;

use crate::Result;
use crate::collector::InputCollector;
use crate::document::{
    Characters, DocumentKey, DocumentResult, ElementBatch, ElementParser, KeyNames, LabelUse, MAX_DEPTH, ScannedParser,
    open_scanned,
};
use crate::input_format::{InputFormat, Recognition};
use crate::json::{JsonMember, read_members, text_of};
use crate::probe::InputProbe;

/// The format.
pub(super) struct NodeLink;

impl InputFormat for NodeLink {
    fn name(&self) -> &'static str {
        "json"
    }

    fn endings(&self) -> &'static [(&'static str, &'static str)] {
        &[("json", "node-link JSON")]
    }

    fn recognises(&self, text: &[u8]) -> Recognition {
        let mut parser = NodeLinkParser::new(Box::new(Cursor::new(text.to_vec())), None);
        // A text that is cut before its lists may begin with the members of NetworkX.
        let is_list = matches!(parser.find_list(), Ok(true)) || parser.is_of_networkx;
        if is_list { Recognition::Sure } else { Recognition::No }
    }

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let stated = to.options.graph_kind;
        open_scanned(input, move |reader| NodeLinkParser::new(reader, stated), to)
    }
}

/// The place of the parser in the outermost object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeLinkPlace {
    /// Before the object.
    Start,
    /// Before the first member.
    FirstMember,
    /// Behind a member.
    Member,
    /// In a list of nodes, or of edges; before its first element.
    First {
        is_edges: bool,
    },
    /// Behind an element of the list.
    Next {
        is_edges: bool,
    },
    End,
}

/// Splits a document.
struct NodeLinkParser {
    text: Characters,
    /// The direction that the user states.
    stated: Option<GraphKind>,
    /// The direction of the document, which may stand behind the edges.
    graph_kind: GraphKind,
    place: NodeLinkPlace,
    names: KeyNames,
    num_nodes: u64,
    /// Whether nodes have ids, once the first is read.
    has_ids: Option<bool>,
    /// The name of the list of edges.
    edge_list: Option<String>,
    has_nodes: bool,
    is_of_networkx: bool,
    /// The present node or edge.
    value: Vec<u8>,
}

impl NodeLinkParser {
    fn new(reader: Box<dyn Read + Send>, stated: Option<GraphKind>) -> Self {
        Self {
            text: Characters::new(reader),
            stated,
            graph_kind: GraphKind::Undirected,
            place: NodeLinkPlace::Start,
            names: KeyNames::default(),
            num_nodes: 0,
            has_ids: None,
            edge_list: None,
            has_nodes: false,
            is_of_networkx: false,
            value: Vec::new(),
        }
    }

    /// Takes the next byte that is no blank, which must be one of `expected`.
    fn punctuation(&mut self, expected: &[u8]) -> DocumentResult<u8> {
        let found = self.text.peek_visible()?;
        match found {
            Some(byte) if expected.contains(&byte) => {
                self.text.pass();
                Ok(byte)
            }
            found => {
                let expected = expected.iter().map(|&byte| format!("'{}'", char::from(byte)));
                let expected = expected.collect::<Vec<_>>().join(" or ");
                let found = found.map_or("the end of the document".into(), |byte| shown(&[byte]));
                Err(self.text.wrong_here(format!("expected {expected} in JSON, found {found}")))
            }
        }
    }

    /// Takes the next value unparsed into [`value`](Self::value): checks only quotes and brackets.
    fn take_value(&mut self) -> DocumentResult<()> {
        self.value.clear();
        let mut depth = 0;
        let first = self.text.peek_visible()?;
        self.text.line = self.text.num_lines();
        if !first.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"\"[{-".contains(&byte)) {
            let found = first.map_or("the end of the document".into(), |byte| shown(&[byte]));
            return Err(self.text.wrong(format!("expected a value in JSON, found {found}")));
        }
        loop {
            let Some(byte) = self.text.peek()? else {
                return match depth {
                    0 => Ok(()),
                    _ => Err(self.text.wrong("the document ends within a value: it is cut".into())),
                };
            };
            match byte {
                b'"' => {
                    self.take_string()?;
                    if depth == 0 {
                        return Ok(());
                    }
                    continue;
                }
                b'[' | b'{' if depth == MAX_DEPTH => {
                    return Err(self.text.wrong("values are nested too deep".into()));
                }
                b'[' | b'{' => depth += 1,
                b']' | b'}' | b',' if depth == 0 => return Ok(()),
                b']' | b'}' => depth -= 1,
                blank if depth == 0 && blank.is_ascii_whitespace() => return Ok(()),
                _ => {}
            }
            self.value.push(byte);
            self.text.pass();
            if depth == 0 && matches!(byte, b']' | b'}') {
                return Ok(());
            }
            self.text.check(self.value.len())?;
        }
    }

    fn take_string(&mut self) -> DocumentResult<()> {
        self.value.push(b'"');
        self.text.pass();
        loop {
            self.text.take_until(|byte| matches!(byte, b'"' | b'\\'), &mut self.value)?;
            let Some(byte) = self.text.peek()? else {
                return Err(self.text.wrong("the document ends within a text: it is cut".into()));
            };
            self.value.push(byte);
            self.text.pass();
            match (byte, self.text.peek()?) {
                (b'"', _) => return Ok(()),
                (_, Some(escaped)) => {
                    self.value.push(escaped);
                    self.text.pass();
                }
                (_, None) => {}
            }
        }
    }

    /// Reads members up to a list of nodes or edges, or to the end. Returns whether there is a list.
    fn find_list(&mut self) -> DocumentResult<bool> {
        if self.place == NodeLinkPlace::Start {
            self.punctuation(b"{")?;
            self.place = NodeLinkPlace::FirstMember;
        }
        loop {
            let is_first = self.place == NodeLinkPlace::FirstMember;
            // An object may be empty, but a comma announces a member.
            let is_end = match is_first {
                true => self.text.peek_visible()? == Some(b'}') && self.punctuation(b"}").is_ok(),
                false => self.punctuation(b",}")? == b'}',
            };
            if is_end {
                return self.end().map(|()| false);
            }
            self.place = NodeLinkPlace::Member;
            if self.text.peek_visible()? != Some(b'"') {
                self.punctuation(b"\"")?;
            }
            self.take_value()?;
            let name = serde_json::from_slice::<String>(&self.value);
            let name = name.map_err(|_| self.text.wrong(format!("expected a name, found {}", shown(&self.value))))?;
            self.punctuation(b":")?;
            let is_list = self.text.peek_visible()? == Some(b'[');
            match &name[..] {
                "nodes" | "edges" | "links" if is_list => {
                    self.text.pass();
                    self.begin_list(name)?;
                    return Ok(true);
                }
                _ => self.member(&name)?,
            }
        }
    }

    fn begin_list(&mut self, name: String) -> DocumentResult<()> {
        let is_edges = name != "nodes";
        let known = match is_edges {
            true => self.edge_list.replace(name.clone()),
            false => std::mem::replace(&mut self.has_nodes, true).then(|| name.clone()),
        };
        if let Some(known) = known {
            return Err(self
                .text
                .wrong_here(format!("expected one list of edges and one of nodes, found '{known}' and '{name}'")));
        }
        self.place = NodeLinkPlace::First { is_edges };
        Ok(())
    }

    /// Reads a member that is no list of nodes or edges.
    fn member(&mut self, name: &str) -> DocumentResult<()> {
        self.take_value()?;
        if serde_json::from_slice::<serde_core::de::IgnoredAny>(&self.value).is_err() {
            return Err(self.text.wrong(format!("expected a value in JSON, found {}", shown(&self.value))));
        }
        match (name, &self.value[..]) {
            ("directed", b"true") => self.graph_kind = GraphKind::Directed,
            ("directed", b"false") => self.graph_kind = GraphKind::Undirected,
            ("directed", found) => {
                return Err(self.text.wrong(format!("expected directed true or false, found {}", shown(found))));
            }
            ("multigraph", _) => self.is_of_networkx = true,
            _ => {}
        }
        Ok(())
    }

    /// Checks the end of the document.
    fn end(&mut self) -> DocumentResult<()> {
        self.place = NodeLinkPlace::End;
        if let Some(byte) = self.text.peek_visible()? {
            return Err(self.text.wrong_here(format!("expected the end of the document, found {}", shown(&[byte]))));
        }
        if !self.has_nodes && self.edge_list.is_none() {
            let what = "expected a list 'nodes', and one 'edges' or 'links', found none";
            return Err(self.text.wrong_here(what.into()));
        }
        Ok(())
    }

    /// Parses the present value as a node or an edge.
    fn push(&mut self, batch: &mut ElementBatch, is_edge: bool) -> std::result::Result<(), String> {
        let mut members: Vec<JsonMember<'_>> = Vec::new();
        read_members(&self.value, &mut members)?;
        let ids: &[&str] = if is_edge { &["source", "target"] } else { &["id"] };
        let mut ends = [None, None];
        for (name, value) in members {
            let json = value.get();
            let Some(text) = text_of(value)? else { continue };
            match ids.iter().position(|id| *id == name) {
                Some(place) => ends[place] = Some(batch.push_text(text.as_bytes())),
                None => {
                    let key = self.names.number(&name, is_edge)?;
                    // JSON has no numbers for these, so they are written as texts.
                    let is_number = matches!(&*text, "inf" | "-inf" | "nan");
                    let is_quoted = json.starts_with(['"', '{']) && !is_number;
                    batch.push_datum(key, text.as_bytes(), is_quoted);
                }
            }
        }
        let line = self.text.line;
        match (ends, is_edge) {
            ([Some(source), Some(target)], true) => {
                let is_doubled = self.stated == Some(GraphKind::Directed) && self.graph_kind == GraphKind::Undirected;
                batch.push_edge(line, (source, target), is_doubled);
            }
            ([source, _], true) => {
                let missing = if source.is_none() { "source" } else { "target" };
                return Err(format!("expected a member '{missing}' of the edge, found none"));
            }
            ([id, _], false) => {
                if *self.has_ids.get_or_insert(id.is_some()) != id.is_some() {
                    return Err("expected a member 'id' of every node or of none".into());
                }
                let count = self.num_nodes.to_string();
                self.num_nodes += 1;
                let id = id.unwrap_or_else(|| batch.push_text(count.as_bytes()));
                batch.push_node(line, id);
            }
        }
        Ok(())
    }
}

impl ElementParser for NodeLinkParser {
    fn element(&mut self, batch: &mut ElementBatch) -> DocumentResult<bool> {
        loop {
            let (is_edges, is_first) = match self.place {
                NodeLinkPlace::First { is_edges } => (is_edges, true),
                NodeLinkPlace::Next { is_edges } => (is_edges, false),
                NodeLinkPlace::End => return Ok(false),
                _ => {
                    self.find_list()?;
                    continue;
                }
            };
            let is_end = match is_first {
                true => self.text.peek_visible()? == Some(b']') && self.punctuation(b"]").is_ok(),
                false => self.punctuation(b",]")? == b']',
            };
            if is_end {
                self.place = NodeLinkPlace::Member;
                continue;
            }
            self.place = NodeLinkPlace::Next { is_edges };
            self.take_value()?;
            self.push(batch, is_edges).map_err(|what| self.text.wrong(what))?;
            return Ok(true);
        }
    }

    fn num_lines(&self) -> u64 {
        self.text.num_lines()
    }
}

impl ScannedParser for NodeLinkParser {
    fn keys(&self) -> &[DocumentKey] {
        self.names.keys()
    }

    fn graph_kind(&self) -> Option<GraphKind> {
        Some(self.graph_kind)
    }

    fn set_graph_kind(&mut self, graph_kind: Option<GraphKind>) {
        self.graph_kind = graph_kind.unwrap_or(self.graph_kind);
    }

    fn label_use(&self) -> LabelUse {
        LabelUse::Property
    }
}
