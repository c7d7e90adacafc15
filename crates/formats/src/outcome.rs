//! The results of the workers, in input order.
//!
//! A worker knows a line only by its position in a block. When a fault is reported, all earlier blocks are parsed, so
//! the sum of their lines gives the line number. The first fault in the input wins, whichever worker finds a fault
//! first.

use std::path::PathBuf;

use anden_base::message::shown;

use crate::Error;
use crate::options::{OnError, SourceSummary};

/// A faulty line of a block: its index from 0, and the fault.
#[derive(Clone, Debug)]
pub(crate) struct LineFault {
    pub(crate) line: u64,
    pub(crate) what: String,
}

/// The faulty lines of one block.
#[derive(Debug)]
pub(crate) struct Faults {
    on_error: OnError,
    pub(crate) num_skipped: u64,
    pub(crate) first: Option<LineFault>,
}

impl Faults {
    pub(crate) fn new(on_error: OnError) -> Self {
        Self { on_error, num_skipped: 0, first: None }
    }

    /// Records the line of `text` that begins at `at`; returns true if parsing must stop.
    #[cold]
    pub(crate) fn note(&mut self, text: &[u8], at: usize, what: String) -> bool {
        // Counting lines is slow, and only the first fault needs its line.
        let line = if self.first.is_none() { memchr::memchr_iter(b'\n', &text[..at]).count() as u64 } else { 0 };
        self.note_at(line, what)
    }

    /// Records a line or row by its number from 0; returns true if parsing must stop.
    #[cold]
    pub(crate) fn note_at(&mut self, line: u64, what: String) -> bool {
        if self.first.is_none() {
            self.first = Some(LineFault { line, what });
        }
        self.num_skipped += 1;
        self.on_error == OnError::Stop
    }

    /// The fault that ends the read, if faults do.
    pub(crate) fn fatal(&mut self) -> Option<LineFault> {
        if self.on_error == OnError::Stop { self.first.take() } else { None }
    }
}

/// The totals that a header such as `p sp n m` promises. Vertices count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PromisedTotals {
    pub(crate) num_vertices: u64,
    /// The number of counted items; `None` where files are known to state a wrong one.
    pub(crate) num_items: Option<u64>,
    /// The number of edges that each counted item makes.
    pub(crate) edges_each: u64,
    /// The name of the counted items, for messages.
    pub(crate) noun: &'static str,
}

/// The result of one block.
#[derive(Debug)]
pub(crate) struct BlockOutcome {
    pub(crate) sequence: u64,
    pub(crate) part: usize,
    pub(crate) num_lines: u64,
    pub(crate) num_edges: u64,
    pub(crate) num_vertices: u64,
    /// Vertices that follow from a header, not from the content of the block.
    pub(crate) num_implied: u64,
    pub(crate) num_comments: u64,
    /// See [`ParsedBlock`](crate::lines::ParsedBlock).
    pub(crate) num_columns: usize,
    /// See [`ParsedBlock`](crate::lines::ParsedBlock).
    pub(crate) balance: u64,
    pub(crate) faults: Faults,
}

/// A fault with its position among all inputs.
#[derive(Debug)]
struct Placed<T> {
    sequence: u64,
    part: usize,
    fault: T,
}

/// An error that ends the read.
#[derive(Debug)]
pub(crate) enum Fatal {
    /// A line, by its index in its block.
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
pub(crate) struct PartCounts {
    pub(crate) num_edges: u64,
    pub(crate) num_vertices: u64,
    pub(crate) num_skipped: u64,
    /// Vertices that follow from a header.
    pub(crate) num_implied: u64,
    num_comments: u64,
    /// The largest number of columns of a line without names, if some line has unread columns; otherwise 0.
    pub(crate) num_columns: usize,
    /// Nonzero if some edge does not stand at both ends, in an input that must hold it there.
    pub(crate) balance: u64,
}

/// The results of all workers.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    /// By sequence number: the input and the lines of each block.
    blocks: Vec<(u32, u32)>,
    counts: Vec<PartCounts>,
    /// By input: the first skipped line.
    first_skipped: Vec<Option<Placed<LineFault>>>,
    fatal: Option<Placed<Fatal>>,
}

fn keep_first<T>(kept: &mut Option<Placed<T>>, new: Placed<T>) {
    // Workers report in any order, so the sequence number decides.
    if kept.as_ref().is_none_or(|old| new.sequence < old.sequence) {
        *kept = Some(new);
    }
}

impl Outcomes {
    pub(crate) fn new(num_parts: usize) -> Self {
        let first_skipped = (0..num_parts).map(|_| None).collect();
        Self { counts: vec![PartCounts::default(); num_parts], first_skipped, ..Self::default() }
    }

    /// Adds a block; returns true if it ends the read.
    pub(crate) fn add(&mut self, mut block: BlockOutcome) -> bool {
        let index = block.sequence as usize;
        // Workers finish blocks in any order, so later blocks may come first.
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
        counts.balance = counts.balance.wrapping_add(block.balance);
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

    /// Records an error that ends the read.
    pub(crate) fn fail(&mut self, sequence: u64, part: usize, fault: Fatal) {
        keep_first(&mut self.fatal, Placed { sequence, part, fault });
    }

    /// Takes the first fatal error; `path` maps an input to its path.
    pub(crate) fn take_error(&mut self, path: impl Fn(usize) -> PathBuf) -> Option<Error> {
        let Placed { sequence, part, fault } = self.fatal.take()?;
        Some(match fault {
            Fatal::Whole(error) => error,
            Fatal::Line(LineFault { line, what }) => {
                Error::Line { path: path(part), line: self.line_number(part, sequence, line), what }
            }
        })
    }

    /// The counts of one input.
    pub(crate) fn counts(&self, part: usize) -> PartCounts {
        self.counts[part]
    }

    /// The line number from 1 of a line in a block. All earlier blocks must have been added.
    fn line_number(&self, part: usize, sequence: u64, line: u64) -> u64 {
        // Line numbers are summed only for a message, because blocks do not know the lines before them.
        let before = self.blocks.iter().take(sequence as usize).filter(|block| block.0 == part as u32);
        before.map(|block| u64::from(block.1)).sum::<u64>() + line + 1
    }

    /// The first skipped line of an input as an error; `path` maps an input to its path.
    fn skipped(&self, part: usize, path: impl Fn(usize) -> PathBuf) -> Option<Error> {
        let Placed { sequence, fault, .. } = self.first_skipped[part].as_ref()?;
        let line = self.line_number(part, *sequence, fault.line);
        Some(Error::Line { path: path(part), line, what: fault.what.clone() })
    }

    /// The first fault of an input without a valid line: its format is probably wrong.
    pub(crate) fn all_skipped(&self, path: impl Fn(usize) -> PathBuf) -> Option<Error> {
        // Vertices that a header implies do not show that any line was valid.
        let is_lost = |counts: &PartCounts| {
            counts.num_skipped > 0 && counts.num_edges == 0 && counts.num_vertices == counts.num_implied
        };
        self.skipped(self.counts.iter().position(is_lost)?, path)
    }

    /// The summary for the caller; `path` maps an input to its path.
    pub(crate) fn summary(&self, path: impl Fn(usize) -> PathBuf) -> SourceSummary {
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

/// The message for text other than `expected`: another token, or the end of the line.
pub(crate) fn unexpected(expected: &str, found: Option<&[u8]>) -> String {
    match found {
        Some(token) => format!("expected {expected}, found {}", shown(token)),
        None => format!("expected {expected}, found the end of the line"),
    }
}
