//! The formats of the DIMACS challenges and of PACE.
//!
//! | problem line | lines | graph |
//! | --- | --- | --- |
//! | `p sp n m` | `a u v w`: an arc with its length | directed |
//! | `p edge n m`, `p col n m` | `e u v`: an edge; `n`, `d`, `v` and `x`: passed over | undirected |
//! | `p tw n m` (PACE) | `u v`: an edge | undirected |
//!
//! Lines that begin with `c` are comments. The count of edges of `p edge` is not checked: some collections count each
//! edge twice.

use anden_base::MAX_VERTICES;
use anden_graph::{GraphKind, Weight};

use crate::Result;
use crate::blocks::TextBlock;
use crate::chunk::ParseContext;
use crate::collector::InputCollector;
use crate::input_format::{InputFormat, Recognition};
use crate::key::FieldKey;
use crate::lines::{EdgeLines, LineTag, ParsedBlock, first_line, next_token, parse_edges};
use crate::number::parse_u64;
use crate::outcome::{PromisedTotals, unexpected};
use crate::probe::InputProbe;
use crate::text_reader::{TextInput, TextLines};

/// The format.
pub(super) struct Dimacs;

impl InputFormat for Dimacs {
    fn name(&self) -> &'static str {
        "dimacs"
    }

    fn endings(&self) -> &'static [(&'static str, &'static str)] {
        &[("gr", "DIMACS"), ("col", "DIMACS"), ("clq", "DIMACS")]
    }

    fn recognises(&self, text: &[u8]) -> Recognition {
        let first = first_line(text);
        let is_remark = first == b"c" || first.starts_with(b"c ");
        let is_problem = |line: &[u8]| matches!(problem_line(line), Ok(Some(_)));
        // A line `c …` may also be an edge of a vertex `c`, so a problem line must follow.
        Recognition::likely_if(is_problem(first) || is_remark && text.split(|&b| b == b'\n').any(is_problem))
    }

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let text = input.text()?;
        let mut lines = text.split(|&byte| byte == b'\n');
        // An input that does not tell yet is one of the oldest kind.
        let kind =
            lines.find_map(|line| problem_line(line).ok()?).map_or(ProblemKind::ShortestPaths, |found| found.kind);
        match kind {
            ProblemKind::ShortestPaths => {
                to.direction_known(&input.path, None)?;
                to.weights_given(&input.path);
            }
            ProblemKind::Edges | ProblemKind::TreeWidth => {
                to.direction_known(&input.path, Some(GraphKind::Undirected))?;
                to.weights_known(&input.path, Some(false))?;
            }
        }
        to.push(input, Box::new(TextInput::new(DimacsLines { kind, problem: None })));
        Ok(())
    }

    fn has_whole_weights(&self) -> bool {
        true
    }
}

/// The problems whose graphs are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProblemKind {
    ShortestPaths,
    Edges,
    TreeWidth,
}

impl ProblemKind {
    fn of_word(word: &[u8]) -> Option<Self> {
        match word {
            b"sp" => Some(Self::ShortestPaths),
            b"edge" | b"edges" | b"col" => Some(Self::Edges),
            b"tw" => Some(Self::TreeWidth),
            _ => None,
        }
    }
}

/// The problem line.
#[derive(Clone, Copy)]
struct Problem {
    kind: ProblemKind,
    num_vertices: u64,
    num_lines: u64,
}

/// The lines behind the problem line.
#[derive(Clone, Copy)]
struct DimacsLines {
    /// The problem that the beginning of the input states.
    kind: ProblemKind,
    problem: Option<Problem>,
}

impl TextLines for DimacsLines {
    fn is_in_header(&self) -> bool {
        self.problem.is_none()
    }

    fn header_line(&mut self, line: &[u8]) -> Result<bool, String> {
        self.problem = problem_line(line)?;
        if self.problem.is_some_and(|problem| problem.kind != self.kind) {
            return Err(unexpected("the problem line in the first lines, because it says the direction", Some(line)));
        }
        Ok(self.problem.is_none() && !line.is_empty())
    }

    fn parse<K: FieldKey, W: Weight>(&self, block: &TextBlock, context: &ParseContext<'_>) -> ParsedBlock<K, W> {
        let num_vertices = self.problem.map_or(0, |problem| problem.num_vertices);
        let tag = match self.kind {
            ProblemKind::ShortestPaths => LineTag::Arc,
            ProblemKind::Edges => LineTag::Edge,
            ProblemKind::TreeWidth => LineTag::None,
        };
        parse_edges(block, EdgeLines::Numbered { tag, num_vertices }, context.is_weighted(), context.on_error())
    }

    fn promised(&self) -> Option<PromisedTotals> {
        self.problem.map(|Problem { kind, num_vertices, num_lines }| {
            let (num_items, noun) = match kind {
                ProblemKind::ShortestPaths => (Some(num_lines), "arcs"),
                ProblemKind::TreeWidth => (Some(num_lines), "edges"),
                // Collections differ on whether they count an edge once or twice.
                ProblemKind::Edges => (None, "edges"),
            };
            PromisedTotals { num_vertices, num_items, edges_each: 1, noun }
        })
    }

    fn check_end(&self, num_bytes: u64) -> Result<(), String> {
        match self.problem {
            None if num_bytes > 0 => Err("expected the problem line 'p sp vertices arcs', found none".into()),
            _ => Ok(()),
        }
    }
}

/// Parses a line before the body: the problem, or `None` for a comment.
///
/// # Errors
/// The line is neither a comment nor a problem line.
fn problem_line(line: &[u8]) -> Result<Option<Problem>, String> {
    // Reads up to five tokens, because a fifth one is enough to refuse a line.
    let mut tokens = Vec::with_capacity(5);
    let mut at = 0;
    while let Some((start, end)) = next_token(line, at, line.len())
        && tokens.len() < 5
    {
        tokens.push(&line[start..end]);
        at = end;
    }
    let (kind, num_vertices, num_lines) = match tokens[..] {
        [] | [b"c", ..] => return Ok(None),
        [b"p", word, num_vertices, num_lines] if let Some(kind) = ProblemKind::of_word(word) => {
            (kind, num_vertices, num_lines)
        }
        _ => {
            let expected = "the problem line 'p sp vertices arcs', 'p edge vertices edges' or 'p tw vertices edges', or a \
                            comment 'c'";
            return Err(unexpected(expected, Some(line)));
        }
    };
    match (parse_u64(num_vertices), parse_u64(num_lines)) {
        (Some(num_vertices), Some(num_lines)) if num_vertices <= MAX_VERTICES as u64 => {
            Ok(Some(Problem { kind, num_vertices, num_lines }))
        }
        _ => Err(unexpected(&format!("two counts, at most {MAX_VERTICES} vertices"), Some(line))),
    }
}
