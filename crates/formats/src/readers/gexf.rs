//! GEXF: nodes and edges as XML elements, with values of declared attributes.
//!
//! The label of a node becomes the property `label`, unless all labels equal the ids. The weight of an edge, by default
//! 1, is its weight or the property `weight`; its label is a property too. Nested nodes are flattened. Edges of another
//! direction than `defaultedgetype` are read if the user states a direction: in a directed graph, an undirected or
//! mutual edge becomes two. A value that changes over time is its first one, with a note. Skipped: positions,
//! colors and other elements, and values of attributes that are not declared.
//!
//! # Source
//! <https://gexf.net/schema.html>

use std::collections::HashMap;
use std::io::Read;

use anden_base::message::shown;
use anden_graph::GraphKind;
use anden_graph::property::{ColumnBuilder, PropertyType};
use quick_xml::events::{BytesStart, Event};

use crate::Result;
use crate::collector::InputCollector;
use crate::document::{
    DocumentKey, DocumentResult, ElementBatch, ElementParser, LabelUse, ScannedParser, TYPE_ATTRIBUTE, XmlReader,
    open_scanned, push_key, value_text, weight_type_of_name, xml_root,
};
use crate::input_format::{InputFormat, Recognition};
use crate::probe::InputProbe;

/// The format.
pub(super) struct Gexf;

impl InputFormat for Gexf {
    fn name(&self) -> &'static str {
        "gexf"
    }

    fn endings(&self) -> &'static [(&'static str, &'static str)] {
        &[("gexf", "GEXF")]
    }

    fn recognises(&self, text: &[u8]) -> Recognition {
        if xml_root(text) == Some(b"gexf") { Recognition::Sure } else { Recognition::No }
    }

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let (stated, has_weights) = (to.options.graph_kind, to.options.weights.is_some());
        open_scanned(input, move |reader| GexfParser::new(reader, stated, has_weights), to)
    }
}

/// Splits a document.
struct GexfParser {
    xml: XmlReader,
    /// The direction that the user states.
    stated: Option<GraphKind>,
    /// The direction of edges without their own; `None` before the graph.
    default: Option<GraphKind>,
    /// The number of open elements around the next one.
    depth: usize,
    keys: Vec<DocumentKey>,
    /// By id: the declared keys of nodes, then of edges.
    by_id: [HashMap<String, usize>; 2],
    /// The keys of the labels of nodes and of edges, and of the weight.
    labels: [Option<usize>; 2],
    weight: Option<usize>,
    /// Whether attributes that are being declared are of edges; `None` for those of the graph.
    declares_edges: Option<bool>,
    has_repeated: bool,
    has_weights: bool,
    is_done: bool,
}

impl GexfParser {
    fn new(reader: Box<dyn Read + Send>, stated: Option<GraphKind>, has_weights: bool) -> Self {
        Self {
            xml: XmlReader::new(reader),
            stated,
            default: None,
            depth: 0,
            keys: Vec::new(),
            by_id: Default::default(),
            labels: [None; 2],
            weight: None,
            declares_edges: None,
            has_repeated: false,
            has_weights,
            is_done: false,
        }
    }

    fn begin_graph(&mut self, tag: &BytesStart<'_>) -> DocumentResult<()> {
        if self.default.is_some() {
            return Err(self.xml.wrong("a document with a second graph is not read: split it".into()));
        }
        self.default = Some(match self.xml.attribute(tag, "defaultedgetype")?.as_deref() {
            Some("directed") => GraphKind::Directed,
            None | Some("undirected" | "mutual") => GraphKind::Undirected,
            Some(found) => {
                let found = shown(found.as_bytes());
                return Err(self.xml.wrong(format!("expected defaultedgetype directed or undirected, found {found}")));
            }
        });
        if self.has_weights {
            // Edges without a weight have the weight 1.
            let weight_type = self.xml.attribute(tag, TYPE_ATTRIBUTE)?.and_then(|name| weight_type_of_name(&name));
            let default = Some(b"1".to_vec());
            let key = DocumentKey { weight_type, default, ..weight_key() };
            self.weight = Some(push_key(&mut self.keys, key).map_err(|what| self.xml.wrong(what))?);
        }
        Ok(())
    }

