//! The first of two reads of a document: names, types and labels.
//!
//! Documents without declared types tell them only by all their data. A sample would not do, because edges usually
//! follow all nodes.

use std::io::Read;
use std::sync::Arc;

use anden_graph::GraphKind;
use anden_graph::property::Inference;

use super::batch::{BatchReader, ElementBatch, ElementParser};
use super::content::{DocumentContent, push_document};
use super::labels::{FoundLabels, LabelCollector, LabelUse, NodeLabels};
use super::layout::{DocumentKey, ElementLayout};
use crate::Result;
use crate::collector::InputCollector;
use crate::probe::InputProbe;

/// Bytes per batch of the scan.
const SCAN_BYTES: usize = 1 << 20;
/// The key of the label of a node.
const LABEL: &str = "label";

/// A parser that numbers keys as they occur, so that two reads number them alike.
pub(crate) trait ScannedParser: ElementParser {
    /// The keys met up to now. A key without a type gets that of its data.
    fn keys(&self) -> &[DocumentKey];

    /// The direction of the edges met up to now; `None` if the document does not state one.
    fn graph_kind(&self) -> Option<GraphKind>;

    /// Takes the direction of the document before the second read.
    fn set_graph_kind(&mut self, _graph_kind: Option<GraphKind>) {}

    /// Notes for users.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether labels may be keys.
    fn label_use(&self) -> LabelUse;

    /// Whether ids count the nodes from 1.
    fn counts_nodes(&self) -> bool {
        false
    }
}

/// The facts about all data.
struct DataScan {
    inferences: Vec<Inference>,
    labels: LabelCollector,
}

impl DataScan {
    fn add(&mut self, batch: &ElementBatch, keys: &[DocumentKey]) {
        self.inferences.resize(keys.len(), Inference::default());
        let label = keys.iter().position(|key| key.is_of_nodes && key.name == LABEL);
        for (element, data) in batch.with_data() {
            for datum in data {
                let text = &batch.text[datum.text.clone()];
                match datum.is_quoted {
                    true => self.inferences[datum.key()].add_quoted(text),
                    false if text.starts_with(b"[") => self.inferences[datum.key()].add_list(text),
                    false => self.inferences[datum.key()].add(text),
                }
            }
            if element.second.is_none() {
                let datum = data.iter().find(|datum| Some(datum.key()) == label);
                let label = datum.map(|datum| &batch.text[datum.text.clone()]);
                self.labels.add(&batch.text[element.first.clone()], label);
            }
        }
    }
}

/// Opens a document whose keys have no stated types; `parser` makes its parser.
///
/// # Errors
/// The input cannot be read, or is malformed; no key can be the weight.
pub(crate) fn open_scanned<P: ScannedParser + 'static>(
    mut input: InputProbe,
    parser: impl Fn(Box<dyn Read + Send>) -> P + Send + Sync + 'static,
    to: &mut InputCollector<'_>,
) -> Result<()> {
    let options = to.options;
    let mut elements = BatchReader::new(Box::new(parser(input.whole()?)));
    let label_use = elements.parser.label_use();
    let mut scan = DataScan { inferences: Vec::new(), labels: LabelCollector::new(label_use, options) };
    let mut lines = 0;
    while let Some(batch) = elements.next(SCAN_BYTES).map_err(|fault| fault.behind(lines).into_error(&input.path))? {
        scan.add(&batch, elements.parser.keys());
        lines += batch.num_lines;
    }
    let parser_of_scan = &elements.parser;
    let mut keys = parser_of_scan.keys().to_vec();
    // Keys without any datum have a type too.
    scan.inferences.resize(keys.len(), Inference::default());
    for (key, mut inference) in keys.iter_mut().zip(scan.inferences) {
        if key.property_type.is_none() {
            key.default.iter().for_each(|default| inference.add(default));
            (key.property_type, key.inference) = (Some(inference.property_type()), Some(inference));
        }
    }
    let graph_kind = parser_of_scan.graph_kind();
    let is_doubled = options.graph_kind == Some(GraphKind::Directed);
    to.direction_known(&input.path, if is_doubled { Some(GraphKind::Directed) } else { graph_kind })?;
    for note in parser_of_scan.notes() {
        to.note(&input.path, &note);
    }
    let labels = labels(scan.labels.finish(), &mut keys, &input, to);
    let (mut layout, properties) = ElementLayout::new(&keys, options).map_err(|what| input.bad(&what))?;
    layout.counts_nodes = parser_of_scan.counts_nodes();
    let parser = Box::new(move |reader| -> Box<dyn ElementParser> {
        let mut parser = parser(reader);
        parser.set_graph_kind(graph_kind);
        Box::new(parser)
    });
    push_document(input, DocumentContent { layout, labels, parser }, properties, to);
    Ok(())
}

/// The labels that are keys. Such labels are no property, and neither are those that repeat the ids.
fn labels(
    found: FoundLabels,
    keys: &mut [DocumentKey],
    input: &InputProbe,
    to: &mut InputCollector<'_>,
) -> Option<Arc<NodeLabels>> {
    let labels = match found {
        FoundLabels::Property(why) => {
            if let Some(why) = why {
                to.note(&input.path, &format!("the ids of nodes are the keys, not their labels: {why}"));
            }
            return None;
        }
        FoundLabels::Repeated => None,
        FoundLabels::Keys(labels) => {
            to.note(&input.path, "the labels of nodes are the keys, not their ids");
            Some(Arc::new(labels))
        }
    };
    for key in keys.iter_mut().filter(|key| key.is_of_nodes && key.name == LABEL) {
        key.is_of_nodes = false;
    }
    labels
}
