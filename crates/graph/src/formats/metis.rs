//! METIS graph files: the header and the lists.
//!
//! After `vertices edges [fmt [ncon]]`, the line of each vertex lists its neighbours, numbered from
//! one (as ids, from 0). The digits of `fmt` say what stands beside them: a size of each vertex (hundreds) and weights
//! of each vertex (tens, `ncon` of them), which are passed over, and a weight after each neighbour
//! (units). An empty line is a vertex without neighbours; lines that begin with `%` are comments.
//!
//! A line may be longer than a block: a hub's list comes in pieces, each of whole entries, so that memory does not
//! depend on it.
//!
//! Edges have no direction, and each stands in the lists of both its ends: one end's entry becomes
//! the edge, and a sum over both proves that the other is there, with the same weight.
//!
//! # Source
//! G. Karypis: METIS, a software package for partitioning unstructured graphs, manual 5.1, section 4.1.

use base::MAX_VERTICES;

use super::blocks::TextBlock;
use super::dimacs::Problem;
use super::key::FieldKey;
use super::lines::{Parsed, line_end, next_token};
use super::matrix_market::{number_key, vertex_at};
use super::message::shown;
use super::number::{parse_u64, parse_weight, short_number, weight_range};
use super::options::OnError;
use super::outcome::unexpected;
use crate::Weight;

/// The longest beginning of a line without a whole entry.
const MAX_ENTRY_BYTES: usize = 1 << 20;
/// The most weights of a vertex: far more than partitioners take.
const MAX_VERTEX_WEIGHTS: u64 = 1000;

/// What the first line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MetisHeader {
    pub(super) num_vertices: u64,
    pub(super) num_edges: u64,
    /// Numbers of a line before its neighbours.
    num_skipped: u64,
    pub(super) has_weights: bool,
}

impl MetisHeader {
    /// Whether vertices have sizes or weights, which are not read.
    pub(super) fn has_vertex_weights(&self) -> bool {
        self.num_skipped > 0
    }

    /// What a line at the beginning says: the header, or nothing.
    ///
    /// # Errors
    /// The line is neither a comment nor a header.
    pub(super) fn of_line(line: &[u8]) -> Result<Option<Self>, String> {
        let line = line.trim_ascii();
        if line.first() == Some(&b'%') {
            return Ok(None);
        }
        let wrong = || Err(unexpected("the header 'vertices edges [fmt [ncon]]'", Some(line)));
        let tokens: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty()).collect();
        let (counts, fmt, ncon) = match tokens[..] {
            [vertices, edges] => ([vertices, edges], &b"0"[..], None),
            [vertices, edges, fmt] => ([vertices, edges], fmt, None),
            [vertices, edges, fmt, ncon] => ([vertices, edges], fmt, Some(ncon)),
            _ => return wrong(),
        };
        let [Some(num_vertices), Some(num_edges)] = counts.map(parse_u64) else { return wrong() };
        if num_vertices > MAX_VERTICES as u64 {
            return Err(unexpected(&format!("at most {MAX_VERTICES} vertices"), Some(line)));
        }
        if fmt.len() > 3 || !fmt.iter().all(|digit| matches!(digit, b'0' | b'1')) {
            return Err(unexpected("a fmt of up to three digits 0 or 1", Some(fmt)));
        }
        let has = |place: usize| fmt.len() > place && fmt[fmt.len() - 1 - place] == b'1';
        let num_weights = match (has(1), ncon) {
            (false, None | Some(b"0" | b"1")) => 0,
            (false, Some(ncon)) => return Err(unexpected("no ncon, as fmt says no weights of vertices", Some(ncon))),
            (true, None) => 1,
            (true, Some(ncon)) => match parse_u64(ncon) {
                Some(num_weights) if num_weights <= MAX_VERTEX_WEIGHTS => num_weights,
                _ => return Err(unexpected(&format!("an ncon of at most {MAX_VERTEX_WEIGHTS}"), Some(ncon))),
            },
        };
        let num_skipped = num_weights + u64::from(has(2));
        Ok(Some(Self { num_vertices, num_edges, num_skipped, has_weights: has(0) }))
    }

    /// What is to be found: every edge once.
    pub(super) fn problem(self) -> Problem {
        Problem { num_vertices: self.num_vertices, num_arcs: self.num_edges, edges_each: 1, noun: "edges" }
    }
}

