//! Inputs of text, read in blocks of whole lines.
//!
//! One worker at a time takes the next block: it reads and decompresses the text, and parses the header, because other
//! blocks depend on it. Everything else happens on all workers, in the parser of the format's lines.

use std::path::PathBuf;

use anden_base::size::size;
use anden_graph::Weight;

use crate::blocks::{BlockCutter, CutError, TextBlock};
use crate::chunk::{AnyInputChunk, ImpliedVertices, InputChunk, Numbering, ParseContext, ParsedChunk};
use crate::key::FieldKey;
use crate::lines::{ParsedBlock, line_end, trimmed};
use crate::options::{KeyKind, SourceOptions};
use crate::outcome::{Fatal, LineFault, PromisedTotals};
use crate::part::{InputContent, InputReader, InputStart, PartProperties};
use crate::{Error, Result};

/// The lines of a format of text: how blocks of them are cut and parsed. A clone travels with each block.
pub(crate) trait TextLines: Clone + Send + Sync + 'static {
    /// Whether a line that is longer than a block is cut after a blank.
    const CUTS_LINES: bool = false;
    /// Whether string keys refer to the text of the block. Otherwise all of them are in
    /// [`extra`](ParsedBlock::extra).
    const HAS_KEYS_IN_TEXT: bool = true;

    /// Takes the properties of edges and of vertices, with their final types.
    fn set_properties(&mut self, _properties: &[PartProperties; 2]) {}

    /// Whether the next lines may belong to a header.
    fn is_in_header(&self) -> bool {
        false
    }

    /// Takes a line of the header, without blanks around it. Returns whether it is a comment.
    ///
    /// # Errors
    /// The line is neither a header nor a comment.
    fn header_line(&mut self, _line: &[u8]) -> Result<bool, String> {
        Ok(false)
    }

    /// The end of the last whole row of a block, behind which more text follows. Returns the start of the block if no
    /// row is whole.
    fn whole_rows(&self, block: &TextBlock) -> usize {
        block.end
    }

    /// Advances the state past a block.
    fn pass(&mut self, _block: &TextBlock) {}

    /// Parses a block, on any worker.
    fn parse<K: FieldKey, W: Weight>(&self, block: &TextBlock, context: &ParseContext<'_>) -> ParsedBlock<K, W>;

    /// The totals that the header promises.
    fn promised(&self) -> Option<PromisedTotals> {
        None
    }

    /// Checks the state after the last block; the text had `num_bytes`.
    ///
    /// # Errors
    /// The text ended too early.
    fn check_end(&self, _num_bytes: u64) -> Result<(), String> {
        Ok(())
    }
}

/// An input of lines.
pub(crate) struct TextInput<L> {
    lines: L,
    /// The bytes before the first row, which are not parsed.
    num_header_bytes: u64,
}

impl<L> TextInput<L> {
    /// Lines from the start of the input.
    pub(crate) fn new(lines: L) -> Self {
        Self::behind(0, lines)
    }

    /// Lines behind a header of `num_header_bytes`.
    pub(crate) fn behind(num_header_bytes: u64, lines: L) -> Self {
        Self { lines, num_header_bytes }
    }
}

impl<L: TextLines> InputContent for TextInput<L> {
    fn begin(&self, input: InputStart<'_>) -> Result<Box<dyn InputReader>> {
        let mut lines = self.lines.clone();
        // Set only now, because inputs that were opened later may have widened inferred types.
        lines.set_properties(input.properties);
        Ok(Box::new(TextReader {
            path: input.path.to_owned(),
            options: input.options.clone(),
            lines,
            num_header_bytes: self.num_header_bytes,
            num_bytes: 0,
            cutter: BlockCutter::new(input.open()?),
            implied: None,
        }))
    }
}

/// Cuts an input of text into blocks.
struct TextReader<L> {
    path: PathBuf,
    options: SourceOptions,
    cutter: BlockCutter,
    lines: L,
    /// Bytes of a table's header that are still unread.
    num_header_bytes: u64,
    /// Bytes of the blocks that were returned.
    num_bytes: u64,
    /// The vertices that follow from the header, once the text has ended.
    implied: Option<ImpliedVertices>,
}

impl<L: TextLines> InputReader for TextReader<L> {
    fn next(&mut self, spare: &mut Vec<Vec<u8>>) -> Result<Option<Box<dyn AnyInputChunk>>, Fatal> {
        // The text comes first, because its size limits the vertices that the header may imply.
        if self.implied.is_none() {
            if let Some(chunk) = self.next_block(spare)? {
                return Ok(Some(Box::new(chunk)));
            }
            self.implied = Some(self.implied_vertices()?);
        }
        Ok(self.implied.as_mut().and_then(ImpliedVertices::next))
    }

    fn promised(&self) -> Option<PromisedTotals> {
        self.lines.promised()
    }
}