    /// Adds a declared attribute.
    fn declare(&mut self, tag: &BytesStart<'_>, is_open: bool) -> DocumentResult<()> {
        let (id, title) = (self.xml.required(tag, "id")?, self.xml.attribute(tag, "title")?);
        let ours = self.xml.attribute(tag, TYPE_ATTRIBUTE)?;
        let stated = self.xml.attribute(tag, "type")?;
        let default = if is_open { self.default_value()? } else { None };
        let Some(is_of_edges) = self.declares_edges else { return Ok(()) };
        let property_type = match (ours.as_deref(), stated.as_deref()) {
            (Some(ours), _) => Some(PropertyType::of_name(ours).ok_or_else(|| {
                let found = shown(ours.as_bytes());
                self.xml.wrong(format!("expected a property type as {TYPE_ATTRIBUTE}, found {found}"))
            })?),
            (None, Some("boolean")) => Some(PropertyType::Boolean),
            (None, Some("integer" | "int" | "long" | "short" | "byte")) => Some(PropertyType::I64),
            (None, Some("float" | "double")) => Some(PropertyType::F64),
            // Dates have several forms, so their texts tell the type.
            (None, Some("date" | "dateTime")) => None,
            (None, _) => Some(PropertyType::String),
        };
        let name = title.unwrap_or_else(|| id.clone());
        let key = DocumentKey { property_type, default, ..DocumentKey::new(&name, is_of_edges) };
        if let (Some(property_type), Some(default)) = (property_type, &key.default) {
            let checked = ColumnBuilder::new(property_type).push_text(value_text(default, property_type));
            let wrong = |what| self.xml.wrong(format!("the default of attribute {}: {what}", shown(id.as_bytes())));
            checked.map_err(wrong)?;
        }
        let number = push_key(&mut self.keys, key).map_err(|what| self.xml.wrong(what))?;
        if self.by_id[usize::from(is_of_edges)].insert(id.clone(), number).is_some() {
            return Err(self.xml.wrong(format!("the attribute {} is declared twice", shown(id.as_bytes()))));
        }
        Ok(())
    }

    /// The default in the open declaration.
    fn default_value(&mut self) -> DocumentResult<Option<Vec<u8>>> {
        let (mut buffer, mut default) = (Vec::new(), None);
        loop {
            match self.xml.event(&mut buffer)? {
                Event::Start(tag) if tag.local_name().into_inner() == "default" => {
                    let mut text = Vec::new();
                    self.xml.datum(&mut text, true)?;
                    default = Some(text);
                }
                Event::Start(_) => self.xml.pass()?,
                Event::End(_) => return Ok(default),
                Event::Eof => return Err(self.xml.cut()),
                _ => {}
            }
        }
    }

    /// Appends a node or an edge.
    fn push(
        &mut self,
        tag: &BytesStart<'_>,
        is_open: bool,
        is_edge: bool,
        batch: &mut ElementBatch,
    ) -> DocumentResult<()> {
        let line = self.xml.line();
        let Some(default) = self.default else {
            return Err(self.xml.wrong("expected a graph around nodes and edges, found none".into()));
        };
        let side = usize::from(is_edge);
        let names: &[&str] = if is_edge { &["source", "target"] } else { &["id"] };
        let mut ends = Vec::with_capacity(2);
        for name in names {
            ends.push(batch.push_text(self.xml.required(tag, name)?.as_bytes()));
        }
        let is_doubled = is_edge && self.is_doubled(tag, default)?;
        let first = batch.data.len();
        if let Some(label) = self.xml.attribute(tag, "label")?.filter(|label| !is_edge || !label.is_empty()) {
            self.named(side, "label", label.as_bytes(), batch)?;
        }
        if is_edge && let Some(weight) = self.xml.attribute(tag, "weight")? {
            self.named(2, "weight", weight.as_bytes(), batch)?;
        }
        if is_open {
            self.values(side, first, batch)?;
        }
        let mut ends = ends.into_iter();
        match (ends.next(), ends.next()) {
            (Some(source), Some(target)) => batch.push_edge(line, (source, target), is_doubled),
            (Some(id), None) => batch.push_node(line, id),
            (None, _) => {}
        }
        Ok(())
    }

    /// Appends a value of the label of nodes (place 0), of edges (1), or of the weight (2).
    fn named(&mut self, place: usize, name: &str, text: &[u8], batch: &mut ElementBatch) -> DocumentResult<()> {
        let [of_nodes, of_edges] = &mut self.labels;
        let known = [of_nodes, of_edges, &mut self.weight].into_iter().nth(place);
        let Some(known) = known else { return Ok(()) };
        let number = match *known {
            Some(number) => number,
            None => {
                let key = if place == 2 { weight_key() } else { DocumentKey::new(name, place > 0) };
                push_key(&mut self.keys, key).map_err(|what| self.xml.wrong(what))?
            }
        };
        *known = Some(number);
        batch.push_datum(number, text, name == "label");
        Ok(())
    }

    /// Whether an edge leads both ways, but the graph is directed.
    ///
    /// # Errors
    /// The edge has another direction than its graph, and the user states none.
    fn is_doubled(&self, tag: &BytesStart<'_>, default: GraphKind) -> DocumentResult<bool> {
        let own = self.xml.attribute(tag, "type")?;
        let kind = match own.as_deref() {
            None => default,
            Some("directed") => GraphKind::Directed,
            Some("undirected" | "mutual") => GraphKind::Undirected,
            Some(found) => {
                let found = shown(found.as_bytes());
                return Err(self
                    .xml
                    .wrong(format!("expected the type directed or undirected of the edge, found {found}")));
            }
        };
        if self.stated.is_none() && kind != default {
            let found = shown(own.unwrap_or_default().as_bytes());
            return Err(self.xml.wrong(format!(
                "expected edges as defaultedgetype says, found one with type={found}; --directed or --undirected reads \
                 both kinds"
            )));
        }
        Ok(self.stated == Some(GraphKind::Directed) && kind == GraphKind::Undirected)
    }

