//! What workers found, put in the order of the input.
//!
//! A worker knows a line only by its place in a block. When a fault is told, all blocks before it
//! were parsed, so their lines can be summed; and of several faults the first in the input wins,
//! whichever was met first.

use std::path::PathBuf;

use super::message::shown;
use super::options::{OnError, SourceSummary};
use crate::Error;

/// A line of a block that is no edge: its place, from 0, and what is wrong with it.
#[derive(Clone, Debug)]
pub(super) struct LineFault {
    pub(super) line: u64,
    pub(super) what: String,
}

/// The faulty lines of one block.
#[derive(Debug)]
pub(super) struct Faults {
    on_error: OnError,
    pub(super) num_skipped: u64,
    pub(super) first: Option<LineFault>,
}

impl Faults {
    pub(super) fn new(on_error: OnError) -> Self {
        Self { on_error, num_skipped: 0, first: None }
    }

    /// Takes note of the line of `text` that begins at `at`; true where parsing is to end.
    #[cold]
    pub(super) fn note(&mut self, text: &[u8], at: usize, what: String) -> bool {
        let line = if self.first.is_none() { memchr::memchr_iter(b'\n', &text[..at]).count() as u64 } else { 0 };
        self.note_at(line, what)
    }

    /// Takes note of a line, or row, by its number from 0; true where parsing is to end.
    #[cold]
    pub(super) fn note_at(&mut self, line: u64, what: String) -> bool {
        if self.first.is_none() {
            self.first = Some(LineFault { line, what });
        }
        self.num_skipped += 1;
        self.on_error == OnError::Stop
    }

    /// The fault that ends everything, if faults do.
    pub(super) fn fatal(&mut self) -> Option<LineFault> {
        if self.on_error == OnError::Stop { self.first.take() } else { None }
    }
}

/// What one block came to.
#[derive(Debug)]
pub(super) struct BlockOutcome {
    pub(super) sequence: u64,
    pub(super) part: usize,
    pub(super) num_lines: u64,
    pub(super) num_edges: u64,
    pub(super) num_vertices: u64,
    /// Vertices that follow from a header, not from what the block holds.
    pub(super) num_implied: u64,
    pub(super) num_comments: u64,
    /// See [`Parsed`](super::lines::Parsed).
    pub(super) num_columns: usize,
    pub(super) faults: Faults,
}

/// A fault with its place among all inputs.
#[derive(Debug)]
struct Placed<T> {
    sequence: u64,
    part: usize,
    fault: T,
}

/// What ends everything.
#[derive(Debug)]
pub(super) enum Fatal {
    /// A line, by its place in its block.
    Line(LineFault),
    /// An input as a whole.
    Whole(Error),
}

impl From<Error> for Fatal {
    fn from(error: Error) -> Self {
        Self::Whole(error)
    }
}

/// Counts of one input.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PartCounts {
    pub(super) num_edges: u64,
    pub(super) num_vertices: u64,
    pub(super) num_skipped: u64,
    /// Vertices that follow from a header.
    pub(super) num_implied: u64,
    num_comments: u64,
    /// The most columns of a line without names that has more than those that are read; 0 without such a line.
    pub(super) num_columns: usize,
}

/// Everything that the workers found.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    /// By sequence: the input of each block and its lines.
    blocks: Vec<(u32, u32)>,
    counts: Vec<PartCounts>,
    /// By input: the first line that was skipped.
    first_skipped: Vec<Option<Placed<LineFault>>>,
    fatal: Option<Placed<Fatal>>,
}

fn keep_first<T>(kept: &mut Option<Placed<T>>, new: Placed<T>) {
    if kept.as_ref().is_none_or(|old| new.sequence < old.sequence) {
        *kept = Some(new);
    }
}

impl Outcomes {
    pub(super) fn new(num_parts: usize) -> Self {
        let first_skipped = (0..num_parts).map(|_| None).collect();
        Self { counts: vec![PartCounts::default(); num_parts], first_skipped, ..Self::default() }
    }

