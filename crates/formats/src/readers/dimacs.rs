//! The shortest-path format of the 9th DIMACS challenge: `p sp n m`, then arcs `a u v w`.

use anden_base::MAX_VERTICES;
use anden_graph::Weight;

use crate::Result;
use crate::blocks::TextBlock;
use crate::chunk::ParseContext;
use crate::collector::InputCollector;
use crate::input_format::{InputFormat, Recognition};
use crate::key::FieldKey;
use crate::lines::{EdgeLines, ParsedBlock, first_line, next_token, parse_edges};
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
        &[("gr", "DIMACS")]
    }

    fn recognises(&self, text: &[u8]) -> Recognition {
        let first = first_line(text);
        let is_remark = first == b"c" || first.starts_with(b"c ");
        // A line `c …` may also be an edge of a vertex `c`, so a problem line must follow.
        let has_problem = || text.split(|&b| b == b'\n').any(|line| line.starts_with(b"p sp "));
        Recognition::likely_if(first.starts_with(b"p sp ") || is_remark && has_problem())
    }

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        to.direction_known(&input.path, None)?;
        to.weights_given(&input.path);
        to.push(input, Box::new(TextInput::new(ArcLines(None))));
        Ok(())
    }

    fn has_whole_weights(&self) -> bool {
        true
    }
}

/// Lines that begin with `a`, behind the problem line.
#[derive(Clone, Copy)]
struct ArcLines(Option<PromisedTotals>);

impl TextLines for ArcLines {
    fn is_in_header(&self) -> bool {
        self.0.is_none()
    }

    fn header_line(&mut self, line: &[u8]) -> Result<bool, String> {
        self.0 = problem_line(line)?;
        Ok(self.0.is_none() && !line.is_empty())
    }

    fn parse<K: FieldKey, W: Weight>(&self, block: &TextBlock, context: &ParseContext<'_>) -> ParsedBlock<K, W> {
        let num_vertices = self.0.map_or(0, |promised| promised.num_vertices);
        parse_edges(block, EdgeLines::Arcs { num_vertices }, context.is_weighted(), context.on_error())
    }

    fn promised(&self) -> Option<PromisedTotals> {
        self.0
    }

    fn check_end(&self, num_bytes: u64) -> Result<(), String> {
        match self.0 {
            None if num_bytes > 0 => Err("expected the problem line 'p sp vertices arcs', found none".into()),
            _ => Ok(()),
        }
    }
}

/// Parses a line before the body: the problem, or `None` for a comment.
///
/// # Errors
/// The line is neither a comment nor a problem line.
fn problem_line(line: &[u8]) -> Result<Option<PromisedTotals>, String> {
    // Reads up to five tokens, because a fifth one is enough to refuse a line.
    let mut tokens = Vec::with_capacity(4);
    let mut at = 0;
    while let Some((start, end)) = next_token(line, at, line.len())
        && tokens.len() < 5
    {
        tokens.push(&line[start..end]);
        at = end;
    }
    match tokens[..] {
        [] | [b"c", ..] => Ok(None),
        [b"p", b"sp", num_vertices, num_arcs] => match (parse_u64(num_vertices), parse_u64(num_arcs)) {
            (Some(num_vertices), Some(num_arcs)) if num_vertices <= MAX_VERTICES as u64 => {
                Ok(Some(PromisedTotals { num_vertices, num_arcs, edges_each: 1, noun: "arcs" }))
            }
            _ => Err(unexpected(&format!("two counts, at most {MAX_VERTICES} vertices"), Some(line))),
        },
        _ => Err(unexpected("the problem line 'p sp vertices arcs' or a comment 'c'", Some(line))),
    }
}