    /// Reads the values of the open node or edge, whose data begin at `first`.
    fn values(&mut self, side: usize, first: usize, batch: &mut ElementBatch) -> DocumentResult<()> {
        let (mut buffer, mut depth) = (Vec::new(), 0);
        loop {
            let event = self.xml.event(&mut buffer)?;
            let is_open = matches!(event, Event::Start(_));
            match event {
                Event::Start(tag) | Event::Empty(tag) => match tag.local_name().into_inner() {
                    "attvalue" => {
                        self.value(&tag, side, first, batch)?;
                        if is_open {
                            self.xml.pass()?;
                        }
                    }
                    "attvalues" => depth += usize::from(is_open),
                    // The nested nodes follow, then the end of this element.
                    "nodes" | "edges" if is_open => {
                        self.depth += 2 + depth;
                        return Ok(());
                    }
                    _ if is_open => self.xml.pass()?,
                    _ => {}
                },
                Event::End(_) if depth > 0 => depth -= 1,
                Event::End(_) => return Ok(()),
                Event::Eof => return Err(self.xml.cut()),
                _ => {}
            }
        }
    }

    fn value(
        &mut self,
        tag: &BytesStart<'_>,
        side: usize,
        first: usize,
        batch: &mut ElementBatch,
    ) -> DocumentResult<()> {
        // Version 1.0 calls this attribute `id`.
        let key = match self.xml.attribute(tag, "for")? {
            Some(key) => key,
            None => self.xml.required(tag, "id")?,
        };
        let Some(&number) = self.by_id[side].get(&key) else { return Ok(()) };
        let text = self.xml.required(tag, "value")?;
        // Gephi writes an empty value where there is none.
        let is_null = text.is_empty() && self.keys[number].property_type != Some(PropertyType::String);
        if is_null {
            return Ok(());
        }
        if batch.data[first..].iter().any(|datum| datum.key() == number) {
            self.has_repeated = true;
        } else {
            batch.push_datum(number, text.as_bytes(), false);
        }
        Ok(())
    }
}

/// The key of the weight of an edge, which is a floating number.
fn weight_key() -> DocumentKey {
    DocumentKey { property_type: Some(PropertyType::F64), ..DocumentKey::new("weight", true) }
}

impl ElementParser for GexfParser {
    fn element(&mut self, batch: &mut ElementBatch) -> DocumentResult<bool> {
        let mut buffer = Vec::new();
        while !self.is_done {
            let event = self.xml.event(&mut buffer)?;
            let is_open = matches!(event, Event::Start(_));
            match event {
                Event::Start(tag) | Event::Empty(tag) => {
                    let is_edge = match tag.local_name().into_inner() {
                        "node" => false,
                        "edge" => true,
                        name => {
                            match name {
                                "gexf" | "nodes" | "edges" => {}
                                "graph" => self.begin_graph(&tag)?,
                                "attributes" => {
                                    let class = self.xml.attribute(&tag, "class")?;
                                    let of_elements = class.filter(|class| class == "node" || class == "edge");
                                    self.declares_edges = of_elements.map(|class| class == "edge");
                                }
                                "attribute" => {
                                    self.declare(&tag, is_open)?;
                                    continue;
                                }
                                _ if is_open => {
                                    self.xml.pass()?;
                                    continue;
                                }
                                _ => {}
                            }
                            self.depth += usize::from(is_open);
                            continue;
                        }
                    };
                    self.push(&tag, is_open, is_edge, batch)?;
                    return Ok(true);
                }
                Event::End(_) => self.depth = self.depth.saturating_sub(1),
                Event::Eof if self.depth > 0 => return Err(self.xml.cut()),
                Event::Eof if self.default.is_none() => {
                    return Err(self.xml.wrong("expected a graph, found the end of the document".into()));
                }
                Event::Eof => self.is_done = true,
                _ => {}
            }
        }
        Ok(false)
    }

    fn num_lines(&self) -> u64 {
        self.xml.num_lines()
    }
}

impl ScannedParser for GexfParser {
    fn keys(&self) -> &[DocumentKey] {
        &self.keys
    }

    fn graph_kind(&self) -> Option<GraphKind> {
        self.default
    }

    fn notes(&self) -> Vec<String> {
        match self.has_repeated {
            true => vec!["of a value that changes over time, only the first is read".to_owned()],
            false => Vec::new(),
        }
    }

    fn label_use(&self) -> LabelUse {
        LabelUse::Repeated
    }
}