    /// Adds a block; true where it ends everything.
    pub(super) fn add(&mut self, mut block: BlockOutcome) -> bool {
        let index = block.sequence as usize;
        if self.blocks.len() <= index {
            self.blocks.resize(index + 1, (u32::MAX, 0));
        }
        self.blocks[index] = (block.part as u32, u32::try_from(block.num_lines).unwrap_or(u32::MAX));
        let counts = &mut self.counts[block.part];
        counts.num_edges += block.num_edges;
        counts.num_vertices += block.num_vertices;
        counts.num_implied += block.num_implied;
        counts.num_comments += block.num_comments;
        counts.num_columns = counts.num_columns.max(block.num_columns);
        let (sequence, part) = (block.sequence, block.part);
        if let Some(fault) = block.faults.fatal() {
            self.fail(sequence, part, Fatal::Line(fault));
            return true;
        }
        counts.num_skipped += block.faults.num_skipped;
        if let Some(fault) = block.faults.first.take() {
            keep_first(&mut self.first_skipped[part], Placed { sequence, part, fault });
        }
        false
    }

    /// Takes note of what ends everything.
    pub(super) fn fail(&mut self, sequence: u64, part: usize, fault: Fatal) {
        keep_first(&mut self.fatal, Placed { sequence, part, fault });
    }

    /// The first of what ends everything; `path` gives an input's.
    pub(super) fn take_error(&mut self, path: impl Fn(usize) -> PathBuf) -> Option<Error> {
        let Placed { sequence, part, fault } = self.fatal.take()?;
        Some(match fault {
            Fatal::Whole(error) => error,
            Fatal::Line(LineFault { line, what }) => {
                Error::Line { path: path(part), line: self.line_number(part, sequence, line), what }
            }
        })
    }

    /// The counts of one input.
    pub(super) fn counts(&self, part: usize) -> PartCounts {
        self.counts[part]
    }

    /// The number, from 1, of a line of a block. All blocks before must have been added.
    fn line_number(&self, part: usize, sequence: u64, line: u64) -> u64 {
        let before = self.blocks.iter().take(sequence as usize).filter(|block| block.0 == part as u32);
        before.map(|block| u64::from(block.1)).sum::<u64>() + line + 1
    }

    /// The first line of an input that was skipped, as an error; `path` gives the input's.
    fn skipped(&self, part: usize, path: impl Fn(usize) -> PathBuf) -> Option<Error> {
        let Placed { sequence, fault, .. } = self.first_skipped[part].as_ref()?;
        let line = self.line_number(part, *sequence, fault.line);
        Some(Error::Line { path: path(part), line, what: fault.what.clone() })
    }

    /// The first fault of an input of which every line was skipped: its format is another one.
    pub(super) fn all_skipped(&self, path: impl Fn(usize) -> PathBuf) -> Option<Error> {
        let is_lost = |counts: &PartCounts| {
            counts.num_skipped > 0 && counts.num_edges == 0 && counts.num_vertices == counts.num_implied
        };
        self.skipped(self.counts.iter().position(is_lost)?, path)
    }

    /// What the caller is told; `path` gives an input's.
    pub(super) fn summary(&self, path: impl Fn(usize) -> PathBuf) -> SourceSummary {
        let first_skipped = (0..self.counts.len()).find_map(|part| self.skipped(part, &path));
        let first_skipped = first_skipped.map(|error| error.to_string());
        SourceSummary {
            num_edges: self.counts.iter().map(|c| c.num_edges).sum(),
            num_skipped: self.counts.iter().map(|c| c.num_skipped).sum(),
            first_skipped,
            num_comments: self.counts.iter().map(|c| c.num_comments).sum(),
            num_listed: None,
        }
    }
}

/// What is wrong where `expected` should stand: at the end of the line, or in another token.
pub(super) fn unexpected(expected: &str, found: Option<&[u8]>) -> String {
    match found {
        Some(token) => format!("expected {expected}, found {}", shown(token)),
        None => format!("expected {expected}, found the end of the line"),
    }
}
