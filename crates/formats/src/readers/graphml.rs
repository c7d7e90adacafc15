//! GraphML: nodes and edges as XML elements, with data of declared types.
//!
//! Graphs within nodes and edges are flattened. Edges with a `directed` that contradicts the graph's `edgedefault` are
//! read if the user states a direction: in a directed graph, an undirected edge becomes two.
//!
//! Refused, with the line: entities other than XML's own five and character numbers, a document type that declares
//! entities, a second graph, and hyperedges. Skipped: ports (an edge leads to their node), descriptions, data of keys
//! that are not declared or have no type, such as drawings, and XML in data of keys with a name only. An edge may name a
//! node that is not declared.
//!
//! # Source
//! U. Brandes, M. Eiglsperger, I. Herman, M. Himsolt, M. S. Marshall: GraphML progress report, GD 2001; the GraphML
//! primer and attribute extension.

mod elements;
mod header;

use anden_graph::GraphKind;

use self::elements::ElementReader;
use crate::Result;
use crate::collector::InputCollector;
use crate::document::{DocumentContent, ElementLayout, ElementParser, push_document};
use crate::input_format::{InputFormat, Recognition};
use crate::lines::first_line;
use crate::probe::InputProbe;

/// The format.
pub(super) struct GraphMl;

impl InputFormat for GraphMl {
    fn name(&self) -> &'static str {
        "graphml"
    }

    fn endings(&self) -> &'static [(&'static str, &'static str)] {
        &[("graphml", "GraphML")]
    }

    fn recognises(&self, text: &[u8]) -> Recognition {
        let first = first_line(text);
        Recognition::likely_if(first.starts_with(b"<?xml") || first.starts_with(b"<graphml"))
    }

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let mut elements = ElementReader::new(input.beginning()?, to.options.graph_kind);
        let header = elements.header().map_err(|fault| fault.into_error(&input.path))?;
        // Undirected edges of a directed graph become two edges here, so that the input counts as directed.
        let is_doubled = to.options.graph_kind == Some(GraphKind::Directed);
        let graph_kind = if is_doubled { Some(GraphKind::Directed) } else { header.graph_kind };
        to.direction_known(&input.path, graph_kind)?;
        let (layout, properties) = ElementLayout::new(&header.keys, to.options).map_err(|what| input.bad(&what))?;
        let stated = to.options.graph_kind;
        let parser = Box::new(move |reader| -> Box<dyn ElementParser> { Box::new(ElementReader::new(reader, stated)) });
        push_document(input, DocumentContent { layout, labels: None, parser }, properties, to);
        Ok(())
    }
}