impl<L: TextLines> TextReader<L> {
    fn next_block(&mut self, spare: &mut Vec<Vec<u8>>) -> Result<Option<TextChunk<L>>, Fatal> {
        let mut buffer = spare.pop().unwrap_or_default();
        let mut about = self.options.block_bytes;
        let mut num_comments = 0;
        let block = loop {
            let block = self.cutter.next(&self.path, buffer, about).map_err(|error| match error {
                CutError::Read(error) => Fatal::Whole(error),
                CutError::LongLine(limit) => Fatal::Line(LineFault {
                    line: 0,
                    what: format!("expected lines of at most {}, found a longer one", size(limit as u64)),
                }),
            })?;
            let Some(mut block) = block else { return Ok(None) };
            let begin = block.start;
            // A header may span several blocks.
            let of_header = self.num_header_bytes.min((block.end - begin) as u64);
            block.start += of_header as usize;
            num_comments += find_header(&mut block, &mut self.lines)?;
            let end = if self.cutter.is_at_end() {
                // No more text can complete a row.
                block.end
            } else if self.lines.is_in_header() {
                // A header that is not complete yet continues behind the block.
                block.start
            } else {
                if L::CUTS_LINES {
                    // Allowed only behind the header, whose lines must stay whole.
                    self.cutter.cut_lines();
                }
                self.lines.whole_rows(&block)
            };
            if end > begin {
                self.num_header_bytes -= of_header;
                if end < block.end {
                    self.cutter.take_back(&mut block, end);
                }
                break block;
            }
            // A row is longer than the block, so the next read is larger. The last lines of a block may belong to a
            // partial row.
            about = 2 * about.max(block.end);
            self.cutter.take_back(&mut block, 0);
            buffer = block.bytes;
        };
        self.num_bytes += block.end as u64;
        // Cloned before `pass`, because the parser needs the state at the start of the block.
        let lines = self.lines.clone();
        self.lines.pass(&block);
        Ok(Some(TextChunk { block, lines, num_comments }))
    }

    /// The vertices that follow from the header, once the text has ended.
    fn implied_vertices(&self) -> Result<ImpliedVertices, Fatal> {
        let bad = |what: String| Fatal::Whole(Error::Input { path: self.path.clone(), what });
        self.lines.check_end(self.num_bytes).map_err(bad)?;
        let num_vertices = self.lines.promised().map_or(0, |promised| promised.num_vertices);
        // Vertices without arcs leave no trace in the text. This limit refuses a header that would make a small text
        // allocate huge arrays.
        if num_vertices > 16 * self.num_bytes + (1 << 20) {
            return Err(bad(format!(
                "the header promises {num_vertices} vertices, which a text of {} bytes does not bear out",
                self.num_bytes
            )));
        }
        Ok(ImpliedVertices::new(1..num_vertices + 1, Numbering::FromOne, &self.options))
    }
}

/// Takes the lines of a header from a block, and moves the block's start behind them. Returns the number of comments
/// among them.
fn find_header(block: &mut TextBlock, lines: &mut impl TextLines) -> Result<u64, Fatal> {
    let (mut line, mut num_comments) = (0, 0);
    while lines.is_in_header() && block.start < block.end {
        let at = block.start;
        let end = line_end(&block.bytes, at);
        let (first, last) = trimmed(&block.bytes, at, end);
        let is_comment = lines.header_line(&block.bytes[first..last]);
        num_comments += u64::from(is_comment.map_err(|what| Fatal::Line(LineFault { line, what }))?);
        line += 1;
        block.start = end + 1;
    }
    Ok(num_comments)
}

/// A block of text.
struct TextChunk<L> {
    block: TextBlock,
    lines: L,
    /// Comments in the header, before the lines to parse.
    num_comments: u64,
}

impl<L: TextLines> InputChunk for TextChunk<L> {
    fn parse<K: FieldKey, W: Weight>(self, context: &ParseContext<'_>) -> Result<ParsedChunk<K, W>> {
        // A block may end within the header. Then no line is left to parse.
        let mut block = match self.lines.is_in_header() {
            true => ParsedBlock::of_block(&self.block, context.on_error()),
            false => self.lines.parse(&self.block, context),
        };
        block.num_comments += self.num_comments;
        let mut text = self.block.bytes;
        // Integer keys do not refer to the text, so a later block reuses its buffer.
        if K::KIND == KeyKind::Integer {
            return Ok(ParsedChunk { block, text: Vec::new(), spare: Some(text) });
        }
        // The keys are copies in `extra`, so the buffer is free for a later block.
        if !L::HAS_KEYS_IN_TEXT {
            return Ok(ParsedChunk { spare: Some(text), ..ParsedChunk::of_extra(block) });
        }
        text.truncate(self.block.end);
        text.append(&mut block.extra);
        // The caller may keep the text, so its spare capacity is returned.
        text.shrink_to_fit();
        Ok(ParsedChunk { block, text, spare: None })
    }
}

/// The lines of a text without rows, such as a table of comments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoRows;

impl TextLines for NoRows {
    fn parse<K: FieldKey, W: Weight>(&self, block: &TextBlock, context: &ParseContext<'_>) -> ParsedBlock<K, W> {
        ParsedBlock::of_block(block, context.on_error())
    }
}
