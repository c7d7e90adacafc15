//! Nodes and edges with their data, in batches.

use std::io;
use std::ops::Range;
use std::path::Path;

use crate::Error;
use crate::outcome::{Fatal, LineFault};

/// An error that ends the read of a document.
#[derive(Debug)]
pub(crate) enum DocumentFault {
    /// The line, from 0, and the fault.
    Line(u64, String),
    /// Reading failed.
    Read(io::Error),
}

/// The result of reading a part of a document.
pub(crate) type DocumentResult<T> = Result<T, DocumentFault>;

impl DocumentFault {
    /// The fault with a line that counts from `num_lines` earlier.
    pub(crate) fn behind(self, num_lines: u64) -> Self {
        match self {
            Self::Line(line, what) => Self::Line(line + num_lines, what),
            fault => fault,
        }
    }

    /// The fault of the input `path`, with a line that counts from the last batch.
    pub(crate) fn into_fatal(self, path: &Path) -> Fatal {
        match self {
            Self::Line(line, what) => Fatal::Line(LineFault { line, what }),
            Self::Read(error) => Fatal::Whole(anden_base::Error::io("read", path, error).into()),
        }
    }

    /// The fault as an error of the input `path`, with a line that counts from the beginning.
    pub(crate) fn into_error(self, path: &Path) -> Error {
        match self.into_fatal(path) {
            Fatal::Whole(error) => error,
            Fatal::Line(LineFault { line, what }) => Error::Line { path: path.to_owned(), line: line + 1, what },
        }
    }
}

/// A range of the text of a batch.
pub(crate) type TextRange = Range<usize>;

/// A node or an edge.
#[derive(Debug)]
pub(crate) struct DocumentElement {
    /// The line of its first byte, from 0: in the document for a parser, in its batch later.
    pub(crate) line: u64,
    /// The node id, or the source.
    pub(crate) first: TextRange,
    /// The target of an edge.
    pub(crate) second: Option<TextRange>,
    /// Whether an undirected edge of a directed graph leads both ways.
    pub(crate) is_doubled: bool,
    /// The end of its data in the data of the batch.
    pub(crate) data_end: usize,
}

/// A value of an element.
#[derive(Clone, Debug)]
pub(crate) struct Datum {
    pub(crate) text: TextRange,
    /// The number of its key: small, so that a datum is.
    key: u32,
    /// Whether the document marks the value as text, so that digits are no number.
    pub(crate) is_quoted: bool,
}

impl Datum {
    /// The number of its key.
    pub(crate) fn key(&self) -> usize {
        self.key as usize
    }
}

/// Consecutive nodes and edges.
#[derive(Debug, Default)]
pub(crate) struct ElementBatch {
    /// The text of ids and data, with references resolved.
    pub(crate) text: Vec<u8>,
    pub(crate) elements: Vec<DocumentElement>,
    /// The data of all elements, in their order.
    pub(crate) data: Vec<Datum>,
    pub(crate) num_lines: u64,
}

impl ElementBatch {
    /// Appends a text.
    pub(crate) fn push_text(&mut self, text: &[u8]) -> TextRange {
        let start = self.text.len();
        self.text.extend_from_slice(text);
        start..self.text.len()
    }

    /// Appends a datum of the next element.
    pub(crate) fn push_datum(&mut self, key: usize, text: &[u8], is_quoted: bool) {
        let text = self.push_text(text);
        self.push_datum_at(key, text, is_quoted);
    }

    /// Appends a datum with a text of the batch.
    pub(crate) fn push_datum_at(&mut self, key: usize, text: TextRange, is_quoted: bool) {
        // Documents have at most some thousand keys.
        self.data.push(Datum { text, key: key as u32, is_quoted });
    }

    /// Appends a node, which takes the data behind those of the last element.
    pub(crate) fn push_node(&mut self, line: u64, id: TextRange) {
        let data_end = self.data.len();
        self.elements.push(DocumentElement { line, first: id, second: None, is_doubled: false, data_end });
    }

    /// Appends an edge, likewise.
    pub(crate) fn push_edge(&mut self, line: u64, (source, target): (TextRange, TextRange), is_doubled: bool) {
        let data_end = self.data.len();
        self.elements.push(DocumentElement { line, first: source, second: Some(target), is_doubled, data_end });
    }

    /// The data of the elements, in their order.
    pub(crate) fn with_data(&self) -> impl Iterator<Item = (&DocumentElement, &[Datum])> {
        let mut start = 0;
        self.elements.iter().map(move |element| {
            let data = &self.data[start..element.data_end];
            start = element.data_end;
            (element, data)
        })
    }

    /// The approximate memory in bytes.
    fn num_bytes(&self) -> usize {
        self.text.len() + size_of::<DocumentElement>() * self.elements.len() + size_of::<Datum>() * self.data.len()
    }
}

/// Splits a document into nodes and edges. Lines count from 0 at the beginning of the document.
pub(crate) trait ElementParser: Send {
    /// Appends the next node or edge; returns whether there is one.
    ///
    /// # Errors
    /// The document cannot be read, or is malformed.
    fn element(&mut self, batch: &mut ElementBatch) -> Result<bool, DocumentFault>;

    /// The number of lines that are read.
    fn num_lines(&self) -> u64;
}

/// Collects elements into batches.
pub(crate) struct BatchReader<P> {
    pub(crate) parser: P,
    /// The number of lines of earlier batches.
    lines_before: u64,
    is_done: bool,
    /// A fault that is returned after the elements before it.
    fault: Option<DocumentFault>,
}

impl<P: ElementParser + ?Sized> BatchReader<Box<P>> {
    pub(crate) fn new(parser: Box<P>) -> Self {
        Self { parser, lines_before: 0, is_done: false, fault: None }
    }

    /// Returns the next elements, with about `num_bytes` of text; `None` after the last. A fault counts its line from
    /// the end of the last batch.
    ///
    /// # Errors
    /// Those of the parser.
    pub(crate) fn next(&mut self, num_bytes: usize) -> Result<Option<ElementBatch>, DocumentFault> {
        if let Some(fault) = self.fault.take() {
            self.is_done = true;
            return Err(match fault {
                DocumentFault::Line(line, what) => DocumentFault::Line(line.saturating_sub(self.lines_before), what),
                fault => fault,
            });
        }
        let mut batch = ElementBatch::default();
        while !self.is_done && self.fault.is_none() && batch.num_bytes() < num_bytes {
            match self.parser.element(&mut batch) {
                Ok(is_there) => self.is_done = !is_there,
                Err(fault) => {
                    // Drops the data of an incomplete element, which follow those of the last whole element.
                    let end = batch.elements.last().map_or(0, |element| element.data_end);
                    batch.data.truncate(end);
                    self.fault = Some(fault);
                }
            }
        }
        for element in &mut batch.elements {
            element.line = element.line.saturating_sub(self.lines_before);
        }
        let now = self.parser.num_lines();
        // A fault counts its line from the end of this batch, so the batch ends before the faulty line.
        let end = match &self.fault {
            Some(DocumentFault::Line(line, _)) => (*line).min(now),
            _ => now,
        };
        batch.num_lines = end.saturating_sub(self.lines_before);
        self.lines_before = end.max(self.lines_before);
        Ok((!batch.elements.is_empty() || self.fault.is_some()).then_some(batch))
    }
}
