//! Splits GraphML into nodes, edges and their data.

use std::io::Read;

use anden_base::message::shown;
use anden_graph::GraphKind;
use quick_xml::events::{BytesStart, Event};

use super::header::{GraphMlHeader, GraphMlKey};
use crate::document::{DocumentFault, ElementBatch, ElementParser, TextRange, XmlReader};

/// Reads the elements of a document.
pub(super) struct ElementReader {
    xml: XmlReader,
    /// The keys, once the header is read.
    header: Option<GraphMlHeader>,
    /// The direction that the user states.
    stated: Option<GraphKind>,
    /// The number of nodes and edges around the present graph.
    depth: usize,
    is_done: bool,
    /// A fault behind the declarations, which is reported when the elements are read.
    fault: Option<DocumentFault>,
}

type Result<T> = std::result::Result<T, DocumentFault>;

impl ElementReader {
    /// Reads a document. The user may state a direction, which then decides about edges that contradict their graph.
    pub(super) fn new(reader: Box<dyn Read + Send>, stated: Option<GraphKind>) -> Self {
        Self { xml: XmlReader::new(reader), header: None, stated, depth: 0, is_done: false, fault: None }
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
            let event = self.xml.event(&mut buffer)?;
            let is_open = matches!(event, Event::Start(_));
            match event {
                Event::Start(tag) | Event::Empty(tag) => match tag.local_name().into_inner() {
                    "graphml" => {}
                    "key" => self.key(&mut header, &tag, is_open)?,
                    "graph" => {
                        // An empty graph element has no nodes and no end tag.
                        self.is_done = !is_open;
                        header.set_direction(&tag).map_err(|what| self.xml.wrong(what))?;
                        if is_open {
                            // A fault behind the declarations is reported when the elements are read.
                            self.fault = self.keys_in_graph(&mut header).err();
                        }
                        return Ok(header);
                    }
                    "node" | "edge" => {
                        return Err(self.xml.wrong("expected a graph around nodes and edges, found none".into()));
                    }
                    _ if is_open => self.xml.pass()?,
                    _ => {}
                },
                // Text before the graph belongs to another format.
                Event::Text(text) if !text.trim_ascii().is_empty() => {
                    return Err(self
                        .xml
                        .wrong(format!("expected a GraphML document, found {}", shown(text.as_bytes()))));
                }
                Event::Eof => return Err(self.xml.wrong("expected a graph, found the end of the document".into())),
                _ => {}
            }
        }
    }

    /// Adds a declared key.
    fn key(&mut self, header: &mut GraphMlHeader, tag: &BytesStart<'_>, is_open: bool) -> Result<()> {
        let mut key = GraphMlKey::of(tag).map_err(|what| self.xml.wrong(what))?;
        if is_open {
            key.key.default = self.default_of()?;
        }
        header.add(key).map_err(|what| self.xml.wrong(what))
    }

    /// Reads the keys that some tools declare within the graph, before its nodes.
    fn keys_in_graph(&mut self, header: &mut GraphMlHeader) -> Result<()> {
        let mut buffer = Vec::new();
        loop {
            let event = self.xml.event(&mut buffer)?;
            let is_open = matches!(event, Event::Start(_));
            match &event {
                Event::Start(tag) | Event::Empty(tag) => match tag.local_name().into_inner() {
                    "key" => self.key(header, tag, is_open)?,
                    "node" | "edge" | "hyperedge" => {
                        self.xml.put_back(event.into_owned());
                        return Ok(());
                    }
                    _ if is_open => self.xml.pass()?,
                    _ => {}
                },
                // A look at the beginning of a stream ends anywhere.
                Event::End(_) | Event::Eof => {
                    self.xml.put_back(event.into_owned());
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
            match self.xml.event(&mut buffer)? {
                Event::Start(tag) if tag.local_name().into_inner() == "default" => {
                    let mut text = Vec::new();
                    self.xml.datum(&mut text, true)?;
                    default = Some(text);
                }
                Event::Empty(tag) if tag.local_name().into_inner() == "default" => default = Some(Vec::new()),
                Event::Start(_) => self.xml.pass()?,
                Event::End(_) => return Ok(default),
                Event::Eof => return Err(self.xml.cut()),
                _ => {}
            }
        }
    }

    /// Reads up to the end of the next node or edge, or of the graph.
    fn next(&mut self, batch: &mut ElementBatch) -> Result<bool> {
        let mut buffer = Vec::new();
        loop {
            let event = self.xml.event(&mut buffer)?;
            let line = self.xml.line();
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
                        "hyperedge" => {
                            return Err(self.xml.wrong("hyperedges are not read: an edge has two ends".into()));
                        }
                        _ if is_open => {
                            self.xml.pass()?;
                            continue;
                        }
                        _ => continue,
                    };
                    if is_open {
                        self.data(batch, second.is_some())?;
                    }
                    match second {
                        Some(second) => batch.push_edge(line, (first, second), is_doubled),
                        None => batch.push_node(line, first),
                    }
                    return Ok(true);
                }
                Event::End(tag) if self.depth > 0 => {
                    // The end of a graph within a node or an edge, or of the element around it.
                    self.depth -= usize::from(tag.local_name().into_inner() != "graph");
                }
                Event::End(_) => return self.end().map(|()| false),
                Event::Eof => return Err(self.xml.cut()),
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
            match self.xml.event(&mut buffer)? {
                Event::Start(tag) | Event::Empty(tag) if tag.local_name().into_inner() == "graph" => {
                    return Err(self.xml.wrong("a document with a second graph is not read: split it".into()));
                }
                Event::Start(_) => self.xml.pass()?,
                Event::End(_) => depth -= 1,
                Event::Eof if depth > 0 => return Err(self.xml.cut()),
                Event::Eof => return Ok(()),
                _ => {}
            }
        }
    }

    /// Reads the data of the open element: an edge if `is_edge`, else a node.
    fn data(&mut self, batch: &mut ElementBatch, is_edge: bool) -> Result<()> {
        let mut buffer = Vec::new();
        loop {
            let event = self.xml.event(&mut buffer)?;
            let is_open = matches!(event, Event::Start(_));
            match event {
                Event::Start(tag) | Event::Empty(tag) => match tag.local_name().into_inner() {
                    "data" => {
                        let key = self.xml.attribute(&tag, "key")?;
                        let Some(key) = key else { return Err(self.xml.wrong("data need an attribute 'key'".into())) };
                        let header = self.header.as_ref();
                        let known = header.and_then(|header| {
                            let number = header.find(&key, is_edge)?;
                            Some((number, header.keys[number].property_type.is_some(), header.has_own_type[number]))
                        });
                        match known {
                            Some((number, is_kept, is_text)) => {
                                let start = batch.text.len();
                                let has_elements = is_open && self.xml.datum(&mut batch.text, is_text)?;
                                // Drawings and XML are dropped.
                                match is_kept && !has_elements {
                                    true => batch.push_datum_at(number, start..batch.text.len(), false),
                                    false => batch.text.truncate(start),
                                }
                            }
                            // Gephi, Cytoscape and APOC write data of keys that they do not declare.
                            None if is_open => self.xml.pass()?,
                            None => {}
                        }
                    }
                    // The elements of the graph follow, then the end of this element.
                    "graph" if is_open => {
                        self.depth += 1;
                        return Ok(());
                    }
                    _ if is_open => self.xml.pass()?,
                    _ => {}
                },
                Event::End(_) => return Ok(()),
                Event::Eof => return Err(self.xml.cut()),
                _ => {}
            }
        }
    }

    /// Appends the text of a mandatory attribute.
    fn id(&self, tag: &BytesStart<'_>, name: &str, batch: &mut ElementBatch) -> Result<TextRange> {
        Ok(batch.push_text(self.xml.required(tag, name)?.as_bytes()))
    }

    /// Whether an edge leads both ways, but the graph is directed.
    ///
    /// # Errors
    /// The edge has another direction than its graph, and the user states none.
    fn is_doubled(&self, tag: &BytesStart<'_>) -> Result<bool> {
        let default = self.header.as_ref().is_some_and(GraphMlHeader::is_directed);
        let own = self.xml.attribute(tag, "directed")?;
        let is_directed = match own.as_deref() {
            None => default,
            Some("true" | "1") => true,
            Some("false" | "0") => false,
            Some(found) => {
                return Err(self
                    .xml
                    .wrong(format!("expected directed true or false, found {}", shown(found.as_bytes()))));
            }
        };
        match self.stated {
            None if is_directed != default => {
                let found = shown(own.unwrap_or_default().as_bytes());
                Err(self.xml.wrong(format!(
                    "expected edges as edgedefault says, found one with directed={found}; \
                     --directed or --undirected reads both kinds"
                )))
            }
            Some(GraphKind::Directed) => Ok(!is_directed),
            _ => Ok(false),
        }
    }
}

impl ElementParser for ElementReader {
    fn element(&mut self, batch: &mut ElementBatch) -> Result<bool> {
        self.header()?;
        match self.fault.take() {
            Some(fault) => Err(fault),
            None if self.is_done => Ok(false),
            None => self.next(batch),
        }
    }

    fn num_lines(&self) -> u64 {
        self.xml.num_lines()
    }
}