/// How the lines of a block are parsed: the first is that of `first_vertex`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListLines {
    header: MetisHeader,
    pub(super) first_vertex: u64,
    begun: Begun,
}

/// What the first line of a block is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    Nothing,
    Comment,
    /// A list, of which the next entry comes.
    List,
}

impl ListLines {
    /// Those behind the header.
    pub(super) fn new(header: MetisHeader) -> Self {
        Self { header, first_vertex: 1, begun: Begun::Nothing }
    }

    /// Where the last whole entry of a block ends: at its end, unless that lies in the middle of a line; at its start
    /// if there is none. What stands before the neighbours is one entry.
    pub(super) fn whole_entries(&self, block: &TextBlock) -> usize {
        let TextBlock { ref bytes, start, end } = *block;
        if bytes[start..end].ends_with(b"\n") || self.is_in_comment(&bytes[start..end]) {
            return end;
        }
        let entry_tokens = 1 + u64::from(self.header.has_weights);
        let begins_list = self.begun == Begun::Nothing && self.header.num_skipped > 0;
        let mut needed = if begins_list { self.header.num_skipped } else { entry_tokens };
        let (mut at, mut whole, mut num_tokens) = (start, start, 0);
        while let Some((_, stop)) = next_token(bytes, at, end) {
            (at, num_tokens) = (stop, num_tokens + 1);
            if num_tokens >= needed {
                whole = stop;
                needed = num_tokens + entry_tokens;
            }
        }
        let is_blank = num_tokens == 0 && !begins_list;
        if is_blank || (whole == start && end - start >= MAX_ENTRY_BYTES) { end } else { whole }
    }

    /// Goes on behind a block.
    pub(super) fn pass(&mut self, block: &TextBlock) {
        let text = &block.bytes[block.start..block.end];
        let num_lines = memchr::memchr_iter(b'\n', text).count();
        if num_lines == 0 {
            if !text.is_empty() {
                self.begun = if self.is_in_comment(text) { Begun::Comment } else { Begun::List };
            }
            return;
        }
        let starts_line = |&at: &usize| if at == 0 { self.begun == Begun::Nothing } else { text[at - 1] == b'\n' };
        let num_comments = memchr::memchr_iter(b'%', text).filter(starts_line).count();
        let num_comments = num_comments + usize::from(self.begun == Begun::Comment);
        self.first_vertex += (num_lines - num_comments) as u64;
        self.begun = Begun::Nothing;
    }

    fn is_in_comment(&self, text: &[u8]) -> bool {
        match self.begun {
            Begun::Nothing => text.first() == Some(&b'%'),
            Begun::Comment => true,
            Begun::List => false,
        }
    }
}

/// Parses the lists of a block. A line holds many edges, so a fault is never passed over.
pub(super) fn parse_lists<K: FieldKey, W: Weight>(
    block: &TextBlock,
    lines: ListLines,
    is_weighted: bool,
) -> Parsed<K, W> {
    let mut parsed = Parsed::of_block(block, OnError::Stop);
    let bytes = &block.bytes[..];
    let (mut at, mut lines) = (block.start, lines);
    while at < block.end {
        let end = line_end(bytes, at);
        if lines.is_in_comment(&bytes[at..end]) {
            // A comment that an earlier block began is counted there.
            parsed.num_comments += u64::from(lines.begun == Begun::Nothing);
        } else {
            if let Err(what) = list((bytes, block.end), at, end, lines, is_weighted, &mut parsed) {
                parsed.faults.note(bytes, at, what);
                break;
            }
            lines.first_vertex += 1;
        }
        lines.begun = Begun::Nothing;
        at = end + 1;
    }
    parsed
}

