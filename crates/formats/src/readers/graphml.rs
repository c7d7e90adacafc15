//! GraphML: nodes and edges as XML elements, with data of declared types.
//!
//! One thread at a time splits the document into elements ([`elements`]), which is cheap. All threads make keys,
//! weights and properties of the elements ([`rows`]). Memory is bounded: an element with the text before it has at most
//! [`elements::MAX_ELEMENT_BYTES`].
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
mod rows;

use std::path::PathBuf;
use std::sync::Arc;

use anden_graph::{GraphKind, Weight};

use self::elements::{ElementReader, GraphMlBatch};
use self::header::GraphMlLayout;
pub(crate) use self::header::TYPE_ATTRIBUTE;
use self::rows::read_elements;
use crate::chunk::{AnyInputChunk, InputChunk, ParseContext, ParsedChunk};
use crate::collector::InputCollector;
use crate::input_format::{InputFormat, Recognition};
use crate::key::FieldKey;
use crate::lines::first_line;
use crate::options::{ColumnName, InputColumns, KeyKind};
use crate::outcome::{Fatal, LineFault};
use crate::part::{InputContent, InputReader, InputStart};
use crate::probe::InputProbe;
use crate::{Error, Result};

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
        let header = elements.header().map_err(|fault| match fault.into_fatal(&input.path) {
            Fatal::Whole(error) => error,
            Fatal::Line(LineFault { line, what }) => Error::Line { path: input.path.clone(), line: line + 1, what },
        })?;
        // Undirected edges of a directed graph become two edges here, so that the input counts as directed.
        let is_doubled = to.options.graph_kind == Some(GraphKind::Directed);
        let graph_kind = if is_doubled { Some(GraphKind::Directed) } else { header.graph_kind };
        to.direction_known(&input.path, graph_kind)?;
        let (layout, properties) = GraphMlLayout::new(header, to.options).map_err(|what| input.bad(&what))?;
        let options = to.options;
        for (side, wanted) in [&options.edge_properties, &options.vertex_properties].into_iter().enumerate() {
            let left_out = layout.left_out(side).map(|name| ColumnName::Name(name.to_owned())).collect();
            let columns = InputColumns { left_out, ..InputColumns::default() };
            let hint = to.hint(&columns, wanted);
            to.describe(&input.path, columns, side == 0, hint);
        }
        to.push(input, Box::new(GraphMlDocument(Arc::new(layout)))).properties = properties;
        Ok(())
    }
}

/// A document as an input.
struct GraphMlDocument(Arc<GraphMlLayout>);

impl InputContent for GraphMlDocument {
    fn begin(&self, input: InputStart<'_>) -> Result<Box<dyn InputReader>> {
        let (path, options) = (input.path.to_owned(), input.options);
        Ok(Box::new(GraphMlReader {
            path,
            block_bytes: options.block_bytes,
            layout: Arc::clone(&self.0),
            elements: ElementReader::new(input.open()?, options.graph_kind),
        }))
    }
}

/// Cuts a document into batches of elements.
struct GraphMlReader {
    path: PathBuf,
    block_bytes: usize,
    layout: Arc<GraphMlLayout>,
    elements: ElementReader,
}

impl InputReader for GraphMlReader {
    fn next(&mut self, _spare: &mut Vec<Vec<u8>>) -> Result<Option<Box<dyn AnyInputChunk>>, Fatal> {
        let batch = self.elements.next(self.block_bytes).map_err(|fault| fault.into_fatal(&self.path))?;
        Ok(batch.map(|batch| -> Box<dyn AnyInputChunk> { Box::new(GraphMlChunk(batch, Arc::clone(&self.layout))) }))
    }
}

/// Consecutive elements.
struct GraphMlChunk(GraphMlBatch, Arc<GraphMlLayout>);

impl InputChunk for GraphMlChunk {
    fn parse<K: FieldKey, W: Weight>(self, context: &ParseContext<'_>) -> Result<ParsedChunk<K, W>> {
        let Self(batch, layout) = self;
        let block = read_elements(&batch, &layout, context.on_error());
        // Integer keys do not refer to the text, so its memory is freed here.
        let text = if K::KIND == KeyKind::Integer { Vec::new() } else { batch.text };
        Ok(ParsedChunk { block, text, spare: None })
    }
}
