//! The header of a DIMACS shortest-path file, and what headers promise.

use super::lines::next_token;
use super::number::parse_u64;
use super::outcome::unexpected;
use base::MAX_VERTICES;

/// What a header promises, such as `p sp n m`: vertices from 1, and so much in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) num_vertices: u64,
    pub(super) num_arcs: u64,
    /// The edges that one of what the header counts makes.
    pub(super) edges_each: u64,
    /// What the header counts, for messages.
    pub(super) noun: &'static str,
}

/// What a line before the body says: the problem, or nothing.
///
/// # Errors
/// The line is neither a comment nor a problem line.
pub(super) fn problem_line(line: &[u8]) -> Result<Option<Problem>, String> {
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
                Ok(Some(Problem { num_vertices, num_arcs, edges_each: 1, noun: "arcs" }))
            }
            _ => Err(unexpected(&format!("two counts, at most {MAX_VERTICES} vertices"), Some(line))),
        },
        _ => Err(unexpected("the problem line 'p sp vertices arcs' or a comment 'c'", Some(line))),
    }
}