/// Parses the first list, or what comes of it, which is `bytes[at..end]`; the block's own lines are `base` bytes.
fn list<K: FieldKey, W: Weight>(
    (bytes, base): (&[u8], usize),
    mut at: usize,
    end: usize,
    lines: ListLines,
    is_weighted: bool,
    parsed: &mut Parsed<K, W>,
) -> Result<(), String> {
    let ListLines { header: MetisHeader { num_vertices, num_skipped, has_weights, .. }, first_vertex: vertex, begun } =
        lines;
    if vertex > num_vertices {
        let another = |(first, last): (usize, usize)| {
            let found = shown(&bytes[first..last]);
            Err(format!("expected the lists of {num_vertices} vertices, found another {found}"))
        };
        return next_token(bytes, at, end).map_or(Ok(()), another);
    }
    let num_skipped = if begun == Begun::List { 0 } else { num_skipped };
    for _ in 0..num_skipped {
        let token = next_token(bytes, at, end);
        let Some((_, stop)) = token.filter(|&(first, last)| parse_u64(&bytes[first..last]).is_some()) else {
            let found = token.map(|(first, last)| &bytes[first..last]);
            return Err(unexpected("a size or a weight of the vertex, as fmt says", found));
        };
        at = stop;
    }
    let mut source = None;
    loop {
        while at < end && bytes[at].is_ascii_whitespace() {
            at += 1;
        }
        if at >= end {
            return Ok(());
        }
        let (mut target, num_digits) = short_number(bytes, at);
        if num_digits == 0 || target == 0 || target > num_vertices || !bytes[at + num_digits].is_ascii_whitespace() {
            (target, at) = vertex_at(bytes, at, end, "neighbour", num_vertices)?;
        } else {
            at += num_digits;
        }
        if target == vertex {
            return Err(format!("expected neighbours other than the vertex itself, found {target} in its own list"));
        }
        let (mut weight, mut weight_bits) = (None, 0);
        if has_weights {
            let Some((first, last)) = next_token(bytes, at, end) else {
                return Err(unexpected("a weight after each neighbour, as fmt says", None));
            };
            at = last;
            if is_weighted {
                let token = &bytes[first..last];
                let value = parse_weight::<W>(token).ok_or_else(|| unexpected(weight_range(W::TYPE), Some(token)))?;
                (weight, weight_bits) = (Some(value), value.bits());
            }
        }
        if vertex > target {
            parsed.balance = parsed.balance.wrapping_sub(edge_hash(target, vertex, weight_bits));
            continue;
        }
        parsed.balance = parsed.balance.wrapping_add(edge_hash(vertex, target, weight_bits));
        let source = match source {
            Some(source) => source,
            None => *source.insert(number_key(vertex, base, parsed)?),
        };
        let target = number_key(target, base, parsed)?;
        parsed.edges.push((source, target));
        parsed.weights.extend(weight);
    }
}

/// A number that no other edge is likely to have.
fn edge_hash(low: u64, high: u64, weight_bits: u64) -> u64 {
    let mut hash = (low << 32 ^ high).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 29 ^ weight_bits;
    hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^= hash >> 32;
    hash.wrapping_mul(0x94d0_49bb_1331_11eb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_what_stands_in_a_line() {
        let header = |line: &str| MetisHeader::of_line(line.as_bytes());
        let plain = MetisHeader { num_vertices: 7, num_edges: 11, num_skipped: 0, has_weights: false };
        assert_eq!(header("7 11"), Ok(Some(plain)));
        assert_eq!(header(" 7 11 000\r"), Ok(Some(plain)));
        assert_eq!(header("% a comment"), Ok(None));
        assert_eq!(header("7 11 1"), Ok(Some(MetisHeader { has_weights: true, ..plain })));
        assert_eq!(header("7 11 011"), Ok(Some(MetisHeader { has_weights: true, num_skipped: 1, ..plain })));
        assert_eq!(header("7 11 110 3"), Ok(Some(MetisHeader { num_skipped: 4, ..plain })));
        for wrong in ["", "7", "7 x", "7 11 2", "7 11 0001", "7 11 1 3", "7 11 10 4096", "1 2 11 1 5", "-1 2"] {
            assert!(header(wrong).is_err(), "{wrong}");
        }
        assert!(header("4294967295 0").unwrap_err().contains("at most 4294967294 vertices"));
    }
}
