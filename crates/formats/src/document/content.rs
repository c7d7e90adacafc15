//! A document as an input.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use anden_graph::Weight;

use super::batch::{BatchReader, ElementBatch, ElementParser};
use super::labels::NodeLabels;
use super::layout::ElementLayout;
use super::rows::read_elements;
use crate::Result;
use crate::chunk::{AnyInputChunk, InputChunk, ParseContext, ParsedChunk};
use crate::collector::InputCollector;
use crate::key::FieldKey;
use crate::options::{ColumnName, InputColumns, KeyKind};
use crate::outcome::Fatal;
use crate::part::{InputContent, InputReader, InputStart, PartProperties};
use crate::probe::InputProbe;

/// Makes the parser of a document from its content.
type ParserOf = Box<dyn Fn(Box<dyn Read + Send>) -> Box<dyn ElementParser> + Send + Sync>;

/// The content of a document.
pub(crate) struct DocumentContent {
    pub(crate) layout: ElementLayout,
    /// The labels that replace the ids of nodes.
    pub(crate) labels: Option<Arc<NodeLabels>>,
    pub(crate) parser: ParserOf,
}

/// Adds a document to the inputs.
pub(crate) fn push_document(
    input: InputProbe,
    content: DocumentContent,
    properties: [PartProperties; 2],
    to: &mut InputCollector<'_>,
) {
    let options = to.options;
    for (side, wanted) in [&options.edge_properties, &options.vertex_properties].into_iter().enumerate() {
        let left_out = content.layout.left_out(side).map(|name| ColumnName::Name(name.to_owned())).collect();
        let columns = InputColumns { left_out, ..InputColumns::default() };
        let hint = to.hint(&columns, wanted);
        to.describe(&input.path, columns, side == 0, hint);
    }
    let weight_type = content.layout.weight_type();
    let part = to.push(input, Box::new(content));
    part.properties = properties;
    part.weight_type = weight_type;
}

impl InputContent for DocumentContent {
    fn begin(&self, input: InputStart<'_>) -> Result<Box<dyn InputReader>> {
        let mut layout = self.layout.clone();
        // Set only now, because inputs that were opened later may have widened inferred types.
        layout.set_types(input.properties);
        Ok(Box::new(DocumentReader {
            path: input.path.to_owned(),
            block_bytes: input.options.block_bytes,
            layout: Arc::new(layout),
            labels: self.labels.clone(),
            elements: BatchReader::new((self.parser)(input.open()?)),
        }))
    }
}

/// Cuts a document into batches of elements.
struct DocumentReader {
    path: PathBuf,
    block_bytes: usize,
    layout: Arc<ElementLayout>,
    labels: Option<Arc<NodeLabels>>,
    elements: BatchReader<Box<dyn ElementParser>>,
}

impl InputReader for DocumentReader {
    fn next(&mut self, _spare: &mut Vec<Vec<u8>>) -> Result<Option<Box<dyn AnyInputChunk>>, Fatal> {
        let batch = self.elements.next(self.block_bytes).map_err(|fault| fault.into_fatal(&self.path))?;
        Ok(batch.map(|batch| -> Box<dyn AnyInputChunk> {
            Box::new(DocumentChunk { batch, layout: Arc::clone(&self.layout), labels: self.labels.clone() })
        }))
    }
}

/// Consecutive elements.
struct DocumentChunk {
    batch: ElementBatch,
    layout: Arc<ElementLayout>,
    labels: Option<Arc<NodeLabels>>,
}

impl InputChunk for DocumentChunk {
    fn parse<K: FieldKey, W: Weight>(self, context: &ParseContext<'_>) -> Result<ParsedChunk<K, W>> {
        let Self { mut batch, layout, labels } = self;
        let mut block = read_elements(&batch, &layout, labels.as_deref(), context.options);
        // Integer keys do not refer to the text, so its memory is freed here.
        if K::KIND == KeyKind::Integer {
            return Ok(ParsedChunk { block, text: Vec::new(), spare: None });
        }
        batch.text.append(&mut block.extra);
        Ok(ParsedChunk { block, text: batch.text, spare: None })
    }
}
